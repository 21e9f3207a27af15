//! The rows of the page: a list that is sorted and filtered by the page's script, and each row with its texts and layers within.

use maud::{Markup, html};

use super::findings::Findings;
use super::rows::Listed;
use super::texts::{ID, TEXT, shown, visible};

/// Bytes of all rows, so that the page stays one that can be mailed.
const ROWS: usize = 650_000;

/// Bytes of those that have their texts with them.
const WITH_TEXTS: usize = 350_000;

/// The size of a row's curve over layers, which stretches to the width of the page.
const CURVE: (f64, f64) = (600.0, 100.0);

/// The rows, as many as there is room for.
pub fn rows(found: &Findings) -> Markup {
    let (is_graded, is_grouped) = (found.graded > 0, found.listed.iter().any(|row| row.group.is_some()));
    let mut listed = Vec::new();
    let mut bytes = 0;
    for item in &found.listed {
        let row = row_of(item, is_graded, is_grouped, bytes < WITH_TEXTS);
        bytes += row.0.len();
        if bytes > ROWS {
            break;
        }
        listed.push(row);
    }
    let head = |of: &str, what: &str, is_number: bool| html! { button.n[is_number] type="button" disabled data-of=(of) { (what) } };
    html! {
        p.quiet {
            @if listed.len() == found.scored { "All rows with a score. " }
            @else if is_graded { "The " (listed.len()) " rows with the largest difference between the judge and people. " }
            @else { "The first " (listed.len()) " rows with a score. " }
            @if found.listed.iter().all(|item| item.texts.is_empty()) {
                "Their texts are not in the file: `judge report --texts FILE`, with the rows that were scored, shows them. "
            }
            @else { "Each opens to its texts. " }
            span #shown role="status" {}
        }
        div.controls hidden {
            label { "Find" input #words autocomplete="off"; }
            @if is_graded { label { "Least difference" input #least type="number" min="0" step="any"; } }
            @if is_grouped { label { "Group" select #groups { option value="" { "all" } } } }
        }
        div.rows tabindex="0" {
            div.heads {
                (head("id", "row", false))
                (head("judge", "judge", true))
                @if is_graded { (head("people", "people", true)) (head("difference", "difference", true)) }
                @if is_grouped { (head("group", "group", false)) }
            }
            @for row in &listed { (row) }
        }
    }
}

/// A number with three digits behind its point, or none; other texts as they are.
fn short(text: &str) -> String {
    match text.parse::<f64>() {
        Ok(number) if number.abs() < 1e9 => format!("{number:.0$}", if number.fract() == 0.0 { 0 } else { 3 }),
        _ => shown(text, ID),
    }
}

/// A number by which rows are sorted and filtered, where [`short`] shows another.
fn exact(number: Option<f64>) -> Option<String> {
    let number = number.filter(|number| short(&number.to_string()).parse::<f64>() != Ok(*number))?;
    Some(number.to_string())
}

fn row_of(item: &Listed, is_graded: bool, is_grouped: bool, with_texts: bool) -> Markup {
    let number = |number: Option<f64>| number.map(|number| short(&number.to_string())).unwrap_or_default();
    let people = if item.mean_human.is_some() { number(item.mean_human) } else { shown(&item.human.join(", "), ID) };
    html! {
        details.row {
            summary {
                span data-of="id" { (shown(&item.id, ID)) }
                span.n data-of="judge" data-exact=[exact(item.score)] { (short(&item.predicted)) }
                @if is_graded {
                    span.n data-of="people" data-exact=[exact(item.mean_human)] { (people) }
                    span.n data-of="difference" data-exact=[exact(item.difference)] { (number(item.difference)) }
                }
                @if is_grouped { span data-of="group" { (shown(item.group.as_deref().unwrap_or_default(), ID)) } }
            }
            div.within {
                @if with_texts {
                    @if item.human.len() > 1 { p { "People say " (shown(&item.human.join(", "), TEXT)) "." } }
                    @if !item.probabilities.is_empty() {
                        p.shares { @for (label, p) in &item.probabilities {
                            span { (shown(label, ID)) " " progress value=(format!("{:.3}", p.clamp(0.0, 1.0))) {} " " (format!("{p:.2}")) }
                        } }
                    }
                    @if item.layers.len() > 1 { (curve(item)) }
                    @if !item.texts.is_empty() {
                        table { @for (field, text) in &item.texts { tr { th { (shown(field, ID)) } td.text dir="auto" { (visible(text)) } } } }
                    }
                } @else {
                    p.quiet { "The page has no room for its texts and layers, only for those of the rows that come first." }
                }
            }
        }
    }
}

/// The expected score of each layer, from the lowest to the highest, beside what people say.
fn curve(item: &Listed) -> Markup {
    let scores = item.layers.iter().map(|(_, score)| *score).chain(item.mean_human);
    let (low, high) = scores.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)));
    let up = |score: f64| CURVE.1 * (0.95 - 0.9 * (score - low) / (high - low).max(1e-9));
    let across = |place: usize| CURVE.0 * place as f64 / (item.layers.len() - 1) as f64;
    let points =
        item.layers.iter().enumerate().map(|(place, (_, score))| format!("{:.0},{:.0}", across(place), up(*score)));
    let numbers = item.layers.iter().map(|(layer, score)| format!("{layer}: {score:.2}"));
    html! {
        svg.curve viewBox=(format!("0 0 {} {}", CURVE.0, CURVE.1)) preserveAspectRatio="none" role="img" aria-label="The expected score of each layer" {
            polyline points=(points.collect::<Vec<_>>().join(" ")) {}
            @if let Some(human) = item.mean_human.map(|human| format!("{:.0}", up(human))) { line x1="0" x2=(CURVE.0) y1=(human) y2=(human) {} }
        }
        p.quiet {
            "The expected score of each layer alone" @if item.mean_human.is_some() { "; dashed: people" } ". "
            (numbers.collect::<Vec<_>>().join(" · "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sorted_by_the_numbers_and_not_by_what_is_shown() {
        assert_eq!(exact(Some(2.0004)).as_deref(), Some("2.0004"));
        for shown in [Some(2.0), Some(2.5), Some(-1e12), None] {
            assert_eq!(exact(shown), None, "{shown:?}");
        }
    }
}
