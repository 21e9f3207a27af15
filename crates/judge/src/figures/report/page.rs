//! The page. All texts pass through the template, which escapes them, and through `visible`;
//! only drawings, whose texts are this program's, do not.

use std::collections::BTreeMap;

use anyhow::Result;
use base64::prelude::{BASE64_STANDARD, Engine as _};
use judge_cli::layer_agreement;
use judge_cli::pages::{page, stylesheet};
use judge_cli::report::percent;
use judge_cli::sampling::SAMPLING_PROBABILITY;
use judge_metrics::comparison::Statistic;
use judge_metrics::decimals;
use maud::{Markup, PreEscaped, html};
use sha2::{Digest, Sha256};

use super::answers::Answer;
use super::figures;
use super::findings::{Findings, SAID};
use super::list;
use super::texts::{ID, SETTINGS, TEXT, shown, visible};

/// Problems of a check that are shown.
const PROBLEMS: usize = 40;

/// Bytes of answers from contexts, which stand beside those of [`list`]'s rows.
const ANSWERS: usize = 250_000;

const SCRIPT: &str = include_str!("page.js");

/// The whole file. Nothing is loaded, and nothing runs but its own script, which is known by its digest.
pub fn html(found: &Findings) -> Result<String> {
    let digest = BASE64_STANDARD.encode(Sha256::digest(SCRIPT));
    let policy = format!("default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'");
    let title = format!("Report of {}", shown(&found.input.path, ID));
    let head = html! {
        meta http-equiv="Content-Security-Policy" content=(policy);
        style { (PreEscaped(stylesheet(include_str!("page.css")))) }
    };
    let body = html! {
        body {
            main {
                h1 { (title) }
                (tiles(found))
                (completeness(found))
                (agreement(found))
                (measures(found))
                (preferences(found))
                (of_layers(found)?)
                (scores(found)?)
                (reliability(found))
                (unscored(found))
                @if !found.listed.is_empty() { (section("Rows", &list::rows(found))) }
                (answers(found))
                (sizes(found)?)
                (run(found))
                (settings(found)?)
            }
            script { (PreEscaped(SCRIPT)) }
        }
    };
    Ok(page(&title, &head, &body) + "\n")
}

fn section(title: &str, within: &Markup) -> Markup {
    html! { section.card { h2 { (title) } (within) } }
}

fn row(name: &str, value: &str) -> Markup {
    html! { tr { th { (name) } td { (shown(value, TEXT)) } } }
}

/// How many rows, and the first statistic.
fn tiles(found: &Findings) -> Markup {
    let counts = [("rows", found.rows), ("with a score", found.scored), ("with a human score", found.graded)];
    let first = found.agreement.iter().find_map(|(name, statistic)| match statistic {
        Statistic::Defined(known) if ["spearman", "accuracy"].contains(&name.as_str()) => Some((name, known)),
        _ => None,
    });
    html! {
        dl.tiles {
            @for (what, rows) in counts { div.card { dt { (what) } dd { (rows) } } }
            @if let Some((name, known)) = first {
                div.card {
                    dt { (in_words(name)) }
                    dd {
                        (decimals(known.estimate, 2))
                        @if let Some(interval) = known.interval { small { " " (decimals(interval.low, 2)) " to " (decimals(interval.high, 2)) } }
                    }
                }
            }
        }
    }
}

/// What a statistic is called.
fn in_words(name: &str) -> &str {
    SAID.iter().find(|(key, _)| *key == name).map_or(name, |(_, words)| words)
}

/// Whether all rows are there.
fn completeness(found: &Findings) -> Markup {
    let (complete, words) = found.completeness();
    let class = match complete {
        Some(true) => "good",
        Some(false) => "bad",
        None => "quiet",
    };
    let problems = found.record.completeness.iter().flat_map(|check| check.said().2);
    let more = problems.clone().count().saturating_sub(PROBLEMS);
    html! {
        p { strong class=(class) { (words) } }
        @if problems.clone().next().is_some() {
            ul { @for problem in problems.take(PROBLEMS) { li class="bad" { (shown(problem, TEXT)) } } }
        }
        @if more > 0 { p { "and " (more) " more" } }
    }
}

/// How the rows were made.
fn run(found: &Findings) -> Markup {
    let record = &found.record;
    let counted = |counts: &BTreeMap<String, usize>| -> Vec<String> {
        counts.iter().map(|(name, rows)| format!("{name}: {rows} rows")).collect()
    };
    section(
        "Run",
        &html! {
            table {
                @if let Some(run) = &record.run { (row("run", run)) }
                @for run in counted(&found.runs) { (row("rows of run", &run)) }
                @if let Some(model) = &record.model {
                    (row("model", &format!("{}, {}, {}", model.name, model.family, model.dtype)))
                    (row("fingerprint", &model.fingerprint))
                    @if found.devices.is_empty() { (row("device", &model.device)) }
                }
                @for device in counted(&found.devices) { (row("device", &device)) }
                @if let Some(template) = &record.template { (row("template", template)) }
                @if let Some(program) = &record.program {
                    (row("program", &format!("{} {} {}", program.name, program.version, program.git_commit.as_deref().unwrap_or_default())))
                }
                @if let Some(results) = &found.results { (row("digest of the results", results)) }
                @if let Some(blake3) = &found.input.blake3 { (row("BLAKE3 of the input", blake3)) }
                @if let (Some(started), Some(finished)) = (&record.started, &record.finished) {
                    (row("from", &format!("{started} to {finished}")))
                }
                @if let Some(seconds) = record.seconds.filter(|seconds| *seconds >= 10) {
                    (row("speed", &format!("{:.1} rows a second, {seconds} s", found.rows as f64 / seconds as f64)))
                }
            }
        },
    )
}

fn agreement(found: &Findings) -> Markup {
    if found.graded == 0 {
        let left_out = "No row has a human score. Agreement, layers, reliability and differences are left out.";
        return section("Agreement with people", &html! { p class="quiet" { (left_out) } });
    }
    let names = [&found.predicted, &found.human].map(|name| name.as_deref().unwrap_or_default());
    section(
        "Agreement with people",
        &html! {
            p { "Of " code { (shown(names[0], ID)) } " with " code { (shown(names[1], ID)) } ", " (found.graded) " rows, with intervals at 95 %." }
            @if let Some(repeated) = &found.repeated { p { (shown(repeated, TEXT)) "." } }
            @if found.is_weighted {
                p { "Rows are weighted by the chance that each had of being graded, their " code { (SAMPLING_PROBABILITY) }
                    ". What takes rows as drawn alike is left out: constant guesses, layers, preferences, reliability and the coverage of intervals." }
            }
            div.scroll { table {
                tr { th {} th { "estimate" } th { "interval" } th { "constant guess" } }
                @for (name, statistic) in &found.agreement {
                    @if let Statistic::Defined(known) = statistic {
                        tr {
                            td title=(known.method) { (in_words(name)) }
                            td.n { (decimals(known.estimate, 3)) }
                            td.n { @if let Some(interval) = known.interval { (decimals(interval.low, 3)) " to " (decimals(interval.high, 3)) } }
                            td.n { @if let Some(guess) = found.constant_guess.get(name.as_str()) { (decimals(*guess, 3)) } }
                        }
                    }
                }
            } }
            @let undefined: Vec<_> = found.agreement.iter().filter_map(|(name, statistic)| match statistic {
                Statistic::Undefined { reason } => Some((name, reason)),
                Statistic::Defined(_) => None,
            }).collect();
            @if !undefined.is_empty() {
                details { summary { (undefined.len()) " statistics are not defined" }
                    ul { @for (name, reason) in undefined { li { (name) ": " (shown(reason, TEXT)) } } } }
            }
            @if !found.constant_guess.is_empty() { p class="quiet" { "A constant guess is the median for the absolute error, the mean for the squared one, and the commonest of the labels that raters agree on; it orders nothing." } }
        },
    )
}

/// What answers from retrieved contexts measure, on average.
fn measures(found: &Findings) -> Markup {
    if found.measures.is_empty() {
        return html! {};
    }
    section(
        "Measures",
        &html! {
            div.scroll { table {
                tr { th {} th { "mean" } th { "interval" } th { "answers" } }
                @for (measure, known) in &found.measures {
                    tr { td { (measure) } (cells(&known.mean)) td.n { (known.n) } }
                }
            } }
            p class="quiet" { "Means of probabilities, with intervals at 95 %. Rows with the same " code { "question" } " are drawn together." }
        },
    )
}

/// An estimate and its interval.
fn cells(statistic: &Statistic) -> Markup {
    let (estimate, interval) = (statistic.estimate(), statistic.interval());
    html! {
        td.n { @if let Some(estimate) = estimate { (format!("{estimate:.3}")) } @else { "undefined" } }
        td.n { @if let Some(interval) = interval { (format!("{:.3} to {:.3}", interval.low, interval.high)) } }
    }
}

/// What the preferences on pairs are worth beside the verdicts.
fn preferences(found: &Findings) -> Markup {
    let Some(worth) = &found.preferences else { return html! {} };
    section(
        "Preferences",
        &html! {
            p { "The probabilities and the log-odds of the first response, averaged over the orders that were asked. They can agree with people where verdicts, which keep only the likeliest label, follow the place." }
            table {
                tr { th {} th { "estimate" } th { "interval" } th { "pairs" } }
                @for known in &worth.statistics {
                    tr { td { (known.name) } (cells(&known.statistic)) td.n { (known.n) } }
                }
            }
            @if !worth.layers.is_empty() {
                table {
                    tr { th { "layer" } th { "accuracy of its averaged log-odds" } th { "interval" } th { "pairs" } }
                    @for (layer, known) in &worth.layers {
                        tr { td { (layer.0) } (cells(&known.statistic)) td.n { (known.n) } }
                    }
                }
            }
        },
    )
}

fn figure(svg: &str, caption: &str) -> Markup {
    html! { figure { (PreEscaped(svg)) figcaption class="quiet" { (caption) } } }
}

fn of_layers(found: &Findings) -> Result<Markup> {
    if found.graded == 0 {
        return Ok(html! {});
    }
    if let Some(why) = &found.no_layers {
        return Ok(section("Layers", &html! { p class="quiet" { "There is no curve over layers: " (why) "." } }));
    }
    let best = found.layers.iter().filter_map(|layer| Some((layer.layer, layer.estimate?)));
    let best = best.max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)));
    let is_weighed = found.layers.iter().any(|layer| layer.weight.is_some());
    let under = if is_weighed { " Under it LAGER's weights." } else { "" };
    let caption = format!(
        "The expected score of each layer alone against people, with Bonett and Wright's interval at 95 %.{under}"
    );
    Ok(section(
        "Layers",
        &html! {
            (figure(&figures::inline(&layer_agreement::svg(&found.layers, layer_agreement::SPEARMAN, "")?), &caption))
            @if let Some((layer, rho)) = best {
                p { "The best layer by itself is " (layer) ", with " (format!("{rho:.3}")) ". Chosen on these rows, it flatters itself." }
            }
        },
    ))
}

fn scores(found: &Findings) -> Result<Markup> {
    let bars = if found.scores.is_empty() { String::new() } else { figures::bars(&found.scores, "score")? };
    Ok(section(
        "Scores",
        &html! {
            @if !bars.is_empty() { (figure(&bars, if found.graded > 0 { "Blue: scores. Vermillion: people's, of the rows that have one." } else { "How many rows have which score." })) }
            @if !found.labels.is_empty() {
                @let in_part = !found.graded_labels.is_empty() && found.graded_labels != found.labels;
                table {
                    @if in_part { tr { th {} th { "rows" } th { "of them with a human score" } } }
                    @for (label, rows) in &found.labels {
                        tr { td { (shown(label, ID)) } td.n { (rows) }
                            @if in_part { td.n { (found.graded_labels.get(label).copied().unwrap_or_default()) } } }
                    }
                }
            }
        },
    ))
}

fn reliability(found: &Findings) -> Markup {
    let Some(svg) = &found.reliability_figure else { return html! {} };
    section(
        "Reliability",
        &html! {
            (figure(&figures::inline(svg), "What people say on average where the judge says so much, in bins of equally many rows. On the line a score means what it says."))
            @if let Some(coverage) = &found.coverage {
                p { (coverage.inside) " of " (coverage.n) " human scores lie in the interval of their row ("
                    (format!("{:.1}", 100.0 * coverage.inside as f64 / coverage.n as f64)) " %"
                    @if let Some(level) = coverage.level { "; target coverage " (percent(level)) } ")." }
            }
        },
    )
}

fn unscored(found: &Findings) -> Markup {
    section(
        "Rows without a score",
        &html! {
            @if found.unscored.is_empty() { p { "None." } }
            @for (reason, rows) in &found.unscored {
                details { summary { (shown(reason, ID)) ": " (rows.n) }
                    table { @for example in &rows.examples {
                        tr { td { (shown(&example.id, ID)) } td.text { (shown(&example.detail, TEXT)) } }
                    } } }
            }
        },
    )
}

/// As many as there is room for.
fn answers(found: &Findings) -> Markup {
    let mut bytes = 0;
    let all = found.answers.0.iter().map(answer).take_while(|answer| {
        bytes += answer.0.len();
        bytes <= ANSWERS
    });
    let all: Vec<Markup> = all.collect();
    html! {
        @if !all.is_empty() {
            (section("Sentences that the contexts support least", &html! {
            p class="quiet" { "Answers by their least supported sentence. The redder a sentence, the less probable that the contexts support it; \
                               below one half the probability stands behind it." }
            @for answer in &all { (answer) }
            }))
        }
    }
}

fn answer(answer: &Answer) -> Markup {
    html! {
        div.item {
            p { strong { (shown(&answer.id, ID)) } ": faithfulness " strong { (format!("{:.3}", answer.faithfulness)) } }
            p.text dir="auto" {
                @for sentence in &answer.sentences {
                    @let doubt = 1.0 - sentence.supported.unwrap_or(1.0).clamp(0.0, 1.0);
                    span style=(format!("background:rgba(192,57,43,{:.2})", 0.6 * doubt)) { (visible(&sentence.text)) }
                    @match sentence.supported {
                        None => sup { "not read" },
                        Some(p) if p < 0.5 => sup { (format!("{p:.2}")) },
                        Some(_) => {},
                    }
                    " "
                }
                @if answer.more > 0 { "and " (answer.more) " more sentences" }
            }
        }
    }
}

fn sizes(found: &Findings) -> Result<Markup> {
    if found.tokens.is_empty() && found.parts == 0 {
        return Ok(html! {});
    }
    let bars =
        if found.tokens.is_empty() { String::new() } else { figures::bars(&found.tokens, "tokens of a prompt")? };
    Ok(section(
        "Sizes",
        &html! {
            @if !bars.is_empty() {
                (figure(&bars, "Tokens of the prompts."))
                details { summary { "Longest" }
                    table { @for item in &found.longest { tr { td { (shown(&item.id, ID)) } td.n { (item.tokens) } } } } }
            }
            @if found.parts > 0 {
                details { summary { "Slowest of " (found.parts) " parts" }
                    table { tr { th { "shard" } th { "seconds" } th { "rows" } th { "device" } }
                        @for part in &found.slowest_parts { tr { td.n { (part.shard) } td.n { (part.seconds) } td.n { (part.rows) } td { (shown(&part.device, ID)) } } } } }
            }
        },
    ))
}

fn settings(found: &Findings) -> Result<Markup> {
    let settings = serde_json::to_string_pretty(&found.record.settings)?;
    Ok(section(
        "Settings",
        &html! {
            @if found.record.command.is_empty() && found.record.settings.is_empty() { p class="quiet" { "Nothing is recorded of this run." } }
            @if !found.record.command.is_empty() { pre { (shown(&found.record.command.join(" "), SETTINGS)) } }
            @if !found.record.settings.is_empty() { details { summary { "All settings" } pre { (shown(&settings, SETTINGS)) } } }
            p class="quiet" { "Made by report " (found.program.version) " of local-judge." }
        },
    ))
}
