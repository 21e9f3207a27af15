//! The command line.

use std::path::PathBuf;

use clap::{Args, Id};
use judge_core::decision::DecisionRoute;

use judge_cli::args::bars::BarArgs;
use judge_cli::args::decisions::{DecisionArgs, DecisionFitArgs};
use judge_cli::args::files::{CarryArgs, InputArgs, OutputArgs};
use judge_cli::args::model_args::ModelArgs;
use judge_cli::args::service::ServiceArgs;
use judge_cli::args::{ids_of, one_of};

/// The name in records.
pub(super) const PROGRAM: &str = "decide";

/// How the help of the command ends.
const EXAMPLES: &str = "\
Examples:
  judge decide --input states.jsonl --questions questions.json --output answers.jsonl --model path/to/model
  judge decide --input labelled.jsonl --questions questions.json --output answers.jsonl --model path/to/model --fit weights.json

More: docs/decisions.md";

/// Answer typed questions about a state: yes or no, a choice, an ordered score.
///
/// Input: {"id", "state": text or JSON, "questions"?: {name: question}, "labels"?: {name: an option, a level, true or false, or {option:
/// share}}}. A question is {"type": "noul", "instructions"?, "criteria"?: {"true"?, "false"?}}, {"type": "choice", "instructions"?,
/// "criteria": {option: text or null}} or {"type": "score", "instructions"?, "criteria": [a text for each level]}. Output: {"id", "answers":
/// {name: answer with a probability for every option}, "label_mass", "input_tokens"} and the row's other fields. Nothing is written by the
/// model: the probabilities are read where its reply would begin. Rows with labels are measured, and --fit learns from them. With
/// --base-url a service that takes decisions is asked in the place of a model on this machine.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    #[command(flatten)]
    pub(super) output: OutputArgs,
    /// Questions for rows that have none of their own: a JSON object of questions by name
    #[arg(long, value_name = "FILE")]
    pub(super) questions: Option<PathBuf>,
    /// Where accuracy, KL divergence, Brier score and calibration error go, of rows with labels
    #[arg(long, value_name = "FILE")]
    pub(super) json: Option<PathBuf>,
    #[command(flatten)]
    pub(super) bars: BarArgs,
    #[command(flatten)]
    pub(super) fitting: DecisionFitArgs,
    #[command(flatten)]
    pub(crate) carry: CarryArgs,
    #[command(flatten)]
    pub(super) decisions: DecisionArgs,
    #[command(flatten)]
    pub(super) service: Service,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
}

/// The values of `--route`.
const ROUTES: [(&str, DecisionRoute); 2] =
    [("systemone", DecisionRoute::SystemOne), ("decisions", DecisionRoute::OpenAi)];

/// Which service answers.
#[derive(Args, Clone, Debug)]
pub(super) struct Service {
    /// Where the API of a service that takes decisions begins, as a rule with /v1 at its end; it is asked in the place of a model on this
    /// machine, and texts go there and nowhere else
    #[arg(long, value_name = "URL", requires = "api_model", conflicts_with_all = of_a_model(), help_heading = "Service")]
    pub(super) base_url: Option<String>,
    /// The model, as the service calls it
    #[arg(long, value_name = "NAME", requires = "base_url", help_heading = "Service")]
    pub(super) api_model: Option<String>,
    /// The form of requests: questions by name at URL/systemone, or OpenAI's list of them at URL/decisions
    #[arg(long, value_parser = one_of(&ROUTES), default_value = "systemone", requires = "base_url", help_heading = "Service")]
    pub(super) route: DecisionRoute,
    #[command(flatten)]
    pub(super) service: ServiceArgs,
}

/// The options of a model on this machine, of how it is asked and read, and of what is learned from its logits.
fn of_a_model() -> Vec<Id> {
    let own = ["fit", "part", "cuts"].map(Id::from).to_vec();
    [ids_of::<ModelArgs>(&["limit", "quiet"]), ids_of::<DecisionArgs>(&[]), own].concat()
}
