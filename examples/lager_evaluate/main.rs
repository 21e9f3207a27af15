//! Fits layer weights on a validation file and compares the score variants on a data file.
//!
//! `cargo run --release --example lager_evaluate -- --valid valid.jsonl --data test.jsonl`

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use clap::{Parser, ValueEnum};
use judge_core::{
    Alpha, Graded, LayerWeightFit, LayerWeights, RegressionLoss, Scale, ScalePoint, States, TableOrigin, ThetaInit,
    Variant,
};
use judge_data::{InputFile, ScoreFile, load, save};
use judge_examples::console::{say, start, table, usage};
use judge_examples::origin::{recorded_origin, unrecorded_origin};
use judge_examples::report::{self, Agreement, agreement, variant_scores};
use serde::Serialize;

/// Fit layer weights and compare score variants.
///
/// Reads the score files of lager_pointwise (JSON lines with layers, labels, logits and human) and the result JSON of the
/// LAGER reference program alike.
#[derive(Parser)]
#[command(name = "lager_evaluate")]
struct Cli {
    /// Scored and graded items to fit the weights on
    #[arg(long, value_name = "FILE", required_unless_present = "weights")]
    valid: Option<PathBuf>,
    /// Scored and graded items to compare the variants on
    #[arg(long, value_name = "FILE")]
    data: PathBuf,
    /// Use these saved weights and fit none
    #[arg(long, value_name = "FILE", conflicts_with = "valid")]
    weights: Option<PathBuf>,
    /// Which variants: all, or names with commas between
    #[arg(long, default_value = "all", value_name = "LIST")]
    variants: String,
    /// Which layers are put together: all (the paper), drop-last (the reference program) [default: all, or those of --weights]
    #[arg(long, value_name = "all|drop-last")]
    states: Option<States>,
    /// The regression part of the loss: mae (the paper), mse (the reference program)
    #[arg(long, value_enum, default_value_t = Loss::Mae, conflicts_with = "weights")]
    loss: Loss,
    /// Share of the cross-entropy in the loss, or `learned` as in the reference program [default: 0.6225]
    #[arg(long, value_name = "SHARE|learned", conflicts_with = "weights")]
    alpha: Option<String>,
    /// Where the weights start: zeros, or last-one (the code behind the published numbers)
    #[arg(long, value_enum, default_value_t = Init::Zeros, conflicts_with = "weights")]
    init: Init,
    /// Passes over the validation items
    #[arg(long, default_value_t = LayerWeightFit::paper().epochs, value_name = "N", conflicts_with = "weights")]
    epochs: usize,
    /// Items per step
    #[arg(long, default_value_t = LayerWeightFit::paper().batch, value_name = "N", conflicts_with = "weights")]
    batch: usize,
    /// Learning rate
    #[arg(long, default_value_t = LayerWeightFit::paper().lr, value_name = "RATE", conflicts_with = "weights")]
    lr: f64,
    /// Seed of the order of items
    #[arg(long, default_value_t = LayerWeightFit::paper().seed, value_name = "N", conflicts_with = "weights")]
    seed: u64,
    /// Save the fitted weights here
    #[arg(long, value_name = "FILE", requires = "valid")]
    weights_out: Option<PathBuf>,
    /// Write the results here
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Loss {
    Mae,
    Mse,
}

#[derive(Clone, Copy, ValueEnum)]
enum Init {
    Zeros,
    LastOne,
}

#[derive(Serialize)]
struct Results {
    weights: LayerWeights,
    n: usize,
    unscored: usize,
    unscored_by_reason: BTreeMap<String, usize>,
    without_human: usize,
    variants: BTreeMap<&'static str, Agreement>,
}

/// The scored and graded items of a file.
struct Scored {
    items: Vec<Graded>,
    scale: Scale,
    /// The tables have the layers 0 to this one.
    n_layers: usize,
    unscored: BTreeMap<String, usize>,
    without_human: usize,
}

fn main() -> ExitCode {
    start(run)
}

fn run(cli: &Cli) -> Result<()> {
    let variants = cli.variants()?;
    let data = read(&cli.data)?;
    ensure!(!data.items.is_empty(), "{}: no item has both a score table and a human score", cli.data.display());
    let data_origin = recorded_origin(&cli.data)?;
    let weights = match (&cli.weights, &cli.valid) {
        (Some(path), _) => load::<LayerWeights>(path)?,
        (None, Some(path)) => cli.fit(path)?,
        (None, None) => bail!("one of --valid and --weights is needed"), // clap has seen to it
    };
    let states = cli.states.unwrap_or(weights.states());
    if states != weights.states() {
        bail!("--states {states}, but the weights are for {}", weights.states());
    }
    let (fitted_on, found) = (weights.origin().n_layers, data.n_layers);
    ensure!(
        fitted_on == found,
        "{} has layers 0 to {found}, the weights are for layers 0 to {fitted_on}",
        cli.data.display()
    );
    if let Some(origin) = &data_origin
        && recorded(&weights)
    {
        for note in weights.check(origin, states)? {
            eprintln!("note: {note}");
        }
    }
    let mut results = Results {
        n: data.items.len(),
        unscored: data.unscored.values().sum(),
        unscored_by_reason: data.unscored.clone(),
        without_human: data.without_human,
        variants: BTreeMap::new(),
        weights,
    };
    let human: Vec<f64> = data.items.iter().map(|item| item.human).collect();
    for variant in &variants {
        let scores = variant_scores(
            *variant,
            data.items.iter().map(|item| &item.table),
            &data.scale,
            states,
            Some(&results.weights),
        )
        .with_context(|| format!("{}: variant {variant}", cli.data.display()))?;
        results.variants.insert(variant.as_str(), agreement(&scores, &human)?);
    }
    if let Some(path) = &cli.json {
        let mut text = serde_json::to_vec_pretty(&results)?;
        text.push(b'\n');
        judge_data::write_atomic(path, &text)?;
    }
    print(cli, &variants, &results)
}

impl Cli {
    fn variants(&self) -> Result<Vec<Variant>> {
        if self.variants == "all" {
            return Ok(Variant::ALL.to_vec());
        }
        self.variants.split(',').map(|name| name.trim().parse().map_err(usage)).collect()
    }

    fn settings(&self) -> Result<LayerWeightFit> {
        let alpha = match self.alpha.as_deref() {
            None => LayerWeightFit::paper().alpha,
            Some("learned") => LayerWeightFit::reference_program().alpha,
            Some(share) => Alpha::Fixed(
                share.parse().with_context(|| format!("--alpha {share:?} is neither a number nor `learned`"))?,
            ),
        };
        Ok(LayerWeightFit {
            loss: match self.loss {
                Loss::Mae => RegressionLoss::Mae,
                Loss::Mse => RegressionLoss::Mse,
            },
            init: match self.init {
                Init::Zeros => ThetaInit::Zeros,
                Init::LastOne => ThetaInit::LastOne,
            },
            alpha,
            states: self.states.unwrap_or_default(),
            epochs: self.epochs,
            batch: self.batch,
            lr: self.lr,
            seed: self.seed,
            ..LayerWeightFit::paper()
        })
    }

    fn fit(&self, path: &Path) -> Result<LayerWeights> {
        let valid = read(path)?;
        let origin = recorded_origin(path)?;
        if self.weights_out.is_some() && origin.is_none() {
            bail!(
                "--weights-out: {} has no run record beside it, so nothing says which model the weights belong to",
                path.display()
            );
        }
        let origin: TableOrigin = match origin {
            Some(origin) => origin,
            None => unrecorded_origin(&InputFile::of(path)?, valid.n_layers, &valid.scale),
        };
        let weights = self
            .settings()?
            .fit(&valid.items, &origin)
            .with_context(|| format!("cannot fit layer weights on {}", path.display()))?;
        if let Some(out) = &self.weights_out {
            save(out, &weights)?;
        }
        Ok(weights)
    }
}

/// Whether the weights say which model they belong to.
fn recorded(weights: &LayerWeights) -> bool {
    !judge_examples::origin::is_unrecorded(weights.origin())
}

fn read(path: &Path) -> Result<Scored> {
    let mut scored: Option<(Vec<String>, Scale, usize)> = None;
    let (mut items, mut unscored, mut without_human) = (Vec::new(), BTreeMap::new(), 0);
    for item in ScoreFile::open(path)? {
        let item = item?;
        let table = match item.table {
            Ok(table) => table,
            Err(reason) => {
                *unscored.entry(reason.reason.to_string()).or_default() += 1;
                continue;
            }
        };
        let n_layers = table.layers().len() - 1; // a table has at least one layer
        ensure!(
            table.layers().iter().enumerate().all(|(index, layer)| layer.0 == index),
            "{}: item {} lacks layers; LAGER needs all of them, from 0 to the last",
            path.display(),
            item.id
        );
        match &scored {
            None => scored = Some((item.labels.clone(), scale_of(&item.labels)?, n_layers)),
            Some((_, _, first)) if *first != n_layers => {
                bail!(
                    "{}: item {} has layers 0 to {n_layers}, the items before it 0 to {first}",
                    path.display(),
                    item.id
                );
            }
            Some((labels, _, _)) if *labels != item.labels => {
                bail!(
                    "{}: item {} has labels {:?}, the items before it {labels:?}",
                    path.display(),
                    item.id,
                    item.labels
                );
            }
            Some(_) => {}
        }
        match item.human {
            Some(human) => items.push(Graded { table, human }),
            None => without_human += 1,
        }
    }
    let Some((_, scale, n_layers)) = scored else { bail!("{}: no item was scored", path.display()) };
    if let Some(origin) = recorded_origin(path)? {
        ensure!(
            origin.n_layers == n_layers,
            "{} has layers 0 to {n_layers}, its model 0 to {}",
            path.display(),
            origin.n_layers
        );
    }
    Ok(Scored { items, scale, n_layers, unscored, without_human })
}

/// Labels that are numbers are their values.
fn scale_of(labels: &[String]) -> Result<Scale> {
    let point = |label: &String| {
        let value = label
            .parse()
            .with_context(|| format!("label {label:?} is not a number, so it has no value to score by"))?;
        Ok(ScalePoint { value, label: label.clone() })
    };
    Ok(Scale::new(labels.iter().map(point).collect::<Result<_>>()?)?)
}

fn print(cli: &Cli, variants: &[Variant], results: &Results) -> Result<()> {
    say(format_args!("{}: {} items scored and graded", cli.data.display(), results.n))?;
    if results.unscored > 0 {
        say(format_args!("unscored: {}", report::unscored(&results.unscored_by_reason)))?;
    }
    if results.without_human > 0 {
        say(format_args!("scored but without a human score: {}", results.without_human))?;
    }
    let entries = variants.iter().map(|variant| (variant.as_str(), &results.variants[variant.as_str()]));
    say(format_args!("\n{}", table(&report::rows("variant", entries))))?;
    let weights = results.weights.weights().iter().enumerate();
    let cells: Vec<String> = weights.map(|(layer, weight)| format!("{layer}: {weight:.3}")).collect();
    say(format_args!(
        "layer weights ({}, fitted on {} items): {}",
        results.weights.states(),
        results.weights.n_items(),
        cells.join("  ")
    ))
}
