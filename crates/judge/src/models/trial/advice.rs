//! What is kept of each reading, and the command that judges by it.

use std::path::{Path, PathBuf};

use anyhow::Result;
use judge_cli::args::model_args::is_template;
use judge_cli::args::words::Words;
use judge_cli::checklists::read_checklist;
use judge_cli::probes::read_saved;
use judge_cli::terminal::console::usage;
use judge_core::decision::Checklist;
use judge_core::lager::{LagerJudge, LayerWeights};
use judge_core::{ModelInfo, PromptTemplate};
use judge_data::{DatasetFormat, Outputs, save_new, write_new};
use judge_probe::training::RowSignals;
use judge_probe::trial::{Compared, Kept, Reading, SIGNAL, Trial, Tried};
use judge_probe::{DataHash, ProbeOrigin, ProbedModel, SavedProbe};
use serde::Serialize;
use serde_json::Value;

use super::cli::{Cli, PROGRAM};
use super::rows::Rows;
use super::tables;
use crate::models::probe::import::is_probe;

/// What a probe of `judge try` judges, and the name of its file in its folder.
const ASPECT: &str = "quality";

/// What is learnt, by its place in the folder.
const LAYER: &str = "layer.json";
const WEIGHTS: &str = "weights.json";
const CHECKLIST: &str = "checklist.json";
const PROBES: [By; 2] = [By::Probe, By::ProbeAfter];

/// Refuses, before any work, to write where something else lies.
pub(super) fn outputs(folder: &Path, outputs: Outputs) -> Outputs {
    // In a folder that is made later there is nothing yet.
    let is_there = |path: &PathBuf| path.parent().is_some_and(Path::is_dir);
    let one = |path: PathBuf| Some(path).filter(is_there);
    let probes = PROBES.map(|by| probe_path(folder, by));
    let templates = probes.each_ref().map(|probe| probe.with_extension("template.json"));
    outputs
        .states(tables::paths(folder).into_iter().filter(is_there))
        .documents::<LayerWeights>([LAYER, WEIGHTS].map(|name| folder.join(name)).into_iter().filter(is_there))
        .made(one(folder.join(CHECKLIST)), |path| read_checklist(path).is_ok())
        .made(templates.into_iter().filter_map(one), is_template)
        .made(probes.into_iter().filter_map(one), is_probe)
}

/// Refuses, before readings are compared, a folder in which something is kept that was learnt of other grades.
pub(super) fn check_learnt(folder: &Path, rows: &Rows, overwrite: bool) -> Result<()> {
    for path in PROBES.map(|by| probe_path(folder, by)).iter().filter(|path| !overwrite && path.exists()) {
        if read_saved(path)?.0.origin().data_hash != Some(hash(rows)?) {
            return Err(usage(format!(
                "{} was learnt of other grades: choose another output folder with --output, or replace what is there with --overwrite",
                path.display()
            )));
        }
    }
    Ok(())
}

/// Of the rows and their grades.
fn hash(rows: &Rows) -> Result<String> {
    let mut hash = DataHash::new();
    for row in &rows.rows {
        hash.add(&serde_json::to_vec(&(row.record.id(), row.grade))?);
    }
    Ok(hash.finish())
}

/// Where a probe lies, in a folder of its own: `judge probe evaluate` takes all that are in one.
fn probe_path(folder: &Path, by: By) -> PathBuf {
    folder.join(if by == By::ProbeAfter { "probe-after" } else { "probe" }).join(format!("{ASPECT}.safetensors"))
}

/// Which judge a reading becomes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    /// `judge score` by the last layer.
    Score,
    /// The same by the mean of all.
    MeanOfLayers,
    /// By weights of one layer.
    ScoreLayer,
    /// By weights that are learnt.
    Weights,
    /// `judge checklist`.
    Yes,
    /// `judge probe evaluate`, where the score is read.
    Probe,
    /// The same after the response of a conversation that asks nothing.
    ProbeAfter,
    /// None.
    Nothing,
}

/// How to judge by a reading.
#[derive(Serialize)]
pub(super) struct Use {
    /// The layer that it reads, if it is one.
    pub(super) layer: Option<usize>,
    /// The command, word by word; `None` where no command reads rows of this format so.
    pub(super) command: Option<Vec<String>>,
}

/// What is known of the run besides its readings.
pub(super) struct Advice<'a> {
    pub(super) cli: &'a Cli,
    pub(super) folder: &'a Path,
    pub(super) lager: &'a LagerJudge,
    pub(super) checklist: &'a Checklist,
    pub(super) conversation: Option<&'a PromptTemplate>,
    pub(super) model: &'a ModelInfo,
    pub(super) rows: &'a Rows,
}

/// What each reading comes to on all rows; `None` for one without a number, or that is no judge.
pub(super) fn keep<S: RowSignals<Error = anyhow::Error>>(
    trial: &Trial,
    readings: &[Reading<'_, S>],
    found: &Compared,
) -> Result<Vec<Option<Kept>>> {
    let keep = |(reading, tried): (&Reading<'_, S>, &Tried)| match tried.agreement.defined() {
        Some(_) if !tried.is_baseline => trial.keep(reading).map(Some),
        _ => Ok(None),
    };
    readings.iter().zip(&found.readings).map(keep).collect()
}

/// The layer that is read, if it is one.
pub(super) fn layer_of(kept: &Kept) -> Option<usize> {
    match kept {
        Kept::Layer(layer) | Kept::Probe(layer, _) => Some(layer.0),
        Kept::Nothing | Kept::Weights(_) => None,
    }
}

/// Each reading with how to judge by it.
pub(super) fn json(found: &Compared, uses: &[Option<Use>]) -> Result<Vec<Value>> {
    let entry = |(tried, of): (&Tried, &Option<Use>)| {
        let mut entry = serde_json::to_value(tried)?;
        entry["use"] = serde_json::to_value(of)?;
        Ok(entry)
    };
    found.readings.iter().zip(uses).map(entry).collect()
}

impl Advice<'_> {
    /// Saves what each reading has learnt, and says how to judge by it.
    pub(super) fn save(&self, by: &[By], kept: Vec<Option<Kept>>) -> Result<Vec<Option<Use>>> {
        let save = |(by, kept): (&By, Option<Kept>)| kept.map(|kept| self.judge(*by, kept)).transpose();
        by.iter().zip(kept).map(save).collect()
    }

    fn weights(&self, name: &str, weights: &LayerWeights) -> Result<PathBuf> {
        let path = self.folder.join(name);
        save_new(&path, weights, self.cli.write.overwrite)?;
        Ok(path)
    }

    fn judge(&self, by: By, kept: Kept) -> Result<Use> {
        let overwrite = self.cli.write.overwrite;
        let layer = layer_of(&kept);
        let score = || Words::default().of("score").asked(&self.cli.asked, &self.cli.model);
        let words = match (by, kept) {
            (By::MeanOfLayers, _) => score().option("--variant", "lager_wo"),
            (By::ScoreLayer, Kept::Layer(layer)) => {
                let weights = LayerWeights::of_layer(layer, self.rows.rows.len(), self.lager.origin().clone())?;
                score().path("--weights", &self.weights(LAYER, &weights)?)
            }
            (By::Weights, Kept::Weights(weights)) => score().path("--weights", &self.weights(WEIGHTS, &weights)?),
            (By::Yes, kept) => {
                let path = self.folder.join(CHECKLIST);
                write_new(&path, &serde_json::to_vec_pretty(self.checklist)?, overwrite)?;
                let words = Words::default().of("checklist").decided(&self.cli.decisions).path("--checklist", &path);
                match kept {
                    Kept::Layer(layer) => words.option("--layers", &layer.0.to_string()).lens(&self.cli.asked),
                    _ => words,
                }
            }
            (By::Probe | By::ProbeAfter, Kept::Probe(layer, probe)) => {
                let file = probe_path(self.folder, by);
                let folder = file.parent().unwrap_or(self.folder);
                std::fs::create_dir_all(folder)?;
                let template = self.conversation.filter(|_| by == By::ProbeAfter).unwrap_or(self.lager.template());
                let notes = [
                    ("program", PROGRAM),
                    ("aspect", ASPECT),
                    ("dtype", &self.model.dtype),
                    ("template_id", template.id()),
                ];
                let origin = ProbeOrigin {
                    model: ProbedModel::from(self.model),
                    signals: vec![(layer, SIGNAL)],
                    // Its agreement is of folds, in the figures; a file of the same rows is the same.
                    validation: None,
                    data_hash: Some(hash(self.rows)?),
                    notes: notes.map(|(name, note)| (name.to_owned(), note.to_owned())).into(),
                };
                write_new(&file, &SavedProbe::new(*probe, origin)?.to_bytes()?, overwrite)?;
                let beside = file.with_extension("template.json");
                write_new(&beside, &serde_json::to_vec_pretty(template)?, overwrite)?;
                Words::default().of("probe evaluate").path("--probes", folder)
            }
            (_, _) => score(),
        };
        // They read an instruction and a response, and nothing else.
        let is_read = self.rows.format == DatasetFormat::Graded || !matches!(by, By::Yes | By::Probe | By::ProbeAfter);
        // The files are the reader's to name.
        let words = words.option("--input", "ROWS").option("--output", "JUDGED");
        let words = words.option_if("--columns", self.cli.input.columns.as_ref().map(ToString::to_string));
        Ok(Use { layer, command: is_read.then(|| words.of_model(&self.cli.model).list) })
    }
}
