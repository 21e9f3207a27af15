//! Puts together the answer to a request from what its sequences bring.

use std::collections::HashMap;
use std::ops::ControlFlow;

use judge_core::{ContinuationLogProbs, Outcome, Reading, TokenLogProbs, Unscored, Want};

/// Takes answers by the number of their request.
pub(crate) type Sink<'a> = dyn FnMut(usize, Outcome) -> ControlFlow<()> + 'a;

/// What one sequence has to say of its request.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    /// What was read of it as the prompt; empty if it is none.
    pub(crate) reading: Reading,
    /// Log-probabilities by the number of the continuation.
    pub(crate) continuations: Vec<(usize, TokenLogProbs)>,
}

/// A request of which not all sequences have answered.
struct Open {
    prompt_tokens: usize,
    /// The continuations asked for.
    texts: Vec<String>,
    /// By the number of the job.
    parts: Vec<Option<Result<Part, Unscored>>>,
}

impl Open {
    /// A request of so many jobs.
    fn new(want: &Want, prompt_tokens: usize, jobs: usize) -> Self {
        Self { prompt_tokens, texts: want.continuations.clone(), parts: (0..jobs).map(|_| None).collect() }
    }

    /// Takes what a job brought, by its number among the request's.
    fn take(&mut self, number: usize, part: Result<Part, Unscored>) {
        if let Some(place) = self.parts.get_mut(number) {
            *place = Some(part);
        }
    }

    fn is_complete(&self) -> bool {
        self.parts.iter().all(Option::is_some)
    }

    /// The answer. If several jobs failed it is the first of them that is told, in the order of their numbers.
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
            // The prompt's own sequence, where there is one, comes first; the others read nothing but continuations.
            if answer.prompt_tokens.is_none() {
                answer = part.reading;
            }
        }
        answer.prompt_tokens = Some(self.prompt_tokens);
        let texts = self.texts.into_iter().zip(continuations);
        answer.continuations =
            texts.filter_map(|(text, tokens)| tokens.map(|tokens| ContinuationLogProbs { text, tokens })).collect();
        Outcome::Read(answer)
    }
}

/// The requests of a run that are not answered yet, and who takes the answers.
pub(crate) struct Answers<'s> {
    sink: &'s mut Sink<'s>,
    open: HashMap<usize, Open>,
}

impl<'s> Answers<'s> {
    pub(crate) fn new(sink: &'s mut Sink<'s>) -> Self {
        Self { sink, open: HashMap::new() }
    }

    /// Says of how many jobs a request is made; with none it is answered at once.
    pub(crate) fn expect(&mut self, index: usize, want: &Want, prompt_tokens: usize, jobs: usize) -> ControlFlow<()> {
        let open = Open::new(want, prompt_tokens, jobs);
        if open.is_complete() {
            return self.give(index, open.finish());
        }
        self.open.insert(index, open);
        ControlFlow::Continue(())
    }

    /// Takes what a job of request `index` brought, by its number among the request's, and answers the request if it was the last one.
    pub(crate) fn take(&mut self, index: usize, number: usize, part: Result<Part, Unscored>) -> ControlFlow<()> {
        let Some(open) = self.open.get_mut(&index) else { return ControlFlow::Continue(()) };
        open.take(number, part);
        if !open.is_complete() {
            return ControlFlow::Continue(());
        }
        match self.open.remove(&index) {
            Some(open) => self.give(index, open.finish()),
            None => ControlFlow::Continue(()),
        }
    }

    /// Answers a request.
    pub(crate) fn give(&mut self, index: usize, outcome: Outcome) -> ControlFlow<()> {
        (self.sink)(index, outcome)
    }
}
