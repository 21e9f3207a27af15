//! The runner and the LAGER judge over a scripted model.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::ops::ControlFlow;

use judge_core::testing::ScriptedBackbone;
use judge_core::{
    Backbone, BackboneError, Condition, ContractBreach, Error, Fields, Graded, ItemId, ItemResult, Judge,
    LabelInContext, LagerJudge, LagerSettings, Layer, LayerWeightFit, Lens, ModelInfo, Outcome, Pooling, Progress,
    Prompt, PromptTemplate, Reason, Request, RunEvent, RunSettings, RunSummary, Runner, Scale, ScoreDistribution,
    States, TokenId, Unscored, Variant, Verdict, Want,
};
use proptest::prelude::*;

#[derive(Clone, Debug, PartialEq)]
struct Answer(String);

impl Fields for Answer {
    fn field(&self, name: &str) -> Option<Cow<'_, str>> {
        matches!(name, "instruction" | "response" | "rubric").then_some(Cow::Borrowed(self.0.as_str()))
    }
}

fn five() -> Scale {
    Scale::integers(1, 5).unwrap()
}

/// Replies a score that depends on the prompt; every seventh prompt gets none.
fn model() -> ScriptedBackbone {
    ScriptedBackbone::new(3).with_reply(|prompt| match prompt.bytes().map(usize::from).sum::<usize>() % 7 {
        0 => "no idea".into(),
        n => format!("score: {}", 1 + n % 5),
    })
}

fn items(n: usize) -> Vec<(ItemId, Answer)> {
    (0..n).map(|i| (ItemId::from(i as u64), Answer(format!("answer {}", i % 11)))).collect()
}

/// All results and the summary.
fn run<I: Clone>(
    model: &dyn Backbone,
    judges: &[&dyn Judge<I>],
    items: impl IntoIterator<Item = (ItemId, I)>,
    settings: RunSettings,
) -> (Vec<ItemResult<I>>, RunSummary) {
    let mut results = Vec::new();
    let runner = Runner::new(model, judges.to_vec()).with_settings(settings);
    let summary = runner
        .run(items, &mut |event| {
            if let RunEvent::Item(result) = event {
                results.push(result);
            }
            ControlFlow::Continue(())
        })
        .unwrap();
    (results, summary)
}

fn window(window: usize) -> RunSettings {
    RunSettings { window, ..RunSettings::default() }
}

/// Reads one pooled state and scores by the sign of its first value.
struct PoolJudge(Layer);

impl<I: Fields> Judge<I> for PoolJudge {
    fn ask(&self, item: &I) -> Result<Vec<Request>, Error> {
        let prompt = PromptTemplate::pointwise_direct(&five()).fill(item)?;
        Ok(vec![Request { prompt, want: Want { pooled: vec![(self.0, Pooling::Mean)], ..Want::default() } }])
    }

    fn decide(&self, _: &I, done: &[Outcome]) -> Result<Verdict, Error> {
        let [Outcome::Read(reading)] = done else { return Err(Error::NotRead { what: "pooled states" }) };
        let value = reading.pooled(self.0, Pooling::Mean).ok_or(Error::NotRead { what: "pooled states" })?[0];
        let distribution = ScoreDistribution::softmax(&Scale::integers(0, 1)?, &[0.0, f64::from(value)])?;
        Ok(Verdict::Scored { distribution, interval: None })
    }
}

#[test]
fn three_conditions_of_lager() {
    let model = ScriptedBackbone::new(3)
        .with_reply(|prompt| match prompt {
            p if p.contains("Feedback:") => "2 faults. Score: 4/5".into(),
            _ => "score: 3".into(),
        })
        // The last layer prefers 5 at a prompt's end, and what was written elsewhere; the others know nothing.
        .with_logits(|before, layer, label| match (layer.0, label) {
            (3, '4') if before.ends_with("Score: ") => 50.0,
            (3, '3') if before.ends_with("\nscore: ") => 50.0,
            _ => 0.0,
        });
    let scored = |settings: LagerSettings| {
        let judge = LagerJudge::new(settings, &model).unwrap();
        let (results, _) = run(&model, &[&judge], items(1), window(1));
        let Verdict::Scored { distribution, .. } = &results[0].verdicts[0] else { panic!("a score") };
        let table = judge.table(&results[0].outcomes[0]).unwrap().unwrap();
        assert_eq!((table.layers().len(), table.n_scores()), (4, 5));
        (distribution.expected(), distribution.mode().value)
    };
    let with = |variant, settings| LagerSettings { variant: Some(variant), ..settings };
    assert_eq!(scored(with(Variant::LastMode, LagerSettings::reasoning(five()))), (4.0, 4.0));
    assert_eq!(scored(with(Variant::LastMode, LagerSettings::direct(five()))), (3.0, 3.0));
    assert_eq!(scored(with(Variant::LastMode, LagerSettings::prompt_end(five()))), (3.0, 3.0));
    let (expected, mode) = scored(LagerSettings::reasoning(five())); // mean of 0, 0, 0 and 50 is 12.5 for label 4
    assert!((expected - 4.0).abs() < 1e-4 && mode == 4.0, "{expected}");
    let dropped = LagerSettings { states: States::DropLast, ..LagerSettings::reasoning(five()) };
    assert!((scored(dropped).0 - 3.0).abs() < 1e-12);
    // Another rule finds another score, here the 5 of "4/5", where no layer knows anything.
    let Condition::Reasoning { generation, .. } = Condition::reasoning() else { panic!("reasoning") };
    let last = Condition::Reasoning { generation, rule: judge_core::ScoreRule::LastLabel };
    let last = LagerSettings { condition: last, ..LagerSettings::reasoning(five()) };
    assert!((scored(last).0 - 3.0).abs() < 1e-12);
}

#[test]
fn fitted_weights_find_the_layer_that_knows() {
    // Layer 2 knows the score in the text, layers 0 and 1 guess, the last is sure of something else.
    let model = ScriptedBackbone::new(3).with_logits(|before, layer, label| {
        let quality = before.split("quality ").nth(1).and_then(|rest| rest.chars().next()).unwrap_or('3');
        match layer.0 {
            2 if label == quality => 4.0,
            3 if label == '5' => 3.0,
            _ => 0.0,
        }
    });
    let judge = LagerJudge::new(LagerSettings::prompt_end(five()), &model).unwrap();
    let texts = (0..60u64).map(|i| (ItemId::from(i), Answer(format!("quality {} {i}", 1 + i % 5))));
    let (results, _) = run(&model, &[&judge], texts, window(16));
    let graded: Vec<Graded> = results
        .iter()
        .enumerate()
        .map(|(i, result)| Graded {
            table: judge.table(&result.outcomes[0]).unwrap().unwrap(),
            human: (1 + i % 5) as f64,
        })
        .collect();
    let fit = LayerWeightFit { epochs: 20, ..LayerWeightFit::default() };
    let weights = fit.fit(&graded, judge.origin()).unwrap();
    assert!(weights.weights()[2] > 0.6, "{:?}", weights.weights());

    let settings = LagerSettings { weights: Some(weights.clone()), ..LagerSettings::prompt_end(five()) };
    let tuned = LagerJudge::new(settings.clone(), &model).unwrap();
    assert_eq!((tuned.variant(), judge.variant()), (Variant::WeightedExpected, Variant::MeanExpected));
    assert_eq!(tuned.weight_notes(), []);
    let texts = (0..5u64).map(|i| (ItemId::from(i), Answer(format!("quality {} again", 1 + i))));
    let (results, _) = run(&model, &[&tuned, &judge], texts, window(16));
    for (i, result) in results.iter().enumerate() {
        let modes: Vec<f64> = result
            .verdicts
            .iter()
            .map(|verdict| match verdict {
                Verdict::Scored { distribution, .. } => distribution.mode().value,
                Verdict::Unscored(unscored) => panic!("{unscored}"),
            })
            .collect();
        assert_eq!(modes[0], (1 + i) as f64);
    }

    // The same weights elsewhere: another template is noted, another lens, states or model refused.
    let direct = LagerSettings { weights: Some(weights), ..LagerSettings::direct(five()) };
    let noted = LagerJudge::new(direct.clone(), &model).unwrap();
    assert_eq!(noted.weight_notes().len(), 2); // template and condition
    let refused = |settings: LagerSettings, model: &dyn Backbone| {
        matches!(LagerJudge::new(settings, model), Err(Error::WeightsRefused { .. }))
    };
    assert!(refused(LagerSettings { lens: Lens::Normed, ..direct.clone() }, &model));
    assert!(refused(LagerSettings { states: States::DropLast, ..direct.clone() }, &model));
    assert!(refused(direct, &ScriptedBackbone::new(3).with_info(|info| info.fingerprint = "other".into())));
}

#[test]
fn judges_that_cannot_be_are_refused_when_made() {
    let model = model();
    let made = |change: &dyn Fn(&mut LagerSettings)| {
        let mut settings = LagerSettings::direct(five());
        change(&mut settings);
        LagerJudge::new(settings, &model).map(|_| ()).unwrap_err()
    };
    let weights = made(&|settings| settings.variant = Some(Variant::WeightedExpected));
    assert!(matches!(weights, Error::WeightsNeeded { variant: Variant::WeightedExpected }));
    let bf16 = made(&|settings| settings.variant = Some(Variant::LastExpectedBf16));
    assert!(matches!(bf16, Error::NoDistribution { variant: Variant::LastExpectedBf16 }));
    let ten = made(&|settings| settings.scale = Scale::integers(1, 10).unwrap());
    let Error::Backbone(BackboneError::Label { label, pieces }) = ten else { panic!("{ten}") };
    assert_eq!((label.as_str(), pieces.len()), ("10", 2));
}

#[test]
fn judges_share_a_pass_and_nothing_else_changes() {
    let settings =
        || LagerSettings { template: PromptTemplate::pointwise_direct(&five()), ..LagerSettings::prompt_end(five()) };
    let model = model();
    let lager = LagerJudge::new(settings(), &model).unwrap();
    let e_score = LagerJudge::new(LagerSettings { variant: Some(Variant::LastExpected), ..settings() }, &model).unwrap();
    let normed = LagerJudge::new(LagerSettings { lens: Lens::Normed, ..settings() }, &model).unwrap();
    let (low, high) = (PoolJudge(Layer(1)), PoolJudge(Layer(3)));
    let judges: [&dyn Judge<Answer>; 5] = [&lager, &e_score, &normed, &low, &high];
    let before = model.passes();
    let (together, summary) = run(&model, &judges, items(11), RunSettings::default());
    assert_eq!(model.passes() - before, 22, "one pass for the raw lens and the states, one for the other lens");
    let progress =
        Progress { items_read: 11, items_skipped: 0, items_done: 11, requests: 55, passes: 22, passes_answered: 22 };
    assert_eq!(summary.progress, progress);
    for (index, judge) in judges.into_iter().enumerate() {
        let (apart, _) = run(&model, &[judge], items(11), RunSettings::default());
        for (a, b) in together.iter().zip(&apart) {
            assert_eq!(a.verdicts[index], b.verdicts[0]);
        }
    }
    // Equal prompts of different items share too: 33 items, 11 texts.
    let (_, summary) = run(&model, &[&lager], items(33), RunSettings::default());
    assert_eq!((summary.progress.requests, summary.progress.passes), (33, 11));
}

#[test]
fn one_judges_overflow_is_not_anothers() {
    let model = ScriptedBackbone::new(3).with_logits(|_, layer, _| if layer.0 == 2 { f32::NAN } else { 1.0 });
    let settings =
        LagerSettings { template: PromptTemplate::pointwise_direct(&five()), ..LagerSettings::prompt_end(five()) };
    let lager = LagerJudge::new(settings, &model).unwrap();
    let pool = PoolJudge(Layer(2));
    let (results, summary) = run(&model, &[&lager, &pool], items(3), RunSettings::default());
    for result in &results {
        assert!(matches!(&result.verdicts[0], Verdict::Unscored(Unscored { reason: Reason::NonFinite, .. })));
        assert!(matches!(&result.verdicts[1], Verdict::Scored { .. }));
    }
    assert_eq!((summary.judges[0].unscored[&Reason::NonFinite], summary.judges[1].scored), (3, 3));
}

/// Asks again about the score that it was told, until it hears none, and counts the rounds.
struct Persistent;

impl Judge<Answer> for Persistent {
    fn ask(&self, item: &Answer) -> Result<Vec<Request>, Error> {
        let text = format!("{}!", item.0);
        Ok(vec![Request { prompt: Prompt::Raw(text), want: Want::default() }; 2])
    }

    fn follow_up(&self, item: &Answer, done: &[Outcome]) -> Result<Vec<Request>, Error> {
        let rounds: usize = item.0.len() % 4;
        let more = done.len() <= rounds;
        Ok(if more {
            vec![Request { prompt: Prompt::Raw(item.0.repeat(done.len())), want: Want::default() }]
        } else {
            vec![]
        })
    }

    fn decide(&self, _: &Answer, done: &[Outcome]) -> Result<Verdict, Error> {
        let lengths: Vec<usize> = done
            .iter()
            .map(|outcome| match outcome {
                Outcome::Read(reading) => reading.prompt_tokens,
                Outcome::Unscored(_) => 0,
            })
            .collect();
        Ok(Verdict::Unscored(Unscored::new(Reason::NoLabel, format!("{lengths:?}"))))
    }
}

#[test]
fn follow_ups_see_all_outcomes_in_order() {
    let texts = ["a", "ab", "abc", "abcdefg"].map(|text| (ItemId::from(text), Answer(text.into())));
    let (results, summary) = run(&model(), &[&Persistent], texts, RunSettings::default());
    let details: Vec<String> = results
        .iter()
        .map(|result| match &result.verdicts[0] {
            Verdict::Unscored(unscored) => unscored.detail.clone(),
            Verdict::Scored { .. } => panic!("no score"),
        })
        .collect();
    assert_eq!(details, ["[2, 2]", "[3, 3, 4]", "[4, 4, 6, 9]", "[8, 8, 14, 21]"]);
    assert_eq!(summary.judges[0].unscored, BTreeMap::from([(Reason::NoLabel, 4)]));
    assert_eq!(summary.progress.requests, 13);

    let settings = RunSettings { max_rounds: 2, ..RunSettings::default() };
    let long = [(ItemId::from("c"), Answer("abc".into()))];
    let model = model();
    let runner = Runner::new(&model, vec![&Persistent as &dyn Judge<Answer>]).with_settings(settings);
    let error = runner.run(long, &mut |_| ControlFlow::Continue(())).unwrap_err();
    assert_eq!(error.to_string(), "judge 0 still has questions about item \"c\" after 2 rounds");
}

#[test]
fn millions_of_items_stream_through_a_window() {
    let model = model();
    let judge = PoolJudge(Layer(0));
    let drawn = std::cell::Cell::new(0usize);
    let source = (0..1000u64).inspect(|_| drawn.set(drawn.get() + 1)).map(|i| (ItemId::from(i), Answer(i.to_string())));
    let mut done = 0;
    let runner = Runner::new(&model, vec![&judge as &dyn Judge<Answer>]).with_settings(window(8));
    runner
        .run(source, &mut |event| {
            if let RunEvent::Item(result) = event {
                assert_eq!(result.id, ItemId::from(done as u64));
                done += 1;
                assert!(drawn.get() <= done + 8, "{} drawn, {done} done", drawn.get());
            }
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!(done, 1000);
}

#[test]
fn a_run_stops_when_told_and_goes_on_where_it_was() {
    let model = model();
    let lager = LagerJudge::new(LagerSettings::direct(five()), &model).unwrap();
    let (whole, whole_summary) = run(&model, &[&lager], items(40), window(7));
    for stop in [0, 1, 6, 7, 23] {
        let mut kept = Vec::new();
        let runner = Runner::new(&model, vec![&lager as &dyn Judge<Answer>]).with_settings(window(7));
        let summary = runner
            .run(items(40), &mut |event| match event {
                RunEvent::Item(result) => {
                    kept.push(result);
                    if kept.len() > stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                }
                _ => ControlFlow::Continue(()),
            })
            .unwrap();
        assert!(summary.cancelled);
        assert_eq!(kept.len(), stop + 1, "nothing comes after the observer has said stop");
        let done: HashSet<ItemId> = kept.iter().map(|result| result.id.clone()).collect();
        let (rest, rest_summary) = run(&model, &[&lager], items(40), RunSettings { done, ..window(7) });
        assert_eq!(rest_summary.progress.items_skipped, stop + 1);
        assert!(!rest_summary.cancelled);
        assert_eq!(summary.judges[0].scored + rest_summary.judges[0].scored, whole_summary.judges[0].scored);
        kept.extend(rest);
        assert_eq!(kept, whole);
    }
    // Progress and skipped items can stop a run as well.
    let runner = Runner::new(&model, vec![&lager as &dyn Judge<Answer>]);
    let summary = runner.run(items(4), &mut |_| ControlFlow::Break(())).unwrap();
    assert!(summary.cancelled);
    assert_eq!((summary.progress.passes_answered, summary.progress.items_done), (1, 0));
    let done = RunSettings { done: HashSet::from([ItemId::from(0u64)]), ..RunSettings::default() };
    let runner = Runner::new(&model, vec![&lager as &dyn Judge<Answer>]).with_settings(done);
    assert_eq!(runner.run(items(4), &mut |_| ControlFlow::Break(())).unwrap().progress.items_read, 1);
}

#[test]
fn what_ends_a_run_says_where() {
    let model = model();
    let lager = LagerJudge::new(LagerSettings::direct(five()), &model).unwrap();
    let error = |items: Vec<(ItemId, Answer)>, model: &dyn Backbone, judge: &dyn Judge<Answer>| {
        Runner::new(model, vec![judge]).run(items, &mut |_| ControlFlow::Continue(())).unwrap_err()
    };
    let mut twice = items(300);
    twice[299].0 = ItemId::from(1u64);
    assert!(matches!(error(twice, &model, &lager), Error::DuplicateId { id: ItemId::Integer(1) }));
    let mut both_kinds = items(2);
    both_kinds[1].0 = ItemId::from("0");
    run(&model, &[&lager], both_kinds, RunSettings::default()); // "0" and 0 are two ids

    let smaller = ScriptedBackbone::new(2);
    let Error::Item { judge: 0, id, source } = error(items(2), &smaller, &lager) else { panic!("an item") };
    assert_eq!(id, ItemId::from(0u64));
    assert!(matches!(*source, Error::Backbone(BackboneError::Layer { layer: Layer(3), n_layers: 2, .. })));

    let odd = LagerSettings {
        template: PromptTemplate::new(Prompt::user("{title}")).unwrap(),
        ..LagerSettings::direct(five())
    };
    let odd = LagerJudge::new(odd, &model).unwrap();
    let message = error(items(1), &model, &odd).to_string();
    assert_eq!(message, "judge 0, item 0: prompt template: the item has no field \"title\"; it has []");

    let source = [Ok((ItemId::from("a"), Answer("x".into()))), Err("line 2 is cut off")];
    let runner = Runner::new(&model, vec![&lager as &dyn Judge<Answer>]);
    let error = runner.try_run(source, &mut |_| ControlFlow::Continue(())).unwrap_err();
    assert_eq!(error.to_string(), "the items could not be read: line 2 is cut off");
}

/// A backbone that answers as its function says, with nothing in the answers.
struct Careless(ModelInfo, fn(usize) -> Vec<usize>);

impl Backbone for Careless {
    fn info(&self) -> &ModelInfo {
        &self.0
    }

    fn token(&self, _: &str) -> Result<TokenId, BackboneError> {
        Ok(0)
    }

    fn label_in_context(&self, _: &Prompt, _: &str) -> Result<LabelInContext, BackboneError> {
        Ok(LabelInContext { apart: vec![], together: vec![], agrees: true })
    }

    fn run(
        &self,
        requests: &[Request],
        sink: &mut dyn FnMut(usize, Outcome) -> ControlFlow<()>,
    ) -> Result<(), BackboneError> {
        for index in (self.1)(requests.len()) {
            let _ = sink(index, Outcome::Unscored(Unscored::new(Reason::NoLabel, "")));
        }
        Ok(())
    }
}

#[test]
fn a_backbone_that_breaks_its_contract_is_found_out() {
    let info = ScriptedBackbone::new(3).info().clone();
    let breach = |answers| {
        let backbone = Careless(info.clone(), answers);
        let runner = Runner::new(&backbone, vec![&Persistent as &dyn Judge<Answer>]);
        match runner
            .run([(ItemId::from("x"), Answer(String::new())), (ItemId::from("y"), Answer("yy".into()))], &mut |_| {
                ControlFlow::Continue(())
            }) {
            Err(Error::Contract { breach }) => breach,
            other => panic!("expected a breach, found {other:?}"),
        }
    };
    assert_eq!(breach(|n| (1..n).collect()), ContractBreach::Unanswered { request: 0, requests: 2 });
    assert_eq!(breach(|_| vec![0, 0, 1]), ContractBreach::AnsweredTwice { request: 0 });
    assert_eq!(breach(|_| vec![0, 9]), ContractBreach::NoSuchRequest { request: 9, requests: 2 });

    // It goes on although the observer has said stop.
    let deaf = Careless(info.clone(), |n| (0..n).collect());
    let runner = Runner::new(&deaf, vec![&Persistent as &dyn Judge<Answer>]);
    let two = ["x", "y"].map(|text| (ItemId::from(text), Answer(text.into())));
    let error = runner.run(two, &mut |_| ControlFlow::Break(())).unwrap_err();
    assert!(matches!(error, Error::Contract { breach: ContractBreach::CalledAfterBreak }));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// A result depends on its item alone: not on the window, the order or what else is judged.
    #[test]
    fn results_do_not_depend_on_company(
        order in Just((0..30usize).collect::<Vec<_>>()).prop_shuffle(),
        kept in 1usize..30,
        size in 1usize..40,
    ) {
        let model = model();
        let direct = LagerJudge::new(LagerSettings::direct(five()), &model).unwrap();
        let end = LagerJudge::new(LagerSettings::prompt_end(five()), &model).unwrap();
        let judges: [&dyn Judge<Answer>; 3] = [&direct, &end, &Persistent];
        let (reference, _) = run(&model, &judges, items(30), RunSettings::default());
        let some: Vec<_> = order.iter().take(kept).map(|&i| items(30)[i].clone()).collect();
        let (found, summary) = run(&model, &judges, some, window(size));
        prop_assert_eq!(found.len(), kept);
        for (result, &i) in found.iter().zip(&order) {
            prop_assert_eq!(result, &reference[i]);
        }
        for tally in &summary.judges {
            prop_assert_eq!(tally.scored + tally.unscored.values().sum::<usize>(), kept);
        }
    }
}
