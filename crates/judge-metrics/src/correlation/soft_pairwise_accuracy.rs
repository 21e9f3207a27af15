use crate::input::{check_finite, check_lengths};
use crate::resampling::PermutationTest;
use crate::{Error, resampling::Alternative};

/// Soft pairwise accuracy of systems (Thompson, Mathur, Deutsch and Khayrallah, 2024, arXiv 2409.09598): how well a judge's certainty that one system
/// is better than another goes with that of people. In [0, 1]; ½ is what a judge reaches that knows nothing of systems whose order people are
/// sure of.
///
/// The mean over pairs of systems of 1 − |p − q|, with p and q the one-sided p-values that the first is better than the second by its mean over
/// items, of people and of the judge. Plain accuracy of pairs counts a pair that people cannot tell apart as much as one that is certain, and half of
/// all judges are wrong about it.
///
/// `human`, `scores`: one row to an item, one entry to a system, finite. `test` says how p-values are computed, whatever its `alternative`: exact up to
/// as many arrangements as `permutations`, else drawn; its authors draw 1,000. Each pair of systems is taken once, in the order of the columns; in the
/// other order a p-value differs by the share of arrangements that are equal to the one seen.
///
/// No interval is known in closed form: resample items with a [`Bootstrap`](crate::resampling::Bootstrap).
///
/// # Errors
///
/// [`Error::TooFewItems`] for no item or fewer than two systems, [`Error::LengthMismatch`]; [`Error::InRow`] around a row's [`Error::LengthMismatch`] and
/// [`Error::NonFinite`]; those of [`PermutationTest::paired`].
///
/// ```
/// use judge_metrics::correlation::soft_pairwise_accuracy;
/// use judge_metrics::resampling::PermutationTest;
///
/// // Four items, three systems.
/// let human = [[5.0, 3.0, 3.0], [4.0, 2.0, 3.0], [5.0, 4.0, 3.0], [4.0, 1.0, 2.0]];
/// let judge = [[0.9, 0.4, 0.5], [0.8, 0.3, 0.4], [0.9, 0.7, 0.5], [0.7, 0.2, 0.3]];
/// let accuracy = soft_pairwise_accuracy(&human, &judge, PermutationTest::default())?;
/// assert!((accuracy - 1.0).abs() < 0.1);
/// # Ok::<(), judge_metrics::Error>(())
/// ```
pub fn soft_pairwise_accuracy<R: AsRef<[f64]>, S: AsRef<[f64]>>(
    human: &[R],
    scores: &[S],
    test: PermutationTest,
) -> Result<f64, Error> {
    check_lengths("scores", scores.len(), "human", human.len())?;
    let systems = human.first().map_or(0, |row| row.as_ref().len());
    for (required, found) in [(1, human.len()), (2, systems)] {
        if found < required {
            return Err(Error::TooFewItems { required, found });
        }
    }
    for (row, (human, scores)) in human.iter().zip(scores).enumerate() {
        let (human, scores) = (human.as_ref(), scores.as_ref());
        check_lengths("human", human.len(), "systems of the first row", systems)
            .and_then(|()| check_lengths("scores", scores.len(), "systems of the first row", systems))
            .and_then(|()| check_finite("human", human))
            .and_then(|()| check_finite("scores", scores))
            .map_err(Error::in_row(row))?;
    }
    let by_people: Vec<Vec<f64>> =
        (0..systems).map(|system| human.iter().map(|row| row.as_ref()[system]).collect()).collect();
    let by_judge: Vec<Vec<f64>> =
        (0..systems).map(|system| scores.iter().map(|row| row.as_ref()[system]).collect()).collect();
    let test = PermutationTest { alternative: Alternative::Greater, ..test };
    let better = |columns: &[Vec<f64>], first: usize, second: usize| -> Result<f64, Error> {
        let difference = |x: &[f64], y: &[f64]| Ok(x.iter().zip(y).map(|(x, y)| x - y).sum::<f64>() / x.len() as f64);
        Ok(test.paired(&columns[first], &columns[second], difference)?.p_value)
    };
    let (mut sum, mut pairs) = (0.0, 0.0);
    for first in 0..systems {
        for second in first + 1..systems {
            sum += 1.0 - (better(&by_people, first, second)? - better(&by_judge, first, second)?).abs();
            pairs += 1.0;
        }
    }
    Ok(sum / pairs)
}
