//! What people see: notes on stderr, tables on stdout, one readable error.

use std::borrow::Cow;
use std::error::Error;
use std::ffi::OsString;
use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use clap::builder::{NonEmptyStringValueParser, Resettable};
use clap::error::ErrorKind;
use clap::{Arg, ArgMatches, Id, Parser};
use judge_core::runner::{RunSummary, Tally};
use judge_data::Counts;
use tracing::Level;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::terminal::failures::Missed;
use crate::terminal::interrupt::Stopped;
use crate::terminal::options;
use crate::terminal::tables::{self, TableFormat, table};

/// Version and commit, as `--version` shows them: `0.1.0 (0123456789ab)`, or without a commit where none is known.
pub const VERSION: &str = env!("JUDGE_VERSION");

/// The version alone, for run records.
pub const VERSION_NUMBER: &str = env!("CARGO_PKG_VERSION");

/// The commit that this is built from, 12 hexadecimal digits and `-dirty` if sources differed from it; `None` if it was built outside a
/// git checkout.
#[must_use]
pub const fn commit() -> Option<&'static str> {
    option_env!("JUDGE_COMMIT")
}

/// The whole `main` of the program: reads the command line, program first, runs, and gives [`exit`]'s code. `refused` is given what clap
/// says of a line that it cannot read, beside the program's commands, and may word it anew. What the libraries warn of goes to stderr.
pub fn start<C: Parser>(
    words: &[OsString],
    refused: impl Fn(&clap::Command, clap::Error) -> clap::Error,
    run: impl FnOnce(&C) -> anyhow::Result<()>,
) -> ExitCode {
    show_warnings();
    let mut command = with_values(C::command());
    let matches = matches_of(&mut command, words);
    if let Ok(matches) = &matches {
        options::know(&command, matches);
    }
    match matches.and_then(|mut matches| C::from_arg_matches_mut(&mut matches)) {
        Ok(cli) => exit(run(&cli)),
        Err(error) => exit(Err(refused(&command, error).into())),
    }
}

/// Reads a command line, program first, as [`start`] does.
///
/// # Errors
/// What clap says of a line that it cannot read.
pub fn read_line<C: Parser>(words: &[OsString]) -> Result<C, clap::Error> {
    C::from_arg_matches_mut(&mut matches_of(&mut with_values(C::command()), words)?)
}

/// Clap takes an option without the one that it requires where that one cannot be given beside another that is there: the option would
/// then have no effect. So the line is read once more by options that can all be given together.
fn matches_of(command: &mut clap::Command, words: &[OsString]) -> Result<ArgMatches, clap::Error> {
    let free = with_each(command.clone(), |argument| argument.conflicts_with(Resettable::<Id>::Reset));
    let matches = command.try_get_matches_from_mut(words)?;
    free.try_get_matches_from(words)?;
    Ok(matches)
}

/// What holds of the values of all options: one that begins as a negative number does is a value, whoever reads it says what is wrong with
/// it; and a field has a name.
fn with_values(command: clap::Command) -> clap::Command {
    with_each(command, |argument| {
        let is_field =
            argument.get_value_names().is_some_and(|names| names.iter().any(|name| name.as_str() == "FIELD"));
        match argument.get_action().takes_values() {
            true if is_field => argument.value_parser(NonEmptyStringValueParser::new()),
            true => argument.allow_negative_numbers(true),
            false => argument,
        }
    })
}

fn with_each(command: clap::Command, change: fn(Arg) -> Arg) -> clap::Command {
    command.mut_args(change).mut_subcommands(|inner| with_each(inner, change))
}

/// Shows the warnings of this project's crates on stderr, one line each.
fn show_warnings() {
    let ours = Targets::new().with_target("judge", Level::WARN); // a prefix of the crates' names
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(io::stderr)
        .log_internal_errors(false)
        .with_ansi(false)
        .with_target(false)
        .without_time();
    // A second one in the same process, which only a test has, finds the first.
    let _ = tracing_subscriber::registry().with(lines.with_filter(ours)).try_init();
}

/// An error that says that the command line is wrong; [`exit`] makes 2 of it, as clap does of what it finds itself.
#[must_use]
pub fn usage(problem: impl fmt::Display) -> anyhow::Error {
    clap::Error::raw(ErrorKind::ValueValidation, format!("{problem}\n")).into()
}

/// An error of a file that shows that the command line is wrong, with what to do about it.
#[must_use]
pub fn usage_of(error: &judge_data::Error) -> anyhow::Error {
    match options::hint(error) {
        Some(hint) => usage(format_args!("{error}\n  {hint}")),
        None => usage(error),
    }
}

/// The exit code of the program: 0; 1 with the error and its causes on stderr; 2 for a wrong command line; 3 for a bar that is missed; 130 or 143 for a run that a
/// signal stopped. A stderr that takes nothing changes none of them.
#[must_use]
pub fn exit(result: anyhow::Result<()>) -> ExitCode {
    let Err(error) = result else { return ExitCode::SUCCESS };
    if let Some(error) = error.downcast_ref::<clap::Error>() {
        return exit_of_clap(error);
    }
    if let Some(missed) = error.downcast_ref::<Missed>() {
        tell(missed);
        return ExitCode::from(3);
    }
    if let Some(stopped) = error.downcast_ref::<Stopped>() {
        tell(stopped);
        return ExitCode::from(stopped.signal.exit_code());
    }
    let mut begins = "error";
    for words in sayings(&error) {
        tell(format_args!("{begins}: {words}"));
        begins = "  caused by";
    }
    if let Some(hint) = error.chain().find_map(options::hint) {
        tell(format_args!("  {hint}"));
    }
    let usage = |cause: &(dyn Error + 'static)| cause.downcast_ref().is_some_and(judge_data::Error::is_usage);
    if error.chain().any(usage) { ExitCode::from(2) } else { ExitCode::FAILURE }
}

/// What an error says, then its causes. Some errors already end with their cause, which is not said again.
fn sayings(error: &anyhow::Error) -> Vec<String> {
    let mut said: Vec<String> = error.chain().map(ToString::to_string).collect();
    for at in (1..said.len()).rev() {
        if said[at - 1].contains(&said[at]) {
            said.remove(at);
        }
    }
    said
}

/// An error with its causes in one line, as the end of a sentence: each is said once.
#[must_use]
pub fn in_words(error: &anyhow::Error) -> String {
    sayings(error).join(": ")
}

/// Help and version are no errors, unless stdout does not take them.
fn exit_of_clap(error: &clap::Error) -> ExitCode {
    match error.print() {
        _ if error.use_stderr() => ExitCode::from(2),
        Ok(()) => ExitCode::SUCCESS,
        Err(closed) if closed.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            tell(format_args!("error: cannot write to stdout\n  caused by: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// How every command of rows ends, whether it has made them now or found them all made: a line for each reason for which rows have no score,
/// and an error if none has one. The same command thus ends with the same exit code each time.
///
/// # Errors
/// As [`check_scored`], and if it cannot be written.
pub fn end_of_rows(counts: &Counts) -> anyhow::Result<()> {
    counts.unscored.iter().try_for_each(|(reason, count)| say(format_args!("unscored, {reason}: {count}")))?;
    check_scored(counts.scored, counts.unscored.iter().map(|(reason, &rows)| (reason, rows)))
}

/// An error if no row at all was scored, with the number of rows for each reason. A run that scored some is done, whatever became of
/// the others.
///
/// # Errors
/// `no row was scored: 20 too_long`; `no row was scored: there are none` for an empty input.
pub fn check_scored<R: fmt::Display>(
    scored: usize,
    unscored: impl IntoIterator<Item = (R, usize)>,
) -> anyhow::Result<()> {
    if scored > 0 {
        return Ok(());
    }
    let reasons: Vec<String> = unscored.into_iter().map(|(reason, rows)| format!("{rows} {reason}")).collect();
    let reasons = if reasons.is_empty() { "there are none".to_owned() } else { reasons.join(", ") };
    anyhow::bail!("no row was scored: {reasons}")
}

/// Says so if little of the model's probability lies on the labels that were read: it was about to write something else. Of several judges
/// the one with the least is named. `advice` follows, in the same sentence.
pub fn tell_label_mass(summary: &RunSummary, labels: &str, advice: &str) {
    if let Some(low) = low_label_mass(&summary.judges, labels) {
        tell(format_args!("note: {low}{advice}"));
    }
}

fn low_label_mass(judges: &[Tally], labels: &str) -> Option<String> {
    let masses = judges.iter().filter_map(|judge| Some((&judge.name, judge.mean_label_mass()?)));
    let mut masses: Vec<(&String, f64)> = masses.collect();
    masses.sort_by(|a, b| a.1.total_cmp(&b.1));
    let &(name, mass) = masses.first().filter(|(_, mass)| *mass < 0.5)?;
    let name = if masses.len() > 1 { format!("{name}: ") } else { String::new() };
    let others = match masses[1..].iter().filter(|(_, mass)| *mass < 0.5).count() {
        0 => String::new(),
        n => format!(" (and less than half of it on those of {})", counted(n, "other")),
    };
    let percent = two_digits(100.0 * mass);
    Some(format!("{name}on average {percent} % of the model's probability lies on {labels}{others}"))
}

/// The text with U+FFFD in the place of each character that is none of a text: of control characters but tab and line feed, by which a name
/// in a user's file could change what a terminal shows, and of what XML does not allow.
#[must_use]
pub fn plain(text: &str) -> Cow<'_, str> {
    let is_odd = |c: char| (c.is_control() && !matches!(c, '\t' | '\n')) || matches!(c, '\u{fffe}' | '\u{ffff}');
    if text.contains(is_odd) { text.replace(is_odd, "\u{fffd}").into() } else { text.into() }
}

/// Writes a line to stderr, where results never are. A run does not fail because nobody can be told about it.
pub fn tell(line: impl fmt::Display) {
    // `eprintln!` panics where stderr is closed or full.
    let _ = writeln!(io::stderr(), "{}", plain(&line.to_string()));
}

/// Writes a line to stdout, or to stderr where stdout has tables for other programs: nothing stands between these.
///
/// # Errors
/// As [`print()`].
pub fn say(line: impl fmt::Display) -> anyhow::Result<()> {
    match tables::format() {
        TableFormat::Plain => print(line),
        _ => {
            tell(line);
            Ok(())
        }
    }
}

/// Writes a table to stdout, its head and the rows below it, in the form that the command line asks for. An empty line stands between one
/// for other programs and the next.
///
/// # Errors
/// As [`print()`].
pub fn say_table<H: Into<String>>(
    head: impl IntoIterator<Item = H>,
    rows: impl IntoIterator<Item = Vec<String>>,
) -> anyhow::Result<()> {
    static IS_LATER: AtomicBool = AtomicBool::new(false);
    if IS_LATER.swap(true, Ordering::Relaxed) && tables::format() != TableFormat::Plain {
        print("")?;
    }
    let head: Vec<String> = head.into_iter().map(Into::into).collect();
    print(table(&std::iter::once(head).chain(rows).collect::<Vec<_>>()).trim_end())
}

/// The first cell of a table's head: its title, where stdout has tables alone, and nothing where a line above them has it.
#[must_use]
pub fn title_cell(title: &str) -> &str {
    if tables::format() == TableFormat::Plain { "" } else { title.trim() }
}

/// Writes names and what was found of each to stdout: a line each for people, else a table.
///
/// # Errors
/// As [`print()`].
pub fn say_fields<N: AsRef<str>>(fields: impl IntoIterator<Item = (N, String)>) -> anyhow::Result<()> {
    let fields: Vec<(N, String)> = fields.into_iter().collect();
    if tables::format() == TableFormat::Plain {
        let width = fields.iter().map(|(name, _)| name.as_ref().chars().count()).max().unwrap_or(0);
        return fields.iter().try_for_each(|(name, found)| print(format_args!("{:<width$}  {found}", name.as_ref())));
    }
    say_table(["field", "value"], fields.into_iter().map(|(name, found)| vec![name.as_ref().to_owned(), found]))
}

/// Writes a line to stdout. A reader that has seen enough and closed it, as `head` does, is no error.
///
/// # Errors
/// What else keeps stdout from taking the text.
pub fn print(line: impl fmt::Display) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    match writeln!(stdout, "{}", plain(&line.to_string())).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.context("cannot write to stdout"),
    }
}

/// So many of a thing: `1 pair`, `2 pairs`, `2 queries`.
#[must_use]
pub fn counted(n: usize, thing: &str) -> String {
    match thing.strip_suffix("ry") {
        _ if n == 1 => format!("{n} {thing}"),
        Some(stem) => format!("{n} {stem}ries"),
        None => format!("{n} {thing}s"),
    }
}

/// So many of a thing, and what one of them does, or several do: `1 row has`, `2 rows have`.
#[must_use]
pub fn counted_that(n: usize, thing: &str, [one, several]: [&str; 2]) -> String {
    format!("{} {}", counted(n, thing), if n == 1 { one } else { several })
}

/// A positive number, rounded to two significant digits: `4.9`, `0.31`, `43000`.
#[must_use]
pub(crate) fn two_digits(x: f64) -> String {
    if !(x.is_finite() && x > 0.0) {
        return "0".to_owned();
    }
    // Rounding first: 9.96 is 10, not 10.0.
    let exponent = |x: f64| x.log10().floor() as i32;
    let unit = 10_f64.powi(exponent(x) - 1);
    let rounded = (x / unit).round() * unit;
    let decimals = (1 - exponent(rounded * (1.0 + 1e-9))).max(0) as usize;
    format!("{rounded:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_is_no_plural() {
        let found = [(1, "query"), (2, "query"), (0, "row")].map(|(n, thing)| counted_that(n, thing, ["is", "are"]));
        assert_eq!(found, ["1 query is", "2 queries are", "0 rows are"]);
    }

    #[test]
    fn numbers_have_two_significant_digits() {
        for (x, text) in [
            (4.9497, "4.9"),
            (9.96, "10"),
            (0.0996, "0.10"),
            (99.6, "100"),
            (43058.0, "43000"),
            (1.0, "1.0"),
            (100.0, "100"),
            (0.001, "0.0010"),
            (12.34, "12"),
            (0.0, "0"),
            (f64::NAN, "0"),
        ] {
            assert_eq!(two_digits(x), text, "{x}");
        }
    }

    #[test]
    fn the_judge_with_the_least_label_mass_is_named() {
        let of = |(name, mass): (&str, f64)| {
            let mut tally = Tally::new(name);
            (tally.with_label_mass, tally.label_mass) = (2, 2.0 * mass);
            tally
        };
        let said =
            |masses: &[(&str, f64)]| low_label_mass(&masses.iter().copied().map(of).collect::<Vec<_>>(), "the labels");
        let lies = "of the model's probability lies on the labels";
        assert_eq!(said(&[("a", 0.5), ("b", 1.0)]), None);
        assert_eq!(said(&[("a", 0.25)]), Some(format!("on average 25 % {lies}")));
        assert_eq!(said(&[("a", 0.5), ("b", 0.25)]), Some(format!("b: on average 25 % {lies}")));
        let both = format!("b: on average 3.1 % {lies} (and less than half of it on those of 2 others)");
        assert_eq!(said(&[("a", 0.4), ("b", 0.031), ("c", 0.2), ("d", 0.9)]), Some(both));
    }

    #[test]
    fn an_error_says_each_cause_once() {
        let cause = || io::Error::from(io::ErrorKind::NotFound);
        let error = anyhow::Error::from(cause()).context(format!("cannot open a.jsonl: {}", cause()));
        assert_eq!(in_words(&error), format!("cannot open a.jsonl: {}", cause()));
        let error = error.context("shard 3");
        assert_eq!(in_words(&error), format!("shard 3: cannot open a.jsonl: {}", cause()));
    }

    #[test]
    fn what_is_no_text_is_shown_as_a_replacement_character() {
        assert_eq!(plain("ä\t\n"), "ä\t\n");
        assert_eq!(plain("p\u{1}\u{1b}[31m\r\u{9b}\u{ffff}"), "p\u{fffd}\u{fffd}[31m\u{fffd}\u{fffd}\u{fffd}");
    }

    #[test]
    fn a_run_without_any_score_counts_the_reasons() {
        assert!(check_scored(1, [("too_long", 20)]).is_ok());
        let error = |unscored: &[(&'static str, usize)]| {
            check_scored(0, unscored.iter().copied()).expect_err("nothing was scored").to_string()
        };
        assert_eq!(error(&[("no_label", 1), ("too_long", 20)]), "no row was scored: 1 no_label, 20 too_long");
        assert_eq!(error(&[]), "no row was scored: there are none");
    }
}
