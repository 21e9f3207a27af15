//! The command line, and the settings that it stands for.

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, ValueEnum};
use judge_models::train::{AdamW, Course, Lora, Schedule, Targets, TrainSettings, Tuning};
use judge_models::{Device, WeightForm};

use crate::args::files::{InputArgs, OverwriteArgs};
use crate::args::lager::{ConditionArg, LagerArgs};
use crate::args::layers::LensArg;
use crate::args::model_args::ModelArgs;
use crate::terminal::console::usage;

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
    /// What is learned. mark: grades, where `judge score` reads them. preference: which of two responses is better, by their expected
    /// marks. reward: the same by a score head, a reward model. class: grades by a score head. completion: the last turn of conversations
    #[arg(long, value_enum, default_value_t = Objective::Mark)]
    pub(crate) objective: Objective,
    /// Rows that are held out: their loss is measured at each checkpoint, and the folder has what was best on them
    #[arg(long, value_name = "FILE")]
    pub(crate) eval: Option<PathBuf>,
    /// A report for machines: examples, losses, what the tuned judge says of held-out rows
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Say how many examples, steps and numbers there are, take one step to measure time and memory, and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// An adapter, or all tensors of the model
    #[arg(long, value_enum, default_value_t = Method::Lora, help_heading = "What is learned")]
    pub(crate) method: Method,
    /// Rank of an adapter
    #[arg(long, default_value_t = 16, value_name = "R", help_heading = "What is learned")]
    rank: usize,
    /// Numerator of an adapter's scale [default: twice the rank]
    #[arg(long, value_name = "ALPHA", help_heading = "What is learned")]
    alpha: Option<f64>,
    /// Which projections get an adapter, by the names of the model's folder, e.g. q_proj,v_proj [default: all]
    #[arg(long, value_delimiter = ',', value_name = "NAME,…", help_heading = "What is learned")]
    targets: Vec<String>,
    /// How many of the last blocks get an adapter [default: all]. The blocks below run once for each row: what comes out of them is kept in
    /// OUTPUT.states while the run lasts, 4 bytes for each number of each token
    #[arg(long, value_name = "K", help_heading = "What is learned")]
    pub(crate) top_blocks: Option<usize>,
    /// Run the blocks below --top-blocks in every epoch, and keep no file of their states: less disk, more time, the same bits
    #[arg(long, requires = "top_blocks", help_heading = "What is learned")]
    recompute: bool,
    /// The scale is alpha / sqrt(rank)
    #[arg(long, help_heading = "What is learned")]
    rslora: bool,
    /// Share of the cross-entropy in the loss of marks; the rest is the distance of the expected mark
    #[arg(long, default_value_t = 1.0, value_name = "SHARE", help_heading = "What is learned")]
    pub(crate) cross_entropy: f64,

    /// How often each row is seen
    #[arg(long, default_value_t = 3, value_name = "N", help_heading = "Run")]
    pub(crate) epochs: u32,
    /// Examples of a step
    #[arg(long, default_value_t = 8, value_name = "N", value_parser = at_least_one, help_heading = "Run")]
    pub(crate) batch_size: usize,
    /// At most so many tokens in a step; an example that is longer is a step of its own [default: no bound]
    #[arg(long, value_name = "N", value_parser = at_least_one, help_heading = "Run")]
    pub(crate) batch_tokens: Option<usize>,
    /// Examples that are computed at once: memory depends on it, and results by rounding
    #[arg(long, default_value_t = 2, value_name = "N", value_parser = at_least_one, help_heading = "Run")]
    micro_batch: usize,
    /// Blocks whose activations are kept; others are computed again on the way back: less memory, up to half more time
    #[arg(long, default_value_t = 4, value_name = "N", value_parser = at_least_one, help_heading = "Run")]
    blocks_at_once: usize,
    /// Highest learning rate [default: 2e-4 for an adapter, 1e-5 for a model]
    #[arg(long, value_name = "RATE", help_heading = "Run")]
    lr: Option<f64>,
    /// How the rate falls after the warm-up
    #[arg(long, value_enum, default_value_t = Falls::Cosine, help_heading = "Run")]
    schedule: Falls,
    /// Share of the steps in which the rate rises; never all of them
    #[arg(long, default_value_t = 0.05, value_name = "SHARE", help_heading = "Run")]
    warmup: f64,
    /// Gradients of a larger norm are scaled down to it
    #[arg(long, default_value_t = 1.0, value_name = "NORM", help_heading = "Run")]
    clip: f64,
    /// Decay of weights that are matrices
    #[arg(long, default_value_t = 0.0, value_name = "DECAY", help_heading = "Run")]
    weight_decay: f64,
    /// Draws an adapter's first factors, and the order of the rows in each epoch
    #[arg(long, default_value_t = 0, help_heading = "Run")]
    pub(crate) seed: u64,
    /// Checkpoints, at which held-out rows are measured [default: once in each epoch]
    #[arg(long, value_name = "STEPS", value_parser = at_least_one, help_heading = "Run")]
    pub(crate) every: Option<usize>,
    #[command(flatten)]
    pub(crate) write: OverwriteArgs,
    #[command(flatten)]
    pub(crate) lager: LagerArgs,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
}

/// `--objective`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Objective {
    Mark,
    Preference,
    Reward,
    Class,
    Completion,
}

/// `--method`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Method {
    Lora,
    Full,
}

/// `--schedule`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Falls {
    Cosine,
    Linear,
    Constant,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|&number| number > 0).ok_or_else(|| "expected a whole number from 1 on".to_owned())
}

impl Cli {
    /// Refuses what cannot work, or would have no effect.
    pub(crate) fn check(&self) -> Result<()> {
        self.lager.check()?;
        let no_effect = |option: &str, why: &str| Err(usage(format!("{option} has no effect {why}")));
        if self.method == Method::Full {
            let given = [
                ("--alpha", self.alpha.is_some()),
                ("--targets", !self.targets.is_empty()),
                ("--top-blocks", self.top_blocks.is_some()),
                ("--rslora", self.rslora),
            ];
            if let Some((option, _)) = given.iter().find(|(_, given)| *given) {
                return no_effect(option, "with --method full, which learns everything");
            }
        }
        let fixed = "a model is trained on the CPU in f32";
        let model = &self.model;
        for (given, option) in [
            (model.devices != [Device::Cpu], "--device"),
            (model.dtype.is_some(), "--dtype"),
            (model.weight_form != WeightForm::default(), "--weight-form"),
            (model.kernel.is_some(), "--kernel"),
            (model.packed_cache.is_some(), "--packed-cache"),
            (model.max_batch_tokens.is_some(), "--max-batch-tokens"),
        ] {
            if given {
                return no_effect(option, &format!("here: {fixed}"));
            }
        }
        let reads_marks = matches!(self.objective, Objective::Mark | Objective::Preference);
        for (given, option) in [
            (self.lager.template.is_some(), "--template"),
            (self.lager.rubric.is_some(), "--rubric"),
            (self.lager.prefill.is_some(), "--prefill"),
            (model.raw_prompt, "--raw-prompt"),
        ] {
            if given && !reads_marks {
                return no_effect(option, "with this --objective, which reads whole conversations");
            }
        }
        if self.cross_entropy != 1.0 && self.objective != Objective::Mark {
            return no_effect("--cross-entropy", "but with --objective mark");
        }
        if self.lager.states.is_some() || self.lager.lens != LensArg::Raw {
            return no_effect("--states or --lens", "here: the last layer is trained, as it is read");
        }
        if self.lager.weights.is_some()
            || self.lager.variant.is_some()
            || self.lager.condition != ConditionArg::PromptEnd
        {
            return Err(usage(
                "--weights, --variant and --condition: a judge is tuned where its last layer reads a prompt's end",
            ));
        }
        if !self.model.adapters.is_empty() {
            return Err(usage(
                "--adapter: a tuned model starts from a folder as it is; `judge merge` merges adapters into one",
            ));
        }
        if !(0.0..=1.0).contains(&self.warmup) || !(0.0..=1.0).contains(&self.cross_entropy) {
            return Err(usage("--warmup and --cross-entropy are shares, from 0 to 1"));
        }
        if self.epochs == 0 {
            return Err(usage("--epochs must be at least 1"));
        }
        Ok(())
    }

    /// Whether states of lower blocks of a model of so many blocks are kept: where there are such blocks, and rows are seen again.
    pub(crate) fn keeps_states(&self, n_layers: usize) -> bool {
        let is_seen_again = self.epochs > 1 || self.eval.is_some();
        !self.recompute && is_seen_again && self.top_blocks.is_some_and(|blocks| blocks < n_layers)
    }

    /// How it learns, in so many steps, from a model of so many blocks; `data` names the examples and their order.
    pub(crate) fn settings(&self, steps: u64, n_layers: usize, data: String) -> Result<TrainSettings> {
        let layers = match self.top_blocks {
            None => None,
            Some(blocks) if (1..=n_layers).contains(&blocks) => Some((n_layers - blocks..n_layers).collect()),
            Some(blocks) => return Err(usage(format!("--top-blocks {blocks}: the model has {n_layers} blocks"))),
        };
        let targets = if self.targets.is_empty() { Targets::AllLinear } else { Targets::Named(self.targets.clone()) };
        let tuning = match self.method {
            Method::Full => Tuning::Full,
            Method::Lora => Tuning::Lora(Lora {
                rank: self.rank,
                alpha: self.alpha.unwrap_or(2.0 * self.rank as f64),
                targets,
                layers,
                rslora: self.rslora,
            }),
        };
        let peak = self.lr.unwrap_or(if self.method == Method::Full { 1e-5 } else { 2e-4 });
        let course = match self.schedule {
            Falls::Cosine => Course::Cosine,
            Falls::Linear => Course::Linear,
            Falls::Constant => Course::Constant,
        };
        Ok(TrainSettings {
            tuning,
            optimizer: AdamW { weight_decay: self.weight_decay, ..AdamW::default() },
            schedule: Schedule {
                peak,
                warmup: ((self.warmup * steps as f64).ceil() as u64).min(steps.saturating_sub(1)),
                steps,
                course,
            },
            max_grad_norm: Some(self.clip),
            micro_batch: self.micro_batch,
            blocks_at_once: Some(self.blocks_at_once),
            seed: self.seed,
            data,
            ..TrainSettings::default()
        })
    }
}
