//! From an item to what the trainer learns from.

use anyhow::Result;
use judge_models::train::CompletionExample;
use tiny_judge::planted::{Defect, Item, prompt, reply};
use tokenizers::Tokenizer;

use crate::tokenizer::{ASSISTANT, END, USER};

/// How much each token of a part of the text counts. The mark itself counts 1.
const ANSWER: f32 = 0.1;
const REMARK: f32 = 0.5;

/// The tokens of an item up to where the judge's mark is predicted, as the chat template renders it.
pub(crate) fn question(tokenizer: &Tokenizer, item: &Item) -> Result<Vec<u32>> {
    encode(tokenizer, &format!("{USER}{}{END}{ASSISTANT}", prompt(item)))
}

/// How to answer, for the time before judging is taught: the conversation up to the end of the answer. `None` if the answer should not be
/// imitated, because it is wrong, beside the question or in broken language.
pub(crate) fn answering(tokenizer: &Tokenizer, item: &Item) -> Result<Option<CompletionExample>> {
    if !is_sound(item) {
        return Ok(None);
    }
    let (tokens, answer) = up_to_answer(tokenizer, item)?;
    let mut weights = vec![0.0; tokens.len()];
    weights[answer..].fill(ANSWER);
    Ok(Some(CompletionExample { tokens, weights }))
}

/// How to judge: the whole conversation, with a rater's mark and remarks as the reply. Sound answers are still imitated: who can answer can
/// tell a wrong answer.
pub(crate) fn judging(tokenizer: &Tokenizer, item: &Item, mark: f64) -> Result<CompletionExample> {
    let (before, answer) = up_to_answer(tokenizer, item)?;
    let mut tokens = question(tokenizer, item)?;
    let asked = tokens.len();
    tokens.extend(encode(tokenizer, &format!("{}{END}", reply(item, mark)))?);

    let mut weights = vec![0.0; tokens.len()];
    if is_sound(item) {
        weights[answer..before.len()].fill(ANSWER);
    }
    weights[asked] = 1.0;
    weights[asked + 1..].fill(REMARK);
    Ok(CompletionExample { tokens, weights })
}

/// The tokens up to the end of the answer, and where the answer begins.
fn up_to_answer(tokenizer: &Tokenizer, item: &Item) -> Result<(Vec<u32>, usize)> {
    let mut tokens = encode(tokenizer, &format!("{USER}Question: {}\nAnswer:", item.instruction))?;
    let answer = tokens.len();
    tokens.extend(encode(tokenizer, &format!(" {}", item.response))?);
    Ok((tokens, answer))
}

fn is_sound(item: &Item) -> bool {
    !item.defects.iter().any(|d| matches!(d, Defect::Wrong(_) | Defect::Irrelevant(_) | Defect::BrokenLanguage(_)))
}

fn encode(tokenizer: &Tokenizer, text: &str) -> Result<Vec<u32>> {
    Ok(tokenizer.encode(text, false).map_err(anyhow::Error::from_boxed)?.get_ids().to_vec())
}
