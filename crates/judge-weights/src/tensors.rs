//! The two traits of this crate: tensors by name, and all tensors of a folder.

use std::collections::BTreeSet;

use judge_kernels::codes::{CodedRows, Coding};
use judge_kernels::numbers::Numbers;
use safetensors::Dtype as Stored;

use crate::table::Table;
use crate::{Dtype, Error, names};

/// Takes whole rows of a matrix, after the index of the first of them.
pub type TakeRows<'a> = &'a mut dyn FnMut(usize, Numbers<'_>);

/// Takes whole rows of codes, after the index of the first of them.
pub type TakeCodes<'a> = &'a mut dyn FnMut(usize, &CodedRows<'_>);

/// The tensors of a model by name: what engines are loaded from.
///
/// A loader takes every tensor that its description names, once, in an order of its own.
/// That a tensor was taken is remembered, so that [`Store::finish`] can name those that were not.
/// Taking it a second time gives the same numbers again.
pub trait Tensors {
    /// The values of a tensor, row-major, rounded to `dtype` and widened to f32 again.
    ///
    /// # Errors
    /// [`Error::TensorNames`] if there is no tensor of this name. [`Error::Tensor`] if it does not
    /// have exactly this shape, if its dtype is not read, or for the first value that is NaN or
    /// infinite, as stored or after rounding.
    fn take(&mut self, name: &str, shape: &[usize], dtype: Dtype) -> Result<Vec<f32>, Error>;

    /// Hands a matrix of exactly this shape to `take`, some rows at a time, so that no more than
    /// these rows are in memory besides what the caller makes of them.
    ///
    /// `take` gets the index of the first row of each part, and whole rows as [`Numbers`] of
    /// `dtype`: values are rounded to nearest, ties to even, where `dtype` has fewer bits. Parts
    /// come in the order of the rows, each row once. How many rows a part has is the
    /// implementation's choice.
    ///
    /// # Errors
    /// Those of [`take`](Self::take). Parts before the one with the error have been handed over by
    /// then, so what the caller has made of them is to be dropped.
    fn take_rows(&mut self, name: &str, shape: [usize; 2], dtype: Dtype, take: TakeRows<'_>) -> Result<(), Error>;

    /// A matrix `[rows, width]` of exactly this shape whose rows are looked up later, rounded to
    /// `dtype`.
    ///
    /// The default implementation copies the matrix into memory. Where it is stored as plain
    /// numbers it stays in its file, which is not read now. A value that is not finite is then
    /// found by no check here, but in the states that are made of it.
    ///
    /// # Errors
    /// Those of [`take`](Self::take).
    fn table(&mut self, name: &str, shape: [usize; 2], dtype: Dtype) -> Result<Table, Error> {
        Table::collect(shape, |take| self.take_rows(name, shape, dtype, take))
    }

    /// How a matrix of this shape is stored, if it is stored as codes of a few bits; `None`, the
    /// default, if it is not. What it says is what [`take_codes`](Self::take_codes) hands over.
    ///
    /// # Errors
    /// Those of [`take`](Self::take) that can be told without reading the numbers.
    fn coding(&self, _name: &str, _shape: [usize; 2]) -> Result<Option<Coding>, Error> {
        Ok(None)
    }

    /// As [`take_rows`](Self::take_rows), but hands over the codes of a matrix that has a
    /// [`coding`](Self::coding). Nothing is rounded; that all values are finite, also when they are
    /// rounded to `dtype`, is checked. A matrix without a coding is only passed over, the default.
    ///
    /// # Errors
    /// Those of [`take`](Self::take).
    fn take_codes(&mut self, name: &str, _shape: [usize; 2], _dtype: Dtype, _take: TakeCodes<'_>) -> Result<(), Error> {
        self.pass_over(name);
        Ok(())
    }

    /// Marks a tensor as taken that the caller does not need, such as one that an adapter replaces.
    /// That there is such a tensor is not checked here.
    fn pass_over(&mut self, name: &str);
}

/// All tensors of one folder, before adapters.
///
/// `checked.rs` opens a store, calls [`check`](Self::check) before anything is read, and lends it
/// to an engine as [`Tensors`]. `model.rs` and `merge.rs` call [`finish`](Self::finish) at the end.
pub trait Store: Tensors {
    /// The dtype that a model gets where the caller asked for none: the one that most of the stored
    /// numbers are nearest to. Codes of quantised weights count as bf16.
    fn stored_dtype(&self) -> Dtype;

    /// The dtype and the number of axes of each tensor of plain numbers.
    fn plain(&self) -> Box<dyn Iterator<Item = (Stored, usize)> + '_>;

    /// Whether some plain numbers are stored in f64, which are rounded to f32 as they are read.
    fn has_f64(&self) -> bool {
        self.plain().any(|(dtype, _)| dtype == Stored::F64)
    }

    /// A dtype that some plain numbers have of which bf16 drops bits, for a note: `f16`, which has
    /// eleven significant bits where bf16 has eight, or `f32` if matrices are in it. Vectors in f32 are few,
    /// and most files of bf16 matrices have some. F64 is not among them: every dtype drops bits of it.
    fn wider_than_bf16(&self) -> Option<&'static str> {
        self.plain().find_map(|(dtype, axes)| match dtype {
            Stored::F16 => Some("f16"),
            Stored::F32 if axes > 1 => Some("f32"),
            _ => None,
        })
    }

    /// The number of rows of the embedding of this name, where files may have fewer than
    /// `vocab_size` of `config.json`. `None`, the default, where the configuration must be right.
    fn vocabulary(&self, _embedding: &str) -> Option<usize> {
        None
    }

    /// The names that a model finds here: those of the stored tensors, renamed, cut out of stacks
    /// and standing for codes as the reader does it. In no particular order.
    fn names(&self) -> Box<dyn Iterator<Item = &str> + '_>;

    /// Whether there is a tensor of this name.
    fn has(&self, name: &str) -> bool {
        self.names().any(|other| other == name)
    }

    /// The names that were taken or passed over.
    fn taken(&self) -> &BTreeSet<String>;

    /// Whether a tensor may be there though no model takes it: what it holds is known otherwise, or
    /// nothing here computes with it.
    fn is_redundant(&self, name: &str) -> bool;

    /// Fails unless there is a tensor of this name and shape. Nothing is dequantised or allocated for
    /// it.
    ///
    /// # Errors
    /// [`Error::TensorNames`] and [`Error::Tensor`]. For a quantised weight the tensors beside its
    /// codes are checked too.
    fn expect(&self, name: &str, shape: &[usize]) -> Result<(), Error>;

    /// Compares the store with the names and shapes that a description expects.
    ///
    /// # Errors
    /// [`Error::TensorNames`], with both lists, if `expected` names a tensor that is absent or if
    /// there is one that it does not name and that is not redundant. Otherwise the first error of
    /// [`expect`](Self::expect).
    fn check(&self, expected: &[(String, Vec<usize>)]) -> Result<(), Error> {
        let names = expected.iter().map(|(name, _)| name.as_str());
        names::compare(names, self.names(), |name| self.is_redundant(name))?;
        expected.iter().try_for_each(|(name, shape)| self.expect(name, shape))
    }

    /// Every stored tensor, sorted by name: its name, its stored dtype and shape as text (`BF16
    /// [64, 32]`), and its bytes. `fingerprint.rs` hashes them.
    ///
    /// Nothing here depends on how tensors are cut into files. Codes are given as they are stored.
    /// Of a part of a strided stack the bytes go from its first number to its last, so they include
    /// numbers of other parts.
    fn contents(&self) -> Box<dyn Iterator<Item = (&str, String, &[u8])> + '_>;

    /// Says whether the next reads are few bytes all over the files, or from one end to the other as
    /// at first. Where they are scattered, the system reads no further than it is asked to.
    fn reads_are_scattered(&self, are_scattered: bool);

    /// Compares what was taken with what is there, at the end of loading.
    ///
    /// # Errors
    /// [`Error::TensorNames`] if a tensor was neither taken nor passed over and is not redundant.
    fn finish(&self) -> Result<(), Error> {
        names::compare(self.taken().iter().map(String::as_str), self.names(), |name| self.is_redundant(name))
    }
}
