//! Pooled hidden states of chosen layers, for each prompt of a file.
//!
//! `cargo run --release --example hidden_states -- --input prompts.jsonl --output states.safetensors`

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Parser, ValueEnum};
use judge_core::{Backbone, Layer, ModelInfo, Outcome, Pooling, Want};
use judge_data::{InputFile, Sharding, StatesSpec, StatesWriter, ids_path};
use judge_examples::console::{say, start};
use judge_examples::layers::LayerList;
use judge_examples::model_args::ModelArgs;
use judge_examples::passes::{check_prompts, pass_prompts};

/// Store pooled hidden states.
///
/// Input: JSON lines {"id", "prompt"} or {"id", "messages"}. Output: safetensors with states f32 [n, layers, d_model],
/// layers i64, scored u8 [n]; ids and reasons beside it in FILE.ids.jsonl. Stopped and started again, it goes on. With --rows-per-shard
/// the rows lie in files of their own, FILE-00001-of-00007.safetensors and so on.
#[derive(Parser)]
#[command(name = "hidden_states")]
struct Cli {
    /// JSON lines of prompts
    #[arg(long, value_name = "FILE")]
    input: PathBuf,
    /// Where the states go
    #[arg(long, value_name = "FILE.safetensors")]
    output: PathBuf,
    /// Which layers: all, or a list such as 0,5,12-16
    #[arg(long, default_value = "all", value_name = "LIST")]
    layers: LayerList,
    /// How the states of a prompt's tokens become one; every token fed counts, BOS and template included
    #[arg(long, value_enum, default_value_t = PoolingArg::Last)]
    pooling: PoolingArg,
    /// Cut the output into files of so many rows each [default: one file]
    #[arg(long, value_name = "N")]
    rows_per_shard: Option<NonZeroUsize>,
    #[command(flatten)]
    model: ModelArgs,
}

#[derive(Clone, Copy, ValueEnum)]
enum PoolingArg {
    Last,
    Mean,
    Min,
    Max,
}

impl From<PoolingArg> for Pooling {
    fn from(pooling: PoolingArg) -> Self {
        match pooling {
            PoolingArg::Last => Self::Last,
            PoolingArg::Mean => Self::Mean,
            PoolingArg::Min => Self::Min,
            PoolingArg::Max => Self::Max,
        }
    }
}

fn main() -> ExitCode {
    start(run)
}

fn run(cli: &Cli) -> Result<()> {
    let rows = check_prompts(&cli.input, cli.model.limit)?;
    let pooling = Pooling::from(cli.pooling);
    let model = cli.model.load()?;
    let info = model.info();
    let layers = cli.layers.of_model(info.n_layers)?;
    let spec = StatesSpec {
        rows,
        layers: layers.clone(),
        d_model: info.d_model,
        metadata: cli.metadata(info)?,
        sharding: cli.rows_per_shard.map_or(Sharding::Whole, Sharding::Rows),
    };
    let mut output = StatesWriter::open(&cli.output, &spec)?;
    let resumed = output.resumed();
    if resumed.rows > 0 && !cli.model.quiet {
        eprintln!("going on: {} of {rows} rows are done", resumed.rows);
    }

    let want = Want { pooled: layers.iter().map(|&layer| (layer, pooling)).collect(), ..Want::default() };
    let pending: Vec<usize> = output.pending().collect();
    let (mut scored, mut unscored) = (0, 0);
    pass_prompts(&cli.model, &model, &cli.input, &want, "", pending.into_iter(), |row, id, outcome| {
        match outcome {
            Outcome::Read(reading) => {
                let state = |&layer: &Layer| {
                    reading
                        .pooled(layer, pooling)
                        .with_context(|| format!("the model did not read {layer}, which it was asked for"))
                };
                let states: Vec<&[f32]> = layers.iter().map(state).collect::<Result<_>>()?;
                output.write(row, id, &states.concat())?;
                scored += 1;
            }
            Outcome::Unscored(reason) => {
                output.write_unscored(row, id, &reason)?;
                unscored += 1;
            }
        }
        Ok(())
    })?;
    let files = output.files();
    output.finish()?;
    let place = match cli.rows_per_shard {
        None => format!("{}, {}", cli.output.display(), ids_path(&cli.output).display()),
        Some(_) => format!("{} in {files} shards", cli.output.display()),
    };
    say(format_args!(
        "{rows} rows: {} done before, {scored} read, {unscored} unscored; {} layers of width {} -> {place}",
        resumed.rows,
        layers.len(),
        info.d_model
    ))
}

impl Cli {
    /// Settings and fingerprint, kept in the file; a run goes on only with the same.
    fn metadata(&self, info: &ModelInfo) -> Result<BTreeMap<String, String>> {
        let pooling = serde_json::to_value(Pooling::from(self.pooling))?;
        let args = &self.model;
        Ok([
            ("program", concat!("hidden_states ", env!("CARGO_PKG_VERSION")).to_owned()),
            ("input_blake3", InputFile::of(&self.input)?.blake3),
            ("model", info.name.clone()),
            ("model_revision", info.revision.clone().unwrap_or_default()),
            ("model_fingerprint", info.fingerprint.clone()),
            ("dtype", info.dtype.clone()),
            ("device", info.device.clone()),
            ("pooling", pooling.as_str().unwrap_or_default().to_owned()),
            ("raw_prompt", args.raw_prompt.to_string()),
            ("template_args", serde_json::to_string(&args.template_args)?),
            ("date", args.date.to_string()),
        ]
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value))
        .collect())
    }
}
