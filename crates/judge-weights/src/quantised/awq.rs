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

use judge_kernels::codes::{CodeNumbers, Coding};

use super::gptq::group_size;
use super::method::{Method, always};
use super::module::matrix;
use super::settings::Settings;
use crate::Error;
use crate::codes::Coded;
use crate::raw::Words;

/// Outputs in a word.
const PER_WORD: usize = 8;

/// Which four bits of a word, counted from the lowest, are those of its first output, second, and
/// so on: the inverse of the order in the module's layout.
const PLACES: [usize; PER_WORD] = [0, 4, 1, 5, 2, 6, 3, 7];

/// `quant_method` `awq`, see the module's layout. The names of fields are those of transformers, or else those of the
/// first AWQ (`w_bit`, `q_group_size`).
///
/// # Errors
/// [`Error::Unsupported`] for another version, other bits, or codes without zero points.
pub(super) fn read(settings: &Settings) -> Result<Method, Error> {
    settings.warn_of_unread(
        "quant_method backend bits do_fuse exllama_config format fuse_max_seq_len group_size modules_to_fuse \
         modules_to_not_convert q_group_size version w_bit zero_point",
    );
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
    let group_size = group_size(settings, size)?;
    let method = Method::new(always, &[".qzeros", ".scales"], move |module, shape| {
        let [out, width] = matrix(&module.codes, shape)?;
        let size = group_size.unwrap_or(width).max(1);
        let (count, across) = (width.div_ceil(size), out.div_ceil(PER_WORD));
        let codes = module.codes.of_shape(&[width, across])?.words()?;
        let zeros = module.need(".qzeros")?.of_shape(&[count, across])?.words()?;
        let scales = module.need(".scales")?.of_shape(&[count, out])?.floats()?;
        let coding = Coding { has_zeros: true, ..Coding::scaled(4, CodeNumbers::Unsigned, width, size) };
        // Words go along the outputs of one input each.
        let code = move |words: Words<'_>, line: usize, row: usize| {
            (words.get(line * across + row / PER_WORD) >> (4 * PLACES[row % PER_WORD]) & 15) as u8
        };
        Ok(Coded::new(coding, vec![scales], move |&Coding { width, n_groups, .. }, first, rows| {
            rows.fill_groups(n_groups, first, |row, group| {
                (f32::from(code(zeros, group, row)), scales.get(group * out + row))
            });
            // Words of neighbouring inputs lie far apart, so all rows of a word are taken together.
            for column in 0..width {
                for (row, codes_of_row) in rows.codes.chunks_exact_mut(width).enumerate() {
                    codes_of_row[column] = code(codes, column, first + row);
                }
            }
        }))
    });
    Ok(Method { codes: &[(".qweight", ".weight")], ..method })
}
