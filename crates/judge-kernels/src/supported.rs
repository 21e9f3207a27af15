//! The proof that a processor has a kernel's instructions.
//!
//! Owns the detection and the choice of kernels (`kernel.rs` has their names); whether AMX may be used is found out by `processor.rs`.
//! `model.rs` turns `LoadOptions::kernel` into a [`Supported`], which then is in every packed matrix and in the settings of attention.

use std::fmt;

use super::kernel::Kernel;

/// A kernel was asked for whose instructions this processor lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoKernel {
    /// The kernel asked for.
    pub kernel: Kernel,
    /// The kernels that the processor can run.
    pub available: Vec<Kernel>,
}

impl fmt::Display for NoKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let available: Vec<String> = self.available.iter().map(Kernel::to_string).collect();
        write!(f, "this processor cannot run the kernel {}; it has {}", self.kernel, available.join(", "))
    }
}

impl std::error::Error for NoKernel {}

impl Kernel {
    /// All kernels, the fastest on this processor first.
    fn all() -> [Self; 11] {
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

    /// The one that multiplies where none is named: the fastest that this processor has.
    #[must_use]
    pub fn fastest() -> Self {
        Supported::fastest().0
    }

    /// Whether this processor has the instructions and the system lets the process use them. Looked
    /// up each time; the detection itself is cached.
    fn is_available(self) -> bool {
        self.is_detected() && !self.is_masked()
    }

    /// Whether tests run as on a processor whose fastest kernel is a slower one than this.
    fn is_masked(self) -> bool {
        let place = |kernel| Self::all().iter().position(|&other| other == kernel);
        of_tests().is_some_and(|fastest| place(self) < place(fastest))
    }

    /// As [`is_available`](Self::is_available), whatever tests ask for.
    fn is_detected(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Amx => super::processor::runs_matrix_unit(),
            #[cfg(target_arch = "x86_64")]
            Self::AmxInt8 => {
                Self::Amx.is_detected() && Self::Avx512Vnni.is_detected() && super::processor::multiplies_bytes()
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
            #[cfg(target_arch = "x86_64")]
            Self::Avx2Int8 => Self::Avx2.is_detected(),
            #[cfg(target_arch = "aarch64")]
            Self::Neon => true,
            #[cfg(target_arch = "aarch64")]
            Self::NeonBf16 => std::arch::is_aarch64_feature_detected!("bf16"),
            #[cfg(target_arch = "aarch64")]
            // Rows are written as bytes and read as words.
            Self::NeonInt8 => cfg!(target_endian = "little") && std::arch::is_aarch64_feature_detected!("dotprod"),
            Self::Portable => true,
            _ => false,
        }
    }
}

/// What `JUDGE_TEST_KERNEL` names: the fastest kernel of the processor that tests are to run as on. So one machine runs the tests of
/// many: faster kernels are taken to be missing, and this one is chosen where none is named, by a matrix unit in software too.
///
/// # Panics
/// If it names no kernel, one that is never chosen, or one that the processor lacks: tests would run with another one.
#[cfg(any(test, feature = "emulated-unit"))]
fn of_tests() -> Option<Kernel> {
    const NAME: &str = "JUDGE_TEST_KERNEL";
    static NAMED: std::sync::OnceLock<Option<Kernel>> = std::sync::OnceLock::new();
    *NAMED.get_or_init(|| {
        let kernel: Kernel = std::env::var(NAME).ok()?.parse().unwrap_or_else(|error| panic!("{NAME}: {error}"));
        assert!(!kernel.multiplies_integers(), "{NAME}: {kernel} is never chosen; name the kernel of its floats");
        assert!(kernel.is_detected(), "{NAME}: this processor lacks {kernel}");
        Some(kernel)
    })
}

/// Programs that are not made for tests take the processor as it is.
#[cfg(not(any(test, feature = "emulated-unit")))]
fn of_tests() -> Option<Kernel> {
    None
}

/// A kernel that this processor has. It is made by looking, and by nothing else, so that a caller that
/// holds one may run the kernel's instructions: bodies that need them take it as their proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Supported(Kernel);

impl Supported {
    /// Plain loops, which every processor has.
    pub const PORTABLE: Self = Self(Kernel::Portable);

    /// All that this processor has, the fastest first. Tests run each of them.
    pub fn all() -> impl Iterator<Item = Self> {
        Kernel::all().into_iter().filter(|kernel| kernel.is_available()).map(Self)
    }

    /// The fastest that this processor has. A unit in software is not.
    pub fn fastest() -> Self {
        Self::all().find(|kernel| kernel.is_hardware()).unwrap_or(Self::PORTABLE)
    }

    /// Whether it is the processor that runs the kernel's instructions, and not software in its stead.
    fn is_hardware(self) -> bool {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Kernel::Amx | Kernel::AmxInt8 => super::processor::has_matrix_unit() || of_tests() == Some(Kernel::Amx),
            _ => true,
        }
    }

    /// The given kernel; `None` stands for the fastest that the processor has.
    ///
    /// # Errors
    /// [`NoKernel`] if the processor lacks it, with all that it has.
    pub fn choose(kernel: Option<Kernel>) -> Result<Self, NoKernel> {
        match kernel {
            Some(kernel) if kernel.is_available() => Ok(Self(kernel)),
            Some(kernel) => Err(NoKernel { kernel, available: Kernel::available() }),
            None => Ok(Self::fastest()),
        }
    }

    /// The kernel without the proof, to be shown or matched on.
    pub fn kernel(self) -> Kernel {
        self.0
    }

    /// The kernel of the same floats, or else `avx512-vnni`, that multiplies codes as integers, if the processor has one and this
    /// is none.
    pub fn of_integers(self) -> Option<Kernel> {
        if self.0.multiplies_integers() {
            return None;
        }
        let usable =
            |kernel: &Kernel| kernel.multiplies_integers() && kernel.is_available() && Self(*kernel).is_hardware();
        let kernels: Vec<Kernel> = Kernel::all().into_iter().filter(usable).collect();
        let of_same_floats = kernels.iter().find(|kernel| kernel.of_floats() == self.of_floats());
        of_same_floats.or_else(|| kernels.iter().find(|&&kernel| kernel == Kernel::Avx512Vnni)).copied()
    }

    /// The kernel that products of floats, and attention, are made with. Its instructions are there too.
    pub fn of_floats(self) -> Kernel {
        self.0.of_floats()
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
        assert!(!Supported::fastest().kernel().multiplies_integers());
        // Nor what has never been timed.
        assert_eq!(
            chosen(false, &[Kernel::NeonInt8, Kernel::NeonBf16, Kernel::Portable, Kernel::Neon]),
            Some(Kernel::Neon)
        );
        for on_intel in [true, false] {
            let kernels = Kernel::by_speed(on_intel);
            let place = |kernel| kernels.iter().position(|&other| other == kernel);
            // A processor that has them has the kernel of their floats, which comes first.
            for kernel in kernels.into_iter().filter(|kernel| kernel.multiplies_integers()) {
                assert!(place(kernel.of_floats()) < place(kernel), "{kernel}");
            }
        }
    }
}
