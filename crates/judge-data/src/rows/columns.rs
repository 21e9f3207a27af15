//! Which column of a user's file holds which field: one table of names for all kinds of data set.

use std::borrow::Cow;
use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use crate::rows::row::rendered;
use crate::{Error, Extra, Field, Row};

/// The columns that are looked for, per [`Field`]: the default names, or those that a user has chosen.
///
/// Parsed from `instruction=prompt,response=completion`. A choice replaces the default names of its field; several names are given as
/// `response=output|answer` and no name as `human=`, which ignores the field; `id=` numbers the rows from 0. A column that is chosen for
/// one field is no longer looked for by the others (`prompt` and `instruction` may share one).
///
/// ```
/// use judge_data::{Columns, Field};
///
/// let columns: Columns = "human=gpt4_score,reference=answer".parse()?;
/// assert_eq!(columns.names(Field::Human).collect::<Vec<_>>(), ["gpt4_score"]);
/// assert!(!columns.names(Field::Response).any(|name| name == "answer"));
/// assert_eq!(columns.to_string(), "reference=answer,human=gpt4_score");
/// # Ok::<(), judge_data::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns {
    /// In the order of [`Field::ALL`].
    fields: Vec<Names>,
    /// Columns that records keep among their other fields, although a field is read of them.
    kept: Vec<String>,
}

/// How many rows say which columns a file has its fields in, if it has as many.
pub(crate) const HEAD: usize = 100;

/// Fields that every output has of its own.
pub(crate) const OWN: [&str; 2] = ["id", "human"];

/// The column of what an instruction is about, where both stand apart.
pub(crate) const INPUT: &str = "input";

#[derive(Clone, Debug, PartialEq, Eq)]
struct Names {
    names: Vec<Arc<str>>,
    chosen: bool,
    /// The one that a file has the field in, and the first line that has it there.
    settled: Option<(Arc<str>, usize)>,
}

impl Default for Columns {
    /// [`Field::aliases`] of every field.
    fn default() -> Self {
        let names = |field: Field| field.aliases().iter().map(|&name| Arc::from(name)).collect();
        let names = |field| Names { names: names(field), chosen: false, settled: None };
        Self { fields: Field::ALL.into_iter().map(names).collect(), kept: Vec::new() }
    }
}

impl Columns {
    /// With other names for one field, in order of preference; none: the field is not read.
    ///
    /// # Errors
    /// [`Error::ColumnsTwice`] if the field already has chosen names, or a name is chosen for another field.
    pub fn with<N: AsRef<str>>(mut self, field: Field, names: impl IntoIterator<Item = N>) -> Result<Self, Error> {
        let names: Vec<Arc<str>> = names.into_iter().map(|name| Arc::from(name.as_ref())).collect();
        if self.is_chosen(field) {
            return Err(Error::ColumnsTwice { what: "field", name: field.as_str().to_owned() });
        }
        for other in Field::ALL.into_iter().filter(|&other| other != field && !may_share(field, other)) {
            let other = &mut self.fields[other as usize];
            if other.chosen
                && let Some(name) = other.names.iter().find(|name| names.contains(name))
            {
                return Err(Error::ColumnsTwice { what: "column", name: name.to_string() });
            }
            other.names.retain(|name| !names.contains(name));
        }
        // What the prompt is called is also what an instruction called `prompt` is.
        let instruction = &mut self.fields[Field::Instruction as usize];
        if field == Field::Prompt && !instruction.chosen {
            instruction.names.retain(|name| &**name != Field::Prompt.as_str());
            let new = names.iter().filter(|name| !instruction.names.contains(name)).cloned().collect::<Vec<_>>();
            instruction.names.extend(new);
        }
        self.fields[field as usize] = Names { names, chosen: true, settled: None };
        Ok(self)
    }

    /// The same columns for a file that begins with these rows: each field that nobody chose a column for is held to the one that most of
    /// them have it in, of equally many the first of its names. Where that is `null` the row has no such field, even if another column
    /// could stand in for it: an `answer` would be graded in the place of a `response`, and nobody would notice.
    #[must_use]
    pub fn settled<'r>(&self, head: impl IntoIterator<Item = &'r Row>) -> Self {
        let head: Vec<&Row> = head.into_iter().collect();
        // Of each name that is not `null` in all rows, how many rows have it before others, and the first of their lines.
        let of_name = |names: &[Arc<str>]| {
            let holds = |name: &Arc<str>| head.iter().any(|row| row.has(name));
            let known: Vec<bool> = names.iter().map(holds).collect();
            let mut found = vec![(0, 0); names.len()];
            for row in &head {
                let has = |name: &str| row.keys().any(|key| key == name);
                if let Some(place) = (0..names.len()).find(|&place| known[place] && has(&names[place])) {
                    let (rows, line) = &mut found[place];
                    *line = if *rows == 0 { row.place().line } else { *line };
                    *rows += 1;
                }
            }
            found
        };
        let found: Vec<Vec<(usize, usize)>> = self.fields.iter().map(|of| of_name(&of.names)).collect();
        let mut settled = self.clone();
        for (names, found) in settled.fields.iter_mut().zip(found).filter(|(names, _)| !names.chosen) {
            // Of equal ones the last is taken, which is the first of the names from behind.
            let most = names.names.iter().zip(found).rev().max_by_key(|(_, (rows, _))| *rows);
            names.settled = most.filter(|(_, (rows, _))| *rows > 0).map(|(name, (_, line))| (name.clone(), line));
        }
        settled
    }

    /// The same, with columns that records keep among their other fields although a field is read of them, for an output that carries
    /// them. `id` and `human` are not kept: every output has its own.
    #[must_use]
    pub fn keeping(mut self, names: &[String]) -> Self {
        self.kept = names.iter().filter(|name| !OWN.contains(&name.as_str())).cloned().collect();
        self
    }

    /// Whether a column is kept whatever is read of it.
    pub(crate) fn keeps(&self, name: &str) -> bool {
        self.kept.iter().any(|kept| kept == name)
    }

    /// The columns that are looked for, in order of preference.
    pub fn names(&self, field: Field) -> impl Iterator<Item = &str> {
        self.fields[field as usize].names.iter().map(|name| &**name)
    }

    /// Columns of which a user has said that they are not the `id` or the `human` that they seem to be. An output has fields of its own of
    /// these names, so they are not carried; `idx` is, which no output has.
    pub fn ignored(&self) -> impl Iterator<Item = &'static str> {
        let ignored = [Field::Id, Field::Human].into_iter().filter(|&field| self.is_ignored(field));
        ignored.flat_map(Field::aliases).copied().filter(|&name| name != "idx")
    }

    /// Whether a text `input` is part of the instruction that stands beside it in `instruction`: nobody has chosen a column for the
    /// instruction, nor that one for another field.
    pub(crate) fn joins_input(&self) -> bool {
        !self.is_chosen(Field::Instruction) && !self.is_taken(INPUT)
    }

    /// Whether one of these rows has a text `input` beside its `instruction` that is not part of it, because that was chosen by name.
    pub(crate) fn leaves_input<'r>(&self, rows: impl IntoIterator<Item = &'r Row>) -> bool {
        let name = Field::Instruction.as_str();
        let is_by_name =
            self.is_chosen(Field::Instruction) && self.names(Field::Instruction).any(|chosen| chosen == name);
        let has_input = |row: &Row| row.value(INPUT).and_then(rendered).is_some_and(|text| !text.is_empty());
        is_by_name && !self.is_taken(INPUT) && rows.into_iter().any(|row| row.has(name) && has_input(row))
    }

    /// Whether a user has chosen this column for a field.
    fn is_taken(&self, name: &str) -> bool {
        self.fields.iter().any(|of| of.chosen && of.names.iter().any(|chosen| &**chosen == name))
    }

    /// With one column for a field, as a file of fixed names has it.
    pub(crate) fn held_to(mut self, field: Field, column: &str) -> Self {
        let names = &mut self.fields[field as usize];
        (names.names, names.settled) = (vec![Arc::from(column)], None);
        self
    }

    /// With more names for a field that nobody chose a column for, behind those that are looked for.
    pub(crate) fn or_also(mut self, field: Field, more: &[&str]) -> Self {
        let names = &mut self.fields[field as usize];
        if !names.chosen {
            names.names.extend(more.iter().map(|&name| Arc::from(name)));
        }
        self
    }

    pub(crate) fn is_ignored(&self, field: Field) -> bool {
        let Names { names, chosen, .. } = &self.fields[field as usize];
        *chosen && names.is_empty()
    }

    /// Whether the names of the field are not the default ones.
    pub fn is_chosen(&self, field: Field) -> bool {
        self.fields[field as usize].chosen
    }

    /// Whether the row has the field; `null` is absent.
    pub fn has(&self, row: &Row, field: Field) -> bool {
        self.names(field).any(|name| row.has(name))
    }

    /// The column of this row that holds the field, `None` if it has none that is not `null`.
    ///
    /// Of several, the first of the names that a user chose; the first also for `id`, and for the column that is called
    /// like the field itself.
    ///
    /// # Errors
    /// [`Error::AmbiguousColumns`] if default names leave a choice between columns of different content, such as `answer` and `completion`,
    /// of which either may be the reference: grading the wrong one would not show. [`Error::ColumnMoved`] for a row without the column that
    /// the field is [settled](Self::settled) in and with another that may be it.
    pub fn find(&self, row: &Row, field: Field) -> Result<Option<&str>, Error> {
        Ok(self.find_shared(row, field)?.map(|name| &**name))
    }

    pub(crate) fn find_shared(&self, row: &Row, field: Field) -> Result<Option<&Arc<str>>, Error> {
        let Names { names, chosen, settled } = &self.fields[field as usize];
        let mut present = names.iter().filter(|name| row.has(name));
        let first = match (settled, present.next()) {
            (_, None) => return Ok(None),
            (None, Some(first)) => first,
            (Some((column, _)), Some(_)) if row.has(column) => column,
            // Nothing is in its place.
            (Some((column, _)), Some(_)) if row.keys().any(|key| key == &**column) => return Ok(None),
            (Some((before, before_line)), Some(other)) => {
                return Err(Error::ColumnMoved {
                    place: row.place().clone(),
                    field,
                    column: other.to_string(),
                    before: before.to_string(),
                    before_line: *before_line,
                });
            }
        };
        let clear = *chosen || field == Field::Id || &**first == field.as_str();
        let mut others = names.iter().filter(|name| row.has(name));
        match others.find(|name| !clear && row.value(name) != row.value(first)) {
            None => Ok(Some(first)),
            Some(second) => Err(Error::AmbiguousColumns {
                place: row.place().clone(),
                field,
                first: first.to_string(),
                second: second.to_string(),
            }),
        }
    }
}

/// Columns that a user has chosen and that no row has had so far.
#[derive(Debug)]
pub(crate) struct Unseen {
    columns: Columns,
    fields: Vec<Field>,
    rows: usize,
    /// The columns of the first row.
    found: Vec<String>,
}

impl Unseen {
    pub(crate) fn new(columns: &Columns) -> Self {
        let is_named = |&field: &Field| columns.is_chosen(field) && !columns.is_ignored(field);
        let fields = Field::ALL.into_iter().filter(is_named).collect();
        Self { columns: columns.clone(), fields, rows: 0, found: Vec::new() }
    }

    pub(crate) fn see(&mut self, row: &Row) {
        if self.rows == 0 {
            self.found = row.found();
        }
        self.rows += 1;
        let is_there = |field| self.columns.names(field).any(|name| row.keys().any(|key| key == name));
        self.fields.retain(|&field| !is_there(field));
    }

    /// What is wrong with a file that has no more rows; `None` without rows.
    pub(crate) fn error(&self, path: &Path) -> Option<Error> {
        let &field = self.fields.first().filter(|_| self.rows > 0)?;
        Some(Error::NoSuchColumn {
            path: path.to_path_buf(),
            rows: self.rows,
            field,
            names: self.columns.names(field).map(str::to_owned).collect(),
            found: self.found.clone(),
        })
    }
}

fn may_share(a: Field, b: Field) -> bool {
    matches!((a, b), (Field::Prompt, Field::Instruction) | (Field::Instruction, Field::Prompt))
}

/// The chosen names in the order of [`Field::ALL`]; empty for the defaults. Parses back to the same columns.
impl fmt::Display for Columns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let chosen = Field::ALL.into_iter().filter(|&field| self.is_chosen(field));
        for (index, field) in chosen.enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{field}={}", self.names(field).collect::<Vec<_>>().join("|"))?;
        }
        Ok(())
    }
}

impl FromStr for Columns {
    type Err = Error;

    /// # Errors
    /// [`Error::Form`], [`Error::Unknown`], [`Error::ColumnsTwice`].
    fn from_str(text: &str) -> Result<Self, Error> {
        let mut columns = Self::default();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let syntax = || Error::Form { expected: "FIELD=COLUMN or FIELD=COLUMN|COLUMN", found: part.to_owned() };
            let (field, names) = part.split_once('=').ok_or_else(syntax)?;
            let (field, names) = (field.trim(), names.trim());
            let field = Error::named("field", field, Field::ALL, Field::as_str)?;
            let names: Vec<&str> = if names.is_empty() { vec![] } else { names.split('|').map(str::trim).collect() };
            if names.contains(&"") {
                return Err(syntax());
            }
            columns = columns.with(field, names)?;
        }
        Ok(columns)
    }
}

/// Which columns of a row its fields were read from; empty for a record that was made by hand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowColumns {
    read: Vec<(Field, Arc<str>)>,
    no_grade: Option<Box<str>>,
    /// Whether `input` is part of the instruction.
    pub(crate) has_input: bool,
}

impl RowColumns {
    /// The column that held the field.
    pub fn name(&self, field: Field) -> Option<&str> {
        self.iter().find(|(f, _)| *f == field).map(|(_, name)| name)
    }

    /// The field that the column held.
    pub fn field(&self, name: &str) -> Option<Field> {
        self.iter().find(|(_, n)| *n == name).map(|(field, _)| field)
    }

    /// The name of the field that the column of this name held; the name itself where it held none.
    pub(crate) fn field_named<'n>(&self, name: &'n str) -> &'n str {
        self.field(name).map_or(name, |field| field.as_str())
    }

    /// Fields and columns, in the order in which they were read.
    pub fn iter(&self) -> impl Iterator<Item = (Field, &str)> {
        self.read.iter().map(|(field, name)| (*field, &**name))
    }

    pub(crate) fn push(&mut self, field: Field, name: Arc<str>) {
        self.read.push((field, name));
    }

    /// What the instruction is about, if that stands apart in `input` among the other fields; empty is nothing.
    pub(crate) fn input<'e>(&self, extra: &'e Extra) -> Option<Cow<'e, str>> {
        extra.rendered(INPUT).filter(|text| self.has_input && !text.is_empty())
    }

    /// What stands in the place of a grade of a person's and is none, with what was expected; `None` if there is nothing of the kind.
    /// It is left out, and costs the row nothing else.
    pub fn no_grade(&self) -> Option<&str> {
        self.no_grade.as_deref()
    }

    pub(crate) fn note_no_grade(&mut self, why: String) {
        self.no_grade.get_or_insert_with(|| why.into());
    }
}
