use crate::{
    DenseClassifier, Error, FittedClassifier, FittedEstimator, FittedPipeline, FittedStandardScaler, HiddenLayer,
    LinearClassifier, Matrix, Precision, Predictions,
};

/// A probe, ready to use: a scaler and hidden layers, if it has them, and a linear classifier. What the trainers of this crate find and what is
/// imported from scikit-learn both come to this, and it is what is saved.
///
/// ```
/// use judge_probe::{
///     Estimator, FittedEstimator, FittedProbe, LogisticRegression, Matrix, Pipeline, StandardScaler,
/// };
///
/// # fn main() -> Result<(), judge_probe::Error> {
/// let features = Matrix::from_rows([[0.0, 9.0], [1.0, 7.0], [2.0, 8.0], [3.0, 6.0]])?;
/// let settings = Pipeline { transformer: StandardScaler::default(), estimator: LogisticRegression::default() };
/// let fitted = settings.fit(&features, &[0, 0, 1, 1])?;
/// let expected = fitted.predict(&features)?;
///
/// let probe = FittedProbe::try_from(fitted)?;
/// assert_eq!(probe.predict(&features)?, expected);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct FittedProbe {
    scaler: Option<FittedStandardScaler>,
    classifier: DenseClassifier,
    precision: Precision,
}

impl FittedProbe {
    /// A probe from its parts. `precision` is that of the features it will be given: they, and what the scaler makes of them, are rounded to it.
    ///
    /// # Errors
    ///
    /// [`Error::FeatureCount`] where the scaler was fitted on other features than the classifier.
    pub fn new(
        scaler: Option<FittedStandardScaler>,
        classifier: impl Into<DenseClassifier>,
        precision: Precision,
    ) -> Result<Self, Error> {
        let classifier = classifier.into();
        match &scaler {
            Some(scaler) if scaler.mean().len() != classifier.n_features() => {
                Err(Error::FeatureCount { expected: scaler.mean().len(), found: classifier.n_features() })
            }
            _ => Ok(Self { scaler, classifier, precision }),
        }
    }

    /// What brings the features to one scale, if anything does.
    pub fn scaler(&self) -> Option<&FittedStandardScaler> {
        self.scaler.as_ref()
    }

    /// The layers between the features, scaled, and the classifier; of a linear probe none.
    pub fn hidden_layers(&self) -> &[HiddenLayer] {
        self.classifier.hidden()
    }

    /// What judges the features, or what the last hidden layer makes of them.
    pub fn classifier(&self) -> &LinearClassifier {
        self.classifier.output()
    }

    /// Precision of the features.
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// The features as the first layer, or else the classifier, meets them: rounded and scaled, of the shape given.
    ///
    /// # Errors
    ///
    /// [`Error::FeatureCount`]; [`Error::NonFiniteFeature`] where a value leaves the range of the precision.
    pub fn scaled(&self, features: &Matrix) -> Result<Matrix, Error> {
        features.check_features(self.n_features())?;
        let round = |value| self.precision.round(value);
        let Some(scaler) = &self.scaler else {
            return Matrix::new(features.values().iter().copied().map(round).collect(), features.n_features());
        };
        let scale = |row: &[f64]| -> Vec<f64> {
            let parameters = scaler.mean().iter().zip(scaler.scale());
            row.iter()
                .zip(parameters)
                .map(|(value, (mean, scale))| round(round(round(*value) - mean) / scale))
                .collect()
        };
        Matrix::new(features.rows().flat_map(scale).collect(), features.n_features())
    }
}

impl<C: Into<DenseClassifier>> TryFrom<FittedPipeline<FittedStandardScaler, C>> for FittedProbe {
    type Error = Error;

    /// What a pipeline of this crate fitted, in double precision.
    fn try_from(fitted: FittedPipeline<FittedStandardScaler, C>) -> Result<Self, Error> {
        Self::new(Some(fitted.transformer), fitted.estimator, Precision::F64)
    }
}

impl FittedEstimator for FittedProbe {
    type Label = i64;

    fn n_features(&self) -> usize {
        self.classifier.n_features()
    }

    fn predict(&self, features: &Matrix) -> Result<Vec<i64>, Error> {
        self.classifier.predict(&self.scaled(features)?)
    }

    fn predictions(&self, features: &Matrix) -> Result<Predictions<i64>, Error> {
        Predictions::of_classifier(self, features)
    }
}

impl FittedClassifier for FittedProbe {
    fn classes(&self) -> &[i64] {
        self.classifier.classes()
    }

    fn decision_function(&self, features: &Matrix) -> Result<Matrix, Error> {
        self.classifier.decision_function(&self.scaled(features)?)
    }

    fn predict_proba(&self, features: &Matrix) -> Result<Option<Matrix>, Error> {
        self.classifier.predict_proba(&self.scaled(features)?)
    }
}
