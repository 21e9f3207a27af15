//! What the trainer computes: gradients against differences of losses.

use super::super::gradients::{Sums, loss_of};
use super::*;

/// Compares some numbers of each gradient with differences of the summed loss.
///
/// Losses are computed without a graph, in a third of the time.
pub(super) fn compare<L: Loss>(model: &str, mut trainer: Trainer<L>, batch: &[L::Example]) {
    let Sums { loss, gradients, .. } = trainer.sums(batch).unwrap();
    let loss_of = |trainer: &Trainer<L>| -> f64 {
        let parts = batch.chunks(trainer.settings.micro_batch);
        parts.map(|part| loss_of(&trainer.base, &trainer.trainables, &trainer.loss, part).unwrap().0).sum()
    };
    assert!((loss_of(&trainer) - loss).abs() <= 1e-6 * loss.abs(), "{model}: {loss}");
    let names: Vec<String> = trainer.trainables.iter().map(|trainable| trainable.name.clone()).collect();
    for (index, (gradient, name)) in gradients.iter().zip(names).enumerate() {
        assert!(gradient.iter().all(|g| g.is_finite()) && gradient.iter().any(|&g| g != 0.0), "{model}: {name}");
        let largest = (0..gradient.len()).max_by(|&i, &j| gradient[i].abs().total_cmp(&gradient[j].abs())).unwrap();
        for at in [0, largest] {
            let value = trainer.trainables[index].values[at];
            let mut at_offset = |offset: f32| {
                trainer.trainables[index].values[at] = value + offset;
                loss_of(&trainer)
            };
            // Where the loss bends a lot a long way is wrong, elsewhere a short one drowns in rounding.
            let numeric = |at_offset: &mut dyn FnMut(f32) -> f64, delta: f32| {
                let near = at_offset(delta) - at_offset(-delta);
                let far = at_offset(2.0 * delta) - at_offset(-2.0 * delta);
                (8.0 * near - far) / (12.0 * f64::from(delta))
            };
            let analytic = f64::from(gradient[at]);
            let is_near = |numeric: f64| (numeric - analytic).abs() < 3e-3 + 2e-2 * analytic.abs();
            let is_right = [4e-3, 1e-3].into_iter().any(|delta| is_near(numeric(&mut at_offset, delta)));
            trainer.trainables[index].values[at] = value;
            assert!(is_right, "{model}: {name}[{at}]: {analytic} is not the slope");
        }
    }
}

#[test]
fn gradients_of_completions_are_those_of_differences() {
    for model in MODELS {
        compare(model, new(model, Completion, settings(Tuning::Full)), &completions());
        compare(model, shaken(new(model, Completion, settings(lora()))), &completions());
    }
}

#[test]
fn gradients_of_every_loss_are_those_of_differences() {
    for tuning in [Tuning::Full, lora()] {
        let mark = Mark { labels: labels(), alpha: 0.7 };
        compare("qwen2-on", shaken(new("qwen2-on", mark, settings(tuning.clone()))), &marks());
        let weighed = Mark { labels: weighed(), alpha: 0.7 };
        compare("llama-on", shaken(new("llama-on", weighed, settings(tuning.clone()))), &marks());
        let expected = BradleyTerry { reward: Reward::Expected(labels()), centring: 0.1 };
        compare("gemma2-on", shaken(new("gemma2-on", expected, settings(tuning.clone()))), &pairs());
        let decision = Decision { from: labels().from, soft_cap: Some(3.0) };
        compare("qwen3-on", shaken(new("qwen3-on", decision, settings(tuning.clone()))), &decisions());
        let score = BradleyTerry { reward: Reward::Score, centring: 0.0 };
        compare("llama-on", shaken(new("llama-on", score, settings(tuning.clone()))), &pairs());
        compare("phi3-on", shaken(new("phi3-on", Class { classes: 3 }, settings(tuning.clone()))), &classes());
        compare("glm4-on", shaken(new("glm4-on", Ordinal { classes: 4 }, settings(tuning))), &classes());
    }
}

/// Options of all prompts together are those of each alone, which are a mark's labels.
#[test]
fn decisions_are_marks_with_labels_of_their_own() {
    let from = labels().from;
    let decision = |soft_cap| Decision { from: from.clone(), soft_cap };
    let of_all = new("gemma2-on", decision(None), settings(lora())).sums(&decisions()).unwrap().loss;
    let mark = |one: &DecisionExample| {
        let values = vec![0.0; one.options.len()];
        let labels = Labels { tokens: one.options.clone(), values, from: from.clone() };
        let example = MarkExample { prompt: one.prompt.clone(), target: one.target.clone() };
        new("gemma2-on", Mark { labels, alpha: 1.0 }, settings(lora())).sums(&[example]).unwrap().loss
    };
    let mut warm = decisions();
    warm[1].temperature = 1.0;
    let of_warm = new("gemma2-on", decision(None), settings(lora())).sums(&warm).unwrap().loss;
    let alone: f64 = warm.iter().map(mark).sum();
    assert!((of_warm - alone).abs() < 1e-5 * alone, "{of_warm} {alone}");
    assert!((of_all - alone).abs() > 1e-3, "the temperature counts");
    let wide = new("gemma2-on", decision(Some(1e6)), settings(lora())).sums(&warm).unwrap().loss;
    let narrow = new("gemma2-on", decision(Some(0.1)), settings(lora())).sums(&warm).unwrap().loss;
    assert!((wide - of_warm).abs() < 1e-4 * of_warm && (narrow - of_warm).abs() > 1e-3, "{wide} {narrow} {of_warm}");
}

/// A step above the class costs as one below does, and two steps off cost more than one.
#[test]
fn ordinal_classes_cost_by_their_distance() {
    let trainer = new("llama-on", Ordinal { classes: 4 }, settings(lora()));
    let example = |prompt: &[u32], class| ClassExample { prompt: prompt.to_vec(), types: Vec::new(), class };
    let prompt = [1, 5, 20];
    // A new head is zero, so each question costs ln 2; with a class that is known it is what the formula says.
    let loss = |class| trainer.loss(&[example(&prompt, class)]).unwrap();
    assert!((0..4).all(|class| (loss(class) - 3.0 * 2f64.ln()).abs() < 1e-5));
    let shaken = shaken(new("llama-on", Ordinal { classes: 4 }, settings(lora())));
    let found = &shaken.scores(&[example(&prompt, 0), example(&[9, 4], 0)]).unwrap();
    assert!(found.len() == 2 && found[0].len() == 3 && found[0] != found[1]);
    for class in 0..4 {
        let cost = |(step, z): (usize, &f32)| {
            let z = f64::from(if class > step { *z } else { -z });
            (-z).exp().ln_1p()
        };
        let expected: f64 = found[0].iter().enumerate().map(cost).sum();
        let loss = shaken.loss(&[example(&prompt, class)]).unwrap();
        assert!((loss - expected).abs() < 1e-5 * expected, "{class}: {loss} {expected}");
    }
    let marks = new("llama-on", Mark { labels: last(vec![3, 4], vec![0.0, 1.0]), alpha: 1.0 }, settings(lora()));
    assert!(matches!(
        marks.scores(&[MarkExample { prompt: prompt.to_vec(), target: vec![1.0, 0.0] }]),
        Err(TrainError::NoScores { .. })
    ));
}

/// The parts of a batch add up, in whatever parts it is cut, and threads change nothing.
#[test]
fn parts_of_a_batch_add_up() {
    let sums = |micro_batch, threads| {
        let trainer = new("llama-on", Completion, TrainSettings { micro_batch, threads, ..settings(Tuning::Full) });
        trainer.sums(&completions()).unwrap()
    };
    let whole = sums(3, 1);
    for (micro_batch, threads) in [(1, 1), (2, 2)] {
        let cut = sums(micro_batch, threads);
        assert!((whole.loss - cut.loss).abs() < 1e-5 * whole.loss && whole.count == cut.count);
        for (a, b) in whole.gradients.iter().flatten().zip(cut.gradients.iter().flatten()) {
            assert!((a - b).abs() < 1e-5 + 1e-4 * a.abs(), "{a} {b}");
        }
    }
    let (one, three) = (sums(1, 1), sums(1, 3));
    assert_eq!((one.loss.to_bits(), one.gradients), (three.loss.to_bits(), three.gradients));
}

/// The trainer that `open` makes for so many blocks at once gives the same loss and gradients whatever that number is.
pub(super) fn same_in_pieces<L: Loss>(
    model: &str,
    tuning: &Tuning,
    open: &dyn Fn(Option<usize>) -> Trainer<L>,
    batch: &[L::Example],
) {
    let whole = open(None).sums(batch).unwrap();
    for at_once in 1..4 {
        let pieces = open(Some(at_once)).sums(batch).unwrap();
        assert!((whole.loss - pieces.loss).abs() < 1e-5 * whole.loss.abs(), "{} {}", whole.loss, pieces.loss);
        for (a, b) in whole.gradients.iter().zip(&pieces.gradients) {
            // Of what has no gradient but rounding, as the biases of an encoder's keys, nothing relative can be asked.
            let size = a.iter().fold(1e-2_f32, |size, x| size.max(x.abs()));
            assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-5 * size), "{model}, {tuning:?}, {at_once}");
        }
    }
}

/// Blocks that are computed again in pieces give the same loss and gradients, whatever layers are read and learned.
#[test]
fn pieces_of_the_blocks_give_the_same_gradients() {
    fn same<L: Loss>(loss: &L, tuning: &Tuning, batch: &[L::Example]) {
        for model in ["gemma2-on", "qwen2-on"] {
            let open = |blocks_at_once| {
                let settings = TrainSettings { blocks_at_once, ..settings(tuning.clone()) };
                shaken(new(model, loss.clone(), settings))
            };
            same_in_pieces(model, tuning, &open, batch);
        }
    }
    let upper = Tuning::Lora(Lora { rank: 2, blocks: Blocks::Listed(vec![1, 2]), ..Lora::default() });
    for tuning in [Tuning::Full, lora(), upper] {
        same(&Completion, &tuning, &completions());
        for layers in
            [vec![(0, 1.0), (1, 0.5), (3, 1.0)], vec![(1, 1.0), (2, -0.5), (3, 1.0)], vec![(0, 1.0), (3, 0.5)]]
        {
            let layers = layers.into_iter().map(|(layer, weight)| (Layer(layer), weight)).collect();
            let from = ReadFrom { layers, learns_weights: false, lens: Lens::Normed };
            same(&Mark { labels: Labels { from, ..labels() }, alpha: 0.7 }, &tuning, &marks());
        }
        same(&Mark { labels: weighed(), alpha: 0.7 }, &tuning, &marks());
    }
}

/// An adapter whose second factors are zero changes no bit of a loss.
#[test]
fn an_adapter_begins_as_the_model() {
    for model in MODELS {
        let of = |tuning| new(model, Completion, settings(tuning)).loss(&completions()).unwrap();
        assert_eq!(of(lora()).to_bits(), of(Tuning::Full).to_bits(), "{model}");
    }
}

#[test]
fn factors_are_drawn_as_peft_draws_them() {
    let trainer = new("llama-off", Completion, settings(lora()));
    let d_in = |name: &str| if name.contains("down_proj") { 40.0_f32 } else { 32.0 };
    let mut sum = 0.0;
    let mut n = 0.0;
    for trainable in &trainer.trainables {
        if trainable.name.ends_with("lora_B.weight") {
            assert!(trainable.values.iter().all(|&x| x == 0.0));
            continue;
        }
        let bound = if trainable.name.contains("o_proj") {
            (trainable.shape[1] as f32).sqrt()
        } else {
            d_in(&trainable.name).sqrt()
        };
        assert!(trainable.values.iter().all(|x| x.abs() * bound <= 1.0), "{}", trainable.name);
        sum += trainable.values.iter().map(|x| f64::from(x * bound).powi(2)).sum::<f64>();
        n += trainable.values.len() as f64;
    }
    // The variance of a uniform number in ±1.
    assert!((sum / n - 1.0 / 3.0).abs() < 0.03, "{}", sum / n);
    let other = new("llama-off", Completion, TrainSettings { seed: 1, ..settings(lora()) });
    assert_ne!(other.trainables, trainer.trainables);
    assert_eq!(new("llama-off", Completion, settings(lora())).trainables, trainer.trainables);
}

/// Where frequencies depend on a sequence's length, a batch of short and long ones gives each its own.
#[test]
fn a_long_sequence_does_not_change_a_short_one() {
    let short = CompletionExample::new(&[1, 5], &[20, 7]);
    let tokens: Vec<u32> = (3..33).collect();
    let long = CompletionExample::new(&tokens[..20], &tokens[20..]);
    let trainer = new("phi3-on", Completion, settings(Tuning::Full));
    let sum = |batch: &[CompletionExample]| trainer.sums(batch).unwrap().loss;
    let (apart, together) = (sum(std::slice::from_ref(&short)) + sum(std::slice::from_ref(&long)), sum(&[short, long]));
    assert!((apart - together).abs() < 1e-5 * apart, "{apart} {together}");
}

/// A score head is read before the padding at a text's end, as it is served.
#[test]
fn a_score_head_passes_padding_over() {
    let folder = folder("llama-on").join("../../heads/gemma2");
    let classes = crate::Model::load(&folder, &crate::LoadOptions::default()).unwrap();
    let classes = classes.reward_head().unwrap().labels().len();
    let loss = |prompt: &[u32]| {
        let trainer = Trainer::new(&folder, Class { classes }, settings(lora())).unwrap();
        trainer.loss(&[ClassExample { prompt: prompt.to_vec(), types: vec![], class: 0 }]).unwrap()
    };
    let plain = loss(&[1, 5, 20]);
    assert_eq!(plain.to_bits(), loss(&[1, 5, 20, 3, 3]).to_bits());
    assert_ne!(plain, loss(&[1, 5, 20, 3, 7]));
}

/// States of lower blocks are the same bits from a file, for a batch in any order and company, and losses that read
/// them are refused with a file.
#[test]
fn states_of_lower_blocks_come_from_a_file() {
    let at = tempfile::tempdir().unwrap();
    let path = at.path().join("states");
    let upper = Tuning::Lora(Lora { rank: 2, blocks: Blocks::Listed(vec![1, 2]), ..Lora::default() });
    let with = |states: Option<&std::path::Path>, tuning: &Tuning| TrainSettings {
        states: states.map(Into::into),
        ..settings(tuning.clone())
    };
    let bits = |trainer: Trainer<Completion>, batch: &[CompletionExample]| {
        let mut trainer = shaken(trainer);
        let before = trainer.loss(batch).unwrap().to_bits();
        trainer.step(batch).unwrap();
        (before, trainer.trainables)
    };
    let mut turned = completions();
    turned.reverse();
    for model in ["gemma2-on", "phi3-on", "falcon_h1-on"] {
        let open = |states| new(model, Completion, with(states, &upper));
        let expected = bits(open(None), &completions());
        assert!(bits(open(Some(&path)), &turned[..2]).0 != expected.0);
        let length = std::fs::metadata(&path).unwrap().len();
        for _ in 0..2 {
            assert_eq!(bits(open(Some(&path)), &completions()), expected, "{model}");
        }
        assert!(std::fs::metadata(&path).unwrap().len() > length);
        let other = Trainer::new(&folder("qwen2-on"), Completion, with(Some(&path), &upper));
        assert!(matches!(other, Err(TrainError::States { problem: StatesProblem::Other, .. })), "{other:?}");
        std::fs::remove_file(&path).unwrap();
    }
    let refused = |loss, tuning: &Tuning| match Trainer::new(&folder("qwen2-on"), loss, with(Some(&path), tuning)) {
        Err(TrainError::Setting { setting: "states", expected, .. }) => expected,
        other => panic!("{other:?}"),
    };
    let mark = |layer| {
        let from = ReadFrom { layers: vec![(Layer(layer), 1.0), (Layer(3), 1.0)], ..labels().from };
        Mark { labels: Labels { from, ..labels() }, alpha: 1.0 }
    };
    assert!(refused(mark(0), &upper).contains("below block 1"));
    assert!(refused(mark(1), &lora()).contains("the lowest block is learnt"));
    Trainer::new(&folder("qwen2-on"), mark(1), with(Some(&path), &upper)).unwrap().step(&marks()).unwrap();
}
