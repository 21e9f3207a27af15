//! How good the answer is that a judge chooses among several.

use super::Statistic;
use super::collector::{Collector, Items};
use crate::Error;
use crate::estimate::{SHARE, UNBOUNDED};
use crate::input::{check_count, check_finite, check_lengths};
use crate::resampling::Bootstrap;

/// The answers to one question: what the judge says of each, and what people gave it.
#[derive(Debug, Clone, PartialEq)]
pub struct RankedAnswers {
    /// Higher is better, in any unit; `None` for an answer that the judge could not score.
    pub scores: Vec<Option<f64>>,
    /// The grades of people, higher is better.
    pub grades: Vec<f64>,
}

/// How well a judge chooses the best of n and ranks them. Intervals of means are Student's over questions, and Wilson's of shares that
/// divide no question; those of ratios of means are the bootstrap's.
///
/// | statistic | what it is |
/// |---|---|
/// | `best_share` | how often the chosen answer is the best by people's grades, or one of the best; in [0, 1] |
/// | `best_share_at_random` | the same of an answer drawn at random |
/// | `chosen_grade` | mean grade of the chosen answer |
/// | `mean_grade` | mean grade of all answers: of one drawn at random |
/// | `highest_grade` | mean grade of the best answer |
/// | `gain` | (chosen − mean) / (highest − mean), of the means: 0 for chance, 1 for the best choice |
/// | `pair_accuracy` | of all pairs of answers to one question with different grades, the share that the scores order alike, equal scores counting half; in [0, 1] |
///
/// The chosen answer is the one of the highest score; where several have it, each is chosen with the same probability, so that their order
/// does not matter. An answer without a score is not chosen and takes no part in pairs.
#[derive(Debug, Clone, PartialEq)]
pub struct BestOf {
    /// One for each question.
    pub questions: Vec<RankedAnswers>,
    /// How intervals are made.
    pub bootstrap: Bootstrap,
}

/// One of the sums.
type Of = fn(&Sums) -> f64;

/// What one question adds to the statistics.
#[derive(Clone, Copy, Default)]
struct Sums {
    best: f64,
    best_at_random: f64,
    chosen: f64,
    mean: f64,
    highest: f64,
    ordered: f64,
    pairs: f64,
}

impl BestOf {
    /// The statistics by name, in the order of the table.
    ///
    /// # Errors
    ///
    /// [`Error::TooFewItems`] for no question or one without answers, [`Error::LengthMismatch`] for grades that are not as many as scores,
    /// [`Error::NonFinite`]. What the questions do not define is [`Statistic::Undefined`].
    pub fn statistics(&self) -> Result<Vec<(&'static str, Statistic)>, Error> {
        check_count(1, self.questions.len())?;
        let sums = self.questions.iter().map(RankedAnswers::sums).collect::<Result<Vec<Sums>, Error>>()?;
        let mean = |of: Of| {
            let sums = &sums;
            move |rows: &[usize]| rows.iter().map(|&row| of(&sums[row])).sum::<f64>() / rows.len() as f64
        };
        let ratio = |of: Of, by: Of, reason: &'static str| {
            let (over, under) = (mean(of), mean(by));
            move |rows: &[usize]| match under(rows) {
                0.0 => Err(Error::Undefined { statistic: "best of n", reason }),
                by => Ok(over(rows) / by),
            }
        };
        let mut found = Collector::of_rows(self.bootstrap, None);
        let n = sums.len();
        let means: [(&'static str, Of, [f64; 2]); 5] = [
            ("best_share", |sums| sums.best, SHARE),
            ("best_share_at_random", |sums| sums.best_at_random, SHARE),
            ("chosen_grade", |sums| sums.chosen, UNBOUNDED),
            ("mean_grade", |sums| sums.mean, UNBOUNDED),
            ("highest_grade", |sums| sums.highest, UNBOUNDED),
        ];
        for (name, of, range) in means {
            let values: Vec<f64> = sums.iter().map(of).collect();
            found.mean_or_share(name, &Items::within(&values, range));
        }
        let gain = ratio(
            |sums| sums.chosen - sums.mean,
            |sums| sums.highest - sums.mean,
            "all grades of each question are equal",
        );
        found.resample("gain", None, gain, n);
        let ordered = ratio(|sums| sums.ordered, |sums| sums.pairs, "no pair of scored answers has different grades");
        found.resample("pair_accuracy", None, ordered, n);
        let names = means.into_iter().map(|(name, ..)| name).chain(["gain", "pair_accuracy"]);
        Ok(names.zip(found.found).map(|(name, (_, statistic))| (name, statistic)).collect())
    }
}

impl RankedAnswers {
    /// The share of the answers with the highest score that are the best by people's grades; 0 where an answer has no score.
    pub(super) fn best_share(&self) -> Result<f64, Error> {
        check_lengths("grades", self.grades.len(), "scores", self.scores.len())?;
        if self.scores.contains(&None) { Ok(0.0) } else { Ok(self.sums()?.best) }
    }

    fn sums(&self) -> Result<Sums, Error> {
        let Self { scores, grades } = self;
        check_lengths("grades", grades.len(), "scores", scores.len())?;
        check_finite("grades", grades)?;
        let scored: Vec<(f64, f64)> = scores.iter().zip(grades).filter_map(|(s, g)| Some(((*s)?, *g))).collect();
        check_finite("scores", &scored.iter().map(|(score, _)| *score).collect::<Vec<_>>())?;
        let top = scored.iter().map(|(score, _)| *score).max_by(f64::total_cmp);
        let Some(top) = top else { return Err(Error::TooFewItems { required: 1, found: 0 }) };
        let n = grades.len() as f64;
        let highest = grades.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let chosen: Vec<f64> = scored.iter().filter(|(score, _)| *score == top).map(|(_, grade)| *grade).collect();
        let share = |of: &[f64]| of.iter().filter(|grade| **grade == highest).count() as f64 / of.len() as f64;
        let mut sums = Sums {
            best: share(&chosen),
            best_at_random: share(grades),
            chosen: chosen.iter().sum::<f64>() / chosen.len() as f64,
            mean: grades.iter().sum::<f64>() / n,
            highest,
            ..Sums::default()
        };
        if grades.iter().all(|&grade| grade == highest) {
            (sums.chosen, sums.mean) = (highest, highest); // and nothing beside it that rounding leaves
        }
        for (index, first) in scored.iter().enumerate() {
            for second in &scored[index + 1..] {
                if first.1 != second.1 {
                    sums.pairs += 1.0;
                    let alike = (first.0 - second.0) * (first.1 - second.1);
                    sums.ordered += if first.0 == second.0 { 0.5 } else { f64::from(u8::from(alike > 0.0)) };
                }
            }
        }
        Ok(sums)
    }
}
