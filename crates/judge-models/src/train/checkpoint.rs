//! The trainer's state as a safetensors file.
//!
//! It holds what is learnt and nothing of the model that stays as it is. All tensors are F32 in the shapes of
//! the trainables:
//!
//! | tensor | what it is |
//! |---|---|
//! | `value.NAME` | the trainable |
//! | `mean.NAME` | the optimiser's running mean of its gradient |
//! | `square.NAME` | the running mean of the gradient's square |
//!
//! | metadata | what it is |
//! |---|---|
//! | `format` | `judge-models trainer 3` |
//! | `model` | the fingerprint of the folder that training started from |
//! | `loss` | the loss and its settings |
//! | `settings` | `TrainSettings`, what it says of the data included |
//! | `steps_done` | a whole number |
//!
//! All of it is JSON text but the format. It is compared as JSON, so neither the order of fields nor white
//! space matters.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::path::Path;

use safetensors::tensor::{Dtype as Stored, SafeTensors, TensorView};
use serde_json::{Value, json};

use super::error::TrainError;
use super::loss::Loss;
use super::trainer::Trainer;
use crate::Error;

/// The metadata's key and value that say that a file is a checkpoint of this form.
const FORMAT: (&str, &str) = ("format", "judge-models trainer 3");
/// Bytes of a file among which its format stands: metadata are short, and first.
const HEAD: u64 = 1 << 20;
/// Key of the folder's fingerprint.
const MODEL: &str = "model";
/// Key of the loss.
const LOSS: &str = "loss";
/// Key of the settings.
const SETTINGS: &str = "settings";
/// Key of the number of steps done.
const STEPS: &str = "steps_done";

/// Whether a file is a checkpoint of a trainer, of whatever version, also one that was cut short while it was written.
#[must_use]
pub fn is_checkpoint(path: &Path) -> bool {
    let mut start = Vec::new();
    let read = File::open(path).and_then(|file| file.take(HEAD).read_to_end(&mut start));
    let Some((length, header)) = start.split_first_chunk::<8>().filter(|_| read.is_ok()) else { return false };
    let format = br#""format":"judge-models trainer "#;
    if header.windows(format.len()).any(|window| window == format) {
        return header.starts_with(br#"{"__metadata__":{"#);
    }
    // Metadata are in no order, so a header that was cut may lack the format; its first key is one of theirs.
    let is_cut = (header.len() as u64) < u64::from_le_bytes(*length).min(HEAD - 8);
    let begins = |key: &str| header.starts_with(format!(r#"{{"__metadata__":{{"{key}":""#).as_bytes());
    is_cut && [MODEL, LOSS, SETTINGS, STEPS].into_iter().any(begins)
}

/// Refuses to write where something lies that no trainer wrote.
fn refuse_foreign(path: &Path) -> Result<(), TrainError> {
    if fs::metadata(path).is_ok_and(|found| found.len() > 0) && !is_checkpoint(path) {
        let source =
            std::io::Error::new(ErrorKind::AlreadyExists, "a file that no trainer wrote has this name; move it");
        return Err(Error::Write { path: path.to_owned(), source }.into());
    }
    Ok(())
}

impl<L: Loss> Trainer<L> {
    /// Writes everything that the next step depends on, but for the folder and the batches, to one file, which
    /// appears when it is whole. Until then it is `PATH.partial`. Only checkpoints are replaced.
    ///
    /// # Errors
    /// If it cannot be written, or a file that is no checkpoint has one of the two names.
    pub fn save(&self, path: &Path) -> Result<(), TrainError> {
        let mut tensors = Vec::new();
        for trainable in &self.trainables {
            let kinds = [("value", &trainable.values), ("mean", &trainable.mean), ("square", &trainable.square)];
            for (kind, values) in kinds {
                let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
                tensors.push((format!("{kind}.{}", trainable.name), trainable.shape.clone(), bytes));
            }
        }
        let mut metadata: HashMap<String, String> =
            self.identity().into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        metadata.insert(STEPS.to_owned(), self.steps_done.to_string());
        let views = tensors.iter().map(|(name, shape, bytes)| {
            TensorView::new(Stored::F32, shape.clone(), bytes).map(|view| (name.as_str(), view))
        });
        let unwritten = |source| Error::Write { path: path.to_owned(), source };
        let bytes = views
            .collect::<Result<Vec<_>, _>>()
            .and_then(|views| safetensors::serialize(views, Some(metadata)))
            .map_err(|source| unwritten(std::io::Error::other(source)))?;
        // Beside the file and renamed, so that a file that is there is whole.
        let mut partial = path.as_os_str().to_owned();
        partial.push(".partial");
        refuse_foreign(path)?;
        refuse_foreign(Path::new(&partial))?;
        let written = File::create(&partial).and_then(|mut file| file.write_all(&bytes).and_then(|()| file.sync_all()));
        written.and_then(|()| fs::rename(&partial, path)).map_err(|source| {
            // A disk that is full must not keep what did not fit; that it cannot be deleted says nothing new.
            let _ = fs::remove_file(&partial);
            unwritten(source).into()
        })
    }

    /// Resumes from a file that [`save`](Self::save) wrote for the same folder, loss, settings and data.
    ///
    /// # Errors
    /// If the file cannot be read, is not a checkpoint, or is one of another run; the trainer is then as
    /// before.
    pub fn resume(&mut self, path: &Path) -> Result<(), TrainError> {
        // Metadata are compared before any tensor is read, and the trainer changes only when everything was read.
        let bytes = fs::read(path).map_err(|source| crate::WeightsError::Read { path: path.to_owned(), source })?;
        let damaged = |source| TrainError::NoCheckpoint { path: path.to_owned(), source };
        let (_, header) = SafeTensors::read_metadata(&bytes).map_err(damaged)?;
        let stored = SafeTensors::deserialize(&bytes).map_err(damaged)?;
        let said = |key: &str| header.metadata().as_ref().and_then(|all| all.get(key)).cloned().unwrap_or_default();
        for (what, expected) in self.identity() {
            if !is_same(&said(what), &expected) {
                return Err(TrainError::OtherRun { what, expected, found: said(what) });
            }
        }
        let other = |_| TrainError::OtherRun { what: STEPS, expected: "a number".to_owned(), found: said(STEPS) };
        let steps_done = said(STEPS).parse().map_err(other)?;
        let mut trainables = self.trainables.clone();
        for trainable in &mut trainables {
            let (name, shape) = (&trainable.name, &trainable.shape);
            let kinds =
                [("value", &mut trainable.values), ("mean", &mut trainable.mean), ("square", &mut trainable.square)];
            for (kind, values) in kinds {
                let tensor = format!("{kind}.{name}");
                let view = stored.tensor(&tensor);
                let found = view.as_ref().map_or("absent".to_owned(), |x| format!("{:?} {:?}", x.dtype(), x.shape()));
                match view {
                    Ok(view) if view.dtype() == Stored::F32 && view.shape() == shape => {
                        let (numbers, _) = view.data().as_chunks::<4>();
                        *values = numbers.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect();
                    }
                    _ => {
                        let (path, expected) = (path.to_owned(), shape.clone());
                        return Err(TrainError::CheckpointTensor { path, tensor, expected, found });
                    }
                }
            }
        }
        self.trainables = trainables;
        self.steps_done = steps_done;
        Ok(())
    }

    /// What a checkpoint must have in common with this run.
    fn identity(&self) -> [(&'static str, String); 4] {
        [
            (FORMAT.0, FORMAT.1.to_owned()),
            (MODEL, json!(self.base.fingerprint).to_string()),
            (LOSS, json!({ L::NAME: self.loss }).to_string()),
            (SETTINGS, json!(self.settings).to_string()),
        ]
    }
}

/// Whether two texts are the same JSON, or the same text where they are none.
fn is_same(found: &str, expected: &str) -> bool {
    let parsed = |text: &str| serde_json::from_str::<Value>(text).ok();
    found == expected || parsed(found).is_some_and(|found| Some(found) == parsed(expected))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_is_known_by_its_metadata_also_where_it_was_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let is = |bytes: &[u8]| {
            fs::write(&path, bytes).unwrap();
            is_checkpoint(&path)
        };
        let whole = |metadata: &str| {
            let header = format!(r#"{{"__metadata__":{{{metadata}}}}}"#);
            [(header.len() as u64).to_le_bytes().as_slice(), header.as_bytes()].concat()
        };
        let ours = whole(r#""settings":"{}","format":"judge-models trainer 3""#);
        assert!(is(&ours) && is(&ours[..40]));
        for other in [&whole(r#""format":"pt""#)[..], &whole(r#""settings":"{}""#), b"", b"notes of mine", &ours[..12]]
        {
            assert!(!is(other), "{}", String::from_utf8_lossy(other));
        }
        let begun = |path: &Path| refuse_foreign(path).is_ok();
        fs::write(&path, b"notes of mine").unwrap();
        assert!(!begun(&path) && begun(&folder.path().join("none")));
        fs::write(&path, ours).unwrap();
        assert!(begun(&path));
    }
}
