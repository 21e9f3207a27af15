//! [`Register`]: the vector registers of a processor, so that a loop over lanes is written once for all of them.
//!
//! `registers/x86.rs` and `registers/arm.rs` say what each function is in their instructions. Loops (`tile/body.rs`, `coded/body.rs`,
//! `integers/body.rs`) own the order of operations, which is the same in all registers, and so are the bits. Functions and loops are
//! inlined into entries, which enable the instructions.

#[cfg(target_arch = "aarch64")]
mod arm;
#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(target_arch = "aarch64")]
pub(crate) use arm::Neon;
#[cfg(target_arch = "x86_64")]
pub(crate) use x86::{Avx2, Avx512};

/// Registers of a set of instructions, whose lanes are of 32 bits.
///
/// # Safety
/// The processor must have the instructions wherever a function is called, and pointers must be to a register's lanes.
pub(crate) trait Register {
    /// Integers, or any bits.
    type Integers: Copy;
    /// Floats.
    type Floats: Copy;
    /// Sixteen floats to be looked up.
    type Table: Copy;
    /// Lanes of a register.
    const WIDTH: usize;
    /// Whether a look into a table takes fewer instructions than to convert an integer of four bits.
    const LOOKS_UP_INTEGERS: bool;

    /// The same word in all lanes.
    unsafe fn splat(word: u32) -> Self::Integers;
    /// A word for each lane.
    unsafe fn load(words: *const u32) -> Self::Integers;
    /// Puts a word of each lane.
    unsafe fn store(place: *mut u32, x: Self::Integers);
    /// `a & b`.
    unsafe fn and(a: Self::Integers, b: Self::Integers) -> Self::Integers;
    /// `a | b`.
    unsafe fn or(a: Self::Integers, b: Self::Integers) -> Self::Integers;
    /// `(a ^ b) & c`.
    unsafe fn xor_and(a: Self::Integers, b: Self::Integers, c: Self::Integers) -> Self::Integers;
    /// `a - b`, modulo `2^32`.
    unsafe fn sub_integers(a: Self::Integers, b: Self::Integers) -> Self::Integers;
    /// `x << by`, with a constant less than 32.
    unsafe fn left(x: Self::Integers, by: u32) -> Self::Integers;
    /// `x >> by` likewise, without sign.
    unsafe fn right(x: Self::Integers, by: u32) -> Self::Integers;
    /// `x >> by` likewise, with sign.
    unsafe fn right_signed(x: Self::Integers, by: u32) -> Self::Integers;
    /// Integers with sign as floats.
    unsafe fn floats(integers: Self::Integers) -> Self::Floats;
    /// The bits of floats.
    unsafe fn bits(x: Self::Floats) -> Self::Integers;
    /// The floats of bits.
    unsafe fn of_bits(x: Self::Integers) -> Self::Floats;
    /// Floats that are numbers, rounded to bf16 as [`bf16_bits`](super::vector::bf16_bits) rounds them, as the bits of an f32: half a
    /// unit of the last place that is kept is added, less the smallest part of it where that place is even, and the rest is cut off.
    unsafe fn bf16_bits(x: Self::Floats) -> Self::Integers;
    /// A table of these floats.
    unsafe fn table(entries: &[f32; 16]) -> Self::Table;
    /// The floats at the places that the lowest four bits of each lane say.
    unsafe fn look_up(table: Self::Table, places: Self::Integers) -> Self::Floats;
    /// The same number in all lanes.
    unsafe fn splat_float(x: f32) -> Self::Floats;
    /// A number for each lane.
    unsafe fn load_floats(x: *const f32) -> Self::Floats;
    /// Puts a number of each lane.
    unsafe fn store_floats(place: *mut f32, x: Self::Floats);
    /// `a + b`.
    unsafe fn add(a: Self::Floats, b: Self::Floats) -> Self::Floats;
    /// `a - b`.
    unsafe fn sub(a: Self::Floats, b: Self::Floats) -> Self::Floats;
    /// `a · b`.
    unsafe fn mul(a: Self::Floats, b: Self::Floats) -> Self::Floats;
    /// `a · b + c`, rounded once.
    unsafe fn mul_add(a: Self::Floats, b: Self::Floats, c: Self::Floats) -> Self::Floats;
    /// `c - a · b`, rounded once.
    unsafe fn neg_mul_add(a: Self::Floats, b: Self::Floats, c: Self::Floats) -> Self::Floats;
}

/// Implements [`Register`] by an expression for each function, all of them inlined into whatever calls them.
macro_rules! register {
    (
        impl Register for $register:ty: [$integers:ty, $floats:ty, $table:ty],
            $width:literal lanes, integers are looked up: $looks_up:literal;
        $(fn $function:ident($($argument:ident: $kind:ty),*) $(-> $result:ty)? = $body:expr;)*
    ) => {
        impl Register for $register {
            type Integers = $integers;
            type Floats = $floats;
            type Table = $table;
            const WIDTH: usize = $width;
            const LOOKS_UP_INTEGERS: bool = $looks_up;
            $(
                #[inline(always)]
                unsafe fn $function($($argument: $kind),*) $(-> $result)? {
                    // SAFETY: the caller's promise.
                    unsafe { $body }
                }
            )*
        }
    };
}

use register;
