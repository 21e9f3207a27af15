//! The paths that are answered.

pub(super) const SYSTEM_ONE: &str = "/v1/systemone";
pub(super) const DECISIONS: &str = "/v1/decisions";
pub(super) const RERANK: &str = "/rerank";
pub(super) const RERANK_V1: &str = "/v1/rerank";
pub(super) const RERANK_V2: &str = "/v2/rerank";
pub(super) const SCORE: &str = "/score";
pub(super) const SCORE_V1: &str = "/v1/score";
pub(super) const GENERATIVE_SCORING: &str = "/generative_scoring";
pub(super) const MODELS: &str = "/v1/models";
pub(super) const MODEL: &str = "/v1/models/{*name}";
pub(super) const HEALTH: &str = "/health";
pub(super) const METRICS: &str = "/metrics";
pub(super) const PAGE: &str = "/";
pub(super) const PAGE_STYLE: &str = "/page.css";
pub(super) const PAGE_SCRIPT: &str = "/page.js";

/// The routes that answer decisions.
const DECIDING: [&str; 2] = [SYSTEM_ONE, DECISIONS];

/// The routes that score documents and labels.
pub(super) const SCORING: [&str; 6] = [RERANK, RERANK_V1, RERANK_V2, SCORE, SCORE_V1, GENERATIVE_SCORING];

/// Whether a route puts something before the model.
pub(super) fn is_judging(path: &str) -> bool {
    DECIDING.contains(&path) || SCORING.contains(&path)
}

/// All routes with a fixed name, but for the page.
pub(super) fn all() -> impl Iterator<Item = &'static str> {
    DECIDING.into_iter().chain(SCORING).chain([MODELS, HEALTH, METRICS])
}

/// The route that a path is, for metrics: what clients make up does not become a name of its own.
pub(super) fn known_route(path: &str) -> &'static str {
    let known = |route: &&str| *route == path || (*route == MODELS && path.starts_with("/v1/models/"));
    all().chain([PAGE, PAGE_STYLE, PAGE_SCRIPT]).find(known).unwrap_or("other")
}
