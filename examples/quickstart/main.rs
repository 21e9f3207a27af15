//! The embedded model judges held-out answers from its inner layers, beside the usual baselines.
//!
//! `cargo run --release --example quickstart`

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Parser;
use judge_core::{
    Backbone, JudgeError, Layer, ModelInfo, Runner, Scale,
    fit::{Graded, LayerWeightFit},
    lager::{LagerJudge, LagerSettings, LayerTable, LayerWeights, Variant},
    runner::RunEvent,
};
use judge_data::{Outputs, Program};
use judge_examples::console::{progress, say, start, table, tell};
use judge_examples::files::{OverwriteArgs, program};
use judge_examples::model_args::{JUDGE_TEMPLATE, embedded_model, read_template};
use judge_examples::planted::{Item, Split, generate};
use judge_examples::report::{self, Agreement, agreement, difference, verdict, write_json};
use judge_examples::surface::{SurfaceModel, features, overlap};
use judge_models::{LoadOptions, Model};
use judge_probe::training::Statistic;
use serde::Serialize;

/// See a small language model judge answers from its inner layers.
///
/// The embedded model reads generated questions and answers with planted defects. Layer weights are fitted on a validation split, then
/// scores are compared with simulated raters on a test split and on a shifted one, whose topics and wordings the model was not
/// trained on. No network, no arguments needed.
#[derive(Parser)]
#[command(name = "quickstart")]
struct Cli {
    /// Write the results here as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Items of the test split, and of the shifted one
    #[arg(long, default_value_t = 1_000, value_name = "N")]
    items: usize,
    /// Items of the validation split
    #[arg(long, default_value_t = 600, value_name = "N")]
    validation: usize,
    /// Seed of the generated items
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    /// No progress on stderr
    #[arg(long)]
    quiet: bool,
    #[command(flatten)]
    write: OverwriteArgs,
}

#[derive(Serialize)]
struct Results {
    program: Program,
    model: ModelInfo,
    layer_weights: Vec<LayerWeight>,
    splits: BTreeMap<&'static str, SplitResults>,
}

#[derive(Serialize)]
struct LayerWeight {
    layer: Layer,
    weight: f64,
}

#[derive(Serialize)]
struct SplitResults {
    n: usize,
    unscored: usize,
    variants: BTreeMap<&'static str, Agreement>,
    baselines: BTreeMap<&'static str, Agreement>,
    per_layer: Vec<PerLayer>,
    /// Spearman of the last layer's expected score minus that of its most likely one, on the same resampled rows.
    expected_minus_direct: Statistic,
    /// Spearman of LAGER with tuned weights minus that of the last layer's expected score, on the same resampled rows.
    lager_w_minus_expected: Statistic,
}

#[derive(Serialize)]
struct PerLayer {
    layer: Layer,
    direct: Agreement,
    expected: Agreement,
}

/// The four scores of the story, by the names of the results file.
const STORY: [(&str, Variant); 4] = [
    ("direct", Variant::LastMode),
    ("expected", Variant::LastExpected),
    ("lager_wo", Variant::MeanExpected),
    ("lager_w", Variant::WeightedExpected),
];

fn main() -> ExitCode {
    start(run)
}

fn run(cli: &Cli) -> Result<()> {
    let start = Instant::now();
    Outputs::default().reports("quickstart", &cli.json).overwrite(cli.write.overwrite).check()?;
    let folder = embedded_model();
    let model =
        Model::load(&folder, &LoadOptions::default()).with_context(|| format!("cannot load {}", folder.display()))?;
    let scale = Scale::integers(1, 5)?;
    let template = read_template(&folder.join(JUDGE_TEMPLATE))?;
    // The model's own template opens the score right after the prompt.
    let opening = String::new();
    let judge =
        LagerJudge::new(LagerSettings { template, opening, ..LagerSettings::prompt_end(scale.clone()) }, &model)?;

    let validation = generate(Split::Validation, cli.validation, cli.seed);
    let graded: Vec<Graded> = read(cli, &model, &judge, &validation)?
        .into_iter()
        .map(|(item, table)| Graded { table, human: item.human() })
        .collect();
    let weights = LayerWeightFit { epochs: 5, ..LayerWeightFit::paper() }.fit(&graded, judge.origin())?;
    let surface = SurfaceModel::fit(&validation)?;

    let mut splits = BTreeMap::new();
    for split in [Split::Test, Split::Shifted] {
        let items = generate(split, cli.items, cli.seed);
        let scored = read(cli, &model, &judge, &items)?;
        splits.insert(split.name(), evaluate(&items, &scored, &scale, &weights, &surface)?);
    }
    let layer_weights =
        weights.weights().iter().enumerate().map(|(layer, &weight)| LayerWeight { layer: Layer(layer), weight });
    let program = program("quickstart");
    let results = Results { program, model: model.info().clone(), layer_weights: layer_weights.collect(), splits };
    if let Some(path) = &cli.json {
        write_json(path, "quickstart", &results)?;
    }
    print(&results, &weights, start.elapsed().as_secs_f64())
}

/// The layer tables of the items that could be scored.
fn read<'i>(cli: &Cli, model: &Model, judge: &LagerJudge, items: &'i [Item]) -> Result<Vec<(&'i Item, LayerTable)>> {
    let bar = progress("judging", items.len(), cli.quiet);
    let mut scored = Vec::with_capacity(items.len());
    let asked = items.iter().map(|item| (item.id.as_str().into(), item));
    Runner::new(model, vec![judge]).run(asked, |event| -> Result<()> {
        let RunEvent::Item(result) = event else { return Ok(()) };
        bar.inc(1);
        match judge.table(&result.rounds(0)) {
            Ok(table) => scored.push((result.item, table)),
            Err(JudgeError::Unscored(reason)) => tell(format_args!("{}: {reason}", result.id)),
            Err(JudgeError::Failed(error)) => return Err(anyhow::Error::from_boxed(error)),
        }
        Ok(())
    })?;
    bar.finish_and_clear();
    Ok(scored)
}

fn evaluate(
    items: &[Item],
    scored: &[(&Item, LayerTable)],
    scale: &Scale,
    weights: &LayerWeights,
    surface: &SurfaceModel,
) -> Result<SplitResults> {
    let human: Vec<f64> = scored.iter().map(|(item, _)| item.human()).collect();
    let scores = |variant| -> Result<Vec<f64>> {
        scored.iter().map(|(_, table)| Ok(weights.score(variant, table, scale)?.score)).collect()
    };
    let mut variants = BTreeMap::new();
    for (name, variant) in STORY {
        variants.insert(name, agreement(&scores(variant)?, &human)?);
    }

    let of_all: Vec<f64> = items.iter().map(Item::human).collect();
    let baseline = |scores: Vec<f64>| agreement(&scores, &of_all);
    let mut baselines = BTreeMap::new();
    baselines.insert("length", baseline(items.iter().map(|item| features(item)[0]).collect())?);
    baselines.insert("word_overlap", baseline(items.iter().map(overlap).collect())?);
    baselines.insert("surface_ridge", baseline(surface.predict(items)?)?);

    let mut per_layer = Vec::new();
    for layer in (0..=weights.origin().n_layers).map(Layer) {
        let distributions =
            scored.iter().map(|(_, table)| table.distribution(layer, scale)).collect::<Result<Vec<_>, _>>()?;
        let direct: Vec<f64> = distributions.iter().map(|d| d.mode().value).collect();
        let expected: Vec<f64> = distributions.iter().map(|d| d.expected()).collect();
        per_layer.push(PerLayer {
            layer,
            direct: agreement(&direct, &human)?,
            expected: agreement(&expected, &human)?,
        });
    }
    Ok(SplitResults {
        n: items.len(),
        unscored: items.len() - scored.len(),
        expected_minus_direct: difference(&scores(Variant::LastExpected)?, &scores(Variant::LastMode)?, &human)?,
        lager_w_minus_expected: difference(
            &scores(Variant::WeightedExpected)?,
            &scores(Variant::LastExpected)?,
            &human,
        )?,
        variants,
        baselines,
        per_layer,
    })
}

fn print(results: &Results, weights: &LayerWeights, seconds: f64) -> Result<()> {
    let model = &results.model;
    say(format_args!(
        "A {} model of {} blocks, read at the end of each prompt: the label logits of {} layers.",
        model.family,
        model.n_layers,
        model.n_layers + 1
    ))?;
    say(format_args!(
        "Layer weights were fitted on {} validation items; agreement is with simulated raters.",
        weights.n_items()
    ))?;
    for (name, split) in &results.splits {
        say(format_args!("\n{name}: {} items, {} unscored\n", split.n, split.unscored))?;
        let variants = STORY.iter().map(|(name, _)| (*name, &split.variants[name]));
        let baselines = split.baselines.iter().map(|(name, agreement)| (*name, agreement));
        let reasons = report::reasons(variants.clone().chain(baselines.clone()));
        say(format_args!("{}{}", table(&report::rows("score", variants.chain(baselines))), reasons)
            .to_string()
            .trim_end())?;
        let gaps = [
            (
                "expected minus direct",
                &split.expected_minus_direct,
                "reading the distribution beats the written digit",
                "the written digit is better here",
            ),
            (
                "lager_w minus expected",
                &split.lager_w_minus_expected,
                "the inner layers add to the last one",
                "the last layer alone is better here",
            ),
        ];
        for (name, gap, above, below) in gaps {
            say(format_args!("Spearman, {name}: {gap}: {}.", verdict(gap, above, below)))?;
        }
    }
    let mut rows = vec![vec!["layer".to_owned(), "weight".to_owned()]];
    for name in results.splits.keys() {
        rows[0].extend([format!("{name} direct"), format!("{name} expected")]);
    }
    for (index, weight) in results.layer_weights.iter().enumerate() {
        let mut row = vec![index.to_string(), format!("{:.3}", weight.weight)];
        for split in results.splits.values() {
            let layer = &split.per_layer[index];
            let cell = |agreement: &Agreement| {
                agreement.spearman.estimate().map_or("undefined".to_owned(), |rho| format!("{rho:.3}"))
            };
            row.extend([cell(&layer.direct), cell(&layer.expected)]);
        }
        rows.push(row);
    }
    say(format_args!(
        "\nSpearman of each layer alone (0 is the embedding, {} the last block after the final norm):\n\n{}",
        model.n_layers,
        table(&rows)
    ))?;
    say(
        "A model of this size shows what the distribution over the scores adds to the digit; what inner layers add is a matter of models of billions of \
         parameters (arXiv 2508.03550). To see it on yours:\n\n  \
         cargo run --release --example lager_pointwise -- --model MODEL --input valid.jsonl --output valid.scores.jsonl\n  \
         cargo run --release --example lager_pointwise -- --model MODEL --input test.jsonl --output test.scores.jsonl\n  \
         cargo run --release --example lager_evaluate -- --valid valid.scores.jsonl --input test.scores.jsonl\n",
    )?;
    say(format_args!("{seconds:.1} s"))
}
