//! Which path is answered by what.

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Path, Request, State};
use axum::middleware::from_fn_with_state;
use axum::response::Response;
use axum::routing::{get, post};
use hyper::StatusCode;
use hyper::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use serde_json::{Value, json};

use super::bench::Bench;
use super::desk::{Desk, Read};
use super::gate::{Held, gate};
use super::key::Key;
use super::metrics::{Gauges, Metrics, Work};
use super::observe::observe;
use super::refused::Refused;
use super::shares::{Client, Percent, Shares};
use super::wire::{OpenAi, SystemOne, Wire, object};

const SYSTEM_ONE: &str = "/v1/systemone";
const DECISIONS: &str = "/v1/decisions";
const MODELS: &str = "/v1/models";
const MODEL: &str = "/v1/models/{*name}";
const HEALTH: &str = "/health";
const METRICS: &str = "/metrics";

/// The routes that answer decisions.
pub(super) const DECIDING: [&str; 2] = [SYSTEM_ONE, DECISIONS];

/// What a service bounds.
pub(super) struct Limits {
    /// Bytes of a body.
    pub(super) body: usize,
    /// The time for a request's head, for its body, and for a client to take some of an answer.
    pub(super) read: Duration,
    /// The time from then to the answer.
    pub(super) answer: Duration,
    pub(super) connections: usize,
    /// Requests that wait or are judged.
    pub(super) queue: usize,
    /// Bytes of the bodies of requests that wait.
    pub(super) queue_bytes: usize,
    /// Bytes of a request's state, in all of its prompts together.
    pub(super) prompts: usize,
    /// What one client may have of connections, places, bytes and the model.
    pub(super) share: Percent,
}

/// The service.
pub(super) struct App {
    pub(super) desk: Desk,
    pub(super) key: Option<Key>,
    /// Whether it asks for no key and listens on the loopback address, so that pages in a browser on this machine reach it.
    pub(super) is_open_here: bool,
    pub(super) limits: Limits,
    /// Of the bodies of requests.
    pub(super) bytes: Arc<Shares>,
    pub(super) metrics: Metrics,
    pub(super) bench: Arc<Bench>,
    /// When the service started, in seconds since 1970.
    pub(super) started: u64,
    pub(super) label_mass: bool,
    pub(super) quiet: bool,
}

/// All routes. Every request is observed, and passes the gate.
pub(super) fn router(app: &Arc<App>) -> Router {
    Router::new()
        .route(SYSTEM_ONE, post(decide::<SystemOne>))
        .route(DECISIONS, post(decide::<OpenAi>))
        .route(MODELS, get(models))
        .route(MODEL, get(model))
        .route(HEALTH, get(health))
        .route(METRICS, get(metrics))
        .fallback(nowhere)
        .method_not_allowed_fallback(other_method)
        .layer(DefaultBodyLimit::disable()) // the gate has one
        .layer(from_fn_with_state(Arc::clone(app), gate))
        .layer(from_fn_with_state(Arc::clone(app), observe))
        .with_state(Arc::clone(app))
}

/// The route that a path is, for metrics: what clients make up does not become a name of its own.
pub(super) fn known_route(path: &str) -> &'static str {
    let known = |route: &&str| *route == path || (*route == MODELS && path.starts_with("/v1/models/"));
    [SYSTEM_ONE, DECISIONS, MODELS, HEALTH, METRICS].into_iter().find(known).unwrap_or("other")
}

async fn decide<W: Wire>(
    State(app): State<Arc<App>>,
    Extension(client): Extension<Client>,
    Extension(held): Extension<Held>,
) -> Response {
    match answer::<W>(&app, client, held).await {
        Ok((answer, work)) => {
            let mut response = json_response(StatusCode::OK, &answer);
            response.extensions_mut().insert(work);
            response
        }
        Err(refused) => refused_response(&refused, &W::refusal(&refused)),
    }
}

async fn answer<W: Wire>(app: &App, client: Client, held: Held) -> Result<(Value, Work), Refused> {
    let bench = Arc::clone(&app.bench);
    let read = move |held: Held| {
        let mut asked = W::read(object(&held.body)?)?;
        let seat = bench.seat(asked.model.as_deref())?;
        asked.item.state = bench.state(seat, asked.item.state);
        bench.check(seat, &asked.item)?;
        Ok(Read { item: asked.item, seat, form: asked.form })
    };
    let (form, seat, mut decided) = app.desk.decide(client, held.body.len(), move || read(held)).await?;
    if app.label_mass {
        decided.add_label_mass();
    }
    let work = Work { questions: decided.told.len(), tokens: decided.tokens };
    Ok((form.write(app.bench.name_of(seat), decided)?, work))
}

async fn models(State(app): State<Arc<App>>) -> Response {
    json_response(StatusCode::OK, &json!({"object": "list", "data": app.bench.listed(app.started)}))
}

async fn model(State(app): State<Arc<App>>, Path(name): Path<String>) -> Response {
    let listed = app.bench.listed(app.started).into_iter().find(|model| model["id"] == name.as_str());
    match (listed, app.bench.seat(Some(&name))) {
        (Some(model), _) => json_response(StatusCode::OK, &model),
        (None, Err(refused)) => refuse(MODELS, &refused),
        (None, Ok(_)) => {
            refuse(MODELS, &Refused::new(StatusCode::NOT_FOUND, "model_not_found", "there is no such model"))
        }
    }
}

async fn health(State(app): State<Arc<App>>) -> Response {
    match &*app.desk.ended().borrow() {
        None => json_response(StatusCode::OK, &json!({"status": "ok"})),
        Some(error) => {
            json_response(StatusCode::SERVICE_UNAVAILABLE, &json!({"status": "failed", "error": error.to_string()}))
        }
    }
}

async fn metrics(State(app): State<Arc<App>>) -> Response {
    let now = Gauges { waiting: app.desk.waiting(), in_model: app.desk.in_model(), bytes: app.bytes.taken() };
    let mut response = Response::new(Body::from(app.metrics.text(&now)));
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

async fn nowhere(request: Request) -> Response {
    let routes = [SYSTEM_ONE, DECISIONS, MODELS, HEALTH, METRICS].join(", ");
    let msg = format!("there is nothing at this path; the routes are {routes}");
    refuse(request.uri().path(), &Refused::new(StatusCode::NOT_FOUND, "not_found", msg))
}

async fn other_method(request: Request) -> Response {
    let path = request.uri().path();
    let method = if DECIDING.contains(&path) { "POST" } else { "GET" };
    let msg = format!("{path} answers {method}, not {}", request.method());
    refuse(path, &Refused::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", msg))
}

/// Refuses a request in the form of the standard that its path belongs to.
pub(super) fn refuse(path: &str, refused: &Refused) -> Response {
    let body = if path == SYSTEM_ONE { SystemOne::refusal(refused) } else { OpenAi::refusal(refused) };
    refused_response(refused, &body)
}

fn refused_response(refused: &Refused, body: &Value) -> Response {
    let mut response = json_response(refused.status, body);
    let headers = response.headers_mut();
    if let Some(seconds) = refused.retry_after {
        headers.insert(RETRY_AFTER, seconds.into());
    }
    if refused.status == StatusCode::UNAUTHORIZED {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

fn json_response(status: StatusCode, body: &Value) -> Response {
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
