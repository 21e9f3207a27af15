//! Ordinal regression, the proportional-odds model of McCullagh (Journal of the Royal Statistical Society B 42, 1980): settings and what is
//! fitted. The loss and its minimum are in `objective`.

mod objective;

use crate::estimators::labels::EncodedLabels;
use crate::matrices::row_space::{Exactness, RowSpace};
use crate::{ClassWeight, DecisionRule, Error, Estimator, LinearClassifier, Matrix};
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

impl OrdinalRegression {
    /// The settings that say how exact coordinates must be, and that have a range.
    fn exactness(&self) -> Exactness {
        Exactness { c: self.c, class_weight: self.class_weight, tol: self.tol }
    }

    /// One setting, on labels and coordinates that several may share. The intercept's row of ones is left out: the
    /// thresholds stand for it.
    ///
    /// [`Error::OutOfRange`], [`Error::NotConverged`].
    fn fit_to(
        &self,
        features: &Matrix,
        labels: &EncodedLabels,
        space: &RowSpace<'_>,
    ) -> Result<LinearClassifier, Error> {
        self.exactness().check()?;
        let objective = Objective::new(space.points(false), labels, self.class_weight, self.c);
        let Point { coefficients, thresholds } = objective.minimise(self.max_iter, self.tol)?;

        // One function a threshold, all alike but for it.
        let coefficients = space.of_features(coefficients.as_ref());
        LinearClassifier::from_parts(
            DecisionRule::Cumulative,
            labels.classes.clone(),
            Matrix::new(coefficients.repeat(thresholds.len()), features.n_features())?,
            thresholds.iter().map(|threshold| -threshold).collect(),
        )
    }
}

impl Estimator for OrdinalRegression {
    type Label = i64;
    type Fitted = LinearClassifier;

    /// In O(m² (n_rows + n_features)) a step for the smaller m of the two sides.
    ///
    /// # Errors
    ///
    /// [`Error::RowCount`], [`Error::OneClass`], [`Error::OutOfRange`], [`Error::NotConverged`],
    /// [`Error::Overflow`].
    fn fit(&self, features: &Matrix, labels: &[i64]) -> Result<Self::Fitted, Error> {
        // One result a setting.
        Self::fit_each(std::slice::from_ref(self), features, labels).swap_remove(0)
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
