//! The bridge to classifiers of linfa: arrays one way, positions of classes the other. Whether they are any good is linfa's matter.
//!
//! Behind the feature `linfa`. Labels become positions 0 to n_classes − 1 in ascending order of the classes before linfa
//! sees them, and what it predicts is read as such a position.

use std::marker::PhantomData;

use linfa::DatasetBase;
use linfa::traits::{Fit, PredictInplace};
use linfa_logistic::MultiLogisticRegression;
use ndarray::{Array1, Array2};

use crate::estimators::labels::EncodedLabels;
use crate::{Error, Estimator, FittedClassifier, FittedEstimator, Matrix, Predictions};

/// Any classifier of linfa's as a [`Classifier`](crate::Classifier): parameters `P` that fit `Array2<f64>` features to `Array1<usize>`
/// targets, which are the positions of the classes, or else report an `E`.
///
/// linfa's classifiers have no decision function in common: the class predicted counts 1, others 0 (of two classes 1 and −1), and
/// there are no probabilities.
///
/// [`LinfaClassifier::logistic`] is the choice that comes with it. [`LogisticRegression`](crate::LogisticRegression) is the better one:
/// linfa-logistic 0.8.1 keeps its sums of exponentials in range by the greatest logit of all rows instead of each row's own, so that it
/// stops early where rows differ in magnitude, as hidden states do.
///
/// ```
/// use judge_probe::{Estimator, FittedEstimator, LinfaClassifier, Matrix};
///
/// # fn main() -> Result<(), judge_probe::Error> {
/// let features = Matrix::from_rows([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]])?;
/// let fitted = LinfaClassifier::logistic(10.0).fit(&features, &[1, 1, 3, 3, 5, 5])?;
/// assert_eq!(fitted.predict(&Matrix::from_rows([[-1.0], [6.0]])?)?, [1, 5]);
/// # Ok(())
/// # }
/// ```
pub struct LinfaClassifier<P, E> {
    /// linfa's settings.
    pub parameters: P,
    /// Names the error type without holding one; a function pointer, so that `E` need not be `Sync`.
    error: PhantomData<fn() -> E>,
}

/// What a [`LinfaClassifier`] fitted.
#[derive(Debug, Clone, PartialEq)]
pub struct FittedLinfaClassifier<M> {
    /// linfa's own type, as its `fit` returned it.
    model: M,
    /// Ascending, two or more.
    classes: Vec<i64>,
    /// Kept because linfa's models do not tell theirs in a common way.
    n_features: usize,
}

impl<P, E> LinfaClassifier<P, E> {
    /// A classifier of these settings.
    pub fn new(parameters: P) -> Self {
        Self { parameters, error: PhantomData }
    }
}

impl LinfaClassifier<MultiLogisticRegression<f64>, linfa_logistic::error::Error> {
    /// Multinomial logistic regression, `c` the inverse strength of the penalty as in [`LogisticRegression`](crate::LogisticRegression). Of
    /// two classes, too, it has a function a class, whose penalty weighs half.
    ///
    /// linfa's `alpha` is 1 / c. It is not checked here.
    pub fn logistic(c: f64) -> Self {
        Self::new(MultiLogisticRegression::default().alpha(1.0 / c))
    }
}

impl<P: Clone, E> Clone for LinfaClassifier<P, E> {
    fn clone(&self) -> Self {
        Self::new(self.parameters.clone())
    }
}

impl<P: std::fmt::Debug, E> std::fmt::Debug for LinfaClassifier<P, E> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("LinfaClassifier").field("parameters", &self.parameters).finish()
    }
}

impl<M> FittedLinfaClassifier<M> {
    /// The fitted model of linfa.
    pub fn model(&self) -> &M {
        &self.model
    }
}

impl<P, E> Estimator for LinfaClassifier<P, E>
where
    P: Fit<Array2<f64>, Array1<usize>, E> + Clone + Sync,
    P::Object: PredictInplace<Array2<f64>, Array1<usize>> + Send + Sync,
    E: std::error::Error + From<linfa::error::Error>,
{
    type Label = i64;
    type Fitted = FittedLinfaClassifier<P::Object>;

    /// # Errors
    ///
    /// [`Error::LabelCount`], [`Error::OneClass`]; [`Error::Linfa`] with what linfa reports.
    fn fit(&self, features: &Matrix, labels: &[i64]) -> Result<Self::Fitted, Error> {
        let EncodedLabels { classes, class_of_row, .. } = EncodedLabels::new(features, labels)?;
        let data = DatasetBase::new(array(features), Array1::from_vec(class_of_row));
        let model = self.parameters.fit(&data).map_err(|error| Error::Linfa {
            n_rows: features.n_rows(),
            n_features: features.n_features(),
            message: error.to_string(),
        })?;
        Ok(FittedLinfaClassifier { model, classes, n_features: features.n_features() })
    }
}

impl<M: PredictInplace<Array2<f64>, Array1<usize>> + Send + Sync> FittedLinfaClassifier<M> {
    /// Row by row, because in a product of many rows a row's rounding may depend on the others.
    ///
    /// [`Error::FeatureCount`]; [`Error::PredictedPosition`] where linfa predicts nothing for a row, or a position that
    /// no class has.
    fn positions(&self, features: &Matrix) -> Result<Vec<usize>, Error> {
        features.check_features(self.n_features)?;
        let position = |(row, values): (usize, &[f64])| {
            let values = Array2::from_shape_fn((1, self.n_features), |(_, feature)| values[feature]);
            let mut targets = self.model.default_target(&values);
            self.model.predict_inplace(&values, &mut targets);
            match targets.first() {
                Some(&position) if position < self.classes.len() => Ok(position),
                position => {
                    Err(Error::PredictedPosition { row, position: position.copied(), n_classes: self.classes.len() })
                }
            }
        };
        features.rows().enumerate().map(position).collect()
    }
}

impl<M: PredictInplace<Array2<f64>, Array1<usize>> + Send + Sync> FittedEstimator for FittedLinfaClassifier<M> {
    type Label = i64;

    fn n_features(&self) -> usize {
        self.n_features
    }

    fn predict(&self, features: &Matrix) -> Result<Vec<i64>, Error> {
        Ok(self.positions(features)?.into_iter().map(|position| self.classes[position]).collect())
    }

    fn predictions(&self, features: &Matrix) -> Result<Predictions<i64>, Error> {
        Predictions::of_classifier(self, features)
    }
}

impl<M: PredictInplace<Array2<f64>, Array1<usize>> + Send + Sync> FittedClassifier for FittedLinfaClassifier<M> {
    fn classes(&self) -> &[i64] {
        &self.classes
    }

    /// Besides what the trait says, [`Error::PredictedPosition`].
    ///
    /// It carries no more than [`predict`](FittedEstimator::predict) does: rows of one predicted class all have the same.
    fn decision_function(&self, features: &Matrix) -> Result<Matrix, Error> {
        let positions = self.positions(features)?;
        if self.classes.len() == 2 {
            return Matrix::new(
                positions.into_iter().map(|position| if position == 1 { 1.0 } else { -1.0 }).collect(),
                1,
            );
        }
        let of_row = |position| (0..self.classes.len()).map(move |class| if class == position { 1.0 } else { 0.0 });
        Matrix::new(positions.into_iter().flat_map(of_row).collect(), self.classes.len())
    }

    /// None.
    fn predict_proba(&self, _: &Matrix) -> Result<Option<Matrix>, Error> {
        Ok(None)
    }
}

/// A copy in ndarray's form, `[n_rows, n_features]`.
fn array(features: &Matrix) -> Array2<f64> {
    let values: Vec<&[f64]> = features.rows().collect();
    Array2::from_shape_fn((features.n_rows(), features.n_features()), |(row, feature)| values[row][feature])
}
