use crate::labels::EncodedLabels;
use crate::linear_functions::first_greatest;
use crate::{Error, Estimator, FittedClassifier, FittedEstimator, FittedRidge, Matrix, Predictions, Ridge};

/// [`Ridge`] as a classifier of scores: it is fitted to the classes as numbers, and predicts the class nearest to its function.
///
/// The fastest probe there is, in closed form. Unlike [`OrdinalRegression`](crate::OrdinalRegression) it takes the distances between classes
/// for what their values say, and knows no probabilities.
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

/// The linear function that a [`RidgeToClass`] found.
#[derive(Debug, Clone, PartialEq)]
pub struct FittedRidgeToClass {
    ridge: FittedRidge,
    classes: Vec<i64>,
}

impl FittedRidgeToClass {
    /// The function.
    pub fn ridge(&self) -> &FittedRidge {
        &self.ridge
    }
}

impl Estimator for RidgeToClass {
    type Label = i64;
    type Fitted = FittedRidgeToClass;

    /// # Errors
    ///
    /// [`Error::LabelCount`], [`Error::OneClass`], and those of [`Ridge::fit`].
    fn fit(&self, features: &Matrix, labels: &[i64]) -> Result<FittedRidgeToClass, Error> {
        let classes = EncodedLabels::new(features, labels)?.classes;
        let targets: Vec<f64> = labels.iter().map(|&label| label as f64).collect();
        Ok(FittedRidgeToClass { ridge: self.ridge.fit(features, &targets)?, classes })
    }
}

impl FittedEstimator for FittedRidgeToClass {
    type Label = i64;

    fn n_features(&self) -> usize {
        self.ridge.coefficients().len()
    }

    /// The nearest class, the lower of equals.
    fn predict(&self, features: &Matrix) -> Result<Vec<i64>, Error> {
        let decisions = self.decision_function(features)?;
        let class_of = |row: &[f64]| match row {
            [value] => usize::from(*value > 0.0),
            row => first_greatest(row),
        };
        Ok(decisions.rows().map(|row| self.classes[class_of(row)]).collect())
    }

    fn predictions(&self, features: &Matrix) -> Result<Predictions<i64>, Error> {
        Predictions::of_classifier(self, features)
    }
}

impl FittedClassifier for FittedRidgeToClass {
    fn classes(&self) -> &[i64] {
        &self.classes
    }

    /// Of two classes the function less the middle of them; of more its distance from each, negated.
    fn decision_function(&self, features: &Matrix) -> Result<Matrix, Error> {
        let values = self.ridge.predict(features)?;
        if let [first, second] = self.classes[..] {
            let middle = first as f64 / 2.0 + second as f64 / 2.0;
            return Matrix::new(values.into_iter().map(|value| value - middle).collect(), 1);
        }
        let distances = |value: f64| self.classes.iter().map(move |&class| -(value - class as f64).abs());
        Matrix::new(values.into_iter().flat_map(distances).collect(), self.classes.len())
    }

    /// None.
    fn predict_proba(&self, _: &Matrix) -> Result<Option<Matrix>, Error> {
        Ok(None)
    }
}
