//! The loops over a panel of codes, written once for the registers of any processor.
//!
//! Owns the order of operations, which is the same in all registers. [`Dots`] is what `x86.rs` and `arm.rs` give for each set of
//! instructions; their entries enable the instructions, and all functions here are inlined into them.
//!
//! ```text
//! for some lanes of the panel, `ACROSS` registers
//!     for each group
//!         for each word of codes: a register of lanes      exact[row] += codes · the row's word in every lane
//!         sums[row] += the floats of exact[row], with what the group has
//! ```

use super::matrix::Matrix;
use crate::piece::{AHEAD, CodesOfPanel, Lanes, Sums};
use crate::registers::Register;
use crate::tile::{LANES, prefetch};

/// How the bytes of registers are multiplied.
///
/// # Safety
/// The processor must have the instructions wherever a function is called.
pub(crate) trait Dots {
    /// The registers.
    type Of: Register;
    /// Whether [`dot`](Self::dot) takes the codes of rows as `q + 128`, without sign.
    const TURNED_OVER: bool;

    /// `sum + Σ row · code` of each lane's four bytes; codes have signs, and rows are as [`TURNED_OVER`](Self::TURNED_OVER) says.
    unsafe fn dot(sum: Integers<Self>, row: Integers<Self>, codes: Integers<Self>) -> Integers<Self>;
    /// `sum + Σ code · q` of each lane's four bytes, in both halves; codes are from 0 to 15, and `q` have signs.
    unsafe fn dot_halves(sum: Integers<Self>, codes: [Integers<Self>; 2], row: [Integers<Self>; 2]) -> Integers<Self>;
}

/// A register of sums, or of four bytes to a lane.
pub(crate) type Integers<D> = <<D as Dots>::Of as Register>::Integers;

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
/// codes are as [`Dots::TURNED_OVER`] says.
#[inline(always)]
pub(crate) unsafe fn bytes<D: Dots, const ACROSS: usize, const COUNT: usize, const MOST: usize>(
    matrix: &Matrix<'_>,
    panel: CodesOfPanel<'_>,
    rows: &[u32],
    sums: &mut [Sums],
) {
    const { assert!(LANES.is_multiple_of(ACROSS * D::Of::WIDTH)) }
    // SAFETY: the caller's promise.
    unsafe {
        let ones = D::Of::splat(0x0101_0101);
        let rows: [*const u32; COUNT] = std::array::from_fn(|row| rows.as_ptr().add(row * matrix.stride()));
        for lane in (0..LANES).step_by(ACROSS * D::Of::WIDTH) {
            let place = |register: usize| lane + register * D::Of::WIDTH;
            for group in 0..matrix.groups() {
                let mut exact = [[D::Of::splat(0); ACROSS]; COUNT];
                let mut of_codes = [D::Of::splat(0); ACROSS];
                for index in matrix.words_of(group) {
                    let codes = panel.codes.get_unchecked(index).as_ptr();
                    fetch::<D::Of, ACROSS>(COUNT < MOST, codes.add(lane));
                    let codes: [Integers<D>; ACROSS] =
                        std::array::from_fn(|register| D::Of::load(codes.add(place(register))));
                    if D::TURNED_OVER {
                        of_codes.iter_mut().zip(codes).for_each(|(sum, codes)| *sum = D::dot(*sum, ones, codes));
                    }
                    for (exact, row) in exact.iter_mut().zip(&rows) {
                        let word = D::Of::splat(*row.add(index));
                        exact.iter_mut().zip(codes).for_each(|(sum, codes)| *sum = D::dot(*sum, word, codes));
                    }
                }
                let scales = panel.scales.get_unchecked(group / matrix.groups_of_a_scale);
                for (row, sums) in sums.iter_mut().enumerate().take(COUNT) {
                    let step = D::Of::splat_float(f32::from_bits(*rows[row].add(matrix.words() + group)));
                    for register in 0..ACROSS {
                        let mut exact = exact[row][register];
                        if D::TURNED_OVER {
                            // They are 128 more than `q`.
                            exact = D::Of::sub_integers(exact, D::Of::left(of_codes[register], 7));
                        }
                        let scale = D::Of::mul(D::Of::load_floats(scales.as_ptr().add(place(register)).cast()), step);
                        let sum = sums.as_mut_ptr().add(place(register));
                        D::Of::store_floats(
                            sum,
                            D::Of::add(D::Of::load_floats(sum), D::Of::mul(D::Of::floats(exact), scale)),
                        );
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
pub(crate) unsafe fn halves<D: Dots, const ACROSS: usize, const COUNT: usize, const MOST: usize>(
    matrix: &Matrix<'_>,
    panel: CodesOfPanel<'_>,
    rows: &[u32],
    sums: &mut [Sums],
) {
    const { assert!(LANES.is_multiple_of(ACROSS * D::Of::WIDTH)) }
    // SAFETY: the caller's promise.
    unsafe {
        // A signed code `c` of four bits is `(c ^ 8) - 8`.
        let flip = D::Of::splat(if matrix.codes.is_signed { 0x0808_0808 } else { 0 });
        let lowest = D::Of::splat(0x0f0f_0f0f);
        let rows: [*const u32; COUNT] = std::array::from_fn(|row| rows.as_ptr().add(row * matrix.stride()));
        let float = |word: *const u32| D::Of::splat_float(f32::from_bits(*word));
        for lane in (0..LANES).step_by(ACROSS * D::Of::WIDTH) {
            let place = |register: usize| lane + register * D::Of::WIDTH;
            for group in 0..matrix.groups() {
                let mut exact = [[D::Of::splat(0); COUNT]; ACROSS];
                let words = matrix.words_of(group);
                for index in words.start / 2..words.end / 2 {
                    let codes = panel.codes.get_unchecked(index).as_ptr();
                    fetch::<D::Of, ACROSS>(COUNT < MOST, codes.add(lane));
                    for (register, exact) in exact.iter_mut().enumerate() {
                        let codes = D::Of::load(codes.add(place(register)));
                        let codes = [codes, D::Of::right(codes, 4)].map(|codes| D::Of::xor_and(codes, flip, lowest));
                        for (exact, row) in exact.iter_mut().zip(&rows) {
                            let of_row = [0, 1].map(|half| D::Of::splat(*row.add(2 * index + half)));
                            *exact = D::dot_halves(*exact, codes, of_row);
                        }
                    }
                }
                let scale = group / matrix.groups_of_a_scale;
                // By reference: an array of registers that moves is copied to memory.
                for (register, exact) in exact.iter().enumerate() {
                    let of = |lanes: &Lanes| D::Of::load_floats(lanes.as_ptr().add(place(register)).cast());
                    let (zero, minimum) = (panel.zeros.get(scale).map(of), panel.minima.get(scale).map(of));
                    let scale = of(panel.scales.get_unchecked(scale));
                    for ((sums, row), &exact) in sums.iter_mut().zip(&rows).zip(exact) {
                        let step = float(row.add(matrix.words() + group));
                        let sum_of_row = float(row.add(matrix.words() + matrix.groups() + group));
                        let mut number = D::Of::floats(exact);
                        if matrix.codes.is_signed {
                            number = D::Of::sub(number, D::Of::mul(D::Of::splat_float(8.0), sum_of_row));
                        }
                        if let Some(zero) = zero {
                            number = D::Of::sub(number, D::Of::mul(zero, sum_of_row));
                        }
                        let sum = sums.as_mut_ptr().add(place(register));
                        let mut y = D::Of::mul_add(number, D::Of::mul(scale, step), D::Of::load_floats(sum));
                        if let Some(minimum) = minimum {
                            y = D::Of::neg_mul_add(minimum, D::Of::mul(step, sum_of_row), y);
                        }
                        D::Of::store_floats(sum, y);
                    }
                }
            }
        }
    }
}

/// An entry that enables instructions for a loop of `body.rs`, with as many rows as `sums` has: one of the numbers that are listed,
/// or the last of them.
macro_rules! entry {
    ($name:ident, $features:literal, $body:ident::<$dots:ty, $across:literal>, $most:ident, $($count:literal)*) => {
        /// Adds the products of as many rows as `sums` has, at most as the name's registers hold, with a panel to `sums`.
        ///
        /// # Safety
        /// The processor must have the instructions; the rest is as for the loop.
        #[target_feature(enable = $features)]
        unsafe fn $name(matrix: &Matrix<'_>, panel: CodesOfPanel<'_>, rows: &[u32], sums: &mut [Sums]) {
            // SAFETY: the caller's promise.
            unsafe {
                match sums.len() {
                    $($count => $body::<$dots, $across, $count, $most>(matrix, panel, rows, sums),)*
                    _ => $body::<$dots, $across, $most, $most>(matrix, panel, rows, sums),
                }
            }
        }
    };
}

pub(crate) use entry;
