//! The paths that are answered.

pub(super) const SYSTEM_ONE: &str = "/v1/systemone";
pub(super) const DECISIONS: &str = "/v1/decisions";
pub(super) const MODELS: &str = "/v1/models";
pub(super) const MODEL: &str = "/v1/models/{*name}";
pub(super) const HEALTH: &str = "/health";
pub(super) const METRICS: &str = "/metrics";

/// The routes that answer decisions.
pub(super) const DECIDING: [&str; 2] = [SYSTEM_ONE, DECISIONS];

/// The route that a path is, for metrics: what clients make up does not become a name of its own.
pub(super) fn known_route(path: &str) -> &'static str {
    let known = |route: &&str| *route == path || (*route == MODELS && path.starts_with("/v1/models/"));
    [SYSTEM_ONE, DECISIONS, MODELS, HEALTH, METRICS].into_iter().find(known).unwrap_or("other")
}
