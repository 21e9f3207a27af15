//! What may explain labels besides what they are to mean: a data set's accidents, which a probe would learn just as well.
//!
//! It owns the report on rows that are split and the test for slipped responses. It reads texts, labels and sources, never a
//! model's states, and it changes no row: what to do about a finding is up to whoever reads it.
//!
//! Finding nothing is no proof that there is nothing: the baselines see counts, words and sources, and no paraphrase is known for what
//! it is.

mod baselines;
mod duplicates;
mod shifts;

pub(crate) use baselines::most_frequent;
pub use baselines::{Baseline, LabelledTexts};
pub use duplicates::{Duplicate, Duplicates};
pub use shifts::{Neighbour, Shift};

use std::collections::BTreeMap;

use judge_metrics::comparison::Reported;
use judge_metrics::resampling::Bootstrap;
use serde::{Deserialize, Serialize};

use crate::artefacts::baselines::{Tested, counted};
use crate::estimators::parameters::check_rows;
use crate::preprocessing::tfidf::if_words;
use crate::selection::cross_validation::check_splits;
use crate::{Error, LogisticRegression, RowGroups, Scoring, Split, TfidfVectorizer};

/// Looks for artefacts of rows that are split: those learnt from and tested on again, baselines that see no meaning and predict the label
/// all the same, and sources that give it away. Whether responses have slipped against their questions is no matter of splits: see
/// [`Shift`].
#[derive(Debug, Clone, PartialEq)]
pub struct ArtefactCheck {
    /// What learns from surface features, standardised, and from TF-IDF weights.
    pub classifier: LogisticRegression,
    /// Which words count.
    pub vectorizer: TfidfVectorizer,
    /// How predictions are scored.
    /// Of the labels: one that [needs probabilities](Scoring::needs_probabilities) is refused.
    pub scoring: Scoring,
    /// Intervals, over questions: rows that share one are drawn together.
    pub bootstrap: Bootstrap,
}

/// What an [`ArtefactCheck`] found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ArtefactReport {
    /// How predictions were scored.
    pub scoring: Scoring,
    /// The rows of each label, labels ascending.
    pub label_counts: Vec<(i64, usize)>,
    /// The rows of each label from each source, sources in order; empty where sources are not known.
    pub source_counts: Vec<SourceCounts>,
    /// Rows tested on whose question has been learnt from.
    pub questions: Duplicates,
    /// Rows tested on whose response has been learnt from.
    pub responses: Duplicates,
    /// Rows tested on that belong with one that has been learnt from: equal or nearly equal questions, or where a row's question is not known
    /// whole texts, which then hold the question ([`RowGroups::of_prompts`]).
    pub related: Duplicates,
    /// The score of predicting each split's most frequent label (of several the smallest) for all rows.
    #[serde(serialize_with = "baselines::with_level")]
    pub majority: Reported,
    /// What predicts labels without meaning: `surface`, `tfidf` where each split has words, and `source` where sources are known.
    pub baselines: Vec<Baseline>,
}

/// The labels of one source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceCounts {
    /// The source.
    pub source: String,
    /// Its rows with each label, labels ascending, those without rows left out.
    pub labels: Vec<(i64, usize)>,
}

impl ArtefactCheck {
    /// Checks rows as they are split into those to learn from and those to test on. Scores are over all rows tested on together.
    ///
    /// The classifier is fitted twice for each split, once on 8 surface features and once on words.
    /// Splits are worked on in parallel; results do not depend on the number of threads.
    ///
    /// # Errors
    ///
    /// [`Error::NoProbabilities`] for a scoring of probabilities, which the majority does not have; [`Error::RowCount`] for lists of
    /// different lengths; [`Error::Split`] for splits that do not fit them;
    /// [`Error::InSplit`] with what a baseline reports; [`Error::Metric`] where a score or its interval is undefined.
    pub fn report(&self, rows: &LabelledTexts<'_>, splits: &[Split]) -> Result<ArtefactReport, Error> {
        // Before anything is fitted: the majority says labels alone.
        self.scoring.check(None)?;
        let lengths = [rows.questions.len(), rows.responses.len(), rows.sources.map_or(rows.labels.len(), <[_]>::len)];
        lengths.into_iter().try_for_each(|found| check_rows(rows.labels.len(), "texts", found))?;
        check_splits(splits, rows.labels.len())?;
        let groups = related(rows);
        let tested = Tested::new(rows, &groups, splits, self.scoring, self.bootstrap);
        let majority = tested.majority();
        let mut baselines = vec![tested.baseline("surface", &tested.surface(&self.classifier)?, &majority)?];
        if let Some(predicted) = if_words(tested.tfidf(&self.vectorizer, &self.classifier))? {
            baselines.push(tested.baseline("tfidf", &predicted, &majority)?);
        }
        if let Some(sources) = rows.sources {
            baselines.push(tested.baseline("source", &tested.by_source(sources), &majority)?);
        }
        Ok(ArtefactReport {
            scoring: self.scoring,
            label_counts: counted(rows.labels.iter().copied()),
            source_counts: rows.sources.map_or_else(Vec::new, |sources| source_counts(sources, rows.labels)),
            questions: Duplicates::new(&normalised(rows.questions), rows.labels, splits),
            responses: Duplicates::new(
                &rows.responses.iter().map(|text| Some(duplicates::normalised(text))).collect::<Vec<_>>(),
                rows.labels,
                splits,
            ),
            related: Duplicates::new(&groups.iter().map(Some).collect::<Vec<_>>(), rows.labels, splits),
            majority: tested.score(&majority)?,
            baselines,
        })
    }
}

/// Texts with one case and white space; `None` of one that is empty, so that two unknown ones are no duplicates.
fn normalised(texts: &[String]) -> Vec<Option<String>> {
    let known = |text: &String| Some(duplicates::normalised(text)).filter(|text| !text.is_empty());
    texts.iter().map(known).collect()
}

/// The first row of those that each row belongs with. Texts without a question are compared as whole prompts.
fn related(rows: &LabelledTexts<'_>) -> Vec<usize> {
    let questions = rows.questions.iter().map(|text| Some(text.as_str()).filter(|text| !text.is_empty()));
    let texts: Vec<_> = questions.zip(rows.responses.iter().map(|text| Some(text.as_str()))).collect();
    RowGroups::of_questions_and_prompts(&texts).group_of_row()
}

/// Sources in the order of their bytes; every row counts, also one that no split tests on.
fn source_counts(sources: &[String], labels: &[i64]) -> Vec<SourceCounts> {
    let mut of_source: BTreeMap<&str, Vec<i64>> = BTreeMap::new();
    for (source, &label) in sources.iter().zip(labels) {
        of_source.entry(source).or_default().push(label);
    }
    let counts = |(source, labels): (&str, Vec<i64>)| SourceCounts {
        source: source.to_owned(),
        labels: counted(labels.into_iter()),
    };
    of_source.into_iter().map(counts).collect()
}
