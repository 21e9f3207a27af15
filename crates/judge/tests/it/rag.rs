//! `judge rag`: rows as other tools have them, measured, resumed, held against bars.

use serde_json::{Value, json};

use crate::decide::model;
use crate::program::{Desk, ended, fails, finished, ran, refused, succeed};

const TABLE: &str = "question,contexts,answer,ground_truth,team\n\
    Where?,\"['In Paris.', 'It\\'s here.']\",It is in Paris. It is old.,In Paris.,a\n\
    Where?,\"['In Rome.', 'Nowhere.']\",In Rome.,In Rome.,b\n\
    How high?,['330 m'],It is 330 m high.,330 m,a\n\
    Who?,[],Lee,,b\n\
    When?,\"['a' 'b']\",In 1931,1931,b\n";

fn args<'a>(model: &'a str, input: &'a str, output: &'a str) -> Vec<&'a str> {
    vec!["--input", input, "--dtype", "f32", "--model", model, "--output", output]
}

#[test]
fn a_table_of_answers_is_measured_row_by_row() {
    let path = &Desk::new();
    let model = model(path, None);
    path.put("answers.csv", TABLE);
    let all =
        [&args(&model, "answers.csv", "measured.jsonl")[..], &["--json", "figures.json", "--group", "team"]].concat();
    let said = succeed("rag", path, &all);
    assert!(said.contains("5 of 5 answers measured") && said.contains("5 answers to 4 questions"), "{said}");
    assert!(said.contains("faithfulness: 2 without it: 2 missing"), "{said}");
    let found = path.rows("measured.jsonl");
    let keys: Vec<&str> = found[0].as_object().unwrap().keys().map(String::as_str).collect();
    let measures =
        ["faithfulness", "answer_relevancy", "context_precision", "context_recall", "context_relevance", "correctness"];
    let others = ["sentences", "contexts", "label_mass", "input_tokens", "team"];
    assert_eq!(keys, [&["id"], &measures[..], &others[..]].concat());
    let sentences = found[0]["sentences"].as_array().unwrap();
    assert_eq!(
        (&sentences[1]["start"], &sentences[1]["end"], &sentences[1]["text"]),
        (&json!(16), &json!(26), &json!("It is old."))
    );
    let supported: Vec<f64> = sentences.iter().map(|sentence| sentence["supported"].as_f64().unwrap()).collect();
    let mean = found[0]["faithfulness"]["mean"].as_f64().unwrap();
    assert!(
        (supported.iter().sum::<f64>() / 2.0 - mean).abs() < 1e-12 && supported.iter().all(|p| *p > 0.0 && *p < 1.0)
    );
    assert_eq!(found[0]["contexts"].as_array().unwrap().len(), 2);
    // What is missing costs what needs it, and says why.
    assert!(found[3]["answer_relevancy"]["mean"].is_number());
    assert_eq!(found[3]["unscored"]["faithfulness"]["detail"], "the row has no contexts");
    let odd = found[4]["unscored"]["context_recall"]["detail"].as_str().unwrap();
    assert!(odd.contains("as Python writes it") && odd.contains("['a' 'b']"), "{odd}");
    let figures = path.json("figures.json");
    let statistics = &figures["statistics"];
    for name in ["faithfulness", "faithfulness_share", "faithfulness:a", "correctness:b", "coverage"] {
        assert!(statistics[name]["estimate"].is_number(), "{name}: {figures}");
    }
    assert_eq!((&figures["questions"], &figures["absent"]["faithfulness"]["missing"]), (&json!(4), &json!(2)));
    // A page shows the answers with what is not supported.
    let page = ["--input", "measured.jsonl", "--output", "report.html", "--json", "report.json"];
    assert!(succeed("report", path, &page).contains("5 rows, 3 scored"));
    let html = path.text("report.html");
    assert!(html.contains("rgba(192,57,43,") && html.contains("It is old."), "{html}");
    let report = path.json("report.json");
    let of_page = |measure: &str| report["measures"][measure]["mean"]["estimate"].clone();
    assert_eq!(measures.map(of_page), measures.map(|measure| statistics[measure]["estimate"].clone()));
    let texts = ["--input", "measured.jsonl", "--texts", "answers.csv", "--output", "texts.html"];
    succeed("report", path, &texts);
    let answers = report["answers"].clone();
    assert!(answers[0]["least"].as_f64() <= answers[1]["least"].as_f64() && answers.as_array().unwrap().len() == 3);
    // Twice is once; a row does not depend on the others, nor a measure on what else is measured.
    assert!(succeed("rag", path, &all).contains("measured.jsonl is complete"));
    path.write(
        "one.jsonl",
        &[json!({"input": "How high?", "retrieval_context": ["330 m"], "context": ["x"],
        "actual_output": "It is 330 m high.", "expected_output": "330 m"})],
    );
    let alone =
        [&args(&model, "one.jsonl", "one.out.jsonl")[..], &["--measures", "context_recall,faithfulness"]].concat();
    succeed("rag", path, &alone);
    let one = &path.rows("one.out.jsonl")[0];
    assert_eq!(
        (&one["faithfulness"], &one["context_recall"]),
        (&found[2]["faithfulness"], &found[2]["context_recall"])
    );
    assert_eq!(one["context"], json!(["x"]));
    assert!(one.get("correctness").is_none());
    // Contexts are read once however much is asked: more measures add their questions alone.
    let tokens = |row: &Value| row["input_tokens"].as_u64().unwrap();
    assert!(tokens(one) < tokens(&found[2]));
}

/// Where people marked all sentences alike, a judge that always says yes was right in all of them, also in resamples; and shares of few
/// sentences had intervals beyond 1.
#[test]
fn marks_of_one_kind_say_nothing_of_a_judge() {
    let path = &Desk::new();
    let model = model(path, None);
    let row = |n: usize, second: u8| {
        json!({"id": n, "question": format!("q{n}?"), "contexts": ["In Paris."], "response": "It is in Paris. It is old.",
               "sentences": [{"start": 0, "end": 15, "human": 1}, {"start": 16, "end": 26, "human": second}]})
    };
    let measured = |marks: &[u8]| {
        path.write("in.jsonl", &marks.iter().enumerate().map(|(n, &mark)| row(n, mark)).collect::<Vec<_>>());
        let more = ["--measures", "faithfulness", "--json", "figures.json", "--overwrite"];
        succeed("rag", path, &[&args(&model, "in.jsonl", "out.jsonl")[..], &more].concat());
        path.json("figures.json")["statistics"].clone()
    };
    let found = measured(&[1; 4]);
    for name in ["sentence_auroc", "sentence_balanced_accuracy"] {
        assert!(found[name]["undefined"].is_string(), "{name}: {found}");
    }
    let found = measured(&[0, 1, 1]);
    assert!(found["sentence_balanced_accuracy"]["estimate"].is_number(), "{found}");
    for name in ["sentence_supported_share", "faithfulness", "faithfulness_share"] {
        let end = |end: &str| found[name][end].as_f64().is_none_or(|end| (0.0..=1.0).contains(&end));
        assert!(end("low") && end("high"), "{name}: {found}");
    }
    assert_eq!(found["sentence_supported_share"]["high"], 1.0);
}

/// Fields that are read are carried by name, contexts as the texts of the output's own, and rows are grouped by them.
#[test]
fn fields_that_are_read_are_carried_and_group_rows() {
    let path = &Desk::new();
    let model = model(path, None);
    path.put("answers.csv", TABLE);
    let carry =
        ["--carry", "all,question,contexts,answer", "--measures", "context_relevance", "--json", "figures.json"];
    let all = [&args(&model, "answers.csv", "measured.jsonl")[..], &carry, &["--group", "question"]].concat();
    succeed("rag", path, &all);
    let found = path.rows("measured.jsonl");
    assert_eq!((&found[1]["question"], &found[1]["answer"]), (&json!("Where?"), &json!("In Rome.")));
    let texts = |row: usize| -> Vec<Value> {
        found[row]["contexts"].as_array().unwrap().iter().map(|context| context["text"].clone()).collect()
    };
    assert_eq!((texts(1), texts(3)), (vec![json!("In Rome."), json!("Nowhere.")], vec![]));
    assert!(found[1]["contexts"][1]["relevance"].is_number(), "{}", found[1]);
    assert_eq!(found[4]["contexts"], "['a' 'b']", "what is no list is carried as it is");
    let figures = path.json("figures.json");
    let statistics = &figures["statistics"];
    assert!(statistics.get("context_relevance:Where?").is_some(), "{statistics}");
    assert_eq!(
        (&figures["n"], &figures["questions"]),
        (&json!(3), &json!(2)),
        "questions of the rows that are measured"
    );
    // By the field's name, whatever its column is called; and the texts alone.
    let alone = ["--carry", "contexts", "--measures", "faithfulness", "--json", "figures.json", "--group", "response"];
    succeed("rag", path, &[&args(&model, "measured.jsonl", "again.jsonl")[..], &alone].concat());
    assert_eq!(path.rows("again.jsonl")[1]["contexts"], json!([{"text": "In Rome."}, {"text": "Nowhere."}]));
    let statistics = &path.json("figures.json")["statistics"];
    assert!(statistics.get("faithfulness:In Rome.").is_some(), "{statistics}");
    let none = [&args(&model, "answers.csv", "o.jsonl")[..], &["--group", "desk"]].concat();
    refused("rag", path, &none, 2, &["no row has the field \"desk\""]);
    assert!(!path.join("o.jsonl").exists(), "it is said before anything is read by a model");
}

/// A probe on the states in which the model is asked takes the place of yes and no, for the prompt and the model that it was trained on.
#[test]
fn a_probe_of_marked_sentences_says_what_is_supported() {
    let path = &Desk::new();
    let model = model(path, None);
    let row = |n: usize| {
        let (first, second) = (format!("It is {n}."), format!("THE SKY FELL {n} TIMES."));
        let sentences = json!([{"start": 0, "end": first.len(), "human": true},
            {"start": first.len() + 1, "end": first.len() + 1 + second.len(), "human": [0, 0, 1]}]);
        json!({"id": n, "contexts": [format!("It is {n}, they say.")], "response": format!("{first} {second}"), "sentences": sentences})
    };
    path.write("marked.jsonl", &(0..24).map(row).collect::<Vec<_>>());
    let train =
        ["--rag", "--input", "marked.jsonl", "--output", "probes", "--dtype", "f32", "--model", &model, "--folds", "2"];
    let said = succeed("probe train", path, &[&train[..], &["--group", "contexts"]].concat());
    assert!(said.contains("faithfulness"), "{said}");
    // Rows say themselves on which side they are; one without its group costs itself.
    let parted = |n: usize| {
        let mut row = row(n);
        row["split"] = json!(if n < 18 { "train" } else { "later" });
        row["desk"] = json!(if n.is_multiple_of(2) { "one" } else { "two" });
        row
    };
    let mut parted: Vec<Value> = (0..24).map(parted).collect();
    parted[0].as_object_mut().unwrap().remove("desk");
    path.write("parted.jsonl", &parted);
    let more =
        ["--rag", "--input", "parted.jsonl", "--output", "parted", "--dtype", "f32", "--model", &model, "--folds", "2"];
    let said = succeed("probe train", path, &[&more[..], &["--group", "desk"]].concat());
    assert!(said.contains("trained on 34 rows") && said.contains("later, 12 rows"), "{said}");
    let report = path.json("parted/report.json");
    assert_eq!((&report["unread"], &report["aspects"]["faithfulness"]["n"]), (&json!(1), &json!(46)), "{report}");
    let probe = ["--measures", "faithfulness", "--probe", "probes/faithfulness.safetensors", "--json", "figures.json"];
    succeed("rag", path, &[&args(&model, "marked.jsonl", "probed.jsonl")[..], &probe].concat());
    let auroc = path.json("figures.json")["statistics"]["sentence_auroc"]["estimate"].as_f64().unwrap();
    assert!(auroc > 0.95, "capitals are easily told apart: {auroc}");
    assert!(path.rows("probed.jsonl")[0]["label_mass"].is_number());
    // Nothing of it rests on yes and no.
    let again = [&args(&model, "marked.jsonl", "again.jsonl")[..], &probe[..4]].concat();
    let notes = finished("rag", path, &again).1;
    assert!(!notes.contains("yes and no"), "{notes}");
    let hot = [&args(&model, "marked.jsonl", "hot.jsonl")[..], &probe[..4], &["--temperature", "2"]].concat();
    refused("rag", path, &hot, 2, &["--temperature has no effect"]);
    // Another measure does.
    let more = ["--measures", "faithfulness,context_relevance", "--temperature", "2"];
    succeed("rag", path, &[&args(&model, "marked.jsonl", "both.jsonl")[..], &probe[2..4], &more].concat());
    path.put("turn.jinja", "{{ state }} {{ question.instructions }}");
    let other = [&args(&model, "marked.jsonl", "o")[..], &probe[..4], &["--decision-prompt", "turn.jinja"]].concat();
    fails("rag", path, &other, &["--probe", "trained on another judge"]);
}

/// One field is shortened for every command over rows; what the row was before is in its `cut`.
#[test]
fn contexts_are_cut_to_so_many_tokens() {
    let path = &Desk::new();
    let model = model(path, None);
    let row = |context: String| json!({"contexts": ["short", context], "response": "Here."});
    path.write("rows.jsonl", &[row("a".repeat(3000)), row("b".repeat(20))]);
    let cut = ["--measures", "faithfulness", "--cut", "contexts=50:tail", "--carry", "none"];
    succeed("rag", path, &[&args(&model, "rows.jsonl", "out.jsonl")[..], &cut].concat());
    let found = path.rows("out.jsonl");
    assert_eq!((&found[0]["cut"], found[1].get("cut")), (&json!({"contexts": 3000}), None));
    assert!(found[0]["faithfulness"]["mean"].is_number() && found[0].get("by_context").is_none(), "{}", found[0]);
    let wrong =
        [&args(&model, "rows.jsonl", "o")[..], &["--measures", "faithfulness", "--cut", "reference=5"]].concat();
    let said = ["no row has a text in the field \"reference\" that is to be cut", "that can be cut are [\"contexts\"]"];
    fails("rag", path, &wrong, &said);
    // By the name of its column, and once.
    path.write("of_ragas.jsonl", &[json!({"retrieved_contexts": ["a".repeat(3000)], "response": "Here."})]);
    let line = args(&model, "of_ragas.jsonl", "named.jsonl");
    let cut = ["--measures", "faithfulness", "--cut", "retrieved_contexts=50"];
    succeed("rag", path, &[&line[..], &cut].concat());
    assert_eq!(path.rows("named.jsonl")[0]["cut"], json!({"retrieved_contexts": 3000}));
    let twice = [&line[..], &cut, &["--cut", "contexts=20", "--overwrite"]].concat();
    fails("rag", path, &twice, &["retrieved_contexts=50:head and contexts=20:head both cut the field \"contexts\""]);
}

/// Rows with an empty question were rows of one question, and `n` counted rows that nobody had marked.
#[test]
fn what_a_row_lacks_is_not_counted_as_there() {
    let path = &Desk::new();
    let model = model(path, None);
    let row = |n: usize| {
        let sentences = if n == 0 { json!([{"start": 0, "end": 10, "human": 1}]) } else { Value::Null };
        json!({"id": n, "question": "", "contexts": ["In Paris."], "response": "It is old.", "sentences": sentences, "desk": n})
    };
    path.write("rows.jsonl", &(0..52).map(row).collect::<Vec<_>>());
    let more = ["--measures", "faithfulness", "--json", "figures.json", "--group", "desk"];
    let bars = ["--require", "n>=2", "--require", "sentence_supported_share>=0"];
    let (said, _) = ended("rag", path, &[&args(&model, "rows.jsonl", "out.jsonl")[..], &more, &bars].concat(), 3);
    for words in [
        "52 answers to 52 questions",
        "2 groups more: --json has all of them",
        "MISSED:  n>=2: found 1 (counted: 1 of 52 rows)",
        "reached: coverage>=0.98 (--min-coverage): found 1.0000",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(path.json("figures.json")["statistics"]["faithfulness:51"]["estimate"].is_number());
}

/// A sentence on which two people disagree was one that is not supported.
#[test]
fn sentences_on_which_people_are_divided_say_nothing_of_a_row() {
    let path = &Desk::new();
    let model = model(path, None);
    let marks =
        [[[0, 1], [1, 1]], [[0, 0], [1, 1]], [[0, 0], [0, 0]], [[0, 1], [1, 0]], [[1, 1], [1, 1]], [[0, 1], [0, 0]]];
    let row = |(n, [first, second]): (usize, [[u8; 2]; 2])| {
        let sentences = json!([{"start": 0, "end": 8, "human": first}, {"start": 9, "end": 19, "human": second}]);
        let (contexts, response) = (["In Paris. ".repeat(n + 1)], format!("It is {n}. It is old."));
        json!({"id": n, "contexts": contexts, "response": response, "sentences": sentences})
    };
    path.write("rows.jsonl", &marks.into_iter().enumerate().map(row).collect::<Vec<_>>());
    let more = ["--measures", "faithfulness", "--json", "figures.json", "--require", "faithfulness_spearman>=-1"];
    let all = [&args(&model, "rows.jsonl", "out.jsonl")[..], &more, &["--require", "n>=6"]].concat();
    let (said, _) = ended("rag", path, &all, 3);
    assert!(said.contains("MISSED:  n>=6: found 5 (counted: 5 of 6 rows)"), "{said}");
    let rows = path.rows("out.jsonl");
    let shares = [(0, 1.0), (1, 0.5), (2, 0.0), (4, 1.0), (5, 0.0)];
    let scores = shares.map(|(row, _): (usize, f64)| rows[row]["faithfulness"]["mean"].as_f64().unwrap());
    let centred = |values: [f64; 5]| values.map(|value| value - values.iter().sum::<f64>() / 5.0);
    let (scores, shares) = (centred(scores), centred(shares.map(|(_, share)| share)));
    let product = |a: [f64; 5], b: [f64; 5]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let pearson = product(scores, shares) / (product(scores, scores) * product(shares, shares)).sqrt();
    let found = path.json("figures.json")["statistics"]["faithfulness_pearson"]["estimate"].as_f64().unwrap();
    assert!((found - pearson).abs() < 1e-9, "{found}, expected {pearson}");
}

/// Marks of a scale from 1 to 5 all were "supported", and a fit failed on them once the model had read everything.
#[test]
fn marks_of_another_scale_are_none() {
    let path = &Desk::new();
    let model = model(path, None);
    let row = |n: usize| {
        let sentences = json!([{"start": 0.0, "end": 15.0, "human": 5}, {"start": 16, "end": 26, "human": n % 2}]);
        json!({"id": n, "contexts": ["In Paris."], "response": "It is in Paris. It is old.", "sentences": sentences})
    };
    path.write("rows.jsonl", &(0..4).map(row).collect::<Vec<_>>());
    let more = ["--measures", "faithfulness", "--json", "figures.json", "--fit", "w.json", "--fit-steps", "5"];
    let (said, notes) = finished("rag", path, &[&args(&model, "rows.jsonl", "out.jsonl")[..], &more].concat());
    assert!(said.contains("on 4 labels"), "{said}");
    assert!(notes.contains("grades that cannot be read") && notes.contains("a number from 0 to 1"), "{notes}");
    let share = &path.json("figures.json")["statistics"]["sentence_supported_share"]["estimate"];
    assert_eq!(*share, json!(0.5));
}

#[test]
fn bars_rest_on_the_rows_that_have_the_measure() {
    let path = &Desk::new();
    let model = model(path, None);
    path.put("answers.csv", TABLE);
    path.put("labels.json", r#"{"labels": {"noul": ["Not so", "Yes so"]}}"#);
    let labels = [&args(&model, "answers.csv", "none.jsonl")[..], &["--decision-config", "labels.json"]].concat();
    fails("rag", path, &labels, &["label \"Not so\" is not one", "name others in a file, with --decision-config"]);
    let bars = ["--require", "faithfulness>=0", "--junit", "bars.xml"];
    let (said, _) = ended("rag", path, &[&args(&model, "answers.csv", "measured.jsonl")[..], &bars].concat(), 3);
    assert!(said.contains("MISSED:  coverage>=0.98") && said.contains("3 of 5 rows"), "{said}");
    // Rows are named where they speak against what a bar is about, and at that of the coverage those without the measure.
    let xml = || path.text("bars.xml");
    assert!(!xml().contains("least faithfulness: ") && xml().contains(">not counted: 3, 4</failure>"), "{}", xml());
    let high = ["--require", "faithfulness>=1", "--junit", "bars.xml"];
    let (code, ..) = ran("rag", path, &[&args(&model, "answers.csv", "measured.jsonl")[..], &high].concat());
    assert!(code == Some(3) && xml().contains("least faithfulness: "), "{}", xml());
    let enough = [&bars[..], &["--min-coverage", "0.6"]].concat();
    succeed("rag", path, &[&args(&model, "answers.csv", "measured.jsonl")[..], &enough].concat());
}

#[test]
fn contexts_that_are_too_long_together_are_read_one_by_one() {
    let path = &Desk::new();
    let model = model(path, None);
    let context = |letter: &str| letter.repeat(1200);
    let row = |id: &str, contexts: Vec<String>| json!({"id": id, "question": "Where?", "contexts": contexts, "response": "Here."});
    path.write(
        "rows.jsonl",
        &[
            row("both", vec![context("a"), context("b")]),
            row("a", vec![context("a")]),
            row("b", vec![context("b")]),
            row("never", vec![context("a").repeat(2), "c".to_owned()]),
        ],
    );
    let only = ["--measures", "faithfulness,context_relevance"];
    succeed("rag", path, &[&args(&model, "rows.jsonl", "out.jsonl")[..], &only].concat());
    let found = path.rows("out.jsonl");
    let of = |at: usize| found[at]["sentences"][0]["supported"].as_f64();
    assert_eq!((&found[0]["by_context"], found[1].get("by_context")), (&json!(true), None));
    assert_eq!(of(0), Some(of(1).unwrap().max(of(2).unwrap())), "the best of both");
    let relevance: Vec<&Value> = (1..3).map(|at| &found[at]["contexts"][0]).collect();
    assert_eq!(found[0]["contexts"].as_array().unwrap().iter().collect::<Vec<_>>(), relevance);
    assert_eq!(found[3]["unscored"]["faithfulness"]["reason"], "too_long");
    assert_eq!(found[3]["sentences"][0]["supported"], Value::Null);
    // Asked for, it is the same for contexts that fit.
    let each = [&args(&model, "rows.jsonl", "each.jsonl")[..], &only, &["--by-context"]].concat();
    succeed("rag", path, &each);
    assert_eq!(path.rows("each.jsonl")[0]["sentences"], found[0]["sentences"]);
}

#[test]
fn people_who_marked_sentences_are_compared_with() {
    let path = &Desk::new();
    let model = model(path, None);
    let row = |n: usize| {
        let response = format!("It is {n}. It is old.");
        let end = response.find(" It is old").unwrap();
        let sentences = json!([{"start": 0, "end": end, "human": [n % 2, 1, n % 2]}, {"start": end + 1, "end": response.len(), "human": n.is_multiple_of(3)}]);
        json!({"id": n, "contexts": [format!("It is {n}.")], "response": response, "sentences": sentences})
    };
    path.write("rows.jsonl", &(0..12).map(row).collect::<Vec<_>>());
    let json = ["--measures", "faithfulness", "--json", "figures.json"];
    let said = succeed("rag", path, &[&args(&model, "rows.jsonl", "out.jsonl")[..], &json].concat());
    assert!(said.contains("sentence_auroc: ") && said.contains("faithfulness_spearman: "), "{said}");
    let figures = path.json("figures.json");
    let share = figures["statistics"]["sentence_supported_share"]["estimate"].as_f64().unwrap();
    assert!((share - 10.0 / 24.0).abs() < 1e-12, "{figures}");
    let found = &path.rows("out.jsonl")[1]["sentences"][0];
    assert_eq!(found["human"], json!([1.0, 1.0, 1.0]));
    // Whether a sentence claims anything is another question; the one that the model has for each is kept.
    ran(
        "rag",
        path,
        &[&args(&model, "rows.jsonl", "claims.jsonl")[..], &["--measures", "faithfulness", "--claims-only"]].concat(),
    );
    let claims = &path.rows("claims.jsonl")[1]["sentences"][0];
    assert!(claims["claims"].is_number() && claims["supported"] == found["supported"], "{claims}");
    // Every layer, and weights learned over them.
    let fit = ["--measures", "faithfulness", "--fit", "weights.json", "--fit-steps", "50", "--json", "layers.json"];
    let said = succeed("rag", path, &[&args(&model, "rows.jsonl", "layers.jsonl")[..], &fit].concat());
    assert!(said.contains("noul: cross-entropy") && said.contains("weights -> weights.json"), "{said}");
    let layers = path.json("layers.json")["layers"].as_array().unwrap().len();
    let table = &path.rows("layers.jsonl")[0]["sentences"][0]["table"];
    assert_eq!((table["layers"].as_array().unwrap().len(), table["logits"][0].as_array().unwrap().len()), (layers, 2));
    let weighted = ["--measures", "faithfulness", "--weights", "weights.json"];
    succeed("rag", path, &[&args(&model, "rows.jsonl", "weighted.jsonl")[..], &weighted].concat());
    assert_ne!(path.rows("weighted.jsonl")[0]["faithfulness"], path.rows("layers.jsonl")[0]["faithfulness"]);
    let useless = [&args(&model, "rows.jsonl", "o")[..], &["--measures", "correctness", "--claims-only"]].concat();
    assert_eq!(ran("rag", path, &useless).0, Some(2));
    let nothing = [&args(&model, "rows.jsonl", "o")[..], &["--measures", "correctness"]].concat();
    refused("rag", path, &nothing, 1, &["no row can be measured; the first is 0: the row has no reference"]);
}
