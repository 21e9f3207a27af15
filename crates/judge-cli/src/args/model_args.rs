//! The command-line options that every command with a model has, and the model they name.

use std::fmt::Display;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::UNIX_EPOCH;
use std::{fs, io};

use anyhow::{Context, Result};
use clap::Args;
use judge_core::{Backbone, Fields, Prompt, PromptTemplate, settings::settings_from_json};
use judge_data::{Input, MadeBy, Settings, read_text};
use judge_models::{
    Date, Device, Download, Dtype, FoundModel, HubOptions, Kernel, LoadOptions, Model, ModelSource, TextOptions,
    WeightForm, judge_template,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tiny_judge::planted::is_exercise;

use crate::args::files::row_limit;
use crate::args::numbers::at_least;
use crate::terminal::console::{tell, usage};
use crate::terminal::options::offered;
use crate::terminal::progress::Progress;

/// Grades that such a template asks for: from 1 to this.
pub const OWN_POINTS: u16 = 5;

/// What stands for `--embedded` in the environment: for tests and pipelines that are to run without a model.
const EMBEDDED: &str = "JUDGE_EMBEDDED";

/// The model that a program has found.
#[derive(Clone, Debug)]
struct Found {
    model: FoundModel,
    /// Where the embedded model's files lie as long as the program runs, with the lock that says that it does; `None` for a model of the
    /// user's.
    _unpacked: Option<Arc<(File, TempDir)>>,
}

/// How the names of folders begin into which the embedded model is unpacked.
const UNPACKED: &str = "judge-embedded-";

/// The file of such a folder that is locked as long as its process runs.
const LOCK: &str = "lock";

/// Unpacks the embedded model, so that it can be mapped as any other.
///
/// # Errors
/// If the system's folder for temporary files takes none.
fn embedded_model() -> Result<Found> {
    let place = std::env::temp_dir();
    let unpack = || {
        remove_abandoned(&place);
        let folder = tempfile::Builder::new().prefix(UNPACKED).tempdir_in(&place)?;
        let begun = folder.path().join("begun");
        let lock = File::create(&begun)?;
        // Where there are no locks nobody can take the folder for an abandoned one.
        let _ = lock.try_lock();
        fs::rename(&begun, folder.path().join(LOCK))?;
        let path = folder.path().join(tiny_judge::NAME);
        fs::create_dir(&path)?;
        tiny_judge::write(&path)?;
        for (name, _) in tiny_judge::FILES {
            // Packed weights are found again by the time of the files.
            File::options().append(true).open(path.join(name))?.set_modified(UNIX_EPOCH)?;
        }
        Ok::<_, io::Error>(((lock, folder), path))
    };
    let (unpacked, path) = unpack().with_context(|| {
        format!("cannot unpack the embedded model in {}; TMPDIR names another folder for it", place.display())
    })?;
    Ok(Found { model: FoundModel { path, revision: None }, _unpacked: Some(Arc::new(unpacked)) })
}

/// Removes what processes have unpacked that were ended before they could do it: nobody has its lock.
fn remove_abandoned(place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let lock = entry.path().join(LOCK);
        let is_unpacked = entry.file_name().to_string_lossy().starts_with(UNPACKED);
        // A folder of another user cannot be looked into.
        if is_unpacked
            && fs::symlink_metadata(&lock).is_ok_and(|found| found.is_file())
            && File::options().append(true).open(&lock).is_ok_and(|lock| lock.try_lock().is_ok())
        {
            // What cannot be removed is in nobody's way.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Finds a model by its folder or its hub id. Downloads are shown on stderr.
///
/// # Errors
/// If there is no such folder and no such model on the hub.
pub fn find_model(name: &str, quiet: bool) -> Result<FoundModel> {
    const MB: u64 = 1_000_000;
    let mut shown: Option<(String, Progress, u64)> = None;
    let source = name.parse::<ModelSource>()?;
    let is_hub = matches!(source, ModelSource::Hub { .. });
    if is_hub && Path::new(name).parent().is_some_and(Path::is_dir) && !quiet {
        tell(format_args!(
            "note: there is no {name} in that folder here, so it is taken as the id of a model on the hub"
        ));
    }
    let found = source.resolve_with(&HubOptions::from_env(), &mut |download| {
        let Download { file, done, size } = download;
        if quiet {
            return;
        }
        if shown.as_ref().is_none_or(|(last, ..)| last != file) {
            tell(format_args!("downloading {file}, {} MB", size.div_ceil(MB)));
            shown = Some((file.to_owned(), Progress::new("downloading MB", (size / MB) as usize, false), 0));
        }
        if let Some((_, progress, counted)) = &mut shown {
            progress.inc((done / MB).saturating_sub(*counted) as usize);
            *counted = (done / MB).max(*counted);
        }
    });
    match found {
        Err(error) if is_hub => {
            Err(error).with_context(|| format!("there is no folder or file {name} here, and the hub has not given it"))
        }
        found => Ok(found?),
    }
}

/// Which model reads, how, and how much of the input.
#[derive(Args, Clone, Debug)]
pub struct ModelArgs {
    /// Hugging Face folder of a model or adapter, a GGUF file, or a hub id, ORG/NAME:FILE for one GGUF file [default: the embedded model]
    #[arg(long, value_name = "DIR|FILE|ORG/NAME[@REV]", display_order = 1)]
    pub model: Option<String>,
    /// Have the embedded model read rows other than the exercises of `judge rows`, though its answers mean nothing: to try a command
    /// without a model. JUDGE_EMBEDDED=1 in the environment does the same
    #[arg(long, conflicts_with = "model", help_heading = "Model")]
    pub embedded: bool,
    /// Folder of a LoRA adapter, as PEFT saves it, that is merged into the weights as they are loaded (repeatable)
    #[arg(long = "adapter", value_name = "DIR", help_heading = "Model")]
    pub adapters: Vec<PathBuf>,
    /// Where the model runs: cpu, cuda:N or wgpu:N; with cuda:0,cuda:1 it is split across these GPUs (for speed, run one process per GPU)
    #[arg(
        long = "device",
        default_value = "cpu",
        value_name = "DEVICE",
        value_delimiter = ',',
        help_heading = "Model"
    )]
    pub devices: Vec<Device>,
    /// Arithmetic of the weights: f32 or bf16, on GPUs also tf32 [default: bf16 if the checkpoint is bf16 or f16, else f32]
    #[arg(long, value_name = "DTYPE", help_heading = "Model")]
    pub dtype: Option<Dtype>,
    /// What weights are kept as: as-stored (quantised folders keep their codes) or int8, half the memory of bf16, with an error that the
    /// documentation shows. CPU only
    #[arg(long, default_value = "as-stored", value_name = "FORM", help_heading = "Model")]
    pub weight_form: WeightForm,
    /// CPU instruction set for bf16 matrix products: amx, avx512-bf16, avx512, avx2, on ARM neon or neon-bf16, anywhere portable;
    /// amx-int8, avx512-vnni, avx2-int8 and neon-int8 multiply weights in 8 bits (--weight-form int8, Q8_0, int-quantized) and in
    /// 4 bits (Q4_K_M, GPTQ, AWQ) as integers, with less accuracy
    /// [default: the fastest there is]
    #[arg(long, value_name = "KERNEL", help_heading = "Model")]
    pub kernel: Option<Kernel>,
    /// Give prompts to the tokenizer as they are, without the model's chat template
    #[arg(long, help_heading = "Model")]
    pub raw_prompt: bool,
    /// A variable for the chat template, e.g. enable_thinking=false (repeatable)
    #[arg(long = "template-arg", value_name = "KEY=JSON", value_parser = template_arg, help_heading = "Model")]
    pub template_args: Vec<(String, Value)>,
    /// Text put after the chat template's output, before any prefill, whose control tokens count:
    /// what closes a thinking turn that the template opens
    #[arg(
        long,
        value_name = "TEXT",
        allow_hyphen_values = true,
        conflicts_with = "raw_prompt",
        help_heading = "Model"
    )]
    pub prefill_trusted: Option<String>,
    /// What a template that asks for today's date is told; fixed, so that results do not depend on the day
    #[arg(long, default_value_t = Date::default(), value_name = "YYYY-MM-DD", help_heading = "Model")]
    pub date: Date,
    /// Keep packed weights in this folder: the next start takes a moment, and processes with the same model share its memory. CPU only
    #[arg(long, value_name = "DIR", help_heading = "Model")]
    pub packed_cache: Option<PathBuf>,
    /// Hash all bytes of the weights into the model's fingerprint, not a sample of each large tensor; reads the whole checkpoint once more
    #[arg(long, help_heading = "Model")]
    pub full_fingerprint: bool,
    /// Read at most this many rows of the input
    #[arg(long, value_name = "ROWS", value_parser = row_limit, help_heading = "Run")]
    pub limit: Option<usize>,
    /// Upper bound on the tokens in flight at once; bounds memory. On a GPU, the last digits of a score may change with it [default: 16384
    /// on the CPU; on GPUs chosen from the model and their memory]
    #[arg(long, value_name = "TOKENS", value_parser = at_least::<usize>(1), help_heading = "Run")]
    pub max_batch_tokens: Option<usize>,
    /// No progress on stderr
    #[arg(long, help_heading = "Run")]
    pub quiet: bool,
    /// What `model` was resolved to, once: a branch of the hub may move between two looks.
    #[arg(skip)]
    found: OnceLock<Found>,
    /// Whether it was said that the embedded model was not made for some row.
    #[arg(skip)]
    told: OnceLock<()>,
}

/// The seed of a program that draws something. Reading a model draws nothing.
#[derive(Args, Clone, Copy, Debug)]
pub struct SeedArgs {
    /// Seed of everything that is drawn
    #[arg(long, default_value_t = 0, value_parser = at_least::<u64>(0), help_heading = "Run")]
    pub seed: u64,
}

/// Whether one of the texts in a value is an exercise of the embedded model.
fn holds_exercise(value: &Value) -> bool {
    match value {
        Value::String(text) => is_exercise(text),
        Value::Array(values) => values.iter().any(holds_exercise),
        Value::Object(fields) => fields.values().any(holds_exercise),
        _ => false,
    }
}

fn template_arg(text: &str) -> Result<(String, Value), String> {
    let (key, json) = text.split_once('=').ok_or("expected KEY=JSON")?;
    let value = serde_json::from_str(json)
        .map_err(|e| format!("the value of {key} is not JSON ({e}); quote strings: {key}='\"text\"'"))?;
    Ok((key.to_owned(), value))
}

impl ModelArgs {
    /// The folder that the options name; a hub id is fetched into the hub's cache unless it is there.
    ///
    /// # Errors
    /// If there is no such folder and no such model on the hub.
    pub fn folder(&self) -> Result<&FoundModel> {
        if let Some(found) = self.found.get() {
            return Ok(&found.model);
        }
        let found = match &self.model {
            None => embedded_model()?,
            Some(name) => Found { model: find_model(name, self.quiet)?, _unpacked: None },
        };
        Ok(&self.found.get_or_init(|| found).model)
    }

    /// Refuses rows that the embedded model was not made for, where no model is named: it would give them grades that mean nothing.
    /// To be called before any work. With `--embedded` they are read, and a note says so.
    ///
    /// # Errors
    /// A usage error that names the first such row; whatever is wrong with the input.
    pub fn admit(&self, input: &Input) -> Result<()> {
        if self.model.is_some() {
            return Ok(());
        }
        for row in input.rows()?.take(self.limit.unwrap_or(usize::MAX)) {
            let row = row?;
            let values = row.keys().filter_map(|key| serde_json::from_str(row.value(key)?).ok());
            if !values.into_iter().any(|value: Value| holds_exercise(&value)) {
                return self.refuse_foreign(row.place());
            }
        }
        Ok(())
    }

    /// As [`admit`](Self::admit), of rows that are no file.
    ///
    /// # Errors
    /// A usage error that names the first row that the embedded model was not made for.
    pub fn admit_items<T: Fields>(&self, rows: &[T], id: impl Fn(&T) -> String) -> Result<()> {
        let is_exercise =
            |row: &&T| row.names().iter().filter_map(|name| row.field(name)).any(|text| is_exercise(&text));
        match rows.iter().find(|row| self.model.is_none() && !is_exercise(row)) {
            Some(row) => self.refuse_foreign(format_args!("row {}", id(row))),
            None => Ok(()),
        }
    }

    fn refuse_foreign(&self, place: impl Display) -> Result<()> {
        if !self.embedded && std::env::var_os(EMBEDDED).is_none_or(|value| value != "1") {
            return Err(usage(format!(
                "{place}: expected an exercise of `judge rows`, the only rows that the embedded model judges; name a model with --model, \
                 or insist with --embedded, or {EMBEDDED}=1"
            )));
        }
        if !self.quiet && self.told.set(()).is_ok() {
            tell(format_args!(
                "note: {place} is no exercise of `judge rows`; what the embedded model says of this row, and of others like it, means nothing"
            ));
        }
        Ok(())
    }

    /// Loads the model.
    ///
    /// # Errors
    /// Whatever is wrong with the folder.
    pub fn load(&self) -> Result<Model> {
        let FoundModel { path: folder, revision } = self.folder()?;
        let options = self.load_options(revision.clone());
        let model = Model::load(folder, &options).with_context(|| format!("cannot load {}", self.in_words(folder)))?;
        if !self.quiet {
            let info = model.info();
            tell(format_args!(
                "model {} ({}, {} blocks of width {}, {} on {}), fingerprint {}",
                info.name, info.family, info.n_layers, info.d_model, info.dtype, info.device, info.fingerprint
            ));
            if self.max_batch_tokens.is_none() && self.devices != [Device::Cpu] {
                tell(format_args!("batches of at most {} tokens, by the GPU's memory", model.max_batch_tokens()));
            }
            // Nobody asked for f32, so the checkpoint is stored in it.
            if self.dtype.is_none() && info.dtype == Dtype::F32.to_string() && self.devices == [Device::Cpu] {
                tell(
                    "note: the checkpoint is f32; --dtype bf16 takes half the memory, and less time where the processor multiplies bf16",
                );
            }
        }
        Ok(model)
    }

    /// Which model is loaded.
    pub(crate) fn in_words(&self, folder: &Path) -> String {
        match &self.model {
            None => "the embedded model".to_owned(),
            Some(_) => format!("the model in {}", folder.display()),
        }
    }

    fn load_options(&self, revision: Option<String>) -> LoadOptions {
        LoadOptions {
            devices: self.devices.clone(),
            dtype: self.dtype,
            weights: self.weight_form,
            kernel: self.kernel,
            text: TextOptions { date: self.date, ..TextOptions::default() },
            revision,
            adapters: self.adapters.clone(),
            max_batch_tokens: self.max_batch_tokens,
            packed_cache: self.packed_cache.clone(),
            full_fingerprint: self.full_fingerprint,
            ..LoadOptions::default()
        }
    }

    /// What of these options decides about a row, before the model is loaded:
    /// which model, by its content, and how it is run and its prompts are
    /// made. The number of rows and the batch do not count. `template` is the content id of the prompt template, where the run has one.
    ///
    /// # Errors
    /// Whatever is wrong with the folder.
    pub fn described(&self, template: Option<&str>) -> Result<(MadeBy, Settings)> {
        let FoundModel { path, revision } = self.folder()?;
        let fingerprint = Model::fingerprint_of(path, &self.load_options(revision.clone()))
            .with_context(|| format!("cannot load {}", self.in_words(path)))?;
        let entries = [
            ("device", json!(self.devices.iter().map(ToString::to_string).collect::<Vec<_>>())),
            ("dtype", json!(self.dtype.map(|dtype| dtype.to_string()))),
            ("kernel", json!(self.kernel.map(|kernel| kernel.to_string()))),
            ("raw_prompt", json!(self.raw_prompt)),
            ("template_args", json!(self.template_args)),
            ("date", json!(self.date.to_string())),
        ];
        let mut settings: Settings = entries.map(|(key, value)| (key.to_owned(), value)).into();
        if self.weight_form != WeightForm::AsStored {
            settings.insert("weight_form".to_owned(), json!(self.weight_form.to_string()));
        }
        if let Some(text) = &self.prefill_trusted {
            settings.insert("prefill_trusted".to_owned(), json!(text));
        }
        Ok((MadeBy::ModelToLoad { fingerprint, template: template.map(str::to_owned) }, settings))
    }

    /// The template that the model folder brings, if it brings one, for grades from 1 to `points`. `rubric` is what is asked in place of
    /// the template's own question, which names its grades.
    ///
    /// # Errors
    /// If the file is there but is no template; a usage error for other grades than its own question names.
    pub fn own_template(&self, points: u16, rubric: Option<&str>) -> Result<Option<PromptTemplate>> {
        let Some(path) = judge_template(&self.folder()?.path, &self.adapters)? else { return Ok(None) };
        if points != OWN_POINTS {
            let own = format!("the model's own template is for grades from 1 to {OWN_POINTS}, not to {points}");
            if rubric.is_none() {
                let other = offered(["; for other grades, give another one with --template".to_owned()]);
                return Err(usage(format!("{own}{}", other.unwrap_or_default())));
            }
            tell(format_args!("note: {own}; whether the model knows other grades is not known"));
        }
        read_template(&path).map(Some)
    }

    /// A prompt as these options want it: with the template's arguments and what is put after its output.
    #[must_use]
    pub fn dress(&self, prompt: Prompt) -> Prompt {
        let prompt = match &self.prefill_trusted {
            Some(text) => prompt.with_trusted_prefill(text),
            None => prompt,
        };
        self.template_args.iter().fold(prompt, |prompt, (key, value)| prompt.with_template_arg(key, value.clone()))
    }

    /// A template as these options want it: with the chat template's arguments and what is put after its output, or raw.
    #[must_use]
    pub fn dress_template(&self, template: PromptTemplate) -> PromptTemplate {
        if self.raw_prompt {
            return template.to_raw();
        }
        let template = match &self.prefill_trusted {
            Some(text) => template.with_trusted_prefill(text),
            None => template,
        };
        self.template_args
            .iter()
            .fold(template, |template, (key, value)| template.with_template_arg(key, value.clone()))
    }
}

/// Whether a file is a prompt template.
#[must_use]
pub fn is_template(path: &Path) -> bool {
    read_template(path).is_ok()
}

/// Reads a prompt template, a JSON file as [`PromptTemplate`] describes it.
///
/// # Errors
/// If the file cannot be read or is no template.
pub fn read_template(path: &Path) -> Result<PromptTemplate> {
    let text = read_text(path).context("cannot read the template")?;
    settings_from_json(&text).with_context(|| format!("{} is not a prompt template", path.display()))
}
