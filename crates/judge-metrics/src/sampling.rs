//! Which items people grade: drawn alike, or by strata of a value, so that rare values are graded too.
//!
//! An item's probability of being drawn goes with it: weighted by its inverse, means over the drawn items estimate those over all
//! ([`weighted_mean`](crate::means::weighted_mean)).

use crate::Error;
use crate::resampling::stream::{Purpose, below, stream};

/// An item that was drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Drawn {
    /// Its place.
    pub item: usize,
    /// With which probability it is drawn.
    pub probability: f64,
}

/// Most strata of numbers.
const STRATA: usize = 5;

/// So many of `items`, each with the same probability, in their order; all of them where there are fewer.
#[must_use]
pub fn draw_alike(items: usize, draws: usize, seed: u64) -> Vec<Drawn> {
    of_strata(&[(0..items).collect()], draws, seed)
}

/// So many items, as evenly as there are some over strata of their values: each value is one where there are at most five, else each fifth
/// of the range between the least and the largest. Items without a value are a stratum of their own. They come in their order; all of them
/// where there are fewer.
///
/// # Errors
/// [`Error::NonFinite`] for a value that is no finite number.
pub fn draw_by_strata(values: &[Option<f64>], draws: usize, seed: u64) -> Result<Vec<Drawn>, Error> {
    let mut known: Vec<f64> = values.iter().flatten().copied().collect();
    if let Some(index) = values.iter().position(|value| value.is_some_and(|value| !value.is_finite())) {
        return Err(Error::NonFinite { argument: "values", index, value: values[index].unwrap_or(f64::NAN) });
    }
    known.sort_by(f64::total_cmp);
    known.dedup();
    let (low, high) = (known.first().copied().unwrap_or(0.0), known.last().copied().unwrap_or(0.0));
    let has_unknown = values.contains(&None);
    // Each stratum needs a draw, or its items could not be drawn at all.
    let most = STRATA.min(draws.saturating_sub(usize::from(has_unknown)));
    let stratum = |value: Option<f64>| match value {
        None if most == 0 => 0,
        None => most,
        Some(value) if known.len() <= most => known.iter().position(|known| *known == value).unwrap_or(0),
        // Halves, since the range of two numbers may be no number.
        Some(value) => {
            let share = (value / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0);
            ((share * most as f64) as usize).min(most.saturating_sub(1))
        }
    };
    let mut strata = vec![Vec::new(); most + 1];
    for (item, value) in values.iter().enumerate() {
        strata[stratum(*value)].push(item);
    }
    Ok(of_strata(&strata, draws, seed))
}

fn of_strata(strata: &[Vec<usize>], draws: usize, seed: u64) -> Vec<Drawn> {
    let mut taken = vec![0_usize; strata.len()];
    for _ in 0..draws {
        let open = (0..strata.len()).filter(|&stratum| taken[stratum] < strata[stratum].len());
        let Some(next) = open.min_by_key(|&stratum| taken[stratum]) else { break };
        taken[next] += 1;
    }
    let mut drawn = Vec::new();
    for (number, (items, &take)) in strata.iter().zip(&taken).enumerate() {
        let probability = take as f64 / items.len() as f64;
        let (mut items, mut stream) = (items.clone(), stream(seed, Purpose::Sample, number));
        for place in 0..take {
            let other = place + below(&mut stream, items.len() - place);
            items.swap(place, other);
            drawn.push(Drawn { item: items[place], probability });
        }
    }
    drawn.sort_by_key(|drawn| drawn.item);
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_drawn_alike_once_each_and_by_the_seed() {
        let drawn = draw_alike(1_000, 100, 3);
        assert!(drawn.windows(2).all(|pair| pair[0].item < pair[1].item));
        assert!(drawn.len() == 100 && drawn.iter().all(|drawn| drawn.probability == 0.1));
        assert_eq!(drawn, draw_alike(1_000, 100, 3));
        assert_ne!(drawn, draw_alike(1_000, 100, 4));
        assert_eq!(draw_alike(3, 100, 0).len(), 3);
        assert!(draw_alike(0, 5, 0).is_empty());
    }

    #[test]
    fn rare_values_are_drawn_and_weights_make_up_for_it() {
        // One row in ten has a low score.
        let values: Vec<Option<f64>> = (0..1_000).map(|i| Some(if i % 10 == 0 { 1.0 } else { 5.0 })).collect();
        let drawn = draw_by_strata(&values, 60, 7).unwrap();
        let low = drawn.iter().filter(|drawn| values[drawn.item] == Some(1.0));
        assert_eq!(low.clone().count(), 30);
        let weight: f64 = drawn.iter().map(|drawn| 1.0 / drawn.probability).sum();
        let of_low: f64 = low.map(|drawn| 1.0 / drawn.probability).sum();
        assert!((weight - 1_000.0).abs() < 1e-9 && (of_low - 100.0).abs() < 1e-9);
    }

    #[test]
    fn every_item_can_be_drawn_whatever_the_values() {
        let values: Vec<Option<f64>> = (0..97).map(|i| (i % 7 != 0).then(|| f64::from(i * i))).collect();
        for draws in [1, 2, 3, 6, 50, 97, 200] {
            let drawn = draw_by_strata(&values, draws, 1).unwrap();
            assert_eq!(drawn.len(), draws.min(97));
            let weight: f64 = drawn.iter().map(|drawn| 1.0 / drawn.probability).sum();
            assert!((weight - 97.0).abs() < 1e-9, "{draws}: {weight}");
        }
        let far = [Some(f64::MIN), Some(f64::MAX), Some(0.0), None];
        assert_eq!(draw_by_strata(&far, 2, 0).unwrap().len(), 2);
        assert!(draw_by_strata(&[Some(f64::NAN)], 1, 0).is_err());
    }
}
