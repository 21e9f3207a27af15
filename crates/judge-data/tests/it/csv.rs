//! Tables of texts: CSV, TSV and what spreadsheets write.

use std::io::Write;
use std::path::PathBuf;

use judge_core::Fields;
use judge_data::{Dataset, DatasetOptions, Input, Record, Rows};
use serde_json::Value;
use tempfile::TempDir;

fn put(folder: &TempDir, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

/// The rows as JSON, or the first error.
fn read(name: &str, bytes: &[u8]) -> Result<Vec<Value>, String> {
    let folder = TempDir::new().unwrap();
    let rows = Rows::open(put(&folder, name, bytes)).map_err(|error| error.to_string())?;
    let json = |row: judge_data::Row| {
        let fields =
            row.keys().map(|key| (key.to_owned(), serde_json::from_str(row.value(key).unwrap_or("null")).unwrap()));
        Value::Object(fields.collect())
    };
    rows.map(|row| row.map(json).map_err(|error| error.to_string())).collect()
}

#[test]
fn a_table_is_read_as_its_rows() {
    let text = "id,instruction,response,human\n1,\"What, now?\",\"He said \"\"no\"\".\nTwice.\",4\n2,b,,\n3,Größe\n";
    let expected = serde_json::json!([
        {"id": "1", "instruction": "What, now?", "response": "He said \"no\".\nTwice.", "human": "4"},
        {"id": "2", "instruction": "b", "response": null, "human": null},
        {"id": "3", "instruction": "Größe", "response": null, "human": null},
    ]);
    assert_eq!(Value::from(read("t.csv", text.as_bytes()).unwrap()), expected);
    // Told by its content where the name does not say it, with a byte-order mark, and with the line ends of Windows.
    assert_eq!(Value::from(read("t", text.as_bytes()).unwrap()), expected);
    let marked = [b"\xef\xbb\xbf", text.replace("Twice.", "").as_bytes()].concat();
    assert_eq!(read("t.txt", &marked).unwrap()[2], expected[2]);
    assert_eq!(read("t.csv", b"id,prompt\r\n1,a\r\n").unwrap()[0], serde_json::json!({"id": "1", "prompt": "a"}));
}

#[test]
fn separators_are_those_of_the_name_or_of_the_first_line() {
    let row = serde_json::json!({"id": "1", "prompt": "a"});
    for (name, text) in [
        ("t.csv", "id;prompt\n1;a\n"),
        ("t.tsv", "id\tprompt\n1\ta\n"),
        ("t.TSV", "id\tprompt\n1\ta"),
        ("unnamed", "id\tprompt\n1\ta\n"),
        ("t.csv", "\n\nid,prompt\n\n1,a\n\n"),
    ] {
        assert_eq!(read(name, text.as_bytes()).unwrap(), std::slice::from_ref(&row), "{name}: {text:?}");
    }
    assert_eq!(read("t.csv", b"prompt\nIs it?\n").unwrap(), [serde_json::json!({"prompt": "Is it?"})]);
    // pandas writes its index into a column without a name.
    let indexed = read("t.csv", b",prompt\n0,a\n").unwrap();
    assert_eq!(indexed, [serde_json::json!({"Unnamed: 0": "0", "prompt": "a"})]);
    // Text with commas is no table.
    for text in [&b"Dear Sir, here are the rows\n{\"id\":1}\n"[..], b"id: 1, a: {\n", b"1, 2: [\n"] {
        let said = read("rows.jsonl", text).unwrap_err();
        assert!(said.contains("line 1, column"), "{said}");
    }
    let said = read("t.csv", b"sep=;\nid;prompt;human\n1;a;2\n").unwrap_err();
    assert!(said.contains("found a separator, as Excel alone reads it"), "{said}");
    // JSON is what it is, whatever it is called.
    assert_eq!(read("t.csv", b"{\"id\": 1, \"prompt\": \"a\"}\n").unwrap()[0]["id"], 1);
}

#[test]
fn compressed_tables_and_standard_input_are_read() {
    let folder = TempDir::new().unwrap();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(b"id,prompt\n1,a\n2,b\n").unwrap();
    let gzip = gzip.finish().unwrap();
    assert_eq!(Rows::open(put(&folder, "t.csv.gz", &gzip)).unwrap().count(), 2);
    // More of the table that is not compressed would be lost rows; what is no text is none.
    for (behind, lost) in
        [(&b"\0\0id,prompt\n3,c\n"[..], true), (b"3,c\n", true), (b"\0\n", false), (b"\xff\xfe", false)]
    {
        let said = read("t.csv.gz", &[&gzip[..], behind].concat()).map_err(|said| {
            assert!(said.contains("found text that is not compressed behind the gzip data"), "{said}");
        });
        assert_eq!(said.is_err(), lost, "{behind:?}");
    }
    let piped = Input::from_reader(&b"id,prompt\n1,a\n2,b\n"[..], Input::STDIN).unwrap();
    assert_eq!(Dataset::open(&piped, &DatasetOptions::default()).unwrap().count(), 2);
    assert_eq!(Dataset::open(&piped, &DatasetOptions::default()).unwrap().count(), 2, "as often as wanted");
}

#[test]
fn what_is_wrong_with_a_table_names_its_line() {
    let long = read("t.csv", b"id,instruction,response\n1,a,\"x\ny\"\n2,well, no,b\n").unwrap_err();
    assert!(long.contains("line 4: expected 3 cells") && long.contains("found 4") && long.contains("\"b\""), "{long}");
    let twice = read("t.csv", b"id,prompt,prompt\n1,a,b\n").unwrap_err();
    assert!(twice.contains("the column \"prompt\" is named twice"), "{twice}");
    let latin = read("t.csv", b"id,prompt\n1,Gr\xf6\xdfe\n").unwrap_err();
    assert!(latin.contains("line 2: the text is not UTF-8") && latin.contains("save the table as UTF-8"), "{latin}");
    // Cells that are empty are none too many.
    assert_eq!(read("t.csv", b"id,prompt\n1,a,,\n").unwrap().len(), 1);
    assert!(read("t.csv", b"id,prompt\n").unwrap().is_empty());
}

/// As pandas writes them, and as JSON.
#[test]
fn lists_of_grades_and_of_responses_are_read_from_cells() {
    let folder = TempDir::new().unwrap();
    for (text, expected) in [
        ("instruction,response,human\nq,r,\"[1, null, 4]\"\n", vec![Some(1.0), None, Some(4.0)]),
        ("instruction,response,human\nq,r,\"[1.0, None, 4.0]\"\n", vec![Some(1.0), None, Some(4.0)]),
        (
            "instruction,response_a,response_b,human\nq,r,s,\"['A', 'tie', 'B']\"\n",
            vec![Some(1.0), Some(0.5), Some(0.0)],
        ),
        ("instruction,responses,human\nq,\"['4', \"\"It's 5.\"\"]\",\"[5, 1]\"\n", vec![Some(5.0), Some(1.0)]),
    ] {
        let path = put(&folder, "t.csv", text.as_bytes());
        let record = Dataset::open(&path, &DatasetOptions::default()).unwrap().next().unwrap().unwrap();
        assert_eq!((record.unread(), record.no_grade()), (None, None), "{text}");
        let found = match &record {
            Record::Answers(answers) => answers.grades.clone(),
            other => other.raters().into_owned(),
        };
        assert_eq!(found, expected, "{text}");
    }
}

/// All rows behind a quote that does not close would be one cell.
#[test]
fn a_quote_that_does_not_close_loses_no_rows_in_silence() {
    let open = read("t.csv", b"id,prompt,human\n1,a,3\n2,\"b is open,3\n3,c,3\n4,d,3\n").unwrap_err();
    assert!(open.contains("line 3: a quote opens a cell here and is never closed"), "{open}");
    let first = read("t.csv", b"\xef\xbb\xbf\"id,prompt\n1,a\n").unwrap_err();
    assert!(first.contains("line 1: a quote opens a cell here and is never closed"), "{first}");
    let later = read("t.csv", b"id;prompt\n1;a\n2;\"b is open\n3;c\n4;\"quoted\" x\n5;e\n").unwrap_err();
    assert!(later.contains("line 3: a quote opens a cell here that ends in line 5"), "{later}");
    // What other programs read is read: cells over lines, doubled quotes, quotes within a cell, text behind a quote in one line.
    let fine = read("t.csv", b"id,prompt\r\n1,\"a\r\n\"\"b\"\"\"\r\n2,5\" wide\r\n3,\"c\" d\r\n4,\"\"\r\n").unwrap();
    let prompts: Vec<&Value> = fine.iter().map(|row| &row["prompt"]).collect();
    assert_eq!(
        prompts,
        ["a\r\n\"b\"", "5\" wide", "c d"].map(Value::from).iter().chain([&Value::Null]).collect::<Vec<_>>()
    );
}

/// pandas writes a CR within a cell without quotes.
#[test]
fn a_carriage_return_within_a_line_is_text() {
    let rows = |text: &str| read("t.csv", text.as_bytes()).unwrap();
    let found = rows("id,prompt,human\n1,a\rb,3\n2,\rc,4\n");
    assert_eq!(found[0], serde_json::json!({"id": "1", "prompt": "a\rb", "human": "3"}));
    assert_eq!((found.len(), &found[1]["prompt"]), (2, &Value::from("\rc")));
    // The ends of lines of Windows are none, also where only some lines have them, and what a quoted cell holds stays.
    let found = rows("id,prompt\n1,a\r\n2,b\rc\r\n3,\"d\r\n\"\r\n4,\"e\r\"\n");
    let prompts: Vec<&str> = found.iter().map(|row| row["prompt"].as_str().unwrap()).collect();
    assert_eq!(prompts, ["a", "b\rc", "d\r\n", "e\r"]);
    // Where the first line ends in CR alone, all do.
    for text in ["id,prompt\r1,a\r2,b\r", "\"id\",\"prompt\"\r1,a\r\n2,b", "id,prompt\r\r\n1,a\r\r\n2,b\r\r\n"] {
        assert_eq!(rows(text).iter().map(|row| &row["prompt"]).collect::<Vec<_>>(), ["a", "b"], "{text:?}");
    }
    let folder = TempDir::new().unwrap();
    let path = put(&folder, "old.csv", b"id,prompt\r1,\"a\rb\"\r2,d\r");
    assert_eq!(Rows::open(path).unwrap().map(|row| row.unwrap().place().line).collect::<Vec<_>>(), [2, 3]);
}

/// Whether a file is called a table or not, what it is known by is said.
#[test]
fn other_formats_are_named_whatever_the_file_is_called() {
    for (bytes, said) in [
        (&b"\xff\xfei\0d\0,\0p\0\n\0"[..], "UTF-16"),
        (b"PK\x03\x04 and so on", "zip archive"),
        (b"BZh91AY", "bzip2"),
        (b"\xfd7zXZ\0", "xz"),
        (b"<!DOCTYPE html>\n<html>", "HTML"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n", "git lfs pull"),
    ] {
        for name in ["t.csv", "t.tsv", "t.csv.gz", "t.jsonl"] {
            let error = read(name, bytes).unwrap_err();
            assert!(error.contains(said), "{name}: {error}");
        }
    }
}

/// A record stands on the line where its row begins, so that what is wrong with it is found.
#[test]
fn records_name_the_lines_of_the_table() {
    let folder = TempDir::new().unwrap();
    let path = put(&folder, "t.csv", b"id,instruction,response,human\n1,\"a\nb\",c,5\n2,d,,4\n");
    let records: Vec<_> = Dataset::open(&path, &DatasetOptions::default()).unwrap().collect::<Result<_, _>>().unwrap();
    assert_eq!((records[0].field("response").unwrap(), records[0].human()), ("c".into(), Some(5.0)));
    assert!(records[1].unread().is_some());
    let places: Vec<usize> = Rows::open(&path).unwrap().map(|row| row.unwrap().place().line).collect();
    assert_eq!(places, [2, 4]);
    let path = put(&folder, "windows.csv", b"id,prompt\r\n1,\"a\r\nb\"\r\n2,d\r\n");
    let places: Vec<usize> = Rows::open(&path).unwrap().map(|row| row.unwrap().place().line).collect();
    assert_eq!(places, [2, 4]);
    let long = Rows::open(put(&folder, "long.csv", b"id,prompt\r\n1,a\r\n2,d,e\r\n")).unwrap();
    let wrong = long.filter_map(Result::err).next().unwrap().to_string();
    assert!(wrong.contains("line 3: expected 2 cells"), "{wrong}");
}
