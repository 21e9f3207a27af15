//! Score files: this project's own and those of LAGER's program.

use std::fs;
use std::path::{Path, PathBuf};

use judge_core::{ItemId, Layer, Reason, Unscored, lager::LayerTable};
use judge_data::{
    Error, Extra, JsonlWriter, JudgedScore, LabelTable, LagerResult, LagerScores, Rows, ScoreFile, ScoreFormat,
    ScoreOutcome, ScoreRow, ScoredItem, read_lager_results, write_lager_results,
};
use proptest::prelude::*;

use crate::files::place;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

fn is_wrong(error: &Error, field: &str) -> bool {
    matches!(error, Error::WrongType { column, .. } if column == field)
}

fn lager_results(path: &Path) -> Vec<LagerResult> {
    read_lager_results(path).unwrap().collect::<Result<_, _>>().unwrap()
}

/// Both fixtures are made by `scripts/data/make_reference_results.py`.
#[test]
fn lager_results_come_back_byte_for_byte() {
    let read = lager_results(&fixture("lager_result.json"));
    assert_eq!(read.iter().map(|r| r.idx).collect::<Vec<_>>(), [0, 1, 4]);
    assert_eq!(read[2].prompt, "Bewerte dies: größer → 😀\u{7f}");
    assert_eq!((read[1].human_score, &read[1].scores), (7.0 / 3.0, &None));
    let (_folder, path) = place("copy.json");
    write_lager_results(&path, read.into_iter().map(Ok), false).unwrap();
    assert_eq!(fs::read_to_string(path).unwrap(), fs::read_to_string(fixture("lager_result.json")).unwrap());
}

#[test]
fn rows_in_lexicographic_order_are_the_same_rows() {
    assert_eq!(lager_results(&fixture("lager_result_sorted.json")), lager_results(&fixture("lager_result.json")));
}

/// The script computes the scores from the logits in f64, as this crate does.
#[test]
fn scores_follow_from_the_logits() {
    let close = |a: f64, b: f64| assert!((a - b).abs() <= 1e-14 * b.abs(), "{a} {b}");
    for scores in lager_results(&fixture("lager_result.json")).into_iter().filter_map(|r| r.scores) {
        assert_eq!((scores.layers.len(), scores.layers[0].logits.len()), (12, 5));
        let computed = LagerScores::from_table(&scores.table().unwrap()).unwrap();
        assert_eq!(computed.direct_score, scores.direct_score);
        close(computed.weighted_direct_score, scores.weighted_direct_score);
        close(computed.weighted_score, scores.weighted_score);
        for (a, b) in computed.layers.iter().zip(&scores.layers) {
            assert_eq!((a.direct_score, &a.logits), (b.direct_score, &b.logits));
            close(a.weighted_score, b.weighted_score);
            a.probs.iter().zip(&b.probs).for_each(|(&a, &b)| close(a, b));
        }
    }
}

#[test]
fn one_reader_takes_both_kinds() {
    let theirs = ScoreFile::open(fixture("lager_result.json")).unwrap();
    assert_eq!(theirs.format(), ScoreFormat::Lager);
    let theirs: Vec<ScoredItem> = theirs.collect::<Result<_, _>>().unwrap();
    assert_eq!(theirs[1].table.as_ref().unwrap_err().reason, Reason::NoLabel);

    let (_folder, path) = place("ours.jsonl");
    let mut writer = JsonlWriter::create(&path).unwrap();
    for item in &theirs {
        let outcome = match &item.table {
            Err(unscored) => ScoreOutcome::Unscored(unscored.clone()),
            Ok(table) => {
                let (labels, table) = (item.labels.clone(), table.clone());
                ScoreOutcome::Read(LabelTable { labels, table, step: 3, completion: "score: 4".into() }, None)
            }
        };
        let human = item.human.into_iter().map(Some).collect();
        writer.write(&ScoreRow { id: item.id.clone(), human, outcome, extra: Extra::new() }).unwrap();
    }
    writer.finish().unwrap();
    let ours = ScoreFile::open(&path).unwrap();
    assert_eq!(ours.format(), ScoreFormat::Rows);
    for (ours, theirs) in ours.map(Result::unwrap).zip(&theirs) {
        assert_eq!((&ours.id, ours.human, &ours.labels), (&theirs.id, theirs.human, &theirs.labels));
        match (&ours.table, &theirs.table) {
            // 1.5e-7 is not a number of f32; all others in the fixture are.
            (Ok(a), Ok(b)) => assert!(a.logits().iter().zip(b.logits()).all(|(a, b)| (a - b).abs() < 1e-13)),
            (a, b) => assert_eq!(a, b),
        }
    }
}

#[test]
fn rows_have_the_documented_form() {
    let mut extra = Extra::new();
    extra.set("topic", "sums").unwrap();
    let logits = [0.1_f32, -2.0, 1e-8, 16.125].map(f64::from).to_vec();
    let table = LayerTable::new(vec![Layer(0), Layer(5)], 2, logits).unwrap();
    let read = LabelTable { labels: vec!["1".into(), "2".into()], table, step: 2, completion: "4".into() };
    let judged = JudgedScore { score: 1.75, probabilities: Some(vec![0.25, 0.75]), label_mass: Some(0.5) };
    let outcome = ScoreOutcome::Read(read, Some(judged));
    let read = ScoreRow { id: ItemId::from("a"), human: vec![Some(3.0), None, Some(4.5)], outcome, extra };
    assert_eq!(
        serde_json::to_string(&read).unwrap(),
        concat!(
            r#"{"id":"a","human":[3.0,null,4.5],"score":1.75,"probabilities":[0.25,0.75],"label_mass":0.5,"labels":["1","2"],"layers":[0,5],"#,
            r#""logits":[[0.1,-2.0],[1e-8,16.125]],"step":2,"completion":"4","topic":"sums"}"#
        )
    );
    let outcome = ScoreOutcome::Unscored(Unscored::new(Reason::TooLong, "d"));
    let unscored = ScoreRow { id: ItemId::from(7_u64), human: vec![Some(2.5)], outcome, extra: Extra::new() };
    assert_eq!(
        serde_json::to_string(&unscored).unwrap(),
        r#"{"id":7,"human":2.5,"unscored":{"reason":"too_long","detail":"d"}}"#
    );
}

#[test]
fn numbers_that_json_cannot_hold_are_refused() {
    let row = |logit: f64, human: f64| {
        let table = LayerTable::new(vec![Layer(0)], 1, vec![logit]).unwrap();
        let read = LabelTable { labels: vec!["1".into()], table, step: 0, completion: String::new() };
        let outcome = ScoreOutcome::Read(read, None);
        ScoreRow { id: ItemId::from(0_u64), human: vec![Some(human)], outcome, extra: Extra::new() }
    };
    assert!(serde_json::to_string(&row(1.0, 1.0)).is_ok());
    assert!(serde_json::to_string(&row(1e60, 1.0)).is_err());
    assert!(serde_json::to_string(&row(1.0, f64::INFINITY)).is_err());
    let mut taken = row(1.0, 1.0);
    taken.extra.set("step", &1).unwrap();
    assert!(serde_json::to_string(&taken).is_err());

    let (_folder, path) = place("x.json");
    let mut results = lager_results(&fixture("lager_result.json"));
    results[2].scores.as_mut().unwrap().layers[1].logits[0] = f64::NAN;
    let error = write_lager_results(&path, results.into_iter().map(Ok), false).unwrap_err();
    assert!(matches!(error, Error::NonFinite { row: 2, .. }), "{error}");
    assert!(!path.exists());
}

fn score_error(text: &str) -> Error {
    let (_folder, path) = place("in");
    fs::write(&path, text).unwrap();
    match ScoreFile::open(&path) {
        Err(error) => error,
        Ok(file) => file.collect::<Result<Vec<_>, _>>().unwrap_err(),
    }
}

#[test]
fn bad_score_rows_are_typed_errors() {
    let row = |layers: &str, labels: &str, logits: &str| {
        score_error(&format!(
            r#"{{"id":1,"layers":{layers},"labels":{labels},"logits":{logits},"step":0,"completion":""}}"#
        ))
    };
    let two = r#"["1","2"]"#;
    assert!(matches!(row("[0,1]", two, "[[1,2]]"), Error::Ragged { expected: 2, found: 1, .. }));
    assert!(matches!(row("[0,1]", two, "[[1,2],[1]]"), Error::Ragged { expected: 2, found: 1, .. }));
    assert!(is_wrong(&row("[0]", two, "[[1,null]]"), "logits"));
    assert!(is_wrong(&row("[0]", two, "[[1,1e60]]"), "logits"));
    assert!(is_wrong(&row("[-1]", two, "[[1,2]]"), "layers"));
    assert!(matches!(row("[1,0]", two, "[[1,2],[1,2]]"), Error::Table { .. }));
    assert!(matches!(row("[0]", "[]", "[[]]"), Error::Table { .. }));
    let reason = score_error(r#"{"id":1,"unscored":{"reason":"bored","detail":""}}"#);
    assert!(is_wrong(&reason, "unscored"), "{reason}");
    assert!(matches!(
        score_error(r#"{"id":1,"logits":[],"unscored":{"reason":"no_label","detail":""}}"#),
        Error::BothFields { .. }
    ));
    assert!(matches!(score_error(r#"{"id":1}"#), Error::UnknownFormat { .. }));
    assert!(matches!(score_error("[]"), Error::NoRows { .. }));
    let unscored = r#"{"id":1,"unscored":{"reason":"no_label","detail":""}}"#;
    assert!(matches!(score_error(&format!("{unscored}\n{unscored}")), Error::DuplicateId { first_line: 1, .. }));
}

/// docs/files.md: what people gave is not judged, so an odd grade costs the grade; nor is the judge's own score read for its table.
#[test]
fn an_odd_grade_costs_the_grade_and_not_the_file() {
    let (_folder, path) = place("odd.jsonl");
    let item = |row: &str| -> ScoredItem {
        fs::write(&path, row).unwrap();
        ScoreFile::open(&path).unwrap().next().unwrap().unwrap()
    };
    let numbers = "expected \"human\" to be a number, or a list of numbers and nulls, found ";
    let table = r#""layers":[0],"labels":["1","2"],"logits":[[1,2]],"step":0,"completion":"4""#;
    for (human, mean, odd) in [
        ("\"4\"", Some(4.0), None),
        ("true", Some(1.0), None),
        ("\"N/A\"", None, Some("string \"N/A\"")),
        ("{}", None, Some("object {}")),
        ("1e400", None, Some("number 1e400")),
        ("[null,\"N/A\"]", None, Some("string \"N/A\"")),
        ("[3,\"x\",\"4\"]", Some(3.5), Some("string \"x\"")),
        ("[]", None, None),
    ] {
        for score in ["1.5", "\"N/A\"", "1e400"] {
            let found = item(&format!(r#"{{"id":1,"human":{human},"score":{score},{table}}}"#));
            assert!(found.table.is_ok() && found.human == mean, "{human}: {found:?}");
            assert_eq!(found.no_grade, odd.map(|odd| format!("{numbers}{odd}")));
        }
    }
    let preferences = "expected \"human\" to be \"A\", \"B\" or \"tie\", or a list of them and nulls, found ";
    let orders = r#""orders":[{"order":"given","layers":[0],"logits":{"A":[1],"B":[2]}}]"#;
    for (human, mean, odd) in [
        ("\"C\"", None, Some("string \"C\"")),
        ("\"inconsistent\"", None, Some("string \"inconsistent\"")),
        ("[\"A\",{},\"tie\"]", Some(0.75), Some("object {}")),
        ("\"B\"", Some(0.0), None),
    ] {
        let found = item(&format!(r#"{{"id":1,"human":{human},{orders}}}"#));
        assert!(found.table.is_ok() && found.human == mean, "{human}: {found:?}");
        assert_eq!(found.no_grade, odd.map(|odd| format!("{preferences}{odd}")));
    }
}

/// A pair is an item, with the mean of its orders in the letters of the pair as it is given: what the place adds cancels.
#[test]
fn pairs_are_items_with_preferences_as_scores_and_the_mean_of_their_orders() {
    let (_folder, path) = place("pairs.jsonl");
    let order = |order: &str, first: &str| {
        format!(r#"{{"order":"{order}","verdict":"A","layers":[0,1],"logits":{{"A":{first},"B":[3,4],"tie":[5,6]}}}}"#)
    };
    let both = format!("[{},{}]", order("given", "[1,2]"), order("swapped", "[7,8]"));
    let unscored = r#"{"id":"u","human":"B","unscored":{"reason":"too_long","detail":""},"orders":[]}"#;
    fs::write(&path, format!("{{\"id\":3,\"human\":[\"A\",\"tie\",null],\"orders\":{both}}}\n{unscored}\n")).unwrap();
    let file = ScoreFile::open(&path).unwrap();
    assert_eq!(file.format(), ScoreFormat::Pairs);
    let items: Vec<ScoredItem> = file.collect::<Result<_, _>>().unwrap();
    let table = LayerTable::from_rows(&[vec![3.0, 5.0, 4.0], vec![4.0, 6.0, 5.0]]).unwrap();
    assert_eq!((&items[0].id, items[0].human, &items[0].table), (&ItemId::from(3_u64), Some(0.75), &Ok(table)));
    assert_eq!(items[0].labels, ["0", "0.5", "1"]);
    assert_eq!(items[1].table.as_ref().unwrap_err().reason, Reason::TooLong);
    assert_eq!(items.len(), 2);

    let row = |human: &str, orders: &str| score_error(&format!(r#"{{"id":3,"human":{human},"orders":{orders}}}"#));
    assert!(is_wrong(&row("\"A\"", r#"[{"order":"given","verdict":"A"}]"#), "orders"));
    assert!(is_wrong(&row("\"A\"", "[]"), "orders"));
    let without_tie = r#"{"order":"swapped","layers":[0,1],"logits":{"A":[1,2],"B":[3,4]}}"#;
    let unlike = row("\"A\"", &format!("[{},{without_tie}]", order("given", "[1,2]")));
    assert!(unlike.to_string().contains("the same layers and labels in each"), "{unlike}");
    let ragged = format!("[{}]", order("given", "[1]"));
    assert!(matches!(row("\"A\"", &ragged), Error::Ragged { expected: 2, found: 1, .. }));
    let both_kinds =
        format!(r#"{{"id":3,"orders":{both},"logits":[[1]],"layers":[0],"labels":["1"],"step":0,"completion":""}}"#);
    assert!(
        matches!(score_error(&both_kinds), Error::UnknownFormat { candidates, .. } if candidates == ["rows", "pairs"])
    );
    let infinite = format!("[{}]", order("given", "[1,1e60]"));
    assert!(matches!(row("\"A\"", &infinite), Error::WrongType { .. } | Error::Table { .. }));
}

#[test]
fn bad_lager_tables_are_typed_errors() {
    let element = |df: &str| {
        score_error(&format!(
            r#"[{{"idx":0,"prompt":"p","human_score":3,"direct_socre":1,"weighted_socre":1.5,"weighted_direct_socre":1.0,"df":{df}}}]"#
        ))
    };
    let table = |layer_n: &str, scores: &str, probs: &str, logits: &str| {
        element(&format!(
            r#"{{"layer_n":{layer_n},"direct_score":{scores},"weighted_score":{scores},"probs":{probs},"logits":{logits}}}"#
        ))
    };
    let (numbers, lists) = (r#"{"0":0,"1":1}"#, r#"{"0":[1,2],"1":[1,2]}"#);
    assert!(matches!(table(numbers, r#"{"0":0}"#, lists, lists), Error::Ragged { expected: 2, found: 1, .. }));
    assert!(matches!(table(numbers, numbers, lists, r#"{"0":[1,2],"2":[1,2]}"#), Error::Ragged { .. }));
    assert!(matches!(
        table(numbers, numbers, lists, r#"{"0":[1,2],"1":[1]}"#),
        Error::Ragged { expected: 2, found: 1, .. }
    ));
    assert!(matches!(
        table(numbers, numbers, r#"{"0":[1,2],"1":[1,2,3]}"#, lists),
        Error::Ragged { expected: 2, found: 3, .. }
    ));
    assert!(matches!(table(numbers, numbers, lists, r#"{"0":[1],"1":[1]}"#), Error::Ragged { .. }));
    assert!(is_wrong(&table(r#"{"0":0,"1":2}"#, numbers, lists, lists), "layer_n"));
    assert!(is_wrong(&table(r#"{"0":0,"1":0}"#, numbers, lists, lists), "layer_n"));
    assert!(is_wrong(&table("{}", "{}", "{}", "{}"), "layer_n"));
    assert!(is_wrong(&table(r#"{"a":0}"#, numbers, lists, lists), "layer_n"));
    assert!(is_wrong(&table(numbers, numbers, lists, r#"{"0":[1,"2"],"1":[1,2]}"#), "logits"));
    assert!(is_wrong(&element("[]"), "df"));
    assert!(
        matches!(element(r#"{"layer_n":{"0":-1}}"#), Error::MissingField { names, .. } if names == ["direct_score"])
    );
    assert!(matches!(
        score_error(r#"[{"idx":0,"direct_socre":1}]"#),
        Error::MissingField { names, .. } if names == ["weighted_socre"]
    ));
}

proptest! {
    #[test]
    fn score_rows_keep_every_bit(
        logits in prop::collection::vec(any::<f32>().prop_filter("finite", |v| v.is_finite()), 6),
        // A grade has no sign of zero.
        human in prop::collection::vec(
            prop::option::of(any::<f64>().prop_filter("finite", |v| v.is_finite()).prop_map(|v| v + 0.0)), 0..4)
            .prop_filter("of somebody, or none", |human| human.is_empty() || human.iter().any(Option::is_some)),
        completion in any::<String>(),
        step in 0..1000_usize,
    ) {
        let table = LayerTable::new(vec![Layer(1), Layer(4)], 3, logits.into_iter().map(f64::from).collect()).unwrap();
        let table = LabelTable { labels: vec!["a".into(), "b".into(), "c".into()], table, step, completion };
        let row = ScoreRow { id: ItemId::from("x"), human, outcome: ScoreOutcome::Read(table, None), extra: Extra::new() };
        let text = serde_json::to_string(&row).unwrap();
        let read = Rows::new(text.as_bytes(), "x").unwrap().next().unwrap().unwrap();
        let read = ScoreRow::from_row(read).unwrap();
        prop_assert_eq!(format!("{read:?}"), format!("{row:?}")); // tells -0.0 from 0.0
    }

    #[test]
    fn lager_results_keep_every_bit(
        logits in prop::collection::vec(-1e6..1e6_f64, 39),
        human_score in 1.0..5.0_f64,
        idx: u64,
        prompt in any::<String>(),
    ) {
        let rows: Vec<Vec<f64>> = logits.chunks(3).map(<[f64]>::to_vec).collect();
        let scores = LagerScores::from_table(&LayerTable::from_rows(&rows).unwrap()).unwrap();
        let written = vec![
            LagerResult { idx, prompt: prompt.clone(), human_score, scores: Some(scores) },
            LagerResult { idx: idx ^ 1, prompt, human_score, scores: None },
        ];
        let (_folder, path) = place("x.json");
        write_lager_results(&path, written.iter().cloned().map(Ok), true).unwrap();
        prop_assert_eq!(lager_results(&path), written);
    }
}
