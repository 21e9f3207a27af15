//! The matrix unit's instructions in software, for tests on processors without one.
//!
//! Such a processor refuses the instructions of `unit.rs`, and the system sends the thread `SIGILL`.
//! A handler reads the refused instruction, does what Intel's manual says of it to registers that it
//! keeps for the thread, and lets the thread go on behind it. So the very machine code that a unit
//! would run is tested: its operands, strides, set-up and release. A thread that uses tiles without
//! having configured them gets the signal that it would get of a unit.
//!
//! It is thousands of times slower than a unit, hence a feature of its own; with it,
//! [`Kernel::Amx`](crate::Kernel::Amx) and [`Kernel::AmxInt8`](crate::Kernel::AmxInt8) can be named
//! wherever there is AVX-512-BF16, and are never chosen for being the fastest.
//!
//! The handler has the stack that Rust gives a thread for signals, 8 KiB with the signal's own frame of
//! up to 3.4 KiB on it, so nothing here may put all registers, another 8 KiB, on a stack.

use std::arch::asm;
use std::arch::x86_64::{
    __m512, __m512i, _mm512_add_ps, _mm512_and_si512, _mm512_castsi512_ps, _mm512_fmadd_ps, _mm512_loadu_si512,
    _mm512_set1_epi32, _mm512_setzero_ps, _mm512_slli_epi32, _mm512_storeu_ps,
};
use std::cell::RefCell;
use std::sync::OnceLock;

use super::sizes::{PAIRS, ROWS};

/// A register of tiles.
type Register = [[u32; PAIRS]; ROWS];

/// What a thread has of a unit.
struct State {
    /// Whether `LDTILECFG` was the last of it and `TILERELEASE`.
    is_configured: bool,
    /// tmm0 to tmm7.
    registers: [Register; 8],
}

thread_local! {
    /// This thread's registers. Nothing to make and nothing to drop, so that a signal's handler may use it.
    static STATE: RefCell<State> =
        const { RefCell::new(State { is_configured: false, registers: [[[0; PAIRS]; ROWS]; 8] }) };
}

/// An instruction of the unit.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Instruction {
    /// `LDTILECFG` from an address.
    Configure(u64),
    /// `TILERELEASE`.
    Release,
    /// `TILEZERO` of a register.
    Zero(usize),
    /// `TILELOADD` to a register, of rows from an address, so many bytes apart.
    Load(usize, u64, u64),
    /// `TILESTORED`, likewise.
    Store(usize, u64, u64),
    /// `TDPBF16PS`: sums, rows, lanes.
    Multiply(usize, usize, usize),
    /// `TDPBSSD`, likewise.
    MultiplyBytes(usize, usize, usize),
}

/// Registers of the processor in the order of their numbers in instructions.
const GENERAL: [libc::c_int; 16] = [
    libc::REG_RAX,
    libc::REG_RCX,
    libc::REG_RDX,
    libc::REG_RBX,
    libc::REG_RSP,
    libc::REG_RBP,
    libc::REG_RSI,
    libc::REG_RDI,
    libc::REG_R8,
    libc::REG_R9,
    libc::REG_R10,
    libc::REG_R11,
    libc::REG_R12,
    libc::REG_R13,
    libc::REG_R14,
    libc::REG_R15,
];

/// Makes `SIGILL` emulate the unit from now on, for all threads. Whether the system let it.
pub(crate) fn install() -> bool {
    static INSTALLED: OnceLock<bool> = OnceLock::new();
    *INSTALLED.get_or_init(|| {
        let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = refused;
        // SAFETY: all zeros are a valid action, without a mask; the handler has the type that SA_SIGINFO asks for.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handler as libc::sighandler_t;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigaction(libc::SIGILL, &raw const action, std::ptr::null_mut()) == 0
        }
    })
}

/// Does what the refused instruction asks for and steps behind it. What is none of the unit's, or is
/// not allowed, is run again with the signal's default, which ends the process.
extern "C" fn refused(signal: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: with SA_SIGINFO the third argument is the interrupted thread's context, which nobody else uses. The instruction
    // pointer is at the refused instruction, and what it addresses is what a unit would have read or written.
    unsafe {
        let registers = &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs;
        let general = |number: usize| registers[GENERAL[number] as usize].cast_unsigned();
        let code = registers[libc::REG_RIP as usize] as *const u8;
        let done =
            decode(code, general).filter(|(instruction, _)| STATE.with_borrow_mut(|state| state.run(*instruction)));
        match done {
            Some((_, length)) => registers[libc::REG_RIP as usize] += length,
            None => {
                libc::signal(signal, libc::SIG_DFL);
            }
        }
    }
}

/// The instruction at `code` and its length in bytes; `None` if it is none of the unit's. `general`
/// gives what a general register holds.
///
/// All of them have a VEX prefix of three bytes, of which the first is `C4`:
///
/// ```text
/// byte 1   R X B m m m m m     R, X, B: inverted high bits of registers; m: 2, the opcodes after 0F 38
/// byte 2   W v v v v L p p     v: a third register, inverted; L: 0; p: 0 none, 1 66, 2 F3, 3 F2
/// ```
///
/// # Safety
/// `code` must be at an instruction that the processor has fetched.
unsafe fn decode(code: *const u8, general: impl Fn(usize) -> u64) -> Option<(Instruction, i64)> {
    // SAFETY: the caller's promise: what is read is part of the instruction, as far as it was understood.
    let byte = |at: usize| usize::from(unsafe { code.add(at).read() });
    if byte(0) != 0xc4 || byte(1) & 0x1f != 2 || byte(2) & 0x84 != 0 {
        return None;
    }
    let (opcode, prefix, form) = (byte(3), byte(2) & 3, byte(4));
    let (mode, reg, low) = (form >> 6, form >> 3 & 7, form & 7);
    if mode == 3 {
        let instruction = match (opcode, prefix) {
            (0x49, 0) if form == 0xc0 => Instruction::Release,
            (0x49, 3) if low == 0 => Instruction::Zero(reg),
            (0x5c, 2) => Instruction::Multiply(reg, low, !byte(2) >> 3 & 7),
            (0x5e, 3) => Instruction::MultiplyBytes(reg, low, !byte(2) >> 3 & 7),
            _ => return None,
        };
        return Some((instruction, 5));
    }
    // What lies in memory: a base, perhaps an index, which for tiles is the distance of rows, and a displacement.
    let (x, b) = (!byte(1) >> 6 & 1, !byte(1) >> 5 & 1);
    let has_index = low == 4;
    let (base, index, mut at) = match has_index {
        true => (byte(5) & 7 | b << 3, byte(5) >> 3 & 7 | x << 3, 6),
        false => (low | b << 3, 4, 5),
    };
    if mode == 0 && base & 7 == 5 {
        return None;
    }
    let mut address = general(base);
    let displacement = match mode {
        0 => 0,
        1 => i64::from(byte(at) as u8 as i8),
        _ => i64::from(i32::from_le_bytes(std::array::from_fn(|place| byte(at + place) as u8))),
    };
    at += [0, 1, 4][mode];
    address = address.wrapping_add_signed(displacement);
    // The register of number 4 is no index.
    let stride = if index == 4 { 0 } else { general(index) << (byte(5) >> 6) };
    let instruction = match (opcode, prefix) {
        (0x49, 0) if reg == 0 => Instruction::Configure(address.wrapping_add(stride)),
        (0x4b, 3) if has_index => Instruction::Load(reg, address, stride),
        (0x4b, 2) if has_index => Instruction::Store(reg, address, stride),
        _ => return None,
    };
    Some((instruction, at as i64))
}

impl State {
    /// Does what an instruction says; `false` if a unit would refuse it.
    ///
    /// # Safety
    /// What the instruction addresses must be there.
    unsafe fn run(&mut self, instruction: Instruction) -> bool {
        let row = |address: u64, stride: u64, row: usize| address.wrapping_add(stride.wrapping_mul(row as u64));
        // SAFETY: the caller's promise. AVX-512 is there, or the unit would not be emulated.
        unsafe {
            match instruction {
                Instruction::Configure(address) => {
                    let configuration = (address as *const [u8; 64]).read_unaligned();
                    // Palette 1, rows of 64 bytes in 16 bits each, 16 rows. Smaller registers are not emulated.
                    let is_known = configuration[0] == 1
                        && configuration[1..16].iter().all(|&byte| byte == 0)
                        && configuration[16..32] == [64, 0].repeat(8)
                        && configuration[48..56] == [16; 8];
                    self.is_configured = is_known;
                    self.registers.iter_mut().flatten().for_each(|row| row.fill(0));
                    return is_known;
                }
                Instruction::Release => self.is_configured = false,
                _ if !self.is_configured => return false,
                Instruction::Zero(register) => self.registers[register] = [[0; PAIRS]; ROWS],
                Instruction::Load(register, address, stride) => {
                    for (at, words) in self.registers[register].iter_mut().enumerate() {
                        *words = (row(address, stride, at) as *const [u32; PAIRS]).read_unaligned();
                    }
                }
                Instruction::Store(register, address, stride) => {
                    for (at, words) in self.registers[register].iter().enumerate() {
                        (row(address, stride, at) as *mut [u32; PAIRS]).write_unaligned(*words);
                    }
                }
                Instruction::Multiply(sums, rows, lanes) | Instruction::MultiplyBytes(sums, rows, lanes) => {
                    if sums == rows || sums == lanes || rows == lanes {
                        return false;
                    }
                    let (rows, lanes) = (self.registers[rows], self.registers[lanes]);
                    let sums = &mut self.registers[sums];
                    match instruction {
                        Instruction::Multiply(..) => with_small_numbers_as_zero(|| multiply(sums, &rows, &lanes)),
                        _ => multiply_bytes(sums, &rows, &lanes),
                    }
                }
            }
        }
        true
    }
}

/// Runs `body` with numbers below the smallest normal one taken for zero, and rounded to it, as the
/// unit does, and puts the setting back that was there. Rust allows no other setting to its own code;
/// `body` is to be a call of vector instructions alone, which compilers do not evaluate.
fn with_small_numbers_as_zero(body: impl FnOnce()) {
    // All exceptions masked, to nearest, DAZ and FTZ.
    let (setting, mut before) = (0x9fc0_u32, 0_u32);
    // SAFETY: the setting is a valid one; `body` is not moved before it, as it is a call of its own.
    unsafe {
        asm!("stmxcsr [{}]", "ldmxcsr [{}]", in(reg) &raw mut before, in(reg) &raw const setting, options(nostack));
    }
    body();
    // SAFETY: the setting that was there.
    unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const before, options(nostack, readonly)) };
}

/// `TDPBF16PS`: the sum over the first numbers of all pairs, and over the second ones, by fused
/// multiply-adds; then both together are added to what is there.
///
/// # Safety
/// The processor must have AVX-512.
#[inline(never)]
#[target_feature(enable = "avx512f")]
unsafe fn multiply(sums: &mut Register, rows: &Register, lanes: &Register) {
    // SAFETY: a row of a register is 64 bytes.
    unsafe {
        let second = _mm512_set1_epi32(0xffff_0000_u32.cast_signed());
        let first_of = |pairs: __m512i| -> __m512 { _mm512_castsi512_ps(_mm512_slli_epi32::<16>(pairs)) };
        let second_of = |pairs: __m512i| -> __m512 { _mm512_castsi512_ps(_mm512_and_si512(pairs, second)) };
        for (sums, row) in sums.iter_mut().zip(rows) {
            let (mut even, mut odd) = (_mm512_setzero_ps(), _mm512_setzero_ps());
            for (pair, lanes) in row.iter().zip(lanes) {
                let (pair, lanes) = (_mm512_set1_epi32(pair.cast_signed()), _mm512_loadu_si512(lanes.as_ptr().cast()));
                even = _mm512_fmadd_ps(first_of(pair), first_of(lanes), even);
                odd = _mm512_fmadd_ps(second_of(pair), second_of(lanes), odd);
            }
            let before = _mm512_castsi512_ps(_mm512_loadu_si512(sums.as_ptr().cast()));
            _mm512_storeu_ps(sums.as_mut_ptr().cast(), _mm512_add_ps(before, _mm512_add_ps(even, odd)));
        }
    }
}

/// `TDPBSSD`: four products of signed bytes of each pair of words, added exactly, or wrapping around.
fn multiply_bytes(sums: &mut Register, rows: &Register, lanes: &Register) {
    let bytes = |word: u32| word.to_le_bytes().map(|byte| i32::from(byte.cast_signed()));
    for (sums, row) in sums.iter_mut().zip(rows) {
        for (word, lanes) in row.iter().zip(lanes) {
            let word = bytes(*word);
            for (sum, lane) in sums.iter_mut().zip(lanes) {
                let products: i32 = word.iter().zip(bytes(*lane)).map(|(a, b)| a * b).sum();
                *sum = sum.wrapping_add(products.cast_unsigned());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the manual's encodings are read as; registers hold their number times 1,000.
    #[test]
    fn instructions_are_read_with_their_operands() {
        let read = |code: &[u8]| {
            let mut bytes = [0x90; 16];
            bytes[..code.len()].copy_from_slice(code);
            // SAFETY: the bytes are longer than any of the instructions.
            unsafe { decode(bytes.as_ptr(), |number| 1000 * number as u64) }
        };
        // Made by an assembler: the text beside each.
        let cases: [(&[u8], Instruction); 11] = [
            (&[0xc4, 0xe2, 0x78, 0x49, 0x00], Instruction::Configure(0)), // ldtilecfg [rax]
            (&[0xc4, 0xc2, 0x78, 0x49, 0x04, 0x24], Instruction::Configure(12_000)), // ldtilecfg [r12]
            (&[0xc4, 0xe2, 0x78, 0x49, 0xc0], Instruction::Release),      // tilerelease
            (&[0xc4, 0xe2, 0x7b, 0x49, 0xe8], Instruction::Zero(5)),      // tilezero tmm5
            (&[0xc4, 0xe2, 0x7b, 0x4b, 0x34, 0x1e], Instruction::Load(6, 6000, 3000)), // tileloadd tmm6, [rsi + rbx]
            (&[0xc4, 0xa2, 0x7b, 0x4b, 0x7c, 0x0f, 0x40], Instruction::Load(7, 7064, 9000)), // [rdi + r9 + 64]
            (&[0xc4, 0x82, 0x7b, 0x4b, 0x94, 0x50, 0x00, 0x08, 0x00, 0x00], Instruction::Load(2, 10_048, 20_000)), // tmm2, [r8 + 2*r10 + 2048]
            (&[0xc4, 0xe2, 0x7a, 0x4b, 0x04, 0x20], Instruction::Store(0, 0, 0)), // tilestored [rax], tmm0
            (&[0xc4, 0xe2, 0x4a, 0x5c, 0xc4], Instruction::Multiply(0, 4, 6)),    // tdpbf16ps tmm0, tmm4, tmm6
            (&[0xc4, 0xe2, 0x42, 0x5c, 0xdd], Instruction::Multiply(3, 5, 7)),    // tdpbf16ps tmm3, tmm5, tmm7
            (&[0xc4, 0xe2, 0x63, 0x5e, 0xca], Instruction::MultiplyBytes(1, 2, 3)), // tdpbssd tmm1, tmm2, tmm3
        ];
        for (code, expected) in cases {
            assert_eq!(read(code), Some((expected, code.len() as i64)), "{code:x?}");
        }
        // `ud2`, `vaddps`, and `tdpbusd`, which is not emulated.
        for code in [&[0x0f, 0x0b][..], &[0xc4, 0xe1, 0x78, 0x58, 0xc0], &[0xc4, 0xe2, 0x61, 0x5e, 0xca]] {
            assert_eq!(read(code), None, "{code:x?}");
        }
    }
}
