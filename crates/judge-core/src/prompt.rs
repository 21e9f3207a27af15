use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One turn of a conversation. Read from data, other keys of a turn are left out: data sets of others name speakers, weights and more.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Message {
    /// `system`, `user`, `assistant` or what the model's template knows.
    pub role: String,
    /// Plain text. Text that spells a control token stays text.
    pub content: String,
}

impl Message {
    /// A message of the given role.
    pub fn new(role: impl Into<String>, content: impl Into<String>) -> Self {
        Self { role: role.into(), content: content.into() }
    }

    /// A user message.
    pub fn user(content: impl Into<String>) -> Self {
        Self::new("user", content)
    }
}

/// What a model is asked: text only. Tokens are the backbone's business.
///
/// In files it is `{"raw": "…"}` or
/// `{"chat": {"messages": […], "template_args": {…}, "trusted_prefill": "…", "prefill": "…"}}`; all but the messages
/// may be left out, and other keys beside these are refused. `{"whole": {…}}` is a [`WholePrompt`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Prompt {
    /// Text for the tokenizer as it is, with the special tokens that the tokenizer itself adds.
    Raw(String),
    /// Messages for the model's own chat template, with the generation prompt opened after them.
    Chat {
        /// The conversation, oldest first.
        messages: Vec<Message>,
        /// Further variables of the template, e.g. `enable_thinking`.
        #[serde(default)]
        template_args: BTreeMap<String, Value>,
        /// Text put after the rendered template whose control tokens are control tokens, as in the template itself:
        /// what closes a thinking turn that the template opens. Never made from an item's text.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        trusted_prefill: String,
        /// Plain text put after all that, before tokenisation: the opening of the reply.
        #[serde(default)]
        prefill: String,
    },
    /// A text that a Jinja template of its own makes, in the place of the model's: the prompt of a decision model.
    Whole(Box<WholePrompt>),
}

/// What a template of its own makes a whole prompt of.
///
/// The control tokens that the template writes are control tokens; those that its values spell stay text. Two words of the template
/// become no token: `<|mark|>`, at which the prompt may end, and `<|split|>`. At both the text is cut, and the pieces are
/// tokenised apart. This is how transformers prompts decision models (`decision_template.jinja`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WholePrompt {
    /// The template's text. Beside its values it sees what a chat template sees, with one message of no text.
    pub template: String,
    /// Its variables.
    pub values: Map<String, Value>,
    /// Where the prompt ends.
    pub end: PromptEnd,
    /// Plain text behind that end.
    #[serde(default)]
    pub prefill: String,
    /// What is cut where the prompt is too long; without it such a prompt is not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<Cut>,
}

/// The text of a [`WholePrompt`] that loses tokens at its end where the prompt is too long. What the template writes behind it stays.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cut {
    /// The name of the value, which is a text.
    pub value: String,
    /// Most tokens of the whole prompt, where these are fewer than the model can read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most_tokens: Option<usize>,
}

/// Where a [`WholePrompt`] ends: before one of the marks that its template writes. A template without marks has one at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PromptEnd {
    /// Which mark, from 0.
    pub mark: usize,
    /// How many marks there are to be; another number is the item's own fault.
    pub of: usize,
}

/// The arguments of transformers' `apply_chat_template` by which a conversation is cut.
const TRUNCATION: &str = "truncation";
const LONGEST_FIRST: &str = "longest_first";
const MAX_LENGTH: &str = "max_length";

impl Prompt {
    /// One user message, no template arguments, no prefill.
    pub fn user(content: impl Into<String>) -> Self {
        Self::chat(vec![Message::user(content)])
    }

    /// A conversation, no template arguments, no prefill.
    pub fn chat(messages: Vec<Message>) -> Self {
        let (trusted_prefill, prefill) = (String::new(), String::new());
        Self::Chat { messages, template_args: BTreeMap::new(), trusted_prefill, prefill }
    }

    /// The same prompt with `text` put at the very end, after a chat template's output.
    #[must_use]
    pub fn with_prefill(mut self, text: &str) -> Self {
        match &mut self {
            Self::Raw(raw) => raw.push_str(text),
            Self::Chat { prefill, .. } => prefill.push_str(text),
            Self::Whole(whole) => whole.prefill.push_str(text),
        }
        self
    }

    /// The same prompt with `text`, which may hold control tokens, between a chat template's output and the [prefill](Self::with_prefill).
    /// A raw prompt's control tokens are control tokens anyway: `text` is put at its end. A whole prompt's template writes its own.
    ///
    /// For text of the program's own only: from an item, it could end the model's turn and open another.
    #[must_use]
    pub fn with_trusted_prefill(mut self, text: &str) -> Self {
        match &mut self {
            Self::Raw(raw) => raw.push_str(text),
            Self::Chat { trusted_prefill, .. } => trusted_prefill.push_str(text),
            Self::Whole(whole) => whole.template.push_str(text),
        }
        self
    }

    /// The same prompt with one template argument set. A raw prompt has no template and stays as it is.
    #[must_use]
    pub fn with_template_arg(mut self, key: impl Into<String>, value: Value) -> Self {
        if let Self::Chat { template_args, .. } = &mut self {
            template_args.insert(key.into(), value);
        }
        self
    }

    /// The same conversation, which is cut where it has more tokens than these, or than the model can read: of a pair of texts without a chat
    /// template the longer text first, as transformers does (`truncation="longest_first"`), else the end of the last turn. What a template
    /// writes behind that turn stays. A reading says how many tokens were cut ([`Reading::cut_tokens`](crate::Reading::cut_tokens)). Other
    /// prompts stay as they are; [`WholePrompt::cut`] is theirs.
    #[must_use]
    pub fn with_truncation(self, most_tokens: Option<usize>) -> Self {
        let cut = self.with_template_arg(TRUNCATION, LONGEST_FIRST.into());
        match most_tokens {
            Some(most) => cut.with_template_arg(MAX_LENGTH, most.into()),
            None => cut,
        }
    }

    /// Whether the prompt may be cut, and to how many tokens at most, besides those that the model can read.
    pub fn truncation(&self) -> Option<Option<usize>> {
        match self {
            Self::Raw(_) => None,
            Self::Chat { template_args, .. } => {
                let most = template_args.get(MAX_LENGTH).and_then(Value::as_u64).map(|most| most as usize);
                (template_args.get(TRUNCATION)? == LONGEST_FIRST).then_some(most)
            }
            Self::Whole(whole) => whole.cut.as_ref().map(|cut| cut.most_tokens),
        }
    }

    /// Bytes of text, that of messages and of what opens the reply; what a template adds is not among them.
    pub fn text_bytes(&self) -> usize {
        match self {
            Self::Raw(text) => text.len(),
            Self::Chat { messages, trusted_prefill, prefill, .. } => {
                let messages: usize = messages.iter().map(|message| message.content.len()).sum();
                messages + trusted_prefill.len() + prefill.len()
            }
            Self::Whole(whole) => whole.values.values().map(text_bytes).sum::<usize>() + whole.prefill.len(),
        }
    }

    /// True if nothing is asked: no text, or no message with any. What opens the reply, a prefill, asks nothing, and a
    /// template may still add text of its own.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Raw(text) => text.is_empty(),
            Self::Chat { messages, .. } => messages.iter().all(|m| m.content.is_empty()),
            Self::Whole(whole) => whole.template.is_empty(),
        }
    }
}

/// Bytes of the texts in a value.
pub(crate) fn text_bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(values) => values.iter().map(text_bytes).sum(),
        Value::Object(fields) => fields.iter().map(|(name, value)| name.len() + text_bytes(value)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}
