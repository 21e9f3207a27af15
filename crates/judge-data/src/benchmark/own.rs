use std::cmp::Ordering;
use std::path::Path;

use judge_core::verdict::likelier;

use super::pair::{BenchmarkPair, PairTexts};
use crate::{Columns, Dataset, DatasetFormat, DatasetOptions, Error, Record, Unread, UnreadRecord, majority};

/// Pairs of which one at least has a gold label. One whose texts cannot be read has no texts.
pub(super) fn read(path: &Path, columns: Columns) -> Result<Vec<BenchmarkPair>, Error> {
    let options = DatasetOptions { format: Some(DatasetFormat::Pairs), columns, ..DatasetOptions::default() };
    let (mut pairs, mut unread) = (Vec::new(), Unread::default());
    for record in Dataset::open(path, &options)? {
        let record = record?;
        unread.note(record.id(), None);
        unread.note_grade(record.id(), record.no_grade());
        let record = match record {
            Record::Pair(record) => record,
            Record::Unread(record) => {
                pairs.push(without_texts(record));
                continue;
            }
            _ => continue, // the format is given
        };
        let gold = record.majority();
        let no_grade = record.columns.no_grade().map(str::to_owned);
        if gold.is_none() && no_grade.is_none() && record.verdicts.iter().any(Option::is_some) {
            unread.note_grade(&record.id, Some("no verdict has more than half of its raters"));
        }
        let model = |name| record.extra.rendered(name).map(std::borrow::Cow::into_owned);
        let models = model("model_a").zip(model("model_b")).map(|(a, b)| [a, b]);
        let texts = PairTexts::new(record.asked().into_owned(), record.response_a, record.response_b);
        let pair = BenchmarkPair::new(record.id, gold, texts);
        pairs.push(BenchmarkPair { rubric: record.rubric, reference: record.reference, models, no_grade, ..pair });
    }
    if !pairs.is_empty() && pairs.iter().all(|pair| pair.gold.is_none()) {
        let (what, why) = ("pairs", unread.notes("").next());
        return Err(Error::NobodyGraded { path: path.to_path_buf(), scored: pairs.len(), what, why });
    }
    Ok(pairs)
}

/// A pair of which a text is missing or cannot be read: no judge has a verdict on it. It shares its question with no other.
fn without_texts(record: UnreadRecord) -> BenchmarkPair {
    let verdicts: Vec<Ordering> = record.scores.iter().flatten().copied().map(likelier).collect();
    let (question, no_grade) = (record.id.to_string(), record.columns.no_grade().map(str::to_owned));
    BenchmarkPair { no_grade, ..BenchmarkPair::without_texts(record.id, majority(&verdicts), question) }
}
