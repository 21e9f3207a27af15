//! The command line, the settings that it stands for, and the graded rows.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use judge_data::{IntoInput, Outputs, ScoredFields, ScoredRows, Settings};
use judge_metrics::calibration::{CalibrationMethod, Calibrator};
use serde_json::json;

use judge_cli::args::files::{WriteArgs, tell_json_lines};
use judge_cli::args::numbers::{at_least, number, part};
use judge_cli::args::one_of;
use judge_cli::terminal::console::usage;

/// Say what scores mean on the human scale.
///
/// --graded has rows with a score and a human score, a number or a list of raters (`human` or `scores`); a calibrator is fitted on them.
/// Each row of --input, which may be the same file, is written with all its fields and "calibrated": {"value", "low", "high", "level"}: the
/// human score to expect, and between which two it should lie. Rows without a score that can be read get null.
#[derive(Args)]
pub(crate) struct Cli {
    /// JSON lines of scores with human scores, to fit on
    #[arg(long, value_name = "FILE")]
    pub(crate) graded: PathBuf,
    /// JSON lines of scores to calibrate
    #[arg(long, value_name = "FILE")]
    pub(crate) input: PathBuf,
    /// Where the rows go
    #[arg(long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Where the report goes
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// isotonic: human scores are numbers; ordinal: they are a few grades
    #[arg(long, value_parser = one_of(&[("isotonic", CalibrationMethod::Isotonic), ("ordinal", CalibrationMethod::Ordinal)]), default_value = "isotonic")]
    pub(crate) method: CalibrationMethod,
    /// Share of human scores that intervals should hold
    #[arg(long, default_value_t = 0.9, value_name = "SHARE", value_parser = part)]
    pub(crate) level: f64,
    /// Lowest and highest human score: intervals end there, and graded rows outside are left out [default: not known]
    #[arg(long, value_delimiter = ',', num_args = 1, value_name = "LOW,HIGH", value_parser = number, allow_hyphen_values = true)]
    pub(crate) range: Option<Vec<f64>>,
    /// Field of the score
    #[arg(long, default_value = "score", value_name = "FIELD")]
    pub(crate) score: String,
    /// Field of the human score [default: human or scores]
    #[arg(long, value_name = "FIELD")]
    pub(crate) human: Option<String>,
    /// Field that says which graded rows belong together, such as a question's id: they are in one fold, so that what is said of held-out
    /// rows is said of new questions [default: a field such as `question_id` whose values repeat, which a note names]
    #[arg(long, value_name = "FIELD")]
    pub(crate) cluster: Option<String>,
    /// Width of the interval of the coverage to plan for, from end to end: shows how many graded rows it takes
    #[arg(long, value_name = "WIDTH", value_parser = part)]
    pub(crate) width: Option<f64>,
    /// Folds of the graded rows
    #[arg(long, default_value_t = 10, value_name = "N", value_parser = at_least::<usize>(2))]
    pub(crate) folds: usize,
    /// Chooses the folds
    #[arg(long, default_value_t = 0, value_parser = at_least::<u64>(0))]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) write: WriteArgs,
}

impl Cli {
    /// What decides about a row, for the record of the run.
    pub(crate) fn choices(&self) -> Settings {
        let entries = [
            ("method", json!(self.method_name())),
            ("level", json!(self.level)),
            ("range", json!(self.range)),
            ("score", json!(self.score)),
            ("human", json!(self.human)),
            ("folds", json!(self.folds)),
        ];
        let cluster = self.cluster.iter().map(|field| ("cluster", json!(field)));
        entries.into_iter().chain(cluster).map(|(key, value)| (key.to_owned(), value)).collect()
    }

    /// The name of `--method`.
    pub(crate) fn method_name(&self) -> String {
        format!("{:?}", self.method).to_lowercase()
    }

    pub(crate) fn settings(&self) -> Result<Calibrator> {
        let outputs = Outputs::new([&self.graded, &self.input]).rows([&self.output]).reports("calibrate", &self.json);
        outputs.overwrite(self.write.overwrite).check()?;
        tell_json_lines(&self.output);
        let range = match self.range.as_deref() {
            None => None,
            Some(&[low, high]) if low < high => Some([low, high]),
            Some(_) => return Err(usage("--range needs two numbers, the lower one first: --range 1,5")),
        };
        let Self { method, level, folds, seed, .. } = *self;
        Ok(Calibrator { method, level, folds, seed, range, ..Calibrator::default() })
    }

    /// The rows of a file of scores, whose human scores are not read.
    pub(crate) fn scores(&self, input: impl IntoInput) -> Result<ScoredRows> {
        Ok(ScoredRows::open(input, &ScoredFields { predicted: Some(self.score.clone()), human: None })?)
    }
}
