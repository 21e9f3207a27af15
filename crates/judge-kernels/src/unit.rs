//! The matrix unit (AMX) of Intel's server processors.
//!
//! The unit has eight registers of sixteen rows of 64 bytes. Its instruction `TDPBF16PS` multiplies
//! two registers of bf16 pairs and adds the product to a third of f32 sums, and `TDPBSSD` does so with
//! signed bytes, four to a word, and sums of 32 bits (Intel, *Architecture
//! Instruction Set Extensions Programming Reference*). This file owns the set-up of the unit for a
//! thread and the assembly; `blocked.rs` and `integers.rs` (weights) and `gather_on_unit.rs` (attention)
//! decide what is multiplied. `processor.rs` says whether there is a unit.
//!
//! ```text
//! one step of Unit::multiply: 32 rows by 32 lanes over 16 pairs          registers
//!                         b: 16 pairs × 32 lanes                         tmm0 – tmm3   sums
//!                         tmm6            tmm7                           tmm4, tmm5    rows, 16 each
//! first  16 rows  tmm4    tmm0 += 4·6     tmm1 += 4·7                    tmm6, tmm7    16 lanes each
//! second 16 rows  tmm5    tmm2 += 5·6     tmm3 += 5·7
//! ```
//!
//! ```text
//! one step of Unit::multiply_beside: 16 rows by two times 32 lanes       tmm0 – tmm3   sums
//!                         first b: tmm5, tmm6      second b: tmm7, tmm5  tmm4          rows
//!      16 rows  tmm4      tmm0 += 4·5  tmm1 += 4·6 tmm2 += 4·7  tmm3 += 4·5
//! ```
//!
//! A register of rows is a [`Tile`], `[16 rows][16 words]`. A register of `b` is
//! `[16 words][16 lanes]`: this is how panels of weights and tiles of keys and values
//! lie in memory, so they are loaded without packing.
//!
//! # Order of sums
//!
//! For one element the instruction sums the products of the sixteen first numbers of the pairs, and
//! those of the sixteen second ones, each with fused multiply-adds; it adds both sums, and then
//! adds that to the element. A test of this file spells it out. An element therefore depends on its
//! row and its lane alone, whatever else is in the registers. Sums may be stored and loaded again
//! between any two steps.
//!
//! # Threads
//!
//! The registers belong to a thread, which must configure them before use and release them after. A
//! [`Unit`] is the proof that this thread has done so; it cannot leave the thread. A [`HasUnit`] is
//! the proof that there is a unit at all.

use std::arch::asm;
use std::arch::x86_64::{__m512bh, __m512i, _mm512_cvtne2ps_pbh, _mm512_maskz_loadu_ps, _mm512_storeu_si512};
use std::cell::Cell;
use std::marker::PhantomData;
use std::mem::transmute;

use super::kernel::Kernel;
use super::supported::Supported;
use super::tile::{LANES, Words};

#[cfg(all(feature = "emulated-unit", target_os = "linux"))]
pub(crate) mod emulated;
mod sizes;

pub use sizes::{PAIRS, ROWS};

/// 32-bit words in a cache line.
const LINE: usize = 16;

/// A register of rows, `[ROWS][PAIRS]` words; successive tiles continue the same rows.
pub type Tile = [u32; ROWS * PAIRS];

/// The sums of two registers' rows by [`LANES`] lanes: 4 KiB, of which each quarter is a register.
/// The assembly relies on this layout.
///
/// ```text
///            lanes 0–15    lanes 16–31
/// rows 0–15    tmm0          tmm1
/// rows 16–31   tmm2          tmm3
/// ```
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub struct Sums(pub [[f32; LANES]; 2 * ROWS]);

impl Sums {
    /// All sums zero.
    pub const ZERO: Self = Self([[0.0; LANES]; 2 * ROWS]);
}

/// The part of `coming` that product `index` of `of` prefetches: equal parts in order, the last
/// ones shorter or empty. All products together fetch all of it.
pub fn share(coming: &[u32], index: usize, of: usize) -> &[u32] {
    let each = coming.len().div_ceil(of);
    &coming[(index * each).min(coming.len())..((index + 1) * each).min(coming.len())]
}

/// The operand of `LDTILECFG`: the shapes of the registers, as the instruction reads them from
/// memory.
#[repr(C, align(64))]
struct Configuration {
    /// 1: eight registers of at most 16 rows of 64 bytes. 0 would release them.
    palette: u8,
    /// Where an interrupted instruction resumes; 0.
    start_row: u8,
    /// Zeros.
    reserved: [u8; 14],
    /// Bytes of a row of each register; those beyond the eighth are 0.
    row_bytes: [u16; 16],
    /// Rows of each register; those beyond the eighth are 0.
    rows: [u8; 16],
}

thread_local! {
    /// How many [`Unit`]s this thread holds.
    static HELD: Cell<usize> = const { Cell::new(0) };
}

/// The proof that this processor has a unit which the process may use. Any thread may take a copy.
#[derive(Clone, Copy, Debug)]
pub struct HasUnit(());

impl HasUnit {
    /// The proof, if `kernel` is one that multiplies with the unit.
    pub fn of(kernel: Supported) -> Option<Self> {
        (kernel.of_floats() == Kernel::Amx).then_some(Self(()))
    }

    /// Sets the unit up for this thread, unless somebody on it holds it already. A task of rayon's
    /// takes a hold for itself: another thread may run its parts.
    pub fn hold(self) -> Unit {
        if HELD.replace(HELD.get() + 1) == 0 {
            let mut configuration =
                Configuration { palette: 1, start_row: 0, reserved: [0; 14], row_bytes: [0; 16], rows: [0; 16] };
            configuration.row_bytes[..8].fill(64);
            configuration.rows[..8].fill(16);
            // SAFETY: a `Supported` of this kernel is made only where the unit is there and the system lets it be used; the
            // configuration is that of its palette 1, eight tiles of 16 rows of 64 bytes.
            unsafe { asm!("ldtilecfg [{}]", in(reg) &raw const configuration, options(nostack, readonly)) };
        }
        Unit(PhantomData)
    }
}

/// The proof that the unit multiplies bytes as well.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HasByteUnit(HasUnit);

impl HasByteUnit {
    /// The proof, if `kernel` is the one that multiplies bytes with the unit.
    pub(crate) fn of(kernel: Supported) -> Option<Self> {
        (kernel.kernel() == Kernel::AmxInt8).then_some(Self(HasUnit(())))
    }

    /// See [`HasUnit::hold`].
    pub(crate) fn hold(self) -> ByteUnit {
        ByteUnit { _held: self.0.hold() }
    }
}

/// A [`Unit`] that multiplies bytes.
pub(crate) struct ByteUnit {
    /// It is released with this.
    _held: Unit,
}

/// The exact sums of two registers' rows by [`LANES`] lanes, laid out as [`Sums`].
#[repr(C, align(64))]
pub(crate) struct ByteSums(pub(crate) [[i32; LANES]; 2 * ROWS]);

impl ByteSums {
    /// All sums zero.
    pub(crate) const ZERO: Self = Self([[0; LANES]; 2 * ROWS]);
}

impl ByteUnit {
    /// Sets `sums` to the products of rows of signed bytes, [`ROWS`] or twice as many, with the lanes of
    /// `b`, four bytes to a word. Each part of the rows is `[ROWS][stride]` words, of which the first as
    /// many as `b` has are taken, whole registers of [`PAIRS`]; without second rows the lower half of
    /// `sums` stays as it is.
    ///
    /// # Panics
    /// If there is nothing to multiply, `b` is no whole number of registers, rows are too short, or the second ones have another stride.
    pub(crate) fn multiply(
        &self,
        (first, second): (Words<'_>, Option<Words<'_>>),
        b: &[[u32; LANES]],
        sums: &mut ByteSums,
    ) {
        let steps = b.len() / PAIRS;
        let are_there = |rows: &Words<'_>| rows.data.len() >= (ROWS - 1) * rows.stride + b.len();
        assert!(
            steps > 0 && b.len().is_multiple_of(PAIRS) && are_there(&first) && second.as_ref().is_none_or(are_there)
        );
        assert!(second.as_ref().is_none_or(|second| second.stride == first.stride));
        let (stride, sums) = (4 * first.stride, sums.0.as_mut_ptr());
        // SAFETY: the unit is set up for tiles of 16 rows of 64 bytes. Each step reads 64 bytes of each of 16 rows, `stride`
        // bytes apart, and 16 words of two times 16 lanes, 128 bytes apart, which the assertions say are there; `sums` has room for two
        // by two tiles whose rows are 128 bytes apart.
        unsafe {
            match second {
                Some(second) => asm!(
                    "tilezero tmm0", "tilezero tmm1", "tilezero tmm2", "tilezero tmm3",
                    "2:",
                    "tileloadd tmm4, [{a} + {stride}]",
                    "tileloadd tmm6, [{b} + {row}]",
                    "tileloadd tmm7, [{b} + {row} + 64]",
                    "tdpbssd tmm0, tmm4, tmm6",
                    "tileloadd tmm5, [{a2} + {stride}]",
                    "tdpbssd tmm1, tmm4, tmm7",
                    "tdpbssd tmm2, tmm5, tmm6",
                    "tdpbssd tmm3, tmm5, tmm7",
                    "add {a}, 64", "add {a2}, 64", "add {b}, 2048",
                    "dec {steps}",
                    "jnz 2b",
                    "tilestored [{sums} + {row}], tmm0",
                    "tilestored [{sums} + {row} + 64], tmm1",
                    "tilestored [{sums} + {row} + 2048], tmm2",
                    "tilestored [{sums} + {row} + 2112], tmm3",
                    a = inout(reg) first.data.as_ptr() => _, a2 = inout(reg) second.data.as_ptr() => _,
                    b = inout(reg) b.as_ptr() => _, steps = inout(reg) steps => _,
                    stride = in(reg) stride, row = in(reg) 128_usize, sums = in(reg) sums,
                    out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                    out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _, options(nostack),
                ),
                None => asm!(
                    "tilezero tmm0", "tilezero tmm1",
                    "2:",
                    "tileloadd tmm4, [{a} + {stride}]",
                    "tileloadd tmm6, [{b} + {row}]",
                    "tileloadd tmm7, [{b} + {row} + 64]",
                    "tdpbssd tmm0, tmm4, tmm6",
                    "tdpbssd tmm1, tmm4, tmm7",
                    "add {a}, 64", "add {b}, 2048",
                    "dec {steps}",
                    "jnz 2b",
                    "tilestored [{sums} + {row}], tmm0",
                    "tilestored [{sums} + {row} + 64], tmm1",
                    a = inout(reg) first.data.as_ptr() => _, b = inout(reg) b.as_ptr() => _, steps = inout(reg) steps => _,
                    stride = in(reg) stride, row = in(reg) 128_usize, sums = in(reg) sums,
                    out("tmm0") _, out("tmm1") _, out("tmm4") _, out("tmm6") _, out("tmm7") _, options(nostack),
                ),
            }
        }
    }
}

/// The unit, set up for this thread as long as any of these lives on it. The first holder
/// configures it, and the last one to be dropped releases it, so a holder may call another. It is
/// not `Send`.
pub struct Unit(PhantomData<*const ()>);

impl Unit {
    /// Sets `sums` to the product of rows and lanes, or adds it where `accumulate` is true.
    ///
    /// The rows are one or two registers', each as tiles that continue along the pairs; without
    /// second rows the lower half of `sums` stays as it is. `b` is `[tiles * PAIRS][stride]` words,
    /// of which the first [`LANES`] of each row are taken. Meanwhile `coming` is fetched into the
    /// second-level cache for the step that wants it next, some lines with each tile; it is not read.
    ///
    /// The assembly's operands:
    ///
    /// | operand | what it holds |
    /// |---|---|
    /// | `a`, `a2` | the tiles of the next step, 1,024 bytes each |
    /// | `b`, `stride`, `step` | the words of the next step; bytes to the next pair, and to the next step |
    /// | `steps` | steps that are left |
    /// | `sums` | where sums are loaded from and stored to: rows of 128 bytes, second rows from byte 2,048 |
    /// | `row` | bytes from row to row: 128 for sums, 64 for tiles |
    /// | `left` | first whether `accumulate`, then the lines that are left to prefetch in this step |
    /// | `coming`, `lines` | the next line to prefetch, and how many there are for a step |
    ///
    /// # Panics
    /// If there is no tile, the second rows have another number of tiles than the first, or `b` is
    /// too short.
    pub fn multiply(
        &self,
        (first, second): (&[Tile], Option<&[Tile]>),
        b: Words<'_>,
        accumulate: bool,
        sums: &mut Sums,
        coming: &[u32],
    ) {
        let steps = first.len();
        assert!(steps > 0 && second.is_none_or(|second| second.len() == steps) && b.stride >= LANES);
        assert!(b.data.len() >= (steps * PAIRS - 1) * b.stride + LANES);
        let sums = sums.0.as_mut_ptr();
        let lines = coming.len().div_ceil(LINE).div_ceil(steps);
        // SAFETY: the unit is set up for tiles of 16 rows of 64 bytes. Each step reads a tile of either row and 16 pairs of two times
        // 16 lanes, which the assertions say are there; `sums` has room for two by two tiles whose rows are 128 bytes apart. What is
        // fetched ahead may lie anywhere.
        unsafe {
            match second {
                Some(second) => {
                    asm!(
                        "test {left}, {left}",
                        "jnz 5f",
                        "tilezero tmm0", "tilezero tmm1", "tilezero tmm2", "tilezero tmm3",
                        "jmp 6f",
                        "5:",
                        "tileloadd tmm0, [{sums} + {row}]",
                        "tileloadd tmm1, [{sums} + {row} + 64]",
                        "tileloadd tmm2, [{sums} + {row} + 2048]",
                        "tileloadd tmm3, [{sums} + {row} + 2112]",
                        "6:",
                        "mov {row:e}, 64",
                        "2:",
                        "tileloadd tmm4, [{a} + {row}]",
                        "tileloadd tmm6, [{b} + {stride}]",
                        "tileloadd tmm7, [{b} + {stride} + 64]",
                        "tdpbf16ps tmm0, tmm4, tmm6",
                        "tileloadd tmm5, [{a2} + {row}]",
                        "tdpbf16ps tmm1, tmm4, tmm7",
                        "tdpbf16ps tmm2, tmm5, tmm6",
                        "tdpbf16ps tmm3, tmm5, tmm7",
                        "mov {left}, {lines}",
                        "test {left}, {left}",
                        "jz 4f",
                        "3:",
                        "prefetcht1 [{coming}]",
                        "add {coming}, 64",
                        "dec {left}",
                        "jnz 3b",
                        "4:",
                        "add {a}, 1024", "add {a2}, 1024", "add {b}, {step}",
                        "dec {steps}",
                        "jnz 2b",
                        "shl {row}, 1",
                        "tilestored [{sums} + {row}], tmm0",
                        "tilestored [{sums} + {row} + 64], tmm1",
                        "tilestored [{sums} + {row} + 2048], tmm2",
                        "tilestored [{sums} + {row} + 2112], tmm3",
                        a = inout(reg) first.as_ptr() => _, a2 = inout(reg) second.as_ptr() => _,
                        b = inout(reg) b.data.as_ptr() => _, steps = inout(reg) steps => _,
                        coming = inout(reg) coming.as_ptr() => _, lines = in(reg) lines, left = inout(reg) usize::from(accumulate) => _,
                        row = inout(reg) 128_usize => _, stride = in(reg) 4 * b.stride, step = in(reg) 4 * PAIRS * b.stride,
                        sums = in(reg) sums, out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                        out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _, options(nostack),
                    );
                }
                None => asm!(
                    "test {left}, {left}",
                    "jnz 5f",
                    "tilezero tmm0", "tilezero tmm1",
                    "jmp 6f",
                    "5:",
                    "tileloadd tmm0, [{sums} + {row}]",
                    "tileloadd tmm1, [{sums} + {row} + 64]",
                    "6:",
                    "mov {row:e}, 64",
                    "2:",
                    "tileloadd tmm4, [{a} + {row}]",
                    "tileloadd tmm6, [{b} + {stride}]",
                    "tileloadd tmm7, [{b} + {stride} + 64]",
                    "tdpbf16ps tmm0, tmm4, tmm6",
                    "tdpbf16ps tmm1, tmm4, tmm7",
                    "mov {left}, {lines}",
                    "test {left}, {left}",
                    "jz 4f",
                    "3:",
                    "prefetcht1 [{coming}]",
                    "add {coming}, 64",
                    "dec {left}",
                    "jnz 3b",
                    "4:",
                    "add {a}, 1024", "add {b}, {step}",
                    "dec {steps}",
                    "jnz 2b",
                    "shl {row}, 1",
                    "tilestored [{sums} + {row}], tmm0",
                    "tilestored [{sums} + {row} + 64], tmm1",
                    a = inout(reg) first.as_ptr() => _, b = inout(reg) b.data.as_ptr() => _, steps = inout(reg) steps => _,
                    coming = inout(reg) coming.as_ptr() => _, lines = in(reg) lines, left = inout(reg) usize::from(accumulate) => _,
                    row = inout(reg) 128_usize => _, stride = in(reg) 4 * b.stride, step = in(reg) 4 * PAIRS * b.stride,
                    sums = in(reg) sums, out("tmm0") _, out("tmm1") _,
                    out("tmm4") _, out("tmm6") _, out("tmm7") _, options(nostack),
                ),
            }
        }
    }

    /// [`multiply`](Self::multiply) of one register's rows with two tiles of lanes side by side. Of both `sums` the lower half stays
    /// as it is.
    ///
    /// The assembly's operands, all general registers that there are, are as there, but that as many lines of the second `coming` are fetched as of the first.
    ///
    /// # Panics
    /// If there is no tile, the strides of `b` differ, or one is too short.
    pub(crate) fn multiply_beside(
        &self,
        rows: &[Tile],
        b: [Words<'_>; 2],
        accumulate: bool,
        sums: &mut [Sums; 2],
        coming: [&[u32]; 2],
    ) {
        let steps = rows.len();
        let stride = b[0].stride;
        assert!(steps > 0 && b.iter().all(|b| b.stride == stride && stride >= LANES));
        assert!(b.iter().all(|b| b.data.len() >= (steps * PAIRS - 1) * stride + LANES));
        let [first, second] = sums.each_mut().map(|sums| sums.0.as_mut_ptr());
        // Where one is empty the other is asked for twice: an address of nothing would have to be looked up.
        let coming = match coming {
            [first, []] => [first, first],
            [[], second] => [second, second],
            both => both,
        };
        let lines = coming.map(|coming| coming.len().div_ceil(LINE).div_ceil(steps));
        let lines = lines[0].max(lines[1]);
        // SAFETY: the unit is set up for tiles of 16 rows of 64 bytes. Each step reads a tile of the rows and 16 pairs of two times two
        // times 16 lanes, which the assertions say are there; both `sums` have room for two tiles whose rows are 128 bytes apart. What is
        // fetched ahead may lie anywhere.
        unsafe {
            asm!(
                "test {left}, {left}",
                "jnz 5f",
                "tilezero tmm0", "tilezero tmm1", "tilezero tmm2", "tilezero tmm3",
                "jmp 6f",
                "5:",
                "tileloadd tmm0, [{first} + {row}]",
                "tileloadd tmm1, [{first} + {row} + 64]",
                "tileloadd tmm2, [{second} + {row}]",
                "tileloadd tmm3, [{second} + {row} + 64]",
                "6:",
                "mov {row:e}, 64",
                "2:",
                "tileloadd tmm4, [{a} + {row}]",
                "tileloadd tmm5, [{b} + {stride}]",
                "tileloadd tmm6, [{b} + {stride} + 64]",
                "tdpbf16ps tmm0, tmm4, tmm5",
                "tileloadd tmm7, [{b2} + {stride}]",
                "tdpbf16ps tmm1, tmm4, tmm6",
                "tileloadd tmm5, [{b2} + {stride} + 64]",
                "tdpbf16ps tmm2, tmm4, tmm7",
                "tdpbf16ps tmm3, tmm4, tmm5",
                "mov {left}, {lines}",
                "test {left}, {left}",
                "jz 4f",
                "3:",
                "prefetcht1 [{coming}]",
                "prefetcht1 [{coming2}]",
                "add {coming}, 64", "add {coming2}, 64",
                "dec {left}",
                "jnz 3b",
                "4:",
                "add {a}, 1024", "add {b}, {step}", "add {b2}, {step}",
                "dec {steps}",
                "jnz 2b",
                "shl {row}, 1",
                "tilestored [{first} + {row}], tmm0",
                "tilestored [{first} + {row} + 64], tmm1",
                "tilestored [{second} + {row}], tmm2",
                "tilestored [{second} + {row} + 64], tmm3",
                a = inout(reg) rows.as_ptr() => _, b = inout(reg) b[0].data.as_ptr() => _, b2 = inout(reg) b[1].data.as_ptr() => _,
                steps = inout(reg) steps => _, coming = inout(reg) coming[0].as_ptr() => _,
                coming2 = inout(reg) coming[1].as_ptr() => _, lines = in(reg) lines, left = inout(reg) usize::from(accumulate) => _,
                row = inout(reg) 128_usize => _, stride = in(reg) 4 * stride, step = in(reg) 4 * PAIRS * stride,
                first = in(reg) first, second = in(reg) second,
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _, options(nostack),
            );
        }
    }

    /// Packs at most [`ROWS`] rows into successive tiles, rounded to bf16 (to nearest, ties to
    /// even). Missing rows, and what lies behind a row's last number, become zeros.
    ///
    /// # Panics
    /// If a row has more numbers than the tiles.
    pub fn pack<'a>(&self, rows: impl IntoIterator<Item = &'a [f32]>, tiles: &mut [Tile]) {
        let mut rows = rows.into_iter();
        let rows: [&[f32]; ROWS] = std::array::from_fn(|_| rows.next().unwrap_or_default());
        assert!(rows.iter().all(|row| row.len() <= tiles.len() * 2 * PAIRS));
        // SAFETY: where there is a unit, there is AVX-512 with BF16.
        unsafe { pack_rows(&rows, tiles) };
    }
}

/// Packs rows into tiles, one tile of all rows after another: reading sixteen rows side by side
/// keeps more of the memory busy than reading them in turn. A row that is shorter than the tiles is
/// read under a mask.
///
/// # Safety
/// The processor must have AVX-512 with BF16.
#[target_feature(enable = "avx512f,avx512bf16")]
unsafe fn pack_rows(rows: &[&[f32]; ROWS], tiles: &mut [Tile]) {
    for (step, tile) in tiles.iter_mut().enumerate() {
        for (row, words) in rows.iter().zip(tile.as_chunks_mut::<PAIRS>().0) {
            let numbers = row.get(2 * PAIRS * step..).unwrap_or_default();
            // Of so many numbers the first are there.
            let mask = |numbers: &[f32]| ((1_u32 << numbers.len().min(16)) - 1) as u16;
            let (low, high) = numbers.split_at(numbers.len().min(16));
            // SAFETY: no more is read than is there, and sixteen words are written. Both types are 512 bits.
            unsafe {
                let low = _mm512_maskz_loadu_ps(mask(low), low.as_ptr());
                let high = _mm512_maskz_loadu_ps(mask(high), high.as_ptr());
                let pairs: __m512bh = _mm512_cvtne2ps_pbh(high, low);
                _mm512_storeu_si512(words.as_mut_ptr().cast(), transmute::<__m512bh, __m512i>(pairs));
            }
        }
    }
}

impl Drop for Unit {
    /// Releases the unit if this was its last holder on this thread. The registers' state then need
    /// not be saved when threads are switched.
    fn drop(&mut self) {
        let held = HELD.get() - 1;
        HELD.set(held);
        if held == 0 {
            // SAFETY: the unit is there, and nobody on this thread holds it any longer.
            unsafe { asm!("tilerelease", options(nostack, nomem)) };
        }
    }
}

#[cfg(test)]
mod tests {
    use half::bf16;

    use super::*;

    #[allow(clippy::print_stderr)] // a test that is skipped says so
    fn unit() -> Option<HasUnit> {
        let found = Supported::all().find_map(HasUnit::of);
        if found.is_none() {
            eprintln!("skipped: this processor has no unit of matrices, and it is not emulated");
        }
        found
    }

    #[test]
    fn a_holder_may_call_another() {
        let Some(unit) = unit() else { return };
        assert!(HasUnit::of(Supported::PORTABLE).is_none());
        let (a, b) = ([[0x3f80_3f80; ROWS * PAIRS]; 2], vec![0x3f80_3f80; PAIRS * LANES]);
        let outer = unit.hold();
        drop(unit.hold());
        // Without the first holder's tiles this would be an illegal instruction.
        let mut sums = Sums::ZERO;
        let b = Words { data: &b, stride: LANES };
        outer.multiply((&a[..1], Some(&a[1..])), b, false, &mut sums, &[]);
        assert_eq!(sums.0, [[32.0; LANES]; 2 * ROWS]);
    }

    /// What the instruction does to one element, by its description.
    fn step(sum: f32, a: &[f32], b: &[f32]) -> f32 {
        let along =
            |first: usize| a.iter().zip(b).skip(first).step_by(2).fold(0.0_f32, |sum, (a, b)| a.mul_add(*b, sum));
        sum + (along(0) + along(1))
    }

    #[test]
    fn sums_are_made_in_the_order_that_is_described_however_they_are_cut() {
        let Some(unit) = unit() else { return };
        let unit = unit.hold();
        const STEPS: usize = 5;
        const WIDTH: usize = STEPS * 2 * PAIRS - 3;
        const STRIDE: usize = LANES + 16;
        let number = |i: usize| bf16::from_f32(crate::cases::number(0, i + 7)).to_f32();
        let rows: Vec<f32> = (0..2 * ROWS * WIDTH).map(number).collect();
        let b = |k: usize, lane: usize| number(100_003 + k * LANES + lane);
        let mut words = vec![0; STEPS * PAIRS * STRIDE];
        for (i, word) in words.iter_mut().enumerate() {
            let (pair, lane) = (i / STRIDE, i % STRIDE);
            *word = b(2 * pair, lane).to_bits() >> 16 | b(2 * pair + 1, lane).to_bits() & 0xffff_0000;
        }
        let mut tiles = [[[u32::MAX; ROWS * PAIRS]; STEPS]; 2];
        for (tiles, rows) in tiles.iter_mut().zip(rows.chunks(ROWS * WIDTH)) {
            unit.pack(rows.chunks(WIDTH), tiles);
        }
        let mut whole = Sums::ZERO;
        let words = |from: usize| Words { data: &words[from * PAIRS * STRIDE..], stride: STRIDE };
        unit.multiply((&tiles[0], Some(&tiles[1])), words(0), false, &mut whole, &[1; 100]);
        for (row, (sums, numbers)) in whole.0.iter().zip(rows.chunks(WIDTH)).enumerate() {
            for (lane, &found) in sums.iter().enumerate() {
                let mut a = numbers.to_vec();
                a.resize(STEPS * 2 * PAIRS, 0.0);
                let lanes: Vec<f32> = (0..a.len()).map(|k| b(k, lane)).collect();
                let steps = a.chunks(2 * PAIRS).zip(lanes.chunks(2 * PAIRS));
                let expected = steps.fold(0.0, |sum, (a, b)| step(sum, a, b));
                assert_eq!(found.to_bits(), expected.to_bits(), "row {row}, lane {lane}: {found} {expected}");
            }
        }
        // One register's rows alone, in two pieces, and fewer rows than a register has.
        let mut few = Sums([[f32::NAN; LANES]; 2 * ROWS]);
        let mut tiles = [[u32::MAX; ROWS * PAIRS]; STEPS];
        unit.pack(rows.chunks(WIDTH).take(3), &mut tiles);
        unit.multiply((&tiles[..2], None), words(0), false, &mut few, &[]);
        unit.multiply((&tiles[2..], None), words(2), true, &mut few, &[]);
        // The same with other lanes beside them: the first ones once more, one step later.
        let mut beside = [Sums([[f32::NAN; LANES]; 2 * ROWS]); 2];
        unit.multiply_beside(&tiles[..2], [words(0), words(1)], false, &mut beside, [&[], &[1; 50]]);
        unit.multiply_beside(&tiles[2..4], [words(2), words(3)], true, &mut beside, [&[1; 50], &[]]);
        unit.multiply_beside(&tiles[4..], [words(4), words(0)], true, &mut beside, [&[], &[]]);
        assert_eq!(beside[0].0[..ROWS], few.0[..ROWS]);
        let mut later = Sums::ZERO;
        unit.multiply((&tiles[..4], None), words(1), false, &mut later, &[]);
        unit.multiply((&tiles[4..], None), words(0), true, &mut later, &[]);
        assert_eq!(beside[1].0[..ROWS], later.0[..ROWS]);
        assert_eq!(few.0[..3], whole.0[..3]);
        assert!(few.0[3..ROWS].iter().flatten().all(|&x| x == 0.0) && few.0[ROWS].iter().all(|x| x.is_nan()));
    }
}
