//! Figures of verdicts and preferences, as the report has them.

use std::collections::BTreeMap;

use anyhow::Result;
use judge_cli::layer_agreement::{self, LayerAgreement};
use judge_cli::preferences::{Worth, of_pairs};
use judge_cli::terminal::svg::{BLUE, Line, VERMILLION, intervals};
use judge_data::Published;
use judge_metrics::comparison::PairComparisons;
use serde_json::{Value, json};

/// What verdicts come to, and what preferences are worth where probabilities were read.
pub(super) type Found = (PairComparisons, Option<Worth>);

/// As the contract has it.
pub(super) fn by_name((verdicts, preferences): &Found) -> BTreeMap<&'static str, Value> {
    of_verdicts(verdicts).into_iter().chain(preferences.iter().flat_map(Worth::beside_verdicts)).collect()
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

/// The accuracy of each layer where layers were read. Otherwise verdicts' statistics that are shares or kappas, and below them the accuracy
/// of each group.
///
/// # Errors
/// If it cannot be drawn.
pub(super) fn plot(title: &str, (overall, worth): &Found, groups: &BTreeMap<&str, Found>) -> Result<String> {
    if let Some(worth) = worth.as_ref().filter(|worth| !worth.layers.is_empty()) {
        let of = worth.layers.iter().map(|(layer, known)| {
            LayerAgreement::new(layer.0, known.statistic.estimate(), known.statistic.interval(), None)
        });
        return layer_agreement::svg(
            &of.collect::<Vec<_>>(),
            layer_agreement::ACCURACY,
            &format!("{title}, 95 % intervals"),
        );
    }
    let of_all = overall.statistics.iter().filter_map(|known| Line::of(known.name, &known.statistic, BLUE));
    let of_groups = groups.iter().filter_map(|(group, (found, _))| {
        Line::of(format!("accuracy, {group}"), &found.get("accuracy")?.statistic, VERMILLION)
    });
    let lines: Vec<Line> = of_all.chain(of_groups).collect();
    intervals(title, "95 % intervals over questions", [0.0, 1.0], &lines, &[])
}
