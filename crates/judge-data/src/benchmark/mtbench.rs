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
            let upto = |messages: Vec<Message>, field| match messages.get(..2 * turn) {
                Some(turns) if is_dialogue(turns) => Ok(turns.to_vec()),
                _ => Err(row.wrong(field, "a question of a user and an assistant's answer for each turn")),
            };
            Some(texts(&upto(a, "conversation_a")?, &upto(b, "conversation_b")?))
        }
        (None, None) => None,
        (a, _) => {
            let field = if a.is_some() { "conversation_b" } else { "conversation_a" };
            return Err(Error::MissingField { place: row.place().clone(), field, found: row.found() });
        }
    };
    Ok(BenchmarkPair {
        id: ItemId::from(number as u64),
        gold: Some(gold),
        group: Some(turn.to_string()),
        question: question.to_string(),
        rubric: None,
        reference: None,
        models: model("model_a")?.zip(model("model_b")?).map(|(a, b)| [a, b]),
        texts,
    })
}

fn is_dialogue(messages: &[Message]) -> bool {
    let mut turns = messages.chunks(2);
    turns.all(|turn| matches!(turn, [question, answer] if question.role == "user" && answer.role == "assistant"))
}

/// The last question, and the two conversations up to its answers.
fn texts(a: &[Message], b: &[Message]) -> PairTexts {
    let instruction = a.iter().rfind(|message| message.role == "user").map_or(String::new(), |m| m.content.clone());
    let lengths = [a, b].map(|turns| turns.last().map_or(0, |answer| answer.content.chars().count()));
    PairTexts { lengths, ..PairTexts::new(instruction, conversation(a), conversation(b)) }
}
