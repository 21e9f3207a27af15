//! Choosing layers, fitting a probe, and comparing it with what does not read the model's states.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use judge_core::{Layer, ModelInfo, PromptTemplate, Signal};
use judge_data::write_atomic;
use judge_probe::artefacts::{ArtefactReport, Shift};
use judge_probe::{
    ClassWeight, Classifier, DataHash, FeatureFamily, FittedPipeline, FittedProbe, FittedStandardScaler,
    LayerSelection, LayerView, LinearClassifier, LinearSvc, LogisticRegression, Matrix, Pipeline, ProbeOrigin,
    ProbedModel, SavedProbe, Scoring, Split, StandardScaler, StratifiedGroupKFold, StratifiedKFold, TestSize,
    TrainTestSplit, Validation,
};
use serde::Serialize;
use serde_json::Value;

use crate::baselines::{Baselines, prompted};
use crate::evaluation::{Agreement, Predictions, Truth};
use crate::rows::Row;
use crate::states::{States, has};
use crate::{Cli, Learner, View, artefacts, figure, label};

/// Rows to test on, by the name of their split.
type Tests = BTreeMap<String, Vec<usize>>;

/// What became of one aspect.
#[derive(Serialize)]
pub struct Report {
    pub n: usize,
    pub unscored: usize,
    pub n_train: usize,
    pub folds: usize,
    /// Layer and pooling, in the order of the probe's features.
    pub chosen: Vec<(usize, String)>,
    pub cv_mean: f64,
    pub cv_deviation: f64,
    pub splits: BTreeMap<String, Evaluation>,
    /// What may explain the labels of each split without meaning; rows are numbered as in the input.
    pub artefacts: BTreeMap<String, ArtefactReport>,
    /// Whether responses speak of the question before their own, or after it.
    pub shifts: Vec<Shift>,
    /// Every view with its scores, the ranking and the steps of the selection.
    pub selection: Value,
}

/// The rows of one split that nothing was learnt from.
#[derive(Serialize)]
pub struct Evaluation {
    pub n: usize,
    pub predictors: BTreeMap<String, Agreement>,
    pub gain_over: BTreeMap<String, BTreeMap<&'static str, judge_examples::report::Statistic>>,
}

#[expect(clippy::too_many_arguments, reason = "all that one aspect's training needs")]
pub fn train(
    cli: &Cli,
    model: &ModelInfo,
    aspect: &str,
    rows: &[Row],
    (classes, grades): (&[i64], &[i64]),
    states: &States,
    layers: &[Layer],
    template: Option<&PromptTemplate>,
) -> Result<Report> {
    let base = LogisticRegression { class_weight: ClassWeight::Balanced, ..LogisticRegression::default() };
    let svc = LinearSvc { class_weight: ClassWeight::Balanced, ..LinearSvc::default() };
    let task = Task { cli, model, aspect, rows, classes, grades, states, layers, template };
    match cli.classifier {
        Learner::Logistic => task.train(cli.c.iter().map(|&c| (c, LogisticRegression { c, ..base })).collect()),
        Learner::Svm => task.train(cli.c.iter().map(|&c| (c, LinearSvc { c, ..svc })).collect()),
    }
    .with_context(|| aspect.to_owned())
}

struct Task<'a> {
    cli: &'a Cli,
    model: &'a ModelInfo,
    aspect: &'a str,
    rows: &'a [Row],
    classes: &'a [i64],
    grades: &'a [i64],
    states: &'a States,
    layers: &'a [Layer],
    template: Option<&'a PromptTemplate>,
}

impl Task<'_> {
    fn train<C>(&self, candidates: Vec<(f64, C)>) -> Result<Report>
    where
        C: Classifier + Copy + Send + PartialEq,
        C::Fitted: Into<LinearClassifier> + Clone,
    {
        let scored: Vec<usize> = (0..self.rows.len()).filter(|&row| self.states.is_scored(row)).collect();
        let (train, tests) = self.parts(&scored)?;
        let labels = self.labels(&train);
        let folds = self.folds(&train, &labels)?;

        let pipeline = |classifier| Pipeline { transformer: StandardScaler::default(), classifier };
        let view = |layer: Layer, view: View| LayerView {
            layer,
            reading: view.name().to_owned(),
            family: FeatureFamily::State,
        };
        let selection = LayerSelection {
            views: self
                .cli
                .pooling
                .iter()
                .flat_map(|&of| self.layers.iter().map(move |&layer| view(layer, of)))
                .collect(),
            classifiers: candidates.iter().map(|&(_, classifier)| pipeline(classifier)).collect(),
            scoring: Scoring::MacroF1,
            top_k: self.cli.top_k,
        };
        let read = |rows: &[usize], layer: Layer, name: &String| -> Result<Matrix> {
            self.states.matrix(rows, layer, &self.signals(layer, name)?)
        };
        let source = |layer: Layer, view: &String| read(&train, layer, view);
        let selected = selection.select(source, &labels, &folds)?;
        let fitted = selected.fit(source, &labels)?;
        let probe: FittedProbe = to_probe(fitted.classifier)?;

        let best = selected.steps.iter().rev().find(|step| step.kept).and_then(|step| step.scores.as_ref());
        let best = best.context("nothing was chosen")?;
        let candidate = selection.classifiers.iter().position(|known| *known == selected.classifier);
        let c = candidate.and_then(|index| candidates.get(index)).map(|&(c, _)| c);
        self.save(&probe, &selected.chosen, best, c, &train)?;
        let chosen: Vec<usize> =
            selected.steps.iter().rev().find(|step| step.kept).map_or(Vec::new(), |step| step.views.clone());
        let title = format!("{}: macro F1 by layer", self.aspect);
        if let Some(svg) = figure::svg(&title, &selected.scan, &chosen)? {
            write_atomic(self.file("svg"), svg.as_bytes())?;
        }

        let baselines = Baselines::fit(self.rows, &train, &labels, &folds, &self.cli.c)?;
        let all_labels = self.labels(&(0..self.rows.len()).collect::<Vec<_>>());
        let (mut splits, mut found) = (BTreeMap::new(), BTreeMap::new());
        for (name, rows) in &tests {
            let features = selected.features(|layer, view| read(rows, layer, view))?;
            let ours = Predictions::of(&probe, &features)?;
            let mut others = baselines.predict(self.rows, rows)?;
            let prompted = prompted(self.states, rows, self.grades, self.cli.binary)?;
            others.extend(prompted.map(|predictions| ("prompted".to_owned(), predictions)));
            splits.insert(name.clone(), self.evaluate(rows, ours, others)?);
            let split = Split { train: train.clone(), test: rows.clone() };
            found.insert(name.clone(), artefacts::check(self.rows, &all_labels, split)?);
        }
        Ok(Report {
            n: self.rows.len(),
            unscored: self.rows.len() - scored.len(),
            n_train: train.len(),
            folds: folds.len(),
            chosen: selected.chosen.iter().map(|view| (view.layer.0, view.reading.clone())).collect(),
            cv_mean: best.best_mean,
            cv_deviation: best.best_deviation,
            splits,
            artefacts: found,
            shifts: artefacts::shifts(self.rows)?,
            selection: serde_json::json!({"scan": selected.scan, "ranking": selected.ranking, "steps": selected.steps}),
        })
    }

    /// What stands side by side in the features of a layer in a view.
    fn signals(&self, layer: Layer, view: &str) -> Result<Vec<Signal>> {
        let view = self.cli.pooling.iter().find(|known| known.name() == view).context("a view that was asked for")?;
        let states = view.poolings().iter().map(|&pooling| Signal::State(pooling));
        let signals = states.chain(self.cli.attention_entropy.then_some(Signal::AttentionEntropy));
        Ok(signals.filter(|&signal| has(layer, signal)).collect())
    }

    fn labels(&self, rows: &[usize]) -> Vec<i64> {
        rows.iter().map(|&row| label(self.cli.binary, self.rows[row].score)).collect()
    }

    fn groups<'r>(&'r self, rows: &[usize]) -> Vec<&'r str> {
        rows.iter().map(|&row| self.rows[row].group.as_str()).collect()
    }

    /// Whether several rows share a group, and that matters.
    fn is_grouped(&self, rows: &[usize]) -> bool {
        let groups = self.groups(rows);
        !self.cli.ungrouped && groups.iter().collect::<HashSet<_>>().len() < groups.len()
    }

    /// What is learnt from, and what is tested on, by name.
    fn parts(&self, scored: &[usize]) -> Result<(Vec<usize>, Tests)> {
        let mut by_name: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for &row in scored {
            by_name.entry(self.rows[row].split.clone().unwrap_or_default()).or_default().push(row);
        }
        if let Some(train) = by_name.remove("train") {
            ensure!(!by_name.contains_key(""), "some rows have a split and others have none");
            ensure!(!by_name.is_empty(), "every row is in the split `train`: there is nothing to test on");
            return Ok((train, by_name));
        }
        if by_name.len() != 1 || !by_name.contains_key("") {
            bail!("there is no split `train` among {:?}", by_name.keys());
        }
        let split = TrainTestSplit { test_size: TestSize::Fraction(self.cli.test_share), seed: self.cli.split_seed };
        let Split { train, test } = if self.is_grouped(scored) {
            split.grouped(&self.groups(scored))?
        } else {
            split.stratified(&self.labels(scored))?
        };
        let pick = |rows: Vec<usize>| rows.into_iter().map(|row| scored[row]).collect();
        Ok((pick(train), BTreeMap::from([("test".to_owned(), pick(test))])))
    }

    fn folds(&self, train: &[usize], labels: &[i64]) -> Result<Vec<Split>> {
        let n_splits = self.cli.folds;
        Ok(if self.is_grouped(train) {
            StratifiedGroupKFold { n_splits, shuffle: None }.split(labels, &self.groups(train))?
        } else {
            StratifiedKFold { n_splits, shuffle: None }.split(labels)?
        })
    }

    fn evaluate(&self, rows: &[usize], ours: Predictions, baselines: Vec<(String, Predictions)>) -> Result<Evaluation> {
        let truth = Truth {
            labels: self.labels(rows),
            scores: rows.iter().map(|&row| self.rows[row].score).collect(),
            groups: self.groups(rows),
            classes: self.classes,
        };
        let mut evaluation = Evaluation { n: rows.len(), predictors: BTreeMap::new(), gain_over: BTreeMap::new() };
        for (name, predictions) in baselines {
            evaluation.predictors.insert(name.clone(), truth.agreement(&predictions)?);
            evaluation.gain_over.insert(name, truth.gain(&ours, &predictions)?);
        }
        evaluation.predictors.insert("probe".to_owned(), truth.agreement(&ours)?);
        Ok(evaluation)
    }

    fn file(&self, extension: &str) -> std::path::PathBuf {
        Path::new(&self.cli.output).join(format!("{}.{extension}", self.aspect))
    }

    fn save(
        &self,
        probe: &FittedProbe,
        chosen: &[LayerView<String, FeatureFamily>],
        scores: &judge_probe::SearchScores,
        c: Option<f64>,
        train: &[usize],
    ) -> Result<()> {
        let mut signals = Vec::new();
        for view in chosen {
            let of = self.signals(view.layer, &view.reading)?;
            signals.extend(of.into_iter().map(|signal| (view.layer, signal)));
        }
        let mut hash = DataHash::new();
        for &row in train {
            hash.add(&serde_json::to_vec(&(&self.rows[row].prompt, self.rows[row].score))?);
        }
        let folds = scores.candidates[scores.best].by_split.iter().flatten().copied().collect();
        let mut notes = BTreeMap::from([
            ("aspect".to_owned(), self.aspect.to_owned()),
            ("classification".to_owned(), if self.cli.binary { "binary" } else { "multi" }.to_owned()),
            ("n_train".to_owned(), train.len().to_string()),
            ("program".to_owned(), concat!("inspector_train ", env!("CARGO_PKG_VERSION")).to_owned()),
            ("dtype".to_owned(), self.model.dtype.clone()),
        ]);
        notes.extend(self.template.map(|template| ("template_id".to_owned(), template.id().to_owned())));
        notes.extend(c.map(|c| ("c".to_owned(), c.to_string())));
        let origin = ProbeOrigin {
            model: ProbedModel {
                name: self.model.name.clone(),
                revision: self.model.revision.clone(),
                fingerprint: Some(self.model.fingerprint.clone()),
                d_model: self.model.d_model,
                n_heads: Some(self.model.n_heads),
            },
            signals,
            validation: Some(Validation { scoring: "f1_macro".to_owned(), mean: scores.best_mean, folds }),
            data_hash: Some(hash.finish()),
            notes,
        };
        let saved = SavedProbe::new(probe.clone(), origin)?;
        write_atomic(self.file("safetensors"), &saved.to_bytes()?)?;
        Ok(())
    }
}

fn to_probe<F: Into<LinearClassifier>>(fitted: FittedPipeline<FittedStandardScaler, F>) -> Result<FittedProbe> {
    Ok(FittedProbe::try_from(fitted)?)
}
