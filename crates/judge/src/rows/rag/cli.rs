//! The command line.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use judge_core::rag::{RagMeasure, RagSettings};

use judge_cli::args::bars::BarArgs;
use judge_cli::args::decisions::{DecisionArgs, DecisionFitArgs};
use judge_cli::args::files::{CarryArgs, InputArgs, OutputArgs};
use judge_cli::args::model_args::ModelArgs;
use judge_cli::terminal::console::usage;

/// The name in records.
pub(super) const PROGRAM: &str = "rag";

/// How the help of the command ends.
const EXAMPLES: &str = "\
Examples:
  judge rag --input answers.csv --output measured.jsonl --model path/to/model
  judge rag --input answers.jsonl --output measured.jsonl --model path/to/model --measures faithfulness --require 'faithfulness.low>=0.8'

More: docs/rag.md";

/// Measure answers from retrieved contexts: is each sentence supported, is the question answered, do the contexts help?
///
/// Input: {"id"?, "question", "contexts", "response", "reference"?, "sentences"?}, under the names of ragas, deepeval, LangSmith, TruLens or
/// promptfoo, as JSON lines, CSV or Parquet; contexts are a list of texts or of objects with a text, one text, or a list as Python writes
/// it. Output: {"id", "faithfulness": {"mean", "share"}, …, "sentences": [{"start", "end", "text", "supported"}], "contexts":
/// [{"relevance"}], "label_mass", "input_tokens", "unscored"?: {measure: why}} and the row's other fields. Every number is made of
/// probabilities of yes, read where the model would write its answer: a mean takes them as they are, a share as 1 from one half on. The
/// contexts stand first in every prompt, so they are read once however much is asked.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    #[command(flatten)]
    pub(super) output: OutputArgs,
    /// What is measured, with commas between; a row without a field that a measure needs goes without it
    #[arg(long, value_name = "MEASURES", value_delimiter = ',', default_values_t = RagMeasure::ALL)]
    measures: Vec<RagMeasure>,
    /// Leave out of faithfulness what claims nothing ("Sure, here is the answer:"), by one more question about each sentence
    #[arg(long)]
    claims_only: bool,
    /// Read each context by itself, and take a sentence for as well supported as by the best of them; without this only where the contexts
    /// do not fit into the model's context together
    #[arg(long)]
    by_context: bool,
    /// A probe of `judge probe train --rag`, which says of each sentence whether it is supported, in the place of yes and no
    #[arg(long, value_name = "FILE.safetensors", conflicts_with_all = ["weights", "layers", "fit"])]
    pub(super) probe: Option<PathBuf>,
    /// Field by whose values the measures are given once more
    #[arg(long, value_name = "FIELD")]
    pub(super) group: Option<String>,
    /// Where the means go, with intervals
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
    pub(crate) model: ModelArgs,
}

impl Cli {
    /// What is measured, in the order in which it is shown.
    pub(super) fn measures(&self) -> Result<Vec<RagMeasure>> {
        let measures: Vec<RagMeasure> =
            RagMeasure::ALL.into_iter().filter(|measure| self.measures.contains(measure)).collect();
        if self.claims_only && !measures.contains(&RagMeasure::Faithfulness) {
            return Err(usage("--claims-only has no effect without the measure faithfulness"));
        }
        if self.probe.is_some() && !measures.contains(&RagMeasure::Faithfulness) {
            return Err(usage("--probe has no effect without the measure faithfulness"));
        }
        if self.asks_probe_alone() && self.decisions.has_temperature() {
            return Err(usage("--temperature has no effect: the probe alone says whether sentences are supported"));
        }
        if self.fitting.fit.is_some() && (self.by_context || !measures.contains(&RagMeasure::Faithfulness)) {
            return Err(usage(
                "--fit learns from sentences by the measure faithfulness, of contexts that are read together",
            ));
        }
        if self.decisions.every_layer() && (self.by_context || !measures.contains(&RagMeasure::Faithfulness)) {
            return Err(usage(
                "--layers all has no effect without the measure faithfulness, nor with --by-context: the label logits of sentences are \
                 written, of contexts that are read together",
            ));
        }
        Ok(measures)
    }

    /// Whether no number is made of yes and no.
    pub(super) fn asks_probe_alone(&self) -> bool {
        let is_faithfulness = |measure: &RagMeasure| *measure == RagMeasure::Faithfulness;
        self.probe.is_some() && !self.claims_only && self.measures.iter().all(is_faithfulness)
    }

    pub(super) fn settings(&self, measures: Vec<RagMeasure>) -> RagSettings {
        RagSettings { measures, claims_only: self.claims_only, by_context: self.by_context }
    }
}
