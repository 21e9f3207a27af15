use std::collections::{BTreeMap, HashSet};

use super::defects::{Defect, Severity};
use super::topics::{SHIFTED, TRAINED, Topic};
use super::{RUBRICS, SHIFTED_RUBRICS, Split, generate, item, prompt, split_of};

/// Pearson's correlation, enough for a bound on a nuisance.
fn correlation(x: &[f64], y: &[f64]) -> f64 {
    let n = x.len() as f64;
    let (mean_x, mean_y) = (x.iter().sum::<f64>() / n, y.iter().sum::<f64>() / n);
    let product = |a: &[f64], mean_a: f64, b: &[f64], mean_b: f64| {
        a.iter().zip(b).map(|(a, b)| (a - mean_a) * (b - mean_b)).sum::<f64>()
    };
    product(x, mean_x, y, mean_y) / (product(x, mean_x, x, mean_x) * product(y, mean_y, y, mean_y)).sqrt()
}

/// Whether every `a + b = c` (also `-` and `x`) of a text is true; `None` if there is none.
fn equations_hold(text: &str) -> Option<bool> {
    let words: Vec<&str> = text.split_whitespace().map(|word| word.trim_end_matches('.')).collect();
    let mut holds = None;
    for five in words.windows(5) {
        let (Ok(a), Ok(b), "=", Ok(c)) =
            (five[0].parse::<i64>(), five[2].parse::<i64>(), five[3], five[4].parse::<i64>())
        else {
            continue;
        };
        let right = match five[1] {
            "+" => a + b,
            "-" => a - b,
            "x" => a * b,
            _ => continue,
        };
        holds = Some(holds.unwrap_or(true) && right == c);
    }
    holds
}

#[test]
fn an_item_depends_on_split_seed_and_index_alone() {
    for split in Split::ALL {
        let items = generate(split, 40, 7);
        assert_eq!(items, generate(split, 60, 7)[..40]);
        assert_eq!(items[13], item(split, 13, 7));
        assert_ne!(items, generate(split, 40, 8));
    }
    // The bytes themselves: a change here changes every published figure.
    let first = item(Split::Test, 0, 0);
    let expected = "Question: Hugo has 3 rolls and gets 5 more. How many rolls does Hugo have now?\n\
                    Answer: Here two parts make the whole. The numbers are 8 and 8. It is 16 in all. \
                    We can also count them one by one.\n\
                    From 1 to 5, is the answer correct, to the point and well written?";
    assert_eq!(prompt(&first), expected);
    assert_eq!(first.scores, [1.0, 1.0, 1.0]);
}

#[test]
fn no_question_is_in_two_splits() {
    let questions = |split, n| generate(split, n, 0).into_iter().map(|item| item.instruction).collect::<HashSet<_>>();
    let (train, validation, test) =
        (questions(Split::Train, 20_000), questions(Split::Validation, 1_000), questions(Split::Test, 1_000));
    assert!(train.is_disjoint(&validation) && train.is_disjoint(&test) && validation.is_disjoint(&test));
    assert!(train.iter().all(|question| split_of(question) == Split::Train));
    assert!(questions(Split::Shifted, 1_000).is_disjoint(&train));
}

#[test]
fn the_shifted_split_shares_no_topic_and_no_wording() {
    let places = |topic: &Topic| {
        let w = &topic.wordings;
        [w.questions, w.openings, w.givens, w.workings, w.conclusions, w.closings].concat()
    };
    let wordings = |topics: &[Topic]| topics.iter().flat_map(places).collect::<HashSet<_>>();
    let names = |topics: &[Topic]| topics.iter().map(|topic| topic.name).collect::<HashSet<_>>();
    assert!(names(TRAINED).is_disjoint(&names(SHIFTED)));
    assert!(wordings(TRAINED).is_disjoint(&wordings(SHIFTED)));
    assert!(RUBRICS.iter().all(|rubric| !SHIFTED_RUBRICS.contains(rubric)));
    // Nor a sentence of padding, a name or a thing: none of the training words of those kinds turns up.
    let train = generate(Split::Train, 5_000, 0);
    let seen: HashSet<&str> =
        train.iter().flat_map(|item| item.response.split_inclusive(['.', '?'])).map(str::trim).collect();
    for item in
        generate(Split::Shifted, 500, 0).iter().filter(|item| item.defects == [Defect::Padding(Severity::Severe)])
    {
        assert!(item.response.split_inclusive(['.', '?']).all(|sentence| !seen.contains(sentence.trim())), "{item:?}");
    }
}

#[test]
fn no_place_is_left_unfilled() {
    for split in Split::ALL {
        for item in generate(split, 2_000, 3) {
            assert!(!prompt(&item).contains(['{', '}']), "{item:?}");
            assert!(!item.response.is_empty() && item.response.len() < 500, "{item:?}");
        }
    }
}

#[test]
fn marks_are_whole_numbers_spread_over_the_scale_and_follow_quality() {
    for split in Split::ALL {
        let items = generate(split, 3_000, 1);
        let mut counts = BTreeMap::new();
        for mark in items.iter().flat_map(|item| &item.scores) {
            *counts.entry(mark.to_string()).or_insert(0) += 1;
        }
        assert_eq!(counts.keys().map(String::as_str).collect::<Vec<_>>(), ["1", "2", "3", "4", "5"]);
        assert!(counts.values().all(|&count| (900..3_150).contains(&count)), "{counts:?}");
        let human: Vec<f64> = items.iter().map(super::Item::human).collect();
        let quality: Vec<f64> = items.iter().map(|item| item.quality).collect();
        assert!(correlation(&human, &quality) > 0.93);
    }
}

#[test]
fn length_does_not_tell_the_mark() {
    for split in Split::ALL {
        let items = generate(split, 3_000, 2);
        let length: Vec<f64> = items.iter().map(|item| item.response.len() as f64).collect();
        let human: Vec<f64> = items.iter().map(super::Item::human).collect();
        assert!(correlation(&length, &human).abs() < 0.12, "{}: {}", split.name(), correlation(&length, &human));
    }
}

#[test]
fn an_equation_is_false_exactly_where_a_result_or_step_is_wrong() {
    let mut counts = [0, 0];
    for item in Split::ALL.into_iter().flat_map(|split| generate(split, 3_000, 4)) {
        let broken = item.defects.iter().any(|defect| matches!(defect, Defect::BrokenLanguage(_)));
        let wrong = item.defects.iter().any(|defect| matches!(defect, Defect::Wrong(_)));
        if let (false, Some(holds)) = (broken, equations_hold(&item.response)) {
            assert_eq!(holds, !wrong, "{item:?}");
            counts[usize::from(wrong)] += 1;
        }
    }
    assert!(counts.iter().all(|&count| count > 300), "{counts:?}");
}

#[test]
fn each_defect_changes_the_answer_as_it_says() {
    let items: Vec<_> = Split::ALL.into_iter().flat_map(|split| generate(split, 3_000, 5)).collect();
    let sentences = |text: &str| text.matches('.').count();
    let mean_sentences = |wanted: &[Defect]| {
        let found: Vec<usize> =
            items.iter().filter(|item| item.defects == wanted).map(|item| sentences(&item.response)).collect();
        assert!(found.len() > 20, "{wanted:?} occurs {} times", found.len());
        found.iter().sum::<usize>() as f64 / found.len() as f64
    };
    // One working sentence less, then two; one filler more, then three.
    let clean = mean_sentences(&[]);
    for (defect, change) in [
        (Defect::MissingSteps(Severity::Mild), -1.0),
        (Defect::MissingSteps(Severity::Severe), -2.0),
        (Defect::Padding(Severity::Mild), 1.0),
        (Defect::Padding(Severity::Severe), 3.0),
        (Defect::Wrong(Severity::Severe), 0.0),
        (Defect::Irrelevant(Severity::Mild), 0.0),
    ] {
        assert!((mean_sentences(&[defect]) - clean - change).abs() < 0.25, "{defect}");
    }
    for item in &items {
        let lost: f64 = item.defects.iter().map(|defect| defect.penalty()).sum();
        assert!((item.quality - (5.0 - lost).max(1.0)).abs() < 1e-12);
    }
}

#[test]
fn broken_language_always_breaks_something() {
    for stream in 0..500 {
        let mut draw = super::Draw::new(9, stream);
        let whole = ["The answer is 12.".to_owned(), "It is fox.".to_owned()];
        let mut broken = whole.clone();
        super::defects::break_language(&mut draw, &mut broken, Severity::Mild);
        assert_ne!(broken, whole);
        assert!(broken.join(" ").contains("12."), "{broken:?}");
    }
}
