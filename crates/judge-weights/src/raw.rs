//! A tensor as its file holds it, and the checks that readers of codes and scales begin with.
//!
//! `Checkpoint::raw` makes a [`Raw`] of a located tensor. The formats of `quantised/` check its
//! dtype and shape and turn it into [`Words`] or [`Floats`], which read single elements from the
//! mapped bytes. Nothing is copied. Whole tensors of plain numbers go through `convert.rs` instead.

use std::path::Path;

use half::{bf16, f16};
use safetensors::Dtype as Stored;

use crate::Error;
use crate::error::TensorProblem;

/// A tensor as it is stored. Copying it copies references only.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Raw<'a> {
    /// The file it is in, for errors.
    pub(crate) path: &'a Path,
    /// Its name in the store, for errors; a vision-language folder's tower is renamed already.
    pub(crate) name: &'a str,
    /// The dtype of the header. Some are containers of codes here: U8, I8, I32.
    pub(crate) dtype: Stored,
    /// The shape of the header.
    pub(crate) shape: &'a [usize],
    /// Row-major and little-endian, as long as dtype and shape say: `Shard::open` has checked it.
    pub(crate) bytes: &'a [u8],
}

impl<'a> Raw<'a> {
    /// [`Error::Tensor`] with this problem, naming the file and the tensor.
    pub(crate) fn fault(&self, problem: TensorProblem) -> Error {
        Error::Tensor { path: self.path.to_owned(), tensor: self.name.to_owned(), problem }
    }

    /// The tensor itself if it has this dtype. `expected` is the dtype as the error names it.
    pub(crate) fn of_dtype(self, dtype: Stored, expected: &'static str) -> Result<Self, Error> {
        if self.dtype == dtype { Ok(self) } else { Err(self.other_dtype(expected)) }
    }

    /// The error of a dtype that is none of those in `expected`, a text for readers.
    pub(crate) fn other_dtype(&self, expected: &'static str) -> Error {
        self.fault(TensorProblem::OtherDtype { expected, found: format!("{:?}", self.dtype) })
    }

    /// The tensor itself if it has exactly this shape.
    pub(crate) fn of_shape(self, expected: &[usize]) -> Result<Self, Error> {
        if self.shape == expected { Ok(self) } else { Err(self.other_shape(expected)) }
    }

    /// The error of a shape other than the one expected.
    pub(crate) fn other_shape(&self, expected: &[usize]) -> Error {
        self.fault(TensorProblem::Shape { expected: expected.to_vec(), found: self.shape.to_vec() })
    }

    /// Its elements as words of 32 bits.
    ///
    /// # Errors
    /// [`TensorProblem::OtherDtype`] unless it is I32, the dtype that programs store packed codes
    /// in.
    pub(crate) fn words(self) -> Result<Words<'a>, Error> {
        self.of_dtype(Stored::I32, "I32").map(|raw| Words(raw.bytes.as_chunks::<4>().0))
    }

    /// Its elements as f32. Widening from f16 and bf16 is exact, and numbers in f64 are rounded.
    ///
    /// # Errors
    /// [`TensorProblem::OtherDtype`] unless it is F64, F32, F16 or BF16.
    pub(crate) fn floats(self) -> Result<Floats<'a>, Error> {
        let read = match self.dtype {
            Stored::F64 => |bytes: &[u8], i: usize| f64::from_le_bytes(nth(bytes, i)) as f32,
            Stored::F32 => |bytes: &[u8], i: usize| f32::from_le_bytes(nth(bytes, i)),
            Stored::F16 => |bytes: &[u8], i: usize| f16::from_le_bytes(nth(bytes, i)).to_f32(),
            Stored::BF16 => |bytes: &[u8], i: usize| bf16::from_le_bytes(nth(bytes, i)).to_f32(),
            _ => return Err(self.other_dtype("F64, F32, F16 or BF16")),
        };
        Ok(Floats { raw: self, read })
    }

    /// Its bytes as powers of two, see [`power`]. The caller has checked that elements are one byte
    /// wide (U8 or F8_E8M0).
    pub(crate) fn powers(self) -> Floats<'a> {
        Floats { raw: self, read: |bytes, i| power(bytes[i]) }
    }
}

/// Packed codes: little-endian words of 32 bits, in the tensor's row-major order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words<'a>(&'a [[u8; 4]]);

impl Words<'_> {
    /// The word of this row-major index.
    ///
    /// # Panics
    /// If there are not so many words.
    pub(crate) fn get(self, index: usize) -> u32 {
        u32::from_le_bytes(self.0[index])
    }
}

/// Scales or tables of a module, read one by one from the mapped bytes.
#[derive(Clone, Copy)]
pub(crate) struct Floats<'a> {
    /// The tensor that they are of, kept to name it in errors.
    raw: Raw<'a>,
    /// Reads the element of an index from the tensor's bytes, by the dtype that it was made for.
    read: fn(&[u8], usize) -> f32,
}

impl<'a> Floats<'a> {
    /// The element of this row-major index, in f32.
    ///
    /// # Panics
    /// If there are not so many elements.
    pub(crate) fn get(&self, index: usize) -> f32 {
        (self.read)(self.raw.bytes, index)
    }

    /// The tensor that they are of.
    pub(crate) fn raw(&self) -> &Raw<'a> {
        &self.raw
    }

    /// The index and value of the first element that is NaN or infinite. It is only searched for
    /// after a dequantised weight was not finite, so one thread is enough.
    pub(crate) fn not_finite(&self) -> Option<(usize, f32)> {
        let count = self.raw.shape.iter().product();
        (0..count).map(|index| (index, self.get(index))).find(|(_, value)| !value.is_finite())
    }
}

/// The `index`-th group of `N` bytes.
fn nth<const N: usize>(bytes: &[u8], index: usize) -> [u8; N] {
    bytes.as_chunks::<N>().0[index]
}

/// `2^(byte - 127)`: E8M0, the scales of the Open Compute Project's microscaling formats. 0 is the
/// subnormal `2^-127`, and 255 is NaN.
pub(crate) fn power(byte: u8) -> f32 {
    match byte {
        0 => f32::from_bits(1 << 22),
        255 => f32::NAN,
        byte => f32::from_bits(u32::from(byte) << 23),
    }
}
