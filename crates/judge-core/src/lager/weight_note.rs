use std::fmt;

/// A difference between what layer weights were fitted on and what they are used on, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WeightNote {
    /// How weights are of what differs: `on`, `with`, `under` or `in`.
    pub how: &'static str,
    /// What differs, with its article and a space behind it; empty where both sides say it.
    pub what: &'static str,
    /// What they were fitted on.
    pub fitted: String,
    /// What they are used on.
    pub used: String,
}

impl fmt::Display for WeightNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { how, what, fitted, used } = self;
        write!(f, "fitted {how} {what}{fitted}, used {how} {used}")
    }
}
