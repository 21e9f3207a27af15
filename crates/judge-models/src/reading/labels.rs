//! Label logits: which states they are made from, and the tables that come of it.
//!
//! An engine brings the states that `wants_state` asks for, and `Steps` multiplies them with the
//! head's rows on the host; or it brings what it has multiplied on a device ([`AtLayer`]).
//! `Model::heads` reads those rows, a few of the whole head, once for the requests that are answered
//! together.
//!
//! ```text
//! logit of label s at layer l = Σ_d head[s, d] * state_l[d] + bias[s]     on the host in f64
//! ```
//!
//! There is no soft-cap and no scale in a label logit. The mass of labels has both, since it comes
//! from the model's own distribution (`NextToken`).
//!
//! | lens | inner layer | last layer |
//! |---|---|---|
//! | `Raw` | the state as it is | the normed state |
//! | `Normed` | the state after the final norm | the normed state |

use std::collections::HashMap;
use std::iter::repeat;

use judge_core::{
    Layer, Lens, Want,
    reading::{LabelLogits, LabelStep},
    request::{LabelRead, ReadAt, TokenId},
};
use judge_kernels::widest::{halved, widest};

use super::next_token::NextToken;

/// What label logits need of the head for each set of labels that is read, by the labels' tokens.
pub(crate) type Heads<'a> = HashMap<&'a [TokenId], HeadRows>;

/// The part of the head that makes the logits of some labels.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HeadRows {
    /// `[n_scores, d_model]`.
    pub(crate) rows: Vec<f32>,
    /// `[n_scores]`, added to the products; empty where the head has no bias.
    pub(crate) biases: Vec<f32>,
}

/// What label logits come of at the last position, by layer and [lens](lens_at).
pub(crate) type States = HashMap<(Layer, Lens), AtLayer>;

/// What label logits come of at a layer.
#[derive(Clone, Debug)]
pub(crate) enum AtLayer {
    /// The state as the head meets it, `[d_model]`, for products on the host.
    State(Vec<f32>),
    /// The logits of some tokens, ascending by token, from an engine that multiplies on its device:
    /// those of all labels that are read there, without biases.
    #[cfg_attr(not(any(test, feature = "tensor")), expect(dead_code, reason = "made by the engine on Burn"))]
    Logits(Vec<(TokenId, f32)>),
}

impl AtLayer {
    /// The logits of labels whose part of the head is `head`. NaN, which is
    /// refused with the reading, for a label that is not among [`Logits`](Self::Logits).
    fn logits(&self, labels: &[TokenId], head: &HeadRows) -> Vec<f32> {
        let biases = head.biases.iter().map(|&bias| f64::from(bias)).chain(repeat(0.0));
        match self {
            Self::State(state) => {
                dots(&head.rows, state).zip(biases).map(|(product, bias)| (product + bias) as f32).collect()
            }
            Self::Logits(logits) => {
                let of = |label: &TokenId| logits.binary_search_by_key(label, |&(token, _)| token);
                let products = labels.iter().map(|label| of(label).map_or(f32::NAN, |place| logits[place].1));
                products.zip(biases).map(|(product, bias)| (f64::from(product) + bias) as f32).collect()
            }
        }
    }
}

/// How a layer meets the head: the last one is normed under both lenses.
pub(crate) fn lens_at(lens: Lens, layer: Layer, n_layers: usize) -> Lens {
    if layer.0 == n_layers { Lens::Normed } else { lens }
}

/// Whether the labels are read at a step, as far as that is known before its token is chosen: reads
/// at label steps may turn out not to be.
pub(crate) fn is_read_at(read: &LabelRead, step: usize) -> bool {
    step == 0 || read.at != ReadAt::PromptEnd
}

/// Whether the state of a layer is read at a step in this form. `lens` is the form in which the
/// head meets it; see [`lens_at`].
pub(crate) fn wants_state(want: &Want, step: usize, layer: Layer, lens: Lens, n_layers: usize) -> bool {
    let here = |read: &&LabelRead| is_read_at(read, step) && read.layers.contains(&layer);
    want.labels.iter().filter(here).any(|read| lens_at(read.lens, layer, n_layers) == lens)
}

/// Collects the label logits of one sequence at the steps that are to be read.
pub(crate) struct Steps<'a> {
    /// The model's, to know which layer is the last.
    n_layers: usize,
    /// What is read.
    want: &'a Want,
    /// Rows of the head, which include those of all labels of `want`.
    heads: &'a Heads<'a>,
    /// One list for each of the want's reads, steps ascending.
    found: Vec<Vec<LabelStep>>,
}

impl<'a> Steps<'a> {
    /// Nothing is read yet.
    pub(crate) fn new(want: &'a Want, heads: &'a Heads<'a>, n_layers: usize) -> Self {
        Self { n_layers, want, heads, found: want.labels.iter().map(|_| Vec::new()).collect() }
    }

    /// Reads a step whose token was chosen from `states`. `token` is `None` if the step has none,
    /// because the text ended there or nothing is written. `next` is what the model says there; it
    /// is needed where the mass of labels is read.
    pub(crate) fn read(&mut self, step: usize, token: Option<TokenId>, states: &States, next: Option<&NextToken<'_>>) {
        for (read, found) in self.want.labels.iter().zip(&mut self.found) {
            let wanted = match read.at {
                ReadAt::PromptEnd => step == 0,
                ReadAt::LabelSteps => token.is_some_and(|token| read.tokens.contains(&token)),
                ReadAt::EveryStep => token.is_some(),
            };
            let Some(head) = self.heads.get(read.tokens.as_slice()).filter(|_| wanted) else { continue };
            let states = read.layers.iter().filter_map(|&l| states.get(&(l, lens_at(read.lens, l, self.n_layers))));
            found.push(LabelStep {
                step,
                token: token.filter(|_| read.at != ReadAt::PromptEnd),
                logits: states.flat_map(|state| state.logits(&read.tokens, head)).collect(),
                label_mass: next.filter(|_| read.label_mass).map(|next| next.mass(&read.tokens)),
            });
        }
    }

    /// Forgets the generated steps from `end` on. Reads at the prompt's end stay.
    pub(crate) fn truncate(&mut self, end: usize) {
        for (read, found) in self.want.labels.iter().zip(&mut self.found) {
            found.retain(|step| read.at == ReadAt::PromptEnd || step.step < end);
        }
    }

    /// One entry for each read, in the order asked for.
    pub(crate) fn finish(self) -> Vec<LabelLogits> {
        let labels = self.want.labels.iter().zip(self.found).map(|(read, steps)| LabelLogits {
            tokens: read.tokens.clone(),
            layers: read.layers.clone(),
            lens: read.lens,
            at: read.at,
            steps,
        });
        labels.collect()
    }
}

/// One logit per row of `head` `[n_scores, d_model]`: the product with `state` `[d_model]`, in `f64`. The order of its sum is that of
/// [`dot`], so that it is the same bits whatever else is read.
fn dots<'a>(head: &'a [f32], state: &'a [f32]) -> impl Iterator<Item = f64> + 'a {
    head.chunks_exact(state.len().max(1)).map(move |row| dot(row, state))
}

/// `Σ a[i] · b[i]` of two rows of equal length, each product exact:
///
/// ```text
/// partial sum i    a[i] · b[i] + a[i + 16] · b[i + 16] + …          i from 0 to 15
/// then             0..8 += 8..16     0..4 += 4..8     0..2 += 2..4     0 += 1
/// ```
fn dot(a: &[f32], b: &[f32]) -> f64 {
    let mut sums = [0.0; 16];
    widest(
        #[inline(always)]
        || {
            let ((chunks_a, rest_a), (chunks_b, rest_b)) = (a.as_chunks::<16>(), b.as_chunks::<16>());
            for (a, b) in chunks_a.iter().zip(chunks_b) {
                for (sum, (&a, &b)) in sums.iter_mut().zip(a.iter().zip(b)) {
                    *sum += f64::from(a) * f64::from(b);
                }
            }
            for (sum, (&a, &b)) in sums.iter_mut().zip(rest_a.iter().zip(rest_b)) {
                *sum += f64::from(a) * f64::from(b);
            }
        },
    );
    halved(sums)
}

#[cfg(test)]
mod tests {
    use super::super::next_token::FoundNext;
    use super::*;

    #[test]
    fn a_logit_is_a_dot_product_and_a_bias() {
        let mut head = HeadRows { rows: vec![1.0, 2.0, -1.0, 0.5], biases: Vec::new() };
        let state = AtLayer::State(vec![3.0, 4.0]);
        assert_eq!(state.logits(&[7, 8], &head), [11.0, -1.0]);
        head.biases = vec![0.5, -2.0];
        assert_eq!(state.logits(&[7, 8], &head), [11.5, -3.0]);
    }

    #[test]
    fn products_are_right_for_rows_of_any_length() {
        for width in [1, 15, 16, 17, 33, 576] {
            let number = |i: usize| (i * 7919 % 1009) as f32 / 1009.0 - 0.5;
            let (a, b): (Vec<f32>, Vec<f32>) = (0..width).map(|i| (number(i), number(i + 5000))).unzip();
            let expected: f64 = a.iter().zip(&b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum();
            assert!((dot(&a, &b) - expected).abs() < 1e-13, "{width}");
        }
    }

    #[test]
    fn logits_of_a_device_are_found_by_their_label() {
        let logits = AtLayer::Logits(vec![(3, 0.5), (8, -1.5)]);
        let mut head = HeadRows { rows: Vec::new(), biases: Vec::new() };
        assert_eq!(logits.logits(&[8, 3], &head), [-1.5, 0.5]);
        assert!(logits.logits(&[4], &head)[0].is_nan());
        head.biases = vec![2.0, 1.0];
        assert_eq!(logits.logits(&[8, 3], &head), [0.5, 1.5]);
    }

    #[test]
    fn each_read_has_its_own_steps() {
        let read = |tokens: &[TokenId], at| LabelRead {
            tokens: tokens.to_vec(),
            layers: vec![Layer(1)],
            lens: Lens::Raw,
            at,
            label_mass: at == ReadAt::LabelSteps,
        };
        let reads = [(&[3][..], ReadAt::PromptEnd), (&[4], ReadAt::LabelSteps), (&[3], ReadAt::EveryStep)];
        let want = Want { labels: reads.map(|(tokens, at)| read(tokens, at)).to_vec(), ..Want::default() };
        let head = |row: f32| HeadRows { rows: vec![row], biases: Vec::new() };
        let heads = Heads::from([(&[3][..], head(2.0)), (&[4], head(-1.0))]);
        let half = -std::f32::consts::LN_2;
        let next = NextToken::Found(FoundNext { token: None, log_probs: vec![(3, half), (4, half)] });
        let mut steps = Steps::new(&want, &heads, 1);
        for (step, token) in [Some(3), Some(4), Some(4), None].into_iter().enumerate() {
            // Layer 1 is the last: both lenses meet its normed state.
            let state = match step {
                1 => AtLayer::Logits(vec![(3, 2.0), (4, -1.0)]), // as if the device had multiplied
                _ => AtLayer::State(vec![step as f32]),
            };
            let states = States::from([((Layer(1), Lens::Normed), state)]);
            steps.read(step, token, &states, Some(&next));
        }
        steps.truncate(2);
        let found: Vec<Vec<_>> = steps
            .finish()
            .into_iter()
            .map(|read| read.steps.into_iter().map(|s| (s.step, s.token, s.logits, s.label_mass)).collect())
            .collect();
        assert_eq!(found[0], [(0, None, vec![0.0], None)]);
        assert_eq!(found[1], [(1, Some(4), vec![-1.0], Some(0.5))]);
        assert_eq!(found[2], [(0, Some(3), vec![0.0], None), (1, Some(4), vec![2.0], None)]);
    }
}
