//! Which instructions products and attention are made with, and the proof that a processor has
//! them.
//!
//! Owns the names of kernels, their detection and their choice. The bodies are elsewhere:
//! `tile/x86.rs` (AVX-512-BF16, AVX-512, AVX2), `unit.rs` (AMX), `integers.rs` (VNNI), `tile/any.rs`
//! (any processor); whether
//! AMX may be used is found out by `processor.rs`. `model.rs` turns `LoadOptions::kernel` into a
//! [`Supported`], which then is in every packed matrix and in the settings of attention.
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
//! | `portable` | widened to f32, not fused, any vectors | not fused, any vectors |
//!
//! Matrices that are kept as codes give the products of their numbers, in either dtype, but for those
//! of eight bits with `amx-int8` and `avx512-vnni`: they are multiplied as integers (`integers.rs`).

use std::fmt;
use std::str::FromStr;

use crate::Error;

/// Instructions that products of packed bf16 weights are made with on the CPU.
///
/// All of them compute the same sums, each in an order of its own, but for [`AmxInt8`](Self::AmxInt8) and
/// [`Avx512Vnni`](Self::Avx512Vnni), which round otherwise. So results differ in their last bits between kernels; with one kernel they are the same bits on every processor that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kernel {
    /// The matrix unit of Intel's server processors, written `amx`, for products and attention in
    /// bf16. The system must let the process use the unit; where it does not, this kernel is not
    /// available.
    Amx,
    /// [`Amx`](Self::Amx) with integers of eight bits, written `amx-int8`: matrices that are kept as signed
    /// codes of eight bits are multiplied as integers, to the same bits as with
    /// [`Avx512Vnni`](Self::Avx512Vnni), and everything else is as with [`Amx`](Self::Amx). It is never
    /// chosen unless it is named.
    AmxInt8,
    /// AVX-512 with its products of bf16 pairs, written `avx512-bf16`.
    Avx512Bf16,
    /// AVX-512, written `avx512`: bf16 weights and activations are widened to f32 on the way.
    Avx512,
    /// [`Avx512`](Self::Avx512) with integers of eight bits (VNNI), written `avx512-vnni`: matrices that
    /// are kept as signed codes of eight bits, as [`WeightForm::Int8`](crate::WeightForm) has them, are
    /// multiplied as integers, with what products take in rounded to eight bits as well, for each group of at
    /// most 256 columns, and weights not rounded to bf16. Rows of the head that label logits are
    /// made of are in the dtype all the same. It is never chosen unless it is named.
    Avx512Vnni,
    /// AVX2 with FMA, written `avx2`: widened likewise, and the same sums to the bit as
    /// [`Avx512`](Self::Avx512).
    Avx2,
    /// Loops for whatever vectors a processor has, written `portable`: the same bits on all of them.
    Portable,
}

impl Kernel {
    /// All kernels, the fastest first on a processor by Intel or by another maker.
    ///
    /// Without the matrix unit, Intel's cores take four cycles for a `VDPBF16PS` where AMD's take one, and
    /// one for a fused multiply-add, of which two do the same work; so `avx512` comes before `avx512-bf16`
    /// there. What comes after the first that a processor has is never chosen unless it is named.
    const fn by_speed(on_intel: bool) -> [Self; 7] {
        let [first, second] =
            if on_intel { [Self::Avx512, Self::Avx512Bf16] } else { [Self::Avx512Bf16, Self::Avx512] };
        [Self::Amx, Self::AmxInt8, first, second, Self::Avx512Vnni, Self::Avx2, Self::Portable]
    }

    /// All kernels, the fastest on this processor first.
    fn all() -> [Self; 7] {
        #[cfg(target_arch = "x86_64")]
        let on_intel = super::processor::is_by_intel();
        #[cfg(not(target_arch = "x86_64"))]
        let on_intel = false;
        Self::by_speed(on_intel)
    }

    /// All kernels that this processor has, the fastest first. The last is always
    /// [`Portable`](Self::Portable). With the feature `emulated-unit`, which is for tests, those of the
    /// matrix unit are among them where software can stand in for it.
    #[must_use]
    pub fn available() -> Vec<Self> {
        Self::all().into_iter().filter(|kernel| kernel.is_available()).collect()
    }

    /// Whether products of bf16 weights with many rows gain by widening each panel of weights to
    /// f32 first, instead of anew for every few rows. Sums have the same bits either way.
    pub(super) fn multiplies_f32(self) -> bool {
        matches!(self.of_floats(), Self::Avx512 | Self::Avx2)
    }

    /// The kernel that all is made with but products of integers.
    fn of_floats(self) -> Self {
        match self {
            Self::AmxInt8 => Self::Amx,
            Self::Avx512Vnni => Self::Avx512,
            other => other,
        }
    }

    /// Whether this processor has the instructions and the system lets the process use them. Looked
    /// up each time; the detection itself is cached.
    fn is_available(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Amx => super::processor::runs_matrix_unit(),
            #[cfg(target_arch = "x86_64")]
            Self::AmxInt8 => {
                Self::Amx.is_available() && Self::Avx512Vnni.is_available() && super::processor::multiplies_bytes()
            }
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Bf16 => is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bf16"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => is_x86_feature_detected!("avx512f"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Vnni => {
                is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512vnni")
            }
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"),
            Self::Portable => true,
            #[cfg(not(target_arch = "x86_64"))]
            _ => false,
        }
    }
}

/// A kernel that this processor has. It is made by looking, and by nothing else, so that whoever
/// holds one may run the kernel's instructions: bodies that need them take it as their proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Supported(Kernel);

impl Supported {
    /// Plain loops, which every processor has.
    pub(crate) const PORTABLE: Self = Self(Kernel::Portable);

    /// All that this processor has, the fastest first. Tests run each of them.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        Kernel::all().into_iter().filter(|kernel| kernel.is_available()).map(Self)
    }

    /// The fastest that this processor has. A unit in software is not.
    pub(crate) fn fastest() -> Self {
        Self::all().find(|kernel| kernel.is_hardware()).unwrap_or(Self::PORTABLE)
    }

    /// Whether it is the processor that runs the kernel's instructions, and not software in its stead.
    fn is_hardware(self) -> bool {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Kernel::Amx | Kernel::AmxInt8 => super::processor::has_matrix_unit(),
            _ => true,
        }
    }

    /// The given kernel; `None` stands for the fastest that the processor has.
    ///
    /// # Errors
    /// [`Error::NoKernel`] if the processor lacks it, with all that it has.
    pub(crate) fn choose(kernel: Option<Kernel>) -> Result<Self, Error> {
        match kernel {
            Some(kernel) if kernel.is_available() => Ok(Self(kernel)),
            Some(kernel) => Err(Error::NoKernel { kernel, available: Kernel::available() }),
            None => Ok(Self::fastest()),
        }
    }

    /// The kernel without the proof, to be shown or matched on.
    pub(crate) fn kernel(self) -> Kernel {
        self.0
    }

    /// The kernel, of the same floats where there is one, that multiplies codes of eight bits as integers, if the processor has one
    /// and this is none.
    pub(crate) fn of_integers(self) -> Option<Kernel> {
        let multiplies_integers = |kernel: &Kernel| *kernel != kernel.of_floats();
        let usable = |kernel: &Kernel| kernel.is_available() && Self(*kernel).is_hardware();
        if multiplies_integers(&self.0) {
            return None;
        }
        let mut kernels = Kernel::all().into_iter().filter(multiplies_integers).filter(usable);
        kernels.clone().find(|kernel| kernel.of_floats() == self.of_floats()).or_else(|| kernels.next())
    }

    /// The kernel that products of floats, and attention, are made with. Its instructions are there too.
    pub(crate) fn of_floats(self) -> Kernel {
        self.0.of_floats()
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
            Self::Portable => "portable",
        })
    }
}

impl FromStr for Kernel {
    type Err = Error;

    /// Reads `amx`, `amx-int8`, `avx512-bf16`, `avx512`, `avx512-vnni`, `avx2` or `portable`, in exactly this
    /// spelling. The processor need not have the kernel.
    ///
    /// # Errors
    /// [`Error::UnknownKernel`] for any other text.
    fn from_str(text: &str) -> Result<Self, Error> {
        Self::all()
            .into_iter()
            .find(|kernel| kernel.to_string() == text)
            .ok_or_else(|| Error::UnknownKernel { found: text.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel that is chosen by a processor's maker and the kernels that it has.
    fn chosen(on_intel: bool, has: &[Kernel]) -> Option<Kernel> {
        Kernel::by_speed(on_intel).into_iter().find(|kernel| has.contains(kernel))
    }

    #[test]
    fn pairs_are_multiplied_in_f32_by_intels_cores_and_as_pairs_by_others() {
        use Kernel::{Amx, Avx2, Avx512, Avx512Bf16, Avx512Vnni, Portable};
        let masked = [Avx512Vnni, Avx2, Avx512, Portable, Avx512Bf16];
        assert_eq!(chosen(true, &masked), Some(Avx512));
        assert_eq!(chosen(false, &masked), Some(Avx512Bf16));
        let with_unit = [Portable, Avx2, Avx512, Avx512Bf16, Amx];
        assert_eq!([true, false].map(|on_intel| chosen(on_intel, &with_unit)), [Some(Amx); 2]);
        assert_eq!([true, false].map(|on_intel| chosen(on_intel, &[Portable, Avx2])), [Some(Avx2); 2]);
    }

    #[test]
    fn what_rounds_otherwise_is_never_chosen() {
        let is_exact = |kernel: &Kernel| *kernel == kernel.of_floats();
        assert!(is_exact(&Supported::fastest().kernel()));
        for on_intel in [true, false] {
            let kernels = Kernel::by_speed(on_intel);
            let place = |kernel| kernels.iter().position(|&other| other == kernel);
            // Whoever has them has the kernel of their floats, which comes first.
            assert!(place(Kernel::Amx) < place(Kernel::AmxInt8) && place(Kernel::Avx512) < place(Kernel::Avx512Vnni));
        }
    }
}
