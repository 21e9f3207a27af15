//! `--require` of `judge agree` and `judge bench`: exit 0, or 3 with a line for each bar that is missed.

use serde_json::{Value, json};

use crate::program::{Desk, finished, ran, refused, words};

#[test]
fn a_missed_bar_is_exit_code_3() {
    let path = &Desk::new();
    let row = |n: usize| json!({"id": n, "score": n % 5, "human": if n.is_multiple_of(7) { 4 - n % 5 } else { n % 5 }});
    path.write("in.jsonl", &(0..60).map(row).collect::<Vec<Value>>());
    let agree = |more: &[&str]| ran("agree", path, &[&["--input", "in.jsonl", "--quiet"], more].concat());
    let (code, said, _) = agree(&["--require", "spearman>=0.5", "--require", "mae<=2", "--statistics", "bias"]);
    assert!(code == Some(0) && said.contains("reached: spearman>=0.5") && said.contains("reached: mae<=2"), "{said}");
    let missed = ["--require", "spearman.low>=0.99", "--require", "mae<=2", "--junit", "bars.xml", "--json", "a.json"];
    let (code, said, told) = agree(&missed);
    assert!(code == Some(3) && said.contains("MISSED:  spearman.low>=0.99: found 0."), "{said}");
    assert!(told.contains("1 of 3 bars are missed\n  spearman.low>=0.99: found 0."), "{told}");
    let (_, said, told) = agree(&[&missed[..], &["--tables", "csv"]].concat());
    assert!(!said.contains("MISSED") && told.matches("spearman.low>=0.99").count() == 1, "{said}{told}");
    let xml = path.text("bars.xml");
    assert!(xml.contains("tests=\"3\" failures=\"1\"") && path.join("a.json").exists(), "{xml}");
    assert_eq!(agree(&missed).0, Some(3), "the second time too");
    // What is undefined is missed.
    assert_eq!(agree(&["--require", "auroc>=0"]).0, Some(3));
    assert_eq!(agree(&["--junit", "bars.xml"]).0, Some(2));

    let pair = |n: usize| json!({"id": n, "instruction": "?", "response_a": "a", "response_b": "b", "human": "A"});
    path.write("pairs.jsonl", &(0..9).map(pair).collect::<Vec<Value>>());
    path.write(
        "said.jsonl",
        &(0..9).map(|n| json!({"id": n, "given": if n < 6 { "[[A]]" } else { "[[B]]" }})).collect::<Vec<_>>(),
    );
    let bench = |bar: &str| {
        let args = ["--benchmark", "pairs", "--data", "pairs.jsonl", "--verdicts", "said.jsonl", "--require", bar];
        ran("bench", path, &args).0
    };
    let votes = ["--benchmark", "mtbench", "--data", "in.jsonl", "--votes", "in.jsonl", "--require", "accuracy>=0"];
    assert_eq!(ran("bench", path, &votes).0, Some(2), "votes have no such statistics");
    let compare = |bar: &str| {
        let args =
            ["--input", "pairs.jsonl", "--verdict", "logits", "--apart", "--output", "v.jsonl", "--require", bar];
        ran("compare", path, &args).0
    };
    // The second time the rows are there.
    assert_eq!((compare("mean_preference<=1"), compare("mean_preference.low>=1")), (Some(0), Some(3)));
    assert_eq!((bench("accuracy>=0.6"), bench("accuracy>=0.7")), (Some(0), Some(3)));
}

/// Two versions' files are joined by id: A is the new one, what cannot be joined is said, and rows that got worse are named.
#[test]
fn versions_are_joined_by_their_ids() {
    let path = &Desk::new();
    let right = |n: usize| format!("There are {n} and 2. {n} + 2 = {}. There are {} hats.", n + 2, n + 2);
    let wrong = |n: usize| format!("numbers The are {n} 9. It is {}.", n + 5);
    let row = |n: usize, text: String| json!({"id": n, "instruction": format!("Ana has {n} hats and gets 2 more. How many hats does Ana have?"), "response": text, "rubric": "Is this a good answer? Use the numbers 1 to 5, where 5 is very good."});
    // Rows 0 to 5 got better, 6 and 7 worse; 8 is old alone, 9 new alone, 10 has another prompt.
    let mut old: Vec<Value> = (0..9).map(|n| row(n, if n < 6 { wrong(n) } else { right(n) })).collect();
    let mut new: Vec<Value> = (0..8).rev().map(|n| row(n, if n < 6 { right(n) } else { wrong(n) })).collect();
    new.push(row(9, right(9)));
    old.push(row(10, right(10)));
    new.push(json!({"id": 10, "instruction": "Another question?", "response": right(10)}));
    new[0]["team"] = json!("blue");
    // Columns of one response, which a pair's row would be read by, and a rubric that the old file alone has.
    new[0]["answer"] = json!("12");
    new[1]["human"] = json!(4);
    new[1]["score"] = json!(3.7);
    new[2].as_object_mut().unwrap().remove("rubric");
    path.write("old.jsonl", &old);
    // A whole number of more than 64 bits, and a fraction that no float writes so.
    new[0]["number"] = json!("NUMBERS");
    path.write("new.jsonl", &new);
    let numbers = "[12345678901234567890123,1.10]";
    let text = path.text("new.jsonl").replace("\"NUMBERS\"", numbers);
    path.put("new.jsonl", text);
    let args = words("--old old.jsonl --new new.jsonl --apart --verdict logits --output v.jsonl --json t.json");
    let (said, told) =
        finished("compare", path, &[&args[..], &["--require", "win_rate>=0.6", "--min-coverage", "0.7"]].concat());
    assert!(
        told.contains("left out: 1 row in new.jsonl alone, 1 row in old.jsonl alone")
            && told.contains("another prompt"),
        "{told}"
    );
    assert!(said.contains("A, the new version") && said.contains("worse than before: 7, 6"), "{said}");
    let tally = path.json("t.json");
    assert_eq!((&tally["worse"], &tally["verdicts"]["A"]), (&json!([7, 6]), &json!(6)));
    let found = path.rows("v.jsonl");
    assert_eq!((found.len(), &found[0]["id"], &found[0]["team"]), (8, &json!(7), &json!("blue")));
    assert!(found.iter().all(|row| row["verdict"].is_string()) && found[1].get("score").is_none(), "{found:?}");
    assert!(path.text("v.jsonl").contains(numbers), "other fields are kept as they are");
    // Finished, it is reported again; a worse version misses its bar.
    let (code, said, told) = ran("compare", path, &[&args[..], &["--require", "win_rate.low>=0.9"]].concat());
    assert!(code == Some(3) && said.contains("MISSED:  win_rate.low"), "{said}{told}");
    let line = [&args[..4], &["--output", "w.jsonl", "--task", "single"]].concat();
    refused("compare", path, &line, 2, &["--old makes pairs"]);
    refused("compare", path, &[&args[..4], &["--output", "w.jsonl", "--part", "0..4"]].concat(), 2, &["--part"]);
    path.write("other.jsonl", &[row(77, right(7))]);
    let own = ["--old", "old.jsonl", "--new", "other.jsonl", "--output", "w.jsonl"];
    refused("compare", path, &own, 1, &["have no row in common"]);
    let twice = words("--old - --new - --output w.jsonl");
    refused("compare", path, &twice, 2, &["standard input can be read once"]);
    // The response of two versions is two fields.
    let cut = [&args[..5], &["--output", "w.jsonl", "--cut", "response=3"]].concat();
    refused("compare", path, &cut, 1, &["field response_a", "response_b", "that is to be cut"]);
}
