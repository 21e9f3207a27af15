//! `compressed-tensors`, the format of llm-compressor: FP8 and 8-bit integers a byte each, and integers of 4 or 8 bits packed into words.

use safetensors::Dtype as Stored;
use serde_json::Value;

use super::grid::{self, Grid};
use super::method::Format;
use super::module::{Module, matrix};
use super::packed::{Beside, Packed};
use super::settings::Settings;
use crate::Error;
use crate::error::TensorProblem;
use crate::weights::raw::Raw;
use crate::weights::rows::Rows;

const FORMATS: &str = "float-quantized, int-quantized, naive-quantized, pack-quantized, and mixed-precision of these";

/// Which modules a scheme of `config_groups` is for is said there by classes and regular expressions. It is told here by the tensors: a module has the one
/// scheme that they fit.
pub(super) struct Compressed {
    schemes: Vec<Scheme>,
    /// Whether there may be scales of keys and values, which are for a cache in few bits.
    has_cache_scales: bool,
}

/// How weights are stored: a group of `config_groups`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Scheme {
    bits: usize,
    is_float: bool,
    is_symmetric: bool,
    strategy: Strategy,
}

/// What shares a scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Strategy {
    Tensor,
    Channel,
    /// So many columns of a row.
    Group(usize),
    /// So many rows and columns.
    Block([usize; 2]),
}

impl Compressed {
    pub(super) fn read(settings: &Settings) -> Result<Self, Error> {
        settings.warn_of_unread(&[
            "quant_method",
            "config_groups",
            "format",
            "global_compression_ratio",
            "ignore",
            "kv_cache_scheme",
            "quantization_status",
            "sparsity_config",
            "transform_config",
            "version",
        ]);
        const KNOWN: [&str; 5] =
            ["float-quantized", "int-quantized", "naive-quantized", "pack-quantized", "mixed-precision"];
        if !KNOWN.contains(&settings.text("format")) {
            return Err(settings.refuse("format", FORMATS));
        }
        if !matches!(settings.text("quantization_status"), "" | "compressed" | "frozen") {
            return Err(settings.refuse("quantization_status", "compressed and frozen"));
        }
        settings.must_be_off("transform_config", "weights without transforms")?;
        let sparsity = settings.get("sparsity_config").and_then(|sparsity| sparsity.get("format"));
        if sparsity.and_then(Value::as_str).is_some_and(|format| format != "dense") {
            return Err(settings.refuse("sparsity_config", "dense weights"));
        }
        let groups = settings.get("config_groups").and_then(Value::as_object);
        let groups = groups.ok_or_else(|| settings.refuse("config_groups", "an object of groups with weights"))?;
        let mut schemes = Vec::new();
        for group in groups.values() {
            if group.get("format").and_then(Value::as_str).is_some_and(|format| !KNOWN.contains(&format)) {
                return Err(settings.refuse("config_groups", FORMATS));
            }
            match group.get("weights") {
                None | Some(Value::Null) => {}
                Some(weights) => {
                    const SUPPORTED: &str = "weights of 8-bit floats, or integers of 4 or 8 bits, with scales by tensor, channel, group or block";
                    let scheme = Scheme::read(weights).ok_or_else(|| settings.refuse("config_groups", SUPPORTED))?;
                    if !schemes.contains(&scheme) {
                        schemes.push(scheme);
                    }
                }
            }
        }
        Ok(Self { schemes, has_cache_scales: settings.get("kv_cache_scheme").is_some() })
    }

    /// Bits of a code and rows and columns of a block, by the one scheme that a module's tensors fit; and whether it needs zero points.
    fn scheme_of(
        &self,
        codes: &Raw<'_>,
        scales: &Raw<'_>,
        shape: [usize; 2],
    ) -> Result<(usize, [usize; 2], bool), Error> {
        let is_float = codes.dtype == Stored::F8_E4M3;
        let is_of_width = |scheme: &&Scheme| {
            codes.dtype != Stored::I32 || codes.shape == [shape[0], (shape[1] * scheme.bits).div_ceil(32)]
        };
        let of_kind = self.schemes.iter().filter(|scheme| scheme.is_float == is_float).filter(is_of_width);
        let (mut found, mut expected) = (None, None);
        for scheme in of_kind {
            let block = scheme.block(shape);
            let grid = [shape[0].div_ceil(block[0]), shape[1].div_ceil(block[1])];
            expected = Some(grid);
            if !grid::fits(scales.shape, grid) {
                continue;
            }
            found = match found {
                None => Some((scheme.bits, block, !scheme.is_symmetric)),
                // Zero points are read wherever they are; where one scheme has none, they may be missing.
                Some((bits, other, needs_zeros)) if bits == scheme.bits && other == block => {
                    Some((bits, block, needs_zeros && !scheme.is_symmetric))
                }
                Some(_) => {
                    let (found, expected) =
                        ("several groups that this module's tensors fit".to_owned(), "one".to_owned());
                    return Err(codes.fault(TensorProblem::Setting { field: "config_groups", found, expected }));
                }
            };
        }
        match (found, expected) {
            (Some(found), _) => Ok(found),
            (None, Some(grid)) => Err(scales.other_shape(&grid)),
            (None, None) => {
                let found = format!("no group for {:?} of shape {:?}", codes.dtype, codes.shape);
                let expected = format!("one whose num_bits and type give a weight of shape {shape:?}");
                Err(codes.fault(TensorProblem::Setting { field: "config_groups", found, expected }))
            }
        }
    }
}

impl Scheme {
    /// `None` for one that is not read.
    fn read(weights: &Value) -> Option<Self> {
        let size = |value: &Value| value.as_u64().and_then(|size| usize::try_from(size).ok()).filter(|&size| size > 0);
        let bits = weights.get("num_bits").map_or(Some(8), size)?;
        let is_float = match weights.get("type").and_then(Value::as_str).unwrap_or("int") {
            "int" if matches!(bits, 4 | 8) => false,
            "float" if bits == 8 => true,
            _ => return None,
        };
        let is_symmetric = weights.get("symmetric").is_none_or(|value| value.as_bool() == Some(true));
        let group = weights.get("group_size").and_then(size);
        let is_whole = weights.get("group_size").and_then(Value::as_i64) == Some(-1);
        let strategy = match (weights.get("strategy").and_then(Value::as_str), group) {
            (None, None) if is_whole => Strategy::Channel,
            (Some("group"), Some(size)) | (None, Some(size)) => Strategy::Group(size),
            (Some("channel"), _) => Strategy::Channel,
            (Some("tensor") | None, None) => Strategy::Tensor,
            (Some("block"), _) => match weights.get("block_structure")?.as_array()?.as_slice() {
                [rows, columns] => Strategy::Block([size(rows)?, size(columns)?]),
                _ => return None,
            },
            _ => return None,
        };
        Some(Self { bits, is_float, is_symmetric, strategy })
    }

    /// Rows and columns that share a scale in a matrix of this shape.
    fn block(self, shape: [usize; 2]) -> [usize; 2] {
        let [rows, columns] = shape.map(|size| size.max(1));
        match self.strategy {
            Strategy::Tensor => [rows, columns],
            Strategy::Channel => [1, columns],
            Strategy::Group(size) => [1, size],
            Strategy::Block(block) => block,
        }
    }
}

impl Format for Compressed {
    fn codes(&self) -> &'static [(&'static str, &'static str)] {
        &[(".weight", ".weight"), (".weight_packed", ".weight")]
    }

    fn is_codes(&self, raw: &Raw<'_>) -> bool {
        if raw.name.ends_with("_packed") { true } else { matches!(raw.dtype, Stored::F8_E4M3 | Stored::I8) }
    }

    fn partners(&self) -> &'static [&'static str] {
        &[
            ".weight_scale",
            ".weight_zero_point",
            ".weight_shape",
            ".weight_g_idx",
            ".input_scale",
            ".input_zero_point",
            ".output_scale",
            ".output_zero_point",
        ]
    }

    fn ignores(&self, name: &str) -> bool {
        self.has_cache_scales && [".q_scale", ".k_scale", ".v_scale"].iter().any(|end| name.ends_with(end))
    }

    fn open<'a>(&self, module: Module<'a>, shape: &[usize]) -> Result<Box<dyn Rows + 'a>, Error> {
        let shape = matrix(&module.codes, shape)?;
        let scales = module.need(".weight_scale")?;
        let (bits, block, needs_zeros) = self.scheme_of(&module.codes, &scales, shape)?;
        let scales = scales.floats()?;
        let zeros = match module.partner(".weight_zero_point") {
            None if needs_zeros => Some(module.need(".weight_zero_point")?),
            // Old files have zero points of floats too, all of them 0.
            Some(zeros) if zeros.dtype == Stored::F8_E4M3 && zeros.bytes.iter().all(|&byte| byte == 0) => None,
            zeros => zeros,
        };
        if module.codes.dtype == Stored::I32 {
            let beside =
                Beside { shape: module.need(".weight_shape")?, zeros, groups: module.partner(".weight_g_idx") };
            Ok(Box::new(Packed::new(module.codes, shape, bits, scales, block, beside)?))
        } else {
            let grid = Grid::new(module.codes, shape, scales, block)?;
            Ok(match zeros {
                Some(zeros) => Box::new(grid.with_zeros(zeros)?),
                None => Box::new(grid),
            })
        }
    }
}
