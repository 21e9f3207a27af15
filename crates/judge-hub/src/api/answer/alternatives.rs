//! The likeliest alternatives of each token of an answer, from the field `logprobs` of a choice.
//!
//! ```text
//! logprobs.content: [ { token, bytes?, logprob, top_logprobs: [ { token, bytes?, logprob }, … ] }, … ]
//! ```
//!
//! A service counts positions in tokens and judges count them in bytes of the text. Here the
//! tokens' bytes are laid end to end and compared with the text: if they do not begin with it, the
//! list is of something else (a chain of thought, a template's tokens), and none of it is used.

use judge_core::reading::TokenAlternatives;
use serde_json::Value;

/// Above this a log-probability is wrong and not merely rounded. From 0 to here it is taken for 0.
const ROUNDING: f64 = 1e-3;

/// The tokens of `text` with their alternatives, in order. Empty if the service shows none, null
/// for one of them, or tokens that do not make up the text. Tokens behind the text, such as those of a stop text,
/// are left out, and one that reaches beyond its end is cut there.
///
/// In each list the written token comes first, the others follow in the service's order. A text
/// appears once, with the sum of the probabilities of its tokens; the written token counts once although it is among
/// the alternatives too. Tokens that are not UTF-8 by themselves are left out.
///
/// # Errors
/// For what is there but is not a list of tokens with log-probabilities.
pub(super) fn read<'a>(choice: &'a Value, text: &str) -> Result<Vec<TokenAlternatives>, String> {
    let content = match choice.get("logprobs").and_then(|logprobs| logprobs.get("content")) {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(content) => content.as_array().ok_or("expected \"logprobs.content\" to be a list")?,
    };
    // Some servers write null for a probability that is not a number; then there are none to read.
    let others = |entry: &'a Value| entry.get("top_logprobs").and_then(Value::as_array).into_iter().flatten();
    let is_none = |entry: &Value| entry.is_null() || entry.get("logprob").is_some_and(Value::is_null);
    if content.iter().any(|entry| is_none(entry) || others(entry).any(is_none)) {
        return Ok(Vec::new());
    }
    let (mut found, mut written) = (Vec::new(), Vec::new());
    for entry in content {
        let token = Token::read(entry)?;
        let start = written.len();
        written.extend_from_slice(&token.bytes);
        let mut others: Vec<Token> = others(entry).map(Token::read).collect::<Result<_, _>>()?;
        // Another token may have the same spelling: the written one is that with the same log-probability.
        let far = |at: &usize| (others[*at].log_prob - token.log_prob).abs();
        let same = (0..others.len()).filter(|&at| others[at].bytes == token.bytes);
        if let Some(own) = same.min_by(|one, other| far(one).total_cmp(&far(other))) {
            others.remove(own);
        }
        let mut top: Vec<(String, f32)> = Vec::new();
        for Token { bytes, log_prob } in std::iter::once(token).chain(others) {
            let Ok(text) = String::from_utf8(bytes) else { continue };
            match top.iter_mut().find(|(known, _)| *known == text) {
                Some((_, sum)) => *sum = added(*sum, log_prob),
                None => top.push((text, log_prob)),
            }
        }
        // What follows a stop text is not part of the answer.
        if start < text.len() {
            found.push(TokenAlternatives { start, end: written.len().min(text.len()), top });
        }
    }
    Ok(if written.starts_with(text.as_bytes()) { found } else { Vec::new() })
}

/// `ln(exp(one) + exp(other))`, at most 0.
fn added(one: f32, other: f32) -> f32 {
    let sum = (f64::from(one).exp() + f64::from(other).exp()).ln().min(0.0);
    (sum as f32).max(one).max(other)
}

/// A token that a service shows, written or an alternative.
struct Token {
    /// Its bytes, which need not be text: a character may be several tokens.
    bytes: Vec<u8>,
    /// `ln p`, finite and at most 0.
    log_prob: f32,
}

impl Token {
    /// Reads an object with `token`, `logprob` and perhaps `bytes`. Without `bytes` they are those
    /// of the text.
    ///
    /// # Errors
    /// For a field of another kind, bytes above 255, or a log-probability that is absent or above
    /// [`ROUNDING`].
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
