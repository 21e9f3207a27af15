//! The options that say how documents are scored.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use judge_core::Layer;
use judge_core::decision::DecisionWeights;
use judge_core::rerank::{Activation, Label, RerankReadout};
use judge_models::{Error, RerankFolder, RerankForm, RerankFormProblem, RerankOptions, TextError};

use crate::args::model_args::ModelArgs;
use crate::args::numbers::at_least;
use crate::args::one_of;
use crate::terminal::console::{tell, usage};
use crate::terminal::options::offered;

/// How documents are scored, where the model's folder does not say.
#[derive(Args, Clone, Debug)]
pub struct RerankArgs {
    /// A Jinja template of the whole prompt, which sees `query`, `document` and `instruction` [default: as the model's folder says]
    #[arg(long, value_name = "FILE", help_heading = "Rerank")]
    rerank_template: Option<PathBuf>,
    /// The labels whose logits are read behind the template: that of a relevant document, and that of another or none
    #[arg(long, value_name = "YES[,NO]", allow_hyphen_values = true, value_delimiter = ',', help_heading = "Rerank")]
    labels: Vec<String>,
    /// What a document is to be relevant for, where the prompt has a place for it
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, help_heading = "Rerank")]
    instruction: Option<String>,
    /// What goes over a score: sigmoid or identity; of --labels, without it, a sigmoid over two, which is the probability of the first, and
    /// nothing over one
    #[arg(long, value_parser = one_of(&[("sigmoid", Activation::Sigmoid), ("identity", Activation::Identity)]), help_heading = "Rerank")]
    activation: Option<Activation>,
    /// Cut a prompt with more tokens than these, at the end of its document [default: as the model's folder says, and what the model can read]
    #[arg(long, value_name = "TOKENS", value_parser = at_least::<usize>(1), help_heading = "Rerank")]
    max_tokens: Option<usize>,
}

/// Which layers labels are read at: one, all by weights of a file, or the last; of a head, which layer's.
///
/// # Errors
/// Whatever is wrong with the file of weights.
pub fn readout(layer: Option<usize>, weights: Option<&Path>) -> Result<RerankReadout> {
    Ok(match (weights, layer) {
        (Some(path), _) => RerankReadout::Weights(Box::new(judge_data::load::<DecisionWeights>(path)?)),
        (None, Some(layer)) => RerankReadout::Layer(Layer(layer)),
        (None, None) => RerankReadout::LastLayer,
    })
}

/// What the folder of the model says, and those of the adapters beside it.
fn folder(model: &ModelArgs) -> Result<RerankFolder> {
    Ok(RerankFolder::open_with(&model.folder()?.path, &model.adapters)?)
}

impl RerankArgs {
    /// The files that are read.
    pub fn inputs(&self) -> impl Iterator<Item = &PathBuf> {
        self.rerank_template.iter()
    }

    /// Whether anything is said of how documents are scored.
    #[must_use]
    pub fn is_given(&self) -> bool {
        let Self { rerank_template, labels, instruction, activation, max_tokens } = self;
        let has_option = instruction.is_some() || activation.is_some() || max_tokens.is_some();
        rerank_template.is_some() || !labels.is_empty() || has_option
    }

    /// As [`form`](Self::form); `None` where neither the folder nor an option says anything of reranking.
    ///
    /// # Errors
    /// As [`form`](Self::form).
    pub fn form_if_said(&self, model: &ModelArgs, readout: RerankReadout) -> Result<Option<RerankForm>> {
        if !self.is_given() && !folder(model)?.is_said() {
            return Ok(None);
        }
        self.form(model, readout).map(Some)
    }

    /// How the model scores documents, by what its folder and these options say, at the layers of the readout.
    ///
    /// # Errors
    /// A usage error where they do not say; whatever is wrong with a file.
    pub fn form(&self, model: &ModelArgs, readout: RerankReadout) -> Result<RerankForm> {
        let options = RerankOptions {
            template: self.rerank_template.as_deref().map(judge_data::read_text).transpose()?,
            labels: self.labels.iter().cloned().map(Label::Text).collect(),
            readout,
            instruction: self.instruction.clone(),
            activation: self.activation,
            most_tokens: self.max_tokens,
        };
        let form = folder(model)?.form(&options).map_err(|error| {
            let of_template =
                self.rerank_template.as_deref().map_or_else(String::new, |path| format!("{}: ", path.display()));
            let hint = match &error {
                Error::Rerank { problem: RerankFormProblem::Template { variable: "instruction" }, .. } => {
                    return usage(format!("--instruction has no effect: {of_template}{error}"));
                }
                Error::Rerank { problem: RerankFormProblem::Template { .. }, .. } => {
                    return usage(format!("{of_template}{error}"));
                }
                Error::Rerank { problem: RerankFormProblem::Labels { .. }, .. } => {
                    return usage(format!("--labels: {error}"));
                }
                Error::Text(TextError::PromptTemplate { .. }) => return anyhow::anyhow!("{of_template}{error}"),
                Error::Rerank { problem: RerankFormProblem::NotSaid { .. }, .. } => {
                    offered(["\n  --rerank-template FILE --labels YES,NO, see docs/rerank.md".to_owned()])
                }
                Error::Rerank { problem: RerankFormProblem::NoLabels, .. } => {
                    offered(["\n  --labels YES,NO".to_owned()])
                }
                Error::Rerank {
                    problem:
                        RerankFormProblem::LayerWithoutHead { .. }
                        | RerankFormProblem::WeightsOfHead
                        | RerankFormProblem::EncoderWithoutHead { .. }
                        | RerankFormProblem::HeadOfGguf { .. },
                    ..
                } => None,
                Error::Rerank { .. } => offered(["\n  --rerank-template FILE".to_owned()]),
                _ => return anyhow::Error::from(error),
            };
            let said = match &error {
                Error::Rerank { path: Some(path), problem } => format!("{}: {problem}", model.in_words(path)),
                other => other.to_string(),
            };
            usage(format!("{said}{}", hint.unwrap_or_default()))
        })?;
        if form.is_conversation() {
            tell("note: the query is put as a request and the document as its response, as reward models are read");
        }
        Ok(form)
    }
}
