//! JSON arrays and JSON lines, well-formed and not.

use std::io::BufReader;

use judge_data::{Error, Layout, Row, Rows};
use proptest::prelude::*;

fn rows(bytes: &[u8]) -> Result<Vec<Row>, Error> {
    // A tiny buffer, so that every boundary falls somewhere.
    Rows::new(BufReader::with_capacity(3, bytes), "in.json")?.collect()
}

fn ids(text: &str) -> Vec<(usize, String)> {
    let rows = rows(text.as_bytes()).unwrap_or_else(|e| panic!("{text:?}: {e}"));
    rows.iter().map(|row| (row.place().line, row.string("id").unwrap())).collect()
}

fn error(bytes: &[u8]) -> Error {
    match rows(bytes) {
        Err(error) => error,
        Ok(rows) => panic!("{:?} was read as {} rows", String::from_utf8_lossy(bytes), rows.len()),
    }
}

#[test]
fn every_layout_gives_the_same_rows() {
    let expected = |lines: [usize; 2]| vec![(lines[0], "a,]}".to_owned()), (lines[1], "b\\\"".to_owned())];
    let (a, b) = (r#"{"id":"a,]}"}"#, r#"{"id":"b\\\""}"#);
    for (text, lines) in [
        (format!("{a}\n{b}\n"), [1, 2]),
        (format!("{a}\n{b}"), [1, 2]),
        (format!("\u{feff}{a}\r\n{b}\r\n"), [1, 2]),
        (format!("\n\n  {a}  \n \t \r\n{b}\n\n\n"), [3, 5]),
        (format!("[{a},{b}]"), [1, 1]),
        (format!("\u{feff}\r\n[\r\n{a}\r\n,\r\n{b}\r\n]\r\n\r\n"), [3, 5]),
        (format!("[\n  {{\n    \"id\": \"a,]}}\"\n  }},\n  {b}\n]\n"), [2, 5]),
    ] {
        assert_eq!(ids(&text), expected(lines), "{text:?}");
    }
}

#[test]
fn a_single_object_is_one_row_even_over_many_lines() {
    assert_eq!(ids("{\n  \"id\":\n \"a\",\r\n \"x\": [1,\n2]\n}\n\n"), [(1, "a".to_owned())]);
    let long = format!("{{\n\"id\": \"a\",\n\"x\": [\n{}0\n]}}", "0,\n".repeat(1000));
    assert_eq!(ids(&long).len(), 1);
}

#[test]
fn empty_files_have_no_rows() {
    for text in ["", "\n", "\u{feff}", " \r\n\t", "[]", "[ \n ]\n"] {
        assert_eq!(ids(text), [], "{text:?}");
    }
}

#[test]
fn the_layout_is_told_by_the_content() {
    let layout = |text: &str| Rows::new(text.as_bytes(), "x.jsonl").unwrap().layout();
    assert_eq!(layout(" [{}]"), Layout::Array);
    assert_eq!(layout("{}"), Layout::Lines);
}

#[test]
fn malformed_json_is_located() {
    for (text, line, column) in [
        ("{\"a\":1}\n{\"a\":}\n", 2, 6),
        ("{\"a\":1}\n{\"a\":1", 2, 6),   // cut off
        ("{\"a\":1\n{\"a\":1}\n", 2, 1), // first line cut off
        ("{\"a\":1} {\"a\":1}\n", 1, 9), // two on one line
        ("{\"a\":01}\n", 1, 7),
        ("nonsense\n", 1, 2),
        ("[\n{\"a\":1},\n {\"a\":x}\n]", 3, 7),
        ("[\n{\"a\":1},\n {\"a\":\n  \"\t\"}\n]", 4, 3),
        ("[{\"a\":\"b", 1, 8), // string cut off
        ("[{} {}]", 1, 5),
    ] {
        match error(text.as_bytes()) {
            Error::Malformed { place, column: found, .. } => {
                assert_eq!((place.line, found), (line, column), "{text:?}")
            }
            other => panic!("{text:?}: {other}"),
        }
    }
}

#[test]
fn what_is_between_elements_is_checked() {
    for (text, expected, found) in [
        ("[{}", "`,` or `]` after an array element", None),
        ("[{}}]", "`,` or `]` after an array element", Some('}')),
        ("[{},]", "an object", Some(']')),
        ("[,{}]", "an object", Some(',')),
        ("[", "an object", None),
        ("[{}] {}", "the end of the file after the array", Some('{')),
    ] {
        match error(text.as_bytes()) {
            Error::Syntax { expected: e, found: f, .. } => assert_eq!((e, f), (expected, found), "{text:?}"),
            other => panic!("{text:?}: {other}"),
        }
    }
}

#[test]
fn rows_are_objects_with_each_key_once() {
    for text in ["5\n", "\"x\"", "[5]", "[[1]]", "{}\nnull\n"] {
        let found = error(text.as_bytes()).to_string();
        assert!(found.contains(": expected an object, found "), "{text:?}: {found}");
    }
    let twice = error(b"{}\n{\"a\":1,\"b\":2,\"a\":3}\n");
    assert!(twice.to_string().ends_with(", line 2: the key \"a\" appears twice"), "{twice}");
}

#[test]
fn invalid_utf8_is_located() {
    for (bytes, at) in [
        (&b"{\"a\":1}\n{\"a\":\"\xff\"}\n"[..], (2, 7)),
        (b"[{\"a\":1},\n{\"a\":\n\"\xc3\"}]", (3, 2)),
        (b"\xff{}", (1, 1)),
        (b"\xef\xbb{}", (1, 1)),
        (b"{\"a\":\"\xed\xa0\x80\"}", (1, 7)), // a surrogate
    ] {
        match error(bytes) {
            Error::Utf8 { place, column } => assert_eq!((place.line, column), at, "{bytes:?}"),
            other => panic!("{bytes:?}: {other}"),
        }
    }
}

#[test]
fn fields_say_what_was_expected_and_found() {
    let row =
        rows(b"\n{\"n\": 12345678901234567890123, \"s\": \"t\", \"z\": null, \"l\": [1, \"x\"]}").unwrap().remove(0);
    assert_eq!(
        row.string("q").unwrap_err().to_string(),
        r#"in.json, line 2: expected a field "q", found the fields ["n", "s", "z (null)", "l"]"#
    );
    assert_eq!(
        row.string("n").unwrap_err().to_string(),
        r#"in.json, line 2: expected "n" to be a string, found number 12345678901234567890123"#
    );
    assert!(matches!(row.string("z"), Err(Error::MissingField { names, .. }) if names == ["z"]));
    assert!(row.has("n") && !row.has("z") && !row.has("absent"), "null is absent");
    assert_eq!((row.value("s"), row.value("z")), (Some("\"t\""), None));
    assert_eq!(row.optional::<String>("z", "a string").unwrap(), None);
    assert_eq!(row.optional::<String>("absent", "a string").unwrap(), None);
    assert!(matches!(row.required::<Vec<f64>>("l", "numbers"), Err(Error::WrongType { column, .. }) if column == "l"));
    assert_eq!(serde_json::to_string(&row.into_extra(&["s", "z", "l"])).unwrap(), r#"{"n":12345678901234567890123}"#);
}

#[test]
fn python_s_numbers_are_named_with_one_place() {
    for (text, line, column, found) in [
        ("{\"a\":NaN}\n", 1, 6, "NaN"),
        ("{}\n  {\"a\": [1, -Infinity]}\n", 2, 13, "-Infinity"),
        ("[{},\n{\"a\":\n {\"b\": Infinity}}]", 3, 8, "Infinity"),
    ] {
        let error = error(text.as_bytes());
        assert!(
            matches!(&error, Error::NotANumber { place, column: c, found: f } if (place.line, *c, *f) == (line, column, found)),
            "{text:?}: {error}"
        );
    }
    let error = error(b"{}\n{\"a\": NaN}\n");
    let text = "in.json, line 2, column 7: NaN is not JSON, expected a number or null \
                (Python's json.dumps writes it unless told allow_nan=False)";
    assert_eq!(error.to_string(), text);
}

#[test]
fn a_parser_s_own_line_is_not_a_second_cause() {
    let error = error(b"{}\n{}\n{\"a\":x}\n");
    assert_eq!(error.to_string(), "in.json, line 3, column 6: expected value");
    assert!(std::error::Error::source(&error).is_none());
}

#[test]
fn nothing_follows_an_error() {
    let mut rows = Rows::new(&b"{}\n{\n{}\n"[..], "x").unwrap();
    assert!(rows.peek().unwrap().is_some());
    assert!(rows.next().unwrap().is_ok());
    assert!(rows.next().unwrap().is_err());
    assert!(rows.next().is_none());
}

/// A JSON object as text, with white space of all kinds inside.
fn object() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        any::<i64>().prop_map(serde_json::Value::from),
        any::<f64>().prop_filter("finite", |v| v.is_finite()).prop_map(serde_json::Value::from),
        "[\\PC\n\r\t\"\\\\{}\\[\\],]{0,12}".prop_map(serde_json::Value::from),
        Just(serde_json::Value::Null),
    ];
    let tree = leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(serde_json::Value::from),
            prop::collection::btree_map(".{0,4}", inner, 0..4)
                .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
        ]
    });
    prop::collection::btree_map("[a-z\"\\\\]{0,6}", tree, 0..4)
        .prop_map(|map| serde_json::Value::Object(map.into_iter().collect()))
}

proptest! {
    #[test]
    fn what_is_written_is_read(objects in prop::collection::vec(object(), 0..6), form in 0..4, bom: bool, crlf: bool) {
        let end = if crlf { "\r\n" } else { "\n" };
        let lines: Vec<String> = objects.iter().map(ToString::to_string).collect();
        let text = match form {
            0 => lines.join(end),
            1 => lines.iter().map(|line| format!("{end}{line}{end}")).collect(),
            2 => format!("[{}]", lines.join(",")),
            _ => serde_json::to_string_pretty(&objects).unwrap().replace('\n', end),
        };
        let text = format!("{}{text}", if bom { "\u{feff}" } else { "" });
        let read = rows(text.as_bytes()).unwrap();
        let read: Vec<serde_json::Value> = read.into_iter().map(|row| serde_json::to_value(row.into_extra(&[])).unwrap()).collect();
        prop_assert_eq!(read, objects);
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(prop::sample::select(b"[]{}\",:\\ \n\r19ae\xef\xbb\xbf\xff".to_vec()), 0..40)) {
        let _ = rows(&bytes);
    }
}

fn said(text: &[u8]) -> String {
    let rows = Rows::new(text, "in.jsonl");
    rows.and_then(|rows| rows.collect::<Result<Vec<_>, _>>()).unwrap_err().to_string()
}

// https://github.com/patniko/github-copilot-office/pull/7
#[test]
fn a_byte_order_mark_at_the_start_of_any_line_is_passed_over() {
    let text = "\u{feff}{\"id\":1}\r\n\u{feff}{\"id\":2}\n\u{feff}\n \u{feff}\u{feff}{\"id\":3}\n";
    let rows: Vec<_> = Rows::new(text.as_bytes(), "in.jsonl").unwrap().map(Result::unwrap).collect();
    let found: Vec<_> = rows.iter().map(|row| (row.place().line, row.value("id").unwrap())).collect();
    assert_eq!(found, [(1, "1"), (2, "2"), (4, "3")]);
    let wrong = said("{\"id\":1}\n\u{feff}{\"id\":x}\n".as_bytes());
    assert!(wrong.starts_with("in.jsonl, line 2, column 7"), "{wrong}");
}

// https://github.com/jqlang/jq/issues/1636
#[test]
fn objects_over_several_lines_are_named() {
    let text = b"{\n  \"id\": 1\n}\n{\n  \"id\": 2\n}\n";
    let found = said(text);
    assert!(found.contains("line 1: the object goes over several lines and another one follows"), "{found}");
    assert!(found.contains("`jq -c .`"), "{found}");
    assert_eq!(
        Rows::new(&text[..text.len() / 2 + 1], "one").unwrap().count(),
        1,
        "one such object is a file of one row"
    );
}

// https://github.com/huggingface/transformers/issues/27923, https://github.com/daggaz/json-stream/issues/48
#[test]
fn files_of_other_kinds_are_named() {
    let pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12345\n";
    for (text, found) in [
        (&pointer[..], "looks like a pointer of Git LFS"),
        (b"\x1e{\"id\":1,\"a\":2}\n", "looks like a JSON text sequence (RFC 7464)"),
        (b"<!DOCTYPE html>\n", "looks like a page of HTML or XML"),
        (b"PAR1\x15\x04", "looks like Parquet, expected JSON lines or a JSON array; in pandas: to_json(path, "),
        (b"ARROW1\0\0", "looks like an Arrow file"),
        (b"\xff\xff\xff\xff\x88\x02\0\0", "looks like an Arrow stream"),
        (b"BZh91AY", "looks like bzip2"),
        (b"\xff\xfe{\0}\0", "looks like UTF-16 text"),
    ] {
        assert!(said(text).contains(found), "{}", said(text));
    }
    assert!(said(pointer).contains("git lfs pull"));
}
