//! Dawid and Skene's model and the human ceiling on published labels of several people, from the folder that `JUDGE_TEST_DATA` names.

#![expect(clippy::print_stderr, reason = "the figures of the documentation are shown")]

use std::collections::BTreeMap;
use std::path::Path;

use judge_metrics::aggregation::{AggregatedLabels, AnnotatorModel, DawidSkene, MajorityVote, PanelSize};
use judge_metrics::agreement::HumanCeiling;
use serde_json::Value;

use crate::published::{folder, text};

/// PandaLM's 999 pairs: 0 for a tie, else the better answer, by three annotators.
fn pandalm(data: &Path) -> Vec<[Option<u64>; 3]> {
    let items: Vec<Value> = serde_json::from_str(&text(&data.join("pandalm/testset-v1.json"))).unwrap();
    items.iter().map(|item| ["annotator1", "annotator2", "annotator3"].map(|who| item[who].as_u64())).collect()
}

/// How many subjects have a majority, and of how many of them it is the most probable label.
fn kept(votes: &MajorityVote, found: &AggregatedLabels) -> (usize, usize) {
    let decided: Vec<(usize, usize)> = votes
        .winners
        .iter()
        .zip(&found.most_probable)
        .filter_map(|(winner, label)| Some(((*winner)?, *label)))
        .collect();
    (decided.len(), decided.iter().filter(|(winner, label)| winner == label).count())
}

#[test]
fn pandalms_annotators_are_aggregated() {
    let Some(data) = folder() else { return };
    let ratings = pandalm(&data);
    assert_eq!(ratings.len(), 999);
    let labels = [0, 1, 2];
    let votes = MajorityVote::new(&labels, &ratings).unwrap();
    for model in [AnnotatorModel::ConfusionMatrix, AnnotatorModel::OneCoin] {
        let found = DawidSkene { model, ..DawidSkene::default() }.fit(&labels, &ratings).unwrap();
        // The test set was published without pairs on which all three differ, and nobody is good enough to outvote two.
        assert_eq!(kept(&votes, &found), (999, 999));
        assert!(found.annotators.iter().all(|annotator| (0.94..0.97).contains(&annotator.accuracy)));
    }
}

#[test]
fn pandalms_judges_are_below_the_human_ceiling() {
    let Some(data) = folder() else { return };
    let ratings = pandalm(&data);
    let verdicts = |file: &str, field: &str| -> Vec<Option<u64>> {
        let outputs: Vec<Value> = serde_json::from_str(&text(&data.join("pandalm").join(file))).unwrap();
        assert!(outputs.iter().enumerate().all(|(place, row)| row["idx"] == place));
        let label = |row: &Value| match &row[field] {
            Value::Number(label) => label.as_u64(),
            Value::String(text) => match text.as_str() {
                "1" => Some(1),
                "2" => Some(2),
                "Tie" => Some(0),
                // Not a verdict.
                "garbage" => None,
                other => panic!("{other}"),
            },
            other => panic!("{other}"),
        };
        outputs.iter().map(label).collect()
    };
    let judges = [
        verdicts("pandalm-7b-testset-v1.json", "pandalm_result"),
        verdicts("gpt-3.5-turbo-testset-v1.json", "gpt_result"),
    ];
    // Items; people's figure and the judge's against the same rests; the most that the judge may be behind, with 95 %.
    let expected = [(999, 0.919_920, 0.660_327, -0.23), (974, 0.921_971, 0.706_366, -0.18)];
    for (judge, (n, people, own, most)) in judges.iter().zip(expected) {
        let ceiling = HumanCeiling::of_labels(judge, &ratings).unwrap();
        assert_eq!(ceiling.items.len(), n);
        assert!((ceiling.people.estimate - people).abs() < 1e-6 && (ceiling.judge.estimate - own).abs() < 1e-6);
        let interval = ceiling.difference.interval(0.95).unwrap();
        eprintln!("PandaLM, {n} pairs: people {people:.3}, judge {own:.3}, difference {interval:?}");
        assert!(interval.high < most, "{interval:?}");
    }
    // Both judges, right or wrong where all people agree.
    let right: Vec<[bool; 2]> = ratings
        .iter()
        .zip(judges[0].iter().zip(&judges[1]))
        .filter(|(people, _)| people[0] == people[1] && people[1] == people[2])
        .map(|(people, (a, b))| [*a == people[0], *b == people[0]])
        .collect();
    let size = PanelSize::of_verdicts(&right).unwrap();
    let interval = size.effective.interval(0.95).unwrap();
    eprintln!("PandaLM's two judges are worth {:.2}, {interval:?}", size.effective.estimate);
    assert!(1.3 < interval.low && interval.high < 1.6, "two judges who err on the same pairs: {interval:?}");
}

/// The votes of each judge on a question, a turn and two models, about the models in ascending order.
type Subjects = BTreeMap<(u64, u64, [String; 2]), BTreeMap<String, &'static str>>;

const LABELS: [&str; 3] = ["first", "second", "tie"];

fn subjects(data: &Path, file: &str) -> Subjects {
    let mut subjects = Subjects::new();
    for line in text(&data.join("mtbench").join(file)).lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let text = |field: &str| row[field].as_str().unwrap().to_owned();
        let mut models = [text("model_a"), text("model_b")];
        let winner = match row["winner"].as_str().unwrap() {
            "model_a" => Some(models[0].clone()),
            "model_b" => Some(models[1].clone()),
            "tie" | "tie (inconsistent)" => None,
            other => panic!("{other}"),
        };
        models.sort();
        let label = winner.map_or("tie", |winner| if winner == models[0] { "first" } else { "second" });
        let key = (row["question_id"].as_u64().unwrap(), row["turn"].as_u64().unwrap(), models);
        subjects.entry(key).or_default().insert(text("judge"), label);
    }
    subjects
}

/// 65 people with a few votes each: their skills need a prior.
#[test]
fn mt_benchs_people_are_aggregated() {
    let Some(data) = folder() else { return };
    let (subjects, judged) = (subjects(&data, "human.jsonl"), subjects(&data, "gpt4_pair.jsonl"));
    let mut people: Vec<&String> = subjects.values().flat_map(BTreeMap::keys).collect();
    people.sort();
    people.dedup();
    let ratings: Vec<Vec<Option<&str>>> =
        subjects.values().map(|votes| people.iter().map(|who| votes.get(*who).copied()).collect()).collect();
    assert_eq!((ratings.len(), people.len()), (1_814, 65));
    let votes = MajorityVote::new(&LABELS, &ratings).unwrap();
    let settings = DawidSkene { model: AnnotatorModel::OneCoin, smoothing: 1.0, ..DawidSkene::default() };
    let found = settings.fit(&LABELS, &ratings).unwrap();
    // Where there is a majority it mostly stands; the other 202 pairs get a label by the skill of those who voted.
    let (decided, same) = kept(&votes, &found);
    assert_eq!(decided, 1_612);
    assert!(same > 1_590 && same < decided, "{same} of {decided}");
    let accuracies: Vec<f64> = found.annotators.iter().map(|annotator| annotator.accuracy).collect();
    assert!(accuracies.iter().all(|accuracy| (0.4..0.93).contains(accuracy)), "{accuracies:?}");

    // GPT-4 beside people on the pairs that two or more voted on, each held against the others; whole questions vary.

    let judge: Vec<Option<&str>> =
        subjects.keys().map(|key| judged.get(key).and_then(|votes| votes.values().next().copied())).collect();
    let ceiling = HumanCeiling::of_labels(&judge, &ratings).unwrap();
    let questions: Vec<u64> = subjects.keys().map(|key| key.0).collect();
    let difference = ceiling.clustered_difference(&questions).unwrap();
    let interval = difference.interval(0.95).unwrap();
    let (people, own) = (ceiling.people.estimate, ceiling.judge.estimate);
    eprintln!("MT-bench, {} pairs: people {people:.3}, judge {own:.3}, difference {interval:?}", ceiling.items.len());
    assert_eq!(ceiling.items.len(), 960);
    assert!((ceiling.people.estimate - 0.680_379).abs() < 1e-6 && (ceiling.judge.estimate - 0.675_122).abs() < 1e-6);
    assert!(-0.04 < interval.low && interval.low < 0.0 && 0.0 < interval.high && interval.high < 0.03, "{interval:?}");
    assert!((difference.estimate - ceiling.difference.estimate).abs() < 1e-12);
}
