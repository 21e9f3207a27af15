//! Three biases on made judges whose bias is known, and on published verdicts.

use judge_metrics::comparison::{BiasPair, BiasReport, PerturbationReport, PerturbedVerdicts};
use judge_metrics::preference::Preference::{self, First, Second, Tie};
use judge_metrics::preference::Unparsed;
use judge_metrics::resampling::Bootstrap;
use serde_json::Value;

use crate::published::json as published;

fn report(pairs: Vec<BiasPair>, both_orders: bool) -> BiasReport {
    let bootstrap = Bootstrap { resamples: 200, ..Bootstrap::default() };
    BiasReport { pairs, both_orders, unparsed: Unparsed::Wrong, bootstrap }
}

/// Sixty questions; people prefer the first response of every second one, the longer one is the first of every third.
fn pairs(judge: impl Fn(usize) -> [Option<Preference>; 2]) -> Vec<BiasPair> {
    let pair = |row: usize| {
        let [given, swapped] = judge(row);
        BiasPair {
            given,
            swapped,
            human: if row.is_multiple_of(2) { First } else { Second },
            lengths: Some(if row.is_multiple_of(3) { [9.0, 4.0] } else { [4.0, 9.0] }),
            own: Some(if row.is_multiple_of(5) { First } else { Second }),
            question: row.to_string(),
        }
    };
    (0..60).map(pair).collect()
}

#[test]
fn a_judge_that_loves_the_first_place_is_found_out() {
    let [position, verbosity, own] = report(pairs(|_| [Some(First), Some(Second)]), true).findings().unwrap();
    assert_eq!((position.key().unwrap().estimate(), position.direction()), (Some(-1.0), Some(-1)));
    assert!(position.sentence().contains("larger than chance; responses shown first gain"), "{}", position.sentence());
    // It chooses every length and every author equally often.
    assert_eq!(verbosity.statistics[1].1.estimate(), Some(0.5));
    assert_eq!(own.statistics[1].1.estimate(), Some(0.5));
}

#[test]
fn a_judge_that_loves_length_or_itself_is_found_out() {
    let longer = |row: usize| Some(if row.is_multiple_of(3) { First } else { Second });
    let [position, verbosity, _] = report(pairs(|row| [longer(row); 2]), true).findings().unwrap();
    assert_eq!((position.key().unwrap().estimate(), position.direction()), (Some(0.0), Some(0)));
    assert_eq!((verbosity.statistics[1].1.estimate(), verbosity.direction()), (Some(1.0), Some(1)));
    assert!(verbosity.sentence().contains("longer responses gain"), "{}", verbosity.sentence());

    let own = |row: usize| Some(if row.is_multiple_of(5) { First } else { Second });
    let [_, _, found] = report(pairs(|row| [own(row); 2]), true).findings().unwrap();
    assert_eq!((found.statistics[1].1.estimate(), found.direction()), (Some(1.0), Some(1)));
}

#[test]
fn what_the_pairs_lack_is_said() {
    let bare = |pair: BiasPair| BiasPair { lengths: None, own: None, swapped: None, ..pair };
    let given = pairs(|_| [Some(First), None]).into_iter().map(bare).collect();
    let found = report(given, false).findings().unwrap();
    for (finding, needs) in found.iter().zip(["both orders", "texts", "own model"]) {
        assert!(finding.sentence().contains(needs) && finding.direction().is_none(), "{}", finding.sentence());
        assert_eq!(finding.n, 0);
    }
    assert!(report(Vec::new(), true).findings().is_err());
    // Two questions that agree prove nothing.
    let two = pairs(|_| [Some(First), Some(Second)]).into_iter().take(2).collect();
    let [position, ..] = report(two, true).findings().unwrap();
    assert_eq!((position.key().unwrap().estimate(), position.direction()), (Some(-1.0), None));
    // One question: a value without an interval.
    let one = pairs(|_| [Some(First), Some(First)])
        .into_iter()
        .map(|pair| BiasPair { question: "q".into(), ..pair })
        .collect();
    let [position, ..] = report(one, true).findings().unwrap();
    assert_eq!((position.key().unwrap().estimate(), position.direction()), (Some(0.0), None));
    assert!(position.sentence().contains("too few questions"), "{}", position.sentence());
}

/// Falcon reasons, and picks what it is shown first in 245 of its 266 verdicts that LLMBar's notes count on the subset Neighbor.
#[test]
fn falcon_loves_the_first_place() {
    let path = "llmbar/LLMBar/Adversarial/Neighbor/evaluators/Falcon/CoT/result.json";
    let Some(rows) = published::<Vec<Value>>(path) else { return };
    let pair = |row: &Value| {
        let last = row["results"].as_array().unwrap().last().unwrap();
        let winner = |order: &str| match last[order]["winner"].as_str() {
            Some("1") => Some(First),
            Some("2") => Some(Second),
            Some(_) => Some(Tie),
            None => None,
        };
        let length = |name: &str| row[name].as_str().unwrap().chars().count() as f64;
        BiasPair {
            given: winner("swap = False"),
            swapped: winner("swap = True"),
            human: if row["label"] == 1 { First } else { Second },
            lengths: Some([length("output_1"), length("output_2")]),
            own: None,
            question: row["input"].as_str().unwrap().to_owned(),
        }
    };
    let [position, verbosity, _] = report(rows.iter().map(pair).collect(), true).findings().unwrap();
    let named =
        |name: &str| position.statistics.iter().find(|(known, _)| *known == name).unwrap().1.estimate().unwrap();
    assert!((named("first_share") - 245.0 / 266.0).abs() < 1e-12, "{}", named("first_share"));
    assert_eq!(position.direction(), Some(-1));
    // The gold response is the longer one in 11.9 % of the pairs; a judge that looks at places alone chooses it in half.
    assert_eq!(verbosity.direction(), Some(1));
}

/// Sixty questions in both orders; the judge is for the changed response of every third one before, and with the neutral change on one
/// question more.
fn perturbed(after: impl Fn(usize) -> Option<Preference>) -> PerturbationReport {
    let verdict = |wins: bool| Some(if wins { First } else { Second });
    let pair = |row: usize| PerturbedVerdicts {
        before: vec![verdict(row.is_multiple_of(3)); 2],
        neutral: vec![verdict(row.is_multiple_of(3) || row == 1); 2],
        after: vec![after(row); 2],
        question: row.to_string(),
    };
    let bootstrap = Bootstrap { resamples: 200, ..Bootstrap::default() };
    PerturbationReport { pairs: (0..60).map(pair).collect(), unparsed: Unparsed::Wrong, bootstrap }
}

#[test]
fn a_change_that_pays_is_told_from_noise() {
    let estimates = |report: &PerturbationReport| -> Vec<Option<f64>> {
        report.finding("restated").unwrap().statistics.iter().map(|(_, statistic)| statistic.estimate()).collect()
    };
    let bought = perturbed(|row| Some(if row.is_multiple_of(2) || row.is_multiple_of(3) { First } else { Second }));
    let finding = bought.finding("restated").unwrap();
    assert_eq!(finding.direction(), Some(1));
    assert!(
        finding.sentence().starts_with("restated: larger than chance; changed responses gain 31.7 points of win rate"),
        "{}",
        finding.sentence()
    );
    // Twenty of sixty before, twenty-one with the neutral change, forty after.
    let expected = [19.0 / 60.0, 20.0 / 60.0, 20.0 / 40.0, 1.0 / 40.0, 40.0 / 60.0, 59.0 / 60.0];
    for (found, expected) in estimates(&bought).into_iter().zip(expected) {
        assert!((found.unwrap() - expected).abs() < 1e-12, "{found:?}, not {expected}");
    }

    let deaf = perturbed(|row| Some(if row.is_multiple_of(3) || row == 1 { First } else { Second }));
    assert_eq!((deaf.finding("restated").unwrap().direction(), estimates(&deaf)[0]), (Some(0), Some(0.0)));

    // A text without a verdict is half a win, or takes no part.
    let silent = perturbed(|row| if row.is_multiple_of(3) { None } else { Some(Second) });
    assert_eq!(estimates(&silent)[1], Some(-1.0 / 6.0));
    let dropped = PerturbationReport { unparsed: Unparsed::Dropped, ..silent };
    assert_eq!(estimates(&dropped)[1], Some(0.0));
    let refused = PerturbationReport { unparsed: Unparsed::Refused, ..dropped };
    assert_eq!(estimates(&refused)[..2], [None, None]);
}

#[test]
fn changes_that_apply_to_nothing_and_orders_that_differ_are_said() {
    let none = PerturbationReport { pairs: vec![], ..perturbed(|_| None) };
    let finding = none.finding("list").unwrap();
    assert_eq!((finding.n, finding.direction()), (0, None));
    assert!(finding.sentence().contains("applies to no response"), "{}", finding.sentence());
    let mut uneven = perturbed(|_| Some(First));
    uneven.pairs[3].after.pop();
    assert!(matches!(uneven.finding("list"), Err(judge_metrics::Error::LengthMismatch { .. })));
}
