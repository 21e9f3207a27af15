//! A checkpoint's tensors as Burn's parameters, in the dtype that they have on their device.
//!
//! `Decoder::with_precision` asks `Parameters` for one weight after the other, through the trait
//! [`Build`] that the packed path implements too. Numbers come from a [`Source`], one tensor at a
//! time. `Parameters` remembers which tensors each parameter was made from, for training.
//!
//! | weight | from the source | on the device |
//! |---|---|---|
//! | matrices of bf16 products | bf16, appended in place | bf16 |
//! | other matrices, routers | f32 | f32 |
//! | biases, norms, other vectors | f32 | f32 |
//! | tables that are looked up | a `Table` | none: they stay on the host |

use std::ops::Range;

use burn::module::{Module, Param, ParamId};
use burn::tensor::{DType, Device, Tensor, TensorData};
use half::bf16;
use judge_arch::{LinearSpec, NamedRows, NormSpec};

use super::precision::Precision;
use crate::Error;
use crate::engine::block::Build;
use crate::weights::Table;

/// The weight of a norm, `[d_model]` or `[head_dim]`, with its bias behind it, or other numbers of one axis; f32.
pub(super) type Norm = Param<Tensor<1>>;

/// The weights of a projection.
#[derive(Module, Debug)]
pub(super) struct Linear {
    /// `[d_out, d_in]`, in the dtype of the products.
    pub(super) weight: Param<Tensor<2>>,
    /// `[d_out]` in f32, where there is one.
    pub(super) bias: Option<Param<Tensor<1>>>,
    /// See [`LinearSpec::factors`].
    #[module(skip)]
    pub(super) factors: Vec<(usize, f32)>,
    /// What is added to the product of some of its matrices; empty but where adapters are trained.
    pub(super) low_rank: Vec<LowRank>,
}

/// A low-rank term beside one matrix of a projection: `scale * (x · aᵀ) · bᵀ`, which is LoRA.
#[derive(Module, Debug)]
pub(super) struct LowRank {
    /// `[rank, d_in]`.
    pub(super) a: Param<Tensor<2>>,
    /// `[rows, rank]`.
    pub(super) b: Param<Tensor<2>>,
    /// The rows of the matrix in the projection.
    #[module(skip)]
    pub(super) rows: Range<usize>,
    /// The factor of the product.
    #[module(skip)]
    pub(super) scale: f32,
}

/// The [`Stored::change`] of what is taken as it is.
const UNCHANGED: (f32, f32) = (0.0, 1.0);

/// A parameter, and the tensors that it was made from. Training reads it.
#[derive(Clone, Debug)]
#[cfg_attr(not(feature = "train"), allow(dead_code, reason = "gradients are filed by it"))]
pub(crate) struct Stored {
    /// The parameter.
    pub(crate) id: ParamId,
    /// Names of the tensors with their rows, from the top down.
    pub(crate) parts: NamedRows,
    /// What was added to every stored number, and what the sum was multiplied by: see
    /// [`NormSpec::offset`] and [`NormSpec::factor`].
    pub(crate) change: (f32, f32),
}

/// A source as a function: from the name and shape of a tensor to its values, row-major. What tests
/// build from.
#[cfg(test)]
pub(crate) type Values<'a> = dyn FnMut(&str, &[usize]) -> Result<Vec<f32>, Error> + 'a;

/// Where a decoder's numbers come from. A tensor is asked for once, by its full name and its exact
/// shape.
pub(crate) trait Source {
    /// The values of a tensor, row-major.
    ///
    /// # Errors
    /// Those of reading it.
    fn values(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>, Error>;

    /// Appends the values of a matrix to `to`, rounded to bf16, so that projections which share a
    /// product come together without a copy. By default from [`values`](Self::values).
    ///
    /// # Errors
    /// Those of reading it. Some rows may have been appended by then.
    fn append_bf16(&mut self, name: &str, shape: [usize; 2], to: &mut Vec<bf16>) -> Result<(), Error> {
        to.extend(self.values(name, &shape)?.into_iter().map(bf16::from_f32));
        Ok(())
    }

    /// A matrix `[rows, width]` whose rows are looked up on the host. By default a copy in memory,
    /// in f32.
    ///
    /// # Errors
    /// Those of reading it.
    fn table(&mut self, name: &str, shape: [usize; 2]) -> Result<Table, Error> {
        Ok(Table::new(shape[1], self.values(name, &shape)?))
    }

    /// The rank and the factor of a low-rank term beside the matrix `STEM.weight`. None, the default, but
    /// where adapters are trained. Its factors are then asked for like other tensors, as
    /// `STEM.lora_A.weight` `[rank, d_in]` and `STEM.lora_B.weight` `[rows, rank]`.
    fn low_rank(&self, _stem: &str) -> Option<(usize, f32)> {
        None
    }
}

#[cfg(test)]
impl Source for Values<'_> {
    fn values(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>, Error> {
        self(name, shape)
    }
}

/// Makes parameters of a checkpoint's tensors.
pub(super) struct Parameters<'a, S: ?Sized> {
    /// Where parameters go from now on; the decoder changes it from stage to stage.
    pub(super) device: &'a Device,
    /// Says which dtype matrices have. Routers are made with [`Precision::FULL`] whatever it is.
    pub(super) precision: Precision,
    /// Where numbers come from.
    pub(super) source: &'a mut S,
    /// The parameters that were made so far.
    pub(super) stored: Vec<Stored>,
}

impl<S: Source + ?Sized> Build for Parameters<'_, S> {
    type Linear = Linear;
    type Norm = Norm;

    fn linear(&mut self, linear: &LinearSpec) -> Result<Linear, Error> {
        let bias = if linear.bias { Some(self.vector(linear.biases())?) } else { None };
        let weight = self.matrix(linear.weights(), linear.d_in)?;
        Ok(Linear { weight, bias, factors: linear.factors.clone(), low_rank: self.low_rank(linear)? })
    }

    /// A projection in f32, whatever the precision.
    fn router(&mut self, router: &LinearSpec) -> Result<Linear, Error> {
        let precision = std::mem::replace(&mut self.precision, Precision::FULL);
        let router = self.linear(router);
        self.precision = precision;
        router
    }

    fn norm(&mut self, norm: &NormSpec) -> Result<Norm, Error> {
        let weight = self.source.values(&norm.name, &[norm.len])?.into_iter().map(|stored| norm.weight(stored));
        let (mut values, mut parts) = (weight.collect::<Vec<_>>(), vec![(norm.name.clone(), norm.len)]);
        if let Some(bias) = &norm.bias {
            values.append(&mut self.source.values(bias, &[norm.len])?);
            parts.push((bias.clone(), norm.len));
        }
        Ok(self.vector_of(parts, values, (norm.offset, norm.factor)))
    }

    fn table(&mut self, name: &str, shape: [usize; 2]) -> Result<Table, Error> {
        self.source.table(name, shape)
    }

    fn numbers(&mut self, name: &str, shape: &[usize]) -> Result<Norm, Error> {
        let values = self.source.values(name, shape)?;
        Ok(self.vector_of(vec![(name.to_owned(), values.len())], values, UNCHANGED))
    }
}

impl<S: Source + ?Sized> Parameters<'_, S> {
    /// The values of several tensors of one axis behind one another, such as the biases of
    /// projections that share a product.
    fn vector(&mut self, parts: NamedRows) -> Result<Param<Tensor<1>>, Error> {
        let mut values = Vec::new();
        for (name, len) in &parts {
            values.append(&mut self.source.values(name, &[*len])?);
        }
        Ok(self.vector_of(parts, values, UNCHANGED))
    }

    /// A parameter with these numbers, filed under the tensors in `parts`.
    fn vector_of(&mut self, parts: NamedRows, values: Vec<f32>, change: (f32, f32)) -> Param<Tensor<1>> {
        let len = values.len();
        let parameter = Param::from_data(TensorData::new(values, [len]), self.device);
        self.stored.push(Stored { id: parameter.id, parts, change });
        parameter
    }

    /// The low-rank terms that the source has beside the matrices of a projection.
    fn low_rank(&mut self, linear: &LinearSpec) -> Result<Vec<LowRank>, Error> {
        let (mut terms, mut start) = (Vec::new(), 0);
        for (stem, rows) in &linear.stems {
            if let Some((rank, scale)) = self.source.low_rank(stem) {
                let a = self.matrix(vec![(format!("{stem}.lora_A.weight"), rank)], linear.d_in)?;
                let b = self.matrix(vec![(format!("{stem}.lora_B.weight"), *rows)], rank)?;
                terms.push(LowRank { a, b, rows: start..start + rows, scale });
            }
            start += rows;
        }
        Ok(terms)
    }

    /// The rows of several matrices below one another, `[rows, d_in]`, filed under their names.
    /// `parts` are full names and numbers of rows, from the top down.
    pub(super) fn matrix(&mut self, parts: NamedRows, d_in: usize) -> Result<Param<Tensor<2>>, Error> {
        let parameter = self.matrix_of(&parts, d_in)?;
        self.stored.push(Stored { id: parameter.id, parts, change: UNCHANGED });
        Ok(parameter)
    }

    /// The parameter of [`matrix`](Self::matrix), in the dtype of the products. All rows are in
    /// memory on the host at once.
    fn matrix_of(&mut self, parts: &[(String, usize)], d_in: usize) -> Result<Param<Tensor<2>>, Error> {
        let shape = [parts.iter().map(|(_, rows)| rows).sum(), d_in];
        if self.precision.products == DType::BF16 {
            let mut values: Vec<bf16> = Vec::with_capacity(shape[0] * d_in);
            for (name, rows) in parts {
                self.source.append_bf16(name, [*rows, d_in], &mut values)?;
            }
            // As `Param::from_data` does, which knows the device's default dtype only.
            let data = TensorData::new(values, shape);
            let tensor = self
                .device
                .memory_persistent_allocations(data, |data| Tensor::from_data(data, (self.device, DType::BF16)));
            return Ok(Param::from_tensor(tensor));
        }
        let mut values = Vec::with_capacity(shape[0] * d_in);
        for (name, rows) in parts {
            values.append(&mut self.source.values(name, &[*rows, d_in])?);
        }
        Ok(Param::from_data(TensorData::new(values, shape), self.device))
    }
}
