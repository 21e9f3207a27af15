//! Rows of a query and documents, and of these in the order of their relevance.

use judge_core::lager::LayerTable;
use judge_core::rerank::{RankedDocument, RerankItem, Rerankable};
use judge_core::{ItemId, Reason, Unscored};
use serde::{Deserialize, Serialize, Serializer, ser::SerializeMap as _};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::results::entry::entry;
use crate::results::numbered_rows::{numbered_rows, split};
use crate::results::rag::text_of;
use crate::rows::cell::list_in_cell;
use crate::rows::grades::{self, Given};
use crate::rows::reading::Reading;
use crate::rows::row::describe;
use crate::run::of_fields;
use crate::{
    Carry, Columns, DatasetOptions, Error, Extra, Fate, Field, Human, Input, Judged, OutputRow, Row, RowColumns,
    RowItem,
};

/// A row `{"id"?, "query", "documents": [text | {"text"}], "relevance"?: [numbers], …}`, or the pair `{"id"?, "query", "document",
/// "relevance"?: number, …}`, or with the columns that are chosen for these [`Field`]s.
///
/// A row without an id goes by its number in the file. A document that is none costs itself alone, and a row without a query or documents the
/// row, whose relevance is kept. Relevance is read as other grades are: a text that writes a number is one, and true and false are 1 and 0.
#[derive(Clone, Debug, PartialEq)]
pub struct RerankRecord {
    /// Its place in the file, from 0.
    pub row: usize,
    /// The item.
    pub id: ItemId,
    /// What is scored.
    pub item: RerankItem,
    /// What each document is called: the `id`, `_id`, `docid` or `doc_id` of an object.
    pub document_ids: Vec<Option<ItemId>>,
    /// Whether the row is a pair, of which several may be of one query.
    pub is_pair: bool,
    /// Why no document can be.
    pub unread: Option<Unscored>,
    /// How relevant people find each document; empty where they do not say.
    pub relevance: Vec<Option<f64>>,
    /// What stands in the place of relevance and is none, with what was expected.
    pub no_relevance: Option<String>,
    /// Where the fields were found.
    pub columns: RowColumns,
    /// All other fields.
    pub extra: Extra,
}

/// What documents are read from, in words.
const DOCUMENTS: &str = "a list of texts, or of objects with a `text`, which a table's cell may hold as JSON; or a list of texts as Python \
                         writes it";

/// The documents of a query, whatever they are.
fn documents(json: &str) -> serde_json::Result<Vec<Value>> {
    serde_json::from_str(&list_in_cell(json))
}

/// What one document is read from.
const DOCUMENT: &str = "text, or an object with a `text`";
/// What relevance is read from.
const RELEVANCE: &str = "a list with a number from 0 on, or null, for each document";

impl RerankRecord {
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
        let query = reading.text(Field::Query);
        // A document that is none is one all the same.
        let is_there = |field: Field| row.keys().any(|key| options.columns.names(field).any(|name| name == key));
        let is_pair = !reading.has(Field::Documents) && is_there(Field::Document);
        let documents = if is_pair {
            reading.json::<Value>(Field::Document, DOCUMENT).map(|found| vec![found.unwrap_or_default()])
        } else {
            let list = reading.json_by(Field::Documents, DOCUMENTS, documents);
            list.and_then(|list| list.ok_or_else(|| reading.missing(Field::Documents)))
        };
        let relevance = reading.json::<Box<RawValue>>(Field::Relevance, RELEVANCE);
        let (query, no_query) = split(query.map_err(|error| error.in_row()));
        let (documents, no_documents) = split(documents.map_err(|error| error.in_row()));
        // Without documents there is nothing that it must fit.
        let n = documents.as_ref().map(Vec::len);
        let (relevance, no_relevance) = match relevance.map_err(|error| error.in_row()) {
            Err(why) => (Vec::new(), Some(why)),
            Ok(None) => (Vec::new(), None),
            Ok(Some(json)) => numbers(json.get(), n),
        };
        let documents = documents.unwrap_or_default();
        let (columns, rest) = reading.finish();
        let document_ids = documents.iter().map(id_of_document).collect();
        let document = |(at, found): (usize, &Value)| {
            text_of(found).ok_or_else(|| {
                let kind = describe(&found.to_string());
                Unscored::new(Reason::Missing, format!("document {at}: expected {DOCUMENT}, found {kind}"))
            })
        };
        let documents = documents.iter().enumerate().map(document).collect();
        Ok(Self {
            row: place,
            id,
            item: RerankItem { query: query.unwrap_or_default(), documents },
            document_ids,
            is_pair,
            unread: no_query.or(no_documents).map(|why| Unscored::new(Reason::Missing, why)),
            relevance,
            no_relevance,
            columns,
            extra: rest.of(row, &options.columns),
        })
    }
}

/// What an object calls itself.
fn id_of_document(document: &Value) -> Option<ItemId> {
    let found = ["id", "_id", "docid", "doc_id"].into_iter().find_map(|name| document.get(name))?;
    serde_json::from_value(found.clone()).ok()
}

/// A number, or none, for each of so many documents, where that is known; and what stands in the place of one and is none. As of raters,
/// that costs itself alone.
fn numbers(json: &str, documents: Option<usize>) -> (Vec<Option<f64>>, Option<String>) {
    let relevance = |json: &str| grades::number(json).filter(|number| *number >= 0.0);
    let Given { raters, odd } = Given::of(json, relevance);
    let Some(n) = documents.filter(|n| *n != raters.len()) else {
        return (raters, odd.map(|found| format!("relevance: expected {RELEVANCE}, found {found}")));
    };
    let is_list = list_in_cell(json).starts_with('[');
    let found = if is_list { format!("{} entries", raters.len()) } else { describe(json) };
    (Vec::new(), Some(format!("relevance: expected {RELEVANCE}, of which there are {n}, found {found}")))
}

impl RowItem for RerankRecord {
    of_fields!();

    fn unread(&self) -> Option<&Unscored> {
        self.unread.as_ref()
    }

    fn columns(&self) -> Option<&RowColumns> {
        Some(&self.columns)
    }

    fn field_named<'n>(&self, name: &'n str) -> &'n str {
        match self.columns.field_named(name) {
            "document" => "documents",
            field => field,
        }
    }

    fn edit(&mut self, field: &str, change: &mut dyn FnMut(&mut String)) {
        match field {
            "query" if self.unread.is_none() => change(&mut self.item.query),
            "documents" => self.item.documents.iter_mut().flatten().for_each(change),
            _ => {}
        }
    }
}

impl Rerankable for RerankRecord {
    fn query(&self) -> &str {
        &self.item.query
    }

    fn documents(&self) -> &[Result<String, Unscored>] {
        &self.item.documents
    }
}

/// The documents of a query in order: `{"id", "results": [{"index", "id"?, "relevance_score", "cut_tokens"?}], "label_mass"?, "input_tokens"?,
/// "relevance"?, "tables"?, …}`, the best first, and behind them `{"index", "unscored"}` for those without a score; or with `unscored` where
/// no document has one.
pub type RerankRow = OutputRow<Reranked>;

/// What became of the documents of a query.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reranked {
    /// In their order, at most so many as are wanted.
    pub results: Vec<WrittenResult>,
    /// Why no document has a score.
    pub unscored: Option<Unscored>,
    /// The mean over documents of the labels' share of the model's probability, where it was read.
    pub label_mass: Option<f64>,
    /// Tokens of all prompts, as far as the model counts them.
    pub input_tokens: Option<usize>,
    /// What people say of each document, in the order of the input.
    pub relevance: Vec<Option<f64>>,
    /// The label logits of all layers for some documents, by their index, where they are kept.
    pub tables: Vec<(usize, LayerTable)>,
}

/// A document in its place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WrittenResult {
    /// Its place in the input, from 0.
    pub index: usize,
    /// What it is called, if the row says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<ItemId>,
    /// Its score.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relevance_score: Option<f64>,
    /// How many tokens its prompt lost because it was too long.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cut_tokens: usize,
    /// Why it has no score.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unscored: Option<Unscored>,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl WrittenResult {
    /// A document of this name in its place; `cut_tokens` are those of its prompt.
    #[must_use]
    pub fn new(document: RankedDocument, id: Option<ItemId>, cut_tokens: usize) -> Self {
        let RankedDocument { index, score, .. } = document;
        let (relevance_score, unscored) = match score {
            Ok(score) => (Some(score), None),
            Err(unscored) => (None, Some(unscored)),
        };
        Self { index, id, relevance_score, cut_tokens, unscored }
    }
}

impl RerankRow {
    /// The row of a record, which is graded where people say something of its documents.
    ///
    /// # Errors
    /// [`Error::FieldClash`] for a carried field that the row has one of its own for.
    pub fn new(record: RerankRecord, reranked: Reranked, carry: &Carry) -> Result<(Self, Fate), Error> {
        let RerankRecord { id, relevance, extra, .. } = record;
        let is_graded = relevance.iter().any(Option::is_some);
        let reranked = Reranked { relevance, ..reranked };
        let (row, fate) = Self::of(id, Human::Numbers(Vec::new()), reranked, extra, carry)?;
        Ok((row, Fate { graded: is_graded, ..fate }))
    }
}

impl Judged for Reranked {
    const KNOWN: &'static [&'static str] =
        &["id", "human", "results", "label_mass", "input_tokens", "relevance", "tables", "unscored"];

    fn unscored(&self) -> Option<&Unscored> {
        self.unscored.as_ref()
    }
}

/// The logits of one document's table, as a row has them.
#[derive(Serialize)]
struct TableOf<'t> {
    index: usize,
    #[serde(flatten)]
    table: &'t LayerTable,
}

impl Serialize for Reranked {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match &self.unscored {
            Some(unscored) => map.serialize_entry("unscored", unscored)?,
            None => map.serialize_entry("results", &self.results)?,
        }
        entry(&mut map, "label_mass", self.label_mass)?;
        entry(&mut map, "input_tokens", self.input_tokens)?;
        entry(&mut map, "relevance", Some(&self.relevance).filter(|relevance| !relevance.is_empty()))?;
        let tables = self.tables.iter().map(|(index, table)| TableOf { index: *index, table });
        entry(&mut map, "tables", Some(tables.collect::<Vec<_>>()).filter(|tables| !tables.is_empty()))?;
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn documents_of_a_cell_are_those_of_a_list() {
        let list = json!([{"id": "d1", "text": "Jane"}, "a text", {"title": "none"}, 7]);
        let cell = json!(list.to_string());
        for (found, expected) in [
            (&list, Some(list.clone())),
            (&cell, Some(list.clone())),
            (&json!("['It\\'s', \"Joe's\"]"), Some(json!(["It's", "Joe's"]))),
            (&json!("[]"), Some(json!([]))),
            (&json!("[{'id': 'd1'}]"), None),
            (&json!({"text": "a"}), None),
        ] {
            assert_eq!(documents(&found.to_string()).ok().map(Value::Array), expected, "{found}");
        }
    }

    #[test]
    fn relevance_is_read_as_other_grades_are() {
        for (json, expected) in [
            ("1", vec![Some(1.0)]),
            (r#""1""#, vec![Some(1.0)]),
            ("true", vec![Some(1.0)]),
            (r#"[true, false, "2.5", null]"#, vec![Some(1.0), Some(0.0), Some(2.5), None]),
            (r#""[1, 0]""#, vec![Some(1.0), Some(0.0)]),
            (r#"" [True, None, 0.5] ""#, vec![Some(1.0), None, Some(0.5)]),
        ] {
            assert_eq!(numbers(json, Some(expected.len())), (expected.clone(), None), "{json}");
            assert_eq!(numbers(json, None), (expected, None), "{json}");
        }
        // What is none costs itself alone.
        for (json, odd) in [(r#"[1, "much"]"#, "string \"much\""), ("[1, -1]", "number -1"), ("[1, {}]", "object {}")] {
            let (found, why) = numbers(json, Some(2));
            assert_eq!(found, [Some(1.0), None], "{json}");
            let why = why.unwrap();
            assert!(why.starts_with("relevance: expected a list") && why.ends_with(&format!("found {odd}")), "{why}");
        }
        for (json, said) in [("[1, 0]", "there are 3, found 2 entries"), (r#""much""#, "found string \"much\"")] {
            let (found, why) = numbers(json, Some(3));
            assert!(found.is_empty() && why.as_ref().is_some_and(|why| why.ends_with(said)), "{why:?}");
        }
    }
}
