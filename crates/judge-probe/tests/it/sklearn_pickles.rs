//! Pickles as people save them (`scripts/probe/sklearn_pickles_fixtures.py`, scikit-learn 1.9.1): cross-validated logistic regressions
//! decide as there, a bare pickle can be saved by who knows its features, and what cannot be read says what to do instead.

use std::collections::BTreeMap;

use crate::fixtures::{self, PRECISIONS, assert_close, numbers};
use crate::made::{self, model};
use crate::pickles::{global, hex, import, program, text};
use judge_core::{
    Layer,
    request::{Pooling, Signal},
};
use judge_probe::pickle::Limits;
use judge_probe::{
    Error, FittedClassifier, FittedEstimator, ImportedFrom, Matrix, Precision, SavedProbe, SavedProbeError,
    SklearnProbe,
};
use serde_json::Value;

fn fixture() -> Value {
    fixtures::fixture("sklearn_pickles")
}

/// Cross-validated logistic regressions, a machine that votes, and what `joblib.dump` writes: whole, compressed, with and without aligned
/// arrays, and with all that a search keeps.
#[test]
fn classifiers_decide_as_scikit_learn_does_however_they_were_saved() {
    let fixture = fixture();
    let unseen = Matrix::new(numbers(&fixture["unseen"]), 3).unwrap();
    for (part, n_cases) in [("cross_validated", 5), ("others", 8)] {
        let cases = fixture[part].as_array().unwrap();
        assert_eq!(cases.len(), n_cases);
        for case in cases {
            let name = case["name"].as_str().unwrap();
            let probe = import(&hex(&case["pickle"])).unwrap_or_else(|error| panic!("{name}: {error}")).probe;
            assert_eq!(Value::from(probe.predict(&unseen).unwrap()), case["predict"], "{name}");
            let decision = probe.decision_function(&unseen).unwrap();
            assert_close(name, decision.values(), &numbers(&case["decision"]), 1e-12);
            if part == "cross_validated" {
                assert_eq!(Value::from(probe.classes().to_vec()), case["classes"], "{name}");
                let proba = probe.predict_proba(&unseen).unwrap().unwrap();
                assert_close(name, proba.values(), &numbers(&case["proba"]), 1e-12);
            }
        }
    }
}

/// A PCA makes double precision of what it is given, so that a scaler after it rounds nothing.
#[test]
fn scalers_after_principal_components_decide_as_scikit_learn_does() {
    let fixture = fixture();
    let unseen = Matrix::new(numbers(&fixture["unseen"]), 3).unwrap();
    let cases = fixture["reduced"].as_array().unwrap();
    assert_eq!(cases.len(), 2);
    for case in cases {
        let pickle = hex(&case["pickle"]);
        for (dtype, precision) in PRECISIONS {
            let probe = SklearnProbe::from_pickle(&pickle, &Limits::default(), precision).unwrap().probe;
            let ours = probe.decision_function(&unseen).unwrap();
            let name = format!("{}, {dtype}", case["name"]);
            assert_close(&name, ours.values(), &numbers(&case["decision"][dtype]), 1e-12);
        }
    }
}

#[test]
fn what_is_cut_or_too_large_of_joblibs_is_refused() {
    let fixture = fixture();
    let others = fixture["others"].as_array().unwrap();
    let of = |name: &str| hex(&others.iter().find(|case| case["name"] == name).unwrap()["pickle"]);
    let problem = |bytes: &[u8], limits: &Limits| match SklearnProbe::from_pickle(bytes, limits, Precision::F64) {
        Err(Error::Pickle(error)) => error.problem.to_string(),
        other => panic!("{other:?}"),
    };
    let (whole, most) = (of("joblib"), Limits::default());
    for end in 2..whole.len() {
        let problem = problem(&whole[..end], &most);
        assert!(
            problem.contains("more bytes needed") || problem.starts_with("the frame does not fit"),
            "{end}: {problem}"
        );
    }
    let shape = b"\x8c\x05shape\x94K\x02\x85";
    let at = whole.windows(shape.len()).position(|window| window == shape).unwrap();
    let mut longer = whole.clone();
    longer[at + 9] = 200;
    assert!(problem(&longer, &most).starts_with("1600 more bytes needed"));
    let small = Limits { pickle_bytes: whole.len() - 1, ..most };
    for (name, format) in [("joblib, zlib", "zlib"), ("joblib, gzip", "gzip")] {
        let bytes = of(name);
        assert!(bytes.len() < whole.len(), "{name}");
        let found = problem(&bytes, &small);
        assert!(found.starts_with("bytes of the pickle: at most"), "{name}: {found}");
        let cut = problem(&bytes[..bytes.len() - 9], &most);
        assert!(cut.starts_with(&format!("the compressed file ({format}) is damaged")), "{name}: {cut}");
    }
    let followed = [of("joblib, zlib"), b"!".to_vec()].concat();
    assert_eq!(problem(&followed, &most), "1 bytes follow the end of the pickle");
}

#[test]
fn what_cannot_be_read_says_what_to_do() {
    let fixture = fixture();
    let classes =
        "scikit-learn object: pickle.classes_: classes must be whole numbers, found the text [\"bad\", \"good\"]";
    for (name, said) in [
        ("joblib_bz2", "the file is compressed (bzip2)"),
        ("text_classes", "text (dtype \"U4\") is not read"),
        ("text_classes", "LabelEncoder"),
        ("object_classes", classes),
        ("joblib_objects", classes),
        ("dictionary", "scikit-learn object: pickle: expected a fitted scikit-learn object"),
        ("dictionary", "found a dictionary of [\"weights\", \"bias\"]"),
    ] {
        let error = import(&hex(&fixture[name])).unwrap_err().to_string();
        assert!(error.contains(said), "{name}: {error}");
    }
}

/// The entry `model` of a dictionary: a fitted classifier, without the announcement of its protocol and STOP.
fn entry_of_model() -> Vec<u8> {
    let model = hex(&fixture()["cross_validated"][0]["pickle"]);
    [&text("model")[..], &model[2..model.len() - 1]].concat()
}

/// A scaler beside a model would not be applied, so it is refused, whatever holds it; what else is not applied is named.
#[test]
fn what_stands_beside_a_model_is_not_left_out_in_silence() {
    let model = entry_of_model();
    let with = |key: &str, value: &[u8]| import(&program(&[&b"}("[..], &model, &text(key), value, b"u"].concat()));
    let scaler = [&global("sklearn.preprocessing._data", "StandardScaler")[..], b")\x81}b"].concat();
    let class = "sklearn.preprocessing._data.StandardScaler";
    let listed = [&b"]"[..], &scaler, b"a"].concat();
    let named = [&b"}"[..], &text("scaler"), &scaler, b"s"].concat();
    for value in [&scaler, &listed, &named] {
        match with("before", value) {
            Err(Error::Import(error)) => {
                assert_eq!(error.path, "pickle.before");
                assert!(error.problem.starts_with(class) && error.problem.contains("make_pipeline"), "{error}");
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(with("threshold", b"K\x01").unwrap().unread, ["threshold"]);
    assert!(with("threshold", b"N").unwrap().unread.is_empty());
}

/// Masked arrays, and arrays whose axes lie in an order of their own.
#[test]
fn arrays_of_other_forms_may_be_where_nothing_reads_them() {
    let masked =
        [&global("numpy.ma.core", "_mareconstruct")[..], &global("numpy.ma", "MaskedArray"), b"\x85R"].concat();
    let (dtype, eight_bytes) = (global("numpy", "dtype"), b"(C\x08\0\0\0\0\0\0\0\0");
    let ordered = [&global("numpy._core.numeric", "_frombuffer")[..], eight_bytes, &dtype, &text("f8")].concat();
    let ordered = [&ordered[..], b"\x89\x88\x87RK\x01K\x01K\x01\x87", &text("K"), b"K\0K\x02K\x01\x87tR"].concat();
    let model = entry_of_model();
    for array in [masked, ordered] {
        let beside = [&b"}("[..], &model, &text("cv_results"), &array, b"u"].concat();
        import(&program(&beside)).unwrap();
        let instead = [&b"}"[..], &text("model"), &array, b"s"].concat();
        match import(&program(&instead)) {
            Err(Error::Import(error)) => assert_eq!(error.path, "pickle.model"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_pickle_that_names_no_layers_is_saved_by_who_knows_them() {
    let fixture = fixture();
    for name in ["plain", "model_in_a_dictionary"] {
        let imported = || import(&hex(&fixture[name])).unwrap();
        assert!(imported().metadata.is_none());
        let from = ImportedFrom {
            model: Some(model(3)),
            signals: vec![(Layer(6), Signal::State(Pooling::Last))],
            aspect: Some("fluency".into()),
            template_id: Some("abc".into()),
        };
        let saved = imported().into_saved(from.clone()).unwrap();
        assert_eq!((&saved.origin().model, &saved.origin().signals), (&model(3), &from.signals));
        let notes: BTreeMap<&str, &str> =
            saved.origin().notes.iter().map(|(name, note)| (name.as_str(), note.as_str())).collect();
        let expected = [
            ("aspect", "fluency"),
            ("sklearn_version", "1.9.1"),
            ("source", "scikit-learn pickle"),
            ("template_id", "abc"),
        ];
        assert_eq!(notes, BTreeMap::from(expected));
        assert_eq!(SavedProbe::from_bytes(&saved.to_bytes().unwrap()).unwrap(), saved);

        let problem = |from: ImportedFrom| made::problem(imported().into_saved(from));
        let no_signals = problem(ImportedFrom { signals: Vec::new(), ..from.clone() });
        assert!(no_signals.starts_with("the pickle does not say the layers"), "{no_signals}");
        let no_model = problem(ImportedFrom { model: None, ..from.clone() });
        assert!(no_model.starts_with("the pickle does not say the model"), "{no_model}");
        let too_wide = problem(ImportedFrom { model: Some(model(4)), ..from });
        assert_eq!(too_wide, "last of layer 6 cannot be 3 features: a state of the model has 4 coordinates");
    }
}

#[test]
fn a_pickle_in_place_of_a_saved_probe_is_named() {
    let error = SavedProbe::from_bytes(&hex(&fixture()["plain"])).unwrap_err();
    assert_eq!(error, Error::SavedProbe(SavedProbeError::Pickle));
    assert!(error.to_string().contains("into_saved"), "{error}");
}

#[test]
fn a_probe_finds_its_signals_among_those_offered() {
    let state = |layer, pooling| (Layer(layer), Signal::State(pooling));
    let signals = vec![state(4, Pooling::Mean), state(2, Pooling::Last), state(4, Pooling::Last)];
    let from = ImportedFrom { model: Some(model(1)), signals, ..ImportedFrom::default() };
    let probe = import(&hex(&fixture()["plain"])).unwrap().into_saved(from).unwrap();
    let offered = [2, 3, 4].map(|layer| [state(layer, Pooling::Last), state(layer, Pooling::Mean)]).concat();
    assert_eq!(probe.places_of(&offered).unwrap(), [5, 0, 4]);

    let few = [state(2, Pooling::Last), state(3, Pooling::Mean)];
    let error = probe.places_of(&few).unwrap_err();
    assert_eq!(
        error.to_string(),
        "saved probe: the probe reads mean of layer 4; last of layer 4, which is not there: found last of layer 2; mean of layer 3"
    );
}
