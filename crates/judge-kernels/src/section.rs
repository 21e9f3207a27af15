//! [`Section`]: some panels of a packed matrix, as words that products read, or as codes.
//!
//! A matrix that is stacked from several tensors is stored as they are: queries in four bits beside
//! values in six, or beside plain ones. Successive tensors that are stored alike make one section.
//!
//! ```text
//! section        what it keeps                                              a tile of it
//! Plain          words, [panels][width][LANES]                              borrowed
//! Coded          codes, [panels][codes' width][LANES], and what groups      dequantised into a buffer,
//!                of columns share, [panels][groups][LANES]: `coded.rs`      the same words
//! ```
//!
//! Arrays are in memory of the process or in a file of the packed cache (`stored.rs`). `pack.rs` owns what words mean, and the
//! products, which read `Sections`; this file owns where the words come from.

use std::ops::Range;

use rayon::prelude::*;

use super::coded::CodedPanels;
use super::kernel::IntegerCodes;
use super::lines::Lines;
use super::piece::{Sums, Written};
use super::stored::Stored;
use super::supported::Supported;
use super::tile::{LANES, Word, Words, widen_tile};
use crate::codes::{CodedRows, Coding};
use crate::numbers::Numbers;

/// What a section keeps of a matrix.
pub struct Shape {
    /// The kernel that multiplies.
    pub(crate) kernel: Supported,
    /// What a word holds.
    pub(crate) word: Word,
    /// Words of a row, with the padding of the kernel.
    pub(crate) width: usize,
    /// Panels of the section.
    pub(crate) panels: Range<usize>,
    /// How its tensors are coded; `None` for plain words.
    pub(crate) coding: Option<Coding>,
}

impl Shape {
    /// Words of each array that a section of this shape keeps, in their order.
    pub fn lengths(&self) -> Vec<usize> {
        match &self.coding {
            None => vec![self.panels.len() * self.width * LANES],
            Some(coding) => CodedPanels::lengths(coding, self.panels.len()),
        }
    }
}

/// Some panels of a matrix.
pub struct Section {
    /// Which of the matrix's.
    pub(crate) panels: Range<usize>,
    /// Words of a row.
    width: usize,
    /// What is kept of them.
    form: Form,
}

/// What is kept of a section.
enum Form {
    /// Words.
    Plain(Stored),
    /// Codes, which words are made of.
    Coded(Box<CodedPanels>),
}

impl Section {
    /// A section of these arrays, as many and as long as [`Shape::lengths`] says.
    pub fn new(shape: Shape, arrays: Vec<Stored>) -> Self {
        debug_assert!(shape.lengths().iter().zip(&arrays).all(|(&length, array)| array.len() == length));
        let form = match shape.coding {
            Some(coding) => Form::Coded(Box::new(CodedPanels::new(shape.kernel, coding, shape.word, arrays))),
            None => Form::Plain(arrays.into_iter().next().unwrap_or_else(|| Stored::Own(Lines::default()))),
        };
        Self { panels: shape.panels, width: shape.width, form }
    }

    /// A section of zeros, to be filled.
    pub fn zeros(shape: Shape) -> Self {
        let arrays = shape.lengths().into_iter().map(|length| Stored::Own(Lines::to_be_filled(length))).collect();
        Self::new(shape, arrays)
    }

    /// All that is kept, as the packed cache keeps it.
    pub(crate) fn arrays(&self) -> Vec<&[u32]> {
        match &self.form {
            Form::Plain(words) => vec![words],
            Form::Coded(coded) => coded.arrays(),
        }
    }

    /// The words `words` of each row of a panel, `[words][LANES]`: borrowed, or dequantised into
    /// `buffer`, which has room for exactly them. Ranges begin at whole tiles of the matrix unit or
    /// at whole pieces of a sum, so no code word is cut.
    pub(crate) fn tile<'a>(&'a self, panel: usize, words: Range<usize>, buffer: &'a mut [u32]) -> &'a [u32] {
        match &self.form {
            Form::Plain(_) => self.kept(panel, words),
            Form::Coded(coded) => {
                coded.dequantise(panel - self.panels.start, words, coded.written(), buffer);
                buffer
            }
        }
    }

    /// The numbers of words of pairs, widened to f32: two rows of `out`, `[2 * words][LANES]`, for each.
    pub(crate) fn wide_tile(&self, panel: usize, words: Range<usize>, out: &mut [u32]) {
        match &self.form {
            Form::Plain(_) => widen_tile(self.kept(panel, words), out),
            Form::Coded(coded) => coded.dequantise(panel - self.panels.start, words, Written::Rounded, out),
        }
    }

    /// Products with codes that need not be dequantised into memory; see [`CodedPanels::multiply`].
    pub(crate) fn multiply(
        &self,
        panel: usize,
        words: Range<usize>,
        written: Written,
        a: Words<'_>,
        sums: &mut [Sums],
    ) -> bool {
        match &self.form {
            Form::Plain(_) => false,
            Form::Coded(coded) => coded.multiply(panel - self.panels.start, words, written, a, sums),
        }
    }

    /// Whether few rows are multiplied to the bits of the matrix unit without it; see [`CodedPanels::is_multiplied_in_order`].
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn is_multiplied_in_order(&self) -> bool {
        self.coded().is_some_and(CodedPanels::is_multiplied_in_order)
    }

    /// These products of a panel; nothing where they are not made.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn multiply_in_order(&self, panel: usize, a: Words<'_>, sums: &mut [Sums]) {
        if let Form::Coded(coded) = &self.form {
            coded.multiply_in_order(panel - self.panels.start, a, sums);
        }
    }

    /// The coded panels.
    pub(crate) fn coded(&self) -> Option<&CodedPanels> {
        match &self.form {
            Form::Plain(_) => None,
            Form::Coded(coded) => Some(coded),
        }
    }

    /// How its codes may be multiplied as integers, if they may.
    pub(crate) fn integers(&self) -> Option<IntegerCodes> {
        self.coded()?.integers()
    }

    /// What is kept of these words of a panel, to be fetched: the words themselves, or their codes.
    pub(crate) fn kept(&self, panel: usize, words: Range<usize>) -> &[u32] {
        let panel = panel - self.panels.start;
        match &self.form {
            Form::Plain(all) => &all[panel * self.width * LANES..][words.start * LANES..words.end * LANES],
            Form::Coded(coded) => coded.codes_of(panel, words),
        }
    }

    /// Writes the words of one row of a panel, without padding, to `out`: as many as it has room for.
    pub(crate) fn row(&self, panel: usize, lane: usize, out: &mut [u32]) {
        let panel = panel - self.panels.start;
        match &self.form {
            Form::Plain(words) => {
                let words = words[panel * self.width * LANES..].iter().skip(lane).step_by(LANES);
                out.iter_mut().zip(words).for_each(|(out, &word)| *out = word);
            }
            Form::Coded(coded) => coded.row(panel, lane, out),
        }
    }

    /// Writes plain rows of `d_in` numbers, from row `first` of the matrix on. Rows of other
    /// sections, and sections of other forms, are left alone.
    pub(crate) fn fill(&mut self, first: usize, d_in: usize, rows: Numbers<'_>) {
        let (width, panels) = (self.width, self.panels.start);
        let count = rows.len() / d_in.max(1);
        let Form::Plain(Stored::Own(words)) = &mut self.form else { return };
        words.par_chunks_exact_mut((width * LANES).max(1)).enumerate().for_each(|(index, panel)| {
            let start = (panels + index) * LANES;
            for row in start.max(first)..(start + LANES).min(first + count) {
                let lane = panel.iter_mut().skip(row % LANES).step_by(LANES);
                let place = (row - first) * d_in..(row - first + 1) * d_in;
                match rows {
                    Numbers::Bf16(rows) => {
                        let (pairs, rest) = rows[place].as_chunks::<2>();
                        let last = rest.first().map(|&x| [x, half::bf16::ZERO]);
                        for (word, pair) in lane.zip(pairs.iter().copied().chain(last)) {
                            *word = u32::from(pair[0].to_bits()) | u32::from(pair[1].to_bits()) << 16;
                        }
                    }
                    Numbers::F32(rows) => lane.zip(&rows[place]).for_each(|(word, x)| *word = x.to_bits()),
                }
            }
        });
    }

    /// Writes coded rows, from row `first` of the matrix on. Rows of other sections, and sections of
    /// other forms, are left alone.
    pub(crate) fn fill_codes(&mut self, first: usize, rows: &CodedRows<'_>) {
        let start = self.panels.start * LANES;
        if let Form::Coded(coded) = &mut self.form {
            coded.fill(first.wrapping_sub(start), rows);
        }
    }
}

/// All panels of a matrix, section by section.
pub(crate) struct Sections(Vec<Section>);

impl Sections {
    /// Sections of successive panels, from panel 0 on; at least one.
    pub(crate) fn new(sections: Vec<Section>) -> Self {
        Self(sections)
    }

    /// The sections in order.
    pub(crate) fn iter(&self) -> std::slice::Iter<'_, Section> {
        self.0.iter()
    }

    /// The sections in order, to be filled.
    pub(crate) fn iter_mut(&mut self) -> std::slice::IterMut<'_, Section> {
        self.0.iter_mut()
    }

    /// The section of a panel.
    pub(crate) fn of(&self, panel: usize) -> &Section {
        let last = self.0.len() - 1;
        self.0[..last].iter().find(|section| panel < section.panels.end).unwrap_or(&self.0[last])
    }

    /// Some words of a panel, `[words][LANES]`; where they are made of codes, they are put into
    /// `buffer`, whose content does not matter. For ranges see [`Section::tile`].
    pub(crate) fn tile<'a>(&'a self, panel: usize, words: Range<usize>, buffer: &'a mut Lines<u32>) -> &'a [u32] {
        let section = self.of(panel);
        if section.coded().is_some() {
            buffer.resize(words.len() * LANES);
        }
        section.tile(panel, words, buffer)
    }

    /// Some words of pairs of a panel as numbers in f32, `[2 * words][LANES]`, which are put into `buffer`.
    pub(crate) fn wide_tile<'a>(&self, panel: usize, words: Range<usize>, buffer: &'a mut Lines<u32>) -> &'a [u32] {
        buffer.resize(2 * words.len() * LANES);
        self.of(panel).wide_tile(panel, words, buffer);
        buffer
    }

    /// What is kept of some words of a panel, to be fetched; empty after the last panel.
    pub(crate) fn kept(&self, panel: usize, words: Range<usize>) -> &[u32] {
        let panels = self.0.last().map_or(0, |section| section.panels.end);
        if panel < panels { self.of(panel).kept(panel, words) } else { &[] }
    }

    /// Whether all of the matrix is codes that may be multiplied as integers; see `integers.rs`.
    pub(crate) fn are_integers(&self) -> bool {
        self.0.iter().all(|section| section.integers().is_some())
    }
}
