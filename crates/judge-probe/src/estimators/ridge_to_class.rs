//! Regression read on a scale of classes, which makes it a classifier that can be saved and judge.

use crate::estimators::labels::EncodedLabels;
use crate::{
    DecisionRule, Error, Estimator, FittedEstimator, FittedPipeline, FittedRidge, LinearClassifier, Matrix, Ridge,
};

/// [`Ridge`] as a classifier of scores: it is fitted to the classes as numbers, and predicts the class nearest to its function.
///
/// Unlike [`OrdinalRegression`](crate::OrdinalRegression) it takes the distances between classes for what their values say, and knows no
/// probabilities. For scores that are no whole numbers, such as means over people, fit [`Ridge`] itself; [`OnScale`] makes the same
/// classifier of it.
///
/// ```
/// use judge_probe::{Estimator, FittedEstimator, Matrix, RidgeToClass};
///
/// # fn main() -> Result<(), judge_probe::Error> {
/// let features = Matrix::from_rows([[0.0], [1.0], [2.0], [3.0]])?;
/// let fitted = RidgeToClass::default().fit(&features, &[1, 2, 4, 5])?;
/// assert_eq!(fitted.predict(&Matrix::from_rows([[-9.0], [1.9], [3.5]])?)?, [1, 4, 5]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct RidgeToClass {
    /// Settings of the regression.
    pub ridge: Ridge,
}

/// A regression whose function is read on a scale of classes, so that it can be kept and used as a judge: [`FittedRidge`], alone or at the
/// end of pipelines.
///
/// ```
/// use judge_probe::{Estimator, FittedEstimator, IntoProbe, Matrix, OnScale, Pipeline, Ridge, StandardScaler};
///
/// # fn main() -> Result<(), judge_probe::Error> {
/// let features = Matrix::from_rows([[0.0], [1.0], [2.0], [3.0]])?;
/// let settings = Pipeline { transformer: StandardScaler::default(), estimator: Ridge { alpha: 1e-9, ..Ridge::default() } };
/// let fitted = settings.fit(&features, &[1.0, 2.0, 3.0, 4.0])?;
///
/// let probe = fitted.on_scale(&[1, 2, 3, 4, 5])?.into_probe()?;
/// let unseen = Matrix::from_rows([[1.67], [9.0]])?;
/// assert_eq!(probe.predict(&unseen)?, [3, 5]);
/// let scores = probe.scores(&unseen)?.unwrap_or_default();
/// assert!((scores[0] - 2.67).abs() < 1e-6 && scores[1] == 5.0);
/// # Ok(())
/// # }
/// ```
pub trait OnScale {
    /// The classifier that it becomes.
    type Classifier;

    /// Reads the function on a scale of classes, ascending, two or more: the nearest is predicted, the lower of equals.
    ///
    /// # Errors
    ///
    /// [`Error::ClassOrder`]; [`Error::ParameterCount`] for fewer than two classes.
    fn on_scale(self, classes: &[i64]) -> Result<Self::Classifier, Error>;
}

impl OnScale for FittedRidge {
    type Classifier = LinearClassifier;

    fn on_scale(self, classes: &[i64]) -> Result<LinearClassifier, Error> {
        let (coefficients, intercept) = (self.coefficients().to_vec(), self.intercept());
        let coefficients = Matrix::new(coefficients, self.n_features())?;
        LinearClassifier::from_parts(DecisionRule::Nearest, classes.to_vec(), coefficients, vec![intercept])
    }
}

impl<T, F: OnScale> OnScale for FittedPipeline<T, F> {
    type Classifier = FittedPipeline<T, F::Classifier>;

    fn on_scale(self, classes: &[i64]) -> Result<Self::Classifier, Error> {
        Ok(FittedPipeline { transformer: self.transformer, estimator: self.estimator.on_scale(classes)? })
    }
}

impl Estimator for RidgeToClass {
    type Label = i64;
    type Fitted = LinearClassifier;

    /// # Errors
    ///
    /// [`Error::RowCount`], [`Error::OneClass`], and those of [`Ridge::fit`].
    fn fit(&self, features: &Matrix, labels: &[i64]) -> Result<LinearClassifier, Error> {
        let classes = EncodedLabels::new(features, labels)?.classes;
        let targets: Vec<f64> = labels.iter().map(|&label| label as f64).collect();
        self.ridge.fit(features, &targets)?.on_scale(&classes)
    }

    /// As [`Ridge`]'s: what does not depend on alpha is computed once.
    fn fit_each(settings: &[Self], features: &Matrix, labels: &[i64]) -> Vec<Result<LinearClassifier, Error>> {
        let classes = match EncodedLabels::new(features, labels) {
            Ok(labels) => labels.classes,
            Err(error) => return settings.iter().map(|_| Err(error.clone())).collect(),
        };
        let targets: Vec<f64> = labels.iter().map(|&label| label as f64).collect();
        let ridges: Vec<Ridge> = settings.iter().map(|settings| settings.ridge).collect();
        Ridge::fit_each(&ridges, features, &targets).into_iter().map(|ridge| ridge?.on_scale(&classes)).collect()
    }
}
