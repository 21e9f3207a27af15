//! A text that is being written behind a prompt.

use judge_core::{Finish, Generated, Generation, TokenId, Unscored};

use super::answers::Part;
use super::context::Context;
use super::jobs::{Job, Scores, Signals};
use super::labels::{States, Steps};
use super::next_token::NextToken;

/// What was written behind a job's prompt, and read meanwhile.
pub(crate) struct Text<'a> {
    pub(crate) job: &'a Job<'a>,
    pub(crate) generation: &'a Generation,
    pub(crate) steps: Steps<'a>,
    pub(crate) signals: Signals,
    pub(crate) scores: Scores,
    pub(crate) tokens: Vec<TokenId>,
}

impl<'a> Text<'a> {
    /// Nothing written yet.
    pub(crate) fn new(
        job: &'a Job<'a>,
        generation: &'a Generation,
        steps: Steps<'a>,
        signals: Signals,
        scores: Scores,
    ) -> Self {
        Self { job, generation, steps, signals, scores, tokens: Vec::new() }
    }

    /// Chooses the next token and reads the states that predicted it; says why the text ends, if it does.
    pub(crate) fn write(&mut self, context: &Context, states: &States, next: &NextToken<'_>) -> Option<Finish> {
        let step = self.tokens.len();
        if step == 0 {
            self.scores.ends = self.job.score_ends(next);
        }
        let token = next.choose(&self.generation.sampling, step);
        let is_end = context.eos.contains(&token);
        self.steps.read(step, (!is_end).then_some(token), states, Some(next));
        if is_end {
            return Some(Finish::EndToken);
        }
        self.tokens.push(token);
        let stop = &self.generation.stop;
        // All of the text each time: a token may be written otherwise behind others, and may complete a character begun before it.
        if !stop.is_empty() && first_stop(&context.codec.decode(&self.tokens).0, stop).is_some() {
            return Some(Finish::StopText);
        }
        (self.tokens.len() == self.generation.max_new_tokens).then_some(Finish::Length)
    }

    /// What the job has to say with the finished text. A text that was stopped is cut before the first stop text in it, and the steps whose
    /// tokens lie behind the cut as a whole are not reported.
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
        self.job.part(self.steps, self.signals, self.scores, Some(generated))
    }
}

/// Where the first of some texts begins in a text.
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
