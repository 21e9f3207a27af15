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

use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use judge_cli::args::files::{open, program};
use judge_cli::missing_fields::tell_unread_that;
use judge_cli::row_job::refuse_unusable;
use judge_cli::terminal::console::{counted, quoted, say, tell};
use judge_cli::terminal::interrupt::Stopped;
use judge_data::{
    Columns, Field, GradingRecord, GradingRecords, GradingTask, Input, Job, Opened, Outputs, Resolved, RowItem, Shown,
    Source,
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
    let checked = job.check(task.known(), |record| anyhow::Ok(lacks(record, &task, cli)))?;
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
    let next = next(&session.settings, cli);
    collect(cli, session, output, next)
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

/// The commands that come next.
fn next(Settings { task, rows, .. }: &Settings, cli: &Cli) -> Vec<String> {
    let graded = quoted(&cli.output.output.display().to_string());
    let judge = match task {
        GradingTask::Scale(_) | GradingTask::YesNo => "judge score",
        GradingTask::Pairs => "judge compare",
        GradingTask::Questions(_) => "judge decide",
        GradingTask::Sentences => "judge rag",
    };
    let questions = cli.questions.as_ref().map(|path| format!(" --questions {}", quoted(&path.display().to_string())));
    let columns = columns(task, rows, cli);
    let columns = if columns.is_empty() { String::new() } else { format!(" --columns {}", quoted(&columns.join(","))) };
    let questions = questions.unwrap_or_default();
    let judging = format!("{judge} --input {graded} --output judged.jsonl --model MODEL{questions}{columns}");
    match task {
        // They compare with what people said by themselves.
        GradingTask::Questions(_) | GradingTask::Sentences => vec![judging],
        _ => vec![judging, "judge agree --input judged.jsonl".to_owned()],
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

/// The column that decisions can be about where no row has a state: the response's, or else that of the first text.
fn state(rows: &[GradingRecord], columns: &Columns) -> Option<String> {
    let has = |row: &GradingRecord, field: Field| row.texts.iter().any(|(known, _)| *known == field);
    let row = rows.first().filter(|_| !rows.iter().any(|row| has(row, Field::State)))?;
    let field = if has(row, Field::Response) { Field::Response } else { row.texts.first()?.0 };
    columns.names(field).find(|name| row.found.iter().any(|found| found == name)).map(str::to_owned)
}
