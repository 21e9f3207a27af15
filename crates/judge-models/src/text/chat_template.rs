//! A model's own chat template, rendered as transformers renders it.

mod budget;
mod date;
mod json;
mod python;
mod source;

use std::collections::BTreeMap;
use std::io;

use judge_core::Message;
use minijinja::syntax::SyntaxConfig;
use minijinja::{AutoEscape, Environment, Error as JinjaError, ErrorKind, Value};

#[cfg(test)]
mod tests;

pub use date::Date;

/// Instructions that one rendering may take. A long conversation takes some ten thousands.
const FUEL: u64 = if cfg!(fuzzing) { 10_000 } else { 20_000_000 };

/// Deepest nesting of macro calls and recursive loops.
const RECURSION: usize = 200;

/// Bytes that one rendering may write. The longest context of any supported model is far shorter.
const OUTPUT: usize = if cfg!(fuzzing) { 1 << 20 } else { 64 << 20 };

/// The only template of an environment.
const NAME: &str = "chat";

/// A compiled template.
///
/// Templates come with downloaded models, so each is held to bounds, and what passes them is an error: nesting and length of
/// expressions when it is compiled; when it is rendered, instructions, recursion, output, and the bytes that it makes on the
/// way ([`budget`]) by `~`, `+`, `%`, writing values, and the filters and methods that can multiply their input. minijinja
/// gives no hold on the rest. `*` makes at most 100 MB, or 100 million items, each time. Plain text that loops capture,
/// copies that other filters make, and their number are bounded by the instructions alone. Lists that a template nests in
/// one another some ten thousand deep overflow the stack when they are dropped.
pub(crate) struct ChatTemplate {
    environment: Environment<'static>,
    source: String,
}

impl ChatTemplate {
    /// Compiles a template. `date` is what its `strftime_now` sees, at midnight.
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

    /// The template's own text.
    pub(crate) fn source(&self) -> &str {
        &self.source
    }

    /// Renders the conversation with the generation prompt opened after it.
    ///
    /// The template sees `messages`, `add_generation_prompt`, `tools` and `documents` (both none), `special_tokens`
    /// under their names (`bos_token`, …) and `args`, which go over all of these but the conversation itself.
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
        self.environment.get_template(NAME)?.render_captured_to(Value::from_pairs(variables), &mut output)?;
        String::from_utf8(output.0).map_err(|e| JinjaError::new(ErrorKind::BadSerialization, e.to_string()))
    }
}

/// Refuses to grow beyond [`OUTPUT`].
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
