//! A `tokenizer.json` before the crate `tokenizers` gets it.
//!
//! That crate panics over some files, at once or at a text much later. What is known to do so is looked for here: parts that do
//! nothing are left out, and the others are errors that name the field. What is not known is still caught (`guarded.rs`), but only
//! after the process's panic hook has had its say.

use std::path::Path;

use judge_weights::error::Error;
use serde_json::Value;

/// Parts that change or cut text.
const PARTS: [&str; 4] = ["normalizer", "pre_tokenizer", "post_processor", "decoder"];

/// Takes out of a `tokenizer.json` what does nothing: a table of characters that is null or empty, and an empty prefix. Says whether
/// there was any.
///
/// # Errors
/// `WeightsError::Unsupported` for an empty pattern, pieces of no length, a special token around texts that the post-processor does not
/// describe, and a merge that is shorter than the prefix of its right half.
pub(super) fn check(path: &Path, tokenizer: &mut Value) -> Result<bool, Error> {
    let mut has_changed = false;
    for part in PARTS {
        if let Some(json) = tokenizer.get_mut(part) {
            let problem = |field: &str, found: &str, supported| {
                Error::unsupported(path, format!("{part}.{field}"), found, supported)
            };
            check_part(json, &problem, &mut has_changed)?;
        }
    }
    let Some(model) = tokenizer.get("model") else { return Ok(has_changed) };
    let prefix = model.get("continuing_subword_prefix").and_then(Value::as_str).unwrap_or_default();
    let merges = model.get("merges").and_then(Value::as_array).filter(|_| !prefix.is_empty());
    for merge in merges.into_iter().flatten() {
        let right = match merge {
            Value::String(both) => both.split_once(' ').map(|(_, right)| right),
            both => both.get(1).and_then(Value::as_str),
        };
        if right.is_some_and(|right| right.get(prefix.len()..).is_none()) {
            return Err(Error::unsupported(
                path,
                "model.continuing_subword_prefix",
                format!("{prefix:?}, which the merge {merge} has no room for"),
                "a prefix that the right half of each merge begins with",
            ));
        }
    }
    Ok(has_changed)
}

fn check_part(
    part: &mut Value,
    problem: &impl Fn(&str, &str, &'static str) -> Error,
    has_changed: &mut bool,
) -> Result<(), Error> {
    for list in ["normalizers", "pretokenizers", "processors", "decoders"] {
        for inner in part.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            check_part(inner, problem, has_changed)?;
        }
        if let Some(inner) = part.get_mut(list).and_then(Value::as_array_mut) {
            inner.retain(|part| !part.is_null());
        }
    }
    let kind = part.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    let is_empty = |value: &Value| value.is_null() || value.as_str() == Some("");
    match &*kind {
        "Precompiled" if part.get("precompiled_charsmap").is_none_or(is_empty) => {
            (*part, *has_changed) = (Value::Null, true);
        }
        "Prepend" if part.get("prepend").is_some_and(is_empty) => (*part, *has_changed) = (Value::Null, true),
        "Replace" | "Split" => {
            let pattern = part.get("pattern").unwrap_or(&Value::Null);
            let text = pattern.as_str().or_else(|| pattern.get("String").or_else(|| pattern.get("Regex"))?.as_str());
            if text == Some("") {
                let supported = "a pattern that is not empty";
                return Err(problem(&format!("{kind}.pattern"), "the empty pattern", supported));
            }
        }
        "FixedLength" if part.get("length").and_then(Value::as_u64) == Some(0) => {
            return Err(problem("FixedLength.length", "0", "pieces of at least one character"));
        }
        "TemplateProcessing" => {
            let known = part.get("special_tokens").and_then(Value::as_object);
            let pieces = ["single", "pair"].into_iter().filter_map(|name| part.get(name)?.as_array()).flatten();
            let named = pieces.filter_map(|piece| piece.get("SpecialToken")?.get("id")?.as_str());
            if let Some(name) = named.into_iter().find(|name| known.is_none_or(|known| !known.contains_key(*name))) {
                let supported = "a list with each token that the template puts around texts";
                let found = format!("a list without {name:?}");
                return Err(problem("TemplateProcessing.special_tokens", &found, supported));
            }
        }
        _ => {}
    }
    Ok(())
}
