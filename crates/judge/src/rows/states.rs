//! Pooled hidden states of chosen layers, for each prompt of a file.
//!
//! `judge states --input prompts.jsonl --output states.safetensors`

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use judge_core::{Backbone, request::Pooling};
use judge_data::{DatasetFormat, Error, Job, Numbered, Outputs, Sharding, Source, StatesSpec, StatesWriter, ids_path};
use serde_json::json;

use judge_cli::args::files::{InputArgs, WriteArgs, program};
use judge_cli::args::layers::LayerList;
use judge_cli::args::model_args::ModelArgs;
use judge_cli::args::one_of;
use judge_cli::missing_fields::tell_unread;
use judge_cli::prompts::{finished_states, keep_states, prompt};
use judge_cli::terminal::console::{end_of_rows, say, tell};

/// The values of `--pooling`.
const POOLINGS: [(&str, Pooling); 5] = [
    ("first", Pooling::First),
    ("last", Pooling::Last),
    ("mean", Pooling::Mean),
    ("min", Pooling::Min),
    ("max", Pooling::Max),
];

/// Store pooled hidden states.
///
/// Input: {"id", "prompt"} or {"id", "messages"}. Output: safetensors with states f32 [n, layers, d_model], layers i64, scored u8 [n]; ids
/// and reasons beside it in FILE.ids.jsonl, the record of the run in FILE.run.json. With --rows-per-shard the rows lie in files of their
/// own, FILE-00001-of-00007.safetensors and so on.
#[derive(Args)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    /// Where the states go. Interrupted, the same command resumes
    #[arg(long, value_name = "FILE.safetensors")]
    output: PathBuf,
    /// Which layers: all, last, or a list such as 0,5,12-16
    #[arg(long, default_value = "all", value_name = "LIST")]
    layers: LayerList,
    /// How the states of a prompt's tokens become one; every token fed counts, BOS and template included
    #[arg(long, value_parser = one_of(&POOLINGS), default_value = "last")]
    pooling: Pooling,
    /// Cut the output into files of so many rows each [default: one file]
    #[arg(long, value_name = "N")]
    rows_per_shard: Option<NonZeroUsize>,
    #[command(flatten)]
    write: WriteArgs,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
}

pub(crate) fn run(cli: &Cli) -> Result<()> {
    Outputs::new([&cli.input.input]).states([&cli.output]).overwrite(cli.write.overwrite).check()?;
    let input = cli.input.open()?;
    let source = cli.input.source(&input, Some(DatasetFormat::Prompts), cli.model.limit);
    let mut job = Job { write: cli.write.options(), ..Job::new(source, &cli.output, program("hidden_states")) };
    let checked = job.check(&[], |_| Ok::<_, Error>(None))?;
    tell_unread(&checked.unread);
    let rows = checked.rows;
    cli.model.admit(&input)?;
    let pooling = cli.pooling;
    (job.made_by, job.settings) = cli.model.described(None)?;
    job.settings.insert("layers".to_owned(), json!(cli.layers.to_string()));
    job.settings.insert("pooling".to_owned(), json!(pooling));
    job.settings.insert("rows_per_shard".to_owned(), json!(cli.rows_per_shard));
    let mut plan = job.plan(&checked)?;
    plan.settings.remove("carry"); // no field is carried
    if let Some(record) = finished_states(&plan)? {
        say(format_args!("{} is complete: {rows} rows; nothing to do", cli.output.display()))?;
        return end_of_rows(&record.counts);
    }
    let model = cli.model.load()?;
    let info = model.info();
    let layers = cli.layers.of_model(info.n_layers)?;
    let mut metadata: BTreeMap<String, String> = BTreeMap::new();
    for (key, value) in &plan.settings {
        metadata.insert(key.clone(), value.as_str().map_or_else(|| value.to_string(), str::to_owned));
    }
    metadata.insert("program".to_owned(), format!("{} {}", plan.program.name, plan.program.version));
    metadata.insert("input_blake3".to_owned(), plan.inputs[0].blake3.clone());
    metadata.insert("model".to_owned(), info.name.clone());
    metadata.insert("model_revision".to_owned(), info.revision.clone().unwrap_or_default());
    metadata.insert("model_fingerprint".to_owned(), info.fingerprint.clone());
    metadata.insert("dtype".to_owned(), info.dtype.clone());
    metadata.insert("device".to_owned(), info.device.clone());
    let sharding = cli.rows_per_shard.map_or(Sharding::Whole, Sharding::Rows);
    let spec = StatesSpec { rows, layers: layers.clone(), d_model: info.d_model, metadata, sharding };
    let output = StatesWriter::open(&cli.output, &spec, cli.write.options())?;
    let (before, files) = (output.resumed().rows, output.files());
    if !cli.model.quiet {
        tell(format_args!("{} of states to write", size(spec.bytes()?)));
    }
    let prompts = job.source.items()?.map(|item| {
        let Numbered { row, record } = item?;
        Ok((record.id().clone(), row, prompt(&record, &cli.model, "")))
    });
    let counts = keep_states(&plan, &model, output, layers.clone(), pooling, cli.model.quiet, prompts)?;
    let place = match cli.rows_per_shard {
        None => format!("{}, {}", cli.output.display(), ids_path(&cli.output).display()),
        Some(_) => format!("{} in {files} shards", cli.output.display()),
    };
    let unscored: usize = counts.unscored.values().sum();
    say(format_args!(
        "{rows} rows, {before} of them done before: {} read, {unscored} unscored; {} layers of width {} -> {place}",
        counts.scored,
        layers.len(),
        info.d_model
    ))?;
    end_of_rows(&counts)
}

/// Bytes for people.
fn size(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}
