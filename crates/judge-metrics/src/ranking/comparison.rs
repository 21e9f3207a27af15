use crate::preference::{Preference, TwoOrder, Vote};

/// A verdict on two named items.
///
/// Votes are comparisons of models, and a judge's verdicts in both orders are two comparisons of the same items:
///
/// ```
/// use judge_metrics::preference::{Preference::{First, Second}, TwoOrder, Vote};
/// use judge_metrics::ranking::Comparison;
///
/// let vote = Vote { question: "q1", models: ["a", "b"], turn: 1, annotator: "ann", preference: Second };
/// assert_eq!(Comparison::from(vote), Comparison { items: ["a", "b"], preference: Second });
///
/// // Unparsed verdicts are no comparisons.
/// let pair = TwoOrder { original: Some(First), swapped: None };
/// assert_eq!(Comparison::of_orders(["a", "b"], pair).count(), 1);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Comparison<'a> {
    /// The two items, in any order.
    pub items: [&'a str; 2],
    /// The verdict, about `items[0]` and `items[1]`.
    pub preference: Preference,
}

impl<'a> Comparison<'a> {
    /// The verdicts of both orders of presentation as comparisons of their own, without those that could not be parsed.
    ///
    /// For one comparison a pair, as in MT-bench, take [`TwoOrder::conservative`].
    pub fn of_orders(items: [&'a str; 2], verdicts: TwoOrder) -> impl Iterator<Item = Self> {
        let parsed = [verdicts.original, verdicts.swapped].into_iter().flatten();
        parsed.map(move |preference| Self { items, preference })
    }
}

/// Of the two models, whichever the question, turn and annotator.
impl<'a> From<Vote<'a>> for Comparison<'a> {
    fn from(vote: Vote<'a>) -> Self {
        Self { items: vote.models, preference: vote.preference }
    }
}
