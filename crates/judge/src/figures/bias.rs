//! What sways a judge of pairs besides quality: place, length, whose response it is, and changes that should not matter.
//!
//! `judge bias --benchmark llmbar --data LLMBar --verdicts verdicts.jsonl`

mod cli;
mod perturbations;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use judge_core::settings::nearest_name;
use judge_data::{BenchmarkPair, Outputs};
use judge_metrics::comparison::{BiasFinding, BiasPair, BiasReport, Statistic};
use judge_metrics::preference::Preference;
use serde_json::{Value, json};

use judge_cli::args::files::program;
use judge_cli::args::judged_pairs::{self, beyond, check_convention, preferences};
use judge_cli::preferences::Worth;
use judge_cli::report::{self, BOOTSTRAP};
use judge_cli::terminal::console::{counted, say, say_table, title_cell, usage};
use judge_cli::terminal::svg::{BLUE, Line, VERMILLION, intervals};

pub(crate) use self::cli::Cli;

pub(crate) fn run(cli: &Cli) -> Result<()> {
    if cli.perturbations.is_some() && cli.write_perturbed.is_none() {
        return Err(usage("--perturbations needs --write-perturbed; verdicts on changed pairs name their changes"));
    }
    let inputs = cli.pairs.benchmark()?.files(&cli.pairs.data)?.into_iter();
    let inputs = inputs.chain([&cli.verdicts, &cli.perturbed].into_iter().flatten().cloned());
    let outputs =
        Outputs::new(inputs).reports("bias_report", &cli.json).made(&cli.write_perturbed, perturbations::is_perturbed);
    outputs.overwrite(cli.write.overwrite).check()?;
    let (mut pairs, mut others) = cli.pairs.read()?;
    if let Some(own) = &cli.own {
        check_own(own, &cli.pairs.data, pairs.iter().chain(&others))?;
    }
    let left_out = others.len();
    others.extend(beyond(&mut pairs, cli.limit));
    let path = match (&cli.verdicts, &cli.write_perturbed) {
        (_, Some(path)) => return perturbations::write(cli, path, &pairs),
        (Some(path), None) => path,
        (None, None) => return Err(usage("--verdicts FILE is needed")),
    };
    let convention = cli.convention.as_deref();
    let verdicts = cli.pairs.verdicts(path, &pairs, &others, convention)?;
    if cli.perturbed.is_none() {
        check_convention(convention, path, verdicts.texts)?;
    }
    let judged = pairs.iter().zip(&verdicts.orders).filter_map(|(pair, [given, swapped])| {
        Some(BiasPair {
            given: given.map(Preference::from),
            swapped: swapped.map(Preference::from),
            human: Preference::from(pair.gold?),
            lengths: pair.texts.as_ref().map(|texts| texts.lengths.map(|n| n as f64)),
            own: cli.own.as_deref().and_then(|own| whose(pair, own)),
            question: pair.question.clone(),
        })
    });
    let (policy, policy_name) = cli.pairs.policy();
    let report = BiasReport {
        pairs: judged.collect(),
        both_orders: verdicts.both_orders,
        unparsed: policy,
        bootstrap: BOOTSTRAP,
    };
    let n = report.pairs.len();
    let undecided = left_out + pairs.len() - n;
    let mut findings = report.findings()?.to_vec();
    let worth = preferences(&pairs, &verdicts)?.map(|preferences| preferences.whole()).transpose()?;
    if let Some(path) = &cli.perturbed {
        findings.extend(perturbations::findings(cli, path, [&pairs, &others], &verdicts)?);
    }
    let orders = if verdicts.both_orders { 2 } else { 1 };
    let missing =
        |pair: &BiasPair| [pair.given, pair.swapped][..orders].iter().filter(|verdict| verdict.is_none()).count();
    let unparsed: usize = report.pairs.iter().map(missing).sum();
    let pictures = cli.plots.as_ref().map(|folder| pictures(folder, &findings)).transpose()?.unwrap_or_default();
    let paths = pictures.iter().map(|(_, path, _)| path);
    Outputs::default().reports("bias_report", paths).overwrite(cli.write.overwrite).check()?;
    report::write_json_if(cli.json.as_deref(), "bias_report", || {
        let biases: BTreeMap<_, _> = findings.iter().map(|finding| (&finding.bias, finding_json(finding))).collect();
        Ok(json!({
            "program": program("bias_report"), "benchmark": cli.pairs.benchmark()?.as_str(), "n": n,
            "undecided": undecided, "unparsed": unparsed,
            "policy": policy_name, "biases": biases,
            "preferences": worth.as_ref().map(|worth| worth.entries().collect::<BTreeMap<_, _>>()),
            "layers": worth.as_ref().map(Worth::layers_json),
        }))
    })?;
    say(format_args!(
        "{}: {}{}, {} judged; texts without a verdict: {unparsed} ({})\n",
        cli.pairs.benchmark()?,
        counted(n, "pair"),
        judged_pairs::left_out(undecided),
        if verdicts.both_orders { "both orders" } else { "the given order" },
        policy_name
    ))?;
    for finding in &findings {
        say(finding.sentence())?;
        if finding.n > 0 {
            let row = |(name, value): &(&str, Statistic)| vec![format!("  {name}"), format!("{value:.3}")];
            say_table([title_cell(&finding.bias), "estimate [95 %]"], finding.statistics.iter().map(row))?;
            say("")?;
        }
    }
    if let Some(worth) = &worth {
        worth.print(None)?;
        say("")?;
    }
    pictures.iter().try_for_each(|(bias, path, svg)| {
        report::write_marked(path, "bias_report", svg)?;
        say(format_args!("{bias} -> {}", path.display()))
    })
}

/// Refuses a model that no response is of.
fn check_own<'p>(own: &str, data: &Path, pairs: impl Iterator<Item = &'p BenchmarkPair>) -> Result<()> {
    let models: BTreeSet<&str> = pairs.filter_map(|pair| pair.models.as_ref()).flatten().map(String::as_str).collect();
    if models.contains(own) {
        return Ok(());
    }
    let data = data.display();
    if models.is_empty() {
        return Err(usage(format!(
            "--own: no pair of {data} says in \"model_a\" and \"model_b\" which models its responses are of"
        )));
    }
    let meant = nearest_name(own, models.iter().copied());
    let meant = meant.map_or_else(String::new, |name| format!(". Did you mean {name:?}?"));
    let few: Vec<&str> = models.iter().copied().take(10).collect();
    let more = if models.len() > few.len() { format!(" and {} more", models.len() - few.len()) } else { String::new() };
    Err(usage(format!("--own: no response in {data} is of {own:?}, but of {few:?}{more}{meant}")))
}

/// Which response is of this model, if one alone is.
fn whose(pair: &BenchmarkPair, own: &str) -> Option<Preference> {
    match pair.models.as_ref().map(|models| models.each_ref().map(|model| model == own))? {
        [true, false] => Some(Preference::First),
        [false, true] => Some(Preference::Second),
        _ => None,
    }
}

fn finding_json(finding: &BiasFinding) -> Value {
    let statistics: BTreeMap<_, _> = finding.statistics.iter().map(|(name, known)| (*name, known)).collect();
    json!({
        "n": finding.n, "measure": finding.statistics.first().map(|(name, _)| name), "larger_than_chance": finding.direction().map(|sign| sign != 0),
        "sentence": finding.sentence(), "statistics": statistics,
    })
}

/// A figure of each bias that could be measured: its name, where it goes, and the figure.
fn pictures(folder: &Path, findings: &[BiasFinding]) -> Result<Vec<(String, PathBuf, String)>> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let picture = |finding: &BiasFinding| {
        let name = finding.bias.to_string();
        let path = folder.join(format!("{name}.svg"));
        Ok(svg(finding)?.map(|svg| (name, path, svg)))
    };
    findings.iter().filter_map(|finding| picture(finding).transpose()).collect()
}

/// The statistics of one bias with their intervals; `None` if nothing of it is defined.
fn svg(finding: &BiasFinding) -> Result<Option<String>> {
    let known = finding.statistics.iter().filter_map(|(name, statistic)| Line::of(*name, statistic, BLUE));
    let mut lines: Vec<Line> = known.collect();
    let Some(first) = lines.first_mut() else { return Ok(None) };
    first.points.iter_mut().for_each(|point| point.colour = VERMILLION);
    let title = format!("{}, {} pairs", finding.bias.replace('_', "-"), finding.n);
    let note = "95 % interval over questions; the first row measures the bias, and 0 is none";
    intervals(&title, note, [-1.0, 1.0], &lines, &[]).map(Some)
}
