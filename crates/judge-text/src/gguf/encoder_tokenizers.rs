//! The tokenizers of encoders that a file's keys stand for, without special tokens.
//!
//! | `tokenizer.ggml.model` | becomes |
//! |---|---|
//! | `bert` | WordPiece with BERT's rules |
//! | `t5` | unigrams with XLM-RoBERTa's rules, each word with a space before it |
//!
//! What these rules are is known by `made.rs`.
//!
//! Files do not say whether a vocabulary of WordPiece knows capital letters, and llama.cpp takes it for one that does not. One that
//! has some is refused. Nor do they say what a unigram tokenizer does with white space: what they have under that name is another
//! setting of transformers in files that were made of a `tokenizer.json`, so XLM-RoBERTa's rules are taken for all.

use std::borrow::Cow;

use judge_weights::gguf::problem::GgufProblem;
use serde_json::Value;

use crate::made::{self, SPACE};

/// Entries of WordPiece as a `tokenizer.json` has them: in a file those that begin a word have a mark, and the others have
/// none. `is_control` is for each entry; old files have marks before all but what is in brackets.
pub(super) fn word_pieces(tokens: &[&str], is_control: impl Fn(usize) -> bool) -> Vec<String> {
    let spelt = |(id, token): (usize, &&str)| match token.strip_prefix(SPACE) {
        _ if is_control(id) => (*token).to_owned(),
        Some(word) if !word.is_empty() => word.to_owned(),
        None if token.len() > 2 && token.starts_with('[') && token.ends_with(']') => (*token).to_owned(),
        _ => format!("##{token}"),
    };
    tokens.iter().enumerate().map(spelt).collect()
}

/// A tokenizer of WordPiece.
///
/// # Errors
/// [`GgufProblem::NotRead`] for a vocabulary with capital letters.
pub(super) fn word_piece<T: AsRef<str>>(
    pieces: &[T],
    unknown: Option<&str>,
    is_control: impl Fn(usize) -> bool,
) -> Result<Value, GgufProblem> {
    let pieces: Vec<&str> = pieces.iter().map(AsRef::as_ref).collect();
    let is_apart = |(id, piece): &(usize, &&str)| is_control(*id) || piece.starts_with('[') && piece.ends_with(']');
    let capital = pieces.iter().enumerate().find(|each| !is_apart(each) && each.1.to_lowercase() != **each.1);
    if let Some((_, piece)) = capital {
        let what = format!("the tokenizer \"bert\" with capital letters ({piece:?})");
        return Err(GgufProblem::NotRead {
            what,
            read: "uncased ones: put the model's tokenizer.json beside the file",
        });
    }
    Ok(made::word_piece(&pieces, unknown.unwrap_or("[UNK]")))
}

/// A tokenizer of unigrams, with a score for each entry and a table of characters.
///
/// # Errors
/// [`GgufProblem::NotRead`] for one that puts no space before a text, [`GgufProblem::Missing`] for one without an unknown
/// entry or with a score that is not finite.
pub(super) fn unigram(
    tokens: &[Cow<'_, str>],
    scores: &[f64],
    unknown: Option<usize>,
    has_prefix: bool,
    charsmap: &[u8],
) -> Result<Value, GgufProblem> {
    if !has_prefix {
        let what = "the tokenizer \"t5\" without a space before a text (tokenizer.ggml.add_space_prefix)".to_owned();
        return Err(GgufProblem::NotRead {
            what,
            read: "those with one: put the model's tokenizer.json beside the file",
        });
    }
    let missing = |key: &str, needed_for| GgufProblem::Missing { key: key.to_owned(), needed_for };
    let unknown = unknown.filter(|&id| id < tokens.len());
    let unknown = unknown.ok_or_else(|| missing("tokenizer.ggml.unknown_token_id", "texts without an entry"))?;
    if scores.iter().any(|score| !score.is_finite()) {
        return Err(missing("tokenizer.ggml.scores", "the best way to cut a text; all must be finite"));
    }
    let pieces: Vec<(&str, f64)> = tokens.iter().map(|token| &**token).zip(scores.iter().copied()).collect();
    Ok(made::unigram_of_words(made::unigram(&pieces, unknown, false), charsmap, "always"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_old_and_new_files_are_those_of_the_vocabulary() {
        let spelt = |tokens: &[&str], controls: &[usize]| word_pieces(tokens, |id| controls.contains(&id));
        let expected = ["[CLS]", "[unused1]", "word", "##ing", "[", "##]"];
        assert_eq!(spelt(&["[CLS]", "▁[unused1]", "▁word", "ing", "▁[", "]"], &[0]), expected);
        // Old files have no mark before what is in brackets, and no types that tell.
        assert_eq!(spelt(&["[CLS]", "[unused1]", "▁word", "ing", "▁[", "]"], &[]), expected);
        assert_eq!(spelt(&["▁", "▁▁"], &[]), ["##▁", "▁"]);
    }

    #[test]
    fn a_vocabulary_with_capital_letters_is_refused() {
        let pieces = |word: &str| vec!["[UNK]".to_owned(), word.to_owned(), "[Unused]".to_owned()];
        assert!(word_piece(&pieces("ärger"), None, |_| false).is_ok());
        let error = word_piece(&pieces("Ärger"), None, |_| false).unwrap_err().to_string();
        assert!(error.contains("Ärger") && error.contains("tokenizer.json"), "{error}");
        assert!(word_piece(&pieces("Ärger"), None, |id| id == 1).is_ok());
    }
}
