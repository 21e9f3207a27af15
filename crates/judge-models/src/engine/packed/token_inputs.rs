//! What blocks get of each position's token besides the residual stream.

use judge_core::TokenId;
use rayon::prelude::*;

use super::pack::PackedLinear;
use super::rows::{BufferPool, Rows};
use super::vector::{Turn, norm_rotate, worth_a_task};
use crate::arch::TokenInputsSpec;
use crate::weights::Table;

/// The token inputs of all blocks, `[rows, n_layers * width]`, for tokens whose embeddings are the rows of `x`. Of `spec` are the factors; `norm` is a weight and what is
/// added to mean squares.
pub(super) fn token_inputs(
    spec: &TokenInputsSpec,
    (table, table_factor): (&Table, f32),
    projection: &PackedLinear,
    (norm, eps): (&[f32], f32),
    (ids, x): (&[TokenId], &Rows),
    pool: &mut BufferPool,
) -> Rows {
    let (projection_factor, sum_factor) = (spec.projection_factor as f32, spec.sum_factor as f32);
    let mut rows = pool.rows(x.count(), projection.out_features());
    projection.apply(&x.data, x.count(), &mut rows.data, &mut pool.words);
    let width = rows.width;
    let each = rows.data.par_chunks_exact_mut(width).zip(ids).with_min_len(worth_a_task(width));
    each.for_each_init(
        || vec![0.0; width],
        |of_token, (row, &id)| {
            table.row(id as usize, of_token);
            row.iter_mut().for_each(|x| *x *= projection_factor);
            norm_rotate(row, norm.len(), Some((norm, eps)), None, Turn::default());
            row.iter_mut().zip(&*of_token).for_each(|(x, t)| *x = (*x + t * table_factor) * sum_factor);
        },
    );
    rows
}
