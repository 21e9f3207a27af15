//! Scores as labels.

use super::collector::Collector;
use super::{ComparedItem, Labels, Reported};
use crate::agreement::{AgreementWeights, Average, ConfusionMatrix, RatingTable, ZeroDivision};
use crate::bias::scale_use::ScaleUse;
use crate::{Error, Estimate, Proportion};

/// How the judge's labels agree with the majority's, in the order of the table.
pub(super) const OF_MAJORITY: [&str; 10] = [
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

/// Of how many rows most raters say the same, where there are several.
pub(super) const ROWS_WITH_A_MAJORITY: &str = "rows_with_a_majority";

/// Which labels the judge gives.
pub(super) const OF_USE: [&str; 3] = ["predicted_mode_share", "predicted_ceiling", "predicted_entropy_bits"];

/// Of several raters the majority is right, and rows without one are left out.
pub(super) fn compare(found: &mut Collector<'_>, rows: &[&ComparedItem], labels: Result<&Labels, &String>) {
    let placed = labels.map_err(String::clone).and_then(|labels| {
        let human =
            |row: &&ComparedItem| row.human.iter().map(|rating| labels.place(rating)).collect::<Result<Vec<_>, _>>();
        let predicted: Vec<usize> = rows.iter().map(|row| labels.place(&row.predicted)).collect::<Result<_, _>>()?;
        Ok((labels, predicted, rows.iter().map(human).collect::<Result<Vec<_>, _>>()?))
    });
    let (labels, predicted, human) = match placed {
        Ok(placed) => placed,
        Err(reason) => return found.all_undefined(&[&OF_MAJORITY[..], &OF_USE[..]].concat(), &reason),
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
        let known = share.estimate().map(|estimate| Reported { estimate, interval: None, p: None, method });
        found.add(ROWS_WITH_A_MAJORITY, known);
    }
    if kept.is_empty() {
        found.all_undefined(&OF_MAJORITY, "no row has a majority of its raters");
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

fn against_majority(found: &mut Collector<'_>, labels: &Labels, truth: &[usize], predicted: &[usize]) {
    let n = truth.len();
    let of_rows = |rows: &[usize]| ConfusionMatrix::new(labels.indices(), &pick(truth, rows), &pick(predicted, rows));
    found.closed("accuracy", |rows| of_rows(rows)?.accuracy().try_into(), n);
    type Of = fn(&ConfusionMatrix<usize>) -> Result<Estimate, Error>;
    // A class that is never predicted has precision 0 here, as in scikit-learn.
    let averages: [(&str, Of); 5] = [
        ("precision_macro", |matrix| Ok(matrix.average(Average::Macro, ZeroDivision::Zero)?.precision)),
        ("recall_macro", |matrix| Ok(matrix.average(Average::Macro, ZeroDivision::Zero)?.recall)),
        ("f1_macro", |matrix| Ok(matrix.average(Average::Macro, ZeroDivision::Zero)?.f1)),
        ("balanced_accuracy", ConfusionMatrix::balanced_accuracy),
        ("matthews", ConfusionMatrix::matthews),
    ];
    for (name, statistic) in averages {
        found.closed(name, |rows| statistic(&of_rows(rows)?), n);
    }
    // By value, so that a grade that does not occur changes nothing.
    let weights = |of: fn(Vec<f64>) -> AgreementWeights| labels.values().map(<[f64]>::to_vec).map(of);
    for (name, weights) in [
        ("cohen_kappa", Some(AgreementWeights::Identity)),
        ("cohen_kappa_linear", weights(AgreementWeights::LinearOf)),
        ("cohen_kappa_quadratic", weights(AgreementWeights::QuadraticOf)),
    ] {
        let Some(weights) = weights else {
            found.undefined(name, "the labels are not numbers");
            continue;
        };
        found.closed(name, |rows| of_rows(rows)?.cohen_kappa(&weights), n);
    }
    let gwet = |rows: &[usize]| {
        let ratings: Vec<_> = rows.iter().map(|&row| [Some(truth[row]), Some(predicted[row])]).collect();
        RatingTable::new(&labels.indices(), &ratings)?.gwet(&AgreementWeights::Identity)
    };
    found.closed("gwet_ac1", gwet, n);
}

/// Of all rows, with a majority or without.
fn scale_use(found: &mut Collector<'_>, labels: &Labels, predicted: &[usize]) {
    let n = predicted.len();
    let uses = |rows: &[usize]| ScaleUse::new(&labels.indices(), &pick(predicted, rows));
    let [mode_share, ceiling, entropy] = OF_USE;
    type Share = fn(&ScaleUse) -> Proportion;
    for (name, share) in [(mode_share, ScaleUse::mode_share as Share), (ceiling, ScaleUse::ceiling)] {
        found.closed(name, |rows| share(&uses(rows)?).try_into(), n);
    }
    found.resample(entropy, None, |rows| Ok(uses(rows)?.entropy_bits()), n);
}
