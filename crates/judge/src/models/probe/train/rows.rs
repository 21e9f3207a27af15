//! What probes are trained on: prompts with grades, from a file or generated.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail, ensure};
use judge_core::{
    ItemId, Prompt, PromptTemplate, Scale, combine::Renamed, inspector::Aspect, lager::LagerSettings,
    request::Generation,
};
use judge_data::{
    Columns, DatasetFormat, DatasetOptions, Extra, Field, GradedRecord, Ids, Input, PromptInput, PromptRecord, Row,
    RowColumns, Unread,
};
use judge_probe::training::{GradeScale, GradedRow};
use serde::Deserialize;
use serde_json::value::RawValue;
use tiny_judge::planted::{Split, generate, prompt};

use judge_cli::args::model_args::{ModelArgs, OWN_POINTS};
use judge_cli::groups::OtherFields;
use judge_cli::probes::check_aspect;
use judge_cli::terminal::console::usage;

use super::row_error::RowError;

/// The aspect of rows that name none.
const UNNAMED: &str = "quality";

/// How far apart the ends of a scale may be whose grades a prompt lists.
const WIDEST: f64 = 100.0;

/// How rows are read.
pub struct Reading<'a> {
    /// Aspects wanted; empty: all.
    pub aspects: &'a [String],
    /// Field whose rows stay on one side of every split.
    pub group: Option<&'a str>,
    /// Field that says where a row comes from.
    pub source: Option<&'a str>,
    /// Which columns hold which fields.
    pub columns: &'a Columns,
    /// Prompt of rows with question and response.
    pub template: Option<&'a PromptTemplate>,
    /// On which scale grades are; a prompt that is built in asks for one on it.
    pub scale: GradeScale,
    pub model: &'a ModelArgs,
}

/// Where a row belongs, by fields that are nothing of its own.
#[derive(Clone)]
pub struct Belonging {
    group: Option<String>,
    split: Option<String>,
    source: Option<String>,
}

impl Belonging {
    /// A row that belongs there.
    pub fn of(self, row: GradedRow) -> GradedRow {
        GradedRow { group: self.group.unwrap_or(row.group), split: self.split, source: self.source, ..row }
    }
}

impl Reading<'_> {
    /// Where a row with these fields belongs; `read` gives the text of one that is read under another name, or of what the row is about.
    ///
    /// # Errors
    /// A field that is named and is not there, and a part that is no text: what is wrong with this row alone.
    pub fn belonging(&self, fields: &Extra, read: impl Fn(&str) -> Option<String>) -> Result<Belonging, RowError> {
        let text = |field: &str| {
            let json = fields.text(field).filter(|json| *json != "null");
            let text = json.map(|json| fields.rendered(field).map_or_else(|| json.to_owned(), Cow::into_owned));
            let text = text.or_else(|| read(field));
            text.ok_or_else(|| RowError::odd(format!("there is no field {field:?}, or it is null")))
        };
        let group = self.group.map(text).transpose()?;
        let source = self.source.map(text).transpose()?;
        let json = self.columns.names(Field::Split).find_map(|name| fields.text(name)).filter(|json| *json != "null");
        let split = json.map(|json| {
            serde_json::from_str(json).map_err(|_| RowError::odd(format!("expected split to be text, found {json}")))
        });
        Ok(Belonging { group, source, split: split.transpose()? })
    }
}

/// Rows by aspect, and the templates that made prompts of them.
#[derive(Default)]
pub struct Data {
    pub rows: BTreeMap<String, Vec<GradedRow>>,
    pub templates: BTreeMap<String, PromptTemplate>,
    /// Rows without a grade, which were skipped.
    pub ungraded: usize,
    /// Rows with a field that cannot be read, which were skipped too.
    pub unread: Unread,
    /// What a judge wrote behind each prompt, where one did.
    pub written: Option<Written>,
    /// The fields of each aspect's rows that are nothing else.
    pub other_fields: BTreeMap<String, OtherFields>,
}

/// Texts that are written once more while their states are read.
pub struct Written {
    /// How.
    pub generation: Generation,
    /// What came of it the first time, of each row.
    pub texts: Vec<String>,
}

/// A row of a probing file, which is a JSON object of one list per aspect.
#[derive(Deserialize)]
struct ProbingRow {
    id: ItemId,
    eval_prompt: String,
    score: Option<f64>,
}

const QUESTION: &str = "\n\nQuestion:\n";
const RESPONSE: &str = "\n\nGenerated response:\n";

impl Data {
    /// Generated questions and answers: a train, a test and a shifted split, graded by simulated raters.
    pub fn generated(per_split: [usize; 3], seed: u64, model: &ModelArgs) -> Self {
        let mut rows = Vec::new();
        for (split, n) in [Split::Train, Split::Test, Split::Shifted].into_iter().zip(per_split) {
            rows.extend(generate(split, n, seed).into_iter().map(|item| GradedRow {
                split: Some(split.name().to_owned()),
                group: item.instruction.clone(),
                question: item.instruction.clone(),
                response: item.response.clone(),
                ..GradedRow::new(item.id.as_str(), dressed(model, PromptInput::Text(prompt(&item))), item.human())
            }));
        }
        rows.truncate(model.limit.unwrap_or(usize::MAX));
        Self { rows: BTreeMap::from([(UNNAMED.to_owned(), rows)]), ..Self::default() }
    }

    /// A probing file `{"ASPECT": [{"id", "eval_prompt", "score"}, …], …}`, or JSON lines. The file is parsed once.
    pub fn read(input: &Input, reading: &Reading<'_>) -> Result<Self> {
        let (path, ids) = (input.path(), Ids::of_rows(input, reading.columns)?);
        let mut data = Self::default();
        let (mut seen, mut first) = (BTreeSet::new(), None);
        let mut read = |data: &mut Self, index: usize, row: Row, of: &Reading<'_>| {
            let place = row.place().clone();
            // Errors of the crate name their place already.
            let placed = |error: anyhow::Error| match error.is::<judge_data::Error>() {
                true => error,
                false => error.context(place.to_string()),
            };
            match data.read_line(row, index, ids, of, &mut seen) {
                Ok(()) => data.unread.note(&place, None),
                Err(RowError::Odd { why, error }) => {
                    data.unread.note(&place, Some(why));
                    first.get_or_insert_with(|| placed(error));
                }
                Err(RowError::Run(error)) => return Err(placed(error)),
            }
            Ok(())
        };
        // Responses of no aspect: they have a prompt where no row of the file names one, and are odd where others do.
        let (mut unnamed, mut named) = (Vec::new(), false);
        for (index, row) in input.rows()?.enumerate() {
            let row = row?;
            if index == 0 && is_probing_file(&row) {
                data.read_probing_file(path, row, reading)?;
                break;
            }
            let has_aspect = reading.columns.has(&row, Field::Aspect);
            named |= has_aspect;
            if !has_aspect && reading.template.is_none() && reading.columns.has(&row, Field::Response) {
                unnamed.push((index, row));
            } else {
                read(&mut data, index, row, reading)?;
            }
        }
        let asked = (!named && !unnamed.is_empty()).then(|| as_a_score(reading)).transpose()?;
        let unnamed_reading = Reading { template: asked.as_ref().or(reading.template), ..*reading };
        for (index, row) in unnamed {
            read(&mut data, index, row, &unnamed_reading)?;
        }
        if let Some((place, why)) = data.unread.all() {
            let error = first.unwrap_or_else(|| anyhow!("{} is no probing file: {place}: {why}", path.display()));
            return Err(error.context(format!("no row of {} can be read", path.display())));
        }
        for aspect in reading.aspects {
            let known = data.rows.keys();
            ensure!(data.rows.contains_key(aspect), "{} has no aspect {aspect:?}, it has {known:?}", path.display());
        }
        data.rows.retain(|aspect, _| reading.aspects.is_empty() || reading.aspects.contains(aspect));
        for aspect in data.rows.keys() {
            let plain = Path::new(aspect).file_name().is_some_and(|name| name == aspect.as_str());
            ensure!(plain, "{}: files are named by aspects, and {aspect:?} cannot be a file's name", path.display());
            check_aspect(aspect).with_context(|| path.display().to_string())?;
        }
        match (data.rows.is_empty(), data.ungraded) {
            (true, 0) => bail!("{} has no rows", path.display()),
            (true, n) => {
                bail!("none of the {n} rows of {} has a grade: expected a field human, scores or score", path.display())
            }
            _ => Ok(data),
        }
    }

    fn read_probing_file(&mut self, path: &Path, file: Row, reading: &Reading<'_>) -> Result<()> {
        let mut seen = BTreeSet::new();
        let wrong = |aspect: &str| format!("{} is no probing file: aspect {aspect:?}", path.display());
        for (aspect, text) in file.into_extra(&[]).iter() {
            let rows: Vec<&RawValue> = serde_json::from_str(text).with_context(|| wrong(aspect))?;
            for (index, row) in rows.into_iter().enumerate() {
                let row = serde_json::from_str::<ProbingRow>(row.get());
                let name = format!("row {} of the aspect {aspect:?}", index + 1);
                self.unread.note(name, row.as_ref().err().map(ToString::to_string));
                if let Ok(row) = row {
                    let none = Extra::new();
                    self.push(aspect, row.score, row.into_graded(), &none, reading, &mut seen)
                        .with_context(|| wrong(aspect))?;
                }
            }
        }
        Ok(())
    }

    fn read_line(
        &mut self,
        row: Row,
        index: usize,
        ids: Ids,
        reading: &Reading<'_>,
        seen: &mut BTreeSet<(String, ItemId)>,
    ) -> Result<(), RowError> {
        let options = DatasetOptions { columns: reading.columns.clone(), ids, ..DatasetOptions::default() };
        let aspect = text_field(&row, reading.columns, Field::Aspect)?;
        let fields = row.clone().into_extra(&[]);
        let used = used(&row, reading.columns)?;
        let belonging = reading.belonging(&fields, |name| reading.columns.text(&row, Field::from_name(name)?).ok());
        // A whole prompt under the name of an instruction, as prometheus-eval has it: the prompt unless there is a template of its parts.
        let published = matches!(DatasetFormat::detect(&row, reading.columns), Ok(DatasetFormat::Prometheus));
        let has = |field| reading.columns.has(&row, field);
        let is_named = |field| reading.columns.names(field).any(|name| row.keys().any(|key| key == name));
        // A response that is null, or not there beside an instruction, makes no prompt of a row that has none.
        let is_prompt = has(Field::Prompt) || has(Field::Messages);
        let is_asked = row.has(Field::Instruction.as_str()) || reading.columns.is_chosen(Field::Instruction);
        let is_pair = has(Field::Response) || ((is_asked || is_named(Field::Response)) && !is_prompt);
        let (grade, mut graded) = if published && reading.template.is_none() {
            let whole = reading.columns.text(&row, Field::Instruction)?;
            let record = GradedRecord::from_prometheus(row, index, &options)?;
            let prompt = dressed(reading.model, PromptInput::Text(whole));
            (record.human(), GradedRow::new(record.id, prompt, 0.0))
        } else if published || is_pair {
            let record = match published {
                true => GradedRecord::from_prometheus(row, index, &options)?,
                false => GradedRecord::from_row(row, index, &options)?,
            };
            let template = reading.model.dress_template(template(reading, aspect.as_deref())?);
            // Whatever its columns are called.
            let names = [("question", "instruction"), ("prediction", "response")];
            let prompt = template.fill(&Renamed { item: &record, fields: names })?;
            let question = record.asked().into_owned();
            self.templates.insert(aspect.clone().unwrap_or_else(|| UNNAMED.to_owned()), template);
            let grade = grade(record.human(), &record.columns)?;
            let row = GradedRow::new(record.id, prompt, 0.0);
            (grade, GradedRow { question, response: record.response, ..row })
        } else {
            let record = PromptRecord::from_row(row, index, &options)?;
            let grade = grade(record.human(), &record.columns)?;
            (grade, GradedRow::new(record.id, dressed(reading.model, record.input), 0.0))
        };
        if !graded.question.is_empty() {
            graded.group.clone_from(&graded.question);
        }
        let graded = belonging?.of(graded);
        let fields = fields.retain(|name| !used.iter().any(|used| used == name));
        Ok(self.push(aspect.as_deref().unwrap_or(UNNAMED), grade, graded, &fields, reading, seen)?)
    }

    /// Adds a row with its grade, or counts it if it has none.
    fn push(
        &mut self,
        aspect: &str,
        grade: Option<f64>,
        row: GradedRow,
        other: &Extra,
        reading: &Reading<'_>,
        seen: &mut BTreeSet<(String, ItemId)>,
    ) -> Result<()> {
        let is_new = seen.insert((aspect.to_owned(), row.id.clone()));
        ensure!(is_new, "the id {} appears twice in the aspect {aspect:?}", row.id);
        let rows = self.rows.get(aspect).map_or(0, Vec::len);
        match grade {
            None => self.ungraded += 1,
            Some(_) if rows >= reading.model.limit.unwrap_or(usize::MAX) => {}
            Some(grade) => {
                self.rows.entry(aspect.to_owned()).or_default().push(GradedRow { grade, ..row });
                self.other_fields.entry(aspect.to_owned()).or_default().see(other.iter());
            }
        }
        Ok(())
    }
}

impl ProbingRow {
    /// The row without its grade.
    fn into_graded(self) -> GradedRow {
        let Self { id, eval_prompt, .. } = self;
        let rest = eval_prompt.split_once(QUESTION).map(|(_, rest)| rest);
        let pair = rest.and_then(|rest| rest.split_once(RESPONSE));
        let pair = pair.map(|(question, response)| (question.to_owned(), response.to_owned()));
        let row = GradedRow::new(id, Prompt::Raw(eval_prompt), 0.0);
        match pair {
            Some((question, response)) if !question.is_empty() => {
                GradedRow { group: question.clone(), question, response, ..row }
            }
            Some((_, response)) => GradedRow { response, ..row },
            None => row,
        }
    }
}

/// What people gave a row; what is there and is no grade is the row's fault.
fn grade(human: Option<f64>, columns: &RowColumns) -> Result<Option<f64>, RowError> {
    match columns.no_grade() {
        Some(why) if human.is_none() => Err(RowError::odd(why.to_owned())),
        _ => Ok(human),
    }
}

/// A field of text that a row may lack.
fn text_field(row: &Row, columns: &Columns, field: Field) -> Result<Option<String>, RowError> {
    let Some(json) = columns.find(row, field)?.and_then(|name| row.value(name)) else { return Ok(None) };
    let text = serde_json::from_str(json);
    text.map(Some).map_err(|_| RowError::odd(format!("expected {field} to be text, found {json}")))
}

/// The columns that a row's id, prompt, grade, aspect and split are in. Of one with a response that is what was asked and the response.
fn used(row: &Row, columns: &Columns) -> Result<Vec<String>, RowError> {
    const ALWAYS: [Field; 4] = [Field::Id, Field::Human, Field::Aspect, Field::Split];
    let of_kind = match columns.has(row, Field::Response) {
        true => [Field::Instruction, Field::Response],
        false => [Field::Prompt, Field::Messages],
    };
    let mut used = Vec::new();
    for field in ALWAYS.into_iter().chain(of_kind) {
        used.extend(columns.find(row, field)?.map(str::to_owned));
    }
    Ok(used)
}

/// A prompt as the options want it.
fn dressed(model: &ModelArgs, input: PromptInput) -> Prompt {
    if model.raw_prompt { input.to_raw() } else { model.dress(input.to_chat()) }
}

/// What `judge score` asks, up to the token of the score: by the template that the model folder brings for grades from 1 to 5,
/// else by the built-in one.
fn as_a_score(reading: &Reading<'_>) -> Result<PromptTemplate> {
    let GradeScale { low, high } = reading.scale;
    if low.fract() != 0.0 || high.fract() != 0.0 || high - low > WIDEST {
        return Err(usage(format!(
            "--scale {}: the built-in prompt lists whole grades, expected whole ends at most {WIDEST} apart; give \
             --template FILE",
            reading.scale
        )));
    }
    if reading.scale == GradeScale::default()
        && let Some(own) = reading.model.own_template(OWN_POINTS, None)?
    {
        return Ok(own); // it leads right to the score
    }
    let LagerSettings { template, opening, .. } = LagerSettings::prompt_end(Scale::integers(low as i32, high as i32)?);
    Ok(template.with_prefill(&opening))
}

/// The prompt for an aspect's pairs.
fn template(reading: &Reading<'_>, aspect: Option<&str>) -> Result<PromptTemplate, RowError> {
    if let Some(template) = reading.template {
        return Ok(template.clone());
    }
    let known = || Aspect::ALL.map(Aspect::as_str).join(", ");
    let Some(aspect) = aspect else {
        return Err(RowError::odd(format!(
            "the row names no aspect, as others do, so there is no built-in prompt for it; built-in are {}: add a field \"aspect\", or give \
             --template FILE",
            known()
        )));
    };
    match aspect.parse::<Aspect>() {
        Ok(aspect) if reading.scale == GradeScale::default() => Ok(aspect.template()),
        Ok(aspect) => Err(RowError::Run(usage(format!(
            "the built-in prompt for the aspect {} asks for grades from 1 to 5, and --scale is {}: give \
             --template FILE",
            aspect.as_str(),
            reading.scale
        )))),
        Err(_) => Err(RowError::Run(anyhow!(
            "there is no built-in prompt for the aspect {aspect:?}; built-in are {}: give --template FILE",
            known()
        ))),
    }
}

/// An object whose values are lists is a probing file, whatever is wrong inside.
fn is_probing_file(row: &Row) -> bool {
    let fields = row.clone().into_extra(&["messages", "human", "scores"]);
    !fields.is_empty() && fields.iter().all(|(_, text)| text.trim_start().starts_with('['))
}
