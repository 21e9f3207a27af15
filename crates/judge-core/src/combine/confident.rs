use std::sync::Arc;

use serde_json::{Value, json};

use crate::{
    Error, Judge, JudgeError, ModelInfo, Request, Rounds, Score,
    inspector::{Probe, ProbeReader},
};

/// A judge whose scores carry the probability that they are right, by a probe on the states in which the judge came to its verdict
/// ([`Score::confidence`]): the method of arXiv 2512.22245.
///
/// The probe has the classes 0 (wrong) and 1 (right), and was trained on verdicts of the same judge that people have given too. It reads
/// states of the prompt, or of the reply while it is written, in the pass that the judge asks for anyway. The verdict itself is what it is
/// without the probe, and one of whose reply a state is not there, such as the end of a thought, has no confidence.
///
/// Under [`Swapped`](crate::combine::Swapped) and other combinations each part has its own.
#[derive(Clone, Debug)]
pub struct Confident<J> {
    judge: J,
    reader: ProbeReader,
}

impl<J> Confident<J> {
    /// Attaches a probe to a judge that asks one model for one thing.
    ///
    /// # Errors
    /// [`Error::ProbeRefused`] and [`Error::ProbeSignals`] for a probe of another model; [`Error::NoConfidence`] for one whose classes are not
    /// 0 and 1. One that gives no probabilities fails with [`Error::NoProbabilities`] at the first verdict.
    pub fn new(judge: J, probe: Arc<dyn Probe>, model: &ModelInfo) -> Result<Self, Error> {
        let reader = ProbeReader::new(probe, model)?;
        match reader.probe().classes() {
            [0, 1] => Ok(Self { judge, reader }),
            classes => Err(Error::NoConfidence { classes: classes.to_vec() }),
        }
    }
}

impl<Item: ?Sized, J: Judge<Item>> Judge<Item> for Confident<J> {
    fn name(&self) -> &str {
        self.judge.name()
    }

    /// [`Error::ReplyNotWritten`] if the probe reads a reply and the judge does not ask for one.
    fn ask(&self, item: &Item) -> Result<Vec<Request>, JudgeError> {
        let mut requests = self.judge.ask(item)?;
        let [request] = &mut requests[..] else {
            return Err(Error::shape("requests of a judge with a confidence", 1, requests.len()).into());
        };
        if request.want.generate.is_none() && self.reader.reads_reply() {
            return Err(Error::ReplyNotWritten.into());
        }
        request.want = std::mem::take(&mut request.want).with_signals(self.reader.probe().signals());
        Ok(requests)
    }

    fn follow_up(&self, item: &Item, rounds: &Rounds<'_>) -> Result<Vec<Request>, JudgeError> {
        self.judge.follow_up(item, rounds)
    }

    fn decide(&self, item: &Item, rounds: &Rounds<'_>) -> Result<Score, JudgeError> {
        let score = self.judge.decide(item, rounds)?;
        let Some(output) = self.reader.classify(rounds.only()?)? else { return Ok(score) };
        match output.probabilities.as_deref() {
            Some(&[_, right]) => Ok(Score { confidence: Some(right), ..score }),
            _ => Err(Error::NoProbabilities.into()),
        }
    }

    fn settings(&self) -> Option<Value> {
        Some(json!({"judge": "confident", "member": self.judge.settings()?, "probe": self.reader.probe().settings()?}))
    }
}
