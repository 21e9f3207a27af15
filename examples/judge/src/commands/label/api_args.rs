//! The options of programs that ask a model behind a service.

use std::time::Duration;

use anyhow::Result;
use clap::{Args, ValueEnum};
use judge_core::request::{Generation, Sampling};
use judge_data::Settings;
use judge_models::{ApiKey, ApiModel, ApiSettings, MaxTokensField, Prices};
use serde_json::json;

use crate::terminal::console::{tell, usage};

/// Which service is asked, how, and how hard.
#[derive(Args, Clone, Debug)]
pub struct ApiArgs {
    /// Where the service's OpenAI-compatible API begins; requests go to URL/chat/completions and nowhere else
    #[arg(long, value_name = "URL", help_heading = "Service")]
    pub base_url: String,
    /// The model, as the service calls it
    #[arg(long, value_name = "NAME", help_heading = "Service")]
    pub api_model: String,
    /// The environment variable that holds the key
    #[arg(long, value_name = "NAME", default_value = "OPENAI_API_KEY", help_heading = "Service")]
    pub key_env: String,
    /// The service asks for no key, and none is sent
    #[arg(long, conflicts_with = "key_env", help_heading = "Service")]
    pub no_key: bool,
    /// Most requests in flight at once
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..), help_heading = "Service")]
    pub concurrency: u16,
    /// Most requests a minute, repeated ones included
    #[arg(long, value_name = "N", value_parser = rate, help_heading = "Service")]
    pub requests_per_minute: Option<f64>,
    /// Most tokens a minute, read and written
    #[arg(long, value_name = "N", value_parser = rate, help_heading = "Service")]
    pub tokens_per_minute: Option<f64>,
    /// Longest time for one answer, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 120.0, value_parser = rate, help_heading = "Service")]
    pub timeout: f64,
    /// How often a request is sent before its failure ends the run
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u16).range(1..), help_heading = "Service")]
    pub max_attempts: u16,
    /// How the service calls the bound on new tokens
    #[arg(long, value_enum, default_value_t = LimitField::MaxTokens, help_heading = "Service")]
    pub max_tokens_field: LimitField,
    /// Upper bound on generated tokens for one answer
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..), help_heading = "Service")]
    pub max_new_tokens: u32,
    /// Temperature; 0 takes the likeliest token each time
    #[arg(long, value_name = "T", default_value_t = 0.0, value_parser = not_negative, help_heading = "Service")]
    pub temperature: f64,
    /// Seed of what is drawn, for services that have one; without effect at temperature 0
    #[arg(long, value_name = "SEED", default_value_t = 0, help_heading = "Service")]
    pub seed: u64,
    /// How many alternatives of each token are asked for, for the probabilities of the grades; 0 for services that refuse
    #[arg(long, value_name = "K", default_value_t = 20, help_heading = "Service")]
    pub top_log_probs: u8,
    /// Price of a million tokens that are read
    #[arg(long, value_name = "PRICE", value_parser = not_negative, help_heading = "Service")]
    pub price_in: Option<f64>,
    /// Price of a million tokens that are written
    #[arg(long, value_name = "PRICE", value_parser = not_negative, help_heading = "Service")]
    pub price_out: Option<f64>,
}

/// How the bound on new tokens is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LimitField {
    /// `max_tokens`
    #[value(name = "max_tokens")]
    MaxTokens,
    /// `max_completion_tokens`
    #[value(name = "max_completion_tokens")]
    MaxCompletionTokens,
}

impl From<LimitField> for MaxTokensField {
    fn from(field: LimitField) -> Self {
        match field {
            LimitField::MaxTokens => Self::MaxTokens,
            LimitField::MaxCompletionTokens => Self::MaxCompletionTokens,
        }
    }
}

fn not_negative(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| "expected a number of at least 0".to_owned())
}

fn rate(text: &str) -> Result<f64, String> {
    not_negative(text).ok().filter(|number| *number > 0.0).ok_or_else(|| "expected a number above 0".to_owned())
}

impl ApiArgs {
    /// The prices, if they are given.
    ///
    /// # Errors
    /// A usage error for one without the other.
    pub fn prices(&self) -> Result<Option<Prices>> {
        match (self.price_in, self.price_out) {
            (Some(input), Some(output)) => Ok(Some(Prices { input, output })),
            (None, None) => Ok(None),
            _ => Err(usage("--price-in and --price-out belong together")),
        }
    }

    /// How answers are written.
    #[must_use]
    pub fn generation(&self) -> Generation {
        let sampling = if self.temperature > 0.0 {
            Sampling::Random { temperature: self.temperature, top_k: None, top_p: None, seed: self.seed, stream: 0 }
        } else {
            Sampling::Greedy
        };
        let (max_new_tokens, top_log_probs) = (self.max_new_tokens as usize, self.top_log_probs);
        Generation { max_new_tokens, sampling, top_log_probs, ..Generation::default() }
    }

    /// What of these options decides about a row: not the key, nor how hard the service is asked.
    #[must_use]
    pub fn settings(&self, generation: &Generation) -> Settings {
        let entries = [
            ("base_url", json!(self.base_url.trim_end_matches('/'))),
            ("api_model", json!(self.api_model)),
            ("max_tokens_field", json!(MaxTokensField::from(self.max_tokens_field))),
            ("generation", json!(generation)),
        ];
        entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    }

    /// Refuses what cannot work, before anything is written or sent. No key is needed for it.
    ///
    /// # Errors
    /// A usage error.
    pub fn check(&self) -> Result<()> {
        self.prices()?;
        self.with_key(None).map(drop)
    }

    /// The model, with the key of the environment.
    ///
    /// # Errors
    /// A usage error for options that cannot work, or if there is no key.
    pub fn model(&self) -> Result<ApiModel> {
        let missing = |error| usage(format!("{error}; set it, name another one with --key-env, or give --no-key"));
        let key = if self.no_key { None } else { Some(ApiKey::from_env(&self.key_env).map_err(missing)?) };
        if key.is_some() && self.base_url.starts_with("http://") && !is_loopback(&self.base_url) {
            tell("note: the key and all texts travel unencrypted: the base URL is http, not https");
        }
        self.with_key(key)
    }

    fn with_key(&self, key: Option<ApiKey>) -> Result<ApiModel> {
        let settings = ApiSettings {
            base_url: self.base_url.clone(),
            model: self.api_model.clone(),
            key,
            concurrency: self.concurrency.into(),
            requests_per_minute: self.requests_per_minute,
            tokens_per_minute: self.tokens_per_minute,
            timeout: Duration::try_from_secs_f64(self.timeout).map_err(usage)?,
            max_attempts: self.max_attempts.into(),
            max_tokens_field: self.max_tokens_field.into(),
            ..ApiSettings::default()
        };
        ApiModel::new(settings).map_err(usage)
    }
}

/// Whether an address is of this machine.
fn is_loopback(url: &str) -> bool {
    let host = url.trim_start_matches("http://");
    ["127.", "localhost", "[::1]"].iter().any(|local| host.starts_with(local))
}
