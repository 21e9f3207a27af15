//! What people see: progress on stderr, tables on stdout, one readable error.

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::error::ErrorKind;
use indicatif::{ProgressBar, ProgressStyle};

/// An error that says that the command line is wrong; [`exit`] makes 2 of it, as clap does of what it finds itself.
#[must_use]
pub fn usage(problem: impl fmt::Display) -> anyhow::Error {
    clap::Error::raw(ErrorKind::ValueValidation, format!("{problem}\n")).into()
}

/// The exit code of an example: 0, 1 with the error and its causes on stderr, or 2 for a wrong command line.
#[must_use]
pub fn exit(result: anyhow::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is::<clap::Error>() => {
            eprint!("{error}");
            ExitCode::from(2)
        }
        Err(error) => {
            eprintln!("error: {error}");
            let mut said = error.to_string();
            for cause in error.chain().skip(1) {
                // Some errors already end with their cause.
                let cause = cause.to_string();
                if !said.contains(&cause) {
                    eprintln!("  caused by: {cause}");
                }
                said = cause;
            }
            ExitCode::FAILURE
        }
    }
}

/// A progress bar on stderr; silent where stderr is no terminal or `quiet` is set.
#[must_use]
pub fn progress(what: &'static str, total: usize, quiet: bool) -> ProgressBar {
    if quiet {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{msg} {bar:30} {pos}/{len} ({per_sec}, {eta} left)");
    let bar = ProgressBar::new(total as u64).with_message(what);
    bar.enable_steady_tick(Duration::from_millis(200));
    match style {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// Writes a line to stdout. A reader that has seen enough and closed it, as `head` does, is no error.
///
/// # Errors
///
/// What else keeps stdout from taking the text.
pub fn say(line: impl fmt::Display) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    match writeln!(stdout, "{line}").and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.context("cannot write to stdout"),
    }
}

/// Lines up cells: the first column to the left, the others to the right.
#[must_use]
pub fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let pad = " ".repeat(widths[column] - cell.chars().count());
            if column == 0 {
                line += &format!("{cell}{pad}");
            } else {
                line += &format!("  {pad}{cell}");
            }
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_lines_up_and_survives_short_rows() {
        let cells = |row: &[&str]| row.iter().map(ToString::to_string).collect::<Vec<_>>();
        let rows = [cells(&["name", "a", "bcd"]), cells(&["long name", "10", "2"]), cells(&["ä"])];
        assert_eq!(table(&rows), "name        a  bcd\nlong name  10    2\nä\n");
        assert_eq!(table(&[]), "");
    }
}
