//! Judges for tests, each two functions.

use judge_core::{Judge, JudgeError, Request, Rounds, Score};

struct Asking<A, D> {
    name: &'static str,
    ask: A,
    decide: D,
}

impl<I, A, D> Judge<I> for Asking<A, D>
where
    A: Fn(&I) -> Result<Vec<Request>, JudgeError> + Send + Sync,
    D: Fn(&I, &Rounds<'_>) -> Result<Score, JudgeError> + Send + Sync,
{
    fn name(&self) -> &str {
        self.name
    }

    fn ask(&self, item: &I) -> Result<Vec<Request>, JudgeError> {
        (self.ask)(item)
    }

    fn decide(&self, item: &I, rounds: &Rounds<'_>) -> Result<Score, JudgeError> {
        (self.decide)(item, rounds)
    }
}

/// A judge that asks and decides as these functions do.
pub(crate) fn judge<I>(
    name: &'static str,
    ask: impl Fn(&I) -> Result<Vec<Request>, JudgeError> + Send + Sync,
    decide: impl Fn(&I, &Rounds<'_>) -> Result<Score, JudgeError> + Send + Sync,
) -> impl Judge<I> {
    Asking { name, ask, decide }
}
