//! What rows drawn with unequal probabilities say of all rows beside means: correlations and kappas of the weighted rows.
//!
//! Each row stands for as many as the inverse of its probability. Correlations and tables of labels are those of all these rows, so what is
//! estimated is what all rows would give; their uncertainty is that of the bootstrap, in which rows keep their weights.

use super::collector::Collector;
use super::{ComparedItem, Labels, Rating};
use crate::Error;
use crate::groups::take;

/// Puts the weighted form in the place of what is undefined without weights.
pub(super) fn fill(found: &mut Collector<'_>, items: &[&ComparedItem], labels: Result<&Labels, &String>) {
    let Some(weights) = found.probabilities().map(|all| all.iter().map(|p| 1.0 / p).collect::<Vec<f64>>()) else {
        return;
    };
    let numbers: Option<(Vec<f64>, Vec<f64>)> =
        items.iter().map(|item| Some((item.predicted.number()?, item.mean_human()?))).collect();
    if let Some((judge, human)) = numbers {
        let of = |rows: &[usize], ranked: bool| {
            let (mut x, mut y, w) = (take(&judge, rows), take(&human, rows), take(&weights, rows));
            if ranked {
                (x, y) = (weighted_ranks(&x, &w), weighted_ranks(&y, &w));
            }
            weighted_pearson(&x, &y, &w)
        };
        found.replace_weighted("pearson", |rows| of(rows, false), items.len());
        found.replace_weighted("spearman", |rows| of(rows, true), items.len());
    }
    let Ok(labels) = labels else { return };
    let place = |rating: &Rating| labels.place(rating).ok();
    let pair = |item: &&ComparedItem| Some((place(&item.predicted)?, place(item.majority()?)?));
    // Rows without a majority say nothing of labels.
    let placed: Vec<Option<(usize, usize)>> = items.iter().map(pair).collect();
    let n_labels = labels.indices().len();
    let worth: Option<Vec<f64>> = labels.values().map(<[f64]>::to_vec);
    let kappa = |rows: &[usize], power: Option<i32>| {
        let of_rows = rows.iter().filter_map(|&row| Some((placed[row]?, weights[row])));
        weighted_kappa(of_rows, n_labels, |a, b| match (power, &worth) {
            (Some(power), Some(worth)) => (worth[a] - worth[b]).abs().powi(power),
            _ => f64::from(u8::from(a != b)),
        })
    };
    found.replace_weighted("cohen_kappa", |rows| kappa(rows, None), items.len());
    if worth.is_some() {
        found.replace_weighted("cohen_kappa_linear", |rows| kappa(rows, Some(1)), items.len());
        found.replace_weighted("cohen_kappa_quadratic", |rows| kappa(rows, Some(2)), items.len());
    }
}

/// The rank of each value among all that the rows stand for, ties in the middle.
fn weighted_ranks(values: &[f64], weights: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let (mut ranks, mut below) = (vec![0.0; values.len()], 0.0);
    for tied in order.chunk_by(|&a, &b| values[a] == values[b]) {
        let weight: f64 = tied.iter().map(|&row| weights[row]).sum();
        tied.iter().for_each(|&row| ranks[row] = below + weight / 2.0);
        below += weight;
    }
    ranks
}

fn weighted_pearson(x: &[f64], y: &[f64], weights: &[f64]) -> Result<f64, Error> {
    let total: f64 = weights.iter().sum();
    let mean = |values: &[f64]| values.iter().zip(weights).map(|(value, weight)| value * weight).sum::<f64>() / total;
    let (mean_x, mean_y) = (mean(x), mean(y));
    let product = |a: &[f64], mean_a: f64, b: &[f64], mean_b: f64| -> f64 {
        a.iter().zip(b).zip(weights).map(|((a, b), weight)| weight * (a - mean_a) * (b - mean_b)).sum()
    };
    let (xx, yy, xy) = (product(x, mean_x, x, mean_x), product(y, mean_y, y, mean_y), product(x, mean_x, y, mean_y));
    let varies = |values: &[f64]| values.windows(2).any(|pair| pair[0] != pair[1]);
    if !varies(x) || !varies(y) || xx <= 0.0 || yy <= 0.0 {
        let reason = "the scores of the judge or of people are all the same";
        return Err(Error::Undefined { statistic: "a weighted correlation", reason });
    }
    Ok((xy / (xx.sqrt() * yy.sqrt())).clamp(-1.0, 1.0))
}

/// One less the weighted share of disagreement by that of chance, both by this distance.
fn weighted_kappa(
    rows: impl Iterator<Item = ((usize, usize), f64)>,
    labels: usize,
    distance: impl Fn(usize, usize) -> f64,
) -> Result<f64, Error> {
    let (mut judge, mut human, mut total, mut observed) = (vec![0.0; labels], vec![0.0; labels], 0.0, 0.0);
    for ((a, b), weight) in rows {
        judge[a] += weight;
        human[b] += weight;
        total += weight;
        observed += weight * distance(a, b);
    }
    let by_chance: f64 = (0..labels)
        .flat_map(|a| (0..labels).map(move |b| (a, b)))
        .map(|(a, b)| judge[a] * human[b] * distance(a, b))
        .sum();
    if total <= 0.0 || by_chance <= 0.0 {
        let reason = "judge and people give one label alone";
        return Err(Error::Undefined { statistic: "a weighted kappa", reason });
    }
    Ok(1.0 - observed * total / by_chance)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of weight 2 are two rows.
    #[test]
    fn weighted_rows_are_as_many_rows_each() {
        let (x, y) = ([1.0, 2.0, 3.0, 4.0, 4.0], [2.0, 1.0, 3.0, 5.0, 4.0]);
        let weights = [1.0, 2.0, 1.0, 3.0, 1.0];
        let repeated = |values: &[f64]| -> Vec<f64> {
            values.iter().zip(weights).flat_map(|(&value, weight)| vec![value; weight as usize]).collect()
        };
        let (many_x, many_y) = (repeated(&x), repeated(&y));
        let of = |x: &[f64], y: &[f64], w: &[f64]| {
            weighted_pearson(&weighted_ranks(x, w), &weighted_ranks(y, w), w).unwrap()
        };
        let pearson = crate::correlation::pearson(&many_x, &many_y).unwrap().estimate;
        assert!((weighted_pearson(&x, &y, &weights).unwrap() - pearson).abs() < 1e-12);
        let spearman = crate::correlation::spearman(&many_x, &many_y).unwrap().estimate;
        assert!((of(&x, &y, &weights) - spearman).abs() < 1e-12);
        let labels = [(0, 0), (1, 0), (1, 1), (2, 2), (0, 2)];
        let squared = |a: usize, b: usize| (a as f64 - b as f64).powi(2);
        let once = weighted_kappa(labels.into_iter().zip(weights), 3, squared).unwrap();
        let many = labels.into_iter().zip(weights).flat_map(|(pair, weight)| vec![(pair, 1.0); weight as usize]);
        assert!((once - weighted_kappa(many, 3, squared).unwrap()).abs() < 1e-12);
        assert!(weighted_kappa([((0, 0), 1.0)].into_iter(), 2, squared).is_err());
        assert!(weighted_pearson(&[1.0, 1.0], &[1.0, 2.0], &[1.0, 2.0]).is_err());
    }
}
