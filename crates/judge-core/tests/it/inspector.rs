//! INSPECTOR's judges through the runner, with probes that say what they were given.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use crate::{one, probes::Saying};
use judge_core::testing::ScriptedBackbone;
use judge_core::{
    Backbone, Error, ItemId, Judge, Layer, ModelInfo, Outcome, Reading, Reason, Rounds, Runner, TextModel, Verdict,
    combine::{Calibrated, Confident, OrderPolicy, Swapped},
    inspector::{Aspect, InspectorJudge, InspectorSettings, Probe, ProbeError, ProbeOutput, total_score},
    prompted::{LikelihoodJudge, PromptFamily, WrittenJudge},
    request::{Pooling, ReplyPooling, Signal},
    runner::RunEvent,
    verdict::Calibration,
};

/// Predicts by the sum of its features; knows probabilities or not.
struct Summing {
    signals: Vec<(Layer, Signal)>,
    classes: Vec<i64>,
    with_probabilities: bool,
    fingerprint: String,
}

impl Probe for Summing {
    fn signals(&self) -> &[(Layer, Signal)] {
        &self.signals
    }

    fn classes(&self) -> &[i64] {
        &self.classes
    }

    fn check_model(&self, model: &ModelInfo) -> Result<(), ProbeError> {
        if model.fingerprint == self.fingerprint { Ok(()) } else { Err("another model".into()) }
    }

    fn classify(&self, features: &[f32]) -> Result<ProbeOutput, ProbeError> {
        let width = |(_, signal): &(Layer, Signal)| if *signal == Signal::AttentionEntropy { 2 } else { 4 };
        if features.len() != self.signals.iter().map(width).sum::<usize>() {
            return Err(format!("{} features", features.len()).into());
        }
        let class = features.iter().map(|x| x.to_bits() as usize % 97).sum::<usize>() % self.classes.len();
        let of = |i: usize| if i == class { 0.6 } else { 0.4 / (self.classes.len() - 1) as f64 };
        let probabilities = self.with_probabilities.then(|| (0..self.classes.len()).map(of).collect());
        Ok(ProbeOutput { probabilities, ..ProbeOutput::new(class) })
    }
}

fn settings(aspect: Aspect, model: &ScriptedBackbone, change: impl FnOnce(&mut Summing)) -> InspectorSettings {
    let mut probe = Summing {
        signals: vec![
            (Layer(3), Signal::State(Pooling::Mean)),
            (Layer(4), Signal::AttentionEntropy),
            (Layer(1), Signal::State(Pooling::Last)),
            (Layer(2), Signal::AttentionEntropy),
        ],
        classes: vec![1, 2, 3, 4, 5],
        with_probabilities: true,
        fingerprint: model.info().fingerprint.clone(),
    };
    change(&mut probe);
    InspectorSettings { aspect: aspect.to_string(), template: aspect.template(), probe: Arc::new(probe) }
}

#[test]
fn five_aspects_share_a_run_and_add_up() {
    let model = ScriptedBackbone::new(4);
    let judges = Aspect::ALL.map(|aspect| InspectorJudge::new(settings(aspect, &model, |_| {}), model.info()).unwrap());
    let items = ["a", "b"].map(|id| (ItemId::from(id), [("question", id.repeat(3)), ("response", id.to_owned())]));
    let mut seen = 0;
    let judges = judges.iter().map(|judge| judge as _).collect();
    let summary = Runner::new(&model, judges).run(items, &mut |event| {
        if let RunEvent::Item(result) = event {
            let modes: f64 = result
                .verdicts
                .iter()
                .map(|verdict| {
                    let score = verdict.score().unwrap();
                    let distribution = score.distribution.as_ref().unwrap();
                    assert_eq!(score.value, distribution.mode().value);
                    assert_eq!(distribution.probabilities().iter().filter(|&&p| p > 0.5).count(), 1);
                    distribution.mode().value
                })
                .sum();
            assert_eq!(total_score(&result.verdicts), Some(modes));
            seen += 1;
        }
        ControlFlow::Continue(())
    });
    assert_eq!((seen, summary.unwrap().progress.requests), (2, 10));
}

#[test]
fn features_are_the_signals_in_the_probe_s_order() {
    let model = ScriptedBackbone::new(4);
    let signals = vec![
        (Layer(2), Signal::AttentionEntropy),
        (Layer(3), Signal::State(Pooling::Max)),
        (Layer(1), Signal::AttentionEntropy),
    ];
    let given = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&given);
    let output = move |features: &[f32]| {
        *told.lock().unwrap() = features.to_vec();
        ProbeOutput::new(0)
    };
    let probe = Arc::new(Saying { signals: signals.clone(), classes: vec![0, 1], settings: None, output });
    let settings = InspectorSettings { aspect: "fluency".into(), template: Aspect::Fluency.template(), probe };
    let judge = InspectorJudge::new(settings, model.info()).unwrap();
    let item = [("question", "q"), ("response", "r")];
    let requests = judge.ask(&item).unwrap();
    assert_eq!(requests[0].want.attention_entropy, [Layer(1), Layer(2)]);
    assert_eq!(requests[0].want.pooled, [(Layer(3), Pooling::Max)]);
    let mut outcomes = Vec::new();
    let mut keep = |_, outcome| {
        outcomes.push(outcome);
        ControlFlow::Continue(())
    };
    model.run(&requests, &mut keep).unwrap();
    judge.decide(&item, &Rounds::new([&outcomes[..]])).unwrap();
    let Outcome::Read(reading) = &outcomes[0] else { panic!("{outcomes:?}") };
    let parts = signals.iter().map(|&(layer, signal)| reading.signal(layer, signal).unwrap());
    assert_eq!(*given.lock().unwrap(), parts.collect::<Vec<_>>().concat());
    assert_eq!(given.lock().unwrap().len(), 2 + 4 + 2);
    let breach = judge.decide(&item, &Rounds::new([&[Outcome::Read(Reading::default())][..]])).unwrap_err();
    assert!(breach.to_string().contains("an attention entropy: expected 2, found 0"), "{breach}");
}

#[test]
fn a_signal_is_one_word_in_files() {
    let signals = [Signal::State(Pooling::Mean), Signal::AttentionEntropy, Signal::State(Pooling::Last)];
    let text = serde_json::to_string(&signals).unwrap();
    assert_eq!(text, r#"["mean","attention_entropy","last"]"#);
    assert_eq!(serde_json::from_str::<[Signal; 3]>(&text).unwrap(), signals);
    assert!(serde_json::from_str::<Signal>("\"median\"").is_err());
}

#[test]
fn a_probe_without_probabilities_says_its_class() {
    let model = ScriptedBackbone::new(4);
    let settings = settings(Aspect::Fluency, &model, |probe| {
        (probe.with_probabilities, probe.classes) = (false, vec![0, 1]);
    });
    let judge = InspectorJudge::new(settings, model.info()).unwrap();
    let verdict = one::verdict(&model, &judge, [("question", "q"), ("response", "r")]);
    let score = verdict.score().unwrap();
    assert!([0.0, 1.0].contains(&score.value));
    assert_eq!(score.distribution, None, "nobody knows how sure it is");
}

/// The probe is a regression that was saved with a calibrator.
#[test]
fn a_verdict_has_the_number_and_the_calibration_of_its_probe() {
    let model = ScriptedBackbone::new(4);
    let decide = |number: f64, high: f64, outer: bool| {
        let calibrated = Calibration { value: 40.0, low: 10.0, high, level: 0.9 };
        let output =
            move |_: &[f32]| ProbeOutput { number: Some(number), calibrated: Some(calibrated), ..ProbeOutput::new(1) };
        let signals = vec![(Layer(1), Signal::State(Pooling::Last))];
        let probe = Arc::new(Saying { signals, classes: vec![1, 2, 3], settings: None, output });
        let settings = InspectorSettings { aspect: "fluency".into(), template: Aspect::Fluency.template(), probe };
        let judge = InspectorJudge::new(settings, model.info()).unwrap();
        let halved = |value: f64| -> Result<Calibration, Error> {
            Ok(Calibration { value: value / 2.0, low: 0.0, high: 9.0, level: 0.5 })
        };
        let outside = Calibrated::new(&judge, halved);
        let item = [("question", "q"), ("response", "r")];
        let judge: &dyn Judge<_> = if outer { &outside } else { &judge };
        one::verdict(&model, judge, item)
    };
    let verdict = decide(2.25, 90.0, false);
    let score = verdict.score().unwrap();
    assert_eq!((score.value, &score.distribution), (2.25, &None));
    assert_eq!(score.calibrated, Some(Calibration { value: 40.0, low: 10.0, high: 90.0, level: 0.9 }));
    // A calibrator around the judge is the one that was asked for last.
    assert_eq!(decide(2.25, 90.0, true).score().unwrap().calibrated.map(|found| found.value), Some(1.125));
    // A number that is none costs this row, not the run.
    for (number, high, message) in [
        (f64::INFINITY, 90.0, "the score is inf"),
        (f64::NAN, 90.0, "the score is NaN"),
        (2.25, f64::NAN, "the upper end is NaN"),
    ] {
        for outer in [false, true] {
            let verdict = decide(number, high, outer);
            match verdict.unscored() {
                Some(unscored) => {
                    assert!(unscored.reason == Reason::NonFinite && unscored.detail.starts_with(message), "{unscored}")
                }
                None => assert!(outer && number.is_finite(), "the outer interval replaces the inner one: {verdict:?}"),
            }
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let model = ScriptedBackbone::new(4);
    let new =
        |change: fn(&mut Summing)| InspectorJudge::new(settings(Aspect::Logicality, &model, change), model.info());
    assert!(matches!(new(|probe| probe.fingerprint.clear()), Err(Error::ProbeRefused { .. })));
    assert!(matches!(new(|probe| probe.signals.clear()), Err(Error::ProbeSignals { .. })));
    assert!(matches!(new(|probe| probe.signals[1] = probe.signals[0]), Err(Error::ProbeSignals { .. })));
    assert!(matches!(new(|probe| probe.signals[3] = probe.signals[1]), Err(Error::ProbeSignals { .. })));
    assert!(matches!(new(|probe| probe.signals[1].0 = Layer(5)), Err(Error::ProbeSignals { n_layers: 4, .. })));
    assert!(matches!(new(|probe| probe.signals[1].0 = Layer(0)), Err(Error::ProbeSignals { .. })));
    assert!(matches!(new(|probe| probe.classes = vec![2, 1]), Err(Error::Scale { .. })));
    let one = new(|probe| probe.classes = vec![2]).unwrap_err().to_string();
    assert_eq!(one, "classes of a probe, at least: expected 2, found 1");
}

#[test]
fn one_aspect_without_a_score_leaves_no_total() {
    let model = ScriptedBackbone::new(4).with_info(|info| info.max_len = 10);
    let judge = InspectorJudge::new(settings(Aspect::Fluency, &model, |_| {}), model.info()).unwrap();
    let result = one::result(&model, &judge, [("question", "q"), ("response", "r")]).unwrap();
    let Verdict::Unscored(unscored) = &result.verdicts[0] else { panic!() };
    assert_eq!(unscored.reason, Reason::TooLong);
    assert_eq!((total_score(&result.verdicts), total_score(&[])), (None, None));
}

/// A probe of whether verdicts are right, with its classes and signals.
fn of_verdicts(model: &ScriptedBackbone, classes: &[i64], signals: &[(Layer, Signal)]) -> Arc<dyn Probe> {
    let fingerprint = model.info().fingerprint.clone();
    Arc::new(Summing { signals: signals.to_vec(), classes: classes.to_vec(), with_probabilities: true, fingerprint })
}

#[test]
fn a_confidence_comes_with_the_verdict_and_changes_nothing() {
    let reply = |prompt: &str| match prompt.find("Paris") < prompt.find("Lyon") {
        true => "<think>the first</think>[[A]]".to_owned(),
        false => "[[B]]".to_owned(),
    };
    let model = ScriptedBackbone::new(4).with_reply(reply);
    let family = PromptFamily::built_in("pair").unwrap();
    let item = [("instruction", "The capital of France?"), ("response_a", "Paris"), ("response_b", "Lyon")];
    let thought = [(Layer(2), Signal::Reply(ReplyPooling::ThoughtEnd)), (Layer(4), Signal::State(Pooling::Last))];
    let probe = of_verdicts(&model, &[0, 1], &thought);
    let judge = |probe| Confident::new(WrittenJudge::new(family.clone()), probe, model.info());
    let plain = Swapped::new(WrittenJudge::new(family.clone()), OrderPolicy::TieUnlessAgreed);
    let sure = Swapped::new(judge(probe).unwrap(), OrderPolicy::TieUnlessAgreed);
    let passes = model.passes();
    let found = |judge: &dyn Judge<[(&str, &str); 3]>| one::verdict(&model, judge, item).score().unwrap().clone();
    let (plain, mut sure) = (found(&plain), found(&sure));
    assert_eq!(model.passes() - passes, 4, "one for each order, with the probe as without it");
    let confidences: Vec<Option<f64>> = sure.parts.iter().map(|p| p.verdict.score().unwrap().confidence).collect();
    assert!(matches!(confidences[..], [Some(p), None] if p == 0.4 || p == 0.6), "no thought ends: {confidences:?}");
    for part in &mut sure.parts {
        let Verdict::Scored(score) = &mut part.verdict else { panic!("{part:?}") };
        score.confidence = None;
    }
    assert_eq!(plain, sure);

    // Classes that are not wrong and right, or no probabilities; a reply that nobody asks for.
    let classes = of_verdicts(&model, &[1, 2], &thought);
    assert!(matches!(judge(classes).map(drop), Err(Error::NoConfidence { classes }) if classes == [1, 2]));
    let read = LikelihoodJudge::new(family.clone());
    let read = Confident::new(read, of_verdicts(&model, &[0, 1], &thought), model.info()).unwrap();
    let ended = one::result(&model, &read, item);
    assert!(ended.unwrap_err().to_string().contains("this judge writes none"));
    let settings = InspectorSettings {
        probe: of_verdicts(&model, &[0, 1], &thought),
        ..settings(Aspect::Fluency, &model, |_| {})
    };
    assert!(matches!(InspectorJudge::new(settings, model.info()), Err(Error::ProbeOfReply { .. })));
}
