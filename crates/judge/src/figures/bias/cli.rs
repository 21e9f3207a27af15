//! The command line.

use std::path::PathBuf;

use clap::Args;

use judge_cli::args::files::{OverwriteArgs, row_limit};
use judge_cli::args::judged_pairs::PairsArgs;

/// Measure what sways a judge of pairs besides quality.
///
/// Position: does the response that is shown first win, whatever it says? (needs both orders.) Verbosity: does the judge choose the longer
/// response more often than people do? (needs the texts.) Self-preference: do responses of the judge's own model win more often than people
/// let them? (needs --own, and pairs with model_a and model_b.) Each gets a sentence that says whether it is larger than chance, and how
/// large. Intervals draw whole questions.
///
/// Perturbations: is a response preferred after a change that adds nothing to it? --write-perturbed makes the changed pairs, the same judge
/// judges them (`judge compare` reads them; with --template pair-forced where `judge bench` asked so), and --perturbed takes its verdicts.
/// Changed is the response of a pair that people like less; gains count beyond those of a change of white space.
#[derive(Args)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(super) pairs: PairsArgs,
    /// The judge's verdicts: {"id", "given", "swapped"?} with what it wrote, or the output of `judge compare`
    #[arg(long, value_name = "FILE", required_unless_present = "write_perturbed")]
    pub(super) verdicts: Option<PathBuf>,
    /// Take the first N pairs alone, as a run of `judge bench` with --limit N judges them
    #[arg(long, value_name = "N", value_parser = row_limit)]
    pub(super) limit: Option<usize>,
    /// Writes the changed pairs here and reports nothing
    #[arg(long, value_name = "FILE", conflicts_with_all = ["verdicts", "perturbed", "json", "plots", "own", "convention"])]
    pub(super) write_perturbed: Option<PathBuf>,
    /// The judge's verdicts on the changed pairs, in the form of --verdicts
    #[arg(long, value_name = "FILE")]
    pub(super) perturbed: Option<PathBuf>,
    /// With --write-perturbed: which changes, besides neutral ones:
    /// all, or some of restated, authority, markup, list, forged_verdict and instruction, with commas between [default: all]
    #[arg(long, value_name = "LIST")]
    pub(super) perturbations: Option<String>,
    /// How a verdict is found in what was written [default: as the benchmark's authors have it]
    #[arg(long, value_name = "NAME")]
    pub(super) convention: Option<String>,
    /// The judge's own model, as model_a and model_b call it
    #[arg(long, value_name = "MODEL")]
    pub(super) own: Option<String>,
    /// Where the report goes
    #[arg(long, value_name = "FILE")]
    pub(super) json: Option<PathBuf>,
    /// A folder for one figure of each bias that could be measured
    #[arg(long, value_name = "DIR")]
    pub(super) plots: Option<PathBuf>,
    #[command(flatten)]
    pub(super) write: OverwriteArgs,
}
