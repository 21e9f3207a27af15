//! The statistics of one set of rows, as they are found: which are wanted, and where the uncertainty of each comes from.
//!
//! There are four ways in. `closed` takes a statistic that knows its own interval, `mean` one that is a mean over rows, `resample` one that
//! knows none, and `add` one that was made elsewhere. Whatever takes rows as independent gives way where rows come in clusters: means to
//! the clustered standard error, other closed intervals to the bootstrap of clusters, p-values to none, unless their test is one of
//! clusters. Clusters of one row each are no clusters. A statistic that the data do not define is kept with its reason; only then can a
//! reader tell "not computed" from "not computable".

mod together;

use std::cell::Cell;
use std::collections::HashSet;

use super::rank_test::{RankTests, in_words};
use super::statistic::PValue;
use super::{ComparedItem, ComparisonSettings, Reported, Statistic, StatisticStarted};
use crate::agreement::AlternativeAnnotatorTest;
use crate::estimate::SHARE;
use crate::groups::take;
use crate::means::{clustered_mean_of_scale, largest, mean_of, mean_of_scale, weighted_mean_of_scale};
use crate::resampling::{Bootstrap, BootstrapInterval, PermutationTest};
use crate::{Error, Estimate, Interval, Proportion};
pub(super) use together::OfSummary;

/// The statistics of one set of rows, as they are found.
pub(super) struct Collector<'a> {
    bootstrap: Bootstrap,
    pub(super) alternative: AlternativeAnnotatorTest,
    only: Option<&'a [String]>,
    /// Which cluster each row belongs to, where clusters were named.
    clusters: Option<Vec<&'a str>>,
    /// With which probability each row was drawn, where these differ.
    probabilities: Option<Vec<f64>>,
    pub(super) found: Vec<(String, Statistic)>,
    observer: Option<Observer<'a>>,
}

/// Who is told of each statistic, and how many of those that are wanted it was told of, or has passed over.
pub(super) struct Observer<'a> {
    /// All statistics there are, in the order of a report.
    names: &'a [&'a str],
    tell: &'a dyn Fn(StatisticStarted<'_>),
    told: Cell<usize>,
}

impl<'a> Observer<'a> {
    pub(super) fn new(names: &'a [&'a str], tell: &'a dyn Fn(StatisticStarted<'_>)) -> Self {
        Self { names, tell, told: Cell::new(0) }
    }
}

impl<'a> Collector<'a> {
    pub(super) fn new(settings: &'a ComparisonSettings, items: &[&'a ComparedItem], observer: Observer<'a>) -> Self {
        let clusters = items.iter().map(|item| item.cluster.as_deref()).collect();
        let probabilities: Option<Vec<f64>> = items.iter().map(|item| item.sampling_probability).collect();
        Self {
            probabilities: probabilities.filter(|probabilities| differ(probabilities)),
            alternative: settings.alternative,
            only: settings.only.as_deref(),
            observer: Some(observer),
            ..Self::of_rows(settings.bootstrap, clusters)
        }
    }

    /// For rows of another kind, all statistics of which are wanted. `clusters` has the cluster of each row, where all rows name one.
    pub(super) fn of_rows(bootstrap: Bootstrap, clusters: Option<Vec<&'a str>>) -> Self {
        Self {
            bootstrap,
            alternative: AlternativeAnnotatorTest::default(),
            only: None,
            clusters: clusters.filter(|clusters| are_shared(clusters)),
            probabilities: None,
            found: Vec::new(),
            observer: None,
        }
    }

    pub(super) fn level(&self) -> f64 {
        self.bootstrap.level
    }

    pub(super) fn has_clusters(&self) -> bool {
        self.clusters.is_some()
    }

    /// Which cluster each row belongs to, where they share some.
    pub(super) fn clusters(&self) -> Option<&[&'a str]> {
        self.clusters.as_deref()
    }

    /// What follows from some of the rows alone.
    pub(super) fn on_rows(&mut self, rows: &[usize], collect: impl FnOnce(&mut Self)) {
        let clusters = self.clusters.as_ref().map(|clusters| take(clusters, rows));
        let probabilities = self.probabilities.as_ref().map(|probabilities| take(probabilities, rows));
        let all = (self.clusters.take(), self.probabilities.take());
        self.clusters = clusters.filter(|clusters| are_shared(clusters));
        self.probabilities = probabilities.filter(|probabilities| differ(probabilities));
        collect(self);
        (self.clusters, self.probabilities) = all;
    }

    /// Whether rows were drawn with unequal probabilities. Means of rows allow for that, and what has a weighted form
    /// (`weighted.rs`); others are then undefined, and say so.
    pub(super) fn refuses(&mut self, name: &str) -> bool {
        let refuses = self.probabilities.is_some();
        if refuses {
            self.undefined(name, UNEQUAL);
        }
        refuses
    }

    /// With which probability each row was drawn, where these differ.
    pub(super) fn probabilities(&self) -> Option<&[f64]> {
        self.probabilities.as_deref()
    }

    /// The weighted form of a statistic that is undefined without weights: by the bootstrap, of rows or of clusters, which keep theirs.
    pub(super) fn replace_weighted(
        &mut self,
        name: &str,
        statistic: impl Fn(&[usize]) -> Result<f64, Error> + Sync,
        n: usize,
    ) {
        let undefined = |(known, found): &(String, Statistic)| {
            known == name && matches!(found, Statistic::Undefined { reason } if reason == UNEQUAL)
        };
        let Some(place) = self.found.iter().position(undefined) else { return };
        let of_draw = |rows: &[usize]| statistic(rows).map_err(of_draw);
        let (drawn, what) = match &self.clusters {
            Some(clusters) => (self.bootstrap.clustered(clusters, of_draw), "weighted, bootstrap of clusters"),
            None => (self.bootstrap.interval(n, of_draw), "weighted, bootstrap"),
        };
        let known = Reported::drawn(drawn, what, || statistic(&(0..n).collect::<Vec<_>>()));
        self.found[place].1 = match known {
            Ok(known) => Statistic::Defined(known.tested(None)),
            Err(error) => Statistic::Undefined { reason: error.to_string() },
        };
    }

    fn wants(&self, name: &str) -> bool {
        self.only.is_none_or(|only| only.iter().any(|wanted| wanted == name))
    }

    /// Whether this statistic is wanted. If so it is computed now, which the observer is told, once: whatever computes one by itself asks
    /// here first.
    pub(super) fn starts(&self, name: &str) -> bool {
        let wanted = self.wants(name);
        if let (true, Some(Observer { names, tell, told })) = (wanted, &self.observer) {
            let number = || names.iter().filter(|known| self.wants(known)).position(|known| *known == name);
            if let Some(number) = number().map(|place| place + 1).filter(|number| *number > told.get()) {
                told.set(number);
                let of = names.iter().filter(|known| self.wants(known)).count();
                tell(StatisticStarted { name, number, of });
            }
        }
        wanted
    }

    fn push(&mut self, name: &str, statistic: Statistic) {
        if self.wants(name) {
            self.found.push((name.to_owned(), statistic));
        }
    }

    pub(super) fn add(&mut self, name: &str, known: Result<Reported, Error>) {
        match known {
            Ok(_) if self.refuses(name) => {}
            Ok(known) => self.push(name, Statistic::Defined(known)),
            Err(error) => self.undefined(name, &error.to_string()),
        }
    }

    pub(super) fn undefined(&mut self, name: &str, reason: &str) {
        self.push(name, Statistic::Undefined { reason: reason.to_owned() });
    }

    pub(super) fn all_undefined(&mut self, names: &[&str], reason: &str) {
        names.iter().for_each(|name| self.undefined(name, reason));
    }

    /// The chance of a difference of two columns as large, if they change places within rows or within clusters; `None` where the data
    /// define none. Differences that are within `rounding` of one another are equal.
    pub(super) fn exchange(
        &self,
        x: &[f64],
        y: &[f64],
        rounding: f64,
        statistic: impl Fn(&[f64], &[f64]) -> Result<f64, Error> + Sync,
    ) -> Option<PValue> {
        let both = [x, y].concat();
        self.exchange_rows(&both, rounding, |one, other| statistic(&take(&both, one), &take(&both, other)))
    }

    /// The same of what two judges say, the first of each row and then the second: the statistic gets the places in `said` of each one.
    pub(super) fn exchange_rows<T: PartialEq>(
        &self,
        said: &[T],
        rounding: f64,
        statistic: impl Fn(&[usize], &[usize]) -> Result<f64, Error> + Sync,
    ) -> Option<PValue> {
        if self.probabilities.is_some() {
            return None;
        }
        let test = PermutationTest { seed: self.bootstrap.seed, rounding, ..PermutationTest::default() };
        let (first, second) = said.split_at(said.len() / 2);
        let result = match &self.clusters {
            Some(clusters) => test.exchanged(clusters, first == second, statistic),
            None => test.exchanged(&(0..first.len()).collect::<Vec<_>>(), first == second, statistic),
        };
        result.ok().map(|found| PValue { holds_in_clusters: true, ..in_words(&found) })
    }

    /// The chance of a rank correlation as large. It takes rows as independent: `None` where they come in clusters, without computing it.
    pub(super) fn rank_test(&self, test: impl FnOnce(&RankTests) -> Option<PValue>) -> Option<PValue> {
        let alike = !self.has_clusters() && self.probabilities.is_none();
        if alike { test(&RankTests { seed: self.bootstrap.seed }) } else { None }
    }

    /// A better interval for a statistic that has one in closed form; as wide as it must be to hold the estimate, which may be below all
    /// that the model of the interval allows.
    pub(super) fn interval_of(&mut self, name: &str, interval: impl FnOnce() -> Option<(Interval, &'static str)>) {
        if self.has_clusters() {
            return;
        }
        let known = self.found.iter_mut().rfind(|(known, _)| known == name);
        let Some((_, Statistic::Defined(known))) = known else { return };
        if let (Some(_), Some((interval, method))) = (known.interval, interval()) {
            let Interval { low, high, level } = interval;
            known.interval = Some(Interval { low: low.min(known.estimate), high: high.max(known.estimate), level });
            method.clone_into(&mut known.method);
        }
    }

    /// Adds to the method of a statistic, where it is defined.
    pub(super) fn remark(&mut self, name: &str, remark: &str) {
        if let Some((_, Statistic::Defined(known))) = self.found.iter_mut().rfind(|(known, _)| known == name) {
            known.method.push_str(remark);
        }
    }

    /// Another test of a statistic that was found with one, where rows are independent and this test is known of so many.
    pub(super) fn retest(&mut self, name: &str, test: impl FnOnce(&RankTests) -> Option<PValue>) {
        let has_test = |(known, statistic): &(String, Statistic)| {
            known == name && statistic.defined().is_some_and(|known| known.p.is_some())
        };
        let Some(place) = self.found.iter().rposition(has_test) else { return };
        let p = self.rank_test(test);
        if let (Some(p), Statistic::Defined(known)) = (p, &mut self.found[place].1) {
            *known = known.clone().tested(Some(p));
        }
    }

    /// By the bootstrap, of rows or of clusters. A p-value that takes rows as independent is left out where they come in clusters.
    pub(super) fn resample(
        &mut self,
        name: &str,
        p: Option<PValue>,
        statistic: impl Fn(&[usize]) -> Result<f64, Error> + Sync,
        n: usize,
    ) {
        if !self.starts(name) || self.refuses(name) {
            return;
        }
        let of_draw = |rows: &[usize]| statistic(rows).map_err(of_draw);
        let drawn = match &self.clusters {
            Some(clusters) => self.bootstrap.clustered(clusters, of_draw),
            None => self.bootstrap.interval(n, of_draw),
        };
        self.drawn(name, p, drawn, || statistic(&(0..n).collect::<Vec<_>>()));
    }

    /// What a bootstrap of rows or of clusters found. `of_all` is the statistic of all rows.
    fn drawn(
        &mut self,
        name: &str,
        p: Option<PValue>,
        drawn: Result<BootstrapInterval, Error>,
        of_all: impl FnOnce() -> Result<f64, Error>,
    ) {
        let what = if self.has_clusters() { "bootstrap of clusters" } else { "bootstrap" };
        let known = Reported::drawn(drawn, what, of_all);
        self.add(name, known.map(|known| known.tested(self.allowed(p))));
    }

    /// A p-value that these rows allow.
    fn allowed(&self, p: Option<PValue>) -> Option<PValue> {
        p.filter(|p| self.probabilities.is_none() && (!self.has_clusters() || p.holds_in_clusters))
    }

    /// The mean of `items`: as `closed` computes it where rows are independent, and with a clustered standard error where they come in
    /// clusters, of which the bootstrap takes more. Weighted where rows were drawn with unequal probabilities.
    pub(super) fn mean(&mut self, name: &str, items: &Items<'_>, closed: impl FnOnce() -> Result<Estimate, Error>) {
        if !self.mean_of_clusters(name, items) && self.starts(name) {
            let known = closed().map(|found| Reported::new(&found, self.level()));
            let known = known.map(|known| items.tested(known, items.values.len()));
            self.push_found(name, known);
        }
    }

    /// The mean of these numbers: a share, with Wilson's interval, where all of them are 0 or 1 of what lies from 0 to 1, else with
    /// Student's.
    pub(super) fn mean_or_share(&mut self, name: &'static str, items: &Items<'_>) {
        let is_share = items.range == SHARE && items.values.iter().all(|&value| value == 0.0 || value == 1.0);
        self.mean(name, items, || {
            if is_share {
                let count = items.values.iter().filter(|&&value| value == 1.0).count();
                Proportion { count, n: items.values.len() }.try_into()
            } else {
                Ok(mean_of_scale(name, items.values, items.scale)?.within(items.range))
            }
        });
    }

    /// The share of rows that count: Wilson's interval where rows are independent.
    pub(super) fn share(&mut self, name: &str, counts: &[bool]) {
        let items: Vec<f64> = counts.iter().map(|&counts| f64::from(u8::from(counts))).collect();
        self.mean(name, &Items::within(&items, SHARE), || Proportion::of(counts).try_into());
    }

    /// The share of the commonest of these labels (the first of several in their order): what is right of an answer that is always the same.
    /// A row counts for as many as it stands for.
    pub(super) fn share_of_commonest(&mut self, name: &str, labels: &[usize]) {
        let mut counts = vec![0.0; labels.iter().max().map_or(0, |most| most + 1)];
        for (row, &label) in labels.iter().enumerate() {
            counts[label] += self.probabilities.as_ref().map_or(1.0, |probabilities| probabilities[row].recip());
        }
        let commonest = (0..counts.len()).rev().max_by(|&one, &other| f64::total_cmp(&counts[one], &counts[other]));
        self.share(name, &labels.iter().map(|&label| Some(label) == commonest).collect::<Vec<_>>());
    }

    /// The mean over clusters, or over rows drawn with unequal probabilities, which leaves other rows to the caller: whether it was one.
    pub(super) fn mean_of_clusters(&mut self, name: &str, items: &Items<'_>) -> bool {
        let Items { values, range, scale, tested } = *items;
        let (of_what, mean) = match (&self.clusters, &self.probabilities) {
            (Some(clusters), None) => ("Student t of clusters", clustered_mean_of_scale(values, scale, clusters)),
            (Some(clusters), Some(of_rows)) => {
                ("weighted, Student t of clusters", weighted_mean_of_scale(values, scale, of_rows, clusters))
            }
            (None, Some(of_rows)) => {
                let rows: Vec<usize> = (0..values.len()).collect();
                ("weighted, Student t", weighted_mean_of_scale(values, scale, of_rows, &rows))
            }
            (None, None) => return false,
        };
        if self.starts(name) {
            let known = match mean {
                Ok(mean) => {
                    let known = Reported::new(&mean.within(range), self.level());
                    Ok(Reported { method: known.method.replace("Student t", of_what), ..known })
                }
                // The mean is defined where its spread is not.
                Err(Error::TooFewItems { .. } | Error::TooFewClusters { .. }) if self.probabilities.is_none() => {
                    mean_of("mean", values).map(|mean| Reported::of_one_cluster(mean.estimate))
                }
                Err(error) => Err(error),
            };
            let tested = known.map(|known| match tested {
                Tested::No => known.tested(None),
                Tested::By(Some(p)) if self.allowed(Some(p)).is_some() => known.tested(Some(p)),
                _ => items.tested(known, self.clusters.as_deref().map_or(values.len(), count_clusters)),
            });
            self.push_found(name, tested);
        }
        true
    }

    /// Whatever the error is, as the reason why it is undefined.
    fn push_found(&mut self, name: &str, known: Result<Reported, Error>) {
        let undefined = |error: Error| Statistic::Undefined { reason: error.to_string() };
        self.push(name, known.map_or_else(undefined, Statistic::Defined));
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
        } else if self.starts(name) {
            let all: Vec<usize> = (0..n).collect();
            let found = statistic(&all).map(|found| Reported::new(&found, self.level()));
            self.add(name, found);
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

/// Numbers, one to a row, whose mean is a statistic.
#[derive(Clone, Copy)]
pub(super) struct Items<'a> {
    values: &'a [f64],
    /// Which the mean cannot leave.
    range: [f64; 2],
    /// The size of the largest numbers that they are differences of, or 0: how large their rounding may be.
    scale: f64,
    tested: Tested,
}

impl<'a> Items<'a> {
    /// Not tested: nobody asks whether they are 0.
    pub(super) fn within(values: &'a [f64], range: [f64; 2]) -> Self {
        Self { values, range, scale: scale_of(range), tested: Tested::No }
    }

    /// Differences, tested by this test where rows allow it, else by Student's t.
    pub(super) fn differences(values: &'a [f64], range: [f64; 2], p: Option<PValue>) -> Self {
        Self { values, range, scale: scale_of(range), tested: Tested::By(p) }
    }

    /// Made of these numbers.
    pub(super) fn made_of(mut self, columns: &[&[f64]]) -> Self {
        self.scale = columns.iter().map(|column| largest(column)).fold(self.scale, f64::max);
        self
    }

    /// The mean with the p-value that is asked for. Where so many units, rows or clusters, all differ from 0 by the same, it is that of
    /// their signs.
    fn tested(&self, known: Reported, units: usize) -> Reported {
        match self.tested {
            Tested::By(_) if known.no_variation && known.estimate != 0.0 => {
                known.tested(Some(PValue::of_clusters(2f64.powi(1 - units.min(1_000) as i32), "signs")))
            }
            Tested::By(_) | Tested::No => known,
        }
    }
}

/// The size of what lies in this range; 0 where it has no end.
fn scale_of([_, most]: [f64; 2]) -> f64 {
    if most.is_finite() { most.abs() } else { 0.0 }
}

/// How many there are.
fn count_clusters(clusters: &[&str]) -> usize {
    clusters.iter().collect::<HashSet<_>>().len()
}

/// How a mean is tested.
#[derive(Clone, Copy)]
enum Tested {
    /// What tests a mean of 0 tests nothing that was asked.
    No,
    /// A difference, by this test where these rows allow it, else by Student's t.
    By(Option<PValue>),
}

/// Why a statistic of rows that were drawn with unequal probabilities is undefined.
const UNEQUAL: &str = "rows were drawn with unequal probabilities, for which means, correlations and kappas are weighted; this takes rows as drawn alike";

fn differ(probabilities: &[f64]) -> bool {
    probabilities.iter().any(|&probability| probability != probabilities[0])
}

/// Whether some cluster has two rows: rows that are each a cluster of their own are independent.
fn are_shared(clusters: &[&str]) -> bool {
    count_clusters(clusters) < clusters.len()
}

/// A statistic of two columns, of the rows that are drawn.
pub(super) fn of_both<A: Copy + Sync, B: Copy + Sync, T>(
    first: &[A],
    second: &[B],
    statistic: impl Fn(&[A], &[B]) -> T + Sync,
) -> impl Fn(&[usize]) -> T + Sync {
    move |rows| statistic(&take(first, rows), &take(second, rows))
}
