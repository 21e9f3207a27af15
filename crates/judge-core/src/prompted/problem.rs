/// Why a family cannot work.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FamilyProblem {
    /// The values of a pair's labels are no preferences.
    #[error(
        "the values of a pair's labels are {values:?}, expected 0 and 1, and ½ in between for a tie: preferences for the response shown first"
    )]
    NotPreferences {
        /// The values.
        values: Vec<f64>,
    },
    /// A field that the task needs is not in the template.
    #[error("the template of a {task} does not use {{{field}}}; it uses {used:?}")]
    FieldNotUsed {
        /// `pair` or `single`.
        task: &'static str,
        /// The field.
        field: &'static str,
        /// The fields that it uses.
        used: Vec<String>,
    },
    /// Another scale is wanted of a family that has but one.
    #[error("its verdict has {labels} labels and no scale of {points} points to choose")]
    NoSuchScale {
        /// The points wanted.
        points: u16,
        /// The labels it has.
        labels: usize,
    },
    /// Nothing may be written.
    #[error("max_new_tokens is 0, expected at least 1")]
    NoTokens,
}
