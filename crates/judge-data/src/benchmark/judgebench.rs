use std::cmp::Ordering::{self, Equal, Greater, Less};

use judge_core::ItemId;
use serde::Deserialize;

use super::pair::{BenchmarkPair, PairTexts};
use crate::{Error, Row};

const LABEL: &str = "\"A>B\" or \"B>A\"";

/// A released pair; subsets of MMLU-Pro are one group, as its authors count them.
pub(super) fn pair(row: &Row, _: usize) -> Result<BenchmarkPair, Error> {
    let source = row.string("source")?;
    let label = row.string("label")?;
    let gold = order(&label).filter(|gold| *gold != Equal).ok_or_else(|| row.wrong("label", LABEL))?;
    let texts = PairTexts::new(row.string("question")?, row.string("response_A")?, row.string("response_B")?);
    let group = if source.starts_with("mmlu-pro") { "mmlu-pro".to_owned() } else { source };
    let id = row.required("pair_id", "a string or a whole number")?;
    Ok(BenchmarkPair { groups: vec![group], ..BenchmarkPair::new(id, Some(gold), texts) })
}

/// What a released judge decided.
#[derive(Deserialize)]
struct Judgment {
    decision: Option<String>,
}

/// A released verdict: its pair, and what was decided in the given order and in the exchanged one, both about the given order.
pub(super) struct Released {
    pub(super) id: ItemId,
    pub(super) orders: [Option<Ordering>; 2],
}

/// A row of a released file of verdicts; `None` for any other row.
pub(super) fn released(row: &Row) -> Result<Option<Released>, Error> {
    const TWO: &str = "a list of two objects with `decision`, A>B, B>A or A=B";
    if !row.has("judgments") {
        return Ok(None);
    }
    let id = row.required("pair_id", "a string or a whole number")?;
    let judgments: Vec<Option<Judgment>> = row.required("judgments", TWO)?;
    let decided = |judgment: Option<Judgment>| match judgment.and_then(|judgment| judgment.decision) {
        None => Ok(None),
        Some(text) if text.is_empty() => Ok(None),
        Some(text) => order(&text).map(Some).ok_or_else(|| row.wrong("judgments", TWO)),
    };
    let Ok([given, swapped]) = <[_; 2]>::try_from(judgments) else { return Err(row.wrong("judgments", TWO)) };
    Ok(Some(Released { id, orders: [decided(given)?, decided(swapped)?.map(Ordering::reverse)] }))
}

fn order(text: &str) -> Option<Ordering> {
    match text {
        "A>B" => Some(Greater),
        "B>A" => Some(Less),
        "A=B" => Some(Equal),
        _ => None,
    }
}
