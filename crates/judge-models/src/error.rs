use std::path::PathBuf;

use crate::{CudaProblem, DevicesProblem, Kernel};

/// Everything that can go wrong while a model is found, loaded or run, apart from what is one item's own fault
/// ([`Unscored`](judge_core::Unscored)).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be read.
    #[error("cannot read {path}: {source}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file could not be written.
    #[error("cannot write {path}: {source}", path = path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A folder is to be written where there is something.
    #[error("{path} exists: name a folder that does not, or an empty one", path = path.display())]
    OutputExists {
        /// The path.
        path: PathBuf,
    },
    /// A model is a folder, and this is none.
    #[error("{path} is not a folder", path = path.display())]
    NotAFolder {
        /// The path.
        path: PathBuf,
    },
    /// A file that every model folder must have is absent.
    #[error("{folder} has no {wanted}; it has {found:?}", folder = folder.display())]
    MissingFile {
        /// The folder.
        folder: PathBuf,
        /// What was looked for.
        wanted: &'static str,
        /// Names of the files that are there.
        found: Vec<String>,
    },
    /// The head of labels and the model do not go together.
    #[error("the model's head of labels: {source}")]
    Head {
        /// Why.
        source: judge_core::Error,
    },
    /// An adapter that cannot be merged.
    #[error("the adapter {path}: {problem}", path = path.display())]
    Adapter {
        /// The folder.
        path: PathBuf,
        /// What is wrong.
        problem: AdapterProblem,
    },
    /// A file of text is not UTF-8.
    #[error("{path} is not UTF-8 from byte {offset} on", path = path.display())]
    Encoding {
        /// The file.
        path: PathBuf,
        /// Offset of the first byte that is not.
        offset: usize,
    },
    /// A file is not the JSON it should be.
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
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: crate::ConfigProblem,
    },
    /// The folder says something that this crate does not do.
    #[error("{path}: {field}: {found} is not supported, only {supported}", path = path.display())]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// The field in it.
        field: String,
        /// What it says.
        found: String,
        /// What is supported.
        supported: &'static str,
    },
    /// `model.safetensors.index.json` does not describe the shards.
    #[error("{path}: {problem}", path = path.display())]
    Index {
        /// The index.
        path: PathBuf,
        /// What is wrong.
        problem: IndexProblem,
    },
    /// A file of weights is damaged.
    #[error("{path}: {problem}", path = path.display())]
    WeightsFile {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: FileProblem,
    },
    /// A GGUF file is damaged, or holds what is not read.
    #[error("{path}: {problem}", path = path.display())]
    Gguf {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: crate::GgufProblem,
    },
    /// One tensor is not what it must be.
    #[error("{path}: tensor {tensor}: {problem}", path = path.display())]
    Tensor {
        /// The file it is in.
        path: PathBuf,
        /// Its name.
        tensor: String,
        /// What is wrong.
        problem: TensorProblem,
    },
    /// The checkpoint's tensors are not the model's.
    #[error("tensors missing: {missing:?}; tensors that the model has no place for: {unused:?}")]
    TensorNames {
        /// Names that the model needs and the checkpoint lacks.
        missing: Vec<String>,
        /// Names that the checkpoint has and the model does not use.
        unused: Vec<String>,
    },
    /// CUDA was asked for, but this build has none.
    #[error("{device} was asked for, but this build has no CUDA: it lacks the feature `cuda` of judge-models")]
    NoCuda {
        /// The device asked for.
        device: crate::Device,
    },
    /// A card was asked for that cannot be used.
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
        /// The devices asked for.
        devices: Vec<crate::Device>,
        /// Why not.
        problem: DevicesProblem,
    },
    /// Not the name of a device.
    #[error("{found:?} is no device, expected cpu or cuda:INDEX")]
    UnknownDevice {
        /// The text.
        found: String,
    },
    /// Not the name of a dtype.
    #[error("{found:?} is no dtype, expected f32 or bf16")]
    UnknownDtype {
        /// The text.
        found: String,
    },

    /// A name that is no kernel's.
    #[error("{found:?} is no kernel: expected amx, avx512-bf16, avx512, avx2 or portable")]
    UnknownKernel {
        /// The name given.
        found: String,
    },

    /// A kernel whose instructions this processor lacks.
    #[error("this processor cannot run the kernel {kernel}; it has {}", list(.available))]
    NoKernel {
        /// The kernel asked for.
        kernel: Kernel,
        /// Those that it can run.
        available: Vec<Kernel>,
    },
    /// A chat prompt needs a chat template, and the folder has none.
    #[error("{folder} has no chat template (chat_template.jinja, or chat_template in tokenizer_config.json)", folder = folder.display())]
    NoChatTemplate {
        /// The folder.
        folder: PathBuf,
    },
    /// The chat template does not compile.
    #[error("{path}: chat template: {source}", path = path.display())]
    ChatTemplate {
        /// The file it is in.
        path: PathBuf,
        /// What is wrong, with the line.
        source: std::sync::Arc<dyn std::error::Error + Send + Sync>,
    },
    /// A text that was to be tokenised cannot be.
    #[error("the prompt cannot be read: {unscored}")]
    Prompt {
        /// Why.
        unscored: judge_core::Unscored,
    },
    /// The tokenizer knows a token for which the model has no embedding: the files belong to different models.
    #[error("the tokenizer gives token {token}, but the model has embeddings for {d_vocab} tokens only")]
    TokenWithoutEmbedding {
        /// The token.
        token: judge_core::TokenId,
        /// Rows of the embedding.
        d_vocab: usize,
    },
    /// Numbers could not be read back from the device.
    #[error("cannot read from the device: {source}")]
    Device {
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The weights of a model did not all arrive on its device.
    #[error("the model's weights did not all reach the device, whose memory may be too small for them: {source}")]
    Upload {
        /// What reading them back brought.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// No threads could be had to run on.
    #[error("cannot start threads: {source}")]
    Threads {
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A pass brought no state to generate from, or a model without a head over a vocabulary was asked for one. Says that this crate is wrong, not its input.
    #[error("the forward pass brought no state")]
    NothingRead,
    /// Neither a folder that exists nor a hub id.
    #[error("{found:?} is neither a folder nor a hub id of the form ORG/NAME or ORG/NAME@REVISION")]
    ModelName {
        /// What was given.
        found: String,
    },
    /// Offline, and the hub's cache does not have the model.
    #[error("{repo} at revision {revision} is not (or not wholly) in {cache}, and offline mode (HF_HUB_OFFLINE) forbids fetching it", cache = cache.display())]
    NotInCache {
        /// `ORG/NAME`.
        repo: String,
        /// Branch, tag or commit.
        revision: String,
        /// Where it would be.
        cache: PathBuf,
    },
    /// This build cannot fetch models.
    #[error("{repo} is not in the cache, and this build cannot fetch it: it lacks the feature `hub` of judge-models")]
    NoHub {
        /// `ORG/NAME`.
        repo: String,
    },
    /// The hub could not be reached, or it refused.
    #[error(
        "cannot fetch {repo} at revision {revision} from the hub: {source} (HF_HUB_OFFLINE=1 takes what the cache has)"
    )]
    Hub {
        /// `ORG/NAME`.
        repo: String,
        /// Branch, tag or commit.
        revision: String,
        /// What the hub said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The hub gave something else than a commit.
    #[error("the hub says that {repo} is at {found:?}, which is no commit")]
    HubCommit {
        /// `ORG/NAME`.
        repo: String,
        /// What it said.
        found: String,
    },
    /// A file of the hub is not what it should be.
    #[error("{repo}: {file}: {problem}")]
    HubFile {
        /// `ORG/NAME`.
        repo: String,
        /// The file's name in it.
        file: String,
        /// What is wrong.
        problem: HubFileProblem,
    },
    /// Not a day.
    #[error("{found:?} is no date, expected YYYY-MM-DD")]
    Date {
        /// The text.
        found: String,
    },
    /// A service cannot be asked, or did not answer.
    #[cfg(feature = "api")]
    #[error("{url}: {problem}")]
    Api {
        /// The address; without user and query where it cannot be used because of them.
        url: String,
        /// What went wrong.
        problem: crate::ApiProblem,
    },
    /// What was given as the key of a service is none.
    #[cfg(feature = "api")]
    #[error("the key of the service: {problem}")]
    ApiKey {
        /// Why, without showing it.
        problem: crate::KeyProblem,
    },
    /// A model cannot be trained.
    #[cfg(feature = "train")]
    #[error("{problem}")]
    Train {
        /// Why.
        problem: crate::train::TrainProblem,
    },
    /// `tokenizer.json` cannot be loaded, or the tokenizer failed on a text.
    #[error("{path}: {source}", path = path.display())]
    Tokenizer {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// What is wrong with a file of the hub.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HubFileProblem {
    /// It would be stored under a name that leads elsewhere.
    #[error("the hub calls its content {etag:?}, which is no name of a file")]
    Name {
        /// The name that the hub gave.
        etag: String,
    },
    /// It is of another commit.
    #[error("the hub sent commit {found:?}, expected {expected}")]
    Commit {
        /// The commit asked for.
        expected: String,
        /// The one named.
        found: String,
    },
    /// It has another length.
    #[error("downloaded {found} bytes, expected {expected}; what came is deleted")]
    Size {
        /// Bytes that the hub states.
        expected: u64,
        /// Bytes that arrived.
        found: u64,
    },
    /// It has another content.
    #[error("downloaded content has SHA-256 {found}, expected {expected}; what came is deleted")]
    Checksum {
        /// The sum that the hub states.
        expected: String,
        /// That of what arrived.
        found: String,
    },
}

/// How an index of shards contradicts its folder.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IndexProblem {
    /// There is no `weight_map`.
    #[error("no object \"weight_map\"")]
    NoWeightMap,
    /// An entry is not a file name.
    #[error("the shard of {tensor} is not a string")]
    NotAName {
        /// The tensor.
        tensor: String,
    },
    /// A shard's path is absolute or leaves the folder.
    #[error("the shard of {tensor}, {shard:?}, is not inside the folder")]
    OutsideFolder {
        /// The tensor.
        tensor: String,
        /// The path given.
        shard: String,
    },
    /// A shard does not have the tensor that the index promises.
    #[error("{tensor} is not in {shard}")]
    NotInShard {
        /// The tensor.
        tensor: String,
        /// The shard.
        shard: String,
    },
    /// A shard has a tensor that the index does not list.
    #[error("{tensor} in {shard} is not listed")]
    Unlisted {
        /// The tensor.
        tensor: String,
        /// The shard.
        shard: String,
    },
}

/// How a file of weights is damaged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileProblem {
    /// The file is shorter than its header says.
    #[error("truncated: expected {expected} bytes, found {found}")]
    Truncated {
        /// Bytes needed.
        expected: u64,
        /// Bytes there are.
        found: u64,
    },
    /// The file is longer than its header says.
    #[error("bytes after the last tensor: expected {expected} bytes, found {found}")]
    Trailing {
        /// Bytes needed.
        expected: u64,
        /// Bytes there are.
        found: u64,
    },
    /// The header claims a senseless length.
    #[error("a header of {length} bytes, more than {limit}")]
    HeaderTooLong {
        /// Length claimed.
        length: u64,
        /// Longest length that is read.
        limit: u64,
    },
    /// The header is not JSON.
    #[error("header: {source}")]
    Header {
        /// What is wrong.
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

/// What is wrong with one tensor.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TensorProblem {
    /// Not the shape that the configuration gives it.
    #[error("expected shape {expected:?}, found {found:?}")]
    Shape {
        /// The configuration's shape.
        expected: Vec<usize>,
        /// The file's shape.
        found: Vec<usize>,
    },
    /// Numbers of a kind that is not supported, e.g. fp8 or integers.
    #[error("dtype {found} is not supported, only F32, F16 and BF16")]
    Dtype {
        /// The file's dtype.
        found: String,
    },
    /// Numbers of a kind that the tensor cannot have where it is.
    #[error("expected dtype {expected}, found {found}")]
    OtherDtype {
        /// The dtypes that it may have.
        expected: &'static str,
        /// The file's dtype.
        found: String,
    },
    /// Codes of a quantised module without what they are expanded with.
    #[error("its partner {partner} is missing")]
    NoPartner {
        /// The name of the tensor that must be there.
        partner: String,
    },
    /// An index that leads out of a table.
    #[error("value {index} is {found}, expected an index less than {limit}")]
    Index {
        /// Which of the indices, row-major.
        index: usize,
        /// The index found.
        found: i64,
        /// The size of the table.
        limit: usize,
    },
    /// A setting that is stored as a tensor has a value that is not read.
    #[error("{field} is {found}, expected {expected}")]
    Setting {
        /// The setting.
        field: &'static str,
        /// Its value.
        found: String,
        /// What it must be.
        expected: String,
    },
    /// Shape times dtype overflows.
    #[error("shape {shape:?} is too large")]
    TooLarge {
        /// The file's shape.
        shape: Vec<usize>,
    },
    /// The range of bytes is not as long as dtype and shape say.
    #[error("dtype and shape take {expected} bytes, its range is {start} to {end}")]
    Size {
        /// Bytes that dtype and shape take.
        expected: usize,
        /// The range's first byte.
        start: usize,
        /// The byte after the range.
        end: usize,
    },
    /// The range overlaps the one before it, or leaves a gap.
    #[error("expected to start at byte {expected}, where the tensor before it ends, found {found}")]
    Placement {
        /// End of the range before.
        expected: usize,
        /// The range's first byte.
        found: usize,
    },
    /// Two shards have a tensor of this name.
    #[error("also in {first}", first = first.display())]
    Twice {
        /// The other shard.
        first: PathBuf,
    },
    /// A value is NaN or infinite, as stored or after rounding to bf16.
    #[error("value {index} is {value}, expected a finite number")]
    NonFinite {
        /// Index of the first such value, row-major.
        index: usize,
        /// The value.
        value: f32,
    },
}

fn list(kernels: &[Kernel]) -> String {
    kernels.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
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
        /// The tensor.
        name: String,
    },
    /// The configuration and a tensor contradict each other.
    #[error("{name} has the shape {found:?}, but its rank is {expected} by adapter_config.json")]
    Rank {
        /// The tensor.
        name: String,
        /// The rank of the configuration.
        expected: usize,
        /// The tensor's shape.
        found: Vec<usize>,
    },
    /// There are no tensors.
    #[error("it changes nothing: it has no tensors")]
    Empty,
    /// Tensors that the base model does not have.
    #[error("the base model has no {}; is it another model's adapter?", names.join(", "))]
    NoSuchTensor {
        /// Their names in a base model.
        names: Vec<String>,
    },
}
