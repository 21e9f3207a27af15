use crate::Error;
use crate::correlation::{Correlation, NullDistribution};
use crate::distribution::normal_tail;
use crate::input::{check_paired, check_varies};

/// Which p-value [`kendall_tau_b`] computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KendallTest {
    /// SciPy's rule: exact without ties where n ≤ 33 or at most one pair is out of line with the rest, else asymptotic.
    #[default]
    Auto,
    /// The distribution over all n! orders. No ties; at most 2,000 items, unless one pair or none is out of line.
    Exact,
    /// The normal approximation with the variance corrected for ties.
    Asymptotic,
}

/// The exact test costs O(n³) time and O(n²) memory: a second or two at this size.
const EXACT_LIMIT: usize = 2_000;

/// Kendall's τ-b in O(n log n) (Knight, 1966), with the p-value of `scipy.stats.kendalltau`.
///
/// `x`, `y`: n ≥ 2 finite numbers each; only their order counts. τ-b = (C − D) / √((N − T_x)(N − T_y)) with C concordant and D
/// discordant among N = n(n − 1)/2 pairs of rows and T_x, T_y those tied in `x`, in `y`.
///
/// # Errors
///
/// [`Error::LengthMismatch`], [`Error::TooFewItems`], [`Error::NonFinite`]; [`Error::Constant`] where all of `x` or all of
/// `y` is one value; for [`KendallTest::Exact`] also [`Error::TiesInExactTest`] and [`Error::TooManyItemsForExactTest`].
///
/// ```
/// use judge_metrics::correlation::{KendallTest, NullDistribution, kendall_tau_b};
///
/// let tau = kendall_tau_b(&[1.0, 2.0, 3.0, 4.0], &[1.0, 3.0, 2.0, 4.0], KendallTest::Auto)?;
/// assert!((tau.estimate - 2.0 / 3.0).abs() < 1e-15 && (tau.p_value - 1.0 / 3.0).abs() < 1e-15);
/// assert_eq!(tau.null_distribution, NullDistribution::Permutation);
/// # Ok::<(), judge_metrics::Error>(())
/// ```
pub fn kendall_tau_b(x: &[f64], y: &[f64], test: KendallTest) -> Result<Correlation, Error> {
    check_paired(x, y, 2)?;
    check_varies("x", x)?;
    check_varies("y", y)?;

    let n = x.len();
    let pairs = PairCounts::new(x, y);
    let surplus = pairs.concordant_minus_discordant();
    let untied = |ties: &Ties| (pairs.total - ties.pairs) as f64;
    let tau = surplus / untied(&pairs.x).sqrt() / untied(&pairs.y).sqrt();

    let tied = pairs.x.pairs > 0 || pairs.y.pairs > 0;
    // Without ties every pair is one or the other; the distribution of their numbers is symmetric.
    let out_of_line = pairs.discordant.min(pairs.total - pairs.discordant);
    let exact = match test {
        KendallTest::Auto => !tied && (n <= 33 || out_of_line <= 1),
        KendallTest::Exact if tied => {
            return Err(Error::TiesInExactTest { x: pairs.x.pairs, y: pairs.y.pairs });
        }
        KendallTest::Exact if n > EXACT_LIMIT && out_of_line > 1 => {
            return Err(Error::TooManyItemsForExactTest { limit: EXACT_LIMIT, found: n });
        }
        KendallTest::Exact => true,
        KendallTest::Asymptotic => false,
    };
    let (p_value, null_distribution) = if exact {
        (permutation_tail(n, out_of_line), NullDistribution::Permutation)
    } else {
        (normal_tail(surplus / pairs.null_variance(n).sqrt()), NullDistribution::Normal)
    };
    Ok(Correlation { estimate: tau.clamp(-1.0, 1.0), p_value, null_distribution, n })
}

/// How the n(n − 1)/2 pairs of rows fall.
struct PairCounts {
    total: u64,
    discordant: u64,
    x: Ties,
    y: Ties,
    /// Pairs tied in both.
    both: u64,
}

/// Sums over the groups of t equal values in one column.
#[derive(Default)]
struct Ties {
    /// Σ t(t − 1)/2
    pairs: u64,
    /// Σ t(t − 1)(t − 2)
    triples: f64,
    /// Σ t(t − 1)(2t + 5)
    variance: f64,
}

impl PairCounts {
    fn new(x: &[f64], y: &[f64]) -> Self {
        // Adding +0 turns -0 into +0, so that the total order agrees with `==` on finite numbers.
        let mut rows: Vec<(f64, f64)> = x.iter().zip(y).map(|(x, y)| (x + 0.0, y + 0.0)).collect();
        rows.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let x = Ties::new(rows.chunk_by(|a, b| a.0 == b.0).map(<[_]>::len));
        let both = Ties::new(rows.chunk_by(|a, b| a == b).map(<[_]>::len)).pairs;

        // Rows tied in x stand in ascending order of y, so an inversion of y is a discordant pair and nothing else.
        let mut y: Vec<f64> = rows.into_iter().map(|row| row.1).collect();
        let discordant = sort_counting_inversions(&mut y);
        let n = y.len() as u64;
        let y = Ties::new(y.chunk_by(|a, b| a == b).map(<[_]>::len));
        Self { total: n * (n - 1) / 2, discordant, x, y, both }
    }

    fn concordant_minus_discordant(&self) -> f64 {
        let untied = self.total - self.x.pairs - (self.y.pairs - self.both);
        untied as f64 - 2.0 * self.discordant as f64
    }

    /// Variance of C − D under independence, given the ties (Kendall, *Rank Correlation Methods*, chapter 4).
    fn null_variance(&self, n: usize) -> f64 {
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

impl Ties {
    fn new(group_sizes: impl Iterator<Item = usize>) -> Self {
        group_sizes.filter(|&size| size > 1).fold(Self::default(), |sums, size| {
            let t = size as f64;
            Self {
                pairs: sums.pairs + (size as u64) * (size as u64 - 1) / 2,
                triples: sums.triples + t * (t - 1.0) * (t - 2.0),
                variance: sums.variance + t * (t - 1.0) * (2.0 * t + 5.0),
            }
        })
    }
}

/// Merge sort, bottom up, that counts the pairs standing in the wrong order.
fn sort_counting_inversions(values: &mut Vec<f64>) -> u64 {
    let n = values.len();
    let mut merged = Vec::with_capacity(n);
    let mut inversions = 0;
    let mut width = 1;
    while width < n {
        for run in values.chunks(2 * width) {
            let (mut left, mut right) = run.split_at(width.min(run.len()));
            while let (Some((&l, left_rest)), Some((&r, right_rest))) = (left.split_first(), right.split_first()) {
                if l <= r {
                    merged.push(l);
                    left = left_rest;
                } else {
                    merged.push(r);
                    right = right_rest;
                    inversions += left.len() as u64;
                }
            }
            merged.extend_from_slice(left);
            merged.extend_from_slice(right);
        }
        std::mem::swap(values, &mut merged);
        merged.clear();
        width *= 2;
    }
    inversions
}

/// Twice the probability that a random order of n items has at most `inversions` inversions, at most 1.
///
/// The distribution for j items is that for j − 1 summed over the j places the new item can take, each equally likely: a
/// running sum less the same sum j places before. (The same recurrence as SciPy's, kept in probabilities throughout, so that
/// it covers every n.)
fn permutation_tail(n: usize, inversions: u64) -> f64 {
    let mut doubled = vec![0.0; inversions as usize + 1];
    doubled.iter_mut().take(2).for_each(|probability| *probability = 1.0);
    for j in 3..=n {
        let mut running = 0.0;
        for probability in &mut doubled {
            running += *probability;
            *probability = running / j as f64;
        }
        for k in (j..doubled.len()).rev() {
            doubled[k] -= doubled[k - j];
        }
    }
    doubled.iter().sum::<f64>().min(1.0)
}
