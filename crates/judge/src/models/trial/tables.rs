//! What the model says of each row: read once, and kept in the folder.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use judge_cli::prompts::{self, Kept};
use judge_core::decision::ChecklistJudge;
use judge_core::lager::{LagerJudge, LayerTable};
use judge_core::{Backbone, Judge, JudgeError, Layer, Reason, Request, Unscored, Want, request::Signal};
use judge_data::{Record, Sharding, StatesFile, StatesSpec, StatesWriter, WriteOptions};
use judge_models::Model;
use judge_probe::training::RowSignals;
use judge_probe::{DataHash, Matrix, trial::SIGNAL};

use super::cli::{Cli, PROGRAM};
use super::rows::Rows;

/// The files of what is read: label logits by both prompts, and states where the score is read.
const FILES: [&str; 3] = [SCORE, YES, STATES];
const SCORE: &str = "score.safetensors";
const YES: &str = "yes.safetensors";
const STATES: &str = "score.states.safetensors";

/// Where they are.
pub(super) fn paths(folder: &Path) -> [PathBuf; 3] {
    FILES.map(|name| folder.join(name))
}

/// Label logits of every layer by two prompts, and states where the score is read.
pub(super) struct Tables {
    score: StatesFile,
    yes: Option<StatesFile>,
    states: StatesFile,
    /// Which column of `yes` is that.
    yes_column: usize,
}

impl Tables {
    /// Reads what is not in the folder yet.
    pub(super) fn read(
        cli: &Cli,
        folder: &Path,
        model: &Model,
        rows: &Rows,
        lager: &LagerJudge,
        questions: Option<(&ChecklistJudge, usize)>,
    ) -> Result<Self> {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        read(cli, model, rows, lager, &folder.join(SCORE), Some(&folder.join(STATES)))?;
        if let Some((judge, _)) = questions {
            read(cli, model, rows, judge, &folder.join(YES), None)?;
        }
        let open = |name: &str| StatesFile::open(folder.join(name));
        Ok(Self {
            score: open(SCORE)?,
            yes: questions.is_some().then(|| open(YES)).transpose()?,
            states: open(STATES)?,
            yes_column: questions.map_or(0, |(_, column)| column),
        })
    }

    /// Why a row was not read, by what the model said first.
    pub(super) fn lacks(&self, row: usize) -> Result<Option<String>> {
        let mut files = [Some(&self.score), self.yes.as_ref()].into_iter().flatten();
        let Some(file) = files.find(|file| !file.is_scored(row)) else { return Ok(None) };
        let found = file.ids().nth(row).transpose()?.and_then(|found| found.unscored);
        Ok(Some(found.map_or_else(|| "it was not read".to_owned(), |why| why.to_string())))
    }

    /// The logits of the scores, of the rows at these places.
    pub(super) fn score(&self, places: &[usize]) -> Result<Vec<LayerTable>> {
        places.iter().map(|&place| table(&self.score, place)).collect()
    }

    /// Those of no and yes, in this order.
    pub(super) fn yes(&self, places: &[usize]) -> Result<Option<Vec<LayerTable>>> {
        let order = [1 - self.yes_column, self.yes_column];
        let of = |file| places.iter().map(|&place| Ok(table(file, place)?.with_columns(&order)?)).collect();
        self.yes.as_ref().map(of).transpose()
    }

    /// The states of the rows at these places.
    pub(super) fn states(&self, places: Vec<usize>) -> States<'_> {
        States { file: &self.states, places }
    }
}

fn table(file: &StatesFile, place: usize) -> Result<LayerTable> {
    let row = file.row(place)?.with_context(|| format!("{}: row {place} is not there", file.path().display()))?;
    Ok(LayerTable::new(file.layers().to_vec(), file.d_model(), row.into_iter().map(f64::from).collect())?)
}

/// States of some rows.
#[derive(Clone)]
pub(super) struct States<'t> {
    file: &'t StatesFile,
    places: Vec<usize>,
}

impl RowSignals for States<'_> {
    type Error = anyhow::Error;

    fn is_read(&self, _: usize) -> bool {
        true
    }

    fn matrix(&self, rows: &[usize], layer: Layer, _: &[Signal]) -> Result<Matrix> {
        let mut values = Vec::with_capacity(rows.len() * self.file.d_model());
        for &row in rows {
            let state = self.file.state(self.places[row], layer)?;
            let state = state.with_context(|| format!("row {row} has no state of {layer}"))?;
            values.extend(state.into_iter().map(f64::from));
        }
        Ok(Matrix::new(values, self.file.d_model())?)
    }
}

/// Reads what a judge asks that reads the labels of one prompt of each row: the logits that are missing in a file, and the states in another,
/// where there is one.
fn read(
    cli: &Cli,
    model: &Model,
    rows: &Rows,
    judge: &dyn Judge<Record>,
    logits: &Path,
    states: Option<&Path>,
) -> Result<()> {
    let (mut prompts, mut want) = (Vec::new(), None);
    let mut hash = DataHash::new();
    for row in &rows.rows {
        let prompt = match judge.ask(&row.record).map(|requests| requests.into_iter().next()) {
            Ok(Some(Request { prompt, want: asked })) => {
                want.get_or_insert(asked);
                Ok(prompt)
            }
            Err(JudgeError::Unscored(why)) => Err(why),
            Ok(None) => Err(Unscored::new(Reason::Missing, "the judge asks nothing of it")),
            Err(error) => return Err(error.into()),
        };
        hash.add(&serde_json::to_vec(&(row.record.id(), prompt.as_ref().ok()))?);
        prompts.push((row.record.id().clone(), prompt));
    }
    let mut want: Want = want.with_context(|| match prompts.iter().find_map(|(_, prompt)| prompt.as_ref().err()) {
        Some(why) => format!("no row can be asked about: {why}"),
        None => "there are no rows".to_owned(),
    })?;
    let (info, n) = (model.info(), prompts.len());
    let labels = want.labels.first().cloned().context("the judge reads no labels")?;
    let mut metadata = prompts::read_by(PROGRAM, hash.finish(), info, &cli.model);
    metadata.insert("labels".to_owned(), serde_json::to_string(&labels)?);
    let open = |path: &Path, layers: Vec<Layer>, d_model: usize| {
        let sharding = Sharding::Bytes(prompts::SHARD_BYTES);
        let spec = StatesSpec { rows: n, layers, d_model, metadata: metadata.clone(), sharding };
        let options = WriteOptions { overwrite: cli.write.overwrite, ..WriteOptions::default() };
        StatesWriter::open(path, &spec, options)
    };
    let mut kept = vec![Kept::of_labels(open(logits, labels.layers.clone(), labels.tokens.len())?, &labels)];
    if let Some(states) = states {
        let layers = info.layers();
        let writer = open(states, layers.clone(), info.d_model)?;
        let of_states = Want::of_signals(&layers.iter().map(|&layer| (layer, SIGNAL)).collect::<Vec<_>>());
        want = Want { labels: want.labels, ..of_states };
        kept.push(Kept::of_signal(writer, layers, SIGNAL));
    }
    let asked = prompts.into_iter().enumerate().map(|(row, (id, prompt))| Ok((id, row, prompt)));
    prompts::keep(model, want, cli.model.quiet, n, asked, &mut kept)?;
    for file in kept {
        file.writer.finish()?;
    }
    Ok(())
}
