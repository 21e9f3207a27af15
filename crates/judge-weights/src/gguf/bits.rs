//! Numbers in the bytes of a block.

use half::f16;

/// The f16 at this byte of a block.
pub(crate) fn half(block: &[u8], at: usize) -> f32 {
    f16::from_le_bytes([block[at], block[at + 1]]).to_f32()
}

/// Half `number` of bytes that hold two codes each, the low one first.
pub(crate) fn nibble(bytes: &[u8], number: usize) -> u8 {
    bytes[number / 2] >> (4 * (number % 2)) & 15
}
