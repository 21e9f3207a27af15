//! Scores as labels, and raters among themselves.

use std::collections::BTreeSet;

use anyhow::Result;
use judge_examples::console::usage;
use judge_metrics::Error;
use judge_metrics::agreement::{
    AgreementWeights, Average, ConfusionMatrix, Measurement, RatingTable, ZeroDivision, krippendorff_alpha,
};
use judge_metrics::bias::scale_use::ScaleUse;
use judge_metrics::preference::Proportion;

use crate::pairs::{Pair, Pairs, Score};
use crate::statistics::{Found, Known, intraclass};

/// How the judge's labels agree with the majority's, in the order of the table.
const OF_MAJORITY: [&str; 10] = [
    "accuracy",
    "precision_macro",
    "recall_macro",
    "f1_macro",
    "balanced_accuracy",
    "matthews",
    "cohen_kappa",
    "cohen_kappa_linear",
    "cohen_kappa_quadratic",
    "gwet_ac1",
];

/// Which labels the judge gives.
const OF_USE: [&str; 3] = ["predicted_mode_share", "predicted_ceiling", "predicted_entropy_bits"];

/// Whole numbers and texts are labels up to this many different ones.
const MAX_LABELS: usize = 20;

/// All labels of a file, in their order, the same for every group of its rows.
pub struct Labels {
    scores: Vec<Score>,
    /// What the labels are worth, where they are numbers or texts of numbers.
    values: Option<Vec<f64>>,
}

impl Labels {
    /// Those that `--labels` names.
    pub fn named(names: &[String], numeric: bool) -> Result<Self> {
        let mut scores = Vec::new();
        for name in names {
            let score = match number(name) {
                Some(value) if numeric => Score::Number(value),
                None if numeric => return Err(usage(format!("--labels: {name:?} is no number, but the scores are"))),
                _ => Score::Text(name.clone()),
            };
            if scores.contains(&score) {
                return Err(usage(format!("--labels names {name} twice")));
            }
            scores.push(score);
        }
        if scores.len() < 2 {
            return Err(usage("--labels must name at least two"));
        }
        Ok(Self::new(scores))
    }

    /// Those that occur, or why scores are no labels.
    pub fn occurring(pairs: &Pairs) -> Result<Self, String> {
        let mut names = BTreeSet::new();
        let mut scores = Vec::new();
        for score in pairs.rows.iter().flat_map(|row| row.human.iter().chain([&row.predicted])) {
            if let Some(value) = score.number().filter(|value| value.fract() != 0.0) {
                return Err(format!("{value} is no whole number; --labels names what is a label"));
            }
            if names.insert(score.label()) {
                scores.push(score.clone());
            }
            if names.len() > MAX_LABELS {
                return Err(format!("more than {MAX_LABELS} different scores; --labels names what is a label"));
            }
        }
        if scores.len() < 2 {
            return Err(format!("only one label occurs: {}", names.into_iter().collect::<String>()));
        }
        let mut labels = Self::new(scores);
        match &labels.values {
            Some(values) => {
                let mut order: Vec<usize> = (0..values.len()).collect();
                order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
                labels = Self::new(order.iter().map(|&label| labels.scores[label].clone()).collect());
            }
            None => labels.scores.sort_by_key(Score::label),
        }
        Ok(labels)
    }

    fn new(scores: Vec<Score>) -> Self {
        let values: Option<Vec<f64>> =
            scores.iter().map(|score| score.number().or_else(|| number(&score.label()))).collect();
        // "1" and "1.0" are two texts of one value: no distance is then known.
        let apart = |values: &Vec<f64>| (1..values.len()).all(|i| !values[..i].contains(&values[i]));
        Self { values: values.filter(apart), scores }
    }

    fn indices(&self) -> Vec<usize> {
        (0..self.scores.len()).collect()
    }

    fn place(&self, score: &Score) -> Result<usize, String> {
        self.scores.iter().position(|known| known == score).ok_or_else(|| {
            let known: Vec<String> = self.scores.iter().map(Score::label).collect();
            format!("a score is {}, not one of the labels {}", score.label(), known.join(", "))
        })
    }
}

/// A number that text spells, with none of the words for infinity and the like.
fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|value: &f64| value.is_finite()).map(|value| value + 0.0)
}

/// Of several raters the majority is right, and rows without one are left out.
pub fn labels(found: &mut Found<'_>, rows: &[&Pair], labels: Result<&Labels, &String>) {
    let undefined = |found: &mut Found<'_>, names: &[&str], reason: &str| {
        names.iter().for_each(|name| found.undefined(name, reason.to_owned()));
    };
    let placed = labels.map_err(String::clone).and_then(|labels| {
        let human = |row: &&Pair| row.human.iter().map(|score| labels.place(score)).collect::<Result<Vec<_>, _>>();
        let predicted: Vec<usize> = rows.iter().map(|row| labels.place(&row.predicted)).collect::<Result<_, _>>()?;
        Ok((labels, predicted, rows.iter().map(human).collect::<Result<Vec<_>, _>>()?))
    });
    let (labels, predicted, human) = match placed {
        Ok(placed) => placed,
        Err(reason) => return undefined(found, &[&OF_MAJORITY[..], &OF_USE[..]].concat(), &reason),
    };
    let majority = |votes: &Vec<usize>| {
        let count = |label: usize| votes.iter().filter(|&&vote| vote == label).count();
        votes.iter().copied().find(|&label| 2 * count(label) > votes.len())
    };
    let (kept, truth): (Vec<usize>, Vec<usize>) =
        human.iter().enumerate().filter_map(|(row, votes)| Some((row, majority(votes)?))).unzip();
    if human.iter().any(|votes| votes.len() > 1) {
        let share = Proportion { count: kept.len(), n: rows.len() };
        let method = "of raters; the others have no label".to_owned();
        let known = share.estimate().map(|estimate| Known { estimate, interval: None, p: None, method });
        found.add("rows_with_a_majority", known);
    }
    if kept.is_empty() {
        undefined(found, &OF_MAJORITY, "no row has a majority of its raters");
    } else {
        let judged: Vec<usize> = kept.iter().map(|&row| predicted[row]).collect();
        let clusters = found.clusters.take();
        found.clusters = clusters.as_ref().map(|clusters| kept.iter().map(|&row| clusters[row]).collect());
        against_majority(found, labels, &truth, &judged);
        found.clusters = clusters;
    }
    scale_use(found, labels, &predicted);
}

fn pick(column: &[usize], rows: &[usize]) -> Vec<usize> {
    rows.iter().map(|&row| column[row]).collect()
}

fn against_majority(found: &mut Found<'_>, labels: &Labels, truth: &[usize], predicted: &[usize]) {
    let (n, level) = (truth.len(), found.level());
    let all: Vec<usize> = (0..n).collect();
    let of_rows = |rows: &[usize]| ConfusionMatrix::new(labels.indices(), &pick(truth, rows), &pick(predicted, rows));
    let known = of_rows(&all).and_then(|matrix| {
        let (estimate, interval) = (matrix.accuracy().estimate()?, matrix.accuracy().wilson(level)?);
        Ok(Known { estimate, interval: Some(interval), p: None, method: "Wilson".to_owned() })
    });
    found.closed("accuracy", known, |rows| of_rows(rows)?.accuracy().estimate(), n);
    type Of = fn(&ConfusionMatrix<usize>) -> Result<f64, Error>;
    // A class that is never predicted has precision 0 here, as in scikit-learn.
    let averages: [(&str, Of); 5] = [
        ("precision_macro", |matrix| Ok(matrix.average(Average::Macro, ZeroDivision::Zero)?.precision)),
        ("recall_macro", |matrix| Ok(matrix.average(Average::Macro, ZeroDivision::Zero)?.recall)),
        ("f1_macro", |matrix| Ok(matrix.average(Average::Macro, ZeroDivision::Zero)?.f1)),
        ("balanced_accuracy", ConfusionMatrix::balanced_accuracy),
        ("matthews", ConfusionMatrix::matthews),
    ];
    for (name, statistic) in averages {
        found.resample(name, None, |rows| statistic(&of_rows(rows)?), n);
    }
    // By value, so that a grade that does not occur changes nothing.
    let weights = |of: fn(Vec<f64>) -> AgreementWeights| labels.values.clone().map(of);
    for (name, weights) in [
        ("cohen_kappa", Some(AgreementWeights::Identity)),
        ("cohen_kappa_linear", weights(AgreementWeights::LinearOf)),
        ("cohen_kappa_quadratic", weights(AgreementWeights::QuadraticOf)),
    ] {
        let Some(weights) = weights else {
            found.undefined(name, "the labels are not numbers".to_owned());
            continue;
        };
        let known = of_rows(&all).and_then(|matrix| matrix.cohen_kappa(&weights)).and_then(|kappa| {
            let (p, method) = (kappa.p_value().ok(), "large sample".to_owned());
            Ok(Known { estimate: kappa.estimate, interval: Some(kappa.interval(level)?), p, method })
        });
        found.closed(name, known, |rows| Ok(of_rows(rows)?.cohen_kappa(&weights)?.estimate), n);
    }
    let gwet = |rows: &[usize]| {
        let column = |column: &[usize]| rows.iter().map(|&row| Some(column[row])).collect::<Vec<_>>();
        RatingTable::new(&labels.indices(), &[column(truth), column(predicted)])?.gwet(&AgreementWeights::Identity)
    };
    let known = gwet(&all).and_then(|ac1| {
        let (p, method) = (ac1.p_value().ok(), "Student t".to_owned());
        Ok(Known { estimate: ac1.estimate, interval: Some(ac1.interval(level)?), p, method })
    });
    found.closed("gwet_ac1", known, |rows| Ok(gwet(rows)?.estimate), n);
}

/// Of all rows, with a majority or without.
fn scale_use(found: &mut Found<'_>, labels: &Labels, predicted: &[usize]) {
    let (n, level) = (predicted.len(), found.level());
    let all: Vec<usize> = (0..n).collect();
    let uses = |rows: &[usize]| ScaleUse::new(&labels.indices(), &pick(predicted, rows));
    let [mode_share, ceiling, entropy] = OF_USE;
    type Share = fn(&ScaleUse) -> Proportion;
    for (name, share) in [(mode_share, ScaleUse::mode_share as Share), (ceiling, ScaleUse::ceiling)] {
        let known = uses(&all).and_then(|uses| {
            let (estimate, interval) = (share(&uses).estimate()?, share(&uses).wilson(level)?);
            Ok(Known { estimate, interval: Some(interval), p: None, method: "Wilson".to_owned() })
        });
        found.closed(name, known, |rows| share(&uses(rows)?).estimate(), n);
    }
    found.resample(entropy, None, |rows| Ok(uses(rows)?.entropy_bits()), n);
}
/// People among themselves: the ceiling of any judge.
pub fn raters(found: &mut Found<'_>, rows: &[&Pair], numeric: bool) {
    let k = rows.iter().map(|row| row.human.len()).max().unwrap_or(0);
    if k < 2 {
        return;
    }
    let n = rows.len();
    if numeric {
        let kinds =
            [("nominal", Measurement::Nominal), ("ordinal", Measurement::Ordinal), ("interval", Measurement::Interval)];
        for (name, measurement) in kinds {
            let alpha = |drawn: &[usize]| {
                let rater = |rater: usize| -> Vec<Option<f64>> {
                    drawn.iter().map(|&row| rows[row].human.get(rater)?.number()).collect()
                };
                krippendorff_alpha(&(0..k).map(rater).collect::<Vec<_>>(), measurement)
            };
            found.resample(&format!("human_krippendorff_alpha_{name}"), None, alpha, n);
        }
        let complete: Option<Vec<Vec<f64>>> = rows
            .iter()
            .map(|row| (row.human.len() == k).then(|| row.human.iter().filter_map(|score| score.number()).collect()))
            .collect();
        if let Some(ratings) = complete {
            intraclass(found, "human_", &ratings);
        }
    } else {
        let mut names: Vec<String> = rows.iter().flat_map(|row| &row.human).map(Score::label).collect();
        names.sort();
        names.dedup();
        let place = |score: &Score| names.binary_search(&score.label()).ok();
        let votes: Vec<Vec<Option<usize>>> = rows.iter().map(|row| row.human.iter().map(place).collect()).collect();
        let indices: Vec<usize> = (0..names.len()).collect();
        let fleiss = |drawn: &[usize]| {
            let rater = |rater: usize| -> Vec<Option<usize>> {
                drawn.iter().map(|&row| votes[row].get(rater).copied().flatten()).collect()
            };
            Ok(RatingTable::new(&indices, &(0..k).map(rater).collect::<Vec<_>>())?.fleiss_kappa()?.estimate)
        };
        found.resample("human_fleiss_kappa", None, fleiss, n);
    }
}
