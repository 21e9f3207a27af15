//! Small products: rows against one tile of weights, keys or values, in bf16 with f32 sums.
//!
//! Numbers lie in pairs, two bf16 to a word, the first in the low half: a row is `[pairs]`, a tile `[pairs][lanes]`, and
//! `out[row][lane] += Σ_pair row[pair] · tile[pair][lane]` in the order of the pairs. What a row becomes depends on that row and
//! on the tile alone, whatever rows share the call, and whether they were widened beforehand.

use pulp::Arch;

use super::Kernel;

/// Lanes that are worked on at once; every tile has a multiple of them.
pub(crate) const LANES: usize = 32;

/// Words row by row, with the distance between rows.
#[derive(Clone, Copy)]
pub(crate) struct Words<'a> {
    pub(crate) data: &'a [u32],
    pub(crate) stride: usize,
}

/// Rows, pairs along which is summed, and lanes of a product.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) rows: usize,
    pub(crate) pairs: usize,
    pub(crate) lanes: usize,
}

/// `out[rows][lanes] += a[rows][pairs] · b[pairs][lanes]`; rows of `out` are `out_stride` apart, `lanes` is a multiple of
/// [`LANES`].
///
/// # Panics
/// If a slice or a stride is shorter than that.
pub(crate) fn multiply_add(
    kernel: Kernel,
    shape: Shape,
    a: Words<'_>,
    b: Words<'_>,
    out: &mut [f32],
    out_stride: usize,
) {
    let Shape { rows, pairs, lanes } = shape;
    if rows == 0 || pairs == 0 || lanes == 0 {
        return;
    }
    assert!(lanes.is_multiple_of(LANES) && lanes <= b.stride && lanes <= out_stride && pairs <= a.stride);
    assert!(a.data.len() >= (rows - 1) * a.stride + pairs);
    assert!(b.data.len() >= (pairs - 1) * b.stride + lanes);
    assert!(out.len() >= (rows - 1) * out_stride + lanes);
    for lane in (0..lanes).step_by(LANES) {
        let mut row = 0;
        while row < rows {
            // SAFETY: `row` and `lane` are inside the slices, by the assertions above.
            let block = unsafe {
                Block {
                    a: a.data.as_ptr().add(row * a.stride),
                    a_stride: a.stride,
                    b: b.data.as_ptr().add(lane),
                    b_stride: b.stride,
                    out: out.as_mut_ptr().add(row * out_stride + lane),
                    out_stride,
                    pairs,
                }
            };
            // SAFETY: as many rows as are left are inside the slices, and a `Kernel` other than `Portable` exists only
            // where `Kernel::detect` found its instructions.
            row += unsafe {
                match kernel {
                    #[cfg(target_arch = "x86_64")]
                    Kernel::Amx | Kernel::Avx512Bf16 => x86::avx512_bf16(block, rows - row),
                    #[cfg(target_arch = "x86_64")]
                    Kernel::Avx512 => x86::avx512(block, rows - row),
                    #[cfg(target_arch = "x86_64")]
                    Kernel::Avx2 => x86::avx2(block, rows - row),
                    _ => portable(block),
                }
            };
        }
    }
}

/// The same where rows and tile were widened to f32, in words all the same: `pairs` then counts single numbers. For a kernel that
/// [multiplies f32](Kernel::multiplies_f32); the sums have the bits of [`multiply_add`]. `b` is one tile, `[pairs][LANES]`.
///
/// # Panics
/// If a slice or a stride is too short, or the kernel another.
pub(crate) fn multiply_add_f32(
    kernel: Kernel,
    (rows, width): (usize, usize),
    a: Words<'_>,
    b: &[f32],
    out: &mut [f32],
    out_stride: usize,
) {
    if rows == 0 || width == 0 {
        return;
    }
    assert!(kernel.multiplies_f32() && LANES <= out_stride && width <= a.stride && b.len() >= width * LANES);
    assert!(a.data.len() >= (rows - 1) * a.stride + width && out.len() >= (rows - 1) * out_stride + LANES);
    let mut row = 0;
    while row < rows {
        // SAFETY: `row` is inside the slices, by the assertions above.
        let block = unsafe {
            Block {
                a: a.data.as_ptr().add(row * a.stride),
                a_stride: a.stride,
                b: b.as_ptr().cast(),
                b_stride: LANES,
                out: out.as_mut_ptr().add(row * out_stride),
                out_stride,
                pairs: width,
            }
        };
        // SAFETY: as above, and the kernel exists only where its instructions were found.
        row += unsafe {
            match kernel {
                #[cfg(target_arch = "x86_64")]
                Kernel::Avx512 => x86::avx512_f32(block, rows - row),
                #[cfg(target_arch = "x86_64")]
                Kernel::Avx2 => x86::avx2_f32(block, rows - row),
                _ => unreachable!("asserted above"),
            }
        };
    }
}

/// Widens words `[pairs]` of a row to `[2 * pairs]` numbers, kept in words.
pub(crate) fn widen_row(words: &[u32], out: &mut [u32]) {
    Arch::new().dispatch(
        #[inline(always)]
        || {
            for (pair, &word) in out.as_chunks_mut::<2>().0.iter_mut().zip(words) {
                *pair = [word << 16, word & 0xffff_0000];
            }
        },
    );
}

/// Widens a tile `[pairs][LANES]` to `[2 * pairs][LANES]`.
pub(crate) fn widen_tile(words: &[u32], out: &mut [f32]) {
    Arch::new().dispatch(
        #[inline(always)]
        || {
            let lanes = words.as_chunks::<LANES>().0;
            for (rows, lanes) in out.as_chunks_mut::<LANES>().0.as_chunks_mut::<2>().0.iter_mut().zip(lanes) {
                for (lane, &word) in lanes.iter().enumerate() {
                    (rows[0][lane], rows[1][lane]) = widen(word);
                }
            }
        },
    );
}

/// Some rows of a product, [`LANES`] lanes wide.
#[derive(Clone, Copy)]
struct Block {
    a: *const u32,
    a_stride: usize,
    b: *const u32,
    b_stride: usize,
    out: *mut f32,
    out_stride: usize,
    pairs: usize,
}

/// The two numbers of a word.
#[inline(always)]
fn widen(word: u32) -> (f32, f32) {
    (f32::from_bits(word << 16), f32::from_bits(word & 0xffff_0000))
}

/// One row.
///
/// # Safety
/// One row, all pairs and [`LANES`] lanes of `block` must be readable, those of `out` writable.
unsafe fn portable(block: Block) -> usize {
    // SAFETY: the caller's promise.
    unsafe {
        let out = &mut *block.out.cast::<[f32; LANES]>();
        let mut sums = *out;
        for pair in 0..block.pairs {
            let (a0, a1) = widen(*block.a.add(pair));
            let b = &*block.b.add(pair * block.b_stride).cast::<[u32; LANES]>();
            for (sum, &word) in sums.iter_mut().zip(b) {
                let (b0, b1) = widen(word);
                *sum += a0 * b0;
                *sum += a1 * b1;
            }
        }
        *out = sums;
    }
    1
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m256, __m512, __m512bh, _mm256_add_ps, _mm256_and_si256, _mm256_castsi256_ps, _mm256_fmadd_ps,
        _mm256_loadu_ps, _mm256_loadu_si256, _mm256_set1_epi32, _mm256_set1_ps, _mm256_setzero_ps, _mm256_slli_epi32,
        _mm256_storeu_ps, _mm512_add_ps, _mm512_and_si512, _mm512_castsi512_ps, _mm512_dpbf16_ps, _mm512_fmadd_ps,
        _mm512_loadu_ps, _mm512_loadu_si512, _mm512_set1_epi32, _mm512_set1_ps, _mm512_setzero_ps, _mm512_slli_epi32,
        _mm512_storeu_ps,
    };
    use std::mem::transmute;

    use super::{Block, widen};

    /// As many of the `rows` rows as one block of registers takes; says how many.
    ///
    /// # Safety
    /// AVX-512 with BF16; `rows` rows of `block` must be there.
    #[target_feature(enable = "avx512f,avx512bf16")]
    pub(super) unsafe fn avx512_bf16(block: Block, rows: usize) -> usize {
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

    #[target_feature(enable = "avx512f,avx512bf16")]
    unsafe fn avx512_rows<const ROWS: usize>(block: Block) -> usize {
        // SAFETY: `ROWS` rows are there, by the caller's promise.
        unsafe {
            let mut sums: [[__m512; 2]; ROWS] = [[_mm512_setzero_ps(); 2]; ROWS];
            for pair in 0..block.pairs {
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
            add_to(block, &sums);
        }
        ROWS
    }

    /// As many of the `rows` rows as one block of registers takes; says how many.
    ///
    /// # Safety
    /// AVX-512; `rows` rows of `block` must be there.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn avx512(block: Block, rows: usize) -> usize {
        // SAFETY: the caller's promise covers every size taken.
        unsafe {
            match rows {
                8.. => avx512_widened::<8>(block),
                4..8 => avx512_widened::<4>(block),
                2..4 => avx512_widened::<2>(block),
                _ => avx512_widened::<1>(block),
            }
        }
    }

    #[target_feature(enable = "avx512f")]
    unsafe fn avx512_widened<const ROWS: usize>(block: Block) -> usize {
        // SAFETY: `ROWS` rows are there, by the caller's promise.
        unsafe {
            let high = _mm512_set1_epi32(0xffff_0000_u32.cast_signed());
            let mut sums: [[__m512; 2]; ROWS] = [[_mm512_setzero_ps(); 2]; ROWS];
            for pair in 0..block.pairs {
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
            add_to(block, &sums);
        }
        ROWS
    }

    #[target_feature(enable = "avx512f")]
    unsafe fn add_to<const ROWS: usize>(block: Block, sums: &[[__m512; 2]; ROWS]) {
        for (row, sums) in sums.iter().enumerate() {
            for (half, &sum) in sums.iter().enumerate() {
                // SAFETY: `ROWS` rows are there, by the caller's promise.
                unsafe {
                    let out = block.out.add(row * block.out_stride + 16 * half);
                    _mm512_storeu_ps(out, _mm512_add_ps(_mm512_loadu_ps(out), sum));
                }
            }
        }
    }

    /// As many of the `rows` rows as one block of registers takes, of numbers widened before; says how many.
    ///
    /// # Safety
    /// AVX-512; `rows` rows of `block` must be there.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn avx512_f32(block: Block, rows: usize) -> usize {
        // SAFETY: the caller's promise covers every size taken.
        unsafe {
            match rows {
                12.. => avx512_f32_rows::<12>(block),
                8..12 => avx512_f32_rows::<8>(block),
                4..8 => avx512_f32_rows::<4>(block),
                2..4 => avx512_f32_rows::<2>(block),
                _ => avx512_f32_rows::<1>(block),
            }
        }
    }

    #[target_feature(enable = "avx512f")]
    unsafe fn avx512_f32_rows<const ROWS: usize>(block: Block) -> usize {
        // SAFETY: `ROWS` rows are there, by the caller's promise.
        unsafe {
            let mut sums: [[__m512; 2]; ROWS] = [[_mm512_setzero_ps(); 2]; ROWS];
            for k in 0..block.pairs {
                let b: *const f32 = block.b.add(k * block.b_stride).cast();
                let b = [_mm512_loadu_ps(b), _mm512_loadu_ps(b.add(16))];
                for (row, sums) in sums.iter_mut().enumerate() {
                    let a = _mm512_set1_ps(f32::from_bits(*block.a.add(row * block.a_stride + k)));
                    sums[0] = _mm512_fmadd_ps(a, b[0], sums[0]);
                    sums[1] = _mm512_fmadd_ps(a, b[1], sums[1]);
                }
            }
            add_to(block, &sums);
        }
        ROWS
    }

    /// As many of the `rows` rows as one block of registers takes, of numbers widened before; says how many.
    ///
    /// # Safety
    /// AVX2 with FMA; `rows` rows of `block` must be there.
    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn avx2_f32(block: Block, rows: usize) -> usize {
        // SAFETY: the caller's promise covers every size taken.
        unsafe {
            let rows = match rows {
                6.. => 6,
                4..6 => 4,
                2..4 => 2,
                _ => 1,
            };
            for lane in [0, 16] {
                let half = Block { b: block.b.add(lane), out: block.out.add(lane), ..block };
                match rows {
                    6 => avx2_f32_rows::<6>(half),
                    4 => avx2_f32_rows::<4>(half),
                    2 => avx2_f32_rows::<2>(half),
                    _ => avx2_f32_rows::<1>(half),
                }
            }
            rows
        }
    }

    /// 16 lanes.
    #[target_feature(enable = "avx2,fma")]
    unsafe fn avx2_f32_rows<const ROWS: usize>(block: Block) {
        // SAFETY: `ROWS` rows are there, by the caller's promise.
        unsafe {
            let mut sums: [[__m256; 2]; ROWS] = [[_mm256_setzero_ps(); 2]; ROWS];
            for k in 0..block.pairs {
                let b: *const f32 = block.b.add(k * block.b_stride).cast();
                let b = [_mm256_loadu_ps(b), _mm256_loadu_ps(b.add(8))];
                for (row, sums) in sums.iter_mut().enumerate() {
                    let a = _mm256_set1_ps(f32::from_bits(*block.a.add(row * block.a_stride + k)));
                    sums[0] = _mm256_fmadd_ps(a, b[0], sums[0]);
                    sums[1] = _mm256_fmadd_ps(a, b[1], sums[1]);
                }
            }
            add_to_256(block, &sums);
        }
    }

    #[target_feature(enable = "avx2,fma")]
    unsafe fn add_to_256<const ROWS: usize>(block: Block, sums: &[[__m256; 2]; ROWS]) {
        for (row, sums) in sums.iter().enumerate() {
            for (half, &sum) in sums.iter().enumerate() {
                // SAFETY: `ROWS` rows are there, by the caller's promise.
                unsafe {
                    let out = block.out.add(row * block.out_stride + 8 * half);
                    _mm256_storeu_ps(out, _mm256_add_ps(_mm256_loadu_ps(out), sum));
                }
            }
        }
    }

    /// As many of the `rows` rows as one block of registers takes; says how many.
    ///
    /// # Safety
    /// AVX2 with FMA; `rows` rows of `block` must be there.
    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn avx2(block: Block, rows: usize) -> usize {
        // SAFETY: the caller's promise covers every size taken.
        unsafe {
            let rows = match rows {
                4.. => 4,
                2..4 => 2,
                _ => 1,
            };
            for lane in [0, 16] {
                let half = Block { b: block.b.add(lane), out: block.out.add(lane), ..block };
                match rows {
                    4 => avx2_rows::<4>(half),
                    2 => avx2_rows::<2>(half),
                    _ => avx2_rows::<1>(half),
                }
            }
            rows
        }
    }

    /// 16 lanes.
    #[target_feature(enable = "avx2,fma")]
    unsafe fn avx2_rows<const ROWS: usize>(block: Block) {
        // SAFETY: `ROWS` rows are there, by the caller's promise.
        unsafe {
            let high = _mm256_set1_epi32(0xffff_0000_u32.cast_signed());
            let mut sums: [[__m256; 2]; ROWS] = [[_mm256_setzero_ps(); 2]; ROWS];
            for pair in 0..block.pairs {
                let b = block.b.add(pair * block.b_stride);
                let words = [_mm256_loadu_si256(b.cast()), _mm256_loadu_si256(b.add(8).cast())];
                let first = words.map(|words| _mm256_castsi256_ps(_mm256_slli_epi32::<16>(words)));
                let second = words.map(|words| _mm256_castsi256_ps(_mm256_and_si256(words, high)));
                for (row, sums) in sums.iter_mut().enumerate() {
                    let (a0, a1) = widen(*block.a.add(row * block.a_stride + pair));
                    let (a0, a1) = (_mm256_set1_ps(a0), _mm256_set1_ps(a1));
                    for half in 0..2 {
                        sums[half] = _mm256_fmadd_ps(a0, first[half], sums[half]);
                        sums[half] = _mm256_fmadd_ps(a1, second[half], sums[half]);
                    }
                }
            }
            add_to_256(block, &sums);
        }
    }
}

#[cfg(test)]
mod tests {
    use half::bf16;
    use proptest::prelude::*;

    use super::*;
    use crate::cpu::vector::pack_pairs;

    /// The same sums in f64.
    fn expected(a: &[f32], b: &[f32], (rows, width, lanes): (usize, usize, usize)) -> Vec<f64> {
        let round = |x: f32| f64::from(bf16::from_f32(x).to_f32());
        (0..rows * lanes)
            .map(|i| {
                let (row, lane) = (i / lanes, i % lanes);
                (0..width).map(|k| round(a[row * width + k]) * round(b[k * lanes + lane])).sum()
            })
            .collect()
    }

    proptest! {
        #[test]
        fn products_are_right_and_a_row_depends_on_itself_alone(
            rows in 1_usize..30, pairs in 1_usize..70, tiles in 1_usize..4, seed in any::<u64>()
        ) {
            let (width, lanes) = (2 * pairs, tiles * LANES);
            let number = |i: usize| {
                let mixed = (seed ^ i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                (mixed >> 40) as f32 / (1 << 23) as f32 - 1.0
            };
            let a: Vec<f32> = (0..rows * width).map(number).collect();
            let b: Vec<f32> = (0..width * lanes).map(|i| number(i + 1_000_003)).collect();
            let mut a_words = vec![0; rows * pairs];
            a.chunks_exact(width).zip(a_words.chunks_exact_mut(pairs)).for_each(|(row, words)| pack_pairs(row, words));
            let word = |low: f32, high: f32| {
                u32::from(bf16::from_f32(low).to_bits()) | u32::from(bf16::from_f32(high).to_bits()) << 16
            };
            let b_words: Vec<u32> = (0..pairs * lanes)
                .map(|i| (i / lanes, i % lanes))
                .map(|(pair, lane)| word(b[2 * pair * lanes + lane], b[(2 * pair + 1) * lanes + lane]))
                .collect();
            let b_words = Words { data: &b_words, stride: lanes };
            let expected = expected(&a, &b, (rows, width, lanes));
            for kernel in Kernel::available() {
                let a_words = Words { data: &a_words, stride: pairs };
                let mut out = vec![0.5; rows * lanes];
                multiply_add(kernel, Shape { rows, pairs, lanes }, a_words, b_words, &mut out, lanes);
                for (found, expected) in out.iter().zip(&expected) {
                    prop_assert!((f64::from(*found) - 0.5 - expected).abs() < 1e-4, "{kernel:?}: {found}, {expected}");
                }
                // Widened before, the same bits.
                if kernel.multiplies_f32() {
                    let mut a_wide = vec![0; rows * width];
                    a_wide.chunks_exact_mut(width).zip(a_words.data.chunks_exact(pairs)).for_each(|(wide, row)| widen_row(row, wide));
                    let a_wide = Words { data: &a_wide, stride: width };
                    for tile in 0..tiles {
                        let words: Vec<u32> = b_words.data.chunks_exact(lanes).flat_map(|row| row[tile * LANES..][..LANES].to_vec()).collect();
                        let mut b_wide = vec![0.0; width * LANES];
                        widen_tile(&words, &mut b_wide);
                        let mut again = vec![0.5; rows * LANES];
                        multiply_add_f32(kernel, (rows, width), a_wide, &b_wide, &mut again, LANES);
                        for (again, out) in again.chunks_exact(LANES).zip(out.chunks_exact(lanes)) {
                            prop_assert!(again.iter().zip(&out[tile * LANES..]).all(|(a, b)| a.to_bits() == b.to_bits()), "{kernel:?}");
                        }
                    }
                }
                for (row, together) in out.chunks_exact(lanes).enumerate() {
                    let mut alone = vec![0.5; lanes];
                    let a_row = Words { data: &a_words.data[row * pairs..], stride: pairs };
                    multiply_add(kernel, Shape { rows: 1, pairs, lanes }, a_row, b_words, &mut alone, lanes);
                    prop_assert!(alone.iter().zip(together).all(|(a, b)| a.to_bits() == b.to_bits()), "{kernel:?}");
                }
            }
        }
    }
}
