//! What each convention reads, corner by corner, and the verdicts that published programs stored beside their texts.

#![allow(clippy::print_stderr)] // what was skipped

use std::cmp::Ordering::{self, Equal, Greater, Less};
use std::path::PathBuf;

use judge_core::prompted::GradeConvention as Grade;
use judge_core::prompted::PairConvention as Pair;
use serde_json::Value;

/// Texts and what each convention finds in them.
type Cases<'a, C, V> = &'a [(C, &'a [(&'a str, Option<V>)])];

#[test]
fn preferences() {
    let none = None::<Ordering>;
    let cases: Cases<'_, Pair, Ordering> = &[
        (
            Pair::Strict,
            &[
                ("so [[A]]", Some(Greater)),
                ("[[B]] and again [[B]]", Some(Less)),
                ("[[C]]", Some(Equal)),
                ("[[A]] or [[B]]", none),
                ("[[[A]]]", Some(Greater)),
                ("[A]", none),
                ("[[a]]", none),
                ("", none),
            ],
        ),
        (
            Pair::Letters,
            &[
                ("[[B]] is not [[A]]", Some(Greater)),
                ("[[C]] or [[B]]", Some(Less)),
                ("[[C]]", Some(Equal)),
                ("[[D]]", none),
            ],
        ),
        (
            Pair::Decision,
            &[
                ("So, the final decision is Response 1.", Some(Greater)),
                ("My final decision is Tie. No: the final decision is RESPONSE 2", Some(Less)),
                ("final decision is  tie", Some(Equal)),
                ("The final decision is Response 3", none),
                ("The Final Decision is Response 1", none),
                ("final decision is Response 1. The final decision is unclear", none),
                ("final decision is ", none),
            ],
        ),
        (
            Pair::FirstLine,
            &[
                ("\n 1\nbecause", Some(Greater)),
                ("2", Some(Less)),
                ("TIE\n\n### Reason: 1", Some(Equal)),
                ("1.", none),
                ("Response 1", none),
                ("", none),
            ],
        ),
        (
            Pair::OutputAb,
            &[
                ("Output (a)", Some(Greater)),
                ("Well.\n Output (b)", Some(Less)),
                ("Output (b)\nOutput (a)", Some(Greater)),
                ("  Output (a)", none),
                ("I prefer Output (a)", none),
                ("output (a)", none),
            ],
        ),
        (
            Pair::OutputAbSentence,
            &[
                ("Therefore, Output (b) is better.", Some(Less)),
                ("Output (b) is better. No, Output (a) is better.", Some(Greater)),
                ("Output (a) is better. No, Output (b) is better.", Some(Greater)),
                ("Output (a) is better!", Some(Greater)),
                ("Output (a) is better", none),
                ("Output (b) is better\n", none),
            ],
        ),
        (
            Pair::ScorePair,
            &[
                ("8 5\nbecause", Some(Greater)),
                ("7,7.5", Some(Less)),
                ("9 9", Some(Equal)),
                ("8 5 ", none),
                ("8, 5", none),
                ("8  5", none),
                ("8", none),
                ("8 NaN", none),
                ("Scores: 8 5", none),
                ("\n8 5", none),
            ],
        ),
        (
            Pair::RatingPair,
            &[
                ("[[8, 5]]", Some(Greater)),
                ("[[7,7.1]]", Some(Equal)),
                ("[3, 4.5] then [[5,1]]", Some(Greater)),
                ("[3, 4.5]", Some(Less)),
                ("[[a,b]] [[2,3]]", Some(Less)),
                ("[[8,  5]]", none),
                ("8, 5", none),
            ],
        ),
        (
            Pair::Result,
            &[
                ("Feedback. [RESULT] A", Some(Greater)),
                ("[Result] Response B", Some(Less)),
                ("so [Response B]", Some(Less)),
                ("[RESULT: a]\n", Some(Greater)),
                ("it is\nResult: B", Some(Less)),
                ("[RESULT] A\nwhich I explain", Some(Greater)),
                ("the result: B", none),
                ("[ResponseB]", none),
                ("[RESULT] A or B?", none),
                ("[RESULT] C", none),
                ("A", none),
            ],
        ),
        (
            Pair::Arrows,
            &[
                ("My final verdict is: [[A>>B]]", Some(Greater)),
                ("[[B>A]], as I said: [[B>A]]", Some(Less)),
                ("<think>[[A>B]]</think>[[A=B]]", Some(Equal)),
                ("[[A>B]] or [[A>>B]]", none),
                ("[[A>B]] or [[B>A]]", none),
                ("<think>it is [[A>B]]", none),
                (
                    "<|channel|>analysis<|message|>[[A>B]]<|end|><|start|>assistant<|channel|>final<|message|>[[A=B]]",
                    Some(Equal),
                ),
                ("[[A]]", none),
                ("[A>>B]", none),
                ("[[A>C]]", none),
                ("", none),
            ],
        ),
        (
            Pair::Boxed,
            &[
                ("So \\boxed{A>>B}.", Some(Greater)),
                ("\\boxed{A}, no, \\boxed{\\text{B}}", Some(Less)),
                ("<think>\\boxed{A}</think> \\boxed{ A=B }", Some(Equal)),
                ("\\boxed{B} and \\boxed{", Some(Less)),
                ("\\boxed{Tie}", Some(Equal)),
                ("<think>\\boxed{A}", none),
                ("\\boxed{C}", none),
                ("\\boxed{A", none),
                ("boxed{A}", none),
            ],
        ),
        (
            Pair::AnswerTags,
            &[
                ("<answer>[[A]]</answer>", Some(Greater)),
                ("<answer>A</answer> then <answer> B </answer>", Some(Less)),
                ("<think><answer>A</answer></think>\n<answer>[[A>B]]</answer>", Some(Greater)),
                ("<answer>tie</answer>", Some(Equal)),
                ("<answer>A</answer><answer>", Some(Greater)),
                ("<think>let me see <answer>A</answer>", none),
                ("<answer>Answer A</answer>", none),
                ("<answer>[[A]] [[B]]</answer>", none),
                ("<answer>A", none),
                ("A</answer>", none),
            ],
        ),
        (
            Pair::Bare,
            &[
                (" A\n", Some(Greater)),
                ("1", Some(Greater)),
                ("B", Some(Less)),
                ("2", Some(Less)),
                ("Tie", Some(Equal)),
                ("0", Some(Equal)),
                ("garbage", none),
                ("A.", none),
            ],
        ),
    ];
    for (convention, texts) in cases {
        for (text, verdict) in *texts {
            assert_eq!(convention.parse(text), *verdict, "{convention}: {text:?}");
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
    let cases: Cases<'_, Grade, f64> = &[
        (Grade::Strict, &[("[[7.5]]", Some(7.5)), ("[[7]] [[7]]", Some(7.0)), ("[[7]] [[8]]", None), ("[7]", None)]),
        (
            Grade::Rating,
            &[
                ("Rating: [[7]] or [[8]]", Some(7.0)),
                ("[3] but [[9]]", Some(9.0)),
                ("[3.]", Some(3.0)),
                ("[[rating]] [[15]]", Some(15.0)),
                ("[[[4]]]", Some(4.0)),
                ("[[-3]]", None),
                ("7/10", None),
            ],
        ),
        (
            Grade::Decision,
            &[
                ("Rating: [[5]] ... Rating: [[ 6 ]]", Some(6.0)),
                ("rating: [[5]]", None),
                ("Rating: 7", None),
                ("Rating: [[x]]", None),
                ("Rating: [[nan]]", None),
                ("Rating: [[5", None),
            ],
        ),
        (
            Grade::Result,
            &[
                ("fine [RESULT] 4", Some(4.0)),
                ("[Result] 4/5", Some(4.0)),
                ("[RESULT]: 3", Some(3.0)),
                ("(Score 5)", Some(5.0)),
                ("a score of  2 out of 5\n", Some(2.0)),
                ("[SCORE] [1]", Some(1.0)),
                ("Score: (5)", Some(5.0)),
                ("Score: 5/5", Some(5.0)),
                ("score of 5", Some(5.0)),
                ("Score: 2.5", None),
                ("Score: 12", None),
                ("Score: 0", None),
                ("[SCORE]: 4", None),
                ("(4/5)", None),
                ("Reference (Score 5) not results", None),
                ("I rate this a perfect 10!", None),
                ("5", None),
            ],
        ),
        (
            Grade::ResultExact,
            &[
                ("good [RESULT] 3", Some(3.0)),
                ("[RESULT] 3.", None),
                ("[RESULT] 6", None),
                ("[RESULT] 3 [RESULT] 3", None),
                ("[Result] 3", None),
            ],
        ),
        (Grade::Integer, &[(" 7\n", Some(7.0)), ("-1", Some(-1.0)), ("7.5", None), ("7 points", None), ("", None)]),
        (
            Grade::Json,
            &[
                (r#"{"reason": "so", "score": 4}"#, Some(4.0)),
                (r#" {"score":-2,"more":[{}],"reason":""} "#, Some(-2.0)),
                ("```json\n{\"reason\": \"`{}`\", \"score\": 10}\n```\n", Some(10.0)),
                ("```\n{\"reason\": \"so\", \"score\": 3}```", Some(3.0)),
                (
                    r#"{"reason": "so", "score": 123456789012345678901234567890}"#,
                    Some(123456789012345678901234567890.0),
                ),
                (r#"{"reason": "so", "score": "4"}"#, None),
                // https://github.com/microsoft/PyRIT/pull/2133, https://github.com/google/langextract/pull/394
                (r#"{"reason": "so", "score": 4.0}"#, Some(4.0)),
                (r#"{"reason": "so", "score": -2.000}"#, Some(-2.0)),
                (r#"{"reason": "so", "score": 4.}"#, None),
                ("{\"reason\": \"one\ntwo\tthree\",\n \"score\": 4}", Some(4.0)),
                (r#"{"Reason": "so", "Score": 4}"#, None),
                // https://github.com/QuantumNous/new-api/issues/802, https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/1602
                ("<think>\nMaybe {\"score\": 2}\n</think>\n\n{\"reason\": \"é\", \"score\": 4}", Some(4.0)),
                ("Maybe 2.\n</think>\n\n```json\n{\"reason\": \"so\", \"score\": 4}\n```", Some(4.0)),
                (
                    "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>{\"reason\": \"so\", \"score\": 4}",
                    Some(4.0),
                ),
                (
                    "<|channel|>final <|constrain|>json<|message|>{\"reason\": \"so\", \"score\": 4}<|return|>",
                    Some(4.0),
                ),
                ("<|channel|>analysis<|message|>{\"reason\": \"so\", \"score\": 4}", None),
                ("<think>{\"reason\": \"so\", \"score\": 4}", None),
                (r#"{"reason": "it says </think> twice", "score": 4}"#, Some(4.0)),
                (r#"{"reason": "it says <think>", "score": 4}"#, Some(4.0)),
                (r#"{"reason": "so", "score": 4.5}"#, None),
                (r#"{"reason": "so", "score": 4e0}"#, None),
                (r#"{"reason": "so", "score": null}"#, None),
                (r#"{"reason": "so", "score": [4]}"#, None),
                (r#"{"reason": null, "score": 4}"#, None),
                (r#"{"reason": 4, "score": 4}"#, None),
                (r#"{"score": 4}"#, None),
                (r#"{"reason": "so"}"#, None),
                (r#"{"reason": "so", "score": 4, "score": 5}"#, None),
                (r#"{"reason": "so", "score": 4"#, None),
                (r#"Here: {"reason": "so", "score": 4}"#, None),
                (r#"{"reason": "so", "score": 4} I hope that helps."#, None),
                ("```json {\"reason\": \"so\", \"score\": 4}```", None),
                ("```json\n{\"reason\": \"so\", \"score\": 4}", None),
                (r#"[{"reason": "so", "score": 4}]"#, None),
                ("4", None),
                ("", None),
            ],
        ),
    ];
    for (convention, texts) in cases {
        for (text, grade) in *texts {
            assert_eq!(convention.parse(text), *grade, "{convention}: {text:?}");
            let number = convention.find(text).map(|(_, place)| text[place].parse::<f64>().expect("a number"));
            assert_eq!(number, *grade, "{convention}: {text:?}");
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
