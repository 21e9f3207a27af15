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

/// minijinja 3.0.5 panics here, which is an error like any other. Should it learn to do it, the text is empty, as in Jinja2.
#[test]
fn a_template_over_which_its_engine_fails_is_an_error() {
    let render = |source: &str| {
        let template = ChatTemplate::new(source, Date::default()).unwrap();
        template.render(&[], &BTreeMap::new(), &BTreeMap::new())
    };
    assert_eq!(render("{{ 'ab'[::-1] }}").unwrap(), "ba");
    match render("{{ ''[::-1] }}") {
        Ok(text) => assert_eq!(text, ""),
        Err(error) => assert!(error.to_string().contains("the template's own engine failed"), "{error}"),
    }
}

/// Templates come from downloaded folders: none may exhaust the memory or the stack.
#[test]
fn a_template_that_grows_without_bound_is_refused() {
    let doubled = |start: &str, double: &str| {
        format!(
            "{{% set ns = namespace(s={start}) %}}{{% for i in range(60) %}}{{% set ns.s = {double} %}}{{% endfor %}}"
        )
    };
    let grown = doubled("'x'", "ns.s ~ ns.s");
    let lists = doubled("['x']", "[ns.s, ns.s]");
    let deep = doubled("[]", "[[ns.s]]");
    for (template, expected) in [
        (grown, "bytes of text"),
        (doubled("'x'", "ns.s + ns.s"), "bytes of text"),
        (doubled("['x']", "ns.s + ns.s"), "bytes of text"),
        (doubled("'x'", "'%s%s' % (ns.s, ns.s)"), "bytes of text"),
        (doubled("'x'", "'%(a)s%(a)s' % {'a': ns.s}"), "bytes of text"),
        (doubled("'x'", "'{0}{0}'.format(ns.s)"), "bytes of text"),
        (doubled("'x'", "'%s%s'|format(ns.s, ns.s)"), "bytes of text"),
        (doubled("'x'", "[ns.s, ns.s]|join"), "bytes of text"),
        (doubled("'x'", "''.join([ns.s, ns.s])"), "bytes of text"),
        (doubled("'xy'", "ns.s|replace('x', ns.s)"), "bytes of text"),
        (doubled("'xy'", "ns.s.replace('x', ns.s)"), "bytes of text"),
        ("{{ 'a\nb'|indent(999999999) }}".to_owned(), "bytes of text"),
        ("{{ 'a\nb'|indent(width=999999999) }}".to_owned(), "bytes of text"),
        ("{{ '%999999999d' % 1 }}".to_owned(), "bytes of text"),
        ("{{ '%.999999999f' % 1 }}".to_owned(), "bytes of text"),
        ("{{ '{:>99999999999999999999}'.format(1) }}".to_owned(), "bytes of text"),
        (lists.clone() + "{{ ns.s|tojson }}", "bytes of text"),
        (lists.clone() + "{{ ns.s }}", "bytes of text"),
        (lists.clone() + "{{ 'a' ~ ns.s }}", "bytes of text"),
        (lists.clone() + "{{ '%s' % ns.s }}", "bytes of text"),
        (deep.clone() + "{{ ns.s }}", "nested more than 64 deep"),
        (deep + "{{ ns.s|tojson }}", "nested more than 64 deep"),
        (lists.clone() + "{{ ns.s % 2 }}", "cannot divide this sequence by this number"),
        (lists.clone() + "{{ [].index(ns.s) }}", "this sequence is not in the list"),
        (lists.clone() + "{{ 1|tojson(separators=[ns.s, ns.s]) }}", "a separator is a text"),
        (lists.clone() + "{{ 'a'.center(9, ns.s) }}", "not a string"),
        (lists + "{{ raise_exception(ns.s) }}", "bytes of text"),
        ("{{ strftime_now('%c' * 5000000) }}".to_owned(), "bytes of text"),
        ("{% set x %}{{ 'x' * 50000000 }}{% endset %}{{ x }}{{ x }}".to_owned(), "bytes of output"),
    ] {
        let compiled = ChatTemplate::new(&template, Date::default()).unwrap();
        let error = compiled.render(&[], &BTreeMap::new(), &BTreeMap::new()).unwrap_err();
        let causes = std::iter::successors(Some(&error as &dyn std::error::Error), |e| e.source());
        let text: Vec<String> = causes.map(ToString::to_string).collect();
        assert!(text.join(": ").contains(expected), "{template}: {text:?}");
    }
}

#[test]
fn a_template_too_deep_to_read_does_not_compile() {
    let template = format!("{{{{ {}1{} }}}}", "(".repeat(50_000), ")".repeat(50_000));
    let error = ChatTemplate::new(&template, Date::default()).err().unwrap().to_string();
    assert!(error.contains("line 1: brackets are nested more than 64 deep"), "{error}");
}

#[test]
fn each_rendering_has_the_whole_budget() {
    let template = "{% set ns = namespace(s='x') %}{% for i in range(26) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}{{ ns.s|length }}";
    let compiled = ChatTemplate::new(template, Date::default()).unwrap();
    for _ in 0..3 {
        assert_eq!(compiled.render(&[], &BTreeMap::new(), &BTreeMap::new()).unwrap(), (1 << 26).to_string());
    }
}

/// Expected texts: Python's `json.dumps(..., sort_keys=True)`, and what its `str.rsplit` refuses.
#[test]
fn keys_are_sorted_and_separators_refused_as_in_python() {
    let render =
        |template: &str| ChatTemplate::new(template, Date::default())?.render(&[], &BTreeMap::new(), &BTreeMap::new());
    assert_eq!(render("{{ {10: 1, 9: 2}|tojson(sort_keys=true) }}").unwrap(), r#"{"9": 2, "10": 1}"#);
    assert_eq!(
        render("{{ {'b': 1, 'a10': 2, 'a9': 3}|tojson(sort_keys=true) }}").unwrap(),
        r#"{"a10": 2, "a9": 3, "b": 1}"#
    );
    assert_eq!(render("{{ 'a,b,c'.rsplit(',', 1)|join('|') }}").unwrap(), "a,b|c");
    let error = format!("{:?}", render("{{ 'abc'.rsplit('') }}").unwrap_err());
    assert!(error.contains("empty separator"), "{error}");
}
