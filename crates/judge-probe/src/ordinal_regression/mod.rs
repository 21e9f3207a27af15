//! Ordinal regression, the proportional-odds model of McCullagh (Journal of the Royal Statistical Society B 42, 1980): settings and what is
//! fitted. The loss and its minimum are in `objective`.

mod objective;

use crate::labels::EncodedLabels;
use crate::row_space::{Exactness, RowSpace};
use crate::{
    ClassWeight, DecisionRule, Error, Estimator, FittedClassifier, FittedEstimator, LinearClassifier, Matrix,
    Predictions,
};
use objective::{Objective, Point};

/// Ordinal regression for classes that stand in order, such as scores from 1 to 5: the cumulative logit or proportional odds model
/// (McCullagh 1980), in which one linear function meets a threshold between every two neighbouring classes, p(y ≤ class k | x) =
/// σ(thresholdₖ − w·x).
///
/// It minimises Σ sᵢ (−ln p(yᵢ | xᵢ)) / S + ‖w‖² / (2 c S) over w and the ascending thresholds, which are not penalised; sᵢ is the weight
/// of the row's class and S the sum of them. Of two classes that is [`LogisticRegression`](crate::LogisticRegression), and without a
/// penalty statsmodels' `OrderedModel(distr="logit")`. The problem is convex and has one minimum, also with more features than rows.
///
/// A classifier of unordered classes learns a function a class, this one a single function, which fewer rows determine. Only the order of
/// the classes counts in fitting, not how far apart their values are.
///
/// ```
/// use judge_probe::{Estimator, FittedClassifier, FittedEstimator, Matrix, OrdinalRegression};
///
/// # fn main() -> Result<(), judge_probe::Error> {
/// let features = Matrix::from_rows([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]])?;
/// let fitted = OrdinalRegression { c: 10.0, ..OrdinalRegression::default() }.fit(&features, &[1, 1, 3, 3, 5, 5])?;
/// assert_eq!(fitted.predict(&features)?, [1, 1, 3, 3, 5, 5]);
/// // Halfway between the thresholds, the expected score is the middle one.
/// let middle = Matrix::from_rows([[2.5]])?;
/// assert!((fitted.expected_classes(&middle)?.unwrap()[0] - 3.0).abs() < 1e-6);
/// # Ok(())
/// # }
/// ```
#[doc(alias = "OrderedModel")]
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OrdinalRegression {
    /// Inverse strength of the penalty, above 0.
    pub c: f64,
    /// How much the rows of each class count.
    pub class_weight: ClassWeight,
    /// How far from its minimum the objective may be, by Newton's estimate before the last step; above 0.
    pub tol: f64,
    /// Steps of Newton's method after which fitting gives up; few problems need more than 20.
    pub max_iter: usize,
}

impl Default for OrdinalRegression {
    /// c 1, uniform weights, tol 1e-14, max_iter 100.
    fn default() -> Self {
        Self { c: 1.0, class_weight: ClassWeight::Uniform, tol: 1e-14, max_iter: 100 }
    }
}

/// The linear function and the thresholds that an [`OrdinalRegression`] found.
#[derive(Debug, Clone, PartialEq)]
pub struct FittedOrdinalRegression {
    /// `[n_classes - 1]` functions with equal coefficients and falling intercepts: the thresholds, negated.
    linear: LinearClassifier,
    /// Kept beside the intercepts, so that they can be lent without a change of sign.
    thresholds: Vec<f64>,
    n_iter: usize,
}

impl OrdinalRegression {
    /// The settings that say how exact coordinates must be, and that have a range.
    fn exactness(&self) -> Exactness {
        Exactness { c: self.c, class_weight: self.class_weight, tol: self.tol }
    }

    /// One setting, on labels and coordinates that several may share. The intercept's row of ones is left out: the
    /// thresholds stand for it.
    ///
    /// [`Error::InvalidC`], [`Error::InvalidTol`], [`Error::NotConverged`].
    fn fit_to(
        &self,
        features: &Matrix,
        labels: &EncodedLabels,
        space: &RowSpace<'_>,
    ) -> Result<FittedOrdinalRegression, Error> {
        self.exactness().check()?;
        let objective = Objective::new(space.points(false), labels, self.class_weight, self.c);
        let (Point { coefficients, thresholds }, n_iter) = objective.minimise(self.max_iter, self.tol)?;

        // One function a threshold, all alike but for it.
        let coefficients = space.of_features(coefficients.as_ref());
        let linear = LinearClassifier::from_parts(
            DecisionRule::Cumulative,
            labels.classes.clone(),
            Matrix::new(coefficients.repeat(thresholds.len()), features.n_features())?,
            thresholds.iter().map(|threshold| -threshold).collect(),
        )?;
        Ok(FittedOrdinalRegression { linear, thresholds, n_iter })
    }
}

impl Estimator for OrdinalRegression {
    type Label = i64;
    type Fitted = FittedOrdinalRegression;

    /// In O(m² (n_rows + n_features)) a step for the smaller m of the two sides.
    ///
    /// # Errors
    ///
    /// [`Error::LabelCount`], [`Error::OneClass`], [`Error::InvalidC`], [`Error::InvalidTol`], [`Error::NotConverged`],
    /// [`Error::Overflow`].
    fn fit(&self, features: &Matrix, labels: &[i64]) -> Result<Self::Fitted, Error> {
        let mut fitted = Self::fit_each(std::slice::from_ref(self), features, labels);
        // One result a setting.
        fitted.swap_remove(0)
    }

    /// The features are factored once.
    ///
    /// Each fit starts anew from the thresholds that fit without features, so results are those of
    /// [`fit`](Estimator::fit) but for what `tol` leaves open: coordinates are as exact as the strictest setting asks.
    fn fit_each(settings: &[Self], features: &Matrix, labels: &[i64]) -> Vec<Result<Self::Fitted, Error>> {
        RowSpace::fit_each(settings, features, labels, Self::exactness, |settings, space, labels| {
            settings.fit_to(features, labels, space)
        })
    }
}

impl FittedOrdinalRegression {
    /// The functions and how they decide.
    pub fn linear(&self) -> &LinearClassifier {
        &self.linear
    }

    /// The weight of each feature, `[n_features]`: above 0 where more of it means a higher class.
    pub fn coefficients(&self) -> &[f64] {
        &self.linear.coefficients().values()[..self.linear.n_features()]
    }

    /// Where the function passes from one class to the next, `[n_classes - 1]`, strictly ascending.
    pub fn thresholds(&self) -> &[f64] {
        &self.thresholds
    }

    /// Steps of Newton's method that were needed.
    pub fn n_iter(&self) -> usize {
        self.n_iter
    }
}

impl From<FittedOrdinalRegression> for LinearClassifier {
    fn from(fitted: FittedOrdinalRegression) -> Self {
        fitted.linear
    }
}

impl FittedEstimator for FittedOrdinalRegression {
    type Label = i64;

    fn n_features(&self) -> usize {
        self.linear.n_features()
    }

    /// The most probable class, the first of equals.
    fn predict(&self, features: &Matrix) -> Result<Vec<i64>, Error> {
        self.linear.predict(features)
    }

    fn predictions(&self, features: &Matrix) -> Result<Predictions<i64>, Error> {
        Predictions::of_classifier(self, features)
    }
}

impl FittedClassifier for FittedOrdinalRegression {
    fn classes(&self) -> &[i64] {
        self.linear.classes()
    }

    /// Of two classes w·x less the threshold; of more the logarithm of each class's probability.
    fn decision_function(&self, features: &Matrix) -> Result<Matrix, Error> {
        self.linear.decision_function(features)
    }

    /// Always some.
    fn predict_proba(&self, features: &Matrix) -> Result<Option<Matrix>, Error> {
        self.linear.predict_proba(features)
    }
}
