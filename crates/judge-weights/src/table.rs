//! Matrices of which a pass looks up some rows: they stay in the file that they are stored in, if
//! possible.
//!
//! Gemma 4's inputs by token are the reason: gigabytes, of which a prompt needs a few rows. Both
//! engines keep a [`Table`] for them and look rows up on the host. `Tensors::table` makes one:
//! mapped for plain numbers, in memory for quantised weights, GGUF files and tables that an adapter
//! changes.
//!
//! A mapped row equals, bit for bit, what `Tensors::take` gives for the same tensor and dtype.
//!
//! ```text
//!  plain numbers, no adapter   the map of the file   a row is read from its pages at each lookup
//!  anything else               f32 or bf16 in memory, rounded and checked when it is made
//! ```

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use half::bf16;
use judge_kernels::numbers::Numbers;
use safetensors::Dtype as Stored;

use super::convert::widen;
use super::safetensors::shard::Shard;
use crate::{Dtype, Error};

/// A matrix `[rows, width]` whose rows are read as they are needed. A clone shares the numbers.
///
/// Numbers of a mapped table are not checked to be finite when it is made. A bad one shows in the
/// states that are made of its row.
#[derive(Clone)]
pub struct Table {
    /// Elements of a row.
    width: usize,
    /// Where the rows are.
    rows: Rows,
}

/// The forms that a table's rows are kept in.
#[derive(Clone)]
enum Rows {
    /// In memory, row-major.
    F32(Arc<Vec<f32>>),
    /// In memory, row-major, for [`Dtype::Bf16`].
    Bf16(Arc<Vec<bf16>>),
    /// In a file.
    Mapped(Mapped),
}

/// Rows in a mapped file. The map lives as long as a table holds its shard.
#[derive(Clone)]
pub(crate) struct Mapped {
    /// The file.
    pub(crate) shard: Arc<Shard>,
    /// The tensor's bytes as a range of the whole map, row-major and little-endian.
    pub(crate) bytes: Range<usize>,
    /// F64, F32, F16 or BF16: the maker of a table has checked it.
    pub(crate) stored: Stored,
    /// What numbers are rounded to when a row is read.
    pub(crate) dtype: Dtype,
}

impl Table {
    /// A matrix in memory whose rows have `width` elements.
    pub fn new(width: usize, values: Vec<f32>) -> Self {
        Self { width, rows: Rows::F32(values.into()) }
    }

    /// A copy in memory of the matrix `[count, width]` that `hand_over` hands over, some rows at a
    /// time and all in one dtype. The dtype of the first numbers decides how the copy is kept.
    pub(crate) fn collect(
        [count, width]: [usize; 2],
        hand_over: impl FnOnce(&mut dyn FnMut(usize, Numbers<'_>)) -> Result<(), Error>,
    ) -> Result<Self, Error> {
        let (mut wide, mut half) = (Vec::new(), Vec::new());
        hand_over(&mut |_, numbers| match numbers {
            Numbers::F32(values) => wide.extend_from_slice(values),
            Numbers::Bf16(values) => {
                half.reserve_exact((count * width).saturating_sub(half.len()));
                half.extend_from_slice(values);
            }
        })?;
        let rows = if half.is_empty() { Rows::F32(wide.into()) } else { Rows::Bf16(half.into()) };
        Ok(Self { width, rows })
    }

    /// A matrix of this shape that is read from its file. The caller has checked that
    /// `mapped.bytes` holds as many numbers as the shape says.
    pub(crate) fn mapped([_, width]: [usize; 2], mapped: Mapped) -> Self {
        Self { width, rows: Rows::Mapped(mapped) }
    }

    /// Elements of a row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Writes row `index` to `row`, which must have room for one row, widened to f32 after rounding
    /// to the table's dtype.
    pub fn row(&self, index: usize, row: &mut [f32]) {
        let range = index * self.width..(index + 1) * self.width;
        match &self.rows {
            Rows::F32(values) => row.copy_from_slice(&values[range]),
            Rows::Bf16(values) => row.iter_mut().zip(&values[range]).for_each(|(to, from)| *to = from.to_f32()),
            Rows::Mapped(Mapped { shard, bytes, stored, dtype }) => {
                let (bytes, size) = (&shard.map[bytes.clone()], stored.bitsize() / 8);
                widen(*stored, &bytes[size * range.start..size * range.end], row);
                if *dtype == Dtype::Bf16 && *stored != Stored::BF16 {
                    row.iter_mut().for_each(|x| *x = bf16::from_f32(*x).to_f32());
                }
            }
        }
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").field("width", &self.width).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use half::f16;

    use super::*;
    use crate::safetensors::Checkpoint;
    use crate::tensors::Tensors;

    #[test]
    fn rows_of_a_mapped_file_are_those_that_are_taken() {
        let values: Vec<f32> = (0..12).map(|i| 1.0 + i as f32 / 300.0).collect();
        let bytes = |each: fn(&f32) -> Vec<u8>| values.iter().flat_map(each).collect::<Vec<u8>>();
        let stored = [
            ("double", Stored::F64, bytes(|x| f64::from(*x).to_le_bytes().to_vec())),
            ("single", Stored::F32, bytes(|x| x.to_le_bytes().to_vec())),
            ("half", Stored::F16, bytes(|x| f16::from_f32(*x).to_le_bytes().to_vec())),
            ("brain", Stored::BF16, bytes(|x| bf16::from_f32(*x).to_le_bytes().to_vec())),
        ];
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.safetensors");
        let views = stored.iter().map(|(name, dtype, bytes)| {
            (*name, safetensors::tensor::TensorView::new(*dtype, vec![3, 4], bytes).unwrap())
        });
        safetensors::serialize_to_file(views, None, &path).unwrap();
        let mut checkpoint = Checkpoint::of_file(path).unwrap();
        for (name, ..) in &stored {
            for dtype in [Dtype::F32, Dtype::Bf16] {
                let table = checkpoint.table(name, [3, 4], dtype).unwrap();
                let taken = checkpoint.take(name, &[3, 4], dtype).unwrap();
                let mut rows = [0.0; 12];
                rows.chunks_exact_mut(4).enumerate().for_each(|(index, row)| table.row(index, row));
                assert_eq!(rows.map(f32::to_bits), *taken.iter().map(|x| x.to_bits()).collect::<Vec<_>>(), "{name}");
            }
        }
        assert!(checkpoint.table("single", [4, 3], Dtype::F32).is_err());
        assert!(checkpoint.table("absent", [3, 4], Dtype::F32).is_err());
    }

    #[test]
    fn rows_are_those_of_the_matrix() {
        let values: Vec<f32> = (0..12).map(|i| 1.0 + i as f32 / 256.0).collect();
        let rounded: Vec<bf16> = values.iter().map(|&x| bf16::from_f32(x)).collect();
        let mut row = [0.0; 4];
        Table::new(4, values.clone()).row(2, &mut row);
        assert_eq!(row, values[8..]);
        let halves = Table::collect([3, 4], |take| {
            take(0, Numbers::Bf16(&rounded[..8]));
            take(2, Numbers::Bf16(&rounded[8..]));
            Ok(())
        });
        halves.unwrap().row(1, &mut row);
        assert_eq!(row.to_vec(), rounded[4..8].iter().map(|x| x.to_f32()).collect::<Vec<_>>());
    }
}
