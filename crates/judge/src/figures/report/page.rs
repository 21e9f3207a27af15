//! The page. All texts pass through the template, which escapes them, and through `visible`;
//! only drawings, whose texts are this program's, do not.

use std::collections::BTreeMap;

use anyhow::Result;
use judge_metrics::comparison::Statistic;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::figures;
use super::findings::Findings;
use super::rows::Disagreement;
use super::texts::{ID, SETTINGS, TEXT, cut, visible};

/// Nothing is loaded and nothing runs; styles stand in the page.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

const STYLE: &str = "
:root { color-scheme: light dark; --line: #8886; --faint: #8881; --good: #2a7d2a; --bad: #c0392b; }
body { font: 15px/1.45 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; border-bottom: 1px solid var(--line); }
table { border-collapse: collapse; margin: .6rem 0; } td, th { border-bottom: 1px solid var(--line); padding: .2rem .7rem .2rem 0; text-align: left; vertical-align: top; }
td.n { text-align: right; font-variant-numeric: tabular-nums; } .good { color: var(--good); } .bad { color: var(--bad); } .quiet { opacity: .7; }
pre, .text { white-space: pre-wrap; overflow-wrap: anywhere; unicode-bidi: isolate; } pre { font-size: .85rem; } td, p, li, summary { overflow-wrap: anywhere; }
figure { margin: .6rem 0; } figure svg { background: #fff; max-width: 100%; height: auto; }
.item { border-left: 3px solid var(--line); padding-left: .8rem; margin: .8rem 0; } .bar { display: inline-block; width: 1.2rem; background: #4a78c8; vertical-align: bottom; }
@media print { details > * { display: block; } body { max-width: none; } }
";

/// What statistics are called on the page.
const NAMES: [(&str, &str); 10] = [
    ("spearman", "Spearman's rank correlation"),
    ("pearson", "Pearson's correlation"),
    ("kendall_tau_b", "Kendall's tau-b"),
    ("mae", "mean absolute error"),
    ("rmse", "root mean squared error"),
    ("bias", "bias (mean score minus mean human score)"),
    ("accuracy", "same label"),
    ("cohen_kappa", "Cohen's kappa"),
    ("cohen_kappa_quadratic", "Cohen's kappa, quadratic weights"),
    ("auroc", "area under the ROC curve"),
];

/// The whole file.
pub fn html(found: &Findings) -> Result<String> {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "Report of " (shown(&found.input.path, ID)) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { "Report of " (shown(&found.input.path, ID)) }
                (verdict(found))
                (agreement(found))
                (preferences(found))
                (layers(found)?)
                (scores(found)?)
                (reliability(found))
                (unscored(found))
                (disagreements(found))
                (answers(found))
                (sizes(found)?)
                (settings(found)?)
            }
        }
    };
    Ok(page.into_string() + "\n")
}

fn shown(text: &str, most: usize) -> String {
    visible(&cut(text, most))
}

fn row(name: &str, value: &str) -> Markup {
    html! { tr { th { (name) } td { (shown(value, TEXT)) } } }
}

fn verdict(found: &Findings) -> Markup {
    let (complete, words) = found.completeness();
    let class = match complete {
        Some(true) => "good",
        Some(false) => "bad",
        None => "quiet",
    };
    let record = &found.record;
    let counted = |counts: &BTreeMap<String, usize>| -> Vec<String> {
        counts.iter().map(|(name, rows)| format!("{name}: {rows} rows")).collect()
    };
    html! {
        p { (found.rows) " rows, " (found.scored) " with a score, " (found.graded) " of them with a human score. "
            strong class=(class) { (words) } }
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
        @if let Some(check) = &record.completeness {
            @if !check.problems.is_empty() {
                ul { @for problem in check.problems.iter().take(40) { li class="bad" { (shown(problem, TEXT)) } } }
                @if check.problems.len() > 40 { p { "and " (check.problems.len() - 40) " more" } }
            }
        }
    }
}

fn agreement(found: &Findings) -> Markup {
    if found.graded == 0 {
        return html! {
            h2 { "Agreement with people" }
            p class="quiet" { "No row has a human score. Agreement, layers, reliability and disagreements are left out." }
        };
    }
    let names = [&found.predicted, &found.human].map(|name| name.as_deref().unwrap_or_default());
    html! {
        h2 { "Agreement with people" }
        p { "Of " code { (shown(names[0], ID)) } " with " code { (shown(names[1], ID)) } ", " (found.graded) " rows, with intervals at 95 %." }
        table {
            tr { th {} th { "estimate" } th { "interval" } th { "constant guess" } }
            @for (name, statistic) in &found.agreement {
                @if let Statistic::Defined(known) = statistic {
                    tr {
                        td title=(known.method) { (NAMES.iter().find(|(key, _)| key == name).map_or(name.as_str(), |(_, words)| words)) }
                        td.n { (format!("{:.3}", known.estimate)) }
                        td.n { @if let Some(interval) = known.interval { (format!("{:.3} to {:.3}", interval.low, interval.high)) } }
                        td.n { @if let Some(guess) = found.constant_guess.get(name.as_str()) { (format!("{guess:.3}")) } }
                    }
                }
            }
        }
        @let undefined: Vec<_> = found.agreement.iter().filter_map(|(name, statistic)| match statistic {
            Statistic::Undefined { reason } => Some((name, reason)),
            Statistic::Defined(_) => None,
        }).collect();
        @if !undefined.is_empty() {
            details { summary { (undefined.len()) " statistics are not defined" }
                ul { @for (name, reason) in undefined { li { (name) ": " (shown(reason, TEXT)) } } } }
        }
        p class="quiet" { "A constant guess is the median for the absolute error, the mean for the squared one, and the commonest label; it orders nothing." }
    }
}

/// What the preferences on pairs are worth beside the verdicts.
fn preferences(found: &Findings) -> Markup {
    let Some(worth) = &found.preferences else { return html! {} };
    let cells = |statistic: &Statistic| {
        let (estimate, interval) = (statistic.estimate(), statistic.interval());
        html! {
            td.n { @if let Some(estimate) = estimate { (format!("{estimate:.3}")) } @else { "undefined" } }
            td.n { @if let Some(interval) = interval { (format!("{:.3} to {:.3}", interval.low, interval.high)) } }
        }
    };
    html! {
        h2 { "Preferences" }
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
    }
}

fn figure(svg: &str, caption: &str) -> Markup {
    html! { figure { (PreEscaped(svg)) figcaption class="quiet" { (caption) } } }
}

fn layers(found: &Findings) -> Result<Markup> {
    if found.graded == 0 {
        return Ok(html! {});
    }
    if let Some(why) = &found.no_layers {
        return Ok(html! { h2 { "Layers" } p class="quiet" { "There is no curve over layers: " (why) "." } });
    }
    let best = found.layers.iter().filter_map(|layer| Some((layer.layer, layer.spearman?)));
    let best = best.max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)));
    let is_weighed = found.layers.iter().any(|layer| layer.weight.is_some());
    let under = if is_weighed { " Under it LAGER's weights." } else { "" };
    let caption = format!(
        "The expected score of each layer alone against people, with Bonett and Wright's interval at 95 %.{under}"
    );
    Ok(html! {
        h2 { "Layers" }
        (figure(&figures::layers(&found.layers)?, &caption))
        @if let Some((layer, rho)) = best {
            p { "The best layer by itself is " (layer) ", with " (format!("{rho:.3}")) ". Chosen on these rows, it flatters itself." }
        }
    })
}

fn scores(found: &Findings) -> Result<Markup> {
    let bars = if found.scores.is_empty() { String::new() } else { figures::bars(&found.scores, "score")? };
    Ok(html! {
        h2 { "Scores" }
        @if !bars.is_empty() { (figure(&bars, if found.graded > 0 { "Blue: scores. Red: people's, of the rows that have one." } else { "How many rows have which score." })) }
        @if !found.labels.is_empty() {
            table { @for (label, rows) in &found.labels { tr { td { (shown(label, ID)) } td.n { (rows) } } } }
        }
    })
}

fn reliability(found: &Findings) -> Markup {
    let Some(svg) = &found.reliability_figure else { return html! {} };
    html! {
        h2 { "Reliability" }
        (figure(&figures::inline(svg), "What people say on average where the judge says so much, in bins of equally many rows. On the line a score means what it says."))
        @if let Some(coverage) = &found.coverage {
            p { (coverage.inside) " of " (coverage.n) " human scores lie in the interval of their row ("
                (format!("{:.1}", 100.0 * coverage.inside as f64 / coverage.n as f64)) " %"
                @if let Some(level) = coverage.level { "; target coverage " (format!("{:.0}", 100.0 * level)) " %" } ")." }
        }
    }
}

fn unscored(found: &Findings) -> Markup {
    html! {
        h2 { "Rows without a score" }
        @if found.unscored.is_empty() { p { "None." } }
        @for (reason, rows) in &found.unscored {
            details { summary { (shown(reason, ID)) ": " (rows.n) }
                table { @for example in &rows.examples {
                    tr { td { (shown(&example.id, ID)) } td.text { (shown(&example.detail, TEXT)) } }
                } } }
        }
    }
}

fn disagreements(found: &Findings) -> Markup {
    if found.graded == 0 {
        return html! {};
    }
    html! {
        h2 { "Worst disagreements" }
        @if found.disagreements.is_empty() { p { "None: every score is people's." } }
        @for item in &found.disagreements { (disagreement(item)) }
    }
}

fn disagreement(item: &Disagreement) -> Markup {
    html! {
        div.item {
            p { strong { (shown(&item.id, ID)) } ": the judge says " strong { (shown(&item.predicted, ID)) } ", people say " strong { (shown(&item.human, ID)) } "." }
            @if !item.probabilities.is_empty() {
                p { @for (label, p) in &item.probabilities {
                    span.bar style=(format!("height:{:.2}rem", 2.0 * p.clamp(0.0, 1.0))) {} " " (shown(label, ID)) ": " (format!("{p:.2}")) "  "
                } }
            }
            @if !item.layers.is_empty() {
                details { summary { "Layers" } p { @for (index, score) in item.layers.iter().enumerate() { (index) ": " (format!("{score:.2}")) "  " } } }
            }
            @if !item.texts.is_empty() {
                details open { summary { "Texts" }
                    table { @for (field, text) in &item.texts { tr { th { (shown(field, ID)) } td.text dir="auto" { (visible(text)) } } } } }
            }
        }
    }
}

fn answers(found: &Findings) -> Markup {
    let all = &found.answers.0;
    html! {
        @if !all.is_empty() {
            h2 { "Sentences that the contexts support least" }
            p class="quiet" { "Answers by their least supported sentence. The redder a sentence, the less probable that the contexts support it; \
                               below one half the probability stands behind it." }
            @for answer in all {
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
    }
}

fn sizes(found: &Findings) -> Result<Markup> {
    let bars =
        if found.tokens.is_empty() { String::new() } else { figures::bars(&found.tokens, "tokens of a prompt")? };
    Ok(html! {
        @if !bars.is_empty() {
            h2 { "Sizes" }
            (figure(&bars, "Tokens of the prompts."))
            details { summary { "Longest" }
                table { @for item in &found.longest { tr { td { (shown(&item.id, ID)) } td.n { (item.tokens) } } } } }
        }
        @if found.parts > 0 {
            details { summary { "Slowest of " (found.parts) " parts" }
                table { tr { th { "shard" } th { "seconds" } th { "rows" } th { "device" } }
                    @for part in &found.slowest_parts { tr { td.n { (part.shard) } td.n { (part.seconds) } td.n { (part.rows) } td { (shown(&part.device, ID)) } } } } }
        }
    })
}

fn settings(found: &Findings) -> Result<Markup> {
    let settings = serde_json::to_string_pretty(&found.record.settings)?;
    Ok(html! {
        h2 { "Settings" }
        @if found.record.command.is_empty() && found.record.settings.is_empty() { p class="quiet" { "Nothing is recorded of this run." } }
        @if !found.record.command.is_empty() { pre { (shown(&found.record.command.join(" "), SETTINGS)) } }
        @if !found.record.settings.is_empty() { details { summary { "All settings" } pre { (shown(&settings, SETTINGS)) } } }
        p class="quiet" { "Made by report " (found.program.version) " of local-judge." }
    })
}
