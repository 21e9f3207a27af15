mod problem;

use std::ops::ControlFlow;
use std::sync::Arc;

pub use problem::{BackboneError, RequestProblem};

use crate::{
    Layer, Lens, ModelInfo, Outcome, Prompt, Request, Scale,
    model::ModelIdentity,
    request::{LabelRead, ReadAt, TokenId},
};

/// A language model that writes text: a local one, or one behind a service.
///
/// The first of two steps of access. It answers [`Request`]s whose [`Want`](crate::Want) is [text only](crate::Want::is_text_only); whoever
/// can also be read from the inside is a [`Backbone`]. Judges that read words need no more than this.
///
/// Nothing of what a model says about itself has a default, here and in [`Backbone`]: whatever stands before another model would compile
/// without passing it on, and say something else.
pub trait TextModel: Send + Sync {
    /// What is known of the model.
    fn identity(&self) -> ModelIdentity;

    /// Answers requests until none is left: takes them from `exchange` as it has room for them, and gives each one's outcome back as soon
    /// as it is known, in any order. It is done when [`Exchange::take`] brings nothing although every request that was taken is answered,
    /// or when [`Exchange::give`] says
    /// [`ControlFlow::Break`]: then it gives nothing more and returns `Ok`.
    ///
    /// An outcome never depends on the other requests, on their order, or on how the work was cut up.
    ///
    /// # Errors
    /// Only for what ends the run (a request that the model cannot answer, a device or service that failed). What is
    /// one item's fault is its [`Outcome::Unscored`].
    fn serve(&self, exchange: &mut dyn Exchange) -> Result<(), BackboneError>;

    /// Answers these requests, each once, in any order: `sink(index, outcome)` with the request's index in `requests`.
    ///
    /// # Errors
    /// As [`serve`](Self::serve).
    fn run(
        &self,
        requests: &[Request],
        sink: &mut dyn FnMut(usize, Outcome) -> ControlFlow<()>,
    ) -> Result<(), BackboneError> {
        self.serve(&mut Listed { requests, taken: 0, sink })
    }

    /// How many tokens a text has by itself, without what a prompt puts around it; `None` of a model that does not say.
    fn tokens_in(&self, text: &str) -> Option<usize>;
}

/// A frozen language model that can be read from the inside.
///
/// Plain host data crosses this seam: text in, small `f32` tables out. The reduction (a state times the
/// head's rows, a state pooled over positions) happens inside the backbone, so that a reading costs a few
/// hundred bytes, whatever the vocabulary. There is no tensor in the signature and no backend parameter:
/// device and dtype are run-time values, and `dyn Backbone` is all a judge ever sees.
pub trait Backbone: TextModel {
    /// The model behind it.
    fn info(&self) -> &ModelInfo;

    /// The vocabulary entry whose bytes are exactly those of `label`.
    ///
    /// # Errors
    /// [`BackboneError::Label`] if there is none; the error shows how the label is split.
    /// [`BackboneError::NoLogits`] if the model reads no labels.
    fn token(&self, label: &str) -> Result<TokenId, BackboneError>;

    /// The only token of `label` as the tokenizer splits it by itself, without special tokens: what decision models read. Where the tokenizer
    /// puts a space before a text, it is the token with the space, and not that of [`token`](Self::token).
    ///
    /// # Errors
    /// [`BackboneError::Label`] if it has several tokens or none; [`BackboneError::NoLogits`] if the model reads no labels.
    fn label_token(&self, label: &str) -> Result<TokenId, BackboneError>;

    /// How `label` is tokenised right after `prompt`, beside how the two are tokenised apart. Where they
    /// differ, a reading at the prompt's end looks at a token that the tokenizer would not have put there.
    ///
    /// # Errors
    /// [`BackboneError::Prompt`] for a prompt that could not be read; what the tokenizer says.
    fn label_in_context(&self, prompt: &Prompt, label: &str) -> Result<LabelInContext, BackboneError>;

    /// The layers whose attention entropies can be read, ascending: those with attention in the block below them, which is all but
    /// [`Layer`] 0 in most models. Others are [`BackboneError::Unsupported`].
    fn attention_layers(&self) -> Vec<Layer>;
}

/// What refers to a model is one: `&M`, `Box<M>` and `Arc<M>`, `Box<dyn TextModel>` and `Box<dyn Backbone>` among them.
macro_rules! model_behind {
    ($($pointer:ty),+) => {$(
        impl<M: TextModel + ?Sized> TextModel for $pointer {
            fn identity(&self) -> ModelIdentity {
                (**self).identity()
            }

            fn serve(&self, exchange: &mut dyn Exchange) -> Result<(), BackboneError> {
                (**self).serve(exchange)
            }

            fn run(
                &self,
                requests: &[Request],
                sink: &mut dyn FnMut(usize, Outcome) -> ControlFlow<()>,
            ) -> Result<(), BackboneError> {
                (**self).run(requests, sink)
            }

            fn tokens_in(&self, text: &str) -> Option<usize> {
                (**self).tokens_in(text)
            }
        }

        impl<M: Backbone + ?Sized> Backbone for $pointer {
            fn info(&self) -> &ModelInfo {
                (**self).info()
            }

            fn token(&self, label: &str) -> Result<TokenId, BackboneError> {
                (**self).token(label)
            }

            fn label_token(&self, label: &str) -> Result<TokenId, BackboneError> {
                (**self).label_token(label)
            }

            fn label_in_context(&self, prompt: &Prompt, label: &str) -> Result<LabelInContext, BackboneError> {
                (**self).label_in_context(prompt, label)
            }

            fn attention_layers(&self) -> Vec<Layer> {
                (**self).attention_layers()
            }
        }
    )+};
}

model_behind!(&M, Box<M>, Arc<M>);

/// What a [`TextModel`] takes requests from and gives outcomes to.
pub trait Exchange {
    /// The next requests, at most `most`, numbered one after another in the order in which they are taken, the first with 0. None does not
    /// mean that none will come: an outcome that is given may lead to more.
    fn take(&mut self, most: usize) -> Vec<Request>;

    /// Gives the outcome of request number `index`. [`ControlFlow::Break`]: the run is over, nothing more is wanted.
    fn give(&mut self, index: usize, outcome: Outcome) -> ControlFlow<()>;

    /// Asked now and then by a model that waits with nothing under way, as for a service that wants to be left alone for a while.
    /// [`ControlFlow::Break`] as of [`give`](Self::give).
    fn wait(&mut self) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// An exchange over a list of requests.
struct Listed<'a> {
    requests: &'a [Request],
    taken: usize,
    sink: &'a mut dyn FnMut(usize, Outcome) -> ControlFlow<()>,
}

impl Exchange for Listed<'_> {
    fn take(&mut self, most: usize) -> Vec<Request> {
        let rest = self.requests.get(self.taken..).unwrap_or_default();
        let some = &rest[..most.min(rest.len())];
        self.taken += some.len();
        some.to_vec()
    }

    fn give(&mut self, index: usize, outcome: Outcome) -> ControlFlow<()> {
        (self.sink)(index, outcome)
    }
}

/// A label's tokenisation in context; see [`Backbone::label_in_context`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelInContext {
    /// The last pieces of the prompt and the pieces of the label, tokenised apart.
    pub apart: Vec<String>,
    /// The last pieces of prompt and label tokenised together.
    pub together: Vec<String>,
    /// Whether both ways give the same tokens.
    pub agrees: bool,
}

impl LabelRead {
    /// The labels of a scale at the last layer, at the prompt's end, with their mass: what a judge needs that reads one distribution.
    ///
    /// # Errors
    /// [`BackboneError::Label`] if a label is not one vocabulary entry.
    pub fn at_prompt_end(scale: &Scale, backbone: &dyn Backbone) -> Result<Self, BackboneError> {
        let tokens = scale.labels().map(|label| backbone.token(label)).collect::<Result<_, _>>()?;
        let layers = vec![Layer(backbone.info().n_layers)];
        Ok(Self { tokens, layers, lens: Lens::Raw, at: ReadAt::PromptEnd, label_mass: true })
    }

    /// The labels of a scale at every layer, from [`Layer`] 0 to the last, at the prompt's end, without their mass.
    ///
    /// # Errors
    /// As [`at_prompt_end`](Self::at_prompt_end).
    pub fn at_every_layer(scale: &Scale, backbone: &dyn Backbone) -> Result<Self, BackboneError> {
        Ok(Self { layers: backbone.info().layers(), label_mass: false, ..Self::at_prompt_end(scale, backbone)? })
    }
}
