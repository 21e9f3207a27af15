//! What may explain the grades besides what they are to mean.

use anyhow::Result;
use judge_examples::console::table;
use judge_examples::report::BOOTSTRAP;
use judge_metrics::resampling::PermutationTest;
use judge_probe::artefacts::{
    ArtefactCheck, ArtefactReport, Duplicates, LabelledTexts, Neighbour, ScoreInterval, Shift,
};
use judge_probe::{ClassWeight, LogisticRegression, Scoring, Split, TfidfVectorizer};

use crate::rows::Row;

/// Rows that would look slipped by chance as rarely as this are shown.
const SLIPPED: f64 = 0.01;

/// Of all `rows` of an aspect, with the label of each, parted into those to learn from and those to test on.
pub fn check(rows: &[Row], labels: &[i64], split: Split) -> Result<ArtefactReport> {
    let sources: Option<Vec<String>> = rows.iter().map(|row| row.source.clone()).collect();
    let check = ArtefactCheck {
        classifier: LogisticRegression { class_weight: ClassWeight::Balanced, ..LogisticRegression::default() },
        vectorizer: TfidfVectorizer::default(),
        scoring: Scoring::WeightedF1,
        bootstrap: BOOTSTRAP,
    };
    let texts = LabelledTexts {
        labels,
        questions: &texts(rows, |row| &row.question),
        responses: &texts(rows, |row| &row.response),
        sources: sources.as_deref(),
    };
    Ok(check.report(&texts, &[split])?)
}

/// Whether responses have slipped against their questions, among all `rows` of an aspect.
pub fn shifts(rows: &[Row]) -> Result<Vec<Shift>> {
    let test = PermutationTest { permutations: 999, ..PermutationTest::default() };
    Ok(Shift::both(&texts(rows, |row| &row.question), &texts(rows, |row| &row.response), test)?)
}

fn texts(rows: &[Row], of: fn(&Row) -> &String) -> Vec<String> {
    rows.iter().map(|row| of(row).clone()).collect()
}

/// For people.
pub fn text(split: &str, report: &ArtefactReport) -> String {
    let title = format!("artefacts of {split}");
    let mut rows = vec![[&title, "weighted F1", "above majority"].map(str::to_owned).to_vec()];
    rows.push(["majority".to_owned(), cell(&report.majority)].to_vec());
    for baseline in &report.baselines {
        let mut row = [baseline.name.clone(), cell(&baseline.score), cell(&baseline.gain)].to_vec();
        row.extend(baseline.explains.then(|| "explains the label in part".to_owned()));
        rows.push(row);
    }
    let mut text = table(&rows);
    for (what, duplicates) in [("question", &report.questions), ("response", &report.responses)] {
        let Duplicates { n_tested, found, n_same_label } = duplicates;
        if !found.is_empty() {
            text += &format!(
                "{} of {n_tested} rows have a {what} that was learnt from, {n_same_label} with the same label\n",
                found.len()
            );
        }
    }
    for source in &report.source_counts {
        let labels: Vec<String> = source.labels.iter().map(|(label, n)| format!("{label}: {n}")).collect();
        text += &format!("rows of each label from {}: {}\n", source.source, labels.join(", "));
    }
    text
}

/// For people; empty if nothing looks slipped.
pub fn shifts_text(shifts: &[Shift]) -> String {
    let mut text = String::new();
    for shift in shifts.iter().filter(|shift| shift.p_value <= SLIPPED) {
        let neighbour = match shift.neighbour {
            Neighbour::Before => "before",
            Neighbour::After => "after",
        };
        text += &format!(
            "{} responses are closer to the question {neighbour} their own (p = {:.3}): look whether they have slipped\n",
            shift.closer.len(),
            shift.p_value
        );
    }
    text
}

fn cell(score: &ScoreInterval) -> String {
    format!("{:.3} [{:.3}, {:.3}]", score.estimate, score.low, score.high)
}
