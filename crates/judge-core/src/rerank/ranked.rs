use crate::{Unscored, Verdict};

/// A document in its place.
#[derive(Clone, Debug, PartialEq)]
pub struct RankedDocument {
    /// Its place in the item, from 0.
    pub index: usize,
    /// Its score, or why it has none.
    pub score: Result<f64, Unscored>,
    /// The share of the model's probability that lay on the labels, where it was read.
    pub label_mass: Option<f64>,
}

/// The documents that a [`RerankJudge`](super::RerankJudge) has scored, the best first, by their numbers before any
/// [activation](super::Activation); of equal ones the earlier, and those without a score last, in their order. None of an item that has no
/// score at all.
#[must_use]
pub fn ranked(verdict: &Verdict) -> Vec<RankedDocument> {
    let parts = verdict.score().map_or(&[][..], |score| &score.parts);
    let mut order: Vec<(usize, &Verdict)> = parts.iter().map(|part| &part.verdict).enumerate().collect();
    // Stable, so ties stay in their order; -0 is no less than 0.
    let key = |verdict: &Verdict| verdict.score().map(|score| score.before_activation.unwrap_or(score.value) + 0.0);
    order.sort_by(|(_, a), (_, b)| match (key(a), key(b)) {
        (Some(a), Some(b)) => b.total_cmp(&a),
        (a, b) => b.is_some().cmp(&a.is_some()),
    });
    let document = |(index, verdict): (usize, &Verdict)| {
        let score = match verdict {
            Verdict::Scored(score) => Ok(score.value),
            Verdict::Unscored(unscored) => Err(unscored.clone()),
        };
        RankedDocument { index, score, label_mass: verdict.score().and_then(|score| score.label_mass) }
    };
    order.into_iter().map(document).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Reason, Score,
        verdict::{CombinedBy, Part},
    };

    #[test]
    fn the_best_comes_first_and_ties_keep_their_order() {
        let unread = || Verdict::Unscored(Unscored::new(Reason::TooLong, "long"));
        let scored = |value| Verdict::Scored(Score::new(value));
        let verdicts = [unread(), scored(-0.0), scored(2.0), unread(), scored(0.0), scored(-1e9)];
        let parts = verdicts.map(|verdict| Part { name: String::new(), verdict }).to_vec();
        let all = ranked(&Verdict::Scored(Score::new(2.0).with_parts(CombinedBy::Documents, parts)));
        assert_eq!(all.iter().map(|document| document.index).collect::<Vec<_>>(), [2, 1, 4, 5, 0, 3]);
        assert_eq!(all[4].score.as_ref().unwrap_err().reason, Reason::TooLong);
        assert!(ranked(&unread()).is_empty());
    }
}
