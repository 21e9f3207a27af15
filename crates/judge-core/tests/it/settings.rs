//! What judges say of themselves: everything that a verdict depends on, and nothing where they cannot know it.

use std::sync::Arc;

use crate::{combine::Number, probes::Saying};
use judge_core::testing::ScriptedBackbone;
use judge_core::{
    Backbone, Judge, JudgeError, Layer, Lens, Prompt, PromptTemplate, Scale,
    combine::{
        Calibrated, EachAnswer, GradedPair, OrderPolicy, Panel, PanelRule, PlaceCorrected, Renamed, Repeated,
        RoundRobin, Swapped, Tournament,
    },
    decision::{ChecklistJudge, DecisionSettings},
    inspector::{InspectorJudge, InspectorSettings, ProbeOutput},
    lager::{LagerJudge, LagerSettings, States, Variant},
    prompted::{LikelihoodJudge, PromptFamily, PromptedJudge, ResponseLikelihoodJudge, VerdictFrom, WrittenJudge},
    rag::RagJudge,
    request::{Generation, Pooling, Sampling, Signal},
    rerank::{RerankJudge, RerankSettings},
    reward::{RewardHead, RewardJudge},
    verdict::Calibration,
};
use serde_json::{Value, json};

type Item = [(&'static str, &'static str); 2];

fn of(judge: &dyn Judge<Item>) -> Option<Value> {
    judge.settings()
}

#[test]
fn judges_and_their_settings_can_be_printed() {
    fn printed<T: std::fmt::Debug>() {}
    printed::<(ChecklistJudge, RagJudge, RerankSettings, RerankJudge, InspectorSettings, Renamed<'_, Value, 2>)>();
    let settings = format!("{:?}", DecisionSettings::default());
    assert!(settings.starts_with("DecisionSettings({") && settings.contains("\"every_layer\":false"), "{settings}");
}

fn model() -> ScriptedBackbone {
    ScriptedBackbone::new(3)
}

fn template(text: &str) -> PromptTemplate {
    PromptTemplate::new(Prompt::user(text)).unwrap()
}

fn lager(change: impl FnOnce(&mut LagerSettings)) -> LagerJudge {
    let mut settings = LagerSettings::prompt_end(Scale::integers(1, 5).unwrap());
    change(&mut settings);
    LagerJudge::new(settings, &model()).unwrap()
}

fn written(change: impl FnOnce(&mut Generation)) -> WrittenJudge {
    let judge = WrittenJudge::new(PromptFamily::built_in("pair").unwrap());
    let mut generation = Generation::default();
    change(&mut generation);
    judge.with_generation(generation)
}

fn drawn(seed: u64) -> Sampling {
    Sampling::Random { temperature: 1.0, top_k: None, top_p: None, seed, stream: 0 }
}

fn reward(weights: [f32; 4], label: &str) -> RewardJudge {
    let model = model();
    let d_model = model.info().d_model;
    let weights = weights.iter().copied().cycle().take(2 * d_model).collect();
    let head = RewardHead::new(vec!["good".into(), "safe".into()], weights, d_model).unwrap();
    RewardJudge::new(head, Some(label), model.info()).unwrap()
}

/// A judge by a probe that says what it is, or does not.
fn inspector(aspect: &str, text: &str, probe: Option<u8>) -> InspectorJudge {
    let signals = vec![(Layer(1), Signal::State(Pooling::Last))];
    let output = |_: &[f32]| ProbeOutput::new(0);
    let probe = Arc::new(Saying { signals, classes: vec![1, 2], settings: probe.map(Value::from), output });
    let settings = InspectorSettings { aspect: aspect.to_owned(), template: template(text), probe };
    InspectorJudge::new(settings, model().info()).unwrap()
}

fn map(value: f64) -> Result<Calibration, JudgeError> {
    Ok(Calibration { value, low: value, high: value, level: 0.9 })
}

#[test]
fn whatever_changes_a_verdict_changes_the_settings() {
    let rewarded = [1.0, 2.0, 3.0, 4.0];
    let (one, other) = (written(|_| {}), lager(|_| {}));
    let panel =
        |judges: Vec<&dyn Judge<Item>>, rule, least| of(&Panel::new("panel", judges, rule).unwrap().with_least(least));
    let family = || PromptFamily::built_in_on("single", Some(5)).unwrap();
    let prompted = |from| of(&PromptedJudge::new(family(), from, None, &model()).unwrap());
    let all = [
        of(&lager(|_| {})),
        of(&lager(|settings| settings.template = template("{response}"))),
        of(&lager(|settings| settings.opening = "grade: ".into())),
        of(&lager(|settings| settings.scale = Scale::integers(1, 4).unwrap())),
        of(&lager(|settings| settings.lens = Lens::Normed)),
        of(&lager(|settings| settings.states = States::DropLast)),
        of(&lager(|settings| settings.variant = Some(Variant::MeanExpected))),
        of(&lager(|settings| settings.condition = judge_core::lager::Condition::direct())),
        of(&written(|_| {})),
        of(&written(|generation| generation.max_new_tokens = 7)),
        of(&written(|generation| generation.sampling = drawn(1))),
        of(&written(|generation| generation.sampling = drawn(2))),
        of(&WrittenJudge::new(PromptFamily::built_in("pair-forced").unwrap())),
        of(&LikelihoodJudge::new(family())),
        of(&ResponseLikelihoodJudge::new(template("{instruction}"), "response")),
        of(&ResponseLikelihoodJudge::new(template("{instruction}"), "answer")),
        of(&ResponseLikelihoodJudge::new(template("{instruction}!"), "response")),
        of(&reward(rewarded, "good")),
        of(&reward(rewarded, "safe")),
        of(&reward([1.0, 2.0, 3.0, 5.0], "good")),
        of(&reward(rewarded, "good").with_template(template("{response}"))),
        of(&inspector("fluency", "{response}", Some(1))),
        of(&inspector("fluency", "{response}", Some(2))),
        of(&inspector("fluency", "{response}!", Some(1))),
        prompted(VerdictFrom::Text),
        prompted(VerdictFrom::Logits),
        prompted(VerdictFrom::Layers),
        of(&Calibrated::new(&one, map).with_settings("a")),
        of(&Calibrated::new(&one, map).with_settings("b")),
        of(&Calibrated::new(&other, map).with_settings("a")),
        of(&Repeated::new("r", &one, 2).unwrap()),
        of(&Repeated::new("r", &one, 3).unwrap()),
        of(&Repeated::new("r", &one, 3).unwrap().with_least(1)),
        of(&Swapped::new(&one, OrderPolicy::Average)),
        of(&Swapped::new(&one, OrderPolicy::Given)),
        of(&Swapped::new(&one, OrderPolicy::LogOdds)),
        of(&PlaceCorrected::new(&one, 0.5).unwrap()),
        of(&PlaceCorrected::new(&one, -0.5).unwrap()),
        of(&GradedPair::new(&other)),
        of(&GradedPair::new(&other).with_margin(0.1)),
        of(&GradedPair::of_rewards(&other)),
        of(&EachAnswer::new(&other)),
        of(&Tournament::new(&one, RoundRobin)),
        panel(vec![&one, &other], PanelRule::Mean, 2),
        panel(vec![&other, &one], PanelRule::Mean, 2),
        panel(vec![&one, &other], PanelRule::Median, 2),
        panel(vec![&one, &other], PanelRule::Mean, 1),
        panel(vec![&one, &other], PanelRule::Weighted(vec![1.0, 2.0]), 2),
    ];
    let all: Vec<Value> = all.into_iter().map(|settings| settings.expect("a judge that says what it is")).collect();
    for (place, settings) in all.iter().enumerate() {
        assert_eq!(all[..place].iter().position(|other| other == settings), None, "{place}: {settings}");
    }
    // The same judge says the same.
    assert_eq!(of(&lager(|_| {})), Some(all[0].clone()));
    assert_eq!(of(&&lager(|_| {})), Some(all[0].clone()));
}

#[test]
fn a_judge_that_does_not_say_makes_no_judge_that_does() {
    let silent: &dyn Judge<Item> = &Number;
    assert_eq!(of(&Number), None);
    assert_eq!(of(&Panel::new("p", vec![silent], PanelRule::Mean).unwrap()), None);
    assert_eq!(of(&Repeated::new("r", Number, 2).unwrap()), None);
    assert_eq!(of(&Swapped::new(Number, OrderPolicy::Average)), None);
    assert_eq!(of(&PlaceCorrected::new(Number, 0.5).unwrap()), None);
    assert_eq!(of(&GradedPair::new(Number)), None);
    assert_eq!(of(&EachAnswer::new(Number)), None);
    assert_eq!(of(&Tournament::new(Number, RoundRobin)), None);
    assert_eq!(of(&Calibrated::new(Number, map).with_settings(json!("c"))), None);
    // A function does not say what it computes, nor every probe what it is.
    assert_eq!(of(&Calibrated::new(lager(|_| {}), map)), None);
    assert_eq!(of(&inspector("fluency", "{response}", None)), None);
}
