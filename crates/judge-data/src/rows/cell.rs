//! JSON that a text holds, as the cell of a table does.

use std::borrow::Cow;

use serde_json::value::RawValue;

/// JSON, or that which a text holds: a cell of a table has lists and objects so.
pub(crate) fn in_cell(json: &str) -> Cow<'_, str> {
    let text = if json.starts_with('"') { serde_json::from_str::<String>(json).ok() } else { None };
    text.map_or(Cow::Borrowed(json), Cow::Owned)
}

/// JSON, or the list that a text holds, whoever has written it: see [`list_of_text`].
pub(crate) fn list_in_cell(json: &str) -> Cow<'_, str> {
    let list = if json.starts_with('"') { list_of_text(&in_cell(json)) } else { None };
    list.map_or(Cow::Borrowed(json), Cow::Owned)
}

/// The JSON of a list that a text is, in JSON or as Python's `repr` writes one of texts, numbers, `None`, `True` and `False`.
pub(crate) fn list_of_text(text: &str) -> Option<String> {
    let text = text.trim();
    let mut rest = text.strip_prefix('[')?.trim_start();
    if serde_json::from_str::<Vec<&RawValue>>(text).is_ok() {
        return Some(text.to_owned());
    }
    let mut list = Vec::new();
    while !rest.starts_with(']') {
        let (json, behind) = python_value(rest)?;
        list.push(json);
        rest = behind.trim_start();
        match rest.strip_prefix(',') {
            Some(more) => rest = more.trim_start(),
            None if rest.starts_with(']') => {}
            None => return None,
        }
    }
    (rest == "]").then(|| format!("[{}]", list.join(",")))
}

/// The JSON of a value of Python that a text begins with, and what follows it. `nan` is `null`, as a missing value is.
fn python_value(text: &str) -> Option<(String, &str)> {
    if let Some((found, rest)) = python_string(text) {
        return Some((serde_json::to_string(&found).ok()?, rest));
    }
    let (word, rest) = text.split_at(text.find([',', ']'])?);
    let json = match word.trim_end() {
        "None" | "nan" => "null",
        "True" => "true",
        "False" => "false",
        number => serde_json::from_str::<f64>(number).is_ok().then_some(number)?,
    };
    Some((json.to_owned(), rest))
}

/// A string literal of Python that a text begins with, and what follows it. Prefixes and triple quotes, which `repr` never writes, are
/// none.
fn python_string(text: &str) -> Option<(String, &str)> {
    let quote = text.chars().next().filter(|quote| ['\'', '"'].contains(quote))?;
    let mut found = String::new();
    let mut rest = text[1..].chars();
    loop {
        match rest.next()? {
            end if end == quote => return Some((found, rest.as_str())),
            '\\' => match rest.next()? {
                '\n' => {}
                'n' => found.push('\n'),
                't' => found.push('\t'),
                'r' => found.push('\r'),
                'x' => found.push(code(&mut rest, 2)?),
                'u' => found.push(code(&mut rest, 4)?),
                'U' => found.push(code(&mut rest, 8)?),
                plain @ ('\\' | '\'' | '"') => found.push(plain),
                _ => return None,
            },
            plain => found.push(plain),
        }
    }
}

/// The character of so many hexadecimal digits.
fn code(rest: &mut std::str::Chars<'_>, digits: usize) -> Option<char> {
    let number = (0..digits).try_fold(0_u32, |number, _| Some(number * 16 + rest.next()?.to_digit(16)?));
    char::from_u32(number?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_list_of_a_cell_is_read_whoever_wrote_it() {
        for (text, list) in [
            (" [1, 2.50, null, \"a\"] ", Some("[1, 2.50, null, \"a\"]")),
            ("[1.0, None, nan, -2.50]", Some("[1.0,null,null,-2.50]")),
            ("[True, False]", Some("[true,false]")),
            ("['A', None, \"it's\",]", Some("[\"A\",null,\"it's\"]")),
            ("['None', 'True']", Some("[\"None\",\"True\"]")),
            ("[]", Some("[]")),
            ("[1. 2.]", None),
            ("['a' 'b']", None),
            ("[1, inf]", None),
            ("[A, B]", None),
            ("[1, 2", None),
            ("[1] and more", None),
            ("1, 2", None),
        ] {
            assert_eq!(list_of_text(text).as_deref(), list, "{text}");
            let json = json!(text).to_string();
            assert_eq!(list_in_cell(&json), list.unwrap_or(&json), "{text}");
        }
        for json in ["[1, 2]", "{}", "4", "\"4\"", "null"] {
            assert_eq!(list_in_cell(json), json);
        }
    }
}
