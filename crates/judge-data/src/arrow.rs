//! Rows as Arrow record batches: how engines that move rows between machines hand them over (feature `arrow`).
//!
//! ```text
//! a stream ── BatchReader ──► RecordBatch ── ItemColumns::items ──► BatchItem
//!                                                                      │ ResultScorer: a judge and a model
//! a stream ◄── BatchWriter ── RecordBatch ◄── ResultColumns::batch ── ResultRow
//!                                  │
//! ResultTally ◄── ResultRow ◄── ResultRow::from_batch
//! ```
//!
//! This file owns how columns are found in a batch and what types they may have. `arrow/stream.rs` has streams of batches, `arrow/items.rs`
//! the columns of items, `arrow/result_row.rs` those of results, and `arrow/scoring.rs` is the way from one to the other.

mod items;
mod result_row;
mod scoring;
mod stream;

use std::panic::{self, AssertUnwindSafe};

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use judge_core::ItemId;

use crate::Error;

pub use items::{BatchItem, ItemColumns, ItemSpec};
pub use result_row::{IdKind, ResultColumns, ResultDigests, ResultRow, ResultTally};
pub use scoring::ResultScorer;
pub use stream::{BatchReader, BatchWriter};

/// The `status` of a row with a score.
const SCORED: &str = "scored";

/// What libraries of Arrow and Parquet make of bytes that anybody may have made.
/// They check them, but have panicked on malformed ones in the past, and a panic is
/// not to take the caller with it.
pub(crate) fn guarded<T>(read: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    panic::catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| Err("its parts contradict each other".to_owned()))
}

/// The column of this name, as readers of batches take it: the only one that has it.
fn column<'b>(batch: &'b RecordBatch, name: &str) -> Option<&'b dyn Array> {
    batch.column_by_name(name).map(|column| &**column)
}

/// That a column has not the type that is wanted, or a value not its form.
pub(crate) fn wrong(name: &str, expected: &'static str, found: impl Into<String>) -> Error {
    Error::BatchColumn { column: name.to_owned(), expected, found: found.into() }
}

/// A column that must be there.
pub(crate) fn required<'b>(batch: &'b RecordBatch, name: &str, expected: &'static str) -> Result<&'b dyn Array, Error> {
    column(batch, name).ok_or_else(|| wrong(name, expected, "no such column"))
}

/// Texts of a column of any of Arrow's types of text; `None` where it is null.
fn texts<'a>(name: &str, array: &'a dyn Array) -> Result<Vec<Option<&'a str>>, Error> {
    match array.data_type() {
        DataType::Utf8 => Ok(array.as_string::<i32>().iter().collect()),
        DataType::LargeUtf8 => Ok(array.as_string::<i64>().iter().collect()),
        DataType::Utf8View => Ok(array.as_string_view().iter().collect()),
        other => Err(wrong(name, "text (utf8, large_utf8 or utf8_view)", other.to_string())),
    }
}

/// Bytes of a column of any of Arrow's types of bytes; `None` where it is null.
fn bytes<'a>(name: &str, array: &'a dyn Array) -> Result<Vec<Option<&'a [u8]>>, Error> {
    match array.data_type() {
        DataType::Binary => Ok(array.as_binary::<i32>().iter().collect()),
        DataType::LargeBinary => Ok(array.as_binary::<i64>().iter().collect()),
        DataType::BinaryView => Ok(array.as_binary_view().iter().collect()),
        DataType::FixedSizeBinary(_) => Ok(array.as_fixed_size_binary().iter().collect()),
        other => Err(wrong(name, "bytes (binary, large_binary, binary_view or fixed_size_binary)", other.to_string())),
    }
}

/// Whole numbers of a column of any width; `None` where it is null.
fn integers(name: &str, array: &dyn Array) -> Result<Vec<Option<i128>>, Error> {
    macro_rules! of {
        ($kind:ty) => {
            Ok(array.as_primitive::<$kind>().iter().map(|number| number.map(i128::from)).collect())
        };
    }
    match array.data_type() {
        DataType::Int8 => of!(Int8Type),
        DataType::Int16 => of!(Int16Type),
        DataType::Int32 => of!(Int32Type),
        DataType::Int64 => of!(Int64Type),
        DataType::UInt8 => of!(UInt8Type),
        DataType::UInt16 => of!(UInt16Type),
        DataType::UInt32 => of!(UInt32Type),
        DataType::UInt64 => of!(UInt64Type),
        other => Err(wrong(name, "whole numbers", other.to_string())),
    }
}

/// Numbers of a column of f32 or f64; `None` where it is null.
fn numbers(name: &str, array: &dyn Array) -> Result<Vec<Option<f64>>, Error> {
    match array.data_type() {
        DataType::Float32 => {
            Ok(array.as_primitive::<Float32Type>().iter().map(|number| number.map(f64::from)).collect())
        }
        DataType::Float64 => Ok(array.as_primitive::<Float64Type>().iter().collect()),
        other => Err(wrong(name, "numbers (float or double)", other.to_string())),
    }
}

/// Lists of numbers without nulls in them; `None` where the list itself is null.
fn lists(name: &str, array: &dyn Array) -> Result<Vec<Option<Vec<f64>>>, Error> {
    let list = |values: Option<std::sync::Arc<dyn Array>>| {
        let Some(values) = values else { return Ok(None) };
        let numbers = numbers(name, &*values)?.into_iter().collect::<Option<Vec<f64>>>();
        numbers.map(Some).ok_or_else(|| wrong(name, "lists without null in them", "a null in a list"))
    };
    match array.data_type() {
        DataType::List(_) => array.as_list::<i32>().iter().map(list).collect(),
        DataType::LargeList(_) => array.as_list::<i64>().iter().map(list).collect(),
        other => Err(wrong(name, "lists of numbers", other.to_string())),
    }
}

/// Ids: texts or whole numbers, none of them null.
fn ids(name: &str, array: &dyn Array) -> Result<Vec<ItemId>, Error> {
    const EXPECTED: &str = "an id, a text or a whole number, in every row";
    let null = |row: usize| wrong(name, EXPECTED, format!("null in row {row} of the batch"));
    if array.data_type().is_integer() {
        let ids = integers(name, array)?.into_iter().enumerate();
        return ids.map(|(row, id)| id.map(ItemId::Integer).ok_or_else(|| null(row))).collect();
    }
    let texts = texts(name, array).map_err(|_| wrong(name, EXPECTED, array.data_type().to_string()))?;
    let ids = texts.into_iter().enumerate();
    ids.map(|(row, id)| id.map(|id| ItemId::Text(id.to_owned())).ok_or_else(|| null(row))).collect()
}
