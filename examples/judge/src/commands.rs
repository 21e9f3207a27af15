//! The commands of the program, and its `main`.

pub(crate) mod agree;
pub(crate) mod bench;
pub(crate) mod bias;
pub(crate) mod calibrate;
pub(crate) mod checklist;
pub(crate) mod compare;
pub(crate) mod decide;
pub(crate) mod drift;
pub(crate) mod emotion;
pub(crate) mod fit;
pub(crate) mod knowledge;
pub(crate) mod label;
pub(crate) mod logits;
pub(crate) mod merge;
pub(crate) mod probe;
pub(crate) mod rank;
pub(crate) mod report;
pub(crate) mod reward;
pub(crate) mod rows;
pub(crate) mod score;
pub(crate) mod select;
pub(crate) mod serve;
pub(crate) mod sft_evaluate;
pub(crate) mod shards;
pub(crate) mod speed;
pub(crate) mod states;
pub(crate) mod stream;
pub(crate) mod tune;

use std::process::ExitCode;

use anyhow::Result;
use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use judge_data::{DatasetFormat, DatasetOptions};

use self::shards::command::{Commands, Reading};
use crate::args::bars;
use crate::args::files::InputArgs;
use crate::inspector::{self, ProbeArgs};
use crate::terminal::console;

/// Turn a local language model into a measuring instrument for text.
///
/// Rows come in as JSON lines, scores go out as JSON lines with a record of the run beside them;
/// an interrupted run resumes when the same command is given again. Without --model, a small
/// embedded model reads, which judges nothing but the exercises of `judge rows`; other rows are refused.
#[derive(Parser)]
#[command(name = "judge", version = console::VERSION, propagate_version = true)]
struct Judge {
    #[command(subcommand)]
    command: Command,
}

/// The commands. Former names are hidden: what was a program of its own still takes the same options.
#[derive(Subcommand)]
enum Command {
    #[command(alias = "lager_pointwise")]
    Score(Box<score::Cli>),
    #[command(alias = "prompt_judge")]
    Compare(Box<compare::Cli>),
    #[command(alias = "rank_answers")]
    Rank(Box<rank::Cli>),
    #[command(alias = "reward_scores")]
    Reward(Box<reward::Cli>),
    Decide(Box<decide::Cli>),
    Checklist(Box<checklist::Cli>),
    #[command(alias = "label_with_api")]
    Label(Box<label::Cli>),
    #[command(alias = "layer_logits")]
    Logits(Box<logits::Cli>),
    #[command(alias = "hidden_states")]
    States(Box<states::Cli>),
    Tune(Box<tune::Cli>),
    SftEvaluate(Box<sft_evaluate::Cli>),
    #[command(alias = "lager_evaluate")]
    Fit(Box<fit::Cli>),
    #[command(alias = "agreement")]
    Agree(Box<agree::Cli>),
    Drift(Box<drift::Cli>),
    Calibrate(Box<calibrate::Cli>),
    Report(Box<report::Cli>),
    #[command(alias = "pairwise_benchmark")]
    Bench(Box<bench::Cli>),
    #[command(alias = "bias_report")]
    Bias(Box<bias::Cli>),
    #[command(alias = "data_selection")]
    Select(Box<select::Cli>),
    #[command(alias = "emotional_understanding")]
    Emotion(Box<emotion::Cli>),
    #[command(alias = "self_knowledge")]
    Knowledge(Box<knowledge::Cli>),
    #[command(alias = "score_files")]
    Shards(Box<shards::Cli>),
    #[command(alias = "score_stream")]
    Stream(Box<stream::Cli>),
    #[command(alias = "merge_adapter")]
    Merge(Box<merge::Cli>),
    #[command(alias = "throughput")]
    Speed(Box<speed::Cli>),
    Serve(Box<serve::Cli>),
    #[command(alias = "generate_rows")]
    Rows(Box<rows::Cli>),
    /// Small classifiers on the states of a model (INSPECTOR): train, import, apply
    #[command(subcommand)]
    Probe(probe::Probe),
    #[command(name = "inspector_train", hide = true)]
    InspectorTrain(Box<probe::train::Cli>),
    #[command(name = "probe_import", hide = true)]
    ProbeImport(Box<probe::import::Cli>),
    #[command(name = "probe_apply", hide = true)]
    ProbeApply(Box<probe::apply::Cli>),
    #[command(name = "inspector_evaluate", hide = true)]
    InspectorEvaluate(Box<probe::evaluate::Cli>),
    #[command(name = "inspector_filter", hide = true)]
    InspectorFilter(Box<probe::filter::Cli>),
    /// Print completions for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the manual page
    Man,
}

impl Command {
    fn run(&self) -> Result<()> {
        match self {
            Self::Score(cli) => score::run(cli),
            Self::Compare(cli) => compare::run(cli),
            Self::Rank(cli) => rank::run(cli),
            Self::Reward(cli) => reward::run(cli),
            Self::Decide(cli) => decide::run(cli),
            Self::Checklist(cli) => checklist::run(cli),
            Self::Label(cli) => label::run(cli),
            Self::Logits(cli) => logits::run(cli),
            Self::States(cli) => states::run(cli),
            Self::Tune(cli) => tune::run(cli),
            Self::SftEvaluate(cli) => sft_evaluate::run(cli),
            Self::Fit(cli) => fit::run(cli),
            Self::Agree(cli) => agree::run(cli),
            Self::Drift(cli) => drift::run(cli),
            Self::Calibrate(cli) => calibrate::run(cli),
            Self::Report(cli) => report::run(cli),
            Self::Bench(cli) => bench::run(cli),
            Self::Bias(cli) => bias::run(cli),
            Self::Select(cli) => select::run(cli),
            Self::Emotion(cli) => emotion::run(cli),
            Self::Knowledge(cli) => knowledge::run(cli),
            Self::Shards(cli) => shards::run(cli, &OfProgram),
            Self::Stream(cli) => stream::run(cli),
            Self::Merge(cli) => merge::run(cli),
            Self::Speed(cli) => speed::run(cli),
            Self::Serve(cli) => serve::run(cli),
            Self::Rows(cli) => rows::run(cli),
            Self::Probe(probe) => probe.run(),
            Self::InspectorTrain(cli) => probe::train::run(cli),
            Self::ProbeImport(cli) => probe::import::run(cli),
            Self::ProbeApply(cli) => probe::apply::run(cli),
            Self::InspectorEvaluate(cli) => probe::evaluate::run(cli),
            Self::InspectorFilter(cli) => probe::filter::run(cli),
            Self::Completions { shell } => {
                let mut text = Vec::new();
                clap_complete::generate(*shell, &mut Judge::command(), "judge", &mut text);
                console::say(String::from_utf8(text)?.trim_end())
            }
            Self::Man => {
                let mut text = Vec::new();
                clap_mangen::Man::new(Judge::command()).render(&mut text)?;
                console::say(String::from_utf8(text)?.trim_end())
            }
        }
    }
}

/// The commands that make rows of rows, for shards of them.
struct OfProgram;

impl OfProgram {
    fn command(words: &[String]) -> Result<Command> {
        Ok(Judge::try_parse_from(std::iter::once("judge".to_owned()).chain(words.iter().cloned()))?.command)
    }
}

impl Commands for OfProgram {
    fn run(&self, words: &[String]) -> Result<()> {
        Self::command(words)?.run()
    }

    fn reading(&self, words: &[String]) -> Result<Option<Reading>> {
        use DatasetFormat::{Answers, Emotion, Graded, Pairs, Prompts};
        let of = |input: &InputArgs, format: Option<DatasetFormat>| {
            let columns = input.columns.clone().unwrap_or_default();
            let options = DatasetOptions { format, columns, ..DatasetOptions::default() };
            Reading { options, has_ids: true, extension: ".jsonl" }
        };
        let probes = |probes: &ProbeArgs| -> Result<Reading> {
            let columns = probes.input.columns.clone().unwrap_or_default();
            let options = inspector::options(&columns, usize::MAX)?;
            Ok(Reading { options, has_ids: false, extension: ".jsonl" })
        };
        Ok(Some(match Self::command(words)? {
            Command::Score(cli) => of(&cli.input, cli.format),
            Command::Compare(cli) => of(&cli.input, cli.is_of_pairs().then_some(Pairs)),
            Command::Rank(cli) => of(&cli.input, Some(Answers)),
            Command::Reward(cli) => of(&cli.input, None),
            Command::Checklist(cli) => of(&cli.input, Some(Graded)),
            Command::Label(cli) => of(&cli.input, Some(Graded)),
            Command::Logits(cli) => of(&cli.input, Some(Prompts)),
            Command::States(cli) => Reading { extension: ".safetensors", ..of(&cli.input, Some(Prompts)) },
            Command::Emotion(cli) => of(&cli.input, Some(Emotion)),
            Command::Knowledge(cli) => {
                let input = InputArgs { columns: Some(cli.columns()?), ..cli.input.clone() };
                of(&input, Some(Prompts))
            }
            Command::Select(cli) => {
                let options = select::options(&cli.input);
                Reading { options, has_ids: true, extension: ".jsonl" }
            }
            Command::Probe(probe::Probe::Evaluate(cli)) | Command::InspectorEvaluate(cli) => probes(&cli.probes)?,
            Command::Probe(probe::Probe::Filter(cli)) | Command::InspectorFilter(cli) => probes(&cli.probes)?,
            _ => return Ok(None),
        }))
    }
}

/// The whole `main` of the program.
#[must_use]
pub fn main() -> ExitCode {
    console::start(|judge: &Judge| judge.command.run(), bars::note_usage_error)
}
