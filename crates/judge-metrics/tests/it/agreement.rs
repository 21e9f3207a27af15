//! Agreement against scikit-learn, statsmodels, krippendorff, irrCAC and pingouin (`scripts/metrics/agreement_fixtures.py`), what it
//! refuses, and the published figures of real judges.

use judge_metrics::agreement::{
    AgreementWeights, Average, ConfusionMatrix, IntraclassCorrelations, Measurement, RatingTable, ZeroDivision,
    krippendorff_alpha,
};
use judge_metrics::{Error, NullDistribution};
use serde_json::Value;

use crate::fixtures::{fixture, list, numbers};
use crate::published::json as published;

fn integers(value: &Value) -> Vec<i64> {
    list(value).iter().map(|number| number.as_i64().unwrap()).collect()
}

#[track_caller]
fn close(ours: f64, expected: &Value) {
    let expected = expected.as_f64().unwrap();
    assert!((ours - expected).abs() <= 1e-10 * expected.abs() + 1e-15, "{ours}, not {expected}");
}

#[test]
fn labels_equal_scikit_learn_and_statsmodels() {
    for case in list(&fixture("agreement")["labels"]) {
        let (labels, values) = (integers(&case["labels"]), numbers(&case["values"]));
        let matrix =
            ConfusionMatrix::new(labels.clone(), &integers(&case["truth"]), &integers(&case["predicted"])).unwrap();
        for (i, row) in list(&case["matrix"]).iter().enumerate() {
            for (j, count) in integers(row).into_iter().enumerate() {
                assert_eq!(matrix.count(i, j), Some(count as u64));
            }
        }
        close(matrix.accuracy().estimate().unwrap(), &case["accuracy"]);
        let spread = &case["spread"];
        let balanced = matrix.balanced_accuracy().unwrap();
        close(balanced.estimate, &case["balanced"]);
        close(balanced.standard_error().unwrap(), &spread["balanced"]);
        match matrix.matthews() {
            Ok(ours) => {
                close(ours.estimate, &case["matthews"]);
                close(ours.standard_error().unwrap(), &spread["matthews"]);
                let (fisher, error) = (ours.estimate.atanh(), ours.standard_error().unwrap());
                let half = 1.959_963_984_540_054 * error / (1.0 - ours.estimate.powi(2));
                let interval = ours.interval(0.95).unwrap();
                assert!((interval.low - (fisher - half).tanh()).abs() < 1e-14);
                assert!((interval.high - (fisher + half).tanh()).abs() < 1e-14);
            }
            Err(error) => assert!(error.is_undefined() && case["matthews"] == 0.0),
        }
        for (label, class) in matrix.by_class().iter().enumerate() {
            let expected = |name: &str| case["by_class"][name][label].clone();
            close(class.precision.unwrap_or(0.0), &expected("precision"));
            close(class.recall.unwrap_or(0.0), &expected("recall"));
            close(class.f1.unwrap_or(0.0), &expected("f1"));
        }
        for (name, average) in [("macro", Average::Macro), ("micro", Average::Micro), ("weighted", Average::Weighted)] {
            let ours = matrix.average(average, ZeroDivision::Zero).unwrap();
            for (score, ours) in [("precision", ours.precision), ("recall", ours.recall), ("f1", ours.f1)] {
                close(ours.estimate, &case[name][score]);
                if average == Average::Micro {
                    assert_eq!(ours.interval(0.95), matrix.accuracy().wilson(0.95));
                    continue;
                }
                close(ours.standard_error().unwrap(), &spread[name][score]);
                let interval = ours.interval(0.95).unwrap();
                let logit = |share: f64| (share / (1.0 - share)).ln();
                let half = logit(interval.high) - logit(ours.estimate);
                let error = ours.standard_error().unwrap() / ours.estimate / (1.0 - ours.estimate);
                assert!((half - 1.959_963_984_540_054 * error).abs() < 1e-10 && interval.low < ours.estimate);
            }
        }
        let weights = [
            ("identity", AgreementWeights::Identity),
            ("linear", AgreementWeights::Linear),
            ("quadratic", AgreementWeights::Quadratic),
            ("linear_of", AgreementWeights::LinearOf(values.clone())),
            ("quadratic_of", AgreementWeights::QuadraticOf(values)),
        ];
        for (name, weights) in weights {
            let (ours, expected) = (matrix.cohen_kappa(&weights).unwrap(), &case["kappa"][name]);
            close(ours.estimate, &expected["kappa"]);
            close(ours.standard_error().unwrap(), &expected["se"]);
            close(ours.p_value().unwrap(), &expected["p"]);
            let interval = ours.interval(0.95).unwrap();
            assert!(interval.low <= ours.estimate && ours.estimate <= interval.high);
        }
        // By place and by value are one thing where the values are 0, 1, 2, ...
        let places = (0..labels.len()).map(|place| place as f64).collect();
        let by_value = matrix.cohen_kappa(&AgreementWeights::QuadraticOf(places)).unwrap();
        assert_eq!(by_value, matrix.cohen_kappa(&AgreementWeights::Quadratic).unwrap());
    }
}

/// The fixture has one row to a rater.
fn by_subject<T: Copy>(raters: &[Vec<Option<T>>]) -> Vec<Vec<Option<T>>> {
    (0..raters[0].len()).map(|subject| raters.iter().map(|rater| rater[subject]).collect()).collect()
}

#[test]
fn raters_equal_krippendorff_statsmodels_and_irrcac() {
    for case in list(&fixture("agreement")["raters"]) {
        let raters: Vec<Vec<Option<f64>>> =
            list(&case["ratings"]).iter().map(|row| list(row).iter().map(Value::as_f64).collect()).collect();
        let ratings = by_subject(&raters);
        let measurements = [
            ("nominal", Measurement::Nominal),
            ("ordinal", Measurement::Ordinal),
            ("interval", Measurement::Interval),
            ("ratio", Measurement::Ratio),
        ];
        for (name, measurement) in measurements {
            let ours = krippendorff_alpha(&ratings, measurement).unwrap();
            let expected = &case["krippendorff_spread"][name];
            close(ours.estimate, &case["krippendorff"][name]);
            close(ours.standard_error().unwrap(), &expected["se"]);
            // irrCAC takes it from 1 - P(T < t), which leaves an error of 1e-16.
            assert!((ours.p_value().unwrap() - expected["p"].as_f64().unwrap()).abs() < 1e-14);
            let interval = ours.interval(0.95).unwrap();
            close(interval.low, &expected["low"]);
            close(interval.high, &expected["high"]);
        }
        let coded: Vec<Vec<Option<i64>>> =
            ratings.iter().map(|row| row.iter().map(|value| value.map(|value| value as i64)).collect()).collect();
        let table = RatingTable::new(&integers(&case["labels"]), &coded).unwrap();
        if case.get("fleiss").is_some() {
            let ours = table.fleiss_kappa().unwrap();
            close(ours.estimate, &case["fleiss"]);
            let z = ours.estimate / case["fleiss_se0"].as_f64().unwrap();
            let p = libm::erfc(z.abs() / std::f64::consts::SQRT_2);
            assert!((ours.p_value().unwrap() - p).abs() <= 1e-10 * p, "{ours:?}");
            let expected = &case["fleiss_spread"];
            close(ours.standard_error().unwrap(), &expected["se"]);
            let interval = ours.interval(0.95).unwrap();
            close(interval.low, &expected["low"]);
            close(interval.high, &expected["high"]);
        } else {
            assert!(matches!(table.fleiss_kappa(), Err(Error::LengthMismatch { .. })));
        }
        let weights = [
            ("identity", AgreementWeights::Identity),
            ("linear", AgreementWeights::Linear),
            ("quadratic", AgreementWeights::Quadratic),
            ("ordinal", AgreementWeights::Ordinal),
        ];
        for (name, weights) in weights {
            let (ours, expected) = (table.gwet(&weights).unwrap(), &case["gwet"][name]);
            close(ours.estimate, &expected["estimate"]);
            close(ours.standard_error().unwrap(), &expected["se"]);
            assert!(ours.p_value().unwrap_err().is_undefined(), "irrCAC tests 0, which is no null hypothesis of AC1");
            let interval = ours.interval(0.95).unwrap();
            close(interval.low, &expected["low"]);
            close(interval.high, &expected["high"]);
        }
    }
}

#[test]
fn intraclass_correlations_equal_pingouins() {
    for case in list(&fixture("agreement")["subjects"]) {
        let ratings: Vec<Vec<f64>> = list(&case["ratings"]).iter().map(numbers).collect();
        let icc = IntraclassCorrelations::new(&ratings).unwrap();
        let single = [icc.one_way(), icc.agreement(), icc.consistency()];
        let means = [icc.mean_one_way(), icc.mean_agreement(), icc.mean_consistency()];
        let all = single.into_iter().chain(means).map(Result::unwrap);
        for (ours, expected) in all.zip(list(&case["forms"])) {
            // An offset of 10,000 leaves pingouin's sums of squares nine digits.
            let near = |ours: f64, expected: &Value| {
                let expected = expected.as_f64().unwrap();
                let tolerance = if ratings[0][0] > 1e3 { 1e-7 } else { 1e-10 };
                assert!((ours - expected).abs() <= tolerance * expected.abs().max(1e-3), "{ours}, not {expected}");
            };
            near(ours.estimate, &expected["icc"]);
            assert_eq!((ours.n, ours.null_distribution()), (ratings.len(), Some(NullDistribution::F)));
            near(ours.p_value().unwrap(), &expected["p"]);
            let interval = ours.interval(0.95).unwrap();
            near(interval.low, &expected["interval"][0]);
            near(interval.high, &expected["interval"][1]);
        }
    }
}

#[test]
fn bad_input_is_refused() {
    let matrix =
        |truth: &[&'static str], predicted: &[&'static str]| ConfusionMatrix::new(vec!["yes", "no"], truth, predicted);
    let length = Error::LengthMismatch { argument: "predicted", found: 1, other: "truth", expected: 2 };
    assert_eq!(matrix(&["yes", "no"], &["yes"]), Err(length));
    assert_eq!(matrix(&[], &[]), Err(Error::TooFewItems { required: 1, found: 0 }));
    let unknown =
        Error::UnknownLabel { argument: "predicted", index: 1, found: "maybe".into(), known: "yes, no".into() };
    assert_eq!(matrix(&["yes", "no"], &["yes", "maybe"]), Err(unknown));
    let twice = ConfusionMatrix::new(vec![1, 2, 1], &[1], &[1]);
    assert_eq!(twice, Err(Error::DuplicateLabel { index: 2, label: "1".into() }));
    assert_eq!(ConfusionMatrix::new(vec![1], &[1], &[1]), Err(Error::TooFewItems { required: 2, found: 1 }));

    let one = matrix(&["yes"; 3], &["yes"; 3]).unwrap();
    assert!(one.cohen_kappa(&AgreementWeights::Identity).unwrap_err().is_undefined());
    assert!(one.matthews().unwrap_err().is_undefined());
    assert!(one.balanced_accuracy().unwrap_err().is_undefined());
    assert!(matrix(&["yes"; 2], &["yes", "no"]).unwrap().balanced_accuracy().unwrap_err().is_undefined());
    assert_eq!(matrix(&["yes", "no"], &["yes"; 2]).unwrap().balanced_accuracy().unwrap().estimate, 0.5);
    assert!(one.average(Average::Macro, ZeroDivision::Undefined).unwrap_err().is_undefined());
    assert_eq!(one.average(Average::Macro, ZeroDivision::LeftOut).unwrap().f1.estimate, 1.0);
    assert!(one.average(Average::Macro, ZeroDivision::LeftOut).unwrap().f1.interval(0.95).unwrap_err().is_undefined());
    assert_eq!(one.average(Average::Macro, ZeroDivision::Zero).unwrap().f1.estimate, 0.5);
    let same = matrix(&["yes", "no", "no"], &["yes", "no", "no"]).unwrap().matthews().unwrap();
    assert_eq!((same.estimate, same.standard_error()), (1.0, Ok(0.0)));
    assert!(same.interval(0.95).unwrap_err().is_undefined());
    let lopsided =
        matrix(&["yes", "no", "yes"], &["yes"; 3]).unwrap().cohen_kappa(&AgreementWeights::Identity).unwrap();
    assert_eq!(lopsided.estimate, 0.0);
    assert!(lopsided.p_value().unwrap_err().is_undefined());
    let values = |values: Vec<f64>| {
        matrix(&["yes", "no"], &["yes", "no"]).unwrap().cohen_kappa(&AgreementWeights::LinearOf(values))
    };
    assert!(matches!(values(vec![1.0]), Err(Error::LengthMismatch { argument: "values", .. })));
    assert!(matches!(values(vec![1.0, f64::NAN]), Err(Error::NonFinite { argument: "values", index: 1, .. })));
    assert!(matches!(values(vec![1.0, 1.0]), Err(Error::Constant { .. })));
    let [largest, ordinary] = [f64::MAX, 1.0].map(|value| values(vec![-value, value]).unwrap().estimate);
    assert_eq!(largest, ordinary);

    let alpha = |ratings: &[Vec<Option<f64>>], measurement| krippendorff_alpha(ratings, measurement);
    let rows = |a: &[f64], b: &[f64]| [a, b].map(|row| row.iter().map(|&x| Some(x)).collect::<Vec<_>>());
    assert_eq!(alpha(&[], Measurement::Nominal), Err(Error::TooFewItems { required: 1, found: 0 }));
    assert_eq!(alpha(&[vec![Some(1.0)]], Measurement::Nominal), Err(Error::TooFewItems { required: 2, found: 1 }));
    assert!(alpha(&rows(&[1.0, 1.0], &[1.0, 1.0]), Measurement::Nominal).unwrap_err().is_undefined());
    assert!(alpha(&[vec![Some(1.0), None], vec![None, Some(2.0)]], Measurement::Nominal).unwrap_err().is_undefined());
    assert!(matches!(
        alpha(&rows(&[1.0, 2.0], &[1.0, f64::INFINITY]), Measurement::Interval),
        Err(Error::InRow { row: 1, .. })
    ));
    assert!(matches!(
        alpha(&rows(&[1.0, 2.0], &[-1.0, 3.0]), Measurement::Ratio),
        Err(Error::OutOfRange { argument: "ratings", .. })
    ));
    assert!(matches!(alpha(&rows(&[1.0, 2.0], &[1.0]), Measurement::Nominal), Err(Error::LengthMismatch { .. })));
    // A single unit does not say how units differ, nor do units that are all alike.
    let one = alpha(&[vec![Some(1.0), Some(2.0)], vec![Some(1.0), None]], Measurement::Interval).unwrap();
    let too_few = Error::TooFewItems { required: 2, found: 1 };
    assert_eq!((one.n, one.interval(0.95), one.p_value()), (1, Err(too_few.clone()), Err(too_few.clone())));
    for measurement in [Measurement::Nominal, Measurement::Ordinal, Measurement::Interval, Measurement::Ratio] {
        let alike =
            alpha(&[[1.0, 2.0], [2.0, 1.0], [1.0, 2.0]].map(|row| row.map(Some).to_vec()), measurement).unwrap();
        assert_eq!(alike.standard_error(), Ok(0.0), "{measurement:?}");
        assert!(alike.p_value().unwrap_err().is_undefined());
    }

    assert!(matches!(RatingTable::new(&[1, 2], &[[Some(1), Some(3)]]), Err(Error::InRow { row: 0, .. })));
    assert_eq!(RatingTable::new(&[1, 2], &[[None, None]]), Err(Error::TooFewItems { required: 1, found: 0 }));
    assert!(RatingTable::from_counts(&[[3, 0], [3, 0]]).unwrap().fleiss_kappa().unwrap_err().is_undefined());
    let one = RatingTable::from_counts(&[[2, 1]]).unwrap().fleiss_kappa().unwrap();
    assert_eq!((one.interval(0.95), one.standard_error()), (Err(too_few.clone()), Err(too_few)));
    assert!(
        RatingTable::from_counts(&[[1, 0], [0, 1]])
            .unwrap()
            .gwet(&AgreementWeights::Identity)
            .unwrap_err()
            .is_undefined()
    );
    assert!(matches!(RatingTable::from_counts(&[vec![1, 0], vec![1]]), Err(Error::LengthMismatch { .. })));

    assert_eq!(IntraclassCorrelations::new(&[[1.0, 2.0]]), Err(Error::TooFewItems { required: 2, found: 1 }));
    assert!(IntraclassCorrelations::new(&[[1.0, 1.0], [1.0, 1.0]]).unwrap_err().is_undefined());
    let nan = IntraclassCorrelations::new(&[[1.0, 2.0], [f64::NAN, 1.0]]);
    assert!(matches!(nan, Err(Error::InRow { row: 1, .. })));
    let squares = IntraclassCorrelations::new(&[[1.0, 1.0], [2.0, 2.0], [4.0, 4.0]]).unwrap();
    let exact = squares.agreement().unwrap();
    assert_eq!(exact.estimate, 1.0);
    assert!(exact.p_value().unwrap_err().is_undefined() && exact.interval(0.95).unwrap_err().is_undefined());
    let shifted = IntraclassCorrelations::new(&[[1.0, 2.0], [1.0, 2.0], [1.0, 2.0]]).unwrap();
    assert!(shifted.consistency().unwrap_err().is_undefined());
    assert!(shifted.mean_one_way().unwrap_err().is_undefined());
}

#[test]
fn pandalm_figures_are_those_published() {
    let Some(testset) = published::<Value>("pandalm/testset-v1.json") else { return };
    let expected = &published::<Value>("expected.json").unwrap()["pandalm"];
    let rows = list(&testset);
    let annotators = ["annotator1", "annotator2", "annotator3"]
        .map(|name| rows.iter().map(|row| row[name].as_i64().unwrap()).collect::<Vec<_>>());
    let labels = || vec![0, 1, 2];
    for (name, a, b) in [("cohen_kappa_12", 0, 1), ("cohen_kappa_13", 0, 2), ("cohen_kappa_23", 1, 2)] {
        let matrix = ConfusionMatrix::new(labels(), &annotators[a], &annotators[b]).unwrap();
        close(matrix.cohen_kappa(&AgreementWeights::Identity).unwrap().estimate, &expected[name]);
    }
    let coded = by_subject(&annotators.clone().map(|ratings| ratings.into_iter().map(Some).collect::<Vec<_>>()));
    let table = RatingTable::new(&labels(), &coded);
    close(table.unwrap().fleiss_kappa().unwrap().estimate, &expected["fleiss"]);
    let ratings: Vec<Vec<Option<f64>>> =
        coded.iter().map(|row| row.iter().map(|label| label.map(|label| label as f64)).collect()).collect();
    close(krippendorff_alpha(&ratings, Measurement::Nominal).unwrap().estimate, &expected["krippendorff_nominal"]);

    // Two of three always agree.
    let gold: Vec<i64> = (0..rows.len())
        .map(|row| {
            let [a, b, c] = [0, 1, 2].map(|annotator| annotators[annotator][row]);
            if a == b || a == c { a } else { b }
        })
        .collect();
    for label in 0..3_i64 {
        let count = gold.iter().filter(|&&gold| gold == label).count() as u64;
        assert_eq!(Some(count), expected["majority_counts"][label.to_string()].as_u64());
    }
    let check = |gold: &[i64], predicted: &[i64], labels: Vec<i64>, expected: &Value| {
        let matrix = ConfusionMatrix::new(labels, gold, predicted).unwrap();
        close(matrix.accuracy().estimate().unwrap(), &expected["accuracy"]);
        let scores = matrix.average(Average::Macro, ZeroDivision::Zero).unwrap();
        close(scores.precision.estimate, &expected["precision"]);
        close(scores.recall.estimate, &expected["recall"]);
        close(scores.f1.estimate, &expected["f1"]);
        if expected.get("mcc").is_some() {
            close(matrix.matthews().unwrap().estimate, &expected["mcc"]);
            close(matrix.cohen_kappa(&AgreementWeights::Identity).unwrap().estimate, &expected["cohen_kappa"]);
            for (i, row) in list(&expected["confusion_012"]).iter().enumerate() {
                for (j, count) in integers(row).into_iter().enumerate() {
                    assert_eq!(matrix.count(i, j), Some(count as u64));
                }
            }
        }
    };
    let by_index = |file: &str, verdict: &dyn Fn(&Value) -> i64| -> Vec<i64> {
        let file = published::<Value>(file).unwrap();
        let of = |row: &Value| list(&file).iter().find(|found| found["idx"] == row["idx"]).map(verdict).unwrap();
        rows.iter().map(of).collect()
    };
    let pandalm = by_index("pandalm/pandalm-7b-testset-v1.json", &|row| row["pandalm_result"].as_i64().unwrap());
    check(&gold, &pandalm, labels(), &expected["pandalm7b"]);

    // "garbage" is 3 until a policy says what it is.
    let gpt = by_index("pandalm/gpt-3.5-turbo-testset-v1.json", &|row| match row["gpt_result"].as_str().unwrap() {
        "1" => 1,
        "2" => 2,
        "Tie" => 0,
        "garbage" => 3,
        other => panic!("{other}"),
    });
    let as_tie: Vec<i64> = gpt.iter().map(|&label| if label == 3 { 0 } else { label }).collect();
    check(&gold, &as_tie, labels(), &expected["gpt35_garbage_as_tie"]);
    let kept: Vec<usize> = (0..gpt.len()).filter(|&row| gpt[row] != 3).collect();
    let of_kept = |column: &[i64]| kept.iter().map(|&row| column[row]).collect::<Vec<_>>();
    assert_eq!(Some(kept.len() as u64), expected["gpt35_garbage_dropped"]["n"].as_u64());
    check(&of_kept(&gold), &of_kept(&gpt), labels(), &expected["gpt35_garbage_dropped"]);
    check(&gold, &gpt, vec![0, 1, 2, 3], &expected["gpt35_garbage_as_wrong_4class"]);
    // Averages over the three real classes alone, unparsed verdicts being wrong.
    let matrix = ConfusionMatrix::new(vec![0, 1, 2, 3], &gold, &gpt).unwrap();
    let expected = &expected["gpt35_garbage_as_wrong_labels012"];
    let mean = |of: &dyn Fn(usize) -> f64| (0..3).map(of).sum::<f64>() / 3.0;
    let classes = matrix.by_class();
    close(mean(&|class| classes[class].precision.unwrap()), &expected["precision"]);
    close(mean(&|class| classes[class].recall.unwrap()), &expected["recall"]);
    close(mean(&|class| classes[class].f1.unwrap()), &expected["f1"]);
}

#[test]
fn gpt_4s_repeated_grades_are_as_reliable_as_published() {
    let Some(file) = published::<Value>("prometheus_eval/mt_bench_eval.json") else { return };
    let expected = &published::<Value>("expected.json").unwrap()["prometheus_mt_bench_eval"];
    let grades: Vec<Vec<f64>> = list(&file).iter().map(|row| numbers(&row["gpt4_score"])).collect();
    let runs: Vec<Vec<Option<f64>>> = grades.iter().map(|row| row.iter().copied().map(Some).collect()).collect();
    close(krippendorff_alpha(&runs, Measurement::Nominal).unwrap().estimate, &expected["alpha_nominal"]);
    close(krippendorff_alpha(&runs, Measurement::Ordinal).unwrap().estimate, &expected["alpha_ordinal"]);
    close(krippendorff_alpha(&runs, Measurement::Interval).unwrap().estimate, &expected["alpha_interval"]);
    let icc = IntraclassCorrelations::new(&grades).unwrap();
    for (name, single, mean) in [
        ("1", icc.one_way(), icc.mean_one_way()),
        ("A", icc.agreement(), icc.mean_agreement()),
        ("C", icc.consistency(), icc.mean_consistency()),
    ] {
        close(single.unwrap().estimate, &expected["icc"][format!("ICC({name},1)")]);
        close(mean.unwrap().estimate, &expected["icc"][format!("ICC({name},k)")]);
    }
    let run = |run: usize| grades.iter().map(|row| row[run] as i64).collect::<Vec<_>>();
    let matrix = ConfusionMatrix::new(vec![1, 2, 3, 4, 5], &run(0), &run(1)).unwrap();
    for (name, weights) in [
        ("kappa12", AgreementWeights::Identity),
        ("kappa_lin12", AgreementWeights::Linear),
        ("kappa_quad12", AgreementWeights::Quadratic),
    ] {
        close(matrix.cohen_kappa(&weights).unwrap().estimate, &expected[name]);
    }
}

/// LLMBar ships kappas computed with label 2 taken for label 0; GPT-4's with the gold labels, first order, is .2517 there. This is
/// `sklearn.metrics.cohen_kappa_score` on the same verdicts.
#[test]
fn llmbars_kappa_is_not_the_one_it_ships() {
    let folder = "llmbar/LLMBar/Natural/evaluators/GPT-4/Vanilla_NoRules";
    let Some(file) = published::<Value>(&format!("{folder}/result.json")) else { return };
    let (gold, judge): (Vec<i64>, Vec<i64>) = list(&file)
        .iter()
        .map(|row| {
            let stages = list(&row["results"]);
            let winner = &stages.last().unwrap()["swap = False"]["winner"];
            (row["label"].as_i64().unwrap(), winner.as_str().map_or(0, |winner| winner.parse().unwrap()))
        })
        .unzip();
    let matrix = ConfusionMatrix::new(vec![1, 2], &gold, &judge).unwrap();
    let kappa = matrix.cohen_kappa(&AgreementWeights::Identity).unwrap().estimate;
    assert!((kappa - 0.836_867_862_969_005).abs() < 1e-12, "{kappa}");
    let shipped = published::<Value>(&format!("{folder}/statistics.json")).unwrap();
    let text = shipped.to_string();
    assert!(!text.contains("0.8368678"), "upstream mended its kappa: {text}");
}
