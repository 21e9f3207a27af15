//! Token inputs: what each block gets of a position's token besides the residual stream (the
//! per-layer embeddings of Gemma 4).
//!
//! `decoder.rs` calls this once in a pass, before the first block; `block_ops.rs` gives each block
//! its slice. Rows of the table are looked up in its file, on all threads; see `Table` of `judge-weights`.

use judge_arch::ModelSpec;
use judge_core::request::TokenId;
use judge_kernels::pack::Linear;
use judge_kernels::vector::{Turn, norm_rotate, worth_a_task};
use rayon::prelude::*;

use super::rows::{BufferPool, Rows};
use crate::engine::token_inputs::TokenInputs;

/// The token inputs of all blocks, `[rows, n_layers * width]`, one row for each token of `ids`:
///
/// ```text
/// (norm(projection(x) * projection_factor) + table[id] * table_factor) * sum_factor
/// ```
///
/// `x` has the tokens' embeddings, scaled as for the first block, `[rows, d_model]`. The norm is a
/// root-mean-square norm over each block's `width` numbers; its weight `[width]` is the same for
/// all. `None` in families without token inputs.
///
/// # Panics
/// If the table has no row for a token; `reading/jobs.rs` refuses such tokens before.
pub(super) fn token_inputs(
    model: &ModelSpec,
    inputs: &TokenInputs<Linear, Vec<f32>>,
    (ids, x): (&[TokenId], &Rows),
    pool: &mut BufferPool,
) -> Option<Rows> {
    let spec = model.token_inputs.as_ref()?;
    let (projection_factor, sum_factor) = (spec.projection_factor as f32, spec.sum_factor as f32);
    let TokenInputs { table, table_factor, projection: Linear { weight: projection, .. }, norm } = inputs;
    let mut rows = pool.rows(x.count(), projection.out_features());
    projection.apply(&x.data, x.count(), &mut rows.data, &mut pool.words);
    let width = rows.width;
    let each = rows.data.par_chunks_exact_mut(width).zip(ids).with_min_len(worth_a_task(width));
    each.for_each_init(
        || vec![0.0; width],
        |of_token, (row, &id)| {
            table.row(id as usize, of_token);
            row.iter_mut().for_each(|x| *x *= projection_factor);
            norm_rotate(row, norm.len(), Some((norm.as_slice(), model.norm_eps as f32)), None, Turn::default());
            row.iter_mut().zip(&*of_token).for_each(|(x, t)| *x = (*x + t * table_factor) * sum_factor);
        },
    );
    Some(rows)
}
