//! Matrices whose rows can be computed from what is stored.

/// A matrix `[rows, width]` any of whose rows can be computed, by several threads at a time. The
/// shape is known to its maker, and was checked against its tensors then.
pub trait Dequantise: Sync {
    /// Computes whole rows in f32 from row `first` on, as many as `values` has room for, row-major.
    /// Values may be NaN or infinite if a scale is; the caller looks for them.
    ///
    /// # Panics
    /// If there are not so many rows.
    fn dequantise(&self, first: usize, values: &mut [f32]);
}
