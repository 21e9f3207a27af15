use std::num::NonZero;
use std::ops::Range;
use std::thread;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::input::{check_level, check_paired};
use crate::{Error, Interval};

/// The percentile bootstrap of a statistic of rows: draw as many rows as there are, with replacement, many times over, and
/// take the quantiles of what the statistic becomes (`scipy.stats.bootstrap` with `paired=True, method="percentile"`).
///
/// Resamples are counter-based: resample b draws from ChaCha8 whose key is `seed` (64 bits, little-endian, then zeros) and whose
/// stream is b, row i being the high half of the 128-bit product of its i-th 64-bit word with n. A result therefore depends
/// on the settings and the data alone, neither on the number of threads nor on the order in which they work.
///
/// Rows are taken as independent. The quantiles at (1 − level)/2 and (1 + level)/2 are NumPy's default, `linear`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bootstrap {
    /// Number of resamples, at least 1.
    pub resamples: usize,
    /// Nominal coverage of the interval, in (0, 1).
    pub level: f64,
    /// Chooses the resamples.
    pub seed: u64,
}

impl Default for Bootstrap {
    /// 10,000 resamples, 95 %, seed 0.
    fn default() -> Self {
        Self { resamples: 10_000, level: 0.95, seed: 0 }
    }
}

/// A statistic with its bootstrap interval, and how much of the bootstrap it rests on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BootstrapInterval {
    /// The statistic of the rows as they were given.
    pub estimate: f64,
    /// The percentile interval over the resamples on which the statistic is defined.
    pub interval: Interval,
    /// Resamples drawn.
    pub resamples: usize,
    /// How many of them do not define the statistic (a correlation where one column came out constant). They take no part in
    /// the quantiles; if they are more than a few, the interval is not to be trusted.
    pub undefined: usize,
}

impl Bootstrap {
    /// The interval of any statistic of n rows, given by their indices.
    ///
    /// `statistic` is called with `0..n` for the estimate and then once per resample with n indices below n, from several threads
    /// at once. It must depend on nothing but the indices. An error for which [`Error::is_undefined`] holds marks a resample
    /// as undefined; on the rows as given it ends the bootstrap like any other.
    ///
    /// # Errors
    ///
    /// [`Error::NoResamples`], [`Error::LevelOutOfRange`], [`Error::TooFewItems`] for n = 0, [`Error::NonFiniteStatistic`],
    /// [`Error::UndefinedOnEveryResample`], and whatever `statistic` returns.
    ///
    /// ```
    /// use judge_metrics::{Error, correlation::spearman, resampling::Bootstrap};
    ///
    /// // Which of two judges agrees better with people? The difference, with both judged on the same resampled rows.
    /// let human = [1.0, 2.0, 2.0, 3.0, 4.0, 4.0, 5.0, 5.0];
    /// let judges = [[1.2, 1.9, 2.4, 2.8, 4.1, 3.6, 4.4, 4.9], [3.1, 2.2, 1.7, 2.9, 3.0, 4.4, 2.5, 4.7]];
    /// let difference = Bootstrap::default().interval(human.len(), |rows| {
    ///     let take = |column: &[f64]| -> Vec<f64> { rows.iter().map(|&row| column[row]).collect() };
    ///     let rho = |judge: &[f64]| Ok::<_, Error>(spearman(&take(judge), &take(&human))?.estimate);
    ///     Ok(rho(&judges[0])? - rho(&judges[1])?)
    /// })?;
    /// assert!(difference.estimate > 0.0);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn interval<S>(&self, n: usize, statistic: S) -> Result<BootstrapInterval, Error>
    where
        S: Fn(&[usize]) -> Result<f64, Error> + Sync,
    {
        check_level(self.level)?;
        if self.resamples == 0 {
            return Err(Error::NoResamples);
        }
        if n == 0 {
            return Err(Error::TooFewItems { required: 1, found: 0 });
        }
        let identity: Vec<usize> = (0..n).collect();
        let estimate = finite(statistic(&identity)?, None)?;

        let mut replicates = self.replicates(n, &statistic)?;
        if replicates.is_empty() {
            return Err(Error::UndefinedOnEveryResample { resamples: self.resamples });
        }
        replicates.sort_unstable_by(f64::total_cmp);
        let tail = (1.0 - self.level) / 2.0;
        Ok(BootstrapInterval {
            estimate,
            interval: Interval {
                low: quantile(&replicates, tail),
                high: quantile(&replicates, 1.0 - tail),
                level: self.level,
            },
            resamples: self.resamples,
            undefined: self.resamples - replicates.len(),
        })
    }

    /// The interval of a statistic of two columns, such as a correlation, whose rows are drawn together.
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
        let mut key = [0; 32];
        key[..8].copy_from_slice(&self.seed.to_le_bytes());
        let mut stream = ChaCha8Rng::from_seed(key);
        stream.set_stream(resample as u64);
        // The product favours some rows over others by less than n / 2^64.
        (0..n).map(|_| ((u128::from(stream.next_u64()) * n as u128) >> 64) as usize).collect()
    }

    /// The statistic on every resample that defines it.
    fn replicates<S>(&self, n: usize, statistic: &S) -> Result<Vec<f64>, Error>
    where
        S: Fn(&[usize]) -> Result<f64, Error> + Sync,
    {
        let share = |resamples: Range<usize>| -> Result<Vec<f64>, Error> {
            let mut replicates = Vec::new();
            for resample in resamples {
                match statistic(&self.rows(n, resample)) {
                    Ok(value) => replicates.push(finite(value, Some(resample))?),
                    Err(error) if error.is_undefined() => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(replicates)
        };
        let share = &share;
        let threads = thread::available_parallelism().map_or(1, NonZero::get).min(self.resamples);
        let bound = |part: usize| (part as u128 * self.resamples as u128 / threads as u128) as usize;
        thread::scope(|scope| {
            let workers: Vec<_> =
                (0..threads).map(|part| scope.spawn(move || share(bound(part)..bound(part + 1)))).collect();
            // Joined in the order of their resamples: of several errors the first resample's is returned.
            let mut replicates = Vec::new();
            for worker in workers {
                let part = worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                replicates.extend(part?);
            }
            Ok(replicates)
        })
    }
}

fn finite(value: f64, resample: Option<usize>) -> Result<f64, Error> {
    if value.is_finite() { Ok(value) } else { Err(Error::NonFiniteStatistic { resample, value }) }
}

/// NumPy's `linear` quantile (type 7 of Hyndman and Fan, 1996) of at least one ascending value; 0 ≤ q ≤ 1.
fn quantile(sorted: &[f64], q: f64) -> f64 {
    let position = q * (sorted.len() - 1) as f64;
    let below = position.floor();
    let weight = position - below;
    // 0 ≤ position ≤ len − 1, so both are in bounds.
    let (low, high) = (sorted[below as usize], sorted[position.ceil() as usize]);
    // From the nearer end, as NumPy does, so that the result is monotone in q.
    if weight < 0.5 { low + (high - low) * weight } else { high - (high - low) * (1.0 - weight) }
}
