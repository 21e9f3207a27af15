//! Saved probes: what is read back is what was written, and everything else is refused.

use std::collections::BTreeMap;

use crate::made::{self, Tensor, kept, made_from, problem};
use judge_core::{
    Layer, ModelInfo,
    inspector::Probe,
    request::{Pooling, Signal},
};
use judge_probe::{
    Block, Blocks, BrierRegression, Classifier, DecisionRule, DenseClassifier, Error, Estimator, FeatureFamily,
    FittedClassifier, FittedEstimator, FittedProbe, FittedStandardScaler, HiddenLayer, IntoProbe, LinearClassifier,
    LinearKernelSvc, LogisticRegression, Matrix, OrdinalRegression, Pca, Pipeline, Precision, ProbeOrigin, ProbeStage,
    ProbedModel, RidgeToClass, SavedProbe, StandardScaler, Validation,
};
use safetensors::tensor::{Dtype, TensorView};

const SIGNALS: [(Layer, Signal); 2] =
    [(Layer(4), Signal::State(Pooling::Mean)), (Layer(2), Signal::State(Pooling::Last))];

fn origin(fingerprint: Option<&str>) -> ProbeOrigin {
    ProbeOrigin {
        model: ProbedModel {
            revision: Some("r1".to_owned()),
            fingerprint: fingerprint.map(str::to_owned),
            ..made::model(2)
        },
        signals: SIGNALS.to_vec(),
        validation: Some(Validation { scoring: "f1_macro".to_owned(), mean: 0.1 + 0.2, folds: vec![0.25, 1.0 / 3.0] }),
        data_hash: Some("d47a".to_owned()),
        notes: BTreeMap::from([("aspect".to_owned(), "fluency".to_owned()), ("c".to_owned(), "0.01".to_owned())]),
    }
}

fn probe(rule: DecisionRule, scaled: bool) -> FittedProbe {
    let coefficients = Matrix::new((0..12).map(|i| f64::from(i).sin() / 3.0).collect(), 4).unwrap();
    let classifier = LinearClassifier::from_parts(rule, vec![-1, 2, 5], coefficients, vec![0.1, -0.2, 1e-300]).unwrap();
    let scaler = FittedStandardScaler::from_parts(vec![1.0, -2e3, 0.0, 0.1], vec![0.5, 57.6, 0.012, 1.0]).unwrap();
    FittedProbe::new(scaled.then_some(scaler.into()).into_iter().collect(), classifier, Precision::F16).unwrap()
}

fn saved(fingerprint: Option<&str>) -> SavedProbe {
    SavedProbe::new(probe(DecisionRule::Logistic, true), origin(fingerprint)).unwrap()
}

fn model(fingerprint: &str, n_layers: usize, d_model: usize) -> ModelInfo {
    let dimensions = judge_core::model::Dimensions { n_layers, d_model, n_heads: 2, d_vocab: 10, max_len: 16 };
    let mut info = ModelInfo::new("tiny", fingerprint, dimensions);
    info.family = "llama".to_owned();
    info
}

#[test]
fn what_is_read_back_is_what_was_written() {
    for rule in [DecisionRule::Logistic, DecisionRule::OneVsRest, DecisionRule::OneVsOne] {
        for scaled in [true, false] {
            kept(&SavedProbe::new(probe(rule, scaled), origin(Some("5eed"))).unwrap());
        }
    }
}

/// Fitted here, to features of the width of [`origin`], scaled.
fn fitted<C: Classifier<Fitted: IntoProbe>>(estimator: C, labels: &[i64]) -> FittedProbe {
    let value = |i: usize| ((i * i + 7 * i) % 23) as f64 / 7.0 + labels[i / 4] as f64;
    let features = Matrix::new((0..4 * labels.len()).map(value).collect(), 4).unwrap();
    let pipeline = Pipeline { transformer: StandardScaler::default(), estimator };
    pipeline.fit(&features, labels).unwrap().into_probe().unwrap()
}

#[test]
fn every_kind_of_fitted_probe_is_kept() {
    let (two, three) = ([0, 1, 0, 1, 1, 0, 1], [1, 3, 5, 1, 3, 5, 3]);
    let probes = [
        fitted(LogisticRegression::default(), &two),
        fitted(LogisticRegression::default(), &three),
        fitted(LinearKernelSvc::default(), &two),
        fitted(LinearKernelSvc::default(), &three),
        fitted(BrierRegression::default(), &two),
        fitted(BrierRegression::default(), &three),
        fitted(OrdinalRegression::default(), &two),
        fitted(OrdinalRegression::default(), &three),
        #[cfg(feature = "mlp")]
        fitted(judge_probe::MlpClassifier { learning_rate_init: 0.05, ..Default::default() }, &two),
        #[cfg(feature = "mlp")]
        fitted(judge_probe::MlpClassifier { learning_rate_init: 0.05, ..Default::default() }, &three),
        deep_probe(),
    ];
    for probe in probes {
        kept(&SavedProbe::new(probe, origin(Some("5eed"))).unwrap());
    }
}

/// Two hidden layers, of 3 and 2 units, and no scaler.
fn deep_probe() -> FittedProbe {
    let layer = |n_units: usize, n_inputs: usize| {
        let weights = (0..n_units * n_inputs).map(|i| (i as f64 + 0.5).cos()).collect();
        HiddenLayer::from_parts(Matrix::new(weights, n_inputs).unwrap(), vec![0.1; n_units]).unwrap()
    };
    let coefficients = Matrix::new(vec![0.5, -2.0], 2).unwrap();
    let output = LinearClassifier::from_parts(DecisionRule::Logistic, vec![0, 1], coefficients, vec![0.1]).unwrap();
    let classifier = DenseClassifier::from_parts(vec![layer(3, 4), layer(2, 3)], output).unwrap();
    FittedProbe::new(vec![], classifier, Precision::F64).unwrap()
}

#[test]
fn another_model_or_other_states_are_refused() {
    let probe = saved(Some("5eed"));
    assert_eq!(probe.check_model(&model("5eed", 4, 2)), Ok(()));
    let other = "fitted on tiny with fingerprint 5eed, found 0dd";
    assert_eq!(problem(probe.check_model(&model("0dd", 4, 2))), other);
    assert_eq!(problem(probe.clone().bound_to(&model("0dd", 4, 2))), other);
    let shallow = problem(probe.check_model(&model("5eed", 3, 2)));
    assert_eq!(shallow, "the probe needs 4 blocks, the model has 3");

    let imported = saved(None);
    let unknown = problem(imported.check_model(&model("5eed", 4, 2)));
    assert_eq!(unknown, "the probe names its model (tiny) but has no fingerprint to compare");
    let wide = problem(imported.clone().bound_to(&model("5eed", 4, 3)));
    assert_eq!(wide, "the probe needs 2 coordinates, the model has 3");
    let bound = imported.bound_to(&model("5eed", 4, 2)).unwrap();
    assert_eq!(bound.check_model(&model("5eed", 9, 2)), Ok(()));
    assert_eq!(problem(bound.check_model(&model("0dd", 4, 2))), other);
}

/// A state of width 1 for each of so many layers: what comparing every signal with every other takes half an hour for.
#[test]
fn many_signals_cost_no_more_than_they_are() {
    let n = 500_000;
    let coefficients = Matrix::new(vec![0.5; n], n).unwrap();
    let classifier = LinearClassifier::from_parts(DecisionRule::Logistic, vec![0, 1], coefficients, vec![0.0]).unwrap();
    let probe = FittedProbe::new(vec![], classifier, Precision::F64).unwrap();
    let mut wide = origin(None);
    wide.model.d_model = 1;
    wide.signals = (0..n).map(|layer| (Layer(layer), Signal::State(Pooling::Last))).collect();
    let started = std::time::Instant::now();
    let bytes = SavedProbe::new(probe, wide).unwrap().to_bytes().unwrap();
    assert!(SavedProbe::from_bytes(&bytes).is_ok());
    assert!(started.elapsed() < std::time::Duration::from_secs(30));
}

#[test]
fn an_origin_must_fit_the_probe() {
    let with = |change: fn(&mut ProbeOrigin)| {
        let mut origin = origin(None);
        change(&mut origin);
        problem(SavedProbe::new(probe(DecisionRule::Logistic, true), origin))
    };
    let width = |signals: &str, d_model: usize| {
        format!("{signals} cannot be 4 features: a state of the model has {d_model} coordinates")
    };
    let both = "mean of layer 4; last of layer 2";
    assert_eq!(with(|origin| origin.model.d_model = 3), width(both, 3));
    assert_eq!(with(|origin| origin.model.d_model = usize::MAX), width(both, usize::MAX));
    assert_eq!(with(|origin| origin.signals.clear()), width("nothing", 2));
    let attention = with(|origin| origin.signals[1].1 = Signal::AttentionEntropy);
    assert_eq!(attention, width("mean of layer 4; attention_entropy of layer 2", 2));
    assert_eq!(with(|origin| origin.signals[1] = SIGNALS[0]), "mean of layer 4 appears twice");
    let score = |origin: &mut ProbeOrigin| origin.validation.as_mut().unwrap().folds[0] = f64::INFINITY;
    assert_eq!(with(score), "a validation score is inf");
}

/// A probe on a state of two coordinates and on two heads.
#[test]
fn a_probe_may_read_how_heads_attend() {
    let signals = vec![(Layer(2), Signal::AttentionEntropy), SIGNALS[0]];
    let mut origin = ProbeOrigin { signals: signals.clone(), ..origin(Some("5eed")) };
    origin.model.n_heads = Some(2);
    let probe = SavedProbe::new(probe(DecisionRule::Logistic, true), origin.clone()).unwrap();
    let bytes = probe.to_bytes().unwrap();
    assert_eq!(SavedProbe::from_bytes(&bytes).unwrap(), probe);
    assert!(String::from_utf8_lossy(&bytes).contains("[2,\\\"attention_entropy\\\"],[4,\\\"mean\\\"]"));
    assert_eq!(probe.signals(), signals);
    assert_eq!(SavedProbe::check_model(&probe, &model("5eed", 4, 2)), Ok(()));
    let mut heads = model("5eed", 4, 2);
    heads.n_heads = 3;
    assert_eq!(problem(SavedProbe::check_model(&probe, &heads)), "the probe needs 2 heads, the model has 3");
    origin.model.n_heads = Some(3);
    let wide = problem(SavedProbe::new(probe.probe().clone(), origin));
    assert!(
        wide.ends_with("cannot be 4 features: a state of the model has 2 coordinates, and a block 3 heads"),
        "{wide}"
    );
}

#[test]
fn every_damaged_bit_is_noticed() {
    let bytes = saved(Some("5eed")).to_bytes().unwrap();
    for place in 0..bytes.len() {
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[place] ^= 1 << bit;
            assert!(SavedProbe::from_bytes(&damaged).is_err(), "bit {bit} of byte {place}");
        }
        assert!(SavedProbe::from_bytes(&bytes[..place]).is_err(), "cut at {place}");
    }
    assert!(SavedProbe::from_bytes(&[&bytes[..], b"\0"].concat()).is_err());
}

/// A file of the right form but with changes, and the checksum of what it then holds: not damaged but made.
fn made(change: impl Fn(&mut String, &mut Vec<Tensor>)) -> Vec<u8> {
    made_from(&saved(Some("5eed")), change)
}

#[test]
fn a_made_file_is_refused_for_what_it_says() {
    assert_eq!(SavedProbe::from_bytes(&made(|_, _| {})), Ok(saved(Some("5eed"))));
    let text = |from: &'static str, to: &'static str| {
        SavedProbe::from_bytes(&made(move |text, _| {
            assert!(text.contains(from), "{text}");
            *text = text.replace(from, to);
        }))
    };
    for (from, to, said) in [
        ("\"version\":2", "\"version\":4", "format version 3 is read, found 4"),
        ("\"version\":2", "\"version\":1", "description, line"),
        ("\"version\":2", "\"version\":2,\"x\":0", "description, line"),
        ("logistic", "forest", "description, line"),
        ("mean\"", "median\"", "description, line"),
        ("\"d_model\":2", "\"d_model\":1", "mean of layer 4; last of layer 2 cannot be 4 features"),
        ("[\"scaler\"]", "[]", "unknown tensor \"stages.0."),
    ] {
        let problem = problem(text(from, to));
        assert!(problem.starts_with(said), "{problem}");
    }
    assert_eq!(text("[-1,2,5]", "[2,-1,5]"), Err(Error::ClassOrder { before: 2, after: -1 }));
    assert_eq!(text("[-1,2,5]", "[2,2,5]"), Err(Error::ClassOrder { before: 2, after: 2 }));
    let rows = Error::ParameterCount { name: "rows of coefficients", expected: 1, found: 3 };
    assert_eq!(text("[-1,2,5]", "[-1,2]"), Err(rows));

    let number = |tensor: usize, value: f64| {
        SavedProbe::from_bytes(&made(move |_, tensors| tensors[tensor].3[8..16].copy_from_slice(&value.to_le_bytes())))
    };
    assert!(matches!(number(0, f64::NAN), Err(Error::NonFiniteFeature { row: 0, feature: 1, .. })));
    let infinite = Error::InvalidParameter { name: "intercept", index: 1, value: f64::INFINITY };
    assert_eq!(number(1, f64::INFINITY), Err(infinite));
    assert!(matches!(number(2, f64::NAN), Err(Error::InvalidParameter { name: "mean", index: 1, .. })));
    assert_eq!(number(3, 0.0), Err(Error::InvalidParameter { name: "scale", index: 1, value: 0.0 }));

    let shape = |tensor: usize, shape: &'static [usize]| {
        SavedProbe::from_bytes(&made(move |_, tensors| tensors[tensor].2 = shape.to_vec()))
    };
    let single = made(|_, tensors| {
        tensors[1].1 = Dtype::F32;
        tensors[1].2 = vec![6];
    });
    for (result, name) in [
        (shape(0, &[12]), "coefficients"),
        (shape(0, &[4, 3]), "intercepts"),
        (shape(1, &[3, 1]), "intercepts"),
        (shape(2, &[1, 4]), "stages.0.mean"),
        (SavedProbe::from_bytes(&single), "intercepts"),
    ] {
        let misshapen = problem(result);
        assert!(misshapen.starts_with(&format!("tensor {name:?} should be")), "{misshapen}");
    }
    let gone = made(|_, tensors| drop(tensors.remove(2)));
    assert_eq!(problem(SavedProbe::from_bytes(&gone)), "there is no tensor \"stages.0.mean\"");

    let foreign = safetensors::serialize([("x", TensorView::new(Dtype::U8, vec![1], &[0]).unwrap())], None).unwrap();
    assert!(problem(SavedProbe::from_bytes(&foreign)).ends_with("it has no metadata entry \"judge_probe\""));
    assert!(problem(SavedProbe::from_bytes(b"")).starts_with("0 bytes that are no safetensors file"));
}

/// The layout of version 1: a flag in place of the transformers, and the scaler's tensors without a prefix.
#[test]
fn a_file_of_version_1_is_read() {
    let to_first = |stages: &'static str, scaled: &'static str| {
        move |text: &mut String, tensors: &mut Vec<Tensor>| {
            assert!(text.contains(stages));
            *text = text.replace("\"version\":2", "\"version\":1").replace(stages, scaled);
            tensors.iter_mut().for_each(|tensor| tensor.0 = tensor.0.replace("stages.0.", ""));
        }
    };
    let scaled = saved(Some("5eed"));
    let first = made_from(&scaled, to_first("\"stages\":[\"scaler\"]", "\"scaled\":true"));
    assert!(!String::from_utf8_lossy(&first).contains("stages"));
    assert_eq!(SavedProbe::from_bytes(&first), Ok(scaled));
    let deep = SavedProbe::new(deep_probe(), origin(None)).unwrap();
    let first = made_from(&deep, to_first("\"stages\":[]", "\"scaled\":false"));
    assert_eq!(SavedProbe::from_bytes(&first), Ok(deep));
}

/// Two signals of four coordinates, each with its family.
fn selected<E: Classifier<Fitted: IntoProbe>>(families: [FeatureFamily; 2], estimator: E) -> (FittedProbe, Matrix) {
    let labels = [1, 3, 5, 1, 3, 5, 3, 1, 5, 3, 1, 5];
    let value = |i: usize| ((i * i + 7 * i) % 23) as f64 / 7.0 + labels[i / 8] as f64;
    let features = Matrix::new((0..8 * labels.len()).map(value).collect(), 8).unwrap();
    let blocks = families.map(|transformer| Block { n_features: 4, transformer }).to_vec();
    let scaled = Pipeline { transformer: StandardScaler::default(), estimator };
    let pipeline = Pipeline { transformer: Blocks { blocks }, estimator: scaled };
    let fitted = pipeline.fit(&features, &labels).unwrap();
    let expected = fitted.decision_function(&features).unwrap();
    let probe = fitted.into_probe().unwrap();
    assert_eq!(probe.decision_function(&features).unwrap(), expected);
    (probe, features)
}

#[test]
fn everything_that_a_selection_chooses_is_kept_and_judges() {
    let families = [
        FeatureFamily::State,
        FeatureFamily::Statistics,
        FeatureFamily::Pca { n_components: 2 },
        FeatureFamily::Pca { n_components: 4 },
        FeatureFamily::Summary,
    ];
    let mut probes = Vec::new();
    for first in families {
        for second in families {
            probes.push(selected([first, second], LogisticRegression::default()));
            probes.push(selected([first, second], OrdinalRegression::default()));
            probes.push(selected([first, second], LinearKernelSvc::default()));
            probes.push(selected([first, second], RidgeToClass::default()));
            let pca = Pca { n_components: 3 };
            probes.push(selected([first, second], Pipeline { transformer: pca, estimator: RidgeToClass::default() }));
        }
    }
    let mut origin = origin(Some("5eed"));
    origin.model.d_model = 4;
    for (probe, features) in probes {
        let saved = SavedProbe::new(probe, origin.clone()).unwrap();
        let read = kept(&saved);
        // As a judge meets it: row by row, in single precision.
        for row in features.rows() {
            let row: Vec<f32> = row.iter().map(|&value| value as f32).collect();
            let single = Matrix::new(row.iter().map(|&value| f64::from(value)).collect(), 8).unwrap();
            let class = Probe::classes(&read)[read.classify(&row).unwrap().class];
            assert_eq!([class], saved.probe().predict(&single).unwrap()[..]);
        }
    }
    // States as they are need no block, and what a transformer was left out of does not fit its signals.
    let (plain, _) = selected([FeatureFamily::State; 2], LogisticRegression::default());
    assert!(matches!(plain.stages(), [ProbeStage::Scaler(_)]));
    let (reduced, _) = selected([FeatureFamily::Statistics; 2], LogisticRegression::default());
    let without =
        FittedProbe::new(reduced.stages()[1..].to_vec(), reduced.classifier().clone(), Precision::F64).unwrap();
    assert!(problem(SavedProbe::new(without, origin)).contains("cannot be 6 features"));
}

#[test]
fn made_transformers_are_refused() {
    let mut origin = origin(Some("5eed"));
    origin.model.d_model = 4;
    let families = [FeatureFamily::Statistics, FeatureFamily::Pca { n_components: 2 }];
    let saved = SavedProbe::new(selected(families, LogisticRegression::default()).0, origin).unwrap();
    let changed = |change: fn(&mut String, &mut Vec<Tensor>)| SavedProbe::from_bytes(&made_from(&saved, change));
    assert_eq!(changed(|_, _| {}), Ok(saved.clone()));
    let wide = changed(|text, _| *text = text.replace("{\"statistics\":4}", "{\"statistics\":18446744073709551615}"));
    assert!(problem(wide).contains(&format!("cannot be {} features", usize::MAX)));
    let state = changed(|text, _| *text = text.replace("statistics", "state"));
    assert_eq!(state, Err(Error::FeatureCount { expected: 5, found: 6 }));
    let unknown = changed(|text, _| *text = text.replace("statistics", "median"));
    assert!(problem(unknown).starts_with("description, line"));
    let gone = changed(|_, tensors| tensors.retain(|tensor| tensor.0 != "stages.0.1.mean"));
    assert_eq!(problem(gone), "there is no tensor \"stages.0.1.mean\"");
    let negative = changed(|_, tensors| {
        let variance = tensors.iter_mut().find(|tensor| tensor.0 == "stages.0.1.explained_variance").unwrap();
        variance.3[..8].copy_from_slice(&(-1.0_f64).to_le_bytes());
    });
    assert!(matches!(negative, Err(Error::InvalidParameter { name: "explained variance", index: 0, .. })));
}

#[test]
fn made_hidden_layers_are_refused() {
    let deep = SavedProbe::new(deep_probe(), origin(Some("5eed"))).unwrap();
    let changed = |change: fn(&mut String, &mut Vec<Tensor>)| SavedProbe::from_bytes(&made_from(&deep, change));
    let names = |tensors: &[Tensor]| tensors.iter().map(|tensor| tensor.0.clone()).collect::<Vec<_>>();
    let expected = [
        "coefficients",
        "hidden.0.intercepts",
        "hidden.0.weights",
        "hidden.1.intercepts",
        "hidden.1.weights",
        "intercepts",
    ];
    made_from(&deep, |_, tensors| assert_eq!(names(tensors), expected));
    assert_eq!(changed(|_, _| {}), Ok(deep.clone()));

    let fewer = changed(|text, _| *text = text.replace("\"hidden_layers\":2", "\"hidden_layers\":1"));
    assert!(problem(fewer).starts_with("unknown tensor \"hidden.1."));
    let countless = changed(|text, _| *text = text.replace("_layers\":2", "_layers\":18446744073709551615"));
    assert_eq!(problem(countless), "there is no tensor \"hidden.2.intercepts\"");
    let gone = changed(|_, tensors| drop(tensors.remove(4)));
    assert_eq!(problem(gone), "there is no tensor \"hidden.1.weights\"");
    // Two units of six inputs on three units.
    let unchained = changed(|_, tensors| tensors[4].2 = vec![1, 6]);
    assert!(problem(unchained).starts_with("tensor \"hidden.1.intercepts\" should be"));
    let unchained = changed(|_, tensors| tensors[0].2 = vec![1, 2, 1]);
    assert!(problem(unchained).starts_with("tensor \"coefficients\" should be"));
    let swapped = changed(|_, tensors| {
        let (first, second) = (tensors[2].clone(), tensors[4].clone());
        let intercepts = (tensors[1].clone(), tensors[3].clone());
        (tensors[2].2, tensors[2].3, tensors[4].2, tensors[4].3) = (second.2, second.3, first.2, first.3);
        (tensors[1].2, tensors[1].3) = (intercepts.1.2, intercepts.1.3);
        (tensors[3].2, tensors[3].3) = (intercepts.0.2, intercepts.0.3);
    });
    assert_eq!(swapped, Err(Error::FeatureCount { expected: 4, found: 2 }));
    let nan = changed(|_, tensors| tensors[3].3[..8].copy_from_slice(&f64::NAN.to_le_bytes()));
    assert!(matches!(nan, Err(Error::InvalidParameter { name: "intercept", index: 0, .. })));
}

#[test]
fn a_probe_knows_its_model_whichever_fingerprint_that_was_loaded_with() {
    let (sampled, full) = (saved(Some("5eed")), saved(Some("full:a11/5eed")));
    for probe in [&sampled, &full] {
        for same in ["5eed", "full:a11/5eed"] {
            assert_eq!(SavedProbe::check_model(probe, &model(same, 4, 2)), Ok(()), "{same}");
        }
        assert!(SavedProbe::check_model(probe, &model("full:a11/0dd", 4, 2)).is_err() == (probe == &sampled));
    }
    assert!(SavedProbe::check_model(&full, &model("full:b0b/5eed", 4, 2)).is_err());
    // A full one of before has no sample to compare.
    let said =
        |probe: &SavedProbe, found: &str| SavedProbe::check_model(probe, &model(found, 4, 2)).unwrap_err().to_string();
    assert!(said(&saved(Some("full:a11")), "5eed").contains("load the model with a full fingerprint"));
    assert!(said(&sampled, "full:a11/0dd").contains("load the model without a full fingerprint"));
}
