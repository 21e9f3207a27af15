//! How good the chosen answers are, where people have graded all of a question's.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use judge_cli::args::bars::{Lost, Measured, rows_used, rows_used_in_words};
use judge_cli::args::files::program;
use judge_cli::report::{BOOTSTRAP, write_json_if};
use judge_cli::terminal::console::{counted, say, say_table, tell};
use judge_core::ItemId;
use judge_data::Rows;
use judge_metrics::comparison::{
    BestOf, Coherence, ComparedAnswers, RankedAnswers, RewardBench, RewardBenchRow, RewardBenchSubset, Statistic,
};
use serde_json::json;

use super::Cli;
use super::row::ComparisonRow;

/// Names of the statistics.
pub(super) fn names() -> Result<Vec<&'static str>> {
    let question = RankedAnswers { scores: vec![Some(0.0), Some(1.0)], grades: vec![0.0, 1.0] };
    let of_grades = BestOf { questions: vec![question], bootstrap: BOOTSTRAP }.statistics()?;
    let coherence = Coherence { questions: Vec::new(), level: BOOTSTRAP.level }.statistics()?;
    Ok(of_grades.into_iter().chain(coherence).map(|(name, _)| name).collect())
}

/// The id and the subset of a row of RewardBench 2.
///
/// # Errors
/// If it has no subset, or its id is none of the subset of ties.
pub(crate) fn of_benchmark(id: &ItemId, subset: Option<&str>) -> Result<(String, String)> {
    let Some(subset) = subset else {
        bail!("row {id}: --benchmark rewardbench2 needs a text in the column \"subset\"")
    };
    let id = match id {
        ItemId::Text(text) => text.clone(),
        ItemId::Integer(number) => number.to_string(),
    };
    RewardBench::check_id(&id, subset)?;
    Ok((id, subset.to_owned()))
}

/// The answers that people have graded, with the judge's scores; `None` where fewer than two are, but for the only one
/// of a row.
fn graded(scores: Option<&[Option<f64>]>, human: &[Option<f64>]) -> Option<RankedAnswers> {
    let scores = scores.map_or_else(|| vec![None; human.len()], <[_]>::to_vec);
    let known = scores.into_iter().zip(human).filter_map(|(score, grade)| Some((score, (*grade)?)));
    let (scores, grades): (Vec<_>, Vec<_>) = known.unzip();
    (grades.len() >= human.len().clamp(1, 2)).then_some(RankedAnswers { scores, grades })
}

pub(crate) fn print(cli: &Cli) -> Result<Measured> {
    let mut found_of_benchmark = Vec::new();
    let (mut questions, mut unscored, mut without_human, mut lost) = (Vec::new(), 0, 0, Lost::default());
    let mut compared: Vec<Vec<ComparedAnswers>> = Vec::new();
    for row in Rows::open(&cli.output.output)? {
        let row = row?;
        let scores: Option<Vec<Option<f64>>> = row.optional("scores", "a list of numbers and nulls")?;
        let met: Option<Vec<ComparisonRow>> = row.optional("comparisons", "comparisons of two answers")?;
        compared.push(met.into_iter().flatten().filter_map(ComparisonRow::compared).collect());
        let human: Option<Vec<Option<f64>>> = row.optional("human", "a list of numbers and nulls")?;
        let answers = human.and_then(|human| graded(scores.as_deref(), &human));
        if cli.benchmark.is_some() && (answers.is_some() || scores.is_none()) {
            let id: ItemId = row.required("id", "a string or a whole number")?;
            let subset = row.string("subset").ok();
            match (self::of_benchmark(&id, subset.as_deref()), &answers) {
                (Ok((id, subset)), _) => {
                    // Of a prompt that could not be judged no answer has a score, which counts as wrong; nor of one that could not be read,
                    // whose answers are not known.
                    let unknown = || RankedAnswers { scores: vec![None; 2], grades: vec![1.0, 0.0] };
                    let answers = answers.clone().unwrap_or_else(unknown);
                    found_of_benchmark.push(RewardBenchRow { id, subset, answers });
                }
                (Err(error), Some(_)) => return Err(error),
                (Err(_), None) => {} // it could not be read, and is of no subset
            }
        }
        match (scores, answers) {
            (Some(_), None) => without_human += 1,
            (Some(_), Some(answers)) if answers.scores.iter().any(Option::is_some) => questions.push(answers),
            _ => {
                unscored += 1;
                lost.push(row.required::<ItemId>("id", "a string or a whole number")?);
            }
        }
    }
    let row = |(name, known): &(&str, Statistic)| vec![(*name).to_owned(), format!("{known:.3}")];
    let comparisons: usize = compared.iter().map(Vec::len).sum();
    let coherence = Coherence { questions: compared, level: BOOTSTRAP.level }.statistics()?;
    if comparisons > 0 {
        say(format_args!("{}, each in both orders", counted(comparisons, "comparison")))?;
        say_table(["without anybody's grades", "estimate [95 %]"], coherence.iter().map(row))?;
    }
    let n = questions.len();
    let statistics = if n == 0 { Vec::new() } else { BestOf { questions, bootstrap: BOOTSTRAP }.statistics()? };
    // Rows that nobody has graded are not lost.
    let used = rows_used(n, n + unscored);
    let coherence = coherence.iter().filter(|_| comparisons > 0);
    let by_name: BTreeMap<_, _> =
        statistics.iter().chain(&used).chain(coherence).map(|(name, known)| (*name, known)).collect();
    let bench = RewardBench { rows: found_of_benchmark, bootstrap: BOOTSTRAP };
    let subsets = if bench.rows.is_empty() { BTreeMap::new() } else { bench.subsets()? };
    let mean = RewardBench::mean(&subsets);
    write_json_if(cli.json.as_deref(), "rank_answers", || {
        let subset = |of: &RewardBenchSubset| {
            let statistics: BTreeMap<_, _> = of.statistics.iter().map(|(name, known)| (*name, known)).collect();
            json!({"n": of.n, "statistics": statistics})
        };
        let of_benchmark = cli.benchmark.map(|_| {
            let subsets: BTreeMap<_, _> = subsets.iter().map(|(name, found)| (*name, subset(found))).collect();
            json!({"name": "rewardbench2", "subsets": subsets, "subsets_mean": mean})
        });
        Ok(json!({
            "program": program("rank_answers"), "n": n, "unscored": unscored, "without_human": without_human, "comparisons": comparisons,
            "statistics": by_name, "benchmark": of_benchmark,
        }))
    })?;
    let measured = Measured { statistics: json!(by_name), worst: String::new(), lost, apart: Vec::new() };
    if n == 0 && bench.rows.is_empty() {
        if cli.json.is_some() && comparisons == 0 {
            tell("note: no row has grades of two responses or more in `human`, so the report has no statistics");
        }
        return Ok(measured);
    }
    say("")?;
    let head = [&format!("{} with grades", counted(n, "question")), "estimate [95 %]"];
    say_table(head, statistics.iter().map(row))?;
    if unscored > 0 {
        say(rows_used_in_words(n, n + unscored))?;
    }
    if cli.benchmark.is_none() {
        return Ok(measured);
    }
    let mut rows = Vec::new();
    for (subset, found) in &subsets {
        for (place, (name, known)) in found.statistics.iter().enumerate() {
            let (subset, n) = if place == 0 { ((*subset).to_owned(), found.n.to_string()) } else { Default::default() };
            rows.push(vec![subset, n, (*name).to_owned(), format!("{known:.3}")]);
        }
    }
    let mean = mean.map_or_else(|| "undefined".to_owned(), |mean| format!("{mean:.3}"));
    rows.push(vec!["mean of the subsets".to_owned(), String::new(), String::new(), mean]);
    say("")?;
    say_table(["RewardBench 2", "prompts", "", "estimate [95 %]"], rows)?;
    let lost = bench.rows.iter().filter(|row| row.answers.scores.contains(&None)).count();
    if lost > 0 {
        say(format_args!("{lost} of {} prompts have an answer without a score and count as wrong", bench.rows.len()))?;
    }
    Ok(measured)
}
