//! Reward heads as judges of single responses, of pairs and of many answers.

use std::ops::ControlFlow;

use crate::one;
use judge_core::testing::{ScriptedBackbone, check_judge};
use judge_core::{
    Backbone, Judge, Message, Outcome, Prompt, Request, Score, TextModel,
    combine::{EachAnswer, GradedPair},
    reward::{RewardHead, RewardJudge, closed_conversation},
    verdict::CombinedBy,
};

type Item = Vec<(&'static str, &'static str)>;

fn head(model: &ScriptedBackbone) -> RewardHead {
    let d_model = model.info().d_model;
    let weights = (0..2 * d_model).map(|i| (i as f32 - 3.0) * 0.25).collect();
    RewardHead::new(vec!["helpful".into(), "safe".into()], weights, d_model).unwrap()
}

fn judge(model: &ScriptedBackbone) -> RewardJudge {
    RewardJudge::new(head(model), Some("safe"), model.info()).unwrap()
}

/// The second reward of a response, straight from the state.
fn reward(model: &ScriptedBackbone, response: &str) -> f64 {
    let turns = vec![Message::user("why"), Message::new("assistant", response)];
    let head = head(model);
    let request = Request { prompt: closed_conversation(turns), want: head.want(model.info()) };
    let mut found = None;
    let mut take = |_, outcome| {
        let Outcome::Read(reading) = outcome else { panic!("{outcome:?}") };
        found = Some(head.of_reading(&reading, model.info()).unwrap()[1]);
        ControlFlow::Continue(())
    };
    model.run(&[request], &mut take).unwrap();
    found.unwrap()
}

fn score(model: &ScriptedBackbone, judge: &dyn Judge<Item>, item: Item) -> Score {
    one::verdict(model, judge, item).score().unwrap().clone()
}

#[test]
fn a_response_has_its_reward_behind_a_closed_turn() {
    let model = ScriptedBackbone::new(3);
    let judge = judge(&model);
    let item = vec![("instruction", "why"), ("response", "because")];
    let Prompt::Chat { messages, template_args, prefill, .. } = judge.ask(&item).unwrap().remove(0).prompt else {
        panic!("a conversation")
    };
    assert_eq!(messages, [Message::user("why"), Message::new("assistant", "because")]);
    assert_eq!((template_args["add_generation_prompt"].as_bool(), prefill.as_str()), (Some(false), ""));
    let found = score(&model, &judge, item.clone());
    assert_eq!((found.value, found.distribution), (reward(&model, "because"), None));
    check_judge(&judge, &model, &[item, vec![("instruction", "why"), ("response", "so")]]).unwrap();
}

#[test]
fn the_difference_of_rewards_is_the_log_odds_of_a_preference() {
    let model = ScriptedBackbone::new(3);
    let pair = GradedPair::of_rewards(judge(&model));
    let of = |a, b| score(&model, &pair, vec![("instruction", "why"), ("response_a", a), ("response_b", b)]);
    let (first, second) = (reward(&model, "so"), reward(&model, "because"));
    assert_ne!(first, second);
    let found = of("so", "because");
    assert!((found.value - 1.0 / (1.0 + (second - first).exp())).abs() < 1e-15);
    assert!((found.value + of("because", "so").value - 1.0).abs() < 1e-15);
    assert_eq!(found.distribution.unwrap().probabilities()[1], found.value);
    assert_eq!(found.combined_by, Some(CombinedBy::Grades));
    assert_eq!(found.parts.iter().map(|part| part.verdict.value()).collect::<Vec<_>>(), [Some(first), Some(second)]);
    assert_eq!(of("so", "so").value, 0.5);
}

#[test]
fn the_best_of_many_answers_has_the_highest_reward() {
    let model = ScriptedBackbone::new(3);
    let each = EachAnswer::new(judge(&model));
    let answers = ["so", "because", "no idea"];
    let item = vec![
        ("instruction", "why"),
        ("response_1", answers[0]),
        ("response_2", answers[1]),
        ("response_3", answers[2]),
    ];
    let found = score(&model, &each, item);
    let rewards = answers.map(|answer| reward(&model, answer));
    assert_eq!(found.value, rewards.into_iter().fold(f64::MIN, f64::max));
    assert_eq!(found.parts.iter().map(|part| part.verdict.value().unwrap()).collect::<Vec<_>>(), rewards);
}
