use std::borrow::Cow;

use judge_core::Fields;

use super::Item;

/// `instruction`, `response` and `rubric`, for prompt templates.
impl Fields for Item {
    fn field(&self, name: &str) -> Option<Cow<'_, str>> {
        match name {
            "instruction" => Some(self.instruction.as_str().into()),
            "response" => Some(self.response.as_str().into()),
            "rubric" => Some(self.rubric.into()),
            _ => None,
        }
    }

    fn names(&self) -> Vec<String> {
        ["instruction", "response", "rubric"].map(str::to_owned).to_vec()
    }
}
