use std::collections::BTreeSet;

use crate::{Error, Extra, Input, ScoreRow};

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

/// The fields that are carried by name, which any of the rows must have. Show it the rows before any work.
#[derive(Debug)]
pub struct CarriedNames<'c> {
    missing: Vec<&'c str>,
    /// The first names that rows have, for a message.
    found: BTreeSet<String>,
    rows: usize,
}

impl CarriedNames<'_> {
    /// Names that a message may hold.
    const SHOWN: usize = 50;

    /// A row has these fields besides those that are judged.
    pub fn see(&mut self, extra: &Extra) {
        self.rows += 1;
        if self.missing.is_empty() {
            return;
        }
        for (name, _) in extra.iter() {
            self.missing.retain(|missing| *missing != name);
            if self.found.len() < Self::SHOWN && !self.found.contains(name) {
                self.found.insert(name.to_owned());
            }
        }
    }

    /// Whether every name was found. A part of a file may lack what its other parts have.
    ///
    /// # Errors
    /// [`Error::NotCarried`] with the first name that no row has.
    pub fn finish(self, input: &Input) -> Result<(), Error> {
        match self.missing.first().filter(|_| self.rows > 0 && input.part().is_none()) {
            Some(field) => Err(Error::NotCarried {
                path: input.path().to_path_buf(),
                rows: self.rows,
                field: (*field).to_owned(),
                found: self.found.into_iter().collect(),
            }),
            None => Ok(()),
        }
    }
}

impl Carry {
    /// The names that rows must have.
    pub fn names(&self) -> CarriedNames<'_> {
        let missing = match self {
            Self::All => Vec::new(),
            Self::Only(names) => names.iter().map(String::as_str).collect(),
        };
        CarriedNames { missing, found: BTreeSet::new(), rows: 0 }
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
        let extra = match self {
            Self::All => extra,
            Self::Only(names) => extra.retain(|name| names.iter().any(|wanted| wanted == name)),
        };
        if let Some((field, _)) = extra.iter().find(|(key, _)| known.contains(key)) {
            return Err(Error::FieldClash { field: field.to_owned() });
        }
        Ok(extra)
    }
}
