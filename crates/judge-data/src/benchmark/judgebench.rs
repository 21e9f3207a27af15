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
    /// Whether the exchanged order was judged.
    pub(super) both_orders: bool,
    /// The first decision that is no verdict, in words.
    pub(super) odd: Option<String>,
}

/// A row of a released file of verdicts; `None` for any other row. A decision of another form, such as `A<B`, is no verdict, as its authors
/// count it: neither right nor the opposite.
pub(super) fn released(row: &Row) -> Result<Option<Released>, Error> {
    const EXPECTED: &str = "a list of one or two objects with `decision`, the second with the responses exchanged";
    if !row.has("judgments") {
        return Ok(None);
    }
    let id = row.required("pair_id", "a string or a whole number")?;
    let judgments: Vec<Option<Judgment>> = row.required("judgments", EXPECTED)?;
    let mut odd = None;
    let decided = judgments.into_iter().map(|judgment| {
        let text = judgment?.decision.filter(|text| !text.is_empty())?;
        let found = order(&text);
        if found.is_none() {
            odd.get_or_insert_with(|| format!("expected the decision A>B, B>A or A=B, found {text:?}"));
        }
        found
    });
    let decided: Vec<Option<Ordering>> = decided.collect();
    let (orders, both_orders) = match decided[..] {
        [given] => ([given, None], false),
        [given, swapped] => ([given, swapped.map(Ordering::reverse)], true),
        _ => return Err(row.wrong("judgments", EXPECTED)),
    };
    Ok(Some(Released { id, orders, both_orders, odd }))
}

fn order(text: &str) -> Option<Ordering> {
    match text {
        "A>B" => Some(Greater),
        "B>A" => Some(Less),
        "A=B" => Some(Equal),
        _ => None,
    }
}
