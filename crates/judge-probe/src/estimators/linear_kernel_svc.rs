//! Support vector classification with a linear kernel, as libsvm fits it: settings, a problem for every two classes, and the fold of
//! multipliers into weights. The solver of a single problem is in `smo`.
//!
//! Memory is the concern here: one pair's table of inner products grows with the square of its rows, so pairs are done
//! one after another, and all settings are fitted to a pair while its table is there.

mod smo;

use std::slice;

use faer::Mat;

use crate::estimators::labels::EncodedLabels;
use crate::estimators::parameters::check_c_and_tol;
use crate::matrices::products::{check_squares, lower_gram, transposed};
use crate::selection::cross_validation::select;
use crate::{ClassWeight, DecisionRule, Error, Estimator, LinearClassifier, Matrix};
use smo::{TwoClasses, mirror_lower};

/// A linear support vector machine for every two classes, as `sklearn.svm.SVC(kernel="linear")`, which is libsvm's. (Not as
/// `sklearn.svm.LinearSVC`, which sets each class against the rest, squares the loss and penalises the intercept.)
///
/// For classes i < j, minimises ‖w‖² / 2 + c Σ sᵢ max(0, 1 ∓ (w x + b)) over the rows of the two, with the weights s of all classes. Which
/// class wins is put to the vote; see [`DecisionRule::OneVsOne`].
///
/// Where no row of two classes is on its margin, an interval of intercepts is optimal, as with balanced weights and a small c. It is then
/// the middle of the interval; libsvm's is an end of it where a rounding error keeps a multiplier below its bound, and predictions differ.
///
/// ```
/// use judge_probe::{Estimator, FittedClassifier, LinearKernelSvc, Matrix};
///
/// # fn main() -> Result<(), judge_probe::Error> {
/// let features = Matrix::from_rows([[0.0], [1.0], [3.0], [4.0]])?;
/// let fitted = LinearKernelSvc { c: 10.0, ..LinearKernelSvc::default() }.fit(&features, &[0, 0, 1, 1])?;
/// // The margin reaches from 1 to 3.
/// let decisions = fitted.decision_function(&features)?;
/// assert!((decisions.values()[1] + 1.0).abs() < 1e-9 && (decisions.values()[2] - 1.0).abs() < 1e-9);
/// # Ok(())
/// # }
/// ```
#[doc(alias = "SVC")]
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinearKernelSvc {
    /// Inverse strength of the penalty, above 0.
    /// scikit-learn's `C`, the weight of a row's loss next to ‖w‖² / 2. There is no division by the number of rows, so
    /// that more rows weaken the penalty.
    pub c: f64,
    /// How much the rows of each class count.
    /// Balanced weights come from the rows of all classes, as scikit-learn's, and not from those of the pair.
    pub class_weight: ClassWeight,
    /// How far the conditions of optimality may be from holding, in units of the margin; above 0.
    /// libsvm's `eps` and scikit-learn's `tol`.
    pub tol: f64,
    /// Pairs of multipliers optimised, for two classes, after which fitting gives up.
    /// Each costs O(rows of the two classes). Reaching it is [`Error::NotConverged`].
    pub max_iter: usize,
}

impl Default for LinearKernelSvc {
    /// c 1, uniform weights, tol 1e-8, max_iter 10 000 000.
    ///
    /// scikit-learn's tol is 1e-3; the tighter one leaves less to the order of the rows and of the arithmetic.
    fn default() -> Self {
        Self { c: 1.0, class_weight: ClassWeight::Uniform, tol: 1e-8, max_iter: 10_000_000 }
    }
}

/// What one of the settings has found so far: coefficients and intercepts of the pairs of classes done.
/// Coefficients are those of all pairs one after another, each `[n_features]`.
type Found = (Vec<f64>, Vec<f64>);

/// The rows of two classes.
/// They keep the order that they have in the features.
struct Pair {
    features: Matrix,
    /// Inner products of the rows, in full.
    /// `[n_rows, n_rows]` of the pair's rows.
    products: Mat<f64>,
    /// The class of each row, one of the two.
    classes: Vec<usize>,
    /// The first of the two.
    first: usize,
}

impl Pair {
    /// O(m² n_features) for the m rows of the two classes, the dearest part of most fits. The features' squares must have
    /// been checked: the products are then finite.
    fn new(features: &Matrix, labels: &EncodedLabels, first: usize, second: usize) -> Result<Self, Error> {
        let of_pair = |row: &usize| [first, second].contains(&labels.class_of_row[*row]);
        let rows: Vec<usize> = (0..features.n_rows()).filter(of_pair).collect();
        let features = features.select_rows(&rows)?;
        let mut products = lower_gram(transposed(&features).transpose());
        mirror_lower(&mut products);
        Ok(Self { features, products, classes: select(&labels.class_of_row, &rows), first })
    }

    /// Coefficients and intercept; `weights` are those of the classes.
    ///
    /// The first class is the positive one, as libsvm has it, so that a function above 0 is a vote for it.
    ///
    /// [`Error::NotConverged`].
    fn solve(&self, settings: &LinearKernelSvc, weights: &[f64]) -> Result<(Vec<f64>, f64), Error> {
        let sign = |&class: &usize| if class == self.first { 1.0 } else { -1.0 };
        let problem = TwoClasses {
            products: self.products.as_ref(),
            signs: &self.classes.iter().map(sign).collect::<Vec<_>>(),
            bounds: &self.classes.iter().map(|&class| settings.c * weights[class]).collect::<Vec<_>>(),
        };
        let found = problem.solve(settings.max_iter, settings.tol);
        if found.gap >= settings.tol {
            let (max_iter, tol) = (settings.max_iter, settings.tol);
            return Err(Error::NotConverged { n_iter: found.n_iter, max_iter, gap: found.gap, tol });
        }
        // w = Σ yᵢ αᵢ xᵢ. Rows that are no support vectors drop out.
        let mut coefficients = vec![0.0; self.features.n_features()];
        for (row, weight) in self.features.rows().zip(&found.weights).filter(|(_, weight)| **weight != 0.0) {
            coefficients.iter_mut().zip(row).for_each(|(sum, value)| *sum += weight * value);
        }
        Ok((coefficients, found.intercept))
    }
}

impl LinearKernelSvc {
    /// Goes through the pairs of classes one by one, and through the settings for each, so that one table of inner products is held at a
    /// time.
    ///
    /// The outer error is one of the data, which concerns all settings; the inner ones are of single settings, in their
    /// order. A setting that has failed for one pair is not tried for the next.
    fn fit_all(
        settings: &[Self],
        features: &Matrix,
        labels: &EncodedLabels,
    ) -> Result<Vec<Result<LinearClassifier, Error>>, Error> {
        check_squares(features)?;
        let mut found: Vec<Result<Found, Error>> =
            settings.iter().map(|of| check_c_and_tol(of.c, of.tol).map(|()| Found::default())).collect();
        let classes = 0..labels.classes.len();
        for (first, second) in classes.clone().flat_map(|i| classes.clone().skip(i + 1).map(move |j| (i, j))) {
            let pair = Pair::new(features, labels, first, second)?;
            for (settings, slot) in settings.iter().zip(&mut found) {
                let Ok((coefficients, intercepts)) = slot else { continue };
                match pair.solve(settings, &settings.class_weight.of_classes(&labels.counts)) {
                    Ok((of_pair, intercept)) => {
                        coefficients.extend(of_pair);
                        intercepts.push(intercept);
                    }
                    Err(error) => *slot = Err(error),
                }
            }
        }
        let fitted = |found: Result<Found, Error>| {
            let (coefficients, intercepts) = found?;
            let coefficients = Matrix::new(coefficients, features.n_features())?;
            let rule = DecisionRule::OneVsOne;
            LinearClassifier::from_parts(rule, labels.classes.clone(), coefficients, intercepts)
        };
        Ok(found.into_iter().map(fitted).collect())
    }
}

impl Estimator for LinearKernelSvc {
    type Label = i64;
    type Fitted = LinearClassifier;

    /// Holds the inner products of the rows of two classes at a time and a copy of these rows: 8 m² + 8 m n_features bytes for the m rows
    /// of the two largest classes. [`GridSearch`](crate::GridSearch) and whatever else fits splits in parallel needs as much for each
    /// thread, however many settings it compares: 5,000 rows of two classes take 200 MB a thread besides their features.
    ///
    /// # Errors
    ///
    /// [`Error::RowCount`], [`Error::OneClass`], [`Error::OutOfRange`], [`Error::NotConverged`],
    /// [`Error::Overflow`].
    fn fit(&self, features: &Matrix, labels: &[i64]) -> Result<Self::Fitted, Error> {
        // One result a setting.
        Self::fit_each(slice::from_ref(self), features, labels).swap_remove(0)
    }

    /// Inner products are formed once.
    ///
    /// For every two classes, and used for all settings. A fit does not start from another's: the results are those of
    /// [`fit`](Estimator::fit) to the last bit.
    fn fit_each(settings: &[Self], features: &Matrix, labels: &[i64]) -> Vec<Result<Self::Fitted, Error>> {
        let all = EncodedLabels::new(features, labels).and_then(|labels| Self::fit_all(settings, features, &labels));
        all.unwrap_or_else(|error| settings.iter().map(|_| Err(error.clone())).collect())
    }
}
