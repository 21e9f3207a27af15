//! What fuzz targets (`fuzz/` of the repository) reach of this crate: the readers of each kind of
//! file, and what must hold of all that they let in. Only builds with `cfg(fuzzing)` have this
//! module.
//!
//! Each function takes what somebody else may have written and returns nothing: what the crate
//! refuses is not of interest, and what it accepts without being what it says ends in a panic.
//! Files are read from a folder, because that is what users give; only texts that are read from
//! memory anyway are passed as they are.
//!
//! | function | targets | reads |
//! |---|---|---|
//! | `config` | `config` | `config.json` |
//! | `tokenizer` | `tokenizer`, `sentencepiece`, `gguf` | `tokenizer.json` or a SentencePiece model, `tokenizer_config.json`, a template |
//! | `stored` | `safetensors`, `pytorch`, `gguf` | whatever tensors a folder's weights have |
//! | `weights` | `weights` | the tensors that `config.json` describes, quantised or not |
//! | `adapter` | `adapter` | an adapter's configuration and tensors |
//!
//! Invariants that engines rely on are written here as assertions, once: shapes that can be
//! counted, indices in range, numbers that are finite, and the same bits whichever way a tensor is
//! taken.

use std::collections::BTreeSet;
use std::path::Path;

use judge_arch::{Architecture, KeysSpec, angles, query_factors, text_fields};
use judge_kernels::numbers::Numbers;
use judge_weights::names::EMBEDDING;
use serde_json::Map;

use crate::checked::store;
use crate::fingerprint::{self, Hashed};
use crate::folder::Folder;
use crate::weights::{self, Adapted, Adapter, HeadCounts, OwnNames, Store, Tensors};
use crate::{Dtype, WeightsError};

/// Elements of the largest matrix that `adapter` looks at: a low-rank change of a few bytes can be
/// of any size.
const MOST: usize = 1 << 16;

/// Reads a `config.json`.
///
/// # Panics
/// If a description is accepted whose tensors have no countable shape or share a name, whose rotary
/// angles or factors are not finite, or whose blocks name tables, blocks or parts of stacks that
/// are not there.
pub fn config(bytes: &[u8]) {
    let Ok(config) = serde_json::from_slice(bytes) else { return };
    let Ok(spec) = Architecture::from_json(&config) else { return };
    let dimensions = spec.dimensions();
    assert!(dimensions.n_layers > 0 && dimensions.d_model > 0 && dimensions.n_heads > 0 && dimensions.max_len > 0);
    let mut names = BTreeSet::new();
    for (name, shape) in spec.tensors() {
        let bytes = shape.iter().try_fold(4_usize, |bytes, &size| bytes.checked_mul(size));
        assert!(bytes.is_some_and(|bytes| bytes > 0), "{name} {shape:?}");
        assert!(names.insert(name.clone()), "{name} is two tensors");
    }
    for rope in spec.ropes() {
        assert!(rope.rotary_dim >= 2 && rope.rotary_dim.is_multiple_of(2), "{rope:?}");
        for len in [1, dimensions.max_len] {
            let tables = angles(rope, len, 2);
            assert!(tables.iter().flatten().all(|x| x.is_finite()), "{rope:?} for {len} positions");
        }
        assert!(query_factors(rope, 2).into_iter().flatten().all(f32::is_finite), "{rope:?}");
    }
    match &spec {
        Architecture::Decoder(spec) => {
            let scales = [Some(spec.attention_scale), spec.attention_soft_cap, spec.final_soft_cap, spec.clip_qkv];
            for scale in scales.into_iter().chain([spec.residual_scale, spec.logit_scale]).flatten() {
                assert!((scale as f32).is_finite() && scale as f32 > 0.0, "a factor of {scale}");
            }
            assert!((spec.norm_eps as f32).is_finite());
            for block in &spec.blocks {
                assert!(block.rope.is_none_or(|rope| rope < spec.ropes.len()));
                assert!(block.window.is_none_or(|window| window > 0));
                assert!(block.heads.n_heads == spec.n_heads && spec.n_heads.is_multiple_of(block.heads.n_kv_heads));
                if let KeysSpec::Of(other) = block.keys {
                    let other = &spec.blocks[other];
                    assert!(other.has_own_keys() && other.heads == block.heads && other.window == block.window);
                }
            }
            for stack in spec.stacks() {
                let len: usize = stack.shape.iter().product();
                for part in &stack.parts {
                    let steps = part.tensor.1.iter().zip(&part.strides).map(|(size, stride)| (size - 1) * stride);
                    assert!(part.start + steps.sum::<usize>() < len, "{part:?} is not inside {:?}", stack.shape);
                }
            }
        }
        Architecture::Encoder(spec) => {
            assert!(spec.blocks.iter().all(|block| block.rope.is_none_or(|rope| rope < spec.ropes.len())));
            assert!(spec.d_model.is_multiple_of(spec.n_heads));
            assert!((spec.norm_eps as f32).is_finite());
        }
    }
}

/// Reads a folder's tokenizer and template, and uses them as prompts do.
///
/// # Panics
/// Those of [`judge_text::fuzzing::tokenizer`].
pub fn tokenizer(folder: &Path) {
    let Ok(folder) = Folder::open(folder) else { return };
    judge_text::fuzzing::tokenizer(folder.files());
}

/// Reads a folder's weights, whatever model they are of: every tensor that is there, in each of the
/// ways of `is_read`, and the fingerprint of all bytes. A GGUF file is opened as each of ten
/// families, whose names and orders of rows differ; other files once.
///
/// # Panics
/// Those of `is_read`, and if the store calls tensors unused that were all read.
pub fn stored(folder: &Path) {
    let Ok(folder) = Folder::open(folder) else { return };
    for family in ["llama", "mixtral", "qwen3", "qwen2_moe", "gemma3_text", "phi3", "glm4", "olmo2", "lfm2", "bert"] {
        let heads = HeadCounts { family, queries: 4, keys: 2, delta: None, blocks: 2 };
        let Ok(mut store) = weights::open(&folder, &OwnNames::default(), heads, std::iter::empty(), std::iter::empty())
        else {
            continue;
        };
        let tensors: Vec<(String, Vec<usize>)> =
            store.contents().map(|(name, described, _)| (name.to_owned(), shape(&described))).collect();
        if store.check(&tensors).is_ok() {
            let _ = fingerprint::of(&folder, &Hashed { base: &*store, adapters: &[], value_head: None }, true);
        }
        let all_read = tensors.iter().filter(|(name, shape)| is_read(&mut *store, name, shape)).count();
        let _ = (store.stored_dtype(), store.wider_than_bf16(), store.vocabulary(EMBEDDING));
        assert!(all_read < tensors.len() || store.finish().is_ok(), "what was taken counts as left");
        if folder.gguf().is_none() {
            break;
        }
    }
}

/// Reads the weights of the model that a folder's `config.json` describes, and compares what a GGUF file says of its settings. That of an
/// encoder is compared as it is opened.
///
/// # Panics
/// Those of `is_read`, and if the store calls tensors unused that were all read.
pub fn weights(folder: &Path) {
    let Ok(folder) = Folder::open(folder) else { return };
    let Ok(spec) = Architecture::from_json(folder.config()) else { return };
    let Ok(mut store) = store(&folder, &spec) else { return };
    if let (Architecture::Decoder(spec), Some(file)) = (&spec, folder.gguf())
        && let Ok(text) = text_fields(folder.config())
    {
        let none = Map::new();
        let _ = weights::check_settings(file, spec, text.as_ref().or(folder.config().as_object()).unwrap_or(&none));
    }
    let tensors = spec.tensors();
    let is_complete = store.check(&tensors).is_ok();
    let read = tensors.iter().filter(|(name, shape)| is_read(&mut *store, name, shape)).count();
    assert!(!is_complete || read < tensors.len() || store.finish().is_ok(), "what was taken counts as left");
    let _ = (store.stored_dtype(), store.wider_than_bf16());
}

/// Reads an adapter and merges it into matrices of the shapes that it has changes for, of a model
/// all of whose numbers are 1. Matrices of more than 65,536 elements are left out.
///
/// # Panics
/// Those of `is_read`.
pub fn adapter(folder: &Path) {
    let Ok(adapter) = Adapter::open(folder) else { return };
    let stored = adapter.tensors();
    let changed: Vec<(String, Vec<usize>)> = stored
        .names()
        .filter_map(|name| {
            let module = name.strip_prefix("base_model.model.")?;
            let shape = stored.shape(name)?;
            let Some(module) = module.strip_suffix(".lora_A.weight") else {
                return Some((module.to_owned(), shape.to_vec()));
            };
            let rows = stored.shape(&format!("base_model.model.{module}.lora_B.weight"))?.first()?;
            Some((format!("{module}.weight"), vec![*rows, *shape.get(1)?]))
        })
        .filter(|(_, shape)| shape.iter().try_fold(1_usize, |n, &size| n.checked_mul(size)).is_some_and(|n| n <= MOST))
        .collect();
    let _ = adapter.check(&changed);
    let mut adapted = Adapted { base: &mut Ones, adapters: &mut [adapter], untied_from: None, brought: &[] };
    for (name, shape) in &changed {
        is_read(&mut adapted, name, shape);
    }
}

/// Takes a tensor in each way (whole, by rows, as a table) and dtype, and checks that what comes is
/// as long as its shape says, finite, and the same bits each way. Says whether it came at all.
///
/// Tensors without numbers are left out, since models have none; so are norms that are matrices,
/// which no model has either and whose values differ by what GGUF files have added to norms.
fn is_read<T: Tensors + ?Sized>(tensors: &mut T, name: &str, shape: &[usize]) -> bool {
    if shape.contains(&0) || shape.len() > 1 && name.ends_with("norm.weight") {
        return false;
    }
    let mut read = false;
    for dtype in [Dtype::F32, Dtype::Bf16] {
        let Ok(values) = tensors.take(name, shape, dtype) else { continue };
        read = true;
        assert_eq!(values.len(), shape.iter().product::<usize>(), "{name}");
        assert!(values.iter().all(|value| value.is_finite()), "{name}");
        let &[rows, width] = shape else { continue };
        let same = |found: &[f32], expected: &[f32]| {
            assert!(found.iter().map(|x| x.to_bits()).eq(expected.iter().map(|x| x.to_bits())), "{name}");
        };
        let mut by_rows = Vec::new();
        let taken = tensors.take_rows(name, [rows, width], dtype, &mut |first, numbers| {
            assert_eq!(first * width, by_rows.len(), "{name}: rows out of turn");
            match numbers {
                Numbers::F32(values) => by_rows.extend_from_slice(values),
                Numbers::Bf16(values) => by_rows.extend(values.iter().map(|value| value.to_f32())),
            }
        });
        assert!(taken.is_ok(), "{name}");
        same(&by_rows, &values);
        if let Some(coding) =
            tensors.coding(name, [rows, width]).expect("what comes as rows can be asked for its coding")
        {
            let mut dequantised = Vec::new();
            let taken = tensors.take_codes(name, [rows, width], dtype, &mut |first, codes| {
                assert_eq!(first * width, dequantised.len(), "{name}: codes out of turn");
                let mut some = vec![f32::NAN; codes.codes.len()];
                coding.dequantise(codes, &mut some);
                let rounds = |x: f32| if dtype == Dtype::Bf16 { half::bf16::from_f32(x).to_f32() } else { x };
                dequantised.extend(some.into_iter().map(rounds));
            });
            assert!(taken.is_ok(), "{name}");
            same(&dequantised, &values);
        }
        let table = tensors.table(name, [rows, width], dtype).expect("what comes as rows comes as a table");
        let mut row = vec![0.0; width];
        for (index, expected) in values.chunks_exact(width).enumerate() {
            table.row(index, &mut row);
            same(&row, expected);
        }
    }
    read
}

/// The shape in what a store says of a tensor's form: it is behind the dtype, as a list of numbers.
fn shape(described: &str) -> Vec<usize> {
    let (_, shape) = described.split_once(' ').expect("a dtype and a shape");
    serde_json::from_str(shape).expect("a list of numbers")
}

/// A model all of whose numbers are 1, of any shape that is asked for.
struct Ones;

impl Tensors for Ones {
    fn take(&mut self, _: &str, shape: &[usize], _: Dtype) -> Result<Vec<f32>, WeightsError> {
        Ok(vec![1.0; shape.iter().product()])
    }

    fn take_rows(
        &mut self,
        _: &str,
        shape: [usize; 2],
        dtype: Dtype,
        take: &mut dyn FnMut(usize, Numbers<'_>),
    ) -> Result<(), WeightsError> {
        let count = shape[0] * shape[1];
        match dtype {
            Dtype::F32 | Dtype::Tf32 => take(0, Numbers::F32(&vec![1.0; count])),
            Dtype::Bf16 => take(0, Numbers::Bf16(&vec![half::bf16::ONE; count])),
        }
        Ok(())
    }

    /// There is nothing to account for.
    fn pass_over(&mut self, _: &str) {}
}
