//! Every number of the page.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use anyhow::Result;
use judge_cli::args::files::program;
use judge_cli::layer_agreement::{self, LayerAgreement};
use judge_cli::preferences::Worth;
use judge_cli::reliability::{self, Bin, histogram};
use judge_cli::report::{BOOTSTRAP, OF_AGREEMENT, name_columns};
use judge_cli::terminal::console::counted;
use judge_cli::terminal::svg::span;
use judge_core::rag::RagMeasure;
use judge_data::{InputFile, Program};
use judge_metrics::comparison::{Comparison, ComparisonSettings, Statistic};
use serde::{Serialize, Serializer};

use super::answers::Answers;
use super::measures::Measured;
use super::record::{Check, Record};
use super::rows::{Coverage, LISTED, Listed, Long, Part, Rows, Unscored};

/// Bars of each histogram.
const BARS: usize = 40;
/// The share of the commonest label, which is what a constant guess gets.
const MAJORITY_SHARE: &str = "majority_share";
/// What is said of the agreement with people, if the data define it, and what it is called on the page.
pub const SAID: [(&str, &str); 10] = [
    ("spearman", "Spearman's rank correlation"),
    ("pearson", "Pearson's correlation"),
    ("kendall_tau_b", "Kendall's tau-b"),
    ("mae", "mean absolute error"),
    ("rmse", "root mean squared error"),
    ("bias", "bias (mean score minus mean human score)"),
    ("accuracy", "same label"),
    ("cohen_kappa", "Cohen's kappa"),
    ("cohen_kappa_quadratic", "Cohen's kappa, quadratic weights"),
    ("auroc", "area under the ROC curve"),
];

/// Everything that is on the page. It is written as it is to the JSON file.
#[derive(Serialize)]
pub struct Findings {
    pub program: Program,
    pub input: Input,
    pub rows: usize,
    pub scored: usize,
    pub graded: usize,
    pub unscored: BTreeMap<String, Unscored>,
    /// The digest of the results, of result rows.
    pub results: Option<String>,
    pub runs: BTreeMap<String, usize>,
    pub devices: BTreeMap<String, usize>,
    pub record: Record,
    /// Name of the fields that were compared.
    pub predicted: Option<String>,
    pub human: Option<String>,
    /// With people; empty where nobody graded.
    #[serde(serialize_with = "by_name")]
    pub agreement: Vec<(String, Statistic)>,
    /// Whether its rows had different chances of being graded: what takes rows as drawn alike is left out.
    #[serde(skip)]
    pub is_weighted: bool,
    /// That rows may be of one question, which intervals do not know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeated: Option<String>,
    /// What the preferences on pairs are worth, where probabilities were read.
    #[serde(serialize_with = "worth")]
    pub preferences: Option<Worth>,
    /// What who guesses the same for every row would get.
    pub constant_guess: BTreeMap<&'static str, f64>,
    pub layers: Vec<LayerAgreement>,
    /// Why there are none.
    pub no_layers: Option<String>,
    pub scores: Vec<Bar>,
    pub labels: BTreeMap<String, usize>,
    /// Those of rows with a human score.
    pub graded_labels: BTreeMap<String, usize>,
    /// Of answers from retrieved contexts.
    pub measures: BTreeMap<RagMeasure, Measured>,
    pub reliability: Vec<Bin>,
    pub coverage: Option<Coverage>,
    /// The rows that differ most from people, that one first, then rows that nobody graded.
    pub listed: Vec<Listed>,
    /// Answers from retrieved contexts, with their sentences.
    pub answers: Answers,
    pub longest: Vec<Long>,
    pub tokens: Vec<Bar>,
    /// The slowest first.
    pub slowest_parts: Vec<Part>,
    pub parts: usize,
    /// The drawing of the reliability needs all rows.
    #[serde(skip)]
    pub reliability_figure: Option<String>,
}

#[derive(Serialize)]
pub struct Input {
    pub path: String,
    /// Of a file.
    pub bytes: Option<u64>,
    pub blake3: Option<String>,
}

/// A bar of a histogram.
#[derive(Serialize)]
pub struct Bar {
    pub low: f64,
    pub high: f64,
    pub rows: usize,
    /// Rows whose human score lies here.
    pub human: usize,
}

impl Findings {
    pub fn new(input: &Path, rows: Rows, record: Record) -> Result<Self> {
        let numbers: Vec<(f64, f64)> =
            rows.compared.iter().filter_map(|item| Some((item.predicted.number()?, item.mean_human()?))).collect();
        let is_numeric = numbers.len() == rows.compared.len();
        let human: Vec<f64> = if is_numeric { numbers.iter().map(|pair| pair.1).collect() } else { Vec::new() };
        let is_weighted = rows.is_weighted();
        let no_layers = rows.no_layers.clone();
        let no_layers = no_layers.or_else(|| human.is_empty().then(|| "no row has a human score".to_owned()));
        let no_layers = no_layers.or_else(|| is_weighted.then(|| "it takes rows as drawn alike".to_owned()));
        let layers = if no_layers.is_none() {
            let numbers = rows.layer_numbers();
            let weights = record.layer_weights().filter(|weights| weights.len() <= numbers.len());
            layer_agreement::agreement(numbers, &rows.layers, &human, weights.as_deref())?
        } else {
            Vec::new()
        };
        let scored = rows.scored();
        let preferences = rows.preferences.compared(BOOTSTRAP).filter(|_| !is_weighted);
        let preferences = preferences.map(|preferences| preferences.whole()).transpose()?;
        let graded = rows.compared.len();
        let (mut agreement, mut constant_guess) = (Vec::new(), BTreeMap::new());
        let (mut reliability, mut reliability_figure) = (Vec::new(), None);
        if graded > 0 {
            let only =
                Some(SAID.map(|(name, _)| name).into_iter().chain([MAJORITY_SHARE]).map(str::to_owned).collect());
            let settings = ComparisonSettings { bootstrap: OF_AGREEMENT, only, ..ComparisonSettings::default() };
            let comparison = Comparison::new(rows.compared, settings)?;
            let all: Vec<usize> = (0..graded).collect();
            let found = comparison.statistics(&all);
            if !is_weighted {
                constant_guess = guess(found.get(MAJORITY_SHARE), &human);
            }
            agreement = found.statistics;
            agreement.retain(|(name, _)| name != MAJORITY_SHARE);
            let [predicted, human] =
                [&rows.fields.predicted, &rows.fields.human].map(|name| name.as_deref().unwrap_or_default());
            name_columns(agreement.iter_mut().map(|(_, known)| known), predicted, human);
            if is_numeric && !is_weighted {
                reliability = reliability::bins(comparison.items(), BOOTSTRAP.level);
                let figure = reliability::svg(comparison.items(), &reliability, predicted, human, BOOTSTRAP.level)?;
                reliability_figure = Some(figure);
            }
        }
        let file = if input.is_file() { Some(InputFile::of(input)?) } else { None };
        let mut parts = rows.parts;
        let count = parts.len();
        parts.sort_by(|a, b| b.seconds.cmp(&a.seconds).then(a.shard.cmp(&b.shard)));
        parts.truncate(LISTED);
        Ok(Self {
            program: program("report"),
            input: Input {
                path: input.display().to_string(),
                bytes: file.as_ref().map(|file| file.bytes),
                blake3: file.map(|file| file.blake3),
            },
            rows: rows.n,
            scored,
            graded,
            unscored: rows.unscored,
            results: rows.tally.map(|tally| tally.digests.results.to_string()),
            runs: rows.runs,
            devices: rows.devices,
            record,
            predicted: rows.fields.predicted,
            human: rows.fields.human,
            agreement,
            is_weighted,
            repeated: rows.others.repeated().map(|(_, sentence)| sentence),
            preferences,
            constant_guess,
            layers,
            no_layers,
            scores: bars(&rows.scores, &human),
            labels: rows.labels,
            graded_labels: rows.graded_labels,
            measures: rows.measures.found(),
            reliability,
            coverage: Some(rows.coverage).filter(|coverage| coverage.n > 0 && !is_weighted),
            listed: rows.listed,
            answers: rows.answers,
            longest: rows.longest,
            tokens: bars(&rows.tokens, &[]),
            slowest_parts: parts,
            parts: count,
            reliability_figure,
        })
    }

    /// Whether all rows are there, as far as anything says so, and why that is known.
    pub fn completeness(&self) -> (Option<bool>, String) {
        let outputs = &self.record.outputs;
        let is_changed =
            self.input.blake3.as_ref().is_some_and(|blake3| !outputs.is_empty() && !outputs.contains(blake3));
        if let Some(check) = &self.record.completeness {
            return match check.said() {
                (false, ..) => (Some(false), "Not complete: the check found what is listed below.".to_owned()),
                (true, rows, _) if rows != self.rows as u64 => (
                    Some(false),
                    format!("The check found {rows} results, here are {}: they are not of one run.", self.rows),
                ),
                _ if is_changed => (
                    None,
                    "Not known: the check found every row, but the file has changed since its run wrote it.".to_owned(),
                ),
                _ if !self.is_checked(check) => (
                    Some(false),
                    "The check is of other results: of another run, or of these before they were changed.".to_owned(),
                ),
                _ => (Some(true), all_found(check)),
            };
        }
        match &self.record.counts {
            Some(counts) => {
                let (n, rows) = (counts.rows(), self.rows);
                let recorded = format!("the run's record counts {}", counted(n, "row"));
                match n == rows {
                    true if is_changed => (
                        None,
                        format!(
                            "Not known: {recorded}, and so many are here, but the file has changed since the run wrote it."
                        ),
                    ),
                    true => (Some(true), format!("Complete: {recorded}, and they are here.")),
                    false => (
                        Some(false),
                        format!("Not complete: {recorded}, here are {rows}: some are missing or foreign."),
                    ),
                }
            }
            None => (
                None,
                "Whether rows are missing is not known: there is no record of a finished run, and no check was given."
                    .to_owned(),
            ),
        }
    }

    /// Whether a check may be of these rows, by all that both say of them.
    fn is_checked(&self, check: &Check) -> bool {
        match check {
            Check::Rows(found) => {
                let is_same = |results: &String| *results == found.digests.results.to_string();
                let is_of_run = |run: &String| found.runs.is_empty() || found.runs.contains_key(run);
                self.results.as_ref().is_none_or(is_same) && self.record.run.as_ref().is_none_or(is_of_run)
            }
            Check::Command(found) => self.input.blake3.as_ref() == Some(&found.results),
        }
    }

    /// One line for the console.
    pub fn in_words(&self) -> String {
        let agreement = self.agreement.iter().find(|(name, _)| name == "spearman" || name == "accuracy");
        let agreement = agreement.map_or_else(String::new, |(name, found)| format!(", {name} {found:.3}"));
        let rows = counted(self.rows, "row");
        format!("{rows}, {} scored, {} with a human score{agreement}", self.scored, self.graded)
    }
}

/// What a check says that found nothing wrong.
fn all_found(check: &Check) -> String {
    match check {
        Check::Command(_) => "Complete: the check found the results of every row of the input once.".to_owned(),
        Check::Rows(found) if found.repeated == 0 && found.lost == 0 => {
            "Complete: the check found every row of the input once, scored from the text that is in it.".to_owned()
        }
        Check::Rows(found) => format!(
            "Complete but for what the check let pass: {} of rows that have one already, which count here too, and {} whose worker died.",
            counted(found.repeated as usize, "result"),
            counted(found.lost as usize, "row")
        ),
    }
}

fn by_name<S: Serializer>(statistics: &[(String, Statistic)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(statistics.iter().map(|(name, statistic)| (name, statistic)))
}

/// The statistics by name, and those of layers as a list.
fn worth<S: Serializer>(found: &Option<Worth>, serializer: S) -> Result<S::Ok, S::Error> {
    let entries = |found: &Worth| found.entries().chain([("layers", found.layers_json())]).collect::<BTreeMap<_, _>>();
    found.as_ref().map(entries).serialize(serializer)
}

/// What the best constant gets: of numbers the median by mean absolute error and the mean by root mean squared error, of labels the
/// commonest, whose share among those that raters agree on is known.
fn guess(commonest: Option<&Statistic>, human: &[f64]) -> BTreeMap<&'static str, f64> {
    let mut found = BTreeMap::new();
    found.extend(commonest.and_then(Statistic::estimate).map(|share| ("accuracy", share)));
    if !human.is_empty() {
        let mut sorted = human.to_vec();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len();
        let median = f64::midpoint(sorted[(n - 1) / 2], sorted[n / 2]);
        let mean = human.iter().sum::<f64>() / n as f64;
        found.insert("median", median);
        found.insert("mae", human.iter().map(|human| (human - median).abs()).sum::<f64>() / n as f64);
        found.insert("mean", mean);
        found.insert("rmse", (human.iter().map(|human| (human - mean).powi(2)).sum::<f64>() / n as f64).sqrt());
    }
    found
}

/// Bars over all values, those of people in the same bars.
fn bars(values: &[f64], human: &[f64]) -> Vec<Bar> {
    if values.is_empty() {
        return Vec::new();
    }
    let Range { start: low, end: high } = span(values.iter().chain(human).copied());
    let human = histogram(human, low, high, BARS);
    let both = histogram(values, low, high, BARS).into_iter().zip(human);
    both.map(|((low, high, rows), (.., human))| Bar { low, high, rows, human }).collect()
}
