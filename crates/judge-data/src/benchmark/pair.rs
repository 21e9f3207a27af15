//! What all benchmarks are read into.

use std::cmp::Ordering;
use std::path::Path;

use judge_core::ItemId;

use crate::rows::ids::UniqueIds;
use crate::{Error, Extra, PairRecord, Row, RowColumns, Rows};

/// One pair of a benchmark: two responses, and which of them people prefer.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct BenchmarkPair {
    /// The pair.
    pub id: ItemId,
    /// `Greater`: the first response is better; `Equal`: a tie; `None` where nobody said or raters are split, or where the benchmark leaves
    /// ties out ([`Benchmark`](crate::Benchmark)): such a pair is in no figure.
    pub gold: Option<Ordering>,
    /// The benchmark's own groups of this pair, such as its subset.
    pub groups: Vec<String>,
    /// What pairs that are not independent share: the question.
    pub question: String,
    /// What is asked and answered; `None` where the file has the votes alone, or a row of your own lacks a text.
    pub texts: Option<PairTexts>,
    /// By what the responses are compared, where the file says it.
    pub rubric: Option<String>,
    /// A good answer, where the file has one.
    pub reference: Option<String>,
    /// Which models wrote the two responses, where the file says it: `model_a` and `model_b`.
    pub models: Option<[String; 2]>,
    /// What stands in the place of a person's label and is none, with what was expected ([`RowColumns::no_grade`]).
    pub no_grade: Option<String>,
}

/// The texts of a pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairTexts {
    /// What was asked.
    pub instruction: String,
    /// The first answer; of MT-bench the whole conversation, turn by turn.
    pub response_a: String,
    /// The second one.
    pub response_b: String,
    /// Characters of the two answers that are judged; of a conversation those of the last answer.
    pub lengths: [usize; 2],
}

impl PairTexts {
    pub(super) fn new(instruction: String, response_a: String, response_b: String) -> Self {
        let lengths = [&response_a, &response_b].map(|text| text.chars().count());
        Self { instruction, response_a, response_b, lengths }
    }
}

impl BenchmarkPair {
    /// A pair with nothing but its texts, whose question is what was asked.
    pub(super) fn new(id: ItemId, gold: Option<Ordering>, texts: PairTexts) -> Self {
        let question = texts.instruction.clone();
        Self { texts: Some(texts), ..Self::without_texts(id, gold, question) }
    }

    /// A pair with nothing but its question.
    pub(super) fn without_texts(id: ItemId, gold: Option<Ordering>, question: String) -> Self {
        let groups = Vec::new();
        Self { id, gold, groups, question, texts: None, rubric: None, reference: None, models: None, no_grade: None }
    }

    /// The pair as a row of a data set, with the gold label as the verdict of a rater; `None` where the file has no texts.
    pub fn to_record(&self) -> Option<PairRecord> {
        let PairTexts { instruction, response_a, response_b, .. } = self.texts.clone()?;
        Some(PairRecord {
            id: self.id.clone(),
            instruction,
            response_a,
            response_b,
            rubric: self.rubric.clone(),
            reference: self.reference.clone(),
            verdicts: self.gold.into_iter().map(Some).collect(),
            columns: RowColumns::default(),
            extra: Extra::new(),
        })
    }
}

/// Which models wrote the responses: `model_a` and `model_b`, where a row has both.
pub(super) fn models(row: &Row) -> Result<Option<[String; 2]>, Error> {
    let model = |field| row.optional::<String>(field, "a string");
    Ok(model("model_a")?.zip(model("model_b")?).map(|(a, b)| [a, b]))
}

/// The pairs of one file; `read` gets each row and its number.
pub(super) fn read_rows(
    path: &Path,
    ids: &mut UniqueIds,
    mut read: impl FnMut(&Row, usize) -> Result<BenchmarkPair, Error>,
) -> Result<Vec<BenchmarkPair>, Error> {
    read_several(path, ids, |row, number| Ok(vec![read(row, number)?]))
}

/// The pairs of a file whose rows have any number of them.
pub(super) fn read_several(
    path: &Path,
    ids: &mut UniqueIds,
    mut read: impl FnMut(&Row, usize) -> Result<Vec<BenchmarkPair>, Error>,
) -> Result<Vec<BenchmarkPair>, Error> {
    let mut pairs = Vec::new();
    for (number, row) in Rows::open(path)?.enumerate() {
        let row = row?;
        for pair in read(&row, number)? {
            ids.check(&pair.id, row.place())?;
            pairs.push(pair);
        }
    }
    Ok(pairs)
}

/// The order that a label stands for.
pub(super) fn order_of<const N: usize>(
    row: &Row,
    field: &'static str,
    expected: &'static str,
    labels: [(i64, Ordering); N],
) -> Result<Ordering, Error> {
    let label: i64 = row.required(field, expected)?;
    let known = labels.into_iter().find(|(known, _)| *known == label);
    known.map(|(_, order)| order).ok_or_else(|| row.wrong(field, expected))
}
