//! Scores as labels: agreement with the label that more than half of a row's raters gave, and how the judge uses its labels.
//!
//! Rows without such a majority have no right label: they are left out of agreement, counted in `rows_with_a_majority`, and kept where
//! people's labels do not matter (the judge's use of the scale) or are weighed by skill (Dawid and Skene's model). Averages are over all
//! labels of the comparison, whether a group of rows has them or not, so that groups compare.

use super::collector::{Collector, Items};
use super::difference::exchanged;
use super::rank_test::{ROUNDING, rounding_of};
use super::statistic::PValue;
use super::{ComparedItem, Labels, Rating, Reported};
use crate::aggregation::{AggregatedLabels, DawidSkene};
use crate::agreement::{
    AgreementWeights, Average, ConfusionMatrix, McNemarTest, ZeroDivision, clustered_mcnemar, mcnemar,
};
use crate::bias::scale_use::ScaleUse;
use crate::estimate::SHARE;
use crate::groups::take;
use crate::means::mean_of_scale;
use crate::{Error, Estimate, Proportion};

/// How the judge's labels agree with the majority's, in the order of the table.
pub(super) const OF_MAJORITY: [&str; 11] = [
    "accuracy",
    MAJORITY_SHARE,
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

/// The share of the commonest right label: the accuracy of an answer that is always the same (the no-information rate).
pub(super) const MAJORITY_SHARE: &str = "majority_share";

/// Of how many rows the judge gives the label that three raters or more, weighed by their skill, make most probable.
pub(super) const OF_CONSENSUS: &str = "accuracy_dawid_skene";

/// The first judge's share of right labels less the second's, and its kappas less the second's.
pub(super) const OF_TWO: [&str; 4] = [
    "difference_accuracy",
    "difference_cohen_kappa",
    "difference_cohen_kappa_linear",
    "difference_cohen_kappa_quadratic",
];

/// Of how many rows most raters say the same, where there are several.
pub(super) const ROWS_WITH_A_MAJORITY: &str = "rows_with_a_majority";

/// Which labels the judge gives.
pub(super) const OF_USE: [&str; 3] = ["predicted_mode_share", "predicted_ceiling", "predicted_entropy_bits"];

/// Of several raters the majority is right, and rows without one are left out.
pub(super) fn compare(found: &mut Collector<'_>, rows: &[&ComparedItem], labels: Result<&Labels, &String>) {
    let placed = labels.map_err(String::clone).and_then(|labels| {
        let human =
            |row: &&ComparedItem| row.ratings().map(|rating| labels.place(rating)).collect::<Result<Vec<_>, _>>();
        let predicted: Vec<usize> = rows.iter().map(|row| labels.place(&row.predicted)).collect::<Result<_, _>>()?;
        Ok((labels, predicted, rows.iter().map(human).collect::<Result<Vec<_>, _>>()?))
    });
    let has_second = rows.iter().any(|row| row.second.is_some());
    let of_second: &[&str] = if has_second { &OF_TWO } else { &[] };
    let (labels, predicted, human) = match placed {
        Ok(placed) => placed,
        Err(reason) => return found.all_undefined(&[&OF_MAJORITY[..], of_second, &OF_USE[..]].concat(), &reason),
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
        let known = share.estimate().map(|estimate| Reported::alone(estimate, method));
        found.add(ROWS_WITH_A_MAJORITY, known);
    }
    if kept.is_empty() {
        found.all_undefined(&[&OF_MAJORITY[..], of_second].concat(), "no row has a majority of its raters");
    } else {
        let judged = take(&predicted, &kept);
        found.on_rows(&kept, |found| {
            against_majority(found, labels, &truth, &judged);
            if has_second {
                let second = kept
                    .iter()
                    .map(|&row| rows[row].second.as_ref().map(|second| labels.place_of_second(second)).transpose());
                match second.collect::<Result<Option<Vec<usize>>, String>>() {
                    Ok(Some(second)) => {
                        difference(found, &truth, &judged, &second);
                        differences_of_kappa(found, labels, &truth, &judged, &second);
                    }
                    Ok(None) => found.all_undefined(&OF_TWO, "a row has no rating of the second judge"),
                    Err(reason) => found.all_undefined(&OF_TWO, &reason),
                }
            }
        });
    }
    consensus(found, labels, rows, &predicted);
    scale_use(found, labels, &predicted);
}

/// The mean probability, by Dawid and Skene's model, that the judge's label is the right one: the accuracy to expect of it where no label
/// is known for sure. The interval is over rows, what the model found being given.
fn consensus(found: &mut Collector<'_>, labels: &Labels, rows: &[&ComparedItem], predicted: &[usize]) {
    let k = rows.iter().map(|row| row.human.len()).max().unwrap_or(0);
    if k < 3 || !found.starts(OF_CONSENSUS) {
        return;
    }
    let place = |rating: Option<&Option<Rating>>| labels.place(rating?.as_ref()?).ok();
    let rated = |rater: &usize| rows.iter().any(|row| place(row.human.get(*rater)).is_some());
    let (present, absent): (Vec<usize>, Vec<usize>) = (0..k).partition(rated);
    let of_row = |row: &&ComparedItem| present.iter().map(|&rater| place(row.human.get(rater))).collect();
    let ratings: Vec<Vec<Option<usize>>> = rows.iter().map(of_row).collect();
    match DawidSkene::default().fit(&labels.indices(), &ratings) {
        Ok(AggregatedLabels { posteriors, .. }) => {
            let right: Vec<f64> = posteriors.iter().zip(predicted).map(|(of_row, &label)| of_row[label]).collect();
            // The model takes rows as drawn alike.
            if !found.refuses(OF_CONSENSUS) {
                let items = Items::within(&right, SHARE);
                found.mean(OF_CONSENSUS, &items, || Ok(mean_of_scale("accuracy", &right, 1.0)?.within(SHARE)));
            }
            if !absent.is_empty() {
                let places: Vec<String> = absent.iter().map(|rater| (rater + 1).to_string()).collect();
                found.remark(OF_CONSENSUS, &format!("; without raters who gave no label here: {}", places.join(", ")));
            }
        }
        Err(error) => found.undefined(OF_CONSENSUS, &error.to_string()),
    }
}

/// One confusion matrix a set of rows, and what follows from it. Kappas with weights need distances of labels: those of their values, or of
/// their places in an order that was named.
fn against_majority(found: &mut Collector<'_>, labels: &Labels, truth: &[usize], predicted: &[usize]) {
    let (n, k) = (truth.len(), labels.indices().len());
    let cells: Vec<usize> = truth.iter().zip(predicted).map(|(truth, predicted)| truth * k + predicted).collect();
    let of_rows = |rows: &[usize]| ConfusionMatrix::of_cells(k, rows.iter().map(|&row| cells[row]));
    let right: Vec<bool> = truth.iter().zip(predicted).map(|(truth, predicted)| truth == predicted).collect();
    found.share("accuracy", &right);
    found.share_of_commonest(MAJORITY_SHARE, truth);
    type Of<'s> = Box<dyn Fn(&ConfusionMatrix<usize>) -> Result<Estimate, Error> + 's>;
    let [plain, linear, quadratic] = kappa_weights(labels);
    let kappa = |weights: Option<AgreementWeights>| -> Of<'_> {
        Box::new(move |matrix| match &weights {
            Some(weights) => matrix.cohen_kappa(weights),
            None => Err(Error::Undefined { statistic: "a weighted kappa", reason: NO_DISTANCES }),
        })
    };
    // A class that is never predicted has precision 0 here, as in scikit-learn.
    let of_classes = |matrix: &ConfusionMatrix<usize>| matrix.average(Average::Macro, ZeroDivision::Zero);
    let statistics: Vec<(&str, Of<'_>)> = vec![
        ("precision_macro", Box::new(|matrix| Ok(of_classes(matrix)?.precision))),
        ("recall_macro", Box::new(|matrix| Ok(of_classes(matrix)?.recall))),
        ("f1_macro", Box::new(|matrix| Ok(of_classes(matrix)?.f1))),
        ("balanced_accuracy", Box::new(ConfusionMatrix::balanced_accuracy)),
        ("matthews", Box::new(ConfusionMatrix::matthews)),
        ("cohen_kappa", kappa(plain)),
        ("cohen_kappa_linear", kappa(linear)),
        ("cohen_kappa_quadratic", kappa(quadratic)),
        ("gwet_ac1", Box::new(|matrix| matrix.gwet(&AgreementWeights::Identity))),
    ];
    found.closed_together(of_rows, statistics, n);
    let rounding = kappa_rounding(labels);
    for (name, weights) in OF_MAJORITY[7..10].iter().zip(kappa_weights(labels)) {
        if let Some(weights) = weights.and_then(|weights| weights.matrix(k).ok()) {
            found.retest(name, |test| test.kappa(k, (&weights, rounding), truth, predicted));
        }
    }
}

const NO_DISTANCES: &str = "the labels are not numbers, nor named in their order";

/// Of the plain, the linear and the quadratic kappa: by value, so that a grade that does not occur changes nothing; labels named in their
/// order count by their places.
fn kappa_weights(labels: &Labels) -> [Option<AgreementWeights>; 3] {
    let of = |weights: fn(Vec<f64>) -> AgreementWeights| labels.values().map(<[f64]>::to_vec).map(weights);
    [Some(AgreementWeights::Identity), of(AgreementWeights::LinearOf), of(AgreementWeights::QuadraticOf)]
}

/// How far rounding may part equal kappas of these.
fn kappa_rounding(labels: &Labels) -> f64 {
    labels.values().map_or(ROUNDING, rounding_of)
}

/// Which of two judges agrees better with people beyond chance.
fn differences_of_kappa(
    found: &mut Collector<'_>,
    labels: &Labels,
    truth: &[usize],
    first: &[usize],
    second: &[usize],
) {
    let k = labels.indices().len();
    let cells: Vec<usize> =
        [first, second].concat().iter().zip(truth.repeat(2)).map(|(said, truth)| truth * k + said).collect();
    let matrix = |rows: &[usize]| ConfusionMatrix::of_cells(k, rows.iter().map(|&row| cells[row]));
    let rounding = kappa_rounding(labels);
    for (name, weights) in OF_TWO[1..].iter().zip(kappa_weights(labels)) {
        match weights {
            Some(weights) => {
                exchanged(found, name, &cells, rounding, |rows| Ok(matrix(rows).cohen_kappa(&weights)?.estimate));
            }
            None => found.undefined(name, NO_DISTANCES),
        }
    }
}

/// Which of two judges is right more often, by McNemar's test.
fn difference(found: &mut Collector<'_>, truth: &[usize], first: &[usize], second: &[usize]) {
    let right =
        |judged: &[usize]| -> Vec<bool> { truth.iter().zip(judged).map(|(truth, judged)| truth == judged).collect() };
    let (first, second) = (right(first), right(second));
    let test = match found.clusters() {
        Some(clusters) => clustered_mcnemar(&first, &second, clusters)
            .map(|test| PValue::of_clusters(test.p_value, "McNemar, of clusters")),
        None => {
            let alone =
                |one: &[bool], other: &[bool]| one.iter().zip(other).filter(|(one, other)| **one && !**other).count();
            mcnemar(alone(&first, &second), alone(&second, &first), McNemarTest::Exact)
                .map(|test| PValue::of_rows(test.p_value, "McNemar, exact"))
        }
    };
    let share =
        |right: &[bool], rows: &[usize]| rows.iter().filter(|&&row| right[row]).count() as f64 / rows.len() as f64;
    let gain = |(&one, &other): (&bool, &bool)| f64::from(i8::from(one) - i8::from(other));
    let gains: Vec<f64> = first.iter().zip(&second).map(gain).collect();
    let p = test.ok();
    let name = OF_TWO[0];
    if !found.mean_of_clusters(name, &Items::differences(&gains, [-1.0, 1.0], p)) {
        found.resample(name, p, |rows| Ok(share(&first, rows) - share(&second, rows)), truth.len());
    }
}

/// Of all rows, with a majority or without.
fn scale_use(found: &mut Collector<'_>, labels: &Labels, predicted: &[usize]) {
    let n = predicted.len();
    let k = labels.indices().len();
    let uses = |rows: &[usize]| ScaleUse::of_places(k, rows.iter().map(|&row| predicted[row]));
    let [mode_share, ceiling, entropy] = OF_USE;
    // The mode is one of the sample: its share is no mean of rows.
    found.closed(mode_share, |rows| uses(rows).mode_share().try_into(), n);
    let top = labels.indices().last().copied();
    found.share(ceiling, &predicted.iter().map(|&label| Some(label) == top).collect::<Vec<_>>());
    found.resample(entropy, None, |rows| Ok(uses(rows).entropy_bits()), n);
}
