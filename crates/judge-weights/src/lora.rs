//! LoRA adapters of PEFT: low-rank changes of a model's matrices, merged as the matrices are
//! loaded.
//!
//! [`Adapter`] reads an adapter folder (`adapter_config.json`, `adapter_model.safetensors` or `.bin`) and
//! finds what it changes from the names of its tensors:
//!
//! ```text
//!  base_model.model.MODULE.lora_A.weight   [rank, in]    A  ┐ added to MODULE.weight
//!  base_model.model.MODULE.lora_B.weight   [out, rank]   B  ┘
//!  base_model.model.MODULE.lora_magnitude_vector[.weight] [out]   m, makes it DoRA
//!  base_model.model.TENSOR                               replaces TENSOR (modules_to_save, biases)
//!  base_model.model.MODULE.base_layer.PART               replaces MODULE.PART, before A and B are added
//! ```
//!
//! PEFT stores the last form where it saves along what an adapted module had before: biases with
//! `bias: all`, the head where that is adapted too.
//!
//! Names are those of the base model's class, which may be another class than the folder's: so
//! `checked.rs` renames them by the rule for the folder's own tensors ([`Adapter::rename`]).
//!
//! [`Adapted`] is the base's [`Tensors`] with adapters merged, which `checked.rs` hands to engines
//! and to `merge.rs`. With `s = alpha / rank`, or `alpha / sqrt(rank)` for rsLoRA:
//!
//! ```text
//!  LoRA   W' = W + s * B A
//!  DoRA   W' = m_row / |V_row| * V_row,   V = W + s * B A, |V_row| its Euclidean norm over inputs
//! ```
//!
//! `W` is read in f32. Each adapter sums a row in f64 and rounds it to f32; after the last one the
//! row is rounded to the dtype asked for. Several adapters therefore apply one after another, in
//! the order of the caller's list. Sums are taken per row over the rank in ascending order, so
//! results depend neither on threads nor on how many rows come at a time. PEFT's own merge rounds
//! `s * B A` to the dtype of `B` and adds in the dtype of the base, so in bf16 it differs by about
//! a unit in the last place.
//!
//! With the feature `train`, `write.rs` writes such a folder.
//!
//! What is not merged is refused by name when the folder is opened: other kinds of adapters,
//! changed embeddings in LoRA's form, changes of parameters that are no modules.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use half::bf16;
use judge_kernels::codes::Coding;
use judge_kernels::numbers::Numbers;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use crate::error::{AdapterProblem, TensorProblem};
use crate::file;
use crate::names::{HEAD, unwrapped};
use crate::read::{names, read_json};
use crate::safetensors::Checkpoint;
use crate::table::Table;
use crate::tensors::{Store, TakeCodes, TakeRows, Tensors};
use crate::{Dtype, Error};

/// What the names of an adapter's tensors begin with: PEFT's wrapper around the base model.
pub const PREFIX: &str = "base_model.model.";

/// What the product of two factors is multiplied by, as PEFT has it: `alpha / rank`, or with rsLoRA `alpha / sqrt(rank)`.
pub fn lora_scale(alpha: f64, rank: usize, rslora: bool) -> f32 {
    let rank = rank as f64;
    (alpha / if rslora { rank.sqrt() } else { rank }) as f32
}

/// A change of a base model's tensors, by the adapter in one folder.
pub struct Adapter {
    /// The adapter's folder.
    path: PathBuf,
    /// The whole `adapter_config.json`, which is part of the model's fingerprint.
    config: Value,
    /// The adapter's own tensors, by the names that PEFT gave them.
    tensors: Checkpoint,
    /// What changes, by the name of the base's tensor.
    changes: BTreeMap<String, Change>,
}

/// What becomes of a tensor of the base: it is replaced, or something is added, or both in this
/// order.
#[derive(Clone, Debug, Default, PartialEq)]
struct Change {
    /// The name of the adapter's tensor that replaces it.
    replaced: Option<String>,
    /// What is added.
    added: Option<Added>,
}

/// The product `scale * B A`. `a` and `b` are the names of the adapter's tensors.
#[derive(Clone, Debug, PartialEq)]
struct Added {
    /// The name of `A`, `[rank, columns]`.
    a: String,
    /// The name of `B`, `[rows, rank]`.
    b: String,
    /// Rows of `A`, checked against the configuration.
    rank: usize,
    /// `alpha / rank` or `alpha / sqrt(rank)`, finite; computed in f64.
    scale: f32,
    /// DoRA: the name of the tensor `[rows]` of the lengths that rows get.
    magnitude: Option<String>,
}

/// Takes in a change of a tensor, which may have one of the other kind.
///
/// # Errors
/// [`AdapterProblem::Twice`] if it has one of the same kind.
fn add(changes: &mut BTreeMap<String, Change>, name: String, change: Change) -> Result<(), AdapterProblem> {
    let own = changes.entry(name.clone()).or_default();
    let is_twice = own.replaced.is_some() && change.replaced.is_some() || own.added.is_some() && change.added.is_some();
    if is_twice {
        return Err(AdapterProblem::Twice { name });
    }
    own.replaced = change.replaced.or(own.replaced.take());
    own.added = change.added.or(own.added.take());
    Ok(())
}

/// The fields of `adapter_config.json` that decide about numbers, with the defaults of PEFT's
/// `LoraConfig`. Which modules are changed is not read from here but from the tensors.
#[derive(Deserialize)]
struct Settings {
    /// Must be `LORA`.
    peft_type: String,
    /// The rank of modules that `rank_pattern` does not match.
    #[serde(default = "eight")]
    r: usize,
    /// The numerator of the scale, for modules that `alpha_pattern` does not match.
    #[serde(default = "eight_as_float")]
    lora_alpha: f64,
    /// Whether the scale is divided by the root of the rank instead of the rank.
    #[serde(default, deserialize_with = "unless_null")]
    use_rslora: bool,
    /// Whether every pair has a magnitude.
    #[serde(default, deserialize_with = "unless_null")]
    use_dora: bool,
    /// Whether `B A` would have to be transposed, for layers of GPT-2's kind: refused.
    #[serde(default, deserialize_with = "unless_null")]
    fan_in_fan_out: bool,
    /// Ranks by patterns of module paths, see [`of_module`].
    #[serde(default, deserialize_with = "unless_null")]
    rank_pattern: BTreeMap<String, usize>,
    /// Alphas by patterns of module paths, see [`of_module`].
    #[serde(default, deserialize_with = "unless_null")]
    alpha_pattern: BTreeMap<String, f64>,
}

/// A value, or the default for `null`, which Python takes for false and for nothing.
fn unless_null<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(deserializer: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// PEFT's default rank.
fn eight() -> usize {
    8
}

/// PEFT's default alpha.
fn eight_as_float() -> f64 {
    8.0
}

/// Fields of adapters that compute something else than what is merged here. They must be absent,
/// null, false or empty.
#[rustfmt::skip]
const UNSUPPORTED: [&str; 14] = [
    "use_qalora", "use_bdlora", "layer_replication", "alora_invocation_tokens", "arrow_config", "bdlora_config",
    "kasa_config", "velora_config", "monteclora_config", "mica_config", "target_parameters", "trainable_token_indices",
    "megatron_config", "lora_bias",
];

/// What `init_lora_weights` may name: ways to draw the first factors that leave the base's weights as they are. Others
/// (PiSSA, OLoRA, CorDA, LoftQ, LoRA-GA) change these too, which such a folder does not hold; after PEFT has converted one
/// to a plain adapter, the field has another value.
const LEAVE_THE_BASE: [&str; 4] = ["gaussian", "eva", "orthogonal", "mica"];

/// What is merged: its name, what an adapter's folder has of it, and what `judge tune` writes of it, in Markdown.
const KINDS: [[&str; 3]; 4] = [
    [
        "LoRA",
        "`peft_type` `LORA`, with ranks and factors by `rank_pattern` and `alpha_pattern`: names of modules, not regular expressions",
        "`--method lora`",
    ],
    ["rsLoRA", "`use_rslora`", "`--rslora`"],
    ["DoRA", "`use_dora`, with the magnitudes of every matrix", ""],
    ["whole tensors", "`modules_to_save`, such as a reward model's head; biases; the head", "a head of labels"],
];

/// Rows of a table of adapters for people: what is merged, how the first factors may have been drawn, and what is refused.
pub fn kinds() -> impl Iterator<Item = [String; 3]> {
    let list = |names: &[&str]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let drawn = format!("`init_lora_weights` `true`, `false`, {}", list(&LEAVE_THE_BASE));
    let refused =
        format!("any other `peft_type`; unless null, false or empty, `fan_in_fan_out`, {}", list(&UNSUPPORTED));
    let more = [["first factors", drawn.as_str(), "`true`"], ["refused", refused.as_str(), ""]];
    KINDS.into_iter().map(|row| row.map(str::to_owned)).chain(more.map(|row| row.map(str::to_owned)))
}

impl Adapter {
    /// Reads an adapter's configuration and the header of its tensors, and finds what it changes.
    ///
    /// # Errors
    /// [`Error::Adapter`] for what is not supported or does not fit together, and those of the
    /// files.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let config_path = path.join(file::ADAPTER_CONFIG);
        let fault = |problem| Error::Adapter { path: path.to_owned(), problem };
        if !config_path.is_file() {
            let found = if path.is_dir() { "a folder without it" } else { "no folder" };
            return Err(fault(AdapterProblem::NoFolder { found }));
        }
        let config = read_json(&config_path)?;
        let unsupported =
            |field: &str, found: String| fault(AdapterProblem::Unsupported { field: field.to_owned(), found });
        let settings: Settings = serde_json::from_value(config.clone()).map_err(|source| {
            // serde does not name the field: it is the one that fails alone.
            let fails = |(name, value): &(&String, &Value)| {
                let alone = json!({ "peft_type": "LORA", name.as_str(): value });
                serde_json::from_value::<Settings>(alone).is_err()
            };
            match config.as_object().and_then(|fields| fields.iter().find(fails)) {
                Some((name, value)) => unsupported(name, value.to_string()),
                None => Error::Json { path: config_path.clone(), source },
            }
        })?;
        if settings.peft_type != "LORA" {
            return Err(unsupported("peft_type", settings.peft_type));
        }
        if settings.fan_in_fan_out {
            return Err(unsupported("fan_in_fan_out", "true".to_owned()));
        }
        let is_set = |value: &&Value| !matches!(value, Value::Null | Value::Bool(false)) && !is_empty(value);
        for field in UNSUPPORTED {
            if let Some(value) = config.get(field).filter(is_set) {
                return Err(unsupported(field, value.to_string()));
            }
        }
        match config.get("init_lora_weights") {
            None | Some(Value::Null | Value::Bool(_)) => {}
            // PEFT takes some of the names in any case.
            Some(Value::String(name)) if LEAVE_THE_BASE.contains(&name.to_lowercase().as_str()) => {}
            Some(Value::String(name)) => return Err(unsupported("init_lora_weights", name.clone())),
            Some(other) => return Err(unsupported("init_lora_weights", other.to_string())),
        }
        let weights = [file::ADAPTER_WEIGHTS, file::ADAPTER_PICKLE].map(|name| path.join(name));
        let Some(weights) = weights.into_iter().find(|weights| weights.is_file()) else {
            let (folder, found) = (path.to_owned(), names(path)?);
            return Err(Error::MissingFile { folder, wanted: file::ADAPTER_WEIGHTS, found });
        };
        let mut tensors = Checkpoint::of_file(weights)?;
        tensors.rename(|name| Some(without_adapter(&unwrapped(name))))?;
        let changes = changes(&settings, &tensors).map_err(fault)?;
        Ok(Self { path: path.to_owned(), config, tensors, changes })
    }

    /// The parsed `adapter_config.json`.
    pub fn config(&self) -> &Value {
        &self.config
    }

    /// The adapter's own tensors, as PEFT named them.
    pub fn tensors(&self) -> &Checkpoint {
        &self.tensors
    }

    /// The last part of its path, which becomes part of the model's name.
    pub fn name(&self) -> String {
        self.path.file_name().unwrap_or(self.path.as_os_str()).to_string_lossy().into_owned()
    }

    /// Whether it was trained with the class of a sequence classifier.
    pub fn is_of_classifier(&self) -> bool {
        self.config.get("task_type").and_then(Value::as_str) == Some("SEQ_CLS")
    }

    /// Whether a head that it brings may be that of a sequence classifier: its class was one, or is not stated.
    pub fn may_bring_labels(&self) -> bool {
        self.is_of_classifier() || self.config.get("task_type").is_none_or(Value::is_null)
    }

    /// The error of this adapter.
    pub fn fault(&self, problem: AdapterProblem) -> Error {
        Error::Adapter { path: self.path.clone(), problem }
    }

    /// Gives the base's tensors that it changes the names that `own` has for them, and drops the
    /// changes of those that have none, such as matrices that see pictures.
    ///
    /// # Errors
    /// [`AdapterProblem::Twice`] if two changes of one kind get one name, and
    /// [`AdapterProblem::Empty`] if no change is left.
    pub fn rename(&mut self, own: impl Fn(&str) -> Option<String>) -> Result<(), Error> {
        let mut renamed = BTreeMap::new();
        for (name, change) in std::mem::take(&mut self.changes) {
            let Some(own) = own(&name) else { continue };
            add(&mut renamed, own, change).map_err(|problem| self.fault(problem))?;
        }
        self.changes = renamed;
        if self.changes.is_empty() { Err(self.fault(AdapterProblem::Empty)) } else { Ok(()) }
    }

    /// Whether it changes a tensor, and whether it replaces it first, so that the base's own numbers
    /// do not matter.
    pub fn changes(&self, name: &str) -> Option<bool> {
        self.changes.get(name).map(|change| change.replaced.is_some())
    }

    /// Whether it replaces this tensor by a copy of its module (`modules_to_save`). Then a module that is tied to the base's
    /// keeps the base's numbers, as in PEFT, unless `ensure_weight_tying` is true.
    pub fn unties(&self, name: &str) -> bool {
        let ties = self.config.get("ensure_weight_tying") == Some(&Value::Bool(true));
        let (Some(by), false) = (self.replacement(name), ties) else { return false };
        let module = by.trim_end_matches(".weight");
        let saved = self.config.get("modules_to_save").and_then(Value::as_array);
        saved.into_iter().flatten().filter_map(Value::as_str).any(|saved| module.ends_with(saved))
    }

    /// Makes what replaces the embedding replace the head too, unless the adapter brings a head or [`unties`](Self::unties)
    /// the two: for a head that is tied in the base and becomes a matrix of its own by another adapter.
    pub fn tie_head(&mut self, embedding: &str) {
        let Some(by) = self.replacement(embedding).filter(|_| !self.unties(embedding)) else { return };
        self.changes.entry(HEAD.to_owned()).or_default().replaced.get_or_insert(by);
    }

    /// The rows of the tensor that replaces this one, if one does.
    pub fn rows_of_replacement(&self, name: &str) -> Option<usize> {
        self.tensors.shape(&self.replacement(name)?)?.first().copied()
    }

    /// Fails if it changes a tensor that the base model, whose tensors these are, does not have, or
    /// adds to one that is no matrix, such as the taps of a convolution. Shapes are checked when
    /// tensors are taken.
    ///
    /// # Errors
    /// [`AdapterProblem::NoSuchTensor`] with all such names, [`AdapterProblem::Unsupported`] for
    /// the first that is no matrix.
    pub fn check(&self, base: &[(String, Vec<usize>)]) -> Result<(), Error> {
        let known: BTreeSet<&str> = base.iter().map(|(name, _)| name.as_str()).collect();
        let names: Vec<String> = self.changes.keys().filter(|name| !known.contains(name.as_str())).cloned().collect();
        if !names.is_empty() {
            return Err(self.fault(AdapterProblem::NoSuchTensor { names }));
        }
        // Only matrices have rows and columns that a product of two matrices could be added to.
        let is_added = |name: &str| self.changes.get(name).is_some_and(|change| change.added.is_some());
        match base.iter().find(|(name, shape)| shape.len() != 2 && is_added(name)) {
            Some((name, _)) => Err(self.fault(AdapterProblem::Unsupported {
                field: "target_modules".to_owned(),
                found: name.trim_end_matches(".weight").to_owned(),
            })),
            None => Ok(()),
        }
    }

    /// Takes what is added to a matrix of this shape, in f32; `None` if nothing is.
    ///
    /// # Errors
    /// [`Error::Tensor`] for tensors whose shapes do not fit the matrix or that are not finite.
    pub fn low_rank(&mut self, name: &str, [rows, columns]: [usize; 2]) -> Result<Option<LowRank>, Error> {
        let Some(Added { a, b, rank, scale, magnitude }) =
            self.changes.get(name).and_then(|change| change.added.clone())
        else {
            return Ok(None);
        };
        let magnitude = magnitude.map(|name| self.tensors.take(&name, &[rows], Dtype::F32)).transpose()?;
        Ok(Some(LowRank {
            a: self.tensors.take(&a, &[rank, columns], Dtype::F32)?,
            b: self.tensors.take(&b, &[rows, rank], Dtype::F32)?,
            rank,
            scale,
            magnitude,
        }))
    }

    /// Takes the tensor of this shape that replaces this one of the base's, in f32; `None` if none does.
    ///
    /// # Errors
    /// Those of [`Tensors::take`].
    pub fn take_replacement(&mut self, name: &str, shape: &[usize]) -> Result<Option<Vec<f32>>, Error> {
        self.replacement(name).map(|by| self.tensors.take(&by, shape, Dtype::F32)).transpose()
    }

    /// How many tensors of the base it changes.
    #[must_use]
    pub fn n_changes(&self) -> usize {
        self.changes.len()
    }

    /// The name of the adapter's tensor that replaces this one of the base's, if one does.
    fn replacement(&self, name: &str) -> Option<String> {
        self.changes.get(name)?.replaced.clone()
    }
}

/// The name that PEFT gives a tensor when it saves an adapter, from the one that it has while it runs,
/// which other programs save: there the adapter's own name, mostly `default`, stands behind the part.
fn without_adapter(name: &str) -> String {
    let parts = ["lora_A", "lora_B", "lora_magnitude_vector"].map(|part| format!(".{part}.default."));
    let plain =
        parts.iter().fold(name.to_owned(), |name, part| name.replace(part.as_str(), part.trim_end_matches("default.")));
    plain.replace(".modules_to_save.default.", ".")
}

/// Whether a value is an object or a list without content.
fn is_empty(value: &Value) -> bool {
    value.as_object().is_some_and(serde_json::Map::is_empty) || value.as_array().is_some_and(Vec::is_empty)
}

/// What the tensors of an adapter change, by the names of the base's tensors. It goes by the
/// tensors that are there, not by `target_modules`, and every tensor must have a meaning.
///
/// # Errors
/// An [`AdapterProblem`] for a tensor that belongs to no pair and replaces nothing, for a rank that
/// contradicts the configuration, for a pair of DoRA's without a magnitude, for a scale that is not finite, for two
/// changes of one kind of one tensor, and for an adapter without tensors.
fn changes(settings: &Settings, tensors: &Checkpoint) -> Result<BTreeMap<String, Change>, AdapterProblem> {
    let unknown = |name: &str| AdapterProblem::Tensor { name: name.to_owned() };
    let mut changes = BTreeMap::new();
    for name in tensors.names() {
        let module = name.strip_prefix(PREFIX).ok_or_else(|| unknown(name))?;
        if let Some(module) = module.strip_suffix(".lora_A.weight") {
            let partner = |infix: &str| Some(format!("{PREFIX}{module}.{infix}")).filter(|name| tensors.contains(name));
            let b = partner("lora_B.weight").ok_or_else(|| unknown(name))?;
            let magnitude = partner("lora_magnitude_vector").or_else(|| partner("lora_magnitude_vector.weight"));
            if settings.use_dora && magnitude.is_none() {
                let found = format!("true without {module}.lora_magnitude_vector");
                return Err(AdapterProblem::Unsupported { field: "use_dora".to_owned(), found });
            }
            let rank = of_module("rank_pattern", &settings.rank_pattern, module)?.unwrap_or(settings.r);
            let alpha = of_module("alpha_pattern", &settings.alpha_pattern, module)?.unwrap_or(settings.lora_alpha);
            if tensors.shape(name).and_then(|shape| shape.first()) != Some(&rank) {
                let found = tensors.shape(name).unwrap_or_default().to_vec();
                return Err(AdapterProblem::Rank { name: name.to_owned(), expected: rank, found });
            }
            let scale = lora_scale(alpha, rank, settings.use_rslora);
            if !scale.is_finite() {
                return Err(AdapterProblem::Unsupported { field: "lora_alpha".to_owned(), found: alpha.to_string() });
            }
            let added = Added { a: name.to_owned(), b, rank, scale, magnitude };
            add(&mut changes, format!("{module}.weight"), Change { added: Some(added), replaced: None })?;
        } else if module.contains(".lora_embedding_") {
            return Err(AdapterProblem::Unsupported { field: "target_modules".to_owned(), found: module.to_owned() });
        } else if !module.contains(".lora_") {
            // What an adapted module had before is one level down from it.
            let of_base = match module.rsplit_once(".base_layer.") {
                Some((module, part)) => format!("{module}.{part}"),
                None => module.to_owned(),
            };
            add(&mut changes, of_base, Change { replaced: Some(name.to_owned()), added: None })?;
        } else {
            // `lora_B` and magnitudes are found from their `lora_A`; here it only must exist.
            let of_pair = module.strip_suffix(".lora_B.weight");
            let of_pair = of_pair
                .or_else(|| module.strip_suffix(".weight").unwrap_or(module).strip_suffix(".lora_magnitude_vector"));
            let partner = of_pair.map(|module| format!("{PREFIX}{module}.lora_A.weight"));
            if !partner.is_some_and(|partner| tensors.contains(&partner)) {
                return Err(unknown(name));
            }
        }
    }
    if changes.is_empty() { Err(AdapterProblem::Empty) } else { Ok(changes) }
}

/// The value of the pattern that a module's path matches; `None` if none does. PEFT matches the
/// path against the regular expression `(.*\.)?(PATTERN)$`. Read here are patterns that are module
/// paths: `q_proj` matches a path that ends with `.q_proj` or is `q_proj`. Behind a `^` the pattern
/// must be the whole path.
///
/// # Errors
/// [`AdapterProblem::Unsupported`] for a pattern that needs a regular expression, and for patterns
/// that match the same module with different values. PEFT takes the first in the order of the file,
/// which is not known here.
fn of_module<T: Copy + PartialEq>(
    field: &str,
    patterns: &BTreeMap<String, T>,
    module: &str,
) -> Result<Option<T>, AdapterProblem> {
    let unsupported = |found: String| AdapterProblem::Unsupported { field: field.to_owned(), found };
    let mut found = None;
    for (pattern, &value) in patterns {
        let (is_whole, path) = match pattern.strip_prefix('^') {
            Some(path) => (true, path),
            None => (false, pattern.as_str()),
        };
        if path.contains(|c: char| !(c.is_alphanumeric() || c == '_' || c == '.')) {
            return Err(unsupported(format!("{pattern} (a regular expression)")));
        }
        let matches = module.strip_suffix(path).is_some_and(|rest| rest.is_empty() || !is_whole && rest.ends_with('.'));
        if matches && found.replace(value).is_some_and(|other| other != value) {
            let of_two = "with another pattern of another value; PEFT takes the first of the file";
            return Err(unsupported(format!("{pattern} (it matches {module} {of_two})")));
        }
    }
    Ok(found)
}

/// What is added to a matrix `[rows, columns]`, in memory until the matrix has been handed over.
pub struct LowRank {
    /// `[rank, columns]`.
    pub a: Vec<f32>,
    /// `[rows, rank]`.
    pub b: Vec<f32>,
    /// Columns of `b`, rows of `a`.
    pub rank: usize,
    /// The factor of the product.
    pub scale: f32,
    /// DoRA: the length `[rows]` that each row gets.
    pub magnitude: Option<Vec<f32>>,
}

impl LowRank {
    /// Changes row `index` of the matrix in place. Sums are f64, and the row is rounded to f32
    /// once. A row of zeros under DoRA becomes NaN, which the caller finds.
    fn apply(&self, index: usize, row: &mut [f32]) {
        let mut sums = vec![0.0_f64; row.len()];
        for (k, &b) in self.b[index * self.rank..][..self.rank].iter().enumerate() {
            let a = &self.a[k * row.len()..][..row.len()];
            sums.iter_mut().zip(a).for_each(|(sum, &a)| *sum += f64::from(b) * f64::from(a));
        }
        sums.iter_mut().zip(&*row).for_each(|(sum, &w)| *sum = f64::from(w) + f64::from(self.scale) * *sum);
        let factor = match &self.magnitude {
            Some(magnitude) => f64::from(magnitude[index]) / sums.iter().map(|x| x * x).sum::<f64>().sqrt(),
            None => 1.0,
        };
        row.iter_mut().zip(sums).for_each(|(w, sum)| *w = (factor * sum) as f32);
    }
}

/// A base model's tensors with adapters merged as they are taken, see the module's formulas.
pub struct Adapted<'a> {
    /// The base's tensors. Names are looked up and marked as taken here.
    pub base: &'a mut dyn Tensors,
    /// The adapters in the order in which they apply. A replacement ends what earlier ones changed.
    pub adapters: &'a mut [Adapter],
    /// The name of the embedding, if the head is the embedding in the base and a matrix of its own here.
    pub untied_from: Option<&'a str>,
    /// The tensors that adapters bring whole and that the base does not have.
    pub brought: &'a [String],
}

impl<'a> Adapted<'a> {
    /// The base's name for the numbers that a tensor has before adapters change it.
    fn in_base<'n>(&self, name: &'n str) -> &'n str
    where
        'a: 'n,
    {
        self.untied_from.filter(|_| name == HEAD).unwrap_or(name)
    }

    /// Whether adapters bring a tensor that the base does not have.
    fn is_brought(&self, name: &str) -> bool {
        self.brought.iter().any(|brought| brought == name)
    }

    /// Whether an adapter adds to a tensor or replaces it.
    fn is_changed(&self, name: &str) -> bool {
        self.adapters.iter().any(|adapter| adapter.changes.contains_key(name))
    }
}

impl Tensors for Adapted<'_> {
    fn pass_over(&mut self, name: &str) {
        self.base.pass_over(self.in_base(name));
    }

    /// The base's, if no adapter changes the matrix: what is merged is no codes any longer.
    fn coding(&self, name: &str, shape: [usize; 2]) -> Result<Option<Coding>, Error> {
        if self.is_changed(name) { Ok(None) } else { self.base.coding(self.in_base(name), shape) }
    }

    /// The base's: a matrix that an adapter changes has no coding.
    fn take_codes(&mut self, name: &str, shape: [usize; 2], dtype: Dtype, take: TakeCodes<'_>) -> Result<(), Error> {
        self.base.take_codes(self.in_base(name), shape, dtype, take)
    }

    /// Stays in the base's file if no adapter changes it; else a merged copy in memory.
    fn table(&mut self, name: &str, shape: [usize; 2], dtype: Dtype) -> Result<Table, Error> {
        if !self.is_changed(name) {
            return self.base.table(self.in_base(name), shape, dtype);
        }
        Table::collect(shape, |take| self.take_rows(name, shape, dtype, take))
    }

    /// Matrices go through [`take_rows`](Tensors::take_rows). A tensor of another shape can be
    /// replaced: the last adapter that replaces it counts, and earlier ones are read and checked
    /// all the same. Nothing is added to such a tensor: [`Adapter::check`] refuses that.
    fn take(&mut self, name: &str, shape: &[usize], dtype: Dtype) -> Result<Vec<f32>, Error> {
        if let &[rows, columns] = shape {
            let mut values = Vec::with_capacity(rows * columns);
            let mut take = |_: usize, some: Numbers<'_>| values.extend_from_slice(&some.widened());
            self.take_rows(name, [rows, columns], dtype, &mut take)?;
            return Ok(values);
        }
        // The last replacement counts. Earlier ones are taken too, so that they are checked.
        let mut found = if self.is_brought(name) { Vec::new() } else { self.base.take(name, shape, dtype)? };
        for adapter in &mut *self.adapters {
            if let Some(by) = adapter.replacement(name) {
                found = adapter.tensors.take(&by, shape, dtype)?;
            }
        }
        Ok(found)
    }

    /// Hands over the base's rows, or those of the last adapter that replaces the tensor, with the
    /// changes of later adapters applied. The base is read in f32 if anything changes.
    ///
    /// A merged row that is not finite is handed over before the error is returned. The error names
    /// the last adapter that changes the tensor, though an earlier one may be the cause.
    fn take_rows(&mut self, name: &str, shape: [usize; 2], dtype: Dtype, take: TakeRows<'_>) -> Result<(), Error> {
        let mut replaced = None;
        let mut changes = Vec::new();
        for (index, adapter) in self.adapters.iter_mut().enumerate() {
            if let Some(by) = adapter.replacement(name) {
                replaced = Some((index, by));
                changes.clear();
            }
            changes.extend(adapter.low_rank(name, shape)?);
        }
        let mut not_finite = None;
        let mut merged = |first: usize, rows: Numbers<'_>| {
            if changes.is_empty() {
                return take(first, rows);
            }
            let mut values = rows.widened().into_owned();
            for (index, row) in values.chunks_exact_mut(shape[1].max(1)).enumerate() {
                changes.iter().for_each(|change| change.apply(first + index, row));
            }
            let rounded: Vec<bf16> = match dtype {
                Dtype::F32 | Dtype::Tf32 => Vec::new(),
                Dtype::Bf16 => values.iter().map(|&x| bf16::from_f32(x)).collect(),
            };
            let numbers = if dtype == Dtype::Bf16 { Numbers::Bf16(&rounded) } else { Numbers::F32(&values) };
            not_finite = not_finite.or(numbers.not_finite().map(|(index, value)| (first * shape[1] + index, value)));
            take(first, numbers);
        };
        let read_as = if changes.is_empty() { dtype } else { Dtype::F32 };
        let in_base = self.in_base(name);
        match replaced {
            None => self.base.take_rows(in_base, shape, read_as, &mut merged)?,
            Some((index, by)) => {
                if !self.is_brought(name) {
                    self.base.pass_over(in_base);
                }
                self.adapters[index].tensors.take_rows(&by, shape, read_as, &mut merged)?;
            }
        }
        let last = self.adapters.iter().rfind(|adapter| adapter.changes.contains_key(name));
        match (not_finite, last) {
            (Some((index, value)), Some(adapter)) => {
                let problem = TensorProblem::NonFinite { index, value };
                Err(Error::Tensor { path: adapter.path.clone(), tensor: name.to_owned(), problem })
            }
            _ => Ok(()),
        }
    }
}
