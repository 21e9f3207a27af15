//! The pages. All texts pass through the template or through [`markdown`], which escape them.

use judge_cli::pages::{is_unseen, served as page, stylesheet};
use judge_core::decision::exact_json;
use judge_data::{Field, Given, GradingGroup, GradingOption, GradingTask, RaterGrade, Shown};
use maud::{Markup, html};

use super::markdown::markdown;
use super::session::{Progress, Session, Settings};

/// Every page: nothing of other origins, no script and no style but the two files.
pub(super) const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; form-action 'self'; base-uri \
                                 'none'; frame-ancestors 'none'";

pub(super) fn style() -> String {
    stylesheet(include_str!("page.css"))
}

pub(super) const SCRIPT: &str = include_str!("page.js");

/// Why a row may be skipped, besides what the rater writes.
const REASONS: [&str; 3] = ["I cannot tell", "The row is broken or incomplete", "It is not my field or my language"];

/// Asks who grades.
pub(super) fn who(session: &Session, problem: Option<&str>) -> String {
    let known = session.expected();
    let rows = session.settings.rows.len();
    page(
        "Who is grading?",
        &html! {
            body.plain {
                main.card {
                    h1 { "Who is grading?" }
                    p { (rows) " rows, one at a time. Every answer is saved at once; stop and come back whenever you like." }
                    @if let Some(problem) = problem { p.notice role="alert" { (problem) } }
                    @if !known.is_empty() {
                        ul.raters {
                            @for rater in &known {
                                @let done = session.progress(rater).done;
                                li {
                                    form action="rate" method="get" {
                                        button.rater name="rater" value=(rater) {
                                            span { (rater) }
                                            span.quiet { (done) " of " (rows) }
                                        }
                                    }
                                }
                            }
                        }
                    }
                    @if session.settings.named.is_empty() {
                        form.who action="rate" method="get" {
                            label for="rater" { @if known.is_empty() { "Your name" } @else { "Someone else" } }
                            div.line {
                                input #rater name="rater" required maxlength="40" autocomplete="off" autofocus[known.is_empty()];
                                button.main { "Begin" }
                            }
                        }
                    }
                }
            }
        },
    )
}

/// A page that says something, and no more.
pub(super) fn says(title: &str, text: &str) -> String {
    page(title, &html! { body.plain { main.card { h1 { (title) } p { (text) } } } })
}

/// A row for a rater to grade.
pub(super) fn row(session: &Session, rater: &str, place: usize, notice: Option<&str>) -> String {
    let Settings { task, asked, rows, .. } = &session.settings;
    let record = &rows[place];
    let groups = session.groups(place);
    let (done, rows) = (session.progress(rater).done, rows.len());
    let before = session.undone(rater, place);
    let is_swapped = session.swaps(rater, place);
    let is_pair = *task == GradingTask::Pairs;
    let note = before.and_then(|grade| grade.note.as_deref());
    let beside = |field: &Field| !matches!(field, Field::ResponseA | Field::ResponseB) || !is_pair;
    let marks = *task == GradingTask::Sentences;
    let texts = task.shown(record);
    let text_of = |field: Field| texts.iter().find(|(known, _)| *known == field).map(|(_, text)| text);
    let shown = texts.iter().filter(|(field, _)| beside(field) && *field != Field::Rubric);
    page(
        &format!("{} of {rows} – {rater}", done + 1),
        &html! {
            body.row data-task=(if groups.len() == 1 { "one" } else { "many" }) {
                (head(rater, done, rows))
                @if let Some(notice) = notice { p.notice role="status" { (notice) } }
                form #answer action="answer" method="post" autocomplete="off" {
                    input type="hidden" name="rater" value=(rater);
                    input type="hidden" name="row" value=(place);
                    main {
                        @for (field, text) in shown { (card(field, text)) }
                        @if is_pair {
                            div.pair {
                                @for (side, field) in sides(is_swapped).into_iter().enumerate() {
                                    section.card.response {
                                        h2 { "Response " (side + 1) }
                                        @if let Some(text) = text_of(field) { (body_of(text)) }
                                    }
                                }
                            }
                        }
                        @if groups.len() > 1 || groups.iter().any(|group| group.text.is_some()) {
                            section.card.groups {
                                h2 { @if marks { "Response, sentence by sentence" } @else { "Questions" } }
                                @for (number, asked) in groups.iter().enumerate() { (many(number, asked, before)) }
                            }
                        }
                    }
                    footer {
                        div.ask {
                            strong { (asked) }
                            @if let Some(rubric) = text_of(Field::Rubric) {
                                details.rubric open { summary { "Rubric" } (body_of(rubric)) }
                            }
                        }
                        @match groups.as_slice() {
                            [only] if only.text.is_none() => (one(only, before, is_pair.then_some(is_swapped))),
                            _ => (submit(task)),
                        }
                        div.more {
                            details.note open[note.is_some()] {
                                summary { "Note" kbd { "C" } }
                                textarea name="note" rows="2" maxlength="2000" aria-label="Note" { (note.unwrap_or_default()) }
                            }
                            details.skip {
                                summary { "Skip" kbd { "S" } }
                                div.reasons {
                                    @for reason in REASONS { button.reason name="skip" value=(reason) formnovalidate { (reason) } }
                                    div.line {
                                        input name="reason" form="skip" placeholder="Another reason" maxlength="200" aria-label="Another reason";
                                        button form="skip" { "Skip" }
                                    }
                                }
                            }
                            button.undo form="undo" disabled[done == 0] { "Undo" kbd { "U" } }
                            button #raw type="button" { "Plain text" kbd { "R" } }
                        }
                    }
                }
                // A form of its own: Enter in its field is no answer.
                form #skip action="answer" method="post" autocomplete="off" {
                    input type="hidden" name="rater" value=(rater);
                    input type="hidden" name="row" value=(place);
                    input type="hidden" name="skip" value="";
                }
                (undo(rater))
            }
        },
    )
}

/// Which field is shown first, and which second.
fn sides(is_swapped: bool) -> [Field; 2] {
    if is_swapped { [Field::ResponseB, Field::ResponseA] } else { [Field::ResponseA, Field::ResponseB] }
}

fn head(rater: &str, done: usize, rows: usize) -> Markup {
    html! {
        header {
            progress value=(done) max=(rows) { (done) " of " (rows) }
            span.count { (done) " of " (rows) " graded" }
            a.name href="who" title="Someone else is grading" { (rater) }
        }
    }
}

fn undo(rater: &str) -> Markup {
    html! { form #undo action="undo" method="post" { input type="hidden" name="rater" value=(rater); } }
}

fn submit(task: &GradingTask) -> Markup {
    html! {
        div.answers {
            @if *task == GradingTask::Sentences {
                button #rest type="button" { "All others supported" kbd { "A" } }
            }
            button.main #submit { "Save and continue" kbd { "Enter" } }
        }
    }
}

/// A field's name for people.
fn title(field: Field) -> &'static str {
    match field {
        Field::Instruction => "Prompt",
        Field::Messages => "Conversation",
        Field::State => "State",
        Field::Contexts => "Contexts",
        Field::Response => "Response",
        Field::ResponseA => "Response A",
        Field::ResponseB => "Response B",
        Field::Reference => "Reference answer",
        _ => "Rubric",
    }
}

fn card(field: &Field, shown: &Shown) -> Markup {
    let is_response = *field == Field::Response;
    html! {
        @if *field == Field::Reference {
            details.card { summary { (title(*field)) } (body_of(shown)) }
        } @else {
            section.card.response[is_response] { h2 { (title(*field)) } (body_of(shown)) }
        }
    }
}

fn body_of(shown: &Shown) -> Markup {
    html! {
        @match shown {
            Shown::Text(text) => (text_of(text)),
            Shown::Turns(turns) => div.scroll tabindex="0" {
                @for turn in turns { div.turn { h3 { (turn.role) } (both(&turn.content)) } }
            },
            Shown::List(texts) => div.scroll tabindex="0" { ol.contexts { @for text in texts { li { (both(text)) } } } },
            Shown::Json(value) => pre.scroll tabindex="0" { (exact_json::to_pretty_text(value)) },
        }
    }
}

fn text_of(text: &str) -> Markup {
    html! { div.scroll tabindex="0" { (both(text)) } }
}

/// As Markdown, and as it is.
fn both(text: &str) -> Markup {
    let is_unseen = text.chars().all(|c| c.is_whitespace() || is_unseen(c));
    html! {
        @if is_unseen { p.quiet { "(empty)" } }
        @else { div.text dir="auto" { (markdown(text)) } pre.raw dir="auto" hidden { (text) } }
    }
}

/// The one thing that is asked: each answer is a button, which saves it.
fn one(asked: &GradingGroup, before: Option<&RaterGrade>, pair: Option<bool>) -> Markup {
    let mut places: Vec<usize> = (0..asked.options.len()).collect();
    if pair == Some(true) {
        places.swap(0, 1);
    }
    let is_before = |option: &GradingOption| is_given(before, 0, option);
    let label = |shown: usize, option: &GradingOption| match (pair, shown) {
        (Some(_), 0 | 1) => format!("Response {}", shown + 1),
        _ => option.label.clone(),
    };
    html! {
        div.answers.pair-answers[pair.is_some()] {
            @for (shown, &place) in places.iter().enumerate() {
                @let option = &asked.options[place];
                @let keys = keys(asked, place, pair.map(|_| shown));
                button.answer.before[is_before(option)] name="g0" value=(place) data-keys=(keys.join(" ")) {
                    span.label { (label(shown, option)) }
                    @if let Some(about) = &option.about { span.about { (about) } }
                    @if let Some(key) = keys.first().filter(|key| **key != option.label) { kbd { (key.to_uppercase()) } }
                }
            }
        }
    }
}

fn is_given(before: Option<&RaterGrade>, number: usize, option: &GradingOption) -> bool {
    matches!(before.map(|grade| &grade.given), Some(Given::Values(values)) if values.get(number) == Some(&option.value))
}

/// One of several things that are asked.
fn many(number: usize, asked: &GradingGroup, before: Option<&RaterGrade>) -> Markup {
    let name = format!("g{number}");
    html! {
        fieldset.group data-group=(number) {
            legend { (asked.text.as_deref().unwrap_or(&asked.name)) }
            div.options {
                @for (place, option) in asked.options.iter().enumerate() {
                    @let keys = keys(asked, place, None);
                    label.option title=[option.about.as_deref()] {
                        input type="radio" name=(name) value=(place) required data-keys=(keys.join(" ")) checked[is_given(before, number, option)];
                        span.label { (option.label) }
                        @if let Some(about) = &option.about { span.about { (about) } }
                        @if let Some(key) = keys.first().filter(|key| **key != option.label) { kbd { (key.to_uppercase()) } }
                    }
                }
            }
        }
    }
}

/// The keys of an answer, as browsers name them, none from the eleventh on; `side` is the place at which a pair's is shown.
fn keys(asked: &GradingGroup, place: usize, side: Option<usize>) -> Vec<String> {
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
    if let Some(side) = side {
        return words(match side {
            0 => &["1", "ArrowLeft"],
            1 => &["2", "ArrowRight"],
            _ => &["t", "0", "="],
        });
    }
    let yes: Option<Vec<bool>> = asked.options.iter().map(says_yes).collect();
    let yes = yes.filter(|yes| matches!(yes[..], [true, false] | [false, true]));
    match (yes.map(|yes| yes[place]), digit(&asked.options, place)) {
        (Some(true), _) => words(&["y", "1"]),
        (Some(false), _) => words(&["n", "0"]),
        (_, Some(10)) => words(&["t"]),
        (_, digit) => digit.iter().filter(|digit| **digit <= 9).map(usize::to_string).collect(),
    }
}

/// The number whose key answers an option: that which its label begins with, if no other's does; else its place from 1 on, where that is
/// nobody's number. A label's 10 is a key only on a scale where all have one.
fn digit(options: &[GradingOption], place: usize) -> Option<usize> {
    let number = |option: &GradingOption| {
        let first = option.label.split([' ', ':', ')', '-', '–']).next()?;
        first.trim_end_matches('.').parse::<usize>().ok()
    };
    let numbers: Vec<Option<usize>> = options.iter().map(number).collect();
    let last = if numbers.iter().all(|number| number.is_some_and(|number| number <= 10)) { 10 } else { 9 };
    let is_own =
        |number: &usize| *number <= last && numbers.iter().filter(|other| **other == Some(*number)).count() == 1;
    let free = Some(place + 1).filter(|place| !numbers.contains(&Some(*place)));
    numbers[place].filter(is_own).or(free)
}

/// Whether an option says yes; `None` if it says neither yes nor no.
fn says_yes(option: &GradingOption) -> Option<bool> {
    match (option.value.as_bool(), option.label.as_str()) {
        (Some(truth), _) => Some(truth),
        (None, "Yes" | "Supported") => Some(true),
        (None, "No" | "Not supported") => Some(false),
        _ => None,
    }
}

/// What comes after the last row.
pub(super) fn end(session: &Session, rater: &str, next: &[String], notice: Option<&str>) -> String {
    let Progress { done, skipped, notes, seconds } = session.progress(rater);
    let rows = session.settings.rows.len();
    let others: Vec<(String, usize)> = session
        .expected()
        .into_iter()
        .filter(|other| other != rater)
        .map(|other| {
            let done = session.progress(&other).done;
            (other, done)
        })
        .collect();
    page(
        &format!("Done – {rater}"),
        &html! {
            body.row {
                (head(rater, done, rows))
                @if let Some(notice) = notice { p.notice role="status" { (notice) } }
                main {
                    section.card.end {
                        h1 { "All rows graded" }
                        dl {
                            dt { "Rows" } dd { (done) @if skipped > 0 { ", " (skipped) " skipped" } @if notes > 0 { ", " (notes) " with a note" } }
                            @if !seconds.is_empty() { dt { "Time" } dd { (spent(&seconds)) } }
                            @for (other, done) in &others { dt { (other) } dd { (done) " of " (rows) } }
                        }
                        @let everybody_is_done = session.is_whole();
                        @if !everybody_is_done {
                            p.notice { "Not everyone is done, and a finished file cannot be graded further." }
                        }
                        div.answers {
                            form action="finish" method="post" {
                                input type="hidden" name="rater" value=(rater);
                                @if everybody_is_done {
                                    button.main #finish { "Finish and write the file" kbd { "Enter" } }
                                } @else {
                                    button { "Finish and write the file" }
                                }
                            }
                            button.undo form="undo" { "Undo the last answer" kbd { "U" } }
                            form action="who" method="get" { button { "Someone else is grading" } }
                        }
                        (undo(rater))
                        (commands(next, "Then:"))
                    }
                }
            }
        },
    )
}

/// What is said once the rows are written.
pub(super) fn finished(session: &Session, output: &str, next: &[String]) -> String {
    page(
        "Finished",
        &html! {
            body.plain {
                main.card.end {
                    h1 { "Finished" }
                    p { (session.graded()) " of " (session.settings.rows.len()) " rows are graded, in " code { (output) } ". You can close this page." }
                    (commands(next, "Next:"))
                }
            }
        },
    )
}

fn commands(next: &[String], title: &str) -> Markup {
    html! { p.quiet { (title) } pre.commands { (next.join("\n")) } }
}

/// How long all rows took, and one of them.
fn spent(seconds: &[f64]) -> String {
    let mut sorted = seconds.to_vec();
    sorted.sort_by(f64::total_cmp);
    let median = (sorted[(sorted.len() - 1) / 2] + sorted[sorted.len() / 2]) / 2.0;
    let total = seconds.iter().sum::<f64>();
    let total = if total < 90.0 { format!("{total:.0} seconds") } else { format!("{:.0} minutes", total / 60.0) };
    format!("{total}, a row {median:.0} seconds (median)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_say_what_options_mean() {
        let first_keys = |labels: [&str; 2]| {
            let option = |label: &str| GradingOption { value: label.into(), label: label.to_owned(), about: None };
            let asked = GradingGroup { name: String::new(), text: None, options: labels.map(option).into() };
            [0, 1].map(|place| keys(&asked, place, None).first().cloned().unwrap_or_default())
        };
        for (labels, expected) in [
            (["Yes", "No"], ["y", "n"]),
            (["No", "Yes"], ["n", "y"]),
            (["Not supported", "Supported"], ["n", "y"]),
            (["Yes", "Maybe"], ["1", "2"]),
            (["Yes", "Supported"], ["1", "2"]),
            (["0", "1"], ["0", "1"]),
            (["5", "4"], ["5", "4"]),
            (["0 - none", "1. some"], ["0", "1"]),
            (["10", "20"], ["1", "2"]),
            (["many", "3"], ["1", "3"]),
            (["0.5", "1.5"], ["1", "2"]),
            (["1 cat", "1 dog"], ["", "2"]),
            (["2", "many"], ["2", ""]),
        ] {
            assert_eq!(first_keys(labels), expected, "{labels:?}");
        }
    }
}
