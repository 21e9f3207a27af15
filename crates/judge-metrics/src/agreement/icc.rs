use crate::distribution::{f_quantile, f_sf};
use crate::estimate::{Missing, Spread};
use crate::input::{check_finite, check_lengths, unit_of};
use crate::{Error, Estimate, Interval, NullDistribution};

/// The mean squares from which all intraclass correlations are made (McGraw and Wong, 1996), of k raters who each rated all of n subjects.
///
/// Each of the six comes with the interval of McGraw and Wong (1996), table 7: exact for normal ratings, but for the two of agreement
/// (Satterthwaite). Its p-value is that of the F test that subjects do not differ, which is one-sided. Neither exists where raters agree
/// exactly. The interval of agreement is undefined also where Satterthwaite's degrees of freedom vanish, and that of the mean where the one
/// of a single rater reaches so far below 0 that means have none. None has a standard error. With few raters who differ in level and many
/// subjects the intervals of agreement are too narrow: of three raters with a spread of levels half that of their errors, 95 % intervals
/// held the truth in 94 % of simulated samples of 100 subjects, and in 79 % of those of 1,000.
///
/// ```
/// use judge_metrics::agreement::IntraclassCorrelations;
///
/// // Shrout and Fleiss (1979), table 2: six subjects, four raters.
/// let ratings = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]];
/// let icc = IntraclassCorrelations::new(&ratings.map(|row| row.map(f64::from)))?;
/// let round = |x: f64| (100.0 * x).round() / 100.0;
/// assert_eq!(round(icc.one_way()?.estimate), 0.17);
/// assert_eq!(round(icc.agreement()?.estimate), 0.29);
/// assert_eq!(round(icc.consistency()?.estimate), 0.71);
/// assert_eq!(round(icc.mean_consistency()?.estimate), 0.91);
/// let interval = icc.agreement()?.interval(0.95)?;
/// assert_eq!((round(interval.low), round(interval.high)), (0.02, 0.76));
/// # Ok::<(), judge_metrics::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct IntraclassCorrelations {
    n: f64,
    k: f64,
    /// Between subjects, n − 1 degrees of freedom.
    subjects: f64,
    /// Between raters, k − 1.
    raters: f64,
    /// What is left within subjects and raters, (n − 1)(k − 1).
    rest: f64,
    /// Within subjects, n(k − 1).
    within: f64,
}

const STATISTIC: &str = "the intraclass correlation";
const INFINITE: &str = "raters agree exactly: the F ratio is infinite";

/// Whose ratings are compared with whose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    OneWay,
    Agreement,
    Consistency,
}

/// What the interval of one intraclass correlation is made of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct McGrawWong {
    form: Form,
    of_mean: bool,
    squares: IntraclassCorrelations,
}

/// The test that subjects do not differ.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct FTest {
    /// The F ratio.
    pub statistic: f64,
    /// Degrees of freedom above and below.
    pub dof: (usize, usize),
    /// Probability of a ratio at least as large.
    pub p_value: f64,
}

impl IntraclassCorrelations {
    /// `ratings` has one row to a subject, one entry to a rater, none missing: `pingouin.intraclass_corr` 0.7.0.
    ///
    /// # Errors
    ///
    /// [`Error::TooFewItems`] for fewer than two subjects or raters, [`Error::LengthMismatch`], [`Error::NonFinite`];
    /// [`Error::Undefined`] where all ratings are one value.
    pub fn new<R: AsRef<[f64]>>(ratings: &[R]) -> Result<Self, Error> {
        let subjects = RatedSubjects::new(ratings)?;
        subjects.squares(&(0..ratings.len()).collect::<Vec<_>>())
    }

    /// ICC(1): each subject has raters of its own. At most 1.
    ///
    /// # Errors
    ///
    /// [`Error::Undefined`] where the ratings leave 0/0: subjects that do not differ, whatever raters do.
    pub fn one_way(&self) -> Result<Estimate, Error> {
        let Self { k, subjects, within, .. } = *self;
        self.of_one(Form::OneWay, ratio(less(subjects, within), subjects + (k - 1.0) * within)?)
    }

    /// ICC(A,1), also ICC2: raters are a sample of all raters, and where they differ in level they do not agree. At most 1.
    ///
    /// # Errors
    ///
    /// [`Error::Undefined`] where the ratings leave 0/0: subjects that do not differ, whatever raters do.
    pub fn agreement(&self) -> Result<Estimate, Error> {
        self.of_one(Form::Agreement, self.single_agreement()?)
    }

    /// ICC(C,1), also ICC3: raters may differ in level, as long as they do so always. At most 1.
    ///
    /// # Errors
    ///
    /// [`Error::Undefined`] where the ratings leave 0/0: subjects that do not differ, whatever raters do.
    pub fn consistency(&self) -> Result<Estimate, Error> {
        let Self { k, subjects, rest, .. } = *self;
        self.of_one(Form::Consistency, ratio(less(subjects, rest), subjects + (k - 1.0) * rest)?)
    }

    /// ICC(1,k): [`one_way`](Self::one_way) of the mean of all k raters.
    ///
    /// # Errors
    ///
    /// [`Error::Undefined`] where subjects do not differ.
    pub fn mean_one_way(&self) -> Result<Estimate, Error> {
        self.of_mean(Form::OneWay, ratio(less(self.subjects, self.within), self.subjects)?)
    }

    /// ICC(A,k): [`agreement`](Self::agreement) of the mean of all k raters.
    ///
    /// # Errors
    ///
    /// [`Error::Undefined`] where subjects do not differ, or differ so much less than a rater from himself that the variance of a mean is
    /// estimated as 0 or less.
    pub fn mean_agreement(&self) -> Result<Estimate, Error> {
        let variance = self.subjects + (self.raters - self.rest) / self.n;
        if variance < 0.0 {
            let reason = "the variance of a subject's mean is estimated below 0";
            return Err(Error::Undefined { statistic: STATISTIC, reason });
        }
        self.of_mean(Form::Agreement, ratio(less(self.subjects, self.rest), variance)?)
    }

    /// ICC(C,k): [`consistency`](Self::consistency) of the mean of all k raters; Cronbach's alpha.
    ///
    /// # Errors
    ///
    /// [`Error::Undefined`] where subjects do not differ.
    pub fn mean_consistency(&self) -> Result<Estimate, Error> {
        self.of_mean(Form::Consistency, ratio(less(self.subjects, self.rest), self.subjects)?)
    }

    /// The test that subjects do not differ, with differences within subjects as the error: that of both correlations of
    /// [one way](Self::one_way).
    ///
    /// # Errors
    ///
    /// [`Error::Undefined`] where raters agree exactly, so that the ratio is infinite.
    pub fn one_way_test(&self) -> Result<FTest, Error> {
        self.test(Form::OneWay)
    }

    /// The test that subjects do not differ, with what raters' levels leave of the differences as the error: that of
    /// [agreement](Self::agreement) and [consistency](Self::consistency).
    ///
    /// # Errors
    ///
    /// [`Error::Undefined`] where raters agree exactly but for their levels, so that the ratio is infinite.
    pub fn two_way_test(&self) -> Result<FTest, Error> {
        self.test(Form::Consistency)
    }

    fn single_agreement(&self) -> Result<f64, Error> {
        let Self { n, k, subjects, raters, rest, .. } = *self;
        ratio(less(subjects, rest), subjects + (k - 1.0) * rest + k * (raters - rest) / n)
    }

    fn of_one(&self, form: Form, estimate: f64) -> Result<Estimate, Error> {
        self.estimate(estimate, McGrawWong { form, of_mean: false, squares: *self })
    }

    fn of_mean(&self, form: Form, estimate: f64) -> Result<Estimate, Error> {
        self.estimate(estimate, McGrawWong { form, of_mean: true, squares: *self })
    }

    fn estimate(&self, estimate: f64, interval: McGrawWong) -> Result<Estimate, Error> {
        let found = Estimate::new(STATISTIC, estimate, self.n as usize)?;
        Ok(match self.test(interval.form) {
            Ok(test) => found.with_interval(Spread::McGrawWong(interval)).tested(test.p_value, NullDistribution::F),
            Err(_) => found.without_interval(INFINITE).untested(Missing::Because(INFINITE)),
        })
    }

    fn test(&self, form: Form) -> Result<FTest, Error> {
        let (error, above, below) = self.error_of(form);
        if error == 0.0 {
            return Err(Error::Undefined { statistic: "the F test of an intraclass correlation", reason: INFINITE });
        }
        let statistic = self.subjects / error;
        Ok(FTest { statistic, dof: (above as usize, below as usize), p_value: f_sf(statistic, above, below) })
    }

    /// The mean square that subjects are compared with, and the degrees of freedom of both.
    fn error_of(&self, form: Form) -> (f64, f64, f64) {
        let Self { n, k, rest, within, .. } = *self;
        match form {
            Form::OneWay => (within, n - 1.0, n * (k - 1.0)),
            Form::Agreement | Form::Consistency => (rest, n - 1.0, (n - 1.0) * (k - 1.0)),
        }
    }
}

/// Ratings of subjects by raters who each rated all of them, for the mean squares of resamples of the subjects.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RatedSubjects {
    /// One subject after another.
    ratings: Vec<f64>,
    /// Raters, two or more.
    k: usize,
}

impl RatedSubjects {
    /// # Errors
    ///
    /// Those of [`IntraclassCorrelations::new`], but for what is undefined.
    pub(crate) fn new<R: AsRef<[f64]>>(ratings: &[R]) -> Result<Self, Error> {
        let k = ratings.first().map_or(0, |row| row.as_ref().len());
        for found in [ratings.len(), k] {
            if found < 2 {
                return Err(Error::TooFewItems { required: 2, found });
            }
        }
        for (row, ratings) in ratings.iter().enumerate() {
            check_lengths("ratings", ratings.as_ref().len(), "ratings[0]", k)?;
            check_finite("ratings", ratings.as_ref()).map_err(Error::in_row(row))?;
        }
        Ok(Self { ratings: ratings.iter().flat_map(|row| row.as_ref()).copied().collect(), k })
    }

    /// Of some of the subjects, given by their indices, which are below their number, with repetition.
    ///
    /// # Errors
    ///
    /// [`Error::TooFewItems`] for fewer than two; [`Error::Undefined`] where all ratings are one value.
    pub(crate) fn squares(&self, rows: &[usize]) -> Result<IntraclassCorrelations, Error> {
        let (n, k) = (rows.len(), self.k);
        if n < 2 {
            return Err(Error::TooFewItems { required: 2, found: n });
        }
        let mut ratings: Vec<f64> = Vec::with_capacity(n * k);
        rows.iter().for_each(|&row| ratings.extend_from_slice(&self.ratings[row * k..(row + 1) * k]));
        let (subjects_n, raters_n) = (n as f64, k as f64);
        // Correlations and F ratios do not depend on the unit, but squares of very large or small ratings would not be numbers.
        let largest = ratings.iter().fold(0.0, |largest: f64, x| largest.max(x.abs()));
        let unit = unit_of(largest);
        let largest = largest * unit;
        ratings.iter_mut().for_each(|x| *x *= unit);
        let mean = ratings.iter().sum::<f64>() / (subjects_n * raters_n);
        // Deviations first: a common offset costs no accuracy.
        ratings.iter_mut().for_each(|x| *x -= mean);
        let mut of_rater = vec![0.0; k];
        for row in ratings.chunks_exact(k) {
            of_rater.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
        }
        of_rater.iter_mut().for_each(|sum| *sum /= subjects_n);
        let (mut between, mut rest, mut within) = (0.0, 0.0, 0.0);
        for row in ratings.chunks_exact(k) {
            let subject = row.iter().sum::<f64>() / raters_n;
            between += subject * subject;
            for (x, rater) in row.iter().zip(&of_rater) {
                let own = x - subject;
                within += own * own;
                rest += (own - rater).powi(2);
            }
        }
        // Ratings that are the same leave rounding errors of their size, which must not pass for differences.
        let rounding = subjects_n * raters_n * (8.0 * f64::EPSILON * largest).powi(2);
        let clean = |squares: f64| if squares <= rounding { 0.0 } else { squares };
        let (rest, within, between) = (clean(rest), clean(within), clean(raters_n * between));
        let raters = clean(subjects_n * of_rater.iter().map(|x| x * x).sum::<f64>());
        if within == 0.0 && between == 0.0 {
            return Err(Error::Undefined { statistic: STATISTIC, reason: "all ratings are one value" });
        }
        Ok(IntraclassCorrelations {
            n: subjects_n,
            k: raters_n,
            subjects: between / (subjects_n - 1.0),
            raters: raters / (raters_n - 1.0),
            rest: rest / ((subjects_n - 1.0) * (raters_n - 1.0)),
            within: within / (subjects_n * (raters_n - 1.0)),
        })
    }
}

impl McGrawWong {
    pub(crate) fn interval(&self, level: f64) -> Result<Interval, Error> {
        let IntraclassCorrelations { n, k, subjects, raters, rest, .. } = self.squares;
        let (error, above, below) = self.squares.error_of(self.form);
        let upper = (1.0 + level) / 2.0;
        let (low, high) = if self.form == Form::Agreement {
            // Of a single rater, whichever was asked for.
            let icc = self.squares.single_agreement()?;
            let of_raters = raters / rest;
            let share = n * (1.0 + (k - 1.0) * icc) - k * icc;
            let dof = below * (k * icc * of_raters + share).powi(2)
                / ((n - 1.0) * (k * icc * of_raters).powi(2) + share * share);
            // Where raters disagree just as subjects do, the formula's two parts cancel and leave no distribution.
            if dof.is_nan() || dof < 1e-6 {
                return Err(Error::Undefined {
                    statistic: "the interval of an intraclass correlation",
                    reason: "its degrees of freedom (Satterthwaite) vanish",
                });
            }
            let (f_low, f_high) = (f_quantile(upper, n - 1.0, dof), f_quantile(upper, dof, n - 1.0));
            let noise = k * raters + (k * n - k - n) * rest;
            // Divided by the quantile, which overflows where the degrees of freedom vanish: a correlation below what is possible.
            let low = n * (subjects / f_low - rest) / (noise + n * subjects / f_low);
            let high = n * (f_high * subjects - rest) / (noise + n * f_high * subjects);
            if self.of_mean {
                // Spearman and Brown's formula has a pole at -1 / (k - 1), below which no mean of raters corresponds to a single one.
                let of_mean = |icc: f64| match 1.0 + (k - 1.0) * icc {
                    below if below > 0.0 => Ok(k * icc / below),
                    _ => Err(Error::Undefined {
                        statistic: "the interval of an intraclass correlation of means",
                        reason: "that of a single rater reaches below -1 / (k - 1)",
                    }),
                };
                (of_mean(low)?, of_mean(high)?)
            } else {
                (low, high)
            }
        } else {
            let ratio = subjects / error;
            let (low, high) = (ratio / f_quantile(upper, above, below), ratio * f_quantile(upper, below, above));
            let icc = |f: f64| if self.of_mean { 1.0 - 1.0 / f } else { (f - 1.0) / (f + k - 1.0) };
            (icc(low), icc(high))
        };
        Ok(Interval { low, high, level })
    }
}

/// The difference of two mean squares; 0 where rounding alone parts them, as beside a constant rater.
fn less(a: f64, b: f64) -> f64 {
    if (a - b).abs() <= 1e-14 * (a + b) { 0.0 } else { a - b }
}

fn ratio(above: f64, below: f64) -> Result<f64, Error> {
    if below == 0.0 {
        return Err(Error::Undefined { statistic: STATISTIC, reason: "subjects do not differ" });
    }
    Ok(above / below)
}
