use std::borrow::Cow;
use std::path::Path;

use crate::cut::CUT;
use crate::{Cut, Error, Extra, RowItem, ScoreRow};

/// Which of a record's other fields are carried to the output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Carry {
    /// All of them.
    #[default]
    All,
    /// These alone.
    Only(Vec<String>),
}

impl std::str::FromStr for Carry {
    type Err = std::convert::Infallible;

    /// `all`, `none`, or names with commas between.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "all" => Self::All,
            "none" => Self::Only(Vec::new()),
            names => Self::Only(names.split(',').map(|name| name.trim().to_owned()).collect()),
        })
    }
}

impl Carry {
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

    /// The fields that are carried to a row that has these fields of its own.
    ///
    /// # Errors
    /// [`Error::FieldClash`] for a field that is among them.
    pub fn of_row(&self, extra: Extra, known: &[&str]) -> Result<Extra, Error> {
        self.check(&extra, known)?;
        Ok(match self {
            Self::All => extra,
            Self::Only(_) => extra.retain(|name| self.takes(name)),
        })
    }

    /// Refuses fields of which one would be carried under a name that a row has itself.
    fn check(&self, extra: &Extra, known: &[&str]) -> Result<(), Error> {
        match extra.iter().find(|(name, _)| known.contains(name) && self.takes(name)) {
            Some((field, _)) => Err(Error::FieldClash { field: field.to_owned() }),
            None => Ok(()),
        }
    }

    fn takes(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(names) => names.iter().any(|wanted| wanted == name),
        }
    }
}

/// Says before any work what cannot be carried: a field that the output has itself, and one that no row of the input has.
#[derive(Debug)]
pub(crate) struct CarryCheck<'c> {
    carry: &'c Carry,
    /// The fields of the output's own.
    known: &'static [&'static str],
    /// Those of the names that no row has had so far.
    absent: Vec<&'c str>,
    rows: usize,
    /// The fields of the first row that can be carried.
    found: Vec<String>,
}

impl<'c> CarryCheck<'c> {
    /// For an output whose rows have these fields of their own.
    pub(crate) fn new(carry: &'c Carry, known: &'static [&'static str]) -> Self {
        let absent = match carry {
            Carry::All => Vec::new(),
            Carry::Only(names) => names.iter().map(String::as_str).collect(),
        };
        Self { carry, known, absent, rows: 0, found: Vec::new() }
    }

    /// Takes note of a row.
    ///
    /// # Errors
    /// [`Error::FieldClash`].
    pub(crate) fn see(&mut self, item: &impl RowItem) -> Result<(), Error> {
        self.absent.retain(|name| !item.has_field(name));
        if let Some(extra) = item.extra() {
            if self.rows == 0 {
                self.found = extra.iter().map(|(name, _)| name.to_owned()).collect();
            }
            self.carry.check(extra, self.known)?;
        }
        self.rows += 1;
        Ok(())
    }

    /// After the last row.
    ///
    /// # Errors
    /// [`Error::NothingToCarry`] for a field that no row had. Of a part of a file that is nothing unusual.
    pub(crate) fn finish(self, path: &Path, is_part: bool) -> Result<(), Error> {
        match self.absent.first().filter(|_| self.rows > 0 && !is_part) {
            None => Ok(()),
            Some(&field) => Err(Error::NothingToCarry {
                path: path.to_path_buf(),
                rows: self.rows,
                field: field.to_owned(),
                found: self.found,
            }),
        }
    }
}
