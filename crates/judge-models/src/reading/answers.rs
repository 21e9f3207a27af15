//! Collects what the sequences of a request bring, and gives the request's outcome when all have
//! answered.
//!
//! A request may need several sequences (jobs), which may run in different passes and end in any
//! order. `model.rs` makes one `Answers` for the requests that are answered together; `groups` says
//! with `expect` how many jobs a request has, `driver` brings their parts with `take`, and what
//! cannot be asked about is given at once with `give`.
//!
//! Each request is given exactly once, as soon as it is known. Which job failed first in time does
//! not show: the outcome follows from the parts in the order of their numbers.

use std::collections::HashMap;
use std::ops::ControlFlow;

use judge_core::{
    Outcome, Reading, Unscored, Want,
    reading::{ContinuationLogProbs, TokenLogProbs},
};

/// Takes outcomes by the number of their request among those that are answered together.
/// [`ControlFlow::Break`]: nothing more is wanted.
pub(crate) type Sink<'a> = dyn FnMut(usize, Outcome) -> ControlFlow<()> + 'a;

/// What one sequence has to say of its request.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    /// What was read of the sequence as the request's prompt. Empty but for the prompt's length if
    /// only continuations are read from it.
    pub(crate) reading: Reading,
    /// Log-probabilities of continuations that end in this sequence, each with its number in
    /// [`Want::continuations`].
    pub(crate) continuations: Vec<(usize, TokenLogProbs)>,
}

/// A request of which not all jobs have answered.
struct Open {
    /// Tokens of the prompt, which every answer states, and those that were cut off it.
    prompt_tokens: [usize; 2],
    /// The continuations asked for, in the request's order.
    texts: Vec<String>,
    /// What each job brought, by its number; `None` while it has not answered.
    parts: Vec<Option<Result<Part, Unscored>>>,
}

impl Open {
    /// The outcome. If several jobs failed, the first of them in the order of their numbers is
    /// told.
    fn finish(self) -> Outcome {
        let mut answer = Reading::default();
        let mut continuations: Vec<Option<TokenLogProbs>> = vec![None; self.texts.len()];
        for part in self.parts.into_iter().flatten() {
            let part = match part {
                Ok(part) => part,
                Err(unscored) => return Outcome::Unscored(unscored),
            };
            for (continuation, found) in part.continuations {
                continuations[continuation] = Some(found);
            }
            // The prompt's own sequence, where there is one, has number 0; the others read nothing
            // but continuations.
            if answer.prompt_tokens.is_none() {
                answer = part.reading;
            }
        }
        let [prompt_tokens, cut_tokens] = self.prompt_tokens;
        answer.prompt_tokens = Some(prompt_tokens);
        answer.cut_tokens = cut_tokens;
        let texts = self.texts.into_iter().zip(continuations);
        answer.continuations =
            texts.filter_map(|(text, tokens)| tokens.map(|tokens| ContinuationLogProbs { text, tokens })).collect();
        Outcome::Read(answer)
    }
}

/// The requests taken together that are not answered yet, and who takes the answers.
pub(crate) struct Answers<'s> {
    /// Takes the outcomes.
    sink: &'s mut Sink<'s>,
    /// Requests that wait for jobs, by their number.
    open: HashMap<usize, Open>,
}

impl<'s> Answers<'s> {
    /// No request is expected yet.
    pub(crate) fn new(sink: &'s mut Sink<'s>) -> Self {
        Self { sink, open: HashMap::new() }
    }

    /// Says that request `index`, whose prompt has so many tokens and lost so many, is made of `jobs`
    /// jobs; with none it is answered at once. Must
    /// come before the first of their parts.
    pub(crate) fn expect(
        &mut self,
        index: usize,
        want: &Want,
        prompt_tokens: [usize; 2],
        jobs: usize,
    ) -> ControlFlow<()> {
        let texts = want.continuations.clone();
        let open = Open { prompt_tokens, texts, parts: (0..jobs).map(|_| None).collect() };
        if jobs == 0 {
            return self.give(index, open.finish());
        }
        self.open.insert(index, open);
        ControlFlow::Continue(())
    }

    /// Takes what a job of request `index` brought, by its number among the request's, and answers
    /// the request if it was the last one. Ignored for a request that is not open.
    pub(crate) fn take(&mut self, index: usize, number: usize, part: Result<Part, Unscored>) -> ControlFlow<()> {
        let Some(open) = self.open.get_mut(&index) else { return ControlFlow::Continue(()) };
        if let Some(place) = open.parts.get_mut(number) {
            *place = Some(part);
        }
        let complete = open.parts.iter().all(Option::is_some).then(|| self.open.remove(&index)).flatten();
        complete.map_or(ControlFlow::Continue(()), |open| self.give(index, open.finish()))
    }

    /// Answers a request that was not expected, or is no longer.
    pub(crate) fn give(&mut self, index: usize, outcome: Outcome) -> ControlFlow<()> {
        (self.sink)(index, outcome)
    }
}
