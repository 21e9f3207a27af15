//! One item through the runner.

use judge_core::{Error, ItemResult, Judge, Runner, TextModel, Verdict};

/// What a judge says of the item, with all that it read.
pub(crate) fn result<I>(model: &dyn TextModel, judge: &dyn Judge<I>, item: I) -> Result<ItemResult<I>, Error> {
    Ok(Runner::new(model, vec![judge]).collect([("one".into(), item)])?.remove(0))
}

/// What a judge says of the item.
#[track_caller]
pub(crate) fn verdict<I>(model: &dyn TextModel, judge: &dyn Judge<I>, item: I) -> Verdict {
    result(model, judge, item).unwrap().verdicts.remove(0)
}
