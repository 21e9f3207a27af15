/// What is wrong with a template, or with an item that meets it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateProblem {
    /// A brace that is neither part of a placeholder nor doubled.
    #[error("brace at byte {offset} of {place}: expected {{name}}, {{{{ or }}}}")]
    Brace {
        /// `text`, `message N` (from 0) or `prefill`.
        place: String,
        /// Byte offset of the brace in that text.
        offset: usize,
    },
    /// A prompt that a Jinja template makes, which has values and no placeholders.
    #[error("a whole prompt has a template of its own, and no placeholders")]
    Whole,
    /// A text is given for a field that the template does not use.
    #[error("a text is given for the field {field:?}, which the template does not use; it uses {used:?}")]
    NotUsed {
        /// The field.
        field: String,
        /// The fields that it uses.
        used: Vec<String>,
    },
    /// A file has no prompt, or two.
    #[error("expected one of the keys `raw` and `chat`, found {found}")]
    NotOnePrompt {
        /// `both` or `neither`.
        found: &'static str,
    },
    /// The item has no such field, or none but null.
    #[error("the template uses {{{field}}}, and the item has no field {field:?}{}", besides(available))]
    MissingField {
        /// The field that the template names.
        field: String,
        /// What the item says it has ([`Fields::names`](crate::Fields::names)); empty where it does not say.
        available: Vec<String>,
    },
    /// The field of the item is a list or an object.
    #[error("the template uses {{{field}}}, expected text, a number or a boolean, found {found}; make one text of it")]
    NotText {
        /// The field that the template names.
        field: String,
        /// `a list` or `an object`.
        found: &'static str,
    },
}

/// What an item has besides; nothing where it does not say.
fn besides(available: &[String]) -> String {
    if available.is_empty() { String::new() } else { format!("; it has {available:?}") }
}
