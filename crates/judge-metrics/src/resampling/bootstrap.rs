use crate::distribution::{normal_cdf, normal_quantile, normal_two_sided_quantile};
use crate::estimate::ENOUGH_UNITS;
use crate::groups::clusters;
use crate::input::{check_count, check_finite, check_level, check_not_descending, check_paired, check_range, in_range};
use crate::resampling::stream::{Purpose, below, parallel, stream};
use crate::sum::sum;
use crate::{Error, Interval};

/// The bootstrap of a statistic of rows: draw as many rows as there are, with replacement, many times over, and see what the
/// statistic becomes (`scipy.stats.bootstrap` with `paired=True`).
///
/// Resamples are counter-based: resample b draws from ChaCha8 whose key is `seed` (64 bits, little-endian, then zeros) and whose
/// stream is b, row i being the high half of the 128-bit product of its i-th 64-bit word with n. A result therefore depends
/// on the settings and the data alone, neither on the number of threads nor on the order in which they work. Two statistics of the same
/// rows under the same settings see the same resamples.
///
/// [`interval`](Self::interval) takes rows as independent. Where several rows belong to one question, one prompt or one person, draw
/// those: [`clustered`](Self::clustered).
///
/// The interval is [undefined](Error::is_undefined) where resamples do not show the statistic's spread:
///
/// - with fewer than six rows, or clusters: of five there are but 126 different resamples, whose outermost fortieth is one or two of them;
/// - where the statistic is undefined on more than (1 − level)/2 of the resamples: on which side of the others they belong is not known,
///   and they could be all of a tail;
/// - where the resamples within the interval are all equal: an interval of no width would look like certainty. Of fewer than
///   40 resamples that is no sign that the statistic does not vary.
///
/// (SciPy refuses fewer than two observations, and gives NaN where one resample is undefined.)
///
/// True coverage of a nominal 95 % interval depends on n and on the statistic; `docs/statistics.md` has the figures that the bench
/// `coverage` measures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bootstrap {
    /// Number of resamples, at least 1.
    #[doc(alias = "n_resamples")]
    pub resamples: usize,
    /// Nominal coverage of the interval, in (0, 1).
    #[doc(alias = "confidence_level")]
    pub level: f64,
    /// Chooses the resamples.
    pub seed: u64,
    /// How the interval is made from them.
    pub method: BootstrapMethod,
}

/// How a bootstrap interval is made from the resamples. Quantiles are NumPy's default, `linear`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BootstrapMethod {
    /// The quantiles at (1 − level)/2 and (1 + level)/2.
    #[default]
    Percentile,
    /// Quantiles moved for the statistic's bias and for a spread that depends on its value (Efron, 1987; `method="BCa"` of
    /// `scipy.stats.bootstrap`). It computes the statistic once more for every row, with that row left out.
    BiasCorrectedAccelerated,
}

impl Default for Bootstrap {
    /// 10,000 resamples, 95 %, seed 0, percentile.
    fn default() -> Self {
        Self { resamples: 10_000, level: 0.95, seed: 0, method: BootstrapMethod::Percentile }
    }
}

/// A statistic with its bootstrap interval, and how much of the bootstrap it rests on.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct BootstrapInterval {
    /// The statistic of the rows as they were given.
    pub estimate: f64,
    /// The interval over the resamples on which the statistic is defined.
    pub interval: Interval,
    /// Resamples drawn.
    pub resamples: usize,
    /// How many of them do not define the statistic (a correlation where one column came out constant). They take no part in
    /// the quantiles, and are at most (1 − level)/2 of all.
    pub undefined: usize,
}

/// A statistic of rows, by their indices. What is behind it is compiled once for all statistics, which a report has a hundred of.
type OfRows<'s> = dyn Fn(&[usize]) -> Result<f64, Error> + Sync + 's;

impl Bootstrap {
    /// The interval of any statistic of n rows, given by their indices.
    ///
    /// `statistic` is called with `0..n` for the estimate, then once per resample with n indices below n, and by
    /// [`BootstrapMethod::BiasCorrectedAccelerated`] with each n − 1 of them, from several threads at once. It must depend on
    /// nothing but the indices. An error for which [`Error::is_undefined`] holds marks a resample as undefined; anywhere else it
    /// ends the bootstrap like any other.
    ///
    /// # Errors
    ///
    /// [`Error::NoResamples`], [`Error::LevelOutOfRange`], [`Error::TooFewItems`] for n = 0, [`Error::NonFiniteStatistic`],
    /// and whatever `statistic` returns; [`Error::UndefinedResamples`] where it is undefined on too many; [`Error::Undefined`] for n < 6,
    /// where resamples do not differ, and if an end is too large for an `f64`. BCa is undefined too if the bias correction is infinite,
    /// because the estimate lies beyond all resamples, if no row left out changes the statistic, and if the correction turns an end round,
    /// as a level near 1 can (1 ≤ a(z₀ + z), where SciPy returns an interval that need not hold the estimate).
    ///
    /// ```
    /// use judge_metrics::{Error, resampling::{Bootstrap, RankedPair}};
    ///
    /// // Which of two judges agrees better with people? The difference, with both judged on the same resampled rows.
    /// let human = [1.0, 2.0, 2.0, 3.0, 4.0, 4.0, 5.0, 5.0];
    /// let good = RankedPair::new(&[1.2, 1.9, 2.4, 2.8, 4.1, 3.6, 4.4, 4.9], &human)?;
    /// let bad = RankedPair::new(&[3.1, 2.2, 1.7, 2.9, 3.0, 4.4, 2.5, 4.7], &human)?;
    /// let difference =
    ///     Bootstrap::default().interval(human.len(), |rows| Ok(good.spearman(rows)? - bad.spearman(rows)?))?;
    /// assert!(difference.estimate > 0.0);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn interval<S>(&self, n: usize, statistic: S) -> Result<BootstrapInterval, Error>
    where
        S: Fn(&[usize]) -> Result<f64, Error> + Sync,
    {
        let all: Vec<usize> = (0..n).collect();
        self.of_units(n, "there is only one row to draw from", &|| statistic(&all), &statistic)
    }

    /// The same where rows come in clusters, such as all answers to one question: whole clusters are drawn, as many as there are, and
    /// their rows come together. `groups[i]` says which cluster row i belongs to.
    ///
    /// Clusters are numbered in the order of their first rows; resample b consists of the clusters [`rows`](Self::rows)`(clusters, b)`,
    /// each one's rows in their order. The jackknife of BCa leaves out whole clusters. With few clusters, below about 30, any such interval
    /// is too narrow.
    ///
    /// # Errors
    ///
    /// Those of [`interval`](Self::interval), where n is the number of clusters.
    ///
    /// ```
    /// use judge_metrics::{Error, resampling::Bootstrap};
    ///
    /// let right = [1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 1.0];
    /// let question = ["a", "a", "b", "b", "c", "c", "d", "d", "e", "e", "f", "f"];
    /// let mean = |rows: &[usize]| Ok(rows.iter().map(|&row| right[row]).sum::<f64>() / rows.len() as f64);
    /// let accuracy = Bootstrap::default().clustered(&question, mean)?;
    /// assert!(accuracy.interval.low < accuracy.estimate && accuracy.estimate < accuracy.interval.high);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn clustered<G, S>(&self, groups: &[G], statistic: S) -> Result<BootstrapInterval, Error>
    where
        G: Ord,
        S: Fn(&[usize]) -> Result<f64, Error> + Sync,
    {
        let (clusters, all) = (clusters(groups), (0..groups.len()).collect::<Vec<usize>>());
        let of_drawn = |drawn: &[usize]| statistic(&rows_of(&clusters, drawn));
        self.of_units(clusters.len(), ONE_CLUSTER, &|| statistic(&all), &of_drawn)
    }

    /// The interval of a statistic of two columns, such as a correlation, whose rows are drawn together. For Spearman's correlation
    /// [`RankedPair`](crate::resampling::RankedPair) is many times faster and gives the same bits.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`], [`Error::NonFinite`] and those of [`interval`](Self::interval).
    pub fn paired<S>(&self, x: &[f64], y: &[f64], statistic: S) -> Result<BootstrapInterval, Error>
    where
        S: Fn(&[f64], &[f64]) -> Result<f64, Error> + Sync,
    {
        check_paired(x, y, 1)?;
        self.interval(x.len(), |rows| {
            let (x, y): (Vec<f64>, Vec<f64>) = rows.iter().map(|&row| (x[row], y[row])).unzip();
            statistic(&x, &y)
        })
    }

    /// The rows of one resample: n indices below n. Lets another program compute on the same resamples.
    pub fn rows(&self, n: usize, resample: usize) -> Vec<usize> {
        let mut rows = Vec::new();
        self.draw(n, resample, &mut rows);
        rows
    }

    pub(super) fn draw(&self, n: usize, resample: usize, rows: &mut Vec<usize>) {
        let mut stream = stream(self.seed, Purpose::Bootstrap, resample);
        rows.clear();
        rows.extend((0..n).map(|_| below(&mut stream, n)));
    }

    /// A unit is what is drawn: a row or a cluster. `only_one` is the reason given where there is one of them. `estimate` is the statistic
    /// of the data in the order given, which need not be that of the clusters.
    fn of_units(
        &self,
        n: usize,
        only_one: &'static str,
        estimate: &dyn Fn() -> Result<f64, Error>,
        statistic: &OfRows<'_>,
    ) -> Result<BootstrapInterval, Error> {
        self.check(n, only_one)?;
        let estimate = finite(estimate()?, None)?;
        self.summaries_of_units(n, Ok(estimate), statistic)?.interval(Result::clone)
    }

    /// Settings, and that there are units enough to draw from.
    pub(super) fn check(&self, n: usize, only_one: &'static str) -> Result<(), Error> {
        check_level(self.level)?;
        if self.resamples == 0 {
            return Err(Error::NoResamples);
        }
        check_count(1, n)?;
        if n == 1 {
            return Err(none(only_one));
        }
        if n < ENOUGH_UNITS {
            return Err(none("fewer than six rows or clusters to draw from do not show how much it varies"));
        }
        Ok(())
    }

    /// The interval that the values of the resamples make, `replicates` being those of the resamples that define the statistic.
    pub(super) fn interval_of(
        &self,
        estimate: f64,
        mut replicates: Vec<f64>,
        acceleration: &dyn Fn() -> Result<f64, Error>,
    ) -> Result<BootstrapInterval, Error> {
        let tail = (1.0 - self.level) / 2.0;
        let undefined = self.resamples - replicates.len();
        if replicates.is_empty() || undefined as f64 > tail * self.resamples as f64 {
            return Err(Error::UndefinedResamples { undefined, resamples: self.resamples });
        }
        replicates.sort_unstable_by(f64::total_cmp);
        let (low, high) = match self.method {
            BootstrapMethod::Percentile => (tail, 1.0 - tail),
            BootstrapMethod::BiasCorrectedAccelerated => {
                let bias = bias_correction(&replicates, estimate)?;
                let acceleration = acceleration()?;
                let z = normal_two_sided_quantile(self.level);
                (moved(bias, acceleration, -z)?, moved(bias, acceleration, z)?)
            }
        };
        let (low, high) = (quantile(&replicates, low)?, quantile(&replicates, high)?);
        // But for rounding, which may part equal resamples.
        if high - low <= 1e-12 * low.abs().max(high.abs()) {
            return Err(match self.resamples >= ENOUGH_RESAMPLES {
                true => Error::NoVariation { statistic: "the statistic" },
                false => none("all resamples are equal, and too few to show that it does not vary: draw 40 or more"),
            });
        }
        Ok(BootstrapInterval {
            estimate,
            interval: Interval { low, high, level: self.level },
            resamples: self.resamples,
            undefined,
        })
    }
}

/// So many equal resamples show that a statistic does not vary; fewer may be equal by chance.
const ENOUGH_RESAMPLES: usize = 40;

/// Why one cluster has no interval.
pub(super) const ONE_CLUSTER: &str = "all rows belong to one cluster, so resamples cannot differ";

/// The rows of the clusters that were drawn, cluster by cluster.
pub(super) fn rows_of(clusters: &[Vec<usize>], drawn: &[usize]) -> Vec<usize> {
    drawn.iter().map(|&cluster| clusters[cluster].as_slice()).collect::<Vec<_>>().concat()
}

fn none(reason: &'static str) -> Error {
    Error::Undefined { statistic: "the bootstrap interval", reason }
}

/// The normal quantile of the share of resamples below the estimate, those equal to it counting half.
fn bias_correction(replicates: &[f64], estimate: f64) -> Result<f64, Error> {
    let below = replicates.partition_point(|&value| value < estimate);
    let up_to = replicates.partition_point(|&value| value <= estimate);
    if up_to == 0 || below == replicates.len() {
        let reason = "the estimate lies beyond all resamples: the bias correction is infinite";
        return Err(Error::Undefined { statistic: "the BCa interval", reason });
    }
    Ok(normal_quantile((below + up_to) as f64 / (2 * replicates.len()) as f64))
}

/// Something of all units but one, leaving out each in turn.
pub(super) fn without_each<T: Send>(
    n: usize,
    of_rest: impl Fn(&[usize]) -> Result<T, Error> + Sync,
) -> Result<Vec<T>, Error> {
    parallel(n, |units| {
        let mut rest: Vec<usize> = (0..n).filter(|&unit| unit != units.start).collect();
        let mut values = Vec::with_capacity(units.len());
        for unit in units {
            if unit > 0 {
                // From all but `unit - 1`, or the same again at the start, to all but `unit`.
                rest[unit - 1] = unit - 1;
            }
            values.push(of_rest(&rest)?);
        }
        Ok(values)
    })
}

/// A sixth of the skewness of the jackknife's influence values (Efron, 1987, section 6).
pub(super) fn acceleration_of(left_out: &[f64]) -> Result<f64, Error> {
    let n = left_out.len();
    // From one of them, so that a large common part neither rounds nor overflows.
    let deviations: Vec<f64> = left_out.iter().map(|value| value - left_out[0]).collect();
    let mean = sum(&deviations) / n as f64;
    let influence: Vec<f64> = deviations.iter().map(|deviation| mean - deviation).collect();
    let largest = influence.iter().fold(0.0, |largest: f64, u| largest.max(u.abs()));
    if largest == 0.0 {
        let reason = "it is the same whichever row is left out: the acceleration is 0/0";
        return Err(Error::Undefined { statistic: "the BCa interval", reason });
    }
    // Scaled first: powers of small influences would vanish, and of large ones overflow.
    let power = |k: i32| influence.iter().map(|u| (u / largest).powi(k)).sum::<f64>();
    Ok(power(3) / power(2).powf(1.5) / 6.0)
}

/// The share of the resamples that is to lie below the end that is at `z` without bias (Efron, 1987, equation 3.9).
fn moved(bias: f64, acceleration: f64, z: f64) -> Result<f64, Error> {
    let slope = 1.0 - acceleration * (bias + z);
    // Beyond its pole the correction falls as z rises: what it gives there is no end of an interval.
    if slope > 0.0 {
        Ok(normal_cdf(bias + (bias + z) / slope))
    } else {
        let reason = "the acceleration is too large for this level: the correction turns round";
        Err(Error::Undefined { statistic: "the BCa interval", reason })
    }
}

pub(super) fn finite(value: f64, resample: Option<usize>) -> Result<f64, Error> {
    if value.is_finite() { Ok(value) } else { Err(Error::NonFiniteStatistic { resample, value }) }
}

/// The quantile `q` in [0, 1] of ascending numbers: NumPy's `linear` (type 7 of Hyndman and Fan, 1996).
///
/// # Errors
///
/// [`Error::TooFewItems`] for no number, [`Error::NonFinite`], [`Error::NotAscending`] for a number below the one before it,
/// [`Error::OutOfRange`] for `q`; [`Error::Undefined`] between two numbers that differ by more than the largest finite number.
///
/// ```
/// use judge_metrics::resampling::quantile;
///
/// let quarters = [0.0, 0.25, 0.5, 0.75, 1.0].map(|q| quantile(&[1.0, 2.0, 3.0, 10.0], q));
/// assert_eq!(quarters, [1.0, 1.75, 2.5, 4.75, 10.0].map(Ok));
/// ```
pub fn quantile(sorted: &[f64], q: f64) -> Result<f64, Error> {
    check_count(1, sorted.len())?;
    check_finite("sorted", sorted)?;
    check_not_descending("sorted", sorted)?;
    check_range("q", None, q, [0.0, 1.0])?;
    let position = q * (sorted.len() - 1) as f64;
    let below = position.floor();
    let weight = position - below;
    // 0 ≤ position ≤ len − 1, so both are in bounds.
    let (low, high) = (sorted[below as usize], sorted[position.ceil() as usize]);
    // From the nearer end, as NumPy does, so that the result is monotone in q.
    in_range("quantile", if weight < 0.5 { low + (high - low) * weight } else { high - (high - low) * (1.0 - weight) })
}
