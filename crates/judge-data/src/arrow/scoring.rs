//! What a LAGER judge makes of items, as rows of results.

use std::ops::ControlFlow;

use judge_core::{
    Error as CoreError, ItemResult, Judge, Runner, TextModel, Verdict,
    lager::LagerJudge,
    runner::{RunEvent, RunSettings, RunSummary},
};

use super::{BatchItem, ResultColumns, ResultRow, SCORED};
use crate::Error;

/// Scores items through one model and stamps each row with the run that it belongs to.
///
/// A row does not depend on the items beside it, nor on how often its id occurs: equal ids are no error here, since they are one only
/// for the whole input, of which a worker sees a part. A fault of an item, such as a field without a value, is its status and never an
/// error.
#[derive(Clone, Copy)]
pub struct ResultScorer<'a> {
    /// The model.
    pub model: &'a dyn TextModel,
    /// The judge.
    pub judge: &'a LagerJudge,
    /// Whether probabilities and logits are kept.
    pub columns: ResultColumns,
    /// The run, as [`run_id`](crate::run_id) names it.
    pub run: &'a str,
    /// What the model runs on.
    pub device: &'a str,
}

impl ResultScorer<'_> {
    /// Scores items in their order, as they come. `each` takes the rows, and [`ControlFlow::Break`] of it ends the work.
    ///
    /// # Errors
    /// Those of the items' source and of `each`; [`Error::Core`] if the judge or the model fails.
    pub fn score(
        &self,
        items: impl IntoIterator<Item = Result<BatchItem, Error>>,
        mut each: impl FnMut(ResultRow) -> Result<ControlFlow<()>, Error>,
    ) -> Result<RunSummary, Error> {
        let settings = RunSettings { unique_ids: false, ..RunSettings::default() };
        let runner = Runner::new(self.model, vec![self.judge as &dyn Judge<BatchItem>]).with_settings(settings);
        let items = items.into_iter().map(|item| item.map(|item| (item.id.clone(), item)));
        let summary = runner.try_run(items, |event| -> Result<ControlFlow<()>, Error> {
            match event {
                RunEvent::Item(result) => each(self.row(&result)?),
                _ => Ok(ControlFlow::Continue(())),
            }
        });
        summary.map_err(Error::of_run)
    }

    /// The row of one result.
    fn row(&self, result: &ItemResult<BatchItem>) -> Result<ResultRow, Error> {
        let mut row = ResultRow {
            id: result.id.clone(),
            score: None,
            status: SCORED.to_owned(),
            detail: None,
            tokens: None,
            input: result.item.input(),
            run: self.run.to_owned(),
            device: self.device.to_owned(),
            probabilities: None,
            logits: None,
        };
        let rounds = result.rounds(0);
        let reading = rounds.only().ok();
        row.tokens = reading.and_then(|reading| reading.prompt_tokens).and_then(|tokens| u32::try_from(tokens).ok());
        match result.verdicts.first() {
            Some(Verdict::Scored(score)) => {
                row.score = Some(score.value);
                if self.columns.probabilities {
                    let distribution = score.distribution.as_ref();
                    row.probabilities = distribution.map(|distribution| distribution.probabilities().to_vec());
                }
                if self.columns.logits {
                    let (_, step) =
                        self.judge.step(&rounds).map_err(|_| CoreError::NotRead { what: "logits of a score" })?;
                    row.logits = Some(step.logits.clone());
                }
            }
            Some(Verdict::Unscored(unscored)) => {
                row.status = unscored.reason.to_string();
                row.detail = Some(unscored.detail.clone());
            }
            None => return Err(CoreError::NotRead { what: "verdict on an item" }.into()),
        }
        Ok(row)
    }
}
