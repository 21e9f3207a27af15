//! Rows of typed questions about a state, and of their answers.

use std::collections::BTreeMap;

use judge_core::decision::{Answer, Answered, Decidable, DecisionTable, Question, Questions, exact_json};
use judge_core::{ItemId, Reason, Unscored, Verdict};
use serde::{Serialize, Serializer, ser::SerializeMap as _};
use serde_json::{Map, Value, json};

use crate::results::entry::entry;
use crate::results::numbered_rows::{numbered_rows, split};
use crate::rows::reading::Reading;
use crate::run::of_fields;
use crate::{
    Carry, Columns, DatasetOptions, Error, Extra, Fate, Field, Human, Input, Judged, OutputRow, Row, RowColumns,
    RowItem,
};

/// A row `{"id", "state", "questions"?, "labels"?, …}`, or with the columns that are chosen for these [`Field`]s.
///
/// Questions and labels are objects, or JSON of them as a table's cell holds it; of either, what is null is left out, as a table has it
/// where other rows have more. A choice in a struct of Parquet of which an option is null is refused, since that option may be another
/// row's. A row without an id goes by its number in the file. One that cannot be read costs itself alone.
#[derive(Clone, Debug, PartialEq)]
pub struct DecisionRecord {
    /// Its place in the file, from 0.
    pub row: usize,
    /// The item.
    pub id: ItemId,
    /// Text, or any JSON; null in a row without one.
    pub state: Value,
    /// Its own questions, if it has any.
    pub questions: Option<Questions>,
    /// Why no question can be asked about it.
    pub unread: Option<Unscored>,
    /// What people answered, by the name of the question, those alone that they answered; see
    /// [`Question::target`](judge_core::decision::Question::target).
    pub labels: Map<String, Value>,
    /// What stands in the place of labels and is none, with what was expected: it is left out, and the questions are asked all the same.
    pub no_labels: Option<String>,
    /// Where the fields were found.
    pub columns: RowColumns,
    /// All other fields.
    pub extra: Extra,
}

impl DecisionRecord {
    /// The rows of a file, at most so many.
    ///
    /// # Errors
    /// Whatever is wrong with the file, and an id that is there twice; [`Error::NoSuchColumn`] behind the last row of a file in which no row
    /// has a column that was chosen.
    pub fn all(
        input: &Input,
        most: Option<usize>,
        columns: &Columns,
    ) -> Result<impl Iterator<Item = Result<Self, Error>> + use<>, Error> {
        numbered_rows(input, most, columns, Self::of)
    }

    fn of(row: Row, place: usize, number: usize, options: &DatasetOptions) -> Result<Self, Error> {
        let mut reading = Reading::new(&row, options);
        let id = reading.id(number)?;
        let state = reading.json_by(Field::State, "JSON with finite numbers", exact_json::from_text);
        let state = state.and_then(|state| state.ok_or_else(|| reading.missing(Field::State)));
        let (questions, no_questions) = split(questions_of(&mut reading));
        let labels = reading.json_of_cell::<Map<String, Value>>(Field::Labels, "an object of answers by question");
        let (columns, rest) = reading.finish();
        let (state, no_state) = split(state.map_err(|error| error.in_row()));
        let (labels, no_labels) = split(labels.map_err(|error| error.in_row()));
        let mut labels = labels.flatten().unwrap_or_default();
        labels.retain(|_, label| !label.is_null());
        let unread = no_state.or(no_questions).map(|why| Unscored::new(Reason::Missing, why));
        Ok(Self {
            row: place,
            id,
            state: state.unwrap_or_default(),
            questions: questions.flatten(),
            unread,
            labels,
            no_labels,
            columns,
            extra: rest.of(row, &options.columns),
        })
    }
}

/// The questions of a row, or why they are none.
pub(crate) fn questions_of(reading: &mut Reading<'_>) -> Result<Option<Questions>, String> {
    let json = reading.json_of_cell::<Value>(Field::Questions, "an object of questions");
    let Some(mut json) = json.map_err(|error| error.in_row())? else { return Ok(None) };
    if let Value::Object(fields) = &mut json
        && !fields.is_empty()
    {
        fields.retain(|_, question| !question.is_null());
        if fields.is_empty() {
            return Ok(None);
        }
    }
    let questions = Questions::from_json(&json).map_err(|problem| problem.to_string())?;
    let column = reading.name(Field::Questions).unwrap_or_default();
    let null = reading.row().is_struct(column).then(|| questions.iter().find_map(null_option)).flatten();
    match null {
        Some((question, option)) => Err(format!(
            "question {question:?}: the option {option:?} is null in a struct of Parquet, which has all options of all rows, so it may be \
             another row's: write the column {column:?} as JSON text, or describe every option in every row"
        )),
        None => Ok(Some(questions)),
    }
}

/// The first option of a choice that has no description, with the question's name.
fn null_option<'q>((name, question): (&'q str, &'q Question)) -> Option<(&'q str, &'q String)> {
    let Question::Choice { criteria, .. } = question else { return None };
    criteria.iter().find(|(_, text)| text.is_null()).map(|(option, _)| (name, option))
}

impl RowItem for DecisionRecord {
    of_fields!();

    fn unread(&self) -> Option<&Unscored> {
        self.unread.as_ref()
    }

    fn columns(&self) -> Option<&RowColumns> {
        Some(&self.columns)
    }

    fn field_named<'n>(&self, name: &'n str) -> &'n str {
        if self.state.get(name).is_some() { name } else { self.columns.field_named(name) }
    }

    fn inner(&self) -> Vec<String> {
        self.state.as_object().into_iter().flat_map(Map::keys).cloned().collect()
    }

    /// The state if it is a text, or a text in it.
    fn edit(&mut self, field: &str, change: &mut dyn FnMut(&mut String)) {
        let text = match &mut self.state {
            Value::String(text) if field == "state" => Some(text),
            Value::Object(fields) => match fields.get_mut(field) {
                Some(Value::String(text)) => Some(text),
                _ => None,
            },
            _ => None,
        };
        text.into_iter().for_each(change);
    }
}

impl Decidable for DecisionRecord {
    fn state(&self) -> &Value {
        &self.state
    }

    fn questions(&self) -> Option<&Questions> {
        self.questions.as_ref()
    }
}

/// The answers about one state:
/// `{"id", "answers": {question: answer}, "label_mass": {question: share}, "unanswered"?: {question: reason}, "input_tokens"?, "labels"?, "tables"?, …}`, or with
/// `unscored` where no question was answered. An answer has the form of the standard; a yes so likely that `1 - noul` is no longer the
/// probability of no has `"probabilities": {"true", "false"}` too.
pub type DecisionRow = OutputRow<Decided>;

/// What a judge answers about one state.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Decided {
    /// What became of each question; none of a state that could not be asked about.
    pub answered: Vec<Answered>,
    /// Why there is no answer at all.
    pub unscored: Option<Unscored>,
    /// The probability of no, by the name of its question, where `1 - noul` has lost its digits.
    pub no: BTreeMap<String, f64>,
    /// Tokens of all prompts, as far as the model counts them.
    pub input_tokens: Option<usize>,
    /// What people answered.
    pub labels: Map<String, Value>,
    /// The label logits of all layers, where they are kept.
    pub tables: Vec<DecisionTable>,
}

impl DecisionRow {
    /// The row of a state with these answers; `unscored` if there is none.
    ///
    /// # Errors
    /// [`Error::FieldClash`] for a carried field that the row has one of its own for.
    pub fn new(
        record: DecisionRecord,
        verdict: &Verdict,
        answered: Vec<Answered>,
        tables: Vec<DecisionTable>,
        input_tokens: Option<usize>,
        carry: &Carry,
    ) -> Result<(Self, Fate), Error> {
        let DecisionRecord { id, labels, extra, .. } = record;
        let is_graded = !labels.is_empty();
        let no = answered.iter().filter_map(|found| lost_no(found, verdict)).collect();
        let decided = Decided { answered, unscored: verdict.unscored().cloned(), no, input_tokens, labels, tables };
        let (row, fate) = Self::of(id, Human::Numbers(Vec::new()), decided, extra, carry)?;
        Ok((row, Fate { graded: is_graded, ..fate }))
    }
}

/// How far `1 - noul` may be from the probability of no, as a share of it.
const ROUNDING: f64 = 1e-6;

/// The probability of no in an answer from this verdict, with its question's name, where `1 - noul` is another number.
fn lost_no(found: &Answered, verdict: &Verdict) -> Option<(String, f64)> {
    let Ok(Answer::Noul { noul }) = found.answer else { return None };
    let part = verdict.score()?.parts.iter().find(|part| part.name == found.name)?;
    let no = *Question::noul("").probabilities(part.verdict.score()?)?.get(1)?;
    ((1.0 - noul - no).abs() > ROUNDING * no).then(|| (found.name.clone(), no))
}

impl Judged for Decided {
    /// Without `human`: such a row has none of its own, so what people said besides is carried.
    const KNOWN: &'static [&'static str] =
        &["id", "answers", "label_mass", "unanswered", "input_tokens", "labels", "tables", "unscored"];

    fn unscored(&self) -> Option<&Unscored> {
        self.unscored.as_ref()
    }
}

/// An answer as a row has it.
#[derive(Serialize)]
struct WrittenAnswer<'a> {
    #[serde(flatten)]
    answer: &'a Answer,
    #[serde(skip_serializing_if = "Option::is_none")]
    probabilities: Option<Value>,
}

impl Decided {
    fn written<'a>(&self, name: &str, answer: &'a Answer) -> WrittenAnswer<'a> {
        let probabilities = match (answer, self.no.get(name)) {
            (Answer::Noul { noul }, Some(no)) => Some(json!({"true": noul, "false": no})),
            _ => None,
        };
        WrittenAnswer { answer, probabilities }
    }
}

/// The logits of one question's table, as a row has them.
#[derive(Serialize)]
struct TableOf<'t> {
    options: &'t [String],
    #[serde(flatten)]
    table: &'t judge_core::lager::LayerTable,
}

impl Serialize for Decided {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match &self.unscored {
            Some(unscored) => map.serialize_entry("unscored", unscored)?,
            None => {
                let (mut answers, mut masses, mut without) = (Vec::new(), Vec::new(), Vec::new());
                for Answered { name, answer, label_mass } in &self.answered {
                    match answer {
                        Ok(answer) => answers.push((name, self.written(name, answer))),
                        Err(why) => without.push((name, why)),
                    }
                    masses.extend(label_mass.map(|mass| (name, mass)));
                }
                map.serialize_entry("answers", &Entries(answers))?;
                entry(&mut map, "label_mass", (!masses.is_empty()).then_some(Entries(masses)))?;
                entry(&mut map, "unanswered", (!without.is_empty()).then_some(Entries(without)))?;
            }
        }
        entry(&mut map, "input_tokens", self.input_tokens)?;
        entry(&mut map, "labels", Some(&self.labels).filter(|labels| !labels.is_empty()))?;
        let tables = self.tables.iter().map(|found| {
            let DecisionTable { name, options, table, .. } = found;
            (name, TableOf { options, table })
        });
        entry(&mut map, "tables", (!self.tables.is_empty()).then(|| Entries(tables.collect())))?;
        map.end()
    }
}

/// Entries of an object in their order.
struct Entries<'n, T>(Vec<(&'n String, T)>);

impl<T: Serialize> Serialize for Entries<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (*name, value)))
    }
}

#[cfg(test)]
mod tests {
    use judge_core::scale::{ScalePoint, ScoreDistribution};
    use judge_core::verdict::{CombinedBy, Part};
    use judge_core::{Scale, Score};

    use super::*;

    /// A divergence from an answer of people is then known.
    #[test]
    fn the_probability_of_no_beside_an_all_but_certain_yes_is_written() {
        let questions = Questions::one("q", Question::noul("?")).unwrap();
        let scale = ["false", "true"].into_iter().zip([0.0, 1.0]);
        let scale = scale.map(|(label, value)| ScalePoint { value, label: label.to_owned() });
        let scale = Scale::new(scale.collect()).unwrap();
        for (no, expected) in [
            (1e-20, json!({"type": "noul", "noul": 1.0, "probabilities": {"true": 1.0, "false": 1e-20}})),
            (0.0, json!({"type": "noul", "noul": 1.0})),
            (0.25, json!({"type": "noul", "noul": 0.75})),
        ] {
            let score = Score::expected(ScoreDistribution::from_weights(&scale, &[no, 1.0 - no]).unwrap());
            let part = Part { name: "q".to_owned(), verdict: Verdict::Scored(score) };
            let verdict = Verdict::Scored(Score::new(1.0).with_parts(CombinedBy::Questions, vec![part]));
            let record = DecisionRecord {
                row: 0,
                id: ItemId::from(1_u64),
                state: json!("s"),
                questions: None,
                unread: None,
                labels: Map::new(),
                no_labels: None,
                columns: RowColumns::default(),
                extra: Extra::new(),
            };
            let answered = questions.answers(&verdict).unwrap();
            let row = DecisionRow::new(record, &verdict, answered, Vec::new(), None, &Carry::All).unwrap().0;
            assert_eq!(serde_json::to_value(&row).unwrap()["answers"]["q"], expected);
        }
    }
}
