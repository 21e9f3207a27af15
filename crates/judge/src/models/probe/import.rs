//! A probe that scikit-learn fitted, from its pickle into a file of this project's format.
//!
//! `judge probe import --input logicality.pkl --output logicality.safetensors`

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use judge_core::{Backbone, Layer, request::Signal};
use judge_data::{Outputs, check_new, write_new};
use judge_models::{LoadOptions, Model};
use judge_probe::training::View;
use judge_probe::{
    DecisionRule, FittedClassifier, FittedEstimator, FittedTransformer, ImportedFrom, Precision, ProbeStage,
    ProbedModel, SklearnProbe,
};

use judge_cli::args::files::OverwriteArgs;
use judge_cli::args::model_args::{find_model, is_template, read_template};
use judge_cli::args::numbers::at_least;
use judge_cli::args::one_of;
use judge_cli::probes::{ProbeFile, check_aspect};
use judge_cli::terminal::console::{say, say_fields, usage};

/// Import a scikit-learn probe.
///
/// Reads the pickle of a LogisticRegression, LogisticRegressionCV, LinearSVC or linear SVC, alone or behind a StandardScaler and a PCA, in
/// a GridSearchCV or RandomizedSearchCV or not, as pickle.dump or joblib.dump wrote it, and prints what it found. Nothing in the pickle is
/// run, and anything but these classes is refused by name.
///
/// With --output the probe is saved. A pickle of INSPECTOR's program says which states its features are; for any other
/// give --model, --layer and --pooling.
#[derive(Args)]
pub(crate) struct Cli {
    /// The pickle
    #[arg(long, value_name = "FILE")]
    input: PathBuf,
    /// File for the probe [default: only print what the pickle holds]
    #[arg(long, value_name = "FILE.safetensors")]
    output: Option<PathBuf>,
    /// The model that the features are of, as a folder or hub id: the saved probe refuses any other.
    /// This is trusted, only widths are checked
    #[arg(long, value_name = "DIR|ORG/NAME")]
    model: Option<String>,
    /// Layers whose states stand side by side in the features, in this order, e.g. 6 or 6,12 (0: the embeddings, as in Hugging Face's
    /// `judge states`)
    #[arg(long, value_name = "LIST", value_parser = at_least::<usize>(0), value_delimiter = ',', requires = "pooling")]
    layer: Vec<usize>,
    /// Poolings of each of these layers, in this order: first, last, mean, min, max, or concat (min, max and mean)
    #[arg(long, value_name = "LIST", value_delimiter = ',', requires = "layer")]
    pooling: Vec<View>,
    /// The aspect that the probe judges
    #[arg(long, value_name = "NAME")]
    aspect: Option<String>,
    /// Template of the prompts that the features are of; a copy is put beside the probe, where `judge probe evaluate` looks for it
    #[arg(long, value_name = "FILE.json", requires = "output")]
    template: Option<PathBuf>,
    /// dtype of the features that the probe will receive; the reference program's are f16 on a GPU
    #[arg(long, value_parser = one_of(&[("f16", Precision::F16), ("f32", Precision::F32), ("f64", Precision::F64)]), default_value = "f32")]
    precision: Precision,
    #[command(flatten)]
    write: OverwriteArgs,
}

pub(crate) fn run(cli: &Cli) -> Result<()> {
    if let Some(view) = cli.pooling.iter().find(|view| view.is_of_reply()) {
        return Err(usage(format!("--pooling {view} is of what a judge writes, and an imported probe reads prompts")));
    }
    let template_beside = cli.template_beside();
    let inputs = [Some(&cli.input), cli.template.as_ref()].into_iter().flatten();
    let outputs = Outputs::new(inputs).made(&cli.output, is_probe).made(&template_beside, is_template);
    outputs.overwrite(cli.write.overwrite).check()?;
    let imported = match ProbeFile::read(&cli.input, cli.precision)? {
        ProbeFile::Sklearn(imported) => *imported,
        ProbeFile::Saved(_) => bail!("{} is a saved probe already, not a pickle", cli.input.display()),
    };
    say_fields(found(&imported))?;
    let Some(output) = &cli.output else { return Ok(()) };
    let path = cli.input.display();
    let named = imported.metadata.is_some();
    if named && !(cli.layer.is_empty() && cli.aspect.is_none()) {
        return Err(usage(format!(
            "{path} names its layers, pooling and aspect itself: leave out --layer, --pooling, --aspect"
        )));
    }
    if !named && (cli.model.is_none() || cli.layer.is_empty()) {
        bail!("{path} says neither its model nor its layers: give --model, --layer and --pooling to save it");
    }
    let aspect = imported.metadata.as_ref().map(|metadata| &metadata.dimension).or(cli.aspect.as_ref());
    aspect.map_or(Ok(()), |aspect| check_aspect(aspect)).with_context(|| format!("cannot save {path}"))?;
    let template = cli.template.as_deref().map(read_template).transpose()?;
    if let (Some(template), Some(path)) = (&template, &template_beside) {
        check_new(path, &serde_json::to_vec_pretty(template)?, cli.write.overwrite)?;
    }
    let model = cli.model.as_deref().map(load).transpose()?;
    let from = ImportedFrom {
        model: model.as_ref().map(|model| ProbedModel::from(model.info())),
        signals: signals(&cli.layer, &cli.pooling),
        aspect: cli.aspect.clone(),
        template_id: template.as_ref().map(|template| template.id().to_owned()),
    };
    let mut saved = imported.into_saved(from).with_context(|| format!("cannot save {path}"))?;
    if let Some(model) = &model {
        saved = saved.bound_to(model.info())?;
    }
    let overwrite = cli.write.overwrite;
    if let (Some(template), Some(path)) = (template, &template_beside) {
        write_new(path, &serde_json::to_vec_pretty(&template)?, overwrite)?;
    }
    write_new(output, &saved.to_bytes()?, overwrite)?;
    let tied = match &saved.origin().model.fingerprint {
        Some(fingerprint) => format!("for the model {fingerprint}"),
        None => "tied to no model yet: give --model to use it in a judge".to_owned(),
    };
    say(format_args!("-> {}, {tied}", output.display()))
}

/// Whether a file is a saved probe.
pub(crate) fn is_probe(path: &Path) -> bool {
    matches!(ProbeFile::read(path, Precision::F32), Ok(ProbeFile::Saved(_)))
}

impl Cli {
    /// Where the copy of the template goes, unless it is the template itself.
    fn template_beside(&self) -> Option<PathBuf> {
        let (output, template) = (self.output.as_ref()?, self.template.as_ref()?);
        let path = output.with_extension("template.json");
        let [copy, template] = [path.canonicalize(), template.canonicalize()].map(Result::ok);
        (copy.is_none() || copy != template).then_some(path)
    }
}

fn load(name: &str) -> Result<Model> {
    let folder = find_model(name, false)?;
    let options = LoadOptions { revision: folder.revision.clone(), ..LoadOptions::default() };
    Model::load(&folder.path, &options).with_context(|| format!("cannot load {name}"))
}

/// What stands side by side in the features: of each layer its poolings.
fn signals(layers: &[usize], views: &[View]) -> Vec<(Layer, Signal)> {
    let of_layer =
        |&layer: &usize| views.iter().flat_map(|view| view.signals()).map(move |signal| (Layer(layer), signal));
    layers.iter().flat_map(of_layer).collect()
}

/// A transformer in words.
fn stage(stage: &ProbeStage) -> String {
    match stage {
        ProbeStage::Scaler(_) => "StandardScaler".to_owned(),
        ProbeStage::Pca(pca) => format!("PCA to {} of {} features", pca.n_features_out(), pca.n_features_in()),
        ProbeStage::Blocks(_) => "each signal by itself".to_owned(), // a pickle has none
    }
}

fn found(imported: &SklearnProbe) -> Vec<(String, String)> {
    let classifier = imported.probe.classifier();
    let mut rows = Vec::new();
    let mut row = |name: &str, value: String| rows.push((name.to_owned(), value));
    let rule = match classifier.rule() {
        DecisionRule::Logistic => "logistic regression",
        DecisionRule::OneVsOne => "support vector machine, one against one",
        DecisionRule::Cumulative => "ordinal regression",
        DecisionRule::Nearest => "ridge regression, nearest class",
        DecisionRule::OneVsRest => "support vector machine, one against the rest",
    };
    row("classifier", rule.to_owned());
    let stages: Vec<String> = imported.probe.stages().iter().map(stage).collect();
    row("before it", if stages.is_empty() { "nothing".to_owned() } else { stages.join(", then ") });
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
    if !imported.unread.is_empty() {
        row("beside the model, not applied", format!("{:?}", imported.unread));
    }
    rows
}
