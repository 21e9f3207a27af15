//! A SentencePiece model and a `tokenizer_config.json`, as the tokenizer of a decoder and of the two encoders that have such files:
//! they are refused, or make the same tokens of a text each time, and text of tokens.
#![no_main]

use judge_fuzz::{folder, panics_of_others_unwind};
use libfuzzer_sys::fuzz_target;

fuzz_target!(
    init: panics_of_others_unwind(),
    |bytes: &[u8]| {
        // The first byte chooses the class, and the second how long the settings are.
        let [class, length, rest @ ..] = bytes else { return };
        let (settings, model) = rest.split_at(rest.len().min((*length).into()));
        let (config, file): (&[u8], _) = match class % 3 {
            0 => (br#"{"model_type": "llama"}"#, "tokenizer.model"),
            1 => (br#"{"model_type": "xlm-roberta"}"#, "sentencepiece.bpe.model"),
            _ => (br#"{"model_type": "deberta-v2"}"#, "spm.model"),
        };
        let files = [("config.json", config), ("model.safetensors", b""), ("tokenizer_config.json", settings), (file, model)];
        let folder = folder(&files);
        // What stands in for another tokenizer would count.
        std::fs::remove_file(folder.join("tokenizer.json")).expect("the temporary folder can be written");
        judge_models::fuzzing::tokenizer(folder);
    }
);
