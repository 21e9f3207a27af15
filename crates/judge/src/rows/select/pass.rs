//! What a model says of every example, in files that are resumed.

use std::cell::OnceCell;
use std::path::Path;

use anyhow::Result;
use judge_cli::args::lager::NO_LABEL;
use judge_cli::args::model_args::ModelArgs;
use judge_cli::row_job::resolved;
use judge_cli::terminal::console::tell_label_mass;
use judge_cli::terminal::pace::Watch;
use judge_core::{ItemId, ItemResult, Judge, Unscored};
use judge_data::{Checked, Columns, Error, Fate, Input, Job, RunPlan, Settings, Source};
use judge_models::Model;
use serde::Serialize;
use serde_json::{Map, Value};

use super::example::{Example, Examples};

/// The examples, and the model that is loaded when the first pass needs it.
pub struct Passes<'a> {
    /// The job of which each file is one: whose rows are read, and how they are written.
    pub job: Job<Examples>,
    /// What the rows are.
    pub checked: Checked,
    /// The model.
    pub model: &'a ModelArgs,
    /// It, once it is loaded.
    pub loaded: OnceCell<Model>,
}

impl Passes<'_> {
    /// The model.
    ///
    /// # Errors
    /// Whatever is wrong with its folder.
    pub fn model(&self) -> Result<&Model> {
        if let Some(model) = self.loaded.get() {
            return Ok(model);
        }
        let model = self.model.load()?;
        Ok(self.loaded.get_or_init(|| model))
    }

    /// The file of examples.
    pub fn input(&self) -> &Input {
        &self.job.source.0.input
    }

    /// How its columns are looked for.
    pub fn columns(&self) -> &Columns {
        &self.job.source.0.options.columns
    }

    /// The examples, from the first.
    ///
    /// # Errors
    /// Whatever is wrong with the first.
    pub fn examples(&self) -> Result<impl Iterator<Item = Result<Example, Error>>> {
        Ok(self.job.source.items()?)
    }

    /// The plan of a file that is made of the examples.
    ///
    /// # Errors
    /// If the input cannot be read.
    pub fn plan(&self, output: &Path, settings: Settings) -> Result<RunPlan> {
        Ok(Job { output: output.to_path_buf(), settings, ..self.job.clone() }.plan(&self.checked)?)
    }

    /// The job of a file that the model makes; `settings` are what decides about a row besides the model and the input.
    ///
    /// # Errors
    /// Whatever is wrong with the model's folder.
    pub fn of_model(&self, output: &Path, mut settings: Settings) -> Result<Job<Examples>> {
        let (made_by, of_model) = self.model.described(None)?;
        settings.extend(of_model);
        Ok(Job { output: output.to_path_buf(), settings, made_by, ..self.job.clone() })
    }

    /// Puts all examples before judges and writes what `row` makes of each result to `output`;
    /// what is there already is kept, and if all is, no model is loaded. `settings` are what
    /// decides about a row besides the model and the input; `judges` are made once the model is there.
    ///
    /// # Errors
    /// Whatever is wrong with the output, the model, the judges or `row`; [`Stopped`](judge_cli::terminal::interrupt::Stopped) after a signal.
    pub fn pass<J: Judge<Example>>(
        &self,
        output: &Path,
        what: &'static str,
        settings: Settings,
        judges: impl FnOnce(&Model) -> Result<Vec<J>>,
        mut row: impl FnMut(&[J], &ItemResult<Example>) -> Result<Answer>,
    ) -> Result<()> {
        let job = self.of_model(output, settings)?;
        job.run(&self.checked, |missing| {
            let model = self.model()?;
            let judges = judges(model)?;
            let asked: Vec<&dyn Judge<Example>> = judges.iter().map(|judge| judge as _).collect();
            let mut watch = Watch::new(what, "rows", self.model.quiet)?;
            let row = |result: ItemResult<Example>| {
                let answer = row(&judges, &result)?;
                let fate = answer.unscored.first().map_or(Fate::SCORED, |(_, why)| Fate::unscored(why.reason));
                anyhow::Ok((answer.into_row(&result.id)?, fate))
            };
            let result = missing.judge(resolved(model, None, Settings::new()), model, &asked, row, &mut watch)?;
            watch.finish(result.summary.cancelled)?;
            tell_label_mass(&result.summary, "the labels", NO_LABEL);
            anyhow::Ok(result)
        })?;
        Ok(())
    }
}

/// What is written of one example.
#[derive(Debug, Default)]
pub struct Answer {
    fields: Map<String, Value>,
    unscored: Vec<(String, Unscored)>,
}

impl Answer {
    /// Adds a field.
    ///
    /// # Errors
    /// If the value has no JSON form.
    pub fn set(&mut self, name: &str, value: &impl Serialize) -> Result<()> {
        self.fields.insert(name.to_owned(), serde_json::to_value(value)?);
        Ok(())
    }

    /// Notes that something has no number, and why.
    pub fn lacks(&mut self, what: &str, why: Unscored) {
        self.unscored.push((what.to_owned(), why));
    }

    fn into_row(self, id: &ItemId) -> Result<Map<String, Value>> {
        let mut row = Map::new();
        row.insert("id".to_owned(), serde_json::to_value(id)?);
        row.extend(self.fields);
        if !self.unscored.is_empty() {
            let unscored = self.unscored.into_iter().map(|(what, why)| Ok((what, serde_json::to_value(why)?)));
            row.insert("unscored".to_owned(), Value::Object(unscored.collect::<Result<_>>()?));
        }
        Ok(row)
    }
}
