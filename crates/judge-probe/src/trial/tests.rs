use judge_core::Layer;
use judge_core::request::Signal;
use judge_metrics::resampling::Bootstrap;

use super::*;
use crate::{Error, Matrix};

/// Numbers that follow nothing, in [-½, ½): splitmix64.
fn noise(row: usize, of: usize) -> f64 {
    let mut mixed = ((row << 20) + of) as u64;
    for factor in [0xBF58_476D_1CE4_E5B9, 0x94D0_49BB_1331_11EB] {
        mixed = mixed.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(factor);
        mixed ^= mixed >> 27;
    }
    (mixed >> 40) as f64 / f64::from(1 << 24) - 0.5
}

const ROWS: usize = 160;

fn grades() -> Vec<f64> {
    (0..ROWS).map(|row| 1.0 + ((noise(row, 0) + 0.5) * 5.0).floor()).collect()
}

fn trial(grades: Vec<f64>) -> Trial {
    Trial { bootstrap: Bootstrap { resamples: 300, ..Bootstrap::default() }, ..Trial::new(grades) }
}

/// States of which layer 2 has the grade among noise; `told` is how much of it, and `draw` names the noise.
fn states(told: f64, draw: usize) -> impl Fn(&[usize], Layer, &[Signal]) -> Result<Matrix, Error> + Sync {
    let grades = grades();
    move |rows, layer, signals| {
        assert_eq!(signals, [SIGNAL]);
        let state = |&row: &usize| {
            let grade = if layer == Layer(2) { told * grades[row] } else { 0.0 };
            (0..20).map(move |of| noise(row, 1000 * draw + 100 * layer.0 + of + 1) + if of == 3 { grade } else { 0.0 })
        };
        Matrix::from_rows(rows.iter().map(|row| state(row).collect::<Vec<_>>()))
    }
}

/// Signals of readings that ask for none.
type NoStates = fn(&[usize], Layer, &[Signal]) -> Result<Matrix, Error>;

fn blurred(grades: &[f64], by: f64, of: usize) -> Vec<f64> {
    grades.iter().enumerate().map(|(row, grade)| grade + by * noise(row, of)).collect()
}

#[test]
fn a_probe_that_knows_more_is_recommended_and_kept() {
    let (grades, states) = (grades(), states(1.0, 0));
    let layers: Vec<Layer> = (0..4).map(Layer).collect();
    let readings = [
        Reading::new("last layer", ReadAs::Plain(blurred(&grades, 9.0, 50))),
        Reading::new("probe", ReadAs::Probe { layers, signals: &states }),
        Reading::new("length", ReadAs::Baseline(blurred(&grades, 0.0, 0))),
    ];
    let trial = trial(grades.clone());
    let found = trial.compare(&readings).unwrap();
    // The baseline is perfect, and no judge.
    assert_eq!((found.measure, found.best, found.recommended), (Measure::Spearman, Some(1), Some(1)));
    assert!(found.readings[2].behind_best.estimate() < Some(0.0), "{:?}", found.readings[2]);
    let behind = found.readings[0].behind_best.interval().unwrap();
    assert!(behind.low > 0.0, "{behind:?}");
    let labels: Vec<usize> = found.readings[1].by_labels.iter().map(|point| point.labels).collect();
    assert_eq!(labels, [32, 64, 128]);
    assert!(found.readings[0].by_labels.is_empty() && found.readings[0].more_labels.is_none());

    let Kept::Probe(layer, probe) = trial.keep(&readings[1]).unwrap() else { panic!("a probe") };
    assert_eq!(layer, Layer(2));
    let all: Vec<usize> = (0..ROWS).collect();
    let predicted = probe.scores(&states(&all, layer, &[SIGNAL]).unwrap()).unwrap().unwrap();
    let off = predicted.iter().zip(&grades).map(|(one, other)| (one - other).abs()).sum::<f64>() / ROWS as f64;
    assert!(off < 0.5, "{off}");
}

#[test]
fn nothing_is_learnt_from_the_rows_that_it_is_judged_by() {
    // States and layers without a word of the grades: on average nothing is found. What were learnt from a row itself would show, and so
    // would the mean grade of the other folds, the other way round.
    let (draws, mut sums) = (10, [0.0; 2]);
    for draw in 0..draws {
        let states = states(0.0, 1 + draw);
        let layers: Vec<Layer> = (0..4).map(Layer).collect();
        let of_layer = |layer| (0..ROWS).map(|row| noise(row, 50_000 + 100 * draw + layer)).collect();
        let found = trial(grades())
            .compare(&[
                Reading::new("best layer", ReadAs::ChosenLayer((0..30).map(of_layer).collect())),
                Reading::new("probe", ReadAs::Probe { layers, signals: &states }),
            ])
            .unwrap();
        for (sum, tried) in sums.iter_mut().zip(&found.readings) {
            *sum += tried.agreement.estimate().unwrap() / draws as f64;
        }
    }
    // Three standard errors.
    let most = 3.0 / ((ROWS * draws) as f64).sqrt();
    assert!(sums.iter().all(|mean| mean.abs() < most), "{sums:?}, {most}");
}

/// Numbers of layers alone.
fn of_layers(trial: &Trial, layers: Vec<Vec<f64>>) -> (Compared, Kept) {
    let reading = Reading::<NoStates>::new("best", ReadAs::ChosenLayer(layers));
    let kept = trial.keep(&reading).unwrap();
    (trial.compare(&[reading]).unwrap(), kept)
}

#[test]
fn a_layer_is_chosen_by_other_rows_and_comparable_between_them() {
    let grades = grades();
    // The layers' ranges differ by a factor.
    let layers = vec![
        blurred(&grades, 6.0, 60),
        blurred(&grades, 0.5, 61).iter().map(|value| 1000.0 * value).collect(),
        blurred(&grades, 6.0, 62),
    ];
    let (found, kept) = of_layers(&trial(grades.clone()), layers.clone());
    assert_eq!(kept, Kept::Layer(Layer(1)));
    let alone = judge_metrics::correlation::spearman(&layers[1], &grades).unwrap().estimate;
    assert!((found.readings[0].agreement.estimate().unwrap() - alone).abs() < 0.02, "{alone}: {found:?}");
}

#[test]
fn a_single_layer_is_as_good_as_the_same_numbers_that_nothing_chose() {
    // Were folds compared by the mean grade of the others, weak readings would seem to know the opposite.
    let grades = grades();
    let weak = blurred(&grades, 40.0, 63);
    let alone = judge_metrics::correlation::spearman(&weak, &grades).unwrap().estimate;
    let (found, _) = of_layers(&trial(grades), vec![weak]);
    assert!((found.readings[0].agreement.estimate().unwrap() - alone).abs() < 0.03, "{alone}: {found:?}");
}

#[test]
fn a_layer_that_knows_the_opposite_is_not_turned_round() {
    let grades = grades();
    let opposite = blurred(&grades, 1.0, 64).iter().map(|value| -value).collect();
    let (found, kept) = of_layers(&trial(grades), vec![opposite]);
    assert!(found.readings[0].agreement.estimate() < Some(-0.5), "{found:?}");
    assert_eq!(kept, Kept::Layer(Layer(0)));
}

#[test]
fn of_readings_that_are_alike_the_simplest_is_recommended() {
    let grades = grades();
    let alike = blurred(&grades, 2.0, 70);
    let mut slightly_better = alike.clone();
    slightly_better[0] = grades[0];
    let readings = [
        Reading::<NoStates>::new("constant", ReadAs::Plain(vec![1.0; ROWS])),
        Reading::new("first", ReadAs::Plain(alike.clone())),
        Reading::new("second", ReadAs::Plain(slightly_better)),
    ];
    let found = trial(grades).compare(&readings).unwrap();
    assert!(found.readings[0].agreement.estimate().is_none());
    assert_eq!(found.recommended, Some(1));
    assert!((found.level - (1.0 - 0.05 / 3.0)).abs() < 1e-12);
}

#[test]
fn what_is_not_shown_to_agree_is_not_recommended_where_something_is() {
    let grades = grades();
    // Weak enough that neither is shown to be worse than the other.
    let (weak, better) = (blurred(&grades, 18.0, 71), blurred(&grades, 24.0, 72));
    let compare = |values: [&Vec<f64>; 2]| {
        let readings = values.map(|values| Reading::<NoStates>::new("values", ReadAs::Plain(values.clone())));
        trial(grades.clone()).compare(&readings).unwrap()
    };
    let found = compare([&weak, &better]);
    let shown = |of: &Compared| [0, 1].map(|place| of.readings[place].is_shown_to_agree(of.measure));
    assert_eq!(shown(&found), [false, true], "{found:?}");
    assert!(found.readings[0].behind_best.interval().unwrap().low < 0.0, "{found:?}");
    assert_eq!(found.recommended, Some(1));
    let found = compare([&weak, &weak]);
    assert_eq!((shown(&found), found.recommended), ([false; 2], Some(0)));
}

#[test]
fn of_two_grades_it_is_how_well_they_are_told_apart() {
    let grades: Vec<f64> = (0..ROWS).map(|row| f64::from(u8::from(noise(row, 0) > 0.2))).collect();
    let values = blurred(&grades, 3.0, 80);
    let reading = Reading::<NoStates>::new("values", ReadAs::Plain(values.clone()));
    let found = trial(grades.clone()).compare(&[reading]).unwrap();
    let outcomes: Vec<bool> = grades.iter().map(|grade| *grade == 1.0).collect();
    let expected = judge_metrics::prediction::auroc(&outcomes, &values).unwrap().estimate;
    assert_eq!((found.measure, found.readings[0].agreement.estimate()), (Measure::Auroc, Some(expected)));
}

#[test]
fn the_best_answer_is_that_of_the_highest_number_and_of_equal_numbers_each_as_often() {
    // Of four answers to a question; the third and fourth question have no best answer, and none to choose from.
    let grades: Vec<f64> =
        (0..ROWS).map(|row| if row < 8 { [1.0, 5.0, 5.0, 2.0][row % 4] } else { (row / 4) as f64 }).collect();
    let values: Vec<f64> =
        [0.1, 0.9, 0.2, 0.9, 0.3, 0.1, 0.2, 0.0].into_iter().chain((8..ROWS).map(|row| row as f64)).collect();
    let questions: Vec<usize> = (0..ROWS).map(|row| row / 4).collect();
    let trial = Trial { questions: questions.clone(), groups: questions, ..trial(grades) };
    let reading = |values: &[f64]| Reading::<NoStates>::new("values", ReadAs::Plain(values.to_vec()));
    let found = trial.compare(&[reading(&values), reading(&[1.0; ROWS])]).unwrap();
    assert_eq!(found.best_of, Some(BestOfAnswers { questions: 2, at_random: 0.5 }));
    let chosen = found.readings.iter().map(|tried| tried.best_chosen.as_ref().unwrap().estimate());
    // One of two, and none; what says nothing of any row chooses nothing.
    assert_eq!(chosen.collect::<Vec<_>>(), [Some(0.25), None]);
    let alone = Trial { questions: (0..ROWS).collect(), ..trial }.compare(&[reading(&values)]).unwrap();
    assert!(alone.best_of.is_none() && alone.readings[0].best_chosen.is_none());
}

#[test]
fn rows_of_a_group_stay_together() {
    let grades = grades();
    let groups: Vec<usize> = (0..ROWS).map(|row| row / 4).collect();
    let trial = Trial { groups: groups.clone(), ..trial(grades) };
    for labels in [None, Some(30)] {
        for split in trial.splits(labels).unwrap() {
            assert!(labels.is_none_or(|labels| split.train.len() == labels));
            let tested: Vec<usize> = split.test.iter().map(|&row| groups[row]).collect();
            assert!(split.train.iter().all(|&row| !tested.contains(&groups[row])));
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let compare = |trial: Trial, values: Vec<f64>| match trial
        .compare(&[Reading::<NoStates>::new("values", ReadAs::Plain(values))])
    {
        Err(Error::Trial(error)) => error,
        other => panic!("{other:?}"),
    };
    let rows = compare(trial(grades()), vec![1.0; 3]);
    assert_eq!(rows.to_string(), "values: expected one for each of 160 rows, found 3");
    let odd = compare(trial(grades()), vec![f64::NAN; ROWS]);
    assert!(odd.to_string().starts_with("values of row 0 is NaN"), "{odd}");
    assert!(matches!(compare(trial(vec![2.0; ROWS]), vec![1.0; ROWS]), TrialError::OneGrade { .. }));
    let together = Trial { groups: vec![7; ROWS], ..trial(grades()) };
    assert!(matches!(compare(together, vec![1.0; ROWS]), TrialError::FewGroups { groups: 1, expected: 10 }));
}
