//! The rows of the input file.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;

use crate::preferences::Preferences;
use anyhow::{Context, Result, bail};
use judge_data::{Extra, Rows};
use judge_metrics::comparison::{ComparedItem, Rating};
use serde_json::Value;

/// Which fields hold what; the first two are looked for where they are not named.
pub struct Fields<'a> {
    pub predicted: Option<&'a str>,
    pub human: Option<&'a str>,
    pub second: Option<&'a str>,
    pub group: Option<&'a str>,
    pub cluster: Option<&'a str>,
    pub confidence: Option<&'a str>,
}

/// What the file holds.
pub struct Pairs {
    pub predicted: String,
    pub human: String,
    /// Rows with a prediction and a human score.
    pub items: Vec<ComparedItem>,
    /// Each item's group: null, or no such field, is a group too.
    pub groups: Vec<Option<String>>,
    /// Rows that the judge has scored and people have not.
    pub unlabelled: Vec<Unlabelled>,
    /// Rows left out, by reason.
    pub excluded: BTreeMap<String, usize>,
    /// What was read of pairs, where rows are those of `judge compare`.
    pub preferences: Preferences,
}

/// A row without a human score.
pub struct Unlabelled {
    pub predicted: f64,
    pub cluster: Option<String>,
}

/// Where the judge's confidence is looked for unless a field is named: rows of this project's score files have the probability of each label there.
const CONFIDENCE: &str = "probabilities";

/// In the order in which they are looked for. A score file has its prediction in `score`, which is then not the human one.
const PREDICTED: [&str; 3] = ["predicted", "score", "verdict"];
const HUMAN: [&str; 3] = ["human", "scores", "score"];

impl Pairs {
    pub fn read(path: &Path, fields: &Fields<'_>, limit: Option<usize>) -> Result<Self> {
        let mut rows: Vec<(String, Extra)> = Vec::new();
        let (mut ids, mut present) = (HashSet::new(), BTreeSet::new());
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
            present.extend(row.iter().filter(|(_, value)| *value != "null").map(|(key, _)| key.to_owned()));
            rows.push((place, row));
        }
        let found = |names: &[&str], but: &str| {
            names.iter().find(|&&name| name != but && present.contains(name)).map(|name| (*name).to_owned())
        };
        let list = present.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        let Some(predicted) = fields.predicted.map(str::to_owned).or_else(|| found(&PREDICTED, "")) else {
            bail!(
                "{}: no row has a prediction: looked for {}; the fields are {list}; name it with --predicted",
                path.display(),
                PREDICTED.join(", ")
            );
        };
        if !present.contains(&predicted) {
            bail!(
                "{}: no row has both a prediction and a human score: no row has the field {predicted:?}; the fields are {list}",
                path.display()
            );
        }
        let human =
            fields.human.map(str::to_owned).or_else(|| found(&HUMAN, &predicted)).filter(|name| present.contains(name));
        let Some(human) = human else {
            let looked = fields.human.map_or_else(
                || HUMAN.iter().filter(|name| **name != predicted).copied().collect::<Vec<_>>().join(", "),
                str::to_owned,
            );
            let alike = like_scores(&rows, &predicted);
            let hint = if alike.is_empty() {
                format!("the fields are {list}")
            } else {
                format!("fields that look like one: {}", alike.join(", "))
            };
            bail!("{}: no row has a human score (looked for {looked}); {hint}; name it with --human", path.display());
        };
        for (option, field) in [("--group", fields.group), ("--second", fields.second)] {
            if let Some(field) = field.filter(|field| !present.contains(*field)) {
                bail!("{}: {option}: no row has the field {field:?}; the fields are {list}", path.display());
            }
        }
        let (items, groups, unlabelled, excluded) = (Vec::new(), Vec::new(), Vec::new(), BTreeMap::new());
        let preferences = Preferences::default();
        let mut pairs = Self { predicted, human, items, groups, unlabelled, excluded, preferences };
        let mut first: Option<(bool, String)> = None;
        for (place, row) in &rows {
            match pairs.item(row, fields).with_context(|| place.clone())? {
                Ok(item) => {
                    for rating in item.ratings().chain([&item.predicted]).chain(&item.second) {
                        let numeric = rating.number().is_some();
                        let (known, at) = first.get_or_insert_with(|| (numeric, place.clone()));
                        if *known != numeric {
                            let what = |numeric| if numeric { "a number" } else { "a text" };
                            bail!(
                                "{place}: {:?} is {}, but {at} has {}",
                                rating.to_string(),
                                what(numeric),
                                what(*known)
                            );
                        }
                    }
                    if let Some(orders) = row.text("orders") {
                        pairs.preferences.push_row(orders, item.ratings(), item.cluster.clone())?;
                    }
                    pairs.items.push(item);
                    pairs.groups.push(fields.group.and_then(|field| text(row, field)));
                }
                Err(reason) => *pairs.excluded.entry(reason).or_default() += 1,
            }
        }
        Ok(pairs)
    }

    /// A row's ratings, or why it is left out; what the judge says of a row that nobody graded is kept.
    fn item(&mut self, row: &Extra, fields: &Fields<'_>) -> Result<Result<ComparedItem, String>> {
        if let Some(unscored) = value(row, "unscored")? {
            let reason = unscored.get("reason").and_then(Value::as_str).unwrap_or("unscored");
            return Ok(Err(reason.to_owned()));
        }
        let rating = |field: &str, value: &Value| match value {
            Value::Number(number) if number.as_f64().is_some_and(f64::is_finite) => {
                Ok(Rating::Number(number.as_f64().unwrap_or_default() + 0.0))
            }
            Value::Bool(truth) => Ok(Rating::Number(f64::from(u8::from(*truth)))),
            Value::String(text) => Ok(Rating::Text(text.clone())),
            other => bail!("{field} is {other}, not a finite number or a label"),
        };
        let human = match value(row, &self.human)? {
            None => Vec::new(),
            // A rater who gave none keeps the place.
            Some(Value::Array(raters)) => raters
                .iter()
                .map(|rater| (!rater.is_null()).then(|| rating(&self.human, rater)).transpose())
                .collect::<Result<Vec<_>>>()?,
            Some(value) => vec![Some(rating(&self.human, &value)?)],
        };
        let score = |field: &str| value(row, field)?.map(|value| rating(field, &value)).transpose();
        if human.iter().all(Option::is_none) {
            if let Some(predicted) = score(&self.predicted)?.and_then(|rating| rating.number()) {
                let cluster = fields.cluster.and_then(|field| text(row, field));
                self.unlabelled.push(Unlabelled { predicted, cluster });
            }
            return Ok(Err("no_human_score".to_owned()));
        }
        let Some(predicted) = score(&self.predicted)? else { return Ok(Err("no_prediction".to_owned())) };
        let second = match fields.second {
            None => None,
            Some(field) => match score(field)? {
                Some(second) => Some(second),
                None => return Ok(Err("no_second_prediction".to_owned())),
            },
        };
        let cluster = match fields.cluster {
            None => None,
            Some(field) => Some(text(row, field).with_context(|| {
                format!("--cluster: the row has no {field:?}, so it is not known which rows it belongs to")
            })?),
        };
        let confidence = match fields.confidence {
            None => value(row, CONFIDENCE)?.and_then(|value| confidence(&value)),
            Some(field) => {
                let found = value(row, field)?.with_context(|| format!("--confidence: the row has no {field:?}"))?;
                let named = confidence(&found);
                Some(named.with_context(|| {
                    format!("--confidence: {field} is {found}, not a number or a set of probabilities")
                })?)
            }
        };
        Ok(Ok(ComparedItem { predicted, second, human, confidence, cluster }))
    }
}

/// A number is the confidence itself; of probabilities, by label or in a list, it is the largest.
fn confidence(value: &Value) -> Option<f64> {
    let largest = |values: &mut dyn Iterator<Item = &Value>| {
        let numbers: Option<Vec<f64>> = values.map(Value::as_f64).collect();
        numbers?.into_iter().max_by(f64::total_cmp)
    };
    match value {
        Value::Number(number) => number.as_f64(),
        Value::Array(list) => largest(&mut list.iter()),
        Value::Object(by_label) => largest(&mut by_label.values()),
        _ => None,
    }
}

/// A field's value; null is none. A number too large for one, such as 1e400, is an error, as NaN is.
fn value(row: &Extra, field: &str) -> Result<Option<Value>> {
    let Some(text) = row.text(field) else { return Ok(None) };
    // The row was read as JSON, so that nothing but the size of a number can be wrong.
    let value: Value = serde_json::from_str(text).with_context(|| format!("{field} is {text}, not a finite number"))?;
    Ok(Some(value).filter(|value| !value.is_null()))
}

fn text(row: &Extra, field: &str) -> Option<String> {
    match value(row, field) {
        Ok(Some(Value::String(text))) => Some(text),
        Ok(Some(other)) => Some(other.to_string()),
        Ok(None) => None,
        // A name like any other.
        Err(_) => row.text(field).map(str::to_owned),
    }
}

/// Fields of this project's score files that nobody gave as a grade.
const OWN: [&str; 7] = ["id", "probabilities", "label_mass", "labels", "layers", "logits", "step"];

/// Fields that hold numbers or lists of numbers in any of the first rows.
fn like_scores(rows: &[(String, Extra)], predicted: &str) -> Vec<String> {
    let number = |value: &Value| value.is_number();
    let mut names = BTreeSet::new();
    for (_, row) in rows.iter().take(100) {
        for (key, _) in row.iter().filter(|(key, _)| *key != predicted && !OWN.contains(key)) {
            let like = value(row, key).ok().flatten().is_some_and(|value| match &value {
                Value::Array(list) => !list.is_empty() && list.iter().all(|x| number(x) || x.is_null()),
                other => number(other),
            });
            if like {
                names.insert(format!("{key:?}"));
            }
        }
    }
    names.into_iter().collect()
}
