//! Products on the matrix unit (AMX) of Intel's server processors, over the same panels as every other kernel: a panel's pairs lie as
//! the unit wants them. What a row becomes depends on that row and on the panel alone.

use std::arch::asm;
use std::cell::Cell;
use std::marker::PhantomData;

use super::kernel::{Kernel, Supported};
use super::tile::LANES;

/// Rows that one product takes; those that are not there must be readable all the same.
const ROWS: usize = 32;

/// Pairs that one instruction sums; a row has a multiple of them.
pub(crate) const PAIRS: usize = 16;

/// The shapes of the unit's eight registers.
#[repr(C, align(64))]
struct Configuration {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    row_bytes: [u16; 16],
    rows: [u8; 16],
}

thread_local! {
    /// How many [`Unit`]s this thread holds.
    static HELD: Cell<usize> = const { Cell::new(0) };
}

/// The unit, set up for this thread for as long as somebody there holds one of these: whoever asks first sets it up, and the last to let
/// go releases it, so that one holder may call another. It stays on its thread.
pub(crate) struct Unit(PhantomData<*const ()>);

impl Unit {
    /// The unit, if it is what `kernel` multiplies with.
    pub(crate) fn hold(kernel: Supported) -> Option<Self> {
        if kernel.kernel() != Kernel::Amx {
            return None;
        }
        if HELD.replace(HELD.get() + 1) == 0 {
            let mut configuration =
                Configuration { palette: 1, start_row: 0, reserved: [0; 14], row_bytes: [0; 16], rows: [0; 16] };
            configuration.row_bytes[..8].fill(64);
            configuration.rows[..8].fill(16);
            // SAFETY: a `Supported` of this kernel is made only where the unit is there and the system lets it be used; the
            // configuration is that of its palette 1, eight tiles of 16 rows of 64 bytes.
            unsafe { asm!("ldtilecfg [{}]", in(reg) &raw const configuration, options(nostack, readonly)) };
        }
        Some(Self(PhantomData))
    }

    /// `out[row][lane] = Σ_pair a[row][pair] · b[pair][lane]` for the first `rows` of [`ROWS`] rows, `stride` apart; the other rows of `out`
    /// may hold anything. `b` is one panel, `[pairs][LANES]`; `pairs` is a multiple of [`PAIRS`].
    ///
    /// # Panics
    /// If a slice is too short, also for the rows that are not asked for.
    pub(crate) fn multiply(&self, rows: usize, a: &[u32], stride: usize, b: &[u32], out: &mut [f32; ROWS * LANES]) {
        let pairs = b.len() / LANES;
        assert!(pairs > 0 && pairs.is_multiple_of(PAIRS) && pairs <= stride && rows <= ROWS);
        let half = ROWS / 2;
        let tiles = if rows > half { 2 } else { 1 };
        assert!(a.len() >= (tiles * half - 1) * stride + pairs);
        let (a, bytes) = (a.as_ptr(), 4 * stride);
        // SAFETY: the unit is set up by `hold` for tiles of 16 rows of 64 bytes. Each step reads 16 pairs of 16 or 32 rows and of two times
        // 16 lanes, which the assertions say are there, and `out` has room for all tiles.
        unsafe {
            if tiles == 2 {
                asm!(
                    "tilezero tmm0", "tilezero tmm1", "tilezero tmm2", "tilezero tmm3",
                    "2:",
                    "tileloadd tmm4, [{a} + {stride}]",
                    "tileloadd tmm6, [{b} + {lanes}]",
                    "tileloadd tmm7, [{b} + {lanes} + 64]",
                    "tdpbf16ps tmm0, tmm4, tmm6",
                    "tileloadd tmm5, [{a2} + {stride}]",
                    "tdpbf16ps tmm1, tmm4, tmm7",
                    "tdpbf16ps tmm2, tmm5, tmm6",
                    "tdpbf16ps tmm3, tmm5, tmm7",
                    "add {a}, 64", "add {a2}, 64", "add {b}, 2048",
                    "dec {steps}", "jnz 2b",
                    "tilestored [{out} + {lanes}], tmm0",
                    "tilestored [{out} + {lanes} + 64], tmm1",
                    "tilestored [{out} + {lanes} + 2048], tmm2",
                    "tilestored [{out} + {lanes} + 2112], tmm3",
                    a = inout(reg) a => _, a2 = inout(reg) a.add(half * stride) => _, b = inout(reg) b.as_ptr() => _,
                    steps = inout(reg) pairs / PAIRS => _, stride = in(reg) bytes, lanes = in(reg) 4 * LANES,
                    out = in(reg) out.as_mut_ptr(), out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                    out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _, options(nostack),
                );
            } else {
                asm!(
                    "tilezero tmm0", "tilezero tmm1",
                    "2:",
                    "tileloadd tmm4, [{a} + {stride}]",
                    "tileloadd tmm6, [{b} + {lanes}]",
                    "tileloadd tmm7, [{b} + {lanes} + 64]",
                    "tdpbf16ps tmm0, tmm4, tmm6",
                    "tdpbf16ps tmm1, tmm4, tmm7",
                    "add {a}, 64", "add {b}, 2048",
                    "dec {steps}", "jnz 2b",
                    "tilestored [{out} + {lanes}], tmm0",
                    "tilestored [{out} + {lanes} + 64], tmm1",
                    a = inout(reg) a => _, b = inout(reg) b.as_ptr() => _, steps = inout(reg) pairs / PAIRS => _,
                    stride = in(reg) bytes, lanes = in(reg) 4 * LANES, out = in(reg) out.as_mut_ptr(),
                    out("tmm0") _, out("tmm1") _, out("tmm4") _, out("tmm6") _, out("tmm7") _, options(nostack),
                );
            }
        }
    }
}

impl Drop for Unit {
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
    use super::*;

    #[test]
    fn a_holder_may_call_another() {
        let Some(kernel) = Supported::all().find(|kernel| kernel.kernel() == Kernel::Amx) else { return };
        assert!(Unit::hold(Supported::PORTABLE).is_none());
        let (a, b) = (vec![0x3f80_3f80; ROWS * PAIRS], vec![0x3f80_3f80; PAIRS * LANES]);
        let outer = Unit::hold(kernel).unwrap();
        drop(Unit::hold(kernel));
        let mut out = [0.0; ROWS * LANES];
        // Without the first holder's tiles this would be an illegal instruction.
        outer.multiply(ROWS, &a, PAIRS, &b, &mut out);
        assert_eq!(out, [32.0; ROWS * LANES]);
    }
}
