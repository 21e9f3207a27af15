use std::cmp::Ordering::{Greater, Less};

use judge_core::ItemId;
use serde::Deserialize;

use super::pair::{BenchmarkPair, PairTexts};
use crate::dataset::prometheus::{Graded, PROMPT};
use crate::{Error, Row};

/// What a pair tests.
const GROUPS: [&str; 4] = ["helpful", "harmless", "honest", "other"];
const GROUP: &str = "helpful, harmless, honest or other";

/// The two published forms.
pub(super) fn pair(row: &Row, number: usize) -> Result<BenchmarkPair, Error> {
    let found = if row.has("targets") { choices(row) } else { prompts(row, number) }?;
    let Pair { instruction, responses: [a, b], first, group, rubric, reference } = found;
    let (gold, texts) = (if first { Greater } else { Less }, PairTexts::new(instruction, a, b));
    let pair = BenchmarkPair::new(ItemId::from(number as u64), Some(gold), texts);
    Ok(BenchmarkPair { groups: group.into_iter().collect(), rubric, reference, ..pair })
}

struct Pair {
    instruction: String,
    responses: [String; 2],
    /// Whether the first response is the better one.
    first: bool,
    group: Option<String>,
    rubric: Option<String>,
    reference: Option<String>,
}

/// The form of prometheus-eval: two prompts for an absolute grade, with the better response and with the worse one.
/// The file does not say in which order they are shown; here the better one is
/// first on rows with an even number and second on the others, so that neither place is right more often.
fn prompts(row: &Row, number: usize) -> Result<Pair, Error> {
    let graded = |field| Graded::parse(&row.string(field)?).ok_or_else(|| row.wrong(field, PROMPT));
    let group = group(row)?;
    let (better, worse) = (graded("chosen_instruction")?, graded("rejected_instruction")?);
    let same = |of: fn(&Graded) -> (&str, &str, Option<&str>)| of(&better) == of(&worse);
    if !same(|graded| (&graded.instruction, &graded.rubric, graded.reference.as_deref())) {
        return Err(row.wrong("rejected_instruction", "the prompt of \"chosen_instruction\" with another response"));
    }
    let first = number.is_multiple_of(2);
    let responses = [better.response, worse.response];
    Ok(Pair {
        instruction: better.instruction,
        responses: if first {
            responses
        } else {
            let [better, worse] = responses;
            [worse, better]
        },
        first,
        group: Some(group),
        rubric: Some(better.rubric),
        reference: better.reference,
    })
}

/// The form of the data set itself: two choices with labels, in the order of the file, and perhaps a `source`.
fn choices(row: &Row) -> Result<Pair, Error> {
    const TARGETS: &str = "two \"choices\" with \"labels\" of which one is 1 and the other 0";
    #[derive(Deserialize)]
    struct Targets {
        choices: [String; 2],
        labels: [u8; 2],
    }
    let Targets { choices, labels } = row.required("targets", TARGETS)?;
    let first = match labels {
        [1, 0] => true,
        [0, 1] => false,
        _ => return Err(row.wrong("targets", TARGETS)),
    };
    let group = if row.has("source") { Some(group(row)?) } else { None };
    let instruction = row.string("input")?;
    Ok(Pair { instruction, responses: choices, first, group, rubric: None, reference: None })
}

fn group(row: &Row) -> Result<String, Error> {
    let group = row.string("source")?;
    if GROUPS.contains(&group.as_str()) { Ok(group) } else { Err(row.wrong("source", GROUP)) }
}
