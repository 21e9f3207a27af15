//! The rows of a run, of either kind, reduced to what a page needs of them.

use std::collections::{BTreeMap, HashMap};
use std::iter::zip;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use judge_cli::groups::OtherFields;
use judge_cli::ids::alike;
use judge_cli::missing_fields::tell_unread_that;
use judge_cli::preferences::Preferences;
use judge_cli::ratings::{rating, tell_alike};
use judge_cli::sampling::{SAMPLING_PROBABILITY, probability, tell_weighted};
use judge_cli::terminal::console::usage;
use judge_core::ItemId;
use judge_core::rag::RagMeasure;
use judge_data::{
    Grade, ParquetTable, PartRecord, ResultRow, ResultTally, Row, ScoredFields, ScoredFile, ScoredRow, Unread, load,
};
use judge_metrics::comparison::{ComparedItem, Rating};
use serde::Serialize;
use serde_json::Value;

use super::answers::Answers;
use super::layers::{OfLayers, Tables, of_layers};
use super::measures::Measures;
use super::texts::{ID, TEXT, cut};

/// Rows that are listed.
pub const ROWS: usize = 1_000;
/// Entries of each other list.
pub const LISTED: usize = 25;
/// Examples of each reason.
const EXAMPLES: usize = 5;
/// Scores beyond this are on no scale, and their differences on no axis.
const LARGEST: f64 = 1e100;
/// Kinds of anything that a file may have any number of.
const KINDS: usize = 25;
/// Texts of a row.
const TEXTS: usize = 6;
/// The fields of a row that are no texts of its item.
const OWN: [&str; 9] = ["id", "verdict", "status", "detail", "completion", "run", "device", "labels", "sentences"];

/// Rows without a score for one reason.
#[derive(Default, Serialize)]
pub struct Unscored {
    pub n: usize,
    pub examples: Vec<Example>,
}

#[derive(Serialize)]
pub struct Example {
    pub id: String,
    pub detail: String,
}

/// A row with a score.
#[derive(Serialize)]
pub struct Listed {
    /// As the page shows it.
    pub id: String,
    /// By which its texts are found.
    #[serde(skip)]
    key: Key,
    pub predicted: String,
    /// The score in full, where it is a number.
    #[serde(skip)]
    pub score: Option<f64>,
    /// What each rater says; empty where nobody graded the row.
    pub human: Vec<String>,
    pub mean_human: Option<f64>,
    /// Of numbers; of labels 1 where no rater gave that label, else 0. `None` where nobody graded the row.
    pub difference: Option<f64>,
    /// By `--group`.
    pub group: Option<String>,
    /// The row's texts by field.
    pub texts: Vec<(String, String)>,
    /// The probability of each label.
    pub probabilities: Vec<(String, f64)>,
    /// Layers, and the expected score of each alone.
    pub layers: Vec<(usize, f64)>,
}

/// What a row is found by in another file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    /// Its id.
    Id(ItemId),
    /// Its number, from 0, of a row without an id.
    Number(usize),
}

/// What became of texts.
pub struct Joined {
    /// Rows that were found.
    pub found: usize,
    /// Whether rows of the texts have no id, those of the scores all having one.
    pub nameless: bool,
}

/// A row with many tokens.
#[derive(Serialize)]
pub struct Long {
    pub id: String,
    pub tokens: u32,
}

/// A part of a run in shards.
#[derive(Serialize)]
pub struct Part {
    pub shard: usize,
    pub rows: u64,
    pub seconds: u64,
    pub device: String,
}

/// How many scores lie in the intervals that came with them.
#[derive(Default, Serialize)]
pub struct Coverage {
    pub n: usize,
    pub inside: usize,
    /// What was aimed at, of the first.
    pub level: Option<f64>,
}

/// What is kept of all rows: some 8 bytes of each, and about 200 more, and 8 for each layer, of those with a human score.
#[derive(Default)]
pub struct Rows {
    /// The field of a row's group.
    group: Option<String>,
    /// Which fields of JSON lines hold what.
    pub fields: ScoredFields,
    pub n: usize,
    /// The scores that are numbers.
    pub scores: Vec<f64>,
    /// Verdicts that are texts, by text.
    pub labels: BTreeMap<String, usize>,
    /// Those of rows with a human score.
    pub graded_labels: BTreeMap<String, usize>,
    pub unscored: BTreeMap<String, Unscored>,
    /// Rows of answers to typed questions, which are no scores.
    answered: usize,
    /// Rows with a score and a grade that is none.
    odd_grades: Unread,
    /// Whether any row says which chance it had of being graded.
    is_sampled: bool,
    /// Rows with a score and a human one.
    pub compared: Vec<ComparedItem>,
    /// Their fields that may name what rows belong together.
    pub others: OtherFields,
    /// The expected score of each layer alone, of each of `compared`; or why there is none.
    pub layers: Vec<Vec<f64>>,
    pub no_layers: Option<String>,
    tables: Option<Tables>,
    /// What was read of pairs, where rows are those of `judge compare`.
    pub preferences: Preferences,
    /// Those that differ most from people, then the first that nobody graded.
    pub listed: Vec<Listed>,
    /// What rows of `judge rag` measure.
    pub measures: Measures,
    /// Answers from retrieved contexts, with their sentences.
    pub answers: Answers,
    pub longest: Vec<Long>,
    pub tokens: Vec<f64>,
    pub coverage: Coverage,
    /// Of result rows: what they add up to, rows by run and device, and the parts.
    pub tally: Option<ResultTally>,
    pub runs: BTreeMap<String, usize>,
    pub devices: BTreeMap<String, usize>,
    pub parts: Vec<Part>,
}

impl Rows {
    pub fn new(group: Option<String>) -> Self {
        Self { group, ..Self::default() }
    }

    /// How many rows have a score.
    pub fn scored(&self) -> usize {
        self.scores.len() + self.labels.values().sum::<usize>()
    }

    /// Refuses rows of which none has a score: there is nothing to report of them.
    pub fn check_scored(&self) -> Result<()> {
        if self.scored() > 0 {
            return Ok(());
        }
        if self.answered > 0 {
            bail!(
                "expected scores, found the answers of `judge decide`, which have no page: the command itself measures them where rows \
                 have `labels`, and --json keeps its figures"
            );
        }
        let reasons = self.unscored.iter().map(|(reason, rows)| format!("{} {reason}", rows.n));
        bail!(
            "none of {} rows has a score: {}; a score is in predicted, score, verdict or faithfulness.mean, or where --predicted says",
            self.n,
            reasons.collect::<Vec<_>>().join(", ")
        )
    }

    /// Reads JSON lines; fields that are not named are found. An id that was there before is an error, as everywhere.
    pub fn read_lines(
        &mut self,
        path: &Path,
        predicted: Option<&str>,
        human: Option<&str>,
        mut see: impl FnMut(usize),
    ) -> Result<()> {
        let file = ScoredFile::open(judge_cli::args::files::open(path)?, None)?.with_unique_ids()?;
        self.fields = file.fields(predicted, human);
        self.is_sampled = file.has(SAMPLING_PROBABILITY);
        if let Some(field) = human.filter(|field| !file.has(field)) {
            bail!("{}: no row has the field {field:?} that --human names", path.display());
        }
        for row in file.rows(&self.fields.clone())? {
            let row = row?;
            see(1);
            let place = row.place().to_string();
            self.line(row).with_context(|| place)?;
            self.n += 1;
        }
        tell_unread_that(&self.odd_grades, "have a rater whose grade is none and is left out");
        tell_alike(&self.compared);
        if self.is_sampled && !self.compared.is_empty() {
            tell_weighted("in the agreement with people rows");
        }
        Ok(())
    }

    fn line(&mut self, row: ScoredRow) -> Result<()> {
        let id = row.id.as_ref().map_or_else(|| format!("row {}", row.number), ToString::to_string);
        if let Some(tokens) = row.row.optional::<u32>("tokens", "a whole number")? {
            self.long(&id, tokens);
        }
        let faithfulness = self.measures.see(&id, &row.row).get(&RagMeasure::Faithfulness).copied();
        faithfulness.map_or(Ok(()), |faithfulness| self.answers.see(&id, &row.row, faithfulness))?;
        let predicted = match row.predicted.clone().and_then(|score| score.map(plausible).transpose()) {
            Ok(Some(predicted)) => predicted,
            Ok(None) => {
                self.answered += usize::from(row.row.has("answers"));
                let (reason, detail) = match row.unscored {
                    Some(unscored) => (unscored.reason, unscored.detail),
                    None => ("no score".to_owned(), String::new()),
                };
                self.without(reason, &id, &detail);
                return Ok(());
            }
            Err(why) => {
                self.without("unreadable".to_owned(), &id, &why);
                return Ok(());
            }
        };
        let (mut human, mut odd) = (Vec::new(), row.no_grade.clone());
        for grade in row.human.iter().flatten() {
            match plausible(grade.clone()) {
                Ok(grade) => human.push(grade),
                Err(why) => odd = odd.or(Some(why)),
            }
        }
        self.odd_grades.note(row.place(), odd);
        match &predicted {
            Rating::Number(number) => self.scores.push(*number),
            Rating::Text(text) => *kind(&mut self.labels, text) += 1,
        }
        let item = ComparedItem::new(predicted, human);
        if let (Rating::Text(text), true) = (&item.predicted, item.ratings().next().is_some()) {
            *kind(&mut self.graded_labels, text) += 1;
        }
        if item.ratings().next().is_some() {
            return self.compare(item, &row, &id);
        }
        if self.place(None).is_some() {
            let layers = of_layers(&row.row)?;
            self.list(&row, &id, &item, None, layers.as_ref().ok());
        }
        Ok(())
    }

    fn compare(&mut self, mut item: ComparedItem, row: &ScoredRow, id: &str) -> Result<()> {
        let drawn = self.is_sampled.then(|| probability(row, None));
        item.sampling_probability = drawn.transpose()?;
        let of_layers = of_layers(&row.row)?;
        let human = item.mean_human();
        if let (Some(human), Some(interval)) = (human, row.row.optional::<Calibrated>("calibrated", "an interval")?) {
            self.coverage.n += 1;
            self.coverage.inside += usize::from((interval.low..=interval.high).contains(&human));
            self.coverage.level.get_or_insert(interval.level);
        }
        let difference = match (item.predicted.number(), human) {
            (Some(predicted), Some(human)) => (predicted - human).abs(),
            _ => f64::from(u8::from(item.ratings().all(|human| *human != item.predicted))),
        };
        self.list(row, id, &item, Some(difference), of_layers.as_ref().ok());
        if let Some(orders) = row.row.value("orders") {
            self.preferences.push_row(orders, item.ratings(), None)?;
        }
        if self.no_layers.is_none() {
            match of_layers {
                Ok((tables, scores)) if *self.tables.get_or_insert_with(|| tables.clone()) == tables => {
                    self.layers.push(scores)
                }
                Ok(_) => self.no_layers = Some("rows differ in their layers or labels".to_owned()),
                Err(why) => self.no_layers = Some(why.to_owned()),
            }
        }
        let own = [&self.fields.predicted, &self.fields.human].map(|name| name.as_deref().unwrap_or_default());
        self.others.see_identifiers(&row.row, &own);
        self.compared.push(item);
        Ok(())
    }

    /// Where a row with this difference is listed, if it is.
    fn place(&self, difference: Option<f64>) -> Option<usize> {
        let place = self.listed.partition_point(|other| other.difference >= difference);
        Some(place).filter(|place| *place < ROWS)
    }

    fn list(
        &mut self,
        scored: &ScoredRow,
        id: &str,
        item: &ComparedItem,
        difference: Option<f64>,
        layers: Option<&OfLayers>,
    ) {
        let Some(place) = self.place(difference) else { return };
        let row = &scored.row;
        let probabilities: Option<Vec<f64>> = row.optional("probabilities", "a list of numbers").unwrap_or_default();
        let labels: Option<Vec<String>> = row.optional("labels", "a list of texts").unwrap_or_default();
        let labels = labels.unwrap_or_default().into_iter().map(|label| cut(&label, ID));
        let listed = Listed {
            id: cut(id, ID),
            key: scored.id.clone().map_or(Key::Number(scored.number), Key::Id),
            predicted: cut(&item.predicted.to_string(), ID),
            score: item.predicted.number(),
            human: item.ratings().map(|rating| cut(&rating.to_string(), ID)).take(KINDS).collect(),
            mean_human: item.mean_human(),
            difference,
            group: self.group_of(row),
            texts: self.texts(row),
            probabilities: labels.zip(probabilities.unwrap_or_default()).take(KINDS).collect(),
            layers: layers.map_or_else(Vec::new, |((layers, _), scores)| zip(layers.clone(), scores.clone()).collect()),
        };
        self.listed.insert(place, listed);
        self.listed.truncate(ROWS);
    }

    fn group_of(&self, row: &Row) -> Option<String> {
        match value(row, self.group.as_deref()?)? {
            Value::String(text) => Some(cut(&text, ID)),
            other => Some(cut(&other.to_string(), ID)),
        }
    }

    /// The texts of a row by field, without those of the score itself.
    fn texts(&self, row: &Row) -> Vec<(String, String)> {
        let named = [&self.fields.predicted, &self.fields.human, &self.group];
        let is_own = |key: &str| OWN.contains(&key) || named.into_iter().flatten().any(|own| own == key);
        let text = |key: &str| match value(row, key)? {
            Value::String(text) => Some(cut(&text, TEXT)),
            messages if key == "messages" => Some(cut(&messages.to_string(), TEXT)),
            Value::Array(all) => Some(cut(&texts_of_list(&all)?, TEXT)),
            _ => None,
        };
        let named = row.keys().filter(|key| !is_own(key)).filter_map(|key| Some((cut(key, ID), text(key)?)));
        named.take(TEXTS).collect()
    }

    /// Whether rows had different chances of being graded, for which not everything allows.
    pub fn is_weighted(&self) -> bool {
        self.compared.windows(2).any(|pair| pair[0].sampling_probability != pair[1].sampling_probability)
    }

    /// The numbers of the layers whose scores are known.
    pub fn layer_numbers(&self) -> &[usize] {
        self.tables.as_ref().map_or(&[], |(layers, _)| layers)
    }

    fn without(&mut self, reason: String, id: &str, detail: &str) {
        let found = kind(&mut self.unscored, &reason);
        found.n += 1;
        if found.examples.len() < EXAMPLES {
            found.examples.push(Example { id: cut(id, ID), detail: cut(detail, TEXT) });
        }
    }

    fn long(&mut self, id: &str, tokens: u32) {
        self.tokens.push(f64::from(tokens));
        let place = self.longest.partition_point(|other| other.tokens >= tokens);
        if place < LISTED {
            self.longest.insert(place, Long { id: cut(id, ID), tokens });
            self.longest.truncate(LISTED);
        }
    }

    /// Adds texts and groups from the rows that were scored. They are found by their ids, and where the scores have none by their numbers, as
    /// are rows without an id of the file that was scored (`is_scored`), whose ids in the scores are these numbers.
    pub fn add_texts(&mut self, path: &Path, is_scored: bool) -> Result<Joined> {
        let file = ScoredFile::open(judge_cli::args::files::open(path)?, None)?.with_unique_ids()?;
        let keys = self.listed.iter().map(|item| item.key.clone());
        let places: HashMap<Key, usize> = keys.zip(0..).collect();
        let is_named = !places.keys().any(|key| matches!(key, Key::Number(_)));
        let (mut nameless, mut found) = (false, HashMap::new());
        for (number, row) in file.input().rows()?.enumerate() {
            let row = row?;
            let id = ["id", "idx"].into_iter().find_map(|name| row.optional::<ItemId>(name, "an id").ok().flatten());
            nameless |= id.is_none() && is_named && !is_scored;
            let key = match id {
                Some(id) => Key::Id(id),
                None if is_named && is_scored => Key::Id(number.into()),
                None => Key::Number(number),
            };
            let exact = places.get(&key);
            // A file of another form may have texts for numbers.
            let other = || match &key {
                Key::Id(id) => places.get(&Key::Id(alike(id)?)),
                Key::Number(_) => None,
            };
            let Some(place) = exact.or_else(other) else { continue };
            if exact.is_some() || !found.contains_key(place) {
                found.insert(*place, (self.texts(&row), self.group_of(&row)));
            }
        }
        let joined = Joined { found: found.len(), nameless };
        for (place, (texts, group)) in found {
            let item = &mut self.listed[place];
            item.texts.extend(texts);
            item.texts.truncate(TEXTS);
            item.group = item.group.take().or(group);
        }
        Ok(joined)
    }

    /// Refuses a field of groups that no row has.
    pub fn check_group(&self) -> Result<()> {
        match &self.group {
            Some(field) if self.listed.iter().all(|row| row.group.is_none()) => {
                Err(usage(format!("--group: none of the rows that are listed has the field {field:?}")))
            }
            _ => Ok(()),
        }
    }

    /// Reads Parquet files of result rows, and the records beside those that have one.
    pub fn read_results(&mut self, files: &[PathBuf], mut see: impl FnMut(usize)) -> Result<()> {
        let mut tally = ResultTally::default();
        for path in files {
            let table = ParquetTable::open(path)?;
            let columns: Vec<usize> = (0..table.schema().fields().len()).collect();
            for batch in table.batches(&columns, 0..table.rows())? {
                let rows = ResultRow::from_batch(&batch?).with_context(|| path.display().to_string())?;
                see(rows.len());
                for row in rows {
                    tally.add(&row);
                    self.n += 1;
                    let id = row.id.to_string();
                    if let Some(tokens) = row.tokens {
                        self.long(&id, tokens);
                    }
                    match row.score {
                        Some(score) if score.abs() > LARGEST => {
                            bail!(
                                "{}: expected scores from -{LARGEST:e} to {LARGEST:e}, found {score} in row {id}",
                                path.display()
                            );
                        }
                        Some(score) => self.scores.push(score),
                        None => self.without(row.status, &id, row.detail.as_deref().unwrap_or_default()),
                    }
                    *kind(&mut self.runs, &row.run) += 1;
                    *kind(&mut self.devices, &row.device) += 1;
                }
            }
            let record = path.with_extension("json");
            if record.is_file() {
                self.parts.push(Part::of(load(&record)?));
            }
        }
        self.tally = Some(tally);
        Ok(())
    }
}

impl Part {
    fn of(record: PartRecord) -> Self {
        let time = |text: &str| humantime::parse_rfc3339(text).ok();
        let seconds = time(&record.started).zip(time(&record.finished));
        let seconds = seconds.and_then(|(started, finished)| finished.duration_since(started).ok());
        let seconds = seconds.map_or(0, |time| time.as_secs());
        Self { shard: record.shard, rows: record.tally.rows, seconds, device: cut(&record.device, ID) }
    }
}

/// What `calibrate` adds to a row.
#[derive(serde::Deserialize)]
struct Calibrated {
    low: f64,
    high: f64,
    level: f64,
}

/// The count of a kind; beyond some number of kinds they are counted together.
fn kind<'m, T: Default>(counts: &'m mut BTreeMap<String, T>, name: &str) -> &'m mut T {
    let name = cut(name, ID);
    let is_new = !counts.contains_key(&name);
    let name = if is_new && counts.len() >= KINDS { "(others)".to_owned() } else { name };
    counts.entry(name).or_default()
}

/// A field's value; null is none.
fn value(row: &Row, field: &str) -> Option<Value> {
    // The row was parsed as JSON when it was read.
    row.value(field).and_then(|text| serde_json::from_str(text).ok()).filter(|value: &Value| !value.is_null())
}

/// A list of texts, such as contexts, or of objects with a text, one below the other; `None` of another list.
fn texts_of_list(all: &[Value]) -> Option<String> {
    let text = |value: &Value| {
        let field = || ["page_content", "text", "content"].into_iter().find_map(|name| value.get(name)?.as_str());
        Some(value.as_str().or_else(field)?.to_owned())
    };
    Some(all.iter().map(text).collect::<Option<Vec<String>>>()?.join("\n\n")).filter(|text| !text.is_empty())
}

/// A rating that can be drawn.
fn plausible(grade: Grade) -> Result<Rating, String> {
    match grade {
        Grade::Number(number) if number.abs() > LARGEST => {
            Err(format!("expected a number from -{LARGEST:e} to {LARGEST:e}, found {number}"))
        }
        grade => Ok(rating(grade)),
    }
}
