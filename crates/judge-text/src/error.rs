//! The crate's error.

use std::path::PathBuf;
use std::sync::Arc;

use judge_core::Unscored;
use judge_weights::error::Error as WeightsError;

/// Everything that can go wrong between text and tokens.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file cannot be read, is not what it should be, or asks for something that this crate does not do. In a box, since it is by far the
    /// largest of these.
    #[error(transparent)]
    Weights(Box<WeightsError>),
    /// A chat prompt needs a chat template, and the folder has none.
    #[error("{path} has no chat template ({wanted})", path = path.display())]
    NoChatTemplate {
        /// The model's folder, or its GGUF file.
        path: PathBuf,
        /// Where one is read.
        wanted: &'static str,
    },
    /// The chat template, or that of a decision's prompt in a folder, does not compile or does not show what is decided about.
    #[error("{path}: chat template: {source}", path = path.display())]
    ChatTemplate {
        /// The file that it is in.
        path: PathBuf,
        /// What is wrong, with the line.
        source: Arc<dyn std::error::Error + Send + Sync>,
    },
    /// The Jinja template of a decision's prompt does not compile.
    #[error("the template of a prompt: {source}")]
    PromptTemplate {
        /// What is wrong, with the line.
        source: Arc<dyn std::error::Error + Send + Sync>,
    },
    /// A SentencePiece file is damaged, or no such file.
    #[error("{path}: {problem}", path = path.display())]
    SentencePiece {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// A prompt cannot be tokenised where its tokens themselves were asked for: the template
    /// refuses it, or it has none.
    #[error("the prompt cannot be read: {unscored}")]
    Prompt {
        /// The reason that an item with this prompt would get.
        unscored: Unscored,
    },
    /// `tokenizer.json` cannot be loaded, or the tokenizer failed on a text.
    #[error("{path}: {source}", path = path.display())]
    Tokenizer {
        /// The `tokenizer.json`.
        path: PathBuf,
        /// What the tokenizer says.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl From<WeightsError> for Error {
    fn from(error: WeightsError) -> Self {
        Self::Weights(Box::new(error))
    }
}

impl From<Unscored> for Error {
    fn from(unscored: Unscored) -> Self {
        Self::Prompt { unscored }
    }
}
