//! Rows of typed questions about a state, and of their answers.

use judge_core::decision::{Answered, Decidable, DecisionTable, Questions, exact_json};
use judge_core::{ItemId, Reason, Unscored, Verdict};
use serde::{Serialize, Serializer, ser::SerializeMap as _};
use serde_json::{Map, Value};

use crate::ids::UniqueIds;
use crate::{Carry, Error, Extra, Fate, Human, Input, Judged, OutputRow, Row, RowItem};

/// A row `{"id", "state", "questions"?, "labels"?, …}`.
///
/// A row without an id goes by its number in the file. One that cannot be read costs itself alone.
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
    /// What people answered, by the name of the question; see [`Question::target`](judge_core::decision::Question::target).
    pub labels: Map<String, Value>,
    /// All other fields.
    pub extra: Extra,
}

/// The fields that are read.
const READ: [&str; 4] = ["id", "state", "questions", "labels"];

impl DecisionRecord {
    /// The rows of a file, at most so many.
    ///
    /// # Errors
    /// Whatever is wrong with the file, and an id that is there twice.
    pub fn all(input: &Input, most: Option<usize>) -> Result<impl Iterator<Item = Result<Self, Error>> + use<>, Error> {
        let first = input.part().map_or(0, |part| part.first_number + part.rows.start);
        let mut ids = UniqueIds::default();
        let rows = input.rows()?.take(most.unwrap_or(usize::MAX)).enumerate();
        Ok(rows.map(move |(place, row)| {
            let row = row?;
            let at = row.place().clone();
            let record = Self::of(row, place, first + place)?;
            ids.check(&record.id, &at)?;
            Ok(record)
        }))
    }

    fn of(row: Row, place: usize, number: usize) -> Result<Self, Error> {
        let id = row.optional("id", "a string or a whole number")?.unwrap_or_else(|| ItemId::from(number as u64));
        let state = row.value("state").map(exact_json::from_text);
        // A number out of range is JSON and no value.
        let state = state.transpose().or_else(|_| row.optional::<Value>("state", "JSON"))?;
        let questions = row.optional::<Value>("questions", "an object of questions")?;
        let questions = questions.map(|json| Questions::from_json(&json)).transpose();
        let labels = row.optional::<Map<String, Value>>("labels", "an object of answers by question");
        let why = match (&state, &questions, &labels) {
            (None, ..) => {
                let found = row.keys().collect::<Vec<_>>().join(", ");
                Some(format!("expected the field `state`, found {found}"))
            }
            (_, Err(problem), _) => Some(problem.to_string()),
            (.., Err(error)) => Some(error.to_string()),
            _ => None,
        };
        let unread = why.map(|why| Unscored::new(Reason::Missing, why));
        let (state, questions) = (state.unwrap_or_default(), questions.ok().flatten());
        let extra = row.into_extra(&READ);
        Ok(Self { row: place, id, state, questions, unread, labels: labels.ok().flatten().unwrap_or_default(), extra })
    }
}

impl RowItem for DecisionRecord {
    fn row(&self) -> usize {
        self.row
    }

    fn id(&self) -> ItemId {
        self.id.clone()
    }

    fn unread(&self) -> Option<&Unscored> {
        self.unread.as_ref()
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
/// `unscored` where no question was answered.
pub type DecisionRow = OutputRow<Decided>;

/// What a judge answers about one state.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Decided {
    /// What became of each question; none of a state that could not be asked about.
    pub answered: Vec<Answered>,
    /// Why there is no answer at all.
    pub unscored: Option<Unscored>,
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
        let decided = Decided { answered, unscored: verdict.unscored().cloned(), input_tokens, labels, tables };
        let (row, fate) = Self::of(id, Human::Numbers(Vec::new()), decided, extra, carry)?;
        Ok((row, Fate { graded: is_graded, ..fate }))
    }
}

impl Judged for Decided {
    const KNOWN: &'static [&'static str] =
        &["id", "human", "answers", "label_mass", "unanswered", "input_tokens", "labels", "tables", "unscored"];

    fn unscored(&self) -> Option<&Unscored> {
        self.unscored.as_ref()
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
                        Ok(answer) => answers.push((name, answer)),
                        Err(why) => without.push((name, why)),
                    }
                    masses.extend(label_mass.map(|mass| (name, mass)));
                }
                map.serialize_entry("answers", &Entries(answers))?;
                if !masses.is_empty() {
                    map.serialize_entry("label_mass", &Entries(masses))?;
                }
                if !without.is_empty() {
                    map.serialize_entry("unanswered", &Entries(without))?;
                }
            }
        }
        if let Some(tokens) = self.input_tokens {
            map.serialize_entry("input_tokens", &tokens)?;
        }
        if !self.labels.is_empty() {
            map.serialize_entry("labels", &self.labels)?;
        }
        if !self.tables.is_empty() {
            let tables = self.tables.iter().map(|found| {
                let DecisionTable { name, options, table, .. } = found;
                (name, TableOf { options, table })
            });
            map.serialize_entry("tables", &Entries(tables.collect()))?;
        }
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
