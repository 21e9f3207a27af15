//! Whatever a row holds besides what is judged comes back as it was: from every form of input, through every type of row, killed and
//! resumed.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use judge_core::testing::ScriptedBackbone;
use judge_core::{
    Backbone, Scale,
    combine::{OrderPolicy, Swapped},
    lager::{LagerJudge, LagerSettings},
    prompted::{PromptFamily, WrittenJudge},
    runner::RunEvent,
};
use judge_data::{
    Carry, Dataset, DatasetFormat, DatasetOptions, Extra, Fate, LabelRow, Numbered, Opened, PairOrders, PairRow,
    Program, Resolved, Rows, RunPlan, SingleRow, score_row,
};
use proptest::prelude::*;

/// A JSON value as text: numbers with their digits, strings with their escapes.
#[derive(Clone, Debug)]
enum Json {
    Leaf(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    /// The text with `space` wherever white space may stand.
    fn text(&self, space: &str) -> String {
        let joined = |parts: Vec<String>| parts.join(&format!("{space},{space}"));
        match self {
            Self::Leaf(text) => text.clone(),
            Self::List(items) => {
                format!("[{space}{}{space}]", joined(items.iter().map(|item| item.text(space)).collect()))
            }
            Self::Object(fields) => {
                let field = |(key, value): &(String, Self)| format!("{key}{space}:{space}{}", value.text(space));
                format!("{{{space}{}{space}}}", joined(fields.iter().map(field).collect()))
            }
        }
    }
}

fn json() -> impl Strategy<Value = Json> {
    let written = ["null", "true", "-0", "1.50", "1e+400", "123456789012345678901234567890", "0.1000000000000000055"];
    let escaped = [r#""\u00e9\/ \ud83d\ude00""#, r#""\ud83d""#, r#""\n\t\\ \" [ {""#, "\"\u{2028}  é\"", r#""""#];
    let leaf = prop_oneof![
        prop::sample::select(written.to_vec()).prop_map(str::to_owned),
        prop::sample::select(escaped.to_vec()).prop_map(str::to_owned),
        any::<i64>().prop_map(|number| number.to_string()),
        "[\\PC \t\n\"\\\\{}\\[\\],:]{0,12}".prop_map(|text| serde_json::to_string(&text).unwrap()),
    ];
    leaf.prop_map(Json::Leaf).prop_recursive(3, 12, 4, |inner| {
        let key = "[\\PC \n\"\\\\:]{0,4}".prop_map(|text| serde_json::to_string(&text).unwrap());
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Json::List),
            prop::collection::vec((key, inner), 0..4).prop_map(Json::Object),
        ]
    })
}

/// How a file holds its rows.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Form {
    Lines,
    Array,
    /// One object alone, over several lines.
    Object,
}

/// What a program makes of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Score,
    Single,
    Pair,
    Label,
    /// The row itself with a field more.
    Row,
}

const KINDS: [Kind; 5] = [Kind::Score, Kind::Single, Kind::Pair, Kind::Label, Kind::Row];

/// A file of rows that carry these values.
fn input(path: &Path, form: Form, values: &[Json], space: &str) {
    let text = |text: &str| Json::Leaf(serde_json::to_string(text).unwrap());
    let row = |(number, value): (usize, &Json)| {
        let own = [("instruction", "1 + 1?"), ("response", "2"), ("response_a", "2"), ("response_b", "3")];
        let mut fields = vec![("\"id\"".to_owned(), Json::Leaf(number.to_string()))];
        fields.extend(own.map(|(name, value)| (format!("{name:?}"), text(value))));
        fields.push(("\"kept\"".to_owned(), value.clone()));
        Json::Object(fields)
    };
    let rows: Vec<Json> = values.iter().enumerate().map(row).collect();
    let text = match form {
        Form::Lines => {
            let space = space.replace(['\r', '\n'], "");
            rows.iter().map(|row| row.text(&space) + "\r\n").collect()
        }
        Form::Array => Json::List(rows).text(space),
        Form::Object => rows[0].text(space),
    };
    fs::write(path, text).unwrap();
}

/// Judges the rows of a file, or as many as a killed process has; `true` once all are in place.
fn run(kind: Kind, input: &Path, output: &Path, until: usize) -> bool {
    let format = if kind == Kind::Pair { DatasetFormat::Pairs } else { DatasetFormat::Graded };
    let options = DatasetOptions { format: Some(format), ..DatasetOptions::default() };
    let rows = Rows::open(input).unwrap().count();
    let plan = RunPlan::new(output, rows, Program::new("test", "1"));
    let Opened::Ready(start) = plan.open().unwrap() else { panic!("it is complete") };
    let records = Dataset::open(input, &options).unwrap();
    let mut seen = 0;
    // What is done is pushed before the process dies.
    let mut next = || {
        seen += 1;
        if seen >= until { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let model = ScriptedBackbone::new(1).with_reply(|_| "Rating: [[5]] [[A]] {\"score\": 4}".to_owned());
    let written = |family: &str| WrittenJudge::new(PromptFamily::built_in(family).unwrap());
    let carry = Carry::All;
    let mut observe = |_: &RunEvent<Numbered>| next();
    let (resolved, items) = (Resolved::default(), Numbered::all(records));
    let result = match kind {
        Kind::Score => {
            let judge = LagerJudge::new(LagerSettings::prompt_end(Scale::integers(1, 5).unwrap()), &model).unwrap();
            let row = |result| score_row(&judge, result, &model.info().layers(), &carry);
            start.judge(resolved, &model, &[&judge], items, row, &mut observe)
        }
        Kind::Single => {
            let row = |result| SingleRow::new(result, &carry);
            start.judge(resolved, &model, &[&written("single")], items, row, &mut observe)
        }
        Kind::Pair => {
            let judge = written("pair");
            let both = Swapped::new(&judge, OrderPolicy::Average);
            let orders = PairOrders::Both(&both);
            let row = |result| PairRow::new(&orders, result, None, &carry);
            start.judge(resolved, &model, &[&orders], items, row, &mut observe)
        }
        Kind::Label => {
            let row = |result| LabelRow::new(result, "fluency", &carry);
            start.judge(resolved, &model, &[&written("single-json")], items, row, &mut observe)
        }
        Kind::Row => {
            let mut run = start.begin(resolved).unwrap();
            for (place, row) in Rows::open(input).unwrap().enumerate() {
                let mut row: Extra = row.unwrap().into_extra(&[]);
                row.set("calibrated", &[1.0]).unwrap();
                if !run.is_done(place) {
                    run.push(place, &row, Fate::SCORED).unwrap();
                    if next().is_break() {
                        return false;
                    }
                }
            }
            run.finish().unwrap();
            return true;
        }
    };
    !result.unwrap().summary.cancelled
}

fn comes_back(kind: Kind, form: Form, values: &[Json], space: &str, until: usize) {
    let values = if form == Form::Object { &values[..1] } else { values };
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("in.json"), folder.path().join("out.jsonl"));
    input(&from, form, values, space);
    if !run(kind, &from, &to, until) {
        assert!(run(kind, &from, &to, usize::MAX), "{kind:?} {form:?}: every row is written");
    }
    let text = fs::read_to_string(&to).unwrap();
    assert_eq!(text.lines().count(), values.len(), "{kind:?} {form:?}: {text}");
    for (row, value) in Rows::open(&to).unwrap().zip(values) {
        let row = row.unwrap().into_extra(&[]);
        assert_eq!(row.text("kept"), Some(&*value.text("")), "{kind:?} {form:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_value_comes_back(
        values in prop::collection::vec(json(), 1..6),
        form in prop::sample::select(vec![Form::Lines, Form::Array, Form::Object]),
        space in "[ \t\r\n]{0,3}",
        until in 1_usize..6,
    ) {
        for kind in KINDS {
            comes_back(kind, form, &values, &space, until);
        }
    }
}

/// What `json.dump(rows, f, indent=2)` writes.
#[test]
fn an_indented_array_comes_back() {
    let value = Json::Object(vec![("\"tags\"".to_owned(), Json::List(vec![Json::Leaf("1.50".to_owned())]))]);
    for kind in KINDS {
        comes_back(kind, Form::Array, &vec![value.clone(); 3], "\n  ", 2);
    }
}
