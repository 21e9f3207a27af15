//! The rows: how they are checked and written.

use std::collections::BTreeSet;

use anyhow::Result;
use judge_core::ItemResult;
use judge_core::decision::{DecisionTable, QuestionKind, Questions};
use judge_data::{Carry, Checked, DecisionRecord, DecisionRecords, DecisionRow, Fate, Unread};

use judge_cli::missing_fields::tell_unread_that;
use judge_cli::row_job::{RowJob, refuse_unusable};
use judge_cli::terminal::console::usage;
use judge_cli::terminal::options::offered;

/// Reads the whole input before any model work. All rows must have questions, of their own or `asked`, and each name in `named`, of
/// questions that bars are for, must be that of one. Also the kinds of question that are asked.
pub(super) fn check(
    job: &RowJob<DecisionRecords>,
    asked: Option<&Questions>,
    named: &BTreeSet<&str>,
) -> Result<(Checked, BTreeSet<QuestionKind>)> {
    let (mut without, mut no_labels, mut has_state) = (0, Unread::default(), false);
    let mut unknown: BTreeSet<&str> = named.clone();
    let mut kinds = BTreeSet::new();
    let is_of = |questions: Option<&Questions>, name: &str| questions.is_some_and(|all| all.get(name).is_some());
    unknown.retain(|name| !is_of(asked, name));
    let checked = job.job.check(DecisionRow::KNOWN, |record| {
        no_labels.note(&record.id, record.no_labels.clone());
        has_state |= !record.state.is_null();
        unknown.retain(|name| !is_of(record.questions.as_ref(), name));
        let questions = record.questions.as_ref().or(asked);
        kinds.extend(questions.into_iter().flat_map(Questions::iter).map(|(_, question)| question.kind()));
        without += usize::from(record.questions.is_none() && record.unread.is_none());
        anyhow::Ok(None)
    })?;
    let hint = || offered(["if the states are in another column: --columns state=NAME".to_owned()]);
    refuse_unusable(&job.job.source, &checked, "can be asked about", if has_state { None } else { hint() })?;
    tell_unread_that(&checked.unread, "cannot be asked about and are written as unscored");
    tell_unread_that(&no_labels, "have labels that cannot be read and are left out");
    if asked.is_none() && without > 0 {
        let rows = checked.rows;
        let what = format!("{without} of {rows} rows have no `questions`; --questions has those for all rows without");
        return Err(usage(what));
    }
    if let Some(name) = unknown.first() {
        let known: Vec<&str> = asked.into_iter().flat_map(Questions::iter).map(|(name, _)| name).collect();
        let known = if known.is_empty() { String::new() } else { format!("; --questions has {}", known.join(", ")) };
        return Err(usage(format!("--require: no row is asked the question {name:?}{known}")));
    }
    Ok((checked, kinds))
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
