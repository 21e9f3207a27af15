//! The worker on a pipe, as another program sees it: streams in and out, exit codes, and what is left when something dies.

use std::io::Read;
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder, StructBuilder};
use arrow_array::{ArrayRef, Int64Array, LargeStringArray, RecordBatch, StringArray, StringViewArray};
use arrow_schema::{DataType, Field};
use judge_core::ItemId;
use judge_data::{BatchReader, BatchWriter, ResultRow, ResultTally, SetDigest};
use serde_json::{Value, json};
use tiny_judge::planted::{Split, generate};

use crate::program::{Desk, fed, judge, read_json, succeed};

/// An item as it is sent: id, instruction, response.
type Item = (String, Option<String>, Option<String>);

fn planted(n: usize) -> Vec<Item> {
    generate(Split::Test, n, 0)
        .into_iter()
        .map(|item| (item.id.clone(), Some(item.instruction.clone()), Some(item.response.clone())))
        .collect()
}

fn batch(items: &[Item], text: fn(Vec<Option<&str>>) -> ArrayRef) -> RecordBatch {
    let column = |of: fn(&Item) -> Option<&str>| text(items.iter().map(of).collect());
    RecordBatch::try_from_iter_with_nullable([
        ("prompt", column(|item| item.1.as_deref()), true),
        ("key", column(|item| Some(&item.0)), true),
        ("completion", column(|item| item.2.as_deref()), true),
    ])
    .expect("a batch")
}

fn utf8(texts: Vec<Option<&str>>) -> ArrayRef {
    Arc::new(StringArray::from(texts))
}

fn large(texts: Vec<Option<&str>>) -> ArrayRef {
    Arc::new(LargeStringArray::from(texts))
}

fn view(texts: Vec<Option<&str>>) -> ArrayRef {
    Arc::new(StringViewArray::from(texts))
}

fn stream(batches: &[RecordBatch]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = BatchWriter::new(&mut bytes, "requests", batches[0].schema_ref()).expect("a stream");
    batches.iter().for_each(|batch| writer.write(batch).expect("written"));
    writer.finish().expect("written");
    bytes
}

const COLUMNS: [&str; 4] = ["--id", "key", "--columns", "instruction=prompt,response=completion"];

/// The program with these options, after the columns.
fn worker(args: &[&str]) -> Command {
    let mut command = judge("score_stream");
    command.args(args).arg("--quiet").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// What it makes of bytes: exit code, stdout, stderr.
fn exchange(mut command: Command, bytes: Vec<u8>) -> (Option<i32>, Vec<u8>, String) {
    let output = fed(&mut command, &bytes);
    (output.status.code(), output.stdout, String::from_utf8_lossy(&output.stderr).into_owned())
}

/// The rows of each batch of a whole stream, and that nothing is behind it.
fn answers(stdout: &[u8]) -> Vec<Vec<ResultRow>> {
    let mut rest = stdout;
    let batches = BatchReader::new(&mut rest, "answers").expect("a stream");
    let batches =
        batches.map(|batch| ResultRow::from_batch(&batch.expect("a batch")).expect("results")).collect::<Vec<_>>();
    assert!(rest.is_empty(), "{} bytes behind the end mark", rest.len());
    batches
}

fn scored(args: &[&str], batches: &[RecordBatch]) -> Vec<Vec<ResultRow>> {
    let (code, stdout, stderr) = exchange(worker(args), stream(batches));
    assert_eq!(code, Some(0), "{stderr}");
    answers(&stdout)
}

fn results(rows: &[Vec<ResultRow>]) -> SetDigest {
    let mut tally = ResultTally::default();
    rows.iter().flatten().for_each(|row| tally.add(row));
    tally.digests.results
}

#[test]
fn rows_are_those_of_lager_pointwise_however_they_are_cut_and_typed() {
    let folder = &Desk::new();
    let items = planted(60);
    let lines: Vec<Value> = items.iter().map(|(id, i, r)| json!({"id": id, "instruction": i, "response": r})).collect();
    folder.write("in.jsonl", &lines);
    succeed("lager_pointwise", folder, &["--input", "in.jsonl", "--output", "out.jsonl", "--quiet"]);
    let expected: Vec<(ItemId, f64, Vec<f64>)> = folder
        .rows("out.jsonl")
        .iter()
        .map(|row| {
            let probabilities = serde_json::from_value(row["probabilities"].clone()).expect("probabilities");
            (row["id"].as_str().expect("id").into(), row["score"].as_f64().expect("score"), probabilities)
        })
        .collect();

    let args = [&COLUMNS[..], &["--probabilities", "--logits"]].concat();
    let whole = scored(&args, &[batch(&items, utf8)]);
    let found: Vec<_> = whole[0]
        .iter()
        .map(|row| (row.id.clone(), row.score.expect("a score"), row.probabilities.clone().expect("probabilities")))
        .collect();
    assert_eq!(found, expected);
    assert!(whole[0].iter().all(|row| row.tokens > Some(0) && row.logits.is_some() && row.run == whole[0][0].run));

    // Other cuts, an empty batch, other types of text, another order, one thread.
    let (a, b) = items.split_at(17);
    let cut = scored(&args, &[batch(a, large), batch(&[], large), batch(b, large)]);
    assert_eq!(cut.iter().map(Vec::len).collect::<Vec<_>>(), [17, 0, 43]);
    assert_eq!(cut.concat(), whole[0]);
    let backwards: Vec<Item> = items.iter().rev().cloned().collect();
    let mut command = worker(&args);
    command.env("RAYON_NUM_THREADS", "1");
    let (code, stdout, stderr) =
        exchange(command, stream(&backwards.chunks(7).map(|part| batch(part, view)).collect::<Vec<_>>()));
    assert_eq!(code, Some(0), "{stderr}");
    let backwards = answers(&stdout);
    assert_eq!((backwards.len(), results(&backwards)), (9, results(&whole)));
    // Less is kept, so it is another run.
    let other = scored(&COLUMNS, &[batch(a, utf8)]);
    assert_ne!(other[0][0].run, whole[0][0].run);
    assert!(other[0][0].logits.is_none() && other[0][0].score == whole[0][0].score);
}

#[test]
fn a_fault_of_a_row_is_a_status() {
    let items = planted(3);
    let text = |text: &str| Some(text.to_owned());
    let odd = vec![
        items[0].clone(),
        ("null".to_owned(), text("What is 1 + 1?"), None),
        ("same".to_owned(), text("What is 1 + 1?"), text("2")),
        ("same".to_owned(), text("What is 1 + 1?"), text("2")),
        ("empty".to_owned(), text(""), text("")),
        ("long".to_owned(), text("What is 1 + 1?"), Some("two ".repeat(100_000))),
        items[1].clone(),
    ];
    let rows = scored(&COLUMNS, &[batch(&odd, utf8), batch(&odd[1..2], utf8), batch(&odd[3..4], utf8)]);
    let statuses: Vec<&str> = rows[0].iter().map(|row| row.status.as_str()).collect();
    assert_eq!(statuses, ["scored", "missing", "scored", "scored", "scored", "too_long", "scored"]);
    assert!(rows[0][1].detail.as_deref().is_some_and(|detail| detail.contains("{response}")), "{:?}", rows[0][1]);
    // What a row gets does not depend on its batch.
    assert_eq!((&rows[1][0], &rows[2][0], &rows[0][2]), (&rows[0][1], &rows[0][3], &rows[0][3]));
    assert_ne!(rows[0][1].input, rows[0][2].input);
}

#[test]
fn conversations_and_numbers_as_ids() {
    let fields = [Field::new("role", DataType::Utf8, true), Field::new("content", DataType::Utf8, true)];
    let mut lists = ListBuilder::new(StructBuilder::from_fields(fields.to_vec(), 0));
    for (role, content) in [("user", "What is 1 + 1?"), ("assistant", "2")] {
        for (index, text) in [role, content].into_iter().enumerate() {
            lists.values().field_builder::<StringBuilder>(index).expect("texts").append_value(text);
        }
        lists.values().append(true);
    }
    lists.append(true);
    lists.append(false);
    let columns: [(&str, ArrayRef, bool); 2] =
        [("messages", Arc::new(lists.finish()), true), ("id", Arc::new(Int64Array::from(vec![7, -8])), true)];
    let batch = RecordBatch::try_from_iter_with_nullable(columns).expect("a batch");
    let conversations = scored(&["--id-type", "int64"], std::slice::from_ref(&batch));
    assert_eq!(conversations[0].iter().map(|row| row.id.clone()).collect::<Vec<_>>(), [7_i64, -8].map(ItemId::from));
    assert_eq!((&*conversations[0][0].status, &*conversations[0][1].status), ("scored", "missing"));
    let (code, stdout, stderr) = exchange(worker(&[]), stream(&[batch]));
    assert_eq!((code, stdout.len()), (Some(2), 0), "{stderr}");
    assert!(stderr.contains("--id-type int64"), "{stderr}");
}

#[test]
fn a_wrong_column_ends_it_before_any_answer() {
    let items = planted(2);
    let good = batch(&items, utf8);
    let dictionary: arrow_array::DictionaryArray<arrow_array::types::Int32Type> = ["a", "b"].into_iter().collect();
    let columns: [(&str, ArrayRef); 3] =
        [("key", good.column(1).clone()), ("prompt", Arc::new(dictionary)), ("completion", good.column(2).clone())];
    let dictionary = RecordBatch::try_from_iter(columns).expect("a batch");
    for (batch, args, said) in [
        (&good, &[][..], "\"key\""),
        (&good, &["--id", "key", "--columns", "instruction=prompt,response=answer"], "{response}"),
        (&dictionary, &COLUMNS, "found a dictionary of Utf8; send its values"),
        (&good, &["--limit", "1"], "--limit"),
        (&good, &["--columns", "id="], "--columns id= has no effect"),
    ] {
        let (code, stdout, stderr) = exchange(worker(args), stream(std::slice::from_ref(batch)));
        // The columns of answers may be there: whoever sends may wait for them.
        let answers = BatchReader::new(&stdout[..], "answers").map_or(0, |answers| answers.flatten().count());
        assert_eq!((code, answers), (Some(2), 0), "{args:?}: {stderr}");
        assert!(stderr.contains(said), "{stderr}");
    }
    let (code, stdout, stderr) =
        exchange(worker(&[&COLUMNS[..], &["--require-device", "tpu"]].concat()), stream(&[good]));
    assert_eq!((code, stdout.len()), (Some(1), 0), "{stderr}");
    assert!(stderr.contains("\"tpu\""), "{stderr}");
}

#[test]
fn the_columns_of_results_are_printed_without_a_model() {
    let folder = Path::new(".");
    let printed =
        succeed("score_stream", folder, &["--schema", "--model", "/nowhere", "--id-type", "int64", "--logits"]);
    let (first, second) = printed.split_once('\n').expect("two lines");
    let columns: Vec<Value> = serde_json::from_str(first).expect("JSON");
    assert_eq!(columns[0], json!({"name": "id", "type": "int64", "nullable": false}));
    assert_eq!(columns.last(), Some(&json!({"name": "logits", "type": "list<float>", "nullable": true})));
    assert!(
        second.starts_with("id BIGINT, score DOUBLE, status STRING, ") && second.ends_with("logits ARRAY<FLOAT>\n"),
        "{second}"
    );
}

#[test]
fn the_run_is_recorded_and_names_what_changes_a_row() {
    let folder = &Desk::new();
    let record = folder.join("run.json");
    let items = planted(5);
    let name = record.to_str().expect("UTF-8");
    let answers = scored(&[&COLUMNS[..], &["--run", name]].concat(), &[batch(&items, utf8)]);
    let record = read_json(&record);
    let record = record.get("content").unwrap_or(&record);
    assert_eq!(record["resolved"]["run"], answers[0][0].run.as_str());
    assert_eq!(record["resolved"]["digests"]["results"], results(&answers).to_string().as_str());
    assert_eq!(record["counts"]["scored"], 5);
    assert!(record["model"]["fingerprint"].as_str().is_some_and(|hash| hash.starts_with("full:")), "{record}");
    // Neither threads nor the batch are part of a run; another lens is.
    let run = |args: &[&str]| scored(&[&COLUMNS[..], args].concat(), &[batch(&items[..1], utf8)])[0][0].run.clone();
    assert_eq!(run(&["--max-batch-tokens", "100"]), answers[0][0].run);
    assert_ne!(run(&["--lens", "normed"]), answers[0][0].run);
}

#[test]
fn an_input_without_its_end_mark_ends_the_program() {
    let bytes = stream(&[batch(&planted(3), utf8)]);
    let whole = bytes.len();
    // Before the schema, within it, before the batch, within it, before the end mark, within it.
    for end in [0, 3, 40, whole / 2, whole - 9, whole - 8, whole - 1] {
        let (code, stdout, stderr) = exchange(worker(&COLUMNS), bytes[..end].to_vec());
        assert_eq!(code, Some(1), "cut at {end} of {whole}: {stderr}");
        let said = if end == 0 { "it is empty" } else { "without its end mark" };
        assert!(stderr.contains(said), "{stderr}");
        // Whoever reads the answers sees that they are cut, too.
        let complete =
            BatchReader::new(&stdout[..], "answers").is_ok_and(|mut answers| answers.all(|batch| batch.is_ok()));
        assert!(!complete, "cut at {end}");
    }
    let (code, stdout, stderr) = exchange(worker(&COLUMNS), b"{\"id\": 1}\n".repeat(1000));
    assert_eq!((code, stdout.len()), (Some(1), 0), "{stderr}");
}

/// Sends a batch and waits for its answer.
fn turn(
    writer: &mut BatchWriter<ChildStdin>,
    reader: &mut BatchReader<impl Read>,
    batch: &RecordBatch,
) -> Vec<ResultRow> {
    writer.write(batch).expect("it listens");
    ResultRow::from_batch(&reader.next().expect("an answer").expect("a batch")).expect("results")
}

#[test]
fn each_batch_is_answered_before_the_next_is_sent_and_a_dead_parent_ends_a_pass() {
    let items = planted(4);
    let mut child = worker(&COLUMNS).stderr(Stdio::null()).spawn().expect("it starts");
    let first = batch(&items, utf8);
    let mut writer =
        BatchWriter::new(child.stdin.take().expect("stdin"), "requests", first.schema_ref()).expect("a stream");
    let mut reader = BatchReader::new(child.stdout.take().expect("stdout"), "answers").expect("a stream");
    for part in [&items[..2], &items[2..], &[]] {
        let rows = turn(&mut writer, &mut reader, &batch(part, utf8));
        assert_eq!(
            rows.iter().map(|row| row.id.to_string()).collect::<Vec<_>>(),
            part.iter().map(|item| format!("{:?}", item.0)).collect::<Vec<_>>()
        );
    }
    // Work for minutes, and nobody to wait for it.
    let much: Vec<Item> =
        (0..200_000).map(|n| (n.to_string(), Some(format!("What is {n} + 1?")), Some("2".to_owned()))).collect();
    writer.write(&batch(&much, utf8)).expect("it listens");
    drop(writer);
    assert_eq!(child.wait().expect("it ends").code(), Some(1));
    assert!(matches!(reader.next(), Some(Err(_))), "an answer that nobody waited for");
}

#[test]
fn rows_of_others_are_refused_unless_somebody_insists() {
    let strange = vec![("s".to_owned(), Some("Name a river.".to_owned()), Some("The Rhine.".to_owned()))];
    let (no_rows, own) = (Vec::new(), planted(3));
    let model = crate::program::embedded_model();
    let named = ["--model", model.to_str().expect("text")];
    for (batches, args, ends_with, times) in [
        (vec![&no_rows, &strange, &strange], &["--embedded"][..], 0, 1),
        (vec![&no_rows, &own, &strange], &[], 2, 0),
        (vec![&own], &[], 0, 0),
        (vec![&strange], &named, 0, 0),
        (vec![&strange], &["--embedded", "--quiet"], 0, 0),
    ] {
        let batches: Vec<RecordBatch> = batches.into_iter().map(|items| batch(items, utf8)).collect();
        let mut command = judge("score_stream");
        command.env_remove("JUDGE_EMBEDDED").args(COLUMNS).args(args);
        let (code, _, stderr) = exchange(command, stream(&batches));
        let notes = stderr.matches("note: row \"s\" is no exercise").count();
        assert_eq!((code, notes), (Some(ends_with), times), "{args:?}: {stderr}");
    }
}
