//! What a column of a data set can mean.

use std::fmt;

/// What a column of a data set can mean.
///
/// | field | columns, the first that is there | what it holds |
/// |---|---|---|
/// | `id` | `id`, `idx` | a string or a whole number |
/// | `prompt` | `prompt` | text for the model as it is |
/// | `messages` | `messages`, `conversations` | a conversation: objects with `role` and `content`, or with `from` and `value` as ShareGPT has them |
/// | `instruction` | `instruction`, `question`, `prompt` | what was asked |
/// | `response` | `response`, `output`, `prediction`, `answer`, `completion` | what was answered |
/// | `response_a`, `response_b` | the same | the two answers of a pair |
/// | `responses` | `responses` | a list of answers that are ranked |
/// | `rubric` | `rubric` | by what the response is graded |
/// | `reference` | `reference` | a good answer |
/// | `human` | `human`, `scores`, `score` | what people gave: a number, or a list with one per rater |
/// | `aspect` | `aspect` | what of the response is graded |
/// | `split` | `split` | `train`, `valid`, `test`, … |
/// | `state` | `state` | what typed questions are about: text or any JSON |
/// | `questions` | `questions` | typed questions by name |
/// | `labels` | `labels` | what people answered, by the name of the question |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
#[allow(missing_docs)] // the table above
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
}

impl Field {
    /// All fields.
    pub const ALL: [Self; 16] = [
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
    ];

    /// Its name, which is also the first name that is looked for.
    pub fn as_str(self) -> &'static str {
        self.aliases()[0]
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
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
