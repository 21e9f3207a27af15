//! `CodedPanels`: weights of 8 or 4 bits that stay so in memory, and the words that they stand
//! for, made anew whenever a product wants them.
//!
//! # Layout
//!
//! As in a plain matrix, 32 rows make a panel and lie side by side. A word of codes holds 4 or 8
//! successive columns of a row, the first in the lowest bits:
//!
//! ```text
//! panel p       lane 0                lane 1                …   lane 31
//! code word 0   W[32p][0..4 or 8]     W[32p + 1][0..4 or 8]
//! code word 1   W[32p][4..8 or 16]    …
//!
//! group g       scale of row 32p      scale of row 32p + 1  …   and zeros and minima, if there are any
//! ```
//!
//! # Expanding
//!
//! `dequantise` applies the formula of `codes.rs` to a piece of a panel,
//! all 32 lanes at a time, and rounds to bf16 where products are in it. The words are those of
//! the matrix dequantised at load, to the bit, or the same numbers in f32 for kernels that widen, so a
//! product of codes is the product of that matrix. A piece is dequantised once for all rows of a task;
//! it stays in the core's cache, and memory gives the codes alone.

#[cfg(target_arch = "aarch64")]
mod arm;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod body;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod moderate;
#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(target_arch = "aarch64")]
use arm::HasThem;
#[cfg(target_arch = "x86_64")]
use x86::HasThem;
#[cfg(target_arch = "x86_64")]
pub(crate) use x86::{MOST_IN_ORDER, are_large};

use std::ops::Range;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use std::sync::OnceLock;

use rayon::prelude::*;

use super::kernel::IntegerCodes;
use super::piece::{CodesOfPanel, Lanes, Piece, Sums, Written, pair, per_word};
use super::stored::Stored;
use super::supported::Supported;
use super::tile::{LANES, Word, Words};
use crate::codes::{CodeNumbers, CodedRows, Coding, Groups, e4m3, value};

/// Some panels of a matrix as codes.
pub(crate) struct CodedPanels {
    /// The kernel whose products the words are for.
    #[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), allow(dead_code))]
    kernel: Supported,
    /// How values follow from codes.
    coding: Coding,
    /// What the words of products hold.
    word: Word,
    /// `[panels][words of codes][LANES]`.
    codes: Stored,
    /// Scales, as bits of f32, `[panels][groups][LANES]`.
    scales: Stored,
    /// Likewise, if there are zeros other than 0.
    zeros: Option<Stored>,
    /// Likewise, if there are minima other than 0.
    minima: Option<Stored>,
    /// Whether what groups and tables have is [moderate], once that was asked.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    is_moderate: OnceLock<bool>,
}

impl CodedPanels {
    /// Words of the arrays of so many panels: codes, scales, then zeros and minima if the coding has
    /// them.
    pub(crate) fn lengths(coding: &Coding, panels: usize) -> Vec<usize> {
        let codes = panels * coding.width.div_ceil(per_word(coding)) * LANES;
        let groups = panels * coding.n_groups * LANES;
        let of_groups = 1 + usize::from(coding.has_zeros) + usize::from(coding.has_minima);
        [codes].into_iter().chain([groups].repeat(of_groups)).collect()
    }

    /// Panels of these arrays, which are those that [`lengths`](Self::lengths) says.
    pub(crate) fn new(kernel: Supported, coding: Coding, word: Word, arrays: Vec<Stored>) -> Self {
        let mut arrays = arrays.into_iter();
        let mut next = || arrays.next().unwrap_or_else(|| Stored::Own(super::lines::Lines::default()));
        let (codes, scales) = (next(), next());
        let zeros = coding.has_zeros.then(&mut next);
        let minima = coding.has_minima.then(&mut next);
        Self {
            kernel,
            coding,
            word,
            codes,
            scales,
            zeros,
            minima,
            #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
            is_moderate: OnceLock::new(),
        }
    }

    /// The arrays.
    pub(crate) fn arrays(&self) -> Vec<&[u32]> {
        let of_groups = [Some(&self.scales), self.zeros.as_ref(), self.minima.as_ref()];
        [Some(&self.codes)].into_iter().chain(of_groups).flatten().map(|array| &**array).collect()
    }

    /// What codes are dequantised to for the words of products.
    pub(crate) fn written(&self) -> Written {
        Written::of(self.word)
    }

    /// Words of a row's codes.
    fn width(&self) -> usize {
        self.coding.width.div_ceil(per_word(&self.coding))
    }

    /// Columns of some words.
    fn columns(&self, words: &Range<usize>) -> Range<usize> {
        let each = if self.word == Word::Pair { 2 } else { 1 };
        (words.start * each).min(self.coding.width)..(words.end * each).min(self.coding.width)
    }

    /// The words of codes that some words of a panel are made of.
    pub(crate) fn codes_of(&self, panel: usize, words: Range<usize>) -> &[u32] {
        let columns = self.columns(&words);
        let each = per_word(&self.coding);
        let start = panel * self.width();
        &self.codes[(start + columns.start / each) * LANES..(start + columns.end.div_ceil(each)) * LANES]
    }

    /// Fills rows from row `first` of these panels on. Panels that come from a file stay as they are.
    pub(crate) fn fill(&mut self, first: usize, rows: &CodedRows<'_>) {
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        self.is_moderate.take();
        let Coding { bits, width: columns, n_groups, .. } = self.coding;
        let (width, count) = (self.width(), rows.codes.len() / columns.max(1));
        let each_panel = |array: &mut Stored, width: usize, write: &(dyn Fn(&mut [u32], usize, usize) + Sync)| {
            let Stored::Own(words) = array else { return };
            words.par_chunks_exact_mut((width * LANES).max(1)).enumerate().for_each(|(index, panel)| {
                for row in (index * LANES).max(first)..((index + 1) * LANES).min(first + count) {
                    write(panel, row % LANES, row - first);
                }
            });
        };
        each_panel(&mut self.codes, width, &|panel, lane, row| {
            let codes = rows.codes[row * columns..][..columns].chunks(32 / bits);
            for (word, codes) in panel.iter_mut().skip(lane).step_by(LANES).zip(codes) {
                let place = |(at, &code): (usize, &u8)| u32::from(code) << (at * bits);
                *word = codes.iter().enumerate().map(place).fold(0, |word, code| word | code);
            }
        });
        let of_groups = [
            (Some(&mut self.scales), &*rows.scales),
            (self.zeros.as_mut(), &*rows.zeros),
            (self.minima.as_mut(), &*rows.minima),
        ];
        for (array, numbers) in of_groups {
            let Some(array) = array else { continue };
            each_panel(array, n_groups, &|panel, lane, row| {
                let numbers = &numbers[row * n_groups..][..n_groups];
                let words = panel.iter_mut().skip(lane).step_by(LANES);
                words.zip(numbers).for_each(|(word, x)| *word = x.to_bits());
            });
        }
    }

    /// Writes the words of one row to `out`, as many as it has room for.
    pub(crate) fn row(&self, panel: usize, lane: usize, out: &mut [u32]) {
        let Coding { bits, n_groups, width, factor, ref groups, .. } = self.coding;
        let table = self.coding.table();
        let mask = (1 << bits) - 1;
        let number = |column: usize| {
            let word = self.codes[(panel * self.width() + column * bits / 32) * LANES + lane];
            let code = word >> (column * bits % 32) & mask;
            let at = (panel * n_groups + groups.of(column)) * LANES + lane;
            let of_group = |array: &Option<Stored>| array.as_ref().map_or(0.0, |array| f32::from_bits(array[at]));
            let scale = f32::from_bits(self.scales[at]);
            value(table[code as usize], [of_group(&self.zeros), scale, of_group(&self.minima)], factor)
        };
        for (index, out) in out.iter_mut().enumerate() {
            *out = match self.word {
                Word::Single => number(index).to_bits(),
                Word::Pair if 2 * index + 1 < width => pair(number(2 * index), number(2 * index + 1)),
                Word::Pair => pair(number(2 * index), 0.0),
            };
        }
    }

    /// Goes on with products of some rows and the words `words` of a panel, as [`multiply_add`](super::tile::multiply_add) does for what
    /// was dequantised to `written`. `a` begins with what the first of the words is multiplied with, and holds words of that kind.
    /// `sums` has one element for each row. `false`, and nothing happens, where there is no body for it: for the kernel and coding, for so
    /// many rows, for parts of words of codes, or for what is not moderate.
    pub(crate) fn multiply(
        &self,
        panel: usize,
        words: Range<usize>,
        written: Written,
        a: Words<'_>,
        sums: &mut [Sums],
    ) -> bool {
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        if let Some(has) = self.body() {
            let (columns, each) = (self.columns(&words), per_word(&self.coding));
            let is_whole = self.word.count(columns.len()) == words.len() && columns.len().is_multiple_of(each);
            let count = columns.len() / each;
            let can = is_whole && (written != Written::Rounded || self.is_moderate());
            return can && has.multiply(&self.piece(panel, columns, written), count, a, sums);
        }
        let _ = (panel, words, written, a, sums);
        false
    }

    /// The body with a processor's own instructions, if there is one for the kernel and the coding.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    fn body(&self) -> Option<HasThem> {
        HasThem::of(self.kernel, self.word).filter(|_| body::suits(&self.coding))
    }

    /// Whether scales, zeros, minima and tables are [moderate]. It is looked at once.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    fn is_moderate(&self) -> bool {
        let of_groups = || [&self.scales].into_iter().chain(&self.zeros).chain(&self.minima);
        *self.is_moderate.get_or_init(|| moderate::is_moderate(&self.coding, of_groups()))
    }

    /// Whether few rows are multiplied to the bits of the matrix unit without it: there is a body, rows are whole steps of the unit,
    /// and what groups have is moderate.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn is_multiplied_in_order(&self) -> bool {
        self.body().is_some_and(|has| has.multiplies_in_order(&self.coding)) && self.is_moderate()
    }

    /// Goes on with the products of few rows of numbers with a panel, to the bits of the matrix unit; see
    /// `HasThem::multiply_in_order`. Nothing happens where that is [not done](Self::is_multiplied_in_order).
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn multiply_in_order(&self, panel: usize, a: Words<'_>, sums: &mut [Sums]) {
        if let Some(has) = self.body().filter(|_| self.is_multiplied_in_order()) {
            has.multiply_in_order(&self.piece(panel, 0..self.coding.width, Written::Pairs), self.width(), a, sums);
        }
    }

    /// How codes may be multiplied as integers, if they may: signed ones of eight bits with scales alone, or integers of four bits, for
    /// successive columns that are whole words of codes.
    pub(crate) fn integers(&self) -> Option<IntegerCodes> {
        let Coding { bits, ref numbers, width, ref groups, has_zeros, has_minima, factor, .. } = self.coding;
        let is_signed = *numbers == CodeNumbers::Signed;
        let is_whole = |columns: usize| columns.is_multiple_of(per_word(&self.coding));
        let suits = match bits {
            8 => is_signed && !has_zeros && !has_minima,
            _ => is_signed || *numbers == CodeNumbers::Unsigned,
        };
        let Groups::Even(size) = *groups else { return None };
        let scaled = size.min(width);
        let found = IntegerCodes { scaled, bits, is_signed };
        (suits && factor == 1.0 && is_whole(width) && is_whole(scaled)).then_some(found)
    }

    /// The codes of a panel, and what its groups have.
    pub(crate) fn codes_of_panel<'a>(&'a self, panel: usize) -> CodesOfPanel<'a> {
        let n_groups = self.coding.n_groups;
        let groups = |array: &'a Stored| -> &'a [Lanes] { &array.as_chunks().0[panel * n_groups..][..n_groups] };
        CodesOfPanel {
            codes: &self.codes.as_chunks().0[panel * self.width()..][..self.width()],
            scales: groups(&self.scales),
            zeros: self.zeros.as_ref().map_or(&[], groups),
            minima: self.minima.as_ref().map_or(&[], groups),
        }
    }

    /// Columns of a panel, to be dequantised.
    fn piece(&self, panel: usize, columns: Range<usize>, written: Written) -> Piece<'_> {
        let of_panel = self.codes_of_panel(panel);
        let codes = &of_panel.codes[columns.start / per_word(&self.coding)..];
        Piece { coding: &self.coding, written, panel: CodesOfPanel { codes, ..of_panel }, columns }
    }

    /// Makes what is `written` of the words `words` of each row of a panel, `[rows][LANES]`; words behind the matrix's columns become zero.
    /// A range begins where a word of codes does. The processor's own instructions make whole words of codes, where there is a body.
    pub(crate) fn dequantise(&self, panel: usize, words: Range<usize>, written: Written, out: &mut [u32]) {
        let numbers = &self.coding.numbers;
        let (columns, out) = (self.columns(&words), out.as_chunks_mut().0);
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        let (columns, out) = if let Some(has) = self.body() {
            let count = columns.len() / per_word(&self.coding);
            let (start, whole) = (columns.start, count * per_word(&self.coding));
            let at = written.rows(whole);
            if has.write(&self.piece(panel, start..start + whole, written), count, &mut out[..at]) {
                (start + whole..columns.end, &mut out[at..])
            } else {
                (columns, out)
            }
        } else {
            (columns, out)
        };
        let piece = self.piece(panel, columns, written);
        match (numbers, self.coding.bits) {
            (CodeNumbers::Signed, 8) => piece.dequantise(out, |word, at| ((word << (24 - 8 * at)) as i32 >> 24) as f32),
            (CodeNumbers::Signed, _) => piece.dequantise(out, |word, at| ((word << (28 - 4 * at)) as i32 >> 28) as f32),
            (CodeNumbers::Unsigned, 8) => piece.dequantise(out, |word, at| (word >> (8 * at) & 255) as i32 as f32),
            (CodeNumbers::Unsigned, _) => piece.dequantise(out, |word, at| (word >> (4 * at) & 15) as i32 as f32),
            (CodeNumbers::E4m3, _) => piece.dequantise(out, |word, at| e4m3(word >> (8 * at))),
            (CodeNumbers::Table(table), _) => piece.dequantise(out, |word, at| table[(word >> (4 * at) & 15) as usize]),
        }
    }
}

#[cfg(test)]
mod tests {
    use half::bf16;
    use proptest::prelude::*;

    use super::*;
    use crate::cases::{fill, of_codes};
    use crate::codes::CodedMemory;
    #[cfg(target_arch = "x86_64")]
    use crate::kernel::Kernel;
    use crate::lines::Lines;
    use crate::numbers::Numbers;
    use crate::pack::PackedLinear;

    /// Codings of all kinds of codes, and of all that the formula may have.
    fn coding(kind: usize, width: usize, size: usize) -> Coding {
        // Of all but the last kind of groups one entry is zero.
        let table = std::array::from_fn(|code| if kind < 18 && code == 6 { 0.0 } else { (code as f32 - 6.5) / 3.0 });
        let (bits, numbers) = match kind % 6 {
            0 => (8, CodeNumbers::Signed),
            1 => (4, CodeNumbers::Signed),
            2 => (8, CodeNumbers::Unsigned),
            3 => (4, CodeNumbers::Unsigned),
            4 => (8, CodeNumbers::E4m3),
            _ => (4, CodeNumbers::Table(table)),
        };
        let coding = Coding::scaled(bits, numbers, width, size);
        match kind / 6 {
            0 => coding,
            1 => Coding { has_zeros: true, ..coding },
            2 => Coding { has_minima: true, ..coding },
            _ => {
                let n_groups = coding.n_groups;
                let groups = Groups::Listed((0..width).map(|column| (column * 7 % n_groups) as u32).collect());
                Coding { has_zeros: true, factor: 1.0 / 127.0, groups, ..coding }
            }
        }
    }

    /// A matrix of these rows in bf16.
    fn matrix(kernel: Supported, coding: &Coding, rows: &CodedRows<'_>, d_out: usize) -> PackedLinear {
        let mut matrix = of_codes(kernel, Word::Pair, &[(d_out, coding)]);
        matrix.fill_codes(0, rows);
        matrix
    }

    /// With so many rows the last task has few, which are multiplied in another way.
    #[test]
    fn the_last_of_many_rows_have_the_bits_of_each_alone() {
        const ROWS: usize = 389;
        let coding = Coding::scaled(4, CodeNumbers::Signed, 64, 32);
        let x: Vec<f32> = (0..ROWS * 64).map(|i| (i * 2_654_435_761 % 1009) as f32 / 500.0 - 1.0).collect();
        for kernel in Supported::all() {
            let mut matrix = of_codes(kernel, Word::Pair, &[(40, &coding)]);
            fill(&mut matrix, 0, &coding, 40, 1);
            let (mut out, mut scratch) = (vec![f32::NAN; ROWS * 40], Lines::default());
            matrix.apply(&x, ROWS, &mut out, &mut scratch);
            for row in [0, 383, 384, 388] {
                let mut alone = vec![f32::NAN; 40];
                matrix.apply(&x[row * 64..][..64], 1, &mut alone, &mut scratch);
                let together = &out[row * 40..][..40];
                assert!(alone.iter().zip(together).all(|(a, b)| a.to_bits() == b.to_bits()), "{kernel:?}, row {row}");
            }
        }
    }

    /// Weights of a table are rounded as bf16 rounds them, as they are multiplied: at ties, beside them, where all places are carried, and
    /// from the smallest to the largest weights that are moderate.
    #[test]
    fn weights_are_rounded_to_bf16_while_they_are_multiplied() {
        let fractions = [0x00_0000, 0x00_8000, 0x01_8000, 0x00_7fff, 0x00_8001, 0x01_7fff, 0x7f_8000, 0x7f_ffff];
        for exponent in [-9_i32, -8, -1, 0, 1, 48, 49] {
            let number = |i: usize| f32::from_bits((127 + exponent) as u32 * (1 << 23) + fractions[i % 8]);
            let table = std::array::from_fn(|i| if i < 8 { number(i) } else { -number(i) });
            for scale in [-28_i32, 0, 50] {
                let coding = Coding::scaled(4, CodeNumbers::Table(table), 32, 32);
                let mut memory = CodedMemory::new(&coding, 1);
                let rows = memory.rows(&coding, 1);
                rows.codes.iter_mut().enumerate().for_each(|(i, code)| *code = i as u8 % 16);
                rows.scales.fill(2_f32.powi(scale));
                for kernel in Supported::all().filter(|kernel| !kernel.kernel().multiplies_integers()) {
                    let matrix = matrix(kernel, &coding, &rows, 1);
                    let mut scratch = Lines::default();
                    for (i, number) in table.iter().enumerate() {
                        let mut x = [0.0; 32];
                        x[i] = 1.0;
                        let mut out = [f32::NAN];
                        matrix.apply(&x, 1, &mut out, &mut scratch);
                        let expected = bf16::from_f32(number * 2_f32.powi(scale)).to_f32();
                        assert_eq!(out[0].to_bits(), expected.to_bits(), "{kernel:?} {number} {scale}");
                    }
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn products_of_codes_have_the_bits_of_products_of_expanded_weights(
            kind in 0..24_usize,
            rows in prop::sample::select(vec![1_usize, 2, 3, 4, 5, 6, 7, 8, 12, 25]),
            width in prop::sample::select(vec![1_usize, 31, 64, 80, 640, 700, 1500, 2100, 2112]),
            size in prop::sample::select(vec![1_usize, 16, 32, 128, 5000]),
            d_out in prop::sample::select(vec![1_usize, 32, 33, 100]),
            // With the smallest ones there are sums that some instructions take for zero; the largest are not moderate either.
            unit_of_rows in prop::sample::select(vec![0_i32, -49, -50, -60, -125]),
            unit_of_groups in prop::sample::select(vec![0_i32, -23, -24, -60, 40, 60]),
            seed in any::<u64>(),
        ) {
            let random = |i: usize| (seed ^ i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
            // From half to all of a unit.
            let number = |i: usize, unit: i32| {
                let magnitude = 0.5 + random(i) as f32 / (1_u64 << 32) as f32;
                if random(i) % 2 == 0 { magnitude * 2_f32.powi(unit) } else { -magnitude * 2_f32.powi(unit) }
            };
            let coding = coding(kind, width, size);
            let mut memory = CodedMemory::new(&coding, d_out);
            let coded = memory.rows(&coding, d_out);
            let is_float = coding.numbers == CodeNumbers::E4m3;
            for (i, code) in coded.codes.iter_mut().enumerate() {
                *code = random(i) as u8 & if coding.bits == 4 { 15 } else { 255 };
                if is_float && *code & 0x7f == 0x7f {
                    *code = 3; // no number
                }
            }
            coded.scales.iter_mut().enumerate().for_each(|(i, x)| *x = number(i + 1000, unit_of_groups) / 16.0);
            if coding.has_zeros {
                coded.zeros.iter_mut().enumerate().for_each(|(i, x)| *x = (random(i + 2000) % 16) as f32);
            }
            if coding.has_minima {
                coded.minima.iter_mut().enumerate().for_each(|(i, x)| *x = number(i + 3000, unit_of_groups));
            }
            let mut values = vec![f32::NAN; d_out * width];
            coding.dequantise(&coded, &mut values);
            let halves: Vec<bf16> = values.iter().map(|&x| bf16::from_f32(x)).collect();
            let x: Vec<f32> = (0..rows * width).map(|i| number(i + 4000, unit_of_rows)).collect();
            // Products of integers are not those of dequantised weights; `integers.rs` has their tests.
            let kernels = Supported::all().filter(|kernel| !kernel.kernel().multiplies_integers());
            for (kernel, word) in kernels.flat_map(|kernel| [(kernel, Word::Pair), (kernel, Word::Single)]) {
                let mut plain = PackedLinear::zeros(kernel, word, d_out, width);
                plain.fill(0, if word == Word::Pair { Numbers::Bf16(&halves) } else { Numbers::F32(&values) });
                let mut small = of_codes(kernel, word, &[(d_out, &coding)]);
                // In two parts, of which the first ends inside a panel.
                let cut = d_out / 3;
                let (codes, other_codes) = coded.codes.split_at_mut(cut * width);
                let of_groups = [&mut *coded.scales, &mut *coded.zeros, &mut *coded.minima];
                let [(scales, other_scales), (zeros, other_zeros), (minima, other_minima)] =
                    of_groups.map(|numbers| numbers.split_at_mut(cut * coding.n_groups));
                let first = CodedRows { codes, scales, zeros, minima };
                let second = CodedRows { codes: other_codes, scales: other_scales, zeros: other_zeros, minima: other_minima };
                small.fill_codes(cut, &second);
                small.fill_codes(0, &first);
                #[cfg(target_arch = "x86_64")]
                {
                    let are_whole = matches!(coding.groups, Groups::Even(size) if size.is_multiple_of(32 / coding.bits));
                    let is_of_pairs = matches!(kernel.kernel(), Kernel::Amx | Kernel::Avx512Bf16) && word == Word::Pair;
                    // Of formats without zeros, those of numbers without sign have minima, and no others do.
                    let is_of_a_format = coding.has_minima == (coding.numbers == CodeNumbers::Unsigned);
                    let may_be = is_of_pairs && width.is_multiple_of(32) && are_whole && !coding.has_zeros && is_of_a_format;
                    let is_moderate = (-23..=40).contains(&unit_of_groups);
                    prop_assert_eq!(small.sections().of(0).is_multiplied_in_order(), may_be && is_moderate);
                }
                let mut scratch = Lines::default();
                let products = [&plain, &small].map(|matrix| {
                    let mut out = vec![f32::NAN; rows * d_out];
                    matrix.apply(&x, rows, &mut out, &mut scratch);
                    out.into_iter().map(f32::to_bits).collect::<Vec<_>>()
                });
                prop_assert!(products[0] == products[1], "{kernel:?} {word:?} {coding:?}");
                for row in [0, d_out - 1] {
                    let both = [&plain, &small].map(|matrix| {
                        let mut out = vec![f32::NAN; width];
                        matrix.row(row, &mut out);
                        out
                    });
                    prop_assert_eq!(&both[0], &both[1]);
                }
            }
        }
    }
}
