//! `compressed-tensors`, the format of llm-compressor.
//!
//! FP8 and 8-bit integers are stored a byte each (`weight`, see [`grid`]), integers of 4 or 8 bits
//! may be packed into words (`weight_packed`, see [`packed`]). This file reads `config_groups` and
//! finds which of its schemes each module is stored in; both matrices are elsewhere.
//!
//! The settings assign schemes to modules by classes and regular expressions. Those are not read: a
//! module has the one scheme that its tensors fit, by dtype, shape of the codes and shape of the
//! scales. It is an error if it fits two that differ in bits or blocks.
//!
//! | `strategy` | `group_size` | scales of `[out, in]` |
//! |---|---|---|
//! | `tensor`, or none | none | one |
//! | `channel`, or none with -1 | | `[out, 1]` |
//! | `group`, or none | `g` | `[out, ⌈in / g⌉]` |
//! | `block` | | a grid by `block_structure`, rows and columns |
//!
//! What is read of a module, by the ends of its tensors' names:
//!
//! ```text
//!  a byte each   weight             F8_E4M3 or I8 [out, in]
//!                weight_scale       by the strategy
//!                weight_zero_point  I8, of the scales' shape; must be there unless symmetric
//!  packed        weight_packed      I32, with weight_shape and weight_g_idx: see `packed.rs`
//!                weight_scale, weight_zero_point (I32, packed)
//! ```

use safetensors::Dtype as Stored;
use serde_json::Value;

use super::grid::{fits, grid};
use super::method::Method;
use super::module::matrix;
use super::packed::{Beside, packed};
use super::settings::Settings;
use crate::Error;
use crate::error::TensorProblem;
use crate::raw::Raw;

/// Values of `format` that are read, as errors say it.
const FORMATS: &str = "float-quantized, int-quantized, naive-quantized, pack-quantized, and mixed-precision of these";

/// How weights are stored: the `weights` of a group of `config_groups`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Scheme {
    /// Bits of a code: 4 or 8.
    bits: usize,
    /// Whether codes are E4M3, else integers.
    is_float: bool,
    /// Whether zero points may be missing.
    is_symmetric: bool,
    /// What shares a scale.
    strategy: Strategy,
}

/// What shares a scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Strategy {
    /// The whole matrix.
    Tensor,
    /// A row.
    Channel,
    /// So many columns of a row.
    Group(usize),
    /// So many rows and columns.
    Block([usize; 2]),
}

/// `quant_method` `compressed-tensors`.
///
/// # Errors
/// [`Error::Unsupported`] for a format or a scheme that is not read, for sparse or transformed
/// weights, and for weights that were not compressed to the end.
pub(super) fn read(settings: &Settings) -> Result<Method, Error> {
    settings.warn_of_unread(
        "quant_method config_groups format global_compression_ratio ignore kv_cache_scheme quantization_status \
         sparsity_config transform_config version",
    );
    /// Values of `format` that are read, of the settings and of each group.
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
        if let Some(weights) = group.get("weights").filter(|weights| !weights.is_null()) {
            /// Schemes that are read, as errors say it.
            const SUPPORTED: &str =
                "weights of 8-bit floats, or integers of 4 or 8 bits, with scales by tensor, channel, group or block";
            let scheme = Scheme::read(weights).ok_or_else(|| settings.refuse("config_groups", SUPPORTED))?;
            if !schemes.contains(&scheme) {
                schemes.push(scheme);
            }
        }
    }
    // Of `weight`, the dtype says whether it is codes.
    let is_codes: fn(&Raw<'_>) -> bool =
        |raw| raw.name.ends_with("_packed") || matches!(raw.dtype, Stored::F8_E4M3 | Stored::I8);
    // What belongs to activations (`input_...`, `output_...`) is known but not read.
    let partners = &[
        ".weight_scale",
        ".weight_zero_point",
        ".weight_shape",
        ".weight_g_idx",
        ".input_scale",
        ".input_zero_point",
        ".output_scale",
        ".output_zero_point",
    ];
    // I32 codes are packed, others a byte each.
    let method = Method::new(is_codes, partners, move |module, shape| {
        let shape = matrix(&module.codes, shape)?;
        let scales = module.need(".weight_scale")?;
        let (bits, block, needs_zeros) = scheme_of(&schemes, &module.codes, &scales, shape)?;
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
            packed(module.codes, shape, bits, scales, block, beside)
        } else {
            grid(module.codes, shape, scales, zeros, block)
        }
    });
    // Scales of keys and values, where the settings announce some, are for a cache in few bits.
    let ignored: &[&str] = match settings.get("kv_cache_scheme") {
        Some(_) => &[".q_scale", ".k_scale", ".v_scale"],
        None => &[],
    };
    // Packed codes have a name of their own; bytes have the name of a dense weight.
    Ok(Method { codes: &[(".weight", ".weight"), (".weight_packed", ".weight")], ignored, ..method })
}

/// Finds the scheme that a module's tensors fit, where `shape` is that of the weight. Returns
/// the bits of a code, rows and columns of a block, and whether zero points must be there.
///
/// # Errors
/// [`TensorProblem::Setting`] if schemes fit that differ in bits or blocks, or if none has the
/// codes' kind; [`TensorProblem::Shape`] if only the scales fit none.
fn scheme_of(
    schemes: &[Scheme],
    codes: &Raw<'_>,
    scales: &Raw<'_>,
    shape: [usize; 2],
) -> Result<(usize, [usize; 2], bool), Error> {
    let is_float = codes.dtype == Stored::F8_E4M3;
    let is_of_width = |scheme: &&Scheme| {
        codes.dtype != Stored::I32 || codes.shape == [shape[0], (shape[1] * scheme.bits).div_ceil(32)]
    };
    let of_kind = schemes.iter().filter(|scheme| scheme.is_float == is_float).filter(is_of_width);
    let (mut found, mut expected) = (None, None);
    for scheme in of_kind {
        let block = scheme.block(shape);
        let grid = [shape[0].div_ceil(block[0]), shape[1].div_ceil(block[1])];
        expected = Some(grid);
        if !fits(scales.shape, grid) {
            continue;
        }
        found = match found {
            None => Some((scheme.bits, block, !scheme.is_symmetric)),
            // Zero points are read wherever they are; where one scheme has none, they may be missing.
            Some((bits, other, needs_zeros)) if bits == scheme.bits && other == block => {
                Some((bits, block, needs_zeros && !scheme.is_symmetric))
            }
            Some(_) => {
                let (found, expected) = ("several groups that this module's tensors fit".to_owned(), "one".to_owned());
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

impl Scheme {
    /// A scheme from its JSON, with the defaults of compressed-tensors: 8 bits, integers,
    /// symmetric. `None` for one that is not read.
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
            (None, None) if weights.get("group_size").is_some_and(|size| !size.is_null()) => return None,
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

    /// Rows and columns that share a scale in a matrix of this shape; at least 1 each.
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn without_a_strategy_the_group_size_says_it_or_is_refused() {
        let strategy = |group_size: Value| Scheme::read(&json!({ "group_size": group_size })).map(|s| s.strategy);
        assert!(matches!(strategy(json!(128)), Some(Strategy::Group(128))));
        assert!(matches!(strategy(json!(-1)), Some(Strategy::Channel)));
        assert!(matches!(strategy(Value::Null), Some(Strategy::Tensor)));
        for refused in [json!(0), json!(-2), json!("128"), json!(1.5)] {
            assert!(strategy(refused.clone()).is_none(), "{refused}");
        }
    }
}
