//! Every kernel against the same formula in f64, on a GPU or a software adapter that wgpu finds.

#![cfg(feature = "wgpu")]
#![allow(clippy::print_stderr)] // what was skipped

use burn::tensor::{Bool, DType, Device, DeviceType, Tensor, TensorData};

use judge_gpu::*;
use judge_kernels::functions::{Activation, NormKind, Pairs};

/// The first device that wgpu lists; `None`, said so, where there is none.
fn device() -> Option<Device> {
    let device = Device::enumerate(DeviceType::Wgpu).into_vec().into_iter().next();
    if device.is_none() {
        eprintln!("skipped: wgpu finds no GPU and no software adapter");
    }
    device
}

/// Numbers between -1 and 1 of which none is like another.
fn numbers(count: usize, seed: u64) -> Vec<f32> {
    let one = |i: usize| {
        let bits =
            (i as u64 + 1 + (seed << 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_mul(0xD1B5_4A32_D192_ED03);
        (bits >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..count).map(one).collect()
}

fn tensor<const D: usize>(values: &[f32], shape: [usize; D], device: &Device) -> Tensor<D> {
    Tensor::from_data(TensorData::new(values.to_vec(), shape), device)
}

fn host<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_to_vec().unwrap()
}

/// Both are numbers within 2e-6 of one another, relative to 1 or to what is expected.
#[track_caller]
fn close(found: &[f32], expected: &[f64], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (place, (&found, &expected)) in found.iter().zip(expected).enumerate() {
        let error = (f64::from(found) - expected).abs() / expected.abs().max(1.0);
        assert!(error <= 2e-6, "{what}: number {place} is {found}, not {expected}");
    }
}

#[test]
fn norms_of_rows() {
    let Some(device) = device() else { return };
    for (rows, width) in [(1, 1), (3, 7), (5, 64), (4, 129), (70, 576), (2, 4096)] {
        let (x, weight) = (numbers(rows * width, 1), numbers(2 * width, 2));
        for kind in [NormKind::RmsNorm, NormKind::LayerNorm] {
            for weights in 1..3 {
                let given = tensor(&weight[..weights * width], [weights * width], &device);
                let found = host(norm(kind, tensor(&x, [rows, width], &device), given, 1e-5, DType::F32));
                let expected = x.chunks(width).flat_map(|row| {
                    let mean = match kind {
                        NormKind::RmsNorm => 0.0,
                        NormKind::LayerNorm => row.iter().map(|&x| f64::from(x)).sum::<f64>() / width as f64,
                    };
                    let square = row.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum::<f64>() / width as f64;
                    let weight = &weight;
                    row.iter().enumerate().map(move |(i, &x)| {
                        let value = (f64::from(x) - mean) / (square + 1e-5).sqrt() * f64::from(weight[i]);
                        if weights > 1 { value + f64::from(weight[width + i]) } else { value }
                    })
                });
                close(&found, &expected.collect::<Vec<_>>(), &format!("{kind:?}, {weights}, {rows} x {width}"));
            }
        }
    }
}

#[test]
fn heads_with_every_part() {
    let Some(device) = device() else { return };
    let (batch, seq, n_heads, first, step) = (2, 5, 4, 4, 20);
    let width = first + n_heads * step + 3;
    let x = numbers(batch * seq * width, 3);
    for (head_dim, pairs) in [(16, 8), (18, 6), (20, 0)] {
        for neighbours in [false, true] {
            for (table_rows, table_positions) in [(1, seq), (batch, seq), (batch, 1)] {
                let places = table_rows * table_positions;
                let angles: Vec<f32> = numbers(places * pairs, 4).iter().map(|x| 3.0 * x).collect();
                let factors = numbers(places, 5);
                let weight = numbers(head_dim, 6);
                let shape = [table_rows, table_positions, 1, pairs];
                let table = |f: fn(f32) -> f32| {
                    tensor(&angles.iter().map(|&angle| f(angle)).collect::<Vec<_>>(), shape, &device)
                };
                let rotation = (pairs > 0).then(|| Rotation {
                    cos: table(f32::cos),
                    sin: table(f32::sin),
                    pairs: if neighbours { Pairs::Neighbours } else { Pairs::Halves },
                    factors: neighbours.then(|| tensor(&factors, [table_rows, table_positions, 1, 1], &device)),
                });
                let norm =
                    if neighbours { HeadNorm::Plain } else { HeadNorm::Weighted(tensor(&weight, [head_dim], &device)) };
                let limit = neighbours.then_some(0.8);
                let group = if neighbours { 2 } else { 1 };
                let of = Heads { first, step, heads: n_heads, group, head_dim, norm, eps: 1e-6, limit, rotation };
                let found = heads(tensor(&x, [batch, seq, width], &device), &of, DType::F32);
                assert_eq!(found.dims(), [n_heads / group, batch, group, seq, head_dim]);
                let mut expected = Vec::new();
                for at in 0..batch * n_heads * seq {
                    let (s, g, b, outer) =
                        (at % seq, at / seq % group, at / seq / group % batch, at / seq / group / batch);
                    let h = outer * group + g;
                    let start = (b * seq + s) * width + first + h * step;
                    let row: Vec<f64> = x[start..start + head_dim].iter().map(|&x| f64::from(x)).collect();
                    let square = row.iter().map(|x| x * x).sum::<f64>() / head_dim as f64;
                    let normed: Vec<f64> = row
                        .iter()
                        .enumerate()
                        .map(|(i, x)| {
                            let value = x / (square + 1e-6).sqrt();
                            let value = if neighbours { value } else { value * f64::from(weight[i]) };
                            limit.map_or(value, |limit| value.clamp(-limit, limit))
                        })
                        .collect();
                    let place =
                        if table_rows > 1 { b * table_positions } else { 0 } + if table_positions > 1 { s } else { 0 };
                    let mut turned = normed.clone();
                    for pair in 0..pairs {
                        let (i, j) = if neighbours { (2 * pair, 2 * pair + 1) } else { (pair, pair + pairs) };
                        let angle = angles[place * pairs + pair];
                        let (c, s) = (f64::from(angle.cos()), f64::from(angle.sin()));
                        turned[i] = normed[i] * c - normed[j] * s;
                        turned[j] = normed[j] * c + normed[i] * s;
                    }
                    let factor = if neighbours && pairs > 0 { f64::from(factors[place]) } else { 1.0 };
                    expected.extend(turned.into_iter().map(|x| x * factor));
                }
                close(
                    &host(found),
                    &expected,
                    &format!("{head_dim}, {pairs} pairs, neighbours {neighbours}, {table_rows} x {table_positions}"),
                );
            }
        }
    }
}

#[test]
fn gates() {
    let Some(device) = device() else { return };
    let (rows, width) = (3, 37);
    let x: Vec<f32> = numbers(rows * 2 * width, 7).iter().map(|x| 6.0 * x).collect();
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    let phi = |x: f64| 0.5 * (1.0 + libm_erf(x / std::f64::consts::SQRT_2));
    let all = [
        Activation::Silu,
        Activation::Gelu,
        Activation::GeluTanh,
        Activation::Relu,
        Activation::ReluSquared,
        Activation::ClampedSwish { alpha: 1.7, limit: 4.0 },
    ];
    for activation in all {
        let f = |g: f64| match activation {
            Activation::Silu => g * sigmoid(g),
            Activation::Gelu => g * phi(g),
            Activation::GeluTanh => {
                0.5 * g * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (g + 0.044_715 * g.powi(3))).tanh())
            }
            Activation::Relu => g.max(0.0),
            Activation::ReluSquared => g.max(0.0).powi(2),
            Activation::ClampedSwish { alpha, limit } => {
                let g = g.min(f64::from(limit));
                g * sigmoid(f64::from(alpha) * g)
            }
        };
        let up = |up: f64| match activation {
            Activation::ClampedSwish { limit, .. } => up.clamp(f64::from(-limit), f64::from(limit)) + 1.0,
            _ => up,
        };
        let found = host(gate(tensor(&x, [1, rows, 2 * width], &device), width, activation, DType::F32));
        let expected = x.chunks(2 * width).flat_map(|row| {
            (0..width).map(|i| f(f64::from(row[i])) * up(f64::from(row[width + i]))).collect::<Vec<_>>()
        });
        close(&found, &expected.collect::<Vec<_>>(), &format!("{activation:?}, gated"));
        let found = host(gate(tensor(&x, [1, 2 * rows, width], &device), width, activation, DType::F32));
        close(&found, &x.iter().map(|&x| f(f64::from(x))).collect::<Vec<_>>(), &format!("{activation:?}"));
    }
}

/// The error function by its series, which converges for all numbers of the test.
fn libm_erf(x: f64) -> f64 {
    let (mut term, mut sum) = (x, x);
    for n in 1..200 {
        term *= -x * x / n as f64;
        sum += term / (2 * n + 1) as f64;
    }
    2.0 / std::f64::consts::PI.sqrt() * sum
}

#[test]
fn weights_and_entropies() {
    let Some(device) = device() else { return };
    let (batch, n_kv_heads, group) = (3, 2, 3);
    let heads = batch * n_kv_heads;
    for (seq, keys) in [(1, 1), (1, 150), (5, 5), (4, 9), (80, 80)] {
        let before = keys - seq;
        let scores: Vec<f32> = numbers(heads * group * seq * keys, 8).iter().map(|x| 30.0 * x).collect();
        let sinks = numbers(n_kv_heads * group, 9);
        for case in 0..8 {
            let (soft_cap, masked, sunk) = ((case & 1 > 0).then_some(5.0), case & 2 > 0, case & 4 > 0);
            // A query sees its own position, and every third key before it.
            let is_hidden = |a: usize, q: usize, k: usize| k != before + q && !(k + a).is_multiple_of(3);
            let many = if case & 1 > 0 { heads } else { 1 };
            let mask: Vec<bool> = (0..many)
                .flat_map(|a| (0..seq).flat_map(move |q| (0..keys).map(move |k| is_hidden(a, q, k))))
                .collect();
            let mask = Tensor::<4, Bool>::from_data(TensorData::new(mask, [many, 1, seq, keys]), &device);
            let of_sinks = tensor(&sinks, [n_kv_heads * group], &device);
            let with = Softmax {
                scale: 0.4,
                soft_cap,
                hidden: masked.then_some(&mask),
                sinks: sunk.then_some(&of_sinks),
                ..Softmax::plain(batch, group, seq, keys)
            };
            let given = || tensor(&scores, [heads, group * seq, keys], &device);
            let weights = host(softmax(given(), with, DType::F32));
            let entropies = host(entropy(given(), with));
            let (mut expected, mut of_rows) = (Vec::new(), Vec::new());
            for (row, scores) in scores.chunks(keys).enumerate() {
                let (query, head) = (row % seq, row / seq / group);
                let sees =
                    |k: usize| k <= before + query && !(masked && is_hidden(if many > 1 { head } else { 0 }, query, k));
                let score = |k: usize| {
                    let score = 0.4 * f64::from(scores[k]);
                    soft_cap.map_or(score, |cap| cap * (score / cap).tanh())
                };
                let sink = f64::from(sinks[head / batch * group + row / seq % group]);
                let total = (0..keys).filter(|&k| sees(k)).map(|k| score(k).exp()).sum::<f64>()
                    + if sunk { sink.exp() } else { 0.0 };
                let weights: Vec<f64> = (0..keys).map(|k| if sees(k) { score(k).exp() / total } else { 0.0 }).collect();
                of_rows.push(weights.iter().filter(|&&p| p > 0.0).map(|p| -p * p.ln()).sum());
                expected.extend(weights);
            }
            // Heads and rows that are given alone get what they get among all.
            let some = given().narrow(0, heads - 1, 1).narrow(1, 1.min(group * seq - 1), 1);
            let alone = Softmax { first_head: heads - 1, first_row: 1.min(group * seq - 1), ..with };
            let start = ((heads - 1) * group * seq + alone.first_row) * keys;
            assert_eq!(host(softmax(some, alone, DType::F32)), weights[start..start + keys]);
            close(&weights, &expected, &format!("weights of {seq} x {keys}, case {case}"));
            close(&entropies, &of_rows, &format!("entropies of {seq} x {keys}, case {case}"));
        }
    }
}

#[test]
fn attention_mixes_values() {
    let Some(device) = device() else { return };
    let (batch, n_kv_heads, group, seq, head_dim) = (3, 2, 3, 4, 8);
    let n_heads = n_kv_heads * group;
    let q = numbers(batch * n_heads * seq * head_dim, 13);
    let queries = || tensor::<5>(&q, [n_kv_heads, batch, group, seq, head_dim], &device);
    // Some keys are those of all rows of the batch, and come before the rows' own.
    for (common, own) in [(0, 7), (3, 4), (5, 9)] {
        let keys = common + own;
        let with = Softmax { scale: 1.5, ..Softmax::plain(batch, group, seq, keys) };
        let drawn = |seed| {
            [numbers(n_kv_heads * common * head_dim, seed), numbers(n_kv_heads * batch * own * head_dim, seed + 1)]
        };
        let (k, v) = (drawn(14), drawn(21));
        let of_keys = |[of_all, of_rows]: &[Vec<f32>; 2]| {
            // Keys as a cache has them: some columns of more, which are not copied.
            let own_keys = tensor::<4>(of_rows, [n_kv_heads, batch, own, head_dim], &device);
            let more = Tensor::zeros([n_kv_heads, batch, 3, head_dim], &device);
            let own_keys = Tensor::cat(vec![own_keys, more], 2).narrow(2, 0, own);
            let of_all = (common > 0).then(|| tensor::<4>(of_all, [n_kv_heads, 1, common, head_dim], &device));
            of_all.into_iter().chain([own_keys]).collect::<Vec<_>>()
        };
        let found = attention(queries(), &of_keys(&k), &of_keys(&v), with, Products::default());
        assert_eq!(found.dims(), queries().dims());
        let entropies = attention_entropy(queries(), &of_keys(&k), with, Products::default());
        assert_eq!(entropies.dims(), [batch, seq, n_heads]);
        let (mut expected, mut of_rows) = (Vec::new(), vec![0.0; batch * seq * n_heads]);
        let wide = |x: &[f32]| x.iter().map(|&x| f64::from(x)).collect::<Vec<_>>();
        for (at, query) in q.chunks(head_dim).enumerate() {
            let (s, g, b, kv) = (at % seq, at / seq % group, at / seq / group % batch, at / seq / group / batch);
            let row = |x: &[Vec<f32>; 2], key: usize| match key.checked_sub(common) {
                None => wide(&x[0][(kv * common + key) * head_dim..][..head_dim]),
                Some(key) => wide(&x[1][((kv * batch + b) * own + key) * head_dim..][..head_dim]),
            };
            let score = |key| row(&k, key).iter().zip(wide(query)).map(|(k, q)| k * q).sum::<f64>() * 1.5;
            let seen = keys - seq + s + 1;
            let total: f64 = (0..seen).map(|key| score(key).exp()).sum();
            let weights: Vec<f64> = (0..seen).map(|key| score(key).exp() / total).collect();
            of_rows[(b * seq + s) * n_heads + kv * group + g] = weights.iter().map(|p| -p * p.ln()).sum();
            expected.extend((0..head_dim).map(|i| (0..seen).map(|key| weights[key] * row(&v, key)[i]).sum::<f64>()));
        }
        close(&host(found), &expected, &format!("attention to {common} and {own} keys"));
        close(&host(entropies), &of_rows, &format!("entropies of attention to {common} and {own} keys"));
    }
}

#[test]
fn products_add_and_scale() {
    let Some(device) = device() else { return };
    let (m, k, n) = (5, 19, 6);
    let (x, w, c) = (numbers(m * k, 16), numbers(n * k, 17), numbers(m * n, 18));
    let dot = |i: usize, j: usize| (0..k).map(|l| f64::from(x[i * k + l]) * f64::from(w[j * k + l])).sum::<f64>();
    let of = |f: &dyn Fn(usize, usize) -> f64| (0..m * n).map(|at| f(at / n, at % n)).collect::<Vec<_>>();
    let (x, w, c) = (tensor(&x, [m, k], &device), tensor(&w, [n, k], &device), tensor(&c, [m, n], &device));
    let plain = product(x.clone(), w.clone(), None, None, 1.0, DType::F32, Products::default());
    close(&host(plain), &of(&dot), "a product");
    let onto = host(c.clone());
    let sum = product(x.clone(), w.clone(), Some(c.clone()), None, 0.5, DType::F32, Products::default());
    close(&host(sum), &of(&|i, j| f64::from(onto[i * n + j]) + 0.5 * dot(i, j)), "a sum");
    let (b, bias) = (numbers(n, 19), tensor(&numbers(n, 19), [n], &device));
    let biased = product(x.clone(), w.clone(), None, Some(bias.clone()), 1.0, DType::F32, Products::default());
    close(&host(biased), &of(&|i, j| dot(i, j) + f64::from(b[j])), "a bias");
    let both = product(x, w, Some(c), Some(bias), 0.5, DType::F32, Products::default());
    close(&host(both), &of(&|i, j| f64::from(onto[i * n + j]) + 0.5 * dot(i, j) + f64::from(b[j])), "a sum and a bias");
}

/// A recurrence by its formula in f64: what the states give, and the states behind the last position. `rows` are `[batch, seq, width]`.
fn recurred(
    of: &Recurrence,
    [batch, seq, width]: [usize; 3],
    [rows, decays, strengths]: [&[f32]; 3],
    before: Option<&[f32]>,
) -> [Vec<f64>; 2] {
    let &Recurrence { key_heads, heads, key_dim, value_dim, first: [of_queries, of_keys, of_values], .. } = of;
    let (mut given, mut states) = (vec![0.0; batch * seq * heads * value_dim], Vec::new());
    for sequence in 0..batch * heads {
        let (b, h) = (sequence / heads, sequence % heads);
        let size = key_dim * value_dim;
        let mut state: Vec<f64> = match before {
            Some(before) => before[sequence * size..][..size].iter().map(|&x| f64::from(x)).collect(),
            None => vec![0.0; size],
        };
        for at in b * seq..(b + 1) * seq {
            let part = |first: usize, head: usize, dim: usize| -> Vec<f64> {
                rows[at * width + first + head * dim..][..dim].iter().map(|&x| f64::from(x)).collect()
            };
            let of_key_head = |first: usize| -> Vec<f64> {
                let x = part(first, h / (heads / key_heads), key_dim);
                let length = match of.change {
                    Change::Value => 1.0,
                    Change::Unknown { eps } => (x.iter().map(|x| x * x).sum::<f64>() + eps).sqrt(),
                };
                x.iter().map(|x| x / length).collect()
            };
            let (query, key, value) = (of_key_head(of_queries), of_key_head(of_keys), part(of_values, h, value_dim));
            let [decay, strength] = [decays, strengths].map(|x| f64::from(x[at * heads + h]));
            state.iter_mut().for_each(|x| *x *= decay);
            for (column, value) in value.into_iter().enumerate() {
                let met = |x: &[f64], state: &[f64]| -> f64 {
                    x.iter().enumerate().map(|(row, x)| x * state[row * value_dim + column]).sum()
                };
                let known = if of.change == Change::Value { 0.0 } else { met(&key, &state) };
                let change = strength * (value - known);
                key.iter().enumerate().for_each(|(row, key)| state[row * value_dim + column] += key * change);
                given[(at * heads + h) * value_dim + column] = of.scale * met(&query, &state);
            }
        }
        states.extend(state);
    }
    [given, states]
}

/// Numbers of a recurrence: rows with other columns before and behind, decays and strengths between 0 and 1, and states.
struct Drawn {
    of: Recurrence,
    shape: [usize; 3],
    rows: Vec<f32>,
    decays: Vec<f32>,
    strengths: Vec<f32>,
    before: Vec<f32>,
}

impl Drawn {
    fn new([batch, seq]: [usize; 2], [key_heads, heads, key_dim, value_dim]: [usize; 4], change: Change) -> Self {
        // As in a delta rule, or as in a state space.
        let (d_key, d_value) = (key_heads * key_dim, heads * value_dim);
        let (first, scale) = match change {
            Change::Value => ([2 + d_value + d_key, 2 + d_value, 2], 1.0 / key_dim as f64),
            Change::Unknown { .. } => ([2, 2 + d_key, 2 + 2 * d_key], 1.0 / (key_dim as f64).sqrt()),
        };
        let width = 2 * d_key + d_value + 5;
        let of = Recurrence { key_heads, heads, key_dim, value_dim, first, change, scale };
        let shares = |seed| numbers(batch * seq * heads, seed).iter().map(|x| 0.55 + 0.45 * x).collect();
        Self {
            of,
            shape: [batch, seq, width],
            rows: numbers(batch * seq * width, 30),
            decays: shares(31),
            strengths: shares(32),
            before: numbers(batch * heads * key_dim * value_dim, 33),
        }
    }

    fn expected(&self, is_continued: bool) -> [Vec<f64>; 2] {
        let numbers = [&self.rows, &self.decays, &self.strengths].map(Vec::as_slice);
        recurred(&self.of, self.shape, numbers, is_continued.then_some(&self.before))
    }

    /// Positions from one on, behind these states, of the kernel.
    fn run(&self, (start, seq): (usize, usize), before: Option<Tensor<4>>, device: &Device) -> (Tensor<4>, Tensor<4>) {
        let ([batch, all, width], heads) = (self.shape, self.of.heads);
        let part = |x: &[f32], width: usize| {
            tensor(x, [batch, all, width], device).slice([0..batch, start..start + seq, 0..width])
        };
        let [decays, strengths] = [&self.decays, &self.strengths].map(|x| part(x, heads));
        recurrence(part(&self.rows, width), decays, strengths, before, &self.of)
    }

    fn before(&self, device: &Device) -> Tensor<4> {
        let Recurrence { heads, key_dim, value_dim, .. } = self.of;
        tensor(&self.before, [self.shape[0], heads, key_dim, value_dim], device)
    }
}

const CHANGES: [Change; 2] = [Change::Value, Change::Unknown { eps: 1e-6 }];

#[test]
fn states_go_from_position_to_position() {
    let Some(device) = device() else { return };
    // Key heads, heads, and numbers of a key and of a value: fewer and more than a cube reads at once or has columns, and odd ones.
    for (rows, sizes) in [
        ([1, 1], [1, 1, 1, 1]),
        ([2, 7], [2, 6, 5, 3]),
        ([3, 8], [1, 1, 8, 33]),
        ([1, 29], [2, 2, 33, 16]),
        ([2, 21], [1, 2, 128, 40]),
        ([1, 11], [1, 1, 258, 2]),
    ] {
        for change in CHANGES {
            let drawn = Drawn::new(rows, sizes, change);
            let what = format!("{rows:?}, {sizes:?}, {change:?}");
            let seq = rows[1];
            let [given, states] = drawn.expected(false);
            let (found, after) = drawn.run((0, seq), None, &device);
            assert_eq!(found.dims(), [rows[0], seq, sizes[1], sizes[3]]);
            close(&host(found), &given, &what);
            close(&host(after), &states, &format!("states of {what}"));
            let [given, states] = drawn.expected(true);
            let (found, after) = drawn.run((0, seq), Some(drawn.before(&device)), &device);
            close(&host(found), &given, &format!("{what}, continued"));
            close(&host(after), &states, &format!("states of {what}, continued"));
            // In two runs, also of which the second starts where no cube does that reads all at once.
            for cut in [seq / 2, seq - 1] {
                let (first, between) = drawn.run((0, cut), Some(drawn.before(&device)), &device);
                let (second, after) = drawn.run((cut, seq - cut), Some(between), &device);
                close(&host(Tensor::cat(vec![first, second], 1)), &given, &format!("{what}, cut at {cut}"));
                close(&host(after), &states, &format!("states of {what}, cut at {cut}"));
            }
        }
    }
}

#[test]
fn positions_that_are_not_there_leave_states_alone() {
    let Some(device) = device() else { return };
    for change in CHANGES {
        let mut drawn = Drawn::new([2, 13], [1, 2, 12, 6], change);
        let (_, short) = drawn.run((0, 9), Some(drawn.before(&device)), &device);
        // Of the second sequence alone.
        for at in (13 + 9) * 2..2 * 13 * 2 {
            (drawn.decays[at], drawn.strengths[at]) = (1.0, 0.0);
        }
        let (given, padded) = drawn.run((0, 13), Some(drawn.before(&device)), &device);
        let [expected, states] = drawn.expected(true);
        close(&host(given), &expected, "with padding");
        close(&host(padded.clone()), &states, "states behind padding");
        assert_eq!(host(padded.narrow(0, 1, 1)), host(short.narrow(0, 1, 1)), "{change:?}");
    }
}

#[test]
fn states_of_nothing() {
    let Some(device) = device() else { return };
    for change in CHANGES {
        let drawn = Drawn::new([2, 3], [1, 2, 5, 4], change);
        let (given, states) = drawn.run((0, 0), Some(drawn.before(&device)), &device);
        assert_eq!((given.dims(), host(states)), ([2, 0, 2, 4], drawn.before.clone()));
        let (_, states) = drawn.run((0, 0), None, &device);
        assert_eq!(host(states), [0.0; 2 * 2 * 5 * 4]);
        let none = Drawn::new([0, 3], [1, 2, 5, 4], change);
        let rows = |width| Tensor::zeros([0, 3, width], &device);
        let (given, states) = recurrence(rows(none.shape[2]), rows(2), rows(2), None, &none.of);
        assert_eq!((given.dims(), states.dims()), ([0, 3, 2, 4], [0, 2, 5, 4]));
    }
}

#[test]
fn what_is_not_a_number_stays_in_its_states() {
    let Some(device) = device() else { return };
    let (seq, sizes) = (20, [2, 2, 6, 35]);
    for change in CHANGES {
        let is_none = |column: usize| {
            let mut drawn = Drawn::new([1, seq], sizes, change);
            drawn.rows[9 * drawn.shape[2] + column] = f32::NAN;
            let (given, states) = drawn.run((0, seq), None, &device);
            [given.swap_dims(1, 2), states].map(|x| host(x).iter().map(|x| x.is_nan()).collect::<Vec<_>>())
        };
        let of = Drawn::new([1, seq], sizes, change).of;
        // A number of a value makes none of its column, from its position on; [heads, seq, value_dim] and [heads, key_dim, value_dim].
        let [given, states] = is_none(of.first[2] + 35 + 33);
        let at = |i: usize| (i / 35 / seq, i / 35 % seq, i % 35);
        assert!(given.iter().enumerate().all(|(i, &none)| none == matches!(at(i), (1, 9.., 33))), "{change:?}");
        assert!(states.iter().enumerate().all(|(i, &none)| none == (i / 35 / 6 == 1 && i % 35 == 33)), "{change:?}");
        // A number of a key that of its head, and one of a query nothing but what the state gives there.
        let [given, states] = is_none(of.first[1] + 3);
        assert!(given.iter().enumerate().all(|(i, &none)| none == matches!(at(i), (0, 9.., _))), "{change:?}");
        let is_hit = |row: usize| row / 6 == 0 && (row == 3 || change != Change::Value);
        assert!(states.iter().enumerate().all(|(i, &none)| none == is_hit(i / 35)), "{change:?}");
        let [given, states] = is_none(of.first[0] + 6);
        assert!(given.iter().enumerate().all(|(i, &none)| none == matches!(at(i), (1, 9, _))), "{change:?}");
        assert!(states.iter().all(|none| !none), "{change:?}");
    }
}

#[test]
fn convolutions_of_channels() {
    let Some(device) = device() else { return };
    for ([batch, seq, channels], taps) in [([1, 1, 1], 2), ([2, 9, 37], 4), ([3, 2, 70], 3), ([2, 0, 5], 3)] {
        let all = taps - 1 + seq;
        let [x, weights, bias] = [(batch * all * channels, 34), (channels * taps, 35), (channels, 36)]
            .map(|(count, seed)| numbers(count, seed));
        for (is_biased, is_activated) in [(false, false), (false, true), (true, false), (true, true)] {
            let rows = tensor(&x, [batch, all, channels], &device);
            let given = is_biased.then(|| tensor(&bias, [channels], &device));
            let found = conv(rows, tensor(&weights, [channels * taps], &device), given, is_activated);
            assert_eq!(found.dims(), [batch, seq, channels]);
            let expected = (0..batch * seq * channels).map(|at| {
                let (b, t, c) = (at / channels / seq, at / channels % seq, at % channels);
                let tap = |k: usize| f64::from(weights[c * taps + k]) * f64::from(x[(b * all + t + k) * channels + c]);
                let sum = (0..taps).map(tap).sum::<f64>() + if is_biased { f64::from(bias[c]) } else { 0.0 };
                if is_activated { sum / (1.0 + (-sum).exp()) } else { sum }
            });
            close(&host(found), &expected.collect::<Vec<_>>(), &format!("{batch} x {seq} x {channels}, {taps} taps"));
        }
        let nothing = Tensor::full([batch, all, channels], f32::NAN, &device);
        let found = conv(nothing, tensor(&weights, [channels * taps], &device), None, true);
        assert!(host(found).iter().all(|x| x.is_nan()));
    }
}

#[test]
fn what_is_not_a_number_stays_none() {
    let Some(device) = device() else { return };
    let mut values = numbers(64, 10);
    values[5] = f32::NAN;
    let row = || tensor(&values, [1, 1, 64], &device);
    assert!(
        host(norm(NormKind::RmsNorm, row(), tensor(&[2.0; 64], [64], &device), 1e-5, DType::F32))
            .iter()
            .all(|x| x.is_nan())
    );
    for activation in [Activation::Silu, Activation::Relu, Activation::ClampedSwish { alpha: 1.7, limit: 1.0 }] {
        let found = host(gate(row(), 64, activation, DType::F32));
        assert!(found[5].is_nan() && !found[6].is_nan(), "{activation:?}");
    }
    let of = Heads {
        first: 0,
        step: 8,
        heads: 8,
        group: 1,
        head_dim: 8,
        norm: HeadNorm::Absent,
        eps: 0.0,
        limit: Some(0.5),
        rotation: None,
    };
    let found = host(heads(row(), &of, DType::F32));
    assert!(found[5].is_nan() && !found[6].is_nan());
    let with = Softmax::plain(1, 1, 1, 64);
    assert!(host(softmax(row(), with, DType::F32)).iter().all(|x| x.is_nan()));
    assert!(host(entropy(row(), with))[0].is_nan());
    assert!(host(add(row(), row(), 2.0))[5].is_nan());
}

#[test]
fn scalar_products_have_the_same_bits_alone() {
    let Some(device) = device() else { return };
    for (rows, others, width) in [(1, 1, 1), (3, 5, 37), (20, 4, 1000)] {
        let (x, with) = (numbers(rows * width, 19), numbers(others * width, 20));
        let found = host(dots(tensor(&x, [rows, width], &device), tensor(&with, [others, width], &device)));
        let dot = |i: usize, j: usize| {
            (0..width).map(|l| f64::from(x[i * width + l]) * f64::from(with[j * width + l])).sum::<f64>()
        };
        let size = (width as f64).sqrt();
        let expected: Vec<f64> = (0..rows * others).map(|at| dot(at / others, at % others) / size).collect();
        close(
            &found.iter().map(|x| x / size as f32).collect::<Vec<_>>(),
            &expected,
            &format!("{rows} x {others} x {width}"),
        );
        let (i, j) = (rows - 1, others - 1);
        let alone = dots(tensor(&x[i * width..], [1, width], &device), tensor(&with[j * width..], [1, width], &device));
        assert_eq!(host(alone), [found[rows * others - 1]]);
    }
}

#[test]
fn what_is_added_has_its_factor() {
    let Some(device) = device() else { return };
    let (x, y) = (numbers(300, 11), numbers(300, 12));
    let found = host(add(tensor(&x, [3, 100], &device), tensor(&y, [3, 100], &device), 0.25));
    let expected: Vec<f64> = x.iter().zip(&y).map(|(&x, &y)| f64::from(x) + 0.25 * f64::from(y)).collect();
    close(&found, &expected, "a sum");
}
