//! Rows with a score and a human score: what calibrators are fitted on.

use std::path::Path;

use anyhow::{Context, Result, bail};
use judge_core::ItemId;
use judge_core::scale::in_digits;
use judge_data::{ScoredFile, Unread};
use judge_probe::RowGroups;

use crate::args::files::open;
use crate::groups::OtherFields;
use crate::missing_fields::tell_unread_that;
use crate::terminal::console::{tell, usage};
use crate::terminal::options::offered;

/// The rows of a file that have a score and a human score.
#[derive(Default)]
pub struct Graded {
    /// Of the judge.
    pub scores: Vec<f64>,
    /// The mean of what people said of each row.
    pub human: Vec<f64>,
    /// What each row belongs to: of the field that was named, or of one that repeats as a question's number does; else of its own.
    pub clusters: Vec<String>,
    /// The field that says so.
    pub clustered_by: Option<String>,
    /// All fields of the file.
    pub fields: Vec<String>,
}

/// What to do, behind what is wrong.
fn behind(advice: Option<String>) -> String {
    advice.map_or_else(String::new, |advice| format!("; {advice}"))
}

/// The graded rows of a file. Rows that cannot be read, or whose human score is not in `range`, are told of.
///
/// # Errors
/// If the file cannot be read, or has no such row, or one that does not say what it belongs to where `cluster` names a field.
pub fn graded(
    path: &Path,
    score: &str,
    human: Option<&str>,
    cluster: Option<&str>,
    range: Option<[f64; 2]>,
) -> Result<Graded> {
    let why_off_range = |human: f64, id: Option<&ItemId>| {
        let [low, high] = range.filter(|[low, high]| !(*low..=*high).contains(&human))?;
        let of = id.map_or_else(String::new, |id| format!(" of {id}"));
        let human = in_digits(human);
        Some(format!("the human score{of} is {human}, expected one from {low} to {high}"))
    };
    let file = ScoredFile::open(open(path)?, None)?;
    let fields = file.fields(Some(score), human);
    let of_file = file.present().map(str::to_owned).collect();
    let mut graded = Graded { clustered_by: cluster.map(str::to_owned), fields: of_file, ..Graded::default() };
    let mut others = OtherFields::default();
    let read = [fields.predicted.as_deref(), fields.human.as_deref()];
    let (mut scored, mut unread, mut off_range) = (0, Unread::default(), Unread::default());
    for row in file.rows(&fields)? {
        let row = row?;
        let pair = row.predicted_number().and_then(|score| Ok((score, row.human_mean()?)));
        unread.note(row.place(), pair.as_ref().err().cloned());
        let Ok((Some(score), human)) = pair else { continue };
        scored += 1;
        let Some(human) = human else { continue };
        let why = why_off_range(human, row.id.as_ref());
        let fits = why.is_none();
        off_range.note(row.place(), why);
        if !fits {
            continue;
        }
        let own = || Some(graded.clusters.len().to_string());
        let of_field = cluster.map_or_else(own, |field| row.row.value(field).map(str::to_owned));
        let of_field = of_field.with_context(|| {
            let field = cluster.unwrap_or_default();
            format!("--cluster: the row has no {field:?}, so it is not known which rows it belongs to")
        });
        graded.clusters.push(of_field.with_context(|| row.place().to_string())?);
        let other = row.row.clone().into_extra(&[]).retain(|name| !read.contains(&Some(name)));
        others.see(other.iter());
        graded.scores.push(score);
        graded.human.push(human);
    }
    if graded.scores.is_empty() {
        let path = path.display();
        if let Some((place, why)) = unread.first().or(off_range.first()) {
            bail!("{path}: no row can be fitted on; the first that cannot is {place}: {why}");
        }
        if !file.has(score) {
            let advice = behind(offered(["name its field with --score".to_owned()]));
            bail!("{path}: no row has a score in {score:?}{advice}");
        }
        let names = match human {
            Some(name) => name.to_owned(),
            None => ScoredFile::human_names(score).collect::<Vec<_>>().join(" or "),
        };
        let advice = behind(offered(["name its field with --human".to_owned()]));
        bail!("{path}: of {scored} rows with a number in {score:?}, none has a human score in {names}{advice}");
    }
    tell_unread_that(&unread, "cannot be read and are not fitted on");
    tell_unread_that(&off_range, "with both scores are outside the range and are not fitted on");
    if cluster.is_none() {
        graded.keep_together(&others)?;
    }
    Ok(graded)
}

impl Graded {
    /// Puts rows together by a field whose values repeat as those of a question's number do. A note says so.
    fn keep_together(&mut self, others: &OtherFields) -> Result<()> {
        let advice = |what: &str| offered([format!("{what} with --cluster FIELD")]).unwrap_or_default();
        let found = others.together(RowGroups::alone(self.scores.len()), true);
        let found = found.map_err(|undecided| usage(format!("{undecided}{}", advice(": name the one that counts"))))?;
        let Some(field) = found.by.into_iter().next() else { return Ok(()) };
        let (n, rows, other) = (found.groups.n_groups(), self.scores.len(), advice("; name another field"));
        self.clusters = found.groups.group_of_row().iter().map(usize::to_string).collect();
        tell(format_args!("note: rows with the same {field:?} are in one fold, {n} groups of {rows} rows{other}"));
        self.clustered_by = Some(field);
        Ok(())
    }
}
