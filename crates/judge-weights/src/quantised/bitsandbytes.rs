//! bitsandbytes: 4-bit codes of a table in blocks, and 8-bit integers with a scale for each row.
//!
//! ```text
//!  4 bits  weight                U8 [⌈out · in / 2⌉, 1]  two codes a byte, the high one first, over the
//!                                                        flattened matrix, row-major
//!          weight.quant_map      [16]                    what each code stands for
//!          weight.absmax         [blocks]                scale of each block, or codes U8 of scales
//!          weight.quant_state.bitsandbytes__nf4 or __fp4   JSON as U8: size of blocks, shape
//!          weight.nested_absmax, weight.nested_quant_map   dequantise scales that are codes
//!
//!          W = quant_map[code] * absmax[index / blocksize]
//!          absmax[b] = nested_quant_map[code[b]] * nested_absmax[b / nested_blocksize] + nested_offset
//!
//!  8 bits  weight  I8 [out, in]
//!          SCB     [out]                                 largest magnitude of each row
//!
//!          W = code * SCB[row] * (1 / 127)
//! ```
//!
//! Blocks do not end with rows, as they are of the flattened matrix. Tables are read from the file,
//! so nf4 and fp4 need no code of their own.

use judge_kernels::codes::{CodeNumbers, Coding};
use safetensors::Dtype as Stored;
use serde::Deserialize;

use super::method::Method;
use super::module::{Module, matrix};
use super::settings::Settings;
use crate::Error;
use crate::codes::Coded;
use crate::error::TensorProblem;
use crate::raw::Floats;

/// Ends of the name of the tensor that says how a module of 4 bits is stored.
const STATES: [&str; 2] = [".weight.quant_state.bitsandbytes__nf4", ".weight.quant_state.bitsandbytes__fp4"];

/// `quant_method` `bitsandbytes`. Whether a module is of 4 or 8 bits follows from the dtype of its
/// codes, U8 or I8, so there are no settings. Unknown fields are warned of.
///
/// # Errors
/// [`Error::Unsupported`] for codes of 4 bits that are stored as other numbers than bytes.
pub(super) fn read(settings: &Settings) -> Result<Method, Error> {
    settings.warn_of_unread(
        "quant_method _load_in_4bit _load_in_8bit bnb_4bit_compute_dtype bnb_4bit_quant_storage bnb_4bit_quant_type \
         bnb_4bit_use_double_quant llm_int8_enable_fp32_cpu_offload llm_int8_has_fp16_weight llm_int8_skip_modules \
         llm_int8_threshold load_in_4bit load_in_8bit",
    );
    if !matches!(settings.text("bnb_4bit_quant_storage"), "" | "uint8") {
        return Err(settings.refuse("bnb_4bit_quant_storage", "uint8"));
    }
    let partners = &[
        ".weight.absmax",
        ".weight.quant_map",
        ".weight.nested_absmax",
        ".weight.nested_quant_map",
        STATES[0],
        STATES[1],
        ".SCB",
        ".weight_format",
    ];
    // Dense weights have the same name, but are floats.
    Ok(Method::new(
        |raw| matches!(raw.dtype, Stored::U8 | Stored::I8),
        partners,
        |module, shape| {
            let shape = matrix(&module.codes, shape)?;
            match module.codes.dtype {
                Stored::U8 => blocks(&module, shape),
                _ => scaled(&module, shape),
            }
        },
    ))
}

/// What a `quant_state` says, in JSON; other fields are not read.
#[derive(Deserialize)]
struct State {
    /// `nf4` or `fp4`, which the tensor's name says too.
    quant_type: String,
    /// Elements of a block, greater than 0.
    blocksize: usize,
    /// The weight's shape, which the shape of the codes does not tell.
    shape: Vec<usize>,
    /// Blocks that share a scale of scales; absent where scales are plain.
    nested_blocksize: Option<usize>,
    /// What is added to dequantised scales; absent where scales are plain.
    nested_offset: Option<f32>,
}

/// The largest magnitude in each block, which is its scale.
enum Absmax<'a> {
    /// One number for each block.
    Plain(Floats<'a>),
    /// Scales that are quantised themselves (double quantisation): `map[code] * absmax[block of
    /// blocks] + offset`.
    Nested {
        /// One byte for each block.
        codes: &'a [u8],
        /// What each byte stands for, 256 numbers.
        map: Floats<'a>,
        /// The scale of each block of blocks.
        absmax: Floats<'a>,
        /// Blocks in a block of blocks.
        size: usize,
        /// What is added; finite.
        offset: f32,
    },
}

impl Absmax<'_> {
    /// The scale of a block. Product and sum are rounded to f32 one after another, as bitsandbytes
    /// does.
    fn get(&self, block: usize) -> f32 {
        match self {
            Self::Plain(absmax) => absmax.get(block),
            Self::Nested { codes, map, absmax, size, offset } => {
                map.get(codes[block].into()) * absmax.get(block / size) + offset
            }
        }
    }
}

/// A matrix of `map[code] * absmax[block]`: two codes a byte, the high one first, over the flattened matrix. The tensors of a module of this
/// shape are read and checked.
///
/// # Errors
/// [`Error::Tensor`] for what is missing, does not fit the shape, or is no state of these
/// kinds.
fn blocks<'a>(module: &Module<'a>, shape: [usize; 2]) -> Result<Coded<'a>, Error> {
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
    // The table of nested scales is among the scales: it may hold a value that is not finite too.
    let (absmax, scales) = match (absmax.dtype, state.nested_blocksize, state.nested_offset) {
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
            (Absmax::Nested { codes: absmax.bytes, map, absmax: nested, size, offset }, vec![map, nested])
        }
        (Stored::U8, ..) => {
            return Err(wrong("nested_blocksize", "null".to_owned(), "a number beside absmax of U8"));
        }
        _ => {
            let absmax = absmax.floats()?;
            (Absmax::Plain(absmax), vec![absmax])
        }
    };
    let map = std::array::from_fn(|code| table.get(code));
    let size = state.blocksize;
    // Groups are the widest that end wherever rows and blocks do.
    let coding = Coding::scaled(4, CodeNumbers::Table(map), shape[1], common(size, shape[1]));
    Ok(Coded::new(coding, scales, move |coding, first, rows| {
        let start = first * coding.width;
        let group = coding.width / coding.n_groups.max(1);
        for (index, scale) in rows.scales.iter_mut().enumerate() {
            *scale = absmax.get((start + index * group) / size);
        }
        for (index, code) in (start..).zip(&mut *rows.codes) {
            let byte = codes[index / 2];
            *code = if index % 2 == 0 { byte >> 4 } else { byte & 15 };
        }
    }))
}

/// The greatest divisor of two numbers; the other one where one is 0.
fn common(a: usize, b: usize) -> usize {
    if b == 0 { a } else { common(b, a % b) }
}

/// A matrix of `code * SCB[row] * (1 / 127)`, multiplied in this order. The tensors of a module of this shape are read and checked.
///
/// # Errors
/// [`Error::Tensor`] for what is missing or does not fit, and for codes that are not stored by
/// rows.
fn scaled<'a>(module: &Module<'a>, shape: [usize; 2]) -> Result<Coded<'a>, Error> {
    let codes = module.codes.of_shape(&shape)?.bytes;
    let scales = module.need(".SCB")?.of_shape(&shape[..1])?.floats()?;
    // Old files may hold codes in the layouts of certain GPUs (col32, col_turing, col_ampere).
    if let Some(form) = module.partner(".weight_format").filter(|form| form.bytes != [0]) {
        let (found, expected) = (format!("{:?}", form.bytes), "[0], by rows".to_owned());
        return Err(form.fault(TensorProblem::Setting { field: "weight_format", found, expected }));
    }
    let coding = Coding { factor: 1.0 / 127.0, ..Coding::scaled(8, CodeNumbers::Signed, shape[1], shape[1]) };
    Ok(Coded::new(coding, vec![scales], move |coding, first, rows| {
        rows.codes.copy_from_slice(&codes[first * coding.width..][..rows.codes.len()]);
        rows.scales.iter_mut().enumerate().for_each(|(row, scale)| *scale = scales.get(first + row));
    }))
}
