//! Rows with a score and a human score: what calibrators are fitted on.

use std::path::Path;

use anyhow::{Result, bail};
use judge_data::ScoredFile;

use crate::terminal::options::offered;
use crate::unread::Unread;

/// The scores of a file's rows that have a human score too, and the mean of what people said of each. Rows that cannot be read are told of.
///
/// # Errors
/// If the file cannot be read, or has no such row.
pub fn graded(path: &Path, score: &str, human: Option<&str>) -> Result<(Vec<f64>, Vec<f64>)> {
    let file = ScoredFile::open(path, None)?;
    let fields = file.fields(Some(score), human);
    let (mut pairs, mut scored, mut unread) = (Vec::new(), 0, Unread::default());
    for row in file.rows(&fields)? {
        let row = row?;
        let pair = row.predicted_number().and_then(|score| Ok((score, row.human_mean()?)));
        if let Ok((Some(score), human)) = pair {
            scored += 1;
            pairs.extend(human.map(|human| (score, human)));
        }
        unread.note(row.place(), pair.err());
    }
    if pairs.is_empty() {
        let file = path.display();
        if let Some((place, why)) = unread.first() {
            bail!("{file}: no row can be fitted on; the first that cannot be read is {place}: {why}");
        }
        let names = match human {
            Some(name) => name.to_owned(),
            None => ScoredFile::human_names(score).collect::<Vec<_>>().join(" or "),
        };
        let advice = offered(["; name its field with --human".to_owned()]).unwrap_or_default();
        bail!("{file}: of {scored} rows with a number in {score:?}, none has a human score in {names}{advice}");
    }
    unread.tell_that("cannot be read and are not fitted on");
    Ok(pairs.into_iter().unzip())
}
