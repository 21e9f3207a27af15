//! Two files of responses to the same prompts, an old version's and a new one's, as the pairs of one input.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use judge_core::ItemId;
use judge_data::{Dataset, DatasetFormat, DatasetOptions, Extra, Field, GradedRecord, Input, Record, Unread};
use serde_json::{Map, Value};

use judge_cli::args::files::InputArgs;
use judge_cli::missing_fields::tell_unread_that;
use judge_cli::terminal::console::{counted, tell};

/// The pairs of the rows that both files have by their ids, in the order of the new one: A is the new response, B the old one. What only one
/// file has, or what answers another prompt, is left out and said; of the others there are at most `limit`. Behind them come all `graded`
/// pairs. Also the rows that are left out, but for the limit, each id once.
pub(super) fn joined(
    old: &Path,
    args: &InputArgs,
    graded: Option<&Path>,
    limit: Option<usize>,
) -> Result<(Input, Vec<ItemId>)> {
    let mut lost = Vec::new();
    let new = read(&args.input, args, &mut lost)?;
    let before = read(old, args, &mut lost)?;
    let is_chosen = args.columns.as_ref().is_some_and(|columns| columns.is_chosen(Field::Instruction));
    let kinds = [&before, &new].map(|rows| rows.first().map(|row| kind_of(&row.id)));
    let mut known: HashMap<ItemId, GradedRecord> = before.into_iter().map(|row| (row.id.clone(), row)).collect();
    let (mut lines, mut alone, mut unlike, mut pairs) = (Vec::new(), 0_usize, Unread::default(), HashSet::new());
    for row in new {
        let Some(before) = known.remove(&row.id) else {
            alone += 1;
            continue;
        };
        let is_alike = row.asked() == before.asked();
        let why = || format!("{} has another prompt under this id than {}", args.input.display(), old.display());
        unlike.note(&row.id, (!is_alike).then(why));
        if is_alike {
            pairs.insert(row.id.clone());
            if limit.is_none_or(|limit| pairs.len() <= limit) {
                serde_json::to_writer(&mut lines, &pair(row, before, is_chosen)?)?;
                lines.push(b'\n');
            }
        }
    }
    let (old, new) = (old.display(), args.input.display());
    if alone > 0 || !known.is_empty() {
        let alone = counted(alone, "row");
        let before = counted(known.len(), "row");
        tell(format_args!("note: left out: {alone} in {new} alone, {before} in {old} alone"));
    }
    tell_unread_that(&unlike, "are left out");
    if pairs.is_empty() {
        let hint = match kinds {
            [Some(one), Some(other)] if one != other => {
                format!("; the ids of {old} are {one}, those of {new} {other}, and 7 is another id than \"7\"")
            }
            _ => String::new(),
        };
        bail!("{old} and {new} have no row in common: expected the same ids and prompts in both, and found none{hint}");
    }
    let mut name = format!("{old} and {new}");
    if let Some(path) = graded {
        for pair in graded_pairs(path)? {
            serde_json::to_writer(&mut lines, &pair)?;
            lines.push(b'\n');
        }
        name += &format!(" with {}", path.display());
    }
    let mut seen = pairs;
    lost.retain(|id| seen.insert(id.clone()));
    Ok((Input::from_reader(lines.as_slice(), PathBuf::from(name))?, lost))
}

/// What the ids of graded pairs begin with in the output, so that they are none of a version's rows.
const GRADED: &str = "graded:";

/// The pairs of a file whose better response is known.
fn graded_pairs(path: &Path) -> Result<Vec<Map<String, Value>>> {
    let input = Input::open(path)?;
    let options = DatasetOptions { format: Some(DatasetFormat::Pairs), ..DatasetOptions::default() };
    let (mut pairs, mut unread) = (Vec::new(), Unread::default());
    for record in Dataset::open(&input, &options)? {
        let record = record?;
        let (id, why) = (record.id().clone(), record.unread().map(|why| why.detail.clone()));
        let Record::Pair(pair) = record else {
            unread.note(&id, why.or_else(|| Some("it is no pair".to_owned())));
            continue;
        };
        let better = match pair.majority() {
            Some(Ordering::Greater) => "A",
            Some(Ordering::Less) => "B",
            _ => {
                unread.note(&id, Some("its \"human\" is neither \"A\" nor \"B\"".to_owned()));
                continue;
            }
        };
        unread.note(&id, None);
        let texts = [
            ("id", Some(format!("{GRADED}{id}"))),
            ("instruction", Some(pair.asked().into_owned())),
            ("response_a", Some(pair.response_a)),
            ("response_b", Some(pair.response_b)),
            ("rubric", pair.rubric),
            ("reference", pair.reference),
            ("human", Some(better.to_owned())),
        ];
        pairs.push(texts.into_iter().filter_map(|(name, text)| Some((name.to_owned(), text?.into()))).collect());
    }
    if let Some((id, why)) = unread.all() {
        bail!("--graded {}: no pair has a better response that is known; the first is {id}: {why}", path.display());
    }
    if pairs.is_empty() {
        bail!("--graded {}: expected pairs whose better response is known, found no row", path.display());
    }
    tell_unread_that(&unread, &format!("of {} are left out", path.display()));
    Ok(pairs)
}

/// The rows of a file that have a response; `ids` gets those of all rows. An id that is there twice is an error of the file.
fn read(path: &Path, args: &InputArgs, ids: &mut Vec<ItemId>) -> Result<Vec<GradedRecord>> {
    let input = judge_cli::args::files::open(path)?;
    let (mut rows, mut unread) = (Vec::new(), Unread::default());
    for record in args.records(&input, Some(DatasetFormat::Graded), None)? {
        let record = record?;
        unread.note(record.id(), record.unread().map(|why| why.detail.clone()));
        ids.push(record.id().clone());
        if let Record::Graded(row) = record {
            rows.push(row);
        }
    }
    tell_unread_that(&unread, &format!("of {} have no response, and are left out", path.display()));
    Ok(rows)
}

/// What kind of ids a file has, in words.
fn kind_of(id: &ItemId) -> &'static str {
    match id {
        ItemId::Integer(_) => "numbers",
        ItemId::Text(_) => "texts",
    }
}

fn pair(new: GradedRecord, old: GradedRecord, is_chosen: bool) -> Result<Extra> {
    // Under the name that it was found by: an `input` is part of what is asked beside an `instruction` alone.
    let asked = new.columns.name(Field::Instruction).filter(|_| !is_chosen).unwrap_or("instruction").to_owned();
    // Grades were given to one version's response and say nothing of the pair.
    let mut row = new.extra.retain(|name| !OWN.contains(&name));
    row.set("id", &new.id)?;
    for (name, text) in [
        (asked.as_str(), Some(new.instruction)),
        ("response_a", Some(new.response)),
        ("response_b", Some(old.response)),
        ("rubric", new.rubric.or(old.rubric)),
        ("reference", new.reference.or(old.reference)),
    ] {
        if let Some(text) = text {
            row.set(name, &text)?;
        }
    }
    Ok(row)
}

/// Names that the pair has itself, or that say what people said of one response.
const OWN: [&str; 9] =
    ["id", "instruction", "response_a", "response_b", "rubric", "reference", "human", "scores", "score"];
