//! Checks of the contracts in this crate, for those who implement its traits.
//!
//! It owns one check for classifiers, and the breaches that it reports. Regressors and transformers have none. The data are
//! made here by integer formulas, so that a breach is the same on every machine, and nothing is random.

mod breach;

pub use breach::ContractBreach;

use crate::{Classifier, Error, FittedClassifier, FittedEstimator, Matrix, Predictions};

/// Checks that settings do what [`Classifier`] promises, that is what [`Estimator`](crate::Estimator) does, and what they fit what
/// [`FittedClassifier`] does, on 36 rows of 4 features made up here of two and of three classes far apart.
///
/// * The classes are those of the labels, whatever integers these are; results have the shapes promised.
/// * Most rows are predicted right, and `predictions` says what `predict` and `predict_proba` say.
/// * Probabilities sum to 1; the class predicted is the most probable and has the greatest decision.
/// * Fitting again gives the same to the bit; so do rows in another order and one by one. Settings fitted together give what each gives
///   alone, but for rounding.
/// * Labels too few or too many, a single class and features of another number are refused, each with its error.
///
/// ```
/// use judge_probe::testing::check_estimator;
/// use judge_probe::{LogisticRegression, Pipeline, StandardScaler};
///
/// check_estimator(&Pipeline { transformer: StandardScaler::default(), estimator: LogisticRegression::default() })?;
/// # Ok::<(), judge_probe::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Contract`] with the first breach found; what an estimator reports where it should not.
pub fn check_estimator(settings: &impl Classifier) -> Result<(), Error> {
    for classes in [&[3, 9][..], &[-2, 1, 7], &[i64::MIN, 0, i64::MAX]] {
        check_classes(settings, classes)?;
    }
    Ok(())
}

/// As few rows as a class of each kind can be learnt from: contracts are to be checked in every test run.
const N_ROWS: usize = 36;
/// Two that tell classes apart and two of noise alone, so that an estimator has something to leave out.
const N_FEATURES: usize = 4;

/// Row by row the position of its class: unequal counts, in no order.
/// Squares mod 7 are 0, 1, 4 and 2: the counts are unequal by themselves, and the same for any names of the classes.
fn position(row: usize, n_classes: usize) -> usize {
    (row * row % 7) % n_classes
}

/// Noise from -0.5 to 0.5; in the first feature each class is 4 above the one before it, in the third the second class 4 above the others.
/// Both lie about 0, for estimators without an intercept. `[36, 4]`, from row and feature alone.
fn features(n_classes: usize) -> Result<Matrix, Error> {
    let value = |row: usize, feature: usize| {
        let noise = (row * 37 + feature * 61 + row * feature * 17) % 101;
        let position = position(row, n_classes);
        let told = match feature {
            0 => 4.0 * position as f64 - 2.0 * (n_classes - 1) as f64,
            2 if position == 1 => 2.0,
            2 => -2.0,
            _ => 0.0,
        };
        noise as f64 / 100.0 - 0.5 + told
    };
    Matrix::new((0..N_ROWS * N_FEATURES).map(|i| value(i / N_FEATURES, i % N_FEATURES)).collect(), N_FEATURES)
}

/// All checks with labels of these classes, which may be any integers.
///
/// `classes` are ascending, two or more. Cheap checks come first, and what an estimator does with wrong input last. Each call
/// fits 4 times to all rows, besides what should be refused, and predicts the rows one by one.
fn check_classes<C: Classifier>(settings: &C, classes: &[i64]) -> Result<(), Error> {
    let features = features(classes.len())?;
    // The labels run through all classes, in no order.
    let labels: Vec<i64> = (0..N_ROWS).map(|row| classes[position(row, classes.len())]).collect();
    let fitted = settings.fit(&features, &labels)?;
    if fitted.classes() != classes {
        let breach = ContractBreach::Classes { expected: classes.to_vec(), found: fitted.classes().to_vec() };
        return Err(breach.into());
    }
    let expected = (N_ROWS, N_FEATURES);
    check_shape("n_features", expected, (N_ROWS, fitted.n_features()))?;

    let results = Results::of(&fitted, &features)?;
    results.check(classes)?;
    let right = results.predicted.iter().zip(&labels).filter(|(ours, label)| ours == label).count();
    // scikit-learn asks for 83 %; the commonest class has 72 %.
    if right * 6 < N_ROWS * 5 {
        return Err(ContractBreach::NotLearnt { right, n_rows: N_ROWS }.into());
    }

    // Bits are compared, since a probe saved today must be the one fitted tomorrow.
    let again = Results::of(&settings.fit(&features, &labels)?, &features)?;
    results.compare(&again, "fitted again", 0.0)?;
    // A row's result must not depend on its neighbours: predictions are made in blocks elsewhere.
    let reversed: Vec<usize> = (0..N_ROWS).rev().collect();
    let backwards = Results::of(&fitted, &features.select_rows(&reversed)?)?;
    results.rows(&reversed)?.compare(&backwards, "among rows in another order", 0.0)?;
    for row in 0..N_ROWS {
        let alone = Results::of(&fitted, &features.select_rows(&[row])?)?;
        results.rows(&[row])?.compare(&alone, "alone", 0.0)?;
    }
    let together = C::fit_each(&[settings.clone(), settings.clone()], &features, &labels);
    if together.len() != 2 {
        return Err(Error::FittedCount { expected: 2, found: together.len() });
    }
    for fitted in together {
        results.compare(&Results::of(&fitted?, &features)?, "fitted with others", ROUNDING)?;
    }
    check_refusals(settings, &fitted, &features, &labels)
}

/// By which results may differ, relative to their size, where that is allowed.
/// Settings that are fitted together may share sums, and iterations may end a little elsewhere; a wrong result is off by far
/// more.
const ROUNDING: f64 = 1e-6;

/// What must be refused, and how: an estimator that learns from labels that are not there learns something else than it was asked to.
///
/// Errors are compared with those promised, not only that there is one: a caller may tell cases apart by them. Labels of zero
/// length are among them, and both [`fit`](crate::Estimator::fit) and [`fit_each`](crate::Estimator::fit_each) are tried.
fn check_refusals<C: Classifier>(
    settings: &C,
    fitted: &C::Fitted,
    features: &Matrix,
    labels: &[i64],
) -> Result<(), Error> {
    // One too few, twice as many and none at all: a shorter list must not be filled up, nor a longer one cut.
    let too_many: Vec<i64> = labels.iter().chain(labels).copied().collect();
    for (given, labels) in [("too few labels", &labels[1..]), ("too many labels", &too_many), ("no labels", &[])] {
        let expected = Error::RowCount { n_rows: N_ROWS, what: "labels", found: labels.len() };
        refuses(given, expected.clone(), settings.fit(features, labels).err())?;
        let each = C::fit_each(std::slice::from_ref(settings), features, labels).into_iter().next();
        refuses(given, expected, each.and_then(Result::err))?;
    }
    // Data of one class, which would make any rule right.
    let alike = vec![labels[0]; N_ROWS];
    refuses("one class", Error::OneClass { class: labels[0] }, settings.fit(features, &alike).err())?;

    // One too few and one too many: a product of slices may take the shorter for granted.
    for found in [N_FEATURES - 1, N_FEATURES + 1] {
        let other = Matrix::new(vec![1.0; found], found)?;
        let expected = || Error::FeatureCount { expected: N_FEATURES, found };
        let given = "another number of features";
        refuses(given, expected(), fitted.decision_function(&other).err())?;
        refuses(given, expected(), fitted.predict(&other).err())?;
        match fitted.predict_proba(&other) {
            Ok(None) => {}
            refused => refuses(given, expected(), refused.err())?,
        }
    }
    Ok(())
}

/// The refusal found must be the one expected, field for field.
/// `None` stands for data that were accepted.
fn refuses(given: &'static str, expected: Error, found: Option<Error>) -> Result<(), ContractBreach> {
    if found.as_ref() == Some(&expected) {
        return Ok(());
    }
    Err(ContractBreach::Refusal { given, expected: expected.to_string(), found: found.map(|error| error.to_string()) })
}

/// Rows and columns, both.
/// Numbers of rows come first in both pairs.
fn check_shape(method: &'static str, expected: (usize, usize), found: (usize, usize)) -> Result<(), ContractBreach> {
    if expected == found { Ok(()) } else { Err(ContractBreach::Shape { method, expected, found }) }
}

/// The names of methods in breaches.
const DECISION: &str = "decision_function";
const PREDICT: &str = "predict";
const PROBABILITIES: &str = "predict_proba";

/// What a fitted classifier says of some rows.
/// Kept as matrices, so that two of them can be compared bit by bit.
struct Results {
    /// `[n_rows]`.
    predicted: Vec<i64>,
    /// `[n_rows, 1]` of two classes, else `[n_rows, n_classes]`.
    decisions: Matrix,
    /// `[n_rows, n_classes]`; `None` where the classifier knows none.
    probabilities: Option<Matrix>,
}

impl Results {
    /// Asks for everything, and checks the shapes; columns of decisions are one for two classes.
    fn of(fitted: &impl FittedClassifier, features: &Matrix) -> Result<Self, Error> {
        let (n_rows, n_classes) = (features.n_rows(), fitted.classes().len());
        let results = Self {
            predicted: fitted.predict(features)?,
            decisions: fitted.decision_function(features)?,
            probabilities: fitted.predict_proba(features)?,
        };
        if fitted.predictions(features)? != Predictions::of_classifier(fitted, features)? {
            return Err(ContractBreach::Predictions.into());
        }
        // As scikit-learn's `decision_function`, but with a matrix of one column where that has a vector.
        let n_decisions = if n_classes == 2 { 1 } else { n_classes };
        let shape = |matrix: &Matrix| (matrix.n_rows(), matrix.n_features());
        check_shape(PREDICT, (n_rows, 1), (results.predicted.len(), 1))?;
        check_shape(DECISION, (n_rows, n_decisions), shape(&results.decisions))?;
        if let Some(probabilities) = &results.probabilities {
            check_shape(PROBABILITIES, (n_rows, n_classes), shape(probabilities))?;
        }
        Ok(results)
    }

    /// Probabilities are such, and all speak for the class predicted, up to rounding.
    ///
    /// Of two classes the decision must be above 0 for the second and not for the first. Sums of probabilities may be off by
    /// 1e-9; ties are allowed to go either way within [`ROUNDING`].
    fn check(&self, classes: &[i64]) -> Result<(), ContractBreach> {
        for (row, (&class, decisions)) in self.predicted.iter().zip(self.decisions.rows()).enumerate() {
            let disagreement =
                |method, values: &[f64]| ContractBreach::Disagreement { method, row, class, values: values.to_vec() };
            let position = classes.iter().position(|&other| other == class).ok_or(disagreement(PREDICT, &[]))?;
            let greatest = |values: &[f64]| values.iter().all(|value| values[position] >= value - ROUNDING);
            let agrees = match decisions {
                [value] => (*value > 0.0) == (position == 1),
                values => greatest(values),
            };
            if !agrees {
                return Err(disagreement(DECISION, decisions));
            }
            let Some(probabilities) = self.probabilities.as_ref().and_then(|matrix| matrix.rows().nth(row)) else {
                continue;
            };
            let sum: f64 = probabilities.iter().sum();
            if probabilities.iter().any(|p| *p < 0.0) || (sum - 1.0).abs() > 1e-9 {
                return Err(ContractBreach::Probabilities { row, probabilities: probabilities.to_vec() });
            }
            if !greatest(probabilities) {
                return Err(disagreement(PROBABILITIES, probabilities));
            }
        }
        Ok(())
    }

    /// The results of these rows, as if they alone had been asked about.
    /// No estimator is asked.
    fn rows(&self, rows: &[usize]) -> Result<Self, Error> {
        Ok(Self {
            predicted: rows.iter().map(|&row| self.predicted[row]).collect(),
            decisions: self.decisions.select_rows(rows)?,
            probabilities: self.probabilities.as_ref().map(|matrix| matrix.select_rows(rows)).transpose()?,
        })
    }

    /// `tolerance` is relative to numbers above 1; 0 compares bits, but for the sign of 0.
    ///
    /// Classes must be equal whatever the tolerance is. NaN is in no matrix, so differences are numbers. Probabilities on one
    /// side alone are a breach of shape.
    fn compare(&self, other: &Self, when: &'static str, tolerance: f64) -> Result<(), ContractBreach> {
        let changed = |method, row, expected: &[f64], found: &[f64]| ContractBreach::Changed {
            method,
            row,
            when,
            expected: expected.to_vec(),
            found: found.to_vec(),
        };
        for (row, (ours, theirs)) in self.predicted.iter().zip(&other.predicted).enumerate() {
            if ours != theirs {
                return Err(changed(PREDICT, row, &[*ours as f64], &[*theirs as f64]));
            }
        }
        // Decisions first: probabilities are made of them in most classifiers, so that a difference shows at its source.
        let pairs = [
            (DECISION, Some(&self.decisions), Some(&other.decisions)),
            (PROBABILITIES, self.probabilities.as_ref(), other.probabilities.as_ref()),
        ];
        for (method, ours, theirs) in pairs {
            let (ours, theirs) = match (ours, theirs) {
                (Some(ours), Some(theirs)) => (ours, theirs),
                (None, None) => continue,
                (ours, theirs) => {
                    let shape = |matrix: Option<&Matrix>| matrix.map_or((0, 0), |m| (m.n_rows(), m.n_features()));
                    return check_shape(method, shape(ours), shape(theirs));
                }
            };
            for (row, (ours, theirs)) in ours.rows().zip(theirs.rows()).enumerate() {
                let near = |(ours, theirs): (&f64, &f64)| (ours - theirs).abs() <= tolerance * ours.abs().max(1.0);
                if !ours.iter().zip(theirs).all(near) {
                    return Err(changed(method, row, ours, theirs));
                }
            }
        }
        Ok(())
    }
}
