use std::cmp::Ordering::{Greater, Less};

use judge_core::{ItemId, Message};

use super::pair::{BenchmarkPair, PairTexts};
use crate::dataset::preference::asked;
use crate::rows::messages::{self, MESSAGES, Problem};
use crate::{Error, Row};

const PREFERENCE: &str = "a whole number from -3, the first response is much better, to 3, the second is";

/// A row of the preference set. What is equally good is not counted.
pub(super) fn pair(row: &Row, number: usize) -> Result<BenchmarkPair, Error> {
    let gold = match row.required::<i64>("overall_preference", PREFERENCE)? {
        -3..=-1 => Some(Greater),
        0 => None,
        1..=3 => Some(Less),
        _ => return Err(row.wrong("overall_preference", PREFERENCE)),
    };
    let texts = PairTexts::new(asked(&context(row)?), row.string("response1")?, row.string("response2")?);
    let pair = BenchmarkPair::new(ItemId::from(number as u64), gold, texts);
    Ok(BenchmarkPair { groups: vec![row.string("domain")?], ..pair })
}

/// The conversation that both responses go on with.
fn context(row: &Row) -> Result<Vec<Message>, Error> {
    const FIELD: &str = "context";
    let json = row.value(FIELD).ok_or_else(|| row.missing(FIELD))?;
    let turns = messages::parse(json).map_err(|problem| match problem {
        Problem::NoList => row.wrong(FIELD, MESSAGES),
        Problem::Turn { turn, expected, found } => {
            Error::Turn { place: row.place().clone(), column: FIELD.to_owned(), turn, expected, found }
        }
    })?;
    let ends_with_user = turns.last().is_some_and(|last| last.role == "user");
    if ends_with_user { Ok(turns) } else { Err(row.wrong(FIELD, "a conversation that ends with the user's turn")) }
}
