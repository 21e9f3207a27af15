//! AWQ (`version` `gemm`): 4-bit integers, packed along the output, with scales for each group of
//! inputs.
//!
//! ```text
//!  qweight  I32 [in, ⌈out / 8⌉]        a word holds 8 outputs of one input
//!  qzeros   I32 [groups, ⌈out / 8⌉]    a word holds 8 outputs of one group
//!  scales   [groups, out]
//!
//!  four bits of a word, lowest first    0  1  2  3  4  5  6  7
//!  output that they belong to           0  2  4  6  1  3  5  7
//!
//!  W[o, i] = (q[i, o] - zero[g, o]) * scale[g, o],  g = i / group_size
//! ```
//!
//! Other versions (`gemv`, `exllama`) are stored otherwise and are refused, and so are codes
//! without zero points.

use judge_kernels::codes::{CodeNumbers, CodedRows, Coding};

use super::gptq::group_size;
use super::method::Format;
use super::module::{Module, matrix};
use super::settings::Settings;
use crate::Error;
use crate::codes::Coded;
use crate::raw::{Floats, Raw, Words};

/// Outputs in a word.
const PER_WORD: usize = 8;

/// Which four bits of a word, counted from the lowest, are those of its first output, second, and
/// so on: the inverse of the order in the module's layout.
const PLACES: [usize; PER_WORD] = [0, 4, 1, 5, 2, 6, 3, 7];

/// The settings of `quant_method` `awq`, see the module's layout.
pub(super) struct Awq {
    /// Successive inputs of a group; `None`: all inputs.
    group_size: Option<usize>,
}

impl Awq {
    /// Reads the settings. The names of fields are those of transformers, or else those of the
    /// first AWQ (`w_bit`, `q_group_size`).
    ///
    /// # Errors
    /// [`Error::Unsupported`] for another version, other bits, or codes without zero points.
    pub(super) fn read(settings: &Settings) -> Result<Self, Error> {
        settings.warn_of_unread(&[
            "quant_method",
            "backend",
            "bits",
            "do_fuse",
            "exllama_config",
            "format",
            "fuse_max_seq_len",
            "group_size",
            "modules_to_fuse",
            "modules_to_not_convert",
            "q_group_size",
            "version",
            "w_bit",
            "zero_point",
        ]);
        let form = if settings.get("version").is_some() { "version" } else { "format" };
        if !["", "gemm"].iter().any(|known| settings.text(form).eq_ignore_ascii_case(known)) {
            return Err(settings.refuse(form, "gemm"));
        }
        let bits = if settings.get("bits").is_some() { "bits" } else { "w_bit" };
        if settings.number(bits, 4, "4")? != 4 {
            return Err(settings.refuse(bits, "4"));
        }
        if settings.get("zero_point").is_some_and(|value| value.as_bool() != Some(true)) {
            return Err(settings.refuse("zero_point", "true"));
        }
        let size = if settings.get("group_size").is_some() { "group_size" } else { "q_group_size" };
        Ok(Self { group_size: group_size(settings, size)? })
    }
}

impl Format for Awq {
    fn codes(&self) -> &'static [(&'static str, &'static str)] {
        &[(".qweight", ".weight")]
    }

    /// No dense weight has this name.
    fn is_codes(&self, _raw: &Raw<'_>) -> bool {
        true
    }

    fn partners(&self) -> &'static [&'static str] {
        &[".qzeros", ".scales"]
    }

    fn open<'a>(&self, module: Module<'a>, shape: &[usize]) -> Result<Box<dyn Coded + 'a>, Error> {
        let [out, width] = matrix(&module.codes, shape)?;
        let size = self.group_size.unwrap_or(width).max(1);
        let (count, across) = (width.div_ceil(size), out.div_ceil(PER_WORD));
        let codes = module.codes.of_shape(&[width, across])?.words()?;
        let zeros = module.need(".qzeros")?.of_shape(&[count, across])?.words()?;
        let scales = module.need(".scales")?.of_shape(&[count, out])?.floats()?;
        let coding = Coding { has_zeros: true, ..Coding::scaled(4, CodeNumbers::Unsigned, width, size) };
        Ok(Box::new(Interleaved { codes, zeros, scales, coding, out }))
    }
}

/// A matrix `[out, in]` whose words go along the outputs of one input each.
struct Interleaved<'a> {
    /// `qweight`.
    codes: Words<'a>,
    /// `qzeros`.
    zeros: Words<'a>,
    /// `scales`.
    scales: Floats<'a>,
    /// Codes without signs, with zeros for each group of inputs.
    coding: Coding,
    /// Rows of the weight.
    out: usize,
}

impl Coded for Interleaved<'_> {
    fn coding(&self) -> &Coding {
        &self.coding
    }

    fn fill(&self, first: usize, rows: &mut CodedRows<'_>) {
        let Coding { width, n_groups, .. } = self.coding;
        let across = self.out.div_ceil(PER_WORD);
        let code = |words: Words<'_>, line: usize, row: usize| {
            (words.get(line * across + row / PER_WORD) >> (4 * PLACES[row % PER_WORD]) & 15) as u8
        };
        rows.fill_groups(n_groups, first, |row, group| {
            (f32::from(code(self.zeros, group, row)), self.scales.get(group * self.out + row))
        });
        // Words of neighbouring inputs lie far apart, so all rows of a word are taken together.
        for column in 0..width {
            for (row, codes) in rows.codes.chunks_exact_mut(width).enumerate() {
                codes[column] = code(self.codes, column, first + row);
            }
        }
    }

    fn scales(&self) -> Vec<Floats<'_>> {
        vec![self.scales]
    }
}
