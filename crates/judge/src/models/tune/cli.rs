//! The command line.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use judge_cli::args::decisions::DecisionPromptArgs;
use judge_cli::args::files::{InputArgs, OverwriteArgs};
use judge_cli::args::lager::LagerArgs;
use judge_cli::args::model_args::ModelArgs;
use judge_cli::args::numbers::{at_least, not_negative, positive, share};
use judge_cli::args::one_of;
use judge_cli::terminal::svg;
use judge_models::train::Course;

/// The name in reports.
pub(super) const PROGRAM: &str = "tune";

/// Tune a judge on your own labels: a LoRA adapter, or the whole model.
///
/// Starts from any folder or GGUF file of a dense decoder, or from a BERT, RoBERTa or ModernBERT that learns classes, and writes an
/// adapter's folder as PEFT does, which --adapter loads, or a model's.
/// Try what reads a frozen model first (`judge fit`, `judge probe train`): it needs fewer labels. Interrupted, the same command resumes.
#[derive(Args)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    /// The folder that is written; beside it OUTPUT.log.jsonl, and while it runs OUTPUT.checkpoint.safetensors
    #[arg(long, value_name = "DIR")]
    pub(crate) output: PathBuf,
    /// What is learned. mark: grades, where `judge score` reads them. verdict: which of two responses in one prompt is better, where `judge
    /// compare --verdict logits` reads it. decision: answers to typed questions, where `judge decide` reads them. preference: which of two
    /// responses is better, by their expected marks. reward: the same by a score head, a reward model. class: grades by a score head.
    /// ordinal: the same by the steps between grades. completion: the last turn of conversations [default: mark, or the recipe's]
    #[arg(long, value_enum)]
    pub(crate) objective: Option<Objective>,
    /// Rows that are held out: they are measured at each checkpoint, and the folder has the state after a step that was best on them
    #[arg(long, value_name = "FILE")]
    pub(crate) eval: Option<PathBuf>,
    /// A report for machines: examples, losses, what the tuned judge says of held-out rows
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// A picture of the run (SVG): the loss of each step, and of held-out rows
    #[arg(long, value_parser = svg::path, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,
    /// Say how many examples, steps and numbers there are, take one step to measure time and memory, and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Settings of a published judge; what is given beside it takes precedence, and without it are the defaults that options show
    #[arg(long, value_enum)]
    pub(crate) recipe: Option<Recipe>,

    /// An adapter, or all tensors of the model [default: lora]
    #[arg(long, value_enum, help_heading = "What is learned")]
    pub(crate) method: Option<Method>,
    /// Rank of an adapter [default: 16]
    #[arg(long, value_name = "R", value_parser = at_least::<usize>(1), help_heading = "What is learned")]
    pub(crate) rank: Option<usize>,
    /// Numerator of an adapter's scale [default: twice the rank]
    #[arg(long, value_name = "ALPHA", value_parser = positive, help_heading = "What is learned")]
    pub(crate) alpha: Option<f64>,
    /// Which projections get an adapter, by the names of the model's folder, e.g. q_proj,v_proj [default: all]
    #[arg(long, value_delimiter = ',', value_name = "NAME,…", value_parser = trimmed, help_heading = "What is learned")]
    pub(crate) targets: Vec<String>,
    /// How many of the last blocks get an adapter [default: all]. The blocks below run once for each row: what comes out of them is kept in
    /// OUTPUT.states while the run lasts, 4 bytes for each number of each token
    #[arg(long, value_name = "K", value_parser = at_least::<usize>(1), help_heading = "What is learned")]
    pub(crate) top_blocks: Option<usize>,
    /// Run the blocks below --top-blocks in every epoch, and keep no file of their states: less disk, more time, the same bits
    #[arg(long, requires = "top_blocks", help_heading = "What is learned")]
    pub(crate) recompute: bool,
    /// The scale is alpha / sqrt(rank)
    #[arg(long, help_heading = "What is learned")]
    pub(crate) rslora: bool,
    /// Share of the cross-entropy in the loss of marks; the rest is the distance of the expected mark
    #[arg(long, default_value_t = 1.0, value_name = "SHARE", value_parser = share, help_heading = "What is learned")]
    pub(crate) cross_entropy: f64,
    /// Marks and preferences: read all layers, and learn the weights of their logits too, as LAGER weighs them. They begin equal, or as
    /// --weights has them, and go to OUTPUT.weights.json, for --weights of the command that reads the tuned judge
    #[arg(long, help_heading = "What is learned")]
    pub(crate) learn_weights: bool,
    /// Verdicts: each pair in both orders, in one that is drawn by the seed, the epoch and the row's id, or as it is given [default: both]
    #[arg(long, value_enum, help_heading = "What is learned")]
    pub(crate) swap: Option<Swap>,
    /// Decisions: questions for rows that have none of their own, a JSON object of questions by name
    #[arg(long, value_name = "FILE", help_heading = "Decisions")]
    pub(crate) questions: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) decisions: DecisionPromptArgs,

    /// How often each row is seen [default: 3]
    #[arg(long, value_name = "N", value_parser = at_least::<u32>(1), help_heading = "Run")]
    pub(crate) epochs: Option<u32>,
    /// Examples of a step [default: 8]
    #[arg(long, value_name = "N", value_parser = at_least::<usize>(1), help_heading = "Run")]
    pub(crate) batch_size: Option<usize>,
    /// At most so many tokens in a step; an example that is longer is a step of its own [default: no bound]
    #[arg(long, value_name = "N", value_parser = at_least::<usize>(1), help_heading = "Run")]
    pub(crate) batch_tokens: Option<usize>,
    /// Examples that are computed at once: memory depends on it, and results by rounding
    #[arg(long, default_value_t = 2, value_name = "N", value_parser = at_least::<usize>(1), help_heading = "Run")]
    pub(crate) micro_batch: usize,
    /// Blocks whose activations are kept; others are computed again on the way back: less memory, up to half more time
    #[arg(long, default_value_t = 4, value_name = "N", value_parser = at_least::<usize>(1), help_heading = "Run")]
    pub(crate) blocks_at_once: usize,
    /// Highest learning rate [default: 2e-4 for an adapter, 1e-5 for a model]
    #[arg(long, value_name = "RATE", value_parser = positive, help_heading = "Run")]
    pub(crate) lr: Option<f64>,
    /// How the rate falls after the warm-up [default: cosine]
    #[arg(long, value_parser = one_of(&[("cosine", Course::Cosine), ("linear", Course::Linear), ("constant", Course::Constant)]), help_heading = "Run")]
    pub(crate) schedule: Option<Course>,
    /// Share of the steps in which the rate rises; never all of them [default: 0.05]
    #[arg(long, value_name = "SHARE", value_parser = share, help_heading = "Run")]
    pub(crate) warmup: Option<f64>,
    /// Gradients of a larger norm are scaled down to it
    #[arg(long, default_value_t = 1.0, value_name = "NORM", value_parser = positive, help_heading = "Run")]
    pub(crate) clip: f64,
    /// Decay of weights that are matrices [default: 0]
    #[arg(long, value_name = "DECAY", value_parser = not_negative, help_heading = "Run")]
    pub(crate) weight_decay: Option<f64>,
    /// Draws an adapter's first factors, and the order of the rows in each epoch
    #[arg(long, default_value_t = 0, value_parser = at_least::<u64>(0), help_heading = "Run")]
    pub(crate) seed: u64,
    /// Checkpoints, at which held-out rows are measured [default: once in each epoch]
    #[arg(long, value_name = "STEPS", value_parser = at_least::<usize>(1), help_heading = "Run")]
    pub(crate) every: Option<usize>,
    /// Stop when so many measurements of held-out rows in a row had no smaller loss than the best before them [default: all steps are taken]
    #[arg(long, value_name = "N", value_parser = at_least::<usize>(1), requires = "eval", help_heading = "Run")]
    pub(crate) patience: Option<usize>,
    #[command(flatten)]
    pub(crate) write: OverwriteArgs,
    #[command(flatten)]
    pub(crate) lager: LagerArgs,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
}

/// A name without the white space around it, as it is behind the commas of a list.
fn trimmed(name: &str) -> Result<String, &'static str> {
    match name.trim() {
        "" => Err("expected a name"),
        name => Ok(name.to_owned()),
    }
}

/// `--objective`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Objective {
    Mark,
    Verdict,
    Decision,
    #[value(alias = "bradley-terry")]
    Preference,
    Reward,
    Class,
    Ordinal,
    Completion,
}

/// `--recipe`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Recipe {
    /// PandaLM: the verdict, then a reason and a reference; 3 epochs, all tensors, rate 2e-5
    Pandalm,
    /// JudgeLM: two grades, then an explanation; 3 epochs of 128, all tensors, rate 2e-5
    Judgelm,
    /// Auto-J: a critique, then the decision or the grade; 5 epochs of 64, all tensors, rate 1e-5
    AutoJ,
    /// Prometheus 2: feedback, then [RESULT] and the grade or the choice; 1 epoch, all tensors, rate 1e-5
    Prometheus,
    /// LAGER's tuning on instructions that a judge has selected; 3 epochs of 64, all tensors, rate 2e-5
    LagerSft,
    /// INSPECTOR's LoRA baseline: grades; 8 epochs of 32, rank 16 on q_proj and v_proj, rate 1e-4
    Inspector,
}

/// `--method`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Method {
    Lora,
    Full,
}

/// `--swap`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Swap {
    Both,
    Random,
    None,
}
