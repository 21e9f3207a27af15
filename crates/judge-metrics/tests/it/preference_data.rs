//! Published verdicts, from the folder that `JUDGE_TEST_DATA` names: place in LLMBar's shipped outputs, and MT-bench's agreement of GPT-4
//! with people. Counts that upstream does not print are those of `python scripts/metrics/preference_fixtures.py $JUDGE_TEST_DATA`.

use std::path::Path;

use judge_metrics::Proportion;
use judge_metrics::agreement::McNemarTest;
use judge_metrics::bias::position::order_effect;
use judge_metrics::bias::self_preference::{equal_opportunity, self_enhancement};
use judge_metrics::preference::Preference::{First, Second, Tie};
use judge_metrics::preference::{Ties, TwoOrder, Unparsed, Vote, annotator_agreement, judge_human_agreement};
use judge_metrics::resampling::Bootstrap;
use serde_json::Value;

use crate::published::{folder, text};

/// One judge's verdicts on one subset, about the items.
fn llmbar(folder: &Path) -> Vec<TwoOrder> {
    let items: Vec<Value> = serde_json::from_str(&text(&folder.join("result.json"))).unwrap();
    let winner = |item: &Value, order: &str| match item["results"].as_array().unwrap().last().unwrap()[order]["winner"]
        .as_str()
    {
        Some("1") => Some(First),
        Some("2") => Some(Second),
        Some(other) => panic!("{other}"),
        None => None,
    };
    // The winner in the exchanged order is mapped back to the items in the files.
    let pairs = items.iter().map(|item| TwoOrder::new(winner(item, "swap = False"), winner(item, "swap = True")));
    pairs.collect()
}

const LLMBAR: [&str; 8] = [
    "Natural/evaluators/GPT-4/Vanilla_NoRules",
    "Natural/evaluators/GPT-4/Rating",
    "Natural/evaluators/ChatGPT/Vanilla_NoRules",
    "Natural/evaluators/Falcon/CoT",
    "Adversarial/Neighbor/evaluators/GPT-4/Vanilla_NoRules",
    "Adversarial/Neighbor/evaluators/GPT-4/Rating",
    "Adversarial/Neighbor/evaluators/ChatGPT/Vanilla_NoRules",
    "Adversarial/Neighbor/evaluators/Falcon/CoT",
];

#[test]
fn unparsed_verdicts_of_llmbar_change_figures_only_through_the_policy() {
    let Some(data) = folder() else { return };
    // Falcon has two unparsed verdicts here, on two of the 134 pairs, one of which is right in the other order.
    let pairs = llmbar(&data.join("llmbar/LLMBar").join(LLMBAR[7]));
    for (policy, n) in
        [(Unparsed::Dropped, 132), (Unparsed::Tie, 134), (Unparsed::Wrong, 134), (Unparsed::OwnLabel, 134)]
    {
        let ours = order_effect(&pairs, policy).unwrap();
        assert_eq!((ours.consistent, ours.n), (21, n));
    }
    let effect = order_effect(&pairs, Unparsed::Dropped).unwrap();
    // It chooses the place shown first both times on 111 of 132 pairs, the second never.
    assert_eq!((effect.n, effect.always_first, effect.always_second), (132, 111, 0));
    assert!(effect.mcnemar(McNemarTest::Exact).unwrap().p_value < 1e-30);
    assert!((effect.preference_fairness().unwrap() + 111.0 / 132.0).abs() < 1e-15);
}

#[test]
fn llmbars_judges_differ_in_their_bias() {
    let Some(data) = folder() else { return };
    // Chosen first both times, second both times.
    let expected = [(2, 1), (0, 10), (30, 2), (86, 0), (7, 7), (1, 28), (35, 1), (111, 0)];
    for (run, expected) in LLMBAR.iter().zip(expected) {
        let pairs = llmbar(&data.join("llmbar/LLMBar").join(run));
        let effect = order_effect(&pairs, Unparsed::OwnLabel).unwrap();
        assert_eq!((effect.always_first, effect.always_second), expected, "{run}");
    }
}

struct Label {
    question: String,
    models: [String; 2],
    turn: u32,
    judge: String,
    winner: String,
}

/// MT-bench's released labels.
fn labels(data: &Path, file: &str) -> Vec<Label> {
    let row = |line: &str| {
        let row: Value = serde_json::from_str(line).unwrap();
        let text = |field: &str| row[field].as_str().unwrap().to_owned();
        Label {
            question: row["question_id"].to_string(),
            models: [text("model_a"), text("model_b")],
            turn: row["turn"].as_u64().unwrap() as u32,
            judge: text("judge"),
            winner: text("winner"),
        }
    };
    text(&data.join("mtbench").join(file)).lines().map(row).collect()
}

fn votes(labels: &[Label], turn: u32) -> Vec<Vote<'_>> {
    let of_turn = labels.iter().filter(|label| label.turn == turn);
    of_turn
        .map(|label| Vote {
            question: &label.question,
            models: [&label.models[0], &label.models[1]],
            turn: label.turn,
            annotator: &label.judge,
            preference: match label.winner.as_str() {
                "model_a" => First,
                "model_b" => Second,
                "tie" | "tie (inconsistent)" => Tie,
                other => panic!("{other}"),
            },
        })
        .collect()
}

/// Zheng et al. (2023) print 66 % and 85 % for GPT-4 and people (S1, S2), and for two people 63 % and 81 % on the first
/// turn, 67 % and 82 % on the second: the experts' votes give these, while the authors' votes are in the files too.
#[test]
fn mt_benchs_agreement_follows_from_its_labels() {
    let Some(data) = folder() else { return };
    let (everybody, gpt4) = (labels(&data, "human.jsonl"), labels(&data, "gpt4_pair.jsonl"));
    assert_eq!((everybody.len(), gpt4.len()), (3355, 2400));
    assert_eq!(gpt4.iter().filter(|label| label.winner == "tie (inconsistent)").count(), 380);
    let (experts, authors): (Vec<_>, Vec<_>) =
        everybody.into_iter().partition(|label| label.judge.starts_with("expert"));
    assert_eq!((experts.len(), authors.len()), (2668, 687));

    let of = |count, n| Proportion { count, n };
    let expected = [
        (1, Ties::Counted, of(886, 1343), of(454, 721), 0.66, 0.63),
        (1, Ties::Excluded, of(727, 859), of(388, 479), 0.85, 0.81),
        (2, Ties::Counted, of(871, 1325), of(471, 707), 0.66, 0.67),
        (2, Ties::Excluded, of(731, 864), of(388, 474), 0.85, 0.82),
    ];
    for (turn, ties, between, among, published_between, published_among) in expected {
        let (judge, human) = (votes(&gpt4, turn), votes(&experts, turn));
        let ours = judge_human_agreement(&judge, &human, ties).unwrap();
        assert_eq!(ours.total(), between);
        assert_eq!((100.0 * between.estimate().unwrap()).round(), 100.0 * published_between);
        assert_eq!(ours.questions.len(), 80);
        let bootstrap = Bootstrap { resamples: 2_000, ..Bootstrap::default() };
        let interval = ours.interval(&bootstrap).unwrap().interval;
        assert!(interval.low < published_between && published_between < interval.high, "{interval:?}");

        let ours = annotator_agreement(&human, ties).unwrap();
        assert_eq!(ours.total(), among);
        assert_eq!((100.0 * among.estimate().unwrap()).round(), 100.0 * published_among);
    }

    // Experts and authors together, both turns.
    let all: Vec<_> =
        [&experts, &authors].into_iter().flat_map(|people| [votes(people, 1), votes(people, 2)]).flatten().collect();
    let judge = [votes(&gpt4, 1), votes(&gpt4, 2)].concat();
    assert_eq!(judge_human_agreement(&judge, &all, Ties::Counted).unwrap().total(), of(2220, 3355));
    assert_eq!(judge_human_agreement(&judge, &all, Ties::Excluded).unwrap().total(), of(1823, 2129));
    assert_eq!(annotator_agreement(&all, Ties::Counted).unwrap().total(), of(1551, 2367));
    assert_eq!(annotator_agreement(&all, Ties::Excluded).unwrap().total(), of(1282, 1550));
}

/// GPT-4 as a judge of its own answers, beside each expert's vote on the same pair and turn. The paper speaks of a win
/// rate that is 10 points higher (section 3.3).
#[test]
fn gpt4_favours_its_own_answers_in_mt_bench() {
    let Some(data) = folder() else { return };
    let (everybody, gpt4) = (labels(&data, "human.jsonl"), labels(&data, "gpt4_pair.jsonl"));
    let experts: Vec<_> = everybody.into_iter().filter(|label| label.judge.starts_with("expert")).collect();
    // About GPT-4's own answer, named first.
    let own = |vote: Vote<'_>| match vote.models {
        ["gpt-4", other] => Some((vote.question.to_owned(), vote.turn, other.to_owned(), vote.preference)),
        [other, "gpt-4"] => Some((vote.question.to_owned(), vote.turn, other.to_owned(), vote.preference.swapped())),
        _ => None,
    };
    let (mut judge, mut human) = (Vec::new(), Vec::new());
    for turn in [1, 2] {
        let judged: Vec<_> = votes(&gpt4, turn).into_iter().filter_map(own).collect();
        for (question, turn, other, preference) in votes(&experts, turn).into_iter().filter_map(own) {
            let same = judged.iter().find(|judged| (&judged.0, judged.1, &judged.2) == (&question, turn, &other));
            judge.push(same.map(|judged| judged.3));
            human.push(preference);
        }
    }
    assert_eq!(human.len(), 880);
    let opportunity = equal_opportunity(&human, &judge, Unparsed::Refused).unwrap();
    assert_eq!(opportunity.favoured, Proportion { count: 486, n: 564 });
    assert_eq!(opportunity.other, Proportion { count: 18, n: 140 });

    let enhancement = self_enhancement(&human, &judge, Unparsed::Refused).unwrap();
    assert_eq!((enhancement.judge, enhancement.human), (753.5 / 880.0, 652.0 / 880.0));
    let interval = enhancement.excess.interval(0.95).unwrap();
    for (ours, expected) in [
        (enhancement.excess.estimate, 0.115_340_909_090_909_1),
        (interval.low, 0.088_051_531_808_073_8),
        (interval.high, 0.142_630_286_373_744_4),
    ] {
        assert!((ours - expected).abs() < 1e-12, "{ours}, not {expected}");
    }
}
