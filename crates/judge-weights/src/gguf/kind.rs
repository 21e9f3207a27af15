//! The types of tensors in GGUF files: their numbers, names and sizes.
//!
//! What the bytes of a block stand for is the business of `blocks.rs`.

use std::fmt;

use safetensors::Dtype as Stored;

/// How a tensor's numbers are stored: the types that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(non_camel_case_types, reason = "these are llama.cpp's names, and parts of a fingerprint")]
pub enum Kind {
    /// Plain f64, which nothing here computes in.
    F64,
    /// Plain f32.
    F32,
    /// Plain f16.
    F16,
    /// Plain bf16.
    BF16,
    /// 32 codes of 4 bits with a scale.
    Q4_0,
    /// 32 codes of 4 bits with a scale and a summand.
    Q4_1,
    /// 32 codes of 5 bits with a scale.
    Q5_0,
    /// 32 codes of 5 bits with a scale and a summand.
    Q5_1,
    /// 32 signed bytes with a scale.
    Q8_0,
    /// 256 codes of 2 bits; each 16 have a scale and a minimum of 4 bits.
    Q2_K,
    /// 256 codes of 3 bits; each 16 have a scale of 6 bits.
    Q3_K,
    /// 256 codes of 4 bits; each 32 have a scale and a minimum of 6 bits.
    Q4_K,
    /// 256 codes of 5 bits; each 32 have a scale and a minimum of 6 bits.
    Q5_K,
    /// 256 codes of 6 bits; each 16 have a scale of 8 bits.
    Q6_K,
    /// 256 numbers, eight at a time from a grid of 256, with signs; each 32 have a scale of 4 bits.
    IQ2_XXS,
    /// 256 numbers, eight at a time from a grid of 512, with signs; each 16 have a scale of 4 bits.
    IQ2_XS,
    /// 256 numbers, eight at a time from a grid of 1,024, with signs; each 16 have a scale of 4 bits.
    IQ2_S,
    /// 256 numbers, four at a time from a grid of 256, with signs; each 32 have a scale of 4 bits.
    IQ3_XXS,
    /// 256 numbers, four at a time from a grid of 512, with signs; each 32 have a scale of 4 bits.
    IQ3_S,
    /// 256 numbers, eight at a time from a grid of 2,048; each 32 have a scale of 3 bits and a shift.
    IQ1_S,
    /// As IQ1_S; each 16 have a scale of 3 bits, each 8 a shift.
    IQ1_M,
    /// 32 codes of 4 bits that name one of 16 integers, with a scale.
    IQ4_NL,
    /// 256 codes as in IQ4_NL; each 32 have a scale of 6 bits.
    IQ4_XS,
    /// 256 of −1, 0 and 1, five to a byte, with a scale.
    TQ1_0,
    /// 256 of −1, 0, 1 and 2, four to a byte, with a scale.
    TQ2_0,
    /// 32 floats of 4 bits with a power of two.
    MXFP4,
    /// 64 floats of 4 bits; each 16 have a scale of 7 bits, a float too.
    NVFP4,
}

/// Every type that is read: its number in `ggml_type`, its name, the elements of a block, which lie in
/// one row, and the bytes of a block. Plain numbers are blocks of one.
const KINDS: [(Kind, u32, &str, usize, usize); 27] = [
    (Kind::F64, 28, "F64", 1, 8),
    (Kind::F32, 0, "F32", 1, 4),
    (Kind::F16, 1, "F16", 1, 2),
    (Kind::BF16, 30, "BF16", 1, 2),
    (Kind::Q4_0, 2, "Q4_0", 32, 2 + 16),
    (Kind::Q4_1, 3, "Q4_1", 32, 4 + 16),
    (Kind::Q5_0, 6, "Q5_0", 32, 2 + 4 + 16),
    (Kind::Q5_1, 7, "Q5_1", 32, 4 + 4 + 16),
    (Kind::Q8_0, 8, "Q8_0", 32, 2 + 32),
    (Kind::Q2_K, 10, "Q2_K", 256, 16 + 64 + 4),
    (Kind::Q3_K, 11, "Q3_K", 256, 32 + 64 + 12 + 2),
    (Kind::Q4_K, 12, "Q4_K", 256, 4 + 12 + 128),
    (Kind::Q5_K, 13, "Q5_K", 256, 4 + 12 + 32 + 128),
    (Kind::Q6_K, 14, "Q6_K", 256, 128 + 64 + 16 + 2),
    (Kind::IQ2_XXS, 16, "IQ2_XXS", 256, 2 + 64),
    (Kind::IQ2_XS, 17, "IQ2_XS", 256, 2 + 64 + 8),
    (Kind::IQ2_S, 22, "IQ2_S", 256, 2 + 32 + 32 + 8 + 8),
    (Kind::IQ3_XXS, 18, "IQ3_XXS", 256, 2 + 64 + 32),
    (Kind::IQ3_S, 21, "IQ3_S", 256, 2 + 64 + 8 + 32 + 4),
    (Kind::IQ1_S, 19, "IQ1_S", 256, 2 + 32 + 16),
    (Kind::IQ1_M, 29, "IQ1_M", 256, 32 + 16 + 8),
    (Kind::IQ4_NL, 20, "IQ4_NL", 32, 2 + 16),
    (Kind::IQ4_XS, 23, "IQ4_XS", 256, 2 + 2 + 4 + 128),
    (Kind::TQ1_0, 34, "TQ1_0", 256, 48 + 4 + 2),
    (Kind::TQ2_0, 35, "TQ2_0", 256, 64 + 2),
    (Kind::MXFP4, 39, "MXFP4", 32, 1 + 16),
    (Kind::NVFP4, 40, "NVFP4", 64, 4 + 32),
];

/// Names of the types that are not read, by their number, so that an error can say which one a file
/// has. Q8_1 and Q8_K are for activations, and no file has them; integers hold no weights.
const OTHERS: [(u32, &str); 7] =
    [(9, "Q8_1"), (15, "Q8_K"), (24, "I8"), (25, "I16"), (26, "I32"), (27, "I64"), (41, "Q1_0")];

impl Kind {
    /// The type of this number in a file.
    ///
    /// # Errors
    /// The name of a type that is not read, or the number where that is not known either.
    pub fn of(number: u32) -> Result<Self, String> {
        let known = KINDS.iter().find(|(_, known, ..)| *known == number).map(|(kind, ..)| *kind);
        known.ok_or_else(|| {
            let other = OTHERS.iter().find(|(other, _)| *other == number);
            other.map_or_else(|| number.to_string(), |(_, name)| (*name).to_owned())
        })
    }

    /// Every type that is read.
    pub fn all() -> impl Iterator<Item = Self> {
        KINDS.iter().map(|(kind, ..)| *kind)
    }

    /// Its name and sizes; see [`KINDS`].
    fn entry(self) -> (&'static str, usize, usize) {
        KINDS
            .iter()
            .find(|(kind, ..)| *kind == self)
            .map_or(("", 1, 1), |&(_, _, name, elements, bytes)| (name, elements, bytes))
    }

    /// The dtype of plain numbers; `None` for codes.
    pub fn stored(self) -> Option<Stored> {
        match self {
            Self::F64 => Some(Stored::F64),
            Self::F32 => Some(Stored::F32),
            Self::F16 => Some(Stored::F16),
            Self::BF16 => Some(Stored::BF16),
            _ => None,
        }
    }

    /// Elements of a block; 1 for plain numbers.
    pub fn elements(self) -> usize {
        self.entry().1
    }

    /// Bytes of a block.
    pub fn bytes(self) -> usize {
        self.entry().2
    }
}

impl fmt::Display for Kind {
    /// The type's name as llama.cpp writes it. It is part of a model's fingerprint.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.entry().0)
    }
}
