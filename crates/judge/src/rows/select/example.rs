//! An example of instruction data, whatever form its file has, and the forms that fine-tuning tools read.

use std::borrow::Cow;

use anyhow::Result;
use judge_core::{Fields, ItemId, Message, PromptTemplate, Reason, Unscored};
use judge_data::{
    Columns, Dataset, DatasetFormat, DatasetOptions, Error, Field, Ids, Input, PromptInput, Record, Records, RowItem,
    Source, check_templates_on, with_input,
};
use serde_json::{Value, json};

use judge_cli::args::files::InputArgs;

/// An instruction and a response, with what came before.
#[derive(Clone, Debug, PartialEq)]
pub struct Example {
    /// The row's place in the file, from 0.
    pub row: usize,
    /// What the row holds.
    pub record: Record,
    /// What was said, or why that is not known.
    pub said: Result<Said, Unscored>,
}

impl RowItem for Example {
    fn row(&self) -> usize {
        self.row
    }

    fn id(&self) -> ItemId {
        self.record.id().clone()
    }

    fn unread(&self) -> Option<&Unscored> {
        self.said.as_ref().err()
    }

    fn no_grade(&self) -> Option<&str> {
        self.record.no_grade()
    }
}

/// The parts of an example.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// What the system was told.
    pub system: Option<String>,
    /// Earlier requests and answers.
    pub history: Vec<(String, String)>,
    /// What is asked.
    pub instruction: String,
    /// What the instruction is about, where it stands apart; empty if there is none.
    pub input: String,
    /// The answer.
    pub response: String,
}

/// The forms that fine-tuning tools read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Form {
    /// The rows as they are in the input
    Rows,
    /// {"instruction", "input", "output"}, with "system" and "history" where there are any
    Alpaca,
    /// {"conversations": [{"from", "value"}, …]}
    Sharegpt,
}

/// The examples of a file: graded rows (Alpaca's among them) or conversations (ShareGPT's among them).
#[derive(Clone)]
pub struct Examples(pub Records);

impl Examples {
    /// At most `limit`. A file of another format is read too if columns are chosen for instruction and response.
    ///
    /// # Errors
    /// Whatever is wrong with the first row; a file of another format.
    pub fn new(input: Input, columns: &InputArgs, limit: Option<usize>) -> Result<Self> {
        let records = Records::new(input, options(columns, limit));
        let format = records.dataset()?.format();
        anyhow::ensure!(
            matches!(format, DatasetFormat::Graded | DatasetFormat::Prompts),
            "{}: expected rows with an instruction and a response, or conversations, found the format `{format}`; name the columns: --columns instruction=NAME,response=NAME",
            records.input.path().display()
        );
        Ok(Self(records))
    }

    /// Looks for a field of the templates that none of the rows has which the file begins with.
    ///
    /// # Errors
    /// As [`check_templates_on`].
    pub fn check_templates<'t>(&self, templates: impl IntoIterator<Item = &'t PromptTemplate>) -> Result<(), Error> {
        let whole = Self(self.0.whole());
        let mut head = whole.items()?.take(Dataset::HEAD).collect::<Result<Vec<_>, _>>()?;
        head.retain(|example| example.said.is_ok());
        check_templates_on(self.0.input.path(), &head, templates)
    }
}

impl Source for Examples {
    type Item = Example;

    fn items(&self) -> Result<impl Iterator<Item = Result<Example, Error>>, Error> {
        Ok(self.0.dataset()?.enumerate().map(|(row, record)| Example::new(row, record?)))
    }

    fn input(&self) -> Option<&Input> {
        self.0.input()
    }

    fn columns(&self) -> Option<&Columns> {
        self.0.columns()
    }

    fn has_other_fields(&self) -> bool {
        false
    }

    fn checks_ids(&self) -> bool {
        true
    }
}

/// How the rows are read. Instruction data seldom have ids.
pub fn options(columns: &InputArgs, limit: Option<usize>) -> DatasetOptions {
    let columns = columns.columns.clone().unwrap_or_default();
    let is_named = [Field::Instruction, Field::Response].iter().all(|&field| columns.is_chosen(field));
    let format = is_named.then_some(DatasetFormat::Graded);
    DatasetOptions { format, max_rows: limit, columns, ids: Ids::RowNumber, ..DatasetOptions::default() }
}

impl Example {
    fn new(row: usize, record: Record) -> Result<Self, Error> {
        let system = record.extra().rendered("system").filter(|text| !text.is_empty()).map(Cow::into_owned);
        let said = match &record {
            Record::Prompt(prompt) => match &prompt.input {
                // What the conversation says itself goes first.
                PromptInput::Messages(messages) => {
                    Said::of_messages(messages).map(|said| Said { system: said.system.or(system), ..said })
                }
                PromptInput::Text(_) => None,
            }
            .ok_or("expected turns of a user and an assistant that end with an answer"),
            Record::Graded(graded) => {
                let history = graded.extra.of_cell("history").filter(|json| json != "null");
                let history: Result<Vec<(String, String)>, _> =
                    history.map_or(Ok(Vec::new()), |json| serde_json::from_str(&json));
                let said = |history| Said {
                    system,
                    history,
                    instruction: graded.instruction.clone(),
                    input: graded.extra.rendered("input").map(Cow::into_owned).unwrap_or_default(),
                    response: graded.response.clone(),
                };
                history.map(said).map_err(|_| "expected \"history\" to be a list of pairs of texts")
            }
            _ => Err("expected an instruction and a response"), // the format is given
        };
        let missing = |why| record.unread().cloned().unwrap_or_else(|| Unscored::new(Reason::Missing, why));
        let said = said.map_err(missing);
        Ok(Self { row, record, said })
    }

    /// Characters of the response; 0 without one.
    #[must_use]
    pub fn length(&self) -> usize {
        self.said.as_ref().map_or(0, |said| said.response.chars().count())
    }

    /// 64 bits of what was asked and answered but for case and white space:
    /// equal for duplicates, and for two others among a million rows with a probability of 3e-8.
    #[must_use]
    pub fn digest(&self) -> Option<u64> {
        let said = self.said.as_ref().ok()?;
        let mut hasher = blake3::Hasher::new();
        for text in [&said.asked(), &said.response] {
            for word in text.to_lowercase().split_whitespace() {
                hasher.update(word.as_bytes()).update(b" ");
            }
            hasher.update(&[0]);
        }
        let mut digest = [0; 8];
        hasher.finalize_xof().fill(&mut digest);
        Some(u64::from_le_bytes(digest))
    }
}

impl Said {
    /// A conversation: what the system is told, if anything, then requests and answers in turns. `None` if it is not so.
    fn of_messages(messages: &[Message]) -> Option<Self> {
        let (system, turns) = match messages {
            [first, turns @ ..] if first.role == "system" => {
                // Dumps have the turn in every conversation, and mostly nothing in it.
                (Some(&first.content).filter(|text| !text.is_empty()).cloned(), turns)
            }
            turns => (None, turns),
        };
        let mut history = Vec::new();
        for pair in turns.chunks(2) {
            match pair {
                [asked, answered] if asked.role == "user" && answered.role == "assistant" => {
                    history.push((asked.content.clone(), answered.content.clone()));
                }
                _ => return None,
            }
        }
        let (instruction, response) = history.pop()?;
        Some(Self { system, history, instruction, input: String::new(), response })
    }

    /// All that the response answers, as one text.
    #[must_use]
    pub fn asked(&self) -> String {
        self.asked_with(&self.input)
    }

    fn asked_with(&self, input: &str) -> String {
        let mut text = String::new();
        if let Some(system) = &self.system {
            text += &format!("System: {system}\n\n");
        }
        for (asked, answered) in &self.history {
            text += &format!("User: {asked}\n\nAssistant: {answered}\n\n");
        }
        if !text.is_empty() {
            text += "User: ";
        }
        text + &with_input(&self.instruction, input)
    }

    /// The example in a form of its own; `None` for [`Form::Rows`], which are rows of the input.
    #[must_use]
    pub fn to(&self, form: Form) -> Option<Value> {
        match form {
            Form::Rows => None,
            Form::Alpaca => {
                let mut row = json!({"instruction": self.instruction, "input": self.input, "output": self.response});
                if let Some(system) = &self.system {
                    row["system"] = json!(system);
                }
                if !self.history.is_empty() {
                    row["history"] = json!(self.history);
                }
                Some(row)
            }
            Form::Sharegpt => {
                let turn = |from: &str, value: &str| json!({"from": from, "value": value});
                let mut turns: Vec<Value> = self.system.iter().map(|system| turn("system", system)).collect();
                for (asked, answered) in &self.history {
                    turns.extend([turn("human", asked), turn("gpt", answered)]);
                }
                let asked = Self { system: None, history: Vec::new(), ..self.clone() }.asked();
                turns.extend([turn("human", &asked), turn("gpt", &self.response)]);
                Some(json!({"conversations": turns}))
            }
        }
    }
}

/// `instruction` (also as `question`), all that the response answers, `response` (also as `prediction`), `input`, and what the row has
/// besides. Where a template shows `conversation` too, the instruction is the last request alone.
impl Fields for Example {
    fn field(&self, name: &str) -> Option<Cow<'_, str>> {
        self.field_beside(name, &[])
    }

    fn field_beside(&self, name: &str, shown: &[&str]) -> Option<Cow<'_, str>> {
        let said = self.said.as_ref().ok()?;
        match name {
            "instruction" | "question" if shown.contains(&"conversation") => {
                self.record.field_beside("instruction", shown)
            }
            "instruction" | "question" if shown.contains(&"input") => Some(said.asked_with("").into()),
            "instruction" | "question" => Some(said.asked().into()),
            "input" => Some(said.input.as_str().into()),
            "response" | "prediction" => Some(said.response.as_str().into()),
            _ => self.record.field_beside(name, shown),
        }
    }

    fn json(&self, name: &str) -> Option<Cow<'_, Value>> {
        self.record.json(name)
    }

    fn names(&self) -> Vec<String> {
        if self.said.is_err() {
            return Vec::new();
        }
        let own = ["instruction", "input", "response"].map(str::to_owned);
        let others = self.record.names().into_iter().filter(|name| !own.contains(name));
        own.iter().cloned().chain(others).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(rows: &[Value]) -> Vec<Example> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.jsonl");
        std::fs::write(&path, rows.iter().map(|row| format!("{row}\n")).collect::<String>()).unwrap();
        let columns = InputArgs { input: path.clone(), columns: None, part: None };
        let examples = Examples::new(Input::open(&path).unwrap(), &columns, None).unwrap();
        examples.items().unwrap().collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn forms_are_read_and_written() {
        let alpaca = json!({"instruction": "Sum.", "input": "1 2", "output": "3", "system": "Be brief.", "history": [["Hi", "Hello"]]});
        let plain = json!({"instruction": "Sum.", "input": "", "output": "3"});
        let found = read(&[alpaca.clone(), plain.clone()]);
        assert_eq!(
            found[0].field("instruction").unwrap(),
            "System: Be brief.\n\nUser: Hi\n\nAssistant: Hello\n\nUser: Sum.\n\n1 2"
        );
        assert_eq!(found[0].field_beside("instruction", &["input"]).unwrap().lines().last(), Some("User: Sum."));
        assert_eq!(found[0].field("input").as_deref(), Some("1 2"));
        let said = |row: usize| found[row].said.as_ref().unwrap();
        assert_eq!((said(0).to(Form::Alpaca), said(1).to(Form::Alpaca)), (Some(alpaca), Some(plain)));
        assert_eq!(said(1).to(Form::Rows), None);

        let turn = |from: &str, value: &str| json!({"from": from, "value": value});
        let talk = json!({"id": "t", "conversations": [turn("system", "Be brief."), turn("human", "Hi"), turn("gpt", "Hello"), turn("human", "Sum."), turn("gpt", "3")]});
        let odd = json!({"id": "o", "conversations": [turn("gpt", "Hello")]});
        let found = read(&[talk.clone(), odd]);
        let said = found[0].said.as_ref().unwrap();
        assert_eq!(said.to(Form::Sharegpt).unwrap()["conversations"], talk["conversations"]);
        assert_eq!(said.to(Form::Alpaca).unwrap()["history"], json!([["Hi", "Hello"]]));
        // What the system is told may stand beside the conversation, unless the conversation says it.
        let beside = |turns: &[Value]| json!({"system": "Be kind.", "conversations": turns});
        let whole = talk["conversations"].as_array().unwrap();
        let others = read(&[beside(&whole[1..]), beside(whole)]);
        assert!(others[0].field("instruction").unwrap().starts_with("System: Be kind.\n\nUser: Hi"));
        let told = |row: usize| others[row].said.as_ref().unwrap().to(Form::Alpaca).unwrap()["system"].clone();
        assert_eq!((told(0), told(1)), (json!("Be kind."), json!("Be brief.")));
        // An empty turn of the system says nothing, as in the form that has a field for it.
        let empty = [&[turn("system", "")][..], &whole[1..]].concat();
        let quiet = read(&[beside(&empty), json!({"conversations": empty})]);
        assert_eq!(quiet[0].said, others[0].said);
        assert!(quiet[1].field("instruction").unwrap().starts_with("User: Hi"));
        let alpaca = quiet[1].said.as_ref().unwrap().to(Form::Alpaca).unwrap();
        assert_eq!((alpaca.get("system"), read(std::slice::from_ref(&alpaca))[0].digest()), (None, quiet[1].digest()));
        // Not in turns: kept, and without texts, so that judges list it.
        assert_eq!((found[1].field("response"), found[1].digest()), (None, None));
        assert!(found[1].unread().unwrap().detail.contains("turns of a user and an assistant"));
    }

    /// Templates see what the row has besides, under the names that it has for it, and what was said before but once.
    #[test]
    fn other_fields_of_a_row_are_there() {
        let turn = |from: &str, value: &str| json!({"from": from, "value": value});
        let talk = [turn("human", "Hi"), turn("gpt", "Hello"), turn("human", "Sum."), turn("gpt", "3")];
        let row =
            json!({"instruction": "Sum.", "output": "3", "rubric": "Is it right?", "topic": "sums", "tags": ["a"]});
        let found = read(&[row]).remove(0);
        assert_eq!(
            ["rubric", "topic", "output"].map(|name| found.field(name).unwrap().into_owned()),
            ["Is it right?", "sums", "3"]
        );
        assert_eq!((found.field("input").as_deref(), found.field("other")), (Some(""), None));
        assert!(found.json("tags").is_some() && found.names().contains(&"topic".to_owned()));
        let found = read(&[json!({"conversations": talk})]).remove(0);
        let shown = ["conversation", "instruction"];
        let texts = shown.map(|name| found.field_beside(name, &shown).unwrap().into_owned());
        assert_eq!(texts, ["User: Hi\n\nAssistant: Hello", "Sum."]);
    }

    #[test]
    fn null_is_no_history_and_the_reason_names_what_is_missing() {
        let row = |history: Value, output: Value| json!({"instruction": "Sum.", "input": "", "output": output, "history": history});
        let found = read(&[
            row(Value::Null, json!("3")),
            row(json!([]), json!("3")),
            row(json!("Hi"), json!("3")),
            row(json!([["Hi"]]), json!("3")),
            row(Value::Null, Value::Null),
            // As a cell of a table has a list.
            row(json!("[[\"Hi\", \"Hello\"]]"), json!("3")),
        ]);
        assert!(found[0].said.is_ok() && found[0].said == found[1].said);
        assert_eq!(found[5].said.as_ref().unwrap().history, [("Hi".to_owned(), "Hello".to_owned())]);
        let why = |row: usize| found[row].unread().unwrap().detail.as_str();
        assert!(why(2).contains("\"history\"") && why(3).contains("\"history\""), "{found:?}");
        assert!(why(4).contains("no response"), "{found:?}");
    }

    #[test]
    fn duplicates_differ_in_case_and_space_alone() {
        let row = |asked: &str, answer: &str| json!({"instruction": asked, "output": answer});
        let found = read(&[row("Add  1", "Two"), row("add 1\n", "two"), row("add", "1 two")]);
        assert_eq!(found[0].digest(), found[1].digest());
        assert_ne!(found[1].digest(), found[2].digest());
    }
}
