//! The tokens that end a text.

use judge_weights::gguf::file::GgufFile;

/// Tokens that end a turn, by their text: where a file has them, they end a text, whether or not a key
/// says so (llama.cpp, `llama-vocab.cpp`, does the same).
const ENDS_OF_TURNS: [&str; 12] = [
    "<|eot_id|>",
    "<|im_end|>",
    "<end_of_turn>",
    "<turn|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<end_of_utterance>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "<|END_OF_TURN_TOKEN|>",
];

/// The tokens that end a text: those that keys name, and those that end a turn by their text.
pub fn ends(file: &GgufFile) -> Vec<u64> {
    let named = ["eos", "eot", "eom"].map(|name| file.header.whole(&format!("tokenizer.ggml.{name}_token_id")));
    let mut ends: Vec<u64> = named.into_iter().flatten().collect();
    let tokens = file.header.texts("tokenizer.ggml.tokens", file.bytes()).unwrap_or_default();
    // In gpt-oss a call and a return end a text, and `<|end|>` a part of it.
    let is_of_parts = tokens.contains(&"<|call|>") && tokens.contains(&"<|return|>");
    let ends_text = |token: &str| match token {
        "<|end|>" => !is_of_parts,
        "<|call|>" | "<|return|>" => is_of_parts,
        token => ENDS_OF_TURNS.contains(&token),
    };
    ends.extend((0..).zip(&tokens).filter(|(_, token)| ends_text(token)).map(|(id, _)| id));
    let mut seen = std::collections::BTreeSet::new();
    ends.retain(|&id| seen.insert(id));
    ends
}
