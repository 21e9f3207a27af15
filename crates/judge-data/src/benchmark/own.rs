use std::path::Path;

use super::{BenchmarkPair, PairTexts};
use crate::{Columns, Dataset, DatasetFormat, DatasetOptions, Error, Record, majority};

/// Pairs of which people have judged one at least.
pub(super) fn read(path: &Path, columns: Columns) -> Result<Vec<BenchmarkPair>, Error> {
    let options = DatasetOptions { format: Some(DatasetFormat::Pairs), columns, ..DatasetOptions::default() };
    let (mut pairs, mut unjudged) = (Vec::new(), 0);
    for record in Dataset::open(path, &options)? {
        let Record::Pair(record) = record? else { continue };
        let gold = majority(&record.verdicts);
        unjudged += usize::from(gold.is_none());
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
            texts: Some(PairTexts::new(record.instruction, record.response_a, record.response_b)),
        });
    }
    if unjudged > 0 && unjudged == pairs.len() {
        return Err(Error::NobodyGraded { path: path.to_path_buf(), scored: unjudged });
    }
    Ok(pairs)
}
