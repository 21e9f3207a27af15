//! Layer-weight fitting beside PyTorch (`scripts/lager/fit_reference.py`), by hand, and on bad input.

use judge_core::{
    Error, Layer, Lens, ModelInfo, PromptTemplate, Scale,
    fit::{Alpha, FitProblem, Graded, ItemOrder, LayerWeightFit, RegressionLoss, TargetRule, ThetaInit},
    lager::{Condition, LayerTable, LayerWeights, States, TableOrigin, Variant},
    model::Dimensions,
};
use proptest::prelude::*;
use serde::de::DeserializeOwned;
use serde_json::Value;

const TOLERANCE: f64 = 1e-9;

fn model(n_layers: usize) -> ModelInfo {
    let dimensions = Dimensions { n_layers, d_model: 8, n_heads: 2, d_vocab: 32, max_len: 64 };
    let mut info = ModelInfo::new("made-up", "f0", dimensions);
    info.family = "llama".into();
    info
}

fn origin(n_layers: usize) -> TableOrigin {
    let scale = Scale::integers(1, 5).unwrap();
    let template = PromptTemplate::pointwise_direct(&scale);
    TableOrigin::new(&model(n_layers), Lens::Raw, scale, template.id(), Condition::direct())
}

/// `z[i][l][s] = sin(1 + 0.7 i + 1.3 l + 0.9 s) (l + 1)`, as in the script.
fn table(i: usize, n_layers: usize) -> LayerTable {
    let row = |l: usize| {
        (0..5).map(|s| (1.0 + 0.7 * i as f64 + 1.3 * l as f64 + 0.9 * s as f64).sin() * (l + 1) as f64).collect()
    };
    LayerTable::from_rows(&(0..=n_layers).map(row).collect::<Vec<_>>()).unwrap()
}

fn items(n: usize, fractions: bool) -> Vec<Graded> {
    let human = |i: usize| if fractions { 1.0 + (7 * i % 13) as f64 / 3.25 } else { (1 + (2 * i) % 5) as f64 };
    (0..n).map(|i| Graded { table: table(i, 3), human: human(i) }).collect()
}

fn fixture() -> Value {
    serde_json::from_str(include_str!("../fixtures/fit.json")).unwrap()
}

fn of<T: DeserializeOwned>(value: &Value) -> T {
    serde_json::from_value(value.clone()).unwrap()
}

fn numbers(value: &Value) -> Vec<f64> {
    of(value)
}

fn close(what: &str, found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (index, (a, b)) in found.iter().zip(expected).enumerate() {
        assert!((a - b).abs() <= TOLERANCE * b.abs().max(1.0), "{what} {index}: {a}, PyTorch has {b}");
    }
}

#[test]
fn all_weight_on_a_layer_is_that_layers_score() {
    let weights = LayerWeights::of_layer(Layer(2), 7, origin(3)).unwrap();
    assert_eq!((weights.weights(), weights.n_items()), (&[0.0, 0.0, 1.0, 0.0][..], 7));
    let scale = Scale::integers(1, 5).unwrap();
    let row = table(1, 3).row(Layer(2)).unwrap().to_vec();
    let alone = LayerTable::from_rows(&[row]).unwrap();
    let of = |weights: &LayerWeights| weights.score(Variant::WeightedExpected, &table(1, 3), &scale).unwrap().score;
    let expected = Variant::LastExpected.score(&alone, &scale, States::All).unwrap().score;
    assert!((of(&weights) - expected).abs() < 1e-12);
    // A file of it is read back, weights and parameters.
    let read: LayerWeights = serde_json::from_str(&serde_json::to_string(&weights).unwrap()).unwrap();
    assert_eq!(read, weights);
    assert!(matches!(LayerWeights::of_layer(Layer(4), 7, origin(3)), Err(Error::LayerNotRead { layer: Layer(4) })));
}

#[test]
fn fits_are_pytorchs() {
    let fixture = fixture();
    let fits = fixture["fits"].as_array().unwrap();
    let mut rate_changes = 0;
    for entry in fits {
        let (case, expected) = (&entry["case"], &entry["expected"]);
        let fit = LayerWeightFit {
            loss: of(&case["loss"]),
            alpha: of(&case["alpha"]),
            lr: of(&case["lr"]),
            epochs: of(&case["epochs"]),
            batch: of(&case["batch"]),
            seed: of(&case["seed"]),
            init: of(&case["init"]),
            states: of(&case["states"]),
            targets: of(&case["targets"]),
            ..LayerWeightFit::default()
        };
        let items = items(of(&case["items"]), of(&case["fractions"]));
        let found = fit.fit(&items, &origin(3)).unwrap();
        let (losses, expected_losses) = (found.losses(), numbers(&expected["losses"]));
        assert_eq!(losses.len(), of::<usize>(&expected["steps"]));
        close("theta", found.theta(), &numbers(&expected["theta"]));
        close("weights", found.weights(), &numbers(&expected["weights"]));
        close("alpha", &[found.alpha()], &[expected["alpha"].as_f64().unwrap()]);
        close("rate", found.learning_rates(), &numbers(&expected["learning_rates"]));
        let head = expected_losses.len().min(20);
        close("first losses", &losses[..head], &expected_losses[..head]);
        let tail = expected_losses.len() - head;
        close("last losses", &losses[losses.len() - tail..], &expected_losses[head..]);
        rate_changes += found.learning_rates().windows(2).filter(|pair| pair[0] != pair[1]).count();
    }
    assert_eq!(fits.len(), 36);
    assert!(rate_changes >= 4, "the plateau must fire: {rate_changes}");
}

/// The order of items shows in the losses of batches of one item:
/// the same loss of an item wherever it stands, because the rate is next to nothing.
#[test]
fn the_order_of_items_is_pytorchs() {
    for entry in fixture()["orders"].as_array().unwrap() {
        let n = of(&entry["items"]);
        if n < 2 {
            continue; // one item has one order, and constant scores cannot be fitted
        }
        let items: Vec<Graded> = items(n, false);
        let single = |order, epochs| LayerWeightFit {
            lr: 1e-300,
            batch: 1,
            seed: of(&entry["seed"]),
            epochs,
            order,
            ..LayerWeightFit::default()
        };
        let in_order = single(ItemOrder::AsGiven, 1).fit(&items, &origin(3)).unwrap();
        let shuffled = single(ItemOrder::TorchShuffle, 3).fit(&items, &origin(3)).unwrap();
        for (epoch, visited) in shuffled.losses().chunks(n).zip(entry["epochs"].as_array().unwrap()) {
            for (loss, item) in epoch.iter().zip(of::<Vec<usize>>(visited)) {
                assert_eq!(loss.to_bits(), in_order.losses()[item].to_bits(), "{entry}");
            }
        }
    }
}

#[test]
fn the_reproduced_e_score_is_pytorchs_bfloat16() {
    let scale = Scale::integers(1, 5).unwrap();
    let mut differs = 0;
    for entry in fixture()["bfloat16"].as_array().unwrap() {
        let table = LayerTable::from_rows(&[numbers(&entry["logits"])]).unwrap();
        let found = Variant::LastExpectedBf16.score(&table, &scale, States::All).unwrap();
        assert_eq!(found.score, entry["e_score"].as_f64().unwrap());
        assert_eq!(found.distribution, None);
        let exact = Variant::LastExpected.score(&table, &scale, States::All).unwrap();
        differs += usize::from((exact.score - found.score).abs() > 1e-3);
    }
    assert!(differs > 20);
}

/// The cross-check of the notes on LAGER: an emulation apart from this code and from the script, printed to six digits.
#[test]
fn cross_check_to_the_printed_digits() {
    let six = |values: &[f64]| values.iter().map(|v| format!("{v:.6}")).collect::<Vec<_>>();
    let five = |values: &[f64]| values.iter().map(|v| format!("{v:.5}")).collect::<Vec<_>>();
    let program = LayerWeightFit::reference_program();
    let found = program.fit(&items(10, false), &origin(3)).unwrap();
    assert_eq!(six(found.weights()), ["0.341580", "0.333162", "0.325258"]);
    assert_eq!(five(found.losses()), ["1.65816", "1.85762", "3.14715"]);
    assert_eq!(six(&[found.alpha()]), ["0.489684"]);

    let twice = LayerWeightFit { epochs: 2, ..program.clone() }.fit(&items(10, false), &origin(3)).unwrap();
    assert_eq!(six(twice.weights()), ["0.351100", "0.328825", "0.320075"]);
    assert_eq!(six(&[twice.alpha()]), ["0.502373"]);

    let last_one = LayerWeightFit { states: States::All, init: ThetaInit::LastOne, ..program };
    let found = last_one.fit(&items(10, false), &origin(3)).unwrap();
    assert_eq!(six(found.weights()), ["0.180775", "0.180708", "0.171635", "0.466882"]);
    assert_eq!(five(found.losses()), ["3.18562", "1.79951", "2.06682"]);
}

fn refused(fit: &LayerWeightFit, items: &[Graded]) -> FitProblem {
    match fit.fit(items, &origin(3)) {
        Err(Error::Fit { problem }) => problem,
        other => panic!("expected a problem, found {other:?}"),
    }
}

#[test]
fn what_cannot_be_fitted_is_named() {
    let paper = LayerWeightFit::paper();
    let with = |change: &dyn Fn(&mut Vec<Graded>)| {
        let mut items = items(10, false);
        change(&mut items);
        refused(&paper, &items)
    };
    assert_eq!(with(&|items| items.clear()), FitProblem::NoItems);
    let missing = FitProblem::MissingLayer { item: 3, layer: Layer(3) };
    assert_eq!(with(&|items| items[3].table = table(3, 2)), missing);
    let narrow = LayerTable::from_rows(&vec![vec![0.0; 4]; 4]).unwrap();
    assert_eq!(with(&|items| items[2].table = narrow.clone()), FitProblem::Scores { item: 2, expected: 5, found: 4 });
    for human in [0.99, 5.01, f64::INFINITY, -1.0] {
        let off = FitProblem::OffScale { item: 9, human, low: 1.0, high: 5.0 };
        assert_eq!(with(&|items| items[9].human = human), off);
    }
    assert!(matches!(with(&|items| items[0].human = f64::NAN), FitProblem::OffScale { item: 0, .. }));
    let constant = FitProblem::ConstantTargets { human: 2.0, items: 10 };
    assert_eq!(with(&|items| items.iter_mut().for_each(|item| item.human = 2.0)), constant);
    let huge = LayerTable::from_rows(&vec![vec![-1e308, 1e308, 0.0, 0.0, 0.0]; 4]).unwrap();
    assert!(matches!(with(&|items| items[0].table = huge.clone()), FitProblem::Overflow { .. }));

    let setting = |fit: LayerWeightFit| match refused(&fit, &items(10, false)) {
        FitProblem::Setting { setting, .. } => setting,
        other => panic!("expected a wrong setting, found {other}"),
    };
    assert_eq!(setting(LayerWeightFit { lr: 0.0, ..paper.clone() }), "lr");
    assert_eq!(setting(LayerWeightFit { lr: f64::NAN, ..paper.clone() }), "lr");
    assert_eq!(setting(LayerWeightFit { epochs: 0, ..paper.clone() }), "epochs");
    assert_eq!(setting(LayerWeightFit { batch: 0, ..paper.clone() }), "batch");
    assert_eq!(setting(LayerWeightFit { alpha: Alpha::Fixed(1.5), ..paper.clone() }), "alpha");
    assert_eq!(setting(LayerWeightFit { alpha: Alpha::Learned { init: f64::NAN }, ..paper.clone() }), "alpha");

    let no_blocks = LayerWeightFit { states: States::DropLast, ..paper }.fit(&items(10, false), &origin(0));
    assert!(matches!(no_blocks, Err(Error::Fit { problem: FitProblem::NoLayers })));
}

#[test]
fn weights_are_for_what_they_were_made_from() {
    let weights = LayerWeightFit::paper().fit(&items(10, false), &origin(3)).unwrap();
    assert_eq!(weights.check(&origin(3), States::All).unwrap(), []);

    type Change = fn(&mut TableOrigin);
    let others: [(Change, States, &str); 4] = [
        (|used| used.fingerprint = "f1".into(), States::All, "fitted on the model made-up (f0), used on made-up (f1)"),
        (|used| used.n_layers = 4, States::All, "fitted on a model of 3 blocks, used on one of 4"),
        (|_| (), States::DropLast, "fitted on the states all, used on drop-last"),
        (|used| used.lens = Lens::Normed, States::All, "fitted with the lens Raw, used with Normed"),
    ];
    for (change, states, why) in others {
        let mut used = origin(3);
        change(&mut used);
        match weights.check(&used, states) {
            Err(Error::WeightsRefused { mismatch }) => assert_eq!(mismatch.to_string(), why),
            other => panic!("expected a refusal, found {other:?}"),
        }
    }

    let mut used = origin(3);
    used.scale = Scale::integers(1, 9).unwrap();
    used.template = "another".into();
    used.condition = Condition::PromptEnd;
    used.dtype = "bf16".into();
    used.model = "a copy elsewhere".into(); // a name is not an identity
    let notes: Vec<String> = weights.check(&used, States::All).unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(notes.len(), 4);
    assert_eq!(notes[0], "fitted on the scale [1 2 3 4 5], used on [1 2 3 4 5 6 7 8 9]");
    assert_eq!(notes[3], "fitted in f32, used in bf16");
}

#[test]
fn weights_survive_a_file_and_files_are_checked() {
    let weights = LayerWeightFit::reference_program().fit(&items(10, true), &origin(3)).unwrap();
    let json = serde_json::to_string(&weights).unwrap();
    let copy: LayerWeights = serde_json::from_str(&json).unwrap();
    assert_eq!(copy, weights);
    assert_eq!(weights.n_items(), 10);
    assert_eq!(weights.settings().targets, TargetRule::Truncate);

    let broken = |change: &dyn Fn(&mut Value)| {
        let mut value: Value = serde_json::from_str(&json).unwrap();
        change(&mut value);
        serde_json::from_value::<LayerWeights>(value).unwrap_err().to_string()
    };
    assert_eq!(broken(&|v| v["weights"] = serde_json::json!([0.5, 0.5])), "layer weights: expected 3, found 2");
    assert!(broken(&|v| v["weights"] = serde_json::json!([0.5, 0.5, 0.5])).starts_with("not a distribution"));
    assert!(broken(&|v| v["settings"]["states"] = "all".into()).contains("expected 4, found 3"));
    assert!(broken(&|v| v["origin"]["scale"] = serde_json::json!([])).starts_with("not a scale"));
}

#[test]
fn weights_fitted_on_five_points_score_nine() {
    let weights = LayerWeightFit::paper().fit(&items(10, false), &origin(3)).unwrap();
    let nine = Scale::integers(1, 9).unwrap();
    let rows: Vec<Vec<f64>> = (0..4).map(|l| (0..9).map(|s| f64::from(s * l)).collect()).collect();
    let table = LayerTable::from_rows(&rows).unwrap();
    let score = weights.score(Variant::WeightedExpected, &table, &nine).unwrap().score;
    assert!(score > 7.0 && score < 9.0, "{score}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Full batches do not depend on the order of items, but for rounding; and the loss falls.
    #[test]
    fn full_batches_descend(seed in any::<u64>(), mae in any::<bool>()) {
        let loss = if mae { RegressionLoss::Mae } else { RegressionLoss::Mse };
        let fit = LayerWeightFit { loss, seed, batch: 50, epochs: 40, ..LayerWeightFit::default() };
        let found = fit.fit(&items(50, true), &origin(3)).unwrap();
        let plain = LayerWeightFit { order: ItemOrder::AsGiven, ..fit }.fit(&items(50, true), &origin(3)).unwrap();
        for (a, b) in found.losses().iter().zip(plain.losses()) {
            prop_assert!((a - b).abs() < 1e-9);
        }
        prop_assert!(found.losses()[39] < found.losses()[0]);
        prop_assert!((found.weights().iter().sum::<f64>() - 1.0).abs() < 1e-12);
    }
}
