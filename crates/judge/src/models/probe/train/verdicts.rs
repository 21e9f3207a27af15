//! Rows of whether a judge is right: what it was asked, and 1 where people say the same as it did, else 0.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use judge_cli::judge_record::{of_judge, other_model, run_record};
use judge_cli::terminal::console::{tell, usage};
use judge_core::{
    Fields, ItemId, ModelInfo, PromptTemplate,
    combine::Renamed,
    prompted::{PromptFamily, VerdictFrom},
    request::Generation,
};
use judge_data::{
    Dataset, DatasetFormat, DatasetOptions, GradedRecord, Input, PairProbabilities, PairRecord, PairVerdict, Record,
    Row, Rows, RunRecord, Settings,
};
use judge_probe::training::GradedRow;
use serde::{Deserialize, de::DeserializeOwned};

use super::rows::{Data, Reading, Written};

/// How far a grade may be from people's mean, where nothing else is said: the nearest whole grade is theirs.
const WITHIN: f64 = 0.5;

/// What the rows are called.
const RIGHT: &str = "right";

/// What rows are of that say whether a judge is right.
pub struct Judged {
    /// What the judge's own probability of each of its verdicts is, where all were read.
    pub own: Option<Vec<f64>>,
    /// What was asked, and where the verdicts were looked for: by this the probe knows its judge again.
    pub settings: Settings,
    /// Whose states are to be read.
    pub states_of: StatesOf,
}

/// Of which model states may be read.
pub enum StatesOf {
    /// Of any.
    Any,
    /// Of the model that gave the verdicts, as far as it is recorded.
    Judge(Option<Box<ModelInfo>>),
}

/// What a row of `judge compare` says of an order.
#[derive(Deserialize)]
struct Said {
    order: String,
    verdict: Option<PairVerdict>,
    text: Option<String>,
    probabilities: Option<PairProbabilities>,
}

impl Said {
    /// The probability of the verdict.
    fn own(&self) -> Option<f64> {
        let PairProbabilities { first, second, tie } = self.probabilities?;
        match self.verdict? {
            PairVerdict::A => Some(first),
            PairVerdict::B => Some(second),
            PairVerdict::Tie => Some(tie),
            PairVerdict::Inconsistent => None,
        }
    }
}

/// How the judge was asked.
struct Asked {
    family: PromptFamily,
    /// Up to where the model wrote, or the verdict was read.
    template: PromptTemplate,
    /// Whether the verdicts are in texts.
    writes: bool,
    /// How far from people's a grade may be and still be right.
    within: f64,
}

/// A verdict on what people have judged.
struct Verdict {
    row: GradedRow,
    own: Option<f64>,
    /// What the judge wrote.
    text: String,
}

impl Judged {
    /// The rows of both files, by their ids: one for each verdict on what people have judged, of a pair one for each order. A judge that
    /// writes is asked the same again, and what it writes is what the rows hold; of one that does not, the prompt leads up to the verdict.
    pub fn read(
        input: &Input,
        verdicts: &Path,
        within: Option<f64>,
        reading: &Reading<'_>,
    ) -> Result<(Data, Option<Self>)> {
        let record = run_record("--verdicts", verdicts, "what the judge was asked")?;
        let family: PromptFamily = setting(&record, "family")?.filter(|_| !is_apart(&record)).with_context(|| {
            let found = match ["reward", "lager"].map(|name| record.setting(name).is_some()) {
                _ if is_apart(&record) => "of responses of pairs judged apart",
                [true, _] => "of rewards",
                [_, true] => "of scores that `judge score` reads of layers",
                _ => "no output of `judge compare`",
            };
            let file = verdicts.display();
            format!("--verdicts: {file} is {found}; expected the output of `judge compare`, verdicts by a prompt on what it shows")
        })?;
        if family.is_pair() && within.is_some() {
            return Err(usage(
                "--within is for grades: --verdicts are of pairs, where a verdict is people's or is not",
            ));
        }
        let writes = setting::<VerdictFrom>(&record, "verdict")? == Some(VerdictFrom::Text);
        let template = match writes {
            true => family.template().clone(),
            false => family.template().clone().with_prefill(family.opening()),
        };
        let generation = Generation { max_new_tokens: family.max_new_tokens(), ..Generation::default() };
        let mut data = Data::default();
        let items = items(input, &family, reading)?;
        let asked = Asked { family, template, writes, within: within.unwrap_or(WITHIN) };
        let (mut rows, mut own, mut texts) = (Vec::new(), Vec::new(), Vec::new());
        for row in Rows::open(verdicts)?.take(reading.model.limit.unwrap_or(usize::MAX)) {
            let row = row?;
            let id: ItemId = row.required("id", "a string or a whole number")?;
            let item = items.get(&id);
            let of_item = |name: &str| item?.field(name).map(Cow::into_owned);
            let belonging = match reading.belonging(&row.clone().into_extra(&[]), of_item) {
                Ok(belonging) => belonging,
                Err(error) => {
                    data.unread.note(row.place(), Some(error.in_row()?));
                    continue;
                }
            };
            let found = match item {
                Some(Record::Pair(pair)) => asked.of_pair(&row, pair, &mut data)?,
                Some(Record::Graded(graded)) => asked.of_response(&row, graded, &mut data)?,
                Some(Record::Unread(unread)) => {
                    data.unread.note(row.place(), Some(unread.why.detail.clone()));
                    continue;
                }
                _ => bail!("{}: {} has no row with the id {id}", row.place(), input.path().display()),
            };
            for verdict in found {
                rows.push(belonging.clone().of(verdict.row));
                own.push(verdict.own);
                texts.push(verdict.text);
            }
        }
        ensure!(
            !rows.is_empty(),
            "no row of {} has both a verdict and what people say: expected \"human\" in {}",
            verdicts.display(),
            input.path().display()
        );
        let read = own.iter().flatten().count();
        if (1..own.len()).contains(&read) {
            let n = own.len();
            tell(format_args!(
                "note: {read} of {n} verdicts have a probability, so the probe is not compared with them"
            ));
        }
        data.written = writes.then_some(Written { generation, texts });
        data.rows = BTreeMap::from([(RIGHT.to_owned(), rows)]);
        let (settings, own) = (of_judge(&record.settings), own.into_iter().collect());
        Ok((data, Some(Self { own, settings, states_of: StatesOf::Judge(record.model.map(Box::new)) })))
    }

    /// That states are read of the model whose verdicts these are.
    pub fn check_model(&self, model: &ModelInfo) -> Result<()> {
        let StatesOf::Judge(recorded) = &self.states_of else { return Ok(()) };
        match other_model(recorded.as_deref(), model) {
            None => Ok(()),
            Some(judge) => bail!(
                "--verdicts are of {judge}, and the states would be of {}: give the judge's own --model",
                model.name
            ),
        }
    }
}

/// A setting of a run of `judge compare`; `None` where it has none.
fn setting<T: DeserializeOwned>(record: &RunRecord, name: &str) -> Result<Option<T>> {
    let value = record.setting(name).filter(|value| !value.is_null());
    let read = value.map(|value| serde_json::from_value(value.clone()));
    read.transpose().with_context(|| format!("the {name} of the run record"))
}

fn is_apart(record: &RunRecord) -> bool {
    record.setting("apart").is_some_and(|apart| apart == true)
}

/// What people have judged, by id: pairs, or single responses.
fn items(input: &Input, family: &PromptFamily, reading: &Reading<'_>) -> Result<HashMap<ItemId, Record>> {
    let format = if family.is_pair() { DatasetFormat::Pairs } else { DatasetFormat::Graded };
    let columns = reading.columns.clone();
    let options = DatasetOptions { format: Some(format), columns, ..DatasetOptions::default() };
    let records = Dataset::open(input, &options)?;
    records
        .map(|record| record.map(|record| (record.id().clone(), record)))
        .collect::<Result<_, _>>()
        .map_err(Into::into)
}

impl Asked {
    /// The verdicts of a row on a pair, one for each order that has one.
    fn of_pair(&self, row: &Row, pair: &PairRecord, data: &mut Data) -> Result<Vec<Verdict>> {
        let orders: Vec<Said> = row.required("orders", "the orders of a row of `judge compare`")?;
        let Some(gold) = pair.majority() else {
            data.ungraded += 1;
            return Ok(Vec::new());
        };
        let verdicts = orders.iter().filter(|said| said.verdict.is_some()).count();
        let lacks = verdicts == 0 || verdicts < orders.len();
        data.unread.note(row.place(), lacks.then(|| format!("{verdicts} of {} orders have a verdict", orders.len())));
        let mut found = Vec::new();
        for said in orders {
            let Some(verdict) = said.verdict.and_then(PairVerdict::ordering) else { continue };
            let exchanged = Renamed::swapped(pair);
            let item: &dyn Fields = if said.order == "swapped" { &exchanged } else { pair };
            let shown = format!("{}\n\n{}", pair.response_a, pair.response_b);
            let id = format!("{}/{}", pair.id, said.order);
            let (own, text) = (said.own(), self.text(row, said.text)?);
            let row = self.row(id.into(), item, verdict == gold, format!("{shown}\n\n{text}"))?;
            found.push(Verdict { row, own, text });
        }
        Ok(found)
    }

    /// The verdict of a row on a single response.
    fn of_response(&self, row: &Row, graded: &GradedRecord, data: &mut Data) -> Result<Vec<Verdict>> {
        let Some(gold) = graded.human() else {
            data.ungraded += 1;
            return Ok(Vec::new());
        };
        let score: Option<f64> = row.optional("score", "a number or null")?;
        data.unread.note(row.place(), score.is_none().then(|| "there is no score".to_owned()));
        let Some(score) = score else { return Ok(Vec::new()) };
        let probabilities: Option<Vec<f64>> = row.optional("probabilities", "the probability of each grade")?;
        let near = |grade: f64| (grade - score).abs() <= self.within;
        let own = probabilities.map(|probabilities| {
            let points = self.family.scale().values().zip(probabilities);
            points.filter(|&(grade, _)| near(grade)).map(|(_, p)| p).sum()
        });
        let text: Option<String> = row.optional("text", "what the judge wrote")?;
        let text = self.text(row, text)?;
        let row = self.row(graded.id.clone(), graded, near(gold), format!("{}\n\n{text}", graded.response))?;
        Ok(vec![Verdict { row, own, text }])
    }

    /// What was written; nothing where the verdict was read.
    fn text(&self, row: &Row, text: Option<String>) -> Result<String> {
        ensure!(
            text.is_some() || !self.writes,
            "{}: there is a verdict and no \"text\" that it was found in, as `judge compare` writes it",
            row.place()
        );
        Ok(text.unwrap_or_default())
    }

    /// `response` is what surface features are made of.
    fn row(&self, id: ItemId, item: &dyn Fields, is_right: bool, response: String) -> Result<GradedRow> {
        let prompt = self.template.fill(item).with_context(|| format!("the prompt of {id}"))?;
        let question = item.field("instruction").unwrap_or_default().into_owned();
        Ok(GradedRow {
            response,
            group: question.clone(),
            question,
            ..GradedRow::new(id, prompt, f64::from(u8::from(is_right)))
        })
    }
}
