//! A result never depends on its company: every judge of this crate alone, one item at a time, and all of them
//! together on items that share prompts.

use std::sync::Arc;

use crate::{asking, one, probes::Saying};
use judge_core::testing::ScriptedBackbone;
use judge_core::{
    Backbone, Error, ItemId, Judge, Layer, Lens, Outcome, Prompt, PromptTemplate, Reason, Request, Rounds, Runner,
    Scale, Score, Unscored, Want,
    combine::{
        Calibrated, EachAnswer, GradedPair, Named, OrderPolicy, Panel, PanelRule, PlaceCorrected, Repeated, RoundRobin,
        Swapped, Tournament,
    },
    inspector::{InspectorJudge, InspectorSettings, ProbeOutput},
    lager::{Condition, LagerJudge, LagerSettings, ScoreRule, States, Variant},
    prompted::{
        LikelihoodJudge, PromptFamily, PromptedJudge, ResponseLikelihoodJudge, Task, VerdictFrom, WrittenJudge,
    },
    request::{Generation, LabelRead, Pooling, ReadAt, ReplyPooling, Sampling, Signal},
    reward::{RewardHead, RewardJudge},
    runner::RunSettings,
    verdict::Calibration,
};
use proptest::prelude::*;

type Item = Vec<(&'static str, &'static str)>;

/// The prompt of all judges of one response, so that they share passes with one another and, where two items differ
/// in other fields only, between items.
const SINGLE: &str = "{instruction}{response}";
/// The prompt of all judges of pairs.
const PAIR: &str = "{response_a}{response_b}";

fn template(text: &str) -> PromptTemplate {
    PromptTemplate::new(Prompt::Raw(text.into())).unwrap()
}

fn generation(max_new_tokens: usize) -> Generation {
    Generation { max_new_tokens, ..Generation::default() }
}

/// Writes grades, choices and nothing, reads NaN in layer 2 behind an `x`, and has little room.
fn model() -> ScriptedBackbone {
    ScriptedBackbone::new(3)
        .with_reply(|prompt| match prompt.chars().map(u32::from).sum::<u32>() % 5 {
            0 => "no idea".into(),
            1 => "Score: [[2]]".into(),
            2 => "[[A]]".into(),
            3 => "[[B]]".into(),
            _ => "5 Score: [[4]]".into(),
        })
        .with_logits(|before, layer, label| match (before.ends_with('x'), layer) {
            (true, Layer(2)) => f32::NAN,
            _ => (before.len() * 31 + layer.0 * 7 + label as usize) as f32 % 13.0,
        })
        .with_label_mass(|before| (before.len() % 10) as f32 / 10.0)
        .with_info(|info| info.max_len = 24)
}

/// Wants this of the same prompt, and says all that it sees.
fn nosy(want: Want) -> impl Judge<Item> {
    let ask = move |item: &Item| Ok(vec![Request { prompt: template(SINGLE).fill(item)?, want: want.clone() }]);
    let decide = |_: &Item, rounds: &Rounds<'_>| Err(Unscored::new(Reason::NoLabel, format!("{rounds:?}")).into());
    asking::judge("nosy", ask, decide)
}

fn built_in(model: &ScriptedBackbone) -> Result<Vec<Box<dyn Judge<Item>>>, Error> {
    let scale = Scale::integers(1, 5)?;
    let family =
        |name, task, text, scale: &Scale| PromptFamily::new(name, task, template(text), scale.clone(), ("", "]]"), 12);
    let single = family("single", Task::Single("strict".parse()?), SINGLE, &scale)?;
    let pair_scale = PromptFamily::pair_scale("A", Some("C"), "B")?;
    let pair = family("pair", Task::Pair("letters".parse()?), PAIR, &pair_scale)?;
    let lager = |change: &dyn Fn(&mut LagerSettings)| {
        let mut settings = LagerSettings::prompt_end(scale.clone());
        (settings.template, settings.opening) = (template(SINGLE), String::new());
        change(&mut settings);
        LagerJudge::new(settings, model)
    };
    let last_label = |settings: &mut LagerSettings| {
        settings.condition = Condition::Direct { generation: generation(12), rule: ScoreRule::LastLabel };
    };
    let reasoning = |settings: &mut LagerSettings| {
        let rule = ScoreRule::AfterMarker { marker: "Score:".into() };
        settings.condition = Condition::Reasoning { generation: generation(12), rule };
    };
    let mean_without_last = |settings: &mut LagerSettings| {
        (settings.variant, settings.states) = (Some(Variant::MeanExpected), States::DropLast);
    };
    let likely = |field| ResponseLikelihoodJudge::new(template("{instruction}"), field);
    let reward = || {
        let head = RewardHead::new(vec!["good".into()], vec![1.0, -2.0, 0.5, 3.0], model.info().d_model)?;
        Ok::<_, Error>(RewardJudge::new(head, None, model.info())?.with_template(template(SINGLE)))
    };
    let summing = Saying {
        signals: vec![(Layer(3), Signal::State(Pooling::Mean)), (Layer(1), Signal::AttentionEntropy)],
        classes: vec![1, 2, 3],
        settings: None,
        output: |features: &[f32]| {
            let number = features.iter().map(|&x| f64::from(x)).sum();
            ProbeOutput { number: Some(number), ..ProbeOutput::new(1) }
        },
    };
    let inspector = InspectorSettings { aspect: "sum".into(), template: template(SINGLE), probe: Arc::new(summing) };
    let sampling = Sampling::Random { temperature: 1.0, top_k: None, top_p: None, seed: 7, stream: 0 };
    let sampled = WrittenJudge::new(single.clone()).with_generation(Generation { sampling, ..generation(12) });
    let calibrator = |value: f64| {
        Ok::<_, Error>(Calibration { value: value / 2.0, low: value / 2.0 - 1.0, high: value / 2.0 + 1.0, level: 0.9 })
    };
    Ok(vec![
        Box::new(lager(&|_| {})?),
        Box::new(lager(&|settings| settings.lens = Lens::Normed)?),
        Box::new(lager(&mean_without_last)?),
        Box::new(lager(&last_label)?),
        Box::new(lager(&reasoning)?),
        Box::new(WrittenJudge::new(single.clone())),
        Box::new(WrittenJudge::new(single.clone()).with_generation(generation(9))),
        Box::new(LikelihoodJudge::new(single.clone())),
        Box::new(PromptedJudge::new(single.clone(), VerdictFrom::Logits, None, model)?),
        Box::new(likely("response")),
        Box::new(likely("response_a")),
        Box::new(InspectorJudge::new(inspector, model.info())?),
        Box::new(reward()?),
        Box::new(Repeated::new("samples", sampled, 2)?.with_least(1)),
        Box::new(Swapped::new(WrittenJudge::new(pair.clone()), OrderPolicy::Average)),
        Box::new(Swapped::new(LikelihoodJudge::new(pair.clone()), OrderPolicy::TieUnlessAgreed)),
        Box::new(Swapped::new(LikelihoodJudge::new(pair.clone()), OrderPolicy::LogOdds)),
        Box::new(PlaceCorrected::new(LikelihoodJudge::new(pair.clone()), 0.5)?),
        Box::new(GradedPair::new(lager(&|_| {})?)),
        Box::new(GradedPair::new(likely("response"))),
        Box::new(GradedPair::of_rewards(reward()?)),
        Box::new(EachAnswer::new(likely("response"))),
        Box::new(Tournament::new(Swapped::new(LikelihoodJudge::new(pair), OrderPolicy::Average), RoundRobin)),
        Box::new(Calibrated::new(lager(&last_label)?, calibrator)),
    ])
}

/// What a judge says of an item and what it saw, every bit of it.
fn seen(model: &ScriptedBackbone, judges: &[&dyn Judge<Item>], items: &[(u64, Item)], window: usize) -> Vec<String> {
    let settings = RunSettings { window, ..RunSettings::default() };
    let items = items.iter().map(|(number, item)| (ItemId::from(*number), item.clone()));
    let results = Runner::new(model, judges.to_vec()).with_settings(settings).collect(items).unwrap();
    let both = |result: judge_core::ItemResult<Item>| {
        result.verdicts.into_iter().zip(result.outcomes).map(|both| format!("{both:?}")).collect::<Vec<_>>()
    };
    results.into_iter().flat_map(both).collect()
}

fn check(model: &ScriptedBackbone, judges: &[&dyn Judge<Item>], items: &[Item], window: usize) {
    let numbered: Vec<(u64, Item)> = (0..).zip(items.iter().cloned()).collect();
    let alone: Vec<Vec<String>> = numbered
        .iter()
        .map(|item| judges.iter().flat_map(|&judge| seen(model, &[judge], std::slice::from_ref(item), 1)).collect())
        .collect();
    let together = seen(model, judges, &numbered, window);
    for (place, (found, expected)) in together.iter().zip(alone.iter().flatten()).enumerate() {
        assert_eq!(found, expected, "item {}, judge {}", place / judges.len(), judges[place % judges.len()].name());
    }
    let (mut judges, mut numbered) = (judges.to_vec(), numbered);
    judges.reverse();
    numbered.reverse();
    let together = seen(model, &judges, &numbered, window);
    let reversed = alone.iter().rev().flat_map(|item| item.iter().rev());
    for (place, (found, expected)) in together.iter().zip(reversed).enumerate() {
        assert_eq!(found, expected, "reversed, judge {}", judges[place % judges.len()].name());
    }
}

fn wants() -> impl Strategy<Value = Want> {
    let layers = || prop::sample::subsequence(vec![Layer(1), Layer(2), Layer(3)], 1..=3);
    let read =
        (layers(), any::<bool>(), 0..3_usize, any::<bool>()).prop_map(|(layers, raw, at, label_mass)| LabelRead {
            tokens: vec!['1' as u32, '2' as u32],
            layers,
            lens: if raw { Lens::Raw } else { Lens::Normed },
            at: [ReadAt::PromptEnd, ReadAt::LabelSteps, ReadAt::EveryStep][at],
            label_mass,
        });
    let pairs = vec![(Layer(0), Pooling::Mean), (Layer(3), Pooling::Mean), (Layer(3), Pooling::Last)];
    let continuations = prop::sample::subsequence(vec!["a".to_owned(), "1".into(), "ab".into()], 0..=3);
    let all = (
        prop::option::of(read),
        prop::sample::subsequence(pairs, 0..=3).prop_shuffle(),
        prop::sample::subsequence(vec![Layer(1), Layer(3)], 0..=2),
        any::<bool>(),
        continuations.prop_shuffle(),
        prop::option::of(prop::sample::select(vec![9_usize, 12])),
        prop::sample::subsequence(vec![(Layer(0), ReplyPooling::Last), (Layer(3), ReplyPooling::Mean)], 0..=2),
    );
    all.prop_map(|(read, pooled, attention_entropy, prompt_log_probs, continuations, new, reply)| {
        let steps = read.as_ref().is_some_and(|read| read.at != ReadAt::PromptEnd) || !reply.is_empty();
        let generate = new.or(steps.then_some(12)).map(generation);
        let labels = read.into_iter().collect();
        Want { labels, pooled, attention_entropy, prompt_log_probs, continuations, generate, reply }
    })
}

fn items() -> impl Strategy<Value = Vec<Item>> {
    // Few texts, so that prompts meet: also as the response by itself behind the prompt of another item. `x`
    // overflows, the long one has no room for a text.
    let text = || prop::sample::select(vec!["a", "b", "ab", "x", "aaaaaaaaaaaaaa", ""]);
    let names = ["instruction", "response", "response_a", "response_b", "response_1", "response_2", "response_3"];
    let item = prop::collection::vec(text(), names.len())
        .prop_map(move |texts| names.into_iter().zip(texts).collect::<Item>());
    prop::collection::vec(item, 1..6)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn every_judge_sees_in_company_what_it_sees_alone(items in items(), window in 1..8_usize) {
        let model = model();
        let judges = built_in(&model).unwrap();
        let judges: Vec<&dyn Judge<Item>> = judges.iter().map(AsRef::as_ref).collect();
        let members = [0, 5, 7, 8].map(|member: usize| judges[member]);
        let panel = Panel::new("panel", members, PanelRule::Mean).unwrap().with_least(1);
        let judges: Vec<&dyn Judge<Item>> = judges.into_iter().chain([&panel as _]).collect();
        check(&model, &judges, &items, window);
    }

    #[test]
    fn a_reading_is_cut_to_what_was_wanted(
        wants in prop::collection::vec(wants(), 1..8),
        items in items(),
        window in 1..8_usize,
    ) {
        let judges: Vec<_> = wants.into_iter().map(nosy).collect();
        let judges: Vec<&dyn Judge<Item>> = judges.iter().map(|judge| judge as _).collect();
        check(&model(), &judges, &items, window);
    }
}

/// The case that started this: rows with one instruction, each with its own response.
#[test]
fn every_response_to_one_instruction_has_its_own_likelihood() {
    let model = ScriptedBackbone::new(2).with_log_probs(|_, next| if next == 'a' { -1.0 } else { -4.0 });
    let judge = ResponseLikelihoodJudge::new(template("{instruction}"), "response");
    let items = ["aa", "ab", "bb"].map(|response| (response.into(), [("instruction", "i"), ("response", response)]));
    let results = Runner::new(&model, vec![&judge]).collect(items).unwrap();
    let values: Vec<Option<f64>> = results.iter().map(|result| result.verdicts[0].value()).collect();
    assert_eq!(values, [Some(-1.0), Some(-2.5), Some(-4.0)]);
    let best = EachAnswer::new(&judge);
    let item = [("instruction", "i"), ("response_1", "bb"), ("response_2", "aa")];
    assert_eq!(one::verdict(&model, &best, item).value(), Some(-1.0));
}

/// What a model refuses alone, it refuses in company, and the judge that wants it is named.
#[test]
fn a_request_that_is_refused_alone_is_refused_in_company() {
    let read = |at, layers: &[usize]| LabelRead {
        tokens: vec!['1' as u32],
        layers: layers.iter().map(|&layer| Layer(layer)).collect(),
        lens: Lens::Raw,
        at,
        label_mass: false,
    };
    let labels = |labels: Vec<LabelRead>| Want { labels, ..Want::default() };
    let end = ReadAt::PromptEnd;
    let all = Want { generate: Some(generation(3)), ..labels(vec![read(end, &[0, 1, 2, 3])]) };
    let wrong = [
        labels(vec![read(ReadAt::EveryStep, &[1])]),
        labels(vec![read(end, &[2, 1])]),
        labels(vec![read(end, &[])]),
        labels(vec![read(end, &[1]), read(end, &[2])]),
        labels(vec![read(end, &[4])]),
        Want { attention_entropy: vec![Layer(2), Layer(1)], ..Want::default() },
        Want { reply: vec![(Layer(1), ReplyPooling::Mean)], ..Want::default() },
        Want { attention_entropy: vec![Layer(0)], ..Want::default() },
        Want { continuations: vec![String::new()], ..Want::default() },
        // What is refused for what the model has, and so in one pass with the rest.
        Want { pooled: vec![(Layer(9), Pooling::Mean)], ..Want::default() },
    ];
    // The second, which other models bring, is in one pass with a request that writes nothing.
    let generates = [generation(0), Generation { top_log_probs: 3, ..generation(3) }]
        .map(|generate| (labels(vec![read(end, &[1])]), Want { generate: Some(generate), ..Want::default() }));
    for (company, want) in wrong.map(|want| (all.clone(), want)).into_iter().chain(generates) {
        let (company, judge) = (Named::new("company", nosy(company)), Named::new("wrong", nosy(want.clone())));
        let judges: Vec<&dyn Judge<Item>> = vec![&company, &judge];
        let item = vec![("instruction", "a"), ("response", "b")];
        let error = Runner::new(&model(), judges).collect([("one".into(), item)]).unwrap_err();
        assert!(error.to_string().starts_with("judge wrong, item \"one\": request "), "{want:?}: {error}");
    }
}

/// A judge whose decision depends on what it was asked before is found out.
#[test]
fn a_judge_with_a_memory_is_found_out() {
    let decided = std::sync::atomic::AtomicU32::default();
    let ask = |item: &Item| nosy(Want::default()).ask(item);
    let counting = asking::judge("counting", ask, |_: &Item, rounds: &Rounds<'_>| {
        let outcomes: Vec<&Outcome> = rounds.outcomes().collect();
        outcomes[0].reading()?;
        Ok(Score::new(decided.fetch_add(1, std::sync::atomic::Ordering::Relaxed).into()))
    });
    let items = ["a", "b"].map(|text| vec![("instruction", text), ("response", text)]);
    let error = judge_core::testing::check_judge(&counting, &model(), items).unwrap_err();
    let message = error.to_string();
    assert!(message.starts_with("judge counting breaks its contract: item 0 depends on the other items"), "{message}");
}
