//! What all rows together came to.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use judge_core::decision::{Labelled, QuestionKind};
use judge_core::lager::LayerTable;
use judge_core::rag::{RagField, RagMeasure};
use judge_data::{Finished, RagRecord, RagRecords, Row};
use judge_metrics::Error;
use judge_metrics::agreement::ConfusionMatrix;
use judge_metrics::comparison::Statistic;
use judge_metrics::means::mean_of_raters;
use judge_metrics::prediction::auroc;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use judge_cli::args::bars::{Lost, Measured, first_names, rows_compared};
use judge_cli::report::{BOOTSTRAP, SHARE, agreement, mean_of_clusters, share_of_clusters};
use judge_cli::terminal::console::{counted, counted_that, say, say_table, tell};

/// A measure as a row has it.
#[derive(Clone, Copy, Deserialize)]
struct WrittenValue {
    mean: f64,
    share: f64,
}

/// A sentence as a row has it.
#[derive(Deserialize)]
struct Sentence {
    supported: Option<f64>,
    table: Option<LayerTable>,
}

/// A sentence that people marked.
struct Marked {
    /// The probability that it is supported.
    supported: f64,
    /// The share of people who say so.
    people: f64,
    table: Option<LayerTable>,
}

impl Marked {
    /// Whether people are not divided evenly.
    fn is_clear(&self) -> bool {
        self.people != 0.5
    }
}

/// What is read of one row.
struct Read {
    id: String,
    /// Its question, or itself: rows of one question are no independent draws.
    cluster: String,
    group: Option<String>,
    measures: BTreeMap<RagMeasure, WrittenValue>,
    sentences: Vec<Marked>,
    /// What people say of the whole, or the share of their clear marks that say supported.
    human: Option<f64>,
}

/// The figures of a run.
#[derive(Serialize)]
pub(super) struct Figures {
    /// Rows of which something was measured.
    n: usize,
    /// Questions of those, of which rows without any count by themselves.
    questions: usize,
    /// Means of the rows' means by the measure's name, and of their shares; of groups as `measure:group`. With people's marks of sentences
    /// how well those are told apart, and with their grades how well those are followed.
    pub(super) statistics: BTreeMap<String, Statistic>,
    /// How many rows could not have each measure, by reason.
    absent: BTreeMap<RagMeasure, BTreeMap<String, usize>>,
    /// How well each layer alone tells apart the sentences that people marked, where all are read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    layers: Vec<ByLayer>,
    /// What weights can be learned from.
    #[serde(skip)]
    pub(super) labelled: Vec<Labelled>,
    #[serde(skip)]
    groups: Vec<String>,
    #[serde(skip)]
    measures: Vec<RagMeasure>,
    #[serde(skip)]
    least: Vec<(f64, String)>,
    /// Rows without a measure that counts for bars.
    #[serde(skip)]
    lost: Lost,
}

/// At most so many groups are shown to people.
const SHOWN_GROUPS: usize = 50;

/// The name of the statistic of shares beside that of means.
fn share_of(measure: RagMeasure) -> String {
    format!("{measure}_share")
}

/// What one layer says of the sentences that people marked.
#[derive(Serialize)]
struct ByLayer {
    layer: usize,
    sentence_auroc: Statistic,
    sentence_balanced_accuracy: Statistic,
}

/// Names of the statistics of sentences that people marked.
const OF_SENTENCES: [&str; 3] = ["sentence_auroc", "sentence_balanced_accuracy", "sentence_supported_share"];

/// Names of the statistics of rows that people graded.
const OF_ROWS: [&str; 2] = ["faithfulness_spearman", "faithfulness_pearson"];

/// Names of the statistics of these measures; of groups their beginnings.
pub(super) fn names(measures: &[RagMeasure], has_groups: bool) -> Vec<String> {
    let of = |&measure: &RagMeasure| {
        let group = has_groups.then(|| format!("{measure}:"));
        [measure.to_string(), share_of(measure)].into_iter().chain(group)
    };
    measures.iter().flat_map(of).chain(OF_SENTENCES.into_iter().chain(OF_ROWS).map(str::to_owned)).collect()
}

impl Figures {
    /// Reads the finished rows, beside what they were made of.
    pub(super) fn of(
        finished: &Finished<'_, RagRecords>,
        measures: &[RagMeasure],
        group: Option<&str>,
        bars: &[&str],
    ) -> Result<Self> {
        let mut rows = Vec::new();
        let mut absent: BTreeMap<RagMeasure, BTreeMap<String, usize>> = BTreeMap::new();
        for row in finished.rows()? {
            let (record, row) = row?;
            for (measure, why) in
                row.optional::<BTreeMap<RagMeasure, Value>>("unscored", "reasons by measure")?.unwrap_or_default()
            {
                let why = why["reason"].as_str().unwrap_or_default().to_owned();
                *absent.entry(measure).or_default().entry(why).or_default() += 1;
            }
            rows.push(read(&record, &row, group)?);
        }
        let mut statistics: BTreeMap<String, Statistic> = BTreeMap::new();
        let all: Vec<&Read> = rows.iter().collect();
        let mut groups: BTreeMap<&String, Vec<&Read>> = BTreeMap::new();
        for row in &rows {
            if let Some(group) = &row.group {
                groups.entry(group).or_default().push(row);
            }
        }
        for &measure in measures {
            statistics.insert(measure.to_string(), mean(&all, measure, |value| value.mean));
            statistics.insert(share_of(measure), mean(&all, measure, |value| value.share));
            for (group, own) in &groups {
                statistics.insert(format!("{measure}:{group}"), mean(own, measure, |value| value.mean));
            }
        }
        let groups = groups.into_keys().cloned().collect();
        let clear = Clear::of(&rows);
        let mut layers = Vec::new();
        if let Some(clear) = &clear {
            let found =
                [clear.auroc(&clear.supported)?, clear.balanced_accuracy(&clear.supported, 0.5)?, clear.share()];
            statistics.extend(OF_SENTENCES.map(str::to_owned).into_iter().zip(found));
            layers = clear.layers()?;
        }
        statistics.extend(of_grades(&rows)?);
        // A row counts for bars that has the measures that they are for.
        let needed: Vec<RagMeasure> = measures
            .iter()
            .copied()
            .filter(|measure| bars.iter().any(|bar| bar.starts_with(measure.as_str())))
            .collect();
        let counts =
            |row: &Read| !row.measures.is_empty() && needed.iter().all(|measure| row.measures.contains_key(measure));
        let (used, without): (Vec<&Read>, Vec<&Read>) = rows.iter().partition(|row| counts(row));
        // Of those, what is compared with people rests on the rows that people have marked or graded.
        let is_for = |names: &[&str]| bars.iter().any(|bar| names.contains(bar));
        let (needs_marks, needs_grade) = (is_for(&OF_SENTENCES), is_for(&OF_ROWS));
        let is_compared = |row: &&&Read| {
            (!needs_marks || row.sentences.iter().any(Marked::is_clear)) && (!needs_grade || row.human.is_some())
        };
        let compared = used.iter().filter(is_compared).count();
        let counts = rows_compared(compared, used.len(), rows.len());
        statistics.extend(counts.map(|(name, known)| (name.to_owned(), known)));
        let mut lost = Lost::default();
        lost.extend(without.into_iter().map(|row| &row.id));
        let mut least: Vec<(f64, String)> = rows
            .iter()
            .filter_map(|row| {
                let first = measures.iter().find_map(|measure| row.measures.get(measure))?;
                Some((first.mean, row.id.clone()))
            })
            .collect();
        least.sort_by(|a, b| a.0.total_cmp(&b.0));
        let measured = rows.iter().filter(|row| !row.measures.is_empty());
        let n = measured.clone().count();
        let questions = measured.map(|row| row.cluster.as_str()).collect::<BTreeSet<_>>().len();
        let labelled = rows.iter().flat_map(|row| &row.sentences).filter_map(labelled).collect();
        let measures = measures.to_vec();
        Ok(Self { n, questions, statistics, absent, layers, labelled, groups, measures, least, lost })
    }

    /// For bars.
    pub(super) fn for_bars(self) -> Measured {
        let worst = self.worst();
        Measured { statistics: json!(self.statistics), worst, lost: self.lost, apart: Vec::new() }
    }

    /// The rows that are worst by the first measure.
    fn worst(&self) -> String {
        let names = self.least.iter().map(|(value, id)| format!("{id} ({value:.3})"));
        self.measures.first().map_or_else(String::new, |measure| first_names(&format!("least {measure}"), names))
    }

    /// The table for people.
    pub(super) fn print(&self) -> Result<()> {
        let found = |name: &str| self.statistics.get(name).map_or_else(String::new, |found| format!("{found:#}"));
        let mut rows = Vec::new();
        for &measure in &self.measures {
            rows.push(vec![measure.to_string(), found(measure.as_str()), found(&share_of(measure))]);
            let group = |group: &String| vec![format!("  {group}"), found(&format!("{measure}:{group}"))];
            rows.extend(self.groups.iter().take(SHOWN_GROUPS).map(group));
        }
        let (answers, questions) = (counted(self.n, "answer"), counted(self.questions, "question"));
        say(format_args!("\n{answers} to {questions}"))?;
        say_table(["measure", "mean [95 %]", "share at 0.5 [95 %]"], rows)?;
        if let more @ 1.. = self.groups.len().saturating_sub(SHOWN_GROUPS) {
            say(format_args!("{} more: --json has all of them", counted(more, "group")))?;
        }
        for (measure, reasons) in &self.absent {
            let all: usize = reasons.values().sum();
            let why: Vec<String> = reasons.iter().map(|(reason, rows)| format!("{rows} {reason}")).collect();
            say(format_args!("{measure}: {all} without it: {}", why.join(", ")))?;
        }
        if !self.layers.is_empty() {
            let row = |found: &ByLayer| {
                let [auroc, balanced] = [&found.sentence_auroc, &found.sentence_balanced_accuracy];
                vec![found.layer.to_string(), format!("{auroc:#}"), format!("{balanced:#}")]
            };
            say("")?;
            let head = ["layer", "AUROC of sentences [95 %]", "balanced accuracy [95 %]"];
            say_table(head, self.layers.iter().map(row))?;
        }
        for name in OF_SENTENCES.iter().chain(&OF_ROWS) {
            if self.statistics.contains_key(*name) {
                say(format_args!("{name}: {}", found(name)))?;
            }
        }
        Ok(())
    }
}

fn read(record: &RagRecord, row: &Row, group: Option<&str>) -> Result<Read> {
    let mut measures = BTreeMap::new();
    for measure in RagMeasure::ALL {
        if let Some(value) = row.optional::<WrittenValue>(measure.as_str(), "an object with mean and share")? {
            measures.insert(measure, value);
        }
    }
    let found: Vec<Sentence> = row.optional("sentences", "a list of sentences")?.unwrap_or_default();
    let mean = |given: &[Option<f64>]| mean_of_raters(&given.iter().flatten().copied().collect::<Vec<_>>());
    let all_marked = found.len() == record.labels.len();
    let marked = found.into_iter().zip(&record.labels).filter(|(_, given)| all_marked && !given.is_empty());
    let marked = marked.filter_map(|(Sentence { supported, table }, given)| {
        Some(Marked { supported: supported?, people: mean(given)?, table })
    });
    let sentences: Vec<Marked> = marked.collect();
    let supported = sentences.iter().filter(|marked| marked.is_clear()).map(|marked| f64::from(marked.people > 0.5));
    let human = mean(&record.human).or_else(|| mean_of_raters(&supported.collect::<Vec<_>>()));
    let question = record.rag.question.clone().filter(|_| record.rag.lacks(RagField::Question).is_none());
    let cluster = question.unwrap_or_else(|| format!("\u{0}{}", record.id));
    let group = group.map(|field| record.text(field).map_or_else(|| "null".to_owned(), Cow::into_owned));
    Ok(Read { id: record.id.to_string(), cluster, group, measures, sentences, human })
}

/// The mean of a measure over rows, with questions as clusters.
fn mean(rows: &[&Read], measure: RagMeasure, number: impl Fn(&WrittenValue) -> f64) -> Statistic {
    let found = rows.iter().filter_map(|row| Some((number(row.measures.get(&measure)?), row.cluster.as_str())));
    let (values, clusters): (Vec<f64>, Vec<&str>) = found.unzip();
    mean_of_clusters(&values, &clusters, SHARE, &format!("no row has the measure {measure}"))
}

/// What weights learn from a sentence.
fn labelled(marked: &Marked) -> Option<Labelled> {
    let table = marked.table.clone()?;
    Some(Labelled { kind: QuestionKind::Noul, table, target: vec![marked.people, 1.0 - marked.people] })
}

/// The sentences on which people are not divided evenly.
struct Clear<'r> {
    people: Vec<bool>,
    supported: Vec<f64>,
    tables: Vec<Option<&'r LayerTable>>,
    clusters: Vec<&'r str>,
}

impl<'r> Clear<'r> {
    /// Those of all rows; `None` if there are none.
    fn of(rows: &'r [Read]) -> Option<Self> {
        let mut clear = Self { people: Vec::new(), supported: Vec::new(), tables: Vec::new(), clusters: Vec::new() };
        let mut even = 0;
        for (row, marked) in rows.iter().flat_map(|row| row.sentences.iter().map(move |marked| (row, marked))) {
            if !marked.is_clear() {
                even += 1;
                continue;
            }
            clear.people.push(marked.people > 0.5);
            clear.supported.push(marked.supported);
            clear.tables.push(marked.table.as_ref());
            clear.clusters.push(&row.cluster);
        }
        if even > 0 {
            tell(format_args!(
                "note: people are divided evenly on {} left out of the comparison with them",
                counted_that(even, "sentence", ["and it is", "and they are"])
            ));
        }
        (!clear.people.is_empty()).then_some(clear)
    }

    fn drawn(&self, statistic: impl Fn(&[usize]) -> Result<f64, Error> + Sync) -> Result<Statistic> {
        let all: Vec<usize> = (0..self.people.len()).collect();
        Ok(Statistic::of(BOOTSTRAP.clustered(&self.clusters, &statistic), || statistic(&all))?)
    }

    /// How well these probabilities tell apart what people call supported and what they do not.
    fn auroc(&self, scores: &[f64]) -> Result<Statistic> {
        self.drawn(|rows| auroc(&pick(&self.people, rows), &pick(scores, rows)).map(|found| found.estimate))
    }

    /// The mean of the shares of both that lie on the right side of a threshold.
    fn balanced_accuracy(&self, scores: &[f64], threshold: f64) -> Result<Statistic> {
        self.drawn(|rows| {
            let judge: Vec<bool> = pick(scores, rows).iter().map(|&score| score >= threshold).collect();
            let both = ConfusionMatrix::new(vec![false, true], &pick(&self.people, rows), &judge)?;
            both.balanced_accuracy().map(|found| found.estimate)
        })
    }

    /// The share of sentences that people call supported.
    fn share(&self) -> Statistic {
        share_of_clusters(&self.people, &self.clusters, "people marked no sentence")
    }

    /// What each layer alone says, where every sentence has its table.
    fn layers(&self) -> Result<Vec<ByLayer>> {
        let Some(tables) = self.tables.iter().copied().collect::<Option<Vec<&LayerTable>>>() else {
            return Ok(Vec::new());
        };
        let mut layers = Vec::new();
        for &layer in tables.first().map_or(&[][..], |table| table.layers()) {
            // Log-odds: probabilities of inner layers often round to 0 or 1.
            let odds = |table: &&LayerTable| match table.row(layer) {
                Some(&[yes, no]) => Some(yes - no),
                _ => None,
            };
            let Some(scores) = tables.iter().map(odds).collect::<Option<Vec<f64>>>() else { continue };
            layers.push(ByLayer {
                layer: layer.0,
                sentence_auroc: self.auroc(&scores)?,
                sentence_balanced_accuracy: self.balanced_accuracy(&scores, 0.0)?,
            });
        }
        Ok(layers)
    }
}

fn pick<T: Copy>(all: &[T], rows: &[usize]) -> Vec<T> {
    rows.iter().map(|&row| all[row]).collect()
}

/// How well faithfulness follows what people say of rows.
fn of_grades(rows: &[Read]) -> Result<Vec<(String, Statistic)>> {
    let of = |row: &Read| Some((row.measures.get(&RagMeasure::Faithfulness)?.mean, row.human?));
    let (scores, human): (Vec<f64>, Vec<f64>) = rows.iter().filter_map(of).unzip();
    if scores.is_empty() {
        return Ok(Vec::new());
    }
    let found = agreement(&scores, &human)?;
    Ok(OF_ROWS.map(str::to_owned).into_iter().zip([found.spearman, found.pearson]).collect())
}
