//! The rows: how they are checked and written.

use anyhow::Result;
use judge_core::ItemResult;
use judge_core::decision::{DecisionTable, Questions};
use judge_data::{Carry, Checked, DecisionRecord, DecisionRecords, DecisionRow, Fate, Unread};

use judge_cli::missing_fields::tell_unread_that;
use judge_cli::row_job::{RowJob, refuse_unusable};
use judge_cli::terminal::console::usage;
use judge_cli::terminal::options::offered;

/// Reads the whole input before any model work; also whether any row has labels. All must have questions.
pub(super) fn check(job: &RowJob<DecisionRecords>, has_questions: bool) -> Result<(Checked, bool)> {
    let (mut without, mut has_labels, mut no_labels) = (0, false, Unread::default());
    let checked = job.job.check(DecisionRow::KNOWN, |record| {
        no_labels.note(&record.id, record.no_labels.clone());
        has_labels |= !record.labels.is_empty();
        without += usize::from(record.questions.is_none() && record.unread.is_none());
        anyhow::Ok(None)
    })?;
    let hint = offered(["if the states are in another column: --columns state=NAME".to_owned()]);
    refuse_unusable(&job.job.source, &checked, "can be asked about", hint)?;
    tell_unread_that(&checked.unread, "cannot be asked about and are written as unscored");
    tell_unread_that(&no_labels, "have labels that cannot be read and are left out");
    if !has_questions && without > 0 {
        let rows = checked.rows;
        let what = format!("{without} of {rows} rows have no `questions`; --questions has those for all rows without");
        return Err(usage(what));
    }
    Ok((checked, has_labels))
}

/// The row of a result; `asked` are the questions for rows without their own, and `tables` finds the label logits of all layers.
pub(super) fn row(
    result: &ItemResult<DecisionRecord>,
    asked: Option<&Questions>,
    carry: &Carry,
    tables: impl FnOnce(&Questions) -> Result<Vec<DecisionTable>>,
) -> Result<(DecisionRow, Fate)> {
    let input_tokens = result.rounds(0).prompt_tokens();
    let verdict = &result.verdicts[0];
    let (mut answered, mut of_layers) = (Vec::new(), Vec::new());
    if let (Some(_), Some(questions)) = (verdict.score(), result.item.questions.as_ref().or(asked)) {
        answered = questions.answers(verdict)?;
        of_layers = tables(questions)?;
    }
    Ok(DecisionRow::new(result.item.clone(), verdict, answered, of_layers, input_tokens, carry)?)
}
