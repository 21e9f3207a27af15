//! Bars that statistics must reach, so that a command can guard a release.

mod bar;
mod junit;

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Args;
use judge_core::settings::nearest_name;
use judge_metrics::comparison::{Reported, Statistic};
use serde_json::{Value, json};

use self::bar::{Bar, COUNTED};
use crate::args::numbers::share;
use crate::report::write_marked;
use crate::terminal::console::{in_words, say, tell, usage};
use crate::terminal::failures::Missed;
use crate::terminal::tables::{self, TableFormat};

pub use self::junit::note_usage_error;

/// The statistic of the share of rows that counted.
const COVERAGE: &str = "coverage";

/// What statistics must reach.
#[derive(Args, Clone, Debug)]
pub struct BarArgs {
    /// A bar for a statistic, its estimate or an end of its interval: 'spearman>=0.7', 'accuracy.low>=0.8', 'mae<=0.5' (repeatable). If one
    /// is missed, the exit code is 3. `n` is the number of rows that the statistics rest on, `coverage` the share of rows that count
    #[arg(long = "require", value_name = "STATISTIC[.low|.high]>=NUMBER", help_heading = "Bars")]
    bars: Vec<Bar>,
    /// With --require: the least coverage, unless there is a bar for it
    #[arg(long, value_name = "SHARE", default_value_t = 0.98, value_parser = share, requires = "bars", help_heading = "Bars")]
    min_coverage: f64,
    /// Where the bars go as a JUnit file, a test case for each
    #[arg(long, value_name = "FILE.xml", requires = "bars", help_heading = "Bars")]
    junit: Option<PathBuf>,
}

/// What a command has measured, for its bars.
#[derive(Debug)]
pub struct Measured {
    /// Statistics by name, as the command writes them, with those of [`rows_used`] or [`rows_compared`].
    pub statistics: Value,
    /// The rows that speak most against what was measured, in words: `got worse: 7, 6`. Empty if there are none. A file for machines has them
    /// at each bar that is missed, but for those of counts and of [`apart`](Self::apart).
    pub worst: String,
    /// The rows that do not count for the coverage. A file for machines has them at its bar.
    pub lost: Lost,
    /// Statistics of other rows, each with those of them that speak most against it.
    pub apart: Vec<(&'static str, String)>,
}

impl Measured {
    /// The rows that speak most against a statistic, in words.
    fn against(&self, statistic: &str) -> String {
        match self.apart.iter().find(|(name, _)| *name == statistic) {
            Some((_, rows)) => rows.clone(),
            None if statistic == COVERAGE => self.lost.in_words(),
            None if statistic == "n" => String::new(),
            None => self.worst.clone(),
        }
    }
}

/// Rows that do not count for the coverage, the first of them by name.
#[derive(Debug, Default)]
pub struct Lost(Vec<String>);

impl Lost {
    /// Takes one more.
    pub fn push(&mut self, name: impl ToString) {
        // One more than are named: it says that there are others.
        if self.0.len() <= SHOWN {
            self.0.push(name.to_string());
        }
    }

    fn in_words(&self) -> String {
        first_names("not counted", &self.0)
    }
}

impl<T: ToString> Extend<T> for Lost {
    fn extend<I: IntoIterator<Item = T>>(&mut self, names: I) {
        names.into_iter().for_each(|name| self.push(name));
    }
}

/// How many rows statistics rest on, and their share of those that they should rest on: the statistics `n` and `coverage`. These are counted,
/// not estimated.
#[must_use]
pub fn rows_used(used: usize, of: usize) -> [(&'static str, Statistic); 2] {
    rows_compared(used, used, of)
}

/// The same where statistics rest on `n` rows alone, such as those that people have labelled, and nothing is lost of the others.
#[must_use]
pub fn rows_compared(n: usize, used: usize, of: usize) -> [(&'static str, Statistic); 2] {
    let counted = |number, rows| Statistic::Defined(Reported::alone(number, format!("{COUNTED}: {rows} of {of} rows")));
    let share = if of == 0 { 0.0 } else { used as f64 / of as f64 };
    [(COVERAGE, counted(share, used)), ("n", counted(n as f64, n))]
}

/// The same as JSON.
pub fn rows_compared_json(n: usize, used: usize, of: usize) -> impl Iterator<Item = (String, Value)> {
    rows_compared(n, used, of).into_iter().map(|(name, known)| (name.to_owned(), json!(known)))
}

/// In words: `55 of 60 rows count, a coverage of 0.917`.
#[must_use]
pub fn rows_used_in_words(used: usize, of: usize) -> String {
    let share = if of == 0 { 0.0 } else { used as f64 / of as f64 };
    format!("{used} of {of} rows count, a coverage of {share:.3}")
}

/// Most ids of rows that are named.
const SHOWN: usize = 10;

/// The first of these names behind what they have in common: `got worse: 7, 6`; nothing where there are none.
pub fn first_names(what: &str, names: impl IntoIterator<Item = impl ToString>) -> String {
    let mut names = names.into_iter().map(|name| name.to_string());
    let shown: Vec<String> = names.by_ref().take(SHOWN).collect();
    let more = if names.next().is_some() { ", …" } else { "" };
    if shown.is_empty() { String::new() } else { format!("{what}: {}{more}", shown.join(", ")) }
}

impl BarArgs {
    /// The report that is written, if one is.
    pub fn reports(&self) -> impl Iterator<Item = &PathBuf> {
        self.junit.iter()
    }

    /// Names of the statistics that bars are for.
    pub fn statistics(&self) -> impl Iterator<Item = &str> {
        self.bars.iter().map(|bar| bar.statistic.as_str())
    }

    /// Has a `command` measure, and says which bars are reached. The JUnit file is one of this start from the beginning: until the end, and if
    /// the command fails, it holds an error.
    ///
    /// # Errors
    /// Those of the command. A usage error for a statistic that there is not; [`Missed`] where a bar is, also by a statistic that is undefined
    /// or has no interval.
    pub fn gate(&self, command: &'static str, measure: impl FnOnce() -> Result<Measured>) -> Result<()> {
        let started = Instant::now();
        // Not where the file of another is: the command refuses its name.
        let path = self.junit.as_ref().filter(|path| junit::may_write(command, path));
        if let Some(path) = path {
            let why = "the command did not come to its end";
            write_marked(path, command, &junit::failed(command, why)).with_context(|| path.display().to_string())?;
        }
        let checked = measure().and_then(|measured| self.check(command, started, &measured));
        if let (Err(error), Some(path)) = (&checked, path)
            && !error.is::<Missed>()
            && let Err(unwritten) = write_marked(path, command, &junit::failed(command, &in_words(error)))
        {
            tell(format_args!("note: {} could not be written: {}", path.display(), in_words(&unwritten)));
        }
        checked
    }

    /// Before any work: refuses a bar for a statistic that is none of these, and no count of rows. A name that ends with a colon stands for
    /// all that begin with it, as those of groups do.
    ///
    /// # Errors
    /// A usage error that names those that there are.
    pub fn check_names(&self, known: &[&str]) -> Result<()> {
        let known = [known, &[COVERAGE, "n"]].concat();
        let is_one = |name: &str| known.iter().any(|&one| name == one || (one.ends_with(':') && name.starts_with(one)));
        match self.bars.iter().find(|bar| !is_one(&bar.statistic)) {
            Some(bar) => {
                let shown =
                    known.iter().map(|one| if one.ends_with(':') { format!("{one}NAME") } else { (*one).to_owned() });
                Err(no_such_statistic(bar, &shown.collect::<Vec<_>>()))
            }
            None => Ok(()),
        }
    }

    /// The bars, that for the coverage among them.
    fn all(&self) -> Vec<Bar> {
        let mut bars = self.bars.clone();
        if !bars.is_empty() && bars.iter().all(|bar| bar.statistic != COVERAGE) {
            bars.push(Bar {
                text: format!("{COVERAGE}>={} (--min-coverage)", self.min_coverage),
                statistic: COVERAGE.to_owned(),
                end: "estimate",
                at_least: true,
                number: self.min_coverage,
            });
        }
        bars
    }

    fn check(&self, command: &'static str, started: Instant, measured: &Measured) -> Result<()> {
        let bars = self.all();
        let mut results = Vec::new();
        for bar in &bars {
            let Some(statistic) = measured.statistics.get(&bar.statistic) else {
                let known = measured.statistics.as_object().into_iter().flatten();
                return Err(no_such_statistic(bar, &known.map(|(name, _)| name.clone()).collect::<Vec<_>>()));
            };
            results.push(bar.held_against(statistic));
        }
        let mut missed = Vec::new();
        for held in &results {
            let found = format!("{}: {}", held.bar.text, held.found);
            if held.is_reached {
                say(format_args!("reached: {found}"))?;
            } else {
                // Beside a table for programs all lines are on stderr, where the error names those that are missed.
                if tables::format() == TableFormat::Plain {
                    say(format_args!("MISSED:  {found}"))?;
                }
                missed.push(found);
            }
        }
        if let Some(path) = &self.junit {
            let xml = junit::checked(command, started.elapsed(), &results, |statistic| measured.against(statistic));
            write_marked(path, command, &xml).with_context(|| path.display().to_string())?;
        }
        if missed.is_empty() { Ok(()) } else { Err(Missed { missed, of: results.len() }.into()) }
    }
}

/// The statistic that a misspelt one was most likely meant to be, as a question at the end of a message; nothing where none is near.
pub fn meant<'k>(found: &str, known: impl IntoIterator<Item = &'k str>) -> String {
    nearest_name(found, known).map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}

fn no_such_statistic(bar: &Bar, known: &[String]) -> anyhow::Error {
    let meant = meant(&bar.statistic, known.iter().map(String::as_str));
    usage(format!("--require {}: there is no such statistic, only {}{meant}", bar.text, known.join(", ")))
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;

    fn bar(text: &str) -> Bar {
        text.parse().unwrap()
    }

    /// Counts of rows are not about those that were judged worse.
    #[test]
    fn rows_are_named_where_they_speak_against_a_statistic() {
        let apart = vec![("separates", "in the wrong order: 5".to_owned())];
        let worst = "worse than before: 7".to_owned();
        let mut measured = Measured { statistics: Value::Null, worst, lost: Lost::default(), apart };
        let against = |of: &Measured| ["win_rate", "coverage", "n", "separates"].map(|statistic| of.against(statistic));
        assert_eq!(against(&measured), ["worse than before: 7", "", "", "in the wrong order: 5"]);
        measured.lost.extend(1..=10);
        assert_eq!(measured.against("coverage"), "not counted: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10");
        measured.lost.extend([11, 12]);
        assert_eq!(against(&measured)[1..3], ["not counted: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …", ""]);
    }

    #[test]
    fn coverage_has_a_bar_unless_one_is_named() {
        let args = |bars: &[&str]| BarArgs {
            bars: bars.iter().map(|text| bar(text)).collect(),
            min_coverage: 0.98,
            junit: None,
        };
        assert_eq!(args(&[]).all(), []);
        assert_eq!(args(&["a>=1"]).all()[1].text, "coverage>=0.98 (--min-coverage)");
        assert_eq!(args(&["coverage.low>=0.5"]).all().len(), 1);
        let found: Map<String, Value> = rows_compared_json(54, 54, 60).collect();
        let held = |text: &str| {
            bar(text).held_against(&found[if text.starts_with('n') { "n" } else { "coverage" }]).is_reached
        };
        assert!(
            held("coverage>=0.9")
                && !held("coverage>=0.91")
                && held("coverage.low>=0.9")
                && held("n>=54")
                && !held("n>=55")
        );
        let found = |(name, known): (&str, Statistic)| bar(&format!("{name}>=0")).held_against(&json!(known)).found;
        let apart = rows_compared(1, 54, 60).map(found);
        assert_eq!(apart, ["found 0.9000 (counted: 54 of 60 rows)", "found 1 (counted: 1 of 60 rows)"]);
    }
}
