//! INSPECTOR's judges through the runner, with probes that say what they were given.

use std::ops::ControlFlow;
use std::sync::Arc;

use judge_core::testing::ScriptedBackbone;
use judge_core::{
    Aspect, Backbone, Error, InspectorJudge, InspectorSettings, ItemId, Layer, ModelInfo, Pooling, Probe, ProbeError,
    ProbeOutput, Reason, RunEvent, Runner, Verdict, total_score,
};

/// Predicts by the sum of its features; knows probabilities or not.
struct Summing {
    states: Vec<(Layer, Pooling)>,
    classes: Vec<i64>,
    with_probabilities: bool,
    fingerprint: String,
}

impl Probe for Summing {
    fn states(&self) -> &[(Layer, Pooling)] {
        &self.states
    }

    fn classes(&self) -> &[i64] {
        &self.classes
    }

    fn check_model(&self, model: &ModelInfo) -> Result<(), ProbeError> {
        if model.fingerprint == self.fingerprint { Ok(()) } else { Err("another model".into()) }
    }

    fn classify(&self, features: &[f32]) -> Result<ProbeOutput, ProbeError> {
        if features.len() != 4 * self.states.len() {
            return Err(format!("{} features", features.len()).into());
        }
        let class = features.iter().map(|x| x.to_bits() as usize % 97).sum::<usize>() % self.classes.len();
        let of = |i: usize| if i == class { 0.6 } else { 0.4 / (self.classes.len() - 1) as f64 };
        let probabilities = self.with_probabilities.then(|| (0..self.classes.len()).map(of).collect());
        Ok(ProbeOutput { class, probabilities })
    }
}

fn settings(aspect: Aspect, model: &ScriptedBackbone, change: impl FnOnce(&mut Summing)) -> InspectorSettings {
    let mut probe = Summing {
        states: vec![(Layer(3), Pooling::Mean), (Layer(1), Pooling::Last)],
        classes: vec![1, 2, 3, 4, 5],
        with_probabilities: true,
        fingerprint: model.info().fingerprint.clone(),
    };
    change(&mut probe);
    InspectorSettings { template: aspect.template(), probe: Arc::new(probe) }
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
                    let Verdict::Scored { distribution, .. } = verdict else { panic!("{verdict:?}") };
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
fn a_probe_without_probabilities_says_its_class() {
    let model = ScriptedBackbone::new(4);
    let settings = settings(Aspect::Fluency, &model, |probe| {
        (probe.with_probabilities, probe.classes) = (false, vec![0, 1]);
    });
    let judge = InspectorJudge::new(settings, model.info()).unwrap();
    let items = [(ItemId::from("a"), [("question", "q"), ("response", "r")])];
    Runner::new(&model, vec![&judge])
        .run(items, &mut |event| {
            if let RunEvent::Item(result) = event {
                let Verdict::Scored { distribution, interval: None } = &result.verdicts[0] else { panic!() };
                assert!(
                    [[1.0, 0.0], [0.0, 1.0]]
                        .contains(&[distribution.probabilities()[0], distribution.probabilities()[1]])
                );
            }
            ControlFlow::Continue(())
        })
        .unwrap();
}

#[test]
fn what_does_not_fit_is_refused() {
    let model = ScriptedBackbone::new(4);
    let new =
        |change: fn(&mut Summing)| InspectorJudge::new(settings(Aspect::Logicality, &model, change), model.info());
    assert!(matches!(new(|probe| probe.fingerprint.clear()), Err(Error::ProbeRefused { .. })));
    assert!(matches!(new(|probe| probe.states.clear()), Err(Error::ProbeStates { .. })));
    assert!(matches!(new(|probe| probe.states[1] = probe.states[0]), Err(Error::ProbeStates { .. })));
    assert!(matches!(new(|probe| probe.states[1].0 = Layer(5)), Err(Error::ProbeStates { n_layers: 4, .. })));
    assert!(matches!(new(|probe| probe.classes = vec![2, 1]), Err(Error::Scale { .. })));
}

#[test]
fn one_aspect_without_a_score_leaves_no_total() {
    let model = ScriptedBackbone::new(4).with_info(|info| info.max_len = 10);
    let judge = InspectorJudge::new(settings(Aspect::Fluency, &model, |_| {}), model.info()).unwrap();
    let items = [(ItemId::from("a"), [("question", "q"), ("response", "r")])];
    Runner::new(&model, vec![&judge])
        .run(items, &mut |event| {
            if let RunEvent::Item(result) = event {
                let Verdict::Unscored(unscored) = &result.verdicts[0] else { panic!() };
                assert_eq!(unscored.reason, Reason::TooLong);
                assert_eq!(total_score(&result.verdicts), None);
            }
            ControlFlow::Continue(())
        })
        .unwrap();
}
