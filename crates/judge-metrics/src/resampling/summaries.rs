use crate::Error;
use crate::groups::clusters;
use crate::resampling::bootstrap::{ONE_CLUSTER, acceleration_of, finite, rows_of, without_each};
use crate::resampling::stream::parallel;
use crate::resampling::{Bootstrap, BootstrapInterval, BootstrapMethod};

/// What the rows of each resample come to, such as a table of counts: several statistics follow from it, and rows are drawn and counted
/// once for all of them.
///
/// [`interval`](Self::interval) has the same bits as [`Bootstrap::interval`] of a statistic that makes the summary of its rows first.
pub(crate) struct Summaries<T> {
    bootstrap: Bootstrap,
    all: T,
    resamples: Vec<T>,
    /// All units but one, for the jackknife: empty where the method takes none.
    left_out: Vec<T>,
}

impl Bootstrap {
    /// Of n rows, given by their indices.
    ///
    /// # Errors
    ///
    /// Those of [`interval`](Self::interval), but for the statistic's.
    pub(crate) fn summaries<T: Send>(
        &self,
        n: usize,
        summary: impl Fn(&[usize]) -> T + Sync,
    ) -> Result<Summaries<T>, Error> {
        self.check(n, "there is only one row to draw from")?;
        let all: Vec<usize> = (0..n).collect();
        self.summaries_of_units(n, summary(&all), summary)
    }

    /// The same where rows come in clusters, as for [`clustered`](Self::clustered).
    ///
    /// # Errors
    ///
    /// Those of [`clustered`](Self::clustered), but for the statistic's.
    pub(crate) fn clustered_summaries<G: Ord, T: Send>(
        &self,
        groups: &[G],
        summary: impl Fn(&[usize]) -> T + Sync,
    ) -> Result<Summaries<T>, Error> {
        let (clusters, all) = (clusters(groups), (0..groups.len()).collect::<Vec<usize>>());
        self.check(clusters.len(), ONE_CLUSTER)?;
        self.summaries_of_units(clusters.len(), summary(&all), |drawn| summary(&rows_of(&clusters, drawn)))
    }

    /// Of n rows or clusters that are drawn, beside the summary of all rows.
    pub(super) fn summaries_of_units<T: Send>(
        &self,
        n: usize,
        all: T,
        summary: impl Fn(&[usize]) -> T + Sync,
    ) -> Result<Summaries<T>, Error> {
        let resamples = parallel(self.resamples, |resamples| {
            let mut rows = Vec::with_capacity(n);
            let of = |resample| {
                self.draw(n, resample, &mut rows);
                summary(&rows)
            };
            Ok(resamples.map(of).collect())
        })?;
        let left_out = match self.method {
            BootstrapMethod::Percentile => Vec::new(),
            BootstrapMethod::BiasCorrectedAccelerated => without_each(n, |rest| Ok(summary(rest)))?,
        };
        Ok(Summaries { bootstrap: *self, all, resamples, left_out })
    }
}

impl<T> Summaries<T> {
    /// The interval of a statistic that follows from the summary of its rows.
    ///
    /// # Errors
    ///
    /// Those of [`Bootstrap::interval`] that the statistic brings about.
    pub(crate) fn interval(&self, statistic: impl Fn(&T) -> Result<f64, Error>) -> Result<BootstrapInterval, Error> {
        let estimate = finite(statistic(&self.all)?, None)?;
        let mut replicates = Vec::with_capacity(self.resamples.len());
        for (resample, summary) in self.resamples.iter().enumerate() {
            match statistic(summary) {
                Ok(value) => replicates.push(finite(value, Some(resample))?),
                Err(error) if error.is_undefined() => {}
                Err(error) => return Err(error),
            }
        }
        self.bootstrap.interval_of(estimate, replicates, &|| {
            let left_out = self.left_out.iter().map(|summary| finite(statistic(summary)?, None));
            acceleration_of(&left_out.collect::<Result<Vec<_>, Error>>()?)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where a statistic is undefined on some resamples too.
    #[test]
    fn a_summary_of_clusters_gives_the_interval_of_the_statistic_itself() {
        let values = [0.5, 2.0, -1.0, 3.0, 0.0, 1.5, 4.0, -2.5, 1.0, 2.5, 0.25, 3.5];
        let groups: Vec<usize> = (0..values.len()).map(|row| row / 2).collect();
        let sum = |rows: &[usize]| rows.iter().map(|&row| values[row]).sum::<f64>();
        for method in [BootstrapMethod::Percentile, BootstrapMethod::BiasCorrectedAccelerated] {
            let bootstrap = Bootstrap { resamples: 2000, method, ..Bootstrap::default() };
            // One resample in a hundred has a sum of 20 or more.
            for most in [f64::INFINITY, 20.0] {
                let too_large = Error::Undefined { statistic: "a sum", reason: "it is too large" };
                let statistic = |sum: f64| if sum < most { Ok(sum) } else { Err(too_large.clone()) };
                let summaries = bootstrap.clustered_summaries(&groups, sum).unwrap();
                let found = summaries.interval(|&sum| statistic(sum)).unwrap();
                assert_eq!(found.undefined > 0, most.is_finite());
                assert_eq!(bootstrap.clustered(&groups, |rows| statistic(sum(rows))), Ok(found));
            }
        }
    }
}
