//! The command line, and the settings that it stands for.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use judge_core::Lens;
use judge_data::{DatasetFormat, Error, Outputs, read_lager_results};

use judge_cli::args::files::{CarryArgs, InputArgs, OutputArgs};
use judge_cli::args::lager::LagerArgs;
use judge_cli::args::layers::LayerList;
use judge_cli::args::model_args::ModelArgs;
use judge_cli::terminal::console::usage;

/// How the help of the command ends.
const EXAMPLES: &str = "\
Examples:
  judge score --input graded.jsonl --output scores.jsonl --model path/to/model
  judge score --input graded.jsonl --output scores.jsonl --model model.gguf --weights weights.json

More: docs/lager.md";

/// Score a data file with LAGER.
///
/// Reads graded responses {"id", "instruction", "response", "rubric"?, "human"?}, prompts {"id", "prompt"}, the benchmark files of the
/// LAGER reference program and its emotion items, and evaluations of prometheus-eval; the format is detected from the first row. Writes one
/// row per item, in input order, with the layer logits, the score and the human scores; other fields are carried over.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    /// The format of the input [default: detected from the first row]
    #[arg(long, value_name = "prompts|graded|pairs|lager|emotion|prometheus", value_parser = format)]
    pub(crate) format: Option<DatasetFormat>,
    /// Which layers' logits are written: all, last, or a list such as 0,5,12-16. Fitting layer weights takes all; the last alone makes a
    /// file of millions of rows many times smaller
    #[arg(long, value_name = "LIST", default_value = "all")]
    pub(crate) layers: LayerList,
    #[command(flatten)]
    pub(crate) carry: CarryArgs,
    #[command(flatten)]
    pub(crate) lager: LagerArgs,
    /// Also write the result JSON of the LAGER reference program here; every item needs a human score
    #[arg(long, value_name = "FILE")]
    pub(crate) lager_json: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
}

fn format(name: &str) -> Result<DatasetFormat, String> {
    DatasetFormat::from_name(name)
        .ok_or_else(|| "expected prompts, graded, pairs, lager, emotion or prometheus".to_owned())
}

impl Cli {
    /// Options without effect are refused rather than ignored, and no output may be an input.
    pub(crate) fn check(&self) -> Result<()> {
        self.lager.check()?;
        let reads_last_alone = self.layers == LayerList::Last && !self.lager.variant().combines_layers();
        if self.lager.asked.lens() != Lens::default() && reads_last_alone {
            return Err(usage(
                "--lens has no effect on the last layer, which always meets the final norm; name others with --layers",
            ));
        }
        if self.lager_json.is_some() && self.layers != LayerList::All {
            return Err(usage("--lager-json needs --layers all"));
        }
        let inputs = [&self.input.input].into_iter().chain(self.lager.inputs());
        let outputs = Outputs::new(inputs).rows([&self.output.output]).made(&self.lager_json, is_lager_result);
        let overwrite = self.output.write.overwrite;
        outputs.overwrite(overwrite).check()?;
        // What an earlier run has written is compared with what this one would; before there are scores, it is another's.
        match &self.lager_json {
            Some(path) if !overwrite && !self.output.output.exists() && holds_something(path) => {
                Err(Error::OutputExists { path: path.clone(), differences: Vec::new() }.into())
            }
            _ => Ok(()),
        }
    }
}

/// Whether a file is a result of LAGER's program, or of this one in its form, by its first row.
fn is_lager_result(path: &Path) -> bool {
    matches!(read_lager_results(path).ok().and_then(|mut rows| rows.next()), Some(Ok(_)))
}

fn holds_something(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| metadata.len() > 0)
}
