//! The command line, and the settings that it stands for.

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, ValueEnum};
use judge_core::{
    fit::{Alpha, LayerWeightFit, RegressionLoss, ThetaInit},
    lager::{States, Variant},
};

use crate::args::files::OverwriteArgs;
use crate::terminal::console::usage;

/// Fit layer weights and compare score variants.
///
/// Reads the score files of `judge score` (JSON lines with layers, labels, logits and human) and the result JSON of the
/// LAGER reference program alike. Weights are also fitted on pairs that `judge compare` has judged with --verdict layers: with --valid and
/// --weights-out, without --input.
#[derive(Args)]
pub(crate) struct Cli {
    /// Scored and graded items to compare the variants on; without, weights are fitted and saved, and nothing is compared
    #[arg(long, alias = "data", value_name = "FILE")]
    pub(crate) input: Option<PathBuf>,
    /// Scored and graded items to fit the weights on; variants without weights need none
    #[arg(long, value_name = "FILE")]
    pub(crate) valid: Option<PathBuf>,
    /// Use these saved weights and fit none
    #[arg(long, value_name = "FILE", conflicts_with = "valid")]
    pub(crate) weights: Option<PathBuf>,
    /// Which variants: all, or names with commas between
    #[arg(long, default_value = "all", value_name = "LIST")]
    pub(crate) variants: String,
    /// Layers that a score combines: all (the paper), drop-last (the reference program) [default: all, or those of --weights]
    #[arg(long, value_name = "all|drop-last")]
    pub(crate) states: Option<States>,
    /// The regression part of the loss: mae (the paper), mse (the reference program)
    #[arg(long, value_enum, default_value_t = Loss::Mae, conflicts_with = "weights")]
    pub(crate) loss: Loss,
    /// Share of the cross-entropy in the loss, or `learned` as in the reference program [default: 0.6225]
    #[arg(long, value_name = "SHARE|learned", conflicts_with = "weights")]
    pub(crate) alpha: Option<String>,
    /// Where the weights start: zeros, or last-one (the code behind the published numbers)
    #[arg(long, value_enum, default_value_t = Init::Zeros, conflicts_with = "weights")]
    pub(crate) init: Init,
    /// Passes over the validation items
    #[arg(long, default_value_t = LayerWeightFit::paper().epochs, value_name = "N", conflicts_with = "weights")]
    pub(crate) epochs: usize,
    /// Items per step
    #[arg(long, default_value_t = LayerWeightFit::paper().batch, value_name = "N", conflicts_with = "weights")]
    pub(crate) batch: usize,
    /// Learning rate
    #[arg(long, default_value_t = LayerWeightFit::paper().lr, value_name = "RATE", conflicts_with = "weights")]
    pub(crate) lr: f64,
    /// Seed of the order of items
    #[arg(long, default_value_t = LayerWeightFit::paper().seed, value_name = "N", conflicts_with = "weights")]
    pub(crate) seed: u64,
    /// Save the fitted weights here
    #[arg(long, value_name = "FILE", requires = "valid")]
    pub(crate) weights_out: Option<PathBuf>,
    /// Write the results here
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) write: OverwriteArgs,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Loss {
    Mae,
    Mse,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Init {
    Zeros,
    LastOne,
}

impl Cli {
    pub(crate) fn variants(&self) -> Result<Vec<Variant>> {
        if self.variants == "all" {
            return Ok(Variant::ALL.to_vec());
        }
        self.variants.split(',').map(|name| name.trim().parse().map_err(usage)).collect()
    }

    pub(crate) fn settings(&self) -> Result<LayerWeightFit> {
        let alpha = match self.alpha.as_deref() {
            None => LayerWeightFit::paper().alpha,
            Some("learned") => LayerWeightFit::reference_program().alpha,
            Some(share) => match share.parse() {
                Ok(share) => Alpha::Fixed(share),
                Err(_) => return Err(usage(format!("--alpha {share:?} is neither a number nor `learned`"))),
            },
        };
        Ok(LayerWeightFit {
            loss: match self.loss {
                Loss::Mae => RegressionLoss::Mae,
                Loss::Mse => RegressionLoss::Mse,
            },
            init: match self.init {
                Init::Zeros => ThetaInit::Zeros,
                Init::LastOne => ThetaInit::LastOne,
            },
            alpha,
            states: self.states.unwrap_or_default(),
            epochs: self.epochs,
            batch: self.batch,
            lr: self.lr,
            seed: self.seed,
            ..LayerWeightFit::paper()
        })
    }
}
