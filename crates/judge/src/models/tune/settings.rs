//! What is done: the options that are given, else the recipe's, else the defaults. Nothing else looks at a recipe.

use anyhow::Result;
use judge_cli::terminal::console::{VERSION_NUMBER, usage};
use judge_data::{Difference, Settings};
use judge_models::train::{AdamW, Blocks, Course, Lora, Schedule, Targets, TrainSettings, Tuning};
use serde_json::{Value, json};

use super::Cli;
use super::cli::{Method, Objective, Recipe, Swap};
use super::recipes::Row;

/// The options with their values.
#[derive(Clone, Debug)]
pub(super) struct Chosen {
    pub(super) recipe: Option<Recipe>,
    pub(super) objective: Objective,
    pub(super) method: Method,
    rank: usize,
    alpha: f64,
    /// Empty for all projections.
    targets: Vec<String>,
    pub(super) epochs: u32,
    pub(super) batch_size: usize,
    pub(super) lr: f64,
    schedule: Course,
    pub(super) warmup: f64,
    weight_decay: f64,
    beta2: f64,
    pub(super) swap: Swap,
}

/// In what the run that left a checkpoint differs from this one, which has `now` where the checkpoint has `before` under this name: by
/// options, or by the trainer's own settings where options are the same.
pub(super) fn differences(name: &str, before: &str, now: &str) -> Vec<Difference> {
    let [before, now] = [before, now].map(|text| serde_json::from_str(text).unwrap_or_else(|_| Value::from(text)));
    let options =
        |settings: &Value| settings["data"].as_str().and_then(|data| serde_json::from_str::<Settings>(data).ok());
    if let (Some(before), Some(now)) = (options(&before), options(&now)) {
        let found = Difference::between(&before, &now);
        if !found.is_empty() {
            return found;
        }
    }
    if options(&before).is_none() && options(&now).is_some() {
        let version = |text: &str| Some(Value::from(text));
        let (before, now) = (version("an earlier version"), version(VERSION_NUMBER));
        return vec![Difference { key: "program".to_owned(), before, now }];
    }
    let under = |value| match value {
        Value::Object(fields) if name == "settings" => fields.into_iter().collect(),
        value => Settings::from([(name.to_owned(), value)]),
    };
    Difference::between(&under(before), &under(now))
}

impl Chosen {
    /// Those of a command line.
    pub(super) fn of(cli: &Cli) -> Self {
        let row = cli.recipe.map(Recipe::row).unwrap_or_default();
        let Row { objective, method, rank, alpha, targets, epochs, batch_size, lr, schedule, warmup, .. } = row;
        let method = cli.method.or(method).unwrap_or(Method::Lora);
        let rank_given = cli.rank.or(rank);
        let rank = rank_given.unwrap_or(16);
        // A rate or a scale of a recipe is for its own method and rank.
        let is_its_own = row.method.is_none_or(|own| own == method);
        let alpha = if cli.rank.is_some() { None } else { alpha };
        let of_targets = || targets.unwrap_or_default().iter().map(|&name| name.to_owned()).collect();
        Self {
            recipe: cli.recipe,
            objective: cli.objective.or(objective).unwrap_or(Objective::Mark),
            method,
            rank,
            alpha: cli.alpha.or(alpha).unwrap_or(2.0 * rank as f64),
            targets: if cli.targets.is_empty() { of_targets() } else { cli.targets.clone() },
            epochs: cli.epochs.or(epochs).unwrap_or(3),
            batch_size: cli.batch_size.or(batch_size).unwrap_or(8),
            lr: cli.lr.or(lr.filter(|_| is_its_own)).unwrap_or(match method {
                Method::Full => 1e-5,
                Method::Lora => 2e-4,
            }),
            schedule: cli.schedule.or(schedule).unwrap_or(Course::Cosine),
            warmup: cli.warmup.or(warmup).unwrap_or(0.05),
            weight_decay: cli.weight_decay.or(row.weight_decay).unwrap_or(0.0),
            beta2: row.beta2.unwrap_or(AdamW::default().beta2),
            swap: cli.swap.unwrap_or(Swap::Both),
        }
    }

    /// What was chosen, for reports.
    pub(super) fn to_json(&self) -> Value {
        let lora = (self.method == Method::Lora).then(|| {
            let targets = if self.targets.is_empty() { json!("all") } else { json!(self.targets) };
            json!({"rank": self.rank, "alpha": self.alpha, "targets": targets})
        });
        let swap = (self.objective == Objective::Verdict).then(|| format!("{:?}", self.swap).to_lowercase());
        json!({
            "swap": swap, "method": format!("{:?}", self.method).to_lowercase(), "lora": lora, "epochs": self.epochs,
            "batch_size": self.batch_size, "lr": self.lr, "schedule": format!("{:?}", self.schedule).to_lowercase(),
            "warmup": self.warmup, "weight_decay": self.weight_decay, "beta2": self.beta2,
        })
    }

    /// Whether states of lower blocks of a model of so many blocks are kept: where there are such blocks, and rows are seen again.
    pub(super) fn keeps_states(&self, cli: &Cli, n_layers: usize) -> bool {
        let is_seen_again = self.epochs > 1 || cli.eval.is_some();
        // Layers below the lowest block that is learned are read by the loss, not from a file.
        !cli.recompute && !cli.learn_weights && is_seen_again && cli.top_blocks.is_some_and(|blocks| blocks < n_layers)
    }

    /// How it learns, in so many steps, from a model of so many blocks; `data` names the examples and their order.
    pub(super) fn settings(&self, cli: &Cli, steps: u64, n_layers: usize, data: String) -> Result<TrainSettings> {
        let blocks = match cli.top_blocks {
            Some(blocks) if !(1..=n_layers).contains(&blocks) => {
                return Err(usage(format!("--top-blocks {blocks}: the model has {n_layers} blocks")));
            }
            given => given.map_or(Blocks::All, Blocks::Last),
        };
        let targets = if self.targets.is_empty() { Targets::AllLinear } else { Targets::Named(self.targets.clone()) };
        let tuning = match self.method {
            Method::Full => Tuning::Full,
            Method::Lora => {
                Tuning::Lora(Lora { rank: self.rank, alpha: self.alpha, targets, blocks, rslora: cli.rslora })
            }
        };
        Ok(TrainSettings {
            tuning,
            optimizer: AdamW { weight_decay: self.weight_decay, beta2: self.beta2, ..AdamW::default() },
            schedule: Schedule {
                peak: self.lr,
                warmup: ((self.warmup * steps as f64).ceil() as u64).min(steps.saturating_sub(1)),
                steps,
                course: self.schedule,
            },
            max_grad_norm: Some(cli.clip),
            micro_batch: cli.micro_batch,
            blocks_at_once: Some(cli.blocks_at_once),
            // The embedded model lies where it is unpacked as long as the program runs.
            names_base: cli.model.model.is_some(),
            seed: cli.seed,
            data,
            ..TrainSettings::default()
        })
    }
}
