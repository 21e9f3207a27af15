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
    let id = ItemId::from(number as u64);
    if row.has("targets") { choices(row, id) } else { prompts(row, id, number.is_multiple_of(2)) }
}

/// The form of prometheus-eval: two prompts for an absolute grade, with the better response and with the worse one.
/// The file does not say in which order they are shown; here the better one is
/// first on rows with an even number and second on the others, so that neither place is right more often.
fn prompts(row: &Row, id: ItemId, is_first: bool) -> Result<BenchmarkPair, Error> {
    let graded = |field| Graded::parse(&row.string(field)?).ok_or_else(|| row.wrong(field, PROMPT));
    let groups = vec![group(row)?];
    let (better, worse) = (graded("chosen_instruction")?, graded("rejected_instruction")?);
    let same = |of: fn(&Graded) -> (&str, &str, Option<&str>)| of(&better) == of(&worse);
    if !same(|graded| (&graded.instruction, &graded.rubric, graded.reference.as_deref())) {
        return Err(row.wrong("rejected_instruction", "the prompt of \"chosen_instruction\" with another response"));
    }
    let Graded { instruction, response, reference, rubric } = better;
    let (gold, [a, b]) =
        if is_first { (Greater, [response, worse.response]) } else { (Less, [worse.response, response]) };
    let pair = BenchmarkPair::new(id, Some(gold), PairTexts::new(instruction, a, b));
    Ok(BenchmarkPair { groups, rubric: Some(rubric), reference, ..pair })
}

/// The form of the data set itself: two choices with labels, in the order of the file, and perhaps a `source`.
fn choices(row: &Row, id: ItemId) -> Result<BenchmarkPair, Error> {
    const TARGETS: &str = "two \"choices\" with \"labels\" of which one is 1 and the other 0";
    #[derive(Deserialize)]
    struct Targets {
        choices: [String; 2],
        labels: [u8; 2],
    }
    let Targets { choices: [a, b], labels } = row.required("targets", TARGETS)?;
    let gold = match labels {
        [1, 0] => Greater,
        [0, 1] => Less,
        _ => return Err(row.wrong("targets", TARGETS)),
    };
    let groups = if row.has("source") { vec![group(row)?] } else { Vec::new() };
    let texts = PairTexts::new(row.string("input")?, a, b);
    Ok(BenchmarkPair { groups, ..BenchmarkPair::new(id, Some(gold), texts) })
}

fn group(row: &Row) -> Result<String, Error> {
    let group = row.string("source")?;
    if GROUPS.contains(&group.as_str()) { Ok(group) } else { Err(row.wrong("source", GROUP)) }
}
