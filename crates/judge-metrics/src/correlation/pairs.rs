//! How all pairs of rows fall (concordant, discordant, tied): what Kendall's tau and Somers' D are made of.

use crate::Error;
use crate::correlation::inversions::{Weighed, sort_weighing_inversions};

/// How the n(n − 1)/2 pairs of rows fall.
pub(crate) struct PairCounts {
    n: u64,
    pub(super) total: u64,
    pub(super) discordant: u64,
    pub(super) x: Ties,
    pub(super) y: Ties,
    /// Pairs tied in both.
    both: u64,
}

/// Sums over the groups of t equal values in one column.
#[derive(Default)]
pub(super) struct Ties {
    /// Number of groups, those of one value included.
    pub(super) distinct: usize,
    /// Σ t(t − 1)/2
    pub(super) pairs: u64,
    /// Σ t(t − 1)(t − 2)
    triples: f64,
    /// Σ t(t − 1)(2t + 5)
    variance: f64,
}

impl PairCounts {
    /// `x` and `y` have the same length, at least 2, and are finite. O(n log n) by Knight (1966).
    pub(super) fn new(x: &[f64], y: &[f64]) -> Self {
        // Adding +0 turns -0 into +0, so that the total order agrees with `==` on finite numbers.
        let mut rows: Vec<(f64, f64)> = x.iter().zip(y).map(|(x, y)| (x + 0.0, y + 0.0)).collect();
        rows.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let x = Ties::new(rows.chunk_by(|a, b| a.0 == b.0).map(<[_]>::len));
        let both = Ties::new(rows.chunk_by(|a, b| a == b).map(<[_]>::len)).pairs;

        // Rows tied in x stand in ascending order of y, so an inversion of y is a discordant pair and nothing else.
        let mut y: Vec<One> = rows.into_iter().map(|row| One(row.1)).collect();
        // Sums of halves: exact up to 2^53.
        let discordant = sort_weighing_inversions(&mut y) as u64;
        let n = y.len() as u64;
        let y = Ties::new(y.chunk_by(|a, b| a.0 == b.0).map(<[_]>::len));
        Self::of(n, discordant, x, y, both)
    }

    /// `both`: the pairs tied in both columns.
    pub(super) fn of(n: u64, discordant: u64, x: Ties, y: Ties, both: u64) -> Self {
        Self { n, total: n * (n - 1) / 2, discordant, x, y, both }
    }

    /// Rows of which some were drawn again and others not may leave a column with one value.
    pub(crate) fn check_varies(&self) -> Result<(), Error> {
        if self.x.distinct > 1 && self.y.distinct > 1 {
            return Ok(());
        }
        let reason = "all rows have the same value in a column";
        Err(Error::Undefined { statistic: "a rank correlation", reason })
    }

    /// Kendall's τ-b, where both columns vary.
    pub(crate) fn tau_b(&self) -> f64 {
        let untied = |tied: u64| ((self.total - tied) as f64).sqrt();
        (self.concordant_minus_discordant() / untied(self.x.pairs) / untied(self.y.pairs)).clamp(-1.0, 1.0)
    }

    /// Kendall's τ-c, where both columns vary.
    pub(crate) fn tau_c(&self) -> f64 {
        let (n, grades) = (self.n as f64, self.x.distinct.min(self.y.distinct) as f64);
        (2.0 * self.concordant_minus_discordant() / (n * n * ((grades - 1.0) / grades))).clamp(-1.0, 1.0)
    }

    /// Somers' D of `y` given `x`, where both columns vary.
    pub(crate) fn somers_d_given_x(&self) -> f64 {
        self.of_pairs_untied_in(&self.x)
    }

    /// Somers' D of `x` given `y`, where both columns vary.
    pub(crate) fn somers_d_given_y(&self) -> f64 {
        self.of_pairs_untied_in(&self.y)
    }

    fn of_pairs_untied_in(&self, column: &Ties) -> f64 {
        (self.concordant_minus_discordant() / (self.total - column.pairs) as f64).clamp(-1.0, 1.0)
    }

    pub(super) fn concordant_minus_discordant(&self) -> f64 {
        let untied = self.total - self.x.pairs - (self.y.pairs - self.both);
        untied as f64 - 2.0 * self.discordant as f64
    }

    /// Variance of C − D under independence, given the ties (Kendall, *Rank Correlation Methods*, chapter 4).
    pub(super) fn null_variance(&self, n: usize) -> f64 {
        let n = n as f64;
        let m = n * (n - 1.0);
        let triples = self.x.triples * self.y.triples;
        // Two rows hold no triple, and n − 2 is then 0.
        let triple_term = if triples > 0.0 { triples / (9.0 * m * (n - 2.0)) } else { 0.0 };
        (m * (2.0 * n + 5.0) - self.x.variance - self.y.variance) / 18.0
            + 2.0 * self.x.pairs as f64 * self.y.pairs as f64 / m
            + triple_term
    }
}

/// A value of which each pair counts as one.
#[derive(Clone, Copy)]
struct One(f64);

impl Weighed for One {
    fn value(&self) -> f64 {
        self.0
    }

    fn weight(&self) -> f64 {
        0.5
    }
}

impl Ties {
    pub(super) fn new(group_sizes: impl Iterator<Item = usize>) -> Self {
        group_sizes.fold(Self::default(), |sums, size| {
            let t = size as f64;
            Self {
                distinct: sums.distinct + 1,
                pairs: sums.pairs + (size as u64) * (size as u64 - 1) / 2,
                triples: sums.triples + t * (t - 1.0) * (t - 2.0),
                variance: sums.variance + t * (t - 1.0) * (2.0 * t + 5.0),
            }
        })
    }
}
