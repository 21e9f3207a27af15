//! What tells one model from another.

use blake3::Hasher;
use serde_json::Value;

use crate::Error;
use crate::folder::{Folder, file};
use crate::weights::{Adapter, Store};

/// Changed whenever the same folder would get another fingerprint.
const DOMAIN: &[u8] = b"judge-models fingerprint 1";

/// JSON files that change what a model says.
const JSON_FILES: [&str; 5] = [
    file::GENERATION_CONFIG,
    file::TOKENIZER,
    file::TOKENIZER_CONFIG,
    file::SPECIAL_TOKENS_MAP,
    file::CHAT_TEMPLATE_JSON,
];

/// A tensor of at most [`PIECES`] × [`PIECE`] bytes is hashed whole; of a larger one, this many pieces, evenly spaced, the first
/// and the last bytes among them.
const PIECES: usize = 64;

/// Bytes of one piece.
const PIECE: usize = 64;

/// BLAKE3 over the configuration, the tokenizer, the chat template, the adapters' configurations, and name, dtype, shape and bytes of every tensor: a sample of
/// them, or all if `full`. In lower-case hexadecimal, the full hash marked as such.
///
/// JSON files count by their content, not by their layout. Where the folder lies and how tensors are cut into shards changes
/// nothing.
pub(crate) fn of(folder: &Folder, weights: &dyn Store, adapters: &[Adapter], full: bool) -> Result<String, Error> {
    let mut hasher = Hasher::new();
    put(&mut hasher, DOMAIN);
    put(&mut hasher, canonical(folder.config()).as_bytes());
    for name in JSON_FILES {
        put(&mut hasher, name.as_bytes());
        put(&mut hasher, folder.json(name)?.as_ref().map(canonical).unwrap_or_default().as_bytes());
    }
    put(&mut hasher, folder.text(file::CHAT_TEMPLATE)?.unwrap_or_default().as_bytes());
    put_tensors(&mut hasher, weights, full);
    for adapter in adapters {
        put(&mut hasher, canonical(adapter.config()).as_bytes());
        put_tensors(&mut hasher, adapter.tensors(), full);
    }
    let hash = hasher.finalize().to_hex();
    Ok(if full { format!("full:{hash}") } else { hash.to_string() })
}

/// The tensors as they are stored, before anything is expanded.
fn put_tensors(hasher: &mut Hasher, weights: &dyn Store, full: bool) {
    for (name, kind, bytes) in weights.contents() {
        put(hasher, name.as_bytes());
        put(hasher, kind.as_bytes());
        if full {
            hasher.update_rayon(bytes);
        } else {
            sample(bytes).for_each(|piece| put(hasher, piece));
        }
    }
}

fn sample(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let whole = bytes.len() <= PIECES * PIECE;
    let (pieces, length) = if whole { (1, bytes.len()) } else { (PIECES, PIECE) };
    let last = (bytes.len() - length) as u128;
    (0..pieces).map(move |piece| {
        let start = (last * piece as u128 / (pieces.max(2) - 1) as u128) as usize;
        &bytes[start..start + length]
    })
}

/// With its length first, so that no two sequences of parts hash alike.
fn put(hasher: &mut Hasher, part: &[u8]) {
    hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
}

/// JSON with sorted keys and no spaces.
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
