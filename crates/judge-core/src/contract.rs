use crate::{Outcome, Request};

/// A way in which a model or a judge fails to do what its trait promises.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ContractBreach {
    /// The run ended well, but a request has no answer.
    #[error("request {request} of {requests} was not answered")]
    Unanswered {
        /// Index of the request.
        request: usize,
        /// Number of requests.
        requests: usize,
    },
    /// A request was answered twice.
    #[error("request {request} was answered twice")]
    AnsweredTwice {
        /// Index of the request.
        request: usize,
    },
    /// The model said that it was done although requests were waiting.
    #[error("the model ended although requests were waiting to be taken")]
    EndedEarly,
    /// There is no request of that index.
    #[error("request {request} was answered, there are {requests}")]
    NoSuchRequest {
        /// Index given.
        request: usize,
        /// Number of requests.
        requests: usize,
    },
    /// The sink was called again after it had asked to stop.
    #[error("the sink was called again after it had asked to stop")]
    CalledAfterBreak,
    /// An answer depends on what else is asked.
    #[error("the answer to {request:?} depends on {on}: {alone:?} alone, {found:?} then")]
    NotInvariant {
        /// The request.
        request: Box<Request>,
        /// On what it depends.
        on: &'static str,
        /// The answer to the request alone.
        alone: Box<Outcome>,
        /// The other answer.
        found: Box<Outcome>,
    },
    /// An answer has not the parts or the shapes asked for.
    #[error("{what}: expected {expected}, found {found}")]
    Shape {
        /// What is counted.
        what: &'static str,
        /// The right count.
        expected: usize,
        /// The count found.
        found: usize,
    },
    /// A judge's requests for one item differ from one time to the next.
    #[error("it asks differently each time about the same item")]
    NotPure {
        /// The judge's name.
        judge: String,
    },
    /// A judge cannot do without what was not read, gives a value that is none, or gives an item another verdict beside others than alone.
    #[error("{problem}")]
    Judge {
        /// The judge's name.
        judge: String,
        /// What it does.
        problem: String,
    },
    /// A text was not cut before the text that was to end it.
    #[error("the text {text:?} was to end before {stop:?}; found {found:?}")]
    NotStopped {
        /// The text without a stop text.
        text: String,
        /// The stop text.
        stop: String,
        /// The text found.
        found: String,
    },
    /// A request that cannot be met was not refused as it must be.
    #[error("{case} must end the run with {expected}, found {found}")]
    NotRefused {
        /// What is wrong with the request.
        case: &'static str,
        /// The error expected.
        expected: &'static str,
        /// What came instead.
        found: String,
    },
}

impl ContractBreach {
    /// Who breaks the contract, for messages.
    pub(crate) fn party(&self) -> String {
        match self {
            Self::NotPure { judge } | Self::Judge { judge, .. } => format!("judge {judge}"),
            _ => "the model".to_owned(),
        }
    }
}
