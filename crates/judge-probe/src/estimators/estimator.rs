//! The traits that everything here is written against, after scikit-learn's: settings are fitted, what is fitted predicts.

use crate::{Error, Matrix, Predictions, ProbabilityTable};

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

/// Settings of something that learns labels from features: a classifier, whose labels are classes (`i64`), or a regressor, whose labels
/// are numbers such as the mean of several people's scores (`f64`).
///
/// Everything that fits and compares estimators takes either: [`Pipeline`](crate::Pipeline), [`cross_val_score`](crate::cross_val_score),
/// [`cross_val_predict`](crate::cross_val_predict), [`GridSearch`](crate::GridSearch) and [`LayerSelection`](crate::LayerSelection). The
/// type of the labels decides what may score predictions, see [`Scorer`](crate::Scorer).
#[doc(alias = "BaseEstimator")]
pub trait Estimator: Clone + Sync {
    /// What is learnt and predicted of a row.
    type Label: Copy + Send + Sync;

    /// What has learnt.
    type Fitted: FittedEstimator<Label = Self::Label>;

    /// Learns from features `[n_rows, n_features]` and the label of each row. A classifier takes any integers as classes, and needs two or
    /// more; a regressor takes finite numbers.
    ///
    /// # Errors
    ///
    /// [`Error::RowCount`]; of a classifier [`Error::OneClass`], of a regressor [`Error::NonFiniteTarget`]; and those of the estimator.
    fn fit(&self, features: &Matrix, labels: &[Self::Label]) -> Result<Self::Fitted, Error>;

    /// Fits several settings to the same data; results in their order, each as [`fit`](Self::fit) gives it but for rounding, or what a
    /// tolerance among its settings leaves open.
    ///
    /// Here one after another; an estimator overrides it where settings can share work.
    fn fit_each(settings: &[Self], features: &Matrix, labels: &[Self::Label]) -> Vec<Result<Self::Fitted, Error>> {
        settings.iter().map(|settings| settings.fit(features, labels)).collect()
    }
}

/// What predicts labels. Rows are judged one by one: a row's result does not depend on the others'.
pub trait FittedEstimator: Send + Sync {
    /// What is predicted of a row.
    type Label: Copy + Send + Sync;

    /// Features that a row must have.
    fn n_features(&self) -> usize;

    /// The label of each row of `[n_rows, n_features]`.
    ///
    /// # Errors
    ///
    /// [`Error::FeatureCount`]; [`Error::NonFiniteFeature`] where a value overflows.
    fn predict(&self, features: &Matrix) -> Result<Vec<Self::Label>, Error>;

    /// The label of each row and, of a classifier that knows them, the probability of each class.
    ///
    /// A classifier answers [`Predictions::of_classifier`], a regressor `Ok(self.predict(features)?.into())`.
    ///
    /// # Errors
    ///
    /// As [`predict`](Self::predict).
    fn predictions(&self, features: &Matrix) -> Result<Predictions<Self::Label>, Error>;
}

/// Estimators that tell classes apart. It has no methods of its own: whatever is an [`Estimator`] of `i64` and fits a
/// [`FittedClassifier`] is one.
pub trait Classifier: Estimator<Label = i64, Fitted: FittedClassifier> {}

impl<E: Estimator<Label = i64, Fitted: FittedClassifier>> Classifier for E {}

/// A classifier that knows its classes.
pub trait FittedClassifier: FittedEstimator<Label = i64> {
    /// The classes, ascending, two or more.
    fn classes(&self) -> &[i64];

    /// What the classifier decides by. Of two classes one column, `[n_rows, 1]`, above 0 for the second; of more `[n_rows, n_classes]`,
    /// greatest for the class predicted. Any unit. One rule keeps to scikit-learn where that departs from this:
    /// [`DecisionRule::OneVsOne`](crate::DecisionRule::OneVsOne), where votes are tied.
    ///
    /// # Errors
    ///
    /// [`Error::FeatureCount`]; [`Error::NonFiniteFeature`] where a value overflows (of the decisions: row and column).
    fn decision_function(&self, features: &Matrix) -> Result<Matrix, Error>;

    /// The probability of each class, `[n_rows, n_classes]`, rows summing to 1; `None` where the classifier knows no probabilities.
    ///
    /// # Errors
    ///
    /// As [`decision_function`](Self::decision_function).
    fn predict_proba(&self, features: &Matrix) -> Result<Option<Matrix>, Error>;

    /// Each row's class as a number on the scale of the classes: the mean of them under their probabilities; `None` where there are none.
    ///
    /// A calibrator carries it to the scale of people's scores; it must be fitted to rows that the classifier has not learnt from, which
    /// are all rows if their predictions are [out of fold](crate::cross_val_predict).
    ///
    /// ```
    /// use judge_metrics::calibration::IsotonicRegression;
    /// use judge_probe::{Estimator, FittedClassifier, Matrix, OrdinalRegression, StratifiedKFold, cross_val_predict};
    ///
    /// # fn main() -> Result<(), judge_probe::Error> {
    /// let features = Matrix::from_rows((0..30).map(|row| [f64::from(row)]))?;
    /// let classes: Vec<i64> = (0..30).map(|row| 1 + row / 10).collect();
    /// let people: Vec<f64> = classes.iter().map(|&class| [10.0, 40.0, 90.0][class as usize - 1]).collect();
    ///
    /// let splits = StratifiedKFold { n_splits: 5, shuffle: Some(0) }.split(&classes)?;
    /// let held_out = cross_val_predict(&OrdinalRegression::default(), &features, &classes, &splits)?;
    /// let scores = held_out.expected_classes().unwrap_or_default();
    /// let calibrator = IsotonicRegression::default().fit(&scores, &people)?;
    ///
    /// let probe = OrdinalRegression::default().fit(&features, &classes)?;
    /// let unseen = probe.expected_classes(&Matrix::from_rows([[14.5]])?)?.unwrap_or_default();
    /// assert!((calibrator.predict(&unseen)?[0] - 40.0).abs() < 1e-9);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`decision_function`](Self::decision_function).
    fn expected_classes(&self, features: &Matrix) -> Result<Option<Vec<f64>>, Error> {
        let table = self.predict_proba(features)?.map(|p| ProbabilityTable::new(self.classes().to_vec(), p));
        Ok(table.transpose()?.map(|table| table.expected_classes()))
    }
}

impl Predictions<i64> {
    /// Of a classifier: what [`FittedEstimator::predict`](crate::FittedEstimator::predict) and [`FittedClassifier::predict_proba`] say.
    ///
    /// # Errors
    ///
    /// Those of both; [`Error::ParameterCount`] and [`Error::ClassOrder`] where the probabilities are not those of the classes.
    pub fn of_classifier(classifier: &(impl FittedClassifier + ?Sized), features: &Matrix) -> Result<Self, Error> {
        let labels = classifier.predict(features)?;
        let table = |p: Matrix| ProbabilityTable::new(classifier.classes().to_vec(), p);
        Ok(Self { labels, probabilities: classifier.predict_proba(features)?.map(table).transpose()? })
    }
}
