//! The score of a table, by each variant.

use super::{LayerTable, States, Variant};
use crate::scale::{argmax, softmax};
use crate::{Error, Layer, Scale, scale::ScoreDistribution};

/// A score and the distribution whose expected value it is.
#[derive(Clone, Debug, PartialEq)]
pub struct VariantScore {
    /// The score, in units of the scale.
    pub score: f64,
    /// The distribution. `None` for a variant that takes the largest entry, and for [`Variant::LastExpectedBf16`].
    pub distribution: Option<ScoreDistribution>,
}

impl Variant {
    /// The score of one table that holds every layer of the model, from 0 to the last, for a variant that needs no weights;
    /// [`LayerWeights::score`](super::LayerWeights::score) is for all.
    ///
    /// # Errors
    /// [`Error::WeightsNeeded`]; [`Error::Shape`] if table and scale do not fit each other or `states` leaves no layer.
    pub fn score(self, table: &LayerTable, scale: &Scale, states: States) -> Result<VariantScore, Error> {
        self.score_with(table, scale, states, None)
    }

    /// The same with one weight per layer of `states`, not negative, with sum 1, for variants that need them.
    pub(super) fn score_with(
        self,
        table: &LayerTable,
        scale: &Scale,
        states: States,
        weights: Option<&[f64]>,
    ) -> Result<VariantScore, Error> {
        Error::check_count("scores of a table", scale.len(), table.n_scores())?;
        let n_rows = table.rows().len();
        if let Some((layer, _)) = (0..n_rows).map(Layer).zip(table.layers()).find(|(layer, found)| layer != *found) {
            return Err(Error::LayerNotRead { layer });
        }
        let n_states = states.count(n_rows - 1); // a table has at least one row
        if n_states == 0 {
            return Err(Error::shape("layers of a table to drop the last of, at least", 2, n_rows));
        }
        let rows = || table.rows().take(n_states);
        let last = &table.logits()[table.logits().len() - table.n_scores()..];
        let weights = match weights {
            Some(weights) if self.needs_weights() => checked(weights, n_states)?,
            None if self.needs_weights() => return Err(Error::WeightsNeeded { variant: self }),
            _ => &[],
        };
        let logits = |weight: &dyn Fn(usize) -> f64| combine(rows().map(<[f64]>::to_vec), weight, table.n_scores());
        let probabilities = |weight: &dyn Fn(usize) -> f64| combine(rows().map(softmax), weight, table.n_scores());
        let (by_weight, plain, mean) = (|l: usize| weights[l], |_: usize| 1.0, |_: usize| 1.0 / n_states as f64);

        let distribution = match self {
            Self::LastMode => return Ok(top(scale, last)),
            Self::LastExpected => ScoreDistribution::softmax(scale, last),
            Self::WeightedExpected => ScoreDistribution::softmax(scale, &logits(&by_weight)),
            Self::MeanExpected => ScoreDistribution::softmax(scale, &logits(&mean)),
            Self::WeightedMode => return Ok(top(scale, &logits(&by_weight))),
            Self::MeanMode => return Ok(top(scale, &logits(&plain))),
            Self::WeightedResoftmaxExpected => ScoreDistribution::softmax(scale, &probabilities(&by_weight)),
            Self::WeightedProbabilityMode => return Ok(top(scale, &probabilities(&by_weight))),
            Self::SumResoftmaxExpected => ScoreDistribution::softmax(scale, &probabilities(&plain)),
            Self::SumProbabilityMode => return Ok(top(scale, &probabilities(&plain))),
            Self::WeightedProbabilityExpected => ScoreDistribution::from_weights(scale, &probabilities(&by_weight)),
            Self::LastExpectedBf16 => return Ok(VariantScore { score: e_score_bf16(scale, last), distribution: None }),
        }?;
        Ok(VariantScore { score: distribution.expected(), distribution: Some(distribution) })
    }
}

fn checked(weights: &[f64], n_states: usize) -> Result<&[f64], Error> {
    Error::check_count("layer weights", n_states, weights.len())?;
    let sum: f64 = weights.iter().sum();
    if weights.iter().any(|&w| w.is_nan() || w < 0.0) || (sum - 1.0).abs() > 1e-6 {
        return Err(Error::NotADistribution { weights: weights.to_vec() });
    }
    Ok(weights)
}

/// The sum over layers of weight times row.
fn combine(rows: impl Iterator<Item = Vec<f64>>, weight: &dyn Fn(usize) -> f64, n_scores: usize) -> Vec<f64> {
    let mut sum = vec![0.0; n_scores];
    for (l, row) in rows.enumerate() {
        let w = weight(l);
        sum.iter_mut().zip(row).for_each(|(s, z)| *s += w * z);
    }
    sum
}

/// The point with the largest entry.
fn top(scale: &Scale, values: &[f64]) -> VariantScore {
    let point = &scale.points()[argmax(values)]; // one value per point: the table fits the scale
    VariantScore { score: point.value, distribution: None }
}

fn e_score_bf16(scale: &Scale, logits: &[f64]) -> f64 {
    let rounded: Vec<f64> = logits.iter().map(|&z| round_bf16(z)).collect();
    scale.values().zip(softmax(&rounded)).map(|(value, p)| value * round_bf16(p)).sum()
}

/// To the nearest bfloat16 by way of `f32`, ties to even, as PyTorch stores the result of a bfloat16 softmax.
fn round_bf16(value: f64) -> f64 {
    let bits = (value as f32).to_bits();
    let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) & 0xffff_0000;
    f64::from(f32::from_bits(rounded))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Every variant, the one for reproduction included.
    fn all() -> impl Iterator<Item = Variant> {
        Variant::ALL.into_iter().chain([Variant::LastExpectedBf16])
    }

    fn score(variant: Variant, rows: &[Vec<f64>], states: States, weights: &[f64]) -> f64 {
        let scale = Scale::integers(1, rows[0].len() as i32).unwrap();
        let table = LayerTable::from_rows(rows).unwrap();
        variant.score_with(&table, &scale, states, Some(weights)).unwrap().score
    }

    /// The worked example in the project's notes on LAGER: four layers, theta 0, 0.5, 1, 1.5 cut to the layers in use.
    #[test]
    fn worked_example() {
        let rows = [
            vec![0.1, 0.0, -0.1, 0.05, 0.2],
            vec![0.3, -0.2, 0.1, 0.6, 0.2],
            vec![-1.0, 0.5, 1.5, 2.0, 1.0],
            vec![10.0, 11.0, 13.5, 16.0, 15.0],
        ];
        let theta = [0.0, 0.5, 1.0, 1.5];
        let printed = |states, weights: &[&str], numbers: &[(Variant, &str)]| {
            let w = softmax(&theta[..weights.len()]);
            assert_eq!(w.iter().map(|w| format!("{w:.6}")).collect::<Vec<_>>(), weights);
            for &(variant, expected) in numbers {
                assert_eq!(format!("{:.6}", score(variant, &rows, states, &w)), expected, "{variant} {states}");
            }
            for variant in all().filter(|v| v.as_str().contains("max")) {
                assert_eq!(score(variant, &rows, states, &w), 4.0, "{variant} {states}");
            }
        };
        let both = [(Variant::LastMode, "4.000000"), (Variant::LastExpected, "4.181528")];
        let all_states = [
            (Variant::WeightedExpected, "4.002374"),
            (Variant::MeanExpected, "3.799417"),
            (Variant::WeightedResoftmaxExpected, "3.150295"),
            (Variant::SumResoftmaxExpected, "3.404879"),
        ];
        let dropped = [
            (Variant::WeightedExpected, "3.482260"),
            (Variant::MeanExpected, "3.377744"),
            (Variant::WeightedResoftmaxExpected, "3.073205"),
            (Variant::SumResoftmaxExpected, "3.161975"),
        ];
        printed(States::All, &["0.101536", "0.167405", "0.276004", "0.455054"], &[&both[..], &all_states].concat());
        printed(States::DropLast, &["0.186324", "0.307196", "0.506480"], &[&both[..], &dropped].concat());
    }

    #[test]
    fn the_mean_distribution_is_a_mean_of_expectations() {
        let rows = [vec![0.3, -0.2, 0.6], vec![-1.0, 0.5, 2.0]];
        let mean = score(Variant::WeightedProbabilityExpected, &rows, States::All, &[0.25, 0.75]);
        let each = [0, 1].map(|l| score(Variant::LastExpected, &rows[..=l], States::All, &[]));
        approx(mean, 0.25 * each[0] + 0.75 * each[1]);
    }

    #[test]
    fn values_are_the_scales_own() {
        let point = |value, label: &str| crate::scale::ScalePoint { value, label: label.into() };
        let scale = Scale::new(vec![point(-1.0, "bad"), point(0.5, "fair"), point(10.0, "good")]).unwrap();
        let table = LayerTable::from_rows(&[vec![0.0, 0.0, 0.0], vec![0.0, 1.0, 2.0]]).unwrap();
        let direct = Variant::LastMode.score_with(&table, &scale, States::All, None).unwrap();
        assert_eq!(direct.score, 10.0);
        assert_eq!(direct.distribution, None, "the largest entry is no distribution");
        let flat = Variant::MeanExpected.score_with(&table, &scale, States::DropLast, None).unwrap();
        approx(flat.score, 9.5 / 3.0);
        let tie = Variant::MeanMode.score_with(&table, &scale, States::DropLast, None).unwrap();
        assert_eq!(tie.score, -1.0);
    }

    #[test]
    fn names_are_the_references() {
        for variant in all() {
            assert_eq!(variant.as_str().parse::<Variant>().unwrap(), variant);
            assert_eq!(serde_json::to_value(variant).unwrap(), variant.as_str());
        }
        let Err(Error::UnknownName { found, known, .. }) = "lager".parse::<Variant>() else {
            panic!("no such variant")
        };
        assert_eq!((found.as_str(), known.len()), ("lager", 12));
        assert!("drop_last".parse::<States>().is_err());
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        let scale = Scale::integers(1, 2).unwrap();
        let table = LayerTable::from_rows(&[vec![0.0, 1.0], vec![0.0, 1.0]]).unwrap();
        let lager = |weights| Variant::WeightedExpected.score_with(&table, &scale, States::All, weights);
        assert!(matches!(lager(None), Err(Error::WeightsNeeded { variant: Variant::WeightedExpected })));
        assert!(matches!(lager(Some(&[1.0])), Err(Error::Shape { expected: 2, found: 1, .. })));
        assert!(matches!(lager(Some(&[1.5, -0.5])), Err(Error::NotADistribution { .. })));
        assert!(matches!(lager(Some(&[f64::NAN, 1.0])), Err(Error::NotADistribution { .. })));
        assert!(matches!(lager(Some(&[1.0, 1.0])), Err(Error::NotADistribution { .. })));
        let five = Scale::integers(1, 5).unwrap();
        assert!(matches!(Variant::LastExpected.score_with(&table, &five, States::All, None), Err(Error::Shape { .. })));
        let one = LayerTable::from_rows(&[vec![0.0, 1.0]]).unwrap();
        assert!(matches!(
            Variant::MeanExpected.score_with(&one, &scale, States::DropLast, None),
            Err(Error::Shape { .. })
        ));
    }

    #[test]
    fn rounding_to_bfloat16_ties_to_even() {
        assert_eq!(round_bf16(1.0 + 2f64.powi(-8)), 1.0);
        assert_eq!(round_bf16(1.0 + 3.0 * 2f64.powi(-8)), 1.0 + 2f64.powi(-6));
        assert_eq!(round_bf16(-17.06), -17.0);
        assert_eq!(round_bf16(0.0), 0.0);
    }

    fn approx(a: f64, b: f64) {
        assert!((a - b).abs() <= 1e-9 * (1.0 + a.abs()), "{a} {b}");
    }

    prop_compose! {
        fn table()(n_scores in 2usize..8, n_layers in 2usize..7)
            (rows in prop::collection::vec(prop::collection::vec(-8.0..8.0, n_scores), n_layers)) -> Vec<Vec<f64>> {
            rows
        }
    }

    proptest! {
        #[test]
        fn scores_stay_on_the_scale(rows in table(), theta in prop::collection::vec(-5.0..5.0, 7)) {
            let scale = Scale::integers(1, rows[0].len() as i32).unwrap();
            for states in [States::All, States::DropLast] {
                let weights = softmax(&theta[..states.count(rows.len() - 1)]);
                for variant in Variant::ALL {
                    let table = LayerTable::from_rows(&rows).unwrap();
                    let scored = variant.score_with(&table, &scale, states, Some(&weights)).unwrap();
                    prop_assert!((1.0 - 1e-12..=rows[0].len() as f64 + 1e-12).contains(&scored.score));
                    prop_assert_eq!(scored.distribution.is_some(), variant.has_distribution());
                    if let Some(distribution) = scored.distribution {
                        prop_assert!((distribution.probabilities().iter().sum::<f64>() - 1.0).abs() < 1e-12);
                        prop_assert_eq!(scored.score.to_bits(), distribution.expected().to_bits());
                    }
                }
            }
        }

        /// Softmax does not see a constant added to a layer's logits, and no variant looks at logits in another way
        /// (but for the rounding of the bfloat16 one).
        #[test]
        fn a_constant_per_layer_changes_nothing(rows in table(), shifts in prop::collection::vec(-9.0..9.0, 7)) {
            let shifted: Vec<Vec<f64>> = rows.iter().zip(&shifts).map(|(r, c)| r.iter().map(|z| z + c).collect()).collect();
            let weights = softmax(&shifts[..rows.len()]);
            for variant in Variant::ALL {
                approx(score(variant, &rows, States::All, &weights), score(variant, &shifted, States::All, &weights));
            }
        }

        /// With equal weights, tuned and untuned are one.
        #[test]
        fn equal_weights_are_no_weights(rows in table()) {
            let weights = vec![1.0 / rows.len() as f64; rows.len()];
            let same = |a, b| approx(score(a, &rows, States::All, &weights), score(b, &rows, States::All, &weights));
            same(Variant::WeightedExpected, Variant::MeanExpected);
            same(Variant::WeightedMode, Variant::MeanMode);
            same(Variant::WeightedProbabilityMode, Variant::SumProbabilityMode);
        }

        /// Swapping two layers together with their weights changes nothing, as long as the last stays last.
        #[test]
        fn the_order_of_inner_layers_does_not_matter(rows in table(), theta in prop::collection::vec(-5.0..5.0, 7)) {
            let mut swapped = rows.clone();
            let mut weights = softmax(&theta[..rows.len()]);
            let before: Vec<f64> = Variant::ALL.iter().map(|v| score(*v, &rows, States::All, &weights)).collect();
            let inner = rows.len() - 1;
            swapped[..inner].reverse();
            weights[..inner].reverse();
            for (variant, before) in Variant::ALL.into_iter().zip(before) {
                approx(score(variant, &swapped, States::All, &weights), before);
            }
        }
    }
}
