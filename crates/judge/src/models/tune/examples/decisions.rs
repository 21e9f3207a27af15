//! Labelled answers to typed questions as examples, in the prompt and with the options that `judge decide` reads.

use anyhow::Result;
use judge_core::decision::{Asked, DecisionItem, DecisionJudge, Question, Questions};
use judge_core::{Judge, JudgeError};
use judge_data::{DecisionRecord, Input};
use judge_models::train::DecisionExample;
use serde_json::Value;

use super::{Examples, Made, Maker, NO_LABEL, One, gathered};

impl Maker<'_> {
    /// An example for each label of each row. A label that names no answer costs itself, as `judge decide` counts it.
    pub(in crate::models::tune) fn decisions(
        &self,
        input: &Input,
        judge: &DecisionJudge,
    ) -> Result<Examples<DecisionExample>> {
        let records = DecisionRecord::all(input, self.limit, &self.cli.input.columns.clone().unwrap_or_default())?;
        let rows = records.flat_map(|record| match record {
            Ok(record) => self.labelled(&record, judge).into_iter().map(Ok).collect(),
            Err(error) => vec![Err(error.into())],
        });
        gathered(input, ["label", NO_LABEL], rows)
    }

    /// What each label of a row makes, with the ids of the row and the question.
    fn labelled(&self, record: &DecisionRecord, judge: &DecisionJudge) -> Vec<(String, Made<DecisionExample>)> {
        let id = record.id.to_string();
        if let Some(why) = &record.unread {
            return vec![(id, Err(why.detail.clone()))];
        }
        if record.labels.is_empty() {
            return vec![(id, Ok(Vec::new()))];
        }
        let of_label = |(name, label): (&String, &Value)| {
            let made = judge.questions(record).map_err(in_words).and_then(|questions| {
                let question = questions.get(name).ok_or("no question of this name is asked")?;
                Ok(vec![self.decision(&record.state, name, question, label, judge)?])
            });
            (format!("{id}, {name}"), made)
        };
        record.labels.iter().map(of_label).collect()
    }

    fn decision(
        &self,
        state: &Value,
        name: &str,
        question: &Question,
        label: &Value,
        judge: &DecisionJudge,
    ) -> Result<One<DecisionExample>, String> {
        let form = &judge.settings().form;
        let shares = question.target(label).map_err(|problem| problem.to_string())?;
        // A question is put alone: what else is asked about a state changes no prompt.
        let questions = Questions::one(name, question.clone()).map_err(|problem| problem.to_string())?;
        let item = DecisionItem { state: state.clone(), questions };
        let requests = judge.ask(&item).map_err(in_words)?;
        let (Some(request), Some(read)) =
            (requests.first(), requests.first().and_then(|request| request.want.labels.first()))
        else {
            return Err("it has more options than there are labels of one token for".to_owned());
        };
        // The order of the prompt is the model's, that of the shares the question's.
        let options = question.options();
        let place = |option: &String| options.iter().position(|known| known == option);
        let asked = Asked::new(name, question, form);
        let target = asked.options.iter().filter_map(place).map(|place| shares[place] as f32).collect();
        let prompt = self.encoded(&request.prompt)?;
        let n = prompt.len();
        let temperature = *form.temperature.get(question.kind()) as f32;
        Ok((DecisionExample { prompt, options: read.tokens.clone(), target, temperature }, n, 0.0))
    }
}

fn in_words(error: JudgeError) -> String {
    match error {
        JudgeError::Unscored(why) => why.detail,
        JudgeError::Failed(source) => source.to_string(),
    }
}
