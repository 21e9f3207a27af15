//! A text that is being written behind a prompt: its tokens, why it ends, and the label logits read
//! at its steps.
//!
//! `driver` makes a `Text` when the prompt's pass has brought its logits, and calls `write` once
//! for each pass until that says that the text ends. Step `k` is the choice of token `k` (from 0);
//! its states and logits are those of the position before that token.
//!
//! ```text
//! an end token of the model   EndToken   not part of the tokens or the text
//! a stop text in the text     StopText   its tokens are kept, the text is cut before it
//! max_new_tokens are written  Length
//! ```
//!
//! They are looked for in this order after each choice.

use judge_core::{
    Layer, Unscored,
    reading::{Finish, Generated},
    request::{Generation, TokenId},
};

use super::answers::Part;
use super::context::Context;
use super::jobs::{Job, Scores, Signals};
use super::labels::{States, Steps};
use super::next_token::NextToken;
use super::reply::Reply;

/// What was written behind a job's prompt, and read meanwhile.
pub(crate) struct Text<'a> {
    /// The job that it answers.
    pub(crate) job: &'a Job<'a>,
    /// How the text is written: the job's own settings.
    pub(crate) generation: &'a Generation,
    /// Label logits of the steps so far.
    pub(crate) steps: Steps<'a>,
    /// What the prompt's positions brought, kept for the answer.
    pub(crate) signals: Signals,
    /// Log-probabilities of the prompt and of continuations, kept for the answer.
    pub(crate) scores: Scores,
    /// The tokens written so far, without an end token.
    pub(crate) tokens: Vec<TokenId>,
    /// States at these tokens.
    pub(crate) reply: Reply,
    /// Why the text ended, if it did with a token whose states are still to come.
    pub(crate) ended: Option<Finish>,
}

impl<'a> Text<'a> {
    /// A text of which nothing is written yet.
    pub(crate) fn new(
        job: &'a Job<'a>,
        generation: &'a Generation,
        steps: Steps<'a>,
        signals: Signals,
        scores: Scores,
    ) -> Self {
        let reply = Reply::new(&job.want.reply);
        Self { job, generation, steps, signals, scores, tokens: Vec::new(), reply, ended: None }
    }

    /// Takes the states of the last of `tokens`, which a pass fed.
    pub(crate) fn take(&mut self, context: &Context, fed: &[(Layer, Vec<f32>)]) {
        if !fed.is_empty() {
            self.reply.add(fed, &self.tokens, |tokens| context.codec.decode(tokens).0);
        }
    }

    /// Chooses the next token from `next` and reads the states that predicted it. Says why the text
    /// ends, if it does; else the token is the last of `tokens`. At step 0 it also scores the
    /// continuations that end behind the prompt.
    ///
    /// # Errors
    /// If a logit is not finite.
    pub(crate) fn write(
        &mut self,
        context: &Context,
        states: &States,
        next: &NextToken<'_>,
    ) -> Result<Option<Finish>, Unscored> {
        let step = self.tokens.len();
        if step == 0 {
            self.scores.ends = self.job.score_ends(next);
        }
        let token = next.choose(&self.generation.sampling, step)?;
        let is_end = context.eos.contains(&token);
        self.steps.read(step, (!is_end).then_some(token), states, Some(next));
        if is_end {
            return Ok(Some(Finish::EndToken));
        }
        self.tokens.push(token);
        let stop = &self.generation.stop;
        // Decodes all of the text each time: a token may be written otherwise behind others, and
        // may complete a character begun before it.
        if !stop.is_empty() && first_stop(&context.codec.decode(&self.tokens).0, stop).is_some() {
            return Ok(Some(Finish::StopText));
        }
        Ok((self.tokens.len() == self.generation.max_new_tokens).then_some(Finish::Length))
    }

    /// What the job has to say with the finished text; the error names a number that is not finite.
    ///
    /// A text that was stopped is cut before the first stop text in it. Its tokens are all
    /// reported, with their ends moved back to the cut, but the label reads of steps whose token
    /// begins at the cut or behind it are not.
    pub(crate) fn finish(mut self, finish: Finish, context: &Context) -> Result<Part, Unscored> {
        let (mut text, mut text_ends) = context.codec.decode(&self.tokens);
        if let Some(cut) = first_stop(&text, &self.generation.stop) {
            text.truncate(cut);
            // A token begins where the one before it ends.
            let within = text_ends.iter().take_while(|&&end| end < cut).count();
            self.steps.truncate(if cut == 0 { 0 } else { within + 1 });
            text_ends.iter_mut().for_each(|end| *end = cut.min(*end));
        }
        let n_tokens = Some(self.tokens.len());
        let generated = Generated { tokens: self.tokens, text, text_ends, finish, n_tokens, alternatives: Vec::new() };
        self.job.part(self.steps, self.signals, self.scores, Some(generated), self.reply.finish())
    }
}

/// Where the first of the stop texts begins, in bytes; the earliest place counts, whichever of them
/// it is.
fn first_stop(text: &str, stop: &[String]) -> Option<usize> {
    stop.iter().filter_map(|stop| text.find(stop.as_str())).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_stop_text_is_the_one_that_begins_first() {
        let stop = ["\n\n", "b", "never"].map(str::to_owned);
        assert_eq!(first_stop("a\n\nab", &stop), Some(1));
        assert_eq!(first_stop("xxb\n\n", &stop), Some(2));
        assert_eq!(first_stop("a\na", &stop), None);
        assert_eq!(first_stop("", &stop), None);
    }
}
