//! The likeliest alternatives of each token of an answer.

use judge_core::TokenAlternatives;
use serde_json::Value;

/// Above this a log-probability is wrong and not merely rounded.
const ROUNDING: f64 = 1e-3;

/// The tokens of `text` with their alternatives; none if the service shows none, or shows tokens that do not make up the text.
///
/// # Errors
/// For what is there but no list of tokens with log-probabilities.
pub(super) fn read(choice: &Value, text: &str) -> Result<Vec<TokenAlternatives>, String> {
    let content = match choice.get("logprobs").and_then(|logprobs| logprobs.get("content")) {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(content) => content.as_array().ok_or("expected \"logprobs.content\" to be a list")?,
    };
    let (mut found, mut written) = (Vec::new(), Vec::new());
    for entry in content {
        let token = Token::read(entry)?;
        let start = written.len();
        written.extend_from_slice(&token.bytes);
        let mut top = Vec::new();
        let others = entry.get("top_logprobs").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        for token in std::iter::once(Ok(token)).chain(others.iter().map(Token::read)) {
            let Token { bytes, log_prob } = token?;
            if let Ok(text) = String::from_utf8(bytes)
                && !top.iter().any(|(known, _)| *known == text)
            {
                top.push((text, log_prob));
            }
        }
        // What follows a stop text is not part of the answer.
        if start < text.len() {
            found.push(TokenAlternatives { start, end: written.len().min(text.len()), top });
        }
    }
    Ok(if written.starts_with(text.as_bytes()) { found } else { Vec::new() })
}

/// A token that a service shows.
struct Token {
    /// Its bytes, which need not be text: a character may be several tokens.
    bytes: Vec<u8>,
    log_prob: f32,
}

impl Token {
    fn read(entry: &Value) -> Result<Self, String> {
        let text = entry.get("token").and_then(Value::as_str).ok_or("expected \"token\" to be text")?;
        let bytes = match entry.get("bytes") {
            None | Some(Value::Null) => text.as_bytes().to_vec(),
            Some(bytes) => {
                let byte = |byte: &Value| byte.as_u64().and_then(|byte| u8::try_from(byte).ok());
                let bytes: Option<Vec<u8>> = bytes.as_array().and_then(|bytes| bytes.iter().map(byte).collect());
                bytes.ok_or("expected \"bytes\" to be a list of bytes")?
            }
        };
        let log_prob = entry.get("logprob").and_then(Value::as_f64).filter(|log_prob| *log_prob <= ROUNDING);
        let log_prob = log_prob.ok_or_else(|| format!("expected \"logprob\" of {text:?} to be at most 0"))?;
        Ok(Self { bytes, log_prob: log_prob.clamp(f64::from(f32::MIN), 0.0) as f32 })
    }
}
