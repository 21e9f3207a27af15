//! bitsandbytes: 4-bit codes of a table (`nf4`, `fp4`) in blocks of the flattened matrix, and 8-bit integers with a scale for each row.

use safetensors::Dtype as Stored;
use serde::Deserialize;

use super::method::Format;
use super::module::{Module, matrix};
use super::settings::Settings;
use crate::Error;
use crate::error::TensorProblem;
use crate::weights::raw::{Floats, Raw};
use crate::weights::rows::Rows;

/// `quant_method` `bitsandbytes`. Whether a module is of 4 or 8 bits follows from its tensors.
pub(super) struct Bitsandbytes;

/// Ends of the name of the tensor that says how a module of 4 bits is stored.
const STATES: [&str; 2] = [".weight.quant_state.bitsandbytes__nf4", ".weight.quant_state.bitsandbytes__fp4"];

impl Bitsandbytes {
    pub(super) fn read(settings: &Settings) -> Self {
        settings.warn_of_unread(&[
            "quant_method",
            "_load_in_4bit",
            "_load_in_8bit",
            "bnb_4bit_compute_dtype",
            "bnb_4bit_quant_storage",
            "bnb_4bit_quant_type",
            "bnb_4bit_use_double_quant",
            "llm_int8_enable_fp32_cpu_offload",
            "llm_int8_has_fp16_weight",
            "llm_int8_skip_modules",
            "llm_int8_threshold",
            "load_in_4bit",
            "load_in_8bit",
        ]);
        Self
    }
}

impl Format for Bitsandbytes {
    fn codes(&self) -> &'static [(&'static str, &'static str)] {
        &[(".weight", ".weight")]
    }

    fn is_codes(&self, raw: &Raw<'_>) -> bool {
        matches!(raw.dtype, Stored::U8 | Stored::I8)
    }

    fn partners(&self) -> &'static [&'static str] {
        &[
            ".weight.absmax",
            ".weight.quant_map",
            ".weight.nested_absmax",
            ".weight.nested_quant_map",
            STATES[0],
            STATES[1],
            ".SCB",
            ".weight_format",
        ]
    }

    fn open<'a>(&self, module: Module<'a>, shape: &[usize]) -> Result<Box<dyn Rows + 'a>, Error> {
        let shape = matrix(&module.codes, shape)?;
        match module.codes.dtype {
            Stored::U8 => Ok(Box::new(Blocks::new(&module, shape)?)),
            _ => Ok(Box::new(Scaled::new(&module, shape)?)),
        }
    }
}

/// What a `quant_state` says, in JSON.
#[derive(Deserialize)]
struct State {
    quant_type: String,
    blocksize: usize,
    shape: Vec<usize>,
    nested_blocksize: Option<usize>,
    nested_offset: Option<f32>,
}

/// `quant_map[code] · absmax[block]`: two codes a byte, the high one first, over the flattened matrix.
struct Blocks<'a> {
    codes: &'a [u8],
    map: [f32; 16],
    absmax: Absmax<'a>,
    /// Elements of a block.
    size: usize,
    width: usize,
}

/// The largest magnitude in each block.
enum Absmax<'a> {
    Plain(Floats<'a>),
    /// `map[code] · absmax[block of blocks] + offset`.
    Nested {
        codes: &'a [u8],
        map: Floats<'a>,
        absmax: Floats<'a>,
        size: usize,
        offset: f32,
    },
}

impl Absmax<'_> {
    fn get(&self, block: usize) -> f32 {
        match self {
            Self::Plain(absmax) => absmax.get(block),
            Self::Nested { codes, map, absmax, size, offset } => {
                map.get(codes[block].into()) * absmax.get(block / size) + offset
            }
        }
    }
}

impl<'a> Blocks<'a> {
    fn new(module: &Module<'a>, shape: [usize; 2]) -> Result<Self, Error> {
        let of_kind = STATES.into_iter().find(|state| module.partner(state).is_some()).unwrap_or(STATES[0]);
        let raw = module.need(of_kind)?.of_dtype(Stored::U8, "U8")?;
        let wrong = |field, found: String, expected: &str| {
            raw.fault(TensorProblem::Setting { field, found, expected: expected.to_owned() })
        };
        let state: State = serde_json::from_slice(raw.bytes)
            .map_err(|source| wrong("quant_state", source.to_string(), "JSON with quant_type, blocksize and shape"))?;
        if !of_kind.ends_with(&format!("__{}", state.quant_type)) {
            return Err(wrong("quant_type", state.quant_type, "the one of the tensor's name"));
        }
        if state.blocksize == 0 {
            return Err(wrong("blocksize", "0".to_owned(), "a number greater than 0"));
        }
        if state.shape != shape {
            return Err(raw.fault(TensorProblem::Shape { expected: shape.to_vec(), found: state.shape }));
        }
        let count = shape[0].saturating_mul(shape[1]);
        let codes = module.codes.of_shape(&[count.div_ceil(2), 1])?.bytes;
        let blocks = count.div_ceil(state.blocksize);
        let table = module.need(".weight.quant_map")?.of_shape(&[16])?.floats()?;
        let absmax = module.need(".weight.absmax")?.of_shape(&[blocks])?;
        let absmax = match (absmax.dtype, state.nested_blocksize, state.nested_offset) {
            (Stored::U8, Some(size), Some(offset)) => {
                if size == 0 || !offset.is_finite() {
                    return Err(wrong(
                        "nested_blocksize and nested_offset",
                        format!("{size} and {offset}"),
                        "finite and greater than 0",
                    ));
                }
                let nested = module.need(".weight.nested_absmax")?.of_shape(&[blocks.div_ceil(size)])?.floats()?;
                let map = module.need(".weight.nested_quant_map")?.of_shape(&[256])?.floats()?;
                Absmax::Nested { codes: absmax.bytes, map, absmax: nested, size, offset }
            }
            (Stored::U8, ..) => {
                return Err(wrong("nested_blocksize", "null".to_owned(), "a number beside absmax of U8"));
            }
            _ => Absmax::Plain(absmax.floats()?),
        };
        let map = std::array::from_fn(|code| table.get(code));
        Ok(Self { codes, map, absmax, size: state.blocksize, width: shape[1] })
    }
}

impl Rows for Blocks<'_> {
    fn expand(&self, first: usize, values: &mut [f32]) {
        let start = first * self.width;
        let (mut block, mut absmax) = (usize::MAX, 0.0);
        for (index, value) in (start..).zip(values) {
            if index / self.size != block {
                block = index / self.size;
                absmax = self.absmax.get(block);
            }
            let byte = self.codes[index / 2];
            let code = if index % 2 == 0 { byte >> 4 } else { byte & 15 };
            *value = self.map[usize::from(code)] * absmax;
        }
    }

    fn scales(&self) -> Vec<Floats<'_>> {
        match &self.absmax {
            Absmax::Plain(absmax) => vec![*absmax],
            Absmax::Nested { map, absmax, .. } => vec![*map, *absmax],
        }
    }
}

/// `code · SCB[row] · (1 / 127)`, multiplied in this order.
struct Scaled<'a> {
    codes: &'a [u8],
    scales: Floats<'a>,
    width: usize,
}

impl<'a> Scaled<'a> {
    fn new(module: &Module<'a>, shape: [usize; 2]) -> Result<Self, Error> {
        let codes = module.codes.of_shape(&shape)?.bytes;
        let scales = module.need(".SCB")?.of_shape(&shape[..1])?.floats()?;
        // Other arrangements are of certain cards, and of old files.
        if let Some(form) = module.partner(".weight_format").filter(|form| form.bytes != [0]) {
            let (found, expected) = (format!("{:?}", form.bytes), "[0], by rows".to_owned());
            return Err(form.fault(TensorProblem::Setting { field: "weight_format", found, expected }));
        }
        Ok(Self { codes, scales, width: shape[1] })
    }
}

impl Rows for Scaled<'_> {
    fn expand(&self, first: usize, values: &mut [f32]) {
        let codes = &self.codes[first * self.width..];
        let rows = values.chunks_exact_mut(self.width).zip(codes.chunks_exact(self.width));
        for (row, (values, codes)) in rows.enumerate() {
            let scale = self.scales.get(first + row);
            for (value, &code) in values.iter_mut().zip(codes) {
                *value = f32::from(code as i8) * scale * (1.0 / 127.0);
            }
        }
    }

    fn scales(&self) -> Vec<Floats<'_>> {
        vec![self.scales]
    }
}
