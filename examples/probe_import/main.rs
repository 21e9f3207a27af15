//! A probe that scikit-learn fitted, from its pickle into a file of this project's format.
//!
//! `cargo run --release --example probe_import -- --input logicality.pkl --output logicality.safetensors`

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{Parser, ValueEnum};
use judge_core::Backbone;
use judge_data::write_atomic;
use judge_examples::console::{say, start, table};
use judge_examples::probes::ProbeFile;
use judge_models::{HubOptions, LoadOptions, Model, ModelSource};
use judge_probe::{DecisionRule, FittedClassifier, Precision, SavedProbe, SklearnProbe};

/// Import a scikit-learn probe.
///
/// Reads the pickle of a LogisticRegression, LinearSVC or linear SVC, alone or behind a StandardScaler, in a GridSearchCV or not, and prints what
/// it found. Nothing in the pickle is run, and anything but these classes is refused by name. With --output the probe is
/// saved; that needs INSPECTOR's metadata, which say which states of which model the features are.
#[derive(Parser)]
#[command(name = "probe_import")]
struct Cli {
    /// The pickle
    #[arg(long, value_name = "FILE")]
    input: PathBuf,
    /// Where the probe goes
    #[arg(long, value_name = "FILE.safetensors")]
    output: Option<PathBuf>,
    /// Precision of the features that it will be given; the reference program's are f16 on a GPU
    #[arg(long, value_enum, default_value_t = PrecisionArg::F32)]
    precision: PrecisionArg,
    /// The model that the features are of, as a folder or hub id: the saved probe then refuses any other
    #[arg(long, value_name = "DIR|ORG/NAME")]
    model: Option<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum PrecisionArg {
    F16,
    F32,
    F64,
}

impl From<PrecisionArg> for Precision {
    fn from(precision: PrecisionArg) -> Self {
        match precision {
            PrecisionArg::F16 => Self::F16,
            PrecisionArg::F32 => Self::F32,
            PrecisionArg::F64 => Self::F64,
        }
    }
}

fn main() -> ExitCode {
    start(run)
}

fn run(cli: &Cli) -> Result<()> {
    let imported = match ProbeFile::read(&cli.input, cli.precision.into())? {
        ProbeFile::Sklearn(imported) => *imported,
        ProbeFile::Saved(_) => bail!("{} is a probe of this project's format already", cli.input.display()),
    };
    say(table(&found(&imported)).trim_end())?;
    let Some(output) = &cli.output else { return Ok(()) };
    if imported.metadata.is_none() {
        bail!(
            "{} says neither its model nor its layers, so it cannot be saved for use on a model",
            cli.input.display()
        );
    }
    let mut saved = SavedProbe::try_from(imported)?;
    if let Some(name) = &cli.model {
        let folder = name.parse::<ModelSource>()?.resolve(&HubOptions::from_env())?;
        let options = LoadOptions { revision: folder.revision.clone(), ..LoadOptions::default() };
        let model = Model::load(&folder.path, &options).with_context(|| format!("cannot load {name}"))?;
        saved = saved.bound_to(model.info())?;
    }
    write_atomic(output, &saved.to_bytes()?)?;
    let tied = match &saved.origin().model.fingerprint {
        Some(fingerprint) => format!("for the model {fingerprint}"),
        None => "tied to no model yet: give --model to use it in a judge".to_owned(),
    };
    say(format_args!("-> {}, {tied}", output.display()))
}

fn found(imported: &SklearnProbe) -> Vec<Vec<String>> {
    let classifier = imported.probe.classifier();
    let mut rows = Vec::new();
    let mut row = |name: &str, value: String| rows.push(vec![name.to_owned(), value]);
    let rule = match classifier.rule() {
        DecisionRule::Logistic => "logistic regression",
        DecisionRule::OneVsOne => "support vector machine, one against one",
        DecisionRule::Cumulative => "ordinal regression",
        DecisionRule::OneVsRest => "support vector machine, one against the rest",
    };
    row("classifier", rule.to_owned());
    row("scaler", if imported.probe.scaler().is_some() { "StandardScaler" } else { "none" }.to_owned());
    row("classes", format!("{:?}", imported.probe.classes()));
    row("features", imported.probe.n_features().to_string());
    if let Some(version) = &imported.sklearn_version {
        row("fitted by scikit-learn", version.clone());
    }
    if let Some(search) = &imported.search {
        row(&format!("{} of {} folds", search.scoring, search.fold_scores.len()), format!("{:.4}", search.best_score));
        let settings: Vec<String> =
            search.best_params.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        row("settings chosen", settings.join(", "));
    }
    if let Some(metadata) = &imported.metadata {
        row("model", metadata.llm.clone());
        row("aspect", metadata.dimension.clone());
        row("classification", metadata.classification.clone());
        let states: Vec<String> =
            metadata.pooled.iter().map(|(layer, pooling)| format!("{layer}, {pooling:?}").to_lowercase()).collect();
        row("states (layer 0 is the embedding)", states.join("; "));
    }
    rows
}
