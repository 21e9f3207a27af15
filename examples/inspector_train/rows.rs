//! What probes are trained on: prompts with grades.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use judge_core::{Aspect, ItemId, Message, Prompt, PromptTemplate};
use judge_data::Rows;
use judge_examples::planted::{Split, generate, prompt};
use serde::Deserialize;

/// A graded prompt.
pub struct Row {
    pub id: ItemId,
    pub prompt: Prompt,
    /// For the baselines that do not read the model. A prompt that does not say where its question ends has it all in the response.
    pub question: String,
    pub response: String,
    /// A grade, or the mean of several.
    pub score: f64,
    /// Which part of the data it belongs to, where the data say so: what is learnt from is `train`.
    pub split: Option<String>,
    /// What must not be on both sides of a split, such as a question.
    pub group: String,
    /// Where it comes from, where a field was named that says so.
    pub source: Option<String>,
}

/// Fields of JSON lines that are named by whoever runs this.
#[derive(Clone, Copy)]
pub struct Fields<'a> {
    pub group: Option<&'a str>,
    pub source: Option<&'a str>,
}

/// Rows by aspect, and the templates that made prompts of them.
#[derive(Default)]
pub struct Data {
    pub rows: BTreeMap<String, Vec<Row>>,
    pub templates: BTreeMap<String, PromptTemplate>,
}

/// A row of a probing file, which is a JSON object of one list per aspect.
#[derive(Deserialize)]
struct ProbingRow {
    id: ItemId,
    eval_prompt: String,
    score: f64,
}

const QUESTION: &str = "\n\nQuestion:\n";
const RESPONSE: &str = "\n\nGenerated response:\n";

impl Data {
    /// Generated questions and answers: a train, a test and a shifted split, graded by simulated raters.
    pub fn generated(per_split: [usize; 3], seed: u64) -> Self {
        let mut rows = Vec::new();
        for (split, n) in [Split::Train, Split::Test, Split::Shifted].into_iter().zip(per_split) {
            rows.extend(generate(split, n, seed).into_iter().map(|item| Row {
                id: item.id.as_str().into(),
                prompt: Prompt::user(prompt(&item)),
                score: item.human(),
                split: Some(split.name().to_owned()),
                group: item.instruction.clone(),
                question: item.instruction,
                response: item.response,
                source: None,
            }));
        }
        Self { rows: BTreeMap::from([("quality".to_owned(), rows)]), ..Self::default() }
    }

    /// A probing file `{"ASPECT": [{"id", "eval_prompt", "score"}, …], …}`, or JSON lines `{"id", "score", "aspect"?, "split"?}` with `prompt`,
    /// `messages`, or `question` and `response`. `only` names the aspects that are wanted; empty: all.
    pub fn read(path: &Path, only: &[String], fields: Fields<'_>, template: Option<&PromptTemplate>) -> Result<Self> {
        let text = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let mut data = Self::default();
        match serde_json::from_slice::<BTreeMap<String, Vec<ProbingRow>>>(&text) {
            Ok(file) => {
                for (aspect, rows) in file {
                    data.rows.insert(aspect, rows.into_iter().map(Row::of_probing_file).collect());
                }
            }
            // An object whose values are lists is a probing file, whatever is wrong inside.
            Err(error) if is_object_of_lists(&text) => {
                return Err(error).context(format!("{} is no probing file", path.display()));
            }
            Err(_) => data.read_lines(path, fields, template)?,
        }
        for aspect in only {
            ensure!(
                data.rows.contains_key(aspect),
                "{} has no aspect {aspect:?}, it has {:?}",
                path.display(),
                data.rows.keys()
            );
        }
        data.rows.retain(|aspect, _| only.is_empty() || only.contains(aspect));
        for (aspect, rows) in &data.rows {
            let plain = Path::new(aspect).file_name().is_some_and(|name| name == aspect.as_str());
            ensure!(plain, "{}: files are named by aspects, and {aspect:?} cannot be a file's name", path.display());
            if let Some(row) = rows.iter().find(|row| !row.score.is_finite()) {
                bail!("{}, {aspect}: the score of {} is {}", path.display(), row.id, row.score);
            }
        }
        ensure!(!data.rows.is_empty(), "{} has no rows", path.display());
        Ok(data)
    }

    fn read_lines(&mut self, path: &Path, fields: Fields<'_>, template: Option<&PromptTemplate>) -> Result<()> {
        for row in Rows::open(path)? {
            let row = row?;
            let aspect: String = row.optional("aspect", "a string")?.unwrap_or_else(|| "quality".to_owned());
            let id: ItemId = row.required("id", "a string or a whole number")?;
            let score = row.required("score", "a number")?;
            let split = row.optional("split", "a string")?;
            let place = row.place().to_string();
            let texts = (row.optional("question", "a string")?, row.optional("response", "a string")?);
            let (prompt, question, response) = match texts {
                (Some(question), Some(response)) => {
                    let template = match (template, aspect.parse::<Aspect>()) {
                        (Some(template), _) => template.clone(),
                        (None, Ok(aspect)) => aspect.template(),
                        (None, Err(_)) => bail!("{place}: there is no built-in prompt for {aspect:?}: give --template"),
                    };
                    let fields = [("question", &question), ("response", &response)];
                    let prompt = template.fill(&fields).with_context(|| place.clone())?;
                    self.templates.insert(aspect.clone(), template);
                    (prompt, question, response)
                }
                _ => match row.optional::<Vec<Message>>("messages", "a list of messages")? {
                    Some(messages) => {
                        let text =
                            messages.iter().map(|message| message.content.as_str()).collect::<Vec<_>>().join("\n\n");
                        (Prompt::chat(messages), String::new(), text)
                    }
                    None => {
                        let text = row.string("prompt")?;
                        (Prompt::Raw(text.clone()), String::new(), text)
                    }
                },
            };
            let extra = row.into_extra(&[]);
            let text = |field| {
                extra.text(field).map(str::to_owned).with_context(|| format!("{place}: there is no field {field:?}"))
            };
            let source = fields.source.map(|field| extra.string(field).map_or_else(|| text(field), Ok)).transpose()?;
            let group = match fields.group {
                Some(field) => text(field)?,
                None if question.is_empty() => id.to_string(),
                None => question.clone(),
            };
            self.rows.entry(aspect).or_default().push(Row {
                id,
                prompt,
                question,
                response,
                score,
                split,
                group,
                source,
            });
        }
        Ok(())
    }
}

impl Row {
    fn of_probing_file(row: ProbingRow) -> Self {
        let ProbingRow { id, eval_prompt, score } = row;
        let rest = eval_prompt.split_once(QUESTION).map(|(_, rest)| rest);
        let (question, response) = match rest.and_then(|rest| rest.split_once(RESPONSE)) {
            Some((question, response)) => (question.to_owned(), response.to_owned()),
            None => (String::new(), eval_prompt.clone()),
        };
        let group = if question.is_empty() { id.to_string() } else { question.clone() };
        Self { id, prompt: Prompt::Raw(eval_prompt), question, response, score, split: None, group, source: None }
    }
}

fn is_object_of_lists(text: &[u8]) -> bool {
    let value: Result<BTreeMap<String, serde_json::Value>, _> = serde_json::from_slice(text);
    value.is_ok_and(|object| !object.is_empty() && object.values().all(serde_json::Value::is_array))
}
