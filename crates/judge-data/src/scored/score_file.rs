use std::path::Path;

use judge_core::{ItemId, Reason, Unscored, lager::LayerTable};

use crate::results::pair_table::GradedTable;
use crate::rows::ids::{UniqueIds, id_of};
use crate::{Error, LagerResult, Row, Rows, ScoreOutcome, ScoreRow};

/// The layer logits of one item with its human score: what layer weights are fitted on and variants are compared on.
#[derive(Clone, Debug, PartialEq)]
pub struct ScoredItem {
    /// The item; `idx` in LAGER's files.
    pub id: ItemId,
    /// What people gave it, where known.
    pub human: Option<f64>,
    /// The first thing that a person gave and that is no grade, in words: it is left out of `human`.
    pub no_grade: Option<String>,
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
/// The labels of a pair are the preferences `0`, `0.5` and `1` for the first response. Its logits are the mean of its orders, in which what
/// the place adds to both cancels.
#[derive(Debug)]
pub struct ScoreFile {
    rows: Rows,
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
        Ok(Self { rows, format, ids: UniqueIds::default(), failed: false })
    }

    /// The kind of file.
    pub fn format(&self) -> ScoreFormat {
        self.format
    }

    fn item(&mut self, row: Row) -> Result<ScoredItem, Error> {
        let place = row.place().clone();
        let item = match self.format {
            ScoreFormat::Rows => {
                let (row, no_grade) = ScoreRow::read(row)?;
                let human = row.human_mean();
                let ScoreRow { id, outcome, .. } = row;
                let (labels, table) = match outcome {
                    ScoreOutcome::Unscored(unscored) => (vec![], Err(unscored)),
                    ScoreOutcome::Read(read, _) => (read.labels, Ok(read.table)),
                };
                ScoredItem { id, human, no_grade, labels, table }
            }
            ScoreFormat::Lager => {
                let result = LagerResult::from_row(&row)?;
                let (id, human) = (ItemId::from(result.idx), Some(result.human_score));
                match result.scores {
                    None => {
                        let unscored = Unscored::new(Reason::NoLabel, "LAGER's program found no score (-1)");
                        ScoredItem { id, human, no_grade: None, labels: vec![], table: Err(unscored) }
                    }
                    Some(scores) => {
                        let no_table = |source| Error::Table { place: place.clone(), source: Box::new(source) };
                        let table = scores.table().map_err(no_table)?;
                        let labels = (1..=table.n_scores()).map(|score| score.to_string()).collect();
                        ScoredItem { id, human, no_grade: None, labels, table: Ok(table) }
                    }
                }
            }
            ScoreFormat::Pairs => pair(&row)?,
        };
        self.ids.check(&item.id, &place)?;
        Ok(item)
    }
}

fn pair(row: &Row) -> Result<ScoredItem, Error> {
    let id = id_of(row)?;
    if let Some(unscored) = row.optional("unscored", "an object with a known reason and a detail")? {
        return Ok(ScoredItem { id, human: None, no_grade: None, labels: vec![], table: Err(unscored) });
    }
    let GradedTable { human, no_grade, labels, table } = GradedTable::from_row(row)?;
    Ok(ScoredItem { id, human, no_grade, labels, table: Ok(table) })
}

impl Iterator for ScoreFile {
    type Item = Result<ScoredItem, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let item = self.rows.next()?.and_then(|row| self.item(row));
        self.failed = item.is_err();
        Some(item)
    }
}
