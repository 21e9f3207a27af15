//! Whether this processor has Intel's matrix unit (AMX), and the system lets this process use it.

use std::arch::asm;
use std::arch::x86_64::{__cpuid, __cpuid_count, _xgetbv};
use std::sync::OnceLock;

/// Whether the processor has the unit, with AVX-512-BF16 beside it, and the system lets this process use it.
pub(super) fn has_matrix_unit() -> bool {
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
