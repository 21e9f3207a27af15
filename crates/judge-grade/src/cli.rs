//! The command line.

use std::path::PathBuf;

use anyhow::Result;
use clap::{ArgGroup, Args};
use judge_data::{Carry, Columns, GradingScale, GradingTask, GradingTool};

use judge_cli::args::decisions::questions;
use judge_cli::args::files::{OutputArgs, row_limit};
use judge_cli::args::numbers::at_least;
use judge_cli::args::one_of;
use judge_cli::terminal::console::usage;

/// The name of the command.
pub(super) const COMMAND: &str = "grade";

/// How the help of the command ends.
const EXAMPLES: &str = "\
Examples:
  judge grade --input rows.jsonl --output graded.jsonl --rows 100
  judge grade --input pairs.jsonl --output graded.jsonl --pairs --rater ann --open

More: docs/grade.md";

/// What an import has no use for.
const OF_THE_PAGE: [&str; 11] =
    ["task", "words", "ask", "columns", "rows", "scores", "seed", "raters", "port", "open", "quiet"];

/// The values of `--import`.
const TOOLS: [(&str, GradingTool); 3] =
    [("argilla", GradingTool::Argilla), ("label-studio", GradingTool::LabelStudio), ("prodigy", GradingTool::Prodigy)];

/// Collect people's grades in a browser, blind, with nothing lost.
///
/// Prints the address of a page on this machine, where rows come one at a time: no score, no name of a model, in an order of each rater's
/// own. Every answer is in FILE.partial before the next row appears, and the same command resumes. Finishing on the page writes the rows
/// with `human`, which `judge agree`, `calibrate`, `fit`, `probe train` and `tune` read.
#[derive(Args)]
#[command(after_help = EXAMPLES, group = ArgGroup::new("task").args(["scale", "yes_no", "pairs", "questions", "sentences"]))]
pub struct Cli {
    /// Rows: JSON lines, a JSON array, CSV or TSV with a first line of names, plain, gzip or zstd, or Parquet; `-` is standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) input: PathBuf,
    /// Which columns hold which fields, e.g. instruction=prompt,response=completion; `id=` numbers the rows
    #[arg(long, value_name = "FIELD=COLUMN,…")]
    pub(crate) columns: Option<Columns>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    /// Ask for a grade on a scale of whole numbers [default: 1-5, unless another task is named]
    #[arg(long, value_name = "FROM-TO", allow_hyphen_values = true, help_heading = "Task")]
    scale: Option<GradingScale>,
    /// What the points of the scale are called: a word for each, or POINT=WORD for some
    #[arg(long, value_delimiter = ',', value_name = "WORDS", conflicts_with_all = ["yes_no", "pairs", "questions", "sentences"], help_heading = "Task")]
    words: Vec<String>,
    /// Ask for yes or no, written as 1 and 0
    #[arg(long, help_heading = "Task")]
    yes_no: bool,
    /// Ask which of `response_a` and `response_b`, or of two replies `chosen` and `rejected`, is better, or neither
    #[arg(long, help_heading = "Task")]
    pairs: bool,
    /// Ask the typed questions of `judge decide`: a JSON object of questions by name, for rows without their own
    #[arg(long, value_name = "FILE.json", help_heading = "Task")]
    pub(crate) questions: Option<PathBuf>,
    /// Ask of each sentence of the response whether the contexts support it
    #[arg(long, help_heading = "Task")]
    sentences: bool,
    /// What is asked, above the answers [default: by the task]
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, help_heading = "Task")]
    pub(crate) ask: Option<String>,
    /// The input is an export whose grades are written as rows, and no page is opened: argilla's records as JSON, label-studio's tasks as JSON
    /// with all annotations, or prodigy's lines of db-out
    #[arg(long, value_parser = one_of(&TOOLS), value_name = "TOOL", conflicts_with_all = OF_THE_PAGE, help_heading = "Import")]
    pub(crate) import: Option<GradingTool>,
    /// Which question of the export is `human` [default: the only one]
    #[arg(long, value_name = "NAME", requires = "import", help_heading = "Import")]
    pub(crate) question: Option<String>,
    /// Grade so many rows, drawn by chance [default: all]
    #[arg(long, value_name = "N", value_parser = row_limit, help_heading = "Rows")]
    pub(crate) rows: Option<usize>,
    /// A judge's scores of the rows, by `id`: rows are drawn evenly over them, and of two such files where they differ; the chance of each
    /// row is written as `sampling_probability`
    #[arg(long, value_name = "FILE", requires = "rows", num_args = 1, action = clap::ArgAction::Append, help_heading = "Rows")]
    pub(crate) scores: Vec<PathBuf>,
    /// Chooses the rows, their order and the sides of pairs
    #[arg(long, default_value_t = 0, value_name = "N", value_parser = at_least::<u64>(0), help_heading = "Rows")]
    pub(crate) seed: u64,
    /// Which other fields are written: all, none, or names with commas between
    #[arg(long, default_value = "all", value_name = "FIELDS", help_heading = "Rows")]
    pub(crate) carry: Carry,
    /// Who grades, repeatable: others are refused [default: the page asks for a name]
    #[arg(long = "rater", value_name = "NAME", help_heading = "Page")]
    pub(crate) raters: Vec<String>,
    /// The port of the page; 0 is any free one
    #[arg(long, default_value_t = 0, value_name = "PORT", value_parser = at_least::<u16>(0), help_heading = "Page")]
    pub(crate) port: u16,
    /// Open the page in the browser
    #[arg(long, help_heading = "Page")]
    pub(crate) open: bool,
    /// No progress on stderr
    #[arg(long)]
    pub(crate) quiet: bool,
}

impl Cli {
    /// What is asked of each row.
    pub(crate) fn task(&self) -> Result<GradingTask> {
        Ok(match self {
            Self { yes_no: true, .. } => GradingTask::YesNo,
            Self { pairs: true, .. } => GradingTask::Pairs,
            Self { sentences: true, .. } => GradingTask::Sentences,
            Self { questions: Some(path), .. } => GradingTask::Questions(Some(questions(path)?)),
            Self { scale, words, .. } => {
                let scale = scale.clone().unwrap_or(GradingScale { points: [1, 5], words: vec![String::new(); 5] });
                let words = if words.is_empty() { Ok(scale) } else { scale.with_words(words) };
                GradingTask::Scale(words.map_err(|problem| usage(format!("--words: {problem}")))?)
            }
        })
    }

    /// What is asked, above the answers.
    pub(crate) fn asked(&self, task: &GradingTask) -> String {
        self.ask.clone().unwrap_or_else(|| {
            match task {
                GradingTask::Scale(_) => "How good is the response?",
                GradingTask::YesNo => "Is the response good?",
                GradingTask::Pairs => "Which response is better?",
                GradingTask::Questions(_) => "Answer every question.",
                GradingTask::Sentences => "Do the contexts support each sentence?",
            }
            .to_owned()
        })
    }

    /// That names of raters are some.
    pub(crate) fn check(&self) -> Result<()> {
        if self.scores.len() > 2 {
            return Err(usage(format!("--scores: expected one file or two, found {}", self.scores.len())));
        }
        for (place, name) in self.raters.iter().enumerate() {
            super::session::check_name(name).map_err(|problem| usage(format!("--rater: {problem}")))?;
            if self.raters[..place].contains(name) {
                return Err(usage(format!("--rater: {name:?} is named twice")));
            }
        }
        Ok(())
    }
}
