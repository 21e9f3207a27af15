//! What preferences on pairs are worth where verdicts follow the place, and the tally of verdicts that nobody has graded.

use judge_metrics::Error;
use judge_metrics::comparison::{
    PairStatistic, PairTally, PreferenceComparison, PreferredPair, Statistic, TalliedPair,
};
use judge_metrics::preference::Preference::{self, First, Second, Tie};
use judge_metrics::preference::{PairReading, mean_log_odds, place_offset, place_pull};
use judge_metrics::resampling::Bootstrap;
use proptest::prelude::*;

use crate::preference_properties::preference;

/// The probability of log-odds.
fn logistic(odds: f64) -> f64 {
    1.0 / (1.0 + (-odds).exp())
}

/// A reading of these log-odds of the first item.
fn reading(odds: f64) -> PairReading {
    PairReading::from_probabilities(logistic(odds), logistic(-odds), 0.0).unwrap()
}

fn statistics(pairs: Vec<PreferredPair>) -> Vec<PairStatistic> {
    let bootstrap = Bootstrap { resamples: 50, ..Bootstrap::default() };
    let all: Vec<usize> = (0..pairs.len()).collect();
    PreferenceComparison { pairs, bootstrap }.statistics(&all)
}

fn known<'s>(found: &'s [PairStatistic], name: &str) -> &'s PairStatistic {
    found.iter().find(|known| known.name == name).unwrap()
}

fn estimate(found: &[PairStatistic], name: &str) -> f64 {
    known(found, name).statistic.estimate().unwrap()
}

/// A judge that adds 3 to the log-odds of whatever is shown first, and knows a little of the items.
fn placed(gold: &[Preference], quality: &[f64]) -> (Vec<[Preference; 2]>, Vec<PreferredPair>) {
    let of = |(&gold, &quality): (&Preference, &f64)| {
        let orders = [reading(3.0 + quality), reading(3.0 - quality).swapped()];
        let verdicts = orders.map(|order| order.by_probability());
        (verdicts, PreferredPair { gold, orders: orders.into(), layers: vec![quality, -quality], cluster: None })
    };
    gold.iter().zip(quality).map(of).unzip()
}

#[test]
fn averaged_log_odds_are_right_where_every_verdict_names_the_first_place() {
    let gold = [First, Second, First, First, Second, Second, First, Second];
    let quality = [1.0, -0.5, 0.25, -0.75, -1.5, -2.0, 2.5, 0.5];
    let (verdicts, pairs) = placed(&gold, &quality);
    assert!(verdicts.iter().all(|verdicts| *verdicts == [First, Second]), "the place decides");
    let found = statistics(pairs.clone());
    // The two that are wrong: 0.75 the wrong way, and 0.5.
    assert_eq!(estimate(&found, "accuracy_mean_log_odds"), 0.75);
    assert_eq!(estimate(&found, "accuracy_mean_probability"), 0.75);
    assert_eq!(estimate(&found, "majority_share"), 0.5);
    // (l1 + l2) / 2 = ((3 + q) - (3 - q)) / 2 = q.
    for (pair, quality) in pairs.iter().zip(quality) {
        assert!((PairReading::mean(&pair.orders).unwrap().log_odds() - quality).abs() < 1e-12);
    }
    let brier = |p: &dyn Fn(usize) -> f64| -> f64 {
        (0..8).map(|row| (p(row) - gold[row].credit()).powi(2)).sum::<f64>() / 8.0
    };
    let of_odds = brier(&|row| logistic(quality[row]));
    assert!((estimate(&found, "brier_mean_log_odds") - of_odds).abs() < 1e-12);
    let of_probability = brier(&|row| f64::midpoint(logistic(3.0 + quality[row]), 1.0 - logistic(3.0 - quality[row])));
    assert!((estimate(&found, "brier_mean_probability") - of_probability).abs() < 1e-12);
    // Of 16 comparisons of a pair of either kind, 3 are the wrong way round: -0.75 is below -0.5 and 0.5, and 0.25 is below 0.5.
    assert_eq!(estimate(&found, "auroc_mean_log_odds"), 13.0 / 16.0);
    let interval = known(&found, "accuracy_mean_log_odds").statistic.interval().unwrap();
    assert!(0.4 < interval.low && interval.low < 0.75 && interval.high < 0.95, "Wilson's: {interval:?}");

    let by_layer = PreferenceComparison::new(pairs).by_layer(&[0, 1, 2, 3, 4, 5, 6, 7]).unwrap();
    let by_layer: Vec<f64> = by_layer.iter().map(|layer| layer.statistic.estimate().unwrap()).collect();
    assert_eq!(by_layer, [0.75, 0.25]);
}

#[test]
fn what_has_no_reading_is_left_out_and_what_is_not_defined_says_why() {
    let of = |gold, reading: Option<PairReading>| PreferredPair {
        gold,
        orders: reading.into_iter().collect(),
        layers: Vec::new(),
        cluster: None,
    };
    let found = statistics(vec![of(First, None)]);
    assert!(found.iter().all(|known| known.n == 0 && matches!(known.statistic, Statistic::Undefined { .. })));
    assert_eq!(found.iter().map(|known| known.name).collect::<Vec<_>>(), PreferenceComparison::STATISTICS);
    // A gold tie counts for the shares alone.
    let found = statistics(vec![of(First, Some(reading(1.0))), of(Tie, Some(reading(1.0))), of(Second, None)]);
    assert_eq!((known(&found, "accuracy_mean_log_odds").n, known(&found, "brier_mean_log_odds").n), (2, 1));
    assert_eq!(estimate(&found, "accuracy_mean_log_odds"), 0.5);
    // One order alone does not tell the place from the items.
    assert!(matches!(known(&found, "accuracy_one_order").statistic, Statistic::Undefined { .. }));
    // Orders that cancel are a tie, in spite of rounding.
    let cancelled = PairReading::mean(&[reading(0.3), reading(0.3).swapped()]).unwrap();
    assert_eq!((cancelled.by_probability(), cancelled.by_log_odds()), (Tie, Tie));
    // That names no gold tie: a sign cannot say that both are equal.
    let tie = PreferredPair { orders: vec![reading(0.0); 2], layers: vec![0.0], ..of(Tie, None) };
    let tied = PreferenceComparison::new(vec![tie; 2]);
    let mut found = tied.statistics(&[0, 1]);
    found.extend(tied.by_layer(&[0, 1]).unwrap());
    found.push(tied.chosen_layer(&[0, 1]).unwrap().unwrap().1);
    for known in found.iter().filter(|known| known.name.contains("accuracy")) {
        assert_eq!((known.n, known.statistic.estimate()), (2, Some(0.0)), "{}", known.name);
    }
    // Layers must be as many.
    let mut pairs = vec![of(First, None), of(First, None)];
    (pairs[0].layers, pairs[1].layers) = (vec![1.0], vec![1.0, 2.0]);
    assert!(matches!(PreferenceComparison::new(pairs).by_layer(&[0, 1]), Err(Error::LengthMismatch { .. })));
}

#[test]
fn a_probability_of_0_gives_infinite_log_odds_that_may_cancel() {
    let sure = PairReading::from_probabilities(1.0, 0.0, 0.0).unwrap();
    assert_eq!((sure.log_odds(), sure.by_log_odds()), (f64::INFINITY, First));
    assert_eq!(PairReading::mean(&[sure, sure.swapped()]).unwrap().by_log_odds(), Tie);
    assert_eq!(PairReading::mean(&[sure, reading(-9.0)]).unwrap().by_log_odds(), First);
    assert_eq!(PairReading::from_probabilities(0.0, 0.0, 1.0).unwrap().log_odds(), 0.0);
    assert_eq!((PairReading::mean(&[]), mean_log_odds([]), mean_log_odds([f64::NAN])), (None, None, None));
    assert!(matches!(PairReading::from_probabilities(1.5, 0.0, 0.0), Err(Error::OutOfRange { argument: "first", .. })));
    assert!(matches!(PairReading::from_probabilities(0.5, f64::NAN, 0.0), Err(Error::NonFinite { .. })));
    let half = PairReading::from_probabilities(0.4, 0.1, 0.0).unwrap_err();
    assert_eq!(half.to_string(), "first + second + tie sums to 0.5, not to 1");
    assert!(matches!(PairReading::from_probabilities(0.9, 0.9, 0.9), Err(Error::NotADistribution { .. })));
    // In single precision.
    assert!(PairReading::from_probabilities(0.7, 0.2, f64::from(0.1_f32)).is_ok());
    // Certain and wrong is the worst Brier score, and no panic.
    let pair = PreferredPair { gold: Second, orders: vec![sure], layers: Vec::new(), cluster: None };
    assert_eq!(estimate(&statistics(vec![pair]), "brier_mean_log_odds"), 1.0);
}

/// Pairs whose place pulls by 2 in the middle, each on its own, so that folds leave one out.
const PULLED: [(Preference, f64, f64); 9] = [
    (First, 1.0, 2.0),
    (Second, -0.5, 1.8),
    (First, 0.25, 2.1),
    (First, 0.75, 2.6),
    (Second, -3.5, 2.25),
    (Second, 0.5, 1.9),
    (Tie, 0.1, -1.0),
    (First, 2.5, 0.0),
    (Second, -0.2, 3.0),
];

fn pulled() -> Vec<PreferredPair> {
    let pair = |&(gold, quality, pull): &(Preference, f64, f64)| PreferredPair {
        gold,
        orders: vec![reading(quality + pull), reading(quality - pull)],
        layers: Vec::new(),
        cluster: None,
    };
    PULLED.iter().map(pair).collect()
}

#[test]
fn one_order_less_what_its_place_adds_is_measured_on_pairs_that_taught_nothing() {
    let found = statistics(pulled());
    assert!((estimate(&found, "place_offset") - 2.0).abs() < 1e-12);
    // By the definition: in the given order the log-odds are q + pull, in the exchanged one q - pull.
    let side = |odds: f64| if odds > 0.0 { First } else { Second };
    let right = |offset: &dyn Fn(usize) -> f64| -> f64 {
        let of = |(row, &(gold, quality, pull)): (usize, &(Preference, f64, f64))| {
            let left = pull - offset(row);
            [quality + left, quality - left].iter().filter(|odds| side(**odds) == gold).count()
        };
        PULLED.iter().enumerate().map(of).sum::<usize>() as f64 / 18.0
    };
    let others = |row: usize| {
        let mut pulls: Vec<f64> =
            PULLED.iter().enumerate().filter(|(i, _)| *i != row).map(|(_, pair)| pair.2).collect();
        pulls.sort_by(f64::total_cmp);
        f64::midpoint(pulls[3], pulls[4])
    };
    let (raw, less) = (right(&|_| 0.0), right(&others));
    assert!((estimate(&found, "accuracy_one_order") - raw).abs() < 1e-12);
    assert!((estimate(&found, "accuracy_one_order_offset") - less).abs() < 1e-12);
    assert!(raw + 0.1 < less, "{raw} {less}");
    let averaged = estimate(&found, "accuracy_mean_log_odds");
    assert!((estimate(&found, "cost_one_order_offset") - (averaged - less)).abs() < 1e-12);
    let cost = known(&found, "cost_one_order_offset").statistic.interval().unwrap();
    assert!(cost.low < averaged - less && averaged - less < cost.high, "of the pairs' own differences: {cost:?}");

    // All pairs of one question teach nothing about themselves.
    let one_question = pulled().into_iter().map(|pair| PreferredPair { cluster: Some("q".into()), ..pair }).collect();
    let found = statistics(one_question);
    assert!(known(&found, "accuracy_one_order").statistic.estimate().is_some());
    for name in ["accuracy_one_order_offset", "cost_one_order_offset"] {
        assert!(matches!(known(&found, name).statistic, Statistic::Undefined { .. }), "{name}");
    }
}

#[test]
fn an_offset_is_the_middle_of_pulls() {
    let pull = |orders: &[PairReading]| place_pull(orders);
    assert!((pull(&[reading(3.5), reading(-2.5)]).unwrap() - 3.0).abs() < 1e-12);
    assert!((pull(&[reading(3.5)]).unwrap() - 3.5).abs() < 1e-12);
    assert_eq!(pull(&[]), None);
    assert_eq!(place_offset(&[f64::INFINITY, 1.0, 2.0]).unwrap(), 2.0);
    assert_eq!(place_offset(&[4.0, 1.0]).unwrap(), 2.5);
    assert!(matches!(place_offset(&[]), Err(Error::TooFewItems { .. })));
    assert!(matches!(place_offset(&[1.0, f64::INFINITY]), Err(Error::NonFinite { .. })));
    assert!(matches!(place_offset(&[1.0, f64::NAN, 2.0]), Err(Error::NonFinite { index: 1, .. })));
}

#[test]
fn a_layer_is_judged_on_pairs_that_did_not_choose_it() {
    // Layer 0 is right in 5 of 8, layer 1 in 4, layer 2 in 5: the last of equals is chosen, unless the pair that is left out decides.
    let rights = [[1, 1, 0], [1, 0, 1], [1, 1, 1], [0, 0, 1], [1, 1, 0], [0, 0, 1], [1, 1, 0], [0, 0, 1]];
    let pair = |right: &[i32; 3]| PreferredPair {
        gold: First,
        orders: Vec::new(),
        layers: right.iter().map(|right| f64::from(2 * right - 1)).collect(),
        cluster: None,
    };
    let pairs: Vec<PreferredPair> = rights.iter().map(pair).collect();
    let comparison = PreferenceComparison::new(pairs);
    let all: Vec<usize> = (0..8).collect();
    let (layer, known) = comparison.chosen_layer(&all).unwrap().unwrap();
    assert_eq!((layer, known.name, known.n), (2, "accuracy_chosen_layer", 8));
    let chosen_without = |row: usize| {
        let count = |layer: usize| (0..8).filter(|&other| other != row && rights[other][layer] == 1).count();
        (0..3).max_by_key(|&layer| count(layer)).unwrap()
    };
    let right = (0..8).filter(|&row| rights[row][chosen_without(row)] == 1).count();
    assert_eq!(known.statistic.estimate(), Some(right as f64 / 8.0));
    assert!(right < 5, "less than on the pairs that chose it");
    let one = comparison.chosen_layer(&[3]).unwrap().unwrap().1.statistic;
    assert!(matches!(one, Statistic::Undefined { .. }), "nothing else to choose on");
    assert_eq!(PreferenceComparison::new(pulled()).chosen_layer(&all).unwrap(), None);
}

proptest! {
    /// Nothing depends on which item is named first.
    #[test]
    fn renaming_the_items_turns_nothing_but_the_intercept(rows in prop::collection::vec((preference(), -4.0_f64..4.0, -4.0_f64..4.0), 1..30)) {
        let pair = |&(gold, one, other): &(Preference, f64, f64)| {
            PreferredPair { gold, orders: vec![reading(one), reading(other)], layers: vec![one], cluster: None }
        };
        let pairs: Vec<PreferredPair> = rows.iter().map(pair).collect();
        let turned = pairs.iter().map(|pair| PreferredPair {
            gold: pair.gold.swapped(),
            // What was shown second is the first item now, and its order the given one.
            orders: pair.orders.iter().rev().map(|order| order.swapped()).collect(),
            layers: pair.layers.iter().map(|odds| -odds).collect(),
            cluster: None,
        });
        let (found, turned) = (statistics(pairs.clone()), statistics(turned.collect()));
        for (one, other) in found.iter().zip(&turned) {
            let sign = if one.name.contains("intercept") { -1.0 } else { 1.0 };
            match (one.statistic.estimate(), other.statistic.estimate()) {
                (Some(one_is), Some(other_is)) if !one.name.starts_with("ece") => {
                    prop_assert!((one_is - sign * other_is).abs() < 1e-6 * one_is.abs().max(1.0), "{}: {one_is} {other_is}", one.name);
                }
                (one_is, other_is) => prop_assert_eq!(one_is.is_some(), other_is.is_some()),
            }
        }
    }

    /// A tally counts every pair once, whatever its verdicts.
    #[test]
    fn a_tally_counts_every_pair_once(rows in prop::collection::vec((prop::option::of(preference()), prop::option::of(preference()), prop::option::of(0.0_f64..=1.0)), 0..30), both_orders: bool) {
        let pairs = rows.iter().map(|&(given, swapped, preference)| TalliedPair { given, swapped, preference, averaged: None }).collect();
        let bootstrap = Bootstrap { resamples: 20, ..Bootstrap::default() };
        let found = PairTally { both_orders, bootstrap, ..PairTally::new(pairs) }.found().unwrap();
        prop_assert_eq!(found.first + found.second + found.ties + found.inconsistent + found.without, rows.len());
        prop_assert!(found.flips[0] + found.flips[1] <= found.inconsistent);
        if !both_orders {
            prop_assert_eq!((found.inconsistent, found.follows_place()), (0, None));
        }
    }
}

#[test]
fn a_judge_that_follows_the_place_is_told_from_one_that_is_undecided() {
    let tally = |pairs: Vec<[Preference; 2]>| {
        let pair = |[given, swapped]: [Preference; 2]| TalliedPair {
            given: Some(given),
            swapped: Some(swapped),
            preference: Some(0.5),
            averaged: None,
        };
        PairTally::new(pairs.into_iter().map(pair).collect()).found().unwrap()
    };
    let first = tally(vec![[First, Second]; 20]);
    let share = first.statistics.iter().find(|known| known.name == "first_share").unwrap();
    assert_eq!((share.n, share.statistic.estimate()), (40, Some(1.0)));
    // 2 / 2^20: as one-sided as 20 flips can be.
    let p = share.statistic.defined().unwrap().p.unwrap();
    assert!((p - 2f64.powi(-19)).abs() < 1e-18, "{p}");
    assert_eq!((first.inconsistent, first.follows_place()), (20, Some(First)));
    assert_eq!(tally(vec![[Second, First]; 20]).follows_place(), Some(Second));
    // As many flips either way are no pull of the place, a few among many decide little, and four are too few to tell.
    assert_eq!(tally([vec![[First, Second]; 10], vec![[Second, First]; 10]].concat()).follows_place(), None);
    assert_eq!(tally([vec![[First, Second]; 10], vec![[First, First]; 90]].concat()).follows_place(), None);
    assert_eq!(tally(vec![[First, Second]; 4]).follows_place(), None);
    let decided = tally([vec![[First, First]; 3], vec![[Second, Second]; 1]].concat());
    let rate = decided.statistics.iter().find(|known| known.name == "win_rate").unwrap();
    assert_eq!((decided.first, decided.second, rate.statistic.estimate()), (3, 1, Some(0.75)));

    // Verdicts of both orders together count as they are; that single orders follow the place is still told.
    let pair = |averaged| TalliedPair {
        given: Some(First),
        swapped: Some(Second),
        preference: Some(0.4),
        averaged: Some(averaged),
    };
    let found =
        PairTally::new([vec![pair(First); 5], vec![pair(Second); 14], vec![pair(Tie)]].concat()).found().unwrap();
    assert_eq!((found.first, found.second, found.ties, found.inconsistent), (5, 14, 1, 0));
    assert_eq!((found.flips, found.follows_place()), ([20, 0], Some(First)));
    let rate = found.statistics.iter().find(|known| known.name == "win_rate").unwrap();
    assert!((rate.statistic.estimate().unwrap() - 5.5 / 20.0).abs() < 1e-12);

    // A pair without a verdict in both orders can follow no place.
    let unread = TalliedPair { given: Some(First), swapped: None, preference: None, averaged: None };
    let flip = TalliedPair { swapped: Some(Second), ..unread };
    let found = PairTally::new([vec![flip; 9], vec![unread; 31]].concat()).found().unwrap();
    assert_eq!((found.n, found.read(), found.follows_place()), (40, 9, Some(First)));
}
