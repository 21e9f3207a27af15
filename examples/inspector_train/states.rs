//! The signals of an aspect's prompts, states and attention entropies: read once, kept in files, reread by memory map.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use judge_core::{Backbone, LabelRead, Layer, Lens, Outcome, Pooling, ReadAt, Signal, TokenId, Want};
use judge_data::{StatesFile, StatesSpec, StatesWriter};
use judge_examples::passes::pass;
use judge_probe::Matrix;

use crate::rows::Row;

/// What is read of each prompt.
pub struct Reading<'a> {
    pub layers: Vec<Layer>,
    pub poolings: Vec<Pooling>,
    /// Whether the attention entropies of the layers are read too, all but the embeddings'.
    pub attention_entropy: bool,
    /// Labels of the model's own score, where they are tokens and all blocks are run anyway.
    pub labels: Option<&'a [TokenId]>,
}

impl Reading<'_> {
    fn signals(&self) -> impl Iterator<Item = Signal> {
        let states = self.poolings.iter().map(|&pooling| Signal::State(pooling));
        states.chain(self.attention_entropy.then_some(Signal::AttentionEntropy))
    }

    fn layers_of(&self, signal: Signal) -> impl Iterator<Item = Layer> {
        self.layers.iter().copied().filter(move |&layer| has(layer, signal))
    }
}

/// Whether a layer has such a signal: the embeddings attend to nothing.
pub fn has(layer: Layer, signal: Signal) -> bool {
    (layer, signal) != (Layer(0), Signal::AttentionEntropy)
}

/// Signals in files, one for each kind, and the logits of the labels at the prompt's end.
pub struct States {
    files: Vec<(Signal, StatesFile)>,
    labels: Option<StatesFile>,
}

impl States {
    /// Reads what is not in the files of `folder` yet. Stopped and started again, it goes on; files of other settings are refused.
    pub fn read(
        model: &dyn Backbone,
        folder: &Path,
        aspect: &str,
        rows: &[Row],
        reading: &Reading<'_>,
        settings: &BTreeMap<String, String>,
        quiet: bool,
    ) -> Result<Self> {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let mut parts = Vec::new();
        for signal in reading.signals() {
            let name = serde_json::to_value(signal)?.as_str().unwrap_or_default().to_owned();
            let layers = reading.layers_of(signal).collect();
            parts.push((Part::Signal(signal), name, layers, model.info().width(signal)));
        }
        if let Some(labels) = reading.labels {
            parts.push((Part::Labels, "labels".to_owned(), vec![Layer(model.info().n_layers)], labels.len()));
        }
        let mut paths: Vec<(Part, PathBuf)> = Vec::new();
        let mut writers = Vec::new();
        for (part, name, layers, width) in parts {
            let path = folder.join(format!("{aspect}.{name}.safetensors"));
            let mut metadata = settings.clone();
            metadata.insert("read".into(), name);
            let spec = StatesSpec { rows: rows.len(), layers, d_model: width, metadata };
            if !is_there(&path, &spec)? {
                writers.push((part, StatesWriter::open(&path, &spec)?));
            }
            paths.push((part, path));
        }
        write(model, rows, reading, &mut writers, quiet)?;
        for (_, writer) in writers {
            writer.finish()?;
        }
        let mut states = Self { files: Vec::new(), labels: None };
        for (part, path) in paths {
            let file = StatesFile::open(path)?;
            match part {
                Part::Signal(signal) => states.files.push((signal, file)),
                Part::Labels => states.labels = Some(file),
            }
        }
        Ok(states)
    }

    /// Whether a row could be read.
    pub fn is_scored(&self, row: usize) -> bool {
        self.files.iter().all(|(_, file)| file.layers().first().is_some_and(|&layer| file.state(row, layer).is_some()))
    }

    /// One layer's signals side by side, one row of features for each of `rows`, which must have been read.
    pub fn matrix(&self, rows: &[usize], layer: Layer, signals: &[Signal]) -> Result<Matrix> {
        let mut values = Vec::new();
        let mut width = 0;
        for &row in rows {
            let before = values.len();
            for signal in signals {
                let file = self.files.iter().find(|(known, _)| known == signal).map(|(_, file)| file);
                let state = file.and_then(|file| file.state(row, layer));
                let state = state.with_context(|| format!("row {row} has no {signal:?} of {layer}"))?;
                values.extend(state.into_iter().map(f64::from));
            }
            width = values.len() - before;
        }
        Ok(Matrix::new(values, width)?)
    }

    /// The logits of the labels at the end of a row's prompt.
    pub fn label_logits(&self, row: usize) -> Option<Vec<f64>> {
        Some(self.labels.as_ref()?.row(row)?.into_iter().map(f64::from).collect())
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Part {
    Signal(Signal),
    Labels,
}

/// Whether a complete file is there, of these settings.
fn is_there(path: &Path, spec: &StatesSpec) -> Result<bool> {
    if !path.exists() {
        return Ok(false);
    }
    let file = StatesFile::open(path)?;
    let same = |(name, value): (&String, &String)| file.metadata().get(name) == Some(value);
    let shape = (file.rows(), file.layers(), file.d_model()) == (spec.rows, spec.layers.as_slice(), spec.d_model);
    if !shape || !spec.metadata.iter().all(same) {
        bail!(
            "{} was written from other prompts, by another model or of other layers: remove it, or name another --states folder",
            path.display()
        );
    }
    Ok(true)
}

fn write(
    model: &dyn Backbone,
    rows: &[Row],
    reading: &Reading<'_>,
    writers: &mut [(Part, StatesWriter)],
    quiet: bool,
) -> Result<()> {
    let pending: Vec<usize> =
        (0..rows.len()).filter(|&row| writers.iter().any(|(_, writer)| !writer.is_done(row))).collect();
    if pending.is_empty() {
        return Ok(());
    }
    let signals: Vec<(Layer, Signal)> =
        reading.signals().flat_map(|signal| reading.layers_of(signal).map(move |layer| (layer, signal))).collect();
    let labels = reading.labels.map(|tokens| LabelRead {
        tokens: tokens.to_vec(),
        layers: vec![Layer(model.info().n_layers)],
        lens: Lens::Raw,
        at: ReadAt::PromptEnd,
    });
    let want = Want { labels, ..Want::of_signals(&signals) };
    let prompts = pending.iter().map(|&row| Ok((row, rows[row].prompt.clone())));
    pass(model, &want, pending.len(), quiet, prompts, |&row, outcome| {
        store(writers, row, &rows[row], reading, &outcome)
    })
}

fn store(
    writers: &mut [(Part, StatesWriter)],
    index: usize,
    row: &Row,
    asked: &Reading<'_>,
    outcome: &Outcome,
) -> Result<()> {
    for (part, writer) in writers.iter_mut().filter(|(_, writer)| !writer.is_done(index)) {
        let reading = match outcome {
            Outcome::Unscored(reason) => {
                writer.write_unscored(index, &row.id, reason)?;
                continue;
            }
            Outcome::Read(reading) => reading,
        };
        let values = match part {
            Part::Signal(signal) => {
                let values = |layer: Layer| {
                    reading.signal(layer, *signal).with_context(|| format!("the model did not read {layer}"))
                };
                asked.layers_of(*signal).map(values).collect::<Result<Vec<_>>>()?.concat()
            }
            Part::Labels => {
                let steps = reading.labels.as_ref().and_then(|labels| labels.steps.first());
                steps.context("the model did not read the labels")?.logits.clone()
            }
        };
        writer.write(index, &row.id, &values)?;
    }
    Ok(())
}
