//! A model's folder with adapters merged into its weights.
//!
//! `judge merge --model FOLDER --adapter ADAPTER --output MERGED`

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use judge_data::Outputs;
use judge_models::{Dtype, Error, FoundModel, Merged, merge_adapters};
use serde_json::json;

use judge_cli::args::files::OverwriteArgs;
use judge_cli::args::model_args::find_model;
use judge_cli::report::write_json_if;
use judge_cli::terminal::console::{say, usage};
use judge_cli::terminal::progress::Progress;

/// Merge LoRA adapters into a model's weights and write a folder that other tools load.
///
/// Weights are merged in f32, one adapter after another, and rounded once to the dtype.
/// The folder has config.json, safetensors (in files of up to 5 GB, with
/// their index), and the model's tokenizer and files of decisions. Quantised weights and GGUF files are written expanded;
/// of a vision-language folder the text model alone.
#[derive(Args)]
pub(crate) struct Cli {
    /// Hugging Face folder of a model or adapter, a GGUF file, or a hub id
    #[arg(long, value_name = "DIR|FILE|ORG/NAME[@REV]")]
    model: String,
    /// Folder of a LoRA adapter, as PEFT saves it (repeatable: merged in this order) [default: none, which writes the model as it is read]
    #[arg(long = "adapter", value_name = "DIR")]
    adapters: Vec<PathBuf>,
    /// Folder to write, which is absent or empty
    #[arg(long, value_name = "DIR")]
    output: PathBuf,
    /// dtype of the weights: f32 or bf16 [default: bf16 if the checkpoint is bf16, f16 or quantised, else f32]
    #[arg(long, value_name = "DTYPE")]
    dtype: Option<Dtype>,
    /// File for what was written, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// No progress on stderr
    #[arg(long)]
    quiet: bool,
    #[command(flatten)]
    write: OverwriteArgs,
}

pub(crate) fn run(cli: &Cli) -> Result<()> {
    const MB: u64 = 1_000_000;
    if cli.dtype == Some(Dtype::Tf32) {
        return Err(usage(
            "--dtype tf32 is arithmetic of GPUs: expected f32 or bf16, which a folder's weights are stored in",
        ));
    }
    // In a folder that is written now, there is nothing yet.
    let json = cli.json.as_ref().filter(|json| json.parent() != Some(&cli.output) || cli.output.is_dir());
    let outputs = Outputs::new(&cli.adapters).folders([&cli.output]).reports("merge_adapter", json);
    outputs.overwrite(cli.write.overwrite).check()?;
    let FoundModel { path, revision } = find_model(&cli.model, false)?;
    let mut shown: Option<(Progress, u64)> = None;
    let mut show = |written: u64, total: u64| {
        let (progress, done) =
            shown.get_or_insert_with(|| (Progress::new("writing MB", (total / MB) as usize, cli.quiet), 0));
        progress.inc((written / MB - *done) as usize);
        *done = written / MB;
    };
    let merged = match merge_adapters(&path, &cli.adapters, cli.dtype, &cli.output, &mut show) {
        Err(error @ Error::OutputExists { .. }) => return Err(usage(error)),
        merged => merged.with_context(|| format!("cannot merge into the model in {}", path.display()))?,
    };
    drop(shown);
    let Merged { dtype, n_tensors, bytes, files } = merged;
    write_json_if(cli.json.as_deref(), "merge_adapter", || {
        Ok(json!({
            "model": cli.model, "revision": revision, "adapters": cli.adapters, "output": cli.output,
            "dtype": dtype.to_string(), "n_tensors": n_tensors, "bytes": bytes, "files": files,
        }))
    })?;
    say(format_args!("{n_tensors} tensors, {:.1} MB in {dtype}; {}", bytes as f64 / MB as f64, files.join(", ")))?;
    say(format_args!("-> {}", cli.output.display()))
}
