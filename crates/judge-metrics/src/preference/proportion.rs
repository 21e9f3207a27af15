use std::iter::Sum;

use crate::Error;

/// A share, with the counts it is made of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Proportion {
    /// How many.
    pub count: usize,
    /// Of how many, at least `count`.
    pub n: usize,
}

impl Proportion {
    /// The share, in [0, 1].
    ///
    /// # Errors
    ///
    /// [`Error::Undefined`] for a share of nothing.
    pub fn estimate(&self) -> Result<f64, Error> {
        if self.n == 0 {
            return Err(Error::Undefined { statistic: "proportion", reason: "no item to take a share of" });
        }
        Ok(self.count as f64 / self.n as f64)
    }

    pub(crate) fn add(&mut self, counts: bool) {
        self.count += usize::from(counts);
        self.n += 1;
    }
}

/// Pooled: counts are added up.
impl Sum for Proportion {
    fn sum<I: Iterator<Item = Self>>(shares: I) -> Self {
        shares.fold(Self::default(), |pooled, share| Self { count: pooled.count + share.count, n: pooled.n + share.n })
    }
}
