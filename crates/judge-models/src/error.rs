//! The crate's error and what it says of files, tensors, shards and adapters.
//!
//! Variants of [`Error`] say where (a path, a tensor, a repository) and hold a problem that says
//! what was expected and found. Problems that only one part of the crate has are defined there
//! (`ConfigProblem`, `GgufProblem`, `DevicesProblem`, `ApiProblem`, `TrainProblem`); those that
//! several files share are here. What is one item's own fault is not an error but
//! `judge_core::Unscored`.

use std::path::PathBuf;

use judge_hub::error::HubError;
use judge_kernels::kernel::UnknownKernel;
use judge_kernels::supported::NoKernel;

use crate::gguf::OpenProblem;
use crate::{CudaProblem, DevicesProblem};

/// Everything that can go wrong while a model is found, loaded or run, apart from what is one
/// item's own fault ([`Unscored`](judge_core::Unscored)).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or folder could not be read.
    #[error("cannot read {path}: {source}", path = path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A file could not be written or removed, or its folder could not be made.
    #[error("cannot write {path}: {source}", path = path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A folder is to be written where there is something. Nothing was changed.
    #[error("{path} exists: name a folder that does not, or an empty one", path = path.display())]
    OutputExists {
        /// The path that was to be written.
        path: PathBuf,
    },
    /// A model is a folder, and this is none.
    #[error(
        "{path} is not a folder{}",
        if path.is_file() { ", and the file does not begin as GGUF files do" } else { "" },
        path = path.display()
    )]
    NotAFolder {
        /// The path that was named as a model's.
        path: PathBuf,
    },
    /// A file that every model folder must have is absent.
    #[error("{folder} has no {wanted}; it has {found:?}", folder = folder.display())]
    MissingFile {
        /// The model's folder.
        folder: PathBuf,
        /// The name of the file that was looked for, or a description where several would do.
        wanted: &'static str,
        /// Names of the files that are there.
        found: Vec<String>,
    },
    /// A file's place is taken by something else.
    #[error("{path} is {found}", path = path.display())]
    StandIn {
        /// The file.
        path: PathBuf,
        /// What it holds.
        found: StandIn,
    },
    /// The head of labels and the model do not go together.
    #[error("the model's head of labels: {source}")]
    Head {
        /// What does not fit.
        source: judge_core::Error,
    },
    /// A file of a decision model is not what it must be.
    #[error("{path}: {problem}", path = path.display())]
    Decision {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: judge_core::decision::DecisionProblem,
    },
    /// An adapter that cannot be merged.
    #[error("the adapter {path}: {problem}", path = path.display())]
    Adapter {
        /// The adapter's folder.
        path: PathBuf,
        /// What is wrong.
        problem: AdapterProblem,
    },
    /// A file of text is not UTF-8.
    #[error("{path} is not UTF-8 from byte {offset} on", path = path.display())]
    Encoding {
        /// The file.
        path: PathBuf,
        /// Offset of the first byte that is not, from 0.
        offset: usize,
    },
    /// A file is not JSON, or not with the fields it should have.
    #[error("{path}: {source}", path = path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// What is wrong, with line and column.
        source: serde_json::Error,
    },
    /// `config.json` does not describe a model that this crate can build.
    #[error("{path}: {problem}", path = path.display())]
    Config {
        /// The `config.json`.
        path: PathBuf,
        /// What is wrong.
        problem: crate::ConfigProblem,
    },
    /// The folder asks for something that this crate does not do. It is refused and never ignored.
    #[error("{path}: {field}: {found} is not supported, only {supported}", path = path.display())]
    Unsupported {
        /// The file that asks for it.
        path: PathBuf,
        /// The field or setting in the file.
        field: String,
        /// Its value.
        found: String,
        /// What is supported in its place.
        supported: &'static str,
    },
    /// `model.safetensors.index.json`, or that of `pytorch_model.bin`, does not describe the shards.
    #[error("{path}: {problem}", path = path.display())]
    Index {
        /// The index.
        path: PathBuf,
        /// What is wrong.
        problem: IndexProblem,
    },
    /// A file of weights in safetensors form is damaged.
    #[error("{path}: {problem}", path = path.display())]
    WeightsFile {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: FileProblem,
    },
    /// A file of packed weights ([`LoadOptions::packed_cache`](crate::LoadOptions::packed_cache)) is not
    /// what was written.
    #[error("{path}: {problem}: delete the file, and it is written again", path = path.display())]
    PackedCache {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: PackedCacheProblem,
    },
    /// A GGUF file is damaged, or holds what this crate does not read.
    #[error("{path}: {problem}", path = path.display())]
    Gguf {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: crate::GgufProblem,
    },
    /// A file of torch.save is damaged, or holds more than tensors.
    #[error("{path}: {problem}", path = path.display())]
    PyTorch {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: crate::PyTorchProblem,
    },
    /// A SentencePiece file is damaged, or no such file.
    #[error("{path}: {problem}", path = path.display())]
    SentencePiece {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: crate::SentencePieceProblem,
    },
    /// One tensor is not what the model's description or the file's own form requires.
    #[error("{path}: tensor {tensor}: {problem}", path = path.display())]
    Tensor {
        /// The file that it is in.
        path: PathBuf,
        /// Its name in the file.
        tensor: String,
        /// What is wrong.
        problem: TensorProblem,
    },
    /// The checkpoint's tensors are not those of the model.
    #[error("tensors missing: {missing:?}; tensors that the model has no place for: {unused:?}")]
    TensorNames {
        /// Names that the model needs and the checkpoint lacks.
        missing: Vec<String>,
        /// Names that the checkpoint has and the model does not use.
        unused: Vec<String>,
    },
    /// A GPU was asked for in a build that cannot use it.
    #[error("{device} was asked for, but this build cannot use it: it lacks the feature `{}` of judge-models", device.feature())]
    NotInBuild {
        /// The device asked for.
        device: crate::Device,
    },
    /// wgpu lists fewer GPUs than the index needs.
    #[error("{device} was asked for, but wgpu lists {found} GPUs on this machine, numbered from 0")]
    NoAdapter {
        /// The device asked for.
        device: crate::Device,
        /// GPUs that it lists.
        found: usize,
    },
    /// A GPU was asked for that cannot be used.
    #[error("{device} was asked for, but {problem}")]
    Cuda {
        /// The device asked for.
        device: crate::Device,
        /// What is missing.
        problem: CudaProblem,
    },
    /// One model cannot be spread over the devices named.
    #[error("devices {}: {problem}", crate::device::names(.devices))]
    Devices {
        /// The devices asked for, in their order.
        devices: Vec<crate::Device>,
        /// Why not.
        problem: DevicesProblem,
    },
    /// A text is not the name of a device.
    #[error("{found:?} is no device, expected cpu or cuda:INDEX")]
    UnknownDevice {
        /// The text.
        found: String,
    },
    /// A text is not the name of a dtype.
    #[error("{found:?} is no dtype, expected f32, tf32 or bf16")]
    UnknownDtype {
        /// The text.
        found: String,
    },

    /// A text is not the name of a form of weights.
    #[error("{found:?} is no form of weights: expected as-stored or int8")]
    UnknownWeightForm {
        /// The text.
        found: String,
    },

    /// A text is not the name of a kernel.
    #[error(transparent)]
    UnknownKernel(#[from] UnknownKernel),

    /// A kernel was asked for whose instructions this processor lacks.
    #[error(transparent)]
    NoKernel(#[from] NoKernel),
    /// A chat prompt needs a chat template, and the folder has none.
    #[error("{folder} has no chat template (chat_template.jinja, or chat_template in tokenizer_config.json)", folder = folder.display())]
    NoChatTemplate {
        /// The model's folder.
        folder: PathBuf,
    },
    /// The chat template does not compile.
    #[error("{path}: chat template: {source}", path = path.display())]
    ChatTemplate {
        /// The file that it is in.
        path: PathBuf,
        /// What is wrong, with the line.
        source: std::sync::Arc<dyn std::error::Error + Send + Sync>,
    },
    /// The Jinja template of a decision's prompt does not compile.
    #[error("the template of a prompt: {source}")]
    PromptTemplate {
        /// What is wrong, with the line.
        source: std::sync::Arc<dyn std::error::Error + Send + Sync>,
    },
    /// A prompt cannot be tokenised where its tokens themselves were asked for: the template
    /// refuses it, or it has none.
    #[error("the prompt cannot be read: {unscored}")]
    Prompt {
        /// The reason that an item with this prompt would get.
        unscored: judge_core::Unscored,
    },
    /// An operation on a device failed, or numbers could not be read back from it; a GPU may have
    /// no memory left.
    #[error("an operation on the device failed: {source}")]
    Device {
        /// What the device's runtime says.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The weights of a model did not all arrive on its device, whose memory may be too small.
    #[error("the model's weights did not all reach the device, whose memory may be too small for them: {source}")]
    Upload {
        /// What reading some of them back brought.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The system gave no threads to run on.
    #[error("cannot start threads: {source}")]
    Threads {
        /// What the system says.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A pass brought no state to generate from, or a model without a head over a vocabulary was
    /// asked for one. Says that this crate is wrong, not its input.
    #[error("the forward pass brought no state")]
    NothingRead,
    /// A model's name is neither a folder or file that exists nor a hub id.
    #[error(
        "{found:?} is neither a folder or GGUF file nor a hub id of the form ORG/NAME, ORG/NAME@REVISION or ORG/NAME:FILE.gguf"
    )]
    ModelName {
        /// The name that was given.
        found: String,
    },
    /// Offline, and the hub's cache does not have the model, or not all of it.
    #[error("{repo} at revision {revision} is not (or not wholly) in {cache}, and offline mode (HF_HUB_OFFLINE) forbids fetching it", cache = cache.display())]
    NotInCache {
        /// The repository, `ORG/NAME`.
        repo: String,
        /// Branch, tag or commit.
        revision: String,
        /// The cache that was looked into.
        cache: PathBuf,
    },
    /// The model is not in the cache, and this build cannot fetch models.
    #[error("{repo} is not in the cache, and this build cannot fetch it: it lacks the feature `hub` of judge-models")]
    NoHub {
        /// The repository, `ORG/NAME`.
        repo: String,
    },
    /// The hub does not give a model. What cannot be read or written is [`Error::Read`] and [`Error::Write`].
    #[error(transparent)]
    Hub(HubError),
    /// A service cannot be asked, or did not answer.
    #[cfg(feature = "api")]
    #[error(transparent)]
    Api(#[from] crate::ApiError),
    /// `tokenizer.json` cannot be loaded, or the tokenizer failed on a text.
    #[error("{path}: {source}", path = path.display())]
    Tokenizer {
        /// The `tokenizer.json`.
        path: PathBuf,
        /// What the tokenizer says.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl From<OpenProblem> for Error {
    fn from(problem: OpenProblem) -> Self {
        match problem {
            OpenProblem::Read(path, source) => Self::Read { path, source },
            OpenProblem::Gguf(path, problem) => Self::Gguf { path, problem },
        }
    }
}

impl From<HubError> for Error {
    fn from(error: HubError) -> Self {
        match error {
            HubError::Read { path, source } => Self::Read { path, source },
            HubError::Write { path, source } => Self::Write { path, source },
            other => Self::Hub(other),
        }
    }
}

/// What programs leave in the place of a file. Its text says what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StandIn {
    /// The few lines by which Git LFS finds the file.
    #[error("a Git LFS pointer, not the file itself: fetch it with `git lfs pull`")]
    LfsPointer,
    /// A page of a web server.
    #[error("an HTML or XML page, such as a server sends for an error or a login: fetch the file again")]
    Page,
    /// No byte.
    #[error("empty: fetch the file again")]
    Nothing,
}

/// How the index of a checkpoint's shards contradicts itself or the folder.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IndexProblem {
    /// The index has no object `weight_map`, which gives each tensor's shard.
    #[error("no object \"weight_map\"")]
    NoWeightMap,
    /// An entry of `weight_map` is not a string.
    #[error("the shard of {tensor} is not a string")]
    NotAName {
        /// The entry's tensor.
        tensor: String,
    },
    /// A shard's path is absolute or leaves the folder. It is not opened.
    #[error("the shard of {tensor}, {shard:?}, is not inside the folder")]
    OutsideFolder {
        /// The entry's tensor.
        tensor: String,
        /// The path that the entry gives.
        shard: String,
    },
    /// A file that the index names is not in the folder.
    #[error("{tensor} is in {shard}, which is not in the folder: fetch that file")]
    NoShard {
        /// A tensor of the file.
        tensor: String,
        /// The file's name.
        shard: String,
    },
}

/// How a safetensors file is damaged. Such a file is 8 bytes with the header's length, the header
/// in JSON, and the tensors' bytes without gaps.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileProblem {
    /// The file is shorter than its header says.
    #[error("truncated: expected {expected} bytes, found {found}; fetch the file again")]
    Truncated {
        /// Length in bytes that the header, or its absence, asks for.
        expected: u64,
        /// Length of the file in bytes.
        found: u64,
    },
    /// The file is longer than its header says.
    #[error("bytes after the last tensor: expected {expected} bytes, found {found}")]
    Trailing {
        /// Length in bytes that the header asks for.
        expected: u64,
        /// Length of the file in bytes.
        found: u64,
    },
    /// The header claims to be longer than any header is: the file is no safetensors file.
    #[error("no safetensors file: its first 8 bytes give a header of {length} bytes, and at most {limit} are read")]
    HeaderTooLong {
        /// The length claimed, in bytes.
        length: u64,
        /// The longest that is read, in bytes.
        limit: u64,
    },
    /// The header is not a JSON object.
    #[error("header: {source}")]
    Header {
        /// What is wrong, with line and column.
        source: serde_json::Error,
    },
    /// The header's entry of one tensor is not a dtype, a shape and a range.
    #[error("header: tensor {tensor}: {source}")]
    Entry {
        /// The tensor.
        tensor: String,
        /// What is wrong, e.g. an unknown dtype.
        source: serde_json::Error,
    },
}

/// What is wrong with one tensor, whatever the form of its file.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TensorProblem {
    /// It has another shape than the configuration gives it.
    #[error("expected shape {expected:?}, found {found:?}")]
    Shape {
        /// The shape by the configuration.
        expected: Vec<usize>,
        /// The shape in the file.
        found: Vec<usize>,
    },
    /// Its numbers are of a kind that is not supported for plain weights, e.g. integers.
    #[error("dtype {found} is not supported, only F64, F32, F16 and BF16")]
    Dtype {
        /// The dtype in the file.
        found: String,
    },
    /// Its numbers are of a kind that is read elsewhere, but not in this tensor's place.
    #[error("expected dtype {expected}, found {found}")]
    OtherDtype {
        /// The dtypes that it may have, in words.
        expected: &'static str,
        /// The dtype in the file.
        found: String,
    },
    /// It holds codes of a quantised module, and a tensor that they are expanded with, such as the
    /// scales, is absent.
    #[error("its partner {partner} is missing")]
    NoPartner {
        /// The name of the tensor that must be there.
        partner: String,
    },
    /// It holds indices, and one of them leads out of its table.
    #[error("value {index} is {found}, expected an index less than {limit}")]
    Index {
        /// Place of the first such index in the tensor, row-major.
        index: usize,
        /// The index found there.
        found: i64,
        /// Entries of the table; indices must be below it.
        limit: usize,
    },
    /// It holds a setting whose value this crate does not read.
    #[error("{field} is {found}, expected {expected}")]
    Setting {
        /// The setting.
        field: &'static str,
        /// Its value.
        found: String,
        /// What it must be.
        expected: String,
    },
    /// The number of its bytes overflows.
    #[error("shape {shape:?} is too large")]
    TooLarge {
        /// The shape in the file.
        shape: Vec<usize>,
    },
    /// Its range of bytes is not as long as dtype and shape say.
    #[error("dtype and shape take {expected} bytes, its range is {start} to {end}")]
    Size {
        /// Bytes that dtype and shape take.
        expected: usize,
        /// The range's first byte, counted from the end of the header.
        start: usize,
        /// The byte after the range.
        end: usize,
    },
    /// Its range overlaps the one before it, or leaves a gap.
    #[error("expected to start at byte {expected}, where the tensor before it ends, found {found}")]
    Placement {
        /// End of the range before.
        expected: usize,
        /// The range's first byte.
        found: usize,
    },
    /// Two shards, or two forms of one tensor, have this name.
    #[error("also in {first}", first = first.display())]
    Twice {
        /// The file that has it too.
        first: PathBuf,
    },
    /// A value is NaN or infinite, as stored, expanded, merged or rounded to bf16.
    #[error("value {index} is {value}, expected a finite number")]
    NonFinite {
        /// Place of the first such value, row-major.
        index: usize,
        /// The value.
        value: f32,
    },
}

/// What is wrong with a file of packed weights.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PackedCacheProblem {
    /// It does not end with an index of what it holds.
    #[error(
        "expected packed weights with an index at their end, found a file that is cut off, or one that is not packed weights"
    )]
    Damaged,
    /// It does not hold a matrix of the model where that should be.
    #[error("expected the matrix {name} in its place, found another or none")]
    Matrix {
        /// The first tensor that the matrix is made of.
        name: String,
    },
}

/// Why an adapter cannot be merged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AdapterProblem {
    /// A kind of adapter, or a setting of one, that this crate does not merge.
    #[error("{field} = {found} is not supported; merged are LoRA, rsLoRA and DoRA of matrices, and whole tensors")]
    Unsupported {
        /// The field of `adapter_config.json`.
        field: String,
        /// Its value.
        found: String,
    },
    /// A tensor that no adapter of this kind has, or that lacks its partner.
    #[error("the tensor {name} belongs to no pair of lora_A and lora_B, and replaces none")]
    Tensor {
        /// The tensor's name in the adapter.
        name: String,
    },
    /// A tensor's shape contradicts the configuration's rank.
    #[error("{name} has the shape {found:?}, but its rank is {expected} by adapter_config.json")]
    Rank {
        /// The tensor's name in the adapter.
        name: String,
        /// The rank by `adapter_config.json`, patterns considered.
        expected: usize,
        /// The tensor's shape.
        found: Vec<usize>,
    },
    /// Two tensors of the adapter, or two pairs, change one tensor of the base.
    #[error("it changes {name} twice in the same way")]
    Twice {
        /// The tensor's name in a base model.
        name: String,
    },
    /// The adapter has no tensors, or none of a part of the model that is read.
    #[error("it changes nothing: it has no tensors, or only such of parts that are not read (that see or hear)")]
    Empty,
    /// An adapter of a sequence classifier that has no head of labels, over a model that has none.
    #[error(
        "its task_type is SEQ_CLS, but it has no score.weight, and the class of the base model has no head of labels; \
        save the adapter with its head (modules_to_save: score), or give it the classifier that it was trained on"
    )]
    NoLabels,
    /// An adapter's folder that was given as a model, and whose base model is not found.
    #[error(
        "its base model (base_model_name_or_path of adapter_config.json) {}; give the base as the model and this folder as its adapter",
        found.as_ref().map_or_else(
            || "is not named".to_owned(),
            |found| format!("{found:?} is no folder (paths begin at the adapter's folder), and not in the hub's cache")
        )
    )]
    NoBase {
        /// What names the base.
        found: Option<String>,
    },
    /// Tensors that the adapter changes and the base model does not have.
    #[error("the base model has no {}; is it another model's adapter?", names.join(", "))]
    NoSuchTensor {
        /// Their names in a base model.
        names: Vec<String>,
    },
}
