//! Products on the matrix unit (AMX) of Intel's server processors, over the same panels as every other kernel: a panel's pairs lie as
//! the unit wants them. What a row becomes depends on that row and on the panel alone.

use std::arch::asm;
use std::arch::x86_64::{__cpuid, __cpuid_count, _xgetbv};
use std::marker::PhantomData;
use std::sync::OnceLock;

use super::tile::LANES;

/// Rows that one product takes; those that are not there must be readable all the same.
const ROWS: usize = 32;

/// Pairs that one instruction sums; a row has a multiple of them.
pub(crate) const PAIRS: usize = 16;

/// Whether the processor has the unit, with AVX-512-BF16 beside it, and the system lets this process use it.
pub(crate) fn is_available() -> bool {
    static AVAILABLE: OnceLock<bool> = OnceLock::new();
    *AVAILABLE.get_or_init(|| {
        const AMX_BF16: u32 = 1 << 22;
        const AMX_TILE: u32 = 1 << 24;
        const TILE_STATE: u64 = 0b11 << 17;
        is_x86_feature_detected!("avx512bf16")
            && is_x86_feature_detected!("xsave")
            && __cpuid(0).eax >= 7
            && __cpuid_count(7, 0).edx & (AMX_BF16 | AMX_TILE) == AMX_BF16 | AMX_TILE
            // SAFETY: the processor has XSAVE, and AVX-512 is detected only where the system enabled it.
            && unsafe { enabled_states() } & TILE_STATE == TILE_STATE
            && permitted()
    })
}

#[target_feature(enable = "xsave")]
unsafe fn enabled_states() -> u64 {
    // SAFETY: the caller's promise.
    unsafe { _xgetbv(0) }
}

/// Asks the system for the unit's state, which a process has only on request; once for all its threads. The system refuses while a thread
/// has a signal stack too small for that state, and afterwards refuses such stacks.
#[cfg(target_os = "linux")]
fn permitted() -> bool {
    const ARCH_PRCTL: i64 = 158;
    const REQUEST_PERMISSION: u64 = 0x1023;
    const TILE_DATA: u64 = 18;
    let result: i64;
    // SAFETY: this call touches no memory of ours; a system that does not know it returns an error.
    unsafe {
        asm!("syscall", inlateout("rax") ARCH_PRCTL => result, in("rdi") REQUEST_PERMISSION, in("rsi") TILE_DATA,
            lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    result == 0
}

/// Elsewhere nobody has tried it.
#[cfg(not(target_os = "linux"))]
fn permitted() -> bool {
    false
}

/// The shapes of the unit's eight registers.
#[repr(C, align(64))]
struct Configuration {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    row_bytes: [u16; 16],
    rows: [u8; 16],
}

/// The unit, set up for this thread; released when dropped. It stays on its thread, which has one at a time.
pub(crate) struct Unit(PhantomData<*const ()>);

impl Unit {
    /// # Panics
    /// If there is none.
    pub(crate) fn new() -> Self {
        assert!(is_available());
        let mut configuration =
            Configuration { palette: 1, start_row: 0, reserved: [0; 14], row_bytes: [0; 16], rows: [0; 16] };
        configuration.row_bytes[..8].fill(64);
        configuration.rows[..8].fill(16);
        // SAFETY: the unit is there, and the configuration is as it must be.
        unsafe { asm!("ldtilecfg [{}]", in(reg) &raw const configuration, options(nostack, readonly)) };
        Self(PhantomData)
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
        // SAFETY: the unit is set up by `new` for tiles of 16 rows of 64 bytes. Each step reads 16 pairs of 16 or 32 rows and of two times
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
        // SAFETY: the unit is there.
        unsafe { asm!("tilerelease", options(nostack, nomem)) };
    }
}
