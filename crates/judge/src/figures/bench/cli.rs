//! The command line.

use std::path::PathBuf;

use clap::{Args, Id};

use judge_cli::args::bars::BarArgs;
use judge_cli::args::files::{WriteArgs, row_limit};
use judge_cli::args::ids_of;
use judge_cli::args::judged_pairs::PairsArgs;
use judge_cli::args::model_args::ModelArgs;
use judge_cli::args::prompt_judge::PromptedArgs;
use judge_cli::terminal::svg;

/// The name of the command.
pub(super) const COMMAND: &str = "bench";

/// Measure a pairwise judge on a public benchmark.
///
/// Either a model judges here, in both orders (--output keeps its verdicts;
/// interrupted, the same command resumes), or --verdicts has what a judge wrote elsewhere: JSON
/// lines {"id", "given", "swapped"?}, or the output of `judge compare`.
/// Reported are accuracy, macro precision, recall and F1 and Cohen's kappa in the given order, and with both orders
/// accuracy when swapped and on average, agreement right in both, consistency, and how often the response shown first wins.
///
/// With --benchmark trec and --run, rankings of documents are measured: nDCG, reciprocal rank, recall and average precision.
#[derive(Args)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) pairs: PairsArgs,
    /// mtbench: votes of a judge, in MT-bench's form or as verdicts on the rows of --data (then named like the file);
    /// give it again for more judges. Reported is how often judges and people agree vote by vote
    #[arg(long, value_name = "FILE", conflicts_with_all = of_votes())]
    pub(crate) votes: Vec<PathBuf>,
    /// trec: rankings of documents, as trec_eval reads them or as `judge rerank` writes them, which are measured by the relevance of --data
    #[arg(long, value_name = "FILE", conflicts_with_all = of_verdicts())]
    pub(super) run: Option<PathBuf>,
    /// With --run: the cutoff of the statistic recall_k [default: 10]
    #[arg(long, value_name = "N", value_parser = row_limit, requires = "run")]
    pub(super) k: Option<usize>,
    /// Verdicts that were made elsewhere; those of a run with --limit N are read with --limit N too
    #[arg(long, value_name = "FILE", conflicts_with_all = of_a_model())]
    pub(super) verdicts: Option<PathBuf>,
    /// Verdicts of another judge on the same pairs: how much better is the first? (of the same convention, or the output of
    /// `judge compare`); with --run, other rankings
    #[arg(long, value_name = "FILE")]
    pub(super) against: Option<PathBuf>,
    /// Where the verdicts of a model go
    #[arg(long, value_name = "FILE", conflicts_with = "verdicts")]
    pub(crate) output: Option<PathBuf>,
    /// Where the report goes
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Where a plot goes of the statistics of verdicts with their intervals, and of the accuracy in each group; where layers were read, of the accuracy of each layer's averaged log-odds
    #[arg(long, value_parser = svg::path, value_name = "FILE.svg", conflicts_with_all = ["votes", "run"])]
    pub(super) plot: Option<PathBuf>,
    #[command(flatten)]
    pub(super) bars: BarArgs,
    #[command(flatten)]
    pub(crate) judge: PromptedArgs,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    #[command(flatten)]
    pub(crate) write: WriteArgs,
}

/// The options of a judge that reads here, which verdicts from elsewhere were made without. How they are read is said by --convention.
fn of_a_model() -> Vec<Id> {
    let own = ["output", "no_lock"].map(Id::from).to_vec();
    [ids_of::<ModelArgs>(&["quiet", "limit"]), ids_of::<PromptedArgs>(&["convention"]), own].concat()
}

/// What rankings are measured without.
fn of_verdicts() -> Vec<Id> {
    let own = ["verdicts", "votes", "columns", "unparsed", "convention", "limit"].map(Id::from).to_vec();
    [of_a_model(), own].concat()
}

/// These, and what is of one file of verdicts.
fn of_votes() -> Vec<Id> {
    [of_a_model(), ids_of::<BarArgs>(&[]), ["verdicts", "against", "limit"].map(Id::from).to_vec()].concat()
}
