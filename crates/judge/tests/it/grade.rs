//! `judge grade`: grades by the page's own requests, what is refused, and a real browser.

mod browser;
mod page;

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use self::page::Page;
use crate::program::{Desk, fails, finished, ran, refused, succeed, words, write_rows};

/// Rows with a judge's score and a model's name, which nobody may see, and with fields that are called as those of other tasks are.
fn graded(folder: &Path, n: usize) {
    let row = |i: usize| {
        json!({"id": format!("r{i}"), "instruction": format!("Question {i}?"), "response": format!("Answer **{i}**"),
            "model": "secret-model", "score": 3.25, "meta": {"n": i},
            "swapped": "no", "rater_labels": 1, "sentences": ["a"]})
    };
    write_rows(folder.join("rows.jsonl"), &(0..n).map(row).collect::<Vec<_>>());
}

const BASIC: [&str; 4] = ["--input", "rows.jsonl", "--output", "graded.jsonl"];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&BASIC[..], more].concat()
}

#[test]
fn grades_are_rows_that_other_commands_read() {
    let folder = &Desk::new();
    graded(folder, 4);
    let page = Page::open(folder, &with(&["--words", "1=bad,5=good"]));
    assert!(page.get("").body.contains("Your name"));
    let (_, first) = page.row("ann").expect("a row");
    assert!(first.contains("<strong>") && first.contains("good") && first.contains("0 of 4 graded"), "{first}");
    for secret in ["secret-model", "3.25"] {
        assert!(!first.contains(secret), "{first}");
    }
    let a = page.answer("ann", "g0=4&seconds=2.5&note=so+so");
    let b = page.answer("ann", "skip=I+cannot+tell");
    let c = page.answer("ann", "g0=0&seconds=x");
    let d = page.answer("ann", "g0=2");
    assert!(page.row("ann").is_none());
    let end = page.get("rate?rater=ann").body;
    assert!(end.contains("All rows graded") && end.contains("judge score --input graded.jsonl"), "{end}");
    let output = page.finish("ann");
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(said.trim(), "3 of 4 rows graded by ann -> graded.jsonl");
    let found = folder.rows("graded.jsonl");
    let ids: Vec<&Value> = found.iter().map(|row| &row["id"]).collect();
    assert_eq!(ids, ["r0", "r1", "r2", "r3"]);
    let of = |place: usize| &found[place];
    assert_eq!(of(a)["human"], json!([5]));
    assert_eq!(
        (&of(a)["seconds"], &of(a)["notes"], &of(a)["raters"]),
        (&json!([2.5]), &json!(["so so"]), &json!(["ann"]))
    );
    assert_eq!((&of(b)["human"], &of(b)["skipped"]), (&json!([null]), &json!(["I cannot tell"])));
    assert_eq!((&of(c)["human"], &of(c)["seconds"]), (&json!([1]), &json!([null])));
    assert_eq!(
        (&of(d)["human"], &of(d)["model"], &of(d)["meta"]),
        (&json!([3]), &json!("secret-model"), &json!({"n": d}))
    );
    // The same command finds it finished; `agree` and `calibrate` read it with the judge's score.
    let said = succeed("grade", folder, &with(&["--words", "1=bad,5=good"]));
    assert!(said.contains("is complete: 3 of 4 rows graded"), "{said}");
    let said = succeed("agree", folder, &["--input", "graded.jsonl"]);
    assert!(said.contains("score against human: 3 rows"), "{said}");
    let (_, _, said) =
        ran("calibrate", folder, &["--graded", "graded.jsonl", "--input", "graded.jsonl", "--output", "c.jsonl"]);
    assert!(said.contains("3"), "few rows are said to be few: {said}");
}

#[test]
fn nothing_is_lost_and_nothing_is_graded_twice() {
    let folder = &Desk::new();
    graded(folder, 3);
    let page = Page::open(folder, &BASIC);
    let first = page.answer("ann", "g0=4");
    let (second, _) = page.row("ann").expect("a row");
    // A second tab still shows the first row.
    let again = page.post("answer", &format!("rater=ann&row={first}&g0=0"));
    assert!(again.status == 303 && again.head.contains("said=already"), "{}", again.head);
    page.answer("bob", "g0=1");
    page.kill();
    let page = Page::open(folder, &BASIC);
    assert_eq!(page.row("ann").expect("a row").0, second, "the same order");
    assert!(page.get("").body.contains("bob"));
    // What is taken back is shown as it was, and can be given anew.
    assert_eq!(page.post("undo", "rater=ann").status, 303);
    let (place, shown) = page.row("ann").expect("a row");
    assert!(place == first && shown.contains("answer before"), "{shown}");
    assert!(page.post("undo", "rater=ann").head.contains("said=nothing"));
    page.answer("ann", "g0=2");
    page.answer("ann", "g0=2");
    // Without an answer nothing is saved.
    let (row, _) = page.row("ann").expect("a row");
    assert!(page.post("answer", &format!("rater=ann&row={row}&g0=9")).head.contains("said=open"));
    page.kill();
    // A changed input is refused, and so are other settings.
    let before = folder.read("rows.jsonl");
    graded(folder, 4);
    fails("grade", folder, &BASIC, &["graded.jsonl.partial", "has changed"]);
    folder.put("rows.jsonl", before);
    fails("grade", folder, &with(&["--yes-no"]), &["task"]);
    let page = Page::open(folder, &BASIC);
    page.answer("ann", "g0=2");
    page.finish("ann");
    let found = folder.rows("graded.jsonl");
    assert!(found.iter().all(|row| row["raters"] == json!(["ann", "bob"]) && row["human"][0] == json!(3)), "{found:?}");
    assert_eq!(found.iter().filter(|row| row["human"][1] == json!(2)).count(), 1);
    assert_eq!(found.iter().filter(|row| row["human"][1].is_null()).count(), 2);
}

/// A tab that still shows a later row answers it first.
#[test]
fn what_is_taken_back_is_what_was_said_last() {
    let folder = &Desk::new();
    graded(folder, 3);
    let page = Page::open(folder, &BASIC);
    let first = page.answer("ann", "g0=4");
    let (second, _) = page.row("ann").expect("a row");
    page.post("undo", "rater=ann");
    page.post("answer", &format!("rater=ann&row={second}&g0=1"));
    assert_eq!(page.answer("ann", "g0=2"), first);
    page.post("undo", "rater=ann");
    let (place, shown) = page.row("ann").expect("a row");
    assert!(place == first && shown.contains("answer before\" name=\"g0\" value=\"2\""), "{shown}");
    assert!(!page.post("undo", "rater=ann").head.contains("said=nothing"));
    assert!(page.post("undo", "rater=ann").head.contains("said=nothing"));
    page.kill();
}

#[test]
fn raters_who_are_named_are_waited_for() {
    let folder = &Desk::new();
    graded(folder, 1);
    let page = Page::open(folder, &with(&["--rater", "ann", "--rater", "bob"]));
    page.answer("ann", "g0=4");
    let end = page.get("rate?rater=ann").body;
    assert!(end.contains("<dt>bob</dt><dd>0 of 1</dd>") && end.contains("Not everyone is done"), "{end}");
    page.answer("bob", "g0=3");
    let end = page.get("rate?rater=ann").body;
    assert!(end.contains("<dt>bob</dt><dd>1 of 1</dd>") && !end.contains("Not everyone is done"), "{end}");
    page.kill();
}

/// Only what is not there, or null, is missing.
#[test]
fn an_answer_of_no_words_is_graded() {
    let path = &Desk::new();
    for (row, args) in [
        (json!({"id": 1, "instruction": "Say nothing.", "response": ""}), &[][..]),
        (json!({"id": 1, "instruction": "Say nothing.", "response": "\u{200b}"}), &[]),
        (json!({"id": 1, "instruction": "Say nothing.", "response_a": " ", "response_b": "No."}), &["--pairs"]),
    ] {
        path.write("rows.jsonl", &[row]);
        let page = Page::open(path, &with(&[args, &["--overwrite"]].concat()));
        let (_, shown) = page.row("ann").expect("a row");
        assert!(shown.contains("(empty)"), "{shown}");
        page.answer("ann", "g0=0");
        page.finish("ann");
    }
}

/// The commands that are printed at the end run as they are, with a model in the place of MODEL.
#[test]
fn the_commands_that_come_next_run() {
    let folder = &Desk::new();
    let model = crate::decide::model(folder, None);
    let graded = |id: u32| json!({"id": id, "instruction": "Q", "response": "R"});
    let named = |id: u32| json!({"key": id, "instruction": "Q", "text": "R"});
    let pair = |id: u32| json!({"id": id, "instruction": "Q", "response_a": "R", "response_b": "S"});
    let answer = |id: u32| json!({"id": id, "question": "Q?", "contexts": ["It is red."], "answer": "It is red."});
    let state = |id: u32| json!({"id": id, "state": {"mail": "R"}});
    let said = |id: u32| json!({"id": id, "messages": [{"role": "user", "content": "Q"}, {"role": "assistant", "content": "R"}]});
    type Task<'a> = (&'a str, &'a dyn Fn(u32) -> Value, &'a [&'a str]);
    let all: [Task<'_>; 8] = [
        ("scale", &graded, &[]),
        ("conversation", &said, &["--scale", "1-3"]),
        ("named", &named, &["--columns", "id=key,response=text"]),
        ("yes_no", &graded, &["--yes-no"]),
        ("pairs", &pair, &["--pairs"]),
        ("sentences", &answer, &["--sentences"]),
        ("questions", &graded, &["--questions", "q.json"]),
        ("state", &state, &["--questions", "q.json"]),
    ];
    for (name, row, args) in all {
        let path = folder.join(name);
        fs::create_dir(&path).expect("a folder");
        write_rows(path.join("rows.jsonl"), &[row(0), row(1)]);
        let questions = json!({"angry": {"type": "noul", "instructions": "Is it angry?"}});
        fs::write(path.join("q.json"), questions.to_string()).expect("questions");
        let page = Page::open(&path, &with(args));
        page.answer("ann", "g0=0");
        page.answer("ann", "g0=1");
        let told = String::from_utf8(page.finish("ann").stderr).expect("text");
        let (_, next) = told.split_once("next:\n").expect("commands");
        for line in next.lines().filter(|line| !line.trim().starts_with('#')) {
            let line: Vec<&str> =
                words(line).into_iter().map(|word| if word == "MODEL" { model.as_str() } else { word }).collect();
            let (code, _, told) = ran(line[1], &path, &line[2..]);
            // A random model writes no verdict on pairs.
            assert!(code == Some(0) || (name == "pairs" && told.contains("no row")), "{name}: {line:?}: {told}");
        }
    }
}

/// The model is asked on people's scale, about all that they saw, by a command that reads such rows; else the page says so.
#[test]
fn the_commands_that_come_next_ask_as_people_were_asked() {
    let path = &Desk::new();
    let questions = json!({"good": {"type": "noul", "instructions": "Is it good?"}});
    path.put("q.json", questions.to_string());
    let graded = json!({"id": 1, "instruction": "Q", "response": "R"});
    let turn = |role: &str| json!({"role": role, "content": "Q"});
    let said = json!({"id": 1, "messages": [turn("user"), turn("assistant")]});
    let asked = json!({"id": 1, "messages": [turn("user")]});
    for (row, args, expected) in [
        (&graded, &["--scale", "1-9"][..], "judge score --points 9 --input"),
        (&graded, &["--scale", "0-10"], "--model MODEL\n"),
        (&graded, &["--questions", "q.json"], "# people saw instruction, response: the model sees response alone"),
        (&said, &[], "judge compare --verdict logits --points 5 --input"),
        (&asked, &["--ask", "Is it clear?"], "# no command grades rows without a response"),
    ] {
        path.write("rows.jsonl", std::slice::from_ref(row));
        let page = Page::open(path, &with(&[args, &["--overwrite"]].concat()));
        page.answer("ann", "g0=0");
        let told = String::from_utf8(page.finish("ann").stderr).expect("text");
        assert!(told.contains(expected), "{told}");
    }
    // Whoever tries the former all the same is told what reads them.
    fails("score", path, &["--input", "rows.jsonl", "--output", "s.jsonl"], &["`judge compare` grades it"]);
}

#[test]
fn a_signal_ends_it_and_what_is_whole_is_written() {
    let folder = &Desk::new();
    graded(folder, 2);
    let stop = |page: Page| {
        let id = page.id().to_string();
        assert!(Command::new("kill").args(["-INT", &id]).status().expect("kill").success());
        page.wait()
    };
    let page = Page::open(folder, &with(&["--rater", "ann"]));
    page.answer("ann", "g0=4");
    let output = stop(page);
    assert_eq!(output.status.code(), Some(130));
    assert!(String::from_utf8_lossy(&output.stderr).contains("stopped after 1 of 2 rows; the same command resumes"));
    assert!(!folder.join("graded.jsonl").exists());
    let page = Page::open(folder, &with(&["--rater", "ann"]));
    let refused = page.get("rate?rater=eve").body;
    assert!(refused.contains("expected one of the raters ann"), "{refused}");
    page.answer("ann", "g0=3");
    assert!(stop(page).status.success());
    assert_eq!(folder.rows("graded.jsonl").len(), 2);
}

#[test]
fn only_the_page_itself_is_answered() {
    let folder = &Desk::new();
    graded(folder, 2);
    let page = Page::open(folder, &BASIC);
    let here = format!("http://{}", page.host);
    let (host, path) = (page.host.as_str(), page.path.as_str());
    let port = host.split_once(':').expect("a port").1;
    assert!(path.len() == 33, "128 bits: {path}");
    let form = ("Content-Type", "application/x-www-form-urlencoded");
    let rate = format!("{path}/rate?rater=ann");
    let answer = format!("{path}/answer");
    let row = page.row("ann").expect("a row").0;
    let give = format!("rater=ann&row={row}&g0=4");
    for (method, path, headers, status) in [
        ("GET", rate.as_str(), vec![("Host", host)], 200),
        ("GET", &rate, vec![("Host", &*format!("localhost:{port}"))], 200),
        ("GET", &rate, vec![("Host", "evil.example")], 403),
        ("GET", &rate, vec![("Host", &*format!("evil.example:{port}"))], 403),
        ("GET", &rate, vec![("Host", "127.0.0.1.evil.example")], 403),
        ("GET", &rate, vec![("Host", host), ("Host", host)], 403),
        ("GET", &rate, vec![("Host", host), ("Origin", "http://evil.example")], 403),
        ("GET", &rate, vec![("Host", host), ("Origin", "null")], 403),
        ("GET", "/", vec![("Host", host)], 404),
        ("GET", "/00000000000000000000000000000000/rate?rater=ann", vec![("Host", host)], 404),
        ("GET", &format!("{path}/../rows.jsonl"), vec![("Host", host)], 404),
        ("GET", &format!("{path}/rows.jsonl"), vec![("Host", host)], 404),
        ("GET", &format!("{path}/%2e%2e/rows.jsonl"), vec![("Host", host)], 404),
        ("GET", &answer, vec![("Host", host)], 405),
        ("POST", &answer, vec![("Host", host), form], 403),
        ("POST", &answer, vec![("Host", host), form, ("Origin", "http://evil.example")], 403),
        ("POST", &answer, vec![("Host", host), form, ("Origin", "http://127.0.0.1:1")], 403),
        ("POST", &answer, vec![("Host", host), form, ("Origin", &here), ("Sec-Fetch-Site", "cross-site")], 403),
        ("POST", &answer, vec![("Host", host), ("Origin", &here), ("Content-Type", "text/plain")], 415),
    ] {
        let found = page.send(method, path, &headers, if method == "POST" { &give } else { "" });
        assert_eq!(found.status, status, "{method} {path} {headers:?}: {}", found.body);
        for header in [
            "content-security-policy: default-src 'none'; script-src 'self'",
            "x-frame-options: deny",
            "cache-control: no-store",
            "nosniff",
        ] {
            assert!(found.head.contains(header), "{}", found.head);
        }
        assert!(!found.head.contains("access-control"), "{}", found.head);
    }
    // The last page needs them when nobody answers any more.
    for name in ["page.css", "page.js"] {
        assert!(page.get(name).head.contains("cache-control: private, max-age=86400"), "{}", page.get(name).head);
    }
    // What is written in rows is no markup, and the page has no script of its own within.
    let shown = page.get("rate?rater=ann").body;
    assert!(!shown.contains("onclick") && shown.matches("<script").count() == 1, "{shown}");
    assert!(page.row("ann").expect("a row").1.contains("0 of 2 graded"), "nothing was graded");
    assert_eq!(page.post("answer", "rater=ann&row=99&g0=4").status, 400);
    assert_eq!(page.post("answer", &format!("rater={}&row={row}&g0=4", "x".repeat(80))).status, 400);
    assert_eq!(page.post("finish", "rater=ann").status, 400);
    assert_eq!(page.post("answer", &"x".repeat((1 << 20) + 1)).status, 413);
    page.kill();
}

#[test]
fn pairs_are_shown_on_drawn_sides_and_written_in_their_own_letters() {
    let folder = &Desk::new();
    let row = |i: usize| {
        let (first, second) = (format!("first {i}"), format!("second {i}"));
        let verdict = if i == 0 { "B" } else { "A" };
        json!({"id": i, "instruction": "Q", "response_a": first, "response_b": second, "verdict": verdict})
    };
    folder.write("rows.jsonl", &(0..12).map(row).collect::<Vec<_>>());
    let page = Page::open(folder, &with(&["--pairs"]));
    let mut swapped = [false; 12];
    for _ in 0..12 {
        let (place, shown) = page.row("ann").expect("a row");
        let at = |text: &str| shown.find(&format!("<p>{text} {place}")).expect(text);
        swapped[place] = at("second") < at("first");
        // The button that is shown first is of the response that is shown first.
        let buttons = shown.split("data-keys").next().expect("a button");
        assert!(buttons.ends_with(if swapped[place] { "value=\"1\" " } else { "value=\"0\" " }), "{buttons}");
        page.answer("ann", if place == 0 { "g0=1" } else { "g0=0" });
    }
    assert!(swapped.contains(&true) && swapped.contains(&false), "{swapped:?}");
    page.finish("ann");
    let found = folder.rows("graded.jsonl");
    for (row, swapped) in found.iter().zip(swapped) {
        assert_eq!((&row["human"], &row["swapped"]), (&json!([row["verdict"]]), &json!([swapped])));
    }
    let said = succeed("agree", folder, &["--input", "graded.jsonl", "--statistics", "accuracy"]);
    assert!(said.contains("1.0000"), "{said}");
}

#[test]
fn typed_questions_and_sentences_are_read_by_their_commands() {
    let path = &Desk::new();
    let row = r#"{"id": 1, "state": {"mail": "Where is it?", "number": 12345678901234567890123}}"#;
    path.put("rows.jsonl", row);
    let questions = json!({"angry": {"type": "noul", "instructions": "Is it angry?"},
        "tone": {"type": "choice", "criteria": {"calm": "no heat", "loud": null}},
        "urgency": {"type": "score", "criteria": ["can wait", "today"]}});
    path.put("q.json", questions.to_string());
    let page = Page::open(path, &with(&["--questions", "q.json"]));
    let (_, shown) = page.row("ann").expect("a row");
    for text in ["Is it angry?", "no heat", "can wait", "Where is it?", ": 12345678901234567890123"] {
        assert!(shown.contains(text), "{text}: {shown}");
    }
    page.answer("ann", "g0=0&g1=1&g2=1");
    page.answer("bob", "g0=1&g1=1&g2=1");
    page.kill();
    let page = Page::open(path, &with(&["--questions", "q.json"]));
    assert!(page.row("bob").is_none());
    page.finish("bob");
    let row = &path.rows("graded.jsonl")[0];
    assert_eq!(row["labels"], json!({"angry": {"true": 0.5, "false": 0.5}, "tone": "loud", "urgency": 1}));
    assert_eq!(row["rater_labels"][0], json!({"angry": true, "tone": "loud", "urgency": 1}));
    assert!(row["human"].is_null(), "{row}");

    path.write(
        "rows.jsonl",
        &[json!({"id": 1, "question": "Q?", "contexts": ["It is red."], "answer": "It is red. It is big."})],
    );
    let args = ["--input", "rows.jsonl", "--output", "marked.jsonl", "--sentences"];
    let page = Page::open(path, &args);
    // What is between its sentences, such as a heading, is seen too.
    assert!(page.row("ann").expect("a row").1.contains("<h2>Response</h2>"));
    page.answer("ann", "g0=0&g1=1");
    page.finish("ann");
    let row = &path.rows("marked.jsonl")[0];
    let of = |sentence: usize, field: &str| row["sentences"][sentence][field].clone();
    assert_eq!((of(0, "human"), of(1, "human"), of(1, "text")), (json!([1]), json!([0]), json!("It is big.")));
    assert_eq!((&row["human"], &row["answer"]), (&json!([0.5]), &json!("It is red. It is big.")));
}

#[test]
fn rows_are_drawn_over_scores_with_their_chance() {
    let path = &Desk::new();
    graded(path, 100);
    let score = |i: usize| json!({"id": format!("r{i}"), "score": if i.is_multiple_of(10) { 1 } else { 5 }});
    path.write("scores.jsonl", &(0..100).map(score).collect::<Vec<_>>());
    let args = with(&["--scores", "scores.jsonl", "--rows", "12", "--rater", "ann"]);
    let page = Page::open(path, &args);
    for _ in 0..12 {
        page.answer("ann", "g0=4");
    }
    page.finish("ann");
    let found = path.rows("graded.jsonl");
    let rare = found.iter().filter(|row| row["sampling_probability"] == json!(0.6)).count();
    assert_eq!((found.len(), rare), (12, 6), "{found:?}");
    // CSV has texts where JSON has numbers.
    path.write("numbers.jsonl", &[0, 1, 2].map(|id| json!({"id": id, "response": "R"})));
    path.put("scores.csv", "id,score\n0,1\n1,5\n2,1\n");
    let args = ["--input", "numbers.jsonl", "--output", "y.jsonl", "--scores", "scores.csv", "--rows", "2"];
    Page::open(path, &args).kill();
    path.write("scores.jsonl", &[json!({"id": "other", "score": 1})]);
    let args = ["--input", "rows.jsonl", "--output", "x.jsonl", "--scores", "scores.jsonl", "--rows", "2"];
    refused("grade", path, &args, 1, &["no row has a score in scores.jsonl"]);
}

#[test]
fn what_cannot_be_graded_is_said_before_the_page() {
    let path = &Desk::new();
    for (row, args, expected) in [
        (json!({"id": 1, "note": "x"}), &[][..], "no text to grade, found the fields"),
        (json!({"id": 1, "instruction": "x", "response": null}), &[], "no response to grade, found the fields"),
        (json!({"id": 1, "response": "x"}), &["--pairs"], "no response_a"),
        (json!({"id": 1, "response": "x"}), &["--sentences"], "the row has no contexts"),
        (json!({"id": 1, "response": "x"}), &["--scale", "5"], "such as 1-5"),
        (json!({"id": 1, "response": "x"}), &["--words", "a,b"], "each of 5 points"),
        (json!({"id": 1, "response": "x"}), &["--words", "1=a,1=b"], "found two for 1"),
        (json!({"id": 1, "response": "x"}), &["--rater", "ann", "--rater", "ann"], "named twice"),
        (json!({"id": 1, "response": "x"}), &["--rater", "ann\u{200b}"], "visible characters"),
        (json!({"id": 1, "response": "x"}), &["--scores", "rows.jsonl"], "--rows"),
        (json!({"id": 1, "response": "x"}), &["--pairs", "--yes-no"], "cannot be used with"),
    ] {
        path.write("rows.jsonl", &[row]);
        // Rows that lack something are no wrong command line.
        let of_rows = expected.contains(" no ") || expected.starts_with("no ");
        refused("grade", path, &with(args), if of_rows { 1 } else { 2 }, &[expected]);
    }
    // The texts are among what can be carried; without them the page says that nothing can judge what is graded.
    path.write("rows.jsonl", &[json!({"id": 1, "instruction": "Q", "response": "x", "human": 3})]);
    refused("grade", path, &BASIC, 1, &["\"human\"", "to leave it out: --carry 'instruction,response'"]);
    for (carried, left_out) in [("instruction,response", None), ("instruction", Some("# --carry left out response:"))] {
        let page = Page::open(path, &with(&["--carry", carried, "--overwrite"]));
        page.answer("ann", "g0=0");
        let told = String::from_utf8(page.finish("ann").stderr).expect("text");
        assert_eq!(told.contains("# --carry"), left_out.is_some(), "{told}");
        assert!(told.contains(left_out.unwrap_or("next:\n  judge score")), "{told}");
    }
    // What is asked in other words may be about something else.
    path.write("rows.jsonl", &[json!({"id": 1, "instruction": "x"})]);
    let page = Page::open(path, &with(&["--ask", "Is it clear?", "--overwrite"]));
    assert!(page.row("ann").is_some());
    page.kill();
}

#[test]
fn exports_of_other_tools_are_rows() {
    let path = &Desk::new();
    let response = |value: u32, user: &str| json!({"value": value, "user_id": user});
    let record = |i: u32| {
        let quality = [response(1 + i % 5, "u1"), response(1 + i % 3, "u2")];
        json!({"id": i, "fields": {"response": "x"}, "responses": {"quality": quality}})
    };
    path.put("export.json", json!((0..9).map(record).collect::<Vec<_>>()).to_string());
    let args = ["--input", "export.json", "--output", "graded.jsonl", "--import", "argilla"];
    let said = succeed("grade", path, &args);
    assert_eq!(said.trim(), "9 of 9 rows graded by 2 raters (quality) -> graded.jsonl");
    assert!(succeed("grade", path, &args).contains("nothing to do"));
    let row = &path.rows("graded.jsonl")[4];
    assert_eq!((&row["human"], &row["raters"], &row["response"]), (&json!([5, 2]), &json!(["u1", "u2"]), &json!("x")));
    let line = [&args[..], &["--question", "tone", "--overwrite"]].concat();
    refused("grade", path, &line, 2, &["\"tone\" is not one of quality"]);
    let other = ["--input", "export.json", "--output", "x.jsonl", "--import", "prodigy"];
    refused("grade", path, &other, 1, &["no item can be read"]);
    refused("grade", path, &[&args[..], &["--pairs"]].concat(), 2, &["cannot be used with"]);
    // A field that a row has itself is refused with an option that does it.
    let own = json!([{"id": 1, "fields": {"response": "x", "human": 3}, "responses": {"q": [response(2, "u1")]}}]);
    path.put("own.json", own.to_string());
    let args = ["--input", "own.json", "--output", "own.jsonl", "--import", "argilla"];
    refused("grade", path, &args, 1, &["\"human\"", "--carry none"]);
    succeed("grade", path, &[&args[..], &["--carry", "response"]].concat());
    assert_eq!(path.rows("own.jsonl")[0]["human"], json!([2]));
    // An item of which something is odd is one all the same.
    let said = |value: u32| json!({"completed_by": 8, "result": [{"type": "rating", "value": {"rating": value}}]});
    let tasks = json!([{"id": 1, "data": {"response": "x"}, "annotations": [said(1), said(4)]}]);
    path.put("tasks.json", tasks.to_string());
    let args = ["--input", "tasks.json", "--output", "tasks.jsonl", "--import", "label-studio"];
    let (said, told) = finished("grade", path, &args);
    assert_eq!(said.trim(), "1 of 1 rows graded by 1 rater (grade) -> tasks.jsonl");
    assert!(told.contains("found two of \"8\""), "{told}");
    path.put("tasks.json", json!([{"id": 1, "response": "x", "grade": 4}]).to_string());
    fails("grade", path, &[&args[..], &["--overwrite"]].concat(), &["JSON-MIN and CSV have not"]);
}
