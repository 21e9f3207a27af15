//! A folder with adapters merged into its weights, for programs that know no adapters.
//!
//! [`merge_adapters`] opens the folder as `model.rs` does (`checked.rs`), takes every tensor of the
//! description through the same [`Tensors`], and writes them with `merge/shards.rs`. So what is
//! written is what a loaded model computes with: dequantised, merged and rounded by `weights/`, none
//! of which is repeated here. This file owns under which names tensors are written, and what `config.json` says; which other files
//! a written folder has is said by the table of `folder/file.rs`.
//!
//! ```text
//!  out/.NAME.partial/  tokenizer and other files, as they are
//!                      files of decisions, without an adapter that is merged
//!                      weights, some rows at a time
//!                      index of several files of weights
//!                      config.json, last
//!         └── renamed to out/NAME when all is there
//! ```
//!
//! `config.json` is the folder's own but for these fields:
//!
//! | field | what becomes of it |
//! |---|---|
//! | `text_config` | its content is the whole, of a vision-language folder |
//! | `architectures` | that of the text model there, also where the folder names none, as of a GGUF file |
//! | `quantization_config`, `compression_config` | removed |
//! | `tie_word_embeddings` | whether no head is written besides the embedding |
//! | `vocab_size` | the rows of the embedding, which a GGUF file may have fewer of |
//! | `dtype`, `torch_dtype` | the dtype of the weights, by the name that all releases of transformers read |

mod shards;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use half::bf16;
use judge_kernels::numbers::Numbers;
use judge_text::Files;
use serde_json::{Map, Value};

use self::shards::{Entry, Shards};
use crate::base::Based;
use crate::checked::CheckedWeights;
use crate::folder::file::{FILES, FileRole, Reader, Written};
use crate::folder::{Folder, file};
use crate::new_folder::NewFolder;
use crate::weights::{Replaced, Tensors};
use crate::{Dtype, Error, HubOptions, WeightsError, decision};
#[cfg(feature = "train")]
use judge_arch::HEAD;
use judge_arch::{
    Architecture, HeadSpec, ModelSpec, StackPart, StackSpec, causal_class, classifier_class, encoder_classifier_class,
    is_decision_model, text_fields,
};

/// Bytes of tensors in a file of weights, at most, unless one tensor alone has more: the default of
/// `save_pretrained` in transformers 4.
const SHARD_BYTES: u64 = 5_000_000_000;

/// Fields of `config.json` that describe quantised weights. The written ones are not quantised.
const OF_QUANTISATION: [&str; 2] = ["quantization_config", "compression_config"];

/// What the names of classes with a head of labels end with.
const CLASSIFIER: &str = "ForSequenceClassification";

/// What [`merge_adapters`] has written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merged {
    /// Dtype of all tensors.
    pub dtype: Dtype,
    /// How many tensors were written. A stack of experts counts as one.
    pub n_tensors: usize,
    /// Bytes of the tensors, without headers.
    pub bytes: u64,
    /// Names of the files in the folder, sorted.
    pub files: Vec<String>,
}

/// Writes the folder of a decoder with adapters merged into its weights, which other programs load
/// like any model: `config.json`, safetensors in files of up to 5 GB with their index, and the
/// tokenizer's files as they are. So are the files of a decision model, whose own adapter is left out if it is one
/// of those that are merged.
///
/// Weights are those that [`Model::load`](crate::Model::load) computes with the same adapters and
/// dtype: merged in f32, one adapter after another, and rounded to `dtype` at the end. `dtype`
/// `None` is the one that the checkpoint is nearest to, with a warning where it drops bits. Without adapters it is a conversion:
///
/// - Quantised weights and GGUF files are written dequantised.
/// - Experts get the names that their family has in transformers, alone or in stacks.
/// - Of a vision-language folder the text model alone is written, as a folder of its own.
///
/// The folder appears under its name when it is complete. Until then it is a hidden one beside it,
/// `.NAME.partial`, which the next call with the same `output` replaces. `progress` is called after
/// each tensor with the bytes that are written and those that will be. Memory is that of some rows,
/// and for experts that a family keeps in one tensor, of that tensor.
///
/// # Errors
/// [`Error::OutputExists`] unless `output` is absent or an empty folder, [`Error::OutputHeld`] if another process is writing it,
/// [`WeightsError::Unsupported`] for an encoder or a decision model whose head is among its weights,
/// [`Error::Write`], and those of [`Model::load`](crate::Model::load) for the folder and the adapters. After an error while writing, the
/// hidden folder is deleted.
pub fn merge_adapters(
    model: impl AsRef<Path>,
    adapters: &[PathBuf],
    dtype: Option<Dtype>,
    output: impl AsRef<Path>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Merged, Error> {
    let based = Based::of(model.as_ref(), adapters, &HubOptions::from_env())?;
    let (decisions, rerankers) = (based.home(&file::OF_DECISIONS), based.home(&file::OF_RERANKERS));
    let template = based.home(&[file::JUDGE_TEMPLATE]).join(file::JUDGE_TEMPLATE);
    let template = Some(template).filter(|path| path.is_file());
    let Based { model, adapters } = based;
    let folder = Folder::open(model.path)?;
    refuse_head_of_decisions(&folder)?;
    let mut spec = Architecture::from_json(folder.config()).map_err(|problem| folder.wrong_config(problem))?;
    let mut weights = CheckedWeights::open(&folder, &mut spec, dtype.map(Dtype::of_weights), &adapters)?;
    if let Architecture::Encoder(spec) = &spec {
        let supported = "decoders, where an adapter is to be merged into a folder";
        let found = format!("{}, an encoder,", spec.family);
        return Err(WeightsError::unsupported(folder.file(file::CONFIG), "model_type", found, supported).into());
    }
    spec.warn_of_unread(folder.config());
    if let Some(loss) = &weights.loss {
        tracing::warn!("{loss}");
    }
    let copied =
        Copied { template: template.as_deref(), decisions: &decisions, rerankers: &rerankers, merged: &adapters };
    let new = copied.begin(output.as_ref())?;
    let merged = write((&folder, copied), &spec, &mut weights, &BTreeMap::new(), new.path(), SHARD_BYTES, progress)?;
    new.finish()?;
    Ok(merged)
}

/// Which files that the program asks by are copied.
#[derive(Clone, Copy)]
struct Copied<'a> {
    /// The model's own template for scores.
    template: Option<&'a Path>,
    /// The folder that has the files of decisions.
    decisions: &'a Path,
    /// The folder that has the files of rerankers.
    rerankers: &'a Path,
    /// The adapters that are merged into the weights.
    merged: &'a [PathBuf],
}

impl Copied<'_> {
    /// Begins the folder that is written, in the place of one that an earlier call left unfinished.
    fn begin(&self, output: &Path) -> Result<NewFolder, Error> {
        let adapters = decision::adapters_in(self.decisions);
        NewFolder::begin(output, |name| {
            FILES.iter().any(|role| role.name.split('/').next() == Some(name) && role.written != Written::Never)
                || name.starts_with("model") && name.contains(".safetensors")
                || adapters.iter().any(|adapter| adapter == name)
        })
    }
}

/// Refuses a decision model as transformers saves it, whose head is among its weights: what is written is the text model alone, and without its
/// head it would answer otherwise.
///
/// # Errors
/// `WeightsError::Unsupported`.
pub(crate) fn refuse_head_of_decisions(folder: &Folder) -> Result<(), Error> {
    if !is_decision_model(folder.config()) {
        return Ok(());
    }
    let found = "a decision model whose head is among its weights";
    let supported = "decision models whose head is in a file beside a text model";
    Err(WeightsError::unsupported(folder.file(file::CONFIG), "model_type", found, supported).into())
}

/// Writes a model's folder in f32 or bf16 with some of its tensors replaced: `replaced` has their numbers,
/// row-major, by the names that `spec` has. Otherwise as [`merge_adapters`] without adapters. `spec` may have a
/// head of labels that the folder has not, if it is among the replaced; an encoder's folder is a sequence classifier's,
/// so it has one. `check` is shown the folder before it gets its name.
#[cfg(feature = "train")]
pub(crate) fn write_replaced<E: From<Error>>(
    folder: &Folder,
    spec: &Architecture,
    weights: &mut CheckedWeights,
    replaced: &BTreeMap<&str, &[f32]>,
    output: &Path,
    check: impl FnOnce(&Path) -> Result<(), E>,
) -> Result<(), E> {
    let template = Some(folder.file(file::JUDGE_TEMPLATE)).filter(|path| path.is_file());
    let home = folder.path();
    let copied = Copied { template: template.as_deref(), decisions: home, rerankers: home, merged: &[] };
    let new = copied.begin(output)?;
    // A head over the vocabulary that gives way to one of labels is not written.
    let given_up = spec.labels().map(|_| HEAD);
    for name in replaced.keys().copied().chain(given_up) {
        if weights.base.has(name) {
            weights.base.pass_over(name);
        }
    }
    write((folder, copied), spec, weights, replaced, new.path(), SHARD_BYTES, &mut |_, _| {})?;
    check(new.path())?;
    Ok(new.finish()?)
}

/// Writes the whole folder to `to`, which is there: files of text, weights in files of at most
/// `shard_bytes`, then `config.json`. A folder without `config.json` is no model for any program,
/// so what was cut off is not taken for whole. The store is asked at the end whether all tensors
/// were taken.
fn write(
    (folder, copied): (&Folder, Copied<'_>),
    spec: &Architecture,
    weights: &mut CheckedWeights,
    replaced: &BTreeMap<&str, &[f32]>,
    to: &Path,
    shard_bytes: u64,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Merged, Error> {
    let mut files = Vec::new();
    let beside = Files::new(copied.rerankers.to_owned(), Value::Null);
    let is_apart = |role: &FileRole| matches!(role.reader, Reader::Decisions | Reader::Program);
    for role in FILES.iter().filter(|role| role.written == Written::Copied && !is_apart(role)) {
        let name = role.name;
        let bytes = match role.reader {
            Reader::Rerankers => beside.bytes(name)?,
            _ if name == file::TOKENIZER_CONFIG => tokenizer_config(folder, &beside)?,
            _ => folder.bytes(name)?,
        };
        if let Some(bytes) = bytes {
            decision::write(&to.join(name), &bytes)?;
            files.push(name.to_owned());
        }
    }
    if let Some(template) = copied.template {
        fs::copy(template, to.join(file::JUDGE_TEMPLATE))
            .map_err(|source| Error::Write { path: to.join(file::JUDGE_TEMPLATE), source })?;
        files.push(file::JUDGE_TEMPLATE.to_owned());
    }
    files.extend(decision::copy(copied.decisions, to, copied.merged)?);
    if let Some(head) = &weights.value_head {
        let name = head.path.file_name().and_then(|name| name.to_str()).unwrap_or(file::VALUE_HEAD);
        let copy = to.join(name);
        fs::copy(&head.path, &copy).map_err(|source| Error::Write { path: copy, source })?;
        files.push(name.to_owned());
    }
    let dtype = weights.dtype;
    let tensors = tensors(spec);
    let entries = tensors.iter().map(Tensor::entry).collect();
    let mut shards = Shards::new(to, entries, dtype, shard_bytes);
    let (n_tensors, bytes) = (tensors.len(), shards.total());
    let merged = &mut Replaced { base: &mut weights.merged(), by: replaced };
    for tensor in &tensors {
        tensor.copy(merged, dtype, &mut shards)?;
        progress(shards.written(), bytes);
    }
    files.extend(shards.finish()?);
    weights.base.finish()?;
    decision::write(&to.join(file::CONFIG), format!("{:#}\n", config(folder, spec, dtype)?).as_bytes())?;
    files.push(file::CONFIG.to_owned());
    files.sort();
    Ok(Merged { dtype, n_tensors, bytes, files })
}

/// `tokenizer_config.json` as it is, but for the limit of tokens that counts beside the files of rerankers.
fn tokenizer_config(folder: &Folder, rerankers: &Files) -> Result<Option<Vec<u8>>, Error> {
    const LIMIT: &str = "model_max_length";
    let beside = rerankers.json(file::TOKENIZER_CONFIG)?.unwrap_or_default();
    let mut own = folder.json(file::TOKENIZER_CONFIG)?.unwrap_or_default();
    match own.as_object_mut() {
        Some(fields) if !beside[LIMIT].is_null() && fields.get(LIMIT) != Some(&beside[LIMIT]) => {
            fields.insert(LIMIT.to_owned(), beside[LIMIT].clone());
            Ok(Some(format!("{own:#}\n").into_bytes()))
        }
        _ => Ok(folder.bytes(file::TOKENIZER_CONFIG)?),
    }
}

/// A tensor as other programs know it.
enum Tensor<'a> {
    /// One of the model's tensors, by its own name and shape, with the name that files have for it.
    Alone(String, Vec<usize>, String),
    /// Several of the model's tensors that folders keep in one tensor only.
    Stack(&'a StackSpec),
}

/// The tensors to write. Those of an encoder are named as its sequence classifiers name them.
fn tensors(spec: &Architecture) -> Vec<Tensor<'_>> {
    match spec {
        Architecture::Decoder(spec) => tensors_of_decoder(spec),
        Architecture::Encoder(spec) => {
            let alone = |(name, shape): (String, _)| {
                let stored = spec.name_in_classifier(&name);
                Tensor::Alone(name, shape, stored)
            };
            spec.tensors().into_iter().map(alone).collect()
        }
    }
}

/// The tensors of a decoder: first those that stand alone, in the order of `ModelSpec::tensors`, then
/// stacks. What a folder may have either way stands alone.
fn tensors_of_decoder(spec: &ModelSpec) -> Vec<Tensor<'_>> {
    let stacks: Vec<&StackSpec> = spec.stacks().filter(|stack| stack.is_only_form).collect();
    let parts: BTreeSet<&str> = stacks.iter().flat_map(|stack| &stack.parts).map(|part| &*part.tensor.0).collect();
    let alone = spec.tensors().into_iter().filter(|(name, _)| !parts.contains(name.as_str()));
    let alone = alone.map(|(name, shape)| Tensor::Alone(name.clone(), shape, name));
    alone.chain(stacks.into_iter().map(Tensor::Stack)).collect()
}

impl Tensor<'_> {
    /// Name and shape as they will be in the file.
    fn entry(&self) -> Entry {
        let (name, shape) = match self {
            Self::Alone(_, shape, stored) => (stored, shape),
            Self::Stack(stack) => (&stack.name, &stack.shape),
        };
        Entry { name: name.clone(), shape: shape.clone() }
    }

    /// Takes the tensor's numbers and writes them: matrices some rows at a time, other tensors and
    /// stacks as a whole. A stack is filled part by part through the strides of its description.
    fn copy(&self, tensors: &mut dyn Tensors, dtype: Dtype, shards: &mut Shards) -> Result<(), Error> {
        match self {
            Self::Alone(name, shape, _) => match *shape.as_slice() {
                [rows, columns] => {
                    let mut written = Ok(());
                    let mut take = |_: usize, numbers: Numbers<'_>| {
                        if written.is_ok() {
                            written = shards.write(&bytes(numbers));
                        }
                    };
                    tensors.take_rows(name, [rows, columns], dtype, &mut take)?;
                    written
                }
                _ => shards.write(&rounded(&tensors.take(name, shape, dtype)?, dtype)),
            },
            Self::Stack(stack) => {
                let mut all = vec![0.0_f32; stack.shape.iter().product()];
                for StackPart { tensor: (name, shape), start, strides } in &stack.parts {
                    let values = tensors.take(name, shape, dtype)?;
                    let columns: usize = shape.iter().skip(1).product();
                    let (down, right) = (strides[0], strides.get(1).copied().unwrap_or_default());
                    for (index, value) in values.into_iter().enumerate() {
                        all[start + index / columns * down + index % columns * right] = value;
                    }
                }
                shards.write(&rounded(&all, dtype))
            }
        }
    }
}

/// Little-endian bytes of numbers in their own dtype.
fn bytes(numbers: Numbers<'_>) -> Vec<u8> {
    match numbers {
        Numbers::F32(values) => values.iter().flat_map(|x| x.to_le_bytes()).collect(),
        Numbers::Bf16(values) => values.iter().flat_map(|x| x.to_le_bytes()).collect(),
    }
}

/// Little-endian bytes in `dtype` of values that were rounded to it before, so nothing is lost.
fn rounded(values: &[f32], dtype: Dtype) -> Vec<u8> {
    match dtype {
        Dtype::F32 | Dtype::Tf32 => bytes(Numbers::F32(values)),
        Dtype::Bf16 => bytes(Numbers::Bf16(&values.iter().map(|&x| bf16::from_f32(x)).collect::<Vec<_>>())),
    }
}

/// `config.json` of the written folder: that of the text model, `vocab_size` as it is written, the
/// dtype of the weights, and nothing about quantisation.
///
/// # Errors
/// [`Error::Config`] if the text model's fields of a vision-language folder are not found.
fn config(folder: &Folder, spec: &Architecture, dtype: Dtype) -> Result<Value, Error> {
    let text = text_fields(folder.config()).map_err(|problem| folder.wrong_config(problem))?;
    let is_tower = text.is_some();
    let mut fields = text.or_else(|| folder.config().as_object().cloned()).unwrap_or_default();
    OF_QUANTISATION.iter().for_each(|field| drop(fields.remove(*field)));
    let class = fields.get("architectures").and_then(|classes| classes.get(0)).and_then(Value::as_str);
    let class = class.map(str::to_owned);
    fields.insert("vocab_size".to_owned(), spec.dimensions().d_vocab.into());
    let class = class.as_deref();
    match spec {
        Architecture::Decoder(spec) => match &spec.head {
            // Its class says what its heads are.
            HeadSpec::Labels(head) if head.inner.is_some() => {}
            HeadSpec::Labels(head) => {
                let own = || Some(format!("{}{CLASSIFIER}", class?.strip_suffix("ForCausalLM")?));
                name_labels(&mut fields, class, &head.labels, || own().or_else(|| classifier_class(spec.family)));
            }
            head => {
                // The class of a vision-language folder is that of the whole.
                if is_tower || class.is_none() {
                    fields.remove("architectures");
                    let family = Some(spec.family).filter(|_| !matches!(head, HeadSpec::Absent(_)));
                    let own = family.and_then(causal_class);
                    fields.extend(own.map(|class| ("architectures".to_owned(), vec![class].into())));
                }
                fields.insert("tie_word_embeddings".to_owned(), (*head == HeadSpec::Embedding).into());
            }
        },
        Architecture::Encoder(spec) => {
            if let Some(head) = &spec.head {
                name_labels(&mut fields, class, &head.labels, || encoder_classifier_class(spec.family));
            }
        }
    }
    let name = match dtype {
        Dtype::F32 | Dtype::Tf32 => "float32",
        Dtype::Bf16 => "bfloat16",
    };
    // The name before transformers 5. Later releases read it too.
    fields.remove("dtype");
    fields.insert("torch_dtype".to_owned(), name.into());
    Ok(Value::Object(fields))
}

/// Makes the fields those of a sequence classifier with these labels, unless the class is one already: an adapter or
/// training may have brought the head to a folder of another class.
fn name_labels(
    fields: &mut Map<String, Value>,
    class: Option<&str>,
    labels: &[String],
    classifier: impl FnOnce() -> Option<String>,
) {
    if class.is_some_and(|class| class.ends_with(CLASSIFIER)) {
        return;
    }
    fields.insert("architectures".to_owned(), classifier().into_iter().collect());
    let names: Map<String, Value> =
        labels.iter().enumerate().map(|(i, label)| (i.to_string(), label.as_str().into())).collect();
    let numbers: Map<String, Value> = labels.iter().cloned().zip((0..).map(|i: usize| i.into())).collect();
    fields.insert("label2id".to_owned(), numbers.into());
    fields.insert("id2label".to_owned(), names.into());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    /// Writes a test model in files of at most `shard_bytes`. Returns the names of the files, the
    /// tensors of the original folder, and those of the written one.
    fn in_shards(family: &str, shard_bytes: u64) -> (Vec<String>, Vec<Vec<f32>>, Vec<Vec<f32>>) {
        let (folder, to) = (Folder::open(fixtures::folder(family)).unwrap(), tempfile::TempDir::new().unwrap());
        let open = |folder: &Folder| {
            let mut spec = Architecture::from_json(folder.config()).unwrap();
            let weights = CheckedWeights::open(folder, &mut spec, Some(Dtype::F32), &[]).unwrap();
            (spec, weights)
        };
        let take = |(spec, mut weights): (Architecture, CheckedWeights)| {
            let mut tensors = weights.merged();
            spec.tensors().iter().map(|(name, shape)| tensors.take(name, shape, Dtype::F32).unwrap()).collect()
        };
        let (spec, mut weights) = open(&folder);
        let home = folder.path();
        let folder = (&folder, Copied { template: None, decisions: home, rerankers: home, merged: &[] });
        let none = &BTreeMap::new();
        let merged = write(folder, &spec, &mut weights, none, to.path(), shard_bytes, &mut |_, _| {}).unwrap();
        let folder = folder.0;
        (merged.files, take(open(folder)), take(open(&Folder::open(to.path()).unwrap())))
    }

    #[test]
    fn files_end_where_they_are_full_and_stacks_are_stacks_again() {
        for (family, least) in [("llama-off", 5), ("gpt_oss-on", 10), ("qwen2_moe-off", 5)] {
            let (files, stored, written) = in_shards(family, 10_000);
            let count = files.iter().filter(|name| name.ends_with(".safetensors")).count();
            assert!(count >= least && files.contains(&file::WEIGHTS_INDEX.to_owned()), "{family}: {files:?}");
            assert!(files.contains(&format!("model-00001-of-{count:05}.safetensors")), "{family}: {files:?}");
            assert_eq!(stored, written, "{family}");
            let (files, _, written) = in_shards(family, SHARD_BYTES);
            assert!(files.contains(&file::WEIGHTS.to_owned()) && !files.contains(&file::WEIGHTS_INDEX.to_owned()));
            assert_eq!(stored, written, "{family}");
        }
    }
}
