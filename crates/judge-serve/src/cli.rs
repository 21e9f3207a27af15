//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, value_parser};
use judge_cli::args::decisions::{DecisionArgs, refuse_dressing};
use judge_cli::args::model_args::ModelArgs;
use judge_cli::args::rerank::RerankArgs;
use judge_cli::terminal::console::usage;

use super::shares::Percent;

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
    #[arg(long, default_value_t = 8080, value_name = "PORT")]
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
    /// At most this many requests wait or are judged at once; others get 429
    #[arg(long, default_value_t = 256, value_name = "N", value_parser = positive, help_heading = "Limits")]
    pub(crate) queue: usize,
    /// Their bodies have at most this many bytes together; others get 429
    #[arg(long, default_value_t = 1 << 26, value_name = "BYTES", value_parser = positive, help_heading = "Limits")]
    pub(crate) queue_bytes: usize,
    /// One client, which is an address, has at most this many per cent of connections, requests and bytes that wait, and of the model; behind
    /// a proxy, 100
    #[arg(long, default_value_t = 50, value_name = "PERCENT", value_parser = value_parser!(u8).range(1..=100), help_heading = "Limits")]
    pub(crate) client_share: u8,
    /// At most this many connections are open at once; others wait
    #[arg(long, default_value_t = 512, value_name = "N", value_parser = positive, help_heading = "Limits")]
    pub(crate) connections: usize,
    /// A body has at most this many bytes; a longer one gets 413
    #[arg(long, default_value_t = 1 << 20, value_name = "BYTES", value_parser = positive, help_heading = "Limits")]
    pub(crate) max_body: usize,
    /// The state of a request has at most this many bytes, counted once for each question, or for each criterion of a checklist; a longer
    /// one gets 413
    #[arg(long, default_value_t = 1 << 23, value_name = "BYTES", value_parser = positive, help_heading = "Limits")]
    pub(crate) max_prompt_bytes: usize,
    /// An answer takes at most this long once the request was read; then it is 504
    #[arg(long, default_value_t = 60, value_name = "SECONDS", value_parser = value_parser!(u64).range(1..=86_400), help_heading = "Limits")]
    pub(crate) timeout: u64,
    /// A client may take this long to send the head of a request, as long again for its body, and to take some of an answer
    #[arg(long, default_value_t = 15, value_name = "SECONDS", value_parser = value_parser!(u64).range(1..=86_400), help_heading = "Limits")]
    pub(crate) read_timeout: u64,
    #[command(flatten)]
    pub(crate) decisions: DecisionArgs,
    #[command(flatten)]
    pub(crate) rerank: RerankArgs,
    /// Read the labels of documents, or the head that the model has, at this layer, and run no block above it for them
    #[arg(long, value_name = "N", help_heading = "Rerank")]
    pub(crate) rerank_layer: Option<usize>,
    /// Layer weights and temperature for documents, which `judge rerank` wrote for this model, prompt and labels
    #[arg(long, value_name = "FILE", conflicts_with = "rerank_layer", help_heading = "Rerank")]
    pub(crate) rerank_weights: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
}

/// The most that a limit may be: what a count of places can hold.
const MOST: usize = 1 << 28;

fn positive(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number) if (1..=MOST).contains(&number) => Ok(number),
        _ => Err(format!("expected a number from 1 to {MOST}")),
    }
}

impl Cli {
    /// Options without effect are refused rather than ignored.
    pub(crate) fn check(&self) -> Result<()> {
        let bytes = Percent(self.client_share).of(self.queue_bytes);
        if self.max_body > bytes {
            return Err(usage(format!(
                "--max-body {}: no such body is ever taken, since one client may have {bytes} bytes of --queue-bytes; give more of these, or a \
                larger --client-share",
                self.max_body
            )));
        }
        match self.model.limit {
            Some(_) => Err(usage("--limit has no effect where rows come over the network")),
            None => self.decisions.check_without_tables().and_then(|()| refuse_dressing(&self.model)),
        }
    }

    pub(crate) fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout)
    }

    pub(crate) fn read_timeout(&self) -> Duration {
        Duration::from_secs(self.read_timeout)
    }
}
