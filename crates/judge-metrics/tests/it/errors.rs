//! What the correlations refuse, and that the error says where.

use judge_metrics::correlation::{
    KendallTest, RankVariance, TauWeights, average_ranks, fisher_interval, kendall_tau_b, kendall_tau_c, pearson,
    somers_d, spearman, spearman_interval, weighted_tau,
};
use judge_metrics::{Error, Estimate};

type Statistic = fn(&[f64], &[f64]) -> Result<Estimate, Error>;

const CORRELATIONS: [Statistic; 10] = [
    pearson,
    spearman,
    |x, y| kendall_tau_b(x, y, KendallTest::Auto),
    |x, y| kendall_tau_b(x, y, KendallTest::Exact),
    |x, y| kendall_tau_b(x, y, KendallTest::Asymptotic),
    |x, y| kendall_tau_c(x, y, KendallTest::Auto),
    somers_d,
    |x, y| weighted_tau(x, y, TauWeights::Mean),
    |x, y| weighted_tau(x, y, TauWeights::ByX),
    |x, y| weighted_tau(x, y, TauWeights::AsGiven),
];

#[test]
fn unusable_columns_are_refused_by_every_correlation() {
    for correlation in CORRELATIONS {
        assert_eq!(
            correlation(&[1.0, 2.0], &[1.0]),
            Err(Error::LengthMismatch { argument: "y", found: 1, other: "x", expected: 2 })
        );
        assert_eq!(correlation(&[], &[]), Err(Error::TooFewItems { required: 2, found: 0 }));
        assert_eq!(correlation(&[1.0], &[1.0]), Err(Error::TooFewItems { required: 2, found: 1 }));
        assert_eq!(correlation(&[7.0; 3], &[1.0, 2.0, 3.0]), Err(Error::Constant { argument: "x", value: 7.0 }));
        assert_eq!(correlation(&[1.0, 2.0], &[0.0, -0.0]), Err(Error::Constant { argument: "y", value: 0.0 }));
        assert_eq!(
            correlation(&[1.0, 2.0, 3.0], &[4.0, 5.0, f64::INFINITY]),
            Err(Error::NonFinite { argument: "y", index: 2, value: f64::INFINITY })
        );
        let nan = correlation(&[1.0, f64::NAN, f64::INFINITY], &[4.0, 5.0, 6.0]);
        assert!(matches!(nan, Err(Error::NonFinite { argument: "x", index: 1, value }) if value.is_nan()));
        // An undefined statistic is one thing, unusable input another: a bootstrap goes on after the first only.
        assert!(correlation(&[7.0; 3], &[1.0, 2.0, 3.0]).unwrap_err().is_undefined());
        assert!(!nan.unwrap_err().is_undefined());
    }
}

#[test]
fn the_exact_test_refuses_what_it_cannot_do() {
    let tied = kendall_tau_b(&[1.0, 1.0, 1.0, 2.0], &[1.0, 2.0, 2.0, 3.0], KendallTest::Exact);
    assert_eq!(tied, Err(Error::TiesInExactTest { x: 3, y: 1 }));

    let x: Vec<f64> = (0..2001).map(f64::from).collect();
    let mut y = x.clone();
    y.swap(0, 1);
    assert!(kendall_tau_b(&x, &y, KendallTest::Exact).is_ok(), "one pair out of line costs nothing");
    y.swap(5, 6);
    let large = kendall_tau_b(&x, &y, KendallTest::Exact);
    assert_eq!(large, Err(Error::TooManyItemsForExactTest { limit: 2000, found: 2001 }));
}

#[test]
fn intervals_and_ranks_refuse_what_is_out_of_range() {
    for r in [1.5, -1.000_1, f64::NEG_INFINITY] {
        assert_eq!(fisher_interval(r, 10, 0.95), Err(Error::NotACorrelation { value: r }));
    }
    assert!(matches!(fisher_interval(f64::NAN, 10, 0.95), Err(Error::NotACorrelation { .. })));
    assert_eq!(fisher_interval(0.5, 1, 0.95), Err(Error::TooFewItems { required: 2, found: 1 }));
    for level in [0.0, 1.0, 95.0] {
        assert_eq!(fisher_interval(0.5, 10, level), Err(Error::LevelOutOfRange { level }));
    }
    for (r, n, level) in [(1.5, 10, 0.95), (0.5, 1, 0.95), (0.5, 10, 1.0)] {
        let expected = fisher_interval(r, n, level);
        assert!(expected.is_err());
        assert_eq!(spearman_interval(r, n, level, RankVariance::default()), expected);
    }
    let infinite = average_ranks(&[1.0, f64::NEG_INFINITY]);
    assert_eq!(infinite, Err(Error::NonFinite { argument: "values", index: 1, value: f64::NEG_INFINITY }));
    assert_eq!(average_ranks(&[]), Ok(vec![]));
    assert_eq!(average_ranks(&[0.0, -0.0, -1.0]), Ok(vec![2.5, 2.5, 1.0]));
}

#[test]
fn messages_say_what_and_where() {
    let messages = [
        (Error::NonFinite { argument: "x", index: 3, value: f64::NAN }, "x[3] is NaN, not a finite number"),
        (Error::NonFiniteStatistic { resample: Some(4), value: f64::INFINITY }, "the statistic is inf on resample 4"),
        (Error::NonFiniteStatistic { resample: None, value: f64::INFINITY }, "the statistic is inf on the given rows"),
    ];
    for (error, message) in messages {
        assert_eq!(error.to_string(), message);
    }
}

#[test]
fn a_range_without_an_end_is_said_in_few_digits() {
    let far = judge_metrics::preference::Preference::from_scores([1.0, 2.0], -0.5).unwrap_err();
    assert_eq!(far.to_string(), "margin is -0.5, not in [0, 1.79769e308]");
    let share = judge_metrics::planning::items_for_proportion(1.25, 0.1, 0.95).unwrap_err();
    assert_eq!(share.to_string(), "share is 1.25, not in [0, 1]");
}
