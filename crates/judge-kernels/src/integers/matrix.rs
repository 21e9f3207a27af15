//! [`Matrix`]: codes that are multiplied as integers, and how the rounded rows that they meet lie in memory; and
//! [`Multiplier`], what a body gives.

use std::ops::Range;

use crate::coded::CodedPanels;
use crate::kernel::IntegerCodes;
use crate::piece::{CodesOfPanel, Sums};
use crate::section::Section;

/// Columns in a word of a rounded row, and of codes of eight bits.
pub(crate) const PLACES: usize = 4;

/// Rows of one task, at most: a multiple of the rows that any body multiplies at once.
pub(crate) const ROWS_AT_ONCE: usize = 384;

/// Most rows that a body multiplies at once.
pub(crate) const MOST_ROWS: usize = 128;

/// 32-bit words in a cache line, and in a row of one of the matrix unit's registers.
pub(crate) const LINE: usize = 16;

/// The most columns that share a step.
const MOST_COLUMNS: usize = 256;

/// A body for products of rounded rows with a panel, and the proof that this processor has its instructions.
pub(crate) trait Multiplier: Copy + Sync {
    /// What a task must hold meanwhile.
    type Held;

    /// Rounded rows are so many or a multiple of it; what lies in those behind the last one does not matter.
    const STRIP: usize;

    /// Takes hold of what the instructions need.
    fn hold(self) -> Self::Held;

    /// Rows that are multiplied at once: at most [`MOST_ROWS`], and a divisor of [`ROWS_AT_ONCE`].
    fn rows_at_once(self) -> usize;

    /// The bits that are turned over in each code of a rounded row, for codes of so many bits; 0x80 makes `q + 128` of `q`.
    fn flip(self, bits: usize) -> u8;

    /// Adds the products of rounded rows, as many as `sums` has, with a panel to `sums`.
    fn multiply(held: &Self::Held, matrix: &Matrix<'_>, panel: CodesOfPanel<'_>, rows: &[u32], sums: &mut [Sums]);
}

/// A matrix of panels of codes: one section of a matrix that is stacked from tensors, or all of it.
pub(crate) struct Matrix<'a> {
    /// The codes.
    pub(crate) coded: &'a CodedPanels,
    /// Which panels they are of the whole.
    pub(crate) panels: Range<usize>,
    /// How they are multiplied.
    pub(crate) codes: IntegerCodes,
    /// Columns of the matrix, whole words of codes.
    pub(crate) d_in: usize,
    /// Columns that share a step: whole words of codes, at most [`MOST_COLUMNS`]. The last group may
    /// have fewer.
    pub(crate) group: usize,
    /// Groups that share a scale.
    pub(crate) groups_of_a_scale: usize,
}

impl<'a> Matrix<'a> {
    /// A section of a matrix with `d_in` columns, if its codes may be multiplied as integers.
    pub(crate) fn new(section: &'a Section, d_in: usize) -> Option<Self> {
        let (coded, codes) = (section.coded()?, section.integers()?);
        let group = columns_of_a_step(codes);
        Some(Self {
            coded,
            panels: section.panels.clone(),
            codes,
            d_in,
            group,
            groups_of_a_scale: codes.scaled / group,
        })
    }

    /// Words of the codes of a rounded row.
    pub(crate) fn words(&self) -> usize {
        self.d_in / PLACES
    }

    /// Words of a rounded row: its codes, a step for each group, and beside codes of four bits the sum of each group's codes.
    pub(crate) fn row_words(&self) -> usize {
        self.words() + self.groups() * if self.codes.bits == 4 { 2 } else { 1 }
    }

    /// Groups of a row.
    pub(crate) fn groups(&self) -> usize {
        self.d_in.div_ceil(self.group)
    }

    /// The words of a rounded row that are of a group.
    pub(crate) fn words_of(&self, group: usize) -> Range<usize> {
        let words = self.group / PLACES;
        group * words..self.words().min((group + 1) * words)
    }

    /// Words from one rounded row to the next. An odd number of lines, so that rows which are multiplied
    /// together do not fall into the same sets of a cache.
    pub(crate) fn stride(&self) -> usize {
        (self.row_words().div_ceil(LINE) | 1) * LINE
    }

    /// What the bodies rely on: as many rows as `sums` has, at least one, a stride apart and with all that a row has; all words and
    /// scales of the panel, and zeros and minima as many or none.
    ///
    /// # Panics
    /// If anything of that is missing.
    pub(crate) fn check(&self, panel: CodesOfPanel<'_>, rows: &[u32], sums: &[Sums]) {
        assert!(!sums.is_empty() && rows.len() >= (sums.len() - 1) * self.stride() + self.row_words());
        let n_scales = self.groups().div_ceil(self.groups_of_a_scale);
        let is_there = |of_groups: &[_]| of_groups.is_empty() || of_groups.len() == n_scales;
        assert!(panel.codes.len() == self.d_in * self.codes.bits / 32 && panel.scales.len() == n_scales);
        assert!(is_there(panel.zeros) && is_there(panel.minima));
    }
}

/// Columns that share a step: all that share a scale, or else as many as divide them, in whole tiles of the unit if there are any.
pub(crate) fn columns_of_a_step(codes: IntegerCodes) -> usize {
    let (scaled, places) = (codes.scaled, 32 / codes.bits);
    let whole = (1..=MOST_COLUMNS / (PLACES * LINE)).rev().map(|tiles| tiles * PLACES * LINE);
    let any = (1..=MOST_COLUMNS / places).rev().map(|words| words * places);
    let mut sizes = Some(scaled).filter(|&size| size <= MOST_COLUMNS).into_iter().chain(whole).chain(any);
    sizes.find(|&size| scaled.is_multiple_of(size)).unwrap_or(places)
}
