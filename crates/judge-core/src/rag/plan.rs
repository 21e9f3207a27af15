//! What is asked about an item, and in which words.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::{Value, json};

use super::{RagField, RagItem, RagMeasure, RagSettings, Sentence, sentences};
use crate::decision::{Asked, DecisionSettings, Question, Questions};
use crate::{Error, JudgeError, Prompt, Reason, Unscored};

/// Changes with the wording.
pub(super) const VERSION: u32 = 1;

/// A yes-or-no question; sentences and contexts by their numbers, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Ask {
    /// Whether the contexts support a sentence of the response.
    Supported(usize),
    /// Whether a sentence of the response claims anything.
    Claims(usize),
    /// Whether the response answers the question.
    Answers,
    /// Whether a context is of use for the reference.
    Useful(usize),
    /// Whether a context helps to answer the question.
    Relevant(usize),
    /// Whether the contexts support a sentence of the reference.
    Recalled(usize),
    /// Whether the reference says what a sentence of the response says.
    InReference(usize),
    /// Whether the response says what a sentence of the reference says.
    InResponse(usize),
}

/// The name of a question, which is its own.
pub(super) fn name_of(ask: Ask) -> String {
    format!("{ask:?}")
}

/// Questions about one state.
pub(super) struct Group {
    pub(super) state: String,
    pub(super) asks: Vec<Ask>,
    pub(super) questions: Questions,
}

/// The prompts by which a [`RagJudge`](super::RagJudge) with these settings of decisions asks whether the contexts support each sentence of
/// a response, in their order: what probes learn from. None where there is nothing to ask.
///
/// # Errors
/// As those of the prompt.
pub fn sentence_prompts(item: &RagItem, decisions: &DecisionSettings) -> Result<Vec<Prompt>, JudgeError> {
    let settings = RagSettings { measures: vec![RagMeasure::Faithfulness], ..RagSettings::default() };
    let Some(group) = Plan::new(&settings, item).of_all_contexts()? else { return Ok(Vec::new()) };
    let asked: Vec<Asked> =
        group.questions.iter().map(|(name, question)| Asked::new(name, question, &decisions.form)).collect();
    Ok(decisions.prompt.prompts(&Value::String(group.state), &asked)?)
}

/// What decides about these prompts, as JSON.
#[must_use]
pub fn sentence_prompt_settings(decisions: &DecisionSettings) -> Value {
    json!({"wording": VERSION, "prompt": decisions.prompt.settings(), "labels": decisions.form.labels.noul})
}

/// All that is to be asked about an item.
pub(super) struct Plan<'i> {
    item: &'i RagItem,
    /// What is to be measured; why it cannot be, if so.
    pub(super) measures: BTreeMap<RagMeasure, Option<Unscored>>,
    /// The sentences of the response, where they are asked about.
    pub(super) response: Cow<'i, [Sentence]>,
    /// Those of the reference.
    pub(super) reference: Vec<Sentence>,
    /// Whether each context is of use for the reference, and not for the question alone.
    pub(super) by_reference: bool,
    /// Whether what claims nothing is left out.
    pub(super) claims_only: bool,
}

impl<'i> Plan<'i> {
    pub(super) fn new(settings: &RagSettings, item: &'i RagItem) -> Self {
        let by_reference = item.lacks(RagField::Reference).is_none();
        let why = |measure: RagMeasure| measure.lacks(item).map(|why| Unscored::new(Reason::Missing, why));
        let measures: BTreeMap<_, _> = settings.measures.iter().map(|&measure| (measure, why(measure))).collect();
        let is_on = |measure| matches!(measures.get(&measure), Some(None));
        let response = match is_on(RagMeasure::Faithfulness) || is_on(RagMeasure::Correctness) {
            true => item.response_sentences(),
            false => Cow::Borrowed(&[][..]),
        };
        let reference = match (&item.reference, is_on(RagMeasure::ContextRecall) || is_on(RagMeasure::Correctness)) {
            (Some(reference), true) => sentences(reference),
            _ => Vec::new(),
        };
        Self { item, measures, response, reference, by_reference, claims_only: settings.claims_only }
    }

    /// Whether this is measured.
    pub(super) fn is_on(&self, measure: RagMeasure) -> bool {
        matches!(self.measures.get(&measure), Some(None))
    }

    /// The questions about all contexts together.
    pub(super) fn of_all_contexts(&self) -> Result<Option<Group>, Error> {
        self.of_contexts(0..self.item.contexts.len())
    }

    /// The questions about each context by itself.
    pub(super) fn of_each_context(&self) -> Result<Vec<Group>, Error> {
        let of = |at| self.of_contexts(at..at + 1).transpose();
        (0..self.item.contexts.len()).filter_map(of).collect()
    }

    fn of_contexts(&self, contexts: Range<usize>) -> Result<Option<Group>, Error> {
        let mut asks = Vec::new();
        if self.is_on(RagMeasure::Faithfulness) {
            asks.extend((0..self.response.len()).map(Ask::Supported));
        }
        let is_precise = self.is_on(RagMeasure::ContextPrecision);
        if is_precise && self.by_reference {
            asks.extend(contexts.clone().map(Ask::Useful));
        }
        if self.is_on(RagMeasure::ContextRelevance) || (is_precise && !self.by_reference) {
            asks.extend(contexts.clone().map(Ask::Relevant));
        }
        if self.is_on(RagMeasure::ContextRecall) {
            asks.extend((0..self.reference.len()).map(Ask::Recalled));
        }
        let is_one = contexts.len() == 1;
        let mut state = String::new();
        for at in contexts {
            let number = if is_one { String::new() } else { format!(" {}", at + 1) };
            state += &format!("Passage{number}:\n{}\n\n", self.item.contexts[at].trim_end());
        }
        self.group(state + &self.question(), asks, is_one)
    }

    /// The questions that are not about contexts, by state.
    pub(super) fn of_texts(&self) -> Result<Vec<Group>, Error> {
        let mut of_response = Vec::new();
        if self.is_on(RagMeasure::AnswerRelevancy) {
            of_response.push(Ask::Answers);
        }
        let mut groups = Vec::new();
        if self.is_on(RagMeasure::Correctness) {
            of_response.extend((0..self.reference.len()).map(Ask::InResponse));
            let asks = (0..self.response.len()).map(Ask::InReference).collect();
            let reference = self.item.reference.as_deref().unwrap_or_default();
            groups.extend(self.group(format!("{}Answer:\n{}", self.question(), reference.trim_end()), asks, true)?);
        }
        let response = self.item.response.as_deref().unwrap_or_default();
        groups.extend(self.group(format!("{}Answer:\n{}", self.question(), response.trim_end()), of_response, true)?);
        if self.claims_only && self.is_on(RagMeasure::Faithfulness) {
            for (at, sentence) in self.response.iter().enumerate() {
                groups.extend(self.group(format!("Sentence:\n{}", sentence.text), vec![Ask::Claims(at)], true)?);
            }
        }
        Ok(groups)
    }

    fn question(&self) -> String {
        match &self.item.question {
            Some(question) => format!("Question:\n{}\n\n", question.trim_end()),
            None => String::new(),
        }
    }

    fn group(&self, state: String, asks: Vec<Ask>, is_one: bool) -> Result<Option<Group>, Error> {
        if asks.is_empty() {
            return Ok(None);
        }
        let question = |ask: &Ask| (name_of(*ask), Question::noul(self.words(*ask, is_one)));
        let questions = Questions::new(asks.iter().map(question))?;
        Ok(Some(Group { state: state.trim_end().to_owned(), asks, questions }))
    }

    /// A question in words; `is_one`: there is only one passage.
    fn words(&self, ask: Ask, is_one: bool) -> String {
        let passage = |at: usize| if is_one { "the passage".to_owned() } else { format!("passage {}", at + 1) };
        let do_passages = if is_one { "Does the passage" } else { "Do the passages" };
        let supported = |sentence: &str| {
            format!(
                "{do_passages} support this statement? What is known from elsewhere does not count.\nStatement: {sentence}"
            )
        };
        let says = |sentence: &str| format!("Does the answer say what this statement says?\nStatement: {sentence}");
        match ask {
            Ask::Supported(at) => supported(&self.response[at].text),
            Ask::Recalled(at) => supported(&self.reference[at].text),
            Ask::Useful(at) => format!(
                "Does {} have something that this answer to the question rests on?\nAnswer: {}",
                passage(at),
                self.item.reference.as_deref().unwrap_or_default().trim()
            ),
            Ask::Relevant(at) => format!("Does {} help to answer the question?", passage(at)),
            Ask::Answers => "Does the answer address the question? Whether it is right does not matter; one that evades the question \
                             or talks of something else does not."
                .to_owned(),
            Ask::InReference(at) => says(&self.response[at].text),
            Ask::InResponse(at) => says(&self.reference[at].text),
            Ask::Claims(_) => "Does the sentence claim something that can be right or wrong? A greeting, an offer of help or an \
                               announcement of what follows does not."
                .to_owned(),
        }
    }
}
