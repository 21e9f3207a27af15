//! The options that several commands have.

pub(crate) mod bars;
pub(crate) mod decisions;
pub(crate) mod files;
pub(crate) mod judged_pairs;
pub(crate) mod lager;
pub(crate) mod layers;
pub(crate) mod model_args;
pub(crate) mod prompt_judge;
pub(crate) mod rerank;
pub(crate) mod scale_out;
pub(crate) mod service;

use clap::{Args, Command, Id};

/// The options of a group by clap's own list, but for some: what an option that takes the group's place cannot be given with. An option
/// that the group gets later is in it.
pub(crate) fn ids_of<A: Args>(but: &[&str]) -> Vec<Id> {
    let of_group = A::augment_args(Command::new("group"));
    let ids: Vec<Id> = of_group.get_arguments().map(|argument| argument.get_id().clone()).collect();
    debug_assert!(but.iter().all(|but| ids.iter().any(|id| id == but)), "{but:?} of {ids:?}");
    ids.into_iter().filter(|id| !but.iter().any(|but| id == but)).collect()
}
