//! How a method of quantisation stores modules.
//!
//! A new method is a file with a function that makes a [`Method`] of a folder's settings, and a row of the table in `choice.rs`;
//! [`Quantised`](super::Quantised) needs no change.

use super::module::Module;
use crate::Error;
use crate::codes::Coded;
use crate::raw::Raw;

/// Of codes whose name no dense weight has.
pub(super) fn always(_: &Raw<'_>) -> bool {
    true
}

/// Opens a module's weight.
type Open = dyn for<'a> Fn(Module<'a>, &[usize]) -> Result<Coded<'a>, Error>;

/// How the modules of a folder are stored: a method of quantisation, with the settings of the folder, and no tensors.
pub struct Method {
    /// Pairs of ends of names, behind the path of the module: that of a tensor of codes, and that
    /// of the weight that it stands for. The first pair whose first end a name has counts.
    pub(super) codes: &'static [(&'static str, &'static str)],
    /// Whether a tensor with such a name does hold codes. In most methods a dense weight has the
    /// same name, and the dtype tells them apart.
    pub(super) is_codes: fn(&Raw<'_>) -> bool,
    /// Ends of the names of the tensors that a module may have beside its codes: those that are
    /// read, and those that only say how activations are rounded, which are left unread.
    pub(super) partners: &'static [&'static str],
    /// Ends of the names of tensors that belong to no module and may be left unread.
    pub(super) ignored: &'static [&'static str],
    /// Whether a stack of matrices that no folder has one by one may be stored as one tensor of
    /// codes. If not, models with such stacks are refused for this method.
    pub has_stacks: bool,
    /// See [`open`](Self::open).
    pub(super) open: Box<Open>,
}

impl Method {
    /// A method without stacks whose codes have the weight's name. `open` is [`open`](Self::open).
    pub(super) fn new(
        is_codes: fn(&Raw<'_>) -> bool,
        partners: &'static [&'static str],
        open: impl for<'a> Fn(Module<'a>, &[usize]) -> Result<Coded<'a>, Error> + 'static,
    ) -> Self {
        let codes = &[(".weight", ".weight")];
        Self { codes, is_codes, partners, ignored: &[], has_stacks: false, open: Box::new(open) }
    }

    /// The rows of a module's weight `[out, in]`, or of a stack of them where there are stacks. All
    /// shapes and dtypes, and indices that lead into other tensors, are checked here, so that
    /// dequantising rows cannot fail.
    ///
    /// # Errors
    /// [`Error::Tensor`] for tensors that are missing or do not fit this shape or each other.
    pub(super) fn open<'a>(&self, module: Module<'a>, shape: &[usize]) -> Result<Coded<'a>, Error> {
        (self.open)(module, shape)
    }
}
