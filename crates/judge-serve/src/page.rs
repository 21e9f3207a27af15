//! The page at `/`, to try the service: what it asks goes by `/v1/systemone`, as a request of anybody else.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hyper::header::CONTENT_TYPE;
use judge_cli::pages::{HTML, SCRIPT, STYLE, protect, served, stylesheet};
use maud::html;

use super::app::App;
use super::paths::{PAGE, PAGE_SCRIPT, PAGE_STYLE};

/// Nothing of other origins, no script and no style but the two files, and requests to this service alone.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; form-action 'none'; \
                      base-uri 'none'; frame-ancestors 'none'";

/// The page and its two files.
pub(super) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route(PAGE, get(|State(app): State<Arc<App>>| async move { file(HTML, page(&app)) }))
        .route(PAGE_STYLE, get(|| async { file(STYLE, stylesheet(include_str!("page.css"))) }))
        .route(PAGE_SCRIPT, get(|| async { file(SCRIPT, include_str!("page.js")) }))
}

fn file(kind: &'static str, text: impl IntoResponse) -> Response {
    let mut response = ([(CONTENT_TYPE, kind)], text).into_response();
    protect(&mut response, POLICY);
    response
}

/// Nothing in it needs the key: the names of the judges come by `/v1/models`, once the reader has given it.
fn page(app: &App) -> String {
    let body = html! {
        body {
            header {
                h1 { "judge serve" }
                p.quiet { "Typed questions about a text. Every option gets a probability, and no text is written." }
            }
            main {
                form #ask autocomplete="off" {
                    @if app.registry.plain.is_none() && app.registry.named.is_empty() {
                        p.notice { "The model of this service scores documents by a head and answers no questions: send documents to /v1/rerank." }
                    }
                    @if app.key.is_some() {
                        section.card {
                            h2 { label for="key" { "Key" } }
                            input #key type="password" autocomplete="off" spellcheck="false";
                            p.quiet { "Kept by this page alone, until it is closed or loaded again." }
                        }
                    }
                    section.card #judges hidden {
                        h2 { label for="model" { "Judge" } }
                        select #model {}
                    }
                    section.card {
                        h2 { label for="state" { "State" } }
                        textarea #state rows="4" spellcheck="false" { "Three weeks late, and nobody answers my mails!" }
                        p.quiet #kind {}
                    }
                    section.card {
                        h2 { "Questions" }
                        div #questions {}
                        button #add type="button" { "Add a question" }
                    }
                    button.main #submit { "Ask" kbd { "Ctrl Enter" } }
                }
                div.told {
                    section.card {
                        h2 { "Answers" }
                        div #answers aria-live="polite" { p.quiet { "Ask, and they appear here." } }
                    }
                    section.card {
                        h2 { "The same by curl" }
                        pre.commands #curl tabindex="0" {}
                        button #copy type="button" { "Copy" }
                    }
                }
            }
            template #question {
                fieldset.question {
                    div.line {
                        input.name aria-label="Name of the question" placeholder="name";
                        select.type aria-label="Kind of answer" {
                            option value="choice" { "one of several" }
                            option value="score" { "a level" }
                            option value="noul" { "yes or no" }
                        }
                        button.remove type="button" aria-label="Remove the question" { "×" }
                    }
                    input.instructions aria-label="What is asked" placeholder="What is asked?";
                    textarea.options rows="3" spellcheck="false" aria-label="Options" {}
                    p.quiet.hint {}
                }
            }
        }
    };
    served("Try it – judge serve", &body)
}
