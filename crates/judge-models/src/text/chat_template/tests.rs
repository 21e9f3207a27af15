//! Against transformers. Expected renderings and the script that made them: `scripts/templates/make_template_fixtures.py`.

use std::collections::BTreeMap;

use judge_core::Message;
use serde::Deserialize;

use super::{ChatTemplate, Date};

#[derive(Deserialize)]
struct Fixture {
    conversations: BTreeMap<String, Vec<Message>>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    template: String,
    conversation: String,
    args: BTreeMap<String, serde_json::Value>,
    text: Option<String>,
    error: Option<String>,
}

#[test]
fn every_construct_renders_as_in_transformers() {
    let fixture: Fixture =
        serde_json::from_str(include_str!("../../../tests/fixtures/templates/templates.json")).unwrap();
    let special =
        BTreeMap::from([("bos_token".to_owned(), "<s>".to_owned()), ("eos_token".to_owned(), "</s>".to_owned())]);
    let mut wrong = Vec::new();
    for case in &fixture.cases {
        let messages = &fixture.conversations[&case.conversation];
        let rendered =
            ChatTemplate::new(&case.template, Date::default()).and_then(|t| t.render(messages, &special, &case.args));
        match (&rendered, &case.text) {
            (Ok(found), Some(expected)) if found == expected => {}
            (Err(_), None) => {}
            _ => wrong.push(format!(
                "{} ({}, {:?})\n  expected {:?}\n  found    {rendered:?}",
                case.name,
                case.conversation,
                case.args,
                case.text.as_ref().or(case.error.as_ref())
            )),
        }
    }
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), fixture.cases.len(), wrong.join("\n"));
    assert!(fixture.cases.len() > 150);
}
