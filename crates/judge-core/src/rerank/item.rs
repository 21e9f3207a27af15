use crate::Unscored;

/// A query, and the documents that are scored for it.
#[derive(Clone, Debug, PartialEq)]
pub struct RerankItem {
    /// What is searched for.
    pub query: String,
    /// The texts, or why there is none in a place.
    pub documents: Vec<Result<String, Unscored>>,
}

impl RerankItem {
    /// An item of texts.
    pub fn new(query: impl Into<String>, documents: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { query: query.into(), documents: documents.into_iter().map(|text| Ok(text.into())).collect() }
    }
}

/// An item that a [`RerankJudge`](super::RerankJudge) can be asked about.
pub trait Rerankable {
    /// What is searched for.
    fn query(&self) -> &str;

    /// The texts, or why there is none in a place.
    fn documents(&self) -> &[Result<String, Unscored>];
}

impl Rerankable for RerankItem {
    fn query(&self) -> &str {
        &self.query
    }

    fn documents(&self) -> &[Result<String, Unscored>] {
        &self.documents
    }
}
