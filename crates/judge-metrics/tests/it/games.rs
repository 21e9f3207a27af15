//! The Bradley–Terry model of games with weights, covariates and clusters, against statsmodels (`scripts/metrics/games_fixtures.py`).

use judge_metrics::Error;
use judge_metrics::preference::Preference::{First, Second, Tie};
use judge_metrics::ranking::{BradleyTerry, Comparison, Game, TieModel};
use serde_json::Value;

use crate::fixtures::{cases, count, list, numbers};

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

#[track_caller]
fn near(ours: f64, expected: f64) {
    assert!((ours - expected).abs() <= 1e-9 * expected.abs().max(1e-3), "{ours}, not {expected}");
}

#[test]
fn games_equal_statsmodels() {
    for case in cases("games", "cases", 4) {
        let name = |side: &str, row: usize| NAMES[count(&case[side][row])];
        let (preferences, weights) = (numbers(&case["preference"]), numbers(&case["weight"]));
        let covariates: Vec<Vec<f64>> = list(&case["covariates"]).iter().map(numbers).collect();
        let clusters: Option<Vec<String>> =
            case["clusters"].as_array().map(|clusters| clusters.iter().map(Value::to_string).collect());
        let games: Vec<Game<'_>> = (0..preferences.len())
            .map(|row| Game {
                items: [name("first", row), name("second", row)],
                preference: preferences[row],
                weight: weights[row],
                covariates: &covariates[row],
                cluster: clusters.as_ref().map(|clusters| clusters[row].as_str()),
            })
            .collect();
        let fitted = BradleyTerry::default().fit_games(&games).unwrap();
        assert_eq!(fitted.items().len() as u64, case["m"].as_u64().unwrap());
        for (item, (strength, error)) in numbers(&case["strengths"]).into_iter().zip(numbers(&case["se"])).enumerate() {
            let ours = fitted.strength(NAMES[item]).unwrap();
            near(ours.estimate, strength);
            near(ours.standard_error().unwrap(), error);
        }
        let difference = fitted.difference("a", "b").unwrap();
        near(difference.standard_error().unwrap(), case["difference_se"].as_f64().unwrap());
        assert_eq!(difference.n, games.len());
        let coefficients = fitted.coefficients().unwrap();
        assert_eq!(coefficients.len(), covariates[0].len());
        for (ours, (value, error)) in
            coefficients.iter().zip(numbers(&case["coefficients"]).into_iter().zip(numbers(&case["coefficient_se"])))
        {
            near(ours.estimate, value);
            near(ours.standard_error().unwrap(), error);
        }
    }
}

#[test]
fn games_without_more_are_comparisons() {
    let verdicts =
        [(0, 1, First), (1, 2, First), (2, 0, Tie), (1, 0, First), (2, 1, First), (0, 2, Second), (2, 0, Second)];
    let comparisons: Vec<Comparison<'_>> =
        verdicts.map(|(i, j, preference)| Comparison { items: [NAMES[i], NAMES[j]], preference }).to_vec();
    let games: Vec<Game<'_>> = comparisons.iter().copied().map(Game::from).collect();
    for prior_precision in [0.0, 0.3] {
        let model = BradleyTerry { prior_precision, ..BradleyTerry::default() };
        let (plain, of_games) = (model.fit(&comparisons).unwrap(), model.fit_games(&games).unwrap());
        for name in &NAMES[..3] {
            let (a, b) = (plain.strength(name).unwrap(), of_games.strength(name).unwrap());
            near(a.estimate, b.estimate);
            near(a.standard_error().unwrap(), b.standard_error().unwrap());
        }
        // A weight of two is the game twice; of nothing, no game.
        let doubled: Vec<Game<'_>> = games.iter().map(|game| Game { weight: 2.0, ..*game }).collect();
        let mut twice = games.clone();
        twice.extend(&games);
        twice.push(Game { weight: 0.0, ..games[0] });
        let (a, b) = (model.fit_games(&doubled).unwrap(), model.fit_games(&twice).unwrap());
        near(
            a.difference("a", "c").unwrap().standard_error().unwrap(),
            b.difference("a", "c").unwrap().standard_error().unwrap(),
        );
        // Copies within a cluster say no more than one of them.
        let clustered = |games: &[Game<'_>], copies: usize| {
            let names: Vec<String> = (0..games.len()).map(|row| (row % (games.len() / copies)).to_string()).collect();
            let named: Vec<Game<'_>> =
                games.iter().zip(&names).map(|(game, name)| Game { cluster: Some(name), ..*game }).collect();
            BradleyTerry::default().fit_games(&named).unwrap().difference("a", "c").unwrap().standard_error().unwrap()
        };
        near(clustered(&games, 1), clustered(&twice[..games.len() * 2], 2));
    }
}

#[test]
fn bad_games_are_refused() {
    let game = Game { items: ["a", "b"], preference: 0.5, weight: 1.0, covariates: &[], cluster: None };
    let fit = |games: &[Game<'_>]| BradleyTerry::default().fit_games(games);
    assert!(matches!(fit(&[]), Err(Error::TooFewItems { required: 1, found: 0 })));
    let bad = fit(&[Game { preference: 1.2, ..game }]);
    assert!(matches!(bad, Err(Error::OutOfRange { argument: "preference", index: Some(0), .. })));
    let bad = fit(&[game, Game { weight: -1.0, ..game }]);
    assert!(matches!(bad, Err(Error::OutOfRange { argument: "weight", index: Some(1), .. })));
    assert!(matches!(fit(&[Game { weight: f64::NAN, ..game }]), Err(Error::NonFinite { argument: "weight", .. })));
    assert!(matches!(fit(&[game, Game { covariates: &[1.0], ..game }]), Err(Error::InRow { row: 1, .. })));
    assert!(matches!(fit(&[Game { covariates: &[f64::INFINITY], ..game }]), Err(Error::InRow { row: 0, .. })));
    assert!(matches!(fit(&[Game { items: ["a", "a"], ..game }]), Err(Error::SelfComparison { .. })));
    let one = Game { cluster: Some("q"), ..game };
    assert!(matches!(fit(&[one, one]), Err(Error::TooFewClusters { required: 2, found: 1 })));
    // A covariate that is the same for all games of the same order is the difference of the items.
    let same = Game { covariates: &[1.0], ..game };
    assert!(matches!(fit(&[same, same]), Err(Error::NoConvergence { .. })));
    let davidson = BradleyTerry { ties: TieModel::Davidson, ..BradleyTerry::default() };
    assert!(davidson.fit_games(&[game]).unwrap_err().is_undefined());
}
