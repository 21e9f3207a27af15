use std::cmp::Ordering::{Greater, Less};

use super::pair::{BenchmarkPair, PairTexts, order_of};
use crate::{Error, Row};

/// The groups in which its authors report, each with the domains of the file.
const GROUPS: [(&str, &[&str]); 5] = [
    ("if", &["precise if", "ifeval"]),
    ("stem", &["stem", "math", "mmlu-pro", "gpqa"]),
    ("code", &["mbpp", "code"]),
    ("safe", &["safety", "harmlessness"]),
    ("chat", &["general", "focus", "human-preference", "factuality", "helpful"]),
];

/// A pair, with the questions that its authors compare by as its rubric. A domain of no group is one by itself.
pub(super) fn pair(row: &Row, _: usize) -> Result<BenchmarkPair, Error> {
    let gold = order_of(row, "label", "0 or 1", [(0, Greater), (1, Less)])?;
    let domain = row.string("domain")?.to_lowercase();
    let group = GROUPS.iter().find(|(_, domains)| domains.contains(&domain.as_str()));
    let group = group.map_or(domain, |(group, _)| (*group).to_owned());
    let texts = PairTexts::new(row.string("instruction")?, row.string("response_a")?, row.string("response_b")?);
    let pair = BenchmarkPair::new(row.required("case_id", "a string or a whole number")?, Some(gold), texts);
    Ok(BenchmarkPair { groups: vec![group], rubric: Some(row.string("rubrics")?), ..pair })
}
