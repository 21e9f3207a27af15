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

#[derive(Deserialize)]
struct Jinja {
    messages: Vec<Message>,
    cases: Vec<(String, Option<String>)>,
}

/// All filters, tests, functions, operators, methods, slices and statements against Jinja2 itself: the same text, or an error. Another text
/// is never made. What is refused where transformers renders is counted, so that nothing falls out of what is rendered unseen.
///
/// Cases: `scripts/templates/make_jinja_fixtures.py`.
#[test]
fn nothing_renders_otherwise_than_in_jinja() {
    let fixture: Jinja = serde_json::from_str(include_str!("../../../tests/fixtures/templates/jinja.json")).unwrap();
    let special =
        BTreeMap::from([("bos_token".to_owned(), "<s>".to_owned()), ("eos_token".to_owned(), "</s>".to_owned())]);
    let (mut wrong, mut refused) = (Vec::new(), 0);
    for (template, expected) in &fixture.cases {
        let rendered = ChatTemplate::new(template, Date::default())
            .and_then(|t| t.render(&fixture.messages, &special, &BTreeMap::new()));
        match (&rendered, expected) {
            (Ok(found), Some(expected)) if found == expected => {}
            (Err(_), None) => {}
            (Err(_), Some(_)) => refused += 1,
            _ => wrong.push(format!("{template}\n  expected {expected:?}\n  found    {rendered:?}")),
        }
    }
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), fixture.cases.len(), wrong.join("\n"));
    assert!(fixture.cases.len() > 12_500 && refused <= 460, "{refused} of {} are refused", fixture.cases.len());
}

/// Jinja2 makes LF of CR LF and of a lone CR in a template, and leaves those of the messages alone.
#[test]
fn line_breaks_of_a_template_are_lf_and_those_of_messages_stay() {
    let template =
        ChatTemplate::new("a\r\n{% if true %}\r\nb\r{{ messages[0].content }}{% endif %}\r\n", Date::default())
            .unwrap();
    let messages = [Message::new("user", "x\r\ny\r")];
    let text = template.render(&messages, &BTreeMap::new(), &BTreeMap::new()).unwrap();
    assert_eq!(text, "a\nb\nx\r\ny\r");
}

#[test]
fn what_is_not_supported_is_named_with_its_line() {
    for (template, expected) in [
        ("a\n{{ 'x'|pprint }}", "the filter pprint is not supported in templates (line 2 of the template)"),
        ("\n\n{% include 'x' %}", "the statement include is not supported in templates (line 3 of the template)"),
        ("{{ 'x'.encode() }}", "encode, which makes bytes, is not supported in templates (line 1 of the template)"),
        ("{{\nnothing\n.x }}", "'nothing' is undefined (line 3 of the template)"),
        ("{{ [].push(1) }}", "'list object' has no attribute 'push' (line 1 of the template)"),
    ] {
        let rendered = ChatTemplate::new(template, Date::default())
            .and_then(|t| t.render(&[], &BTreeMap::new(), &BTreeMap::new()));
        assert_eq!(rendered.unwrap_err().to_string(), expected);
    }
}

/// A macro holds the scope that holds the macro: each rendering must let go of both.
#[test]
fn a_rendering_with_macros_leaves_nothing_behind() {
    let template = ChatTemplate::new(
        "{% macro m() %}{{ m }}{% endmacro %}{% set text = 'x' * 1000 %}{{ text|length }}",
        Date::default(),
    );
    let template = template.unwrap();
    for _ in 0..3 {
        assert_eq!(template.render(&[], &BTreeMap::new(), &BTreeMap::new()).unwrap(), "1000");
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
        ("{{ '%999999999d' % 1 }}".to_owned(), "over 65536"),
        ("{{ '%.999999999f' % 1 }}".to_owned(), "over 65536"),
        ("{{ '{:>99999999999999999999}'.format(1) }}".to_owned(), "over 65536"),
        (lists.clone() + "{{ ns.s|tojson }}", "bytes of text"),
        (lists.clone() + "{{ ns.s }}", "bytes of text"),
        (lists.clone() + "{{ 'a' ~ ns.s }}", "bytes of text"),
        (lists.clone() + "{{ '%s' % ns.s }}", "bytes of text"),
        (
            "{% set ns = namespace(s=[]) %}{% for i in range(300) %}{% set ns.s = [[ns.s]] %}{% endfor %}".to_owned(),
            "a namespace",
        ),
        (
            "{% macro m(n, v) %}{{ m(n - 1, [v]) if n else v }}{% endmacro %}{{ m(100, 1) }}".to_owned(),
            "more than 64 deep",
        ),
        (lists.clone() + "{{ ns.s % 2 }}", "unsupported operand types for %: 'list' and 'int'"),
        (lists.clone() + "{{ [].index(ns.s) }}", "the value is not in the list"),
        (lists.clone() + "{{ 1|tojson(separators=[ns.s, ns.s]) }}", "a separator is a text, not a list"),
        (lists.clone() + "{{ 'a'.center(9, ns.s) }}", "center: must be str, not list"),
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
    let long = |piece: &str| format!("a\n{{{{ a{} }}}}", piece.repeat(5_000));
    for template in [
        format!("a\n{{{{ {}1{} }}}}", "(".repeat(5_000), ")".repeat(5_000)),
        format!("\n{{{{ {}1{} }}}}", "[{1:".repeat(5_000), "}]".repeat(5_000)),
        long(" if b else a"),
        long(" if b"),
        format!("\n{{{{ {}a }}}}", "not ".repeat(5_000)),
        format!("\n{{{{ {}a }}}}", "-".repeat(5_000)),
        "\n".to_owned() + &"{% if a %}".repeat(5_000),
    ] {
        let error = ChatTemplate::new(&template, Date::default()).err().unwrap().to_string();
        assert_eq!(error, "the template is nested more than 64 deep (line 2 of the template)");
    }
    // Chains are no deeper than their operands.
    for template in [
        long(" ~ a"),
        long(" + a"),
        long("|string"),
        long(" and a"),
        format!("{{% if a %}}{}{{% endif %}}", "{% elif a %}\n".repeat(5_000)),
        format!("{{{{ [{}]|length }}}}", "a, ".repeat(5_000)),
    ] {
        let template = ChatTemplate::new(&("{% set a = '' %}".to_owned() + &template), Date::default()).unwrap();
        template.render(&[], &BTreeMap::new(), &BTreeMap::new()).unwrap();
    }
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

/// Python's whole numbers have no end, so transformers' prompts have all digits.
#[test]
fn whole_numbers_of_states_keep_their_digits() {
    let render = |source: &str, state: &str| {
        let state = judge_core::decision::exact_json::from_text(state).unwrap();
        let template = ChatTemplate::new(source, Date::default()).unwrap();
        template
            .render(&[], &BTreeMap::new(), &BTreeMap::from([("state".to_owned(), state)]))
            .map_err(|e| e.to_string())
    };
    let state = r#"{"a": 12345678901234567890123}"#;
    assert_eq!(
        render("{{ state | tojson }} {{ state.a + 1 }}", state).unwrap(),
        r#"{"a": 12345678901234567890123} 12345678901234567890124"#
    );
    let more = render("{{ state }}", &"9".repeat(60)).unwrap_err();
    assert!(more.contains("a whole number of more than 128 bits"), "{more}");
}

#[test]
fn a_panic_in_a_rendering_is_an_error_of_it() {
    let error = super::caught(|| panic!("index out of bounds")).unwrap_err().to_string();
    assert!(error.contains("please report it: index out of bounds"), "{error}");
}

/// The standard library's sorts panic over comparisons that are no total order, from 21 items on.
#[test]
fn values_without_an_order_are_an_error_of_sorting() {
    let render = |source: &str, items: serde_json::Value| {
        let template = ChatTemplate::new(source, Date::default()).unwrap();
        template
            .render(&[], &BTreeMap::new(), &BTreeMap::from([("items".to_owned(), items)]))
            .map_err(|e| e.to_string())
    };
    let mut seed = 59_u64;
    for len in [2, 20, 21, 40, 64, 200] {
        let mixed: Vec<serde_json::Value> = (0..len)
            .map(|n| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                if n == 0 || seed >> 63 == 0 && n > 1 { (seed >> 40).into() } else { (seed >> 40).to_string().into() }
            })
            .collect();
        let objects: Vec<_> = mixed.iter().map(|item| serde_json::json!({ "x": item })).collect();
        for (source, items) in [
            ("{{ items | sort }}", &mixed),
            ("{{ items | sort(reverse=true) }}", &mixed),
            ("{{ items | sort(attribute='x') }}", &objects),
            ("{{ items | groupby('x') | list }}", &objects),
        ] {
            let rendered = render(source, items.clone().into());
            assert!(rendered.as_ref().is_err_and(|e| e.contains("cannot order")), "{len}, {source}: {rendered:?}");
        }
        let numbers: Vec<u64> = (0..len).map(|n| n * 7919 % 1009).collect();
        let mut sorted = numbers.clone();
        sorted.sort_unstable();
        let found = render("{{ items | sort | tojson }}", numbers.into()).unwrap();
        assert_eq!(found, serde_json::to_string(&sorted).unwrap().replace(',', ", "));
    }
}
