//! The weights of a folder and of adapters over them, checked against the folder's description
//! before any is read.
//!
//! `model.rs`, `merge.rs` and tests open folders here, so there is one order of checks:
//!
//! ```text
//!  1  adapters                  opened, with the names of the description; one may bring a head of labels
//!  2  open the files            headers only, by names that the description has
//!  3  settings of GGUF files    must be those of the description
//!  4  vocabulary of GGUF files  lowers d_vocab of the description
//!  5  head                      what is stored decides, not what config.json says
//!  6  names, then shapes        all missing and all unused names in one error
//!  7  adapters                  every change must be of a tensor that the description names
//!  8  value head                where there is such a file
//!  9  dtype                     as asked for, or that of the base
//! ```
//!
//! This module does not read numbers (`weights/`) and does not look at `config.json` (`judge-arch`).
//!
//! Numbers are checked as they are taken, so a NaN in the last tensor is found when loading is
//! nearly done. Changes of adapters are checked after the base, so an error about the base is never
//! blamed on an adapter.
//!
//! # The head over the vocabulary
//!
//! | stored, or replaced by an adapter | `config.json` | head |
//! |---|---|---|
//! | `lm_head.weight` | whatever it says | that matrix |
//! | the same, bit for bit the embedding | tied | the embedding |
//! | nothing | tied | the embedding; with what adapters add to it, a matrix of its own |
//! | nothing, and another embedding | tied | a matrix of its own: the base's embedding, as PEFT leaves it; see [`Adapter::unties`] |
//! | nothing | not tied, or a class without a head | none: states are read |
//!
//! So does transformers 5: a tied head that has numbers of its own in the file keeps them.
//!
//! # A head of labels that an adapter brings
//!
//! Reward models are mostly trained as an adapter of a causal model (`task_type` `SEQ_CLS`), which has
//! `score.weight` whole. Then the base's own head does not count, as in transformers, where the base is
//! loaded as a sequence classifier.
//!
//! The same holds of encoders, whose heads are several tensors: those that adapters do not bring, such as BERT's
//! pooler, are the base's.

use std::path::PathBuf;
use std::sync::Arc;

use judge_arch::{
    Architecture, EncoderHeadSpec, EncoderSpec, HEAD, HeadSpec, LabelsSpec, ModelSpec, NoHead, SCORE, encoder_head,
    labels_of_adapter, text_fields,
};
use serde_json::{Map, Value};

use crate::fingerprint::Hashed;
use crate::folder::Folder;
use crate::value_head::ValueHead;
use crate::weights::{self, Adapted, Adapter, HeadCounts, OwnNames, Store};
use crate::{AdapterProblem, Dtype, Error};

/// A folder's weights that agree with its description: every tensor that it names is there in its
/// shape, and no other but redundant ones. Adapters change tensors of the description only; the
/// shapes of their tensors are checked when they are taken.
pub(crate) struct CheckedWeights {
    /// The folder's own tensors, none taken yet.
    pub(crate) base: Box<dyn Store>,
    /// The adapters, in the order in which they are merged.
    pub(crate) adapters: Vec<Adapter>,
    /// The dtype that weights are rounded to: the one asked for, or else [`Store::stored_dtype`].
    pub(crate) dtype: Dtype,
    /// What this dtype loses of the stored numbers, if nobody asked for it or it cannot be helped.
    pub(crate) loss: Option<String>,
    /// A reward head in a file of its own.
    pub(crate) value_head: Option<ValueHead>,
    /// The name of the embedding, if the head is the embedding in the base and adapters make it a matrix of its own.
    untied_from: Option<String>,
    /// The tensors that adapters have and the base has not: a head of labels.
    brought: Vec<String>,
}

/// The weights of a folder by the names that `spec` has for them. Only headers have been read;
/// names and shapes are not compared with `spec` yet.
///
/// # Errors
/// Those of the files, and `WeightsError::Unsupported` for a form that is not read.
pub(crate) fn store(folder: &Folder, spec: &Architecture) -> Result<Box<dyn Store>, Error> {
    match spec {
        Architecture::Decoder(spec) => {
            weights::open(folder, &OwnNames::of(spec), HeadCounts::of(spec), spec.stacks(), spec.idle_tensors())
        }
        Architecture::Encoder(spec) => weights::open_encoder(folder, spec, &[]),
    }
}

/// Opens adapters by the names of a description, and gives that the head of labels which one of them brings. Returns the tensors of
/// that head too, which are not the base's.
///
/// # Errors
/// Those of the adapters' files, [`AdapterProblem::NoLabels`], and [`Error::Config`] for a head that is not read.
pub(crate) fn open_adapters(
    folder: &Folder,
    spec: &mut Architecture,
    adapters: &[PathBuf],
) -> Result<(Vec<Adapter>, Vec<String>), Error> {
    let mut adapters = adapters.iter().map(|path| Adapter::open(path)).collect::<Result<Vec<_>, _>>()?;
    let brought = match spec {
        Architecture::Decoder(spec) => {
            let own = OwnNames::of(spec);
            adapters.iter_mut().try_for_each(|adapter| adapter.rename(|name| own.own(name)))?;
            bring_labels(folder, Arc::make_mut(spec), &adapters)?.into_iter().collect()
        }
        Architecture::Encoder(spec) => {
            let brings = bring_encoder_head(folder, spec, &adapters)?;
            adapters.iter_mut().try_for_each(|adapter| adapter.rename(|name| spec.own_name(name)))?;
            if brings { replaced_of_head(spec, &adapters) } else { Vec::new() }
        }
    };
    Ok((adapters, brought))
}

impl CheckedWeights {
    /// Opens the files of a folder and of adapters and checks both against `spec`.
    ///
    /// `spec` is changed in two cases. A GGUF file may leave out the last rows of the embedding, which
    /// no token has, and then `d_vocab` becomes the number of rows that are there. And its head
    /// becomes the one that is stored, or that an adapter brings; see the module's table.
    ///
    /// # Errors
    /// Those of the files, `WeightsError::TensorNames` and `WeightsError::Tensor` for a base that is not what
    /// `spec` describes, and `WeightsError::Adapter` for an adapter that is not read or changes other
    /// tensors.
    pub(crate) fn open(
        folder: &Folder,
        spec: &mut Architecture,
        dtype: Option<Dtype>,
        adapters: &[PathBuf],
    ) -> Result<Self, Error> {
        let folders = adapters;
        let (mut adapters, brought) = open_adapters(folder, spec, adapters)?;
        let base = match &*spec {
            Architecture::Decoder(_) => store(folder, spec)?,
            Architecture::Encoder(spec) => weights::open_encoder(folder, spec, &brought)?,
        };
        let mut untied_from = None;
        if let Architecture::Decoder(spec) = &mut *spec {
            if let Some(file) = folder.gguf() {
                weights::check_settings(file, spec, &text_model(folder)?)?;
            }
            let spec = Arc::make_mut(spec);
            if let Some(rows) = base.vocabulary(&spec.embedding).filter(|rows| (1..spec.d_vocab).contains(rows)) {
                let d_vocab = spec.d_vocab;
                tracing::info!(rows, d_vocab, "the file leaves out rows of the vocabulary that no token has");
                spec.d_vocab = rows;
            }
            untied_from = settle_head(spec, &*base, &mut adapters);
        }
        let tensors = spec.tensors();
        let is_in_base = |name: &String| !(untied_from.is_some() && name == HEAD || brought.contains(name));
        let in_base = tensors.iter().filter(|(name, _)| is_in_base(name));
        base.check(&in_base.cloned().collect::<Vec<_>>())?;
        adapters.iter().try_for_each(|adapter| adapter.check(&tensors))?;
        let value_head = ValueHead::find(folder, spec, folders)?;
        let asked = dtype;
        let dtype = asked.unwrap_or_else(|| base.stored_dtype());
        let wider = base.wider_than_bf16().filter(|_| asked.is_none() && dtype == Dtype::Bf16);
        let loss = match wider {
            // Nothing here computes in f64, so that whoever names a dtype is told too.
            _ if base.has_f64() || adapters.iter().any(|adapter| adapter.tensors().has_f64()) => {
                Some(format!("weights that are stored in f64 are rounded to {dtype}: no dtype here keeps all of their bits"))
            }
            wider => wider.map(|wider| {
                format!("weights that are stored in {wider} are rounded to bf16, which keeps fewer bits; the dtype f32 keeps all")
            }),
        };
        Ok(Self { base, adapters, dtype, loss, value_head, untied_from, brought })
    }

    /// What `fingerprint.rs` hashes.
    pub(crate) fn hashed(&self) -> Hashed<'_> {
        let value_head = self.value_head.as_ref().map(|head| &head.tensors);
        Hashed { base: &*self.base, adapters: &self.adapters, value_head }
    }

    /// The base's tensors with the adapters merged as they are taken. It borrows both, so the
    /// caller uses [`Store::finish`] of `base` when it is done.
    pub(crate) fn merged(&mut self) -> Adapted<'_> {
        let Self { base, adapters, untied_from, brought, .. } = self;
        Adapted { base: &mut **base, adapters, untied_from: untied_from.as_deref(), brought }
    }
}

/// The fields of the text model: those of `config.json`, or of a vision-language folder those inside it.
///
/// # Errors
/// [`Error::Config`] if the text model's fields are not found.
fn text_model(folder: &Folder) -> Result<Map<String, Value>, Error> {
    let text = text_fields(folder.config()).map_err(|problem| folder.wrong_config(problem))?;
    Ok(text.or_else(|| folder.config().as_object().cloned()).unwrap_or_default())
}

/// A score head of so many labels for a folder that has none.
///
/// # Errors
/// [`Error::Config`] if the text model's fields are not found, or if what they say of labels cannot be read.
pub(crate) fn new_labels(folder: &Folder, n: usize) -> Result<LabelsSpec, Error> {
    labels_of_adapter(&text_model(folder)?, n).map_err(|problem| folder.wrong_config(problem))
}

/// Makes the head of a description that of labels which adapters bring, if they do and it is another. Returns
/// the name of its matrix, which the base then need not have.
///
/// # Errors
/// [`AdapterProblem::NoLabels`] for an adapter of a sequence classifier where neither it nor an earlier one nor
/// the base has a head of labels, and [`Error::Config`] for fields of labels that are none.
fn bring_labels(folder: &Folder, spec: &mut ModelSpec, adapters: &[Adapter]) -> Result<Option<String>, Error> {
    let mut brought = None;
    for adapter in adapters {
        let rows = adapter.rows_of_replacement(SCORE).filter(|_| adapter.may_bring_labels());
        match rows {
            Some(rows) if spec.labels().is_none() => {
                spec.head = HeadSpec::Labels(new_labels(folder, rows)?);
                brought = Some(SCORE.to_owned());
            }
            None if spec.labels().is_none() && adapter.is_of_classifier() => {
                return Err(adapter.fault(AdapterProblem::NoLabels).into());
            }
            _ => {}
        }
    }
    Ok(brought)
}

/// Gives the description of an encoder that is no sequence classifier the head whose labels an adapter brings. Returns
/// whether one does.
///
/// # Errors
/// [`Error::Config`] for a head that is not read.
fn bring_encoder_head(folder: &Folder, spec: &mut Arc<EncoderSpec>, adapters: &[Adapter]) -> Result<bool, Error> {
    let mut adapters = adapters.iter().filter(|adapter| adapter.may_bring_labels()).peekable();
    if spec.head.is_some() || adapters.peek().is_none() {
        return Ok(false);
    }
    let fields = folder.config().as_object().cloned().unwrap_or_default();
    let head = |count: usize| encoder_head(&fields, count).map_err(|problem| folder.wrong_config(problem));
    let labels = head(1)?.out.weights().remove(0).0;
    let Some(rows) = adapters.find_map(|adapter| adapter.rows_of_replacement(&labels)) else { return Ok(false) };
    Arc::make_mut(spec).head = Some(head(rows)?);
    Ok(true)
}

/// The tensors of an encoder's head that adapters replace.
fn replaced_of_head(spec: &EncoderSpec, adapters: &[Adapter]) -> Vec<String> {
    let of_head = spec.head.iter().flat_map(EncoderHeadSpec::tensors).map(|(name, _)| name);
    of_head.filter(|name| adapters.iter().any(|adapter| adapter.changes(name) == Some(true))).collect()
}

/// Makes the head of a description that which is stored; see the module's table. A head of labels
/// stays. Returns the name of the embedding if adapters make a matrix of its own of a head that the base does not store.
fn settle_head(spec: &mut ModelSpec, base: &dyn Store, adapters: &mut [Adapter]) -> Option<String> {
    let ModelSpec { head, embedding, .. } = spec;
    if matches!(head, HeadSpec::Labels(_)) {
        return None;
    }
    let is_tied = matches!(head, HeadSpec::Embedding);
    // Two equal matrices are one.
    let is_stored = base.has(HEAD) && !(is_tied && base.is_redundant(HEAD));
    // Whether the first adapter that changes the head brings it whole.
    let changed = adapters.iter().find_map(|adapter| adapter.changes(HEAD));
    let is_left = is_tied && adapters.iter().any(|adapter| adapter.unties(embedding));
    let is_untied = !is_stored && (changed == Some(true) || is_tied && changed.is_some() || is_left);
    if is_stored || is_untied {
        *head = HeadSpec::Own(HEAD.to_owned());
    } else if matches!(head, HeadSpec::Own(_)) {
        *head = HeadSpec::Absent(NoHead::NotStored);
    }
    if is_untied && is_tied {
        adapters.iter_mut().for_each(|adapter| adapter.tie_head(embedding));
    }
    is_untied.then(|| embedding.clone())
}
