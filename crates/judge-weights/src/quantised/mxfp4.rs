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

use judge_kernels::codes::{CodeNumbers, Coding};
use safetensors::Dtype as Stored;

use super::method::Method;
use super::settings::Settings;
use crate::Error;
use crate::codes::Coded;
use crate::raw::power;

/// Elements of a block.
const BLOCK: usize = 32;

/// What each code is in E2M1: a sign, two bits of exponent, one of fraction.
const E2M1: [f32; 16] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0];

/// `quant_method` `mxfp4`, which has no settings that change numbers; unknown fields are warned of. Codes have `out` before `in`,
/// where a dense gpt-oss keeps `in` before `out`. The weight's name is the module's path alone: experts are parameters, not modules.
/// All codes, bytes of two codes each, are stacks: the rows of a tensor `[..., in]`, usually `[experts, out, in]`, as
/// [`Part`](super::part::Part) says.
pub(super) fn read(settings: &Settings) -> Result<Method, Error> {
    settings.warn_of_unread("quant_method modules_to_not_convert dequantize");
    let method = Method::new(
        |raw| raw.dtype == Stored::U8,
        &["_scales"],
        |module, shape| {
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
            let (blocks, scales) = (blocks.bytes, scales.of_shape(&of_blocks)?);
            // Rows are counted through all matrices of the stack.
            Ok(Coded::new(coding, vec![scales.powers()], move |coding, first, rows| {
                let first = first * coding.n_groups;
                let pairs = rows.codes.as_chunks_mut::<2>().0.iter_mut().zip(&blocks[first * BLOCK / 2..]);
                pairs.for_each(|(pair, byte)| *pair = [byte & 15, byte >> 4]);
                rows.scales.iter_mut().zip(&scales.bytes[first..]).for_each(|(scale, &byte)| *scale = power(byte));
            }))
        },
    );
    Ok(Method { codes: &[("_blocks", "")], has_stacks: true, ..method })
}
