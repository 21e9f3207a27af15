//! Grades that were collected elsewhere: exports of Argilla, Label Studio and Prodigy as rows of grades.

mod argilla;
mod item;
mod label_studio;
mod prodigy;

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;

use judge_core::ItemId;
use serde_json::{Value, json};

use self::item::{Answers, Item};
use crate::{Carry, Error, Extra, Input, Unread};

/// The fields of a row that no field of an export may be called.
const KNOWN: [&str; 7] = ["id", "human", "raters", "seconds", "notes", "skipped", "rater_labels"];

/// Which tool has written an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GradingTool {
    /// Argilla's records as JSON: `fields` and `responses`, by question or, in its first version, by user.
    Argilla,
    /// Label Studio's JSON: tasks of `data` and `annotations`.
    LabelStudio,
    /// Prodigy's JSON lines: an `answer` each.
    Prodigy,
}

/// The grades of an export.
#[derive(Debug)]
pub struct ImportedGrades {
    path: PathBuf,
    items: Vec<Item>,
    /// The questions that were answered, in alphabetical order.
    pub questions: Vec<String>,
    /// The raters, in alphabetical order, which is that of the lists in rows.
    pub raters: Vec<String>,
    /// Items that could not be read, or of which an answer could not.
    pub unread: Unread,
}

impl ImportedGrades {
    /// Reads an export.
    ///
    /// # Errors
    /// Whatever is wrong with the file; an item without its parts costs itself alone.
    pub fn read(input: &Input, tool: GradingTool) -> Result<Self, Error> {
        let (mut items, mut places, mut unread) = (Vec::new(), HashMap::new(), Unread::default());
        for row in input.rows()? {
            let row = row?;
            let mut odd = None;
            let read = match tool {
                GradingTool::Argilla => argilla::item(&row, &mut odd),
                GradingTool::LabelStudio => label_studio::item(&row, &mut odd),
                GradingTool::Prodigy => prodigy::item(&row, &mut odd),
            };
            let taken = read.and_then(|item| take(item, &mut items, &mut places, &mut odd));
            unread.note(row.place(), taken.err().or(odd));
        }
        let of_raters = || items.iter().flat_map(|item| &item.raters);
        let questions: BTreeSet<String> = of_raters().flat_map(|(_, said)| said.values.keys().cloned()).collect();
        let raters: BTreeSet<String> = of_raters().map(|(rater, _)| rater.clone()).collect();
        let (questions, raters) = (questions.into_iter().collect(), raters.into_iter().collect());
        Ok(Self { path: input.path().to_path_buf(), items, questions, raters, unread })
    }

    /// The rows, of which `human` is what raters answered to this question, and whether anybody did. What was answered to all of several is
    /// in `rater_labels`. `carry` says which other fields of the export are there.
    ///
    /// # Errors
    /// [`Error::FieldClash`] for a carried field that a row has one of its own for; [`Error::NothingToCarry`] for one that no item has.
    pub fn rows(&self, question: &str, carry: &Carry) -> Result<Vec<(Extra, bool)>, Error> {
        let is_there = |name: &str| self.items.iter().any(|item| item.fields.contains_key(name));
        let mut named = carry.names().iter().filter(|name| !KNOWN.contains(&name.as_str()));
        if let Some(field) = named.find(|name| !is_there(name)) {
            let found = self.items.first().map_or_else(Vec::new, |item| item.fields.keys().cloned().collect());
            let (path, rows, field) = (self.path.clone(), self.items.len(), field.clone());
            return Err(Error::NothingToCarry { path, rows, field, found });
        }
        self.items.iter().map(|item| self.row(item, question, carry)).collect()
    }

    fn row(&self, item: &Item, question: &str, carry: &Carry) -> Result<(Extra, bool), Error> {
        let list = |of: &dyn Fn(&Answers) -> Value| -> Vec<Value> {
            self.raters.iter().map(|rater| item.raters.get(rater).map_or(Value::Null, of)).collect()
        };
        let human = list(&|said| said.values.get(question).cloned().unwrap_or_default());
        let is_graded = human.iter().any(|grade| !grade.is_null());
        let mut row = Extra::new();
        row.set("id", &item.id)?;
        row.set("human", &human)?;
        row.set("raters", &self.raters)?;
        row.set("seconds", &list(&|said| json!(said.seconds)))?;
        let labels = list(&|said| json!(said.values));
        let several = if self.questions.len() > 1 { labels } else { Vec::new() };
        for (name, values) in [
            ("notes", list(&|said| json!(said.note))),
            ("skipped", list(&|said| json!(said.skipped))),
            ("rater_labels", several),
        ] {
            if values.iter().any(|value| !value.is_null()) {
                row.set(name, &values)?;
            }
        }
        let mut shown = Extra::new();
        for (name, value) in &item.fields {
            shown.set(name.as_str(), value)?;
        }
        for (name, value) in carry.of_row(shown, &KNOWN)?.raw() {
            row.set(name, value)?;
        }
        Ok((row, is_graded))
    }
}

/// Takes an item, of which there may be some answers: tools write a line for each, or an item for all of them. It is told
/// from another item with its id by the tool's own id.
fn take(
    item: Item,
    items: &mut Vec<Item>,
    places: &mut HashMap<ItemId, usize>,
    odd: &mut Option<String>,
) -> Result<(), String> {
    let known = |item: &Item| places.get(&item.id).copied();
    let is_other = |item: &Item| known(item).is_some_and(|place| !items[place].is_same(item));
    let item = if is_other(&item) { item.with_own_id() } else { item };
    if is_other(&item) {
        return Err(format!("expected an id of its own, found {}, which another item has", item.id));
    }
    match known(&item) {
        Some(place) => item.raters.into_iter().for_each(|(rater, said)| items[place].say(rater, said, odd)),
        None => {
            places.insert(item.id.clone(), items.len());
            items.push(item);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(tool: GradingTool, text: &str) -> (ImportedGrades, Vec<Value>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("export.json");
        std::fs::write(&path, text).unwrap();
        let grades = ImportedGrades::read(&Input::open(&path).unwrap(), tool).unwrap();
        let question = grades.questions.first().cloned().unwrap_or_default();
        let rows = grades.rows(&question, &Carry::All).unwrap();
        let rows = rows.iter().map(|(row, _)| serde_json::to_value(row).unwrap()).collect();
        (grades, rows)
    }

    #[test]
    fn label_studio_tasks_are_rows() {
        let result =
            |kind: &str, value: Value| json!({"from_name": "grade", "to_name": "text", "type": kind, "value": value});
        let annotation = |by: Value, result: Value| json!({"completed_by": by, "lead_time": 4.5, "was_cancelled": false, "result": [result]});
        let skipped = json!({"completed_by": 7, "was_cancelled": true, "result": []});
        let note = json!({"from_name": "why", "type": "textarea", "value": {"text": ["too long"]}});
        let mut with_note = annotation(json!(7), result("choices", json!({"choices": ["3"]})));
        with_note["result"].as_array_mut().unwrap().push(note);
        let tasks = json!([
            {"id": 1, "data": {"id": "a", "response": "x"},
             "annotations": [annotation(json!({"id": 3, "email": "ann@example.org"}), result("rating", json!({"rating": 4}))), with_note]},
            {"id": 2, "data": {"response": "y"}, "annotations": [skipped]},
            {"id": 3, "annotations": []},
        ]);
        let (grades, rows) = read(GradingTool::LabelStudio, &tasks.to_string());
        assert_eq!((grades.raters, grades.unread.count()), (vec!["7".to_owned(), "ann@example.org".to_owned()], 1));
        assert_eq!(
            rows[0],
            json!({"id": "a", "human": ["3", 4], "raters": ["7", "ann@example.org"], "seconds": [4.5, 4.5],
            "notes": ["too long", null], "response": "x"})
        );
        assert_eq!(
            (&rows[1]["id"], &rows[1]["human"], &rows[1]["skipped"]),
            (&json!(2), &json!([null, null]), &json!(["skipped", null]))
        );
    }

    /// Two people without an address are two raters, an id that is none is said, and `null` is nothing.
    #[test]
    fn what_is_empty_names_nobody_and_costs_nothing() {
        let said = |by: Value, value: u32| {
            json!({"completed_by": by, "was_cancelled": null, "lead_time": null,
            "result": [{"from_name": "grade", "type": "rating", "value": {"rating": value}}]})
        };
        let task = |id: Value, said: Value| json!({"id": 4, "data": {"id": id, "text": id}, "annotations": [said]});
        let mut tasks = [
            task(json!("a"), said(json!({"id": 7, "email": "", "first_name": "Ann"}), 1)),
            task(json!("b"), said(json!({"id": 8, "email": "", "first_name": "Bob"}), 2)),
            task(json!("c"), said(json!({"id": 9, "email": null, "username": "cy"}), 3)),
            task(json!("d"), json!({"completed_by": 7, "result": null})),
            task(json!(1.0), said(json!(7), 5)),
        ];
        let (grades, rows) = read(GradingTool::LabelStudio, &json!(tasks).to_string());
        assert_eq!(grades.raters, ["7", "8", "cy"]);
        let human: Vec<&Value> = rows.iter().map(|row| &row["human"]).collect();
        let nobody = json!([null, null, null]);
        assert_eq!(human, [&json!([1, null, null]), &json!([null, 2, null]), &json!([null, null, 3]), &nobody]);
        let (_, why) = grades.unread.first().unwrap();
        assert_eq!(why, "expected the id of what was shown to be a string or a whole number, found 1.0");
        tasks[4]["data"]["id"] = Value::Null;
        let (_, rows) = read(GradingTool::LabelStudio, &json!(tasks).to_string());
        assert_eq!(rows[4]["id"], 4);
    }

    /// An id is that of one item, whatever the data call it, and a rater has one answer.
    #[test]
    fn items_of_one_id_and_second_answers_are_told_apart() {
        let rating = |value: u32| json!([{"from_name": "grade", "type": "rating", "value": {"rating": value}}]);
        let said = |by: u32, value: u32| json!({"completed_by": by, "result": rating(value)});
        let skipped = json!({"completed_by": 9, "was_cancelled": true, "result": rating(5)});
        let task = |id: u32, response: &str, annotations: Value| {
            let data = json!({"id": "p", "response": response});
            json!({"id": id, "data": data, "annotations": annotations})
        };
        let tasks = json!([
            task(1, "good", json!([said(7, 5), skipped])),
            task(2, "bad", json!([said(7, 1)])),
            task(3, "good", json!([said(8, 4)])),
            task(4, "other", json!([said(8, 1), said(8, 2)])),
        ]);
        let (grades, rows) = read(GradingTool::LabelStudio, &tasks.to_string());
        let found: Vec<(&Value, &Value)> = rows.iter().map(|row| (&row["id"], &row["human"])).collect();
        let expected =
            [(json!("p"), json!([5, 4, null])), (json!(2), json!([1, null, null])), (json!(4), json!([null, 2, null]))];
        assert_eq!(found, expected.iter().map(|(id, human)| (id, human)).collect::<Vec<_>>());
        assert_eq!((&rows[0]["skipped"], grades.unread.count()), (&json!([null, null, "skipped"]), 1));
        let why = grades.unread.first().unwrap().1;
        assert!(why.contains("found two of \"8\""), "{why}");
        let line = |label: &str, hash: Option<u32>| {
            let line = json!({"id": "t", "text": "x", "label": label, "_task_hash": hash, "answer": "accept"});
            format!("{line}\n")
        };
        let text = line("RUDE", Some(1)) + &line("KIND", Some(2)) + &line("WARM", None);
        let (grades, rows) = read(GradingTool::Prodigy, &text);
        let ids: Vec<&Value> = rows.iter().map(|row| &row["id"]).collect();
        assert_eq!((ids, grades.unread.count()), (vec![&json!("t"), &json!(2)], 1));
    }

    /// What is no answer about the whole item, and of answers that differ each, is left out and counted.
    #[test]
    fn parts_and_contradictions_of_an_annotation_are_no_answers() {
        let result = |name: &str, kind: &str, value: Value| json!({"from_name": name, "type": kind, "value": value});
        let choice = |answer: &str| result("q", "choices", json!({"choices": [answer]}));
        let part = |at: &str, kind: &str| result("q", kind, json!({at: 0, kind: ["good"]}));
        let text = |name: &str, text: Value| result(name, "textarea", json!({"text": text}));
        let rest = || result("grade", "rating", json!({"rating": 2}));
        for (results, human, note, why) in [
            (json!([choice("good"), choice("good")]), json!(["good"]), json!(null), ""),
            (json!([rest(), choice("good"), choice("bad"), choice("bad")]), json!([2]), json!(null), "found several"),
            (json!([rest(), part("start", "labels")]), json!([2]), json!(null), "found a region: \"labels\""),
            (json!([choice("bad"), part("x", "choices")]), json!(["bad"]), json!(null), "found a region"),
            (
                json!([choice("bad"), text("why", json!("one")), text("fix", json!(["two", "three"]))]),
                json!(["bad"]),
                json!(["one\ntwo\nthree"]),
                "",
            ),
        ] {
            let tasks =
                json!([{"id": 1, "data": {"text": "x"}, "annotations": [{"completed_by": 1, "result": results}]}]);
            let (grades, rows) = read(GradingTool::LabelStudio, &tasks.to_string());
            let told = grades.unread.first().map_or("", |(_, why)| why);
            assert_eq!((&rows[0]["human"], &rows[0]["notes"]), (&human, &note), "{told}");
            assert!(told.contains(why) && told.is_empty() == why.is_empty(), "{told}");
        }
    }

    #[test]
    fn fields_of_an_export_are_carried_as_is_asked() {
        let data = json!({"text": "x", "human": 3, "notes": "mine", "score": 2});
        let said = json!([{"completed_by": 1, "result": [{"type": "rating", "value": {"rating": 4}}]}]);
        let tasks = json!([{"id": 1, "data": data, "annotations": said}]);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("export.json");
        std::fs::write(&path, tasks.to_string()).unwrap();
        let grades = ImportedGrades::read(&Input::open(&path).unwrap(), GradingTool::LabelStudio).unwrap();
        let rows = |carry: &str| grades.rows("grade", &carry.parse().unwrap());
        assert!(matches!(rows("all"), Err(Error::FieldClash { field }) if field == "human"));
        assert!(matches!(rows("notes"), Err(Error::FieldClash { field }) if field == "notes"));
        assert!(matches!(rows("text,model"), Err(Error::NothingToCarry { field, .. }) if field == "model"));
        let row = serde_json::to_value(&rows("score").unwrap()[0].0).unwrap();
        assert_eq!((&row["human"], &row["score"], row.get("text")), (&json!([4]), &json!(2), None));
    }

    #[test]
    fn argilla_records_are_rows() {
        let records = json!([
            {"id": "a", "fields": {"instruction": "Q", "response": "x"}, "metadata": {"model": "m"}, "suggestions": {"rating": {"value": 1}},
             "responses": {"rating": [{"value": 4, "user_id": "u1"}, {"value": 2, "user_id": "u2", "status": "draft"}],
                           "tone": [{"value": "calm", "user_id": "u1"}]}, "vectors": {}},
            {"id": "b", "fields": {"response": "y"},
             "responses": [{"user_id": "u1", "status": "submitted", "values": {"rating": {"value": 5}}},
                           {"user_id": "u2", "status": "discarded", "values": null}]},
            {"id": "c", "fields": {"response": "z"}, "responses": {"rating": {"value": 2, "user_id": "u1"}, "tone": null}},
        ]);
        let (grades, rows) = read(GradingTool::Argilla, &records.to_string());
        assert_eq!(grades.questions, ["rating", "tone"]);
        assert_eq!((&rows[0]["human"], &rows[0]["raters"]), (&json!([4, null]), &json!(["u1", "u2"])));
        assert_eq!(rows[0]["rater_labels"][0], json!({"rating": 4, "tone": "calm"}));
        assert_eq!((&rows[0]["instruction"], &rows[0]["metadata"]["model"]), (&json!("Q"), &json!("m")));
        assert!(rows[0].get("suggestions").is_none());
        assert_eq!((&rows[1]["human"], &rows[1]["skipped"]), (&json!([5, null]), &json!([null, "discarded"])));
        assert_eq!((&rows[2]["human"], grades.unread.count()), (&json!([null, null]), 1));
        let why = grades.unread.first().unwrap().1;
        assert!(why.starts_with("expected a list of responses to \"rating\", found {"), "{why}");
    }

    #[test]
    fn prodigy_answers_are_rows() {
        let line = |fields: Value| {
            let mut line =
                json!({"text": "x", "_task_hash": -5, "_input_hash": 1, "_view_id": "choice", "_timestamp": 1});
            line.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
            format!("{line}\n")
        };
        let options = json!([{"id": 1, "text": "bad"}, {"id": 2, "text": "good"}]);
        let text = line(json!({"options": options, "accept": [2], "answer": "accept", "_annotator_id": "set-ann"}))
            + &line(json!({"options": options, "accept": [], "answer": "ignore", "_session_id": "set-bob"}))
            + &line(json!({"_task_hash": 6, "label": "RUDE", "answer": "reject", "_annotator_id": "set-ann"}))
            + &line(json!({"_task_hash": 7, "answer": "maybe"}));
        let (grades, rows) = read(GradingTool::Prodigy, &text);
        assert_eq!((rows.len(), grades.unread.count()), (2, 1));
        assert_eq!(
            (&rows[0]["id"], &rows[0]["human"], &rows[0]["skipped"]),
            (&json!(-5), &json!([2, null]), &json!([null, "ignored"]))
        );
        assert_eq!(
            (&rows[1]["human"], &rows[1]["label"], &rows[1]["text"]),
            (&json!([0, null]), &json!("RUDE"), &json!("x"))
        );
        assert!(rows[0].get("_input_hash").is_none() && rows[0].get("options").is_some());
    }
}
