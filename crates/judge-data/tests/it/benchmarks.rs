//! The loaders of the public benchmarks, on small files of their forms and on the published ones.

use std::cmp::Ordering::{Equal, Greater, Less};
use std::path::Path;

use judge_core::{ItemId, prompted::PairConvention};
use judge_data::{Benchmark, BenchmarkPair, Error, PairVerdicts, PairVote};
use serde_json::{Value, json};

use crate::files::{lines, test_data, written};

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
        json!({"id": id, "question": "q", "response_a": "a", "response_b": "b",
               "rubric": "r", "human": human})
    };
    let read = |rows: &[Value]| Benchmark::Pairs.read(written(folder.path(), "pairs.jsonl", &lines(rows)));
    let people =
        [json!("B"), json!(null), json!(["A", "tie", "A"]), json!(["A", "B"]), json!(["tie", null, "tie", "B"])];
    let pairs = read(&(4..).zip(people).map(|(id, human)| row(id, human)).collect::<Vec<_>>()).unwrap();
    // Raters who are split have not said that both are equal.
    assert_eq!(
        pairs.iter().map(|pair| pair.gold).collect::<Vec<_>>(),
        [Some(Less), None, Some(Greater), None, Some(Equal)]
    );
    assert_eq!(pairs[0].to_record().unwrap().rubric.as_deref(), Some("r"));
    // A label that cannot be read is none, and the pair says so.
    let odd = read(&[row(4, json!("B")), row(5, json!("left")), row(6, json!(["A", 7]))]).unwrap();
    let why: Vec<bool> =
        odd.iter().map(|pair| pair.no_grade.as_ref().is_some_and(|why| why.contains("\"tie\""))).collect();
    assert_eq!((odd[1].gold, odd[2].gold, why), (None, Some(Greater), vec![false, true, true]));
    assert!(matches!(read(&[row(5, json!(null))]), Err(Error::NobodyGraded { scored: 1, why: None, .. })));
    // Where none has a label, what stands in its place is said.
    let refused =
        |human: [Value; 2]| read(&[row(5, human[0].clone()), row(6, human[1].clone())]).unwrap_err().to_string();
    let odd = refused([json!(-3), json!(2)]);
    assert!(odd.contains("none of the 2 pairs has a human score") && odd.contains("found number -3"), "{odd}");
    let split = refused([json!(["A", "B"]), json!(null)]);
    assert!(split.contains("the first is 5: no verdict has more than half of its raters"), "{split}");
}

#[test]
fn pandalms_rows_are_read_and_refused_by_line() {
    let folder = tempfile::tempdir().unwrap();
    let read = |text: &str| Benchmark::PandaLm.read(written(folder.path(), "testset-v1.json", text));
    let pairs = read(&pandalm(|_| {})).unwrap();
    assert_eq!((&pairs[0].id, pairs[0].gold, pairs[0].groups.len()), (&ItemId::from(7_u64), Some(Greater), 0));
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
        json!({"scenario": scenario, "label": label, "prompt": "P",
               "response 1": "one", "response 2": "two"})
    };
    let read = |rows: &[Value]| Benchmark::AutoJ.read(written(folder.path(), "pairs.jsonl", &lines(rows)));
    let pairs = read(&[row("roleplay", 0), row("ranking", 1), row("others", 2)]).unwrap();
    let found: Vec<_> =
        pairs.iter().map(|pair| (pair.id.clone(), pair.gold.unwrap(), pair.groups[0].as_str())).collect();
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
    let read = |rows: &[Value]| Benchmark::MtBench.read(written(folder.path(), "human.jsonl", &lines(rows)));
    let vote = |turn: u64, winner: &str| json!({"question_id": 81, "model_a": "x", "model_b": "y", "turn": turn, "winner": winner, "judge": "expert_1"});
    let pairs = read(&[vote(1, "model_b"), vote(2, "tie (inconsistent)")]).unwrap();
    assert_eq!((pairs[0].gold, &pairs[0].groups[..], &pairs[0].texts), (Some(Less), &["1".to_owned()][..], &None));
    assert_eq!((pairs[1].gold, pairs[1].groups[0].as_str()), (Some(Equal), "2"));
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
    assert_eq!((pairs[3].gold, pairs[3].groups[0].as_str()), (Some(Less), "Natural"));
    let one = Benchmark::LlmBar.read(folder.path().join("Natural/dataset.json")).unwrap();
    assert_eq!((&one[1].id, one[1].groups[0].as_str()), (&ItemId::from(1_u64), "Natural"));
    let tie = json!([{"input": "I", "output_1": "a", "output_2": "b", "label": 0}]).to_string();
    let file = written(folder.path(), "tie.json", &tie);
    assert!(Benchmark::LlmBar.read(file).unwrap_err().to_string().contains("to be 1 or 2"));
    let empty = tempfile::tempdir().unwrap();
    assert!(Benchmark::LlmBar.read(empty.path()).unwrap_err().to_string().contains("files called"));
    assert!(
        "llmbars"
            .parse::<Benchmark>()
            .unwrap_err()
            .to_string()
            .contains("pandalm, autoj, mtbench, llmbar, hhh, judgebench, rmbench, rubricbench, helpsteer3, ppe, pairs")
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
    assert_eq!((both.texts, both.unparsed), (4, 0), "a null is no text without the form");
    let one = read("{\"id\": 7, \"given\": \"1\"}\n{\"id\": 9, \"given\": \"one\"}").unwrap();
    assert_eq!((one.both_orders, &one.orders[..]), (false, &[[Some(Greater), None], [None, None]][..]));
    assert_eq!((one.texts, one.unparsed), (2, 1));
    let orders = |a: &str, b: &str| {
        format!("[{{\"order\": \"given\", \"verdict\": {a}}}, {{\"order\": \"swapped\", \"verdict\": {b}}}]")
    };
    let rows = |first: &str| {
        format!("{{\"id\": 7, \"orders\": {first}}}\n{{\"id\": 9, \"orders\": {}}}", orders("null", "\"B\""))
    };
    let own = read(&rows(&orders("\"A\"", "\"tie\""))).unwrap();
    assert_eq!((own.both_orders, &own.orders[..]), (true, &[[Some(Greater), Some(Equal)], [None, Some(Less)]][..]));
    assert_eq!((own.texts, own.unparsed), (0, 0), "no convention applies");
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
    // A number and its text name the same pair, but where there is one of each.
    let mut twins = pairs.clone();
    twins[1].id = "7".into();
    let text = "{\"id\": \"7\", \"given\": \"2\"}\n{\"id\": 7, \"given\": \"1\"}";
    let path = written(folder.path(), "verdicts.jsonl", text);
    let found = PairVerdicts::read(path, &twins, PairConvention::FirstLine).unwrap();
    assert_eq!(found.orders, [[Some(Greater), None], [Some(Less), None]]);
    for (text, expected) in [
        ("{\"id\": 7, \"given\": \"1\"}", "1 of 2 pairs have no verdict, the first is 9"),
        ("{\"id\": 8, \"given\": \"1\"}", "line 1: no pair has the id 8; the benchmark has 2 pairs, the first is 7"),
        (
            "{\"id\": 7, \"given\": \"1\"}\n{\"id\": \"7\", \"given\": \"1\"}",
            "line 2: the pair 7 has a verdict on line 1",
        ),
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
    let Some(data) = test_data() else { return };
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
    let path = written(folder.path(), "verdicts.jsonl", &lines(&rows));
    let pairs = Benchmark::JudgeBench.read(&path).unwrap();
    let found: Vec<_> = pairs.iter().map(|pair| (pair.groups[0].as_str(), pair.gold.unwrap())).collect();
    assert_eq!(found, [("mmlu-pro", Greater), ("livebench-math", Less), ("mmlu-pro", Less)]);
    assert_eq!(texts(&pairs[0]), ["q", "a", "b"]);
    let verdicts = PairVerdicts::read(&path, &pairs, PairConvention::Arrows).unwrap();
    assert!(verdicts.both_orders);
    assert_eq!(verdicts.orders, [[Some(Greater), Some(Greater)], [Some(Equal), None], [None, Some(Greater)]]);
    // Its program may judge one order alone, and keeps decisions of other forms, which its metrics count as neither right nor wrong.
    let one = |id: &str, given: &str| row(id, "s", "A>B", json!([{"decision": given}]));
    let path = written(folder.path(), "one.jsonl", &lines(&[one("x", "A>B"), one("y", "A<B")]));
    let pairs = Benchmark::JudgeBench.read(&path).unwrap();
    let verdicts = PairVerdicts::read(&path, &pairs, PairConvention::Arrows).unwrap();
    assert_eq!((verdicts.both_orders, verdicts.orders), (false, vec![[Some(Greater), None], [None, None]]));
    let (first, why) = verdicts.decisions.first().unwrap();
    assert!(verdicts.decisions.count() == 1 && first.contains('y') && why.contains("\"A<B\""), "{first}: {why}");
    for (change, said) in [
        (vec![row("x", "s", "A=B", two(json!(null), json!(null)))], "label"),
        (vec![row("x", "s", "A>B", json!([]))], "judgments"),
        (vec![one("x", "A>B"), row("y", "s", "A>B", two(json!("A>B"), json!(null)))], "judgments"),
    ] {
        let path = written(folder.path(), "wrong.jsonl", &lines(&change));
        let read = Benchmark::JudgeBench
            .read(&path)
            .and_then(|pairs| PairVerdicts::read(&path, &pairs, PairConvention::Arrows));
        assert!(read.unwrap_err().to_string().contains(said), "{change:?}");
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
        assert_eq!((&pair.id, &pair.groups), (&ItemId::from(format!("{id}/{i}-{j}")), &vec![group]));
    }
    assert!(pairs.iter().any(|pair| pair.gold == Some(Greater)) && pairs.iter().any(|pair| pair.gold == Some(Less)));
    let wrong = json!([{"id": 1, "prompt": "p", "chosen": ["a", "b"], "rejected": ["a", "b", "c"]}]);
    let error = Benchmark::RmBench.read(written(folder.path(), "wrong.json", &wrong.to_string())).unwrap_err();
    assert!(error.to_string().contains("three texts"), "{error}");
}

/// Rows one by one, each with a change that makes it wrong and the field that the error names.
fn refused(benchmark: Benchmark, folder: &Path, row: &Value, changes: &[(&str, Value)]) {
    for (field, value) in changes {
        let mut wrong = row.clone();
        wrong[*field] = value.clone();
        let error = benchmark.read(written(folder, "wrong.jsonl", &wrong.to_string())).unwrap_err();
        assert!(error.to_string().contains(field), "{wrong}: {error}");
    }
}

#[test]
fn rubricbench_has_groups_of_domains_and_questions_as_a_rubric() {
    let folder = tempfile::tempdir().unwrap();
    let row = |id: &str, domain: &str, label: u8| {
        json!({"case_id": id, "instruction": "i", "response_a": "a", "response_b": "b", "label": label, "domain": domain,
               "rubrics": "Is it short?\nIs it true?", "source": "s"})
    };
    let rows = json!([row("x_1", "IFEval", 0), row("x_2", "Human-Preference", 1), row("x_3", "letters", 1)]);
    let pairs =
        Benchmark::RubricBench.read(written(folder.path(), "rubricbench_data.json", &rows.to_string())).unwrap();
    let found: Vec<_> =
        pairs.iter().map(|pair| (pair.id.clone(), pair.gold.unwrap(), pair.groups[0].as_str())).collect();
    assert_eq!(found, [("x_1".into(), Greater, "if"), ("x_2".into(), Less, "chat"), ("x_3".into(), Less, "letters")]);
    assert_eq!(pairs[0].rubric.as_deref(), Some("Is it short?\nIs it true?"));
    let changes = [
        ("label", json!(2)),
        ("domain", json!(null)),
        ("rubrics", json!(["q"])),
        ("rubrics", json!(null)),
        ("case_id", json!([])),
    ];
    refused(Benchmark::RubricBench, folder.path(), &row("x", "code", 0), &changes);
}

#[test]
fn helpsteer3_has_a_sign_and_conversations() {
    let folder = tempfile::tempdir().unwrap();
    let user = |content: &str| json!({"role": "user", "content": content});
    let row = |preference: i64, context: Value| {
        json!({"domain": "code", "language": "python", "context": context, "response1": "one", "response2": "two",
               "overall_preference": preference, "individual_preference": [{"score": preference, "reasoning": "r", "feedback1": "f"}]})
    };
    let turns = json!([user("hi"), {"role": "assistant", "content": "hello"}, user("sort it")]);
    let rows = [row(-2, json!([user("sort it")])), row(0, json!([user("sort it")])), row(1, turns)];
    let pairs = Benchmark::HelpSteer3.read(written(folder.path(), "validation.jsonl", &lines(&rows))).unwrap();
    let gold: Vec<_> = pairs.iter().map(|pair| pair.gold).collect();
    assert_eq!(gold, [Some(Greater), None, Some(Less)]);
    assert_eq!(texts(&pairs[0]), ["sort it", "one", "two"]);
    assert_eq!(texts(&pairs[2])[0], "User: hi\n\nAssistant: hello\n\nUser: sort it");
    assert_eq!((pairs[2].groups[0].as_str(), &pairs[2].id), ("code", &ItemId::from(2_u64)));
    let changes = [
        ("overall_preference", json!(4)),
        ("overall_preference", json!(null)),
        ("context", json!(null)),
        ("context", json!([])),
        ("context", json!([user("a"), {"role": "assistant", "content": "b"}])),
        ("context", json!([{"role": "user", "content": null}])),
        ("response2", json!(null)),
        ("domain", json!(1)),
    ];
    refused(Benchmark::HelpSteer3, folder.path(), &rows[0], &changes);
}

#[test]
fn ppe_has_votes_and_pairs_of_right_and_wrong_answers() {
    let folder = tempfile::tempdir().unwrap();
    let vote = |id: &str, winner: &str| {
        json!({"question_id": id, "model_a": "x", "model_b": "y", "winner": winner, "prompt": "p", "response_1": "one",
               "response_2": "two", "language": "Russian", "is_code": true, "hard_prompt": true, "math_prompt": false})
    };
    let rows = [vote("a", "model_a"), vote("b", "model_b"), vote("c", "tie (bothbad)")];
    let pairs = Benchmark::Ppe.read(written(folder.path(), "votes.jsonl", &lines(&rows))).unwrap();
    let found: Vec<_> = pairs.iter().map(|pair| (pair.id.clone(), pair.gold)).collect();
    assert_eq!(found, [("a".into(), Some(Greater)), ("b".into(), Some(Less)), ("c".into(), None)]);
    assert_eq!(pairs[0].groups, ["hard_prompt", "is_code", "other_languages"]);
    assert_eq!(pairs[0].models, Some(["x".to_owned(), "y".to_owned()]));
    refused(
        Benchmark::Ppe,
        folder.path(),
        &rows[0],
        &[("winner", json!("both")), ("is_code", json!("yes")), ("prompt", json!(null))],
    );

    // A tie needs no verdict, and may have one; a pair that was decided needs it.
    let (decided, ties) = pairs.split_at(2);
    let said = |ids: &[&str], others: &[BenchmarkPair]| {
        let rows: Vec<Value> = ids.iter().map(|id| json!({"id": id, "given": "[[A]]"})).collect();
        let path = written(folder.path(), "verdicts.jsonl", &lines(&rows));
        PairVerdicts::read_beside(path, decided, others, PairConvention::Letters)
    };
    for ids in [&["b", "a"][..], &["b", "c", "a"]] {
        assert_eq!(said(ids, ties).unwrap().orders, [[Some(Greater), None], [Some(Greater), None]]);
    }
    let unknown = said(&["b", "c", "a"], &[]).err().map(|error| error.to_string());
    assert!(unknown.as_ref().is_some_and(|error| error.contains("no pair has the id \"c\"")), "{unknown:?}");
    assert!(matches!(said(&["a", "c"], ties), Err(Error::NoVerdict { missing: 1, .. })));

    let answers = json!({"question_id": 7, "prompt": "p", "scores": [true, false, true], "mean_score": 0.67, "response_1": "r1",
                         "response_2": "w2", "response_3": "r3", "sampled_conflict_pairs": [[1, 2], [0, 1]]});
    let pairs = Benchmark::Ppe.read(written(folder.path(), "answers.jsonl", &answers.to_string())).unwrap();
    let found: Vec<_> = pairs.iter().map(|pair| (pair.id.clone(), texts(pair), pair.gold.unwrap())).collect();
    let three = |a: &str, b: &str| ["p", a, b].map(str::to_owned);
    assert_eq!(found, [("7+0".into(), three("w2", "r3"), Less), ("7+1".into(), three("r1", "w2"), Greater)]);
    let changes = [
        ("sampled_conflict_pairs", json!([])),
        ("sampled_conflict_pairs", json!(null)),
        ("sampled_conflict_pairs", json!([[0, 2]])),
        ("sampled_conflict_pairs", json!([[1, 3]])),
        ("sampled_conflict_pairs", json!([[1, -1]])),
        ("sampled_conflict_pairs", json!([[0, 1, 2]])),
        ("scores", json!([1.0, 0.0, 1.0])),
    ];
    refused(Benchmark::Ppe, folder.path(), &answers, &changes);
    let mut wrong = answers.clone();
    wrong["response_3"] = json!(null);
    let error = Benchmark::Ppe.read(written(folder.path(), "wrong.jsonl", &wrong.to_string())).unwrap_err();
    assert!(error.to_string().contains("sampled_conflict_pairs"), "{error}");
}
