//! Models for tests, each a function.

use judge_core::{
    TextModel,
    model::{BackboneError, Exchange, ModelIdentity},
};

/// Serves as its function does.
pub(crate) struct Serving<F>(pub(crate) F);

impl<F: Fn(&mut dyn Exchange) -> Result<(), BackboneError> + Send + Sync> TextModel for Serving<F> {
    fn identity(&self) -> ModelIdentity {
        ModelIdentity::named("serving")
    }

    fn tokens_in(&self, _: &str) -> Option<usize> {
        None
    }

    fn serve(&self, exchange: &mut dyn Exchange) -> Result<(), BackboneError> {
        (self.0)(exchange)
    }
}
