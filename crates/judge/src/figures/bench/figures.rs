//! Figures of verdicts and preferences, as the report has them.

use std::collections::BTreeMap;

use judge_data::Published;
use judge_metrics::comparison::PairComparisons;
use serde_json::{Value, json};

use crate::preferences::{Worth, of_pairs};

/// What verdicts come to, and what preferences are worth where probabilities were read.
pub(super) type Found = (PairComparisons, Option<Worth>);

/// As the contract has it.
pub(super) fn by_name((verdicts, preferences): &Found) -> BTreeMap<&'static str, Value> {
    of_verdicts(verdicts).into_iter().chain(preferences.iter().flat_map(Worth::entries)).collect()
}

/// Those of verdicts alone.
pub(super) fn of_verdicts(found: &PairComparisons) -> BTreeMap<&'static str, Value> {
    found.statistics.iter().map(|known| (known.name, of_pairs(known))).collect()
}

/// The mean over groups of each statistic of verdicts that all of them define, every group counting alike.
pub(super) fn means_of_groups(
    overall: &PairComparisons,
    groups: &BTreeMap<&str, Found>,
) -> BTreeMap<&'static str, f64> {
    let mean = |name: &'static str| {
        let of = |(found, _): &Found| found.get(name)?.statistic.estimate();
        let estimates: Vec<f64> = groups.values().map(of).collect::<Option<_>>()?;
        (!estimates.is_empty()).then(|| (name, estimates.iter().sum::<f64>() / estimates.len() as f64))
    };
    overall.statistics.iter().filter_map(|known| mean(known.name)).collect()
}

/// What others report, and where.
pub(super) fn published(rows: &[Published]) -> Vec<Value> {
    let row = |row: &Published| {
        let statistics: BTreeMap<_, _> = row.statistics.iter().copied().collect();
        json!({"judge": row.judge, "group": row.group, "statistics": statistics, "source": row.source})
    };
    rows.iter().map(row).collect()
}
