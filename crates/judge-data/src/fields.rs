//! What the fields of a user's row mean: which column holds which, and what its value says.

pub(crate) mod columns;
pub(crate) mod field;
pub(crate) mod grades;
pub(crate) mod human;
pub(crate) mod messages;
pub(crate) mod reading;
pub(crate) mod texts;
