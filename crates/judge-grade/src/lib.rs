//! For the program `judge` alone, without a promise of stability: people's grades, collected in a browser, blind, one row at a time, with
//! nothing lost.
//!
//! `judge grade --input rows.jsonl --output graded.jsonl --rows 100`
//!
//! ```text
//! cli        the options
//! import     rows of an export, in the place of a page
//! draw       which rows, in which order for whom, and the sides of pairs
//! session    what was said so far, and what comes next: every change goes through the journal
//! server     the page over HTTP, and who is refused
//!   page     the pages (page.css, page.js); markdown: texts that can do nothing
//! ```

mod cli;
mod draw;
mod import;
mod markdown;
mod page;
mod server;
mod session;

use std::borrow::Cow;
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use judge_cli::args::files::{open, program, tell_json_lines};
use judge_cli::missing_fields::tell_unread_that;
use judge_cli::row_job::refuse_unusable;
use judge_cli::terminal::console::{counted, say, tell};
use judge_cli::terminal::interrupt::Stopped;
use judge_cli::terminal::options::quoted;
use judge_data::{
    Carry, Columns, Error, Field, GradingRecord, GradingRecords, GradingScale, GradingTask, Input, Job, Opened,
    Outputs, Resolved, RowItem, Shown, Source,
};
use serde_json::json;

use self::cli::COMMAND;
use self::server::{App, serve};
use self::session::{Session, Settings};

pub use self::cli::Cli;

/// Collects grades on a page until its rows are written or a signal ends it, or writes the rows of an export.
///
/// # Errors
/// If options do not go together, an input cannot be read, the output cannot be written, the port is taken, or a signal comes before every
/// row is graded.
pub fn run(cli: &Cli) -> Result<()> {
    cli.check()?;
    let inputs = [&cli.input].into_iter().chain(&cli.questions).chain(&cli.scores);
    Outputs::new(inputs).rows([&cli.output.output]).overwrite(cli.output.write.overwrite).check()?;
    tell_json_lines(&cli.output.output);
    if let Some(tool) = cli.import {
        return import::run(cli, tool);
    }
    let task = cli.task()?;
    let columns = cli.columns.clone().unwrap_or_default();
    let source = GradingRecords { input: open(&cli.input)?, columns, max_rows: None };
    let mut job = Job {
        carry: cli.carry.clone(),
        write: cli.output.write.options(),
        ..Job::new(source, &cli.output.output, program(COMMAND))
    };
    let asked = cli.asked(&task);
    job.settings.insert("task".to_owned(), task.to_json());
    job.settings.insert("asked".to_owned(), json!(asked));
    job.settings.insert("draws".to_owned(), json!(cli.rows));
    let mut fields = Vec::new();
    let checked = job.check(task.known(), |record| {
        fields = record.extra.iter().map(|(name, _)| name.to_owned()).collect();
        anyhow::Ok(lacks(record, &task, cli))
    });
    let checked = checked.map_err(|error| with_others(error, &fields, task.known()))?;
    refuse_unusable(&job.source, &checked, "can be graded", None)?;
    tell_unread_that(&checked.unread, "cannot be graded and are left out");
    let mut rows: Vec<GradingRecord> = job.source.items()?.collect::<Result<_, _>>()?;
    rows.retain(|record| lacks(record, &task, cli).is_none());
    let drawn = draw::draw(&rows, cli.rows, &cli.scores, cli.seed)?;
    let probabilities = (!cli.scores.is_empty()).then(|| drawn.iter().map(|drawn| drawn.probability).collect());
    let rows: Vec<GradingRecord> = drawn.iter().map(|drawn| rows[drawn.item].clone()).collect();

    let mut plan = job.plan(&checked)?;
    plan.rows = rows.len();
    plan.seed = Some(cli.seed);
    for path in &cli.scores {
        plan.inputs.push(Input::identify(path)?);
    }
    let output = cli.output.output.display().to_string();
    let run = match plan.open()? {
        Opened::Complete(record) => {
            let (graded, rows) = (record.counts.graded, record.counts.rows());
            return say(format_args!("{output} is complete: {graded} of {rows} rows graded; nothing to do"));
        }
        Opened::Ready(start) => start.begin(Resolved::default())?,
    };
    let settings = Settings {
        task,
        asked,
        rows,
        probabilities,
        seed: cli.seed,
        carry: cli.carry.clone(),
        named: cli.raters.clone(),
    };
    let session = Session::new(settings, run)?;
    let mut next = next(&session.settings, cli);
    let left_out = left_out(&session.settings, cli).join(", ");
    if !left_out.is_empty() {
        tell(format_args!("note: --carry leaves out {left_out}, which a judge of the graded rows needs"));
        next.insert(0, format!("# --carry left out {left_out}: put it back by id first"));
    }
    collect(cli, session, output, next)
}

/// An error with the fields that can be carried where one cannot be. None at all would be rows that nothing can judge.
fn with_others(error: anyhow::Error, fields: &[String], known: &[&str]) -> anyhow::Error {
    let others: Vec<&str> = fields.iter().map(String::as_str).filter(|name| !known.contains(name)).collect();
    match error.downcast_ref() {
        Some(Error::FieldClash { .. }) if !others.is_empty() => {
            anyhow!("{error}\n  to leave it out: --carry {}", quoted(&others.join(",")))
        }
        _ => error,
    }
}

/// The columns of what people see that are not written. A pair that is made of two replies is, whatever is carried.
fn left_out(Settings { task, rows, carry, .. }: &Settings, cli: &Cli) -> Vec<String> {
    let columns = cli.columns.clone().unwrap_or_default();
    match (carry, rows.first().map(|row| (row, task.shown(row)))) {
        (Carry::Only(kept), Some((row, Cow::Borrowed(texts)))) => {
            let names = texts.iter().filter_map(|(field, _)| column(row, *field, &columns));
            names.filter(|name| !kept.contains(name)).collect()
        }
        _ => Vec::new(),
    }
}

/// Why a row cannot be graded. One grade is of the response, unless the command line asks about something else.
fn lacks(record: &GradingRecord, task: &GradingTask, cli: &Cli) -> Option<String> {
    let is_of_response = cli.ask.is_none() && matches!(task, GradingTask::Scale(_) | GradingTask::YesNo);
    let has_response = || {
        let mut texts = record.texts.iter();
        texts.any(|(field, shown)| *field == Field::Response || matches!(shown, Shown::Turns(_)))
    };
    let unread = record.unread().map(|why| why.detail.clone());
    unread.or_else(|| task.lacks(record)).or_else(|| {
        (is_of_response && !has_response()).then(|| {
            let found = &record.found;
            format!("the row has no response to grade, found the fields {found:?}; --ask TEXT asks about what is there")
        })
    })
}

/// Serves the page until the rows are written, or a signal comes.
fn collect(cli: &Cli, session: Session, output: String, next: Vec<String>) -> Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", cli.port))
        .with_context(|| format!("cannot listen on 127.0.0.1:{}; --port chooses another port", cli.port))?;
    let address = listener.local_addr().context("cannot listen")?;
    listener.set_nonblocking(true).context("cannot listen")?;
    let token = token()?;
    let url = format!("http://{address}/{token}");
    let before = session.graded();
    let app = Arc::new(App::new(session, token, output.clone(), next.clone()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
    let stopped = runtime.block_on(async {
        if before > 0 && !cli.quiet {
            tell(format_args!("resuming: {} graded", counted(before, "row")));
        }
        tell(format_args!("grading at {url}"));
        if cli.open {
            open_browser(&url);
        }
        serve(listener, &app).await
    })?;
    drop(runtime);
    if let Some(error) = app.failure() {
        return Err(error.context(format!("{output} could not be written; the same command completes it")));
    }
    let mut session = app.session();
    if let Some(signal) = stopped.filter(|_| !session.is_finished()) {
        if !session.is_whole() {
            let (done, total) = (session.graded(), session.settings.rows.len());
            return Err(Stopped { signal, done, total, what: "rows", resumes: true }.into());
        }
        session.finish()?;
    }
    let raters = session.raters();
    say(format_args!(
        "{} of {} rows graded by {} -> {output}",
        session.graded(),
        session.settings.rows.len(),
        raters.join(", ")
    ))?;
    if !cli.quiet {
        tell(format_args!("next:\n  {}", next.join("\n  ")));
    }
    Ok(())
}

/// 128 bits that nobody can guess, in hexadecimal digits.
fn token() -> Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| anyhow!("the system gives no random numbers: {error}"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Opens the page as the system opens addresses; says so where it does not.
fn open_browser(url: &str) {
    let (program, args): (&str, &[&str]) = match std::env::consts::OS {
        "macos" => ("open", &[]),
        "windows" => ("cmd", &["/c", "start", ""]),
        _ => ("xdg-open", &[]),
    };
    let started = Command::new(program)
        .args(args)
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    if let Err(error) = started {
        tell(format_args!("note: {program} does not start ({error}); open the address above in a browser"));
    }
}

/// The commands that come next; where these ask about less than people saw, a comment before them, as shells have them.
fn next(Settings { task, rows, .. }: &Settings, cli: &Cli) -> Vec<String> {
    let graded = quoted(&cli.output.output.display().to_string());
    let questions = cli.questions.as_ref().map(|path| format!(" --questions {}", quoted(&path.display().to_string())));
    let columns = columns(task, rows, cli);
    let columns = if columns.is_empty() { String::new() } else { format!(" --columns {}", quoted(&columns.join(","))) };
    let questions = questions.unwrap_or_default();
    let by = |judge: &str| format!("{judge} --input {graded} --output judged.jsonl --model MODEL{questions}{columns}");
    let by_points = |judge: &str, by_default: u32| match points(task, by_default) {
        Some(points) => by(&[judge, &format!("--points {points}")].join(" ")),
        None => by(judge),
    };
    let judging = match task {
        GradingTask::Scale(_) | GradingTask::YesNo => match answers(rows) {
            Some(Field::Messages) => by_points("judge compare --verdict logits", 10),
            Some(_) => by_points("judge score", 5),
            None => {
                return vec![
                    "# no command grades rows without a response: judge decide asks about other texts".to_owned(),
                ];
            }
        },
        GradingTask::Pairs => by("judge compare"),
        // These compare with what people said by themselves.
        GradingTask::Questions(_) => {
            return seen_beside_state(rows).into_iter().chain([by("judge decide")]).collect();
        }
        GradingTask::Sentences => return vec![by("judge rag")],
    };
    vec![judging, "judge agree --input judged.jsonl".to_owned()]
}

/// The field that holds the answers of rows: the response, or else conversations that end with one.
fn answers(rows: &[GradingRecord]) -> Option<Field> {
    let ends = |shown: &Shown| match shown {
        Shown::Turns(turns) => turns.last().is_some_and(|turn| turn.role == "assistant"),
        _ => false,
    };
    let mut texts = rows.iter().flat_map(|row| &row.texts);
    if texts.clone().any(|(field, _)| *field == Field::Response) {
        return Some(Field::Response);
    }
    texts.any(|(field, shown)| *field == Field::Messages && ends(shown)).then_some(Field::Messages)
}

/// The points of people's scale, for a judge that does not grade on it by itself: from 1 to 9 at most, since longer ones have labels of
/// several tokens.
fn points(task: &GradingTask, by_default: u32) -> Option<u32> {
    match task {
        GradingTask::Scale(GradingScale { points: [1, last @ 2..=9], .. }) => {
            Some(*last).filter(|last| *last != by_default)
        }
        _ => None,
    }
}

/// Which columns of the output hold which fields where these are not the usual ones, as far as the next command reads them: an output has an
/// `id` and grades of its own.
fn columns(task: &GradingTask, rows: &[GradingRecord], cli: &Cli) -> Vec<String> {
    let columns = cli.columns.clone().unwrap_or_default();
    let decides = matches!(task, GradingTask::Questions(_));
    let is_read = |field: Field| match decides {
        true => matches!(field, Field::State | Field::Questions),
        false => !matches!(field, Field::Id | Field::Human),
    };
    let chosen = Field::ALL.into_iter().filter(|&field| columns.is_chosen(field) && is_read(field));
    let names = |field: Field| format!("{field}={}", columns.names(field).collect::<Vec<_>>().join("|"));
    let state = (decides && !columns.is_chosen(Field::State)).then(|| state(rows, &columns)).flatten();
    chosen.map(names).chain(state.map(|name| format!("{}={name}", Field::State))).collect()
}

/// What decisions can be about where no row has a state: the response, or else the first text.
fn in_place_of_state(rows: &[GradingRecord]) -> Option<Field> {
    let has = |row: &GradingRecord, field: Field| row.texts.iter().any(|(known, _)| *known == field);
    let row = rows.first().filter(|_| !rows.iter().any(|row| has(row, Field::State)))?;
    if has(row, Field::Response) { Some(Field::Response) } else { row.texts.first().map(|(field, _)| *field) }
}

/// The column of [`in_place_of_state`].
fn state(rows: &[GradingRecord], columns: &Columns) -> Option<String> {
    let (field, row) = (in_place_of_state(rows)?, rows.first()?);
    column(row, field, columns)
}

/// The column of a row that holds this field.
fn column(row: &GradingRecord, field: Field, columns: &Columns) -> Option<String> {
    columns.names(field).find(|name| row.found.iter().any(|found| found == name)).map(str::to_owned)
}

/// Says so where people saw more than what decisions are about.
fn seen_beside_state(rows: &[GradingRecord]) -> Option<String> {
    let asked = in_place_of_state(rows).unwrap_or(Field::State);
    let is_seen = |field: &Field| rows.iter().any(|row| row.texts.iter().any(|(known, _)| known == field));
    let seen: Vec<&str> = Field::ALL.into_iter().filter(is_seen).map(Field::as_str).collect();
    (seen.len() > 1).then(|| {
        let seen = seen.join(", ");
        format!("# people saw {seen}: the model sees {asked} alone, unless all of it is put into a field called state")
    })
}
