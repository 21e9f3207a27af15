//! The composed encoder against the packed one, which serves: states of all layers. Tests of training compare heads, and types of
//! tokens.

#![allow(clippy::print_stdout)] // measured errors

use std::path::{Path, PathBuf};

use judge_arch::Architecture;
use judge_core::request::Pooling;
use judge_core::{Backbone, Prompt, Request, Want};

use super::*;
use crate::checked::CheckedWeights;
use crate::fixtures::relative_error;
use crate::folder::Folder;
use crate::test_models::{answers, reading};
use crate::weights::Tensors;
use crate::{Dtype, LoadOptions, Model};

/// Largest difference over largest value, f32 against f32.
const TOLERANCE: f32 = 1e-5;

const POOLINGS: [Pooling; 5] = [Pooling::First, Pooling::Last, Pooling::Mean, Pooling::Min, Pooling::Max];

fn at(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(folder)
}

/// The same folder for both engines, in f32.
fn load(folder: &Path) -> (Encoder, Model) {
    let folder_ = Folder::open(folder).unwrap();
    let mut spec = Architecture::from_json(folder_.config()).unwrap();
    let mut weights = CheckedWeights::open(&folder_, &mut spec, Some(Dtype::F32), &[]).unwrap();
    let Architecture::Encoder(spec) = spec else { panic!("a decoder") };
    let mut tensors = weights.merged();
    let mut values = |name: &str, shape: &[usize]| Ok(tensors.take(name, shape, Dtype::F32)?);
    let source: &mut crate::engine::tensor::parameters::Values<'_> = &mut values;
    let encoder = Encoder::new(spec, &Device::flex(), source).unwrap();
    let options = LoadOptions { dtype: Some(Dtype::F32), ..LoadOptions::default() };
    (encoder, Model::load(folder, &options).unwrap())
}

/// Rows of numbers, pooled.
fn pooled(rows: &[&[f32]], pooling: Pooling) -> Vec<f32> {
    let column = |at: usize| rows.iter().map(move |row| row[at]);
    let of = |at: usize| match pooling {
        Pooling::First => rows[0][at],
        Pooling::Last => rows[rows.len() - 1][at],
        Pooling::Mean => column(at).map(f64::from).sum::<f64>() as f32 / rows.len() as f32,
        Pooling::Min => column(at).fold(f32::INFINITY, f32::min),
        Pooling::Max => column(at).fold(f32::NEG_INFINITY, f32::max),
    };
    (0..rows[0].len()).map(of).collect()
}

/// Sequences side by side, all types 0.
struct Padded {
    tokens: TensorData,
    types: Vec<i64>,
    lengths: Vec<usize>,
    seq: usize,
    rotation: Rotation,
}

impl Padded {
    fn new(sequences: &[Vec<TokenId>], spec: &EncoderSpec) -> Self {
        let lengths: Vec<usize> = sequences.iter().map(Vec::len).collect();
        let seq = lengths.iter().copied().max().unwrap();
        // Padding is a token of the text here: nothing may depend on it.
        let zeros = std::iter::repeat(&0);
        let tokens = sequences.iter().flat_map(|tokens| tokens.iter().chain(zeros.clone()).take(seq));
        let tokens: Vec<i64> = tokens.map(|&token| i64::from(token)).collect();
        let types = vec![0; tokens.len()];
        let tokens = TensorData::new(tokens, [lengths.len(), seq]);
        let rotation = Rotation::of_lengths(&spec.ropes, &lengths, seq, &Device::flex());
        Self { tokens, types, lengths, seq, rotation }
    }

    fn embed(&self, encoder: &Encoder) -> Tensor<3> {
        encoder.embed(&self.tokens, &self.types, &self.lengths)
    }
}

/// In one batch whose sequences have lengths from one token to the longest of the fixtures.
#[test]
fn states_of_all_layers_are_those_that_are_served() {
    for name in
        ["bert-off", "bert-on", "roberta-off", "roberta-on", "xlm-roberta-off", "modernbert-off", "modernbert-on"]
    {
        let (encoder, model) = load(&at("encoders").join(name));
        let file = std::fs::read(at("encoders").join(name).join("expected.json")).unwrap();
        let expected: serde_json::Value = serde_json::from_slice(&file).unwrap();
        let prompts = expected["prompts"].as_array().unwrap();
        let prompts: Vec<Prompt> =
            prompts.iter().map(|one| Prompt::Raw(one["text"].as_str().unwrap().to_owned())).collect();
        let layers = model.info().layers();
        let wanted: Vec<_> = layers.iter().flat_map(|&layer| POOLINGS.map(|pooling| (layer, pooling))).collect();
        let want = Want { pooled: wanted.clone(), ..Want::default() };
        let requests: Vec<Request> =
            prompts.iter().map(|prompt| Request { prompt: prompt.clone(), want: want.clone() }).collect();
        let served = answers(&model, &requests);

        let tokens: Vec<Vec<TokenId>> = prompts.iter().map(|prompt| model.tokens(prompt).unwrap()).collect();
        let padded = Padded::new(&tokens, encoder.spec());
        let mut streams = vec![padded.embed(&encoder)];
        let first = streams[0].clone();
        // In two parts, as pieces of a backward pass run them.
        let mut keep = |_: usize, x: &Tensor<3>| streams.push(x.clone());
        let x = encoder.run_blocks(0..1, first, &padded.rotation, &padded.lengths, &mut keep);
        encoder.run_blocks(1..encoder.spec().n_layers(), x, &padded.rotation, &padded.lengths, &mut keep);
        assert_eq!(streams.len(), layers.len(), "{name}");
        let streams: Vec<Vec<f32>> = streams.into_iter().map(|x| x.into_data().try_to_vec().unwrap()).collect();
        let (d_model, mut worst) = (encoder.spec().d_model, 0.0_f32);
        for (row, (outcome, tokens)) in served.iter().zip(&tokens).enumerate() {
            for (state, (layer, pooling)) in reading(outcome).pooled.iter().zip(&wanted) {
                let rows = &streams[layer.0][row * padded.seq * d_model..][..tokens.len() * d_model];
                let rows: Vec<&[f32]> = rows.chunks(d_model).collect();
                let error = relative_error(&pooled(&rows, *pooling), &state.values);
                assert!(error < TOLERANCE, "{name}: text {row}, layer {layer:?}, {pooling:?}: {error:e}");
                worst = worst.max(error);
            }
        }
        // Padding leaves numbers everywhere.
        assert!(streams.iter().flatten().all(|x| x.is_finite()), "{name}");
        println!("{name}: largest relative error {worst:.1e}");
    }
}
