//! What must hold for any verdicts.

use judge_metrics::bias::position::{first_shown, order_effect};
use judge_metrics::preference::Preference::{self, First, Second, Tie};
use judge_metrics::preference::{Ties, TwoOrder, Unparsed, Vote, annotator_agreement, judge_human_agreement};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

pub(crate) fn preference() -> impl Strategy<Value = Preference> {
    prop_oneof![Just(First), Just(Second), Just(Tie)]
}

fn verdict() -> impl Strategy<Value = Option<Preference>> {
    prop_oneof![4 => preference().prop_map(Some), 1 => Just(None)]
}

/// Verdicts in both orders.
fn judged() -> impl Strategy<Value = Vec<TwoOrder>> {
    prop::collection::vec((verdict(), verdict()).prop_map(|(a, b)| TwoOrder::new(a, b)), 1..60)
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
    fn naming_the_items_the_other_way_round_changes_nothing(pairs in judged(), policy in policy()) {
        let renamed: Vec<_> = pairs.iter().map(|pair| pair.renamed()).collect();
        prop_assert_eq!(order_effect(&pairs, policy), order_effect(&renamed, policy));
    }

    #[test]
    fn every_pair_is_consistent_or_leans_one_way(pairs in judged(), policy in policy()) {
        let effect = order_effect(&pairs, policy).unwrap();
        prop_assert_eq!(effect.consistent + effect.primacy + effect.recency + effect.undirected, effect.n);
        prop_assert!(effect.always_first <= effect.primacy && effect.always_second <= effect.recency);
        if matches!(policy, Unparsed::Dropped | Unparsed::Tie) {
            prop_assert_eq!(effect.undirected, 0);
        }
        if effect.n > 0 {
            let shares = [effect.consistency(), effect.prefer_before(), effect.prefer_after()];
            let sum: f64 = shares.iter().map(|share| share.estimate().unwrap()).sum();
            prop_assert!((sum + effect.undirected as f64 / effect.n as f64 - 1.0).abs() < 1e-12);
            prop_assert!((-1.0..=1.0).contains(&effect.preference_fairness().unwrap()));
        }
    }

    #[test]
    fn exchanging_the_places_turns_the_bias_round(pairs in judged(), policy in policy()) {
        let mirror = |pair: &TwoOrder| TwoOrder::from_shown(pair.shown().map(|place| place.map(Preference::swapped)));
        let mirrored: Vec<_> = pairs.iter().map(mirror).collect();
        let (ours, other) = (order_effect(&pairs, policy).unwrap(), order_effect(&mirrored, policy).unwrap());
        prop_assert_eq!((ours.primacy, ours.always_first), (other.recency, other.always_second));
        prop_assert_eq!(ours.consistent, other.consistent);
    }

    #[test]
    fn a_judge_that_always_takes_the_first_is_as_unfair_as_can_be(n in 1..60_usize) {
        let pairs = vec![TwoOrder::from_shown([Some(First), Some(First)]); n];
        let effect = order_effect(&pairs, Unparsed::Refused).unwrap();
        prop_assert_eq!((effect.consistent, effect.preference_fairness()), (0, Ok(-1.0)));
    }

    #[test]
    fn parsed_and_unparsed_are_all(pairs in judged()) {
        let shown: Vec<_> = pairs.iter().flat_map(|pair| pair.shown()).collect();
        let counts = first_shown(&shown).unwrap();
        prop_assert_eq!(counts.first + counts.second + counts.ties + counts.unparsed, shown.len());
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
}
