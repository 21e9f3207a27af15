//! A probe on features from a file.
//!
//! `cargo run --release --example probe_apply -- --probe fluency.safetensors --input features.safetensors --output out.jsonl`

use std::fs::File;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use half::f16;
use judge_data::JsonlWriter;
use judge_examples::console::{progress, say, start};
use judge_examples::probes::ProbeFile;
use judge_probe::{FittedClassifier, Matrix, Precision};
use memmap2::Mmap;
use safetensors::{Dtype, SafeTensors};
use serde_json::json;

/// Apply a probe to features.
///
/// Input: safetensors with the tensor `features` [n, d] in f64, f32 or f16, in the probe's order of layers. Output: one JSON line a row
/// {"row", "label", "decision": [...], "probabilities": [...] or null}; decisions are those of scikit-learn's decision_function.
#[derive(Parser)]
#[command(name = "probe_apply")]
struct Cli {
    /// The probe: a file of this project's, or a scikit-learn pickle (see probe_import)
    #[arg(long, value_name = "FILE")]
    probe: PathBuf,
    /// The features
    #[arg(long, value_name = "FILE.safetensors")]
    input: PathBuf,
    /// Where the labels go
    #[arg(long, value_name = "FILE.jsonl")]
    output: PathBuf,
    /// No progress on stderr
    #[arg(long)]
    quiet: bool,
}

/// From bytes to numbers.
type Read = fn(&[u8]) -> Vec<f64>;

/// Rows that are judged at a time.
const AT_ONCE: usize = 4_096;

fn main() -> ExitCode {
    start(run)
}

fn run(cli: &Cli) -> Result<()> {
    let path = cli.input.display();
    let file = File::open(&cli.input).with_context(|| format!("cannot open {path}"))?;
    // SAFETY: the map is private and read-only; a file that another program cuts short meanwhile ends this one.
    let map = unsafe { Mmap::map(&file) }.with_context(|| format!("cannot map {path}"))?;
    let tensors = SafeTensors::deserialize(&map).with_context(|| format!("{path} is no safetensors file"))?;
    let features = tensors.tensor("features").with_context(|| format!("{path} has no tensor `features`"))?;
    let [n_rows, n_features] = *features.shape() else {
        anyhow::bail!("{path}: `features` must have two axes, rows and features, found {:?}", features.shape());
    };
    let (precision, read): (Precision, Read) = match features.dtype() {
        Dtype::F64 => (Precision::F64, |bytes| bytes.as_chunks().0.iter().map(|&b| f64::from_le_bytes(b)).collect()),
        Dtype::F32 => {
            (Precision::F32, |bytes| bytes.as_chunks().0.iter().map(|&b| f32::from_le_bytes(b).into()).collect())
        }
        Dtype::F16 => {
            (Precision::F16, |bytes| bytes.as_chunks().0.iter().map(|&b| f16::from_le_bytes(b).into()).collect())
        }
        other => anyhow::bail!("{path}: `features` must be f64, f32 or f16, found {other:?}"),
    };
    // A pickle's scaler computes in the features' precision, as scikit-learn's does.
    let probe_file = ProbeFile::read(&cli.probe, precision)?;
    let probe = probe_file.probe();
    ensure!(
        n_features == probe.n_features(),
        "{path}: rows have {n_features} features, the probe was fitted on {}",
        probe.n_features()
    );

    let mut output = JsonlWriter::create(&cli.output)?;
    let bar = progress("judging", n_rows, cli.quiet);
    let row_bytes = features.data().len() / n_rows.max(1);
    for (block, bytes) in features.data().chunks((AT_ONCE * row_bytes).max(1)).enumerate() {
        let first = block * AT_ONCE;
        let matrix = Matrix::new(read(bytes), n_features)
            .with_context(|| format!("{path}: rows are counted from row {first}"))?;
        let labels = probe.predict(&matrix)?;
        let decisions = probe.decision_function(&matrix)?;
        let probabilities = probe.predict_proba(&matrix)?;
        let mut probabilities = probabilities.iter().flat_map(Matrix::rows);
        for (index, (label, decision)) in labels.iter().zip(decisions.rows()).enumerate() {
            let row = json!({
                "row": first + index, "label": label, "decision": decision, "probabilities": probabilities.next(),
            });
            output.write(&row)?;
        }
        bar.inc(labels.len());
    }
    output.finish()?;
    bar.finish_and_clear();
    say(format_args!("{n_rows} rows -> {}", cli.output.display()))
}
