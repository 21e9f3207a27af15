//! Where a model's knowledge ends, by its scores: thresholds, and what is risked on either side of them.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, anyhow, ensure};
use clap::ValueEnum;
use judge_data::{Program, ScoredFields, ScoredRows, Unread};
use judge_metrics::comparison::Statistic;
use judge_metrics::prediction::{
    RiskCoveragePoint, area_under_risk_coverage, auroc, auroc_difference, best_f1_threshold, risk_coverage_curve,
};
use serde::Serialize;

use judge_cli::args::files::program;
use judge_cli::missing_fields::tell_unread_that;
use judge_cli::report::{BOOTSTRAP, thinned};
use judge_cli::terminal::console::{counted, counted_that, say, usage};
use judge_cli::terminal::options::name_of;

/// The field that says whether a question can be answered.
pub const ANSWERABLE: &str = "answerable";

/// The field that has what a probe says.
pub const PROBE: &str = "probe";

/// The field that has why a probe says nothing.
pub const PROBE_UNSCORED: &str = "probe_unscored";

/// Points of the curve that are kept.
const POINTS: usize = 200;

/// `--threshold-rule`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// The threshold with the largest F1 of unanswerable questions on --valid
    Fitted,
    /// Three quarters of the way from the smallest score of the file to the largest; a score on the threshold counts as answerable
    MinMax,
    /// The same; a score on the threshold counts as unanswerable, as in the reference program
    MinMaxStrict,
}

impl Rule {
    /// The rule that was asked for, or the one that fits.
    ///
    /// # Errors
    /// If it needs a file of other questions that is not there, or has no use for one.
    pub fn choose(rule: Option<Self>, is_valid_there: bool) -> Result<Self> {
        match (rule, is_valid_there) {
            (Some(Self::Fitted), false) => Err(usage("--threshold-rule fitted needs --valid FILE")),
            (Some(Self::MinMax | Self::MinMaxStrict), true) => {
                Err(usage("--valid FILE is for --threshold-rule fitted"))
            }
            (Some(rule), _) => Ok(rule),
            (None, true) => Ok(Self::Fitted),
            (None, false) => Ok(Self::MinMax),
        }
    }
}

/// What JSON says of whether a question can be answered, a cell of a table included; `None` where nothing is said.
///
/// # Errors
/// If it is something else.
pub fn answerable(json: Option<&str>) -> Result<Option<bool>, String> {
    let Some(json) = json.filter(|json| *json != "null") else { return Ok(None) };
    let cell: Option<String> = serde_json::from_str(json).ok();
    match cell.as_deref().unwrap_or(json).trim().to_lowercase().as_str() {
        "true" | "1" | "1.0" => Ok(Some(true)),
        "false" | "0" | "0.0" => Ok(Some(false)),
        _ => Err(format!("expected {ANSWERABLE:?} to be true or false, found {json}")),
    }
}

/// What the rows of a file say.
#[derive(Default)]
pub struct Judged {
    scores: Vec<f64>,
    /// Of those rows of which the input says whether they are answerable: index of the score, and what it says.
    known: Vec<(usize, bool)>,
    /// What a probe says of the same rows, where there was one.
    probe: Vec<Option<f64>>,
    /// Whether there was one, whatever it could read.
    is_probed: bool,
    unscored: BTreeMap<String, usize>,
    /// Rows with something else in the place of that.
    odd: Unread,
}

impl Judged {
    /// Reads rows with a `score`, or `unscored`, and `answerable` where it is known.
    ///
    /// # Errors
    /// Whatever is wrong with the file.
    pub fn read(path: &Path) -> Result<Self> {
        let mut found = Self::default();
        let fields = ScoredFields { predicted: Some("score".to_owned()), human: None };
        for row in ScoredRows::open(path, &fields)? {
            let row = row?;
            let answerable = answerable(row.row.value(ANSWERABLE));
            found.odd.note(row.place(), answerable.as_ref().err().cloned());
            let answerable = answerable.unwrap_or_default();
            let why = |why| anyhow!("{}: {why}", row.place());
            match row.predicted_number().map_err(why)? {
                Some(score) => {
                    found.known.extend(answerable.map(|answerable| (found.scores.len(), answerable)));
                    found.scores.push(score);
                    found.probe.push(row.row.optional(PROBE, "a number")?);
                    found.is_probed |= row.row.keys().any(|key| key == PROBE);
                }
                None => {
                    let why = row.unscored.as_ref();
                    let why = why.with_context(|| format!("{}: neither a score nor why there is none", row.place()))?;
                    *found.unscored.entry(why.reason.clone()).or_default() += 1;
                }
            }
        }
        Ok(found)
    }

    /// Reads the rows of other questions, on which a threshold is fitted, and says which of them cannot be.
    ///
    /// # Errors
    /// As [`read`](Self::read), and if they do not have questions of both kinds.
    pub fn read_valid(path: &Path) -> Result<Self> {
        let found = Self::read(path)?;
        tell_unread_that(&found.odd, "do not say whether their question can be answered and are not fitted on");
        let (known, yes) = (found.known.len(), found.known.iter().filter(|(_, answerable)| *answerable).count());
        ensure!(
            (1..known).contains(&yes),
            "--valid {}: expected rows with {ANSWERABLE:?} true and rows with it false; of {} rows with a score {known} have it, {yes} of them true",
            path.display(),
            found.scores.len(),
        );
        Ok(found)
    }

    fn range(&self) -> (f64, f64) {
        self.scores.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &x| (low.min(x), high.max(x)))
    }

    /// Scores of the rows of which the input says something, and what it says.
    fn labelled(&self) -> (Vec<f64>, Vec<bool>) {
        self.known.iter().map(|&(index, answerable)| (self.scores[index], answerable)).unzip()
    }
}

/// A threshold: at and above it, or above it alone, a question counts as answerable.
#[derive(Clone, Copy, Debug, Serialize)]
struct Threshold {
    value: f64,
    rule: Rule,
}

impl Threshold {
    fn find(judged: &Judged, rule: Rule, valid: Option<&Judged>) -> Result<Self> {
        let value = match (rule, valid) {
            (Rule::Fitted, Some(valid)) => {
                let (scores, answerable) = valid.labelled();
                // Unanswerable is positive, and the smaller the score the more so: the threshold lies half-way to the next score above.
                let unanswerable: Vec<bool> = answerable.iter().map(|answerable| !answerable).collect();
                let falling: Vec<f64> = scores.iter().map(|score| -score).collect();
                let last = -best_f1_threshold(&unanswerable, &falling)?.threshold;
                let next = scores.iter().copied().filter(|score| *score > last).fold(f64::INFINITY, f64::min);
                if next.is_finite() { f64::midpoint(last, next) } else { last.next_up() }
            }
            _ => {
                let (low, high) = judged.range();
                low + 0.75 * (high - low)
            }
        };
        Ok(Self { value, rule })
    }

    fn is_answerable(self, score: f64) -> bool {
        if self.rule == Rule::MinMaxStrict { score > self.value } else { score >= self.value }
    }
}

/// Everything that is found; it is written as it is to the JSON file.
#[derive(Serialize)]
pub struct Boundary {
    program: Program,
    /// Questions with a score.
    n: usize,
    unscored: BTreeMap<String, usize>,
    /// Of how many of them the input says whether they are answerable.
    known: usize,
    answerable: usize,
    threshold: Threshold,
    /// Questions that count as unanswerable, whatever the input says.
    called_unanswerable: usize,
    f1_unanswerable: Statistic,
    auroc: Statistic,
    /// The mean risk of answering the surest, from one to all; what it would be if scores said nothing is the share of unanswerable
    /// questions.
    area_under_risk_coverage: Statistic,
    risk_coverage: Vec<RiskCoveragePoint>,
    #[serde(skip_serializing_if = "Option::is_none")]
    probe: Option<ByProbe>,
}

/// The second method, on the rows of which it says something and of which it is known whether they are answerable.
#[derive(Serialize)]
struct ByProbe {
    n: usize,
    auroc: Statistic,
    /// AUROC of LAGER on these rows minus that of the probe.
    difference: Statistic,
}

impl ByProbe {
    fn new(judged: &Judged) -> Result<Option<Self>> {
        if !judged.is_probed {
            return Ok(None);
        }
        let of = |&(row, answerable): &(usize, bool)| Some(((judged.scores[row], judged.probe[row]?), answerable));
        let (scores, answerable): (Vec<(f64, f64)>, Vec<bool>) = judged.known.iter().filter_map(of).unzip();
        let (lager, probe): (Vec<f64>, Vec<f64>) = scores.into_iter().unzip();
        let difference = Statistic::estimated(auroc_difference(&answerable, &lager, &probe), BOOTSTRAP.level);
        Ok(Some(Self { n: answerable.len(), auroc: auroc_of(&answerable, &probe), difference }))
    }
}

fn auroc_of(answerable: &[bool], scores: &[f64]) -> Statistic {
    Statistic::estimated(auroc(answerable, scores), BOOTSTRAP.level)
}

impl Boundary {
    /// Compares scores with what is known, and finds the threshold by a rule;
    /// `valid` are the rows of other questions on which it is fitted.
    ///
    /// # Errors
    /// If a statistic cannot be computed.
    pub fn new(judged: &Judged, rule: Rule, valid: Option<&Judged>) -> Result<Self> {
        let threshold = Threshold::find(judged, rule, valid)?;
        let (scores, answerable) = judged.labelled();
        let take = |rows: &[usize]| -> (Vec<f64>, Vec<bool>) {
            rows.iter().map(|&row| (scores[row], answerable[row])).unzip()
        };
        let n = scores.len();
        let f1 = |rows: &[usize]| {
            let (scores, answerable) = take(rows);
            f1_unanswerable(&scores, &answerable, threshold)
        };
        let area = |rows: &[usize]| {
            let (scores, answerable) = take(rows);
            area_under_risk_coverage(&losses(&answerable), &scores)
        };
        let all: Vec<usize> = (0..n).collect();
        let curve = if n == 0 { Vec::new() } else { risk_coverage_curve(&losses(&answerable), &scores)? };
        Ok(Self {
            program: program("self_knowledge"),
            n: judged.scores.len(),
            unscored: judged.unscored.clone(),
            known: n,
            answerable: answerable.iter().filter(|answerable| **answerable).count(),
            threshold,
            called_unanswerable: judged.scores.iter().filter(|score| !threshold.is_answerable(**score)).count(),
            f1_unanswerable: Statistic::of(BOOTSTRAP.interval(n, f1), || f1(&all))?,
            auroc: auroc_of(&answerable, &scores),
            area_under_risk_coverage: Statistic::of(BOOTSTRAP.interval(n, area), || area(&all))?,
            risk_coverage: thinned(&curve, POINTS),
            probe: ByProbe::new(judged)?,
        })
    }

    /// The points at which a quarter, a half and three quarters of the questions are answered; of few questions one may be several of them.
    fn surest(&self) -> Vec<&RiskCoveragePoint> {
        let reached = |share: f64| self.risk_coverage.iter().find(|point| point.coverage >= share);
        let mut points: Vec<&RiskCoveragePoint> = [0.25, 0.5, 0.75].into_iter().filter_map(reached).collect();
        points.dedup();
        points
    }

    /// Says it to people, on stdout.
    ///
    /// # Errors
    /// If stdout takes nothing.
    pub fn print(&self) -> Result<()> {
        let Threshold { value, rule } = self.threshold;
        say(format_args!(
            "threshold {value:.4} ({}): {} of {} count as unanswerable",
            name_of(rule),
            self.called_unanswerable,
            counted(self.n, "question")
        ))?;
        if self.known == 0 {
            return say(
                "the input does not say which questions are answerable (\"answerable\": true or false), so nothing is known of how right that is",
            );
        }
        let known = counted_that(self.known, "question", ["is", "are"]);
        say(format_args!("{known} known, {} of them answerable", self.answerable))?;
        for (name, found) in [
            ("F1 of unanswerable questions", &self.f1_unanswerable),
            ("AUROC", &self.auroc),
            ("area under the risk-coverage curve", &self.area_under_risk_coverage),
        ] {
            say(format_args!("{name}: {found:.3}"))?;
        }
        if let Some(ByProbe { n, auroc, difference }) = &self.probe {
            let questions = counted(*n, "question");
            say(format_args!("AUROC of the probe on {questions}: {auroc:.3}; LAGER's minus that: {difference:.3}"))?;
        }
        let unanswerable = 1.0 - self.answerable as f64 / self.known as f64;
        say(format_args!("answering all risks {unanswerable:.3}; of the surest:"))?;
        self.surest().into_iter().try_for_each(|RiskCoveragePoint { threshold, coverage, risk }| {
            let percent = 100.0 * coverage;
            say(format_args!("  {percent:3.0} % of the questions, from {threshold:.3} on: {risk:.3}"))
        })
    }
}

/// Answering costs 1 where there is no answer.
fn losses(answerable: &[bool]) -> Vec<f64> {
    answerable.iter().map(|answerable| f64::from(u8::from(!answerable))).collect()
}

/// F1 with the unanswerable class positive; undefined without a question that is or is called unanswerable.
fn f1_unanswerable(scores: &[f64], answerable: &[bool], threshold: Threshold) -> Result<f64, judge_metrics::Error> {
    let (mut both, mut either) = (0_usize, 0_usize);
    for (score, answerable) in scores.iter().zip(answerable) {
        let called = !threshold.is_answerable(*score);
        both += usize::from(called && !answerable);
        either += usize::from(called) + usize::from(!answerable);
    }
    match either {
        0 => Err(judge_metrics::Error::Undefined {
            statistic: "F1 of unanswerable questions",
            reason: "no question is unanswerable, and none is called so",
        }),
        _ => Ok(2.0 * both as f64 / either as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(rows: &[(f64, bool)]) -> Judged {
        Judged {
            scores: rows.iter().map(|row| row.0).collect(),
            known: rows.iter().enumerate().map(|(index, row)| (index, row.1)).collect(),
            probe: vec![None; rows.len()],
            ..Judged::default()
        }
    }

    /// Whole scores from 1 to 5: the threshold is 4, and a score of 4 is what the paper's rule and the program's differ in.
    #[test]
    fn the_two_rules_of_the_reference_differ_on_the_threshold() {
        let rows = judged(&[(1.0, false), (4.0, true), (5.0, true), (4.0, false), (2.0, false)]);
        let [paper, program] = [Rule::MinMax, Rule::MinMaxStrict].map(|rule| Boundary::new(&rows, rule, None).unwrap());
        assert_eq!((paper.threshold.value, program.threshold.value), (4.0, 4.0));
        assert_eq!((paper.called_unanswerable, program.called_unanswerable), (2, 4));
        // Two of three found, none wrongly; three of three found, one wrongly.
        let f1 = |found: &Boundary| found.f1_unanswerable.estimate().unwrap();
        assert!((f1(&paper) - 0.8).abs() < 1e-15 && (f1(&program) - 6.0 / 7.0).abs() < 1e-15);
        assert!((paper.auroc.estimate().unwrap() - 5.5 / 6.0).abs() < 1e-15);
    }

    #[test]
    fn a_fitted_threshold_lies_between_the_scores_of_other_questions() {
        let valid = judged(&[(1.0, false), (2.0, false), (3.0, true), (4.0, true)]);
        let test = judged(&[(2.4, false), (2.6, true), (2.5, true)]);
        let found = Boundary::new(&test, Rule::Fitted, Some(&valid)).unwrap();
        assert_eq!((found.threshold.value, found.called_unanswerable), (2.5, 1));
        assert_eq!(found.f1_unanswerable.estimate(), Some(1.0));
        // All unanswerable by their scores: above the last of them, nothing is.
        let odd = judged(&[(1.0, true), (2.0, false)]);
        assert!(Threshold::find(&test, Rule::Fitted, Some(&odd)).unwrap().value > 2.0);
    }

    /// The probe is right about every pair, LAGER about three of four.
    #[test]
    fn a_probe_is_compared_on_the_rows_that_it_knows() {
        let mut rows = judged(&[(1.0, false), (3.0, false), (2.0, true), (4.0, true), (5.0, false)]);
        rows.probe = vec![Some(0.1), Some(0.2), Some(0.8), Some(0.9), None];
        rows.is_probed = true;
        let found = Boundary::new(&rows, Rule::MinMax, None).unwrap().probe.unwrap();
        assert_eq!((found.n, found.auroc.estimate(), found.difference.estimate()), (4, Some(1.0), Some(-0.25)));
        // One that could read none of them has no figures, and is not passed over.
        rows.probe.fill(None);
        let none = Boundary::new(&rows, Rule::MinMax, None).unwrap().probe.unwrap();
        assert_eq!((none.n, none.auroc.estimate(), none.difference.estimate()), (0, None, None));
        assert!(Boundary::new(&judged(&[(1.0, false), (2.0, true)]), Rule::MinMax, None).unwrap().probe.is_none());
    }

    #[test]
    fn a_cell_says_what_is_known_as_json_does() {
        let known = [r"true", r#""True""#, r#""TRUE""#, "1", r#""1""#];
        assert!(known.iter().all(|json| answerable(Some(json)) == Ok(Some(true))));
        assert!(["false", r#""False""#, r#""0""#].iter().all(|json| answerable(Some(json)) == Ok(Some(false))));
        assert_eq!((answerable(None), answerable(Some("null"))), (Ok(None), Ok(None)));
        assert!(answerable(Some(r#""yes""#)).unwrap_err().contains("found \"yes\""));
    }

    #[test]
    fn a_point_of_few_questions_is_said_once() {
        let coverages = |rows: &[(f64, bool)]| {
            let found = Boundary::new(&judged(rows), Rule::MinMax, None).unwrap();
            found.surest().iter().map(|point| point.coverage).collect::<Vec<_>>()
        };
        assert_eq!(coverages(&[(1.0, false)]), [1.0]);
        assert_eq!(coverages(&[(1.0, false), (2.0, true)]), [0.5, 1.0]);
    }

    #[test]
    fn what_nobody_knows_is_undefined() {
        let unknown = Judged { scores: vec![1.0, 2.0], probe: vec![None; 2], ..Judged::default() };
        let found = Boundary::new(&unknown, Rule::MinMax, None).unwrap();
        assert!(found.f1_unanswerable.estimate().is_none() && found.auroc.estimate().is_none());
        assert_eq!((found.called_unanswerable, found.risk_coverage.len()), (1, 0));
        let one_kind = Boundary::new(&judged(&[(1.0, true), (2.0, true)]), Rule::MinMax, None).unwrap();
        assert!(one_kind.auroc.estimate().is_none() && one_kind.f1_unanswerable.estimate() == Some(0.0));
    }
}
