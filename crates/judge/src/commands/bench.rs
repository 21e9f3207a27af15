//! A pairwise judge on a public benchmark: verdicts that a model makes here or that were made elsewhere, against people's.
//!
//! `judge bench --benchmark pandalm --data testset-v1.json --verdicts verdicts.jsonl --convention first-line`

mod judging;
mod print;
mod votes;

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, Id};
use judge_data::{BenchmarkPair, Outputs, PairVerdicts, Published};
use judge_metrics::comparison::{JudgedPair, PairComparison, PairComparisons};
use judge_metrics::preference::{Preference, Unparsed};
use serde_json::{Value, json};

use crate::args::bars::{BarArgs, Measured, first_names, rows_used, rows_used_in_words};
use crate::args::files::{WriteArgs, program};
use crate::args::ids_of;
use crate::args::judged_pairs::{PairsArgs, preferences};
use crate::args::model_args::ModelArgs;
use crate::args::prompted::PromptedArgs;
use crate::preferences::{Worth, of_pairs};
use crate::report::{BOOTSTRAP, write_json};
use crate::terminal::console::say;

/// Measure a pairwise judge on a public benchmark.
///
/// Either a model judges here, in both orders (--output keeps its verdicts;
/// interrupted, the same command resumes), or --verdicts has what a judge wrote elsewhere: JSON
/// lines {"id", "given", "swapped"?}, or the output of prompt_judge.
/// Reported are accuracy, macro precision, recall and F1 and Cohen's kappa in the given order, and with both orders
/// accuracy when swapped and on average, agreement right in both, consistency, and how often the response shown first wins.
#[derive(Args)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) pairs: PairsArgs,
    /// mtbench: votes of a judge, in MT-bench's form or as verdicts on the rows of --data (then named like the file);
    /// give it again for more judges. Reported is how often judges and people agree vote by vote
    #[arg(long, value_name = "FILE", conflicts_with_all = of_votes())]
    pub(crate) votes: Vec<PathBuf>,
    /// Verdicts that were made elsewhere
    #[arg(long, value_name = "FILE", conflicts_with_all = of_a_model())]
    verdicts: Option<PathBuf>,
    /// Verdicts of another judge on the same pairs: how much better is the first? (of the same convention, or the output of
    /// `judge compare`)
    #[arg(long, value_name = "FILE", conflicts_with = "limit")]
    against: Option<PathBuf>,
    /// Where the verdicts of a model go
    #[arg(long, value_name = "FILE", conflicts_with = "verdicts")]
    pub(crate) output: Option<PathBuf>,
    /// Where the report goes
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    #[command(flatten)]
    bars: BarArgs,
    #[command(flatten)]
    pub(crate) judge: PromptedArgs,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    #[command(flatten)]
    pub(crate) write: WriteArgs,
}

/// The name of the command.
const COMMAND: &str = "bench";

/// The options of a judge that reads here, which verdicts from elsewhere were made without. How they are read is said by --convention.
fn of_a_model() -> Vec<Id> {
    let own = ["output", "no_lock"].map(Id::from).to_vec();
    [ids_of::<ModelArgs>(&["quiet"]), ids_of::<PromptedArgs>(&["convention"]), own].concat()
}

/// These, and what is of one file of verdicts.
fn of_votes() -> Vec<Id> {
    [of_a_model(), ids_of::<BarArgs>(&[]), ["verdicts", "against"].map(Id::from).to_vec()].concat()
}

pub(crate) fn run(cli: &Cli) -> Result<()> {
    if !cli.votes.is_empty() {
        outputs(cli)?;
        return votes::report(cli);
    }
    cli.bars.gate(COMMAND, || measured(cli))
}

/// Refuses what would destroy a file, before any work.
fn outputs(cli: &Cli) -> Result<()> {
    let inputs = cli.pairs.benchmark.files(&cli.pairs.data)?.into_iter().chain(cli.judge.files());
    let inputs = inputs.chain([&cli.verdicts, &cli.against].into_iter().flatten().chain(&cli.votes).cloned());
    let outputs = Outputs::new(inputs).rows(&cli.output).reports("pairwise_benchmark", &cli.json);
    Ok(outputs.reports(COMMAND, cli.bars.reports()).overwrite(cli.write.overwrite).check()?)
}

fn measured(cli: &Cli) -> Result<Measured> {
    outputs(cli)?;
    let (mut pairs, left_out) = cli.pairs.read()?;
    let read = |path, pairs: &[BenchmarkPair]| {
        let convention = cli.pairs.convention(cli.judge.convention.as_deref())?;
        Ok::<_, anyhow::Error>(PairVerdicts::read_beside(path, pairs, &left_out, convention)?)
    };
    let verdicts = match &cli.verdicts {
        Some(path) => read(path, &pairs)?,
        None => {
            pairs.truncate(cli.model.limit.unwrap_or(usize::MAX));
            judging::verdicts(cli, &pairs)?
        }
    };
    let comparison = compared(&cli.pairs, &pairs, &verdicts);
    let preferences = preferences(&pairs, &verdicts)?;
    let difference = match &cli.against {
        Some(path) => Some(comparison.difference(&compared(&cli.pairs, &pairs, &read(path, &pairs)?))?),
        None => None,
    };
    let mut rows: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    let (judged, unjudged): (Vec<_>, Vec<_>) = pairs.iter().partition(|pair| pair.gold.is_some());
    let undecided = left_out.len() + unjudged.len();
    for (row, pair) in judged.into_iter().enumerate() {
        for group in &pair.groups {
            rows.entry(group).or_default().push(row);
        }
    }
    let worth = |rows: &[usize]| preferences.as_ref().map(|preferences| preferences.of(rows)).transpose();
    let found = |rows: &[usize]| Ok::<Found, anyhow::Error>((comparison.statistics(rows)?, worth(rows)?));
    let overall = found(&(0..comparison.pairs.len()).collect::<Vec<_>>())?;
    let groups = rows.into_iter().map(|(group, rows)| Ok((group, found(&rows)?)));
    let groups = groups.collect::<Result<BTreeMap<_, _>>>()?;
    let overlap = pairs.iter().any(|pair| pair.groups.len() > 1);
    let means = if overlap { BTreeMap::new() } else { means_of_groups(&overall.0, &groups) };
    let policy = cli.pairs.policy_name();
    let (with_verdict, wrong) = kept(&pairs, &verdicts);
    let mut statistics = by_name(&overall);
    statistics.extend(rows_used(with_verdict, overall.0.n).map(|(name, known)| (name, json!(known))));
    if let Some(path) = &cli.json {
        let groups: BTreeMap<_, _> = groups.iter().map(|(group, found)| (group, by_name(found))).collect();
        let report = json!({
            "program": program("pairwise_benchmark"), "benchmark": cli.pairs.benchmark.as_str(), "n": overall.0.n,
            "undecided": undecided, "unparsed": overall.0.unparsed, "policy": policy, "statistics": statistics, "groups": groups,
            "groups_mean": means, "layers": overall.1.as_ref().map(Worth::layers_json),
            "published": published(cli.pairs.benchmark.published()), "difference": difference.as_ref().map(of_verdicts),
        });
        write_json(path, "pairwise_benchmark", &report)?;
    }
    print::report((cli.pairs.benchmark, undecided), policy, &overall, (&groups, &means), difference.as_ref())?;
    if with_verdict < overall.0.n {
        say(rows_used_in_words(with_verdict, overall.0.n))?;
    }
    let worst = if wrong.is_empty() { wrong } else { format!("not as people: {wrong}") };
    Ok(Measured { statistics: json!(statistics), worst })
}

/// How many of the pairs that people have judged have a verdict in each order that was asked, and the first whose verdict is another.
fn kept(pairs: &[BenchmarkPair], verdicts: &PairVerdicts) -> (usize, String) {
    let judged = pairs.iter().zip(&verdicts.orders).filter_map(|(pair, orders)| Some((pair, orders, pair.gold?)));
    let is_kept =
        |given: &Option<_>, swapped: &Option<_>| given.is_some() && (!verdicts.both_orders || swapped.is_some());
    let with_verdict = judged.clone().filter(|(_, [given, swapped], _)| is_kept(given, swapped)).count();
    let wrong = judged.filter(|(_, [given, _], gold)| *given != Some(*gold));
    (with_verdict, first_names(wrong.map(|(pair, ..)| &pair.id)))
}

/// The mean over groups of each statistic of verdicts that all of them define, every group counting alike.
fn means_of_groups(overall: &PairComparisons, groups: &BTreeMap<&str, Found>) -> BTreeMap<&'static str, f64> {
    let mean = |name: &'static str| {
        let of = |(found, _): &Found| found.get(name)?.statistic.estimate();
        let estimates: Vec<f64> = groups.values().map(of).collect::<Option<_>>()?;
        (!estimates.is_empty()).then(|| (name, estimates.iter().sum::<f64>() / estimates.len() as f64))
    };
    overall.statistics.iter().filter_map(|known| mean(known.name)).collect()
}

/// Verdicts on the pairs that people have judged.
fn compared(args: &PairsArgs, pairs: &[BenchmarkPair], verdicts: &PairVerdicts) -> PairComparison {
    let judged = pairs.iter().zip(&verdicts.orders).filter_map(|(pair, [given, swapped])| {
        Some(JudgedPair {
            gold: Preference::from(pair.gold?),
            given: given.map(Preference::from),
            swapped: swapped.map(Preference::from),
            cluster: Some(pair.question.clone()),
        })
    });
    PairComparison {
        pairs: judged.collect(),
        both_orders: verdicts.both_orders,
        ties: args.benchmark.has_ties(),
        unparsed: match args.policy() {
            // As LLMBar counts: two texts without a verdict agree with each other.
            Unparsed::Wrong => Unparsed::OwnLabel,
            named => named,
        },
        bootstrap: BOOTSTRAP,
    }
}

/// What verdicts come to, and what preferences are worth where probabilities were read.
type Found = (PairComparisons, Option<Worth>);

/// As the contract has it.
fn by_name((verdicts, preferences): &Found) -> BTreeMap<&'static str, Value> {
    of_verdicts(verdicts).into_iter().chain(preferences.iter().flat_map(Worth::entries)).collect()
}

fn of_verdicts(found: &PairComparisons) -> BTreeMap<&'static str, Value> {
    found.statistics.iter().map(|known| (known.name, of_pairs(known))).collect()
}

fn published(rows: &[Published]) -> Vec<Value> {
    let row = |row: &Published| {
        let statistics: BTreeMap<_, _> = row.statistics.iter().copied().collect();
        json!({"judge": row.judge, "group": row.group, "statistics": statistics, "source": row.source})
    };
    rows.iter().map(row).collect()
}
