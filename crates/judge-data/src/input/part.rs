//! Some rows of a file.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use crate::Error;

/// The setting of a run that names the [`Part`] of its input that it has read.
pub const PART: &str = "part";

/// Consecutive rows of a file, written `FROM..TO`, or `FROM..TO@NUMBER`.
///
/// ```
/// use judge_data::Part;
///
/// let part: Part = "200..300".parse()?;
/// assert_eq!((part.rows.clone(), part.first_number), (200..300, 0));
/// assert_eq!("0..10@90".parse::<Part>()?.to_string(), "0..10@90");
/// # Ok::<(), judge_data::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Which rows, counted from 0.
    pub rows: Range<usize>,
    /// The number of the first row of the file, by which rows without an id are called;
    /// not 0 where files are read as if each continued the one before.
    pub first_number: usize,
}

impl Part {
    /// How many of these rows a file of `rows` rows has.
    pub fn rows_of(&self, rows: usize) -> usize {
        self.rows.end.min(rows).saturating_sub(self.rows.start)
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.rows.start, self.rows.end)?;
        if self.first_number > 0 { write!(f, "@{}", self.first_number) } else { Ok(()) }
    }
}

impl FromStr for Part {
    type Err = Error;

    /// # Errors
    /// [`Error::Form`].
    fn from_str(text: &str) -> Result<Self, Error> {
        const EXPECTED: &str = "rows FROM..TO or FROM..TO@NUMBER, FROM below TO, e.g. 200..300";
        let syntax = || Error::Form { expected: EXPECTED, found: text.to_owned() };
        let number = |text: &str| text.parse::<usize>().map_err(|_| syntax());
        let (rows, first_number) = text.split_once('@').unwrap_or((text, "0"));
        let (start, end) = rows.split_once("..").ok_or_else(syntax)?;
        let part = Self { rows: number(start)?..number(end)?, first_number: number(first_number)? };
        if part.rows.start < part.rows.end { Ok(part) } else { Err(syntax()) }
    }
}
