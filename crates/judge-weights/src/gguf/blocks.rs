//! The numbers that blocks of GGUF files stand for, and matrices of them.
//!
//! A row is cut into blocks of successive elements, each with its own scale. Layouts are those of
//! llama.cpp's `ggml-common.h`; `d` and `m` are f16, little-endian, `n` is a code without sign:
//!
//! ```text
//!  type   elements bytes  layout of a block                       value of element i
//!  Q8_0       32     34   d, 32 x i8 q                            d * q[i]
//!  Q4_0       32     18   d, 16 bytes q                           d * (n - 8); i < 16: low half of q[i],
//!                                                                 else high half of q[i - 16]
//!  Q4_1       32     20   d, m, 16 bytes q                        d * n + m, n as in Q4_0
//!  Q5_0       32     22   d, 4 bytes h, 16 bytes q                d * (n - 16); four bits of n as in Q4_0, bit i
//!                                                                 of h is the fifth
//!  Q5_1       32     24   d, m, 4 bytes h, 16 bytes q             d * n + m, n as in Q5_0
//!  IQ4_NL     32     18   as Q4_0                                 d * NAMED[n]
//!  MXFP4      32     17   e, 16 bytes q                           2^(e - 128) * FLOATS[n], n as in Q4_0
//!  NVFP4      64     36   4 x e4m3 e, 4 times 8 bytes q           e[i / 16] / 2 * FLOATS[n], halves as in Q4_0,
//!                                                                 but 8 and 8
//!  Q2_K      256     84   16 bytes s, 64 bytes q, d, m            d * (low half of s[i / 16]) * n - m * (high half);
//!                                                                 n: two bits of q, see `pair`
//!  Q3_K      256    110   32 bytes h, 64 q, 12 s, d               d * (sc[i / 16] - 32) * (n - 4); two bits of n as
//!                                                                 in Q2_K, bit i / 32 of h[i % 32] is the third
//!  Q4_K      256    144   d, m, 12 bytes s, 128 bytes q           d * sc[j] * n - m * mn[j], j = i / 32:
//!                                                                 half j % 2 of q[32 * (j / 2) + i % 32]
//!  Q5_K      256    176   d, m, 12 bytes s, 32 bytes h, 128 q     as Q4_K, and bit j of h[i % 32] is
//!                                                                 the fifth bit of n
//!  Q6_K      256    210   128 bytes q, 64 h, 16 x i8 sc, d        d * sc[i / 16] * (n - 32); two bits of n in h
//!                                                                 as in Q2_K, four in q, see `take_apart`
//!  IQ4_XS    256    136   d, u16 h, 4 bytes s, 128 bytes q        d * (sc[j] - 32) * NAMED[n], j = i / 32; q as in
//!                                                                 Q4_0 for each j; sc: four bits in s, two in h
//!  TQ2_0     256     66   64 bytes q, d                           d * (n - 1), n as in Q2_K
//!  TQ1_0     256     54   48 bytes q, 4 bytes q, d                d * (n - 1); n: a digit to base 3, see `ternary`
//! ```
//!
//! `sc[j]` and `mn[j]` of Q4_K and Q5_K are six bits each, see `six_bits`. The types that look numbers up in grids (IQ1, IQ2 and IQ3) are
//! in `grids.rs`. Products of a scale's parts and a code are exact in f32, so each value is rounded at most once, where a minimum is taken
//! off (or `m` is added). [`blocks`] and [`plain`] are matrices of them, and [`Order`] says where rows lie.

use judge_kernels::codes::{CodeNumbers, Coding};
use safetensors::Dtype as Stored;

use super::bits::{half, nibble};
use super::grids;
use super::kind::Kind;
use crate::codes::Coded;
use crate::convert::widen;

/// What the codes of IQ4_NL and IQ4_XS name (`kvalues_iq4nl` of llama.cpp).
const NAMED: [f32; 16] =
    [-127.0, -104.0, -83.0, -65.0, -49.0, -35.0, -22.0, -10.0, 1.0, 13.0, 25.0, 38.0, 53.0, 69.0, 89.0, 113.0];

/// Floats of 4 bits (E2M1), doubled: sign, two bits of exponent, one of fraction.
const FLOATS: [f32; 16] = [0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 0.0, -1.0, -2.0, -3.0, -4.0, -6.0, -8.0, -12.0];

/// How rows of this many elements are coded; `None` for plain numbers.
pub fn coding(kind: Kind, width: usize) -> Option<Coding> {
    let scaled = |bits, numbers, size| Coding::scaled(bits, numbers, width, size);
    let with_minima = |bits, size| Coding { has_minima: true, ..scaled(bits, CodeNumbers::Unsigned, size) };
    Some(match kind {
        Kind::F64 | Kind::F32 | Kind::F16 | Kind::BF16 => return None,
        Kind::Q8_0 | Kind::Q5_0 => scaled(8, CodeNumbers::Signed, 32),
        Kind::Q4_0 => scaled(4, CodeNumbers::Signed, 32),
        Kind::Q4_1 | Kind::Q4_K => with_minima(4, 32),
        Kind::Q5_1 | Kind::Q5_K => with_minima(8, 32),
        Kind::Q2_K => with_minima(4, 16),
        Kind::Q3_K => scaled(4, CodeNumbers::Signed, 16),
        Kind::Q6_K => scaled(8, CodeNumbers::Signed, 16),
        Kind::TQ1_0 | Kind::TQ2_0 => scaled(4, CodeNumbers::Signed, 256),
        Kind::IQ4_NL | Kind::IQ4_XS => scaled(4, CodeNumbers::Table(NAMED), 32),
        Kind::MXFP4 => scaled(4, CodeNumbers::Table(FLOATS), 32),
        Kind::NVFP4 => scaled(4, CodeNumbers::Table(FLOATS), 16),
        Kind::IQ2_XS | Kind::IQ2_S => scaled(4, CodeNumbers::Table(grids::TWO_BITS), 16),
        Kind::IQ2_XXS => scaled(4, CodeNumbers::Table(grids::TWO_BITS), 32),
        Kind::IQ3_XXS => scaled(4, CodeNumbers::Table(grids::THREE_BITS_XXS), 32),
        Kind::IQ3_S => scaled(4, CodeNumbers::Table(grids::THREE_BITS), 32),
        Kind::IQ1_S => scaled(4, CodeNumbers::Table(grids::SHIFTED), 32),
        Kind::IQ1_M => scaled(4, CodeNumbers::Table(grids::SHIFTED), 16),
    })
}

/// Two bits of 64 bytes, in two halves of 128 elements: with `u = i / 128`, `g = i % 128 / 32` and
/// `l = i % 32`, bits `2 g` and `2 g + 1` of byte `32 u + l`.
fn pair(bytes: &[u8], index: usize) -> u8 {
    bytes[32 * (index / 128) + index % 32] >> (2 * (index % 128 / 32)) & 3
}

/// Codes of 4 bits as in Q4_0: the first half of them are the low halves of the bytes.
fn halves(bytes: &[u8], codes: &mut [u8]) {
    let (low, high) = codes.split_at_mut(bytes.len());
    for ((low, high), &byte) in low.iter_mut().zip(high).zip(bytes) {
        (*low, *high) = (byte & 15, byte >> 4);
    }
}

/// Digit `place` of a byte that holds five of them (TQ1_0): the byte stands for the fraction
/// `byte / 256`, whose digits to base 3 they are.
fn ternary(byte: u8, place: u32) -> u8 {
    ((u16::from(byte.wrapping_mul(3_u8.pow(place))) * 3) >> 8) as u8
}

/// Takes one block apart: codes of its elements, scales and minima of its groups. Plain numbers have
/// no blocks and are left alone.
///
/// Where a number is taken off every code of the table above, codes here have signs.
///
/// The codes of Q6_K lie in two halves of 128 elements. With `u = i / 128`, `g = i % 128 / 32`
/// and `l = i % 32`, the low four bits are half `g / 2` of byte `64 u + 32 (g % 2) + l` of the
/// first 128, the high two those of [`pair`] of the next 64.
fn take_apart(kind: Kind, block: &[u8], codes: &mut [u8], scales: &mut [f32], minima: &mut [f32]) {
    let half = |at| half(block, at);
    match kind {
        Kind::F64 | Kind::F32 | Kind::F16 | Kind::BF16 => {}
        Kind::Q8_0 => {
            scales.fill(half(0));
            codes.copy_from_slice(&block[2..]);
        }
        Kind::Q4_0 => {
            scales.fill(half(0));
            halves(&block[2..], codes);
            // Taking 8 off is turning the highest bit round, as a code with a sign.
            codes.iter_mut().for_each(|code| *code ^= 8);
        }
        Kind::Q4_1 => {
            scales.fill(half(0));
            minima.fill(-half(2));
            halves(&block[4..], codes);
        }
        Kind::Q5_0 | Kind::Q5_1 => {
            scales.fill(half(0));
            let (fifth, off) = if kind == Kind::Q5_0 { (2, 16) } else { (4, 0) };
            if kind == Kind::Q5_1 {
                minima.fill(-half(2));
            }
            let (bits, low_bits) = block[fifth..].split_at(4);
            halves(low_bits, codes);
            for (index, code) in codes.iter_mut().enumerate() {
                *code = (*code | (bits[index / 8] >> (index % 8) & 1) << 4).wrapping_sub(off);
            }
        }
        Kind::IQ4_NL => {
            scales.fill(half(0));
            halves(&block[2..], codes);
        }
        Kind::IQ4_XS => {
            let (scale, high) = (half(0), u16::from_le_bytes([block[2], block[3]]));
            for (part, scale_of) in scales.iter_mut().enumerate() {
                let of_part = nibble(&block[4..8], part) | ((high >> (2 * part) & 3) << 4) as u8;
                *scale_of = scale * (f32::from(of_part) - 32.0);
            }
            let parts = block[8..].chunks_exact(16).zip(codes.chunks_exact_mut(32));
            parts.for_each(|(bytes, codes)| halves(bytes, codes));
        }
        Kind::MXFP4 => {
            // Half of the power of two, since the floats are doubled; below the normal numbers for 0 and 1.
            let bits = match block[0] {
                exponent @ 0..2 => 0x0020_0000 << exponent,
                exponent => u32::from(exponent - 1) << 23,
            };
            scales.fill(f32::from_bits(bits));
            halves(&block[1..], codes);
        }
        Kind::NVFP4 => {
            let (exponents, rest) = block.split_at(4);
            scales.iter_mut().zip(exponents).for_each(|(scale, &byte)| *scale = unsigned_e4m3(byte) * 0.5);
            let parts = rest.chunks_exact(8).zip(codes.chunks_exact_mut(16));
            parts.for_each(|(bytes, codes)| halves(bytes, codes));
        }
        Kind::Q2_K => {
            let (scale, minimum) = (half(80), half(82));
            for (part, &byte) in block[..16].iter().enumerate() {
                scales[part] = scale * f32::from(byte & 15);
                minima[part] = minimum * f32::from(byte >> 4);
            }
            codes.iter_mut().enumerate().for_each(|(index, code)| *code = pair(&block[16..80], index));
        }
        Kind::Q3_K => {
            let (third, parts, scale) = (&block[..32], &block[96..108], half(108));
            for (part, scale_of) in scales.iter_mut().enumerate() {
                let low = parts[part % 8] >> (4 * (part / 8)) & 15;
                let high = parts[8 + part % 4] >> (2 * (part / 4)) & 3;
                *scale_of = scale * (f32::from(low | high << 4) - 32.0);
            }
            for (index, code) in codes.iter_mut().enumerate() {
                let bit = third[index % 32] >> (index / 32) & 1;
                *code = (pair(&block[32..96], index) | bit << 2).wrapping_sub(4);
            }
        }
        Kind::Q4_K | Kind::Q5_K => {
            let (scale, minimum) = (half(0), half(2));
            let parts = &block[4..16];
            let (high_bits, low_bits) = block[16..].split_at(if kind == Kind::Q5_K { 32 } else { 0 });
            for (part, codes) in codes.chunks_exact_mut(32).enumerate() {
                let (of_scale, of_minimum) = six_bits(parts, part);
                (scales[part], minima[part]) = (scale * f32::from(of_scale), minimum * f32::from(of_minimum));
                for (place, code) in codes.iter_mut().enumerate() {
                    let low = low_bits[32 * (part / 2) + place] >> (4 * (part % 2)) & 15;
                    let high = high_bits.get(place).map_or(0, |bits| bits >> part & 1);
                    *code = low | high << 4;
                }
            }
        }
        Kind::Q6_K => {
            let (low_bits, rest) = block.split_at(128);
            let (high_bits, parts) = rest.split_at(64);
            let scale = half(208);
            scales.iter_mut().zip(parts).for_each(|(x, &part)| *x = scale * f32::from(part as i8));
            for (index, code) in codes.iter_mut().enumerate() {
                let (upper, quarter, place) = (index / 128, index % 128 / 32, index % 32);
                let low = low_bits[64 * upper + 32 * (quarter % 2) + place] >> (4 * (quarter / 2)) & 15;
                *code = (low | pair(high_bits, index) << 4).wrapping_sub(32);
            }
        }
        Kind::TQ1_0 => {
            scales.fill(half(52));
            // Digits come by place: of 32 bytes five each, of 16 bytes five each, of 4 bytes four each.
            let mut index = 0;
            for (bytes, places) in [(&block[..32], 5), (&block[32..48], 5), (&block[48..52], 4)] {
                for place in 0..places {
                    for &byte in bytes {
                        codes[index] = ternary(byte, place).wrapping_sub(1);
                        index += 1;
                    }
                }
            }
        }
        Kind::TQ2_0 => {
            scales.fill(half(64));
            codes.iter_mut().enumerate().for_each(|(index, code)| *code = pair(block, index).wrapping_sub(1));
        }
        Kind::IQ2_XXS | Kind::IQ2_XS | Kind::IQ2_S | Kind::IQ3_XXS | Kind::IQ3_S | Kind::IQ1_S | Kind::IQ1_M => {
            grids::take_apart(kind, block, codes, scales);
        }
    }
}

/// A scale of NVFP4: E4M3 without a sign, four bits of exponent with bias 7 and three of fraction. 127 is
/// 0, and the highest bit of all counts with no other value.
fn unsigned_e4m3(byte: u8) -> f32 {
    let (exponent, fraction) = (byte >> 3 & 15, f32::from(byte & 7));
    match (byte, exponent) {
        (127, _) => 0.0,
        (_, 0) => fraction / 512.0,
        _ => (1.0 + fraction / 8.0) * f32::from_bits((u32::from(exponent) + 120) << 23),
    }
}

/// Scale and minimum of part `part` of 8 parts of 32 elements, six bits each, from the 12 bytes `s`
/// that Q4_K and Q5_K pack them in:
///
/// ```text
///  part    scale                                     minimum
///  0..4    s[part], low 6 bits                       s[part + 4], low 6 bits
///  4..8    s[part + 4], low 4 bits                   s[part + 4], high 4 bits
///          and above them s[part - 4], high 2 bits   and above them s[part], high 2 bits
/// ```
fn six_bits(parts: &[u8], part: usize) -> (u8, u8) {
    match part.checked_sub(4) {
        None => (parts[part] & 63, parts[part + 4] & 63),
        Some(low) => {
            let both = parts[part + 4];
            (both & 15 | parts[low] >> 6 << 4, both >> 4 | parts[part] >> 6 << 4)
        }
    }
}

/// A matrix of plain numbers (F64, F32, F16 or BF16) in rows of `width`: a function that computes whole rows in f32 from a row on.
/// `bytes` are all rows, one behind another, as `header.rs` has located them.
pub fn plain(bytes: &[u8], kind: Kind, width: usize) -> impl Fn(usize, &mut [f32]) + Sync {
    let stored = kind.stored().unwrap_or(Stored::F32);
    move |first: usize, values: &mut [f32]| widen(stored, &bytes[first * width * kind.bytes()..], values)
}

/// A matrix whose rows of `width` are whole blocks of codes; `None` for plain numbers. `bytes` are as for [`plain`].
pub fn blocks(bytes: &[u8], kind: Kind, width: usize) -> Option<Coded<'_>> {
    Some(Coded::new(coding(kind, width)?, Vec::new(), move |coding, first, rows| {
        let (elements, of_block) = (kind.elements(), kind.bytes());
        let groups = elements * coding.n_groups / coding.width.max(1);
        let blocks = bytes[first * coding.width / elements * of_block..].chunks_exact(of_block);
        let numbers = rows.scales.chunks_exact_mut(groups).zip(rows.minima.chunks_exact_mut(groups));
        for ((codes, (scales, minima)), block) in rows.codes.chunks_exact_mut(elements).zip(numbers).zip(blocks) {
            take_apart(kind, block, codes, scales, minima);
        }
    }))
}

/// The order in which the converter put rows, or columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Of queries and keys. A rotation turns pairs of rows. In a Hugging Face folder the two rows of a pair lie half a head
    /// apart, in the file they lie side by side:
    ///
    /// ```text
    ///  row of a head, Hugging Face   0    1    2    3  | 4    5    6    7      (8 rows a head)
    ///  row of a head, in the file    0    2    4    6  | 1    3    5    7
    /// ```
    Rotated {
        /// Heads.
        heads: usize,
        /// Rows of a head, an even number.
        per_head: usize,
    },
    /// Of the value heads of a delta rule, each of which belongs to a key head: in a folder those of a key head lie together,
    /// in the file the first of every key head, then the second.
    ///
    /// ```text
    ///  value head, Hugging Face   0    1    2  | 3    4    5      (two key heads of three value heads)
    ///  value head, in the file    0    2    4  | 1    3    5
    /// ```
    Tiled {
        /// Rows before those of value heads, which are in one order everywhere.
        before: usize,
        /// Key heads.
        key_heads: usize,
        /// Value heads of a key head.
        per_key: usize,
        /// Rows of a value head.
        width: usize,
    },
}

impl Order {
    /// Where a row of a Hugging Face folder is in the file.
    pub fn place(self, row: usize) -> usize {
        match self {
            Self::Rotated { per_head, .. } => {
                let (head, within) = (row / per_head, row % per_head);
                let (half, pair) = (within / (per_head / 2), within % (per_head / 2));
                head * per_head + 2 * pair + half
            }
            Self::Tiled { before, key_heads, per_key, width } => {
                let Some(row) = row.checked_sub(before) else { return row };
                let (head, within) = (row / width, row % width);
                before + ((head % per_key) * key_heads + head / per_key) * width + within
            }
        }
    }

    /// Whether it has a place for each of so many rows.
    pub fn fits(self, rows: usize) -> bool {
        match self {
            Self::Rotated { heads, per_head } => per_head.is_multiple_of(2) && rows == heads * per_head,
            Self::Tiled { before, key_heads, per_key, width } => rows == before + key_heads * per_key * width,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use safetensors::SafeTensors;

    use super::*;

    #[test]
    fn plain_numbers_are_widened_or_rounded() {
        let of = |kind: Kind, bytes: &[u8]| {
            let mut values = [0.0; 2];
            assert_eq!((kind.elements(), coding(kind, 2)), (1, None));
            plain(bytes, kind, 2)(0, &mut values);
            values
        };
        let bytes: Vec<u8> = [1.0 + 1e-9, -1.0 / 3.0].iter().flat_map(|x: &f64| x.to_le_bytes()).collect();
        assert_eq!(Kind::of(28), Ok(Kind::F64));
        assert_eq!(of(Kind::F64, &bytes), [1.0, -1.0 / 3.0]);
        assert_eq!(of(Kind::F32, &[0, 0, 128, 63, 0, 0, 0, 64]), [1.0, 2.0]);
    }

    /// Against llama.cpp's package gguf: `scripts/parity/make_gguf_block_fixtures.py`.
    #[test]
    fn blocks_of_every_type_are_expanded_to_the_bit() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/gguf_blocks.safetensors");
        let bytes = std::fs::read(path).unwrap();
        let tensors = SafeTensors::deserialize(&bytes).unwrap();
        let kinds: Vec<Kind> = Kind::all().filter(|&kind| coding(kind, 512).is_some()).collect();
        assert_eq!(kinds.len(), 23);
        for kind in kinds {
            let stored = tensors.tensor(&format!("{kind}.bytes")).unwrap();
            let expected = tensors.tensor(&format!("{kind}.values")).unwrap();
            let expected: Vec<u32> =
                expected.data().as_chunks().0.iter().map(|&bytes| u32::from_le_bytes(bytes)).collect();
            let blocks = blocks(stored.data(), kind, 512).unwrap();
            let mut values = vec![f32::NAN; 2 * 512];
            blocks.dequantise(0, &mut values);
            let found: Vec<u32> = values.iter().map(|value| value.to_bits()).collect();
            assert!(found == expected, "{kind}");
            // Rows come alone too.
            let mut second = vec![f32::NAN; 512];
            blocks.dequantise(1, &mut second);
            assert_eq!(second, values[512..], "{kind}");
        }
    }
}
