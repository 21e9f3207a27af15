//! MXFP4, in which gpt-oss is published: four-bit floats in blocks of 32 along a row, each with a
//! power of two.
//!
//! ```text
//!  X_blocks  U8 [experts, out, in / 32, 16]        byte k: element 2k in the low half, 2k + 1 in the high
//!  X_scales  U8 or F8_E8M0 [experts, out, in / 32]
//!
//!  X[e, o, i] = e2m1(code) * 2^(scale - 127)
//! ```
//!
//! The tensor `X`, such as `mlp.experts.gate_up_proj`, is a stack of all experts of a block.
//! `part.rs` finds an expert's rows in it. Expanded values are exact in bf16: they have at most two
//! significant bits.

use judge_kernels::codes::{CodeNumbers, CodedRows, Coding};
use safetensors::Dtype as Stored;

use super::method::Format;
use super::module::Module;
use super::settings::Settings;
use crate::Error;
use crate::codes::Coded;
use crate::raw::{Floats, Raw, power};

/// Elements of a block.
const BLOCK: usize = 32;

/// What each code is in E2M1: a sign, two bits of exponent, one of fraction.
const E2M1: [f32; 16] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0];

/// `quant_method` `mxfp4`, which has no settings that change numbers. Codes have `out` before `in`,
/// where a dense gpt-oss keeps `in` before `out`.
pub(super) struct Mxfp4;

impl Mxfp4 {
    /// Reads nothing. Unknown fields are warned of.
    pub(super) fn read(settings: &Settings) -> Self {
        settings.warn_of_unread(&["quant_method", "modules_to_not_convert", "dequantize"]);
        Self
    }
}

impl Format for Mxfp4 {
    /// The weight's name is the module's path alone: experts are parameters, not modules.
    fn codes(&self) -> &'static [(&'static str, &'static str)] {
        &[("_blocks", "")]
    }

    /// Bytes of two codes each.
    fn is_codes(&self, raw: &Raw<'_>) -> bool {
        raw.dtype == Stored::U8
    }

    fn partners(&self) -> &'static [&'static str] {
        &["_scales"]
    }

    /// All codes are stacks.
    fn has_stacks(&self) -> bool {
        true
    }

    /// The rows of a tensor `[..., in]`: usually `[experts, out, in]`, as
    /// [`Part`](super::part::Part) says.
    fn open<'a>(&self, module: Module<'a>, shape: &[usize]) -> Result<Box<dyn Coded + 'a>, Error> {
        let codes = module.codes;
        let Some((&width, outer)) = shape.split_last().filter(|(width, _)| width.is_multiple_of(BLOCK)) else {
            return Err(codes.other_shape(shape));
        };
        let of_blocks: Vec<usize> = outer.iter().copied().chain([width / BLOCK]).collect();
        let of_bytes: Vec<usize> = of_blocks.iter().copied().chain([BLOCK / 2]).collect();
        let blocks = codes.of_shape(&of_bytes)?;
        let scales = module.need("_scales")?;
        if !matches!(scales.dtype, Stored::U8 | Stored::F8_E8M0) {
            return Err(scales.other_dtype("U8 or F8_E8M0"));
        }
        let coding = Coding::scaled(4, CodeNumbers::Table(E2M1), width, BLOCK);
        Ok(Box::new(Stack { blocks: blocks.bytes, scales: scales.of_shape(&of_blocks)?, coding }))
    }
}

/// All rows of a stack of matrices, counted through all of them.
struct Stack<'a> {
    /// 16 bytes for each block, row-major.
    blocks: &'a [u8],
    /// One byte for each block, row-major.
    scales: Raw<'a>,
    /// Codes of E2M1; the width is a multiple of [`BLOCK`].
    coding: Coding,
}

impl Coded for Stack<'_> {
    fn coding(&self) -> &Coding {
        &self.coding
    }

    fn fill(&self, first: usize, rows: &mut CodedRows<'_>) {
        let first = first * self.coding.n_groups;
        let pairs = rows.codes.as_chunks_mut::<2>().0.iter_mut().zip(&self.blocks[first * BLOCK / 2..]);
        pairs.for_each(|(pair, byte)| *pair = [byte & 15, byte >> 4]);
        rows.scales.iter_mut().zip(&self.scales.bytes[first..]).for_each(|(scale, &byte)| *scale = power(byte));
    }

    fn scales(&self) -> Vec<Floats<'_>> {
        vec![self.scales.powers()]
    }
}
