//! Judges single responses or pairs by a prompt: the verdict in words, or in the probabilities of its labels.
//!
//! `judge compare --task pair --input pairs.jsonl --output verdicts.jsonl`

mod cli;
mod confidence;
mod place;
mod tally;
mod versions;

use std::sync::Arc;

use anyhow::Result;
use judge_core::{Backbone, Fields, Judge, combine::Confident, inspector::Probe, prompted::VerdictFrom};
use judge_data::{
    CarryCheck, Dataset, DatasetFormat, Input, Numbered, Opened, Outputs, PairRow, Resolved, RunResult, RunStart,
    SingleRow, check_templates,
};
use judge_models::Model;
use serde_json::json;

use self::cli::{COMMAND, Orders, PROGRAM, Task};
use self::confidence::Confidence;
use self::place::Place;
use crate::args::bars::Measured;
use crate::args::files::InputArgs;
use crate::args::prompt_judge::{AskedJudge, suited};
use crate::missing_fields::Unread;
use crate::pair_orders::PairJudging;
use crate::terminal::console::{end_of_rows, say, tell, usage};
use crate::terminal::pace::Watch;

pub(crate) use self::cli::Cli;

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
