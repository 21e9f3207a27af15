//! What an engine is asked for: passes over prompts, and over the tokens that are written behind them.

use judge_core::TokenId;

use super::jobs::Brought;
use super::next_token::NextLogProbs;
use crate::Error;

/// The passes of some jobs that run through the same blocks.
pub(crate) trait Passes {
    /// Reads some prompts that have not been read, those that fit beside the texts that are being written; `false` if none is left or fits.
    fn prefill(&mut self, take: &mut Take<'_>) -> Result<bool, Error>;

    /// Reads what follows the last token of texts that are being written; `false` if there are none.
    fn step(&mut self, take: &mut Take<'_>) -> Result<bool, Error>;
}

/// Takes what a pass brought of some of its sequences, and says of each which token is written behind it; `None`: the sequence is over.
pub(crate) type Take<'t> = dyn FnMut(Vec<Found<'_>>) -> Result<Vec<Option<TokenId>>, Error> + 't;

/// What a pass brought of one sequence, at the end of its prompt or behind a token that was written.
pub(crate) struct Found<'p> {
    /// Which of the jobs.
    pub(crate) job: usize,
    pub(crate) brought: Brought,
    pub(crate) next: Next<'p>,
}

/// What the model says of the token that follows.
pub(crate) enum Next<'p> {
    /// Nothing, where nobody asks.
    Unknown,
    /// The products with the head over the whole vocabulary, `[d_vocab]`, without the soft-cap: wherever text is written.
    Logits(&'p mut [f32]),
    /// The log-probabilities of the tokens that are asked for, NaN where a logit is not finite.
    Some(NextOfSome),
}

/// Log-probabilities of some tokens that may come next.
pub(crate) struct NextOfSome(pub(crate) Vec<(TokenId, f32)>);

impl NextLogProbs for NextOfSome {
    /// NaN, which is refused with the reading, where the logits are not finite or the token is not among these.
    fn log_prob(&self, token: TokenId) -> f64 {
        self.0.iter().find(|(known, _)| *known == token).map_or(f64::NAN, |&(_, log_prob)| f64::from(log_prob))
    }
}
