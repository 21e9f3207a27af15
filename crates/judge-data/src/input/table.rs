//! Parquet as JSON lines: the rows of a table in the form in which all else is read.

use std::fmt::{self, Write as _};
use std::io::{self, BufReader, Read};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, StructArray};
use arrow_schema::DataType;
use bytes::Bytes;
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};

use super::opened::{Opened, Raw};
use crate::arrow::guarded;

/// What a Parquet file begins and ends with.
pub(super) const MAGIC: &[u8] = b"PAR1";
/// Rows that are read at a time.
const BATCH: usize = 1024;

/// A table as text: one JSON object a line, with the columns in their order, `null` where there is nothing.
///
/// Columns hold text, whole numbers, numbers, booleans, and lists and structs of them.
/// Any other type, such as a time, is an error that names the column, and so is a
/// number that JSON does not have.
pub(super) struct Lines {
    batches: ParquetRecordBatchReader,
    text: String,
    /// How much of the text is given.
    given: usize,
    /// The number of the next row.
    row: usize,
}

impl fmt::Debug for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lines").field("row", &self.row).finish_non_exhaustive()
    }
}

impl Lines {
    pub(super) fn open(opened: Arc<Opened>) -> io::Result<Self> {
        // Texts come as texts, whatever the writer kept them as.
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let open = || {
            let builder = ParquetRecordBatchReaderBuilder::try_new_with_options(Pages(opened), options)?;
            builder.with_batch_size(BATCH).build()
        };
        let batches = guarded(|| open().map_err(|error| error.to_string())).map_err(damaged)?;
        Ok(Self { batches, text: String::new(), given: 0, row: 0 })
    }

    /// Makes text of the next rows; without any, it stays empty.
    fn next_rows(&mut self) -> io::Result<()> {
        (self.given, self.text) = (0, String::new());
        let batch = guarded(|| self.batches.next().transpose().map_err(|error| error.to_string())).map_err(damaged)?;
        let Some(batch) = batch else { return Ok(()) };
        let rows = StructArray::from(batch);
        for index in 0..rows.len() {
            object(&mut self.text, &rows, index).map_err(|why| damaged(format!("row {}: {why}", self.row)))?;
            self.text.push('\n');
            self.row += 1;
        }
        Ok(())
    }
}

impl Read for Lines {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.given == self.text.len() && !buffer.is_empty() {
            self.next_rows()?;
        }
        let left = &self.text.as_bytes()[self.given..];
        let length = left.len().min(buffer.len());
        buffer[..length].copy_from_slice(&left[..length]);
        self.given += length;
        Ok(length)
    }
}

fn damaged(problem: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("Parquet: {problem}"))
}

/// A row, or a struct within one.
fn object(text: &mut String, of: &StructArray, index: usize) -> Result<(), String> {
    text.push('{');
    for (place, (field, array)) in of.fields().iter().zip(of.columns()).enumerate() {
        if place > 0 {
            text.push(',');
        }
        text.push_str(&json(field.name())?);
        text.push(':');
        value(text, array, index).map_err(|why| format!("the column {:?}: {why}", field.name()))?;
    }
    text.push('}');
    Ok(())
}

fn value(text: &mut String, array: &dyn Array, index: usize) -> Result<(), String> {
    if array.is_null(index) {
        text.push_str("null");
        return Ok(());
    }
    macro_rules! number {
        ($kind:ty) => {
            write!(text, "{}", array.as_primitive::<$kind>().value(index)).map_err(|error| error.to_string())?
        };
    }
    match array.data_type() {
        DataType::Utf8 => text.push_str(&json(array.as_string::<i32>().value(index))?),
        DataType::LargeUtf8 => text.push_str(&json(array.as_string::<i64>().value(index))?),
        DataType::Utf8View => text.push_str(&json(array.as_string_view().value(index))?),
        DataType::Boolean => text.push_str(if array.as_boolean().value(index) { "true" } else { "false" }),
        DataType::Int8 => number!(Int8Type),
        DataType::Int16 => number!(Int16Type),
        DataType::Int32 => number!(Int32Type),
        DataType::Int64 => number!(Int64Type),
        DataType::UInt8 => number!(UInt8Type),
        DataType::UInt16 => number!(UInt16Type),
        DataType::UInt32 => number!(UInt32Type),
        DataType::UInt64 => number!(UInt64Type),
        DataType::Float32 => text.push_str(&finite(array.as_primitive::<Float32Type>().value(index))?),
        DataType::Float64 => text.push_str(&finite(array.as_primitive::<Float64Type>().value(index))?),
        DataType::List(_) => list(text, &array.as_list::<i32>().value(index))?,
        DataType::LargeList(_) => list(text, &array.as_list::<i64>().value(index))?,
        DataType::Struct(_) => object(text, array.as_struct(), index)?,
        other => {
            return Err(format!(
                "expected text, numbers, booleans, or lists and structs of them, found {other}; convert it, or leave it out"
            ));
        }
    }
    Ok(())
}

fn list(text: &mut String, of: &dyn Array) -> Result<(), String> {
    text.push('[');
    for index in 0..of.len() {
        if index > 0 {
            text.push(',');
        }
        value(text, of, index)?;
    }
    text.push(']');
    Ok(())
}

fn json(text: &str) -> Result<String, String> {
    serde_json::to_string(text).map_err(|error| error.to_string())
}

/// The shortest digits that are read back as the same number.
fn finite<N: serde::Serialize + fmt::Display + Copy>(number: N) -> Result<String, String> {
    match serde_json::to_string(&number).map_err(|error| error.to_string())?.as_str() {
        "null" => Err(format!("{number} is no number of JSON; null stands for none")),
        digits => Ok(digits.to_owned()),
    }
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
    use arrow_array::builder::{Int64Builder, ListBuilder};
    use arrow_array::{
        ArrayRef, BooleanArray, Float32Array, Float64Array, Int64Array, RecordBatch, StringArray,
        TimestampMillisecondArray,
    };
    use arrow_schema::Field;
    use parquet::arrow::ArrowWriter;

    use super::*;
    use crate::{Dataset, DatasetOptions, Input, Part, Rows};

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

    #[test]
    fn what_has_no_json_is_named_with_row_and_column() {
        let error = |path: &std::path::Path| {
            let found = Rows::open(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
            std::error::Error::source(&found.expect_err("it cannot be read")).expect("its cause").to_string()
        };
        let read = |table: tempfile::NamedTempFile| error(table.path());
        let time = read(file(vec![("at", Arc::new(TimestampMillisecondArray::from(vec![1])))]));
        assert!(time.contains("row 0: the column \"at\": expected text, numbers"), "{time}");
        let nan = read(file(vec![("score", Arc::new(Float64Array::from(vec![1.0, f64::NAN])))]));
        assert!(nan.contains("row 1: the column \"score\": NaN is no number of JSON"), "{nan}");
        let cut = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(cut.path(), b"PAR1 and no footer").unwrap();
        let cut = error(cut.path());
        assert!(cut.contains("Parquet"), "{cut}");
    }
}
