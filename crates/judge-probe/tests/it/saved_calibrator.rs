//! The calibrator of a saved probe: kept to the bit, used by a judge, and refused where its numbers contradict each other.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::made::{Tensor, kept, made_from, model, problem};
use judge_core::testing::ScriptedBackbone;
use judge_core::{
    Backbone, ItemId, Layer, Runner,
    inspector::{Aspect, InspectorJudge, InspectorSettings, Probe},
    request::{Pooling, Signal},
};
use judge_metrics::Error as Metric;
use judge_metrics::calibration::{CalibrationMethod, Calibrator, Direction, FittedCalibrator};
use judge_probe::{
    DecisionRule, Error, FittedProbe, LinearClassifier, Matrix, Precision, ProbeOrigin, ProbedModel, SavedProbe,
    SavedProbeError,
};
use safetensors::tensor::SafeTensors;

const D_MODEL: usize = 4;

fn origin(fingerprint: &str) -> ProbeOrigin {
    ProbeOrigin {
        model: ProbedModel { fingerprint: Some(fingerprint.to_owned()), ..model(D_MODEL) },
        signals: vec![(Layer(1), Signal::State(Pooling::Mean))],
        validation: None,
        data_hash: None,
        notes: BTreeMap::new(),
    }
}

fn probe(rule: DecisionRule) -> FittedProbe {
    let n = rule.n_functions(3);
    let coefficients = Matrix::new((0..n * D_MODEL).map(|i| (i as f64 + 0.3).sin() / 9.0).collect(), D_MODEL).unwrap();
    let classifier = LinearClassifier::from_parts(rule, vec![1, 2, 3], coefficients, vec![1.8; n]).unwrap();
    FittedProbe::new(vec![], classifier, Precision::F64).unwrap()
}

fn saved(rule: DecisionRule) -> SavedProbe {
    SavedProbe::new(probe(rule), origin("5eed")).unwrap()
}

/// Numbers from 1 to 3 and grades from 10 to 50.
fn fitted(settings: Calibrator) -> FittedCalibrator {
    let score: Vec<f64> = (0..40).map(|i| 1.0 + f64::from(i * 7 % 40) / 20.0).collect();
    let human: Vec<f64> =
        score.iter().zip(0..).map(|(s, i)| ((s * 2.0).round() + f64::from(i % 3)) * 10.0 - 10.0).collect();
    settings.fit(&score, &human).unwrap()
}

fn isotonic() -> FittedCalibrator {
    fitted(Calibrator { folds: 4, ..Calibrator::default() })
}

fn ordinal() -> FittedCalibrator {
    let range = Some([-0.1 - 0.2, 70.0]);
    fitted(Calibrator { method: CalibrationMethod::Ordinal, folds: 4, range, ..Calibrator::default() })
}

#[test]
fn a_calibrator_is_kept_to_the_bit() {
    let falling = fitted(Calibrator { direction: Direction::Decreasing, level: 0.8, ..Calibrator::default() });
    // Each row a fold of its own.
    let jackknife = fitted(Calibrator { folds: 100, ..Calibrator::default() });
    for calibrator in [isotonic(), ordinal(), falling, jackknife] {
        for rule in [DecisionRule::Nearest, DecisionRule::Logistic, DecisionRule::Cumulative] {
            let Ok(bare) = SavedProbe::new(probe_of(rule), origin("5eed")) else { panic!("{rule:?}") };
            let with = bare.clone().with_calibrator(calibrator.clone()).unwrap();
            let read = kept(&with);
            assert_eq!(read.calibrator(), Some(&calibrator));
            assert_ne!(read, bare);
            for number in [0.5, 1.0, 1.75, 2.9, 4.0] {
                assert_eq!(read.calibrator().unwrap().calibrate(number), calibrator.calibrate(number));
            }
            assert_eq!(read.without_calibrator(), bare);
        }
    }
}

/// Functions of ordinal regression differ in their intercepts alone.
fn probe_of(rule: DecisionRule) -> FittedProbe {
    if rule != DecisionRule::Cumulative {
        return probe(rule);
    }
    let coefficients = Matrix::from_rows([[0.1, -0.2, 0.3, 0.4]; 2]).unwrap();
    let classifier = LinearClassifier::from_parts(rule, vec![1, 2, 3], coefficients, vec![0.5, -0.5]).unwrap();
    FittedProbe::new(vec![], classifier, Precision::F64).unwrap()
}

/// Without a calibrator the file is what it was before there were any, and readers of that time read it.
#[test]
fn the_version_is_the_lowest_that_says_it_all() {
    let version = |saved: &SavedProbe| {
        let bytes = saved.to_bytes().unwrap();
        let (_, header) = SafeTensors::read_metadata(&bytes).unwrap();
        let text = header.metadata().as_ref().unwrap()["judge_probe"].clone();
        let description: serde_json::Value = serde_json::from_str(&text).unwrap();
        (description["version"].as_u64().unwrap(), description.get("calibrator").is_some())
    };
    let bare = saved(DecisionRule::Nearest);
    assert_eq!(version(&bare), (2, false));
    assert_eq!(version(&bare.clone().with_calibrator(isotonic()).unwrap()), (3, true));
    // Version 3 need not have one.
    let third = made_from(&bare, |text, _| *text = text.replace("\"version\":2", "\"version\":3"));
    assert_eq!(SavedProbe::from_bytes(&third), Ok(bare));
}

#[test]
fn a_probe_without_a_number_has_nothing_to_calibrate() {
    for rule in [DecisionRule::OneVsOne, DecisionRule::OneVsRest] {
        let refused = saved(rule).with_calibrator(isotonic());
        let nothing = problem(refused);
        assert!(nothing.starts_with("a calibrator needs a probe whose score is a number"), "{nothing}");
        // Nor has one whose file says otherwise.
        let probe = saved(DecisionRule::Logistic).with_calibrator(isotonic()).unwrap();
        let name = serde_json::to_string(&rule).unwrap();
        let made = made_from(&probe, |text, _| *text = text.replace("\"logistic\"", &name));
        assert_eq!(problem(SavedProbe::from_bytes(&made)), nothing);
    }
    let rules = [DecisionRule::Logistic, DecisionRule::Cumulative, DecisionRule::Nearest];
    let row = Matrix::from_rows([[0.1, 0.2, 0.3, 0.4]]).unwrap();
    for rule in rules.into_iter().chain([DecisionRule::OneVsOne, DecisionRule::OneVsRest]) {
        assert_eq!(probe_of(rule).scores(&row).unwrap().is_some(), rule.has_number(), "{rule:?}");
    }
}

/// What a probe knows best is calibrated: the mean of the classes under their probabilities, or the function of a regression.
#[test]
fn a_judge_s_verdicts_carry_the_calibration() {
    let model = ScriptedBackbone::new(D_MODEL);
    for rule in [DecisionRule::Logistic, DecisionRule::Nearest] {
        let with = SavedProbe::new(probe(rule), origin(&model.info().fingerprint)).unwrap();
        let with = with.with_calibrator(isotonic()).unwrap();
        let probe = Arc::new(SavedProbe::from_bytes(&with.to_bytes().unwrap()).unwrap());
        let template = Aspect::Fluency.template();
        let settings = InspectorSettings { aspect: "fluency".into(), template, probe: probe.clone() };
        let judge = InspectorJudge::new(settings, model.info()).unwrap();
        let items = ["a", "b"].map(|id| (ItemId::from(id), [("question", id), ("response", "r")]));
        let results = Runner::new(&model, vec![&judge]).collect(items).unwrap();
        assert_eq!(results.len(), 2);
        for result in results {
            let score = result.verdicts[0].score().unwrap();
            let number = match &score.distribution {
                Some(distribution) => {
                    assert_eq!((rule, score.value), (DecisionRule::Logistic, distribution.mode().value));
                    distribution.expected()
                }
                None => score.value,
            };
            assert!((1.0..=3.0).contains(&number) && number.fract() != 0.0, "{number}");
            let expected = probe.calibrator().unwrap().calibrate(number).unwrap();
            let found = score.calibrated.unwrap();
            assert!((found.value - expected.value).abs() < 1e-9);
            assert!((found.low - expected.interval.low).abs() < 1e-9);
            assert!((found.high - expected.interval.high).abs() < 1e-9);
            assert_eq!(found.level, 0.9);
        }
    }
    let output = saved(DecisionRule::Nearest).classify(&[0.5; D_MODEL]).unwrap();
    assert!(output.number.is_some() && output.calibrated.is_none());
}

#[test]
fn every_damaged_bit_is_noticed() {
    let bytes = saved(DecisionRule::Nearest).with_calibrator(ordinal()).unwrap().to_bytes().unwrap();
    for place in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[place] ^= 1 << (place % 8);
        assert!(SavedProbe::from_bytes(&damaged).is_err(), "byte {place}");
        assert!(SavedProbe::from_bytes(&bytes[..place]).is_err(), "cut at {place}");
    }
}

#[test]
fn a_made_calibrator_is_refused_for_what_it_says() {
    let probe = saved(DecisionRule::Nearest).with_calibrator(ordinal()).unwrap();
    let changed = |change: &dyn Fn(&mut serde_json::Value, &mut Vec<Tensor>)| {
        SavedProbe::from_bytes(&made_from(&probe, |text, tensors| {
            let mut description: serde_json::Value = serde_json::from_str(text).unwrap();
            change(&mut description["calibrator"], tensors);
            *text = description.to_string();
        }))
    };
    assert_eq!(changed(&|_, _| {}), Ok(probe.clone()));
    let metric = |change: &dyn Fn(&mut serde_json::Value, &mut Vec<Tensor>)| match changed(change) {
        Err(Error::SavedProbe(SavedProbeError::Calibrator(error))) => error,
        other => panic!("{other:?}"),
    };
    let number = |name: &'static str, place: usize, value: f64| {
        move |_: &mut serde_json::Value, tensors: &mut Vec<Tensor>| {
            let tensor = tensors.iter_mut().find(|tensor| tensor.0 == name).unwrap();
            tensor.3[8 * place..8 * place + 8].copy_from_slice(&value.to_le_bytes());
        }
    };

    // Numbers that are none, out of order, or out of range.
    assert!(matches!(metric(&number("calibrator.x", 1, f64::NAN)), Metric::NonFinite { .. }));
    assert!(matches!(metric(&number("calibrator.y", 0, f64::INFINITY)), Metric::NonFinite { .. }));
    assert!(matches!(metric(&number("calibrator.errors", 0, f64::NAN)), Metric::NonFinite { .. }));
    assert!(matches!(metric(&number("calibrator.errors", 0, 9.0)), Metric::NotAscending { argument: "errors", .. }));
    assert!(matches!(metric(&number("calibrator.x", 1, -9.0)), Metric::NotAscending { argument: "x", .. }));
    assert!(matches!(metric(&number("calibrator.y", 0, 9.0)), Metric::Undefined { .. }));
    assert!(matches!(changed(&number("calibrator.shares", 0, f64::NAN)), Err(Error::NonFiniteFeature { .. })));
    assert!(matches!(metric(&number("calibrator.shares", 0, -0.5)), Metric::OutOfRange { argument: "shares", .. }));
    assert!(matches!(metric(&|c, _| c["level"] = 1.0.into()), Metric::LevelOutOfRange { .. }));
    assert!(matches!(metric(&|c, _| c["level"] = 0.99.into()), Metric::TooFewItems { required: 99, found: 40 }));
    assert!(matches!(metric(&|c, _| c["range"] = vec![1.0, 0.0].into()), Metric::OutOfRange { argument: "range", .. }));
    assert!(matches!(metric(&|c, _| c["fits"][1]["mixed"] = 2.0.into()), Metric::OutOfRange { argument: "mixed", .. }));
    assert!(matches!(metric(&|c, _| c["increasing"] = false.into()), Metric::Undefined { .. }));
    assert!(matches!(metric(&|c, _| c["grades"][1] = (-5.0).into()), Metric::NotAscending { argument: "grades", .. }));

    // Lists that are divided otherwise than they are long.
    for n in [1, u64::MAX] {
        let curve = problem(changed(&|c, _| c["fits"][0]["curves"][0] = n.into()));
        assert!(curve.starts_with("tensor \"calibrator.x\" should be"), "{curve}");
        let errors = problem(changed(&|c, _| c["errors"][0] = n.into()));
        assert!(errors.starts_with("tensor \"calibrator.errors\" should be"), "{errors}");
    }
    let count = |change: &dyn Fn(&mut serde_json::Value, &mut Vec<Tensor>)| match changed(change) {
        Err(Error::ParameterCount { name, .. }) => name,
        other => panic!("{other:?}"),
    };
    assert_eq!(count(&|c, _| c["fits"] = serde_json::json!([])), "fits of a calibrator");
    assert_eq!(count(&|c, _| drop(c["errors"].as_array_mut().unwrap().pop())), "fits of a calibrator");
    assert_eq!(count(&|c, _| c["fits"][0]["curves"][0] = 0.into()), "thresholds of a curve, at least");
    assert_eq!(count(&|c, _| drop(c["grades"].as_array_mut().unwrap().pop())), "columns of a calibrator's shares");
    // A curve fewer in one fit, whose thresholds another one takes over.
    let merged = |c: &mut serde_json::Value, _: &mut Vec<Tensor>| {
        let curves = c["fits"][0]["curves"].as_array_mut().unwrap();
        let last = curves.pop().unwrap().as_u64().unwrap();
        let before = curves.last().unwrap().as_u64().unwrap();
        *curves.last_mut().unwrap() = (before + last).into();
    };
    assert!(matches!(metric(&merged), Metric::LengthMismatch { .. }));

    // Another description.
    let described = |change: &dyn Fn(&mut serde_json::Value, &mut Vec<Tensor>)| {
        assert!(problem(changed(change)).starts_with("description, line"));
    };
    described(&|c, _| c["more"] = 0.into());
    described(&|c, _| c["fits"][0]["more"] = 0.into());
    described(&|c, _| c["level"] = serde_json::Value::Null);
    described(&|c, _| c["errors"][0] = (-1).into());
    let missing = changed(&|_, tensors| tensors.retain(|tensor| tensor.0 != "calibrator.y"));
    assert_eq!(problem(missing), "there is no tensor \"calibrator.y\"");
    let numberless = changed(&|c, _| drop(c.as_object_mut().unwrap().remove("grades")));
    assert_eq!(problem(numberless), "unknown tensor \"calibrator.shares\"");
    let gone = changed(&|c, _| *c = serde_json::Value::Null);
    assert!(problem(gone).starts_with("unknown tensor \"calibrator."));
}

/// More grades than any calibrator is fitted to would cost their square in every verdict.
#[test]
fn grades_without_end_are_refused() {
    let human: Vec<f64> = (0..101).map(f64::from).collect();
    let settings = Calibrator { method: CalibrationMethod::Ordinal, folds: 2, ..Calibrator::default() };
    let mut parts = settings.fit(&human, &human).unwrap().parts();
    assert!(FittedCalibrator::from_parts(parts.clone()).is_ok());
    parts.grades.as_mut().unwrap().push(101.0);
    let refused = FittedCalibrator::from_parts(parts);
    assert_eq!(refused, Err(Metric::TooManyItems { limit: 101, found: 102 }));
}
