//! Rows of answers from retrieved contexts, and of what was found of them.

mod contexts;
mod record;
mod row;

pub(crate) use contexts::text as text_of;

pub use record::RagRecord;
pub use row::{MeasuredRag, RagRow};
