//! What the model says of each row: read once, and kept in the folder.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use judge_cli::prompts::{self, Kept};
use judge_core::decision::ChecklistJudge;
use judge_core::lager::{LagerJudge, LayerTable};
use judge_core::request::{LabelRead, Signal};
use judge_core::{Backbone, ItemId, Judge, JudgeError, Layer, Prompt, PromptTemplate, Reason, Request, Unscored, Want};
use judge_data::{Record, Sharding, StatesFile, StatesSpec, StatesWriter, WriteOptions};
use judge_models::Model;
use judge_probe::training::RowSignals;
use judge_probe::{DataHash, Matrix, trial::SIGNAL};

use super::cli::{Cli, PROGRAM};
use super::rows::{Row, Rows};

/// The files of what is read: label logits by both prompts, and states where the score is read and after the response.
const FILES: [&str; 4] = [SCORE, YES, STATES, AFTER];
const SCORE: &str = "score.safetensors";
const YES: &str = "yes.safetensors";
const STATES: &str = "score.states.safetensors";
const AFTER: &str = "conversation.states.safetensors";

/// Where they are.
pub(super) fn paths(folder: &Path) -> [PathBuf; 4] {
    FILES.map(|name| folder.join(name))
}

/// Label logits of every layer by two prompts, and states where the score is read and after the response.
pub(super) struct Tables {
    score: StatesFile,
    yes: Option<StatesFile>,
    states: StatesFile,
    after: Option<StatesFile>,
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
        conversation: Option<&PromptTemplate>,
    ) -> Result<Self> {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        read(cli, model, rows, lager, &folder.join(SCORE), Some(&folder.join(STATES)))?;
        if let Some((judge, _)) = questions {
            read(cli, model, rows, judge, &folder.join(YES), None)?;
        }
        if let Some(template) = conversation {
            let fill = |row: &Row| Ok((row.record.id().clone(), Ok(template.fill(&row.record)?)));
            let prompts = rows.rows.iter().map(fill).collect::<Result<_>>()?;
            keep(cli, model, prompts, Want::default(), None, Some(&folder.join(AFTER)))?;
        }
        let open = |name: &str| StatesFile::open(folder.join(name));
        Ok(Self {
            score: open(SCORE)?,
            yes: questions.is_some().then(|| open(YES)).transpose()?,
            states: open(STATES)?,
            after: conversation.is_some().then(|| open(AFTER)).transpose()?,
            yes_column: questions.map_or(0, |(_, column)| column),
        })
    }

    /// Leaves out the conversations where none was read of the rows, so many in all, that were read as they are asked for a score, and says
    /// why: a chat template may refuse one that ends with an answer.
    pub(super) fn drop_refused(&mut self, rows: usize) -> Result<Option<String>> {
        let Some(after) = &self.after else { return Ok(None) };
        let mut asked = (0..rows).filter(|&row| self.score.is_scored(row));
        let Some(first) = asked.next().filter(|&first| !after.is_scored(first)) else { return Ok(None) };
        if asked.any(|row| after.is_scored(row)) {
            return Ok(None);
        }
        let why = why_unread(after, first)?;
        self.after = None;
        Ok(Some(why))
    }

    /// Why a row was not read, by what the model said first.
    pub(super) fn lacks(&self, row: usize) -> Result<Option<String>> {
        let mut files = [Some(&self.score), self.yes.as_ref(), self.after.as_ref()].into_iter().flatten();
        files.find(|file| !file.is_scored(row)).map(|file| why_unread(file, row)).transpose()
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

    /// The states of the rows at these places where the score is read, and after the response if they were read there.
    pub(super) fn states(&self, places: &[usize]) -> (States<'_>, Option<States<'_>>) {
        let of = |file| States { file, places: places.to_vec() };
        (of(&self.states), self.after.as_ref().map(of))
    }
}

fn why_unread(file: &StatesFile, row: usize) -> Result<String> {
    let found = file.ids().nth(row).transpose()?.and_then(|found| found.unscored);
    Ok(found.map_or_else(|| "it was not read".to_owned(), |why| why.to_string()))
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
        prompts.push((row.record.id().clone(), prompt));
    }
    let want: Want = want.with_context(|| match prompts.iter().find_map(|(_, prompt)| prompt.as_ref().err()) {
        Some(why) => format!("no row can be asked about: {why}"),
        None => "there are no rows".to_owned(),
    })?;
    let labels = want.labels.first().cloned().context("the judge reads no labels")?;
    keep(cli, model, prompts, want, Some((logits, &labels)), states)
}

/// Reads what is missing of these prompts: the logits of labels in one file, states in another.
fn keep(
    cli: &Cli,
    model: &Model,
    prompts: Vec<(ItemId, Result<Prompt, Unscored>)>,
    mut want: Want,
    logits: Option<(&Path, &LabelRead)>,
    states: Option<&Path>,
) -> Result<()> {
    let (info, n) = (model.info(), prompts.len());
    let mut hash = DataHash::new();
    for (id, prompt) in &prompts {
        hash.add(&serde_json::to_vec(&(id, prompt.as_ref().ok()))?);
    }
    let mut metadata = prompts::read_by(PROGRAM, hash.finish(), info, &cli.model);
    if let Some((_, labels)) = logits {
        metadata.insert("labels".to_owned(), serde_json::to_string(labels)?);
    }
    let open = |path: &Path, layers: Vec<Layer>, d_model: usize| {
        let sharding = Sharding::Bytes(prompts::SHARD_BYTES);
        let spec = StatesSpec { rows: n, layers, d_model, metadata: metadata.clone(), sharding };
        let options = WriteOptions { overwrite: cli.write.overwrite, ..WriteOptions::default() };
        StatesWriter::open(path, &spec, options)
    };
    let mut kept = Vec::new();
    if let Some((path, labels)) = logits {
        kept.push(Kept::of_labels(open(path, labels.layers.clone(), labels.tokens.len())?, labels));
    }
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
