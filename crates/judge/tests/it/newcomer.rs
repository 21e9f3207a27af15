//! A first day with the examples: own rows, named as people name them, through the real programs.
//! What went wrong there once is tested here.

use std::fs;

use serde_json::{Value, json};
use tiny_judge::planted::{Split, generate};

use crate::program::{Desk, Said, fed, judge, run};

/// A desk with `rows.jsonl`: [`own_rows`].
fn with_rows() -> Desk {
    let desk = Desk::new();
    desk.write("rows.jsonl", &own_rows());
    desk
}

/// Rows as an export has them: integer ids, names of one's own, gaps.
fn own_rows() -> Vec<Value> {
    let row = |(at, item): (usize, tiny_judge::planted::Item)| {
        let mut scores: Vec<Value> = item.scores.iter().map(|score| json!(score)).collect();
        scores[at % 3] = Value::Null; // not everybody grades everything
        let human = if at % 4 == 3 { Value::Null } else { json!(scores) };
        let topic = if at % 3 == 2 { Value::Null } else { json!(["sums", "animals"][at % 3]) };
        json!({"id": 1000 + at, "question": item.instruction, "answer": item.response, "human": human, "annotator": null, "topic": topic})
    };
    generate(Split::Test, 12, 0).into_iter().enumerate().map(row).collect()
}

/// Graded answers of the aspect `fluency` with grades from 2 to 5, some of which are equally good.
pub fn pairs(n: usize) -> Vec<Value> {
    let row = |(at, item): (usize, tiny_judge::planted::Item)| {
        let response = format!("{}{}", item.response, " And so on.".repeat(at % 4));
        json!({"id": at, "aspect": "fluency", "question": item.instruction, "response": response, "score": 2 + at % 4})
    };
    generate(Split::Test, n, 0).into_iter().enumerate().map(row).collect()
}

/// A desk with `pairs.jsonl`, and `probes` trained on them.
fn with_probes() -> Desk {
    let desk = Desk::new();
    desk.write("pairs.jsonl", &pairs(40));
    desk.ok("inspector_train --input pairs.jsonl --output probes --layers 2 --pooling mean --folds 2 --c 0.01 --top-k 1 --quiet");
    desk
}

// Blocker 1.

#[test]
fn an_output_that_is_an_input_is_refused_and_the_input_stays() {
    let desk = with_rows();
    desk.put("probe.pkl", "a pickle");
    fs::hard_link(desk.join("rows.jsonl"), desk.join("same.jsonl")).unwrap();
    let before = (desk.read("rows.jsonl"), desk.read("probe.pkl"));
    for line in [
        "inspector_filter --input rows.jsonl --probes p --top-share 0.2 --output rows.jsonl",
        "inspector_filter --input rows.jsonl --probes p --top-share 0.2 --output o.jsonl --json rows.jsonl",
        "inspector_evaluate --input rows.jsonl --probes p --output rows.jsonl",
        "inspector_evaluate --input rows.jsonl --probes probe.pkl --output probe.pkl",
        "lager_pointwise --data rows.jsonl --output rows.jsonl",
        "lager_pointwise --input rows.jsonl --output ./same.jsonl --overwrite",
        "lager_pointwise --input rows.jsonl --output o.jsonl --lager-json rows.jsonl",
        "lager_pointwise --input rows.jsonl --output probe.pkl --weights probe.pkl",
        "layer_logits --input rows.jsonl --output rows.jsonl --raw-prompt --limit 5",
        "hidden_states --input rows.jsonl --output rows.jsonl",
        "agreement --input rows.jsonl --json rows.jsonl",
        "lager_evaluate --valid rows.jsonl --data rows.jsonl --weights-out rows.jsonl",
        "lager_evaluate --valid rows.jsonl --data same.jsonl --json rows.jsonl",
        "calibrate --graded rows.jsonl --input rows.jsonl --output same.jsonl",
        "throughput --input rows.jsonl --json rows.jsonl",
        "probe_apply --probe probe.pkl --input rows.jsonl --output probe.pkl",
        "probe_apply --probe probe.pkl --input rows.jsonl --output rows.jsonl",
        "probe_import --input probe.pkl --output probe.pkl",
    ] {
        desk.refused_at_once(line, 2, &["is the same file as the input"]);
        assert_eq!((desk.read("rows.jsonl"), desk.read("probe.pkl")), before, "{line}");
    }
}

#[cfg(unix)]
#[test]
fn a_link_is_followed_and_what_is_no_file_is_refused() {
    use std::os::unix::fs::symlink;

    let desk = with_rows();
    fs::create_dir(desk.join("scratch")).unwrap();
    desk.put("scratch/real.jsonl", "");
    symlink("scratch/real.jsonl", desk.join("link.jsonl")).unwrap();
    desk.ok("lager_pointwise --input rows.jsonl --output link.jsonl --limit 2 --quiet");
    assert!(fs::symlink_metadata(desk.join("link.jsonl")).unwrap().is_symlink());
    assert_eq!(desk.rows("scratch/real.jsonl").len(), 2);
    symlink("rows.jsonl", desk.join("input.jsonl")).unwrap();
    desk.refused_at_once("lager_pointwise --input rows.jsonl --output input.jsonl", 2, &["the same file as the input"]);

    // As /dev/stdout is; not that itself, which a failure would destroy.
    symlink("/proc/self/fd/1", desk.join("stdout")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(desk.join("socket")).unwrap();
    for (output, says) in [
        ("stdout", "an open stream"),
        ("socket", "expected a regular file"),
        ("scratch", "is a folder"),
        ("-", "cannot go to standard output"),
    ] {
        for name in ["lager_pointwise", "layer_logits", "hidden_states"] {
            desk.refused_at_once(&format!("{name} --input rows.jsonl --output {output}"), 2, &[says]);
        }
        desk.refused_at_once(
            &format!("inspector_evaluate --input rows.jsonl --probes p --output {output}"),
            2,
            &[says],
        );
    }
    assert!(!desk.join("-").exists() && fs::symlink_metadata(desk.join("stdout")).unwrap().is_symlink());
}

// Blockers 2, 3 and 4.

#[test]
fn rows_without_a_rubric_are_graded_and_agreement_reads_the_scores() {
    let desk = with_rows();
    let said = desk.ok("lager_pointwise --input rows.jsonl --output s.jsonl");
    assert!(said.stdout.contains("12 of 12 items scored (e_score), 9 with a human score"), "{}", said.stdout);
    let (rows, scored) = (desk.rows("rows.jsonl"), desk.rows("s.jsonl"));
    for (row, scored) in rows.iter().zip(&scored) {
        assert_eq!(
            (&scored["id"], scored.get("topic"), scored.get("annotator")),
            (&row["id"], row.get("topic"), Some(&Value::Null))
        );
        assert!((1.0..=5.0).contains(&scored["score"].as_f64().unwrap()));
        let raters = row["human"].as_array().filter(|raters| raters.iter().any(|grade| !grade.is_null()));
        assert_eq!(scored["human"].as_array(), raters, "every rater keeps the place");
    }

    let said = desk.ok("agreement --input s.jsonl --group topic --json a.json --quiet");
    assert!(said.stdout.contains("score against human: 9 rows, 3 left out (3 no_human_score)"), "{}", said.stdout);
    let found = desk.json("a.json");
    let groups: Vec<&str> = found["groups"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(groups, ["(no topic)", "animals", "sums"]);
    assert!(found["statistics"]["spearman"]["estimate"].is_f64());
    assert!(found["statistics"]["human_icc_1"]["estimate"].is_f64(), "the raters' own agreement");
    // 11. Scores that are no classes have no agreement by class.
    assert!(found["statistics"]["krippendorff_alpha_nominal"]["undefined"].is_string());
    // 34. One line a group.
    let said = desk.ok("agreement --input s.jsonl --group topic --statistics mae --quiet");
    assert_eq!(said.stdout.lines().filter(|line| line.starts_with("animals")).count(), 1, "{}", said.stdout);

    // What else a template wants is said with the way out, before any model work.
    desk.put("t.json", r#"{"chat": {"messages": [{"role": "user", "content": "{reference}: {response}"}]}}"#);
    let line = "lager_pointwise --input rows.jsonl --output o.jsonl --template t.json";
    desk.refused_at_once(line, 1, &["\"reference\"", "t.json", "--columns", "--template"]);
    desk.ok("lager_pointwise --input rows.jsonl --output r.jsonl --limit 2 --quiet --rubric Rate_it.");
    assert_ne!(desk.rows("r.jsonl")[0]["score"], scored[0]["score"]);
}

#[test]
fn grades_are_found_under_their_names_and_never_lost_in_silence() {
    let desk = Desk::new();
    let graded = |name: &str| -> Vec<Value> {
        let rows = own_rows().into_iter().take(4);
        rows.map(|mut row| {
            let fields = row.as_object_mut().unwrap();
            fields.remove("human");
            fields.insert(name.to_owned(), json!([3, null, 4]));
            row
        })
        .collect()
    };
    for name in ["human", "scores", "score"] {
        desk.write("in.jsonl", &graded(name));
        let said = desk.ok("lager_pointwise --input in.jsonl --output o.jsonl --overwrite --quiet");
        assert!(said.stdout.contains("4 of 4 items scored (e_score), 4 with a human score"), "{name}: {}", said.stdout);
        assert!(desk.rows("o.jsonl").iter().all(|row| row["human"] == json!([3.0, null, 4.0])), "{name}");
    }
    // A name of one's own is pointed out, and read where it is named.
    desk.write("in.jsonl", &graded("human_score"));
    let said = desk.ok("lager_pointwise --input in.jsonl --output o.jsonl --overwrite --quiet");
    assert!(said.stdout.contains("0 with a human score"), "{}", said.stdout);
    assert!(
        said.stderr.contains("none of the 4 rows has a human score; \"human_score\" looks like one"),
        "{}",
        said.stderr
    );
    desk.refused(
        "lager_evaluate --data o.jsonl --variants e_score",
        1,
        &["none of the 4 scored items has a human score"],
    );
    desk.refused("agreement --input o.jsonl", 1, &["no row has a human score", "\"human_score\"", "--human"]);
    desk.ok("agreement --input o.jsonl --human human_score --statistics mae");
    let said =
        desk.ok("lager_pointwise --input in.jsonl --output o.jsonl --overwrite --quiet --columns human=human_score");
    assert!(said.stdout.contains("4 with a human score"), "{}", said.stdout);

    // What is advised can be copied, and a name that promises another format is said.
    desk.write("in.jsonl", &graded("human score"));
    let said = desk.ok("lager_pointwise --input in.jsonl --output o.csv --quiet");
    for told in ["looks like one: --columns 'human=human score'", "note: o.csv gets JSON lines, whatever its name"] {
        assert!(said.stderr.contains(told), "{}", said.stderr);
    }

    // Prompts keep their grades too. 13. One off the scale is said where it is read, and by its id where it matters.
    let prompt = |at: usize, grade: u8| json!({"id": format!("p{at}"), "prompt": "Is it?", "scores": grade});
    desk.write("p.jsonl", &[prompt(0, 3), prompt(1, 70)]);
    let said = desk.ok("lager_pointwise --input p.jsonl --output ps.jsonl --quiet");
    assert!(said.stdout.contains("2 of 2 items scored (e_score), 2 with a human score"), "{}", said.stdout);
    assert!(
        said.stderr.contains("note: 1 human score is off the scale 1 to 5, the first is 70 of item \"p1\""),
        "{}",
        said.stderr
    );
    assert_eq!(desk.rows("ps.jsonl")[1]["human"], json!(70.0));
    desk.refused("lager_evaluate --valid ps.jsonl --data ps.jsonl", 1, &["from 1 to 5, found 70 of item \"p1\""]);
}

// Blocker 5; that interrupted runs resume is in kill.rs.

#[test]
fn a_path_that_cannot_be_written_is_said_before_the_work() {
    let desk = with_probes();
    desk.write("rows.jsonl", &own_rows());
    for line in [
        "inspector_filter --input pairs.jsonl --probes probes --output nofolder/x.jsonl --top-share 0.1",
        "inspector_filter --input pairs.jsonl --probes probes --output x.jsonl --json nofolder/x.json --top-share 0.1",
        "inspector_evaluate --input pairs.jsonl --probes probes --output nofolder/x.jsonl",
        "lager_pointwise --input rows.jsonl --output nofolder/x.jsonl",
        "lager_pointwise --input rows.jsonl --output x.jsonl --lager-json nofolder/x.json",
        "hidden_states --input rows.jsonl --output nofolder/x.safetensors",
        "layer_logits --input rows.jsonl --output nofolder/x.jsonl --columns prompt=question",
        "throughput --input rows.jsonl --json nofolder/x.json",
        "agreement --input pairs.jsonl --json nofolder/x.json",
        "lager_evaluate --data rows.jsonl --json nofolder/x.json",
        "calibrate --graded rows.jsonl --input rows.jsonl --output nofolder/x.jsonl",
    ] {
        desk.refused_at_once(line, 2, &["the folder nofolder does not exist"]);
    }
}

// Blocker 6.

#[test]
fn of_equal_totals_the_likeliest_are_kept() {
    let desk = with_probes();
    desk.ok("inspector_evaluate --input pairs.jsonl --probes probes --output judged.jsonl --quiet");
    let judged = desk.rows("judged.jsonl");
    let merit = |row: &Value| (row["total_score"].as_f64().unwrap(), row["expected_total"].as_f64().unwrap());
    let best = judged.iter().map(|row| row["total_score"].as_i64().unwrap()).max().unwrap();
    let equal: Vec<&Value> = judged.iter().filter(|row| row["total_score"] == best).collect();
    assert!(equal.len() >= 3, "ties are what is tested");
    // One less than there are.
    let kept = equal.len() - 1;
    let share = (kept as f64 + 0.5) / judged.len() as f64;
    let said = desk.ok(&format!(
        "inspector_filter --input pairs.jsonl --probes probes --output kept.jsonl --top-share {share} --json kept.json"
    ));
    assert!(said.stdout.contains("1 further row has the same total as the last one kept"), "{}", said.stdout);
    assert_eq!(desk.json("kept.json")["tied"], 1);
    let ids = |name: &str| desk.rows(name).iter().map(|row| row["id"].as_u64().unwrap()).collect::<Vec<_>>();
    let mut order: Vec<&Value> = judged.iter().collect();
    order.sort_by(|a, b| merit(b).partial_cmp(&merit(a)).unwrap());
    let expected: Vec<u64> = order[..kept].iter().map(|row| row["id"].as_u64().unwrap()).collect();
    assert_eq!(ids("kept.jsonl"), expected);
    let first: Vec<u64> = equal[..kept].iter().map(|row| row["id"].as_u64().unwrap()).collect();
    assert_ne!(ids("kept.jsonl"), first, "the first of the file are not the best");
    // 36. The report names its rows.
    assert_eq!(desk.json("kept.json")["kept_rows"][0], json!({"row": expected[0], "total_score": best as f64}));

    // 8. What is there is recognised; another share needs leave, but no model.
    let filter = "inspector_filter --input pairs.jsonl --probes probes --top-share 0.1 --output";
    desk.refused_at_once(
        &format!("{filter} kept.jsonl"),
        2,
        &["kept.jsonl exists, made with other settings", "top_share was"],
    );
    assert_eq!(ids("kept.jsonl"), expected);
    let said = desk.ok(&format!("{filter} kept.jsonl --overwrite"));
    assert!(!said.loaded_a_model() && ids("kept.jsonl") == expected[..4], "{}", said.stderr);
    assert!(desk.ok(&format!("{filter} kept.jsonl")).stdout.contains("kept.jsonl is complete; nothing to do"));

    // 10. Probabilities stand by their classes: grade 1 never occurred.
    let classes: Vec<&str> =
        judged[0]["probabilities"]["fluency"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(classes, ["2", "3", "4", "5"]);
    // 15. A column of the user's is not overwritten.
    desk.refused_at_once(
        "inspector_evaluate --input judged.jsonl --probes probes --output o.jsonl",
        1,
        &["has a field \"fluency\""],
    );
    desk.write("has.jsonl", &[json!({"question": "q", "answer": "a", "unscored": 1})]);
    desk.refused_at_once(
        "inspector_evaluate --input has.jsonl --probes probes --output o.jsonl",
        1,
        &["has a field \"unscored\""],
    );
    // 28. What must be given, and how.
    let bare = "inspector_filter --input pairs.jsonl --probes probes --output o.jsonl";
    desk.refused_at_once(bare, 2, &["--top-share", "--min-total"]);
    desk.refused_at_once(&format!("{bare} --top-percent 20"), 2, &["--top-share", "a fifth of the rows is 0.2"]);
}

// 7.

#[test]
fn a_run_that_scored_nothing_fails() {
    let desk = with_probes();
    desk.write("rows.jsonl", &own_rows());
    desk.put("empty.jsonl", "");
    // What other commands say of such rows is in twice.rs.
    desk.write("long.jsonl", &[json!({"id": 1, "prompt": "word ".repeat(3_000)})]);
    let said = desk.refused("layer_logits --input long.jsonl --output o.jsonl", 1, &["no row was scored: 1 too_long"]);
    assert!(!said.stderr.contains(": 0 tokens/s"), "{}", said.stderr);
    desk.refused("lager_pointwise --input rows.jsonl --output l.jsonl --limit 0", 2, &["--limit", "at least 1"]);
    for line in [
        "lager_pointwise --input empty.jsonl --output e.jsonl",
        "layer_logits --input empty.jsonl --output e2.jsonl",
        "hidden_states --input empty.jsonl --output e.safetensors",
        "inspector_evaluate --input empty.jsonl --probes probes --output e3.jsonl",
        "inspector_train --input empty.jsonl --output p2",
        "lager_evaluate --data empty.jsonl --variants e_score",
        "agreement --input empty.jsonl",
        "throughput --input empty.jsonl",
    ] {
        assert_eq!(desk.start(line).code, Some(1), "{line}");
    }
}

// 8 and 21.

#[test]
fn a_finished_output_is_recognised_or_kept() {
    let desk = with_rows();
    desk.write("other.jsonl", &own_rows()[..3]);
    let line = "lager_pointwise --input rows.jsonl --output s.jsonl --limit 4";
    desk.ok(line);
    let before = desk.read("s.jsonl");
    let again = desk.ok(line);
    assert!(again.stdout.contains("s.jsonl is complete: 4 of 4 items scored; nothing to do"), "{}", again.stdout);
    assert!(!again.loaded_a_model());
    for (more, says) in [
        ("--variant lager_wo", "variant was null, is \"lager_wo\""),
        ("--dtype f32", "dtype was null, is \"f32\""),
        ("--lens normed", "lens was \"raw\", is \"normed\""),
    ] {
        desk.refused_at_once(&format!("{line} {more}"), 2, &["s.jsonl exists", says, "--overwrite"]);
    }
    desk.refused_at_once("lager_pointwise --input other.jsonl --output s.jsonl", 2, &["s.jsonl exists", "inputs"]);
    assert_eq!(desk.read("s.jsonl"), before);
    desk.ok("lager_pointwise --input other.jsonl --output s.jsonl --overwrite --quiet");
    assert_eq!(desk.rows("s.jsonl").len(), 3);
}

// 9, 22 and the option that has nothing to do.

#[test]
fn comparisons_say_what_makes_them_worth_less() {
    let desk = with_rows();
    desk.ok("lager_pointwise --input rows.jsonl --output s.jsonl --quiet");
    let said = desk.ok("lager_evaluate --valid s.jsonl --data s.jsonl --epochs 1");
    assert!(said.stderr.contains("note: 9 of 9 items are in both files"), "{}", said.stderr);
    assert!(said.stderr.contains("note: 9 validation items are few"), "{}", said.stderr);
    // Two answers to a question, one in each file.
    let mut rows = desk.rows("s.jsonl");
    rows.iter_mut().enumerate().for_each(|(place, row)| row["idx"] = json!(place / 2));
    let lines = |part: usize| rows.iter().skip(part).step_by(2).map(|row| format!("{row}\n")).collect::<String>();
    desk.put("v.jsonl", lines(0));
    desk.put("t.jsonl", lines(1));
    let said = desk.ok("lager_evaluate --valid v.jsonl --data t.jsonl --epochs 1");
    assert!(said.stderr.contains("note: 3 of 3 items have the \"idx\" of an item that weights"), "{}", said.stderr);
    let said = desk.ok("lager_evaluate --input s.jsonl --variants e_score,direct_score --json e.json");
    assert!(
        said.stdout.contains("9 items scored and graded") && said.stdout.contains("than people's"),
        "{}",
        said.stdout
    );
    assert!(desk.json("e.json")["weights"].is_null());
    desk.refused("lager_evaluate --input s.jsonl", 2, &["--valid FILE or --weights FILE is needed"]);
    desk.refused("lager_evaluate --input s.jsonl --valid s.jsonl --alpha x", 2, &["--alpha"]);
}

// 15, 16, 17 and 26.

#[test]
fn rows_of_ones_own_are_read_by_their_columns() {
    let desk = Desk::new();
    // A published benchmark's names, and a template with nothing but its text.
    desk.put(
        "t.json",
        r#"{"chat": {"messages": [{"role": "user", "content": "{instruction}\n{response} ({year})"}]}}"#,
    );
    let row = |idx: usize| json!({"idx": idx, "task": "Add 2 and 3.", "reply": "5", "gpt4_score": 4, "year": 2024, "note": {"a": [1]}});
    desk.write("in.jsonl", &[row(0), row(1)]);
    let line = "lager_pointwise --input in.jsonl --output o.jsonl --template t.json --columns instruction=task,response=reply,human=gpt4_score";
    assert!(desk.ok(line).stdout.contains("2 with a human score"));
    let rows = desk.rows("o.jsonl");
    assert_eq!((&rows[1]["id"], &rows[1]["human"], &rows[1]["note"]), (&json!(1), &json!(4.0), &json!({"a": [1]})));
    desk.refused_at_once(&format!("{line} --columns instruction=nothing"), 2, &["--columns"]);
    desk.refused_at_once(
        "lager_pointwise --input in.jsonl --output x.jsonl --columns instructoin=task",
        2,
        &["instructoin"],
    );
    desk.refused_at_once("lager_pointwise --input in.jsonl --output x.jsonl", 1, &["in.jsonl, line 1"]);

    // Null is absent, numbers are rendered, ids may be counted.
    let message = json!([{"role": "user", "content": "Is it?"}]);
    desk.write("null.jsonl", &[json!({"id": 7, "prompt": null, "messages": message, "response": null})]);
    desk.ok("layer_logits --input null.jsonl --output n.jsonl --quiet");
    desk.write("noid.jsonl", &[json!({"question": "q", "answer": 5}), json!({"question": "q", "answer": "r"})]);
    desk.refused_at_once("lager_pointwise --input noid.jsonl --output o2.jsonl", 1, &["line 1", "id"]);
    desk.ok("lager_pointwise --input noid.jsonl --output o2.jsonl --columns id= --quiet");
    assert_eq!(desk.rows("o2.jsonl").iter().map(|row| row["id"].as_u64().unwrap()).collect::<Vec<_>>(), [0, 1]);

    // A field that the output has too is neither overwritten nor dropped.
    desk.write("clash.jsonl", &[json!({"id": 1, "prompt": "a", "logits": 3})]);
    desk.refused_at_once("lager_pointwise --input clash.jsonl --output c.jsonl", 1, &["has a field \"logits\""]);
    desk.ok("lager_pointwise --input clash.jsonl --output c.jsonl --carry none --quiet");
}

// 31 and 32.

#[test]
fn wrong_files_are_called_what_they_are_and_packed_ones_are_read() {
    let desk = Desk::new();
    let row = "{\"id\": 1, \"prompt\": \"Is it?\"}\n";
    for (name, text, says) in [
        ("t.csv", "id,prompt\n1,a,b\n", "line 2: expected 2 cells"),
        ("nan.jsonl", "{\"id\": 1, \"prompt\": \"a\", \"x\": NaN}\n", "NaN is not JSON"),
        ("columns.json", "{\"id\": {\"0\": 1}, \"prompt\": {\"0\": \"a\"}}", "written by columns"),
        (
            "float.jsonl",
            "{\"id\": 1002.0, \"prompt\": \"a\"}\n",
            "found 1002.0; write the column as integers or as strings",
        ),
    ] {
        desk.put(name, text);
        for program in ["layer_logits", "lager_pointwise"] {
            desk.refused_at_once(&format!("{program} --input {name} --output o.jsonl"), 1, &[name, says]);
        }
    }
    desk.put("plain.jsonl", row);
    desk.ok("layer_logits --input plain.jsonl --output plain.out --quiet");
    // gzip of `row`: a stored block.
    let packed = gzip(row.as_bytes());
    desk.put("packed.jsonl.gz", &packed);
    desk.ok("layer_logits --input packed.jsonl.gz --output packed.out --quiet");
    for (name, bytes) in [("piped.out", row.as_bytes()), ("both.out", &packed)] {
        let mut command = judge("layer_logits");
        command.args(["--input", "-", "--output", name, "--quiet"]).current_dir(&desk);
        assert!(fed(&mut command, bytes).status.success(), "{name}");
    }
    for name in ["packed.out", "piped.out", "both.out"] {
        assert_eq!(desk.read(name), desk.read("plain.out"), "{name}");
    }
}

/// A gzip file with one stored block (RFC 1952, RFC 1951).
pub fn gzip(text: &[u8]) -> Vec<u8> {
    let mut crc = !0_u32;
    for byte in text {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 };
        }
    }
    let length = text.len() as u16;
    let mut file = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1];
    file.extend(length.to_le_bytes());
    file.extend((!length).to_le_bytes());
    file.extend(text);
    file.extend((!crc).to_le_bytes());
    file.extend((text.len() as u32).to_le_bytes());
    file
}

// 30 and 38.

// What misleads without a word.

#[test]
fn a_scale_that_is_not_the_templates_is_refused_or_said() {
    let desk = Desk::new();
    desk.ok("generate_rows --split test --rows 2 --output rows.jsonl");
    let words = ["the model's own template is for grades from 1 to 5, not to 7", "give another one with --template"];
    desk.refused_at_once("lager_pointwise --input rows.jsonl --output o.jsonl --points 7", 2, &words);
    desk.refused_at_once("prompt_judge --input rows.jsonl --output o.jsonl --verdict logits --points 7", 2, &words);
    let said =
        desk.ok("prompt_judge --input rows.jsonl --output o.jsonl --verdict logits --points 7 --template single");
    assert!(!said.stderr.contains("own template"), "{}", said.stderr);
    let args = ["--input", "rows.jsonl", "--output", "o7.jsonl", "--points", "7", "--rubric", "From 1 to 7?"];
    let said: Said = run("lager_pointwise", &desk, &args).into();
    assert!(
        said.code == Some(0) && said.stderr.contains("note: the model's own template is for grades"),
        "{}",
        said.stderr
    );
}

#[test]
fn a_share_of_few_rows_is_one_row() {
    let desk = Desk::new();
    desk.ok("generate_rows --split test --rows 3 --output rows.jsonl");
    let said = desk.ok("data_selection --input rows.jsonl --output o.jsonl --baseline longest --top 0.1");
    assert!(
        said.stderr.contains("note: a share of 0.1 of 3 rows is less than one row; the best one is taken"),
        "{}",
        said.stderr
    );
    assert_eq!(desk.rows("o.jsonl").iter().filter(|row| row["selected"] == true).count(), 1);
}

#[test]
fn a_base_model_is_read_as_its_hint_says() {
    let desk = Desk::new();
    desk.ok("generate_rows --split test --rows 3 --output rows.jsonl");
    fs::create_dir(desk.join("base")).unwrap();
    tiny_judge::write(&desk.join("base")).unwrap();
    fs::remove_file(desk.join("base/chat_template.jinja")).unwrap();
    fs::remove_file(desk.join("base/judge_template.json")).unwrap();
    let mut config = desk.json("base/tokenizer_config.json");
    config.as_object_mut().unwrap().remove("chat_template");
    desk.put("base/tokenizer_config.json", config.to_string());
    for line in [
        "lager_pointwise --input rows.jsonl --output o1.jsonl --model base --quiet",
        "data_selection --input rows.jsonl --output o2.jsonl --aspects relevance --model base --quiet",
        "prompt_judge --input rows.jsonl --output o3.jsonl --verdict logits --points 5 --model base --quiet",
    ] {
        desk.refused(line, 1, &["no chat template", "give --raw-prompt"]);
        let line = format!("{line} --raw-prompt --overwrite");
        if line.starts_with("data_selection") {
            // Its question is longer than this model's context, which is said of the rows.
            desk.refused(&line, 1, &["no row was scored: 3 too_long"]);
        } else {
            desk.ok(&line);
        }
    }
}
