//! The statistics of one set of rows, as they are found: which are wanted, and where the uncertainty of each comes from.
//!
//! There are three ways in. `closed` takes a statistic that knows its own interval, `resample` one that does not, and `add` one that was made elsewhere. Whatever takes
//! rows as independent gives way where rows come in clusters: closed intervals to the bootstrap of clusters, p-values to none, unless their test is one of
//! clusters. A statistic that the data do not define is kept with its reason; only then can a reader tell "not computed" from "not computable".

mod together;

use std::collections::HashSet;

use super::{ComparedItem, ComparisonSettings, Reported, Statistic};
use crate::agreement::AlternativeAnnotatorTest;
use crate::resampling::{Bootstrap, BootstrapInterval, PermutationTest};
use crate::{Error, Estimate, Interval};
pub(super) use together::OfSummary;

/// A p-value and where it comes from.
#[derive(Clone, Copy)]
pub(super) struct PValue {
    value: f64,
    source: &'static str,
    /// Whether it holds where rows come in clusters.
    holds_in_clusters: bool,
}

impl PValue {
    /// Of a test that takes rows as independent.
    pub(super) fn of_rows(value: f64, source: &'static str) -> Self {
        Self { value, source, holds_in_clusters: false }
    }

    /// Of a test of whole clusters, where rows come in some.
    pub(super) fn of_clusters(value: f64, source: &'static str) -> Self {
        Self { value, source, holds_in_clusters: true }
    }
}

/// The statistics of one set of rows, as they are found.
pub(super) struct Collector<'a> {
    bootstrap: Bootstrap,
    pub(super) alternative: AlternativeAnnotatorTest,
    only: Option<&'a [String]>,
    /// Which cluster each row belongs to, where clusters were named.
    pub(super) clusters: Option<Vec<&'a str>>,
    pub(super) found: Vec<(String, Statistic)>,
}

impl<'a> Collector<'a> {
    pub(super) fn new(settings: &'a ComparisonSettings, items: &[&'a ComparedItem]) -> Self {
        Self {
            bootstrap: settings.bootstrap,
            alternative: settings.alternative,
            only: settings.only.as_deref(),
            clusters: items.iter().map(|item| item.cluster.as_deref()).collect(),
            found: Vec::new(),
        }
    }

    /// For rows of another kind, all statistics of which are wanted. Where each row is a cluster of its own, rows are independent.
    pub(super) fn of_rows(bootstrap: Bootstrap, clusters: Option<Vec<&'a str>>) -> Self {
        let distinct = |clusters: &Vec<&str>| clusters.iter().collect::<HashSet<_>>().len() == clusters.len();
        let clusters = clusters.filter(|clusters| !distinct(clusters));
        Self { bootstrap, alternative: AlternativeAnnotatorTest::default(), only: None, clusters, found: Vec::new() }
    }

    pub(super) fn level(&self) -> f64 {
        self.bootstrap.level
    }

    pub(super) fn has_clusters(&self) -> bool {
        self.clusters.is_some()
    }

    pub(super) fn wants(&self, name: &str) -> bool {
        self.only.is_none_or(|only| only.iter().any(|wanted| wanted == name))
    }

    fn push(&mut self, name: &str, statistic: Statistic) {
        if self.wants(name) {
            self.found.push((name.to_owned(), statistic));
        }
    }

    pub(super) fn add(&mut self, name: &str, known: Result<Reported, Error>) {
        self.push(
            name,
            known.map_or_else(|error| Statistic::Undefined { reason: error.to_string() }, Statistic::Defined),
        );
    }

    pub(super) fn undefined(&mut self, name: &str, reason: &str) {
        self.push(name, Statistic::Undefined { reason: reason.to_owned() });
    }

    pub(super) fn all_undefined(&mut self, names: &[&str], reason: &str) {
        names.iter().for_each(|name| self.undefined(name, reason));
    }

    /// The chance of a difference of two columns as large, if they change places within rows or within clusters; `None` where the data define none.
    pub(super) fn exchange(
        &self,
        x: &[f64],
        y: &[f64],
        statistic: impl Fn(&[f64], &[f64]) -> Result<f64, Error> + Sync,
    ) -> Option<PValue> {
        let test = PermutationTest { seed: self.bootstrap.seed, ..PermutationTest::default() };
        let result = match &self.clusters {
            Some(clusters) => test.clustered(x, y, clusters, statistic),
            None => test.paired(x, y, statistic),
        };
        result.ok().map(|found| PValue::of_clusters(found.p_value, "permutation"))
    }

    /// By the bootstrap, of rows or of clusters. A p-value that takes rows as independent is left out where they come in clusters.
    pub(super) fn resample(
        &mut self,
        name: &str,
        p: Option<PValue>,
        statistic: impl Fn(&[usize]) -> Result<f64, Error> + Sync,
        n: usize,
    ) {
        if !self.wants(name) {
            return;
        }
        let of_draw = |rows: &[usize]| statistic(rows).map_err(of_draw);
        let drawn = match &self.clusters {
            Some(clusters) => self.bootstrap.clustered(clusters, of_draw),
            None => self.bootstrap.interval(n, of_draw),
        };
        self.drawn(name, p, drawn, || statistic(&(0..n).collect::<Vec<_>>()));
    }

    /// What a bootstrap of rows or clusters found. `of_all` is the statistic of all rows.
    fn drawn(
        &mut self,
        name: &str,
        p: Option<PValue>,
        drawn: Result<BootstrapInterval, Error>,
        of_all: impl FnOnce() -> Result<f64, Error>,
    ) {
        let what = if self.has_clusters() { "bootstrap of clusters" } else { "bootstrap" };
        let p = p.filter(|p| !self.has_clusters() || p.holds_in_clusters);
        let source = p.map_or_else(String::new, |p| format!("; p: {}", p.source));
        let p = p.map(|p| p.value);
        let known = match drawn {
            Ok(drawn) => {
                let (interval, method) = trusted(&drawn, what, &source);
                Ok(Reported { estimate: drawn.estimate, interval, p, method })
            }
            // The statistic may be defined where its spread is not.
            Err(error) if error.is_undefined() || matches!(error, Error::UndefinedOnEveryResample { .. }) => of_all()
                .map(|estimate| Reported {
                    estimate,
                    interval: None,
                    p,
                    method: format!("no interval: {error}{source}"),
                }),
            Err(error) => Err(error),
        };
        self.add(name, known);
    }

    /// By a closed form, which holds for rows that are independent; by the bootstrap where they come in clusters.
    pub(super) fn closed(
        &mut self,
        name: &str,
        statistic: impl Fn(&[usize]) -> Result<Estimate, Error> + Sync,
        n: usize,
    ) {
        if self.has_clusters() {
            self.resample(name, None, |rows| Ok(statistic(rows)?.estimate), n);
        } else if self.wants(name) {
            let all: Vec<usize> = (0..n).collect();
            let found = Statistic::estimated(statistic(&all), self.level());
            self.push(name, found);
        }
    }
}

/// A draw may leave too few of what is needed: it is then undefined like others. Of all rows the reason is kept.
fn of_draw(error: Error) -> Error {
    match error {
        Error::TooFewItems { .. } => Error::Undefined { statistic: "a resample", reason: "it has too few items" },
        error => error,
    }
}

/// The interval and where it comes from. A percentile interval that does not hold the estimate shows that resamples are biased by more than
/// they vary (as a calibration error's are, upwards): it says nothing about the statistic.
pub(super) fn trusted(drawn: &BootstrapInterval, what: &str, source: &str) -> (Option<Interval>, String) {
    let Interval { low, high, .. } = drawn.interval;
    // Where no resample differs, rounding alone may part the two.
    let slack = 1e-12 * drawn.estimate.abs();
    if drawn.estimate < low - slack || drawn.estimate > high + slack {
        return (None, format!("no interval: that of the {what} misses the estimate, so resamples are biased{source}"));
    }
    let interval = Interval { low: low.min(drawn.estimate), high: high.max(drawn.estimate), ..drawn.interval };
    let method = match drawn.undefined {
        0 => format!("{what}{source}"),
        undefined => format!("{what}{source}; undefined in {undefined} of {}", drawn.resamples),
    };
    (Some(interval), method)
}

pub(super) fn take<T: Copy>(column: &[T], rows: &[usize]) -> Vec<T> {
    rows.iter().map(|&row| column[row]).collect()
}
