//! Scores as labels, and raters among themselves.

use std::collections::BTreeSet;

use judge_metrics::Error;
use judge_metrics::agreement::{
    AgreementWeights, Average, ConfusionMatrix, Measurement, RatingTable, ZeroDivision, krippendorff_alpha,
};
use judge_metrics::bias::scale_use::ScaleUse;
use judge_metrics::preference::Proportion;

use crate::pairs::Pair;
use crate::statistics::{Found, Known, Settings, intraclass};

/// Label statistics, in the order of the table.
const OF_LABELS: [&str; 13] = [
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
    "predicted_mode_share",
    "predicted_ceiling",
    "predicted_entropy_bits",
];

/// Whole numbers are labels up to this many different ones.
const MAX_LABELS: usize = 20;

/// Where scores are labels: texts, whole numbers, or what `--labels` names. Of several raters the majority is right, and rows without
/// one are left out.
pub fn labels(found: &mut Found<'_>, rows: &[&Pair], settings: &Settings<'_>) {
    let mut kept = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        let votes: Vec<String> = row.human.iter().map(|score| score.label()).collect();
        let count = |label: &String| votes.iter().filter(|vote| *vote == label).count();
        if let Some(majority) = votes.iter().find(|label| 2 * count(label) > votes.len()) {
            kept.push((index, majority.clone(), row.predicted.label()));
        }
    }
    if rows.iter().any(|row| row.human.len() > 1) {
        let share = Proportion { count: kept.len(), n: rows.len() };
        found.add(
            "rows_with_a_majority",
            share.estimate().map(|estimate| Known {
                estimate,
                interval: None,
                p: None,
                method: "of raters; the others have no label".to_owned(),
            }),
        );
    }
    let names: Vec<String> = match settings.labels {
        Some(labels) => labels.to_vec(),
        None => {
            let whole = |label: &String| label.parse::<f64>().map_or(true, |number| number.fract() == 0.0);
            let occurring: BTreeSet<String> =
                kept.iter().flat_map(|(_, human, predicted)| [human.clone(), predicted.clone()]).collect();
            if !occurring.iter().all(whole) || occurring.len() > MAX_LABELS {
                return;
            }
            let mut names: Vec<String> = occurring.into_iter().collect();
            let number = |label: &String| label.parse::<f64>().unwrap_or(f64::NAN);
            if names.len() < 2 {
                let reason = format!("only one label occurs: {}", names.concat());
                return OF_LABELS.iter().for_each(|name| found.undefined(name, reason.clone()));
            }
            names.sort_by(|a, b| number(a).total_cmp(&number(b)).then_with(|| a.cmp(b)));
            names
        }
    };
    let truth: Vec<String> = kept.iter().map(|(_, human, _)| human.clone()).collect();
    let predicted: Vec<String> = kept.iter().map(|(.., predicted)| predicted.clone()).collect();
    let matrix = match ConfusionMatrix::new(names.clone(), &truth, &predicted) {
        Ok(matrix) => matrix,
        Err(error) => return OF_LABELS.iter().for_each(|name| found.undefined(name, error.to_string())),
    };
    let clusters = found.clusters.take();
    found.clusters = clusters.as_ref().map(|clusters| kept.iter().map(|&(index, ..)| clusters[index]).collect());
    let n = kept.len();
    let of_rows = |rows: &[usize]| {
        let pick = |column: &[String]| rows.iter().map(|&row| column[row].clone()).collect::<Vec<_>>();
        ConfusionMatrix::new(names.clone(), &pick(&truth), &pick(&predicted))
    };
    let level = found.level();
    let known = matrix.accuracy().estimate().and_then(|estimate| {
        Ok(Known { estimate, interval: Some(matrix.accuracy().wilson(level)?), p: None, method: "Wilson".to_owned() })
    });
    found.closed("accuracy", known, |rows| of_rows(rows)?.accuracy().estimate(), n);
    type Of = fn(&ConfusionMatrix<String>) -> Result<f64, Error>;
    // A class that is never predicted has precision 0 here, as in scikit-learn.
    let averages: [(&str, Of); 5] = [
        ("precision_macro", |matrix| Ok(matrix.average(Average::Macro, ZeroDivision::Zero)?.precision.unwrap_or(0.0))),
        ("recall_macro", |matrix| Ok(matrix.average(Average::Macro, ZeroDivision::Zero)?.recall.unwrap_or(0.0))),
        ("f1_macro", |matrix| Ok(matrix.average(Average::Macro, ZeroDivision::Zero)?.f1.unwrap_or(0.0))),
        ("balanced_accuracy", ConfusionMatrix::balanced_accuracy),
        ("matthews", ConfusionMatrix::matthews),
    ];
    for (name, statistic) in averages {
        found.resample(name, None, |rows| statistic(&of_rows(rows)?), n);
    }
    // By value where labels are numbers, so that a grade that does not occur changes nothing.
    let values: Option<Vec<f64>> = names.iter().map(|name| name.parse().ok()).collect();
    let mut kappas = vec![("cohen_kappa", AgreementWeights::Identity)];
    if let Some(values) = values {
        kappas.push(("cohen_kappa_linear", AgreementWeights::LinearOf(values.clone())));
        kappas.push(("cohen_kappa_quadratic", AgreementWeights::QuadraticOf(values)));
    }
    for (name, weights) in &kappas {
        let known = matrix.cohen_kappa(weights).and_then(|kappa| {
            let p = kappa.p_value().ok();
            Ok(Known {
                estimate: kappa.estimate,
                interval: Some(kappa.interval(level)?),
                p,
                method: "large sample".to_owned(),
            })
        });
        found.closed(name, known, |rows| Ok(of_rows(rows)?.cohen_kappa(weights)?.estimate), n);
    }
    let gwet = |rows: &[usize]| {
        let pick = |column: &[String]| rows.iter().map(|&row| Some(column[row].clone())).collect::<Vec<_>>();
        RatingTable::new(&names, &[pick(&truth), pick(&predicted)])?.gwet(&AgreementWeights::Identity)
    };
    let all: Vec<usize> = (0..n).collect();
    let known = gwet(&all).and_then(|ac1| {
        let p = ac1.p_value().ok();
        Ok(Known { estimate: ac1.estimate, interval: Some(ac1.interval(level)?), p, method: "Student t".to_owned() })
    });
    found.closed("gwet_ac1", known, |rows| Ok(gwet(rows)?.estimate), n);
    let uses =
        |rows: &[usize]| ScaleUse::new(&names, &rows.iter().map(|&row| predicted[row].clone()).collect::<Vec<_>>());
    type Share = fn(&ScaleUse) -> Proportion;
    let shares: [(&str, Share); 2] =
        [("predicted_mode_share", ScaleUse::mode_share), ("predicted_ceiling", ScaleUse::ceiling)];
    for (name, share) in shares {
        let known = uses(&all).and_then(|uses| {
            let (estimate, interval) = (share(&uses).estimate()?, share(&uses).wilson(level)?);
            Ok(Known { estimate, interval: Some(interval), p: None, method: "Wilson".to_owned() })
        });
        found.closed(name, known, |rows| share(&uses(rows)?).estimate(), n);
    }
    found.resample("predicted_entropy_bits", None, |rows| Ok(uses(rows)?.entropy_bits()), n);
    found.clusters = clusters;
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
        let names: BTreeSet<String> = rows.iter().flat_map(|row| &row.human).map(|score| score.label()).collect();
        let names: Vec<String> = names.into_iter().collect();
        let fleiss = |drawn: &[usize]| {
            let rater = |rater: usize| -> Vec<Option<String>> {
                drawn.iter().map(|&row| rows[row].human.get(rater).map(|score| score.label())).collect()
            };
            Ok(RatingTable::new(&names, &(0..k).map(rater).collect::<Vec<_>>())?.fleiss_kappa()?.estimate)
        };
        found.resample("human_fleiss_kappa", None, fleiss, n);
    }
}
