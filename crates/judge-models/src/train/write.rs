//! What was trained as a folder: an adapter's, or a model's.

use std::collections::BTreeMap;
use std::path::Path;

use half::bf16;

use super::base;
use super::error::TrainError;
use super::loss::Loss;
use super::trainer::Trainer;
use super::tuning::{Lora, Tuning, last_parts, pairs};
use crate::arch::SCORE;
use crate::folder::Folder;
use crate::weights::{AdapterFolder, Factors, Tensors};
use crate::{Dtype, merge};

impl<L: Loss> Trainer<L> {
    /// Writes what was trained as a folder, which appears under its name when it has been read back and its
    /// numbers are those that were trained.
    ///
    /// An adapter becomes a folder of PEFT's in f32, with the score head whole. A model becomes a folder that
    /// transformers loads, in `dtype` or in that of the folder that training started from, with the other files
    /// of that folder; with a score head it is one of a sequence classifier.
    ///
    /// # Errors
    /// If `output` is neither absent nor an empty folder, it cannot be written, the folder that training started
    /// from has changed, or something else is read back ([`TrainError::NotReadBack`]). Nothing is left behind
    /// then.
    pub fn write(&self, output: &Path, dtype: Option<Dtype>) -> Result<(), TrainError> {
        match &self.settings.tuning {
            Tuning::Lora(lora) => self.write_adapter(lora, output),
            Tuning::Full => self.write_model(output, dtype),
        }
    }

    /// Writes an adapter's folder.
    fn write_adapter(&self, lora: &Lora, output: &Path) -> Result<(), TrainError> {
        let pairs = pairs(self.trainables.iter().map(|trainable| trainable.name.as_str()));
        let factors = pairs.iter().map(|(stem, places)| {
            let [a, b] = places.map(|place| &self.trainables[place]);
            Factors { stem, d_in: a.shape[1], d_out: b.shape[0], a: &a.values, b: &b.values }
        });
        let score = self.trainables.iter().find(|trainable| trainable.name == SCORE);
        let folder = AdapterFolder {
            base: &self.base.path.to_string_lossy(),
            rank: lora.rank,
            alpha: lora.alpha,
            rslora: lora.rslora,
            targets: last_parts(&pairs.keys().map(|&stem| stem.to_owned()).collect()),
            layers: lora.layers.as_deref(),
            factors: factors.collect(),
            score: score.map(|score| (SCORE, [score.shape[0], score.shape[1]], score.values.as_slice())),
        };
        match folder.write(output)? {
            None => Ok(()),
            Some(tensor) => Err(TrainError::NotReadBack { path: output.to_owned(), tensor }),
        }
    }

    /// Writes a model's folder.
    fn write_model(&self, output: &Path, dtype: Option<Dtype>) -> Result<(), TrainError> {
        let folder = Folder::open(&self.base.path)?;
        let (_, mut weights) = base::open(&folder)?;
        weights.dtype = dtype.unwrap_or_else(|| weights.base.stored_dtype());
        let dtype = weights.dtype;
        let replaced: BTreeMap<&str, &[f32]> =
            self.trainables.iter().map(|of| (of.name.as_str(), of.values.as_slice())).collect();
        merge::write_replaced(&folder, &self.base.spec, &mut weights, &replaced, output, |written| {
            let (_, mut weights) = base::open(&Folder::open(written)?)?;
            let mut tensors = weights.merged();
            for trainable in &self.trainables {
                let found = tensors.take(&trainable.name, &trainable.shape, Dtype::F32)?;
                let rounded = |&x: &f32| if dtype == Dtype::Bf16 { bf16::from_f32(x).to_f32() } else { x };
                if !found.iter().copied().eq(trainable.values.iter().map(rounded)) {
                    let (path, tensor) = (output.to_owned(), trainable.name.clone());
                    return Err(TrainError::NotReadBack { path, tensor });
                }
            }
            Ok(())
        })
    }
}
