//! A probe on features or hidden states from files.
//!
//! `judge probe apply --probe fluency.safetensors --input states.safetensors --output out.jsonl`

mod features;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail, ensure};
use clap::Args;
use judge_cli::args::files::{WriteArgs, program, tell_json_lines};
use judge_cli::probes::ProbeFile;
use judge_cli::terminal::console::{end_of_rows, say, tell};
use judge_cli::terminal::progress::Progress;
use judge_core::{Reason, Unscored};
use judge_data::{Counts, Fate, InputFile, Opened, Outputs, Resolved, RunPlan, StatesFile};
use judge_probe::{Error, FittedClassifier, FittedEstimator, FittedProbe, Matrix, Precision};
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
/// hidden states also have their "id". A row without states, or with a number that is NaN or infinite, is {"row", "unscored"}.
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
    tell_json_lines(&cli.output);
    // A table in shards is no file of its name.
    let features = if cli.input[0].exists() { Features::open(&cli.input[0])? } else { None };
    let counts = match (features, cli.input.as_slice()) {
        (Some(features), [_]) => of_features(cli, &features)?,
        (Some(_), _) => bail!("{} has a tensor `features`: it must be the only input", cli.input[0].display()),
        (None, paths) => of_states(cli, paths)?,
    };
    say(format_args!("{} rows -> {}", counts.rows(), cli.output.display()))?;
    end_of_rows(&counts)
}

/// What the probe says of a row, with the fields that the row has besides; or why it says nothing.
type Judged = (Map<String, Value>, Result<Map<String, Value>, Unscored>);

impl Cli {
    /// Refuses an output that cannot be one, where these files are read.
    fn check_output(&self, inputs: &[PathBuf]) -> Result<()> {
        let outputs = Outputs::new(inputs.iter().chain([&self.probe])).rows([&self.output]);
        Ok(outputs.overwrite(self.write.overwrite).check()?)
    }

    /// Writes the rows of these files, unless that was done before; `judged` gives those from a row on, one or more.
    fn write(&self, inputs: &[PathBuf], rows: usize, judged: impl Fn(usize) -> Result<Vec<Judged>>) -> Result<Counts> {
        let mut plan = RunPlan::new(&self.output, rows, program("probe_apply"));
        plan.inputs = inputs.iter().chain([&self.probe]).map(InputFile::of).collect::<Result<_, _>>()?;
        plan.options = self.write.options();
        let mut output = match plan.open()? {
            Opened::Complete(record) => {
                say(format_args!("{} is complete; nothing to do", self.output.display()))?;
                return Ok(record.counts);
            }
            Opened::Ready(start) => start.begin(Resolved::default())?,
        };
        let bar = Progress::new("judging", rows, self.quiet);
        for first in 0..rows {
            bar.inc(1);
            if output.is_done(first) {
                continue;
            }
            for (row, (more, judged)) in (first..).zip(judged(first)?) {
                if output.is_done(row) {
                    continue;
                }
                let (said, fate) = match judged {
                    Ok(said) => (said, Fate::SCORED),
                    Err(why) => (object([("unscored", json!(why))]), Fate::unscored(why.reason)),
                };
                let mut value = object([("row", json!(row))]);
                value.extend(more);
                value.extend(said);
                output.push(row, &value, fate)?;
            }
        }
        bar.finish_and_clear();
        Ok(output.finish()?.counts)
    }
}

fn of_features(cli: &Cli, features: &Features) -> Result<Counts> {
    // A pickle's scaler computes in the features' precision, as scikit-learn's does.
    let file = ProbeFile::read(&cli.probe, features.precision)?;
    if let ProbeFile::Sklearn(imported) = &file
        && !imported.unread.is_empty()
    {
        let probe = cli.probe.display();
        tell(format_args!("note: {probe}: what it has beside the model is not applied: {:?}", imported.unread));
    }
    let probe = file.probe();
    let (found, expected) = (features.n_features, probe.n_features());
    let path = cli.input[0].display();
    ensure!(found == expected, "{path}: rows have {found} features, the probe was fitted on {expected}");
    let judged = |first: usize| -> Result<Vec<Judged>> {
        let judged = judge(probe, &features.values(first, AT_ONCE))?;
        Ok(judged.into_iter().map(|judged| (Map::new(), judged)).collect())
    };
    cli.write(&cli.input, features.n_rows, judged)
}

fn of_states(cli: &Cli, paths: &[PathBuf]) -> Result<Counts> {
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
    let judged = |row: usize| -> Result<Vec<Judged>> {
        let (id, unscored) = &ids[row];
        let judged = match (states.row(row)?, unscored) {
            (Some(features), _) => judge(saved.probe(), &features)?,
            (None, Some(why)) => vec![Err(why.clone())],
            (None, None) => vec![Err(Unscored::new(Reason::Missing, "there are no states of this row"))],
        };
        Ok(judged.into_iter().map(|judged| (object([("id", json!(id))]), judged)).collect())
    };
    cli.write(&inputs, states.n_rows, judged)
}

/// What the probe says of rows that stand one behind the other, or why it says nothing of one.
fn judge(probe: &FittedProbe, features: &[f64]) -> Result<Vec<Result<Map<String, Value>, Unscored>>> {
    match judge_all(probe, features) {
        Ok(judged) => Ok(judged.into_iter().map(Ok).collect()),
        Err(Error::NonFiniteFeature { feature, value, .. }) if features.len() == probe.n_features() => {
            let why = format!("feature {feature} is {value}, not a finite number");
            Ok(vec![Err(Unscored::new(Reason::NonFinite, why))])
        }
        // One such row refuses all: each by itself is judged as it is among others, to the bit.
        Err(Error::NonFiniteFeature { .. }) => {
            let each = features.chunks(probe.n_features()).map(|row| judge(probe, row));
            Ok(each.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
        }
        Err(error) => Err(error.into()),
    }
}

fn judge_all(probe: &FittedProbe, features: &[f64]) -> Result<Vec<Map<String, Value>>, Error> {
    let features = Matrix::new(features.to_vec(), probe.n_features())?;
    let labels = probe.predict(&features)?;
    let decisions = probe.decision_function(&features)?;
    let probabilities = probe.predict_proba(&features)?;
    let mut probabilities = probabilities.iter().flat_map(Matrix::rows);
    let judged = labels.iter().zip(decisions.rows()).map(|(label, decision)| {
        object([
            ("label", json!(label)),
            ("decision", json!(decision)),
            ("classes", json!(probe.classes())),
            ("probabilities", json!(probabilities.next())),
        ])
    });
    Ok(judged.collect())
}

fn object<const N: usize>(fields: [(&str, Value); N]) -> Map<String, Value> {
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
