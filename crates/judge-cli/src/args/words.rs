//! Commands word by word, for advice that says what was given.

use std::path::Path;

use judge_core::Lens;
use judge_models::{Date, WeightForm};
use serde_json::Value;

use crate::args::decisions::DecisionPromptArgs;
use crate::args::lager::AskedArgs;
use crate::args::model_args::ModelArgs;
use crate::terminal::options::quoted;

/// A command, or options of one.
#[derive(Default)]
pub struct Words {
    /// The words.
    pub list: Vec<String>,
}

impl Words {
    /// Adds the name of the program and that of a command, or of a command's command.
    #[must_use]
    pub fn of(mut self, command: &str) -> Self {
        self.list.push("judge".to_owned());
        self.list.extend(command.split(' ').map(str::to_owned));
        self
    }

    /// Adds an option and its value.
    #[must_use]
    pub fn option(mut self, name: &str, value: &str) -> Self {
        self.list.extend([name.to_owned(), value.to_owned()]);
        self
    }

    /// Adds an option and the file that it names.
    #[must_use]
    pub fn path(self, name: &str, path: &Path) -> Self {
        self.option(name, &path.to_string_lossy())
    }

    /// Adds an option and the file that it names, if it names one.
    #[must_use]
    pub fn path_if(self, name: &str, path: Option<&Path>) -> Self {
        path.into_iter().fold(self, |words, path| words.path(name, path))
    }

    /// Adds an option and its value, if it has one.
    #[must_use]
    pub fn option_if(self, name: &str, value: Option<String>) -> Self {
        match value {
            Some(value) => self.option(name, &value),
            None => self,
        }
    }

    /// Adds an option without a value, if it was given.
    #[must_use]
    pub fn flag(mut self, name: &str, given: bool) -> Self {
        self.list.extend(given.then(|| name.to_owned()));
        self
    }

    /// What the model was asked, and how its prompts were made.
    #[must_use]
    pub fn asked(self, asked: &AskedArgs, model: &ModelArgs) -> Self {
        self.path_if("--template", asked.template.as_deref())
            .option_if("--rubric", asked.rubric.clone())
            .option_if("--prefill", asked.prefill.clone())
            .option_if("--points", asked.points.map(|points| points.to_string()))
            .lens(asked)
            .dressed(model)
    }

    /// How inner states meet the head.
    #[must_use]
    pub fn lens(self, asked: &AskedArgs) -> Self {
        self.option_if("--lens", (asked.lens() == Lens::Normed).then(|| "normed".to_owned()))
    }

    /// What was done to prompts, whatever they ask.
    #[must_use]
    pub fn dressed(self, model: &ModelArgs) -> Self {
        let words =
            self.flag("--raw-prompt", model.raw_prompt).option_if("--prefill-trusted", model.prefill_trusted.clone());
        let argument =
            |words: Self, (key, value): &(String, Value)| words.option("--template-arg", &format!("{key}={value}"));
        model.template_args.iter().fold(words, argument)
    }

    /// How questions were put.
    #[must_use]
    pub fn decided(self, decisions: &DecisionPromptArgs) -> Self {
        decisions.words().into_iter().fold(self, |words, (name, path)| words.path(name, path))
    }

    /// Which model reads, and how.
    #[must_use]
    pub fn of_model(self, model: &ModelArgs) -> Self {
        let words = self.option_if("--model", model.model.clone()).flag("--embedded", model.embedded);
        let words = model.adapters.iter().fold(words, |words, adapter| words.path("--adapter", adapter));
        let devices: Vec<String> = model.devices.iter().map(ToString::to_string).collect();
        let is_plain = model.weight_form == WeightForm::default();
        words
            .option_if("--device", Some(devices.join(",")).filter(|device| device != "cpu"))
            .option_if("--dtype", model.dtype.map(|dtype| dtype.to_string()))
            .option_if("--weight-form", (!is_plain).then(|| model.weight_form.to_string()))
            .option_if("--kernel", model.kernel.map(|kernel| kernel.to_string()))
            .dated(model)
    }

    /// The date that templates were told.
    #[must_use]
    pub fn dated(self, model: &ModelArgs) -> Self {
        self.option_if("--date", (model.date != Date::default()).then(|| model.date.to_string()))
    }
}

/// Words as a shell takes them.
#[must_use]
pub fn in_a_shell(words: &[String]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}
