use super::check::{all, one};
use crate::{ContractBreach, Error, Judge, JudgeError, Outcome, Reason, Request, Rounds, TextModel, Unscored, Verdict};

/// Rounds after which a judge is taken for one that never ends.
const ROUNDS: usize = 64;

/// Checks that a judge does what [`Judge`] promises, on the given items (a handful) and a model that answers it.
///
/// * It has a name.
/// * It asks the same about the same item, round by round.
/// * Its rounds end.
/// * What was not read is an item without a score, never an error: all its requests are answered with a reason, and each one of them alone.
/// * Values, and what a calibrator makes of them, are finite numbers, and so are those of its parts; a calibrated interval is one.
///
/// # Errors
/// [`Error::Contract`] with the first breach found, [`Error::Item`] if the judge fails, [`Error::Backbone`] if the model does.
pub fn check_judge<Item>(
    judge: &dyn Judge<Item>,
    model: &dyn TextModel,
    items: impl IntoIterator<Item = Item>,
) -> Result<(), Error> {
    if judge.name().is_empty() {
        return Err(problem(judge, "it has no name".to_owned()));
    }
    for (number, item) in items.into_iter().enumerate() {
        let fail = |source| Error::Item { judge: judge.name().to_owned(), id: (number as u64).into(), source };
        let decide = |answered: Result<Vec<Vec<Outcome>>, Unscored>| -> Result<Verdict, Error> {
            let rounds = match &answered {
                Ok(rounds) => Rounds::new(rounds.iter().map(Vec::as_slice)),
                Err(unscored) => return Ok(Verdict::Unscored(unscored.clone())),
            };
            let verdict = match judge.decide(&item, &rounds) {
                Ok(score) => Verdict::Scored(score),
                Err(JudgeError::Unscored(unscored)) => Verdict::Unscored(unscored),
                Err(JudgeError::Failed(source)) => return Err(fail(source)),
            };
            check_verdict(judge, &verdict)?;
            Ok(verdict)
        };
        let answered = answer(judge, &item, &fail, |requests| all(model, requests))?;
        let first = answered.iter().flatten().next().map_or(0, Vec::len);
        decide(answered)?;

        let unread = || Outcome::Unscored(Unscored::new(Reason::TooLong, "for the check"));
        let none = answer(judge, &item, &fail, |requests| Ok(requests.iter().map(|_| unread()).collect()))?;
        if decide(none)?.score().is_some() && first > 0 {
            return Err(problem(judge, "it gives a score although nothing was read".to_owned()));
        }
        for missing in 0..first {
            let mut place = 0;
            let some = answer(judge, &item, &fail, |requests| {
                let answer = |request: &Request| {
                    place += 1;
                    if place == missing + 1 { Ok(unread()) } else { one(model, request) }
                };
                requests.iter().map(answer).collect()
            })?;
            decide(some)?;
        }
    }
    Ok(())
}

/// All rounds of a judge about one item, asked twice each; or why it cannot ask about it.
fn answer<Item>(
    judge: &dyn Judge<Item>,
    item: &Item,
    fail: &dyn Fn(Box<dyn std::error::Error + Send + Sync>) -> Error,
    mut answers: impl FnMut(&[Request]) -> Result<Vec<Outcome>, Error>,
) -> Result<Result<Vec<Vec<Outcome>>, Unscored>, Error> {
    let mut rounds: Vec<Vec<Outcome>> = Vec::new();
    loop {
        let so_far = Rounds::new(rounds.iter().map(Vec::as_slice));
        let ask = || match rounds.len() {
            0 => judge.ask(item),
            _ => judge.follow_up(item, &so_far),
        };
        let requests = match (ask(), ask()) {
            (Ok(requests), Ok(again)) if requests == again => requests,
            (Err(JudgeError::Unscored(one)), Err(JudgeError::Unscored(other))) if one == other => return Ok(Err(one)),
            (Err(JudgeError::Failed(source)), _) => return Err(fail(source)),
            _ => return Err(ContractBreach::NotPure { judge: judge.name().to_owned() }.into()),
        };
        if requests.is_empty() {
            return Ok(Ok(rounds));
        }
        if rounds.len() == ROUNDS {
            let (judge, rounds) = (judge.name().to_owned(), ROUNDS);
            return Err(Error::TooManyRounds { judge, id: 0_u64.into(), rounds });
        }
        rounds.push(answers(&requests)?);
    }
}

fn check_verdict<Item>(judge: &dyn Judge<Item>, verdict: &Verdict) -> Result<(), Error> {
    let Verdict::Scored(score) = verdict else { return Ok(()) };
    if !score.value.is_finite() {
        return Err(problem(judge, format!("its value is {}, expected a finite number", score.value)));
    }
    if let Some(found) = score.calibrated
        && !(found.low <= found.value && found.value <= found.high && found.high.is_finite() && found.low.is_finite())
    {
        return Err(problem(judge, format!("{found:?} is not an interval around a value")));
    }
    score.parts.iter().try_for_each(|part| check_verdict(judge, &part.verdict))
}

fn problem<Item>(judge: &dyn Judge<Item>, problem: String) -> Error {
    ContractBreach::Judge { judge: judge.name().to_owned(), problem }.into()
}
