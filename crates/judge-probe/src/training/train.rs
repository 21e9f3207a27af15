//! The training itself, in the order in which it must happen: split, choose, fit, calibrate, compare with what does not read the model, and
//! save. Each step is another file's work; here is which rows it may see.
//!
//! | step | rows |
//! |---|---|
//! | choosing layers, poolings and C | trained on, in folds |
//! | the probe | all of those |
//! | its calibrator | the same, each by a fit of the other folds |
//! | baselines | the same, their C in the same folds |
//! | everything the report says of them | the others |

use std::collections::BTreeMap;

use judge_core::{Layer, request::Signal};
use judge_metrics::resampling::PermutationTest;

use super::baselines::Baselines;
use super::calibration::{Fitted, HeldOutCalibration, ProbeCalibration};
use super::parts::{Parts, classes, grades, groups};
use super::predictions::{prompted, tuned};
use super::{
    Agreement, ChosenView, Evaluation, GradedRow, HeldOut, ProbeClassifier, ProbeTraining, RowSignals, Selection,
    TrainingError, TrainingReport, View,
};
use crate::artefacts::{ArtefactCheck, ArtefactReport, LabelledTexts, Shift};
use crate::{
    BrierRegression, ClassWeight, Classifier, DataHash, Error, FeatureFamily, FittedEstimator, FittedProbe, IntoProbe,
    LayerSelection, LayerView, LinearClassifier, LinearKernelSvc, LogisticRegression, Pipeline, Predictions,
    ProbeOrigin, ProbedModel, SavedProbe, Scoring, Split, StandardScaler, TfidfVectorizer, Validation,
    out_of_fold_scores,
};

/// Permutations of the test for slipped responses.
/// With so many drawn the smallest p-value is 1/1,000: enough to tell a slip, and quick for thousands of rows.
const PERMUTATIONS: usize = 999;

/// Where the features come from: what a [`SavedProbe`] says of itself besides what training finds out.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainingOrigin {
    /// The model whose signals they are.
    pub model: ProbedModel,
    /// The aspect that the grades judge.
    /// For example `fluency`. It is written down as given; one probe judges one aspect.
    pub aspect: String,
    /// The id of the prompt template, where there was one.
    /// It says by which template the prompts were made, so that a judge can ask in the same words.
    pub template_id: Option<String>,
    /// Anything else that a reader should know: the program and its version, the dtype. An entry named as one of training's own (`aspect`,
    /// `classification`, `n_train`, `c`, `template_id`) is replaced by it.
    pub notes: BTreeMap<String, String>,
}

/// A probe and how good it is.
/// The two are kept apart so that the file of a probe holds no more than what judging needs.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainedProbe {
    /// The probe, fitted to the rows trained on, with its calibrator where [one could be fitted](TrainingReport::calibration).
    pub probe: SavedProbe,
    /// How it was chosen, and how it fares on the other rows.
    pub report: TrainingReport,
}

impl ProbeTraining {
    /// Trains a probe of one aspect.
    ///
    /// Rows are parted as they say, or else by [`test_share`](Self::test_share), and a row that alone has its class is trained on. Layers,
    /// poolings and C are chosen by macro F1, or what else the classifier [is scored by](ProbeClassifier::scoring), under cross-validation
    /// on the rows trained on ([`LayerSelection`]), the probe is fitted to all of these, and it is compared with baselines on the others.
    /// The same rows, signals and settings give the same bytes, whatever the number of threads.
    ///
    /// The time goes into the choice: views × layers × values of C × folds fits on one view each, then at most
    /// [`top_k`](Self::top_k) - 1 sets of views side by side. `signals` is asked for a view of the rows trained on once in the
    /// scan, and again when the view is a candidate, is fitted and is tested; views of several layers may be in memory at once,
    /// one for each thread.
    ///
    /// # Errors
    ///
    /// [`Error::EmptySetting`]; [`Error::Training`] for rows that nothing can be learnt from; what `signals` returns; those of
    /// [`LayerSelection::select`], of the splits and of the classifiers; [`Error::SavedProbe`] where the signals are not as wide as
    /// `origin` has it.
    pub fn train<S: RowSignals>(
        &self,
        rows: &[GradedRow],
        signals: &S,
        origin: &TrainingOrigin,
    ) -> Result<TrainedProbe, S::Error> {
        let class_weight = ClassWeight::Balanced;
        let logistic = |c| LogisticRegression { c, class_weight, ..LogisticRegression::default() };
        let brier = |c| BrierRegression { c, ..BrierRegression::default() };
        let svc = |c| LinearKernelSvc { c, class_weight, ..LinearKernelSvc::default() };
        match self.classifier {
            ProbeClassifier::Logistic => self.train_with(logistic, rows, signals, origin),
            ProbeClassifier::Brier => self.train_with(brier, rows, signals, origin),
            ProbeClassifier::LinearKernelSvc => self.train_with(svc, rows, signals, origin),
        }
    }

    /// Whether these rows can be trained on, as far as it can be told without signals: for a look at the input before a model is run.
    ///
    /// Grades, classes, the split and the folds are checked as if every row could be read. Settings of the choice, such as
    /// [`layers`](Self::layers), are not: they are refused by [`train`](Self::train).
    ///
    /// # Errors
    ///
    /// [`Error::Training`], and those of the split and the folds of the rows.
    pub fn check(&self, rows: &[GradedRow]) -> Result<(), Error> {
        self.scale.check(rows)?;
        self.grading.classes(rows)?;
        let parts = Parts::new(self, rows, &(0..rows.len()).collect::<Vec<_>>())?;
        parts.folds(self, rows, &classes(self, rows, &parts.train))?;
        Ok(())
    }

    /// The training of the classifiers that `classifier` makes, one of each C.
    ///
    /// The order of the steps is the order of what may be looked at: the test rows' features are asked for last, when everything that is
    /// learnt has been.
    ///
    /// It is generic so that logistic regression and the support vector machine take the same path. Candidates are in the
    /// order of [`c`](Self::c), and of equal ones the first is chosen.
    fn train_with<C, S>(
        &self,
        classifier: impl Fn(f64) -> C,
        rows: &[GradedRow],
        signals: &S,
        origin: &TrainingOrigin,
    ) -> Result<TrainedProbe, S::Error>
    where
        C: Classifier + Copy + Send,
        C::Fitted: Into<LinearClassifier>,
        S: RowSignals,
    {
        let choices = [("layers", self.layers.len()), ("views", self.views.len()), ("c", self.c.len())];
        if let Some((setting, _)) = choices.into_iter().find(|(_, choices)| *choices == 0) {
            return Err(Error::EmptySetting { setting }.into());
        }
        self.scale.check(rows).map_err(Error::from)?;
        let labels = self.grading.classes(rows).map_err(Error::from)?;
        // From here on rows are positions in `rows`, among those that the model could read.
        let read: Vec<usize> = (0..rows.len()).filter(|&row| signals.is_read(row)).collect();
        let parts = Parts::new(self, rows, &read)?;
        // Parallel to `parts.train`, as the folds are: both count positions among the rows trained on.
        let train_classes = classes(self, rows, &parts.train);
        let folds = parts.folds(self, rows, &train_classes)?;

        // One candidate for each view of each layer: a layer's poolings compete, since of each layer the best view alone stays.
        let selection = self.selection(classifier);
        // Only positions of rows that were read reach `signals`, and those tested on not before the loop over `parts.tests`.
        let matrix = |of: &[usize], layer: Layer, view: View| signals.matrix(of, layer, &self.signals(layer, view));
        let source = |layer: Layer, view: &View| matrix(&parts.train, layer, *view);
        let selected = selection.select(source, &train_classes, &folds)?;
        let fitted = selected.fit(source, &train_classes)?;
        let probe: FittedProbe = fitted.into_probe()?;
        // Candidates of every search are in one order, so the best position names C.
        let c = self.c.get(selected.scores.best).copied();
        let rule = probe.classifier().rule();
        let calibrator: Option<Fitted> = match self.calibration {
            None => None,
            Some(_) if !rule.has_number() => Some(Err(Error::NoNumber { rule }.to_string())),
            Some(settings) => {
                // States stay as they are, so that the chosen estimator on all features side by side is all of the procedure.
                let features = selected.features(source)?;
                let numbers = out_of_fold_scores(&selected.estimator, &features, &train_classes, &folds)?;
                Some(self.calibrator(
                    settings,
                    &numbers,
                    &grades(rows, &parts.train),
                    &parts.kept_together(self, rows),
                )?)
            }
        };

        // Everything is learnt here or before; below this line rows that are tested on are read.
        let baselines = Baselines::fit(rows, &parts.train, &train_classes, &folds, &self.c)?;
        let all_classes = classes(self, rows, &(0..rows.len()).collect::<Vec<_>>());
        // By the name of the split, in sorted order, so that the report's JSON does not depend on the order of rows.
        let (mut splits, mut artefacts, mut calibrated) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        for (name, tested) in &parts.tests {
            let features = selected.features(|layer, view| matrix(tested, layer, *view))?;
            let ours = probe.predictions(&features)?;
            if let Some(Ok((calibrator, _))) = &calibrator
                && let Some(numbers) = probe.scores(&features)?
            {
                let held_out = HeldOutCalibration::new(calibrator, &numbers, &grades(rows, tested))?;
                calibrated.insert(name.clone(), held_out);
            }
            // The probe is compared with each of these on the same rows and the same resamples.
            let mut others = baselines.predict(rows, tested)?;
            let by_model = prompted(signals, tested, rows, self.grading)?;
            others.extend(by_model.map(|predictions| ("prompted".to_owned(), predictions)));
            let by_tuned = tuned(signals, (&parts.train, tested), rows, self.grading)?;
            others.extend(by_tuned.map(|predictions| ("tuned".to_owned(), predictions)));
            splits.insert(name.clone(), self.evaluate(rows, tested, &labels, &ours, others)?);
            // One split for each name, so that a duplicate in one part of the data does not speak against another.
            let split = Split { train: parts.train.clone(), test: tested.clone() };
            artefacts.insert(name.clone(), self.artefacts(rows, &all_classes, split)?);
        }
        let (calibrator, calibration) = match calibrator {
            None => (None, None),
            Some(Err(undefined)) => (None, Some(ProbeCalibration::Undefined { undefined })),
            Some(Ok((calibrator, out_of_fold))) => (
                Some(calibrator),
                Some(ProbeCalibration::Kept { out_of_fold: Box::new(out_of_fold), held_out: calibrated }),
            ),
        };
        let report = TrainingReport {
            n: rows.len(),
            // Of all rows, as `n` is; `rounded` counts unread ones too.
            unscored: rows.len() - read.len(),
            rounded: rows.iter().filter(|row| self.grading.rounds(row.grade)).count(),
            n_train: parts.train.len(),
            untested: parts.untested(self, rows),
            folds: folds.len(),
            scoring: self.classifier.scoring(),
            chosen: selected
                .chosen
                .iter()
                .map(|view| ChosenView { layer: view.layer, pooling: view.reading })
                .collect(),
            cv_mean: selected.scores.best_mean,
            cv_deviation: selected.scores.best_deviation,
            splits,
            calibration,
            artefacts,
            shifts: shifts(rows)?,
            selection: Selection {
                scan: selected.scan.clone(),
                ranking: selected.ranking.clone(),
                steps: selected.steps.clone(),
            },
        };
        // After the report, from which the provenance takes the scores of the held-out rows.
        let origin = self.origin(rows, &parts.train, &selected.chosen, &report.splits, c, origin)?;
        // Here the widths of the signals are held against the model's; a mismatch would make a file that no judge can use.
        let probe = SavedProbe::new(probe, origin)?;
        let probe = match calibrator {
            Some(calibrator) => probe.with_calibrator(calibrator)?,
            None => probe,
        };
        Ok(TrainedProbe { probe, report })
    }

    /// The views to choose from: poolings in the order given, and of each pooling all layers, so that ties go to the earlier pooling. The
    /// scaler is part of what is chosen, and so is fitted within each fold.
    ///
    /// A state is taken as it is ([`FeatureFamily::State`]): probes read the whole width, `d_model` for one pooling and three
    /// times as much for [`View::Concat`]. The estimators' order is that of [`c`](Self::c), which is relied on to find C again.
    fn selection<C>(
        &self,
        classifier: impl Fn(f64) -> C,
    ) -> LayerSelection<View, FeatureFamily, Pipeline<StandardScaler, C>> {
        // Every view is a state; entropies of heads are part of it where the settings ask for them, see `signals`.
        let view = |layer: Layer, reading: View| LayerView { layer, reading, family: FeatureFamily::State };
        let pipeline = |estimator| Pipeline { transformer: StandardScaler::default(), estimator };
        LayerSelection {
            views: self.views.iter().flat_map(|&of| self.layers.iter().map(move |&layer| view(layer, of))).collect(),
            estimators: self.c.iter().map(|&c| pipeline(classifier(c))).collect(),
            scoring: self.classifier.scoring(),
            top_k: self.top_k,
        }
    }

    /// The probe and its baselines on the rows of one split.
    ///
    /// `tested` are positions among all `rows`, `ours` and each of `baselines` have one prediction for each of them in that
    /// order, and `labels` are all classes of the training. Agreement and gains are computed anew for each baseline, at
    /// [`bootstrap`](Self::bootstrap)'s number of resamples each.
    ///
    /// # Errors
    ///
    /// Those of [`HeldOut::agreement`] and [`HeldOut::gain`].
    fn evaluate(
        &self,
        rows: &[GradedRow],
        tested: &[usize],
        labels: &[i64],
        ours: &Predictions<i64>,
        baselines: Vec<(String, Predictions<i64>)>,
    ) -> Result<Evaluation, Error> {
        let truth = HeldOut {
            classes: classes(self, rows, tested),
            grades: grades(rows, tested),
            groups: groups(rows, tested),
            labels,
            bootstrap: self.bootstrap,
        };
        let mut evaluation = Evaluation { n: tested.len(), predictors: BTreeMap::new(), gain_over: BTreeMap::new() };
        for (name, predictions) in baselines {
            evaluation.predictors.insert(name.clone(), truth.agreement(&predictions)?);
            evaluation.gain_over.insert(name, truth.gain(ours, &predictions)?);
        }
        evaluation.predictors.insert("probe".to_owned(), truth.agreement(ours)?);
        Ok(evaluation)
    }

    /// What may explain the classes besides what the grades are to mean.
    ///
    /// `classes` has the class of every row, in the order of `rows`, and the split positions among these. The classifier has C
    /// 1 and the score is weighted F1 whatever the probe's settings are, so that reports of several trainings on the same rows
    /// agree. Sources count only where every row has one.
    fn artefacts(&self, rows: &[GradedRow], classes: &[i64], split: Split) -> Result<ArtefactReport, Error> {
        // One row without a source, and there is none for any.
        let sources: Option<Vec<String>> = rows.iter().map(|row| row.source.clone()).collect();
        let check = ArtefactCheck {
            classifier: LogisticRegression { class_weight: ClassWeight::Balanced, ..LogisticRegression::default() },
            vectorizer: TfidfVectorizer::default(),
            scoring: Scoring::WeightedF1,
            bootstrap: self.bootstrap,
        };
        let texts = LabelledTexts {
            labels: classes,
            questions: &texts(rows, |row| &row.question),
            responses: &texts(rows, |row| &row.response),
            sources: sources.as_deref(),
        };
        check.report(&texts, &[split])
    }

    /// What the saved probe says of itself.
    ///
    /// The hash is over prompt and grade of the rows trained on, each as JSON, in the order of training: another order is
    /// another hash, and so is another grade of the same class. Ids, groups and questions are not part of it.
    ///
    /// `splits` gives the validation: the training's score of the probe on each split, as if it were a fold. A split where it is undefined
    /// is left out; without any there is no validation. Notes of training replace those of the caller.
    ///
    /// # Errors
    ///
    /// [`TrainingError::Prompt`] for a prompt without a JSON form.
    fn origin(
        &self,
        rows: &[GradedRow],
        train: &[usize],
        chosen: &[LayerView<View, FeatureFamily>],
        splits: &BTreeMap<String, Evaluation>,
        c: Option<f64>,
        origin: &TrainingOrigin,
    ) -> Result<ProbeOrigin, Error> {
        let of_view = |view: &LayerView<View, FeatureFamily>| -> Vec<(Layer, Signal)> {
            self.signals(view.layer, view.reading).into_iter().map(|signal| (view.layer, signal)).collect()
        };
        let mut hash = DataHash::new();
        for &row in train {
            let GradedRow { id, prompt, grade, .. } = &rows[row];
            let json = serde_json::to_vec(&(prompt, grade));
            hash.add(&json.map_err(|error| TrainingError::Prompt { id: id.clone(), reason: error.to_string() })?);
        }
        // The search's own score is that of the best of many; these rows had no part in the choice.
        let (scoring, of_probe): (_, fn(&Agreement) -> Option<f64>) = match self.classifier.scoring() {
            Scoring::NegBrierScore => {
                ("neg_brier_score", |probe| Some(-probe.of_probability.as_ref()?.brier_score.estimate()?))
            }
            _ => ("f1_macro", |probe| probe.macro_f1.estimate()),
        };
        let of_split = |evaluation: &Evaluation| of_probe(evaluation.predictors.get("probe")?);
        let held_out: Vec<f64> = splits.values().filter_map(of_split).collect();
        let mut notes = origin.notes.clone();
        notes.insert("aspect".to_owned(), origin.aspect.clone());
        notes.insert("classification".to_owned(), self.grading.classification().to_owned());
        notes.insert("n_train".to_owned(), train.len().to_string());
        notes.extend(origin.template_id.clone().map(|id| ("template_id".to_owned(), id)));
        notes.extend(c.map(|c| ("c".to_owned(), c.to_string())));
        Ok(ProbeOrigin {
            model: origin.model.clone(),
            signals: chosen.iter().flat_map(of_view).collect(),
            validation: (!held_out.is_empty()).then(|| Validation {
                scoring: scoring.to_owned(),
                mean: held_out.iter().sum::<f64>() / held_out.len() as f64,
                folds: held_out.clone(),
            }),
            data_hash: Some(hash.finish()),
            notes,
        })
    }
}

/// Both tests for slipped responses, over rows as they were given: their order is what a slip shows in.
///
/// Rows that the model could not read are among them, since leaving one out would move the others. No test for a single row.
fn shifts(rows: &[GradedRow]) -> Result<Vec<Shift>, Error> {
    let test = PermutationTest { permutations: PERMUTATIONS, ..PermutationTest::default() };
    Shift::both(&texts(rows, |row| &row.question), &texts(rows, |row| &row.response), test)
}

/// One text of every row.
/// Copies, as [`LabelledTexts`] wants lists of strings; short beside the states.
fn texts(rows: &[GradedRow], of: fn(&GradedRow) -> &String) -> Vec<String> {
    rows.iter().map(|row| of(row).clone()).collect()
}
