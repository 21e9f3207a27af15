//! The rows: how they are read, checked and written, and what is said of them.

use anyhow::Result;
use judge_core::decision::{DecisionOrigin, DecisionTable, Questions};
use judge_core::{ItemResult, Outcome};
use judge_data::{CarryCheck, Counts, DecisionRecord, DecisionRow, Fate, Input, RunRecord};

use super::cli::Cli;
use crate::missing_fields::Unread;
use crate::terminal::console::{say, usage};
use crate::terminal::options::offered;

/// What a run leaves beside its rows.
pub(super) struct Done {
    /// What weights that are fitted on the rows belong to, where they are to be fitted.
    pub(super) origin: Option<DecisionOrigin>,
    /// What became of the rows.
    pub(super) counts: Counts,
}

impl Cli {
    /// The rows of the input.
    pub(super) fn records(
        &self,
        input: &Input,
    ) -> Result<impl Iterator<Item = Result<DecisionRecord, judge_data::Error>> + use<>> {
        let columns = self.input.columns.clone().unwrap_or_default();
        Ok(DecisionRecord::all(input, self.model.limit, &columns)?)
    }

    /// Reads the whole input before any model work: how many rows there are, and whether any has labels. All must have questions.
    pub(super) fn check_rows(&self, input: &Input, has_questions: bool) -> Result<(usize, bool)> {
        let (mut rows, mut unread, mut without, mut has_labels) = (0, Unread::default(), 0, false);
        let (mut no_labels, mut carried) = (Unread::default(), CarryCheck::new(&self.carry, DecisionRow::KNOWN));
        for record in self.records(input)? {
            let record = record?;
            unread.note(&record.id, record.unread.as_ref().map(|why| why.detail.clone()));
            no_labels.note(&record.id, record.no_labels);
            has_labels |= !record.labels.is_empty();
            without += usize::from(record.questions.is_none() && record.unread.is_none());
            carried.see_fields(record.extra)?;
            rows += 1;
        }
        if rows == 0 {
            return Err(usage(format!("{} has no rows", input.path().display())));
        }
        if let Some((id, why)) = unread.all().filter(|_| input.part().is_none()) {
            let what = format!("{}: no row can be asked about; the first is {id}: {why}", input.path().display());
            let hint = offered(["if the states are in another column: --columns state=NAME".to_owned()]);
            return Err(usage([Some(what), hint].into_iter().flatten().collect::<Vec<_>>().join("\n")));
        }
        carried.finish(input)?;
        unread.tell_that("cannot be asked about and are written as unscored");
        no_labels.tell_that("have labels that cannot be read and are left out");
        if !has_questions && without > 0 {
            let what =
                format!("{without} of {rows} rows have no `questions`; --questions has those for all rows without");
            return Err(usage(what));
        }
        Ok((rows, has_labels))
    }

    /// The row of a result; `asked` are the questions for rows without their own, and `tables` finds the label logits of all layers.
    pub(super) fn row(
        &self,
        result: &ItemResult<DecisionRecord>,
        asked: Option<&Questions>,
        tables: impl FnOnce(&Questions) -> Result<Vec<DecisionTable>>,
    ) -> Result<(DecisionRow, Fate)> {
        let tokens = |outcome: &Outcome| outcome.reading().ok().and_then(|reading| reading.prompt_tokens);
        let input_tokens = result.rounds(0).outcomes().filter_map(tokens).reduce(|sum, tokens| sum + tokens);
        let verdict = &result.verdicts[0];
        let (mut answered, mut of_layers) = (Vec::new(), Vec::new());
        if let (Some(_), Some(questions)) = (verdict.score(), result.item.questions.as_ref().or(asked)) {
            answered = questions.answers(verdict)?;
            of_layers = tables(questions)?;
        }
        Ok(DecisionRow::new(result.item.clone(), verdict, answered, of_layers, input_tokens, &self.carry)?)
    }

    /// That there is nothing left to do.
    pub(super) fn say_complete(&self, record: &RunRecord, rows: usize) -> Result<()> {
        let path = self.output.output.display();
        say(format_args!("{path} is complete: {} of {rows} rows answered; nothing to do", record.counts.scored))
    }

    /// How many rows were answered, of all.
    pub(super) fn say_counts(&self, counts: &Counts, rows: usize) -> Result<()> {
        say(format_args!("{} of {rows} rows answered -> {}", counts.scored, self.output.output.display()))
    }
}
