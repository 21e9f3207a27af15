//! `run`.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Context, Result, bail};
use clap::Args;
use judge_data::{Difference, PartRecord, PartWriter, ResultTally, ShardPlan, load};
use judge_models::{Device, Kernel};

use super::command::{self, Commands};
use super::options_of_plan;
use crate::args::scoring::{Scoring, now};
use crate::terminal::console::{say, tell, usage};
use crate::terminal::interrupt::Interrupts;
use crate::terminal::progress::Progress;

/// What tells the number of a task, of Slurm and of Kubernetes.
const TASK: [&str; 2] = ["SLURM_ARRAY_TASK_ID", "JOB_COMPLETION_INDEX"];

#[derive(Args)]
pub(crate) struct RunArgs {
    /// The plan
    #[arg(long, value_name = "PLAN.json")]
    plan: PathBuf,
    /// Folder of the parts; made if it is not there
    #[arg(long, value_name = "DIR")]
    pub(super) output: PathBuf,
    /// Score the shards whose number is i modulo n, i from 0
    #[arg(long, value_name = "i/n", required_unless_present = "of")]
    shard: Option<Share>,
    /// The same with i from SLURM_ARRAY_TASK_ID or JOB_COMPLETION_INDEX
    #[arg(long, value_name = "n", conflicts_with = "shard")]
    of: Option<usize>,
    /// Where the model lies on this machine [default: as in the plan]
    #[arg(long, value_name = "DIR|FILE|ORG/NAME[@REV]", help_heading = "Model")]
    model: Option<String>,
    /// Where the model runs [default: as in the plan]
    #[arg(long = "device", value_name = "DEVICE", value_delimiter = ',', help_heading = "Model")]
    devices: Option<Vec<Device>>,
    /// CPU instruction set [default: as in the plan]
    #[arg(long, value_name = "KERNEL", help_heading = "Model")]
    kernel: Option<Kernel>,
    /// Refuse to run on any other device or instruction set than this one
    #[arg(long, value_name = "DEVICE", help_heading = "Model")]
    require_device: Option<String>,
    /// Folder for packed weights
    #[arg(long, value_name = "DIR", help_heading = "Model")]
    packed_cache: Option<PathBuf>,
    /// Upper bound on the tokens in flight at once
    #[arg(long, value_name = "TOKENS", help_heading = "Run")]
    max_batch_tokens: Option<usize>,
    /// No progress on stderr
    #[arg(long, help_heading = "Run")]
    pub(super) quiet: bool,
}

/// `i/n`.
#[derive(Clone, Copy)]
pub(super) struct Share {
    pub(super) index: usize,
    pub(super) of: usize,
}

impl Share {
    fn new(index: usize, of: usize) -> Result<Self, String> {
        if index < of {
            Ok(Self { index, of })
        } else {
            Err(format!("expected i/n with i from 0 to n - 1, found {index}/{of}"))
        }
    }
}

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || format!("expected i/n, e.g. 0/8, found {text:?}");
        let (index, of) = text.split_once('/').ok_or_else(expected)?;
        Self::new(index.parse().map_err(|_| expected())?, of.parse().map_err(|_| expected())?)
    }
}

impl RunArgs {
    pub(super) fn share(&self) -> Result<Share> {
        if let Some(share) = self.shard {
            return Ok(share);
        }
        let of = self.of.unwrap_or_default();
        let Some((name, index)) = TASK.iter().find_map(|name| Some((name, std::env::var(name).ok()?))) else {
            return Err(usage(format!(
                "--of takes the number of the task from {}, and neither is set; give --shard i/{of}",
                TASK.join(" or ")
            )));
        };
        let index = index.parse().map_err(|_| usage(format!("{name} is {index:?}, expected a number")))?;
        Share::new(index, of).map_err(|problem| usage(format!("{name}: {problem}")))
    }

    /// The options that say where and how the model of a command runs on this machine.
    pub(super) fn options(&self) -> [(&'static str, Option<String>); 5] {
        let devices =
            self.devices.as_ref().map(|all| all.iter().map(ToString::to_string).collect::<Vec<_>>().join(","));
        let cache = self.packed_cache.as_ref().map(|path| path.to_string_lossy().into_owned());
        [
            ("--model", self.model.clone()),
            ("--device", devices),
            ("--kernel", self.kernel.map(|kernel| kernel.to_string())),
            ("--packed-cache", cache),
            ("--max-batch-tokens", self.max_batch_tokens.map(|tokens| tokens.to_string())),
        ]
    }

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
    let share = args.share()?;
    let plan: ShardPlan = load(&args.plan)?;
    std::fs::create_dir_all(&args.output)
        .with_context(|| format!("cannot make the folder {}", args.output.display()))?;
    let mine: Vec<usize> = (share.index..plan.shards()).step_by(share.of).collect();
    let mut pending = Vec::new();
    for &shard in &mine {
        PartRecord::refuse_foreign(&args.output, &plan, shard)?;
        let part = PartRecord::part_path(&args.output, shard, plan.shards());
        let is_done = match PartRecord::find(&args.output, &plan, shard)? {
            Some(record) => record.describes(&part)?,
            None => false,
        };
        if !is_done {
            pending.push(shard);
        }
    }
    let done = mine.len() - pending.len();
    if pending.is_empty() {
        return say(format_args!("all {done} shards of {}/{} are there; nothing to do", share.index, share.of));
    }
    let scoring = args.open(&plan)?;
    if done > 0 {
        tell(format_args!("{done} of {} shards are there already", mine.len()));
    }
    let size = |shard: usize| plan.range(shard).end - plan.range(shard).start;
    let rows = usize::try_from(pending.iter().map(|&shard| size(shard)).sum::<u64>())?;
    let mut bar = Progress::new("scoring", rows, args.quiet);
    let stop = Interrupts::catch()?;
    let mut tally = ResultTally::default();
    for (index, &shard) in pending.iter().enumerate() {
        let Some(record) = score(&scoring, &plan, shard, args, &stop, &mut bar)? else {
            bar.finish_and_clear();
            return stop.check(true, done + index, mine.len(), "shards");
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
    bar: &mut Progress,
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
        Ok(if stop.interrupted().is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    match summary.cancelled {
        true => Ok(None),
        false => Ok(Some(part.finish(plan, scoring.device(), started, now)?)),
    }
}
