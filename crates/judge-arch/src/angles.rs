//! From a [`RopeConfig`] and a sequence's final length to tables of cosines and sines.
//!
//! Both engines take their tables from [`angles`], so they rotate by the same bits.
//! `reading/groups.rs` compares the [`inverse_frequencies`] of sequences: only those with equal
//! ones share a pass.
//!
//! Formulas are those of transformers' `modeling_rope_utils.py`. They are computed in f64 with
//! `libm` instead of the system's mathematical library, whose last bits differ from machine to
//! machine, and rounded to f32 once. A position's angle is the f32 product of position and
//! frequency, as in transformers.

use std::f64::consts::TAU;

use rayon::prelude::*;

use super::ConfigProblem;
use super::rope::{QueryGrowth, RopeConfig, RopeScaling};

/// Positions whose angles are worth a task of their own.
const POSITIONS: usize = 64;

/// Makes sure that all angles of a sequence of at most `max_len` positions are finite in f32, and
/// the factor on cosines and sines too.
///
/// Lengths 1 and `max_len` are tried, between which `dynamic` and `longrope` have their extremes.
///
/// # Errors
/// [`ConfigProblem::Value`], in the field `rope_theta`, for a base or scaling with other angles.
pub(super) fn check(ropes: &[RopeConfig], max_len: usize) -> Result<(), ConfigProblem> {
    for rope in ropes {
        for len in [1, max_len] {
            let (frequencies, scale) = inverse_frequencies(rope, len);
            let is_finite = |frequency: &f32| (frequency * max_len as f32).is_finite();
            if !scale.is_finite() || !frequencies.iter().all(is_finite) {
                let found = format!("{}, {:?}", rope.theta, rope.scaling);
                let expected = "a base and a scaling whose angles are finite numbers in f32";
                return Err(ConfigProblem::value("rope_theta", found, expected));
            }
        }
    }
    Ok(())
}

/// Angle per position of each rotated pair, `[rotary_dim / 2]`, and the factor on cosines and
/// sines.
///
/// With `w(i) = theta^(2i / rotary_dim)` the wavelength of pair `i`, the frequencies are:
///
/// | scaling | frequency |
/// |---|---|
/// | default | `1 / w(i)` |
/// | linear | `1 / w(i) / factor` |
/// | dynamic | `1 / w(i)` with `theta * (factor * max(len, orig) / orig - (factor - 1))^(dim / (dim - 2))` as base |
/// | llama3 | by `orig / (2π w(i))` turns: divided by `factor` if low, kept if high, interpolated between |
/// | yarn | `r / (factor * w(i)) + (1 - r) / w(i)`, with a ramp `r` from 0 to 1 over the pairs |
/// | longrope | `1 / (factors[i] * w(i))` |
/// | proportional | `1 / w(i) / factor` for the first pairs, 0 for the others |
///
/// `len` is the final length of the sequence, prompt plus new tokens, which `dynamic` and
/// `longrope` depend on. A sequence keeps one set of frequencies from its first token to its last.
/// transformers recomputes them as a sequence grows, so that cached keys and new queries may be
/// rotated by different sets and results depend on earlier calls.
pub fn inverse_frequencies(rope: &RopeConfig, len: usize) -> (Vec<f32>, f32) {
    let dim = rope.rotary_dim as f64;
    // The exponent is f32 in transformers; so it is here.
    let wavelength = |base: f64, pair: usize| libm::pow(base, f64::from((2 * pair) as f32 / dim as f32));
    let all = |frequency: &dyn Fn(usize) -> f64| -> Vec<f32> {
        (0..rope.rotary_dim / 2).map(|pair| frequency(pair) as f32).collect()
    };
    let theta = rope.theta;
    match &rope.scaling {
        RopeScaling::Default => (all(&|i| wavelength(theta, i).recip()), 1.0),
        RopeScaling::Linear { factor } => (all(&|i| wavelength(theta, i).recip() / factor), 1.0),
        RopeScaling::Dynamic { factor, original_len } => {
            let original_len = *original_len as f64;
            let stretch = factor * (len as f64).max(original_len) / original_len - (factor - 1.0);
            let base = theta * libm::pow(stretch, dim / (dim - 2.0));
            (all(&|i| wavelength(base, i).recip()), 1.0)
        }
        RopeScaling::Llama3 { factor, low_freq_factor, high_freq_factor, original_len } => {
            let original_len = *original_len as f64;
            let scaled = |i| {
                let frequency = wavelength(theta, i).recip();
                let turns = original_len * frequency / TAU;
                if turns < *low_freq_factor {
                    frequency / factor
                } else if turns > *high_freq_factor {
                    frequency
                } else {
                    let smooth = (turns - low_freq_factor) / (high_freq_factor - low_freq_factor);
                    (1.0 - smooth) * frequency / factor + smooth * frequency
                }
            };
            (all(&scaled), 1.0)
        }
        RopeScaling::Yarn { factor, original_len, attention_factor, beta_fast, beta_slow, truncate } => {
            let pair_that_turns =
                |times: f64| dim * libm::log(*original_len as f64 / (times * TAU)) / (2.0 * libm::log(theta));
            let (low, high) = (pair_that_turns(*beta_fast), pair_that_turns(*beta_slow));
            let (low, high) = if *truncate { (low.floor(), high.ceil()) } else { (low, high) };
            let (low, high) = (low.max(0.0), high.min(dim - 1.0));
            // No ramp of width 0.
            let high = if low == high { high + 0.001 } else { high };
            let scaled = |i| {
                let frequency = wavelength(theta, i).recip();
                let interpolated = ((i as f64 - low) / (high - low)).clamp(0.0, 1.0);
                frequency / factor * interpolated + frequency * (1.0 - interpolated)
            };
            (all(&scaled), *attention_factor as f32)
        }
        RopeScaling::Proportional { pairs, factor } => {
            let scaled = |i| if i < *pairs { wavelength(theta, i).recip() / factor } else { 0.0 };
            (all(&scaled), 1.0)
        }
        RopeScaling::LongRope { short_factor, long_factor, original_len, attention_factor } => {
            let factors = if len > *original_len { long_factor } else { short_factor };
            (all(&|i| (factors[i] * wavelength(theta, i)).recip()), *attention_factor as f32)
        }
    }
}

/// Cosines and sines of positions `0..positions`, `[positions, rotary_dim / 2]` each, with the
/// frequencies of a sequence whose final length is `len`. The factor of yarn and longrope is in
/// them.
pub fn angles(rope: &RopeConfig, len: usize, positions: usize) -> [Vec<f32>; 2] {
    let (frequencies, scale) = inverse_frequencies(rope, len);
    [libm::cosf, libm::sinf].map(|f| {
        let of = |position: usize| frequencies.iter().map(move |w| f(position as f32 * w) * scale);
        (0..positions).into_par_iter().with_min_len(POSITIONS).flat_map_iter(of).collect()
    })
}

/// Factors on rotated queries at positions `0..positions`, `[positions]`; see `QueryGrowth`.
/// `None`: queries do not grow.
pub fn query_factors(rope: &RopeConfig, positions: usize) -> Option<Vec<f32>> {
    let QueryGrowth { beta, original_len } = rope.query_growth?;
    Some((0..positions).map(|position| (1.0 + beta * libm::log1p((position / original_len) as f64)) as f32).collect())
}
