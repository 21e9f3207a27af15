//! Whose this processor is, whether it has Intel's matrix unit (AMX), and whether the system lets this process
//! use it.
//!
//! `supported.rs` asks once before it offers [`Kernel::Amx`](super::kernel::Kernel::Amx). The standard
//! library has no stable detection of AMX, so this file asks CPUID itself. The unit's registers are
//! 8 KiB of state for each thread, which Linux saves only for processes that have asked for it.

use std::arch::asm;
use std::arch::x86_64::{__cpuid, __cpuid_count, _xgetbv};
use std::sync::OnceLock;

/// Whether the unit's instructions can be run: by a unit, or with the feature `emulated-unit` by
/// software.
pub(crate) fn runs_matrix_unit() -> bool {
    has_matrix_unit() || is_emulated()
}

/// Whether the processor says that it is Intel's: CPUID leaf 0, the maker's name in EBX, EDX and ECX. A
/// virtual machine has the name of the processor below.
pub(crate) fn is_by_intel() -> bool {
    let leaf = __cpuid(0);
    [leaf.ebx, leaf.edx, leaf.ecx].map(u32::to_le_bytes).as_flattened() == b"GenuineIntel"
}

/// Whether software stands in for the unit (`unit/emulated.rs`), which is for tests alone.
#[cfg(all(feature = "emulated-unit", target_os = "linux"))]
fn is_emulated() -> bool {
    is_x86_feature_detected!("avx512bf16") && super::unit::emulated::install()
}

/// Whether software stands in for the unit.
#[cfg(not(all(feature = "emulated-unit", target_os = "linux")))]
fn is_emulated() -> bool {
    false
}

/// Whether products may use the matrix unit. All of the following must hold; the answer is kept for
/// the life of the process:
///
/// - AVX-512-BF16, which bodies for the unit use to pack rows;
/// - CPUID leaf 7, EDX: AMX-TILE (bit 24) and AMX-BF16 (bit 22);
/// - XCR0 bits 17 and 18: the system saves the configuration and the data of tiles;
/// - the system grants this process the use of tile data.
pub(crate) fn has_matrix_unit() -> bool {
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

/// Whether the unit, which must be there, multiplies bytes too: CPUID leaf 7, EDX: AMX-INT8 (bit 25).
pub(crate) fn multiplies_bytes() -> bool {
    const AMX_INT8: u32 = 1 << 25;
    if has_matrix_unit() { __cpuid_count(7, 0).edx & AMX_INT8 != 0 } else { is_emulated() }
}

/// XCR0: the register states that the system saves when it switches threads.
///
/// # Safety
/// The processor must have XSAVE and the system must have enabled it, or the instruction faults.
#[target_feature(enable = "xsave")]
unsafe fn enabled_states() -> u64 {
    // SAFETY: the caller's promise.
    unsafe { _xgetbv(0) }
}

/// Asks Linux for tile data with `arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA)`, once for
/// all threads of the process. The system refuses while a thread has a signal stack that is too
/// small for that state, and refuses such stacks afterwards.
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

/// On other systems the unit has not been tried and is not used.
#[cfg(not(target_os = "linux"))]
fn permitted() -> bool {
    false
}
