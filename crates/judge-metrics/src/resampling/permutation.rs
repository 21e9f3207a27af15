use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;

use crate::Error;
use crate::correlation::average_ranks;
use crate::groups::{clusters, take};
use crate::input::{check_count, check_finite, check_lengths, check_paired};
use crate::resampling::bootstrap::finite;
use crate::resampling::stream::{Purpose, below, parallel, stream};

/// Permutation tests: how often chance alone gives a statistic as extreme as the one seen, if the labels that are exchanged mean
/// nothing (`scipy.stats.permutation_test`).
///
/// If all different arrangements are no more than `permutations`, each is looked at once and the p-value is exact. Otherwise
/// `permutations` are drawn, and the one seen counts as one more: p = (k + 1) / (B + 1) (Phipson and Smyth, 2010), which is never 0.
/// Statistics within 100 machine epsilons of the one seen, relative to it, count as equal to it, as in SciPy, and so do those within
/// [`rounding`](Self::rounding): sums that cancel out are near 0, and what rounding leaves of them is as large as the numbers summed.
///
/// Draws are counter-based, like those of [`Bootstrap`](crate::resampling::Bootstrap): permutation b draws from ChaCha8 whose key is `seed`
/// (64 bits, little-endian), a byte 1, then zeros, and whose stream is b.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PermutationTest {
    /// Number of permutations, at least 1.
    #[doc(alias = "n_resamples")]
    pub permutations: usize,
    /// Chooses them.
    pub seed: u64,
    /// What counts as extreme.
    pub alternative: Alternative,
    /// How far rounding may part two statistics that are equal, in their unit; 0 where it parts none. Of a difference of means of numbers
    /// up to m, 4 m [`f64::EPSILON`].
    pub rounding: f64,
}

/// Which statistics count as at least as extreme as the one seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Alternative {
    /// Those at its own end: twice the smaller of the two one-sided p-values, at most 1.
    #[default]
    TwoSided,
    /// Those that are no larger.
    Less,
    /// Those that are no smaller.
    Greater,
}

impl Default for PermutationTest {
    /// 9,999 permutations, seed 0, two-sided, without rounding.
    fn default() -> Self {
        Self { permutations: 9_999, seed: 0, alternative: Alternative::TwoSided, rounding: 0.0 }
    }
}

/// A statistic and how likely it is by chance.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PermutationResult {
    /// The statistic of the data as they were given.
    pub estimate: f64,
    /// In (0, 1].
    pub p_value: f64,
    /// Arrangements looked at: all of them, or those drawn.
    pub permutations: usize,
    /// Whether these are all there are.
    pub exact: bool,
}

impl PermutationTest {
    /// Two judges on the same items: within each item it is a coin's toss which is which. The statistic gets both columns, such as
    /// two judges' errors.
    ///
    /// What is exchanged must be exchangeable if the judges are equally good, scale included. For correlations with people that is not so
    /// where judges use different scales, or one scale differently: a column of scores from 1 to 5 and from 0 to 100 in turns correlates
    /// with nothing. [`paired_ranks`](Self::paired_ranks) exchanges ranks.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`], [`Error::TooFewItems`] for no items, [`Error::NonFinite`], [`Error::NoResamples`],
    /// [`Error::NonFiniteStatistic`], and whatever `statistic` returns: a statistic that some arrangement leaves undefined has no
    /// distribution to compare with.
    ///
    /// ```
    /// use judge_metrics::resampling::PermutationTest;
    ///
    /// let errors = [0.5, 1.0, 0.25, 0.75, 1.5, 0.5];
    /// let others = [1.0, 1.25, 0.5, 1.0, 1.25, 1.5];
    /// let mean = |x: &[f64]| x.iter().sum::<f64>() / x.len() as f64;
    /// let test = PermutationTest::default().paired(&errors, &others, |x, y| Ok(mean(x) - mean(y)))?;
    /// assert!(test.exact && test.permutations == 64);
    /// assert_eq!(test.p_value, 0.15625);
    /// # Ok::<(), judge_metrics::Error>(())
    /// ```
    #[doc(alias = "samples")]
    #[doc(alias = "permutation_test")]
    pub fn paired<S>(&self, x: &[f64], y: &[f64], statistic: S) -> Result<PermutationResult, Error>
    where
        S: Fn(&[f64], &[f64]) -> Result<f64, Error> + Sync,
    {
        let items: Vec<usize> = (0..x.len()).collect();
        self.clustered(x, y, &items, statistic)
    }

    /// Two judges on the same items whose scales may differ: each judge's numbers become their average ranks first, and ranks are exchanged
    /// within items. For correlations with people (Deutsch, Dror and Roth, 2021, who standardise).
    ///
    /// # Errors
    ///
    /// Those of [`paired`](Self::paired).
    ///
    /// ```
    /// use judge_metrics::correlation::pearson;
    /// use judge_metrics::resampling::PermutationTest;
    ///
    /// let human = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0];
    /// let of_100 = [11.0, 25.0, 28.0, 44.0, 52.0, 61.0, 75.0, 80.0];
    /// let of_5 = [2.0, 1.0, 4.0, 3.0, 1.0, 5.0, 2.0, 3.0];
    /// let human = judge_metrics::correlation::average_ranks(&human)?;
    /// let gain = |x: &[f64], y: &[f64]| Ok(pearson(x, &human)?.estimate - pearson(y, &human)?.estimate);
    /// assert!(PermutationTest::default().paired_ranks(&of_100, &of_5, gain)?.p_value < 0.1);
    /// assert!(PermutationTest::default().paired(&of_100, &of_5, gain)?.p_value > 0.1);
    /// # Ok::<(), judge_metrics::Error>(())
    /// ```
    pub fn paired_ranks<S>(&self, x: &[f64], y: &[f64], statistic: S) -> Result<PermutationResult, Error>
    where
        S: Fn(&[f64], &[f64]) -> Result<f64, Error> + Sync,
    {
        check_paired(x, y, 1)?;
        self.paired(&average_ranks(x)?, &average_ranks(y)?, statistic)
    }

    /// The same where items come in clusters, such as all answers to one question: the two judges change places in a whole
    /// cluster or not at all. `groups[i]` says which cluster item i belongs to.
    ///
    /// # Errors
    ///
    /// Those of [`paired`](Self::paired).
    pub fn clustered<G, S>(&self, x: &[f64], y: &[f64], groups: &[G], statistic: S) -> Result<PermutationResult, Error>
    where
        G: Ord,
        S: Fn(&[f64], &[f64]) -> Result<f64, Error> + Sync,
    {
        check_paired(x, y, 1)?;
        check_lengths("groups", groups.len(), "x", x.len())?;
        let both = [x, y].concat();
        self.exchanged(groups, x == y, |one, other| statistic(&take(&both, one), &take(&both, other)))
    }

    /// The same of rows: row i of the first judge is i, of the second n + i, and the statistic gets those that are each one's now. Where
    /// the judges say the same, every arrangement is the data as given.
    pub(crate) fn exchanged<G, S>(&self, groups: &[G], alike: bool, statistic: S) -> Result<PermutationResult, Error>
    where
        G: Ord,
        S: Fn(&[usize], &[usize]) -> Result<f64, Error> + Sync,
    {
        let n = groups.len();
        check_count(1, n)?;
        let clusters = clusters(groups);
        let all = 1_usize.checked_shl(clusters.len() as u32).filter(|_| clusters.len() < usize::BITS as usize);
        if alike {
            let rows: Vec<usize> = (0..2 * n).collect();
            let given = statistic(&rows[..n], &rows[n..])?;
            return self.test(all, &|_| Ok(given));
        }
        let mut cluster_of = vec![0; n];
        for (cluster, rows) in clusters.iter().enumerate() {
            rows.iter().for_each(|&row| cluster_of[row] = cluster);
        }
        self.test(all, &|arrangement| {
            // Bit i says whether cluster i changes places: one word for each 64 clusters, the lowest bit first.
            let mut words = vec![0; clusters.len().div_ceil(64)];
            match arrangement {
                Arrangement::Number(number) => words[0] = number as u64,
                Arrangement::Drawn(mut stream) => words.fill_with(|| stream.next_u64()),
            }
            // Without a branch, which nothing could foretell.
            let changes = |cluster: usize| ((words[cluster / 64] >> (cluster % 64)) & 1) as usize;
            let one: Vec<usize> =
                cluster_of.iter().enumerate().map(|(row, &cluster)| row + n * changes(cluster)).collect();
            let other: Vec<usize> = one.iter().enumerate().map(|(row, &of_one)| n + 2 * row - of_one).collect();
            statistic(&one, &other)
        })
    }

    /// Two unrelated groups of items: any division of all items into groups of these sizes is as likely.
    ///
    /// # Errors
    ///
    /// [`Error::TooFewItems`] for an empty group, and those of [`paired`](Self::paired).
    #[doc(alias = "permutation_test")]
    pub fn independent<S>(&self, x: &[f64], y: &[f64], statistic: S) -> Result<PermutationResult, Error>
    where
        S: Fn(&[f64], &[f64]) -> Result<f64, Error> + Sync,
    {
        check_finite("x", x)?;
        check_finite("y", y)?;
        check_count(1, x.len().min(y.len()))?;
        let all = [x, y].concat();
        let arrangements = binomial(all.len(), x.len());
        self.test(arrangements, &|arrangement| match arrangement {
            Arrangement::Number(number) => {
                let (first, second) = division(&all, x.len(), number);
                statistic(&first, &second)
            }
            Arrangement::Drawn(mut stream) => {
                let mut all = all.clone();
                shuffle(&mut all, &mut stream);
                let (first, second) = all.split_at(x.len());
                statistic(first, second)
            }
        })
    }

    /// Two columns that may have nothing to do with one another: any order of `y` is as likely. For correlations.
    ///
    /// # Errors
    ///
    /// Those of [`paired`](Self::paired).
    #[doc(alias = "pairings")]
    #[doc(alias = "permutation_test")]
    pub fn pairing<S>(&self, x: &[f64], y: &[f64], statistic: S) -> Result<PermutationResult, Error>
    where
        S: Fn(&[f64], &[f64]) -> Result<f64, Error> + Sync,
    {
        check_paired(x, y, 1)?;
        let arrangements = (1..=x.len()).try_fold(1_usize, usize::checked_mul);
        self.test(arrangements, &|arrangement| {
            let mut y = y.to_vec();
            match arrangement {
                Arrangement::Number(number) => {
                    arrange(&mut y, number);
                }
                Arrangement::Drawn(mut stream) => shuffle(&mut y, &mut stream),
            }
            statistic(x, &y)
        })
    }

    /// Columns of labels that may have nothing to do with one another: any order of each but the first is as likely. The statistic gets, for
    /// each column, which of its entries stands at each place.
    pub(crate) fn columns<S>(&self, lengths: &[usize], statistic: S) -> Result<PermutationResult, Error>
    where
        S: Fn(&[Vec<usize>]) -> Result<f64, Error> + Sync,
    {
        let factorial = |all: usize, &n: &usize| (1..=n).try_fold(all, usize::checked_mul);
        let arrangements = lengths.iter().skip(1).try_fold(1, factorial);
        self.test(arrangements, &|arrangement| {
            let mut columns: Vec<Vec<usize>> = lengths.iter().map(|&n| (0..n).collect()).collect();
            match arrangement {
                Arrangement::Number(mut number) => {
                    columns.iter_mut().skip(1).for_each(|column| number = arrange(column, number));
                }
                Arrangement::Drawn(mut stream) => {
                    columns.iter_mut().skip(1).for_each(|column| shuffle(column, &mut stream));
                }
            }
            statistic(&columns)
        })
    }

    /// `all` is how many arrangements there are, if that can be counted; number 0 is the data as given.
    fn test(
        &self,
        all: Option<usize>,
        statistic: &(dyn Fn(Arrangement) -> Result<f64, Error> + Sync),
    ) -> Result<PermutationResult, Error> {
        if self.permutations == 0 {
            return Err(Error::NoResamples);
        }
        let estimate = finite(statistic(Arrangement::Number(0))?, None)?;
        let exact = all.is_some_and(|all| all <= self.permutations);
        let permutations = all.filter(|_| exact).unwrap_or(self.permutations);
        let values = parallel(permutations, |numbers| {
            numbers
                .map(|number| {
                    let arrangement = if exact {
                        Arrangement::Number(number)
                    } else {
                        Arrangement::Drawn(Box::new(stream(self.seed, Purpose::Permutation, number)))
                    };
                    finite(statistic(arrangement)?, Some(number))
                })
                .collect()
        })?;
        let slack = self.rounding.max(100.0 * f64::EPSILON * estimate.abs());
        let seen = usize::from(!exact);
        let share = |extreme: &dyn Fn(f64) -> bool| {
            let count = values.iter().filter(|&&value| extreme(value)).count();
            (count + seen) as f64 / (permutations + seen) as f64
        };
        let less = share(&|value| value <= estimate + slack);
        let greater = share(&|value| value >= estimate - slack);
        let p_value = match self.alternative {
            Alternative::Less => less,
            Alternative::Greater => greater,
            Alternative::TwoSided => (2.0 * less.min(greater)).min(1.0),
        };
        Ok(PermutationResult { estimate, p_value, permutations, exact })
    }
}

/// One way to arrange the data.
enum Arrangement {
    /// By its number among all; 0 leaves them as they are.
    Number(usize),
    Drawn(Box<ChaCha8Rng>),
}

/// The order of this number, of which 0 is the one given; what is left of the number beyond all orders.
fn arrange<T>(values: &mut [T], mut number: usize) -> usize {
    // The digits of the number in the factorial system say which of the rest comes next.
    for place in 0..values.len() {
        let rest = values.len() - place;
        let pick = place + number % rest;
        number /= rest;
        values[place..=pick].rotate_right(1);
    }
    number
}

/// Fisher and Yates, from the end: each place is exchanged with one up to itself.
pub(super) fn shuffle<T>(values: &mut [T], stream: &mut ChaCha8Rng) {
    for place in (1..values.len()).rev() {
        values.swap(place, below(stream, place + 1));
    }
}

/// n over k, if it can be counted.
fn binomial(n: usize, k: usize) -> Option<usize> {
    // After each step it is the whole number (n - k + i) over i.
    (1..=k as u128)
        .try_fold(1_u128, |product, i| product.checked_mul(n as u128 - k as u128 + i).map(|p| p / i))
        .and_then(|count| usize::try_from(count).ok())
}

/// The values of the `number`-th subset of `k` places in the order of the places, and the others; 0 is the first k.
fn division(values: &[f64], k: usize, mut number: usize) -> (Vec<f64>, Vec<f64>) {
    let (mut first, mut second) = (Vec::with_capacity(k), Vec::with_capacity(values.len() - k));
    for (place, &value) in values.iter().enumerate() {
        let missing = k - first.len();
        // Subsets of what is left that contain this place come first.
        let with = if missing == 0 { 0 } else { binomial(values.len() - place - 1, missing - 1).unwrap_or(usize::MAX) };
        if number < with {
            first.push(value);
        } else {
            number -= with;
            second.push(value);
        }
    }
    (first, second)
}
