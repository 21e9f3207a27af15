use std::collections::VecDeque;
use std::path::Path;

use judge_core::{ItemId, Reason, Unscored, lager::LayerTable};

use crate::ids::{UniqueIds, id_of, plain};
use crate::pair_table::PairTables;
use crate::{Error, LagerResult, Row, Rows, ScoreOutcome, ScoreRow};

/// The layer logits of one item with its human score: what layer weights are fitted on and variants are compared on.
#[derive(Clone, Debug, PartialEq)]
pub struct ScoredItem {
    /// The item; `idx` in LAGER's files.
    pub id: ItemId,
    /// What people gave it, where known.
    pub human: Option<f64>,
    /// The label texts; 1 to `n_scores` in LAGER's files. Empty for an unscored item.
    pub labels: Vec<String>,
    /// The logits, or why there are none.
    pub table: Result<LayerTable, Unscored>,
}

/// The kinds of score file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScoreFormat {
    /// [`ScoreRow`]s, this project's own.
    Rows,
    /// [`LagerResult`]s.
    Lager,
    /// [`PairRow`](crate::PairRow)s with a [`PairTable`](crate::PairTable) in each order.
    Pairs,
}

/// A score file of this project or of LAGER's program, one item at a time. Ids are unique.
///
/// Each order of a pair is an item: its labels are the preferences `0`, `0.5` and `1` for the first response, and `/swapped` is added to
/// the id of the exchanged order.
#[derive(Debug)]
pub struct ScoreFile {
    rows: Rows,
    /// Items of the last row that are still to come.
    waiting: VecDeque<ScoredItem>,
    format: ScoreFormat,
    ids: UniqueIds,
    failed: bool,
}

impl ScoreFile {
    /// Opens a file and tells its kind from the first row.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::NoRows`], [`Error::UnknownFormat`]; whatever is wrong with the first row.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let mut rows = Rows::open(path)?;
        let row = rows.peek()?.ok_or_else(|| Error::NoRows { path: path.to_path_buf() })?;
        // A row of either kind may be unscored; a pair has its orders all the same.
        let (orders, logits, lager) = (row.has("orders"), row.has("logits"), row.has("direct_socre"));
        let own = logits || (row.has("unscored") && !orders);
        let format = match (own, orders, lager) {
            (true, false, false) => ScoreFormat::Rows,
            (false, true, false) => ScoreFormat::Pairs,
            (false, false, true) => ScoreFormat::Lager,
            _ => {
                let kinds = [("rows", own), ("pairs", orders), ("lager", lager)];
                return Err(Error::UnknownFormat {
                    place: row.place().clone(),
                    found: row.keys().map(str::to_owned).collect(),
                    candidates: kinds.into_iter().filter(|(_, fits)| *fits).map(|(name, _)| name).collect(),
                    known: "rows (logits or unscored), pairs (orders) and lager (direct_socre)",
                });
            }
        };
        Ok(Self { rows, waiting: VecDeque::new(), format, ids: UniqueIds::default(), failed: false })
    }

    /// The kind of file.
    pub fn format(&self) -> ScoreFormat {
        self.format
    }

    /// The items of a row, at least one.
    fn items(&mut self, row: Row) -> Result<VecDeque<ScoredItem>, Error> {
        let place = row.place().clone();
        let (id, items) = match self.format {
            ScoreFormat::Rows => {
                let row = ScoreRow::from_row(row)?;
                let human = row.human_mean();
                let ScoreRow { id, outcome, .. } = row;
                let (labels, table) = match outcome {
                    ScoreOutcome::Unscored(unscored) => (vec![], Err(unscored)),
                    ScoreOutcome::Read(read, _) => (read.labels, Ok(read.table)),
                };
                (id.clone(), vec![ScoredItem { id, human, labels, table }])
            }
            ScoreFormat::Lager => {
                let result = LagerResult::from_row(&row)?;
                let (id, human) = (ItemId::from(result.idx), Some(result.human_score));
                let item = match result.scores {
                    None => {
                        let unscored = Unscored::new(Reason::NoLabel, "LAGER's program found no score (-1)");
                        ScoredItem { id: id.clone(), human, labels: vec![], table: Err(unscored) }
                    }
                    Some(scores) => {
                        let no_table = |source| Error::Table { place: place.clone(), source: Box::new(source) };
                        let table = scores.table().map_err(no_table)?;
                        let labels = (1..=table.n_scores()).map(|score| score.to_string()).collect();
                        ScoredItem { id: id.clone(), human, labels, table: Ok(table) }
                    }
                };
                (id, vec![item])
            }
            ScoreFormat::Pairs => {
                let id = id_of(&row)?;
                (id.clone(), orders(id, &row)?)
            }
        };
        self.ids.check(&id, &place)?;
        Ok(items.into())
    }
}

/// An item for each order of a pair.
fn orders(id: ItemId, row: &Row) -> Result<Vec<ScoredItem>, Error> {
    if let Some(unscored) = row.optional("unscored", "an object with a known reason and a detail")? {
        return Ok(vec![ScoredItem { id, human: None, labels: vec![], table: Err(unscored) }]);
    }
    let PairTables { human, orders } = PairTables::from_row(row)?;
    if orders.is_empty() {
        return Err(row.wrong("orders", "one for each order, of a pair that is not \"unscored\""));
    }
    let item = |(order, labels, table): (String, Vec<String>, LayerTable)| {
        let id = if order == "given" { id.clone() } else { ItemId::from(format!("{}/{order}", plain(&id))) };
        ScoredItem { id, human, labels, table: Ok(table) }
    };
    Ok(orders.into_iter().map(item).collect())
}

impl Iterator for ScoreFile {
    type Item = Result<ScoredItem, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(item) = self.waiting.pop_front() {
            return Some(Ok(item));
        }
        if self.failed {
            return None;
        }
        match self.rows.next()?.and_then(|row| self.items(row)) {
            Ok(items) => {
                self.waiting = items;
                self.waiting.pop_front().map(Ok)
            }
            Err(error) => {
                self.failed = true;
                Some(Err(error))
            }
        }
    }
}
