//! The page over HTTP, for one browser on this machine at a time or for several.
//!
//! Whoever does not know the token of the address gets nothing, and neither does a page of another origin that does: the `Host` must be
//! this machine, and what is posted must come from this very page. Nothing is answered but the routes below; no file is served.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{RawQuery, Request, State};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HOST, HeaderName, HeaderValue, LOCATION, ORIGIN};
use hyper::server::conn::http1;
use hyper::{Method, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use judge_cli::args::service::is_loopback_host;
use judge_cli::pages::{HTML, SCRIPT, STYLE, protect};
use judge_cli::terminal::console::{in_words, tell};
use judge_cli::terminal::interrupt::Signal;
use judge_cli::terminal::signals::Signals;
use judge_data::Given;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use super::page;
use super::session::Session;

/// What a browser says of where a request comes from.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The longest body: answers to some thousand questions, and a note.
const LONGEST_BODY: usize = 1 << 20;

/// How long the head of a request may take, and how long open answers are waited for at the end.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long to wait after the system gave no connection, which is mostly for want of file handles.
const PAUSE: Duration = Duration::from_millis(100);

/// What is served.
pub(super) struct App {
    session: Mutex<Session>,
    token: String,
    /// The name of the file that is written, and what to do then.
    output: String,
    next: Vec<String>,
    done: Notify,
    /// Why the rows could not be written.
    failed: Mutex<Option<anyhow::Error>>,
}

impl App {
    pub(super) fn new(session: Session, token: String, output: String, next: Vec<String>) -> Self {
        Self { session: Mutex::new(session), token, output, next, done: Notify::new(), failed: Mutex::new(None) }
    }

    /// Whoever had it before has left it whole: it changes after the journal.
    pub(super) fn session(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why the rows could not be written, if they could not.
    pub(super) fn failure(&self) -> Option<anyhow::Error> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Answers until the rows are written or a signal comes; the signal.
///
/// # Errors
/// If signals cannot be caught.
pub(super) async fn serve(listener: std::net::TcpListener, app: &Arc<App>) -> Result<Option<Signal>> {
    let mut signals = Signals::catch()?;
    let listener = TcpListener::from_std(listener).context("cannot listen")?;
    let routes = TowerToHyperService::new(router(app));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(PATIENCE);
    let graceful = GracefulShutdown::new();
    let stopped = loop {
        tokio::select! {
            biased;
            signal = signals.next() => break Some(signal),
            () = app.done.notified() => break None,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let _ = stream.set_nodelay(true);
                    let connection = graceful.watch(http.serve_connection(TokioIo::new(stream), routes.clone()));
                    tokio::spawn(async move {
                        // What goes wrong with a connection is its client's, who knows.
                        let _ = connection.await;
                    });
                }
                Err(error) => {
                    tell(format_args!("cannot take a connection: {error}"));
                    sleep(PAUSE).await;
                }
            }
        }
    };
    drop(listener);
    // What takes longer is a client that does not read.
    let _ = timeout(PATIENCE, graceful.shutdown()).await;
    Ok(stopped)
}

fn router(app: &Arc<App>) -> Router {
    let at = |name: &str| format!("/{}/{name}", app.token);
    Router::new()
        .route(&at(""), get(who))
        .route(&format!("/{}", app.token), get(home))
        .route(&at("who"), get(who_else))
        .route(&at("rate"), get(rate))
        .route(&at("answer"), post(answer))
        .route(&at("undo"), post(undo))
        .route(&at("finish"), post(finish))
        .route(&at("page.css"), get(|| async { kept(STYLE, page::style()) }))
        .route(&at("page.js"), get(|| async { kept(SCRIPT, page::SCRIPT) }))
        .fallback(|| async { refused(StatusCode::NOT_FOUND, "Not here", NOT_FOUND) })
        .method_not_allowed_fallback(|| async { refused(StatusCode::METHOD_NOT_ALLOWED, "Not here", NOT_FOUND) })
        .layer(from_fn(guard))
        .with_state(Arc::clone(app))
}

const NOT_FOUND: &str =
    "There is nothing at this address. If the program was started again, open the new address that it prints.";

/// Lets through what comes from this machine and, where something is changed, from this very page; every answer says what browsers may do
/// with it.
async fn guard(request: Request, next: Next) -> Response {
    let mut response = match foreign(&request) {
        Some(why) => refused(StatusCode::FORBIDDEN, "Refused", &why),
        None if request.method() == Method::POST
            && request.headers().get(CONTENT_TYPE).is_none_or(|kind| *kind != FORM) =>
        {
            refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, "Refused", &format!("Expected a form, {FORM}."))
        }
        None => next.run(request).await,
    };
    protect(&mut response, page::POLICY);
    response
}

/// What forms of this page are sent as.
const FORM: &str = "application/x-www-form-urlencoded";

/// Why a request is not answered: it came under another name than this machine's, or from another page.
fn foreign(request: &Request) -> Option<String> {
    let header = |name: &HeaderName| -> Vec<String> {
        let values = request.headers().get_all(name).iter();
        values.map(|value| String::from_utf8_lossy(value.as_bytes()).trim().to_owned()).collect()
    };
    let hosts = header(&HOST);
    let authority = hosts.first().and_then(|host| host.parse::<hyper::http::uri::Authority>().ok());
    let is_here = hosts.len() == 1 && authority.is_some_and(|authority| is_loopback_host(authority.host()));
    if !is_here || request.uri().authority().is_some_and(|authority| authority.as_str() != hosts[0]) {
        return Some(format!("Expected the host of this machine, such as 127.0.0.1, found {hosts:?}."));
    }
    let own = format!("http://{}", hosts[0]);
    let origins = header(&ORIGIN);
    if let Some(origin) = origins.iter().find(|origin| !origin.eq_ignore_ascii_case(&own)) {
        return Some(format!("Pages of {origin} are not answered."));
    }
    let sites = header(&SEC_FETCH_SITE);
    let is_post = request.method() == Method::POST;
    // A link from elsewhere may open the page, which then shows the same as its address does.
    if is_post && sites.iter().any(|site| site != "same-origin") {
        return Some("Only this page may send answers.".to_owned());
    }
    (is_post && origins.is_empty()).then(|| "Expected an `Origin`: answers are sent by this page.".to_owned())
}

fn respond(status: StatusCode, kind: &'static str, body: impl IntoResponse) -> Response {
    (status, [(CONTENT_TYPE, kind)], body).into_response()
}

/// Style or script, which browsers keep: behind the last page nobody answers any more. Their address is that of this start alone.
fn kept(kind: &'static str, body: impl IntoResponse) -> Response {
    (StatusCode::OK, [(CONTENT_TYPE, kind), (CACHE_CONTROL, "private, max-age=86400")], body).into_response()
}

fn html(page: String) -> Response {
    respond(StatusCode::OK, HTML, page)
}

fn refused(status: StatusCode, title: &str, text: &str) -> Response {
    respond(status, HTML, page::says(title, text))
}

/// Sends the browser to another page of this one.
fn to(page: &str, fields: &[(&str, &str)]) -> Response {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(fields);
    let query = query.finish();
    let to = if query.is_empty() { page.to_owned() } else { format!("{page}?{query}") };
    let mut response = respond(StatusCode::SEE_OTHER, HTML, "");
    if let Ok(to) = HeaderValue::from_str(&to) {
        response.headers_mut().insert(LOCATION, to);
    }
    response
}

/// The fields of a form or of a query.
struct Fields(Vec<(String, String)>);

impl Fields {
    fn of(text: &[u8]) -> Self {
        Self(form_urlencoded::parse(text).into_owned().collect())
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The rater, if there may be one of that name.
    fn rater(&self, session: &Session) -> Result<String, String> {
        let rater = self.get("rater").unwrap_or_default().trim().to_owned();
        session.admit(&rater).map(|()| rater)
    }
}

async fn home(State(app): State<Arc<App>>) -> Response {
    to(&format!("/{}/", app.token), &[])
}

async fn who(State(app): State<Arc<App>>) -> Response {
    let session = app.session();
    match session.settings.named.as_slice() {
        [only] => to("rate", &[("rater", only)]),
        _ => html(page::who(&session, None)),
    }
}

async fn who_else(State(app): State<Arc<App>>) -> Response {
    html(page::who(&app.session(), None))
}

async fn rate(State(app): State<Arc<App>>, RawQuery(query): RawQuery) -> Response {
    let fields = Fields::of(query.unwrap_or_default().as_bytes());
    let session = app.session();
    if session.is_finished() {
        return html(page::finished(&session, &app.output, &app.next));
    }
    let rater = match fields.rater(&session) {
        Ok(rater) => rater,
        Err(problem) => return html(page::who(&session, Some(&problem))),
    };
    let notice = match fields.get("said") {
        Some("already") => Some("This row was graded before, perhaps in another tab; the first answer counts."),
        Some("open") => Some("Answer every question before you go on, or skip the row."),
        Some("nothing") => Some("There is nothing to undo."),
        _ => None,
    };
    html(match session.next(&rater) {
        Some(row) => page::row(&session, &rater, row, notice),
        None => page::end(&session, &rater, &app.next, notice),
    })
}

async fn form(body: Body) -> Result<Fields, Response> {
    let bytes: Result<Bytes, _> = to_bytes(body, LONGEST_BODY).await;
    bytes.map(|bytes| Fields::of(&bytes)).map_err(|_| {
        refused(
            StatusCode::PAYLOAD_TOO_LARGE,
            "Refused",
            &format!("Expected at most {LONGEST_BODY} bytes; nothing was saved."),
        )
    })
}

/// What was not saved, and why: the page can be sent again.
fn not_saved(error: &anyhow::Error) -> Response {
    let why = in_words(error);
    let text =
        format!("{why}. Make room or mend what is wrong, go back, and answer again; what was saved before is safe.");
    refused(StatusCode::INTERNAL_SERVER_ERROR, "Not saved", &text)
}

async fn answer(State(app): State<Arc<App>>, body: Body) -> Result<Response, Response> {
    let fields = form(body).await?;
    let mut session = app.session();
    if session.is_finished() {
        return Ok(to("rate", &[]));
    }
    let bad = |problem: &str| refused(StatusCode::BAD_REQUEST, "Not saved", problem);
    let rater = fields.rater(&session).map_err(|problem| bad(&problem))?;
    let rows = session.settings.rows.len();
    let row = fields.get("row").and_then(|row| row.parse().ok()).filter(|&row: &usize| row < rows);
    let row = row.ok_or_else(|| bad("Expected the number of a row; nothing was saved."))?;
    let given = match fields.get("skip") {
        Some("") => Given::Skipped(fields.get("reason").map_or("", str::trim).to_owned()),
        Some(reason) => Given::Skipped(reason.trim().to_owned()),
        None => {
            let groups = session.groups(row);
            let chosen = groups.iter().enumerate().map(|(number, group)| {
                let place: usize = fields.get(&format!("g{number}"))?.parse().ok()?;
                Some(group.options.get(place)?.value.clone())
            });
            match chosen.collect() {
                Some(values) => Given::Values(values),
                None => return Ok(to("rate", &[("rater", &rater), ("said", "open")])),
            }
        }
    };
    let given = match given {
        Given::Skipped(why) if why.is_empty() => Given::Skipped("no reason given".to_owned()),
        given => given,
    };
    let seconds =
        fields.get("seconds").and_then(|text| text.parse().ok()).filter(|seconds: &f64| (0.0..1e7).contains(seconds));
    let note = fields.get("note").map(str::trim).filter(|note| !note.is_empty()).map(str::to_owned);
    match session.give(&rater, row, given, seconds, note) {
        Ok(true) => Ok(to("rate", &[("rater", &rater)])),
        Ok(false) => Ok(to("rate", &[("rater", &rater), ("said", "already")])),
        Err(error) => Err(not_saved(&error)),
    }
}

async fn undo(State(app): State<Arc<App>>, body: Body) -> Result<Response, Response> {
    let fields = form(body).await?;
    let mut session = app.session();
    if session.is_finished() {
        return Ok(to("rate", &[]));
    }
    let bad = |problem: String| refused(StatusCode::BAD_REQUEST, "Not undone", &problem);
    let rater = fields.rater(&session).map_err(bad)?;
    match session.undo(&rater) {
        Ok(true) => Ok(to("rate", &[("rater", &rater)])),
        Ok(false) => Ok(to("rate", &[("rater", &rater), ("said", "nothing")])),
        Err(error) => Err(not_saved(&error)),
    }
}

async fn finish(State(app): State<Arc<App>>, body: Body) -> Result<Response, Response> {
    form(body).await?;
    let mut session = app.session();
    if !session.is_finished() && session.graded() == 0 {
        let problem = "Nobody has graded a row: there is nothing to write.";
        return Err(refused(StatusCode::BAD_REQUEST, "Not finished", problem));
    }
    match session.finish() {
        Ok(()) => {
            app.done.notify_one();
            Ok(html(page::finished(&session, &app.output, &app.next)))
        }
        Err(error) => {
            let response = not_saved(&error);
            if session.is_finished() {
                *app.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                app.done.notify_one();
            }
            Err(response)
        }
    }
}
