use serde_json::{Value, json};

use super::*;
use crate::Reading;
use crate::decision::{Answer, Answered, DecisionItem};
use crate::reading::{Finish, Generated};

fn questions() -> Questions {
    serde_json::from_value(json!({
        "refund": {"type": "noul", "instructions": "Is a refund asked for?"},
        "tone": {"type": "choice", "instructions": "Which tone?", "criteria": {"calm": null, "angry": "Shouts"}},
        "urgency": {"type": "score", "instructions": "How urgent?", "criteria": ["can wait", "today"]},
    }))
    .expect("questions")
}

fn sent(route: DecisionRoute, state: Value, questions: &Questions) -> Vec<Value> {
    let judge = DecisionServiceJudge::new(route, Some(questions.clone()));
    let requests = judge.ask(&Stated(state)).expect("requests");
    let body = |request: Request| match request.prompt {
        Prompt::Raw(text) => serde_json::from_str(&text).expect("JSON"),
        other => panic!("{other:?}"),
    };
    requests.into_iter().map(body).collect()
}

/// A state without questions of its own.
struct Stated(Value);

impl Decidable for Stated {
    fn state(&self) -> &Value {
        &self.0
    }

    fn questions(&self) -> Option<&Questions> {
        None
    }
}

fn replied(reply: &Value) -> Outcome {
    let generated = Some(Generated::text_only(reply.to_string(), Finish::EndToken));
    Outcome::Read(Reading { generated, ..Reading::default() })
}

/// What a service's reply comes to.
fn answered(route: DecisionRoute, questions: &Questions, reply: &Value) -> Vec<Answered> {
    let judge = DecisionServiceJudge::new(route, None);
    let item = DecisionItem { state: json!("s"), questions: questions.clone() };
    let outcomes = [replied(reply)];
    let verdict = match judge.decide(&item, &Rounds::new([&outcomes[..]])) {
        Ok(score) => Verdict::Scored(score),
        Err(JudgeError::Unscored(unscored)) => Verdict::Unscored(unscored),
        Err(JudgeError::Failed(error)) => panic!("{error}"),
    };
    questions.answers(&verdict).expect("answers")
}

#[test]
fn a_request_has_the_form_of_its_route() {
    let state = json!({"mail": "Now!"});
    assert_eq!(
        sent(DecisionRoute::SystemOne, state.clone(), &questions()),
        [json!({"state": {"mail": "Now!"}, "questions": Value::from(questions())})]
    );
    assert_eq!(sent(DecisionRoute::SystemOne, json!(5), &questions())[0]["state"], json!("5"));
    let large = crate::decision::exact_json::from_text("12345678901234567890123").expect("JSON");
    for (route, name) in [(DecisionRoute::SystemOne, "state"), (DecisionRoute::OpenAi, "input")] {
        assert_eq!(sent(route, large.clone(), &questions())[0][name], json!("12345678901234567890123"));
    }
    assert_eq!(
        sent(DecisionRoute::OpenAi, state, &questions()),
        [json!({"input": "{\"mail\":\"Now!\"}", "questions": [
            {"type": "predicate", "name": "refund", "instructions": "Is a refund asked for?"},
            {"type": "choice", "name": "tone", "instructions": "Which tone?",
             "choices": [{"value": "calm"}, {"value": "angry", "description": "Shouts"}]},
            {"type": "score", "name": "urgency", "instructions": "How urgent?", "levels": [{"label": "can wait"}, {"label": "today"}]},
        ]})]
    );
}

#[test]
fn answers_of_both_forms_are_the_same() {
    let system_one = json!({"answers": {
        "refund": {"type": "noul", "noul": 0.25},
        "tone": {"type": "choice", "choice": "angry", "confidence": 0.5, "probabilities": {"calm": 0.25, "angry": 0.75}},
        "urgency": {"type": "score", "score": 0.5, "legend": {}, "confidence": 0.0, "probabilities": {"1": 0.5, "0": 0.5}},
    }, "label_mass": {"tone": 0.5}});
    let openai = json!({"answers": [
        {"type": "predicate", "name": "refund", "probability": 0.25},
        {"type": "choice", "name": "tone", "choice": "angry", "confidence": 0.5, "label_mass": 0.5,
         "probabilities": [{"value": "calm", "probability": 0.25}, {"value": "angry", "probability": 0.75}]},
        {"type": "score", "name": "urgency", "score": 0.5, "confidence": 0.0,
         "probabilities": [{"value": 0, "label": "can wait", "probability": 0.5}, {"value": 1, "label": "today", "probability": 0.5}]},
    ]});
    let found = answered(DecisionRoute::SystemOne, &questions(), &system_one);
    assert_eq!(found, answered(DecisionRoute::OpenAi, &questions(), &openai));
    assert_eq!(found[0].answer, Ok(Answer::Noul { noul: 0.25 }));
    let Ok(Answer::Choice { choice, confidence, .. }) = &found[1].answer else { panic!("{found:?}") };
    assert_eq!((choice.as_str(), *confidence, found[1].label_mass), ("angry", 0.5, Some(0.5)));
    let Ok(Answer::Score { score, .. }) = &found[2].answer else { panic!("{found:?}") };
    assert_eq!(*score, 0.5);
}

#[test]
fn an_odd_answer_costs_its_question() {
    for (route, reply, said) in [
        (
            DecisionRoute::SystemOne,
            json!({"answers": {"refund": {"type": "noul", "noul": 1.0}, "tone": {"type": "choice", "choice": "calm"}, "urgency": {"type": "score", "probabilities": {"0": 0.5, "1": 0.4}}}}),
            ["with its probabilities", "add up to 1"],
        ),
        (
            DecisionRoute::SystemOne,
            json!({"answers": {"refund": {"type": "noul", "noul": 1.0}, "tone": {"type": "noul", "noul": 0.5}}}),
            ["a choice question", "none to the question \"urgency\""],
        ),
        (
            DecisionRoute::SystemOne,
            json!({"answers": {"refund": {"noul": 1.0}, "tone": {"probabilities": {"calm": 0.5, "angry": 0.5, "joking": 0.0}}, "urgency": {"probabilities": {"0": 1.5, "1": -0.5}}}}),
            ["a choice question", "expected probabilities from 0 to 1, found [1.5, -0.5]"],
        ),
        (
            DecisionRoute::OpenAi,
            json!({"answers": [{"type": "choice", "name": "tone", "probabilities": [
                {"value": "calm", "probability": 0.9}, {"value": "calm", "probability": 0.5}, {"value": "angry", "probability": 0.5},
            ]}, {"type": "predicate", "name": "refund", "probability": 1.0}]}),
            ["of the kind choice", "one answer of the service to \"urgency\", found 0"],
        ),
        (
            DecisionRoute::OpenAi,
            json!({"answers": [
                {"type": "refusal", "name": "tone"}, {"type": "score", "probabilities": []}, {"type": "refusal", "name": "urgency"},
                {"type": "refusal", "name": "urgency"}, {"type": "predicate", "name": "refund", "probability": 1.0},
            ]}),
            ["declined", "to \"urgency\", found 2"],
        ),
        (
            DecisionRoute::OpenAi,
            json!({"answers": [{"type": "predicate", "probability": 1.0}, {"type": "choice", "probabilities": [{"value": true, "probability": 1.0}]}, {"type": "score", "probabilities": [{"value": 0, "probability": 1.0}]}]}),
            ["of the kind choice", "of the kind score"],
        ),
    ] {
        let found = answered(route, &questions(), &reply);
        assert_eq!(found[0].answer, Ok(Answer::Noul { noul: 1.0 }), "{reply}");
        for (answered, said) in found[1..].iter().zip(said) {
            let unscored = answered.answer.as_ref().expect_err("no answer");
            assert!(unscored.detail.contains(said), "{unscored}");
        }
    }
    let none = answered(DecisionRoute::SystemOne, &questions(), &json!("no object"));
    assert!(none.iter().all(|answered| answered.answer.is_err()));
    // Without names nothing says which two questions these are about.
    let two = json!({"answers": [{"type": "predicate", "probability": 1.0}, {"type": "refusal"}]});
    for answered in answered(DecisionRoute::OpenAi, &questions(), &two) {
        assert!(answered.answer.is_err_and(|unscored| unscored.detail.contains("no names, and are 2 to 3 questions")));
    }
}

#[test]
fn what_a_form_has_no_place_for_is_not_sent() {
    let all = serde_json::from_value(json!({
        "criteria": {"type": "noul", "instructions": "?", "criteria": {"true": "a"}},
        "silent": {"type": "score", "criteria": ["a", "b"]},
        "plain": {"type": "noul", "instructions": "?"},
    }))
    .expect("questions");
    let sent = sent(DecisionRoute::OpenAi, json!("s"), &all);
    assert_eq!(sent[0]["questions"], json!([{"type": "predicate", "name": "plain", "instructions": "?"}]));
    let found = answered(DecisionRoute::OpenAi, &all, &json!({"answers": [{"type": "predicate", "probability": 0.5}]}));
    assert!(found[0].answer.as_ref().is_err_and(|unscored| unscored.detail.contains("no `criteria`")));
    assert!(found[1].answer.as_ref().is_err_and(|unscored| unscored.detail.contains("needs instructions")));
    assert_eq!(found[2].answer, Ok(Answer::Noul { noul: 0.5 }));
}

/// 130 questions are three requests of at most 64, and each answer comes to its question.
#[test]
fn more_questions_than_a_request_may_have_are_several_requests() {
    let all = Questions::new((0..130).map(|number| (number.to_string(), Question::noul("?")))).expect("questions");
    let outcomes: Vec<Outcome> = sent(DecisionRoute::SystemOne, json!("s"), &all)
        .iter()
        .map(|body| {
            let questions = body["questions"].as_object().expect("questions");
            assert!(questions.len() <= 64);
            let answer = |name: &String| {
                let number: f64 = name.parse().expect("a number");
                (name.clone(), json!({"type": "noul", "noul": number / 1000.0}))
            };
            replied(&json!({"answers": questions.keys().map(answer).collect::<Map<_, _>>()}))
        })
        .collect();
    assert_eq!(outcomes.len(), 3);
    let judge = DecisionServiceJudge::new(DecisionRoute::SystemOne, None);
    let item = DecisionItem { state: json!("s"), questions: all.clone() };
    let score = judge.decide(&item, &Rounds::new([&outcomes[..]])).expect("a score");
    for (number, answered) in all.answers(&Verdict::Scored(score)).expect("answers").iter().enumerate() {
        assert_eq!(answered.answer, Ok(Answer::Noul { noul: number as f64 / 1000.0 }));
    }
}
