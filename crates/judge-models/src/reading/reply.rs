//! States at the tokens of a text that is being written, reduced as they come.
//!
//! A pass feeds a token and brings its states with what the model says next, so the states of the last token come with a pass
//! behind it: where an end token is chosen, with that choice; else with one more pass, whose choice nobody takes (`driver`).

use judge_core::{
    Layer,
    reading::ReplyState,
    request::{Pooling, ReplyPooling},
};

use super::pooling::Pool;

/// Most tokens that spell the end of a thought together, and a token before them.
const TAIL: usize = 16;

/// The states of one text so far.
pub(crate) struct Reply {
    /// One for each pair that is wanted, in the order asked for.
    pools: Vec<((Layer, ReplyPooling), Pool)>,
}

impl Reply {
    /// No token was fed yet.
    pub(crate) fn new(wanted: &[(Layer, ReplyPooling)]) -> Self {
        let pool = |&(layer, pooling): &(Layer, ReplyPooling)| {
            let of = if pooling == ReplyPooling::Mean { Pooling::Mean } else { Pooling::Last };
            ((layer, pooling), Pool::new(of))
        };
        Self { pools: wanted.iter().map(pool).collect() }
    }

    /// Takes the states of the last of `tokens`, which was fed. `decode` makes text of tokens.
    pub(crate) fn add<T>(&mut self, fed: &[(Layer, Vec<f32>)], tokens: &[T], decode: impl Fn(&[T]) -> String) {
        let seeks_thought = self.pools.iter().any(|((_, pooling), _)| *pooling == ReplyPooling::ThoughtEnd);
        let ends_thought = seeks_thought && ends_thought(tokens, decode);
        for ((layer, pooling), pool) in &mut self.pools {
            let state = fed.iter().find(|(known, _)| known == layer);
            if let Some((_, state)) = state.filter(|_| *pooling != ReplyPooling::ThoughtEnd || ends_thought) {
                pool.add(state);
            }
        }
    }

    /// The states that there are.
    pub(crate) fn finish(self) -> Vec<ReplyState> {
        let states = self.pools.into_iter().map(|((layer, pooling), pool)| {
            let values = pool.finish();
            ReplyState { layer, pooling, values }
        });
        states.filter(|state| !state.values.is_empty()).collect()
    }
}

/// Whether the last of the tokens completes the end of a thought.
fn ends_thought<T>(tokens: &[T], decode: impl Fn(&[T]) -> String) -> bool {
    let tail = &tokens[tokens.len().saturating_sub(TAIL)..];
    let Some((_, before)) = tail.split_last() else { return false };
    let ends = |tokens: &[T]| decode(tokens).matches(ReplyPooling::END_OF_THOUGHT).count();
    ends(tail) > ends(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_reduced_as_they_come() {
        let layer = Layer(2);
        let wanted: Vec<_> = ReplyPooling::ALL.into_iter().map(|pooling| (layer, pooling)).collect();
        let found = |written: &[&str]| {
            let mut reply = Reply::new(&wanted);
            for end in 1..=written.len() {
                reply.add(&[(layer, vec![end as f32])], &written[..end], |tokens| tokens.concat());
            }
            reply.finish().into_iter().map(|state| (state.pooling, state.values[0])).collect::<Vec<_>>()
        };
        use ReplyPooling::{Last, Mean, ThoughtEnd};
        assert_eq!(found(&[]), []);
        assert_eq!(found(&["a", "b", "c"]), [(Last, 3.0), (Mean, 2.0)]);
        // The last end of a thought counts, and a token may complete it with text behind it.
        let thought = ["x", "</", "think>", "y", "</think>", "z"];
        assert_eq!(found(&thought), [(Last, 6.0), (Mean, 3.5), (ThoughtEnd, 5.0)]);
        assert_eq!(found(&["x</thi", "nk>\n", "A"]), [(Last, 3.0), (Mean, 2.0), (ThoughtEnd, 2.0)]);
        // What is further back than any spelling does not end it again.
        let long: Vec<&str> = ["</think>"].into_iter().chain(["x"; 40]).collect();
        assert_eq!(found(&long)[2], (ThoughtEnd, 1.0));
    }
}
