//! Searches and labels as people have them (`scripts/probe/sklearn_searches_fixtures.py`, scikit-learn 1.0.2, 1.3.2 and 1.9.1): what a
//! search drags along is not looked into, and the best estimator decides as there.

use crate::fixtures::{assert_close, fixture, numbers};
use crate::pickles::{global, hex, import, program, text};
use judge_probe::pickle::{self, Limits, Problem};
use judge_probe::{FittedClassifier, FittedEstimator, Matrix};
use serde_json::Value;

fn fixtures() -> [Value; 3] {
    ["1.0.2", "1.3.2", "1.9.1"].map(|release| fixture(&format!("sklearn_searches_{release}")))
}

#[test]
fn best_estimators_decide_as_scikit_learn_does_whatever_the_search_keeps() {
    for fixture in fixtures() {
        let unseen = Matrix::new(numbers(&fixture["unseen"]), 4).unwrap();
        let cases = fixture["cases"].as_array().unwrap();
        assert_eq!(cases.len(), 28);
        for case in cases {
            let name = format!("{} of {}", case["name"], fixture["release"]);
            let found = import(&hex(&case["pickle"])).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(Value::from(found.probe.predict(&unseen).unwrap()), case["predict"], "{name}");
            let decision = found.probe.decision_function(&unseen).unwrap();
            assert_close(&name, decision.values(), &numbers(&case["decision"]), 1e-9);
            if let Some(score) = case["best_score"].as_f64() {
                assert_eq!(found.search.unwrap().best_score, score, "{name}");
            }
        }
    }
}

#[test]
fn scores_and_settings_of_a_search_are_told() {
    for fixture in fixtures() {
        let search = |name: &str| {
            let case = fixture["cases"].as_array().unwrap().iter().find(|case| case["name"] == name).unwrap();
            import(&hex(&case["pickle"])).unwrap().search.unwrap()
        };
        assert_eq!(search("make_scorer").scoring, "cohen_kappa_score");
        assert_eq!(search("a score of numbers").scoring, "neg_mean_absolute_error");
        assert_eq!(search("several scores").scoring, "f1_macro");
        assert_eq!(search("a dictionary").best_params[0].1, "{1: 2.0, 2: 1.0, 3: 1.0}");
        assert_eq!(search("a candidate that cannot be fitted").best_params[0].1, "l2");
        assert_eq!(search("RepeatedStratifiedKFold").fold_scores.len(), 6);
    }
}

/// The bytes that Python would write for an object of this class with one attribute, which a foreign call makes.
fn object_with(module: &str, class: &str, attribute: &str) -> Vec<u8> {
    let call = [global("posix", "system"), text("true"), b"\x85R".to_vec()].concat();
    program(&[global(module, class), b")\x81}".to_vec(), text(attribute), call, b"sb".to_vec()].concat())
}

#[test]
fn foreign_values_are_refused_wherever_an_estimator_is_read() {
    let search = ("sklearn.model_selection._search", "GridSearchCV");
    let classifier = ("sklearn.linear_model._logistic", "LogisticRegression");
    let read = |(module, class), attribute| {
        pickle::read(&object_with(module, class, attribute), &Limits::default()).map(|_| ())
    };
    for attribute in ["cv", "estimator", "scorer_", "scoring", "cv_results_"] {
        assert_eq!(read(search, attribute), Ok(()), "{attribute}");
    }
    assert_eq!(read(classifier, "random_state"), Ok(()));
    for (class, attribute) in [(search, "best_estimator_"), (classifier, "coef_"), (classifier, "classes_")] {
        let error = read(class, attribute).unwrap_err();
        let foreign = Problem::ForeignGlobal { module: "posix".to_owned(), name: "system".to_owned() };
        assert_eq!((error.problem, error.opcode), (foreign, "GLOBAL"), "{attribute}");
    }
}
