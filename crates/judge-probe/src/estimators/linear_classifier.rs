//! From the values of linear functions to classes, decisions and probabilities: one type for every linear classifier, fitted here or
//! imported, so that there is one file format and one way to predict. It learns nothing.
//!
//! The rules differ in what the functions stand for and are kept apart by [`DecisionRule`] alone; each follows the program whose probes it
//! reads, to the order in which ties are broken.
//!
//! The values themselves are `linear_functions`', row by row and in a fixed order. Probabilities exist for two rules,
//! numbers besides the class for three; both depend on the rule alone and not on how a classifier was fitted.

use crate::estimators::linear_functions::{first_greatest, linear_functions, sparse_functions};
use crate::estimators::parameters::{check_ascending, check_count, check_each};
use crate::estimators::sigmoid::{softmax, softplus};
use crate::{
    DecisionRule, Error, FittedClassifier, FittedEstimator, Matrix, Predictions, ProbabilityTable, SparseMatrix,
};

/// Linear functions and the rule they decide by: what every linear classifier is once it is fitted, wherever that was.
///
/// ```
/// use judge_probe::{DecisionRule, FittedClassifier, FittedEstimator, LinearClassifier, Matrix};
///
/// // Class 4 where the second feature is greater than the first.
/// let coefficients = Matrix::from_rows([[-1.0, 1.0]])?;
/// let classifier = LinearClassifier::from_parts(DecisionRule::Logistic, vec![2, 4], coefficients, vec![0.0])?;
/// let features = Matrix::from_rows([[1.0, 3.0], [3.0, 1.0]])?;
/// assert_eq!(classifier.predict(&features)?, [4, 2]);
/// assert_eq!(classifier.decision_function(&features)?.values(), [2.0, -2.0]);
/// # Ok::<(), judge_probe::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct LinearClassifier {
    rule: DecisionRule,
    classes: Vec<i64>,
    coefficients: Matrix,
    intercepts: Vec<f64>,
}

impl LinearClassifier {
    /// A classifier from its classes, ascending, the functions' coefficients `[n_functions, n_features]` and their intercepts.
    ///
    /// # Errors
    ///
    /// [`Error::OneClass`], [`Error::ClassOrder`]; [`Error::ParameterCount`] for other than [`n_functions`](DecisionRule::n_functions) rows
    /// or intercepts; [`Error::InvalidParameter`] for an intercept that is not finite; [`Error::CumulativeFunctions`] where functions of
    /// [`DecisionRule::Cumulative`] cross or stand in another order.
    pub fn from_parts(
        rule: DecisionRule,
        classes: Vec<i64>,
        coefficients: Matrix,
        intercepts: Vec<f64>,
    ) -> Result<Self, Error> {
        check_ascending(&classes)?;
        if let [] | [_] = classes[..] {
            return Err(Error::ParameterCount { name: "classes, at least", expected: 2, found: classes.len() });
        }
        let n_functions = rule.n_functions(classes.len());
        check_count("rows of coefficients", n_functions, coefficients.n_rows())?;
        check_count("intercepts", n_functions, intercepts.len())?;
        check_each("intercept", &intercepts, f64::is_finite)?;
        if rule == DecisionRule::Cumulative {
            let neighbours = coefficients.rows().zip(coefficients.rows().skip(1)).zip(intercepts.windows(2));
            let disordered =
                |(rows, intercepts): ((&[f64], &[f64]), &[f64])| rows.0 != rows.1 || intercepts[0] <= intercepts[1];
            if let Some(first) = neighbours.map(disordered).position(|disordered| disordered) {
                return Err(Error::CumulativeFunctions { first });
            }
        }
        Ok(Self { rule, classes, coefficients, intercepts })
    }

    /// How the functions decide.
    pub fn rule(&self) -> DecisionRule {
        self.rule
    }

    /// `[n_functions, n_features]`.
    pub fn coefficients(&self) -> &Matrix {
        &self.coefficients
    }

    /// One a function.
    pub fn intercepts(&self) -> &[f64] {
        &self.intercepts
    }

    /// The functions' values, `[n_rows, n_functions]`; of [`DecisionRule::OneVsOne`] those of every two classes.
    ///
    /// # Errors
    ///
    /// [`Error::FeatureCount`]; [`Error::NonFiniteFeature`] where a value overflows.
    pub fn functions(&self, features: &Matrix) -> Result<Matrix, Error> {
        linear_functions(features, &self.coefficients, &self.intercepts)
    }

    /// See [`FittedProbe::scores`](crate::FittedProbe::scores).
    ///
    /// Of [`DecisionRule::Nearest`] the function's value, clamped to the range of the classes; of rules with
    /// probabilities the mean of the classes under them; else `None`.
    pub(crate) fn scores(&self, features: &Matrix) -> Result<Option<Vec<f64>>, Error> {
        match (self.rule, &self.classes[..]) {
            (DecisionRule::Nearest, &[low, .., high]) => {
                let on_scale = |value: &f64| value.clamp(low as f64, high as f64);
                Ok(Some(self.functions(features)?.values().iter().map(on_scale).collect()))
            }
            _ => self.expected_classes(features),
        }
    }

    /// The classes that values of the functions decide for, with ties broken as [`DecisionRule`] says.
    fn decided(&self, functions: &Matrix) -> Vec<i64> {
        // NaN cannot occur: the functions are a `Matrix`, which is finite.
        let class_of = |row: &[f64]| match (self.rule, row) {
            (DecisionRule::OneVsOne, row) => first_greatest(&self.votes(row)),
            (DecisionRule::Nearest, row) => match self.nearness(row[0])[..] {
                [value] => usize::from(value > 0.0),
                ref distances => first_greatest(distances),
            },
            (_, [value]) => usize::from(*value > 0.0),
            (DecisionRule::Cumulative, row) => first_greatest(&self.log_probabilities(row)),
            (DecisionRule::Logistic | DecisionRule::OneVsRest, row) => first_greatest(row),
        };
        functions.rows().map(|row| self.classes[class_of(row)]).collect()
    }

    /// The probability of each class for values of the functions; `None` of rules without.
    fn probabilities(&self, functions: &Matrix) -> Result<Option<Matrix>, Error> {
        if let DecisionRule::OneVsRest | DecisionRule::OneVsOne | DecisionRule::Nearest = self.rule {
            return Ok(None);
        }
        let probabilities = |row: &[f64]| {
            let mut values = match row {
                [logit] => vec![0.0, *logit],
                // Sums to 1 but for rounding, which the softmax takes away.
                functions if self.rule == DecisionRule::Cumulative => self.log_probabilities(functions),
                logits => logits.to_vec(),
            };
            softmax(&mut values);
            values
        };
        Matrix::new(functions.rows().flat_map(probabilities).collect(), self.classes.len()).map(Some)
    }

    /// Classes and, where the rule has them, probabilities of sparse rows.
    ///
    /// # Errors
    ///
    /// [`Error::FeatureCount`]; [`Error::NonFiniteFeature`] where a value overflows.
    pub fn sparse_predictions(&self, features: &SparseMatrix) -> Result<Predictions<i64>, Error> {
        let functions = sparse_functions(features, &self.coefficients, &self.intercepts)?;
        let table = |p: Matrix| ProbabilityTable::new(self.classes.clone(), p);
        let probabilities = self.probabilities(&functions)?.map(table).transpose()?;
        Ok(Predictions { labels: self.decided(&functions), probabilities })
    }

    /// What a value of the function speaks for the classes, see [`DecisionRule::Nearest`].
    ///
    /// Of two classes one value, above 0 nearer to the second; of more `[n_classes]`, 0 at most. A value in the middle
    /// belongs to the lower class.
    fn nearness(&self, value: f64) -> Vec<f64> {
        match self.classes[..] {
            [first, second] => vec![value - (first as f64 / 2.0 + second as f64 / 2.0)],
            _ => self.classes.iter().map(|&class| -(value - class as f64).abs()).collect(),
        }
    }

    /// The pairs of classes in the order of [`DecisionRule::OneVsOne`].
    fn pairs(&self) -> impl Iterator<Item = (usize, usize)> {
        let n_classes = self.classes.len();
        (0..n_classes).flat_map(move |i| (i + 1..n_classes).map(move |j| (i, j)))
    }

    /// How many of its pairs each class wins, as libsvm's `predict` counts.
    ///
    /// The votes of one row add up to the number of pairs.
    fn votes(&self, functions: &[f64]) -> Vec<f64> {
        let mut votes = vec![0.0; self.classes.len()];
        for ((i, j), value) in self.pairs().zip(functions) {
            votes[if *value > 0.0 { i } else { j }] += 1.0;
        }
        votes
    }

    /// ln p of each class, by σ(v) − σ(w) = σ(v) σ(−w) (1 − eʷ⁻ᵛ), so that no small difference is taken. Those of the cumulative functions
    /// of one row are finite.
    ///
    /// With p(y > class k) = σ(fₖ) for f falling in k, class k has σ(fₖ₋₁) − σ(fₖ). The difference of two functions is
    /// that of their intercepts alone, which [`from_parts`](Self::from_parts) has checked to be positive.
    fn log_probabilities(&self, functions: &[f64]) -> Vec<f64> {
        let of_class = |class: usize| {
            let above_lower = class.checked_sub(1).map_or(0.0, |lower| -softplus(-functions[lower]));
            let not_above = functions.get(class).map_or(0.0, |function| -softplus(*function));
            let between = match class.checked_sub(1).zip(self.intercepts.get(class)) {
                Some((lower, upper)) => (-f64::exp_m1(upper - self.intercepts[lower])).ln(),
                None => 0.0,
            };
            above_lower + not_above + between
        };
        (0..self.classes.len()).map(of_class).collect()
    }

    /// scikit-learn's `_ovr_decision_function`, where 0 counts for the first of a pair, unlike in libsvm's vote.
    ///
    /// The shift is below 1/3 in size, so that it decides between equal votes and never between others.
    fn graded_votes(&self, functions: &[f64]) -> Vec<f64> {
        let (mut votes, mut confidences) = (vec![0.0; self.classes.len()], vec![0.0; self.classes.len()]);
        for ((i, j), value) in self.pairs().zip(functions) {
            votes[if *value < 0.0 { j } else { i }] += 1.0;
            confidences[i] += value;
            confidences[j] -= value;
        }
        let shift = |confidence: f64| confidence / (3.0 * (confidence.abs() + 1.0));
        votes.iter().zip(confidences).map(|(votes, confidence)| votes + shift(confidence)).collect()
    }
}

impl FittedEstimator for LinearClassifier {
    type Label = i64;

    fn n_features(&self) -> usize {
        self.coefficients.n_features()
    }

    /// By the rule, with ties broken as [`DecisionRule`] says.
    fn predict(&self, features: &Matrix) -> Result<Vec<i64>, Error> {
        Ok(self.decided(&self.functions(features)?))
    }

    fn predictions(&self, features: &Matrix) -> Result<Predictions<i64>, Error> {
        Predictions::of_classifier(self, features)
    }
}

impl FittedClassifier for LinearClassifier {
    fn classes(&self) -> &[i64] {
        &self.classes
    }

    /// Of [`DecisionRule::Logistic`] and [`DecisionRule::OneVsRest`] the functions themselves, as of
    /// [`DecisionRule::Cumulative`] with two classes; with more, that one has ln p of each class. See [`DecisionRule`]
    /// for the others.
    fn decision_function(&self, features: &Matrix) -> Result<Matrix, Error> {
        let functions = self.functions(features)?;
        match (self.rule, self.classes.len()) {
            (DecisionRule::Logistic | DecisionRule::OneVsRest, _) | (DecisionRule::Cumulative, 2) => Ok(functions),
            (DecisionRule::Cumulative, n_classes) => {
                Matrix::new(functions.rows().flat_map(|row| self.log_probabilities(row)).collect(), n_classes)
            }
            (DecisionRule::Nearest, n_classes) => {
                let n_decisions = if n_classes == 2 { 1 } else { n_classes };
                Matrix::new(functions.values().iter().flat_map(|&value| self.nearness(value)).collect(), n_decisions)
            }
            (DecisionRule::OneVsOne, 2) => Matrix::new(functions.values().iter().map(|value| -value).collect(), 1),
            (DecisionRule::OneVsOne, n_classes) => {
                Matrix::new(functions.rows().flat_map(|row| self.graded_votes(row)).collect(), n_classes)
            }
        }
    }

    /// Of [`DecisionRule::Logistic`] and [`DecisionRule::Cumulative`]; else `None`.
    fn predict_proba(&self, features: &Matrix) -> Result<Option<Matrix>, Error> {
        let functions = self.functions(features)?;
        self.probabilities(&functions)
    }
}
