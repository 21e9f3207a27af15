//! Probing judges from graded prompts: states, layer selection, probes, and the baselines that they have to beat.
//!
//! `cargo run --release --example inspector_train -- --output probes`

mod artefacts;
mod baselines;
mod evaluation;
mod figure;
mod rows;
mod states;
mod training;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::{Parser, ValueEnum};
use judge_core::{Backbone, Layer, Pooling, TokenId};
use judge_data::write_atomic;
use judge_examples::console::{say, start, table, usage};
use judge_examples::layers::LayerList;
use judge_examples::model_args::{ModelArgs, SeedArgs, read_template};
use judge_models::Model;
use serde_json::json;

use crate::rows::{Data, Fields, Row};
use crate::states::{Reading, States};
use crate::training::{Report, train};

/// Train probing judges (INSPECTOR).
///
/// Input: a probing file {"ASPECT": [{"id", "eval_prompt", "score"}, ...]}, or JSON lines {"id", "score"} with "prompt", "messages", or
/// "question" and "response"; "aspect", and "split" (what is learnt from is called train), are optional. Without --input, generated questions and
/// answers with planted defects are judged. For each aspect the states of all layers are read once, layers and poolings are chosen by
/// cross-validation on the training rows, and the probe is compared on the other rows with the majority, surface features, TF-IDF
/// and the same model's prompted score; duplicates and other artefacts of the data are reported. Output: a folder with ASPECT.safetensors, ASPECT.svg and report.json.
#[derive(Parser)]
#[command(name = "inspector_train")]
struct Cli {
    /// Graded prompts [default: generated ones]
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// Where probes, figures and the report go
    #[arg(long, value_name = "DIR")]
    output: PathBuf,
    /// Where the states are kept [default: OUTPUT/states]
    #[arg(long, value_name = "DIR")]
    states: Option<PathBuf>,
    /// Aspects to train on (repeatable) [default: all]
    #[arg(long, value_name = "NAME")]
    aspect: Vec<String>,
    /// Prompt of rows with question and response [default: the aspect's own]
    #[arg(long, value_name = "FILE.json")]
    template: Option<PathBuf>,
    /// Tell grades of 4 and above from those below, instead of the grades 1 to 5
    #[arg(long)]
    binary: bool,
    /// Which layers: all, or a list such as 0,5,12-16; blocks above the highest are not run
    #[arg(long, default_value = "all", value_name = "LIST")]
    layers: LayerList,
    /// Ways of pooling to choose from
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [View::Last, View::Mean])]
    pooling: Vec<View>,
    /// Put the attention entropy of each head beside the states of its layer
    #[arg(long)]
    attention_entropy: bool,
    /// What learns
    #[arg(long, value_enum, default_value_t = Learner::Logistic)]
    classifier: Learner,
    /// Inverse strengths of the penalty to choose from
    #[arg(long, value_delimiter = ',', default_values_t = [0.001, 0.01, 0.1, 1.0])]
    c: Vec<f64>,
    /// Most layers that a probe may read
    #[arg(long, default_value_t = 5)]
    top_k: usize,
    /// Folds of the cross-validation
    #[arg(long, default_value_t = 5)]
    folds: usize,
    /// Share of rows to test on, where no split is given
    #[arg(long, default_value_t = 0.2)]
    test_share: f64,
    /// Chooses the rows to test on
    #[arg(long, default_value_t = 731)]
    split_seed: u32,
    /// Field whose rows stay on one side of every split [default: the question]
    #[arg(long, value_name = "FIELD")]
    group: Option<String>,
    /// Field that says where a row comes from, for the report of artefacts
    #[arg(long, value_name = "FIELD")]
    source: Option<String>,
    /// Split rows as the published protocol does, though questions then stand on both sides
    #[arg(long)]
    ungrouped: bool,
    #[command(flatten)]
    model: ModelArgs,
    #[command(flatten)]
    seed: SeedArgs,
}

/// How the states of a layer are pooled.
#[derive(Clone, Copy, ValueEnum)]
enum View {
    Last,
    Mean,
    Min,
    Max,
    /// Smallest, largest and mean side by side
    Concat,
}

impl View {
    fn poolings(self) -> &'static [Pooling] {
        match self {
            Self::Last => &[Pooling::Last],
            Self::Mean => &[Pooling::Mean],
            Self::Min => &[Pooling::Min],
            Self::Max => &[Pooling::Max],
            Self::Concat => &[Pooling::Min, Pooling::Max, Pooling::Mean],
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Last => "last",
            Self::Mean => "mean",
            Self::Min => "min",
            Self::Max => "max",
            Self::Concat => "concat",
        }
    }
}

#[derive(Clone, Copy, ValueEnum)]
enum Learner {
    /// Logistic regression with balanced classes
    Logistic,
    /// Linear support vector machine with balanced classes
    Svm,
}

fn main() -> ExitCode {
    start(run)
}

fn run(cli: &Cli) -> Result<()> {
    if !(cli.test_share > 0.0 && cli.test_share < 1.0) {
        return Err(usage("--test-share must lie between 0 and 1"));
    }
    if let Some(c) = cli.c.iter().find(|c| !(c.is_finite() && **c > 0.0)) {
        return Err(usage(format!("--c must be above 0, found {c}")));
    }
    if cli.top_k == 0 || cli.folds < 2 {
        return Err(usage("--top-k must be at least 1, --folds at least 2"));
    }
    let template = cli.template.as_deref().map(read_template).transpose()?;
    let mut data = match &cli.input {
        Some(path) => {
            let fields = Fields { group: cli.group.as_deref(), source: cli.source.as_deref() };
            Data::read(path, &cli.aspect, fields, template.as_ref())?
        }
        None => Data::generated([2_000, 1_000, 1_000], cli.seed.seed),
    };
    for rows in data.rows.values_mut() {
        rows.truncate(cli.model.limit.unwrap_or(usize::MAX));
        for row in rows {
            row.prompt = cli.model.dress(row.prompt.clone());
        }
    }
    let model = cli.model.load()?;
    let layers = cli.layers.of_model(model.info().n_layers)?;
    let poolings: BTreeSet<Pooling> = cli.pooling.iter().flat_map(|view| view.poolings()).copied().collect();
    if cli.attention_entropy && layers.iter().all(|layer| layer.0 == 0) {
        return Err(usage("--attention-entropy needs a layer above 0: the embeddings attend to nothing"));
    }
    fs::create_dir_all(&cli.output).with_context(|| format!("cannot make {}", cli.output.display()))?;
    let folder = cli.states.clone().unwrap_or_else(|| cli.output.join("states"));

    let mut reports = BTreeMap::new();
    for (aspect, rows) in &data.rows {
        let classes = classes(cli, aspect, rows)?;
        let grades: BTreeSet<i64> = rows.iter().map(|row| label(false, row.score)).collect();
        let grades: Vec<i64> = grades.into_iter().collect();
        let tokens = labels(&model, &grades, &layers, cli.model.quiet);
        let reading = Reading {
            layers: layers.clone(),
            poolings: poolings.iter().copied().collect(),
            attention_entropy: cli.attention_entropy,
            labels: tokens.as_deref(),
        };
        let settings = settings(cli, &model, rows)?;
        let states = States::read(&model, &folder, aspect, rows, &reading, &settings, cli.model.quiet)?;
        let report =
            train(cli, model.info(), aspect, rows, (&classes, &grades), &states, &layers, data.templates.get(aspect))?;
        if let Some(template) = data.templates.get(aspect) {
            write_atomic(cli.output.join(format!("{aspect}.template.json")), &serde_json::to_vec_pretty(template)?)?;
        }
        print(aspect, &report)?;
        reports.insert(aspect.clone(), report);
    }
    let path = cli.output.join("report.json");
    let report = json!({"model": model.info(), "binary": cli.binary, "aspects": reports});
    write_atomic(&path, &serde_json::to_vec_pretty(&report)?)?;
    say(format_args!("-> {}", path.display()))
}

/// The label of a grade.
pub fn label(binary: bool, score: f64) -> i64 {
    if binary { i64::from(score >= 4.0) } else { (score + 0.5).floor() as i64 }
}

fn classes(cli: &Cli, aspect: &str, rows: &[Row]) -> Result<Vec<i64>> {
    let classes: BTreeSet<i64> = rows.iter().map(|row| label(cli.binary, row.score)).collect();
    ensure!(classes.len() > 1, "{aspect}: all rows have the label {classes:?}, so there is nothing to learn");
    ensure!(
        classes.len() <= 20,
        "{aspect}: {} different labels; grades are whole numbers on a short scale",
        classes.len()
    );
    Ok(classes.into_iter().collect())
}

/// The grades as tokens, for the model's own score: only if it is run to its end anyway, and has such tokens.
fn labels(model: &Model, grades: &[i64], layers: &[Layer], quiet: bool) -> Option<Vec<TokenId>> {
    if layers.last() != Some(&Layer(model.info().n_layers)) {
        return None;
    }
    let tokens: Result<Vec<TokenId>, _> = grades.iter().map(|grade| model.token(&grade.to_string())).collect();
    match tokens {
        Ok(tokens) => Some(tokens),
        Err(error) => {
            if !quiet {
                eprintln!("note: no prompted score to compare with: {error}");
            }
            None
        }
    }
}

/// What states depend on.
fn settings(cli: &Cli, model: &Model, rows: &[Row]) -> Result<BTreeMap<String, String>> {
    let info = model.info();
    let mut hash = judge_probe::DataHash::new();
    for row in rows {
        hash.add(&serde_json::to_vec(&row.prompt)?);
    }
    let settings = [
        ("program", concat!("inspector_train ", env!("CARGO_PKG_VERSION")).to_owned()),
        ("prompts_blake3", hash.finish()),
        ("model", info.name.clone()),
        ("model_fingerprint", info.fingerprint.clone()),
        ("dtype", info.dtype.clone()),
        ("device", info.device.clone()),
        ("date", cli.model.date.to_string()),
    ];
    Ok(settings.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

fn print(aspect: &str, report: &Report) -> Result<()> {
    let chosen: Vec<String> = report.chosen.iter().map(|(layer, view)| format!("layer {layer} {view}")).collect();
    say(format_args!(
        "\n{aspect}: {} rows, {} unscored; learnt from {}; {} (macro F1 of {} folds {:.3} +- {:.3})",
        report.n,
        report.unscored,
        report.n_train,
        chosen.join(" + "),
        report.folds,
        report.cv_mean,
        report.cv_deviation
    ))?;
    for (split, evaluation) in &report.splits {
        let title = format!("{split}, {} rows", evaluation.n);
        let mut rows = vec![[&title, "weighted F1", "macro F1", "accuracy", "Spearman"].map(str::to_owned).to_vec()];
        for (name, agreement) in &evaluation.predictors {
            let cells = [&agreement.weighted_f1, &agreement.macro_f1, &agreement.accuracy, &agreement.spearman];
            rows.push([name.clone()].into_iter().chain(cells.map(|cell| cell.cell())).collect());
        }
        say(table(&rows).trim_end())?;
        for (name, gain) in &evaluation.gain_over {
            say(format_args!(
                "probe less {name}: weighted F1 {}, Spearman {}",
                gain["weighted_f1"].cell(),
                gain["spearman"].cell()
            ))?;
        }
    }
    for (split, found) in &report.artefacts {
        say(artefacts::text(split, found).trim_end())?;
    }
    let shifts = artefacts::shifts_text(&report.shifts);
    if !shifts.is_empty() {
        say(shifts.trim_end())?;
    }
    Ok(())
}
