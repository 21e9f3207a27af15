//! The rules by which values of linear functions become a class. What decides by them is `linear_classifier`.

/// How the values of linear functions become a class.
///
/// Functions are f(x) = w·x + b. Classes i and j are positions in the ascending list of classes;
/// [`Nearest`](Self::Nearest) alone compares with their values. Saved probes name the rule in snake case.
///
/// | rule | functions for 2 and for n classes | probabilities |
/// |---|---|---|
/// | [`Logistic`](Self::Logistic) | 1, n | sigmoid, softmax |
/// | [`OneVsRest`](Self::OneVsRest) | 1, n | none |
/// | [`OneVsOne`](Self::OneVsOne) | 1, n (n − 1) / 2 | none |
/// | [`Cumulative`](Self::Cumulative) | 1, n − 1 | differences of sigmoids |
/// | [`Nearest`](Self::Nearest) | 1, 1 | none |
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionRule {
    /// Logistic regression: one function for two classes, above 0 for the second, else one a class, of which the greatest wins. A sigmoid
    /// or softmax gives probabilities.
    Logistic,
    /// scikit-learn's `LinearSVC`: decides as logistic regression does, and knows no probabilities.
    OneVsRest,
    /// libsvm's: a function for every two classes i < j, (0, 1), (0, 2), … (1, 2), …, above 0 for class i. Each gives its winner a vote,
    /// most votes win, and the first class of equals. As in scikit-learn, the decision of two classes is the negated function, and that of
    /// more a class's votes, shifted by less than a third by how clear they were. Between classes with equal votes the shift decides but
    /// the prediction does not ask it, so that the greatest decision may be that of another class than the one predicted. A function of
    /// exactly 0 is a vote for class j when a class is predicted and for class i in the decision.
    OneVsOne,
    /// Ordinal regression: a function for every two neighbouring classes, whose sigmoid is the probability of a class above the lower one.
    /// They differ in their intercepts alone, which fall: these are the thresholds between classes, negated. The most probable class wins,
    /// the first of equals.
    Cumulative,
    /// [`RidgeToClass`](crate::RidgeToClass): one function, whatever the number of classes. The class whose value is nearest to it wins,
    /// the lower of equals; there are no probabilities. The decision of two classes is the function less their middle, that of more its
    /// distance from each, negated.
    Nearest,
}

impl DecisionRule {
    /// Functions that the rule needs for this many classes, two or more; of fewer there is nothing to decide.
    ///
    /// ```
    /// use judge_probe::DecisionRule;
    ///
    /// assert_eq!((DecisionRule::Logistic.n_functions(2), DecisionRule::Logistic.n_functions(5)), (1, 5));
    /// assert_eq!(DecisionRule::OneVsOne.n_functions(5), 10);
    /// assert_eq!(DecisionRule::Cumulative.n_functions(5), 4);
    /// assert_eq!((DecisionRule::OneVsOne.n_functions(0), DecisionRule::Cumulative.n_functions(0)), (0, 0));
    /// ```
    pub fn n_functions(self, n_classes: usize) -> usize {
        match self {
            Self::Logistic | Self::OneVsRest if n_classes == 2 => 1,
            Self::Logistic | Self::OneVsRest => n_classes,
            Self::OneVsOne => n_classes.saturating_mul(n_classes.saturating_sub(1)) / 2,
            Self::Cumulative => n_classes.saturating_sub(1),
            Self::Nearest => 1,
        }
    }

    /// Whether classifiers of this rule answer with a number besides a class: the mean under probabilities, or a function.
    pub fn has_number(self) -> bool {
        match self {
            Self::Logistic | Self::Cumulative | Self::Nearest => true,
            Self::OneVsRest | Self::OneVsOne => false,
        }
    }
}
