//! Heads out of a projection's rows, as attention takes them.

use burn::backend::cubecl::dtype_to_storage_type;
use burn::tensor::{DType, Tensor};
use cubecl::ir::ElemType;
use cubecl::prelude::*;
use judge_kernels::functions::Pairs;

use crate::rows::{Sharing, row, sum};
use crate::tensors::{burn, contiguous, empty};

/// Where heads lie in the rows of a projection, and what becomes of them on their way out.
#[derive(Clone, Debug)]
pub struct Heads {
    /// The column of the first number.
    pub first: usize,
    /// Columns from one head to the next, at least `head_dim`.
    pub step: usize,
    /// How many heads there are.
    pub heads: usize,
    /// How many of them, one behind the other, are side by side in the result: query heads of one key head.
    pub group: usize,
    /// Numbers of a head.
    pub head_dim: usize,
    /// The root-mean-square norm of each head.
    pub norm: HeadNorm,
    /// What the norm adds below the root.
    pub eps: f64,
    /// Numbers are clamped to `[-limit, limit]` behind the norm.
    pub limit: Option<f64>,
    /// The rotation behind that.
    pub rotation: Option<Rotation>,
}

/// The norm of a head.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "made for a call, and never kept")]
pub enum HeadNorm {
    /// None.
    Absent,
    /// Without a weight.
    Plain,
    /// Times a weight, `[head_dim]`.
    Weighted(Tensor<1>),
}

/// Angles of positions.
#[derive(Clone, Debug)]
pub struct Rotation {
    /// Cosines in f32, `[1 or batch, 1 or seq, 1, rotary_dim / 2]`.
    pub cos: Tensor<4>,
    /// Sines of the same angles.
    pub sin: Tensor<4>,
    /// Which two coordinates of a head an angle turns.
    pub pairs: Pairs,
    /// A factor for each position behind the rotation, `[1 or batch, 1 or seq, 1, 1]`.
    pub factors: Option<Tensor<4>>,
}

/// What a kernel is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Kind {
    head_dim: usize,
    heads: usize,
    group: usize,
    is_normed: bool,
    has_weight: bool,
    is_clamped: bool,
    /// Pairs that are rotated; 0 without a rotation.
    pairs: usize,
    neighbours: bool,
    has_factors: bool,
    sharing: Sharing,
}

/// Heads of `x` `[batch, seq, width]`: `[heads / group, batch, group, seq, head_dim]` in `dtype`, computed in f32.
pub fn heads(x: Tensor<3>, of: &Heads, dtype: DType) -> Tensor<5> {
    let [batch, seq, width] = x.dims();
    let x = contiguous(x);
    let out = empty(&x, [of.heads / of.group, batch, of.group, seq, of.head_dim], dtype);
    let rows = batch * seq * of.heads;
    if rows == 0 {
        return burn(out);
    }
    let sharing = Sharing::of(&x.client);
    let (count, dim) = sharing.launch(rows);
    let weight = match &of.norm {
        HeadNorm::Weighted(weight) => Some(contiguous(weight.clone())),
        HeadNorm::Absent | HeadNorm::Plain => None,
    };
    let rotation = of.rotation.as_ref();
    let (table, pairs) = rotation.map_or(([0, 0], 0), |rotation| {
        let [rows, positions, _, pairs] = rotation.cos.dims();
        // How far the table moves on for a row of the batch, and for a position: not at all where it has only one.
        ([if rows > 1 { positions } else { 0 }, usize::from(positions > 1)], pairs)
    });
    let factors = rotation.and_then(|rotation| rotation.factors.clone()).map(contiguous);
    let kind = Kind {
        head_dim: of.head_dim,
        heads: of.heads,
        group: of.group,
        is_normed: !matches!(of.norm, HeadNorm::Absent),
        has_weight: weight.is_some(),
        is_clamped: of.limit.is_some(),
        pairs,
        neighbours: rotation.is_some_and(|rotation| rotation.pairs == Pairs::Neighbours),
        has_factors: factors.is_some(),
        sharing,
    };
    let client = x.client.clone();
    // What there is none of is not read: the kernel is told so when it is compiled. The rows stand in its place.
    let weight = weight.unwrap_or_else(|| x.clone());
    let [cos, sin] = match rotation {
        Some(rotation) => [rotation.cos.clone(), rotation.sin.clone()].map(contiguous),
        None => [x.clone(), x.clone()],
    };
    let factors = factors.unwrap_or_else(|| x.clone());
    let dtypes = [x.dtype, weight.dtype, dtype].map(dtype_to_storage_type);
    // SAFETY: units beyond the last row end at once; a row reads its head's columns of its own position, and the table's row of that.
    unsafe {
        heads_of_rows::launch_unchecked(
            &client,
            count,
            dim,
            x.into_buffer_arg(),
            weight.into_buffer_arg(),
            cos.into_buffer_arg(),
            sin.into_buffer_arg(),
            factors.into_buffer_arg(),
            out.clone().into_buffer_arg(),
            rows as u32,
            seq as u32,
            width as u32,
            of.first as u32,
            of.step as u32,
            table[0] as u32,
            table[1] as u32,
            of.eps as f32,
            of.limit.unwrap_or_default() as f32,
            kind,
            dtypes,
        );
    }
    burn(out)
}

/// A number of a head behind norm and clamp.
#[cube]
fn made<I: Float, W: Float>(
    x: &[I],
    weight: &[W],
    start: usize,
    i: usize,
    factor: f32,
    limit: f32,
    #[comptime] kind: Kind,
) -> f32 {
    let mut value = f32::cast_from(x[start + i]);
    if comptime!(kind.is_normed) {
        value *= factor;
    }
    if comptime!(kind.has_weight) {
        value *= f32::cast_from(weight[i]);
    }
    if comptime!(kind.is_clamped) {
        // What is not a number stays none.
        value = clamp_nan(value, -limit, limit);
    }
    value
}

#[cube(launch_unchecked)]
fn heads_of_rows<I: Float, W: Float, O: Float>(
    x: &[I],
    weight: &[W],
    cos: &[f32],
    sin: &[f32],
    factors: &[f32],
    out: &mut [O],
    rows: u32,
    seq: u32,
    width: u32,
    first: u32,
    step: u32,
    table_row: u32,
    table_position: u32,
    eps: f32,
    limit: f32,
    #[comptime] kind: Kind,
    #[define(I, W, O)] _dtypes: [ElemType; 3],
) {
    let row = row(kind.sharing);
    if row >= rows as usize {
        terminate!();
    }
    let heads = comptime!(kind.heads);
    let group = comptime!(kind.group);
    let head_dim = comptime!(kind.head_dim);
    let units = comptime!(kind.sharing.units as usize);
    let seq = seq as usize;
    let head = row % heads;
    let position = (row / heads) % seq;
    let sequence = row / heads / seq;
    let start = (row / heads) * width as usize + first as usize + head * step as usize;
    let batch = rows as usize / heads / seq;
    let to = ((((head / group) * batch + sequence) * group + head % group) * seq + position) * head_dim;
    let unit = UNIT_POS_X as usize;

    let mut factor = 1.0f32;
    if comptime!(kind.is_normed) {
        let mut squares = 0.0f32;
        for i in range_stepped(unit, head_dim, units) {
            let value = f32::cast_from(x[start + i]);
            squares += value * value;
        }
        factor = 1.0f32 / (sum(squares, kind.sharing) / comptime!(head_dim as f32) + eps).sqrt();
    }
    let place = sequence * table_row as usize + position * table_position as usize;
    let mut last = 1.0f32;
    if comptime!(kind.has_factors) {
        last = factors[place];
    }
    let pairs = comptime!(kind.pairs);
    for pair in range_stepped(unit, pairs, units) {
        let mut i = pair;
        let mut j = pair + pairs;
        if comptime!(kind.neighbours) {
            i = 2 * pair;
            j = 2 * pair + 1;
        }
        let a = made(x, weight, start, i, factor, limit, kind);
        let b = made(x, weight, start, j, factor, limit, kind);
        let (c, s) = (cos[place * pairs + pair], sin[place * pairs + pair]);
        out[to + i] = O::cast_from((a * c - b * s) * last);
        out[to + j] = O::cast_from((b * c + a * s) * last);
    }
    for i in range_stepped(2 * pairs + unit, head_dim, units) {
        out[to + i] = O::cast_from(made(x, weight, start, i, factor, limit, kind) * last);
    }
}
