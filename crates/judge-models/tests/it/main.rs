//! The integration tests of judge-models, in one binary: there is one link instead of one for each file.

mod adapters;
mod bad_requests;
mod batch_invariance;
mod common;
mod decisions;
mod difference;
mod encoder_heads;
mod encoders;
mod experts;
mod folders;
mod gguf;
mod gguf_encoders;
mod heads;
mod loading;
mod pytorch;
mod reply;
mod rerank;
mod serving;
mod weight_forms;
