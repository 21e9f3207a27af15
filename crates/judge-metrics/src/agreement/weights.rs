use crate::Error;
use crate::input::{check_finite, check_lengths, check_varies, unit_of};
use crate::means::largest;

/// How much two labels count as agreement, from 0 to 1: all of it where they are the same.
#[derive(Debug, Clone, PartialEq)]
pub enum AgreementWeights {
    /// Different labels do not agree at all.
    Identity,
    /// Less by the distance of the labels' places in the list: `weights="linear"` of scikit-learn.
    Linear,
    /// Less by the square of that distance: `weights="quadratic"` of scikit-learn.
    Quadratic,
    /// Less by the number of pairs of labels from one to the other, ends included (Gwet, *Handbook of Inter-Rater Reliability*, chapter 3).
    Ordinal,
    /// Less by the distance of the labels' values, one for each label.
    LinearOf(Vec<f64>),
    /// Less by the square of the distance of the labels' values, one for each label.
    QuadraticOf(Vec<f64>),
}

impl AgreementWeights {
    /// Row-major `[n_labels, n_labels]`.
    pub(crate) fn matrix(&self, n_labels: usize) -> Result<Vec<f64>, Error> {
        let places: Vec<f64> = (0..n_labels).map(|place| place as f64).collect();
        let (values, distance): (&[f64], fn(f64) -> f64) = match self {
            Self::Identity => (&places, |d| f64::from(u8::from(d != 0.0))),
            Self::Linear => (&places, |d| d),
            Self::Quadratic => (&places, |d| d * d),
            Self::Ordinal => (&places, |d| d * (d + 1.0) / 2.0),
            Self::LinearOf(values) => (values, |d| d),
            Self::QuadraticOf(values) => (values, |d| d * d),
        };
        check_lengths("values", values.len(), "labels", n_labels)?;
        check_finite("values", values)?;
        check_varies("values", values)?;
        // Weights do not depend on the unit of the values.
        let unit = unit_of(largest(values));
        let values: Vec<f64> = values.iter().map(|value| value * unit).collect();
        let distances: Vec<f64> =
            values.iter().flat_map(|a| values.iter().map(move |b| distance((a - b).abs()))).collect();
        let largest = largest(&distances);
        Ok(distances.into_iter().map(|distance| 1.0 - distance / largest).collect())
    }
}
