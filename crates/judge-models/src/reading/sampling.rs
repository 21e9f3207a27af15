//! Choosing the next token from logits: greedy, or at random with temperature, top-k and top-p.
//!
//! A choice depends on the logits of its position, the settings and the step, and on nothing else:
//! there is no generator that is carried from one draw to the next. The exponential is `libm`'s, so
//! that the same logits give the same token on every machine.
//!
//! ```text
//! logits ─► sorted, most likely first ─► top-k ─► mass exp((z - z_max) / temperature) ─► top-p ─► draw
//! ```
//!
//! `check` is for local models and for services; `wire` calls it too.

use judge_core::{RequestProblem, Sampling, TokenId};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// The token that follows, from finite logits `[d_vocab]`, of which there is at least one. `step`
/// is the number of tokens written before it.
///
/// A random draw is counter-based: ChaCha8 with the seed as its key (64 bits, little-endian, then
/// zeros), the request's stream, and two words per step.
pub(crate) fn choose(logits: &[f32], sampling: &Sampling, step: usize) -> TokenId {
    match *sampling {
        Sampling::Greedy => greedy(logits),
        Sampling::Random { temperature, top_k, top_p, seed, stream } => {
            let candidates = candidates(logits, temperature, top_k, top_p);
            let mut key = [0; 32];
            key[..8].copy_from_slice(&seed.to_le_bytes());
            let mut draws = ChaCha8Rng::from_seed(key);
            draws.set_stream(stream);
            draws.set_word_pos(2 * step as u128);
            // 53 random bits: uniform in [0, 1), as a fraction of the mass that is left.
            let mut left =
                (draws.next_u64() >> 11) as f64 / (1_u64 << 53) as f64 * candidates.iter().map(|c| c.1).sum::<f64>();
            let hit = candidates.iter().find(|(_, mass)| {
                left -= mass;
                left < 0.0
            });
            // Rounding may leave a rest after the last candidate.
            hit.or(candidates.last()).map_or(0, |&(token, _)| token)
        }
    }
}

/// The largest logit; ties go to the smaller id.
fn greedy(logits: &[f32]) -> TokenId {
    let mut best = 0;
    for (token, logit) in logits.iter().enumerate() {
        if *logit > logits[best] {
            best = token;
        }
    }
    best as TokenId
}

/// Tokens that take part in a draw with their (unnormalised) mass, most likely first, ties by id.
///
/// `top_k` keeps whatever ties with the k-th logit. `top_p` then keeps the fewest tokens, in this
/// order, whose mass reaches that share of what is left. Both cut as the logits processors of
/// transformers do.
fn candidates(logits: &[f32], temperature: f64, top_k: Option<usize>, top_p: Option<f64>) -> Vec<(TokenId, f64)> {
    let mut order: Vec<usize> = (0..logits.len()).collect();
    order.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]).then(a.cmp(&b)));
    if let Some(k) = top_k
        && let Some(&last) = order.get(k.saturating_sub(1))
    {
        order.retain(|&token| logits[token] >= logits[last]);
    }
    let top = order.first().map_or(0.0, |&token| f64::from(logits[token]));
    let mass = |token: usize| libm::exp((f64::from(logits[token]) - top) / temperature);
    let mut candidates: Vec<(TokenId, f64)> = order.into_iter().map(|token| (token as TokenId, mass(token))).collect();
    if let Some(p) = top_p {
        let wanted = p * candidates.iter().map(|c| c.1).sum::<f64>();
        let mut reached = 0.0;
        let enough = candidates.iter().position(|(_, mass)| {
            reached += mass;
            reached >= wanted
        });
        candidates.truncate(enough.map_or(candidates.len(), |index| index + 1));
    }
    candidates
}

/// Says what is out of range in sampling settings: a temperature that is not finite and above 0, a
/// `top_k` of 0, a `top_p` outside (0, 1]. Greedy writing has nothing to check.
pub(crate) fn check(sampling: &Sampling) -> Result<(), RequestProblem> {
    let Sampling::Random { temperature, top_k, top_p, .. } = *sampling else { return Ok(()) };
    let problem = |setting, found, expected| Err(RequestProblem::Sampling { setting, found, expected });
    if !(temperature.is_finite() && temperature > 0.0) {
        return problem("temperature", temperature, "a finite number above 0");
    }
    if top_k == Some(0) {
        return problem("top_k", 0.0, "at least 1");
    }
    match top_p {
        Some(p) if !(p > 0.0 && p <= 1.0) => problem("top_p", p, "above 0, at most 1"),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random(temperature: f64, top_k: Option<usize>, top_p: Option<f64>, seed: u64, stream: u64) -> Sampling {
        Sampling::Random { temperature, top_k, top_p, seed, stream }
    }

    #[test]
    fn greedy_takes_the_first_of_equals() {
        assert_eq!(choose(&[0.0, 2.0, 2.0, -1.0], &Sampling::Greedy, 0), 1);
        assert_eq!(choose(&[f32::MIN], &Sampling::Greedy, 0), 0);
    }

    #[test]
    fn draws_follow_the_probabilities() {
        let logits = [0.0, 1.0, 2.0, -1.0];
        let total: f64 = logits.iter().map(|&z: &f32| f64::from(z).exp()).sum();
        let n = 20_000;
        let mut counts = [0_u32; 4];
        for step in 0..n {
            counts[choose(&logits, &random(1.0, None, None, 3, 5), step) as usize] += 1;
        }
        for (token, &count) in counts.iter().enumerate() {
            let p = f64::from(logits[token]).exp() / total;
            let sigma = (p * (1.0 - p) / n as f64).sqrt();
            assert!(
                (f64::from(count) / n as f64 - p).abs() < 5.0 * sigma,
                "token {token}: {count} of {n}, expected {p}"
            );
        }
    }

    #[test]
    fn a_draw_depends_on_seed_stream_and_step_alone() {
        let logits: Vec<f32> = (0..50).map(|i| (i % 7) as f32).collect();
        let draws = |seed, stream| {
            (0..40).map(|step| choose(&logits, &random(1.0, None, None, seed, stream), step)).collect::<Vec<_>>()
        };
        assert_eq!(draws(1, 2), draws(1, 2));
        assert_ne!(draws(1, 2), draws(2, 2));
        assert_ne!(draws(1, 2), draws(1, 3));
        assert!(draws(1, 2).windows(2).any(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn top_k_and_top_p_cut_as_transformers_does() {
        let kept = |logits: &[f32], k, p| candidates(logits, 1.0, k, p).into_iter().map(|c| c.0).collect::<Vec<_>>();
        let logits = [0.1_f32, 3.0, 2.0, 2.0, 1.0];
        assert_eq!(kept(&logits, Some(1), None), [1]);
        assert_eq!(kept(&logits, Some(2), None), [1, 2, 3]);
        assert_eq!(kept(&logits, Some(99), None), [1, 2, 3, 4, 0]);
        // softmax: 0.5149 0.1894 0.1894 0.0697 0.0283 in this order
        assert_eq!(kept(&logits, None, Some(0.5)), [1]);
        assert_eq!(kept(&logits, None, Some(0.52)), [1, 2]);
        assert_eq!(kept(&logits, None, Some(1.0)), [1, 2, 3, 4, 0]);
        let sharp = candidates(&logits, 0.01, None, Some(0.9));
        assert_eq!(sharp.len(), 1);
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        assert_eq!(check(&random(0.7, Some(5), Some(0.9), 0, 0)), Ok(()));
        for bad in [
            random(0.0, None, None, 0, 0),
            random(f64::NAN, None, None, 0, 0),
            random(1.0, Some(0), None, 0, 0),
            random(1.0, None, Some(0.0), 0, 0),
        ] {
            assert!(matches!(check(&bad), Err(RequestProblem::Sampling { .. })), "{bad:?}");
        }
    }
}
