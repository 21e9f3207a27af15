//! The decoder against transformers: every position of every layer, and logits over the whole vocabulary.
//!
//! Expected values and the script that made them: `scripts/parity/make_family_fixtures.py`.

#![allow(clippy::print_stdout)] // measured errors

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[cfg(feature = "train")]
use burn::module::{Module, ParamId};
use burn::tensor::{Device, Tensor, TensorData};
use judge_kernels::supported::Supported;

use judge_arch::ModelSpec;
use judge_core::request::TokenId;

use crate::engine::packed::{Angles, BufferPool, KvCache, PackedCache, PackedDecoder, Span};
use crate::engine::tensor::decoder::{Decoder, Fed, Pass};
#[cfg(feature = "train")]
use crate::engine::tensor::parameters::Stored;
use crate::engine::tensor::rotation::Rotation;
use crate::fixtures::{Expected, families, folder, relative_error};
use crate::folder::Folder;
use crate::weights::{Checkpoint, OwnNames, Store, Tensors, checkpoint};
use crate::{Dtype, Error};

/// Largest difference over largest value of a layer, f32 against f32.
const TOLERANCE: f32 = 1e-4;

const ROPES: [&str; 8] = ["default", "linear", "dynamic", "llama3", "yarn", "yarn-full", "longrope", "longrope-factor"];

fn open(folder: PathBuf, config: &ModelSpec) -> Result<Checkpoint, Error> {
    let mut checkpoint = checkpoint(&Folder::open(folder)?)?;
    let own = OwnNames::of(config);
    checkpoint.rename(|stored| own.own(stored))?;
    checkpoint.unstack(config.stacks())?;
    Ok(checkpoint)
}

fn load(folder: PathBuf, config: ModelSpec, dtype: Dtype) -> Result<Decoder, Error> {
    let mut checkpoint = open(folder, &config)?;
    checkpoint.check(&config.tensors())?;
    let decoder =
        Decoder::new(Arc::new(config), &Device::flex(), &mut |name, shape| Ok(checkpoint.take(name, shape, dtype)?))?;
    checkpoint.finish()?;
    Ok(decoder)
}

fn config(path: PathBuf) -> ModelSpec {
    let json = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    ModelSpec::from_json(&json).unwrap()
}

fn tokens(ids: &[i32]) -> Fed {
    Fed::Host(TensorData::new(ids.to_vec(), [1, ids.len()]))
}

fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_to_vec().unwrap()
}

/// A decoder of one of the engines.
enum Engine {
    Composed(Box<Decoder>),
    Packed(Box<PackedDecoder>),
}

/// A model on every engine, by name: composed of Burn's operations, and packed for every kernel.
fn engines(folder: &Path, spec: &ModelSpec, dtype: Dtype) -> Vec<(String, Engine)> {
    let composed = load(folder.to_owned(), spec.clone(), dtype).unwrap();
    let packed = Supported::all().map(|kernel| {
        let mut checkpoint = open(folder.to_owned(), spec).unwrap();
        let spec = Arc::new(spec.clone());
        let decoder = PackedDecoder::load(spec, kernel, dtype, &mut checkpoint, &mut PackedCache::Off).unwrap();
        checkpoint.finish().unwrap();
        (format!("{kernel:?}"), Engine::Packed(Box::new(decoder)))
    });
    [("composed".to_owned(), Engine::Composed(Box::new(composed)))].into_iter().chain(packed).collect()
}

impl Engine {
    /// Residual streams of all layers, the last one normed: transformers' `hidden_states`. Each `[seq, d_model]`.
    fn states(&self, spec: &ModelSpec, ids: &[i32]) -> Vec<Vec<f32>> {
        let mut states = Vec::new();
        match self {
            Self::Composed(decoder) => {
                let rotation = Rotation::new(&spec.ropes, ids.len(), &Device::flex());
                let mut visit = |layer: usize, state: &Tensor<3>| {
                    let is_last = layer == spec.n_layers();
                    states.push(values(if is_last { decoder.final_norm(state.clone()) } else { state.clone() }));
                    ControlFlow::Continue(())
                };
                decoder.forward(&tokens(ids), &[rotation], Pass::default(), &mut visit).unwrap();
            }
            Self::Packed(decoder) => {
                let ids: Vec<TokenId> = ids.iter().map(|id| id.cast_unsigned()).collect();
                let angles = Angles::new(&spec.ropes, ids.len(), ids.len());
                let mut keys = KvCache::new(decoder.key_places(false), None, ids.len());
                let span = Span { ids: &ids, keys: &mut keys, keep: 0..ids.len(), entropies: &[] };
                let pool = &mut BufferPool::default();
                decoder.forward(&mut [span], &angles, spec.n_layers(), pool, &mut |layer, stream| {
                    let rows = stream.rows(0);
                    states.push(match layer {
                        last if last == spec.n_layers() => rows.flat_map(|row| decoder.final_norm(row)).collect(),
                        _ => rows.flatten().copied().collect(),
                    });
                    ControlFlow::Continue(())
                });
            }
        }
        states
    }

    /// Logits of normed states `[seq, d_model]`.
    fn logits(&self, states: &[f32]) -> Vec<f32> {
        match self {
            Self::Composed(decoder) => {
                let d_model = decoder.spec().d_model;
                let states = TensorData::new(states.to_vec(), [1, states.len() / d_model, d_model]);
                values(decoder.logits(Tensor::from_data(states, &Device::flex())))
            }
            Self::Packed(decoder) => decoder.logits(states),
        }
    }
}

/// The largest error of a prompt's states and logits, all of which are within the tolerance.
fn check_prompt(of: &str, expected: &Expected, prompt: usize, states: &[Vec<f32>], logits: &[f32]) -> f32 {
    let mut worst = 0.0_f32;
    let hidden = expected.get(prompt, "hidden");
    let size = hidden.len() / states.len();
    for (layer, state) in states.iter().enumerate() {
        let error = relative_error(state, &hidden[layer * size..][..size]);
        assert!(error < TOLERANCE, "{of}: prompt {prompt}, layer {layer}: {error:e}");
        worst = worst.max(error);
    }
    let error = relative_error(logits, expected.get(prompt, "logits"));
    assert!(error < TOLERANCE, "{of}: prompt {prompt}, logits: {error:e}");
    worst.max(error)
}

/// The largest error of the last position's states in bf16.
fn bf16_error(expected: &Expected, prompt: usize, states: &[Vec<f32>], d_model: usize) -> f32 {
    let error = |(layer, state): (usize, &Vec<f32>)| {
        let reference = &expected.get(prompt, "bf16")[layer * d_model..][..d_model];
        relative_error(&state[state.len() - d_model..], reference)
    };
    states.iter().enumerate().map(error).fold(0.0, f32::max)
}

#[test]
fn all_layers_and_logits_equal_transformers() {
    for name in &families() {
        let (folder, expected) = (folder(name), Expected::of(name));
        let spec = config(folder.join("config.json"));
        for (engine, decoder) in engines(&folder, &spec, Dtype::F32) {
            let mut worst = 0.0_f32;
            for prompt in 0..expected.prompts() {
                let states = decoder.states(&spec, &expected.ids(prompt));
                let logits = decoder.logits(states.last().unwrap());
                worst = worst.max(check_prompt(&format!("{name}, {engine}"), &expected, prompt, &states, &logits));
            }
            println!("{name}, {engine}: largest relative error {worst:.1e}");
        }
    }
}

#[test]
fn every_rope_equals_transformers_within_and_beyond_its_original_context() {
    for kind in ROPES {
        let file = if kind == "default" { "config.json".to_owned() } else { format!("config.{kind}.json") };
        let expected = Expected::read("rope", &format!("expected.{kind}.safetensors"));
        let spec = config(folder("rope").join(file));
        assert_eq!(spec.max_len, 64, "{kind}");
        for (engine, decoder) in engines(&folder("rope"), &spec, Dtype::F32) {
            for prompt in 0..expected.prompts() {
                let states = decoder.states(&spec, &expected.ids(prompt));
                let error = relative_error(states.last().unwrap(), expected.get(prompt, "hidden"));
                println!("{kind}, {engine}: prompt {prompt}: relative error {error:.1e}");
                assert!(error < TOLERANCE, "{kind}, {engine}: prompt {prompt}: {error:e}");
            }
        }
    }
}

/// Both errors are the largest of some thousand roundings, which agree to a few hundredths where they are of one size (gemma2-off: 1.01).
const CHANCE: f32 = 1.05;

#[test]
fn bf16_is_nearer_to_exact_arithmetic_than_transformers() {
    for name in &families() {
        let (folder, expected) = (folder(name), Expected::of(name));
        let spec = config(folder.join("config.json"));
        let theirs = expected.bf16_error_of_transformers();
        for (engine, decoder) in engines(&folder, &spec, Dtype::Bf16) {
            let mut ours = 0.0_f32;
            for prompt in 0..expected.prompts() {
                let states = decoder.states(&spec, &expected.ids(prompt));
                ours = ours.max(bf16_error(&expected, prompt, &states, spec.d_model));
            }
            println!("{name}, {engine}: error {ours:.1e}, transformers' own {theirs:.1e}");
            let allowed = if matches!(decoder, Engine::Composed(_)) { theirs } else { theirs * CHANCE };
            assert!(ours <= allowed, "{name}, {engine}: {ours:e} > {theirs:e}");
        }
    }
}

/// The operations that gradients flow through compute what the others do: batches, padding, windows and all.
#[cfg(feature = "train")]
#[test]
fn a_padded_batch_under_autodiff_equals_each_sequence_alone() {
    for name in &families() {
        let folder = folder(name);
        let expected = Expected::of(name);
        let device = Device::flex().autodiff();
        let config = Arc::new(config(folder.join("config.json")));
        let plain = load(folder.clone(), (*config).clone(), Dtype::F32).unwrap();
        let mut checkpoint = open(folder.clone(), &config).unwrap();
        let decoder = Decoder::new(Arc::clone(&config), &device, &mut |name, shape| {
            Ok(checkpoint.take(name, shape, Dtype::F32)?)
        })
        .unwrap();
        let rows: Vec<Vec<i32>> = (0..expected.prompts()).map(|prompt| expected.ids(prompt)).collect();
        let seq = rows.iter().map(Vec::len).max().unwrap();
        let padded: Vec<i32> =
            rows.iter().flat_map(|row| row.iter().copied().chain(vec![0; seq - row.len()])).collect();
        let batch = Fed::Host(TensorData::new(padded, [rows.len(), seq]));
        let rotation = Rotation::new(&config.ropes, seq, &device);
        let states =
            decoder.forward(&batch, &[rotation], Pass::default(), &mut |_, _| ControlFlow::Continue(())).unwrap();
        let logits = decoder.logits(decoder.final_norm(states.clone()));
        for (index, row) in rows.iter().enumerate() {
            let rotation = Rotation::new(&config.ropes, seq, &Device::flex());
            let alone = plain
                .forward(&tokens(row), &[rotation.positions(0, row.len())], Pass::default(), &mut |_, _| {
                    ControlFlow::Continue(())
                })
                .unwrap();
            let found = states.clone().narrow(0, index, 1).narrow(1, 0, row.len());
            let error = relative_error(&values(found.inner()), &values(alone));
            assert!(error < 1e-5, "{name}: prompt {index}: {error:e}");
        }
        let gradients = logits.square().mean().backward();
        // A choice has no gradient.
        let names = ["expert_bias", "e_score_correction_bias"];
        let of_choice = |stored: &&Stored| names.iter().any(|name| stored.parts[0].0.ends_with(name));
        let fixed = decoder.stored().iter().filter(of_choice).map(|stored| stored.id).collect();
        let mut visitor = HasGradient { gradients: &gradients, fixed, count: 0 };
        decoder.visit(&mut visitor);
        assert!(visitor.count > 0);
    }
}

/// Fails on a parameter without a finite gradient that is not all zero, but for those that have none.
#[cfg(feature = "train")]
struct HasGradient<'a> {
    gradients: &'a burn::tensor::Gradients,
    fixed: Vec<ParamId>,
    count: usize,
}

#[cfg(feature = "train")]
impl burn::module::ModuleVisitor for HasGradient<'_> {
    fn visit_float<const D: usize>(&mut self, param: &burn::module::Param<Tensor<D>>) {
        if self.fixed.contains(&param.id) {
            return;
        }
        let gradient = values(param.val().grad(self.gradients).expect("every parameter has a gradient"));
        assert!(gradient.iter().all(|x| x.is_finite()) && gradient.iter().any(|&x| x != 0.0));
        self.count += 1;
    }
}
