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

/// Each field, in the order of its variants, with what it holds and which columns are looked for.
const TABLE: &[(Field, &str, &[&str]); 22] = &[
    (Field::Id, "a string or a whole number, unique, echoed unchanged", &["id", "idx"]),
    (Field::Prompt, "text for the model as it is", &["prompt"]),
    (
        Field::Messages,
        "a conversation: objects with `role` and `content`, or with `from` and `value` as ShareGPT has them",
        &["messages", "conversations"],
    ),
    (Field::Instruction, "what was asked", &["instruction", "question", "prompt"]),
    (Field::Response, "what was answered", &["response", "output", "prediction", "answer", "completion"]),
    (Field::ResponseA, "the first of two answers", &["response_a"]),
    (Field::ResponseB, "the second of two answers", &["response_b"]),
    (Field::Responses, "a list of answers to rank", &["responses"]),
    (Field::Rubric, "the criterion of the grade", &["rubric"]),
    (Field::Reference, "a good answer", &["reference"]),
    (Field::Human, "what people gave: a number, or a list with one per rater", &["human", "scores", "score"]),
    (Field::Aspect, "which aspect of the response is graded", &["aspect"]),
    (Field::Split, "`train`, `valid`, `test`, …", &["split"]),
    (Field::State, "what typed questions are about: text or any JSON", &["state"]),
    (Field::Questions, "typed questions by name", &["questions"]),
    (Field::Labels, "what people answered, by the name of the question", &["labels"]),
    (
        Field::Question,
        "what was asked, of an answer from retrieved contexts",
        &["question", "user_input", "query", "input", "vars.query", "vars.question", "vars.input"],
    ),
    (
        Field::Contexts,
        "what was retrieved: a list of texts or of objects with a text, or one text",
        &[
            "contexts",
            "retrieved_contexts",
            "retrieval_context",
            "documents",
            "context",
            "vars.contexts",
            "vars.context",
            "vars.documents",
        ],
    ),
    (Field::Query, "what documents are searched for", &["query"]),
    (Field::Documents, "a list of texts, or of objects with a `text`, to be put in order", &["documents"]),
    (Field::Document, "the one document of a row, where each row is a pair", &["document"]),
    (
        Field::Relevance,
        "how relevant people find each document: a list of numbers from 0 on, or the number of a pair",
        &["relevance"],
    ),
];

impl Field {
    /// All fields.
    pub const ALL: [Self; 22] = {
        let mut all = [Self::Id; 22];
        let mut place = 0;
        while place < all.len() {
            all[place] = TABLE[place].0;
            assert!(all[place] as usize == place);
            place += 1;
        }
        all
    };

    /// Its name, which is also the first name that is looked for.
    pub fn as_str(self) -> &'static str {
        self.aliases()[0]
    }

    /// What it holds, in a few words.
    pub fn about(self) -> &'static str {
        TABLE[self as usize].1
    }

    /// The field of this name; `None` if there is none.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|field| field.as_str() == name)
    }

    /// The columns that are looked for unless others are chosen, in order of preference.
    pub fn aliases(self) -> &'static [&'static str] {
        TABLE[self as usize].2
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
