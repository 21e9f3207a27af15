//! What is left of training: transformers and a classifier, of whatever origin, as one thing that predicts and can be saved. It knows
//! neither its model nor its layers; `saved_probe` adds those.

use std::borrow::Cow;

use crate::{
    DenseClassifier, Error, FittedClassifier, FittedEstimator, FittedPipeline, FittedTransformer, HiddenLayer,
    LinearClassifier, Matrix, Precision, Predictions, ProbeStage,
};

/// A probe, ready to use: transformers, if it has them, and a classifier, a linear one or one with hidden layers. What the trainers of this
/// crate find comes to it by [`IntoProbe`], what is imported from scikit-learn is one, and it is what is saved.
///
/// ```
/// use judge_probe::{
///     Estimator, FittedEstimator, IntoProbe, LogisticRegression, Matrix, Pca, Pipeline, ProbeStage, StandardScaler,
/// };
///
/// # fn main() -> Result<(), judge_probe::Error> {
/// let features = Matrix::from_rows([[0.0, 9.0], [1.0, 7.0], [2.0, 8.0], [3.0, 6.0]])?;
/// let scaled = Pipeline { transformer: StandardScaler::default(), estimator: LogisticRegression::default() };
/// let settings = Pipeline { transformer: Pca { n_components: 1 }, estimator: scaled };
/// let fitted = settings.fit(&features, &[0, 0, 1, 1])?;
/// let expected = fitted.predict(&features)?;
///
/// let probe = fitted.into_probe()?;
/// assert!(matches!(probe.stages(), [ProbeStage::Pca(_), ProbeStage::Scaler(_)]));
/// assert_eq!(probe.predict(&features)?, expected);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct FittedProbe {
    /// Each takes what the one before gives. None is the identity.
    stages: Vec<ProbeStage>,
    /// Takes what the last stage gives, or the features.
    classifier: DenseClassifier,
    /// Of the features and of the results of a scaler that meets them so; all else is in double precision.
    precision: Precision,
}

impl FittedProbe {
    /// A probe from its parts, transformers in the order in which features meet them. `precision` is that of the features it will be given:
    /// they, and what a scaler makes of them, are rounded to it. What a PCA or blocks make of them is in double precision, as is all after.
    ///
    /// Blocks that leave all features as they are ([`FeatureFamily::State`](crate::FeatureFamily::State)) are not kept.
    ///
    /// # Errors
    ///
    /// [`Error::FeatureCount`] where a transformer, or the classifier, does not take what the one before it gives.
    pub fn new(
        mut stages: Vec<ProbeStage>,
        classifier: impl Into<DenseClassifier>,
        precision: Precision,
    ) -> Result<Self, Error> {
        let classifier = classifier.into();
        let taken = stages.iter().skip(1).map(ProbeStage::n_features_in).chain([classifier.n_features()]);
        if let Some((found, expected)) =
            stages.iter().map(ProbeStage::n_features_out).zip(taken).find(|(given, taken)| given != taken)
        {
            return Err(Error::FeatureCount { expected, found });
        }
        stages.retain(|stage| !stage.is_identity());
        Ok(Self { stages, classifier, precision })
    }

    /// The transformers, in the order in which features meet them.
    pub fn stages(&self) -> &[ProbeStage] {
        &self.stages
    }

    /// The layers between the features, transformed, and the classifier; of a linear probe none.
    pub fn hidden_layers(&self) -> &[HiddenLayer] {
        self.classifier.hidden()
    }

    /// The linear classifier after the transformers and hidden layers.
    pub fn classifier(&self) -> &LinearClassifier {
        self.classifier.output()
    }

    /// Precision of the features.
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// The features as the first layer, or else the classifier, meets them: rounded to [`precision`](Self::precision) and transformed.
    ///
    /// # Errors
    ///
    /// [`Error::FeatureCount`]; [`Error::NonFiniteFeature`] where a value leaves the range of the precision.
    pub fn transform<'f>(&self, features: &'f Matrix) -> Result<Cow<'f, Matrix>, Error> {
        features.check_features(self.n_features())?;
        let mut image = if self.precision == Precision::F64 {
            Cow::Borrowed(features)
        } else {
            let values = features.values().iter().map(|&value| self.precision.round(value));
            Cow::Owned(Matrix::new(values.collect(), features.n_features())?)
        };
        let mut precision = self.precision;
        for stage in &self.stages {
            image = Cow::Owned(stage.transform_in(&image, precision)?);
            precision = stage.precision_out(precision);
        }
        Ok(image)
    }

    /// The number on the scale of the classes that the probe knows of each row, `[n_rows]`: the class expected under the probabilities, or
    /// the function of a [`DecisionRule::Nearest`] kept between the lowest and the highest class; `None` where the probe [knows
    /// neither](crate::DecisionRule::has_number). It says more than the class predicted, and is what a
    /// [calibrator](crate::calibrate_out_of_fold) carries to people's scale.
    ///
    /// # Errors
    ///
    /// As [`FittedClassifier::decision_function`].
    ///
    /// [`DecisionRule::Nearest`]: crate::DecisionRule::Nearest
    pub fn scores(&self, features: &Matrix) -> Result<Option<Vec<f64>>, Error> {
        self.classifier.scores(self.transform(features)?.as_ref())
    }
}

/// What can be kept as a [`FittedProbe`]: fitted classifiers, alone or at the end of pipelines, with all transformers before them.
pub trait IntoProbe {
    /// The probe, for features in double precision.
    ///
    /// # Errors
    ///
    /// Those of [`FittedProbe::new`], which parts that were fitted together do not give.
    fn into_probe(self) -> Result<FittedProbe, Error>;
}

impl<C: Into<DenseClassifier>> IntoProbe for C {
    fn into_probe(self) -> Result<FittedProbe, Error> {
        FittedProbe::new(Vec::new(), self, Precision::F64)
    }
}

impl<T: Into<ProbeStage>, F: IntoProbe> IntoProbe for FittedPipeline<T, F> {
    fn into_probe(self) -> Result<FittedProbe, Error> {
        let FittedProbe { mut stages, classifier, precision } = self.estimator.into_probe()?;
        stages.insert(0, self.transformer.into());
        FittedProbe::new(stages, classifier, precision)
    }
}

impl FittedEstimator for FittedProbe {
    type Label = i64;

    fn n_features(&self) -> usize {
        self.stages.first().map_or(self.classifier.n_features(), ProbeStage::n_features_in)
    }

    fn predict(&self, features: &Matrix) -> Result<Vec<i64>, Error> {
        self.classifier.predict(self.transform(features)?.as_ref())
    }

    fn predictions(&self, features: &Matrix) -> Result<Predictions<i64>, Error> {
        self.classifier.predictions(self.transform(features)?.as_ref())
    }
}

impl FittedClassifier for FittedProbe {
    fn classes(&self) -> &[i64] {
        self.classifier.classes()
    }

    fn decision_function(&self, features: &Matrix) -> Result<Matrix, Error> {
        self.classifier.decision_function(self.transform(features)?.as_ref())
    }

    fn predict_proba(&self, features: &Matrix) -> Result<Option<Matrix>, Error> {
        self.classifier.predict_proba(self.transform(features)?.as_ref())
    }
}
