//! A file of safetensors, or an index and two of them: they are refused, or give each tensor as often as asked, as long as its shape says.
//!
//! The index is first, and empty where there is none. Behind it the first shard follows its length, four bytes.
#![no_main]

use judge_fuzz::{folder, parts};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let [index, data] = parts(bytes);
    let mut files = Vec::new();
    if index.is_empty() {
        files.push(("model.safetensors", data));
    } else {
        let (length, shards) = data.split_first_chunk::<4>().unwrap_or((&[0; 4], &[]));
        let (first, second) = shards.split_at(shards.len().min(u32::from_le_bytes(*length) as usize));
        files.extend([("model.safetensors.index.json", index), ("1.safetensors", first), ("2.safetensors", second)]);
    }
    judge_models::fuzzing::stored(folder(&files));
});
