//! Against transformers. Expected renderings and the script that made them: `scripts/templates/make_template_fixtures.py`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Date, Template, TemplateError};

/// Renders a template with nothing but these variables.
fn render<'a>(
    source: &str,
    variables: impl IntoIterator<Item = (&'a str, &'a Value)>,
) -> Result<String, TemplateError> {
    Template::new(source, Date::default())?.render(variables)
}

/// What transformers gives every chat template, with two special tokens.
fn conversation(messages: &Value) -> BTreeMap<&'static str, Value> {
    BTreeMap::from([
        ("tools", Value::Null),
        ("documents", Value::Null),
        ("add_generation_prompt", true.into()),
        ("bos_token", "<s>".into()),
        ("eos_token", "</s>".into()),
        ("messages", messages.clone()),
    ])
}

#[derive(Deserialize)]
struct Fixture {
    conversations: BTreeMap<String, Value>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    template: String,
    conversation: String,
    args: BTreeMap<String, Value>,
    text: Option<String>,
    error: Option<String>,
}

#[test]
fn every_construct_renders_as_in_transformers() {
    let fixture: Fixture = serde_json::from_str(include_str!("../tests/fixtures/templates.json")).unwrap();
    let mut wrong = Vec::new();
    for case in &fixture.cases {
        let mut variables = conversation(&fixture.conversations[&case.conversation]);
        variables.extend(case.args.iter().map(|(name, value)| (name.as_str(), value.clone())));
        let rendered = render(&case.template, variables.iter().map(|(name, value)| (*name, value)));
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
    messages: Value,
    cases: Vec<(String, Option<String>)>,
}

/// All filters, tests, functions, operators, methods, slices and statements against Jinja2 itself: the same text, or an error. Another text
/// is never made. What is refused where transformers renders is counted, so that nothing falls out of what is rendered unseen.
///
/// Cases: `scripts/templates/make_jinja_fixtures.py`.
#[test]
fn nothing_renders_otherwise_than_in_jinja() {
    let fixture: Jinja = serde_json::from_str(include_str!("../tests/fixtures/jinja.json")).unwrap();
    let variables = conversation(&fixture.messages);
    let (mut wrong, mut refused) = (Vec::new(), 0);
    for (template, expected) in &fixture.cases {
        let rendered = render(template, variables.iter().map(|(name, value)| (*name, value)));
        match (&rendered, expected) {
            (Ok(found), Some(expected)) if found == expected => {}
            (Err(_), None) => {}
            (Err(_), Some(_)) => refused += 1,
            _ => wrong.push(format!("{template}\n  expected {expected:?}\n  found    {rendered:?}")),
        }
    }
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), fixture.cases.len(), wrong.join("\n"));
    assert!(fixture.cases.len() > 13_300 && refused <= 470, "{refused} of {} are refused", fixture.cases.len());
}

/// Jinja2 makes LF of CR LF and of a lone CR in a template, and leaves those of the messages alone.
#[test]
fn line_breaks_of_a_template_are_lf_and_those_of_messages_stay() {
    let messages = json!([{ "role": "user", "content": "x\r\ny\r" }]);
    let template = "a\r\n{% if true %}\r\nb\r{{ messages[0].content }}{% endif %}\r\n";
    assert_eq!(render(template, [("messages", &messages)]).unwrap(), "a\nb\nx\r\ny\r");
}

#[test]
fn what_is_not_supported_is_named_with_its_line() {
    for (template, expected) in [
        ("a\n{{ 'x'|pprint }}", "the filter pprint is not supported in templates (line 2 of the template)"),
        ("\n\n{% include 'x' %}", "the statement include is not supported in templates (line 3 of the template)"),
        ("{{ 'x'.encode() }}", "encode, which makes bytes, is not supported in templates (line 1 of the template)"),
        ("{{\nnothing\n.x }}", "'nothing' is undefined (line 3 of the template)"),
        ("{{ [].push(1) }}", "'list object' has no attribute 'push' (line 1 of the template)"),
        ("{% filter length %}ab{% endfilter %}", "a filter block makes a text, not int (line 1 of the template)"),
        (
            "\n{% set ns = namespace(_a=1) %}",
            "a name in a namespace must not begin with an underscore, found '_a' (line 2 of the template)",
        ),
        (
            "{% set ns = namespace() %}\n{% set ns._a = 1 %}",
            "a name in a namespace must not begin with an underscore, found '_a' (line 2 of the template)",
        ),
        ("{% macro f(a, a) %}{% endmacro %}", "duplicate argument 'a' (line 1 of the template)"),
    ] {
        let rendered = render(template, []);
        assert_eq!(rendered.unwrap_err().to_string(), expected);
    }
}

/// A macro holds the scope that holds the macro: each rendering must let go of both.
#[test]
fn a_rendering_with_macros_leaves_nothing_behind() {
    let template = Template::new(
        "{% macro m() %}{{ m }}{% endmacro %}{% set text = 'x' * 1000 %}{{ text|length }}",
        Date::default(),
    );
    let template = template.unwrap();
    for _ in 0..3 {
        assert_eq!(template.render([]).unwrap(), "1000");
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
        (doubled("(1,)", "(ns.s, ns.s)") + "{{ {ns.s: 1} }}", "20000000 steps"),
        ("{{ strftime_now('%c' * 5000000) }}".to_owned(), "bytes of text"),
        ("{% set x %}{{ 'x' * 50000000 }}{% endset %}{{ x }}{{ x }}".to_owned(), "bytes of output"),
    ] {
        let compiled = Template::new(&template, Date::default()).unwrap();
        let error = compiled.render([]).unwrap_err().to_string();
        assert!(error.contains(expected), "{template}: {error}");
    }
}

/// A search from end to end took more steps than a rendering has, or more time than anyone has, at these lengths.
#[test]
fn long_texts_and_mappings_render() {
    let fields: serde_json::Map<String, Value> = (0..6_500).map(|i| (i.to_string(), i.into())).collect();
    let (fields, numbers) = (Value::from(fields), Value::from_iter(0..10_000));
    let text = "añ日".repeat(5_000);
    for (template, expected) in [
        ("{% for k in d %}{{ d[k] }}{% endfor %}", (0..6_500).map(|i| i.to_string()).collect()),
        ("{% for k in d %}{{ d.get(k) }}{% endfor %}", (0..6_500).map(|i| i.to_string()).collect()),
        ("{{ dict(**d) == d }}", "True".to_owned()),
        ("{{ (n + n)|unique|list == n }}", "True".to_owned()),
        ("{% for i in range(t|length) %}{{ t[i] }}{% endfor %}", text.clone()),
        ("{% for i in range(t|length) %}{{ t[i:i + 1] }}{% endfor %}", text.clone()),
        ("{% for i in range(t|length) %}{{ 'y' if 'x' ~ t[:3] in t[:9] }}{% endfor %}", String::new()),
    ] {
        let text = Value::from(text.as_str());
        assert_eq!(render(template, [("d", &fields), ("n", &numbers), ("t", &text)]).unwrap(), expected, "{template}");
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
        let error = Template::new(&template, Date::default()).err().unwrap().to_string();
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
        let template = Template::new(&("{% set a = '' %}".to_owned() + &template), Date::default()).unwrap();
        template.render([]).unwrap();
    }
}

#[test]
fn each_rendering_has_the_whole_budget() {
    let template = "{% set ns = namespace(s='x') %}{% for i in range(26) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}{{ ns.s|length }}";
    let compiled = Template::new(template, Date::default()).unwrap();
    for _ in 0..3 {
        assert_eq!(compiled.render([]).unwrap(), (1 << 26).to_string());
    }
}

/// Expected texts: Python's `json.dumps(..., sort_keys=True)`, and what its `str.rsplit` refuses.
#[test]
fn keys_are_sorted_and_separators_refused_as_in_python() {
    let render = |template: &str| render(template, []);
    assert_eq!(render("{{ {10: 1, 9: 2}|tojson(sort_keys=true) }}").unwrap(), r#"{"9": 2, "10": 1}"#);
    assert_eq!(
        render("{{ {'b': 1, 'a10': 2, 'a9': 3}|tojson(sort_keys=true) }}").unwrap(),
        r#"{"a10": 2, "a9": 3, "b": 1}"#
    );
    assert_eq!(render("{{ 'a,b,c'.rsplit(',', 1)|join('|') }}").unwrap(), "a,b|c");
    let error = format!("{:?}", render("{{ 'abc'.rsplit('') }}").unwrap_err());
    assert!(error.contains("empty separator"), "{error}");
}

/// Expected texts: Python's `print`. Of the last one but one the even text reads as another number.
#[test]
fn floats_halfway_between_two_texts_are_written_as_in_python() {
    for (written, expected) in [
        ("1000000000000000.25", "1000000000000000.2"),
        ("562949953421312.25", "562949953421312.2"),
        ("-2000000000000000.25", "-2000000000000000.2"),
        ("2.98023223876953125e-8", "2.9802322387695312e-08"),
        ("5.9604644775390625e-8", "5.960464477539063e-08"),
        ("1e23", "1e+23"),
    ] {
        assert_eq!(render(&format!("{{{{ {written} }}}}"), []).unwrap(), expected, "{written}");
    }
}

/// Python's whole numbers have no end, so transformers' prompts have all digits.
#[test]
fn whole_numbers_of_states_keep_their_digits() {
    let render = |source: &str, state: Value| {
        let template = Template::new(source, Date::default()).unwrap();
        let template = template.with_whole_numbers(|json| json.as_object()?.get("digits")?.as_str());
        template.render([("state", &state)]).map_err(|e| e.to_string())
    };
    let state = json!({ "a": { "digits": "12345678901234567890123" } });
    assert_eq!(
        render("{{ state | tojson }} {{ state.a + 1 }}", state).unwrap(),
        r#"{"a": 12345678901234567890123} 12345678901234567890124"#
    );
    let more = render("{{ state }}", json!({ "digits": "9".repeat(60) })).unwrap_err();
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
    let render = |source: &str, items: Value| render(source, [("items", &items)]).map_err(|e| e.to_string());
    let mut seed = 59_u64;
    for len in [2, 20, 21, 40, 64, 200] {
        let mixed: Vec<Value> = (0..len)
            .map(|n| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                if n == 0 || seed >> 63 == 0 && n > 1 { (seed >> 40).into() } else { (seed >> 40).to_string().into() }
            })
            .collect();
        let objects: Vec<_> = mixed.iter().map(|item| json!({ "x": item })).collect();
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
