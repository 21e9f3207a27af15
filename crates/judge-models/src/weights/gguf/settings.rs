//! What a GGUF file says of its model's settings, compared with `config.json`.
//!
//! Everything is computed by `config.json`. The file of one model beside the `config.json` of another
//! of the same shape (a fine-tune, a release with a longer context) would give wrong numbers without a
//! word, so settings that the file states must be those of the description:
//!
//! | key, behind the architecture's name | must be |
//! |---|---|
//! | `block_count`, `embedding_length`, `feed_forward_length` | the numbers of blocks and their widths |
//! | `attention.head_count`, `.head_count_kv`, `.key_length`, `.value_length` | heads and their width |
//! | `attention.layer_norm_rms_epsilon`, `.sliding_window`, `.causal` | epsilon, windows, causal |
//! | `context_length` | `max_position_embeddings`, or the context after scaling |
//! | `rope.freq_base`, `.freq_base_swa`, `.dimension_count` | bases and width of rotations |
//! | `rope.scaling.type`, `.factor` (or `rope.scale_linear`), `.original_context_length` | the scaling; without a type, linear or none |
//! | `rope.scaling.attn_factor`, `.yarn_ext_factor`, `.yarn_attn_factor` | what follows from the others; see below |
//! | the tensor `rope_freqs.weight` | the divisors of frequencies of `llama3` |
//!
//! What a file does not state is not compared, but for `rope.scaling.type`: converters leave it out
//! where nothing is scaled. Numbers are compared in f32, in which files keep them. A key that is there and has no numbers,
//! such as an empty list, is an error ([`Header::setting`]).
//!
//! # Factors on cosines and sines
//!
//! `attn_factor` is that of `longrope`; llama.cpp multiplies every rotation by it, which is not read. `yarn_ext_factor` mixes
//! the ramp of yarn in, wholly (1) or in part, which is not read either. `yarn_attn_factor` is two things: converters write
//! `attention_factor` of `config.json`, which is the factor itself, or `attn_factor`, which transformers does not read and
//! others multiply the factor by; and llama.cpp reads it for none of the architectures here. So it must be the factor that
//! the other keys make, or what `config.json` beside the file says.

use judge_weights::gguf::header::{Header, listed};
use judge_weights::gguf::problem::GgufProblem;

use judge_arch::{EncoderSpec, MlpSpec, ModelSpec, RopeConfig, RopeScaling, inverse_frequencies};

/// How far divisors of frequencies may be from those that follow from `config.json`: converters
/// compute them in f32.
const TOLERANCE: f32 = 1e-3;

/// What is known of a model for the comparison.
pub(super) struct Expected<'a> {
    /// The description.
    pub(super) spec: &'a ModelSpec,
    /// `max_position_embeddings` as `config.json` states it; `None` if it does not.
    pub(super) context: Option<u64>,
    /// `attn_factor` of the rope fields of `config.json`; `None` if it states none.
    pub(super) attn_factor: Option<f64>,
    /// The numbers of `rope_freqs.weight`; `None` if there is no such tensor.
    pub(super) divisors: Option<Vec<f32>>,
}

/// Compares the settings that a file of an encoder states: numbers of blocks and heads, widths, epsilon, the longest text.
///
/// # Errors
/// [`GgufProblem::Setting`] for the first one that differs, and [`GgufProblem::Value`] for one that is no number.
pub(super) fn check_encoder(spec: &EncoderSpec, header: &Header, architecture: &str) -> Result<(), GgufProblem> {
    let d_ff = spec.blocks.first().map_or(0, |block| block.down.d_in);
    for (key, field, expected) in [
        ("block_count", "num_hidden_layers", spec.blocks.len() as f64),
        ("embedding_length", "hidden_size", spec.d_model as f64),
        ("feed_forward_length", "intermediate_size", d_ff as f64),
        ("attention.head_count", "num_attention_heads", spec.n_heads as f64),
        ("attention.layer_norm_epsilon", "layer_norm_eps", spec.norm_eps),
        ("attention.causal", "model_type", 0.0),
        ("context_length", "max_position_embeddings", spec.max_len as f64),
    ] {
        let key = format!("{architecture}.{key}");
        if let Some(found) = header.setting(&key)? {
            compare(key, field, found, &[expected])?;
        }
    }
    Ok(())
}

impl Expected<'_> {
    /// Compares the settings of a file of this architecture.
    ///
    /// # Errors
    /// [`GgufProblem::Setting`] for the first one that differs, and [`GgufProblem::Value`] for one that is no number.
    pub(super) fn check(&self, header: &Header, architecture: &str) -> Result<(), GgufProblem> {
        let Self { spec, context, .. } = *self;
        let of_blocks = |of: &dyn Fn(usize) -> f64| (0..spec.n_layers()).map(of).collect::<Vec<f64>>();
        let heads = |index: usize| spec.blocks[index].heads;
        let widths = of_blocks(&|index| match &spec.blocks[index].mlp {
            Some(MlpSpec::Dense(mlp)) => mlp.down.d_in as f64,
            None | Some(MlpSpec::Experts(_) | MlpSpec::Both(_)) => f64::NAN,
        });
        let windows: Vec<f64> =
            spec.blocks.iter().filter_map(|block| block.window).map(|window| window as f64).collect();
        let full = spec.ropes.first();
        let same = |key: &str, field, expected: &[f64]| {
            let key = format!("{architecture}.{key}");
            let Some(found) = header.setting(&key)? else { return Ok(()) };
            // What blocks with experts, or without attention, have in this place is not one number.
            if expected.iter().any(|number| number.is_nan()) { Ok(()) } else { compare(key, field, found, expected) }
        };
        let further = header.setting(&format!("{architecture}.nextn_predict_layers"))?.map_or(0.0, |all| all[0]);
        same("block_count", "num_hidden_layers", &[spec.n_layers() as f64 + further])?;
        same("embedding_length", "hidden_size", &[spec.d_model as f64])?;
        same("feed_forward_length", "intermediate_size", &widths)?;
        same("attention.head_count", "num_attention_heads", &of_blocks(&|index| heads(index).n_heads as f64))?;
        // 0 where a block has no attention, in files that have a number for each block.
        let is_each =
            header.setting(&format!("{architecture}.attention.head_count_kv"))?.is_some_and(|all| all.len() > 1);
        let keys = |index: usize| {
            let none = is_each && !spec.blocks[index].has_attention();
            if none { 0.0 } else { heads(index).n_kv_heads as f64 }
        };
        same("attention.head_count_kv", "num_key_value_heads", &of_blocks(&keys))?;
        let head_dims = of_blocks(&|index| heads(index).head_dim as f64);
        // Where blocks with a window have other heads, they have keys of their own.
        let is_apart = header.setting(&format!("{architecture}.attention.key_length_swa"))?.is_some();
        let of_kind = |has_window: bool| -> Vec<f64> {
            let blocks = spec.blocks.iter().zip(&head_dims);
            let of_kind = blocks.filter(|(block, _)| !is_apart || block.window.is_some() == has_window);
            of_kind.map(|(_, &head_dim)| head_dim).collect()
        };
        for (has_window, kind) in [(false, ""), (true, "_swa")] {
            same(&format!("attention.key_length{kind}"), "head_dim", &of_kind(has_window))?;
            same(&format!("attention.value_length{kind}"), "head_dim", &of_kind(has_window))?;
        }
        same("attention.layer_norm_rms_epsilon", "rms_norm_eps", &[spec.norm_eps])?;
        same("attention.causal", "model_type", &[1.0])?;
        if !windows.is_empty() {
            same("attention.sliding_window", "sliding_window", &windows)?;
        }
        if let Some(context) = context {
            // Some converters write the context after scaling.
            let key = "context_length";
            same(key, "max_position_embeddings", &[spec.max_len as f64])
                .or_else(|_| same(key, "max_position_embeddings", &[context as f64]))?;
        }
        if let Some(rope) = full {
            same("rope.freq_base", "rope_theta", &[rope.theta])?;
            same("rope.dimension_count", "head_dim", &[rope.rotary_dim as f64])?;
            self.check_scaling(rope, header, architecture)?;
        }
        spec.ropes.get(1).map_or(Ok(()), |rope| same("rope.freq_base_swa", "rope_theta", &[rope.theta]))
    }

    /// Compares how the rotation of blocks that see everything is scaled.
    fn check_scaling(&self, rope: &RopeConfig, header: &Header, architecture: &str) -> Result<(), GgufProblem> {
        let key = |name: &str| format!("{architecture}.rope.scaling.{name}");
        let (name, factor, original) = match &rope.scaling {
            RopeScaling::Linear { factor } => ("linear", Some(*factor), None),
            RopeScaling::Yarn { factor, original_len, .. } => ("yarn", Some(*factor), Some(*original_len)),
            RopeScaling::LongRope { original_len, .. } => ("longrope", None, Some(*original_len)),
            RopeScaling::Default
            | RopeScaling::Dynamic { .. }
            | RopeScaling::Llama3 { .. }
            | RopeScaling::Proportional { .. } => ("none", None, None),
        };
        let older = format!("{architecture}.rope.scale_linear");
        let stated = match header.setting(&key("factor"))? {
            Some(found) => Some((key("factor"), found)),
            None => header.setting(&older)?.map(|found| (older, found)),
        };
        let found = match header.setting_text(&key("type"))? {
            // Of `longrope` the divisors say it.
            "" if name == "longrope" => name,
            "" if stated.as_ref().is_some_and(|(_, found)| found.iter().any(|&found| found != 0.0 && found != 1.0)) => {
                "linear"
            }
            "" => "none",
            found => found,
        };
        if found != name {
            // A factor alone says what the scaling is.
            let is_by_factor = header.text(&key("type")).is_empty() && found == "linear";
            let (key, found) = match stated {
                Some((key, factor)) if is_by_factor => (key, listed(factor).into()),
                _ => (key("type"), found.into()),
            };
            return Err(GgufProblem::Setting { key, found, expected: name.into(), field: "rope_scaling" });
        }
        if let (Some((key, found)), Some(factor)) = (stated, factor) {
            compare(key, "rope_scaling", found, &[factor])?;
        }
        if let (Some(found), Some(original)) = (header.setting(&key("original_context_length"))?, original) {
            compare(key("original_context_length"), "rope_scaling", found, &[original as f64])?;
        }
        self.check_factors(rope, header, &key)?;
        let Some(divisors) = &self.divisors else { return Ok(()) };
        let mut plain = rope.clone();
        plain.scaling = RopeScaling::Default;
        let (plain, scaled) = (inverse_frequencies(&plain, 1).0, inverse_frequencies(rope, 1).0);
        // Where the scaling is stated by keys, the file has no divisors. Pairs that do not turn have the divisor 1e30.
        let expected: Vec<f32> = match rope.scaling {
            RopeScaling::Proportional { .. } => {
                plain.iter().zip(&scaled).map(|(plain, scaled)| (plain / scaled).min(1e30)).collect()
            }
            RopeScaling::Llama3 { .. } => plain.iter().zip(&scaled).map(|(plain, scaled)| plain / scaled).collect(),
            _ => vec![1.0; plain.len()],
        };
        let is_near = |(found, expected): (&f32, &f32)| (found - expected).abs() <= TOLERANCE * expected;
        if divisors.len() == expected.len() && divisors.iter().zip(&expected).all(is_near) {
            return Ok(());
        }
        let largest = |divisors: &[f32]| divisors.iter().copied().fold(f32::NAN, f32::max);
        let described =
            |divisors: &[f32]| format!("{} divisors of frequencies up to {}", divisors.len(), largest(divisors));
        let (key, found, expected) =
            ("rope_freqs.weight".to_owned(), described(divisors).into(), described(&expected).into());
        Err(GgufProblem::Setting { key, found, expected, field: "rope_scaling" })
    }

    /// Checks the factors on cosines and sines; see the module. `key` has the whole key of a part of `rope.scaling`.
    fn check_factors(
        &self,
        rope: &RopeConfig,
        header: &Header,
        key: &dyn Fn(&str) -> String,
    ) -> Result<(), GgufProblem> {
        let check = |name: &str, is_read: &dyn Fn(f64) -> bool, expected: String| match header.setting(&key(name))? {
            Some(found) if !found.iter().all(|&found| is_read(found)) => {
                Err(GgufProblem::value(&key(name), listed(found), expected))
            }
            _ => Ok(()),
        };
        let same = |expected: f64| move |found: f64| found as f32 == expected as f32;
        match rope.scaling {
            RopeScaling::Yarn { attention_factor, .. } => {
                let is_whole = |found: f64| found < 0.0 || found == 1.0;
                check("yarn_ext_factor", &is_whole, "1, or less than 0 for what is usual".to_owned())?;
                let is_known = |found: f64| {
                    same(attention_factor)(found) || self.attn_factor.is_some_and(|factor| same(factor)(found))
                };
                let expected = format!(
                    "{attention_factor}, which the other keys make: converters write attention_factor and attn_factor of config.json \
                    there, which mean different numbers; put the model's config.json beside the file"
                );
                check("yarn_attn_factor", &is_known, expected)?;
                check("attn_factor", &same(1.0), "1 beside yarn".to_owned())
            }
            // Files and config.json may round it otherwise, or leave it to be computed.
            RopeScaling::LongRope { .. } => Ok(()),
            _ => check("attn_factor", &same(1.0), "1 without the divisors of longrope".to_owned()),
        }
    }
}

/// Compares the numbers of a key, in f32, with one for all of them or one for each.
fn compare(key: String, field: &'static str, found: &[f64], expected: &[f64]) -> Result<(), GgufProblem> {
    let expected = match expected {
        [first, rest @ ..] if rest.iter().all(|other| other == first) => &expected[..1],
        _ => expected,
    };
    let same = |found: f64, expected: f64| found as f32 == expected as f32;
    let is_same = match (found, expected) {
        (found, [expected]) => found.iter().all(|&found| same(found, *expected)),
        (found, expected) if found.len() == expected.len() => {
            found.iter().zip(expected).all(|(&found, &expected)| same(found, expected))
        }
        // One number for blocks that differ.
        _ => false,
    };
    if is_same {
        return Ok(());
    }
    Err(GgufProblem::Setting { key, found: listed(found).into(), expected: listed(expected).into(), field })
}
