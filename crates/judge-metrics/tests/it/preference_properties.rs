//! What must hold for any verdicts.

use judge_metrics::bias::position::{first_shown, order_effect};
use judge_metrics::bias::transitivity::triples;
use judge_metrics::preference::Preference::{self, First, Second, Tie};
use judge_metrics::preference::{
    Resolution, Ties, TwoOrder, Unparsed, Vote, annotator_agreement, judge_human_agreement, single_order_agreement,
    two_order_agreement,
};
use judge_metrics::ranking::Comparison;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

const KEPT: [Unparsed; 3] = [Unparsed::Tie, Unparsed::Wrong, Unparsed::OwnLabel];

fn preference() -> impl Strategy<Value = Preference> {
    prop_oneof![Just(First), Just(Second), Just(Tie)]
}

fn verdict() -> impl Strategy<Value = Option<Preference>> {
    prop_oneof![4 => preference().prop_map(Some), 1 => Just(None)]
}

/// Verdicts in both orders and gold labels.
fn judged() -> impl Strategy<Value = (Vec<TwoOrder>, Vec<Preference>)> {
    prop::collection::vec(((verdict(), verdict()).prop_map(|(a, b)| TwoOrder::new(a, b)), preference()), 1..60)
        .prop_map(|rows| rows.into_iter().unzip())
}

#[test]
fn more_than_all_are_no_share() {
    let share = judge_metrics::Proportion { count: 5, n: 3 };
    for error in
        [share.estimate().unwrap_err(), share.wilson(0.95).unwrap_err(), share.clopper_pearson(0.95).unwrap_err()]
    {
        assert!(matches!(error, judge_metrics::Error::OutOfRange { argument: "count", .. }), "{error}");
    }
}

fn policy() -> impl Strategy<Value = Unparsed> {
    prop_oneof![Just(Unparsed::Dropped), Just(Unparsed::Tie), Just(Unparsed::Wrong), Just(Unparsed::OwnLabel)]
}

const MODELS: [&str; 4] = ["a", "b", "c", "d"];
const PEOPLE: [&str; 3] = ["ann", "bo", "cy"];

fn votes() -> impl Strategy<Value = Vec<Vote<'static>>> {
    let vote = (0..2_usize, 0..4_usize, 1..4_usize, 1..3_u32, 0..3_usize, preference());
    let vote = vote.prop_map(|(question, model, step, turn, person, preference)| Vote {
        question: ["q1", "q2"][question],
        models: [MODELS[model], MODELS[(model + step) % 4]],
        turn,
        annotator: PEOPLE[person],
        preference,
    });
    prop::collection::vec(vote, 1..40)
}

proptest! {
    // The same cases on every machine and in every run.
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(4), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn naming_the_items_the_other_way_round_changes_nothing((pairs, gold) in judged(), policy in policy()) {
        let renamed: Vec<_> = pairs.iter().map(|pair| pair.renamed()).collect();
        let gold_renamed: Vec<_> = gold.iter().map(|gold| gold.swapped()).collect();
        let ours = two_order_agreement(&gold, &pairs, policy).unwrap();
        let other = two_order_agreement(&gold_renamed, &renamed, policy).unwrap();
        // Which order is called the original is part of the names.
        prop_assert_eq!((ours.original, ours.swapped), (other.swapped, other.original));
        prop_assert_eq!((ours.both, ours.conservative, ours.consistent), (other.both, other.conservative, other.consistent));
        prop_assert_eq!(ours.accuracy(Resolution::Average), other.accuracy(Resolution::Average));
        prop_assert_eq!(order_effect(&pairs, policy), order_effect(&renamed, policy));
    }

    #[test]
    fn the_strict_rule_is_the_strictest((pairs, gold) in judged(), policy in policy()) {
        let ours = two_order_agreement(&gold, &pairs, policy).unwrap();
        prop_assert!(ours.both.count <= ours.original.count.min(ours.swapped.count));
        prop_assert!(ours.both.count <= ours.consistent.count);
        prop_assert!(ours.both.count <= ours.conservative.count);
        if let Ok(average) = ours.accuracy(Resolution::Average) {
            let orders = [ours.original, ours.swapped].map(|order| order.estimate().unwrap());
            prop_assert!(ours.accuracy(Resolution::BothCorrect).unwrap() <= orders[0].min(orders[1]));
            prop_assert!(orders[0].min(orders[1]) <= average && average <= orders[0].max(orders[1]));
        }
    }

    #[test]
    fn every_pair_is_consistent_or_leans_one_way((pairs, gold) in judged(), policy in policy()) {
        let effect = order_effect(&pairs, policy).unwrap();
        prop_assert_eq!(effect.consistent + effect.primacy + effect.recency + effect.undirected, effect.n);
        prop_assert!(effect.always_first <= effect.primacy && effect.always_second <= effect.recency);
        if matches!(policy, Unparsed::Dropped | Unparsed::Tie) {
            prop_assert_eq!(effect.undirected, 0);
        }
        prop_assert_eq!(effect.consistency(), two_order_agreement(&gold, &pairs, policy).unwrap().consistent);
        if effect.n > 0 {
            let shares = [effect.consistency(), effect.prefer_before(), effect.prefer_after()];
            let sum: f64 = shares.iter().map(|share| share.estimate().unwrap()).sum();
            prop_assert!((sum + effect.undirected as f64 / effect.n as f64 - 1.0).abs() < 1e-12);
            let (fairness, delta) = (effect.preference_fairness().unwrap(), effect.delta_bias().unwrap());
            prop_assert!((-1.0..=1.0).contains(&fairness) && fairness.abs() == delta);
            prop_assert!(delta <= effect.total_bias().estimate().unwrap() + 1e-15);
        }
    }

    #[test]
    fn exchanging_the_places_turns_the_bias_round((pairs, _) in judged(), policy in policy()) {
        let mirror = |pair: &TwoOrder| TwoOrder::from_shown(pair.shown().map(|place| place.map(Preference::swapped)));
        let mirrored: Vec<_> = pairs.iter().map(mirror).collect();
        let (ours, other) = (order_effect(&pairs, policy).unwrap(), order_effect(&mirrored, policy).unwrap());
        prop_assert_eq!((ours.primacy, ours.always_first), (other.recency, other.always_second));
        prop_assert_eq!(ours.consistent, other.consistent);
    }

    #[test]
    fn a_judge_that_always_takes_the_first_is_right_half_the_time(
        gold in prop::collection::vec(prop_oneof![Just(First), Just(Second)], 1..60),
    ) {
        let pairs = vec![TwoOrder::from_shown([Some(First), Some(First)]); gold.len()];
        let ours = two_order_agreement(&gold, &pairs, Unparsed::Refused).unwrap();
        prop_assert_eq!(ours.consistent.count, 0);
        prop_assert_eq!(ours.original.count + ours.swapped.count, gold.len());
        prop_assert!((ours.accuracy(Resolution::Average).unwrap() - 0.5).abs() < 1e-15);
        prop_assert_eq!(order_effect(&pairs, Unparsed::Refused).unwrap().preference_fairness(), Ok(-1.0));
    }

    #[test]
    fn parsed_and_unparsed_are_all((pairs, gold) in judged()) {
        let dropped = two_order_agreement(&gold, &pairs, Unparsed::Dropped).unwrap();
        prop_assert_eq!(dropped.both.n + dropped.unparsed, pairs.len());
        for policy in KEPT {
            let kept = two_order_agreement(&gold, &pairs, policy).unwrap();
            prop_assert_eq!((kept.both.n, kept.unparsed), (pairs.len(), dropped.unparsed));
        }
        let shown: Vec<_> = pairs.iter().flat_map(|pair| pair.shown()).collect();
        let counts = first_shown(&shown).unwrap();
        prop_assert_eq!(counts.first + counts.second + counts.ties + counts.unparsed, shown.len());
        let single: Vec<_> = pairs.iter().map(|pair| pair.original).collect();
        let single = single_order_agreement(&gold, &single, Unparsed::Dropped).unwrap();
        prop_assert_eq!(single.correct.n + single.unparsed, pairs.len());
    }

    #[test]
    fn mapping_back_is_its_own_inverse(a in verdict(), b in verdict()) {
        let pair = TwoOrder::new(a, b);
        prop_assert_eq!(TwoOrder::from_shown(pair.shown()), pair);
        prop_assert_eq!(pair.renamed().renamed(), pair);
    }

    #[test]
    fn votes_agree_whichever_model_is_named_first_and_in_any_order(votes in votes(), seed in any::<u64>()) {
        let mut other: Vec<_> = votes
            .iter()
            .map(|vote| Vote { models: [vote.models[1], vote.models[0]], preference: vote.preference.swapped(), ..*vote })
            .collect();
        let shift = (seed % votes.len() as u64) as usize;
        other.rotate_left(shift);
        for ties in [Ties::Counted, Ties::Excluded] {
            prop_assert_eq!(annotator_agreement(&votes, ties), annotator_agreement(&other, ties));
            let among = annotator_agreement(&votes, ties).unwrap().total();
            prop_assert!(among.count <= among.n);
            // Everybody against everybody counts each pair twice.
            let twice = judge_human_agreement(&votes, &votes, ties).unwrap().total();
            prop_assert_eq!((twice.count, twice.n), (2 * among.count, 2 * among.n));
        }
    }

    #[test]
    fn verdicts_by_score_are_transitive(scores in prop::collection::vec(0..5_i32, 3..9), margin in 0..3_i32) {
        let names: Vec<String> = (0..scores.len()).map(|item| item.to_string()).collect();
        let mut comparisons = Vec::new();
        for i in 0..scores.len() {
            for j in 0..i {
                let pair = [scores[i], scores[j]].map(f64::from);
                let preference = Preference::from_scores(pair, f64::from(margin)).unwrap();
                comparisons.push(Comparison { items: [&names[i], &names[j]], preference });
            }
        }
        let counts = triples(&comparisons).unwrap();
        let n = scores.len();
        prop_assert_eq!(counts.triples, n * (n - 1) * (n - 2) / 6);
        prop_assert!(counts.cyclic == 0 && counts.strict == 0);
        if margin == 0 {
            prop_assert_eq!(counts.weak, 0, "a threshold alone makes ties intransitive");
        }
    }

    #[test]
    fn violations_are_nested_and_survive_relabelling(
        verdicts in prop::collection::vec(preference(), 10),
        order in Just([0, 1, 2, 3, 4]).prop_shuffle(),
    ) {
        let names = ["a", "b", "c", "d", "e"];
        let table = |order: [usize; 5]| {
            let mut verdict = verdicts.iter();
            let mut comparisons = Vec::new();
            for i in 0..5 {
                for j in 0..i {
                    let preference = *verdict.next().unwrap();
                    comparisons.push(Comparison { items: [names[order[i]], names[order[j]]], preference });
                }
            }
            comparisons
        };
        let counts = triples(&table([0, 1, 2, 3, 4])).unwrap();
        prop_assert!(counts.cyclic <= counts.strict && counts.strict <= counts.weak && counts.weak <= counts.triples);
        prop_assert!(counts.cyclic <= counts.decisive && counts.decisive <= counts.triples);
        prop_assert_eq!(triples(&table(order)).unwrap(), counts);
    }
}
