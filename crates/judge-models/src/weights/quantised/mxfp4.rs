//! MXFP4, in which gpt-oss is published: four-bit floats in blocks of 32 along a row, each block with a power of two.
//!
//! Expanded values are exact in bf16.

use safetensors::Dtype as Stored;

use super::method::Format;
use super::module::Module;
use super::settings::Settings;
use crate::Error;
use crate::weights::raw::{Raw, power};
use crate::weights::rows::Rows;

/// Elements of a block.
const BLOCK: usize = 32;

/// What each code is in E2M1: a sign, two bits of exponent, one of fraction.
const E2M1: [f32; 16] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0];

/// `quant_method` `mxfp4`: `X_blocks` `[experts, out, in / 32, 16]` and `X_scales` `[experts, out, in / 32]` are the stack of matrices `X`
/// `[experts, out, in]`. That is `out` before `in`, where a dense gpt-oss keeps `in` before `out`.
pub(super) struct Mxfp4;

impl Mxfp4 {
    pub(super) fn read(settings: &Settings) -> Self {
        settings.warn_of_unread(&["quant_method", "modules_to_not_convert", "dequantize"]);
        Self
    }
}

impl Format for Mxfp4 {
    fn codes(&self) -> &'static [(&'static str, &'static str)] {
        &[("_blocks", "")]
    }

    fn is_codes(&self, raw: &Raw<'_>) -> bool {
        raw.dtype == Stored::U8
    }

    fn partners(&self) -> &'static [&'static str] {
        &["_scales"]
    }

    fn has_stacks(&self) -> bool {
        true
    }

    fn open<'a>(&self, module: Module<'a>, shape: &[usize]) -> Result<Box<dyn Rows + 'a>, Error> {
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
        Ok(Box::new(Stack { blocks: blocks.bytes, scales: scales.of_shape(&of_blocks)?, width }))
    }
}

/// All rows of a stack of matrices.
struct Stack<'a> {
    blocks: &'a [u8],
    scales: Raw<'a>,
    width: usize,
}

impl Rows for Stack<'_> {
    fn expand(&self, first: usize, values: &mut [f32]) {
        let first = first * self.width / BLOCK;
        let (blocks, scales) = (&self.blocks[first * BLOCK / 2..], &self.scales.bytes[first..]);
        for ((values, block), &scale) in values.chunks_exact_mut(BLOCK).zip(blocks.chunks_exact(BLOCK / 2)).zip(scales)
        {
            let scale = power(scale);
            for (pair, byte) in values.chunks_exact_mut(2).zip(block) {
                pair[0] = E2M1[usize::from(byte & 15)] * scale;
                pair[1] = E2M1[usize::from(byte >> 4)] * scale;
            }
        }
    }

    fn scales(&self) -> Vec<crate::weights::raw::Floats<'_>> {
        vec![self.scales.powers()]
    }
}
