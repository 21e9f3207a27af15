//! The rows that programs write, and read back: scores, verdicts, decisions, labels, rankings.

pub(crate) mod carry;
pub(crate) mod decision_row;
mod entry;
pub(crate) mod label_row;
pub(crate) mod lager_result;
pub(crate) mod numbered_rows;
pub(crate) mod output_row;
pub(crate) mod pair_table;
pub(crate) mod rag;
pub(crate) mod rerank_row;
pub(crate) mod score_row;
pub(crate) mod verdict_row;
