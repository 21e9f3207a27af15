//! Intraclass correlations with missing ratings, against the whole covariance matrix and statsmodels' MixedLM
//! (`scripts/metrics/mixed_icc_fixtures.py`), and by simulation.

use judge_metrics::Error;
use judge_metrics::agreement::{IntraclassCorrelations, IntraclassForm, MixedRatings};
use judge_metrics::comparison::{ComparedItem, Comparison, ComparisonSettings, Comparisons, Rating};

use crate::draw::Draw;
use crate::fixtures::{fixture, list};

const FORMS: [(&str, IntraclassForm); 3] = [
    ("one_way", IntraclassForm::OneWay),
    ("agreement", IntraclassForm::Agreement),
    ("consistency", IntraclassForm::Consistency),
];

type Ratings = Vec<Vec<Option<f64>>>;

#[test]
fn they_equal_the_whole_likelihood() {
    let fixture = fixture("mixed_icc");
    for case in list(&fixture["cases"]) {
        let ratings: Ratings = serde_json::from_value(case["ratings"].clone()).unwrap();
        let model = MixedRatings::new(&ratings).unwrap();
        // Neither unit nor level counts.
        let other = |row: &Vec<Option<f64>>| row.iter().map(|rating| Some(1e150 * ((*rating)? + 20.0))).collect();
        let of_other = MixedRatings::new(&ratings.iter().map(other).collect::<Ratings>()).unwrap();
        for (name, form) in FORMS {
            let found = model.intraclass(form, 0.95).unwrap();
            let ours = [found.estimate, found.interval.low, found.interval.high];
            for (ours, what) in ours.into_iter().zip(["estimate", "low", "high"]) {
                let expected = case["found"][name][what].as_f64().unwrap();
                assert!((ours - expected).abs() < 1e-5, "{name}, {what}: {ours}, not {expected}");
            }
            assert!((of_other.intraclass(form, 0.95).unwrap().estimate - found.estimate).abs() < 1e-5);
        }
    }
    // Without gaps they are those of the mean squares.
    let ratings: Ratings = serde_json::from_value(fixture["cases"][0]["ratings"].clone()).unwrap();
    let complete: Vec<Vec<f64>> = ratings.iter().map(|row| row.iter().copied().map(Option::unwrap).collect()).collect();
    let squares = IntraclassCorrelations::new(&complete).unwrap();
    let model = MixedRatings::new(&ratings).unwrap();
    let expected = [squares.one_way(), squares.agreement(), squares.consistency()];
    for ((_, form), expected) in FORMS.into_iter().zip(expected) {
        assert!((model.intraclass(form, 0.95).unwrap().estimate - expected.unwrap().estimate).abs() < 1e-6);
    }
}

/// Normal, nearly.
fn bell(draw: &mut Draw) -> f64 {
    (0..12).map(|_| draw.uniform()).sum::<f64>() - 6.0
}

#[test]
fn intervals_hold_the_truth() {
    const TRIALS: usize = 200;
    let mut draw = Draw::new(11);
    let mut held = [0; 2];
    for _ in 0..TRIALS {
        let levels: Vec<f64> = (0..4).map(|_| 0.3 * bell(&mut draw)).collect();
        let ratings: Ratings = (0..40)
            .map(|_| {
                let subject = bell(&mut draw);
                let mut rate = |level: &f64| {
                    let rating = 3.0 + subject + level + 0.8 * bell(&mut draw);
                    (draw.uniform() > 0.3).then_some(rating)
                };
                levels.iter().map(&mut rate).collect()
            })
            .collect();
        let model = MixedRatings::new(&ratings).unwrap();
        // What raters differ in counts against ICC(1), and so is taken off here.
        let level =
            |row: &Vec<Option<f64>>| row.iter().zip(&levels).map(|(rating, level)| Some((*rating)? - level)).collect();
        let without = MixedRatings::new(&ratings.iter().map(level).collect::<Ratings>()).unwrap();
        let found =
            [without.intraclass(IntraclassForm::OneWay, 0.95), model.intraclass(IntraclassForm::Consistency, 0.95)];
        for (held, found) in held.iter_mut().zip(found) {
            let interval = found.unwrap().interval;
            *held += usize::from(interval.low <= 1.0 / 1.64 && 1.0 / 1.64 <= interval.high);
        }
    }
    assert!(held.iter().all(|held| (180..=199).contains(held)), "{held:?} of {TRIALS}");
}

#[test]
fn what_the_model_does_not_define_is_refused() {
    let some =
        |rows: &[&[f64]]| -> Ratings { rows.iter().map(|row| row.iter().copied().map(Some).collect()).collect() };
    let reason = |ratings: Ratings| MixedRatings::new(&ratings).unwrap_err();
    assert_eq!(reason(some(&[&[1.0, 2.0]])), Error::TooFewItems { required: 2, found: 1 });
    assert_eq!(reason(some(&[&[1.0], &[2.0]])), Error::TooFewItems { required: 2, found: 1 });
    assert!(matches!(reason(some(&[&[1.0, 2.0], &[2.0]])), Error::LengthMismatch { .. }));
    assert!(matches!(reason(some(&[&[1.0, f64::NAN], &[2.0, 3.0]])), Error::InRow { row: 0, .. }));
    assert!(reason(some(&[&[1.0, 1.0], &[1.0, 1.0]])).to_string().contains("one value"));
    assert!(reason(vec![vec![Some(1.0), None], vec![None, Some(2.0)]]).to_string().contains("no subject has two"));
    let exact = MixedRatings::new(&some(&[&[1.0, 1.0], &[2.0, 2.0], &[3.0, 3.0]])).unwrap();
    assert!(exact.intraclass(IntraclassForm::OneWay, 0.95).unwrap_err().to_string().contains("agree exactly"));
    assert!(matches!(exact.intraclass(IntraclassForm::OneWay, 1.0), Err(Error::LevelOutOfRange { .. })));
}

/// A report has them where a rating is missing, and no interval where rows come in clusters.
#[test]
fn a_report_takes_them_where_a_rating_is_missing() {
    let rated = |clusters: bool| -> Comparisons {
        let row = |i: u32| {
            let given = |rater: u32| (i % 4 != rater).then(|| Rating::Number(f64::from(i % 7 + (i * rater) % 3)));
            let cluster = clusters.then(|| (i / 3).to_string());
            ComparedItem {
                human: (0..3).map(given).collect(),
                cluster,
                ..ComparedItem::new(Rating::Number(f64::from(i % 7)), [])
            }
        };
        let all: Vec<usize> = (0..30).collect();
        let only = Some(vec!["human_icc_1".to_owned(), "human_icc_a1".to_owned(), "human_icc_c1".to_owned()]);
        let settings = ComparisonSettings { only, ..ComparisonSettings::default() };
        Comparison::new((0..30).map(row).collect(), settings).unwrap().statistics(&all)
    };
    let (plain, clustered) = (rated(false), rated(true));
    assert_eq!(plain.statistics.len(), 3, "{plain:?}");
    for ((name, known), (_, of_clusters)) in plain.statistics.iter().zip(&clustered.statistics) {
        let (known, of_clusters) = (known.defined().unwrap(), of_clusters.defined().unwrap());
        assert!(
            known.method.contains("REML") && known.interval.is_some_and(|interval| interval.low < known.estimate),
            "{name}"
        );
        assert_eq!((of_clusters.estimate, of_clusters.interval), (known.estimate, None));
    }
}
