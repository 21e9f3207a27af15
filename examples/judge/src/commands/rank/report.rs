//! How good the chosen answers are, where people have graded all of a question's.

use std::collections::BTreeMap;

use anyhow::Result;
use judge_data::Rows;
use judge_metrics::comparison::{BestOf, RankedAnswers};
use serde_json::json;

use super::Cli;
use crate::args::files::program;
use crate::report::{BOOTSTRAP, write_json};
use crate::terminal::console::{say, table, tell};

pub(crate) fn print(cli: &Cli) -> Result<()> {
    let (mut questions, mut comparisons, mut unscored, mut without_human) = (Vec::new(), 0, 0, 0);
    for row in Rows::open(&cli.output.output)? {
        let row = row?;
        let scores: Option<Vec<Option<f64>>> = row.optional("scores", "a list of numbers and nulls")?;
        let Some(scores) = scores else {
            unscored += 1;
            continue;
        };
        let met: Option<Vec<serde_json::Value>> = row.optional("comparisons", "a list")?;
        comparisons += met.map_or(0, |met| met.len());
        let human: Option<Vec<Option<f64>>> = row.optional("human", "a list of numbers and nulls")?;
        match human.and_then(|grades| grades.into_iter().collect::<Option<Vec<f64>>>()) {
            Some(grades) => questions.push(RankedAnswers { scores, grades }),
            None => without_human += 1,
        }
    }
    if comparisons > 0 {
        say(format_args!("{comparisons} comparisons, each in both orders"))?;
    }
    let n = questions.len();
    let statistics = if n == 0 { Vec::new() } else { BestOf { questions, bootstrap: BOOTSTRAP }.statistics()? };
    if let Some(path) = &cli.json {
        let statistics: BTreeMap<_, _> = statistics.iter().map(|(name, known)| (*name, known)).collect();
        let report = json!({
            "program": program("rank_answers"), "n": n, "unscored": unscored, "without_human": without_human, "comparisons": comparisons,
            "statistics": statistics,
        });
        write_json(path, "rank_answers", &report)?;
    }
    if n == 0 {
        if cli.json.is_some() {
            tell("note: no row has a grade for each response in `human`, so the report has no statistics");
        }
        return Ok(());
    }
    let mut rows = vec![vec![format!("{n} questions with grades"), "estimate [95 %]".to_owned()]];
    rows.extend(statistics.iter().map(|(name, known)| vec![(*name).to_owned(), format!("{known:.3}")]));
    say(format_args!("\n{}", table(&rows).trim_end()))
}
