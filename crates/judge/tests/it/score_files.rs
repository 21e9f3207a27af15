//! Shards of Parquet files: the same rows however they are cut and killed, and a check that names whatever is damaged.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use arrow_array::builder::{Float64Builder, ListBuilder};
use arrow_array::{ArrayRef, BooleanArray, Decimal128Array, Float32Array, Float64Array, RecordBatch, StringArray};
use judge_data::{BatchReader, BatchWriter, ParquetTable, PartRecord, ResultColumns, ResultRow, ShardPlan, load, save};
use parquet::arrow::ArrowWriter;
use parquet::basic::{BrotliLevel, Compression, GzipLevel, ZstdLevel};
use parquet::file::properties::WriterProperties;
use serde_json::{Value, json};
use tiny_judge::planted::{Item as Row, Split, generate};

use crate::program::{Desk, fed, finished, judge, ran, refused, succeed, words};

const PLAN: &str = "plan --input in --columns instruction=prompt,response=completion --quiet --output";
const RUN: &str = "run --plan plan.json --output parts --quiet --shard 0/1";
const CHECK: &str = "check --plan plan.json --output parts --quiet";

fn plan<'a>(output: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&words(PLAN)[..], &[output], more].concat()
}

/// A folder with 200 rows in three files, of other compressions, orders of columns and row groups.
struct Shards(Desk);

impl Shards {
    fn new() -> Self {
        let desk = Self(Desk::new());
        fs::create_dir_all(desk.join("in/year=2020")).expect("folder");
        let rows = rows(200);
        write(&desk.join("in/train-00000-of-00002.parquet"), &batch(&rows[..90]), Compression::SNAPPY);
        let other_order = batch(&rows[90..160]).project(&[2, 0, 1]).expect("columns");
        write(&desk.join("in/train-00001-of-00002.parquet"), &other_order, Compression::ZSTD(ZstdLevel::default()));
        write(&desk.join("in/year=2020/a.parquet"), &batch(&rows[160..]), Compression::UNCOMPRESSED);
        desk.put("in/_metadata.parquet", "no data");
        desk
    }

    fn planned(rows_per_shard: &str) -> Self {
        let desk = Self::new();
        desk.ok(&plan("plan.json", &["--rows-per-shard", rows_per_shard]));
        desk
    }

    fn ok(&self, args: &[&str]) -> String {
        succeed("score_files", &self.0, args)
    }

    #[track_caller]
    fn fails(&self, args: &[&str], code: i32, said: &[&str]) {
        refused("score_files", &self.0, args, code, said);
    }

    fn run(&self, share: &str) {
        self.ok(&[&words(RUN)[..7], &[share]].concat());
    }

    /// What the check of the parts says; that it is complete, or what is not.
    fn check(&self, more: &[&str]) -> Value {
        let args = [&words(CHECK)[..], &["--json", "check.json"], more].concat();
        let (code, stdout, stderr) = ran("score_files", &self.0, &args);
        let found = self.json("check.json");
        assert_eq!(code == Some(0), found["complete"] == true, "{stdout}{stderr}");
        assert!(code.is_some_and(|code| code < 2), "{stdout}{stderr}");
        found
    }

    fn part(&self, shard: usize) -> PathBuf {
        let plan: ShardPlan = load(self.join("plan.json")).expect("a plan");
        PartRecord::part_path(&self.join("parts"), shard, plan.shards())
    }

    /// Changes the rows of a part, and its record with them, as another program would that knows the format.
    fn edit(&self, shard: usize, edit: impl FnOnce(&mut Vec<ResultRow>)) {
        let part = self.part(shard);
        let mut rows = results(&part);
        edit(&mut rows);
        write(&part, &ResultColumns::default().batch(&rows).expect("rows"), Compression::SNAPPY);
        let path = part.with_extension("json");
        let mut record: PartRecord = load(&path).expect("a record");
        let identity = judge_data::InputFile::of(&part).expect("the part");
        (record.file.bytes, record.file.blake3) = (identity.bytes, identity.blake3);
        save(&path, &record).expect("written");
    }
}

impl Deref for Shards {
    type Target = Desk;

    fn deref(&self) -> &Desk {
        &self.0
    }
}

fn rows(n: usize) -> Vec<(String, String, String)> {
    generate(Split::Test, n, 0).into_iter().map(|item| (item.id, item.instruction, item.response)).collect()
}

fn batch(rows: &[(String, String, String)]) -> RecordBatch {
    let column = |of: fn(&(String, String, String)) -> &str| -> ArrayRef {
        Arc::new(rows.iter().map(|row| Some(of(row))).collect::<StringArray>())
    };
    let columns =
        [("id", column(|row| &row.0)), ("prompt", column(|row| &row.1)), ("completion", column(|row| &row.2))];
    RecordBatch::try_from_iter(columns).expect("a batch")
}

fn write(path: &Path, batch: &RecordBatch, compression: Compression) {
    let properties =
        WriterProperties::builder().set_compression(compression).set_max_row_group_row_count(Some(16)).build();
    let file = File::create(path).expect("a file");
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).expect("a writer");
    writer.write(batch).expect("written");
    writer.close().expect("written");
}

fn results(path: &Path) -> Vec<ResultRow> {
    let table = ParquetTable::open(path).expect("a part");
    let columns: Vec<usize> = (0..table.schema().fields().len()).collect();
    let batches = table.batches(&columns, 0..table.rows()).expect("batches");
    batches.flat_map(|batch| ResultRow::from_batch(&batch.expect("a batch")).expect("results")).collect()
}

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
}

fn problems(found: &Value) -> String {
    found["problems"].as_array().expect("problems").iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n")
}

/// What the worker on a pipe answers to these batches, with more options.
fn streamed(folder: &Path, more: &[&str], batches: &[RecordBatch]) -> Vec<ResultRow> {
    let mut requests = Vec::new();
    let mut writer = BatchWriter::new(&mut requests, "requests", batch(&rows(1)).schema_ref()).expect("a stream");
    batches.iter().for_each(|batch| writer.write(batch).expect("written"));
    writer.finish().expect("written");
    let mut command = judge("score_stream");
    command.args(["--columns", "instruction=prompt,response=completion", "--quiet"]).args(more).current_dir(folder);
    let output = fed(&mut command, &requests);
    assert!(output.status.success());
    BatchReader::new(&output.stdout[..], "answers")
        .expect("a stream")
        .flat_map(|batch| ResultRow::from_batch(&batch.expect("a batch")).expect("results"))
        .collect()
}

#[test]
fn any_cut_gives_the_rows_of_the_stream() {
    let streamed = streamed(&Desk::new(), &[], &[batch(&rows(200))]);
    let mut digests = BTreeSet::new();
    for (per_shard, shares) in
        [("1000", vec!["0/1"]), ("70", vec!["2/3", "0/3", "1/3"]), ("30", vec!["1/2", "0/2"]), ("7", vec!["0/1"])]
    {
        let desk = Shards::planned(per_shard);
        for share in shares {
            desk.run(share);
        }
        let found = desk.check(&["--one-device"]);
        assert_eq!((&found["rows"], &found["planned"]), (&Value::from(200), &Value::from(200)), "{found}");
        digests.insert(found["digests"].to_string());
        let plan: ShardPlan = load(desk.join("plan.json")).expect("a plan");
        let parts: Vec<ResultRow> = (0..plan.shards()).flat_map(|shard| results(&desk.part(shard))).collect();
        assert_eq!(parts, streamed, "{per_shard} rows per shard");
        assert!(names(&desk.join("parts")).iter().all(|name| !name.ends_with(".tmp")));
        // There is nothing left to do, and no model is loaded for it.
        let said = desk.ok(&[&words(RUN)[..], &["--model", "/nowhere"]].concat());
        assert!(said.contains("nothing to do"), "{said}");
    }
    assert_eq!(digests.len(), 1, "{digests:?}");
}

/// What is damaged, how, and what is said of it.
type Damage = (&'static str, fn(&Shards), &'static [&'static str]);

#[test]
fn whatever_is_damaged_is_named() {
    let damages: [Damage; 16] = [
        (
            "a part is gone",
            |desk| fs::remove_file(desk.part(1)).expect("removed"),
            &["shard 1: no part", "30 rows of the input without a result"],
        ),
        (
            "a part cannot be read and another one is gone",
            |desk| {
                fs::write(desk.part(0), "PAR1 and no more").expect("written");
                fs::remove_file(desk.part(1)).expect("removed");
            },
            &[
                "part-00000-of-00007.parquet: cannot read it as Parquet",
                "shard 1: no part",
                "60 rows of the input without a result",
            ],
        ),
        (
            "a record is gone",
            |desk| fs::remove_file(desk.part(1).with_extension("json")).expect("removed"),
            &["shard 1", "no record"],
        ),
        (
            "a part is doubled",
            |desk| {
                fs::copy(desk.part(2), desk.join("parts/again.parquet")).expect("copied");
            },
            &["again.parquet is no part of this plan", "30 results repeated, and equal"],
        ),
        (
            "a byte is flipped",
            |desk| {
                let mut bytes = fs::read(desk.part(0)).expect("read");
                bytes[100] ^= 1;
                fs::write(desk.part(0), bytes).expect("written");
            },
            &["part-00000-of-00007.parquet"],
        ),
        (
            "a row is dropped",
            |desk| {
                desk.edit(3, |rows| {
                    rows.remove(4);
                })
            },
            &["1 row of the input without a result", "row 4)"],
        ),
        ("a row is doubled", |desk| desk.edit(3, |rows| rows.push(rows[4].clone())), &["1 result repeated, and equal"]),
        (
            "a row is doubled and differs",
            |desk| {
                desk.edit(3, |rows| {
                    let score = rows[4].score.map(|score| score + 1.0);
                    rows.push(ResultRow { score, ..rows[4].clone() });
                })
            },
            &["1 result repeated, and not equal"],
        ),
        (
            "a row is of another text",
            |desk| desk.edit(3, |rows| rows[4].input[0] ^= 1),
            &["1 result of other texts", "row 4)"],
        ),
        (
            "a row is of nobody",
            |desk| desk.edit(3, |rows| rows[4].id = "nobody".into()),
            &["1 result with ids that the input does not have: \"nobody\"", "1 row of the input without a result"],
        ),
        (
            "two rows are mixed up",
            |desk| {
                desk.edit(3, |rows| {
                    let id = rows[4].id.clone();
                    rows[4].id = std::mem::replace(&mut rows[5].id, id);
                })
            },
            &["2 results of other texts", "row 4)", "row 5)"],
        ),
        (
            "what proves a row is blank",
            |desk| desk.edit(3, |rows| rows[4].input = [0; 16]),
            &["1 result of other texts", "row 4)"],
        ),
        (
            "an input was written again after it was scored",
            |desk| {
                write(&desk.join("in/train-00000-of-00002.parquet"), &batch(&rows(90)), Compression::UNCOMPRESSED);
            },
            &["train-00000-of-00002.parquet", "not the file that the plan was made of"],
        ),
        (
            "a row is of another run",
            |desk| desk.edit(3, |rows| rows[4].run = "0123456789abcdef".to_owned()),
            &["1 row of the run \"0123456789abcdef\""],
        ),
        (
            "a row is from another device",
            |desk| desk.edit(3, |rows| rows[4].device = "cpu (abacus)".to_owned()),
            &["rows of 2 devices", "cpu (abacus)"],
        ),
        (
            "a row was lost",
            |desk| {
                desk.edit(3, |rows| {
                    (rows[4].score, rows[4].status) = (None, "worker_died".to_owned());
                })
            },
            &["1 row whose worker died"],
        ),
    ];
    let whole = Shards::planned("30");
    whole.run("0/1");
    for (what, damage, said) in damages {
        let desk = Shards(Desk::new());
        copy(&whole.0, &desk.0);
        damage(&desk);
        println!("{what}"); // shown if it fails
        desk.fails(&[&words(CHECK)[..], &["--one-device"]].concat(), 1, said);
    }
    // What is let pass.
    let desk = whole;
    assert_eq!(desk.check(&[])["complete"], true);
    desk.edit(3, |rows| rows[4].device = "cpu (abacus)".to_owned());
    assert_eq!(desk.check(&[])["complete"], true);
    // As the glue writes it.
    desk.edit(3, |rows| {
        let lost = ResultRow {
            score: None,
            status: "worker_died".to_owned(),
            tokens: None,
            input: [0; 16],
            ..rows[4].clone()
        };
        rows[4] = ResultRow { run: String::new(), device: String::new(), ..lost };
    });
    assert_eq!(desk.check(&["--allow-lost", "1", "--one-device"])["complete"], true);
    assert_eq!(
        (&desk.check(&[])["lost"], &desk.check(&["--allow-lost", "1"])["complete"]),
        (&Value::from(1), &Value::from(true))
    );
    desk.edit(2, |rows| rows.push(rows[0].clone()));
    let found = desk.check(&["--allow-lost", "1", "--allow-repeats"]);
    assert_eq!((&found["complete"], &found["repeated"]), (&Value::from(true), &Value::from(1)), "{}", problems(&found));
    let page = |name: &str, check: &str| {
        let args = ["--input", "parts", "--run", "plan.json", "--quiet", "--check", check, "--output", name];
        succeed("report", &desk.0, &args);
        desk.text(name)
    };
    fs::copy(desk.join("check.json"), desk.join("passed.json")).expect("copied");
    let passed = "let pass: 1 result of rows that have one already, which count here too, and 1 row whose worker died";
    assert!(page("passed.html", "passed.json").contains(passed));
    // A score that changed by one bit is no fault that anybody could see, but for the digest and the record's hash.
    let before = desk.check(&[])["digests"]["results"].clone();
    desk.edit(1, |rows| rows[0].score = rows[0].score.map(|score| f64::from_bits(score.to_bits() ^ 1)));
    assert_ne!(desk.check(&[])["digests"]["results"], before);
    assert!(page("changed.html", "passed.json").contains("The check is of other results"));
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            fs::create_dir_all(&target).expect("a folder");
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("copied");
        }
    }
}

/// Flips a bit of a text in a file.
fn flip(path: &Path, text: &str) {
    let mut bytes = fs::read(path).expect("read");
    let at = bytes.windows(text.len()).position(|window| window == text.as_bytes()).expect("the text as it is");
    bytes[at] ^= 1;
    fs::write(path, bytes).expect("written");
}

#[test]
fn another_input_plan_or_model_is_refused() {
    let desk = Shards::planned("50");
    let run = words(RUN);
    // Another run than the planned one.
    let text = desk.text("plan.json");
    desk.put("plan.json", text.replace("\"--quiet\"", "\"--quiet\",\n\"--lens\",\n\"normed\""));
    desk.fails(&run, 1, &["another run", "lens"]);
    desk.put("plan.json", &text);
    desk.run("0/2");
    // Parts of another plan.
    desk.ok(&plan("other.json", &words("--rows-per-shard 50 --lens normed")));
    let other = words("run --plan other.json --output parts --shard 0/1");
    desk.fails(&other, 1, &["part-00000-of-00004.json", "take a new folder"]);
    // An input that changed, of the same size and rows.
    let mut changed = rows(200)[160..].to_vec();
    changed[3].2 = changed[3].2.replace(|c: char| c.is_ascii_digit(), "7") + " 7";
    write(&desk.join("in/year=2020/a.parquet"), &batch(&changed), Compression::UNCOMPRESSED);
    desk.fails(&run, 1, &["a.parquet", "not the file that the plan was made of"]);
    // And one whose pages changed, but not its footer.
    let desk = Shards::planned("50");
    flip(&desk.join("in/year=2020/a.parquet"), &rows(200)[170].1);
    desk.fails(&run, 1, &["an input has changed since"]);
    assert!(!desk.join("parts/part-00003-of-00004.parquet").exists());
    assert_eq!(names(&desk.join("parts")).iter().filter(|name| name.ends_with(".tmp")).count(), 0);
}

#[test]
fn what_is_wrong_with_an_input_is_said_when_it_is_planned() {
    let desk = Shards::new();
    let (plan, twice) = (plan("plan.json", &[]), rows(3));
    write(&desk.join("in/z.parquet"), &batch(&[twice[0].clone(), twice[1].clone()]), Compression::SNAPPY);
    desk.fails(&plan, 1, &["occurs twice", "train-00000-of-00002.parquet row", "z.parquet row"]);
    write(&desk.join("in/z.parquet"), &batch(&twice).project(&[0, 1]).expect("columns"), Compression::SNAPPY);
    desk.fails(&plan, 1, &["z.parquet", "{response}", "--columns response=NAME"]);
    desk.put("in/z.parquet", "PAR1 is not enough PAR1");
    desk.fails(&plan, 1, &["z.parquet", "cannot read it as Parquet"]);
    let whole = desk.read("in/year=2020/a.parquet");
    for end in [0, 5, whole.len() / 2, whole.len() - 1] {
        desk.put("in/z.parquet", &whole[..end]);
        desk.fails(&plan, 1, &["z.parquet", "cannot read it as Parquet"]);
    }
    desk.fails(&["plan", "--input", "nowhere/*.parquet", "--output", "p.json"], 2, &["names no Parquet file"]);
    for (option, said) in [("id=", "--columns id= has no effect"), ("id=key", "both name the column of the ids")] {
        let plan = ["plan", "--input", "in", "--output", "p.json", "--id", "idx", "--columns", option];
        desk.fails(&plan, 2, &[said]);
    }
}

#[test]
fn every_compression_is_read_but_one_which_is_named() {
    let desk = Shards(Desk::new());
    let (path, expected) = (desk.join("a.parquet"), batch(&rows(20)));
    for compression in [
        Compression::UNCOMPRESSED,
        Compression::GZIP(GzipLevel::default()),
        Compression::BROTLI(BrotliLevel::default()),
        Compression::LZ4,
        Compression::LZ4_RAW,
        Compression::ZSTD(ZstdLevel::default()),
        Compression::SNAPPY,
    ] {
        write(&path, &expected, compression);
        let found: Vec<RecordBatch> = ParquetTable::open(&path)
            .and_then(|table| table.batches(&[0, 1, 2], 0..20)?.collect())
            .unwrap_or_else(|error| panic!("{compression:?}: {error}"));
        assert_eq!(found, std::slice::from_ref(&expected), "{compression:?}");
    }
    let plan = words("plan --input a.parquet --columns instruction=prompt,response=completion --output p.json");
    let mut bytes = fs::read(&path).expect("read");
    // Of the column `id`, the footer has its name and then the compression, as Thrift writes them.
    let name = [0x18, 2, b'i', b'd', 0x15, 2];
    let at = bytes.windows(name.len()).position(|window| window == name).expect("the column") + name.len() - 1;
    bytes[at] = 6;
    fs::write(&path, bytes).expect("written");
    let said = "\"id\" is compressed with LZO; snappy, zstd, gzip, brotli, LZ4 and uncompressed are read";
    desk.fails(&plan, 1, &["a.parquet", said]);
}

#[test]
fn a_table_of_which_no_row_fits_is_refused_when_it_is_planned() {
    let desk = Shards(Desk::new());
    let column = |texts: [Option<&str>; 2]| -> ArrayRef { Arc::new(StringArray::from(texts.to_vec())) };
    let write_texts = |response: [Option<&str>; 2]| {
        let columns = [("id", [Some("a"), Some("b")]), ("instruction", [Some("q"), None]), ("response", response)];
        let columns = columns.map(|(name, texts)| (name, column(texts), true));
        let batch = RecordBatch::try_from_iter_with_nullable(columns).expect("a batch");
        write(&desk.join("a.parquet"), &batch, Compression::SNAPPY);
    };
    let plan = ["plan", "--input", "a.parquet", "--output", "p.json"];
    let columns = "the columns are [\"id\", \"instruction\", \"response\"]";
    write_texts([None, None]);
    desk.fails(&plan, 1, &["none of the 2 rows has the fields [\"response\"]", columns]);
    write_texts([None, Some("r")]);
    desk.fails(&plan, 1, &["none of the 2 rows has the fields [\"instruction\", \"response\"]", columns]);
    assert!(!desk.join("p.json").exists());
    write_texts([Some("r"), None]);
    desk.ok(&plan);
}

/// Size and footer are those of the plan; the rows are not.
#[test]
fn an_answer_that_was_changed_under_the_same_footer_is_named() {
    let desk = Shards::planned("50");
    desk.run("0/1");
    assert_eq!(desk.check(&[])["complete"], true);
    let (id, _, answer) = rows(200)[170].clone();
    flip(&desk.join("in/year=2020/a.parquet"), &answer);
    let found = desk.check(&[]);
    let problems = problems(&found);
    assert_eq!(found["changed"], 1, "{problems}");
    assert!(problems.contains("not those that were planned") && problems.contains(&id), "{problems}");
}

/// What people gave the rows of a table as an export has it, which is what `judge score` has of the same file; and what the export says.
fn exported(desk: &Shards, name: &str, columns: &[(&str, ArrayRef)]) -> (Vec<Value>, String) {
    let columns = columns.iter().map(|(name, array)| (*name, array.clone(), true));
    let batch = RecordBatch::try_from_iter_with_nullable(columns).expect("a batch");
    write(&desk.join("a.parquet"), &batch, Compression::SNAPPY);
    let [plan, parts, output, direct] = ["plan.json", "parts", "e.jsonl", "d.jsonl"].map(|end| format!("{name}-{end}"));
    desk.ok(&["plan", "--input", "a.parquet", "--output", &plan, "--quiet"]);
    desk.ok(&["run", "--plan", &plan, "--output", &parts, "--quiet", "--shard", "0/1"]);
    let export = ["export", "--plan", &plan, "--parts", &parts, "--output", &output, "--quiet"];
    let (_, stderr) = finished("shards", &desk.0, &export);
    succeed("score", &desk.0, &["--input", "a.parquet", "--output", &direct, "--quiet"]);
    let [exported, direct] = [output, direct].map(|file| -> Vec<Value> {
        let found = desk.rows(file);
        found.iter().map(|row| row.get("human").cloned().unwrap_or_default()).collect()
    });
    assert_eq!(exported, direct, "{name}");
    (exported, stderr)
}

/// The human scores of an export are those that `judge score` reads of the same file, whatever a column holds.
#[test]
fn human_scores_of_any_form_are_exported_as_they_are_scored() {
    let desk = Shards(Desk::new());
    let texts = |texts: [&str; 3]| -> ArrayRef { Arc::new(StringArray::from(texts.to_vec())) };
    let mut raters = ListBuilder::new(Float64Builder::new());
    raters.append_value([None, Some(1.0), Some(f64::NAN)]);
    raters.append_value([Some(2.0), None]);
    raters.append_null();
    let decimals = Decimal128Array::from(vec![450, 100, 5]).with_precision_and_scale(5, 2).expect("decimals");
    let cases: [(&str, ArrayRef, [Value; 3], &str); 6] = [
        (
            "texts",
            texts(["4", "N/A", "4.5"]),
            [json!(4.0), json!(null), json!(4.5)],
            "in 1 of 3 rows what people gave is no grade",
        ),
        ("decimals", Arc::new(decimals), [4.5, 1.0, 0.05].map(Value::from), ""),
        ("single", Arc::new(Float32Array::from(vec![0.1, 2.0, 3.5])), [0.1, 2.0, 3.5].map(Value::from), ""),
        ("truths", Arc::new(BooleanArray::from(vec![true, false, true])), [1.0, 0.0, 1.0].map(Value::from), ""),
        (
            "nan",
            Arc::new(Float64Array::from(vec![f64::NAN, 1.0, 2.0])),
            [json!(null), json!(1.0), json!(2.0)],
            "\"human\" holds NaN, first in row 0",
        ),
        (
            "raters",
            Arc::new(raters.finish()),
            [json!([null, 1.0, null]), json!([2.0, null]), json!(null)],
            "\"human\" holds NaN",
        ),
    ];
    for (name, human, expected, said) in cases {
        let columns = [
            ("id", texts(["a", "b", "c"])),
            ("instruction", texts(["q", "p", "o"])),
            ("response", texts(["r", "s", "t"])),
            ("human", human),
        ];
        let (found, stderr) = exported(&desk, name, &columns);
        assert!(if said.is_empty() { !stderr.contains("note: ") } else { stderr.contains(said) }, "{name}: {stderr}");
        assert_eq!(found, expected, "{name}");
    }
}

/// Of several columns the one is exported that a command reads, and where either may be meant neither is.
#[test]
fn human_scores_are_exported_from_the_column_that_a_command_reads() {
    let desk = Shards(Desk::new());
    let texts = |texts: [&str; 3]| -> ArrayRef { Arc::new(StringArray::from(texts.to_vec())) };
    let numbers = |numbers: [Option<f64>; 3]| -> ArrayRef { Arc::new(Float64Array::from(numbers.to_vec())) };
    for (name, scores, expected, notes) in [
        ("null", [None; 3], [json!(1.0), json!(null), json!(3.0)], 0),
        ("both", [Some(2.0); 3], [json!(null), json!(2.0), json!(null)], 1),
    ] {
        let columns = [
            ("idx", texts(["a", "b", "c"])),
            ("instruction", texts(["q", "p", "o"])),
            ("response", texts(["r", "s", "t"])),
            ("scores", numbers(scores)),
            ("score", numbers([Some(1.0), None, Some(3.0)])),
        ];
        let (found, stderr) = exported(&desk, name, &columns);
        let said = "in 2 of 3 rows what people gave is no grade";
        assert_eq!(stderr.matches(said).count(), notes, "{name}: {stderr}");
        assert_eq!(found, expected, "{name}");
    }
}

/// A kill between the file and its record leaves the record alone, which counts for nothing.
#[test]
fn an_export_can_be_repeated() {
    let desk = Shards::planned("150");
    desk.run("0/1");
    let export = words("export --plan plan.json --parts parts --output e.jsonl --quiet");
    succeed("shards", &desk.0, &export);
    let before = desk.read("e.jsonl");
    fs::remove_file(desk.join("e.jsonl")).expect("removed");
    let more: [&[&str]; 2] = [&[], &["--overwrite"]];
    for more in more {
        succeed("shards", &desk.0, &[&export[..], more].concat());
        assert!(desk.read("e.jsonl") == before, "{more:?}");
    }
}

#[test]
fn shares_come_from_the_scheduler() {
    let desk = Shards::planned("50");
    let run = |name: &str, value: &str| -> Command {
        let mut command = judge("score_files");
        command
            .args(["run", "--plan", "plan.json", "--output", "parts", "--quiet", "--of", "2"])
            .current_dir(&desk.0)
            .env(name, value);
        command
    };
    assert!(run("SLURM_ARRAY_TASK_ID", "1").status().expect("it starts").success());
    assert_eq!(names(&desk.join("parts")).len(), 4);
    assert!(desk.part(1).exists() && desk.part(3).exists());
    assert!(run("JOB_COMPLETION_INDEX", "0").status().expect("it starts").success());
    assert_eq!(desk.check(&[])["complete"], true);
    for (name, value) in [("SLURM_ARRAY_TASK_ID", "2"), ("JOB_COMPLETION_INDEX", "x"), ("UNKNOWN", "0")] {
        assert_eq!(run(name, value).output().expect("it starts").status.code(), Some(2), "{name}={value}");
    }
    for share in ["2/2", "0/0", "1", "a/b"] {
        desk.fails(&["run", "--plan", "plan.json", "--output", "parts", "--shard", share], 2, &["i/n"]);
    }
}

/// What a loss of power may leave of a record.
#[test]
fn an_empty_record_counts_for_nothing() {
    let desk = Shards::planned("100");
    desk.run("0/1");
    fs::write(desk.part(1).with_extension("json"), "").expect("written");
    desk.run("0/1");
    assert_eq!(desk.check(&[])["complete"], true);
}

#[test]
fn killed_and_doubled_runs_leave_whole_parts_and_nothing_else() {
    let desk = Shards::planned("5");
    let start = |share: &str| {
        let mut command = judge("score_files");
        command.args(&words(RUN)[..7]).arg(share);
        command.current_dir(&desk.0).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts")
    };
    // Each is killed once it has made some parts, wherever it is then.
    for parts in [1, 9, 18, 27] {
        let mut child = start("0/1");
        let made = || {
            desk.join("parts").is_dir()
                && names(&desk.join("parts")).iter().filter(|name| name.ends_with(".json")).count() >= parts
        };
        while !made() && child.try_wait().expect("it runs").is_none() {
            std::thread::yield_now();
        }
        child.kill().expect("killed");
        child.wait().expect("it ends");
    }
    // A temporary file of an attempt that died long ago.
    desk.put("parts/.part-00039-of-00040.abc.tmp", "half");
    let mut both = [start("0/1"), start("0/1")];
    for child in &mut both {
        assert!(child.wait().expect("it ends").success());
    }
    assert_eq!(desk.check(&["--one-device"])["complete"], true);
    let found = names(&desk.join("parts"));
    let temporary: Vec<&String> = found.iter().filter(|name| name.ends_with(".tmp")).collect();
    assert!(temporary.is_empty(), "{temporary:?}");
    assert_eq!(found.len(), 80);
}

#[test]
fn what_an_engine_wrote_is_checked_by_the_record_of_the_run() {
    let desk = Shards::planned("60");
    desk.run("0/1");
    // The record of a worker with the same options, which had no batch to score.
    streamed(&desk.0, &["--run", "run.json"], &[]);
    let args = words("check --input in --output parts/*.parquet --run run.json --quiet");
    desk.ok(&args);
    desk.edit(1, |rows| rows[2].input[3] ^= 1);
    desk.fails(&args, 1, &["1 result of other texts", "part-00001-of-00004.parquet row 2"]);
    fs::remove_file(desk.part(1)).expect("removed");
    desk.fails(&args, 1, &["60 rows of the input without a result"]);
    desk.fails(&["check", "--input", "in", "--output", "parts"], 2, &["--run"]);
}

#[test]
fn what_was_scored_is_exported_in_the_order_of_the_input() {
    let desk = Shards(Desk::new());
    let rows = generate(Split::Test, 150, 0);
    let text =
        |of: fn(&Row) -> &str| -> ArrayRef { Arc::new(rows.iter().map(|row| Some(of(row))).collect::<StringArray>()) };
    let mut raters = ListBuilder::new(Float64Builder::new());
    for (index, row) in rows.iter().enumerate() {
        // Nobody graded some, and one rater is silent in others.
        match index % 10 {
            3 => raters.append_null(),
            _ => raters.append_value([Some(row.scores[0]), None, Some(row.scores[2])]),
        }
    }
    let columns: [(&str, ArrayRef); 4] = [
        ("id", text(|row| &row.id)),
        ("scores", Arc::new(raters.finish())),
        ("instruction", text(|row| &row.instruction)),
        ("response", text(|row| &row.response)),
    ];
    let batch =
        RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true))).expect("a batch");
    fs::create_dir(desk.join("in")).expect("folder");
    write(&desk.join("in/rows.parquet"), &batch, Compression::SNAPPY);
    let options = ["--logits", "--probabilities", "--quiet", "--rows-per-shard", "40"];
    desk.ok(&[&["plan", "--input", "in", "--output", "plan.json"][..], &options].concat());
    desk.run("0/1");
    let export = [&words(CHECK)[..], &["--export", "scores.jsonl", "--json", "check.json"]].concat();
    let said = desk.ok(&export);
    assert!(said.contains("150 rows, 135 of them with a human score"), "{said}");
    desk.ok(&words("export --plan plan.json --parts parts --quiet --output now.jsonl"));
    assert!(desk.read("scores.jsonl") == desk.read("now.jsonl"), "the former spelling writes the same");

    // It is what lager_pointwise writes of the same rows.
    let lines: Vec<Value> = rows
        .iter()
        .enumerate()
        .map(|(index, row)| {
            let human = if index % 10 == 3 { Value::Null } else { json!([row.scores[0], null, row.scores[2]]) };
            json!({"id": row.id, "instruction": row.instruction, "response": row.response, "scores": human})
        })
        .collect();
    desk.write("rows.jsonl", &lines);
    succeed("lager_pointwise", &desk.0, &["--input", "rows.jsonl", "--output", "direct.jsonl", "--quiet"]);
    let (exported, direct) = (desk.rows("scores.jsonl"), desk.rows("direct.jsonl"));
    assert_eq!(exported.len(), 150);
    for (exported, direct) in exported.iter().zip(&direct) {
        for field in ["id", "human", "score", "probabilities", "labels", "layers", "logits", "unscored"] {
            assert_eq!(exported.get(field), direct.get(field), "{field}");
        }
    }
    for (exported, row) in exported.iter().zip(&rows) {
        assert_eq!((&exported["instruction"], &exported["response"]), (&json!(row.instruction), &json!(row.response)));
    }
    // Other programs take it, with the record beside it.
    let fit = ["--valid", "scores.jsonl", "--weights-out", "weights.json", "--input", "scores.jsonl"];
    assert!(succeed("lager_evaluate", &desk.0, &fit).contains("135 items scored and graded"));
    assert!(succeed("agreement", &desk.0, &["--input", "scores.jsonl"]).contains("135 rows"));
    let report = words("--input scores.jsonl --check check.json --output report.html --quiet");
    assert!(succeed("report", &desk.0, &report).contains("150 rows, 150 scored, 135 with a human score"));
    let page = |check: &str| {
        let args = ["--input", "scores.jsonl", "--check", check, "--output", "report.html", "--quiet", "--overwrite"];
        succeed("report", &desk.0, &args);
        desk.text("report.html")
    };
    assert!(page("check.json").contains("Complete: the check found every row of the input once"));
    let mut other = desk.json("check.json");
    other["runs"] = json!({"another": 150});
    desk.put("other.json", other.to_string());
    assert!(page("other.json").contains("The check is of other results"));
    let whole = desk.read("scores.jsonl");
    desk.put("scores.jsonl", [&whole[..], b"\n"].concat());
    assert!(page("check.json").contains("Not known: the check found every row, but the file has changed"));
    desk.put("scores.jsonl", whole);
    // And the parts as they are.
    let report = words("--input parts --run plan.json --check check.json --output parts.html --quiet");
    assert!(succeed("report", &desk.0, &report).contains("150 rows, 150 scored, 0 with a human score"));
    let page = desk.text("parts.html");
    let found = desk.json("check.json");
    for expected in
        ["Complete: the check", "Slowest of 4 parts", found["digests"]["results"].as_str().expect("a digest")]
    {
        assert!(page.contains(expected), "{expected:?} is not in {page}");
    }

    // An engine's rows come in any order, and without logits they are no tables.
    let mut results: Vec<ResultRow> = (0..4).rev().flat_map(|shard| results(&desk.part(shard))).collect();
    results.reverse();
    results.swap(3, 140);
    fs::create_dir(desk.join("out")).expect("folder");
    let columns = ResultColumns { probabilities: true, ..ResultColumns::default() };
    write(&desk.join("out/a.parquet"), &columns.batch(&results).expect("rows"), Compression::SNAPPY);
    let plan = desk.json("plan.json");
    let plan = &plan["content"];
    let record = json!({"format": "judge-run-record", "version": 2, "content": {
        "settings": {"items": plan["items"]}, "resolved": plan["resolved"],
    }});
    desk.put("run.json", record.to_string());
    desk.ok(&words("check --input in --output out --run run.json --quiet --export engine.jsonl"));
    for (engine, direct) in desk.rows("engine.jsonl").iter().zip(&direct) {
        for field in ["id", "human", "score", "probabilities"] {
            assert_eq!(engine.get(field), direct.get(field), "{field}");
        }
    }
    // What is not complete is not exported, and a column that is not there is refused.
    desk.fails(&[&export[..], &["--human", "nowhere", "--overwrite"]].concat(), 1, &["nowhere"]);
    fs::remove_file(desk.join("scores.jsonl")).expect("removed");
    fs::remove_file(desk.part(2)).expect("removed");
    desk.fails(&export, 1, &["shard 2: no part"]);
    assert!(!desk.join("scores.jsonl").exists());
}

#[test]
fn a_foreign_file_is_in_the_way_of_a_plan_a_part_and_what_is_made_of_them() {
    let desk = Shards::planned("150");
    let mine = |name: &str| desk.put(name, "a file of mine");
    let stays = |name: &str, args: &[&str]| {
        desk.fails(args, 2, &[Path::new(name).file_name().and_then(|name| name.to_str()).expect("a name")]);
        assert_eq!(desk.text(name), "a file of mine", "{name}");
        fs::remove_file(desk.join(name)).expect("removed");
    };
    mine("other.json");
    stays("other.json", &plan("other.json", &["--model", "nowhere"]));
    let run = words(RUN);
    fs::create_dir(desk.join("parts")).expect("folder");
    for name in ["parts/part-00001-of-00002.parquet", "parts/part-00000-of-00002.json"] {
        mine(name);
        stays(name, &[&run[..], &["--model", "nowhere"]].concat());
    }
    desk.run("0/1");
    let check = words(CHECK);
    for (option, name) in [("--json", "c.json"), ("--export", "e.jsonl"), ("--export", "e.jsonl.run.json")] {
        mine(name);
        stays(name, &[&check[..], &[option, name.trim_end_matches(".run.json")]].concat());
    }
    // A plan of other rows is not put in the place of one that parts may have been made by; an export is known again.
    desk.fails(&plan("plan.json", &["--rows-per-shard", "100"]), 2, &["plan.json exists"]);
    desk.ok(&plan("plan.json", &["--rows-per-shard", "150"]));
    let export = [&check[..], &["--export", "e.jsonl"]].concat();
    desk.ok(&export);
    assert!(desk.ok(&export).contains("e.jsonl is complete"));
}

#[test]
fn rows_of_others_are_refused_unless_the_plan_insists() {
    let desk = Shards::planned("100");
    let unasked = |args: &[&str]| {
        let mut command = judge("score_files");
        command.env_remove("JUDGE_EMBEDDED").current_dir(&desk.0);
        let output = command.args(args).output().expect("the program starts");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let run = |plan: &str, parts: &str| unasked(&["run", "--plan", plan, "--output", parts, "--shard", "0/1"]);
    let (code, stderr) = run("plan.json", "parts");
    assert!(code == Some(0) && !stderr.contains("exercise"), "{stderr}");
    let strange: Vec<(String, String, String)> =
        (0..4).map(|id| (id.to_string(), "Name a river.".to_owned(), "The Rhine.".to_owned())).collect();
    write(&desk.join("strange.parquet"), &batch(&strange), Compression::SNAPPY);
    let plan = ["plan", "--input", "strange.parquet", "--columns", "instruction=prompt,response=completion"];
    let (code, stderr) = unasked(&[&plan[..], &["--output", "refused.json"]].concat());
    assert!(code == Some(2) && stderr.contains("row \"0\"") && stderr.contains("--embedded"), "{stderr}");
    assert!(!desk.join("refused.json").exists());
    desk.ok(&[&plan[..], &["--rows-per-shard", "2", "--output", "strange.json"]].concat());
    let (code, stderr) = run("strange.json", "strange");
    assert!(code == Some(2) && stderr.contains("row \"0\"") && stderr.contains("--embedded"), "{stderr}");
    desk.ok(&[&plan[..], &["--rows-per-shard", "2", "--output", "insisted.json", "--embedded"]].concat());
    let (code, stderr) = run("insisted.json", "insisted");
    assert_eq!((code, stderr.matches("is no exercise").count()), (Some(0), 1), "once for both shards: {stderr}");
}
