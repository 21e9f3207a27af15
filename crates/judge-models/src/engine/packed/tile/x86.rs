//! The bodies of [`multiply_add`](super::multiply_add) with instructions of x86-64.
//!
//! Each entry takes a [`Block`] and the number of rows that are left, and works on as many rows as
//! its largest block of registers holds, or on a smaller block. It returns how many it took, and
//! the caller loops. All blocks of one body sum a row in the same order, so the size does not show.
//!
//! ```text
//! registers of avx512_bf16_rows::<12>        per word:  2 loads of b, 12 broadcasts of a, 24 products
//!   sums   12 rows × 2 × 16 lanes    24
//!   b      2 × 16 lanes               2      sums start at zero or in `out`, and are put there once
//!   a      1 word, broadcast          1
//!                                    27 of 32
//!
//! body                 largest block   registers        sums   b    a   mask
//! avx512_bf16          12 × 32         32 of 512 bits   24     2    1
//! avx512               12 × 32         32 of 512 bits   24     2    1
//! avx512_widening       8 × 32         32 of 512 bits   16     4    2   1
//! avx2                  6 × 16         16 of 256 bits   12     2    1
//! avx2_widening         4 × 16         16 of 256 bits    8     4    2   1
//! ```
//!
//! A row alone takes all 32 lanes at a time with AVX2 too: so lines are read in their order, and there are enough sums which do not
//! wait for one another.
//!
//! The widening bodies split each word into its two f32 numbers, the first from the low half, and
//! add both products with fused multiply-adds in this order. AVX-512 and AVX2 therefore give the
//! same bits, and the same as bodies for single numbers give for pairs that were widened before.
//!
//! To add a body: write it against [`Block`], name it in `multiply_add`, and let the kernel's
//! detection in `supported.rs` cover its instructions. The tests of `tile.rs` compare it with sums in
//! f64, and rows alone with rows together.

use std::arch::x86_64::{
    __m256, __m256i, __m512, __m512bh, _mm256_add_ps, _mm256_and_si256, _mm256_castsi256_ps, _mm256_fmadd_ps,
    _mm256_loadu_ps, _mm256_loadu_si256, _mm256_set1_epi32, _mm256_set1_ps, _mm256_setzero_ps, _mm256_slli_epi32,
    _mm256_storeu_ps, _mm512_add_ps, _mm512_and_si512, _mm512_castsi512_ps, _mm512_dpbf16_ps, _mm512_fmadd_ps,
    _mm512_loadu_ps, _mm512_loadu_si512, _mm512_set1_epi32, _mm512_set1_ps, _mm512_setzero_ps, _mm512_slli_epi32,
    _mm512_storeu_ps,
};
use std::mem::transmute;

use super::operands::{Before, Block, widen};

/// Rows of pairs with `VDPBF16PS`, which multiplies and sums pairs of bf16. Takes 12, 8, 4, 2 or 1
/// of the `rows` rows that are left and returns how many.
///
/// # Safety
/// The processor must have AVX-512 with BF16. `rows` rows, at least one, of `block` must be inside
/// its matrices, and those of `out` not aliased.
#[target_feature(enable = "avx512f,avx512bf16")]
pub(super) unsafe fn avx512_bf16(block: Block, rows: usize) -> usize {
    // SAFETY: the caller's promise covers every size taken.
    unsafe {
        match rows {
            12.. => avx512_bf16_rows::<12>(block),
            8..12 => avx512_bf16_rows::<8>(block),
            4..8 => avx512_bf16_rows::<4>(block),
            2..4 => avx512_bf16_rows::<2>(block),
            _ => avx512_bf16_rows::<1>(block),
        }
    }
}

/// A block of `ROWS` rows of pairs by 32 lanes.
///
/// # Safety
/// As for [`avx512_bf16`], with `ROWS` rows.
#[target_feature(enable = "avx512f,avx512bf16")]
unsafe fn avx512_bf16_rows<const ROWS: usize>(block: Block) -> usize {
    // SAFETY: `ROWS` rows are there, by the caller's promise.
    unsafe {
        let mut sums = sums_512::<ROWS>(block);
        for pair in 0..block.words {
            let b = block.b.add(pair * block.b_stride);
            let b0: __m512bh = transmute(_mm512_loadu_si512(b.cast()));
            let b1: __m512bh = transmute(_mm512_loadu_si512(b.add(16).cast()));
            for (row, sums) in sums.iter_mut().enumerate() {
                let a: __m512bh =
                    transmute(_mm512_set1_epi32((*block.a.add(row * block.a_stride + pair)).cast_signed()));
                sums[0] = _mm512_dpbf16_ps(sums[0], a, b0);
                sums[1] = _mm512_dpbf16_ps(sums[1], a, b1);
            }
        }
        write_512(block, &sums);
    }
    ROWS
}

/// Rows of pairs, widened to f32 on the way. Takes 8, 4, 2 or 1 of the `rows` rows that are left
/// and returns how many.
///
/// # Safety
/// The processor must have AVX-512. `rows` rows, at least one, of `block` must be inside its
/// matrices, and those of `out` not aliased.
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn avx512_widening(block: Block, rows: usize) -> usize {
    // SAFETY: the caller's promise covers every size taken.
    unsafe {
        match rows {
            8.. => avx512_widening_rows::<8>(block),
            4..8 => avx512_widening_rows::<4>(block),
            2..4 => avx512_widening_rows::<2>(block),
            _ => avx512_widening_rows::<1>(block),
        }
    }
}

/// A block of `ROWS` rows of pairs by 32 lanes, widened.
///
/// # Safety
/// As for [`avx512_widening`], with `ROWS` rows.
#[target_feature(enable = "avx512f")]
unsafe fn avx512_widening_rows<const ROWS: usize>(block: Block) -> usize {
    // SAFETY: `ROWS` rows are there, by the caller's promise.
    unsafe {
        let high = _mm512_set1_epi32(0xffff_0000_u32.cast_signed());
        let mut sums = sums_512::<ROWS>(block);
        for pair in 0..block.words {
            let b = block.b.add(pair * block.b_stride);
            let words = [_mm512_loadu_si512(b.cast()), _mm512_loadu_si512(b.add(16).cast())];
            let first = words.map(|words| _mm512_castsi512_ps(_mm512_slli_epi32::<16>(words)));
            let second = words.map(|words| _mm512_castsi512_ps(_mm512_and_si512(words, high)));
            for (row, sums) in sums.iter_mut().enumerate() {
                let a = _mm512_set1_epi32((*block.a.add(row * block.a_stride + pair)).cast_signed());
                let a0 = _mm512_castsi512_ps(_mm512_slli_epi32::<16>(a));
                let a1 = _mm512_castsi512_ps(_mm512_and_si512(a, high));
                for half in 0..2 {
                    sums[half] = _mm512_fmadd_ps(a0, first[half], sums[half]);
                    sums[half] = _mm512_fmadd_ps(a1, second[half], sums[half]);
                }
            }
        }
        write_512(block, &sums);
    }
    ROWS
}

/// What a block's sums start at.
///
/// # Safety
/// The processor must have AVX-512; `ROWS` rows of `out` must be readable.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn sums_512<const ROWS: usize>(block: Block) -> [[__m512; 2]; ROWS] {
    let mut sums = [[_mm512_setzero_ps(); 2]; ROWS];
    for (row, sums) in sums.iter_mut().enumerate().filter(|_| block.before == Before::Continued) {
        for (half, sum) in sums.iter_mut().enumerate() {
            // SAFETY: `ROWS` rows are there, by the caller's promise.
            *sum = unsafe { _mm512_loadu_ps(block.out.add(row * block.out_stride + 16 * half)) };
        }
    }
    sums
}

/// Writes a block's sums to `out`, or adds them.
///
/// # Safety
/// The processor must have AVX-512; `ROWS` rows of `out` must be writable.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn write_512<const ROWS: usize>(block: Block, sums: &[[__m512; 2]; ROWS]) {
    for (row, sums) in sums.iter().enumerate() {
        for (half, &sum) in sums.iter().enumerate() {
            // SAFETY: `ROWS` rows are there, by the caller's promise.
            unsafe {
                let out = block.out.add(row * block.out_stride + 16 * half);
                let is_added = block.before == Before::Added;
                _mm512_storeu_ps(out, if is_added { _mm512_add_ps(_mm512_loadu_ps(out), sum) } else { sum });
            }
        }
    }
}

/// Rows of single numbers. Takes 12, 8, 4, 2 or 1 of the `rows` rows that are left and returns how
/// many.
///
/// # Safety
/// The processor must have AVX-512. `rows` rows, at least one, of `block` must be inside its
/// matrices, and those of `out` not aliased.
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn avx512(block: Block, rows: usize) -> usize {
    // SAFETY: the caller's promise covers every size taken.
    unsafe {
        match rows {
            12.. => avx512_rows::<12>(block),
            8..12 => avx512_rows::<8>(block),
            4..8 => avx512_rows::<4>(block),
            2..4 => avx512_rows::<2>(block),
            _ => avx512_rows::<1>(block),
        }
    }
}

/// A block of `ROWS` rows of single numbers by 32 lanes.
///
/// # Safety
/// As for [`avx512`], with `ROWS` rows.
#[target_feature(enable = "avx512f")]
unsafe fn avx512_rows<const ROWS: usize>(block: Block) -> usize {
    // SAFETY: `ROWS` rows are there, by the caller's promise.
    unsafe {
        let mut sums = sums_512::<ROWS>(block);
        for k in 0..block.words {
            let b: *const f32 = block.b.add(k * block.b_stride).cast();
            let b = [_mm512_loadu_ps(b), _mm512_loadu_ps(b.add(16))];
            for (row, sums) in sums.iter_mut().enumerate() {
                let a = _mm512_set1_ps(f32::from_bits(*block.a.add(row * block.a_stride + k)));
                sums[0] = _mm512_fmadd_ps(a, b[0], sums[0]);
                sums[1] = _mm512_fmadd_ps(a, b[1], sums[1]);
            }
        }
        write_512(block, &sums);
    }
    ROWS
}

/// Rows of single numbers. Takes 6, 4, 2 or 1 of the `rows` rows that are left and returns how
/// many. Sixteen registers hold 16 lanes of such a block, so the 32 lanes are worked on in two
/// halves.
///
/// # Safety
/// The processor must have AVX2 with FMA. `rows` rows, at least one, of `block` must be inside its
/// matrices, and those of `out` not aliased.
#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn avx2(block: Block, rows: usize) -> usize {
    // SAFETY: the caller's promise covers every size taken.
    unsafe {
        let rows = match rows {
            6.. => 6,
            4..6 => 4,
            2..4 => 2,
            _ => 1,
        };
        if rows == 1 {
            avx2_rows::<1, 4>(block);
            return rows;
        }
        for lane in [0, 16] {
            let half = Block { b: block.b.add(lane), out: block.out.add(lane), ..block };
            match rows {
                6 => avx2_rows::<6, 2>(half),
                4 => avx2_rows::<4, 2>(half),
                _ => avx2_rows::<2, 2>(half),
            }
        }
        rows
    }
}

/// A block of `ROWS` rows of single numbers by the first lanes of `block`, `ACROSS` registers of them.
///
/// # Safety
/// As for [`avx2`], with `ROWS` rows.
#[target_feature(enable = "avx2,fma")]
unsafe fn avx2_rows<const ROWS: usize, const ACROSS: usize>(block: Block) {
    // SAFETY: `ROWS` rows are there, by the caller's promise.
    unsafe {
        let mut sums = sums_256::<ROWS, ACROSS>(block);
        for k in 0..block.words {
            let b: *const f32 = block.b.add(k * block.b_stride).cast();
            let b: [__m256; ACROSS] = std::array::from_fn(|register| _mm256_loadu_ps(b.add(8 * register)));
            for (row, sums) in sums.iter_mut().enumerate() {
                let a = _mm256_set1_ps(f32::from_bits(*block.a.add(row * block.a_stride + k)));
                for (sum, b) in sums.iter_mut().zip(b) {
                    *sum = _mm256_fmadd_ps(a, b, *sum);
                }
            }
        }
        write_256(block, &sums);
    }
}

/// What the sums of some registers start at.
///
/// # Safety
/// The processor must have AVX2; `ROWS` rows of `out` must be readable.
#[inline]
#[target_feature(enable = "avx2,fma")]
unsafe fn sums_256<const ROWS: usize, const ACROSS: usize>(block: Block) -> [[__m256; ACROSS]; ROWS] {
    let mut sums = [[_mm256_setzero_ps(); ACROSS]; ROWS];
    for (row, sums) in sums.iter_mut().enumerate().filter(|_| block.before == Before::Continued) {
        for (half, sum) in sums.iter_mut().enumerate() {
            // SAFETY: `ROWS` rows are there, by the caller's promise.
            *sum = unsafe { _mm256_loadu_ps(block.out.add(row * block.out_stride + 8 * half)) };
        }
    }
    sums
}

/// Writes the sums of some registers to `out`, or adds them.
///
/// # Safety
/// The processor must have AVX2; `ROWS` rows of `out` must be writable.
#[inline]
#[target_feature(enable = "avx2,fma")]
unsafe fn write_256<const ROWS: usize, const ACROSS: usize>(block: Block, sums: &[[__m256; ACROSS]; ROWS]) {
    for (row, sums) in sums.iter().enumerate() {
        for (half, &sum) in sums.iter().enumerate() {
            // SAFETY: `ROWS` rows are there, by the caller's promise.
            unsafe {
                let out = block.out.add(row * block.out_stride + 8 * half);
                let is_added = block.before == Before::Added;
                _mm256_storeu_ps(out, if is_added { _mm256_add_ps(_mm256_loadu_ps(out), sum) } else { sum });
            }
        }
    }
}

/// Rows of pairs, widened to f32 on the way, in two halves of 16 lanes. Takes 4, 2 or 1 of the
/// `rows` rows that are left and returns how many.
///
/// # Safety
/// The processor must have AVX2 with FMA. `rows` rows, at least one, of `block` must be inside its
/// matrices, and those of `out` not aliased.
#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn avx2_widening(block: Block, rows: usize) -> usize {
    // SAFETY: the caller's promise covers every size taken.
    unsafe {
        let rows = match rows {
            4.. => 4,
            2..4 => 2,
            _ => 1,
        };
        if rows == 1 {
            avx2_widening_rows::<1, 4>(block);
            return rows;
        }
        for lane in [0, 16] {
            let half = Block { b: block.b.add(lane), out: block.out.add(lane), ..block };
            match rows {
                4 => avx2_widening_rows::<4, 2>(half),
                _ => avx2_widening_rows::<2, 2>(half),
            }
        }
        rows
    }
}

/// A block of `ROWS` rows of pairs by the first lanes of `block`, `ACROSS` registers of them, widened.
///
/// # Safety
/// As for [`avx2_widening`], with `ROWS` rows.
#[target_feature(enable = "avx2,fma")]
unsafe fn avx2_widening_rows<const ROWS: usize, const ACROSS: usize>(block: Block) {
    // SAFETY: `ROWS` rows are there, by the caller's promise.
    unsafe {
        let high = _mm256_set1_epi32(0xffff_0000_u32.cast_signed());
        let mut sums = sums_256::<ROWS, ACROSS>(block);
        for pair in 0..block.words {
            let b = block.b.add(pair * block.b_stride);
            let words: [__m256i; ACROSS] =
                std::array::from_fn(|register| _mm256_loadu_si256(b.add(8 * register).cast()));
            let first = words.map(|words| _mm256_castsi256_ps(_mm256_slli_epi32::<16>(words)));
            let second = words.map(|words| _mm256_castsi256_ps(_mm256_and_si256(words, high)));
            for (row, sums) in sums.iter_mut().enumerate() {
                let [a0, a1] = widen(*block.a.add(row * block.a_stride + pair));
                let (a0, a1) = (_mm256_set1_ps(a0), _mm256_set1_ps(a1));
                for (sum, (first, second)) in sums.iter_mut().zip(first.into_iter().zip(second)) {
                    *sum = _mm256_fmadd_ps(a1, second, _mm256_fmadd_ps(a0, first, *sum));
                }
            }
        }
        write_256(block, &sums);
    }
}
