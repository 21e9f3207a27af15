/// Why features were refused or an estimator could not be fitted or applied. Indices count from 0.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No rows, or rows without features.
    #[error("a matrix needs rows and features, found {n_rows} rows of {n_features}")]
    Empty {
        /// Rows given.
        n_rows: usize,
        /// Features per row.
        n_features: usize,
    },

    /// A row of another length than the first.
    #[error("row {row} has {found} features, the first has {expected}")]
    RaggedRow {
        /// Position of the row.
        row: usize,
        /// Features of the first row.
        expected: usize,
        /// Features of this one.
        found: usize,
    },

    /// A number of values that does not fill whole rows.
    #[error("{n_values} values do not make whole rows of {n_features}")]
    PartialRow {
        /// Values given.
        n_values: usize,
        /// Features per row.
        n_features: usize,
    },

    /// A feature is NaN or infinite.
    #[error("feature {feature} of row {row} is {value}, not a finite number")]
    NonFiniteFeature {
        /// Row of the first such value.
        row: usize,
        /// Its feature.
        feature: usize,
        /// The value itself.
        value: f64,
    },

    /// A target is NaN or infinite.
    #[error("the target of row {row} is {value}, not a finite number")]
    NonFiniteTarget {
        /// Row of the first such value.
        row: usize,
        /// The value itself.
        value: f64,
    },

    /// Another number of features than at fitting.
    #[error("fitted on {expected} features, found {found}")]
    FeatureCount {
        /// Features at fitting.
        expected: usize,
        /// Features given.
        found: usize,
    },

    /// A setting outside its range, or NaN.
    #[error("{setting} must {range}, found {found}")]
    OutOfRange {
        /// Which one.
        setting: &'static str,
        /// What it must do, as in `be a positive finite number`.
        range: &'static str,
        /// The value given.
        found: f64,
    },

    /// The penalty is too small for the data to define the coefficients: some features are combinations of others.
    #[error(
        "the {order} by {order} system is singular at pivot {pivot} with alpha = {alpha}: the coefficients are undefined"
    )]
    Singular {
        /// Number of equations.
        order: usize,
        /// The pivot that is 0 but for rounding.
        pivot: usize,
        /// The penalty.
        alpha: f64,
    },

    /// Finite values so large that a sum or product of them is not.
    #[error("feature {feature} is too large for double precision: a sum over it overflows")]
    Overflow {
        /// First feature concerned.
        feature: usize,
    },

    /// More principal components than there are, or none.
    #[error("{} components can be found in the features, asked for {n_components}", up_to(*.most))]
    ComponentCount {
        /// Components asked for.
        n_components: usize,
        /// The lesser of rows and features; 0 for a single row.
        most: usize,
    },

    /// The iteration for singular values did not end.
    #[error("no singular value decomposition of {n_rows} rows of {n_features} features was found")]
    NoDecomposition {
        /// Rows of features.
        n_rows: usize,
        /// Features per row.
        n_features: usize,
    },

    /// Another number of labels, groups or texts than of rows.
    #[error("{n_rows} rows but {found} {what}")]
    RowCount {
        /// Rows there are.
        n_rows: usize,
        /// What each row should have one of: "labels", "groups" or "texts".
        what: &'static str,
        /// How many were given.
        found: usize,
    },

    /// Every row has the same label, so that there is nothing to tell apart.
    #[error("a classifier needs two classes or more, found {class} alone")]
    OneClass {
        /// The label of every row.
        class: i64,
    },

    /// The solver used up its iterations, or rounding kept it from going on, before it was as near the optimum as asked for.
    #[error(
        "not converged after {n_iter} of at most {max_iter} iterations: the optimality gap is {gap:e}, tol is {tol:e}"
    )]
    NotConverged {
        /// Iterations done.
        n_iter: usize,
        /// Iterations allowed.
        max_iter: usize,
        /// What `tol` bounds, as it was in the end.
        gap: f64,
        /// The bound.
        tol: f64,
    },

    /// Fewer than two splits.
    #[error("cross-validation needs two splits or more, found {n_splits}")]
    FewSplits {
        /// Splits asked for.
        n_splits: usize,
    },

    /// More splits than what they are to be spread over.
    #[error("{n_splits} splits need as many {unit}, found {n_units}; take fewer splits, or give more rows")]
    ManySplits {
        /// Splits asked for.
        n_splits: usize,
        /// What is spread over them.
        unit: &'static str,
        /// How many there are.
        n_units: usize,
    },

    /// A test size that leaves one part of a split empty.
    #[error("testing on {n_test} of {n} leaves a part empty")]
    TestCount {
        /// Rows or groups to be tested on.
        n_test: usize,
        /// Rows or groups there are.
        n: usize,
    },

    /// A class with too few rows.
    #[error("class {class}: expected {required} rows or more, found {n_rows}")]
    SmallClass {
        /// The class.
        class: i64,
        /// Its rows.
        n_rows: usize,
        /// The least number that would do.
        required: usize,
    },

    /// A part of a split that is too small to hold every class.
    #[error(
        "rows to {part} on: expected {n_classes} or more, one of each class, found {n_rows}; give more rows, or another share to test on"
    )]
    SmallPart {
        /// `train` or `test`.
        part: &'static str,
        /// Its rows.
        n_rows: usize,
        /// Classes to be held.
        n_classes: usize,
    },

    /// A pickle that cannot or must not be read.
    #[error("pickle: {0}")]
    Pickle(#[from] crate::pickle::ReadError),

    /// A split without rows to learn from or to test on, that names a row there is not, or tests on what it learns from.
    #[error("split {split} {problem}")]
    Split {
        /// Position of the split.
        split: usize,
        /// What is wrong.
        problem: String,
    },

    /// Splits that do not test on each row once, where each needs one prediction.
    #[error("row {row} is tested on {times} times, not once")]
    TestedTimes {
        /// The first such row.
        row: usize,
        /// Splits that test on it.
        times: usize,
    },

    /// What went wrong in one split.
    #[error("split {split}: {error}")]
    InSplit {
        /// Position of the split.
        split: usize,
        /// What went wrong.
        error: Box<Self>,
    },

    /// What went wrong with one candidate of a search.
    #[error("candidate {candidate}: {error}")]
    InCandidate {
        /// Position of the candidate.
        candidate: usize,
        /// What went wrong.
        error: Box<Self>,
    },

    /// A search in which no candidate has a score on every split.
    #[error("none of {n_candidates} candidates has a score on all of {n_splits} splits")]
    NoScore {
        /// Candidates there are.
        n_candidates: usize,
        /// Splits there are.
        n_splits: usize,
    },

    /// A setting of a training that leaves nothing to choose from.
    #[error("`{setting}` of the training is empty, so there is nothing to choose from")]
    EmptySetting {
        /// Its name.
        setting: &'static str,
    },

    /// A score that is NaN or infinite.
    #[error("the score is {score}, not a finite number")]
    NonFiniteScore {
        /// What the scorer gave.
        score: f64,
    },

    /// A score of probabilities, asked of a classifier that knows none.
    #[error("{scoring:?} scores probabilities, and the classifier knows none")]
    NoProbabilities {
        /// What was to be scored.
        scoring: crate::Scoring,
    },

    /// A number to be calibrated, asked of a probe that knows classes alone.
    #[error("the probe knows classes alone, without probabilities, so there is no number to calibrate")]
    NoNumber {
        /// How the probe decides.
        rule: crate::DecisionRule,
    },

    /// An estimator that does not answer each of its settings with one fit.
    #[error("{expected} settings were fitted, {found} came back")]
    FittedCount {
        /// Settings given.
        expected: usize,
        /// Fits returned.
        found: usize,
    },

    /// A row that there is not.
    #[error("row {row} of {n_rows}")]
    RowOutOfRange {
        /// The row asked for.
        row: usize,
        /// Rows there are.
        n_rows: usize,
    },

    /// A statistic that judge-metrics refuses to compute.
    #[error(transparent)]
    Metric(#[from] judge_metrics::Error),

    /// What went wrong with views of layers, alone or side by side.
    #[error("views {views:?}: {error}")]
    InViews {
        /// Positions of the views.
        views: Vec<usize>,
        /// What went wrong.
        error: Box<Self>,
    },

    /// A selection of no layers.
    #[error("a selection needs top_k of at least 1, found 0")]
    NoLayers,

    /// Matrices side by side with different numbers of rows.
    #[error("{other} rows beside {n_rows}")]
    Beside {
        /// Rows of the first matrix.
        n_rows: usize,
        /// Rows of another.
        other: usize,
    },

    /// Texts without words to count.
    #[error("none of {n_texts} texts has a word that is in {min_df} of them")]
    NoWords {
        /// Texts given.
        n_texts: usize,
        /// Texts that a word must be in.
        min_df: usize,
    },

    /// Another number of a fitted thing's parameters than fits the others.
    #[error("expected {expected} {name}, found {found}")]
    ParameterCount {
        /// What is counted.
        name: &'static str,
        /// How many there should be.
        expected: usize,
        /// How many there are.
        found: usize,
    },

    /// A parameter of a fitted thing that is not finite, or a scale that is not above 0.
    #[error("{name} {index} is {value}")]
    InvalidParameter {
        /// What it is.
        name: &'static str,
        /// Its position.
        index: usize,
        /// The value itself.
        value: f64,
    },

    /// Classes of a fitted classifier that do not ascend.
    #[error("classes must ascend, found {before} before {after}")]
    ClassOrder {
        /// A class.
        before: i64,
        /// The next one.
        after: i64,
    },

    /// A multi-layer perceptron that was not fitted.
    #[cfg(feature = "mlp")]
    #[error("multi-layer perceptron: {0}")]
    Mlp(#[from] crate::estimators::mlp::MlpError),

    /// An estimator that does not keep its contract.
    #[error("not as the contract has it: {0}")]
    Contract(#[from] crate::testing::ContractBreach),

    /// Functions of an ordinal regression that cross, or whose intercepts do not fall.
    #[error("functions {first} and {} of an ordinal regression must be equal but for a falling intercept", first + 1)]
    CumulativeFunctions {
        /// The first function of the pair.
        first: usize,
    },

    /// Something that scikit-learn saved and that is no probe.
    #[error("scikit-learn object: {0}")]
    Import(#[from] crate::saved::sklearn_import::ImportError),

    /// Graded rows that no probe can be trained on.
    #[error(transparent)]
    Training(#[from] crate::training::TrainingError),

    /// Readings that cannot be compared.
    #[error(transparent)]
    Trial(#[from] crate::trial::TrialError),

    /// A saved probe that is damaged, or another's.
    #[error("saved probe: {0}")]
    SavedProbe(#[from] crate::saved::saved_probe::SavedProbeError),
}

fn up_to(most: usize) -> String {
    if most == 0 { "no".to_owned() } else { format!("from 1 to {most}") }
}
