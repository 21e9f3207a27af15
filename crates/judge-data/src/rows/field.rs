//! What a column of a data set can mean.

use std::fmt;

/// What a column of a data set can mean: each field [says](Self::about) what it holds, and which [columns](Self::aliases) are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
#[allow(missing_docs)] // `about` says it
pub enum Field {
    Id,
    Prompt,
    Messages,
    Instruction,
    Response,
    ResponseA,
    ResponseB,
    Responses,
    Rubric,
    Reference,
    Human,
    Aspect,
    Split,
    State,
    Questions,
    Labels,
    Question,
    Contexts,
    Query,
    Documents,
    Document,
    Relevance,
}

impl Field {
    /// All fields.
    pub const ALL: [Self; 22] = [
        Self::Id,
        Self::Prompt,
        Self::Messages,
        Self::Instruction,
        Self::Response,
        Self::ResponseA,
        Self::ResponseB,
        Self::Responses,
        Self::Rubric,
        Self::Reference,
        Self::Human,
        Self::Aspect,
        Self::Split,
        Self::State,
        Self::Questions,
        Self::Labels,
        Self::Question,
        Self::Contexts,
        Self::Query,
        Self::Documents,
        Self::Document,
        Self::Relevance,
    ];

    /// Its name, which is also the first name that is looked for.
    pub fn as_str(self) -> &'static str {
        self.aliases()[0]
    }

    /// What it holds, in a few words.
    pub fn about(self) -> &'static str {
        match self {
            Self::Id => "a string or a whole number, unique, echoed unchanged",
            Self::Prompt => "text for the model as it is",
            Self::Messages => {
                "a conversation: objects with `role` and `content`, or with `from` and `value` as ShareGPT has them"
            }
            Self::Instruction => "what was asked",
            Self::Response => "what was answered",
            Self::ResponseA => "the first of two answers",
            Self::ResponseB => "the second of two answers",
            Self::Responses => "a list of answers to rank",
            Self::Rubric => "the criterion of the grade",
            Self::Reference => "a good answer",
            Self::Human => "what people gave: a number, or a list with one per rater",
            Self::Aspect => "which aspect of the response is graded",
            Self::Split => "`train`, `valid`, `test`, …",
            Self::State => "what typed questions are about: text or any JSON",
            Self::Questions => "typed questions by name",
            Self::Labels => "what people answered, by the name of the question",
            Self::Question => "what was asked, of an answer from retrieved contexts",
            Self::Contexts => "what was retrieved: a list of texts or of objects with a text, or one text",
            Self::Query => "what documents are searched for",
            Self::Documents => "a list of texts, or of objects with a `text`, to be put in order",
            Self::Document => "the one document of a row, where each row is a pair",
            Self::Relevance => {
                "how relevant people find each document: a list of numbers from 0 on, or the number of a pair"
            }
        }
    }

    /// The field of this name; `None` if there is none.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|field| field.as_str() == name)
    }

    /// The columns that are looked for unless others are chosen, in order of preference.
    pub fn aliases(self) -> &'static [&'static str] {
        match self {
            Self::Id => &["id", "idx"],
            Self::Prompt => &["prompt"],
            Self::Messages => &["messages", "conversations"],
            Self::Instruction => &["instruction", "question", "prompt"],
            Self::Response => &["response", "output", "prediction", "answer", "completion"],
            Self::ResponseA => &["response_a"],
            Self::ResponseB => &["response_b"],
            Self::Responses => &["responses"],
            Self::Rubric => &["rubric"],
            Self::Reference => &["reference"],
            Self::Human => &["human", "scores", "score"],
            Self::Aspect => &["aspect"],
            Self::Split => &["split"],
            Self::State => &["state"],
            Self::Questions => &["questions"],
            Self::Labels => &["labels"],
            Self::Question => {
                &["question", "user_input", "query", "input", "vars.query", "vars.question", "vars.input"]
            }
            Self::Contexts => &[
                "contexts",
                "retrieved_contexts",
                "retrieval_context",
                "documents",
                "context",
                "vars.contexts",
                "vars.context",
                "vars.documents",
            ],
            Self::Query => &["query"],
            Self::Documents => &["documents"],
            Self::Document => &["document"],
            Self::Relevance => &["relevance"],
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
