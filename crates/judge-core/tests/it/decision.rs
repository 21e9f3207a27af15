//! Decisions: questions and answers in the standard's form, judges of labels and heads, weights, checklists.

use crate::one;
use judge_core::decision::{
    Answer, ByKind, Checklist, ChecklistJudge, DecisionFit, DecisionForm, DecisionHead, DecisionItem, DecisionJudge,
    DecisionProblem, DecisionSettings, DecisionWeights, Labelled, Question, QuestionKind, Questions, Readout,
    Unsettled,
};
use judge_core::testing::{ScriptedBackbone, check_judge};
use judge_core::{Backbone, Error, ItemId, Judge, Layer, Runner, Verdict};
use serde_json::{Value, json};

fn questions(json: Value) -> Questions {
    Questions::from_json(&json).unwrap()
}

fn three() -> Questions {
    questions(json!({
        "refund": {"type": "noul", "instructions": "Is a refund asked for?"},
        "tone": {"type": "choice", "criteria": {"calm": null, "angry": "Accuses", "joking": {"as": "a joke"}}},
        "urgency": {"type": "score", "instructions": ["How", "urgent?"], "criteria": ["can wait", "this week", "today"]},
    }))
}

/// A model with labels of one character, which decides by what the prompt says.
fn model() -> ScriptedBackbone {
    ScriptedBackbone::new(2).with_logits(|before, layer, label| {
        let wanted = match () {
            () if before.contains("refund asked") => 'Y',
            () if before.contains("Accuses") => 'B',
            () => 'C',
        };
        if label == wanted { layer.0 as f32 } else { 0.0 }
    })
}

fn form() -> DecisionForm {
    let mut form = DecisionForm::default();
    form.labels.noul = vec!["Y".to_owned(), "N".to_owned()];
    form
}

fn judge_of(settings: DecisionSettings) -> DecisionJudge {
    DecisionJudge::new(DecisionSettings { form: form(), ..settings }, &model()).unwrap()
}

fn verdict(judge: &DecisionJudge, state: Value, questions: &Questions) -> Verdict {
    one::verdict(&model(), judge, DecisionItem { state, questions: questions.clone() })
}

/// The cases were computed by transformers: see `scripts/parity/make_decision_fixtures.py`.
#[test]
fn answers_are_those_of_transformers() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("../fixtures/decision_answers.json")).unwrap();
    assert!(cases.len() >= 20);
    for case in cases {
        let question = Question::from_json(&case["question"]).unwrap();
        let probabilities: Vec<f64> = serde_json::from_value(case["probabilities"].clone()).unwrap();
        let found = serde_json::to_value(question.answer(&probabilities).unwrap()).unwrap();
        assert_close(&found, &case["answer"]);
        let keys = |json: &Value| json.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(keys(&found), keys(&case["answer"]));
        assert_eq!(question.answer(&[0.5; 7]), None);
    }
}

/// Equal JSON, numbers within 1e-12.
fn assert_close(found: &Value, expected: &Value) {
    match (found, expected) {
        (Value::Number(a), Value::Number(b)) => {
            assert!((a.as_f64().unwrap() - b.as_f64().unwrap()).abs() < 1e-12, "{found} {expected}");
        }
        (Value::Object(a), Value::Object(b)) => {
            assert_eq!(a.len(), b.len(), "{found} {expected}");
            a.iter().for_each(|(key, value)| assert_close(value, &b[key]));
        }
        _ => assert_eq!(found, expected),
    }
}

#[test]
fn questions_survive_a_file() {
    let json = json!({
        "a": {"type": "noul"},
        "b": {"type": "noul", "instructions": "Is it?", "criteria": {"true": "yes", "false": ["no", 1]}},
        "z first": {"type": "choice", "criteria": {"z": null, "a": "last"}},
        "d": {"type": "score", "criteria": ["low", {"high": true}]},
    });
    let read = questions(json.clone());
    assert_eq!(Value::from(read.clone()), json);
    assert_eq!(read.get("z first").unwrap().options(), ["z", "a"]);
    assert_eq!(serde_json::from_str::<Questions>(&serde_json::to_string(&read).unwrap()).unwrap(), read);
}

#[test]
fn all_bad_questions_are_named_each_with_a_right_one() {
    let bad = json!({
        "kind": {"type": "yesno"},
        "none": {"instructions": "?"},
        "text": "Is it?",
        "field": {"type": "noul", "instruction": "Is it?"},
        "number": {"type": "noul", "instructions": 3},
        "side": {"type": "noul", "criteria": {"yes": "it is"}},
        "empty": {"type": "choice", "criteria": {}},
        "list": {"type": "choice", "criteria": ["a", "b"]},
        "unnamed": {"type": "choice", "criteria": {"": "b"}},
        "levels": {"type": "score", "criteria": {"0": "low"}},
        "gap": {"type": "score", "criteria": ["low", null]},
        "missing": {"type": "score"},
        "good": {"type": "noul"},
    });
    let error = Questions::from_json(&bad).unwrap_err();
    let DecisionProblem::Questions { faults } = &error else { panic!("{error}") };
    assert_eq!(faults.len(), 12);
    let text = error.to_string();
    assert_eq!(text.lines().count(), 12);
    for (line, expected) in text.lines().zip([
        r#"question "kind": expected `type` to be noul, choice or score, found "yesno"; a noul question looks like"#,
        r#"question "none": expected `type` to be noul, choice or score, found nothing"#,
        r#"question "text": expected an object, found "Is it?""#,
        r#"question "field": unknown field `instruction`, did you mean `instructions`?"#,
        r#"question "number": `instructions`: expected text, an object or a list, found 3"#,
        r#"question "side": `criteria`: expected an object with `true`, `false`, both or neither"#,
        r#"question "empty": `criteria`: expected an object with at least one option"#,
        r#"question "list": `criteria`: expected an object with at least one option"#,
        r#"question "unnamed": `criteria`: expected options that have a name each"#,
        r#"question "levels": `criteria`: expected a list with a text for each level"#,
        r#"question "gap": `criteria`: expected a text for every level"#,
        r#"question "missing": `criteria`: expected a list with a text for each level, the lowest first, found nothing"#,
    ]) {
        assert!(line.starts_with(expected), "{line}\n{expected}");
        assert!(line.contains("question looks like {\"type\""), "{line}");
    }
    for none in [json!({}), json!([]), Value::Null] {
        assert!(matches!(Questions::from_json(&none), Err(DecisionProblem::NoQuestions { .. })));
    }
}

#[test]
fn a_question_is_answered_by_the_logits_of_its_labels() {
    let judge = judge_of(DecisionSettings::default());
    let questions = three();
    let item = DecisionItem { state: json!({"text": "My money!"}), questions: questions.clone() };
    check_judge(&judge, &model(), vec![item]).unwrap();
    let verdict = verdict(&judge, json!({"text": "My money!"}), &questions);
    assert_eq!(verdict.value(), Some(1.0));
    let answers = questions.answers(&verdict).unwrap();
    let e2 = 2f64.exp();
    let [refund, tone, urgency] = &answers[..] else { panic!("three") };
    assert!(matches!(refund.answer, Ok(Answer::Noul { noul }) if (noul - e2 / (e2 + 1.0)).abs() < 1e-12));
    let Ok(Answer::Choice { choice, confidence, probabilities }) = &tone.answer else { panic!("a choice") };
    let p = e2 / (e2 + 2.0);
    assert_eq!(
        (choice.as_str(), probabilities.keys().map(String::as_str).collect::<Vec<_>>()),
        ("angry", vec!["calm", "angry", "joking"])
    );
    assert!((confidence - (p - 1.0 / 3.0) * 1.5).abs() < 1e-12);
    let Ok(Answer::Score { score, legend, .. }) = &urgency.answer else { panic!("a score") };
    assert!((score - (2.0 * p + (1.0 - p) / 2.0)).abs() < 1e-12);
    assert_eq!(legend["1"], "this week");
    assert_eq!(refund.label_mass, Some(1.0));
    // The state comes first, so that all questions share it.
    let asked = Judge::ask(&judge, &DecisionItem { state: "the state".into(), questions }).unwrap();
    let texts: Vec<String> = asked.iter().map(|request| format!("{:?}", request.prompt)).collect();
    let shared = texts[0].find("the state").unwrap() + "the state".len();
    assert!(texts.iter().all(|text| text[..shared] == texts[0][..shared]));
    assert!(texts[1].contains("B - angry (Accuses)") && texts[1].contains("joking ({\\\"as\\\":"), "{}", texts[1]);
}

#[test]
fn an_answer_does_not_depend_on_what_else_is_asked() {
    let judge = judge_of(DecisionSettings::default());
    let all = three();
    let together = verdict(&judge, "x".into(), &all);
    for (place, (name, question)) in all.iter().enumerate() {
        let one = Questions::one(name, question.clone()).unwrap();
        let alone = verdict(&judge, "x".into(), &one);
        assert_eq!(one.answers(&alone).unwrap()[0], all.answers(&together).unwrap()[place]);
    }
}

#[test]
fn temperature_order_and_layers_are_kept() {
    let mut cold = form();
    cold.temperature.noul = 0.5;
    cold.false_first = true;
    let one = questions(json!({"refund": {"type": "noul", "instructions": "Is a refund asked for?"}}));
    let noul = |settings: DecisionSettings| {
        let judge = DecisionJudge::new(settings, &model()).unwrap();
        let Verdict::Scored(score) = verdict(&judge, "x".into(), &one) else { panic!("a score") };
        score.parts[0].verdict.value().unwrap()
    };
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    // The first label, Y, now stands for false.
    let found = noul(DecisionSettings { form: cold, ..DecisionSettings::default() });
    assert!((found - sigmoid(-4.0)).abs() < 1e-12);
    let inner = DecisionSettings { form: form(), readout: Readout::Layer(Layer(1)), ..DecisionSettings::default() };
    assert!((noul(inner) - sigmoid(1.0)).abs() < 1e-12);
    let beyond = DecisionSettings { form: form(), readout: Readout::Layer(Layer(3)), ..DecisionSettings::default() };
    let refused = DecisionJudge::new(beyond, &model()).map(drop).unwrap_err();
    assert_eq!(refused.to_string(), "the model has no layer 3; its layers are 0 to 2");
}

#[test]
fn a_soft_cap_is_part_of_the_last_layers_logits() {
    let soft = |cap| {
        let model = ScriptedBackbone::new(1).with_logits(|_, _, label| if label == 'Y' { 30.0 } else { 0.0 });
        let model = model.with_info(|info| info.final_soft_cap = cap);
        let settings = DecisionSettings { form: form(), ..DecisionSettings::default() };
        let judge = DecisionJudge::new(settings, &model).unwrap();
        let item = DecisionItem { state: "x".into(), questions: Questions::one("q", Question::noul("?")).unwrap() };
        one::verdict(&model, &judge, item).score().unwrap().parts[0].verdict.value().unwrap()
    };
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    assert!((soft(None) - sigmoid(30.0)).abs() < 1e-15);
    assert!((soft(Some(2.0)) - sigmoid(2.0 * 15f64.tanh())).abs() < 1e-12);
}

#[test]
fn too_many_options_cost_that_question_alone() {
    let many: serde_json::Map<String, Value> = (0..27).map(|n| (format!("option {n}"), Value::Null)).collect();
    let mixed = questions(json!({
        "many": {"type": "choice", "criteria": many},
        "refund": {"type": "noul", "instructions": "Is a refund asked for?"},
        "only": {"type": "choice", "criteria": {"this": null}},
    }));
    let judge = judge_of(DecisionSettings::default());
    let verdict = verdict(&judge, "x".into(), &mixed);
    assert!((verdict.value().unwrap() - 2.0 / 3.0).abs() < 1e-12);
    let answers = mixed.answers(&verdict).unwrap();
    let unscored = answers[0].answer.as_ref().unwrap_err();
    assert!(unscored.detail.starts_with("a choice question with 27 options, and at most 26 can be read"), "{unscored}");
    assert!(answers[1].answer.is_ok());
    assert!(matches!(&answers[2].answer, Ok(Answer::Choice { choice, confidence: 1.0, .. }) if choice == "this"));
    // Of other questions the verdict says nothing.
    let other = Questions::one("other", Question::noul("?")).unwrap();
    assert!(matches!(other.answers(&verdict), Err(DecisionProblem::NotAnswered { .. })));
}

#[test]
fn labels_that_are_no_single_token_are_an_error_or_a_bound() {
    let settings = |labels: &[&str]| {
        let mut form = form();
        form.labels.score = labels.iter().map(|&label| label.to_owned()).collect();
        DecisionSettings { form, ..DecisionSettings::default() }
    };
    let mut words = form();
    words.labels = ByKind::of(|_| ["Yes", "No"].map(str::to_owned).to_vec());
    let words = DecisionSettings { form: words, ..DecisionSettings::default() };
    let Err(Error::Decision(problem)) = DecisionJudge::new(words, &model()) else { panic!("no letter") };
    assert!(problem.to_string().contains("label \"Yes\" is not one vocabulary entry"), "{problem}");
    let judge = DecisionJudge::new(settings(&["A", "B", "bad"]), &model()).unwrap();
    let levels = questions(json!({"q": {"type": "score", "criteria": ["a", "b", "c"]}}));
    let Verdict::Unscored(unscored) = verdict(&judge, "x".into(), &levels) else { panic!("three options, two labels") };
    assert!(unscored.detail.contains("at most 2 can be read"), "{unscored}");
}

#[test]
fn a_head_reads_the_last_state() {
    let model = model(); // four numbers a state
    let offsets = ByKind { noul: 0, choice: 1, score: 0 };
    let weights = [[1.0, 0.0, 0.0, 0.0], [0.0, 2.0, 0.0, 0.0], [0.0, 0.0, 0.5, 0.0]].concat();
    let bias = vec![0.25, -1.0, 0.0];
    let head = DecisionHead::new(weights, bias, 4, Some(3.0), offsets.clone()).unwrap();
    let mut form = form();
    form.labels = ByKind::of(|_| ["a", "b"].map(str::to_owned).to_vec());
    let readout = Readout::Head(Box::new(head.clone()));
    let settings = DecisionSettings { form, readout, ..DecisionSettings::default() };
    let judge = DecisionJudge::new(settings, &model).unwrap();
    let asked = questions(json!({"tone": {"type": "choice", "criteria": {"calm": null, "angry": null}}}));
    let item = DecisionItem { state: "x".into(), questions: asked.clone() };
    let result = one::result(&model, &judge, item).unwrap();
    let reading = result.rounds(0).outcomes().next().unwrap().reading().unwrap();
    let state = reading.pooled(Layer(2), judge_core::request::Pooling::Last).unwrap();
    let capped = |x: f64| 3.0 * (x / 3.0).tanh();
    let [calm, angry] = [2.0 * f64::from(state[1]) - 1.0, 0.5 * f64::from(state[2])].map(capped);
    let expected = 1.0 / (1.0 + (angry - calm).exp());
    let Ok(Answer::Choice { probabilities, .. }) = &asked.answers(&result.verdicts[0]).unwrap()[0].answer else {
        panic!("a choice")
    };
    assert!((probabilities["calm"].as_f64().unwrap() - expected).abs() < 1e-12);
    assert!(DecisionHead::new(vec![1.0; 8], vec![0.0; 3], 4, None, offsets.clone()).is_err());
    assert!(DecisionHead::new(vec![f32::NAN; 12], vec![0.0; 3], 4, None, offsets.clone()).is_err());
    assert!(DecisionHead::new(vec![1.0; 12], vec![0.0; 3], 4, Some(0.0), offsets).is_err());
    let far = ByKind { noul: 0, choice: 3, score: 0 };
    assert!(DecisionHead::new(vec![1.0; 12], vec![0.0; 3], 4, None, far).is_err());
}

/// A model whose middle layer knows the answer, and whose last one does not.
fn knowing() -> ScriptedBackbone {
    ScriptedBackbone::new(2).with_logits(|before, layer, label| match (layer, label) {
        (Layer(1), 'Y') if before.contains("good") => 1.0,
        (Layer(1), 'N') if !before.contains("good") => 1.0,
        (Layer(2), 'Y') => 4.0,
        _ => 0.0,
    })
}

#[test]
fn weights_find_the_layer_that_knows() {
    let model = knowing();
    let settings = DecisionSettings { form: form(), every_layer: true, ..DecisionSettings::default() };
    let judge = DecisionJudge::new(settings.clone(), &model).unwrap();
    let asked = Questions::one("q", Question::noul("?")).unwrap();
    let items = ["good 1", "bad 1", "good 2", "bad 2"]
        .map(|state| (ItemId::from(state), DecisionItem { state: state.into(), questions: asked.clone() }));
    let results = Runner::new(&model, vec![&judge]).collect(items).unwrap();
    let labelled: Vec<Labelled> = results
        .iter()
        .map(|result| {
            let mut tables = judge.tables(&asked, &result.rounds(0)).unwrap();
            let found = tables.remove(0);
            assert_eq!(
                (found.name.as_str(), found.kind, &found.options[..]),
                ("q", QuestionKind::Noul, &["true".to_owned(), "false".to_owned()][..])
            );
            let yes = f64::from(result.id == "good 1".into() || result.id == "good 2".into());
            Labelled { kind: found.kind, table: found.table, target: vec![yes, 1.0 - yes] }
        })
        .collect();
    let weights = DecisionFit::default().fit(&labelled, &judge.origin()).unwrap();
    let found = weights.get(QuestionKind::Noul).unwrap();
    let layers = found.layers.as_ref().unwrap();
    assert!(layers[1] > layers[2], "{layers:?}");
    assert!(found.loss[1] < 0.2 * found.loss[0], "{:?}", found.loss);
    assert_eq!((found.n, weights.get(QuestionKind::Choice)), (4, None));
    // Few steps do not find it, and say so.
    let short = DecisionFit { steps: 20, ..DecisionFit::default() }.fit(&labelled, &judge.origin()).unwrap();
    let short = short.get(QuestionKind::Noul).unwrap().unsettled;
    assert!(matches!(short, Some(Unsettled::StillFalling { fell }) if fell > 1e-3), "{short:?}");
    let long = DecisionFit { steps: 3_000, ..DecisionFit::default() }.fit(&labelled, &judge.origin()).unwrap();
    assert_eq!(long.get(QuestionKind::Noul).unwrap().unsettled, None);
    // The temperature alone can only say that the last layer is not to be believed.
    let alone = DecisionFit { layers: false, ..DecisionFit::default() }.fit(&labelled, &judge.origin()).unwrap();
    let alone = alone.get(QuestionKind::Noul).unwrap();
    assert!(alone.layers.is_none() && alone.loss[1] < alone.loss[0], "{alone:?}");
    assert!((alone.loss[1] - 2f64.ln()).abs() < 1e-12 && alone.unsettled == Some(Unsettled::Uniform), "{alone:?}");

    let read: DecisionWeights = serde_json::from_str(&serde_json::to_string(&weights).unwrap()).unwrap();
    assert_eq!(read, weights);
    let fitted = DecisionSettings { readout: Readout::Weights(Box::new(read)), ..settings.clone() };
    let judge = DecisionJudge::new(fitted.clone(), &model).unwrap();
    let item = DecisionItem { state: "bad 3".into(), questions: asked.clone() };
    let answers = asked.answers(&one::verdict(&model, &judge, item)).unwrap();
    assert!(matches!(answers[0].answer, Ok(Answer::Noul { noul }) if noul < 0.3));

    // Weights are of one model, prompt and set of labels.
    let refused = |settings: DecisionSettings, model: &ScriptedBackbone| match DecisionJudge::new(settings, model) {
        Err(Error::Decision(problem @ DecisionProblem::Weights { .. })) => problem.to_string(),
        other => panic!("{:?}", other.err()),
    };
    let other_model = refused(fitted.clone(), &ScriptedBackbone::new(3));
    assert!(other_model.contains("fitted on the model \"scripted (scripted-2)\""), "{other_model}");
    let mut labels = fitted.clone();
    labels.form.labels.noul = vec!["y".to_owned(), "n".to_owned()];
    assert!(refused(labels, &model).contains("with the labels"));
    let mut lens = fitted;
    lens.lens = judge_core::Lens::Normed;
    assert!(refused(lens, &model).contains("with the lens"));
}

#[test]
fn a_temperature_alone_is_the_best_there_is() {
    let judge = DecisionJudge::new(DecisionSettings { form: form(), ..DecisionSettings::default() }, &knowing());
    let origin = judge.unwrap().origin();
    let fitted = |gap: f64, right: usize, all: usize| {
        let row = |at: usize| {
            let rows = [vec![9.0, 1.0], vec![0.0; 2], vec![gap - 1.0, -1.0]];
            let yes = f64::from(at < right);
            let table = judge_core::lager::LayerTable::from_rows(&rows).unwrap();
            Labelled { kind: QuestionKind::Choice, table, target: vec![yes, 1.0 - yes] }
        };
        let fit = DecisionFit { layers: false, ..DecisionFit::default() };
        let weights = fit.fit(&(0..all).map(row).collect::<Vec<_>>(), &origin).unwrap();
        weights.get(QuestionKind::Choice).unwrap().clone()
    };
    let near = |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < 1e-9, "{found} {expected}");
    // Of two options the best one gives the likelier one the share that it has in the labels.
    for (gap, right, all) in [(30.0, 11, 20), (2.0, 3, 4), (1e-4, 3, 4), (300.0, 499, 500)] {
        let found = fitted(gap, right, all);
        let share = right as f64 / all as f64;
        near(found.temperature, gap / (share / (1.0 - share)).ln());
        near(found.loss[1], -share * share.ln() - (1.0 - share) * (1.0 - share).ln());
        assert_eq!(found.unsettled, None);
    }
    // Logits that do not go with the labels are worth nothing, and no more is made of them.
    for right in [0, 1, 2] {
        let found = fitted(2.0, right, 4);
        near(found.loss[1], 2f64.ln());
        assert!(found.temperature > 1e20 && found.unsettled == Some(Unsettled::Uniform), "{found:?}");
    }
    // With every label as the logits have it, one label more is spread over both: 4.5 of 5.
    let found = fitted(2.0, 4, 4);
    near(found.temperature, 2.0 / 9f64.ln());
    assert_eq!(found.unsettled, Some(Unsettled::AllAgree));
    let json = serde_json::to_value(&found).unwrap();
    assert_eq!(json["unsettled"], "all_agree");
}

/// A silent reading at the last layer would pass for the weights.
#[test]
fn weights_without_any_for_the_only_kind_that_is_asked_are_refused() {
    let model = knowing();
    let settings = DecisionSettings { form: form(), ..DecisionSettings::default() };
    let origin = DecisionJudge::new(settings.clone(), &model).unwrap().origin();
    let table = judge_core::lager::LayerTable::from_rows(&[vec![0.0, 1.0], vec![0.0; 2], vec![1.0, 0.0]]).unwrap();
    let labelled = [Labelled { kind: QuestionKind::Choice, table, target: vec![0.25, 0.75] }];
    let readout = Readout::Weights(Box::new(DecisionFit::default().fit(&labelled, &origin).unwrap()));
    let judge = DecisionJudge::new(DecisionSettings { readout, ..settings }, &model).unwrap();
    assert_eq!(QuestionKind::ALL.map(|kind| judge.settings().lacks_weights(kind)), [true, false, true]);
    let refused = |found: Option<Error>| {
        let Some(Error::Decision(problem)) = found else { panic!("{found:?}") };
        assert_eq!(problem, DecisionProblem::NoWeights { kind: QuestionKind::Noul });
    };
    refused(ChecklistJudge::new(judge.clone(), None).err());
    refused(judge_core::rag::RagJudge::new(judge_core::rag::RagSettings::default(), judge).err());
}

#[test]
fn a_fit_refuses_what_it_cannot_learn_from() {
    let model = knowing();
    let settings = DecisionSettings { form: form(), ..DecisionSettings::default() };
    let origin = DecisionJudge::new(settings, &model).unwrap().origin();
    let table = |rows: &[Vec<f64>]| judge_core::lager::LayerTable::from_rows(rows).unwrap();
    let labelled = |rows: &[Vec<f64>], target: &[f64]| Labelled {
        kind: QuestionKind::Noul,
        table: table(rows),
        target: target.to_vec(),
    };
    let three = vec![vec![0.0, 1.0]; 3];
    let fit = DecisionFit::default();
    assert!(fit.fit(&[], &origin).is_err());
    for wrong in [
        labelled(&three[..2], &[1.0, 0.0]),
        labelled(&three, &[1.0, 1.0]),
        labelled(&three, &[1.5, -0.5]),
        labelled(&three, &[1.0]),
        labelled(&three, &[f64::NAN, 1.0]),
    ] {
        let error = fit.fit(&[labelled(&three, &[0.5, 0.5]), wrong], &origin).unwrap_err();
        assert!(error.to_string().starts_with("labelled decision 1:"), "{error}");
    }
    for wrong in [DecisionFit { steps: 0, ..fit }, DecisionFit { lr: f64::NAN, ..fit }] {
        assert!(matches!(wrong.fit(&[labelled(&three, &[1.0, 0.0])], &origin), Err(DecisionProblem::Setting { .. })));
    }
}

#[test]
fn settings_of_a_decision_json_are_read_or_refused() {
    let json = json!({
        "labels": {"noul": ["1", "0"], "score": []}, "temperature": {"choice": 2}, "noul_options": ["false", "true"],
        "adapter": null, "sort_choices": true,
    });
    let form = DecisionForm::from_json(&json).unwrap();
    assert_eq!(form.labels.noul, ["1", "0"]);
    assert_eq!(form.labels.score, DecisionForm::default().labels.score);
    assert_eq!((form.temperature.choice, form.temperature.noul, form.false_first), (2.0, 1.0, true));
    for (wrong, expected) in [
        (json!([]), "the file: expected an object"),
        (json!({"labels": {"yesno": ["a"]}}), "labels.yesno: expected noul, choice or score"),
        (json!({"labels": {"noul": ["a", "a"]}}), "labels.noul: expected a list of different texts"),
        (json!({"labels": {"noul": "ab"}}), "labels.noul: expected a list"),
        (json!({"temperature": {"noul": 0}}), "temperature.noul: expected a number above 0, found 0"),
        (json!({"temperature": 2}), "temperature: expected numbers by kind, found 2"),
        (json!({"noul_options": ["yes", "no"]}), "noul_options: expected"),
        (json!({"temperatures": {}}), "temperature: expected to be spelt so, found `temperatures`"),
    ] {
        let error = DecisionForm::from_json(&wrong).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn a_checklist_is_a_weighted_share_with_a_veto() {
    let logit = |before: &str, label: char| {
        let yes = before.contains("It names Paris") || before.contains("It is rude");
        if (label == 'Y') == yes { 100.0 } else { 0.0 }
    };
    let model = ScriptedBackbone::new(1).with_logits(move |before, _, label| logit(before, label));
    let settings = DecisionSettings { form: form(), ..DecisionSettings::default() };
    let asks = DecisionJudge::new(settings, &model).unwrap();
    let row = |list: Value| json!({"instruction": "Capital of France?", "response": "Paris.", "checklist": list});
    let score = |judge: &ChecklistJudge, row: Value| one::verdict(&model, judge, row);
    let none = ChecklistJudge::new(asks.clone(), None).unwrap();
    let found = score(
        &none,
        row(json!([
            "It names Paris",
            {"criterion": "It says why", "weight": 3, "name": "why"},
            {"criterion": "It is rude", "weight": -0.5},
        ])),
    );
    assert!((found.value().unwrap() - (1.0 - 0.5) / 4.0).abs() < 1e-12);
    let parts = &found.score().unwrap().parts;
    assert_eq!(parts.iter().map(|part| part.name.as_str()).collect::<Vec<_>>(), ["1", "why", "3"]);
    assert!(parts[0].verdict.value() > Some(0.999) && parts[1].verdict.value() < Some(0.001));
    let fatal = json!(["It names Paris", {"criterion": "It says why", "fatal": true}]);
    assert_eq!(score(&none, row(fatal)).value(), Some(0.0));
    // A table's cell has a list as a text, and a table's list all fields of each entry.
    let cell = r#"["It names Paris", {"criterion": "It says why", "name": null, "weight": null, "fatal": true}]"#;
    assert_eq!(score(&none, row(json!(cell))).value(), Some(0.0));
    let rude = json!(["It names Paris", {"criterion": "It is rude", "weight": -1, "fatal": true}]);
    assert_eq!(score(&none, row(rude)).value(), Some(0.0));
    // A list for all rows; a row's own takes its place.
    let list = Checklist::from_json(&json!(["It says why"])).unwrap();
    assert_eq!(serde_json::from_value::<Checklist>(serde_json::to_value(&list).unwrap()).unwrap(), list);
    let all = ChecklistJudge::new(asks, Some(list)).unwrap();
    check_judge(&all, &model, vec![row(json!(["It names Paris"]))]).unwrap();
    assert!(score(&all, row(json!(["It names Paris"]))).value() > Some(0.999));
    let plain = json!({"instruction": "Capital of France?", "response": "Paris."});
    assert!(score(&all, plain.clone()).value() < Some(0.001));
    for (row, expected) in [
        (plain, "the item has no `checklist`"),
        (json!({"instruction": "?", "checklist": ["a"]}), "response"),
        (row(json!([])), "at least one criterion"),
        (row(json!([{"criterion": "a", "weight": 0}])), "weights that are finite and not 0"),
        (
            row(json!([{"criterion": "a", "weight": 1e308}, {"criterion": "b", "weight": -1e308}])),
            "weights with a finite sum, found 2 that are too large",
        ),
        (row(json!([{"criterion": "a", "weigth": 1}])), "no fields but"),
        (row(json!([{"criterion": "a", "weight": "2"}])), "found \"2\" for `weight` of criterion 1"),
        (row(json!([" "])), "criteria in words"),
        (
            row(json!([{"criterion": "a", "name": "x"}, {"criterion": "b", "name": "x"}])),
            "two questions are called \"x\"",
        ),
        (row(json!([3])), "each criterion to be a text"),
        (row(json!({"a": "b"})), "the item has no `checklist`"),
    ] {
        let Verdict::Unscored(unscored) = score(&none, row.clone()) else { panic!("{row}") };
        if !row["checklist"].is_object() {
            assert!(unscored.detail.contains(expected), "{unscored}");
        }
    }
}

#[test]
fn a_models_own_label_token_is_what_is_read() {
    assert_eq!(model().label_token("Y").unwrap(), 'Y' as u32);
}
