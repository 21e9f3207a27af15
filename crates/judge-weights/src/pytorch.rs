//! Weights as `torch.save` writes them: `pytorch_model.bin`, shards of it, `adapter_model.bin`.
//!
//! Such a file is a zip archive: a pickle that describes a dictionary of tensors, and the numbers of each storage in an
//! entry of its own, uncompressed.
//!
//! ```text
//!  archive/data.pkl    {"model.norm.weight": a view of storage 0, ...}
//!  archive/data/0      numbers
//!  archive/byteorder   little
//! ```
//!
//! | file | owns |
//! |---|---|
//! | `archive.rs` | the entries of the zip file and where their bytes lie |
//! | `pickle.rs` | the pickle, read without running anything: few opcodes, and a closed list of names |
//!
//! `tensors` joins the two and checks every range against the file, as `safetensors/shard.rs` does for its headers.
//! `safetensors.rs` hands the numbers out.

mod archive;
mod pickle;
#[cfg(test)]
mod tests;

use std::ops::Range;

use safetensors::Dtype;

use self::archive::Archive;
use self::pickle::View;

/// A tensor of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    /// Its name in the dictionary.
    pub(crate) name: String,
    /// The type of its numbers.
    pub(crate) dtype: Dtype,
    /// Its shape.
    pub(crate) shape: Vec<usize>,
    /// The bytes of the file from its first number to its last.
    pub(crate) bytes: Range<usize>,
    /// How far apart neighbours along each axis are, in numbers; `None` if it is dense and row-major.
    pub(crate) strides: Option<Vec<usize>>,
}

impl Stored {
    /// The numbers of a strided tensor in row-major order.
    pub(crate) fn gather(&self, file: &[u8], to: &mut [u8]) {
        let (bytes, width) = (&file[self.bytes.clone()], self.dtype.bitsize() / 8);
        let strides = self.strides.as_deref().unwrap_or_default();
        let mut place = vec![0_usize; self.shape.len()];
        for to in to.chunks_exact_mut(width) {
            let from = place.iter().zip(strides).map(|(i, stride)| i * stride).sum::<usize>() * width;
            to.copy_from_slice(&bytes[from..from + width]);
            for axis in (0..place.len()).rev() {
                place[axis] += 1;
                if place[axis] < self.shape[axis] {
                    break;
                }
                place[axis] = 0;
            }
        }
    }

    /// Bytes that its numbers take.
    pub(crate) fn size(&self) -> usize {
        // Checked in `view`.
        self.shape.iter().product::<usize>() * (self.dtype.bitsize() / 8)
    }
}

/// The tensors of a file, in the order of its dictionary. No number is read.
///
/// # Errors
/// What is wrong with a damaged file, one of another format, and one that asks for more than tensors.
pub(crate) fn tensors(file: &[u8]) -> Result<Vec<Stored>, String> {
    let archive = Archive::open(file)?;
    let (folder, pickle) = archive.pickle()?;
    if let Some(order) = archive.bytes(&format!("{folder}byteorder"))?
        && order.trim_ascii() != b"little"
    {
        return Err(format!("its byte order is {:?}, expected \"little\"", String::from_utf8_lossy(order)));
    }
    let views = pickle::read(pickle)?;
    let mut tensors = Vec::with_capacity(views.len());
    let mut gathered = 0_usize;
    for view in views {
        let entry = format!("{folder}data/{}", view.key);
        let Some(storage) = archive.range(&entry)? else {
            return Err(format!("tensor {}: its storage is missing", view.name));
        };
        let stored = located(&view, storage)?;
        if stored.strides.is_some() {
            gathered = gathered.saturating_add(stored.size());
        }
        // What is copied is bounded by what is there.
        if gathered > file.len() {
            return Err(format!("tensor {}: its strides use numbers many times", stored.name));
        }
        tensors.push(stored);
    }
    Ok(tensors)
}

/// A tensor in the bytes of its storage.
fn located(view: &View<'_>, storage: Range<usize>) -> Result<Stored, String> {
    let fault = |problem: &str| format!("tensor {}: {problem}", view.name);
    let width = view.dtype.bitsize() / 8;
    let outside = || fault("its numbers lie outside of its storage");
    if view.numbers.checked_mul(width).is_none_or(|bytes| bytes > storage.len()) {
        return Err(fault("its storage is shorter than it should be: fetch the file again"));
    }
    if view.shape.len() != view.strides.len() {
        return Err(fault("it has not one stride for each axis"));
    }
    let count = view.shape.iter().try_fold(1_usize, |count, &size| count.checked_mul(size)).ok_or_else(outside)?;
    // From the first number to the last one.
    let span = match count {
        0 => 0,
        _ => {
            let last = view
                .shape
                .iter()
                .zip(&view.strides)
                .try_fold(0_usize, |last, (&size, &stride)| last.checked_add((size - 1).checked_mul(stride)?));
            last.and_then(|last| last.checked_add(1)).ok_or_else(outside)?
        }
    };
    if view.offset.checked_add(span).is_none_or(|end| end > view.numbers) {
        return Err(outside());
    }
    let start = storage.start + view.offset * width;
    // A tensor that is dense spans as many numbers as it has; the other way round strides tell, but for axes of one.
    let mut dense = 1_usize;
    let is_dense = view.shape.iter().zip(&view.strides).rev().all(|(&size, &stride)| {
        let fits = size == 1 || stride == dense;
        // Without numbers, sizes may be any.
        dense = dense.saturating_mul(size);
        fits
    });
    let strides = (count > 0 && !is_dense).then(|| view.strides.clone());
    let shape = view.shape.clone();
    Ok(Stored { name: view.name.to_owned(), dtype: view.dtype, shape, bytes: start..start + span * width, strides })
}
