//! The rope fields of a `config.json`, checked and lowered to [`RopeConfig`]. What is computed from one is in `angles`.

use serde::Deserialize;

use super::ConfigProblem;

/// Rotary position parameters, ready for [`inverse_frequencies`](super::angles::inverse_frequencies).
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RopeConfig {
    /// Base of the geometric row of wavelengths.
    pub(crate) theta: f64,
    /// Coordinates of a head that are rotated; even. The rest passes through.
    pub(crate) rotary_dim: usize,
    /// How frequencies are scaled beyond the original context.
    pub(crate) scaling: RopeScaling,
    /// Which coordinates of a head turn together.
    pub(crate) pairs: Pairs,
    /// Queries grow with their position; `None`: they do not.
    pub(crate) query_growth: Option<QueryGrowth>,
}

/// Rotated queries at position `p` are multiplied by `1 + beta * ln(1 + floor(p / original_len))`: by 1 within the original context. Llama 4's
/// temperature tuning, which Ministral 3 has too.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct QueryGrowth {
    pub(crate) beta: f64,
    pub(crate) original_len: usize,
}

/// Which of the first `rotary_dim` coordinates of a head are the two that one angle turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Pairs {
    /// `i` and `i + rotary_dim / 2`, as in most families.
    #[default]
    Halves,
    /// `2 i` and `2 i + 1`: interleaved, as in GLM and Cohere.
    Neighbours,
}

/// Where the code of families differs in what it makes of rope fields. The default is Llama's.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RopeRules {
    pub(super) pairs: Pairs,
    /// `partial_rotary_factor` counts: part of a head may be rotated. Elsewhere a factor other than 1 is refused.
    pub(super) is_partial: bool,
    /// Old files write `yarn` for `longrope` (Phi-3).
    pub(super) yarn_is_longrope: bool,
    /// `llama_4_scaling_beta` counts. Elsewhere one other than 0 is refused.
    pub(super) grows_queries: bool,
}

/// How frequencies are scaled; the names are those of `rope_type`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RopeScaling {
    Default,
    Linear {
        factor: f64,
    },
    /// `original_len` is `max_position_embeddings`, as in transformers.
    Dynamic {
        factor: f64,
        original_len: usize,
    },
    Llama3 {
        factor: f64,
        low_freq_factor: f64,
        high_freq_factor: f64,
        original_len: usize,
    },
    Yarn {
        factor: f64,
        original_len: usize,
        attention_factor: f64,
        beta_fast: f64,
        beta_slow: f64,
        truncate: bool,
    },
    LongRope {
        short_factor: Vec<f64>,
        long_factor: Vec<f64>,
        original_len: usize,
        attention_factor: f64,
    },
    /// The first pairs turn with the frequencies that they have in a whole head; the others stand still.
    Proportional {
        pairs: usize,
        factor: f64,
    },
}

/// Names that `rope_type` may have. `su` is an old name of `longrope`.
const ROPE_TYPES: &[&str] = &["default", "linear", "dynamic", "llama3", "yarn", "longrope", "su", "proportional"];

/// `rope_parameters` of transformers 5, or `rope_scaling` of the releases before.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RopeFields {
    rope_type: Option<String>,
    #[serde(rename = "type")]
    old_type: Option<String>,
    rope_theta: Option<f64>,
    partial_rotary_factor: Option<f64>,
    factor: Option<f64>,
    original_max_position_embeddings: Option<usize>,
    attention_factor: Option<f64>,
    beta_fast: Option<f64>,
    beta_slow: Option<f64>,
    mscale: Option<f64>,
    mscale_all_dim: Option<f64>,
    truncate: Option<bool>,
    low_freq_factor: Option<f64>,
    high_freq_factor: Option<f64>,
    short_factor: Option<Vec<f64>>,
    long_factor: Option<Vec<f64>>,
    llama_4_scaling_beta: Option<f64>,
    // One set for each kind of layer, in families that have two.
    pub(super) full_attention: Option<Box<RopeFields>>,
    pub(super) sliding_attention: Option<Box<RopeFields>>,
}

/// The fields of a family that rotates layers that see everything in another way than those with a window.
pub(super) struct RopesByKind {
    pub(super) full: RopeFields,
    pub(super) sliding: RopeFields,
}

impl RopesByKind {
    /// From `rope_parameters` with a set for each kind, or from the older `rope_scaling`, which full layers alone follow. A kind that says nothing of its
    /// base has that of `theta`: full, then sliding.
    ///
    /// # Errors
    /// [`ConfigProblem::Unsupported`] for `rope_parameters` without kinds that scale: transformers passes over them without a word.
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
            (_, Some(scaling)) => scaling,
            (full, None) => full.map(|fields| *fields).unwrap_or_default(),
        };
        let with = |fields: RopeFields, theta| RopeFields { rope_theta: fields.rope_theta.or(Some(theta)), ..fields };
        let sliding = sliding_attention.map(|fields| *fields).unwrap_or_default();
        Ok(Self { full: with(full, theta[0]), sliding: with(sliding, theta[1]) })
    }
}

/// What stands around the rope fields in `config.json`.
pub(super) struct RopeContext {
    pub(super) rope_theta: Option<f64>,
    pub(super) partial_rotary_factor: Option<f64>,
    pub(super) original_max_position_embeddings: Option<usize>,
    pub(super) max_position_embeddings: usize,
    pub(super) head_dim: usize,
    pub(super) rules: RopeRules,
}

impl RopeFields {
    /// The parameters, and the longest sequence they are made for.
    ///
    /// Where a scaling stretches `max_position_embeddings` (linear, dynamic) or the original length (yarn, longrope
    /// with a factor) the context is the stretched length; `llama3` states it in `max_position_embeddings`.
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
            return Err(value("original_max_position_embeddings", 0, "at least 1"));
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
                    return Err(value("head_dim", 2, "more than 2 rotated coordinates for dynamic rope"));
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
                    return Err(value("high_freq_factor", high_freq_factor, expected));
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

    /// The part of a head that is rotated.
    fn partial(&self, around: &RopeContext) -> Result<f64, ConfigProblem> {
        let partial = self.partial_rotary_factor.or(around.partial_rotary_factor).unwrap_or(1.0);
        if !(partial > 0.0 && partial <= 1.0) {
            return Err(value("partial_rotary_factor", partial, "more than 0, at most 1"));
        }
        Ok(partial)
    }

    /// `is_whole`: angles are there for a whole head, whatever part of it turns.
    fn rotary_dim(&self, around: &RopeContext, is_whole: bool) -> Result<usize, ConfigProblem> {
        let partial = if is_whole { 1.0 } else { self.partial(around)? };
        if partial != 1.0 && !around.rules.is_partial {
            return Err(ConfigProblem::Unsupported { field: "partial_rotary_factor", found: partial.to_string() });
        }
        // Truncated as in transformers.
        let rotary_dim = (around.head_dim as f64 * partial) as usize;
        if rotary_dim < 2 || !rotary_dim.is_multiple_of(2) {
            let expected = "an even number of rotated coordinates, at least 2";
            return Err(value("head_dim", format!("{} (rotated: {rotary_dim})", around.head_dim), expected));
        }
        Ok(rotary_dim)
    }

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

    fn factor(&self, needed_by: &'static str) -> Result<f64, ConfigProblem> {
        positive("factor", self.factor.ok_or(ConfigProblem::Missing { field: "factor", needed_by })?)
    }

    fn yarn(&self, original_len: usize, max_len: usize) -> Result<(RopeScaling, usize), ConfigProblem> {
        let factor = match self.factor {
            Some(factor) => positive("factor", factor)?,
            None => max_len as f64 / original_len as f64,
        };
        let magnitude = |mscale: f64| if factor <= 1.0 { 1.0 } else { 0.1 * mscale * factor.ln() + 1.0 };
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

    fn long_rope(
        self,
        original_len: usize,
        max_len: usize,
        rotary_dim: usize,
    ) -> Result<(RopeScaling, usize), ConfigProblem> {
        let factors = |field, list: Option<Vec<f64>>| {
            let list = list.ok_or(ConfigProblem::Missing { field, needed_by: "longrope" })?;
            if list.len() != rotary_dim / 2 {
                return Err(value(field, format!("{} numbers", list.len()), format!("{} numbers", rotary_dim / 2)));
            }
            list.into_iter().map(|factor| positive(field, factor)).collect::<Result<Vec<_>, _>>()
        };
        let stated = self.factor.map(|factor| positive("factor", factor)).transpose()?;
        let factor = stated.unwrap_or(max_len as f64 / original_len as f64);
        let attention_factor = match self.attention_factor {
            Some(given) => given,
            None if factor <= 1.0 => 1.0,
            None => (1.0 + factor.ln() / (original_len as f64).ln()).sqrt(),
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

fn positive(field: &'static str, found: f64) -> Result<f64, ConfigProblem> {
    if found.is_finite() && found > 0.0 { Ok(found) } else { Err(value(field, found, "a finite number above 0")) }
}

fn stretched(len: usize, factor: f64) -> Result<usize, ConfigProblem> {
    let context = (len as f64 * factor).floor();
    if context >= 1.0 && context <= super::MAX_CONTEXT as f64 {
        Ok(context as usize)
    } else {
        Err(value("factor", factor, format!("one that makes a context between 1 and {}", super::MAX_CONTEXT)))
    }
}

fn value(field: &'static str, found: impl ToString, expected: impl ToString) -> ConfigProblem {
    ConfigProblem::Value { field, found: found.to_string(), expected: expected.to_string() }
}
