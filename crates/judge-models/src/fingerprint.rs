//! What tells one model from another: the hash that `Model::load` puts into
//! `ModelInfo::fingerprint` and that run records keep.
//!
//! It covers all that changes what a model says: configuration, tokenizer, template, weights and
//! adapters. It leaves out what does not: the folder's path and name and those of an adapter's base, how
//! tensors are cut into shards, the layout of JSON, and how the model is loaded (dtype, device, kernel).
//!
//! What is hashed, with BLAKE3. `‹x›` is a part with its length before it ([`put`]):
//!
//! ```text
//! ‹DOMAIN› ‹config.json›
//! ‹name› ‹content›                 for each of JSON_FILES; a file that is not there has no content
//! ‹name› bytes                     for each file of SentencePiece's, where there is no tokenizer.json
//! ‹added_tokens.json› ‹content›    where it is read beside a tokenizer.json
//! ‹name› ‹content›                 of the default among several chat templates, where it is a file
//! ‹chat_template.jinja›
//! tensors of the base
//! ‹adapter_config.json› tensors    for each adapter, in the order in which they are merged, without OF_NO_NUMBER
//! ‹value_head.safetensors› tensors of a value head, if there is one
//!
//! tensor:  ‹name› ‹dtype and shape› ‹piece› … ‹piece›      a sample
//!          ‹name› ‹dtype and shape› bytes                  in full; the form says how many bytes
//! ```
//!
//! Tensors come in the order of their names, as they are stored: quantised weights are hashed
//! before they are expanded. A sample reads at most 4 KiB of each, so weights that were edited in a
//! few places may keep their fingerprint. The full hash reads the whole checkpoint.

use std::collections::HashSet;
use std::hint::black_box;
use std::thread;

use blake3::Hasher;
use judge_text::added_tokens;
use serde_json::Value;

use crate::Error;
use crate::folder::{Folder, file};
use crate::weights::{Adapter, Checkpoint, Store};

/// Hashed first. Change its number whenever any folder would get another fingerprint. What few folders have, such as adapters, is put only
/// where it is there and counts, so that the others keep theirs.
const DOMAIN: &[u8] = b"judge-models fingerprint 1";

/// JSON files that change what a model says, apart from `config.json`. A new file here changes
/// every fingerprint.
const JSON_FILES: [&str; 5] = [
    file::GENERATION_CONFIG,
    file::TOKENIZER,
    file::TOKENIZER_CONFIG,
    file::SPECIAL_TOKENS_MAP,
    file::CHAT_TEMPLATE_JSON,
];

/// Fields of `adapter_config.json` that change nothing a model says: where its base lies, which PEFT wrote it, and how it was trained.
const OF_NO_NUMBER: [&str; 6] =
    ["base_model_name_or_path", "revision", "peft_version", "auto_mapping", "inference_mode", "lora_dropout"];

/// Pieces that are hashed of a tensor with more than [`PIECES`] × [`PIECE`] bytes. They are evenly
/// spaced, and the first and the last bytes are among them. A smaller tensor is hashed whole.
const PIECES: usize = 64;

/// Threads that wait for the disk side by side.
const FETCHERS: usize = 32;

/// Bytes of one piece.
const PIECE: usize = 64;

/// What is hashed of a model's weights, none of it taken yet.
pub(crate) struct Hashed<'a> {
    /// The base's store, without the adapters merged.
    pub(crate) base: &'a dyn Store,
    /// The adapters, in the order in which they are merged.
    pub(crate) adapters: &'a [Adapter],
    /// The file of a value head.
    pub(crate) value_head: Option<&'a Checkpoint>,
}

/// The fingerprint in lower-case hexadecimal, 64 digits, over a sample of every tensor; or, if
/// `full`, `full:ALL/SAMPLE`, of which the first is over all bytes. So what knows a model by its
/// sample knows it again (`judge_core::model::same_fingerprint`).
///
/// # Errors
/// Those of reading the folder's JSON files and its template.
pub(crate) fn of(folder: &Folder, weights: &Hashed<'_>, full: bool) -> Result<String, Error> {
    let sample = hash(folder, weights, false)?;
    Ok(if full { format!("full:{}/{sample}", hash(folder, weights, true)?) } else { sample })
}

fn hash(folder: &Folder, weights: &Hashed<'_>, full: bool) -> Result<String, Error> {
    let mut hasher = Hasher::new();
    put(&mut hasher, DOMAIN);
    put(&mut hasher, canonical(folder.config()).as_bytes());
    for name in JSON_FILES {
        put(&mut hasher, name.as_bytes());
        put(&mut hasher, folder.json(name)?.as_ref().map(canonical).unwrap_or_default().as_bytes());
    }
    if !folder.has(file::TOKENIZER) {
        for name in file::OF_SENTENCEPIECE.into_iter().chain([file::ADDED_TOKENS]) {
            put(&mut hasher, name.as_bytes());
            put(&mut hasher, &folder.bytes(name)?.unwrap_or_default());
        }
    } else if let Some(added) = added_tokens(folder.files(), &folder.json(file::TOKENIZER_CONFIG)?.unwrap_or_default())?
    {
        // Those that the tokenizer has already under their ids change nothing.
        let tokenizer = folder.json(file::TOKENIZER)?.unwrap_or_default();
        let own = tokenizer.get("added_tokens").and_then(Value::as_array).into_iter().flatten();
        let own: HashSet<u64> = own.filter_map(|token| token.get("id")?.as_u64()).collect();
        let mut new = added.as_object().cloned().unwrap_or_default();
        new.retain(|_, id| id.as_u64().is_none_or(|id| !own.contains(&id)));
        if !new.is_empty() {
            put(&mut hasher, file::ADDED_TOKENS.as_bytes());
            put(&mut hasher, canonical(&Value::Object(new)).as_bytes());
        }
    }
    if let Some(template) = folder.text(file::DEFAULT_CHAT_TEMPLATE)? {
        put(&mut hasher, file::DEFAULT_CHAT_TEMPLATE.as_bytes());
        put(&mut hasher, template.as_bytes());
    }
    put(&mut hasher, folder.text(file::CHAT_TEMPLATE)?.unwrap_or_default().as_bytes());
    put_tensors(&mut hasher, weights.base, full);
    for adapter in weights.adapters {
        let mut config = adapter.config().clone();
        if let Some(fields) = config.as_object_mut() {
            fields.retain(|name, _| !OF_NO_NUMBER.contains(&name.as_str()));
        }
        put(&mut hasher, canonical(&config).as_bytes());
        put_tensors(&mut hasher, adapter.tensors(), full);
    }
    if let Some(head) = weights.value_head {
        put(&mut hasher, file::VALUE_HEAD.as_bytes());
        put_tensors(&mut hasher, head, full);
    }
    Ok(hasher.finalize().to_hex().to_string())
}

/// Hashes the tensors as they are stored, before anything is expanded, in the order of their names.
/// In full, several threads hash one tensor.
fn put_tensors(hasher: &mut Hasher, weights: &dyn Store, full: bool) {
    if !full {
        weights.reads_are_scattered(true);
        fetch(&weights.contents().map(|(.., bytes)| bytes).collect::<Vec<_>>());
    }
    for (name, kind, bytes) in weights.contents() {
        put(hasher, name.as_bytes());
        put(hasher, kind.as_bytes());
        if full {
            hasher.update_rayon(bytes);
        } else {
            sample(bytes).for_each(|piece| put(hasher, piece));
        }
    }
    if !full {
        weights.reads_are_scattered(false); // only now: hashing touches the pages again
    }
}

/// Touches the sample of every tensor, many at a time. The pieces of a large checkpoint are thousands
/// of pages all over its files, which would otherwise be waited for one by one.
fn fetch(tensors: &[&[u8]]) {
    thread::scope(|scope| {
        for some in tensors.chunks(tensors.len().div_ceil(FETCHERS).max(1)) {
            scope.spawn(move || {
                for piece in some.iter().flat_map(|bytes| sample(bytes)) {
                    black_box((piece.first().copied(), piece.last().copied()));
                }
            });
        }
    });
}

/// The pieces of a tensor's bytes: all of it if it has at most 4,096, else [`PIECES`] of [`PIECE`]
/// bytes. Piece `i` starts at ⌊(len − PIECE) · i / (PIECES − 1)⌋, so both ends are covered. The
/// product is taken in 128 bits.
fn sample(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let whole = bytes.len() <= PIECES * PIECE;
    let (pieces, length) = if whole { (1, bytes.len()) } else { (PIECES, PIECE) };
    let last = (bytes.len() - length) as u128;
    (0..pieces).map(move |piece| {
        let start = (last * piece as u128 / (pieces.max(2) - 1) as u128) as usize;
        &bytes[start..start + length]
    })
}

/// Hashes a part behind its length (8 bytes, little-endian), so that no two sequences of parts hash
/// alike.
fn put(hasher: &mut Hasher, part: &[u8]) {
    hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
}

/// JSON with the keys of all objects sorted and no white space.
fn canonical(value: &Value) -> String {
    let mut sorted = value.clone();
    sorted.sort_all_objects();
    sorted.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_both_ends_and_a_fixed_size() {
        let bytes: Vec<u8> = (0..100_000_u32).map(|i| (i % 251) as u8).collect();
        let pieces: Vec<&[u8]> = sample(&bytes).collect();
        assert_eq!((pieces.len(), pieces[0]), (PIECES, &bytes[..PIECE]));
        assert_eq!(pieces[PIECES - 1], &bytes[bytes.len() - PIECE..]);
        assert_eq!(sample(&bytes[..4096]).collect::<Vec<_>>(), [&bytes[..4096]]);
        assert_eq!(sample(&[]).collect::<Vec<_>>(), [&[0_u8; 0][..]]);
    }

    #[test]
    fn layout_of_json_does_not_count() {
        let json = |text| canonical(&serde_json::from_str(text).unwrap());
        assert_eq!(json(r#"{"b": [1, {"y": 0, "x": 1}], "a": null}"#), json(r#"{"a":null,"b":[1,{"x":1,"y":0}]}"#));
        assert_ne!(json(r#"{"a": 1}"#), json(r#"{"a": 2}"#));
    }
}
