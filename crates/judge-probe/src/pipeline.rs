use crate::{Classifier, Error, FittedClassifier, FittedTransformer, Matrix, Transformer};

/// A transformer whose images a classifier learns from, as `sklearn.pipeline.Pipeline`. A pipeline is itself a classifier, so longer ones
/// nest: scaler, then (PCA, then classifier).
///
/// ```
/// use judge_probe::{Classifier, FittedClassifier, LogisticRegression, Matrix, Pipeline, StandardScaler};
///
/// # fn main() -> Result<(), judge_probe::Error> {
/// let features = Matrix::from_rows([[120.0, 0.6], [80.0, 0.3], [200.0, 0.5], [40.0, 0.1]])?;
/// let probe = Pipeline { transformer: StandardScaler::default(), classifier: LogisticRegression::default() };
/// let fitted = probe.fit(&features, &[1, 0, 1, 0])?;
/// assert_eq!(fitted.predict(&features)?, [1, 0, 1, 0]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Pipeline<T, C> {
    /// What comes first.
    pub transformer: T,
    /// What learns from its images.
    pub classifier: C,
}

/// A [`Pipeline`] fitted: both of its parts, the second on images of the first.
#[derive(Debug, Clone, PartialEq)]
pub struct FittedPipeline<T, C> {
    /// What maps the features.
    pub transformer: T,
    /// What judges their images.
    pub classifier: C,
}

impl<T: Transformer, C: Classifier> Classifier for Pipeline<T, C> {
    type Fitted = FittedPipeline<T::Fitted, C::Fitted>;

    fn fit(&self, features: &Matrix, labels: &[i64]) -> Result<Self::Fitted, Error> {
        let transformer = self.transformer.fit(features)?;
        let classifier = self.classifier.fit(&transformer.transform(features)?, labels)?;
        Ok(FittedPipeline { transformer, classifier })
    }

    /// Equal transformers are fitted once, and their classifiers together.
    fn fit_each(settings: &[Self], features: &Matrix, labels: &[i64]) -> Vec<Result<Self::Fitted, Error>> {
        let mut fitted: Vec<Option<Result<Self::Fitted, Error>>> = settings.iter().map(|_| None).collect();
        while let Some(first) = fitted.iter().position(Option::is_none) {
            let alike: Vec<usize> =
                (first..settings.len()).filter(|&i| settings[i].transformer == settings[first].transformer).collect();
            let group: Vec<&Self> = alike.iter().map(|&i| &settings[i]).collect();
            for (i, result) in alike.into_iter().zip(Self::fit_alike(&group, features, labels)) {
                fitted[i] = Some(result);
            }
        }
        fitted.into_iter().flatten().collect()
    }
}

impl<T: Transformer, C: Classifier> Pipeline<T, C> {
    /// Of settings with equal transformers, at least one.
    fn fit_alike(
        settings: &[&Self],
        features: &Matrix,
        labels: &[i64],
    ) -> Vec<Result<<Self as Classifier>::Fitted, Error>> {
        let transformed = settings[0].transformer.fit(features).and_then(|transformer| {
            let images = transformer.transform(features)?;
            Ok((transformer, images))
        });
        match transformed {
            Ok((transformer, images)) => {
                let classifiers: Vec<C> = settings.iter().map(|settings| settings.classifier.clone()).collect();
                let fitted = C::fit_each(&classifiers, &images, labels).into_iter();
                fitted
                    .map(|classifier| Ok(FittedPipeline { transformer: transformer.clone(), classifier: classifier? }))
                    .collect()
            }
            Err(error) => settings.iter().map(|_| Err(error.clone())).collect(),
        }
    }
}

impl<T: FittedTransformer, C: FittedClassifier> FittedClassifier for FittedPipeline<T, C> {
    fn classes(&self) -> &[i64] {
        self.classifier.classes()
    }

    fn n_features(&self) -> usize {
        self.transformer.n_features_in()
    }

    fn decision_function(&self, features: &Matrix) -> Result<Matrix, Error> {
        self.classifier.decision_function(&self.transformer.transform(features)?)
    }

    fn predict(&self, features: &Matrix) -> Result<Vec<i64>, Error> {
        self.classifier.predict(&self.transformer.transform(features)?)
    }

    fn predict_proba(&self, features: &Matrix) -> Result<Option<Matrix>, Error> {
        self.classifier.predict_proba(&self.transformer.transform(features)?)
    }
}
