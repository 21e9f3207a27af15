//! What is sent: a request as the JSON body of a chat completion, or a raw prompt as that of a decision.
//!
//! `call` is the only way in. It refuses what a service cannot bring before anything is sent, so a
//! run fails on the request and not on a strange answer. It makes no choices of its own: what the
//! request does not say is left to the service, except for the fields below.
//!
//! | field | value |
//! |---|---|
//! | `model` | the setting |
//! | `messages` | role and content of each message, as they are |
//! | `n` | 1 |
//! | `max_tokens` or `max_completion_tokens` | `Generation::max_new_tokens` |
//! | `temperature` | 0 for greedy writing, else the request's |
//! | `top_p`, `seed` | only for random draws; the seed from `seed_of` |
//! | `stop` | only if the request has stop texts |
//! | `logprobs`, `top_logprobs` | only if alternatives are asked for |
//!
//! The same request gives the same bytes, whatever its number. The body of a decision is the prompt with the setting's `model`.

use judge_core::{
    Prompt, Reason, Request, Unscored,
    decision::exact_json,
    model::BackboneError,
    request::{Generation, Sampling},
};
use serde_json::{Map, Value, json};

use super::{ApiRoute, ApiSettings, backoff};

/// Bytes of text to a token, a rule of thumb for limits per minute. The service's own count
/// replaces the estimate after the answer.
const BYTES_PER_TOKEN: usize = 4;

/// A request that is ready to be sent, as often as it takes.
pub(super) struct Call {
    /// The body, JSON in UTF-8.
    pub(super) body: Vec<u8>,
    /// How the text is written; `answer` needs the stop texts and whether alternatives were asked
    /// for.
    pub(super) generation: Generation,
    /// The estimate for the limit of tokens per minute: the messages' bytes by [`BYTES_PER_TOKEN`],
    /// 8 for each message's frame, and all tokens that may be written.
    pub(super) tokens: u64,
}

/// A request as a call. The inner error is the reason for which the item cannot be asked about: a
/// prompt whose messages have no text. `index` is the request's number in the run, for errors.
///
/// # Errors
/// [`BackboneError::Unsupported`] for what a service does not bring, [`BackboneError::Request`] for
/// a generation that contradicts itself.
pub(super) fn call(
    request: &Request,
    index: usize,
    settings: &ApiSettings,
) -> Result<Result<Call, Unscored>, BackboneError> {
    let unsupported = |what| Err(BackboneError::Unsupported { request: index, what });
    let want = &request.want;
    for (is_wanted, what) in [
        (!want.labels.is_empty(), "label logits"),
        (!want.pooled.is_empty(), "pooled states"),
        (!want.reply.is_empty(), "states of the reply"),
        (!want.attention_entropy.is_empty(), "attention entropies"),
        (want.prompt_log_probs, "log-probabilities of the prompt"),
        (!want.continuations.is_empty(), "log-probabilities of continuations"),
        (want.generate.is_none(), "the length of a prompt without text behind it"),
    ] {
        if is_wanted {
            return unsupported(what);
        }
    }
    let Some(generation) = &want.generate else { return unsupported("nothing") };
    generation.check().map_err(|problem| BackboneError::Request { request: index, problem })?;
    if matches!(settings.route, ApiRoute::Decisions(_)) {
        let Prompt::Raw(body) = &request.prompt else {
            return unsupported("a conversation: the service answers decisions, each of them a raw prompt of JSON");
        };
        // Whole numbers of a state keep their digits.
        let body = exact_json::from_text(body).ok().filter(|body| exact_json::whole_number(body).is_none());
        let Some(Value::Object(mut body)) = body else {
            return unsupported("a raw prompt that is no JSON object: the service answers decisions");
        };
        body.insert("model".to_owned(), json!(settings.model));
        let body = exact_json::to_text(&Value::Object(body)).into_bytes();
        let tokens = (body.len() / BYTES_PER_TOKEN) as u64;
        return Ok(Ok(Call { body, generation: generation.clone(), tokens }));
    }
    // A service puts every text into its own chat template, so a raw prompt would not be the prompt that was asked for.
    let Prompt::Chat { messages, template_args, trusted_prefill, prefill } = &request.prompt else {
        return unsupported("a raw or whole prompt: the service has its own chat template");
    };
    if !template_args.is_empty() {
        return unsupported("variables of the chat template");
    }
    if !(trusted_prefill.is_empty() && prefill.is_empty()) {
        return unsupported("the opening of a reply");
    }
    if request.prompt.is_empty() {
        return Ok(Err(Unscored::new(Reason::EmptyPrompt, "no message has any text")));
    }
    let mut body = Map::new();
    let mut put = |key: &str, value: Value| body.insert(key.to_owned(), value);
    put("model", json!(settings.model));
    put("messages", messages.iter().map(|message| json!({"role": message.role, "content": message.content})).collect());
    put("n", json!(1));
    put(settings.max_tokens_field.as_str(), json!(generation.max_new_tokens));
    match generation.sampling {
        Sampling::Greedy => {
            put("temperature", json!(0));
        }
        Sampling::Random { top_k: Some(_), .. } => return unsupported("the choice among the k likeliest tokens"),
        Sampling::Random { temperature, top_p, seed, stream, .. } => {
            put("temperature", json!(temperature));
            top_p.map(|top_p| put("top_p", json!(top_p)));
            put("seed", json!(seed_of(seed, stream)));
        }
    }
    if !generation.stop.is_empty() {
        put("stop", json!(generation.stop));
    }
    if generation.top_log_probs > 0 {
        put("logprobs", json!(true));
        put("top_logprobs", json!(generation.top_log_probs));
    }
    let read: usize = messages.iter().map(|message| message.content.len() / BYTES_PER_TOKEN + 8).sum();
    let tokens = read.saturating_add(generation.max_new_tokens) as u64;
    let body = Value::Object(body).to_string().into_bytes();
    Ok(Ok(Call { body, generation: generation.clone(), tokens }))
}

/// The seed of a stream, in the 31 bits that every server takes. Stream 0 gets the run's own seed,
/// as far as that fits; the others get seeds that look unrelated.
fn seed_of(seed: u64, stream: u64) -> u64 {
    let mixed = if stream == 0 { seed } else { backoff::mix(seed ^ backoff::mix(stream)) };
    mixed & 0x7FFF_FFFF
}

#[cfg(test)]
mod tests {
    use super::super::MaxTokensField;
    use super::*;
    use judge_core::{Message, Want};

    fn settings() -> ApiSettings {
        ApiSettings { model: "m".into(), ..ApiSettings::default() }
    }

    fn sent(prompt: Prompt, generation: Generation, settings: &ApiSettings) -> Result<Value, String> {
        let want = Want { generate: Some(generation), ..Want::default() };
        match call(&Request { prompt, want }, 3, settings) {
            Ok(Ok(call)) => Ok(serde_json::from_slice(&call.body).unwrap()),
            Ok(Err(unscored)) => Err(unscored.to_string()),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn a_request_becomes_a_body() {
        let prompt = Prompt::chat(vec![Message::new("system", "Be brief."), Message::user("\"2\" + 2?")]);
        let plain = sent(prompt.clone(), Generation { max_new_tokens: 9, ..Generation::default() }, &settings());
        let messages = json!([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "\"2\" + 2?"}]);
        assert_eq!(
            plain.unwrap(),
            json!({"model": "m", "messages": messages, "n": 1, "max_tokens": 9, "temperature": 0})
        );
        let sampling = Sampling::Random { temperature: 0.5, top_k: None, top_p: Some(0.9), seed: 7, stream: 0 };
        let all = Generation { max_new_tokens: 9, sampling, stop: vec!["]]".into()], top_log_probs: 20 };
        let newer = ApiSettings { max_tokens_field: MaxTokensField::MaxCompletionTokens, ..settings() };
        assert_eq!(
            sent(prompt, all, &newer).unwrap(),
            json!({
                "model": "m", "messages": messages, "n": 1, "max_completion_tokens": 9, "temperature": 0.5, "top_p": 0.9, "seed": 7, "stop": ["]]"],
                "logprobs": true, "top_logprobs": 20,
            })
        );
    }

    #[test]
    fn a_raw_prompt_is_the_body_of_a_decision() {
        let route = ApiRoute::Decisions(judge_core::decision::DecisionRoute::SystemOne);
        let of = |prompt| sent(prompt, Generation::default(), &ApiSettings { route, ..settings() });
        let body = of(Prompt::Raw(r#"{"state": "s", "questions": {}}"#.into()));
        assert_eq!(body.unwrap(), json!({"state": "s", "questions": {}, "model": "m"}));
        for (prompt, expected) in [
            (Prompt::user("a"), "a conversation"),
            (Prompt::Raw("[]".into()), "no JSON object"),
            (Prompt::Raw("12345678901234567890123".into()), "no JSON object"),
        ] {
            assert!(of(prompt).unwrap_err().contains(expected));
        }
    }

    #[test]
    fn whole_numbers_of_a_decision_are_sent_with_all_digits() {
        let route = ApiRoute::Decisions(judge_core::decision::DecisionRoute::SystemOne);
        let prompt = Prompt::Raw(r#"{"state":{"n":12345678901234567890123},"questions":{}}"#.into());
        let request = Request { prompt, want: Want { generate: Some(Generation::default()), ..Want::default() } };
        let sent = call(&request, 0, &ApiSettings { route, ..settings() }).unwrap().unwrap();
        let expected = r#"{"state":{"n":12345678901234567890123},"questions":{},"model":"m"}"#;
        assert_eq!(String::from_utf8(sent.body).unwrap(), expected);
    }

    #[test]
    fn samples_have_seeds_of_their_own() {
        assert_eq!(seed_of(42, 0), 42);
        let mut seeds: Vec<u64> = (0..1000).map(|stream| seed_of(42, stream)).collect();
        seeds.sort();
        seeds.dedup();
        assert!(seeds.len() == 1000 && seeds.iter().all(|&seed| seed < 1 << 31));
    }

    #[test]
    fn what_a_service_cannot_do_is_named() {
        let said = |prompt: Prompt, generation| sent(prompt, generation, &settings()).unwrap_err();
        let plain = Generation::default;
        let of_five = Sampling::Random { temperature: 1.0, top_k: Some(5), top_p: None, seed: 0, stream: 0 };
        for (found, expected) in [
            (said(Prompt::Raw("a".into()), plain()), "request 3: this model does not support a raw or whole prompt"),
            (said(Prompt::user("a").with_prefill("b"), plain()), "the opening of a reply"),
            (said(Prompt::user("a").with_trusted_prefill("b"), plain()), "the opening of a reply"),
            (said(Prompt::user("a").with_template_arg("b", json!(1)), plain()), "variables of the chat template"),
            (said(Prompt::user(""), plain()), "empty_prompt"),
            (said(Prompt::user("a"), Generation { max_new_tokens: 0, ..plain() }), "it generates 0 tokens"),
            (said(Prompt::user("a"), Generation { stop: vec![String::new()], ..plain() }), "a stop text is empty"),
            (said(Prompt::user("a"), Generation { sampling: of_five, ..plain() }), "the k likeliest tokens"),
        ] {
            assert!(found.contains(expected), "{found}");
        }
        let nothing = call(&Request { prompt: Prompt::user("a"), want: Want::default() }, 0, &settings());
        assert!(matches!(nothing, Err(BackboneError::Unsupported { request: 0, .. })));
    }
}
