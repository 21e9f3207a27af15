//! A probe on features or hidden states from files.
//!
//! `judge probe apply --probe fluency.safetensors --input states.safetensors --output out.jsonl`

mod features;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail, ensure};
use clap::Args;
use judge_cli::args::files::{WriteArgs, program};
use judge_cli::probes::ProbeFile;
use judge_cli::terminal::console::say;
use judge_cli::terminal::progress::Progress;
use judge_data::{Fate, InputFile, Opened, Outputs, Resolved, Run, RunPlan, StatesFile};
use judge_probe::{FittedClassifier, FittedEstimator, FittedProbe, Matrix, Precision};
use serde_json::{Map, Value, json};

use self::features::{Features, States};

/// Apply a probe to features or hidden states.
///
/// Input: files of `judge states`, or of a training (OUTPUT/states of `judge probe train`, which alone has states of what a judge wrote), of
/// which the probe takes its own layers and poolings (one table for each pooling that it reads, all of the same rows; a table in shards
/// goes by its own name); or safetensors with the tensor `features` [n, d] in f64, f32 or f16, in the probe's own order of layers and
/// poolings.
///
/// Output: one JSON line a row {"row", "label", "decision": [...], "classes": [...], "probabilities": [...] or null};
/// decisions are those of scikit-learn's decision_function, probabilities are in the order of the classes. Rows of
/// hidden states also have their "id", and those that could not be read {"row", "id", "unscored"}.
#[derive(Args)]
pub(crate) struct Cli {
    /// Hidden states (several tables: one per pooling), or features
    #[arg(long, value_name = "FILE.safetensors", required = true, num_args = 1..)]
    input: Vec<PathBuf>,
    /// File for the labels
    #[arg(long, value_name = "FILE.jsonl")]
    output: PathBuf,
    /// The probe: a file of `judge probe train` or `judge probe import`, or a scikit-learn pickle (see `judge probe import` for which)
    #[arg(long, value_name = "FILE")]
    probe: PathBuf,
    /// No progress on stderr
    #[arg(long)]
    quiet: bool,
    #[command(flatten)]
    write: WriteArgs,
}

/// Rows that are judged at a time.
const AT_ONCE: usize = 4_096;

pub(crate) fn run(cli: &Cli) -> Result<()> {
    cli.check_output(&cli.input)?;
    // A table in shards is no file of its name.
    let features = if cli.input[0].exists() { Features::open(&cli.input[0])? } else { None };
    let n_rows = match (features, cli.input.as_slice()) {
        (Some(features), [_]) => of_features(cli, &features)?,
        (Some(_), _) => bail!("{} has a tensor `features`: it must be the only input", cli.input[0].display()),
        (None, paths) => of_states(cli, paths)?,
    };
    say(format_args!("{n_rows} rows -> {}", cli.output.display()))
}

impl Cli {
    /// Refuses an output that cannot be one, where these files are read.
    fn check_output(&self, inputs: &[PathBuf]) -> Result<()> {
        let outputs = Outputs::new(inputs.iter().chain([&self.probe])).rows([&self.output]);
        Ok(outputs.overwrite(self.write.overwrite).check()?)
    }

    /// Opens the output for rows of these files; `None` if it is complete.
    fn begin(&self, inputs: &[PathBuf], rows: usize) -> Result<Option<Run>> {
        let mut plan = RunPlan::new(&self.output, rows, program("probe_apply"));
        plan.inputs = inputs.iter().chain([&self.probe]).map(InputFile::of).collect::<Result<_, _>>()?;
        plan.options = self.write.options();
        match plan.open()? {
            Opened::Complete(_) => {
                say(format_args!("{} is complete; nothing to do", self.output.display()))?;
                Ok(None)
            }
            Opened::Ready(start) => Ok(Some(start.begin(Resolved::default())?)),
        }
    }
}

fn of_features(cli: &Cli, features: &Features) -> Result<usize> {
    // A pickle's scaler computes in the features' precision, as scikit-learn's does.
    let file = ProbeFile::read(&cli.probe, features.precision)?;
    let probe = file.probe();
    let (n_rows, found, expected) = (features.n_rows, features.n_features, probe.n_features());
    let path = cli.input[0].display();
    ensure!(found == expected, "{path}: rows have {found} features, the probe was fitted on {expected}");
    let Some(mut output) = cli.begin(&cli.input, n_rows)? else { return Ok(n_rows) };
    let bar = Progress::new("judging", n_rows, cli.quiet);
    for first in (0..n_rows).step_by(AT_ONCE) {
        let judged = judge(probe, &features.matrix(first, AT_ONCE)?)?;
        bar.inc(judged.len());
        for (index, judged) in judged.into_iter().enumerate() {
            let index = first + index;
            if !output.is_done(index) {
                output.push(index, &row(index, [], judged), Fate::SCORED)?;
            }
        }
    }
    bar.finish_and_clear();
    output.finish()?;
    Ok(n_rows)
}

fn of_states(cli: &Cli, paths: &[PathBuf]) -> Result<usize> {
    let tables = paths.iter().map(|path| features::open_states(path)).collect::<Result<Vec<_>>>()?;
    let inputs: Vec<PathBuf> = tables.iter().flat_map(StatesFile::files).map(Path::to_path_buf).collect();
    cli.check_output(&inputs)?;
    let ProbeFile::Saved(saved) = ProbeFile::read(&cli.probe, Precision::F32)? else {
        bail!(
            "{} does not say which layers and poolings it reads: save it with `judge probe import` first, or give a tensor `features`",
            cli.probe.display()
        );
    };
    let states = States::new(tables, &saved)?;
    let ids = states.ids()?;
    let Some(mut output) = cli.begin(&inputs, states.n_rows)? else { return Ok(states.n_rows) };
    let bar = Progress::new("judging", states.n_rows, cli.quiet);
    for (index, (id, unscored)) in ids.into_iter().enumerate() {
        bar.inc(1);
        if output.is_done(index) {
            continue;
        }
        let id = ("id", json!(id));
        match states.row(index)? {
            Some(features) => {
                let judged = judge(saved.probe(), &features)?;
                let mut rows = judged.into_iter().map(|judged| row(index, [id.clone()], judged));
                rows.try_for_each(|row| output.push(index, &row, Fate::SCORED))?;
            }
            None => {
                let fate = Fate { unscored: unscored.as_ref().map(|unscored| unscored.reason), graded: false };
                output.push(index, &row(index, [id, ("unscored", json!(unscored))], Map::new()), fate)?;
            }
        }
    }
    bar.finish_and_clear();
    output.finish()?;
    Ok(states.n_rows)
}

/// What the probe says of each row of features.
fn judge(probe: &FittedProbe, features: &Matrix) -> Result<Vec<Map<String, Value>>> {
    let labels = probe.predict(features)?;
    let decisions = probe.decision_function(features)?;
    let probabilities = probe.predict_proba(features)?;
    let mut probabilities = probabilities.iter().flat_map(Matrix::rows);
    let judged = labels.iter().zip(decisions.rows()).map(|(label, decision)| {
        let mut judged = Map::new();
        judged.insert("label".to_owned(), json!(label));
        judged.insert("decision".to_owned(), json!(decision));
        judged.insert("classes".to_owned(), json!(probe.classes()));
        judged.insert("probabilities".to_owned(), json!(probabilities.next()));
        judged
    });
    Ok(judged.collect())
}

fn row<const N: usize>(row: usize, more: [(&str, Value); N], judged: Map<String, Value>) -> Map<String, Value> {
    let first = Map::from_iter([("row".to_owned(), json!(row))]);
    let more = more.into_iter().map(|(name, value)| (name.to_owned(), value));
    first.into_iter().chain(more).chain(judged).collect()
}
