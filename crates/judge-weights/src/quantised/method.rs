//! How a method of quantisation stores modules.
//!
//! A new method is a file that implements [`Format`] and an arm of the match in `choice.rs`;
//! [`Quantised`](super::Quantised) needs no change.

use super::module::Module;
use crate::Error;
use crate::codes::Coded;
use crate::raw::Raw;

/// How a method stores a module. An implementation keeps the settings of the folder, no tensors.
pub(crate) trait Format {
    /// Pairs of ends of names, behind the path of the module: that of a tensor of codes, and that
    /// of the weight that it stands for. The first pair whose first end a name has counts. By default codes have the weight's name.
    fn codes(&self) -> &'static [(&'static str, &'static str)] {
        &[(".weight", ".weight")]
    }

    /// Whether a tensor with such a name does hold codes. In most methods a dense weight has the
    /// same name, and the dtype tells them apart.
    fn is_codes(&self, raw: &Raw<'_>) -> bool;

    /// Ends of the names of the tensors that a module may have beside its codes: those that are
    /// read, and those that only say how activations are rounded, which are left unread.
    fn partners(&self) -> &'static [&'static str];

    /// Whether a tensor that belongs to no module may be left unread. None by default.
    fn ignores(&self, _name: &str) -> bool {
        false
    }

    /// Whether a stack of matrices that no folder has one by one may be stored as one tensor of
    /// codes. If not, models with such stacks are refused for this method.
    fn has_stacks(&self) -> bool {
        false
    }

    /// The rows of a module's weight `[out, in]`, or of a stack of them where there are stacks. All
    /// shapes and dtypes, and indices that lead into other tensors, are checked here, so that
    /// dequantising rows cannot fail.
    ///
    /// # Errors
    /// [`Error::Tensor`] for tensors that are missing or do not fit this shape or each other.
    fn open<'a>(&self, module: Module<'a>, shape: &[usize]) -> Result<Box<dyn Coded + 'a>, Error>;
}
