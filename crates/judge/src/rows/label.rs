//! Labels rows aspect by aspect by a model behind a service, in the form that `judge probe train` reads.
//!
//! `judge label --input rows.jsonl --output labels.jsonl --base-url http://127.0.0.1:8000/v1 --api-model NAME`

mod api_args;
mod aspects;
mod report;

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use judge_core::{ItemResult, Judge, Prompt};
use judge_data::{
    Carry, CarryCheck, Counts, DatasetFormat, Input, LabelRow, MadeBy, Numbered, Opened, Outputs, Resolved, RunStart,
};
use judge_models::ApiModel;
use serde_json::json;

use self::api_args::ApiArgs;
use self::aspects::{AspectJudge, Aspects};
use self::report::{Report, estimate};
use crate::args::files::{InputArgs, OutputArgs};
use crate::args::service::{Spending, say_usage};
use crate::missing_fields::Unread;
use crate::terminal::console::{end_of_rows, say, tell, usage};
use crate::terminal::options::{of_refusal, offered};
use crate::terminal::pace::Watch;

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
    aspects: Option<Aspects>,
    /// The grades are 1 to N; built-in aspects have 5
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(2..), help_heading = "Judge")]
    points: u16,
    #[command(flatten)]
    api: ApiArgs,
    /// Which other fields are carried to the output: all, none, or names with commas between
    #[arg(long, default_value = "all", value_name = "FIELDS")]
    carry: Carry,
    /// Read at most this many rows of the input
    #[arg(long, value_name = "ROWS", help_heading = "Run")]
    limit: Option<usize>,
    /// Send nothing: say how many requests and about how many tokens it would take
    #[arg(long, help_heading = "Run")]
    dry_run: bool,
    /// No progress on stderr
    #[arg(long, help_heading = "Run")]
    quiet: bool,
}

pub(crate) fn run(cli: &Cli) -> Result<()> {
    cli.api.check()?;
    let prices = cli.api.service.prices()?;
    let aspects = cli.aspects.clone().unwrap_or_default().load(cli.points)?;
    let inputs = std::iter::once(&cli.input.input).chain(cli.aspects.as_ref().and_then(Aspects::file));
    let outputs = Outputs::new(inputs).rows([&cli.output.output]).reports("label_with_api", &cli.json);
    outputs.overwrite(cli.output.write.overwrite).check()?;
    let input = cli.input.open()?;
    let generation = cli.api.generation();
    let judge = AspectJudge::new(&aspects, cli.points, &generation)?;
    let (records, bytes) = cli.check_rows(&input, &judge)?;
    let rows = records * aspects.len();
    if cli.dry_run {
        return estimate(rows, bytes, &generation, prices.as_ref(), cli.json.as_deref());
    }

    let mut settings = cli.api.settings(&generation);
    settings.insert("aspects".to_owned(), json!(aspects));
    settings.insert("points".to_owned(), json!(cli.points));
    settings.insert("carry".to_owned(), json!(format!("{:?}", cli.carry)));
    let mut plan = cli.output.plan_of("label_with_api", rows, &cli.input, settings);
    plan.inputs = vec![input.identity()?.with_rows(records)];
    let templates = [("templates".to_owned(), json!(judge.template_ids()))].into();
    let judges = Judge::<Numbered>::settings(&judge).into_iter().collect();
    let resolved = Resolved { judges, settings: templates, ..Resolved::default() };
    plan.made_by = MadeBy::Model(resolved.clone());
    let report = Report { output: &cli.output.output, aspects: &aspects, points: cli.points, prices };
    let start = match plan.open()? {
        Opened::Complete(record) => {
            let (path, scored) = (cli.output.output.display(), record.counts.scored);
            say(format_args!("{path} is complete: {scored} of {rows} labels; nothing to do"))?;
            if let Some(path) = &cli.json {
                report.json(&report.labels()?, None, path)?;
            }
            return end_of_rows(&record.counts);
        }
        Opened::Ready(start) => start,
    };
    let model = cli.api.model()?;
    let labelled = cli.label_all(*start, resolved, &model, &judge, &input, &report);
    if labelled.is_err() {
        // What is paid for is said however the run ends.
        say_usage(&model, report.prices.as_ref())?;
    }
    let counts = labelled?;
    say(format_args!("{} of {rows} labels -> {}", counts.scored, cli.output.output.display()))?;
    let labels = report.labels()?;
    report.print(&labels)?;
    say_usage(&model, report.prices.as_ref())?;
    if let Some(path) = &cli.json {
        report.json(&labels, Some(&model), path)?;
    }
    end_of_rows(&counts)
}

impl Cli {
    /// Reads the whole input before anything is sent: how many records there are, and the bytes of all prompts.
    fn check_rows(&self, input: &Input, judge: &AspectJudge) -> Result<(usize, usize)> {
        let (mut records, mut bytes, mut people, mut unread) = (0, 0, false, Unread::default());
        let mut carried = CarryCheck::new(&self.carry, LabelRow::KNOWN);
        for record in self.input.records(input, Some(DatasetFormat::Graded), self.limit)? {
            let record = record?;
            unread.see(&record);
            if record.unread().is_none() {
                bytes += judge.prompts(&record)?.iter().map(Prompt::text_bytes).sum::<usize>();
            }
            people |= !record.raters().is_empty();
            carried.see(record)?;
            records += 1;
        }
        carried.finish(input)?;
        unread.tell();
        if people && !self.quiet {
            tell("note: what people gave is carried as \"people\"; \"score\" is the label");
        }
        if records == 0 {
            return Err(usage(format!("{} has no rows", input.path().display())));
        }
        Ok((records, bytes))
    }

    fn label_all(
        &self,
        start: RunStart,
        resolved: Resolved,
        model: &ApiModel,
        judge: &AspectJudge,
        input: &Input,
        report: &Report<'_>,
    ) -> Result<Counts> {
        let aspects = report.aspects;
        let watch = Watch::new("labelling", "labels", self.quiet)?;
        let mut labelling = Spending::new(watch, model, report.prices.as_ref());
        let records = self.input.records(input, Some(DatasetFormat::Graded), self.limit)?;
        // Each record once for every aspect; which one it is follows from the row's number.
        let records = records.flat_map(|record| match record {
            Ok(record) => vec![record; aspects.len()].into_iter().map(Ok).collect(),
            Err(error) => vec![Err(error)],
        });
        let row = |result: ItemResult<Numbered>| {
            let (name, _) = &aspects[result.item.row % aspects.len()];
            LabelRow::new(result, name, &self.carry)
        };
        let result = start.judge(resolved, model, &[judge], Numbered::all(records), row, &mut labelling)?;
        labelling.watch.finish(result.summary.cancelled)?;
        if let Some(why) = labelling.unanswered {
            tell(format_args!("note: the first request without an answer: {why}"));
            if let Some(advice) = offered(of_refusal(&why)) {
                tell(advice);
            }
        }
        Ok(result.counts)
    }
}
