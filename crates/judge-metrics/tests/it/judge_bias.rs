//! Position bias, self-preference and robustness against SciPy, statsmodels and published definitions
//! (`scripts/metrics/preference_fixtures.py`), and what is refused.

use judge_metrics::Error;
use judge_metrics::Proportion;
use judge_metrics::agreement::{McNemarTest, mcnemar};
use judge_metrics::bias::EqualOpportunity;
use judge_metrics::bias::position::{FirstShown, OrderEffect, first_shown, order_effect};
use judge_metrics::bias::robustness::{attack_success, robustness_rate};
use judge_metrics::bias::self_preference::{equal_opportunity, self_enhancement};
use judge_metrics::means::paired_difference;
use judge_metrics::preference::Preference::{First, Second, Tie};
use judge_metrics::preference::{TwoOrder, Unparsed};
use serde_json::Value;

use crate::fixtures::{count, fixture, list};
use crate::preference::{proportion, verdicts};

const POLICIES: [(&str, Unparsed); 4] = [
    ("dropped", Unparsed::Dropped),
    ("tie", Unparsed::Tie),
    ("wrong", Unparsed::Wrong),
    ("own_label", Unparsed::OwnLabel),
];

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

#[track_caller]
fn close(ours: f64, expected: f64) {
    assert!((ours - expected).abs() <= 1e-10 * expected.abs(), "{ours:e}, not {expected:e}");
}

#[track_caller]
fn near(ours: f64, expected: f64) {
    assert!((ours - expected).abs() <= 1e-10, "{ours:e}, not {expected:e}");
}

/// `statsmodels.stats.contingency_tables.mcnemar`, 0.15.0. At b = c it has no corrected form that is to be followed.
#[test]
fn mcnemars_test_equals_statsmodels() {
    for case in list(&fixture("preference")["mcnemar"]) {
        let (b, c) = (count(&case["b"]), count(&case["c"]));
        for (name, test) in [
            ("exact", McNemarTest::Exact),
            ("chi", McNemarTest::ChiSquared),
            ("corrected", McNemarTest::ChiSquaredCorrected),
        ] {
            let ours = mcnemar(b, c, test).unwrap();
            assert_eq!(mcnemar(c, b, test), Ok(ours), "either kind may come first");
            if let Some(expected) = case[name].as_array() {
                close(ours.statistic, number(&expected[0]));
                close(ours.p_value, number(&expected[1]));
            } else {
                assert_eq!((b, ours.statistic, ours.p_value), (c, 0.0, 1.0));
            }
        }
    }
    // As statsmodels has it: no discordant pair says nothing against equality.
    assert_eq!(mcnemar(0, 0, McNemarTest::Exact).unwrap().p_value, 1.0);
    assert!(mcnemar(0, 0, McNemarTest::ChiSquared).unwrap_err().is_undefined());
}

/// `scipy.stats.binomtest`, 1.17.1.
#[test]
fn the_test_of_the_first_shown_rate_equals_scipys() {
    for case in list(&fixture("preference")["binomial"]) {
        let (first, n) = (count(&case[0]), count(&case[1]));
        let counts = FirstShown { first, second: n - first, ties: 3, unparsed: 1 };
        close(counts.p_value().unwrap(), number(&case[2]));
        assert_eq!(counts.rate(), Proportion { count: first, n });
    }
    let undecided = first_shown(&[Some(Tie), None]).unwrap();
    assert_eq!(undecided, FirstShown { first: 0, second: 0, ties: 1, unparsed: 1 });
    assert!(undecided.p_value().unwrap_err().is_undefined());
    assert!(undecided.rate().estimate().unwrap_err().is_undefined());
    assert_eq!(first_shown(&[]), Err(Error::TooFewItems { required: 1, found: 0 }));
}

/// JudgeLM's a < b and a > b, and Shi et al.'s preference fairness in the paper's own steps.
#[test]
fn order_effects_are_counted_as_defined_under_every_policy() {
    for case in list(&fixture("preference")["two_order"]) {
        let pairs: Vec<_> = verdicts(&case["original"])
            .into_iter()
            .zip(verdicts(&case["swapped"]))
            .map(|(original, swapped)| TwoOrder::new(original, swapped))
            .collect();
        for (name, policy) in POLICIES {
            let expected = &case[name];
            let at = |field: &str| count(&expected[field]);
            let ours = order_effect(&pairs, policy).unwrap();
            assert_eq!(
                ours,
                OrderEffect {
                    n: at("n"),
                    consistent: at("consistent"),
                    primacy: at("before"),
                    recency: at("after"),
                    always_first: at("always_first"),
                    always_second: at("always_second"),
                    undirected: at("undirected"),
                    unparsed: at("unparsed"),
                },
                "{name}"
            );
            match expected["fairness"].as_f64() {
                Some(fairness) => near(ours.preference_fairness().unwrap(), fairness),
                None => assert!(ours.preference_fairness().unwrap_err().is_undefined()),
            }
        }
    }
    assert_eq!(order_effect(&[], Unparsed::Tie), Err(Error::TooFewItems { required: 1, found: 0 }));
    let unparsed = order_effect(&[TwoOrder::new(Some(First), None)], Unparsed::Refused);
    assert_eq!(unparsed, Err(Error::Unparsed { argument: "verdicts", index: 0 }));
}

/// Auto-J's released outputs as a table of verdicts in both orders: consistency .83405, before .05460, after .11135.
#[test]
fn auto_js_order_effect_follows_from_its_transitions() {
    let transitions = [
        (First, Second, 558),
        (Second, First, 573),
        (Tie, Tie, 30),
        (First, First, 55),
        (Second, Second, 121),
        (First, Tie, 9),
        (Second, Tie, 19),
        (Tie, First, 12),
        (Tie, Second, 15),
    ];
    let pairs: Vec<_> = transitions
        .iter()
        .flat_map(|&(a, b, n)| std::iter::repeat_n(TwoOrder::from_shown([Some(a), Some(b)]), n))
        .collect();
    let effect = order_effect(&pairs, Unparsed::Refused).unwrap();
    let five_digits = |value: Result<f64, Error>| (value.unwrap() * 1e5).round() as u32;
    assert_eq!(five_digits(effect.consistency().estimate()), 83_405);
    assert_eq!(five_digits(effect.prefer_before().estimate()), 5_460);
    assert_eq!(five_digits(effect.prefer_after().estimate()), 11_135);
    assert_eq!(effect.preference_fairness().unwrap(), 155.0 / 1392.0 - 76.0 / 1392.0);
    assert_eq!(effect.mcnemar(McNemarTest::ChiSquared), mcnemar(55, 121, McNemarTest::ChiSquared));

    let fair = order_effect(&[TwoOrder::new(Some(Tie), Some(Tie))], Unparsed::Refused).unwrap();
    assert_eq!(fair.preference_fairness(), Ok(0.0));
    assert!(fair.mcnemar(McNemarTest::ChiSquared).unwrap_err().is_undefined());
}

/// `confint_proportions_2indep(method="newcomb")` and `proportions_ztest` of statsmodels 0.15.0.
#[test]
fn intervals_of_two_proportions_equal_statsmodels() {
    for case in list(&fixture("preference")["two_proportions"]) {
        let ours =
            EqualOpportunity { favoured: proportion(&case["own"]), other: proportion(&case["other"]), unparsed: 0 };
        for (name, level) in [("0.95", 0.95), ("0.9", 0.9)] {
            let difference = ours.difference().unwrap();
            let interval = difference.interval(level).unwrap();
            near(interval.low, number(&case[name][0]));
            near(interval.high, number(&case[name][1]));
            assert!(interval.low <= difference.estimate && difference.estimate <= interval.high);
        }
        close(ours.difference().unwrap().p_value().unwrap(), number(&case["p"]));
    }
    let all =
        EqualOpportunity { favoured: Proportion { count: 3, n: 3 }, other: Proportion { count: 2, n: 2 }, unparsed: 0 };
    assert!(all.difference().unwrap().p_value().unwrap_err().is_undefined());
    assert_eq!(all.difference().unwrap().interval(1.0), Err(Error::LevelOutOfRange { level: 1.0 }));
    let none = EqualOpportunity { favoured: Proportion { count: 0, n: 0 }, ..all };
    assert!(none.difference().unwrap_err().is_undefined());
}

#[test]
fn self_preference_counts_as_defined() {
    let human = [First, First, Second, Second, Second, Tie];
    let judge = [Some(First), None, Some(First), Some(Second), Some(Tie), Some(First)];
    for (policy, own, other, excess) in [
        (Unparsed::Dropped, (1, 1), (1, 3), 3.5 / 5.0 - 1.5 / 5.0),
        (Unparsed::Tie, (1, 2), (1, 3), 4.0 / 6.0 - 2.5 / 6.0),
        (Unparsed::Wrong, (1, 2), (1, 3), 3.5 / 6.0 - 2.5 / 6.0),
        (Unparsed::OwnLabel, (1, 2), (1, 3), 3.5 / 6.0 - 2.5 / 6.0),
    ] {
        let ours = equal_opportunity(&human, &judge, policy).unwrap();
        assert_eq!((ours.favoured.count, ours.favoured.n), own);
        assert_eq!((ours.other.count, ours.other.n), other);
        let ours = self_enhancement(&human, &judge, policy).unwrap();
        near(ours.excess.estimate, excess);
        near(ours.judge - ours.human, excess);
        assert_eq!(ours.unparsed, 1);
    }
    for refused in [
        equal_opportunity(&human, &judge, Unparsed::Refused).map(drop),
        self_enhancement(&human, &judge, Unparsed::Refused).map(drop),
    ] {
        assert_eq!(refused, Err(Error::Unparsed { argument: "judge", index: 1 }));
    }
    for refused in [
        equal_opportunity(&human[1..], &judge, Unparsed::Tie).map(drop),
        self_enhancement(&human[1..], &judge, Unparsed::Tie).map(drop),
    ] {
        assert_eq!(refused, Err(Error::LengthMismatch { argument: "human", found: 5, other: "judge", expected: 6 }));
    }
    assert_eq!(equal_opportunity(&[], &[], Unparsed::Tie), Err(Error::TooFewItems { required: 1, found: 0 }));
    let one = self_enhancement(&[First, First], &[Some(First), None], Unparsed::Dropped);
    assert_eq!(one, Err(Error::TooFewItems { required: 2, found: 1 }));
}

/// `scipy.stats.ttest_rel`, 1.17.1.
#[test]
fn paired_differences_equal_scipys_paired_t() {
    for case in list(&fixture("preference")["paired"]) {
        let [a, b] = ["a", "b"].map(|column| list(&case[column]).iter().map(number).collect::<Vec<_>>());
        let ours = paired_difference(&a, &b).unwrap();
        let standard_deviation = ours.standard_error().unwrap() * (ours.n as f64).sqrt();
        close(ours.estimate, number(&case["mean"]));
        close(standard_deviation, number(&case["sd"]));
        close(ours.p_value().unwrap(), number(&case["p"]));
        for (name, level) in [("0.95", 0.95), ("0.8", 0.8)] {
            let interval = ours.interval(level).unwrap();
            // An end near 0 is a difference of numbers as large as the mean.
            let scale = ours.estimate.abs() + standard_deviation;
            assert!((interval.low - number(&case[name][0])).abs() <= 1e-10 * scale);
            assert!((interval.high - number(&case[name][1])).abs() <= 1e-10 * scale);
        }
    }
}

#[test]
fn paired_differences_that_say_nothing_are_undefined() {
    let shift = paired_difference(&[0.1, 0.2, 0.3], &[0.1, 0.2, 0.3]).unwrap();
    assert_eq!((shift.estimate, shift.standard_error()), (0.0, Ok(0.0)));
    assert!(shift.p_value().unwrap_err().is_undefined());
    assert!(shift.interval(0.95).unwrap_err().is_undefined());
    assert!(paired_difference(&[-f64::MAX, 0.0], &[f64::MAX, 0.0]).unwrap_err().is_undefined());
    assert_eq!(paired_difference(&[1.0], &[2.0]), Err(Error::TooFewItems { required: 2, found: 1 }));
    assert_eq!(
        paired_difference(&[1.0, 2.0], &[2.0]),
        Err(Error::LengthMismatch { argument: "second", found: 1, other: "first", expected: 2 })
    );
    let nan = paired_difference(&[1.0, f64::NAN], &[2.0, 3.0]);
    assert!(matches!(nan, Err(Error::NonFinite { argument: "first", index: 1, .. })));
}

#[test]
fn robustness_is_agreement_with_the_perturbed_run() {
    let original = [Some(First), Some(Second), None, None, Some(Tie)];
    let perturbed = [Some(First), Some(Tie), None, Some(Tie), Some(Tie)];
    for (policy, same, n) in
        [(Unparsed::Dropped, 2, 3), (Unparsed::Tie, 4, 5), (Unparsed::Wrong, 2, 5), (Unparsed::OwnLabel, 3, 5)]
    {
        let ours = robustness_rate(&original, &perturbed, policy).unwrap();
        assert_eq!((ours.same, ours.unparsed), (Proportion { count: same, n }, 2));
    }
    assert_eq!(
        robustness_rate(&original[..2], &[Some(First), None], Unparsed::Refused),
        Err(Error::Unparsed { argument: "perturbed", index: 1 })
    );
    assert_eq!(
        robustness_rate(&original, &[], Unparsed::Tie),
        Err(Error::LengthMismatch { argument: "perturbed", found: 0, other: "original", expected: 5 })
    );
    assert_eq!(robustness_rate(&[], &[], Unparsed::Tie), Err(Error::TooFewItems { required: 1, found: 0 }));
}

#[test]
fn an_attack_succeeds_where_a_verdict_against_becomes_one_for() {
    let before = [Some(Second), Some(Second), Some(Second), Some(Second), Some(First), Some(Tie), None];
    let after = [Some(First), Some(Tie), None, Some(Second), Some(First), Some(First), Some(First)];
    for policy in [Unparsed::Tie, Unparsed::Wrong, Unparsed::OwnLabel] {
        let ours = attack_success(&before, &after, policy).unwrap();
        assert_eq!((ours.rate, ours.unparsed), (Proportion { count: 1, n: 4 }, 2));
    }
    let dropped = attack_success(&before, &after, Unparsed::Dropped).unwrap();
    assert_eq!(dropped.rate, Proportion { count: 1, n: 3 });
    let nothing = attack_success(&[Some(First)], &[Some(First)], Unparsed::Refused).unwrap();
    assert_eq!(nothing.rate.n, 0);
    assert!(nothing.rate.estimate().unwrap_err().is_undefined());
    assert_eq!(
        attack_success(&before, &after, Unparsed::Refused),
        Err(Error::Unparsed { argument: "after", index: 2 })
    );
}
