//! Which rows belong together where no option says so: those whose texts are nearly equal, and those with the same value in a
//! column that repeats.
//!
//! Texts are compared by `judge_probe::RowGroups`. Here are the columns, and what is done where they contradict each other.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use judge_data::Row;
use judge_probe::RowGroups;

/// The other fields of rows, as far as they can say which rows belong together.
#[derive(Default)]
pub struct OtherFields {
    rows: usize,
    columns: BTreeMap<String, Column>,
}

/// Values as hashes, each with its row; there is none of a row without one.
#[derive(Default)]
struct Column {
    values: Vec<(usize, u64)>,
    /// A value that names nothing: a list, an object, a boolean, a number under a name that is not an identifier's.
    is_odd: bool,
}

/// Rows that belong together.
pub struct Together {
    /// Which rows.
    pub groups: RowGroups,
    /// The columns that say so too.
    pub by: Vec<String>,
}

/// Fields that may say which rows belong together, and contradict each other: names, each with its number of values.
#[derive(Debug)]
pub struct Undecided(pub Vec<(String, usize)>);

impl fmt::Display for Undecided {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields: Vec<String> = self.0.iter().map(|(name, n)| format!("{name:?} ({n} values)")).collect();
        write!(f, "the values of {} repeat, and each would put other rows together", fields.join(" and "))
    }
}

impl OtherFields {
    /// Takes note of the next row's fields, by their JSON texts.
    pub fn see<'a>(&mut self, fields: impl IntoIterator<Item = (&'a str, &'a str)>) {
        for (name, json) in fields {
            let column = self.columns.entry(name.to_owned()).or_default();
            let is_whole = || json.trim_start_matches('-').bytes().all(|byte| byte.is_ascii_digit());
            match json {
                "null" => continue,
                _ if json.starts_with('"') || (is_whole() && is_identifier(name)) => {}
                _ => column.is_odd = true,
            }
            let mut hasher = DefaultHasher::new();
            json.hash(&mut hasher);
            column.values.push((self.rows, hasher.finish()));
        }
        self.rows += 1;
    }

    /// The same of a row's fields whose names are identifiers', but for `id` and its `own`: those that [`repeated`](Self::repeated) looks at.
    pub fn see_identifiers(&mut self, row: &Row, own: &[&str]) {
        let names = row.keys().filter(|name| is_identifier(name) && *name != "id" && !own.contains(name));
        self.see(names.filter_map(|name| Some((name, row.value(name)?))));
    }

    /// Rows that belong together, of those whose texts do by `texts`.
    ///
    /// Where half of the rows share their text with others, columns can only confirm that: one whose values differ within the texts' groups
    /// is about something else, such as the model that answered. Otherwise a column decides: one whose values repeat, of several the
    /// finest if the others are constant within its values. A column of few rows, of three values at most or of one that a third
    /// of the rows has sorts rows and names none. `identifiers_only` is for rows whose question is known.
    pub fn together(&self, texts: RowGroups, identifiers_only: bool) -> Result<Together, Undecided> {
        let mut found = Together { groups: texts, by: Vec::new() };
        let shared = found.groups.n_shared();
        let mut columns: Vec<(&String, usize, Vec<Option<u64>>)> = Vec::new();
        for (name, column) in &self.columns {
            if !column.is_odd && (is_identifier(name) || !identifiers_only) {
                columns
                    .extend(column.values_if_they_repeat(self.rows, is_identifier(name)).map(|(n, of)| (name, n, of)));
            }
        }
        if 2 * shared >= self.rows {
            let first = found.groups.group_of_row();
            let n_groups = found.groups.n_groups();
            columns.retain(|(_, n, of)| {
                let others = || first.iter().enumerate().filter(|&(row, &first)| row != first);
                let alike = others().filter(|&(row, &first)| of[row] == of[first]).count();
                2 * n >= n_groups && 10 * alike >= 9 * others().count()
            });
        } else {
            columns.sort_by(|(one, n, _), (other, m, _)| m.cmp(n).then(one.cmp(other)));
            if let Some(((_, _, finest), others)) = columns.split_first()
                && !others.iter().all(|(_, _, of)| is_constant_within(of, finest))
            {
                return Err(Undecided(columns.into_iter().map(|(name, n, _)| (name.clone(), n)).collect()));
            }
            columns.truncate(1);
        }
        for (name, _, of) in columns {
            found.groups.join(of);
            found.by.push(name.clone());
        }
        Ok(found)
    }

    /// The field that names what rows belong together, if one seems to, and what that means for intervals that take rows as independent.
    #[must_use]
    pub fn repeated(&self) -> Option<(String, String)> {
        let found = self.together(RowGroups::alone(self.rows), true).ok()?;
        let (field, rows, n) = (found.by.into_iter().next()?, self.rows, found.groups.n_groups());
        let sentence = format!(
            "{rows} rows have {n} values of {field:?}; if rows with one of them are of one question, intervals are too narrow"
        );
        Some((field, sentence))
    }
}

impl Column {
    /// How many values there are and which each row has, if they repeat as those of a group do.
    fn values_if_they_repeat(&self, rows: usize, is_identifier: bool) -> Option<(usize, Vec<Option<u64>>)> {
        let mut counts: HashMap<u64, usize> = HashMap::new();
        self.values.iter().for_each(|&(_, value)| *counts.entry(value).or_default() += 1);
        let shared: usize = counts.values().filter(|&&count| count > 1).sum();
        let largest = counts.values().copied().max().unwrap_or(0);
        let enough = if is_identifier { shared > 0 } else { 2 * shared >= rows };
        let mut of_row = vec![None; rows];
        self.values.iter().for_each(|&(row, value)| of_row[row] = Some(value));
        (enough && counts.len() > 3 && 3 * largest <= rows).then_some((counts.len(), of_row))
    }
}

/// Whether rows with one value of `finest` have one value here.
fn is_constant_within(of: &[Option<u64>], finest: &[Option<u64>]) -> bool {
    let mut first: HashMap<u64, Option<u64>> = HashMap::new();
    finest.iter().zip(of).all(|(finest, of)| finest.is_none_or(|finest| first.entry(finest).or_insert(*of) == of))
}

/// Whether a field of this name tells things apart: `idx`, `question_id`, `docId`, `group`, `question`.
fn is_identifier(name: &str) -> bool {
    let last = name.rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    let known =
        ["id", "idx", "index", "key", "group", "qid", "pid", "uid", "uuid", "question", "prompt", "instruction"];
    known.contains(&last.to_lowercase().as_str()) || ["Id", "ID", "Idx"].iter().any(|end| last.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(rows: usize, of_row: impl Fn(usize) -> Vec<(&'static str, String)>) -> OtherFields {
        let mut fields = OtherFields::default();
        for row in 0..rows {
            let of = of_row(row);
            fields.see(of.iter().map(|(name, json)| (*name, json.as_str())));
        }
        fields
    }

    #[test]
    fn a_column_that_repeats_groups_rows() {
        let of = fields(60, |row| {
            let topic = format!("\"topic {}\"", row / 12);
            vec![
                ("idx", (row / 3).to_string()),
                ("topic", topic),
                ("length", (row % 20).to_string()),
                ("good", "true".into()),
            ]
        });
        let found = of.together(RowGroups::alone(60), false).ok().unwrap();
        assert_eq!((found.by, found.groups.n_groups()), (vec!["idx".to_owned()], 20));
        // One that is null is nobody's.
        let of = fields(60, |row| vec![("idx", if row % 3 == 0 { "null".into() } else { (row / 3).to_string() })]);
        assert_eq!(of.together(RowGroups::alone(60), true).ok().unwrap().groups.n_groups(), 40);
    }

    #[test]
    fn what_sorts_rows_or_is_different_in_each_groups_none() {
        let of = fields(60, |row| {
            vec![
                ("model", format!("\"m{}\"", row % 3)),
                ("note", format!("\"{row}\"")),
                ("words", (row % 25).to_string()),
            ]
        });
        let found = of.together(RowGroups::alone(60), false).ok().unwrap();
        assert!(found.by.is_empty() && found.groups.n_groups() == 60);
        // Of rows whose question is known, only an identifier counts.
        let of = fields(60, |row| vec![("topic", format!("\"t{}\"", row % 10))]);
        assert!(of.together(RowGroups::alone(60), true).ok().unwrap().by.is_empty());
        assert_eq!(of.together(RowGroups::alone(60), false).ok().unwrap().groups.n_groups(), 10);
    }

    #[test]
    fn columns_that_contradict_each_other_are_asked_about_unless_texts_decide() {
        let of = fields(80, |row| vec![("asked", format!("\"q{}\"", row / 8)), ("model", format!("\"m{}\"", row % 8))]);
        let Err(Undecided(names)) = of.together(RowGroups::alone(80), false) else { panic!("decided") };
        assert_eq!(names, [("asked".to_owned(), 10), ("model".to_owned(), 8)]);
        let mut texts = RowGroups::alone(80);
        texts.join((0..80).map(|row| Some(row / 8)));
        let found = of.together(texts, false).ok().unwrap();
        assert_eq!(found.by, ["asked"]);
        assert_eq!(found.groups.n_groups(), 10);
    }
}
