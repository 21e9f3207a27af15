//! A tensor as its file holds it, and the checks that readers of codes and scales begin with.

use std::path::Path;

use half::{bf16, f16};
use safetensors::Dtype as Stored;

use crate::Error;
use crate::error::TensorProblem;

/// A tensor as it is stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Raw<'a> {
    /// The file it is in.
    pub(crate) path: &'a Path,
    pub(crate) name: &'a str,
    pub(crate) dtype: Stored,
    pub(crate) shape: &'a [usize],
    /// Row-major, as long as dtype and shape say.
    pub(crate) bytes: &'a [u8],
}

impl<'a> Raw<'a> {
    /// What is wrong with it, as an error that names it.
    pub(crate) fn fault(&self, problem: TensorProblem) -> Error {
        Error::Tensor { path: self.path.to_owned(), tensor: self.name.to_owned(), problem }
    }

    /// Fails unless it has this dtype.
    pub(crate) fn of_dtype(self, dtype: Stored, expected: &'static str) -> Result<Self, Error> {
        if self.dtype == dtype { Ok(self) } else { Err(self.other_dtype(expected)) }
    }

    /// The error of a dtype other than those `expected`.
    pub(crate) fn other_dtype(&self, expected: &'static str) -> Error {
        self.fault(TensorProblem::OtherDtype { expected, found: format!("{:?}", self.dtype) })
    }

    /// Fails unless it has this shape.
    pub(crate) fn of_shape(self, expected: &[usize]) -> Result<Self, Error> {
        if self.shape == expected { Ok(self) } else { Err(self.other_shape(expected)) }
    }

    /// The error of a shape other than the one expected.
    pub(crate) fn other_shape(&self, expected: &[usize]) -> Error {
        self.fault(TensorProblem::Shape { expected: expected.to_vec(), found: self.shape.to_vec() })
    }

    /// Its little-endian words of 32 bits.
    pub(crate) fn words(self) -> Result<Words<'a>, Error> {
        self.of_dtype(Stored::I32, "I32").map(|raw| Words(raw.bytes.as_chunks::<4>().0))
    }

    /// Its numbers, read one by one.
    pub(crate) fn floats(self) -> Result<Floats<'a>, Error> {
        let read = match self.dtype {
            Stored::F32 => |bytes: &[u8], i: usize| f32::from_le_bytes(nth(bytes, i)),
            Stored::F16 => |bytes: &[u8], i: usize| f16::from_le_bytes(nth(bytes, i)).to_f32(),
            Stored::BF16 => |bytes: &[u8], i: usize| bf16::from_le_bytes(nth(bytes, i)).to_f32(),
            _ => return Err(self.other_dtype("F32, F16 or BF16")),
        };
        Ok(Floats { raw: self, read })
    }

    /// Its exponents of two, one byte each, as numbers.
    pub(crate) fn powers(self) -> Floats<'a> {
        Floats { raw: self, read: |bytes, i| power(bytes[i]) }
    }
}

/// Words of 32 bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words<'a>(&'a [[u8; 4]]);

impl Words<'_> {
    pub(crate) fn get(self, index: usize) -> u32 {
        u32::from_le_bytes(self.0[index])
    }
}

/// Numbers of a tensor, read one by one.
#[derive(Clone, Copy)]
pub(crate) struct Floats<'a> {
    raw: Raw<'a>,
    read: fn(&[u8], usize) -> f32,
}

impl<'a> Floats<'a> {
    pub(crate) fn get(&self, index: usize) -> f32 {
        (self.read)(self.raw.bytes, index)
    }

    /// The tensor that they are of.
    pub(crate) fn raw(&self) -> &Raw<'a> {
        &self.raw
    }

    /// The index and value of the first that is not finite.
    pub(crate) fn not_finite(&self) -> Option<(usize, f32)> {
        let count = self.raw.shape.iter().product();
        (0..count).map(|index| (index, self.get(index))).find(|(_, value)| !value.is_finite())
    }
}

fn nth<const N: usize>(bytes: &[u8], index: usize) -> [u8; N] {
    bytes.as_chunks::<N>().0[index]
}

/// `2^(byte - 127)`, the E8M0 of the Open Compute Project's microscaling formats; 255 is not a number.
pub(crate) fn power(byte: u8) -> f32 {
    match byte {
        0 => f32::from_bits(1 << 22),
        255 => f32::NAN,
        byte => f32::from_bits(u32::from(byte) << 23),
    }
}
