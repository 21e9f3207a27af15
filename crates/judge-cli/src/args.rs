//! The options that several commands have.

pub mod bars;
pub mod decisions;
pub mod files;
pub mod judged_pairs;
pub mod lager;
pub mod layers;
pub mod model_args;
pub mod numbers;
pub mod prompt_judge;
pub mod rerank;
pub mod scale_out;
pub mod service;
pub mod words;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Command, Id};

/// One of these values, by its name.
pub fn one_of<T: Copy + Send + Sync + 'static>(
    values: &'static [(&'static str, T)],
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(values.iter().map(|(name, _)| *name)).try_map(move |name: String| {
        let value = values.iter().find(|(known, _)| *known == name);
        value.map(|(_, value)| *value).ok_or("no value has this name") // the parser before knows the names
    })
}

/// The options of a group by clap's own list, but for some: what an option that takes the group's place cannot be given with. An option
/// that the group gets later is in it.
pub fn ids_of<A: Args>(but: &[&str]) -> Vec<Id> {
    let of_group = A::augment_args(Command::new("group"));
    let ids: Vec<Id> = of_group.get_arguments().map(|argument| argument.get_id().clone()).collect();
    debug_assert!(but.iter().all(|but| ids.iter().any(|id| id == but)), "{but:?} of {ids:?}");
    ids.into_iter().filter(|id| !but.iter().any(|but| id == but)).collect()
}
