//! The command line.

use std::path::PathBuf;

use clap::Args;

use judge_cli::args::bars::BarArgs;
use judge_cli::args::decisions::DecisionFitArgs;
use judge_cli::args::files::{CarryArgs, InputArgs, OutputArgs};
use judge_cli::args::model_args::ModelArgs;
use judge_cli::args::numbers::at_least;
use judge_cli::args::rerank::RerankArgs;

/// The name in records.
pub(super) const PROGRAM: &str = "rerank";

/// How the help of the command ends.
const EXAMPLES: &str = "\
Examples:
  judge rerank --input queries.jsonl --output ranked.jsonl --model path/to/cross-encoder
  judge rerank --input queries.jsonl --output ranked.jsonl --model path/to/model --rerank-template prompt.jinja --labels yes,no
  judge rerank --input labelled.jsonl --output ranked.jsonl --model path/to/reranker --fit weights.json

More: docs/rerank.md";

/// Put documents in the order of their relevance to a query, by a reranker or any local model.
///
/// Input: {"id"?, "query", "documents": [text or {"text"}], "relevance"?: [numbers]}, or a pair {"id"?, "query", "document", "relevance"?:
/// number}. Output: {"id", "results": [{"index", "relevance_score", "cut_tokens"?}], "label_mass"?, "input_tokens"} and the row's other
/// fields: the best document first, of equal ones the earlier, and those that could not be read last, with the reason. A score never depends
/// on the other documents. Cross-encoders, Qwen3-Reranker and its kind in the form of sentence-transformers, and reward models say how they
/// score in their folders; other models need --rerank-template and --labels. Rows with relevance are measured, and --fit learns from them.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    #[command(flatten)]
    pub(super) output: OutputArgs,
    /// Write this many documents of a row, the best ones
    #[arg(long, value_name = "N", value_parser = at_least::<usize>(1))]
    pub(super) top: Option<usize>,
    /// Where nDCG, MRR and recall go, of queries whose documents have `relevance`, with intervals
    #[arg(long, value_name = "FILE")]
    pub(super) json: Option<PathBuf>,
    /// The cutoff of the statistic recall_k
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = at_least::<usize>(1))]
    pub(super) k: usize,
    /// Read the labels' logits, or the head that the model has at this layer, and run no block above it
    #[arg(long = "layer", id = "layers", value_name = "N", value_parser = at_least::<usize>(0), help_heading = "Layers")]
    pub(super) layer: Option<usize>,
    /// Layer weights and temperature that --fit wrote, for this model, prompt and labels
    #[arg(long, value_name = "FILE", conflicts_with = "layers", help_heading = "Layers")]
    pub(super) weights: Option<PathBuf>,
    #[command(flatten)]
    pub(super) fitting: DecisionFitArgs,
    #[command(flatten)]
    pub(super) rerank: RerankArgs,
    #[command(flatten)]
    pub(super) bars: BarArgs,
    #[command(flatten)]
    pub(crate) carry: CarryArgs,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
}
