//! How well a judge's comparisons of answers fit together, where nobody has graded any.

use std::collections::BTreeMap;

use super::Statistic;
use crate::Error;
use crate::input::check_amount;
use crate::means::clustered_share;
use crate::preference::{Preference, sign};

/// Two answers to one question that met.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparedAnswers {
    /// Which, by number.
    pub answers: [usize; 2],
    /// The preference for the first, from 0 to 1, with a tie at one half.
    pub preference: f64,
    /// The verdict in each order, where both were asked: with the first answer shown first, and with the second. `First` is the first of
    /// the two answers in both.
    pub orders: Option<[Preference; 2]>,
}

/// The comparisons of answers to many questions. No grade of anybody is needed, so a judge can be looked at before people grade.
///
/// | statistic | what it is |
/// |---|---|
/// | `transitivity` | of all three answers to a question that met each other without a tie: the share whose preferences make no circle; ¾ for a judge that tosses coins |
/// | `consistency` | the share of comparisons with the same verdict in both orders |
/// | `first_share` | of all verdicts that are no tie, in either order: those for the answer shown first; ½ where place does not matter |
///
/// Questions are clusters of the intervals.
///
/// ```
/// use judge_metrics::comparison::{Coherence, ComparedAnswers};
///
/// let met = |first, second, preference| ComparedAnswers { answers: [first, second], preference, orders: None };
/// let circle = vec![met(0, 1, 0.9), met(1, 2, 0.8), met(0, 2, 0.1)];
/// let order = vec![met(0, 1, 0.9), met(1, 2, 0.8), met(0, 2, 0.7)];
/// let found = Coherence { questions: vec![circle, order], level: 0.95 }.statistics()?;
/// assert_eq!((found[0].0, found[0].1.estimate()), ("transitivity", Some(0.5)));
/// # Ok::<(), judge_metrics::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Coherence {
    /// The comparisons of each question.
    pub questions: Vec<Vec<ComparedAnswers>>,
    /// Nominal coverage of the intervals.
    pub level: f64,
}

/// What counts, and the question that it is of.
#[derive(Default)]
struct Counted(Vec<bool>, Vec<usize>);

impl Counted {
    fn push(&mut self, question: usize, counts: bool) {
        self.0.push(counts);
        self.1.push(question);
    }

    fn share(&self, level: f64, of_nothing: &str) -> Statistic {
        if self.0.is_empty() {
            return Statistic::Undefined { reason: of_nothing.to_owned() };
        }
        let share = self.0.iter().filter(|&&counts| counts).count() as f64 / self.0.len() as f64;
        Statistic::of_clusters(clustered_share(&self.0, &self.1), share, level)
    }
}

/// Whether a verdict is for the first of two; `None` for a tie.
fn is_first(verdict: Preference) -> Option<bool> {
    verdict.is_decisive().then_some(verdict == Preference::First)
}

impl Coherence {
    /// The statistics by name, in the order of the table. Two answers that met twice count as their last meeting in `transitivity`, and a
    /// preference within 10⁻¹² of one half as a tie.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] and [`Error::NonFinite`] for a preference that is none. What the comparisons do not define is
    /// [`Statistic::Undefined`].
    pub fn statistics(&self) -> Result<[(&'static str, Statistic); 3], Error> {
        let (mut transitive, mut consistent, mut first) = (Counted::default(), Counted::default(), Counted::default());
        for (question, met) in self.questions.iter().enumerate() {
            // Whether the first of each two answers, by their numbers, is preferred.
            let mut verdicts = BTreeMap::new();
            for (index, ComparedAnswers { answers: [one, other], preference, orders }) in met.iter().enumerate() {
                check_amount("preference", index, *preference, 1.0)?;
                let is_one = is_first(sign(preference - 0.5));
                verdicts.insert((*one.min(other), *one.max(other)), is_one.map(|is_one| is_one == (one < other)));
                let Some([given, swapped]) = *orders else { continue };
                consistent.push(question, given == swapped);
                // In the exchanged order the second answer is shown first.
                for is_shown_first in [given, swapped.swapped()].into_iter().filter_map(is_first) {
                    first.push(question, is_shown_first);
                }
            }
            for ((a, b), a_over_b) in &verdicts {
                for ((_, c), b_over_c) in verdicts.range((*b, 0)..=(*b, usize::MAX)) {
                    let a_over_c = verdicts.get(&(*a, *c)).copied().flatten();
                    if let (Some(ab), Some(bc), Some(ac)) = (a_over_b, b_over_c, a_over_c) {
                        transitive.push(question, !(ab == bc && *ab != ac));
                    }
                }
            }
        }
        let of = |counted: &Counted, of_nothing: &str| counted.share(self.level, of_nothing);
        Ok([
            ("transitivity", of(&transitive, "no three answers to a question met each other without a tie")),
            ("consistency", of(&consistent, "no two answers were compared in both orders")),
            ("first_share", of(&first, "no verdict in either order is for one of the answers")),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn met(answers: [usize; 2], preference: f64, orders: Option<[Preference; 2]>) -> ComparedAnswers {
        ComparedAnswers { answers, preference, orders }
    }

    fn estimates(questions: Vec<Vec<ComparedAnswers>>) -> [Option<f64>; 3] {
        Coherence { questions, level: 0.95 }.statistics().unwrap().map(|(_, found)| found.estimate())
    }

    /// Every way in which four answers can meet, against trying all orders of three.
    #[test]
    fn circles_are_those_that_no_order_explains() {
        let pairs = [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]];
        for verdicts in 0..1_u32 << pairs.len() {
            let beats = |a: usize, b: usize| {
                let place = pairs.iter().position(|pair| pair.contains(&a) && pair.contains(&b)).unwrap();
                (verdicts >> place & 1 == 1) == (a < b)
            };
            let explained = |three: [usize; 3]| {
                let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
                let of = |order: [usize; 3]| order.map(|place| three[place]);
                orders.map(of).iter().any(|[a, b, c]| beats(*a, *b) && beats(*b, *c) && beats(*a, *c))
            };
            let triples = [[0, 1, 2], [0, 1, 3], [0, 2, 3], [1, 2, 3]];
            let expected = triples.into_iter().filter(|&three| explained(three)).count() as f64 / 4.0;
            // Written either way round.
            let games = pairs.iter().map(|&[a, b]| match verdicts % 3 {
                0 => met([b, a], if beats(a, b) { 0.2 } else { 0.8 }, None),
                _ => met([a, b], if beats(a, b) { 0.9 } else { 0.4 }, None),
            });
            assert_eq!(estimates(vec![games.collect()])[0], Some(expected), "{verdicts:b}");
        }
    }

    #[test]
    fn orders_agree_or_the_place_decides() {
        use Preference::{First, Second, Tie};
        let games = vec![
            met([0, 1], 0.5 + 1e-16, Some([First, Second])), // the first shown, twice
            met([0, 2], 0.7, Some([First, First])),
            met([1, 2], 0.6, Some([Tie, Tie])), // a preference is on one side also where a tie is likelier than either answer
        ];
        let [transitive, consistent, first] = estimates(vec![games.clone()]);
        assert_eq!((transitive, consistent, first), (None, Some(2.0 / 3.0), Some(0.75)));
        assert_eq!(estimates(Vec::new()), [None; 3]);
        // That a share is 0 is no hypothesis.
        let questions = vec![games, vec![met([0, 1], 0.5, Some([First, Second])); 2]];
        for (name, found) in (Coherence { questions, level: 0.95 }).statistics().unwrap() {
            assert!(found.defined().is_none_or(|known| known.p.is_none()), "{name}: {found:?}");
        }
        let wrong = Coherence { questions: vec![vec![met([0, 1], 1.5, None)]], level: 0.95 }.statistics();
        assert!(matches!(wrong, Err(Error::OutOfRange { .. })));
    }
}
