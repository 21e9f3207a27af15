//! A quantised module of a checkpoint: its codes, and the tensors beside them, found by name.

use crate::Error;
use crate::error::TensorProblem;
use crate::raw::Raw;
use crate::safetensors::Checkpoint;

/// The tensors of one quantised module, as [`Method::open`](super::method::Method::open) gets them.
#[derive(Clone, Copy)]
pub(crate) struct Module<'a> {
    /// Where the tensors are.
    pub(super) checkpoint: &'a Checkpoint,
    /// What the names of its tensors begin with, such as `model.layers.0.mlp.down_proj`.
    pub(super) path: &'a str,
    /// The tensor of codes, unchecked.
    pub(super) codes: Raw<'a>,
}

impl<'a> Module<'a> {
    /// The tensor whose name is the module's path and this suffix, if there is one.
    pub(super) fn partner(&self, suffix: &str) -> Option<Raw<'a>> {
        self.checkpoint.raw(&format!("{}{suffix}", self.path))
    }

    /// The tensor whose name is the module's path and this suffix.
    ///
    /// # Errors
    /// [`TensorProblem::NoPartner`] of the codes, which mean nothing without it.
    pub(super) fn need(&self, suffix: &str) -> Result<Raw<'a>, Error> {
        let missing = || self.codes.fault(TensorProblem::NoPartner { partner: format!("{}{suffix}", self.path) });
        self.partner(suffix).ok_or_else(missing)
    }
}

/// Rows and columns of a weight.
///
/// # Errors
/// [`TensorProblem::Shape`] of the codes for a weight that is no matrix.
pub(super) fn matrix(codes: &Raw<'_>, shape: &[usize]) -> Result<[usize; 2], Error> {
    shape.try_into().map_err(|_| codes.other_shape(shape))
}
