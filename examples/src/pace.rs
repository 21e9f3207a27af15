//! How fast a run over prompts goes.

use std::time::Instant;

use indicatif::ProgressBar;
use judge_core::Outcome;

use crate::console::progress;

/// A progress bar that also counts tokens.
pub struct Pace {
    bar: ProgressBar,
    what: &'static str,
    quiet: bool,
    start: Instant,
    prompts: usize,
    tokens: usize,
}

impl Pace {
    /// For `total` items, from now on; silent if `quiet`.
    #[must_use]
    pub fn new(what: &'static str, total: usize, quiet: bool) -> Self {
        Self { bar: progress(what, total, quiet), what, quiet, start: Instant::now(), prompts: 0, tokens: 0 }
    }

    /// One more item is done, with these passes.
    pub fn done(&mut self, outcomes: &[Outcome]) {
        for outcome in outcomes {
            self.prompts += 1;
            if let Outcome::Read(reading) = outcome {
                let written = reading.generated.as_ref().map_or(0, |generated| generated.tokens.len());
                self.tokens += reading.prompt_tokens + written;
            }
        }
        self.bar.set_message(format!("{}, {:.0} tokens/s,", self.what, self.rate()));
        self.bar.inc(1);
    }

    fn rate(&self) -> f64 {
        self.tokens as f64 / self.start.elapsed().as_secs_f64().max(1e-9)
    }

    /// Takes the bar away and says on stderr how fast it went.
    pub fn finish(self) {
        self.bar.finish_and_clear();
        if !self.quiet && self.prompts > 0 {
            let (seconds, rate) = (self.start.elapsed().as_secs_f64(), self.rate());
            eprintln!("{} prompts of {} tokens in {seconds:.1} s: {rate:.0} tokens/s", self.prompts, self.tokens);
        }
    }
}
