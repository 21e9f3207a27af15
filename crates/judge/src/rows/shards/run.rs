//! `run`.

use anyhow::{Context, Result, bail};
use judge_cli::args::scale_out::{Scoring, now};
use judge_cli::terminal::console::{say, usage};
use judge_cli::terminal::interrupt::Interrupts;
use judge_cli::terminal::progress::Progress;
use judge_data::{Difference, PartRecord, PartWriter, ResultTally, ShardPlan, load};

use super::command::{self, Commands};
use super::plan::options_of_plan;
use super::run_args::RunArgs;

impl RunArgs {
    /// The model and the judge of a plan, on this machine.
    fn open(&self, plan: &ShardPlan) -> Result<Scoring> {
        let mut scoring = options_of_plan(&plan.arguments).context("the plan's own options")?.scoring;
        let model = &mut scoring.model;
        model.quiet = self.quiet;
        model.model = self.model.clone().or(model.model.take());
        model.devices = self.devices.clone().unwrap_or_else(|| model.devices.clone());
        model.kernel = self.kernel.or(model.kernel);
        model.packed_cache = self.packed_cache.clone().or(model.packed_cache.take());
        model.max_batch_tokens = self.max_batch_tokens.or(model.max_batch_tokens);
        scoring.require_device = self.require_device.clone().or(scoring.require_device.take());
        let scoring = scoring.open()?;
        if scoring.run != plan.run {
            let differ = Difference::between(&plan.settings, &scoring.settings);
            let differ: Vec<String> = differ.iter().map(ToString::to_string).collect();
            bail!(
                "{}: what would be scored here is another run, {} in place of {}: {}",
                self.plan.display(),
                scoring.run,
                plan.run,
                differ.join("; ")
            );
        }
        Ok(scoring)
    }
}

pub(crate) fn run(args: &RunArgs, commands: &dyn Commands) -> Result<()> {
    if let Some(plan) = command::planned(&args.plan)? {
        if args.require_device.is_some() {
            return Err(usage(
                "--require-device is for scores in Parquet; `judge shards check --one-device` tells of parts of several devices",
            ));
        }
        return command::run(commands, &plan, args);
    }
    let plan: ShardPlan = load(&args.plan)?;
    let find = PartRecord::finder(&args.output, &plan);
    let is_done = |shard| -> Result<bool> {
        PartRecord::refuse_foreign(&args.output, &plan, shard)?;
        let part = PartRecord::part_path(&args.output, shard, plan.shards());
        Ok(match find(shard)? {
            Some(record) => record.describes(&part)?,
            None => false,
        })
    };
    let Some((pending, mine)) = args.pending(plan.shards(), is_done)? else { return Ok(()) };
    let done = mine - pending.len();
    let scoring = args.open(&plan)?;
    let size = |shard: usize| plan.range(shard).end - plan.range(shard).start;
    let rows = usize::try_from(pending.iter().map(|&shard| size(shard)).sum::<u64>())?;
    let bar = Progress::new("scoring", rows, args.quiet);
    let stop = Interrupts::catch()?;
    let mut tally = ResultTally::default();
    for (index, &shard) in pending.iter().enumerate() {
        let Some(record) = score(&scoring, &plan, shard, args, &stop, &bar)? else {
            return stop.check(true, done + index, mine, "shards");
        };
        tally += &record.tally;
    }
    bar.finish_and_clear();
    say(format_args!(
        "{} rows of {} shards scored: {} with a score, results {} -> {}",
        tally.rows,
        pending.len(),
        tally.scored,
        tally.digests.results,
        args.output.display()
    ))
}

/// Scores one shard; `None` if a signal came before its end, and then nothing of it stays.
fn score(
    scoring: &Scoring,
    plan: &ShardPlan,
    shard: usize,
    args: &RunArgs,
    stop: &Interrupts,
    bar: &Progress,
) -> Result<Option<PartRecord>> {
    let started = now();
    let mut part = PartWriter::create(&args.output, plan, shard)?;
    let batches = || plan.batches(plan.range(shard));
    if scoring.may_refuse() {
        batches().try_for_each(|items| scoring.admit(&items?))?;
    }
    let items = batches().flat_map(|items| match items {
        Ok(items) => items.into_iter().map(Ok).collect(),
        Err(error) => vec![Err(error)],
    });
    let summary = scoring.scorer().score(items, |row| {
        part.push(row)?;
        bar.inc(1);
        Ok(stop.flow())
    })?;
    match summary.cancelled {
        true => Ok(None),
        false => Ok(Some(part.finish(plan, scoring.device(), started, now)?)),
    }
}
