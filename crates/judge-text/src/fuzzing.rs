//! What fuzz targets (`fuzz/` of the repository) reach of this crate, and what must hold of all that its readers let in. Only builds with
//! `cfg(fuzzing)` have this module; `judge-models` opens the folders (`fuzzing.rs` there).

use judge_core::{Message, Prompt};

use crate::{Files, TextCodec, TextOptions};

/// Reads a folder's tokenizer and template, and uses them as prompts do, on a few texts with
/// control tokens, accents, emoji and byte tokens in them.
///
/// # Panics
/// If a prompt has other tokens the second time, if decoded ends do not ascend along boundaries of
/// characters, or if a continuation without tokens is let through.
pub fn tokenizer(files: &Files) {
    let Ok(codec) = TextCodec::load(files, &TextOptions::default()) else { return };
    let texts =
        ["", "a", "Is 2 < 3?\n Ärger – 東京 😀 \u{301}", "<s> </s><|im_start|>user\n[INST] <0x41> ##ing\u{2581}x"];
    for text in texts {
        let chat = Prompt::chat(vec![Message::new("system", "Be brief."), Message::user(text)]);
        for prompt in [Prompt::Raw(text.to_owned()), chat] {
            let tokens = codec.encode(&prompt);
            if let (Ok(ids), Ok(again)) = (&tokens, codec.encode(&prompt)) {
                assert_eq!(*ids, again, "{text:?}");
                let (decoded, ends) = codec.decode(ids);
                assert!(
                    ends.len() == ids.len()
                        && ends.is_sorted()
                        && ends.iter().all(|&end| decoded.is_char_boundary(end))
                );
            }
            let _ = codec.label("A").map(|id| codec.label_in_context(&prompt, "A", id));
            if let Ok(all) = codec.continuations(&prompt, &[" yes".to_owned(), "</s>".to_owned()]) {
                assert!(all.len() == 2 && all.iter().all(|ids| !ids.is_empty()));
            }
        }
        let _ = codec.label(text);
    }
}
