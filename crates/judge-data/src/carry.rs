use judge_core::Fields;

use crate::{Error, Extra, Input, Record, ScoreRow};

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

/// Says before any work what cannot be carried: a field that the output has itself, and one that no row of the input has.
#[derive(Debug)]
pub struct CarryCheck<'c> {
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
    pub fn new(carry: &'c Carry, known: &'static [&'static str]) -> Self {
        let absent = match carry {
            Carry::All => Vec::new(),
            Carry::Only(names) => names.iter().map(String::as_str).collect(),
        };
        Self { carry, known, absent, rows: 0, found: Vec::new() }
    }

    /// Takes note of a record.
    ///
    /// # Errors
    /// [`Error::FieldClash`].
    pub fn see(&mut self, record: Record) -> Result<(), Error> {
        let is_read = |name: &str| {
            let is_column = record.columns().is_some_and(|columns| columns.field(name).is_some());
            is_column || record.field(name).is_some()
        };
        self.absent.retain(|name| !is_read(name));
        self.see_fields(record.into_extra())
    }

    /// Takes note of a row by the fields that may be carried.
    ///
    /// # Errors
    /// [`Error::FieldClash`].
    pub fn see_fields(&mut self, extra: Extra) -> Result<(), Error> {
        if self.rows == 0 {
            self.found = extra.iter().map(|(name, _)| name.to_owned()).collect();
        }
        self.rows += 1;
        self.absent.retain(|name| extra.text(name).is_none());
        self.carry.of_row(extra, self.known).map(drop)
    }

    /// After the last row.
    ///
    /// # Errors
    /// [`Error::NothingToCarry`] for a field that no row had. Of a [part](Input::part) that is nothing unusual.
    pub fn finish(self, input: &Input) -> Result<(), Error> {
        match self.absent.first().filter(|_| self.rows > 0 && input.part().is_none()) {
            None => Ok(()),
            Some(&field) => Err(Error::NothingToCarry {
                path: input.path().to_path_buf(),
                rows: self.rows,
                field: field.to_owned(),
                found: self.found,
            }),
        }
    }
}
