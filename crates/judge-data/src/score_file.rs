use std::path::Path;

use judge_core::{ItemId, LayerTable, Reason, Unscored};

use crate::ids::UniqueIds;
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
}

/// A score file of this project or of LAGER's program, one item at a time. Ids are unique.
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
        let format = match (row.has("logits") || row.has("unscored"), row.has("direct_socre")) {
            (true, false) => ScoreFormat::Rows,
            (false, true) => ScoreFormat::Lager,
            (both, _) => {
                return Err(Error::UnknownFormat {
                    place: row.place().clone(),
                    found: row.keys().map(str::to_owned).collect(),
                    candidates: if both { vec!["rows", "lager"] } else { vec![] },
                    known: "rows (logits or unscored) and lager (direct_socre)",
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
        let no_table = |source| Error::Table { place: place.clone(), source: Box::new(source) };
        let item = match self.format {
            ScoreFormat::Rows => {
                let row = ScoreRow::from_row(row)?;
                let human = row.human_mean();
                let ScoreRow { id, outcome, .. } = row;
                match outcome {
                    ScoreOutcome::Unscored(unscored) => ScoredItem { id, human, labels: vec![], table: Err(unscored) },
                    ScoreOutcome::Read(read, _) => ScoredItem { id, human, labels: read.labels, table: Ok(read.table) },
                }
            }
            ScoreFormat::Lager => {
                let result = LagerResult::from_row(&row)?;
                let (id, human) = (ItemId::from(result.idx), Some(result.human_score));
                match result.scores {
                    None => {
                        let unscored = Unscored::new(Reason::NoLabel, "LAGER's program found no score (-1)");
                        ScoredItem { id, human, labels: vec![], table: Err(unscored) }
                    }
                    Some(scores) => {
                        let table = scores.table().map_err(no_table)?;
                        let labels = (1..=table.n_scores()).map(|score| score.to_string()).collect();
                        ScoredItem { id, human, labels, table: Ok(table) }
                    }
                }
            }
        };
        self.ids.check(&item.id, &place)?;
        Ok(item)
    }
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
