//! What people read: first whether the judge can be trusted and how sure that is, then every figure.

use std::cmp::Ordering;

use anyhow::Result;
use judge_cli::report::{p_in_words, percent, undefined};
use judge_cli::terminal::console::{say, say_table, title_cell};
use judge_metrics::comparison::{ComparedItem, Comparisons, Reported, STATISTICS, SelectiveRisk, Statistic};
use judge_metrics::decimals;
use judge_metrics::prediction::bias_in_words;

use super::figures::in_words;
use super::judges::{judge_of, statistic_of};
use super::means::MEANS;

/// More groups than this get a line each.
pub const FEW_GROUPS: usize = 50;

/// What each part of the table is about, and the first statistic of it.
const PARTS: [(&str, &str); 10] = [
    ("do rows rise with people's scores?", "pearson"),
    ("how far off are scores?", "mae"),
    ("judge and people as two raters", "krippendorff_alpha_nominal"),
    ("do answers rise with people's scores within a cluster?", "spearman_within_clusters"),
    ("are probabilities right?", "auroc"),
    ("the first judge less the second", "difference_pearson"),
    ("what does keeping the surest rows risk?", "area_under_risk_coverage"),
    ("are labels right?", "rows_with_a_majority"),
    ("people themselves", "alternative_winning_rate"),
    ("people's mean score", "human_mean"),
];

/// By what two judges are compared in sentences, and whether a difference above 0 speaks for the first one.
const COMPARED: [(&str, &str, Ordering); 2] =
    [("difference_spearman", "rank correlation", Ordering::Greater), (DISTANCE, "mean absolute error", Ordering::Less)];

/// The one of these that is of distances.
const DISTANCE: &str = "difference_mae";

/// What the other judge is called where there is one.
const SECOND: &str = "the second";

/// A difference from each other judge, with what that judge is called.
fn of_others<'f>(found: &'f Comparisons, name: &str) -> impl Iterator<Item = (&'f str, &'f Reported)> {
    let of_name = found.statistics.iter().filter(move |(known, _)| statistic_of(known) == name);
    of_name.filter_map(|(known, statistic)| Some((judge_of(known).unwrap_or(SECOND), statistic.defined()?)))
}

/// Whether a statistic's p-value is below that of its level, where it has one.
fn is_unlikely(known: &Reported) -> Option<bool> {
    let level = known.interval.map_or(0.95, |interval| interval.level);
    known.p_adjusted.or(known.p).map(|p| p < 1.0 - level)
}

/// Whether its interval, which bars look at, is on one side of 0, where it has one.
fn is_beside(known: &Reported) -> Option<bool> {
    known.interval.map(|interval| interval.low > 0.0 || interval.high < 0.0)
}

/// Which side of 0 a statistic is shown to lie on: its test and its interval, which are no inverses of each other, both say so where it has
/// both. `None` where it may be 0.
fn shown(known: &Reported) -> Option<Ordering> {
    let sign = known.estimate.partial_cmp(&0.0).filter(|sign| sign.is_ne())?;
    let beyond_chance = match (is_unlikely(known), is_beside(known)) {
        // The same on every row, of six or more: no chance makes that.
        (None, None) => known.no_variation,
        (by_test, by_interval) => by_test != Some(false) && by_interval != Some(false),
    };
    beyond_chance.then_some(sign)
}

/// The p-value of a difference, in words, and that its interval does not say the same.
fn chance(difference: &Reported) -> String {
    let adjusted = if difference.p_adjusted.is_some() { "adjusted " } else { "" };
    let but = match (is_unlikely(difference), is_beside(difference)) {
        (Some(true), Some(false)) => ", but the interval reaches 0",
        _ => "",
    };
    difference.p_adjusted.or(difference.p).map_or_else(String::new, |p| match p {
        p if p < 0.0001 => format!(" ({adjusted}p < 0.0001{but})"),
        p if difference.p_at_most => format!(" ({adjusted}p <= {p:.4}{but})"),
        p => format!(" ({adjusted}p = {p:.4}{but})"),
    })
}

/// A group's rows and figures as sentences and a table; `numeric` says whether ratings are numbers, `off_scale` what stands in the place of
/// sentences on distances, where people's scale is another one.
///
/// # Errors
/// If the losses of `risk` overflow, or stdout takes nothing.
pub fn whole(
    title: &str,
    found: &Comparisons,
    numeric: bool,
    off_scale: Option<&str>,
    risk: Option<&SelectiveRisk>,
    methods: bool,
) -> Result<()> {
    let mut lines = sentences(found, numeric, off_scale);
    lines.extend(risk.filter(|_| off_scale.is_none()).map(surest).transpose()?.flatten());
    say(title)?;
    lines.into_iter().try_for_each(|line| say(format_args!("  {line}")))?;
    figures(title, found, methods)
}

/// What half of the rows cost, those that the judge is surest of.
fn surest(risk: &SelectiveRisk) -> Result<Option<String>> {
    let curve = risk.curve()?;
    let half = curve.iter().find(|point| point.coverage >= 0.5).filter(|point| point.coverage < 1.0);
    let (Some(half), Some(all)) = (half, curve.last()) else {
        return Ok(None);
    };
    let loss = in_words(risk.loss);
    Ok(Some(format!(
        "Of the {:.0} % of rows that it is surest of, the {loss} is {}; of all, {}.",
        100.0 * half.coverage,
        decimals(half.risk, 2),
        decimals(all.risk, 2)
    )))
}

/// Whether people agree with each other beyond chance; `None` where it was not asked.
fn people_agree(found: &Comparisons) -> Option<bool> {
    let of = |kind: &str| found.get(&format!("human_krippendorff_alpha_{kind}")).and_then(Statistic::defined);
    let alpha = of("interval").or_else(|| of("ordinal")).or_else(|| of("nominal"))?;
    // People who never differ have no interval.
    Some(alpha.interval.map_or(alpha.estimate >= 1.0, |interval| interval.low > 0.0))
}

fn sentences(found: &Comparisons, numeric: bool, off_scale: Option<&str>) -> Vec<String> {
    let known = |name: &str| found.get(name).and_then(Statistic::defined);
    let distance = |name: &str| known(name).filter(|_| off_scale.is_none());
    let sure = |known: &Reported| {
        known.interval.map_or_else(
            || if known.no_variation { " (no variation)" } else { " (no interval)" }.to_owned(),
            |interval| {
                let [low, high] = [interval.low, interval.high].map(|end| decimals(end, 2));
                format!(" [{low}, {high}] at {}", percent(interval.level))
            },
        )
    };
    let mut lines = Vec::new();
    if let Some(wins) = distance("alternative_winning_rate") {
        let (percent, method) = (100.0 * wins.estimate, &wins.method);
        // The test holds the judge against raters, whatever these are worth: where they agree by chance alone, noise passes it.
        lines.push(match people_agree(found) {
            Some(true) => {
                let place =
                    if wins.estimate >= 0.5 { "The judge may take" } else { "Nothing shows that the judge may take" };
                format!("{place} a rater's place: it does as well as {percent:.0} % of them (alternative annotator test, {method}).")
            }
            Some(false) => format!(
                "People are not shown to agree with each other, so that doing as well as {percent:.0} % of them says nothing for the judge."
            ),
            None => format!("It does as well as {percent:.0} % of raters (alternative annotator test, {method})."),
        });
    }
    if let (Some(judge), Some(people)) = (distance("against_rest_judge"), distance("against_rest_human")) {
        // Numbers are held against the mean of the others, labels against what most of them say.
        lines.push(if numeric {
            format!(
                "It is {} from the mean of the other raters on average; a rater is {} from it.",
                decimals(judge.estimate, 2),
                decimals(people.estimate, 2)
            )
        } else {
            format!(
                "It gives the label of most other raters in {:.0} % of rows; a rater does in {:.0} %.",
                100.0 * judge.estimate,
                100.0 * people.estimate
            )
        });
    }
    if let Some(rank) = known("spearman") {
        let size = format!("a rank correlation of {:.2}{}", rank.estimate, sure(rank));
        lines.push(match shown(rank) {
            Some(Ordering::Less) => format!("The judge orders rows the other way round than people do, with {size}."),
            Some(_) => format!("The judge orders rows as people do with {size}."),
            None => format!("That the judge orders rows as people do cannot be shown on these rows: {size}."),
        });
    } else if let Some(Statistic::Undefined { reason }) = found.get("spearman") {
        lines.push(format!("Whether the judge orders rows as people do is not known: {reason}."));
    }
    lines.extend(off_scale.map(str::to_owned));
    if let Some(bias) = distance("bias") {
        let far = known("mae").map(|mae| format!("; a score is {} off on average", decimals(mae.estimate, 2)));
        let far = far.unwrap_or_default();
        let size = format!("{}{}{far}", bias_in_words(bias.estimate), sure(bias));
        lines.push(match shown(bias) {
            Some(_) => format!("Its scores are {size}."),
            None => format!("No bias can be shown: its scores are {size}."),
        });
    }
    if let Some(accuracy) = known("accuracy") {
        let percent = |share: f64| 100.0 * share;
        let ends = accuracy.interval.map_or_else(String::new, |interval| {
            format!(" [{:.0} %, {:.0} %]", percent(interval.low), percent(interval.high))
        });
        lines.push(format!("It gives people's label in {:.0} % of rows{ends}.", percent(accuracy.estimate)));
    }
    if let Some(raters) = known("human_krippendorff_alpha_interval") {
        lines.push(format!("People agree among themselves with an alpha of {:.2}{}.", raters.estimate, sure(raters)));
    }
    for (name, measure, better) in COMPARED.into_iter().filter(|(name, ..)| off_scale.is_none() || *name != DISTANCE) {
        for (other, difference) in of_others(found, name) {
            let size = format!("{:.2}{}{}", difference.estimate, sure(difference), chance(difference));
            let said = match shown(difference) {
                Some(sign) if sign == better => format!("the first judge is better than {other}"),
                Some(_) => format!("the first judge is worse than {other}"),
                None if other == SECOND => "no difference between the two judges can be shown".to_owned(),
                None => format!("no difference between the first judge and {other} can be shown"),
            };
            lines.push(format!("In {measure} {said}: the first less {other} is {size}."));
        }
    }
    for (other, difference) in of_others(found, "difference_accuracy") {
        let points = 100.0 * difference.estimate.abs();
        let more = if difference.estimate < 0.0 { "less" } else { "more" };
        let chance = chance(difference);
        lines.push(match shown(difference) {
            Some(_) => format!(
                "The first judge gives people's label {points:.0} percentage points {more} often than {other}{chance}."
            ),
            None => format!(
                "In people's label no difference between the first judge and {other} can be shown: the first gives it {points:.0} percentage points {more} often{chance}."
            ),
        });
    }
    if let Some(mean) = known("human_mean_prediction_powered") {
        lines.push(format!(
            "People would give all rows, those without a human score included, {} on average{}.",
            decimals(mean.estimate, 2),
            sure(mean)
        ));
    }
    lines
}

/// What the part of the table that has this statistic is about.
fn part_of(name: &str) -> &'static str {
    let place = |name: &str| STATISTICS.iter().chain(&MEANS).position(|known| *known == name);
    let part = PARTS.iter().rev().find(|(_, first)| place(first) <= place(statistic_of(name)));
    part.map_or("", |(title, _)| *title)
}

/// The table of a group; the reasons of what is undefined below it, each once.
fn figures(title: &str, found: &Comparisons, methods: bool) -> Result<()> {
    let (mut head, mut rows) = (vec![title_cell(title), "estimate", "low", "high", "p"], Vec::new());
    let adjusted =
        found.statistics.iter().any(|(_, known)| known.defined().is_some_and(|known| known.p_adjusted.is_some()));
    head.extend(adjusted.then_some("adjusted p"));
    head.extend(methods.then_some("method"));
    let number = |x: Option<f64>| x.map_or_else(String::new, |x| decimals(x, 4));
    let mut shown = "";
    for (name, statistic) in &found.statistics {
        let Statistic::Defined(known) = statistic else { continue };
        // A part of which nothing is defined has no heading.
        let part = part_of(name);
        if part != shown {
            rows.push(vec![part.to_owned()]);
            shown = part;
        }
        let p = |p: Option<f64>| p.map_or_else(String::new, |p| p_in_words(p, known.p_at_most));
        let (low, high) = (known.interval.map(|i| i.low), known.interval.map(|i| i.high));
        let mut cells = vec![name.clone(), number(Some(known.estimate)), number(low), number(high), p(known.p)];
        cells.extend(adjusted.then(|| p(known.p_adjusted)));
        cells.extend(methods.then(|| known.method.clone()));
        rows.push(cells);
    }
    if !rows.is_empty() {
        say_table(head, rows)?;
    }
    for (reason, names) in undefined(found.statistics.iter().map(|(name, known)| (name.as_str(), known))) {
        let which = match names.as_slice() {
            [] => continue,
            [one] => (*one).to_owned(),
            [first, rest @ ..] => format!("{first} and {} more", rest.len()),
        };
        say(format_args!("undefined ({which}): {reason}"))?;
    }
    Ok(())
}

/// The rows on which the judge is furthest from people, by their places.
pub fn furthest(items: &[ComparedItem], names: &[String], places: &[usize]) -> Result<()> {
    const SHOWN: usize = 5;
    let row = |&place: &usize| {
        let people: Vec<String> = items[place].ratings().map(ToString::to_string).collect();
        vec![names[place].clone(), items[place].predicted.to_string(), people.join(", ")]
    };
    say_table(["furthest from people", "judge", "people"], places.iter().take(SHOWN).map(row))
}

/// A line for each group, with the chosen statistics; of a difference from several judges each has a column.
pub fn compact(field: &str, groups: &[(&str, &Comparisons)], names: &[&str]) -> Result<()> {
    let columns = |name: &&str| {
        let known = |(_, found): &(&str, &Comparisons)| {
            let known = found.statistics.iter().map(|(known, _)| known);
            known.filter(|known| known == name || statistic_of(known) == *name).cloned().collect::<Vec<_>>()
        };
        groups.iter().map(known).find(|known| !known.is_empty()).unwrap_or_else(|| vec![(*name).to_owned()])
    };
    let names: Vec<String> = names.iter().flat_map(columns).collect();
    let head = [field, "rows"].into_iter().chain(names.iter().map(String::as_str));
    let row = |&(group, found): &(&str, &Comparisons)| {
        let cell = |name: &String| match found.get(name) {
            Some(statistic @ Statistic::Defined(_)) => format!("{statistic:.2}"),
            _ => "-".to_owned(),
        };
        [group.to_owned(), found.n.to_string()].into_iter().chain(names.iter().map(cell)).collect()
    };
    say_table(head, groups.iter().map(row))
}

#[cfg(test)]
mod tests {
    use judge_metrics::Interval;

    use super::*;

    /// The exchange of two judges and the bootstrap are no inverses of each other: nothing is claimed that a bar on the interval denies.
    #[test]
    fn a_difference_is_claimed_where_test_and_interval_say_so() {
        let said = |p: f64, low: f64| {
            let known = Reported {
                estimate: 0.04,
                interval: Some(Interval { low, high: 0.07, level: 0.95 }),
                no_variation: false,
                p: Some(p),
                p_at_most: false,
                p_adjusted: None,
                method: String::new(),
            };
            let statistics = vec![("difference_spearman".to_owned(), Statistic::Defined(known))];
            sentences(&Comparisons { n: 200, statistics }, true, None).concat()
        };
        assert!(said(0.0402, 0.0012).contains("the first judge is better than the second"));
        assert!(said(0.06, 0.0012).contains("no difference between the two judges can be shown"));
        let apart = said(0.0402, -0.0012);
        assert!(
            apart.contains("no difference between the two judges can be shown")
                && apart.contains("(p = 0.0402, but the interval reaches 0)"),
            "{apart}"
        );
    }
}
