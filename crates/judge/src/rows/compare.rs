//! Judges single responses or pairs by a prompt: the verdict in words, or in the probabilities of its labels.
//!
//! `judge compare --task pair --input pairs.jsonl --output verdicts.jsonl`

mod cli;
mod place;
mod tally;
mod versions;

use std::sync::Arc;

use anyhow::Result;
use judge_cli::args::bars::Measured;
use judge_cli::args::files::InputArgs;
use judge_cli::args::prompt_judge::{APART, Asked, suited};
use judge_cli::judged_probe::JudgedProbe;
use judge_cli::missing_fields::{tell_unread, tell_unread_that};
use judge_cli::pair_orders::PairJudging;
use judge_cli::row_job::{RowJob, Words, refuse_unusable, resolved};
use judge_cli::terminal::console::{end_of_rows, usage};
use judge_core::{Backbone, Fields, Judge, combine::Confident, inspector::Probe, prompted::VerdictFrom};
use judge_data::{
    Checked, DatasetFormat, Error, Field, Input, Numbered, Outputs, PairRow, PromptInput, PromptRecord, Record,
    Records, SingleRow, Unread,
};
use serde_json::json;

use self::cli::{COMMAND, Orders, PROGRAM, Task};
use self::place::Place;

pub(crate) use self::cli::Cli;

const WORDS: Words = Words { doing: "judging", rows: "rows", done: "judged" };

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
        None => (cli.input.open()?, Vec::new()),
        Some(old) => versions::joined(old, &cli.input, cli.graded.as_deref(), cli.model.limit)?,
    };
    let format = match cli.task {
        _ if cli.is_of_pairs() => DatasetFormat::Pairs,
        _ => cli.source(&input, None, Some(1)).dataset()?.format(),
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
    cli.bars.check_names(&tally::names(pairs, cli.orders())?)?;
    let place = cli.place(pairs)?;
    let confidence = cli
        .confidence
        .as_deref()
        .map(|path| JudgedProbe::read("--confidence", path, "judge probe train --verdicts"))
        .transpose()?;
    let source = cli.source(&input, Some(format), cli.model.limit);
    let job = RowJob::new(PROGRAM, WORDS, source, &cli.output, &cli.carry, cli.model.quiet);
    let (checked, suits, hidden) = check(&job, pairs).map_err(|error| {
        let cuts_nothing = matches!(error.downcast_ref(), Some(Error::NothingToCut { .. }));
        let versions = "--cut with --old: the new response is the field response_a, the old one response_b";
        if cuts_nothing && cli.old.is_some() { error.context(versions) } else { error }
    })?;
    let asked = cli.judge.asked(suits, cli.points, pairs, &cli.model)?;
    let head = job.job.source.dataset()?.into_head()?;
    let fits = match pairs && cli.judge.is_apart() {
        true => asked.check_rows(input.path(), &head, [APART]),
        false => asked.check_rows(input.path(), &head, []),
    };
    fits.or_else(|error| refuse_unusable(&job.job.source, &checked, "can be judged", None).and(Err(error)))?;
    hidden.tell(&asked, cli.judge.template.is_some());

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
    let (form, range) = (asked.form(), asked.range());
    let job = job.with_settings(settings).with_model(&cli.model, Some(asked.template()))?;
    let finished = job.run(&checked, |pending| {
        let model = cli.model.load()?;
        place.as_ref().map_or(Ok(()), |place| place.check_model(model.info()))?;
        confidence.as_ref().map_or(Ok(()), |confidence| confidence.check_model(model.info()))?;
        let (description, template) = (cli.judge.describe(&asked), asked.template().to_owned());
        let judge = cli.judge.judge(asked, &model)?;
        let resolved = resolved(&model, Some(template), cli.judge.origin(&judge));
        job.tell(description);
        let (place_offset, probe) =
            (place.map(|place| place.offset), confidence.map(|confidence| confidence.probe as Arc<dyn Probe>));
        let result = if pairs {
            let (apart, both_orders) = (cli.judge.is_apart(), cli.orders() == Orders::Both);
            let (tables, carry) = (cli.judge.tables(&judge), &cli.carry.fields());
            let judging = PairJudging { judge: &judge, apart, both_orders, place_offset, probe, tables, carry };
            judging.run(pending, resolved, &model)?
        } else {
            let confident = probe.map(|probe| Confident::new(&judge, probe, model.info())).transpose()?;
            let judge: &dyn Judge<Numbered> = confident.as_ref().map_or(&judge, |confident| confident);
            pending.judge(resolved, &model, &[judge], |result| SingleRow::new(result, &cli.carry.fields()))?
        };
        cli.judge.tell_label_mass(&result.summary);
        Ok(result)
    })?;
    let measured = tally::report(cli, pairs, range, &finished.counts, lost)?;
    cli.judge.tell_unscored(&finished.counts.unscored, form, pairs);
    end_of_rows(&finished.counts).map(|()| measured)
}

/// Rows with something that not every family shows, and how it begins.
#[derive(Default)]
struct Hidden {
    references: Unread,
    turns: Unread,
}

impl Hidden {
    /// Says what the template that was chosen leaves out, of references only where nobody named it.
    fn tell(&self, asked: &Asked, is_named: bool) {
        let used = asked.fields().field_names();
        if !used.contains(&"conversation") {
            let other = match asked {
                Asked::Family { .. } => "the family single-multi-turn",
                Asked::Reward { .. } => "`judge reward`",
            };
            let what = format!("have turns before the last request that this judge does not see, as {other} would");
            tell_unread_that(&self.turns, &what);
        }
        if !is_named && !used.contains(&"reference") && matches!(asked, Asked::Family { .. }) {
            tell_unread_that(&self.references, "have a reference that this judge does not see");
        }
    }
}

/// Reads the whole input before any model work; also which family suits the rows, told from the whole file, of whichever part they are, and
/// what another would not show.
fn check(job: &RowJob<Records>, pairs: bool) -> Result<(Checked, &'static str, Hidden)> {
    // Rows that cannot be judged say nothing about the others.
    let (mut read, mut open, mut hidden) = (0, 0, Hidden::default());
    let known = if pairs { PairRow::KNOWN } else { SingleRow::KNOWN };
    let checked = job.job.check_whole(known, |Numbered { record, .. }| {
        let beginning = |name: &str| {
            let text = record.field(name).filter(|text| !text.is_empty());
            text.map(|text| format!("{:?}", text.chars().take(40).collect::<String>()))
        };
        let why = without_answer(record);
        let is_judged = record.unread().is_none() && why.is_none();
        read += usize::from(is_judged);
        hidden.references.note(record.id(), beginning("reference").filter(|_| is_judged));
        if !pairs {
            open += usize::from(record.field("conversation").is_some());
            hidden.turns.note(record.id(), beginning("conversation"));
        }
        anyhow::Ok(why)
    })?;
    tell_unread(&checked.unread);
    let references = read > 0 && hidden.references.count() == read;
    let suits = suited(pairs, references, hidden.turns.count() > 0 && open == read);
    Ok((checked, suits, hidden))
}

/// Why a conversation has no response that could be judged.
fn without_answer(record: &Record) -> Option<String> {
    let Record::Prompt(PromptRecord { input: PromptInput::Messages(turns), columns, .. }) = record else { return None };
    let column = columns.name(Field::Messages).unwrap_or("messages");
    let found = match &turns[..] {
        [] => "no turn".to_owned(),
        [.., before, last] if last.role == "assistant" => format!("{:?} before the answer", before.role),
        [last] if last.role == "assistant" => "nothing before the answer".to_owned(),
        [.., last] => format!("{:?} at the end", last.role),
    };
    record.field("response").is_none().then(|| {
        format!("expected {column:?} to end with a turn of the user and the assistant's answer, which is judged; found {found}")
    })
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

    /// The records of the input. Two versions have been joined by their columns and within the limit, which is of no graded pair; an
    /// instruction that was chosen by its column stands by itself there too.
    fn source(&self, input: &Input, format: Option<DatasetFormat>, limit: Option<usize>) -> Records {
        match self.old {
            None => self.input.source(input, format, limit),
            Some(_) => {
                let chosen = self.input.columns.as_ref().is_some_and(|columns| columns.is_chosen(Field::Instruction));
                let columns = if chosen { "instruction=instruction".parse().ok() } else { None };
                InputArgs { columns, ..self.input.clone() }.source(input, format, None)
            }
        }
    }
}
