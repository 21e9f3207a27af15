//! Any bytes are read or refused as a Parquet file of items and of results, without panic and in little memory.
#![no_main]

use judge_core::{Prompt, PromptTemplate};
use judge_data::{IdKind, ItemColumns, ItemSpec, ParquetTable, ResultRow};
use libfuzzer_sys::fuzz_target;

fuzz_target!(init: judge_fuzz::let_panics_be_caught(), |bytes: &[u8]| {
    let path = std::env::temp_dir().join(format!("{}.parquet", std::process::id()));
    std::fs::write(&path, bytes).unwrap();
    let Ok(table) = ParquetTable::open(&path) else { return };
    let template = PromptTemplate::new(Prompt::user("{instruction} {response}")).unwrap();
    let columns = "instruction=prompt,response=completion".parse().unwrap();
    let spec = ItemSpec { template, columns, id: "id".to_owned(), ids: IdKind::Text };
    let rows = table.rows().min(10_000);
    if let Ok(columns) = ItemColumns::find(table.schema(), &spec) {
        let Ok(batches) = table.batches(&columns.indices(table.schema()), 0..rows) else { return };
        let mut read = 0;
        for batch in batches {
            let Ok(batch) = batch else { return };
            read += batch.num_rows() as u64;
            let items = columns.items(&batch);
            assert!(items.is_err() || items.unwrap().len() == batch.num_rows());
        }
        assert!(read <= rows);
    } else {
        let all: Vec<usize> = (0..table.schema().fields().len()).collect();
        let Ok(batches) = table.batches(&all, 0..rows) else { return };
        for batch in batches {
            let Ok(batch) = batch else { return };
            let _ = ResultRow::from_batch(&batch);
        }
    }
});
