use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeOwned, Error as _, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::rows::cell::{in_cell, list_in_cell};
use crate::{Error, Place, files::foreign};

/// One JSON object of a file, its values still in the text of the file but for white space between them, so that what is only passed
/// through stays as it was written (integers of any length, every digit of a number, the escapes of a string) and fits one line.
#[derive(Clone, Debug)]
pub struct Row {
    place: Place,
    fields: Extra,
    is_of_table: bool,
}

impl Row {
    /// `text` is one JSON value; `column` is where it starts in the line of `place`.
    pub(crate) fn parse(place: Place, column: usize, text: &str) -> Result<Self, Error> {
        if !text.trim_start().starts_with('{')
            && let Ok(value) = serde_json::from_str::<&RawValue>(text)
        {
            return Err(Error::at(&place, format!("expected an object, found {}", describe(value.get()))));
        }
        let fields: Extra = match serde_json::from_str(text) {
            Ok(fields) => fields,
            Err(source) => return Err(malformed(place, column, text, source)),
        };
        if let Some(key) = fields.repeated() {
            return Err(Error::at(&place, format!("the key {key:?} appears twice")));
        }
        Ok(Self { place, fields, is_of_table: false })
    }

    /// Notes whether it is a row of a table.
    pub(crate) fn noted(self, is_of_table: bool) -> Self {
        Self { is_of_table, ..self }
    }

    /// Whether a field is a struct of a table (Parquet), which has a field, `null` where there is nothing, for all that any row has there.
    pub(crate) fn is_struct(&self, field: &str) -> bool {
        self.is_of_table && self.value(field).is_some_and(|json| json.starts_with('{'))
    }

    /// Where the object starts.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// The names of all fields, in the order of the file.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().map(|(key, _)| key)
    }

    /// Whether there is such a field; `null` is absent.
    pub fn has(&self, field: &str) -> bool {
        self.value(field).is_some()
    }

    /// The JSON text of a field; `None` if it is absent or `null`.
    pub fn value(&self, field: &str) -> Option<&str> {
        self.fields.text(field).filter(|&text| text != "null")
    }

    /// The JSON text of a field, or of a field of the object in one, `FIELD.NAME`, at any depth; `None` if it is absent or `null`. A field
    /// that is called so as a whole goes first.
    pub(crate) fn value_at(&self, path: &str) -> Option<Cow<'_, str>> {
        if let Some(json) = self.value(path) {
            return Some(Cow::Borrowed(json));
        }
        self.fields.iter().find_map(|(name, json)| {
            let rest = path.strip_prefix(name)?.strip_prefix('.')?;
            let fields: Extra = json.starts_with('{').then(|| serde_json::from_str(json).ok())??;
            let inner = self.inner(fields).value_at(rest)?.into_owned();
            Some(Cow::Owned(inner))
        })
    }

    /// The names of all fields for an error message, those that are `null` marked.
    pub(crate) fn found(&self) -> Vec<String> {
        let name = |(key, text): (&str, &str)| if text == "null" { format!("{key} (null)") } else { key.to_owned() };
        self.fields.iter().map(name).collect()
    }

    /// The same row with the fields of the object in one of its fields besides, each called `FIELD.NAME`, unless it has such a field.
    pub(crate) fn with_inner(&self, field: &str) -> Cow<'_, Self> {
        let inner = self.value(field).and_then(|json| serde_json::from_str::<Extra>(json).ok());
        let Some(inner) = inner else { return Cow::Borrowed(self) };
        let mut flat = self.clone();
        for (name, value) in inner.0 {
            let name = format!("{field}.{name}");
            if flat.fields.text(&name).is_none() {
                flat.fields.0.push((name, value));
            }
        }
        Cow::Owned(flat)
    }

    /// The error for a table that is written by columns, as pandas does unless told otherwise; `None` for any other row.
    pub(crate) fn orientation(&self) -> Option<Error> {
        const BY_COLUMNS: &str = "the table is written by columns, expected one object per row; in pandas: to_json(path, orient=\"records\", lines=True)";
        table_by_columns(&self.fields).then(|| Error::at(&self.place, BY_COLUMNS))
    }

    /// The value of a field that must be there and not `null`. `expected` says in words what `T` reads, e.g. `a string`.
    ///
    /// # Errors
    /// [`Error::MissingField`], or [`Error::WrongType`] if `T` does not read it.
    pub fn required<T: DeserializeOwned>(&self, field: &'static str, expected: &'static str) -> Result<T, Error> {
        match self.value(field) {
            Some(text) => self.read(field, expected, text),
            None => Err(self.missing(field)),
        }
    }

    /// The value of a field that may be absent or `null`.
    ///
    /// # Errors
    /// [`Error::WrongType`] if `T` does not read what is there.
    pub fn optional<T: DeserializeOwned>(
        &self,
        field: &'static str,
        expected: &'static str,
    ) -> Result<Option<T>, Error> {
        self.value(field).map(|text| self.read(field, expected, text)).transpose()
    }

    /// The list in a field that may be absent or `null`; a text may hold it, as a table's cell does.
    ///
    /// # Errors
    /// As [`optional`](Self::optional).
    pub fn list<T: DeserializeOwned>(
        &self,
        field: &'static str,
        expected: &'static str,
    ) -> Result<Option<Vec<T>>, Error> {
        self.value(field).map(|text| self.read(field, expected, &list_in_cell(text))).transpose()
    }

    /// A field that holds text.
    ///
    /// # Errors
    /// As [`required`](Self::required).
    pub fn string(&self, field: &'static str) -> Result<String, Error> {
        self.required(field, "a string")
    }

    /// All fields but those named.
    pub fn into_extra(self, known: &[&str]) -> Extra {
        self.into_extra_where(|key, _| !known.contains(&key))
    }

    /// The fields of which `keep` says so, given name and JSON text.
    pub(crate) fn into_extra_where(self, keep: impl Fn(&str, &str) -> bool) -> Extra {
        Extra(self.fields.0.into_iter().filter(|(key, value)| keep(key, value.get())).collect())
    }

    /// The error for a field that is not there.
    pub(crate) fn missing(&self, field: &'static str) -> Error {
        let (place, names) = (self.place.clone(), vec![field.to_owned()]);
        Error::MissingField { place, field: None, names, found: self.found() }
    }

    /// The error for a field whose value is of the right JSON type but not usable.
    pub(crate) fn wrong(&self, field: &'static str, expected: &'static str) -> Error {
        let (place, column) = (self.place.clone(), field.to_owned());
        let found = self.fields.text(field).map_or_else(|| "nothing".into(), describe);
        Error::WrongType { place, field: None, column, expected, found }
    }

    /// An object inside this row as a row of its own, at the same place.
    pub(crate) fn inner(&self, fields: Extra) -> Self {
        Self { place: self.place.clone(), fields, is_of_table: self.is_of_table }
    }

    fn read<T: DeserializeOwned>(&self, field: &'static str, expected: &'static str, text: &str) -> Result<T, Error> {
        serde_json::from_str(text).map_err(|_| self.wrong(field, expected))
    }
}

/// A parser's complaint about `text`, which starts at `place`, `column`.
fn malformed(place: Place, column: usize, text: &str, source: serde_json::Error) -> Error {
    let (number, index) = (source.line().max(1), source.column().saturating_sub(1));
    let error = Error::malformed(place, column, source);
    let Error::Malformed { place, .. } = &error else { return error };
    let line = text.split('\n').nth(number - 1).unwrap_or_default();
    let first_column = if number == 1 { column } else { 1 };
    foreign::not_a_number(line, index, place, first_column).unwrap_or(error)
}

/// Further fields of a row, kept as the file has them, without white space outside of strings, and in its order.
#[derive(Clone, Debug, Default)]
pub struct Extra(Vec<(String, Compact)>);

/// A value's JSON text without white space outside of strings: it fits one line, wherever it is written.
#[derive(Clone, Debug)]
struct Compact {
    json: Box<RawValue>,
    /// Whether a field is read of it too: that may be cut before a judge sees it, and this stays as it is.
    is_read: bool,
    /// Whether it is the column of the field of its name, which is read of it, or of none where it is `null`.
    is_own: bool,
}

impl Compact {
    fn new(value: Box<RawValue>) -> Result<Self, serde_json::Error> {
        const SPACE: [char; 4] = [' ', '\t', '\r', '\n'];
        let text = value.get();
        if !text.starts_with(['[', '{']) || !text.contains(SPACE) {
            return Ok(Self { json: value, is_read: false, is_own: false });
        }
        let (mut compact, mut in_string, mut escaped) = (String::with_capacity(text.len()), false, false);
        for c in text.chars() {
            if in_string {
                in_string = escaped || c != '"';
                escaped = !escaped && c == '\\';
            } else if SPACE.contains(&c) {
                continue;
            } else {
                in_string = c == '"';
            }
            compact.push(c);
        }
        RawValue::from_string(compact).map(|json| Self { json, is_read: false, is_own: false })
    }

    fn get(&self) -> &str {
        self.json.get()
    }
}

impl<'de> Deserialize<'de> for Compact {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(Box::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl Extra {
    /// No fields.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a field, or replaces the one of this name.
    ///
    /// # Errors
    /// [`Error::Serialize`] if `value` has no JSON form (a map whose keys are not text).
    pub fn set<T: Serialize + ?Sized>(&mut self, key: impl Into<String>, value: &T) -> Result<(), Error> {
        let value = serde_json::value::to_raw_value(value).and_then(Compact::new).map_err(Error::serialize)?;
        let key = key.into();
        match self.0.iter_mut().find(|(k, _)| *k == key) {
            Some((_, old)) => *old = value,
            None => self.0.push((key, value)),
        }
        Ok(())
    }

    /// The first name that was there before.
    pub(crate) fn repeated(&self) -> Option<&str> {
        let mut seen = HashSet::with_capacity(self.0.len());
        self.iter().map(|(name, _)| name).find(|name| !seen.insert(*name))
    }

    /// Notes that fields are read of some columns too, and which are those of the fields of their names.
    pub(crate) fn note_read(&mut self, is_read: impl Fn(&str) -> bool, is_own: impl Fn(&str) -> bool) {
        for (key, value) in &mut self.0 {
            value.is_read |= is_read(key);
            value.is_own |= is_own(key);
        }
    }

    /// The JSON text of a column that is that of the field of its name too.
    pub(crate) fn own(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(name, value)| name == key && value.is_own).map(|(_, value)| value.get())
    }

    /// Changes the text of a field, if it is one and nothing else is read of it.
    pub(crate) fn edit(&mut self, key: &str, change: &mut dyn FnMut(&mut String)) {
        let is_read = self.0.iter().any(|(name, value)| name == key && value.is_read);
        if let Some(mut text) = self.string(key).filter(|_| !is_read) {
            change(&mut text);
            // A text has a JSON form.
            let _ = self.set(key, &text);
        }
    }

    /// The fields of which `keep` says so, by name.
    #[must_use]
    pub fn retain(self, keep: impl Fn(&str) -> bool) -> Self {
        Self(self.0.into_iter().filter(|(key, _)| keep(key)).collect())
    }

    /// A field's JSON text; `None` if there is none of this name.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(k, _)| k == key).map(|(_, value)| value.get())
    }

    /// A field's JSON text, or the JSON that its text holds: a cell of a table has lists and objects so.
    pub fn of_cell(&self, key: &str) -> Option<Cow<'_, str>> {
        self.text(key).map(in_cell)
    }

    /// A field's value if it is a string.
    pub fn string(&self, key: &str) -> Option<String> {
        serde_json::from_str(self.text(key)?).ok()
    }

    /// A field's value if it is a list or an object.
    pub fn json(&self, key: &str) -> Option<serde_json::Value> {
        let value: serde_json::Value = serde_json::from_str(self.text(key)?).ok()?;
        (value.is_array() || value.is_object()).then_some(value)
    }

    /// A field's value as a template shows it: a string's content, a number or boolean as the file has it. `None` for
    /// `null`, a list or an object, and if there is none of this name.
    pub fn rendered(&self, key: &str) -> Option<Cow<'_, str>> {
        rendered(self.text(key)?)
    }

    pub(crate) fn raw(&self) -> impl Iterator<Item = (&str, &RawValue)> {
        self.0.iter().map(|(key, value)| (key.as_str(), &*value.json))
    }

    /// Names and JSON texts.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.get()))
    }

    /// Number of fields.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if there are no fields.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Equal if names, texts and order are.
impl PartialEq for Extra {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Serialize for Extra {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            map.serialize_entry(key, &value.json)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Extra {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Extra;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Extra, A::Error> {
                let mut fields = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    fields.push(entry);
                }
                Ok(Extra(fields))
            }
        }
        deserializer.deserialize_map(Fields)
    }
}

/// A string's content, a number or boolean as it is written; `None` for anything else.
pub(crate) fn rendered(json: &str) -> Option<Cow<'_, str>> {
    match json.as_bytes().first()? {
        b'"' => serde_json::from_str::<String>(json).ok().map(Cow::from),
        b'-' | b'0'..=b'9' | b't' | b'f' => Some(json.into()),
        _ => None,
    }
}

/// Whether every value is an object and all have the same keys, or the keys are those of pandas' orientation `split`.
fn table_by_columns(fields: &Extra) -> bool {
    let names: Vec<&str> = fields.iter().map(|(name, _)| name).collect();
    if names.len() < 2 {
        return false;
    }
    if names.len() == 3 && ["columns", "index", "data"].iter().all(|name| names.contains(name)) {
        return true;
    }
    let keys = |json: &str| {
        let column: Extra = serde_json::from_str(json).ok()?;
        Some(column.0.into_iter().map(|(key, _)| key).collect::<Vec<_>>())
    };
    let mut columns = fields.iter().map(|(_, json)| keys(json));
    match columns.next().flatten() {
        Some(first) if !first.is_empty() => columns.all(|column| column.as_ref() == Some(&first)),
        _ => false,
    }
}

/// A JSON value in a few words: its type, and what of it fits.
pub(crate) fn describe(json: &str) -> String {
    const SHOWN: usize = 40;
    let kind = match json.trim_start().as_bytes().first() {
        // JSON can write half of a character of UTF-16, which no text has.
        Some(b'"') if serde_json::from_str::<String>(json).is_err() => "a lone surrogate in string ",
        Some(b'"') => "string ",
        Some(b'[') => "list ",
        Some(b'{') => "object ",
        Some(b'-' | b'0'..=b'9') => "number ",
        _ => "", // null, true, false: they say it themselves
    };
    let mut shown: String = json.chars().take(SHOWN).collect();
    if shown.len() < json.len() {
        shown.push('…');
    }
    format!("{kind}{shown}")
}
