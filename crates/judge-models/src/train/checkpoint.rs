//! The trainer's state and the finished model, as safetensors files.
//!
//! A checkpoint is one file. All tensors are F32 in the shapes of the model:
//!
//! | tensor | what it is |
//! |---|---|
//! | `value.NAME` | the parameter |
//! | `mean.NAME` | the optimiser's running mean of its gradient |
//! | `square.NAME` | the running mean of the gradient's square |
//!
//! | metadata | what it is |
//! |---|---|
//! | `format` | `judge-models trainer 2` |
//! | `config` | `config.json` |
//! | `settings` | `TrainSettings` |
//! | `steps_done` | a whole number |
//!
//! All of it is JSON text. It is compared as JSON, so neither the order of fields nor white space
//! matters.
//!
//! An export has the parameters alone, under their own names, and the metadata that transformers
//! writes.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use half::bf16;
use safetensors::tensor::{Dtype as Stored, SafeTensors, TensorView};
use serde_json::{Value, json};

use super::problem::TrainProblem;
use super::trainer::Trainer;
use crate::{Dtype, Error, TensorProblem};

/// The metadata's key and value that say that a file is a checkpoint of this form.
const FORMAT: (&str, &str) = ("format", "judge-models trainer 2");
/// Key of the configuration.
const CONFIG: &str = "config";
/// Key of the settings.
const SETTINGS: &str = "settings";
/// Key of the number of steps done.
const STEPS: &str = "steps_done";

impl Trainer {
    /// Writes everything that the next step depends on, but for the batches, to one file.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), Error> {
        let mut tensors = Vec::new();
        for parameter in &self.parameters {
            for (kind, values) in
                [("value", &parameter.values), ("mean", &parameter.mean), ("square", &parameter.square)]
            {
                tensors.push((
                    format!("{kind}.{}", parameter.name),
                    parameter.shape.clone(),
                    f32_bytes(values),
                    Stored::F32,
                ));
            }
        }
        let metadata = HashMap::from([
            (FORMAT.0.to_owned(), FORMAT.1.to_owned()),
            (CONFIG.to_owned(), self.config_json.to_string()),
            (SETTINGS.to_owned(), settings_json(self)),
            (STEPS.to_owned(), self.steps_done.to_string()),
        ]);
        write(path, tensors, metadata)
    }

    /// Resumes from a file that [`save`](Self::save) wrote with the same configuration and
    /// settings.
    ///
    /// # Errors
    /// If the file cannot be read, is not a checkpoint, or is one of another configuration or other
    /// settings; the trainer is then as before.
    pub fn resume(&mut self, path: &Path) -> Result<(), Error> {
        // Metadata are compared before any tensor is read, and the trainer changes only when everything was read. Tensors that no
        // parameter has are ignored.
        let bytes = fs::read(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
        let damaged = |source: safetensors::SafeTensorError| Error::Train {
            problem: TrainProblem::NoCheckpoint { path: path.to_owned(), source },
        };
        let (_, header) = SafeTensors::read_metadata(&bytes).map_err(damaged)?;
        let stored = SafeTensors::deserialize(&bytes).map_err(damaged)?;
        let said = |key: &str| header.metadata().as_ref().and_then(|all| all.get(key)).cloned().unwrap_or_default();
        let other = |what, expected: String, found: String| Error::Train {
            problem: TrainProblem::OtherRun { what, expected, found },
        };
        let this_run =
            [(FORMAT.0, FORMAT.1.to_owned()), (CONFIG, self.config_json.to_string()), (SETTINGS, settings_json(self))];
        for (key, expected) in this_run {
            if !is_same(&said(key), &expected) {
                return Err(other(key, expected, said(key)));
            }
        }
        let steps_done = said(STEPS).parse().map_err(|_| other(STEPS, "a number".to_owned(), said(STEPS)))?;
        let mut parameters = self.parameters.clone();
        for parameter in &mut parameters {
            let name = &parameter.name;
            for (kind, values) in
                [("value", &mut parameter.values), ("mean", &mut parameter.mean), ("square", &mut parameter.square)]
            {
                let name = format!("{kind}.{name}");
                let view = stored
                    .tensor(&name)
                    .map_err(|_| Error::TensorNames { missing: vec![name.clone()], unused: Vec::new() })?;
                let fault = |problem| Error::Tensor { path: path.to_owned(), tensor: name.clone(), problem };
                if view.dtype() != Stored::F32 {
                    return Err(fault(TensorProblem::OtherDtype {
                        expected: "F32",
                        found: format!("{:?}", view.dtype()),
                    }));
                }
                if view.shape() != parameter.shape {
                    return Err(fault(TensorProblem::Shape {
                        expected: parameter.shape.clone(),
                        found: view.shape().to_vec(),
                    }));
                }
                *values = view.data().as_chunks::<4>().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect();
            }
        }
        self.parameters = parameters;
        self.steps_done = steps_done;
        Ok(())
    }

    /// Writes the parameters as a Hugging Face folder's `model.safetensors`, rounded to `dtype` (to
    /// nearest, ties to even). The same parameters give the same bytes.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn export(&self, path: &Path, dtype: Dtype) -> Result<(), Error> {
        let tensors = self.parameters.iter().map(|parameter| {
            let (bytes, stored) = match dtype {
                Dtype::F32 | Dtype::Tf32 => (f32_bytes(&parameter.values), Stored::F32),
                Dtype::Bf16 => (
                    parameter.values.iter().flat_map(|&value| bf16::from_f32(value).to_le_bytes()).collect(),
                    Stored::BF16,
                ),
            };
            (parameter.name.clone(), parameter.shape.clone(), bytes, stored)
        });
        write(path, tensors.collect(), HashMap::from([("format".to_owned(), "pt".to_owned())]))
    }
}

/// The settings as JSON text.
fn settings_json(trainer: &Trainer) -> String {
    json!(trainer.settings).to_string()
}

/// Whether two texts are the same JSON, or the same text where they are none.
fn is_same(found: &str, expected: &str) -> bool {
    let parsed = |text: &str| serde_json::from_str::<Value>(text).ok();
    found == expected || parsed(found).is_some_and(|found| Some(found) == parsed(expected))
}

/// Numbers as little-endian bytes.
fn f32_bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// Writes beside the file (`PATH.partial`) and renames, so that a file that is there is whole. Each
/// tensor is a name, a shape, its bytes and their dtype.
fn write(
    path: &Path,
    tensors: Vec<(String, Vec<usize>, Vec<u8>, Stored)>,
    metadata: HashMap<String, String>,
) -> Result<(), Error> {
    let views = tensors.iter().map(|(name, shape, bytes, stored)| {
        TensorView::new(*stored, shape.clone(), bytes).map(|view| (name.as_str(), view))
    });
    let unwritten = |source| Error::Train { problem: TrainProblem::Write { path: path.to_owned(), source } };
    let bytes = views
        .collect::<Result<Vec<_>, _>>()
        .and_then(|views| safetensors::serialize(views, Some(metadata)))
        .map_err(|source| unwritten(std::io::Error::other(source)))?;
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    fs::write(&partial, bytes).and_then(|()| fs::rename(&partial, path)).map_err(unwritten)
}
