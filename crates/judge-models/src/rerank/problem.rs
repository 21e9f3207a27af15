use std::ops::RangeInclusive;

use judge_core::Layer;

/// Why a folder and what is given beside it do not say how documents are scored.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RerankFormProblem {
    /// No file says that the model reranks.
    #[error(
        "nothing says how this model ({class}) scores a document: expected a head with one label, or the files of a CrossEncoder of \
         sentence-transformers (modules.json, 1_LogitScore/config.json); give a template of the prompt, and the labels whose logits are read"
    )]
    NotSaid {
        /// The class of the model, as `config.json` has it.
        class: String,
    },
    /// The same of an encoder, of which nothing but a head could be read.
    #[error(
        "nothing says how this model ({class}), an encoder, scores a document: expected a head with one label, as of a sequence \
         classifier"
    )]
    EncoderWithoutHead {
        /// The class of the model, as `config.json` has it.
        class: String,
    },
    /// An encoder in a GGUF file, whose head is there.
    #[error(
        "its head of labels ({tensor}) is not read, only heads of folders with safetensors are: take the model's own folder"
    )]
    HeadOfGguf {
        /// The matrix of the head.
        tensor: &'static str,
    },
    /// Labels or a head without a prompt.
    #[error(
        "nothing says what the prompt is that the model scores behind: give a template that writes `query` and `document`"
    )]
    NoPrompt,
    /// A prompt without labels.
    #[error("a template is given, and nothing says what is read behind it: give one or two labels")]
    NoLabels,
    /// More labels than two.
    #[error("expected one label, or two with that of a relevant document first, found {found}")]
    Labels {
        /// How many there are.
        found: usize,
    },
    /// A field of a file that is not what it must be.
    #[error("{setting}: expected {expected}, found {found}")]
    Setting {
        /// Its name.
        setting: String,
        /// What is expected.
        expected: &'static str,
        /// What is there.
        found: String,
    },
    /// A template that leaves something out.
    #[error("the template does not read the variable `{variable}`, so a score would not depend on it")]
    Template {
        /// `query`, `document`, or `instruction` where one is given.
        variable: &'static str,
    },
    /// A chat template whose prompts are the same for other texts, or which refuses the turns.
    #[error("the chat template does not take a turn of the role `{role}`: {why}; give a template of the prompt")]
    Roles {
        /// `query` or `document`.
        role: &'static str,
        /// What it does.
        why: String,
    },
    /// An instruction where there is no place for one.
    #[error(
        "an instruction is given, and this model reads a request and a response alone; give a template that writes it"
    )]
    Instruction,
    /// A layer that has no head.
    #[error("expected a layer that has a head of labels ({}), found {found}", span(layers))]
    LayerWithoutHead {
        /// The layer.
        found: Layer,
        /// Those that have one.
        layers: RangeInclusive<usize>,
    },
    /// Layer weights for a head.
    #[error("the model scores by a head of labels; layer weights are of label logits")]
    WeightsOfHead,
    /// A head is to be read that the model does not have.
    #[error("a head of labels is to be read, and the model that was loaded has none")]
    NoHead,
}

fn span(layers: &RangeInclusive<usize>) -> String {
    let (first, last) = (layers.start(), layers.end());
    if first == last { last.to_string() } else { format!("{first} to {last}") }
}
