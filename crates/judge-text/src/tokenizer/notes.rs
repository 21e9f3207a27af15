//! What is to be said of a tokenizer before it is used: where it does as it should, and people may still not expect it.

use serde_json::Value;
use tokenizers::{
    NormalizedString, Normalizer, NormalizerWrapper, OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer,
    PreTokenizerWrapper,
};

use super::class::Class;
use super::guarded::guarded;

/// Texts that tokenizers cut in different places: contractions, digits, runs of spaces and line breaks, marks, composed and other
/// accents.
const PROBES: [&str; 6] = [
    "It's 12345 words",
    "don't DON'T x_1 == y[22]; // ok\r\n",
    "a  b   c\n\n  (hello)world.\n",
    "Ärger \u{41}\u{308} nai\u{308}ve caf\u{e9}",
    "नमस्ते १२३ مرحبا",
    " tabs\tand 東京 😀",
];

/// Settings of a BPE model that change how its pieces are merged.
const FLAGS: [&str; 3] = ["byte_fallback", "fuse_unk", "ignore_merges"];

/// Control tokens that are written without bars.
const TURNS: [&str; 2] = ["<start_of_turn>", "<end_of_turn>"];

/// Bytes of the longest `<|…|>` that counts as a control token.
const LONGEST: usize = 40;

/// How a `tokenizer.json` treats text before its vocabulary counts.
pub(super) struct Rules {
    normalizer: Value,
    pre_tokenizer: Value,
    /// Those of [`FLAGS`].
    flags: [bool; FLAGS.len()],
}

impl Rules {
    pub(super) fn of(tokenizer: &Value) -> Self {
        let part = |name: &str| tokenizer.get(name).cloned().unwrap_or_default();
        let flags = FLAGS.map(|name| tokenizer["model"][name].as_bool().unwrap_or(false));
        Self { normalizer: part("normalizer"), pre_tokenizer: part("pre_tokenizer"), flags }
    }

    /// A text as it is normalised and cut; `None` where that fails.
    fn pieces(&self, text: &str) -> Option<Vec<String>> {
        let cut = || -> tokenizers::Result<Vec<String>> {
            let mut text = NormalizedString::from(text);
            if !self.normalizer.is_null() {
                serde_json::from_value::<NormalizerWrapper>(self.normalizer.clone())?.normalize(&mut text)?;
            }
            let mut pieces = PreTokenizedString::from(text);
            if !self.pre_tokenizer.is_null() {
                serde_json::from_value::<PreTokenizerWrapper>(self.pre_tokenizer.clone())?.pre_tokenize(&mut pieces)?;
            }
            let pieces = pieces.get_splits(OffsetReferential::Normalized, OffsetType::Byte).into_iter();
            Ok(pieces.map(|(piece, ..)| piece.to_owned()).collect())
        };
        guarded(cut).ok()
    }
}

/// Where the rules of a class are not those of the file; `is_named` says whether another class that the folder names would count.
pub(super) fn of_class(class: Class, is_named: bool, file: &Rules, own: &Rules) -> Option<String> {
    let how = match PROBES.into_iter().find(|text| file.pieces(text) != own.pieces(text)) {
        Some(text) => format!("cut text such as {text:?} otherwise"),
        None => {
            let flag = (0..FLAGS.len()).find(|&flag| file.flags[flag] != own.flags[flag])?;
            format!("set {} to {}, otherwise", FLAGS[flag], own.flags[flag])
        }
    };
    let (whose, advice) = match is_named {
        true => (
            "tokenizer_class of tokenizer_config.json, or that of the model type",
            "where the model was trained with the file's own rules, set tokenizer_class to PreTrainedTokenizerFast",
        ),
        false => (
            "that of the model type, whatever tokenizer_class says",
            "a model that was trained with the file's own rules is read otherwise here, and by transformers 5 too",
        ),
    };
    Some(format!(
        "the rules of the tokenizer's class, {class:?}Tokenizer ({whose}), {how} than tokenizer.json does; the class counts, as in \
        transformers 5: {advice}"
    ))
}

/// Where the class of BERT's tokenizers would take capitals otherwise than the file.
pub(super) fn of_bert(class: &str, settings: &Value, tokenizer: &Value) -> Option<String> {
    let file = tokenizer["normalizer"]["lowercase"].as_bool()?;
    let own = settings.get("do_lower_case").and_then(Value::as_bool).unwrap_or(true);
    (["BertTokenizer", "ElectraTokenizer"].contains(&class) && file != own).then(|| {
        format!(
            "tokenizer.json says \"lowercase\": {file}, and do_lower_case of tokenizer_config.json is {own} (true where it is not \
             stated), by which transformers goes: tokenizer.json counts here; where the model was trained otherwise, write {own} there"
        )
    })
}

/// The control tokens that a chat template writes into these texts and the tokenizer does not know.
pub(super) fn of_template(rendered: &[String], is_known: impl Fn(&str) -> bool) -> Option<String> {
    /// Tokens that are named.
    const SHOWN: usize = 5;
    let mut lacking: Vec<&str> = Vec::new();
    for token in rendered.iter().flat_map(|text| control_tokens(text)) {
        if !is_known(token) && !lacking.contains(&token) {
            lacking.push(token);
        }
    }
    if lacking.is_empty() {
        return None;
    }
    let more = lacking.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    lacking.truncate(SHOWN);
    Some(format!(
        "the chat template writes {}{more}, which the tokenizer has no token for: the model reads them as plain text, which is \
         right only if it was trained so; else give the chat template that belongs to the tokenizer",
        lacking.join(", ")
    ))
}

/// What looks like control tokens in a text: `<|…|>` without spaces, the same with the bars that DeepSeek writes, and [`TURNS`].
fn control_tokens(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices('<').filter_map(|(at, _)| {
        let rest = &text[at..];
        if let Some(turn) = TURNS.into_iter().find(|turn| rest.starts_with(turn)) {
            return Some(&rest[..turn.len()]);
        }
        let (open, close) = [("<|", "|>"), ("<｜", "｜>")].into_iter().find(|(open, _)| rest.starts_with(open))?;
        let len = open.len() + rest[open.len()..].find(close)?;
        let is_one = len <= LONGEST && len > open.len() && !rest[1..len].contains([' ', '\n', '<', '>']);
        is_one.then(|| &rest[..len + close.len()])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_tokens_are_told_from_text() {
        let found: Vec<&str> =
            control_tokens("<|im_start|>user\n2 <| 3 |> 4 <||> <｜User｜>x<end_of_turn><|a <|b|> <think>").collect();
        assert_eq!(found, ["<|im_start|>", "<｜User｜>", "<end_of_turn>", "<|b|>"]);
    }
}
