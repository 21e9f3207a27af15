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

use judge_kernels::codes::{CodeNumbers, CodedRows, Coding};

use super::groups::groups;
use super::method::Format;
use super::module::{Module, matrix};
use super::settings::Settings;
use crate::Error;
use crate::codes::Coded;
use crate::raw::{Floats, Raw, Words};

/// The settings of `quant_method` `gptq`, see the module's layout.
pub(super) struct Gptq {
    /// Bits of a code: 4 or 8.
    bits: usize,
    /// Successive inputs of a group where no `g_idx` says more; `None`: all inputs.
    group_size: Option<usize>,
    /// Whether stored zero points are one too small.
    is_v1: bool,
}

impl Gptq {
    /// Reads the settings.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for other bits, words or versions, for settings that differ by module
    /// (`dynamic`), and for weights that were rotated, repacked for Marlin or come with adapters.
    pub(super) fn read(settings: &Settings) -> Result<Self, Error> {
        settings.warn_of_unread(&[
            "quant_method",
            "act_group_aware",
            "adapter",
            "backend",
            "batch_size",
            "bits",
            "block_name_to_quantize",
            "cache_block_outputs",
            "checkpoint_format",
            "damp_percent",
            "dataset",
            "desc_act",
            "dynamic",
            "exllama_config",
            "format",
            "group_size",
            "is_marlin_format",
            "lm_head",
            "max_input_length",
            "meta",
            "model_file_base_name",
            "model_name_or_path",
            "model_seqlen",
            "module_name_preceding_first_block",
            "modules_in_block_to_quantize",
            "pack_dtype",
            "pad_token_id",
            "rotation",
            "static_groups",
            "sym",
            "tokenizer",
            "true_sequential",
            "use_cuda_fp16",
            "use_exllama",
        ]);
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
        Ok(Self { bits, group_size: group_size(settings, "group_size")?, is_v1 })
    }
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

impl Format for Gptq {
    fn codes(&self) -> &'static [(&'static str, &'static str)] {
        &[(".qweight", ".weight")]
    }

    /// No dense weight has this name.
    fn is_codes(&self, _raw: &Raw<'_>) -> bool {
        true
    }

    fn partners(&self) -> &'static [&'static str] {
        &[".qzeros", ".scales", ".g_idx"]
    }

    fn open<'a>(&self, module: Module<'a>, shape: &[usize]) -> Result<Box<dyn Coded + 'a>, Error> {
        let [out, width] = matrix(&module.codes, shape)?;
        let size = self.group_size.unwrap_or(width).max(1);
        let count = width.div_ceil(size);
        let per_word = 32 / self.bits;
        let codes = module.codes.of_shape(&[width.div_ceil(per_word), out])?.words()?;
        let zeros = module.need(".qzeros")?.of_shape(&[count, out.div_ceil(per_word)])?.words()?;
        let scales = module.need(".scales")?;
        let scales = scales.of_shape(&[count, out])?.floats()?;
        let groups = groups(module.partner(".g_idx"), width, size, count)?;
        let coding = Coding {
            groups,
            n_groups: count,
            has_zeros: true,
            ..Coding::scaled(self.bits, CodeNumbers::Unsigned, width, size)
        };
        let one_less = match (self.is_v1, self.bits) {
            (false, _) => 0,
            (true, 4) => 0x1111_1111,
            (true, _) => 0x0101_0101,
        };
        Ok(Box::new(Columns { codes, zeros, scales, coding, one_less, out }))
    }
}

/// A matrix `[out, in]` whose words go down the inputs of one output each.
struct Columns<'a> {
    /// `qweight`.
    codes: Words<'a>,
    /// `qzeros`, as stored.
    zeros: Words<'a>,
    /// `scales`.
    scales: Floats<'a>,
    /// Codes without signs, with zeros for each group of inputs.
    coding: Coding,
    /// What is added to each word of zero points: a 1 for each of them in the first version, else
    /// 0.
    one_less: u32,
    /// Rows of the weight.
    out: usize,
}

impl Columns<'_> {
    /// The zero point of a group and an output.
    fn zero(&self, group: usize, row: usize) -> f32 {
        let bits = self.coding.bits;
        let per_word = 32 / bits;
        let word = self.zeros.get(group * self.out.div_ceil(per_word) + row / per_word).wrapping_add(self.one_less);
        (word >> (bits * (row % per_word)) & ((1 << bits) - 1)) as f32
    }
}

impl Coded for Columns<'_> {
    fn coding(&self) -> &Coding {
        &self.coding
    }

    /// Goes by words, so each is read once for all of its inputs.
    fn fill(&self, first: usize, rows: &mut CodedRows<'_>) {
        let Coding { bits, width, n_groups, .. } = self.coding;
        rows.fill_groups(n_groups, first, |row, group| {
            (self.zero(group, row), self.scales.get(group * self.out + row))
        });
        let (per_word, mask) = (32 / bits, (1 << bits) - 1);
        // Words of neighbouring outputs lie side by side.
        for column in (0..width).step_by(per_word) {
            for (row, codes) in rows.codes.chunks_exact_mut(width).enumerate() {
                let word = self.codes.get(column / per_word * self.out + first + row);
                for (place, code) in codes[column..].iter_mut().take(per_word).enumerate() {
                    *code = (word >> (bits * place) & mask) as u8;
                }
            }
        }
    }

    fn scales(&self) -> Vec<Floats<'_>> {
        vec![self.scales]
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use safetensors::Dtype as Stored;

    use super::*;
    use crate::dequantise::Dequantise;

    #[test]
    fn zero_points_of_the_first_version_borrow_from_their_neighbours() {
        // As GPTQModel writes them: 1 is taken off every code of a word at once, so that a 0 borrows.
        let zeros: [u32; 8] = [0, 5, 15, 0, 0, 7, 1, 8];
        let packed = zeros.iter().enumerate().fold(0, |word, (place, zero)| word | zero << (4 * place));
        let stored = u32::wrapping_sub(packed, 0x1111_1111).to_le_bytes();
        let raw = |dtype, shape, bytes| Raw { path: Path::new("file"), name: "tensor", dtype, shape, bytes };
        // Eight inputs whose codes are 3, eight outputs, scales of 2.
        let (codes, scales) = (0x3333_3333_u32.to_le_bytes().repeat(8), 2.0_f32.to_le_bytes().repeat(8));
        let columns = Columns {
            codes: raw(Stored::I32, &[1, 8], &codes).words().unwrap(),
            zeros: raw(Stored::I32, &[1, 1], &stored).words().unwrap(),
            scales: raw(Stored::F32, &[1, 8], &scales).floats().unwrap(),
            coding: Coding { has_zeros: true, ..Coding::scaled(4, CodeNumbers::Unsigned, 8, 8) },
            one_less: 0x1111_1111,
            out: 8,
        };
        let mut values = [0.0; 64];
        columns.dequantise(0, &mut values);
        for (row, zero) in values.chunks_exact(8).zip(zeros) {
            assert!(row.iter().all(|&value| value == 2.0 * (3.0 - zero as f32)), "{zero}: {row:?}");
        }
    }
}
