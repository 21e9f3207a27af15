use crate::number::{in_full, six_digits};

/// Why a statistic could not be computed.
///
/// `argument` is always the parameter's name in the function that was called; indices count from 0.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A row lacks what other rows have.
    #[error("no {argument}, which other rows have: all rows need one, or none")]
    Missing {
        /// Name of the field.
        argument: &'static str,
    },

    /// Two arguments that go together item by item have different lengths.
    #[error("{argument} has {found} items but {other} has {expected}")]
    LengthMismatch {
        /// Name of the parameter that does not fit.
        argument: &'static str,
        /// Its items.
        found: usize,
        /// Name of the parameter it should fit.
        other: &'static str,
        /// That one's items.
        expected: usize,
    },

    /// Fewer items than the statistic needs.
    #[error("{}, found {found}", Self::needed(*.required, "item"))]
    TooFewItems {
        /// Smallest number of items with which the statistic exists.
        required: usize,
        /// Items given.
        found: usize,
    },

    /// Items that lie in fewer clusters than the statistic needs.
    #[error("{}, found {found}", Self::needed(*.required, "cluster"))]
    TooFewClusters {
        /// Smallest number of clusters with which the statistic exists.
        required: usize,
        /// Clusters of the items given.
        found: usize,
    },

    /// A value is NaN or infinite.
    #[error("{argument}[{index}] is {value}, not a finite number")]
    NonFinite {
        /// Name of the parameter.
        argument: &'static str,
        /// Position of the first such value.
        index: usize,
        /// The value itself.
        value: f64,
    },

    /// All values are equal, so the statistic is undefined.
    #[error("every value of {argument} is {}: the statistic is undefined", six_digits(*.value))]
    Constant {
        /// Name of the parameter.
        argument: &'static str,
        /// The one value.
        value: f64,
    },

    /// A correlation outside [-1, 1], or NaN.
    #[error("{} is not a correlation: it must lie in [-1, 1]", in_full(*.value))]
    NotACorrelation {
        /// The value given.
        value: f64,
    },

    /// A number outside the range in which the statistic exists.
    #[error(
        "{argument}{} is {}, not in [{}, {}]",
        Self::at(.index),
        in_full(*.value),
        six_digits(*.low),
        six_digits(*.high)
    )]
    OutOfRange {
        /// Name of the parameter.
        argument: &'static str,
        /// Position, where the parameter is a column.
        index: Option<usize>,
        /// The value given.
        value: f64,
        /// Smallest value taken.
        low: f64,
        /// Largest value taken.
        high: f64,
    },

    /// A label that is not among those the caller pinned.
    #[error("{argument}[{index}] is {found}, not one of the labels {known}")]
    UnknownLabel {
        /// Name of the parameter.
        argument: &'static str,
        /// Position of the first such label.
        index: usize,
        /// The label.
        found: String,
        /// The labels pinned, separated by commas.
        known: String,
    },

    /// A label that is no number, where the ratings are numbers.
    #[error("{argument}[{index}] is {found:?}, not a number as the ratings are")]
    NotANumber {
        /// Name of the parameter.
        argument: &'static str,
        /// Position of the first such label.
        index: usize,
        /// The label.
        found: String,
    },

    /// Ratings of which some are numbers and some are texts.
    #[error("the rating {found} is {}, but the first one is {}", Self::kind(!*.numeric), Self::kind(*.numeric))]
    MixedRatings {
        /// The rating that differs.
        found: String,
        /// Whether the first one is a number.
        numeric: bool,
    },

    /// A label pinned twice.
    #[error("labels[{index}] is {label}, which was named before")]
    DuplicateLabel {
        /// Position of the second mention.
        index: usize,
        /// The label.
        label: String,
    },

    /// The data are sound but do not define the statistic.
    #[error("{statistic} is undefined: {reason}")]
    Undefined {
        /// Name of the statistic.
        statistic: &'static str,
        /// What is missing in the data.
        reason: &'static str,
    },

    /// An iteration did not settle within its limit.
    #[error("{statistic} did not converge in {iterations} iterations")]
    NoConvergence {
        /// Name of the statistic or fit.
        statistic: &'static str,
        /// Iterations made.
        iterations: usize,
    },

    /// A confidence level outside the open interval (0, 1), or NaN.
    #[error("the confidence level must lie strictly between 0 and 1, found {level}")]
    LevelOutOfRange {
        /// The level given.
        level: f64,
    },

    /// The exact test was asked for, but its distribution holds only for data without ties.
    #[error("the exact test needs data without ties, found {x} tied pairs in x and {y} in y")]
    TiesInExactTest {
        /// Pairs of equal values in `x`.
        x: u64,
        /// Pairs of equal values in `y`.
        y: u64,
    },

    /// The exact test was asked for on more items than its O(n³) cost allows.
    #[error("the exact test takes at most {limit} items, found {found}")]
    TooManyItemsForExactTest {
        /// Largest number of items taken.
        limit: usize,
        /// Items given.
        found: usize,
    },

    /// More items than can be numbered.
    #[error("at most {limit} items are taken, found {found}")]
    TooManyItems {
        /// Largest number of items taken.
        limit: usize,
        /// Items given.
        found: usize,
    },

    /// A bootstrap of no resamples, or a test of no permutations.
    #[error("at least one resample or permutation is needed")]
    NoResamples,

    /// The statistic handed to the bootstrap returned NaN or an infinity.
    #[error("the statistic is {value} on {}", Self::rows(.resample))]
    NonFiniteStatistic {
        /// Which resample, or `None` for the rows as they were given.
        resample: Option<usize>,
        /// What the statistic returned.
        value: f64,
    },

    /// The statistic is undefined on so many resamples that the others do not show its spread.
    #[error("the statistic is undefined on {undefined} of {resamples} resamples, too many to say how it varies")]
    UndefinedResamples {
        /// Those that leave it undefined.
        undefined: usize,
        /// Resamples drawn.
        resamples: usize,
    },

    /// Six items, clusters or more, and the statistic is the same whichever of them are drawn: there is no interval, and the estimate is
    /// the only bound there is.
    #[error("{statistic} does not vary over these items: there is no interval, and its estimate is the only bound")]
    NoVariation {
        /// Its name.
        statistic: &'static str,
    },

    /// A verdict that could not be parsed, where the caller refused such.
    #[error("{argument}[{index}] is unparsed: choose what becomes of such verdicts")]
    Unparsed {
        /// Name of the parameter.
        argument: &'static str,
        /// Position of the first such verdict.
        index: usize,
    },

    /// A verdict on an item and itself.
    #[error("{argument}[{index}] compares an item with itself")]
    SelfComparison {
        /// Name of the parameter.
        argument: &'static str,
        /// Its position.
        index: usize,
    },

    /// Items that fall apart: no verdict lets one part be ranked against the other.
    #[error("no item of one part ever beat or tied, or ever lost to or tied, the rest: [{some}] against [{others}]")]
    Unconnected {
        /// Names of one part, separated by commas.
        some: String,
        /// Names of the other.
        others: String,
    },

    /// Numbers that should be a distribution do not sum to 1.
    #[error("{argument} sums to {sum}, not to 1")]
    NotADistribution {
        /// Name of the parameter.
        argument: &'static str,
        /// Its sum.
        sum: f64,
    },

    /// What is wrong with one row of a table.
    #[error("row {row}: {error}")]
    InRow {
        /// The row.
        row: usize,
        /// What is wrong with it.
        error: Box<Self>,
    },

    /// Values that must be strictly ascending are not.
    #[error("{argument}[{index}] is not above the value before it")]
    NotAscending {
        /// Name of the parameter.
        argument: &'static str,
        /// Position of the first value that is not.
        index: usize,
    },

    /// A column is constant or a linear function of the others, so a partial correlation is undefined.
    #[error("{argument}{} is a linear function of the covariates before it", Self::at(.index))]
    Collinear {
        /// Name of the parameter.
        argument: &'static str,
        /// Which column, where the parameter is several.
        index: Option<usize>,
    },

    /// An id in RewardBench 2's subset of ties that does not say which prompt it is, or says it a second time.
    #[error("the id {found:?} of the subset of ties: expected ref:N or tied:N with a number N, each once")]
    RewardBenchId {
        /// The id.
        found: String,
    },

    /// No three columns have these correlations.
    #[error("no three columns have these correlations: the determinant of their matrix is {determinant}")]
    NotPositiveSemidefinite {
        /// Of the matrix of correlations.
        determinant: f64,
    },
}

impl Error {
    /// The error as one of this row: for `map_err`.
    pub(crate) fn in_row(row: usize) -> impl Fn(Self) -> Self {
        move |error| Self::InRow { row, error: Box::new(error) }
    }

    /// Whether the data are sound but do not define the statistic, as a constant column does not define a correlation.
    ///
    /// A [`Bootstrap`](crate::resampling::Bootstrap) counts such resamples; any other error ends it.
    pub fn is_undefined(&self) -> bool {
        matches!(
            self,
            Self::Constant { .. }
                | Self::Unconnected { .. }
                | Self::Undefined { .. }
                | Self::UndefinedResamples { .. }
                | Self::NoVariation { .. }
                | Self::Collinear { .. }
        )
    }

    fn needed(required: usize, thing: &str) -> String {
        match required {
            1 => format!("1 {thing} or more is needed"),
            n => format!("{n} {thing}s or more are needed"),
        }
    }

    fn kind(numeric: bool) -> &'static str {
        if numeric { "a number" } else { "a text" }
    }

    fn at(index: &Option<usize>) -> String {
        index.map_or_else(String::new, |index| format!("[{index}]"))
    }

    fn rows(resample: &Option<usize>) -> String {
        match resample {
            Some(index) => format!("resample {index}"),
            None => "the given rows".to_owned(),
        }
    }
}
