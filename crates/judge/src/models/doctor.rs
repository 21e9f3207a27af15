//! What this machine has to run models with.
//!
//! `judge doctor`

use std::path::PathBuf;
use std::thread::available_parallelism;

use anyhow::Result;
use clap::Args;
use judge_data::Outputs;
use judge_models::{CudaProblem, Device, Error, HubOptions, Kernel, ModelSource};
use serde::Serialize;
use serde_json::json;

use judge_cli::args::files::OverwriteArgs;
use judge_cli::report::write_json_if;
use judge_cli::terminal::console::{VERSION, say_fields};
use judge_cli::terminal::memory::Memory;

/// The name in records.
const PROGRAM: &str = "doctor";

/// Say what this machine has to run models with: processor, kernels, memory, GPUs, models in the cache.
///
/// Of a GPU that cannot be used it names the first thing that is missing and what to install. Nothing runs on a GPU, and nothing is
/// fetched. The exit code is 0 whatever is found.
#[derive(Args)]
pub(crate) struct Cli {
    /// The same as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    #[command(flatten)]
    write: OverwriteArgs,
}

/// A GPU, or why there is none.
#[derive(Serialize)]
struct Gpu {
    device: String,
    /// Bytes; `None` where it is not known.
    memory: Option<u64>,
    /// What is missing, and what to do.
    problem: Option<String>,
}

/// A repository in the hub's cache.
#[derive(Serialize)]
struct Cached {
    repo: String,
    /// Its folder, if all of its files are there.
    path: Option<PathBuf>,
    /// What is to be said of it otherwise.
    #[serde(skip)]
    state: String,
}

pub(crate) fn run(cli: &Cli) -> Result<()> {
    Outputs::new(std::iter::empty::<PathBuf>()).reports(PROGRAM, &cli.json).overwrite(cli.write.overwrite).check()?;
    let processor = processor();
    let threads = available_parallelism().map_or(1, usize::from);
    let (kernels, fastest) = (Kernel::available(), Kernel::fastest());
    let memory = Memory::of_machine();
    let gpus: Vec<Gpu> = gpus(Device::Cuda).into_iter().chain(gpus(Device::Wgpu)).collect();
    let hub = HubOptions::from_env();
    let models = cached(&hub);

    let names = |all: &[Kernel]| all.iter().map(Kernel::to_string).collect::<Vec<_>>();
    let mut fields = vec![
        ("judge", VERSION.to_owned()),
        ("processor", format!("{processor}, {threads} threads")),
        ("kernels", format!("{}; {fastest} multiplies unless another is named", names(&kernels).join(", "))),
        ("memory", memory.map_or_else(|| "not known on this system".to_owned(), |memory| memory.to_string())),
    ];
    for Gpu { device, memory, problem } in &gpus {
        let found = match (problem, memory) {
            (Some(problem), _) => problem.clone(),
            (None, Some(bytes)) => format!("can be used, {:.1} GB", *bytes as f64 / 1e9),
            (None, None) => "can be used".to_owned(),
        };
        fields.push((device, found));
    }
    let exists = if hub.cache.is_dir() { "" } else { " (there is no such folder yet)" };
    fields.push(("cache", format!("{}{exists}", hub.cache.display())));
    for Cached { repo, state, .. } in &models {
        fields.push(("", format!("{repo}{state}")));
    }
    if hub.offline {
        fields.push(("hub", "offline (HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE)".to_owned()));
    }
    say_fields(fields)?;
    write_json_if(cli.json.as_deref(), PROGRAM, || {
        Ok(json!({
            "version": VERSION, "processor": processor, "architecture": std::env::consts::ARCH, "threads": threads,
            "kernels": names(&kernels), "kernel": fastest.to_string(), "memory": memory, "gpus": gpus,
            "cache": {
                "path": hub.cache, "models": models, "offline": hub.offline, "endpoint": hub.endpoint,
                "token": hub.token.is_some(),
            },
        }))
    })
}

/// What the system calls the processor; its architecture where it does not say.
fn processor() -> String {
    let described = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = described.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    name.map_or(std::env::consts::ARCH, |(_, name)| name.trim()).to_owned()
}

/// The GPUs of a kind; where there is none, what is missing.
fn gpus(kind: impl Fn(usize) -> Device) -> Vec<Gpu> {
    let mut found = Vec::new();
    loop {
        let device = kind(found.len());
        match device.check().and_then(|()| device.memory()) {
            Ok(memory) => found.push(Gpu { device: device.to_string(), memory, problem: None }),
            // All have been counted.
            Err(Error::NoAdapter { .. } | Error::Cuda { problem: CudaProblem::NoSuchCard { .. }, .. })
                if !found.is_empty() =>
            {
                return found;
            }
            Err(problem) => {
                let problem = match problem {
                    Error::NotInBuild { .. } => {
                        "not in this build; docs/gpu.md says how to make one that has it".to_owned()
                    }
                    Error::Cuda { problem, .. } => problem.to_string(),
                    other => other.to_string(),
                };
                found.push(Gpu { device: device.to_string(), memory: None, problem: Some(problem) });
                return found;
            }
        }
    }
}

/// The models in the hub's cache, by name.
fn cached(hub: &HubOptions) -> Vec<Cached> {
    let folders = std::fs::read_dir(&hub.cache).into_iter().flatten().flatten();
    let names = folders.filter_map(|folder| folder.file_name().into_string().ok());
    let mut repos: Vec<String> =
        names.filter_map(|name| Some(name.strip_prefix("models--")?.replacen("--", "/", 1))).collect();
    repos.sort_unstable();
    let found = |repo: String| {
        let source = ModelSource::Hub { repo: repo.clone(), revision: None, file: None };
        let path = source.in_cache(hub).map(|model| model.path);
        let state = match (&path, source.adapter_in_cache(hub)) {
            (Some(_), _) => String::new(),
            (None, Some(adapter)) => format!(", an adapter: name its folder, {}", adapter.path.display()),
            (None, None) if !repo.contains('/') => ", which has no name here: expected ORG/NAME".to_owned(),
            (None, None) => {
                ", in part, or of a form that is not read: a command that names it fetches the rest or says what is wrong"
                    .to_owned()
            }
        };
        Cached { path, state, repo }
    };
    repos.into_iter().map(found).collect()
}
