//! Two pictures beside the one of reliability: what is risked by keeping the surest rows, and how judges compare.

use anyhow::{Result, ensure};
use judge_metrics::comparison::{ComparedItem, Comparisons, Loss, SelectiveRisk};
use plotters::prelude::*;

use judge_cli::report::{percent, thinned};
use judge_cli::terminal::svg::{BLUE, Line, MORE, Point, VERMILLION, axis, chart, checked, intervals, short, svg};

/// Points that are drawn of all rows.
const MOST_POINTS: usize = 5_000;

/// The longest name in a title of two, in characters.
const NAME: usize = 20;

/// Points that are kept of a long curve.
pub const POINTS: usize = 500;

/// What two judges are compared by: larger is better of each, and 0 is what chance gives, or for the last three ½ or less.
pub const COMPARED: [&str; 9] = [
    "spearman",
    "kendall_tau_b",
    "pearson",
    "krippendorff_alpha_ordinal",
    "cohen_kappa",
    "cohen_kappa_quadratic",
    "pairwise_accuracy",
    "accuracy",
    "auroc",
];

/// People's mean score of each row against the judge's; points above one another are darker. Of many rows every so many are drawn.
///
/// # Errors
/// If scores are too far apart for an axis, or it cannot be drawn.
pub fn scores(items: &[ComparedItem], predicted: &str, human: &str) -> Result<String> {
    let all: Vec<(f64, f64)> =
        items.iter().filter_map(|item| Some((item.predicted.number()?, item.mean_human()?))).collect();
    let points: Vec<(f64, f64)> = all.iter().step_by(all.len().div_ceil(MOST_POINTS).max(1)).copied().collect();
    let (of_judge, of_people) = (axis(points.iter().map(|point| point.0))?, axis(points.iter().map(|point| point.1))?);
    let of = if points.len() == all.len() { String::new() } else { format!(", {} of them drawn", points.len()) };
    svg((640, 520), |area| {
        let [predicted, human] = [predicted, human].map(|name| short(name, NAME));
        let title = format!("{human} against {predicted}, n = {}{of}", all.len());
        let mut chart = chart(area, &title, (of_judge, &predicted), (of_people, &human), false)?;
        chart.draw_series(points.iter().map(|&point| Circle::new(point, 4, BLUE.mix(0.4).filled())))?;
        Ok(())
    })
}

/// The mean loss of the surest rows at each share of them, beside that of all.
///
/// # Errors
/// If the losses overflow or the picture cannot be drawn.
pub fn risk(risk: &SelectiveRisk, predicted: &str) -> Result<String> {
    let curve = thinned(&risk.curve()?, POINTS);
    let overall = curve.last().map_or(0.0, |point| point.risk);
    let most = curve.iter().fold(1e-9_f64, |most, point| most.max(point.risk));
    let (loss, of_risk) = (in_words(risk.loss), checked(0.0..1.05 * most)?);
    svg((640, 480), |area| {
        let title = format!("risk by coverage, {}, n = {}", short(predicted, NAME), risk.losses.len());
        let (below, beside) =
            ("coverage: share of rows kept, the surest first", format!("{loss}; vermillion: of all rows"));
        let mut chart = chart(area, &title, (0.0..1.0, below), (of_risk, &beside), false)?;
        chart.draw_series(LineSeries::new([(0.0, overall), (1.0, overall)], VERMILLION.stroke_width(1)))?;
        let points = curve.iter().map(|point| (point.coverage, point.risk));
        chart.draw_series(LineSeries::new(points, BLUE.stroke_width(2)))?;
        Ok(())
    })
}

/// What a mean of such losses is called.
pub fn in_words(loss: Loss) -> &'static str {
    match loss {
        Loss::WrongDecision => "share of wrong decisions",
        Loss::OtherLabel => "share of raters with another label",
        _ => "mean absolute error",
    }
}

/// Judges that are drawn beside the first.
pub const OTHERS_DRAWN: usize = 1 + MORE.len();

/// The judge in blue and the others in colours that the legend names, by what is defined of [`COMPARED`], and below it the judge's rank
/// correlation, or accuracy, in each group.
///
/// # Errors
/// If it cannot be drawn, or nothing of it is defined.
pub fn comparison(
    judge: (&str, &Comparisons),
    others: &[(&str, Comparisons)],
    groups: &[(String, Comparisons)],
    level: f64,
) -> Result<String> {
    let point = |found: &Comparisons, name: &str, colour| {
        let known = found.get(name)?;
        Some(Point { estimate: known.estimate()?, interval: known.interval(), colour })
    };
    let colours = || [(VERMILLION, "vermillion")].into_iter().chain(MORE);
    let of_judges = COMPARED.iter().filter_map(|name| {
        // What was not asked of the judge is not shown of the others either.
        let first = point(judge.1, name, BLUE)?;
        let others = others.iter().zip(colours()).filter_map(|((_, found), (colour, _))| point(found, name, colour));
        Some(Line { name: (*name).to_owned(), points: std::iter::once(first).chain(others).collect() })
    });
    let by =
        ["spearman", "accuracy"].into_iter().find(|name| point(judge.1, name, BLUE).is_some()).unwrap_or("spearman");
    let of_groups = groups.iter().filter_map(|(group, found)| {
        Some(Line { name: format!("{by}, {group}"), points: vec![point(found, by, BLUE)?] })
    });
    let lines: Vec<Line> = of_judges.chain(of_groups).collect();
    ensure!(!lines.is_empty(), "--comparison-plot: none of {} is defined and asked for", COMPARED.join(", "));
    let known = others.iter().map(|(name, _)| *name).zip(colours());
    let known = std::iter::once((judge.0, (BLUE, "blue"))).chain(known);
    let legend: Vec<_> = known.map(|(name, (colour, called))| (format!("{name} ({called})"), colour)).collect();
    let (title, legend) = match others {
        [] => (format!("{} against people", short(judge.0, 2 * NAME)), &[][..]),
        _ => ("judges against people".to_owned(), &legend[..]),
    };
    intervals(&title, &format!("{} intervals; more is better", percent(level)), [0.0, 1.0], &lines, legend)
}
