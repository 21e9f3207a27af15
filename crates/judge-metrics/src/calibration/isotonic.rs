use crate::Error;
use crate::correlation::spearman;
use crate::input::{check_ascending, check_each_in, check_finite, check_lengths, check_paired, in_range, unit_of};
use crate::means::largest;

/// Whether the fitted function rises or falls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Direction {
    /// It never falls.
    #[default]
    Increasing,
    /// It never rises.
    Decreasing,
    /// It rises if Spearman's correlation is at least 0, else it falls.
    Auto,
}

/// Isotonic regression by pooling adjacent violators, as `sklearn.isotonic.IsotonicRegression`: the monotone function
/// with the least squared error.
///
/// Fitted on items with a judge's score and a human one it carries the judge's score to the human scale, whatever
/// monotone distortion lies between. Uncertainty is left to [`Bootstrap`](crate::resampling::Bootstrap), and to
/// [`SplitConformal`](crate::calibration::SplitConformal) for single items; neither may use the items it was fitted on.
///
/// ```
/// use judge_metrics::calibration::IsotonicRegression;
///
/// let judge = [1.0, 2.0, 3.0, 4.0, 5.0];
/// let human = [1.0, 1.5, 3.5, 2.5, 4.0];
/// let fitted = IsotonicRegression::default().fit(&judge, &human)?;
/// assert_eq!(fitted.predict(&[0.0, 1.5, 3.0, 3.7, 9.0])?, [1.0, 1.25, 3.0, 3.0, 4.0]);
/// # Ok::<(), judge_metrics::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct IsotonicRegression {
    /// Whether it rises or falls.
    pub direction: Direction,
    /// Fitted values below this are raised to it.
    pub y_min: Option<f64>,
    /// Fitted values above this are lowered to it.
    pub y_max: Option<f64>,
}

impl IsotonicRegression {
    /// Fits n ≥ 1 items of weight 1.
    ///
    /// `x`, `y`: finite numbers. Items of equal `x` are replaced by their mean `y`, with their weights added up. (scikit-learn
    /// also joins values of `x` that differ by less than 1e-15.) O(n log n).
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`], [`Error::TooFewItems`], [`Error::NonFinite`], the last also for a bound;
    /// [`Error::OutOfRange`] where `y_min` is above `y_max`; [`Error::Undefined`] where a sum exceeds the largest
    /// finite number.
    pub fn fit(&self, x: &[f64], y: &[f64]) -> Result<FittedIsotonicRegression, Error> {
        self.fit_weighted(x, y, &vec![1.0; x.len()])
    }

    /// Fits items of any weight: finite, at least 0, one of them above. Items of weight 0 take no part, except in
    /// [`Direction::Auto`], which like scikit-learn's looks at all items alike.
    ///
    /// # Errors
    ///
    /// Those of [`fit`](Self::fit); [`Error::OutOfRange`] for a negative weight; [`Error::Undefined`] where all weights
    /// are 0.
    pub fn fit_weighted(&self, x: &[f64], y: &[f64], weights: &[f64]) -> Result<FittedIsotonicRegression, Error> {
        check_paired(x, y, 1)?;
        check_lengths("weights", weights.len(), "x", x.len())?;
        check_finite("weights", weights)?;
        check_each_in("weights", weights, [0.0, f64::MAX])?;
        let (low, high) = self.bounds()?;
        let increasing = match self.direction {
            Direction::Increasing => true,
            Direction::Decreasing => false,
            Direction::Auto => match spearman(x, y) {
                Ok(correlation) => correlation.estimate >= 0.0,
                // One item, or one x, or one y: the fit is constant in either direction.
                Err(Error::TooFewItems { .. } | Error::Constant { .. }) => true,
                Err(error) => return Err(error),
            },
        };

        let unit = unit_of(largest(weights));
        let weights: Vec<f64> = weights.iter().map(|weight| weight * unit).collect();
        let items = distinct(x, y, &weights)?;
        // A falling function of y is a rising one of −y.
        let sign = if increasing { 1.0 } else { -1.0 };
        let fitted = pool(items.iter().map(|item| (sign * item.y, item.weight)))?;
        let points: Vec<(f64, f64)> =
            items.iter().zip(fitted).map(|(item, y)| (item.x, (sign * y).clamp(low, high))).collect();
        let (x_thresholds, y_thresholds) = without_interior_of_flats(&points).unzip();
        Ok(FittedIsotonicRegression { x_thresholds, y_thresholds, increasing })
    }

    fn bounds(&self) -> Result<(f64, f64), Error> {
        let bound = |argument, bound: Option<f64>, unbounded: f64| match bound {
            Some(value) if !value.is_finite() => Err(Error::NonFinite { argument, index: 0, value }),
            bound => Ok(bound.unwrap_or(unbounded)),
        };
        let low = bound("y_min", self.y_min, f64::NEG_INFINITY)?;
        let high = bound("y_max", self.y_max, f64::INFINITY)?;
        if low > high {
            return Err(Error::OutOfRange { argument: "y_min", index: None, value: low, low: f64::MIN, high });
        }
        Ok((low, high))
    }
}

/// A monotone function: straight between its thresholds, constant beyond them.
#[derive(Debug, Clone, PartialEq)]
pub struct FittedIsotonicRegression {
    x_thresholds: Vec<f64>,
    y_thresholds: Vec<f64>,
    increasing: bool,
}

impl FittedIsotonicRegression {
    /// The function with these thresholds, such as one that was saved.
    ///
    /// `x`: at least one finite number, strictly ascending. `y`: as many finite numbers, which never fall if `increasing`, else never rise.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`], [`Error::TooFewItems`], [`Error::NonFinite`], [`Error::NotAscending`] for `x`; [`Error::Undefined`] where
    /// `y` turns round.
    pub fn from_thresholds(x: Vec<f64>, y: Vec<f64>, increasing: bool) -> Result<Self, Error> {
        check_paired(&x, &y, 1)?;
        check_ascending("x", &x)?;
        let monotone = if increasing { y.is_sorted() } else { y.iter().rev().is_sorted() };
        if !monotone {
            return Err(Error::Undefined { statistic: STATISTIC, reason: "y both rises and falls" });
        }
        Ok(Self { x_thresholds: x, y_thresholds: y, increasing })
    }

    /// Where the function may bend, strictly ascending; at least one number.
    pub fn x_thresholds(&self) -> &[f64] {
        &self.x_thresholds
    }

    /// Its values there.
    pub fn y_thresholds(&self) -> &[f64] {
        &self.y_thresholds
    }

    /// The direction it was fitted in. A constant function has both.
    pub fn is_increasing(&self) -> bool {
        self.increasing
    }

    /// The function at each of `x`, as scikit-learn's `predict` with `out_of_bounds="clip"`: x outside the range seen
    /// in the fit gets the value at its end.
    ///
    /// # Errors
    ///
    /// [`Error::NonFinite`].
    pub fn predict(&self, x: &[f64]) -> Result<Vec<f64>, Error> {
        check_finite("x", x)?;
        Ok(x.iter().map(|&x| self.at(x)).collect())
    }

    /// The function at one finite x.
    pub(super) fn at(&self, x: f64) -> f64 {
        let (xs, ys) = (&self.x_thresholds, &self.y_thresholds);
        let above = xs.partition_point(|&threshold| threshold < x);
        if above == 0 || above == xs.len() {
            return ys[above.min(ys.len() - 1)];
        }
        let (x0, x1, y0, y1) = (xs[above - 1], xs[above], ys[above - 1], ys[above]);
        let width = x1 - x0;
        let share = if width.is_finite() { (x - x0) / width } else { (x / 2.0 - x0 / 2.0) / (x1 / 2.0 - x0 / 2.0) };
        // Rounding may step past an end by a bit; the function is monotone and must stay so.
        (y0 * (1.0 - share) + y1 * share).clamp(y0.min(y1), y0.max(y1))
    }
}

struct Item {
    x: f64,
    y: f64,
    weight: f64,
}

/// Items in ascending order of x, equal ones averaged, those of weight 0 left out.
fn distinct(x: &[f64], y: &[f64], weights: &[f64]) -> Result<Vec<Item>, Error> {
    let mut items: Vec<Item> = x
        .iter()
        .zip(y)
        .zip(weights)
        .filter(|item| *item.1 > 0.0)
        // Adding +0 turns -0 into +0, so that the total order agrees with `==` on finite numbers.
        .map(|((x, y), &weight)| Item { x: x + 0.0, y: *y, weight })
        .collect();
    if items.is_empty() {
        return Err(Error::Undefined { statistic: STATISTIC, reason: "every weight is 0" });
    }
    // By y as well, so that sums do not depend on the order in which items come.
    items.sort_unstable_by(|a, b| a.x.total_cmp(&b.x).then(a.y.total_cmp(&b.y)).then(a.weight.total_cmp(&b.weight)));
    items
        .chunk_by(|a, b| a.x == b.x)
        .map(|tied| match tied {
            [only] => Ok(Item { ..*only }),
            tied => {
                let weight: f64 = tied.iter().map(|item| item.weight).sum();
                let sum: f64 = tied.iter().map(|item| item.y * item.weight).sum();
                Ok(Item { x: tied[0].x, y: in_range(STATISTIC, sum / weight)?, weight: in_range(STATISTIC, weight)? })
            }
        })
        .collect()
}

const STATISTIC: &str = "isotonic regression";

/// The non-decreasing sequence nearest to the given values under their weights.
fn pool(items: impl Iterator<Item = (f64, f64)>) -> Result<Vec<f64>, Error> {
    /// Adjacent items that share a value.
    struct Block {
        mean: f64,
        weight: f64,
        weighted_sum: f64,
        items: usize,
    }
    let mut blocks: Vec<Block> = Vec::new();
    for (y, weight) in items {
        let mut block = Block { mean: y, weight, weighted_sum: y * weight, items: 1 };
        while let Some(before) = blocks.pop_if(|before| before.mean >= block.mean) {
            block.weight += before.weight;
            block.weighted_sum += before.weighted_sum;
            block.items += before.items;
            block.mean = in_range(STATISTIC, block.weighted_sum / block.weight)?;
        }
        blocks.push(block);
    }
    Ok(blocks.iter().flat_map(|block| std::iter::repeat_n(block.mean, block.items)).collect())
}

/// The points but for those whose two neighbours have the same y: interpolation never needs them.
fn without_interior_of_flats(points: &[(f64, f64)]) -> impl Iterator<Item = (f64, f64)> {
    points.iter().enumerate().filter_map(|(i, &point)| {
        let inside = i > 0 && i + 1 < points.len() && points[i - 1].1 == point.1 && point.1 == points[i + 1].1;
        (!inside).then_some(point)
    })
}
