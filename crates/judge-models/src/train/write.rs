//! What was trained as a folder: an adapter's, or a model's.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use half::bf16;
use judge_arch::Architecture;

use super::base;
use super::error::TrainError;
use super::loss::Loss;
use super::trainable::Trainable;
use super::trainer::Trainer;
use super::tuning::{Blocks, Lora, Tuning, last_parts, pairs};
use crate::base::BaseName;
use crate::folder::Folder;
use crate::weights::{AdapterFolder, Factors, Tensors, Whole};
use crate::{Dtype, HubOptions, merge};

impl<L: Loss> Trainer<L> {
    /// Writes what was trained as a folder, which appears under its name when it has been read back and its
    /// numbers are those that were trained.
    ///
    /// An adapter becomes a folder of PEFT's in f32, with the head of labels whole. A model becomes a folder that
    /// transformers loads, in `dtype` or in that of the folder that training started from, with the other files
    /// of that folder; with a head of labels it is one of a sequence classifier.
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

    /// Whether a folder holds what is learnt now as [`write`](Self::write) would write it; not so one that cannot be read.
    #[must_use]
    pub fn is_written(&self, output: &Path, dtype: Option<Dtype>) -> bool {
        let differs = match &self.settings.tuning {
            Tuning::Lora(lora) => self.adapter(lora).and_then(|folder| Ok(folder.differs(output)?)),
            Tuning::Full => self.differs(output, dtype),
        };
        matches!(differs, Ok(None))
    }

    /// Rounds what is learnt to the numbers that [`write`](Self::write) gives a model, so that what is measured then is what the
    /// folder says. Whether a number has changed: never of an adapter, which is written as it is.
    pub fn round_as_written(&mut self, dtype: Option<Dtype>) -> bool {
        if self.settings.tuning != Tuning::Full || self.written_dtype(dtype) != Dtype::Bf16 {
            return false;
        }
        let mut is_changed = false;
        let written = self.trainables.iter_mut().filter(|trainable| trainable.is_written());
        for value in written.flat_map(|trainable| &mut trainable.values) {
            let rounded = bf16::from_f32(*value).to_f32();
            is_changed |= rounded != *value;
            *value = rounded;
        }
        is_changed
    }

    /// The dtype of a model that is written.
    fn written_dtype(&self, asked: Option<Dtype>) -> Dtype {
        asked.unwrap_or(self.base.stored_dtype).of_weights()
    }

    /// Writes an adapter's folder.
    fn write_adapter(&self, lora: &Lora, output: &Path) -> Result<(), TrainError> {
        match self.adapter(lora)?.write(output)? {
            None => Ok(()),
            Some(tensor) => Err(TrainError::NotReadBack { path: output.to_owned(), tensor }),
        }
    }

    /// An adapter's folder as it is to be written.
    fn adapter(&self, lora: &Lora) -> Result<AdapterFolder<'_>, TrainError> {
        let pairs = pairs(self.trainables.iter().map(|trainable| trainable.name.as_str()));
        // PEFT adds the adapter to the class with the head, whatever the folder's own class is.
        let stored = |own: &str| match &self.base.spec {
            Architecture::Decoder(_) => own.to_owned(),
            Architecture::Encoder(spec) => spec.name_in_classifier(own),
        };
        let factors = pairs.iter().map(|(stem, places)| {
            let [a, b] = places.map(|place| &self.trainables[place]);
            Factors { stem: stored(stem), d_in: a.shape[1], d_out: b.shape[0], a: &a.values, b: &b.values }
        });
        let factors: Vec<Factors<'_>> = factors.collect();
        let head = self.written().filter(|trainable| !trainable.is_factor());
        let head: Vec<&Trainable> = head.collect();
        // PEFT finds every module whose name ends so. The last parts of names in an encoder's blocks may be those of its head, as
        // `dense` is, and in a decoder's of a projection that is not adapted: LFM2 has `self_attn.out_proj` and `conv.out_proj`.
        let adapted: BTreeSet<String> = pairs.keys().map(|&stem| stem.to_owned()).collect();
        let last = last_parts(&adapted);
        let blocks = lora.blocks.of(self.base.spec.n_layers())?;
        let (targets, layers) = match &self.base.spec {
            Architecture::Decoder(_) if !is_ambiguous(&self.base.spec, &blocks, &adapted, &last) => {
                let blocks = (lora.blocks != Blocks::All).then(|| blocks.into_iter().collect());
                (last, blocks)
            }
            _ => (factors.iter().map(|of| of.stem.clone()).collect(), None),
        };
        let modules: BTreeSet<&str> = head.iter().filter_map(|of| of.name.split('.').next()).collect();
        Ok(AdapterFolder {
            base: self.settings.names_base.then(|| BaseName::of(&self.base.path, &HubOptions::from_env())),
            rank: lora.rank,
            alpha: lora.alpha,
            rslora: lora.rslora,
            targets,
            layers,
            factors,
            head: head
                .iter()
                .map(|of| Whole { name: stored(&of.name), shape: &of.shape, values: &of.values })
                .collect(),
            head_modules: modules.into_iter().map(str::to_owned).collect(),
        })
    }

    /// What a folder has of what is learnt.
    fn written(&self) -> impl Iterator<Item = &Trainable> {
        self.trainables.iter().filter(|trainable| trainable.is_written())
    }

    /// Writes a model's folder.
    fn write_model(&self, output: &Path, dtype: Option<Dtype>) -> Result<(), TrainError> {
        let folder = Folder::open(&self.base.path)?;
        let (_, mut weights) = base::open(&folder)?;
        weights.dtype = self.written_dtype(dtype);
        let replaced: BTreeMap<&str, &[f32]> =
            self.written().map(|of| (of.name.as_str(), of.values.as_slice())).collect();
        merge::write_replaced(&folder, &self.base.spec, &mut weights, &replaced, output, |written| {
            let differs = self.differs(written, dtype)?;
            differs.map_or(Ok(()), |tensor| Err(TrainError::NotReadBack { path: output.to_owned(), tensor }))
        })
    }

    /// The first tensor of what is learnt that a model's folder does not give back; `None` if there is none.
    fn differs(&self, written: &Path, dtype: Option<Dtype>) -> Result<Option<String>, TrainError> {
        let (_, mut weights) = base::open(&Folder::open(written)?)?;
        let mut tensors = weights.merged();
        let is_rounded = self.written_dtype(dtype) == Dtype::Bf16;
        for trainable in self.written() {
            let found = tensors.take(&trainable.name, &trainable.shape, Dtype::F32)?;
            let rounded = |&x: &f32| if is_rounded { bf16::from_f32(x).to_f32() } else { x };
            if !found.iter().copied().eq(trainable.values.iter().map(rounded)) {
                return Ok(Some(trainable.name.clone()));
            }
        }
        Ok(None)
    }
}

/// Whether these blocks have a module that is not adapted and whose name ends as one that is.
fn is_ambiguous(spec: &Architecture, blocks: &BTreeSet<usize>, adapted: &BTreeSet<String>, last: &[String]) -> bool {
    let tensors = blocks.iter().flat_map(|&block| spec.tensors_of_block(block));
    let mut modules = tensors.filter_map(|(name, _)| name.strip_suffix(".weight").map(str::to_owned));
    modules.any(|module| {
        !adapted.contains(&module) && module.rsplit('.').next().is_some_and(|part| last.iter().any(|last| last == part))
    })
}
