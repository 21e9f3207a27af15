//! The options, and what is wrong with them before any row is read.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use judge_cli::args::bars::{BarArgs, meant};
use judge_cli::args::files::{OverwriteArgs, row_limit};
use judge_cli::args::numbers::{at_least, number, part, positive};
use judge_cli::args::one_of;
use judge_cli::report::OF_AGREEMENT;
use judge_cli::terminal::console::usage;
use judge_cli::terminal::svg;
use judge_metrics::comparison::{PreferenceComparison, STATISTICS};
use judge_metrics::multiplicity::Adjustment;

use super::figures::OTHERS_DRAWN;
use super::judges::{judge_of, statistic_of};
use super::means::MEANS;

/// How the help of the command ends.
const EXAMPLES: &str = "\
Examples:
  judge agree --input scores.jsonl
  judge agree --input scores.jsonl --cluster question --json agreement.json

More: docs/statistics.md";

/// How a judge's scores agree with people's.
///
/// Input: JSON lines; each has a prediction and a human score, which is a number, a label, or a list of raters (their mean is then the
/// human score). The score files of `judge score` are read as they are, and the pairs of `judge compare`, of which it is also said what the
/// preferences are worth. Scores in [0, 1] against 0 and 1 are also judged as probabilities, whole numbers and texts also as labels. With
/// three raters or more, and rows that are independent (no --cluster), it is tested whether the judge may take the place of one; for that a
/// rater has the same place in every list, and null is a rater who gave none. A row without a prediction or a human score is left out and
/// counted; the judge's scores of rows that nobody graded help to estimate the mean of all. What the data do not define is shown as
/// undefined with the reason.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Cli {
    /// JSON lines of predictions and human scores
    #[arg(long, value_name = "FILE")]
    pub input: PathBuf,
    /// Where the results go
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Where a reliability plot goes: what people say by what the judge says
    #[arg(long, value_parser = svg::path, value_name = "FILE.svg")]
    pub plot: Option<PathBuf>,
    /// Where a plot of all rows goes: people's scores against the judge's
    #[arg(long, value_parser = svg::path, value_name = "FILE.svg")]
    pub scores_plot: Option<PathBuf>,
    /// Where a risk-coverage plot goes: the loss of the rows that the judge is surest of, at each share of them
    #[arg(long, value_parser = svg::path, value_name = "FILE.svg")]
    pub risk_plot: Option<PathBuf>,
    /// Where a plot goes that compares the judge with the second one, and groups with each other
    #[arg(long, value_parser = svg::path, value_name = "FILE.svg")]
    pub comparison_plot: Option<PathBuf>,
    #[command(flatten)]
    pub bars: BarArgs,
    /// Field of the prediction [default: predicted, else score, verdict or faithfulness.mean]
    #[arg(long, value_name = "FIELD")]
    pub predicted: Option<String>,
    /// Field of the human score [default: human, scores or score, whichever is not the prediction]
    #[arg(long, value_name = "FIELD")]
    pub human: Option<String>,
    /// Field of another judge's prediction: adds tests of the difference, the first judge less the other (repeatable)
    #[arg(long, value_name = "FIELD")]
    pub second: Vec<String>,
    /// With --second twice or more: how the p-values of a difference are adjusted for the number of other judges. holm: a level holds for all
    /// tests together; fdr_bh (Benjamini and Hochberg): of the differences that are found, the share that are none [default: holm]
    #[arg(long, value_parser = one_of(&ADJUSTMENTS))]
    pub adjust: Option<Adjustment>,
    /// Field by whose values the statistics are given once more; above 50 groups, a line each
    #[arg(long, value_name = "FIELD")]
    pub group: Option<String>,
    /// Field that says which rows belong together, such as a question's id: intervals then draw whole clusters
    #[arg(long, value_name = "FIELD")]
    pub cluster: Option<String>,
    /// Field of the chance that a row had of being graded, above 0 and at most 1, where rows were not drawn with equal chances: means,
    /// correlations and kappas are then weighted by its inverse, and what takes rows as drawn alike is undefined [default:
    /// sampling_probability, where rows have it]
    #[arg(long, value_name = "FIELD")]
    pub sampling_probability: Option<String>,
    /// Field of how sure the judge is, a number or a set of probabilities [default: probabilities, if all rows have them]
    #[arg(long, value_name = "FIELD")]
    pub confidence: Option<String>,
    /// What a rater costs beyond the judge, in the test whether it may take their place: 0.2 for experts, 0.15 for skilled raters, 0.1 for
    /// crowd workers
    #[arg(long, default_value_t = 0.2, value_name = "SHARE", value_parser = number)]
    pub epsilon: f64,
    /// All labels, in their order, which says how far apart texts are [default: those that occur, if all scores are whole numbers or texts;
    /// texts then have no order]
    #[arg(long, value_delimiter = ',', value_name = "A,B,C", allow_hyphen_values = true)]
    pub labels: Option<Vec<String>>,
    /// Only these statistics, such as spearman,mae; groups are then shown in a line each
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub statistics: Option<Vec<String>>,
    /// Also show where intervals and p-values come from
    #[arg(long)]
    pub methods: bool,
    /// Resamples of each bootstrap
    #[arg(long, default_value_t = OF_AGREEMENT.resamples, value_name = "N", value_parser = at_least::<usize>(1))]
    pub resamples: usize,
    /// Width of the intervals to plan for, from end to end: shows how many rows they take, and which differences these rows find
    #[arg(long, value_name = "WIDTH", value_parser = positive)]
    pub width: Option<f64>,
    /// Coverage of the intervals
    #[arg(long, default_value_t = 0.95, value_name = "SHARE", value_parser = part)]
    pub level: f64,
    /// Chooses the resamples
    #[arg(long, default_value_t = 0, value_parser = at_least::<u64>(0))]
    pub seed: u64,
    /// Read at most this many rows
    #[arg(long, value_name = "ROWS", value_parser = row_limit)]
    pub limit: Option<usize>,
    /// No progress on stderr
    #[arg(long)]
    pub quiet: bool,
    #[command(flatten)]
    pub write: OverwriteArgs,
}

/// By the names of statsmodels' `multipletests`, the default first.
pub(super) const ADJUSTMENTS: [(&str, Adjustment); 2] =
    [("holm", Adjustment::Holm), ("fdr_bh", Adjustment::BenjaminiHochberg)];

impl Cli {
    /// That options make sense, alone and together.
    pub fn check(&self) -> Result<()> {
        if self.sampling_probability.is_some()
            && [&self.plot, &self.scores_plot, &self.risk_plot].into_iter().any(Option::is_some)
        {
            return Err(usage(
                "--plot, --scores-plot and --risk-plot take rows as drawn alike: leave them out with --sampling-probability",
            ));
        }
        if self.adjust.is_some() && self.second.len() < 2 {
            return Err(usage("--adjust needs --second twice or more: one test has nothing to be adjusted for"));
        }
        if !(0.0..1.0).contains(&self.epsilon) {
            return Err(usage("--epsilon must be at least 0 and below 1"));
        }
        let names = || {
            let of_pairs = PreferenceComparison::STATISTICS.into_iter().chain([PreferenceComparison::CHOSEN_LAYER]);
            // Some are of scores too.
            STATISTICS.into_iter().chain(MEANS).chain(of_pairs.filter(|name| !STATISTICS.contains(name)))
        };
        // A difference from one of several judges is named by both.
        let is_known = |name: &&String| {
            let of_judge = |judge: &str| {
                name.starts_with("difference_")
                    && self.second.len() > 1
                    && self.second.iter().any(|known| known == judge)
            };
            names().any(|known| known == statistic_of(name)) && judge_of(name).is_none_or(of_judge)
        };
        if let Some(name) = self.statistics.iter().flatten().find(|name| !is_known(name)) {
            let (all, meant) = (names().collect::<Vec<_>>().join(", "), meant(name, names()));
            return Err(usage(format!("--statistics: {name:?} is not one of {all}{meant}")));
        }
        if let Some(twice) = (1..self.second.len()).find(|&i| self.second[..i].contains(&self.second[i])) {
            return Err(usage(format!("--second: {:?} is named twice", self.second[twice])));
        }
        if self.comparison_plot.is_some() && self.second.len() > OTHERS_DRAWN {
            return Err(usage(format!(
                "--comparison-plot draws at most {OTHERS_DRAWN} judges beside the first: name fewer with --second"
            )));
        }
        if self.comparison_plot.is_some() && self.second.is_empty() && self.group.is_none() {
            return Err(usage("--comparison-plot compares two judges or groups of rows: name --second or --group"));
        }
        Ok(())
    }
}
