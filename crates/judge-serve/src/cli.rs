//! The command line.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use judge_cli::args::decisions::{DecisionArgs, refuse_dressing};
use judge_cli::args::model_args::ModelArgs;
use judge_cli::args::numbers::at_least;
use judge_cli::args::rerank::RerankArgs;
use judge_cli::terminal::console::usage;

use super::limits::Limits;

/// Answer decisions and score documents over HTTP.
///
/// Routes: POST /v1/systemone, /v1/decisions; /v1/rerank, /v2/rerank, /rerank, /score, /v1/score, /generative_scoring; GET / (a page to try it), /v1/models, /v1/models/NAME, /health,
/// /metrics. SIGTERM or
/// Ctrl-C: no new connections, what was accepted is answered, exit 0. One log line for each
/// request on stderr.
#[derive(Args)]
pub struct Cli {
    /// The address to listen on; others than this machine reach it only where it is not a loopback address
    #[arg(long, default_value = "127.0.0.1", value_name = "HOST")]
    pub(crate) host: String,
    /// The port; 0 is any free one
    #[arg(long, default_value_t = 8080, value_name = "PORT", value_parser = at_least::<u16>(0))]
    pub(crate) port: u16,
    /// File of the key that requests for answers and to /v1/ must have (`Authorization: Bearer KEY`)
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,
    /// The name that the model goes by in requests and answers [default: the model's own]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Judges with names of their own, beside the plain model: a JSON object of {"score": [options of `judge score`], "graded"?: FILE},
    /// {"probe": FILE} or {"checklist": FILE} by name; paths are relative to the file
    #[arg(long, value_name = "FILE")]
    pub(crate) judges: Option<PathBuf>,
    /// Add to all answers what share of the model's probability lay on the labels of the options, which requests may ask for by
    /// `?label_mass=true`; no part of either standard
    #[arg(long)]
    pub(crate) label_mass: bool,
    /// Serve no page at / to try it
    #[arg(long)]
    pub(crate) no_page: bool,
    #[command(flatten)]
    pub(crate) limits: Limits,
    #[command(flatten)]
    pub(crate) decisions: DecisionArgs,
    #[command(flatten)]
    pub(crate) rerank: RerankArgs,
    /// Read the labels of documents, or the head that the model has, at this layer, and run no block above it for them
    #[arg(long, value_name = "N", value_parser = at_least::<usize>(0), help_heading = "Rerank")]
    pub(crate) rerank_layer: Option<usize>,
    /// Layer weights and temperature for documents, which `judge rerank` wrote for this model, prompt and labels
    #[arg(long, value_name = "FILE", conflicts_with = "rerank_layer", help_heading = "Rerank")]
    pub(crate) rerank_weights: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
}

impl Cli {
    /// Options without effect are refused rather than ignored.
    pub(crate) fn check(&self) -> Result<()> {
        if self.name.as_deref() == Some("") {
            return Err(usage("--name: expected a name that requests can have, found an empty one"));
        }
        let Limits { max_body, queue_bytes, client_share, .. } = self.limits;
        let bytes = client_share.of(queue_bytes);
        if max_body > bytes {
            return Err(usage(format!(
                "--max-body {max_body}: no such body is ever taken, since one client may have {bytes} bytes of --queue-bytes; give more of these, or a \
                larger --client-share"
            )));
        }
        match self.model.limit {
            Some(_) => Err(usage("--limit has no effect where rows come over the network")),
            None => self.decisions.check_without_tables().and_then(|()| refuse_dressing(&self.model)),
        }
    }
}
