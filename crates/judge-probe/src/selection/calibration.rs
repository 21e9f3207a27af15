//! What a probe's numbers mean on people's scale, learnt from rows that the fits had not seen. The calibrators themselves are those of
//! `judge_metrics::calibration`; keeping one with its probe is up to [`SavedProbe`](crate::SavedProbe).

use judge_metrics::calibration::{Calibrator, FittedCalibrator};

use crate::selection::cross_validation::{by_row, check_partition, in_each_split};
use crate::{Error, Estimator, IntoProbe, Matrix, Split};

/// The [number](crate::FittedProbe::scores) of each row by a fit that has not learnt from it, in the order of the rows: the class expected
/// under the probabilities, or the function of a regression kept to its scale.
///
/// It differs from the expected classes of [`cross_val_predict`](crate::cross_val_predict) in that it is what the probe is going to answer,
/// for every kind of probe that can be saved: [`RidgeToClass`](crate::RidgeToClass), too, which has a number but no probabilities.
///
/// # Errors
///
/// Those of [`cross_val_predict`](crate::cross_val_predict); [`Error::NoNumber`] for a probe that knows classes alone, such as a support
/// vector machine.
pub fn out_of_fold_scores<E>(
    estimator: &E,
    features: &Matrix,
    labels: &[i64],
    splits: &[Split],
) -> Result<Vec<f64>, Error>
where
    E: Estimator<Label = i64, Fitted: IntoProbe>,
{
    check_partition(splits, features.n_rows())?;
    let scores = in_each_split(features, labels, splits, |_, data| {
        let probe = estimator.fit(&data.train, &data.train_labels)?.into_probe()?;
        probe.scores(&data.test)?.ok_or(Error::NoNumber { rule: probe.classifier().rule() })
    })?;
    Ok(by_row(splits, scores))
}

/// A calibrator of the [out-of-fold scores](out_of_fold_scores) of n rows to what people said of them, `human` `[n]`, finite and on any
/// scale.
///
/// The probe that is used afterwards is fitted to all rows, and so is none of the fits that were calibrated. What is calibrated is the
/// *procedure*: how far numbers of a probe that was fitted this way, to nearly as many rows, are from what people say of a row that it has
/// not seen. The final probe has seen a few rows more and is no worse on average, so its intervals are seldom too narrow; scores of rows
/// that it was fitted to are nearer to the truth than the calibrator knows, and calibrating *them* would promise too much.
///
/// `splits` decides what counts as unseen: with rows of one question in several folds the calibrator learns from scores that are better
/// than those of a new question. Where new questions are to be judged, split by question ([`GroupKFold`](crate::GroupKFold)) and fit the
/// calibrator by question too: [`out_of_fold_scores`], then [`Calibrator::fit_clustered`]. The settings
/// of the estimator must not have been chosen for their predictions on these very rows, or else the choice counts as part of the procedure
/// and must be repeated in every split.
///
/// ```
/// use judge_metrics::calibration::Calibrator;
/// use judge_probe::{Estimator, IntoProbe, KFold, Matrix, RidgeToClass, calibrate_out_of_fold};
///
/// # fn main() -> Result<(), judge_probe::Error> {
/// // Classes 1 to 3 by rows, of which people used a scale to 100.
/// let features = Matrix::from_rows((0..60).map(|row| [f64::from(row % 30), f64::from(row * row % 7)]))?;
/// let classes: Vec<i64> = (0..60).map(|row| 1 + (row % 30) / 10).collect();
/// let people: Vec<f64> = classes.iter().zip(0..).map(|(&class, row)| (20 * class + row % 5) as f64).collect();
///
/// let folds = KFold { n_splits: 5, shuffle: Some(0) }.split(60)?;
/// let settings = Calibrator { range: Some([0.0, 100.0]), ..Calibrator::default() };
/// let calibrator = calibrate_out_of_fold(&RidgeToClass::default(), &features, &classes, &people, &folds, settings)?;
///
/// let probe = RidgeToClass::default().fit(&features, &classes)?.into_probe()?;
/// let number = probe.scores(&Matrix::from_rows([[15.0, 3.0]])?)?.unwrap_or_default()[0];
/// let calibrated = calibrator.calibrate(number)?;
/// assert!((38.0..46.0).contains(&calibrated.value));
/// assert!(calibrated.interval.low < 42.0 && 42.0 < calibrated.interval.high);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// Those of [`out_of_fold_scores`]; [`Error::Metric`] with those of [`Calibrator::fit`], such as too few rows for its level.
pub fn calibrate_out_of_fold<E>(
    estimator: &E,
    features: &Matrix,
    labels: &[i64],
    human: &[f64],
    splits: &[Split],
    calibrator: Calibrator,
) -> Result<FittedCalibrator, Error>
where
    E: Estimator<Label = i64, Fitted: IntoProbe>,
{
    Ok(calibrator.fit(&out_of_fold_scores(estimator, features, labels, splits)?, human)?)
}
