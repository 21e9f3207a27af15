//! Bars that statistics must reach, so that a command can guard a release.

use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Context, Result};
use clap::Args;
use serde_json::Value;

use crate::report::write_marked;
use crate::terminal::console::{say, usage};
use crate::terminal::missed::Missed;

/// What statistics must reach.
#[derive(Args, Clone, Debug)]
pub struct BarArgs {
    /// A bar for a statistic, its estimate or an end of its interval: 'spearman>=0.7', 'accuracy.low>=0.8', 'mae<=0.5' (repeatable). If one
    /// is missed, the exit code is 3
    #[arg(long = "require", value_name = "STATISTIC[.low|.high]>=NUMBER", help_heading = "Bars")]
    bars: Vec<Bar>,
    /// Where the bars go as a JUnit file, a test case for each
    #[arg(long, value_name = "FILE.xml", requires = "bars", help_heading = "Bars")]
    junit: Option<PathBuf>,
}

/// A bar for a statistic.
#[derive(Clone, Debug, PartialEq)]
struct Bar {
    /// As it was written.
    text: String,
    statistic: String,
    /// `estimate`, `low` or `high`.
    end: &'static str,
    at_least: bool,
    number: f64,
}

impl FromStr for Bar {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || "expected STATISTIC>=NUMBER or STATISTIC<=NUMBER, such as spearman>=0.7 or accuracy.low>=0.8".to_owned();
        let (name, at_least, number) = match (text.split_once(">="), text.split_once("<=")) {
            (Some((name, number)), None) => (name, true, number),
            (None, Some((name, number))) => (name, false, number),
            _ => return Err(wrong()),
        };
        let (statistic, end) = match name.trim().rsplit_once('.') {
            Some((name, "low")) => (name, "low"),
            Some((name, "high")) => (name, "high"),
            _ => (name.trim(), "estimate"),
        };
        let number = number.trim().parse().ok().filter(|number: &f64| number.is_finite()).ok_or_else(wrong)?;
        if statistic.is_empty() {
            return Err(wrong());
        }
        Ok(Self { text: text.to_owned(), statistic: statistic.to_owned(), end, at_least, number })
    }
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

    /// Says which bars are reached, for a command's `program`; `found` is a report's object of statistics by name.
    ///
    /// # Errors
    /// A usage error for a statistic that there is not; [`Missed`] where a bar is, also by a statistic that is undefined or has no interval.
    pub fn check(&self, program: &str, found: &Value) -> Result<()> {
        let mut results = Vec::new();
        for bar in &self.bars {
            let Some(statistic) = found.get(&bar.statistic) else {
                let known: Vec<&str> = found.as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
                return Err(usage(format!(
                    "--require {}: there is no such statistic, only {}",
                    bar.text,
                    known.join(", ")
                )));
            };
            results.push((bar, bar.missed_by(statistic)));
        }
        for (bar, missed) in &results {
            match missed {
                None => say(format_args!("reached: {}", bar.text))?,
                Some(why) => say(format_args!("MISSED:  {}: {why}", bar.text))?,
            }
        }
        if let Some(path) = &self.junit {
            write_marked(path, program, &junit(&results)).with_context(|| path.display().to_string())?;
        }
        match results.iter().filter(|(_, missed)| missed.is_some()).count() {
            0 => Ok(()),
            missed => Err(Missed { missed, of: results.len() }.into()),
        }
    }
}

impl Bar {
    /// Why it is missed; `None` if it is reached.
    fn missed_by(&self, statistic: &Value) -> Option<String> {
        let Some(found) = statistic.get(self.end).and_then(Value::as_f64) else {
            let reason = statistic.get("reason").or(statistic.get("undefined")).and_then(Value::as_str);
            return Some(match reason {
                Some(reason) => format!("undefined: {reason}"),
                None => format!("it has no {}", self.end),
            });
        };
        let is_reached = if self.at_least { found >= self.number } else { found <= self.number };
        (!is_reached).then(|| format!("found {found:.4}"))
    }
}

/// A test case for each bar.
fn junit(results: &[(&Bar, Option<String>)]) -> String {
    let missed = results.iter().filter(|(_, missed)| missed.is_some()).count();
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"judge\" tests=\"{}\" failures=\"{missed}\">\n",
        results.len()
    );
    for (bar, missed) in results {
        let name = escaped(&bar.text);
        xml += &match missed {
            None => format!("  <testcase classname=\"judge\" name=\"{name}\"/>\n"),
            Some(why) => format!(
                "  <testcase classname=\"judge\" name=\"{name}\">\n    <failure message=\"{}\"/>\n  </testcase>\n",
                escaped(why)
            ),
        };
    }
    xml + "</testsuite>\n"
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_bar_is_of_an_estimate_or_an_end() {
        let bar = |text: &str| text.parse::<Bar>();
        let found = json!({"estimate": 0.75, "low": 0.6, "high": 0.8});
        for (text, reached) in [
            ("spearman>=0.7", true),
            ("spearman >= 0.8", false),
            ("spearman.low>=0.6", true),
            ("spearman.low>=0.61", false),
            ("mae.high<=0.8", true),
            ("mae<=-1", false),
        ] {
            assert_eq!(bar(text).unwrap().missed_by(&found).is_none(), reached, "{text}");
        }
        let undefined = bar("a.low>=0").unwrap().missed_by(&json!({"undefined": "one label"})).unwrap();
        assert!(undefined.contains("one label"), "{undefined}");
        assert!(bar("a>=0").unwrap().missed_by(&json!({"estimate": null})).is_some());
        for wrong in ["spearman", "spearman>0.7", ">=0.7", "a>=b", "a>=NaN", "a>=1<=2"] {
            assert!(bar(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_junit_file_has_a_case_for_each_bar() {
        let bars = ["a>=1".parse::<Bar>().unwrap(), "b<=\"".parse::<Bar>().unwrap_or_else(|_| "b<=2".parse().unwrap())];
        let xml = junit(&[(&bars[0], Some("found 0.5 & less".to_owned())), (&bars[1], None)]);
        assert!(xml.contains("tests=\"2\" failures=\"1\"") && xml.contains("name=\"a&gt;=1\""), "{xml}");
        assert!(xml.contains("message=\"found 0.5 &amp; less\"") && xml.contains("name=\"b&lt;=2\"/>"), "{xml}");
    }
}
