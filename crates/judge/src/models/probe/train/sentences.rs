//! Rows of whether contexts support a sentence: what `judge rag` asks about it, and 1 where people call it supported, else 0.

use std::borrow::Cow;
use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use judge_cli::args::decisions::DecisionPromptArgs;
use judge_core::JudgeError;
use judge_core::rag::{sentence_prompt_settings, sentence_prompts};
use judge_data::{Input, RagRecord, Settings};
use judge_metrics::means::mean_of_raters;
use judge_probe::training::GradedRow;

use super::rows::{Data, Reading};
use super::verdicts::{Judged, StatesOf};

/// What the rows are called.
const FAITHFULNESS: &str = "faithfulness";

impl Judged {
    /// A row for each sentence that people marked, but for those on which they are divided evenly. Those of one row's contexts stay together.
    pub fn of_sentences(
        input: &Input,
        asked: &DecisionPromptArgs,
        reading: &Reading<'_>,
    ) -> Result<(Data, Option<Self>)> {
        let (decisions, _) = asked.settings(reading.model)?;
        let mut data = Data::default();
        let mut rows = Vec::new();
        for record in RagRecord::all(input, reading.model.limit, reading.columns)? {
            let record = record?;
            let prompts = match sentence_prompts(&record.rag, &decisions) {
                Ok(prompts) => prompts,
                Err(JudgeError::Unscored(why)) => {
                    data.unread.note(&record.id, Some(why.detail));
                    continue;
                }
                Err(JudgeError::Failed(error)) => return Err(anyhow::Error::from_boxed(error)),
            };
            let of_record = |name: &str| record.text(name).map(Cow::into_owned);
            let belonging = match reading.belonging(&record.extra, of_record) {
                Ok(belonging) => belonging,
                Err(error) => {
                    data.unread.note(&record.id, Some(error.in_row()?));
                    continue;
                }
            };
            let RagRecord { id, rag, labels, no_grade, .. } = record;
            data.unread.note(&id, no_grade.or_else(|| rag.unread.first().map(|(_, why)| why.clone())));
            let contexts = rag.contexts.join("\n\n");
            for (at, ((prompt, given), sentence)) in
                prompts.into_iter().zip(&labels).zip(rag.response_sentences().iter()).enumerate()
            {
                let given: Vec<f64> = given.iter().flatten().copied().collect();
                let Some(mean) = mean_of_raters(&given).filter(|&mean| mean != 0.5) else {
                    data.ungraded += 1;
                    continue;
                };
                let response = sentence.text.clone();
                let (question, group) = (contexts.clone(), contexts.clone());
                let row = GradedRow::new(format!("{id}/{at}"), prompt, f64::from(u8::from(mean > 0.5)));
                rows.push(belonging.clone().of(GradedRow { response, question, group, ..row }));
            }
        }
        ensure!(
            !rows.is_empty(),
            "{}: no row has contexts and a response with sentences that people marked: expected `sentences` with `start`, `end` and `human`",
            input.path().display()
        );
        data.rows = BTreeMap::from([(FAITHFULNESS.to_owned(), rows)]);
        let settings = Settings::from([("sentences".to_owned(), sentence_prompt_settings(&decisions))]);
        Ok((data, Some(Self { own: None, settings, states_of: StatesOf::Any })))
    }
}
