//! The prompts of a file, passed through a model.

use std::collections::BTreeMap;

use anyhow::Result;
use judge_core::{ItemId, ModelInfo, Outcome, Prompt, TextModel, Unscored, Want};
use judge_data::{Error, PromptInput, Record, read_rows};

use crate::args::model_args::ModelArgs;
use crate::terminal::pace::Watch;

/// The prompt of a record as the options of the model want it, with the opening of the reply, or why it has none.
///
/// # Errors
/// Why the record could not be read.
pub fn prompt(record: &Record, args: &ModelArgs, prefill: &str) -> Result<Prompt, Unscored> {
    let input = match record {
        Record::Prompt(record) => &record.input,
        Record::Unread(record) => return Err(record.why.clone()),
        _ => &PromptInput::Messages(Vec::new()), // the format is given: there are no other records
    };
    let prompt = if args.raw_prompt { input.to_raw() } else { args.dress(input.to_chat()) };
    // What asks nothing stays empty: a prefill must not make a prompt of it.
    Ok(if prompt.is_empty() { prompt } else { prompt.with_prefill(prefill) })
}

/// Most bytes of one file of what is read.
pub const SHARD_BYTES: u64 = 1 << 30;

/// What states and logits in a file depend on, so that others are not taken for them: the program, its prompts by their hash, the model,
/// and how it is run.
#[must_use]
pub fn read_by(program: &str, prompts_blake3: String, model: &ModelInfo, args: &ModelArgs) -> BTreeMap<String, String> {
    let settings = [
        ("program", program.to_owned()),
        ("prompts_blake3", prompts_blake3),
        ("model", model.name.clone()),
        ("model_fingerprint", model.fingerprint.clone()),
        ("dtype", model.dtype.clone()),
        ("device", model.device.clone()),
        ("date", args.date.to_string()),
    ];
    settings.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Puts prompts before a model with the same wish and hands over each outcome with what came beside its prompt, with progress.
/// `[total, open]` are the rows in all, and those that are read now.
///
/// # Errors
/// Of `prompts`, the model, or `store`; [`Stopped`](crate::terminal::interrupt::Stopped) after a signal.
pub fn read<T>(
    model: &dyn TextModel,
    want: Want,
    [total, open]: [usize; 2],
    quiet: bool,
    prompts: impl Iterator<Item = Result<(ItemId, T, Result<Prompt, Unscored>), Error>>,
    mut store: impl FnMut(&ItemId, T, &Outcome) -> Result<(), Error>,
) -> Result<()> {
    let mut watch = Watch::new("reading", "rows", quiet)?;
    watch.start(total - open, total);
    let summary = read_rows(model, want, prompts, |id, beside, outcome| {
        let flow = watch.read(outcome);
        store(id, beside, outcome)?;
        Ok(flow)
    })?;
    watch.finish(summary.cancelled)
}
