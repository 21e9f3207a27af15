//! Weights whose codes lie in one tensor with those of others, such as all experts of a block.
//!
//! A dense stack keeps a matrix column by column, `[matrices, d_in, rows]`; codes lie row by row, `[matrices, rows, d_in]`, since scales are along what is
//! summed. Rows of the weights that a stack holds in turn are in turn there too.

use std::ops::Range;

use crate::arch::{StackPart, StackSpec};
use crate::weights::raw::Floats;
use crate::weights::rows::Rows;

/// Which rows of a stack of codes are a weight's.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Part {
    /// The stack's shape, as codes have it: `[matrices, rows, d_in]`.
    pub(super) stack: [usize; 3],
    /// The first of the rows, counted through all matrices.
    first: usize,
    /// How far apart they are.
    step: usize,
    /// How many there are.
    count: usize,
}

impl Part {
    /// The weights of a stack of matrices that is kept column by column, by their names. Another stack has none.
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

    /// The weight's rows among those of the stack.
    pub(super) fn of<'a>(&self, stack: Box<dyn Rows + 'a>) -> Box<dyn Rows + 'a> {
        Box::new(RowsOfPart { stack, part: self.clone() })
    }

    /// The shape of the weight.
    pub(super) fn shape(&self) -> [usize; 2] {
        [self.count, self.stack[2]]
    }

    /// The rows of the stack from the first of the weight's to its last.
    pub(super) fn rows(&self) -> Range<usize> {
        self.first..self.row(self.count.saturating_sub(1)) + 1
    }

    /// All rows of the stack.
    pub(super) fn all_rows(&self) -> usize {
        self.stack[0] * self.stack[1]
    }

    /// Where the weight's number of this index is in the stack.
    pub(super) fn index(&self, index: usize) -> usize {
        let width = self.stack[2];
        self.row(index / width) * width + index % width
    }

    fn row(&self, row: usize) -> usize {
        self.first + row * self.step
    }
}

struct RowsOfPart<'a> {
    stack: Box<dyn Rows + 'a>,
    part: Part,
}

impl Rows for RowsOfPart<'_> {
    fn expand(&self, first: usize, values: &mut [f32]) {
        for (row, values) in values.chunks_exact_mut(self.part.stack[2]).enumerate() {
            self.stack.expand(self.part.row(first + row), values);
        }
    }

    fn scales(&self) -> Vec<Floats<'_>> {
        self.stack.scales()
    }
}
