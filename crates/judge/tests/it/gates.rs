//! Gates: they fail where rows are lost or the judge cannot tell, pass where nothing is wrong, and leave a JUnit file whatever happens.

use std::fs;

use serde_json::{Value, json};

use crate::program::{Desk, embedded_model, ended, finished, ran, refused, succeed};

/// Scores of 60 rows, of which the first are not scored.
fn scores(lost: usize) -> Vec<Value> {
    let row = |n: usize| match n < lost {
        true => json!({"id": n, "unscored": {"reason": "too_long", "detail": "long"}, "human": n % 7}),
        false => json!({"id": n, "score": (n % 7) as f64 + 0.25, "human": n % 7}),
    };
    (0..60).map(row).collect()
}

#[test]
fn a_statistic_that_there_is_not_fails_before_a_row_is_judged() {
    let path = &Desk::new();
    let pair = |n: usize| json!({"id": n, "instruction": "?", "response_a": "a", "response_b": "b"});
    path.write("pairs.jsonl", &(0..3).map(pair).collect::<Vec<_>>());
    let args = ["--input", "pairs.jsonl", "--output", "v.jsonl", "--verdict", "logits", "--model", "no-such-model"];
    let (code, _, told) = ran("compare", path, &[&args[..], &["--require", "win_rat>=0.5"]].concat());
    let only = "there is no such statistic, only win_rate, mean_preference, first_share, separates, coverage, n";
    assert!(code == Some(2) && told.contains(only), "{told}");
    for (command, only) in [
        ("rag", "only faithfulness, faithfulness_share, faithfulness:NAME, "),
        ("decide", "only accuracy, majority_share, "),
        ("rank", "only best_share, "),
        ("rerank", "only ndcg_10, mrr, recall_k, map, coverage, n"),
    ] {
        let args = ["--input", "pairs.jsonl", "--output", "v.jsonl", "--model", "no-such-model"];
        let group: &[&str] = if command == "rag" { &["--group", "team"] } else { &[] };
        refused(command, path, &[&args[..], group, &["--require", "win_rat>=0.5"]].concat(), 2, &[only]);
    }
    let bench = "--benchmark pairs --data pairs.jsonl --output v.jsonl --model no-such-model --require win_rat>=0.5";
    let only = "only accuracy, majority_share, predicted_mode_share, ";
    let told = refused("bench", path, &bench.split(' ').collect::<Vec<_>>(), 2, &[only]);
    assert!(told.contains("accuracy_chosen_layer") && told.matches("majority_share,").count() == 1, "{told}");
    let files = fs::read_dir(path).unwrap().count();
    assert_eq!(files, 1, "nothing was written");
}

#[test]
fn a_picture_is_what_its_name_says() {
    let path = &Desk::new();
    path.write("scores.jsonl", &scores(0));
    let agree = |plot: &str| ran("agree", path, &["--input", "scores.jsonl", "--plot", plot, "--quiet"]);
    for name in ["plot.png", "plot.PDF"] {
        let (code, _, told) = agree(name);
        assert!(code == Some(2) && told.contains("expected FILE.svg") && !path.join(name).exists(), "{told}");
    }
    assert_eq!((agree("plot.svg").0, agree("plot").0), (Some(0), Some(0)));
}

#[test]
fn rows_that_are_lost_fail_a_gate() {
    let path = &Desk::new();
    path.write("before.jsonl", &scores(0));
    path.write("now.jsonl", &scores(55));
    path.write("one-lost.jsonl", &scores(1));
    let drift = |now: &str, more: &[&str]| {
        let args = ["--input", now, "--against", "before.jsonl", "--require", "mae<=0.05", "--json", "d.json"];
        ran("drift", path, &[&args[..], more].concat())
    };
    let (code, said, told) = drift("now.jsonl", &["--junit", "d.xml"]);
    assert_eq!(code, Some(3), "{said}{told}");
    assert!(said.contains("reached: mae<=0.05") && said.contains("MISSED:  coverage>=0.98 (--min-coverage)"), "{said}");
    assert!(said.contains("5 of 60 rows count, a coverage of 0.083"), "{said}");
    let found = path.json("d.json");
    let of = |name: &str| found["statistics"][name]["estimate"].as_f64();
    assert_eq!((of("n"), of("coverage")), (Some(5.0), Some(5.0 / 60.0)));
    assert!(path.text("d.xml").contains("found 0.0833 (counted: 5 of 60 rows)"), "{}", path.text("d.xml"));
    // The rows are named that were not judged.
    let first = ">not counted: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, …</failure>";
    assert!(path.text("d.xml").contains(first), "{}", path.text("d.xml"));
    // Who says how many are enough is believed.
    assert_eq!(drift("now.jsonl", &["--min-coverage", "0.08"]).0, Some(0));
    assert_eq!(drift("now.jsonl", &["--require", "coverage>=0.05"]).0, Some(0));
    assert_eq!(drift("now.jsonl", &["--require", "coverage>=0.05", "--require", "n>=6"]).0, Some(3));
    assert_eq!(drift("now.jsonl", &["--min-coverage", "1.5"]).0, Some(2));
    // One of sixty is no more than a small share.
    assert_eq!(drift("one-lost.jsonl", &[]).0, Some(0));

    let agree =
        |input: &str| ran("agree", path, &["--input", input, "--require", "mae<=1", "--quiet", "--junit", "a.xml"]);
    let (code, said, told) = agree("now.jsonl");
    assert!(
        code == Some(3) && said.contains("5 of 60 rows count") && said.contains("MISSED:  coverage"),
        "{said}{told}"
    );
    assert!(path.text("a.xml").contains(first), "{}", path.text("a.xml"));
    assert_eq!(agree("one-lost.jsonl").0, Some(0));
    // Rows that nobody has graded are not lost.
    let mut graded = scores(0);
    graded[20..].iter_mut().for_each(|row| row["human"] = Value::Null);
    path.write("some-graded.jsonl", &graded);
    assert_eq!(agree("some-graded.jsonl").0, Some(0));

    let pair = |n: usize| json!({"id": n, "instruction": "?", "response_a": "a", "response_b": "b", "human": "A"});
    path.write("pairs.jsonl", &(0..20).map(pair).collect::<Vec<_>>());
    let verdict = |n: usize| json!({"id": n, "given": if n < 5 { "neither" } else { "[[A]]" }});
    path.write("said.jsonl", &(0..20).map(verdict).collect::<Vec<_>>());
    let bench = ["--benchmark", "pairs", "--data", "pairs.jsonl", "--verdicts", "said.jsonl", "--unparsed", "drop"];
    let bars = ["--require", "accuracy>=0.9", "--junit", "b.xml"];
    let (code, said, told) = ran("bench", path, &[&bench[..], &bars].concat());
    assert!(code == Some(3) && said.contains("reached: accuracy>=0.9"), "{said}{told}");
    assert!(said.contains("15 of 20 rows count") && said.contains("MISSED:  coverage>=0.98"), "{said}");
    assert!(path.text("b.xml").contains(">not counted: 0, 1, 2, 3, 4</failure>"), "{}", path.text("b.xml"));
}

/// Grades of single responses: the row without one is named, and the interval of the mean ends with the scale.
#[test]
fn a_response_without_a_grade_fails_a_gate() {
    let path = &Desk::new();
    let row = |n: usize| {
        let asked = if n == 1 { "word ".repeat(2_000) } else { format!("What is {n} + 2? {}", "Why? ".repeat(9 * n)) };
        json!({"id": n, "instruction": asked, "response": format!("It is {}.", n + 2), "rubric": "Right?"})
    };
    path.write("in.jsonl", &(0..3).map(row).collect::<Vec<_>>());
    let model = embedded_model();
    let args = ["--input", "in.jsonl", "--output", "s.jsonl", "--verdict", "logits", "--json", "s.json", "--junit"];
    let bars = ["s.xml", "--require", "mean_score>=0", "--model", model.to_str().unwrap(), "--quiet"];
    let (code, said, told) = ran("compare", path, &[&args[..], &bars].concat());
    assert!(code == Some(3) && said.contains("MISSED:  coverage>=0.98"), "{said}{told}");
    assert!(path.text("s.xml").contains(">not counted: 1</failure>"), "{}", path.text("s.xml"));
    let mean = &path.json("s.json")["statistics"]["mean_score"];
    let [low, high] = ["low", "high"].map(|end| mean[end].as_f64());
    assert!(low.is_none_or(|low| low >= 1.0) && high.is_none_or(|high| high <= 5.0), "{mean}");
}

/// A new version that lost most of its rows.
#[test]
fn rows_that_one_version_lacks_fail_a_gate() {
    let path = &Desk::new();
    let row = |n: usize| json!({"id": n, "instruction": format!("{n} + 2?"), "response": format!("{}", n + 2), "rubric": "Right?"});
    path.write("old.jsonl", &(0..6).map(row).collect::<Vec<_>>());
    path.write("new.jsonl", &(0..2).map(row).collect::<Vec<_>>());
    let model = embedded_model();
    let args = ["--old", "old.jsonl", "--new", "new.jsonl", "--apart", "--verdict", "logits", "--output", "v.jsonl"];
    let bars = ["--require", "mean_preference<=1", "--json", "t.json", "--model", model.to_str().unwrap()];
    for _ in 0..2 {
        let (code, said, told) = ran("compare", path, &[&args[..], &bars, &["--junit", "t.xml"]].concat());
        assert!(path.text("t.xml").contains(">not counted: 2, 3, 4, 5</failure>"), "{}", path.text("t.xml"));
        assert!(code == Some(3) && said.contains("reached: mean_preference<=1"), "{said}{told}");
        assert!(
            said.contains("MISSED:  coverage>=0.98 (--min-coverage): found 0.3333 (counted: 2 of 6 rows)"),
            "{said}"
        );
        assert!(said.contains("cannot show whether this judge can tell"), "{said}");
    }
    assert_eq!(path.json("t.json")["statistics"]["n"]["estimate"], json!(2.0));
}

/// <https://github.com/raphaelvallat/pingouin/issues/194>
#[test]
fn what_does_not_vary_reaches_a_bar_on_an_end() {
    let path = &Desk::new();
    let grade = |n: usize| json!({"id": n, "predicted": 1 + n % 5, "human": 1 + n % 5});
    path.write("in.jsonl", &(0..20).map(grade).collect::<Vec<_>>());
    let bars = ["--require", "spearman.low>=0.7", "--require", "cohen_kappa.low>=0.7", "--require", "mae.high<=0"];
    let said = succeed("agree", path, &[&["--input", "in.jsonl", "--quiet"], &bars[..]].concat());
    assert!(said.contains("found 1.0000 (no variation between rows: the estimate is the bound)"), "{said}");

    // A run beside itself has not drifted, in any end.
    path.write("run.jsonl", &scores(0));
    let drift = ["--input", "run.jsonl", "--against", "run.jsonl"];
    let bars = ["--require", "mae.high<=0.05", "--require", "spearman.low>=0.99", "--require", "bias.low>=-0.01"];
    let (said, told) = finished("drift", path, &[&drift[..], &bars].concat());
    assert!(said.contains("the same, to the bit"), "{said}{told}");
    // Four rows do not show that nothing varies.
    path.write("few.jsonl", &scores(0)[..4]);
    let few = ["--input", "few.jsonl", "--against", "few.jsonl", "--require", "mae.high<=0.05"];
    let (code, said, _) = ran("drift", path, &few);
    assert!(code == Some(3) && said.contains("it has no high (the estimate is 0.0000"), "{said}");
}

#[test]
fn a_shift_is_said_in_a_sentence_with_its_p_value() {
    let path = &Desk::new();
    let row = |n: usize, score: f64| json!({"id": n, "score": score, "question": n / 2, "human": n % 5});
    let before: Vec<Value> = (0..60).map(|n| row(n, (n % 5) as f64)).collect();
    let now: Vec<Value> = (0..60).map(|n| row(n, (n % 5) as f64 + 0.5 + (n % 3) as f64 / 10.0)).collect();
    path.write("before.jsonl", &before);
    path.write("now.jsonl", &now);
    let args = ["--input", "now.jsonl", "--against", "before.jsonl"];
    let said = succeed("drift", path, &args);
    assert!(said.starts_with("Scores have shifted: they are 0.60 higher on average [0.5"), "{said}");
    assert!(said.contains("60 of 60 rows have changed") && said.contains("estimate [95 %]"), "{said}");
    // A chance of less than one in ten thousand is no 0.
    assert!(said.contains("e-") && !said.contains("p = 0.0000"), "{said}");
    let said = succeed(
        "drift",
        path,
        &[&args[..], &["--level", "0.9", "--cluster", "question", "--resamples", "50"]].concat(),
    );
    assert!(said.contains("estimate [90 %]"), "{said}");
    let said = succeed("drift", path, &[&args[..], &["--limit", "20"]].concat());
    assert!(said.contains("20 of 20 rows count"), "{said}");
}

/// A judge that cannot tell passes a gate on its preferences, and not one on `separates`.
#[test]
fn a_judge_that_cannot_tell_misses_its_bar() {
    let path = &Desk::new();
    let right = |n: usize| format!("There are {n} and 2. {n} + 2 = {}. There are {} hats.", n + 2, n + 2);
    let wrong = |n: usize| format!("numbers The are {n} 9. It is {}.", n + 5);
    let asked = |n: usize| format!("Ana has {n} hats and gets 2 more. How many hats does Ana have?");
    let rubric = "Is this a good answer? Use the numbers 1 to 5, where 5 is very good.";
    let row =
        |n: usize, response: String| json!({"id": n, "instruction": asked(n), "response": response, "rubric": rubric});
    // Half of the answers were made worse.
    path.write("old.jsonl", &(0..20).map(|n| row(n, right(n))).collect::<Vec<_>>());
    let made = |n: usize| row(n, if n.is_multiple_of(2) { wrong(n) } else { right(n) });
    path.write("new.jsonl", &(0..20).map(made).collect::<Vec<_>>());
    let known = |n: usize| {
        let (a, b, human) = if n.is_multiple_of(2) {
            (right(n), wrong(n), json!("A"))
        } else {
            (wrong(n), right(n), json!(["B", "B", "tie"]))
        };
        json!({"id": n, "instruction": asked(n), "response_a": a, "response_b": b, "rubric": rubric, "human": human})
    };
    let mut graded: Vec<Value> = (0..20).map(known).collect();
    graded.push(json!({"id": 20, "instruction": "?", "response_a": "a", "response_b": "b", "human": "tie"}));
    path.write("graded.jsonl", &graded);
    // It is asked about the question, and tells nothing of the response before it.
    let family = json!({
        "name": "blind", "task": "single", "convention": "integer",
        "template": {"raw": "{response}\n\nQuestion: {instruction}\nGrade from 1 to 5: "},
        "opening": "", "max_new_tokens": 1,
        "scale": (1..=5).map(|grade| json!({"value": grade, "label": grade.to_string()})).collect::<Vec<_>>(),
    });
    path.put("blind.json", family.to_string());
    let model = embedded_model();
    let common =
        ["--old", "old.jsonl", "--new", "new.jsonl", "--apart", "--verdict", "logits", "--graded", "graded.jsonl"];
    let bars = ["--require", "mean_preference.high>=0.5", "--require", "separates.low>=0.5", "--model"];
    let args = |more: &[&'static str]| [&common[..], &bars, &[model.to_str().unwrap()], more].concat();
    let (said, told) = ended("compare", path, &args(&["--template", "blind.json", "--output", "blind.jsonl"]), 3);
    assert!(
        said.contains("reached: mean_preference.high>=0.5") && said.contains("MISSED:  separates.low>=0.5"),
        "{said}"
    );
    assert!(said.contains("That the judge can tell better from worse is not shown"), "{said}");
    assert!(said.contains("Its verdicts do not say which of the versions is better."), "{said}");
    assert!(told.contains("1 of 21 rows of graded.jsonl are left out") || told.contains("are left out"), "{told}");
    let seeing = ["--output", "seeing.jsonl", "--json", "t.json", "--junit", "t.xml"];
    let (code, said, told) = ran("compare", path, &args(&seeing));
    assert!(code == Some(3) && said.contains("MISSED:  mean_preference.high>=0.5"), "{said}{told}");
    assert!(
        said.contains("reached: separates.low>=0.5") && said.contains("The judge tells better from worse"),
        "{said}"
    );
    let found = path.json("t.json");
    assert_eq!(
        (&found["statistics"]["separates"]["n"], &found["statistics"]["n"]["estimate"]),
        (&json!(20), &json!(20.0))
    );
    assert_eq!(found["statistics"]["separates"]["method"], "Wilson");
    // Graded pairs are no rows of a version.
    assert_eq!(found["worse"].as_array().unwrap().len(), 10);
    let junit = path.text("t.xml");
    assert!(junit.contains(">worse than before: 0, 2, 4, 6, 8, 10, 12, 14, 16, 18</failure>"), "{junit}");
    let verdicts = path.rows("seeing.jsonl");
    assert_eq!((verdicts.len(), &verdicts[20]["id"], &verdicts[21]["human"]), (40, &json!("graded:0"), &json!("B")));
    // A limit is of the versions' rows.
    let few = ["--output", "few.jsonl", "--json", "few.json", "--limit", "3", "--model", model.to_str().unwrap()];
    let said = succeed("compare", path, &[&common[..], &few].concat());
    assert!(said.contains("The judge tells better from worse"), "{said}");
    let few = path.json("few.json");
    assert_eq!((&few["statistics"]["separates"]["n"], &few["n"]), (&json!(20), &json!(23)));

    // Without such pairs the gate cannot know.
    let none = ["--old", "old.jsonl", "--new", "new.jsonl", "--apart", "--verdict", "logits", "--output", "none.jsonl"];
    let none = [&none[..], &["--require", "separates>=0.5", "--model", model.to_str().unwrap()]].concat();
    let (code, said, _) = ran("compare", path, &none);
    assert!(code == Some(3) && said.contains("MISSED:  separates>=0.5: undefined: no pair"), "{said}");
    let ties = [json!({"id": 1, "instruction": "?", "response_a": "a", "response_b": "b", "human": "tie"})];
    path.write("ties.jsonl", &ties);
    refused("compare", path, &[&none[..9], &["--graded", "ties.jsonl"]].concat(), 1, &["neither \"A\" nor \"B\""]);
}

#[test]
fn a_junit_file_is_of_this_start_whatever_happens() {
    let path = &Desk::new();
    path.write("in.jsonl", &scores(0));
    let agree = |more: &[&str]| {
        ran("agree", path, &[&["--input", "in.jsonl", "--junit", "bars.xml", "--quiet"], more].concat())
    };
    assert_eq!(agree(&["--require", "spearman>=0.5", "--require", "mae<=0.1"]).0, Some(3));
    let xml = path.text("bars.xml");
    assert!(xml.contains("<testsuite name=\"judge agree\" tests=\"3\" failures=\"1\" errors=\"0\""), "{xml}");
    assert!(
        xml.contains("classname=\"judge.agree\" name=\"spearman&gt;=0.5\" time=\"")
            && xml.contains("<system-out>found "),
        "{xml}"
    );
    assert!(
        xml.contains("<failure type=\"missed\" message=\"found 0.2500")
            && xml.contains(">furthest from people: 0, 1, "),
        "{xml}"
    );
    // Each of these fails before a bar is held against anything: an unknown statistic, a bar that is none, and a missing input.
    for (args, code, why) in [
        (&["--require", "spearmen>=0"][..], 2, "did you mean `spearman`?"),
        (&["--require", "spearman>0"], 2, "expected STATISTIC&gt;=NUMBER"),
        (&["--require", "spearman>=0", "--predicted", "none"], 1, "no row has the field"),
    ] {
        assert_eq!(agree(&["--require", "spearman>=0.5"]).0, Some(0));
        assert!(path.text("bars.xml").contains("failures=\"0\" errors=\"0\""));
        let (found, _, told) = agree(args);
        let xml = path.text("bars.xml");
        assert!(found == Some(code) && xml.contains("errors=\"1\"") && xml.contains("<error message="), "{told}{xml}");
        assert!(xml.contains(why), "{xml}");
    }
    // A cause is said once.
    let none = ["--input", "none.jsonl", "--require", "mae<=1", "--junit", "bars.xml"];
    assert_eq!(ran("agree", path, &none).0, Some(1));
    let xml = path.text("bars.xml");
    assert!(xml.contains("none.jsonl") && xml.matches("os error 2").count() == 1, "{xml}");
    // The command may stand behind the option of all commands; what begins with a dash is no file.
    let wrong = ["--input", "in.jsonl", "--require", "mae<1", "--junit", "bars.xml"];
    assert_eq!(ran("--tables csv agree", path, &wrong).0, Some(2));
    assert!(path.text("bars.xml").contains("expected STATISTIC&gt;=NUMBER"));
    assert_eq!(ran("agree", path, &["--input", "in.jsonl", "--junit", "--require", "mae<=1"]).0, Some(2));
    assert!(!path.join("--require").exists());
    // What another made stays as it is.
    path.put("mine.xml", "<mine/>");
    let args = ["--input", "in.jsonl", "--require", "mae<=1", "--junit", "mine.xml"];
    assert_eq!(ran("agree", path, &args).0, Some(2));
    assert_eq!(ran("agree", path, &["--input", "in.jsonl", "--require", "mae<1", "--junit", "mine.xml"]).0, Some(2));
    assert_eq!(path.text("mine.xml"), "<mine/>");
    assert_eq!(ran("agree", path, &["--input", "in.jsonl", "--require", "mae<=1", "--junit", "in.jsonl"]).0, Some(2));
    assert_eq!(path.rows("in.jsonl").len(), 60);
    // A run that scores nothing leaves its error, the first time and the second.
    let long = json!({"id": 1, "instruction": "word ".repeat(2_000), "response_a": "a", "response_b": "b"});
    path.write("long.jsonl", &[long]);
    let model = embedded_model();
    let compare = ["--input", "long.jsonl", "--output", "v.jsonl", "--verdict", "logits", "--junit", "v.xml"];
    let compare = [&compare[..], &["--require", "win_rate>=0", "--model", model.to_str().unwrap()]].concat();
    for _ in 0..2 {
        assert_eq!(ran("compare", path, &compare).0, Some(1));
        assert!(path.text("v.xml").contains("<error message=\"no row was scored: 1 too_long\"/>"));
        fs::remove_file(path.join("v.xml")).unwrap();
    }
}

/// <https://github.com/google/langextract/pull/394>
#[test]
fn control_characters_reach_no_picture_and_no_terminal() {
    let path = &Desk::new();
    let odd = "p\u{1}\u{1b}";
    let row = |n: usize| json!({"id": n, "score": n % 4, "human": (n + n / 3) % 4, odd: (n + 1) % 4});
    path.write("in.jsonl", &(0..24).map(row).collect::<Vec<_>>());
    let args = ["--input", "in.jsonl", "--second", odd, "--comparison-plot", "c.svg", "--quiet", "--plot", "p.svg"];
    let (said, told) = finished("agree", path, &args);
    let is_plain = |text: &str| !text.contains(|c: char| c.is_control() && c != '\n' && c != '\t');
    assert!(is_plain(&said) && is_plain(&told), "{said:?}");
    let svg = path.text("c.svg");
    assert!(is_plain(&svg) && svg.contains("p\u{fffd}\u{fffd}"), "{svg}");
    assert!(is_plain(&path.text("p.svg")));
    let junit = ["--input", "in.jsonl", "--predicted", odd, "--require", "mae<=0", "--junit", "b.xml", "--quiet"];
    let (code, said, told) = ran("agree", path, &junit);
    assert!(code == Some(3) && said.contains("p\u{fffd}\u{fffd} against human") && is_plain(&told), "{said:?}");
    assert!(is_plain(&said) && is_plain(&path.text("b.xml")), "{said:?}");
}

/// <https://github.com/comet-ml/opik/issues/1635>: the sum of nothing is -0.
#[test]
fn a_verdict_that_a_judge_cannot_give_has_the_probability_zero() {
    let path = &Desk::new();
    let pair =
        |n: usize| json!({"id": n, "instruction": "2 + 2?", "response_a": "4", "response_b": "5", "rubric": "Right?"});
    path.write("pairs.jsonl", &(0..2).map(pair).collect::<Vec<_>>());
    let model = embedded_model();
    let args = ["--input", "pairs.jsonl", "--apart", "--verdict", "logits", "--output", "v.jsonl", "--model"];
    succeed("compare", path, &[&args[..], &[model.to_str().unwrap()]].concat());
    let written = path.text("v.jsonl");
    assert!(written.contains("\"tie\":0.0") && !written.contains("-0.0,") && !written.contains("-0.0}"), "{written}");
}

/// A prompt of RewardBench 2 that could not be judged is wrong, and a gate knows of it.
#[test]
fn prompts_that_could_not_be_judged_count_as_wrong() {
    let path = &Desk::new();
    let row = |n: usize| {
        let asked = if n < 4 { "word ".repeat(2_000) } else { "2 + 2?".to_owned() };
        json!({"id": n, "instruction": asked, "responses": ["4", "5", "6", "7"], "human": [1, 0, 0, 0], "subset": "Factuality", "rubric": "Right?"})
    };
    path.write("in.jsonl", &(0..6).map(row).collect::<Vec<_>>());
    let model = embedded_model();
    let args = ["--input", "in.jsonl", "--output", "r.jsonl", "--apart", "--verdict", "logits"];
    let more = ["--benchmark", "rewardbench2", "--require", "n>=1", "--model", model.to_str().unwrap(), "--quiet"];
    let (code, said, told) = ran("rank", path, &[&args[..], &more, &["--junit", "r.xml"]].concat());
    assert!(code == Some(3) && said.contains("MISSED:  coverage>=0.98"), "{said}{told}");
    assert!(path.text("r.xml").contains(">not counted: 0, 1, 2, 3</failure>"), "{}", path.text("r.xml"));
    assert!(said.contains("4 of 6 prompts have an answer without a score and count as wrong"), "{said}");
}
