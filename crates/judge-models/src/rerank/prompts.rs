//! Prompts for a query and a document that a Jinja template makes: one of its own, or the model's chat template.

use std::collections::BTreeMap;

use judge_core::rerank::RerankPrompt;
use judge_core::{Cut, Message, Prompt, PromptEnd, Unscored, WholePrompt};
use serde_json::{Map, Value, json};

use super::RerankFormProblem;
use crate::Error;
use crate::decision::compiled;

/// A Jinja template of the whole prompt, which sees `query`, `document` and `instruction`.
///
/// Its control tokens are control tokens, and those that the texts spell stay text; `<|split|>` cuts it into pieces that are tokenised apart.
/// A prompt that is too long loses the end of its document.
#[derive(Clone, Debug, PartialEq)]
pub struct WholeRerankPrompt {
    template: String,
    instruction: Option<String>,
    most_tokens: Option<usize>,
}

impl WholeRerankPrompt {
    /// Reads a template. `most_tokens` are those of a prompt, where they are fewer than the model can read.
    ///
    /// # Errors
    /// [`TextError::PromptTemplate`](crate::TextError::PromptTemplate), with the line; [`Error::Rerank`] for a template that leaves out
    /// the query or the document.
    pub fn new(source: &str, instruction: Option<String>, most_tokens: Option<usize>) -> Result<Self, Error> {
        let template = compiled(source)?;
        match ["query", "document"].into_iter().find(|variable| !template.names(variable)) {
            Some(variable) => Err(Error::Rerank { path: None, problem: RerankFormProblem::Template { variable } }),
            None => Ok(Self { template: source.to_owned(), instruction, most_tokens }),
        }
    }
}

impl RerankPrompt for WholeRerankPrompt {
    fn prompt(&self, query: &str, document: &str) -> Result<Prompt, Unscored> {
        let values = [
            ("instruction".to_owned(), json!(self.instruction)),
            ("query".to_owned(), query.into()),
            ("document".to_owned(), document.into()),
        ];
        Ok(Prompt::Whole(Box::new(WholePrompt {
            template: self.template.clone(),
            values: Map::from_iter(values),
            end: PromptEnd { mark: 0, of: 1 },
            prefill: String::new(),
            cut: Some(Cut { value: "document".to_owned(), most_tokens: self.most_tokens }),
        })))
    }

    fn settings(&self) -> Value {
        json!({"whole": self.template, "instruction": self.instruction, "most_tokens": self.most_tokens})
    }
}

/// The model's chat template with turns of the roles `query` and `document`, behind an instruction as the system's: how
/// sentence-transformers asks rerankers since version 5.4.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RolesPrompt {
    /// The text of the system's turn.
    pub instruction: Option<String>,
    /// Further variables of the template.
    pub template_args: BTreeMap<String, Value>,
    /// Most tokens of a prompt, where they are fewer than the model can read.
    pub most_tokens: Option<usize>,
}

/// The roles of the turns.
pub(super) const ROLES: [&str; 2] = ["query", "document"];

impl RerankPrompt for RolesPrompt {
    fn prompt(&self, query: &str, document: &str) -> Result<Prompt, Unscored> {
        let system = self.instruction.iter().map(|text| Message::new("system", text));
        let pair = ROLES.into_iter().zip([query, document]).map(|(role, text)| Message::new(role, text));
        // transformers opens no reply unless it is asked to.
        let closed =
            Prompt::chat(system.chain(pair).collect()).with_template_arg("add_generation_prompt", false.into());
        let args = self.template_args.clone().into_iter();
        let prompt = args.fold(closed, |prompt, (name, value)| prompt.with_template_arg(name, value));
        Ok(prompt.with_truncation(self.most_tokens))
    }

    fn settings(&self) -> Value {
        let Self { instruction, template_args, most_tokens } = self;
        json!({"roles": ROLES, "instruction": instruction, "template_args": template_args, "most_tokens": most_tokens})
    }
}
