//! Conversations as data sets have them, as messages for a chat template.

use judge_core::Message;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::rows::row::describe;

/// Why a value is no conversation.
pub(crate) enum Problem {
    /// It is no list.
    NoList,
    /// A turn of it, counted from 1, is none that is read: what was expected, and what was found.
    Turn { turn: usize, expected: &'static str, found: String },
}

/// What is read, in words.
pub(crate) const MESSAGES: &str =
    "a list of objects with the strings \"role\" and \"content\", or \"from\" and \"value\"";

const NO_CALLS: &str = "a turn without calls of tools";
const NO_REASONING: &str = "a turn whose reasoning is in its \"content\"";
/// Fields of a turn that chat templates show and a [`Message`] does not have, and what is expected where one of them says something.
pub(crate) const UNREAD: [(&str, &str); 5] = [
    ("tool_calls", NO_CALLS),
    ("function_call", NO_CALLS),
    ("reasoning_content", NO_REASONING),
    ("reasoning", NO_REASONING),
    ("thinking", NO_REASONING),
];

/// A turn in either of its forms; values are looked at one by one, so that an error can name the one that is wrong.
#[derive(Deserialize)]
struct Turn<'a> {
    #[serde(borrow)]
    role: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    from: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    value: Option<&'a RawValue>,
    tool_calls: Option<Box<RawValue>>,
    function_call: Option<Box<RawValue>>,
    reasoning_content: Option<Box<RawValue>>,
    reasoning: Option<Box<RawValue>>,
    thinking: Option<Box<RawValue>>,
}

/// `null` is a value that is there: an error says so.
fn present<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// A part of a content, of which texts are read.
#[derive(Deserialize)]
struct Part {
    r#type: String,
    text: Option<String>,
}

/// Reads a list of turns, objects with `role` and `content` or with `from` and `value`; also JSON text that holds such a list, as some
/// data sets keep it. A content is text, or a list of parts of the type `text`, which are put together as they are.
///
/// # Errors
/// What it is instead. A turn without a text is one of them, and so is one with a picture, or with something in one of [`UNREAD`].
pub(crate) fn parse(json: &str) -> Result<Vec<Message>, Problem> {
    let inside: Option<String> = serde_json::from_str(json).ok();
    let json = inside.as_deref().unwrap_or(json);
    let turns: Vec<&RawValue> = serde_json::from_str(json).map_err(|_| Problem::NoList)?;
    let message = |(index, json): (usize, &&RawValue)| {
        message(json.get()).map_err(|(expected, found)| Problem::Turn { turn: index + 1, expected, found })
    };
    turns.iter().enumerate().map(message).collect()
}

fn message(json: &str) -> Result<Message, (&'static str, String)> {
    const TURN: &str = "an object with \"role\" and \"content\", or \"from\" and \"value\"";
    let turn: Turn<'_> = serde_json::from_str(json).map_err(|_| (TURN, describe(json)))?;
    let unread = [turn.tool_calls, turn.function_call, turn.reasoning_content, turn.reasoning, turn.thinking];
    for ((name, expected), value) in UNREAD.into_iter().zip(unread) {
        if value.is_some_and(|json| !serde_json::from_str(json.get()).is_ok_and(|value: Value| says_nothing(&value))) {
            return Err((expected, format!("{name:?}")));
        }
    }
    let (role, content, [role_is, content_is]) = match (turn.role, turn.from) {
        (Some(role), _) => (role, turn.content, ["role to be text", CONTENT]),
        (None, Some(from)) => (from, turn.value, ["from to be text", "value to be text"]),
        (None, None) => return Err((TURN, describe(json))),
    };
    let role: String = serde_json::from_str(role.get()).map_err(|_| (role_is, describe(role.get())))?;
    let content = match content {
        None => return Err((content_is, "none".to_owned())),
        Some(content) => text(content.get()).ok_or_else(|| (content_is, describe(content.get())))?,
    };
    Ok(match (turn.role.is_some(), role.as_str()) {
        // ShareGPT's names of the two sides; others stay, for the chat template to know or to refuse.
        (false, "human") => Message::user(content),
        (false, "gpt" | "chatgpt") => Message::new("assistant", content),
        _ => Message::new(role, content),
    })
}

/// Whether a value is null, false, empty, or holds nothing but such values, as files fill fields that other rows have.
fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => is_blank(text),
        Value::Array(items) => items.iter().all(says_nothing),
        Value::Object(fields) => fields.values().all(says_nothing),
        Value::Bool(true) | Value::Number(_) => false,
    }
}

/// Whether a text says nothing: white space, or JSON without a value, as tables keep it.
pub(crate) fn is_blank(text: &str) -> bool {
    ["", "null", "[]", "{}"].contains(&text.trim())
}

/// What a content may be, in words.
const CONTENT: &str = "content to be text, or a list of parts {\"type\": \"text\", \"text\"}";

fn text(json: &str) -> Option<String> {
    if let Ok(text) = serde_json::from_str(json) {
        return Some(text);
    }
    let parts: Vec<Part> = serde_json::from_str(json).ok()?;
    parts.into_iter().map(|part| part.text.filter(|_| part.r#type == "text")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<Vec<(String, String)>, String> {
        match parse(json) {
            Ok(messages) => Ok(messages.into_iter().map(|message| (message.role, message.content)).collect()),
            Err(Problem::NoList) => Err("no list".to_owned()),
            Err(Problem::Turn { turn, expected, found }) => Err(format!("{turn}: expected {expected}, found {found}")),
        }
    }

    #[test]
    fn every_form_of_a_turn_is_read() {
        let turn = |role: &str, content: &str| (role.to_owned(), content.to_owned());
        let both = vec![turn("user", "hi there"), turn("assistant", "yes")];
        for json in [
            r#"[{"role":"user","content":"hi there"},{"from":"gpt","value":"yes","weight":1}]"#,
            r#"[{"role":"user","content":[{"type":"text","text":"hi "},{"type":"text","text":"there"}]},{"role":"assistant","content":"yes","tool_calls":null}]"#,
            r#"[{"role":"user","content":"hi there","function_call":{"name":null}},{"role":"assistant","content":"yes","tool_calls":[],"reasoning":" \n"}]"#,
            r#"[{"role":"user","content":"hi there","function_call":"null"},{"role":"assistant","content":"yes","tool_calls":"[]"}]"#,
            r#""[{\"from\": \"human\", \"value\": \"hi there\"}, {\"role\": \"assistant\", \"content\": \"yes\"}]""#,
        ] {
            assert_eq!(read(json), Ok(both.clone()), "{json}");
        }
        assert_eq!(read(r#"[{"role":"human","content":""},{"from":"tool","value":"x"}]"#).unwrap()[1].0, "tool");
        assert_eq!(read("[]"), Ok(vec![]));
    }

    #[test]
    fn what_is_no_turn_is_named() {
        for (json, said) in [
            ("{}", "no list"),
            ("\"hello\"", "no list"),
            ("[1]", "1: expected an object with \"role\" and \"content\", or \"from\" and \"value\", found number 1"),
            (
                r#"[{"role":"user","content":"a"},{"role":"assistant","content":null,"tool_calls":[{}]}]"#,
                "2: expected content to be text, or a list of parts {\"type\": \"text\", \"text\"}, found null",
            ),
            (
                r#"[{"role":"user"}]"#,
                "1: expected content to be text, or a list of parts {\"type\": \"text\", \"text\"}, found none",
            ),
            (
                r#"[{"role":"user","content":[{"type":"image_url","image_url":{}}]}]"#,
                "1: expected content to be text, or a list of parts {\"type\": \"text\", \"text\"}, found list [{\"type\":\"image_url\",\"image_url\":{}}]",
            ),
            (
                r#"[{"role":"user","content":"a"},{"role":"assistant","content":"","tool_calls":[{"type":"function","function":{"name":"get_weather","arguments":{"city":"Oslo"}}}]}]"#,
                "2: expected a turn without calls of tools, found \"tool_calls\"",
            ),
            (
                r#"[{"from":"gpt","value":"a","reasoning_content":"hm"}]"#,
                "1: expected a turn whose reasoning is in its \"content\", found \"reasoning_content\"",
            ),
            (
                r#"[{"from":"gpt","value":"a","thinking":"\ud83d"}]"#,
                "1: expected a turn whose reasoning is in its \"content\", found \"thinking\"",
            ),
            (r#"[{"from":3,"value":"x"}]"#, "1: expected from to be text, found number 3"),
            (
                r#"[{"role":"user","content":"\ud83d"}]"#,
                "1: expected content to be text, or a list of parts {\"type\": \"text\", \"text\"}, found a lone surrogate in string \"\\ud83d\"",
            ),
        ] {
            assert_eq!(read(json), Err(said.to_owned()), "{json}");
        }
    }
}
