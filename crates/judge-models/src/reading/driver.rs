//! From the passes of an engine to answers: the one place where the next token of a text is
//! decided.
//!
//! ```text
//! drive ─► Passes::prefill   as long as prompts are left and fit beside the texts that are being written
//!      └─► Passes::step      else one more token of every text that has room
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

use judge_core::{
    Unscored,
    reading::Finish,
    request::{Sampling, TokenId},
};
use rayon::prelude::*;

use super::answers::{Answers, Part};
use super::context::Context;
use super::jobs::{Job, Scores};
use super::labels::Steps;
use super::next_token::NextToken;
use super::passes::{Found, Next, Passes};
use super::written::Text;
use crate::Error;

/// Answers the jobs of one group, each as soon as it is known, until the engine has nothing left to
/// do. Returns [`ControlFlow::Break`] if the caller wants no more answers; the engine is not
/// asked for a further pass then.
///
/// # Errors
/// Those of the engine's device, and [`Error::NothingRead`] if an engine brings nothing to choose
/// a token from where a text is written.
pub(crate) fn drive(
    context: &Context,
    jobs: &[Job<'_>],
    passes: &mut dyn Passes,
    answers: &mut Answers<'_>,
) -> Result<ControlFlow<()>, Error> {
    let mut driver = Driver::new(context, jobs, answers);
    loop {
        let continues =
            passes.prefill(&mut |found| driver.take(found))? || passes.step(&mut |found| driver.take(found))?;
        if driver.flow.is_break() || !continues {
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

    /// Reads what a pass brought of some sequences, all of them in parallel, and answers their jobs or
    /// chooses their next tokens; see [`Take`](super::passes::Take). Answers are given in the order of
    /// the sequences. After a break all sequences are over.
    pub(crate) fn take(&mut self, found: Vec<Found<'_>>) -> Result<Vec<Option<TokenId>>, Error> {
        if self.flow.is_break() {
            return Ok(vec![None; found.len()]);
        }
        let (context, jobs) = (self.context, self.jobs);
        let places: Vec<usize> = found.iter().map(|found| found.job).collect();
        let texts: Vec<Option<Text<'_>>> = places.iter().map(|&place| self.texts[place].take()).collect();
        let turn = |(found, text): (Found<'_>, _)| take_one(context, &jobs[found.job], text, found);
        let taken: Vec<_> = match places.len() {
            1 => found.into_iter().zip(texts).map(turn).collect(), // no other thread need be woken
            _ => found.into_par_iter().zip(texts).map(turn).collect(),
        };
        let continues = places.into_iter().zip(taken).map(|(place, taken)| match taken? {
            _ if self.flow.is_break() => Ok(None),
            Taken::GoesOn(text) => {
                let token = text.tokens.last().copied();
                self.texts[place] = Some(text);
                Ok(token)
            }
            Taken::Over(part) => {
                let job = &self.jobs[place];
                self.flow = self.answers.take(job.index, job.number, part);
                Ok(None)
            }
        });
        continues.collect()
    }
}

/// Where a sequence is after a pass.
enum Taken<'d> {
    /// Its text continues with the last of its tokens.
    GoesOn(Text<'d>),
    /// It is over, with what its job has to say.
    Over(Result<Part, Unscored>),
}

/// Reads what a pass brought of one sequence, whose `text` it is if some of it is written. Depends on
/// nothing but its arguments.
fn take_one<'d>(
    context: &Context,
    job: &'d Job<'d>,
    text: Option<Text<'d>>,
    mut found: Found<'_>,
) -> Result<Taken<'d>, Error> {
    let spec = &context.spec;
    let mut text = match (text, &job.want.generate) {
        (Some(text), _) => text,
        (None, Some(generation)) => {
            let steps = Steps::new(job.want, job.heads, spec.n_layers());
            let (signals, own) = (mem::take(&mut found.brought.signals), mem::take(&mut found.brought.own));
            Text::new(job, generation, steps, signals, Scores { own, ends: Vec::new() })
        }
        (None, None) => {
            let next = next_token(context, found.next, 0);
            return Ok(Taken::Over(next.and_then(|next| job.read(found.brought, next.as_ref(), spec.n_layers()))));
        }
    };
    text.take(context, &found.brought.fed);
    if let Some(finish) = text.ended {
        return Ok(Taken::Over(text.finish(finish, context)));
    }
    let is_greedy = text.generation.sampling == Sampling::Greedy;
    let next = match next_token(context, found.next, text.tokens.len()) {
        // What an engine finds itself is the most likely token.
        Ok(Some(next)) if is_greedy || matches!(next, NextToken::Logits { .. }) => next,
        Ok(_) => return Err(Error::NothingRead),
        Err(unscored) => return Ok(Taken::Over(Err(unscored))),
    };
    Ok(match text.write(context, &found.brought.states, &next) {
        Ok(None) => Taken::GoesOn(text),
        // Where states of its tokens are read, its last token is fed first.
        Ok(Some(finish)) if finish != Finish::EndToken && !text.job.want.reply.is_empty() => {
            text.ended = Some(finish);
            Taken::GoesOn(text)
        }
        Ok(Some(finish)) => Taken::Over(text.finish(finish, context)),
        Err(unscored) => Taken::Over(Err(unscored)),
    })
}

/// What a pass says of the token that is written at a step, if anything.
fn next_token<'p>(context: &Context, next: Next<'p>, step: usize) -> Result<Option<NextToken<'p>>, Unscored> {
    match next {
        Next::Unknown => Ok(None),
        Next::Logits(logits) => {
            NextToken::new(logits, context.spec.final_soft_cap(), format_args!("step {step}")).map(Some)
        }
        Next::Found(found) => Ok(Some(NextToken::Found(found))),
    }
}
