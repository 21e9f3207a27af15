//! The loaders of the public benchmarks, on small files of their forms and on the published ones.

#![allow(clippy::print_stderr)] // what was skipped

use std::cmp::Ordering::{Equal, Greater, Less};
use std::fs;
use std::path::{Path, PathBuf};

use judge_core::{ItemId, prompted::PairConvention};
use judge_data::{Benchmark, BenchmarkPair, Error, PairVerdicts, PairVote};
use serde_json::{Value, json};

fn written(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    path
}

fn pandalm(change: impl FnOnce(&mut Value)) -> String {
    let row = |idx: u64, input: &str| {
        json!({
            "idx": idx, "motivation_app": "m", "cmp_key": "a_b", "instruction": "Say {x}.", "input": input, "response1": true,
            "response2": "two", "annotator1": 0, "annotator2": 1, "annotator3": 1,
        })
    };
    let mut rows = json!([row(7, ""), row(9, "now")]);
    change(&mut rows);
    rows.to_string()
}

fn texts(pair: &BenchmarkPair) -> [String; 3] {
    let texts = pair.texts.clone().unwrap();
    [texts.instruction, texts.response_a, texts.response_b]
}

#[test]
fn pairs_of_ones_own_have_the_majority_of_their_raters() {
    let folder = tempfile::tempdir().unwrap();
    let row = |id: u64, human: Value| {
        json!({"id": id, "question": "q", "response_a": "a", "response_b": "b", "rubric": "r", "human": human})
            .to_string()
    };
    let read = |rows: &[String]| Benchmark::Pairs.read(written(folder.path(), "pairs.jsonl", &rows.join("\n")));
    let pairs =
        read(&[row(4, json!("B")), row(5, json!(null)), row(6, json!(["A", "tie", "A"])), row(7, json!(["A", "B"]))])
            .unwrap();
    let found: Vec<_> = pairs.iter().map(|pair| (pair.id.to_string(), pair.gold)).collect();
    assert_eq!(
        found,
        [("4".into(), Some(Less)), ("5".into(), None), ("6".into(), Some(Greater)), ("7".into(), Some(Equal))]
    );
    assert_eq!(pairs[0].to_record().unwrap().rubric.as_deref(), Some("r"));
    assert!(matches!(read(&[row(5, json!(null))]), Err(Error::NobodyGraded { scored: 1, .. })));
}

#[test]
fn pandalms_rows_are_read_and_refused_by_line() {
    let folder = tempfile::tempdir().unwrap();
    let read = |text: &str| Benchmark::PandaLm.read(written(folder.path(), "testset-v1.json", text));
    let pairs = read(&pandalm(|_| {})).unwrap();
    assert_eq!((&pairs[0].id, pairs[0].gold, &pairs[0].group), (&ItemId::from(7_u64), Some(Greater), &None));
    assert_eq!(texts(&pairs[0])[1], "True");
    assert_eq!(texts(&pairs[1])[0], "Say {x}.\n\nnow");

    let refused = |change: &dyn Fn(&mut Value)| read(&pandalm(change)).unwrap_err().to_string();
    let label = refused(&|rows| rows[1]["annotator2"] = json!(3));
    assert!(
        label.contains("testset-v1.json, line 1: expected \"annotator2\" to be 1, 2 or 0, found number 3"),
        "{label}"
    );
    let split = refused(&|rows| rows[0]["annotator2"] = json!(2));
    assert!(split.contains("annotator3"), "{split}");
    assert!(refused(&|rows| rows[0]["response2"] = json!([])).contains("response2"));
    assert!(refused(&|rows| rows[1]["idx"] = json!(7)).contains("appears twice"));
    assert!(matches!(read("[]"), Err(Error::NoRows { .. })));
    assert!(read("[{\"idx\": 1").is_err());
}

#[test]
fn autojs_scenarios_have_groups() {
    let folder = tempfile::tempdir().unwrap();
    let row = |scenario: &str, label: i64| {
        json!({"scenario": scenario, "label": label, "prompt": "P", "response 1": "one", "response 2": "two"})
            .to_string()
    };
    let read = |rows: &[String]| Benchmark::AutoJ.read(written(folder.path(), "pairs.jsonl", &rows.join("\n")));
    let pairs = read(&[row("roleplay", 0), row("ranking", 1), row("others", 2)]).unwrap();
    let found: Vec<_> =
        pairs.iter().map(|pair| (pair.id.clone(), pair.gold.unwrap(), pair.group.as_deref().unwrap())).collect();
    let id = |row: u64| ItemId::from(row);
    assert_eq!(
        found,
        [(id(0), Greater, "General Communication"), (id(1), Less, "NLP Tasks"), (id(2), Equal, "NLP Tasks")]
    );
    assert!(read(&[row("roleplay", 0), row("karaoke", 1)]).unwrap_err().to_string().contains("line 2"));
    assert!(read(&[row("roleplay", 3)]).unwrap_err().to_string().contains("label"));
}

#[test]
fn mtbenchs_votes_have_turns_and_perhaps_conversations() {
    let folder = tempfile::tempdir().unwrap();
    let read = |rows: &[Value]| {
        let text: Vec<String> = rows.iter().map(Value::to_string).collect();
        Benchmark::MtBench.read(written(folder.path(), "human.jsonl", &text.join("\n")))
    };
    let vote = |turn: u64, winner: &str| json!({"question_id": 81, "model_a": "x", "model_b": "y", "turn": turn, "winner": winner, "judge": "expert_1"});
    let pairs = read(&[vote(1, "model_b"), vote(2, "tie (inconsistent)")]).unwrap();
    assert_eq!((pairs[0].gold, pairs[0].group.as_deref(), &pairs[0].texts), (Some(Less), Some("1"), &None));
    assert_eq!((pairs[1].gold, pairs[1].group.as_deref()), (Some(Equal), Some("2")));
    assert_eq!(pairs[0].to_record(), None);

    let conversation = |name: &str| {
        json!([{"role": "user", "content": "q1"}, {"role": "assistant", "content": format!("{name}1")},
               {"role": "user", "content": "q2"}, {"role": "assistant", "content": format!("{name}2")}])
    };
    let mut rows = [vote(1, "model_a"), vote(2, "tie")];
    for row in &mut rows {
        row["conversation_a"] = conversation("a");
        row["conversation_b"] = conversation("b");
    }
    let pairs = read(&rows).unwrap();
    assert_eq!(texts(&pairs[0]), ["q1", "User: q1\n\nAssistant: a1", "User: q1\n\nAssistant: b1"]);
    let second = texts(&pairs[1]);
    assert_eq!((&*second[0], &*second[2]), ("q2", "User: q1\n\nAssistant: b1\n\nUser: q2\n\nAssistant: b2"));
    assert_eq!(pairs[1].texts.as_ref().unwrap().lengths, [2, 2]);
    rows[1]["conversation_b"].as_array_mut().unwrap().truncate(2);
    assert!(read(&rows).unwrap_err().to_string().contains("line 2: expected \"conversation_b\""));
    rows[1].as_object_mut().unwrap().remove("conversation_b");
    assert!(read(&rows).unwrap_err().to_string().contains("line 2: expected a field \"conversation_b\""));
    assert!(read(&[vote(3, "tie")]).unwrap_err().to_string().contains("turn"));
    assert!(read(&[vote(1, "model_c")]).unwrap_err().to_string().contains("winner"));
}

#[test]
fn llmbars_subsets_are_found_below_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let rows = json!([{"input": "I", "output_1": "a", "output_2": "b", "label": 1}, {"input": "J", "output_1": "a", "output_2": "b", "label": 2}]);
    for subset in ["Natural", "Adversarial/Manual"] {
        written(folder.path(), &format!("{subset}/dataset.json"), &rows.to_string());
    }
    let pairs = Benchmark::LlmBar.read(folder.path()).unwrap();
    let ids: Vec<String> = pairs.iter().map(|pair| pair.id.to_string()).collect();
    assert_eq!(ids, ["\"Manual/0\"", "\"Manual/1\"", "\"Natural/0\"", "\"Natural/1\""]);
    assert_eq!((pairs[3].gold, pairs[3].group.as_deref()), (Some(Less), Some("Natural")));
    let one = Benchmark::LlmBar.read(folder.path().join("Natural/dataset.json")).unwrap();
    assert_eq!((&one[1].id, one[1].group.as_deref()), (&ItemId::from(1_u64), Some("Natural")));
    let tie = json!([{"input": "I", "output_1": "a", "output_2": "b", "label": 0}]).to_string();
    let file = written(folder.path(), "tie.json", &tie);
    assert!(Benchmark::LlmBar.read(file).unwrap_err().to_string().contains("to be 1 or 2"));
    let empty = tempfile::tempdir().unwrap();
    assert!(matches!(Benchmark::LlmBar.read(empty.path()), Err(Error::NoSubset { .. })));
    assert!(
        "llmbars"
            .parse::<Benchmark>()
            .unwrap_err()
            .to_string()
            .contains("pandalm, autoj, mtbench, llmbar, hhh, judgebench, rmbench, pairs")
    );
}

#[test]
fn verdicts_are_matched_by_id_and_refused_by_record() {
    let folder = tempfile::tempdir().unwrap();
    let pairs = Benchmark::PandaLm.read(written(folder.path(), "pairs.json", &pandalm(|_| {}))).unwrap();
    let read = |text: &str| {
        PairVerdicts::read(written(folder.path(), "verdicts.jsonl", text), &pairs, PairConvention::FirstLine)
    };
    let both = read(
        "{\"id\": \"9\", \"given\": 2, \"swapped\": \"2\\nwhy\"}\n{\"id\": 7, \"given\": \"Tie\", \"swapped\": null}",
    )
    .unwrap();
    assert_eq!((both.both_orders, &both.orders[..]), (true, &[[Some(Equal), None], [Some(Less), Some(Greater)]][..]));
    let one = read("{\"id\": 7, \"given\": \"1\"}\n{\"id\": 9, \"given\": \"one\"}").unwrap();
    assert_eq!((one.both_orders, &one.orders[..]), (false, &[[Some(Greater), None], [None, None]][..]));
    let orders = |a: &str, b: &str| {
        format!("[{{\"order\": \"given\", \"verdict\": {a}}}, {{\"order\": \"swapped\", \"verdict\": {b}}}]")
    };
    let rows = |first: &str| {
        format!("{{\"id\": 7, \"orders\": {first}}}\n{{\"id\": 9, \"orders\": {}}}", orders("null", "\"B\""))
    };
    let own = read(&rows(&orders("\"A\"", "\"tie\""))).unwrap();
    assert_eq!((own.both_orders, &own.orders[..]), (true, &[[Some(Greater), Some(Equal)], [None, Some(Less)]][..]));
    let given =
        read("{\"id\": 7, \"orders\": []}\n{\"id\": 9, \"orders\": [{\"order\": \"given\", \"verdict\": \"B\"}]}")
            .unwrap();
    assert_eq!((given.both_orders, &given.orders[..]), (false, &[[None, None], [Some(Less), None]][..]));
    for wrong in ["{\"verdict\": \"A\"}", "{\"order\": \"swapped\", \"verdict\": \"A\"}"] {
        assert!(read(&rows(&format!("[{wrong}]"))).unwrap_err().to_string().contains("line 1: expected \"orders\""));
    }
    assert!(
        read(&rows("[{\"order\": \"given\", \"verdict\": \"A\"}]"))
            .unwrap_err()
            .to_string()
            .contains("as many as on the rows before")
    );
    assert!(read(&rows(&orders("\"C\"", "null"))).unwrap_err().to_string().contains("line 1: expected \"orders\""));
    assert_eq!(pairs[0].to_record().unwrap().human(), Some(1.0));
    for (text, expected) in [
        ("{\"id\": 7, \"given\": \"1\"}", "1 of 2 pairs have no verdict, the first is 9"),
        ("{\"id\": 8, \"given\": \"1\"}", "line 1: no pair has the id 8; the benchmark has 2 pairs, the first is 7"),
        ("{\"id\": 7, \"given\": \"1\"}\n{\"id\": \"7\", \"given\": \"1\"}", "line 2: the id \"7\" appears twice"),
        ("{\"id\": 7, \"swapped\": \"1\"}", "expected a field \"given\""),
        (
            "{\"id\": 7, \"given\": \"1\", \"swapped\": \"2\"}\n{\"id\": 9, \"given\": \"1\"}",
            "line 2: expected a field \"swapped\"",
        ),
        (
            "{\"id\": 7, \"given\": \"1\"}\n{\"id\": 9, \"given\": \"1\", \"swapped\": \"2\"}",
            "line 2: expected \"swapped\" to be absent",
        ),
        ("{\"id\": 7, \"given\": [1]}", "expected \"given\" to be a string, a number or null"),
        ("{\"id\": 7, \"given\": \"1\"", "line 1"),
        ("", "2 of 2 pairs"),
    ] {
        let error = read(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

/// Counts of the published files.
#[test]
fn the_published_files_are_read_whole() {
    let Some(data) = std::env::var_os("JUDGE_TEST_DATA").map(PathBuf::from) else {
        eprintln!("skipped: JUDGE_TEST_DATA is not set");
        return;
    };
    let counts = |benchmark: Benchmark, path: &str| {
        let pairs = benchmark.read(data.join(path)).unwrap();
        let of = |gold| pairs.iter().filter(|pair| pair.gold == Some(gold)).count();
        (pairs.len(), of(Greater), of(Less), of(Equal))
    };
    assert_eq!(counts(Benchmark::PandaLm, "pandalm/testset-v1.json"), (999, 422, 472, 105));
    assert_eq!(counts(Benchmark::LlmBar, "llmbar/LLMBar/Natural/dataset.json").0, 100);
    assert_eq!(counts(Benchmark::LlmBar, "llmbar/LLMBar").0, 100 + 134 + 92);
    assert_eq!(counts(Benchmark::MtBench, "mtbench/human.jsonl").0, 3_355);
    assert_eq!(counts(Benchmark::MtBench, "mtbench/gpt4_pair.jsonl").0, 2_400);
    assert_eq!(counts(Benchmark::JudgeBench, "judgebench/gpt-4o-2024-05-13.jsonl"), (350, 193, 157, 0));
    assert_eq!(counts(Benchmark::JudgeBench, "judgebench/claude-3-5-sonnet-20240620.jsonl"), (270, 143, 127, 0));
    assert_eq!(counts(Benchmark::RmBench, "rmbench/chat_filtered.json").0, 9 * 129);
}

#[test]
fn published_figures_are_shares_of_statistics_that_are_computed() {
    for benchmark in Benchmark::ALL {
        for row in benchmark.published() {
            for (name, value) in row.statistics {
                assert!((0.0..=1.0).contains(value), "{benchmark}, {}: {name} {value}", row.judge);
                assert!(
                    name.starts_with("accuracy")
                        || name.ends_with("_macro")
                        || ["pair_agreement", "consistency"].contains(name),
                    "{name}"
                );
            }
            assert_eq!(row.group.is_some(), benchmark == Benchmark::LlmBar);
        }
    }
    for row in PairVote::published_agreement() {
        assert!(["1", "2"].map(Some).contains(&row.group));
        for (name, value) in row.statistics {
            assert!(name.starts_with("agreement_s1:") || name.starts_with("agreement_s2:"), "{name}");
            assert!((0.0..=1.0).contains(value), "{name} {value}");
        }
    }
}

#[test]
fn judgebench_has_pairs_and_verdicts_in_one_form() {
    let folder = tempfile::tempdir().unwrap();
    let row = |id: &str, source: &str, label: &str, decisions: Value| {
        json!({"pair_id": id, "original_id": 1, "source": source, "question": "q", "response_model": "m", "response_A": "a",
               "response_B": "b", "label": label, "judge_name": "j", "judgments": decisions})
    };
    let two = |given: Value, swapped: Value| json!([{"judgment": {}, "decision": given}, {"judgment": {}, "decision": swapped}]);
    let rows = [
        row("x", "mmlu-pro-law", "A>B", two(json!("A>B"), json!("B>A"))),
        row("y", "livebench-math", "B>A", two(json!("A=B"), json!(null))),
        row("z", "mmlu-pro-math", "B>A", two(json!(""), json!("B>A"))),
    ];
    let text: String = rows.iter().map(|row| format!("{row}\n")).collect();
    let path = written(folder.path(), "verdicts.jsonl", &text);
    let pairs = Benchmark::JudgeBench.read(&path).unwrap();
    let found: Vec<_> = pairs.iter().map(|pair| (pair.group.as_deref().unwrap(), pair.gold.unwrap())).collect();
    assert_eq!(found, [("mmlu-pro", Greater), ("livebench-math", Less), ("mmlu-pro", Less)]);
    assert_eq!(texts(&pairs[0]), ["q", "a", "b"]);
    let verdicts = PairVerdicts::read(&path, &pairs, PairConvention::Arrows).unwrap();
    assert!(verdicts.both_orders);
    assert_eq!(verdicts.orders, [[Some(Greater), Some(Greater)], [Some(Equal), None], [None, Some(Greater)]]);
    for (change, said) in [
        (row("x", "s", "A=B", two(json!(null), json!(null))), "label"),
        (row("x", "s", "A>B", json!([{"decision": "A>B"}])), "judgments"),
        (row("x", "s", "A>B", two(json!("A"), json!(null))), "judgments"),
    ] {
        let path = written(folder.path(), "wrong.jsonl", &format!("{change}\n"));
        let read = Benchmark::JudgeBench
            .read(&path)
            .and_then(|pairs| PairVerdicts::read(&path, &pairs, PairConvention::Arrows));
        assert!(read.unwrap_err().to_string().contains(said), "{change}");
    }
}

#[test]
fn rmbench_has_nine_pairs_of_each_row() {
    let folder = tempfile::tempdir().unwrap();
    let rows = json!([
        {"id": "1", "prompt": "p", "chosen": ["c0", "c1", "c2"], "rejected": ["r0", "r1", "r2"], "domain": "safety-refuse"},
        {"id": 2, "prompt": "q", "chosen": ["c0", "c1", "c2"], "rejected": ["r0", "r1", "r2"]},
    ]);
    let pairs = Benchmark::RmBench.read(written(folder.path(), "total.json", &rows.to_string())).unwrap();
    assert_eq!(pairs.len(), 18);
    for pair in &pairs {
        let [prompt, a, b] = texts(pair);
        let (better, worse) = if pair.gold == Some(Greater) { (a, b) } else { (b, a) };
        let [i, j] = [better.strip_prefix('c').unwrap(), worse.strip_prefix('r').unwrap()];
        let style = if i > j {
            "easy"
        } else if i < j {
            "hard"
        } else {
            "normal"
        };
        let (id, group) = if prompt == "p" { ("1", format!("safety/{style}")) } else { ("2", style.to_owned()) };
        assert_eq!((&pair.id, pair.group.as_ref()), (&ItemId::from(format!("{id}/{i}-{j}")), Some(&group)));
    }
    assert!(pairs.iter().any(|pair| pair.gold == Some(Greater)) && pairs.iter().any(|pair| pair.gold == Some(Less)));
    let wrong = json!([{"id": 1, "prompt": "p", "chosen": ["a", "b"], "rejected": ["a", "b", "c"]}]);
    let error = Benchmark::RmBench.read(written(folder.path(), "wrong.json", &wrong.to_string())).unwrap_err();
    assert!(error.to_string().contains("three texts"), "{error}");
}
