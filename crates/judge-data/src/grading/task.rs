use std::borrow::Cow;
use std::collections::BTreeSet;
use std::str::FromStr;

use judge_core::decision::{Question, Questions};
use judge_core::rag::RagField;
use serde_json::{Value, json};

use super::record::fields_of;
use super::{GradingRecord, Shown};
use crate::{Field, PairVerdict};

/// What people are asked about a row.
#[derive(Clone, Debug, PartialEq)]
pub enum GradingTask {
    /// A point of a scale.
    Scale(GradingScale),
    /// Yes or no, written as 1 and 0.
    YesNo,
    /// Which of two responses is better, or neither.
    Pairs,
    /// Typed questions: those of the row, or else these.
    Questions(Option<Questions>),
    /// Of each sentence of a response whether its contexts support it.
    Sentences,
}

/// Whole numbers, some of which have a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GradingScale {
    /// The first and the last.
    pub points: [u32; 2],
    /// The word of each point, in their order; empty where there is none.
    pub words: Vec<String>,
}

/// One thing that is asked: exactly one of its options is the answer.
#[derive(Clone, Debug, PartialEq)]
pub struct GradingGroup {
    /// What it is called in the file: a question's name, or a sentence's number from 0.
    pub name: String,
    /// What is asked, or the sentence; `None` where the task says it.
    pub text: Option<String>,
    /// The options, in the order of the file.
    pub options: Vec<GradingOption>,
}

/// A possible answer.
#[derive(Clone, Debug, PartialEq)]
pub struct GradingOption {
    /// As it is written.
    pub value: Value,
    /// As it is shown.
    pub label: String,
    /// What it means, where that is said.
    pub about: Option<String>,
}

impl GradingOption {
    fn new(value: impl Into<Value>, label: impl Into<String>, about: Option<String>) -> Self {
        Self { value: value.into(), label: label.into(), about }
    }
}

/// Most points of a scale: more have no key each.
const MOST_POINTS: u32 = 11;

impl FromStr for GradingScale {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("expected two whole numbers with a dash between them, such as 1-5, found {text:?}");
        let (first, last) = text.split_once('-').ok_or_else(wrong)?;
        let number = |text: &str| text.trim().parse::<u32>().map_err(|_| wrong());
        let points = [number(first)?, number(last)?];
        if points[0] >= points[1] || points[1] - points[0] >= MOST_POINTS {
            return Err(format!("expected a scale that rises and has at most {MOST_POINTS} points, found {text:?}"));
        }
        let words = (points[0]..=points[1]).map(|_| String::new()).collect();
        Ok(Self { points, words })
    }
}

impl GradingScale {
    /// The same with words: one for each point, or `POINT=WORD` for some.
    ///
    /// # Errors
    /// What was expected, and what was found.
    pub fn with_words(mut self, words: &[String]) -> Result<Self, String> {
        let [first, last] = self.points;
        if words.iter().all(|word| word.contains('=')) {
            let mut named = BTreeSet::new();
            for word in words {
                let (point, word) = word.split_once('=').unwrap_or_default();
                let number = point.trim().parse::<u32>().ok();
                let place = number.and_then(|number| number.checked_sub(first));
                let place = place.and_then(|place| self.words.get_mut(place as usize));
                let place = place.ok_or_else(|| format!("expected a point from {first} to {last}, found {point:?}"))?;
                word.trim().clone_into(place);
                if !named.insert(number) {
                    return Err(format!("expected one word for each point, found two for {}", point.trim()));
                }
            }
        } else if words.len() == self.words.len() {
            self.words = words.iter().map(|word| word.trim().to_owned()).collect();
        } else {
            let (points, found) = (self.words.len(), words.len());
            return Err(format!(
                "expected a word for each of {points} points, or POINT=WORD for some, found {found} words"
            ));
        }
        Ok(self)
    }
}

impl GradingTask {
    /// What a run records of it.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Scale(scale) => json!({"scale": scale.points, "words": scale.words}),
            Self::YesNo => json!("yes_no"),
            Self::Pairs => json!("pairs"),
            Self::Questions(asked) => json!({ "questions": asked }),
            Self::Sentences => json!("sentences"),
        }
    }

    /// The fields of a written row that no field of the input may be called.
    pub fn known(&self) -> &'static [&'static str] {
        match self {
            Self::Scale(_) | Self::YesNo | Self::Sentences => {
                &["id", "human", "raters", "seconds", "notes", "skipped", "sampling_probability"]
            }
            Self::Pairs => &["id", "human", "raters", "seconds", "notes", "skipped", "swapped", "sampling_probability"],
            Self::Questions(_) => &[
                "id",
                "human",
                "raters",
                "seconds",
                "notes",
                "skipped",
                "labels",
                "rater_labels",
                "sampling_probability",
            ],
        }
    }

    /// What is shown of a row where this is asked. Of replies `chosen` and `rejected` it is the pair alone: what else is in such a row may be
    /// one of them once more.
    pub fn shown<'r>(&self, record: &'r GradingRecord) -> Cow<'r, [(Field, Shown)]> {
        let Some(Ok(pair)) = record.pair.as_ref().filter(|_| *self == Self::Pairs) else {
            return Cow::Borrowed(&record.texts);
        };
        let beside = [(Field::Reference, &pair.reference), (Field::Rubric, &pair.rubric)];
        let beside = beside.into_iter().filter_map(|(field, text)| Some((field, text.as_ref()?)));
        let all = fields_of(pair).into_iter().chain(beside).map(|(field, text)| match field {
            Field::Instruction => (field, Shown::Text(pair.asked().into_owned())),
            _ => (field, Shown::Text(text.clone())),
        });
        Cow::Owned(all.collect())
    }

    /// Why nothing can be asked about a row; `None` if something can.
    pub fn lacks(&self, record: &GradingRecord) -> Option<String> {
        let missing = |field: Field| {
            let shown = record.texts.iter().any(|(known, _)| *known == field);
            (!shown).then(|| format!("the row has no {field}, found the fields {:?}", record.found))
        };
        match self {
            Self::Scale(_) | Self::YesNo if record.texts.is_empty() => {
                Some(format!("the row has no text to grade, found the fields {:?}", record.found))
            }
            Self::Scale(_) | Self::YesNo => None,
            Self::Pairs => match &record.pair {
                Some(pair) => pair.as_ref().err().cloned(),
                None => missing(Field::ResponseA).or_else(|| missing(Field::ResponseB)),
            },
            Self::Questions(asked) => match (&record.questions, asked) {
                (Err(why), _) => Some(why.clone()),
                (Ok(None), None) => Some("the row has no `questions`".to_owned()),
                _ if record.texts.is_empty() => missing(Field::State),
                _ => None,
            },
            Self::Sentences => {
                let needed = [RagField::Response, RagField::Sentences, RagField::Contexts];
                needed.into_iter().find_map(|field| record.rag.lacks(field))
            }
        }
    }

    /// What is asked about a row, in its order.
    pub fn groups(&self, record: &GradingRecord) -> Vec<GradingGroup> {
        let one = |options| vec![GradingGroup { name: "grade".to_owned(), text: None, options }];
        let yes_no = |yes: &str, no: &str| vec![GradingOption::new(1, yes, None), GradingOption::new(0, no, None)];
        match self {
            Self::Scale(GradingScale { points: [first, last], words }) => {
                let point = |(point, word): (u32, &String)| {
                    GradingOption::new(point, point.to_string(), Some(word.clone()).filter(|word| !word.is_empty()))
                };
                one((*first..=*last).zip(words).map(point).collect())
            }
            Self::YesNo => one(yes_no("Yes", "No")),
            Self::Pairs => {
                let side = |verdict: PairVerdict, label: &str| GradingOption::new(json!(verdict), label, None);
                one(vec![side(PairVerdict::A, "A"), side(PairVerdict::B, "B"), side(PairVerdict::Tie, "Tie")])
            }
            Self::Questions(asked) => {
                match record.questions.as_ref().ok().and_then(Option::as_ref).or(asked.as_ref()) {
                    Some(questions) => questions.iter().map(|(name, question)| group_of(name, question)).collect(),
                    None => Vec::new(),
                }
            }
            Self::Sentences => {
                let sentences = record.rag.response_sentences();
                let group = |(number, sentence): (usize, &judge_core::rag::Sentence)| GradingGroup {
                    name: number.to_string(),
                    text: Some(sentence.text.clone()),
                    options: yes_no("Supported", "Not supported"),
                };
                sentences.iter().enumerate().map(group).collect()
            }
        }
    }
}

/// A typed question.
fn group_of(name: &str, question: &Question) -> GradingGroup {
    let text_of = |value: &Value| match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    };
    let described = question.descriptions();
    let words: Vec<Option<String>> = described.iter().map(text_of).collect();
    // Levels go by what the question calls them, if it calls each something.
    let are_named = described.iter().all(|level| level.as_str().is_some_and(|name| !name.is_empty()));
    let options = question.options().into_iter().zip(words).enumerate();
    let option = |(place, (name, about)): (usize, (String, Option<String>))| {
        let (value, label, about) = match question {
            Question::Noul { .. } => (Value::Bool(place == 0), if place == 0 { "Yes" } else { "No" }.to_owned(), about),
            Question::Choice { .. } => (Value::String(name.clone()), name, about),
            Question::Score { .. } if are_named => (json!(place), about.unwrap_or_default(), None),
            Question::Score { .. } => (json!(place), name, about),
        };
        GradingOption { value, label, about }
    };
    let asked = question.instructions().and_then(text_of).unwrap_or_else(|| name.to_owned());
    GradingGroup { name: name.to_owned(), text: Some(asked), options: options.map(option).collect() }
}

impl Shown {
    /// Whether there is nothing to see.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Text(text) => text.trim().is_empty(),
            Self::Turns(turns) => turns.is_empty(),
            Self::List(texts) => texts.is_empty(),
            Self::Json(value) => value.is_null(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_are_read_with_their_words() {
        let scale: GradingScale = "1-3".parse().unwrap();
        let words = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
            scale.clone().with_words(&words).map(|scale| scale.words)
        };
        assert_eq!(words(&["bad", "fair", "good"]).unwrap(), ["bad", "fair", "good"]);
        assert_eq!(words(&["1=bad", "3=good"]).unwrap(), ["bad", "", "good"]);
        assert!(words(&["bad", "good"]).unwrap_err().contains("each of 3 points"));
        assert!(words(&["4=good"]).unwrap_err().contains("from 1 to 3"));
        assert!(words(&["1=bad", "1=good"]).unwrap_err().contains("found two for 1"));
        assert_eq!("0-10".parse::<GradingScale>().unwrap().words.len(), 11);
        for wrong in ["5", "5-1", "1-1", "0-11", "a-b", "-1-3", ""] {
            assert!(wrong.parse::<GradingScale>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn levels_go_by_what_the_question_calls_them() {
        for (criteria, labels) in [
            (json!(["1", "2"]), ["1", "2"]),
            (json!(["bad", "good"]), ["bad", "good"]),
            (json!([{"is": "bad"}, "good"]), ["0", "1"]),
            (json!(["", "good"]), ["0", "1"]),
        ] {
            let question: Question = serde_json::from_value(json!({"type": "score", "criteria": criteria})).unwrap();
            let options = group_of("quality", &question).options;
            assert_eq!([0, 1].map(|level| options[level].label.as_str()), labels);
            assert_eq!([0, 1].map(|level| options[level].value.clone()), [json!(0), json!(1)]);
        }
    }
}
