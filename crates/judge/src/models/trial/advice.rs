//! What is kept of each reading, and the command that judges by it.

use std::path::{Path, PathBuf};

use anyhow::Result;
use judge_core::ModelInfo;
use judge_core::decision::Checklist;
use judge_core::lager::{LagerJudge, LayerWeights};
use judge_data::{Outputs, save_new, write_new};
use judge_probe::training::RowSignals;
use judge_probe::trial::{Compared, Kept, Measure, Reading, SIGNAL, Trial, Tried};
use judge_probe::{DataHash, ProbeOrigin, ProbedModel, SavedProbe, Validation};
use serde::Serialize;
use serde_json::Value;

use super::cli::{Cli, PROGRAM};
use super::rows::Rows;
use super::tables;
use crate::args::model_args::is_template;
use crate::models::probe::import::is_probe;
use crate::rows::checklist::read_checklist;

/// What a probe of `judge try` judges, and the name of its file.
const ASPECT: &str = "quality";

/// What is learnt, by its place in the folder.
const LAYER: &str = "layer.json";
const WEIGHTS: &str = "weights.json";
const CHECKLIST: &str = "checklist.json";
const PROBE: &str = "probe";

/// Refuses, before any work, to write where something else lies.
pub(super) fn outputs(folder: &Path, outputs: Outputs) -> Outputs {
    // In a folder that is made later there is nothing yet.
    let is_there = |path: &PathBuf| path.parent().is_some_and(Path::is_dir);
    let one = |path: PathBuf| Some(path).filter(is_there);
    let probe = probe_path(folder);
    outputs
        .states(tables::paths(folder).into_iter().filter(is_there))
        .documents::<LayerWeights>([LAYER, WEIGHTS].map(|name| folder.join(name)).into_iter().filter(is_there))
        .made(one(folder.join(CHECKLIST)), |path| read_checklist(path).is_ok())
        .made(one(probe.with_extension("template.json")), is_template)
        .made(one(probe), is_probe)
}

fn probe_path(folder: &Path) -> PathBuf {
    folder.join(PROBE).join(format!("{ASPECT}.safetensors"))
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
    /// `judge probe evaluate`.
    Probe,
    /// None.
    Nothing,
}

/// How to judge by a reading.
#[derive(Serialize)]
pub(super) struct Use {
    /// The layer that it reads, if it is one.
    pub(super) layer: Option<usize>,
    /// The command, word by word.
    pub(super) command: Vec<String>,
}

/// What is known of the run besides its readings.
pub(super) struct Advice<'a> {
    pub(super) cli: &'a Cli,
    pub(super) folder: &'a Path,
    pub(super) lager: &'a LagerJudge,
    pub(super) checklist: &'a Checklist,
    pub(super) model: &'a ModelInfo,
    pub(super) rows: &'a Rows,
}

impl Advice<'_> {
    /// Keeps what each reading has learnt from all rows; `None` for what is no judge, or has no number.
    pub(super) fn keep<S: RowSignals<Error = anyhow::Error>>(
        &self,
        trial: &Trial,
        by: &[By],
        readings: &[Reading<'_, S>],
        found: &Compared,
    ) -> Result<Vec<Option<Use>>> {
        let scoring = match found.measure {
            Measure::Spearman => "spearman",
            Measure::Auroc => "roc_auc",
        };
        let mut kept = Vec::new();
        for ((by, reading), tried) in by.iter().zip(readings).zip(&found.readings) {
            kept.push(match tried.agreement.estimate().filter(|_| *by != By::Nothing) {
                Some(agreement) => Some(self.judge(*by, trial.keep(reading)?, (scoring, agreement))?),
                None => None,
            });
        }
        Ok(kept)
    }

    /// Each reading with how to judge by it.
    pub(super) fn json(&self, found: &Compared, uses: &[Option<Use>]) -> Result<Vec<Value>> {
        let entry = |(tried, of): (&Tried, &Option<Use>)| {
            let mut entry = serde_json::to_value(tried)?;
            entry["use"] = serde_json::to_value(of)?;
            Ok(entry)
        };
        found.readings.iter().zip(uses).map(entry).collect()
    }

    fn save(&self, name: &str, weights: &LayerWeights) -> Result<PathBuf> {
        let path = self.folder.join(name);
        save_new(&path, weights, self.cli.write.overwrite)?;
        Ok(path)
    }

    fn judge(&self, by: By, kept: Kept, (scoring, agreement): (&str, f64)) -> Result<Use> {
        let overwrite = self.cli.write.overwrite;
        let layer = match &kept {
            Kept::Layer(layer) | Kept::Probe(layer, _) => Some(layer.0),
            Kept::Nothing | Kept::Weights(_) => None,
        };
        let mut words = Words::default();
        match by {
            By::Score | By::MeanOfLayers | By::ScoreLayer | By::Weights => {
                words = words.of("score").asked(self.cli);
                if by == By::MeanOfLayers {
                    words = words.option("--variant", "lager_wo");
                }
            }
            By::Yes => words = words.of("checklist"),
            By::Probe => words = words.of("probe evaluate"),
            By::Nothing => {}
        }
        words = match (by, kept) {
            (By::ScoreLayer, Kept::Layer(layer)) => {
                let weights = LayerWeights::of_layer(layer, self.rows.rows.len(), self.lager.origin().clone())?;
                words.path("--weights", &self.save(LAYER, &weights)?)
            }
            (By::Weights, Kept::Weights(weights)) => words.path("--weights", &self.save(WEIGHTS, &weights)?),
            (By::Yes, kept) => {
                let path = self.folder.join(CHECKLIST);
                write_new(&path, &serde_json::to_vec_pretty(self.checklist)?, overwrite)?;
                let words = words.path("--checklist", &path);
                match kept {
                    Kept::Layer(layer) => words.option("--layers", &layer.0.to_string()),
                    _ => words,
                }
            }
            (By::Probe, Kept::Probe(layer, probe)) => {
                let folder = self.folder.join(PROBE);
                std::fs::create_dir_all(&folder)?;
                let mut hash = DataHash::new();
                for row in &self.rows.rows {
                    hash.add(&serde_json::to_vec(&(row.record.id(), row.grade))?);
                }
                let template = self.lager.template();
                let notes = [
                    ("program", PROGRAM),
                    ("aspect", ASPECT),
                    ("dtype", &self.model.dtype),
                    ("template_id", template.id()),
                ];
                let origin = ProbeOrigin {
                    model: ProbedModel::from(self.model),
                    signals: vec![(layer, SIGNAL)],
                    validation: Some(Validation {
                        scoring: scoring.to_owned(),
                        mean: agreement,
                        folds: vec![agreement],
                    }),
                    data_hash: Some(hash.finish()),
                    notes: notes.map(|(name, note)| (name.to_owned(), note.to_owned())).into(),
                };
                let file = probe_path(self.folder);
                write_new(&file, &SavedProbe::new(*probe, origin)?.to_bytes()?, overwrite)?;
                let beside = file.with_extension("template.json");
                write_new(&beside, &serde_json::to_vec_pretty(template)?, overwrite)?;
                words.path("--probes", &folder)
            }
            (_, _) => words,
        };
        Ok(Use { layer, command: words.of_model(self.cli).list })
    }
}

/// A command, word by word.
#[derive(Default)]
struct Words {
    list: Vec<String>,
}

impl Words {
    fn of(mut self, command: &str) -> Self {
        self.list.push("judge".to_owned());
        self.list.extend(command.split(' ').map(str::to_owned));
        self
    }

    fn option(mut self, name: &str, value: &str) -> Self {
        self.list.extend([name.to_owned(), value.to_owned()]);
        self
    }

    fn path(self, name: &str, path: &Path) -> Self {
        let path = path.to_string_lossy().into_owned();
        self.option(name, &path)
    }

    fn option_if(self, name: &str, value: Option<String>) -> Self {
        match value {
            Some(value) => self.option(name, &value),
            None => self,
        }
    }

    /// What the model was asked.
    fn asked(self, cli: &Cli) -> Self {
        let asked = &cli.asked;
        let lens = (judge_core::Lens::from(asked.lens) == judge_core::Lens::Normed).then(|| "normed".to_owned());
        self.option_if("--template", asked.template.as_ref().map(|path| path.to_string_lossy().into_owned()))
            .option_if("--rubric", asked.rubric.clone())
            .option_if("--prefill", asked.prefill.clone())
            .option_if("--points", asked.points.map(|points| points.to_string()))
            .option_if("--lens", lens)
    }

    /// Which rows are read, by which model. The files are the reader's to name.
    fn of_model(self, cli: &Cli) -> Self {
        let model = &cli.model;
        let mut words = self
            .option("--input", "ROWS")
            .option("--output", "JUDGED")
            .option_if("--columns", cli.input.columns.as_ref().map(ToString::to_string))
            .option_if("--model", model.model.clone());
        for adapter in &model.adapters {
            words = words.path("--adapter", adapter);
        }
        let devices: Vec<String> = model.devices.iter().map(ToString::to_string).collect();
        words = words.option_if("--device", Some(devices.join(",")).filter(|device| device != "cpu"));
        words.option_if("--dtype", model.dtype.map(|dtype| dtype.to_string()))
    }
}

/// A command as a shell takes it.
pub(super) fn in_a_shell(command: &[String]) -> String {
    let plain =
        |word: &String| !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./=,:@+".contains(c));
    let quoted = |word: &String| match plain(word) {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    };
    command.iter().map(quoted).collect::<Vec<_>>().join(" ")
}
