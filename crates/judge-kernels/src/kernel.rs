//! The names of the instructions that products and attention are made with.
//!
//! Whether a processor has them is for `supported.rs` to find out. The loops are elsewhere, written once over `registers.rs`:
//! `tile/body.rs` (floats), `coded/body.rs` (codes), `integers/body.rs` (integers), with entries for each processor beside them;
//! `unit.rs` has the matrix unit (AMX), `tile/any.rs` what any processor runs.
//!
//! Bits are a function of the kernel, and the kernel that is chosen where none is named is one of the
//! processor's instructions and maker: [`by_speed`](Kernel::by_speed). Nothing is timed.
//!
//! | kernel | products of bf16 weights | products of f32 weights |
//! |---|---|---|
//! | `amx` | pairs, on the matrix unit | as `avx512` |
//! | `avx512-bf16` | pairs, `VDPBF16PS` | as `avx512` |
//! | `avx512` | widened to f32, fused multiply-adds | fused multiply-adds, 16 lanes |
//! | `amx-int8` | as `amx` | as `avx512` |
//! | `avx512-vnni` | as `avx512` | as `avx512` |
//! | `avx2` | widened to f32, fused multiply-adds | fused multiply-adds, 8 lanes |
//! | `avx2-int8` | as `avx2` | as `avx2` |
//! | `neon-bf16` | pairs, `BFDOT` | as `neon` |
//! | `neon` | widened to f32, fused multiply-adds | fused multiply-adds, 4 lanes |
//! | `neon-int8` | as `neon` | as `neon` |
//! | `portable` | widened to f32, not fused, any vectors | not fused, any vectors |
//!
//! Matrices that are kept as codes give the products of their numbers, in either dtype, but for signed ones of eight bits and integers
//! of four bits with `amx-int8`, `avx512-vnni`, `avx2-int8` and `neon-int8`: they are multiplied as integers (`integers.rs`).

use std::fmt;
use std::str::FromStr;

/// Instructions that products of packed bf16 weights are made with on the CPU.
///
/// All of them compute the same sums, each in an order of its own, but for those that
/// [multiply integers](Self::multiplies_integers), which round otherwise. So results differ in their last bits between kernels;
/// with one kernel they are the same bits on every processor that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kernel {
    /// The matrix unit of Intel's server processors, written `amx`, for products and attention in
    /// bf16. The system must let the process use the unit; where it does not, this kernel is not
    /// available.
    Amx,
    /// [`Amx`](Self::Amx) with integers of eight bits, written `amx-int8`: matrices that are kept as signed
    /// codes of eight bits or as integers of four are multiplied as integers, to the same bits as with
    /// [`Avx512Vnni`](Self::Avx512Vnni), and everything else is as with [`Amx`](Self::Amx). It is never
    /// chosen unless it is named.
    AmxInt8,
    /// AVX-512 with its products of bf16 pairs, written `avx512-bf16`.
    Avx512Bf16,
    /// AVX-512, written `avx512`: bf16 weights and activations are widened to f32 on the way.
    Avx512,
    /// [`Avx512`](Self::Avx512) with integers of eight bits (VNNI), written `avx512-vnni`: matrices that
    /// are kept as signed codes of eight bits, as `WeightForm::Int8` has them, or as integers of four bits are
    /// multiplied as integers, with what products take in rounded to eight bits as well, for each group of at
    /// most 256 columns, and weights not rounded to bf16. Rows of the head that label logits are
    /// made of are in the dtype all the same. It is never chosen unless it is named.
    Avx512Vnni,
    /// AVX2 with FMA, written `avx2`: widened likewise, and the same sums to the bit as
    /// [`Avx512`](Self::Avx512).
    Avx2,
    /// [`Avx2`](Self::Avx2) with integers of eight bits, written `avx2-int8`: matrices of codes are multiplied as with
    /// [`Avx512Vnni`](Self::Avx512Vnni), to the same bits, by AVX-VNNI where the processor has it. It is never chosen unless it is
    /// named.
    Avx2Int8,
    /// NEON with its products of bf16 pairs, written `neon-bf16`. It is never chosen unless it is named, since its speed is not known.
    NeonBf16,
    /// NEON, written `neon`, which every ARM processor of 64 bits has: bf16 weights and activations are widened to f32, and summed
    /// to the same bits as with [`Avx2`](Self::Avx2).
    Neon,
    /// [`Neon`](Self::Neon) with integers of eight bits, written `neon-int8`, where the processor has dot products: matrices of codes
    /// are multiplied as with [`Avx512Vnni`](Self::Avx512Vnni), to the same bits. It is never chosen unless it is named.
    NeonInt8,
    /// Loops for whatever vectors a processor has, written `portable`: the same bits on all of them.
    Portable,
}

/// How the codes of a matrix are multiplied as integers (`integers.rs`).
#[derive(Clone, Copy)]
pub(crate) struct IntegerCodes {
    /// Columns that share a scale, whole words of codes.
    pub(crate) scaled: usize,
    /// Bits of a code: 8, signed and with scales alone, or 4.
    pub(crate) bits: usize,
    /// Whether codes have a sign.
    pub(crate) is_signed: bool,
}

impl Kernel {
    /// All kernels, the fastest first on a processor by Intel or by another maker.
    ///
    /// Without the matrix unit, Intel's cores take four cycles for a `VDPBF16PS` where AMD's take one, and
    /// one for a fused multiply-add, of which two do the same work; so `avx512` comes before `avx512-bf16`
    /// there. What comes after the first that a processor has is never chosen unless it is named.
    pub const fn by_speed(on_intel: bool) -> [Self; 11] {
        let [first, second] =
            if on_intel { [Self::Avx512, Self::Avx512Bf16] } else { [Self::Avx512Bf16, Self::Avx512] };
        [
            Self::Amx,
            Self::AmxInt8,
            first,
            second,
            Self::Avx512Vnni,
            Self::Avx2,
            Self::Avx2Int8,
            Self::Neon,
            Self::NeonBf16,
            Self::NeonInt8,
            Self::Portable,
        ]
    }

    /// The names of all kernels, as a message lists them.
    pub(crate) fn names() -> String {
        let [others @ .., last] = Self::by_speed(false).map(|kernel| kernel.to_string());
        format!("{} or {last}", others.join(", "))
    }

    /// Whether products of bf16 weights with many rows gain by widening each panel of weights to
    /// f32 first, instead of anew for every few rows; where weights are codes, with any number of rows. Sums have the same bits either
    /// way.
    pub(crate) fn multiplies_f32(self) -> bool {
        matches!(self.of_floats(), Self::Avx512 | Self::Avx2 | Self::Neon)
    }

    /// Whether matrices that are kept as codes are multiplied as integers, with what they multiply rounded to eight bits.
    #[must_use]
    pub fn multiplies_integers(self) -> bool {
        self != self.of_floats()
    }

    /// The kernel that all is made with but products of integers.
    pub(crate) fn of_floats(self) -> Self {
        match self {
            Self::AmxInt8 => Self::Amx,
            Self::Avx512Vnni => Self::Avx512,
            Self::Avx2Int8 => Self::Avx2,
            Self::NeonInt8 => Self::Neon,
            other => other,
        }
    }
}

impl fmt::Display for Kernel {
    /// The name that [`FromStr`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Amx => "amx",
            Self::AmxInt8 => "amx-int8",
            Self::Avx512Bf16 => "avx512-bf16",
            Self::Avx512 => "avx512",
            Self::Avx512Vnni => "avx512-vnni",
            Self::Avx2 => "avx2",
            Self::Avx2Int8 => "avx2-int8",
            Self::NeonBf16 => "neon-bf16",
            Self::Neon => "neon",
            Self::NeonInt8 => "neon-int8",
            Self::Portable => "portable",
        })
    }
}

/// A text is not the name of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownKernel {
    /// The text.
    pub found: String,
}

impl fmt::Display for UnknownKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is no kernel: expected {}", self.found, Kernel::names())
    }
}

impl std::error::Error for UnknownKernel {}

impl FromStr for Kernel {
    type Err = UnknownKernel;

    /// Reads a kernel's name, such as `avx2`, in exactly this spelling. The processor need not have the kernel.
    ///
    /// # Errors
    /// [`UnknownKernel`] for any other text.
    fn from_str(text: &str) -> Result<Self, UnknownKernel> {
        let mut all = Self::by_speed(false).into_iter();
        all.find(|kernel| kernel.to_string() == text).ok_or_else(|| UnknownKernel { found: text.to_owned() })
    }
}
