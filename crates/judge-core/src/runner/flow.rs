use std::error::Error as StdError;
use std::ops::ControlFlow;

/// What an observer may return: nothing, a [`ControlFlow`], or a `Result` of either, with any error.
pub trait Flow {
    /// Whether the run goes on.
    ///
    /// # Errors
    /// The observer's own, which ends the run.
    fn flow(self) -> Result<ControlFlow<()>, Box<dyn StdError + Send + Sync>>;
}

impl Flow for () {
    fn flow(self) -> Result<ControlFlow<()>, Box<dyn StdError + Send + Sync>> {
        Ok(ControlFlow::Continue(()))
    }
}

impl Flow for ControlFlow<()> {
    fn flow(self) -> Result<ControlFlow<()>, Box<dyn StdError + Send + Sync>> {
        Ok(self)
    }
}

impl<T: Flow, E: Into<Box<dyn StdError + Send + Sync>>> Flow for Result<T, E> {
    fn flow(self) -> Result<ControlFlow<()>, Box<dyn StdError + Send + Sync>> {
        self.map_err(Into::into)?.flow()
    }
}
