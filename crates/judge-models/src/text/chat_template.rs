//! A model's own chat template, rendered as transformers renders it.
//!
//! This is an interpreter of Jinja2's language in the environment of transformers
//! (`transformers.utils.chat_template_utils`): the sandbox with `trim_blocks` and `lstrip_blocks`, without HTML escapes, with `break`,
//! `continue` and `generation`, and with `tojson`, `raise_exception` and `strftime_now`. It does not read files
//! (`tokenizer/special_tokens.rs` finds the template), add a prefill, or decide which control tokens of its output are real
//! (`tokenizer/literal.rs`).
//!
//! ```text
//! template ─► lexer ─► pieces ─► parser, scopes ─► syntax::Body   once, ChatTemplate::new
//! messages, args ─► json::to_python ─► eval ─► String             each ChatTemplate::render
//!                                       │
//!                                       ├─ access, operators      attributes, items, slices; signs and operators
//!                                       ├─ filters, checks        behind `|` and behind `is`
//!                                       └─ functions, methods     calls; format does `%` and `str.format`
//! ```
//!
//! The rule is: the same text, or an error. A construct that transformers renders and this module does not, or not surely alike, is an
//! error that names it; another text is never made. `scripts/templates/` renders all of Jinja2's filters, tests, functions, and
//! the methods of Python's types with Jinja2 itself, and the tests compare.
//!
//! Templates come with downloaded models, so they are held to bounds. What exceeds one is an error:
//!
//! | what | at most | where |
//! |---|---|---|
//! | brackets, conditions and blocks inside one another | 64 | `parser.rs` |
//! | steps of a rendering | 20 million | `FUEL` |
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
mod lexer;
mod methods;
mod names;
mod operators;
mod parser;
mod python_text;
mod scopes;
mod sorting;
mod syntax;
mod value;

use std::collections::{BTreeMap, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use judge_core::Message;

use crate::panicked;

#[cfg(test)]
mod tests;

pub use date::Date;
pub(crate) use fault::TemplateError;
use lexer::{Kind, Piece};
use syntax::Body;
use value::Value;

/// A template that is read, ready to be rendered any number of times, from several threads at once.
pub(crate) struct ChatTemplate {
    /// The template's tree.
    body: Body,
    /// The day that `strftime_now` shows.
    date: Date,
    /// The template as it was given; see [`source`](Self::source).
    source: String,
}

impl ChatTemplate {
    /// Reads a template. `date` is the day that its `strftime_now` shows, at midnight; the clock
    /// is never read.
    ///
    /// # Errors
    /// With a line if `source` is no template, if it has a construct that is not supported, or if it is nested too deep.
    pub(crate) fn new(source: &str, date: Date) -> Result<Self, TemplateError> {
        Ok(Self { body: parser::parse(source)?, date, source: source.to_owned() })
    }

    /// The template's text as its file has it. `Control` looks in it for the
    /// added tokens that it writes.
    pub(crate) fn source(&self) -> &str {
        &self.source
    }

    /// Whether a tag of the template reads a variable of this name, or sets one.
    pub(crate) fn names(&self, name: &str) -> bool {
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

    /// Renders the conversation and opens the generation prompt after it.
    ///
    /// The template sees these variables; each row goes over those above it:
    ///
    /// | variable | value |
    /// |---|---|
    /// | `tools`, `documents` | none |
    /// | `add_generation_prompt` | true |
    /// | `bos_token`, `eos_token`, … | `special_tokens`, as texts |
    /// | any other name | `args` |
    /// | `messages` | a list of maps with `role` and `content` |
    ///
    /// Rendering is deterministic: the same arguments give the same text, whatever was rendered
    /// before on this thread.
    ///
    /// # Errors
    /// Whatever the template raises, what is not supported, and every bound that it exceeds. A panic in a rendering is an error of
    /// it too: it costs the item, not the run.
    pub(crate) fn render(
        &self,
        messages: &[Message],
        special_tokens: &BTreeMap<String, String>,
        args: &BTreeMap<String, serde_json::Value>,
    ) -> Result<String, TemplateError> {
        caught(|| self.render_unguarded(messages, special_tokens, args))
    }

    /// [`render`](Self::render), but for panics.
    fn render_unguarded(
        &self,
        messages: &[Message],
        special_tokens: &BTreeMap<String, String>,
        args: &BTreeMap<String, serde_json::Value>,
    ) -> Result<String, TemplateError> {
        budget::begin();
        let mut variables = HashMap::<Arc<str>, Value>::new();
        variables.insert("tools".into(), Value::None);
        variables.insert("documents".into(), Value::None);
        variables.insert("add_generation_prompt".into(), Value::Bool(true));
        variables.extend(special_tokens.iter().map(|(name, token)| (name.as_str().into(), token.as_str().into())));
        for (name, value) in args {
            variables.insert(name.as_str().into(), json::to_python(value)?);
        }
        let messages = messages.iter().map(|message| {
            let (role, content) = (message.role.as_str().into(), message.content.as_str().into());
            Value::dict([("role".into(), role), ("content".into(), content)])
        });
        variables.insert("messages".into(), Value::list(messages.collect::<Result<_, _>>()?)?);
        eval::render(&self.body, self.date, variables)
    }
}

/// Runs a rendering; a panic in it becomes an error. Nothing of a rendering outlives it but the counters of `budget.rs`, which
/// the next one resets. The process's panic hook still sees the panic.
fn caught(render: impl FnOnce() -> Result<String, TemplateError>) -> Result<String, TemplateError> {
    catch_unwind(AssertUnwindSafe(render)).unwrap_or_else(|panic| {
        let message = panicked::message(&*panic);
        fault::fault(format!("the rendering of templates has a fault of its own, please report it: {message}"))
    })
}
