//! SIGTERM and Ctrl-C, awaited.

use anyhow::{Context, Result};
#[cfg(unix)]
use tokio::signal::unix::{Signal as Unix, SignalKind, signal};

use super::interrupt::Signal;

/// What asks a service to end. From [`catch`](Self::catch) on, the signals do nothing but that.
pub struct Signals {
    #[cfg(unix)]
    interrupt: Unix,
    #[cfg(unix)]
    terminate: Unix,
}

impl Signals {
    /// Takes the signals over.
    ///
    /// # Errors
    /// If the system does not let it.
    #[cfg(unix)]
    pub fn catch() -> Result<Self> {
        let of = |kind| signal(kind).context("cannot handle SIGINT and SIGTERM");
        Ok(Self { interrupt: of(SignalKind::interrupt())?, terminate: of(SignalKind::terminate())? })
    }

    /// The next one.
    #[cfg(unix)]
    pub async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.interrupt.recv() => Signal::Interrupt,
            _ = self.terminate.recv() => Signal::Terminate,
        }
    }

    /// There are none here.
    ///
    /// # Errors
    /// None.
    #[cfg(not(unix))]
    pub fn catch() -> Result<Self> {
        Ok(Self {})
    }

    /// The next one.
    #[cfg(not(unix))]
    pub async fn next(&mut self) -> Signal {
        // Without a handler for it, Ctrl-C ends the program as it always does.
        if tokio::signal::ctrl_c().await.context("cannot handle Ctrl-C").is_err() {
            std::future::pending::<()>().await;
        }
        Signal::Interrupt
    }
}
