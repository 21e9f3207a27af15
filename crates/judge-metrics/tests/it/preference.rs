//! Verdicts of pairwise judges against plain counting in `scripts/metrics/preference_fixtures.py`, against published
//! tables, and what is refused.

use std::collections::BTreeMap;

use judge_metrics::Error;
use judge_metrics::Proportion;
use judge_metrics::preference::Preference::{First, Second, Tie};
use judge_metrics::preference::{
    Preference, Ties, TwoOrder, Vote, VoteAgreement, annotator_agreement, judge_human_agreement,
};
use judge_metrics::resampling::Bootstrap;
use serde_json::Value;

use crate::fixtures::{count, fixture, list};

pub(crate) fn proportion(pair: &Value) -> Proportion {
    Proportion { count: count(&pair[0]), n: count(&pair[1]) }
}

/// One for each letter.
pub(crate) fn verdicts(text: &Value) -> Vec<Option<Preference>> {
    let verdict = |letter| match letter {
        '1' => Some(First),
        '2' => Some(Second),
        'T' => Some(Tie),
        '-' => None,
        _ => panic!("{letter}"),
    };
    text.as_str().unwrap().chars().map(verdict).collect()
}

fn parsed(text: &Value) -> Vec<Preference> {
    verdicts(text).into_iter().map(Option::unwrap).collect()
}

/// `statsmodels.stats.proportion.proportion_confint(method="wilson")`, 0.15.0, and
/// `scipy.stats.binomtest(…).proportion_ci()`, 1.17.1.
#[test]
fn intervals_of_a_proportion_equal_statsmodels_and_scipys() {
    for case in list(&fixture("preference")["proportion"]) {
        let [level, ends @ ..] = [2, 3, 4, 5, 6].map(|i| case[i].as_f64().unwrap());
        let share = proportion(case);
        let ours = [share.wilson(level), share.clopper_pearson(level)].map(Result::unwrap);
        for (ours, expected) in ours.iter().zip(ends.chunks(2)) {
            // SciPy finds exact ends by root search to about 1e-12.
            assert!(
                (ours.low - expected[0]).abs() <= 1e-10 * expected[0].max(1e-2),
                "{share:?}: {ours:?}, not {expected:?}"
            );
            assert!(
                (ours.high - expected[1]).abs() <= 1e-10 * expected[1].max(1e-2),
                "{share:?}: {ours:?}, not {expected:?}"
            );
            let estimate = share.estimate().unwrap();
            assert!(0.0 <= ours.low && ours.low <= estimate && estimate <= ours.high && ours.high <= 1.0);
        }
    }
    let (nothing, half) = (Proportion { count: 0, n: 0 }, Proportion { count: 1, n: 2 });
    for interval in [Proportion::wilson, Proportion::clopper_pearson] {
        assert!(interval(&nothing, 0.95).unwrap_err().is_undefined());
        assert_eq!(interval(&half, 0.0), Err(Error::LevelOutOfRange { level: 0.0 }));
    }
}

#[test]
fn verdicts_follow_from_scores() {
    let margin = |scores, margin| Preference::from_scores(scores, margin).unwrap();
    assert_eq!(margin([8.0, 7.0], 0.0), First);
    assert_eq!(margin([7.0, 7.0], 0.0), Tie);
    assert_eq!(margin([7.0, 8.0], 1.0), Tie, "a margin is not exceeded by itself");
    assert_eq!(margin([7.0, 8.25], 1.0), Second);
    // What is a margin apart but for rounding, in either order; without a margin every difference counts.
    for first in 1..200 {
        for tenths in [1, 3, 7] {
            let scores = [first + tenths, first].map(|tenths| f64::from(tenths) / 10.0);
            for scores in [scores, [scores[1], scores[0]]] {
                assert_eq!(margin(scores, f64::from(tenths) / 10.0), Tie, "{scores:?}");
            }
            assert_eq!(margin(scores, f64::from(tenths) / 10.0 - 1e-9), First, "{scores:?}");
        }
    }
    assert_eq!(margin([1.0, 1.0_f64.next_up()], 0.0), Second);
    assert_eq!(margin([f64::MAX, f64::MIN], f64::MAX), First);
    let infinite = Preference::from_scores([1.0, f64::INFINITY], 0.0);
    assert_eq!(infinite, Err(Error::NonFinite { argument: "scores", index: 1, value: f64::INFINITY }));
    for bad in [-0.1, f64::INFINITY, f64::NAN] {
        assert!(matches!(
            Preference::from_scores([1.0, 2.0], bad),
            Err(Error::OutOfRange { argument: "margin", index: None, .. })
        ));
    }
    assert_eq!([First, Second, Tie].map(Preference::credit), [1.0, 0.0, 0.5]);
}

fn agreements(value: &Value) -> BTreeMap<&str, Proportion> {
    let questions = value.as_object().unwrap().iter();
    questions.map(|(question, pair)| (question.as_str(), proportion(pair))).collect()
}

/// Questions without a comparison are kept by us and not listed by the script.
fn made<'a>(ours: &VoteAgreement<'a>) -> BTreeMap<&'a str, Proportion> {
    ours.questions.iter().filter(|question| question.agreed.n > 0).map(|q| (q.question, q.agreed)).collect()
}

fn votes(rows: &Value) -> Vec<Vote<'_>> {
    list(rows)
        .iter()
        .map(|row| Vote {
            question: row["q"].as_str().unwrap(),
            models: [0, 1].map(|i| row["models"][i].as_str().unwrap()),
            turn: count(&row["turn"]) as u32,
            annotator: row["who"].as_str().unwrap(),
            preference: parsed(&row["verdict"])[0],
        })
        .collect()
}

#[test]
fn votes_agree_as_often_as_brute_force_finds() {
    for case in list(&fixture("preference")["votes"]) {
        let (human, judge) = (votes(&case["human"]), votes(&case["judge"]));
        for (ties, name) in [(Ties::Counted, "counted"), (Ties::Excluded, "excluded")] {
            let between = judge_human_agreement(&judge, &human, ties).unwrap();
            assert_eq!(made(&between), agreements(&case["between"][name]));
            // Who is called the judge makes no difference.
            assert_eq!(judge_human_agreement(&human, &judge, ties).unwrap(), between);
            let among = annotator_agreement(&human, ties).unwrap();
            assert_eq!(made(&among), agreements(&case["among"][name]));
            let total: Proportion = agreements(&case["among"][name]).into_values().sum();
            assert_eq!(among.total(), total);
        }
    }
}

#[test]
fn an_interval_of_votes_resamples_questions() {
    let case = &fixture("preference")["votes"][2];
    let agreement = annotator_agreement(&votes(&case["human"]), Ties::Counted).unwrap();
    let bootstrap = Bootstrap { resamples: 500, ..Bootstrap::default() };
    let ours = agreement.interval(&bootstrap).unwrap();
    assert_eq!(ours.estimate, agreement.total().estimate().unwrap());
    assert!(ours.interval.low < ours.estimate && ours.estimate < ours.interval.high);

    // One question alone says nothing about the spread between questions.
    let alone = VoteAgreement { questions: vec![agreement.questions[0]] }.interval(&bootstrap).unwrap_err();
    assert!(alone.is_undefined(), "{alone}");
}

#[test]
fn votes_that_cannot_be_compared_are_refused_or_undefined() {
    let vote = |question, models, annotator| Vote { question, models, turn: 1, annotator, preference: First };
    let [a, b, selfish] = [vote("1", ["x", "y"], "ann"), vote("2", ["x", "y"], "bo"), vote("1", ["x", "x"], "ann")];
    assert_eq!(annotator_agreement(&[], Ties::Counted), Err(Error::TooFewItems { required: 1, found: 0 }));
    assert_eq!(judge_human_agreement(&[a], &[], Ties::Counted), Err(Error::TooFewItems { required: 1, found: 0 }));
    assert_eq!(
        judge_human_agreement(&[a], &[b, selfish], Ties::Counted),
        Err(Error::SelfComparison { argument: "human", index: 1 })
    );
    let apart = judge_human_agreement(&[a], &[b], Ties::Counted).unwrap();
    assert_eq!((apart.questions.len(), apart.total()), (2, Proportion { count: 0, n: 0 }));
    assert!(apart.total().estimate().unwrap_err().is_undefined());
    assert!(apart.interval(&Bootstrap::default()).unwrap_err().is_undefined());
    // Nobody is compared with itself.
    assert_eq!(annotator_agreement(&[a, a], Ties::Counted).unwrap().total().n, 0);
    assert_eq!(judge_human_agreement(&[a], &[a], Ties::Counted).unwrap().total().n, 0);
}

#[test]
fn orderings_and_probabilities_become_verdicts() {
    use std::cmp::Ordering::{Equal, Greater, Less};
    for (ordering, verdict) in [(Greater, First), (Less, Second), (Equal, Tie)] {
        assert_eq!(Preference::from(ordering), verdict);
        assert_eq!(std::cmp::Ordering::from(verdict), ordering);
        // The other order of the two items.
        assert_eq!(Preference::from(ordering.reverse()), verdict.swapped());
    }
    // Both orders are about the items already: nothing is mapped back.
    assert_eq!(TwoOrder::from([Some(Greater), None]), TwoOrder::new(Some(First), None));
    assert_eq!(TwoOrder::from([Less, Greater]), TwoOrder::new(Some(Second), Some(First)));

    let verdict = |p, margin| Preference::from_probability(p, margin);
    assert_eq!([0.0, 0.49, 0.5, 0.51, 1.0].map(|p| verdict(p, 0.0).unwrap()), [Second, Second, Tie, First, First]);
    assert_eq!([0.39, 0.45, 0.61].map(|p| verdict(p, 0.1).unwrap()), [Second, Tie, First]);
    assert_eq!([0.44, 0.45, 0.55, 0.56].map(|p| verdict(p, 0.05).unwrap()), [Second, Tie, Tie, First]);
    assert_eq!([0.5_f64.next_down(), 0.5_f64.next_up()].map(|p| verdict(p, 0.0).unwrap()), [Second, First]);
    assert!(matches!(verdict(1.1, 0.0), Err(Error::OutOfRange { argument: "p", .. })));
    assert!(matches!(verdict(f64::NAN, 0.0), Err(Error::NonFinite { argument: "p", .. })));
    assert!(matches!(verdict(0.5, 0.6), Err(Error::OutOfRange { argument: "margin", .. })));
}
