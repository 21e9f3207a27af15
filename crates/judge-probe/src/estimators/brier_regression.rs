//! A linear probe trained by the Brier score: its settings. The objective and its minimum are in `objective`.

mod objective;

use crate::estimators::labels::EncodedLabels;
use crate::matrices::row_space::{Exactness, RowSpace};
use crate::{ClassWeight, DecisionRule, Error, Estimator, LinearClassifier, Matrix};
use objective::Objective;

/// The functions of [`LogisticRegression`](crate::LogisticRegression), trained by the Brier score in place of the logarithm: of two classes
/// a sigmoid of one linear function, of more a softmax of one a class.
///
/// Minimises Σ sᵢ |p(· | xᵢ) − yᵢ|² / S + ‖W‖² / (2 c S) over the coefficients W and the intercepts, which are not penalised; of two
/// classes the second's probability alone counts. sᵢ is the weight of the row's class and S the sum of them. A row that is all but certain
/// and wrong costs at most 1, or 2 of more classes, where the logarithm has no bound, so a few wrong labels move it less. Probes of whether
/// a judge is right are trained so (arXiv 2512.22245).
///
/// The objective is not convex: the minimum is the one downhill of what fits best without features.
///
/// ```
/// use judge_probe::{BrierRegression, Estimator, FittedClassifier, Matrix};
///
/// # fn main() -> Result<(), judge_probe::Error> {
/// let features = Matrix::from_rows([[0.0], [1.0], [2.0], [3.0]])?;
/// let fitted = BrierRegression::default().fit(&features, &[0, 0, 1, 1])?;
/// let p = fitted.predict_proba(&Matrix::from_rows([[1.5], [3.0]])?)?.expect("always some");
/// assert!((p.values()[1] - 0.5).abs() < 1e-6 && p.values()[3] > 0.6);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BrierRegression {
    /// Inverse strength of the penalty, above 0.
    pub c: f64,
    /// How much the rows of each class count. Probabilities are calibrated to the rows with [`ClassWeight::Uniform`] alone.
    pub class_weight: ClassWeight,
    /// How far from its minimum the objective may be, by Newton's estimate before the last step; above 0.
    pub tol: f64,
    /// Steps of Newton's method after which fitting gives up.
    pub max_iter: usize,
}

impl Default for BrierRegression {
    /// c 1, uniform weights, tol 1e-14, max_iter 200.
    fn default() -> Self {
        Self { c: 1.0, class_weight: ClassWeight::Uniform, tol: 1e-14, max_iter: 200 }
    }
}

impl BrierRegression {
    fn exactness(&self) -> Exactness {
        Exactness { c: self.c, class_weight: self.class_weight, tol: self.tol }
    }

    /// One setting, on labels and coordinates that several may share.
    fn fit_to(
        &self,
        features: &Matrix,
        labels: &EncodedLabels,
        space: &RowSpace<'_>,
    ) -> Result<LinearClassifier, Error> {
        self.exactness().check()?;
        let points = space.points(true);
        let objective = Objective::new(points, labels, self.class_weight, self.c);
        let found = objective.minimise(self.max_iter, self.tol)?;
        let n = points.n_penalised();
        LinearClassifier::from_parts(
            DecisionRule::Logistic,
            labels.classes.clone(),
            Matrix::new(space.of_features(found.as_ref().subrows(0, n)), features.n_features())?,
            (0..found.ncols()).map(|column| found[(n, column)]).collect(),
        )
    }
}

impl Estimator for BrierRegression {
    type Label = i64;
    type Fitted = LinearClassifier;

    /// In O(m (n_rows + n_features)) an iteration of conjugate gradients, some dozens of them a step, for the smaller m of the two sides.
    ///
    /// # Errors
    ///
    /// [`Error::RowCount`], [`Error::OneClass`], [`Error::OutOfRange`], [`Error::NotConverged`],
    /// [`Error::Overflow`].
    fn fit(&self, features: &Matrix, labels: &[i64]) -> Result<Self::Fitted, Error> {
        // One result a setting.
        Self::fit_each(std::slice::from_ref(self), features, labels).swap_remove(0)
    }

    /// The features are factored once; each fit starts anew from what fits best without features.
    fn fit_each(settings: &[Self], features: &Matrix, labels: &[i64]) -> Vec<Result<Self::Fitted, Error>> {
        RowSpace::fit_each(settings, features, labels, Self::exactness, |settings, space, labels| {
            settings.fit_to(features, labels, space)
        })
    }
}
