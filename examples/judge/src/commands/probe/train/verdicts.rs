//! Rows of whether a judge of pairs is right: what it read and wrote, and 1 where people say the same, else 0.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use judge_core::{Fields, ItemId, ModelInfo, combine::SwappedFields, prompted::PromptFamily};
use judge_data::{
    Dataset, DatasetFormat, DatasetOptions, Input, PairProbabilities, PairRecord, PairVerdict, Record, Row, Rows,
    majority,
};
use judge_probe::training::GradedRow;
use serde::Deserialize;

use super::rows::{Data, Reading};
use crate::recorded::{other_model, run_record};
use crate::terminal::console::tell;

/// What the rows are called.
const RIGHT: &str = "right";

/// Verdicts with the pairs that they are of.
pub struct Judged {
    /// A row for each order with a verdict, of pairs that people have judged.
    pub data: Data,
    /// What the judge's own probability of each of its verdicts is, where all were read.
    pub own: Option<Vec<f64>>,
    /// Whose states are to be read.
    model: Option<ModelInfo>,
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

impl Judged {
    /// The rows of both files, by their ids. Whatever the judge wrote is put behind its prompt, and where it wrote nothing, what opens the
    /// reply up to the verdict; so the last token is the last that it wrote, or predicts the verdict.
    pub fn read(input: &Input, verdicts: &Path, reading: &Reading<'_>) -> Result<Self> {
        let record = run_record("--verdicts", verdicts, "what the judge was asked")?;
        let apart = record.setting("apart").is_some_and(|apart| apart == true);
        let family: PromptFamily = match record.setting("family") {
            Some(family) if !apart => serde_json::from_value(family.clone()).context("the family of the run record")?,
            _ => bail!(
                "--verdicts: {} is of responses judged apart, or of rewards; expected verdicts on pairs that are seen together",
                verdicts.display()
            ),
        };
        let options = DatasetOptions {
            format: Some(DatasetFormat::Pairs),
            columns: reading.columns.clone(),
            ..DatasetOptions::default()
        };
        let mut pairs: HashMap<ItemId, PairRecord> = HashMap::new();
        for record in Dataset::open(input, &options)? {
            if let Record::Pair(pair) = record? {
                pairs.insert(pair.id.clone(), pair);
            }
        }
        let (mut data, mut rows, mut own) = (Data::default(), Vec::new(), Vec::new());
        for row in Rows::open(verdicts)?.take(reading.model.limit.unwrap_or(usize::MAX)) {
            let row = row?;
            let id: ItemId = row.required("id", "a string or a whole number")?;
            let Some(pair) = pairs.get(&id) else {
                bail!("{}: {} has no pair with the id {id}", row.place(), input.path().display());
            };
            let orders: Vec<Said> = row.required("orders", "the orders of a row of `judge compare`")?;
            let Some(gold) = majority(&pair.verdicts) else {
                data.ungraded += 1;
                continue;
            };
            let verdicts = orders.iter().filter(|said| said.verdict.is_some()).count();
            let lacks = verdicts == 0 || verdicts < orders.len();
            data.unread
                .note(row.place(), lacks.then(|| format!("{verdicts} of {} orders have a verdict", orders.len())));
            for said in orders {
                let Some(verdict) = said.verdict.and_then(PairVerdict::ordering) else { continue };
                own.push(said.own());
                rows.push(graded(&family, pair, &said, verdict == gold, group(&row, reading.group)?)?);
            }
        }
        ensure!(
            !rows.is_empty(),
            "no pair of {} has both a verdict and people's choice: expected \"human\" in {}",
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
        data.rows = BTreeMap::from([(RIGHT.to_owned(), rows)]);
        Ok(Self { data, own: own.into_iter().collect(), model: record.model })
    }

    /// That states are read of the model whose verdicts these are.
    pub fn check_model(&self, model: &ModelInfo) -> Result<()> {
        match other_model(self.model.as_ref(), model) {
            None => Ok(()),
            Some(judge) => bail!(
                "--verdicts are of {judge}, and the states would be of {}: give the judge's own --model",
                model.name
            ),
        }
    }
}

/// What must not be on both sides of a split; both orders of a pair never are.
fn group(row: &Row, field: Option<&str>) -> Result<Option<String>> {
    let Some(field) = field else { return Ok(None) };
    let value = row.value(field);
    Ok(Some(value.with_context(|| format!("{}: there is no field {field:?}, or it is null", row.place()))?.to_owned()))
}

fn graded(
    family: &PromptFamily,
    pair: &PairRecord,
    said: &Said,
    is_right: bool,
    group: Option<String>,
) -> Result<GradedRow> {
    let template = match said.text {
        Some(_) => family.template().clone(),
        None => family.template().clone().with_prefill(family.opening()),
    };
    let exchanged = SwappedFields(pair);
    let item: &dyn Fields = if said.order == "swapped" { &exchanged } else { pair };
    let prompt = template.fill(item).with_context(|| format!("the prompt of the pair {}", pair.id))?;
    let prompt = prompt.with_prefill(said.text.as_deref().unwrap_or_default());
    let shown = || format!("{}\n\n{}", pair.response_a, pair.response_b);
    Ok(GradedRow {
        question: pair.instruction.clone(),
        response: said.text.clone().unwrap_or_else(shown),
        group: group.unwrap_or_else(|| pair.instruction.clone()),
        ..GradedRow::new(format!("{}/{}", pair.id, said.order), prompt, f64::from(u8::from(is_right)))
    })
}
