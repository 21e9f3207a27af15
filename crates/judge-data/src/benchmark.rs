//! The public benchmarks of pairwise judges, as their authors publish them, and files of verdicts on them.

mod autoj;
mod hhh;
mod llmbar;
mod mtbench;
mod own;
mod pandalm;
mod perturbation;
mod published;
mod verdicts;
mod votes;

use std::cmp::Ordering;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use judge_core::ItemId;

pub use perturbation::{Perturbation, PerturbedPair};
pub use published::{Published, Statistics};
pub use verdicts::PairVerdicts;
pub use votes::PairVote;

use crate::ids::UniqueIds;
use crate::{Columns, Error, Extra, PairRecord, Row, RowColumns, Rows};

/// A published set of pairs with the verdicts of people, or a file of your own.
///
/// | benchmark | file | ids | gold label | groups | ties |
/// |---|---|---|---|---|---|
/// | `pandalm` | `testset-v1.json` | `idx` | majority of three annotators | | yes |
/// | `autoj` | `testdata_pairwise.jsonl` | row | `label` | eight groups of scenarios | yes |
/// | `mtbench` | a file of votes, one row for each vote of a person | row | `winner` | turn | yes |
/// | `hhh` | prometheus-eval's `hhh_alignment_eval.json`, or rows of the data set itself | row | the better response | `source`: helpful, harmless, honest, other | no |
/// | `pairs` | any file of [`PairRecord`]s with `human` | `id` | majority of the raters, a tie where there is none | | yes |
/// | `llmbar` | `dataset.json`, or a folder of subsets | row, `subset/row` in a folder | `label` | subset | no |
///
/// Rows count from 0. Responses that a file has as `true` are the text `True`, as they were when they were written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Benchmark {
    /// PandaLM's test set (Wang et al., 2023, arXiv 2306.05087).
    PandaLm,
    /// Auto-J's pairwise test set (Li et al., 2023, arXiv 2310.05470).
    AutoJ,
    /// MT-bench's votes (Zheng et al., 2023, arXiv 2306.05685).
    MtBench,
    /// LLMBar (Zeng et al., 2023, arXiv 2310.07641).
    LlmBar,
    /// Helpful, honest and harmless (Askell et al., 2021, arXiv 2112.00861), as prometheus-eval publishes it: `chosen_instruction` and `rejected_instruction` are prompts of Prometheus with the better response
    /// and the worse one, of which the better one is the first here on rows with an even number and the second on the others. Or rows `{"input", "targets": {"choices", "labels"}, "source"?}`, the
    /// choices in the order of the file.
    Hhh,
    /// Pairs of your own.
    Pairs,
}

impl Benchmark {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::PandaLm, Self::AutoJ, Self::MtBench, Self::LlmBar, Self::Hhh, Self::Pairs];

    /// The name used on command lines and in reports, e.g. `pandalm`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PandaLm => "pandalm",
            Self::AutoJ => "autoj",
            Self::MtBench => "mtbench",
            Self::LlmBar => "llmbar",
            Self::Hhh => "hhh",
            Self::Pairs => "pairs",
        }
    }

    /// Whether a tie is one of its labels.
    pub fn has_ties(self) -> bool {
        !matches!(self, Self::LlmBar | Self::Hhh)
    }

    /// Reads its published file; for LLMBar a folder with a `dataset.json` for each subset will do too.
    ///
    /// # Errors
    /// [`Error::NoRows`]; for a row that is not as published [`Error::MissingField`], [`Error::WrongType`] or [`Error::DuplicateId`], each with its line; for a folder
    /// without subsets [`Error::NoSubset`]; [`Error::Io`] and what [`Rows`] refuses.
    pub fn read(self, path: impl AsRef<Path>) -> Result<Vec<BenchmarkPair>, Error> {
        self.read_with(path, &Columns::default())
    }

    /// Reads its file as [`read`](Self::read) does; pairs of your own are read by these columns, published files have theirs.
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub fn read_with(self, path: impl AsRef<Path>, columns: &Columns) -> Result<Vec<BenchmarkPair>, Error> {
        let path = path.as_ref();
        let ids = &mut UniqueIds::default();
        let pairs = match self {
            Self::PandaLm => read_rows(path, ids, |row, _| pandalm::pair(row)),
            Self::AutoJ => read_rows(path, ids, autoj::pair),
            Self::MtBench => read_rows(path, ids, mtbench::pair),
            Self::LlmBar => llmbar::read(path, ids),
            Self::Hhh => read_rows(path, ids, hhh::pair),
            Self::Pairs => own::read(path, columns.clone()),
        }?;
        if pairs.is_empty() { Err(Error::NoRows { path: path.to_path_buf() }) } else { Ok(pairs) }
    }

    /// The files that [`read`](Self::read) reads: the path itself, or those of a folder's subsets.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::NoSubset`].
    pub fn files(self, path: impl AsRef<Path>) -> Result<Vec<PathBuf>, Error> {
        let path = path.as_ref();
        if self == Self::LlmBar { llmbar::files(path) } else { Ok(vec![path.to_path_buf()]) }
    }
}

impl fmt::Display for Benchmark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Benchmark {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        let found = Self::ALL.into_iter().find(|benchmark| benchmark.as_str() == name);
        found.ok_or_else(|| Error::UnknownBenchmark { found: name.to_owned() })
    }
}

/// One pair of a benchmark: two responses, and which of them people prefer.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct BenchmarkPair {
    /// The pair.
    pub id: ItemId,
    /// `Greater`: the first response is better; `Equal`: a tie; `None` where nobody said, which only pairs of your own have.
    pub gold: Option<Ordering>,
    /// The benchmark's own group of this pair, such as a subset.
    pub group: Option<String>,
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
    fn new(instruction: String, response_a: String, response_b: String) -> Self {
        let lengths = [&response_a, &response_b].map(|text| text.chars().count());
        Self { instruction, response_a, response_b, lengths }
    }
}

impl BenchmarkPair {
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
            verdicts: self.gold.into_iter().collect(),
            columns: RowColumns::default(),
            extra: Extra::new(),
        })
    }
}

/// The pairs of one file; `read` gets each row and its number.
fn read_rows(
    path: &Path,
    ids: &mut UniqueIds,
    mut read: impl FnMut(&Row, usize) -> Result<BenchmarkPair, Error>,
) -> Result<Vec<BenchmarkPair>, Error> {
    let mut pairs = Vec::new();
    for (number, row) in Rows::open(path)?.enumerate() {
        let row = row?;
        let pair = read(&row, number)?;
        ids.check(&pair.id, row.place())?;
        pairs.push(pair);
    }
    Ok(pairs)
}

/// The order that a label stands for.
fn order_of<const N: usize>(
    row: &Row,
    field: &'static str,
    expected: &'static str,
    labels: [(i64, Ordering); N],
) -> Result<Ordering, Error> {
    let label: i64 = row.required(field, expected)?;
    let known = labels.into_iter().find(|(known, _)| *known == label);
    known.map(|(_, order)| order).ok_or_else(|| row.wrong(field, expected))
}
