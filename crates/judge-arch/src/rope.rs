//! The rope fields of a `config.json`, checked and lowered to [`RopeConfig`].
//!
//! Files state them as `rope_parameters` (transformers 5) or `rope_scaling` (earlier), with some of
//! the values beside that object. `Shape::lower` and `DecoderFields::with_ropes` bring both together in a
//! [`RopeContext`] and call [`RopeFields::lower`]. What is computed from a [`RopeConfig`] is in
//! `angles.rs`; formulas are those of transformers' `modeling_rope_utils.py`.
//!
//! What each type takes, and the context that it is made for, with `max` for
//! `max_position_embeddings` and `orig` for `original_max_position_embeddings` (`max` if absent):
//!
//! | `rope_type` | fields | context |
//! |---|---|---|
//! | `default` | | `max` |
//! | `linear` | `factor` | `max * factor` |
//! | `dynamic` | `factor`; `orig` is not read | `max * factor` |
//! | `llama3` | `factor`, `low_freq_factor`, `high_freq_factor` | `max` |
//! | `yarn` | `factor` (else `max / orig`), betas, `truncate`, `attention_factor` or mscales | the larger of `max` and `orig * factor` |
//! | `longrope`, `su` | `short_factor`, `long_factor`, `factor`, `attention_factor` | `max`, or with `factor` the larger of `max` and `orig * factor` |
//! | `proportional` | `partial_rotary_factor`, `factor` (else 1) | `max` |
//!
//! A rotation is described apart from where it is used: families whose blocks differ have several,
//! and blocks name one by index.

use judge_kernels::functions::Pairs;
use serde::Deserialize;

use super::ConfigProblem;
use super::checks::MAX_CONTEXT;

/// A rotation of queries and keys by their position; input of
/// [`inverse_frequencies`](super::angles::inverse_frequencies).
#[derive(Clone, Debug, PartialEq)]
pub struct RopeConfig {
    /// Base of the geometric series of wavelengths: pair `i` turns by `theta^(-2i / rotary_dim)`
    /// per position before scaling. Finite and above 0; 10,000 where nothing states it.
    pub theta: f64,
    /// Coordinates of a head that are rotated: the first ones, an even number of at least 2. The
    /// rest passes through.
    pub rotary_dim: usize,
    /// How frequencies are scaled beyond the original context.
    pub scaling: RopeScaling,
    /// Which two coordinates turn together.
    pub pairs: Pairs,
    /// How queries grow with their position; `None`: they do not.
    pub(crate) query_growth: Option<QueryGrowth>,
}

/// Rotated queries at position `p` are multiplied by `1 + beta * ln(1 + floor(p / original_len))`,
/// which is 1 within the original context. Llama 4 calls it temperature tuning; Ministral 3 has it
/// too.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct QueryGrowth {
    /// `llama_4_scaling_beta`; above 0.
    pub(crate) beta: f64,
    /// `original_max_position_embeddings`; above 0.
    pub(crate) original_len: usize,
}

/// Where families differ in what they make of the same rope fields. The default is Llama's.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RopeRules {
    /// Which coordinates turn together. Not a field of files.
    pub(super) pairs: Pairs,
    /// Whether `partial_rotary_factor` counts, so that part of a head may be rotated. Elsewhere a
    /// factor other than 1 is refused, except with `proportional`, which has a meaning of its own
    /// for it.
    pub(super) is_partial: bool,
    /// Whether `yarn` means `longrope`, as in old files of Phi-3.
    pub(super) yarn_is_longrope: bool,
    /// Whether `llama_4_scaling_beta` counts. Elsewhere one other than 0 is refused.
    pub(super) grows_queries: bool,
}

/// How frequencies are scaled, by `rope_type`. All factors are finite and above 0.
#[derive(Clone, Debug, PartialEq)]
pub enum RopeScaling {
    /// Not at all.
    Default,
    /// All frequencies are divided by `factor`.
    Linear {
        /// Divisor of all frequencies.
        factor: f64,
    },
    /// The base grows with the final length of the sequence, once that exceeds `original_len`.
    Dynamic {
        /// Stretch of the context.
        factor: f64,
        /// `max_position_embeddings`, as in transformers.
        original_len: usize,
    },
    /// High frequencies stay, low ones are divided by `factor`, with a smooth transition between.
    Llama3 {
        /// Divisor of low frequencies.
        factor: f64,
        /// Frequencies with fewer turns than this in the original context are low.
        low_freq_factor: f64,
        /// Frequencies with more turns than this are high; above `low_freq_factor`.
        high_freq_factor: f64,
        /// The original context in tokens.
        original_len: usize,
    },
    /// High frequencies stay, low ones are divided by `factor`, with a linear ramp over the pairs
    /// between; and cosines and sines have a factor (Peng et al., *YaRN*, 2023).
    Yarn {
        /// Divisor of low frequencies.
        factor: f64,
        /// The original context in tokens.
        original_len: usize,
        /// Factor on cosines and sines, so that scores get its square.
        attention_factor: f64,
        /// Turns within the original context at which the ramp starts; 32 by default.
        beta_fast: f64,
        /// Turns at which the ramp ends; 1 by default.
        beta_slow: f64,
        /// Whether the ramp's ends are rounded outwards to whole pairs; the default.
        truncate: bool,
    },
    /// Each frequency has a divisor of its own, from one list or another by the sequence's length.
    LongRope {
        /// `[rotary_dim / 2]`, for sequences of at most `original_len` tokens.
        short_factor: Vec<f64>,
        /// `[rotary_dim / 2]`, for longer ones.
        long_factor: Vec<f64>,
        /// The original context in tokens.
        original_len: usize,
        /// Factor on cosines and sines.
        attention_factor: f64,
    },
    /// The first `pairs` pairs turn with the frequencies that they have in a whole head, divided by
    /// `factor`; the others stand still. Unlike a partial rotation, `rotary_dim` is the whole head
    /// in the exponent and in the pairing (Gemma 4).
    Proportional {
        /// Pairs that turn: `partial_rotary_factor * head_dim / 2`, truncated.
        pairs: usize,
        /// Divisor of their frequencies.
        factor: f64,
    },
}

/// Names that `rope_type` may have. `su` is an old name of `longrope`.
const ROPE_TYPES: &[&str] = &["default", "linear", "dynamic", "llama3", "yarn", "longrope", "su", "proportional"];

/// `rope_parameters` of transformers 5 or `rope_scaling` of earlier releases. Fields not listed are
/// ignored here, and `unread.rs` warns of them.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RopeFields {
    /// Name of the scaling; `default` if absent.
    rope_type: Option<String>,
    /// Its name in the field `type`, used where `rope_type` is absent.
    #[serde(rename = "type")]
    old_type: Option<String>,
    /// Base of the rotation; wins over the one beside the object.
    rope_theta: Option<f64>,
    /// Part of a head that rotates; wins over the one beside the object.
    partial_rotary_factor: Option<f64>,
    /// Stretch of the context, or divisor of frequencies.
    factor: Option<f64>,
    /// The original context; the one beside the object wins.
    original_max_position_embeddings: Option<usize>,
    /// Factor on cosines and sines; computed if absent.
    attention_factor: Option<f64>,
    /// Yarn: see [`RopeScaling::Yarn`].
    beta_fast: Option<f64>,
    /// Yarn: see [`RopeScaling::Yarn`].
    beta_slow: Option<f64>,
    /// Yarn: with `mscale_all_dim`, determines the attention factor.
    mscale: Option<f64>,
    /// Yarn: with `mscale`, determines the attention factor.
    mscale_all_dim: Option<f64>,
    /// Yarn: see [`RopeScaling::Yarn`].
    truncate: Option<bool>,
    /// Llama 3: see [`RopeScaling::Llama3`].
    low_freq_factor: Option<f64>,
    /// Llama 3: see [`RopeScaling::Llama3`].
    high_freq_factor: Option<f64>,
    /// Longrope: see [`RopeScaling::LongRope`].
    short_factor: Option<Vec<f64>>,
    /// Longrope: see [`RopeScaling::LongRope`].
    long_factor: Option<Vec<f64>>,
    /// Growth of queries; see [`QueryGrowth`].
    llama_4_scaling_beta: Option<f64>,
    // One set for each kind of layer, in families that have two.
    /// Fields for full layers alone, in families with two rotations. Such an object must be taken
    /// apart by [`RopesByKind::new`] before it is lowered.
    pub(super) full_attention: Option<Box<RopeFields>>,
    /// Fields for layers with a window, likewise.
    pub(super) sliding_attention: Option<Box<RopeFields>>,
}

/// The rope fields of a family whose full layers rotate in another way than those with a window.
pub(super) struct RopesByKind {
    /// Of full layers. The base is set.
    pub(super) full: RopeFields,
    /// Of layers with a window. The base is set.
    pub(super) sliding: RopeFields,
}

impl RopesByKind {
    /// Takes `rope_parameters` with one set of fields per kind, or `rope_scaling`, which full
    /// layers alone follow and which wins for them, but for a base that it does not state. `theta` are
    /// the bases of `[full, sliding]` where their fields state none.
    ///
    /// # Errors
    /// [`ConfigProblem::Unsupported`] for flat `rope_parameters` that scale: transformers ignores
    /// them silently.
    pub(super) fn new(
        parameters: Option<RopeFields>,
        scaling: Option<RopeFields>,
        theta: [f64; 2],
    ) -> Result<Self, ConfigProblem> {
        let RopeFields { full_attention, sliding_attention, rope_type, old_type, .. } = parameters.unwrap_or_default();
        let flat = rope_type.or(old_type).filter(|kind| kind != "default");
        if let (Some(kind), None, None) = (flat, &full_attention, &sliding_attention) {
            let found = format!("{kind} for all kinds of layers");
            return Err(ConfigProblem::Unsupported { field: "rope_parameters", found });
        }
        let full = match (full_attention, scaling) {
            (full, Some(scaling)) => {
                RopeFields { rope_theta: scaling.rope_theta.or(full.and_then(|full| full.rope_theta)), ..scaling }
            }
            (full, None) => full.map(|fields| *fields).unwrap_or_default(),
        };
        let with = |fields: RopeFields, theta| RopeFields { rope_theta: fields.rope_theta.or(Some(theta)), ..fields };
        let sliding = sliding_attention.map(|fields| *fields).unwrap_or_default();
        Ok(Self { full: with(full, theta[0]), sliding: with(sliding, theta[1]) })
    }
}

/// What `config.json` says beside the rope fields, and what the family adds.
#[derive(Default)]
pub(super) struct RopeContext {
    /// Base, used where the rope fields state none.
    pub(super) rope_theta: Option<f64>,
    /// Part of a head that rotates, used where the rope fields state none.
    pub(super) partial_rotary_factor: Option<f64>,
    /// The original context; wins over that of the rope fields, as in transformers.
    pub(super) original_max_position_embeddings: Option<usize>,
    /// The stated context, already checked.
    pub(super) max_position_embeddings: usize,
    /// Coordinates of a head.
    pub(super) head_dim: usize,
    /// How the family reads the fields.
    pub(super) rules: RopeRules,
}

impl RopeFields {
    /// Checks the fields, and returns the rotation and the longest sequence that it is made for.
    ///
    /// Where a scaling stretches `max_position_embeddings` (linear, dynamic) or the original
    /// context (yarn, longrope with a factor), that length is the stretched one. `llama3` already
    /// states it in `max_position_embeddings`.
    ///
    /// # Errors
    /// [`ConfigProblem`] for fields per kind of layer, an unknown type, a missing or impossible
    /// value, or one that the family's rules exclude.
    pub(super) fn lower(self, around: &RopeContext) -> Result<(RopeConfig, usize), ConfigProblem> {
        if self.full_attention.is_some() || self.sliding_attention.is_some() {
            return Err(ConfigProblem::Unsupported {
                field: "rope_parameters",
                found: "one set of parameters per kind of layer".to_owned(),
            });
        }
        let theta = positive("rope_theta", self.rope_theta.or(around.rope_theta).unwrap_or(10_000.0))?;
        let kind = self.rope_type.as_deref().or(self.old_type.as_deref()).unwrap_or("default");
        let kind = if around.rules.yarn_is_longrope && kind == "yarn" { "longrope" } else { kind };
        let rotary_dim = self.rotary_dim(around, kind == "proportional")?;
        let query_growth = self.query_growth(around)?;
        let max_len = around.max_position_embeddings;
        let original_len =
            around.original_max_position_embeddings.or(self.original_max_position_embeddings).unwrap_or(max_len);
        if original_len == 0 {
            return Err(ConfigProblem::value("original_max_position_embeddings", 0, "at least 1"));
        }
        let (scaling, context) = match kind {
            "default" => (RopeScaling::Default, max_len),
            "linear" => {
                let factor = self.factor("linear")?;
                (RopeScaling::Linear { factor }, stretched(max_len, factor)?)
            }
            "dynamic" => {
                let factor = self.factor("dynamic")?;
                if rotary_dim == 2 {
                    let expected = "more than 2 rotated coordinates for dynamic rope";
                    return Err(ConfigProblem::value("head_dim", 2, expected));
                }
                (RopeScaling::Dynamic { factor, original_len: max_len }, stretched(max_len, factor)?)
            }
            "llama3" => {
                let need = |field, v: Option<f64>| {
                    positive(field, v.ok_or(ConfigProblem::Missing { field, needed_by: "llama3 rope" })?)
                };
                let low_freq_factor = need("low_freq_factor", self.low_freq_factor)?;
                let high_freq_factor = need("high_freq_factor", self.high_freq_factor)?;
                if high_freq_factor <= low_freq_factor {
                    let expected = format!("more than low_freq_factor {low_freq_factor}");
                    return Err(ConfigProblem::value("high_freq_factor", high_freq_factor, expected));
                }
                let factor = self.factor("llama3")?;
                (RopeScaling::Llama3 { factor, low_freq_factor, high_freq_factor, original_len }, max_len)
            }
            "yarn" => self.yarn(original_len, max_len)?,
            "longrope" | "su" => self.long_rope(original_len, max_len, rotary_dim)?,
            "proportional" => {
                // Truncated as in transformers.
                let pairs = (self.partial(around)? * rotary_dim as f64 / 2.0) as usize;
                (RopeScaling::Proportional { pairs, factor: positive("factor", self.factor.unwrap_or(1.0))? }, max_len)
            }
            other => {
                return Err(ConfigProblem::Unknown { field: "rope_type", found: other.to_owned(), known: ROPE_TYPES });
            }
        };
        Ok((RopeConfig { theta, rotary_dim, scaling, pairs: around.rules.pairs, query_growth }, context))
    }

    /// The part of a head that is rotated: above 0 and at most 1, which is the default.
    fn partial(&self, around: &RopeContext) -> Result<f64, ConfigProblem> {
        let partial = self.partial_rotary_factor.or(around.partial_rotary_factor).unwrap_or(1.0);
        if !(partial > 0.0 && partial <= 1.0) {
            return Err(ConfigProblem::value("partial_rotary_factor", partial, "more than 0, at most 1"));
        }
        Ok(partial)
    }

    /// Rotated coordinates of a head. With `is_whole` (proportional) these are all, whatever part
    /// turns.
    fn rotary_dim(&self, around: &RopeContext, is_whole: bool) -> Result<usize, ConfigProblem> {
        let partial = if is_whole { 1.0 } else { self.partial(around)? };
        if partial != 1.0 && !around.rules.is_partial {
            return Err(ConfigProblem::Unsupported { field: "partial_rotary_factor", found: partial.to_string() });
        }
        // Truncated as in transformers.
        let rotary_dim = (around.head_dim as f64 * partial) as usize;
        if rotary_dim < 2 || !rotary_dim.is_multiple_of(2) {
            let found = format!("{} (rotated: {rotary_dim})", around.head_dim);
            return Err(ConfigProblem::value("head_dim", found, "an even number of rotated coordinates, at least 2"));
        }
        Ok(rotary_dim)
    }

    /// How queries grow; `None` for a beta of 0 or none. The original context must then be stated:
    /// `max_position_embeddings` does not stand in for it.
    fn query_growth(&self, around: &RopeContext) -> Result<Option<QueryGrowth>, ConfigProblem> {
        const FIELD: &str = "llama_4_scaling_beta";
        let Some(beta) = self.llama_4_scaling_beta.filter(|&beta| beta != 0.0) else { return Ok(None) };
        if !around.rules.grows_queries {
            return Err(ConfigProblem::Unsupported { field: FIELD, found: beta.to_string() });
        }
        let original = around.original_max_position_embeddings.or(self.original_max_position_embeddings);
        let missing = ConfigProblem::Missing { field: "original_max_position_embeddings", needed_by: FIELD };
        let original_len = original.filter(|&len| len > 0).ok_or(missing)?;
        Ok(Some(QueryGrowth { beta: positive(FIELD, beta)?, original_len }))
    }

    /// The `factor` that this type cannot do without.
    fn factor(&self, needed_by: &'static str) -> Result<f64, ConfigProblem> {
        positive("factor", self.factor.ok_or(ConfigProblem::Missing { field: "factor", needed_by })?)
    }

    /// Yarn's scaling and context. With `m(s) = 0.1 * s * ln(factor) + 1` (1 for factors up to 1),
    /// the attention factor is the stated one, else `m(mscale) / m(mscale_all_dim)` if both are
    /// there and not 0, else `m(1)`.
    fn yarn(&self, original_len: usize, max_len: usize) -> Result<(RopeScaling, usize), ConfigProblem> {
        let factor = match self.factor {
            Some(factor) => positive("factor", factor)?,
            None => max_len as f64 / original_len as f64,
        };
        let magnitude = |mscale: f64| if factor <= 1.0 { 1.0 } else { 0.1 * mscale * libm::log(factor) + 1.0 };
        let attention_factor = match (self.attention_factor, self.mscale, self.mscale_all_dim) {
            (Some(given), _, _) => given,
            (None, Some(m), Some(all)) if m != 0.0 && all != 0.0 => magnitude(m) / magnitude(all),
            _ => magnitude(1.0),
        };
        // A zero counts as absent, as in transformers.
        let or = |v: Option<f64>, default| v.filter(|&v| v != 0.0).unwrap_or(default);
        let scaling = RopeScaling::Yarn {
            factor,
            original_len,
            attention_factor: positive("attention_factor", attention_factor)?,
            beta_fast: positive("beta_fast", or(self.beta_fast, 32.0))?,
            beta_slow: positive("beta_slow", or(self.beta_slow, 1.0))?,
            truncate: self.truncate.unwrap_or(true),
        };
        Ok((scaling, max_len.max(stretched(original_len, factor)?)))
    }

    /// Longrope's scaling and context. With `f` the stated factor or else `max_len / original_len`,
    /// the attention factor is the stated one, else `sqrt(1 + ln(f) / ln(original_len))`, or 1 if
    /// `f` is at most
    /// 1. Only a stated factor extends the context.
    fn long_rope(
        self,
        original_len: usize,
        max_len: usize,
        rotary_dim: usize,
    ) -> Result<(RopeScaling, usize), ConfigProblem> {
        let factors = |field, list: Option<Vec<f64>>| {
            let list = list.ok_or(ConfigProblem::Missing { field, needed_by: "longrope" })?;
            if list.len() != rotary_dim / 2 {
                let [found, expected] = [list.len(), rotary_dim / 2].map(|count| format!("{count} numbers"));
                return Err(ConfigProblem::value(field, found, expected));
            }
            list.into_iter().map(|factor| positive(field, factor)).collect::<Result<Vec<_>, _>>()
        };
        let stated = self.factor.map(|factor| positive("factor", factor)).transpose()?;
        let factor = stated.unwrap_or(max_len as f64 / original_len as f64);
        let attention_factor = match self.attention_factor {
            Some(given) => given,
            None if factor <= 1.0 => 1.0,
            None => (1.0 + libm::log(factor) / libm::log(original_len as f64)).sqrt(),
        };
        let context = match stated {
            Some(factor) => max_len.max(stretched(original_len, factor)?),
            None => max_len,
        };
        let scaling = RopeScaling::LongRope {
            short_factor: factors("short_factor", self.short_factor)?,
            long_factor: factors("long_factor", self.long_factor)?,
            original_len,
            attention_factor: positive("attention_factor", attention_factor)?,
        };
        Ok((scaling, context))
    }
}

/// Checks a number: finite in f64 and above 0. That angles are finite in f32 is checked later, by
/// `angles::check`.
fn positive(field: &'static str, found: f64) -> Result<f64, ConfigProblem> {
    if found.is_finite() && found > 0.0 {
        return Ok(found);
    }
    Err(ConfigProblem::value(field, found, "a finite number above 0"))
}

/// `floor(len * factor)`, a context between 1 and `MAX_CONTEXT`.
fn stretched(len: usize, factor: f64) -> Result<usize, ConfigProblem> {
    let context = (len as f64 * factor).floor();
    if context >= 1.0 && context <= MAX_CONTEXT as f64 {
        Ok(context as usize)
    } else {
        Err(ConfigProblem::value("factor", factor, format!("one that makes a context between 1 and {}", MAX_CONTEXT)))
    }
}
