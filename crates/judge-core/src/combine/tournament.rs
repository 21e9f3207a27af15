use std::error::Error as StdError;

use serde_json::{Value, json};

use super::members;
use super::renamed::{Views, preference};
use crate::{
    Fields, Judge, JudgeError, Outcome, Reason, Request, Rounds, Score, Unscored, Verdict,
    verdict::{CombinedBy, Part, mean_label_mass},
};

/// Ranks the answers of an item by comparing them two by two with a judge of pairs.
///
/// The answers are the item's fields `response_1`, `response_2` and so on, up to the first that is absent; the judge of
/// pairs sees two of them as `response_a` and `response_b`, and gives its preference for the first, from 0 to 1. To ask
/// in both orders, give it a [`Swapped`](crate::combine::Swapped) judge. Which answers meet is up to a
/// [`Pairing`]: [`RoundRobin`] lets all of them meet; one that looks at the results so far needs fewer comparisons.
///
/// The value is the highest win rate, the mean preference for an answer over its comparisons; [`Score::parts`] has the win rate of each
/// answer, named `response_1` and so on. [`comparisons`](Self::comparisons) has every comparison: fit strengths on them, which also tell
/// strong opponents from weak ones. A comparison without a verdict counts for nobody; an item of which no comparison has one is unscored.
///
/// ```
/// use judge_core::testing::ScriptedBackbone;
/// use judge_core::{combine::{OrderPolicy, RoundRobin, Swapped, Tournament}, prompted::{PromptFamily, WrittenJudge}, Runner};
///
/// // Prefers the answer that is earlier in the alphabet.
/// let model = ScriptedBackbone::new(2).with_reply(|prompt| {
///     let place = |answer| prompt.find(answer).unwrap_or(usize::MAX);
///     let mut met = [("Ash", place("Ash")), ("Elm", place("Elm")), ("Oak", place("Oak"))].into_iter().filter(|(_, p)| *p < usize::MAX);
///     let (better, worse) = (met.next().unwrap(), met.next().unwrap());
///     if better.1 < worse.1 { "[[A]]".into() } else { "[[B]]".into() }
/// });
/// let pairs = Swapped::new(WrittenJudge::new(PromptFamily::built_in("pair")?), OrderPolicy::Average);
/// let judge = Tournament::new(pairs, RoundRobin);
/// let item = [("instruction", "A tree?"), ("response_1", "Oak"), ("response_2", "Ash"), ("response_3", "Elm")];
/// let results = Runner::new(&model, vec![&judge]).collect([("q".into(), item)])?;
/// let score = results[0].verdicts[0].score().unwrap();
/// let win_rates: Vec<_> = score.parts.iter().map(|part| part.verdict.value()).collect();
/// assert_eq!(win_rates, [Some(0.0), Some(1.0), Some(0.5)]);
/// # Ok::<(), judge_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Tournament<J, P> {
    judge: J,
    pairing: P,
}

/// Which answers meet next.
pub trait Pairing: Send + Sync {
    /// The next comparisons of `n` answers, numbered from 0, after the ones that are known; none when enough is known.
    /// They are made at once. The same arguments always lead to the same comparisons.
    ///
    /// # Errors
    /// Of its own, which end the run. For `?` in a function of `Box<dyn Error>`: `.map_err(|error| error as Box<dyn Error>)`.
    fn next(&self, n: usize, known: &[Compared]) -> Result<Vec<[usize; 2]>, Box<dyn StdError + Send + Sync>>;

    /// Everything that the pairs depend on besides the number of answers and the results, as JSON; see [`Judge::settings`]. `None`, the
    /// default, is of a pairing that does not say.
    fn settings(&self) -> Option<Value> {
        None
    }
}

/// A comparison of two answers.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// Which ones, numbered from 0; the judge sees the first as `response_a`.
    pub answers: [usize; 2],
    /// The preference for the first, from 0 to 1 with ties at one half, or why there is none.
    pub verdict: Verdict,
}

/// All answers meet, each pair once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoundRobin;

impl Pairing for RoundRobin {
    fn next(&self, n: usize, known: &[Compared]) -> Result<Vec<[usize; 2]>, Box<dyn StdError + Send + Sync>> {
        let all = || (0..n).flat_map(|first| (first + 1..n).map(move |second| [first, second]));
        Ok(if known.is_empty() { all().collect() } else { Vec::new() })
    }

    fn settings(&self) -> Option<Value> {
        Some(json!("round_robin"))
    }
}

/// The name of an answer's field.
pub(super) fn answer(number: usize) -> String {
    format!("response_{}", number + 1)
}

/// How many answers an item has.
pub(super) fn answers<Item: Fields + ?Sized>(item: &Item) -> usize {
    (0..).take_while(|&number| item.field(&answer(number)).is_some()).count()
}

/// Where an item stands after some rounds.
enum Standing {
    /// These requests come next.
    Asks(Vec<Request>),
    /// Nothing more is asked.
    Done(Vec<Compared>),
}

impl<J: for<'i> Judge<dyn Fields + 'i>, P: Pairing> Tournament<J, P> {
    /// A tournament judged by `judge`, whose answers meet as `pairing` says.
    pub fn new(judge: J, pairing: P) -> Self {
        Self { judge, pairing }
    }

    /// All comparisons of an item, in the order in which they were made.
    ///
    /// # Errors
    /// [`JudgeError::Unscored`] for an item with fewer than two answers, [`JudgeError::Failed`] if the judge or the pairing fails or the
    /// outcomes are not those of their requests.
    pub fn comparisons<Item: Fields + ?Sized>(
        &self,
        item: &Item,
        rounds: &Rounds<'_>,
    ) -> Result<Vec<Compared>, JudgeError> {
        match self.stand(item, rounds)? {
            Standing::Done(known) => Ok(known),
            Standing::Asks(requests) => Err(crate::Error::shape("outcomes of a round", requests.len(), 0).into()),
        }
    }

    /// Goes through what was asked so far again: a batch of comparisons takes as many rounds as its slowest judge.
    fn stand<Item: Fields + ?Sized>(&self, item: &Item, rounds: &Rounds<'_>) -> Result<Standing, JudgeError> {
        let n = answers(item);
        if n < 2 {
            let detail = format!("the item has {n} of the fields response_1, response_2, …; a ranking needs two");
            return Err(Unscored::new(Reason::Missing, detail).into());
        }
        let mut rest: &[&[Outcome]] = rounds.as_slices();
        let mut known: Vec<Compared> = Vec::new();
        loop {
            let pairs = self.pairing.next(n, &known).map_err(JudgeError::Failed)?;
            if let Some(&[first, second]) = pairs.iter().find(|[a, b]| a == b || *a >= n || *b >= n) {
                return Err(crate::Error::NotAPair { first, second, answers: n }.into());
            }
            if pairs.is_empty() {
                let found = rest.iter().map(|round| round.len()).sum();
                crate::Error::check_count("outcomes after the last round", 0, found)?;
                return Ok(Standing::Done(known));
            }
            let fields = |pair: &[usize; 2]| {
                let [first, second] = pair.map(answer);
                [("response_a", first), ("response_b", second)]
            };
            let fields = pairs.iter().map(fields).collect();
            let finish = |judge: &str, _: usize, score: Score| preference(judge, score);
            let batch = Views { judge: &self.judge, item, fields, finish };
            let mut used = 0;
            let verdicts = loop {
                let so_far = Rounds::new(rest[..used].iter().copied());
                let requests = members::ask(&batch, &so_far)?;
                if requests.is_empty() {
                    break members::decide(&batch, &so_far)?;
                }
                if used == rest.len() {
                    return Ok(Standing::Asks(requests));
                }
                used += 1;
            };
            rest = &rest[used..];
            let compared = pairs.into_iter().zip(verdicts);
            known.extend(compared.map(|(answers, verdict)| Compared { answers, verdict }));
        }
    }
}

impl<J: for<'i> Judge<dyn Fields + 'i>, P> Tournament<J, P> {
    /// The name of the judge inside.
    pub fn name(&self) -> &str {
        <J as Judge<dyn Fields>>::name(&self.judge)
    }
}

impl<J: for<'i> Judge<dyn Fields + 'i>, P: Pairing, Item: Fields + ?Sized> Judge<Item> for Tournament<J, P> {
    fn name(&self) -> &str {
        self.name()
    }

    fn ask(&self, item: &Item) -> Result<Vec<Request>, JudgeError> {
        self.follow_up(item, &Rounds::default())
    }

    fn follow_up(&self, item: &Item, rounds: &Rounds<'_>) -> Result<Vec<Request>, JudgeError> {
        Ok(match self.stand(item, rounds)? {
            Standing::Asks(requests) => requests,
            Standing::Done(_) => Vec::new(),
        })
    }

    fn decide(&self, item: &Item, rounds: &Rounds<'_>) -> Result<Score, JudgeError> {
        let comparisons = self.comparisons(item, rounds)?;
        let rate = |number: usize| {
            let won = comparisons.iter().filter_map(|Compared { answers: [first, second], verdict }| {
                let preference = verdict.value()?;
                let own = if *first == number { Some(preference) } else { None };
                own.or(if *second == number { Some(1.0 - preference) } else { None })
            });
            let won: Vec<f64> = won.collect();
            if won.is_empty() {
                let own = comparisons.iter().filter(|compared| compared.answers.contains(&number));
                let why = own.filter_map(|compared| compared.verdict.unscored()).next().cloned();
                let not_met = || Unscored::new(Reason::Missing, "the answer was not compared");
                return Verdict::Unscored(why.unwrap_or_else(not_met));
            }
            Verdict::Scored(Score::new(won.iter().sum::<f64>() / won.len() as f64))
        };
        let parts = (0..answers(item)).map(|number| Part { name: answer(number), verdict: rate(number) });
        let parts: Vec<Part> = parts.collect();
        let mass = mean_label_mass(comparisons.iter().map(|compared| &compared.verdict));
        let best = parts.iter().filter_map(|part| part.verdict.value()).max_by(f64::total_cmp);
        match (best, comparisons.iter().find_map(|compared| compared.verdict.unscored())) {
            (Some(best), _) => Ok(Score { label_mass: mass, ..Score::new(best) }
                .with_parts(CombinedBy::Comparisons(comparisons.len()), parts)),
            (None, Some(unscored)) => Err(unscored.clone().into()),
            (None, None) => Err(Unscored::new(Reason::Missing, "no answers were compared").into()),
        }
    }

    fn settings(&self) -> Option<Value> {
        let member = <J as Judge<dyn Fields>>::settings(&self.judge)?;
        Some(json!({"judge": "tournament", "member": member, "pairing": self.pairing.settings()?}))
    }
}
