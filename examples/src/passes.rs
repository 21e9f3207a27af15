//! Passing the rows of an input file through a model, some at a time.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::path::Path;
use std::slice;

use anyhow::Result;
use judge_core::{Backbone, ItemId, Outcome, Prompt, Request, Want};
use judge_data::{Dataset, DatasetFormat, DatasetOptions, Error, PromptInput, Record};

use crate::model_args::ModelArgs;
use crate::pace::Pace;

/// Rows that are held and put before the model at a time.
const WINDOW: usize = 256;

fn open(input: &Path, limit: Option<usize>) -> Result<Dataset, Error> {
    let options = DatasetOptions { format: Some(DatasetFormat::Prompts), max_rows: limit, ..DatasetOptions::default() };
    Dataset::open(input, &options)
}

/// Reads the whole input once, so that whatever is wrong with it is said before any model work. Returns the number of rows.
///
/// # Errors
/// What is wrong, with its line.
pub fn check_prompts(input: &Path, limit: Option<usize>) -> Result<usize> {
    let mut rows = 0;
    for record in open(input, limit)? {
        record?;
        rows += 1;
    }
    Ok(rows)
}

/// The prompt of the first row; `None` if the input is empty.
///
/// # Errors
/// Of the input.
pub fn first_prompt(args: &ModelArgs, input: &Path, prefill: &str) -> Result<Option<Prompt>> {
    match open(input, Some(1))?.next().transpose()? {
        Some(Record::Prompt(record)) => Ok(Some(prompt(args, &record.input, prefill))),
        _ => Ok(None),
    }
}

fn prompt(args: &ModelArgs, input: &PromptInput, prefill: &str) -> Prompt {
    let prompt = if args.raw_prompt { input.to_raw() } else { args.dress(input.to_chat()) };
    // What asks nothing stays empty: a prefill must not make a prompt of it.
    if prompt.is_empty() { prompt } else { prompt.with_prefill(prefill) }
}

/// Puts every pending row of `input` before the model with the same wish, and hands over each outcome as it is known.
///
/// # Errors
/// Of the input, the model, or `store`; what was stored before stays.
pub fn pass_prompts(
    args: &ModelArgs,
    model: &dyn Backbone,
    input: &Path,
    want: &Want,
    prefill: &str,
    pending: impl Iterator<Item = usize>,
    mut store: impl FnMut(usize, &ItemId, Outcome) -> Result<()>,
) -> Result<()> {
    let pending: HashSet<usize> = pending.collect();
    let rows = open(input, args.limit)?.enumerate().filter(|(row, _)| pending.contains(row));
    let requests = rows.filter_map(|(row, record)| match record {
        Ok(Record::Prompt(record)) => Some(Ok(((row, record.id), prompt(args, &record.input, prefill)))),
        Ok(_) => None, // the format is given: there are no other records
        Err(error) => Some(Err(error.into())),
    });
    pass(model, want, pending.len(), args.quiet, requests, |(row, id), outcome| store(*row, id, outcome))
}

/// Puts prompts before the model with the same wish, some at a time, and hands over each outcome, with what came beside its prompt, as it is known.
///
/// # Errors
/// Of `prompts`, the model, or `store`.
pub fn pass<T>(
    model: &dyn Backbone,
    want: &Want,
    total: usize,
    quiet: bool,
    prompts: impl Iterator<Item = Result<(T, Prompt)>>,
    mut store: impl FnMut(&T, Outcome) -> Result<()>,
) -> Result<()> {
    let mut pace = Pace::new("reading", total, quiet);
    let mut prompts = prompts.peekable();
    while prompts.peek().is_some() {
        let mut places = Vec::new();
        let mut requests = Vec::new();
        for item in prompts.by_ref().take(WINDOW) {
            let (place, prompt) = item?;
            requests.push(Request { prompt, want: want.clone() });
            places.push(place);
        }
        let mut failed = None;
        model.run(&requests, &mut |index, outcome| {
            pace.done(slice::from_ref(&outcome));
            // the backbone's contract: an index of `requests`
            match store(&places[index], outcome) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    failed = Some(error);
                    ControlFlow::Break(())
                }
            }
        })?;
        if let Some(error) = failed {
            return Err(error);
        }
    }
    pace.finish();
    Ok(())
}
