//! Any bytes are read or refused as a stream of record batches, of items and of results, without panic and in little memory.
#![no_main]

use judge_core::{Prompt, PromptTemplate};
use judge_data::{BatchReader, BatchWriter, IdKind, ItemColumns, ItemSpec, ResultRow};
use libfuzzer_sys::fuzz_target;

fuzz_target!(init: judge_fuzz::panics_of_others_unwind(), |bytes: &[u8]| {
    let template = PromptTemplate::new(Prompt::user("{instruction} {response}")).unwrap();
    let columns = "instruction=prompt,response=completion".parse().unwrap();
    let mut spec = ItemSpec { template, columns, id: "id".to_owned(), ids: IdKind::Text };
    let Ok(reader) = BatchReader::new(bytes, "fuzz") else { return };
    let schema = reader.schema().clone();
    let mut found = ItemColumns::find(&schema, &spec);
    if found.is_err() {
        spec.ids = IdKind::Integer;
        found = ItemColumns::find(&schema, &spec);
    }
    for batch in reader {
        let Ok(batch) = batch else { return };
        let results = ResultRow::from_batch(&batch);
        assert!(results.is_err() || results.unwrap().len() == batch.num_rows());
        let Ok(columns) = &found else { continue };
        let Ok(items) = columns.items(&batch) else { continue };
        assert_eq!(items.len(), batch.num_rows());
        // Written and read again they are the same.
        let mut again = Vec::new();
        let mut writer = BatchWriter::new(&mut again, "fuzz", &schema).unwrap();
        if writer.write(&batch).is_ok() {
            writer.finish().unwrap();
            let batch = BatchReader::new(&again[..], "fuzz").unwrap().next().unwrap().unwrap();
            assert_eq!(columns.items(&batch).unwrap(), items);
        }
    }
});
