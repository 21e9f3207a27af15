use std::collections::BTreeMap;

use super::{Preference, TwoOrder};
use crate::input::check_count;
use crate::resampling::{Bootstrap, BootstrapInterval};
use crate::{Error, Proportion};

/// One annotator's verdict on two models' answers to one turn of one question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vote<'a> {
    /// The question, which is also the unit that is resampled for an interval.
    pub question: &'a str,
    /// The two models in any order: votes on the same two are matched whichever was named first.
    pub models: [&'a str; 2],
    /// The turn of the conversation.
    pub turn: u32,
    /// Who voted: a person or a judge.
    pub annotator: &'a str,
    /// The verdict, about `models[0]` and `models[1]`. MT-bench's "tie (inconsistent)", two orders that disagree, is a
    /// tie here; keep it apart where it is stored.
    pub preference: Preference,
}

impl Vote<'_> {
    /// The same voter's verdict as MT-bench makes one of both orders ([`TwoOrder::conservative`]); `None` where an order is unparsed.
    #[must_use]
    pub fn of_orders(self, verdicts: TwoOrder) -> Option<Self> {
        Some(Self { preference: verdicts.conservative()?, ..self })
    }
}

/// Whether ties take part in the agreement of votes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ties {
    /// Every two votes are compared; a tie equals a tie. MT-bench's setup S1, in which random votes agree on a third.
    Counted,
    /// A comparison is left out if either vote is a tie. Setup S2: random votes agree on half.
    Excluded,
}

/// Comparisons of votes on one question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct QuestionAgreement<'a> {
    /// The question.
    pub question: &'a str,
    /// Comparisons that agree, of those made; there may be none.
    pub agreed: Proportion,
}

/// Agreement of votes, question by question.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct VoteAgreement<'a> {
    /// One entry for each question that has a vote, in ascending order of the question's text.
    pub questions: Vec<QuestionAgreement<'a>>,
}

impl VoteAgreement<'_> {
    /// Comparisons that agree, of all that were made. Its own binomial intervals would take the comparisons as
    /// independent, which those on one question, and those that share a vote, are not.
    pub fn total(&self) -> Proportion {
        self.questions.iter().map(|question| question.agreed).sum()
    }

    /// The share of comparisons that agree, with an interval by resampling whole questions (a ratio of sums on each
    /// resample).
    ///
    /// # Errors
    ///
    /// [`Error::Undefined`] if no two votes could be compared or there is one question only, and those of [`Bootstrap::interval`].
    pub fn interval(&self, bootstrap: &Bootstrap) -> Result<BootstrapInterval, Error> {
        bootstrap.interval(self.questions.len(), |rows| {
            rows.iter().map(|&row| self.questions[row].agreed).sum::<Proportion>().estimate()
        })
    }
}

/// The agreement of a judge with people: every vote of the judge is compared with each person's vote on the same
/// question, two models and turn (MT-bench's `compute_agreement`, FastChat; Zheng et al., 2023, section 4.2). It is
/// weighted by votes, not by a majority, and no annotator is compared with itself.
///
/// MT-bench reports each turn for itself: pass the votes of one turn.
///
/// # Errors
///
/// [`Error::TooFewItems`] if either side is empty, [`Error::SelfComparison`] for a vote on a model and itself.
///
/// ```
/// use judge_metrics::preference::{Preference::*, Ties, Vote, judge_human_agreement};
///
/// let vote = |annotator, models, preference| Vote { question: "81", models, turn: 1, annotator, preference };
/// let judge = [vote("judge", ["a", "b"], First)];
/// let human = [vote("ann", ["b", "a"], Second), vote("bo", ["a", "b"], Tie)];
/// let agreement = judge_human_agreement(&judge, &human, Ties::Counted)?.total();
/// assert_eq!((agreement.count, agreement.n), (1, 2));
/// let agreement = judge_human_agreement(&judge, &human, Ties::Excluded)?.total();
/// assert_eq!((agreement.count, agreement.n), (1, 1));
/// # Ok::<(), judge_metrics::Error>(())
/// ```
pub fn judge_human_agreement<'a>(
    judge: &[Vote<'a>],
    human: &[Vote<'a>],
    ties: Ties,
) -> Result<VoteAgreement<'a>, Error> {
    check_count(1, judge.len())?;
    check_count(1, human.len())?;
    let (judge, human) = (by_key("judge", judge)?, by_key("human", human)?);
    let mut questions: BTreeMap<&str, Proportion> =
        judge.keys().chain(human.keys()).map(|key| (key.question, Proportion::default())).collect();
    for (key, judged) in &judge {
        let agreed = questions.entry(key.question).or_default();
        for a in judged {
            for b in human.get(key).into_iter().flatten() {
                compare(a, b, ties, agreed);
            }
        }
    }
    Ok(collected(questions))
}

/// The agreement of people among themselves: all unordered pairs of votes of different annotators on the same question,
/// two models and turn. It is the ceiling that a judge's agreement with them is held against.
///
/// FastChat also compares an annotator who voted twice on a pair with itself; here nobody is.
///
/// # Errors
///
/// [`Error::TooFewItems`] for no vote, [`Error::SelfComparison`] for a vote on a model and itself.
pub fn annotator_agreement<'a>(votes: &[Vote<'a>], ties: Ties) -> Result<VoteAgreement<'a>, Error> {
    check_count(1, votes.len())?;
    let mut questions: BTreeMap<&str, Proportion> = BTreeMap::new();
    for (key, votes) in by_key("votes", votes)? {
        let agreed = questions.entry(key.question).or_default();
        for (i, a) in votes.iter().enumerate() {
            for b in &votes[..i] {
                compare(a, b, ties, agreed);
            }
        }
    }
    Ok(collected(questions))
}

/// What two votes must share to be compared; the models in ascending order.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Key<'a> {
    question: &'a str,
    models: [&'a str; 2],
    turn: u32,
}

/// An annotator and the verdict about a key's models.
type Voted<'a> = (&'a str, Preference);

fn by_key<'a>(argument: &'static str, votes: &[Vote<'a>]) -> Result<BTreeMap<Key<'a>, Vec<Voted<'a>>>, Error> {
    let mut keyed: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (index, vote) in votes.iter().enumerate() {
        let [first, second] = vote.models;
        if first == second {
            return Err(Error::SelfComparison { argument, index });
        }
        let (models, preference) = if first < second {
            ([first, second], vote.preference)
        } else {
            ([second, first], vote.preference.swapped())
        };
        let key = Key { question: vote.question, models, turn: vote.turn };
        keyed.entry(key).or_default().push((vote.annotator, preference));
    }
    Ok(keyed)
}

fn compare(a: &Voted<'_>, b: &Voted<'_>, ties: Ties, agreed: &mut Proportion) {
    let decisive = a.1.is_decisive() && b.1.is_decisive();
    if a.0 != b.0 && (ties == Ties::Counted || decisive) {
        agreed.add(a.1 == b.1);
    }
}

fn collected(questions: BTreeMap<&str, Proportion>) -> VoteAgreement<'_> {
    VoteAgreement {
        questions: questions.into_iter().map(|(question, agreed)| QuestionAgreement { question, agreed }).collect(),
    }
}
