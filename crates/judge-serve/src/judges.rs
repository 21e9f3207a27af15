//! The file of judges with names of their own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use clap::Parser;
use judge_cli::args::lager::LagerArgs;
use judge_cli::args::model_args::ModelArgs;
use judge_cli::checklists::read_checklist;
use judge_cli::human_scores::{Graded, graded};
use judge_cli::probes::PromptedProbe;
use judge_core::combine::Calibrated;
use judge_core::decision::{ChecklistJudge, DecisionJudge};
use judge_core::lager::LagerJudge;
use judge_core::settings::settings_from_json;
use judge_core::verdict::Calibration;
use judge_core::{Backbone, Judge};
use judge_data::{DatasetFormat, RunRecord, load, record_path};
use judge_metrics::calibration::Calibrator;
use judge_models::Model;
use serde::Deserialize;
use serde_json::json;

use super::registry::{Answers, Named};
use super::state::State;

/// Judges by name, and the folder that their paths are relative to.
#[derive(Default)]
pub(super) struct Judges {
    entries: BTreeMap<String, Entry>,
    folder: PathBuf,
}

/// What an entry of the file says: one of `score`, `probe` and `checklist`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// The options of `judge score` that say what is asked, and how it is read.
    score: Option<Vec<String>>,
    /// Rows that this very judge scored and people graded: what its scores are calibrated on.
    graded: Option<PathBuf>,
    probe: Option<PathBuf>,
    checklist: Option<PathBuf>,
}

/// The options of an entry, as clap reads them.
#[derive(Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct ScoreOptions {
    #[command(flatten)]
    lager: LagerArgs,
}

impl Judges {
    pub(super) fn read(path: &Path) -> Result<Self> {
        let text = judge_data::read_text(path)?;
        let entries = settings_from_json(&text).with_context(|| format!("{} is no file of judges", path.display()))?;
        Ok(Self { entries, folder: path.parent().unwrap_or(Path::new("")).to_owned() })
    }

    /// The judges for a model, beside its plain one.
    pub(super) fn registered(
        &self,
        plain: Option<&DecisionJudge>,
        plain_name: &str,
        args: &ModelArgs,
        model: &Model,
    ) -> Result<Vec<Named>> {
        let mut named = Vec::new();
        for (name, entry) in &self.entries {
            ensure!(
                name != plain_name,
                "the judge {name:?} has the name of the plain model; --name gives that another"
            );
            let judge = match entry {
                Entry { score: Some(options), graded, probe: None, checklist: None } => {
                    self.score(name, options, graded.as_deref(), args, model)
                }
                Entry { score: None, graded: None, probe: Some(path), checklist: None } => {
                    self.probe(name, path, args, model)
                }
                Entry { score: None, graded: None, probe: None, checklist: Some(path) } => plain
                    .context("`checklist`: the model has no labels that can be read")
                    .and_then(|plain| self.checklist(name, path, plain)),
                _ => bail!(
                    "the judge {name:?}: expected one of `score`, which may have `graded`, `probe` and `checklist`"
                ),
            };
            named.push(judge.with_context(|| format!("the judge {name:?}"))?);
        }
        Ok(named)
    }

    fn score(
        &self,
        name: &str,
        options: &[String],
        graded: Option<&Path>,
        args: &ModelArgs,
        model: &Model,
    ) -> Result<Named> {
        let mut lager = ScoreOptions::try_parse_from(options)?.lager;
        for path in [&mut lager.weights, &mut lager.asked.template].into_iter().flatten() {
            *path = self.folder.join(&*path);
        }
        lager.check()?;
        if let Some(variant) = lager.variant.filter(|variant| !variant.has_distribution()) {
            bail!("`score`: {} gives no probabilities, which an answer has", variant.as_str());
        }
        let judge = LagerJudge::new(lager.lager_settings(DatasetFormat::Graded, args)?, model)?;
        let fields = judge.template().field_names().into_iter().map(str::to_owned).collect();
        let answers = Answers::Levels(judge.settings().scale.clone());
        let judge: Box<dyn Judge<State>> = match graded {
            Some(path) => self.calibrated(judge, path, model)?,
            None => Box::new(judge),
        };
        Ok(Named { name: name.to_owned(), judge, answers, fields, criteria: None })
    }

    /// A judge with what its own scores of graded rows say of people's.
    fn calibrated(&self, judge: LagerJudge, path: &Path, model: &Model) -> Result<Box<dyn Judge<State>>> {
        let path = self.folder.join(path);
        let record: RunRecord = load(record_path(&path))?;
        let scored_by = record.model.as_ref().map(|model| (&model.fingerprint, &model.dtype));
        let info = model.info();
        ensure!(
            scored_by == Some((&info.fingerprint, &info.dtype)),
            "`graded`: {} was scored by another model, or with another dtype, than the one that is served",
            path.display()
        );
        ensure!(
            record.judges == [Judge::<State>::settings(&judge).unwrap_or_default()],
            "`graded`: {} was scored with other options than those of `score`",
            path.display()
        );
        let (low, high) = judge.settings().scale.range();
        let range = Some([low, high]);
        let Graded { scores, human, clusters, .. } = graded(&path, "score", None, None, range)?;
        let calibrator = Calibrator { range, ..Calibrator::default() };
        let fitted = calibrator
            .fit_clustered(&scores, &human, &clusters)
            .with_context(|| format!("`graded`: cannot calibrate on {} rows of {}", scores.len(), path.display()))?;
        let settings = json!({"graded": path, "rows": scores.len()});
        let judge = Calibrated::new(judge, move |score: f64| {
            let found = fitted.calibrate(score)?;
            let (low, high, level) = (found.interval.low, found.interval.high, found.interval.level);
            Ok::<_, judge_metrics::Error>(Calibration { value: found.value, low, high, level })
        });
        Ok(Box::new(judge.with_settings(settings)))
    }

    fn probe(&self, name: &str, path: &Path, args: &ModelArgs, model: &Model) -> Result<Named> {
        let mut probes = PromptedProbe::read(&[self.folder.join(path)], None, None)?;
        let (Some(probe), true) = (probes.pop(), probes.is_empty()) else {
            bail!("`probe`: expected one probe file, and {} is a folder of several", path.display());
        };
        let judge = probe.judge(args, model.info())?;
        let settings = judge.settings();
        let width = settings.probe.signals().iter().map(|(_, signal)| model.info().width(*signal)).sum();
        let tried = settings.probe.classify(&vec![0.0; width]).map_err(anyhow::Error::from_boxed)?;
        ensure!(
            tried.probabilities.is_some(),
            "`probe`: {} gives no probabilities, which an answer has",
            path.display()
        );
        let fields = settings.template.field_names().into_iter().map(str::to_owned).collect();
        let answers = Answers::Levels(judge.scale().clone());
        Ok(Named { name: name.to_owned(), judge: Box::new(judge), answers, fields, criteria: None })
    }

    fn checklist(&self, name: &str, path: &Path, plain: &DecisionJudge) -> Result<Named> {
        let list = read_checklist(&self.folder.join(path))?;
        let criteria = Some(list.criteria().len());
        let judge = Box::new(ChecklistJudge::new(plain.clone(), Some(list))?);
        let fields = ["instruction", "response", "reference", "checklist"].map(str::to_owned).into();
        Ok(Named { name: name.to_owned(), judge, answers: Answers::Share, fields, criteria })
    }
}
