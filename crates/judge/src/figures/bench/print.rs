//! The report for people.

use std::collections::BTreeMap;

use anyhow::Result;
use judge_cli::args::judged_pairs::left_out;
use judge_cli::terminal::console::{counted, say, say_table, title_cell};
use judge_data::{Benchmark, Published};
use judge_metrics::comparison::{PairComparisons, PairStatistic};

use super::figures::Found;

/// `of_read` are the verdicts on the pairs whose preferences were read.
pub(crate) fn report(
    (benchmark, undecided): (Benchmark, usize),
    policy: &str,
    (overall, worth): &Found,
    of_read: &PairComparisons,
    (groups, means): (&BTreeMap<&str, Found>, &BTreeMap<&str, f64>),
    difference: Option<&PairComparisons>,
) -> Result<()> {
    let unparsed = match overall.unparsed {
        0 => "every text has a verdict".to_owned(),
        n => format!("{} without a verdict: {policy}", counted(n, "text")),
    };
    say(format_args!("{benchmark}: {}{}; {unparsed}", counted(overall.n, "pair"), left_out(undecided)))?;
    let row =
        |known: &PairStatistic| vec![known.name.to_owned(), format!("{:.3}", known.statistic), known.n.to_string()];
    let differences = difference.into_iter().flat_map(|found| &found.statistics);
    let known = overall.statistics.iter().chain(differences.clone());
    say_table([title_cell(benchmark.as_str()), "estimate [95 %]", "n"], known.map(row))?;
    if let Some(worth) = worth {
        let verdicts = of_read.get("accuracy_mean").or_else(|| of_read.get("accuracy"));
        say("")?;
        worth.print(verdicts.map(|known| &known.statistic))?;
    }

    for known in differences {
        let means = match known.statistic.interval() {
            Some(interval) if interval.low == interval.high && known.n < 6 => "too few pairs to tell",
            Some(interval) if interval.low > 0.0 => "the first judge is right more often",
            Some(interval) if interval.high < 0.0 => "the second judge is right more often",
            _ => "no difference that these pairs can show",
        };
        say(format_args!(
            "{}, first minus second judge, {}: {:.3}: {means}",
            known.name,
            counted(known.n, "pair"),
            known.statistic
        ))?;
    }
    if !groups.is_empty() {
        let names =
            ["accuracy", "accuracy_mean", "accuracy_net", "pair_agreement", "consistency", "first_share"].into_iter();
        let of_preferences = worth.iter().flat_map(|_| ["accuracy_mean_probability", "accuracy_mean_log_odds"]);
        let names: Vec<&str> = names.filter(|name| overall.get(name).is_some()).chain(of_preferences).collect();
        let mut rows: Vec<Vec<String>> = Vec::new();
        for (group, (found, worth)) in groups {
            let cell = |name: &&str| {
                let known = found.get(name).or_else(|| worth.as_ref()?.get(name));
                let estimate = known.and_then(|known| known.statistic.estimate());
                estimate.map_or("undefined".to_owned(), |estimate| format!("{estimate:.3}"))
            };
            rows.push([(*group).to_owned(), found.n.to_string()].into_iter().chain(names.iter().map(cell)).collect());
        }
        if !means.is_empty() {
            let mean = |name: &&str| means.get(name).map_or_else(String::new, |mean| format!("{mean:.3}"));
            let cells = names.iter().map(mean);
            rows.push(["mean of groups".to_owned(), groups.len().to_string()].into_iter().chain(cells).collect());
        }
        say("")?;
        say_table([title_cell("group"), "n"].into_iter().chain(names), rows)?;
    }

    if benchmark.published().is_empty() {
        return Ok(());
    }
    say("\npublished by others, not all like for like:")?;
    let row = |row: &Published| {
        let figures: Vec<String> = row.statistics.iter().map(|(name, value)| format!("{name} {value:.3}")).collect();
        let group = row.group.map_or(String::new(), |group| format!(", {group}"));
        vec![format!("{}{group}", row.judge), figures.join(", ")]
    };
    say_table(["judge", "figures"], benchmark.published().iter().map(row))
}
