//! What blocks without keys keep of all positions so far: a matrix for each head, position by position, in one kernel.

use burn::tensor::{DType, Tensor};
use cubecl::prelude::*;

use crate::tensors::{burn, contiguous, empty};

/// Units that share a column of a state: each keeps every so manieth of its numbers in registers.
const LANES: usize = 4;

/// Columns of a state that a cube has. Cubes know nothing of one another: a column needs no other one.
const COLUMNS: usize = 32;

/// Units of a cube.
const UNITS: usize = LANES * COLUMNS;

/// Numbers of queries, and of keys, that a cube reads at once: for as many positions as that is. With all else that a cube shares it is
/// below the 16 KiB that every device has.
const READ: usize = 1024;

/// The most positions that a cube reads at once.
const POSITIONS: usize = 8;

/// The most numbers of a key that [`recurrence`] takes.
const LONGEST: usize = 1024;

/// Where heads lie in rows, and what becomes of their states. A state `S` is `[key_dim, value_dim]`; at each position
/// `S *= decay`, `S += k ⊗ c`, and `scale · qᵀS` is what it gives.
#[derive(Clone, Copy, Debug)]
pub struct Recurrence {
    /// Heads of queries and of keys. Head `h` has those of `h / (heads / key_heads)`.
    pub key_heads: usize,
    /// Heads of values and of states.
    pub heads: usize,
    /// Numbers of a query and of a key, at most 1,024.
    pub key_dim: usize,
    /// Numbers of a value.
    pub value_dim: usize,
    /// The columns of the first numbers of queries, keys and values.
    pub first: [usize; 3],
    /// What `c` is.
    pub change: Change,
    /// Factor on what a state gives.
    pub scale: f64,
}

/// What a position adds to a state, as the outer product of its key and this, by its `strength`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change {
    /// The value: `strength · v`, of Mamba-2's state space.
    Value,
    /// What the state does not say yet: `strength · (v - kᵀS)`, of the delta rule. Queries and keys are divided by
    /// `sqrt(Σ x² + eps)` first.
    Unknown {
        /// What is added below the root.
        eps: f64,
    },
}

/// What a kernel is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Kind {
    heads: usize,
    /// Heads that share queries and keys.
    group: usize,
    key_dim: usize,
    value_dim: usize,
    /// Whether the change is what the state does not say yet.
    is_delta: bool,
    /// Whether states are given.
    has_before: bool,
}

impl Kind {
    /// Numbers of a column that a unit keeps.
    fn own(self) -> usize {
        self.key_dim.div_ceil(LANES)
    }

    /// Positions that are read at once: a power of 2.
    fn positions(self) -> usize {
        let most = (READ / (self.own() * LANES)).clamp(1, POSITIONS);
        1 << most.ilog2()
    }

    /// Cubes of a state.
    fn cubes(self) -> usize {
        self.value_dim.div_ceil(COLUMNS)
    }
}

/// Runs states over `rows` `[batch, seq, width]`, on from `before` `[batch, heads, key_dim, value_dim]`; `None` stands for zeros. `decays`
/// and `strengths` are `[batch, seq, heads]`: 1 and 0 leave a state as it is. Gives `[batch, seq, heads, value_dim]` and the states behind
/// the last position. Everything is f32.
///
/// # Panics
/// If a key has more than 1,024 numbers.
pub fn recurrence(
    rows: Tensor<3>,
    decays: Tensor<3>,
    strengths: Tensor<3>,
    before: Option<Tensor<4>>,
    of: &Recurrence,
) -> (Tensor<4>, Tensor<4>) {
    let &Recurrence { key_heads, heads, key_dim, value_dim, .. } = of;
    assert!(key_dim <= LONGEST, "states of {key_dim} rows, of which a kernel takes at most {LONGEST}");
    let [batch, seq, width] = rows.dims();
    let shape = [batch, heads, key_dim, value_dim];
    if batch * seq * heads * key_dim * value_dim == 0 {
        let zeros = |shape: [usize; 4]| Tensor::zeros(shape, (&rows.device(), DType::F32));
        return (zeros([batch, seq, heads, value_dim]), before.unwrap_or_else(|| zeros(shape)));
    }
    let [rows, decays, strengths] = [rows, decays, strengths].map(contiguous);
    let (out, after) = (empty(&rows, [batch, seq, heads, value_dim], DType::F32), empty(&rows, shape, DType::F32));
    let (is_delta, eps) = match of.change {
        Change::Value => (false, 0.0),
        Change::Unknown { eps } => (true, eps),
    };
    let has_before = before.is_some();
    let kind = Kind { heads, group: heads / key_heads, key_dim, value_dim, is_delta, has_before };
    // What there is none of is not read, as in `heads.rs`.
    let before = before.map_or_else(|| rows.clone(), contiguous);
    let client = rows.client.clone();
    let count = CubeCount::Static((heads * kind.cubes()) as u32, batch as u32, 1);
    let [queries, keys, values] = of.first.map(|first| first as u32);
    // SAFETY: a cube reads heads of its own row's positions and writes columns of its own state, all of them within their bounds.
    unsafe {
        run_states::launch_unchecked(
            &client,
            count,
            CubeDim::new_2d(LANES as u32, COLUMNS as u32),
            rows.into_buffer_arg(),
            decays.into_buffer_arg(),
            strengths.into_buffer_arg(),
            before.into_buffer_arg(),
            out.clone().into_buffer_arg(),
            after.clone().into_buffer_arg(),
            seq as u32,
            width as u32,
            queries,
            keys,
            values,
            eps as f32,
            of.scale as f32,
            kind,
        );
    }
    (burn(out), burn(after))
}

/// The sum of what the units of a column have, in their order.
#[cube]
fn of_column(parts: &Shared<[f32]>, start: usize) -> f32 {
    let mut total = parts[start];
    #[unroll]
    for lane in 1..LANES {
        total += parts[start + lane];
    }
    total
}

/// A cube has some columns of one state. It reads some positions at once, takes them one by one, and writes what they give.
///
/// The units of a column add up their parts of `kᵀS` at each position, for which all wait once, and those of `qᵀS` behind the last of
/// the positions that were read.
#[cube(launch_unchecked)]
fn run_states(
    rows: &[f32],
    decays: &[f32],
    strengths: &[f32],
    before: &[f32],
    out: &mut [f32],
    after: &mut [f32],
    seq: u32,
    width: u32,
    of_queries: u32,
    of_keys: u32,
    of_values: u32,
    eps: f32,
    scale: f32,
    #[comptime] kind: Kind,
) {
    let own = comptime!(kind.own());
    let padded = comptime!(kind.own() * LANES);
    let positions = comptime!(kind.positions());
    let (key_dim, value_dim) = comptime!((kind.key_dim, kind.value_dim));
    let heads = comptime!(kind.heads);
    let cubes = comptime!(kind.cubes());
    let (seq, width) = (seq as usize, width as usize);
    let lane = UNIT_POS_X as usize;
    let place = UNIT_POS_Y as usize;
    let unit = place * LANES + lane;
    let sequence = CUBE_POS_Y as usize;
    let head = CUBE_POS_X as usize / cubes;
    let first = CUBE_POS_X as usize % cubes * COLUMNS;
    let column = first + place;
    let of_head = head / comptime!(kind.group) * key_dim;
    let of_state = (sequence * heads + head) * key_dim * value_dim + column;

    // Queries and keys, of each position one behind the other.
    let mut both = Shared::<[f32]>::new_slice(comptime!(2 * positions * padded));
    let mut of_position = Shared::<[f32]>::new_slice(comptime!(2 * positions));
    let mut wanted = Shared::<[f32]>::new_slice(comptime!(positions * COLUMNS));
    let mut known = Shared::<[f32]>::new_slice(comptime!(2 * UNITS));
    let mut given = Shared::<[f32]>::new_slice(comptime!(positions * UNITS));
    let mut lengths = Shared::<[f32]>::new_slice(comptime!(2 * positions));

    let mut state = Array::<f32>::new(own);
    let mut key = Array::<f32>::new(own);
    #[unroll]
    for i in 0..own {
        let row = i * LANES + lane;
        state[i] = 0.0f32;
        if comptime!(kind.has_before) && row < key_dim && column < value_dim {
            state[i] = before[of_state + row * value_dim];
        }
    }
    for run in 0..seq.div_ceil(positions) {
        let start = run * positions;
        let count = min(positions, seq - start);
        let from = sequence * seq + start;
        for at in range_stepped(unit, comptime!(2 * positions * padded), UNITS) {
            let (vector, i) = (at / padded, at % padded);
            let position = vector / 2;
            let mut value = 0.0f32;
            if position < count && i < key_dim {
                let mut column = of_queries as usize;
                if vector % 2 == 1 {
                    column = of_keys as usize;
                }
                value = rows[(from + position) * width + column + of_head + i];
            }
            both[at] = value;
        }
        for at in range_stepped(unit, comptime!(positions * COLUMNS), UNITS) {
            let (position, column) = (at / COLUMNS, first + at % COLUMNS);
            let mut value = 0.0f32;
            if position < count && column < value_dim {
                value = rows[(from + position) * width + of_values as usize + head * value_dim + column];
            }
            wanted[at] = value;
        }
        if unit < count {
            let at = (from + unit) * heads + head;
            of_position[unit] = decays[at];
            of_position[positions + unit] = strengths[at];
        }
        sync_cube();
        if comptime!(kind.is_delta) {
            // As many units for each query and key sum up its squares, and the first of them what those have found.
            let share = comptime!(UNITS / (2 * positions));
            let (vector, part) = (unit / share, unit % share);
            let mut squares = 0.0f32;
            for i in range_stepped(part, padded, share) {
                let value = both[vector * padded + i];
                squares += value * value;
            }
            known[unit] = squares;
            sync_cube();
            if part == 0 {
                let mut total = 0.0f32;
                for other in 0..share {
                    total += known[unit + other];
                }
                lengths[vector] = 1.0f32 / (total + eps).sqrt();
            }
            sync_cube();
        }
        for position in 0..count {
            let queries = 2 * position * padded + lane;
            let keys = queries + padded;
            let decay = of_position[position];
            let strength = of_position[positions + position];
            let value = wanted[position * COLUMNS + place];
            let mut sum = 0.0f32;
            if comptime!(kind.is_delta) {
                // Units that are ahead by a position write elsewhere than where the others read.
                let side = position % 2 * UNITS;
                let mut part = 0.0f32;
                #[unroll]
                for i in 0..own {
                    key[i] = both[keys + i * LANES];
                    state[i] *= decay;
                    part += state[i] * key[i];
                }
                known[side + unit] = part;
                sync_cube();
                let length = lengths[2 * position + 1];
                let change = (value - of_column(&known, side + place * LANES) * length) * strength * length;
                #[unroll]
                for i in 0..own {
                    state[i] += key[i] * change;
                    sum += state[i] * both[queries + i * LANES];
                }
            } else {
                let change = value * strength;
                #[unroll]
                for i in 0..own {
                    state[i] = state[i] * decay + both[keys + i * LANES] * change;
                    sum += state[i] * both[queries + i * LANES];
                }
            }
            given[position * UNITS + unit] = sum;
        }
        sync_cube();
        for at in range_stepped(unit, count * COLUMNS, UNITS) {
            let (position, column) = (at / COLUMNS, first + at % COLUMNS);
            let mut sum = of_column(&given, at * LANES) * scale;
            if comptime!(kind.is_delta) {
                sum *= lengths[2 * position];
            }
            if column < value_dim {
                out[((from + position) * heads + head) * value_dim + column] = sum;
            }
        }
    }
    #[unroll]
    for i in 0..own {
        let row = i * LANES + lane;
        if row < key_dim && column < value_dim {
            after[of_state + row * value_dim] = state[i];
        }
    }
}
