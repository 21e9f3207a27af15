//! How far a run is: one line that is redrawn in a terminal, and now and then a line of its own in a log.

use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::terminal::console::tell;

/// How long a step of [`Progress::tell_of_slow_steps`] runs before anybody is told of it.
const PATIENCE: Duration = Duration::from_secs(2);

/// Between two drawings in a terminal.
const REDRAW: Duration = Duration::from_millis(100);

/// Progress on stderr. [`Progress::finish_and_clear`], or a drop, takes the terminal's line away.
///
/// Where stderr is no terminal, lines come as `LogSchedule` says. Nothing is shown of a run of a single step, nor if it is to be quiet.
#[derive(Debug)]
pub struct Progress {
    what: &'static str,
    total: usize,
    quiet: bool,
    start: Instant,
    shown: Shown,
    state: Mutex<State>,
}

#[derive(Debug)]
enum Shown {
    Nowhere,
    Terminal(ProgressBar),
    Log,
}

#[derive(Debug, Default)]
struct State {
    done: usize,
    tokens: usize,
    drawn: Duration,
    log: LogSchedule,
    note: String,
}

impl Progress {
    /// Of `total` steps, from now on; `what` is a participle, such as `reading`.
    #[must_use]
    pub fn new(what: &'static str, total: usize, quiet: bool) -> Self {
        let progress = Self {
            what,
            total,
            quiet,
            start: Instant::now(),
            shown: shown(total, quiet),
            state: Mutex::new(State::default()),
        };
        if let Shown::Terminal(bar) = &progress.shown {
            bar.set_message(line(what, 0, total, 0, Duration::ZERO));
        }
        progress
    }

    /// So many more steps are done.
    pub fn inc(&self, steps: usize) {
        self.add(steps, 0);
    }

    /// So many more steps are done, which took so many tokens.
    pub fn add(&self, steps: usize, tokens: usize) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.done += steps;
        state.tokens += tokens;
        let elapsed = self.start.elapsed();
        match &self.shown {
            Shown::Nowhere => {}
            Shown::Terminal(bar) => {
                if elapsed - state.drawn >= REDRAW || state.done == self.total {
                    state.drawn = elapsed;
                    bar.set_message(self.line(&state, elapsed));
                }
            }
            Shown::Log => {
                let done = state.done;
                if state.log.is_due(done, self.total, elapsed) {
                    tell(self.line(&state, elapsed));
                }
            }
        }
    }

    /// Takes the line away. What a log has stays.
    pub fn finish_and_clear(&self) {
        if let Shown::Terminal(bar) = &self.shown {
            bar.finish_and_clear();
        }
    }

    /// What is shown behind the counts from the next step on, such as what the steps have cost.
    pub fn note(&self, note: String) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).note = note;
    }

    /// Does `work`, which names each of its steps as it begins. One that runs for two seconds gets a line of its own, while it runs; this
    /// holds of a run of a single step too.
    pub fn tell_of_slow_steps<T>(&self, work: impl FnOnce(&dyn Fn(String)) -> T) -> T {
        let (sender, steps) = channel();
        thread::scope(|scope| {
            scope.spawn(move || tell_of_slow(&steps, PATIENCE, |step| self.say(&step)));
            // The sender goes with the work, and with it the thread.
            work(&move |step| {
                // The thread ends after the sender alone.
                let _ = sender.send(step);
            })
        })
    }

    /// A line of its own, which stays.
    fn say(&self, line: &str) {
        match &self.shown {
            _ if self.quiet => {}
            Shown::Terminal(bar) => bar.println(line),
            Shown::Nowhere | Shown::Log => tell(line),
        }
    }

    fn line(&self, state: &State, elapsed: Duration) -> String {
        let line = line(self.what, state.done, self.total, state.tokens, elapsed);
        if state.note.is_empty() { line } else { format!("{line}; {}", state.note) }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.finish_and_clear();
    }
}

/// Says once of each step that no other follows it in time.
fn tell_of_slow(steps: &Receiver<String>, patience: Duration, mut say: impl FnMut(String)) {
    let mut current = None;
    loop {
        match steps.recv_timeout(patience) {
            Ok(step) => current = Some(step),
            Err(RecvTimeoutError::Timeout) => current.take().into_iter().for_each(&mut say),
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

fn shown(total: usize, quiet: bool) -> Shown {
    if quiet || total <= 1 {
        return Shown::Nowhere;
    }
    let bar = ProgressBar::new(total as u64);
    if bar.is_hidden() {
        return Shown::Log;
    }
    // Of all that a template may hold, `wide_msg` alone is cut at the terminal's width: a line that wraps cannot be redrawn.
    match ProgressStyle::with_template("{wide_msg}") {
        Ok(style) => Shown::Terminal(bar.with_style(style)),
        Err(_) => Shown::Log,
    }
}

/// When a log gets a line: 30 seconds after the last one, if 5 % of the run were done in them; after ten minutes in any case. So a run
/// of half a minute gets none, a night of steady work some twenty to sixty, and a run that hangs is told from one that is slow.
#[derive(Debug, Default)]
struct LogSchedule {
    at: Duration,
    done: usize,
}

impl LogSchedule {
    /// Whether a line is due now; if so, the next is counted from here. The end is no progress: what ends says so itself.
    fn is_due(&mut self, done: usize, total: usize, elapsed: Duration) -> bool {
        let silent = elapsed.saturating_sub(self.at);
        let far = (done - self.done) * 20 >= total && silent >= Duration::from_secs(30);
        let due = done < total && (far || silent >= Duration::from_secs(600));
        if due {
            *self = Self { at: elapsed, done };
        }
        due
    }
}

/// `reading 143/1600 (4.9/s, 2500 tokens/s, 4m 57s left)`; what is not known yet is a dash.
fn line(what: &str, done: usize, total: usize, tokens: usize, elapsed: Duration) -> String {
    let seconds = elapsed.as_secs_f64();
    if done == 0 || seconds <= 0.0 {
        return format!("{what} {done}/{total} (-/s, - left)");
    }
    let rate = done as f64 / seconds;
    let left = Duration::from_secs((total.saturating_sub(done) as f64 / rate).round() as u64);
    let tokens = if tokens > 0 { format!("{} tokens/s, ", two_digits(tokens as f64 / seconds)) } else { String::new() };
    format!("{what} {done}/{total} ({}/s, {tokens}{} left)", two_digits(rate), humantime::format_duration(left))
}

/// A positive number, rounded to two significant digits: `4.9`, `0.31`, `43000`.
#[must_use]
pub fn two_digits(x: f64) -> String {
    if !(x.is_finite() && x > 0.0) {
        return "0".to_owned();
    }
    // Rounding first: 9.96 is 10, not 10.0.
    let exponent = |x: f64| x.log10().floor() as i32;
    let unit = 10_f64.powi(exponent(x) - 1);
    let rounded = (x / unit).round() * unit;
    let decimals = (1 - exponent(rounded * (1.0 + 1e-9))).max(0) as usize;
    format!("{rounded:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_two_significant_digits() {
        for (x, text) in [
            (4.9497, "4.9"),
            (9.96, "10"),
            (0.0996, "0.10"),
            (99.6, "100"),
            (43058.0, "43000"),
            (1.0, "1.0"),
            (100.0, "100"),
            (0.001, "0.0010"),
            (12.34, "12"),
            (0.0, "0"),
            (f64::NAN, "0"),
        ] {
            assert_eq!(two_digits(x), text, "{x}");
        }
    }

    #[test]
    fn a_line_says_how_far_how_fast_and_how_long_still() {
        let at = |done, tokens, seconds| line("reading", done, 320, tokens, Duration::from_secs(seconds));
        assert_eq!(at(0, 0, 0), "reading 0/320 (-/s, - left)");
        assert_eq!(at(0, 0, 9), "reading 0/320 (-/s, - left)");
        assert_eq!(at(80, 0, 16), "reading 80/320 (5.0/s, 48s left)");
        assert_eq!(at(10, 5_000, 100), "reading 10/320 (0.10/s, 50 tokens/s, 51m 40s left)");
        assert_eq!(at(320, 0, 64), "reading 320/320 (5.0/s, 0s left)");
    }

    #[test]
    fn a_log_gets_a_line_when_both_time_and_work_have_passed() {
        let mut log = LogSchedule::default();
        let mut due = |done, seconds| log.is_due(done, 1_000, Duration::from_secs(seconds));
        assert!(!due(900, 29), "too soon");
        assert!(due(950, 30));
        assert!(!due(960, 120), "too little done since");
        assert!(!due(970, 629));
        assert!(due(980, 630), "ten minutes of silence are enough");
        assert!(!due(1_000, 9_999), "the end is said by the run itself");
        let (mut slow, mut lines) = (LogSchedule::default(), 0);
        // ten hours of steady work
        for done in 1..=36_000 {
            lines += usize::from(slow.is_due(done, 36_000, Duration::from_secs(done as u64)));
        }
        assert_eq!(lines, 59);
    }

    #[test]
    fn a_slow_step_is_told_of_once_and_a_quick_one_never() {
        let (sender, steps) = channel();
        let (said, heard) = channel();
        let teller = thread::spawn(move || {
            tell_of_slow(&steps, Duration::from_millis(5), |step| said.send(step).expect("the test listens"));
        });
        for step in ["quick", "slow"] {
            sender.send(step.to_owned()).expect("the thread runs");
        }
        let first = heard.recv().expect("what is slow is told");
        // A machine that is busy may make the first step slow too.
        let slow = if first == "quick" { heard.recv().expect("so is the second") } else { first };
        assert_eq!(slow, "slow");
        // Nothing follows it for several times its patience.
        assert!(heard.recv_timeout(Duration::from_millis(50)).is_err());
        drop(sender);
        teller.join().expect("it ends with its steps");
        assert!(heard.recv().is_err());
    }

    #[test]
    fn a_single_step_shows_nothing() {
        assert!(matches!(shown(1, false), Shown::Nowhere));
        assert!(matches!(shown(0, false), Shown::Nowhere));
        assert!(matches!(shown(100, true), Shown::Nowhere));
    }
}
