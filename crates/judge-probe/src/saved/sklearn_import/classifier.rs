//! The linear classifiers: their attributes checked against each other, then reduced to weights and intercepts.
//!
//! All linear classifiers come to f(x) = W x + b with a [`DecisionRule`] for the values of f:
//!
//! | class | `W` | rule |
//! |---|---|---|
//! | `LogisticRegression`, `LogisticRegressionCV` | `coef_` | `Logistic` |
//! | `LinearSVC` | `coef_` | `OneVsRest` |
//! | `SVC(kernel="linear")` | dual coefficients times support vectors | `OneVsOne` |
//!
//! Probabilities of an `SVC(probability=True)`, which are Platt's sigmoids fitted by an inner cross-validation, are not read: they can
//! contradict its own classes.

use super::ImportError;
use super::place::Place;
use crate::pickle::{Limits, Value};
use crate::{DecisionRule, Error, FittedEstimator, LinearClassifier, Matrix};

/// The classifier that a fitted object of scikit-learn's is.
///
/// Classes come first, because the number of functions follows from them.
///
/// # Errors
///
/// For another class of object, and those of its attributes. A subclass has another name and is refused.
pub(super) fn classifier(place: &Place<'_, '_>, limits: &Limits) -> Result<LinearClassifier, Error> {
    let classes = classes(&place.get("classes_")?)?;
    let classifier = match place.object()?.class() {
        "sklearn.linear_model._logistic.LogisticRegression" | "sklearn.linear_model._logistic.LogisticRegressionCV" => {
            check_multinomial(place, classes.len())?;
            linear(place, DecisionRule::Logistic, classes)?
        }
        "sklearn.svm._classes.LinearSVC" => linear(place, DecisionRule::OneVsRest, classes)?,
        "sklearn.svm._classes.SVC" => one_vs_one(place, classes, limits.array_elements)?,
        _ => return Err(place.unexpected("LogisticRegression, LogisticRegressionCV, LinearSVC or SVC").into()),
    };
    check_n_features(place, classifier.n_features())?;
    Ok(classifier)
}

/// Where an object says how many features it was fitted on, that must be as many as it has coefficients.
///
/// A pickle without the statement is accepted.
pub(super) fn check_n_features(place: &Place<'_, '_>, expected: usize) -> Result<(), ImportError> {
    match place.find("n_features_in_") {
        Some(said) if said.count()? != expected => Err(said.count_error("features", expected, said.count()?)),
        _ => Ok(()),
    }
}

/// `classes_`: whole numbers, ascending, two or more. Texts are refused by name, with those found: they have no order and no distance,
/// which a judge's grades need.
///
/// The order is what `numpy.unique` gives at fitting, and rows of `coef_` follow it.
fn classes(place: &Place<'_, '_>) -> Result<Vec<i64>, ImportError> {
    if let Some(found) = place.texts().filter(|texts| !texts.is_empty()) {
        return Err(place.error(format!(
            "classes must be whole numbers, found the text {found:?}: fit with whole numbers, e.g. by sklearn.preprocessing.LabelEncoder"
        )));
    }
    let classes = place.integers()?;
    if classes.len() < 2 || classes.windows(2).any(|pair| pair[0] >= pair[1]) {
        let found = &classes[..classes.len().min(8)];
        return Err(place.error(format!("expected two or more ascending classes, found {found:?}")));
    }
    Ok(classes)
}

/// `coef_` and `intercept_` as they stand: one row for two classes, else one a class.
///
/// The shapes are `[1, n_features]` and `[1]` for two classes, `[n_classes, n_features]` and `[n_classes]` for more. With two classes a
/// positive value means the second.
///
/// The coefficients are not scaled back: a scaler before the classifier stays a stage of its own, so that rounding is the same as in
/// Python.
fn linear(place: &Place<'_, '_>, rule: DecisionRule, classes: Vec<i64>) -> Result<LinearClassifier, Error> {
    let n_functions = rule.n_functions(classes.len());
    let coef = place.get("coef_")?;
    let [_, n_features] = coef.shape()?;
    let weights = coef.floats(&[n_functions, n_features])?;
    let intercept = place.get("intercept_")?;
    let intercepts = match intercept.value {
        // What LinearSVC has that was fitted without one.
        Value::Float(_) => vec![intercept.number()?; n_functions],
        _ => intercept.floats(&[n_functions])?,
    };
    LinearClassifier::from_parts(rule, classes, Matrix::new(weights, n_features)?, intercepts)
}

/// Old releases could fit several classes one against the rest, or two by a softmax of both; the decisions are the same, the probabilities
/// are not.
///
/// With two classes one sigmoid σ(f) is followed; `multinomial` would give a softmax of (−f, f), which is σ(2f). With more classes one
/// softmax is followed; `ovr`, and left to itself the solver `liblinear`, and before release 1.6 `newton-cholesky`, would give sigmoids,
/// divided by their sum. A pickle without the setting is of a release that has only the followed behaviour.
fn check_multinomial(place: &Place<'_, '_>, n_classes: usize) -> Result<(), ImportError> {
    let Some(multi_class) = place.find("multi_class") else { return Ok(()) };
    let setting = multi_class.text()?;
    let followed = match setting.as_str() {
        "auto" | "deprecated" if n_classes > 2 => return check_solver(place),
        "auto" | "deprecated" | "ovr" | "warn" => n_classes == 2, // `warn`, the default before 0.22, meant `ovr`
        "multinomial" => n_classes > 2,
        _ => false,
    };
    if followed {
        Ok(())
    } else {
        Err(multi_class.setting_error("one sigmoid for two classes, one softmax for more", &setting))
    }
}

/// Refuses a solver that fitted three classes or more one against the rest, because that was left to it.
fn check_solver(place: &Place<'_, '_>) -> Result<(), ImportError> {
    let solver = place.get("solver")?;
    let setting = solver.text()?;
    let softmax = match setting.as_str() {
        "liblinear" => false,
        "newton-cholesky" => release(place)? >= (1, 6),
        _ => true,
    };
    if softmax {
        Ok(())
    } else {
        Err(solver.setting_error("a solver that fits one softmax of three classes or more, such as lbfgs", &setting))
    }
}

/// The first two numbers of the release that fitted an object, so that `1.8.dev0` and `1.8.0rc1` are release 1.8.
///
/// # Errors
///
/// The version must be there. It is asked for only where the answer changes a prediction.
pub(super) fn release(place: &Place<'_, '_>) -> Result<(u32, u32), ImportError> {
    let version = place.get("_sklearn_version")?;
    let text = version.text()?;
    let mut numbers = text.split('.').map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => Ok((major, minor)),
        _ => Err(version.setting_error("a release such as 1.6.0", &text)),
    }
}

/// libsvm's decision between every two classes i < j, folded from its support vectors into one weight vector.
///
/// The underscored attributes carry libsvm's signs: a pair's function is above 0 for class i.
///
/// With αᵣᵥ the dual coefficient in row r of support vector v, the function of the pair is
///
/// ```text
/// f_ij(x) = Σ_{v of class i} α[j−1, v] ⟨v, x⟩ + Σ_{v of class j} α[i, v] ⟨v, x⟩ + b_ij
/// ```
///
/// (the layout of `sv_coef` in libsvm's README), linear in x, so that the sums over v can be done once. Folding takes (n_classes − 1) ·
/// n_vectors · n_features multiplications; predicting then takes as many as there are weights instead of support vectors. Sums run in the
/// file's order, so results differ from libsvm's by rounding only.
///
/// Pairs are in libsvm's order (0, 1), (0, 2), …, (1, 2), …. `dual_coef_` and `intercept_`, without the underscore, have their signs
/// turned round for two classes and are not read.
///
/// The number of weights is bounded by the limit of array elements before there is room made for them: it grows with the square of the
/// classes.
///
/// # Errors
///
/// For another kernel, sparse vectors, or with three classes or more `break_ties=True`, which changes which
/// class wins a tie of votes, and `decision_function_shape="ovo"`, which shows a decision for each pair.
fn one_vs_one(place: &Place<'_, '_>, classes: Vec<i64>, most: usize) -> Result<LinearClassifier, Error> {
    let n_classes = classes.len();
    let kernel = place.get("kernel")?;
    if kernel.text()? != "linear" {
        return Err(kernel.setting_error("a linear kernel", &kernel.text()?).into());
    }
    place.check_off("_sparse", "a fit on dense features")?;
    if n_classes > 2 {
        // Classes are voted for by all pairs either way, but decisions are shown for each class.
        let shape = place.get("decision_function_shape")?;
        if shape.text()? != "ovr" {
            let expected = "ovr (set_params(decision_function_shape=\"ovr\") before saving needs no new fit)";
            return Err(shape.setting_error(expected, &shape.text()?).into());
        }
        place.check_off("break_ties", "ties that go to the first class")?;
    }

    let support = place.get("support_vectors_")?;
    let [n_vectors, n_features] = support.shape()?;
    let vectors = support.floats(&[n_vectors, n_features])?;
    let dual_coef = place.get("_dual_coef_")?.floats(&[n_classes - 1, n_vectors])?;
    let rule = DecisionRule::OneVsOne;
    let intercepts = place.get("_intercept_")?.floats(&[rule.n_functions(n_classes)])?;
    let starts = starts(&place.get("_n_support")?, n_classes, n_vectors)?;

    let n_weights = intercepts.len().saturating_mul(n_features);
    if n_weights > most {
        return Err(support.error(format!("at most {most} weights allowed, found {n_weights}")).into());
    }
    let mut weights = vec![0.0; n_weights];
    let pairs = (0..n_classes).flat_map(|i| (i + 1..n_classes).map(move |j| (i, j)));
    for ((i, j), weights) in pairs.zip(weights.chunks_exact_mut(n_features)) {
        // Row j − 1 of the dual coefficients holds class i's against j, row i holds class j's against i.
        for (class, row) in [(i, j - 1), (j, i)] {
            for vector in starts[class]..starts[class + 1] {
                let dual = dual_coef[row * n_vectors + vector];
                let values = &vectors[vector * n_features..][..n_features];
                weights.iter_mut().zip(values).for_each(|(weight, value)| *weight += dual * value);
            }
        }
    }
    LinearClassifier::from_parts(rule, classes, Matrix::new(weights, n_features)?, intercepts)
}

/// Where each class's support vectors begin, and where the last ends.
///
/// Support vectors are stored class by class. The result has n_classes + 1 entries, the first 0 and the last n_vectors, and does not fall.
fn starts(n_support: &Place<'_, '_>, n_classes: usize, n_vectors: usize) -> Result<Vec<usize>, ImportError> {
    let counts = n_support.integers()?;
    if counts.len() != n_classes {
        return Err(n_support.count_error("classes", n_classes, counts.len()));
    }
    let mut starts = vec![0];
    let mut end = 0usize;
    for (index, &count) in counts.iter().enumerate() {
        let count = usize::try_from(count).map_err(|_| n_support.number_error("at least 0", index, count as f64))?;
        end = end.saturating_add(count);
        starts.push(end);
    }
    if end != n_vectors {
        return Err(n_support.count_error("support vectors", n_vectors, end));
    }
    Ok(starts)
}
