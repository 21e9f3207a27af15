//! One log line and the metrics of each request, also of one whose client goes away before it is answered.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use judge_cli::terminal::console::tell;

use super::app::App;
use super::metrics::Work;
use super::paths::{is_judging, known_route};
use super::peer::GONE;
use super::refusal::SHOWN;

/// A request under way. Dropped, it is counted.
struct Seen {
    app: Arc<App>,
    method: String,
    path: String,
    start: Instant,
    status: u16,
    work: Work,
}

/// Lets a request pass, and counts it once it is answered or dropped.
pub(super) async fn observe(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let method = request.method().as_str().chars().take(SHOWN).collect();
    let path = request.uri().path().to_owned();
    let mut seen = Seen { app, method, path, start: Instant::now(), status: GONE, work: Work::default() };
    let response = next.run(request).await;
    seen.status = response.status().as_u16();
    seen.work = response.extensions().get().copied().unwrap_or_default();
    response
}

impl Drop for Seen {
    fn drop(&mut self) {
        let Self { app, method, path, start, status, work } = self;
        let took = start.elapsed();
        let route = known_route(path);
        app.metrics.count(route, *status, is_judging(route), took, *work);
        if !app.quiet {
            let path: String = path.chars().take(SHOWN).collect();
            let ms = took.as_millis();
            tell(format_args!("{method} {path} {status} {ms}ms questions={} tokens={}", work.questions, work.tokens));
        }
    }
}
