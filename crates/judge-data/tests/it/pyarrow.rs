//! Rows as pyarrow writes them, in the types and encodings that engines use (`scripts/clusters/arrow_fixtures.py`).

use std::fs;

use judge_core::{Fields, ItemId, Prompt, PromptTemplate};
use judge_data::{BatchItem, BatchReader, Error, IdKind, ItemColumns, ItemSpec, ParquetTable};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::files::place;

#[derive(Deserialize)]
struct Fixtures {
    streams: Vec<Case>,
    files: Vec<Case>,
    refused: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    bytes: String,
    #[serde(default)]
    rows: Vec<Value>,
    #[serde(default)]
    says: String,
}

impl Case {
    fn bytes(&self) -> Vec<u8> {
        let digits = self.bytes.as_bytes().chunks_exact(2);
        digits.map(|two| u8::from_str_radix(str::from_utf8(two).expect("ASCII"), 16).expect("digits")).collect()
    }

    fn spec(&self) -> ItemSpec {
        let ids = match self.rows.first().is_some_and(|row| row[0].is_number()) {
            true => IdKind::Integer,
            false => IdKind::Text,
        };
        let template = PromptTemplate::new(Prompt::user("{instruction} {response}")).expect("a template");
        let columns = "instruction=prompt,response=completion".parse().expect("columns");
        ItemSpec { template, columns, id: "id".to_owned(), ids }
    }

    /// That these are its rows.
    fn holds(&self, items: &[BatchItem]) {
        let found: Vec<Value> = items
            .iter()
            .map(|item| {
                let id = match &item.id {
                    ItemId::Text(text) => json!(text),
                    ItemId::Integer(number) => json!(i64::try_from(*number).expect("64 bits")),
                };
                json!([id, item.field("instruction"), item.field("response")])
            })
            .collect();
        assert_eq!(found, self.rows, "{}", self.name);
    }
}

fn fixtures() -> Fixtures {
    serde_json::from_str(include_str!("../fixtures/pyarrow.json")).expect("fixtures")
}

fn of_stream(case: &Case, bytes: &[u8]) -> Result<Vec<BatchItem>, Error> {
    let reader = BatchReader::new(bytes, "a pipe")?;
    let columns = ItemColumns::find(reader.schema(), &case.spec())?;
    let batches = reader.map(|batch| columns.items(&batch?));
    Ok(batches.collect::<Result<Vec<_>, _>>()?.concat())
}

#[test]
fn streams_hold_the_rows_that_pyarrow_wrote() {
    let fixtures = fixtures();
    assert!(fixtures.streams.len() >= 9);
    for case in &fixtures.streams {
        let bytes = case.bytes();
        case.holds(&of_stream(case, &bytes).unwrap_or_else(|error| panic!("{}: {error}", case.name)));
        // Cut anywhere, it is an error and never fewer rows.
        for end in 0..bytes.len() {
            assert!(of_stream(case, &bytes[..end]).is_err(), "{} cut at {end}", case.name);
        }
    }
    for case in &fixtures.refused {
        let error = of_stream(case, &case.bytes()).expect_err(&case.name).to_string();
        assert!(error.to_lowercase().contains(&case.says), "{}: {error}", case.name);
    }
}

#[test]
fn files_hold_the_rows_that_pyarrow_wrote() {
    let (_folder, path) = place("rows.parquet");
    let fixtures = fixtures();
    assert!(fixtures.files.len() >= 8);
    for case in &fixtures.files {
        fs::write(&path, case.bytes()).expect("written");
        let table = ParquetTable::open(&path).unwrap_or_else(|error| panic!("{}: {error}", case.name));
        let columns =
            ItemColumns::find(table.schema(), &case.spec()).unwrap_or_else(|error| panic!("{}: {error}", case.name));
        let read = |rows| -> Vec<BatchItem> {
            let batches = table.batches(&columns.indices(table.schema()), rows).expect("batches");
            batches.flat_map(|batch| columns.items(&batch.expect("a batch")).expect("items")).collect()
        };
        let all = read(0..table.rows());
        case.holds(&all);
        // Any range of them, across row groups.
        for start in 0..5 {
            for end in start..=5 {
                assert_eq!(read(start..end), all[start as usize..end as usize], "{}: {start}..{end}", case.name);
            }
        }
    }
}
