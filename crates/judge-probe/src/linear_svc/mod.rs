mod smo;

use faer::Mat;

use crate::labels::EncodedLabels;
use crate::products::{check_squares, lower_gram, transposed};
use crate::{
    ClassWeight, DecisionRule, Error, Estimator, FittedClassifier, FittedEstimator, LinearClassifier, Matrix,
    Predictions,
};
use smo::{TwoClasses, symmetric_part};

/// A linear support vector machine for every two classes, as `sklearn.svm.SVC(kernel="linear")`, which is libsvm's. (Not as
/// `sklearn.svm.LinearSVC`, which sets each class against the rest, squares the loss and penalises the intercept.)
///
/// For classes i < j, minimises ‖w‖² / 2 + c Σ sᵢ max(0, 1 ∓ (w x + b)) over the rows of the two, with the weights s of all classes. Which class
/// wins is put to the vote; see [`DecisionRule::OneVsOne`].
///
/// ```
/// use judge_probe::{Estimator, FittedClassifier, LinearSvc, Matrix};
///
/// # fn main() -> Result<(), judge_probe::Error> {
/// let features = Matrix::from_rows([[0.0], [1.0], [3.0], [4.0]])?;
/// let fitted = LinearSvc { c: 10.0, ..LinearSvc::default() }.fit(&features, &[0, 0, 1, 1])?;
/// // The margin reaches from 1 to 3.
/// let decisions = fitted.decision_function(&features)?;
/// assert!((decisions.values()[1] + 1.0).abs() < 1e-9 && (decisions.values()[2] - 1.0).abs() < 1e-9);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinearSvc {
    /// Inverse strength of the penalty, above 0.
    pub c: f64,
    /// How much the rows of each class count.
    pub class_weight: ClassWeight,
    /// How far the conditions of optimality may be from holding, in units of the margin; above 0.
    pub tol: f64,
    /// Pairs of multipliers optimised, for two classes, after which fitting gives up.
    pub max_iter: usize,
}

impl Default for LinearSvc {
    /// c 1, uniform weights, tol 1e-8, max_iter 10 000 000.
    fn default() -> Self {
        Self { c: 1.0, class_weight: ClassWeight::Uniform, tol: 1e-8, max_iter: 10_000_000 }
    }
}

/// The linear functions that a [`LinearSvc`] found.
#[derive(Debug, Clone, PartialEq)]
pub struct FittedLinearSvc {
    linear: LinearClassifier,
    n_iter: Vec<usize>,
}

/// What all settings share.
struct Data<'a> {
    features: &'a Matrix,
    labels: EncodedLabels,
    /// Inner products of the rows, the lower triangle.
    products: Mat<f64>,
}

impl LinearSvc {
    fn check(&self) -> Result<(), Error> {
        if !(self.c.is_finite() && self.c > 0.0) {
            return Err(Error::InvalidC { c: self.c });
        }
        if !(self.tol.is_finite() && self.tol > 0.0) {
            return Err(Error::InvalidTol { tol: self.tol });
        }
        Ok(())
    }

    fn fit_to(&self, data: &Data<'_>) -> Result<FittedLinearSvc, Error> {
        self.check()?;
        let weights = self.class_weight.of_classes(&data.labels.counts);
        let classes = 0..weights.len();
        let (mut coefficients, mut intercepts, mut n_iter) = (Vec::new(), Vec::new(), Vec::new());
        for (first, second) in classes.clone().flat_map(|i| classes.clone().skip(i + 1).map(move |j| (i, j))) {
            let of_pair = |row: &usize| [first, second].contains(&data.labels.class_of_row[*row]);
            let rows: Vec<usize> = (0..data.features.n_rows()).filter(of_pair).collect();
            let classes = rows.iter().map(|&row| data.labels.class_of_row[row]);
            let products = symmetric_part(&data.products, &rows);
            let problem = TwoClasses {
                products: products.as_ref(),
                signs: &classes.clone().map(|class| if class == first { 1.0 } else { -1.0 }).collect::<Vec<_>>(),
                bounds: &classes.map(|class| self.c * weights[class]).collect::<Vec<_>>(),
            };
            let found = problem.solve(self.max_iter, self.tol);
            if found.gap >= self.tol {
                let (max_iter, tol) = (self.max_iter, self.tol);
                return Err(Error::NotConverged { n_iter: found.n_iter, max_iter, gap: found.gap, tol });
            }
            coefficients.extend(data.weighted_sum(&rows, &found.weights));
            intercepts.push(found.intercept);
            n_iter.push(found.n_iter);
        }
        let coefficients = Matrix::new(coefficients, data.features.n_features())?;
        let classes = data.labels.classes.clone();
        let linear = LinearClassifier::from_parts(DecisionRule::OneVsOne, classes, coefficients, intercepts)?;
        Ok(FittedLinearSvc { linear, n_iter })
    }
}

impl<'a> Data<'a> {
    fn new(features: &'a Matrix, labels: &[i64]) -> Result<Self, Error> {
        let labels = EncodedLabels::new(features, labels)?;
        check_squares(features)?;
        Ok(Self { features, labels, products: lower_gram(transposed(features).transpose()) })
    }

    fn weighted_sum(&self, rows: &[usize], weights: &[f64]) -> Vec<f64> {
        let n_features = self.features.n_features();
        let mut sum = vec![0.0; n_features];
        for (row, weight) in rows.iter().zip(weights).filter(|(_, weight)| **weight != 0.0) {
            let row = &self.features.values()[row * n_features..][..n_features];
            sum.iter_mut().zip(row).for_each(|(sum, value)| *sum += weight * value);
        }
        sum
    }
}

impl Estimator for LinearSvc {
    type Label = i64;
    type Fitted = FittedLinearSvc;

    /// Holds the inner products of all rows: 8 n_rows² bytes, and as much again at most.
    ///
    /// # Errors
    ///
    /// [`Error::LabelCount`], [`Error::OneClass`], [`Error::InvalidC`], [`Error::InvalidTol`], [`Error::NotConverged`], [`Error::Overflow`].
    fn fit(&self, features: &Matrix, labels: &[i64]) -> Result<Self::Fitted, Error> {
        self.fit_to(&Data::new(features, labels)?)
    }

    /// Inner products are formed once.
    fn fit_each(settings: &[Self], features: &Matrix, labels: &[i64]) -> Vec<Result<Self::Fitted, Error>> {
        match Data::new(features, labels) {
            Ok(data) => settings.iter().map(|settings| settings.fit_to(&data)).collect(),
            Err(error) => settings.iter().map(|_| Err(error.clone())).collect(),
        }
    }
}

impl FittedLinearSvc {
    /// The functions and how they decide.
    pub fn linear(&self) -> &LinearClassifier {
        &self.linear
    }

    /// Pairs of multipliers optimised for every two classes, in the order of [`DecisionRule::OneVsOne`].
    pub fn n_iter(&self) -> &[usize] {
        &self.n_iter
    }
}

impl FittedEstimator for FittedLinearSvc {
    type Label = i64;

    fn n_features(&self) -> usize {
        self.linear.n_features()
    }

    /// As scikit-learn's with `break_ties=False`: the first of the classes with most votes.
    fn predict(&self, features: &Matrix) -> Result<Vec<i64>, Error> {
        self.linear.predict(features)
    }

    fn predictions(&self, features: &Matrix) -> Result<Predictions<i64>, Error> {
        Predictions::of_classifier(self, features)
    }
}

impl FittedClassifier for FittedLinearSvc {
    fn classes(&self) -> &[i64] {
        self.linear.classes()
    }

    /// As scikit-learn's with `decision_function_shape="ovr"`: where classes have equal votes, the greatest need not be that of the class
    /// predicted. See [`DecisionRule::OneVsOne`].
    fn decision_function(&self, features: &Matrix) -> Result<Matrix, Error> {
        self.linear.decision_function(features)
    }

    /// Always none: Platt's probabilities are not fitted.
    fn predict_proba(&self, features: &Matrix) -> Result<Option<Matrix>, Error> {
        self.linear.predict_proba(features)
    }
}
