//! How fast a model reads the prompts of a file, and how much memory it takes.
//!
//! `judge speed --input prompts.jsonl`

mod others;
mod rows;

use std::collections::BTreeMap;
use std::hint::black_box;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use judge_core::{
    Backbone, Layer, Lens, Outcome, Reading, Reason, Request, TextModel, Want,
    request::{Generation, LabelRead, Pooling, ReadAt, Sampling},
};
use judge_data::Outputs;
use judge_models::{Model, product_rate};
use others::{Measured, Way};
use rows::Rows;
use serde_json::json;

use judge_cli::args::files::{InputArgs, OverwriteArgs, program};
use judge_cli::args::model_args::ModelArgs;
use judge_cli::args::numbers::{at_least, not_negative};
use judge_cli::report::write_json_if;
use judge_cli::terminal::console::{check_scored, say_fields, tell, usage};
use judge_cli::terminal::interrupt::{Interrupts, Stopped};
use judge_cli::terminal::memory::peak_memory;
use judge_cli::terminal::progress::Progress;

/// Measure how fast a model reads the rows of a file, and estimate how long the whole file takes.
///
/// Input: JSON lines {"id", "prompt"} or {"id", "messages"}, graded rows {"id", "instruction", "response", "rubric"?}, or a benchmark file
/// of the LAGER reference program. All prompts are put before the model at once; prompts that share a beginning are read together where the
/// device can. Loading is measured apart. With --limit, only so many rows are read, and the time for the whole file is estimated from them
/// by the length of its texts.
#[derive(Args)]
pub(crate) struct Cli {
    #[command(flatten)]
    input: InputArgs,
    /// The figures as JSON, and the states of the first prompt's last token at every layer that was read
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Prompt template (JSON) for graded rows [default: judge_template.json of the model folder, else a built-in one]
    #[arg(long, value_name = "FILE")]
    template: Option<PathBuf>,
    /// What is read of each prompt
    #[arg(long, value_enum, default_value_t = What::States)]
    read: What,
    /// The highest layer that is read [default: the last]
    #[arg(long, value_name = "LAYER", value_parser = at_least::<usize>(0))]
    layer: Option<usize>,
    /// How many times the prompts are read; the fastest counts
    #[arg(long, default_value_t = 1, value_name = "TIMES", value_parser = at_least::<usize>(1))]
    repeat: usize,
    /// Tokens written after each prompt, labels being read where one is written
    #[arg(long, default_value_t = 0, value_name = "TOKENS", value_parser = at_least::<usize>(0))]
    max_new_tokens: usize,
    /// Draw the tokens that are written at this temperature; 0 takes the most likely ones
    #[arg(long, default_value_t = 0.0, value_name = "T", value_parser = not_negative, requires = "max_new_tokens")]
    temperature: f64,
    /// Also measure the hardware's matrix and memory speed, as an upper bound on tokens/s
    #[arg(long)]
    floor: bool,
    /// Also read the prompts with other kernels of this processor, and with weights of eight bits: which is faster? The model is loaded
    /// anew for each
    #[arg(long)]
    others: bool,
    #[command(flatten)]
    model: ModelArgs,
    #[command(flatten)]
    write: OverwriteArgs,
}

#[derive(Clone, Copy, ValueEnum, PartialEq)]
enum What {
    /// The last token's state of every layer
    States,
    /// The last token's state of the highest layer alone
    Probe,
    /// Logits of the labels 1 to 5 at every layer
    Labels,
    /// Nothing but the tokens that are written (--max-new-tokens)
    Text,
}

pub(crate) fn run(cli: &Cli) -> Result<()> {
    if cli.read == What::Text && cli.max_new_tokens == 0 {
        return Err(usage("--read text reads nothing but tokens that are written: give --max-new-tokens"));
    }
    if cli.read == What::Text && cli.layer.is_some() {
        return Err(usage("--layer has no effect with --read text, which reads no layer"));
    }
    let inputs = [Some(&cli.input.input), cli.template.as_ref()].into_iter().flatten();
    Outputs::new(inputs).reports("throughput", &cli.json).overwrite(cli.write.overwrite).check()?;
    let input = cli.input.open()?;
    let Rows { prompts, rows, share } = Rows::read(&cli.model, &cli.input, &input, cli.template.as_deref())?;
    cli.model.admit(&input)?;
    let start = Instant::now();
    let model = cli.model.load()?;
    let load_s = start.elapsed().as_secs_f64();
    let want = cli.want(&model)?;
    let requests: Vec<Request> = prompts.into_iter().map(|prompt| Request { prompt, want: want.clone() }).collect();
    let ways = if cli.others { Way::others(&cli.model, &model)? } else { Vec::new() };
    let stop = Interrupts::catch()?;
    let (best, passes_s) = cli.passes(&model, &requests, &stop)?;
    let Pass { seconds, prompt_tokens, new_tokens, unscored, first } = best;
    let peak = peak_memory();
    let n_unscored: usize = unscored.values().sum();
    check_scored(requests.len() - n_unscored, unscored)?;
    // Of rows that were left out, nothing but their length is known.
    let whole_file_s = (requests.len() < rows).then(|| seconds / share);
    let floor = match (cli.floor, cli.model.devices.first()) {
        (true, Some(&device)) => Some((product_rate(device, cli.model.kernel)?, memory_rate())),
        _ => None,
    };
    let tokens_per_s = prompt_tokens as f64 / seconds;
    let whole = whole_file_s.map(|whole: f64| {
        let about = humantime::format_duration(Duration::from_secs(whole.ceil() as u64));
        ("whole file", format!("about {about} for {rows} rows, without loading"))
    });
    let peak_in_words =
        peak.map_or_else(|| "not known on this system".to_owned(), |bytes| format!("{:.0} MB", bytes as f64 / 1e6));
    let mut fields = vec![
        ("prompts", requests.len().to_string()),
        ("unscored", n_unscored.to_string()),
        ("prompt tokens", prompt_tokens.to_string()),
        ("new tokens", new_tokens.to_string()),
        ("loading", format!("{load_s:.2} s")),
        ("reading", format!("{seconds:.2} s")),
        ("tokens/s", format!("{tokens_per_s:.0}")),
    ];
    fields.extend(whole);
    fields.push(("peak memory", peak_in_words));
    fields.extend(floor.iter().flat_map(|(products, memory)| {
        [("products", format!("{:.0} GFLOP/s", products / 1e9)), ("memory", format!("{:.1} GB/s", memory / 1e9))]
    }));
    let (info, integers) = (model.info().clone(), model.kernel_of_integers());
    drop(model);
    let mut measured = Vec::new();
    for way in ways {
        let other = way.args(&cli.model).load()?;
        let read_s = cli.passes(&other, &requests, &stop)?.0.seconds;
        measured.push(Measured { way, read_s, ratio: seconds / read_s });
    }
    let others: Vec<_> = measured.iter().map(Measured::json).collect();
    if cli.others {
        fields.push(("faster here", others::line(measured)));
    }
    say_fields(fields)?;
    if let Some(kernel) = integers.filter(|_| !cli.others) {
        tell(format_args!(
            "note: some matrices are kept as codes of few bits; --kernel {kernel} multiplies these as integers, which is mostly faster \
             and rounds their inputs to eight bits too (--others measures it)"
        ));
    }
    write_json_if(cli.json.as_deref(), "throughput", || {
        let states = first.iter().flat_map(|reading| &reading.pooled);
        let states: Vec<_> = states.map(|state| json!({"layer": state.layer.0, "values": state.values})).collect();
        let labels = first.as_ref().and_then(|reading| reading.labels.first()).map(|labels| {
            labels.steps.iter().map(|step| json!({"step": step.step, "logits": step.logits})).collect::<Vec<_>>()
        });
        Ok(json!({
            "program": program("throughput"),
            "prompts": requests.len(), "unscored": n_unscored, "prompt_tokens": prompt_tokens, "new_tokens": new_tokens,
            "load_s": load_s, "read_s": seconds, "passes_s": passes_s, "tokens_per_s": tokens_per_s, "peak_bytes": peak,
            "rows": rows, "whole_file_s": whole_file_s,
            "product_flops": floor.map(|(products, _)| products), "memory_bytes_per_s": floor.map(|(_, memory)| memory),
            "model": info, "others": cli.others.then_some(others), "first": {"states": states, "labels": labels},
        }))
    })
}

/// One reading of all prompts.
struct Pass {
    seconds: f64,
    prompt_tokens: usize,
    new_tokens: usize,
    unscored: BTreeMap<Reason, usize>,
    first: Option<Reading>,
}

fn pass(model: &Model, requests: &[Request], quiet: bool, stop: &Interrupts) -> Result<Pass> {
    let mut pass = Pass { seconds: 0.0, prompt_tokens: 0, new_tokens: 0, unscored: BTreeMap::new(), first: None };
    let progress = Progress::new("reading", requests.len(), quiet);
    let (start, mut done, mut stopped) = (Instant::now(), 0, None);
    model.run(requests, &mut |index, outcome| {
        done += 1;
        match outcome {
            Outcome::Read(reading) => {
                let new_tokens = reading.generated.as_ref().map_or(0, |generated| generated.tokens.len());
                let prompt_tokens = reading.prompt_tokens.unwrap_or_default(); // a model of this project counts them
                progress.add(1, prompt_tokens + new_tokens);
                pass.prompt_tokens += prompt_tokens;
                pass.new_tokens += new_tokens;
                if index == 0 {
                    pass.first = Some(reading);
                }
            }
            Outcome::Unscored(unscored) => {
                progress.inc(1);
                *pass.unscored.entry(unscored.reason).or_default() += 1;
            }
        }
        stopped = stop.interrupted();
        if stopped.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    if let Some(signal) = stopped {
        return Err(Stopped { signal, done, total: requests.len(), what: "rows", resumes: false }.into());
    }
    pass.seconds = start.elapsed().as_secs_f64();
    Ok(pass)
}

impl Cli {
    /// The fastest of several readings, and how long each took.
    fn passes(&self, model: &Model, requests: &[Request], stop: &Interrupts) -> Result<(Pass, Vec<f64>)> {
        let mut best: Option<Pass> = None;
        let mut passes_s = Vec::new();
        for _ in 0..self.repeat {
            let pass = pass(model, requests, self.model.quiet, stop)?;
            passes_s.push(pass.seconds);
            if best.as_ref().is_none_or(|best| pass.seconds < best.seconds) {
                best = Some(pass);
            }
        }
        Ok((best.context("nothing was read")?, passes_s))
    }

    fn sampling(&self) -> Sampling {
        if self.temperature == 0.0 {
            return Sampling::Greedy;
        }
        Sampling::Random { temperature: self.temperature, top_k: None, top_p: None, seed: 0, stream: 0 }
    }

    fn want(&self, model: &Model) -> Result<Want> {
        let last = model.info().n_layers;
        let top = self.layer.unwrap_or(last);
        if top > last {
            return Err(usage(format!("--layer {top}: the model has the layers 0 to {last}")));
        }
        let layers: Vec<Layer> = (0..=top).map(Layer).collect();
        let generate = (self.max_new_tokens > 0).then(|| Generation {
            max_new_tokens: self.max_new_tokens,
            sampling: self.sampling(),
            ..Generation::default()
        });
        let at = if generate.is_some() { ReadAt::EveryStep } else { ReadAt::PromptEnd };
        let pooled = |layers: &[Layer]| layers.iter().map(|&layer| (layer, Pooling::Last)).collect();
        Ok(match self.read {
            What::States => Want { pooled: pooled(&layers), generate, ..Want::default() },
            What::Probe => Want { pooled: pooled(&[Layer(top)]), generate, ..Want::default() },
            What::Labels => {
                let tokens =
                    ["1", "2", "3", "4", "5"].iter().map(|label| model.token(label)).collect::<Result<_, _>>()?;
                let labels = LabelRead { tokens, layers, lens: Lens::Raw, at, label_mass: false };
                Want { labels: vec![labels], generate, ..Want::default() }
            }
            What::Text => Want { generate, ..Want::default() },
        })
    }
}

/// Bytes per second that all threads together read from memory, of a gigabyte that no cache holds: the best of some tries.
fn memory_rate() -> f64 {
    const WORDS: usize = 1 << 27;
    let threads = rayon::current_num_threads();
    let words: Vec<u64> = (0..WORDS as u64).collect();
    let mut fastest = f64::INFINITY;
    for _ in 0..5 {
        let start = Instant::now();
        thread::scope(|scope| {
            for part in words.chunks(WORDS.div_ceil(threads)) {
                scope.spawn(|| black_box(part.iter().fold(0_u64, |sum, word| sum ^ word)));
            }
        });
        fastest = fastest.min(start.elapsed().as_secs_f64());
    }
    size_of_val(words.as_slice()) as f64 / fastest
}
