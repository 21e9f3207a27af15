use std::cmp::Ordering::{Equal, Greater, Less};

use judge_core::{ItemId, Message};
use serde_json::Value;

use super::{BenchmarkPair, PairTexts};
use crate::records::conversation;
use crate::{Error, Row};

pub(super) fn pair(row: &Row, number: usize) -> Result<BenchmarkPair, Error> {
    const WINNERS: &str = "model_a, model_b, tie or tie (inconsistent)";
    let gold = match row.required::<String>("winner", WINNERS)?.as_str() {
        "model_a" => Greater,
        "model_b" => Less,
        "tie" | "tie (inconsistent)" => Equal,
        _ => return Err(row.wrong("winner", WINNERS)),
    };
    let turn: usize = row.required("turn", "1 or 2")?;
    if !(1..=2).contains(&turn) {
        return Err(row.wrong("turn", "1 or 2"));
    }
    let question: Value = row.required("question_id", "a string or a whole number")?;
    let model = |field| row.optional::<String>(field, "a string");
    let messages = |field| row.optional::<Vec<Message>>(field, "a list of messages");
    let texts = match (messages("conversation_a")?, messages("conversation_b")?) {
        (Some(a), Some(b)) => {
            let texts = texts(&a, &b, turn);
            Some(texts.ok_or_else(|| row.wrong("conversation_a", "a question and an answer for each turn"))?)
        }
        _ => None,
    };
    Ok(BenchmarkPair {
        id: ItemId::from(number as u64),
        gold,
        group: Some(turn.to_string()),
        question: question.to_string(),
        rubric: None,
        reference: None,
        models: model("model_a")?.zip(model("model_b")?).map(|(a, b)| [a, b]),
        texts,
    })
}

/// The question of the turn that is judged, and the two conversations up to its answers; `None` where one is shorter.
fn texts(a: &[Message], b: &[Message], turn: usize) -> Option<PairTexts> {
    let (a, b) = (a.get(..2 * turn)?, b.get(..2 * turn)?);
    let instruction = a[2 * turn - 2].content.clone();
    Some(PairTexts { instruction, response_a: conversation(a), response_b: conversation(b) })
}
