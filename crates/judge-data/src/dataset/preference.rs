//! Rows with replies that were chosen and replies that were rejected, as TRL, RewardBench and RM-Bench have them.

use std::cmp::Ordering;

use judge_core::{ItemId, Message};
use serde_json::value::RawValue;

use crate::dataset::records::conversation;
use crate::rows::messages::{self, Problem};
use crate::rows::reading::{Reading, Rest};
use crate::{AnswersRecord, Columns, DatasetOptions, Error, Extra, Field, PairRecord, Row};

const CHOSEN: &str = "chosen";
const REJECTED: &str = "rejected";

/// What `chosen` and `rejected` may be, in words.
const EXPECTED: &str = "a text or a conversation that ends with a reply of the assistant, or a list of several";

/// How each turn of Anthropic's helpful and harmless conversations begins, which are texts.
const HUMAN: &str = "\n\nHuman:";
const ASSISTANT: &str = "\n\nAssistant:";

/// Whether a row has both, and no column for responses by themselves.
pub(crate) fn is_one(row: &Row, columns: &Columns) -> bool {
    let has_responses = || [Field::ResponseA, Field::Responses].iter().any(|&field| columns.has(row, field));
    row.has(CHOSEN) && row.has(REJECTED) && !has_responses()
}

/// Whether each of them is one reply. What is neither counts as one, so that it is read, and its error is said.
pub(crate) fn is_pair(row: &Row, columns: &Columns) -> bool {
    let several = |name| row.value(name).is_some_and(|json| list(json).is_some());
    is_one(row, columns) && !several(CHOSEN) && !several(REJECTED)
}

/// The pair that a row is, where it [is one](is_pair).
pub(crate) fn pair_of(row: &Row, index: usize, options: &DatasetOptions) -> Option<Result<PairRecord, Error>> {
    let read = || -> Result<PairRecord, Error> {
        let (pair, rest) = pair(row, index, options)?;
        Ok(PairRecord { extra: rest.of(row.clone(), &options.columns), ..pair })
    };
    is_pair(row, &options.columns).then(read)
}

/// The elements of a list of several replies; `None` for a single one.
fn list(json: &str) -> Option<Vec<&RawValue>> {
    let list: Vec<&RawValue> = serde_json::from_str(json).ok()?;
    list.first().is_some_and(|first| first.get().starts_with(['"', '['])).then_some(list)
}

/// A reply, and the turns before it where the row has them with it.
#[derive(PartialEq)]
struct Side {
    before: Option<Vec<Message>>,
    reply: String,
}

impl Side {
    fn parse(json: &str) -> Result<Self, Problem> {
        if let Ok(text) = serde_json::from_str::<String>(json) {
            return Ok(of_turns(&text).unwrap_or(Self { before: None, reply: text }));
        }
        Self::of_messages(messages::parse(json)?).ok_or(Problem::NoList)
    }

    /// The last turn must be the assistant's.
    fn of_messages(mut messages: Vec<Message>) -> Option<Self> {
        let reply = messages.pop().filter(|last| last.role == "assistant")?.content;
        Some(Self { before: (!messages.is_empty()).then_some(messages), reply })
    }
}

/// A conversation that is written as a text; `None` for any other text.
fn of_turns(text: &str) -> Option<Side> {
    let mut rest = text.strip_prefix(HUMAN)?;
    let mut messages = Vec::new();
    let mut role = "user";
    loop {
        let next = [(HUMAN, "user"), (ASSISTANT, "assistant")];
        let next = next.into_iter().filter_map(|(mark, of)| Some((rest.find(mark)?, mark, of))).min();
        let (turn, after) = match next {
            Some((at, mark, of)) => (&rest[..at], Some((&rest[at + mark.len()..], of))),
            None => (rest, None),
        };
        messages.push(Message::new(role, turn.trim()));
        let Some((after, of)) = after else { return Side::of_messages(messages) };
        (rest, role) = (after, of);
    }
}

/// What was asked, and the replies.
struct Replies {
    instruction: String,
    chosen: Vec<String>,
    rejected: Vec<String>,
}

fn replies(reading: &mut Reading<'_>) -> Result<Replies, Error> {
    let row = reading.row();
    let side = |name: &'static str| -> Result<Vec<Side>, Error> {
        let json = row.value(name).unwrap_or_default();
        let sides = match list(json) {
            Some(several) => several.into_iter().map(|json| Side::parse(json.get())).collect(),
            None => Side::parse(json).map(|side| vec![side]),
        };
        sides.map_err(|problem| match problem {
            Problem::NoList => reading.wrong(Field::Responses, name, EXPECTED),
            turn @ Problem::Turn { .. } => reading.no_messages(Field::Responses, name.to_owned(), turn),
        })
    };
    let (chosen, rejected) = (side(CHOSEN)?, side(REJECTED)?);
    let mut before = chosen.iter().chain(&rejected).map(|side| side.before.as_deref());
    let context = before.next().flatten();
    if before.any(|other| other != context) {
        return Err(reading.wrong(
            Field::Responses,
            REJECTED,
            "a reply to the same conversation as that in \"chosen\"",
        ));
    }
    let instruction = match context {
        Some(turns) => {
            // A prompt of its own must be in the conversation again.
            let is_there = match reading.conversation(Field::Instruction)? {
                Some(prompt) => turns.starts_with(&prompt),
                None => reading.optional_text(Field::Instruction)?.is_none_or(|text| {
                    let text = text.trim();
                    turns.iter().any(|turn| turn.content.trim() == text) || asked(turns).contains(text)
                }),
            };
            if !is_there {
                const EXPECTED: &str = "in the conversation of \"chosen\", word for word";
                return Err(reading.refused(Field::Instruction, EXPECTED));
            }
            asked(turns)
        }
        None => match reading.conversation(Field::Instruction)? {
            Some(turns) => asked(&turns),
            None => reading.instruction()?,
        },
    };
    let texts = |sides: Vec<Side>| sides.into_iter().map(|side| side.reply).collect();
    Ok(Replies { instruction, chosen: texts(chosen), rejected: texts(rejected) })
}

/// Turns before a reply as what was asked: a single one is its text.
pub(crate) fn asked(turns: &[Message]) -> String {
    match turns {
        [only] if only.role == "user" => only.content.clone(),
        turns => conversation(turns),
    }
}

/// A number that looks random, for the place of a reply: the same for the same row, whatever else is in the file.
pub(crate) fn drawn(seed: u64, id: &ItemId, place: usize) -> [u8; 32] {
    *blake3::hash(format!("{seed}\n{place}\n{id}").as_bytes()).as_bytes()
}

/// A pair. Which reply stands first is drawn by the seed of the options and the id.
pub(crate) fn pair(row: &Row, index: usize, options: &DatasetOptions) -> Result<(PairRecord, Rest), Error> {
    let mut reading = Reading::new(row, options);
    let id = reading.id(index)?;
    let Replies { instruction, mut chosen, mut rejected } = replies(&mut reading)?;
    let (Some(better), Some(worse), true, true) =
        (chosen.pop(), rejected.pop(), chosen.is_empty(), rejected.is_empty())
    else {
        return Err(reading.wrong(Field::Responses, REJECTED, "one reply, as in \"chosen\" and in the rows before"));
    };
    let (rubric, reference) = (reading.optional_text(Field::Rubric)?, reading.optional_text(Field::Reference)?);
    let is_first = drawn(options.seed, &id, 0)[0].is_multiple_of(2);
    let (response_a, response_b) = if is_first { (better, worse) } else { (worse, better) };
    let verdicts = vec![Some(if is_first { Ordering::Greater } else { Ordering::Less })];
    let (columns, rest) = reading.finish();
    let record = PairRecord {
        id,
        instruction,
        response_a,
        response_b,
        rubric,
        reference,
        verdicts,
        columns,
        extra: Extra::new(),
    };
    Ok((record, rest.without(&[CHOSEN, REJECTED])))
}

/// A list of answers, those that were chosen with the grade 1 and the others with 0, in an order that is drawn by the seed and the id.
pub(crate) fn answers(row: &Row, index: usize, options: &DatasetOptions) -> Result<(AnswersRecord, Rest), Error> {
    let mut reading = Reading::new(row, options);
    let id = reading.id(index)?;
    let Replies { instruction, chosen, rejected } = replies(&mut reading)?;
    let (rubric, reference) = (reading.optional_text(Field::Rubric)?, reading.optional_text(Field::Reference)?);
    let graded = chosen.into_iter().map(|reply| (reply, 1.0)).chain(rejected.into_iter().map(|reply| (reply, 0.0)));
    let mut placed: Vec<_> =
        graded.enumerate().map(|(place, graded)| (drawn(options.seed, &id, place), graded)).collect();
    placed.sort_by_key(|(drawn, _)| *drawn);
    let (responses, grades) = placed.into_iter().map(|(_, (reply, grade))| (reply, Some(grade))).unzip();
    let (columns, rest) = reading.finish();
    let record = AnswersRecord { id, instruction, responses, rubric, reference, grades, columns, extra: Extra::new() };
    Ok((record, rest.without(&[CHOSEN, REJECTED])))
}
