use std::cmp::Ordering::{self, Equal, Greater, Less};

use judge_core::{ItemId, Message};

use super::pair::{BenchmarkPair, PairTexts, models};
use crate::dataset::records::conversation;
use crate::rows::ids::plain;
use crate::{Error, Row};

const WINNERS: &str = "model_a, model_b, tie or tie (inconsistent)";

/// The winner, and whether a tie stands for two orders that disagreed.
pub(super) fn winner(row: &Row) -> Result<(Ordering, bool), Error> {
    match row.required::<String>("winner", WINNERS)?.as_str() {
        "model_a" => Ok((Greater, false)),
        "model_b" => Ok((Less, false)),
        "tie" => Ok((Equal, false)),
        "tie (inconsistent)" => Ok((Equal, true)),
        _ => Err(row.wrong("winner", WINNERS)),
    }
}

pub(super) fn turn(row: &Row) -> Result<u32, Error> {
    let turn = row.required("turn", "1 or 2")?;
    if (1..=2).contains(&turn) { Ok(turn) } else { Err(row.wrong("turn", "1 or 2")) }
}

/// The question; a number and its text are the same.
pub(super) fn question(row: &Row) -> Result<String, Error> {
    Ok(plain(&row.required("question_id", "a string or a whole number")?))
}

pub(super) fn pair(row: &Row, number: usize) -> Result<BenchmarkPair, Error> {
    let ((gold, _), turn) = (winner(row)?, turn(row)?);
    let messages = |field| row.optional::<Vec<Message>>(field, "a list of messages");
    let texts = match (messages("conversation_a")?, messages("conversation_b")?) {
        (Some(a), Some(b)) => {
            let upto = |messages: Vec<Message>, field| match messages.get(..2 * turn as usize) {
                Some(turns) if is_dialogue(turns) => Ok(turns.to_vec()),
                _ => Err(row.wrong(field, "a question of a user and an assistant's answer for each turn")),
            };
            Some(texts(&upto(a, "conversation_a")?, &upto(b, "conversation_b")?))
        }
        (None, None) => None,
        (a, _) => return Err(row.missing(if a.is_some() { "conversation_b" } else { "conversation_a" })),
    };
    let pair = BenchmarkPair::without_texts(ItemId::from(number as u64), Some(gold), question(row)?);
    Ok(BenchmarkPair { groups: vec![turn.to_string()], models: models(row)?, texts, ..pair })
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
