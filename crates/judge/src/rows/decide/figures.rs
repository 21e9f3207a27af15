//! Which questions were answered, and what labelled rows say of the answers.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use judge_cli::args::bars::{self, Lost, rows_compared_json};
use judge_cli::args::files::program;
use judge_cli::report::BOOTSTRAP;
use judge_cli::terminal::console::{counted, counted_that, say, say_table, tell};
use judge_core::decision::{Labelled, Question, Questions};
use judge_core::lager::LayerTable;
use judge_data::{DecisionRecords, Finished, Program};
use judge_metrics::comparison::{ComparedDecision, DecisionComparison, Statistic};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::cli::PROGRAM;

#[derive(Deserialize)]
struct WrittenTable {
    options: Vec<String>,
    #[serde(flatten)]
    table: LayerTable,
}

/// The figures of labelled rows.
#[derive(Serialize)]
pub(super) struct Figures {
    program: Program,
    /// Labelled decisions with an answer.
    n: usize,
    /// Labels that name no option of a question that was asked.
    labels_not_read: usize,
    /// Answered rows that have no answer to a question, by its name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    unanswered: BTreeMap<String, Unanswered>,
    /// By the name of the question.
    questions: BTreeMap<String, DecisionComparison>,
    /// Of all questions together.
    #[serde(skip_serializing_if = "Option::is_none")]
    all: Option<DecisionComparison>,
    /// What bars may be for: of all questions together by its name, of one as `accuracy:QUESTION`.
    statistics: Map<String, Value>,
}

/// Rows that have answers, and none to one question.
#[derive(Serialize)]
struct Unanswered {
    rows: usize,
    /// The first of them.
    first: String,
    /// Why it has none.
    why: String,
}

/// Names of the statistics, each of which a question also has by itself: `accuracy:question`.
pub(super) const NAMES: [&str; 6] = ["accuracy", "majority_share", "predicted_mode_share", "kl", "brier", "ece"];

/// The question that the name of a statistic is of; `None` for one of all questions.
pub(super) fn question_of(statistic: &str) -> Option<&str> {
    statistic.split_once(':').map(|(_, question)| question)
}

/// The statistics of all decisions together and of each question in `known`, by the names that bars have for them.
fn by_name(
    known: &BTreeSet<String>,
    questions: &BTreeMap<String, DecisionComparison>,
    all: Option<&DecisionComparison>,
) -> Map<String, Value> {
    let of = |found: Option<&DecisionComparison>, of_nothing: &str| match found {
        Some(found) => {
            [&found.accuracy, &found.majority_share, &found.predicted_mode_share, &found.kl, &found.brier, &found.ece]
                .map(|known| json!(known))
        }
        None => NAMES.map(|_| json!(Statistic::Undefined { reason: of_nothing.to_owned() })),
    };
    let whole =
        NAMES.map(str::to_owned).into_iter().zip(of(all, "no row has an answer and a label that names an option"));
    let single = |question: &String| {
        let found = of(questions.get(question), "no row has an answer to it and a label that names one of its options");
        NAMES.map(|name| format!("{name}:{question}")).into_iter().zip(found)
    };
    whole.chain(known.iter().flat_map(single)).collect()
}

/// What the rows say.
pub(super) struct Measured {
    pub(super) figures: Figures,
    pub(super) labelled: Vec<Labelled>,
    /// Rows that are not answered, or not where people have.
    lost: Lost,
}

impl Measured {
    /// Reads the finished rows, beside their questions; `asked` are those for rows without their own, and `named` the names of questions
    /// that bars are for. A row counts that is answered, also wherever it has a label.
    pub(super) fn of(
        finished: &Finished<'_, DecisionRecords>,
        asked: Option<&Questions>,
        named: impl Iterator<Item = String>,
    ) -> Result<Self> {
        let mut by_question: BTreeMap<String, Vec<ComparedDecision>> = BTreeMap::new();
        let (mut labelled, mut not_read) = (Vec::new(), 0);
        let mut asked_about = Known::default();
        let named: BTreeSet<String> = named.collect();
        let mut known = named.clone();
        known.extend(asked.into_iter().flat_map(Questions::iter).map(|(name, _)| name.to_owned()));
        let mut unanswered: BTreeMap<String, Unanswered> = BTreeMap::new();
        let (mut rows, mut used, mut n_compared, mut lost) = (0, 0, 0, Lost::default());
        for (group, row) in finished.rows()?.enumerate() {
            let (record, row) = row?;
            let answers: BTreeMap<String, Value> = row.optional("answers", "an object")?.unwrap_or_default();
            let reasons: BTreeMap<String, Value> = row.optional("unanswered", "an object")?.unwrap_or_default();
            let tables: BTreeMap<String, WrittenTable> =
                row.optional("tables", "tables of logits by question")?.unwrap_or_default();
            let mut is_used = row.value("unscored").is_none();
            let mut is_compared = false;
            let questions = record.questions.as_ref().or(asked);
            for (name, _) in questions.into_iter().flat_map(Questions::iter) {
                if is_used && !answers.contains_key(name) {
                    let why = reasons.get(name).and_then(|why| why["detail"].as_str()).unwrap_or("there is none");
                    let first = || Unanswered { rows: 0, first: record.id.to_string(), why: why.to_owned() };
                    unanswered.entry(name.to_owned()).or_insert_with(first).rows += 1;
                }
            }
            // Of a row that cannot be asked about nobody knows what its labels answer.
            for (name, label) in record.labels.iter().filter(|_| record.unread.is_none()) {
                let question = questions.and_then(|questions: &Questions| questions.get(name));
                let target = question.and_then(|question| question.target(label).ok());
                let (Some(question), Some(observed)) = (question, target) else {
                    if not_read == 0 {
                        tell(format_args!("note: row {}: the label {label} is no answer to {name:?}", record.id));
                    }
                    not_read += 1;
                    continue;
                };
                known.insert(name.clone());
                if let Some(found) = tables.get(name) {
                    labelled.push(of_table(question, found, &observed)?);
                }
                let Some(predicted) = answers.get(name).and_then(|answer| probabilities(question, answer)) else {
                    is_used = false;
                    continue;
                };
                let (question, [observed, predicted]) = asked_about.in_order(name, question, [observed, predicted]);
                let decision = ComparedDecision { observed, predicted, group, question };
                by_question.entry(name.clone()).or_default().push(decision);
                is_compared = true;
            }
            rows += 1;
            n_compared += usize::from(is_compared);
            if is_used {
                used += 1;
            } else {
                lost.push(&record.id);
            }
        }
        // The statistics of bars rest on the rows of their questions; the least of these counts.
        let of_question = |name: &String| by_question.get(name).map_or(0, Vec::len);
        let n_compared = named.iter().map(of_question).min().unwrap_or(n_compared);
        let all: Vec<ComparedDecision> = by_question.values().flatten().cloned().collect();
        let compare = |decisions: &[ComparedDecision]| DecisionComparison::new(decisions, &BOOTSTRAP);
        let questions = by_question.iter().map(|(name, decisions)| Ok((name.clone(), compare(decisions)?)));
        let questions = questions.collect::<Result<BTreeMap<_, _>>>()?;
        let n = all.len();
        let all = if all.is_empty() { None } else { Some(compare(&all)?) };
        let mut statistics = by_name(&known, &questions, all.as_ref());
        statistics.extend(rows_compared_json(n_compared, used, rows));
        let figures =
            Figures { program: program(PROGRAM), n, labels_not_read: not_read, unanswered, questions, all, statistics };
        Ok(Self { figures, labelled, lost })
    }

    /// For bars.
    pub(super) fn for_bars(self) -> bars::Measured {
        let statistics = self.figures.statistics.into();
        bars::Measured { statistics, worst: String::new(), lost: self.lost, apart: Vec::new() }
    }

    /// How often a question was not answered, and the table for people; no table where no row has a label.
    pub(super) fn print(&self) -> Result<()> {
        let Figures { n, labels_not_read, unanswered, questions, all, .. } = &self.figures;
        for (name, Unanswered { rows, first, why }) in unanswered {
            say(format_args!("{name}: no answer in {}; the first is row {first}: {why}", counted(*rows, "row")))?;
        }
        if *labels_not_read > 0 {
            let labels = counted_that(*labels_not_read, "label", ["names", "name"]);
            say(format_args!("{labels} no option of a question that was asked"))?;
        }
        let Some(all) = all else { return Ok(()) };
        let row = |name: &str, found: &DecisionComparison| {
            let [accuracy, kl, brier, ece] =
                [&found.accuracy, &found.kl, &found.brier, &found.ece].map(|found| format!("{found:#}"));
            let constant = found.majority_share.estimate().map_or_else(String::new, |share| format!("{share:.3}"));
            vec![name.to_owned(), found.n.to_string(), accuracy, constant, kl, brier, ece]
        };
        let mut rows: Vec<Vec<String>> = questions.iter().map(|(name, found)| row(name, found)).collect();
        if questions.len() > 1 {
            rows.push(row("all", all));
        }
        say(format_args!("\n{}", counted(*n, "labelled decision")))?;
        let head = ["question", "labels", "accuracy [95 %]", "constant", "KL [95 %]", "Brier [95 %]", "ECE [95 %]"];
        say_table(head, rows)?;
        say("constant: the accuracy of always giving the commonest label of these rows")?;
        if all.divided > 0 {
            let divided = counted(all.divided, "decision");
            say(format_args!("people are divided evenly on {divided}, counted in KL and Brier alone"))?;
        }
        let answers = questions.iter().filter_map(|(name, found)| Some((name, found.predicted_mode_share.estimate()?)));
        for (name, share) in answers.filter(|(_, share)| *share > 0.95) {
            say(format_args!("{name}: {:.1} % of the answers are the same one", 100.0 * share))?;
        }
        Ok(())
    }
}

/// The questions that decisions are about. Those of one name with the same options are one question, whose options are in the order of its
/// first row; those with others are another.
#[derive(Default)]
struct Known {
    /// By the name and the sorted options: the place, and the options in their order.
    questions: BTreeMap<(String, Vec<String>), (usize, Vec<String>)>,
}

impl Known {
    /// The place of a question, and shares of its options in the order that it is known by.
    fn in_order<const N: usize>(
        &mut self,
        name: &str,
        question: &Question,
        shares: [Vec<f64>; N],
    ) -> (usize, [Vec<f64>; N]) {
        let (own, next) = (question.options(), self.questions.len());
        let mut sorted = own.clone();
        sorted.sort();
        let (place, order) = self.questions.entry((name.to_owned(), sorted)).or_insert_with(|| (next, own.clone()));
        let of = |option: &String| own.iter().position(|known| known == option);
        let ordered = shares.map(|shares| order.iter().filter_map(|option| shares.get(of(option)?).copied()).collect());
        (*place, ordered)
    }
}

/// The table of a question with the share of each of its columns in people's answers.
fn of_table(question: &Question, found: &WrittenTable, observed: &[f64]) -> Result<Labelled> {
    let options = question.options();
    let share = |option: &String| options.iter().position(|own| own == option).and_then(|at| observed.get(at).copied());
    let target: Option<Vec<f64>> = found.options.iter().map(share).collect();
    let target = target.context("a row's table is of other options than its question")?;
    Ok(Labelled { kind: question.kind(), table: found.table.clone(), target })
}

/// The probabilities in an answer, in the order of the question's options.
fn probabilities(question: &Question, answer: &Value) -> Option<Vec<f64>> {
    match question {
        Question::Noul { .. } => {
            let yes = answer.get("noul")?.as_f64()?;
            let no = answer.get("probabilities").and_then(|both| both.get("false")?.as_f64());
            Some(vec![yes, no.unwrap_or(1.0 - yes)])
        }
        _ => question.options().iter().map(|option| answer.get("probabilities")?.get(option)?.as_f64()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_in_another_order_are_those_of_the_question() {
        let choice = |options: &[&str]| {
            let criteria: Map<String, Value> = options.iter().map(|&name| (name.to_owned(), Value::Null)).collect();
            Question::from_json(&json!({"type": "choice", "criteria": criteria})).unwrap()
        };
        let mut known = Known::default();
        let mut place = |name, options, shares: [f64; 2]| known.in_order(name, &choice(options), [shares.to_vec()]);
        assert_eq!(place("tone", &["calm", "angry"], [0.9, 0.1]), (0, [vec![0.9, 0.1]]));
        assert_eq!(place("tone", &["angry", "calm"], [0.1, 0.9]), (0, [vec![0.9, 0.1]]));
        assert_eq!(place("tone", &["angry", "glad"], [0.1, 0.9]), (1, [vec![0.1, 0.9]]));
        assert_eq!(place("mood", &["angry", "calm"], [0.1, 0.9]), (2, [vec![0.1, 0.9]]));
    }

    #[test]
    fn a_no_that_is_written_is_read() {
        let of = |answer: Value| probabilities(&Question::noul("?"), &answer);
        assert_eq!(of(json!({"noul": 1.0, "probabilities": {"true": 1.0, "false": 1e-20}})), Some(vec![1.0, 1e-20]));
        assert_eq!(of(json!({"noul": 0.75})), Some(vec![0.75, 0.25]));
    }
}
