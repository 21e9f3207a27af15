//! The judge beside one other or several: what rows define, the judge less each of the others, and p-values adjusted for their number.
//!
//! With one other judge a difference has the statistic's own name. With several it is `difference_mae:FIELD`, and what is adjusted is the
//! p-value of one statistic over the other judges: the question is which of them differ from the first, by one measure.

use anyhow::Result;
use judge_metrics::comparison::{
    ComparedItem, Comparison, ComparisonSettings, Comparisons, Rating, STATISTICS, Statistic, StatisticStarted,
};
use judge_metrics::multiplicity::Adjustment;

/// The judge and the others, on the same rows.
pub struct Judges {
    /// The judge beside each of the others; alone where there is none.
    beside: Vec<Comparison>,
    others: Vec<String>,
    adjustment: Adjustment,
}

impl Judges {
    /// `others` has the name of each other judge and its rating of each item. `settings` names what is wanted.
    ///
    /// # Errors
    /// If a comparison cannot be made.
    pub fn new(
        items: Vec<ComparedItem>,
        others: Vec<(String, Vec<Rating>)>,
        settings: &ComparisonSettings,
        adjustment: Adjustment,
    ) -> Result<Self> {
        let names = others.iter().map(|(name, _)| name.clone()).collect();
        let mut beside = Vec::new();
        for (place, (_, ratings)) in others.into_iter().enumerate() {
            let rated = items.iter().zip(ratings);
            let items = rated.map(|(item, rating)| ComparedItem { second: Some(rating), ..item.clone() }).collect();
            let wanted =
                |name: &&&str| settings.only.iter().flatten().any(|known| known == **name) || settings.only.is_none();
            // What is of the judge alone is computed once.
            let differences = || differences().filter(wanted).map(|name| (*name).to_owned()).collect();
            let only = if place == 0 { settings.only.clone() } else { Some(differences()) };
            beside.push(Comparison::new(items, ComparisonSettings { only, ..settings.clone() })?);
        }
        if beside.is_empty() {
            beside.push(Comparison::new(items, settings.clone())?);
        }
        Ok(Self { beside, others: names, adjustment })
    }

    /// The judge beside the first of the others.
    pub fn first(&self) -> &Comparison {
        &self.beside[0]
    }

    /// How many p-values of a statistic are adjusted together; `None` where there is no more than one.
    pub fn adjusted(&self) -> Option<usize> {
        Some(self.others.len()).filter(|&others| others > 1)
    }

    /// The statistics of some rows, in the order of a report.
    pub fn statistics(&self, rows: &[usize], observer: &dyn Fn(StatisticStarted<'_>)) -> Comparisons {
        let mut found = self.beside[0].statistics_observed(rows, observer);
        if self.others.len() < 2 {
            return found;
        }
        let mut all = Vec::new();
        for (place, (comparison, judge)) in self.beside.iter().zip(&self.others).enumerate() {
            let of_judge =
                if place == 0 { std::mem::take(&mut found.statistics) } else { comparison.statistics(rows).statistics };
            let named = |(name, statistic): (String, Statistic)| {
                if differences().any(|known| **known == name) {
                    (format!("{name}:{judge}"), statistic)
                } else {
                    (name, statistic)
                }
            };
            all.extend(of_judge.into_iter().map(named));
        }
        // Stable: the other judges in their order.
        all.sort_by_key(|(name, _)| STATISTICS.iter().position(|known| *known == statistic_of(name)));
        for of_one in all.chunk_by_mut(|(a, _), (b, _)| statistic_of(a) == statistic_of(b)) {
            self.adjust(of_one);
        }
        Comparisons { statistics: all, ..found }
    }

    /// Adjusts the p-values of one statistic for each other; a single statistic has nothing to be adjusted for.
    fn adjust(&self, of_one: &mut [(String, Statistic)]) {
        let tested = |(_, statistic): &(String, Statistic)| statistic.defined()?.p;
        let p_values: Vec<f64> = of_one.iter().filter_map(tested).collect();
        // All are probabilities, so that nothing is refused.
        let Ok(adjusted) = self.adjustment.adjust(&p_values) else { return };
        let mut adjusted = adjusted.into_iter();
        for (name, statistic) in of_one {
            if let (Statistic::Defined(known), Some(_)) = (statistic, judge_of(name)) {
                known.p_adjusted = known.p.and_then(|_| adjusted.next());
            }
        }
    }

    /// What each of the others is compared by with people, on the same rows, with its name.
    ///
    /// # Errors
    /// If a comparison cannot be made.
    pub fn others(&self, names: &[&str], settings: &ComparisonSettings) -> Result<Vec<(&str, Comparisons)>> {
        let only = Some(names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>());
        let as_first = |item: &ComparedItem| {
            let predicted = item.second.clone().unwrap_or_else(|| item.predicted.clone());
            ComparedItem { predicted, second: None, confidence: None, ..item.clone() }
        };
        let of_judge = |(comparison, judge): (&Comparison, _)| {
            let items: Vec<_> = comparison.items().iter().map(as_first).collect();
            let all: Vec<usize> = (0..items.len()).collect();
            let settings = ComparisonSettings { only: only.clone(), ..settings.clone() };
            Ok((judge, Comparison::new(items, settings)?.statistics(&all)))
        };
        self.beside.iter().zip(self.others.iter().map(String::as_str)).map(of_judge).collect()
    }
}

/// What two judges define.
fn differences() -> impl Iterator<Item = &'static &'static str> {
    STATISTICS.iter().filter(|name| name.starts_with("difference_"))
}

/// The statistic that a name is of, with the name of a judge or without.
pub fn statistic_of(name: &str) -> &str {
    name.split_once(':').map_or(name, |(statistic, _)| statistic)
}

/// The judge that a difference is from, where there are several.
pub fn judge_of(name: &str) -> Option<&str> {
    name.split_once(':').map(|(_, judge)| judge)
}
