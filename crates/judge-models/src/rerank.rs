//! Rerankers: what a folder says of how its model scores documents, and prompts in Jinja.
//!
//! `judge_core::rerank` asks about documents and makes the scores; this module gives it what a folder has of its own:
//!
//! | folder | read from it |
//! |---|---|
//! | encoder with one label (a cross-encoder) | pairs of texts; the activation in `config.json`, else a sigmoid, as sentence-transformers has it |
//! | with `modules.json` of a `CrossEncoder` and `1_LogitScore/config.json` | the tokens of one or two labels; the chat template, with turns `query` and `document` |
//! | decoder with one label, with files of sentence-transformers | the same chat template; the activation |
//! | decoder with one label, a reward model | the query as the user's turn and the document as the assistant's, as rewards are read |
//!
//! Whoever asks may give each of these in its place ([`RerankOptions`]). A folder that does not say how it reranks is refused by an error
//! that names what to give: nothing is guessed of a model's name.

mod folder;
mod form;
mod problem;
mod prompts;

pub use folder::RerankFolder;
pub use form::{RerankForm, RerankOptions};
pub use problem::RerankFormProblem;
pub use prompts::{RolesPrompt, WholeRerankPrompt};
