//! The options of labelling by a service.

use clap::Args;
use judge_core::request::{Generation, Sampling};
use judge_data::Settings;
use judge_models::{ApiSettings, MaxTokensField};
use serde_json::json;

use judge_cli::args::numbers::{at_least, not_negative};
use judge_cli::args::one_of;
use judge_cli::args::service::ServiceArgs;

/// The values of `--max-tokens-field`.
const LIMIT_FIELDS: [(&str, MaxTokensField); 2] =
    [("max_tokens", MaxTokensField::MaxTokens), ("max_completion_tokens", MaxTokensField::MaxCompletionTokens)];

/// Which service is asked, how, and how hard.
#[derive(Args, Clone, Debug)]
pub struct ApiArgs {
    /// Where the service's OpenAI-compatible API begins; requests go to URL/chat/completions and nowhere else
    #[arg(long, value_name = "URL", help_heading = "Service")]
    pub base_url: String,
    /// The model, as the service calls it
    #[arg(long, value_name = "NAME", help_heading = "Service")]
    pub api_model: String,
    /// How the service calls the bound on new tokens
    #[arg(long, value_parser = one_of(&LIMIT_FIELDS), default_value = "max_tokens", help_heading = "Service")]
    pub max_tokens_field: MaxTokensField,
    /// Upper bound on generated tokens for one answer
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = at_least::<u32>(1), help_heading = "Service")]
    pub max_new_tokens: u32,
    /// Temperature; 0 takes the likeliest token each time
    #[arg(long, value_name = "T", default_value_t = 0.0, value_parser = not_negative, help_heading = "Service")]
    pub temperature: f64,
    /// Seed of what is drawn, for services that have one; without effect at temperature 0
    #[arg(long, value_name = "SEED", value_parser = at_least::<u64>(0), default_value_t = 0, help_heading = "Service")]
    pub seed: u64,
    /// How many alternatives of each token are asked for, for the probabilities of the grades; 0 for services that refuse
    #[arg(long, value_name = "K", value_parser = at_least::<u8>(0), default_value_t = 20, help_heading = "Service")]
    pub top_log_probs: u8,
    #[command(flatten)]
    pub service: ServiceArgs,
}

impl ApiArgs {
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
            ("max_tokens_field", json!(self.max_tokens_field)),
            ("generation", json!(generation)),
        ];
        entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    }

    /// The service that they name, without its key and limits.
    #[must_use]
    pub fn named(&self) -> ApiSettings {
        ApiSettings {
            base_url: self.base_url.clone(),
            model: self.api_model.clone(),
            max_tokens_field: self.max_tokens_field,
            ..ApiSettings::default()
        }
    }
}
