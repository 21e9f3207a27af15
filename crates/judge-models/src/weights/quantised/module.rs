//! A quantised module of a checkpoint: its codes, and the tensors beside them.

use crate::Error;
use crate::error::TensorProblem;
use crate::weights::Checkpoint;
use crate::weights::raw::Raw;

/// The tensors of one quantised module.
#[derive(Clone, Copy)]
pub(crate) struct Module<'a> {
    pub(super) checkpoint: &'a Checkpoint,
    /// What the names of its tensors begin with.
    pub(super) path: &'a str,
    pub(super) codes: Raw<'a>,
}

impl<'a> Module<'a> {
    /// The tensor whose name is the module's path and this.
    pub(super) fn partner(&self, suffix: &str) -> Option<Raw<'a>> {
        self.checkpoint.raw(&format!("{}{suffix}", self.path))
    }

    /// The same of a tensor without which the codes mean nothing.
    pub(super) fn need(&self, suffix: &str) -> Result<Raw<'a>, Error> {
        let missing = || self.codes.fault(TensorProblem::NoPartner { partner: format!("{}{suffix}", self.path) });
        self.partner(suffix).ok_or_else(missing)
    }
}

/// Rows and columns of a weight that must be a matrix.
pub(super) fn matrix(codes: &Raw<'_>, shape: &[usize]) -> Result<[usize; 2], Error> {
    shape.try_into().map_err(|_| codes.other_shape(shape))
}
