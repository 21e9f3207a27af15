//! Connections: how many are open, how slow their clients may be, and how all of it ends.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};

use super::patient::Patient;
use super::routes::{App, router};
use super::signals::Signals;
use crate::terminal::console::tell;

/// How long to wait after the system gave no connection, which is mostly for want of file handles.
const PAUSE: Duration = Duration::from_millis(100);

/// Answers until a signal comes, then what was accepted. A second signal ends it at once.
///
/// # Errors
/// If the model answers no more, or a second signal came.
pub(super) async fn serve(listener: TcpListener, app: &Arc<App>, signals: &mut Signals) -> Result<()> {
    let router = TowerToHyperService::new(router(app));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(app.limits.read);
    let open = Arc::new(Semaphore::new(app.limits.connections));
    let graceful = GracefulShutdown::new();
    let take = |stream: TcpStream, place: OwnedSemaphorePermit| {
        // Answers are small, and each is sent as one piece.
        let _ = stream.set_nodelay(true);
        let io = TokioIo::new(Patient::new(stream, app.limits.read));
        let connection = graceful.watch(http.serve_connection(io, router.clone()));
        tokio::spawn(async move {
            // What goes wrong with a connection is its client's, who knows.
            let _ = connection.await;
            drop(place);
        });
    };
    let mut ended = app.desk.ended();
    loop {
        let next = async {
            let place = Arc::clone(&open).acquire_owned().await.context("no more connections")?;
            loop {
                match listener.accept().await {
                    Ok((stream, _)) => return Ok::<_, anyhow::Error>((stream, place)),
                    Err(error) => tell(format_args!("cannot take a connection: {error}")),
                }
                sleep(PAUSE).await;
            }
        };
        tokio::select! {
            biased;
            () = signals.next() => break,
            _ = ended.changed() => break,
            taken = next => {
                let (stream, place) = taken?;
                take(stream, place);
            }
        }
    }
    // The system has accepted some that nobody has looked at yet.
    while let Ok(place) = Arc::clone(&open).try_acquire_owned()
        && let Ok(Ok((stream, _))) = timeout(Duration::ZERO, listener.accept()).await
    {
        take(stream, place);
    }
    drop(listener);
    if !app.quiet {
        tell("stopping: no more connections; what was accepted is answered");
    }
    tokio::select! {
        () = graceful.shutdown() => {}
        () = signals.next() => bail!("stopped before all requests were answered"),
    }
    let ended = ended.borrow().clone();
    match ended {
        Some(error) => Err(error).context("the model answers no more"),
        None => Ok(()),
    }
}
