use std::fs;

use judge_core::{Prompt, Request, Want};
use safetensors::SafeTensors;

use super::{Example, Schedule, TrainProblem, TrainSettings, Trainer};
use crate::{Dtype, Error, LoadOptions, Model, fixtures, test_models};

/// Every kind of parameter that the trainer knows: biases, norms of heads, an own output head, groups of heads.
const QWEN3: &str = r#"{"model_type": "qwen3", "hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 4, "vocab_size": 13, "rms_norm_eps": 1e-6, "max_position_embeddings": 16, "tie_word_embeddings": true}"#;
const QWEN2: &str = r#"{"model_type": "qwen2", "hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 1, "num_attention_heads": 2,
    "num_key_value_heads": 1, "vocab_size": 13, "rms_norm_eps": 1e-6, "max_position_embeddings": 16, "tie_word_embeddings": false}"#;

/// Neighbours that rotate together, in part of a head, and norms around both halves of a block.
const GLM4: &str = r#"{"model_type": "glm4", "hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 1, "num_attention_heads": 2,
    "num_key_value_heads": 1, "head_dim": 8, "vocab_size": 13, "rms_norm_eps": 1e-6, "max_position_embeddings": 16, "tie_word_embeddings": true}"#;
/// LayerNorm, and halves of a block beside one another.
const COHERE2: &str = r#"{"model_type": "cohere2", "hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 2, "num_attention_heads": 2,
    "num_key_value_heads": 1, "vocab_size": 13, "max_position_embeddings": 16, "sliding_window": 2, "sliding_window_pattern": 2, "logit_scale": 0.5}"#;
/// A delta rule, and attention with gates.
const QWEN3_5: &str = r#"{"model_type": "qwen3_5_text", "hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 2, "num_attention_heads": 2,
    "num_key_value_heads": 1, "head_dim": 8, "vocab_size": 13, "rms_norm_eps": 1e-6, "max_position_embeddings": 16, "tie_word_embeddings": true,
    "full_attention_interval": 2, "linear_num_key_heads": 1, "linear_num_value_heads": 2, "linear_key_head_dim": 4, "linear_value_head_dim": 4,
    "linear_conv_kernel_dim": 3}"#;

/// A final soft-cap, which changes the loss a lot here.
const GEMMA2: &str = r#"{"model_type": "gemma2", "hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 1, "num_attention_heads": 2,
    "num_key_value_heads": 1, "head_dim": 4, "vocab_size": 13, "rms_norm_eps": 1e-6, "max_position_embeddings": 16, "query_pre_attn_scalar": 4,
    "final_logit_softcapping": 0.5, "sliding_window": 8}"#;

fn batch() -> Vec<Example> {
    vec![
        Example { tokens: vec![1, 5, 2, 7, 9], weights: vec![0.0, 0.5, 0.0, 1.0, 1.0] },
        Example { tokens: vec![4, 4, 12], weights: vec![0.0, 0.25, 2.0] },
        Example { tokens: vec![0, 3, 6, 8], weights: vec![0.0, 0.0, 0.0, 1.0] },
    ]
}

fn settings() -> TrainSettings {
    // Large enough that a parameter's influence is not lost in f32's last digits.
    TrainSettings {
        init_spread: 0.5,
        schedule: Schedule { peak: 1e-2, warmup: 2, steps: 8, floor: 0.1 },
        ..TrainSettings::default()
    }
}

fn loss(trainer: &Trainer, batch: &[Example]) -> f64 {
    super::gradients::of_part(trainer, batch).unwrap().0
}

#[test]
fn gradients_are_those_of_finite_differences() {
    for config in [QWEN3, QWEN2, GLM4, COHERE2, QWEN3_5, GEMMA2] {
        let mut trainer = Trainer::new(config, settings()).unwrap();
        let (_, gradients) = super::gradients::of_part(&trainer, &batch()).unwrap();
        for (index, gradient) in gradients.iter().enumerate() {
            let name = trainer.parameters[index].name.clone();
            let largest = gradient.iter().map(|g| g.abs()).fold(0.0, f32::max);
            assert!(largest > 1e-4, "{name}: {largest}");
            for at in [0, gradient.len() / 2, gradient.len() - 1] {
                let (value, delta) = (trainer.parameters[index].values[at], 1e-2_f32);
                let mut at_offset = |offset: f32| {
                    trainer.parameters[index].values[at] = value + offset;
                    loss(&trainer, &batch())
                };
                let numeric = (8.0 * (at_offset(delta) - at_offset(-delta))
                    - (at_offset(2.0 * delta) - at_offset(-2.0 * delta)))
                    / (12.0 * f64::from(delta));
                at_offset(0.0);
                let analytic = f64::from(gradient[at]);
                assert!(
                    (numeric - analytic).abs() < 2e-3 + 1e-2 * analytic.abs(),
                    "{name}[{at}]: {analytic}, numerically {numeric}"
                );
            }
        }
    }
}

#[test]
fn a_stopped_run_goes_on_bit_for_bit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("checkpoint.safetensors");
    let mut whole = Trainer::new(QWEN3, settings()).unwrap();
    for _ in 0..6 {
        whole.step(&batch()).unwrap();
    }
    let mut first = Trainer::new(QWEN3, settings()).unwrap();
    for _ in 0..3 {
        first.step(&batch()).unwrap();
    }
    first.save(&path).unwrap();
    let mut second = Trainer::new(QWEN3, settings()).unwrap();
    second.resume(&path).unwrap();
    assert_eq!(second.steps_done(), 3);
    for _ in 0..3 {
        second.step(&batch()).unwrap();
    }
    assert_eq!(second.parameters, whole.parameters);
}

#[test]
fn steps_lower_the_loss_to_what_can_be_learnt() {
    let settings = TrainSettings { schedule: Schedule { peak: 3e-2, warmup: 5, steps: 60, floor: 0.1 }, ..settings() };
    let mut trainer = Trainer::new(QWEN3, settings).unwrap();
    let before = trainer.step(&batch()).unwrap().loss;
    for _ in 1..60 {
        trainer.step(&batch()).unwrap();
    }
    let after = trainer.step(&batch()).unwrap().loss;
    assert!(before > 3.0 && after < 0.5, "{before} to {after}");
    let logits = trainer.label_logits(&[1, 5, 2], &[7, 9]).unwrap();
    assert!(logits[0] > logits[1] + 2.0, "{logits:?}");
}

#[test]
fn another_number_of_shards_gives_nearly_the_same_step() {
    let step = |shards| {
        let mut trainer = Trainer::new(QWEN3, TrainSettings { shards, ..settings() }).unwrap();
        trainer.step(&batch()).unwrap()
    };
    let (one, three) = (step(1), step(3));
    assert!(
        (one.loss - three.loss).abs() < 1e-5 && (one.grad_norm - three.grad_norm).abs() < 1e-4,
        "{one:?} {three:?}"
    );
}

#[test]
fn an_example_that_does_not_count_changes_nothing() {
    let mut with = batch();
    with.push(Example { tokens: vec![3, 2, 1], weights: vec![0.0; 3] });
    let trainer = Trainer::new(QWEN3, settings()).unwrap();
    let (loss_without, without) = super::gradients::of_part(&trainer, &batch()).unwrap();
    let (loss_with, with) = super::gradients::of_part(&trainer, &with).unwrap();
    assert!((loss_with - loss_without).abs() < 1e-5);
    assert!(with.iter().flatten().zip(without.iter().flatten()).all(|(a, b)| (a - b).abs() < 1e-4));
    let (nothing, none) =
        super::gradients::of_part(&trainer, &[Example { tokens: vec![3, 2], weights: vec![0.0; 2] }]).unwrap();
    assert_eq!(nothing, 0.0);
    assert!(none.iter().flatten().all(|&g| g == 0.0));
}

#[test]
fn an_export_has_the_checkpoint_tensors_and_always_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let trainer = Trainer::new(QWEN3, settings()).unwrap();
    let [a, b] = ["a", "b"].map(|name| folder.path().join(name));
    trainer.export(&a, Dtype::Bf16).unwrap();
    trainer.export(&b, Dtype::Bf16).unwrap();
    let bytes = fs::read(&a).unwrap();
    assert_eq!(bytes, fs::read(&b).unwrap());
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(tensors.len(), trainer.parameters.len());
    for parameter in &trainer.parameters {
        let view = tensors.tensor(&parameter.name).unwrap();
        assert_eq!(view.shape(), parameter.shape);
        let first = half::bf16::from_le_bytes([view.data()[0], view.data()[1]]);
        assert_eq!(first, half::bf16::from_f32(parameter.values[0]));
    }
}

#[test]
fn the_loss_is_that_of_the_model_that_is_served() {
    for config in [QWEN3, COHERE2, GEMMA2] {
        // The vocabulary of the fixture's tokenizer.
        let config = config.replace("\"vocab_size\": 13", "\"vocab_size\": 96");
        let trainer = Trainer::new(&config, settings()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        trainer.export(&at("model.safetensors"), Dtype::F32).unwrap();
        fs::write(at("config.json"), &config).unwrap();
        for name in ["tokenizer.json", "tokenizer_config.json"] {
            fs::copy(fixtures::folder("llama-off").join(name), at(name)).unwrap();
        }
        let model =
            Model::load(folder.path(), &LoadOptions { dtype: Some(Dtype::F32), ..LoadOptions::default() }).unwrap();
        let want = Want { prompt_log_probs: true, ..Want::default() };
        let request = Request { prompt: Prompt::Raw("ba de fi go ba".to_owned()), want };
        let tokens = model.tokens(&request.prompt).unwrap();
        let outcome = test_models::answers(&model, &[request]).remove(0);
        let log_probs = &test_models::reading(&outcome).prompt_log_probs.as_ref().unwrap().log_probs;
        let served = -log_probs.iter().map(|&x| f64::from(x)).sum::<f64>();
        let weights = vec![1.0; tokens.len()];
        let trained = loss(&trainer, &[Example { tokens, weights }]);
        assert!((served - trained).abs() < 1e-4 * served, "{config}: {trained}, served {served}");
    }
}

#[test]
fn a_parameter_without_a_gradient_is_an_error() {
    let mut trainer = Trainer::new(QWEN3, settings()).unwrap();
    let other = super::parameter::Parameter { name: "of nothing".to_owned(), ..trainer.parameters[0].clone() };
    trainer.parameters.push(other);
    let found = super::gradients::of_part(&trainer, &batch());
    assert!(
        matches!(&found, Err(Error::Train { problem: TrainProblem::NoGradient { parameter } }) if parameter == "of nothing")
    );
}

#[test]
fn the_rate_warms_up_and_falls_along_a_cosine() {
    let schedule = Schedule { peak: 2.0, warmup: 4, steps: 100, floor: 0.1 };
    let rates = [0, 3, 50, 100, 1_000].map(|done| schedule.learning_rate(done));
    let expected = [0.5, 2.0 * (0.1 + 0.45 * (1.0 + (std::f64::consts::PI * 0.03).cos())), 1.1, 0.2, 0.2];
    for (rate, expected) in rates.into_iter().zip(expected) {
        assert!((rate - expected).abs() < 1e-12, "{rates:?}");
    }
}

#[test]
fn what_cannot_be_learnt_from_is_refused() {
    let mut trainer = Trainer::new(QWEN3, settings()).unwrap();
    let before = trainer.parameters.clone();
    let one = |tokens: &[u32], weights: &[f32]| vec![Example { tokens: tokens.to_vec(), weights: weights.to_vec() }];
    let mut problem = |batch: &[Example]| match trainer.step(batch) {
        Err(Error::Train { problem }) => problem,
        other => panic!("{other:?}"),
    };
    assert!(matches!(problem(&[]), TrainProblem::EmptyBatch));
    assert!(matches!(problem(&one(&[1], &[1.0])), TrainProblem::Length { found: 1, least: 2, most: 16 }));
    assert!(matches!(problem(&one(&[1; 17], &[1.0; 17])), TrainProblem::Length { found: 17, .. }));
    assert!(matches!(problem(&one(&[1, 13], &[1.0; 2])), TrainProblem::Token { found: 13, d_vocab: 13 }));
    assert!(matches!(problem(&one(&[1, 2], &[1.0; 3])), TrainProblem::Weights { tokens: 2, weights: 3 }));
    assert!(matches!(problem(&one(&[1, 2], &[0.0, f32::NAN])), TrainProblem::Weight { at: 1, .. }));
    assert!(matches!(problem(&one(&[1, 2], &[0.0, -1.0])), TrainProblem::Weight { at: 1, .. }));
    assert_eq!(trainer.parameters, before);
    for settings in [TrainSettings { shards: 0, ..settings() }, TrainSettings { max_grad_norm: f64::NAN, ..settings() }]
    {
        assert!(matches!(Trainer::new(QWEN3, settings), Err(Error::Train { problem: TrainProblem::Setting { .. } })));
    }
    assert!(matches!(Trainer::new("{", settings()), Err(Error::Json { .. })));
    let with_experts = Trainer::new(r#"{"model_type": "mixtral", "num_hidden_layers": 1}"#, settings());
    let family = "mixtral";
    assert!(
        matches!(with_experts, Err(Error::Train { problem: TrainProblem::Experts { family: found } }) if found == family)
    );
    let fixed = r#"{"model_type": "gemma4_text", "num_hidden_layers": 1, "hidden_size_per_layer_input": 0}"#;
    let refused = Trainer::new(fixed, settings());
    assert!(matches!(refused, Err(Error::Train { problem: TrainProblem::Fixed { family: "gemma4_text" } })));
    for class in ["Qwen3Model", "Qwen3ForSequenceClassification"] {
        let headless = QWEN3.replacen('{', &format!("{{\"architectures\": [\"{class}\"], "), 1);
        let refused = Trainer::new(&headless, settings());
        assert!(matches!(refused, Err(Error::Train { problem: TrainProblem::NoHead { family: "qwen3" } })), "{class}");
    }
    assert!(matches!(Trainer::new("{}", settings()), Err(Error::Config { .. })));
}

#[test]
fn only_a_checkpoint_of_the_same_run_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("checkpoint.safetensors");
    Trainer::new(QWEN3, settings()).unwrap().save(&path).unwrap();
    let mut other = Trainer::new(QWEN2, settings()).unwrap();
    assert!(matches!(
        other.resume(&path),
        Err(Error::Train { problem: TrainProblem::OtherRun { what: "config", .. } })
    ));
    let mut other = Trainer::new(QWEN3, TrainSettings { seed: 1, ..settings() }).unwrap();
    assert!(matches!(
        other.resume(&path),
        Err(Error::Train { problem: TrainProblem::OtherRun { what: "settings", .. } })
    ));
    // Settings are JSON: their layout and the order of fields do not count, their values do.
    let bytes = fs::read(&path).unwrap();
    let written = |change: &dyn Fn(&mut serde_json::Value)| {
        let (_, header) = SafeTensors::read_metadata(&bytes).unwrap();
        let mut metadata = header.metadata().clone().unwrap();
        let mut stated: serde_json::Value = serde_json::from_str(&metadata["settings"]).unwrap();
        let seed = stated.as_object_mut().unwrap().shift_remove("seed").unwrap();
        stated["seed"] = seed;
        change(&mut stated);
        metadata.insert("settings".to_owned(), format!("{stated:#}"));
        let tensors = SafeTensors::deserialize(&bytes).unwrap();
        fs::write(&path, safetensors::serialize(tensors.tensors(), Some(metadata)).unwrap()).unwrap();
        Trainer::new(QWEN3, settings()).unwrap().resume(&path)
    };
    written(&|_| {}).unwrap();
    let other_rate = written(&|stated| stated["schedule"]["peak"] = serde_json::json!(0.5));
    assert!(matches!(other_rate, Err(Error::Train { problem: TrainProblem::OtherRun { what: "settings", .. } })));
    fs::write(&path, [0; 100]).unwrap();
    assert!(matches!(other.resume(&path), Err(Error::Train { problem: TrainProblem::NoCheckpoint { .. } })));
    assert!(matches!(other.resume(&folder.path().join("none")), Err(Error::Read { .. })));
}

#[test]
fn the_optimiser_steps_as_pytorch_does() {
    // scripts/train/adamw.py, torch 2.15.0.
    let expected = [
        [0.394_999_98, -0.89, 1.98],
        [0.297_562_27, -0.917_605_4, 1.886_141_9],
        [0.283_508_6, -0.940_314_4, 1.781_842_7],
    ];
    let mut parameter = super::parameter::Parameter {
        name: "matrix".to_owned(),
        shape: vec![1, 3],
        values: vec![0.5, -1.0, 2.0],
        mean: vec![0.0; 3],
        square: vec![0.0; 3],
    };
    let gradients = [[1.0, -2.0, 0.0], [0.5, 4.0, 1e-3], [-1.0, 0.25, 1e-3]];
    for (step, (gradient, expected)) in (1..).zip(gradients.iter().zip(expected)) {
        super::AdamW::default().update(&mut parameter, gradient, 1.0, 0.1, step);
        for (value, expected) in parameter.values.iter().zip(expected) {
            assert!((value - expected).abs() < 2e-6, "step {step}: {:?}", parameter.values);
        }
    }
}
