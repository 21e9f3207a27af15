//! The loops over a panel of codes, written once for the registers of any processor.
//!
//! Owns the order of operations, which is the same in all registers. [`Register`] is what `x86.rs` and `arm.rs` give for each set of
//! instructions; their entries enable the instructions, and all functions here are inlined into them.
//!
//! ```text
//! for some lanes of the panel, `ACROSS` registers
//!     for each group
//!         for each word of codes: a register of lanes      exact[row] += codes · the row's word in every lane
//!         sums[row] += the floats of exact[row], with what the group has
//! ```

use super::matrix::Matrix;
use crate::engine::packed::piece::{AHEAD, CodesOfPanel, Lanes, Sums};
use crate::engine::packed::tile::{LANES, prefetch};

/// Registers of a set of instructions, whose lanes are of 32 bits.
///
/// # Safety
/// The processor must have the instructions wherever a function is called, and pointers must be to a register's lanes.
pub(super) trait Register {
    /// Whole numbers: sums, or four bytes to a lane.
    type Integers: Copy;
    /// Floats.
    type Floats: Copy;
    /// Lanes of a register.
    const WIDTH: usize;
    /// Whether [`dot`](Self::dot) takes the codes of rows as `q + 128`, without sign.
    const TURNED_OVER: bool;

    /// Zero in all lanes.
    unsafe fn zero() -> Self::Integers;
    /// The same word in all lanes.
    unsafe fn splat(word: u32) -> Self::Integers;
    /// A word for each lane.
    unsafe fn load(words: *const u32) -> Self::Integers;
    /// `sum + Σ row · code` of each lane's four bytes; codes have signs, and rows are as [`TURNED_OVER`](Self::TURNED_OVER) says.
    unsafe fn dot(sum: Self::Integers, row: Self::Integers, codes: Self::Integers) -> Self::Integers;
    /// `sum - 128 · of_codes`.
    unsafe fn less_128(sum: Self::Integers, of_codes: Self::Integers) -> Self::Integers;
    /// The lower four bits of each byte, then the upper ones, each exclusively or'ed with `flip`.
    unsafe fn halves(codes: Self::Integers, flip: Self::Integers) -> [Self::Integers; 2];
    /// `sum + Σ code · q` of each lane's four bytes, in both halves; codes are from 0 to 15, and `q` have signs.
    unsafe fn dot_halves(sum: Self::Integers, codes: [Self::Integers; 2], row: [Self::Integers; 2]) -> Self::Integers;
    /// The integers as floats.
    unsafe fn floats(integers: Self::Integers) -> Self::Floats;
    /// The same number in all lanes.
    unsafe fn splat_float(x: f32) -> Self::Floats;
    /// A number for each lane.
    unsafe fn load_floats(x: *const f32) -> Self::Floats;
    /// Puts a number of each lane.
    unsafe fn store(place: *mut f32, x: Self::Floats);
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

/// Asks for the codes that come some words later, unless so many rows share them that the processor has the time by itself.
#[inline(always)]
fn fetch<R: Register, const ACROSS: usize>(is_for_few: bool, codes: *const u32) {
    if is_for_few {
        // A line has sixteen lanes.
        for lane in (0..ACROSS * R::WIDTH).step_by(LANES / 2) {
            prefetch(codes.wrapping_add(AHEAD + lane));
        }
    }
}

/// Adds the products of `COUNT` rows with a panel of codes of eight bits to `sums`. Few rows are less than `MOST`.
///
/// # Safety
/// The processor must have the register's instructions. There must be all that [`Matrix::check`] asks for, with `COUNT` rows, whose
/// codes are as [`Register::TURNED_OVER`] says.
#[inline(always)]
pub(super) unsafe fn bytes<R: Register, const ACROSS: usize, const COUNT: usize, const MOST: usize>(
    matrix: &Matrix<'_>,
    panel: CodesOfPanel<'_>,
    rows: &[u32],
    sums: &mut [Sums],
) {
    // SAFETY: the caller's promise.
    unsafe {
        let ones = R::splat(0x0101_0101);
        let rows: [*const u32; COUNT] = std::array::from_fn(|row| rows.as_ptr().add(row * matrix.stride()));
        for lane in (0..LANES).step_by(ACROSS * R::WIDTH) {
            let place = |register: usize| lane + register * R::WIDTH;
            for group in 0..matrix.groups() {
                let mut exact = [[R::zero(); ACROSS]; COUNT];
                let mut of_codes = [R::zero(); ACROSS];
                for index in matrix.words_of(group) {
                    let codes = panel.codes.get_unchecked(index).as_ptr();
                    fetch::<R, ACROSS>(COUNT < MOST, codes.add(lane));
                    let codes: [R::Integers; ACROSS] =
                        std::array::from_fn(|register| R::load(codes.add(place(register))));
                    if R::TURNED_OVER {
                        of_codes.iter_mut().zip(codes).for_each(|(sum, codes)| *sum = R::dot(*sum, ones, codes));
                    }
                    for (exact, row) in exact.iter_mut().zip(&rows) {
                        let word = R::splat(*row.add(index));
                        exact.iter_mut().zip(codes).for_each(|(sum, codes)| *sum = R::dot(*sum, word, codes));
                    }
                }
                let scales = panel.scales.get_unchecked(group / matrix.groups_of_a_scale);
                for (row, sums) in sums.iter_mut().enumerate().take(COUNT) {
                    let step = R::splat_float(f32::from_bits(*rows[row].add(matrix.words() + group)));
                    for register in 0..ACROSS {
                        let mut exact = exact[row][register];
                        if R::TURNED_OVER {
                            exact = R::less_128(exact, of_codes[register]);
                        }
                        let scale = R::mul(R::load_floats(scales.as_ptr().add(place(register)).cast()), step);
                        let sum = sums.as_mut_ptr().add(place(register));
                        R::store(sum, R::add(R::load_floats(sum), R::mul(R::floats(exact), scale)));
                    }
                }
            }
        }
    }
}

/// Adds the products of `COUNT` rows with a panel of codes of four bits to `sums`. Few rows are less than `MOST`.
///
/// # Safety
/// As for [`bytes`], with rows in the order of [`even_before_odd`](super::even_before_odd), which have signs, and a sum for each group.
#[inline(always)]
pub(super) unsafe fn halves<R: Register, const ACROSS: usize, const COUNT: usize, const MOST: usize>(
    matrix: &Matrix<'_>,
    panel: CodesOfPanel<'_>,
    rows: &[u32],
    sums: &mut [Sums],
) {
    // SAFETY: the caller's promise.
    unsafe {
        // A signed code `c` of four bits is `(c ^ 8) - 8`.
        let flip = R::splat(if matrix.codes.is_signed { 0x0808_0808 } else { 0 });
        let rows: [*const u32; COUNT] = std::array::from_fn(|row| rows.as_ptr().add(row * matrix.stride()));
        let float = |word: *const u32| R::splat_float(f32::from_bits(*word));
        for lane in (0..LANES).step_by(ACROSS * R::WIDTH) {
            let place = |register: usize| lane + register * R::WIDTH;
            for group in 0..matrix.groups() {
                let mut exact = [[R::zero(); COUNT]; ACROSS];
                let words = matrix.words_of(group);
                for index in words.start / 2..words.end / 2 {
                    let codes = panel.codes.get_unchecked(index).as_ptr();
                    fetch::<R, ACROSS>(COUNT < MOST, codes.add(lane));
                    for (register, exact) in exact.iter_mut().enumerate() {
                        let codes = R::halves(R::load(codes.add(place(register))), flip);
                        for (exact, row) in exact.iter_mut().zip(&rows) {
                            let of_row = [0, 1].map(|half| R::splat(*row.add(2 * index + half)));
                            *exact = R::dot_halves(*exact, codes, of_row);
                        }
                    }
                }
                let scale = group / matrix.groups_of_a_scale;
                for (register, exact) in exact.into_iter().enumerate() {
                    let of = |lanes: &Lanes| R::load_floats(lanes.as_ptr().add(place(register)).cast());
                    let (zero, minimum) = (panel.zeros.get(scale).map(of), panel.minima.get(scale).map(of));
                    let scale = of(panel.scales.get_unchecked(scale));
                    for ((sums, row), exact) in sums.iter_mut().zip(&rows).zip(exact) {
                        let step = float(row.add(matrix.words() + group));
                        let sum_of_row = float(row.add(matrix.words() + matrix.groups() + group));
                        let mut number = R::floats(exact);
                        if matrix.codes.is_signed {
                            number = R::sub(number, R::mul(R::splat_float(8.0), sum_of_row));
                        }
                        if let Some(zero) = zero {
                            number = R::sub(number, R::mul(zero, sum_of_row));
                        }
                        let sum = sums.as_mut_ptr().add(place(register));
                        let mut y = R::mul_add(number, R::mul(scale, step), R::load_floats(sum));
                        if let Some(minimum) = minimum {
                            y = R::neg_mul_add(minimum, R::mul(step, sum_of_row), y);
                        }
                        R::store(sum, y);
                    }
                }
            }
        }
    }
}

/// Implements [`Register`] by an expression for each function, all of them in its order and inlined into whatever calls them.
macro_rules! register {
    (
        impl$(<$parameter:ident: $bound:ident>)? Register for $register:ty:
            [$integers:ty, $floats:ty], $width:literal lanes, turned over: $turned_over:expr;
        $(fn $function:ident($($argument:ident: $kind:ty),*) -> $result:ty = $body:expr;)*
    ) => {
        impl$(<$parameter: $bound>)? Register for $register {
            type Integers = $integers;
            type Floats = $floats;
            const WIDTH: usize = $width;
            const TURNED_OVER: bool = $turned_over;
            $(
                #[inline(always)]
                unsafe fn $function($($argument: $kind),*) -> $result {
                    // SAFETY: the caller's promise.
                    unsafe { $body }
                }
            )*
        }
    };
}

pub(super) use register;

/// An entry that enables instructions for a loop of `body.rs`, with as many rows as `sums` has: one of the numbers that are listed,
/// or the last of them.
macro_rules! entry {
    ($name:ident, $features:literal, $body:ident::<$register:ty, $across:literal>, $most:ident, $($count:literal)*) => {
        /// Adds the products of as many rows as `sums` has, at most as the name's registers hold, with a panel to `sums`.
        ///
        /// # Safety
        /// The processor must have the instructions; the rest is as for the loop.
        #[target_feature(enable = $features)]
        unsafe fn $name(matrix: &Matrix<'_>, panel: CodesOfPanel<'_>, rows: &[u32], sums: &mut [Sums]) {
            // SAFETY: the caller's promise.
            unsafe {
                match sums.len() {
                    $($count => $body::<$register, $across, $count, $most>(matrix, panel, rows, sums),)*
                    _ => $body::<$register, $across, $most, $most>(matrix, panel, rows, sums),
                }
            }
        }
    };
}

pub(super) use entry;
