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

/// The documents that a [`RerankJudge`](super::RerankJudge) has scored, the best first; of equal ones the earlier, and those without a score
/// last, in their order. None of an item that has no score at all.
#[must_use]
pub fn ranked(verdict: &Verdict) -> Vec<RankedDocument> {
    let parts = verdict.score().map_or(&[][..], |score| &score.parts);
    let document = |(index, verdict): (usize, &Verdict)| {
        let score = match verdict {
            Verdict::Scored(score) => Ok(score.value),
            Verdict::Unscored(unscored) => Err(unscored.clone()),
        };
        RankedDocument { index, score, label_mass: verdict.score().and_then(|score| score.label_mass) }
    };
    let mut ranked: Vec<RankedDocument> = parts.iter().map(|part| &part.verdict).enumerate().map(document).collect();
    // Stable, so ties stay in their order; -0 is no less than 0.
    let key = |document: &RankedDocument| document.score.as_ref().map_or(f64::NEG_INFINITY, |score| score + 0.0);
    ranked.sort_by(|a, b| a.score.is_err().cmp(&b.score.is_err()).then(key(b).total_cmp(&key(a))));
    ranked
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
