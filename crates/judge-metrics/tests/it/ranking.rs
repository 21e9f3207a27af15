//! Win rates, Bradley–Terry and length-controlled win rates against statsmodels and mpmath (`scripts/metrics/ranking_fixtures.py`), and
//! what they refuse.

use judge_metrics::bias::length_controlled::LengthControlled;
use judge_metrics::correlation::{KendallTest, kendall_tau_b};
use judge_metrics::preference::Preference;
use judge_metrics::ranking::Comparison;
use judge_metrics::ranking::{AdaptivePairing, BradleyTerry, FittedBradleyTerry, Goal, TieCredit, TieModel, WinRecord};
use judge_metrics::{Error, Proportion};
use proptest::prelude::*;

use crate::fixtures::{fixture, list, numbers};

const NAMES: [&str; 9] = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];

#[track_caller]
fn near(ours: f64, expected: f64) {
    assert!((ours - expected).abs() <= 1e-10 * expected.abs().max(1e-2), "{ours}, not {expected}");
}

fn comparison(first: usize, second: usize, result: u64) -> Comparison<'static> {
    let preference = [Preference::First, Preference::Second, Preference::Tie][result as usize];
    Comparison { items: [NAMES[first], NAMES[second]], preference }
}

#[test]
fn strengths_equal_statsmodels_and_thirty_digit_arithmetic() {
    for case in list(&fixture("ranking")["games"]) {
        let games: Vec<Comparison<'_>> = list(&case["games"])
            .iter()
            .map(|game| [0, 1, 2].map(|i| game[i].as_u64().unwrap()))
            .map(|[i, j, result]| comparison(i as usize, j as usize, result))
            .collect();
        let z = 1.959_963_984_540_054;
        let fitted = BradleyTerry::default().fit(&games).unwrap();
        let expected = numbers(&case["strengths"]);
        for (item, (ours, expected)) in fitted.strengths().iter().zip(&expected).enumerate() {
            near(*ours, *expected);
            let interval = fitted.strength(NAMES[item]).unwrap().interval(0.95).unwrap();
            near((interval.high - interval.low) / 2.0, z * case["se"][item].as_f64().unwrap());
        }
        let difference = fitted.difference(NAMES[0], NAMES[1]).unwrap().interval(0.95).unwrap();
        near((difference.high - difference.low) / 2.0, z * case["difference_se"].as_f64().unwrap());
        near(fitted.win_probability(NAMES[0], NAMES[1]).unwrap(), 1.0 / (1.0 + (expected[1] - expected[0]).exp()));
        near(fitted.elo(1000.0)[0], 1000.0 + expected[0] * 400.0 / 10_f64.ln());

        let davidson = BradleyTerry { ties: TieModel::Davidson, ..BradleyTerry::default() }.fit(&games).unwrap();
        for (ours, expected) in davidson.strengths().iter().zip(numbers(&case["davidson"])) {
            near(*ours, expected);
        }
        near(davidson.tie_parameter().unwrap(), case["nu"].as_f64().unwrap());
        near(davidson.log_likelihood(), case["davidson_log_likelihood"].as_f64().unwrap());
        let (win, loss) = (
            davidson.win_probability(NAMES[0], NAMES[1]).unwrap(),
            davidson.win_probability(NAMES[1], NAMES[0]).unwrap(),
        );
        assert!(win + loss < 1.0);
    }
}

#[test]
fn difficulties_that_say_nothing_are_named() {
    let preferences = [1.0, 0.0, 1.0, 0.5, 0.0, 1.0];
    let lengths = [[9.0, 5.0], [8.0, 6.0], [7.0, 7.5], [9.5, 4.0], [5.0, 6.6], [6.0, 8.0]];
    let fit = |l2: f64, difficulties: &[f64]| LengthControlled { l2 }.fit(&preferences, &lengths, Some(difficulties));
    assert_eq!(fit(0.0, &[2.0; 6]).unwrap_err(), Error::Constant { argument: "difficulties", value: 2.0 });
    let gaps = lengths.map(|[a, b]| a - b);
    let mean = gaps.iter().sum::<f64>() / 6.0;
    let spread = (gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / 5.0).sqrt();
    let straight = gaps.map(|gap| 3.0 - 2.0 * (gap / spread).tanh());
    assert_eq!(fit(0.0, &straight).unwrap_err(), Error::Collinear { argument: "difficulties", index: None });
    // A penalty divides the effect between the two.
    assert!(fit(1.0, &straight).is_ok());
}

/// A tiny prior is the natural answer to items that do not meet, and must not widen intervals of those that do.
#[test]
fn a_prior_adds_no_variance_of_the_common_level() {
    let games: Vec<_> = (0..4)
        .flat_map(|i| (i + 1..4).map(move |j| (i, j)))
        .flat_map(|(i, j)| [comparison(i, j, 0), comparison(i, j, 1), comparison(i, j, 0)])
        .collect();
    let width = |prior_precision: f64| {
        let fitted = BradleyTerry { ties: TieModel::HalfWin, prior_precision }.fit(&games).unwrap();
        let interval = fitted.strength(NAMES[0]).unwrap().interval(0.95).unwrap();
        interval.high - interval.low
    };
    let plain = width(0.0);
    for prior in [1e-2, 1e-6, 1e-9] {
        assert!((width(prior) / plain - 1.0).abs() < prior + 1e-6, "{prior}: {} and {plain}", width(prior));
    }
}

#[test]
fn length_controlled_win_rates_equal_statsmodels() {
    for case in list(&fixture("ranking")["length"]) {
        let lengths: Vec<[f64; 2]> =
            list(&case["lengths"]).iter().map(|pair| [0, 1].map(|i| pair[i].as_f64().unwrap())).collect();
        let difficulties = case["difficulties"].is_array().then(|| numbers(&case["difficulties"]));
        let preferences = numbers(&case["preferences"]);
        let ours = LengthControlled::default().fit(&preferences, &lengths, difficulties.as_deref()).unwrap();
        let weights = numbers(&case["weights"]);
        near(ours.quality, weights[0]);
        near(ours.length, weights[1]);
        assert_eq!(ours.difficulty.is_some(), weights.len() == 3);
        ours.difficulty.into_iter().for_each(|weight| near(weight, weights[2]));
        near(ours.win_rate.estimate, case["estimate"].as_f64().unwrap());
        let interval = ours.win_rate.interval(0.95).unwrap();
        near((interval.high - interval.low) / 2.0, 1.959_963_984_540_054 * case["se"].as_f64().unwrap());

        // The sides exchanged, and every answer as much longer.
        let swapped: Vec<[f64; 2]> = lengths.iter().map(|&[a, b]| [b + 7.0, a + 7.0]).collect();
        let others: Vec<f64> = preferences.iter().map(|p| 1.0 - p).collect();
        if difficulties.is_none() {
            let mirrored = LengthControlled::default().fit(&others, &swapped, None).unwrap();
            near(mirrored.win_rate.estimate, 1.0 - ours.win_rate.estimate);
            near(mirrored.length, ours.length);
        }
        for unit in [2f64.powi(700), 2f64.powi(-700)] {
            let lengths: Vec<[f64; 2]> = lengths.iter().map(|pair| pair.map(|length| length * unit)).collect();
            let scaled = LengthControlled::default().fit(&preferences, &lengths, difficulties.as_deref()).unwrap();
            near(scaled.win_rate.estimate, ours.win_rate.estimate);
            near(scaled.length, ours.length);
        }
        let ridge = LengthControlled { l2: 5.0 }.fit(&preferences, &lengths, difficulties.as_deref()).unwrap();
        assert!(ridge.length.abs() < ours.length.abs());
    }
}

proptest! {
    #[test]
    fn sides_and_order_do_not_matter(
        games in prop::collection::vec((0_usize..4, 1_usize..4, 0_u64..3), 1..60), turn in 0_usize..60
    ) {
        let games: Vec<_> = games.into_iter().map(|(i, step, result)| (i, (i + step) % 4, result)).collect();
        let plain: Vec<_> = games.iter().map(|&(i, j, result)| comparison(i, j, result)).collect();
        let mut swapped: Vec<_> =
            games.iter().map(|&(i, j, result)| comparison(j, i, [1, 0, 2][result as usize])).collect();
        swapped.rotate_left(turn % games.len());
        for ties in [TieModel::HalfWin, TieModel::Davidson] {
            let settings = BradleyTerry { ties, prior_precision: 0.0 };
            match (settings.fit(&plain), settings.fit(&swapped)) {
                (Ok(a), Ok(b)) => {
                    for (a, b) in a.strengths().iter().zip(b.strengths()) {
                        prop_assert!((a - b).abs() < 1e-7 * (1.0 + a.abs()));
                    }
                    prop_assert!(a.strengths().iter().sum::<f64>().abs() < 1e-9);
                }
                (Err(a), Err(b)) => {
                    let endless = matches!(a, Error::NoConvergence { .. }) && ties == TieModel::Davidson;
                    prop_assert!(a.is_undefined() || endless, "{}", a);
                    prop_assert_eq!(a, b);
                }
                (a, b) => prop_assert!(false, "{a:?} {b:?}"),
            }
            // With a prior strengths are finite whatever happened.
            let prior = BradleyTerry { ties: TieModel::HalfWin, prior_precision: 0.5 }.fit(&plain).unwrap();
            prop_assert!(prior.strengths().iter().all(|strength| strength.is_finite()));
        }
    }
}

#[test]
fn bad_input_is_refused() {
    let fit = |games: &[Comparison<'_>]| BradleyTerry::default().fit(games);
    assert_eq!(fit(&[]), Err(Error::TooFewItems { required: 1, found: 0 }));
    assert_eq!(fit(&[comparison(0, 0, 1)]), Err(Error::SelfComparison { argument: "comparisons", index: 0 }));
    // a always wins; c and d never met the others.
    let undefeated = fit(&[comparison(0, 1, 0), comparison(1, 2, 0), comparison(2, 1, 0), comparison(0, 2, 0)]);
    assert_eq!(undefeated, Err(Error::Unconnected { some: "a".into(), others: "b, c".into() }));
    let apart = fit(&[comparison(0, 1, 2), comparison(2, 3, 2)]).unwrap_err();
    assert_eq!(apart, Error::Unconnected { some: "a, b".into(), others: "c, d".into() });
    assert!(apart.is_undefined());
    let davidson = BradleyTerry { ties: TieModel::Davidson, ..BradleyTerry::default() };
    assert!(davidson.fit(&[comparison(0, 1, 0), comparison(1, 0, 0)]).unwrap_err().is_undefined());
    assert!(davidson.fit(&[comparison(0, 1, 2)]).unwrap_err().is_undefined());
    for prior_precision in [-1.0, f64::NAN, f64::INFINITY] {
        let refused = BradleyTerry { prior_precision, ..BradleyTerry::default() }.fit(&[comparison(0, 1, 2)]);
        assert!(matches!(refused, Err(Error::OutOfRange { argument: "prior_precision", .. })));
    }
    let fitted = fit(&[comparison(0, 1, 2)]).unwrap();
    assert!(matches!(fitted.strength("nobody"), Err(Error::UnknownLabel { argument: "item", .. })));
    assert!(matches!(fitted.difference(NAMES[0], "nobody"), Err(Error::UnknownLabel { argument: "second", .. })));

    let none = WinRecord::default();
    for ties in [TieCredit::Half, TieCredit::Loss, TieCredit::Excluded] {
        assert!(none.win_rate(ties).unwrap_err().is_undefined());
    }
    let record = WinRecord { wins: 3, ties: 2, losses: 1 };
    assert_eq!(record.win_rate(TieCredit::Half), Ok(4.0 / 6.0));
    assert_eq!(record.win_rate(TieCredit::Loss), Ok(0.5));
    assert_eq!(record.win_rate(TieCredit::Excluded), Ok(0.75));
    let interval = |wins, ties| WinRecord { wins, ties, losses: 0 }.interval(TieCredit::Half, 0.95);
    assert!(matches!(interval(0, 0), Err(Error::Undefined { .. })));
    assert!(matches!(interval(0, 1), Err(Error::TooFewItems { required: 2, found: 1 })));
    assert!(matches!((interval(0, 2), interval(0, 5)), (Err(Error::Undefined { .. }), Err(Error::Undefined { .. }))));
    assert!(matches!(interval(0, 6), Err(Error::NoVariation { .. })));
    assert_eq!(interval(1, 0), Proportion { count: 1, n: 1 }.wilson(0.95));

    let controlled = |p: &[f64], lengths: &[[f64; 2]]| LengthControlled::default().fit(p, lengths, None);
    assert!(matches!(controlled(&[1.0], &[]), Err(Error::LengthMismatch { argument: "lengths", .. })));
    assert!(matches!(controlled(&[0.5, 1.5], &[[1.0, 2.0]; 2]), Err(Error::OutOfRange { index: Some(1), .. })));
    assert!(matches!(controlled(&[0.5, f64::NAN], &[[1.0, 2.0]; 2]), Err(Error::NonFinite { index: 1, .. })));
    assert!(matches!(controlled(&[0.5, 1.0], &[[1.0, 2.0], [4.0, 5.0]]), Err(Error::Constant { .. })));
    let always = controlled(&[1.0, 1.0, 1.0], &[[1.0, 2.0], [4.0, 3.0], [9.0, 1.0]]);
    assert!(matches!(always, Err(Error::NoConvergence { .. })));
    assert!(matches!(
        LengthControlled { l2: -1.0 }.fit(&[0.0, 1.0], &[[1.0, 2.0], [4.0, 3.0]], None),
        Err(Error::OutOfRange { argument: "l2", .. })
    ));
}

#[test]
fn probabilities_are_divided_games() {
    // Four games of which each is won by a quarter, and one game in four that is won.
    let quarters: Vec<_> = (0..4).flat_map(|_| [([0, 1], 0.25), ([2, 1], 0.75), ([0, 2], 0.5)]).collect();
    let (won, lost, tie) = (0, 1, 2);
    let whole = [
        [comparison(0, 1, won), comparison(0, 1, lost), comparison(1, 0, won), comparison(0, 1, lost)],
        [comparison(2, 1, won), comparison(2, 1, won), comparison(1, 2, won), comparison(2, 1, won)],
        [comparison(0, 2, tie), comparison(0, 2, tie), comparison(0, 2, won), comparison(0, 2, lost)],
    ];
    let [ours, theirs] = [
        BradleyTerry::default().fit_soft(3, &quarters).unwrap(),
        BradleyTerry::default().fit(&whole.concat()).unwrap(),
    ];
    let low = |fitted: &FittedBradleyTerry, name: &str| fitted.strength(name).unwrap().interval(0.9).unwrap().low;
    for (item, name) in NAMES.iter().take(3).enumerate() {
        near(ours.strengths()[item], theirs.strengths()[item]);
        near(low(&ours, &item.to_string()), low(&theirs, name));
    }
    let refused = |preference: f64| BradleyTerry::default().fit_soft(2, &[([0, 1], preference)]).unwrap_err();
    assert!(matches!(refused(1.5), Error::OutOfRange { argument: "preference", index: Some(0), .. }));
    assert!(matches!(refused(f64::NAN), Error::NonFinite { .. }));
    assert!(matches!(BradleyTerry::default().fit_soft(2, &[]), Err(Error::TooFewItems { .. })));
    let prior = BradleyTerry { prior_precision: 1.0, ..BradleyTerry::default() };
    let davidson = BradleyTerry { ties: TieModel::Davidson, ..prior };
    assert!(matches!(davidson.fit_soft(2, &[([0, 1], 0.5)]), Err(Error::Undefined { .. })));
    let sure = prior.fit_soft(2, &[([0, 1], 1.0)]).unwrap();
    // θ of the mode solves 1 - σ(2θ) = θ.
    let theta = sure.strengths()[0];
    near(1.0 - 1.0 / (1.0 + (-2.0 * theta).exp()), theta);
    // The two strengths are θ and -θ: what is known of one is half of what is known of their difference.
    let [one, both] = [sure.strength("0").unwrap(), sure.difference("0", "1").unwrap()];
    near(2.0 * one.standard_error().unwrap(), both.standard_error().unwrap());
    assert!(matches!(sure.strength("2"), Err(Error::UnknownLabel { argument: "item", .. })));
    assert!(matches!(prior.fit_soft(0, &[]), Err(Error::TooFewItems { .. })));
}

#[test]
fn rounds_are_disjoint_new_and_within_the_budget() {
    let pairing = AdaptivePairing { budget: 8, ..AdaptivePairing::default() };
    let mut known: Vec<([usize; 2], Option<f64>)> = Vec::new();
    let mut rounds = 0;
    loop {
        let round = pairing.next(5, &known).unwrap();
        let mut seen: Vec<usize> = round.concat();
        seen.sort_unstable();
        assert!(seen.windows(2).all(|pair| pair[0] < pair[1]), "{round:?}");
        for pair in &round {
            assert!(!known.iter().any(|(met, _)| met == pair), "{pair:?} met before");
        }
        if round.is_empty() {
            break;
        }
        // One comparison has no verdict; it is not made again.
        known.extend(round.into_iter().map(|pair| (pair, (pair != [0, 1]).then_some(0.8))));
        rounds += 1;
    }
    assert_eq!((known.len(), rounds >= 4), (8, true));
    assert_eq!(AdaptivePairing::default().next(1, &[]).unwrap(), Vec::<[usize; 2]>::new());
    assert_eq!([0, 1, 2, 5, 6, 16].map(|n| AdaptivePairing::of_items(n).budget), [0, 0, 1, 10, 12, 32]);
    for (known, wrong) in [(([0, 5], Some(0.5)), "comparisons"), (([0, 1], Some(2.0)), "preference")] {
        let error = pairing.next(5, &[known]).unwrap_err();
        assert!(matches!(error, Error::OutOfRange { argument, .. } if argument == wrong), "{error}");
    }
    assert!(matches!(pairing.next(5, &[([2, 2], Some(0.5))]), Err(Error::SelfComparison { .. })));
    // Whatever the verdict, and with nothing left to compare.
    for pairing in [pairing, AdaptivePairing { budget: 0, ..pairing }] {
        let error = pairing.next(3, &[([0, 1], None), ([7, 2], None)]).unwrap_err();
        assert!(matches!(error, Error::OutOfRange { argument: "comparisons", index: Some(1), .. }), "{error}");
        let error = pairing.next(3, &[([0, 1], None), ([1, 1], None)]).unwrap_err();
        assert_eq!(error, Error::SelfComparison { argument: "comparisons", index: 1 });
    }
    let flat = AdaptivePairing { prior_precision: 0.0, ..pairing };
    assert!(matches!(flat.next(5, &[]), Err(Error::OutOfRange { argument: "prior_precision", .. })));
}

/// With as many comparisons, the best of 16 is found more often, and by the other goal all are ordered better, than by comparisons without
/// a plan.
#[test]
fn adaptive_comparisons_learn_what_they_are_for() {
    const N: usize = 16;
    const TRIALS: usize = 120;
    let mut state = 1_u64;
    let mut draw = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    let model = BradleyTerry { prior_precision: 1.0, ..BradleyTerry::default() };
    // Every item meets five others, in a ring.
    let ring = [1, 2].into_iter().flat_map(|step| (0..N).map(move |a| [a, (a + step) % N]));
    let even: Vec<[usize; 2]> = ring.chain((0..N / 2).map(|a| [a, a + N / 2])).collect();
    assert!((0..N).all(|item| even.iter().filter(|pair| pair.contains(&item)).count() == 5) && even.len() == 40);

    let plans = [Some(Goal::Best), Some(Goal::Strengths), None];
    let (mut found, mut ordered) = ([0; 3], [0.0; 3]);
    for _ in 0..TRIALS {
        let truth: Vec<f64> = (0..N).map(|_| 3.0 * (draw() + draw() + draw() - 1.5)).collect();
        let top = |of: &[f64]| (0..N).max_by(|a, b| of[*a].total_cmp(&of[*b]));
        for (plan, goal) in plans.into_iter().enumerate() {
            // What a judge says is drawn: 1 or 0, with the probability of the strengths.
            let mut played = |pair: [usize; 2]| {
                let won = 1.0 / (1.0 + (truth[pair[1]] - truth[pair[0]]).exp());
                (pair, Some(f64::from(u8::from(draw() < won))))
            };
            let mut known: Vec<_> =
                if goal.is_none() { even.iter().copied().map(&mut played).collect() } else { Vec::new() };
            while let Some(goal) = goal {
                let pairing = AdaptivePairing { budget: 40, goal, ..AdaptivePairing::default() };
                let round = pairing.next(N, &known).unwrap();
                if round.is_empty() {
                    break;
                }
                known.extend(round.into_iter().map(&mut played));
            }
            let games: Vec<_> = known.iter().map(|&(pair, preference)| (pair, preference.unwrap())).collect();
            let fitted = model.fit_soft(N, &games).unwrap();
            found[plan] += usize::from(top(fitted.strengths()) == top(&truth));
            ordered[plan] += kendall_tau_b(fitted.strengths(), &truth, KendallTest::Asymptotic).unwrap().estimate;
        }
    }
    assert!(found[0] > found[2] + TRIALS / 20, "{found:?} of {TRIALS}");
    assert!(ordered[1] > ordered[2] + 0.01 * TRIALS as f64, "{ordered:?} over {TRIALS}");
}
