//! Connections: how many are open, how slow their clients may be, and how all of it ends.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper::{Request, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use judge_cli::terminal::console::tell;
use judge_cli::terminal::signals::Signals;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};

use super::app::App;
use super::connection::Connection;
use super::peer::Peer;
use super::refusal::Refusal;
use super::routes::router;
use super::shares::{Client, Lack, Lines};
use super::wire::{OpenAi, Wire as _};

/// How long to wait after the system gave no connection, which is mostly for want of file handles.
const PAUSE: Duration = Duration::from_millis(100);

/// The longest head of a request, in bytes. As much of each connection may be kept until its head is whole.
const HEAD: usize = 1 << 16;

/// So many clients at a time that have their share of connections see why they get no more, even where they still send: that is read to
/// its end, for a while, without a place among the connections.
const REFUSED: usize = 16;

/// What a client gets that has its share of connections: in the form of most routes, since none is asked yet.
fn too_many(lack: Lack) -> Vec<u8> {
    let msg = format!("{}; close some, or try again later", lack.of("connections"));
    let refused = Refusal::new(StatusCode::TOO_MANY_REQUESTS, "too_many_connections", msg);
    let body = OpenAi::refusal(&refused).to_string();
    let head =
        "HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/json\r\nRetry-After: 1\r\nConnection: close";
    format!("{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// Answers until a signal comes, then what was accepted. A second signal ends it at once.
///
/// # Errors
/// If the model answers no more, or a second signal came.
pub(super) async fn serve(listener: TcpListener, app: &Arc<App>, signals: &mut Signals) -> Result<()> {
    let routes = TowerToHyperService::new(router(app));
    let mut http = http1::Builder::new();
    // A client that only sends no more waits for its answer; one that has gone is noticed by `Peer`.
    http.timer(TokioTimer::new()).header_read_timeout(app.limits.read_timeout).half_close(true);
    http.max_header_size(HEAD).max_buf_size(HEAD);
    let open = Arc::new(Semaphore::new(app.limits.connections));
    let refused = Arc::new(Semaphore::new(REFUSED));
    let shares = Lines::new(app.limits.connections, app.limits.client_share);
    let graceful = GracefulShutdown::new();
    let read_limit = app.limits.read_timeout;
    let take = |(stream, from): (TcpStream, SocketAddr), place: OwnedSemaphorePermit| {
        // Answers are small, and each is sent as one piece.
        let _ = stream.set_nodelay(true);
        let client = Client::of(from.ip());
        let share = match shares.try_take(client, 1) {
            Ok(share) => share,
            Err(lack) => {
                let lingers = Arc::clone(&refused).try_acquire_owned();
                tokio::spawn(async move {
                    let mut connection = Connection::new(stream, read_limit);
                    connection.refuse(&too_many(lack)).await;
                    drop(place);
                    if let Ok(_lingers) = lingers {
                        connection.end().await;
                    }
                });
                return;
            }
        };
        let io = Connection::new(stream, read_limit);
        let (routes, peer) = (routes.clone(), Peer { client, side: io.read_side() });
        let of_peer = service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(peer.clone());
            routes.call(request)
        });
        let connection = graceful.watch(http.serve_connection(TokioIo::new(io), of_peer));
        tokio::spawn(async move {
            // What goes wrong with a connection is its client's, who knows.
            let _ = connection.await;
            drop((share, place));
        });
    };
    let mut ended = app.queue.ended();
    loop {
        let next = async {
            let place = Arc::clone(&open).acquire_owned().await.context("no more connections")?;
            loop {
                match listener.accept().await {
                    Ok(accepted) => return Ok::<_, anyhow::Error>((accepted, place)),
                    // It was closed before it was looked at.
                    Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                    Err(error) => {
                        tell(format_args!("cannot take a connection: {error}"));
                        sleep(PAUSE).await;
                    }
                }
            }
        };
        tokio::select! {
            biased;
            _ = signals.next() => break,
            _ = ended.changed() => break,
            taken = next => {
                let (accepted, place) = taken?;
                take(accepted, place);
            }
        }
    }
    // The system has accepted some that nobody has looked at yet.
    while let Ok(place) = Arc::clone(&open).try_acquire_owned()
        && let Ok(Ok(accepted)) = timeout(Duration::ZERO, listener.accept()).await
    {
        take(accepted, place);
    }
    drop(listener);
    if !app.quiet {
        tell("stopping: no more connections; what was accepted is answered");
    }
    tokio::select! {
        biased;
        () = graceful.shutdown() => {}
        _ = signals.next() => {
            app.queue.detach();
            // A connection without a request keeps nobody waiting.
            if app.queue.waiting() > 0 || app.bytes.held() > 0 {
                bail!("stopped before all requests were answered");
            }
        }
    }
    let ended = ended.borrow().clone();
    match ended {
        Some(error) => Err(error).context("the model answers no more"),
        None => Ok(()),
    }
}
