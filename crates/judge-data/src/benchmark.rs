//! The public benchmarks of pairwise judges, as their authors publish them, and files of verdicts on them.

mod autoj;
mod helpsteer;
mod hhh;
mod judgebench;
mod llmbar;
mod mtbench;
mod own;
mod pair;
mod pandalm;
mod perturbation;
mod ppe;
mod published;
mod rmbench;
mod rubricbench;
mod verdicts;
mod votes;

use std::path::{Path, PathBuf};
use std::str::FromStr;

pub use pair::{BenchmarkPair, PairTexts};
pub use perturbation::{Perturbation, PerturbedPair};
pub use published::{Published, Statistics};
pub use verdicts::PairVerdicts;
pub use votes::PairVote;

use pair::{read_rows, read_several};

use crate::rows::ids::UniqueIds;
use crate::{Columns, Error};

/// A published set of pairs with the verdicts of people, or a file of your own.
///
/// | benchmark | file | ids | gold label | groups | ties |
/// |---|---|---|---|---|---|
/// | `pandalm` | `testset-v1.json` | `idx` | majority of three annotators | | yes |
/// | `autoj` | `testdata_pairwise.jsonl` | row | `label` | eight groups of scenarios | yes |
/// | `mtbench` | a file of votes, one row for each vote of a person | row | `winner` | turn | yes |
/// | `hhh` | prometheus-eval's `hhh_alignment_eval.json`, or rows of the data set itself | row | the better response | `source`: helpful, harmless, honest, other | no |
/// | `judgebench` | a released `jsonl` of pairs, or of verdicts, which holds them too | `pair_id` | `label` | MMLU-Pro, and each other `source` | no |
/// | `rmbench` | `chat_filtered.json`, `total_dataset.json`: nine pairs of each row | `id/i-j` | the chosen one | easy, normal, hard, with the domain before it where the file has one | no |
/// | `rubricbench` | the `parquet` file, or the `json` one | `case_id` | `label`: 0 is the first response | `if`, `stem`, `code`, `safe`, `chat` | no |
/// | `helpsteer3` | `preference/validation.jsonl.gz` | row | the sign of `overall_preference` | `domain` | left out |
/// | `ppe` | a `parquet` file of votes, or of many answers in each row | `question_id`, with `+N` for pair N of a row | `winner`, or the right answer | flags that are true, and `english` or `other_languages` | left out |
/// | `pairs` | any file of [`PairRecord`](crate::PairRecord)s with `human` | `id` | what more than half of the raters say, none where they are split | | yes |
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
    /// Helpful, honest and harmless (Askell et al., 2021, arXiv 2112.00861), as prometheus-eval publishes it:
    /// `chosen_instruction` and `rejected_instruction` are prompts of Prometheus with the better response
    /// and the worse one, of which the better one is the first here on rows with an even number and the second on the others.
    /// Or rows `{"input", "targets": {"choices", "labels"}, "source"?}`, the
    /// choices in the order of the file.
    Hhh,
    /// JudgeBench (Tan et al., 2024, arXiv 2410.12784): responses of one model, of which one is right.
    JudgeBench,
    /// RM-Bench (Liu et al., 2024, arXiv 2410.16184): a better and a worse response, each in three styles. Which of a pair stands first is
    /// drawn by its id.
    RmBench,
    /// RubricBench (arXiv 2603.01562): pairs with the questions that they are compared by, which are the rubric here.
    RubricBench,
    /// HelpSteer3's preferences (Wang et al., 2025, arXiv 2505.11475). Its authors report no accuracy on them; pairs that are about the
    /// same are left out, as where reward models are trained on them.
    HelpSteer3,
    /// Preference Proxy Evaluations (Frick et al., 2024, arXiv 2410.14872): votes of people, or the sampled pairs of a right and a wrong
    /// answer. The authors' curves of the best of K answers are not computed.
    Ppe,
    /// Pairs of your own.
    Pairs,
}

judge_core::names! { Benchmark {
    PandaLm: "pandalm",
    AutoJ: "autoj",
    MtBench: "mtbench",
    LlmBar: "llmbar",
    Hhh: "hhh",
    JudgeBench: "judgebench",
    RmBench: "rmbench",
    RubricBench: "rubricbench",
    HelpSteer3: "helpsteer3",
    Ppe: "ppe",
    Pairs: "pairs",
}}

impl Benchmark {
    /// Which file of it is read, for people.
    pub fn about(self) -> &'static str {
        match self {
            Self::PandaLm => "`testset-v1.json`; gold is the majority of three annotators",
            Self::AutoJ => "`testdata_pairwise.jsonl`",
            Self::MtBench => {
                "a file of votes; each vote is a row. A model needs the version with `conversation_a` and `conversation_b`"
            }
            Self::LlmBar => "a `dataset.json`, or the folder of all subsets",
            Self::Hhh => "prometheus-eval's `hhh_alignment_eval.json`, or rows of the data set itself",
            Self::JudgeBench => "a released file of pairs, or of verdicts on them, which are read from it too",
            Self::RmBench => "`chat_filtered.json` or `total_dataset.json`: nine pairs of each row",
            Self::RubricBench => {
                "the Parquet file, or `rubricbench_data.json`; the questions of `rubrics` are the rubric"
            }
            Self::HelpSteer3 => "`preference/validation.jsonl.gz`",
            Self::Ppe => "a Parquet file of votes, or of many answers of one model",
            Self::Pairs => {
                "your own rows with `human`: `\"A\"`, `\"B\"`, `\"tie\"`, or a list with one for each rater, of whom more than half decide"
            }
        }
    }

    /// The groups that its pairs are in, for people; empty where there are none.
    pub fn groups(self) -> &'static str {
        match self {
            Self::PandaLm => "",
            Self::AutoJ => "eight kinds of scenario",
            Self::MtBench => "turns",
            Self::LlmBar => "subsets",
            Self::Hhh => "helpful, harmless, honest, other",
            Self::JudgeBench => "MMLU-Pro, and each other source",
            Self::RmBench => "easy, normal, hard, with the domain before it",
            Self::RubricBench => "if, stem, code, safe, chat",
            Self::HelpSteer3 => "general, stem, code, multilingual",
            Self::Ppe => "of votes the flags of the file, and English or not: they overlap",
            Self::Pairs => "",
        }
    }

    /// Whether a tie is one of its labels.
    pub fn has_ties(self) -> bool {
        matches!(self, Self::PandaLm | Self::AutoJ | Self::MtBench | Self::Pairs)
    }

    /// Reads its published file; for LLMBar a folder with a `dataset.json` for each subset will do too.
    ///
    /// # Errors
    /// [`Error::NoRows`]; for a row that is not as published [`Error::MissingField`], [`Error::WrongType`] or [`Error::DuplicateId`], each
    /// with its line; for a folder without subsets [`Error::Content`]; [`Error::Io`] and what [`Rows`](crate::Rows) refuses.
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
            Self::JudgeBench => read_rows(path, ids, judgebench::pair),
            Self::RmBench => read_several(path, ids, rmbench::pairs),
            Self::RubricBench => read_rows(path, ids, rubricbench::pair),
            Self::HelpSteer3 => read_rows(path, ids, helpsteer::pair),
            Self::Ppe => read_several(path, ids, ppe::pairs),
            Self::Pairs => own::read(path, columns.clone()),
        }?;
        if pairs.is_empty() { Err(Error::NoRows { path: path.to_path_buf() }) } else { Ok(pairs) }
    }

    /// The files that [`read`](Self::read) reads: the path itself, or those of a folder's subsets.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Content`].
    pub fn files(self, path: impl AsRef<Path>) -> Result<Vec<PathBuf>, Error> {
        let path = path.as_ref();
        if self == Self::LlmBar { llmbar::files(path) } else { Ok(vec![path.to_path_buf()]) }
    }
}

impl FromStr for Benchmark {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        Error::named("benchmark", name, Self::ALL, Self::as_str)
    }
}
