//! From the passes of an engine to answers: the one place where the next token of a text is
//! decided.
//!
//! ```text
//! drive ─► Passes::prefill   as long as prompts are left and fit beside the texts that are being written
//!      └─► Passes::step      else one more token of every text
//!            each pass calls  Driver::take(Found of some sequences)
//!              nothing is written   ─►  read it, and answer its job
//!              a text is written    ─►  choose a token, read label logits; go on, or answer
//!            and returns for each the token to feed next, or None: the sequence is over
//! ```
//!
//! Prompts come first, so texts of many requests are written side by side. The engine may free a
//! sequence's keys as soon as `take` has returned `None` for it. Engines never choose tokens and
//! never see requests; this file never sees tensors.

use std::mem;
use std::ops::ControlFlow;

use judge_core::TokenId;

use super::answers::Answers;
use super::context::Context;
use super::jobs::{Job, Scores};
use super::labels::{States, Steps};
use super::next_token::{NextLogProbs, NextToken};
use super::passes::{Found, Next, Passes};
use super::written::Text;
use crate::Error;

/// Answers the jobs of one group, each as soon as it is known, until the engine has nothing left to
/// do. Returns [`ControlFlow::Break`] if whoever takes the answers wants no more; no further pass
/// is begun then.
///
/// # Errors
/// Those of the engine's device, and [`Error::NothingRead`] if an engine brings no logits where a
/// text is written.
pub(crate) fn drive(
    context: &Context,
    jobs: &[Job<'_>],
    passes: &mut dyn Passes,
    answers: &mut Answers<'_>,
) -> Result<ControlFlow<()>, Error> {
    let mut driver = Driver::new(context, jobs, answers);
    loop {
        let goes_on =
            passes.prefill(&mut |found| driver.take(found))? || passes.step(&mut |found| driver.take(found))?;
        if driver.flow.is_break() || !goes_on {
            return Ok(driver.flow);
        }
    }
}

/// Takes what the passes bring, and has the texts that are being written.
pub(crate) struct Driver<'d, 's> {
    /// What is known of the model.
    context: &'d Context,
    /// The group's jobs; an engine names them by their place here.
    jobs: &'d [Job<'d>],
    /// Who collects the parts of requests.
    answers: &'d mut Answers<'s>,
    /// The text that is being written behind each job's prompt, by the job's place. `None` before
    /// the first token, after the last, and for jobs that write nothing.
    texts: Vec<Option<Text<'d>>>,
    /// Break once an answer was met with one; nothing is read from then on.
    flow: ControlFlow<()>,
}

impl<'d, 's> Driver<'d, 's> {
    /// A driver of jobs of which no pass has been run.
    pub(crate) fn new(context: &'d Context, jobs: &'d [Job<'d>], answers: &'d mut Answers<'s>) -> Self {
        let texts = jobs.iter().map(|_| None).collect();
        Self { context, jobs, answers, texts, flow: ControlFlow::Continue(()) }
    }

    /// Reads what a pass brought of some sequences, and answers their jobs or chooses their next
    /// tokens; see [`Take`](super::passes::Take). After a break all sequences are over.
    pub(crate) fn take(&mut self, found: Vec<Found<'_>>) -> Result<Vec<Option<TokenId>>, Error> {
        found.into_iter().map(|found| if self.flow.is_break() { Ok(None) } else { self.take_one(found) }).collect()
    }

    /// Reads what a pass brought of one sequence: the token that it goes on with, or `None` if it
    /// is over.
    fn take_one(&mut self, mut found: Found<'_>) -> Result<Option<TokenId>, Error> {
        let spec = &self.context.spec;
        let place = found.job;
        let job = &self.jobs[place];
        let text = match (self.texts[place].take(), &job.want.generate) {
            (Some(text), _) => text,
            (None, Some(generation)) => {
                let steps = Steps::new(job.want, job.heads, spec.n_layers());
                let (signals, own) = (mem::take(&mut found.brought.signals), mem::take(&mut found.brought.own));
                Text::new(job, generation, steps, signals, Scores { own, ends: Vec::new() })
            }
            (None, None) => {
                let read = |next: Option<&dyn NextLogProbs>| job.read(found.brought, next, spec.n_layers());
                let part = match found.next {
                    Next::Logits(logits) => {
                        NextToken::new(logits, spec.final_soft_cap(), "step 0").and_then(|next| read(Some(&next)))
                    }
                    Next::Some(next) => read(Some(&next)),
                    Next::Unknown => read(None),
                };
                self.flow = self.answers.take(job.index, job.number, part);
                return Ok(None);
            }
        };
        let Next::Logits(logits) = found.next else { return Err(Error::NothingRead) };
        self.write(place, text, &found.brought.states, logits)
    }

    /// Chooses one more token of the text behind job number `place`, from the logits `[d_vocab]` of
    /// a pass and its states. Returns the token if the text goes on. If it ends, or if a logit is
    /// not finite, the job is answered and `None` returned.
    fn write(
        &mut self,
        place: usize,
        mut text: Text<'d>,
        states: &States,
        logits: &mut [f32],
    ) -> Result<Option<TokenId>, Error> {
        let step = format_args!("step {}", text.tokens.len());
        let next = NextToken::new(logits, self.context.spec.final_soft_cap(), step);
        let finish = next.map(|next| text.write(self.context, states, &next)).transpose();
        match finish {
            None => {
                let token = text.tokens.last().copied();
                self.texts[place] = Some(text);
                Ok(token)
            }
            Some(finish) => {
                let part = finish.and_then(|finish| text.finish(finish, self.context));
                let job = &self.jobs[place];
                self.flow = self.answers.take(job.index, job.number, part);
                Ok(None)
            }
        }
    }
}
