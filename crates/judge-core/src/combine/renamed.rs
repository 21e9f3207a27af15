use std::borrow::Cow;

use serde_json::Value;

use super::members::{Members, asked};
use crate::{Fields, Judge, JudgeError, Request, Rounds, Score};

/// The fields of a pair's responses.
pub(super) const RESPONSES: [&str; 2] = ["response_a", "response_b"];

/// An item some of whose fields are read under other names; whatever the item's size, a `&dyn Fields` can be made of it.
#[derive(Debug)]
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

impl<'a, Item: ?Sized> Renamed<'a, Item, 2> {
    /// An item whose fields `response_a` and `response_b` are exchanged.
    pub fn swapped(item: &'a Item) -> Self {
        let [a, b] = RESPONSES;
        Self { item, fields: [(a, b), (b, a)] }
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
        let mut names = self.item.names();
        for (here, there) in self.fields {
            if names.iter().any(|name| name == there) && !names.iter().any(|name| name == here) {
                names.push(here.to_owned());
            }
        }
        names
    }
}

/// One judge asked about several views of an item, which differ in what its fields are called.
pub(super) struct Views<'p, J, Item: ?Sized, const N: usize> {
    pub(super) judge: &'p J,
    pub(super) item: &'p Item,
    /// Of each view: what fields are called there, and in the item.
    pub(super) fields: Vec<[(&'static str, String); N]>,
    /// What becomes of the score of a view, by the judge's name and the view's number.
    pub(super) finish: fn(&str, usize, Score) -> Result<Score, JudgeError>,
}

impl<J, Item: ?Sized, const N: usize> Views<'_, J, Item, N> {
    fn view(&self, member: usize) -> Renamed<'_, Item, N> {
        let fields = self.fields[member].each_ref().map(|(here, there)| (*here, there.as_str()));
        Renamed { item: self.item, fields }
    }
}

impl<J: for<'i> Judge<dyn Fields + 'i>, Item: Fields + ?Sized, const N: usize> Members for Views<'_, J, Item, N> {
    fn count(&self) -> usize {
        self.fields.len()
    }

    fn ask(&self, member: usize, rounds: &Rounds<'_>) -> Result<Vec<Request>, JudgeError> {
        let view: &dyn Fields = &self.view(member);
        asked(self.judge, view, rounds)
    }

    fn decide(&self, member: usize, rounds: &Rounds<'_>) -> Result<Score, JudgeError> {
        let score = self.judge.decide(&self.view(member), rounds)?;
        (self.finish)(<J as Judge<dyn Fields>>::name(self.judge), member, score)
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
