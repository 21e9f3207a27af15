//! What sways a judge of pairs besides quality: place, length, whose response it is, and changes that should not matter.
//!
//! `judge bias --benchmark llmbar --data LLMBar --verdicts verdicts.jsonl`

mod perturbed;
mod plot;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use judge_data::{BenchmarkPair, Outputs, PairVerdicts};
use judge_metrics::comparison::{BiasFinding, BiasPair, BiasReport};
use judge_metrics::preference::Preference;
use serde_json::{Value, json};

use crate::args::files::{OverwriteArgs, program};
use crate::args::judged_pairs::{self, PairsArgs, preferences};
use crate::preferences::Worth;
use crate::report::{self, BOOTSTRAP};
use crate::terminal::console::{say, table, usage};

/// Measure what sways a judge of pairs besides quality.
///
/// Position: does the response that is shown first win, whatever it says? (needs both orders.) Verbosity: does the judge choose the longer
/// response more often than people do? (needs the texts.) Self-preference: do responses of the judge's own model win more often than people
/// let them? (needs --own, and pairs with model_a and model_b.) Each gets a sentence that says whether it is larger than chance, and how
/// large. Intervals draw whole questions.
///
/// Perturbations: is a response preferred after a change that adds nothing to it? --write-perturbed makes the changed pairs, any judge
/// judges them (`judge compare` reads them), and --perturbed takes its verdicts. Changed is the response of a pair that people like less;
/// gains count beyond those of a change of white space.
#[derive(Args)]
pub(crate) struct Cli {
    #[command(flatten)]
    pairs: PairsArgs,
    /// The judge's verdicts: {"id", "given", "swapped"?} with what it wrote, or the output of `judge compare`
    #[arg(long, value_name = "FILE", required_unless_present = "write_perturbed")]
    verdicts: Option<PathBuf>,
    /// Writes the changed pairs here and reports nothing
    #[arg(long, value_name = "FILE", conflicts_with_all = ["verdicts", "perturbed", "json", "plots", "own", "convention"])]
    write_perturbed: Option<PathBuf>,
    /// The judge's verdicts on the changed pairs, in the form of --verdicts
    #[arg(long, value_name = "FILE")]
    perturbed: Option<PathBuf>,
    /// With --write-perturbed: which changes, besides neutral ones:
    /// all, or some of restated, authority, markup, list, forged_verdict and instruction, with commas between [default: all]
    #[arg(long, value_name = "LIST")]
    perturbations: Option<String>,
    /// How a verdict is found in what was written [default: as the benchmark's authors have it]
    #[arg(long, value_name = "NAME")]
    convention: Option<String>,
    /// The judge's own model, as model_a and model_b call it
    #[arg(long, value_name = "MODEL")]
    own: Option<String>,
    /// Where the report goes
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// A folder for one figure of each bias that could be measured
    #[arg(long, value_name = "DIR")]
    plots: Option<PathBuf>,
    #[command(flatten)]
    write: OverwriteArgs,
}

pub(crate) fn run(cli: &Cli) -> Result<()> {
    if cli.perturbations.is_some() && cli.write_perturbed.is_none() {
        return Err(usage("--perturbations needs --write-perturbed; verdicts on changed pairs name their changes"));
    }
    let inputs = cli.pairs.benchmark.files(&cli.pairs.data)?.into_iter();
    let inputs = inputs.chain([&cli.verdicts, &cli.perturbed].into_iter().flatten().cloned());
    let outputs =
        Outputs::new(inputs).reports("bias_report", &cli.json).made(&cli.write_perturbed, perturbed::is_perturbed);
    outputs.overwrite(cli.write.overwrite).check()?;
    let (pairs, left_out) = cli.pairs.read()?;
    let (path, convention) = match (&cli.verdicts, &cli.write_perturbed) {
        (_, Some(path)) => return perturbed::write(cli, path, &pairs),
        (Some(path), None) => (path, cli.pairs.convention(cli.convention.as_deref())?),
        (None, None) => return Err(usage("--verdicts FILE is needed")),
    };
    let verdicts = PairVerdicts::read_beside(path, &pairs, &left_out, convention)?;
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
    let report = BiasReport {
        pairs: judged.collect(),
        both_orders: verdicts.both_orders,
        unparsed: cli.pairs.policy(),
        bootstrap: BOOTSTRAP,
    };
    let mut findings = report.findings()?.to_vec();
    let worth = preferences(&pairs, &verdicts)?.map(|preferences| preferences.whole()).transpose()?;
    if let Some(path) = &cli.perturbed {
        findings.extend(perturbed::findings(cli, path, convention, &pairs, &verdicts)?);
    }
    let orders = if verdicts.both_orders { 2 } else { 1 };
    let missing = |orders_of: &[Option<_>; 2]| orders_of[..orders].iter().filter(|verdict| verdict.is_none()).count();
    let unparsed: usize = verdicts.orders.iter().map(missing).sum();
    let pictures = cli.plots.as_ref().map(|folder| pictures(folder, &findings)).transpose()?.unwrap_or_default();
    let paths = pictures.iter().map(|(_, path, _)| path);
    Outputs::default().reports("bias_report", paths).overwrite(cli.write.overwrite).check()?;
    if let Some(path) = &cli.json {
        let biases: BTreeMap<_, _> = findings.iter().map(|finding| (&finding.bias, finding_json(finding))).collect();
        let report = json!({
            "program": program("bias_report"), "benchmark": cli.pairs.benchmark.as_str(), "n": pairs.len(),
            "undecided": left_out.len(), "unparsed": unparsed,
            "policy": cli.pairs.policy_name(), "biases": biases,
            "preferences": worth.as_ref().map(|worth| worth.entries().collect::<BTreeMap<_, _>>()),
            "layers": worth.as_ref().map(Worth::layers_json),
        });
        report::write_json(path, "bias_report", &report)?;
    }
    say(format_args!(
        "{}: {} pairs{}, {} judged; texts without a verdict: {unparsed} ({})\n",
        cli.pairs.benchmark,
        pairs.len(),
        judged_pairs::left_out(left_out.len()),
        if verdicts.both_orders { "both orders" } else { "the given order" },
        cli.pairs.policy_name()
    ))?;
    for finding in &findings {
        say(finding.sentence())?;
        if finding.n > 0 {
            let rows: Vec<Vec<String>> = finding
                .statistics
                .iter()
                .map(|(name, value)| vec![format!("  {name}"), format!("{value:.3}")])
                .collect();
            say(table(&rows))?;
        }
    }
    if let Some(worth) = &worth {
        say(worth.text(None))?;
    }
    pictures.iter().try_for_each(|(bias, path, svg)| {
        report::write_marked(path, "bias_report", svg)?;
        say(format_args!("{bias} -> {}", path.display()))
    })
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
        Ok(plot::svg(finding)?.map(|svg| (name, path, svg)))
    };
    findings.iter().filter_map(|finding| picture(finding).transpose()).collect()
}
