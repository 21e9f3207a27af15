use std::cmp::Ordering::{Greater, Less};

use judge_core::ItemId;

use super::pair::{BenchmarkPair, PairTexts};
use crate::dataset::preference::drawn;
use crate::rows::ids::plain;
use crate::{Error, Row};

/// Styles of a response in the order of the file: concise, detailed in plain text, detailed in Markdown.
const STYLES: usize = 3;

/// The nine pairs of a row: each chosen response with each rejected one. `easy` are those whose better response has the richer style,
/// `hard` those whose worse one has it, `normal` those of one style.
pub(super) fn pairs(row: &Row, number: usize) -> Result<Vec<BenchmarkPair>, Error> {
    let id = row.optional("id", "a string or a whole number")?.unwrap_or_else(|| ItemId::from(number as u64));
    let prompt = row.string("prompt")?;
    let responses = |field| -> Result<[String; STYLES], Error> {
        const THREE: &str = "a list of three texts: concise, detailed, detailed in Markdown";
        row.required::<Vec<String>>(field, THREE)?.try_into().map_err(|_| row.wrong(field, THREE))
    };
    let (chosen, rejected) = (responses("chosen")?, responses("rejected")?);
    // The released files of all domains name one; that of a domain alone does not.
    let domain = row.optional::<String>("domain", "a string")?;
    let domain = domain.as_deref().map(|domain| domain.split('-').next().unwrap_or(domain));
    let mut pairs = Vec::new();
    for (i, better) in chosen.iter().enumerate() {
        for (j, worse) in rejected.iter().enumerate() {
            let style = match i.cmp(&j) {
                Greater => "easy",
                Less => "hard",
                _ => "normal",
            };
            let is_first = drawn(0, &id, STYLES * i + j)[0].is_multiple_of(2);
            let (a, b) = if is_first { (better, worse) } else { (worse, better) };
            let texts = PairTexts::new(prompt.clone(), a.clone(), b.clone());
            let gold = if is_first { Greater } else { Less };
            let group = domain.map_or_else(|| style.to_owned(), |domain| format!("{domain}/{style}"));
            let pair = BenchmarkPair::new(ItemId::from(format!("{}/{i}-{j}", plain(&id))), Some(gold), texts);
            pairs.push(BenchmarkPair { groups: vec![group], ..pair });
        }
    }
    Ok(pairs)
}
