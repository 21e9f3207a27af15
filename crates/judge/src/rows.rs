//! Commands over rows: each judges or reads every row of a file, or divides and joins such work.

pub(crate) mod checklist;
pub(crate) mod compare;
pub(crate) mod decide;
pub(crate) mod emotion;
pub(crate) mod exercises;
pub(crate) mod knowledge;
pub(crate) mod label;
pub(crate) mod logits;
pub(crate) mod rag;
pub(crate) mod rank;
pub(crate) mod rerank;
pub(crate) mod reward;
pub(crate) mod score;
pub(crate) mod select;
pub(crate) mod shards;
pub(crate) mod states;
pub(crate) mod stream;
