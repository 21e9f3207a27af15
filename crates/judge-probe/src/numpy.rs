//! Random numbers, orders and sums as NumPy and Python make them, so that the same seed chooses the same rows.

pub(crate) mod numpy_random;
pub(crate) mod pairwise_sum;
pub(crate) mod python_random;
