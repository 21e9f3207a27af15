//! `plan`.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use judge_data::{ShardPlan, save};
use judge_examples::console::{progress, say};
use judge_examples::files::parquet_files;
use judge_examples::scoring::ScoringArgs;

#[derive(Args)]
pub(crate) struct PlanArgs {
    /// Parquet files, their folder, or a pattern such as 'data/train-*.parquet' (repeatable)
    #[arg(long, required = true, num_args = 1.., value_name = "GLOB")]
    input: Vec<String>,
    /// Where the plan goes
    #[arg(long, value_name = "PLAN.json")]
    output: PathBuf,
    /// Rows of a shard: what is lost when a process dies, some 10 minutes of work
    #[arg(long, default_value_t = 25_000, value_name = "ROWS", value_parser = clap::value_parser!(u64).range(1..))]
    rows_per_shard: u64,
    #[command(flatten)]
    pub(crate) scoring: ScoringArgs,
}

pub(crate) fn plan(args: &PlanArgs) -> Result<()> {
    args.scoring.check()?;
    let files = parquet_files(&args.input)?;
    judge_data::check_outputs(&files, [&args.output])?;
    let judge = args.scoring.judge()?;
    let scoring = args.scoring.open()?;
    let arguments = std::env::args().skip(2).collect();
    let bar = progress("reading", 0, args.scoring.model.quiet);
    let items = args.scoring.items(&judge);
    let rows = args.rows_per_shard;
    let mut resolved = scoring.resolved()?;
    resolved.insert("model".to_owned(), serde_json::to_value(scoring.model())?);
    let plan =
        ShardPlan::make(scoring.settings, arguments, items, args.scoring.results(), &files, rows, |rows| bar.inc(rows));
    bar.finish_and_clear();
    let plan = ShardPlan { resolved, ..plan? };
    save(&args.output, &plan)?;
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
