//! What an engine is asked for: passes over prompts, and over the tokens that are written behind
//! them.
//!
//! The seam between `reading/driver.rs`, which drives, and the engines, which implement [`Passes`]
//! (`engine/packed/run.rs`, `engine/packed/encoder_passes.rs`, `engine/tensor/run.rs`). An engine
//! decides what shares a pass and what fits in memory; the driver decides which token comes next.

use judge_core::request::TokenId;

use super::jobs::Brought;
use super::next_token::FoundNext;
use crate::Error;

/// The passes of one group: jobs that run through the same blocks with the same rotations. The
/// driver calls both methods until both return `false`.
pub(crate) trait Passes {
    /// Runs one pass over prompts that have not been read, as many as fit beside the texts that are
    /// being written. `false` if none is left or none fits now. A pass may end in the middle of
    /// prompts, or compute again what was dropped of a text, and then has nothing to hand to `take`.
    ///
    /// # Errors
    /// Those of the device, and those of `take`.
    fn prefill(&mut self, take: &mut Take<'_>) -> Result<bool, Error>;

    /// Feeds the last token of the texts that are being written and have room, and hands over what follows it.
    /// `false` if no text is being written.
    ///
    /// # Errors
    /// Those of the device, and those of `take`.
    fn step(&mut self, take: &mut Take<'_>) -> Result<bool, Error>;
}

/// Takes what a pass brought of some of its sequences. Returns for each, in their order, the token
/// that is written behind it; `None`: the sequence is over, and nothing of it is needed any longer.
/// Of a text that goes on it is the engine's own token where the engine brought one.
pub(crate) type Take<'t> = dyn FnMut(Vec<Found<'_>>) -> Result<Vec<Option<TokenId>>, Error> + 't;

/// What a pass brought of one sequence, at the end of its prompt or behind a token that was
/// written.
pub(crate) struct Found<'p> {
    /// Place of the job in the group.
    pub(crate) job: usize,
    /// States, signals and scores.
    pub(crate) brought: Brought,
    /// What the model says of the token that follows.
    pub(crate) next: Next<'p>,
}

/// What the model says of the token that follows.
pub(crate) enum Next<'p> {
    /// Nothing, where nobody asks.
    Unknown,
    /// The products with the head over the whole vocabulary, `[d_vocab]`, without the soft-cap.
    /// Required wherever text is drawn at random; an engine may give it elsewhere too.
    Logits(&'p mut [f32]),
    /// The log-probabilities of the tokens of `Job::next_tokens`, and where text is written greedily
    /// the token that follows. For engines that score on the device and fetch these alone.
    #[cfg_attr(not(any(test, feature = "tensor")), expect(dead_code, reason = "made by the engine on Burn"))]
    Found(FoundNext),
}
