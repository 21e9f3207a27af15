//! Prompts of decisions that a Jinja template makes.

use std::sync::Arc;

use judge_core::decision::{Asked, DecisionPrompt};
use judge_core::{Prompt, PromptEnd, Reason, Unscored, WholePrompt};
use judge_jinja::{Date, TemplateError};
use judge_text::{ChatTemplate, MARK, SPLIT, with_texts};
use serde_json::{Map, Value, json};

use crate::{Error, TextError};

/// A Jinja template of the user's turn, which sees `state` and `question`; the turn goes into the model's chat template, with
/// `enable_thinking` false. This is what transformers does where a model has no template for decisions.
#[derive(Clone)]
pub struct TurnPrompt {
    template: Arc<ChatTemplate>,
}

/// A Jinja template of the whole prompt (`decision_template.jinja`), which sees `state` and `question`, one prompt for each question;
/// or `questions`, one prompt for all of them, with a `<|mark|>` behind each. See [`WholePrompt`].
#[derive(Clone)]
pub struct TemplatePrompt {
    template: Arc<ChatTemplate>,
    /// Whether all questions are in one prompt.
    is_shared: bool,
    /// Whether the template escapes text itself, so that what spells a mark is taken out of it.
    strips_marks: bool,
}

impl TurnPrompt {
    /// Reads a template.
    ///
    /// # Errors
    /// [`TextError::PromptTemplate`], with the line; [`Error::PromptWithoutState`].
    pub fn new(source: &str) -> Result<Self, Error> {
        Ok(Self { template: Arc::new(of_state(source)?) })
    }
}

impl TemplatePrompt {
    /// Reads a template.
    ///
    /// # Errors
    /// [`TextError::PromptTemplate`], with the line; [`Error::PromptWithoutState`].
    pub fn new(source: &str) -> Result<Self, Error> {
        let template = of_state(source)?;
        let is_shared = template.names("questions");
        Ok(Self { template: Arc::new(template), is_shared, strips_marks: false })
    }

    /// The same of a template that escapes control tokens itself (`sanitize_control_tokens` false): words of a request that are
    /// those of marks are taken out before. Control tokens that a request spells stay text nevertheless.
    #[must_use]
    pub fn stripping_marks(self) -> Self {
        Self { strips_marks: true, ..self }
    }

    fn prompt(&self, state: &Value, questions: &[&Asked], mark: usize) -> Prompt {
        let all: Vec<Value> = questions.iter().map(|asked| json!(asked)).collect();
        let mut values = Map::new();
        values.insert("enable_thinking".to_owned(), false.into());
        values.insert("state".to_owned(), state.clone());
        if self.is_shared {
            values.insert("questions".to_owned(), all.into());
        } else {
            values.insert("question".to_owned(), all.into_iter().next().unwrap_or(Value::Null));
        }
        if self.strips_marks {
            let without = |text: &str| text.replace(MARK, "").replace(SPLIT, "");
            values.values_mut().for_each(|value| *value = with_texts(value, &without));
        }
        let end = PromptEnd { mark, of: questions.len() };
        Prompt::Whole(Box::new(WholePrompt {
            template: self.template.source().to_owned(),
            values,
            end,
            prefill: String::new(),
            cut: None,
        }))
    }
}

/// A template of a prompt.
///
/// # Errors
/// [`TextError::PromptTemplate`], with the line.
pub(crate) fn compiled(source: &str) -> Result<ChatTemplate, Error> {
    let template = ChatTemplate::new(source, Date::default());
    template.map_err(|source| TextError::PromptTemplate { source: Arc::new(source) }.into())
}

/// One that shows what is decided about.
fn of_state(source: &str) -> Result<ChatTemplate, Error> {
    let template = compiled(source)?;
    if template.names("state") { Ok(template) } else { Err(Error::PromptWithoutState) }
}

fn refused(error: &TemplateError) -> Unscored {
    Unscored::new(Reason::Template, error.to_string())
}

impl DecisionPrompt for TurnPrompt {
    fn prompts(&self, state: &Value, questions: &[Asked]) -> Result<Vec<Prompt>, Unscored> {
        let prompt = |asked: &Asked| {
            let values = [("state".to_owned(), state.clone()), ("question".to_owned(), json!(asked))];
            let text = self.template.render(&[], &Default::default(), &values.into()).map_err(|e| refused(&e))?;
            Ok(Prompt::user(text).with_template_arg("enable_thinking", false.into()))
        };
        questions.iter().map(prompt).collect()
    }

    fn settings(&self) -> Value {
        json!({"turn": self.template.source()})
    }
}

impl DecisionPrompt for TemplatePrompt {
    fn prompts(&self, state: &Value, questions: &[Asked]) -> Result<Vec<Prompt>, Unscored> {
        let all: Vec<&Asked> = questions.iter().collect();
        let prompt = |place: usize| match self.is_shared {
            true => self.prompt(state, &all, place),
            false => self.prompt(state, &all[place..=place], 0),
        };
        Ok((0..questions.len()).map(prompt).collect())
    }

    fn settings(&self) -> Value {
        json!({"whole": self.template.source(), "strips_marks": self.strips_marks})
    }
}
