//! What each convention reads, corner by corner, and the verdicts that published programs stored beside their texts.

#![allow(clippy::print_stderr)] // what was skipped

use std::cmp::Ordering::{Equal, Greater, Less};
use std::path::PathBuf;

use judge_core::prompted::GradeConvention as Grade;
use judge_core::prompted::PairConvention as Pair;
use serde_json::Value;

/// Texts with the grade that a convention finds in them, and texts in which it finds none.
type Grades<'a> = (Grade, &'a [(&'a str, f64)], &'a [&'a str]);

#[test]
fn preferences() {
    let verdicts = [Some(Greater), Some(Less), Some(Equal), None];
    let cases: &[(Pair, [&[&str]; 4])] = &[
        (
            Pair::Strict,
            [&["so [[A]]", "[[[A]]]"], &["[[B]] and again [[B]]"], &["[[C]]"], &["[[A]] or [[B]]", "[A]", "[[a]]", ""]],
        ),
        (Pair::Letters, [&["[[B]] is not [[A]]"], &["[[C]] or [[B]]"], &["[[C]]"], &["[[D]]"]]),
        (
            Pair::Decision,
            [
                &["So, the final decision is Response 1."],
                &["My final decision is Tie. No: the final decision is RESPONSE 2"],
                &["final decision is  tie"],
                &[
                    "The final decision is Response 3",
                    "The Final Decision is Response 1",
                    "final decision is Response 1. The final decision is unclear",
                    "final decision is ",
                ],
            ],
        ),
        (Pair::FirstLine, [&["\n 1\nbecause"], &["2"], &["TIE\n\n### Reason: 1"], &["1.", "Response 1", ""]]),
        (
            Pair::OutputAb,
            [
                &["Output (a)", "Output (b)\nOutput (a)"],
                &["Well.\n Output (b)"],
                &[],
                &["  Output (a)", "I prefer Output (a)", "output (a)"],
            ],
        ),
        (
            Pair::OutputAbSentence,
            [
                &[
                    "Output (b) is better. No, Output (a) is better.",
                    "Output (a) is better. No, Output (b) is better.",
                    "Output (a) is better!",
                ],
                &["Therefore, Output (b) is better."],
                &[],
                &["Output (a) is better", "Output (b) is better\n"],
            ],
        ),
        (
            Pair::ScorePair,
            [&["8 5\nbecause"], &["7,7.5"], &["9 9"], &["8 5 ", "8, 5", "8  5", "8", "8 NaN", "Scores: 8 5", "\n8 5"]],
        ),
        (
            Pair::RatingPair,
            [
                &["[[8, 5]]", "[3, 4.5] then [[5,1]]"],
                &["[3, 4.5]", "[[a,b]] [[2,3]]"],
                &["[[7,7.1]]"],
                &["[[8,  5]]", "8, 5"],
            ],
        ),
        (
            Pair::Result,
            [
                &["Feedback. [RESULT] A", "[RESULT: a]\n", "[RESULT] A\nwhich I explain"],
                &["[Result] Response B", "so [Response B]", "it is\nResult: B"],
                &[],
                &["the result: B", "[ResponseB]", "[RESULT] A or B?", "[RESULT] C", "A"],
            ],
        ),
        (
            Pair::Arrows,
            [
                &["My final verdict is: [[A>>B]]"],
                &["[[B>A]], as I said: [[B>A]]"],
                &[
                    "<think>[[A>B]]</think>[[A=B]]",
                    "<|channel|>analysis<|message|>[[A>B]]<|end|><|start|>assistant<|channel|>final<|message|>[[A=B]]",
                ],
                &[
                    "[[A>B]] or [[A>>B]]",
                    "[[A>B]] or [[B>A]]",
                    "<think>it is [[A>B]]",
                    "[[A]]",
                    "[A>>B]",
                    "[[A>C]]",
                    "",
                ],
            ],
        ),
        (
            Pair::Boxed,
            [
                &["So \\boxed{A>>B}."],
                &["\\boxed{A}, no, \\boxed{\\text{B}}", "\\boxed{B} and \\boxed{"],
                &["<think>\\boxed{A}</think> \\boxed{ A=B }", "\\boxed{Tie}"],
                &["<think>\\boxed{A}", "\\boxed{C}", "\\boxed{A", "boxed{A}"],
            ],
        ),
        (
            Pair::AnswerTags,
            [
                &[
                    "<answer>[[A]]</answer>",
                    "<think><answer>A</answer></think>\n<answer>[[A>B]]</answer>",
                    "<answer>A</answer><answer>",
                ],
                &["<answer>A</answer> then <answer> B </answer>"],
                &["<answer>tie</answer>"],
                &[
                    "<think>let me see <answer>A</answer>",
                    "<answer>Answer A</answer>",
                    "<answer>[[A]] [[B]]</answer>",
                    "<answer>A",
                    "A</answer>",
                ],
            ],
        ),
        (Pair::Bare, [&[" A\n", "1"], &["B", "2"], &["Tie", "0"], &["garbage", "A."]]),
    ];
    for (convention, by_verdict) in cases {
        for (texts, verdict) in by_verdict.iter().zip(verdicts) {
            texts.iter().for_each(|text| assert_eq!(convention.parse(text), verdict, "{convention}: {text:?}"));
        }
        assert_eq!(convention.as_str().parse::<Pair>().unwrap(), *convention);
        assert_eq!(serde_json::to_value(convention).unwrap(), convention.as_str());
    }
    assert_eq!(cases.len(), Pair::ALL.len());
    let unknown = "loud".parse::<Pair>().unwrap_err().to_string();
    assert!(unknown.contains("loud") && unknown.contains("first-line"), "{unknown}");
}

#[test]
fn grades() {
    let cases: &[Grades<'_>] = &[
        (Grade::Strict, &[("[[7.5]]", 7.5), ("[[7]] [[7]]", 7.0)], &["[[7]] [[8]]", "[7]"]),
        (
            Grade::Rating,
            &[
                ("Rating: [[7]] or [[8]]", 7.0),
                ("[3] but [[9]]", 9.0),
                ("[3.]", 3.0),
                ("[[rating]] [[15]]", 15.0),
                ("[[[4]]]", 4.0),
            ],
            &["[[-3]]", "7/10"],
        ),
        (
            Grade::Decision,
            &[("Rating: [[5]] ... Rating: [[ 6 ]]", 6.0)],
            &["rating: [[5]]", "Rating: 7", "Rating: [[x]]", "Rating: [[nan]]", "Rating: [[5"],
        ),
        (
            Grade::Result,
            &[
                ("fine [RESULT] 4", 4.0),
                ("[Result] 4/5", 4.0),
                ("[RESULT]: 3", 3.0),
                ("(Score 5)", 5.0),
                ("a score of  2 out of 5\n", 2.0),
                ("[SCORE] [1]", 1.0),
                ("Score: (5)", 5.0),
                ("Score: 5/5", 5.0),
                ("score of 5", 5.0),
            ],
            &[
                "Score: 2.5",
                "Score: 12",
                "Score: 0",
                "[SCORE]: 4",
                "(4/5)",
                "Reference (Score 5) not results",
                "I rate this a perfect 10!",
                "5",
            ],
        ),
        (
            Grade::ResultExact,
            &[("good [RESULT] 3", 3.0)],
            &["[RESULT] 3.", "[RESULT] 6", "[RESULT] 3 [RESULT] 3", "[Result] 3"],
        ),
        (Grade::Integer, &[(" 7\n", 7.0), ("-1", -1.0)], &["7.5", "7 points", ""]),
        (
            Grade::Json,
            &[
                (r#"{"reason": "so", "score": 4}"#, 4.0),
                (r#" {"score":-2,"more":[{}],"reason":""} "#, -2.0),
                ("```json\n{\"reason\": \"`{}`\", \"score\": 10}\n```\n", 10.0),
                ("```\n{\"reason\": \"so\", \"score\": 3}```", 3.0),
                (r#"{"reason": "so", "score": 123456789012345678901234567890}"#, 123456789012345678901234567890.0),
                // https://github.com/microsoft/PyRIT/pull/2133, https://github.com/google/langextract/pull/394
                (r#"{"reason": "so", "score": 4.0}"#, 4.0),
                (r#"{"reason": "so", "score": -2.000}"#, -2.0),
                ("{\"reason\": \"one\ntwo\tthree\",\n \"score\": 4}", 4.0),
                // https://github.com/QuantumNous/new-api/issues/802, https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/1602
                ("<think>\nMaybe {\"score\": 2}\n</think>\n\n{\"reason\": \"é\", \"score\": 4}", 4.0),
                ("Maybe 2.\n</think>\n\n```json\n{\"reason\": \"so\", \"score\": 4}\n```", 4.0),
                (
                    "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>{\"reason\": \"so\", \"score\": 4}",
                    4.0,
                ),
                ("<|channel|>final <|constrain|>json<|message|>{\"reason\": \"so\", \"score\": 4}<|return|>", 4.0),
                (r#"{"reason": "it says </think> twice", "score": 4}"#, 4.0),
                (r#"{"reason": "it says <think>", "score": 4}"#, 4.0),
            ],
            &[
                r#"{"reason": "so", "score": "4"}"#,
                r#"{"reason": "so", "score": 4.}"#,
                r#"{"Reason": "so", "Score": 4}"#,
                "<|channel|>analysis<|message|>{\"reason\": \"so\", \"score\": 4}",
                "<think>{\"reason\": \"so\", \"score\": 4}",
                r#"{"reason": "so", "score": 4.5}"#,
                r#"{"reason": "so", "score": 4e0}"#,
                r#"{"reason": "so", "score": null}"#,
                r#"{"reason": "so", "score": [4]}"#,
                r#"{"reason": null, "score": 4}"#,
                r#"{"reason": 4, "score": 4}"#,
                r#"{"score": 4}"#,
                r#"{"reason": "so"}"#,
                r#"{"reason": "so", "score": 4, "score": 5}"#,
                r#"{"reason": "so", "score": 4"#,
                r#"Here: {"reason": "so", "score": 4}"#,
                r#"{"reason": "so", "score": 4} I hope that helps."#,
                "```json {\"reason\": \"so\", \"score\": 4}```",
                "```json\n{\"reason\": \"so\", \"score\": 4}",
                r#"[{"reason": "so", "score": 4}]"#,
                "4",
                "",
            ],
        ),
    ];
    for (convention, graded, others) in cases {
        let graded = graded.iter().map(|&(text, grade)| (text, Some(grade)));
        for (text, grade) in graded.chain(others.iter().map(|&text| (text, None))) {
            assert_eq!(convention.parse(text), grade, "{convention}: {text:?}");
            let number = convention.find(text).map(|(_, place)| text[place].parse::<f64>().expect("a number"));
            assert_eq!(number, grade, "{convention}: {text:?}");
        }
        assert_eq!(convention.as_str().parse::<Grade>().unwrap(), *convention);
    }
    assert_eq!(cases.len(), Grade::ALL.len());
}

fn data(path: &str) -> Option<String> {
    let Some(folder) = std::env::var_os("JUDGE_TEST_DATA") else {
        eprintln!("skipped: JUDGE_TEST_DATA is not set");
        return None;
    };
    let path = PathBuf::from(folder).join(path);
    Some(std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
}

/// What costs more time than its length does is found by these taking minutes.
#[test]
fn a_text_of_nothing_but_openings_is_read_in_time() {
    for (opening, close) in [
        ("[", "]]"),
        ("[[ ", " ]]"),
        ("[[1,", ""),
        ("\\boxed{", ""),
        ("\\boxed{", "}"),
        ("<answer>", ""),
        ("<think>", ""),
        ("[RESULT]", ""),
        ("\n", "x"),
        ("a\n", ""),
        ("[result]\n", "\n"),
    ] {
        let text = opening.repeat(100_000) + close;
        assert!(Pair::ALL.iter().all(|convention| convention.parse(&text).is_none()), "{opening:?}");
        assert!(Grade::ALL.iter().all(|convention| convention.parse(&text).is_none()), "{opening:?}");
    }
    // The last that is closed, and what is before the first thing that closes it.
    assert_eq!(Pair::Boxed.parse("\\boxed{B}, no: \\boxed{A} or } and \\boxed{B"), Some(Greater));
    assert_eq!(Pair::AnswerTags.parse("<answer>A</answer> <answer><answer>B</answer>"), Some(Less));
}

/// LLMBar stores the winner beside each completion, that of the exchanged order mapped back.
#[test]
fn llmbars_stored_winners_come_back() {
    let mut texts = 0;
    for subset in ["Natural", "Adversarial/Neighbor"] {
        for (judge, convention) in [
            ("GPT-4/Vanilla_NoRules", Pair::OutputAb),
            ("ChatGPT/Vanilla_NoRules", Pair::OutputAb),
            ("Falcon/CoT", Pair::OutputAbSentence),
        ] {
            let Some(file) = data(&format!("llmbar/LLMBar/{subset}/evaluators/{judge}/result.json")) else { return };
            let rows: Vec<Value> = serde_json::from_str(&file).unwrap();
            for (index, row) in rows.iter().enumerate() {
                let last = row["results"].as_array().unwrap().last().unwrap();
                for (order, shown) in [("swap = False", ["1", "2"]), ("swap = True", ["2", "1"])] {
                    let text = last[order]["completion"][0].as_str().unwrap();
                    let winner =
                        convention.parse(text).map(|verdict| if verdict == Greater { shown[0] } else { shown[1] });
                    assert_eq!(
                        winner,
                        last[order]["winner"].as_str(),
                        "{subset}, {judge}, row {index}, {order}: {text:?}"
                    );
                    texts += 1;
                }
            }
        }
    }
    assert_eq!(texts, 3 * 2 * (100 + 134));
}

/// GPT-4 wrote its grades on the first line of 77 of the 80 reviews in each file, and at the end of the three on mathematics.
#[test]
fn score_pairs_of_77_of_80_reviews_are_read() {
    for pair in ["alpaca-13b_vicuna-13b", "gpt35_vicuna-13b"] {
        let Some(file) = data(&format!("mtbench/vicuna_gpt4_reviews/review_{pair}.jsonl")) else { return };
        let mut read = 0;
        for line in file.lines() {
            let review: Value = serde_json::from_str(line).unwrap();
            let score = |side: usize| review["score"][side].as_f64().unwrap();
            if let Some(verdict) = Pair::ScorePair.parse(review["text"].as_str().unwrap()) {
                assert_eq!(verdict, score(0).total_cmp(&score(1)), "{line}");
                read += 1;
            }
        }
        assert_eq!((read, file.lines().count()), (77, 80));
    }
}

/// The texts that PandaLM's test set calls garbage hold no verdict, so that its policy, a tie, can be named.
#[test]
fn pandalms_verdicts_are_bare() {
    let Some(file) = data("pandalm/gpt-3.5-turbo-testset-v1.json") else { return };
    let rows: Vec<Value> = serde_json::from_str(&file).unwrap();
    let verdicts = rows.iter().map(|row| Pair::Bare.parse(row["gpt_result"].as_str().unwrap()));
    assert_eq!(verdicts.filter(Option::is_none).count(), 25);
}
