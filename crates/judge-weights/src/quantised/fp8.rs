//! FP8 (E4M3) with scales: `fp8` of DeepSeek, Qwen and Mistral, and `fbgemm_fp8`.
//!
//! This file reads the settings of both methods and finds the size of blocks; the matrix itself is
//! made by [`grid`]. The weight is `code * scale`: the stored scale multiplies, though one of its names
//! says `inv`. What both methods make of activations is left out, so scales of activations are not
//! read.
//!
//! ```text
//!  fp8         weight            F8_E4M3 [out, in]
//!              weight_scale_inv  (weight_scale, as AutoFP8 writes it) F32, F16, BF16, F8_E8M0, or U8 with scale_fmt ue8m0:
//!                                [⌈out / b0⌉, ⌈in / b1⌉] with weight_block_size [b0, b1], else one
//!                                number, [out] or [out, 1]
//!  fbgemm_fp8  weight            F8_E4M3 [out, in]
//!              weight_scale      F32, F16 or BF16 [out, 1] or [out]
//! ```
//!
//! Blocks are those of the settings even where the grid of scales would divide the matrix
//! otherwise: 264 rows in blocks of 128 have 3 rows of scales, the last for 8 rows of the matrix.

use safetensors::Dtype as Stored;
use serde_json::Value;

use super::grid::grid;
use super::method::Method;
use super::module::matrix;
use super::settings::Settings;
use crate::Error;
use crate::raw::Raw;

/// `quant_method` `fp8` or `fbgemm_fp8`: codes `weight` `[out, in]` and their scales. `fp8` has one for each
/// block of `weight_block_size`, cut at the edges; without such a size there is one for all or one for each row. `fbgemm_fp8` has
/// one for each row. Scales and bounds of activations are known, so that they are not reported as unused, but not read.
///
/// # Errors
/// [`Error::Unsupported`] for another format of codes, experts or scales than those above, and
/// for a size of blocks that is not two numbers.
pub(super) fn read(settings: &Settings) -> Result<Method, Error> {
    if settings.text("quant_method") == "fbgemm_fp8" {
        settings.warn_of_unread("quant_method activation_scale_ub modules_to_not_convert");
        return Ok(Method::new(is_codes, &[".weight_scale", ".input_scale_ub"], |module, shape| {
            let shape = matrix(&module.codes, shape)?;
            let scales = module.need(".weight_scale")?.floats()?;
            grid(module.codes, shape, scales, None, [1, shape[1]])
        }));
    }
    settings.warn_of_unread(
        "quant_method activation_scheme dequantize expert_dtype fmt ignored_layers modules_to_convert \
         modules_to_not_convert scale_fmt weight_block_size",
    );
    if !matches!(settings.text("fmt"), "" | "e4m3") {
        return Err(settings.refuse("fmt", "e4m3"));
    }
    if !matches!(settings.text("expert_dtype"), "" | "fp8") {
        return Err(settings.refuse("expert_dtype", "fp8"));
    }
    if !matches!(settings.text("scale_fmt"), "" | "float" | "ue8m0") {
        return Err(settings.refuse("scale_fmt", "float and ue8m0"));
    }
    let size = |value: &Value| value.as_u64().and_then(|size| usize::try_from(size).ok()).filter(|&size| size > 0);
    let block = match settings.get("weight_block_size") {
        None => None,
        Some(value) => match value.as_array().map(|sizes| sizes.iter().map(size).collect::<Vec<_>>()).as_deref() {
            Some(&[Some(rows), Some(columns)]) => Some([rows, columns]),
            _ => return Err(settings.refuse("weight_block_size", "null, or two numbers greater than 0")),
        },
    };
    let is_ue8m0 = settings.text("scale_fmt") == "ue8m0";
    let partners = &[".weight_scale_inv", ".weight_scale", ".activation_scale", ".input_scale"];
    Ok(Method::new(is_codes, partners, move |module, shape| {
        let shape = matrix(&module.codes, shape)?;
        let scales = match module.partner(".weight_scale") {
            Some(scales) => scales,
            None => module.need(".weight_scale_inv")?,
        };
        let block = block.unwrap_or_else(|| whole_or_rows(&scales, shape));
        // Scales of F8_E8M0 are exponents of two always, those of U8 where the settings say so.
        let scales = match scales.dtype {
            Stored::F8_E8M0 => scales.powers(),
            Stored::U8 if is_ue8m0 => scales.powers(),
            _ => scales.floats()?,
        };
        grid(module.codes, shape, scales, None, block)
    }))
}

/// Dense weights are wider.
fn is_codes(raw: &Raw<'_>) -> bool {
    raw.dtype == Stored::F8_E4M3
}

/// The block of scales that are not in a grid: the whole matrix if there is one scale, in any
/// number of dimensions, else a row.
fn whole_or_rows(scales: &Raw<'_>, shape: [usize; 2]) -> [usize; 2] {
    if scales.shape.iter().all(|&size| size == 1) { shape } else { [1, shape[1]] }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn scales_without_a_block_are_of_the_whole_or_of_rows() {
        fn raw<'a>(dtype: Stored, shape: &'a [usize], bytes: &'a [u8]) -> Raw<'a> {
            Raw { path: Path::new("file"), name: "tensor", dtype, shape, bytes }
        }
        // 1 in every place.
        let codes = raw(Stored::F8_E4M3, &[3, 2], &[0x38; 6]);
        let numbers: Vec<u8> = [2.0_f32, 3.0, 5.0].iter().flat_map(|x| x.to_le_bytes()).collect();
        let dequantised = |shape: &[usize]| {
            let scales = raw(Stored::F32, shape, &numbers[..4 * shape.iter().product::<usize>()]);
            let grid = grid(codes, [3, 2], scales.floats()?, None, whole_or_rows(&scales, [3, 2]))?;
            let mut values = [0.0; 4];
            grid.dequantise(1, &mut values);
            Ok::<_, Error>(values)
        };
        for shape in [&[][..], &[1], &[1, 1]] {
            assert_eq!(dequantised(shape).unwrap(), [2.0; 4], "{shape:?}");
        }
        for shape in [&[3][..], &[3, 1]] {
            assert_eq!(dequantised(shape).unwrap(), [3.0, 3.0, 5.0, 5.0], "{shape:?}");
        }
        for shape in [&[2][..], &[1, 3], &[1, 1, 3]] {
            assert!(dequantised(shape).is_err(), "{shape:?}");
        }
    }
}
