//! How far a run is: one line that is redrawn in a terminal, and now and then a line of its own in a log.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::terminal::console::{plain, tell, two_digits};

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
    /// When the first steps were done, and how many they were.
    first: Option<(Duration, usize)>,
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
            bar.set_message(line(what, 0, total, 0, Duration::ZERO, false));
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
        if state.done > 0 && state.first.is_none() {
            state.first = Some((elapsed, state.done));
        }
        match &self.shown {
            Shown::Nowhere => {}
            Shown::Terminal(bar) => {
                if elapsed - state.drawn >= REDRAW || state.done == self.total {
                    state.drawn = elapsed;
                    bar.set_message(self.line(&state, elapsed));
                }
            }
            Shown::Log => {
                let (done, is_known) = (state.done, is_steady(state.done, state.first, elapsed));
                if state.log.is_due(done, self.total, elapsed, is_known) {
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
            Shown::Terminal(bar) => bar.println(plain(line)),
            Shown::Nowhere | Shown::Log => tell(line),
        }
    }

    fn line(&self, state: &State, elapsed: Duration) -> String {
        let is_steady = is_steady(state.done, state.first, elapsed);
        let mut line = line(self.what, state.done, self.total, state.tokens, elapsed, is_steady);
        let shards = SHARDS.each_ref().map(|rows| rows.load(Ordering::Relaxed));
        if let Some(left) = whole_left(shards, state.done, self.total, elapsed).filter(|_| is_steady) {
            line += &format!("; all shards: {left} left");
        }
        if state.note.is_empty() { line } else { format!("{line}; {}", state.note) }
    }
}

/// Whether steps are done at a rate from which the end can be told. Rows of a batch are done together, long after they were begun: as long
/// as the rate since the start and the one since the first steps differ by more than half, neither says how long the others take.
fn is_steady(done: usize, first: Option<(Duration, usize)>, elapsed: Duration) -> bool {
    let Some((at, steps)) = first else { return false };
    let since = elapsed.saturating_sub(at).as_secs_f64();
    let [whole, later] = [done as f64 / elapsed.as_secs_f64(), (done - steps) as f64 / since];
    since > 0.0 && done - steps >= 2 && (whole / 1.5..=whole * 1.5).contains(&later)
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

/// Rows of the shard that this process is at, and of those behind it; 0 where there are no shards.
static SHARDS: [AtomicUsize; 2] = [AtomicUsize::new(0), AtomicUsize::new(0)];

/// From now on progress is that of a part of so many rows, which so many others follow, and tells how long all of them will take too.
pub fn begin_part(rows: usize, others: usize) {
    SHARDS.iter().zip([rows, others]).for_each(|(known, rows)| known.store(rows, Ordering::Relaxed));
}

/// How long a part and what follows it will take, if anything does, of `total` steps of which `done` took so long.
fn whole_left(
    [rows, others]: [usize; 2],
    done: usize,
    total: usize,
    elapsed: Duration,
) -> Option<humantime::FormattedDuration> {
    if rows == 0 || others == 0 || done == 0 {
        return None;
    }
    // A row may be several steps.
    let steps = total as f64 * (rows + others) as f64 / rows as f64;
    Some(in_seconds(elapsed.as_secs_f64() / done as f64 * (steps - done as f64)))
}

fn in_seconds(seconds: f64) -> humantime::FormattedDuration {
    humantime::format_duration(Duration::from_secs(seconds.round() as u64))
}

/// When a log gets a line: after five seconds, as soon as the rate tells the end, if a minute or more is left;
/// then 30 seconds after the last one, if 5 % of the run were done in them; after ten minutes in any case. So a run
/// of half a minute gets none, a night of steady work some twenty to sixty, and a run that hangs is told from one that is slow.
#[derive(Debug, Default)]
struct LogSchedule {
    at: Duration,
    done: usize,
}

impl LogSchedule {
    /// Whether a line is due now; if so, the next is counted from here. `is_known` says whether the rate tells the end. The end is no progress: what ends says so itself.
    fn is_due(&mut self, done: usize, total: usize, elapsed: Duration, is_known: bool) -> bool {
        let silent = elapsed.saturating_sub(self.at);
        let far = (done - self.done) * 20 >= total && silent >= Duration::from_secs(30);
        // Whoever started a night of work wants to know it before the night.
        let left = elapsed.as_secs_f64() / done.max(1) as f64 * total.saturating_sub(done) as f64;
        let early = self.at.is_zero() && is_known && elapsed >= Duration::from_secs(5) && left >= 60.0;
        let due = done < total && (early || far || silent >= Duration::from_secs(600));
        if due {
            *self = Self { at: elapsed, done };
        }
        due
    }
}

/// `reading 143/1600 (4.9/s, 2500 tokens/s, 4m 57s left)`; what is not known yet is a dash, such as the end of a run that is not steady.
fn line(what: &str, done: usize, total: usize, tokens: usize, elapsed: Duration, is_steady: bool) -> String {
    let seconds = elapsed.as_secs_f64();
    if done == 0 || seconds <= 0.0 {
        return format!("{what} {done}/{total} (-/s, - left)");
    }
    let rate = done as f64 / seconds;
    let left = in_seconds(total.saturating_sub(done) as f64 / rate);
    let tokens = if tokens > 0 { format!("{} tokens/s, ", two_digits(tokens as f64 / seconds)) } else { String::new() };
    let left = if is_steady { left.to_string() } else { "-".to_owned() };
    format!("{what} {done}/{total} ({}/s, {tokens}{left} left)", two_digits(rate))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_far_how_fast_and_how_long_still() {
        let at = |done, tokens, seconds| line("reading", done, 320, tokens, Duration::from_secs(seconds), true);
        assert_eq!(at(0, 0, 0), "reading 0/320 (-/s, - left)");
        assert_eq!(at(0, 0, 9), "reading 0/320 (-/s, - left)");
        assert_eq!(at(80, 0, 16), "reading 80/320 (5.0/s, 48s left)");
        assert_eq!(at(10, 5_000, 100), "reading 10/320 (0.10/s, 50 tokens/s, 51m 40s left)");
        assert_eq!(at(320, 0, 64), "reading 320/320 (5.0/s, 0s left)");
        let begun = line("reading", 1, 30, 0, Duration::from_secs(280), false);
        assert_eq!(begun, "reading 1/30 (0.0036/s, - left)");
    }

    #[test]
    fn the_end_is_told_once_the_rate_is_steady() {
        // One row a second from the start: from the third on.
        let of_rows =
            |done: usize| is_steady(done, Some((Duration::from_secs(1), 1)), Duration::from_secs(done as u64));
        assert_eq!((1..=5).map(of_rows).collect::<Vec<_>>(), [false, false, true, true, true]);
        // Ten rows at once every hundred seconds, the first of which is seen a moment before the others.
        let first = Some((Duration::from_secs(100), 1));
        let of_batches = |batch: u64| is_steady(10 * batch as usize, first, Duration::from_secs(100 * batch + 1));
        assert_eq!((1..=5).map(of_batches).collect::<Vec<_>>(), [false, false, true, true, true]);
        assert!(!is_steady(0, None, Duration::from_secs(9)));
    }

    #[test]
    fn a_log_gets_a_line_when_both_time_and_work_have_passed() {
        let mut log = LogSchedule::default();
        let mut due = |done, seconds| log.is_due(done, 1_000, Duration::from_secs(seconds), true);
        assert!(!due(900, 29), "too soon");
        assert!(due(950, 30));
        assert!(!due(960, 120), "too little done since");
        assert!(!due(970, 629));
        assert!(due(980, 630), "ten minutes of silence are enough");
        assert!(!due(1_000, 9_999), "the end is said by the run itself");
        let (mut slow, mut lines) = (LogSchedule::default(), 0);
        // ten hours of steady work
        for done in 1..=36_000 {
            lines += usize::from(slow.is_due(done, 36_000, Duration::from_secs(done as u64), done > 2));
        }
        assert_eq!(lines, 60, "one of them after five seconds");
    }

    #[test]
    fn a_log_says_early_how_long_a_long_run_takes_and_a_short_one_needs_no_line() {
        let due =
            |done, total, seconds| LogSchedule::default().is_due(done, total, Duration::from_secs(seconds), done > 0);
        assert!(due(1, 1_000_000, 5), "before it has cost an hour");
        assert!(!due(1, 1_000_000, 4) && !due(0, 1_000_000, 20), "nothing is known yet");
        assert!(!due(100, 1_000, 6), "54 seconds are left");
    }

    #[test]
    fn a_shard_says_how_long_all_take() {
        let left = |rows, others, done, total| {
            whole_left([rows, others], done, total, Duration::from_secs(10)).map(|left| left.to_string())
        };
        assert_eq!(left(100, 900, 10, 100), Some("16m 30s".to_owned()));
        assert_eq!(left(100, 900, 50, 500), Some("16m 30s".to_owned()), "five labels of each row");
        assert_eq!(left(100, 0, 10, 100), None, "it is the last");
        assert_eq!(left(0, 0, 10, 100), None);
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
