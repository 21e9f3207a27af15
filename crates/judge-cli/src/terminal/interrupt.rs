//! SIGINT and SIGTERM as a request to stop between two rows.

use std::fmt;
use std::io;
use std::ops::ControlFlow;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anyhow::{Context, Result};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// What asks a program to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGINT: Ctrl-C.
    Interrupt,
    /// SIGTERM: `kill`, a scheduler, a container that is stopped.
    Terminate,
}

impl Signal {
    /// What a shell reports of a program that the signal ended: 130 or 143.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Interrupt => 130,
            Self::Terminate => 143,
        }
    }
}

/// The first signal since [`Interrupts::catch`]; 0 if there was none.
static CAUGHT: AtomicUsize = AtomicUsize::new(0);
/// Whether a signal ends the program at once. Signal handlers cannot be taken away again, so this switches them.
static AT_ONCE: AtomicBool = AtomicBool::new(true);
static HANDLERS: OnceLock<Result<(), i32>> = OnceLock::new();

/// While it lives, the first SIGINT or SIGTERM is only noted, for a run loop to ask for between two rows; a second one ends the program
/// at once. Before and after, signals do what they always do.
///
/// Have one at a time, around the loop that asks: where nobody asks, the first Ctrl-C would be lost.
#[derive(Debug)]
pub struct Interrupts(());

impl Interrupts {
    /// From here on.
    ///
    /// # Errors
    /// If the system refuses the handlers.
    pub fn catch() -> Result<Self> {
        // Before the handlers are there: whoever sees one may send a signal and rely on it.
        CAUGHT.store(0, Ordering::SeqCst);
        AT_ONCE.store(false, Ordering::SeqCst);
        let stop = Self(());
        HANDLERS
            .get_or_init(|| handlers().map_err(|error| error.raw_os_error().unwrap_or_default()))
            .map_err(io::Error::from_raw_os_error)
            .context("cannot handle SIGINT and SIGTERM")?;
        Ok(stop)
    }

    /// What a run that was `cancelled` between two rows ends with: [`Stopped`]. One that ran to its end is not touched by a late signal.
    ///
    /// # Errors
    /// [`Stopped`], for a run whose same command resumes.
    pub fn check(&self, cancelled: bool, done: usize, total: usize, what: &'static str) -> Result<()> {
        match self.interrupted() {
            Some(signal) if cancelled => Err(Stopped { signal, done, total, what, resumes: true }.into()),
            _ => Ok(()),
        }
    }

    /// `Break` if a signal asks to stop.
    pub fn flow(&self) -> ControlFlow<()> {
        if self.interrupted().is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// The signal that asks to stop, if one came.
    #[must_use]
    pub fn interrupted(&self) -> Option<Signal> {
        match CAUGHT.load(Ordering::Relaxed) {
            0 => None,
            number if number == SIGINT as usize => Some(Signal::Interrupt),
            _ => Some(Signal::Terminate),
        }
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        AT_ONCE.store(true, Ordering::SeqCst);
    }
}

/// Handlers of one signal run in this order: the first asks what the second sets.
fn handlers() -> io::Result<()> {
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_default(signal, &AT_ONCE)?;
        flag::register(signal, &AT_ONCE)?;
        flag::register_usize(signal, &CAUGHT, signal as usize)?;
    }
    Ok(())
}

/// A run that a signal stopped between two rows: an error that [`exit`](crate::terminal::console::exit) makes the signal's exit code of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// What stopped it.
    pub signal: Signal,
    /// How many are done, those of earlier starts included.
    pub done: usize,
    /// Of how many.
    pub total: usize,
    /// What is counted: `rows`.
    pub what: &'static str,
    /// Whether the same command does the rest.
    pub resumes: bool,
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { done, total, what, resumes, .. } = self;
        let then = if *resumes { "the same command resumes" } else { "nothing was written" };
        write!(f, "stopped after {done} of {total} {what}; {then}")
    }
}

impl std::error::Error for Stopped {}
