//! The forms in which people have retrieved contexts.

use serde_json::Value;

use crate::rows::cell::list_of_text;

/// What contexts are read from, in words.
pub(super) const CONTEXTS: &str = "a list of texts, or of objects with the text in `page_content`, `text` or `content`; one text; or a list of \
                                   texts as Python writes it";

/// Where an object has its text.
const TEXT: [&str; 3] = ["page_content", "text", "content"];

/// The contexts of a JSON value; `None` for what is none.
pub(super) fn contexts(json: &Value) -> Option<Vec<String>> {
    match json {
        Value::Array(all) => all.iter().map(text).collect(),
        Value::String(text) if looks_like_a_list(text) => list_of_cell(text),
        one => text(one).map(|text| vec![text]),
    }
}

/// The text of a value, or of an object's field.
pub(crate) fn text(json: &Value) -> Option<String> {
    match json {
        Value::String(text) => Some(text.clone()),
        Value::Object(fields) => {
            let mut texts = TEXT.iter().filter_map(|name| fields.get(*name));
            texts.find_map(Value::as_str).map(str::to_owned)
        }
        _ => None,
    }
}

/// Whether a text seems to be a list that a table's cell holds: its first character is a bracket, and its last.
fn looks_like_a_list(text: &str) -> bool {
    let text = text.trim();
    text.starts_with('[') && text.ends_with(']') && text.len() > 1
}

/// The texts of a list that a table's cell holds, in JSON or as Python's `repr` writes it.
pub(super) fn list_of_cell(text: &str) -> Option<Vec<String>> {
    let all: Vec<Value> = serde_json::from_str(&list_of_text(text)?).ok()?;
    all.iter().map(self::text).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn contexts_are_read_in_the_forms_that_people_have() {
        for (json, expected) in [
            (json!(["a", "b"]), Some(vec!["a", "b"])),
            (json!([]), Some(vec![])),
            (json!("[]"), Some(vec![])),
            (json!("one text"), Some(vec!["one text"])),
            (json!("[1] In 1931 it was opened."), Some(vec!["[1] In 1931 it was opened."])),
            (json!([{"page_content": "a", "metadata": {}}, {"id": 2, "text": "b"}]), Some(vec!["a", "b"])),
            (json!({"content": "a", "score": 0.5}), Some(vec!["a"])),
            (json!(r#"["a", "b\n"]"#), Some(vec!["a", "b\n"])),
            (json!(r#"['It\'s', "Joe's", 'a\n\x41\u00e9\U0001f642\\',]"#), Some(vec!["It's", "Joe's", "a\nAé🙂\\"])),
            // numpy has no commas; a call is no text.
            (json!("['a' 'b']"), None),
            (json!("[Document('a')]"), None),
            (json!("['a', 1]"), None),
            (json!("['a'] ['b']"), None),
            (json!(["a", 1]), None),
            (json!([{"title": "a"}]), None),
            (json!(7), None),
        ] {
            let found = contexts(&json);
            let found = found.as_ref().map(|all| all.iter().map(String::as_str).collect::<Vec<_>>());
            assert_eq!(found, expected, "{json}");
        }
    }
}
