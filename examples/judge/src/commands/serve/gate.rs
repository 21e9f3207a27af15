//! What a request must get through before its route: its body in time and in size, and its key.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http_body_util::BodyExt;
use hyper::StatusCode;
use tokio::time::timeout;

use super::refused::Refused;
use super::routes::{App, Limits, refuse};

/// Of a body that is too long, so many times the limit are read and dropped: a client that is still sending would see a broken
/// connection, not the answer.
const DROPPED: usize = 8;

/// Reads the body first, whatever becomes of the request, so that every client has sent all and gets its answer.
pub(super) async fn gate(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path().to_owned();
    let body = match timeout(app.limits.read, read(body, &app.limits)).await {
        Ok(Ok(body)) => body,
        Ok(Err(refused)) => return refuse(&path, &refused),
        Err(_) => {
            let msg = format!("the body did not come within {} seconds", app.limits.read.as_secs());
            return refuse(&path, &Refused::new(StatusCode::REQUEST_TIMEOUT, "timeout", msg));
        }
    };
    if let Some(key) = &app.key
        && path.starts_with("/v1/")
        && !key.is_in(&parts.headers)
    {
        let msg = "expected the header `Authorization: Bearer KEY` with this service's key";
        return refuse(&path, &Refused::new(StatusCode::UNAUTHORIZED, "invalid_api_key", msg));
    }
    next.run(Request::from_parts(parts, Body::from(body))).await
}

async fn read(mut body: Body, limits: &Limits) -> Result<Bytes, Refused> {
    let (mut read, mut length) = (Vec::new(), 0_usize);
    while let Some(frame) = body.frame().await {
        let frame = frame
            .map_err(|error| Refused::new(StatusCode::BAD_REQUEST, "body", format!("the body broke off: {error}")))?;
        let Ok(data) = frame.into_data() else { continue };
        length = length.saturating_add(data.len());
        if length <= limits.body {
            read.extend_from_slice(&data);
        } else {
            read = Vec::new();
            if length / DROPPED > limits.body {
                break;
            }
        }
    }
    if length > limits.body {
        let msg = format!("the body is longer than {} bytes, which is the limit here", limits.body);
        return Err(Refused::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_long", msg));
    }
    Ok(Bytes::from(read))
}
