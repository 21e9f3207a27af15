//! The rows of the input file.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};
use judge_data::{ScoredFile, ScoredRow, Unread};
use judge_metrics::comparison::{ComparedItem, Rating};
use judge_probe::RowGroups;
use serde_json::Value;

use judge_cli::args::bars::Lost;
use judge_cli::args::files::open;
use judge_cli::groups::{OtherFields, is_identifier};
use judge_cli::missing_fields::tell_unread_that;
use judge_cli::preferences::Preferences;
use judge_cli::ratings::{rating, ratings, text, value};
use judge_cli::terminal::console::tell;

/// Which fields hold what; the first two are looked for where they are not named.
pub struct Fields<'a> {
    pub predicted: Option<&'a str>,
    pub human: Option<&'a str>,
    /// Of other judges.
    pub others: &'a [String],
    pub group: Option<&'a str>,
    pub cluster: Option<&'a str>,
    pub sampling_probability: Option<&'a str>,
    pub confidence: Option<&'a str>,
}

/// What the file holds.
pub struct Pairs {
    pub predicted: String,
    pub human: String,
    /// Rows with a prediction and a human score.
    pub items: Vec<ComparedItem>,
    /// What each item is called: its id, or where it is in the file.
    pub names: Vec<String>,
    /// What each other judge says of each item.
    pub others: Vec<Vec<Rating>>,
    /// Each item's group: null, or no such field, is a group too.
    pub groups: Vec<Option<String>>,
    /// Rows that the judge has scored and people have not.
    pub unlabelled: Vec<Unlabelled>,
    /// Rows left out, by reason.
    pub excluded: BTreeMap<String, usize>,
    /// Those of them that people have graded, or that have no score.
    pub lost: Lost,
    /// The field of the chance that a row had of being graded, where there is one.
    pub sampling_probability: Option<String>,
    /// What was read of pairs, where rows are those of `judge compare`.
    pub preferences: Preferences,
}

/// A row without a human score.
pub struct Unlabelled {
    pub predicted: f64,
    pub cluster: Option<String>,
}

/// Where `judge grade` writes the chance that a row had of being graded.
const SAMPLING_PROBABILITY: &str = "sampling_probability";

/// Where the judge's confidence is looked for unless a field is named:
/// rows of this project's score files have the probability of each label there.
const CONFIDENCE: &str = "probabilities";

/// The reason of rows with a value that is no grade.
const ODD: &str = "unreadable";

/// The reasons of rows that nobody has graded, which are not lost: nobody was asked, or what people gave is no grade.
const NOT_GRADED: [&str; 2] = ["no_human_score", "no_grade"];

/// Says which field names what rows belong together, if one seems to: intervals take them as independent.
fn tell_repeated(identifiers: &OtherFields, rows: usize) {
    let Ok(found) = identifiers.together(RowGroups::alone(rows), true) else { return };
    if let Some(field) = found.by.first() {
        let n = found.groups.n_groups();
        tell(format_args!(
            "note: {rows} rows have {n} values of {field:?}; if rows with one of them are of one question, intervals are too narrow \
             without --cluster {field}"
        ));
    }
}

impl Pairs {
    pub fn read(path: &Path, fields: &Fields<'_>, limit: Option<usize>) -> Result<Self> {
        let file = ScoredFile::open(open(path)?, limit)?.with_unique_ids()?;
        let found = file.fields(fields.predicted, fields.human);
        let list = || file.present().collect::<Vec<_>>().join(", ");
        let Some(predicted) = found.predicted.clone() else {
            bail!(
                "{}: no row has a prediction: looked for {}; the fields are {}; name it with --predicted",
                path.display(),
                ScoredFile::predicted_names().join(", "),
                list()
            );
        };
        if !file.has(&predicted) {
            bail!(
                "{}: no row has both a prediction and a human score: no row has the field {predicted:?}; the fields are {}",
                path.display(),
                list()
            );
        }
        let Some(human) = found.human.clone().filter(|name| file.has(name)) else {
            let looked = fields
                .human
                .map_or_else(|| ScoredFile::human_names(&predicted).collect::<Vec<_>>().join(", "), str::to_owned);
            let alike: Vec<String> = file.candidates(&predicted).map(|name| format!("{name:?}")).collect();
            let hint = if alike.is_empty() {
                format!("the fields are {}", list())
            } else {
                format!("fields that look like one: {}", alike.join(", "))
            };
            bail!("{}: no row has a human score (looked for {looked}); {hint}; name it with --human", path.display());
        };
        let named = fields.group.map(|field| ("--group", field)).into_iter();
        for (option, field) in named.chain(fields.others.iter().map(|field| ("--second", field.as_str()))) {
            if !file.has(field) {
                bail!("{}: {option}: no row has the field {field:?}; the fields are {}", path.display(), list());
            }
        }
        let others = vec![Vec::new(); fields.others.len()];
        let (items, names, groups, unlabelled) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (excluded, lost) = (BTreeMap::new(), Lost::default());
        let preferences = Preferences::default();
        let known = file.has(SAMPLING_PROBABILITY).then_some(SAMPLING_PROBABILITY);
        let sampling_probability = fields.sampling_probability.or(known).map(str::to_owned);
        if fields.sampling_probability.is_none() && known.is_some() {
            tell(format_args!(
                "note: rows are weighted by {SAMPLING_PROBABILITY:?}, the chance that each had of being graded"
            ));
        }
        let mut pairs = Self {
            predicted,
            human,
            items,
            names,
            others,
            groups,
            unlabelled,
            excluded,
            lost,
            sampling_probability,
            preferences,
        };
        let (mut unread, mut odd_raters) = (Unread::default(), Unread::default());
        let mut identifiers = OtherFields::default();
        let own = [pairs.predicted.clone(), pairs.human.clone(), "id".to_owned()];
        let own: Vec<&str> = own.iter().map(String::as_str).collect();
        for row in file.rows(&found)? {
            let row = row?;
            let place = row.place().to_string();
            let name = || row.id.as_ref().map_or_else(|| place.clone(), ToString::to_string);
            let (item, others) = match pairs.item(&row, fields).with_context(|| place.clone())? {
                Ok(item) => item,
                Err(left_out) => {
                    let (reason, odd) = left_out.in_words();
                    unread.note(&place, odd);
                    if !NOT_GRADED.contains(&reason.as_str()) {
                        pairs.lost.push(name());
                    }
                    *pairs.excluded.entry(reason).or_default() += 1;
                    continue;
                }
            };
            unread.note(&place, None);
            odd_raters.note(&place, row.no_grade.clone());
            if let Some(orders) = row.row.value("orders") {
                pairs.preferences.push_row(orders, item.ratings(), item.cluster.clone())?;
            }
            if fields.cluster.is_none() {
                let others = row.row.keys().filter(|&name| is_identifier(name) && !own.contains(&name));
                identifiers.see(others.filter_map(|name| Some((name, row.row.value(name)?))));
            }
            pairs.names.push(name());
            pairs.items.push(item);
            pairs.others.iter_mut().zip(others).for_each(|(of_judge, rating)| of_judge.push(rating));
            pairs.groups.push(fields.group.and_then(|field| text(&row, field)));
        }
        if let Some((place, why)) = unread.all() {
            bail!("no row can be read; the first is {place}: {why}");
        }
        tell_unread_that(&unread, "have a value that is no grade and are left out");
        tell_unread_that(&odd_raters, "have a rater whose grade is none and is left out");
        tell_repeated(&identifiers, pairs.items.len());
        Ok(pairs)
    }

    /// Rows that people have graded, or that have no score: those on which the judge is held against people, if none is lost.
    pub fn rows(&self) -> usize {
        let lost = self.excluded.iter().filter(|(reason, _)| !NOT_GRADED.contains(&reason.as_str()));
        self.items.len() + lost.map(|(_, rows)| rows).sum::<usize>()
    }

    /// A row's ratings and what the other judges say, or why it is left out; what the judge says of a row that nobody graded is kept.
    fn item(&mut self, row: &ScoredRow, fields: &Fields<'_>) -> Result<Result<(ComparedItem, Vec<Rating>), LeftOut>> {
        if let Some(unscored) = &row.unscored {
            return Ok(Err(LeftOut::For(unscored.reason.clone())));
        }
        let read = || -> Result<_, String> {
            let others = fields.others.iter().map(|field| row.grade(field)).collect::<Result<Option<Vec<_>>, _>>()?;
            Ok((row.predicted.clone()?.map(rating), others))
        };
        let (predicted, others) = match read() {
            Ok(read) => read,
            Err(why) => return Ok(Err(LeftOut::Odd(ODD.to_owned(), why))),
        };
        let human = ratings(row.human.clone());
        if human.iter().all(Option::is_none) {
            if let Some(predicted) = predicted.and_then(|rating| rating.number()) {
                let cluster = fields.cluster.and_then(|field| text(row, field));
                self.unlabelled.push(Unlabelled { predicted, cluster });
            }
            let [nobody, odd] = NOT_GRADED.map(str::to_owned);
            return Ok(Err(match &row.no_grade {
                Some(why) => LeftOut::Odd(odd, why.clone()),
                None => LeftOut::For(nobody),
            }));
        }
        let Some(predicted) = predicted else { return Ok(Err(LeftOut::For("no_prediction".to_owned()))) };
        let Some(others) = others else { return Ok(Err(LeftOut::For("no_second_prediction".to_owned()))) };
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
        let sampling_probability =
            self.sampling_probability.as_deref().map(|field| probability(row, field)).transpose()?;
        let item = ComparedItem { predicted, second: None, human, confidence, cluster, sampling_probability };
        Ok(Ok((item, others.into_iter().map(rating).collect())))
    }
}

/// The chance that a row had of being graded.
fn probability(row: &ScoredRow, field: &str) -> Result<f64> {
    let known = value(row, field)?;
    let number = known.as_ref().and_then(Value::as_f64).filter(|p| *p > 0.0 && *p <= 1.0);
    number.with_context(|| {
        let found = known.map_or_else(|| "nothing".to_owned(), |value| value.to_string());
        format!("--sampling-probability: {field} is {found}, expected a number above 0 and at most 1")
    })
}

/// The places of items of which the judge says something else than people, the largest difference first.
pub fn furthest(items: &[ComparedItem]) -> Vec<usize> {
    let off = |item: &ComparedItem| -> f64 {
        let differs = item.ratings().any(|rating| *rating != item.predicted);
        match (item.predicted.number(), item.mean_human()) {
            (Some(score), Some(human)) => (score - human).abs(),
            _ => f64::from(u8::from(differs)),
        }
    };
    let mut off: Vec<(f64, usize)> = items.iter().map(off).zip(0..).filter(|(off, _)| *off > 0.0).collect();
    off.sort_by(|one, other| other.0.total_cmp(&one.0));
    off.into_iter().map(|(_, place)| place).collect()
}

/// Why a row is left out.
enum LeftOut {
    /// It lacks something, or says that it has no score.
    For(String),
    /// It has a value that is no grade: the reason, and what is odd.
    Odd(String, String),
}

impl LeftOut {
    /// The reason under which it is counted, and what is odd about it.
    fn in_words(self) -> (String, Option<String>) {
        match self {
            Self::For(reason) => (reason, None),
            Self::Odd(reason, why) => (reason, Some(why)),
        }
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
