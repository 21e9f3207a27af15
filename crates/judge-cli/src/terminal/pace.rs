//! A run over prompts or rows: how fast it goes, and that it stops at a signal.

use std::ops::ControlFlow;
use std::time::Instant;

use anyhow::Result;
use judge_core::{Outcome, runner::RunEvent};
use judge_data::Observer;

use crate::terminal::console::{counted, tell};
use crate::terminal::interrupt::Interrupts;
use crate::terminal::progress::Progress;

/// A run over rows that shows its pace and stops at a signal.
pub struct Watch {
    progress: Progress,
    stop: Interrupts,
    start: Instant,
    what: &'static str,
    unit: &'static str,
    quiet: bool,
    prompts: usize,
    tokens: usize,
    done: usize,
    rows: usize,
}

/// Says if there are rows from earlier starts; breaks off at a row, or while the model waits, if a signal came.
impl<Item> Observer<Item> for Watch {
    fn begin(&mut self, before: usize, rows: usize) {
        self.start(before, rows);
    }

    fn see(&mut self, event: &RunEvent<Item>) -> ControlFlow<()> {
        match event {
            // Judges that share a pass each see its tokens, so they are counted where passes are.
            RunEvent::Progress(progress) => self.passed(progress.passes_answered, progress.tokens),
            RunEvent::Item(_) => return self.row(),
            RunEvent::Waiting => return self.stop.flow(),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

impl Watch {
    /// For a run whose rows people call `unit`.
    ///
    /// # Errors
    /// If signals cannot be caught.
    pub fn new(what: &'static str, unit: &'static str, quiet: bool) -> Result<Self> {
        let (progress, start) = (Progress::new(what, 0, quiet), Instant::now());
        let (stop, prompts, tokens, done, rows) = (Interrupts::catch()?, 0, 0, 0, 0);
        Ok(Self { progress, stop, start, what, unit, quiet, prompts, tokens, done, rows })
    }

    /// From now on; of `rows` rows, `before` are done.
    pub fn start(&mut self, before: usize, rows: usize) {
        if before > 0 && !self.quiet {
            tell(format_args!("resuming: {before} of {rows} {} are done", self.unit));
        }
        (self.progress, self.start) = (Progress::new(self.what, rows - before, self.quiet), Instant::now());
        (self.prompts, self.tokens, self.done, self.rows) = (0, 0, before, rows);
    }

    /// One more prompt was read, which is a row; `Break` if a signal came.
    pub fn read(&mut self, outcome: &Outcome) -> ControlFlow<()> {
        self.passed(self.prompts + 1, self.tokens + tokens(outcome));
        self.row()
    }

    fn row(&mut self) -> ControlFlow<()> {
        self.done += 1;
        self.progress.inc(1);
        self.stop.flow()
    }

    /// So many prompts of so many tokens are passed in all.
    fn passed(&mut self, prompts: usize, tokens: usize) {
        self.progress.add(0, tokens - self.tokens);
        (self.prompts, self.tokens) = (prompts, tokens);
    }

    /// What is shown behind the counts from the next row on.
    pub fn note(&mut self, note: String) {
        self.progress.note(note);
    }

    /// The end of the work; `cancelled` if it was broken off. Says how fast it went, if anything was read.
    ///
    /// # Errors
    /// Which signal stopped the run, after how many rows.
    pub fn finish(self, cancelled: bool) -> Result<()> {
        self.progress.finish_and_clear();
        if !self.quiet && self.tokens > 0 {
            let (prompts, tokens, seconds) = (self.prompts, self.tokens, self.start.elapsed().as_secs_f64());
            let rate = tokens as f64 / seconds.max(1e-9);
            let prompts = counted(prompts, "prompt");
            tell(format_args!("{prompts} of {tokens} tokens in {seconds:.1} s: {rate:.0} tokens/s"));
        }
        self.stop.check(cancelled, self.done, self.rows, self.unit)
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
