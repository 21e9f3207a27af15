//! What cannot be learnt from is refused, and names the example, tensor or setting.

use super::*;

fn problem<L: Loss>(trainer: &mut Trainer<L>, example: L::Example) -> ExampleProblem {
    match trainer.step(&[example]) {
        Err(TrainError::Example { index: 0, problem }) => problem,
        other => panic!("{other:?}"),
    }
}

#[test]
fn examples_that_are_none_are_refused() {
    let mut trainer = new("qwen3-on", Completion, settings(lora()));
    let before = trainer.trainables.clone();
    assert!(matches!(trainer.step(&[]), Err(TrainError::EmptyBatch)));
    let mut of = |tokens: &[u32], weights: &[f32]| {
        problem(&mut trainer, CompletionExample { tokens: tokens.to_vec(), weights: weights.to_vec() })
    };
    assert_eq!(of(&[1], &[1.0]), ExampleProblem::Length { found: 1, least: 2, most: 64 });
    assert_eq!(of(&[1; 65], &[1.0; 65]), ExampleProblem::Length { found: 65, least: 2, most: 64 });
    assert_eq!(of(&[1, 96], &[1.0; 2]).to_string(), "a token is 96, expected one below the vocabulary's 96");
    assert_eq!(of(&[1, 2], &[1.0; 3]), ExampleProblem::Count { what: "weights", expected: 2, found: 3 });
    for (weight, found) in [(f32::NAN, "NaN"), (-1.0, "-1")] {
        let expected = format!("weights 1 is {found}, expected a finite number of at least 0");
        assert_eq!(of(&[1, 2], &[0.0, weight]).to_string(), expected);
    }
    // The first token's weight does not count, and an empty completion has none.
    assert_eq!(of(&[1, 2], &[1.0, 0.0]), ExampleProblem::Nothing);
    let empty = CompletionExample::new(&[1, 2], &[]);
    assert!(matches!(trainer.step(&[completions()[0].clone(), empty]), Err(TrainError::Example { index: 1, .. })));
    assert_eq!(trainer.trainables, before);

    let mut trainer = new("qwen3-on", Mark { labels: labels(), alpha: 1.0 }, settings(lora()));
    let mark = |prompt: &[u32], target: &[f32]| MarkExample { prompt: prompt.to_vec(), target: target.to_vec() };
    assert!(matches!(problem(&mut trainer, mark(&[], &[1.0, 0.0, 0.0])), ExampleProblem::Length { found: 0, .. }));
    let count = ExampleProblem::Count { what: "probabilities", expected: 3, found: 2 };
    assert_eq!(problem(&mut trainer, mark(&[1], &[0.5, 0.5])), count);
    let sum = problem(&mut trainer, mark(&[1], &[0.5, 0.5, 0.5])).to_string();
    assert_eq!(sum, "the sum of the target's probabilities is 1.5, expected 1");

    let mut trainer = new("qwen3-on", Decision::default(), settings(lora()));
    let mut decision = |change: &dyn Fn(&mut DecisionExample)| {
        let mut changed = decisions()[1].clone();
        change(&mut changed);
        problem(&mut trainer, changed)
    };
    let says = |problem: ExampleProblem| problem.to_string();
    let twice = decision(&|one| one.options[1] = 20);
    assert_eq!(says(twice), "token 20 is that of two options, expected another token for each");
    let unknown = decision(&|one| one.options[1] = 96);
    assert_eq!(says(unknown), "a token is 96, expected one below the vocabulary's 96");
    let one_option = ExampleProblem::Count { what: "options", expected: 2, found: 1 };
    assert_eq!(decision(&|one| one.options.truncate(1)), one_option);
    let temperature = decision(&|one| one.temperature = 0.0);
    assert_eq!(says(temperature), "the temperature is 0, expected a positive number");
    let sum = decision(&|one| one.target[0] = 0.5);
    assert_eq!(says(sum), "the sum of the target's probabilities is 0.75, expected 1");

    let mut trainer = new("qwen3-on", BradleyTerry { reward: Reward::Score, centring: 0.0 }, settings(lora()));
    let pair = |worse: &[u32], margin| PairExample { better: vec![1], worse: worse.to_vec(), margin };
    assert!(matches!(problem(&mut trainer, pair(&[], 0.0)), ExampleProblem::Length { found: 0, .. }));
    let margin = problem(&mut trainer, pair(&[1], f32::INFINITY));
    assert_eq!(says(margin), "the margin is inf, expected a finite number");

    let mut trainer = new("qwen3-on", Class { classes: 3 }, settings(lora()));
    let class = ClassExample { prompt: vec![1], types: vec![], class: 3 };
    assert_eq!(says(problem(&mut trainer, class)), "the class is 3, expected one below the head's 3");
}

#[test]
fn settings_out_of_their_range_are_named() {
    fn named<L: Loss>(loss: L, settings: TrainSettings) -> &'static str {
        match Trainer::new(&folder("qwen3-on"), loss, settings) {
            Err(TrainError::Setting { setting, .. }) => setting,
            other => panic!("{other:?}"),
        }
    }
    let with = |change: &dyn Fn(&mut TrainSettings)| {
        let mut changed = settings(lora());
        change(&mut changed);
        named(Completion, changed)
    };
    assert_eq!(with(&|s| s.optimizer.beta2 = 1.0), "optimizer.beta2");
    assert_eq!(with(&|s| s.schedule.peak = f64::NAN), "schedule.peak");
    assert_eq!(with(&|s| s.schedule.warmup = 9), "schedule.warmup");
    assert_eq!(with(&|s| s.schedule.course = Course::Eased { floor: 2.0 }), "schedule.course.floor");
    assert_eq!(with(&|s| s.max_grad_norm = Some(0.0)), "max_grad_norm");
    assert_eq!(with(&|s| s.micro_batch = 0), "micro_batch");
    assert_eq!(with(&|s| s.blocks_at_once = Some(0)), "blocks_at_once");
    assert_eq!(with(&|s| s.threads = 0), "threads");
    let with_lora = |lora: Lora| named(Completion, settings(Tuning::Lora(lora)));
    assert_eq!(with_lora(Lora { rank: 0, ..Lora::default() }), "tuning.rank");
    assert_eq!(with_lora(Lora { rank: usize::MAX, ..Lora::default() }), "tuning.rank");
    assert_eq!(with_lora(Lora { alpha: f64::INFINITY, ..Lora::default() }), "tuning.alpha");
    assert_eq!(with_lora(Lora { blocks: Blocks::Listed(vec![0, 3]), ..Lora::default() }), "tuning.blocks");
    assert_eq!(with_lora(Lora { blocks: Blocks::Listed(vec![]), ..Lora::default() }), "tuning.blocks");
    for last in [0, 4] {
        assert_eq!(with_lora(Lora { blocks: Blocks::Last(last), ..Lora::default() }), "tuning.blocks");
    }
    assert_eq!(with_lora(Lora { targets: Targets::Named(vec![]), ..Lora::default() }), "tuning.targets");
    let targets = Targets::Named(vec!["q_proj".into(), "qkv_proj".into()]);
    match Trainer::new(&folder("qwen3-on"), Completion, settings(Tuning::Lora(Lora { targets, ..Lora::default() }))) {
        Err(TrainError::NoTarget { target, known }) => {
            assert_eq!(target, "qkv_proj");
            assert_eq!(known, ["down_proj", "gate_proj", "k_proj", "o_proj", "q_proj", "up_proj", "v_proj"]);
        }
        other => panic!("{other:?}"),
    }
    let mark = |change: &dyn Fn(&mut Mark)| {
        let mut mark = Mark { labels: labels(), alpha: 1.0 };
        change(&mut mark);
        named(mark, settings(lora()))
    };
    assert_eq!(mark(&|mark| mark.alpha = 1.5), "mark.alpha");
    assert_eq!(mark(&|mark| mark.labels.tokens[1] = 96), "labels.tokens");
    assert_eq!(mark(&|mark| mark.labels.tokens[1] = 10), "labels.tokens");
    assert_eq!(mark(&|mark| mark.labels.tokens.truncate(1)), "labels.tokens");
    assert_eq!(mark(&|mark| mark.labels.values[1] = f64::NAN), "labels.values");
    assert_eq!(mark(&|mark| mark.labels.from.layers.push((Layer(4), 1.0))), "layers");
    assert_eq!(mark(&|mark| mark.labels.from.learns_weights = true), "layers"); // one of them is negative
    let alone = |mark: &mut Mark| mark.labels.from = ReadFrom { learns_weights: true, ..ReadFrom::default() };
    assert_eq!(mark(&alone), "layers");
    assert_eq!(
        named(BradleyTerry { reward: Reward::Score, centring: -1.0 }, settings(lora())),
        "bradley_terry.centring"
    );
    assert_eq!(named(Class { classes: 1 }, settings(lora())), "class.classes");
}

#[test]
fn models_that_are_not_trained_are_named() {
    let family = |model: &str, tuning| {
        // The same before any number is read.
        let checked = Trainer::check(&folder(model), &Completion, &tuning);
        match (checked, Trainer::new(&folder(model), Completion, settings(tuning))) {
            (Err(TrainError::Family { family: first, .. }), Err(TrainError::Family { family, .. }))
                if first == family =>
            {
                family
            }
            other => panic!("{model}: {other:?}"),
        }
    };
    for tuning in [Tuning::Full, lora()] {
        assert_eq!(family("mixtral-on", tuning.clone()), "mixtral");
        assert_eq!(family("gemma4_text-on", tuning.clone()), "gemma4_text");
        assert_eq!(family("gpt2-on", tuning.clone()), "gpt2");
        assert_eq!(family("phi-on", tuning), "phi");
    }
    assert!(matches!(Trainer::new(&folder("qwen2_vl"), Completion, settings(lora())), Err(TrainError::Family { .. })));
    let heads = folder("llama-on").join("../../heads/llama");
    let no_head = Trainer::new(&heads, Completion, settings(lora()));
    assert!(matches!(no_head, Err(TrainError::NoHead { family: "llama", .. })), "{no_head:?}");
    let no_head = Trainer::check(&heads, &Completion, &lora());
    assert!(matches!(no_head, Err(TrainError::NoHead { family: "llama", .. })), "{no_head:?}");
    assert!(Trainer::check(&folder("llama-on"), &Completion, &lora()).is_ok());
    let other = Trainer::new(&heads, Class { classes: 7 }, settings(lora()));
    assert!(matches!(other, Err(TrainError::ScoreLabels { expected: 7, .. })), "{other:?}");
    let said = other.unwrap_err().to_string();
    assert!(said.contains("expected 7") && said.contains("start from a folder without such a head"), "{said}");
    assert!(matches!(Trainer::new("no/such/folder".as_ref(), Completion, settings(lora())), Err(TrainError::Model(_))));
}

/// A layer above all that is read gets no gradient, and is named.
#[test]
fn a_parameter_without_a_gradient_is_an_error() {
    let from = ReadFrom { layers: vec![(Layer(1), 1.0)], ..ReadFrom::default() };
    let inner = Labels { from, ..labels() };
    let tuning = Tuning::Lora(Lora { blocks: Blocks::Listed(vec![0, 2]), ..Lora::default() });
    let mut trainer = new("qwen3-on", Mark { labels: inner, alpha: 1.0 }, settings(tuning));
    let before = trainer.trainables.clone();
    match trainer.step(&marks()) {
        Err(TrainError::NoGradient { parameter }) => assert!(parameter.starts_with("model.layers.2."), "{parameter}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(trainer.trainables, before);
}

#[test]
fn a_step_that_diverges_names_its_examples_and_changes_nothing() {
    let mut trainer = new(
        "qwen3-on",
        BradleyTerry { reward: Reward::Score, centring: 1.0 },
        TrainSettings { micro_batch: 1, ..settings(lora()) },
    );
    trainer.set_score_head(&[1e-3; 32]).unwrap();
    let before = trainer.trainables.clone();
    let fine = pairs()[0].clone();
    let huge = PairExample { margin: f32::MAX, ..fine.clone() };
    trainer.trainables.last_mut().unwrap().values = vec![-1e30; 32];
    match trainer.step(&[fine, huge]) {
        Err(TrainError::Diverged { step: 0, first, last, .. }) => assert_eq!((first, last), (0, 0)),
        other => panic!("{other:?}"),
    }
    let last = before.len() - 1;
    assert_eq!(trainer.trainables[..last], before[..last]);
    assert_eq!(trainer.steps_done(), 0);
    // The step itself, whose loss is fine.
    let schedule = Schedule { peak: 1e39, warmup: 0, ..settings(lora()).schedule };
    let mut trainer = new("qwen3-on", Completion, TrainSettings { schedule, ..settings(lora()) });
    let before = trainer.trainables.clone();
    match trainer.step(&completions()) {
        Err(TrainError::Overflow { step: 0, learning_rate, .. }) => assert_eq!(learning_rate, 1e39),
        other => panic!("{other:?}"),
    }
    assert_eq!((trainer.steps_done(), trainer.trainables == before), (0, true));
}

#[test]
fn a_score_head_is_set_before_the_first_step_and_only_where_there_is_one() {
    let fails =
        |result: Result<(), TrainError>| matches!(result, Err(TrainError::Setting { setting: "score head", .. }));
    assert!(fails(new("qwen3-on", Completion, settings(lora())).set_score_head(&[0.0; 32])));
    let mut trainer = new("qwen3-on", Class { classes: 3 }, settings(lora()));
    assert!(fails(trainer.set_score_head(&[0.0; 32])));
    assert!(fails(trainer.set_score_head(&[f32::NAN; 96])));
    trainer.set_score_head(&[0.1; 96]).unwrap();
    trainer.step(&classes()).unwrap();
    assert!(fails(trainer.set_score_head(&[0.1; 96])));
}
