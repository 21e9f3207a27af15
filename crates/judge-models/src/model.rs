//! [`Model`]: takes a folder and answers requests. The top room of the crate, which joins the
//! others.
//!
//! ```text
//! load   folder ─► judge-arch (what to build) ─► checked, weights (tensors) ─► engine (holds them)
//!               └► text (tokenizer, template), fingerprint, eos      ─► Context, ModelInfo
//!
//! serve  take some requests ─► check each ─► head rows of their labels ─► groups of jobs
//!        each group: engine.passes ─► reading/driver ─► outcomes, as they are known
//!        until the exchange has no more requests, or breaks off
//! ```
//!
//! It owns the order in which a folder is opened and which engine a model gets, and how many
//! requests are answered together. It computes nothing and chooses no token. Requests that are
//! answered together are numbered from 0 inside (`place`); `serve` adds the number of those before
//! them.

use std::fmt;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use judge_arch::{Architecture, ConfigProblem, TOKEN_IDS, TokenIds};
use judge_core::{
    Backbone, Layer, ModelInfo, Prompt, Request, TextModel,
    model::{BackboneError, Exchange, LabelInContext, ModelIdentity},
    request::TokenId,
    reward::RewardHead,
};
use judge_hub::cache::repo_of_snapshot;
use judge_kernels::supported::Supported;
use judge_text::{TextCodec, TextOptions};

use crate::base::{self, Based};
use crate::checked::CheckedWeights;
use crate::engine::Engine;
use crate::engine::devices::{self, BurnDevice};
use crate::engine::packed::{PackedCache, PackedDecoder, PackedEncoder, cache_key};
#[cfg(any(test, feature = "tensor"))]
use crate::engine::tensor::{Batched, Precision, Shapes, batch_tokens};
use crate::folder::{Folder, file};
use crate::reading::answers::{Answers, Sink};
use crate::reading::context::Context;
use crate::reading::driver::drive;
use crate::reading::groups::groups;
use crate::reading::labels::Heads;
use crate::weights::{InInt8, Tensors};
use crate::{
    Device, DevicesProblem, Dtype, Error, FoundModel, HubOptions, Kernel, ModelSource, WeightForm, device, fingerprint,
    reward_head,
};

/// Requests that are taken at a time; see [`Model::take`].
const STEP: usize = 64;

/// Tokens in flight at once on the processor, unless the options say otherwise: enough rows for
/// products to run at full speed on any number of cores.
const MAX_BATCH_TOKENS: usize = 16_384;

/// Requests that are answered together, at most. Bounds memory where texts are very short.
const MOST: usize = 1024;

/// The requests that are answered together are to be enough for this many full passes.
const PASSES: usize = 8;

/// Bytes of text that become a token, roughly. Texts are not tokenised yet when requests are
/// counted.
const BYTES_PER_TOKEN: usize = 4;

/// How a model is loaded.
///
/// Write it as `LoadOptions { dtype: …, ..LoadOptions::default() }`.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadOptions {
    /// Where it runs: one device, or several GPUs that share its blocks, in their order, where one
    /// has too little memory. By default the CPU.
    pub devices: Vec<Device>,
    /// Arithmetic of the weights; `None`: bf16 if most of the checkpoint is bf16 or f16, else f32; f32
    /// through wgpu.
    pub dtype: Option<Dtype>,
    /// What weights are kept as in memory.
    pub weights: WeightForm,
    /// Instructions of the products on the CPU; `None`: the fastest that the processor has. Each
    /// sums in an order of its own: name one that all machines have, and they return the same bits.
    pub kernel: Option<Kernel>,
    /// How text becomes tokens.
    pub text: TextOptions,
    /// The name to go by; `None`: the folder's own, or `ORG/NAME` in the hub's cache, with those of
    /// adapters behind a `+`.
    pub name: Option<String>,
    /// The hub revision that the folder holds, where known; recorded, not checked.
    pub revision: Option<String>,
    /// Folders of adapters (PEFT's LoRA, rsLoRA or DoRA), which are merged into the weights as they
    /// are loaded, one after another: in f32, rounded to the dtype once. The tokenizer is the base
    /// model's.
    pub adapters: Vec<PathBuf>,
    /// Upper bound on tokens (prompt plus new) in flight at once; 0 is taken for 1. `None`: 16,384
    /// on the processor and through wgpu, which does not say how much memory there is; on
    /// NVIDIA's GPUs as many as suit the model and the memory that the smallest of them
    /// has in all, from 1,024 to 65,536 ([`Model::max_batch_tokens`]). Bounds memory. On the processor
    /// it never changes a number, on a GPU only the last digits. A longer sequence runs alone.
    pub max_batch_tokens: Option<usize>,
    /// A folder where packed weights are kept, which is made if it is not there: a model that was
    /// loaded with it before starts at once, and processes that run the same model share its memory.
    /// A file takes about as much room as the checkpoint in the dtype, and is for one state of the
    /// folder, of its adapters and of the dtype; whether these changed is told by the fingerprint and
    /// by sizes and times of files of weights. Files that no model needs any longer are not deleted,
    /// nor hidden ones that a process left behind which was killed while it wrote.
    ///
    /// On the processor alone: GPUs refuse it.
    pub packed_cache: Option<PathBuf>,
    /// Hash all bytes of the weights into the fingerprint, not a sample of every tensor. Reads the
    /// whole checkpoint.
    pub full_fingerprint: bool,
}

impl Default for LoadOptions {
    /// On the CPU, all else as the folder says.
    fn default() -> Self {
        Self {
            devices: vec![Device::Cpu],
            dtype: None,
            weights: WeightForm::AsStored,
            kernel: None,
            text: TextOptions::default(),
            name: None,
            revision: None,
            adapters: Vec::new(),
            max_batch_tokens: None,
            packed_cache: None,
            full_fingerprint: false,
        }
    }
}

/// A frozen language model from a Hugging Face folder, a decoder or an encoder; what judges see of
/// it is [`Backbone`].
///
/// On the CPU a prompt's numbers are bit-identical whatever runs beside it. Sequences share passes,
/// and what prompts have in common at their beginning is computed once; but every operation gives a
/// row the same bits whatever the other rows are and however a sequence is cut. The score head is a
/// dot product in `f64`. On GPUs sequences share padded batches, and a prompt's numbers
/// are the same within rounding, not to the bit.
///
/// Of an encoder pooled states are read, also for its [head](Self::reward_head). Whatever needs logits over a
/// vocabulary, and attention entropies, is [unsupported](BackboneError::Unsupported); [`Backbone::token`] is
/// [`BackboneError::NoLogits`]. It runs on [`Device::Cpu`] alone. With a head and without a chat template it reads a
/// conversation that opens no reply: one turn as its text, two as a pair of texts.
///
/// [`ModelInfo::fingerprint`] covers configuration, tokenizer and template whole, but of each large
/// tensor a sample only, unless [`LoadOptions::full_fingerprint`] is set: weights that were edited
/// in a few places may keep it.
///
/// Log-probabilities are of the last layer over the whole vocabulary, with the family's soft-cap.
/// The tokens of a [continuation](judge_core::Want::continuations) are those that follow the
/// prompt's own where both are tokenised together and begin with these, else those of the text
/// tokenised apart, without special tokens; this is the rule of lm-evaluation-harness. A
/// continuation without a token makes its item [unscored](judge_core::Reason::EmptyPrompt), one
/// that exceeds the context [too long](judge_core::Reason::TooLong).
///
/// A [stop text](judge_core::request::Generation::stop) is looked for in the decoded text after each token.
/// The tokens of a text that it ends are all that were written; label reads at generated steps
/// leave out those whose token begins at the cut or behind it.
pub struct Model {
    /// Name, dimensions, fingerprint, dtype and device, as judges and run records see them.
    pub(crate) info: ModelInfo,
    /// Description, tokenizer and end tokens.
    pub(crate) context: Context,
    /// The weights, where they are computed with.
    pub(crate) engine: Box<dyn Engine>,
    /// Heads of labels, from the lowest layer to the last one, kept on the host in f32.
    reward_heads: Vec<RewardHead>,
    /// [`LoadOptions::max_batch_tokens`], or what was chosen for `None`; at least 1.
    max_batch_tokens: usize,
}

/// Which [`Engine`] a model gets.
#[derive(Clone, Copy)]
enum Choice {
    /// Packed weights on the CPU: the decoder's or the encoder's.
    Packed,
    /// Burn's operations over padded batches of these shapes, on any devices, in the precision that a
    /// dtype means there. Decoders only.
    #[cfg(any(test, feature = "tensor"))]
    Batched(Shapes, fn(Dtype) -> Precision),
}

impl Choice {
    /// Packed weights on a single CPU, batches on everything else.
    fn of(devices: &[Device]) -> Self {
        match devices {
            [Device::Cpu] => Self::Packed,
            #[cfg(any(test, feature = "tensor"))]
            [device] if device.has_f32_alone() => Self::Batched(Shapes::CUDA, |_| Precision::FULL),
            #[cfg(any(test, feature = "tensor"))]
            _ => Self::Batched(Shapes::CUDA, Precision::on_gpus),
            // A build without Burn has no device but the CPU, which is known before.
            #[cfg(not(any(test, feature = "tensor")))]
            _ => Self::Packed,
        }
    }
}

/// The most tokens in flight where nobody says it; see [`LoadOptions::max_batch_tokens`].
///
/// # Errors
/// [`Error::Cuda`] if a GPU's driver does not say how much memory it has.
fn default_batch_tokens(spec: &Architecture, dtype: Dtype, devices: &[Device]) -> Result<usize, Error> {
    #[cfg(any(test, feature = "tensor"))]
    if let (Some(memory), Architecture::Decoder(spec)) = (devices::least_memory(devices)?, spec) {
        let tokens = batch_tokens(spec, dtype, devices.len(), memory);
        tracing::info!("batches of at most {tokens} tokens, by a GPU memory of {memory} bytes");
        return Ok(tokens);
    }
    let _ = (spec, dtype, devices);
    Ok(MAX_BATCH_TOKENS)
}

impl Model {
    /// Loads a model folder, or an adapter's folder over the base model that its `adapter_config.json` names: a
    /// folder, by a path that is absolute or begins at the adapter's, or a model in the hub's cache.
    ///
    /// # Errors
    /// [`Error`] says what in the folder is absent, damaged, contradictory or not supported, and
    /// where.
    pub fn load(folder: impl AsRef<Path>, options: &LoadOptions) -> Result<Self, Error> {
        Self::load_as(folder.as_ref(), options, devices::to_burn(&options.devices)?, None)
    }

    /// The [`ModelInfo::fingerprint`] that [`load`](Self::load) would give, without loading:
    /// it reads as much of the weights as a fingerprint takes, a sample
    /// unless [`LoadOptions::full_fingerprint`] is set. By it a program knows a model again before it does any work.
    ///
    /// # Errors
    /// Those of [`load`](Self::load) for the folder, its configuration, the names and shapes of its tensors, and its adapters.
    pub fn fingerprint_of(folder: impl AsRef<Path>, options: &LoadOptions) -> Result<String, Error> {
        let Based { model, adapters } = Based::of(folder.as_ref(), &options.adapters, &HubOptions::from_env())?;
        let folder = Folder::open(model.path)?;
        let mut spec = Architecture::from_json(folder.config()).map_err(|problem| folder.wrong_config(problem))?;
        let dtype = options.dtype.map(Dtype::of_weights);
        let weights = CheckedWeights::open(&folder, &mut spec, dtype, &adapters)?;
        fingerprint::of(&folder, &weights.hashed(), options.full_fingerprint)
    }

    /// Finds a model by its name and loads it: a folder, or `ORG/NAME[@REVISION]` of the hub, which
    /// is fetched into the hub's cache unless it is there ([`ModelSource`], with the environment's
    /// [`HubOptions`]).
    ///
    /// # Errors
    /// Those of [`ModelSource::resolve`] and of [`load`](Self::load).
    pub fn open(name: &str, options: &LoadOptions) -> Result<Self, Error> {
        Self::open_with(name, options, &HubOptions::from_env())
    }

    /// [`open`](Self::open) with other settings of the hub. The revision that was found is
    /// recorded, unless the options name one.
    pub(crate) fn open_with(name: &str, options: &LoadOptions, hub: &HubOptions) -> Result<Self, Error> {
        let FoundModel { path, revision } = name.parse::<ModelSource>()?.resolve(hub)?;
        let revision = options.revision.clone().or(revision);
        Self::load(path, &LoadOptions { revision, ..options.clone() })
    }

    /// [`load`](Self::load) over batches of the given shapes as on GPUs, whatever the devices of the options.
    #[cfg(test)]
    pub(crate) fn load_batched(
        folder: &Path,
        options: &LoadOptions,
        shapes: Shapes,
        devices: Vec<BurnDevice>,
    ) -> Result<Self, Error> {
        Self::load_as(folder, options, devices, Some(Choice::Batched(shapes, Precision::on_gpus)))
    }

    /// Loads a folder on Burn's `devices`, with the engine of `choice` or else the one that suits
    /// the options' devices. What is cheap comes first: configuration, devices and tokenizer are
    /// checked before weights are opened, names and shapes of tensors before any is read.
    fn load_as(
        folder: &Path,
        options: &LoadOptions,
        devices: Vec<BurnDevice>,
        choice: Option<Choice>,
    ) -> Result<Self, Error> {
        let Based { model, adapters } = Based::of(folder, &options.adapters, &HubOptions::from_env())?;
        let folder = Folder::open(model.path)?;
        let mut spec = Architecture::from_json(folder.config()).map_err(|problem| folder.wrong_config(problem))?;
        spec.warn_of_unread(folder.config());
        let choice = choice.unwrap_or_else(|| Choice::of(&options.devices));
        let f32_alone = options.devices.iter().any(|device| device.has_f32_alone());
        let is_packed = matches!(choice, Choice::Packed);
        let problem = match &spec {
            Architecture::Encoder(_) if !is_packed => Some(DevicesProblem::Encoder),
            _ if !is_packed && options.packed_cache.is_some() => Some(DevicesProblem::PackedCache),
            _ if !is_packed && options.weights != WeightForm::AsStored => {
                Some(DevicesProblem::WeightForm { form: options.weights })
            }
            _ if options.dtype == Some(Dtype::Tf32) && (f32_alone || is_packed) => Some(DevicesProblem::Tf32),
            _ if f32_alone && options.dtype == Some(Dtype::Bf16) => Some(DevicesProblem::F32Alone),
            _ if devices.len() > spec.n_layers() => Some(DevicesProblem::TooMany { n_layers: spec.n_layers() }),
            _ => None,
        };
        if let Some(problem) = problem {
            return Err(Error::Devices { devices: options.devices.clone(), problem });
        }
        let codec = TextCodec::load(folder.files(), &options.text)?;
        let eos = match generation_eos(&folder)? {
            Some(eos) => eos,
            None => spec.eos().to_vec(),
        };

        let asked = if f32_alone { Some(Dtype::F32) } else { options.dtype };
        let mut weights = CheckedWeights::open(&folder, &mut spec, asked.map(Dtype::of_weights), &adapters)?;
        let dtype = weights.dtype;
        // What was asked for, or follows from the checkpoint.
        let arithmetic = asked.unwrap_or(dtype);
        let fingerprint = fingerprint::of(&folder, &weights.hashed(), options.full_fingerprint)?;
        let max_batch_tokens = match options.max_batch_tokens {
            Some(tokens) => tokens.max(1),
            None => default_batch_tokens(&spec, dtype, &options.devices)?,
        };
        let mut cache = PackedCache::Off;
        let mut kernel = || -> Result<Supported, Error> {
            let kernel = Supported::choose(options.kernel)?;
            if let Some(to) = &options.packed_cache {
                let is_padded = kernel.of_floats() == Kernel::Amx;
                let file = folder.gguf().map(|file| file.path());
                let folders = [folder.path()].into_iter().chain(file).chain(adapters.iter().map(PathBuf::as_path));
                cache = PackedCache::open(to, &cache_key(&fingerprint, dtype, options.weights, is_padded, folders)?)?;
            }
            Ok(kernel)
        };
        let mut merged = weights.merged();
        let mut rounded;
        let tensors: &mut dyn Tensors = match options.weights {
            WeightForm::AsStored => &mut merged,
            WeightForm::Int8 => {
                rounded = InInt8 { tensors: &mut merged };
                &mut rounded
            }
        };
        let engine: Box<dyn Engine> = match (&spec, choice) {
            #[cfg(any(test, feature = "tensor"))]
            (Architecture::Decoder(spec), Choice::Batched(shapes, precision)) => {
                Box::new(Batched::load(Arc::clone(spec), &devices, precision(arithmetic), shapes, tensors)?)
            }
            (Architecture::Decoder(spec), Choice::Packed) => {
                let kernel = kernel()?;
                Box::new(PackedDecoder::load(Arc::clone(spec), kernel, dtype, tensors, &mut cache)?)
            }
            (Architecture::Encoder(spec), _) => {
                let kernel = kernel()?;
                Box::new(PackedEncoder::load(Arc::clone(spec), kernel, dtype, tensors, &mut cache)?)
            }
        };
        let dimensions = spec.dimensions();
        let mut reward_heads = reward_head::take(&spec, tensors)?;
        if let (true, Some(head)) = (reward_heads.is_empty(), &mut weights.value_head) {
            reward_heads.push(head.take(dimensions.d_model)?);
        }
        let adapter_names = weights.adapters.iter().map(|adapter| format!("+{}", adapter.name())).collect::<String>();
        weights.base.finish()?;
        cache.finish()?;

        let name = match &options.name {
            Some(name) => name.clone(),
            None => folder_name(folder.given()) + &adapter_names,
        };
        let mut info = ModelInfo::new(name, fingerprint, dimensions);
        info.revision = options.revision.clone().or(model.revision);
        info.family = spec.family().to_owned();
        info.dtype = match options.weights {
            WeightForm::AsStored => arithmetic.to_string(),
            form => format!("{form}-{dtype}"),
        };
        info.device = match engine.kernel() {
            Some(kernel) => format!("{} ({kernel})", device::names(&options.devices)),
            None => device::names(&options.devices),
        };
        info.final_soft_cap = spec.final_soft_cap();
        let context = Context { spec, codec, eos };
        info.notes = base::notes(&folder, &adapters);
        info.notes.extend(weights.loss.into_iter().chain(context.tokens_beyond()).chain(context.codec.notes()));
        for note in &info.notes {
            tracing::warn!("{note}");
        }
        Ok(Self { info, context, engine, reward_heads, max_batch_tokens })
    }

    /// The tokens of a prompt as the model is fed them, control tokens included. Those that a model
    /// with a [head of labels](Self::reward_head) loses at their end are still there.
    ///
    /// # Errors
    /// [`Error::Prompt`] for a prompt that has no token or that the template refuses, and the
    /// tokenizer's own.
    pub fn tokens(&self, prompt: &Prompt) -> Result<Vec<TokenId>, Error> {
        Ok(self.context.fed(prompt, usize::MAX)?.ids)
    }

    /// How many tokens of a prompt that [may be cut](Prompt::truncation) are cut, because it is too long; 0 of any other.
    ///
    /// # Errors
    /// Those of [`tokens`](Self::tokens).
    pub fn cut_tokens(&self, prompt: &Prompt) -> Result<usize, Error> {
        Ok(self.context.fed(prompt, usize::MAX)?.cut)
    }

    /// The types of the [tokens](Self::tokens) of a prompt (`token_type_ids`), by which BERT tells the two texts of a
    /// pair apart. Empty where all are 0.
    ///
    /// # Errors
    /// Those of [`tokens`](Self::tokens).
    pub fn token_types(&self, prompt: &Prompt) -> Result<Vec<u32>, Error> {
        Ok(self.context.fed(prompt, usize::MAX)?.types)
    }

    /// A kernel that this processor has and that would multiply matrices of this model, which are kept as
    /// signed codes of eight bits or as integers of four, as integers: mostly faster, and with activations rounded to eight bits as
    /// well, so scores differ. `None` where there is no such kernel or matrix, or where the model was
    /// loaded with it. It is never chosen unless [`LoadOptions::kernel`] names it.
    pub fn kernel_of_integers(&self) -> Option<Kernel> {
        self.engine.kernel_of_integers()
    }

    /// The head of a sequence classifier, such as a reward model, if the folder or an adapter has one. Such a
    /// model has no logits over the vocabulary: what asks for them, or for text, is refused, and
    /// states are all that is read of it. Its prompts lose tokens at their end that are the
    /// folder's `pad_token_id`, as transformers passes over them.
    ///
    /// It may be LLaMA-Factory's value head as well (`value_head.safetensors`), which reads the last token, whatever
    /// that is, of a model that has logits besides. That of an encoder reads the state of the first token, or the mean,
    /// by steps before the labels. Numbers are the head's own, without a sigmoid or a softmax behind them.
    pub fn reward_head(&self) -> Option<&RewardHead> {
        self.reward_heads.last()
    }

    /// All heads of labels, from the lowest layer to the last one: more than one where layers have heads of their own, as in
    /// layer-wise rerankers. Each reads its own layer, and blocks above it are not run.
    pub fn reward_heads(&self) -> &[RewardHead] {
        &self.reward_heads
    }

    /// The most tokens (prompts plus new ones) in flight at once: [`LoadOptions::max_batch_tokens`],
    /// or the number that was chosen where that is `None`.
    pub fn max_batch_tokens(&self) -> usize {
        self.max_batch_tokens
    }

    /// The head's rows of each set of labels that the requests name, as `f32` on the host. Each set
    /// is fetched once.
    fn heads<'r>(&self, requests: &'r [Request]) -> Result<Heads<'r>, Error> {
        let mut heads = Heads::new();
        for read in requests.iter().flat_map(|request| &request.want.labels) {
            if !heads.contains_key(read.tokens.as_slice()) {
                let rows = self.engine.head_rows(&read.tokens)?;
                heads.insert(read.tokens.as_slice(), rows);
            }
        }
        Ok(heads)
    }

    /// Takes the requests that are answered together: [`STEP`] at a time, until their texts have
    /// [`BYTES_PER_TOKEN`] bytes for each token of [`PASSES`] full passes, or there are [`MOST`] of
    /// them, or fewer come than were asked for. Enough to sort them by length, to share what they
    /// begin with and to fill batches; few enough that what waits is bounded. Empty if the exchange
    /// has none.
    fn take(&self, exchange: &mut dyn Exchange) -> Vec<Request> {
        let enough = self.max_batch_tokens.saturating_mul(PASSES * BYTES_PER_TOKEN);
        let (mut requests, mut bytes) = (Vec::new(), 0_usize);
        while requests.len() < MOST && bytes < enough {
            let some = exchange.take(STEP);
            let is_short = some.len() < STEP;
            bytes = bytes.saturating_add(some.iter().map(text_bytes).sum());
            requests.extend(some);
            if is_short {
                break;
            }
        }
        requests
    }

    /// Answers requests, each once: all of them before it returns, unless `sink` breaks off. Groups
    /// are answered one after another.
    fn answer_all(&self, requests: &[Request], sink: &mut Sink<'_>) -> Result<(), Error> {
        let heads = self.heads(requests)?;
        let mut answers = Answers::new(sink);
        let ControlFlow::Continue(groups) = groups(&self.context, requests, &heads, &mut answers)? else {
            return Ok(());
        };
        for group in &groups {
            let mut passes = self.engine.passes(group, self.max_batch_tokens);
            if drive(&self.context, &group.jobs, &mut *passes, &mut answers)?.is_break() {
                break;
            }
        }
        Ok(())
    }
}

/// Bytes of the text that a request brings along, prompt and continuations.
fn text_bytes(request: &Request) -> usize {
    request.prompt.text_bytes() + request.want.continuations.iter().map(String::len).sum::<usize>()
}

impl TextModel for Model {
    fn identity(&self) -> ModelIdentity {
        self.info.identity()
    }

    fn tokens_in(&self, text: &str) -> Option<usize> {
        self.context.codec.tokens_in(text)
    }

    /// Checks every request of those that are answered together before it works on any of them, so
    /// an error of a request comes before their outcomes.
    fn serve(&self, exchange: &mut dyn Exchange) -> Result<(), BackboneError> {
        let mut first = 0;
        loop {
            let requests = self.take(exchange);
            if requests.is_empty() {
                return Ok(());
            }
            for (place, request) in requests.iter().enumerate() {
                self.context.check(first + place, request)?;
            }
            let mut is_over = false;
            let sink = &mut |place: usize, outcome| {
                let flow = exchange.give(first + place, outcome);
                is_over = flow.is_break();
                flow
            };
            self.answer_all(&requests, sink).map_err(|error| BackboneError::Model(Box::new(error)))?;
            if is_over {
                return Ok(());
            }
            first += requests.len();
        }
    }
}

impl Backbone for Model {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn token(&self, label: &str) -> Result<TokenId, BackboneError> {
        if let Some(what) = self.context.no_logits() {
            return Err(BackboneError::NoLogits { label: label.to_owned(), what });
        }
        self.context.codec.label(label)
    }

    fn label_token(&self, label: &str) -> Result<TokenId, BackboneError> {
        if let Some(what) = self.context.no_logits() {
            return Err(BackboneError::NoLogits { label: label.to_owned(), what });
        }
        self.context.codec.label_alone(label)
    }

    fn label_in_context(&self, prompt: &Prompt, label: &str) -> Result<LabelInContext, BackboneError> {
        let id = self.context.codec.label(label)?;
        self.context.codec.label_in_context(prompt, label, id).map_err(|error| match error.into() {
            Error::Prompt { unscored } => BackboneError::Prompt(unscored),
            other => BackboneError::Model(Box::new(other)),
        })
    }

    fn attention_layers(&self) -> Vec<Layer> {
        self.context.spec.attention_layers()
    }
}

impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Model").field("info", &self.info).finish_non_exhaustive()
    }
}

/// The end tokens that `generation_config.json` names, one or several; `None` if it does not have the
/// field or is absent. A negative id counts as stated and stands for no token, as in transformers.
fn generation_eos(folder: &Folder) -> Result<Option<Vec<TokenId>>, Error> {
    let Some(json) = folder.json(file::GENERATION_CONFIG)? else { return Ok(None) };
    match json.get("eos_token_id") {
        None | Some(serde_json::Value::Null) => Ok(None),
        Some(value) => match TokenIds::of(value) {
            Some(ids) => Ok(Some(ids.0)),
            None => Err(Error::Config {
                path: folder.file(file::GENERATION_CONFIG),
                problem: ConfigProblem::Value {
                    field: "eos_token_id",
                    found: value.to_string(),
                    expected: TOKEN_IDS.to_owned(),
                },
            }),
        },
    }
}

/// The last part of the path that names something; a path such as `.` is resolved first. In the
/// hub's cache that part is a commit, and `ORG/NAME` is the name.
fn folder_name(path: &Path) -> String {
    let resolved = path.canonicalize();
    let named = resolved.as_deref().unwrap_or(path);
    if let Some(repo) = repo_of_snapshot(named) {
        return repo;
    }
    // A GGUF file goes by its name without the ending.
    let is_file = path.is_file();
    let named = if is_file { path } else { named };
    let stem = if is_file { named.file_stem() } else { None };
    if let Some(stem) = stem {
        return stem.to_string_lossy().into_owned();
    }
    named.file_name().unwrap_or(named.as_os_str()).to_string_lossy().into_owned()
}
