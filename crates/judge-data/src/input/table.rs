//! Parquet as JSON lines: the rows of a table in the form in which all else is read.

use std::collections::{BTreeSet, HashSet};
use std::fmt::{self, Write as _};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, Float16Type, Float32Type,
    Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, Time32MillisecondType, Time32SecondType,
    Time64MicrosecondType, Time64NanosecondType, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, StructArray};
use arrow_schema::extension::EXTENSION_TYPE_NAME_KEY;
use arrow_schema::{DataType, Field, Fields, Schema, TimeUnit};
use bytes::Bytes;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::basic::{LogicalType, Type};
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};
use parquet::schema::types::{ColumnDescPtr, ColumnDescriptor};

use super::opened::{Opened, Raw};
use crate::arrow::guarded;

/// What a Parquet file begins and ends with.
pub(super) const MAGIC: &[u8] = b"PAR1";
/// Rows that are read at a time.
const BATCH: usize = 1024;
/// What a column of UUIDs is called among Arrow's types.
const UUID: &str = "arrow.uuid";

/// A table as text: one JSON object a line, with the columns in their order, `null` where there is nothing.
///
/// Texts, numbers, booleans, lists and structs are what they are in JSON; decimal numbers keep their digits. Dates and times are texts
/// of ISO 8601, a map is an object, UUIDs are texts with hyphens, and bytes of any length are a text where they are UTF-8. What JSON has no
/// form for is `null`, with a note that names its column: other bytes, NaN, infinities, a map or a struct with a key twice. One such column
/// costs nothing but itself.
pub(super) struct Lines {
    batches: ParquetRecordBatchReader,
    /// The columns, with those of UUIDs named so.
    fields: Fields,
    text: Text,
    opened: Arc<Opened>,
    /// How much of the text is given.
    given: usize,
}

impl fmt::Debug for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lines").field("row", &self.text.row).finish_non_exhaustive()
    }
}

impl Lines {
    pub(super) fn open(opened: Arc<Opened>) -> io::Result<Self> {
        let pages = Pages(opened.clone());
        let open = || {
            let metadata = columns(&pages)?;
            let mut leaves = metadata.parquet_schema().columns().iter();
            let fields = with_leaves(metadata.schema().fields(), &mut leaves, named);
            let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(pages, metadata);
            Ok((fields, builder.with_batch_size(BATCH).build()?))
        };
        let (fields, batches) = guarded(|| open().map_err(|error: ParquetError| error.to_string())).map_err(damaged)?;
        Ok(Self { batches, fields, text: Text::new(&opened.path), opened, given: 0 })
    }

    /// Makes text of the next rows; without any, it stays empty.
    fn next_rows(&mut self) -> io::Result<()> {
        self.given = 0;
        self.text.json.clear();
        let batch = guarded(|| self.batches.next().transpose().map_err(|error| error.to_string())).map_err(damaged)?;
        let Some(batch) = batch else { return Ok(()) };
        let rows = StructArray::from(batch);
        for index in 0..rows.len() {
            self.text.object(&rows, &self.fields, index, None);
            self.text.json.push('\n');
            self.text.row += 1;
        }
        self.text.notes.drain(..).for_each(|note| self.opened.notes.say(note));
        Ok(())
    }
}

/// How the columns of a file are read: texts as texts, whatever the writer kept them as, and times of 96 bits in microseconds, since
/// nanoseconds, which they have otherwise, are too many for other centuries.
fn columns(pages: &Pages) -> Result<ArrowReaderMetadata, ParquetError> {
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let metadata = ArrowReaderMetadata::load(pages, options.clone())?;
    let leaves = metadata.parquet_schema().columns();
    if leaves.iter().all(|leaf| leaf.physical_type() != Type::INT96) {
        return Ok(metadata);
    }
    let schema = Schema::new(with_leaves(metadata.schema().fields(), &mut leaves.iter(), in_microseconds));
    ArrowReaderMetadata::try_new(metadata.metadata().clone(), options.with_schema(Arc::new(schema)))
}

/// Fields of which each leaf is changed. Parquet has the leaves in the same order.
fn with_leaves(
    fields: &Fields,
    leaves: &mut std::slice::Iter<'_, ColumnDescPtr>,
    change: fn(Field, &ColumnDescriptor) -> Field,
) -> Fields {
    fields.iter().map(|field| Arc::new(with_leaf(field, leaves, change))).collect()
}

fn with_leaf(
    field: &Field,
    leaves: &mut std::slice::Iter<'_, ColumnDescPtr>,
    change: fn(Field, &ColumnDescriptor) -> Field,
) -> Field {
    let field = field.clone();
    let kind = match field.data_type() {
        DataType::List(item) => DataType::List(Arc::new(with_leaf(item, leaves, change))),
        DataType::Struct(fields) => DataType::Struct(with_leaves(fields, leaves, change)),
        DataType::Map(entries, sorted) => DataType::Map(Arc::new(with_leaf(entries, leaves, change)), *sorted),
        _ => {
            return match leaves.next() {
                Some(leaf) => change(field, leaf),
                None => field,
            };
        }
    };
    field.with_data_type(kind)
}

fn in_microseconds(field: Field, leaf: &ColumnDescriptor) -> Field {
    match (leaf.physical_type(), field.data_type()) {
        (Type::INT96, DataType::Timestamp(_, zone)) => {
            let kind = DataType::Timestamp(TimeUnit::Microsecond, zone.clone());
            field.with_data_type(kind)
        }
        _ => field,
    }
}

/// UUIDs are bytes to Arrow unless their field says what they are.
fn named(field: Field, leaf: &ColumnDescriptor) -> Field {
    match leaf.logical_type_ref() {
        Some(LogicalType::Uuid) => field.with_metadata([(EXTENSION_TYPE_NAME_KEY, UUID)]),
        _ => field,
    }
}

impl Read for Lines {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.given == self.text.json.len() && !buffer.is_empty() {
            self.next_rows()?;
        }
        let length = (&self.text.json.as_bytes()[self.given..]).read(buffer)?;
        self.given += length;
        Ok(length)
    }
}

fn damaged(problem: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("Parquet: {problem}"))
}

/// Rows as JSON.
pub(crate) struct Text {
    /// What was written.
    pub(crate) json: String,
    /// The number of the row that is written, from 0.
    pub(crate) row: usize,
    /// What is to be said of columns, of each once.
    pub(crate) notes: Vec<String>,
    /// Columns of which something was said.
    noted: BTreeSet<String>,
    path: PathBuf,
}

impl Text {
    /// Of a file of this name.
    pub(crate) fn new(path: &Path) -> Self {
        Self { json: String::new(), row: 0, notes: Vec::new(), noted: BTreeSet::new(), path: path.to_path_buf() }
    }

    /// A row, or a struct within the column of one.
    pub(crate) fn object(&mut self, of: &StructArray, fields: &Fields, index: usize, column: Option<&str>) {
        // That a row has two columns of one name is for whoever reads it to say.
        if let Some(column) = column
            && let Some(name) = name_twice(fields)
        {
            return self.nothing(column, &format!("a struct with two fields {name:?}"));
        }
        self.json.push('{');
        for (place, (field, array)) in fields.iter().zip(of.columns()).enumerate() {
            if place > 0 {
                self.json.push(',');
            }
            self.string(field.name());
            self.json.push(':');
            self.value(array, field, index, column.unwrap_or(field.name()));
        }
        self.json.push('}');
    }

    /// A value of a field, in this column of the row.
    pub(crate) fn value(&mut self, array: &dyn Array, field: &Field, index: usize, column: &str) {
        if array.is_null(index) || *array.data_type() == DataType::Null {
            return self.json.push_str("null");
        }
        macro_rules! primitive {
            ($kind:ty) => {
                array.as_primitive::<$kind>().value(index)
            };
        }
        macro_rules! decimal {
            ($kind:ty) => {
                self.digits(array.as_primitive::<$kind>().value_as_string(index))
            };
        }
        // As chrono's `Debug` writes them: 2026-11-27, 20:23:25.5 and 2026-11-27T20:23:25.5.
        macro_rules! time {
            ($kind:ty, $as:ident, $zone:expr) => {
                match array.as_primitive::<$kind>().$as(index) {
                    Some(time) => self.string(&format!("{time:?}{}", $zone)),
                    None => self.nothing(column, "a time that no calendar has"),
                }
            };
        }
        match field.data_type() {
            DataType::Utf8 => self.string(array.as_string::<i32>().value(index)),
            DataType::LargeUtf8 => self.string(array.as_string::<i64>().value(index)),
            DataType::Utf8View => self.string(array.as_string_view().value(index)),
            DataType::Binary => self.bytes(array.as_binary::<i32>().value(index), column),
            DataType::LargeBinary => self.bytes(array.as_binary::<i64>().value(index), column),
            DataType::BinaryView => self.bytes(array.as_binary_view().value(index), column),
            DataType::FixedSizeBinary(_) => {
                let bytes = array.as_fixed_size_binary().value(index);
                match bytes.try_into().map(u128::from_be_bytes) {
                    Ok(uuid) if field.extension_type_name() == Some(UUID) => self.string(&hyphenated(uuid)),
                    _ => self.bytes(bytes, column),
                }
            }
            DataType::Boolean => self.digits(array.as_boolean().value(index)),
            DataType::Int8 => self.digits(primitive!(Int8Type)),
            DataType::Int16 => self.digits(primitive!(Int16Type)),
            DataType::Int32 => self.digits(primitive!(Int32Type)),
            DataType::Int64 => self.digits(primitive!(Int64Type)),
            DataType::UInt8 => self.digits(primitive!(UInt8Type)),
            DataType::UInt16 => self.digits(primitive!(UInt16Type)),
            DataType::UInt32 => self.digits(primitive!(UInt32Type)),
            DataType::UInt64 => self.digits(primitive!(UInt64Type)),
            DataType::Float16 => self.number(primitive!(Float16Type).to_f32(), column),
            DataType::Float32 => self.number(primitive!(Float32Type), column),
            DataType::Float64 => self.number(primitive!(Float64Type), column),
            DataType::Decimal32(..) => decimal!(Decimal32Type),
            DataType::Decimal64(..) => decimal!(Decimal64Type),
            DataType::Decimal128(..) => decimal!(Decimal128Type),
            DataType::Decimal256(..) => decimal!(Decimal256Type),
            DataType::Date32 => time!(Date32Type, value_as_date, ""),
            DataType::Date64 => time!(Date64Type, value_as_date, ""),
            DataType::Time32(TimeUnit::Second) => time!(Time32SecondType, value_as_time, ""),
            DataType::Time32(_) => time!(Time32MillisecondType, value_as_time, ""),
            DataType::Time64(TimeUnit::Nanosecond) => time!(Time64NanosecondType, value_as_time, ""),
            DataType::Time64(_) => time!(Time64MicrosecondType, value_as_time, ""),
            DataType::Timestamp(unit, zone) => {
                // Parquet keeps those with a zone in UTC.
                let zone = if zone.is_some() { "Z" } else { "" };
                match unit {
                    TimeUnit::Second => time!(TimestampSecondType, value_as_datetime, zone),
                    TimeUnit::Millisecond => time!(TimestampMillisecondType, value_as_datetime, zone),
                    TimeUnit::Microsecond => time!(TimestampMicrosecondType, value_as_datetime, zone),
                    TimeUnit::Nanosecond => time!(TimestampNanosecondType, value_as_datetime, zone),
                }
            }
            DataType::List(item) => self.list(&array.as_list::<i32>().value(index), item, column),
            DataType::LargeList(item) => self.list(&array.as_list::<i64>().value(index), item, column),
            DataType::Struct(fields) => self.object(array.as_struct(), fields, index, Some(column)),
            DataType::Map(entries, _) => self.map(&array.as_map().value(index), entries, column),
            other => self.nothing(column, &format!("{other}")),
        }
    }

    fn list(&mut self, of: &dyn Array, item: &Field, column: &str) {
        self.json.push('[');
        for index in 0..of.len() {
            if index > 0 {
                self.json.push(',');
            }
            self.value(of, item, index, column);
        }
        self.json.push(']');
    }

    /// An object, whose keys are texts: of any other key its JSON.
    fn map(&mut self, of: &StructArray, entries: &Field, column: &str) {
        let DataType::Struct(fields) = entries.data_type() else {
            return self.nothing(column, "a map without entries");
        };
        let ([keys, values], [key, value]) = (of.columns(), &fields[..]) else {
            return self.nothing(column, "a map without keys and values");
        };
        let (before, mut seen) = (self.json.len(), BTreeSet::new());
        self.json.push('{');
        for index in 0..of.len() {
            if index > 0 {
                self.json.push(',');
            }
            let start = self.json.len();
            self.value(keys, key, index, column);
            if !self.json[start..].starts_with('"') {
                let key = self.json.split_off(start);
                self.string(&key);
            }
            if let Some(name) = seen.replace(self.json[start..].to_owned()) {
                self.json.truncate(before);
                return self.nothing(column, &format!("a map with the key {name} twice"));
            }
            self.json.push(':');
            self.value(values, value, index, column);
        }
        self.json.push('}');
    }

    fn string(&mut self, text: &str) {
        self.json.push_str(&serde_json::Value::from(text).to_string());
    }

    /// What JSON writes as it is shown.
    fn digits(&mut self, shown: impl fmt::Display) {
        // A string takes whatever is written into it.
        let _ = write!(self.json, "{shown}");
    }

    /// The shortest digits that are read back as the same number.
    fn number<N: fmt::Display + serde::Serialize>(&mut self, number: N, column: &str) {
        match serde_json::to_string(&number) {
            Ok(digits) if digits != "null" => self.json.push_str(&digits),
            _ => self.nothing(column, &format!("{number}")),
        }
    }

    fn bytes(&mut self, bytes: &[u8], column: &str) {
        match std::str::from_utf8(bytes) {
            Ok(text) => self.string(text),
            Err(_) => self.nothing(column, "bytes that are no text"),
        }
    }

    /// Writes `null` in the place of what JSON has no form for, and says so, once of a column.
    fn nothing(&mut self, column: &str, found: &str) {
        self.json.push_str("null");
        if self.noted.insert(column.to_owned()) {
            let row = self.row;
            self.notes.push(format!(
                "{}: the column {column:?} holds {found}, first in row {row} from 0; JSON has no such value, so it is read as null",
                self.path.display()
            ));
        }
    }
}

/// The first name that is there twice.
fn name_twice(fields: &Fields) -> Option<&str> {
    let mut seen = HashSet::with_capacity(fields.len());
    fields.iter().map(|field| field.name().as_str()).find(|name| !seen.insert(*name))
}

/// A UUID as it is written.
fn hyphenated(uuid: u128) -> String {
    let digits = format!("{uuid:032x}");
    [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-")
}

/// The bytes of the file, which several readers read at once.
struct Pages(Arc<Opened>);

impl Length for Pages {
    fn len(&self) -> u64 {
        self.0.bytes
    }
}

impl ChunkReader for Pages {
    type T = BufReader<Raw>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        Ok(BufReader::new(Raw { opened: self.0.clone(), position: start.min(self.0.bytes) }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let mut bytes = Vec::new();
        self.get_read(start)?.take(length as u64).read_to_end(&mut bytes)?;
        match bytes.len() == length {
            true => Ok(bytes.into()),
            false => Err(ParquetError::EOF(format!("expected {length} bytes at {start}, found {}", bytes.len()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::builder::{Int64Builder, ListBuilder, MapBuilder, StringBuilder};
    use arrow_array::{
        ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array, Int64Array,
        NullArray, RecordBatch, StringArray, TimestampMillisecondArray,
    };
    use parquet::arrow::ArrowWriter;
    use parquet::data_type::{FixedLenByteArray, FixedLenByteArrayType, Int96, Int96Type};
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;

    use super::*;
    use crate::{Columns, Dataset, DatasetOptions, DecisionRecord, Input, Part, Rows};

    fn file(columns: Vec<(&str, ArrayRef)>) -> tempfile::NamedTempFile {
        let batch =
            RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, of)| (name, of, true))).unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut writer = ArrowWriter::try_new(file.reopen().unwrap(), batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        file
    }

    #[test]
    fn a_table_is_read_as_the_json_lines_of_its_rows() {
        let mut raters = ListBuilder::new(Int64Builder::new());
        raters.append_value([Some(4), None]);
        raters.append_null();
        let inner = StructArray::from(vec![(
            Arc::new(Field::new("by", DataType::Utf8, true)),
            Arc::new(StringArray::from(vec![Some("a"), None])) as ArrayRef,
        )]);
        let table = file(vec![
            ("id", Arc::new(Int64Array::from(vec![7, -1]))),
            ("prompt", Arc::new(StringArray::from(vec!["say \"é\"\n", ""]))),
            ("p", Arc::new(Float32Array::from(vec![0.1, 2.0]))),
            ("q", Arc::new(Float64Array::from(vec![Some(1e300), None]))),
            ("ok", Arc::new(BooleanArray::from(vec![true, false]))),
            ("raters", Arc::new(raters.finish())),
            ("from", Arc::new(inner)),
        ]);
        let mut text = String::new();
        let input = Input::open(table.path()).unwrap();
        input.reader().unwrap().read_to_string(&mut text).unwrap();
        let lines = [
            r#"{"id":7,"prompt":"say \"é\"\n","p":0.1,"q":1e+300,"ok":true,"raters":[4,null],"from":{"by":"a"}}"#,
            r#"{"id":-1,"prompt":"","p":2.0,"q":null,"ok":false,"raters":null,"from":{"by":null}}"#,
        ];
        assert_eq!(text, lines.join("\n") + "\n");
        // Two readers of one file do not disturb each other.
        let both = input.rows().unwrap().zip(Dataset::open(&input, &DatasetOptions::default()).unwrap());
        let ids: Vec<_> =
            both.map(|(row, record)| (row.unwrap().place().line, record.unwrap().id().to_string())).collect();
        assert_eq!(ids, [(1, "7".to_owned()), (2, "-1".to_owned())]);
        let second = input.with_part(Some(Part { rows: 1..2, first_number: 0 }));
        assert_eq!(Rows::open(&second).unwrap().map(|row| row.unwrap().place().line).collect::<Vec<_>>(), [2]);
    }

    /// A struct has an option for each of any row, so that null is no description.
    #[test]
    fn a_choice_of_a_struct_has_the_options_of_its_row_or_is_refused() {
        let texts = |texts: [Option<&str>; 2]| Arc::new(StringArray::from(texts.to_vec())) as ArrayRef;
        let of = |fields: Vec<(&str, ArrayRef)>| {
            let fields =
                fields.into_iter().map(|(name, of)| (Arc::new(Field::new(name, of.data_type().clone(), true)), of));
            Arc::new(StructArray::from(fields.collect::<Vec<_>>())) as ArrayRef
        };
        let options = [("Paris", Some("the city"), None), ("Rome", Some("the other"), Some("the first"))];
        let options = of(options.into_iter().map(|(name, one, other)| (name, texts([one, other]))).collect());
        let pick = of(vec![("type", texts([Some("choice"); 2])), ("criteria", options)]);
        let json = r#"{"pick": {"type": "choice", "criteria": {"Rome": null}}}"#;
        let read = |questions: ArrayRef| -> Vec<DecisionRecord> {
            let table = file(vec![("state", texts([Some("s"); 2])), ("questions", questions)]);
            let input = Input::open(table.path()).unwrap();
            DecisionRecord::all(&input, None, &Columns::default()).unwrap().collect::<Result<_, _>>().unwrap()
        };
        let of_structs = read(of(vec![("pick", pick)]));
        assert_eq!(of_structs[0].questions.as_ref().unwrap().get("pick").unwrap().options(), ["Paris", "Rome"]);
        let why = &of_structs[1].unread.as_ref().unwrap().detail;
        assert!(of_structs[1].questions.is_none() && why.contains("the option \"Paris\" is null in a struct"), "{why}");
        let of_texts = read(texts([Some(json); 2]));
        assert_eq!(of_texts[1].questions.as_ref().unwrap().get("pick").unwrap().options(), ["Rome"]);
    }

    fn read(table: &tempfile::NamedTempFile) -> (Vec<String>, Vec<String>) {
        let input = Input::open(table.path()).unwrap();
        let mut text = String::new();
        input.reader().unwrap().read_to_string(&mut text).unwrap();
        (text.lines().map(str::to_owned).collect(), input.notes())
    }

    // https://github.com/deephaven/deephaven-core/issues/1253, https://github.com/duckdb/duckdb/issues/1351,
    // https://github.com/Point72/csp/issues/398, https://github.com/NVIDIA/cudf/issues/3053, https://github.com/duckdb/duckdb/issues/1200
    #[test]
    fn columns_of_any_type_are_read() {
        let mut map = MapBuilder::new(None, StringBuilder::new(), Int64Builder::new());
        map.keys().append_value("a");
        map.values().append_value(1);
        map.append(true).unwrap();
        let decimal = Decimal128Array::from(vec![450]).with_precision_and_scale(5, 2).unwrap();
        let (lines, notes) = read(&file(vec![
            ("id", Arc::new(Int64Array::from(vec![1]))),
            ("at", Arc::new(TimestampMillisecondArray::from(vec![1_500]).with_timezone("UTC"))),
            ("local", Arc::new(TimestampMillisecondArray::from(vec![0]))),
            ("day", Arc::new(Date32Array::from(vec![1]))),
            ("tags", Arc::new(map.finish())),
            ("none", Arc::new(NullArray::new(1))),
            ("grade", Arc::new(decimal)),
            ("half", Arc::new(Float32Array::from(vec![0.5]))),
            ("old", Arc::new(BinaryArray::from(vec![&b"text"[..]]))),
        ]));
        let expected = r#"{"id":1,"at":"1970-01-01T00:00:01.500Z","local":"1970-01-01T00:00:00","day":"1970-01-02","tags":{"a":1},"none":null,"grade":4.50,"half":0.5,"old":"text"}"#;
        assert_eq!((lines, notes), (vec![expected.to_owned()], Vec::new()));
    }

    /// A file of one column, by its schema in Parquet's words, with levels of definition and repetition where it is nested.
    fn column<T: parquet::data_type::DataType>(
        schema: &str,
        values: &[T::T],
        levels: Option<[&[i16]; 2]>,
    ) -> tempfile::NamedTempFile {
        let schema = Arc::new(parse_message_type(&format!("message rows {{ {schema} }}")).unwrap());
        let file = tempfile::NamedTempFile::new().unwrap();
        let properties = Arc::new(WriterProperties::builder().build());
        let mut writer = SerializedFileWriter::new(file.reopen().unwrap(), schema, properties).unwrap();
        let mut rows = writer.next_row_group().unwrap();
        let mut column = rows.next_column().unwrap().unwrap();
        let (defined, repeated) = levels.map(|[defined, repeated]| (defined, repeated)).unzip();
        column.typed::<T>().write_batch(values, defined, repeated).unwrap();
        column.close().unwrap();
        rows.close().unwrap();
        writer.close().unwrap();
        file
    }

    /// Nanoseconds since 1970 are too many for 64 bits where these times lie.
    #[test]
    fn times_of_96_bits_keep_their_century() {
        let [last, first] = [5_373_484, 1_721_426].map(|day| Int96::from(vec![0, 0, day]));
        let times = [last, first];
        let (lines, notes) = read(&column::<Int96Type>("REQUIRED INT96 t;", &times, None));
        assert_eq!(lines, [r#"{"t":"9999-12-31T00:00:00"}"#, r#"{"t":"0001-01-01T00:00:00"}"#]);
        assert_eq!(notes, Vec::<String>::new());
        let list = "OPTIONAL GROUP t (LIST) { REPEATED GROUP list { OPTIONAL INT96 element; } }";
        let (lines, _) = read(&column::<Int96Type>(list, &times, Some([&[3, 3], &[0, 1]])));
        assert_eq!(lines, [r#"{"t":["9999-12-31T00:00:00","0001-01-01T00:00:00"]}"#]);
    }

    #[test]
    fn uuids_are_texts_and_other_bytes_of_a_fixed_length_are_what_they_are_of_any() {
        let bytes = |number: u128| FixedLenByteArray::from(number.to_be_bytes().to_vec());
        let uuids =
            [bytes(0x123e_4567_e89b_12d3_a456_4266_1417_4000), bytes(u128::from_be_bytes(*b"also text, a bit"))];
        let read_as = |kind: &str| {
            let schema = format!("REQUIRED FIXED_LEN_BYTE_ARRAY (16) u{kind};");
            read(&column::<FixedLenByteArrayType>(&schema, &uuids, None))
        };
        let texts = ["123e4567-e89b-12d3-a456-426614174000", "616c736f-2074-6578-742c-206120626974"];
        let expected = texts.map(|text| format!(r#"{{"u":"{text}"}}"#));
        assert_eq!(read_as(" (UUID)"), (expected.to_vec(), Vec::new()));
        let (lines, notes) = read_as("");
        assert_eq!(lines, [r#"{"u":null}"#, r#"{"u":"also text, a bit"}"#]);
        assert!(notes[0].contains("the column \"u\" holds bytes that are no text, first in row 0"), "{notes:?}");
    }

    #[test]
    fn what_has_no_json_costs_itself_and_is_said_once() {
        let image: ArrayRef = Arc::new(BinaryArray::from(vec![&b"\xff\xd8"[..], b"\xff\xd9", b"\xff"]));
        let image = StructArray::from(vec![(Arc::new(Field::new("bytes", DataType::Binary, true)), image)]);
        let (lines, notes) = read(&file(vec![
            ("score", Arc::new(Float64Array::from(vec![1.0, f64::NAN, f64::INFINITY]))),
            ("image", Arc::new(image)),
        ]));
        let expected = ["1.0", "null", "null"].map(|score| format!(r#"{{"score":{score},"image":{{"bytes":null}}}}"#));
        assert_eq!(lines, expected);
        assert_eq!(notes.len(), 2, "{notes:?}");
        assert!(notes[0].contains("the column \"image\" holds bytes that are no text, first in row 0"), "{notes:?}");
        assert!(notes[1].contains("the column \"score\" holds NaN, first in row 1"), "{notes:?}");
    }

    #[test]
    fn a_key_that_is_there_twice_costs_its_column() {
        let mut map = MapBuilder::new(None, StringBuilder::new(), Int64Builder::new());
        for keys in [["a", "b"], ["a", "a"]] {
            for (value, key) in (1..).zip(keys) {
                map.keys().append_value(key);
                map.values().append_value(value);
            }
            map.append(true).unwrap();
        }
        let (lines, notes) = read(&file(vec![("tags", Arc::new(map.finish()))]));
        assert_eq!(lines, [r#"{"tags":{"a":1,"b":2}}"#, r#"{"tags":null}"#]);
        assert!(
            notes[0].contains(r#"the column "tags" holds a map with the key "a" twice, first in row 1"#),
            "{notes:?}"
        );
        let part =
            |n| (Arc::new(Field::new("x", DataType::Int64, true)), Arc::new(Int64Array::from(vec![n])) as ArrayRef);
        let (lines, notes) = read(&file(vec![("s", Arc::new(StructArray::from(vec![part(1), part(2)])))]));
        assert_eq!(lines, [r#"{"s":null}"#]);
        assert!(notes[0].contains(r#"the column "s" holds a struct with two fields "x""#), "{notes:?}");
    }

    #[test]
    fn a_table_that_is_cut_is_named() {
        let cut = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(cut.path(), b"PAR1 and no footer").unwrap();
        let found = Rows::open(cut.path()).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let cut = std::error::Error::source(&found.expect_err("it cannot be read")).expect("its cause").to_string();
        assert!(cut.contains("Parquet"), "{cut}");
    }
}
