//! The integration tests of judge-core, in one binary: there is one link instead of one for each file.

mod asking;
mod backbone;
mod builder;
mod combine;
mod company;
mod conventions;
mod decision;
mod fit;
mod inspector;
mod one;
mod probes;
mod prompted;
mod queue;
mod rag;
mod rerank;
mod reward;
mod runner;
mod serving;
mod settings;
mod tournament;
