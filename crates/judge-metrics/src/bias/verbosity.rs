//! Does length decide? People like longer answers too, so a judge is compared with them on the same pairs.

use crate::correlation::{Correlation, partial_pearson, point_biserial};
use crate::input::{check_finite, check_lengths};
use crate::preference::{Preference, Proportion};
use crate::{Error, Interval};

/// How often the longer of two answers is chosen, by a judge and by people.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LengthPreference {
    /// The judge's choices of the longer answer, among its decisive verdicts on pairs of different lengths.
    pub judge: Proportion,
    /// The same of people.
    pub human: Proportion,
    /// The judge's choices of the longer answer where it and people decide differently: ½ if length plays no part.
    pub judge_when_they_differ: Proportion,
    /// Pairs on which both decide and lengths differ, by who chose the longer one: `[people][judge]`, 0 no, 1 yes.
    both: [[usize; 2]; 2],
}

/// Counts who chooses the longer answer.
///
/// `lengths` are those of the first and the second answer, in any unit. Ties, unparsed verdicts and pairs of equal lengths take
/// no part.
///
/// # Errors
///
/// [`Error::LengthMismatch`], [`Error::NonFinite`], [`Error::TooFewItems`] for no pair.
///
/// ```
/// use judge_metrics::bias::verbosity::length_preference;
/// use judge_metrics::preference::Preference::{First, Second, Tie};
///
/// let lengths = [[100.0, 50.0], [30.0, 80.0], [60.0, 60.0], [10.0, 90.0], [70.0, 20.0]];
/// let judge = [First, Second, First, Second, First].map(Some);
/// let human = [First, First, Second, Second, Tie];
/// let found = length_preference(&lengths, &judge, &human)?;
/// assert_eq!((found.judge.count, found.judge.n), (4, 4));
/// assert_eq!((found.human.count, found.human.n), (2, 3));
/// assert_eq!((found.judge_when_they_differ.count, found.judge_when_they_differ.n), (1, 1));
/// # Ok::<(), judge_metrics::Error>(())
/// ```
pub fn length_preference(
    lengths: &[[f64; 2]],
    judge: &[Option<Preference>],
    human: &[Preference],
) -> Result<LengthPreference, Error> {
    check_pairs(lengths, judge.len(), "judge")?;
    check_pairs(lengths, human.len(), "human")?;
    let mut found = LengthPreference::default();
    for ((&[first, second], &judge), &human) in lengths.iter().zip(judge).zip(human) {
        let longer = if first > second { Preference::First } else { Preference::Second };
        if first == second {
            continue;
        }
        let judge = judge.filter(|verdict| verdict.is_decisive());
        if let Some(judge) = judge {
            found.judge.add(judge == longer);
        }
        if human.is_decisive() {
            found.human.add(human == longer);
            if let Some(judge) = judge {
                found.both[usize::from(human == longer)][usize::from(judge == longer)] += 1;
                if judge != human {
                    found.judge_when_they_differ.add(judge == longer);
                }
            }
        }
    }
    Ok(found)
}

impl LengthPreference {
    /// How much more often the judge chooses the longer answer than people do, on pairs that both decide, in [-1, 1]; and
    /// Newcombe's interval of the difference of paired proportions (1998, method 10).
    ///
    /// # Errors
    ///
    /// [`Error::LevelOutOfRange`]; [`Error::Undefined`] where both decide on no pair.
    pub fn excess(&self, level: f64) -> Result<(f64, Interval), Error> {
        let [[neither, judge_only], [human_only, both]] = self.both;
        let n = neither + judge_only + human_only + both;
        let judge = Proportion { count: judge_only + both, n };
        let human = Proportion { count: human_only + both, n };
        let (p, q) = (judge.estimate()?, human.estimate()?);
        let (of_judge, of_human) = (judge.wilson(level)?, human.wilson(level)?);
        // The correlation of the two choices, corrected for continuity where it is positive.
        let [a, b, c, d] = [both, judge_only, human_only, neither].map(|count| count as f64);
        let margins = (a + b) * (c + d) * (a + c) * (b + d);
        let phi = if margins == 0.0 {
            0.0
        } else {
            let product = a * d - b * c;
            let corrected = if product > 0.0 { (product - n as f64 / 2.0).max(0.0) } else { product };
            corrected / margins.sqrt()
        };
        let side = |x: f64, y: f64| (x * x - 2.0 * phi * x * y + y * y).max(0.0).sqrt();
        let difference = p - q;
        let interval = Interval {
            low: difference - side(p - of_judge.low, of_human.high - q),
            high: difference + side(of_judge.high - p, q - of_human.low),
            level,
        };
        Ok((difference, interval))
    }
}

/// Correlation of the difference in length, first less second, with decisive verdicts for the first: point-biserial
/// ([`point_biserial`]). Undecided and unparsed pairs take no part.
///
/// # Errors
///
/// [`Error::LengthMismatch`], [`Error::NonFinite`], and those of [`point_biserial`].
pub fn length_correlation(lengths: &[[f64; 2]], verdicts: &[Option<Preference>]) -> Result<Correlation, Error> {
    check_pairs(lengths, verdicts.len(), "verdicts")?;
    let decided = lengths.iter().zip(verdicts).filter_map(|(&[first, second], verdict)| {
        verdict.filter(|verdict| verdict.is_decisive()).map(|verdict| (verdict == Preference::First, first - second))
    });
    let (first, difference): (Vec<bool>, Vec<f64>) = decided.unzip();
    point_biserial(&first, &difference)
}

/// The same with what people prefer held fixed: partial correlation of the difference in length with the judge's credit for the first answer
/// (1, ½ for a tie, 0), given people's. Unparsed pairs take no part.
///
/// # Errors
///
/// [`Error::LengthMismatch`], [`Error::NonFinite`], and those of [`partial_pearson`].
pub fn length_correlation_given_human(
    lengths: &[[f64; 2]],
    judge: &[Option<Preference>],
    human: &[Preference],
) -> Result<Correlation, Error> {
    check_pairs(lengths, judge.len(), "judge")?;
    check_pairs(lengths, human.len(), "human")?;
    let (mut difference, mut by_judge, mut by_human) = (Vec::new(), Vec::new(), Vec::new());
    for ((&[first, second], judge), human) in lengths.iter().zip(judge).zip(human) {
        if let Some(judge) = judge {
            difference.push(first - second);
            by_judge.push(judge.credit());
            by_human.push(human.credit());
        }
    }
    partial_pearson(&difference, &by_judge, &[&by_human])
}

/// How often a judge is right where people prefer the longer answer, and where they prefer the shorter one (Saito et al., 2023).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LengthOpportunity {
    /// Right, of the pairs in which people prefer the longer answer.
    pub longer: Proportion,
    /// Right, of the pairs in which they prefer the shorter one.
    pub shorter: Proportion,
}

impl LengthOpportunity {
    /// The gap, longer − shorter, in [-1, 1]: 0 is fair, positive favours length.
    ///
    /// # Errors
    ///
    /// [`Error::Undefined`] if people never prefer one of the two.
    pub fn gap(&self) -> Result<f64, Error> {
        Ok(self.longer.estimate()? - self.shorter.estimate()?)
    }

    /// Newcombe's interval of the gap, a difference of independent proportions (1998, method 10).
    ///
    /// # Errors
    ///
    /// [`Error::LevelOutOfRange`] and those of [`gap`](Self::gap).
    pub fn interval(&self, level: f64) -> Result<Interval, Error> {
        let (p, q) = (self.longer.estimate()?, self.shorter.estimate()?);
        let (of_p, of_q) = (self.longer.wilson(level)?, self.shorter.wilson(level)?);
        Ok(Interval {
            low: p - q - (p - of_p.low).hypot(of_q.high - q),
            high: p - q + (of_p.high - p).hypot(q - of_q.low),
            level,
        })
    }
}

/// Equal opportunity of longer and shorter answers. Pairs that people call a tie, and those of equal lengths, take no part; a judge's
/// tie and an unparsed verdict are wrong.
///
/// # Errors
///
/// [`Error::LengthMismatch`], [`Error::NonFinite`], [`Error::TooFewItems`] for no pair.
pub fn equal_opportunity(
    lengths: &[[f64; 2]],
    judge: &[Option<Preference>],
    human: &[Preference],
) -> Result<LengthOpportunity, Error> {
    check_pairs(lengths, judge.len(), "judge")?;
    check_pairs(lengths, human.len(), "human")?;
    let mut found = LengthOpportunity::default();
    for ((&[first, second], judge), &human) in lengths.iter().zip(judge).zip(human) {
        if first == second || !human.is_decisive() {
            continue;
        }
        let longer = (human == Preference::First) == (first > second);
        let side = if longer { &mut found.longer } else { &mut found.shorter };
        side.add(*judge == Some(human));
    }
    Ok(found)
}

fn check_pairs(lengths: &[[f64; 2]], found: usize, argument: &'static str) -> Result<(), Error> {
    check_lengths(argument, found, "lengths", lengths.len())?;
    if lengths.is_empty() {
        return Err(Error::TooFewItems { required: 1, found: 0 });
    }
    lengths.iter().enumerate().try_for_each(|(row, pair)| {
        check_finite("lengths", pair).map_err(|error| Error::InRow { row, error: Box::new(error) })
    })
}
