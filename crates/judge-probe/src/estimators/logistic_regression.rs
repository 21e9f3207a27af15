//! Logistic regression with an L2 penalty: settings, their checks, and what is fitted. The objective is `loss`, its minimum `newton`'s.

mod loss;
mod newton;
mod points;

use faer::Mat;

use crate::estimators::descent::Penalty;
use crate::estimators::labels::EncodedLabels;
use crate::matrices::row_space::{Exactness, RowSpace};
use crate::matrices::sparse_matrix::SparseMatrix;
use crate::{ClassWeight, DecisionRule, Error, Estimator, LinearClassifier, Matrix};
use loss::Loss;
use newton::{Objective, Preconditioner};
use points::Features;

/// Logistic regression with an L2 penalty, as `sklearn.linear_model.LogisticRegression`: of two classes a sigmoid of one linear function,
/// of more a softmax of one a class.
///
/// Minimises Σ sᵢ (−ln p(yᵢ | xᵢ)) / S + ‖W‖² / (2 c S) over the coefficients W and the intercepts, which are not penalised; sᵢ is the
/// weight of the row's class and S the sum of them.
///
/// ```
/// use judge_probe::{Estimator, FittedClassifier, FittedEstimator, LogisticRegression, Matrix};
///
/// # fn main() -> Result<(), judge_probe::Error> {
/// let features = Matrix::from_rows([[0.0], [1.0], [2.0], [3.0]])?;
/// let fitted = LogisticRegression::default().fit(&features, &[0, 0, 1, 1])?;
/// assert_eq!(fitted.predict(&Matrix::from_rows([[1.2], [1.8]])?)?, [0, 1]);
/// assert!(fitted.intercepts()[0] + 1.5 * fitted.coefficients().values()[0] < 1e-12);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogisticRegression {
    /// Inverse strength of the penalty, above 0.
    /// Like scikit-learn's `C`: the objective is C Σ sᵢ (−ln p) + ‖W‖² / 2, here divided by c S, which leaves the minimum
    /// where it is and makes `tol` independent of the number of rows.
    pub c: f64,
    /// How much the rows of each class count.
    /// Weights enter the loss and S alike; the penalty they leave alone, but for c S.
    pub class_weight: ClassWeight,
    /// Whether to fit intercepts; without, they are 0.
    /// A function without intercept is 0 at the origin, so it rarely suits features that are not centred.
    pub fit_intercept: bool,
    /// How far from its minimum the objective may be, by Newton's estimate before the last step; above 0. scikit-learn's `tol` bounds the
    /// gradient instead, whose size depends on the scale of the features.
    pub tol: f64,
    /// Steps of Newton's method after which fitting gives up; few problems need more than 20.
    /// Reaching it is [`Error::NotConverged`]; scikit-learn's solvers warn and return what they have.
    pub max_iter: usize,
}

impl Default for LogisticRegression {
    /// c 1, uniform weights, with intercepts, tol 1e-14, max_iter 100.
    ///
    /// c, weights and intercepts are scikit-learn's; `tol` and `max_iter` belong to this solver. Near the minimum each
    /// step divides the distance by a million or more, so that a tight `tol` costs a step or two more and leaves little
    /// that depends on the start.
    fn default() -> Self {
        Self { c: 1.0, class_weight: ClassWeight::Uniform, fit_intercept: true, tol: 1e-14, max_iter: 100 }
    }
}

impl LogisticRegression {
    /// The settings that say how exact coordinates must be, and that have a range. A `max_iter` of 0 is no error: fitting
    /// then ends with [`Error::NotConverged`].
    fn exactness(&self) -> Exactness {
        Exactness { c: self.c, class_weight: self.class_weight, tol: self.tol }
    }

    /// Fits sparse features, such as TF-IDF weights: the same objective and minimum as [`fit`](Estimator::fit) has for
    /// the same rows written out. Nothing is centred, no row is made dense, and memory grows with the values that are not 0: a step of
    /// Newton's method is conjugate gradients, each O(values · classes).
    ///
    /// ```
    /// use judge_probe::{LogisticRegression, TfidfVectorizer};
    ///
    /// let texts = ["a good answer", "a bad answer", "good", "bad, bad"];
    /// let words = TfidfVectorizer::default().fit(&texts)?;
    /// let fitted = LogisticRegression::default().fit_sparse(&words.transform(&texts)?, &[1, 0, 1, 0])?;
    /// let unseen = words.transform(&["so good", "how bad"])?;
    /// assert_eq!(fitted.sparse_predictions(&unseen)?.labels, [1, 0]);
    /// # Ok::<(), judge_probe::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`fit`](Estimator::fit).
    pub fn fit_sparse(&self, features: &SparseMatrix, labels: &[i64]) -> Result<LinearClassifier, Error> {
        // One result a setting.
        Self::fit_each_sparse(std::slice::from_ref(self), features, labels).swap_remove(0)
    }

    /// [`fit_sparse`](Self::fit_sparse) of several settings, each from where that of the next smaller c ended; results in their order.
    pub(crate) fn fit_each_sparse(
        settings: &[Self],
        features: &SparseMatrix,
        labels: &[i64],
    ) -> Vec<Result<LinearClassifier, Error>> {
        let labels = EncodedLabels::of_rows(features.n_rows(), labels);
        fit_path(settings, labels.map(|labels| (Features::Sparse(features), labels)))
    }
}

/// The fits of all settings in their order, from the smallest c to the greatest.
///
/// A setting that is out of range or does not converge spoils no other; after one that does not converge the next starts
/// from 0. An error of the features is that of every setting.
fn fit_path(
    settings: &[LogisticRegression],
    data: Result<(Features<'_>, EncodedLabels), Error>,
) -> Vec<Result<LinearClassifier, Error>> {
    let (features, labels) = match data {
        Ok(data) => data,
        Err(error) => return settings.iter().map(|_| Err(error.clone())).collect(),
    };
    let mut order: Vec<usize> = (0..settings.len()).collect();
    order.sort_by(|&i, &j| settings[i].c.total_cmp(&settings[j].c));
    let mut path = Path { features: &features, labels: &labels, last: [None, None] };
    let mut fitted: Vec<_> = order.into_iter().map(|i| (i, path.fit(&settings[i]))).collect();
    fitted.sort_by_key(|(i, _)| *i);
    fitted.into_iter().map(|(_, fitted)| fitted).collect()
}

impl Estimator for LogisticRegression {
    type Label = i64;
    type Fitted = LinearClassifier;

    /// There is a minimum for any features: the penalty bounds the coefficients, and since every class has rows, no
    /// intercept runs away. With fewer rows than features the optimal W is a combination of rows, which lets the lesser
    /// side decide on the cost.
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

    /// The features are factored once, and each fit starts from that of the next smaller c.
    ///
    /// In the order of `settings`, whatever the order of c. A setting that is out of range or does not converge spoils no
    /// other; after one that does not converge the next starts from 0.
    fn fit_each(settings: &[Self], features: &Matrix, labels: &[i64]) -> Vec<Result<Self::Fitted, Error>> {
        let data = RowSpace::with_labels(features, labels, settings.iter().map(Self::exactness));
        fit_path(settings, data.map(|(space, labels)| (Features::Dense(space), labels)))
    }
}

/// Fits to the same data, each from where the last one ended.
struct Path<'a> {
    features: &'a Features<'a>,
    labels: &'a EncodedLabels,
    /// Without intercepts and with.
    /// Coefficients `[n_coordinates, n_columns]` of the last fit that converged, and the preconditioner it ended with.
    /// The two kinds have different numbers of coordinates and cannot start each other.
    last: [Option<(Mat<f64>, Option<Preconditioner>)>; 2],
}

impl Path<'_> {
    /// One setting, from where the last one of its kind ended. Class weights may differ between settings: they change the
    /// objective, and the start need only be near.
    fn fit(&mut self, settings: &LogisticRegression) -> Result<LinearClassifier, Error> {
        settings.exactness().check()?;
        let of_classes = settings.class_weight.of_classes(&self.labels.counts);
        let weights = self.labels.class_of_row.iter().map(|&class| of_classes[class]);
        let sum: f64 = weights.clone().sum();
        let points = self.features.points(settings.fit_intercept);
        let objective = Objective {
            penalty: Penalty { lambda: 1.0 / (settings.c * sum), n: points.n_penalised() },
            points,
            loss: Loss {
                class_of_row: &self.labels.class_of_row,
                weights: weights.map(|weight| weight / sum).collect(),
            },
        };
        let n_columns = if self.labels.classes.len() == 2 { 1 } else { self.labels.classes.len() };
        // Taken, so that what did not converge is no start for the next.
        let last = &mut self.last[usize::from(settings.fit_intercept)];
        let (mut found, mut preconditioner) =
            last.take().unwrap_or_else(|| (Mat::zeros(objective.points.shape().0, n_columns), None));
        objective.minimise(&mut found, &mut preconditioner, settings.max_iter, settings.tol)?;

        let coefficients = self.features.of_features(found.as_ref().subrows(0, objective.points.n_penalised()));
        let n_features = coefficients.len() / n_columns;
        let intercepts =
            (0..n_columns).map(|column| found.col(column).iter().skip(objective.points.n_penalised()).sum()).collect();
        *last = Some((found, preconditioner));
        LinearClassifier::from_parts(
            DecisionRule::Logistic,
            self.labels.classes.clone(),
            Matrix::new(coefficients, n_features)?,
            intercepts,
        )
    }
}
