//! Rows of a judge that labels records aspect by aspect, for probes to learn from.

use judge_core::{ItemResult, Unscored};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::results::entry::entry;
use crate::results::verdict_row::JudgedResponse;
use crate::rows::columns::INPUT;
use crate::{Carry, Error, Fate, Human, Judged, Numbered, OutputRow, Record};

/// The label that a judge gives one aspect of a response:
/// `{"id", "instruction", "input"?, "response", "rubric"?, "reference"?, "aspect", "score", "text"?, "labels"?, "probabilities"?, "label_mass"?, "confidence"?, "people"?, …}`, or with `unscored` in the place of `score`.
///
/// A reader of graded rows takes `score` for the grade. What people gave is therefore called `people` here:
/// as `human` it would be read in the label's place.
pub type LabelRow = OutputRow<JudgedAspect>;

/// What a judge says of one aspect of a response.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct JudgedAspect {
    /// The record that was labelled: of the kind [`Record::Graded`], or [`Record::Unread`], of which there are no texts.
    /// It has no other fields but the `input` that its instruction is about.
    pub record: Record,
    /// What of the response was graded.
    pub aspect: String,
    /// The grade, or why there is none.
    pub judged: JudgedResponse,
}

impl LabelRow {
    /// The row of a result about one aspect of a [`GradedRecord`](crate::GradedRecord).
    ///
    /// # Errors
    /// [`Error::FieldClash`] for a carried field that the row has one of its own for;
    /// [`Error::Core`] for a record of another kind, or a result without a verdict.
    pub fn new(result: ItemResult<Numbered>, aspect: &str, carry: &Carry) -> Result<(Self, Fate), Error> {
        let judged = JudgedResponse::of(&result)?;
        let mut record = result.item.record;
        if !matches!(record, Record::Graded(_) | Record::Unread(_)) {
            return Err(judge_core::Error::NotRead { what: "response to one instruction" }.into());
        }
        let mut extra = std::mem::take(record.extra_mut());
        if record.columns().is_some_and(|columns| columns.input(&extra).is_some()) {
            *record.extra_mut() = extra.clone().retain(|name| name == INPUT);
            extra = extra.retain(|name| name != INPUT);
        }
        let graded = !record.raters().is_empty();
        let judged = JudgedAspect { record, aspect: aspect.to_owned(), judged };
        let (row, fate) = Self::of(result.id, Human::Numbers(Vec::new()), judged, extra, carry)?;
        Ok((row, Fate { graded, ..fate }))
    }
}

impl Judged for JudgedAspect {
    /// With the names under which a reader of graded rows would look for the grade first.
    const KNOWN: &'static [&'static str] = &[
        "id",
        "instruction",
        "response",
        "rubric",
        "reference",
        "aspect",
        "score",
        "scores",
        "human",
        "people",
        "text",
        "probabilities",
        "labels",
        "label_mass",
        "confidence",
        "unscored",
    ];

    fn unscored(&self) -> Option<&Unscored> {
        self.judged.unscored()
    }
}

impl Serialize for JudgedAspect {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { record, aspect, judged } = self;
        let mut map = serializer.serialize_map(None)?;
        if let Record::Graded(record) = record {
            map.serialize_entry("instruction", &record.instruction)?;
            for (name, input) in record.extra.raw() {
                map.serialize_entry(name, input)?;
            }
            map.serialize_entry("response", &record.response)?;
            for (name, text) in [("rubric", &record.rubric), ("reference", &record.reference)] {
                entry(&mut map, name, text.as_ref())?;
            }
        }
        map.serialize_entry("aspect", aspect)?;
        judged.entries(&mut map)?;
        let people = Human::Numbers(record.raters().into_owned());
        entry(&mut map, "people", Some(people).filter(|people| !people.is_empty()))?;
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use judge_core::testing::ScriptedBackbone;
    use judge_core::{
        Judge, Runner,
        prompted::{PromptFamily, WrittenJudge},
    };
    use serde_json::{Value, json};

    use super::*;
    use crate::{DatasetOptions, GradedRecord, Row, Rows};

    fn row(input: &Value, carry: &Carry) -> Result<Value, Error> {
        let row: Row = Rows::new(input.to_string().as_bytes(), "in.jsonl")?.next().expect("a row")?;
        let record = Record::Graded(GradedRecord::from_row(row, 0, &DatasetOptions::default())?);
        let model = ScriptedBackbone::new(2).with_reply(|prompt| match prompt.contains("good") {
            true => r#"{"reason": "so", "score": 4}"#.to_owned(),
            false => "no".to_owned(),
        });
        let judge = WrittenJudge::new(PromptFamily::built_in_on("single-json", Some(5))?);
        let judges: Vec<&dyn Judge<Numbered>> = vec![&judge];
        let result = Runner::new(&model, judges).collect([(record.id().clone(), Numbered { row: 0, record })])?;
        let (row, _) = LabelRow::new(result.into_iter().next().expect("a result"), "fluency", carry)?;
        Ok(serde_json::to_value(row).expect("JSON"))
    }

    #[test]
    fn a_label_is_a_graded_row_of_its_own() {
        let input = json!({"id": 7, "question": "q", "output": "good", "human": [1, 2], "topic": "t", "split": "test"});
        assert_eq!(
            row(&input, &Carry::All).unwrap(),
            json!({"id": 7, "instruction": "q", "response": "good", "aspect": "fluency", "score": 4.0, "text": "{\"reason\": \"so\", \"score\": 4}", "people": [1.0, 2.0], "topic": "t", "split": "test"})
        );
        // What an instruction is about is of the row, whatever is carried.
        let input = json!({"id": 7, "instruction": "q", "input": "good?", "output": "so"});
        for carry in [Carry::All, Carry::Only(Vec::new())] {
            assert_eq!(
                row(&input, &carry).unwrap(),
                json!({"id": 7, "instruction": "q", "input": "good?", "response": "so", "aspect": "fluency", "score": 4.0, "text": "{\"reason\": \"so\", \"score\": 4}"})
            );
        }
        let input = json!({"id": 8, "instruction": "q", "response": "bad", "rubric": "r"});
        let found = row(&input, &Carry::All).unwrap();
        assert_eq!(
            (&found["unscored"]["reason"], &found["rubric"], &found["text"]),
            (&json!("unparsed"), &json!("r"), &json!("no"))
        );
        assert_eq!((found.get("score"), found.get("people")), (None, None));
    }

    #[test]
    fn what_would_be_read_in_the_labels_place_is_refused() {
        for field in ["aspect", "people", "text"] {
            let mut input = json!({"id": 8, "instruction": "q", "response": "good", "human": 3});
            input[field] = json!("x");
            let error = row(&input, &Carry::All).unwrap_err().to_string();
            assert!(error.contains(&format!("{field:?}")), "{error}");
            assert!(row(&input, &Carry::Only(Vec::new())).is_ok());
        }
        let both = json!({"id": 8, "instruction": "q", "response": "good", "human": 3, "scores": [3]});
        assert!(matches!(row(&both, &Carry::All), Err(Error::FieldClash { field }) if field == "scores"));
    }
}
