//! Scores as labels.

use super::collector::Collector;
use super::{ComparedItem, Estimate, Labels};
use crate::Error;
use crate::agreement::{AgreementWeights, Average, ConfusionMatrix, RatingTable, ZeroDivision};
use crate::bias::scale_use::ScaleUse;
use crate::preference::Proportion;

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
        let known = share.estimate().map(|estimate| Estimate { estimate, interval: None, p: None, method });
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
    let (n, level) = (truth.len(), found.level());
    let all: Vec<usize> = (0..n).collect();
    let of_rows = |rows: &[usize]| ConfusionMatrix::new(labels.indices(), &pick(truth, rows), &pick(predicted, rows));
    let known = of_rows(&all).and_then(|matrix| {
        let (estimate, interval) = (matrix.accuracy().estimate()?, matrix.accuracy().wilson(level)?);
        Ok(Estimate { estimate, interval: Some(interval), p: None, method: "Wilson".to_owned() })
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
        let known = of_rows(&all).and_then(|matrix| matrix.cohen_kappa(&weights)).and_then(|kappa| {
            let (p, method) = (kappa.p_value().ok(), "large sample".to_owned());
            Ok(Estimate { estimate: kappa.estimate, interval: Some(kappa.interval(level)?), p, method })
        });
        found.closed(name, known, |rows| Ok(of_rows(rows)?.cohen_kappa(&weights)?.estimate), n);
    }
    let gwet = |rows: &[usize]| {
        let column = |column: &[usize]| rows.iter().map(|&row| Some(column[row])).collect::<Vec<_>>();
        RatingTable::new(&labels.indices(), &[column(truth), column(predicted)])?.gwet(&AgreementWeights::Identity)
    };
    let known = gwet(&all).and_then(|ac1| {
        let (p, method) = (ac1.p_value().ok(), "Student t".to_owned());
        Ok(Estimate { estimate: ac1.estimate, interval: Some(ac1.interval(level)?), p, method })
    });
    found.closed("gwet_ac1", known, |rows| Ok(gwet(rows)?.estimate), n);
}

/// Of all rows, with a majority or without.
fn scale_use(found: &mut Collector<'_>, labels: &Labels, predicted: &[usize]) {
    let (n, level) = (predicted.len(), found.level());
    let all: Vec<usize> = (0..n).collect();
    let uses = |rows: &[usize]| ScaleUse::new(&labels.indices(), &pick(predicted, rows));
    let [mode_share, ceiling, entropy] = OF_USE;
    type Share = fn(&ScaleUse) -> Proportion;
    for (name, share) in [(mode_share, ScaleUse::mode_share as Share), (ceiling, ScaleUse::ceiling)] {
        let known = uses(&all).and_then(|uses| {
            let (estimate, interval) = (share(&uses).estimate()?, share(&uses).wilson(level)?);
            Ok(Estimate { estimate, interval: Some(interval), p: None, method: "Wilson".to_owned() })
        });
        found.closed(name, known, |rows| share(&uses(rows)?).estimate(), n);
    }
    found.resample(entropy, None, |rows| Ok(uses(rows)?.entropy_bits()), n);
}
