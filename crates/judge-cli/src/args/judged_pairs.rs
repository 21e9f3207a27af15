//! The options that say which pairs were judged, what was said of them, and how texts without a verdict count.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use judge_core::prompted::PairConvention;
use judge_data::{Benchmark, BenchmarkPair, Columns, PairVerdicts, Settings, Unread};
use judge_metrics::preference::Unparsed;

use crate::missing_fields::{tell_unread, tell_unread_that};
use crate::preferences::{Compared, Preferences};
use crate::report::BOOTSTRAP;
use crate::terminal::console::{tell, usage};
use crate::terminal::options::offered;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BenchmarkName {
    /// Verdicts on pairs.
    Of(Benchmark),
    /// Rankings of documents.
    Trec,
}

impl FromStr for BenchmarkName {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "trec" => Ok(Self::Trec),
            name => name.parse().map(Self::Of).map_err(|error: judge_data::Error| format!("{error}, trec")),
        }
    }
}

/// Which pairs.
#[derive(Args, Clone, Debug)]
pub struct PairsArgs {
    /// pandalm, autoj, mtbench, llmbar, hhh, judgebench, rmbench, rubricbench, helpsteer3 or ppe; or pairs, for a file of your own with
    /// `human`: "A", "B" or "tie", or a list with one for each rater; or trec, where `judge bench` measures rankings of documents
    #[arg(long, value_name = "NAME")]
    pub benchmark: BenchmarkName,
    /// Its published file: PandaLM's testset-v1.json, Auto-J's testdata_pairwise.jsonl, LLMBar's dataset.json or folder, MT-bench's file of
    /// votes, prometheus-eval's hhh_alignment_eval.json, JudgeBench's pairs, RM-Bench's rows, RubricBench's or PPE's Parquet file,
    /// HelpSteer3's preference/validation.jsonl.gz; trec's or BEIR's relevance (qrels)
    #[arg(long, value_name = "FILE|DIR")]
    pub data: PathBuf,
    /// With --benchmark pairs: which columns hold which fields, e.g. response_a=old,response_b=new; `id=` numbers the rows
    #[arg(long, value_name = "FIELD=COLUMN,…")]
    columns: Option<Columns>,
    /// What becomes of texts without a verdict: a tie, wrong (a class of its own), or dropped [default:
    /// pandalm tie, mtbench drop, llmbar, hhh, judgebench and rubricbench wrong, as their authors have it; wrong for the others]
    #[arg(long, value_enum)]
    unparsed: Option<Policy>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Policy {
    Tie,
    Wrong,
    Drop,
}

impl PairsArgs {
    /// The benchmark of pairs.
    ///
    /// # Errors
    /// A usage error for rankings.
    pub fn benchmark(&self) -> Result<Benchmark> {
        match self.benchmark {
            BenchmarkName::Of(benchmark) => Ok(benchmark),
            BenchmarkName::Trec => Err(usage(
                "--benchmark trec is about rankings of documents: judge bench --benchmark trec --data QRELS --run RUN",
            )),
        }
    }

    /// The pairs, and those that the benchmark leaves out, since people did not say which response is better. Says in how many what people
    /// said cannot be read.
    ///
    /// # Errors
    /// Whatever is wrong with the file; a usage error for columns of a published one.
    pub fn read(&self) -> Result<(Vec<BenchmarkPair>, Vec<BenchmarkPair>)> {
        let benchmark = self.benchmark()?;
        if self.columns.is_some() && benchmark != Benchmark::Pairs {
            return Err(usage("--columns is for --benchmark pairs; published files have their own columns"));
        }
        let pairs = benchmark.read_with(&self.data, &self.columns.clone().unwrap_or_default())?;
        let mut unread = Unread::default();
        for pair in &pairs {
            unread.note(&pair.id, None);
            unread.note_grade(&pair.id, pair.no_grade.as_deref());
        }
        tell_unread(&unread);
        Ok(pairs.into_iter().partition(|pair| pair.gold.is_some() || benchmark.has_ties()))
    }

    /// What of these options decides about a row.
    #[must_use]
    pub fn settings(&self) -> Settings {
        let columns = self.columns.iter().map(|columns| ("columns".to_owned(), columns.to_string().into()));
        let name = match self.benchmark {
            BenchmarkName::Of(benchmark) => benchmark.as_str(),
            BenchmarkName::Trec => "trec",
        };
        Settings::from_iter([("benchmark".to_owned(), name.into())].into_iter().chain(columns))
    }

    /// What becomes of texts without a verdict, and its name in reports.
    #[must_use]
    pub fn policy(&self) -> (Unparsed, &'static str) {
        match (self.unparsed, self.benchmark) {
            (Some(Policy::Tie), _) | (None, BenchmarkName::Of(Benchmark::PandaLm)) => (Unparsed::Tie, "tie"),
            (Some(Policy::Drop), _) | (None, BenchmarkName::Of(Benchmark::MtBench)) => (Unparsed::Dropped, "drop"),
            (Some(Policy::Wrong) | None, _) => (Unparsed::Wrong, "wrong"),
        }
    }

    /// The convention of this name, or else that of the benchmark's authors.
    ///
    /// # Errors
    /// A usage error for an unknown name.
    pub fn convention(&self, name: Option<&str>) -> Result<PairConvention> {
        let default = match self.benchmark()? {
            Benchmark::PandaLm => PairConvention::FirstLine,
            Benchmark::AutoJ => PairConvention::Decision,
            Benchmark::LlmBar => PairConvention::OutputAb,
            Benchmark::Hhh => PairConvention::Result,
            Benchmark::JudgeBench => PairConvention::Arrows,
            _ => PairConvention::Letters,
        };
        name.map_or(Ok(default), |name| name.parse().map_err(usage))
    }

    /// What a file says of these pairs, verdicts in texts being found by the convention of this name or by that of the
    /// benchmark's authors. Those on `others` are passed over. A note says in how many texts there is none.
    ///
    /// # Errors
    /// As for [`PairVerdicts::read_beside`]; where no text has a verdict; a usage error for an unknown name.
    pub fn verdicts(
        &self,
        path: &Path,
        pairs: &[BenchmarkPair],
        others: &[BenchmarkPair],
        convention: Option<&str>,
    ) -> Result<PairVerdicts> {
        let convention = self.convention(convention)?;
        let verdicts = PairVerdicts::read_beside(path, pairs, others, convention)?;
        tell_unread_that(&verdicts.decisions, &format!("of {} have a decision that is no verdict", path.display()));
        if verdicts.unparsed > 0 {
            let (texts, form, name) = (verdicts.texts, convention.form(), convention.as_str());
            let without = format!(
                "{}: {} of {texts} texts have no verdict of the form {form} (convention {name}){}",
                path.display(),
                verdicts.unparsed,
                offered(["; for another form: --convention NAME".to_owned()]).unwrap_or_default()
            );
            if verdicts.orders.iter().flatten().all(Option::is_none) {
                bail!(without);
            }
            tell(format_args!("note: {without}"));
        }
        Ok(verdicts)
    }
}

/// Takes away the pairs beyond so many, as a run with this limit leaves them out.
pub fn beyond(pairs: &mut Vec<BenchmarkPair>, limit: Option<usize>) -> Vec<BenchmarkPair> {
    pairs.split_off(limit.map_or(pairs.len(), |limit| limit.min(pairs.len())))
}

/// Refuses a convention that was given and by which no text was read.
///
/// # Errors
/// A usage error.
pub fn check_convention(given: Option<&str>, path: &Path, texts: usize) -> Result<()> {
    if given.is_some() && texts == 0 {
        return Err(usage(format!(
            "--convention has no effect: the verdicts of {} are read already; leave it out",
            path.display()
        )));
    }
    Ok(())
}

/// The preferences behind verdicts on the pairs that people have judged; `None` where no probabilities were read.
///
/// # Errors
/// As for [`Preferences::push`].
pub fn preferences(pairs: &[BenchmarkPair], verdicts: &PairVerdicts) -> Result<Option<Compared>> {
    let mut found = Preferences::default();
    for (pair, readings) in pairs.iter().zip(&verdicts.readings) {
        let orders = readings.each_ref().map(Option::as_ref);
        let orders = if verdicts.both_orders { &orders[..] } else { &orders[..1] };
        if let Some(gold) = pair.gold {
            found.push(gold.into(), orders, Some(pair.question.clone()))?;
        }
    }
    Ok(found.compared(BOOTSTRAP))
}

/// What a report says of pairs that are in none of its figures.
#[must_use]
pub fn left_out(undecided: usize) -> String {
    match undecided {
        0 => String::new(),
        n => format!(", and {n} that people have not decided, which are left out"),
    }
}
