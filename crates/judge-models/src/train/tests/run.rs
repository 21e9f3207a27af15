//! A run from step to step, stopped and resumed.

use std::fs;
use std::ops::ControlFlow;

use safetensors::SafeTensors;

use super::*;
use crate::train::adamw::Move;
use crate::train::trainable::Trainable;

#[test]
fn a_stopped_run_resumes_bit_for_bit() {
    let at = tempfile::tempdir().unwrap();
    let path = at.path().join("checkpoint.safetensors");
    let begin = || new("qwen3-on", Mark { labels: labels(), alpha: 0.5 }, settings(lora()));
    let mut whole = begin();
    take_steps(&mut whole, 6, &marks());
    for stop in [1, 3] {
        let mut first = begin();
        take_steps(&mut first, stop, &marks());
        first.save(&path).unwrap();
        let mut second = begin();
        second.resume(&path).unwrap();
        assert_eq!(second.steps_done(), stop);
        take_steps(&mut second, 6 - stop, &marks());
        assert_eq!(second.trainables, whole.trainables);
    }
}

/// A run that fails or is stopped anywhere is resumed to the same bits, and a failed step leaves the last good state.
#[test]
fn a_run_is_stopped_and_resumed_anywhere() {
    let at = tempfile::tempdir().unwrap();
    let path = at.path().join("checkpoint.safetensors");
    let begin = || new("qwen3-on", Class { classes: 3 }, settings(lora()));
    let run = Run { checkpoint: Some(&path), every: 3 };
    let batch = |step: u64| Ok::<_, TrainError>(vec![classes()[step as usize % 2].clone()]);
    let mut whole = begin();
    let mut events = Vec::new();
    let all = Run { checkpoint: None, ..run };
    whole
        .run(&all, batch, |trainer, event| {
            events.push((trainer.steps_done(), matches!(event, RunEvent::Checkpoint)));
            Ok(ControlFlow::Continue(()))
        })
        .unwrap();
    let checkpoints: Vec<u64> = events.iter().filter(|event| event.1).map(|event| event.0).collect();
    assert_eq!((events.len(), checkpoints), (11, vec![3, 6, 8]));

    let mut asked = Vec::new();
    for stop in [2, 3, 5] {
        let mut trainer = begin();
        let stopped = |trainer: &Trainer<Class>, _| {
            Ok(if trainer.steps_done() == stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        };
        trainer
            .run(
                &run,
                |step| {
                    asked.push(step);
                    batch(step)
                },
                stopped,
            )
            .unwrap();
        assert_eq!(trainer.steps_done(), stop);
    }
    let bad = |step: u64| {
        let class = if step == 7 { 9 } else { classes()[step as usize % 2].class };
        Ok(vec![ClassExample { class, ..classes()[step as usize % 2].clone() }])
    };
    let go_on = |_: &Trainer<Class>, _| Ok(ControlFlow::Continue(()));
    let failed: Result<(), TrainError> = begin().run(&run, bad, go_on);
    assert!(matches!(failed, Err(TrainError::Example { index: 0, .. })), "{failed:?}");
    let mut last = begin();
    last.run(
        &run,
        |step| {
            asked.push(step);
            batch(step)
        },
        go_on,
    )
    .unwrap();
    assert_eq!(asked, [0, 1, 2, 3, 4, 7]);
    assert_eq!(last.trainables, whole.trainables);
    let never = Run { every: 0, ..run };
    assert!(matches!(begin().run(&never, batch, go_on), Err(TrainError::Setting { setting: "run.every", .. })));
}

/// A look that fails is not behind a resumed run, which comes to it again with the same bits.
#[test]
fn a_look_that_fails_is_taken_again() {
    let at = tempfile::tempdir().unwrap();
    let path = at.path().join("checkpoint.safetensors");
    let run = Run { checkpoint: Some(&path), every: 3 };
    let mut looks = Vec::new();
    for fails_at in [6, 8, 9] {
        let mut trainer = new("qwen3-on", Class { classes: 3 }, settings(lora()));
        let ran: Result<(), TrainError> = trainer.run(
            &run,
            |_| Ok(classes()),
            |trainer, event| {
                if event != RunEvent::Checkpoint {
                    return Ok(ControlFlow::Continue(()));
                }
                looks.push((trainer.steps_done(), trainer.loss(&classes())?));
                let fails = trainer.steps_done() == fails_at;
                if fails { Err(TrainError::EmptyBatch) } else { Ok(ControlFlow::Continue(())) }
            },
        );
        assert_eq!(ran.is_ok(), fails_at == 9, "{ran:?}");
    }
    assert_eq!(looks.iter().map(|look| look.0).collect::<Vec<_>>(), [3, 6, 6, 8, 8]);
    assert!(looks[1] == looks[2] && looks[3] == looks[4], "{looks:?}");
}

#[test]
fn steps_lower_every_loss_to_what_can_be_learnt() {
    fn after<L: Loss>(loss: L, tuning: Tuning, batch: &[L::Example]) -> (f64, f64) {
        let schedule = Schedule { peak: 1e-2, warmup: 5, steps: 60, course: Course::Linear };
        let mut trainer = new("llama-off", loss, TrainSettings { schedule, ..settings(tuning) });
        let before = trainer.loss(batch).unwrap();
        take_steps(&mut trainer, 60, batch);
        (before, trainer.loss(batch).unwrap())
    }
    let hard = vec![
        MarkExample { prompt: vec![1, 5, 20, 7], target: vec![0.0, 1.0, 0.0] },
        MarkExample { prompt: vec![9, 4], target: vec![0.0, 0.0, 1.0] },
    ];
    let last = || last(vec![10, 20, 30], vec![1.0, 2.0, 3.0]);
    for tuning in [Tuning::Full, lora()] {
        let score = BradleyTerry { reward: Reward::Score, centring: 0.0 };
        let expected = BradleyTerry { reward: Reward::Expected(last()), centring: 0.0 };
        let unlike = [PairExample { better: vec![1, 5, 20, 7], worse: vec![1, 5, 21], margin: 0.0 }];
        let found = [
            after(Completion, tuning.clone(), &completions()),
            after(Mark { labels: last(), alpha: 0.8 }, tuning.clone(), &hard),
            after(score, tuning.clone(), &pairs()),
            after(Class { classes: 3 }, tuning.clone(), &classes()),
            after(Decision::default(), tuning.clone(), &decisions()[..1]),
        ];
        assert!(found.iter().all(|(before, after)| *after < 0.35 * before), "{tuning:?}: {found:?}");
        // Expected marks of 1 to 3 differ by 2 at most: ln(1 + exp(-2)) = 0.127.
        let (before, after) = after(expected, tuning, &unlike);
        assert!(after < 0.2 && after < before, "{before} {after}");
    }
}

#[test]
fn label_logits_are_those_that_the_loss_reads() {
    let mut trainer =
        new("qwen2-on", Mark { labels: last(vec![10, 20], vec![0.0, 1.0]), alpha: 1.0 }, settings(lora()));
    let examples = [MarkExample { prompt: vec![1, 5, 20, 7], target: vec![1.0, 0.0] }];
    take_steps(&mut trainer, 3, &examples);
    let logits = &trainer.label_logits(&[vec![1, 5, 20, 7]], &[10, 20]).unwrap()[0];
    let loss = (1.0 + f64::from(logits[1] - logits[0]).exp()).ln();
    assert!((loss - trainer.loss(&examples).unwrap()).abs() < 1e-5);
}

/// Weights of layers that are learnt move, are kept in checkpoints, and are no tensor of a folder.
#[test]
fn layer_weights_are_learnt_beside_the_model() {
    let at = tempfile::tempdir().unwrap();
    let path = at.path().join("checkpoint.safetensors");
    for tuning in [lora(), Tuning::Full] {
        let begin = || new("qwen3-on", Mark { labels: weighed(), alpha: 0.7 }, settings(tuning.clone()));
        assert!(new("qwen3-on", Mark { labels: labels(), alpha: 0.7 }, settings(lora())).layer_weights().is_none());
        let mut trainer = begin();
        let first = trainer.layer_weights().unwrap().to_vec();
        assert!(first.iter().zip([0.1_f32, 0.3, 0.6]).all(|(x, weight)| (x.exp() - weight).abs() < 1e-6));
        let before = trainer.loss(&marks()).unwrap();
        take_steps(&mut trainer, 6, &marks());
        assert!(trainer.loss(&marks()).unwrap() < before);
        assert!(trainer.layer_weights().unwrap().iter().zip(&first).all(|(a, b)| a != b));
        trainer.save(&path).unwrap();
        let mut resumed = begin();
        resumed.resume(&path).unwrap();
        assert_eq!(resumed.layer_weights(), trainer.layer_weights());
        let out = at.path().join(if tuning == Tuning::Full { "model" } else { "adapter" });
        trainer.write(&out, None).unwrap();
        let name = if tuning == Tuning::Full { "model.safetensors" } else { "adapter_model.safetensors" };
        let bytes = fs::read(out.join(name)).unwrap();
        assert!(SafeTensors::deserialize(&bytes).unwrap().names().iter().all(|name| !name.contains("layer_weights")));
    }
}

#[test]
fn a_loss_is_divided_by_what_counts_or_by_examples() {
    let of =
        |mean| new("llama-off", Completion, TrainSettings { mean, ..settings(lora()) }).step(&completions()).unwrap();
    let (counted, examples) = (of(Mean::Counted), of(Mean::Examples));
    assert_eq!(counted.count, 5.75);
    assert!((counted.loss * 5.75 - examples.loss * 3.0).abs() < 1e-4, "{counted:?} {examples:?}");
    assert!((counted.grad_norm * 5.75 - examples.grad_norm * 3.0).abs() < 1e-4 * examples.grad_norm * 3.0);
}

/// Expected values: `scripts/train/adamw.py`, three steps of `torch.optim.AdamW`.
#[test]
fn adamw_is_pytorchs() {
    let optimizer = AdamW { beta1: 0.9, beta2: 0.98, epsilon: 1e-8, weight_decay: 0.1 };
    let mut trainable = Trainable::new("w", &[1, 3], vec![0.5, -1.0, 2.0]);
    let expected = [
        [0.394_999_98, -0.89, 1.98],
        [0.297_562_27, -0.917_605_4, 1.886_141_9],
        [0.283_508_6, -0.940_314_4, 1.781_842_7],
    ];
    for (step, (gradient, expected)) in
        (1..).zip([[1.0, -2.0, 0.0], [0.5, 4.0, 1e-3], [-1.0, 0.25, 1e-3]].iter().zip(expected))
    {
        let by = Move { factor: 1.0, learning_rate: 0.1, step };
        assert!(optimizer.stays_finite(&trainable, gradient, by));
        optimizer.update(&mut trainable, gradient, by);
        for (found, expected) in trainable.values.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-6, "step {step}: {:?}", trainable.values);
        }
    }
    // A vector does not decay.
    let mut vector = Trainable::new("b", &[3], vec![0.5, -1.0, 2.0]);
    let by = Move { factor: 1.0, learning_rate: 0.1, step: 1 };
    optimizer.update(&mut vector, &[0.0; 3], by);
    assert_eq!(vector.values, [0.5, -1.0, 2.0]);
    for (gradient, by) in [([1.0, 1.0, 1.0], Move { learning_rate: 1e39, ..by }), ([0.0, 1e38, 0.0], by)] {
        assert!(!optimizer.stays_finite(&vector, &gradient, by));
    }
}

/// Expected values: `get_cosine_schedule_with_warmup` and `get_linear_schedule_with_warmup` of transformers.
#[test]
fn rates_are_those_of_transformers() {
    let rates = |course| {
        let schedule = Schedule { peak: 2.0, warmup: 4, steps: 10, course };
        [0, 1, 4, 7, 10, 20].map(|done| schedule.learning_rate(done))
    };
    for (course, expected) in [
        (Course::Constant, [0.0, 0.5, 2.0, 2.0, 2.0, 2.0]),
        (Course::Linear, [0.0, 0.5, 2.0, 1.0, 0.0, 0.0]),
        (Course::Cosine, [0.0, 0.5, 2.0, 1.0, 0.0, 0.0]),
        (Course::Eased { floor: 0.1 }, {
            let at = |part: f64| 2.0 * (0.1 + 0.45 * (1.0 + (std::f64::consts::PI * part).cos()));
            [at(0.0) / 4.0, at(0.1) / 2.0, at(0.4), at(0.7), 0.2, 0.2]
        }),
    ] {
        for (found, expected) in rates(course).into_iter().zip(expected) {
            assert!((found - expected).abs() < 1e-12, "{course:?}: {:?}", rates(course));
        }
    }
}

#[test]
fn only_a_checkpoint_of_the_same_run_is_taken() {
    let at = tempfile::tempdir().unwrap();
    let path = at.path().join("checkpoint.safetensors");
    new("qwen3-on", Completion, settings(lora())).save(&path).unwrap();
    let refused = |result: Result<(), TrainError>| match result {
        Err(TrainError::OtherRun { what, .. }) => what,
        other => panic!("{other:?}"),
    };
    let resumed = |model: &str, settings| new(model, Completion, settings).resume(&path);
    assert_eq!(refused(resumed("llama-on", settings(lora()))), "model");
    assert_eq!(refused(resumed("qwen3-on", TrainSettings { seed: 1, ..settings(lora()) })), "settings");
    assert_eq!(refused(resumed("qwen3-on", TrainSettings { data: "other".into(), ..settings(lora()) })), "settings");
    assert_eq!(refused(new("qwen3-on", Mark { labels: labels(), alpha: 1.0 }, settings(lora())).resume(&path)), "loss");
    // Threads change no bit.
    resumed("qwen3-on", TrainSettings { threads: 1, ..settings(lora()) }).unwrap();

    // Settings are JSON: their layout and the order of fields do not count, their values do.
    let bytes = fs::read(&path).unwrap();
    let rewritten = |change: &dyn Fn(&mut serde_json::Value), drop: &str| {
        let (_, header) = SafeTensors::read_metadata(&bytes).unwrap();
        let mut metadata = header.metadata().clone().unwrap();
        let mut stated: serde_json::Value = serde_json::from_str(&metadata["settings"]).unwrap();
        let seed = stated.as_object_mut().unwrap().shift_remove("seed").unwrap();
        stated["seed"] = seed;
        change(&mut stated);
        metadata.insert("settings".to_owned(), format!("{stated:#}"));
        let tensors = SafeTensors::deserialize(&bytes).unwrap().tensors();
        let kept: Vec<_> = tensors.into_iter().filter(|(name, _)| name != drop).collect();
        fs::write(&path, safetensors::serialize(kept, Some(metadata)).unwrap()).unwrap();
        new("qwen3-on", Completion, settings(lora())).resume(&path)
    };
    rewritten(&|_| {}, "").unwrap();
    assert_eq!(refused(rewritten(&|stated| stated["schedule"]["peak"] = serde_json::json!(0.5), "")), "settings");
    let dropped = "mean.model.layers.0.self_attn.q_proj.lora_A.weight";
    assert!(matches!(
        rewritten(&|_| {}, dropped),
        Err(TrainError::CheckpointTensor { tensor, found, .. }) if tensor == dropped && found == "absent"
    ));
    let mut other = new("qwen3-on", Completion, settings(lora()));
    fs::write(&path, [0; 100]).unwrap();
    assert!(matches!(other.resume(&path), Err(TrainError::NoCheckpoint { .. })));
    assert!(matches!(
        other.resume(&at.path().join("none")),
        Err(TrainError::Model(crate::Error::Weights(crate::WeightsError::Read { .. })))
    ));
    assert!(matches!(
        other.save(&at.path().join("no/such/folder")),
        Err(TrainError::Model(crate::Error::Write { .. }))
    ));
}
