use serde_json::{Value, json};

use super::members::{self, Members, asked, mixture};
use crate::{
    Error, Judge, JudgeError, Request, Rounds, Score, Verdict,
    request::Sampling,
    verdict::{CombinedBy, Part},
};

/// One judge asked several times: the mean of `n` samples of what the model writes.
///
/// Sample `i` has the requests of the judge with `i` as the stream of their [`Sampling::Random`];
/// what writes greedily would write the same again and is refused.
/// Every sample's verdict is kept in [`Score::parts`].
#[derive(Clone, Debug)]
pub struct Repeated<J> {
    name: String,
    judge: J,
    samples: usize,
    least: usize,
}

impl<J> Repeated<J> {
    /// `samples` samples, every one of which must give a score.
    ///
    /// # Errors
    /// [`Error::Shape`] for no sample.
    pub fn new(name: impl Into<String>, judge: J, samples: usize) -> Result<Self, Error> {
        if samples == 0 {
            return Err(Error::Shape { what: "samples, at least", expected: 1, found: 0 });
        }
        Ok(Self { name: name.into(), judge, samples, least: samples })
    }

    /// The same, but at least so many samples must give a score; at least 1 counts.
    #[must_use]
    pub fn with_least(self, least: usize) -> Self {
        Self { least: least.clamp(1, self.samples), ..self }
    }
}

struct Asked<'p, J, Item: ?Sized>(&'p Repeated<J>, &'p Item);

impl<J: Judge<Item>, Item: ?Sized> Members for Asked<'_, J, Item> {
    fn count(&self) -> usize {
        self.0.samples
    }

    fn ask(&self, member: usize, rounds: &Rounds<'_>) -> Result<Vec<Request>, JudgeError> {
        let mut requests = asked(&self.0.judge, self.1, rounds)?;
        for request in &mut requests {
            let generation = request.want.generate.take();
            let sampled = |g: &crate::request::Generation| matches!(g.sampling, Sampling::Random { .. });
            if self.0.samples > 1 && !generation.as_ref().is_some_and(sampled) {
                return Err(Error::NotSampled { judge: self.0.judge.name().to_owned() }.into());
            }
            request.want.generate = generation.map(|generation| generation.with_stream(member as u64));
        }
        Ok(requests)
    }

    fn decide(&self, _: usize, rounds: &Rounds<'_>) -> Result<Score, JudgeError> {
        self.0.judge.decide(self.1, rounds)
    }
}

impl<J> Repeated<J> {
    /// Its own name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl<J: Judge<Item>, Item: ?Sized> Judge<Item> for Repeated<J> {
    fn name(&self) -> &str {
        self.name()
    }

    fn ask(&self, item: &Item) -> Result<Vec<Request>, JudgeError> {
        members::ask(&Asked(self, item), &Rounds::default())
    }

    fn follow_up(&self, item: &Item, rounds: &Rounds<'_>) -> Result<Vec<Request>, JudgeError> {
        members::ask(&Asked(self, item), rounds)
    }

    fn decide(&self, item: &Item, rounds: &Rounds<'_>) -> Result<Score, JudgeError> {
        let verdicts = members::decide(&Asked(self, item), rounds)?;
        let values: Vec<f64> = verdicts.iter().filter_map(Verdict::value).collect();
        if values.len() < self.least
            && let Some(unscored) = verdicts.iter().find_map(Verdict::unscored)
        {
            return Err(unscored.clone().into());
        }
        let value = values.iter().sum::<f64>() / values.len() as f64; // one at least: `least` is
        let part = |(sample, verdict): (usize, Verdict)| Part { name: sample.to_string(), verdict };
        let parts: Vec<Part> = verdicts.into_iter().enumerate().map(part).collect();
        let score = Score { distribution: mixture(&parts, &vec![1.0; values.len()]), ..Score::new(value) };
        Ok(score.combined(CombinedBy::Samples(self.samples), parts))
    }

    fn settings(&self) -> Option<Value> {
        let member = self.judge.settings()?;
        Some(json!({"judge": "repeated", "member": member, "samples": self.samples, "least": self.least}))
    }
}
