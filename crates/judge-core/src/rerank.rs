//! Reranking: how relevant each of some documents is to a query.
//!
//! [`RerankJudge`] asks a model about one document at a time, so a score never depends on the other documents, and a document that cannot be
//! read costs itself alone. How a model's reading becomes a score is a [`Scoring`]: a head with one label, or the logits of one or two
//! labels where the model's reply would begin, and what goes over that number. Labels are read at the last layer, at one that is chosen, or at
//! all layers by fitted weights ([`RerankReadout`]).
//!
//! | model | [`Relevance`] | [`Activation`] |
//! |---|---|---|
//! | cross-encoders, classifiers and reward models with one label | [`Head`](Relevance::Head) | as the folder says |
//! | Qwen3-Reranker (arXiv 2506.05176): the softmax over `yes` and `no` | [`Difference`](Relevance::Difference) | [`Sigmoid`](Activation::Sigmoid) |
//! | ProRank (arXiv 2506.03487), mxbai-rerank v2: the difference of `1` and `0` | [`Difference`](Relevance::Difference) | [`Identity`](Activation::Identity) |
//! | the rerankers of FlagEmbedding (arXiv 2312.15503): the logit of `Yes` | [`Logit`](Relevance::Logit) | either |
//!
//! Layer weights are those of [`decision`](crate::decision): a query, a document and its relevance are a yes-or-no question with the share of
//! yes that people gave, [`DecisionFit`](crate::decision::DecisionFit) learns from [`RerankJudge::tables`], and a file of
//! [`DecisionWeights`](crate::decision::DecisionWeights) keeps what was learned.
//!
//! ```
//! use std::sync::Arc;
//!
//! use judge_core::rerank::{Activation, Label, Relevance, RerankItem, RerankJudge, RerankSettings, Scoring, TurnPrompt};
//! use judge_core::{PromptTemplate, Prompt, Runner, testing::ScriptedBackbone};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // A stand-in; `judge-models` loads a real model, and knows what its folder says of reranking.
//! let model = ScriptedBackbone::new(2).with_logits(|before, _, label| match label {
//!     'Y' if before.contains("Paris") => 2.0,
//!     _ => 0.0,
//! });
//! let prompt = TurnPrompt::new(PromptTemplate::new(Prompt::user("{query}\n{document}\nDoes it answer? Y or N"))?)?;
//! let scoring = Scoring {
//!     relevance: Relevance::Difference { yes: Label::Text("Y".into()), no: Label::Text("N".into()) },
//!     activation: Activation::Sigmoid,
//! };
//! let judge = RerankJudge::new(RerankSettings::new(Arc::new(prompt), scoring), &model)?;
//! let item = RerankItem::new("What is the capital of France?", ["Berlin is large.", "Paris is its capital."]);
//! let results = Runner::new(&model, vec![&judge]).collect([("capital".into(), item)])?;
//! let ranked = judge_core::rerank::ranked(&results[0].verdicts[0]);
//! assert_eq!(ranked.iter().map(|document| document.index).collect::<Vec<_>>(), [1, 0]);
//! # Ok(())
//! # }
//! ```

mod item;
mod judge;
mod problem;
mod prompt;
mod ranked;
mod scoring;

pub use item::{RerankItem, Rerankable};
pub use judge::{RerankJudge, RerankReadout, RerankSettings};
pub use problem::RerankProblem;
pub use prompt::{PairPrompt, RerankPrompt, TurnPrompt};
pub use ranked::{RankedDocument, ranked};
pub use scoring::{Activation, Label, Relevance, Scoring};
