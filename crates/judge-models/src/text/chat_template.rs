//! A model's own chat template, rendered as transformers renders it.
//!
//! This file owns the environment of minijinja, the variables that a template sees, and the bounds
//! on one rendering. It does not read files (`tokenizer/special_tokens.rs` finds the template), add
//! a prefill, or decide which control tokens of its output are real (`tokenizer/literal.rs`).
//!
//! ```text
//! template ─► source::translate ─► minijinja program                     once, ChatTemplate::new
//! messages, args ─► json::to_jinja ─► program ─► Capped ─► String        each ChatTemplate::render
//!                                        │
//!                                        └─ python (methods, `%`, spelling of values), json::tojson,
//!                                           date::format; all charge what they make to budget
//! ```
//!
//! The reference is `transformers.utils.chat_template_utils`: Jinja with `trim_blocks` and
//! `lstrip_blocks`, without HTML escapes, and with `tojson`, `raise_exception` and `strftime_now`.
//! The tests compare some 150 renderings with it.
//!
//! Templates come with downloaded models, so they are held to bounds. What exceeds one is an error:
//!
//! | what | at most | where |
//! |---|---|---|
//! | brackets inside brackets | 64 | `source.rs`, when the template is compiled |
//! | pieces of an expression between commas | 1,000 | `source.rs` |
//! | `elif` in a template | 256 | `source.rs` |
//! | instructions of a rendering | 20 million | `FUEL` |
//! | calls inside calls | 200 | `RECURSION` |
//! | bytes of output | 64 MiB | `OUTPUT` |
//! | bytes of intermediate texts | 256 MiB | `budget.rs` |
//! | lists inside lists where a value is written | 64 | `budget::enter` |
//! | width of `zfill`, `ljust`, `rjust`, `center` | 65,536 | `python.rs` |

mod budget;
mod date;
mod json;
mod python;
mod source;

use std::collections::BTreeMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use judge_core::Message;
use minijinja::syntax::SyntaxConfig;
use minijinja::{AutoEscape, Environment, Error as JinjaError, ErrorKind, Value};

#[cfg(test)]
mod tests;

pub use date::Date;

/// Instructions of minijinja's machine that one rendering may take. A long conversation takes some
/// ten thousands. Fuzzing uses less, so that a case ends soon.
const FUEL: u64 = if cfg!(fuzzing) { 10_000 } else { 20_000_000 };

/// Deepest nesting of macro calls and recursive loops in a rendering.
const RECURSION: usize = 200;

/// Bytes that one rendering may write: 64 MiB. The longest context of any supported model is far
/// shorter. `budget::MADE` is a multiple of it.
const OUTPUT: usize = if cfg!(fuzzing) { 1 << 20 } else { 64 << 20 };

/// The name of the one template that each environment holds.
const NAME: &str = "chat";

/// A compiled template, ready to be rendered any number of times, from several threads at once.
///
/// The bounds are those of this module's table. Counted as bytes made on the way ([`budget`]) are
/// the results of `~`, `+` and `%`, values that are written, and the filters and methods that can
/// multiply their input. minijinja offers no hook for the rest, which stays bounded more loosely:
///
/// - `*` makes at most 100 MB, or 100 million items, each time.
/// - Only the instructions bound plain text that loops capture, the copies that other filters make,
///   and the number of either.
/// - Lists that a template nests some ten thousand deep overflow the stack when they are dropped.
pub(crate) struct ChatTemplate {
    /// Filters, functions, settings, and the translated program under [`NAME`].
    environment: Environment<'static>,
    /// The template before translation; see [`source`](Self::source).
    source: String,
}

impl ChatTemplate {
    /// Compiles a template. `date` is the day that its `strftime_now` shows, at midnight; the clock
    /// is never read.
    ///
    /// # Errors
    /// A syntax error with its line if `source` is no template, or if it is nested too deep for the
    /// parser.
    pub(crate) fn new(source: &str, date: Date) -> Result<Self, JinjaError> {
        let mut environment = Environment::new();
        environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        environment.set_fuel(Some(FUEL));
        environment.set_recursion_limit(RECURSION);
        python::install(&mut environment);
        environment.add_filter("tojson", json::tojson);
        environment.add_function("raise_exception", |why: &Value| -> Result<Value, JinjaError> {
            Err(JinjaError::new(ErrorKind::InvalidOperation, python::text(why)?))
        });
        environment.add_function("strftime_now", move |format: &str| -> Result<String, JinjaError> {
            budget::charge(format.len().saturating_mul(Date::LONGEST))?;
            Ok(date.format(format))
        });
        environment.add_template_owned(NAME, source::translate(source)?)?;
        Ok(Self { environment, source: source.to_owned() })
    }

    /// The template's text as its file has it, without translation. `Control` looks in it for the
    /// added tokens that it writes.
    pub(crate) fn source(&self) -> &str {
        &self.source
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
    /// Whatever the template raises, and every bound that it exceeds.
    pub(crate) fn render(
        &self,
        messages: &[Message],
        special_tokens: &BTreeMap<String, String>,
        args: &BTreeMap<String, serde_json::Value>,
    ) -> Result<String, JinjaError> {
        let mut variables = BTreeMap::<&str, Value>::new();
        variables.insert("tools", Value::from(()));
        variables.insert("documents", Value::from(()));
        variables.insert("add_generation_prompt", Value::from(true));
        variables.extend(special_tokens.iter().map(|(name, token)| (name.as_str(), Value::from(token.as_str()))));
        variables.extend(args.iter().map(|(name, value)| (name.as_str(), json::to_jinja(value))));
        let messages: Vec<Value> = messages
            .iter()
            .map(|m| Value::from_pairs([("role", m.role.as_str()), ("content", m.content.as_str())]))
            .collect();
        variables.insert("messages", Value::from(messages));

        budget::begin();
        let mut output = Capped(Vec::new());
        // minijinja panics over some templates that it should refuse, e.g. for an empty text that is read backwards.
        let render = || {
            let template = self.environment.get_template(NAME)?;
            template.render_captured_to(Value::from_pairs(variables), &mut output).map(|_| ())
        };
        let failed = |_| Err(JinjaError::new(ErrorKind::InvalidOperation, "the template's own engine failed over it"));
        catch_unwind(AssertUnwindSafe(render)).unwrap_or_else(failed)?;
        String::from_utf8(output.0).map_err(|e| JinjaError::new(ErrorKind::BadSerialization, e.to_string()))
    }
}

/// What a rendering has written so far. A write that would make it longer than [`OUTPUT`] bytes
/// fails and writes nothing.
struct Capped(Vec<u8>);

impl io::Write for Capped {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > OUTPUT {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("more than {OUTPUT} bytes of output")));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
