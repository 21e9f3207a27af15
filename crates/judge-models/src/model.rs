use std::fmt;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use judge_core::{
    Backbone, BackboneError, Exchange, LabelInContext, Layer, ModelIdentity, ModelInfo, Prompt, Request, RewardHead,
    TextModel, TokenId,
};

use crate::arch::{Architecture, OneOrMany};
use crate::engine::Engine;
use crate::engine::packed::{PackedDecoder, PackedEncoder, Supported};
use crate::engine::tensor::{Batched, Shapes};
use crate::folder::{Folder, file};
use crate::reading::answers::{Answers, Sink};
use crate::reading::context::Context;
use crate::reading::driver::drive;
use crate::reading::groups::groups;
use crate::reading::labels::Heads;
use crate::text::{TextCodec, TextOptions};
use crate::weights::{self, Adapted, Adapter, HeadCounts, Tensors};
use crate::{
    Device, DevicesProblem, Dtype, Error, FoundModel, HubOptions, Kernel, ModelSource, device, fingerprint, hub,
};

/// Requests that are taken at a time; see [`Model::take`].
const STEP: usize = 64;

/// Requests that are answered together, at most.
const MOST: usize = 1024;

/// Full passes that the requests which are answered together are to be enough for.
const PASSES: usize = 8;

/// Bytes of text that become a token, roughly.
const BYTES_PER_TOKEN: usize = 4;

/// How a model is loaded.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadOptions {
    /// Where it runs: one device, or several cards that share its blocks, in their order, where one has too little memory.
    pub devices: Vec<Device>,
    /// Arithmetic of the weights; `None`: bf16 if most of the checkpoint is bf16 or f16, else f32.
    pub dtype: Option<Dtype>,
    /// Instructions of the products on the CPU; `None`: the fastest that the processor has. Each sums in an order
    /// of its own: name one that all machines have, and they return the same bits.
    pub kernel: Option<Kernel>,
    /// How text becomes tokens.
    pub text: TextOptions,
    /// The name to go by; `None`: the folder's own, or `ORG/NAME` in the hub's cache, with those of adapters behind a `+`.
    pub name: Option<String>,
    /// The hub revision that the folder holds, where known; recorded, not checked.
    pub revision: Option<String>,
    /// Folders of adapters (PEFT's LoRA, rsLoRA or DoRA), which are merged into the weights as they are loaded, one after another: in f32,
    /// rounded to the dtype once. The tokenizer is the base model's.
    pub adapters: Vec<PathBuf>,
    /// Upper bound on tokens (prompt plus new) in flight at once. Bounds memory, never changes a number. A longer
    /// sequence runs alone.
    pub max_batch_tokens: usize,
    /// Hash all bytes of the weights into the fingerprint, not a sample of every tensor. Reads the whole checkpoint.
    pub full_fingerprint: bool,
}

impl Default for LoadOptions {
    /// On the CPU, 16,384 tokens in flight, all else as the folder says.
    fn default() -> Self {
        Self {
            devices: vec![Device::Cpu],
            dtype: None,
            kernel: None,
            text: TextOptions::default(),
            name: None,
            revision: None,
            adapters: Vec::new(),
            max_batch_tokens: 16_384,
            full_fingerprint: false,
        }
    }
}

/// A frozen language model from a Hugging Face folder, a decoder or an encoder; what judges see of it is [`Backbone`].
///
/// On the CPU a prompt's numbers are bit-identical whatever runs beside it: sequences share passes, and what
/// prompts have in common at their beginning is computed once; every body there gives a row the same bits whatever
/// stands beside it and however a sequence is cut. The score head is a dot product in `f64`. On [`Device::Cuda`] sequences share padded
/// batches, and a prompt's numbers are the same within rounding, not to the bit.
///
/// Of an encoder only pooled states are read. Whatever needs logits, and attention entropies, is [unsupported](BackboneError::Unsupported); [`Backbone::token`] is
/// [`BackboneError::NoLogits`]. It runs on [`Device::Cpu`] alone, and heads that its folder may have do not count.
///
/// [`ModelInfo::fingerprint`] covers configuration, tokenizer and template whole, but of each large tensor a sample only, unless
/// [`LoadOptions::full_fingerprint`] is set: weights that were edited in a few places may keep it.
///
/// Log-probabilities are of the last layer over the whole vocabulary, with the family's soft-cap. The tokens of a
/// [continuation](judge_core::Want::continuations) are those that follow the prompt's own where both are tokenised together and begin with these, else
/// those of the text tokenised apart, without special tokens; this is the rule of lm-evaluation-harness. A continuation without a token makes its item
/// [unscored](judge_core::Reason::EmptyPrompt), one that exceeds the context [too long](judge_core::Reason::TooLong).
///
/// A [stop text](judge_core::Generation::stop) is looked for in the decoded text after each token. The tokens of a text that it ends are all that were
/// written; label reads at generated steps leave out those whose token begins at the cut or behind it.
pub struct Model {
    pub(crate) info: ModelInfo,
    pub(crate) context: Context,
    pub(crate) engine: Box<dyn Engine>,
    reward_head: Option<RewardHead>,
    max_batch_tokens: usize,
}

/// Which [`Engine`] a model gets.
#[derive(Clone, Copy)]
enum Choice {
    Packed,
    Batched(Shapes),
}

impl Choice {
    fn of(devices: &[Device]) -> Self {
        match devices {
            [Device::Cpu] => Self::Packed,
            _ => Self::Batched(Shapes::CUDA),
        }
    }
}

impl Model {
    /// Loads a model folder.
    ///
    /// # Errors
    /// [`Error`] says what in the folder is absent, damaged, contradictory or not supported, and where.
    pub fn load(folder: impl AsRef<Path>, options: &LoadOptions) -> Result<Self, Error> {
        Self::load_as(folder.as_ref(), options, device::to_burn(&options.devices)?, None)
    }

    /// Finds a model by its name and loads it: a folder, or `ORG/NAME[@REVISION]` of the hub, which is fetched into the hub's cache unless it is there
    /// ([`ModelSource`], with the environment's [`HubOptions`]).
    ///
    /// # Errors
    /// Those of [`ModelSource::resolve`] and of [`load`](Self::load).
    pub fn open(name: &str, options: &LoadOptions) -> Result<Self, Error> {
        Self::open_with(name, options, &HubOptions::from_env())
    }

    pub(crate) fn open_with(name: &str, options: &LoadOptions, hub: &HubOptions) -> Result<Self, Error> {
        let FoundModel { path, revision } = name.parse::<ModelSource>()?.resolve(hub)?;
        let revision = options.revision.clone().or(revision);
        Self::load(path, &LoadOptions { revision, ..options.clone() })
    }

    /// [`load`](Self::load) over batches of the given shapes, whatever the devices.
    #[cfg(test)]
    pub(crate) fn load_batched(
        folder: &Path,
        options: &LoadOptions,
        shapes: Shapes,
        devices: Vec<burn::tensor::Device>,
    ) -> Result<Self, Error> {
        Self::load_as(folder, options, devices, Some(Choice::Batched(shapes)))
    }

    fn load_as(
        folder: &Path,
        options: &LoadOptions,
        devices: Vec<burn::tensor::Device>,
        choice: Option<Choice>,
    ) -> Result<Self, Error> {
        let folder = Folder::open(folder)?;
        let mut spec = Architecture::from_json(folder.config())
            .map_err(|problem| Error::Config { path: folder.file(file::CONFIG), problem })?;
        let choice = choice.unwrap_or_else(|| Choice::of(&options.devices));
        let problem = match (&spec, choice) {
            (Architecture::Encoder(_), Choice::Batched(_)) => Some(DevicesProblem::Encoder),
            _ if devices.len() > spec.n_layers() => Some(DevicesProblem::TooMany { n_layers: spec.n_layers() }),
            _ => None,
        };
        if let Some(problem) = problem {
            return Err(Error::Devices { devices: options.devices.clone(), problem });
        }
        let codec = TextCodec::load(&folder, &options.text)?;
        let eos = match generation_eos(&folder)? {
            Some(eos) => eos,
            None => spec.eos().to_vec(),
        };

        let mut weights = match &spec {
            Architecture::Decoder(spec) => {
                let heads = HeadCounts::of(spec);
                weights::open(&folder, spec.is_tower, heads, spec.stacks(), spec.idle_tensors())?
            }
            Architecture::Encoder(spec) => weights::open_renamed(&folder, &|name| spec.own_name(name))?,
        };
        if let Architecture::Decoder(spec) = &mut spec
            && let Some(rows) = weights.vocabulary(&spec.embedding).filter(|rows| (1..spec.d_vocab).contains(rows))
        {
            tracing::info!(
                rows,
                d_vocab = spec.d_vocab,
                "the file leaves out rows of the vocabulary that no token has"
            );
            Arc::make_mut(spec).d_vocab = rows;
        }
        let dtype = options.dtype.unwrap_or_else(|| weights.stored_dtype());
        if options.dtype.is_none() && dtype == Dtype::Bf16 && weights.has_f16() {
            tracing::warn!(
                folder = %folder.path().display(),
                "the checkpoint is f16: its weights are rounded to bf16, which has three bits less; dtype f32 keeps them"
            );
        }
        let tensors = spec.tensors();
        weights.check(&tensors)?;
        let mut adapters = options.adapters.iter().map(|path| Adapter::open(path)).collect::<Result<Vec<_>, _>>()?;
        if let Architecture::Encoder(spec) = &spec {
            adapters.iter_mut().for_each(|adapter| adapter.rename(|name| spec.own_name(name)));
        }
        adapters.iter().try_for_each(|adapter| adapter.check(&tensors))?;
        let fingerprint = fingerprint::of(&folder, &*weights, &adapters, options.full_fingerprint)?;
        let tensors = &mut Adapted { base: &mut *weights, adapters: &mut adapters };
        let kernel = || Supported::choose(options.kernel);
        let engine: Box<dyn Engine> = match (&spec, choice) {
            (Architecture::Decoder(spec), Choice::Batched(shapes)) => {
                Box::new(Batched::load(Arc::clone(spec), &devices, dtype, shapes, tensors)?)
            }
            (Architecture::Decoder(spec), Choice::Packed) => {
                Box::new(PackedDecoder::load(Arc::clone(spec), kernel()?, dtype, tensors)?)
            }
            (Architecture::Encoder(spec), _) => {
                Box::new(PackedEncoder::load(Arc::clone(spec), kernel()?, dtype, tensors)?)
            }
        };
        let dimensions = spec.dimensions();
        let reward_head = match spec.labels() {
            Some(head) => {
                let weights = tensors.take(&head.name, &[head.labels.len(), dimensions.d_model], Dtype::F32)?;
                Some(
                    RewardHead::new(head.labels.clone(), weights, dimensions.d_model)
                        .map_err(|source| Error::Head { source })?,
                )
            }
            None => None,
        };
        let adapter_names = adapters.iter().map(|adapter| format!("+{}", adapter.name())).collect::<String>();
        weights.finish()?;

        let name = match &options.name {
            Some(name) => name.clone(),
            None => folder_name(folder.path()) + &adapter_names,
        };
        let mut info = ModelInfo::new(name, fingerprint, dimensions);
        info.revision = options.revision.clone();
        info.family = spec.family().to_owned();
        info.dtype = dtype.to_string();
        info.device = match engine.kernel() {
            Some(kernel) => format!("{} ({kernel})", device::names(&options.devices)),
            None => device::names(&options.devices),
        };
        let context = Context { spec, codec, eos };
        Ok(Self { info, context, engine, reward_head, max_batch_tokens: options.max_batch_tokens.max(1) })
    }

    /// The tokens of a prompt as the model is fed them, control tokens included.
    ///
    /// # Errors
    /// [`Error::Prompt`] for a prompt that has no token or that the template refuses, and the tokenizer's own.
    pub fn tokens(&self, prompt: &Prompt) -> Result<Vec<TokenId>, Error> {
        self.context.codec.encode(prompt)?.map_err(|unscored| Error::Prompt { unscored })
    }

    /// The head of a sequence classifier, such as a reward model, if the folder has one. Such a model has no logits over the vocabulary: what asks for
    /// them, or for text, is refused, and states are all that is read of it. Its prompts lose tokens at their end that are the folder's `pad_token_id`,
    /// as transformers passes over them. Encoders have none: their classifiers are not linear in a state.
    pub fn reward_head(&self) -> Option<&RewardHead> {
        self.reward_head.as_ref()
    }

    /// The layers whose attention entropies can be read: those with attention below them. It is all but the first in most families, and none in encoders.
    pub fn attention_layers(&self) -> Vec<Layer> {
        self.context.spec.attention_layers()
    }

    /// The head's rows of each set of labels that the requests name, as `f32` on the host.
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

    /// Takes the requests that are answered together: [`STEP`] at a time, until their texts have [`BYTES_PER_TOKEN`] bytes for each token of
    /// [`PASSES`] full passes, or there are [`MOST`] of them, or fewer come than were asked for. Enough to sort them by length, to share what they begin
    /// with and to fill batches; few enough that what waits is bounded.
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

    /// Answers requests, each once: all of them before it returns, unless `sink` breaks off.
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

/// The text that a request brings along.
fn text_bytes(request: &Request) -> usize {
    request.prompt.text_bytes() + request.want.continuations.iter().map(String::len).sum::<usize>()
}

impl TextModel for Model {
    fn identity(&self) -> ModelIdentity {
        self.info.identity()
    }

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

    fn label_in_context(&self, prompt: &Prompt, label: &str) -> Result<LabelInContext, BackboneError> {
        self.context.codec.label_in_context(prompt, label)
    }
}

impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Model").field("info", &self.info).finish_non_exhaustive()
    }
}

/// The end tokens that `generation_config.json` names, one or several; `None` if it names none.
fn generation_eos(folder: &Folder) -> Result<Option<Vec<TokenId>>, Error> {
    let Some(json) = folder.json(file::GENERATION_CONFIG)? else { return Ok(None) };
    match json.get("eos_token_id") {
        None | Some(serde_json::Value::Null) => Ok(None),
        Some(value) => {
            let eos: OneOrMany = serde_json::from_value(value.clone())
                .map_err(|source| Error::Json { path: folder.file(file::GENERATION_CONFIG), source })?;
            Ok(Some(eos.into_vec()))
        }
    }
}

/// The last part of the path that names something; a path such as `.` is resolved first. In the hub's cache that part is a commit, and `ORG/NAME` the name.
fn folder_name(path: &Path) -> String {
    let resolved = path.canonicalize();
    let named = resolved.as_deref().unwrap_or(path);
    if let Some(repo) = hub::repo_of_snapshot(named) {
        return repo;
    }
    named.file_name().unwrap_or(named.as_os_str()).to_string_lossy().into_owned()
}
