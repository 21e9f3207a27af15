//! Verdicts of pairwise judges against plain counting in `scripts/metrics/preference_fixtures.py`, against published
//! tables, and what is refused.

use std::collections::BTreeMap;

use judge_metrics::Error;
use judge_metrics::Proportion;
use judge_metrics::bias::transitivity::{TripleCounts, preference_transitivity, triples};
use judge_metrics::preference::Preference::{First, Second, Tie};
use judge_metrics::preference::{
    Preference, Resolution, Ties, TwoOrder, Unparsed, Vote, VoteAgreement, annotator_agreement, by_group,
    judge_human_agreement, score_average, single_order_agreement, soft_agreement, two_order_agreement,
};
use judge_metrics::ranking::Comparison;
use judge_metrics::resampling::Bootstrap;
use serde_json::Value;

const POLICIES: [(&str, Unparsed); 4] = [
    ("dropped", Unparsed::Dropped),
    ("tie", Unparsed::Tie),
    ("wrong", Unparsed::Wrong),
    ("own_label", Unparsed::OwnLabel),
];

fn fixture() -> Value {
    serde_json::from_str(include_str!("../fixtures/preference.json")).unwrap()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

fn count(value: &Value) -> usize {
    value.as_u64().unwrap() as usize
}

fn proportion(pair: &Value) -> Proportion {
    Proportion { count: count(&pair[0]), n: count(&pair[1]) }
}

fn verdict(letter: char) -> Option<Preference> {
    match letter {
        '1' => Some(First),
        '2' => Some(Second),
        'T' => Some(Tie),
        '-' => None,
        _ => panic!("{letter}"),
    }
}

fn verdicts(text: &Value) -> Vec<Option<Preference>> {
    text.as_str().unwrap().chars().map(verdict).collect()
}

fn parsed(text: &Value) -> Vec<Preference> {
    verdicts(text).into_iter().map(Option::unwrap).collect()
}

#[test]
fn two_orders_are_counted_as_defined_under_every_policy() {
    for case in list(&fixture()["two_order"]) {
        let (original, swapped) = (verdicts(&case["original"]), verdicts(&case["swapped"]));
        let gold = parsed(&case["gold"]);
        let pairs: Vec<_> = original.iter().zip(&swapped).map(|(&a, &b)| TwoOrder::new(a, b)).collect();
        for (name, policy) in POLICIES {
            let expected = &case[name];
            let at = |field: &str| count(&expected[field]);
            let ours = two_order_agreement(&gold, &pairs, policy).unwrap();
            for (proportion, field) in [
                (ours.original, "original"),
                (ours.swapped, "swapped"),
                (ours.both, "both"),
                (ours.conservative, "conservative"),
                (ours.consistent, "consistent"),
            ] {
                assert_eq!(proportion, Proportion { count: at(field), n: at("n") }, "{name}: {field}");
            }
            assert_eq!(ours.unparsed, at("unparsed"));

            let single = single_order_agreement(&gold, &original, policy).unwrap();
            let left = original.iter().filter(|verdict| verdict.is_some() || policy != Unparsed::Dropped).count();
            assert_eq!(single.correct.n, left);
            if policy != Unparsed::Dropped {
                assert_eq!(single.correct, ours.original);
            }
        }
        let refused = two_order_agreement(&gold, &pairs, Unparsed::Refused);
        match pairs.iter().position(|pair| pair.original.is_none() || pair.swapped.is_none()) {
            Some(index) => assert_eq!(refused, Err(Error::Unparsed { argument: "verdicts", index })),
            None => assert_eq!(refused, two_order_agreement(&gold, &pairs, Unparsed::Dropped)),
        }
    }
}

/// `statsmodels.stats.proportion.proportion_confint(method="wilson")`, 0.15.0, and
/// `scipy.stats.binomtest(…).proportion_ci()`, 1.17.1.
#[test]
fn intervals_of_a_proportion_equal_statsmodels_and_scipys() {
    for case in list(&fixture()["proportion"]) {
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

/// Auto-J's transitions of verdicts from the first order to the second as given there (its released outputs; 0, 1, 2
/// are first, second and tie) reproduce its consistency, 83.41 %. The gold labels are not here, so the strict rule is
/// checked on pairs made for it.
#[test]
fn auto_js_strict_rule_asks_both_orders_to_be_right() {
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
    assert_eq!(pairs.len(), 1392);
    let ours = two_order_agreement(&vec![First; 1392], &pairs, Unparsed::Refused).unwrap();
    assert_eq!(ours.consistent.count, 558 + 573 + 30);
    assert!((ours.consistent.estimate().unwrap() - 0.83405).abs() < 5e-6);
    // Were the first item always right, the second order would be whenever it names the place shown second.
    assert_eq!((ours.original.count, ours.swapped.count), (558 + 55 + 9, 558 + 121 + 15));
    assert_eq!(ours.both.count, 558);

    let pairs = [[First, First], [First, Tie], [Tie, First], [Second, Second], [Tie, Tie]];
    let pairs = pairs.map(|[a, b]| TwoOrder::new(Some(a), Some(b)));
    let ours = two_order_agreement(&[First, First, First, First, Tie], &pairs, Unparsed::Refused).unwrap();
    let of_five = |count| Proportion { count, n: 5 };
    assert_eq!((ours.both, ours.consistent, ours.conservative), (of_five(2), of_five(3), of_five(2)));
    assert_eq!(ours.accuracy(Resolution::First), Ok(0.6));
    assert_eq!(ours.accuracy(Resolution::Average), Ok(0.6));
    assert_eq!(ours.accuracy(Resolution::BothCorrect), Ok(0.4));
    assert_eq!(ours.accuracy(Resolution::Conservative), Ok(0.4));
}

#[test]
fn verdicts_follow_from_scores() {
    let margin = |scores, margin| Preference::from_scores(scores, margin).unwrap();
    assert_eq!(margin([8.0, 7.0], 0.0), First);
    assert_eq!(margin([7.0, 7.0], 0.0), Tie);
    assert_eq!(margin([7.0, 8.0], 1.0), Tie, "a margin is not exceeded by itself");
    assert_eq!(margin([7.0, 8.25], 1.0), Second);
    let infinite = Preference::from_scores([1.0, f64::INFINITY], 0.0);
    assert_eq!(infinite, Err(Error::NonFinite { argument: "scores", index: 1, value: f64::INFINITY }));
    for bad in [-0.1, f64::INFINITY, f64::NAN] {
        assert!(matches!(
            Preference::from_scores([1.0, 2.0], bad),
            Err(Error::OutOfRange { argument: "margin", index: None, .. })
        ));
    }
    // 8 and 7 in one order, 6 and 9 in the other: the second item has the higher mean.
    assert_eq!(score_average([8.0, 7.0], [6.0, 9.0], 0.0), Ok(Second));
    assert_eq!(score_average([8.0, 7.0], [7.0, 8.0], 0.0), Ok(Tie));
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
    for case in list(&fixture()["votes"]) {
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
    let case = &fixture()["votes"][2];
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

fn comparisons(rows: &Value) -> Vec<Comparison<'_>> {
    list(rows)
        .iter()
        .map(|row| Comparison { items: [0, 1].map(|i| row[i].as_str().unwrap()), preference: parsed(&row[2])[0] })
        .collect()
}

/// The first 27 cases are all verdicts on one triple: 2 cycles, 8 violations of strict transitivity, 14 that no ranking
/// explains.
#[test]
fn triples_are_counted_as_a_search_over_rankings_finds() {
    let fixture = fixture();
    let cases = list(&fixture["triples"]);
    for case in cases {
        let ours = triples(&comparisons(&case["rows"])).unwrap();
        let expected: Vec<usize> = list(&case["counts"]).iter().map(count).collect();
        assert_eq!([ours.triples, ours.decisive, ours.cyclic, ours.strict, ours.weak], *expected);
    }
    let all: TripleCounts = cases[..27].iter().map(|case| triples(&comparisons(&case["rows"])).unwrap()).sum();
    assert_eq!(all.cyclic_rate(), Proportion { count: 2, n: 8 });
    assert_eq!(all.strict_rate(), Proportion { count: 8, n: 27 });
    assert_eq!(all.weak_rate(), Proportion { count: 14, n: 27 });
}

#[test]
fn chains_of_gold_verdicts_are_followed() {
    for case in list(&fixture()["chains"]) {
        let ours = preference_transitivity(&comparisons(&case["gold"]), &comparisons(&case["judge"])).unwrap();
        assert_eq!(ours, proportion(&case["kept"]));
    }
}

#[test]
fn comparisons_that_name_a_pair_twice_are_refused() {
    let comparison = |items, preference| Comparison { items, preference };
    let twice = [comparison(["a", "b"], First), comparison(["b", "a"], Second)];
    let selfish = [comparison(["a", "a"], Tie)];
    assert_eq!(triples(&twice), Err(Error::RepeatedComparison { argument: "comparisons", index: 1 }));
    assert_eq!(triples(&selfish), Err(Error::SelfComparison { argument: "comparisons", index: 0 }));
    assert_eq!(
        preference_transitivity(&twice[..1], &selfish),
        Err(Error::SelfComparison { argument: "judge", index: 0 })
    );
    let none = triples(&[]).unwrap();
    assert_eq!(none.triples, 0);
    assert!(none.weak_rate().estimate().unwrap_err().is_undefined());
}

#[test]
fn unusable_columns_are_refused() {
    let pair = TwoOrder::new(Some(First), None);
    assert_eq!(
        two_order_agreement(&[], &[pair], Unparsed::Tie),
        Err(Error::LengthMismatch { argument: "gold", found: 0, other: "verdicts", expected: 1 })
    );
    assert_eq!(two_order_agreement(&[], &[], Unparsed::Tie), Err(Error::TooFewItems { required: 1, found: 0 }));
    assert_eq!(single_order_agreement(&[], &[], Unparsed::Tie), Err(Error::TooFewItems { required: 1, found: 0 }));
    assert_eq!(
        single_order_agreement(&[First, First], &[Some(First), None], Unparsed::Refused),
        Err(Error::Unparsed { argument: "verdicts", index: 1 })
    );
    // All pairs dropped: counted, and undefined only when a share is asked for.
    let dropped = two_order_agreement(&[First], &[pair], Unparsed::Dropped).unwrap();
    assert_eq!((dropped.both, dropped.unparsed), (Proportion { count: 0, n: 0 }, 1));
    for resolution in [Resolution::First, Resolution::Average, Resolution::BothCorrect, Resolution::Conservative] {
        assert!(dropped.accuracy(resolution).unwrap_err().is_undefined());
    }
    assert_eq!(
        Error::Unparsed { argument: "verdicts", index: 1 }.to_string(),
        "verdicts[1] is unparsed: choose what becomes of such verdicts"
    );
}

#[test]
fn a_group_without_the_statistic_leaves_the_others_alone() {
    let verdicts = [Some(First), None, Some(Tie)];
    let accuracy = by_group(&["b", "a", "b"], |rows| {
        let taken: Vec<_> = rows.iter().map(|&row| verdicts[row]).collect();
        single_order_agreement(&vec![First; rows.len()], &taken, Unparsed::Dropped)?.correct.estimate()
    });
    assert_eq!(accuracy[&"b"], Ok(0.5));
    assert!(accuracy[&"a"].as_ref().unwrap_err().is_undefined());
    assert!(by_group(&[] as &[u8], |_| Ok(())).is_empty());
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
    assert!(matches!(verdict(1.1, 0.0), Err(Error::OutOfRange { argument: "p", .. })));
    assert!(matches!(verdict(f64::NAN, 0.0), Err(Error::NonFinite { argument: "p", .. })));
    assert!(matches!(verdict(0.5, 0.6), Err(Error::OutOfRange { argument: "margin", .. })));

    // Certain probabilities agree as verdicts do, and a judge that exchanges the items agrees with exchanged labels.
    let gold = [First, Second, Tie, First];
    assert_eq!(soft_agreement(&gold, &[1.0, 1.0, 0.5, 0.0]).unwrap().estimate, 0.5);
    let p = [0.7, 0.2, 0.6, 0.1];
    let (ours, swapped) =
        (soft_agreement(&gold, &p), soft_agreement(&gold.map(Preference::swapped), &p.map(|p| 1.0 - p)));
    assert!((ours.unwrap().estimate - swapped.unwrap().estimate).abs() < 1e-12);
    assert!(matches!(soft_agreement(&[Tie], &[2.0]), Err(Error::OutOfRange { index: Some(0), .. })));
    assert!(matches!(soft_agreement(&[], &[0.5]), Err(Error::LengthMismatch { .. })));
    assert_eq!(soft_agreement(&[], &[]), Err(Error::TooFewItems { required: 1, found: 0 }));
}
