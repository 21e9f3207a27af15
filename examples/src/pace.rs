//! A run over prompts or rows: how fast it goes, and that it stops at a signal.

use std::ops::ControlFlow;
use std::time::Instant;

use anyhow::Result;
use judge_core::{ItemResult, Outcome};

use crate::console::tell;
use crate::interrupt::Interrupts;
use crate::progress::Progress;

/// Progress that also counts tokens.
struct Pace {
    progress: Progress,
    quiet: bool,
    start: Instant,
    prompts: usize,
    tokens: usize,
}

impl Pace {
    /// For `total` items, from now on; silent if `quiet`.
    fn new(what: &'static str, total: usize, quiet: bool) -> Self {
        Self { progress: Progress::new(what, total, quiet), quiet, start: Instant::now(), prompts: 0, tokens: 0 }
    }

    /// One more item is done, with these passes.
    fn done<'o>(&mut self, outcomes: impl IntoIterator<Item = &'o Outcome>) {
        let before = self.tokens;
        for outcome in outcomes {
            self.prompts += 1;
            self.tokens += tokens(outcome);
        }
        self.progress.add(1, self.tokens - before);
    }

    /// What is shown behind the counts from the next item on.
    pub fn note(&mut self, note: String) {
        self.progress.note(note);
    }

    /// Takes the progress away and says on stderr how fast it went, if anything was read.
    fn finish(self) {
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

/// A run over rows that shows its pace and stops at a signal.
pub struct Watch {
    pace: Pace,
    stop: Interrupts,
    done: usize,
    rows: usize,
}

impl Watch {
    /// For a run of `rows` rows of which `before` are done, from now on.
    ///
    /// # Errors
    /// If signals cannot be caught.
    pub fn new(what: &'static str, before: usize, rows: usize, quiet: bool) -> Result<Self> {
        Ok(Self { stop: Interrupts::catch()?, pace: Pace::new(what, rows - before, quiet), done: before, rows })
    }

    /// One more row was judged; `Break` if a signal came.
    pub fn see<Item>(&mut self, result: &ItemResult<Item>) -> ControlFlow<()> {
        self.passed(result.outcomes.iter().flatten().flatten())
    }

    /// One more row is done, with these passes; `Break` if a signal came.
    pub fn passed<'o>(&mut self, outcomes: impl IntoIterator<Item = &'o Outcome>) -> ControlFlow<()> {
        self.done += 1;
        self.pace.done(outcomes);
        if self.stop.interrupted().is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// What is shown behind the counts from the next row on.
    pub fn note(&mut self, note: String) {
        self.pace.note(note);
    }

    /// The end of the work; `cancelled` if it was broken off.
    ///
    /// # Errors
    /// Which signal stopped the run, after how many `what`.
    pub fn finish(self, cancelled: bool, what: &'static str) -> Result<()> {
        self.pace.finish();
        self.stop.check(cancelled, self.done, self.rows, what)
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
