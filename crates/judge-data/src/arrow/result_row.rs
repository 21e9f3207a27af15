//! The columns of results, and the digests that tell whether all of them are there.
//!
//! | column | type | what it holds |
//! |---|---|---|
//! | `id` | text or int64, as in the input | the item |
//! | `score` | double | null where there is none |
//! | `status` | text, never null | `scored`, or the reason why not, e.g. `too_long` |
//! | `detail` | text | what was expected and found; null where there is a score |
//! | `tokens` | int32 | of the prompt; null where it was not read |
//! | `input` | binary, 16 bytes | hash of what was scored |
//! | `run` | text, never null | the run that made the row |
//! | `device` | text, never null | what the model ran on |
//! | `probabilities` | list of double, only if asked for | over the scale |
//! | `logits` | list of float, only if asked for | `[layers, labels]` |
//!
//! The types follow from what was asked for and never from the data: a batch without any score has a column of doubles all the same.
//! None is Arrow's null type, which writers of Parquet stumble over, and none a dictionary, which Spark does not know.

use std::collections::BTreeMap;
use std::ops::AddAssign;
use std::sync::Arc;

use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{
    Array, ArrayRef, BinaryArray, Float64Array, Int32Array, Int64Array, ListArray, RecordBatch, StringArray,
};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use judge_core::{ItemId, Reason};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{SCORED, bytes, column, ids, integers, lists, numbers, required, texts, wrong};
use crate::{Error, RowHash, RowHasher, SetDigest};

/// What an item got, with what proves it: one row of results.
#[derive(Clone, Debug, PartialEq)]
pub struct ResultRow {
    /// The item.
    pub id: ItemId,
    /// The score; `None` if there is none, and then `status` is not `scored`.
    pub score: Option<f64>,
    /// `scored`, or the reason why there is no score.
    pub status: String,
    /// What was expected and found; `None` where there is a score.
    pub detail: Option<String>,
    /// Tokens of the prompt, where it was read.
    pub tokens: Option<u32>,
    /// The first 16 bytes of the hash of the id and of every value that the template uses.
    pub input: [u8; 16],
    /// The run: a hash of everything that may change a row.
    pub run: String,
    /// What the model ran on. It is no part of the row's hash.
    pub device: String,
    /// The probability of each label of the scale.
    pub probabilities: Option<Vec<f64>>,
    /// Label logits, `[layers, labels]`.
    pub logits: Option<Vec<f32>>,
}

/// What ids of the other kind, and whole numbers that do not fit, are told.
const WHOLE: &str = "a whole number from -2^63 to 2^63 - 1";

/// What ids are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum IdKind {
    /// Texts.
    #[default]
    #[serde(rename = "string")]
    Text,
    /// Whole numbers of 64 bits.
    #[serde(rename = "int64")]
    Integer,
}

/// The columns that results have.
///
/// ```
/// use judge_data::{ResultColumns, ResultRow};
/// use judge_core::ItemId;
///
/// let columns = ResultColumns { probabilities: true, ..ResultColumns::default() };
/// assert!(columns.spark_ddl().starts_with("id STRING, score DOUBLE, status STRING"));
/// let row = ResultRow {
///     id: ItemId::Text("a".to_owned()),
///     score: None,
///     status: "too_long".to_owned(),
///     detail: Some("expected at most 4,096 tokens, found 5,000".to_owned()),
///     tokens: Some(5000),
///     input: [7; 16],
///     run: "0123456789abcdef".to_owned(),
///     device: "cpu".to_owned(),
///     probabilities: None,
///     logits: None,
/// };
/// let batch = columns.batch(std::slice::from_ref(&row))?;
/// assert_eq!(ResultRow::from_batch(&batch)?, [row]);
/// # Ok::<(), judge_data::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultColumns {
    /// What the input's ids are.
    pub ids: IdKind,
    /// Whether there are probabilities.
    pub probabilities: bool,
    /// Whether there are label logits.
    pub logits: bool,
}

impl ResultColumns {
    /// The schema of all batches.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        let list = |kind| DataType::List(Arc::new(Field::new("item", kind, true)));
        let id = match self.ids {
            IdKind::Text => DataType::Utf8,
            IdKind::Integer => DataType::Int64,
        };
        let mut fields = vec![
            Field::new("id", id, false),
            Field::new("score", DataType::Float64, true),
            Field::new("status", DataType::Utf8, false),
            Field::new("detail", DataType::Utf8, true),
            Field::new("tokens", DataType::Int32, true),
            Field::new("input", DataType::Binary, false),
            Field::new("run", DataType::Utf8, false),
            Field::new("device", DataType::Utf8, false),
        ];
        fields.extend(self.probabilities.then(|| Field::new("probabilities", list(DataType::Float64), true)));
        fields.extend(self.logits.then(|| Field::new("logits", list(DataType::Float32), true)));
        Arc::new(Schema::new(fields))
    }

    /// The schema as JSON: a list with `name`, `type` (in pyarrow's words) and `nullable` of each column.
    #[must_use]
    pub fn json(&self) -> Value {
        let schema = self.schema();
        let columns = schema.fields().iter().map(|field| {
            let [kind, _] = words(field.data_type());
            json!({"name": field.name(), "type": kind, "nullable": field.is_nullable()})
        });
        columns.collect()
    }

    /// The schema in Spark's words, e.g. for `mapInArrow`.
    #[must_use]
    pub fn spark_ddl(&self) -> String {
        let schema = self.schema();
        let columns = schema.fields().iter().map(|field| format!("{} {}", field.name(), words(field.data_type())[1]));
        columns.collect::<Vec<_>>().join(", ")
    }

    /// Rows as a batch, in their order. Probabilities and logits that were not asked for are left out.
    ///
    /// # Errors
    /// [`Error::BatchColumn`] for an id of the other kind, or one beyond 64 bits; for tokens beyond 31 bits.
    pub fn batch(&self, rows: &[ResultRow]) -> Result<RecordBatch, Error> {
        let of = |text: fn(&ResultRow) -> Option<&str>| -> ArrayRef {
            Arc::new(rows.iter().map(text).collect::<StringArray>())
        };
        let tokens = rows.iter().map(|row| {
            let count = row.tokens.map(i32::try_from).transpose();
            count.map_err(|_| wrong("tokens", "a number of 31 bits", shown(row.tokens)))
        });
        let tokens = tokens.collect::<Result<Int32Array, Error>>()?;
        let mut columns: Vec<ArrayRef> = vec![
            self.ids(rows)?,
            Arc::new(rows.iter().map(|row| row.score).collect::<Float64Array>()),
            of(|row| Some(&row.status)),
            of(|row| row.detail.as_deref()),
            Arc::new(tokens),
            Arc::new(BinaryArray::from_iter_values(rows.iter().map(|row| row.input))),
            of(|row| Some(&row.run)),
            of(|row| Some(&row.device)),
        ];
        if self.probabilities {
            let lists = rows.iter().map(|row| row.probabilities.as_ref().map(|list| list.iter().copied().map(Some)));
            columns.push(Arc::new(ListArray::from_iter_primitive::<Float64Type, _, _>(lists)));
        }
        if self.logits {
            let lists = rows.iter().map(|row| row.logits.as_ref().map(|list| list.iter().copied().map(Some)));
            columns.push(Arc::new(ListArray::from_iter_primitive::<Float32Type, _, _>(lists)));
        }
        // The columns were made for this schema, with a value or a null for each row.
        RecordBatch::try_new(self.schema(), columns)
            .map_err(|error| wrong("*", "columns of results", error.to_string()))
    }

    /// The column of ids.
    fn ids(&self, rows: &[ResultRow]) -> Result<ArrayRef, Error> {
        match self.ids {
            IdKind::Text => {
                let ids = rows.iter().map(|row| match &row.id {
                    ItemId::Text(id) => Ok(Some(id)),
                    ItemId::Integer(_) => Err(wrong("id", "text", row.id.to_string())),
                });
                Ok(Arc::new(ids.collect::<Result<StringArray, Error>>()?))
            }
            IdKind::Integer => {
                let ids = rows.iter().map(|row| {
                    let id = if let ItemId::Integer(id) = row.id { i64::try_from(id).ok() } else { None };
                    id.ok_or_else(|| wrong("id", WHOLE, row.id.to_string()))
                });
                Ok(Arc::new(ids.collect::<Result<Int64Array, Error>>()?))
            }
        }
    }
}

/// What pyarrow and Spark call the type of a column.
fn words(kind: &DataType) -> [&'static str; 2] {
    match kind {
        DataType::Int64 => ["int64", "BIGINT"],
        DataType::Float64 => ["double", "DOUBLE"],
        DataType::Int32 => ["int32", "INT"],
        DataType::Binary => ["binary", "BINARY"],
        DataType::List(item) if *item.data_type() == DataType::Float64 => ["list<double>", "ARRAY<DOUBLE>"],
        DataType::List(_) => ["list<float>", "ARRAY<FLOAT>"],
        _ => ["string", "STRING"],
    }
}

impl ResultRow {
    /// Reads the rows of a batch, whoever wrote it: texts and bytes may have any of Arrow's types for them, numbers any width, `tokens`
    /// also those of floating-point numbers, and columns any order; others are passed over.
    ///
    /// # Errors
    /// [`Error::BatchColumn`] for a column that is missing or of another type, a null where there must be a value, a score that is not
    /// finite or whose status says that there is none or the reverse, and an `input` that has not 16 bytes.
    pub fn from_batch(batch: &RecordBatch) -> Result<Vec<Self>, Error> {
        let text = |name: &'static str| texts(name, required(batch, name, "a column of text")?);
        let there = |name: &'static str| -> Result<Vec<&str>, Error> {
            let values = text(name)?.into_iter().enumerate();
            values.map(|(row, text)| text.ok_or_else(|| null(name, row))).collect()
        };
        let ids = ids("id", required(batch, "id", "a column of ids")?)?;
        let scores = numbers("score", required(batch, "score", "a column of numbers")?)?;
        let (statuses, details) = (there("status")?, text("detail")?);
        let (runs, devices) = (there("run")?, there("device")?);
        let tokens = whole("tokens", required(batch, "tokens", "a column of whole numbers")?)?;
        let inputs = bytes("input", required(batch, "input", "a column of bytes")?)?;
        let list = |name: &'static str| column(batch, name).map(|array| lists(name, array)).transpose();
        let (mut probabilities, mut logits) = (list("probabilities")?, list("logits")?);
        let rows = ids.into_iter().enumerate().map(|(row, id)| {
            let (score, status) = (scores[row], statuses[row]);
            if score.is_some() != (status == SCORED) {
                let found = format!("{} beside the status {status:?} in row {row} of the batch", shown(score));
                return Err(wrong("score", "a number where the status is \"scored\", null elsewhere", found));
            }
            if score.is_some_and(|score| !score.is_finite()) {
                return Err(wrong("score", "finite numbers", format!("{} in row {row} of the batch", shown(score))));
            }
            let input = inputs[row].ok_or_else(|| null("input", row))?;
            let input = input
                .try_into()
                .map_err(|_| wrong("input", "16 bytes", format!("{} in row {row} of the batch", input.len())))?;
            let count = tokens[row].map(u32::try_from).transpose();
            let count = count.map_err(|_| {
                wrong("tokens", "a number of tokens", format!("{} in row {row} of the batch", shown(tokens[row])))
            })?;
            let take = |lists: &mut Option<Vec<Option<Vec<f64>>>>| lists.as_mut().and_then(|lists| lists[row].take());
            Ok(Self {
                id,
                score,
                status: status.to_owned(),
                detail: details[row].map(str::to_owned),
                tokens: count,
                input,
                run: runs[row].to_owned(),
                device: devices[row].to_owned(),
                probabilities: take(&mut probabilities),
                // They were f32 when they were written.
                logits: take(&mut logits).map(|list| list.into_iter().map(|logit| logit as f32).collect()),
            })
        });
        rows.collect()
    }

    /// The hash of the id.
    #[must_use]
    pub fn id_hash(&self) -> RowHash {
        RowHash::of_id(&self.id)
    }

    /// The hash of what was scored, under which id: `input` of another row does not pass for this one's.
    #[must_use]
    pub fn input_hash(&self) -> RowHash {
        RowHasher::new("input").id("id", &self.id).bytes("input", &self.input).finish()
    }

    /// Whether this row stands for one whose worker died: it has nothing of its own but its id.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.status == Reason::WorkerDied.as_str()
    }

    /// The hash of all columns but `device`: on the CPU the same whoever computed the row.
    #[must_use]
    pub fn result_hash(&self) -> RowHash {
        let Self { id, score, status, detail, tokens, input, run, device: _, probabilities, logits } = self;
        let hasher =
            RowHasher::new("result").id("id", id).text("status", status).bytes("input", input).text("run", run);
        let hasher = with(hasher, "score", *score, |hasher, name, score| hasher.numbers(name, &[score]));
        let hasher = with(hasher, "detail", detail.as_deref(), RowHasher::text);
        let hasher = with(hasher, "tokens", *tokens, |hasher, name, tokens| hasher.integer(name, tokens.into()));
        let hasher = with(hasher, "probabilities", probabilities.as_deref(), RowHasher::numbers);
        let logits = logits.as_ref().map(|logits| logits.iter().copied().map(f64::from).collect::<Vec<_>>());
        with(hasher, "logits", logits.as_deref(), RowHasher::numbers).finish()
    }
}

/// The hash with one more value, which may not be there.
fn with<T>(
    hasher: RowHasher,
    name: &str,
    value: Option<T>,
    add: impl FnOnce(RowHasher, &str, T) -> RowHasher,
) -> RowHasher {
    match value {
        Some(value) => add(hasher, name, value),
        None => hasher.null(name),
    }
}

/// Whole numbers of a column of any type of numbers: pandas keeps those of a column with gaps as floating-point numbers.
fn whole(name: &str, array: &dyn Array) -> Result<Vec<Option<i128>>, Error> {
    if !array.data_type().is_floating() {
        return integers(name, array);
    }
    let whole = |(row, number): (usize, Option<f64>)| match number {
        Some(number) if number.fract() != 0.0 => {
            Err(wrong(name, "whole numbers", format!("{number} in row {row} of the batch")))
        }
        number => Ok(number.map(|number| number as i128)),
    };
    numbers(name, array)?.into_iter().enumerate().map(whole).collect()
}

/// A value in a message.
fn shown(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "null".to_owned(), |value| value.to_string())
}

/// That a column has no value where it must have one.
fn null(name: &str, row: usize) -> Error {
    wrong(name, "a value in every row", format!("null in row {row} of the batch"))
}

/// What parts of a run add up to: how many rows of each status, and the digests of their ids, inputs and results.
///
/// Equal `inputs` say that the same items were scored the same number of times, from the same texts; equal `results` that they got the
/// same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultTally {
    /// Number of rows.
    pub rows: u64,
    /// Rows with a score.
    pub scored: u64,
    /// Rows without, by status.
    pub unscored: BTreeMap<String, u64>,
    /// Tokens of the prompts that were read.
    pub tokens: u64,
    /// The digests.
    pub digests: ResultDigests,
}

/// The digests of a set of rows, whatever their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultDigests {
    /// Of [`ResultRow::id_hash`].
    pub ids: SetDigest,
    /// Of [`ResultRow::input_hash`].
    pub inputs: SetDigest,
    /// Of [`ResultRow::result_hash`].
    pub results: SetDigest,
}

impl ResultTally {
    /// Adds a row.
    pub fn add(&mut self, row: &ResultRow) {
        self.rows += 1;
        match row.status == SCORED {
            true => self.scored += 1,
            false => *self.unscored.entry(row.status.clone()).or_default() += 1,
        }
        self.tokens += u64::from(row.tokens.unwrap_or_default());
        self.digests.ids.add(row.id_hash());
        self.digests.inputs.add(row.input_hash());
        self.digests.results.add(row.result_hash());
    }
}

impl AddAssign<&Self> for ResultTally {
    /// Adds another part.
    fn add_assign(&mut self, other: &Self) {
        self.rows += other.rows;
        self.scored += other.scored;
        other.unscored.iter().for_each(|(status, rows)| *self.unscored.entry(status.clone()).or_default() += rows);
        self.tokens += other.tokens;
        self.digests.ids += other.digests.ids;
        self.digests.inputs += other.digests.inputs;
        self.digests.results += other.digests.results;
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{LargeBinaryArray, LargeStringArray, NullArray, StringViewArray};
    use proptest::prelude::*;

    use super::*;

    fn rows(kind: IdKind) -> impl Strategy<Value = Vec<ResultRow>> {
        let id = move |number: i64| match kind {
            IdKind::Text => ItemId::Text(format!("row {number} é")),
            IdKind::Integer => ItemId::Integer(i128::from(number)),
        };
        let numbers = prop::option::of(prop::collection::vec(-1e9_f64..1e9, 0..4));
        let row =
            (any::<i64>(), prop::option::of(-5.0_f64..5.0), 0_u32..1 << 31, any::<[u8; 16]>(), numbers, any::<bool>());
        let row = row.prop_map(move |(number, score, tokens, input, list, is_read)| ResultRow {
            id: id(number),
            score,
            status: if score.is_some() { "scored" } else { "too_long" }.to_owned(),
            detail: score.is_none().then(|| format!("found {tokens}")),
            tokens: is_read.then_some(tokens),
            input,
            run: "0123456789abcdef".to_owned(),
            device: "cpu".to_owned(),
            logits: list.as_ref().map(|list| list.iter().map(|x| *x as f32).collect()),
            probabilities: list,
        });
        prop::collection::vec(row, 0..8)
    }

    fn tally(rows: &[ResultRow]) -> ResultTally {
        let mut digests = ResultTally::default();
        rows.iter().for_each(|row| digests.add(row));
        digests
    }

    proptest! {
        #[test]
        fn rows_come_back_from_batches_and_parts_add_up(
            texts in rows(IdKind::Text), integers in rows(IdKind::Integer), cut in any::<prop::sample::Index>(),
        ) {
            for (kind, rows) in [(IdKind::Text, texts), (IdKind::Integer, integers)] {
                let columns = ResultColumns { ids: kind, probabilities: true, logits: true };
                let batch = columns.batch(&rows).unwrap();
                prop_assert_eq!(batch.schema(), columns.schema());
                prop_assert_eq!(&ResultRow::from_batch(&batch).unwrap(), &rows);
                let (a, b) = rows.split_at(if rows.is_empty() { 0 } else { cut.index(rows.len()) });
                let mut parts = tally(b);
                parts += &tally(a);
                prop_assert_eq!(parts, tally(&rows));
                // A slice of a batch is a batch.
                let slice = batch.slice(a.len(), b.len());
                prop_assert_eq!(&ResultRow::from_batch(&slice).unwrap(), b);
                // Without what was not asked for.
                let columns = ResultColumns { ids: kind, ..ResultColumns::default() };
                let plain: Vec<ResultRow> =
                    rows.iter().map(|row| ResultRow { probabilities: None, logits: None, ..row.clone() }).collect();
                prop_assert_eq!(ResultRow::from_batch(&columns.batch(&rows).unwrap()).unwrap(), plain);
            }
        }
    }

    fn one() -> ResultRow {
        ResultRow {
            id: ItemId::Text("a".to_owned()),
            score: Some(3.5),
            status: SCORED.to_owned(),
            detail: None,
            tokens: Some(12),
            input: [7; 16],
            run: "r".to_owned(),
            device: "cpu".to_owned(),
            probabilities: Some(vec![0.25, 0.75]),
            logits: Some(vec![1.0]),
        }
    }

    #[test]
    fn types_follow_from_what_was_asked_for_and_not_from_the_data() {
        let all = ResultColumns { ids: IdKind::Integer, probabilities: true, logits: true };
        assert_eq!(
            all.spark_ddl(),
            "id BIGINT, score DOUBLE, status STRING, detail STRING, tokens INT, input BINARY, run STRING, device STRING, \
             probabilities ARRAY<DOUBLE>, logits ARRAY<FLOAT>"
        );
        let row = ResultRow { id: ItemId::Integer(1), score: None, status: "worker_died".to_owned(), ..one() };
        let nothing = ResultRow { tokens: None, probabilities: None, logits: None, ..row };
        for rows in [&[nothing][..], &[]] {
            assert_eq!(all.batch(rows).unwrap().schema(), all.schema());
        }
        let kinds: Vec<DataType> = all.schema().fields().iter().map(|field| field.data_type().clone()).collect();
        assert!(!kinds.iter().any(|kind| matches!(kind, DataType::Null | DataType::Dictionary(..))));
    }

    #[test]
    fn every_column_but_the_device_is_part_of_the_result() {
        let row = one();
        let others = [
            ResultRow { id: ItemId::Text("b".to_owned()), ..one() },
            ResultRow { score: Some(f64::from_bits(3.5_f64.to_bits() + 1)), ..one() },
            ResultRow { status: "other".to_owned(), ..one() },
            ResultRow { detail: Some(String::new()), ..one() },
            ResultRow { tokens: None, ..one() },
            ResultRow { input: [8; 16], ..one() },
            ResultRow { run: "s".to_owned(), ..one() },
            ResultRow { probabilities: Some(vec![0.75, 0.25]), ..one() },
            ResultRow { logits: None, ..one() },
        ];
        assert!(others.iter().all(|other| other.result_hash() != row.result_hash()));
        assert_eq!(ResultRow { device: "cuda:0".to_owned(), ..one() }.result_hash(), row.result_hash());
        assert!(others.iter().filter(|other| other.input_hash() != row.input_hash()).count() == 2);
        assert!(others.iter().filter(|other| other.id_hash() != row.id_hash()).count() == 1);
    }

    /// A batch of one row with a column in place of another.
    fn with(name: &str, column: ArrayRef) -> RecordBatch {
        let columns = ResultColumns { probabilities: true, ..ResultColumns::default() };
        let batch = columns.batch(&[one()]).unwrap();
        let others = batch
            .schema()
            .fields()
            .iter()
            .zip(batch.columns())
            .map(|(field, column)| (field.name().clone(), Arc::clone(column)))
            .filter(|(other, _)| other != name)
            .collect::<Vec<_>>();
        let fields = others.into_iter().chain([(name.to_owned(), column)]);
        RecordBatch::try_from_iter(fields).unwrap()
    }

    #[test]
    fn engines_may_write_other_types_for_the_same() {
        let columns: [(&str, ArrayRef); 5] = [
            ("id", Arc::new(LargeStringArray::from(vec!["a"]))),
            ("status", Arc::new(StringViewArray::from(vec!["scored"]))),
            ("input", Arc::new(LargeBinaryArray::from(vec![&[7_u8; 16][..]]))),
            ("tokens", Arc::new(Int64Array::from(vec![12]))),
            ("tokens", Arc::new(Float64Array::from(vec![12.0]))),
        ];
        for (name, column) in columns {
            let expected = ResultRow { logits: None, ..one() };
            assert_eq!(ResultRow::from_batch(&with(name, column)).unwrap(), [expected], "{name}");
        }
    }

    #[test]
    fn what_is_no_result_is_named() {
        let none: Option<&str> = None;
        let cases: [(&str, ArrayRef, &str); 10] = [
            ("id", Arc::new(StringArray::from(vec![none])), "null in row 0"),
            ("id", Arc::new(arrow_array::BooleanArray::from(vec![true])), "Boolean"),
            ("status", Arc::new(StringArray::from(vec![none])), "null in row 0"),
            (
                "status",
                Arc::new(StringArray::from(vec!["too_long"])),
                "column \"score\": expected a number where the status is \"scored\", null elsewhere, found 3.5 beside",
            ),
            ("score", Arc::new(NullArray::new(1)), "Null"),
            ("score", Arc::new(Float64Array::from(vec![f64::NAN])), "found NaN in row 0"),
            ("tokens", Arc::new(Int64Array::from(vec![-1])), "found -1 in row 0"),
            ("tokens", Arc::new(Float64Array::from(vec![1.5])), "found 1.5 in row 0"),
            ("input", Arc::new(LargeBinaryArray::from(vec![&[7_u8; 15][..]])), "15 in row 0"),
            ("probabilities", Arc::new(StringArray::from(vec!["0.5"])), "Utf8"),
        ];
        for (name, column, words) in cases {
            let error = ResultRow::from_batch(&with(name, column)).unwrap_err().to_string();
            assert!(error.contains(words), "{name}: {error}");
        }
        let columns = ResultColumns::default();
        let batch = columns.batch(&[one()]).unwrap();
        let error = ResultRow::from_batch(&batch.project(&[0, 1, 2]).unwrap()).unwrap_err().to_string();
        assert!(error.contains("no such column"), "{error}");
        for id in [ItemId::Integer(1), ItemId::Integer(1 << 70)] {
            let kind = if id == ItemId::Integer(1) { IdKind::Text } else { IdKind::Integer };
            let columns = ResultColumns { ids: kind, ..columns };
            assert!(columns.batch(&[ResultRow { id, ..one() }]).is_err());
        }
    }
}
