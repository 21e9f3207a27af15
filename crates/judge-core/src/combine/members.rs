use crate::{
    Error, Judge, JudgeError, Outcome, Request, Rounds, Score, Unscored, Verdict, scale::ScoreDistribution,
    verdict::Part,
};

/// What the `n` members of a combined judge do, by their number.
pub(super) trait Members {
    fn count(&self) -> usize;
    /// What a member asks for after these rounds of its own.
    fn ask(&self, member: usize, rounds: &Rounds<'_>) -> Result<Vec<Request>, JudgeError>;
    fn decide(&self, member: usize, rounds: &Rounds<'_>) -> Result<Score, JudgeError>;
}

/// What a judge asks about an item after these rounds.
pub(super) fn asked<J: Judge<Item> + ?Sized, Item: ?Sized>(
    judge: &J,
    item: &Item,
    rounds: &Rounds<'_>,
) -> Result<Vec<Request>, JudgeError> {
    if rounds.as_slices().is_empty() { judge.ask(item) } else { judge.follow_up(item, rounds) }
}

/// One member's part of the rounds so far.
struct Progress<'o> {
    rounds: Rounds<'o>,
    /// Whether its last round asked for nothing.
    done: bool,
    unscored: Option<Unscored>,
}

/// The requests of all members in the round after `rounds`, one member's after another's.
pub(super) fn ask(members: &dyn Members, rounds: &Rounds<'_>) -> Result<Vec<Request>, JudgeError> {
    let mut all = Vec::new();
    for (member, progress) in replay(members, rounds)?.iter_mut().enumerate() {
        all.extend(next(members, member, progress)?);
    }
    Ok(all)
}

/// The verdicts of all members.
pub(super) fn decide(members: &dyn Members, rounds: &Rounds<'_>) -> Result<Vec<Verdict>, JudgeError> {
    let mut verdicts = Vec::with_capacity(members.count());
    for (member, mut progress) in replay(members, rounds)?.into_iter().enumerate() {
        // The last word of each member was that it asks no more, or that it cannot score the item; which of the two, it says again.
        next(members, member, &mut progress)?;
        let decided = match progress.unscored {
            Some(unscored) => Err(unscored.into()),
            None => members.decide(member, &progress.rounds),
        };
        verdicts.push(match decided.and_then(|score| Ok(score.finite()?)) {
            Ok(score) => Verdict::Scored(score),
            Err(JudgeError::Unscored(unscored)) => Verdict::Unscored(unscored),
            Err(failed) => return Err(failed),
        });
    }
    Ok(verdicts)
}

/// Whose outcomes are whose: asks the members again, who ask for the same as before, and hands out what came back.
fn replay<'o>(members: &dyn Members, rounds: &Rounds<'o>) -> Result<Vec<Progress<'o>>, JudgeError> {
    let new = || Progress { rounds: Rounds::default(), done: false, unscored: None };
    let mut all: Vec<Progress<'o>> = (0..members.count()).map(|_| new()).collect();
    for &round in rounds.as_slices() {
        let mut rest: &[Outcome] = round;
        for (member, progress) in all.iter_mut().enumerate() {
            let asked = next(members, member, progress)?.len();
            let Some((own, others)) = rest.split_at_checked(asked) else {
                return Err(Error::shape("outcomes of a round", asked, rest.len()).into());
            };
            if asked > 0 {
                progress.rounds.push(own);
            }
            rest = others;
        }
        Error::check_count("outcomes of a round", round.len() - rest.len(), round.len())?;
    }
    Ok(all)
}

/// What a member asks for next; nothing once it is done or cannot score the item.
fn next(members: &dyn Members, member: usize, progress: &mut Progress<'_>) -> Result<Vec<Request>, JudgeError> {
    if progress.done || progress.unscored.is_some() {
        return Ok(Vec::new());
    }
    match members.ask(member, &progress.rounds) {
        Ok(requests) => {
            progress.done = requests.is_empty();
            Ok(requests)
        }
        Err(JudgeError::Unscored(unscored)) => {
            progress.unscored = Some(unscored);
            Ok(Vec::new())
        }
        Err(failed) => Err(failed),
    }
}

/// The distributions of the scored parts; `None` unless each has one and all are over one scale.
fn distributions(parts: &[Part]) -> Option<Vec<&ScoreDistribution>> {
    let scores = parts.iter().filter_map(|part| part.verdict.score());
    let distributions: Vec<&ScoreDistribution> =
        scores.map(|score| score.distribution.as_ref()).collect::<Option<_>>()?;
    let scale = distributions.first()?.scale();
    distributions.iter().all(|distribution| distribution.scale() == scale).then_some(distributions)
}

/// The natural logarithm of each probability, of 0 as of the smallest positive number.
pub(super) fn log_probabilities(distribution: &ScoreDistribution) -> impl Iterator<Item = f64> {
    distribution.probabilities().iter().map(|p| p.max(f64::MIN_POSITIVE).ln())
}

/// The distribution whose log-probabilities are the mean of the parts', but for a constant; `None` as for [`mixture`].
pub(super) fn log_pool(parts: &[Part]) -> Option<ScoreDistribution> {
    let distributions = distributions(parts)?;
    let scale = distributions.first()?.scale();
    let mut mean = vec![0.0; scale.len()];
    for distribution in &distributions {
        let share = log_probabilities(distribution).map(|log| log / distributions.len() as f64);
        mean.iter_mut().zip(share).for_each(|(sum, log)| *sum += log);
    }
    ScoreDistribution::softmax(scale, &mean).ok()
}

/// The weighted mean of the parts' distributions; `None` unless each has one and all are over one scale.
/// Weights are of the scored parts, in their order.
pub(super) fn mixture(parts: &[Part], weights: &[f64]) -> Option<ScoreDistribution> {
    let distributions = distributions(parts)?;
    let scale = distributions.first()?.scale();
    let mut mass = vec![0.0; scale.len()];
    for (distribution, weight) in distributions.iter().zip(weights) {
        mass.iter_mut().zip(distribution.probabilities()).for_each(|(sum, p)| *sum += weight * p);
    }
    ScoreDistribution::from_weights(scale, &mass).ok()
}
