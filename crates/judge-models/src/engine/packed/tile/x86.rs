//! Blocks of a product in registers, for the instructions of x86-64.

use std::arch::x86_64::{
    __m256, __m512, __m512bh, _mm256_add_ps, _mm256_and_si256, _mm256_castsi256_ps, _mm256_fmadd_ps, _mm256_loadu_ps,
    _mm256_loadu_si256, _mm256_set1_epi32, _mm256_set1_ps, _mm256_setzero_ps, _mm256_slli_epi32, _mm256_storeu_ps,
    _mm512_add_ps, _mm512_and_si512, _mm512_castsi512_ps, _mm512_dpbf16_ps, _mm512_fmadd_ps, _mm512_loadu_ps,
    _mm512_loadu_si512, _mm512_set1_epi32, _mm512_set1_ps, _mm512_setzero_ps, _mm512_slli_epi32, _mm512_storeu_ps,
};
use std::mem::transmute;

use super::{Block, widen};

/// As many of the `rows` rows of pairs as one block of registers takes; says how many.
///
/// # Safety
/// AVX-512 with BF16; `rows` rows of `block` must be there.
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

#[target_feature(enable = "avx512f,avx512bf16")]
unsafe fn avx512_bf16_rows<const ROWS: usize>(block: Block) -> usize {
    // SAFETY: `ROWS` rows are there, by the caller's promise.
    unsafe {
        let mut sums: [[__m512; 2]; ROWS] = [[_mm512_setzero_ps(); 2]; ROWS];
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
        add_to(block, &sums);
    }
    ROWS
}

/// As many of the `rows` rows of pairs as one block of registers takes, widened here; says how many.
///
/// # Safety
/// AVX-512; `rows` rows of `block` must be there.
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

#[target_feature(enable = "avx512f")]
unsafe fn avx512_widening_rows<const ROWS: usize>(block: Block) -> usize {
    // SAFETY: `ROWS` rows are there, by the caller's promise.
    unsafe {
        let high = _mm512_set1_epi32(0xffff_0000_u32.cast_signed());
        let mut sums: [[__m512; 2]; ROWS] = [[_mm512_setzero_ps(); 2]; ROWS];
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

/// As many of the `rows` rows of single numbers as one block of registers takes; says how many.
///
/// # Safety
/// AVX-512; `rows` rows of `block` must be there.
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

#[target_feature(enable = "avx512f")]
unsafe fn avx512_rows<const ROWS: usize>(block: Block) -> usize {
    // SAFETY: `ROWS` rows are there, by the caller's promise.
    unsafe {
        let mut sums: [[__m512; 2]; ROWS] = [[_mm512_setzero_ps(); 2]; ROWS];
        for k in 0..block.words {
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

/// As many of the `rows` rows of single numbers as one block of registers takes; says how many.
///
/// # Safety
/// AVX2 with FMA; `rows` rows of `block` must be there.
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
        for lane in [0, 16] {
            let half = Block { b: block.b.add(lane), out: block.out.add(lane), ..block };
            match rows {
                6 => avx2_rows::<6>(half),
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
        let mut sums: [[__m256; 2]; ROWS] = [[_mm256_setzero_ps(); 2]; ROWS];
        for k in 0..block.words {
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

/// As many of the `rows` rows of pairs as one block of registers takes, widened here; says how many.
///
/// # Safety
/// AVX2 with FMA; `rows` rows of `block` must be there.
#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn avx2_widening(block: Block, rows: usize) -> usize {
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
                4 => avx2_widening_rows::<4>(half),
                2 => avx2_widening_rows::<2>(half),
                _ => avx2_widening_rows::<1>(half),
            }
        }
        rows
    }
}

/// 16 lanes.
#[target_feature(enable = "avx2,fma")]
unsafe fn avx2_widening_rows<const ROWS: usize>(block: Block) {
    // SAFETY: `ROWS` rows are there, by the caller's promise.
    unsafe {
        let high = _mm256_set1_epi32(0xffff_0000_u32.cast_signed());
        let mut sums: [[__m256; 2]; ROWS] = [[_mm256_setzero_ps(); 2]; ROWS];
        for pair in 0..block.words {
            let b = block.b.add(pair * block.b_stride);
            let words = [_mm256_loadu_si256(b.cast()), _mm256_loadu_si256(b.add(8).cast())];
            let first = words.map(|words| _mm256_castsi256_ps(_mm256_slli_epi32::<16>(words)));
            let second = words.map(|words| _mm256_castsi256_ps(_mm256_and_si256(words, high)));
            for (row, sums) in sums.iter_mut().enumerate() {
                let [a0, a1] = widen(*block.a.add(row * block.a_stride + pair));
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
