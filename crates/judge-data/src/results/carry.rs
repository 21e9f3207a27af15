use std::borrow::Cow;
use std::fmt;

use serde_json::Value;

use crate::rows::cut::CUT;
use crate::run::settings::LAGER;
use crate::{Cut, Error, Extra, ScoreRow, Settings, with_variant};

/// Which of a record's other fields are carried to the output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Carry {
    /// All of them.
    #[default]
    All,
    /// All of them, and these columns, which a field is read of.
    AllAnd(Vec<String>),
    /// These alone, also those that a field is read of.
    Only(Vec<String>),
}

impl std::str::FromStr for Carry {
    type Err = std::convert::Infallible;

    /// `all`, `none`, or names with commas between, of which one may be `all`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "none" {
            return Ok(Self::Only(Vec::new()));
        }
        let (all, names): (Vec<&str>, Vec<&str>) = text.split(',').map(str::trim).partition(|&name| name == "all");
        let names: Vec<String> = names.into_iter().map(str::to_owned).collect();
        Ok(match (all.is_empty(), names.is_empty()) {
            (true, _) => Self::Only(names),
            (false, true) => Self::All,
            (false, false) => Self::AllAnd(names),
        })
    }
}

/// As it is parsed: `all`, `none`, or names with commas between.
impl fmt::Display for Carry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::AllAnd(names) => write!(f, "all,{}", names.join(",")),
            Self::Only(names) if names.is_empty() => f.write_str("none"),
            Self::Only(names) => f.write_str(&names.join(",")),
        }
    }
}

/// The setting of a run that says what is carried.
pub(crate) const CARRY: &str = "carry";

/// Settings of an earlier run, with what is carried in the words of `now` where the earlier version of this crate wrote the same as Rust
/// shows it, and LAGER's where they say the same and leave another variant to the default.
pub(crate) fn in_words_of(now: &Settings, mut before: Settings) -> Settings {
    let lager = |settings: &Settings| with_variant(settings.clone()).remove(LAGER);
    if let Some(words) = now.get(LAGER).filter(|_| lager(now) == lager(&before)) {
        before.insert(LAGER.to_owned(), words.clone());
    }
    let Some(Value::String(words)) = now.get(CARRY) else { return before };
    let Ok(carry) = words.parse::<Carry>();
    if before.get(CARRY).is_some_and(|found| *found == format!("{carry:?}")) {
        before.insert(CARRY.to_owned(), words.as_str().into());
    }
    before
}

impl Carry {
    /// The columns that are named.
    pub fn names(&self) -> &[String] {
        match self {
            Self::All => &[],
            Self::AllAnd(names) | Self::Only(names) => names,
        }
    }

    /// The same, and what a row says of its fields that were cut.
    #[must_use]
    pub fn and_cuts(&self, cuts: &[Cut]) -> Cow<'_, Self> {
        match self {
            Self::Only(names) if !cuts.is_empty() => Cow::Owned(Self::Only([&names[..], &[CUT.to_owned()]].concat())),
            carry => Cow::Borrowed(carry),
        }
    }

    /// The fields that are carried.
    ///
    /// # Errors
    /// [`Error::FieldClash`] if a score row has a field of that name.
    pub fn of(&self, extra: Extra) -> Result<Extra, Error> {
        self.of_row(extra, &ScoreRow::KNOWN)
    }

    /// The fields that are carried to a row that has these fields of its own. A column that is carried by name and is read as the field of
    /// that name is what the row has itself.
    ///
    /// # Errors
    /// [`Error::FieldClash`] for any other field that is among them.
    pub fn of_row(&self, extra: Extra, known: &[&str]) -> Result<Extra, Error> {
        self.check(&extra, known)?;
        Ok(extra.retain(|name| self.takes(name) && !known.contains(&name)))
    }

    /// Refuses fields of which one would be carried under a name that a row has itself, for something else.
    pub(crate) fn check(&self, extra: &Extra, known: &[&str]) -> Result<(), Error> {
        let clashes = |name: &str| known.contains(&name) && self.takes(name) && extra.own(name).is_none();
        match extra.iter().find(|(name, _)| clashes(name)) {
            Some((field, _)) => Err(Error::FieldClash { field: field.to_owned() }),
            None => Ok(()),
        }
    }

    fn takes(&self, name: &str) -> bool {
        match self {
            Self::All | Self::AllAnd(_) => true,
            Self::Only(names) => names.iter().any(|wanted| wanted == name),
        }
    }
}
