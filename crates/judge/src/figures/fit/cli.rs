//! The command line, and the settings that it stands for.

use std::path::PathBuf;
use std::str::FromStr;

use anyhow::Result;
use clap::Args;
use judge_core::{
    Layer,
    fit::{Alpha, LayerWeightFit, RegressionLoss, ThetaInit},
    lager::{States, Variant},
};

use judge_cli::args::files::OverwriteArgs;
use judge_cli::args::numbers::{at_least, positive, share};
use judge_cli::args::one_of;
use judge_cli::terminal::console::usage;
use judge_cli::terminal::svg;

/// Fit layer weights and compare score variants.
///
/// Reads the score files of `judge score` (JSON lines with layers, labels, logits and human) and the result JSON of the
/// LAGER reference program alike. Weights are also fitted on pairs that `judge compare` has judged with --verdict layers, of which the mean
/// of the orders counts that were asked: with --valid and --weights-out, without --input. What they are worth is then measured on questions
/// that took no part in fitting.
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
    #[arg(long, value_parser = one_of(&[("mae", RegressionLoss::Mae), ("mse", RegressionLoss::Mse)]), default_value = "mae", conflicts_with = "weights")]
    pub(crate) loss: RegressionLoss,
    /// Share of the cross-entropy in the loss, or `learned` as in the reference program [default: 0.6225]
    #[arg(long, value_name = "SHARE|learned", value_parser = alpha, conflicts_with = "weights")]
    pub(crate) alpha: Option<Alpha>,
    /// Where the weights start: zeros, or last-one (the code behind the published numbers)
    #[arg(long, value_parser = one_of(&[("zeros", ThetaInit::Zeros), ("last-one", ThetaInit::LastOne)]), default_value = "zeros", conflicts_with = "weights")]
    pub(crate) init: ThetaInit,
    /// Passes over the validation items
    #[arg(long, default_value_t = LayerWeightFit::paper().epochs, value_name = "N", value_parser = at_least::<usize>(1), conflicts_with = "weights")]
    pub(crate) epochs: usize,
    /// Items per step
    #[arg(long, default_value_t = LayerWeightFit::paper().batch, value_name = "N", value_parser = at_least::<usize>(1), conflicts_with = "weights")]
    pub(crate) batch: usize,
    /// Learning rate
    #[arg(long, default_value_t = LayerWeightFit::paper().lr, value_name = "RATE", value_parser = positive, conflicts_with = "weights")]
    pub(crate) lr: f64,
    /// Seed of the order of items
    #[arg(long, default_value_t = LayerWeightFit::paper().seed, value_name = "N", value_parser = at_least::<u64>(0), conflicts_with = "weights")]
    pub(crate) seed: u64,
    /// Put all weight on one layer instead: its number, or of pairs `best`, the one whose averaged log-odds name people's choice most often
    #[arg(long, value_name = "best|N", requires = "weights_out")]
    pub(crate) layer: Option<LayerChoice>,
    /// Pairs: rows with the same value of this field are about one question, which is never fitted on and measured at once; a row without
    /// it is about its own [default: a field such as `question_id` whose values repeat, which a note names]
    #[arg(long, value_name = "FIELD", requires = "valid", conflicts_with = "input")]
    pub(crate) cluster: Option<String>,
    /// Save the fitted weights here
    #[arg(long, value_name = "FILE", requires = "valid")]
    pub(crate) weights_out: Option<PathBuf>,
    /// Write the results here
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Where a plot goes of each layer's agreement on the items of --input, with intervals, and of the weights
    #[arg(long, value_parser = svg::path, value_name = "FILE.svg", requires = "input")]
    pub(crate) plot: Option<PathBuf>,
    /// Where a learning curve goes: the agreement on the items of --input, by how many items of --valid the weights are fitted on
    #[arg(long, value_parser = svg::path, value_name = "FILE.svg", requires_all = ["input", "valid"])]
    pub(crate) learning_plot: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) write: OverwriteArgs,
}

/// The layer that gets all weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LayerChoice {
    Best,
    Number(Layer),
}

impl FromStr for LayerChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.parse()) {
            ("best", _) => Ok(Self::Best),
            (_, Ok(number)) => Ok(Self::Number(Layer(number))),
            _ => Err(format!("{text:?} is neither `best` nor the number of a layer")),
        }
    }
}

fn alpha(text: &str) -> Result<Alpha, String> {
    match text {
        "learned" => Ok(LayerWeightFit::reference_program().alpha),
        text => share(text).map(Alpha::Fixed).map_err(|_| "expected a share from 0 to 1, or `learned`".to_owned()),
    }
}

impl Cli {
    pub(crate) fn variants(&self) -> Result<Vec<Variant>> {
        if self.variants == "all" {
            return Ok(Variant::ALL.to_vec());
        }
        self.variants.split(',').map(|name| name.trim().parse().map_err(usage)).collect()
    }

    pub(crate) fn settings(&self) -> LayerWeightFit {
        LayerWeightFit {
            loss: self.loss,
            init: self.init,
            alpha: self.alpha.unwrap_or(LayerWeightFit::paper().alpha),
            states: self.states.unwrap_or_default(),
            epochs: self.epochs,
            batch: self.batch,
            lr: self.lr,
            seed: self.seed,
            ..LayerWeightFit::paper()
        }
    }
}
