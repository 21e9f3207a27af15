//! The model that training starts from: a folder's tensors on the plain device, where autodiff takes them for
//! constants, and those that are learnt on the host.
//!
//! It is the room's door to the engine. [`Base::with`] gives a decoder that shares all frozen tensors and has
//! the trainables' numbers of this moment; [`Base::collect`] files what a backward pass found under their names.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param, ParamId};
use burn::tensor::{Device, Gradients, Tensor, TensorData};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use serde_json::Map;

use super::check;
use super::error::TrainError;
use super::states::States;
use super::trainable::Trainable;
use super::tuning::{Selected, Tuning, first_factor};
use crate::arch::{Architecture, HeadSpec, LabelsSpec, ModelSpec, SCORE, labels_of_adapter, text_fields};
use crate::checked::CheckedWeights;
use crate::engine::tensor::Precision;
use crate::engine::tensor::decoder::Decoder;
use crate::engine::tensor::host::host;
use crate::engine::tensor::parameters::{Source, Stored};
use crate::folder::{Folder, file};
use crate::weights::{Adapted, Tensors};
use crate::{Dtype, Error, fingerprint};

/// The decoder of a folder, and which of its parameters are learnt.
pub(super) struct Base {
    /// Where the folder is, as it was given.
    pub(super) path: PathBuf,
    /// What tells the folder from others: the hash that a loaded model has.
    pub(super) fingerprint: String,
    /// What the folder describes, with the score head of the loss in the place of its own head if there is one.
    pub(super) spec: Arc<ModelSpec>,
    /// On the plain device. Parameters that are learnt hold one number each, which is never used.
    decoder: Decoder,
    /// What comes out of the blocks below `first_block`, where it is kept.
    pub(super) states: Option<Mutex<States>>,
    /// The lowest block with something that is learnt; the number of blocks if there is none.
    pub(super) first_block: usize,
    /// Whether layer 0 depends on what is learnt.
    pub(super) learns_embedding: bool,
    /// For each parameter that is learnt, the tensors that it is made of and their places among the trainables.
    learnt: HashMap<ParamId, Learnt>,
}

/// A parameter that is learnt.
struct Learnt {
    /// The places of its tensors in the list of trainables, from the top down.
    places: Vec<usize>,
    /// What is added to every number, and what the sum is multiplied by.
    change: (f32, f32),
}

/// The gradients of trainables in their order, row-major; `None` where nothing was found yet.
pub(super) type Found = Vec<Option<Vec<f32>>>;

/// A decoder with the numbers of some moment, and the score head if the loss has one. A copy is a second handle on
/// the same tensors.
#[derive(Clone)]
pub(super) struct Tuned {
    /// The decoder.
    pub(super) decoder: Decoder,
    /// `[n_labels, d_model]`.
    pub(super) score: Option<Tensor<2>>,
}

impl Base {
    /// Opens a folder. `labels` is the number of labels of the loss's score head: of the folder's own if it has
    /// one, else a new one, which starts at zero. Without it the folder's head over the vocabulary is read.
    ///
    /// # Errors
    /// Those of reading the folder, and [`TrainError`] for a model that is not trained here, for a score head
    /// of other labels and for settings of an adapter.
    pub(super) fn open(
        path: &Path,
        tuning: &Tuning,
        labels: Option<usize>,
        seed: u64,
    ) -> Result<(Self, Vec<Trainable>), TrainError> {
        let folder = Folder::open(path)?;
        let (mut spec, mut weights) = open(&folder)?;
        check::check_model(&spec, tuning)?;
        let fingerprint = fingerprint::of(&folder, &weights.hashed(), false)?;
        let stored_labels = spec.labels().map(|head| head.labels.len());
        match (labels, &spec.head) {
            (None, HeadSpec::Own(_) | HeadSpec::Embedding) => {}
            (None, _) => return Err(TrainError::NoHead { path: path.to_owned(), family: spec.family }),
            (Some(expected), HeadSpec::Labels(head)) if head.labels.len() != expected => {
                let found = head.labels.len();
                return Err(TrainError::ScoreLabels { path: path.to_owned(), expected, found });
            }
            (Some(_), HeadSpec::Labels(_)) => {}
            (Some(n), _) => {
                Arc::make_mut(&mut spec).head = HeadSpec::Labels(new_labels(&folder, n)?);
            }
        }
        let selected = match tuning {
            Tuning::Full => None,
            Tuning::Lora(lora) => Some(lora.select(&spec)?),
        };
        let device = Device::flex();
        let mut source = Building {
            tensors: weights.merged(),
            selected,
            rng: ChaCha8Rng::seed_from_u64(seed),
            trainables: Vec::new(),
        };
        let decoder =
            Decoder::with_precision(Arc::clone(&spec), std::slice::from_ref(&device), Precision::FULL, &mut source)?;
        let mut trainables = std::mem::take(&mut source.trainables);
        if let Some(n) = labels {
            let shape = [n, spec.d_model];
            let values = match stored_labels {
                Some(_) => source.tensors.take(SCORE, &shape, Dtype::F32)?,
                None => vec![0.0; n * spec.d_model],
            };
            trainables.push(Trainable::new(SCORE, &shape, values));
        }
        let learnt = learnt(decoder.stored(), &trainables);
        let decoder = decoder.map(&mut Emptied { learnt: &learnt, device: &device });
        let is_learnt = |name: &str| trainables.iter().any(|trainable| trainable.of() == name);
        let blocks = spec.blocks.iter();
        let first_block = blocks.take_while(|block| !block.tensors().iter().any(|(name, _)| is_learnt(name))).count();
        let positions = spec.positions.as_ref().map(|(name, _)| name);
        let learns_embedding = [&spec.embedding].into_iter().chain(positions).any(|name| is_learnt(name));
        let path = path.to_owned();
        let states = None;
        Ok((Self { path, fingerprint, spec, decoder, states, first_block, learns_embedding, learnt }, trainables))
    }

    /// Keeps what comes out of the blocks below the lowest one that is learnt in a file, or takes it from there.
    ///
    /// # Errors
    /// Those of the file.
    pub(super) fn keep_states(&mut self, path: &Path) -> Result<(), TrainError> {
        let identity = format!("{} {} {}", self.fingerprint, self.first_block, env!("CARGO_PKG_VERSION"));
        self.states = Some(Mutex::new(States::open(path, &identity, self.spec.d_model)?));
        Ok(())
    }

    /// The decoder as far as nothing of it is learnt: the blocks below the lowest one that is, and what they need.
    pub(super) fn frozen(&self) -> &Decoder {
        &self.decoder
    }

    /// The decoder with the trainables' numbers, which lie on `device`, with autodiff or without; all else is
    /// shared.
    pub(super) fn with(&self, trainables: &[Trainable], device: &Device) -> Tuned {
        let decoder = self.decoder.clone().map(&mut Filled { learnt: &self.learnt, trainables, device });
        let score = trainables.iter().find(|trainable| trainable.name == SCORE).map(|score| {
            let data = TensorData::new(score.values.clone(), [score.shape[0], score.shape[1]]);
            let score = Tensor::<2>::from_data(data, device);
            if device.is_autodiff() { score.require_grad() } else { score }
        });
        Tuned { decoder, score }
    }

    /// Adds the gradients of what [`with`](Self::with) gave to those that were found before: one place for each
    /// trainable, in their order, row-major.
    ///
    /// # Errors
    /// Those of reading them from the device.
    pub(super) fn collect(
        &self,
        tuned: &Tuned,
        gradients: &mut Gradients,
        trainables: &[Trainable],
        found: &mut Found,
    ) -> Result<(), Error> {
        if let Some(score) = &tuned.score
            && let Some(place) = trainables.iter().position(|trainable| trainable.name == SCORE)
            && let Some(gradient) = score.grad_remove(gradients)
        {
            add(&mut found[place], host(gradient)?);
        }
        let mut collect = Collect { learnt: &self.learnt, trainables, gradients, found, failed: None };
        tuned.decoder.visit(&mut collect);
        collect.failed.map_or(Ok(()), Err)
    }
}

/// Adds a gradient to what was found before.
fn add(found: &mut Option<Vec<f32>>, gradient: Vec<f32>) {
    match found {
        Some(sum) => sum.iter_mut().zip(gradient).for_each(|(sum, g)| *sum += g),
        None => *found = Some(gradient),
    }
}

/// A folder's description and weights, none taken yet.
///
/// # Errors
/// Those of reading it, and [`Error::Unsupported`] for an encoder.
pub(super) fn open(folder: &Folder) -> Result<(Arc<ModelSpec>, CheckedWeights), Error> {
    let mut spec = Architecture::from_json(folder.config())
        .map_err(|problem| Error::Config { path: folder.file(file::CONFIG), problem })?;
    let weights = CheckedWeights::open(folder, &mut spec, Some(Dtype::F32), &[])?;
    match spec {
        Architecture::Decoder(spec) => Ok((spec, weights)),
        Architecture::Encoder(spec) => Err(Error::Unsupported {
            path: folder.file(file::CONFIG),
            field: "model_type".to_owned(),
            found: format!("{}, an encoder,", spec.family),
            supported: "decoders, where a model is to be trained",
        }),
    }
}

/// A score head of so many labels for a folder that has none.
fn new_labels(folder: &Folder, n: usize) -> Result<LabelsSpec, Error> {
    let text = text_fields(folder.config());
    let labels = text
        .and_then(|text| labels_of_adapter(text.as_ref().or(folder.config().as_object()).unwrap_or(&Map::new()), n));
    labels.map_err(|problem| Error::Config { path: folder.file(file::CONFIG), problem })
}

/// For each parameter that is learnt, its tensors' places among the trainables. Either all tensors of a
/// parameter are learnt or none is.
fn learnt(stored: &[Stored], trainables: &[Trainable]) -> HashMap<ParamId, Learnt> {
    let places: HashMap<&str, usize> =
        trainables.iter().enumerate().map(|(place, trainable)| (trainable.name.as_str(), place)).collect();
    let learnt = stored.iter().filter_map(|stored| {
        let places: Option<Vec<usize>> = stored.parts.iter().map(|(name, _)| places.get(&**name).copied()).collect();
        Some((stored.id, Learnt { places: places?, change: stored.change }))
    });
    learnt.collect()
}

/// The tensors of a folder and the first factors of an adapter, as the source of a decoder. What is to be
/// learnt is kept.
struct Building<'a> {
    /// The folder's tensors.
    tensors: Adapted<'a>,
    /// Where the adapter's factors are; `None` where the whole model is learnt.
    selected: Option<Selected>,
    /// Draws the factors.
    rng: ChaCha8Rng,
    /// What is learnt, in the order in which it was asked for.
    trainables: Vec<Trainable>,
}

impl Source for Building<'_> {
    fn values(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>, Error> {
        let factor = self.selected.as_ref().and_then(|_| first_factor(name, shape, &mut self.rng));
        let is_learnt = self.selected.is_none() || factor.is_some();
        let values = match factor {
            Some(values) => values,
            None => self.tensors.take(name, shape, Dtype::F32)?,
        };
        if is_learnt {
            self.trainables.push(Trainable::new(name, shape, values.clone()));
        }
        Ok(values)
    }

    fn low_rank(&self, stem: &str) -> Option<(usize, f32)> {
        self.selected.as_ref().filter(|selected| selected.stems.contains(stem)).map(|of| (of.rank, of.scale))
    }
}

/// Leaves one number of each parameter that is learnt: the rest is on the host.
struct Emptied<'a> {
    /// The parameters.
    learnt: &'a HashMap<ParamId, Learnt>,
    /// The plain device.
    device: &'a Device,
}

impl ModuleMapper for Emptied<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        match self.learnt.contains_key(&param.id) {
            true => Param::initialized(param.id, Tensor::zeros([1; D], self.device)),
            false => param,
        }
    }
}

/// Puts the trainables' numbers into the parameters that are learnt.
struct Filled<'a> {
    /// The parameters.
    learnt: &'a HashMap<ParamId, Learnt>,
    /// The numbers.
    trainables: &'a [Trainable],
    /// Where the parameters are put.
    device: &'a Device,
}

impl ModuleMapper for Filled<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let Some(Learnt { places, change: (offset, factor) }) = self.learnt.get(&param.id) else { return param };
        let parts = || places.iter().map(|&place| &self.trainables[place]);
        let values: Vec<f32> = parts().flat_map(|part| &part.values).map(|value| (value + offset) * factor).collect();
        // Tensors lie below one another, and a parameter of one axis is flat.
        let mut shape = [values.len(); D];
        if let (2, Some(first)) = (D, parts().next()) {
            let columns: usize = first.shape[1..].iter().product();
            shape = std::array::from_fn(|axis| if axis == 0 { values.len() / columns.max(1) } else { columns });
        }
        let tensor = Tensor::from_data(TensorData::new(values, shape), self.device);
        let tensor = if self.device.is_autodiff() { tensor.require_grad() } else { tensor };
        Param::initialized(param.id, tensor)
    }
}

/// Walks over the decoder's parameters and cuts the gradients of those that are learnt into the tensors'.
struct Collect<'a> {
    /// The parameters.
    learnt: &'a HashMap<ParamId, Learnt>,
    /// Their tensors.
    trainables: &'a [Trainable],
    /// What the backward pass found; each is taken out once.
    gradients: &'a mut Gradients,
    /// By the place of a trainable, row-major.
    found: &'a mut Found,
    /// The first gradient that could not be read.
    failed: Option<Error>,
}

impl ModuleVisitor for Collect<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let Some(Learnt { places, change: (_, factor) }) = self.learnt.get(&param.id) else { return };
        let Some(gradient) = param.val().grad_remove(self.gradients) else { return };
        match host(gradient) {
            Ok(values) => {
                let mut rest = values.as_slice();
                for &place in places {
                    let (part, others) = rest.split_at(self.trainables[place].values.len());
                    add(&mut self.found[place], part.iter().map(|x| x * factor).collect());
                    rest = others;
                }
            }
            Err(error) => self.failed = self.failed.take().or(Some(error)),
        }
    }
}
