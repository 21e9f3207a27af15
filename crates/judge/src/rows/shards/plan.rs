//! `plan`.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Args, Parser};
use judge_cli::args::files::{OverwriteArgs, parquet_files};
use judge_cli::args::numbers::at_least;
use judge_cli::args::scale_out::ScoringArgs;
use judge_cli::terminal::console::{say, usage};
use judge_cli::terminal::progress::Progress;
use judge_core::Backbone;
use judge_data::{Outputs, ShardPlan, save_new};

use super::command::{self, Commands};

#[derive(Args)]
pub(crate) struct PlanArgs {
    /// Files, their folder, or a pattern such as 'data/train-*.parquet' (repeatable)
    #[arg(long, required = true, num_args = 1.., value_name = "GLOB")]
    input: Vec<String>,
    /// Where the plan goes
    #[arg(long, value_name = "PLAN.json")]
    output: PathBuf,
    /// Rows of a shard: what is lost when a process dies, some 10 minutes of work
    #[arg(long, default_value_t = 25_000, value_name = "ROWS", value_parser = at_least::<u64>(1))]
    rows_per_shard: u64,
    #[command(flatten)]
    write: OverwriteArgs,
    #[command(flatten)]
    pub(crate) scoring: ScoringArgs,
    /// The command that makes rows of the rows of each shard, and its options, without input and output;
    /// any that reads rows, as JSON lines or Parquet. Without one, Parquet files are scored as by
    /// `judge stream`
    #[arg(last = true, value_name = "COMMAND OPTIONS")]
    command: Vec<String>,
}

/// The command line of a plan alone, from words.
#[derive(Parser)]
#[command(no_binary_name = true)]
struct PlanWords {
    #[command(flatten)]
    args: PlanArgs,
}

/// The options of a plan, from the arguments that it was made with.
pub(super) fn options_of_plan(arguments: &[String]) -> Result<PlanArgs> {
    Ok(PlanWords::try_parse_from(arguments)?.args)
}

/// The options of a plan itself, beside which those of a command stand behind `--`.
const OF_PLAN: [&str; 5] = ["--input", "--output", "--rows-per-shard", "--overwrite", "--quiet"];

/// The words of this process's command line behind `shards plan`, but for how tables are written, which is no part of a plan.
fn own_words() -> Vec<OsString> {
    let mut words: Vec<OsString> = std::env::args_os().skip_while(|word| word != "plan").skip(1).collect();
    if let Some(at) = words.iter().take_while(|word| *word != "--").position(|word| word == "--tables") {
        words.drain(at..(at + 2).min(words.len()));
    }
    words.retain(|word| !word.to_string_lossy().starts_with("--tables="));
    words
}

/// Whether a file begins as Parquet does. One that cannot be read is left to whoever reads it.
fn is_parquet(path: &Path) -> bool {
    let mut magic = [0; 4];
    File::open(path).and_then(|mut file| file.read_exact(&mut magic)).is_err() || magic == *b"PAR1"
}

pub(crate) fn plan(args: &PlanArgs, commands: &dyn Commands) -> Result<()> {
    if !args.command.is_empty() {
        let own = own_words().into_iter().map(|word| word.to_string_lossy().into_owned());
        let mut options = own.take_while(|word| word != "--").filter(|word| word.starts_with("--"));
        if let Some(word) = options.find(|word| !OF_PLAN.contains(&word.split('=').next().unwrap_or_default())) {
            return Err(usage(format!("{word}: it says how rows are scored; put the options of a command behind it")));
        }
        let flags = [args.scoring.model.quiet, args.write.overwrite];
        return command::plan(commands, &args.command, &args.input, &args.output, args.rows_per_shard, flags);
    }
    args.scoring.check()?;
    let files = parquet_files(&args.input)?;
    if let Some(file) = files.iter().find(|file| !is_parquet(file)) {
        return Err(usage(format!(
            "{} is not Parquet, which is what is scored without a command; for JSON lines name a command behind the options: \
             judge shards plan … -- score",
            file.display()
        )));
    }
    let inputs = files.iter().chain(args.scoring.lager.inputs());
    let outputs = Outputs::new(inputs).documents::<ShardPlan>([&args.output]);
    outputs.overwrite(args.write.overwrite).check()?;
    let arguments = own_words().into_iter().map(OsString::into_string).collect::<Result<_, _>>();
    let arguments =
        arguments.map_err(|argument| usage(format!("{argument:?} is not UTF-8, so no plan could hold it")))?;
    let judge = args.scoring.judge()?;
    let scoring = args.scoring.open()?;
    let bar = Progress::new("reading", 0, args.scoring.model.quiet);
    let items = args.scoring.items(&judge);
    let rows = args.rows_per_shard;
    let mut resolved = scoring.resolved();
    resolved.insert("model".to_owned(), serde_json::to_value(scoring.model.info())?);
    let (settings, results) = (scoring.settings.clone(), args.scoring.results());
    let plan = ShardPlan::make(settings, arguments, items, results, &files, rows, |rows| bar.inc(rows))?;
    bar.finish_and_clear();
    let plan = ShardPlan { resolved, ..plan };
    if scoring.may_refuse() {
        // What no shard would score is no plan.
        plan.batches(0..plan.rows).try_for_each(|items| scoring.admit(&items?))?;
    }
    save_new(&args.output, &plan, args.write.overwrite)?;
    say(format_args!(
        "{} rows of {} files in {} shards, run {}, inputs {} -> {}",
        plan.rows,
        plan.files.len(),
        plan.shards(),
        plan.run,
        plan.all_inputs(),
        args.output.display()
    ))
}
