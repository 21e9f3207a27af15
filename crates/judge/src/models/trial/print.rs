//! The table for people, and what it comes to in words.

use anyhow::Result;
use judge_metrics::comparison::Statistic;
use judge_metrics::planning::items_for_width;
use judge_probe::trial::{Compared, Measure, Tried};

use super::advice::{Use, in_a_shell};
use super::cli::Cli;
use super::rows::Rows;
use crate::terminal::console::say;
use crate::terminal::svg::{BLUE, Line, Point, VERMILLION, intervals, name_of};
use crate::terminal::tables::table;

/// How narrow an interval decides most questions.
const NARROW: f64 = 0.1;

pub(super) fn print(cli: &Cli, rows: &Rows, found: &Compared, uses: &[Option<Use>]) -> Result<()> {
    let measure = name(found.measure);
    let n = rows.rows.len();
    say(format_args!(
        "{n} graded rows of {}, {} groups of rows, {} folds",
        cli.input.input.display(),
        rows.n_groups(),
        cli.folds()
    ))?;
    let head = ["reading", &format!("{measure} [95 % together]"), "behind the best", "layer", "learns"];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    for (place, (tried, of)) in found.readings.iter().zip(uses).enumerate() {
        let behind = match found.best {
            Some(best) if best == place => "best".to_owned(),
            _ => format!("{:.3}", tried.behind_best),
        };
        let layer = of.as_ref().and_then(|of| of.layer).map_or_else(String::new, |layer| layer.to_string());
        let learns = if tried.learns { "yes" } else { "" };
        lines.push(vec![tried.name.clone(), format!("{:.3}", tried.agreement), behind, layer, learns.to_owned()]);
    }
    say(format_args!("\n{}", table(&lines)))?;
    for tried in &found.readings {
        if let Statistic::Undefined { reason } = &tried.agreement {
            say(format_args!("undefined ({}): {reason}", tried.name))?;
        }
    }
    by_labels(measure, found)?;
    advise(measure, n, found, uses)
}

fn name(measure: Measure) -> &'static str {
    match measure {
        Measure::Spearman => "Spearman",
        Measure::Auroc => "AUROC",
    }
}

/// The readings as a picture: those that learn in another colour than those that do not.
pub(super) fn plot(cli: &Cli, rows: &Rows, found: &Compared) -> Result<String> {
    let line = |tried: &Tried| {
        let known = tried.agreement.defined()?;
        let colour = if tried.learns { VERMILLION } else { BLUE };
        let point = Point { estimate: known.estimate, interval: known.interval, colour };
        Some(Line { name: tried.name.clone(), points: vec![point] })
    };
    let lines: Vec<Line> = found.readings.iter().filter_map(line).collect();
    let title = format!("{}, n = {}", name_of(&cli.input.input), rows.rows.len());
    let note =
        format!("{}, intervals of 95 % together; vermillion learns from grades of other rows", name(found.measure));
    let nothing = if found.measure == Measure::Auroc { [0.5, 0.6] } else { [0.0, 0.1] };
    intervals(&title, &note, nothing, &lines)
}

/// What readings that learn are worth by how many labels they learn from.
fn by_labels(measure: &str, found: &Compared) -> Result<()> {
    let learning: Vec<&Tried> = found.readings.iter().filter(|tried| !tried.by_labels.is_empty()).collect();
    let Some(first) = learning.first() else { return Ok(()) };
    let mut head = vec![format!("{measure} by labels learnt from")];
    head.extend(first.by_labels.iter().map(|point| point.labels.to_string()));
    head.push("all less half".to_owned());
    let mut lines = vec![head];
    for tried in learning {
        let mut line = vec![tried.name.clone()];
        let cell = |agreement: Option<f64>| agreement.map_or_else(|| "-".to_owned(), |known| format!("{known:.3}"));
        line.extend(tried.by_labels.iter().map(|point| cell(point.agreement)));
        line.push(tried.more_labels.as_ref().map_or_else(|| "-".to_owned(), |more| format!("{more:.3}")));
        lines.push(line);
    }
    say(table(&lines))
}

fn advise(measure: &str, n: usize, found: &Compared, uses: &[Option<Use>]) -> Result<()> {
    let Some(place) = found.recommended else {
        return say("No reading has a number that varies: look at the rows, and at what the model is asked.");
    };
    let chosen = &found.readings[place];
    let best = found.best.map(|best| &found.readings[best]);
    let low = chosen.agreement.interval().map(|interval| interval.low);
    let nothing = if measure == "AUROC" { 0.5 } else { 0.0 };
    if low.is_some_and(|low| low <= nothing) {
        say(format_args!(
            "No reading is shown to agree with people: the interval of {} holds {nothing}.",
            chosen.name
        ))?;
    }
    match best {
        Some(best) if best.name != chosen.name => say(format_args!(
            "Use: {}. It is not shown to be worse than {}, which needs more ({:.3} behind).",
            chosen.name, best.name, chosen.behind_best
        ))?,
        _ => say(format_args!("Use: {}.", chosen.name))?,
    }
    if let Some(of) = &uses[place] {
        say(format_args!("  {}", in_a_shell(&of.command)))?;
    }
    let baseline = found.readings.iter().zip(uses).find(|(_, of)| of.is_none()).map(|(tried, _)| tried);
    if let Some((baseline, most)) = baseline.and_then(|tried| Some((tried, tried.behind_best.defined()?)))
        && most.low().is_none_or(|low| low <= 0.0)
    {
        say(format_args!("No reading is shown to be better than the {}.", baseline.name))?;
    }
    let more = found.readings.iter().filter_map(|tried| Some((tried, tried.more_labels.as_ref()?.interval()?)));
    let helped: Vec<&str> = more.filter(|(_, more)| more.low > 0.0).map(|(tried, _)| tried.name.as_str()).collect();
    let labels = match helped[..] {
        [] => "Nothing that learns is shown to be better with all labels than with half of them.".to_owned(),
        _ => format!("More labels may help: all are better than half of them for {}.", helped.join(", ")),
    };
    let width = chosen.agreement.interval().map(|interval| (interval, interval.high - interval.low));
    let rows = width.filter(|(_, width)| *width > NARROW).and_then(|(interval, width)| {
        let rows = items_for_width(interval, n, NARROW).ok()?;
        Some(format!(" The interval is {width:.2} wide; one {NARROW} wide takes about {rows} rows like these."))
    });
    say(format_args!("{labels}{}", rows.unwrap_or_default()))
}
