//! The types of tensors in GGUF files, and the numbers that their blocks stand for.
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
//!  Q4_K      256    144   d, m, 12 bytes s, 128 bytes q           d * sc[j] * n - m * mn[j], j = i / 32:
//!                                                                 half j % 2 of q[32 * (j / 2) + i % 32]
//!  Q5_K      256    176   d, m, 12 bytes s, 32 bytes h, 128 q     as Q4_K, and bit j of h[i % 32] is
//!                                                                 the fifth bit of n
//!  Q6_K      256    210   128 bytes q, 64 h, 16 x i8 sc, d        d * sc[i / 16] * (n - 32); four bits of n
//!                                                                 in q, two in h, see `Kind::take_apart`
//! ```
//!
//! `sc[j]` and `mn[j]` are six bits each, see [`six_bits`]. Products of a scale's two parts and a
//! code are exact in f32, so each value is rounded at most once, where a minimum is taken off (or `m`
//! is added).
//! [`Blocks`] and [`Plain`] are matrices of them, [`Permuted`] puts rows back into order.

use std::fmt;

use half::{bf16, f16};

use crate::weights::codes::{CodeNumbers, Coded, CodedRows, Coding};
use crate::weights::rows::Rows;

/// How a tensor's numbers are stored: the types that are read, see the module's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Plain f32.
    F32,
    /// Plain f16.
    F16,
    /// Plain bf16.
    Bf16,
    /// 32 signed bytes with a scale.
    Q8_0,
    /// 32 codes of 4 bits with a scale.
    Q4_0,
    /// 32 codes of 4 bits with a scale and a summand.
    Q4_1,
    /// 32 codes of 5 bits with a scale.
    Q5_0,
    /// 32 codes of 5 bits with a scale and a summand.
    Q5_1,
    /// 256 codes of 4 bits; each 32 have a scale and a minimum of 6 bits.
    Q4K,
    /// 256 codes of 5 bits; each 32 have a scale and a minimum of 6 bits.
    Q5K,
    /// 256 codes of 6 bits; each 16 have a scale of 8 bits.
    Q6K,
}

/// Elements of a block of the types whose names end with K.
const SUPER_BLOCK: usize = 256;

/// Names of the types that are not read, by their number in `ggml_type`, so that an error can say
/// which one a file has.
const OTHERS: [(u32, &str); 21] = [
    (9, "Q8_1"),
    (10, "Q2_K"),
    (11, "Q3_K"),
    (15, "Q8_K"),
    (16, "IQ2_XXS"),
    (17, "IQ2_XS"),
    (18, "IQ3_XXS"),
    (19, "IQ1_S"),
    (20, "IQ4_NL"),
    (21, "IQ3_S"),
    (22, "IQ2_S"),
    (23, "IQ4_XS"),
    (24, "I8"),
    (25, "I16"),
    (26, "I32"),
    (27, "I64"),
    (28, "F64"),
    (29, "IQ1_M"),
    (34, "TQ1_0"),
    (35, "TQ2_0"),
    (39, "MXFP4"),
];

impl Kind {
    /// The type of this number in a file.
    ///
    /// # Errors
    /// The name of a type that is not read, or the number where that is not known either.
    pub(super) fn of(number: u32) -> Result<Self, String> {
        Ok(match number {
            0 => Self::F32,
            1 => Self::F16,
            2 => Self::Q4_0,
            3 => Self::Q4_1,
            6 => Self::Q5_0,
            7 => Self::Q5_1,
            8 => Self::Q8_0,
            12 => Self::Q4K,
            13 => Self::Q5K,
            14 => Self::Q6K,
            30 => Self::Bf16,
            _ => {
                let name = OTHERS.iter().find(|(other, _)| *other == number).map(|(_, name)| (*name).to_owned());
                return Err(name.unwrap_or_else(|| number.to_string()));
            }
        })
    }

    /// Whether numbers are plain f32.
    pub(super) fn is_f32(self) -> bool {
        self == Self::F32
    }

    /// Elements of a block, which lie in one row; 1 for plain numbers.
    pub(super) fn elements(self) -> usize {
        match self {
            Self::F32 | Self::F16 | Self::Bf16 => 1,
            Self::Q8_0 | Self::Q4_0 | Self::Q4_1 | Self::Q5_0 | Self::Q5_1 => 32,
            Self::Q4K | Self::Q5K | Self::Q6K => SUPER_BLOCK,
        }
    }

    /// Bytes of a block.
    pub(super) fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::Bf16 => 2,
            Self::Q8_0 => 2 + 32,
            Self::Q4_0 => 2 + 16,
            Self::Q4_1 => 4 + 16,
            Self::Q5_0 => 2 + 4 + 16,
            Self::Q5_1 => 4 + 4 + 16,
            Self::Q4K => 4 + 12 + 128,
            Self::Q5K => 4 + 12 + 32 + 128,
            Self::Q6K => 128 + 64 + 16 + 2,
        }
    }

    /// How rows of this many elements are coded; `None` for plain numbers.
    pub(super) fn coding(self, width: usize) -> Option<Coding> {
        let scaled = |bits, numbers, size| Some(Coding::scaled(bits, numbers, width, size));
        let with_minima =
            |bits| scaled(bits, CodeNumbers::Unsigned, 32).map(|coding| Coding { has_minima: true, ..coding });
        match self {
            Self::F32 | Self::F16 | Self::Bf16 => None,
            Self::Q8_0 => scaled(8, CodeNumbers::Signed, 32),
            Self::Q4_0 => scaled(4, CodeNumbers::Signed, 32),
            Self::Q5_0 => scaled(8, CodeNumbers::Signed, 32),
            Self::Q4_1 | Self::Q4K => with_minima(4),
            Self::Q5_1 | Self::Q5K => with_minima(8),
            Self::Q6K => scaled(8, CodeNumbers::Signed, 16),
        }
    }

    /// Takes one block of [`bytes`](Self::bytes) bytes apart: codes of its elements, scales and
    /// minima of its groups. Plain numbers have no blocks and are left alone.
    ///
    /// Where a number is taken off every code of the table above, codes here have signs.
    ///
    /// The codes of Q6_K lie in two halves of 128 elements. With `u = i / 128`, `g = i % 128 / 32`
    /// and `l = i % 32`, the low four bits are half `g / 2` of byte `64 u + 32 (g % 2) + l` of the
    /// first 128, the high two are bits `2 g` and `2 g + 1` of byte `32 u + l` of the next 64.
    fn take_apart(self, block: &[u8], codes: &mut [u8], scales: &mut [f32], minima: &mut [f32]) {
        let half = |at: usize| f16::from_le_bytes([block[at], block[at + 1]]).to_f32();
        match self {
            Self::F32 | Self::F16 | Self::Bf16 => {}
            Self::Q8_0 => {
                scales.fill(half(0));
                codes.copy_from_slice(&block[2..]);
            }
            Self::Q4_0 => {
                scales.fill(half(0));
                let (low, high) = codes.split_at_mut(16);
                for ((low, high), &byte) in low.iter_mut().zip(high).zip(&block[2..]) {
                    // Taking 8 off is turning the highest bit round, as a code with a sign.
                    (*low, *high) = (byte & 15 ^ 8, byte >> 4 ^ 8);
                }
            }
            Self::Q4_1 => {
                scales.fill(half(0));
                minima.fill(-half(2));
                let (low, high) = codes.split_at_mut(16);
                for ((low, high), &byte) in low.iter_mut().zip(high).zip(&block[4..]) {
                    (*low, *high) = (byte & 15, byte >> 4);
                }
            }
            Self::Q5_0 | Self::Q5_1 => {
                scales.fill(half(0));
                let (fifth, off) = if self == Self::Q5_0 { (2, 16) } else { (4, 0) };
                if self == Self::Q5_1 {
                    minima.fill(-half(2));
                }
                let (bits, low_bits) = block[fifth..].split_at(4);
                for (index, code) in codes.iter_mut().enumerate() {
                    let low = low_bits[index % 16] >> (4 * (index / 16)) & 15;
                    let high = bits[index / 8] >> (index % 8) & 1;
                    *code = (low | high << 4).wrapping_sub(off);
                }
            }
            Self::Q4K | Self::Q5K => {
                let (scale, minimum) = (half(0), half(2));
                let parts = &block[4..16];
                let (high_bits, low_bits) = block[16..].split_at(if self == Self::Q5K { 32 } else { 0 });
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
            Self::Q6K => {
                let (low_bits, rest) = block.split_at(128);
                let (high_bits, parts) = rest.split_at(64);
                let scale = half(208);
                scales.iter_mut().zip(parts).for_each(|(x, &part)| *x = scale * f32::from(part as i8));
                for (index, code) in codes.iter_mut().enumerate() {
                    let (upper, quarter, place) = (index / 128, index % 128 / 32, index % 32);
                    let low = low_bits[64 * upper + 32 * (quarter % 2) + place] >> (4 * (quarter / 2)) & 15;
                    let high = high_bits[32 * upper + place] >> (2 * quarter) & 3;
                    *code = (low | high << 4).wrapping_sub(32);
                }
            }
        }
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

impl fmt::Display for Kind {
    /// The type's name as llama.cpp writes it. It is part of a model's fingerprint.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::F32 => "F32",
            Self::F16 => "F16",
            Self::Bf16 => "BF16",
            Self::Q8_0 => "Q8_0",
            Self::Q4_0 => "Q4_0",
            Self::Q4_1 => "Q4_1",
            Self::Q5_0 => "Q5_0",
            Self::Q5_1 => "Q5_1",
            Self::Q4K => "Q4_K",
            Self::Q5K => "Q5_K",
            Self::Q6K => "Q6_K",
        })
    }
}

/// A matrix of plain numbers.
pub(super) struct Plain<'a> {
    /// All rows, one behind another, as `header.rs` has located them.
    pub(super) bytes: &'a [u8],
    /// F32, F16 or BF16.
    pub(super) kind: Kind,
    /// Elements of a row.
    pub(super) width: usize,
}

impl Rows for Plain<'_> {
    fn expand(&self, first: usize, values: &mut [f32]) {
        let stored = &self.bytes[first * self.width * self.kind.bytes()..];
        match self.kind {
            Kind::F16 => each(stored, values, |bytes| f16::from_le_bytes(bytes).to_f32()),
            Kind::Bf16 => each(stored, values, |bytes| bf16::from_le_bytes(bytes).to_f32()),
            _ => each(stored, values, f32::from_le_bytes),
        }
    }
}

/// A matrix whose rows are whole blocks of codes.
pub(super) struct Blocks<'a> {
    /// All rows, one behind another, as `header.rs` has located them.
    pub(super) bytes: &'a [u8],
    /// How blocks are stored.
    pub(super) kind: Kind,
    /// What [`Kind::coding`] says of rows as wide as these.
    pub(super) coding: Coding,
}

impl Coded for Blocks<'_> {
    fn coding(&self) -> &Coding {
        &self.coding
    }

    fn fill(&self, first: usize, rows: &mut CodedRows<'_>) {
        let (elements, bytes) = (self.kind.elements(), self.kind.bytes());
        let groups = elements * self.coding.n_groups / self.coding.width.max(1);
        let blocks = self.bytes[first * self.coding.width / elements * bytes..].chunks_exact(bytes);
        let numbers = rows.scales.chunks_exact_mut(groups).zip(rows.minima.chunks_exact_mut(groups));
        for ((codes, (scales, minima)), block) in rows.codes.chunks_exact_mut(elements).zip(numbers).zip(blocks) {
            self.kind.take_apart(block, codes, scales, minima);
        }
    }
}

/// Widens numbers of `N` bytes one by one, as many as `values` has room for.
fn each<const N: usize>(bytes: &[u8], values: &mut [f32], widen: impl Fn([u8; N]) -> f32) {
    values.iter_mut().zip(bytes.as_chunks().0).for_each(|(value, &bytes)| *value = widen(bytes));
}

/// A matrix of queries or keys in the order of a Hugging Face folder, over one in the order of the
/// file.
///
/// A rotation turns pairs of rows. In a Hugging Face folder the two rows of a pair lie half a head
/// apart, in the file they lie side by side:
///
/// ```text
///  row of a head, Hugging Face   0    1    2    3  | 4    5    6    7      (8 rows a head)
///  row of a head, in the file    0    2    4    6  | 1    3    5    7
/// ```
pub(super) struct Permuted<T> {
    /// The matrix in the order of the file.
    pub(super) inner: T,
    /// Rows of a head, an even number.
    pub(super) per_head: usize,
}

impl<T> Permuted<T> {
    /// Where a row is in the file.
    fn place(&self, row: usize) -> usize {
        let (head, within) = (row / self.per_head, row % self.per_head);
        let (half, pair) = (within / (self.per_head / 2), within % (self.per_head / 2));
        head * self.per_head + 2 * pair + half
    }
}

impl Rows for Permuted<Plain<'_>> {
    fn expand(&self, first: usize, values: &mut [f32]) {
        for (row, values) in values.chunks_exact_mut(self.inner.width).enumerate() {
            self.inner.expand(self.place(first + row), values);
        }
    }
}

impl Coded for Permuted<Blocks<'_>> {
    fn coding(&self) -> &Coding {
        &self.inner.coding
    }

    fn fill(&self, first: usize, rows: &mut CodedRows<'_>) {
        for (row, mut rows) in rows.each(&self.inner.coding).enumerate() {
            self.inner.fill(self.place(first + row), &mut rows);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use safetensors::SafeTensors;

    use super::*;

    /// Against llama.cpp's package gguf: `scripts/parity/make_gguf_block_fixtures.py`.
    #[test]
    fn blocks_of_every_type_are_expanded_to_the_bit() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/gguf_blocks.safetensors");
        let bytes = std::fs::read(path).unwrap();
        let tensors = SafeTensors::deserialize(&bytes).unwrap();
        let kinds: Vec<Kind> =
            (0..40).filter_map(|number| Kind::of(number).ok()).filter(|kind| kind.coding(512).is_some()).collect();
        assert_eq!(kinds.len(), 8);
        for kind in kinds {
            let stored = tensors.tensor(&format!("{kind}.bytes")).unwrap();
            let expected = tensors.tensor(&format!("{kind}.values")).unwrap();
            let expected: Vec<u32> =
                expected.data().as_chunks().0.iter().map(|&bytes| u32::from_le_bytes(bytes)).collect();
            let blocks = Blocks { bytes: stored.data(), kind, coding: kind.coding(512).unwrap() };
            let mut values = vec![f32::NAN; 2 * 512];
            blocks.expand(0, &mut values);
            let found: Vec<u32> = values.iter().map(|value| value.to_bits()).collect();
            assert!(found == expected, "{kind}");
            // Rows come alone too.
            let mut second = vec![f32::NAN; 512];
            blocks.expand(1, &mut second);
            assert_eq!(second, values[512..], "{kind}");
        }
    }
}
