//! Weights whose codes lie in one tensor with those of others, such as all experts of a block.
//!
//! A description says where a weight lies in a dense stack ([`StackSpec`]): matrices column by
//! column. Codes lie row by row, since scales are along what is summed. [`Part`] turns the one
//! place into the other:
//!
//! ```text
//!  dense stack   [matrices, d_in, rows]    number (r, c) of a part at start + r * step + c * rows
//!  codes         [matrices, rows, d_in]    row r of a part is row matrix * rows + place + r * step,
//!                                          with start = matrix * d_in * rows + place
//! ```
//!
//! `step` is the number of weights whose rows are in turn: 2 for gate and up of gpt-oss, whose rows
//! go gate, up, gate, up. `quantised.rs` makes one module of each part.

use std::ops::Range;

use crate::stack::{StackPart, StackSpec};

/// Which rows of a stack of codes are a weight's.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Part {
    /// The stack's shape, as codes have it: `[matrices, rows, d_in]`.
    pub(super) stack: [usize; 3],
    /// The first of the weight's rows, counted through all matrices.
    first: usize,
    /// How far apart successive rows of the weight are.
    step: usize,
    /// Rows of the weight.
    count: usize,
}

impl Part {
    /// The weights of a stack of matrices that is kept column by column, each with its name. A
    /// stack of another form, such as one of biases, has none.
    pub(super) fn all(stack: &StackSpec) -> impl Iterator<Item = (String, Self)> {
        let sizes: Option<[usize; 3]> = stack.shape.as_slice().try_into().ok();
        let parts = sizes.into_iter().flat_map(|sizes| stack.parts.iter().map(move |part| (sizes, part)));
        parts.filter_map(|([matrices, d_in, rows], part)| {
            let StackPart { tensor: (name, shape), start, strides } = part;
            let (&[count, _], &[step, right]) = (shape.as_slice(), strides.as_slice()) else { return None };
            if right != rows {
                return None;
            }
            let (matrix, row) = (start / (d_in * rows), start % (d_in * rows));
            Some((name.clone(), Self { stack: [matrices, rows, d_in], first: matrix * rows + row, step, count }))
        })
    }

    /// The shape of the weight: `[rows, d_in]`.
    pub(super) fn shape(&self) -> [usize; 2] {
        [self.count, self.stack[2]]
    }

    /// The rows of the stack from the first of the weight's to its last; rows of others may be
    /// between them.
    pub(super) fn rows(&self) -> Range<usize> {
        self.first..self.row(self.count.saturating_sub(1)) + 1
    }

    /// Rows of the stack, over all matrices.
    pub(super) fn all_rows(&self) -> usize {
        self.stack[0] * self.stack[1]
    }

    /// Where the weight's number of row-major index `index` is in the stack, for errors.
    pub(super) fn index(&self, index: usize) -> usize {
        let width = self.stack[2];
        self.row(index / width) * width + index % width
    }

    /// Where a row of the weight is among those of the stack.
    pub(super) fn row(&self, row: usize) -> usize {
        self.first + row * self.step
    }
}
