//! Whether what a matrix of codes has is of moderate size, so that weights can be rounded, and multiplied, by fewer instructions.
//!
//! Scales, zeros and minima are zero or from `2^-28` to `2^50`, and a code's number is zero or from `2^-9`, the smallest of E4M3, to
//! `2^50`. Then a weight `(number - zero) · scale - minimum` is zero or from `2^-102` to `2^102`:
//!
//! - Without zeros the product is zero or at least `2^-37`. It and the minimum, of 24 bits each, are multiples of `2^-60`, and so is their
//!   difference: a weight is zero or at least `2^-60`.
//! - A number and a zero are multiples of `2^-51`, and so is their difference; its product with a scale is zero or at least `2^-79`, and
//!   with the minimum they are multiples of `2^-102`.

use crate::codes::{CodeNumbers, Coding};
use crate::stored::Stored;
use crate::widest::widest;

/// `2^-9`.
const SMALLEST_NUMBER: f32 = f32::from_bits((127 - 9) << 23);

/// `2^-28`.
const SMALLEST: f32 = f32::from_bits((127 - 28) << 23);

/// `2^50`.
const LARGEST: f32 = f32::from_bits((127 + 50) << 23);

/// Whether all of it is. `of_groups` are scales, zeros and minima, by their bits.
pub(crate) fn is_moderate<'a>(coding: &Coding, of_groups: impl IntoIterator<Item = &'a Stored>) -> bool {
    // Tables may come from a file.
    let is_one = |entry: &f32| *entry == 0.0 || (SMALLEST_NUMBER..=LARGEST).contains(&entry.abs());
    let are_numbers = if let CodeNumbers::Table(table) = &coding.numbers { table.iter().all(is_one) } else { true };
    let mut of_groups = of_groups.into_iter().map(|numbers| extremes(numbers));
    are_numbers && of_groups.all(|[smallest, largest]| smallest >= SMALLEST.to_bits() && largest <= LARGEST.to_bits())
}

/// The smallest magnitude that is not zero and the largest one, as their bits, of numbers by their bits. If all are zero, the smallest
/// is more than infinity.
pub(crate) fn extremes(numbers: &[u32]) -> [u32; 2] {
    let (mut smallest, mut largest) = (u32::MAX, 0);
    widest(
        #[inline(always)]
        || {
            (smallest, largest) = numbers.iter().fold((u32::MAX, 0), |(smallest, largest), bits| {
                let magnitude = bits & 0x7fff_ffff;
                // Zero, less one, is the largest.
                (smallest.min(magnitude.wrapping_sub(1)), largest.max(magnitude))
            });
        },
    );
    [smallest.saturating_add(1), largest]
}
