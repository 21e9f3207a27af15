use std::cmp::Ordering::{Greater, Less};

use judge_core::ItemId;

use super::mtbench::question;
use super::pair::{BenchmarkPair, PairTexts, models};
use crate::{Error, Row};

const WINNERS: &str = "model_a, model_b, tie, tie (bothbad) or both_bad";
const CONFLICTS: &str = "sampled_conflict_pairs";

/// What its authors report apart, by the columns of a vote: groups overlap.
const FLAGS: [&str; 5] = ["hard_prompt", "easy_prompt", "if_prompt", "is_code", "math_prompt"];

/// The two published forms: a vote of a person, or many answers of one model, of which some are right.
pub(super) fn pairs(row: &Row, _: usize) -> Result<Vec<BenchmarkPair>, Error> {
    if row.keys().any(|key| key == CONFLICTS) { conflicts(row) } else { Ok(vec![vote(row)?]) }
}

/// A tie is not counted.
fn vote(row: &Row) -> Result<BenchmarkPair, Error> {
    let gold = match row.required::<String>("winner", WINNERS)?.as_str() {
        "model_a" => Some(Greater),
        "model_b" => Some(Less),
        "tie" | "tie (bothbad)" | "both_bad" => None,
        _ => return Err(row.wrong("winner", WINNERS)),
    };
    let mut groups = Vec::new();
    for flag in FLAGS {
        if row.optional::<bool>(flag, "true or false")? == Some(true) {
            groups.push(flag.to_owned());
        }
    }
    if let Some(language) = row.optional::<String>("language", "a string")? {
        groups.push(if language == "English" { "english" } else { "other_languages" }.to_owned());
    }
    let texts = PairTexts::new(row.string("prompt")?, row.string("response_1")?, row.string("response_2")?);
    let pair = BenchmarkPair::new(ItemId::from(question(row)?), gold, texts);
    Ok(BenchmarkPair { groups, models: models(row)?, ..pair })
}

/// The sampled pairs of a right and a wrong answer. Answers are counted from 0 in the pairs and from 1 in the columns.
fn conflicts(row: &Row) -> Result<Vec<BenchmarkPair>, Error> {
    const PAIRS: &str = "a list of pairs, at least one, of two answers of different \"scores\", counted from 0";
    let (question, prompt) = (question(row)?, row.string("prompt")?);
    let is_right: Vec<bool> = row.required("scores", "a list of true and false")?;
    let sampled: Vec<[usize; 2]> = row.required(CONFLICTS, PAIRS)?;
    let answer = |number: usize| {
        let column = format!("response_{}", number + 1);
        let text = row.value(&column).and_then(|json| serde_json::from_str::<String>(json).ok());
        text.ok_or_else(|| row.wrong(CONFLICTS, "a list of pairs of answers that the row has, as texts"))
    };
    let pair = |(place, [a, b]): (usize, [usize; 2])| {
        let gold = match (is_right.get(a), is_right.get(b)) {
            (Some(true), Some(false)) => Greater,
            (Some(false), Some(true)) => Less,
            _ => return Err(row.wrong(CONFLICTS, PAIRS)),
        };
        let texts = PairTexts::new(prompt.clone(), answer(a)?, answer(b)?);
        Ok(BenchmarkPair::new(ItemId::from(format!("{question}+{place}")), Some(gold), texts))
    };
    if sampled.is_empty() {
        return Err(row.wrong(CONFLICTS, PAIRS));
    }
    sampled.into_iter().enumerate().map(pair).collect()
}
