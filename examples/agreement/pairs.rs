//! The rows of the input file.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use anyhow::{Context, Result, bail};
use judge_data::{Extra, Rows};
use serde_json::Value;

/// Which fields hold what.
pub struct Fields<'a> {
    pub predicted: &'a str,
    pub human: &'a str,
    pub second: Option<&'a str>,
    pub group: Option<&'a str>,
    pub cluster: Option<&'a str>,
}

/// A score or a label.
#[derive(Clone, Debug, PartialEq)]
pub enum Score {
    Number(f64),
    Text(String),
}

impl Score {
    fn of(value: &Value) -> Option<Self> {
        match value {
            // -0 is 0.
            Value::Number(number) => {
                number.as_f64().filter(|number| number.is_finite()).map(|number| Self::Number(number + 0.0))
            }
            Value::Bool(truth) => Some(Self::Number(f64::from(u8::from(*truth)))),
            Value::String(text) => Some(Self::Text(text.clone())),
            _ => None,
        }
    }

    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Text(_) => None,
        }
    }

    /// As a label: whole numbers without a point.
    pub fn label(&self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Text(text) => text.clone(),
        }
    }
}

/// A row with a prediction and at least one human score.
pub struct Pair {
    pub predicted: Score,
    pub second: Option<Score>,
    pub human: Vec<Score>,
    pub group: Option<String>,
    pub cluster: Option<String>,
}

/// What the file holds.
pub struct Pairs {
    pub rows: Vec<Pair>,
    /// Rows left out, by reason.
    pub excluded: BTreeMap<String, usize>,
    /// Whether scores are numbers; otherwise all are texts.
    pub numeric: bool,
}

impl Pairs {
    pub fn read(path: &Path, fields: &Fields<'_>, limit: Option<usize>) -> Result<Self> {
        let mut pairs = Self { rows: Vec::new(), excluded: BTreeMap::new(), numeric: true };
        let mut ids = HashSet::new();
        let mut kind: Option<(bool, String)> = None;
        for row in Rows::open(path)?.take(limit.unwrap_or(usize::MAX)) {
            let row = row?;
            let place = row.place().to_string();
            let row = row.into_extra(&[]);
            if let Some(id) = row.text("id") {
                let id: Value = serde_json::from_str(id).with_context(|| place.clone())?;
                if !ids.insert(id.to_string()) {
                    bail!("{place}: the id {id} was there before");
                }
            }
            match pair(&row, fields).with_context(|| place.clone())? {
                Ok(pair) => {
                    let scores = pair.human.iter().chain([&pair.predicted]).chain(&pair.second);
                    for score in scores {
                        let numeric = score.number().is_some();
                        match &kind {
                            None => kind = Some((numeric, place.clone())),
                            Some((known, first)) if *known != numeric => {
                                let what = |numeric| if numeric { "a number" } else { "a text" };
                                let (found, expected) = (what(numeric), what(*known));
                                bail!("{place}: {:?} is {found}, but {first} has {expected}", score.label());
                            }
                            Some(_) => {}
                        }
                    }
                    pairs.rows.push(pair);
                }
                Err(reason) => *pairs.excluded.entry(reason).or_default() += 1,
            }
        }
        pairs.numeric = kind.is_none_or(|(numeric, _)| numeric);
        Ok(pairs)
    }

    pub fn n_excluded(&self) -> usize {
        self.excluded.values().sum()
    }
}

/// A row's pair, or why it is left out.
fn pair(row: &Extra, fields: &Fields<'_>) -> Result<Result<Pair, String>> {
    let value = |field: &str| -> Result<Option<Value>> { Ok(row.text(field).map(serde_json::from_str).transpose()?) };
    if let Some(unscored) = value("unscored")?.filter(|unscored| !unscored.is_null()) {
        let reason = unscored.get("reason").and_then(Value::as_str).unwrap_or("unscored");
        return Ok(Err(reason.to_owned()));
    }
    let score = |field: &str| -> Result<Option<Score>> {
        match value(field)? {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match Score::of(&value) {
                Some(score) => Ok(Some(score)),
                None => bail!("{field} is {value}, not a finite number or a label"),
            },
        }
    };
    let human = match value(fields.human)? {
        None => bail!("there is no field {:?}", fields.human),
        Some(Value::Null) => return Ok(Err("no_human_score".to_owned())),
        Some(Value::Array(raters)) => raters
            .iter()
            .filter(|rater| !rater.is_null())
            .map(|rater| {
                Score::of(rater)
                    .with_context(|| format!("{} has {rater}, not a finite number or a label", fields.human))
            })
            .collect::<Result<Vec<_>>>()?,
        Some(value) => match Score::of(&value) {
            Some(score) => vec![score],
            None => bail!("{} is {value}, not a finite number or a label", fields.human),
        },
    };
    if human.is_empty() {
        return Ok(Err("no_human_score".to_owned()));
    }
    let Some(predicted) = score(fields.predicted)? else { return Ok(Err("no_prediction".to_owned())) };
    let second = match fields.second {
        Some(field) => match score(field)? {
            Some(second) => Some(second),
            None => return Ok(Err("no_second_prediction".to_owned())),
        },
        None => None,
    };
    let name = |field: Option<&str>| -> Result<Option<String>> {
        let Some(field) = field else { return Ok(None) };
        match value(field)? {
            Some(Value::String(text)) => Ok(Some(text)),
            Some(Value::Null) | None => bail!("there is no field {field:?}"),
            Some(other) => Ok(Some(other.to_string())),
        }
    };
    Ok(Ok(Pair { predicted, second, human, group: name(fields.group)?, cluster: name(fields.cluster)? }))
}
