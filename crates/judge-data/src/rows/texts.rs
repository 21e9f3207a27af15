//! The texts of a record, under every name that a template may use for them; and what an instruction is about, where that stands apart.

use std::borrow::Cow;

use crate::rows::columns::INPUT;
use crate::{Extra, Field, RowColumns};

/// What is asked, in one text: an instruction and below it what it is about, which Alpaca's and PandaLM's rows have apart, in `input`.
#[must_use]
pub fn with_input<'t>(instruction: &'t str, input: &str) -> Cow<'t, str> {
    if input.is_empty() { instruction.into() } else { format!("{instruction}\n\n{input}").into() }
}

pub(crate) struct Texts<'a> {
    /// The record's own names, with the text if it has one.
    own: Vec<(&'static str, Option<Cow<'a, str>>)>,
    columns: Option<&'a RowColumns>,
    extra: &'a Extra,
}

impl<'a> Texts<'a> {
    pub(crate) fn new(
        own: Vec<(&'static str, Option<&'a str>)>,
        columns: Option<&'a RowColumns>,
        extra: &'a Extra,
    ) -> Self {
        let own = own.into_iter().map(|(name, text)| (name, text.map(Cow::from))).collect();
        Self { own, columns, extra }
    }

    /// The same with a text that is put together from several.
    pub(crate) fn with(mut self, name: &'static str, text: String) -> Self {
        self.own.push((name, Some(text.into())));
        self
    }

    /// A name of the record's own goes before the name of the column that it was read from, and that before other fields. In a prompt that
    /// shows the field `input` the instruction is without it.
    pub(crate) fn field_beside(&self, name: &str, shown: &[&str]) -> Option<Cow<'a, str>> {
        let column = self.columns.and_then(|columns| columns.field(name)).map(Field::as_str);
        let own = self.own(name).or_else(|| self.own(column?));
        let text = own.cloned().or_else(|| self.extra.rendered(name))?;
        let is_joined = name == Field::Instruction.as_str() && !shown.contains(&INPUT);
        match self.columns.filter(|_| is_joined).and_then(|columns| columns.input(self.extra)) {
            Some(input) => Some(with_input(&text, &input).into_owned().into()),
            None => Some(text),
        }
    }

    fn own(&self, name: &str) -> Option<&Cow<'a, str>> {
        self.own.iter().find(|(known, _)| *known == name).and_then(|(_, text)| text.as_ref())
    }

    /// Every name that [`field_beside`](Self::field_beside) gives a text for.
    pub(crate) fn names(&self) -> Vec<String> {
        let own = self.own.iter().filter(|(_, text)| text.is_some()).map(|(name, _)| *name);
        let columns = self.columns.into_iter().flat_map(RowColumns::iter);
        let columns = columns.filter(|(field, _)| self.own(field.as_str()).is_some()).map(|(_, name)| name);
        let extra = self.extra.iter().map(|(name, _)| name).filter(|name| self.extra.rendered(name).is_some());
        let mut names: Vec<String> = Vec::new();
        for name in own.chain(columns).chain(extra) {
            if !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
        names
    }
}
