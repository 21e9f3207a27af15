//! What is to be scored, in which shards, and what must come out.

use std::ops::Range;
use std::path::PathBuf;

use judge_core::Fields;
use serde::{Deserialize, Serialize};

use super::buckets::Buckets;
use super::table::{ParquetTable, PlannedFile};
use crate::{BatchItem, Document, Error, ItemColumns, ItemSpec, ResultColumns, RowHash, SetDigest, Settings, run_id};

/// Files of rows, cut into shards, and what their results must add up to.
///
/// Rows count from 0 through all files in their order. Shard `k` is the rows from `k · rows_per_shard` on, wherever they lie;
/// who scores it,
/// and together with which others, changes nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShardPlan {
    /// The run: [`run_id`] of the settings.
    pub run: String,
    /// Everything that may change a row.
    pub settings: Settings,
    /// What follows from the settings and is not the same wherever the model lies, e.g. what the tables of layers are read from.
    #[serde(default)]
    pub resolved: Settings,
    /// The options that say this to the program that made the plan.
    pub arguments: Vec<String>,
    /// What is read of the files.
    pub items: ItemSpec,
    /// What is kept of the results.
    pub results: ResultColumns,
    /// The files, in order.
    pub files: Vec<PlannedFile>,
    /// Number of rows.
    pub rows: u64,
    /// Rows of each shard but the last, which may have fewer.
    pub rows_per_shard: u64,
    /// The digest of all ids.
    pub ids: SetDigest,
    /// The digest of the inputs of each shard.
    pub inputs: Vec<SetDigest>,
}

impl Document for ShardPlan {
    const FORMAT: &'static str = "judge-shard-plan";
    const VERSION: u64 = 1;
}

impl ShardPlan {
    /// Plans the scoring of files: reads the used columns of all rows once. `see` is told of every batch, by its rows.
    ///
    /// Ids are compared by 16 bytes of their hash, in temporary files: memory does not grow with the number of rows.
    ///
    /// # Errors
    /// [`Error::NoItemFits`] if there are rows and none has all fields of the template; [`Error::RepeatedRow`] for an id that occurs twice;
    /// [`Error::InFile`] for a file without the columns; [`Error::NoParquet`], [`Error::Io`].
    pub fn make(
        settings: Settings,
        arguments: Vec<String>,
        items: ItemSpec,
        results: ResultColumns,
        files: &[PathBuf],
        rows_per_shard: u64,
        mut see: impl FnMut(usize),
    ) -> Result<Self, Error> {
        let rows_per_shard = rows_per_shard.max(1);
        let files =
            files.iter().map(|path| Ok(ParquetTable::open(path)?.identity())).collect::<Result<Vec<_>, Error>>()?;
        let rows = files.iter().map(|file| file.rows).sum();
        let (run, ids, inputs) = (run_id(&settings), SetDigest::default(), Vec::new());
        let resolved = Settings::new();
        let mut plan =
            Self { run, settings, resolved, arguments, items, results, files, rows, rows_per_shard, ids, inputs };
        let mut seen = Buckets::<24>::new();
        let mut row = 0_u64;
        let template = &plan.items.template;
        let fields = template.field_names().into_iter().filter(|field| !template.defaults().contains_key(*field));
        let fields: Vec<String> = fields.map(str::to_owned).collect();
        // Of each field whether a row has it, and whether a row has all.
        let (mut had, mut fits) = (vec![false; fields.len()], false);
        for batch in plan.batches(0..rows) {
            let batch = batch?;
            see(batch.len());
            for item in &batch {
                let has: Vec<bool> = fields.iter().map(|field| item.field(field).is_some()).collect();
                had.iter_mut().zip(&has).for_each(|(had, has)| *had |= has);
                fits |= !has.contains(&false);
                let id = RowHash::of_id(&item.id);
                plan.ids.add(id);
                let shard = usize::try_from(row / rows_per_shard).unwrap_or(usize::MAX);
                if plan.inputs.len() == shard {
                    plan.inputs.push(SetDigest::default());
                }
                plan.inputs[shard].add(item.input_hash());
                seen.push_id(id, row as usize)?;
                row += 1;
            }
        }
        if row > 0 && !fits {
            let absent = fields.iter().zip(&had).filter(|(_, had)| !**had).map(|(field, _)| field.clone());
            let absent: Vec<String> = absent.collect();
            return Err(plan.no_item_fits(if absent.is_empty() { fields } else { absent }));
        }
        match seen.repeated(1)?.first() {
            Some(rows) => Err(plan.repeated(rows.map(|row| row as u64))),
            None => Ok(plan),
        }
    }

    fn no_item_fits(&self, fields: Vec<String>) -> Error {
        let table = self.files.first().map(PlannedFile::open).and_then(Result::ok);
        let columns = table.iter().flat_map(|table| table.schema().fields().iter().map(|column| column.name().clone()));
        Error::NoItemFits { rows: self.rows, fields, columns: columns.collect() }
    }

    fn repeated(&self, [first, second]: [u64; 2]) -> Error {
        let id = self.batches(second..second + 1).next();
        let id = id.and_then(Result::ok).and_then(|items| items.first().map(|item| item.id.to_string()));
        Error::RepeatedRow { id: id.unwrap_or_default(), first: self.place(first), second: self.place(second) }
    }

    /// The number of shards.
    pub fn shards(&self) -> usize {
        self.inputs.len()
    }

    /// What tells this plan from another: a hash of all that is in it but the command line and what is resolved.
    #[must_use]
    pub fn id(&self) -> String {
        let Self {
            run,
            settings: _,
            resolved: _,
            arguments: _,
            items,
            results,
            files,
            rows,
            rows_per_shard,
            ids,
            inputs,
        } = self;
        let content = serde_json::json!({
            "run": run, "items": items, "results": results, "files": files, "rows": rows, "rows_per_shard": rows_per_shard, "ids": ids,
            "inputs": inputs,
        });
        run_id(&[("plan".to_owned(), content)].into())
    }

    /// The digest of all inputs.
    pub fn all_inputs(&self) -> SetDigest {
        self.inputs.iter().copied().sum()
    }

    /// The rows of a shard.
    pub fn range(&self, shard: usize) -> Range<u64> {
        let start = (shard as u64).saturating_mul(self.rows_per_shard).min(self.rows);
        start..(start + self.rows_per_shard).min(self.rows)
    }

    /// Where a row lies: its file, and its number there.
    pub fn place(&self, mut row: u64) -> String {
        for file in &self.files {
            if row < file.rows {
                return format!("{} row {row}", file.path.display());
            }
            row -= file.rows;
        }
        format!("row {row} behind the last file")
    }

    /// The items of some rows, some at a time. Each file is compared with the plan before it is read.
    ///
    /// An error is [`Error::FileChanged`] for another file than the planned one, or as of [`make`](Self::make); nothing comes after it.
    pub fn batches(&self, rows: Range<u64>) -> impl Iterator<Item = Result<Vec<BatchItem>, Error>> + use<> {
        let mut start = 0;
        let mut ranges = Vec::new();
        for file in &self.files {
            let end = start + file.rows;
            if start < rows.end && rows.start < end {
                ranges.push((file.clone(), rows.start.max(start) - start..rows.end.min(end) - start));
            }
            start = end;
        }
        let spec = self.items.clone();
        let mut is_done = false;
        let batches = ranges.into_iter().flat_map(move |(file, range)| {
            let items = file.open().and_then(|table| items_of_table(&table, &spec, range));
            let (error, items) = match items {
                Ok(items) => (None, Some(items)),
                Err(error) => (Some(Err(error)), None),
            };
            error.into_iter().chain(items.into_iter().flatten())
        });
        // The first error is given, and nothing behind it.
        batches.take_while(move |batch| {
            let continues = !is_done;
            is_done = batch.is_err();
            continues
        })
    }
}

/// The items of some rows of a table.
pub(super) fn items_of_table(
    table: &ParquetTable,
    spec: &ItemSpec,
    rows: Range<u64>,
) -> Result<impl Iterator<Item = Result<Vec<BatchItem>, Error>> + use<>, Error> {
    let found = ItemColumns::find(table.schema(), spec);
    let columns = found.map_err(|source| Error::InFile { path: table.path().into(), source: Box::new(source) })?;
    table.read(&columns.indices(table.schema()), rows, move |batch| columns.items(batch))
}
