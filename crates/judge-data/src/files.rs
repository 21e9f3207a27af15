//! Files whatever is in them: what appears whole or not at all, what may be written where, what is no file of ours.

pub(crate) mod atomic;
pub(crate) mod document;
pub(crate) mod fault;
pub(crate) mod foreign;
pub(crate) mod lock;
pub(crate) mod paths;
pub(crate) mod python_json;
