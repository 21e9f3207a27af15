//! What a request must get through before its route: its head, its key, and its body in time and in size.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt;
use hyper::StatusCode;
use tokio::time::timeout;

use super::app::App;
use super::checks;
use super::paths::is_judging;
use super::peer::{GONE, Peer};
use super::queue::queue_full;
use super::refusal::Refusal;
use super::response::refuse;
use super::shares;

/// The byte-order mark of UTF-8.
const BOM: &[u8] = b"\xef\xbb\xbf";

/// A request's body, and its place among the bytes that wait.
#[derive(Clone)]
pub(super) struct Held {
    pub(super) body: Bytes,
    pub(super) _bytes: Arc<shares::Held>,
}

/// Lets a request with a right head and body pass. Where it is refused before all of it was read, the connection ends so that a client that
/// is still sending gets the answer. What nobody waits for any more is dropped.
pub(super) async fn gate(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let path = parts.uri.path().to_owned();
    // Each connection gives its requests one.
    let Some(peer) = parts.extensions.remove::<Peer>() else {
        return refuse(&path, &Refusal::failed("a request of no connection"));
    };
    let refuse_early = |refused: Refusal| {
        peer.side.is_left_unread.store(true, Ordering::Relaxed);
        refuse(&path, &refused)
    };
    let head = checks::check(&parts, app.limits.max_body)
        .and_then(|()| if app.is_open_here { checks::check_site(&parts) } else { Ok(()) });
    if let Err(refused) = head {
        return refuse_early(refused);
    }
    if let Some(key) = &app.key
        && (path.starts_with("/v1/") || is_judging(&path))
        && !key.is_in(&parts.headers)
    {
        let msg = "expected the header `Authorization: Bearer KEY` with this service's key";
        return refuse_early(Refusal::new(StatusCode::UNAUTHORIZED, "invalid_api_key", msg));
    }
    let held = match timeout(app.limits.read_timeout, read(body, &app, &peer)).await {
        Ok(Ok(held)) => held,
        Ok(Err(refused)) => return refuse_early(refused),
        Err(_) => {
            let msg = format!("the body did not come within {} seconds", app.limits.read_timeout.as_secs());
            return refuse_early(Refusal::new(StatusCode::REQUEST_TIMEOUT, "timeout", msg));
        }
    };
    let version = parts.version;
    parts.extensions.insert(peer.client);
    parts.extensions.insert(held);
    tokio::select! {
        response = next.run(Request::from_parts(parts, Body::empty())) => response,
        // Not sent to anybody.
        () = peer.gone(version) => StatusCode::from_u16(GONE).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR).into_response(),
    }
}

async fn read(mut body: Body, app: &App, peer: &Peer) -> Result<Held, Refusal> {
    let longest = app.limits.max_body;
    let take = |bytes| app.bytes.try_take(peer.client, bytes).map_err(|lack| queue_full("bytes", lack));
    let mut bytes = take(0)?;
    let mut read = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame
            .map_err(|error| Refusal::new(StatusCode::BAD_REQUEST, "body", format!("the body broke off: {error}")))?;
        let Ok(data) = frame.into_data() else { continue };
        if read.len().saturating_add(data.len()) > longest {
            return Err(checks::too_long(longest));
        }
        bytes.add(take(data.len())?);
        read.extend_from_slice(&data);
    }
    // A byte-order mark, which editors of Windows write, is no part of what a file says.
    let begins = if read.starts_with(BOM) { BOM.len() } else { 0 };
    Ok(Held { body: Bytes::from(read).slice(begins..), _bytes: Arc::new(bytes) })
}
