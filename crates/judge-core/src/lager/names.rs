//! Variants and choices of layers by the names that files and command lines have.

use std::str::FromStr;

use super::{States, Variant};
use crate::Error;

impl FromStr for States {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        [Self::All, Self::DropLast].into_iter().find(|s| s.as_str() == name).ok_or_else(|| Error::UnknownName {
            what: "states",
            found: name.to_owned(),
            known: vec!["all", "drop-last"],
        })
    }
}

impl FromStr for Variant {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        let mut known = Self::ALL.into_iter().chain([Self::LastExpectedBf16]);
        known.clone().find(|variant| variant.as_str() == name).ok_or_else(|| Error::UnknownName {
            what: "score variant",
            found: name.to_owned(),
            known: known.by_ref().map(Self::as_str).collect(),
        })
    }
}
