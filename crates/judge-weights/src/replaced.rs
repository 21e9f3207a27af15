//! Tensors of which some are replaced by numbers in memory: what was trained in the place of what it began as.

use std::collections::BTreeMap;

use half::bf16;
use judge_kernels::numbers::Numbers;

use super::tensors::{TakeRows, Tensors};
use crate::{Dtype, Error};

/// A model's tensors with other numbers for some names. The base has all other tensors, and is not told of
/// those that are replaced: it need not have them.
pub struct Replaced<'a> {
    /// Where the others come from.
    pub base: &'a mut dyn Tensors,
    /// Numbers by name, row-major and finite, as many as the tensor's shape has.
    pub by: &'a BTreeMap<&'a str, &'a [f32]>,
}

impl Tensors for Replaced<'_> {
    fn take(&mut self, name: &str, shape: &[usize], dtype: Dtype) -> Result<Vec<f32>, Error> {
        let Some(values) = self.by.get(name) else { return self.base.take(name, shape, dtype) };
        Ok(match dtype {
            Dtype::F32 | Dtype::Tf32 => values.to_vec(),
            Dtype::Bf16 => values.iter().map(|&x| bf16::from_f32(x).to_f32()).collect(),
        })
    }

    fn take_rows(&mut self, name: &str, shape: [usize; 2], dtype: Dtype, take: TakeRows<'_>) -> Result<(), Error> {
        let Some(values) = self.by.get(name) else { return self.base.take_rows(name, shape, dtype, take) };
        match dtype {
            Dtype::F32 | Dtype::Tf32 => take(0, Numbers::F32(values)),
            Dtype::Bf16 => {
                take(0, Numbers::Bf16(&values.iter().map(|&x| bf16::from_f32(x)).collect::<Vec<_>>()));
            }
        }
        Ok(())
    }

    fn pass_over(&mut self, name: &str) {
        self.base.pass_over(name);
    }
}
