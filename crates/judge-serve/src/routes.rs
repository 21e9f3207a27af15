//! Which path is answered by what.

use std::sync::Arc;

use axum::Extension;
use axum::Router;
use axum::extract::rejection::PathRejection;
use axum::extract::{DefaultBodyLimit, Path, Request, State};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use hyper::header::CONTENT_TYPE;
use hyper::{StatusCode, Uri};
use serde_json::{Value, json};

use super::admission::{Held, gate};
use super::app::App;
use super::metrics::{Gauges, Work};
use super::observe::observe;
use super::page;
use super::paths::{DECISIONS, HEALTH, METRICS, MODEL, MODELS, SCORING, SYSTEM_ONE, all, is_judging};
use super::refusal::{Problem, Refusal, SHOWN};
use super::registry::{Brought, Decision};
use super::reranker::{Reranker, tokens_of};
use super::response::{json_response, refuse};
use super::shares::Client;
use super::wire::rerank::{self, ScoreForm, ScoresOf};
use super::wire::{Asked, OpenAi, SystemOne, Wire, object, written};

/// All routes. Every request is observed, and passes the gate.
pub(super) fn router(app: &Arc<App>) -> Router {
    let scoring = SCORING.into_iter().fold(Router::new(), |router, path| router.route(path, post(score)));
    let page = if app.page { page::routes() } else { Router::new() };
    scoring
        .merge(page)
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

async fn decide<W: Wire>(
    State(app): State<Arc<App>>,
    Extension(client): Extension<Client>,
    Extension(held): Extension<Held>,
    uri: Uri,
) -> Response {
    respond(uri.path(), answer::<W>(&app, client, held, uri.query()).await)
}

/// A response with an answer, and beside it the work that it took, which is counted; or a refusal.
fn respond(path: &str, answered: Result<(Value, Work), Refusal>) -> Response {
    match answered {
        Ok((answer, work)) => (Extension(work), json_response(StatusCode::OK, &answer)).into_response(),
        Err(refused) => refuse(path, &refused),
    }
}

/// Whether a query asks for the label mass, which `--label-mass` adds to every answer. As in a body, no other name may be there.
fn asks_label_mass(query: Option<&str>) -> Result<bool, Refusal> {
    let shown = |text: &str| text.chars().take(SHOWN).collect::<String>();
    let mut asks = false;
    for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        let (kind, msg) = match (&*name, value.to_lowercase().as_str()) {
            ("label_mass", "true" | "1") => {
                asks = true;
                continue;
            }
            ("label_mass", "false" | "0") => continue,
            ("label_mass", _) => ("bool_parsing", format!("expected true or false, found {:?}", shown(&value))),
            _ => {
                ("extra_forbidden", format!("unknown name `{}` in the query; the only one is label_mass", shown(&name)))
            }
        };
        return Err(Refusal::invalid(vec![Problem::of_query(&shown(&name), kind, msg)]));
    }
    Ok(asks)
}

async fn answer<W: Wire>(app: &App, client: Client, held: Held, query: Option<&str>) -> Result<(Value, Work), Refusal> {
    let asks_label_mass = asks_label_mass(query)?;
    let registry = Arc::clone(&app.registry);
    let read = move |held: Held| {
        let Asked { model, of: item, form } = W::read(object(&held.body, W::STATE)?)?;
        let handler = registry.handler(model.as_deref())?;
        let state = registry.state(handler, &item.state, || written(&held.body, W::STATE));
        let decision = Decision { item, handler, state };
        registry.check(&decision)?;
        Ok((decision, form))
    };
    let (form, handler, mut decided) = app.queue.decide(client, held.body.len(), move || read(held)).await?;
    if app.label_mass || asks_label_mass {
        decided.add_label_mass();
    }
    let work = Work { questions: decided.told.len(), tokens: decided.tokens };
    Ok((form.write(app.registry.name_of(handler), decided)?, work))
}

async fn score(
    State(app): State<Arc<App>>,
    Extension(client): Extension<Client>,
    Extension(held): Extension<Held>,
    uri: Uri,
) -> Response {
    respond(uri.path(), scored(&app, client, held, uri.path().to_owned()).await)
}

async fn scored(app: &App, client: Client, held: Held, path: String) -> Result<(Value, Work), Refusal> {
    let registry = Arc::clone(&app.registry);
    let bytes = held.body.len();
    let read = move || {
        let Asked { model, of, mut form } = rerank::read(&path, object(&held.body, "documents")?)?;
        registry.check_name(model.as_deref())?;
        let brought = match of {
            ScoresOf::Documents(mut items) => {
                let reranker = registry.reranker()?;
                if let ScoreForm::Cohere { most_tokens: Some(most), lost, .. } = &mut form {
                    *lost = reranker.cut(&mut items, *most);
                }
                Brought::Documents { items, may_cut: form.may_cut() }
            }
            ScoresOf::Tokens(tokens) => {
                rerank::check_tokens(&tokens, registry.model_with_labels()?.d_vocab)?;
                Brought::Tokens(tokens)
            }
        };
        Ok((brought, form))
    };
    let registry = &app.registry;
    let (form, result) = app.queue.answer(client, bytes, read).await?;
    let tokens = tokens_of(&result);
    let name = &registry.plain_name;
    let (answer, questions) = match &result.item.brought {
        Brought::Tokens(next) => {
            let found = next.probabilities(registry.model_with_labels()?, &result);
            let found = found.map_err(Refusal::failed)?;
            let questions = found.len();
            (form.write_labels(name, found, tokens)?, questions)
        }
        _ => {
            let told = Reranker::told(&result);
            (form.write(name, &told, registry.reranker()?.activation)?, told.documents.len())
        }
    };
    Ok((answer, Work { questions, tokens }))
}

async fn models(State(app): State<Arc<App>>) -> Response {
    json_response(StatusCode::OK, &json!({"object": "list", "data": app.registry.listed(app.started)}))
}

async fn model(State(app): State<Arc<App>>, name: Result<Path<String>, PathRejection>) -> Response {
    let name = match name {
        Ok(Path(name)) => name,
        Err(why) => return refuse(MODELS, &Refusal::new(why.status(), "invalid_path", why.body_text())),
    };
    match app.registry.listed(app.started).into_iter().find(|model| model["id"] == name.as_str()) {
        Some(model) => json_response(StatusCode::OK, &model),
        None => refuse(MODELS, &app.registry.unknown(&name)),
    }
}

async fn health(State(app): State<Arc<App>>) -> Response {
    match &*app.queue.ended().borrow() {
        None => json_response(StatusCode::OK, &json!({"status": "ok"})),
        Some(error) => {
            json_response(StatusCode::SERVICE_UNAVAILABLE, &json!({"status": "failed", "error": error.to_string()}))
        }
    }
}

async fn metrics(State(app): State<Arc<App>>) -> Response {
    let now = Gauges { waiting: app.queue.waiting(), in_model: app.queue.in_model(), bytes: app.bytes.held() };
    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], app.metrics.text(&now)).into_response()
}

async fn nowhere(request: Request) -> Response {
    let routes = all().collect::<Vec<_>>().join(", ");
    let msg = format!("there is nothing at this path; the routes are {routes}");
    refuse(request.uri().path(), &Refusal::new(StatusCode::NOT_FOUND, "not_found", msg))
}

async fn other_method(request: Request) -> Response {
    let path = request.uri().path();
    let method = if is_judging(path) { "POST" } else { "GET" };
    let msg = format!("{path} answers {method}, not {}", request.method());
    refuse(path, &Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", msg))
}
