//! What a program that builds judges of its own counts on: judges and models behind pointers, names, owned panels,
//! readings without a judge.

use std::sync::Arc;

use crate::one;
use judge_core::testing::{ScriptedBackbone, check_backbone, check_judge};
use judge_core::{
    Backbone, Error, Fields, Judge, Layer, Outcome, Prompt, PromptTemplate, Reason, Scale, TextModel, Want,
    combine::{Named, OrderPolicy, Panel, PanelRule, Swapped},
    lager::{LagerJudge, LagerSettings},
    prompted::{PromptFamily, WrittenJudge},
    read,
    request::LabelRead,
};

type Item = Vec<(&'static str, &'static str)>;

fn item() -> Item {
    vec![("instruction", "2 + 2?"), ("response", "4"), ("rubric", "the row's own")]
}

fn model() -> ScriptedBackbone {
    ScriptedBackbone::new(3)
        .with_logits(|before, layer, label| (before.len() * 7 + layer.0 + label as usize) as f32 % 5.0)
        .with_reply(|prompt| if prompt.contains("brief") { "[[3]]".into() } else { "[[8]]".into() })
}

/// Judges of two kinds, chosen at run time and owned by what is returned.
fn panel(model: &dyn Backbone) -> Result<Panel<'static, Item>, Error> {
    let scale = Scale::integers(1, 5)?;
    let template = PromptTemplate::pointwise_direct(&scale).bind("rubric", "Is it brief?")?;
    let brief = LagerJudge::new(LagerSettings { template, ..LagerSettings::prompt_end(scale) }, model)?;
    let written = Arc::new(WrittenJudge::new(PromptFamily::built_in("single")?));
    let members: [Box<dyn Judge<Item>>; 3] = [
        Box::new(Named::new("brief", brief)),
        Box::new(Named::new("once", Arc::clone(&written))),
        Box::new(Named::new("twice", written)),
    ];
    Panel::new("mixed", members, PanelRule::Mean)
}

#[test]
fn a_panel_owns_its_members_and_its_parts_have_their_names() {
    let model: Box<dyn Backbone> = Box::new(model());
    let panel = panel(&model).unwrap();
    let on_a_thread = std::thread::spawn(move || {
        one::verdict(&model, &panel, item())
            .score()
            .unwrap()
            .parts
            .iter()
            .map(|part| part.name.clone())
            .collect::<Vec<_>>()
    });
    assert_eq!(on_a_thread.join().unwrap(), ["brief", "once", "twice"]);
}

#[test]
fn judges_and_models_behind_pointers_keep_their_contracts() {
    let model = Arc::new(model());
    check_judge(&panel(&model).unwrap(), &model, [item(), vec![("response", "4")]]).unwrap();
    let prompts = [Prompt::user("a"), Prompt::Raw("b c".into())];
    check_backbone(&model, &prompts).unwrap();
    let boxed: Box<dyn Backbone> = Box::new(Arc::clone(&model));
    check_backbone(&boxed, &prompts).unwrap();
    let text: &dyn TextModel = &boxed;
    assert_eq!(text.identity().name, "scripted");
}

#[test]
fn judges_say_their_names_without_a_type_of_items() {
    let lager = LagerJudge::new(LagerSettings::prompt_end(Scale::integers(1, 5).unwrap()), &model()).unwrap();
    assert_eq!(lager.name(), "lager");
    let pair = WrittenJudge::new(PromptFamily::built_in("pair").unwrap());
    assert_eq!(pair.name(), "pair");
    let both = Swapped::new(Named::new("fair", pair), OrderPolicy::Average);
    assert_eq!(both.name(), "fair");
    // A name is no setting: the verdicts are those of the judge inside.
    let settings = |judge: &dyn Judge<Item>| judge.settings();
    assert_eq!(settings(&Named::new("other", lager.clone())), settings(&lager));
}

#[test]
fn a_bound_rubric_is_what_is_asked_whatever_a_row_has() {
    let template = PromptTemplate::new(Prompt::user("{response} {rubric}")).unwrap();
    let bound = template.bind("rubric", "fixed").unwrap();
    assert_eq!(bound.fill(&item()).unwrap(), Prompt::user("4 fixed"));
    let row: serde_json::Value = serde_json::from_str(r#"{"response": 4, "rubric": "the row's own"}"#).unwrap();
    assert_eq!(bound.fill(&row).unwrap(), Prompt::user("4 fixed"));
    assert_eq!(serde_json::Value::from("no object").field("response"), None);
}

#[test]
fn prompts_are_read_in_their_order() {
    let model = model().with_info(|info| info.max_len = 8);
    let labels = LabelRead::at_every_layer(&Scale::integers(1, 5).unwrap(), &model).unwrap();
    let prompts = ["a", "far too long to be read", "b", "a"].map(|text| Prompt::Raw(text.into()));
    let want = Want { labels: vec![labels.clone()], ..Want::default() };
    let outcomes = read(&model, prompts.clone(), &want).unwrap();
    for (prompt, outcome) in prompts.into_iter().zip(&outcomes) {
        assert_eq!(&read(&model, [prompt], &want).unwrap()[0], outcome);
    }
    assert!(matches!(&outcomes[1], Outcome::Unscored(unscored) if unscored.reason == Reason::TooLong));
    let found = outcomes[2].reading().unwrap().labels(&labels).unwrap();
    assert_eq!(found.layers, (0..=3).map(Layer).collect::<Vec<_>>());
    assert!(read(&model, [], &want).unwrap().is_empty());
}
