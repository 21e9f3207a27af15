//! A transformer before an estimator, fitted as one thing so that the transformer learns from training rows alone.
//!
//! It fits and applies its two parts and adds nothing. How equal transformers are shared between settings is decided
//! here; how estimators share work is theirs.

use crate::{Error, Estimator, FittedClassifier, FittedEstimator, FittedTransformer, Matrix, Predictions, Transformer};

/// A transformer whose images an estimator learns from, as `sklearn.pipeline.Pipeline`. A pipeline is itself an estimator, a classifier or
/// a regressor as its last step is, so longer ones nest: scaler, then (PCA, then classifier).
///
/// ```
/// use judge_probe::{Estimator, FittedEstimator, LogisticRegression, Matrix, Pipeline, StandardScaler};
///
/// # fn main() -> Result<(), judge_probe::Error> {
/// let features = Matrix::from_rows([[120.0, 0.6], [80.0, 0.3], [200.0, 0.5], [40.0, 0.1]])?;
/// let probe = Pipeline { transformer: StandardScaler::default(), estimator: LogisticRegression::default() };
/// let fitted = probe.fit(&features, &[1, 0, 1, 0])?;
/// assert_eq!(fitted.predict(&features)?, [1, 0, 1, 0]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Pipeline<T, E> {
    /// What comes first.
    pub transformer: T,
    /// What learns from its images.
    pub estimator: E,
}

/// A [`Pipeline`] fitted: both of its parts, the second on images of the first.
#[derive(Debug, Clone, PartialEq)]
pub struct FittedPipeline<T, F> {
    /// What maps the features.
    pub transformer: T,
    /// What judges their images.
    pub estimator: F,
}

impl<T: Transformer, E: Estimator> Estimator for Pipeline<T, E> {
    type Label = E::Label;
    type Fitted = FittedPipeline<T::Fitted, E::Fitted>;

    /// The transformer first; the estimator meets its images of the same rows.
    ///
    /// # Errors
    ///
    /// Those of the transformer, of its images where they overflow, and of the estimator.
    fn fit(&self, features: &Matrix, labels: &[E::Label]) -> Result<Self::Fitted, Error> {
        let transformer = self.transformer.fit(features)?;
        let estimator = self.estimator.fit(&transformer.transform(features)?, labels)?;
        Ok(FittedPipeline { transformer, estimator })
    }

    /// Equal transformers are fitted once, and their estimators together.
    ///
    /// Results are in the order of the settings. The search for equal transformers compares settings pair by pair, which
    /// is nothing beside a fit. One transformer's images are held at a time.
    fn fit_each(settings: &[Self], features: &Matrix, labels: &[E::Label]) -> Vec<Result<Self::Fitted, Error>> {
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

impl<T: Transformer, E: Estimator> Pipeline<T, E> {
    /// Of settings with equal transformers, at least one.
    ///
    /// An error of the transformer is the result of all of them; one of an estimator is its own.
    fn fit_alike(
        settings: &[&Self],
        features: &Matrix,
        labels: &[E::Label],
    ) -> Vec<Result<<Self as Estimator>::Fitted, Error>> {
        let transformed = settings[0].transformer.fit(features).and_then(|transformer| {
            let images = transformer.transform(features)?;
            Ok((transformer, images))
        });
        match transformed {
            Ok((transformer, images)) => {
                let estimators: Vec<E> = settings.iter().map(|settings| settings.estimator.clone()).collect();
                let fitted = E::fit_each(&estimators, &images, labels).into_iter();
                fitted
                    .map(|estimator| Ok(FittedPipeline { transformer: transformer.clone(), estimator: estimator? }))
                    .collect()
            }
            Err(error) => settings.iter().map(|_| Err(error.clone())).collect(),
        }
    }
}

impl<T: FittedTransformer, F: FittedEstimator> FittedEstimator for FittedPipeline<T, F> {
    type Label = F::Label;

    fn n_features(&self) -> usize {
        // Features before the transformer, not those the estimator meets.
        self.transformer.n_features_in()
    }

    fn predict(&self, features: &Matrix) -> Result<Vec<F::Label>, Error> {
        self.estimator.predict(&self.transformer.transform(features)?)
    }

    fn predictions(&self, features: &Matrix) -> Result<Predictions<F::Label>, Error> {
        self.estimator.predictions(&self.transformer.transform(features)?)
    }
}

impl<T: FittedTransformer, F: FittedClassifier> FittedClassifier for FittedPipeline<T, F> {
    fn classes(&self) -> &[i64] {
        self.estimator.classes()
    }

    fn decision_function(&self, features: &Matrix) -> Result<Matrix, Error> {
        self.estimator.decision_function(&self.transformer.transform(features)?)
    }

    fn predict_proba(&self, features: &Matrix) -> Result<Option<Matrix>, Error> {
        self.estimator.predict_proba(&self.transformer.transform(features)?)
    }
}
