use super::check::{all, one};
use crate::{
    Error, ItemId, ItemResult, Judge, JudgeError, Outcome, Reason, Request, Rounds, Runner, Score, TextModel, Unscored,
    Verdict, testing::ContractBreach,
};

/// Rounds after which a judge is taken for one that never ends.
const ROUNDS: usize = 64;

/// Checks that a judge does what [`Judge`] promises, on the given items (a handful) and a model that answers it.
///
/// * It has a name.
/// * It asks the same about the same item, round by round.
/// * Its rounds end.
/// * What was not read is an item without a score, never an error: all its requests are answered with a reason, and each one of them alone.
/// * An item's verdict does not depend on the other items: all of them are judged in one run, in both orders, and
///   each verdict is the one that the item has alone, to the
///   bit.
/// * Values, and what a calibrator makes of them, are finite numbers, and so are those of its parts; a calibrated interval is one.
///
/// # Errors
/// [`Error::Contract`] with the first breach found, of the judge or, where it answers a request differently in
/// company, of the model; [`Error::Item`] if the judge fails, [`Error::Backbone`] if the model does.
pub fn check_judge<Item>(
    judge: &dyn Judge<Item>,
    model: &dyn TextModel,
    items: impl IntoIterator<Item = Item>,
) -> Result<(), Error> {
    if judge.name().is_empty() {
        return Err(problem(judge, "it has no name".to_owned()));
    }
    let items: Vec<Item> = items.into_iter().collect();
    let mut alone = Vec::with_capacity(items.len());
    for (number, item) in items.iter().enumerate() {
        let id = ItemId::from(number as u64);
        let fail = |source| Error::Item { judge: judge.name().to_owned(), id: id.clone(), source };
        let decide = |answered: &Result<Answered, Unscored>| -> Result<Verdict, Error> {
            let rounds = match answered {
                Ok(answered) => Rounds::new(answered.outcomes.iter().map(Vec::as_slice)),
                Err(unscored) => return Ok(Verdict::Unscored(unscored.clone())),
            };
            let verdict = match judge.decide(item, &rounds) {
                Ok(score) => Verdict::Scored(score),
                Err(JudgeError::Unscored(unscored)) => Verdict::Unscored(unscored),
                Err(JudgeError::Failed(source)) => return Err(fail(source)),
            };
            check_verdict(judge, &verdict)?;
            Ok(verdict)
        };
        let answered = answer(judge, (&id, item), &fail, |requests| all(model, requests))?;
        let first = answered.iter().flat_map(|answered| &answered.outcomes).next().map_or(0, Vec::len);
        alone.push((decide(&answered)?, answered));

        let unread = || Outcome::Unscored(Unscored::new(Reason::TooLong, "for the check"));
        let none = answer(judge, (&id, item), &fail, |requests| Ok(requests.iter().map(|_| unread()).collect()))?;
        if decide(&none)?.score().is_some() && first > 0 {
            return Err(problem(judge, "it gives a score although nothing was read".to_owned()));
        }
        for missing in 0..first {
            let mut place = 0;
            let some = answer(judge, (&id, item), &fail, |requests| {
                let answer = |request: &Request| {
                    place += 1;
                    if place == missing + 1 { Ok(unread()) } else { one(model, request) }
                };
                requests.iter().map(answer).collect()
            })?;
            decide(&some)?;
        }
    }
    let order: Vec<usize> = (0..items.len()).collect();
    let reversed: Vec<usize> = order.iter().rev().copied().collect();
    [order, reversed].iter().try_for_each(|order| check_company(judge, model, &items, &alone, order))
}

/// What a judge asked, round by round, and what it was answered.
#[derive(Default)]
struct Answered {
    requests: Vec<Vec<Request>>,
    outcomes: Vec<Vec<Outcome>>,
}

/// A verdict and what it rests on, unless the judge could not ask.
type Alone = (Verdict, Result<Answered, Unscored>);

/// The items judged in one run, in this order, against what each got alone.
fn check_company<Item>(
    judge: &dyn Judge<Item>,
    model: &dyn TextModel,
    items: &[Item],
    alone: &[Alone],
    order: &[usize],
) -> Result<(), Error> {
    let by_reference = ByReference(judge);
    let company = order.iter().map(|&number| (ItemId::from(number as u64), &items[number]));
    let results = Runner::new(model, vec![&by_reference]).collect(company)?;
    for (&number, ItemResult { verdicts, outcomes, .. }) in order.iter().zip(&results) {
        let (expected, answered) = &alone[number];
        // Printed, `-0.0` is not `0.0`, and every number shows all of its bits.
        let differs = |verdict: &&Verdict| format!("{verdict:?}") != format!("{expected:?}");
        let Some(found) = verdicts.iter().find(differs) else { continue };
        let other_answer = answered.iter().flat_map(|Answered { requests, outcomes: alone }| {
            let answers = alone.iter().flatten().zip(outcomes[0].iter().flatten());
            requests.iter().flatten().zip(answers).find(|(_, (alone, found))| alone != found)
        });
        if let Some((request, (alone, found))) = other_answer.into_iter().next() {
            let (request, alone, found) = (request.clone().into(), alone.clone().into(), found.clone().into());
            return Err(ContractBreach::NotInvariant { request, on: "its company", alone, found }.into());
        }
        let problem_found = format!("item {number} depends on the other items: {expected:?} alone, {found:?} then");
        return Err(problem(judge, problem_found));
    }
    Ok(())
}

/// A judge of items as one of references to them.
struct ByReference<'j, Item>(&'j dyn Judge<Item>);

impl<Item> Judge<&Item> for ByReference<'_, Item> {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn ask(&self, item: &&Item) -> Result<Vec<Request>, JudgeError> {
        self.0.ask(item)
    }

    fn follow_up(&self, item: &&Item, rounds: &Rounds<'_>) -> Result<Vec<Request>, JudgeError> {
        self.0.follow_up(item, rounds)
    }

    fn decide(&self, item: &&Item, rounds: &Rounds<'_>) -> Result<Score, JudgeError> {
        self.0.decide(item, rounds)
    }
}

/// All rounds of a judge about one item, asked twice each; or why it cannot ask about it.
fn answer<Item>(
    judge: &dyn Judge<Item>,
    (id, item): (&ItemId, &Item),
    fail: &dyn Fn(Box<dyn std::error::Error + Send + Sync>) -> Error,
    mut answers: impl FnMut(&[Request]) -> Result<Vec<Outcome>, Error>,
) -> Result<Result<Answered, Unscored>, Error> {
    let mut answered = Answered::default();
    loop {
        let rounds = answered.outcomes.len();
        let so_far = Rounds::new(answered.outcomes.iter().map(Vec::as_slice));
        let ask = || match rounds {
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
            return Ok(Ok(answered));
        }
        if rounds == ROUNDS {
            let (judge, rounds) = (judge.name().to_owned(), ROUNDS);
            return Err(Error::TooManyRounds { judge, id: id.clone(), rounds });
        }
        answered.outcomes.push(answers(&requests)?);
        answered.requests.push(requests);
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
