//! GPTQ: integers of 4 or 8 bits, packed along the input, with scales and zero points for each
//! group.
//!
//! ```text
//!  qweight  I32 [⌈in · bits / 32⌉, out]       a word holds 32 / bits successive inputs of one output
//!  qzeros   I32 [groups, ⌈out · bits / 32⌉]   a word holds 32 / bits successive outputs of one group
//!  scales   [groups, out]
//!  g_idx    I32 [in]                          the group of each input; absent: input / group_size
//!
//!  W[o, i] = (q[i, o] - zero[g, o]) * scale[g, o],  g = g_idx[i]
//! ```
//!
//! Low bits come first. In files of the first version (`checkpoint_format` `gptq`, the default)
//! stored zero points are one too small. The writer subtracts 1 from every zero point of a word at
//! once, as one subtraction of the whole word, so a zero point of 0 borrows from its neighbour.
//! Adding the same constant to the whole word, with wrapping, undoes it.
//!
//! `group_size` is shared with `awq.rs`.
//!
//! A word of 4-bit zero points, highest first, as GPTQModel writes it:
//!
//! ```text
//!  zero points         8  1  7  0  0  f  5  0
//!  minus 0x11111111    7  0  5  e  f  e  3  f      a 0 becomes f and takes 1 from the place above it
//!  plus 0x11111111     8  1  7  0  0  f  5  0      in wrapping arithmetic: the borrows come back
//! ```

use judge_kernels::codes::{CodeNumbers, Coding};

use super::groups::groups;
use super::method::{Method, always};
use super::module::matrix;
use super::settings::Settings;
use crate::Error;
use crate::codes::Coded;
use crate::raw::{Floats, Words};

/// `quant_method` `gptq`, see the module's layout.
///
/// # Errors
/// [`Error::Unsupported`] for other bits, words or versions, for settings that differ by module
/// (`dynamic`), and for weights that were rotated, repacked for Marlin or come with adapters.
pub(super) fn read(settings: &Settings) -> Result<Method, Error> {
    settings.warn_of_unread(
        "quant_method act_group_aware adapter backend batch_size bits block_name_to_quantize cache_block_outputs \
         checkpoint_format damp_percent dataset desc_act dynamic exllama_config format group_size is_marlin_format \
         lm_head max_input_length meta model_file_base_name model_name_or_path model_seqlen \
         module_name_preceding_first_block modules_in_block_to_quantize pack_dtype pad_token_id rotation \
         static_groups sym tokenizer true_sequential use_cuda_fp16 use_exllama",
    );
    settings.must_be_off("adapter", "weights without adapters")?;
    settings.must_be_off("dynamic", "one setting for all modules")?;
    settings.must_be_off("is_marlin_format", "false")?;
    settings.must_be_off("rotation", "weights that are not rotated")?;
    if !matches!(settings.text("pack_dtype"), "" | "int32") {
        return Err(settings.refuse("pack_dtype", "int32"));
    }
    let form = if settings.get("checkpoint_format").is_some() { "checkpoint_format" } else { "format" };
    let is_v1 = match settings.text(form) {
        "" | "gptq" => true,
        "gptq_v2" => false,
        _ => return Err(settings.refuse(form, "gptq and gptq_v2")),
    };
    let bits = match settings.number("bits", 0, "4 and 8")? {
        4 => 4,
        8 => 8,
        _ => return Err(settings.refuse("bits", "4 and 8")),
    };
    let group_size = group_size(settings, "group_size")?;
    let method = Method::new(always, &[".qzeros", ".scales", ".g_idx"], move |module, shape| {
        let [out, width] = matrix(&module.codes, shape)?;
        let size = group_size.unwrap_or(width).max(1);
        let count = width.div_ceil(size);
        let per_word = 32 / bits;
        let codes = module.codes.of_shape(&[width.div_ceil(per_word), out])?.words()?;
        let zeros = module.need(".qzeros")?.of_shape(&[count, out.div_ceil(per_word)])?.words()?;
        let scales = module.need(".scales")?;
        let scales = scales.of_shape(&[count, out])?.floats()?;
        let groups = groups(module.partner(".g_idx"), width, size, count)?;
        let coding = Coding {
            groups,
            n_groups: count,
            has_zeros: true,
            ..Coding::scaled(bits, CodeNumbers::Unsigned, width, size)
        };
        let one_less = match (is_v1, bits) {
            (false, _) => 0,
            (true, 4) => 0x1111_1111,
            (true, _) => 0x0101_0101,
        };
        Ok(columns(codes, (zeros, one_less), scales, coding, out))
    });
    Ok(Method { codes: &[(".qweight", ".weight")], ..method })
}

/// Inputs that share a scale: a number greater than 0, 128 where the field is absent, or `None` for
/// -1, which means all of them.
///
/// # Errors
/// [`Error::Unsupported`] for any other value.
pub(super) fn group_size(settings: &Settings, field: &str) -> Result<Option<usize>, Error> {
    /// The values that are read, as errors say it.
    const SUPPORTED: &str = "-1 and numbers greater than 0";
    match settings.number(field, 128, SUPPORTED)? {
        -1 => Ok(None),
        size if size > 0 => usize::try_from(size).map(Some).map_err(|_| settings.refuse(field, SUPPORTED)),
        _ => Err(settings.refuse(field, SUPPORTED)),
    }
}

/// A matrix `[out, in]` whose words go down the inputs of one output each, with zeros for each group of inputs. `one_less` is added to each
/// word of zero points: a 1 for each of them in the first version, else 0.
fn columns<'a>(
    codes: Words<'a>,
    (zeros, one_less): (Words<'a>, u32),
    scales: Floats<'a>,
    coding: Coding,
    out: usize,
) -> Coded<'a> {
    // Goes by words, so each is read once for all of its inputs.
    Coded::new(coding, vec![scales], move |&Coding { bits, width, n_groups, .. }, first, rows| {
        let (per_word, mask) = (32 / bits, (1 << bits) - 1);
        rows.fill_groups(n_groups, first, |row, group| {
            let word = zeros.get(group * out.div_ceil(per_word) + row / per_word).wrapping_add(one_less);
            ((word >> (bits * (row % per_word)) & mask) as f32, scales.get(group * out + row))
        });
        // Words of neighbouring outputs lie side by side.
        for column in (0..width).step_by(per_word) {
            for (row, codes_of_row) in rows.codes.chunks_exact_mut(width).enumerate() {
                let word = codes.get(column / per_word * out + first + row);
                for (place, code) in codes_of_row[column..].iter_mut().take(per_word).enumerate() {
                    *code = (word >> (bits * place) & mask) as u8;
                }
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use safetensors::Dtype as Stored;

    use super::*;
    use crate::raw::Raw;

    #[test]
    fn zero_points_of_the_first_version_borrow_from_their_neighbours() {
        // As GPTQModel writes them: 1 is taken off every code of a word at once, so that a 0 borrows.
        let zeros: [u32; 8] = [0, 5, 15, 0, 0, 7, 1, 8];
        let packed = zeros.iter().enumerate().fold(0, |word, (place, zero)| word | zero << (4 * place));
        let stored = u32::wrapping_sub(packed, 0x1111_1111).to_le_bytes();
        let raw = |dtype, shape, bytes| Raw { path: Path::new("file"), name: "tensor", dtype, shape, bytes };
        // Eight inputs whose codes are 3, eight outputs, scales of 2.
        let (codes, scales) = (0x3333_3333_u32.to_le_bytes().repeat(8), 2.0_f32.to_le_bytes().repeat(8));
        let codes = raw(Stored::I32, &[1, 8], &codes).words().unwrap();
        let stored = raw(Stored::I32, &[1, 1], &stored).words().unwrap();
        let scales = raw(Stored::F32, &[1, 8], &scales).floats().unwrap();
        let coding = Coding { has_zeros: true, ..Coding::scaled(4, CodeNumbers::Unsigned, 8, 8) };
        let mut values = [0.0; 64];
        columns(codes, (stored, 0x1111_1111), scales, coding, 8).dequantise(0, &mut values);
        for (row, zero) in values.chunks_exact(8).zip(zeros) {
            assert!(row.iter().all(|&value| value == 2.0 * (3.0 - zero as f32)), "{zero}: {row:?}");
        }
    }
}
