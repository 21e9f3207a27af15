use crate::{Error, Matrix};

/// Settings of something that learns a map between feature spaces, such as [`StandardScaler`](crate::StandardScaler).
///
/// Equal settings fitted on equal features give equal maps; a [`Pipeline`](crate::Pipeline) relies on it to transform only once.
pub trait Transformer: Clone + PartialEq + Sync {
    /// The map learnt.
    type Fitted: FittedTransformer + Clone;

    /// Learns from features `[n_rows, n_features]`.
    ///
    /// # Errors
    ///
    /// Those of the transformer: settings out of range, features it is undefined for.
    fn fit(&self, features: &Matrix) -> Result<Self::Fitted, Error>;
}

/// A map between feature spaces, row by row: a row's image does not depend on the others'.
pub trait FittedTransformer: Send + Sync {
    /// Features that a row must have.
    fn n_features_in(&self) -> usize;

    /// Features that its image has.
    fn n_features_out(&self) -> usize;

    /// Maps `[n_rows, n_features_in]` to `[n_rows, n_features_out]`.
    ///
    /// # Errors
    ///
    /// [`Error::FeatureCount`]; [`Error::NonFiniteFeature`] where an image overflows.
    fn transform(&self, features: &Matrix) -> Result<Matrix, Error>;
}

/// Settings of something that learns to tell classes apart.
pub trait Classifier: Clone + Sync {
    /// The classifier learnt.
    type Fitted: FittedClassifier;

    /// Learns from features `[n_rows, n_features]` and the class of each row. Any integers name classes; there must be two or more.
    ///
    /// # Errors
    ///
    /// [`Error::LabelCount`], [`Error::OneClass`], and those of the classifier.
    fn fit(&self, features: &Matrix, labels: &[i64]) -> Result<Self::Fitted, Error>;

    /// Fits several settings to the same data; results in their order, each as [`fit`](Self::fit) gives it but for rounding.
    ///
    /// Here one after another; an estimator overrides it where settings can share work.
    fn fit_each(settings: &[Self], features: &Matrix, labels: &[i64]) -> Vec<Result<Self::Fitted, Error>> {
        settings.iter().map(|settings| settings.fit(features, labels)).collect()
    }
}

/// A classifier that knows its classes. Rows are judged one by one: a row's result does not depend on the others'.
pub trait FittedClassifier: Send + Sync {
    /// The classes, ascending, two or more.
    fn classes(&self) -> &[i64];

    /// Features that a row must have.
    fn n_features(&self) -> usize;

    /// What the classifier decides by. Of two classes one column, `[n_rows, 1]`, above 0 for the second; of more `[n_rows, n_classes]`,
    /// greatest for the class predicted. Any unit. One rule keeps to scikit-learn where that departs from this:
    /// [`DecisionRule::OneVsOne`](crate::DecisionRule::OneVsOne), where votes are tied.
    ///
    /// # Errors
    ///
    /// [`Error::FeatureCount`]; [`Error::NonFiniteFeature`] where a value overflows (of the decisions: row and column).
    fn decision_function(&self, features: &Matrix) -> Result<Matrix, Error>;

    /// The class of each row.
    ///
    /// # Errors
    ///
    /// As [`decision_function`](Self::decision_function).
    fn predict(&self, features: &Matrix) -> Result<Vec<i64>, Error>;

    /// The probability of each class, `[n_rows, n_classes]`, rows summing to 1; `None` where the classifier knows no probabilities.
    ///
    /// # Errors
    ///
    /// As [`decision_function`](Self::decision_function).
    fn predict_proba(&self, features: &Matrix) -> Result<Option<Matrix>, Error>;

    /// Each row's class as a number on the scale of the classes: the mean of them under their probabilities; `None` where there are none.
    ///
    /// Isotonic regression, fitted to rows that the classifier has not learnt from, carries it to the scale of people's scores:
    ///
    /// ```
    /// use judge_metrics::calibration::IsotonicRegression;
    /// use judge_probe::{Classifier, FittedClassifier, Matrix, OrdinalRegression};
    ///
    /// # fn main() -> Result<(), judge_probe::Error> {
    /// let features = Matrix::from_rows([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]])?;
    /// let probe = OrdinalRegression::default().fit(&features, &[1, 1, 2, 2, 3, 3])?;
    ///
    /// let held_out = Matrix::from_rows([[0.5], [2.5], [4.5]])?;
    /// let scores = probe.expected_classes(&held_out)?.unwrap_or_default();
    /// let calibrator = IsotonicRegression::default().fit(&scores, &[10.0, 40.0, 90.0])?;
    /// let between = probe.expected_classes(&Matrix::from_rows([[3.5]])?)?.unwrap_or_default();
    /// let calibrated = calibrator.predict(&between)?[0];
    /// assert!(calibrated > 40.0 && calibrated < 90.0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`decision_function`](Self::decision_function).
    fn expected_classes(&self, features: &Matrix) -> Result<Option<Vec<f64>>, Error> {
        let mean = |p: &[f64]| self.classes().iter().zip(p).map(|(&class, p)| class as f64 * p).sum();
        Ok(self.predict_proba(features)?.map(|probabilities| probabilities.rows().map(mean).collect()))
    }
}
