/// Which instructions the products use. Chosen at run time; every one computes the same sums, in an order of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kernel {
    /// AVX-512 with its products of bf16 pairs.
    #[cfg(target_arch = "x86_64")]
    Avx512Bf16,
    /// AVX2 with FMA; bf16 is widened on the way.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// What the compiler makes of plain loops.
    Portable,
}

impl Kernel {
    /// All that this processor has, the fastest first.
    pub(crate) fn available() -> Vec<Self> {
        let mut kernels = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bf16") {
                kernels.push(Self::Avx512Bf16);
            }
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                kernels.push(Self::Avx2);
            }
        }
        kernels.push(Self::Portable);
        kernels
    }

    /// The fastest that this processor has.
    pub(crate) fn detect() -> Self {
        Self::available().first().copied().unwrap_or(Self::Portable)
    }
}
