use std::cmp::Ordering;
use std::path::Path;

use super::{BenchmarkPair, PairTexts};
use crate::{Dataset, DatasetFormat, DatasetOptions, Error, Record};

/// Pairs that people have judged; the others are left out.
pub(super) fn read(path: &Path) -> Result<Vec<BenchmarkPair>, Error> {
    let options = DatasetOptions { format: Some(DatasetFormat::Pairs), ..DatasetOptions::default() };
    let (mut pairs, mut unjudged) = (Vec::new(), 0);
    for record in Dataset::open(path, &options)? {
        let Record::Pair(record) = record? else { continue };
        let Some(gold) = majority(&record.verdicts) else {
            unjudged += 1;
            continue;
        };
        let model = |name| record.extra.rendered(name).map(std::borrow::Cow::into_owned);
        let models = model("model_a").zip(model("model_b")).map(|(a, b)| [a, b]);
        pairs.push(BenchmarkPair {
            id: record.id,
            gold,
            group: None,
            question: record.instruction.clone(),
            rubric: record.rubric,
            reference: record.reference,
            models,
            texts: Some(PairTexts {
                instruction: record.instruction,
                response_a: record.response_a,
                response_b: record.response_b,
            }),
        });
    }
    if pairs.is_empty() && unjudged > 0 {
        return Err(Error::NobodyGraded { path: path.to_path_buf(), scored: unjudged });
    }
    Ok(pairs)
}

/// What more than half say, or a tie; `None` for nobody.
fn majority(verdicts: &[Ordering]) -> Option<Ordering> {
    let count = |wanted: Ordering| verdicts.iter().filter(|&&verdict| verdict == wanted).count();
    let most = [Ordering::Greater, Ordering::Less].into_iter().find(|&side| 2 * count(side) > verdicts.len());
    (!verdicts.is_empty()).then(|| most.unwrap_or(Ordering::Equal))
}
