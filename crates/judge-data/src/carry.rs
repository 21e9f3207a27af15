use crate::{Error, Extra, ScoreRow};

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
