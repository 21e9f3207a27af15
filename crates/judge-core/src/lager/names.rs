//! Variants and choices of layers by the names that files and command lines have.

use std::str::FromStr;

use super::{States, Variant};
use crate::{Error, error::by_name};

impl FromStr for States {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        by_name("states", name, &Self::ALL, Self::as_str)
    }
}

impl FromStr for Variant {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        let all = [&Self::ALL[..], &[Self::LastExpectedBf16]].concat();
        by_name("score variant", name, &all, Self::as_str)
    }
}
