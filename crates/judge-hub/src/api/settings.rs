//! Which service is asked, for what model, and how hard; and the check of these settings.
//!
//! `ApiModel::new` checks settings once, through `endpoint`; the other files of `api` rely on the
//! ranges stated here.

use std::time::Duration;

use judge_core::decision::DecisionRoute;
use serde::{Deserialize, Serialize};
use ureq::http::Uri;

use super::problem::ApiError;
use super::{ApiKey, ApiProblem};
use crate::agent::{address, shown};

/// Which service is asked, for what model, and how hard.
///
/// Write it as `ApiSettings { base_url: …, model: …, ..ApiSettings::default() }`: fields may be
/// added.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiSettings {
    /// Where the API begins; requests go to one address below it, that of [`route`](Self::route), and nowhere else. `http`
    /// or `https`, without user, query or fragment; a port is a number from 1 to 65535. Slashes at the end do not matter. Default:
    /// `http://127.0.0.1:8000/v1`.
    pub base_url: String,
    /// What the service does.
    pub route: ApiRoute,
    /// The model's name, as the service knows it. Not empty; there is no default.
    pub model: String,
    /// The key; `None`, the default, for a service that asks for none.
    pub key: Option<ApiKey>,
    /// Most requests in flight at once, over all runs of the model; at least 1, by default 8.
    pub concurrency: usize,
    /// Most requests a minute, repeated ones included; they are spaced evenly. Finite and above 0;
    /// `None`, the default, for no bound.
    pub requests_per_minute: Option<f64>,
    /// Most tokens a minute, read and written. Before a request is sent its tokens are estimated
    /// (four bytes of text to a token, and all that may be written); after the answer the service's
    /// own count takes the estimate's place. Finite and above 0; `None`, the default, for no bound.
    pub tokens_per_minute: Option<f64>,
    /// Longest time that one attempt may take, from connecting to the last byte. Above 0; by
    /// default 120 seconds.
    pub timeout: Duration,
    /// How often a request is sent before its failure ends the run; at least 1, by default 6.
    pub max_attempts: usize,
    /// Wait before the second attempt; doubled before each further one. Between half of it and all
    /// of it is waited, by a fixed rule. By default 1 second.
    pub backoff: Duration,
    /// Longest such wait, by default 60 seconds.
    pub max_backoff: Duration,
    /// Longest wait that a service may ask for (`Retry-After`); one that asks for more ends the
    /// run. By default ten minutes.
    pub max_retry_after: Duration,
    /// How the service calls the bound on new tokens.
    pub max_tokens_field: MaxTokensField,
    /// Longest answer that is read, in bytes; at least 1, by default 8 MiB.
    pub max_response_bytes: usize,
}

/// What a service does, and where below the base.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApiRoute {
    /// It writes replies to conversations, at `/chat/completions`. The default.
    #[default]
    Chat,
    /// It answers typed questions. A raw prompt is the body of a request but for the model's name, and the text that is read is the body
    /// of the answer: what a [`DecisionServiceJudge`](judge_core::decision::DecisionServiceJudge) sends and reads.
    Decisions(DecisionRoute),
}

impl ApiRoute {
    fn path(self) -> &'static str {
        match self {
            Self::Chat => "/chat/completions",
            Self::Decisions(route) => route.path(),
        }
    }
}

/// How a service calls the bound on new tokens. In files it is the field's name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum MaxTokensField {
    /// `max_tokens`, which most servers know. The default.
    #[default]
    MaxTokens,
    /// `max_completion_tokens`, which newer models of OpenAI ask for. What a model thinks before it
    /// answers counts.
    MaxCompletionTokens,
}

impl MaxTokensField {
    /// The field's name in the body of a request.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::MaxTokens => "max_tokens",
            Self::MaxCompletionTokens => "max_completion_tokens",
        }
    }
}

impl Default for ApiSettings {
    /// A server on this machine, no model yet, 8 requests at once, no bound per minute, 120
    /// seconds, 6 attempts after waits of 1 second up to 60, ten minutes of `Retry-After`, 8 MiB.
    fn default() -> Self {
        Self {
            base_url: "http://127.0.0.1:8000/v1".to_owned(),
            route: ApiRoute::default(),
            model: String::new(),
            key: None,
            concurrency: 8,
            requests_per_minute: None,
            tokens_per_minute: None,
            timeout: Duration::from_secs(120),
            max_attempts: 6,
            backoff: Duration::from_secs(1),
            max_backoff: Duration::from_secs(60),
            max_retry_after: Duration::from_secs(600),
            max_tokens_field: MaxTokensField::default(),
            max_response_bytes: 8 << 20,
        }
    }
}

impl ApiSettings {
    /// Checks the settings and returns the address that requests go to.
    ///
    /// # Errors
    /// [`ApiError::Service`] with the first setting that cannot work. Its address is shown without what
    /// may be a secret.
    pub(super) fn endpoint(&self) -> Result<Uri, ApiError> {
        let base = self.base_url.as_str();
        let wrong = |problem| Err(ApiError::Service { url: shown(base), problem });
        let rest = base.strip_prefix("https://").or_else(|| base.strip_prefix("http://"));
        let host = rest.map(|rest| rest.split(['/', '?', '#']).next().unwrap_or_default());
        let problem = match host {
            None => Some("expected it to begin with http:// or https://"),
            Some("") => Some("it names no host"),
            Some(host) if host.contains('@') => {
                Some("it has a user or password, expected none: a key belongs in the key")
            }
            Some(_) if base.contains(['?', '#']) => Some("it has a query or a fragment, expected none"),
            Some(_) if base.contains(|c: char| !c.is_ascii_graphic()) => {
                Some("it has other than visible ASCII characters")
            }
            Some(_) => None,
        };
        if let Some(problem) = problem {
            return wrong(ApiProblem::BaseUrl { problem });
        }
        let setting = |setting, found: f64, expected| wrong(ApiProblem::Setting { setting, found, expected });
        if self.model.is_empty() {
            return wrong(ApiProblem::NoModel);
        }
        for (name, count) in [
            ("concurrency", self.concurrency),
            ("max_attempts", self.max_attempts),
            ("max_response_bytes", self.max_response_bytes),
        ] {
            if count == 0 {
                return setting(name, 0.0, "at least 1");
            }
        }
        for (name, rate) in
            [("requests_per_minute", self.requests_per_minute), ("tokens_per_minute", self.tokens_per_minute)]
        {
            if let Some(rate) = rate.filter(|rate| !(rate.is_finite() && *rate > 0.0)) {
                return setting(name, rate, "a finite number above 0");
            }
        }
        if self.timeout.is_zero() {
            return setting("timeout", 0.0, "above 0");
        }
        let endpoint = address(&format!("{}{}", base.trim_end_matches('/'), self.route.path()));
        endpoint.or_else(|problem| wrong(ApiProblem::BaseUrl { problem }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(base_url: &str) -> Result<String, String> {
        let settings = ApiSettings { base_url: base_url.into(), model: "m".into(), ..ApiSettings::default() };
        settings.endpoint().map(|address| address.to_string()).map_err(|error| error.to_string())
    }

    #[test]
    fn requests_go_below_the_base() {
        assert_eq!(endpoint("https://a.example/v1/").unwrap(), "https://a.example/v1/chat/completions");
        assert_eq!(endpoint("http://[::1]:80").unwrap(), "http://[::1]:80/chat/completions");
        let decisions = ApiSettings {
            route: ApiRoute::Decisions(DecisionRoute::SystemOne),
            model: "m".into(),
            ..ApiSettings::default()
        };
        assert_eq!(decisions.endpoint().unwrap(), "http://127.0.0.1:8000/v1/systemone");
        for wrong in ["a.example/v1", "ftp://a.example", "https://", "http:///v1", "http://a b", "http://a:PORT/v1"] {
            assert!(endpoint(wrong).unwrap_err().starts_with(wrong), "{wrong}");
        }
        let wrong_port = endpoint("http://127.0.0.1:80000/v1").unwrap_err();
        assert!(wrong_port.ends_with("its port is no number from 1 to 65535"), "{wrong_port}");
        for secret in ["https://u:hidden@a.example/v1", "https://a.example/v1?key=hidden", "https://a.example#hidden"] {
            let error = endpoint(secret).unwrap_err();
            assert!(!error.contains("hidden") && error.starts_with("https://a.example"), "{error}");
        }
    }

    #[test]
    fn settings_that_cannot_work_are_refused() {
        let good = ApiSettings { model: "m".into(), ..ApiSettings::default() };
        for (wrong, said) in [
            (ApiSettings { model: String::new(), ..good.clone() }, "no model is named"),
            (ApiSettings { concurrency: 0, ..good.clone() }, "concurrency is 0, expected at least 1"),
            (ApiSettings { max_attempts: 0, ..good.clone() }, "max_attempts is 0"),
            (ApiSettings { requests_per_minute: Some(0.0), ..good.clone() }, "requests_per_minute is 0"),
            (ApiSettings { tokens_per_minute: Some(f64::NAN), ..good.clone() }, "tokens_per_minute is NaN"),
            (ApiSettings { timeout: Duration::ZERO, ..good.clone() }, "timeout is 0"),
        ] {
            let error = wrong.endpoint().unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
        assert!(good.endpoint().is_ok());
    }
}
