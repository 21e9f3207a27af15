use super::mean_squares::{IntraclassForm, McGrawWong, MeanSquares, STATISTIC, less, ratio};
use crate::estimate::{Missing, Spread};
use crate::input::{check_count, check_finite, check_lengths, unit_of};
use crate::means::largest;
use crate::{Error, Estimate, NullDistribution};

/// The mean squares from which all intraclass correlations are made (McGraw and Wong, 1996), of k raters who each rated all of n subjects.
///
/// Each of the six comes with the interval of McGraw and Wong (1996), table 7: exact for normal ratings, but for the two of agreement
/// (Satterthwaite). Its p-value is that of the F test that subjects do not differ, which is one-sided. Neither exists where raters agree
/// exactly, nor an interval where subjects have one mean. The interval of agreement is undefined also where Satterthwaite's degrees of
/// freedom vanish, and that of the mean where the one of a single rater reaches so far below 0 that means have none. None has a standard
/// error. With few raters who differ in level and many subjects the intervals of agreement are too narrow: of three raters with a spread
/// of levels half that of their errors, 95 % intervals held the truth in 94 % of simulated samples of 100 subjects, and in 81 % of those
/// of 1,000: take [`MixedRatings`](super::MixedRatings) for them, as reports do. Of fewer than six subjects that agree less than by chance
/// the interval of agreement can miss its own estimate, as that of `[[5, 1, 0.688], [2, 3, 0.828], [4, 2, 0.722]]` does.
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
#[doc(alias = "intraclass_corr")]
#[doc(alias = "icc")]
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct IntraclassCorrelations(MeanSquares);

const NO_RATIO: &str = "all subjects have the same mean: the F ratio is 0";
const INFINITE: &str = "raters agree exactly: the F ratio is infinite";

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
        let MeanSquares { k, subjects, within, .. } = self.0;
        self.of_one(IntraclassForm::OneWay, ratio(less(subjects, within), subjects + (k - 1.0) * within)?)
    }

    /// ICC(A,1), also ICC2: raters are a sample of all raters, and where they differ in level they do not agree. At most 1.
    ///
    /// # Errors
    ///
    /// [`Error::Undefined`] where the ratings leave 0/0: subjects that do not differ, whatever raters do.
    pub fn agreement(&self) -> Result<Estimate, Error> {
        self.of_one(IntraclassForm::Agreement, self.0.single_agreement()?)
    }

    /// ICC(C,1), also ICC3: raters may differ in level, as long as they do so always. At most 1.
    ///
    /// # Errors
    ///
    /// [`Error::Undefined`] where the ratings leave 0/0: subjects that do not differ, whatever raters do.
    pub fn consistency(&self) -> Result<Estimate, Error> {
        let MeanSquares { k, subjects, rest, .. } = self.0;
        self.of_one(IntraclassForm::Consistency, ratio(less(subjects, rest), subjects + (k - 1.0) * rest)?)
    }

    /// ICC(1,k): [`one_way`](Self::one_way) of the mean of all k raters.
    ///
    /// # Errors
    ///
    /// [`Error::Undefined`] where subjects do not differ.
    pub fn mean_one_way(&self) -> Result<Estimate, Error> {
        self.of_mean(IntraclassForm::OneWay, ratio(less(self.0.subjects, self.0.within), self.0.subjects)?)
    }

    /// ICC(A,k): [`agreement`](Self::agreement) of the mean of all k raters.
    ///
    /// # Errors
    ///
    /// [`Error::Undefined`] where subjects do not differ, or differ so much less than a rater from himself that the variance of a mean is
    /// estimated as 0 or less.
    pub fn mean_agreement(&self) -> Result<Estimate, Error> {
        let variance = self.0.subjects + (self.0.raters - self.0.rest) / self.0.n;
        if variance < 0.0 {
            let reason = "the variance of a subject's mean is estimated below 0";
            return Err(Error::Undefined { statistic: STATISTIC, reason });
        }
        self.of_mean(IntraclassForm::Agreement, ratio(less(self.0.subjects, self.0.rest), variance)?)
    }

    /// ICC(C,k): [`consistency`](Self::consistency) of the mean of all k raters; Cronbach's alpha.
    ///
    /// # Errors
    ///
    /// [`Error::Undefined`] where subjects do not differ.
    pub fn mean_consistency(&self) -> Result<Estimate, Error> {
        self.of_mean(IntraclassForm::Consistency, ratio(less(self.0.subjects, self.0.rest), self.0.subjects)?)
    }

    fn of_one(&self, form: IntraclassForm, estimate: f64) -> Result<Estimate, Error> {
        self.estimate(estimate, McGrawWong { form, of_mean: false, squares: self.0 })
    }

    fn of_mean(&self, form: IntraclassForm, estimate: f64) -> Result<Estimate, Error> {
        self.estimate(estimate, McGrawWong { form, of_mean: true, squares: self.0 })
    }

    fn estimate(&self, estimate: f64, interval: McGrawWong) -> Result<Estimate, Error> {
        let found = Estimate::new(STATISTIC, estimate, self.0.n as usize)?;
        Ok(match self.0.p_value(interval.form) {
            // Ends that follow from a ratio of 0 are both the least that there is.
            Some(p) if self.0.subjects == 0.0 => found.without_interval(NO_RATIO).tested(p, NullDistribution::F),
            Some(p) => found.with_interval(Spread::McGrawWong(interval)).tested(p, NullDistribution::F),
            None => found.without_variation(self.0.n as usize).untested(Missing::Because(INFINITE)),
        })
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
            check_count(2, found)?;
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
        check_count(2, n)?;
        let mut ratings: Vec<f64> = Vec::with_capacity(n * k);
        rows.iter().for_each(|&row| ratings.extend_from_slice(&self.ratings[row * k..(row + 1) * k]));
        let (subjects_n, raters_n) = (n as f64, k as f64);
        // Correlations and F ratios do not depend on the unit, but squares of very large or small ratings would not be numbers.
        let largest = largest(&ratings);
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
        Ok(IntraclassCorrelations(MeanSquares {
            n: subjects_n,
            k: raters_n,
            subjects: between / (subjects_n - 1.0),
            raters: raters / (raters_n - 1.0),
            rest: rest / ((subjects_n - 1.0) * (raters_n - 1.0)),
            within: within / (subjects_n * (raters_n - 1.0)),
        }))
    }
}
