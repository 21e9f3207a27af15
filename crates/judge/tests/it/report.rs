//! The page of a run: every number of it, no script but its own, and texts that want to be one.

use std::fs;
use std::path::Path;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use scraper::{Html, Selector};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::program::{Desk, finished, ran, read_json, refused, succeed};

/// The page, which a parser of HTML finds nothing to complain about, and in which its own script runs, nothing else, and nothing is fetched.
fn page(folder: &Path, args: &[&str]) -> (Html, Value) {
    let all = [&["--output", "report.html", "--json", "report.json", "--quiet"], args].concat();
    succeed("report", folder, &all);
    let text = fs::read_to_string(folder.join("report.html")).expect("a page");
    assert!(text.len() < 1_000_000, "{} bytes", text.len());
    let page = Html::parse_document(&text);
    assert_eq!(page.errors, Vec::<String>::new());
    let all = Selector::parse("*").expect("a selector");
    for element in page.select(&all).map(|element| element.value()) {
        assert!(!["link", "iframe", "img", "object", "a", "form", "base"].contains(&element.name()));
        for (name, value) in element.attrs() {
            assert!(!name.starts_with("on") && !["src", "href", "srcdoc", "action"].contains(&name), "{name}={value}");
            assert!(!value.contains("url(") && !value.contains("//"), "{name}={value}");
        }
    }
    let policy = Selector::parse("meta[http-equiv=Content-Security-Policy]").expect("a selector");
    let policy = page.select(&policy).next().expect("a policy").attr("content").expect("a policy");
    let script = page.select(&Selector::parse("script").expect("a selector")).collect::<Vec<_>>();
    let [script] = script.as_slice() else { panic!("{} scripts", script.len()) };
    let digest = BASE64_STANDARD.encode(Sha256::digest(script.text().collect::<String>()));
    assert_eq!(policy, format!("default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"));
    // The same bytes for the same input.
    succeed("report", folder, &[&["--output", "again.html", "--quiet"], args].concat());
    assert_eq!(fs::read_to_string(folder.join("again.html")).expect("a page"), text);
    (page, read_json(folder.join("report.json")))
}

fn text(page: &Html) -> String {
    let body = page.select(&Selector::parse("main").expect("a selector")).next().expect("a body");
    body.text().collect::<Vec<_>>().join(" ").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Rows with different chances of being graded are weighted, as `judge agree` weighs them; what takes them as drawn alike is left out.
#[test]
fn rows_that_were_not_drawn_alike_are_weighted() {
    let folder = &Desk::new();
    let row = |n: usize| {
        let (human, drawn) = ((n % 5) as f64, if n < 4 { 0.1 } else { 1.0 });
        json!({"id": n, "score": human + if n < 4 { 0.5 } else { 0.0 }, "human": human, "sampling_probability": drawn})
    };
    folder.write("scores.jsonl", &(0..10).map(row).collect::<Vec<_>>());
    let (page, found) = page(folder, &["--input", "scores.jsonl"]);
    // Four rows stand for 40, and six for themselves.
    let bias = found["agreement"]["bias"]["estimate"].as_f64().expect("a bias");
    assert!((bias - 20.0 / 46.0).abs() < 1e-12, "{bias}");
    assert_eq!((&found["constant_guess"], &found["reliability"]), (&json!({}), &json!([])));
    let said = text(&page);
    assert!(said.contains("Rows are weighted by the chance") && !said.contains("Reliability"), "{said}");
}

#[test]
fn a_run_of_the_embedded_model_has_the_numbers_of_the_other_programs() {
    let folder = &Desk::new();
    succeed("generate_rows", folder, &["--output", "rows.jsonl", "--rows", "120"]);
    let mut graded = folder.rows("rows.jsonl");
    graded[7]["response"] = json!("word ".repeat(5_000));
    folder.write("rows.jsonl", &graded);
    succeed("lager_pointwise", folder, &["--input", "rows.jsonl", "--output", "scores.jsonl", "--quiet"]);
    let (page, found) = page(folder, &["--input", "scores.jsonl", "--texts", "rows.jsonl"]);

    succeed("agreement", folder, &["--input", "scores.jsonl", "--json", "agreement.json", "--quiet"]);
    let agreement = folder.json("agreement.json");
    assert_eq!((&found["rows"], &found["scored"], &found["graded"]), (&json!(120), &json!(119), &json!(119)));
    for name in ["spearman", "pearson", "kendall_tau_b", "mae", "rmse", "bias"] {
        let estimate = &agreement["statistics"][name]["estimate"];
        assert!(estimate.is_number() && found["agreement"][name]["estimate"] == *estimate, "{name}");
    }
    // The last layer alone is the score that no weights combine.
    let layers = found["layers"].as_array().expect("layers");
    assert_eq!(layers.last().expect("a layer")["spearman"], agreement["statistics"]["spearman"]["estimate"]);
    assert!(layers.len() > 2 && layers.iter().all(|layer| layer["low"].as_f64() <= layer["spearman"].as_f64()));
    // `judge fit` draws them too, and what weights are worth by how many rows they are fitted on: 10, 20, 40, 80 and 119.
    let plots = ["--plot", "layers.svg", "--learning-plot", "curve.svg"];
    let fit = ["--valid", "scores.jsonl", "--input", "scores.jsonl", "--variants", "lager_w"];
    succeed("fit", folder, &[&fit[..], &plots].concat());
    let circles = |name: &str| folder.text(name).matches("<circle").count();
    let drawn = layers.iter().filter(|layer| layer["spearman"].is_f64()).count();
    assert_eq!((circles("layers.svg"), circles("curve.svg")), (drawn, 5));
    let rows_of = |bars: &str, of: &str| -> u64 {
        found[bars].as_array().expect("bars").iter().map(|bar| bar[of].as_u64().expect("rows")).sum()
    };
    assert_eq!((rows_of("scores", "rows"), rows_of("scores", "human"), rows_of("reliability", "n")), (119, 119, 119));
    let differences: Vec<f64> =
        found["listed"].as_array().expect("rows").iter().map(|row| row["difference"].as_f64().expect("one")).collect();
    assert!(differences.len() == 119 && differences.is_sorted_by(|a, b| a >= b), "{differences:?}");

    let worst = &found["listed"][0];
    let row = graded.iter().find(|row| worst["id"].as_str() == Some(&*row["id"].to_string())).expect("a row");
    // The last layer of a row says what its score is, which ratings have to six digits.
    let (layer, score) = (worst["layers"].as_array().and_then(|all| all.last()).expect("layers"), &worst["predicted"]);
    let rounded = layer[1].as_f64().map(|score| format!("{score:.5}"));
    assert_eq!((&layer[0], rounded.as_deref()), (&json!(layers.len() - 1), score.as_str()));
    assert!(worst["texts"].as_array().is_some_and(|texts| texts.contains(&json!(["instruction", row["instruction"]]))));

    let said = text(&page);
    for expected in [
        row["instruction"].as_str().expect("a text"),
        "Complete: the run's record counts 120 rows",
        "Spearman's rank correlation",
        "too_long: 1",
        "The best layer by itself is",
        "All rows with a score",
        "lager_pointwise",
        "fingerprint",
    ] {
        assert!(said.contains(expected), "{expected:?} is not in {said}");
    }
    assert_eq!(page.select(&Selector::parse("figure svg").expect("a selector")).count(), 3);
    assert_eq!(page.select(&Selector::parse(".row svg.curve").expect("a selector")).count(), 119);

    // A row that got lost is seen by the record's count, and what else was changed by its digest.
    let text = folder.text("scores.jsonl");
    let less = text.split_once('\n').expect("lines").1.to_owned();
    for (text, rows, expected) in [
        (less, "119 rows", "counts 120 rows, here are 119: some are missing"),
        (text.replacen(':', ": ", 1), "120 rows", "and so many are here, but the file has changed"),
    ] {
        folder.put("scores.jsonl", text);
        let args = ["--input", "scores.jsonl", "--output", "changed.html", "--quiet", "--overwrite"];
        let said = succeed("report", folder, &args);
        assert!(said.starts_with(rows), "{said}");
        let changed = folder.text("changed.html");
        assert!(changed.contains(expected), "{changed}");
    }
}

#[test]
fn texts_of_a_data_set_stay_texts() {
    let folder = &Desk::new();
    let attack = "</td></table><script>alert(1)</script><img src=x onerror=alert(1)>";
    let long = format!("{attack}{}", "\u{1F600}\"&<'".repeat(250_000));
    let row = |index: usize| {
        json!({
            "id": format!("{index}{attack}"), "score": 1.0 + (index % 5) as f64, "human": 5 - index % 4, attack: attack,
            "instruction": format!("\u{202e}\0{attack}\u{7}"), "response": long,
            "labels": ["1", attack], "probabilities": [0.25, 0.75],
        })
    };
    let mut all: Vec<Value> = (0..40).map(row).collect();
    all.push(json!({"id": "none", "unscored": {"reason": "template", "detail": attack}}));
    folder.write("in.jsonl", &all);
    let (page, found) = page(folder, &["--input", "in.jsonl"]);
    let said = text(&page);
    assert!(said.contains("</td></table><script>alert(1)</script>") && said.contains("\\u{202e}\\u{0}</td>"), "{said}");
    assert!(said.contains("is not known") && said.contains("template: 1"));
    assert_eq!(found["no_layers"], "rows have no label logits");
    assert!(!said.contains(['\u{202e}', '\0', '\u{7}']));
}

/// Rows that go by their numbers have those of any file.
#[test]
fn texts_are_those_of_the_rows_that_were_scored() {
    let folder = &Desk::new();
    succeed("generate_rows", folder, &["--output", "rows.jsonl", "--rows", "6"]);
    let graded = folder.rows("rows.jsonl");
    let table = |name: &str, rows: &[Value]| {
        let cell = |row: &Value, field: &str| row[field].as_str().expect("a text").replace('"', "\"\"");
        let line = |row: &Value| format!("\"{}\",\"{}\"\n", cell(row, "instruction"), cell(row, "response"));
        let lines: String = rows.iter().map(line).collect();
        folder.put(name, format!("instruction,response\n{lines}"));
    };
    table("first.csv", &graded);
    table("second.csv", &graded.iter().rev().cloned().collect::<Vec<_>>());
    succeed("score", folder, &["--input", "first.csv", "--output", "scores.jsonl", "--quiet"]);
    let report = |texts: &str| {
        let args = ["--input", "scores.jsonl", "--texts", texts, "--output", "page.html", "--quiet", "--overwrite"];
        ran("report", folder, &args)
    };
    let (code, _, told) = report("first.csv");
    assert!(code == Some(0) && !told.contains("not the file"), "{told}");
    let (code, _, told) = report("second.csv");
    assert!(
        code == Some(2) && told.contains("second.csv is not the file that was scored") && told.contains("no ids"),
        "{told}"
    );
    // What was made of scores is of the rows of those.
    let people: Vec<Value> = (0..60).map(|at| json!({"id": at, "score": at % 5, "human": at % 5 + at % 2})).collect();
    folder.write("human.jsonl", &people);
    let calibrated = ["--input", "scores.jsonl", "--graded", "human.jsonl", "--output", "calibrated.jsonl"];
    succeed("calibrate", folder, &calibrated);
    let args = ["--input", "calibrated.jsonl", "--texts", "first.csv", "--output", "of.html", "--quiet"];
    let (_, told) = finished("report", folder, &args);
    assert!(!told.contains("not the file"), "{told}");
    // With ids the rows are known, whatever else the file has.
    succeed("score", folder, &["--input", "rows.jsonl", "--output", "scores.jsonl", "--quiet", "--overwrite"]);
    folder.write("more.jsonl", &graded[1..]);
    let (code, _, told) = report("more.jsonl");
    assert!(code == Some(0) && told.contains("note: more.jsonl is not the file that was scored"), "{told}");
    // Without a record nothing says that rows without ids are those of the scores, and theirs may be any numbers.
    let people = |id: u32| json!({"id": id, "score": id, "human": id});
    folder.write("scores.jsonl", &[people(1), people(0), people(7)]);
    fs::remove_file(folder.join("scores.jsonl.run.json")).expect("a record");
    let (code, _, told) = report("first.csv");
    assert!(code == Some(2) && told.contains("not known as the file that was scored"), "{told}");
    // Neither has ids: by their numbers. One has texts where the other has numbers: by what they look like.
    let listed = |texts: &str| {
        let (code, _, told) = report(texts);
        assert_eq!(code, Some(0), "{told}");
        folder.text("page.html")
    };
    folder.put("seven.csv", "id,response\n7,the seventh\n");
    assert!(listed("seven.csv").contains("the seventh"));
    let of = |id: Value, response: &str| json!({"id": id, "response": response});
    let both = [of(json!("7"), "another seven"), of(json!(7), "the number seven"), of(json!("1"), "the text one")];
    folder.write("both.jsonl", &both);
    let page = listed("both.jsonl");
    assert!(page.contains("the number seven") && !page.contains("another seven"), "{page}");
    assert!(page.contains("the text one"), "{page}");
    let nameless = |n: u32| json!({"score": n, "human": n + 1});
    folder.write("scores.jsonl", &[nameless(1), nameless(2)]);
    folder.put("two.csv", "response\nthe first\nthe second\n");
    let page = listed("two.csv");
    assert!(page.contains("the first") && page.contains("the second"), "{page}");
    folder.write("twice.jsonl", &[json!({"id": 7, "response": "a"}), json!({"id": 7, "response": "b"})]);
    let (code, _, told) = report("twice.jsonl");
    assert!(code == Some(1) && told.contains("twice.jsonl, line 2: the id 7 appears twice"), "{told}");
    folder.write("others.jsonl", &[json!({"id": "of another file", "instruction": "q", "response": "r"})]);
    let (code, _, told) = report("others.jsonl");
    assert!(
        code == Some(2) && told.contains("none of the rows of others.jsonl has the id of a row that is listed"),
        "{told}"
    );
}

/// Beside an accuracy stands what a constant answer would have, however many raters there are.
#[test]
fn labels_of_several_raters_have_a_constant_guess() {
    let folder = &Desk::new();
    let verdict = |n: usize| if n.is_multiple_of(3) { "A" } else { "B" };
    let row = |n: usize| json!({"id": n, "verdict": verdict(n), "human": ["B", verdict(n + 1), "B"]});
    folder.write("pairs.jsonl", &(0..12).map(row).collect::<Vec<_>>());
    let (_, found) = page(folder, &["--input", "pairs.jsonl"]);
    assert_eq!(found["constant_guess"], json!({"accuracy": 1.0}));
    assert!(found["agreement"].get("majority_share").is_none(), "{found}");
}

#[test]
fn labels_and_rows_that_nobody_graded() {
    let folder = &Desk::new();
    let pairs: Vec<Value> = (0..12)
        .map(|index| json!({"id": index, "verdict": if index % 3 == 0 { "A" } else { "B" }, "human": "B", "instruction": "which?"}))
        .collect();
    folder.write("pairs.jsonl", &pairs);
    let (of_pairs, found) = page(folder, &["--input", "pairs.jsonl"]);
    assert_eq!((&found["labels"], &found["constant_guess"]), (&json!({"A": 4, "B": 8}), &json!({"accuracy": 1.0})));
    assert_eq!(found["agreement"]["accuracy"]["estimate"], 8.0 / 12.0);
    let differ = found["listed"].as_array().expect("rows").iter().filter(|row| row["difference"] == 1.0).count();
    assert_eq!((found["listed"].as_array().map(Vec::len), differ), (Some(12), 4));
    assert!(text(&of_pairs).contains("same label"));

    // Pairs that people graded are told from those that nobody did.
    let some: Vec<Value> = pairs
        .iter()
        .enumerate()
        .map(|(at, pair)| json!({"id": at, "verdict": pair["verdict"], "human": (at < 4).then_some("B"), "contexts": ["a", "b"]}))
        .collect();
    folder.write("some.jsonl", &some);
    let (of_some, found) = page(folder, &["--input", "some.jsonl"]);
    assert_eq!((&found["labels"], &found["graded_labels"]), (&json!({"A": 4, "B": 8}), &json!({"A": 2, "B": 2})));
    assert!(text(&of_some).contains("rows of them with a human score A 4 2 B 8 2"), "{}", text(&of_some));
    assert_eq!(found["listed"][0]["texts"], json!([["contexts", "a\n\nb"]]));
    // What other programs call as a measure may be anything.
    folder.write("other.jsonl", &[json!({"id": 1, "score": 2, "faithfulness": 0.5})]);
    page(folder, &["--input", "other.jsonl"]);

    let ungraded: Vec<Value> = (0..5).map(|index| json!({"id": index, "score": index})).collect();
    folder.write("rows.jsonl", &ungraded);
    let (page, found) = page(folder, &["--input", "rows.jsonl"]);
    assert!(text(&page).contains("No row has a human score") && !text(&page).contains("difference between"));
    assert_eq!((&found["graded"], &found["agreement"]), (&json!(0), &json!({})));
    let listed: Vec<&Value> = found["listed"].as_array().expect("rows").iter().map(|row| &row["id"]).collect();
    assert_eq!(listed, ["0", "1", "2", "3", "4"]);

    // One score for all orders nothing, and that is said.
    let constant: Vec<Value> = (0..5).map(|index| json!({"id": index, "score": 3, "human": index})).collect();
    folder.write("constant.jsonl", &constant);
    let (page, found) = self::page(folder, &["--input", "constant.jsonl"]);
    assert!(found["agreement"]["spearman"]["undefined"].is_string());
    assert!(text(&page).contains("statistics are not defined"));
    // Nothing varies, one row alone, and numbers of any size.
    for (score, human, rows) in [(3.0, 3.0, 5), (3.0, 3.0, 1), (1e100, -1e100, 3), (1e99, 1e99, 3), (0.0, 1e-300, 3)] {
        let same: Vec<Value> = (0..rows).map(|index| json!({"id": index, "score": score, "human": human})).collect();
        folder.write("same.jsonl", &same);
        let (_, found) = self::page(folder, &["--input", "same.jsonl"]);
        assert_eq!((&found["graded"], found["scores"].as_array().map(Vec::len)), (&json!(rows), Some(40)));
    }
}

/// Of any number of rows the page lists what it has room for, and says so.
#[test]
fn many_rows_make_no_large_page() {
    let folder = &Desk::new();
    let row = |id: usize| json!({"id": id, "score": id % 7, "human": id % 5, "instruction": "word ".repeat(200)});
    folder.write("rows.jsonl", &(0..3_000).map(row).collect::<Vec<_>>());
    let (page, found) = page(folder, &["--input", "rows.jsonl"]);
    assert_eq!(found["listed"].as_array().map(Vec::len), Some(1_000));
    let count = |of: &str| page.select(&Selector::parse(of).expect("a selector")).count();
    let (rows, with_texts) = (count(".row"), count(".row .text"));
    assert!(rows == 1_000 && with_texts > 100 && with_texts < 1_000, "{with_texts} of {rows}");
    let said = text(&page);
    assert!(said.contains("The 1000 rows with the largest difference") && said.contains("no room for its texts"));
}

/// One reader finds the fields, so that two programs show the same figures of one file; an odd value costs its row in both.
#[test]
fn report_and_agree_read_a_file_alike() {
    let folder = &Desk::new();
    let mut rows: Vec<Value> =
        (0..12).map(|id| json!({"id": id, "predicted": id % 5, "score": id % 4, "verdict": id % 3})).collect();
    rows[0] = json!({"id": 0, "score": 3, "verdict": 1});
    rows.push(json!({"id": 20, "predicted": 1, "score": {"a": 1}}));
    rows.push(json!({"id": 21, "predicted": 2, "unscored": {"reason": "too_long", "detail": "9 tokens"}, "score": 1}));
    folder.write("rows.jsonl", &rows);
    let (_, page) = page(folder, &["--input", "rows.jsonl"]);
    succeed("agreement", folder, &["--input", "rows.jsonl", "--json", "a.json", "--quiet"]);
    let agreement = folder.json("a.json");
    for (name, value) in [("predicted", "predicted"), ("human", "score")] {
        assert_eq!((&page[name], &agreement[name]), (&json!(value), &json!(value)));
    }
    assert_eq!((&page["graded"], &agreement["n"]), (&json!(11), &json!(11)));
    for statistic in ["spearman", "mae", "rmse"] {
        let [page, agreement] = [&page["agreement"], &agreement["statistics"]]
            .map(|all| ["estimate", "low", "high"].map(|name| &all[statistic][name]));
        assert!(page[0].is_f64() && page == agreement, "{statistic}");
    }
    // A grade that is none leaves the score.
    assert_eq!(page["unscored"].as_object().unwrap().keys().collect::<Vec<_>>(), ["no score", "too_long"]);
    assert_eq!(page["unscored"]["too_long"]["n"], 1);
    for reason in ["no_grade", "too_long"] {
        assert_eq!(agreement["excluded_by_reason"][reason], json!(1), "{reason}");
    }
}

#[test]
fn what_is_wrong_with_an_input_is_said() {
    let folder = &Desk::new();
    let fails = |rows: &[Value], args: &[&str], code: i32, said: &str| {
        folder.write("in.jsonl", rows);
        let all = [&["--input", "in.jsonl", "--output", "out.html", "--quiet"], args].concat();
        refused("report", folder, &all, code, &[said]);
        assert!(!folder.join("out.html").exists() && !folder.join("out.json").exists());
    };
    let good = json!({"id": 1, "score": 1, "human": 2});
    fails(&[], &[], 1, "in.jsonl has no rows");
    fails(&[good.clone(), good.clone()], &[], 1, "the id 1 appears twice");
    let ragged =
        json!({"id": 1, "score": 1, "human": 2, "labels": ["1", "2"], "layers": [0], "logits": [[1, 2], [1, 2]]});
    fails(&[ragged], &[], 1, "logits of 2 layers, expected 1");
    fails(std::slice::from_ref(&good), &["--json", "out.html"], 2, "out.html");
    fails(std::slice::from_ref(&good), &["--check", "in.jsonl"], 1, "expected what judge shards check --json writes");
    fails(std::slice::from_ref(&good), &["--run", "in.jsonl"], 1, "expected a plan or a run record");
    fails(std::slice::from_ref(&good), &["--run", "nowhere.json"], 1, "nowhere.json");
    // A page of nothing would say "Complete".
    let unscored = |id: u32| json!({"id": id, "unscored": {"reason": "no_label", "detail": "none"}});
    fails(&[unscored(1), unscored(2)], &[], 1, "none of 2 rows has a score: 2 no_label");
    fails(&[json!({"id": 1, "text": "a"})], &[], 1, "none of 1 rows has a score: 1 no score");
    let decided = json!({"id": 1, "answers": {"a": {"type": "noul", "noul": 0.5}}, "label_mass": {"a": 1.0}});
    fails(&[decided], &[], 1, "the answers of `judge decide`");
    let plan = json!({"format": "judge-command-plan", "version": 1, "content": {}});
    folder.put("plan.json", plan.to_string());
    fails(std::slice::from_ref(&good), &["--run", "plan.json"], 1, "plan.json is the plan of a command");
    fails(std::slice::from_ref(&good), &["--run", "in.jsonl"], 1, "found JSON without a format");
    fs::create_dir(folder.join("parts")).expect("a folder");
    fails(std::slice::from_ref(&good), &["--group", "subject"], 2, "has the field \"subject\"");
    for option in ["--texts", "--predicted", "--human", "--group"] {
        let args = ["--input", "parts", "--output", "out.html", option, "in.jsonl"];
        refused("report", folder, &args, 2, &[&format!("{option} has no effect")]);
    }
}
