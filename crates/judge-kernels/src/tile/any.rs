//! The portable bodies of [`multiply_add`](super::multiply_add), written once for any vector
//! instructions: those of ARM (NEON), of WebAssembly, of x86-64, and plain loops where there are
//! none.
//!
//! A block has up to six rows and two registers of lanes, so twelve sums, two loads and a product
//! fit into sixteen registers. Products are not fused with the sums they are added to, since not
//! every processor can; results are thus the same bits on all of them. A word of pairs adds its
//! first number's product, then its second's.

use pulp::{Arch, Scalar256b, Simd, WithSimd};

use super::operands::{Before, Block, LANES, Word, widen};

/// Takes 6, 4, 2 or 1 of the `rows` rows that are left and returns how many.
///
/// # Safety
/// `rows` rows, at least one, of `block` must be inside its matrices, and those of `out` nobody
/// else's.
pub(crate) unsafe fn rows(block: Block, rows: usize, word: Word) -> usize {
    let rows = match rows {
        6.. => 6,
        4..6 => 4,
        2..4 => 2,
        _ => 1,
    };
    let is_pairs = word == Word::Pair;
    match rows {
        6 => Arch::new().dispatch(RowBlock::<6> { block, is_pairs }),
        4 => Arch::new().dispatch(RowBlock::<4> { block, is_pairs }),
        2 => Arch::new().dispatch(RowBlock::<2> { block, is_pairs }),
        _ => Arch::new().dispatch(RowBlock::<1> { block, is_pairs }),
    }
    rows
}

/// `ROWS` rows of a block, which are there and, in `out`, not aliased.
struct RowBlock<const ROWS: usize> {
    /// The block.
    block: Block,
    /// Whether words are pairs.
    is_pairs: bool,
}

impl<const ROWS: usize> WithSimd for RowBlock<ROWS> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        // Where there are no vectors, arrays of numbers stand for them, which the compiler may put into any registers.
        if S::F32_LANES == 1 {
            self.run(Scalar256b);
        } else {
            self.run(simd);
        }
    }
}

impl<const ROWS: usize> RowBlock<ROWS> {
    /// Two registers of lanes after the other.
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        for lane in (0..LANES).step_by(2 * S::F32_LANES) {
            // SAFETY: the maker of the value says that the rows are there; a tile has `LANES` lanes, a multiple of two
            // registers'.
            unsafe {
                if self.is_pairs {
                    self.lanes::<S, true>(simd, lane);
                } else {
                    self.lanes::<S, false>(simd, lane);
                }
            }
        }
    }

    /// Two registers of lanes of all rows.
    ///
    /// # Safety
    /// The rows must be there, and the lanes from `lane` on.
    #[inline(always)]
    unsafe fn lanes<S: Simd, const PAIRS: bool>(&self, simd: S, lane: usize) {
        let Block { a, a_stride, b, b_stride, out, out_stride, words, before } = self.block;
        let place = |row: usize, half: usize| row * out_stride + lane + half * S::F32_LANES;
        let (high, shift) = (simd.splat_u32s(0xffff_0000), simd.splat_u32s(16));
        // SAFETY: the caller's promise.
        unsafe {
            let mut sums: [[S::f32s; 2]; ROWS] = [[simd.splat_f32s(0.0); 2]; ROWS];
            for (row, sums) in sums.iter_mut().enumerate().filter(|_| before == Before::Continued) {
                for (half, sum) in sums.iter_mut().enumerate() {
                    *sum = out.add(place(row, half)).cast::<S::f32s>().read_unaligned();
                }
            }
            for word in 0..words {
                let b = b.add(word * b_stride + lane);
                let b = [b, b.add(S::F32_LANES)].map(|b| b.cast::<S::u32s>().read_unaligned());
                let first = b.map(|b| if PAIRS { simd.wrapping_dyn_shl_u32s(b, shift) } else { b });
                let first = first.map(|b| simd.transmute_f32s_u32s(b));
                let second = b.map(|b| simd.transmute_f32s_u32s(simd.and_u32s(b, high)));
                for (row, sums) in sums.iter_mut().enumerate() {
                    let a = *a.add(row * a_stride + word);
                    let [a0, a1] = if PAIRS { widen(a) } else { [f32::from_bits(a), 0.0] };
                    let a0 = simd.splat_f32s(a0);
                    for (sum, first) in sums.iter_mut().zip(first) {
                        *sum = simd.add_f32s(*sum, simd.mul_f32s(a0, first));
                    }
                    if PAIRS {
                        let a1 = simd.splat_f32s(a1);
                        for (sum, second) in sums.iter_mut().zip(second) {
                            *sum = simd.add_f32s(*sum, simd.mul_f32s(a1, second));
                        }
                    }
                }
            }
            for (row, sums) in sums.iter().enumerate() {
                for (half, sum) in sums.iter().enumerate() {
                    let out = out.add(place(row, half)).cast::<S::f32s>();
                    let is_added = before == Before::Added;
                    let sum = if is_added { simd.add_f32s(out.read_unaligned(), *sum) } else { *sum };
                    out.write_unaligned(sum);
                }
            }
        }
    }
}
