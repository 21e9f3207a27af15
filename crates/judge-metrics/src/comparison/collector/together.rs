//! Statistics that follow from one summary of the rows, such as a table of counts: resamples are drawn and summarised once for all of them.

use super::{Collector, UNEQUAL, of_draw};
use crate::comparison::Reported;
use crate::comparison::statistic::PValue;
use crate::{Error, Estimate};

/// A name and what follows from a summary.
pub(crate) type OfSummary<'s, T, R> = (&'s str, Box<dyn Fn(&T) -> Result<R, Error> + 's>);

impl Collector<'_> {
    /// As [`resample`](Self::resample), each statistic with the p-value that is known of it.
    pub(crate) fn resample_together<T: Send>(
        &mut self,
        summary: impl Fn(&[usize]) -> T + Sync,
        statistics: Vec<(OfSummary<'_, T, f64>, Option<PValue>)>,
        n: usize,
    ) {
        if !statistics.iter().any(|((name, _), _)| self.starts(name)) {
            return;
        }
        if self.probabilities.is_some() {
            return statistics.iter().for_each(|((name, _), _)| self.undefined(name, UNEQUAL));
        }
        let summaries = match &self.clusters {
            Some(clusters) => self.bootstrap.clustered_summaries(clusters, &summary),
            None => self.bootstrap.summaries(n, &summary),
        };
        for ((name, statistic), p) in statistics {
            if !self.starts(name) {
                continue;
            }
            let drawn = match &summaries {
                Ok(summaries) => summaries.interval(|summary| statistic(summary).map_err(of_draw)),
                Err(error) => Err(error.clone()),
            };
            self.drawn(name, p, drawn, || statistic(&summary(&(0..n).collect::<Vec<_>>())));
        }
    }

    /// As [`closed`](Self::closed).
    pub(crate) fn closed_together<T: Send>(
        &mut self,
        summary: impl Fn(&[usize]) -> T + Sync,
        statistics: Vec<OfSummary<'_, T, Estimate>>,
        n: usize,
    ) {
        if self.has_clusters() {
            let estimates = statistics.into_iter().map(|(name, statistic)| {
                let estimate: OfSummary<'_, T, f64> = (name, Box::new(move |summary| Ok(statistic(summary)?.estimate)));
                (estimate, None)
            });
            return self.resample_together(summary, estimates.collect(), n);
        }
        let all = summary(&(0..n).collect::<Vec<_>>());
        for (name, statistic) in statistics {
            if self.starts(name) {
                let found = statistic(&all).map(|found| Reported::new(&found, self.level()));
                self.add(name, found);
            }
        }
    }
}
