//! Labels rows aspect by aspect by a model behind a service, in the form that `judge probe train` reads.
//!
//! `judge label --input rows.jsonl --output labels.jsonl --base-url http://127.0.0.1:8000/v1 --api-model NAME`

mod api_args;
mod aspects;
mod report;

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use judge_cli::args::files::{CarryArgs, InputArgs, OutputArgs, row_limit};
use judge_cli::args::numbers::at_least;
use judge_cli::args::service::{Spending, say_usage};
use judge_cli::row_job::{RowJob, Words};
use judge_cli::terminal::console::{end_of_rows, tell, usage};
use judge_cli::terminal::options::{of_refusal, offered};
use judge_core::{ItemResult, Judge, Prompt};
use judge_data::{DatasetFormat, LabelRow, MadeBy, Numbered, Outputs, Records, Resolved};
use serde_json::json;

use self::api_args::ApiArgs;
use self::aspects::AspectJudge;
use self::report::{Report, estimate};

pub(crate) use self::aspects::OtherCriterion;

/// The name in records.
const PROGRAM: &str = "label_with_api";

const WORDS: Words = Words { doing: "labelling", rows: "labels", done: "made" };

/// Label rows by a stronger model behind a service, for probes to learn from.
///
/// Rows {"id", "instruction", "response", ...} are graded for each aspect by itself. Output: a row {"id",
/// "instruction", "response", "aspect", "score", "text", ...} for each record and aspect, which `judge probe train`
/// reads as it is; where there is no grade, "unscored" with the reason and the text. Where the service shows the
/// probabilities of tokens, a row has "probabilities" of the grades and "label_mass" too. What people gave is carried
/// as "people".
///
/// The key comes from an environment variable and is shown nowhere. Requests go to --base-url alone.
/// Interrupted, the same command sends only what is missing.
#[derive(Args)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    #[command(flatten)]
    output: OutputArgs,
    /// A report for machines: requests, tokens, cost, labels by aspect
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// What is graded: names with commas between, of semantic_consistency, logicality, informativeness, fluency and factuality, or a JSON
    /// file of your own aspects, {"NAME": "DEFINITION", ...} [default: all five]
    #[arg(long, value_name = "NAME,...|FILE.json", help_heading = "Judge")]
    aspects: Option<String>,
    /// The grades are 1 to N; built-in aspects have 5
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = at_least::<u16>(2), help_heading = "Judge")]
    points: u16,
    #[command(flatten)]
    api: ApiArgs,
    #[command(flatten)]
    pub(crate) carry: CarryArgs,
    /// Read at most this many rows of the input
    #[arg(long, value_name = "ROWS", value_parser = row_limit, help_heading = "Run")]
    limit: Option<usize>,
    /// Send nothing: say how many requests and about how many tokens it would take
    #[arg(long, help_heading = "Run")]
    dry_run: bool,
    /// No progress on stderr
    #[arg(long, help_heading = "Run")]
    quiet: bool,
}

pub(crate) fn run(cli: &Cli) -> Result<()> {
    cli.api.service.check(cli.api.named())?;
    if !cli.carry.cuts.is_empty() {
        return Err(usage(
            "--cut counts the tokens of a model on this machine, and a service does not say how many a text has",
        ));
    }
    let prices = cli.api.service.prices()?;
    let named = cli.aspects.as_deref();
    let aspects = aspects::load(named, cli.points)?;
    let inputs = std::iter::once(cli.input.input.as_path()).chain(named.and_then(aspects::file));
    let outputs = Outputs::new(inputs).rows([&cli.output.output]).reports(PROGRAM, &cli.json);
    outputs.overwrite(cli.output.write.overwrite).check()?;
    let source = cli.input.source(&cli.input.open()?, Some(DatasetFormat::Graded), cli.limit);
    // Each record once for every aspect; which one it is follows from the row's number.
    let source = Records { rows_of_each: aspects.len(), ..source };
    let generation = cli.api.generation();
    let judge = AspectJudge::new(&aspects, cli.points, &generation)?;
    let job = RowJob::new(PROGRAM, WORDS, source, &cli.output, &cli.carry, cli.quiet);
    let (mut requests, mut bytes, mut people) = (0, 0, false);
    let checked = job.check(LabelRow::KNOWN, |Numbered { record, .. }| {
        if record.unread().is_none() {
            let prompts = judge.prompts(record)?;
            requests += prompts.len();
            bytes += prompts.iter().map(Prompt::text_bytes).sum::<usize>();
        }
        people |= !record.raters().is_empty();
        Ok(None)
    })?;
    if people {
        job.tell("note: what people gave is carried as \"people\"; \"score\" is the label");
    }
    if cli.dry_run {
        return estimate(requests, bytes, &generation, prices.as_ref(), cli.json.as_deref());
    }

    let settings = [("aspects".to_owned(), json!(aspects)), ("points".to_owned(), json!(cli.points))];
    let templates = [("templates".to_owned(), json!(judge.template_ids()))].into();
    let judges = Judge::<Numbered>::settings(&judge).into_iter().collect();
    let resolved = Resolved { judges, settings: templates, ..Resolved::default() };
    let mut job = job.with_settings(cli.api.settings(&generation)).with_settings(settings);
    job.job.made_by = MadeBy::Model(resolved.clone());
    let report = Report { output: &cli.output.output, aspects: &aspects, points: cli.points, prices };
    let mut asked = None;
    let finished = job.run(&checked, |pending| {
        let model = asked.insert(cli.api.service.model(cli.api.named())?);
        let mut labelling = Spending::new(pending.watch()?, model, report.prices.as_ref());
        let row = |result: ItemResult<Numbered>| {
            let (name, _) = &aspects[result.item.row % aspects.len()];
            LabelRow::new(result, name, &cli.carry.fields())
        };
        let result = pending.missing.judge(resolved, model, &[&judge], row, &mut labelling)?;
        labelling.watch.finish(result.summary.cancelled)?;
        if let Some(why) = labelling.unanswered {
            tell(format_args!("note: the first request without an answer: {why}"));
            if let Some(advice) = offered(of_refusal(&why)) {
                tell(advice);
            }
        }
        Ok(result)
    });
    if let (Err(_), Some(model)) = (&finished, &asked) {
        // What is paid for is said however the run ends.
        say_usage(model, report.prices.as_ref())?;
    }
    let finished = finished?;
    let labels = report.labels()?;
    if let Some(model) = &asked {
        report.print(&labels)?;
        say_usage(model, report.prices.as_ref())?;
    }
    if let Some(path) = &cli.json {
        report.json(&labels, asked.as_ref(), path)?;
    }
    end_of_rows(&finished.counts)
}
