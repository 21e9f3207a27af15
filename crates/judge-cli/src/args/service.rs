//! The options of commands that ask a service, and the client that they name.

use std::net::IpAddr;
use std::ops::ControlFlow;
use std::time::Duration;

use anyhow::Result;
use axum::http::Uri;
use clap::Args;
use judge_core::runner::RunEvent;
use judge_core::{Reason, Verdict};
use judge_data::Observer;
use judge_models::{ApiKey, ApiModel, ApiSettings, ApiUsage, Prices};

use crate::args::numbers::{at_least, not_negative, positive, seconds};
use crate::terminal::console::{counted, say, tell, usage};
use crate::terminal::pace::Watch;

/// How a service is asked, and how hard.
#[derive(Args, Clone, Debug)]
pub struct ServiceArgs {
    /// The environment variable that holds the key
    #[arg(
        long,
        value_name = "NAME",
        default_value = "OPENAI_API_KEY",
        requires = "base_url",
        help_heading = "Service"
    )]
    pub key_env: String,
    /// The service asks for no key, and none is sent
    #[arg(long, conflicts_with = "key_env", requires = "base_url", help_heading = "Service")]
    pub no_key: bool,
    /// Most requests in flight at once
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = at_least::<u16>(1), requires = "base_url", help_heading = "Service")]
    pub concurrency: u16,
    /// Most requests a minute, repeated ones included
    #[arg(long, value_name = "N", value_parser = positive, requires = "base_url", help_heading = "Service")]
    pub requests_per_minute: Option<f64>,
    /// Most tokens a minute, read and written
    #[arg(long, value_name = "N", value_parser = positive, requires = "base_url", help_heading = "Service")]
    pub tokens_per_minute: Option<f64>,
    /// Longest time for one answer, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 120.0, value_parser = seconds, requires = "base_url", help_heading = "Service")]
    pub timeout: f64,
    /// How often a request is sent before its failure ends the run
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = at_least::<u16>(1), requires = "base_url", help_heading = "Service")]
    pub max_attempts: u16,
    /// Price of a million tokens that are read
    #[arg(long, value_name = "PRICE", value_parser = not_negative, requires = "base_url", help_heading = "Service")]
    pub price_in: Option<f64>,
    /// Price of a million tokens that are written
    #[arg(long, value_name = "PRICE", value_parser = not_negative, requires = "base_url", help_heading = "Service")]
    pub price_out: Option<f64>,
}

impl ServiceArgs {
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

    /// Refuses what cannot work, before anything is written or sent. No key is needed for it.
    ///
    /// # Errors
    /// A usage error.
    pub fn check(&self, of: ApiSettings) -> Result<()> {
        self.prices()?;
        self.with_key(of, None).map(drop)
    }

    /// The client for the service that the settings name, with the key of the environment. These options take the place of the settings'
    /// own limits.
    ///
    /// # Errors
    /// A usage error for options that cannot work, or if there is no key.
    pub fn model(&self, of: ApiSettings) -> Result<ApiModel> {
        let missing = |error| usage(format!("{error}; set it, name another one with --key-env, or give --no-key"));
        let key = if self.no_key { None } else { Some(ApiKey::from_env(&self.key_env).map_err(missing)?) };
        if key.is_some() && of.base_url.starts_with("http://") && !is_loopback(&of.base_url) {
            tell("note: the key and all texts travel unencrypted: the base URL is http, not https");
        }
        self.with_key(of, key)
    }

    fn with_key(&self, of: ApiSettings, key: Option<ApiKey>) -> Result<ApiModel> {
        let settings = ApiSettings {
            key,
            concurrency: self.concurrency.into(),
            requests_per_minute: self.requests_per_minute,
            tokens_per_minute: self.tokens_per_minute,
            timeout: Duration::from_secs_f64(self.timeout),
            max_attempts: self.max_attempts.into(),
            ..of
        };
        ApiModel::new(settings).map_err(usage)
    }
}

/// Shows what a run has cost so far, and keeps why the first request had no answer.
pub struct Spending<'a> {
    /// The run's pace.
    pub watch: Watch,
    model: &'a ApiModel,
    prices: Option<&'a Prices>,
    /// Why the first row had no answer.
    pub unanswered: Option<String>,
}

impl<'a> Spending<'a> {
    /// Of a run that asks this model, from now on.
    #[must_use]
    pub fn new(watch: Watch, model: &'a ApiModel, prices: Option<&'a Prices>) -> Self {
        Self { watch, model, prices, unanswered: None }
    }
}

impl<Item> Observer<Item> for Spending<'_> {
    fn begin(&mut self, before: usize, rows: usize) {
        self.watch.start(before, rows);
    }

    fn see(&mut self, event: &RunEvent<Item>) -> ControlFlow<()> {
        if let RunEvent::Item(result) = event
            && let [Verdict::Unscored(why)] = &result.verdicts[..]
            && why.reason == Reason::NoAnswer
        {
            self.unanswered.get_or_insert_with(|| why.detail.clone());
        }
        self.watch.note(so_far(self.model, self.prices));
        self.watch.see(event)
    }
}

/// Tokens and cost so far, in a few words.
fn so_far(model: &ApiModel, prices: Option<&Prices>) -> String {
    let usage = model.usage();
    let cost = prices.map_or_else(String::new, |prices| format!(", cost {:.4}", usage.cost(prices)));
    format!("{} requests, {} tokens{cost}", usage.requests, usage.prompt_tokens + usage.completion_tokens)
}

/// Says what a service was used for since this start.
///
/// # Errors
/// If it cannot be written.
pub fn say_usage(model: &ApiModel, prices: Option<&Prices>) -> Result<()> {
    let ApiUsage { requests, retries, prompt_tokens, completion_tokens, uncounted, .. } = model.usage();
    let cost = match prices {
        Some(prices) => format!("cost {:.4} at these prices", model.usage().cost(prices)),
        None => "no prices given".to_owned(),
    };
    say(format_args!(
        "this start: {requests} requests, {retries} of them repeated; {prompt_tokens} tokens read, {completion_tokens} written; {cost}"
    ))?;
    if uncounted > 0 {
        say(format_args!("of {} the service did not count the tokens", counted(uncounted as usize, "answer")))?;
    }
    let models = model.stated_models();
    if !models.is_empty() {
        say(format_args!("the service says that it answered with {}", models.join(", ")))?;
    }
    Ok(())
}

/// Whether an address is of this machine.
#[must_use]
pub fn is_loopback(url: &str) -> bool {
    url.parse::<Uri>().is_ok_and(|url| url.host().is_some_and(is_loopback_host))
}

/// Whether a host, as an address has it, is this machine itself: `localhost`, or a loopback address. Any other name may be anybody's,
/// however it begins.
pub fn is_loopback_host(host: &str) -> bool {
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    match address.parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback(),
        Err(_) => host.eq_ignore_ascii_case("localhost"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_of_this_machine_by_their_host() {
        for local in [
            "http://localhost:8080/v1",
            "http://LOCALHOST",
            "http://127.0.0.1:1/v1",
            "http://127.9.9.9",
            "http://[::1]:8080",
        ] {
            assert!(is_loopback(local), "{local}");
        }
        for other in [
            "http://localhost.evil.com",
            "http://127.evil.com/v1",
            "http://localhost@evil.com",
            "http://[2001:db8::1]/v1",
            "http://10.0.0.1",
            "nothing",
        ] {
            assert!(!is_loopback(other), "{other}");
        }
    }
}
