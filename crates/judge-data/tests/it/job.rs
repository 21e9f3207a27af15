//! One file judged by one call: checked, resumed, recognised.

use std::fs;
use std::ops::ControlFlow;

use judge_core::testing::ScriptedBackbone;
use judge_core::{
    Backbone, Fields, ItemId, ItemResult, Judge, Prompt, Scale, Unscored, Want,
    lager::{LagerJudge, LagerSettings},
};
use judge_data::{
    Carry, Error, Fate, Input, InputFile, Job, MadeBy, Missing, Numbered, Program, Records, Resolved, RowItem,
    RunResult, SingleRow, Source, load, record_path,
};
use serde_json::Value;

fn judge(model: &ScriptedBackbone, points: i32) -> LagerJudge {
    let scale = Scale::integers(1, points).unwrap();
    LagerJudge::new(LagerSettings::prompt_end(scale), model).unwrap()
}

/// The progress of a job that must judge no row.
fn none(_: usize, _: usize) {
    panic!("a row was judged");
}

fn model() -> ScriptedBackbone {
    ScriptedBackbone::new(3)
        .with_logits(|before, _, label| if before.contains("four") == (label == '5') { 2.0 } else { 0.0 })
}

const ROWS: &str = r#"{"id": "a", "instruction": "2 + 2?", "response": "four", "human": 5, "topic": "sums"}
{"id": "b", "instruction": "2 + 2?", "response": null}
{"id": "c", "instruction": "2 + 2?", "response": "a fish"}
"#;

#[test]
fn a_file_is_judged_once_and_recognised() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("rows.jsonl"), folder.path().join("scores.jsonl"));
    fs::write(&input, ROWS).unwrap();
    let model = model();
    let job = Job::open(&input, &output, Program::new("test", "1")).unwrap();
    let mut seen = Vec::new();
    let counts = job.judge(&model, &judge(&model, 5), |done, rows| seen.push((done, rows))).unwrap();
    assert_eq!((counts.scored, counts.graded, counts.rows()), (2, 1, 3));
    assert_eq!(seen, [(1, 3), (2, 3), (3, 3)]);
    let text = fs::read_to_string(&output).unwrap();
    let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&rows[0]["topic"], &rows[1]["unscored"]["reason"]), (&"sums".into(), &"missing".into()));
    assert!(rows[0]["score"].as_f64() > rows[2]["score"].as_f64());

    // Ended after a row, as by a signal: the others are judged later, to the same bytes.
    let broken = Job { output: folder.path().join("broken.jsonl"), ..job.clone() };
    let part = broken.judge(&model, &judge(&model, 5), |_, _| ControlFlow::Break(())).unwrap();
    assert!(part.rows() < 3 && !broken.output.exists(), "{part:?}");
    assert_eq!(broken.judge(&model, &judge(&model, 5), |_, _| {}).unwrap(), counts);
    assert_eq!(fs::read_to_string(&broken.output).unwrap(), text);

    // Again: nothing is computed. Another judge: refused, unless asked for.
    let again = job.judge(&model, &judge(&model, 5), none).unwrap();
    assert_eq!(again, counts);
    let other = job.judge(&model, &judge(&model, 4), none);
    assert!(matches!(other, Err(Error::OutputExists { .. })), "{other:?}");
    let mut overwriting = job.clone();
    overwriting.write.overwrite = true;
    overwriting.carry = Carry::Only(Vec::new());
    overwriting.judge(&model, &judge(&model, 4), |_, _| {}).unwrap();
    assert!(!fs::read_to_string(&output).unwrap().contains("sums"));
    let record: judge_data::RunRecord = load(record_path(&output)).unwrap();
    assert_eq!(record.program.name, "test");

    // What is carried is told as it is chosen; an earlier version told the same in words of Rust.
    let record = fs::read_to_string(record_path(&output)).unwrap();
    let mut of_record = |carry: &str| {
        let rewritten = record.replace("\"carry\": \"none\"", &format!("\"carry\": \"{carry}\""));
        assert_ne!(rewritten, record);
        fs::write(record_path(&output), rewritten).unwrap();
        overwriting.write.overwrite = false;
        overwriting.judge(&model, &judge(&model, 4), none)
    };
    assert_eq!(of_record("Only([])").unwrap().rows(), 3);
    let refused = of_record("all").unwrap_err().to_string();
    assert!(refused.contains("carry was \"all\", is \"none\""), "{refused}");
}

/// One field is shortened and the row says so; the prompt around it is whole, and another cut is another judge's.
#[test]
fn a_field_is_cut_and_its_row_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("rows.jsonl"), folder.path().join("scores.jsonl"));
    fs::write(&input, format!("{ROWS}{{\"id\": \"d\", \"instruction\": \"2?\", \"response\": \"no no no four\"}}\n"))
        .unwrap();
    let (model, program) = (model(), Program::new("test", "1"));
    let job = Job { cuts: vec!["response=4:tail".parse().unwrap()], ..Job::open(&input, &output, program).unwrap() };
    let counts = job.judge(&model, &judge(&model, 5), |_, _| {}).unwrap();
    assert_eq!((counts.scored, counts.rows()), (3, 4));
    let text = fs::read_to_string(&output).unwrap();
    let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        (rows[0].get("cut"), &rows[2]["cut"], &rows[3]["cut"]["response"]),
        (None, &serde_json::json!({"response": 6}), &13.into())
    );
    assert_eq!((&rows[3]["score"], rows[3]["score"] == rows[2]["score"]), (&rows[0]["score"], false));
    // Whole, and cut elsewhere: other judges.
    let whole = Job { cuts: Vec::new(), ..job.clone() };
    assert!(matches!(whole.judge(&model, &judge(&model, 5), none), Err(Error::OutputExists { .. })));
    // Nothing to cut, a field that is cut twice, and one that the note would replace.
    let wrong = |cuts: &str, rows: &str| {
        fs::write(&input, rows).unwrap();
        let job = Job {
            cuts: cuts.split(' ').map(|cut| cut.parse().unwrap()).collect(),
            output: folder.path().join("o"),
            ..Job::open(&input, &output, Program::new("test", "1")).unwrap()
        };
        job.judge(&model, &judge(&model, 5), none).unwrap_err()
    };
    let nothing = wrong("response=4 rubrik=4", ROWS).to_string();
    let said = r#"3 were read, and the fields of the first that can be cut are ["instruction", "response", "topic"]"#;
    assert!(nothing.ends_with(said), "{nothing}");
    for twice in ["output=4 output=5:tail", "response=4 output=5"] {
        let refused = wrong(twice, &ROWS.replace("response", "output"));
        assert!(matches!(&refused, Error::CutTwice { field, .. } if field == "response"), "{refused}");
    }
    let own = "{\"id\": 1, \"instruction\": \"a\", \"response\": \"b\", \"cut\": 1}";
    assert!(matches!(wrong("response=4", own), Error::FieldClash { .. }));
    // What is not carried otherwise is.
    let few = Job { carry: Carry::Only(Vec::new()), output: folder.path().join("few.jsonl"), ..job };
    fs::write(&input, ROWS).unwrap();
    let few = Job { source: Records::new(judge_data::Input::open(&input).unwrap(), few.source.options.clone()), ..few };
    few.judge(&model, &judge(&model, 5), |_, _| {}).unwrap();
    let text = fs::read_to_string(&few.output).unwrap();
    assert!(text.contains("\"cut\":{\"response\":6}") && !text.contains("sums"), "{text}");
}

/// A field that is named is carried also where the judge reads it, as the file has it.
#[test]
fn fields_that_are_named_are_carried_though_they_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let (input, model) = (folder.path().join("rows.jsonl"), model());
    fs::write(&input, ROWS).unwrap();
    let rows = |carry: &str, output: &str| -> Result<Vec<Value>, Error> {
        let job = Job::open(&input, folder.path().join(output), Program::new("test", "1")).unwrap();
        let job = Job { carry: carry.parse().unwrap(), cuts: vec!["response=4:tail".parse().unwrap()], ..job };
        job.judge(&model, &judge(&model, 5), |_, _| {})?;
        let text = fs::read_to_string(&job.output).unwrap();
        Ok(text.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
    };
    let named = rows("id,human,response", "named.jsonl").unwrap();
    assert_eq!((&named[0]["response"], &named[2]["response"]), (&"four".into(), &"a fish".into()));
    assert_eq!((&named[0]["id"], &named[0]["human"], named[0].get("topic")), (&"a".into(), &5.0.into(), None));
    assert_eq!((named[1].get("response"), named[1].get("instruction")), (Some(&Value::Null), None));
    let all = rows("all, instruction", "all.jsonl").unwrap();
    assert_eq!((&all[0]["topic"], &all[2]["instruction"]), (&"sums".into(), &"2 + 2?".into()));
    assert_eq!(all[0].get("response"), None);
    // What cannot be cut where it is read is not cut where it is carried either.
    fs::write(&input, "{\"id\": 1, \"prompt\": \"2 + 2?\", \"chosen\": \"four\", \"rejected\": \"a fish\"}\n").unwrap();
    let job = Job::open(&input, folder.path().join("cut.jsonl"), Program::new("test", "1")).unwrap();
    let job = Job { carry: "all,chosen".parse().unwrap(), cuts: vec!["chosen=1".parse().unwrap()], ..job };
    let found = job.judge(&model, &judge(&model, 5), none);
    assert!(matches!(found, Err(Error::NothingToCut { .. })), "{found:?}");
    fs::write(&input, ROWS).unwrap();
    // A name that is known by its field alone is no column.
    assert!(matches!(rows("prompt", "none.jsonl"), Err(Error::NothingToCarry { field, .. }) if field == "prompt"));
}

#[test]
fn what_is_wrong_with_the_file_is_said_before_any_row_is_judged() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("rows.jsonl"), folder.path().join("scores.jsonl"));
    let model = model();
    let judge = judge(&model, 5);
    let job = || Job::open(&input, &output, Program::new("test", "1")).unwrap();
    fs::write(&input, format!("{ROWS}{{\"id\": \"a\", \"instruction\": \"x\", \"response\": \"y\"}}\n")).unwrap();
    let error = job().judge(&model, &judge, none).unwrap_err().to_string();
    assert!(error.contains("line 4"), "{error}");
    fs::write(&input, ROWS).unwrap();
    fs::write(&output, "a file of mine\n").unwrap();
    assert!(job().judge(&model, &judge, none).is_err());
    assert_eq!(fs::read_to_string(&output).unwrap(), "a file of mine\n");
}

/// Has a judge make the rows that are missing.
fn make(
    missing: Missing<'_, Records>,
    model: &ScriptedBackbone,
    judge: &LagerJudge,
    seen: &mut usize,
) -> Result<RunResult, Error> {
    let resolved = Resolved { model: Some(model.info().clone()), ..Resolved::default() };
    let judges: [&dyn Judge<Numbered>; 1] = [judge];
    let row = |result: ItemResult<Numbered>| SingleRow::new(result, &Carry::All);
    missing.judge(resolved, model, &judges, row, &mut |_: &judge_core::runner::RunEvent<Numbered>| {
        *seen += 1;
        ControlFlow::Continue(())
    })
}

/// A model is made where rows are missing and not before, and the rows come back beside what they were made of.
#[test]
fn a_job_gives_its_finished_rows_beside_their_items() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("rows.jsonl"), folder.path().join("scores.jsonl"));
    fs::write(&input, ROWS).unwrap();
    let (model, mut seen) = (model(), 0);
    let made_by = MadeBy::ModelToLoad { fingerprint: model.info().fingerprint.clone(), template: None };
    let job = Job { made_by, ..Job::open(&input, &output, Program::new("test", "1")).unwrap() };
    let checked = job.check(SingleRow::KNOWN, |_| Ok::<_, Error>(None)).unwrap();
    assert_eq!((checked.rows, checked.unread.count()), (3, 1));
    let note = checked.unread.notes("are lost").next().unwrap();
    assert!(note.starts_with("1 of 3 rows are lost; the first is ") && note.contains("response"), "{note}");
    let finished = job.run(&checked, |missing| make(missing, &model, &judge(&model, 5), &mut seen)).unwrap();
    assert!(finished.summary.is_some() && seen >= 3);
    let again = job.run(&checked, |_| panic!("nothing is missing")).unwrap_or_else(|error: Error| panic!("{error}"));
    assert!(again.summary.is_none());
    assert_eq!(again.counts, finished.counts);
    let beside: Vec<(String, Option<f64>)> = again
        .rows()
        .unwrap()
        .map(|row| {
            let (item, row) = row.unwrap();
            (item.field("response").unwrap_or_default().into_owned(), row.optional("score", "a number").unwrap())
        })
        .collect();
    assert_eq!((&*beside[0].0, beside[1].1, &*beside[2].0), ("four", None, "a fish"));
    assert!(beside[0].1 > beside[2].1);

    // A row that is not its item's is never taken for it.
    let text = fs::read_to_string(&output).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    for (changed, wrong) in
        [([lines[1], lines[0], lines[2]].join("\n"), "item \"a\""), (lines[..2].join("\n"), "item \"c\"")]
    {
        fs::write(&output, changed).unwrap();
        let error = again.rows().unwrap().find_map(Result::err).unwrap();
        assert!(matches!(error, Error::Content { .. }) && error.to_string().contains(wrong), "{error}");
    }
}

/// What is read of every row makes its row too; of a row that has no prompt, the reason does.
#[test]
fn the_same_is_read_of_every_row() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("rows.jsonl"), folder.path().join("tokens.jsonl"));
    fs::write(&input, ROWS).unwrap();
    let model = model();
    let job = Job::open(&input, &output, Program::new("test", "1")).unwrap();
    let checked = job.check(&[], |_| Ok::<_, Error>(None)).unwrap();
    let prompt = |item: &Numbered| -> Result<Prompt, Unscored> {
        Ok(Prompt::user(item.field("response").unwrap_or_default().into_owned()))
    };
    let finished = job.run(&checked, |missing| {
        let resolved = Resolved { model: Some(model.info().clone()), ..Resolved::default() };
        let row = |item: Numbered, outcome: &judge_core::Outcome| -> Result<_, Error> {
            let tokens = outcome.reading().ok().and_then(|reading| reading.prompt_tokens);
            let fate = outcome.reading().err().map_or(Fate::SCORED, |why| Fate::unscored(why.reason));
            Ok((serde_json::json!({"id": item.record.id(), "tokens": tokens}), fate))
        };
        let mut observer = |_: &judge_core::runner::RunEvent<Numbered>| ControlFlow::Continue(());
        missing.read(resolved, &model, Want::default(), prompt, row, &mut observer)
    });
    let finished = finished.unwrap();
    let tokens: Vec<Option<usize>> =
        finished.rows().unwrap().map(|row| row.unwrap().1.optional("tokens", "a number").unwrap()).collect();
    assert!(tokens[0].is_some() && tokens[1].is_none() && tokens[2] > tokens[0], "{tokens:?}");
}

/// Rows of a program's own, which are in no file.
#[derive(Clone)]
struct Own {
    rows: Vec<(ItemId, &'static str)>,
    are_named: bool,
    /// The number of the first.
    first: usize,
}

struct OwnRow {
    row: usize,
    id: ItemId,
    text: &'static str,
}

impl RowItem for OwnRow {
    fn row(&self) -> usize {
        self.row
    }

    fn id(&self) -> ItemId {
        self.id.clone()
    }
}

impl Source for Own {
    type Item = OwnRow;

    fn items(&self) -> Result<impl Iterator<Item = Result<OwnRow, Error>>, Error> {
        let rows = (self.first..).zip(&self.rows);
        Ok(rows.map(|(row, (id, text))| Ok(OwnRow { row, id: id.clone(), text })))
    }

    fn input(&self) -> Option<&Input> {
        None
    }

    fn identity(&self, _: usize) -> Result<Vec<InputFile>, Error> {
        if self.are_named { Ok(vec![InputFile::of_rows("own", &self.rows)?]) } else { Ok(Vec::new()) }
    }
}

/// Counts the characters of each row; says how many rows are there, and whether they were before.
fn count(source: &Own, output: &std::path::Path) -> Result<(usize, bool), Error> {
    let model = model();
    let made_by = MadeBy::ModelToLoad { fingerprint: model.info().fingerprint.clone(), template: None };
    let job = Job { made_by, ..Job::new(source.clone(), output, Program::new("own", "1")) };
    let checked = job.check(&[], |_| Ok::<_, Error>(None))?;
    let finished = job.run(&checked, |missing| {
        let resolved = Resolved { model: Some(model.info().clone()), ..Resolved::default() };
        let prompt = |row: &OwnRow| Ok(Prompt::Raw(row.text.to_owned()));
        let row = |row: OwnRow, outcome: &judge_core::Outcome| -> Result<_, Error> {
            let tokens = outcome.reading().ok().and_then(|reading| reading.prompt_tokens);
            Ok((serde_json::json!({"id": row.id, "tokens": tokens}), Fate::SCORED))
        };
        let mut observer = |_: &judge_core::runner::RunEvent<OwnRow>| ControlFlow::Continue(());
        missing.read(resolved, &model, Want::default(), prompt, row, &mut observer)
    })?;
    Ok((finished.counts.rows(), finished.summary.is_none()))
}

/// A finished output is never taken for that of other rows.
#[test]
fn rows_from_no_file_are_told_from_others() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("tokens.jsonl");
    let own = |texts: [&'static str; 2], are_named| Own {
        rows: texts.into_iter().enumerate().map(|(number, text)| (number.into(), text)).collect(),
        are_named,
        first: 0,
    };
    // Counted from 1, each row would be written in the place of the next.
    let counted = count(&Own { first: 1, ..own(["a", "bb"], true) }, &output);
    assert!(matches!(counted, Err(Error::RowPlace { place: 0, found: 1 })) && !output.exists(), "{counted:?}");
    let unnamed = count(&own(["a", "bb"], false), &output);
    assert!(matches!(unnamed, Err(Error::NoIdentity)) && !output.exists(), "{unnamed:?}");
    assert_eq!(count(&own(["a", "bb"], true), &output).unwrap(), (2, false));
    assert_eq!(count(&own(["a", "bb"], true), &output).unwrap(), (2, true));
    let others = count(&own(["a", "ccc"], true), &output);
    assert!(matches!(others, Err(Error::OutputExists { .. })), "{others:?}");
}

#[test]
fn errors_of_rows_from_no_file_say_where() {
    let folder = tempfile::tempdir().unwrap();
    let own = Own { rows: Vec::new(), are_named: true, first: 0 };
    let empty = count(&own, &folder.path().join("tokens.jsonl")).unwrap_err();
    assert_eq!(empty.to_string(), "the source has no rows");
    let job =
        |source| Job { carry: Carry::Only(vec!["topic".into()]), ..Job::new(source, "out", Program::new("own", "1")) };
    let refused = job(Own { rows: vec![(1.into(), "a")], ..own }).check(&[], |_| Ok::<_, Error>(None)).unwrap_err();
    assert!(refused.to_string().starts_with("the source: no row has the field \"topic\""), "{refused}");
}

#[test]
fn ids_that_cannot_name_a_row_are_refused_before_any_row_is_judged() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("tokens.jsonl");
    let refused = |ids: [ItemId; 3]| {
        let rows = ids.into_iter().map(|id| (id, "a")).collect();
        let refused = count(&Own { rows, are_named: true, first: 0 }, &output).unwrap_err();
        assert!(!output.exists(), "{refused}");
        refused
    };
    let twice = refused(["a".into(), 1.into(), "a".into()]);
    assert_eq!(twice.to_string(), "the id \"a\" occurs twice: row 0, and row 2 (from 0)");
    let large = refused([1.into(), ItemId::Integer(1 << 70), "1".into()]);
    assert!(large.to_string().contains("the id 1180591620717411303424 is too large"), "{large}");
}

#[test]
fn a_file_without_rows_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("rows.jsonl");
    fs::write(&input, "").unwrap();
    let mut job = Job::open(&input, folder.path().join("out.jsonl"), Program::new("test", "1")).unwrap();
    job.source.options.format = Some(judge_data::DatasetFormat::Graded);
    assert!(matches!(job.check(&[], |_| Ok::<_, Error>(None)), Err(Error::NoRows { .. })));
}
