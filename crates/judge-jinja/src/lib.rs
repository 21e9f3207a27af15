//! Templates in Jinja2's language, for `judge-models` and whoever renders chat templates; no promise of stability yet.
//!
//! This is an interpreter in the environment of transformers
//! (`transformers.utils.chat_template_utils`): the sandbox with `trim_blocks` and `lstrip_blocks`, without HTML escapes, with `break`,
//! `continue` and `generation`, and with `tojson`, `raise_exception` and `strftime_now`. It reads no files and no clock.
//!
//! ```
//! let template = judge_jinja::Template::new("{% for name in names %}{{ name }}\n{% endfor %}", Default::default())?;
//! let names = serde_json::json!(["Ada", "Kurt"]);
//! assert_eq!(template.render([("names", &names)])?, "Ada\nKurt\n");
//! # Ok::<(), judge_jinja::TemplateError>(())
//! ```
//!
//! ```text
//! template ─► lexer ─► pieces ─► parser, scopes ─► syntax::Body   once, Template::new
//! variables ─► json::to_python ─► eval ─► String                  each Template::render
//!                                       │
//!                                       ├─ access, operators      attributes, items, slices; signs and operators
//!                                       ├─ filters, checks        behind `|` and behind `is`
//!                                       ├─ functions, methods     calls; format does `%` and `str.format`
//!                                       └─ letters, python_text   what Python says of characters, and how it writes values
//! ```
//!
//! The rule is: the same text, or an error. A construct that transformers renders and this module does not, or not surely alike, is an
//! error that names it; another text is never made. `scripts/templates/` renders all of Jinja2's filters, tests, functions, and
//! the methods of Python's types with Jinja2 itself, and the tests compare.
//!
//! Templates come from elsewhere, so they are held to bounds. What exceeds one is an error:
//!
//! | what | at most | where |
//! |---|---|---|
//! | brackets, conditions and blocks inside one another | 64 | `parser.rs` |
//! | steps of a rendering, also one for each KiB of text that is read | 20 million | `FUEL` |
//! | macro calls inside one another | 64 | `eval.rs` |
//! | bytes of output | 64 MiB | `OUTPUT` |
//! | bytes of intermediate texts and lists | 256 MiB | `budget.rs` |
//! | lists and mappings inside one another | 200 | `value.rs` |
//! | a width or a precision | 65,536 | `format.rs`, `methods.rs` |

mod access;
mod arguments;
mod attributes;
mod budget;
mod checks;
mod date;
mod eval;
mod fault;
mod filters;
mod format;
mod functions;
mod json;
mod letters;
mod lexer;
mod methods;
mod operators;
mod parser;
mod python_text;
mod scopes;
mod sorting;
mod syntax;
mod value;

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

#[cfg(test)]
mod tests;

pub use date::{Date, DateError};
pub use fault::TemplateError;
pub use json::WholeNumber;
use lexer::{Kind, Piece};
use syntax::Body;
use value::Value;

/// A template that is read, ready to be rendered any number of times, from several threads at once.
pub struct Template {
    /// The template's tree.
    body: Body,
    /// The day that `strftime_now` shows.
    date: Date,
    /// The template as it was given; see [`source`](Self::source).
    source: String,
    /// What tells the digits of a whole number that JSON does not hold; see [`with_whole_numbers`](Self::with_whole_numbers).
    whole_number: WholeNumber,
}

impl Template {
    /// Reads a template. `date` is the day that its `strftime_now` shows, at midnight; the clock
    /// is never read.
    ///
    /// # Errors
    /// With a line if `source` is no template, if it has a construct that is not supported, or if it is nested too deep.
    pub fn new(source: &str, date: Date) -> Result<Self, TemplateError> {
        Ok(Self { body: parser::parse(source)?, date, source: source.to_owned(), whole_number: |_| None })
    }

    /// The same template whose variables may have values that stand for whole numbers of more than 64 bits. Python's have no end;
    /// here they have 128 bits.
    #[must_use]
    pub fn with_whole_numbers(self, whole_number: WholeNumber) -> Self {
        Self { whole_number, ..self }
    }

    /// The template's text as it was given.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Whether a tag of the template reads a variable of this name, or sets one.
    #[must_use]
    pub fn names(&self, name: &str) -> bool {
        let pieces = lexer::pieces(&self.source).unwrap_or_default(); // `new` has read them
        pieces.iter().any(|piece| match piece {
            Piece::Data(_) => false,
            Piece::Print(tokens, _) | Piece::Statement(tokens, _) => {
                let is_it = |place: usize| matches!(&tokens[place].kind, Kind::Name(found) if **found == *name);
                let is_attribute = |place: usize| place > 0 && tokens[place - 1].kind == Kind::Operator(".");
                (0..tokens.len()).any(|place| is_it(place) && !is_attribute(place))
            }
        })
    }

    /// Renders the template with these variables. Of one name twice, the last counts.
    ///
    /// Rendering is deterministic: the same variables give the same text, whatever was rendered
    /// before on this thread.
    ///
    /// # Errors
    /// Whatever the template raises, what is not supported, and every bound that it exceeds. A panic in a rendering is an error of
    /// it too.
    pub fn render<'a>(
        &self,
        variables: impl IntoIterator<Item = (&'a str, &'a serde_json::Value)>,
    ) -> Result<String, TemplateError> {
        caught(|| {
            budget::begin();
            let mut named = HashMap::<Arc<str>, Value>::new();
            for (name, value) in variables {
                named.insert(name.into(), json::to_python(value, self.whole_number)?);
            }
            eval::render(&self.body, self.date, named)
        })
    }
}

/// Runs a rendering; a panic in it becomes an error. Nothing of a rendering outlives it but the counters of `budget.rs`, which
/// the next one resets. The process's panic hook still sees the panic.
fn caught(render: impl FnOnce() -> Result<String, TemplateError>) -> Result<String, TemplateError> {
    catch_unwind(AssertUnwindSafe(render)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        let message = text.unwrap_or("a panic without a message");
        fault::fault(format!("the rendering of templates has a fault of its own, please report it: {message}"))
    })
}
