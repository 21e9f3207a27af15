//! The rows of the input file.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::mem::take;

use anyhow::{Context, Result, bail};
use judge_data::{ScoredFile, ScoredRow, Unread};
use judge_metrics::comparison::{ComparedItem, Rating};
use serde_json::Value;

use judge_cli::args::bars::Lost;
use judge_cli::args::files::open;
use judge_cli::groups::OtherFields;
use judge_cli::missing_fields::tell_unread_that;
use judge_cli::preferences::Preferences;
use judge_cli::ratings::{rating, ratings, tell_alike, text, value};
use judge_cli::sampling::{SAMPLING_PROBABILITY, probability, tell_weighted};
use judge_cli::terminal::console::{counted, counted_that, tell, usage};
use judge_cli::terminal::options::quoted;

use super::cli::Cli;
use super::means::Unlabelled;

/// What the file holds.
#[derive(Default)]
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
    /// What to say where rows name the labels of their scores, and people gave grades off them: distances are of two scales.
    pub off_scale: Option<String>,
    /// What was read of pairs, where rows are those of `judge compare`.
    pub preferences: Preferences,
}

/// Where the judge's confidence is looked for unless a field is named:
/// rows of this project's score files have the probability of each label there.
const CONFIDENCE: &str = "probabilities";

/// Where `judge score` writes its score, and the labels of its scale.
const SCORE: &str = "score";
const LABELS: &str = "labels";

/// Where `judge grade` writes who gave each of a row's ratings.
const RATERS: &str = "raters";

/// Most places of raters in all items together, some 24 bytes each.
const MOST_PLACES: usize = 20_000_000;

/// Most raters of a file to whom one place each is given.
const MOST_RATERS: usize = 100;

/// The reason of rows with a value that is no grade.
const ODD: &str = "unreadable";

/// The reasons of rows that nobody has graded, which are not lost: nobody was asked, or what people gave is no grade.
const NOT_GRADED: [&str; 2] = ["no_human_score", "no_grade"];

/// The least and the greatest of some numbers.
fn ends(numbers: impl Iterator<Item = f64>) -> Option<[f64; 2]> {
    numbers.map(|number| [number; 2]).reduce(|all, one| [all[0].min(one[0]), all[1].max(one[1])])
}

/// The ends of the scale that a row's score is on, where the row names its labels and these are numbers.
fn scale_of(row: &ScoredRow) -> Option<[f64; 2]> {
    let labels = row.row.optional::<Vec<String>>(LABELS, "a list of labels").ok().flatten()?;
    let numbers: Option<Vec<f64>> = labels.iter().map(|label| label.parse().ok()).collect();
    ends(numbers?.into_iter())
}

/// Who gave each rating of an item, where the row says so; or why its names cannot be those of its ratings.
fn raters_of(row: &ScoredRow, item: &ComparedItem) -> Result<Option<Vec<String>>, String> {
    let Some(names) = row.row.list::<String>(RATERS, "a list of names").ok().flatten() else {
        return Ok(None);
    };
    if names.len() != item.human.len() {
        let [names, grades] = [counted(names.len(), "name"), counted(item.human.len(), "grade")];
        return Err(format!("{RATERS} has {names} for {grades}"));
    }
    let mut seen = BTreeSet::new();
    if let Some(twice) = names.iter().find(|name| !seen.insert(name.as_str())) {
        return Err(format!("{RATERS} names {twice:?} twice"));
    }
    Ok(Some(names))
}

/// Gives each rater one place in all items where rows list them in other orders, as those of several files do.
fn align(items: &mut [ComparedItem], raters: &[Option<Vec<String>>]) {
    let mut named = raters.iter().flatten();
    let Some(first) = named.next() else { return };
    if named.all(|names| names == first) {
        return;
    }
    let mut places: HashMap<&str, usize> = HashMap::new();
    for name in raters.iter().flatten().flatten() {
        let next = places.len();
        places.entry(name).or_insert(next);
    }
    let n = places.len();
    let is_too_much = n > MOST_RATERS || n.saturating_mul(items.len()) > MOST_PLACES;
    let why = match raters.contains(&None) {
        true => Some("some rows list none".to_owned()),
        false => is_too_much.then(|| format!("there are {n} of them")),
    };
    if let Some(why) = why {
        tell(format_args!(
            "note: rows differ in their {RATERS:?}, and {why}: ratings stay in their places, so that a place is not one person's"
        ));
        return;
    }
    for (item, names) in items.iter_mut().zip(raters.iter().flatten()) {
        let mut human = vec![None; places.len()];
        for (rating, name) in take(&mut item.human).into_iter().zip(names) {
            human[places[name.as_str()]] = rating;
        }
        item.human = human;
    }
}

impl Pairs {
    pub fn read(cli: &Cli) -> Result<Self> {
        let path = &cli.input;
        let file = ScoredFile::open(open(path)?, cli.limit)?.with_unique_ids()?;
        let found = file.fields(cli.predicted.as_deref(), cli.human.as_deref());
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
            let names = || ScoredFile::human_names(&predicted).collect::<Vec<_>>().join(", ");
            let looked = cli.human.clone().unwrap_or_else(names);
            let alike: Vec<String> = file.candidates(&predicted).map(|name| format!("{name:?}")).collect();
            let hint = if alike.is_empty() {
                format!("the fields are {}", list())
            } else {
                format!("fields that look like one: {}", alike.join(", "))
            };
            bail!("{}: no row has a human score (looked for {looked}); {hint}; name it with --human", path.display());
        };
        let named = [("--group", &cli.group), ("--sampling-probability", &cli.sampling_probability)];
        let named = named.into_iter().filter_map(|(option, field)| Some((option, field.as_ref()?)));
        for (option, field) in named.chain(cli.second.iter().map(|field| ("--second", field))) {
            if option == "--second" && [&predicted, &human].contains(&field) {
                return Err(usage(format!("--second: {field:?} is compared already: name the field of another judge")));
            }
            if !file.has(field) {
                bail!("{}: {option}: no row has the field {field:?}; the fields are {}", path.display(), list());
            }
        }
        let known = file.has(SAMPLING_PROBABILITY).then_some(SAMPLING_PROBABILITY);
        let sampling_probability = cli.sampling_probability.as_deref().or(known).map(str::to_owned);
        if cli.sampling_probability.is_none() && known.is_some() {
            tell_weighted("rows");
        }
        let others = vec![Vec::new(); cli.second.len()];
        let mut pairs = Self { predicted, human, others, sampling_probability, ..Self::default() };
        let (mut unread, mut odd_raters, mut odd_names) = (Unread::default(), Unread::default(), Unread::default());
        let (mut identifiers, mut raters, mut scale) = (OtherFields::default(), Vec::new(), None);
        let own = [pairs.predicted.clone(), pairs.human.clone()];
        let own: Vec<&str> = own.iter().map(String::as_str).collect();
        for row in file.rows(&found)? {
            let row = row?;
            let place = row.place().to_string();
            let name = || row.id.as_ref().map_or_else(|| place.clone(), ToString::to_string);
            let (item, others) = match pairs.item(&row, cli).with_context(|| place.clone())? {
                Ok(item) => item,
                Err((reason, odd)) => {
                    unread.note(&place, odd);
                    if !NOT_GRADED.contains(&reason.as_str()) {
                        pairs.lost.push(name());
                    }
                    *pairs.excluded.entry(reason).or_default() += 1;
                    continue;
                }
            };
            unread.note(&place, None);
            if pairs.predicted == SCORE {
                scale = scale.or_else(|| scale_of(&row));
            }
            odd_raters.note(&place, row.no_grade.clone());
            if let Some(orders) = row.row.value("orders") {
                let pushed = pairs.preferences.push_row(orders, item.ratings(), item.cluster.clone());
                pushed.with_context(|| place.clone())?;
            }
            if cli.cluster.is_none() {
                identifiers.see_identifiers(&row.row, &own);
            }
            let names = raters_of(&row, &item);
            odd_names.note(&place, names.as_ref().err().cloned());
            raters.push(names.ok().flatten());
            pairs.names.push(name());
            pairs.items.push(item);
            pairs.others.iter_mut().zip(others).for_each(|(of_judge, rating)| of_judge.push(rating));
            pairs.groups.push(cli.group.as_deref().and_then(|field| text(&row, field)));
        }
        if let Some((place, why)) = unread.all() {
            bail!("no row can be read; the first is {place}: {why}");
        }
        tell_unread_that(&unread, "have a value that is no grade and are left out");
        tell_unread_that(&odd_raters, "have a rater whose grade is none and is left out");
        tell_unread_that(&odd_names, "have names of raters that cannot be those of their grades and count as without");
        tell_alike(&pairs.items);
        if let Some((field, sentence)) = identifiers.repeated() {
            tell(format_args!("note: {sentence} without --cluster {}", quoted(&field)));
        }
        let people = ends(pairs.items.iter().flat_map(ComparedItem::ratings).filter_map(Rating::number));
        let off = scale.zip(people).filter(|(scale, people)| people[0] < scale[0] || people[1] > scale[1]);
        pairs.off_scale = off.map(|([low, high], [least, most])| {
            format!(
                "People's grades are from {least} to {most} and the judge's scale is from {low} to {high}, so that distances and biases \
                 compare two scales; `judge calibrate` puts scores on people's."
            )
        });
        align(&mut pairs.items, &raters);
        let sure = pairs.items.iter().filter(|item| item.confidence.is_some()).count();
        if sure > 0 && sure < pairs.items.len() {
            let rows = counted_that(pairs.items.len() - sure, "row", ["has", "have"]);
            tell(format_args!(
                "note: {rows} no usable {CONFIDENCE:?}, so none are read as confidence, nor those of a group whose rows all have them; name \
                 another field with --confidence"
            ));
            pairs.items.iter_mut().for_each(|item| item.confidence = None);
        }
        Ok(pairs)
    }

    /// Rows that people have graded, or that have no score: those on which the judge is held against people, if none is lost.
    pub fn rows(&self) -> usize {
        let lost = self.excluded.iter().filter(|(reason, _)| !NOT_GRADED.contains(&reason.as_str()));
        self.items.len() + lost.map(|(_, rows)| rows).sum::<usize>()
    }

    /// A row's ratings and what the other judges say, or why it is left out; what the judge says of a row that nobody graded is kept.
    fn item(&mut self, row: &ScoredRow, cli: &Cli) -> Result<Result<(ComparedItem, Vec<Rating>), LeftOut>> {
        if let Some(unscored) = &row.unscored {
            return Ok(Err((unscored.reason.clone(), None)));
        }
        let read = || -> Result<_, String> {
            let others = cli.second.iter().map(|field| row.grade(field)).collect::<Result<Option<Vec<_>>, _>>()?;
            Ok((row.predicted.clone()?.map(rating), others))
        };
        let (predicted, others) = match read() {
            Ok(read) => read,
            Err(why) => return Ok(Err((ODD.to_owned(), Some(why)))),
        };
        let human = ratings(row.human.clone());
        if human.iter().all(Option::is_none) {
            if let Some(predicted) = predicted.and_then(|rating| rating.number()) {
                let cluster = cli.cluster.as_deref().and_then(|field| text(row, field));
                self.unlabelled.push(Unlabelled { predicted, cluster });
            }
            let [nobody, odd] = NOT_GRADED.map(str::to_owned);
            return Ok(Err(match &row.no_grade {
                Some(why) => (odd, Some(why.clone())),
                None => (nobody, None),
            }));
        }
        let Some(predicted) = predicted else { return Ok(Err(("no_prediction".to_owned(), None))) };
        let Some(others) = others else { return Ok(Err(("no_second_prediction".to_owned(), None))) };
        let cluster = match &cli.cluster {
            None => None,
            Some(field) => Some(text(row, field).with_context(|| {
                format!("--cluster: the row has no {field:?}, so it is not known which rows it belongs to")
            })?),
        };
        let confidence = match &cli.confidence {
            None => value(row, CONFIDENCE)?.and_then(|value| confidence(&value)),
            Some(field) => {
                let found = value(row, field)?.with_context(|| format!("--confidence: the row has no {field:?}"))?;
                let named = confidence(&found);
                Some(named.with_context(|| {
                    format!("--confidence: {field} is {found}, not a number or a set of probabilities")
                })?)
            }
        };
        let named = cli.sampling_probability.as_deref();
        let drawn = self.sampling_probability.as_ref().map(|_| probability(row, named));
        let sampling_probability = drawn.transpose()?;
        let item = ComparedItem { predicted, second: None, human, confidence, cluster, sampling_probability };
        Ok(Ok((item, others.into_iter().map(rating).collect())))
    }
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

/// Why a row is left out: the reason under which it is counted, and what is odd about it, where it has a value that is no grade.
type LeftOut = (String, Option<String>);

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
