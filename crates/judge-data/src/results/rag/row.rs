use std::collections::BTreeMap;

use judge_core::Unscored;
use judge_core::lager::LayerTable;
use judge_core::rag::{JudgedSentence, RagFindings, RagMeasure, Sentence};
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::RagRecord;
use super::contexts::contexts;
use crate::results::entry::entry;
use crate::{Carry, Error, Fate, Human, Judged, OutputRow};

/// What was found of an answer from retrieved contexts: `{"id", "human"?, "faithfulness"?: {"mean", "share"}, …, "sentences"?: [{"start",
/// "end", "text", "supported", "claims"?, "human"?, "table"?}], "contexts"?: [{"relevance"?, "text"?}], "by_context"?: true, "label_mass"?,
/// "input_tokens"?, "unscored"?: {measure: {"reason", "detail"}}, …}`. Contexts have their texts where they are carried by name.
pub type RagRow = OutputRow<MeasuredRag>;

/// What was found of one answer.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct MeasuredRag {
    /// What was measured.
    pub findings: RagFindings,
    /// What people said of each sentence, a place for each rater; empty where nobody did.
    pub labels: Vec<Vec<Option<f64>>>,
    /// Tokens of all prompts, as far as the model counts them.
    pub input_tokens: Option<usize>,
    /// What stands in the column `contexts`, if it is carried.
    carried: Option<Value>,
    unscored: Option<Unscored>,
}

impl RagRow {
    /// The row of a record. One of which nothing could be measured is unscored, for the reason of the first measure.
    ///
    /// # Errors
    /// [`Error::FieldClash`] for a carried field that the row has one of its own for.
    pub fn new(
        record: RagRecord,
        findings: RagFindings,
        input_tokens: Option<usize>,
        carry: &Carry,
    ) -> Result<(Self, Fate), Error> {
        let RagRecord { id, human, labels, extra, .. } = record;
        let is_graded = !human.is_empty() || labels.iter().any(|given| !given.is_empty());
        let has_any = findings.measures.values().any(Result::is_ok);
        let unscored = findings.measures.values().find_map(|found| found.as_ref().err()).filter(|_| !has_any).cloned();
        let carried = extra.own(CONTEXTS).and_then(|json| serde_json::from_str(json).ok());
        let measured = MeasuredRag { findings, labels, input_tokens, carried, unscored };
        let (row, fate) = Self::of(id, Human::Numbers(human), measured, extra, carry)?;
        Ok((row, Fate { graded: is_graded, ..fate }))
    }
}

impl Judged for MeasuredRag {
    const KNOWN: &'static [&'static str] = &[
        "id",
        "human",
        "faithfulness",
        "answer_relevancy",
        "context_precision",
        "context_recall",
        "context_relevance",
        "correctness",
        "sentences",
        "contexts",
        "by_context",
        "label_mass",
        "input_tokens",
        "unscored",
    ];

    fn unscored(&self) -> Option<&Unscored> {
        self.unscored.as_ref()
    }
}

/// A sentence as a row has it.
#[derive(Serialize)]
struct WrittenSentence<'s> {
    start: usize,
    end: usize,
    text: &'s str,
    supported: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    claims: Option<f64>,
    #[serde(skip_serializing_if = "Human::is_empty")]
    human: Human,
    #[serde(skip_serializing_if = "Option::is_none")]
    table: Option<&'s LayerTable>,
}

/// The output's own field of contexts.
const CONTEXTS: &str = "contexts";

/// A context as a row has it.
#[derive(Serialize)]
struct WrittenContext<'c> {
    /// `null` where it was asked for and could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    relevance: Option<Option<f64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'c str>,
}

impl Serialize for MeasuredRag {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let RagFindings { measures, sentences, relevance, by_context, label_mass, .. } = &self.findings;
        let mut map = serializer.serialize_map(None)?;
        for measure in RagMeasure::ALL {
            entry(&mut map, measure.as_str(), measures.get(&measure).and_then(|found| found.as_ref().ok()))?;
        }
        if !sentences.is_empty() {
            let all =
                sentences.iter().enumerate().map(|(at, JudgedSentence { sentence, supported, claims, table })| {
                    let human = Human::Numbers(self.labels.get(at).cloned().unwrap_or_default());
                    let Sentence { chars, text } = sentence;
                    let (start, end, supported, claims) = (chars.start, chars.end, *supported, *claims);
                    WrittenSentence { start, end, text, supported, claims, human, table: table.as_ref() }
                });
            map.serialize_entry("sentences", &all.collect::<Vec<_>>())?;
        }
        let texts = self.carried.as_ref().map(contexts);
        match (&self.carried, texts) {
            // No contexts, which are carried as they are.
            (Some(odd), Some(None)) if relevance.is_empty() => map.serialize_entry(CONTEXTS, odd)?,
            (None, _) if relevance.is_empty() => {}
            (_, texts) => {
                let texts = texts.flatten().unwrap_or_default();
                let all = (0..relevance.len().max(texts.len())).map(|at| WrittenContext {
                    relevance: relevance.get(at).copied(),
                    text: texts.get(at).map(String::as_str),
                });
                map.serialize_entry(CONTEXTS, &all.collect::<Vec<_>>())?;
            }
        }
        entry(&mut map, "by_context", by_context.then_some(true))?;
        entry(&mut map, "label_mass", label_mass.as_ref())?;
        entry(&mut map, "input_tokens", self.input_tokens)?;
        let without = measures.iter().filter_map(|(measure, found)| Some((measure, found.as_ref().err()?)));
        let without: BTreeMap<&RagMeasure, &Unscored> = without.collect();
        entry(&mut map, "unscored", Some(without).filter(|without| !without.is_empty()))?;
        map.end()
    }
}
