//! Ranks many answers to one question: best of n by comparing them two by two, or by grading each.
//!
//! `judge rank --input answers.jsonl --output ranked.jsonl`

mod cli;
mod comparisons;
mod report;
mod row;

use anyhow::Result;
use judge_core::{
    Backbone, Fields,
    combine::{EachAnswer, OrderPolicy, Swapped, Tournament},
};
use judge_data::{
    Carry, CarryCheck, DatasetFormat, Input, Judged, Numbered, Opened, Outputs, Resolved, RunResult, RunStart,
};
use judge_models::Model;
use serde_json::json;

use self::comparisons::{PairingStrategy, Strategy};
use self::row::RankOutcome;
use crate::args::bars::Measured;
use crate::args::prompt_judge::AskedJudge;
use crate::missing_fields::Unread;
use crate::terminal::console::{end_of_rows, say, tell, usage};
use crate::terminal::pace::Watch;

pub(crate) use self::cli::Cli;

/// The name of the command.
const COMMAND: &str = "rank";

pub(crate) fn run(cli: &Cli) -> Result<()> {
    cli.bars.gate(COMMAND, || ranked(cli))
}

fn ranked(cli: &Cli) -> Result<Measured> {
    cli.judge.check()?;
    if cli.benchmark.is_some() && (cli.carry != Carry::All) {
        return Err(usage("--benchmark needs the column \"subset\" in the output: leave --carry as it is"));
    }
    if cli.comparisons.is_some() && cli.strategy == Strategy::RoundRobin {
        return Err(usage("--comparisons needs --strategy adaptive"));
    }
    let inputs = std::iter::once(cli.input.input.clone()).chain(cli.judge.files());
    let outputs = Outputs::new(inputs).rows([&cli.output.output]).reports("rank_answers", &cli.json);
    outputs.reports(COMMAND, cli.bars.reports()).overwrite(cli.output.write.overwrite).check()?;
    let input = cli.input.open()?;
    let (rows, default) = cli.check_rows(&input)?;
    let asked = cli.judge.asked(default, None, true, &cli.model)?;

    let mut settings = cli.judge.settings(&asked)?;
    settings.insert("strategy".to_owned(), json!(format!("{:?}", cli.strategy)));
    settings.insert("comparisons".to_owned(), json!(cli.comparisons));
    settings.insert("carry".to_owned(), json!(format!("{:?}", cli.carry)));
    let plan =
        cli.output.plan("rank_answers", &input, rows, &cli.input, &cli.model, Some(asked.template()), settings)?;
    let start = match plan.open()? {
        Opened::Complete(record) => {
            let (path, scored) = (cli.output.output.display(), record.counts.scored);
            say(format_args!("{path} is complete: {scored} of {rows} rows ranked; nothing to do"))?;
            end_of_rows(&record.counts)?;
            return report::print(cli);
        }
        Opened::Ready(start) => start,
    };
    let model = cli.model.load()?;
    let (description, template, form) = (cli.judge.describe(&asked), asked.template().to_owned(), asked.form());
    let judge = cli.judge.judge(asked, &model)?;
    let resolved = Resolved { model: Some(model.info().clone()), template: Some(template), ..Resolved::default() };
    if !cli.model.quiet {
        tell(description);
    }
    let RunResult { counts, summary } = cli.rank_all(*start, resolved, &model, &judge, &input)?;
    cli.judge.tell_label_mass(&summary);
    say(format_args!("{} of {rows} rows ranked -> {}", counts.scored, cli.output.output.display()))?;
    cli.judge.tell_unscored(&counts.unscored, form, true);
    end_of_rows(&counts)?;
    report::print(cli)
}

impl Cli {
    /// Reads the whole input before any model work: how many rows there are, and which family suits them.
    fn check_rows(&self, input: &Input) -> Result<(usize, &'static str)> {
        // Rows that cannot be read say nothing about the others.
        let (mut rows, mut read, mut references, mut unread) = (0, 0, 0, Unread::default());
        let mut carried = CarryCheck::new(&self.carry, RankOutcome::KNOWN);
        // Told from the whole file, of whichever part the rows are.
        for record in self.input.records(&input.whole(), Some(DatasetFormat::Answers), self.model.limit)? {
            let record = record?;
            unread.see(&record);
            read += usize::from(record.unread().is_none());
            references += usize::from(record.field("reference").is_some_and(|reference| !reference.is_empty()));
            if self.benchmark.is_some() && record.unread().is_none() {
                report::of_benchmark(record.id(), record.field("subset").as_deref())?;
            }
            carried.see(record)?;
            rows += 1;
        }
        carried.finish(input)?;
        unread.tell();
        Ok((
            input.part().map_or(rows, |part| part.rows_of(rows)),
            if read > 0 && references == read { "pair-reference" } else { "pair" },
        ))
    }

    fn rank_all(
        &self,
        start: RunStart,
        resolved: Resolved,
        model: &Model,
        judge: &AskedJudge,
        input: &Input,
    ) -> Result<RunResult> {
        let mut watch = Watch::new("ranking", "rows", self.model.quiet)?;
        let items = Numbered::all(self.input.records(input, Some(DatasetFormat::Answers), self.model.limit)?);
        let result = if self.judge.is_apart() {
            let each = EachAnswer::new(judge);
            let row = |result| row::of_grades(result, &self.carry);
            start.judge(resolved, model, &[&each], items, row, &mut watch)?
        } else {
            let pairing =
                PairingStrategy { strategy: self.strategy, comparisons: self.comparisons.map(|n| n as usize) };
            let tournament = Tournament::new(Swapped::new(judge, OrderPolicy::Average), pairing);
            let row = |result| row::of_comparisons(&tournament, result, &self.carry);
            start.judge(resolved, model, &[&tournament], items, row, &mut watch)?
        };
        watch.finish(result.summary.cancelled)?;
        Ok(result)
    }
}
