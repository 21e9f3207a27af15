//! The runner and the LAGER judge over a scripted model.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::error::Error as _;
use std::ops::ControlFlow;

use crate::{asking, serving::Serving};
use judge_core::testing::{ScriptedBackbone, check_judge};
use judge_core::{
    Backbone, Error, Fields, ItemId, ItemResult, Judge, JudgeError, Layer, Lens, Outcome, Prompt, PromptTemplate,
    Reason, Request, Rounds, Runner, Scale, Score, TextModel, Unscored, Verdict, Want,
    fit::{Graded, LayerWeightFit},
    lager::{Condition, LagerJudge, LagerSettings, States, Variant},
    model::{BackboneError, Exchange},
    request::Pooling,
    runner::{RunEvent, RunSettings, RunSummary},
    scale::ScoreDistribution,
    testing::ContractBreach,
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
    model: &dyn TextModel,
    judges: &[&dyn Judge<I>],
    items: impl IntoIterator<Item = (ItemId, I)>,
    settings: RunSettings,
) -> (Vec<ItemResult<I>>, RunSummary) {
    let mut results = Vec::new();
    let summary = Runner::new(model, judges.to_vec()).with_settings(settings).run(items, |event| {
        if let RunEvent::Item(result) = event {
            results.push(result);
        }
    });
    (results, summary.unwrap())
}

fn window(window: usize) -> RunSettings {
    RunSettings { window, ..RunSettings::default() }
}

/// Reads one pooled state and scores by the sign of its first value.
fn pool_judge(layer: Layer) -> impl Judge<Answer> {
    let ask = move |item: &Answer| {
        let prompt = PromptTemplate::pointwise_direct(&five()).fill(item)?;
        Ok(vec![Request { prompt, want: Want { pooled: vec![(layer, Pooling::Mean)], ..Want::default() } }])
    };
    asking::judge("pool", ask, move |_, rounds| {
        let state = rounds.only()?.pooled(layer, Pooling::Mean).ok_or(Error::NotRead { what: "pooled states" })?;
        let distribution = ScoreDistribution::softmax(&Scale::integers(0, 1)?, &[0.0, f64::from(state[0])])?;
        Ok(Score::expected(distribution))
    })
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
        let score = results[0].verdicts[0].score().expect("a score");
        let table = judge.table(&results[0].rounds(0)).unwrap();
        assert_eq!((table.layers().len(), table.n_scores()), (4, 5));
        (score.value, score.mode())
    };
    let with = |variant, settings| LagerSettings { variant: Some(variant), ..settings };
    assert_eq!(scored(with(Variant::LastMode, LagerSettings::reasoning(five()))), (4.0, 4.0));
    assert_eq!(scored(with(Variant::LastMode, LagerSettings::direct(five()))), (3.0, 3.0));
    assert_eq!(scored(with(Variant::LastMode, LagerSettings::prompt_end(five()))), (3.0, 3.0));
    let mean = |settings| with(Variant::MeanExpected, settings);
    let (expected, mode) = scored(mean(LagerSettings::reasoning(five()))); // mean of 0, 0, 0 and 50 is 12.5 for label 4
    assert!((expected - 4.0).abs() < 1e-4 && mode == 4.0, "{expected}");
    let dropped = LagerSettings { states: States::DropLast, ..LagerSettings::reasoning(five()) };
    assert!((scored(mean(dropped)).0 - 3.0).abs() < 1e-12);
    // Another rule finds another score, here the 5 of "4/5", where no layer knows anything.
    let Condition::Reasoning { generation, .. } = Condition::reasoning() else { panic!("reasoning") };
    let last = Condition::Reasoning { generation, rule: judge_core::lager::ScoreRule::LastLabel };
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
        .map(|(i, result)| Graded { table: judge.table(&result.rounds(0)).unwrap(), human: (1 + i % 5) as f64 })
        .collect();
    let fit = LayerWeightFit { epochs: 20, ..LayerWeightFit::default() };
    let weights = fit.fit(&graded, judge.origin()).unwrap();
    assert!(weights.weights()[2] > 0.6, "{:?}", weights.weights());

    let settings = LagerSettings { weights: Some(weights.clone()), ..LagerSettings::prompt_end(five()) };
    let tuned = LagerJudge::new(settings.clone(), &model).unwrap();
    assert_eq!((tuned.variant(), judge.variant()), (Variant::WeightedExpected, Variant::LastExpected));
    assert_eq!(tuned.weight_notes(), []);
    let texts = (0..5u64).map(|i| (ItemId::from(i), Answer(format!("quality {} again", 1 + i))));
    let (results, _) = run(&model, &[&tuned, &judge], texts, window(16));
    for (i, result) in results.iter().enumerate() {
        let modes: Vec<f64> = result.verdicts.iter().map(|verdict| verdict.score().expect("a score").mode()).collect();
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
    let ten = made(&|settings| settings.scale = Scale::integers(1, 10).unwrap());
    let Error::Backbone(BackboneError::Label { label, pieces }) = ten else { panic!("{ten}") };
    assert_eq!((label.as_str(), pieces.len()), ("10", 2));
}

#[test]
fn judges_share_a_pass_and_nothing_else_changes() {
    let settings = || LagerSettings { opening: String::new(), ..LagerSettings::prompt_end(five()) };
    let model = model();
    let lager = LagerJudge::new(settings(), &model).unwrap();
    let e_score =
        LagerJudge::new(LagerSettings { variant: Some(Variant::LastExpected), ..settings() }, &model).unwrap();
    let normed = LagerJudge::new(LagerSettings { lens: Lens::Normed, ..settings() }, &model).unwrap();
    let (low, high) = (pool_judge(Layer(1)), pool_judge(Layer(3)));
    let judges: [&dyn Judge<Answer>; 5] = [&lager, &e_score, &normed, &low, &high];
    let before = model.passes();
    let (together, summary) = run(&model, &judges, items(11), RunSettings::default());
    assert_eq!(model.passes() - before, 11, "one pass for both lenses and the states");
    let progress = summary.progress;
    assert_eq!((progress.items_read, progress.items_done, progress.requests), (11, 11, 55));
    assert_eq!((progress.passes, progress.passes_answered), (11, 11));
    let prompt_tokens = |result: &ItemResult<Answer>| result.rounds(0).only().unwrap().prompt_tokens.unwrap();
    assert_eq!(progress.tokens, together.iter().map(prompt_tokens).sum::<usize>(), "once for all five judges");
    assert_eq!(summary.judges[1].name, "e_score");
    assert_eq!(summary.judges[0].mean_label_mass(), Some(1.0));
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
    let settings = LagerSettings { opening: String::new(), ..LagerSettings::prompt_end(five()) };
    let lager = LagerJudge::new(settings, &model).unwrap();
    let pool = pool_judge(Layer(2));
    let (results, summary) = run(&model, &[&lager, &pool], items(3), RunSettings::default());
    for result in &results {
        assert!(matches!(&result.verdicts[0], Verdict::Unscored(Unscored { reason: Reason::NonFinite, .. })));
        assert!(matches!(&result.verdicts[1], Verdict::Scored(_)));
    }
    assert_eq!((summary.judges[0].unscored[&Reason::NonFinite], summary.judges[1].scored), (3, 3));
}

/// Asks again about the score that it was told, until it hears none, and counts the rounds.
struct Persistent;

impl Judge<Answer> for Persistent {
    fn name(&self) -> &str {
        "persistent"
    }

    fn ask(&self, item: &Answer) -> Result<Vec<Request>, JudgeError> {
        let text = format!("{}!", item.0);
        Ok(vec![Request { prompt: Prompt::Raw(text), want: Want::default() }; 2])
    }

    fn follow_up(&self, item: &Answer, rounds: &Rounds<'_>) -> Result<Vec<Request>, JudgeError> {
        let done = rounds.outcomes().count();
        assert_eq!(rounds.as_slices()[0].len(), 2);
        assert!(rounds.as_slices()[1..].iter().all(|round| round.len() == 1));
        Ok(if done <= item.0.len() % 4 {
            vec![Request { prompt: Prompt::Raw(item.0.repeat(done)), want: Want::default() }]
        } else {
            vec![]
        })
    }

    fn decide(&self, _: &Answer, rounds: &Rounds<'_>) -> Result<Score, JudgeError> {
        let length = |outcome: &Outcome| outcome.reading().ok().and_then(|reading| reading.prompt_tokens).unwrap_or(0);
        let lengths: Vec<usize> = rounds.outcomes().map(length).collect();
        Err(Unscored::new(Reason::NoLabel, format!("{lengths:?}")).into())
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
            Verdict::Scored(_) => panic!("no score"),
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
    assert_eq!(error.to_string(), "judge persistent still makes requests about item \"c\" after 2 rounds");
}

#[test]
fn millions_of_items_stream_through_a_window() {
    let model = model();
    let judge = pool_judge(Layer(0));
    let drawn = std::cell::Cell::new(0usize);
    let source = (0..1000u64).inspect(|_| drawn.set(drawn.get() + 1)).map(|i| (ItemId::from(i), Answer(i.to_string())));
    let mut done = 0;
    let runner = Runner::new(&model, vec![&judge as &dyn Judge<Answer>]).with_settings(window(8));
    let run = runner.run(source, |event| {
        if let RunEvent::Item(result) = event {
            assert_eq!(result.id, ItemId::from(done as u64));
            done += 1;
            assert!(drawn.get() <= done + 8, "{} drawn, {done} done", drawn.get());
        }
    });
    run.unwrap();
    assert_eq!(done, 1000);
}

#[test]
fn a_run_stops_when_told_and_resumes_with_what_is_left() {
    let model = model();
    let lager = LagerJudge::new(LagerSettings::direct(five()), &model).unwrap();
    let (whole, whole_summary) = run(&model, &[&lager], items(40), window(7));
    for stop in [0, 1, 6, 7, 23] {
        let mut kept = Vec::new();
        let runner = Runner::new(&model, vec![&lager as &dyn Judge<Answer>]).with_settings(window(7));
        let summary = runner
            .run(items(40), |event| match event {
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
        let left = items(40).into_iter().filter(|(id, _)| !done.contains(id));
        let (rest, rest_summary) = run(&model, &[&lager], left, window(7));
        assert!(!rest_summary.cancelled);
        assert_eq!(summary.judges[0].scored + rest_summary.judges[0].scored, whole_summary.judges[0].scored);
        kept.extend(rest);
        assert_eq!(kept, whole);
    }
    // Progress can stop a run as well.
    let runner = Runner::new(&model, vec![&lager as &dyn Judge<Answer>]);
    let summary = runner.run(items(4), |_| ControlFlow::Break(())).unwrap();
    assert!(summary.cancelled);
    assert_eq!((summary.progress.passes_answered, summary.progress.items_done), (1, 0));
}

#[test]
fn an_observer_may_fail() {
    let model = model();
    let lager = LagerJudge::new(LagerSettings::direct(five()), &model).unwrap();
    let mut seen = 0;
    let error = Runner::new(&model, vec![&lager as &dyn Judge<Answer>])
        .run(items(9), |event| match event {
            RunEvent::Item(_) => {
                seen += 1;
                if seen < 3 { Ok(()) } else { Err("the disk is full") }
            }
            _ => Ok(()),
        })
        .unwrap_err();
    assert_eq!((seen, error.to_string().as_str()), (3, "the disk is full"));
    assert!(matches!(error, Error::Observer { .. }));
    assert!(error.source().is_none(), "its message is that of its own error, which is no cause of itself");
}

/// Answers the first request last, and each other one as soon as the next is taken: a service with one slow reply.
fn one_slow(model: ScriptedBackbone) -> impl TextModel {
    Serving(move |exchange: &mut dyn Exchange| {
        let mut answers: Vec<Option<Outcome>> = Vec::new();
        while let Some(request) = exchange.take(1).pop() {
            model.run(&[request], &mut |_, outcome| {
                answers.push(Some(outcome));
                ControlFlow::Continue(())
            })?;
            let last = answers.len() - 1;
            if last > 0 && exchange.give(last, answers[last].take().unwrap()).is_break() {
                return Ok(());
            }
        }
        if let Some(first) = answers.first_mut().and_then(Option::take) {
            let _ = exchange.give(0, first);
        }
        Ok(())
    })
}

#[test]
fn a_slow_answer_keeps_nobody_waiting_but_for_the_window_and_the_order() {
    let lager = pool_judge(Layer(0));
    let order = |settings: RunSettings| {
        let mut ids = Vec::new();
        let slow = one_slow(model());
        let runner = Runner::new(&slow, vec![&lager as &dyn Judge<Answer>]).with_settings(settings);
        let items = (0..50u64).map(|i| (ItemId::from(i), Answer(i.to_string())));
        let summary = runner.run(items, |event| {
            if let RunEvent::Item(result) = event {
                ids.push(result.id);
            }
        });
        assert_eq!(summary.unwrap().progress.items_done, 50);
        ids
    };
    let ids = |range: std::ops::Range<u64>| range.map(ItemId::from);
    assert!(order(RunSettings::default()).into_iter().eq(ids(0..50)));
    let as_known = order(RunSettings { in_order: false, ..RunSettings::default() });
    assert!(as_known.into_iter().eq(ids(1..50).chain(ids(0..1))));
}

#[test]
fn what_ends_a_run_says_where() {
    let model = model();
    let lager = LagerJudge::new(LagerSettings::direct(five()), &model).unwrap();
    let error = |items: Vec<(ItemId, Answer)>, model: &dyn Backbone, judge: &dyn Judge<Answer>| {
        let mut done = 0;
        let run = Runner::new(model as &dyn TextModel, vec![judge]).run(items, |event| {
            done += usize::from(matches!(event, RunEvent::Item(_)));
        });
        (run.unwrap_err(), done)
    };
    let mut twice = items(300);
    twice[299].0 = ItemId::from(1u64);
    let (duplicate, done) = error(twice, &model, &lager);
    assert!(matches!(duplicate, Error::DuplicateId { id: ItemId::Integer(1) }));
    assert_eq!(done, 299, "what is before it is judged");
    let mut both_kinds = items(2);
    both_kinds[1].0 = ItemId::from("0");
    run(&model, &[&lager], both_kinds, RunSettings::default()); // "0" and 0 are two ids

    let smaller = ScriptedBackbone::new(2);
    let (Error::Item { judge, id, source }, _) = error(items(2), &smaller, &lager) else { panic!("an item") };
    assert_eq!((judge.as_str(), id), ("lager", ItemId::from(0u64)));
    let source = source.downcast_ref();
    assert!(matches!(source, Some(BackboneError::Layer { layer: Layer(3), n_layers: 2, .. })), "{source:?}");

    let source = [Ok((ItemId::from("a"), Answer("x".into()))), Err("line 2 is cut off")];
    let runner = Runner::new(&model, vec![&lager as &dyn Judge<Answer>]);
    let mut done = 0;
    let count = |event| done += usize::from(matches!(event, RunEvent::Item(_)));
    let error = runner.try_run(source, count).unwrap_err();
    assert_eq!((error.to_string().as_str(), done), ("the items could not be read: line 2 is cut off", 1));
}

#[test]
fn an_item_without_a_field_is_unscored_and_the_run_goes_on() {
    let model = model();
    let template = PromptTemplate::new(Prompt::user("{title}: {response}")).unwrap();
    let judge = LagerJudge::new(LagerSettings { template, ..LagerSettings::direct(five()) }, &model).unwrap();
    let items = [vec![("title", "t"), ("response", "r")], vec![("response", "r")]];
    let items = items.into_iter().enumerate().map(|(i, item)| (ItemId::from(i as u64), item));
    let results = Runner::new(&model, vec![&judge]).collect(items).unwrap();
    assert!(results[0].verdicts[0].score().is_some());
    let unscored = results[1].verdicts[0].unscored().unwrap();
    assert_eq!(unscored.reason, Reason::Missing);
    assert!(unscored.detail.contains("\"title\"") && unscored.detail.contains("[\"response\"]"), "{unscored}");
    check_judge(&judge, &model, [vec![("title", "t"), ("response", "r")], vec![("response", "r")]]).unwrap();
}

#[test]
fn a_replaced_template_keeps_the_opening() {
    let model = ScriptedBackbone::new(1);
    let template = PromptTemplate::new(Prompt::user("Rate {response}")).unwrap();
    let judge = LagerJudge::new(LagerSettings { template, ..LagerSettings::prompt_end(five()) }, &model).unwrap();
    let requests = judge.ask(&[("response", "x")]).unwrap();
    assert_eq!(requests[0].prompt, Prompt::user("Rate x").with_prefill("score: "));
    assert_eq!(judge.origin().template, judge.template().id());
}

/// A model that answers as its function says, with nothing in the answers.
fn careless(answers: fn(usize) -> Vec<usize>) -> impl TextModel {
    Serving(move |exchange: &mut dyn Exchange| {
        let requests = exchange.take(100);
        for index in answers(requests.len()) {
            let _ = exchange.give(index, Outcome::Unscored(Unscored::new(Reason::NoLabel, "")));
        }
        Ok(())
    })
}

#[test]
fn a_model_that_breaks_its_contract_is_found_out() {
    let two = || [("x", ""), ("y", "yy")].map(|(id, text)| (ItemId::from(id), Answer(text.to_owned())));
    let breach = |answers| {
        let model = careless(answers);
        match Runner::new(&model, vec![&Persistent as &dyn Judge<Answer>]).run(two(), |_| ()) {
            Err(Error::Contract { breach }) => breach,
            other => panic!("expected a breach, found {other:?}"),
        }
    };
    assert_eq!(breach(|n| (1..n).collect()), ContractBreach::Unanswered { request: 0, requests: 2 });
    assert_eq!(breach(|_| vec![0, 0, 1]), ContractBreach::AnsweredTwice { request: 0 });
    assert_eq!(breach(|_| vec![0, 9]), ContractBreach::NoSuchRequest { request: 9, requests: 2 });
    // The second item leads to another request, which it does not take.
    assert_eq!(breach(|n| (0..n).collect()), ContractBreach::EndedEarly);

    // It goes on although the observer has said stop.
    let deaf = careless(|n| (0..n).collect());
    let runner = Runner::new(&deaf, vec![&Persistent as &dyn Judge<Answer>]);
    let error = runner.run(two(), |_| ControlFlow::Break(())).unwrap_err();
    assert!(matches!(error, Error::Contract { breach: ContractBreach::CalledAfterBreak }));
}

#[test]
fn a_model_that_fails_at_a_request_names_its_item() {
    let items = || ["x", "y"].map(|id| (ItemId::from(id), Answer(id.to_owned())));
    let error = |request| {
        // It fails once it has taken all.
        let model = Serving(move |exchange: &mut dyn Exchange| {
            exchange.take(100);
            Err(BackboneError::Failed { request, source: "no more".into() })
        });
        Runner::new(&model, vec![&Persistent as &dyn Judge<Answer>]).run(items(), |_| ()).unwrap_err()
    };
    for (request, item) in ["x", "y"].into_iter().enumerate() {
        let Error::Item { id, source, .. } = error(request) else { panic!("an item") };
        let found = source.downcast_ref().and_then(BackboneError::request);
        assert_eq!((id, found), (ItemId::from(item), Some(request)));
        assert_eq!(source.to_string(), format!("request {request}: the model failed: no more"));
    }
    // A number that was never given.
    assert!(matches!(error(9), Error::Backbone(BackboneError::Failed { request: 9, .. })));
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
