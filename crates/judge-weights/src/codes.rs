//! [`Coded`]: matrices that are stored as codes of a few bits, whatever the format.
//!
//! All quantised formats that are read say the same thing in layouts of their own. Each of them
//! fills [`CodedRows`]; `judge-kernels` owns the one formula of the values ([`Coding`]). The packed engine keeps codes in memory as
//! they are; everything else gets values that were dequantised. Both give the same bits.

use judge_kernels::codes::{CodedMemory, CodedRows, Coding};

use super::dequantise::Dequantise;
use super::raw::Floats;

/// A matrix that is stored as codes.
pub trait Coded: Dequantise {
    /// How values follow from the codes.
    fn coding(&self) -> &Coding;

    /// Fills as many rows as there is room for, from row `first` on.
    ///
    /// # Panics
    /// If there are not so many rows.
    fn fill(&self, first: usize, rows: &mut CodedRows<'_>);

    /// The stored numbers that scales are made of. Where a value is not finite, the error names one
    /// of them that is not finite rather than the codes. None by default.
    fn scales(&self) -> Vec<Floats<'_>> {
        Vec::new()
    }
}

impl<T: Coded> Dequantise for T {
    fn dequantise(&self, first: usize, values: &mut [f32]) {
        let coding = self.coding();
        let count = values.len() / coding.width.max(1);
        let mut memory = CodedMemory::new(coding, count);
        let mut rows = memory.rows(coding, count);
        self.fill(first, &mut rows);
        coding.dequantise(&rows, values);
    }
}
