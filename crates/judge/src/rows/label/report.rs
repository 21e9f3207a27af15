//! What a run has cost and what it has brought.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Result;
use judge_core::request::Generation;
use judge_data::Rows;
use judge_models::{ApiModel, Prices};
use serde_json::{Map, Value, json};

use judge_cli::report::write_json;
use judge_cli::terminal::console::{say, say_table};

/// Bytes of text to a token, as a rule of thumb.
const BYTES_PER_TOKEN: usize = 4;

/// Where the labels are, and what tokens cost.
pub struct Report<'a> {
    pub output: &'a PathBuf,
    pub aspects: &'a [(String, String)],
    pub points: u16,
    pub prices: Option<Prices>,
}

/// The labels of an aspect.
#[derive(Default)]
pub struct Labels {
    /// By grade.
    counts: BTreeMap<u64, usize>,
    sum: f64,
    unscored: BTreeMap<String, usize>,
    with_probabilities: usize,
}

impl Labels {
    fn scored(&self) -> usize {
        self.counts.values().sum()
    }

    fn unscored(&self) -> usize {
        self.unscored.values().sum()
    }

    fn mean(&self) -> Option<f64> {
        (self.scored() > 0).then(|| self.sum / self.scored() as f64)
    }
}

impl Report<'_> {
    /// The labels in the finished file, those of earlier starts included.
    pub fn labels(&self) -> Result<BTreeMap<String, Labels>> {
        let mut labels: BTreeMap<String, Labels> = BTreeMap::new();
        for row in Rows::open(self.output)? {
            let row = row?;
            let labels = labels.entry(row.string("aspect")?).or_default();
            match row.optional::<f64>("score", "a number")? {
                Some(score) => {
                    *labels.counts.entry(score as u64).or_default() += 1; // a whole number from 1
                    labels.sum += score;
                    labels.with_probabilities += usize::from(row.has("probabilities"));
                }
                None => {
                    let unscored: Value = row.required("unscored", "an object")?;
                    let reason = unscored["reason"].as_str().unwrap_or_default();
                    *labels.unscored.entry(reason.to_owned()).or_default() += 1;
                }
            }
        }
        Ok(labels)
    }

    /// The grades by aspect, for people.
    pub fn print(&self, labels: &BTreeMap<String, Labels>) -> Result<()> {
        let grades: Vec<u64> = (1..=u64::from(self.points)).collect();
        // On a long scale the counts would not fit a line.
        let shown = if grades.len() <= 10 { &grades[..] } else { &[] };
        let head = ["aspect", "labels", "none", "mean"].map(str::to_owned).into_iter();
        let head = head.chain(shown.iter().map(u64::to_string));
        let mut rows = Vec::new();
        for (aspect, _) in self.aspects {
            let Some(labels) = labels.get(aspect) else { continue };
            let mean = labels.mean().map_or_else(|| "-".to_owned(), |mean| format!("{mean:.2}"));
            let cells = [aspect.clone(), labels.scored().to_string(), labels.unscored().to_string(), mean].into_iter();
            let counts = shown.iter().map(|grade| labels.counts.get(grade).unwrap_or(&0).to_string());
            rows.push(cells.chain(counts).collect());
        }
        say_table(head, rows)?;
        let (read, scored) = labels
            .values()
            .fold((0, 0), |(read, scored), labels| (read + labels.with_probabilities, scored + labels.scored()));
        let why = match scored - read {
            0 => String::new(),
            rest => format!(
                "; {rest} have none: the service gave no alternatives, or they do not say which grade is meant, as where `1` may begin `10`"
            ),
        };
        say(format_args!("{read} of {scored} labels have the probabilities of the grades{why}"))
    }

    /// Everything for machines; without a model nothing was sent.
    pub fn json(&self, found: &BTreeMap<String, Labels>, model: Option<&ApiModel>, path: &Path) -> Result<()> {
        let usage = model.map(ApiModel::usage).unwrap_or_default();
        let mut aspects = Map::new();
        let (mut labels, mut unscored) = (0, BTreeMap::<String, usize>::new());
        for (aspect, found) in found {
            labels += found.scored();
            found.unscored.iter().for_each(|(reason, n)| *unscored.entry(reason.clone()).or_default() += n);
            let entry = json!({
                "labels": found.scored(), "unscored": found.unscored, "mean": found.mean(), "counts": found.counts, "with_probabilities": found.with_probabilities,
            });
            aspects.insert(aspect.clone(), entry);
        }
        let report = json!({
            "labels": labels, "unscored": unscored, "aspects": aspects,
            "requests": usage.requests, "retries": usage.retries,
            "tokens": {"prompt": usage.prompt_tokens, "completion": usage.completion_tokens, "uncounted_answers": usage.uncounted},
            "cost": self.prices.map(|prices| usage.cost(&prices)),
            "stated_models": model.map(ApiModel::stated_models).unwrap_or_default(),
        });
        write_json(path, "label_with_api", &report)
    }
}

/// Says what a run would take, without sending anything.
pub fn estimate(
    requests: usize,
    bytes: usize,
    generation: &Generation,
    prices: Option<&Prices>,
    json: Option<&Path>,
) -> Result<()> {
    let (read, written) = (bytes.div_ceil(BYTES_PER_TOKEN), requests.saturating_mul(generation.max_new_tokens));
    say(format_args!(
        "{requests} requests of about {read} tokens together ({BYTES_PER_TOKEN} bytes to a token); at most {written} tokens are written; nothing was sent"
    ))?;
    let cost = prices.map(|prices| (read as f64 * prices.input / 1e6, written as f64 * prices.output / 1e6));
    if let Some((input, output)) = cost {
        say(format_args!("cost: about {input:.4} for what is read, at most {output:.4} for what is written"))?;
    }
    let Some(path) = json else { return Ok(()) };
    let report = json!({
        "dry_run": true, "requests": requests, "tokens": {"prompt_estimate": read, "completion_most": written},
        "cost": cost.map(|(input, output)| json!({"prompt_estimate": input, "completion_most": output})),
    });
    write_json(path, "label_with_api", &report)
}
