//! Ranks many answers to one question: best of n by comparing them two by two, or by grading each.
//!
//! `judge rank --input answers.jsonl --output ranked.jsonl`

mod cli;
mod comparisons;
mod report;
mod row;

use anyhow::Result;
use judge_cli::args::bars::Measured;
use judge_cli::missing_fields::tell_unread;
use judge_cli::row_job::{RowJob, Words, refuse_unusable, resolved};
use judge_cli::terminal::console::{end_of_rows, usage};
use judge_core::{
    Fields, Unscored,
    combine::{EachAnswer, OrderPolicy, Swapped, Tournament},
};
use judge_data::{Carry, Checked, DatasetFormat, Judged, Numbered, Outputs, Records, Settings};
use serde_json::json;

use self::comparisons::{PairingStrategy, Strategy};
use self::row::Ranked;

pub(crate) use self::cli::Cli;

/// The name of the command, and the one in records.
const COMMAND: &str = "rank";
const PROGRAM: &str = "rank_answers";

const WORDS: Words = Words { doing: "ranking", rows: "rows", done: "ranked" };

pub(crate) fn run(cli: &Cli) -> Result<()> {
    cli.bars.gate(COMMAND, || ranked(cli))
}

fn ranked(cli: &Cli) -> Result<Measured> {
    cli.judge.check()?;
    if cli.benchmark.is_some() && matches!(cli.carry.chosen, Carry::Only(_)) {
        return Err(usage("--benchmark needs the column \"subset\" in the output: leave --carry as it is"));
    }
    if cli.comparisons.is_some() && cli.strategy == Strategy::RoundRobin {
        return Err(usage("--comparisons needs --strategy adaptive"));
    }
    let inputs = std::iter::once(cli.input.input.clone()).chain(cli.judge.files());
    let outputs = Outputs::new(inputs).rows([&cli.output.output]).reports(PROGRAM, &cli.json);
    outputs.reports(COMMAND, cli.bars.reports()).overwrite(cli.output.write.overwrite).check()?;
    cli.bars.check_names(&report::names()?)?;
    let source = cli.input.source(&cli.input.open()?, Some(DatasetFormat::Answers), cli.model.limit);
    let job = RowJob::new(PROGRAM, WORDS, source, &cli.output, &cli.carry, cli.model.quiet);
    let (checked, suits) = check(&job, cli)?;
    let asked = cli.judge.asked(suits, None, true, &cli.model)?;
    let head = job.job.source.dataset()?.into_head()?;
    let path = job.job.source.input.path();
    let fits = match cli.judge.is_apart() {
        true => asked.check_rows(path, &head, [("response", "response_1")]),
        false => asked.check_rows(path, &head, [("response_a", "response_1"), ("response_b", "response_2")]),
    };
    fits.or_else(|error| refuse_unusable(&job.job.source, &checked, "can be ranked", None).and(Err(error)))?;

    let mut settings = cli.judge.settings(&asked)?;
    settings.insert("strategy".to_owned(), json!(format!("{:?}", cli.strategy)));
    settings.insert("comparisons".to_owned(), json!(cli.comparisons));
    let form = asked.form();
    let job = job.with_settings(settings).with_model(&cli.model, Some(asked.template()))?;
    let finished = job.run(&checked, |pending| {
        let model = cli.model.load()?;
        let (description, template) = (cli.judge.describe(&asked), asked.template().to_owned());
        let judge = cli.judge.judge(asked, &model)?;
        let resolved = resolved(&model, Some(template), Settings::new());
        job.tell(description);
        let carry = &cli.carry.fields();
        let result = if cli.judge.is_apart() {
            let each = EachAnswer::new(&judge);
            pending.judge(resolved, &model, &[&each], |result| row::of_grades(result, carry))?
        } else {
            let pairing = PairingStrategy { strategy: cli.strategy, comparisons: cli.comparisons.map(|n| n as usize) };
            let tournament = Tournament::new(Swapped::new(&judge, OrderPolicy::Average), pairing);
            let row = |result| row::of_comparisons(&tournament, result, carry);
            pending.judge(resolved, &model, &[&tournament], row)?
        };
        cli.judge.tell_label_mass(&result.summary);
        Ok(result)
    })?;
    cli.judge.tell_unscored(&finished.counts.unscored, form, true);
    end_of_rows(&finished.counts)?;
    report::print(cli)
}

/// Reads the whole input before any model work; also which family suits the rows, told from the whole file, of whichever part they are.
fn check(job: &RowJob<Records>, cli: &Cli) -> Result<(Checked, &'static str)> {
    // Rows that cannot be read say nothing about the others.
    let (mut read, mut references) = (0, 0);
    let checked = job.job.check_whole(Ranked::KNOWN, |Numbered { record, .. }| {
        read += usize::from(record.unread().is_none());
        references += usize::from(record.field("reference").is_some_and(|reference| !reference.is_empty()));
        if cli.benchmark.is_some() && record.unread().is_none() {
            report::of_benchmark(record.id(), record.field("subset").as_deref())?;
        }
        let why = if cli.judge.is_apart() { None } else { row::too_few(record) };
        anyhow::Ok(why.map(|Unscored { detail, .. }| detail))
    })?;
    tell_unread(&checked.unread);
    Ok((checked, if read > 0 && references == read { "pair-reference" } else { "pair" }))
}
