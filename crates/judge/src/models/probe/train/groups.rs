//! Keeps rows that belong together on one side of every split, where no option says which they are.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use judge_cli::groups::Together;
use judge_cli::terminal::console::{tell, usage};
use judge_probe::RowGroups;
use judge_probe::training::{GradedRow, ProbeTraining};
use serde::Serialize;

use super::rows::Data;

/// How the rows of an aspect were found to belong together.
#[derive(Serialize)]
pub struct Found {
    /// What says so, in words.
    pub by: Vec<String>,
    /// How many groups there are.
    pub n_groups: usize,
    /// Rows that share their group with others.
    pub n_shared: usize,
    /// Rows of the largest group.
    pub largest: usize,
}

/// Finds which rows of each aspect belong together besides those with one question, and puts them into one group. One note says so.
///
/// # Errors
/// A usage error where fields contradict each other, or there are too few groups to cut.
pub fn keep_together(data: &mut Data, training: &ProbeTraining) -> Result<BTreeMap<String, Found>> {
    let mut found = BTreeMap::new();
    for (aspect, rows) in &mut data.rows {
        let questions = rows.iter().map(|row| Some(row.question.as_str()).filter(|text| !text.is_empty()));
        let asked: Vec<_> = questions.zip(rows.iter().map(|row| Some(row.response.as_str()))).collect();
        let mut own = RowGroups::alone(rows.len());
        own.join(rows.iter().map(|row| Some(row.group.as_str())));
        let mut texts = RowGroups::of_questions_and_prompts(&asked);
        texts.join(rows.iter().map(|row| Some(row.group.as_str())));
        let by_text = texts.n_groups() < own.n_groups();

        let all_known = asked.iter().all(|(question, _)| question.is_some());
        let fields = data.other_fields.remove(aspect).unwrap_or_default();
        let (groups, mut by): (RowGroups, Vec<String>) = match fields.together(texts.clone(), all_known) {
            Ok(Together { groups, by }) => (groups, by.iter().map(|name| format!("the field {name:?}")).collect()),
            Err(undecided) if all_known => {
                tell(format_args!(
                    "note: aspect {aspect:?}: {undecided}; rows with the same question are kept together"
                ));
                (texts, Vec::new())
            }
            Err(undecided) => {
                return Err(usage(format!(
                    "aspect {aspect:?}: {undecided}: name the field whose rows must stay on one side of every split with --group FIELD, or \
                     give --ungrouped if there is none"
                )));
            }
        };
        if groups.n_groups() == own.n_groups() {
            continue;
        }
        if by_text {
            by.insert(0, "equal or nearly equal texts".to_owned());
        }
        let (n, n_groups, n_shared) = (rows.len(), groups.n_groups(), groups.n_shared());
        let first = groups.group_of_row();
        let names: Vec<String> = first.iter().map(|&first| rows[first].group.clone()).collect();
        rows.iter_mut().zip(names).for_each(|(row, name)| row.group = name);
        let together = format!(
            "aspect {aspect:?}: {n_shared} of {n} rows belong together in {n_groups} groups, by {}",
            by.join(" and ")
        );
        if let Some(to_learn) = groups_to_learn(rows, training).filter(|&to_learn| to_learn < training.folds) {
            return Err(usage(format!(
                "{together}; {to_learn} to learn from are too few for {} folds: name the field whose rows must stay on one side of every \
                 split with --group FIELD, ask for fewer --folds, or give --ungrouped to part them",
                training.folds
            )));
        }
        tell(format_args!(
            "note: {together}; each group stays on one side of every split (--group FIELD names another, --ungrouped parts them)"
        ));
        found.insert(aspect.clone(), Found { by, n_groups, n_shared, largest: groups.largest() });
    }
    Ok(found)
}

/// How many groups there are to learn from, of which each fold needs one; `None` where rows name their splits and none is trained on, which
/// the training itself refuses.
fn groups_to_learn(rows: &[GradedRow], training: &ProbeTraining) -> Option<usize> {
    let distinct =
        |rows: &mut dyn Iterator<Item = &GradedRow>| rows.map(|row| row.group.as_str()).collect::<BTreeSet<_>>().len();
    if rows.iter().any(|row| row.split.is_some()) {
        let trained = distinct(&mut rows.iter().filter(|row| row.split.as_deref() == Some("train")));
        return (trained > 0).then_some(trained);
    }
    let n = distinct(&mut rows.iter());
    Some(n - (training.test_share * n as f64).ceil() as usize)
}
