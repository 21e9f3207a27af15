use std::borrow::Cow;

use serde_json::Value;

use super::members::Members;
use crate::{Fields, Judge, JudgeError, Request, Rounds, Score};

/// An item some of whose fields are read under other names; whatever the item's size, a `&dyn Fields` can be made of it.
pub struct Renamed<'a, Item: ?Sized, const N: usize> {
    /// The item.
    pub item: &'a Item,
    /// What a field is called here, and in the item.
    pub fields: [(&'static str, &'a str); N],
}

impl<Item: ?Sized, const N: usize> Renamed<'_, Item, N> {
    fn there<'n>(&'n self, name: &'n str) -> &'n str {
        self.fields.iter().find(|(here, _)| *here == name).map_or(name, |(_, there)| there)
    }
}

impl<Item: Fields + ?Sized, const N: usize> Fields for Renamed<'_, Item, N> {
    fn field(&self, name: &str) -> Option<Cow<'_, str>> {
        self.item.field(self.there(name))
    }

    fn field_beside(&self, name: &str, shown: &[&str]) -> Option<Cow<'_, str>> {
        self.item.field_beside(self.there(name), shown)
    }

    fn json(&self, name: &str) -> Option<Cow<'_, Value>> {
        self.item.json(self.there(name))
    }

    fn names(&self) -> Vec<String> {
        self.item.names()
    }
}

/// Each of these fields of an item as the response of a judge of single responses.
pub(super) struct EachAsResponse<'p, J, Item: ?Sized> {
    pub(super) judge: &'p J,
    pub(super) item: &'p Item,
    pub(super) fields: Vec<Cow<'static, str>>,
}

impl<J, Item: ?Sized> EachAsResponse<'_, J, Item> {
    fn one(&self, member: usize) -> Renamed<'_, Item, 1> {
        Renamed { item: self.item, fields: [("response", &self.fields[member])] }
    }
}

impl<J: for<'i> Judge<dyn Fields + 'i>, Item: Fields + ?Sized> Members for EachAsResponse<'_, J, Item> {
    fn count(&self) -> usize {
        self.fields.len()
    }

    fn ask(&self, member: usize) -> Result<Vec<Request>, JudgeError> {
        self.judge.ask(&self.one(member))
    }

    fn follow_up(&self, member: usize, rounds: &Rounds<'_>) -> Result<Vec<Request>, JudgeError> {
        self.judge.follow_up(&self.one(member), rounds)
    }

    fn decide(&self, member: usize, rounds: &Rounds<'_>) -> Result<Score, JudgeError> {
        self.judge.decide(&self.one(member), rounds)
    }
}

/// A score that is a preference for the response shown first.
///
/// # Errors
/// [`JudgeError::Failed`] for a value outside 0 to 1, [`JudgeError::Unscored`] for one that is no finite number.
pub(super) fn preference(judge: &str, score: Score) -> Result<Score, JudgeError> {
    let score = score.finite()?;
    if (0.0..=1.0).contains(&score.value) {
        return Ok(score);
    }
    Err(crate::Error::NotAPreference { judge: judge.to_owned(), value: score.value }.into())
}
