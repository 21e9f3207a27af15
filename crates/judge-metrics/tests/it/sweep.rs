//! Every statistic of a report on odd tables: columns without a label in common, constant columns, decimals that are off by the same
//! amount, tables of a few rows, raters with gaps. What holds of all of them: nothing is NaN, no interval has zero width or misses its
//! estimate, and an estimate of 0 is never significant.

use judge_metrics::agreement::{AgreementWeights, ConfusionMatrix};
use judge_metrics::comparison::{ComparedItem, NO_VARIATION, Rating};

use crate::compared::compared;

/// Numbers from 0 to 1 that look random, the same ones for each seed.
fn noise(seed: u64, n: usize) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    (0..n + 8).map(|_| next()).skip(8).collect()
}

fn grades(seed: u64, n: usize, from: f64, count: f64) -> Vec<f64> {
    noise(seed, n).iter().map(|x| from + (x * count).floor()).collect()
}

/// A judge, people, another judge, and what rows have besides.
type Table = (String, Vec<ComparedItem>);

fn table(what: &str, judge: &[f64], raters: &[impl AsRef<[f64]>], second: Option<&[f64]>) -> Table {
    let number = |x: f64| Rating::Number(x);
    let row = |i: usize| ComparedItem {
        second: second.map(|second| number(second[i])),
        ..ComparedItem::new(number(judge[i]), raters.iter().map(|rater| number(rater.as_ref()[i])))
    };
    (format!("{what}, {} rows", judge.len()), (0..judge.len()).map(row).collect())
}

fn shifted(values: &[f64], by: f64) -> Vec<f64> {
    values.iter().map(|x| x + by).collect()
}

fn tables() -> Vec<Table> {
    let mut tables = Vec::new();
    for n in [1, 2, 3, 4, 5, 6, 7, 40] {
        let seed = n as u64;
        let (low, high) = (grades(seed, n, 1.0, 3.0), grades(seed + 50, n, 4.0, 3.0));
        let people = grades(seed + 100, n, 1.0, 5.0);
        let coin = grades(seed + 150, n, 0.0, 2.0);
        let scores = noise(seed + 200, n);
        let threes = |judge: &[f64]| vec![people.clone(), judge.to_vec(), grades(seed + 250, n, 1.0, 5.0)];
        tables.extend([
            table("no label in common", &high, &[&low], None),
            table("no label in common, two judges", &high, &[&low], Some(&shifted(&high, 3.0))),
            table("a constant judge", &vec![3.0; n], &[&people], Some(&people)),
            table("constant people", &people, &[vec![3.0; n]], Some(&low)),
            table("all constant", &vec![2.0; n], &[vec![2.0; n]], Some(&vec![2.0; n])),
            table("the same", &people, &[&people], Some(&people)),
            table("off by 0.3", &shifted(&people, 0.3), &[&people], Some(&shifted(&people, 0.6))),
            table("off by 1", &shifted(&people, 1.0), &[&people], Some(&shifted(&people, -1.0))),
            table("off by 100.1", &shifted(&people, 100.1), &[&people], Some(&shifted(&people, 100.1))),
            table("a third of it", &people.iter().map(|x| x / 3.0).collect::<Vec<_>>(), &[&people], Some(&people)),
            table("scores and grades", &scores, &[&people], Some(&noise(seed + 300, n))),
            table("scores and a coin", &scores, &[&coin], Some(&scores)),
            table("two coins", &coin, &[grades(seed + 350, n, 0.0, 2.0)], Some(&low)),
            table("always 0 beside a coin", &vec![0.0; n], &[&coin], Some(&vec![1.0; n])),
            table("turned round", &people.iter().map(|x| 6.0 - x).collect::<Vec<_>>(), &[&people], None),
            table("three raters", &low, &threes(&people), Some(&high)),
            table("three raters alike", &people, &vec![people.clone(); 3], None),
            table("raters without a label in common", &low, &[low.clone(), high.clone(), shifted(&high, 3.0)], None),
            table("raters off by 0.3", &low, &[people.clone(), shifted(&people, 0.3), shifted(&people, 0.6)], None),
        ]);
        // Each third row lacks a rating, and one rater all.
        for (what, lacks) in [("gaps", [true, false]), ("an absent rater", [false, true]), ("both", [true, true])] {
            for raters in [threes(&people), vec![people.clone(); 4], threes(&vec![1.0; n])] {
                let (_, mut items) = table("", &low, &raters, None);
                for (i, item) in items.iter_mut().enumerate() {
                    if lacks[0] && i % 3 == 0 {
                        item.human[i / 3 % raters.len()] = None;
                    }
                    if lacks[1] {
                        item.human[raters.len() - 1] = None;
                    }
                }
                tables.push((format!("{what}, {n} rows"), items));
            }
        }
    }
    let in_clusters = |(what, items): &Table| {
        let named =
            |(i, item): (usize, &ComparedItem)| ComparedItem { cluster: Some((i / 3).to_string()), ..item.clone() };
        (format!("{what}, in clusters"), items.iter().enumerate().map(named).collect())
    };
    let clustered: Vec<Table> = tables.iter().map(in_clusters).collect();
    tables.extend(clustered);
    tables
}

/// A kappa of judge 4 to 6 and people 1 to 3 had p < 1e-300 at an estimate of 2e-16:
/// <https://github.com/jmgirard/mReliability/issues/2>, <https://github.com/dkpro/dkpro-statistics/issues/13>.
#[test]
fn no_statistic_of_an_odd_table_is_certain_by_rounding() {
    let mut wrong = Vec::new();
    for (what, items) in tables() {
        let n = items.len();
        for (name, statistic) in compared(items, 100, None).statistics {
            let Some(known) = statistic.defined() else { continue };
            let mut fault = |which: &str| wrong.push(format!("{what}: {name}: {which}: {known:?}"));
            if !known.estimate.is_finite() || known.p.is_some_and(|p| !(0.0..=1.0).contains(&p)) {
                fault("not a number");
            }
            // An area of ½ is the one that chance gives, and F is tested on one side.
            let least = if name == "auroc" {
                0.0
            } else if name.contains("icc") {
                0.4
            } else {
                0.95
            };
            if known.estimate.abs() < 1e-12 && known.p.is_some_and(|p| p < least) {
                fault("significant at 0");
            }
            if let Some(interval) = known.interval {
                if interval.high - interval.low <= 1e-9 {
                    fault("zero width");
                }
                if !(interval.low <= known.estimate && known.estimate <= interval.high) {
                    fault("misses its estimate");
                }
            }
            if known.no_variation != known.method.starts_with(NO_VARIATION) || known.no_variation && n < 6 {
                fault("variation");
            }
            // Permutations of so few rows show no less.
            let orders: f64 = (1..=n).map(|i| i as f64).product();
            let of_agreement = name.contains("cohen_kappa") || name.starts_with("krippendorff");
            if of_agreement && !what.contains("clusters") && known.p.is_some_and(|p| p < 1.0 / orders.min(10_000.0)) {
                fault("below what permutations show");
            }
        }
    }
    assert!(wrong.is_empty(), "{} of them:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_kappa_of_columns_without_a_label_in_common_has_no_test() {
    for n in [2, 3, 20, 100, 1_000] {
        for k in [2, 3, 5, 7] {
            let people: Vec<usize> = (0..n).map(|i| i * 7 % k).collect();
            let judge: Vec<usize> = (0..n).map(|i| k + i * 5 % k).collect();
            let matrix = ConfusionMatrix::new((0..2 * k).collect(), &people, &judge).unwrap();
            let kappa = matrix.cohen_kappa(&AgreementWeights::Identity).unwrap();
            assert_eq!((kappa.estimate, kappa.p_value().is_err()), (0.0, true), "{n}, {k}: {kappa:?}");
        }
    }
}
