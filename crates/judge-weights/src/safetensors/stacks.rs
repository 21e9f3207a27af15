//! Tensors that a file keeps as one, such as all experts of a block, and a model takes one by one.
//!
//! A description lists its tensors one by one and, beside them, the stacks ([`StackSpec`]) in which
//! a file may keep them. Here a stack becomes its parts: views of the same bytes with a start and
//! strides. So engines take experts by name from every form, and the check of names sees the same
//! names.
//!
//! ```text
//!  stack by rows      [experts, rows, d_in]     a part's rows lie one after another: a plain range
//!  transposed         [experts, d_in, rows]     the same matrices, each by columns
//!  stack by columns   [experts, d_in, rows]     the number of row r and column c of a part is at
//!                                               start + r * down + c * right, down = parts of a
//!                                               projection in turn (gate, up, gate, ...), right = rows
//! ```
//!
//! A part by columns is gathered into rows as it is taken. Stacks of codes are not cut here but by
//! `quantised/part.rs`.
//!
//! A stack that some folders have and others do not (`is_only_form` is false) may be absent: its
//! parts are looked for by their names. If it is the only form there is, its name is what a
//! missing-tensor error says, not those of its hundreds of parts.

use std::borrow::Cow;
use std::ops::Range;

use rayon::prelude::*;
use safetensors::tensor::TensorInfo;

use super::{Checkpoint, Located};
use crate::Error;
use crate::stack::{StackPart, StackSpec};

/// Rows gathered by one task, column by column. Where a matrix is stored by columns, the numbers
/// that these rows have in one column lie near each other, so a cache line is used whole.
const SIDE_BY_SIDE: usize = 32;

impl Checkpoint {
    /// Replaces each stack that is there by its parts, under their own names, as if the file had
    /// them one by one. Of several descriptions with one name the one whose shape the file has
    /// counts. Where a file has a part beside the stack, the stack stays as it is, and the check of
    /// names reports it.
    ///
    /// # Errors
    /// [`Error::Tensor`] if a stack has another shape than its descriptions, and
    /// [`Error::TensorNames`] if stacks are absent that are the only form in which folders keep
    /// their parts.
    pub fn unstack<'a>(&mut self, stacks: impl IntoIterator<Item = &'a StackSpec>) -> Result<(), Error> {
        let mut missing = Vec::new();
        let stacks: Vec<&StackSpec> = stacks.into_iter().collect();
        for &stack in &stacks {
            if !self.contains(&stack.name) {
                missing.extend(stack.is_only_form.then(|| stack.name.clone()));
                continue;
            }
            // A file with both is not understood: the stack stays, and nothing will take it.
            if stack.parts.iter().any(|part| self.contains(&part.tensor.0)) {
                continue;
            }
            let found = self.tensors.get(&stack.name).map(|located| &located.info.shape);
            let is_in = |other: &&StackSpec| other.name == stack.name && Some(&other.shape) == found;
            if found != Some(&stack.shape) && stacks.iter().any(is_in) {
                continue;
            }
            let Located { shard, info, .. } = self.locate(&stack.name, &stack.shape)?.clone();
            for StackPart { tensor: (name, shape), start, strides } in &stack.parts {
                let width = info.dtype.bitsize() / 8;
                let last: usize =
                    shape.iter().zip(strides).map(|(&size, stride)| size.saturating_sub(1) * stride).sum();
                let start = info.data_offsets.0 + start * width;
                let data_offsets = (start, start + (last + 1) * width);
                let info = TensorInfo { dtype: info.dtype, shape: shape.clone(), data_offsets };
                let strides = match (shape.as_slice(), strides.as_slice()) {
                    (&[_, columns], &[down, 1]) if down == columns => None,
                    (_, &[down, right]) => Some([down, right]),
                    (_, &[1]) => None,
                    (_, strides) => strides.first().map(|&down| [down, 1]),
                };
                self.tensors.insert(name.clone(), Located { shard, info, strides });
            }
            self.tensors.remove(&stack.name);
        }
        if missing.is_empty() { Ok(()) } else { Err(Error::TensorNames { missing, unused: Vec::new() }) }
    }

    /// The bytes of some rows of a tensor, one row behind another: borrowed from the map, or
    /// gathered where the tensor is strided. Of a tensor with one axis each number is a row.
    pub(super) fn rows(&self, located: &Located, rows: Range<usize>) -> Cow<'_, [u8]> {
        let (bytes, shape) = (self.bytes(located), &located.info.shape);
        let columns: usize = shape.iter().skip(1).product();
        let width = located.info.dtype.bitsize() / 8;
        match (located.strides, width) {
            (None, _) => Cow::Borrowed(&bytes[rows.start * columns * width..rows.end * columns * width]),
            (Some(strides), 2) => Cow::Owned(gather::<2>(bytes, rows, columns, strides)),
            (Some(strides), 4) => Cow::Owned(gather::<4>(bytes, rows, columns, strides)),
            (Some(strides), 8) => Cow::Owned(gather::<8>(bytes, rows, columns, strides)),
            // No dtype that is read has this width: `numbers` refuses it by name.
            (Some(_), _) => Cow::Borrowed(&[]),
        }
    }
}

/// Copies rows of a strided matrix into row-major order. `bytes` begin with the number of row 0 and
/// column 0; neighbours are `down` and `right` numbers of `N` bytes apart.
fn gather<const N: usize>(bytes: &[u8], rows: Range<usize>, columns: usize, [down, right]: [usize; 2]) -> Vec<u8> {
    let numbers = bytes.as_chunks::<N>().0;
    let mut gathered = vec![0; rows.len() * columns * N];
    let blocks = gathered.par_chunks_mut((SIDE_BY_SIDE * columns * N).max(1)).enumerate();
    blocks.for_each(|(block, block_rows)| {
        let first = rows.start + block * SIDE_BY_SIDE;
        let to = block_rows.as_chunks_mut::<N>().0;
        for column in 0..columns {
            let from = numbers[first * down + column * right..].iter().step_by(down);
            to[column..].iter_mut().step_by(columns).zip(from).for_each(|(to, from)| *to = *from);
        }
    });
    gathered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_gathered_from_where_they_lie() {
        // The odd columns of a matrix [3, 100], as rows.
        let numbers: Vec<u16> = (0..300).collect();
        let bytes: Vec<u8> = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
        let found = gather::<2>(&bytes[2..], 5..45, 3, [2, 100]);
        let found: Vec<u16> = found.as_chunks::<2>().0.iter().map(|&x| u16::from_le_bytes(x)).collect();
        let expected: Vec<u16> = (5..45).flat_map(|row| [0, 1, 2].map(|column| 100 * column + 2 * row + 1)).collect();
        assert_eq!(found, expected);
        assert!(gather::<2>(&[], 0..0, 3, [1, 1]).is_empty());
    }
}
