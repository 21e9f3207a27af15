//! Choosing the next token from logits: greedy, or at random with temperature, top-k and top-p.
//!
//! A choice depends on the logits of its position, the settings and the step, and on nothing else:
//! there is no generator that is carried from one draw to the next. The exponential is this crate's
//! own, so that the same logits give the same token on every machine.
//!
//! ```text
//! logits ─► top-k ─► mass exp((z - z_max) / temperature) ─► top-p ─► draw
//! ```
//!
//! The vocabulary is not sorted for it. Where nothing is cut off, a draw is a walk over the tokens by
//! id. Else every question is of one kind, where in the order of probability something is reached
//! (k tokens, a share of the mass, a draw), and [`Ranked::select`] answers it in a few walks over the
//! logits.

use judge_core::request::{Sampling, TokenId};
use judge_kernels::exp::exp;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use super::side_by_side::{highest, sum};

/// The token that follows, from finite logits `[d_vocab]`, of which there is at least one. `step`
/// is the number of tokens written before it.
///
/// A random draw is counter-based: ChaCha8 with the seed as its key (64 bits, little-endian, then
/// zeros), the request's stream, and two words per step.
pub(crate) fn choose(logits: &[f32], sampling: &Sampling, step: usize) -> TokenId {
    match *sampling {
        Sampling::Greedy => greedy(logits),
        Sampling::Random { temperature, top_k, top_p, seed, stream } => {
            let mut key = [0; 32];
            key[..8].copy_from_slice(&seed.to_le_bytes());
            let mut draws = ChaCha8Rng::from_seed(key);
            draws.set_stream(stream);
            draws.set_word_pos(2 * step as u128);
            // 53 random bits: uniform in [0, 1).
            let uniform = (draws.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
            let ranked = Ranked::new(logits, temperature);
            match (top_k, top_p.filter(|&p| p < 1.0)) {
                (None, None) => ranked.one_of_all(uniform),
                (top_k, top_p) => ranked.one_of(&ranked.cut(top_k, top_p), uniform),
            }
        }
    }
}

/// The largest logit; ties go to the smaller id.
fn greedy(logits: &[f32]) -> TokenId {
    let best = highest(logits);
    logits.iter().position(|&z| z == best).unwrap_or(0) as TokenId
}

/// A vocabulary in the order of probability, most likely first, ties by id.
struct Ranked<'a> {
    /// `[d_vocab]`, finite.
    logits: &'a [f32],
    /// Above 0.
    temperature: f64,
    /// `1 / temperature`, but at most 1e30, so that 0 times it is 0.
    inverse: f32,
    /// The largest logit.
    highest: f32,
}

/// Where something is reached in the order of probability.
struct Selected {
    /// The first token with which it is reached.
    token: TokenId,
    /// The weight of that token and of all before it.
    reached: f64,
}

/// The tokens that take part in a draw: the most likely ones, as far as a mass goes.
struct Cut {
    /// Their mass.
    mass: f64,
    /// The least logit of a token that takes part, as far as `top_k` says.
    least: f32,
    /// The one of them that is drawn where the sum of all, in another order, is not quite that mass.
    rest: TokenId,
}

impl<'a> Ranked<'a> {
    /// Tokens that are summed or sorted at a time.
    const FEW: usize = 256;

    /// Looks for the largest logit.
    fn new(logits: &'a [f32], temperature: f64) -> Self {
        let inverse = temperature.recip().min(1e30) as f32;
        Self { logits, temperature, inverse, highest: highest(logits) }
    }

    /// The mass of a token with this logit, `exp((z - highest) / temperature)`, from 0 to 1. f32's
    /// exponential, of which what is below `exp(-87)` counts as nothing.
    #[inline(always)]
    fn mass(&self, logit: f32) -> f64 {
        f64::from(exp((logit - self.highest) * self.inverse))
    }

    /// [`mass`](Self::mass), or 0 for a logit below `least`.
    fn mass_from(&self, least: f32, logit: f32) -> f64 {
        if logit >= least { self.mass(logit) } else { 0.0 }
    }

    /// The mass of some tokens together.
    fn sum(&self, logits: &[f32]) -> f64 {
        sum(
            logits,
            #[inline(always)]
            |z| self.mass(z),
        )
    }

    /// The token of a draw from all of them: the first, by id, with which the sum of masses is more
    /// than `uniform` of the whole, from 0 to 1 without 1. Where rounding leaves a rest behind the
    /// last token, the last that has any mass.
    fn one_of_all(&self, uniform: f64) -> TokenId {
        let sums: Vec<f64> = self.logits.chunks(Self::FEW).map(|chunk| self.sum(chunk)).collect();
        let mut left = uniform * sums.iter().sum::<f64>();
        let mut chunk = None;
        for (index, &sum) in sums.iter().enumerate().filter(|&(_, &sum)| sum > 0.0) {
            chunk = Some((index * Self::FEW, left));
            left -= sum;
            if left < 0.0 {
                break;
            }
        }
        let (first, mut left) = chunk.unwrap_or_default();
        let mut found = first;
        for (token, &z) in self.logits.iter().enumerate().skip(first).take(Self::FEW) {
            let mass = self.mass(z);
            if mass > 0.0 {
                found = token;
            }
            left -= mass;
            if left < 0.0 {
                break;
            }
        }
        found as TokenId
    }

    /// The token of a draw from those of a cut: the first, by probability, with which the sum of
    /// masses is more than `uniform` of theirs.
    fn one_of(&self, cut: &Cut, uniform: f64) -> TokenId {
        let found = self.select(|z| self.mass_from(cut.least, z), |reached| reached > uniform * cut.mass);
        found.map_or(cut.rest, |found| found.token)
    }

    /// The first token of the order with which the sum of weights is `enough`; `None` if all tokens
    /// together are not.
    ///
    /// The order is walked in pieces between two logits, each reaching twice as far down as the one
    /// before: first to a mass of `exp(-8)` of the most likely token's, or a logit of 1 less, where a
    /// model that is sure of anything has few tokens. A piece in which enough is reached is halved,
    /// by logit, until it is small enough to be sorted. Sums are in an order that depends on the
    /// logits alone.
    fn select(&self, weight: impl Fn(f32) -> f64, enough: impl Fn(f64) -> bool) -> Option<Selected> {
        let (mut before, mut seen, mut upper) = (0.0, 0, f32::INFINITY);
        let mut reach = (8.0 * self.temperature).max(1.0);
        while seen < self.logits.len() {
            // All that is left, where that is most of f32's range.
            let lower = if reach < 1e6 { (f64::from(self.highest) - reach) as f32 } else { f32::NEG_INFINITY };
            let tokens = self.logits.iter().copied().enumerate();
            let piece: Vec<(usize, f32)> = tokens.filter(|(_, z)| (lower..upper).contains(z)).collect();
            let of_piece = piece.iter().map(|&(_, z)| weight(z)).sum::<f64>();
            if enough(before + of_piece) {
                return Some(Self::within(piece, before, weight, enough));
            }
            before += of_piece;
            seen += piece.len();
            (upper, reach) = (lower, 2.0 * reach);
        }
        None
    }

    /// [`select`](Self::select) within a piece of the order, in the order of ids, whose predecessors
    /// weigh `before`.
    fn within(
        mut piece: Vec<(usize, f32)>,
        mut before: f64,
        weight: impl Fn(f32) -> f64,
        enough: impl Fn(f64) -> bool,
    ) -> Selected {
        while piece.len() > Self::FEW {
            let (low, high) = piece.iter().fold((f32::MAX, f32::MIN), |(low, high), &(_, z)| (low.min(z), high.max(z)));
            let middle = low / 2.0 + high / 2.0;
            if !(low < middle && middle <= high) {
                break; // two neighbouring numbers, or one
            }
            let (upper, lower): (Vec<_>, Vec<_>) = piece.into_iter().partition(|&(_, z)| z >= middle);
            let of_upper = upper.iter().map(|&(_, z)| weight(z)).sum::<f64>();
            piece = if enough(before + of_upper) {
                upper
            } else {
                before += of_upper;
                lower
            };
        }
        // Stable, so that ties stay by id; zeros of both signs are one number.
        piece.sort_by(|a, b| (b.1 + 0.0).total_cmp(&(a.1 + 0.0)));
        let mut reached = before;
        // Summed one by one the piece may lack a last bit of what it has together.
        let mut found = 0;
        for (token, z) in piece {
            (found, reached) = (token, reached + weight(z));
            if enough(reached) {
                break;
            }
        }
        Selected { token: found as TokenId, reached }
    }

    /// The tokens that take part in a draw.
    ///
    /// `top_k` keeps whatever ties with the k-th logit. `top_p` then keeps the fewest tokens whose
    /// mass reaches that share of what is left. Both cut as the logits processors of transformers
    /// do.
    fn cut(&self, top_k: Option<usize>, top_p: Option<f64>) -> Cut {
        let kth = top_k.and_then(|k| self.select(|_| 1.0, |count| count >= k as f64));
        let least = kth.map_or(f32::NEG_INFINITY, |kth| self.logits[kth.token as usize]);
        let whole = match top_k {
            None => self.sum(self.logits),
            Some(_) => self.logits.iter().filter(|&&z| z >= least).map(|&z| self.mass(z)).sum(),
        };
        let wanted = top_p.map(|p| p * whole);
        if let Some(found) =
            wanted.and_then(|mass| self.select(|z| self.mass_from(least, z), |reached| reached >= mass))
        {
            return Cut { mass: found.reached, least, rest: found.token };
        }
        Cut { mass: whole, least, rest: greedy(self.logits) }
    }
}

#[cfg(test)]
mod tests {
    use judge_core::model::RequestProblem;
    use proptest::prelude::*;

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

    /// The tokens that a cut keeps, most likely first.
    fn kept(logits: &[f32], temperature: f64, top_k: Option<usize>, top_p: Option<f64>) -> Vec<TokenId> {
        let ranked = Ranked::new(logits, temperature);
        let Cut { mass, .. } = ranked.cut(top_k, top_p);
        let (mut all, mut kept, mut reached) = (order(logits).into_iter(), Vec::new(), 0.0);
        while reached < mass * (1.0 - 1e-6) {
            kept.extend(all.next());
            reached += ranked.mass(logits[*kept.last().unwrap() as usize]);
        }
        kept
    }

    /// The whole vocabulary, sorted.
    fn order(logits: &[f32]) -> Vec<TokenId> {
        let mut order: Vec<TokenId> = (0..logits.len() as TokenId).collect();
        order.sort_by(|&a, &b| logits[b as usize].total_cmp(&logits[a as usize]).then(a.cmp(&b)));
        order
    }

    #[test]
    fn top_k_and_top_p_cut_as_transformers_does() {
        let logits = [0.1_f32, 3.0, 2.0, 2.0, 1.0];
        assert_eq!(kept(&logits, 1.0, Some(1), None), [1]);
        assert_eq!(kept(&logits, 1.0, Some(2), None), [1, 2, 3]);
        assert_eq!(kept(&logits, 1.0, Some(99), None), [1, 2, 3, 4, 0]);
        // softmax: 0.5149 0.1894 0.1894 0.0697 0.0283 in this order
        assert_eq!(kept(&logits, 1.0, None, Some(0.5)), [1]);
        assert_eq!(kept(&logits, 1.0, None, Some(0.52)), [1, 2]);
        assert_eq!(kept(&logits, 1.0, None, Some(1.0)), [1, 2, 3, 4, 0]);
        assert_eq!(kept(&logits, 1.0, Some(2), Some(0.7)), [1, 2]);
        assert_eq!(kept(&logits, 0.01, None, Some(0.9)), [1]);
    }

    /// What the vocabulary, sorted whole, gives for a draw: the token, and the share of the mass that lies
    /// between the draw and the nearest point where another token would be drawn.
    fn by_sorting(
        logits: &[f32],
        (temperature, top_k, top_p): (f64, Option<usize>, Option<f64>),
        u: f64,
    ) -> (TokenId, f64) {
        let mut order: Vec<usize> = order(logits).into_iter().map(|token| token as usize).collect();
        if let Some(&last) = top_k.and_then(|k| order.get(k - 1)) {
            order.retain(|&token| logits[token] >= logits[last]);
        }
        let mass = |token: usize| ((f64::from(logits[token]) - f64::from(logits[order[0]])) / temperature).exp();
        let mut masses: Vec<f64> = order.iter().map(|&token| mass(token)).collect();
        let total: f64 = masses.iter().sum();
        let mut slack = f64::INFINITY;
        if let Some(p) = top_p {
            let mut reached = 0.0;
            let count = masses.iter().position(|mass| {
                reached += mass;
                slack = slack.min((reached - p * total).abs() / total);
                reached >= p * total
            });
            masses.truncate(count.map_or(masses.len(), |count| count + 1));
        }
        let total: f64 = masses.iter().sum();
        let (mut left, mut found) = (u * total, None);
        for (rank, mass) in masses.iter().enumerate() {
            left -= mass;
            slack = slack.min(left.abs() / total);
            if left < 0.0 && found.is_none() {
                found = Some(order[rank]);
            }
        }
        (found.unwrap_or(order[masses.len() - 1]) as TokenId, slack)
    }

    proptest! {
        #[test]
        fn a_draw_is_that_of_the_vocabulary_sorted_whole(
            logits in prop::collection::vec((-400_i32..400).prop_map(|z| z as f32 / 8.0), 1..1500),
            temperature in prop_oneof![Just(1.0), Just(0.01), 0.1_f64..40.0],
            top_k in prop::option::of(1_usize..1600),
            top_p in prop::option::of(0.01_f64..1.0),
            u in 0.0_f64..1.0,
        ) {
            let ranked = Ranked::new(&logits, temperature);
            let found = ranked.one_of(&ranked.cut(top_k, top_p), u);
            let (expected, slack) = by_sorting(&logits, (temperature, top_k, top_p), u);
            // Masses are f32: where a bound is nearer than their rounding, either side is right.
            prop_assert!(found == expected || slack < 1e-6, "{found} {expected} {slack}");
        }

        #[test]
        fn a_draw_from_all_is_where_the_sum_of_masses_by_id_says(
            logits in prop::collection::vec((-400_i32..400).prop_map(|z| z as f32 / 8.0), 1..1500),
            temperature in prop_oneof![Just(1.0), Just(1e-300), Just(1e300), 0.1_f64..40.0],
            u in prop_oneof![Just(0.0), Just(1.0 - f64::EPSILON / 2.0), 0.0_f64..1.0],
        ) {
            let ranked = Ranked::new(&logits, temperature);
            let found = ranked.one_of_all(u) as usize;
            let masses: Vec<f64> = logits.iter().map(|&z| ((f64::from(z) - f64::from(ranked.highest)) / temperature).exp()).collect();
            let total: f64 = masses.iter().sum();
            let before: f64 = masses[..found].iter().sum();
            prop_assert!(ranked.mass(logits[found]) > 0.0);
            prop_assert!(before <= (u + 1e-6) * total && before + masses[found] >= (u - 1e-6) * total);
        }

        #[test]
        fn ranks_are_those_of_a_sorted_vocabulary(
            logits in prop::collection::vec((-20_i32..20).prop_map(|z| z as f32 * 40.0), 1..1500),
            temperature in 0.01_f64..10.0,
        ) {
            let ranked = Ranked::new(&logits, temperature);
            for (rank, &token) in order(&logits).iter().enumerate().step_by(37) {
                let found = ranked.select(|_| 1.0, |count| count > rank as f64).unwrap();
                prop_assert_eq!((found.token, found.reached), (token, (rank + 1) as f64));
            }
            prop_assert!(ranked.select(|_| 1.0, |count| count > logits.len() as f64).is_none());
        }
    }

    #[test]
    fn the_highest_of_any_number_of_logits_is_found() {
        for len in 1..70 {
            for place in 0..len {
                let mut logits = vec![-1.5_f32; len];
                logits[place] = -1.0;
                assert_eq!(greedy(&logits) as usize, place);
                logits[len - 1] = -1.0;
                assert_eq!(greedy(&logits) as usize, place, "the first of equals");
            }
        }
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        assert_eq!(random(0.7, Some(5), Some(0.9), 0, 0).check(), Ok(()));
        for bad in [
            random(0.0, None, None, 0, 0),
            random(f64::NAN, None, None, 0, 0),
            random(1.0, Some(0), None, 0, 0),
            random(1.0, None, Some(0.0), 0, 0),
        ] {
            assert!(matches!(bad.check(), Err(RequestProblem::Sampling { .. })), "{bad:?}");
        }
    }
}
