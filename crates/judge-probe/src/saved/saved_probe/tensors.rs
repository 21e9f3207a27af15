//! The tensors of a saved probe, one by one: how numbers are written and read.

use safetensors::tensor::{Dtype, SafeTensors, TensorView};

use super::SavedProbeError;
use crate::{Error, Matrix};

/// A tensor's name, shape and bytes.
///
/// It exists while a file is written: a copy of the probe's numbers, eight bytes each.
pub(super) struct Numbers {
    /// Unique in the file.
    pub(super) name: String,
    /// One axis or two.
    pub(super) shape: Vec<usize>,
    /// Eight bytes for each number of the shape, little-endian.
    pub(super) bytes: Vec<u8>,
}

impl Numbers {
    /// Little-endian, as safetensors has it, on every machine.
    ///
    /// The caller answers for a shape that fits the numbers.
    fn new(name: impl Into<String>, shape: &[usize], numbers: &[f64]) -> Self {
        let bytes = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        Self { name: name.into(), shape: shape.to_vec(), bytes }
    }

    /// `[n_rows, n_features]`, row by row.
    pub(super) fn matrix(name: impl Into<String>, matrix: &Matrix) -> Self {
        Self::new(name, &[matrix.n_rows(), matrix.n_features()], matrix.values())
    }

    /// `[n]`.
    pub(super) fn vector(name: impl Into<String>, numbers: &[f64]) -> Self {
        Self::new(name, &[numbers.len()], numbers)
    }
}

/// A tensor of two dimensions, of any size: what its rows and columns must agree with is checked by the caller.
///
/// # Errors
///
/// [`SavedProbeError::Content`]; [`Error::Empty`] and [`Error::NonFiniteFeature`] for its numbers.
pub(super) fn matrix(file: &SafeTensors<'_>, name: &str) -> Result<Matrix, Error> {
    let view = tensor(file, name, Dtype::F64, None)?;
    match view.shape() {
        &[_, n_columns] => Matrix::new(numbers(&view), n_columns),
        _ => Err(tensor_error(name, Dtype::F64, "rows and columns", &view).into()),
    }
}

/// A tensor of one dimension, of this length where it is known.
///
/// Its numbers may be NaN or infinite: what is built from them must check that, as it does for parts that come from elsewhere.
pub(super) fn vector(file: &SafeTensors<'_>, name: &str, length: Option<usize>) -> Result<Vec<f64>, Error> {
    let shape = length.map(|length| [length]);
    let view = tensor(file, name, Dtype::F64, shape.as_ref().map(<[usize; 1]>::as_slice))?;
    match view.shape() {
        [_] => Ok(numbers(&view)),
        _ => Err(tensor_error(name, Dtype::F64, "one dimension", &view).into()),
    }
}

/// The tensor of this name, of this type and, where one is given, of this shape. The data stay in the file's bytes.
pub(super) fn tensor<'a>(
    file: &SafeTensors<'a>,
    name: &str,
    dtype: Dtype,
    shape: Option<&[usize]>,
) -> Result<TensorView<'a>, SavedProbeError> {
    let view = file.tensor(name).map_err(|_| SavedProbeError::Content(format!("there is no tensor {name:?}")))?;
    if view.dtype() == dtype && shape.is_none_or(|shape| shape == view.shape()) {
        return Ok(view);
    }
    let shape = shape.map_or("any shape".to_owned(), |shape| format!("{shape:?}"));
    Err(tensor_error(name, dtype, &shape, &view))
}

/// A tensor that is there but is another.
///
/// Types and shapes as the library prints them, such as `F64 [3, 16]`.
fn tensor_error(name: &str, dtype: Dtype, shape: &str, found: &TensorView<'_>) -> SavedProbeError {
    let (found_dtype, found_shape) = (found.dtype(), found.shape());
    SavedProbeError::Content(format!(
        "tensor {name:?} should be {dtype:?} {shape}, found {found_dtype:?} {found_shape:?}"
    ))
}

/// A tensor's numbers. That its bytes make whole ones is the container's check.
///
/// Decoded one by one from eight bytes each, so the file's bytes need no alignment.
fn numbers(view: &TensorView<'_>) -> Vec<f64> {
    let (numbers, _) = view.data().as_chunks::<8>();
    numbers.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect()
}
