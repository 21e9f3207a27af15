//! What is drawn: which rows are graded, in which order each rater sees them, and on which side each response of a pair is.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use judge_core::ItemId;
use judge_data::{Grade, GradingRecord, ScoredFile};
use judge_metrics::sampling::{Drawn, draw_alike, draw_by_strata};

use judge_cli::args::files::open;
use judge_cli::ids::alike;
use judge_cli::terminal::console::tell;

/// Which of the rows are graded: `draws` of them, or all; by strata of the scores where there are any.
pub(super) fn draw(rows: &[GradingRecord], draws: Option<usize>, scores: &[PathBuf], seed: u64) -> Result<Vec<Drawn>> {
    let draws = draws.unwrap_or(rows.len());
    if scores.is_empty() {
        return Ok(draw_alike(rows.len(), draws, seed));
    }
    let of_judges = scores.iter().map(|path| Judged::read(path, rows)).collect::<Result<Vec<_>>>()?;
    let value = |row: &GradingRecord| {
        let mut said = of_judges.iter().map(|judged| judged.grades.get(&row.id));
        match (said.next().flatten(), said.next()) {
            (first, None) => first.map(|grade| of_judges[0].number(grade)),
            (Some(first), Some(Some(second))) => Some(match (first.number(), second.number()) {
                (Some(first), Some(second)) => (first - second).abs(),
                _ => f64::from(u8::from(first != second)),
            }),
            _ => None,
        }
    };
    let values: Vec<Option<f64>> = rows.iter().map(value).collect();
    let without = values.iter().filter(|value| value.is_none()).count();
    if without == rows.len() {
        let files: Vec<String> = scores.iter().map(|path| path.display().to_string()).collect();
        bail!("no row has a score in {}: expected the same `id` in the input and there", files.join(" and in "));
    }
    if without > 0 {
        tell(format_args!(
            "note: {without} of {} rows have no score and are drawn as a group of their own",
            rows.len()
        ));
    }
    Ok(draw_by_strata(&values, draws, seed)?)
}

/// What a judge said of rows.
struct Judged {
    grades: HashMap<ItemId, Grade>,
    /// The labels that are no numbers, in alphabetical order.
    labels: Vec<String>,
}

impl Judged {
    fn read(path: &Path, of: &[GradingRecord]) -> Result<Self> {
        let file = ScoredFile::open(open(path)?, None)?.with_unique_ids()?;
        let fields = file.fields(None, Some(""));
        if fields.predicted.is_none() {
            let (looked, found) =
                (ScoredFile::predicted_names().join(", "), file.present().collect::<Vec<_>>().join(", "));
            bail!("{}: no row has a score: looked for {looked}; the fields are {found}", path.display());
        }
        let (mut grades, mut labels) = (HashMap::new(), Vec::new());
        for row in file.rows(&fields)? {
            let row = row?;
            if let (Some(id), Ok(Some(grade))) = (row.id, row.predicted) {
                if let (Grade::Label(label), None) = (&grade, grade.number()) {
                    labels.push(label.clone());
                }
                grades.insert(id, grade);
            }
        }
        if !of.iter().any(|row| grades.contains_key(&row.id)) {
            grades = grades.into_iter().map(|(id, grade)| (alike(&id).unwrap_or(id), grade)).collect();
        }
        labels.sort();
        labels.dedup();
        Ok(Self { grades, labels })
    }

    /// Labels by their place.
    fn number(&self, grade: &Grade) -> f64 {
        let place = |label: &String| self.labels.iter().position(|known| known == label).unwrap_or_default() as f64;
        grade.number().unwrap_or_else(|| match grade {
            Grade::Number(number) => *number,
            Grade::Label(label) => place(label),
        })
    }
}

/// The order in which a rater sees rows.
pub(super) fn order(rows: &[GradingRecord], seed: u64, rater: &str) -> Vec<usize> {
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by_cached_key(|&row| *hash("order", seed, rater, &rows[row].id).as_bytes());
    order
}

/// Whether a rater sees the second response of a pair first.
pub(super) fn swaps(seed: u64, rater: &str, id: &ItemId) -> bool {
    hash("side", seed, rater, id).as_bytes()[0] % 2 == 1
}

fn hash(purpose: &str, seed: u64, rater: &str, id: &ItemId) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    for part in [purpose, &seed.to_string(), rater, &id.to_string()] {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.finalize()
}
