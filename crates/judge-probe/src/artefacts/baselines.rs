//! What predicts labels without reading the model, scored on held-out rows with an interval.
//!
//! A score is that of all splits' tested rows together, not the mean of splits: questions recur over splits, and the bootstrap must draw a
//! question with all of its rows. Intervals are percentile ones over resampled questions; the gain over the majority is computed on the
//! same resamples, so that what both have in common cancels. What the baselines see is in `surface` and `tfidf`.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use judge_metrics::Interval;
use judge_metrics::comparison::Reported;
use judge_metrics::resampling::Bootstrap;
use serde::{Serialize, Serializer};

use crate::selection::cross_validation::{in_each_split, in_parallel, select};
use crate::{
    Error, Estimator, FittedEstimator, LogisticRegression, Pipeline, Scoring, Split, StandardScaler, TfidfVectorizer,
    surface_features,
};

/// Labelled responses: one entry per row in each list.
///
/// Nothing is copied; [`ArtefactCheck::report`](super::ArtefactCheck::report) checks that the lists are equally long.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LabelledTexts<'a> {
    /// The label of each row.
    pub labels: &'a [i64],
    /// What was asked; empty where that is not known, and then not shared with any other row.
    pub questions: &'a [String],
    /// What was answered.
    pub responses: &'a [String],
    /// Where a row comes from (file, annotator, generator), if that is known.
    pub sources: Option<&'a [String]>,
}

/// A baseline that predicts labels without understanding the text, and its score.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Baseline {
    /// Its name.
    /// One of `surface`, `tfidf` and `source`.
    pub name: String,
    /// Its score.
    #[serde(serialize_with = "with_level")]
    pub score: Reported,
    /// Its score less that of the majority, with the interval of the difference over the same resamples.
    /// In the unit of the scoring.
    #[serde(serialize_with = "with_level")]
    pub gain: Reported,
    /// Whether the whole interval of the gain is above 0: the label is then explained in part by what this baseline sees.
    /// Never where there is no interval. A baseline that explains nothing may still be right on many rows: the majority is.
    pub explains: bool,
}

/// Writes a score as `estimate`, with `low`, `high` and `level` beside it where there is an interval.
pub(super) fn with_level<S: Serializer>(score: &Reported, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Score {
        estimate: f64,
        #[serde(flatten)]
        interval: Option<Interval>,
    }
    Score { estimate: score.estimate, interval: score.interval }.serialize(serializer)
}

/// The rows tested on, those of all splits one after another; predictions are listed alike.
///
/// Splits may overlap in what they test on; a row then counts once for each. Predictions are `[n_tested]`, in the order of the
/// splits and of each split's `test`.
pub(super) struct Tested<'a> {
    /// All rows, tested on or not.
    rows: &'a LabelledTexts<'a>,
    /// Checked against the rows: positions in range, both parts with rows, none on both sides.
    splits: &'a [Split],
    scoring: Scoring,
    /// Clusters are those of `drawn`. A fixed seed: all baselines see the same resamples.
    bootstrap: Bootstrap,
    /// The label of each row tested on, a row once for each split that tests on it.
    truth: Vec<i64>,
    /// What each of them is drawn with.
    drawn: Vec<Drawn<'a>>,
}

/// What the bootstrap draws together: the rows of a question, or where that is not known the rows that belong together.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Drawn<'a> {
    /// By the position of the first of them, so that a row tested on by several splits is drawn with itself.
    Row(usize),
    /// To the letter: case and white space count here, unlike for duplicates.
    Question(&'a str),
}

impl<'a> Tested<'a> {
    /// The splits fit the rows, and `groups` has the first row of those that each belongs with.
    /// Memory is two lists of one entry for each row tested on; texts are borrowed.
    pub(super) fn new(
        rows: &'a LabelledTexts<'a>,
        groups: &[usize],
        splits: &'a [Split],
        scoring: Scoring,
        bootstrap: Bootstrap,
    ) -> Self {
        let tested = || splits.iter().flat_map(|split| &split.test);
        let truth = tested().map(|&row| rows.labels[row]).collect();
        let of_row = |&row: &usize| match rows.questions[row].as_str() {
            "" => Drawn::Row(groups[row]),
            question => Drawn::Question(question),
        };
        let drawn = tested().map(of_row).collect();
        Self { rows, splits, scoring, bootstrap, truth, drawn }
    }

    /// Each split's most frequent label.
    /// Learnt from the split's own `train`, so that splits may differ in it.
    pub(super) fn majority(&self) -> Vec<i64> {
        let of_split = |split: &Split| vec![most_frequent(self.learnt(split)); split.test.len()];
        self.splits.iter().flat_map(of_split).collect()
    }

    /// Each source's most frequent label among the rows learnt from; of a source not among them, that of all.
    /// No classifier is needed: for one categorical feature this is the table of its values.
    pub(super) fn by_source(&self, sources: &[String]) -> Vec<i64> {
        let of_split = |split: &Split| {
            let mut labels: BTreeMap<&str, Vec<i64>> = BTreeMap::new();
            for &row in &split.train {
                labels.entry(&sources[row]).or_default().push(self.rows.labels[row]);
            }
            let of_all = most_frequent(self.learnt(split));
            let known: BTreeMap<&str, i64> =
                labels.into_iter().map(|(source, labels)| (source, most_frequent(labels.into_iter()))).collect();
            split
                .test
                .iter()
                .map(|&row| known.get(sources[row].as_str()).copied().unwrap_or(of_all))
                .collect::<Vec<_>>()
        };
        self.splits.iter().flat_map(of_split).collect()
    }

    /// What a classifier says that has learnt surface features within each split, scaled.
    /// The features are computed once for all rows, since nothing is learnt in that; the scaler is fitted within each split.
    pub(super) fn surface(&self, classifier: &LogisticRegression) -> Result<Vec<i64>, Error> {
        let features = surface_features(self.rows.questions, self.rows.responses)?;
        let probe = Pipeline { transformer: StandardScaler::default(), estimator: *classifier };
        let predicted = in_each_split(&features, self.rows.labels, self.splits, |_, data| {
            probe.fit(&data.train, &data.train_labels)?.predict(&data.test)
        })?;
        Ok(predicted.concat())
    }

    /// Words are learnt within each split.
    ///
    /// Weights are not scaled: rows have length 1 already.
    ///
    /// # Errors
    ///
    /// [`Error::InSplit`] with [`Error::NoWords`] for a split without words to learn, or with what the classifier reports.
    pub(super) fn tfidf(
        &self,
        vectorizer: &TfidfVectorizer,
        classifier: &LogisticRegression,
    ) -> Result<Vec<i64>, Error> {
        let predicted = in_parallel(self.splits, |split| {
            let texts = |rows: &[usize]| rows.iter().map(|&row| &self.rows.responses[row]).collect::<Vec<_>>();
            let learnt = texts(&split.train);
            let words = vectorizer.fit(&learnt)?;
            let fitted = classifier.fit_sparse(&words.transform(&learnt)?, &select(self.rows.labels, &split.train))?;
            Ok(fitted.sparse_predictions(&words.transform(&texts(&split.test))?)?.labels)
        })?;
        Ok(predicted.concat())
    }

    /// A baseline from its predictions and those of the majority, one for each row tested on.
    ///
    /// The gain is computed within each resample, score minus score, and its interval is of that difference: it is not the
    /// difference of two intervals.
    pub(super) fn baseline(&self, name: &str, predicted: &[i64], majority: &[i64]) -> Result<Baseline, Error> {
        let gain = self.over_questions(|truth, rows| {
            let score = |predicted: &[i64]| self.scoring.statistic(truth, &select(predicted, rows).into());
            Ok(score(predicted)? - score(majority)?)
        })?;
        Ok(Baseline {
            name: name.to_owned(),
            score: self.score(predicted)?,
            explains: gain.interval.is_some_and(|interval| interval.low > 0.0),
            gain,
        })
    }

    /// The score of predictions, one for each row tested on, with its interval.
    /// Scores are those of resampled labels and predictions; no baseline is fitted again for the interval.
    pub(super) fn score(&self, predicted: &[i64]) -> Result<Reported, Error> {
        self.over_questions(|truth, rows| self.scoring.statistic(truth, &select(predicted, rows).into()))
    }

    /// A statistic of the truth of resampled rows and the positions of these rows among those tested on.
    ///
    /// A resample draws as many clusters as there are, with replacement, and takes all rows of each. Where these do not
    /// show how much the statistic varies there is no interval; one undefined on the rows as they are is an error.
    fn over_questions(
        &self,
        statistic: impl Fn(&[i64], &[usize]) -> Result<f64, judge_metrics::Error> + Sync,
    ) -> Result<Reported, Error> {
        let of = |rows: &[usize]| statistic(&select(&self.truth, rows), rows);
        match self.bootstrap.clustered(&self.drawn, of) {
            Ok(found) => {
                let (estimate, interval) = (found.estimate, Some(found.interval));
                Ok(Reported { interval, ..Reported::alone(estimate, "bootstrap of questions".to_owned()) })
            }
            // Too few questions, or resamples that do not show how much it varies.
            Err(error) if error.is_undefined() => {
                let all: Vec<usize> = (0..self.truth.len()).collect();
                Ok(Reported::alone(of(&all)?, format!("no interval: {error}")))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The labels that a split learns from.
    fn learnt(&self, split: &Split) -> impl Iterator<Item = i64> {
        split.train.iter().map(|&row| self.rows.labels[row])
    }
}

/// Of several the smallest. There is at least one: splits without rows to learn from are refused.
/// Ties go to the smallest label, so that the order of rows does not matter.
pub(crate) fn most_frequent(labels: impl Iterator<Item = i64>) -> i64 {
    counted(labels).into_iter().max_by_key(|&(label, count)| (count, Reverse(label))).map_or(0, |(label, _)| label)
}

/// Labels ascending, each with how often it occurs.
pub(super) fn counted(labels: impl Iterator<Item = i64>) -> Vec<(i64, usize)> {
    let mut counts = BTreeMap::new();
    labels.for_each(|label| *counts.entry(label).or_default() += 1);
    counts.into_iter().collect()
}
