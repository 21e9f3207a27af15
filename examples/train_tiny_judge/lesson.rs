//! From an item to what the trainer learns from.

use anyhow::Result;
use judge_examples::planted::{Defect, Item, prompt, reply};
use judge_models::train::Example;
use tokenizers::Tokenizer;

use crate::tokenizer::{ASSISTANT, END, USER};

/// How much each part of the text counts. The mark itself counts 1.
const ANSWER: f32 = 0.04;
const REMARK: f32 = 0.5;

/// The tokens of an item up to where the judge's mark is predicted, as the chat template renders it.
pub(crate) fn question(tokenizer: &Tokenizer, item: &Item) -> Result<Vec<u32>> {
    encode(tokenizer, &format!("{USER}{}{END}{ASSISTANT}", prompt(item)))
}

/// The whole conversation, with a rater's mark as the reply.
///
/// Learnt are the mark and the remarks after it, and, as far as it is sound, the answer: who can answer can tell a wrong answer. The words
/// of a wrong, stray or broken answer are read but not imitated.
pub(crate) fn lesson(tokenizer: &Tokenizer, item: &Item, mark: f64) -> Result<Example> {
    let before = encode(tokenizer, &format!("{USER}Question: {}\nAnswer:", item.instruction))?.len();
    let answer = encode(tokenizer, &format!(" {}", item.response))?.len();
    let mut tokens = question(tokenizer, item)?;
    let asked = tokens.len();
    tokens.extend(encode(tokenizer, &format!("{}{END}", reply(item, mark)))?);

    let sound =
        !item.defects.iter().any(|d| matches!(d, Defect::Wrong(_) | Defect::Irrelevant(_) | Defect::BrokenLanguage(_)));
    let mut weights = vec![0.0; tokens.len()];
    if sound {
        weights[before..before + answer].fill(ANSWER);
    }
    weights[asked] = 1.0;
    weights[asked + 1..].fill(REMARK);
    Ok(Example { tokens, weights })
}

fn encode(tokenizer: &Tokenizer, text: &str) -> Result<Vec<u32>> {
    Ok(tokenizer.encode(text, false).map_err(anyhow::Error::from_boxed)?.get_ids().to_vec())
}
