//! Prompts with placeholders for the fields of an item.

mod pointwise;
mod problem;

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Error, Fields, Message, Prompt, fields};
pub use problem::TemplateProblem;

/// A [`Prompt`] whose texts hold `{name}` placeholders for the fields of an item.
///
/// Placeholders stand in a raw prompt's text, in the content of messages and in the prefill, but not in the trusted prefill. A name is an
/// ASCII letter or `_` followed by letters, digits and `_`. `{{` and `}}` stand for single braces; any other brace is an error when the
/// template is made. Substitution is one pass: text that looks like a placeholder inside a field's value stays as it is.
///
/// An item that lacks a field gets the template's default for it, if there is one ([`with_default`](Self::with_default)).
///
/// In files a template is the prompt itself, e.g. `{"raw": "Rate this: {response}"}` or
/// `{"chat": {"messages": [{"role": "user", "content": "Rate this: {response}"}]}}`, with
/// `"defaults": {"rubric": "Is it right?"}` beside it where there are any. A key that nothing reads is an error;
/// [`settings_from_json`](crate::settings::settings_from_json) says what it was meant to
/// be.
///
/// ```
/// use judge_core::{Prompt, PromptTemplate};
///
/// let template = PromptTemplate::new(Prompt::user("Rate {{1-5}}: {response}"))?;
/// assert_eq!(template.fill(&[("response", "a {rubric} b")])?, Prompt::user("Rate {1-5}: a {rubric} b"));
/// # Ok::<(), judge_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "TemplateFile")]
pub struct PromptTemplate {
    #[serde(flatten)]
    source: Prompt,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    defaults: BTreeMap<String, String>,
    #[serde(skip)]
    id: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TemplateFile {
    raw: Option<String>,
    chat: Option<ChatFile>,
    #[serde(default)]
    defaults: BTreeMap<String, String>,
}

/// A conversation as [`Prompt::Chat`] has it: it has a type of its own here because serde refuses no unknown key beside a flattened enum.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChatFile {
    messages: Vec<TurnFile>,
    #[serde(default)]
    template_args: BTreeMap<String, Value>,
    #[serde(default)]
    trusted_prefill: String,
    #[serde(default)]
    prefill: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TurnFile {
    role: String,
    content: String,
}

impl PromptTemplate {
    /// A template from a prompt with placeholders.
    ///
    /// # Errors
    /// [`Error::Template`] for a brace that neither belongs to a placeholder nor is doubled, and for a [`Prompt::Whole`].
    pub fn new(source: Prompt) -> Result<Self, Error> {
        if matches!(source, Prompt::Whole(_)) {
            return Err(TemplateProblem::Whole.into());
        }
        for (place, text) in texts(&source) {
            for piece in pieces(text) {
                piece.map_err(|offset| TemplateProblem::Brace { place: place.clone(), offset })?;
            }
        }
        Ok(Self::known_good(source))
    }

    /// The same template with a text for items that lack the field `name`.
    ///
    /// # Errors
    /// [`Error::Template`] if the template does not use this field.
    pub fn with_default(mut self, name: impl Into<String>, text: impl Into<String>) -> Result<Self, Error> {
        let field = name.into();
        self.used(&field)?;
        self.defaults.insert(field, text.into());
        Ok(Self::of(self.source, self.defaults))
    }

    /// The same template with `text` in the place of the field `name`, whatever an item has under that name: a fixed rubric, say.
    /// The text stands for itself,
    /// braces included, and is part of the template's [id](Self::id).
    ///
    /// ```
    /// use judge_core::{Prompt, PromptTemplate};
    ///
    /// let template = PromptTemplate::new(Prompt::user("{response}\n\nJudge by this: {rubric}"))?;
    /// let clarity = template.bind("rubric", "Is it clear?")?;
    /// let row = [("response", "a b"), ("rubric", "a rubric of the row's own")];
    /// assert_eq!(clarity.fill(&row)?, Prompt::user("a b\n\nJudge by this: Is it clear?"));
    /// # Ok::<(), judge_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Template`] if the template does not use this field.
    pub fn bind(mut self, name: &str, text: &str) -> Result<Self, Error> {
        self.used(name)?;
        let text = escape(text);
        let bound = |source: &str| {
            // `new` has refused every text with a wrong brace, so no piece is an error here.
            let pieces = pieces(source).flatten().map(|piece| match piece {
                Piece::Text(literal) => escape(literal),
                Piece::Field(field) if field == name => text.clone(),
                Piece::Field(field) => format!("{{{field}}}"),
            });
            Ok(pieces.collect())
        };
        change_texts(&mut self.source, bound)?;
        self.defaults.remove(name);
        Ok(Self::of(self.source, self.defaults))
    }

    /// That the template uses this field.
    fn used(&self, field: &str) -> Result<(), TemplateProblem> {
        let used = self.field_names();
        if used.contains(&field) {
            return Ok(());
        }
        let used = used.into_iter().map(str::to_owned).collect();
        Err(TemplateProblem::NotUsed { field: field.to_owned(), used })
    }

    /// The texts for fields that an item lacks, by field.
    pub fn defaults(&self) -> &BTreeMap<String, String> {
        &self.defaults
    }

    /// The prompt for one item.
    ///
    /// # Errors
    /// [`Error::Template`] if the item lacks a field that the template names and has no default for.
    pub fn fill(&self, item: &(impl Fields + ?Sized)) -> Result<Prompt, Error> {
        let item = &WithDefaults { item, defaults: &self.defaults };
        let (mut prompt, shown) = (self.source.clone(), self.field_names());
        change_texts(&mut prompt, |text| fill_text(text, item, &shown))?;
        Ok(prompt)
    }

    /// BLAKE3 hash (64 hexadecimal digits) of the template as JSON with sorted keys:
    /// equal templates have equal ids, wherever they were made.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The prompt with its placeholders.
    pub fn source(&self) -> &Prompt {
        &self.source
    }

    /// Names of the fields that it takes, in order of first use.
    pub fn field_names(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for (_, text) in texts(&self.source) {
            for piece in pieces(text) {
                if let Ok(Piece::Field(name)) = piece
                    && !names.contains(&name)
                {
                    names.push(name);
                }
            }
        }
        names
    }

    /// The same template with literal `text` (no placeholders; braces stand for themselves) at the very end: the opening of the reply.
    #[must_use]
    pub fn with_prefill(self, text: &str) -> Self {
        Self::of(self.source.with_prefill(&escape(text)), self.defaults)
    }

    /// The same template with literal `text` (no placeholders) that may hold control tokens, between the chat template's output and the
    /// prefill; see [`Prompt::with_trusted_prefill`].
    #[must_use]
    pub fn with_trusted_prefill(self, text: &str) -> Self {
        let source = match &self.source {
            Prompt::Raw(_) => self.source.with_trusted_prefill(&escape(text)),
            Prompt::Chat { .. } | Prompt::Whole(_) => self.source.with_trusted_prefill(text), // never filled
        };
        Self::of(source, self.defaults)
    }

    /// The same template with one variable set for the model's chat template, e.g. `enable_thinking`. Changes nothing in a raw template.
    #[must_use]
    pub fn with_template_arg(self, key: impl Into<String>, value: Value) -> Self {
        Self::of(self.source.with_template_arg(key, value), self.defaults)
    }

    /// The same text as a raw prompt, for models without a chat template: the messages' contents with a blank line between
    /// them, then the prefill after another blank line. Roles, template arguments and the trusted prefill are dropped.
    #[must_use]
    pub fn to_raw(&self) -> Self {
        match &self.source {
            Prompt::Raw(_) | Prompt::Whole(_) => self.clone(),
            Prompt::Chat { messages, prefill, .. } => {
                let mut parts: Vec<&str> = messages.iter().map(|m| m.content.as_str()).collect();
                if !prefill.is_empty() {
                    parts.push(prefill);
                }
                Self::of(Prompt::Raw(parts.join("\n\n")), self.defaults.clone())
            }
        }
    }

    /// For sources whose braces are right because they come from a valid template.
    pub(crate) fn known_good(source: Prompt) -> Self {
        Self::of(source, BTreeMap::new())
    }

    /// With the id of this content.
    fn of(source: Prompt, defaults: BTreeMap<String, String>) -> Self {
        let template = Self { source, defaults, id: String::new() };
        let json = serde_json::to_value(&template);
        let mut json = json.expect("a template is strings and JSON values, which always serialise");
        json.sort_all_objects();
        let id = blake3::hash(json.to_string().as_bytes()).to_hex().to_string();
        Self { id, ..template }
    }
}

impl TryFrom<TemplateFile> for PromptTemplate {
    type Error = Error;

    fn try_from(TemplateFile { raw, chat, defaults }: TemplateFile) -> Result<Self, Error> {
        let prompt = match (raw, chat) {
            (Some(text), None) => Prompt::Raw(text),
            (None, Some(ChatFile { messages, template_args, trusted_prefill, prefill })) => {
                let messages =
                    messages.into_iter().map(|TurnFile { role, content }| Message { role, content }).collect();
                Prompt::Chat { messages, template_args, trusted_prefill, prefill }
            }
            (Some(_), Some(_)) => return Err(TemplateProblem::NotOnePrompt { found: "both" }.into()),
            (None, None) => return Err(TemplateProblem::NotOnePrompt { found: "neither" }.into()),
        };
        defaults.into_iter().try_fold(Self::new(prompt)?, |template, (name, text)| template.with_default(name, text))
    }
}

/// An item, and what stands in for the fields that it lacks.
struct WithDefaults<'a, I: ?Sized> {
    item: &'a I,
    defaults: &'a BTreeMap<String, String>,
}

impl<I: Fields + ?Sized> Fields for WithDefaults<'_, I> {
    fn field(&self, name: &str) -> Option<Cow<'_, str>> {
        self.field_beside(name, &[])
    }

    fn field_beside(&self, name: &str, shown: &[&str]) -> Option<Cow<'_, str>> {
        // A list or an object is no text, and is not lacking either: `fill` says what it is.
        let default = || self.defaults.get(name).filter(|_| self.item.json(name).is_none());
        self.item.field_beside(name, shown).or_else(|| Some(default()?.as_str().into()))
    }

    fn json(&self, name: &str) -> Option<Cow<'_, Value>> {
        self.item.json(name)
    }

    fn names(&self) -> Vec<String> {
        self.item.names()
    }
}

enum Piece<'t> {
    Text(&'t str),
    Field(&'t str),
}

/// The pieces of a template's text in order; `Err` is the byte offset of a wrong brace and ends the sequence.
fn pieces(text: &str) -> impl Iterator<Item = Result<Piece<'_>, usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = text.get(at..).filter(|rest| !rest.is_empty())?;
        let Some(brace) = rest.find(['{', '}']) else {
            at = text.len();
            return Some(Ok(Piece::Text(rest)));
        };
        if brace > 0 {
            at += brace;
            return Some(Ok(Piece::Text(&rest[..brace])));
        }
        if rest.starts_with("{{") || rest.starts_with("}}") {
            at += 2;
            return Some(Ok(Piece::Text(&rest[..1])));
        }
        match rest.strip_prefix('{').and_then(|inner| inner.split_once('}')) {
            Some((name, _)) if is_name(name) => {
                at += name.len() + 2;
                Some(Ok(Piece::Field(name)))
            }
            _ => {
                let offset = at;
                at = text.len();
                Some(Err(offset))
            }
        }
    })
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn escape(text: &str) -> String {
    text.replace('{', "{{").replace('}', "}}")
}

/// The text with the fields of an item; `shown` are all fields of the prompt.
fn fill_text(text: &str, item: &(impl Fields + ?Sized), shown: &[&str]) -> Result<String, Error> {
    let mut filled = String::with_capacity(text.len());
    // `new` has refused every text with a wrong brace, so no piece is an error here.
    for piece in pieces(text).flatten() {
        match piece {
            Piece::Text(literal) => filled.push_str(literal),
            Piece::Field(name) => match item.field_beside(name, shown) {
                Some(value) => filled.push_str(&value),
                None => {
                    let field = name.to_owned();
                    return Err(match fields::no_text(item, name) {
                        Some(found) => TemplateProblem::NotText { field, found },
                        None => TemplateProblem::MissingField { field, available: item.names() },
                    }
                    .into());
                }
            },
        }
    }
    Ok(filled)
}

/// Changes each text in which fields are filled.
fn change_texts(prompt: &mut Prompt, change: impl Fn(&str) -> Result<String, Error>) -> Result<(), Error> {
    match prompt {
        Prompt::Raw(text) => *text = change(text)?,
        Prompt::Chat { messages, prefill, .. } => {
            for message in messages {
                message.content = change(&message.content)?;
            }
            *prefill = change(prefill)?;
        }
        Prompt::Whole(_) => {}
    }
    Ok(())
}

fn texts(prompt: &Prompt) -> Vec<(String, &str)> {
    match prompt {
        Prompt::Raw(text) => vec![("text".to_owned(), text.as_str())],
        Prompt::Chat { messages, prefill, .. } => messages
            .iter()
            .enumerate()
            .map(|(index, message)| (format!("message {index}"), message.content.as_str()))
            .chain([("prefill".to_owned(), prefill.as_str())])
            .collect(),
        Prompt::Whole(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::Scale;

    fn problem(prompt: Prompt) -> TemplateProblem {
        match PromptTemplate::new(prompt) {
            Err(Error::Template { problem }) => problem,
            other => panic!("expected a template problem, found {other:?}"),
        }
    }

    #[test]
    fn every_text_is_filled_once() {
        let source =
            Prompt::chat(vec![Message::new("system", "S {a}"), Message::user("{b}{a}{{a}}")]).with_prefill("{b}:");
        let filled = PromptTemplate::new(source).unwrap().fill(&[("a", "{b}"), ("b", "}{a{{")]).unwrap();
        let expected =
            Prompt::chat(vec![Message::new("system", "S {b}"), Message::user("}{a{{{b}{a}")]).with_prefill("}{a{{:");
        assert_eq!(filled, expected);
    }

    /// An item whose field `all` holds `part` too.
    struct Overlapping;

    impl Fields for Overlapping {
        fn field(&self, name: &str) -> Option<Cow<'_, str>> {
            self.field_beside(name, &[])
        }

        fn field_beside(&self, name: &str, shown: &[&str]) -> Option<Cow<'_, str>> {
            match name {
                "all" if shown.contains(&"part") => Some("the rest".into()),
                "all" => Some("the rest and the part".into()),
                "part" => Some("the part".into()),
                _ => None,
            }
        }
    }

    #[test]
    fn what_another_field_shows_is_shown_once() {
        let filled = |item: &dyn Fields, text: &str| {
            PromptTemplate::new(Prompt::user(text)).unwrap().with_prefill("so").fill(item).unwrap()
        };
        let (swapped, expected) = (crate::combine::Renamed::swapped(&Overlapping), Prompt::user("the part, the rest"));
        for item in [&Overlapping as &dyn Fields, &&Overlapping, &swapped] {
            assert_eq!(filled(item, "{all}"), Prompt::user("the rest and the part").with_prefill("so"));
            assert_eq!(filled(item, "{part}, {all}"), expected.clone().with_prefill("so"));
        }
    }

    #[test]
    fn wrong_braces_name_their_place() {
        let brace = |place: &str, offset| TemplateProblem::Brace { place: place.to_owned(), offset };
        assert_eq!(problem(Prompt::Raw("é {".into())), brace("text", 3));
        assert_eq!(problem(Prompt::user("a } b")), brace("message 0", 2));
        assert_eq!(problem(Prompt::user("ok").with_prefill("{1x}")), brace("prefill", 0));
        for text in ["{}", "{a b}", "{a", "{{{", "{a{b}}", "}}}"] {
            assert!(PromptTemplate::new(Prompt::Raw(text.into())).is_err(), "{text}");
        }
    }

    #[test]
    fn a_missing_field_is_named_beside_those_present() {
        let template = PromptTemplate::new(Prompt::user("{response} {rubric}")).unwrap();
        let Err(Error::Template { problem }) = template.fill(&[("response", "r"), ("notes", "n")]) else {
            panic!("a field is missing")
        };
        let available = vec!["response".to_owned(), "notes".to_owned()];
        assert_eq!(problem, TemplateProblem::MissingField { field: "rubric".into(), available });
        // An item need not say what it has.
        let silent = TemplateProblem::MissingField { field: "rubric".into(), available: Vec::new() };
        assert_eq!(silent.to_string(), "the template uses {rubric}, and the item has no field \"rubric\"");
    }

    #[test]
    fn the_id_depends_on_content_alone() {
        let args = |a: &str, b: &str| {
            let value: serde_json::Value = serde_json::from_str(&format!("{{{a}, {b}}}")).unwrap();
            PromptTemplate::new(Prompt::user("{x}")).unwrap().with_template_arg("k", value)
        };
        let one = args("\"p\": 1", "\"q\": [2]");
        assert_eq!(one.id(), args("\"q\": [2]", "\"p\": 1").id());
        assert_eq!(one.id().len(), 64);
        assert_ne!(one.id(), one.clone().with_prefill("x").id());
        assert_ne!(one.id(), PromptTemplate::new(Prompt::Raw("{x}".into())).unwrap().id());
        let copy: PromptTemplate = serde_json::from_str(&serde_json::to_string(&one).unwrap()).unwrap();
        assert_eq!(copy, one);
        assert!(serde_json::from_value::<PromptTemplate>(json!({"raw": "{"})).is_err());
        // Pinned, so that ids in saved weights keep their meaning.
        let pinned = PromptTemplate::new(Prompt::Raw("{x}".into())).unwrap();
        assert_eq!(pinned.id(), blake3::hash(br#"{"raw":"{x}"}"#).to_hex().as_str());
    }

    #[test]
    fn a_trusted_prefill_is_never_filled() {
        let template = PromptTemplate::new(Prompt::user("{x}")).unwrap();
        let trusted = template.clone().with_trusted_prefill("{x}</t>").with_prefill("{");
        let filled = trusted.fill(&[("x", "1")]).unwrap();
        assert_eq!(filled, Prompt::user("1").with_trusted_prefill("{x}</t>").with_prefill("{"));
        assert_eq!(trusted.field_names(), ["x"]);
        assert_ne!(trusted.id(), template.with_prefill("{").id());
        let raw = PromptTemplate::new(Prompt::Raw("{x}".into())).unwrap().with_trusted_prefill("{x}</t>");
        assert_eq!(raw.fill(&[("x", "1")]).unwrap(), Prompt::Raw("1{x}</t>".into()));
    }

    #[test]
    fn defaults_fill_in_for_what_an_item_lacks() {
        let plain = PromptTemplate::new(Prompt::user("{response} {rubric}")).unwrap();
        let template = plain.clone().with_default("rubric", "{Is it right?}").unwrap();
        assert_ne!(template.id(), plain.id());
        assert_eq!(template.fill(&[("response", "r")]).unwrap(), Prompt::user("r {Is it right?}"));
        assert_eq!(template.fill(&[("response", "r"), ("rubric", "R")]).unwrap(), Prompt::user("r R"));
        assert_eq!(
            template.fill(&json!({"response": "r", "rubric": null})).unwrap(),
            template.fill(&[("response", "r")]).unwrap()
        );
        for (found, words) in [(json!(["Is it red?"]), "a list"), (json!({"a": "b"}), "an object")] {
            let error = template.fill(&json!({"response": "r", "rubric": found})).unwrap_err();
            assert!(error.to_string().contains(words), "{error}");
        }
        let text = serde_json::to_string(&template.clone().with_prefill("x")).unwrap();
        let copy: PromptTemplate = serde_json::from_str(&text).unwrap();
        assert_eq!(copy, template.with_prefill("x"));
        assert!(matches!(
            plain.with_default("title", "t"),
            Err(Error::Template { problem: TemplateProblem::NotUsed { .. } })
        ));
        let short: PromptTemplate =
            serde_json::from_str(r#"{"chat": {"messages": [{"role": "user", "content": "{x}"}]}}"#).unwrap();
        assert_eq!(short, PromptTemplate::new(Prompt::user("{x}")).unwrap());
    }

    #[test]
    fn bound_texts_are_fixed_and_part_of_the_id() {
        let plain = PromptTemplate::new(Prompt::user("{{x}} {response} {rubric}").with_prefill("{rubric}:")).unwrap();
        let with_default = plain.clone().with_default("rubric", "D").unwrap();
        let bound = with_default.bind("rubric", "{x} {response}").unwrap();
        let expected = Prompt::user("{x} r {x} {response}").with_prefill("{x} {response}:");
        assert_eq!(bound.fill(&[("response", "r"), ("rubric", "R")]).unwrap(), expected);
        assert_eq!((bound.field_names(), bound.defaults().len()), (vec!["response"], 0));
        assert_ne!(bound.id(), plain.id());
        let copy: PromptTemplate = serde_json::from_str(&serde_json::to_string(&bound).unwrap()).unwrap();
        assert_eq!(copy, bound);
        let raw = PromptTemplate::new(Prompt::Raw("{a}{b}".into())).unwrap().bind("a", "}").unwrap();
        assert_eq!(raw.fill(&[("b", "2")]).unwrap(), Prompt::Raw("}2".into()));
        assert!(matches!(
            bound.bind("rubric", "again"),
            Err(Error::Template { problem: TemplateProblem::NotUsed { .. } })
        ));
    }

    #[test]
    fn raw_keeps_the_text() {
        let template =
            PromptTemplate::new(Prompt::chat(vec![Message::new("system", "s"), Message::user("{x}")])).unwrap();
        assert_eq!(template.to_raw().source(), &Prompt::Raw("s\n\n{x}".into()));
        assert_eq!(template.with_prefill("{go} ").to_raw().source(), &Prompt::Raw("s\n\n{x}\n\n{{go}} ".into()));
    }

    #[test]
    fn built_in_templates_take_three_fields_and_name_every_label() {
        let scale = Scale::integers(1, 9).unwrap();
        for template in [PromptTemplate::pointwise_direct(&scale), PromptTemplate::pointwise_reasoning(&scale)] {
            assert_eq!(template.field_names(), ["instruction", "response", "rubric"]);
            let prompt = template.fill(&[("instruction", "I!"), ("response", "R!"), ("rubric", "C!")]).unwrap();
            let Prompt::Chat { messages, .. } = prompt else { panic!("a chat") };
            let text = &messages[0].content;
            let places: Vec<usize> =
                ["I!", "R!", "C!", "1, 2, 3, 4, 5, 6, 7, 8, 9"].iter().filter_map(|s| text.find(s)).collect();
            assert_eq!(places.len(), 4);
            assert!(places.is_sorted(), "instruction, response, rubric, labels in this order: {text}");
        }
    }

    #[test]
    fn labels_with_braces_stay_literal() {
        let point = |value, label: &str| crate::scale::ScalePoint { value, label: label.to_owned() };
        let scale = Scale::new(vec![point(0.0, "{no}"), point(1.0, "}")]).unwrap();
        let template = PromptTemplate::pointwise_direct(&scale);
        assert_eq!(template.field_names(), ["instruction", "response", "rubric"]);
        assert!(PromptTemplate::new(template.source().clone()).is_ok());
    }

    proptest! {
        #[test]
        fn escaped_text_comes_back(text in "\\PC*") {
            let template = PromptTemplate::new(Prompt::Raw(escape(&text))).unwrap();
            prop_assert_eq!(template.fill(&[("a", "b")]).unwrap(), Prompt::Raw(text));
        }

        #[test]
        fn values_come_through_untouched(before in "[^{}]*", value in "\\PC*", after in "[^{}]*") {
            let template = PromptTemplate::new(Prompt::Raw(format!("{before}{{v}}{after}"))).unwrap();
            prop_assert_eq!(template.fill(&[("v", &value)]).unwrap(), Prompt::Raw(format!("{before}{value}{after}")));
        }

        #[test]
        fn any_text_is_a_template_or_an_error(text in "[a{} _1]{0,12}") {
            if let Ok(template) = PromptTemplate::new(Prompt::Raw(text)) {
                let names: Vec<String> = template.field_names().into_iter().map(str::to_owned).collect();
                let fields: std::collections::BTreeMap<String, String> = names.into_iter().map(|n| (n, "v".into())).collect();
                prop_assert!(template.fill(&fields).is_ok());
            }
        }
    }
}
