//! GPTQ: integers of 4 or 8 bits, packed along the input, with scales and zero points for each group of inputs.

use super::groups::Groups;
use super::method::Format;
use super::module::{Module, matrix};
use super::settings::Settings;
use crate::Error;
use crate::weights::raw::{Floats, Raw, Words};
use crate::weights::rows::Rows;

/// `qweight` I32 `[in · bits / 32, out]`, `qzeros` I32 `[groups, out · bits / 32]`, `scales` `[groups, out]`, `g_idx` I32 `[in]`: the weight of input `i`
/// and output `o` is `(q - zero) · scale` of the group of `i`.
///
/// In files of the first version (`checkpoint_format` `gptq`) the zero points are one too small. What was taken off was taken off whole words, so it is
/// added to whole words: a zero point of 0 borrowed from its neighbour.
pub(super) struct Gptq {
    bits: usize,
    /// Successive inputs of a group where no `g_idx` says more; `None`: all.
    group_size: Option<usize>,
    is_v1: bool,
}

impl Gptq {
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

/// Inputs that share a scale, from a field whose -1 means all of them.
pub(super) fn group_size(settings: &Settings, field: &str) -> Result<Option<usize>, Error> {
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

    fn is_codes(&self, _raw: &Raw<'_>) -> bool {
        true
    }

    fn partners(&self) -> &'static [&'static str] {
        &[".qzeros", ".scales", ".g_idx"]
    }

    fn open<'a>(&self, module: Module<'a>, shape: &[usize]) -> Result<Box<dyn Rows + 'a>, Error> {
        let [out, width] = matrix(&module.codes, shape)?;
        let size = self.group_size.unwrap_or(width).max(1);
        let count = width.div_ceil(size);
        let per_word = 32 / self.bits;
        let codes = module.codes.of_shape(&[width.div_ceil(per_word), out])?.words()?;
        let zeros = module.need(".qzeros")?.of_shape(&[count, out.div_ceil(per_word)])?.words()?;
        let scales = module.need(".scales")?;
        let scales = scales.of_shape(&[count, out])?.floats()?;
        let groups = Groups::new(module.partner(".g_idx"), width, size, count)?;
        let one_less = if !self.is_v1 {
            0
        } else if self.bits == 4 {
            0x1111_1111
        } else {
            0x0101_0101
        };
        Ok(Box::new(Columns { codes, zeros, scales, groups, bits: self.bits, one_less, shape: [out, width], count }))
    }
}

/// Words that go down the inputs of one output each.
struct Columns<'a> {
    codes: Words<'a>,
    zeros: Words<'a>,
    scales: Floats<'a>,
    groups: Groups,
    bits: usize,
    /// What is added to each word of zero points.
    one_less: u32,
    shape: [usize; 2],
    /// Groups.
    count: usize,
}

impl Columns<'_> {
    fn zero(&self, group: usize, row: usize) -> f32 {
        let [out, _] = self.shape;
        let per_word = 32 / self.bits;
        let word = self.zeros.get(group * out.div_ceil(per_word) + row / per_word).wrapping_add(self.one_less);
        (word >> (self.bits * (row % per_word)) & ((1 << self.bits) - 1)) as f32
    }
}

impl Rows for Columns<'_> {
    fn expand(&self, first: usize, values: &mut [f32]) {
        let [out, width] = self.shape;
        let rows = values.len() / width;
        let factors: Vec<(f32, f32)> = (first..first + rows)
            .flat_map(|row| (0..self.count).map(move |group| (row, group)))
            .map(|(row, group)| (self.zero(group, row), self.scales.get(group * out + row)))
            .collect();
        let (per_word, mask) = (32 / self.bits, (1 << self.bits) - 1);
        // Words of neighbouring outputs lie side by side.
        for column in (0..width).step_by(per_word) {
            for row in 0..rows {
                let word = self.codes.get(column / per_word * out + first + row);
                let values = &mut values[row * width + column..(row + 1) * width];
                for (place, value) in values.iter_mut().take(per_word).enumerate() {
                    let (zero, scale) = factors[row * self.count + self.groups.of(column + place)];
                    *value = ((word >> (self.bits * place) & mask) as f32 - zero) * scale;
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
            groups: Groups::Even(8),
            bits: 4,
            one_less: 0x1111_1111,
            shape: [8, 8],
            count: 1,
        };
        let mut values = [0.0; 64];
        columns.expand(0, &mut values);
        for (row, zero) in values.chunks_exact(8).zip(zeros) {
            assert!(row.iter().all(|&value| value == 2.0 * (3.0 - zero as f32)), "{zero}: {row:?}");
        }
    }
}
