//! Rows with what is known of them, and the chosen ones in the form that a fine-tuning tool reads.

use std::path::Path;

use anyhow::{Context, Result, bail};
use judge_cli::choice::Choice;
use judge_cli::terminal::console::usage;
use judge_data::{Columns, Error, Extra, Fate, Field, Input, Opened, Resolved, Row, Rows, Settings};
use serde_json::{Map, Value, json};

use super::example::Form;
use super::numbers::Numbers;
use super::pass::Passes;

/// The field of a row's id.
const ID: &str = "id";

/// The fields that a row gets, which the input may not have.
const ADDED: [&str; 7] = ["aspects", "variants", "likelihood", "probe", "score", "selected", "unscored"];

/// What a row lacks that cannot be read, where no model was asked about it.
pub const UNREAD: &str = "score";

/// The fields of the input that a row is written without, since it gets its own of that name: what was to be no id, or no grade.
fn left_out(columns: &Columns) -> Vec<&'static str> {
    columns.ignored().filter(|name| *name == ID || ADDED.contains(name)).collect()
}

/// Refuses an input with fields that would be overwritten, or without the one that its rows are grouped by.
///
/// # Errors
/// The first of them; whatever is wrong with a row.
pub fn check_fields(passes: &Passes<'_>, groups: Option<&str>) -> Result<()> {
    let (mut is_grouped, columns) = (false, passes.columns());
    let left_out = left_out(columns);
    // The id is that of another column.
    let is_other_id = columns.is_chosen(Field::Id) && !columns.names(Field::Id).any(|name| name == ID);
    for row in Rows::open(passes.input())?.take(passes.checked.rows) {
        let row = row?;
        is_grouped |= groups.is_some_and(|field| row.has(field));
        let is_own = |key: &str| ADDED.contains(&key) || key == ID && is_other_id && row.has(ID);
        if let Some(field) = row.keys().find(|&key| is_own(key) && !left_out.contains(&key)) {
            let clash = Error::FieldClash { field: field.to_owned() };
            return Err(clash).with_context(|| row.place().to_string());
        }
    }
    match groups {
        Some(field) if !is_grouped => Err(usage(format!("--groups {field}: no row has this field"))),
        _ => Ok(()),
    }
}

/// Writes every row of the input with what is known of it: `aspects`, `variants`, `likelihood` and `probe` as far as they were asked for,
/// `score`, `selected`, and why something is missing. Rows without an id get their place as one. `false` if that was done before.
///
/// # Errors
/// Whatever is wrong with a file.
pub fn rows(
    output: &Path,
    numbers: &Numbers<'_>,
    values: &[Option<f64>],
    choice: &Choice,
    settings: Settings,
) -> Result<bool> {
    let mut plan = numbers.passes.plan(output, settings)?;
    for path in numbers.files.paths() {
        plan.inputs.push(Input::open(path)?.identity()?);
    }
    let start = match plan.open()? {
        Opened::Complete(_) => return Ok(false),
        Opened::Ready(start) => start,
    };
    let mut run = start.begin(Resolved::default())?;
    let files = &numbers.files;
    let mut aspects = files.aspects.as_ref().map(Rows::open).transpose()?;
    let mut likelihood = files.likelihood.as_ref().map(Rows::open).transpose()?;
    let mut probe = files.probe.as_ref().map(Rows::open).transpose()?;
    let mut examples = numbers.passes.examples()?;
    let left_out = left_out(numbers.passes.columns());
    for (place, row) in Rows::open(numbers.passes.input())?.take(values.len()).enumerate() {
        let example = examples.next().context("the input has become shorter")??;
        let mut value = row?.into_extra(&left_out);
        let mut unscored: Map<String, Value> = Map::new();
        let mut take = |file: &mut Option<Rows>| -> Result<Option<Row>> {
            let Some(file) = file else { return Ok(None) };
            let row = file.next().context("a file of grades has too few rows")??;
            let why: Option<Map<String, Value>> = row.optional("unscored", "an object of reasons")?;
            unscored.extend(why.into_iter().flatten());
            Ok(Some(row))
        };
        if value.text(ID).is_none_or(|id| id == "null") {
            value.set(ID, example.record.id())?;
        }
        if let Some(graded) = take(&mut aspects)? {
            value.set("aspects", &graded.required::<Value>("aspects", "an object of numbers")?)?;
            value.set("variants", &graded.required::<Value>("variants", "an object of numbers")?)?;
        }
        for (name, file) in [("likelihood", &mut likelihood), ("probe", &mut probe)] {
            if let Some(found) = take(file)? {
                value.set(name, &found.into_extra(&[ID, "unscored"]))?;
            }
        }
        if let Some(why) = numbers.unread_by_no_model().and_then(|unread| unread.get(&place)) {
            unscored.insert(UNREAD.to_owned(), serde_json::to_value(why)?);
        }
        value.set("score", &values[place])?;
        value.set("selected", &choice.chosen[place])?;
        let reason = unscored.values().next().and_then(|why| serde_json::from_value(why["reason"].clone()).ok());
        if !unscored.is_empty() {
            value.set("unscored", &unscored)?;
        }
        if !run.is_done(place) {
            run.push(place, &value, reason.map_or(Fate::SCORED, Fate::unscored))?;
        }
    }
    run.finish()?;
    Ok(true)
}

/// Writes the chosen rows in the order of the input, in one of the forms that fine-tuning tools read.
///
/// # Errors
/// Whatever is wrong with a file.
pub fn selected(output: &Path, numbers: &Numbers<'_>, choice: &Choice, form: Form, settings: Settings) -> Result<()> {
    let mut plan = numbers.passes.plan(output, settings)?;
    plan.rows = choice.count();
    plan.settings.insert("format".to_owned(), json!(format!("{form:?}")));
    // The rows that are chosen, whatever chose them.
    let mut hasher = blake3::Hasher::new();
    for row in choice.rows() {
        hasher.update(&(row as u64).to_le_bytes());
    }
    plan.settings.insert("rows".to_owned(), json!(hasher.finalize().to_hex().to_string()));
    let start = match plan.open()? {
        Opened::Complete(_) => return Ok(()),
        Opened::Ready(start) => start,
    };
    let mut run = start.begin(Resolved::default())?;
    let input = numbers.passes.input();
    let chosen = Rows::open(input)?.zip(numbers.passes.examples()?).zip(&choice.chosen).filter(|(_, chosen)| **chosen);
    for (place, ((row, example), _)) in chosen.enumerate() {
        let (row, example) = (row?, example?);
        if run.is_done(place) {
            continue;
        }
        let Ok(said) = example.said else {
            bail!(
                "{}: the chosen row {} can no longer be read; the file has changed",
                input.path().display(),
                example.record.id()
            );
        };
        match said.to(form) {
            None => run.push(place, &row.into_extra(&[]), Fate::SCORED)?,
            Some(value) => {
                let mut fields = Extra::new();
                fields.set(ID, example.record.id())?;
                let Value::Object(of_form) = value else { continue }; // forms are objects
                for (name, value) in of_form {
                    fields.set(name, &value)?;
                }
                run.push(place, &fields, Fate::SCORED)?;
            }
        }
    }
    run.finish()?;
    Ok(())
}
