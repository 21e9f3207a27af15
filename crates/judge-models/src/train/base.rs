//! The model that training starts from: a folder's tensors on the plain device, where autodiff takes them for
//! constants, and those that are learnt on the host.
//!
//! It is the room's door to the engine. [`Base::with`] gives a network that shares all frozen tensors and has
//! the trainables' numbers of this moment; [`Base::collect`] files what a backward pass found under their names.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param, ParamId};
use burn::tensor::{Device, Gradients, Tensor, TensorData};
use judge_arch::{Architecture, EncoderSpec, HeadSpec, SCORE, draws_of_head, encoder_head};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::check;
use super::error::TrainError;
use super::network::Network;
use super::new_head::NewHead;
use super::states::States;
use super::trainable::{LAYER_WEIGHTS, Trainable};
use super::tuning::{Selected, Tuning, first_factor};
use crate::checked::{CheckedWeights, new_labels};
use crate::engine::tensor::Precision;
use crate::engine::tensor::decoder::Decoder;
use crate::engine::tensor::encoder::Encoder;
use crate::engine::tensor::host::host;
use crate::engine::tensor::parameters::{Source, Stored};
use crate::folder::Folder;
use crate::weights::{Adapted, Tensors};
use crate::{Dtype, Error, fingerprint, merge};

/// The network of a folder, and which of its parameters are learnt.
pub(super) struct Base {
    /// Where the folder is, as it was given.
    pub(super) path: PathBuf,
    /// The dtype that its weights are nearest to.
    pub(super) stored_dtype: Dtype,
    /// What tells the folder from others: the hash that a loaded model has.
    pub(super) fingerprint: String,
    /// What the folder describes, with the head of labels of the loss in the place of its own head if there is one.
    pub(super) spec: Architecture,
    /// On the plain device. Parameters that are learnt hold one number for each of their tensors, which is never used.
    network: Network,
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

/// A network with the numbers of some moment, and what is learnt outside of it. A copy is a second handle on the
/// same tensors.
#[derive(Clone)]
pub(super) struct Tuned {
    /// The network.
    pub(super) network: Network,
    /// The score head of a decoder, `[n_labels, d_model]`.
    pub(super) score: Option<Tensor<2>>,
    /// The numbers whose softmax weighs the layers, `[layers, 1]`.
    pub(super) layer_weights: Option<Tensor<2>>,
}

impl Base {
    /// Opens a folder. `labels` is the number of labels of the loss's head: of the folder's own if it has one, else of a
    /// new one, which starts at zero, or in an encoder as transformers draws it. Without it the folder's head over the
    /// vocabulary is read.
    ///
    /// # Errors
    /// Those of reading the folder, and [`TrainError`] for a model that is not trained here, for a head of other
    /// labels, for none over the vocabulary, and for settings of an adapter.
    pub(super) fn open(
        path: &Path,
        tuning: &Tuning,
        labels: Option<usize>,
        seed: u64,
    ) -> Result<(Self, Vec<Trainable>), TrainError> {
        let folder = Folder::open(path)?;
        let (mut spec, mut weights) = open(&folder)?;
        spec.warn_of_unread(folder.config());
        let (stored_labels, stored_dtype) = (spec.n_labels(), weights.base.stored_dtype());
        let (new_head, selected) = settle(&folder, &mut spec, tuning, labels)?;
        let fingerprint = fingerprint::of(&folder, &weights.hashed(), false)?;
        let device = Device::flex();
        let mut source = Building {
            tensors: weights.merged(),
            selected,
            of_head: spec.tensors_of_head().into_iter().collect(),
            new_head,
            rng: ChaCha8Rng::seed_from_u64(seed),
            trainables: Vec::new(),
        };
        let network = match &spec {
            Architecture::Decoder(spec) => {
                let (spec, devices) = (Arc::clone(spec), std::slice::from_ref(&device));
                Network::Decoder(Decoder::with_precision(spec, devices, Precision::FULL, &mut source)?)
            }
            Architecture::Encoder(spec) => Network::Encoder(Encoder::new(Arc::clone(spec), &device, &mut source)?),
        };
        let mut trainables = std::mem::take(&mut source.trainables);
        if let (Some(n), Architecture::Decoder(spec)) = (labels, &spec) {
            let shape = [n, spec.d_model];
            let values = match stored_labels {
                Some(_) => source.tensors.take(SCORE, &shape, Dtype::F32)?,
                None => vec![0.0; n * spec.d_model],
            };
            trainables.push(Trainable::new(SCORE, &shape, values));
        }
        let learnt = learnt(network.stored(), &trainables);
        // What is learnt is on the host: its parameters have a number for each tensor here.
        let few: Vec<Trainable> = trainables.iter().map(|of| Trainable::new(&of.name, &[1, 1], vec![0.0])).collect();
        let network = network.map(&mut Filled { learnt: &learnt, trainables: &few, device: &device });
        let learnt_names: BTreeSet<String> = trainables.iter().map(Trainable::of).collect();
        let learns = |block: &usize| spec.tensors_of_block(*block).iter().any(|(name, _)| learnt_names.contains(name));
        let first_block = (0..spec.n_layers()).find(learns).unwrap_or(spec.n_layers());
        let learns_embedding = spec.tensors_of_embedding().iter().any(|name| learnt_names.contains(name));
        let (path, states) = (path.to_owned(), None);
        let base =
            Self { path, stored_dtype, fingerprint, spec, network, states, first_block, learns_embedding, learnt };
        Ok((base, trainables))
    }

    /// What the folder describes, with the head that a loss of so many labels reads, if it can be trained so.
    ///
    /// # Errors
    /// Those of [`open`](Self::open) that need no numbers of the folder.
    pub(super) fn described(path: &Path, tuning: &Tuning, labels: Option<usize>) -> Result<Architecture, TrainError> {
        let folder = Folder::open(path)?;
        let (mut spec, _) = open(&folder)?;
        settle(&folder, &mut spec, tuning, labels)?;
        Ok(spec)
    }

    /// Keeps what comes out of the blocks below the lowest one that is learnt in a file, or takes it from there.
    pub(super) fn keep_states(&mut self, path: &Path) -> Result<(), TrainError> {
        let identity = format!("{} {} {}", self.fingerprint, self.first_block, env!("CARGO_PKG_VERSION"));
        self.states = Some(Mutex::new(States::open(path, &identity, self.spec.dimensions().d_model)?));
        Ok(())
    }

    /// The network as far as nothing of it is learnt: the blocks below the lowest one that is, and what they need.
    pub(super) fn frozen(&self) -> &Network {
        &self.network
    }

    /// The network with the trainables' numbers, which lie on `device`, with autodiff or without; all else is
    /// shared.
    pub(super) fn with(&self, trainables: &[Trainable], device: &Device) -> Tuned {
        let network = self.network.clone().map(&mut Filled { learnt: &self.learnt, trainables, device });
        let own = |name: &str| {
            let found = trainables.iter().find(|trainable| trainable.name == name)?;
            let rows = found.shape[0];
            let data = TensorData::new(found.values.clone(), [rows, found.values.len() / rows]);
            let tensor = Tensor::<2>::from_data(data, device);
            Some(if device.is_autodiff() { tensor.require_grad() } else { tensor })
        };
        Tuned { network, score: own(SCORE), layer_weights: own(LAYER_WEIGHTS) }
    }

    /// Adds the gradients of what [`with`](Self::with) gave to those that were found before: one place for each
    /// trainable, in their order, row-major.
    pub(super) fn collect(
        &self,
        tuned: &Tuned,
        gradients: &mut Gradients,
        trainables: &[Trainable],
        found: &mut Found,
    ) -> Result<(), Error> {
        for (name, own) in [(SCORE, &tuned.score), (LAYER_WEIGHTS, &tuned.layer_weights)] {
            if let Some(own) = own
                && let Some(place) = trainables.iter().position(|trainable| trainable.name == name)
                && let Some(gradient) = own.grad_remove(gradients)
            {
                add(&mut found[place], host(gradient)?);
            }
        }
        let mut collect = Collect { learnt: &self.learnt, trainables, gradients, found, failed: None };
        tuned.network.visit(&mut collect);
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
pub(super) fn open(folder: &Folder) -> Result<(Architecture, CheckedWeights), Error> {
    let mut spec = Architecture::from_json(folder.config()).map_err(|problem| folder.wrong_config(problem))?;
    let weights = CheckedWeights::open(folder, &mut spec, Some(Dtype::F32), &[])?;
    Ok((spec, weights))
}

/// Refuses a model that is not trained so here, settles its head as [`settle_head`] does, and chooses the projections that an
/// adapter is beside.
fn settle(
    folder: &Folder,
    spec: &mut Architecture,
    tuning: &Tuning,
    labels: Option<usize>,
) -> Result<(Option<NewHead>, Option<Selected>), TrainError> {
    merge::refuse_head_of_decisions(folder)?;
    check::check_model(spec, tuning)?;
    let new_head = settle_head(folder, spec, labels)?;
    let selected = match tuning {
        Tuning::Full => None,
        Tuning::Lora(lora) => Some(lora.select(spec)?),
    };
    Ok((new_head, selected))
}

/// Makes the head of a description that which a loss of so many labels reads. Returns the first numbers of an encoder's
/// new head.
///
/// # Errors
/// [`TrainError::ScoreLabels`] for a head of other labels, [`TrainError::NoHead`] if the loss reads a head over the
/// vocabulary that is not there, and those of the folder.
fn settle_head(folder: &Folder, spec: &mut Architecture, labels: Option<usize>) -> Result<Option<NewHead>, TrainError> {
    let path = || folder.given().to_owned();
    match (spec.n_labels(), labels) {
        (Some(found), Some(expected)) if found != expected => {
            return Err(TrainError::ScoreLabels { path: path(), expected, found });
        }
        (Some(_), Some(_)) => return Ok(None),
        _ => {}
    }
    match (spec, labels) {
        (Architecture::Decoder(spec), None) if matches!(spec.head, HeadSpec::Own(_) | HeadSpec::Embedding) => Ok(None),
        (spec, None) => Err(TrainError::NoHead { path: path(), family: spec.family() }),
        (Architecture::Decoder(spec), Some(labels)) => {
            Arc::make_mut(spec).head = HeadSpec::Labels(new_labels(folder, labels)?);
            Ok(None)
        }
        (Architecture::Encoder(spec), Some(labels)) => Ok(Some(give_head(folder, spec, labels)?)),
    }
}

/// Gives an encoder the head that its family's classifiers have, with so many labels.
///
/// # Errors
/// Those of the folder, and [`Error::Config`] for a head that is not read and for numbers that nothing can be drawn by.
fn give_head(folder: &Folder, spec: &mut Arc<EncoderSpec>, labels: usize) -> Result<NewHead, Error> {
    let fault = |problem| folder.wrong_config(problem);
    let fields = folder.config().as_object().cloned().unwrap_or_default();
    let head = encoder_head(&fields, labels).map_err(fault)?;
    let draws = draws_of_head(&fields).map_err(fault)?;
    Arc::make_mut(spec).head = Some(head.clone());
    NewHead::of(folder, spec, &head, draws)
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

/// The tensors of a folder and the first factors of an adapter, as the source of a network. What is to be
/// learnt is kept.
struct Building<'a> {
    /// The folder's tensors.
    tensors: Adapted<'a>,
    /// Where the adapter's factors are; `None` where the whole model is learnt.
    selected: Option<Selected>,
    /// Names of the tensors of an encoder's head, which are learnt whole with an adapter too.
    of_head: BTreeSet<String>,
    /// The first numbers of a head that the folder does not have.
    new_head: Option<NewHead>,
    /// Draws the factors, and a new head.
    rng: ChaCha8Rng,
    /// What is learnt, in the order in which it was asked for.
    trainables: Vec<Trainable>,
}

impl Source for Building<'_> {
    fn values(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>, Error> {
        let factor = self.selected.as_ref().and_then(|_| first_factor(name, shape, &mut self.rng));
        let is_of_head = self.of_head.contains(name);
        let is_learnt = self.selected.is_none() || factor.is_some() || is_of_head;
        let values = match (factor, &mut self.new_head) {
            (Some(values), _) => values,
            (None, Some(head)) if is_of_head => head.values(name, shape, &mut self.rng)?,
            (None, _) => self.tensors.take(name, shape, Dtype::F32)?,
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

/// Walks over the network's parameters and cuts the gradients of those that are learnt into the tensors'.
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
