//! What a template does wrong: the one error of templates.

use std::fmt;

/// Why a template cannot be read, or cannot be rendered with these variables.
///
/// A template raises on purpose (`raise_exception`), does what Python refuses too, asks for something that is not rendered here
/// and is named in the text, or exceeds a bound of this crate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateError {
    /// What happened, in one line.
    message: String,
    /// The line of the template, from 1, where a tag begins that failed; 0 before that is known.
    line: usize,
}

impl TemplateError {
    /// The same error at `line`, unless a line further inside is known already.
    pub(crate) fn at(mut self, line: usize) -> Self {
        if self.line == 0 {
            self.line = line;
        }
        self
    }
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.message),
            line => write!(f, "{} (line {line} of the template)", self.message),
        }
    }
}

impl std::error::Error for TemplateError {}

/// What everything in this module returns.
pub(crate) type Result<T> = std::result::Result<T, TemplateError>;

/// An error of what Jinja2 or Python refuses as well.
pub(crate) fn fault<T>(message: impl Into<String>) -> Result<T> {
    Err(TemplateError { message: message.into(), line: 0 })
}

/// An error of what transformers renders and this crate does not: the construct by its name.
pub(crate) fn refuse<T>(construct: impl fmt::Display) -> Result<T> {
    fault(format!("{construct} is not supported in templates"))
}

/// Refuses a whole number that Python has and this crate does not.
pub(crate) fn too_large<T>() -> Result<T> {
    refuse("a whole number of more than 128 bits")
}
