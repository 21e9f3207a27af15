//! Pairs of which one response was changed, and what the changes did.

use std::cmp::Ordering;
use std::io::Write;
use std::path::Path;

use anyhow::{Result, bail};
use judge_cli::args::judged_pairs::check_convention;
use judge_cli::judge_record::{other_judge, other_model};
use judge_cli::report::BOOTSTRAP;
use judge_cli::terminal::console::{counted, say, usage};
use judge_data::{
    Benchmark, BenchmarkPair, PairVerdict, PairVerdicts, Perturbation, PerturbedPair, Rows, RunRecord, load,
    record_path, write_new,
};
use judge_metrics::comparison::{BiasFinding, PerturbationReport, PerturbedVerdicts};
use judge_metrics::preference::Preference;
use serde_json::json;

use super::Cli;

/// The changes that are wanted, the neutral one first.
fn wanted(cli: &Cli) -> Result<Vec<Perturbation>> {
    let names = cli.perturbations.as_deref().unwrap_or("all");
    if names == "all" {
        return Ok(Perturbation::ALL.to_vec());
    }
    let mut wanted = vec![Perturbation::Neutral];
    for name in names.split(',') {
        let perturbation: Perturbation = name.trim().parse().map_err(usage)?;
        if !wanted.contains(&perturbation) {
            wanted.push(perturbation);
        }
    }
    Ok(wanted)
}

/// The changes that a file of verdicts is about: those that its ids name.
fn named(path: &Path) -> Result<Vec<Perturbation>> {
    let mut named = vec![Perturbation::Neutral];
    for row in Rows::open(path)? {
        let row = row?;
        let id: Option<String> = row.optional("id", "the id of a changed pair, a string")?;
        let name = id.as_deref().and_then(|id| id.rsplit_once('#')).map(|(_, name)| name.parse());
        if let Some(Ok(perturbation)) = name
            && !named.contains(&perturbation)
        {
            named.push(perturbation);
        }
    }
    named.sort_unstable();
    Ok(named)
}

/// The changed pairs of a benchmark.
fn of(cli: &Cli, pairs: &[BenchmarkPair], perturbations: &[Perturbation]) -> Result<Vec<PerturbedPair>> {
    if cli.pairs.benchmark()? == Benchmark::MtBench {
        return Err(usage(
            "the responses of mtbench are conversations, which are not changed; the other benchmarks have single responses",
        ));
    }
    Ok(PerturbedPair::all(pairs, perturbations))
}

/// Whether a file has changed pairs, by its first row.
pub(crate) fn is_perturbed(path: &Path) -> bool {
    let first = Rows::open(path).ok().and_then(|mut rows| rows.next());
    matches!(first, Some(Ok(row)) if row.has("perturbation") && row.has("changed"))
}

/// The changed pairs as rows of pairs.
pub(crate) fn write(cli: &Cli, path: &Path, pairs: &[BenchmarkPair]) -> Result<()> {
    let perturbed = of(cli, pairs, &wanted(cli)?)?;
    let mut rows: Vec<u8> = Vec::new();
    for known in &perturbed {
        let Some(record) = known.pair.to_record() else { continue };
        let letter = |order: Ordering| PairVerdict::from(order);
        let mut row = json!({
            "id": record.id, "instruction": record.instruction, "response_a": record.response_a, "response_b": record.response_b,
            "perturbation": known.perturbation.as_str(), "changed": letter(known.target),
        });
        let more = [
            ("rubric", record.rubric.map(Into::into)),
            ("reference", record.reference.map(Into::into)),
            ("human", known.pair.gold.map(|gold| json!(letter(gold)))),
        ];
        for (name, value) in more {
            if let Some(value) = value {
                row[name] = value;
            }
        }
        writeln!(rows, "{row}")?;
    }
    write_new(path, &rows, cli.write.overwrite)?;
    say(format_args!("{} -> {}", counted(perturbed.len(), "changed pair"), path.display()))
}

/// Refuses verdicts of two judges, as far as run records beside both files say whose they are.
fn check_judge(before: &Path, after: &Path) -> Result<()> {
    if ![before, after].iter().all(|file| record_path(file).exists()) {
        return Ok(());
    }
    let (known, here): (RunRecord, RunRecord) = (load(record_path(before))?, load(record_path(after))?);
    let (before, after) = (before.display(), after.display());
    let differs = match (other_judge(&known.settings, &here.settings), &here.model) {
        (Some(difference), _) => format!("{before} has verdicts of another judge than {after}: {difference}"),
        (None, Some(model)) => match other_model(known.model.as_ref(), model) {
            Some(name) => format!("{before} has verdicts of {name}, {after} those of {}", model.name),
            None => return Ok(()),
        },
        (None, None) => return Ok(()),
    };
    bail!(
        "--verdicts and --perturbed: {differs}; judge the changed pairs with the model and the template of --verdicts"
    )
}

/// What each change did. Verdicts on changes of `others` are passed over, as they are in --verdicts.
pub(crate) fn findings(
    cli: &Cli,
    path: &Path,
    [pairs, others]: [&[BenchmarkPair]; 2],
    before: &PairVerdicts,
) -> Result<Vec<BiasFinding>> {
    cli.verdicts.as_deref().map_or(Ok(()), |verdicts| check_judge(verdicts, path))?;
    let named = named(path)?;
    let perturbed = of(cli, pairs, &named)?;
    let changed: Vec<BenchmarkPair> = perturbed.iter().map(|known| known.pair.clone()).collect();
    let beside: Vec<BenchmarkPair> = of(cli, others, &named)?.into_iter().map(|known| known.pair).collect();
    let convention = cli.convention.as_deref();
    let after = cli.pairs.verdicts(path, &changed, &beside, convention)?;
    check_convention(convention, path, before.texts + after.texts)?;
    if after.both_orders != before.both_orders {
        return Err(usage("--verdicts and --perturbed: one has both orders, the other has the given order alone"));
    }
    let orders = if after.both_orders { 2 } else { 1 };
    // Named so that the changed response is first.
    let about = |verdicts: &[Option<Ordering>; 2], target: Ordering| -> Vec<Option<Preference>> {
        let turn = |order: Ordering| if target == Ordering::Less { order.reverse() } else { order };
        verdicts[..orders].iter().map(|verdict| verdict.map(|order| Preference::from(turn(order)))).collect()
    };
    let mut neutral = vec![None; pairs.len()];
    for (known, orders) in perturbed.iter().zip(&after.orders) {
        if known.perturbation == Perturbation::Neutral {
            neutral[known.row] = Some(orders);
        }
    }
    let named = named.into_iter().filter(|perturbation| *perturbation != Perturbation::Neutral);
    let finding = |perturbation: Perturbation| {
        let known = perturbed.iter().zip(&after.orders).filter(|(known, _)| known.perturbation == perturbation);
        let verdicts = known.filter_map(|(known, orders)| {
            Some(PerturbedVerdicts {
                before: about(&before.orders[known.row], known.target),
                after: about(orders, known.target),
                neutral: about(neutral[known.row]?, known.target),
                question: known.pair.question.clone(),
            })
        });
        let report =
            PerturbationReport { pairs: verdicts.collect(), unparsed: cli.pairs.policy().0, bootstrap: BOOTSTRAP };
        Ok(report.finding(perturbation.as_str())?)
    };
    named.map(finding).collect()
}
