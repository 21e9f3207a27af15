//! What readings are worth beside each other.

use judge_metrics::comparison::Statistic;
use judge_metrics::prediction::auroc;
use judge_metrics::resampling::{Bootstrap, RankedPair};

use super::out_of_fold::{Failed, values};
use super::{BestOfAnswers, ByLabels, Compared, Measure, ReadAs, Reading, Trial, TrialError, Tried};
use crate::Error;
use crate::training::RowSignals;

impl Trial {
    /// The agreement of each reading, from the simplest on, as the order decides between equals.
    ///
    /// # Errors
    ///
    /// [`Error::Trial`], what the signals return, and what an estimator reports. What the rows leave undefined is
    /// [`Statistic::Undefined`].
    pub fn compare<S: RowSignals>(&self, readings: &[Reading<'_, S>]) -> Result<Compared, S::Error> {
        self.check(readings)?;
        compare(self, readings)
    }
}

fn compare<S: RowSignals>(trial: &Trial, readings: &[Reading<'_, S>]) -> Result<Compared, S::Error> {
    let mut different = trial.grades.clone();
    different.sort_by(f64::total_cmp);
    different.dedup();
    let measure = if different.len() == 2 { Measure::Auroc } else { Measure::Spearman };
    let level = 1.0 - (1.0 - trial.bootstrap.level) / readings.len().max(1) as f64;
    let judged = Judged {
        measure,
        trial,
        higher: trial.grades.iter().map(|grade| Some(grade) == different.last()).collect(),
        bootstrap: Bootstrap { level, ..trial.bootstrap },
    };
    let answers = trial.answers();
    let splits = trial.splits(None)?;
    let fewest = splits.iter().map(|split| split.train.len()).min().unwrap_or(0);
    let half = fewest / 2;
    let mut tried = Vec::new();
    for Reading { name, read_as } in readings {
        let all = defined(values(trial, read_as, &splits))?;
        let (mut by_labels, mut of_half) = (Vec::new(), None);
        let sizes = trial.labels.iter().copied().filter(|&labels| labels < half).chain([half]);
        for labels in sizes.filter(|&labels| read_as.learns() && labels > 1) {
            let some = defined(values(trial, read_as, &trial.splits(Some(labels))?))?.ok();
            let agreement = some.as_ref().and_then(|values| judged.alone(values));
            by_labels.push(ByLabels { labels, agreement });
            of_half = some;
        }
        let (agreement, values) = match all {
            Ok(values) => (judged.agreement(&values)?, values),
            Err(reason) => (Statistic::Undefined { reason }, Vec::new()),
        };
        let best_chosen = match &agreement {
            _ if answers.is_empty() => None,
            Statistic::Undefined { reason } => Some(Statistic::Undefined { reason: reason.clone() }),
            Statistic::Defined(_) => Some(judged.best_chosen(&answers, &values)?),
        };
        let behind_best = match &agreement {
            Statistic::Undefined { reason } => Statistic::Undefined { reason: reason.clone() },
            Statistic::Defined(_) => Statistic::Undefined { reason: "no reading is defined".to_owned() },
        };
        if read_as.learns() {
            by_labels.push(ByLabels { labels: fewest, agreement: agreement.estimate() });
        }
        let more_labels = of_half.filter(|_| !values.is_empty());
        let more_labels = more_labels.map(|of_half| judged.difference(&values, &of_half)).transpose()?;
        tried.push(Tried {
            name: name.clone(),
            is_baseline: matches!(read_as, ReadAs::Baseline(_)),
            learns: read_as.learns(),
            agreement,
            behind_best,
            best_chosen,
            by_labels,
            more_labels,
            values,
        });
    }
    let judges: Vec<usize> = (0..tried.len()).filter(|&place| !tried[place].is_baseline).collect();
    let ranked = judges.iter().filter_map(|&place| Some((place, tried[place].agreement.estimate()?)));
    // Of equals the first.
    let best = ranked.reduce(|best, other| if other.1 > best.1 { other } else { best }).map(|(place, _)| place);
    if let Some(best) = best {
        let of_best = tried[best].values.clone();
        for other in tried.iter_mut().filter(|other| other.agreement.defined().is_some()) {
            other.behind_best = judged.difference(&of_best, &other.values)?;
        }
    }
    // One whose interval reaches 0, or that is as good on whatever rows are drawn, is not shown to be worse.
    let is_as_good = |place: &usize| match tried[*place].behind_best.defined() {
        Some(behind) => behind.low().is_none_or(|low| low <= 0.0),
        None => false,
    };
    let as_good: Vec<usize> = judges.into_iter().filter(is_as_good).collect();
    let agrees = |place: &&usize| tried[**place].is_shown_to_agree(measure);
    let recommended = as_good.iter().find(agrees).or(as_good.first()).copied();
    let best_of = (!answers.is_empty())
        .then(|| BestOfAnswers { questions: answers.len(), at_random: judged.best_at_random(&answers) });
    Ok(Compared { measure, level, best_of, readings: tried, best, recommended })
}

fn defined<E>(found: Result<Vec<f64>, Failed<E>>) -> Result<Result<Vec<f64>, String>, E> {
    match found {
        Ok(values) => Ok(Ok(values)),
        Err(Failed::Undefined(Error::Trial(TrialError::Weights(reason)))) => Ok(Err(reason)),
        Err(Failed::Undefined(error)) => Ok(Err(error.to_string())),
        Err(Failed::Ends(error)) => Err(error),
    }
}

/// How numbers of the rows are held against people's grades.
struct Judged<'t> {
    measure: Measure,
    trial: &'t Trial,
    /// Whether a row has the higher of two grades.
    higher: Vec<bool>,
    bootstrap: Bootstrap,
}

impl Judged<'_> {
    fn agreement(&self, values: &[f64]) -> Result<Statistic, Error> {
        self.statistic(self.of(values))
    }

    fn alone(&self, values: &[f64]) -> Option<f64> {
        self.of(values)(&self.all()).ok()
    }

    fn difference(&self, one: &[f64], other: &[f64]) -> Result<Statistic, Error> {
        let (one, other) = (self.of(one), self.of(other));
        self.statistic(|rows| Ok(one(rows)? - other(rows)?))
    }

    /// How often the answer with the highest number is one of those that people graded highest, over groups of rows.
    fn best_chosen(&self, answers: &[Vec<usize>], values: &[f64]) -> Result<Statistic, Error> {
        let chosen: Vec<f64> = answers.iter().map(|rows| self.share_of_best(&highest(rows, values), rows)).collect();
        let groups: Vec<usize> = answers.iter().map(|rows| self.trial.groups[rows[0]]).collect();
        let mean = |of: &[usize]| Ok(of.iter().map(|&question| chosen[question]).sum::<f64>() / of.len() as f64);
        let all: Vec<usize> = (0..answers.len()).collect();
        Ok(Statistic::of(self.bootstrap.clustered(&groups, mean), || mean(&all))?)
    }

    fn best_at_random(&self, answers: &[Vec<usize>]) -> f64 {
        answers.iter().map(|rows| self.share_of_best(rows, rows)).sum::<f64>() / answers.len() as f64
    }

    /// Which share of some of a question's answers people graded highest of all.
    fn share_of_best(&self, some: &[usize], all: &[usize]) -> f64 {
        let grade = |row: &usize| self.trial.grades[*row];
        let best = all.iter().map(grade).fold(f64::NEG_INFINITY, f64::max);
        some.iter().filter(|row| grade(row) == best).count() as f64 / some.len() as f64
    }

    fn all(&self) -> Vec<usize> {
        (0..self.trial.grades.len()).collect()
    }

    /// The measure of these numbers on any rows; they are ranked once.
    fn of<'v>(&'v self, values: &'v [f64]) -> impl Fn(&[usize]) -> Result<f64, judge_metrics::Error> + Sync + 'v {
        let ranks = RankedPair::new(values, &self.trial.grades);
        move |rows| match self.measure {
            Measure::Spearman => ranks.as_ref().map_err(Clone::clone)?.spearman(rows),
            Measure::Auroc => {
                let outcomes: Vec<bool> = rows.iter().map(|&row| self.higher[row]).collect();
                let scores: Vec<f64> = rows.iter().map(|&row| values[row]).collect();
                Ok(auroc(&outcomes, &scores)?.estimate)
            }
        }
    }

    fn statistic(&self, of: impl Fn(&[usize]) -> Result<f64, judge_metrics::Error> + Sync) -> Result<Statistic, Error> {
        let drawn = self.bootstrap.clustered(&self.trial.groups, &of);
        Ok(Statistic::of(drawn, || of(&self.all()))?)
    }
}

/// Those of the rows that have the highest number.
fn highest(rows: &[usize], of: &[f64]) -> Vec<usize> {
    let highest = rows.iter().map(|&row| of[row]).fold(f64::NEG_INFINITY, f64::max);
    rows.iter().copied().filter(|&row| of[row] == highest).collect()
}
