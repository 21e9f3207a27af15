//! The table for people, and what it comes to in words.

use anyhow::Result;
use judge_cli::args::words::in_a_shell;
use judge_cli::terminal::console::{counted, say, say_table};
use judge_cli::terminal::svg::{BLUE, Line, VERMILLION, intervals, name_of};
use judge_metrics::comparison::Statistic;
use judge_metrics::planning::items_for_width;
use judge_probe::trial::{Compared, Kept, Measure, Tried};

use super::advice::{Use, layer_of};
use super::cli::Cli;
use super::rows::Rows;

/// How narrow an interval decides most questions.
const NARROW: f64 = 0.1;

/// The readings, and what those that learn are worth by how many labels they learn from.
pub(super) fn tables(cli: &Cli, rows: &Rows, found: &Compared, kept: &[Option<Kept>]) -> Result<()> {
    let measure = name(found.measure);
    let n = rows.rows.len();
    say(format_args!(
        "{n} graded rows of {}, {} groups of rows, {} folds",
        cli.input.input.display(),
        rows.n_groups(),
        cli.folds
    ))?;
    let mut lines = Vec::new();
    for (place, (tried, kept)) in found.readings.iter().zip(kept).enumerate() {
        let behind = match found.best {
            Some(best) if best == place => "best".to_owned(),
            _ => format!("{:#.3}", tried.behind_best),
        };
        let layer = kept.as_ref().and_then(layer_of).map_or_else(String::new, |layer| layer.to_string());
        let learns = if tried.learns { "yes" } else { "" };
        lines.push(vec![tried.name.clone(), format!("{:#.3}", tried.agreement), behind, layer, learns.to_owned()]);
    }
    say("")?;
    say_table(["reading", &format!("{measure} [95 % together]"), "behind the best", "layer", "learns"], lines)?;
    say("")?;
    for tried in &found.readings {
        if let Statistic::Undefined { reason } = &tried.agreement {
            say(format_args!("undefined ({}): {reason}", tried.name))?;
        }
    }
    best_chosen(found)?;
    by_labels(measure, found)
}

/// How often each reading chooses the best answer to a question, where questions have several.
fn best_chosen(found: &Compared) -> Result<()> {
    let Some(of) = found.best_of else { return Ok(()) };
    let head = format!("best of the answers to {}", counted(of.questions, "question"));
    let of_reading = |tried: &Tried| Some(vec![tried.name.clone(), format!("{:#.3}", tried.best_chosen.as_ref()?)]);
    let at_random = vec!["an answer drawn at random".to_owned(), format!("{:.3}", of.at_random)];
    say_table([&head, "chosen"], found.readings.iter().filter_map(of_reading).chain([at_random]))?;
    say("")
}

fn name(measure: Measure) -> &'static str {
    match measure {
        Measure::Spearman => "Spearman",
        Measure::Auroc => "AUROC",
    }
}

/// The readings as a picture: those that learn in another colour than those that do not.
pub(super) fn plot(cli: &Cli, rows: &Rows, found: &Compared) -> Result<String> {
    let colour = |tried: &Tried| if tried.learns { VERMILLION } else { BLUE };
    let line = |tried: &Tried| Line::of(&tried.name, &tried.agreement, colour(tried));
    let lines: Vec<Line> = found.readings.iter().filter_map(line).collect();
    let title = format!("{}, n = {}", name_of(&cli.input.input), rows.rows.len());
    let note = format!(
        "{}, intervals of 95 % together; readings in vermillion learn from grades of other rows",
        name(found.measure)
    );
    let chance = found.measure.of_chance();
    intervals(&title, &note, [chance, chance + 0.1], &lines, &[])
}

/// What readings that learn are worth by how many labels they learn from.
fn by_labels(measure: &str, found: &Compared) -> Result<()> {
    let learning: Vec<&Tried> = found.readings.iter().filter(|tried| !tried.by_labels.is_empty()).collect();
    let Some(first) = learning.first() else { return Ok(()) };
    let mut head = vec![format!("{measure} by labels learnt from")];
    head.extend(first.by_labels.iter().map(|point| point.labels.to_string()));
    head.push("all - half".to_owned());
    let lines = learning.iter().map(|tried| {
        let mut line = vec![tried.name.clone()];
        let cell = |agreement: Option<f64>| agreement.map_or_else(|| "-".to_owned(), |known| format!("{known:.3}"));
        line.extend(tried.by_labels.iter().map(|point| cell(point.agreement)));
        line.push(tried.more_labels.as_ref().map_or_else(|| "-".to_owned(), |more| format!("{more:#.3}")));
        line
    });
    say_table(head, lines)?;
    say("")
}

/// Whether there is an interval, and it lies above 0.
fn is_above_0(statistic: &Statistic) -> bool {
    statistic.interval().is_some_and(|interval| interval.low > 0.0)
}

/// Which reading to use, and what else the figures come to.
pub(super) fn advise(rows: &Rows, found: &Compared, uses: &[Option<Use>]) -> Result<()> {
    let n = rows.rows.len();
    let Some(place) = found.recommended else {
        return say("No reading has a number that varies: look at the rows, and at what the model is asked.");
    };
    let chosen = &found.readings[place];
    let judges = || found.readings.iter().filter(|tried| !tried.is_baseline);
    if !judges().any(|tried| tried.is_shown_to_agree(found.measure)) {
        let chance = found.measure.of_chance();
        say(format_args!("No reading is shown to agree with people: no interval lies above {chance}."))?;
    }
    match found.best.map(|best| &found.readings[best]) {
        Some(best) if best.name != chosen.name => {
            let behind = match chosen.behind_best.interval() {
                Some(_) => format!("It is not shown to be worse than {} ({:.3} behind)", best.name, chosen.behind_best),
                None => format!("These rows are too few to make an interval of how far it is behind {}", best.name),
            };
            say(format_args!("Use: {}. {behind}, and is simpler.", chosen.name))?;
        }
        _ => say(format_args!("Use: {}.", chosen.name))?,
    }
    match uses[place].as_ref().and_then(|of| of.command.as_ref()) {
        Some(command) => say(format_args!("  {}", in_a_shell(command)))?,
        None => say(format_args!(
            "  No command reads rows of the format `{}` so; give them an instruction and a response, or read them in Rust.",
            rows.format
        ))?,
    }
    let baseline = found.readings.iter().find(|tried| tried.is_baseline && tried.behind_best.defined().is_some());
    if let Some(baseline) = baseline.filter(|tried| !is_above_0(&tried.behind_best)) {
        say(format_args!("No reading is shown to be better than the {}.", baseline.name))?;
    }
    let helps = |tried: &&Tried| tried.more_labels.as_ref().is_some_and(is_above_0);
    let helped: Vec<&str> = found.readings.iter().filter(helps).map(|tried| tried.name.as_str()).collect();
    let labels = match helped[..] {
        [] => "Nothing that learns is shown to be better with all labels than with half of them.".to_owned(),
        _ => format!("More labels may help; better with all of them than with half: {}.", helped.join(", ")),
    };
    let width = chosen.agreement.interval().map(|interval| (interval, interval.high - interval.low));
    let more = width.filter(|(_, width)| *width > NARROW).and_then(|(interval, width)| {
        let rows = items_for_width(interval, n, NARROW).ok()?;
        Some(format!(" The interval is {width:.2} wide; one {NARROW} wide takes about {rows} rows like these."))
    });
    say(format_args!("{labels}{}", more.unwrap_or_default()))
}
