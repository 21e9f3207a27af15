//! `judge rerank`: documents in order, resumed and measured; pairs; layers, and weights fitted on relevance. `judge serve` on the same models.

use std::fs;
use std::path::Path;

use judge_core::decision::{DecisionWeights, QuestionKind};
use serde_json::{Value, json};

use crate::decide::model as characters;
use crate::program::{Desk, copy_files, ended, fails, finished, fixture, read_json, refused, succeed, words};
use crate::service::Service;

/// A cross-encoder of `scripts/parity/make_encoder_head_fixtures.py`.
fn cross_encoder() -> String {
    fixture("encoder_heads/deberta-v2")
}

/// A template of a whole prompt for the tokenizer of characters.
fn template(folder: &Path) {
    fs::write(folder.join("prompt.jinja"), "<s>{{ query }}<|split|>{{ document }}</s> so: ").unwrap();
}

const LABELS: [&str; 6] = ["--rerank-template", "prompt.jinja", "--labels", "Yes,No", "--dtype", "f32"];

fn scores(row: &Value) -> Vec<(u64, f64)> {
    let results = row["results"].as_array().unwrap().iter();
    results.filter_map(|result| Some((result["index"].as_u64()?, result["relevance_score"].as_f64()?))).collect()
}

#[test]
fn documents_come_in_order_and_one_that_is_unread_costs_itself_alone() {
    let path = &Desk::new();
    let texts = ["ba de fi", "go ku", "ru su ta ve", "ba de fi"];
    path.write(
        "queries.jsonl",
        &[
            json!({"id": "one", "query": "ba de", "documents": texts, "from": "x"}),
            json!({"id": "odd", "query": "ba de", "documents": ["go ku", 3, {"text": "ba de fi", "n": 1}, null]}),
            json!({"id": "none", "query": "ba de"}),
            json!({"id": "long", "query": "ba de", "documents": ["go ".repeat(500)]}),
            json!({"id": "pair", "query": "ba de", "document": "go ku"}),
        ],
    );
    let model = cross_encoder();
    let args = ["--input", "queries.jsonl", "--output", "ranked.jsonl", "--model", &model, "--dtype", "f32"];
    let said = succeed("rerank", path, &args);
    assert!(said.contains("4 of 5 queries reranked"), "{said}");
    let found = path.rows("ranked.jsonl");
    // A table has lists as texts.
    path.put("queries.csv", "id,query,documents\none,ba de,\"['ba de fi', 'go ku', 'ru su ta ve', 'ba de fi']\"\n");
    let of_table = ["--input", "queries.csv", "--output", "table.jsonl", "--model", &model, "--dtype", "f32"];
    succeed("rerank", path, &of_table);
    assert_eq!(path.rows("table.jsonl")[0]["results"], found[0]["results"]);
    // Objects of a cell have their names, and one that is no document costs itself alone.
    let objects = r#"one,ba de,"[{""id"": ""d1"", ""text"": ""go ku""}, {""title"": ""x""}, {""id"": 2, ""text"": ""ba de fi""}]""#;
    path.put("queries.csv", format!("id,query,documents\n{objects}\n"));
    succeed("rerank", path, &[&of_table[..], &["--overwrite"]].concat());
    let cell = path.rows("table.jsonl").remove(0)["results"].take();
    let named: Vec<&Value> = cell.as_array().unwrap().iter().filter_map(|result| result.get("id")).collect();
    assert!(named.len() == 2 && named.contains(&&json!("d1")) && named.contains(&&json!(2)), "{cell}");
    assert_eq!((&cell[2]["index"], &cell[2]["unscored"]["reason"]), (&json!(1), &json!("missing")));
    let keys: Vec<&str> = found[0].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["id", "results", "input_tokens", "from"]);
    let all = scores(&found[0]);
    assert_eq!(all.len(), 4);
    assert!(all.is_sorted_by(|(_, a), (_, b)| a >= b), "{all:?}");
    assert!(all.iter().all(|(_, score)| (0.0..1.0).contains(score)), "a sigmoid is over one label: {all:?}");
    // Equal documents have equal bits, and the earlier comes first.
    let place = |index: u64| all.iter().position(|(found, _)| *found == index).unwrap();
    assert_eq!(all[place(0)].1, all[place(3)].1);
    assert_eq!(place(0) + 1, place(3));
    // A score does not depend on the others.
    let of = |row: &Value, index: u64| scores(row).into_iter().find(|(found, _)| *found == index).unwrap().1;
    assert_eq!(of(&found[0], 1), of(&found[1], 0));
    assert_eq!(of(&found[0], 0), of(&found[1], 2));
    assert_eq!(of(&found[0], 1), of(&found[4], 0));
    let odd = found[1]["results"].as_array().unwrap();
    assert_eq!(odd[2]["index"], 1);
    let why = odd[2]["unscored"]["detail"].as_str().unwrap();
    assert!(why.contains("document 1: expected text, or an object with a `text`"), "{why}");
    assert_eq!(odd[3]["index"], 3);
    assert_eq!(found[2]["unscored"]["reason"], "missing");
    assert!(found[3]["results"][0]["cut_tokens"].as_u64().is_some_and(|cut| cut > 400), "{}", found[3]);

    assert!(succeed("rerank", path, &args).contains("ranked.jsonl is complete"));
    let unsaid = ["--input", "queries.jsonl", "--output", "other.jsonl"];
    refused("rerank", path, &unsaid, 2, &["the embedded model: nothing says how this model", "--rerank-template FILE"]);
    let top = [&args[..3], &["top.jsonl", "--top", "2"], &args[4..]].concat();
    succeed("rerank", path, &top);
    let first = path.rows("top.jsonl");
    assert_eq!(scores(&first[0]), all[..2]);
    for (more, words) in [
        (["--layer", "1"], "expected a layer that has a head of labels (2), found layer 1"),
        (["--fit", "weights.json"], "the model scores by a head of labels: --fit is of label logits"),
    ] {
        refused("rerank", path, &[&args[..3], &["other.jsonl"], &args[4..], &more].concat(), 2, &[words]);
    }
}

/// A folder is described several times before it is loaded, and what sentence-transformers writes into `config.json` is read.
#[test]
fn a_field_that_is_not_read_is_named_once() {
    let path = &Desk::new();
    let model = path.join("model");
    fs::create_dir(&model).unwrap();
    copy_files(cross_encoder(), &model);
    let mut config = read_json(model.join("config.json"));
    config["new_field"] = json!(1);
    config["sentence_transformers"] = json!({"activation_fn": "torch.nn.modules.linear.Identity"});
    fs::write(model.join("config.json"), config.to_string()).unwrap();
    path.write("rows.jsonl", &[json!({"id": 1, "query": "ba de", "document": "go ku"})]);
    let args = ["--input", "rows.jsonl", "--output", "ranked.jsonl", "--model", "model", "--dtype", "f32"];
    let (_, told) = finished("rerank", path, &args);
    assert_eq!(told.matches("fields that are not read").count(), 1, "{told}");
    assert!(told.contains("new_field") && !told.contains("sentence_transformers"), "{told}");
}

#[test]
fn relevance_is_measured_and_held_against_bars() {
    let path = &Desk::new();
    let texts = ["ba de fi", "go ku", "ru su ta ve", "12 za"];
    // Each text is one that nobody judged.
    let relevance = |n: usize| {
        let mut relevance = [Some(n % 2), Some(0), Some(2), None];
        relevance.rotate_left(n % 4);
        relevance
    };
    let queries: Vec<Value> = (0..6)
        .map(|n| json!({"id": n, "query": format!("ba {n}"), "documents": texts, "relevance": relevance(n)}))
        .chain([
            json!({"id": "no", "query": "q", "documents": ["go ku"], "relevance": [0]}),
            json!({"id": "odd", "query": "q", "documents": ["go ku"], "relevance": "much"}),
        ])
        .collect();
    path.write("queries.jsonl", &queries);
    let model = cross_encoder();
    let args = ["--input", "queries.jsonl", "--output", "ranked.jsonl", "--model", &model, "--json", "figures.json"];
    let more = ["--k", "2", "--require", "ndcg_10>=0.1", "--require", "mrr<=1", "--min-coverage", "0.5"];
    let (said, stderr) = finished("rerank", path, &[&args[..], &more].concat());
    assert!(
        said.contains("6 queries with a relevant document") && said.contains("1 query without one is left out"),
        "{said}"
    );
    assert!(stderr.contains("have relevance that cannot be read"), "{stderr}");
    let figures = path.json("figures.json");
    let statistic = |name: &str| figures["statistics"][name]["estimate"].as_f64().unwrap();
    let ranked = path.rows("ranked.jsonl");
    let (mut ndcg, mut mrr, mut recall) = (0.0, 0.0, 0.0);
    for row in &ranked[..6] {
        let gains = row["relevance"].as_array().unwrap();
        let order: Vec<f64> =
            scores(row).iter().map(|(index, _)| gains[*index as usize].as_f64().unwrap_or(0.0)).collect();
        let dcg = |order: &[f64]| order.iter().zip(2..).map(|(gain, rank)| gain / f64::from(rank).log2()).sum::<f64>();
        let mut best = order.clone();
        best.sort_by(|a, b| b.total_cmp(a));
        ndcg += dcg(&order) / dcg(&best) / 6.0;
        mrr += 1.0 / (order.iter().position(|gain| *gain > 0.0).unwrap() + 1) as f64 / 6.0;
        let relevant = |order: &[f64]| order.iter().filter(|gain| **gain > 0.0).count() as f64;
        recall += relevant(&order[..2]) / relevant(&order) / 6.0;
    }
    assert!((statistic("ndcg_10") - ndcg).abs() < 1e-12);
    assert!((statistic("mrr") - mrr).abs() < 1e-12);
    assert!((statistic("recall_k") - recall).abs() < 1e-12);
    assert!(figures["statistics"]["ndcg_10"]["low"].is_number(), "{figures}");
    ended("rerank", path, &[&args[..], &["--require", "ndcg_10>=1.5"]].concat(), 3);

    // Pairs of one query are one ranking, those among them that nobody judged.
    let pairs: Vec<Value> = (0..6)
        .flat_map(|n| {
            texts.iter().zip(relevance(n)).map(
                move |(text, relevance)| json!({"query": format!("ba {n}"), "document": text, "relevance": relevance}),
            )
        })
        .chain([json!({"query": "ba", "document": "go ku"})])
        .collect();
    path.write("pairs.jsonl", &pairs);
    let args = words("--input pairs.jsonl --output pairs.out.jsonl --json pairs.json --k 2 --model");
    succeed("rerank", path, &[&args[..], &[&model]].concat());
    let of_pairs = path.json("pairs.json");
    for name in ["ndcg_10", "mrr", "recall_k", "map"] {
        assert_eq!(of_pairs["statistics"][name]["estimate"], figures["statistics"][name]["estimate"], "{name}");
    }
}

/// Where all scores are equal the order of the file was that of the judge, which was perfect where relevant documents come first.
#[test]
fn equal_scores_are_no_order() {
    let path = &Desk::new();
    let model = characters(path, None);
    template(path);
    let texts = ["It is so.", "NO!", "maybe"];
    let query = |turned: bool| {
        let (mut texts, mut relevance) = (texts, [1, 0, 0]);
        if turned {
            texts.reverse();
            relevance.reverse();
        }
        let documents: Vec<Value> = texts.iter().map(|text| json!({"id": text, "text": text})).collect();
        json!({"id": "q", "query": "Which?", "documents": documents, "relevance": relevance})
    };
    for turned in [false, true] {
        path.write("in.jsonl", &[query(turned)]);
        // No block is run, and all prompts end with the same token.
        let args = ["--input", "in.jsonl", "--output", "out.jsonl", "--overwrite", "--model", &model, "--layer", "0"];
        let (_, notes) = finished("rerank", path, &[&args[..], &LABELS, &["--json", "figures.json"]].concat());
        let all = scores(&path.rows("out.jsonl")[0]);
        assert!(all.iter().all(|(_, score)| *score == all[0].1), "{all:?}");
        assert!(notes.contains("1 query has documents of different relevance with the same score"), "{notes}");
        let figures = path.json("figures.json");
        for (name, expected) in [("ndcg_10", 0.5), ("mrr", 1.0 / 3.0), ("map", 1.0 / 3.0), ("recall_k", 1.0)] {
            let found = figures["statistics"][name]["estimate"].as_f64().unwrap();
            assert!((found - expected).abs() < 1e-12, "{name}: {found}");
        }
        // As a run they go by names, whatever the order of the file.
        path.put("qrels.tsv", "query-id\tcorpus-id\tscore\nq\tmaybe\t1\n");
        let bench = ["--benchmark", "trec", "--data", "qrels.tsv", "--run", "out.jsonl", "--json", "bench.json"];
        succeed("bench", path, &[&bench[..], &["--overwrite"]].concat());
        let found = path.json("bench.json")["statistics"]["mrr"]["estimate"].as_f64().unwrap();
        assert!((found - 1.0).abs() < 1e-12, "{found}");
    }
}

/// `judge bench` took documents without a score for ranked, and rows without any for rankings, which `judge rerank` does not.
#[test]
fn a_document_without_a_score_is_found_by_neither_command() {
    let path = &Desk::new();
    let found = [json!({"id": "d1", "text": "ba de"}), json!({"id": "d2", "text": "go ku"})];
    let unread = [json!({"id": "d3", "title": "no text"})];
    let documents = [&found[..], &unread].concat();
    path.write(
        "in.jsonl",
        &[
            json!({"id": "q1", "query": "ba", "documents": documents, "relevance": [0, 0, 1]}),
            json!({"id": "q2", "query": "ba", "documents": unread, "relevance": [1]}),
        ],
    );
    let model = cross_encoder();
    let args =
        ["--input", "in.jsonl", "--output", "out.jsonl", "--model", &model, "--dtype", "f32", "--json", "a.json"];
    succeed("rerank", path, &args);
    path.put("qrels.txt", "q1 0 d3 1\nq2 0 d3 1\n");
    succeed("bench", path, &words("--benchmark trec --data qrels.txt --run out.jsonl --json b.json"));
    let [own, of_run] = ["a.json", "b.json"].map(|file| path.json(file));
    for name in ["ndcg_10", "mrr", "recall_k", "map"] {
        let estimate = |of: &Value| of["statistics"][name]["estimate"].clone();
        assert_eq!((estimate(&own), estimate(&of_run)), (json!(0.0), json!(0.0)), "{name}");
    }
    for name in ["n", "unranked"] {
        assert_eq!((&own[name], &of_run[name]), (&json!(1), &json!(1)), "{name}");
    }
    assert_eq!(own["statistics"]["coverage"]["estimate"], of_run["statistics"]["coverage"]["estimate"]);
}

#[test]
fn relevance_is_read_as_grades_are_and_stays_where_documents_are_none() {
    let path = &Desk::new();
    path.write(
        "queries.jsonl",
        &[
            json!({"id": "a", "query": "ba", "documents": ["ba de fi", "go ku"], "relevance": [true, "0"]}),
            json!({"id": "none", "query": "ba", "documents": null, "relevance": [1, 0]}),
        ],
    );
    let model = cross_encoder();
    let run =
        |line: &str, more: &[&str]| succeed("rerank", path, &[&words(line)[..], &["--model", &model], more].concat());
    run("--input queries.jsonl --output ranked.jsonl --json ranked.json", &["--carry", "all,relevance"]);
    let found = path.rows("ranked.jsonl");
    assert_eq!((&found[0]["relevance"], &found[1]["relevance"]), (&json!([1.0, 0.0]), &json!([1.0, 0.0])));
    assert_eq!(found[1]["unscored"]["reason"], "missing");
    let figures = path.json("ranked.json");
    assert_eq!((&figures["n"], &figures["unranked"]), (&json!(1), &json!(1)));
    assert_eq!(figures["statistics"]["coverage"]["estimate"], 0.5);

    // A table's cells are texts; a pair without a document is one of its query all the same, and those without a query are not one.
    let table = "query,document,relevance\nba,ba de fi,1\nba,go ku,0\nba,,1\n,go ku,1\n,ba de,1\n";
    path.put("pairs.csv", table);
    run("--input pairs.csv --output pairs.jsonl --json pairs.json", &[]);
    let found = path.rows("pairs.jsonl");
    assert_eq!([0, 1, 2].map(|row| found[row]["relevance"].clone()), [json!([1.0]), json!([0.0]), json!([1.0])]);
    assert!(found[2]["unscored"]["detail"].as_str().unwrap().contains("document 0"), "{}", found[2]);
    let figures = path.json("pairs.json");
    assert_eq!((&figures["n"], &figures["unranked"]), (&json!(1), &json!(2)));
    assert_eq!(figures["statistics"]["recall_k"]["estimate"], 0.5, "one of two relevant documents is ranked");
}

#[test]
fn labels_are_read_at_a_layer_and_by_weights_that_were_fitted() {
    let path = &Desk::new();
    let model = characters(path, None);
    template(path);
    let documents = |n: usize| [format!("It is {n}."), format!("NO {n}!!"), "maybe".to_owned()];
    let queries: Vec<Value> = (0..10)
        .map(|n| json!({"query": format!("Which {n}?"), "documents": documents(n), "relevance": [2, 0, 1]}))
        .collect();
    path.write("queries.jsonl", &queries);
    let base = ["--input", "queries.jsonl", "--model", &model];
    let args = |output: &'static str, more: &[&'static str]| -> Vec<String> {
        let all = [&base[..], &LABELS, &["--output", output], more].concat();
        all.into_iter().map(str::to_owned).collect()
    };
    let run = |output: &'static str, more: &[&'static str]| {
        let args = args(output, more);
        let said = succeed("rerank", path, &args.iter().map(String::as_str).collect::<Vec<_>>());
        (said, path.rows(output))
    };
    // Nothing of the folder says how, and nothing is guessed.
    let line = [&base[..], &["--output", "none.jsonl"]].concat();
    refused("rerank", path, &line, 2, &["nothing says how this model", "--rerank-template FILE --labels YES,NO"]);
    // What is wrong with an option is not said of the model's folder.
    path.put("query.jinja", "{{ query }}");
    for (more, said) in [
        (["--rerank-template", "prompt.jinja", "--labels", "Yes,No,Maybe"], "--labels: expected one label, or two"),
        (["--rerank-template", "query.jinja", "--labels", "Yes"], "query.jinja: the template does not read"),
    ] {
        refused("rerank", path, &[&line[..], &more].concat(), 2, &[said]);
    }
    let unread = [&line[..], &LABELS, &["--instruction", "Is it so?"]].concat();
    refused("rerank", path, &unread, 2, &["--instruction has no effect: prompt.jinja: "]);

    let (_, last) = run("last.jsonl", &[]);
    assert!(last[0]["label_mass"].as_f64().is_some_and(|mass| mass > 0.0 && mass < 1.0), "{}", last[0]);
    let (said, fitted) = run("fitted.jsonl", &["--fit", "weights.json", "--fit-steps", "50"]);
    assert!(said.contains("on 30 labels") && said.contains("weights -> weights.json"), "{said}");
    assert_eq!(scores(&fitted[0]), scores(&last[0]), "what is fitted does not change what is read");
    let tables = fitted[0]["tables"].as_array().unwrap();
    assert_eq!(tables.len(), 3);
    let difference = |layer: usize, index: usize| {
        let row = &tables[index]["logits"][layer];
        row[0].as_f64().unwrap() - row[1].as_f64().unwrap()
    };
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    let near = |row: &Value, expected: &dyn Fn(usize) -> f64| {
        for (index, score) in scores(row) {
            assert!((score - expected(index as usize)).abs() < 1e-6, "{row}");
        }
    };
    let last_layer = tables[0]["layers"].as_array().unwrap().len() - 1;
    near(&last[0], &|index| sigmoid(difference(last_layer, index)));
    let (_, layer) = run("layer.jsonl", &["--layer", "1"]);
    assert!(layer[0].get("label_mass").is_none(), "the mass would need the last layer");
    near(&layer[0], &|index| sigmoid(difference(1, index)));
    let weights: DecisionWeights = judge_data::load(path.join("weights.json")).unwrap();
    let noul = weights.get(QuestionKind::Noul).unwrap();
    let of_layers = noul.layers.clone().unwrap();
    let (_, weighted) = run("weighted.jsonl", &["--weights", "weights.json"]);
    near(&weighted[0], &|index| {
        let sum: f64 = (0..=last_layer).map(|l| of_layers[l] * difference(l, index)).sum();
        sigmoid(sum / noul.temperature)
    });
    // A service reads the same layers.
    let file = |name: &str| path.join(name).to_str().unwrap().to_owned();
    let (prompt, weights) = (file("prompt.jinja"), file("weights.json"));
    let form = ["--model", &model, "--rerank-template", &prompt, "--labels", "Yes,No", "--dtype", "f32"];
    for (more, expected) in [(["--rerank-layer", "1"], &layer[0]), (["--rerank-weights", &weights], &weighted[0])] {
        let service = Service::start(&[&form[..], &more].concat());
        let reply = service.post("/rerank", &json!({"query": "Which 0?", "documents": documents(0)}));
        assert_eq!(scores(&reply.json()), scores(expected), "{more:?}");
    }
    refused("serve", path, &["--rerank-layer", "1"], 2, &["does not say how it scores documents"]);
    // They are of this prompt and these labels.
    path.put("prompt.jinja", "{{ query }} {{ document }}");
    let other = args("other.jsonl", &["--weights", "weights.json"]);
    fails("rerank", path, &other.iter().map(String::as_str).collect::<Vec<_>>(), &["with the prompt"]);
}

#[test]
fn a_service_scores_documents_in_every_form() {
    let model = cross_encoder();
    let service = Service::start(&["--model", &model, "--dtype", "f32", "--name", "reranker"]);
    let documents = json!(["ba de fi", {"text": "go ku"}, "ru su ta ve"]);
    let texts = ["ba de fi", "go ku", "ru su ta ve"];
    let request = json!({"model": "reranker", "query": "ba de", "documents": documents});
    let reply = service.post("/v1/rerank", &request).json();
    let all = scores(&reply);
    assert_eq!((all.len(), &reply["model"]), (3, &json!("reranker")));
    assert!(all.is_sorted_by(|(_, a), (_, b)| a >= b));
    assert!(reply["usage"]["total_tokens"].as_u64().is_some_and(|tokens| tokens > 10));
    assert!(reply["id"].is_string());

    // The rows of the command have the same bits.
    let folder = &Desk::new();
    folder.write("in.jsonl", &[json!({"query": "ba de", "documents": texts})]);
    let args = ["--input", "in.jsonl", "--output", "out.jsonl", "--model", &model, "--dtype", "f32"];
    succeed("rerank", folder, &args);
    assert_eq!(scores(&folder.rows("out.jsonl")[0]), all);

    for path in ["/v2/rerank", "/rerank"] {
        assert_eq!(scores(&service.post(path, &request).json()), all, "{path}");
    }
    let top = json!({"query": "ba de", "documents": texts, "top_n": 1, "return_documents": true});
    let top = service.post("/v2/rerank", &top).json();
    assert_eq!(scores(&top), all[..1]);
    assert_eq!(top["results"][0]["document"]["text"], texts[all[0].0 as usize]);
    // An object is returned with all of its fields.
    let named = json!({"id": "n7", "text": "go ku", "title": {"en": "T"}});
    let named = json!({"query": "ba de", "documents": [named, "ba de fi"], "return_documents": true});
    for result in service.post("/v2/rerank", &named).json()["results"].as_array().unwrap() {
        let expected = [named["documents"][0].clone(), json!({"text": "ba de fi"})];
        assert_eq!(result["document"], expected[result["index"].as_u64().unwrap() as usize]);
    }

    let digits = r#""id":12345678901234567890123"#;
    let exact =
        format!(r#"{{"query": "ba de", "documents": [{{"text": "go ku", {digits}}}], "return_documents": true}}"#);
    let reply = service.send(&Service::request("POST", "/v2/rerank", "", exact.as_bytes()));
    assert!(reply.status == 200 && reply.body.contains(digits), "{}", reply.body);

    // text-embeddings-inference's form, with and without the sigmoid.
    let tei = |more: Value| {
        let mut body = json!({"query": "ba de", "texts": texts});
        body.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        service.post("/rerank", &body)
    };
    let found = tei(json!({"return_text": true})).json();
    let of = |row: &Value| (row["index"].as_u64().unwrap(), row["score"].as_f64().unwrap());
    assert_eq!(found.as_array().unwrap().iter().map(of).collect::<Vec<_>>(), all);
    assert_eq!(found[0]["text"], texts[all[0].0 as usize]);
    let best = tei(json!({"top_n": 1})).json();
    assert_eq!(best.as_array().unwrap().iter().map(of).collect::<Vec<_>>(), all[..1]);
    let raw = tei(json!({"raw_scores": true})).json();
    for (row, (index, score)) in raw.as_array().unwrap().iter().zip(&all) {
        assert_eq!(row["index"].as_u64(), Some(*index));
        assert!((1.0 / (1.0 + (-row["score"].as_f64().unwrap()).exp()) - score).abs() < 1e-12);
    }
    let long = "go ".repeat(500);
    let body = json!({"query": "ba de", "texts": [long]});
    let refused = service.post("/rerank", &body);
    assert_eq!(refused.status, 413);
    assert!(refused.body.contains("tokens too long; `truncate` cuts it"), "{}", refused.body);
    // It refuses the others too, before any is read.
    let refused = service.post("/rerank", &json!({"query": "ba de", "texts": ["go", long]}));
    assert!(refused.status == 413 && refused.body.contains("text 1 is "), "{refused:?}");
    let cut = service.post("/rerank", &json!({"query": "ba de", "texts": [long], "truncate": true}));
    assert_eq!(cut.status, 200);
    let cohere = service.post("/rerank", &json!({"query": "ba de", "documents": [long]})).json();
    assert!(cohere["results"][0]["cut_tokens"].as_u64().is_some_and(|cut| cut > 400), "{cohere}");

    // vLLM's form: one to many, and many to many.
    let score = |first: Value, second: Value| service.post("/v1/score", &json!({"text_1": first, "text_2": second}));
    let of = |reply: &Value| -> Vec<f64> {
        reply["data"].as_array().unwrap().iter().map(|row| row["score"].as_f64().unwrap()).collect()
    };
    let one_to_many = score(json!("ba de"), json!(texts)).json();
    assert_eq!(one_to_many["object"], "list");
    let expected = |index: u64| all.iter().find(|(found, _)| *found == index).unwrap().1;
    assert_eq!(of(&one_to_many), [0, 1, 2].map(expected));
    let many = score(json!(["ba de", "ba de"]), json!([texts[2], texts[0]])).json();
    assert_eq!(of(&many), [2, 0].map(expected));
    assert_eq!(of(&service.post("/score", &json!({"text_1": "ba de", "text_2": texts[1]})).json()), [expected(1)]);
    let cut = score(json!("ba de"), json!(["go ku", long])).json();
    assert!(cut["data"][0].get("cut_tokens").is_none(), "{cut}");
    assert_eq!(cut["data"][1]["cut_tokens"], cohere["results"][0]["cut_tokens"], "{cut}");
    let uneven = score(json!(["a", "b"]), json!(["a", "b", "c"]));
    assert_eq!(uneven.status, 422);
    assert!(uneven.body.contains("expected as many texts as text_1 has, 2"), "{}", uneven.body);

    // What is no request, and what this model cannot do.
    for (path, body, status, words) in [
        ("/v1/rerank", json!({"query": "q"}), 422, "documents: this field is missing"),
        ("/v1/rerank", json!({"query": "q", "documents": []}), 422, "expected 1 to 1000, found 0"),
        ("/v1/rerank", json!({"query": "q", "documents": [3]}), 422, "documents[0]: expected text"),
        ("/v1/rerank", json!({"query": "q", "documents": ["a"], "top_n": 0}), 422, "a whole number above 0"),
        ("/v1/rerank", json!({"query": "q", "documents": ["a"], "topn": 1}), 422, "unknown field `topn`"),
        ("/v1/rerank", json!({"query": "q", "documents": ["a"], "model": "m"}), 404, "no model"),
        ("/rerank", json!({"query": "q", "texts": ["a"], "truncation_direction": "Left"}), 422, "loses its end"),
        ("/score", json!({"query": "q", "items": ["a"], "label_token_ids": [1]}), 404, "no labels that can be read"),
        (
            "/v1/systemone",
            json!({"state": "s", "questions": {"q": {"type": "noul"}}}),
            404,
            "no labels that can be read",
        ),
    ] {
        let refused = service.post(path, &body);
        assert_eq!(refused.status, status, "{path} {body}: {}", refused.body);
        assert!(refused.body.contains(words), "{path} {body}: {}", refused.body);
    }
    assert_eq!(service.get("/rerank").status, 405);
    assert!(service.metric("judge_requests_total{route=\"/v1/rerank\",status=\"200\"}") >= 1.0);
    assert!(service.metric("judge_questions_total") >= 20.0);
}

/// What clients sent, byte by byte but for the names of the model, and which fields of the answer they read.
#[test]
fn requests_of_clients_are_answered_in_the_form_that_they_read() {
    let service = Service::start(&["--model", &cross_encoder(), "--dtype", "f32", "--name", "m"]);
    let common = r#""query":"ba de","documents":["ba de fi","go ku","ru su"]"#;
    for (client, path, body) in [
        // cohere 5.21.1: `Client` and `ClientV2`; LlamaIndex's CohereRerank 0.10.0 sends the second.
        ("cohere v1", "/v1/rerank", format!(r#"{{"model":"m",{common},"top_n":2,"return_documents":true}}"#)),
        (
            "cohere v1, objects",
            "/v1/rerank",
            r#"{"model":"m","query":"ba de","documents":[{"text":"ba de fi","title":"x"},{"text":"go ku","title":"x"},{"text":"ru su"}],"rank_fields":["text"],"max_chunks_per_doc":10,"top_n":2}"#.to_owned(),
        ),
        ("cohere v2", "/v2/rerank", format!(r#"{{"model":"m",{common},"top_n":2}}"#)),
        ("langchain-cohere 0.6.0", "/v2/rerank", format!(r#"{{"model":"m",{common},"top_n":2,"max_tokens_per_doc":null}}"#)),
        ("cohere-haystack 11.0.0", "/v2/rerank", format!(r#"{{"model":"m",{common},"top_n":2,"max_tokens_per_doc":4096}}"#)),
        ("jina-haystack 2.0.1", "/v1/rerank", format!(r#"{{{common},"model":"m","top_n":2}}"#)),
        // openai 3.57.0 has no method for it: `client.post("/rerank", body=…)`.
        ("openai", "/v1/rerank", format!(r#"{{"model":"m",{common},"top_n":2}}"#)),
    ] {
        let reply = service.send(&Service::request("POST", path, "Authorization: Bearer k\r\n", body.as_bytes()));
        assert_eq!(reply.status, 200, "{client}: {}", reply.body);
        let reply = reply.json();
        assert_eq!(scores(&reply).len(), 2, "{client}: {reply}");
        assert!(reply["id"].is_string() && reply["model"] == "m" && reply["usage"]["total_tokens"].is_u64(), "{client}: {reply}");
        let text = &reply["results"][0]["document"]["text"];
        assert_eq!(text.is_string(), body.contains("return_documents"), "{client}: {reply}");
    }
    // huggingface-api-haystack 3.1.0, HuggingFaceTEIRanker.
    let body = br#"{"query":"ba de","texts":["ba de fi","go ku","ru su"],"raw_scores":false}"#;
    let reply = service.send(&Service::request("POST", "/rerank", "", body)).json();
    assert!(
        reply[0]["index"].is_u64() && reply[0]["score"].is_f64() && reply.as_array().unwrap().len() == 3,
        "{reply}"
    );

    // Documents are cut to what a request says, and their texts come back whole.
    let [long, short] = [500, 4].map(|times| "go ".repeat(times).trim_end().to_owned());
    let ask = |document: &str, more: Value| {
        let mut body = json!({"query": "ba de", "documents": [document], "return_documents": true});
        body.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        service.post("/v2/rerank", &body).json()
    };
    let cut = ask(&long, json!({"max_tokens_per_doc": 4}));
    assert_eq!(scores(&cut), scores(&ask(&short, json!({}))));
    assert_eq!((&cut["results"][0]["document"]["text"], &cut["results"][0]["cut_tokens"]), (&json!(long), &json!(496)));
    for (more, words) in [
        (json!({"rank_fields": ["title"]}), "of an object, its `text` is read"),
        (json!({"max_tokens_per_doc": 0}), "a whole number above 0"),
        (json!({"truncate_prompt_tokens": 9}), "max_tokens_per_doc cuts documents"),
    ] {
        let refused = ask(&short, more);
        assert!(refused["error"]["message"].as_str().is_some_and(|found| found.contains(words)), "{refused}");
    }
}

#[test]
fn a_service_scores_labels_behind_texts_and_by_a_template() {
    let path = &Desk::new();
    let model = characters(path, None);
    template(path);
    let file = path.join("prompt.jinja");
    path.put("key", "secret");
    let key = path.join("key");
    let args = ["--model", &model, "--dtype", "f32", "--key-file", key.to_str().unwrap(), "--rerank-template"];
    let service = Service::start(&[&args[..], &[file.to_str().unwrap(), "--labels", "Yes,No"]].concat());
    let post = |path: &str, body: &Value| {
        let request = Service::request("POST", path, "Authorization: Bearer secret\r\n", body.to_string().as_bytes());
        service.send(&request)
    };
    let texts = ["It is.", "NO!!"];
    for path in ["/rerank", "/score", "/v2/rerank", "/generative_scoring"] {
        assert_eq!(service.post(path, &json!({"query": "Which?", "documents": texts})).status, 401, "{path}");
    }
    let reply = post("/v1/rerank", &json!({"query": "Which?", "documents": texts})).json();
    assert_eq!(scores(&reply).len(), 2);

    // Probabilities of tokens behind query and item: among each other they add up to 1, among all to less.
    let body = |softmax: bool| json!({"query": "Which? ", "items": texts, "label_token_ids": [3, 4], "apply_softmax": softmax});
    let of = |reply: &Value| -> Vec<Vec<f64>> { serde_json::from_value(reply["scores"].clone()).unwrap() };
    let among = of(&post("/v1/score", &body(true)).json());
    let all = of(&post("/v1/score", &body(false)).json());
    assert_eq!((among.len(), all.len()), (2, 2));
    for (among, all) in among.iter().zip(&all) {
        assert!((among.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        let share: f64 = all.iter().sum();
        assert!(share > 0.0 && share < 1.0);
        assert!((all[0] / share - among[0]).abs() < 1e-5);
    }
    // The share of a token is the same whatever else is asked for, and however often.
    for tokens in [&[3][..], &[3, 3], &[3, 5, 4, 3], &[7, 3]] {
        let asked = json!({"query": "Which? ", "items": texts, "label_token_ids": tokens, "apply_softmax": false});
        for (shares, all) in of(&post("/v1/score", &asked).json()).iter().zip(&all) {
            let of_3 = tokens.iter().zip(shares).filter(|(token, _)| **token == 3);
            assert!(of_3.map(|(_, share)| share.to_bits()).all(|share| share == all[0].to_bits()), "{tokens:?}");
        }
    }
    let generative = post("/generative_scoring", &body(true)).json();
    assert_eq!(generative["object"], "list");
    assert_eq!(generative["data"][1]["score"].as_f64(), Some(among[1][0]));
    // A request that does not say whether gets what vLLM gives there, and SGLang elsewhere.
    let unsaid = json!({"query": "Which? ", "items": texts, "label_token_ids": [3, 4]});
    assert_eq!(post("/generative_scoring", &unsaid).json()["data"], generative["data"]);
    assert_eq!(of(&post("/v1/score", &unsaid).json()), all);
    // The item may come first: it is the same text.
    let turned = json!({"query": texts[0], "items": ["Which? "], "label_token_ids": [3, 4], "apply_softmax": true, "item_first": true});
    assert_eq!(of(&post("/score", &turned).json())[0], among[0]);
    let beyond = json!({"query": "a", "items": ["b"], "label_token_ids": [96]});
    let refused = post("/score", &beyond);
    assert_eq!(refused.status, 422);
    assert!(refused.body.contains("numbers of tokens below 96"), "{}", refused.body);

    // Decisions are answered as before, by the same model.
    let decided = post("/v1/systemone", &json!({"state": "s", "questions": {"q": {"type": "noul"}}}));
    assert_eq!(decided.status, 200, "{}", decided.body);

    // A model that does not say how it reranks answers decisions, and says what is missing.
    let plain = Service::start(&["--model", &model]);
    let refused = plain.post("/rerank", &json!({"query": "q", "documents": ["a"]}));
    assert_eq!(refused.status, 404);
    assert!(refused.body.contains("--rerank-template and --labels"), "{}", refused.body);
}

/// Expected values: `scripts/metrics/retrieval_fixtures.py`.
#[test]
fn rankings_are_measured_as_trec_eval_measures_them() {
    let path = &Desk::new();
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../judge-metrics/tests/fixtures/trec.json");
    let fixture = read_json(fixture);
    path.put("qrels.txt", fixture["qrels"].as_str().unwrap());
    for run in 0..2 {
        path.put(format!("{run}.run"), fixture["runs"][run].as_str().unwrap());
    }
    let bench = ["--benchmark", "trec", "--data", "qrels.txt", "--json", "report.json", "--overwrite"];
    let report = |more: &[&str]| {
        let said = succeed("bench", path, &[&bench[..], more].concat());
        (said, path.json("report.json"))
    };
    let (said, found) = report(&["--run", "0.run", "--against", "1.run", "--k", "5"]);
    assert!(said.contains("12 queries with a relevant document") && said.contains("minus the other"), "{said}");
    assert!(found.as_object().unwrap().keys().take(3).eq(["program", "benchmark", "difference"]), "{found}");
    let estimate = |of: &Value, name: &str| of[name]["estimate"].as_f64().unwrap();
    for (name, theirs) in [("ndcg_10", "ndcg_10"), ("mrr", "recip_rank"), ("recall_k", "recall_5"), ("map", "map")] {
        let [one, other] = [0, 1].map(|run| fixture["expected"][run][theirs].as_f64().unwrap());
        assert!((estimate(&found["statistics"], name) - one).abs() < 1e-12, "{name}: {found}");
        assert!((estimate(&found["difference"], name) - (one - other)).abs() < 1e-12, "{name}: {found}");
    }
    assert_eq!(found["difference"]["n"], 12);
    // The difference rests on the queries that both runs rank, and says how many these are.
    path.put("one.run", "q0 Q0 d1 1 2.0 x\n");
    let (said, found) = report(&["--run", "0.run", "--against", "one.run"]);
    assert!(said.contains("minus the other: of 1 query with a ranking in both"), "{said}");
    assert_eq!((&found["n"], &found["difference"]["n"]), (&json!(12), &json!(1)));
    // A bar that is missed is the exit code.
    let bar = ["--run", "1.run", "--require", "ndcg_10>=0.5"];
    ended("bench", path, &[&bench[..], &bar].concat(), 3);
    // Of two queries the interval ends where the figure does, and a query without a ranking is named.
    path.put("few.txt", "q0 0 d1 1\nq1 0 d1 1\nq2 0 d1 1\n");
    let run = "q0 Q0 d1 1 2.0 x\nq1 Q0 d2 1 2.0 x\nq1 Q0 d1 2 1.0 x\nunknown Q0 d1 1 1.0 x\n";
    path.put("few.run", run);
    let few = ["--benchmark", "trec", "--data", "few.txt", "--json", "few.json", "--junit", "few.xml", "--quiet"];
    let (said, stderr) =
        ended("bench", path, &[&few[..], &["--run", "few.run", "--require", "map.high>=1"]].concat(), 3);
    assert!(said.contains("1 query with one has no ranking, and is left out"), "{said}");
    assert!(stderr.contains("note: few.run: 1 query is left out"), "{stderr}");
    let found = &path.json("few.json")["statistics"]["map"];
    assert_eq!((&found["estimate"], &found["low"], &found["high"]), (&json!(0.75), &json!(0.0), &json!(1.0)));
    assert!(path.text("few.xml").contains(">not counted: q2</failure>"));

    // What `judge rerank` wrote of documents with names is a run too.
    let rows: Vec<Value> = (0..2)
        .map(|n| {
            let documents = [json!({"_id": "d1", "text": "ba de"}), json!({"_id": "d0", "text": "go ku"})];
            json!({"id": format!("q{n}"), "query": "ba de", "documents": documents})
        })
        .collect();
    path.write("in.jsonl", &rows);
    let args = ["--input", "in.jsonl", "--output", "ranked.jsonl", "--model", &cross_encoder(), "--dtype", "f32"];
    succeed("rerank", path, &args);
    let (said, found) = report(&["--run", "ranked.jsonl"]);
    assert!(said.contains("10 queries with one have no ranking"), "{said}");
    assert_eq!((&found["n"], &found["unranked"]), (&json!(2), &json!(10)));
    assert!((found["statistics"]["coverage"]["estimate"].as_f64().unwrap() - 2.0 / 12.0).abs() < 1e-12, "{found}");

    for (args, words) in [
        (&["--benchmark", "trec", "--data", "qrels.txt"][..], "expected --run FILE"),
        (&["--benchmark", "llmbar", "--data", "qrels.txt", "--run", "0.run"], "give --benchmark trec"),
        (&["--benchmark", "trec", "--data", "qrels.txt", "--run", "qrels.txt"], "line 1: expected QUERY Q0 DOCUMENT"),
        (&["--benchmark", "trec", "--data", "0.run", "--run", "0.run"], "line 1: expected QUERY ITERATION DOCUMENT"),
        (
            &["--benchmark", "trec", "--data", "qrels.txt", "--run", "0.run", "--verdict", "layers"],
            "cannot be used with",
        ),
    ] {
        refused("bench", path, args, if words.starts_with("line") { 1 } else { 2 }, &[words]);
    }
    // Nothing to measure is no success.
    path.put("empty", "");
    path.put("other.run", "0 Q0 d1 1 2.0 x\n");
    path.put("irrelevant.txt", "0 0 d1 0\n");
    let nothing = |data: &str, more: &[&str], first: [&str; 2]| {
        let [query, ranked] = first;
        let words = format!("the first query with a relevant document is {query}, the first with a ranking {ranked}");
        fails("bench", path, &[&["--benchmark", "trec", "--data", data][..], more].concat(), &["found none", &words]);
    };
    nothing("qrels.txt", &["--run", "other.run"], ["\"q0\"", "\"0\""]);
    nothing("qrels.txt", &["--run", "0.run", "--against", "other.run"], ["\"q0\"", "\"0\""]);
    nothing("qrels.txt", &["--run", "empty"], ["\"q0\"", "none"]);
    nothing("irrelevant.txt", &["--run", "other.run"], ["none", "\"0\""]);
    nothing("empty", &["--run", "other.run"], ["none", "\"0\""]);
    let own = ["--benchmark", "trec", "--data", "qrels.txt", "--verdicts", "0.run"];
    refused("bias", path, &own, 2, &["about rankings of documents"]);
}
