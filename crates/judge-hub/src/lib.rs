//! The network: downloads from the Hugging Face hub, and models behind services; for `judge-models`, without a promise of stability.
//!
//! Nothing else in the workspace opens a connection. Without features nothing here does either: what is left is where the hub's cache
//! has a model, and what a program was told about the hub.
//!
//! ```text
//! snapshot ─► client   which files a revision has, what the hub states of one, and its bytes        feature `hub`
//!          ─► store    one file into the cache, compared with what the hub states of it            feature `hub`
//! cache, options       names of folders in the cache; where it is, and how the hub is reached
//! api                  a `TextModel` that asks a service                                           feature `api`
//! agent, proxy, retry_after   what both clients share
//! ```
//!
//! Not here: which files a model needs, and when the cache will do. `judge-models` knows the files of a model folder and asks for each
//! by its name (`hub.rs` and `hub/fetch.rs` there).
//!
//! The client of services follows no redirect and keeps its key in a type that does not show it. The hub's client follows redirects and
//! sends its token to the endpoint alone.

#[cfg(any(feature = "api", feature = "hub"))]
mod agent;
#[cfg(feature = "api")]
pub mod api;
pub mod cache;
#[cfg(feature = "hub")]
mod client;
pub mod error;
pub mod options;
#[cfg(any(feature = "api", feature = "hub"))]
mod proxy;
#[cfg(any(feature = "api", feature = "hub"))]
mod retry_after;
#[cfg(feature = "hub")]
pub mod snapshot;
#[cfg(feature = "hub")]
mod store;
