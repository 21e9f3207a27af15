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
        Value::String(text) if is_other_list(text) => None,
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

/// Whether a text is a list in a form that is not read: a tuple or a set of Python, an array as Postgres writes it (`{"a","b"}`), or
/// numpy's `array([…])`.
fn is_other_list(text: &str) -> bool {
    let text = text.trim();
    let inside = |open: char, close: char| text.strip_prefix(open).and_then(|text| text.strip_suffix(close));
    let texts = |inside: &str| list_of_cell(&format!("[{inside}]")).map_or(0, |texts| texts.len());
    let is_array = |rest: &str| rest.starts_with(['"', '\'']) && rest.ends_with(')');
    text.strip_prefix("array([").is_some_and(is_array)
        || inside('{', '}').is_some_and(|inside| texts(inside) > 0)
        // One text in quotes and brackets is no tuple: that of one ends with a comma.
        || inside('(', ')').is_some_and(|inside| texts(inside) > usize::from(!inside.ends_with(',')))
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
            // Brackets around no list.
            (json!("('In Paris.')"), Some(vec!["('In Paris.')"])),
            (json!("('a') and ('b')"), Some(vec!["('a') and ('b')"])),
            (json!(r#"{"title": "a"}"#), Some(vec![r#"{"title": "a"}"#])),
            (json!("array([1, 2]) is one (of two)"), Some(vec!["array([1, 2]) is one (of two)"])),
            // A tuple, a set, an array of Postgres and one of numpy are none that is read.
            (json!("('In Paris.', 'In 1931.')"), None),
            (json!("('In Paris.',)"), None),
            (json!("{'In Paris.', 'In 1931.'}"), None),
            (json!(r#"{"In Paris.","It's \"here\"."}"#), None),
            (json!(r#"{"In Paris."}"#), None),
            (json!("array(['In Paris.', 'In 1931.'], dtype=object)"), None),
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
