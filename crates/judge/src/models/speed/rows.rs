//! The rows that are measured, as prompts.

use std::path::Path;

use anyhow::{Context, Result, bail};
use judge_core::{Prompt, PromptTemplate, Scale, prompted::PromptFamily};
use judge_data::{DatasetFormat, Input, Record};

use judge_cli::args::files::InputArgs;
use judge_cli::args::model_args::{ModelArgs, OWN_POINTS, read_template};
use judge_cli::terminal::console::usage;

/// A file's rows, of which `--limit` may take the first ones only.
pub(crate) struct Rows {
    /// Of the rows that are taken.
    pub(crate) prompts: Vec<Prompt>,
    /// Rows of the whole file.
    pub(crate) rows: usize,
    /// How much of the file's text is in `prompts`: above 0 if there is any, 1 without a limit.
    pub(crate) share: f64,
}

impl Rows {
    /// Reads the whole file, so that its length is known and what is wrong with it is said before any model work.
    pub(crate) fn read(args: &ModelArgs, columns: &InputArgs, input: &Input, template: Option<&Path>) -> Result<Self> {
        let data = columns.records(input, None, None)?;
        let graded = matches!(data.format(), DatasetFormat::Graded | DatasetFormat::Prometheus);
        if !graded && template.is_some() {
            let (input, format) = (input.path().display(), data.format());
            return Err(usage(format_args!("--template needs graded rows; {input} has the format `{format}`")));
        }
        let template = match template {
            Some(path) => Some(read_template(path)?),
            None if graded => args.own_template(OWN_POINTS, None)?,
            None => None,
        };
        let template = args.dress_template(match template {
            Some(template) => template,
            None => PromptTemplate::pointwise_direct(&Scale::integers(1, 5)?),
        });
        let limit = args.limit.unwrap_or(usize::MAX);
        let (mut prompts, mut rows, mut taken, mut all) = (Vec::new(), 0, 0, 0);
        for record in data {
            let record = record?;
            if record.unread().is_some() {
                continue; // no model sees it
            }
            let prompt = prompt(args, &template, &record)?;
            let length = prompt.text_bytes(); // near enough to tokens for a share
            rows += 1;
            all += length;
            if prompts.len() < limit {
                taken += length;
                prompts.push(prompt);
            }
        }
        let share = if all == 0 { 1.0 } else { taken as f64 / all as f64 };
        Ok(Self { prompts, rows, share })
    }
}

fn prompt(args: &ModelArgs, template: &PromptTemplate, record: &Record) -> Result<Prompt> {
    let own = |text: &str| {
        if args.raw_prompt { Prompt::Raw(text.to_owned()) } else { args.dress(Prompt::user(text)) }
    };
    Ok(match record {
        Record::Prompt(record) if args.raw_prompt => record.input.to_raw(),
        Record::Prompt(record) => args.dress(record.input.to_chat()),
        Record::Graded(record) => template.fill(record).with_context(|| format!("item {}", record.id))?,
        Record::Pair(record) => args.dress(PromptFamily::built_in("pair")?.template().fill(record)?),
        Record::Answers(record) => bail!("item {}: lists of answers have no one prompt; give pairs", record.id),
        Record::Lager(record) => own(&record.direct),
        Record::Emotion(record) => own(&record.dialogue),
        Record::Unread(record) => bail!("item {}: {}", record.id, record.why),
    })
}
