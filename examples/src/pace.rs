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
    pub fn done(&mut self, outcomes: &[Outcome]) {
        let tokens = outcomes.iter().map(tokens).sum();
        self.prompts += outcomes.len();
        self.tokens += tokens;
        self.progress.add(1, tokens);
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
            let written = reading.generated.as_ref().map_or(0, |generated| generated.tokens.len());
            reading.prompt_tokens + written
        }
        Outcome::Unscored(_) => 0,
    }
}
