//! A pairwise judge on a public benchmark: verdicts that a model makes here or that were made elsewhere, against people's.
//!
//! `judge bench --benchmark pandalm --data testset-v1.json --verdicts verdicts.jsonl --convention first-line`

mod cli;
mod figures;
mod print;
mod rankings;
mod verdicts;
mod votes;

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::Result;
use judge_cli::args::bars::{Lost, Measured, first_names, rows_used, rows_used_in_words};
use judge_cli::args::files::program;
use judge_cli::args::judged_pairs::{BenchmarkName, PairsArgs, beyond, check_convention, preferences};
use judge_cli::preferences::{Compared, MAJORITY_READ, Worth};
use judge_cli::report::{BOOTSTRAP, write_json_if, write_marked};
use judge_cli::terminal::console::{say, usage};
use judge_data::{BenchmarkPair, Outputs, PairVerdicts};
use judge_metrics::comparison::{JudgedPair, PairComparison, PreferenceComparison};
use judge_metrics::preference::{Preference, Unparsed};
use serde_json::json;

use self::cli::COMMAND;
use self::figures::{Found, by_name, means_of_groups, of_verdicts, plot, published};

pub(crate) use self::cli::Cli;

pub(crate) fn run(cli: &Cli) -> Result<()> {
    match (cli.pairs.benchmark, &cli.run) {
        (BenchmarkName::Trec, Some(run)) => return cli.bars.gate(COMMAND, || rankings::measured(cli, run)),
        (BenchmarkName::Trec, None) => {
            return Err(usage("--benchmark trec: expected --run FILE, the rankings that are measured"));
        }
        (BenchmarkName::Of(benchmark), Some(_)) => {
            return Err(usage(format!("--run: {benchmark} has no rankings of documents; give --benchmark trec")));
        }
        (BenchmarkName::Of(_), None) => {}
    }
    if !cli.votes.is_empty() {
        outputs(cli)?;
        return votes::report(cli);
    }
    cli.bars.gate(COMMAND, || measured(cli))
}

/// Refuses what would destroy a file, before any work.
fn outputs(cli: &Cli) -> Result<()> {
    let inputs = cli.pairs.benchmark()?.files(&cli.pairs.data)?.into_iter().chain(cli.judge.files());
    let inputs = inputs.chain([&cli.verdicts, &cli.against].into_iter().flatten().chain(&cli.votes).cloned());
    let outputs = Outputs::new(inputs)
        .rows(&cli.output)
        .reports("pairwise_benchmark", [&cli.json, &cli.plot].into_iter().flatten());
    Ok(outputs.reports(COMMAND, cli.bars.reports()).overwrite(cli.write.overwrite).check()?)
}

/// Names of the statistics; those that one order alone or written verdicts leave undefined are among them.
fn names() -> Result<Vec<&'static str>> {
    let none = PairComparison { bootstrap: BOOTSTRAP, ..PairComparison::new(Vec::new(), Unparsed::OwnLabel) };
    let mut names: Vec<&str> = none.statistics(&[])?.statistics.iter().map(|known| known.name).collect();
    let of_preferences = PreferenceComparison::STATISTICS.into_iter().filter(|name| !names.contains(name));
    let of_preferences: Vec<&str> = of_preferences.chain([PreferenceComparison::CHOSEN_LAYER, MAJORITY_READ]).collect();
    names.extend(of_preferences);
    Ok(names)
}

fn measured(cli: &Cli) -> Result<Measured> {
    outputs(cli)?;
    cli.bars.check_names(&names()?)?;
    let (mut pairs, mut others) = cli.pairs.read()?;
    let left_out = others.len();
    others.extend(beyond(&mut pairs, cli.model.limit));
    let convention = cli.judge.convention.as_deref();
    let read = |path: &PathBuf| cli.pairs.verdicts(path, &pairs, &others, convention);
    let verdicts = cli.verdicts.as_ref().map_or_else(|| verdicts::of_model(cli, &pairs), read)?;
    let against = cli.against.as_ref().map(read).transpose()?;
    if let Some(path) = &cli.verdicts {
        let texts = verdicts.texts + against.as_ref().map_or(0, |against| against.texts);
        check_convention(convention, path, texts)?;
    }
    let comparison = compared(&cli.pairs, &pairs, &verdicts)?;
    let preferences = preferences(&pairs, &verdicts)?;
    let difference = match &against {
        Some(against) => Some(comparison.difference(&compared(&cli.pairs, &pairs, against)?)?),
        None => None,
    };
    let mut rows: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    let (judged, unjudged): (Vec<_>, Vec<_>) = pairs.iter().partition(|pair| pair.gold.is_some());
    let undecided = left_out + unjudged.len();
    for (row, pair) in judged.into_iter().enumerate() {
        for group in &pair.groups {
            rows.entry(group).or_default().push(row);
        }
    }
    let worth = |rows: &[usize]| preferences.as_ref().map(|preferences| preferences.of(rows)).transpose();
    let found = |rows: &[usize]| Ok::<Found, anyhow::Error>((comparison.statistics(rows)?, worth(rows)?));
    let overall = found(&(0..comparison.pairs.len()).collect::<Vec<_>>())?;
    // What preferences are compared with: verdicts on the same pairs.
    let read = preferences.as_ref().map(Compared::read).filter(|read| read.len() < overall.0.n);
    let of_read = read.map(|read| comparison.statistics(&read)).transpose()?;
    let groups = rows.into_iter().map(|(group, rows)| Ok((group, found(&rows)?)));
    let groups = groups.collect::<Result<BTreeMap<_, _>>>()?;
    let overlap = pairs.iter().any(|pair| pair.groups.len() > 1);
    let means = if overlap { BTreeMap::new() } else { means_of_groups(&overall.0, &groups) };
    let (_, policy) = cli.pairs.policy();
    let (with_verdict, lost, worst) = kept(&pairs, &verdicts);
    let mut statistics = by_name(&overall);
    statistics.extend(rows_used(with_verdict, overall.0.n).map(|(name, known)| (name, json!(known))));
    write_json_if(cli.json.as_deref(), "pairwise_benchmark", || {
        let of_groups: BTreeMap<_, _> = groups.iter().map(|(group, found)| (group, by_name(found))).collect();
        Ok(json!({
            "program": program("pairwise_benchmark"), "benchmark": cli.pairs.benchmark()?.as_str(), "n": overall.0.n,
            "undecided": undecided, "unparsed": overall.0.unparsed, "policy": policy, "statistics": statistics, "groups": of_groups,
            "groups_mean": means, "layers": overall.1.as_ref().map(Worth::layers_json),
            "published": published(cli.pairs.benchmark()?.published()), "difference": difference.as_ref().map(of_verdicts),
        }))
    })?;
    if let Some(path) = &cli.plot {
        let title = format!("{}, {} pairs", cli.pairs.benchmark()?, overall.0.n);
        write_marked(path, "pairwise_benchmark", &plot(&title, &overall, &groups)?)?;
    }
    let of_read = of_read.as_ref().unwrap_or(&overall.0);
    print::report(
        (cli.pairs.benchmark()?, undecided),
        policy,
        &overall,
        of_read,
        (&groups, &means),
        difference.as_ref(),
    )?;
    if with_verdict < overall.0.n {
        say(rows_used_in_words(with_verdict, overall.0.n))?;
    }
    Ok(Measured { statistics: json!(statistics), worst, lost, apart: Vec::new() })
}

/// How many of the pairs that people have judged have a verdict in each order that was asked, those that have not, and in words the
/// first whose verdict is another.
fn kept(pairs: &[BenchmarkPair], verdicts: &PairVerdicts) -> (usize, Lost, String) {
    let judged = pairs.iter().zip(&verdicts.orders).filter_map(|(pair, orders)| Some((pair, orders, pair.gold?)));
    let is_kept =
        |given: &Option<_>, swapped: &Option<_>| given.is_some() && (!verdicts.both_orders || swapped.is_some());
    let (kept, without): (Vec<_>, Vec<_>) =
        judged.clone().partition(|(_, [given, swapped], _)| is_kept(given, swapped));
    let mut lost = Lost::default();
    lost.extend(without.into_iter().map(|(pair, ..)| &pair.id));
    let wrong = judged.filter(|(_, [given, _], gold)| *given != Some(*gold));
    (kept.len(), lost, first_names("not as people", wrong.map(|(pair, ..)| &pair.id)))
}

/// Verdicts on the pairs that people have judged.
fn compared(args: &PairsArgs, pairs: &[BenchmarkPair], verdicts: &PairVerdicts) -> Result<PairComparison> {
    let judged = pairs.iter().zip(&verdicts.orders).filter_map(|(pair, [given, swapped])| {
        Some(JudgedPair {
            gold: Preference::from(pair.gold?),
            given: given.map(Preference::from),
            swapped: swapped.map(Preference::from),
            cluster: Some(pair.question.clone()),
        })
    });
    Ok(PairComparison {
        pairs: judged.collect(),
        both_orders: verdicts.both_orders,
        ties: args.benchmark()?.has_ties(),
        unparsed: match args.policy().0 {
            // As LLMBar counts: two texts without a verdict agree with each other.
            Unparsed::Wrong => Unparsed::OwnLabel,
            named => named,
        },
        bootstrap: BOOTSTRAP,
    })
}
