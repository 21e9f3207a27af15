//! What the questions are about: a text, or messages and calls of tools, as a state.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::super::fields::{Fields, Problems, each, is_object_or_list, named};

const ROLES: [&str; 4] = ["user", "developer", "system", "assistant"];

/// A state of an input: a text is itself; a list is one of `{"role", "content"}` and of calls and outputs, with what identifies them alone.
pub(super) fn state(input: Value, fields: &mut Fields<'_>, images: &mut bool) -> Option<Value> {
    let list = match input {
        Value::String(_) => return Some(input),
        Value::Array(list) if !list.is_empty() => list,
        found => {
            fields.wrong("input", "value_error", "text, or a list of at least one message", &found);
            return None;
        }
    };
    let at = fields.at("input");
    let mut calls = HashSet::new();
    each(&at, list, |loc, json| item(json, &loc, fields.problems(), &mut calls, images)).map(Value::Array)
}

/// One item. `calls` are the kinds and ids of calls before it.
fn item(
    json: Value,
    loc: &[Value],
    problems: &mut Problems,
    calls: &mut HashSet<(&'static str, String)>,
    images: &mut bool,
) -> Option<Value> {
    let json = problems.object_at(json, loc, "a message, which is an object")?;
    let kind = json.get("type").and_then(Value::as_str).unwrap_or("message").to_owned();
    let (known, call): (&[&str], _) = match kind.as_str() {
        "message" => (&["type", "role", "content", "phase"], ""),
        "function_call" => (&["type", "id", "call_id", "name", "namespace", "arguments", "status"], "function"),
        "custom_tool_call" => (&["type", "id", "call_id", "name", "namespace", "input", "status"], "tool"),
        "function_call_output" => (&["type", "id", "call_id", "output", "status"], "function"),
        "custom_tool_call_output" => (&["type", "id", "call_id", "output", "status"], "tool"),
        _ => {
            let loc = [loc, &[json!("type")]].concat();
            let expected = "message, function_call, function_call_output, custom_tool_call or custom_tool_call_output";
            problems.add(&loc, "literal_error", format!("expected {expected}, found {kind:?}"));
            return None;
        }
    };
    let mut fields = Fields::new(json, loc, known, problems);
    match kind.as_str() {
        "message" => message(&mut fields, images),
        "function_call" | "custom_tool_call" => {
            let what = if call == "function" { "arguments" } else { "input" };
            let (id, name, given) = (fields.text("call_id"), fields.text("name"), fields.text(what));
            let (id, name, given) = (id?, name?, given?);
            calls.insert((call, id.clone()));
            Some(json!({"type": kind, "call_id": id, "name": name, what: given}))
        }
        _ => {
            let id = fields.text("call_id");
            let output = fields
                .required("output")
                .and_then(|found| content(found, "output", &["input_text", "input_image"], &mut fields, images));
            let (id, output) = (id?, output?);
            let key = (call, id);
            let is_known = calls.contains(&key);
            let id = key.1;
            if !is_known {
                fields.wrong("call_id", "value_error", "the id of a call before it", &json!(id));
                return None;
            }
            Some(json!({"type": kind, "call_id": id, "output": output}))
        }
    }
}

fn message(fields: &mut Fields<'_>, images: &mut bool) -> Option<Value> {
    let role = fields.text("role")?;
    let parts: &[&str] = match role.as_str() {
        "user" => &["input_text", "input_json", "input_image"],
        "developer" | "system" => &["input_text"],
        "assistant" => &["output_text", "refusal"],
        _ => {
            fields.wrong("role", "literal_error", &ROLES.join(", "), &json!(role));
            return None;
        }
    };
    let found = fields.required("content")?;
    let content = content(found, "content", parts, fields, images)?;
    Some(json!({"role": role, "content": content}))
}

/// A text, or parts of the `allowed` types: texts alone are one text with line breaks between, and with JSON among them they are a list.
pub(super) fn content(
    found: Value,
    name: &str,
    allowed: &[&str],
    fields: &mut Fields<'_>,
    images: &mut bool,
) -> Option<Value> {
    let list = match found {
        Value::String(_) => return Some(found),
        Value::Array(list) if !list.is_empty() => list,
        found => {
            fields.wrong(name, "value_error", "text, or a list of at least one part", &found);
            return None;
        }
    };
    let at = fields.at(name);
    let mut parts = each(&at, list, |loc, json| part(json, &loc, allowed, fields.problems(), images))?;
    let texts: Option<Vec<&str>> = parts.iter().map(Value::as_str).collect();
    match texts {
        Some(texts) => Some(texts.join("\n").into()),
        None if parts.len() == 1 => parts.pop(),
        None => Some(Value::Array(parts)),
    }
}

/// A text or JSON; `None` where something is wrong with it, which is told, and for an image.
fn part(json: Value, loc: &[Value], allowed: &[&str], problems: &mut Problems, images: &mut bool) -> Option<Value> {
    let json = problems.object_at(json, loc, "a part, which is an object")?;
    let kind = json.get("type").and_then(Value::as_str).unwrap_or_default();
    let Some(kind) = allowed.iter().copied().find(|known| *known == kind) else {
        let found = json.get("type").map_or_else(|| "nothing".to_owned(), named);
        let loc = [loc, &[json!("type")]].concat();
        problems.add(&loc, "literal_error", format!("expected {}, found {found}", allowed.join(" or ")));
        return None;
    };
    match kind {
        "input_image" => {
            *images = true;
            None
        }
        "input_json" => {
            let mut fields = Fields::new(json, loc, &["type", "data"], problems);
            match fields.required("data")? {
                data if is_object_or_list(&data) => Some(data),
                found => {
                    fields.wrong("data", "value_error", "an object or a list", &found);
                    None
                }
            }
        }
        _ => {
            let name = if kind == "refusal" { "refusal" } else { "text" };
            let known = ["type", name, "prompt_cache_breakpoint", "annotations", "logprobs"];
            Fields::new(json, loc, &known, problems).text(name).map(Value::String)
        }
    }
}
