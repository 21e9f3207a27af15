//! What a template does wrong: the one error of this module.

use std::fmt;

/// Why a template cannot be read, or cannot be rendered with these messages.
///
/// A template raises on purpose (`raise_exception`), does what Python refuses too, asks for something that is not rendered here
/// and is named in the text, or exceeds a bound of the module `chat_template`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TemplateError {
    /// What happened, in one line.
    message: String,
    /// The line of the template, from 1, where a tag begins that failed; 0 before that is known.
    line: usize,
}

impl TemplateError {
    /// The same error at `line`, unless a line further inside is known already.
    pub(super) fn at(mut self, line: usize) -> Self {
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
pub(super) type Result<T> = std::result::Result<T, TemplateError>;

/// An error of what Jinja2 or Python refuses as well.
pub(super) fn fault<T>(message: impl Into<String>) -> Result<T> {
    Err(TemplateError { message: message.into(), line: 0 })
}

/// An error of what transformers renders and this module does not: the construct by its name.
pub(super) fn refuse<T>(construct: impl fmt::Display) -> Result<T> {
    fault(format!("{construct} is not supported in templates"))
}
