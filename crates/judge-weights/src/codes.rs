//! [`Coded`]: matrices that are stored as codes of a few bits, whatever the format.
//!
//! All quantised formats that are read say the same thing in layouts of their own. Each of them
//! fills [`CodedRows`]; `judge-kernels` owns the one formula of the values ([`Coding`]). The packed engine keeps codes in memory as
//! they are; everything else gets values that were dequantised. Both give the same bits.

use judge_kernels::codes::{CodedMemory, CodedRows, Coding};

use super::raw::Floats;

/// Fills as many rows as there is room for, from a row on.
type Fill<'a> = Box<dyn Fn(&Coding, usize, &mut CodedRows<'_>) + Sync + 'a>;

/// A matrix that is stored as codes, any of whose rows can be read, by several threads at a time. The shape is known to its maker, and was
/// checked against its tensors then.
pub struct Coded<'a> {
    /// How values follow from the codes.
    pub coding: Coding,
    /// The stored numbers that scales are made of, if they are tensors by themselves. Where a value is not finite, the error names one
    /// of them that is not finite rather than the codes.
    pub(crate) scales: Vec<Floats<'a>>,
    /// How rows are filled.
    fill: Fill<'a>,
}

impl<'a> Coded<'a> {
    /// A matrix whose rows are filled by a function, which is given the coding and the index of the first row.
    pub(crate) fn new(
        coding: Coding,
        scales: Vec<Floats<'a>>,
        fill: impl Fn(&Coding, usize, &mut CodedRows<'_>) + Sync + 'a,
    ) -> Self {
        Self { coding, scales, fill: Box::new(fill) }
    }

    /// The same rows in another order: row `n` is the one that is row `place(n)` here.
    #[must_use]
    pub fn reordered(self, place: impl Fn(usize) -> usize + Sync + 'a) -> Self {
        let Self { coding, scales, fill } = self;
        Self::new(coding, scales, move |coding, first, rows| {
            for (row, mut rows) in rows.each(coding).enumerate() {
                fill(coding, place(first + row), &mut rows);
            }
        })
    }

    /// Fills as many rows as there is room for, from row `first` on.
    ///
    /// # Panics
    /// If there are not so many rows.
    pub(crate) fn fill(&self, first: usize, rows: &mut CodedRows<'_>) {
        (self.fill)(&self.coding, first, rows);
    }

    /// Computes whole rows in f32 from row `first` on, as many as `values` has room for, row-major.
    /// Values may be NaN or infinite if a scale is; the caller looks for them.
    ///
    /// # Panics
    /// If there are not so many rows.
    pub fn dequantise(&self, first: usize, values: &mut [f32]) {
        let count = values.len() / self.coding.width.max(1);
        let mut memory = CodedMemory::new(&self.coding, count);
        let mut rows = memory.rows(&self.coding, count);
        self.fill(first, &mut rows);
        self.coding.dequantise(&rows, values);
    }
}
