//! The options of `run`.

use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Context, Result};
use clap::Args;
use judge_models::{Device, Kernel};

use judge_cli::args::numbers::at_least;
use judge_cli::terminal::console::{say, tell, usage};

/// What tells the number of a task, of Slurm and of Kubernetes.
const TASK: [&str; 2] = ["SLURM_ARRAY_TASK_ID", "JOB_COMPLETION_INDEX"];

#[derive(Args)]
pub(crate) struct RunArgs {
    /// The plan
    #[arg(long, value_name = "PLAN.json")]
    pub(super) plan: PathBuf,
    /// Folder of the parts; made if it is not there
    #[arg(long, value_name = "DIR")]
    pub(super) output: PathBuf,
    /// Score the shards whose number is i modulo n, i from 0
    #[arg(long, value_name = "i/n", required_unless_present = "of")]
    shard: Option<Share>,
    /// The same with i from SLURM_ARRAY_TASK_ID or JOB_COMPLETION_INDEX
    #[arg(long, value_name = "n", value_parser = at_least::<usize>(1), conflicts_with = "shard")]
    of: Option<usize>,
    /// Where the model lies on this machine [default: as in the plan]
    #[arg(long, value_name = "DIR|FILE|ORG/NAME[@REV]", help_heading = "Model")]
    pub(super) model: Option<String>,
    /// Where the model runs [default: as in the plan]
    #[arg(long = "device", value_name = "DEVICE", value_delimiter = ',', help_heading = "Model")]
    pub(super) devices: Option<Vec<Device>>,
    /// CPU instruction set [default: as in the plan]
    #[arg(long, value_name = "KERNEL", help_heading = "Model")]
    pub(super) kernel: Option<Kernel>,
    /// Refuse to run on any other device or instruction set than this one
    #[arg(long, value_name = "DEVICE", help_heading = "Model")]
    pub(super) require_device: Option<String>,
    /// Folder for packed weights
    #[arg(long, value_name = "DIR", help_heading = "Model")]
    pub(super) packed_cache: Option<PathBuf>,
    /// Upper bound on the tokens in flight at once
    #[arg(long, value_name = "TOKENS", value_parser = at_least::<usize>(1), help_heading = "Run")]
    pub(super) max_batch_tokens: Option<usize>,
    /// No progress on stderr
    #[arg(long, help_heading = "Run")]
    pub(super) quiet: bool,
}

/// `i/n`.
#[derive(Clone, Copy)]
struct Share {
    index: usize,
    of: usize,
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
    /// Of the shards that are this machine's: those that are not done yet, and how many there are in all. `None`, with a word to the user,
    /// where nothing is left to do. The folder of the parts is there afterwards.
    pub(super) fn pending(
        &self,
        shards: usize,
        is_done: impl Fn(usize) -> Result<bool>,
    ) -> Result<Option<(Vec<usize>, usize)>> {
        let share = self.share()?;
        std::fs::create_dir_all(&self.output)
            .with_context(|| format!("cannot make the folder {}", self.output.display()))?;
        let (mut pending, mut mine) = (Vec::new(), 0);
        for shard in (share.index..shards).step_by(share.of) {
            mine += 1;
            if !is_done(shard)? {
                pending.push(shard);
            }
        }
        if pending.is_empty() {
            say(format_args!("all {mine} shards of {}/{} are there; nothing to do", share.index, share.of))?;
            return Ok(None);
        }
        if pending.len() < mine {
            tell(format_args!("{} of {mine} shards are there already", mine - pending.len()));
        }
        Ok(Some((pending, mine)))
    }

    fn share(&self) -> Result<Share> {
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
}
