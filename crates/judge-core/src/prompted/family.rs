use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use super::FamilyProblem;
use crate::{
    Error, PromptTemplate, Reason, Scale, Unscored,
    lager::{Condition, LagerSettings},
    prompted::{GradeConvention, PairConvention},
    scale::ScalePoint,
};

/// A judge's prompt as data: what is asked, how the written verdict is found, and which labels stand for which value.
///
/// One family serves three judges, which ask the same and differ in where they look:
///
/// | judge | reads | needs |
/// |---|---|---|
/// | [`WrittenJudge`](crate::prompted::WrittenJudge) | the verdict in the text that the model writes | a model that writes text |
/// | [`LagerJudge`](crate::lager::LagerJudge) with [`lager_settings`](Self::lager_settings) | the probabilities of the labels right behind [`opening`](Self::opening), at the last layer or combined over all | a model that can be read, labels of one token |
/// | [`LikelihoodJudge`](crate::prompted::LikelihoodJudge) | the probabilities of whole labels at the last layer | a model that can be read |
///
/// Of a pair, the value is the preference for the response that is shown first: 1, or 0 for the other one, and ½ for a tie. Around any of
/// the three, [`Swapped`](crate::combine::Swapped) asks in both orders.
///
/// Built in, in this project's own words: see [`built_in`](Self::built_in). In files a family is JSON; a key that
/// nothing reads is an error:
///
/// ```
/// use judge_core::{prompted::PromptFamily, settings::settings_from_json};
///
/// let family: PromptFamily = settings_from_json(
///     r#"{
///         "name": "terse", "task": "pair", "convention": "letters",
///         "template": {"chat": {"messages": [
///             {"role": "system", "content": "You compare answers."},
///             {"role": "user", "content": "{instruction}\n\nA: {response_a}\n\nB: {response_b}\n\nWhich is better, [[A]] or [[B]]?"}]}},
///         "opening": "[[", "closing": "]]", "max_new_tokens": 5,
///         "scale": [{"value": 0.0, "label": "B"}, {"value": 1.0, "label": "A"}]
///     }"#,
/// )?;
/// assert_eq!(family.parse("[[B]]")?, 0.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "FamilyFile")]
pub struct PromptFamily {
    pub(super) name: String,
    #[serde(flatten)]
    task: Task,
    template: PromptTemplate,
    pub(super) scale: Scale,
    opening: String,
    closing: String,
    max_new_tokens: usize,
}

/// What is judged, and how a text says the verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "task", content = "convention", rename_all = "snake_case")]
pub enum Task {
    /// One response gets a grade.
    Single(GradeConvention),
    /// One of two responses is preferred.
    Pair(PairConvention),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FamilyFile {
    name: String,
    task: TaskName,
    convention: String,
    template: PromptTemplate,
    scale: Scale,
    opening: String,
    #[serde(default)]
    closing: String,
    max_new_tokens: usize,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum TaskName {
    Single,
    Pair,
}

impl TryFrom<FamilyFile> for PromptFamily {
    type Error = Error;

    fn try_from(file: FamilyFile) -> Result<Self, Error> {
        let FamilyFile { name, task, convention, template, scale, opening, closing, max_new_tokens } = file;
        let task = match task {
            TaskName::Single => Task::Single(convention.parse()?),
            TaskName::Pair => Task::Pair(convention.parse()?),
        };
        Self { name, task, template, scale, opening, closing, max_new_tokens }.checked()
    }
}

impl PromptFamily {
    /// A family from its parts: the template ends where the reply begins, `scale` has the labels as the model writes them (of a pair with
    /// the preference for the response shown first), `opening` is what a reply has before its label where the label is read, and `closing`
    /// what follows it.
    ///
    /// # Errors
    /// [`Error::Family`]: a pair's values are not 0 and 1 with or without ½; its template lacks `response_a` or `response_b`;
    /// `max_new_tokens` is 0.
    pub fn new(
        name: impl Into<String>,
        task: Task,
        template: PromptTemplate,
        scale: Scale,
        (opening, closing): (&str, &str),
        max_new_tokens: usize,
    ) -> Result<Self, Error> {
        let (name, opening, closing) = (name.into(), opening.to_owned(), closing.to_owned());
        Self { name, task, template, scale, opening, closing, max_new_tokens }.checked()
    }

    fn checked(self) -> Result<Self, Error> {
        let refused = |problem| Err(Error::Family { name: self.name.clone(), problem });
        if self.max_new_tokens == 0 {
            return refused(FamilyProblem::NoTokens);
        }
        if self.is_pair() {
            let values: Vec<f64> = self.scale.values().collect();
            if values != [0.0, 1.0] && values != [0.0, 0.5, 1.0] {
                return refused(FamilyProblem::NotPreferences { values });
            }
            let used = self.template.field_names();
            for field in ["response_a", "response_b"] {
                if !used.contains(&field) {
                    let used = used.into_iter().map(str::to_owned).collect();
                    return refused(FamilyProblem::FieldNotUsed { task: "pair", field, used });
                }
            }
        }
        Ok(self)
    }

    /// Its name, which verdicts and run records show.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What is judged.
    pub fn task(&self) -> Task {
        self.task
    }

    /// Whether two responses are compared.
    pub fn is_pair(&self) -> bool {
        matches!(self.task, Task::Pair(_))
    }

    /// What is asked.
    pub fn template(&self) -> &PromptTemplate {
        &self.template
    }

    /// The labels and their values.
    pub fn scale(&self) -> &Scale {
        &self.scale
    }

    /// What a reply has before its label, where the label is read and not written.
    pub fn opening(&self) -> &str {
        &self.opening
    }

    /// What follows the label.
    pub fn closing(&self) -> &str {
        &self.closing
    }

    /// How long a written reply may be.
    pub fn max_new_tokens(&self) -> usize {
        self.max_new_tokens
    }

    /// The same family with another template, such as one with arguments for the model's chat template.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_template(self, template: PromptTemplate) -> Result<Self, Error> {
        Self { template, ..self }.checked()
    }

    /// The same family with another bound on written replies.
    ///
    /// # Errors
    /// [`Error::Family`] for 0.
    pub fn with_max_new_tokens(self, max_new_tokens: usize) -> Result<Self, Error> {
        Self { max_new_tokens, ..self }.checked()
    }

    /// The same family with another way to find the verdict.
    ///
    /// # Errors
    /// [`Error::UnknownName`] if its task has no convention of this name.
    pub fn with_convention(self, name: &str) -> Result<Self, Error> {
        let task = match self.task {
            Task::Single(_) => Task::Single(name.parse()?),
            Task::Pair(_) => Task::Pair(name.parse()?),
        };
        Ok(Self { task, ..self })
    }

    /// The name of the convention by which a written verdict is found.
    pub fn convention(&self) -> &'static str {
        match self.task {
            Task::Single(convention) => convention.as_str(),
            Task::Pair(convention) => convention.as_str(),
        }
    }

    /// What a written verdict looks like by that convention, for people, e.g. `[[A]], [[B]] or [[C]]`.
    pub fn form(&self) -> &'static str {
        match self.task {
            Task::Single(convention) => convention.form(),
            Task::Pair(convention) => convention.form(),
        }
    }

    /// The value of the verdict in a text: a grade, or the preference for the response shown first.
    ///
    /// # Errors
    /// [`Reason::Unparsed`] for a text without a verdict, [`Reason::OffScale`] for a grade outside the scale or a tie where there may be
    /// none; both have the text.
    pub fn parse(&self, text: &str) -> Result<f64, Unscored> {
        let value = match self.task {
            Task::Pair(convention) => convention.parse(text).map(|verdict| match verdict {
                Ordering::Greater => 1.0,
                Ordering::Equal => 0.5,
                Ordering::Less => 0.0,
            }),
            Task::Single(convention) => convention.parse(text),
        };
        let Some(value) = value else {
            let (form, name) = (self.form(), self.convention());
            let detail = format!("no verdict of the form {form} (convention {name}) in {text:?}");
            return Err(Unscored::new(Reason::Unparsed, detail));
        };
        let (low, high) = self.scale.range();
        let fits = if self.is_pair() {
            self.scale.values().any(|known| known == value)
        } else {
            (low..=high).contains(&value)
        };
        if fits {
            return Ok(value);
        }
        let expected = if self.is_pair() { "a choice, no tie".to_owned() } else { format!("{low} to {high}") };
        let found = if self.is_pair() { "a tie".to_owned() } else { value.to_string() };
        Err(Unscored::new(Reason::OffScale, format!("the verdict is {found}, expected {expected}: {text:?}")))
    }

    /// Settings for a [`LagerJudge`](crate::lager::LagerJudge) that asks the same and reads its labels at the verdict's position;
    /// without weights at the last layer.
    pub fn lager_settings(&self) -> LagerSettings {
        LagerSettings {
            template: self.template.clone(),
            opening: self.opening.clone(),
            condition: Condition::PromptEnd,
            ..LagerSettings::prompt_end(self.scale.clone())
        }
    }

    /// The scale of preferences whose labels are these: the first response is better, a tie if there may be one, the second is better.
    ///
    /// # Errors
    /// [`Error::Scale`] for a label that is empty or appears twice.
    pub fn pair_scale(first: &str, tie: Option<&str>, second: &str) -> Result<Scale, Error> {
        let point = |value, label: &str| ScalePoint { value, label: label.to_owned() };
        let tie = tie.map(|tie| point(0.5, tie));
        Scale::new([Some(point(0.0, second)), tie, Some(point(1.0, first))].into_iter().flatten().collect())
    }
}
