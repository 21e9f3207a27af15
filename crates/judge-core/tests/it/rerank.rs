//! The judge of a query's documents.

use std::sync::Arc;

use crate::one;
use judge_core::decision::{DecisionFit, DecisionWeights, Labelled, QuestionKind};
use judge_core::rerank::{
    Activation, Label, PairPrompt, Relevance, RerankItem, RerankJudge, RerankProblem, RerankReadout, RerankSettings,
    Scoring, TurnPrompt, ranked,
};
use judge_core::testing::{ScriptedBackbone, check_judge};
use judge_core::{
    Backbone, Error, Judge, Layer, Prompt, PromptTemplate, Reason, Request, Score, Unscored, Verdict,
    request::{Pooling, ReadAt},
    reward::RewardHead,
    verdict::CombinedBy,
};

const LAYERS: usize = 3;

/// The logit of `Y` is the number that the document ends with, less one for each layer below the last; that of `N` is 0.5.
fn model() -> ScriptedBackbone {
    ScriptedBackbone::new(LAYERS).with_logits(|before, layer, label| match label {
        'Y' => number(before) - (LAYERS - layer.0) as f32,
        _ => 0.5,
    })
}

fn number(before: &str) -> f32 {
    let digits = before.lines().rev().find_map(|line| line.rsplit(' ').next()?.parse().ok());
    digits.unwrap_or(-1.0)
}

fn prompt() -> Arc<TurnPrompt> {
    let template = PromptTemplate::new(Prompt::user("{query}\n{document}")).unwrap();
    Arc::new(TurnPrompt::new(template).unwrap())
}

fn yes() -> Label {
    Label::Text("Y".into())
}

fn difference(activation: Activation) -> Scoring {
    Scoring { relevance: Relevance::Difference { yes: yes(), no: Label::Text("N".into()) }, activation }
}

fn item() -> RerankItem {
    RerankItem::new("which?", ["a 1", "b 3", "c 2"])
}

fn values(verdict: &Verdict) -> Vec<Option<f64>> {
    verdict.score().unwrap().parts.iter().map(|part| part.verdict.value()).collect()
}

fn score(settings: RerankSettings) -> (Verdict, Score) {
    let model = model();
    let verdict = one::verdict(&model, &RerankJudge::new(settings, &model).unwrap(), item());
    let score = verdict.score().unwrap().clone();
    (verdict, score)
}

#[test]
fn documents_are_scored_by_their_logits_and_put_in_order() {
    let (verdict, score) = score(RerankSettings::new(prompt(), difference(Activation::Identity)));
    assert_eq!(values(&verdict), [Some(0.5), Some(2.5), Some(1.5)]);
    assert_eq!((score.value, score.combined_by.as_ref()), (2.5, Some(&CombinedBy::Documents)));
    assert!(score.label_mass.is_some());
    let order: Vec<usize> = ranked(&verdict).iter().map(|document| document.index).collect();
    assert_eq!(order, [1, 2, 0]);

    // The softmax over two labels is the sigmoid of their difference.
    let (verdict, _) = self::score(RerankSettings::new(prompt(), difference(Activation::Sigmoid)));
    let softmax = |yes: f64, no: f64| yes.exp() / (yes.exp() + no.exp());
    for (found, yes) in values(&verdict).into_iter().zip([1.0, 3.0, 2.0]) {
        assert!((found.unwrap() - softmax(yes, 0.5)).abs() < 1e-12);
    }

    // It is exactly 1 for both of these, which does not make them equal.
    let model = self::model();
    let judge = RerankJudge::new(RerankSettings::new(prompt(), difference(Activation::Sigmoid)), &model).unwrap();
    let sure = one::verdict(&model, &judge, RerankItem::new("which?", ["a 1", "b 38", "c 45"]));
    assert_eq!(values(&sure)[1..], [Some(1.0), Some(1.0)]);
    assert_eq!(ranked(&sure).iter().map(|document| document.index).collect::<Vec<_>>(), [2, 1, 0]);

    let logit = Scoring { relevance: Relevance::Logit { yes: yes() }, activation: Activation::Identity };
    let (verdict, _) = self::score(RerankSettings::new(prompt(), logit));
    assert_eq!(values(&verdict), [Some(1.0), Some(3.0), Some(2.0)]);
}

#[test]
fn a_label_may_be_a_number() {
    let model = model();
    let token = model.label_token("Y").unwrap();
    let of = |yes| {
        let scoring = Scoring { relevance: Relevance::Logit { yes }, activation: Activation::Identity };
        RerankJudge::new(RerankSettings::new(prompt(), scoring), &model)
    };
    let judge = of(Label::Token(token)).unwrap();
    assert_eq!(values(&one::verdict(&model, &judge, item())), [Some(1.0), Some(3.0), Some(2.0)]);
    let d_vocab = model.info().d_vocab;
    let beyond = of(Label::Token(d_vocab as u32));
    assert!(matches!(beyond, Err(Error::Rerank(RerankProblem::NoToken { .. }))));
    assert!(matches!(of(Label::Text("Yes".into())), Err(Error::Backbone(_))));
    let same = Scoring {
        relevance: Relevance::Difference { yes: yes(), no: Label::Token(token) },
        activation: Activation::Identity,
    };
    let same = RerankJudge::new(RerankSettings::new(prompt(), same), &model);
    assert!(matches!(same, Err(Error::Rerank(RerankProblem::SameLabel { .. }))));
}

#[test]
fn a_chosen_layer_is_read_alone_and_spares_those_above() {
    let settings = RerankSettings {
        readout: RerankReadout::Layer(Layer(1)),
        ..RerankSettings::new(prompt(), difference(Activation::Identity))
    };
    let (verdict, score) = score(settings.clone());
    assert_eq!(values(&verdict), [Some(-1.5), Some(0.5), Some(-0.5)]);
    assert_eq!(score.label_mass, None, "the mass would need the last layer");
    let judge = RerankJudge::new(settings.clone(), &model()).unwrap();
    let requests: Vec<Request> = judge.ask(&item()).unwrap();
    assert_eq!(requests.len(), 3);
    assert!(requests.iter().all(|request| !request.want.needs_all_blocks()));
    assert_eq!(requests[0].want.layers().collect::<Vec<_>>(), [Layer(1)]);
    assert_eq!(requests[0].want.labels[0].at, ReadAt::PromptEnd);
    let beyond = RerankSettings { readout: RerankReadout::Layer(Layer(4)), ..settings };
    let refused = RerankJudge::new(beyond, &model());
    assert!(matches!(refused, Err(Error::Rerank(RerankProblem::Layer { found: Layer(4), last: 3 }))));
}

/// Weights that are learned from the tables of the judge's own readings.
fn fitted(scoring: &Scoring) -> (DecisionWeights, RerankSettings) {
    let model = model();
    let settings = RerankSettings::new(prompt(), scoring.clone());
    let every = RerankSettings { every_layer: true, ..settings.clone() };
    let judge = RerankJudge::new(every, &model).unwrap();
    let result = one::result(&model, &judge, item()).unwrap();
    let tables = judge.tables(&item(), &result.rounds(0)).unwrap();
    assert_eq!(tables.iter().map(|(index, _)| *index).collect::<Vec<_>>(), [0, 1, 2]);
    assert!(tables.iter().all(|(_, table)| table.layers().len() == LAYERS + 1 && table.n_scores() == 2));
    let labelled = tables.into_iter().zip([0.0, 1.0, 1.0]).map(|((_, table), relevance)| Labelled {
        kind: QuestionKind::Noul,
        table,
        target: vec![relevance, 1.0 - relevance],
    });
    let weights = DecisionFit::default().fit(&labelled.collect::<Vec<_>>(), &judge.origin()).unwrap();
    (weights, settings)
}

#[test]
fn fitted_weights_are_of_the_same_labels_and_prompt_alone() {
    for relevance in [Relevance::Logit { yes: yes() }, difference(Activation::Sigmoid).relevance] {
        let scoring = Scoring { relevance: relevance.clone(), activation: Activation::Sigmoid };
        let (weights, settings) = fitted(&scoring);
        let json = serde_json::to_string(&weights).unwrap();
        let weights: DecisionWeights = serde_json::from_str(&json).unwrap();
        let kind = weights.get(QuestionKind::Noul).unwrap();
        let layers = kind.layers.clone().unwrap();
        let readout = RerankReadout::Weights(Box::new(weights.clone()));
        let (verdict, _) = score(RerankSettings { readout: readout.clone(), ..settings.clone() });
        let no = if matches!(relevance, Relevance::Logit { .. }) { 0.0 } else { 0.5 };
        for (found, yes) in values(&verdict).into_iter().zip([1.0, 3.0, 2.0]) {
            let sum: f64 = layers.iter().enumerate().map(|(l, w)| w * (yes - (LAYERS - l) as f64 - no)).sum();
            let expected = Activation::Sigmoid.at(sum / kind.temperature);
            assert!((found.unwrap() - expected).abs() < 1e-9, "{found:?} {expected}");
        }
        let other = PromptTemplate::new(Prompt::user("{query} {document}")).unwrap();
        let other =
            RerankSettings { readout: readout.clone(), prompt: Arc::new(TurnPrompt::new(other).unwrap()), ..settings };
        assert!(matches!(RerankJudge::new(other, &model()), Err(Error::Decision(_))));
        let turned = Scoring {
            relevance: Relevance::Difference { yes: Label::Text("N".into()), no: yes() },
            activation: Activation::Sigmoid,
        };
        let turned = RerankSettings { readout, ..RerankSettings::new(prompt(), turned) };
        assert!(matches!(RerankJudge::new(turned, &model()), Err(Error::Decision(_))));
    }
}

#[test]
fn a_score_depends_on_no_other_document_and_one_that_is_unread_costs_itself_alone() {
    let model = model();
    let judge = RerankJudge::new(RerankSettings::new(prompt(), difference(Activation::Sigmoid)), &model).unwrap();
    let all = values(&one::verdict(&model, &judge, item()));
    for (index, text) in ["a 1", "b 3", "c 2"].into_iter().enumerate() {
        let alone = one::verdict(&model, &judge, RerankItem::new("which?", [text]));
        assert_eq!(values(&alone), [all[index]]);
    }
    let no = || Err(Unscored::new(Reason::Missing, "a number"));
    let mixed = RerankItem { query: "which?".into(), documents: vec![no(), Ok("b 3".into()), no(), Ok("a 1".into())] };
    let verdict = one::verdict(&model, &judge, mixed);
    assert_eq!(values(&verdict), [None, all[1], None, all[0]]);
    assert_eq!(ranked(&verdict).iter().map(|document| document.index).collect::<Vec<_>>(), [1, 3, 0, 2]);
    let none = RerankItem { query: "which?".into(), documents: vec![no(), no()] };
    assert_eq!(one::verdict(&model, &judge, none).unscored().unwrap().reason, Reason::Missing);
    let empty = RerankItem::new("which?", Vec::<String>::new());
    assert_eq!(one::verdict(&model, &judge, empty).unscored().unwrap().detail, "the item has no documents");
    // A number that is none is no score, and no other document's.
    let infinite = ScriptedBackbone::new(1).with_logits(|before, _, label| match label {
        'Y' if before.contains('b') => f32::INFINITY,
        _ => 1.0,
    });
    let judge = RerankJudge::new(RerankSettings::new(prompt(), difference(Activation::Sigmoid)), &infinite).unwrap();
    assert_eq!(values(&one::verdict(&infinite, &judge, item())), [Some(0.5), None, Some(0.5)]);
}

#[test]
fn a_head_reads_pairs_at_the_last_layer() {
    let model = ScriptedBackbone::new(2);
    let d_model = model.info().d_model;
    let head = |labels: &[&str]| {
        let labels: Vec<String> = labels.iter().map(|label| (*label).to_owned()).collect();
        let weights = (0..labels.len() * d_model).map(|i| i as f32 * 0.25 - 1.0).collect();
        RewardHead::new(labels, weights, d_model).unwrap()
    };
    let settings = |head: RewardHead| {
        let scoring = Scoring { relevance: Relevance::Head(Box::new(head)), activation: Activation::Sigmoid };
        RerankSettings::new(Arc::new(PairPrompt::default()), scoring)
    };
    let judge = RerankJudge::new(settings(head(&["relevance"])), &model).unwrap();
    let requests = judge.ask(&item()).unwrap();
    assert_eq!(requests[0].want.pooled, [(Layer(2), Pooling::Last)]);
    let Prompt::Chat { messages, template_args, .. } = &requests[1].prompt else { panic!("a conversation") };
    assert_eq!(messages.iter().map(|turn| turn.content.as_str()).collect::<Vec<_>>(), ["which?", "b 3"]);
    assert_eq!(template_args["add_generation_prompt"], false);
    assert_eq!(requests[1].prompt.truncation(), Some(None));
    let found = values(&one::verdict(&model, &judge, item()));
    assert!(found.iter().all(|value| value.is_some_and(|value| (0.0..=1.0).contains(&value))), "{found:?}");

    let several = RerankJudge::new(settings(head(&["a", "b"])), &model);
    assert!(matches!(several, Err(Error::Rerank(RerankProblem::HeadLabels { found })) if found.len() == 2));
    let layer = RerankSettings { readout: RerankReadout::Layer(Layer(1)), ..settings(head(&["a"])) };
    assert!(matches!(RerankJudge::new(layer, &model), Err(Error::Rerank(RerankProblem::LayersOfHead))));
    let wide = RewardHead::new(vec!["a".into()], vec![1.0; d_model + 1], d_model + 1).unwrap();
    assert!(matches!(RerankJudge::new(settings(wide), &model), Err(Error::Shape { .. })));
}

#[test]
fn the_judge_keeps_the_contract_and_says_all_that_a_score_depends_on() {
    let model = model();
    let judge = |scoring| RerankJudge::new(RerankSettings::new(prompt(), scoring), &model).unwrap();
    check_judge(&judge(difference(Activation::Sigmoid)), &model, [item(), RerankItem::new("why?", ["x 7"])]).unwrap();
    let said = |judge: RerankJudge| Judge::<RerankItem>::settings(&judge).unwrap().to_string();
    let mut all: Vec<String> = [Activation::Sigmoid, Activation::Identity].map(difference).map(judge).map(said).into();
    all.push(said(judge(Scoring { relevance: Relevance::Logit { yes: yes() }, activation: Activation::Identity })));
    let layer = RerankSettings {
        readout: RerankReadout::Layer(Layer(1)),
        ..RerankSettings::new(prompt(), difference(Activation::Sigmoid))
    };
    all.push(said(RerankJudge::new(layer, &model).unwrap()));
    assert!((0..all.len()).all(|i| !all[..i].contains(&all[i])), "{all:?}");
    let lacks = PromptTemplate::new(Prompt::user("{document}")).unwrap();
    let problem = TurnPrompt::new(lacks);
    assert!(matches!(problem, Err(Error::Rerank(RerankProblem::Template { field: "query" }))));
}
