//! Judges single responses or pairs by a prompt: the verdict in words, or in the probabilities of its labels.
//!
//! `judge compare --task pair --input pairs.jsonl --output verdicts.jsonl`

mod confidence;
mod place;
mod tally;
mod versions;

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use clap::{Args, ValueEnum};
use judge_core::{Backbone, Fields, Judge, combine::Confident, inspector::Probe, prompted::VerdictFrom};
use judge_data::{
    Carry, CarryCheck, Dataset, DatasetFormat, Input, Numbered, Opened, Outputs, PairRow, Resolved, RunResult,
    RunStart, SingleRow, check_templates,
};
use judge_models::Model;
use serde_json::json;

use self::confidence::Confidence;
use self::place::Place;
use crate::args::bars::{BarArgs, Measured};
use crate::args::files::{InputArgs, OutputArgs};
use crate::args::model_args::ModelArgs;
use crate::args::prompted::{AskedJudge, PromptedArgs, suited};
use crate::pair_orders::PairJudging;
use crate::terminal::console::{end_of_rows, say, tell, usage};
use crate::terminal::pace::Watch;
use crate::unread::Unread;

/// How the help of the command ends.
const EXAMPLES: &str = "\
Examples:
  judge compare --input pairs.jsonl --output verdicts.jsonl --model path/to/model --verdict logits
  judge compare --old old.jsonl --new new.jsonl --output verdicts.jsonl --model path/to/model --apart --verdict logits

More: docs/prompted.md";

/// Judge responses, or pairs of them, by a prompt.
///
/// Pairs {"id", "instruction", "response_a", "response_b", "reference"?, "rubric"?, "human"?: "A"|"B"|"tie"} get "verdict": A, B or tie;
/// where probabilities are read, by the log-odds of both orders averaged; else inconsistent if the written verdicts of the orders disagree.
/// They also get "preference": the probability of A where probabilities are read, and "orders": what the judge said in each, in the letters
/// of the given order. Single responses {"id", "instruction", "response", …}, or {"id", "messages"} whose last turn is judged, get "score".
/// What holds no verdict is "unscored", with the text. Other fields are carried over. In the end a tally of all rows is printed: of pairs
/// the verdicts, the mean preference for A and whether verdicts follow the place; of single responses how scores are distributed.
///
/// With --old, the files hold responses of two versions to the same prompts, {"id", "instruction", "response"}: their rows are joined by id,
/// A is the new response and B the old one. Pairs whose better response is known, those of --graded, say whether the judge can tell:
/// `separates` is the share of them that it orders rightly.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
#[command(mut_arg("input", |input| input.visible_alias("new")))]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    /// Responses of an older version to the prompts of --new
    #[arg(long, value_name = "FILE", conflicts_with = "part")]
    old: Option<PathBuf>,
    /// With --old: pairs whose better response is known, by people or because the other one was made worse on purpose, with "human": "A" or
    /// "B". They are judged in the same run and count for `separates` alone
    #[arg(long, value_name = "FILE", requires = "old")]
    graded: Option<PathBuf>,
    #[command(flatten)]
    output: OutputArgs,
    /// What is judged [default: pair if rows have response_a and response_b, else single]
    #[arg(long, value_enum)]
    task: Option<Task>,
    #[command(flatten)]
    judge: PromptedArgs,
    /// Single responses: the grades are 1 to N [default: the family's: 10, 5 for rubric and for the model's own template]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(2..), help_heading = "Judge")]
    points: Option<u16>,
    /// Pairs: ask in the given order alone, or in both [default: both]
    #[arg(long, value_enum, help_heading = "Judge")]
    orders: Option<Orders>,
    /// Pairs in the given order alone: verdicts of this judge on other pairs, graded or not; what the place that is shown first adds to the
    /// log-odds in their middle is taken off
    #[arg(long, value_name = "FILE", help_heading = "Judge")]
    place: Option<PathBuf>,
    /// A probe of `judge probe train --verdicts`: how likely people would say the same, beside each verdict
    #[arg(long, value_name = "FILE", conflicts_with_all = ["place", "apart", "reward"], help_heading = "Judge")]
    confidence: Option<PathBuf>,
    /// Which other fields are carried to the output: all, none, or names with commas between
    #[arg(long, default_value = "all", value_name = "FIELDS")]
    carry: Carry,
    /// Where the tally goes
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    #[command(flatten)]
    bars: BarArgs,
    #[command(flatten)]
    model: ModelArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Task {
    Single,
    Pair,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Orders {
    Given,
    Both,
}

/// The name of the command, and the one in records.
const COMMAND: &str = "compare";
const PROGRAM: &str = "prompt_judge";

pub(crate) fn run(cli: &Cli) -> Result<()> {
    cli.bars.gate(COMMAND, || judged(cli))
}

fn judged(cli: &Cli) -> Result<Measured> {
    cli.judge.check()?;
    if cli.old.is_some() && cli.task == Some(Task::Single) {
        return Err(usage("--task single: --old makes pairs"));
    }
    let also = [&cli.old, &cli.graded, &cli.place, &cli.confidence].into_iter().flatten();
    let inputs = [&cli.input.input].into_iter().chain(also).cloned();
    let inputs = inputs.chain(cli.judge.files());
    let outputs = Outputs::new(inputs)
        .rows([&cli.output.output])
        .reports(PROGRAM, &cli.json)
        .reports(COMMAND, cli.bars.reports());
    outputs.overwrite(cli.output.write.overwrite).check()?;
    let (input, lost) = match &cli.old {
        None => (cli.input.open()?, 0),
        Some(old) => versions::joined(old, &cli.input, cli.graded.as_deref())?,
    };
    let format = match cli.task {
        _ if cli.is_of_pairs() => DatasetFormat::Pairs,
        _ => cli.records(&input, None, Some(1))?.format(),
    };
    if format == DatasetFormat::Answers {
        return Err(usage(format!("{} has lists of answers; `judge rank` ranks them", input.path().display())));
    }
    let pairs = format == DatasetFormat::Pairs;
    if pairs != (cli.task.unwrap_or(if pairs { Task::Pair } else { Task::Single }) == Task::Pair) {
        return Err(usage(format!("--task single: {} has pairs", input.path().display())));
    }
    if cli.orders.is_some() && !pairs {
        return Err(usage("--orders is of pairs: a single response has no order"));
    }
    let place = cli.place(pairs)?;
    let confidence = cli.confidence.as_deref().map(Confidence::read).transpose()?;
    let (rows, default) = cli.check_rows(&input, format)?;
    let asked = cli.judge.asked(default, cli.points, pairs, &cli.model)?;
    if !(pairs && cli.judge.is_apart()) {
        check_templates(cli.records(&input, Some(format), cli.model.limit)?, [asked.fields()])?;
    }

    let mut settings = cli.judge.settings(&asked)?;
    settings.insert("orders".to_owned(), json!(pairs.then(|| format!("{:?}", cli.orders()).to_lowercase())));
    if let Some(place) = &place {
        place.check_judge(&settings)?;
        settings.insert("place_offset".to_owned(), json!(place.offset));
    }
    if let Some(confidence) = &confidence {
        confidence.check_judge(&settings)?;
        settings.insert("confidence".to_owned(), json!(confidence.file));
    }
    settings.insert("carry".to_owned(), json!(format!("{:?}", cli.carry)));
    let plan = cli.output.plan(PROGRAM, &input, rows, &cli.input, &cli.model, Some(asked.template()), settings)?;
    let (path, form) = (cli.output.output.display(), asked.form());
    let start = match plan.open()? {
        Opened::Complete(record) => {
            let counts = record.counts;
            say(format_args!("{path} is complete: {} of {rows} rows judged; nothing to do", counts.scored))?;
            let measured = tally::report(cli, pairs, &counts, lost)?;
            cli.judge.tell_unscored(&counts.unscored, form, pairs);
            return end_of_rows(&counts).map(|()| measured);
        }
        Opened::Ready(start) => start,
    };
    let model = cli.model.load()?;
    place.as_ref().map_or(Ok(()), |place| place.check_model(model.info()))?;
    confidence.as_ref().map_or(Ok(()), |confidence| confidence.check_model(model.info()))?;
    let (description, template) = (cli.judge.describe(&asked), asked.template().to_owned());
    let judge = cli.judge.judge(asked, &model)?;
    let mut resolved = Resolved { model: Some(model.info().clone()), template: Some(template), ..Resolved::default() };
    resolved.settings.extend(cli.judge.origin(&judge)?);
    if !cli.model.quiet {
        tell(description);
    }
    let judging = Judging {
        judge: &judge,
        place_offset: place.map(|place| place.offset),
        probe: confidence.map(|confidence| confidence.probe as Arc<dyn Probe>),
    };
    let RunResult { counts, summary } = cli.judge_all(*start, resolved, &model, &judging, (&input, format))?;
    cli.judge.tell_label_mass(&summary);
    say(format_args!("{} of {rows} rows judged -> {path}", counts.scored))?;
    let measured = tally::report(cli, pairs, &counts, lost)?;
    cli.judge.tell_unscored(&counts.unscored, form, pairs);
    end_of_rows(&counts).map(|()| measured)
}

/// The judge, and what is made of its verdicts.
struct Judging<'j> {
    judge: &'j AskedJudge,
    place_offset: Option<f64>,
    /// What says how likely a verdict is right.
    probe: Option<Arc<dyn Probe>>,
}

impl Cli {
    /// Whether the rows are said to be pairs.
    pub(crate) fn is_of_pairs(&self) -> bool {
        self.task == Some(Task::Pair) || self.old.is_some()
    }

    fn orders(&self) -> Orders {
        self.orders.unwrap_or(Orders::Both)
    }

    /// What is taken off the log-odds of the given order.
    fn place(&self, pairs: bool) -> Result<Option<Place>> {
        let Some(path) = &self.place else { return Ok(None) };
        let needed = match () {
            () if !pairs => "pairs: of a single response there is no order",
            () if self.orders() == Orders::Both => "--orders given: with both orders the place cancels",
            () if self.judge.is_apart() => "responses that are seen together: judged apart they have no place",
            () if self.judge.verdict == VerdictFrom::Text => {
                "--verdict logits or layers: a written verdict has no log-odds"
            }
            () => return Place::learned(path).map(Some),
        };
        Err(usage(format!("--place needs {needed}")))
    }

    /// The records of the input. The columns of two versions have been read when they were joined.
    fn records(&self, input: &Input, format: Option<DatasetFormat>, limit: Option<usize>) -> Result<Dataset> {
        match self.old {
            None => self.input.records(input, format, limit),
            Some(_) => InputArgs { columns: None, ..self.input.clone() }.records(input, format, limit),
        }
    }

    /// Reads the whole input before any model work: how many rows there are, and which family suits them.
    fn check_rows(&self, input: &Input, format: DatasetFormat) -> Result<(usize, &'static str)> {
        let pairs = format == DatasetFormat::Pairs;
        let mut carried = CarryCheck::new(&self.carry, if pairs { PairRow::KNOWN } else { SingleRow::KNOWN });
        // Rows that cannot be read say nothing about the others.
        let (mut rows, mut read, mut references, mut turns, mut unread) = (0, 0, 0, 0, Unread::default());
        // Which family suits is told from the whole file, of whichever part the rows are.
        for record in self.records(&input.whole(), Some(format), self.model.limit)? {
            let record = record?;
            unread.see(&record);
            read += usize::from(record.unread().is_none());
            let has = |name: &str| record.field(name).is_some_and(|text| !text.is_empty());
            (references, turns) =
                (references + usize::from(has("reference")), turns + usize::from(has("conversation")));
            carried.see(record)?;
            rows += 1;
        }
        carried.finish(input)?;
        unread.tell();
        Ok((
            input.part().map_or(rows, |part| part.rows_of(rows)),
            suited(pairs, read > 0 && references == read, read > 0 && turns == read),
        ))
    }

    fn judge_all(
        &self,
        start: RunStart,
        resolved: Resolved,
        model: &Model,
        judging: &Judging<'_>,
        (input, format): (&Input, DatasetFormat),
    ) -> Result<RunResult> {
        let Judging { judge, place_offset, ref probe } = *judging;
        let mut watch = Watch::new("judging", "rows", self.model.quiet)?;
        let records = self.records(input, Some(format), self.model.limit)?;
        if format == DatasetFormat::Pairs {
            let (apart, both_orders) = (self.judge.is_apart(), self.orders() == Orders::Both);
            let (tables, carry) = (self.judge.tables(judge), &self.carry);
            let probe = probe.clone();
            let judging = PairJudging { judge, apart, both_orders, place_offset, probe, tables, carry };
            return judging.run(start, resolved, model, records, watch);
        }
        let row = |result| SingleRow::new(result, &self.carry);
        let confident = probe.clone().map(|probe| Confident::new(judge, probe, model.info())).transpose()?;
        let judge: &dyn Judge<Numbered> = confident.as_ref().map_or(judge, |confident| confident);
        let result = start.judge(resolved, model, &[judge], Numbered::all(records), row, &mut watch)?;
        watch.finish(result.summary.cancelled)?;
        Ok(result)
    }
}
