//! How fast a run over prompts goes.

use std::time::Instant;

use judge_core::Outcome;

use crate::console::tell;
use crate::progress::Progress;

/// Progress that also counts tokens.
pub struct Pace {
    progress: Progress,
    quiet: bool,
    start: Instant,
    prompts: usize,
    tokens: usize,
}

impl Pace {
    /// For `total` items, from now on; silent if `quiet`.
    #[must_use]
    pub fn new(what: &'static str, total: usize, quiet: bool) -> Self {
        Self { progress: Progress::new(what, total, quiet), quiet, start: Instant::now(), prompts: 0, tokens: 0 }
    }

    /// One more item is done, with these passes.
    pub fn done<'o>(&mut self, outcomes: impl IntoIterator<Item = &'o Outcome>) {
        let before = self.tokens;
        for outcome in outcomes {
            self.prompts += 1;
            self.tokens += tokens(outcome);
        }
        self.progress.add(1, self.tokens - before);
    }

    /// Takes the progress away and says on stderr how fast it went, if anything was read.
    pub fn finish(self) {
        self.progress.finish_and_clear();
        if !self.quiet && self.tokens > 0 {
            let seconds = self.start.elapsed().as_secs_f64();
            let rate = self.tokens as f64 / seconds.max(1e-9);
            tell(format_args!(
                "{} prompts of {} tokens in {seconds:.1} s: {rate:.0} tokens/s",
                self.prompts, self.tokens
            ));
        }
    }
}

/// Tokens read and written.
fn tokens(outcome: &Outcome) -> usize {
    match outcome {
        Outcome::Read(reading) => {
            let written = reading.generated.as_ref().and_then(|generated| generated.n_tokens);
            // A service that does not count them is not fast or slow by them.
            reading.prompt_tokens.unwrap_or_default() + written.unwrap_or_default()
        }
        Outcome::Unscored(_) => 0,
    }
}
