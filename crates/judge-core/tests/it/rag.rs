//! Answers from retrieved contexts: what is asked, what comes of it, and what a field's absence costs.

use crate::one;
use judge_core::decision::{DecisionForm, DecisionJudge, DecisionSettings};
use judge_core::rag::{RagField, RagFindings, RagItem, RagJudge, RagMeasure, RagSettings};
use judge_core::testing::{ScriptedBackbone, check_judge};
use judge_core::{Judge, Reason, Verdict};

/// A model that says yes with these log-odds where the question has one of these words, else no with log-odds 2.
fn model(yes: &'static [(&'static str, f32)]) -> ScriptedBackbone {
    ScriptedBackbone::new(2).with_label_mass(|_| 0.5).with_logits(move |before, _, label| {
        let (_, question) = before.split_once("=== Question ===").unwrap_or_default();
        let odds = yes.iter().find(|(word, _)| question.contains(word)).map_or(-2.0, |(_, odds)| *odds);
        if label == 'Y' { odds } else { 0.0 }
    })
}

fn judge(model: &ScriptedBackbone, settings: RagSettings) -> RagJudge {
    let mut form = DecisionForm::default();
    form.labels.noul = vec!["Y".to_owned(), "N".to_owned()];
    let decisions = DecisionSettings { form, ..DecisionSettings::default() };
    RagJudge::new(settings, DecisionJudge::new(decisions, model).unwrap()).unwrap()
}

fn item() -> RagItem {
    RagItem {
        question: Some("Where is the tower, and how high is it?".to_owned()),
        contexts: vec![
            "It rained.".to_owned(),
            "The tower stands in Paris.".to_owned(),
            "It is 330 m high.".to_owned(),
        ],
        response: Some("Sure! It stands in Paris. It is 500 m high.".to_owned()),
        reference: Some("In Paris. It is 330 m high.".to_owned()),
        ..RagItem::default()
    }
}

fn findings(model: &ScriptedBackbone, judge: &RagJudge, item: RagItem) -> (RagFindings, Verdict) {
    let result = one::result(model, judge, item).unwrap();
    (judge.findings(&result.item, &result.rounds(0)).unwrap(), result.verdicts[0].clone())
}

fn sigmoid(odds: f64) -> f64 {
    1.0 / (1.0 + (-odds).exp())
}

#[test]
fn measures_are_made_of_the_answers() {
    let model = model(&[
        ("support this statement? What is known from elsewhere does not count.\nStatement: It stands", 3.0),
        ("support this statement? What is known from elsewhere does not count.\nStatement: In Paris", 1.0),
        ("Does passage 2 have", 2.0),
        ("Does passage 3 have", 0.0),
        ("Does passage 1 help", -1.0),
        ("Does passage 2 help", 1.0),
        ("address the question", 4.0),
        ("what this statement says?\nStatement: It stands", 5.0),
        ("what this statement says?\nStatement: In Paris", 5.0),
    ]);
    let (found, verdict) = findings(&model, &judge(&model, RagSettings::default()), item());
    let no = sigmoid(-2.0);
    let of = |measure: RagMeasure| *found.measures[&measure].as_ref().unwrap();
    let check = |measure: RagMeasure, mean: f64, share: f64| {
        let value = of(measure);
        assert!((value.mean - mean).abs() < 1e-6 && (value.share - share).abs() < 1e-12, "{measure}: {value:?}");
    };
    check(RagMeasure::Faithfulness, (2.0 * no + sigmoid(3.0)) / 3.0, 1.0 / 3.0);
    check(RagMeasure::AnswerRelevancy, sigmoid(4.0), 1.0);
    check(RagMeasure::ContextRecall, (sigmoid(1.0) + no) / 2.0, 0.5);
    check(RagMeasure::ContextRelevance, (sigmoid(-1.0) + sigmoid(1.0) + no) / 3.0, 1.0 / 3.0);
    let (p, q) = (sigmoid(2.0), 0.5);
    let precision = ((no * no) + (no + p) / 2.0 * p + (no + p + q) / 3.0 * q) / (no + p + q);
    check(RagMeasure::ContextPrecision, precision, (0.5 + 2.0 / 3.0) / 2.0);
    let (right, said) = ((2.0 * no + sigmoid(5.0)) / 3.0, (sigmoid(5.0) + no) / 2.0);
    check(RagMeasure::Correctness, 2.0 * right * said / (right + said), 2.0 / 3.0 * 0.5 / (1.0 / 3.0 + 0.5));

    let sentences: Vec<&str> = found.sentences.iter().map(|judged| judged.sentence.text.as_str()).collect();
    assert_eq!(sentences, ["Sure!", "It stands in Paris.", "It is 500 m high."]);
    assert!((found.sentences[1].supported.unwrap() - sigmoid(3.0)).abs() < 1e-6);
    assert_eq!((found.relevance.len(), found.by_context, found.label_mass), (3, false, Some(0.5)));
    let score = verdict.score().unwrap();
    let mean = RagMeasure::ALL.map(|measure| of(measure).mean).iter().sum::<f64>() / 6.0;
    assert!((score.value - mean).abs() < 1e-12);
    assert_eq!(score.parts.len(), 6);
}

#[test]
fn contexts_stand_before_whatever_is_asked_of_them() {
    let model = model(&[]);
    let requests = judge(&model, RagSettings::default()).ask(&item()).unwrap();
    let with_contexts: Vec<String> = requests
        .iter()
        .map(|request| format!("{:?}", request.prompt))
        .filter(|prompt| prompt.contains("It rained."))
        .collect();
    // Three sentences of the response, three contexts twice, two sentences of the reference.
    assert_eq!(with_contexts.len(), 3 + 3 + 3 + 2);
    let before: Vec<&str> = with_contexts.iter().map(|prompt| prompt.split_once("=== Question").unwrap().0).collect();
    assert!(before.iter().all(|state| state == &before[0] && state.contains("Passage 3:")), "{before:?}");
    assert_eq!(requests.len(), with_contexts.len() + 1 + 3 + 2);
}

#[test]
fn what_claims_nothing_is_left_out_on_demand() {
    let model = model(&[("Does the sentence claim", 1.0), ("Statement: Sure!", 9.0)]);
    let settings =
        RagSettings { measures: vec![RagMeasure::Faithfulness], claims_only: true, ..RagSettings::default() };
    let (found, _) = findings(&model, &judge(&model, settings.clone()), item());
    assert!(found.sentences.iter().all(|sentence| sentence.claims.is_some_and(|p| (p - sigmoid(1.0)).abs() < 1e-6)));
    let shy = self::model(&[("Statement", 9.0)]);
    let (found, verdict) = findings(&shy, &judge(&shy, settings), item());
    let why = found.measures[&RagMeasure::Faithfulness].as_ref().unwrap_err();
    assert!(why.detail.contains("claims anything") && verdict.unscored() == Some(why), "{why:?}");
    assert!(found.sentences[0].supported > Some(0.9), "it is shown all the same");
}

#[test]
fn an_absent_field_costs_what_needs_it_and_says_so() {
    let model = model(&[("", 1.0)]);
    let judge = judge(&model, RagSettings::default());
    let bare = RagItem { reference: None, contexts: Vec::new(), ..item() };
    let (found, verdict) = findings(&model, &judge, bare);
    let why = |measure| found.measures[&measure].as_ref().unwrap_err().detail.as_str();
    assert!(found.measures[&RagMeasure::AnswerRelevancy].is_ok() && verdict.score().is_some());
    assert_eq!(why(RagMeasure::Faithfulness), "the row has no contexts");
    assert_eq!(why(RagMeasure::Correctness), "the row has no reference");
    // Without a reference, a context that helps to answer the question is of use.
    let (found, _) = findings(&model, &judge, RagItem { reference: None, ..item() });
    assert!(found.measures[&RagMeasure::ContextPrecision].is_ok());
    let (found, _) = findings(&model, &judge, RagItem { reference: None, question: None, ..item() });
    assert_eq!(found.measures[&RagMeasure::ContextPrecision].as_ref().unwrap_err().detail, "the row has no question");
    let odd =
        RagItem { unread: vec![(RagField::Contexts, "they are a number".to_owned())], contexts: Vec::new(), ..item() };
    let (found, _) = findings(&model, &judge, odd);
    assert_eq!(found.measures[&RagMeasure::ContextRecall].as_ref().unwrap_err().detail, "they are a number");
    let odd = RagItem { unread: vec![(RagField::Sentences, "they overlap".to_owned())], ..item() };
    let (found, _) = findings(&model, &judge, odd);
    for (measure, value) in &found.measures {
        let is_of_sentences = [RagMeasure::Faithfulness, RagMeasure::Correctness].contains(measure);
        let why = value.as_ref().err().map(|why| why.detail.as_str());
        assert_eq!(why, is_of_sentences.then_some("they overlap"), "{measure}");
    }
    let empty = RagItem { response: Some(" -- \n".to_owned()), ..RagItem::default() };
    let (found, verdict) = findings(&model, &judge, empty);
    assert!(found.measures.values().all(|found| found.as_ref().is_err_and(|why| why.reason == Reason::Missing)));
    assert!(verdict.unscored().is_some());
}

#[test]
fn a_response_whose_sentences_are_none_has_no_mean_of_nothing() {
    let model = model(&[("", 1.0)]);
    let judge = judge(&model, RagSettings::default());
    let cut = RagItem { sentences: Some(Vec::new()), ..item() };
    let (found, verdict) = findings(&model, &judge, cut);
    for measure in [RagMeasure::Faithfulness, RagMeasure::Correctness] {
        let why = found.measures[&measure].as_ref().unwrap_err();
        assert_eq!((why.reason, why.detail.as_str()), (Reason::Missing, "the response has no sentences"), "{measure}");
    }
    let measured = found.measures.values().filter(|value| value.is_ok()).count();
    assert_eq!((measured, found.sentences.len()), (4, 0));
    // All of these say yes with log-odds 1.
    assert!((verdict.value().unwrap() - sigmoid(1.0)).abs() < 1e-6, "{verdict:?}");
}

#[test]
fn contexts_that_do_not_fit_together_are_read_one_by_one() {
    let wide = ScriptedBackbone::new(2).with_logits(|before, _, label| match label {
        'Y' if before.contains("in Paris.") && before.contains("Statement: It stands") => 3.0,
        'Y' => -2.0,
        _ => 0.0,
    });
    let contexts: Vec<String> =
        item().contexts.iter().map(|context| format!("{} {context}", "-".repeat(500))).collect();
    let settings = RagSettings { measures: vec![RagMeasure::Faithfulness], ..RagSettings::default() };
    let narrow = wide.with_info(|info| info.max_len = 1200);
    let judge = judge(&narrow, settings);
    let (found, _) = findings(&narrow, &judge, RagItem { contexts, ..item() });
    assert!(found.by_context, "{found:?}");
    let supported: Vec<f64> = found.sentences.iter().map(|sentence| sentence.supported.unwrap()).collect();
    // The best of the three contexts.
    assert!((supported[1] - sigmoid(3.0)).abs() < 1e-6 && (supported[0] - sigmoid(-2.0)).abs() < 1e-6, "{supported:?}");
}

#[test]
fn the_judge_is_one() {
    let model = model(&[("", 1.0)]);
    for by_context in [false, true] {
        let judge = judge(&model, RagSettings { by_context, claims_only: by_context, ..RagSettings::default() });
        let items = [item(), RagItem::default(), RagItem { contexts: vec!["one".to_owned()], ..item() }];
        check_judge(&judge, &model, items).unwrap();
    }
}
