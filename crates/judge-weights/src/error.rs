//! The crate's error, and what it says of files, tensors, shards and adapters.

use std::path::PathBuf;

/// Everything that can go wrong with files of tensors.
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
    /// A GGUF file is damaged, or holds what this crate does not read.
    #[error("{path}: {problem}", path = path.display())]
    Gguf {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: crate::gguf::problem::GgufProblem,
    },
    /// A file of torch.save is damaged, or holds more than tensors.
    #[error("{path}: {problem}", path = path.display())]
    PyTorch {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// An adapter that cannot be merged.
    #[error("the adapter {path}: {problem}", path = path.display())]
    Adapter {
        /// The adapter's folder.
        path: PathBuf,
        /// What is wrong.
        problem: AdapterProblem,
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
    #[error(
        "the checkpoint's tensors are not those of the model: missing {}; not of the model {}",
        few(missing),
        few(unused)
    )]
    TensorNames {
        /// Names that the model needs and the checkpoint lacks.
        missing: Vec<String>,
        /// Names that the checkpoint has and the model does not use.
        unused: Vec<String>,
    },
}

impl Error {
    /// The error for a field or setting that asks for something which is not supported.
    pub fn unsupported(
        path: impl Into<PathBuf>,
        field: impl Into<String>,
        found: impl Into<String>,
        supported: &'static str,
    ) -> Self {
        Self::Unsupported { path: path.into(), field: field.into(), found: found.into(), supported }
    }
}

/// How many names there are, and the first of them.
fn few(names: &[String]) -> String {
    const SHOWN: usize = 4;
    match names {
        [] => "none".to_owned(),
        [..] if names.len() <= SHOWN => format!("{} ({})", names.len(), names.join(", ")),
        _ => format!("{} ({}, …)", names.len(), names[..SHOWN].join(", ")),
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

/// Why an adapter cannot be merged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AdapterProblem {
    /// No folder of an adapter.
    #[error(
        "expected the folder of an adapter as PEFT saves it, with adapter_config.json, found {found}; \
        the name of one on the hub is not taken, download it first"
    )]
    NoFolder {
        /// What is there.
        found: &'static str,
    },
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
