//! How documents are scored: what a folder says and what is given beside it.

use std::sync::Arc;

use judge_core::rerank::{
    Activation, Label, PairPrompt, Relevance, RerankPrompt, RerankReadout, RerankSettings, Scoring,
};
use judge_core::reward::RewardHead;
use judge_core::{Backbone, Prompt, Unscored};
use serde_json::{Value, json};

use super::folder::Kind;
use super::prompts::ROLES;
use super::{RerankFolder, RerankFormProblem, RolesPrompt, WholeRerankPrompt};
use crate::decision::compiled;
use crate::{Error, Model, TextError};

/// What is given in the place of what a folder says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RerankOptions {
    /// A Jinja template of the whole prompt; see [`WholeRerankPrompt`].
    pub template: Option<String>,
    /// The labels whose logits are read: that of a relevant document, and that of another or none.
    pub labels: Vec<Label>,
    /// The layers that labels are read at, or the layer whose head is read.
    pub readout: RerankReadout,
    /// What a document is to be relevant for.
    pub instruction: Option<String>,
    /// What goes over a score. Without it, it is what the folder says; for labels that are given, a sigmoid over two, whose score then is a
    /// probability, and nothing over one.
    pub activation: Option<Activation>,
    /// Most tokens of a prompt.
    pub most_tokens: Option<usize>,
}

/// How a model scores documents, before it is loaded.
#[derive(Clone)]
pub struct RerankForm {
    folder: RerankFolder,
    prompt: Arc<dyn RerankPrompt>,
    /// `None`: the model's head.
    relevance: Option<Relevance>,
    /// Where labels are read, or which layer's head.
    readout: RerankReadout,
    activation: Activation,
    /// Whether the chat template has to take turns of the roles of a pair.
    has_roles: bool,
    /// Whether the query and the document are the turns of a conversation, as of a reward model.
    is_conversation: bool,
}

impl RerankFolder {
    /// How the model of this folder scores documents.
    ///
    /// # Errors
    /// [`Error::Rerank`] where neither the folder nor the options say, and, without a path, for options that are wrong;
    /// [`TextError::PromptTemplate`] for a template that cannot be read.
    pub fn form(&self, options: &RerankOptions) -> Result<RerankForm, Error> {
        let RerankOptions { template, labels, readout, instruction, activation, most_tokens } = options;
        let given = match &labels[..] {
            [] => None,
            [yes] => Some(Relevance::Logit { yes: yes.clone() }),
            [yes, no] => Some(Relevance::Difference { yes: yes.clone(), no: no.clone() }),
            more => {
                return Err(Error::Rerank { path: None, problem: RerankFormProblem::Labels { found: more.len() } });
            }
        };
        let of_given = given.as_ref().map(|relevance| match relevance {
            Relevance::Difference { .. } => Activation::Sigmoid,
            _ => Activation::Identity,
        });
        let says_labels = given.is_some();
        let (relevance, is_head) = match (given, &self.kind) {
            (Some(relevance), _) => (Some(relevance), false),
            (None, Kind::Labels(relevance)) => (Some(relevance.clone()), false),
            (None, Kind::Pairs | Kind::Head { .. } | Kind::LayerHeads) => (None, true),
            (None, Kind::Unsaid(RerankFormProblem::NotSaid { .. })) if template.is_some() => {
                return Err(self.fault(RerankFormProblem::NoLabels));
            }
            (None, Kind::Unsaid(problem)) => return Err(self.fault(problem.clone())),
        };
        if is_head {
            self.check_layer(readout)?;
        }
        let instruction = instruction.clone().or_else(|| self.instruction.clone());
        let most_tokens = most_tokens.or(self.most_tokens);
        let has_roles = template.is_none() && matches!(self.kind, Kind::Labels(_) | Kind::Head { roles: true });
        let is_conversation = template.is_none() && is_head && matches!(self.kind, Kind::Head { roles: false });
        let prompt: Arc<dyn RerankPrompt> = match (template, &self.kind) {
            (Some(source), _) => {
                let variable = "instruction";
                if options.instruction.is_some() && !compiled(source)?.names(variable) {
                    return Err(Error::Rerank { path: None, problem: RerankFormProblem::Template { variable } });
                }
                Arc::new(WholeRerankPrompt::new(source, instruction, most_tokens)?)
            }
            (None, _) if has_roles => {
                Arc::new(RolesPrompt { instruction, template_args: self.template_args.clone(), most_tokens })
            }
            (None, _) if is_conversation && instruction.is_some() => {
                return Err(self.fault(RerankFormProblem::Instruction));
            }
            (None, Kind::Pairs | Kind::Head { .. }) if is_head => {
                Arc::new(PairPrompt { most_tokens, before_query: instruction.unwrap_or_default() })
            }
            (None, _) => return Err(self.fault(RerankFormProblem::NoPrompt)),
        };
        let of_folder = if says_labels { of_given } else { self.activation };
        let activation = activation.or(of_folder).unwrap_or_default();
        let (folder, readout) = (self.clone(), readout.clone());
        Ok(RerankForm { folder, prompt, relevance, readout, activation, has_roles, is_conversation })
    }

    /// That there is a head of labels where it is to be read.
    fn check_layer(&self, readout: &RerankReadout) -> Result<(), Error> {
        match readout {
            RerankReadout::LastLayer => Ok(()),
            RerankReadout::Layer(layer) if self.head_layers.contains(&layer.0) => Ok(()),
            RerankReadout::Layer(layer) => {
                let (found, layers) = (*layer, self.head_layers.clone());
                Err(self.fault(RerankFormProblem::LayerWithoutHead { found, layers }))
            }
            RerankReadout::Weights(_) => Err(self.fault(RerankFormProblem::WeightsOfHead)),
        }
    }
}

impl RerankForm {
    /// All that a score depends on besides the model, as JSON: known before the model is loaded.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let scoring = match &self.relevance {
            Some(relevance) => Scoring { relevance: relevance.clone(), activation: self.activation }.to_json(),
            None => json!({"relevance": "head", "activation": self.activation}),
        };
        json!({"prompt": self.prompt.settings(), "scoring": scoring})
    }

    /// What goes over a score.
    #[must_use]
    pub fn activation(&self) -> Activation {
        self.activation
    }

    /// Whether the model scores by a head of labels.
    #[must_use]
    pub fn reads_head(&self) -> bool {
        self.relevance.is_none()
    }

    /// Whether the query is put as a request and the document as its response, which no file of the folder says in so many words: it is how
    /// rewards are read.
    #[must_use]
    pub fn is_conversation(&self) -> bool {
        self.is_conversation
    }

    /// The settings of a judge of the model that was loaded from the folder.
    ///
    /// # Errors
    /// [`Error::Rerank`] for a model without the head that is to be read, and for a chat template that does not take the turns of a pair.
    pub fn settings(&self, model: &Model) -> Result<RerankSettings, Error> {
        let (relevance, readout) = match (&self.relevance, &self.readout) {
            (Some(relevance), readout) => (relevance.clone(), readout.clone()),
            (None, readout) => {
                let of_layer = |head: &&RewardHead| match readout {
                    RerankReadout::Layer(layer) => head.layer_in(model.info()) == *layer,
                    RerankReadout::LastLayer | RerankReadout::Weights(_) => head.layer().is_none(),
                };
                let head = model.reward_heads().iter().find(of_layer);
                let head = head.ok_or_else(|| self.folder.fault(RerankFormProblem::NoHead))?;
                // A head knows its layer.
                (Relevance::Head(Box::new(head.clone())), RerankReadout::LastLayer)
            }
        };
        self.check_prompt(model)?;
        let scoring = Scoring { relevance, activation: self.activation };
        Ok(RerankSettings { readout, ..RerankSettings::new(Arc::clone(&self.prompt), scoring) })
    }

    /// That the model can be fed such prompts, and that other texts of a pair make others: a chat template may leave out roles that it does not
    /// know.
    fn check_prompt(&self, model: &Model) -> Result<(), Error> {
        let lost = |role, why: String| self.folder.fault(RerankFormProblem::Roles { role, why });
        let tokens = |query: &str, document: &str| -> Result<Vec<u32>, Error> {
            let prompt: Result<Prompt, Unscored> = self.prompt.prompt(query, document);
            let prompt = prompt.map_err(|unscored| Error::Prompt { unscored })?;
            model.tokens(&prompt).map_err(|error| match error {
                Error::Prompt { unscored } if self.has_roles => lost(ROLES[0], unscored.to_string()),
                Error::Text(TextError::NoChatTemplate { .. }) => self.folder.fault(RerankFormProblem::NoPrompt),
                other => other,
            })
        };
        let plain = tokens("a", "b")?;
        if !self.has_roles {
            return Ok(());
        }
        for (role, other) in [(ROLES[0], tokens("c d", "b")?), (ROLES[1], tokens("a", "c d")?)] {
            if other == plain {
                return Err(lost(role, "the prompt is the same whatever its text".to_owned()));
            }
        }
        Ok(())
    }
}
