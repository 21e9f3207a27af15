//! The types of tensors in GGUF files, and the numbers that their blocks stand for.
//!
//! Layouts are those of llama.cpp's `ggml-common.h`. Products of a scale's two parts are exact in f32, so that each value is rounded at most once.

use std::fmt;

use half::{bf16, f16};

use crate::weights::rows::Rows;

/// How a tensor's numbers are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    F32,
    F16,
    Bf16,
    /// 32 bytes with a scale.
    Q8_0,
    /// 32 codes of 4 bits with a scale.
    Q4_0,
    /// 256 codes of 4 bits; each 32 have a scale and a minimum of 6 bits.
    Q4K,
    /// The same with 5 bits.
    Q5K,
    /// 256 codes of 6 bits; each 16 have a scale of 8 bits.
    Q6K,
}

/// Elements of the blocks whose names end with K.
const SUPER_BLOCK: usize = 256;

/// Names of the types that are not read, by number.
const OTHERS: [(u32, &str); 24] = [
    (3, "Q4_1"),
    (6, "Q5_0"),
    (7, "Q5_1"),
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
    /// The type of this number; the name of one that is not read.
    pub(super) fn of(number: u32) -> Result<Self, String> {
        Ok(match number {
            0 => Self::F32,
            1 => Self::F16,
            2 => Self::Q4_0,
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

    pub(super) fn is_f32(self) -> bool {
        self == Self::F32
    }

    /// Elements of a block, which lie in one row.
    pub(super) fn elements(self) -> usize {
        match self {
            Self::F32 | Self::F16 | Self::Bf16 => 1,
            Self::Q8_0 | Self::Q4_0 => 32,
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
            Self::Q4K => 4 + 12 + 128,
            Self::Q5K => 4 + 12 + 32 + 128,
            Self::Q6K => 128 + 64 + 16 + 2,
        }
    }

    /// Expands one block.
    fn expand(self, block: &[u8], values: &mut [f32]) {
        let half = |at: usize| f16::from_le_bytes([block[at], block[at + 1]]).to_f32();
        match self {
            // Not packed in blocks; see `Blocks`.
            Self::F32 | Self::F16 | Self::Bf16 => {}
            Self::Q8_0 => {
                let scale = half(0);
                values.iter_mut().zip(&block[2..]).for_each(|(value, &code)| *value = scale * f32::from(code as i8));
            }
            Self::Q4_0 => {
                let scale = half(0);
                let (low, high) = values.split_at_mut(16);
                for ((low, high), &byte) in low.iter_mut().zip(high).zip(&block[2..]) {
                    *low = scale * (f32::from(byte & 15) - 8.0);
                    *high = scale * (f32::from(byte >> 4) - 8.0);
                }
            }
            Self::Q4K | Self::Q5K => {
                let (scale, minimum) = (half(0), half(2));
                let parts = &block[4..16];
                let (high_bits, codes) = block[16..].split_at(if self == Self::Q5K { 32 } else { 0 });
                for (part, values) in values.chunks_exact_mut(32).enumerate() {
                    let (of_scale, of_minimum) = six_bits(parts, part);
                    let (scale, minimum) = (scale * f32::from(of_scale), minimum * f32::from(of_minimum));
                    for (place, value) in values.iter_mut().enumerate() {
                        let low = codes[32 * (part / 2) + place] >> (4 * (part % 2)) & 15;
                        let high = high_bits.get(place).map_or(0, |bits| bits >> part & 1);
                        *value = scale * f32::from(low | high << 4) - minimum;
                    }
                }
            }
            Self::Q6K => {
                let (low_bits, rest) = block.split_at(128);
                let (high_bits, scales) = rest.split_at(64);
                let scale = half(208);
                for (index, value) in values.iter_mut().enumerate() {
                    let (upper, quarter, place) = (index / 128, index % 128 / 32, index % 32);
                    let low = low_bits[64 * upper + 32 * (quarter % 2) + place] >> (4 * (quarter / 2)) & 15;
                    let high = high_bits[32 * upper + place] >> (2 * quarter) & 3;
                    let code = f32::from(low | high << 4) - 32.0;
                    *value = scale * f32::from(scales[index / 16] as i8) * code;
                }
            }
        }
    }
}

/// Scale and minimum of a part of 32 elements, six bits each: 12 bytes hold those of eight parts, the low four in six bits of a byte, of the others four bits
/// together and two in what is left of the bytes of the first.
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
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::F32 => "F32",
            Self::F16 => "F16",
            Self::Bf16 => "BF16",
            Self::Q8_0 => "Q8_0",
            Self::Q4_0 => "Q4_0",
            Self::Q4K => "Q4_K",
            Self::Q5K => "Q5_K",
            Self::Q6K => "Q6_K",
        })
    }
}

/// A matrix of blocks, each row whole blocks.
pub(super) struct Blocks<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) kind: Kind,
    pub(super) width: usize,
}

impl Rows for Blocks<'_> {
    fn expand(&self, first: usize, values: &mut [f32]) {
        let (elements, bytes) = (self.kind.elements(), self.kind.bytes());
        let stored = &self.bytes[first * self.width / elements * bytes..];
        match self.kind {
            Kind::F32 => each(stored, values, f32::from_le_bytes),
            Kind::F16 => each(stored, values, |bytes| f16::from_le_bytes(bytes).to_f32()),
            Kind::Bf16 => each(stored, values, |bytes| bf16::from_le_bytes(bytes).to_f32()),
            kind => {
                let blocks = values.chunks_exact_mut(elements).zip(stored.chunks_exact(bytes));
                blocks.for_each(|(values, block)| kind.expand(block, values));
            }
        }
    }
}

/// Numbers of `N` bytes each, widened one by one.
fn each<const N: usize>(bytes: &[u8], values: &mut [f32], widen: impl Fn([u8; N]) -> f32) {
    values.iter_mut().zip(bytes.as_chunks().0).for_each(|(value, &bytes)| *value = widen(bytes));
}

/// A matrix whose rows were put into another order within each head: a rotation's pairs, which lie half a head apart, side by side.
pub(super) struct Permuted<'a> {
    pub(super) inner: Blocks<'a>,
    /// Rows of a head.
    pub(super) per_head: usize,
}

impl Rows for Permuted<'_> {
    fn expand(&self, first: usize, values: &mut [f32]) {
        for (row, values) in values.chunks_exact_mut(self.inner.width).enumerate() {
            let (head, within) = ((first + row) / self.per_head, (first + row) % self.per_head);
            let (half, pair) = (within / (self.per_head / 2), within % (self.per_head / 2));
            self.inner.expand(head * self.per_head + 2 * pair + half, values);
        }
    }
}
