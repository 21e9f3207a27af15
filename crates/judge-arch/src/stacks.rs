//! Tensors in which old families keep the projections of a block otherwise than one by one.
//!
//! ```text
//! by head       query_key_value  [3 * n_heads * head_dim, d_model]   query, key, value of head 0, then of head 1, …
//! transposed    c_attn           [d_model, 3 * d_model]              queries, keys, values side by side
//! ```
//!
//! The parts have names of this crate's own, which no folder has.

use super::spec::{HeadShape, LinearSpec, StackPart, StackSpec};

/// The stacks of weights and biases of a projection whose parts are the queries of each head, then the
/// keys of each, then the values, stored under `name` with the three of each head behind one another.
pub(super) fn by_head(name: &str, linear: &LinearSpec, heads: HeadShape) -> Vec<StackSpec> {
    let HeadShape { n_heads, head_dim, .. } = heads;
    let first_row = |part: usize| (part % n_heads * 3 + part / n_heads) * head_dim;
    let first_rows: Vec<usize> = (0..linear.stems.len()).map(first_row).collect();
    stacks(name, linear, [3 * n_heads * head_dim, linear.d_in], &first_rows, [linear.d_in, 1])
}

/// The stacks of weights and biases of a projection that is stored transposed, `[d_in, d_out]`, under
/// the name that [`stored_name`] makes of its parts'.
pub(super) fn transposed(linear: &LinearSpec) -> Vec<StackSpec> {
    let d_out = linear.stems.iter().map(|(_, rows)| rows).sum();
    let first_rows: Vec<usize> =
        linear.stems.iter().scan(0, |end, (_, rows)| Some(std::mem::replace(end, *end + rows))).collect();
    let name = linear.stems.first().map(|(stem, _)| stored_name(stem)).unwrap_or_default();
    stacks(name, linear, [linear.d_in, d_out], &first_rows, [1, d_out])
}

/// The module that a part is stored in: its name without the last part.
fn stored_name(stem: &str) -> &str {
    stem.rsplit_once('.').map_or(stem, |(module, _)| module)
}

/// A stack of weights of this shape and one of biases, as far as there are some. No folder has the
/// parts one by one. `first_rows` says where each part begins, `strides` how far apart its rows and its columns lie.
fn stacks(
    name: &str,
    linear: &LinearSpec,
    shape: [usize; 2],
    first_rows: &[usize],
    strides: [usize; 2],
) -> Vec<StackSpec> {
    let weights = linear.weights().into_iter().zip(first_rows).map(|((tensor, rows), row)| StackPart {
        tensor: (tensor, vec![rows, linear.d_in]),
        start: row * strides[0],
        strides: strides.to_vec(),
    });
    let biases = linear.biases().into_iter().zip(first_rows).map(|((tensor, rows), &start)| StackPart {
        tensor: (tensor, vec![rows]),
        start,
        strides: vec![1],
    });
    let rows = linear.stems.iter().map(|(_, rows)| rows).sum();
    let stack = |of: &str, shape, parts| StackSpec { name: format!("{name}.{of}"), shape, parts, is_only_form: true };
    let all = [stack("weight", shape.to_vec(), weights.collect()), stack("bias", vec![rows], biases.collect())];
    all.into_iter().filter(|stack| !stack.parts.is_empty()).collect()
}
