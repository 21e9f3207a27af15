//! What predicts grades without the model's states.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::slice;

use anyhow::{Context, Result};
use judge_core::{ScoreDistribution, class_scale};
use judge_probe::{
    ClassWeight, Classifier, FittedTfidfVectorizer, GridSearch, LogisticRegression, Matrix, Pipeline, Scoring, Split,
    SplitScores, StandardScaler, TfidfVectorizer, surface_features,
};

use crate::evaluation::Predictions;
use crate::label;
use crate::rows::Row;
use crate::states::States;

type Learner = Pipeline<StandardScaler, LogisticRegression>;
type Fitted = <Learner as Classifier>::Fitted;

/// Learnt from the same rows as a probe, its settings chosen in the same folds.
pub struct Baselines {
    majority: i64,
    surface: Fitted,
    words: FittedTfidfVectorizer,
    tfidf: Fitted,
}

impl Baselines {
    /// `c` are the inverse strengths of the penalty to choose from; labels and folds are of the rows in `train`.
    pub fn fit(rows: &[Row], train: &[usize], labels: &[i64], folds: &[Split], c: &[f64]) -> Result<Self> {
        let mut counts: HashMap<i64, usize> = HashMap::new();
        labels.iter().for_each(|&label| *counts.entry(label).or_default() += 1);
        let majority = counts.into_iter().max_by_key(|&(label, count)| (count, Reverse(label)));
        let logistic = |&c: &f64| Pipeline {
            transformer: StandardScaler::default(),
            classifier: LogisticRegression { c, class_weight: ClassWeight::Balanced, ..LogisticRegression::default() },
        };
        let search = GridSearch { candidates: c.iter().map(logistic).collect(), scoring: Scoring::MacroF1 };
        let surface = search.fit(&surface(rows, train)?, labels, folds)?.classifier;
        let texts = responses(rows, train);
        let learner = best_with_words(&search, &texts, labels, folds)?;
        let words = TfidfVectorizer::default().fit(&texts)?;
        let tfidf = learner.fit(&words.transform(&texts)?, labels)?;
        Ok(Self { majority: majority.map_or(0, |(label, _)| label), surface, words, tfidf })
    }

    pub fn predict(&self, rows: &[Row], tested: &[usize]) -> Result<Vec<(String, Predictions)>> {
        let words = self.words.transform(&responses(rows, tested))?;
        Ok(vec![
            ("majority".to_owned(), Predictions::constant(self.majority, tested.len())),
            ("surface".to_owned(), Predictions::of(&self.surface, &surface(rows, tested)?)?),
            ("tfidf".to_owned(), Predictions::of(&self.tfidf, &words)?),
        ])
    }
}

/// The candidate with the highest mean score where words, too, are learnt within each fold; of equal ones the first.
fn best_with_words(search: &GridSearch<Learner>, texts: &[&str], labels: &[i64], folds: &[Split]) -> Result<Learner> {
    let mut scores = vec![SplitScores::default(); search.candidates.len()];
    for fold in folds {
        let learnt: Vec<&str> = fold.train.iter().map(|&row| texts[row]).collect();
        let features = TfidfVectorizer::default().fit(&learnt)?.transform(texts)?;
        let of_fold = search.scores(&features, labels, slice::from_ref(fold))?;
        for (scores, of_fold) in scores.iter_mut().zip(of_fold.candidates) {
            scores.by_split.extend(of_fold.by_split);
        }
    }
    let mut best: Option<(f64, &Learner)> = None;
    for (candidate, scores) in search.candidates.iter().zip(&scores) {
        if let Some(mean) = scores.mean()
            && best.is_none_or(|(highest, _)| mean > highest)
        {
            best = Some((mean, candidate));
        }
    }
    best.map(|(_, learner)| *learner).context("no penalty of the TF-IDF baseline has a score")
}

fn responses<'a>(rows: &'a [Row], of: &[usize]) -> Vec<&'a str> {
    of.iter().map(|&row| rows[row].response.as_str()).collect()
}

fn surface(rows: &[Row], of: &[usize]) -> Result<Matrix> {
    let questions: Vec<&str> = of.iter().map(|&row| rows[row].question.as_str()).collect();
    Ok(surface_features(&questions, &responses(rows, of))?)
}

/// The model's own score, from the logits of the grades at the prompt's end; `None` where they were not read. A prompt asks for a grade, so
/// for two classes the probabilities of the grades of each are added up.
pub fn prompted(states: &States, tested: &[usize], grades: &[i64], binary: bool) -> Result<Option<Predictions>> {
    let scale = class_scale(grades)?;
    let mut predictions = Predictions { labels: Vec::new(), values: Vec::new() };
    for &row in tested {
        let Some(logits) = states.label_logits(row)? else { return Ok(None) };
        let distribution = ScoreDistribution::softmax(&scale, &logits)?;
        let (class, value) = if binary {
            let good = scale.values().zip(distribution.probabilities()).filter(|&(grade, _)| label(true, grade) == 1);
            let share: f64 = good.map(|(_, p)| p).sum();
            (i64::from(share > 0.5), share)
        } else {
            (distribution.mode().value as i64, distribution.expected())
        };
        predictions.labels.push(class);
        predictions.values.push(value);
    }
    Ok(Some(predictions))
}
