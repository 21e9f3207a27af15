//! Decoder-only transformers and encoders from Hugging Face folders, read from the inside.
//!
//! [`Model`] loads a folder and implements [`judge_core::Backbone`]: one pass over a prompt brings label logits of any layers, pooled
//! states, attention entropies, log-probabilities and generated text. What leaves it is plain host data; no Burn type is in the public API.
//!
//! ```
//! use std::ops::ControlFlow;
//!
//! use judge_core::{Backbone, Lens, Outcome, Prompt, Request, TextModel, Want, request::{LabelRead, ReadAt}};
//! use judge_models::{LoadOptions, Model};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/families/llama-on"); // any Hugging Face folder
//!     let model = Model::load(folder, &LoadOptions::default())?;
//!
//!     let labels = LabelRead {
//!         tokens: vec![4, 5], // or `model.token("yes")?`
//!         layers: model.info().layers(),
//!         lens: Lens::Raw,
//!         at: ReadAt::PromptEnd,
//!         label_mass: false,
//!     };
//!     let want = Want { labels: vec![labels.clone()], ..Want::default() };
//!     let request = Request { prompt: Prompt::Raw("a b".into()), want };
//!     model.run(&[request], &mut |_, outcome| {
//!         match outcome {
//!             Outcome::Read(reading) => {
//!                 let read = reading.labels(&labels).expect("asked for");
//!                 assert_eq!(read.steps[0].logits.len(), (model.info().n_layers + 1) * 2);
//!             }
//!             Outcome::Unscored(reason) => panic!("{reason}"),
//!         }
//!         ControlFlow::Continue(())
//!     })?;
//!     Ok(())
//! }
//! ```
//!
//! Families: those of the table in `docs/models.md`; any other is refused by name. RoPE: default, linear, dynamic, llama3, yarn, longrope,
//! proportional. Checkpoints in f32, f16 or bf16 safetensors, one file or shards, or as `torch.save` writes them, whose pickles are read
//! without running anything; quantised ones (FP8, MXFP4, compressed-tensors, GPTQ, AWQ, bitsandbytes) and GGUF files, each a model by
//! itself; tokenizers of `tokenizer.json` or of a SentencePiece file; on the processor their codes stay in memory as they are, and any
//! other folder can be kept in 8 bits ([`WeightForm`]). Sequence classifiers, such as reward models, load with their head of labels
//! ([`Model::reward_head`]); LoRA adapters are merged as they are loaded ([`LoadOptions::adapters`]), or into a folder of their own
//! ([`merge_adapters`]). Everything is compared with transformers, to about 1e-6 in f32.
//!
//! Encoders load the same way: `bert`, `roberta`, `xlm-roberta`, `modernbert` and `deberta-v2`.
//! Of an encoder pooled states are read, of all layers, and what the head of a sequence classifier makes of them
//! ([`Model::reward_head`]), of a cross-encoder for pairs of texts; what needs logits over a vocabulary
//! is refused ([`BackboneError::Unsupported`](judge_core::model::BackboneError::Unsupported)).
//!
//! # The way of a prompt
//!
//! ```text
//! folder ─► judge-arch  config.json becomes a description of every block, with the names of its tensors
//!        ─► weights     tensors are checked, converted and handed over one by one
//!        ─► engine      holds them: packed for the CPU, or as Burn's tensors on any device
//!        ─► judge-text  tokenizer and chat template
//!
//! Request ─► judge-text  tokens of the prompt, and of continuations behind it
//!         ─► reading     jobs: the sequences that answer it, grouped by what can share passes
//!         ─► engine      passes: over prompts, then over one new token of each text
//!         ─► reading     label logits, pooled states, log-probabilities; the next token, until the text ends
//!         ─► Outcome     as soon as all jobs of the request are done
//! ```
//!
//! Arrows between these modules run downwards only: an engine knows jobs, not the model, and nothing but `reading/driver.rs` chooses
//! tokens. The words of the source:
//!
//! | word | what it is |
//! |---|---|
//! | job | one sequence that is fed to the model: a request's prompt, or its prompt and a continuation |
//! | group | jobs that run through the same blocks with the same rotations |
//! | pass | one run through the blocks |
//! | segment | successive positions that are computed in one go, for one sequence or for several that agree up to its end |
//! | span | a segment, or a new token, as part of a pass |
//! | dependants | the segments that directly follow another and need its keys, which are kept until the last of them is done |
//! | memory | all that a block without keys knows of a sequence's past: the states of its heads, and the last rows before its convolution |
//! | place | where the keys of a block lie: its own, or those of the block whose keys it looks at |
//! | token inputs | what each block gets of a position's token besides the residual stream (Gemma 4's per-layer embeddings) |
//! | tile | 32 positions of keys and values, at fixed places of a sequence, so that sums have one order |
//! | panel | 32 rows of a packed matrix |
//! | mask | which keys a query sees: causal, or, in an encoder, those on both sides; all of them or a sliding window |
//! | walk | attention of some queries over the tiles that they see |
//! | stage | the blocks that lie on one of several devices |
//! | lens | whether an inner state goes to the head as it is or through the final norm |
//!
//! What the field calls otherwise, and where to look for it:
//!
//! | term | here |
//! |---|---|
//! | KV cache | `KvCache` in `engine/packed/kv_cache.rs`, laid out by `KvLayout` in `kv_layout.rs`; `Slots` in `engine/tensor/slots.rs` |
//! | prefix tree, prefix caching | the plan of segments in `engine/segments.rs`; jobs of one group share keys, separate runs do not |
//! | chunked prefill | segments of at most `PASS` positions, in `engine/packed/run.rs` |
//! | scheduler, continuous batching | `SharedPasses` in `engine/packed/run.rs`: each step feeds one new token of many texts |
//! | preemption, recomputation | a text that has no room to grow is preempted: its keys are dropped and computed again later (`engine/packed/run.rs`) |
//! | GEMM micro-kernel | `multiply_add` in `tile.rs` of `judge-kernels`, and the bodies in `tile/` |
//! | RMSNorm, LayerNorm | `NormKind::RmsNorm` and `NormKind::LayerNorm` in `functions` of `judge-kernels` |
//! | grouped-query attention (GQA) | fewer `n_kv_heads` than `n_heads` in `spec.rs` of `judge-arch` |
//! | dequantise | `codes.rs` and `rows.rs` of `judge-weights`; pieces of packed panels in `piece.rs` of `judge-kernels` |
//! | logit lens | label logits of inner layers, by `judge_core::Lens` |
//!
//! Cargo features: `cuda` runs models on NVIDIA GPUs ([`Device::Cuda`]; docs/gpu.md says what it needs and what of it has been run);
//! `wgpu` is for GPUs of other makers ([`Device::Wgpu`]; run on a software adapter alone);
//! `hub` fetches models that are not in the hub's cache; `train` adds training, of whole models or of adapters;
//! `api` adds `ApiModel`, a model behind a service that speaks OpenAI's
//! chat-completions API, which only writes text (docs/labels.md). `flex` is Burn's own backend for the
//! processor, which `train` brings along and reading a model does not need. `emulated-unit` is for this crate's own tests.
//!
//! # When not to use this crate
//!
//! - For serving text: it writes for judges, a few words each, and takes no requests while it does.
//! - For models of other families: they are refused by name.
//! - To save memory by quantisation on a GPU, where weights of few bits are expanded as they are loaded.

// What is left of it is named where it stands; files are mapped by `judge-weights`, instructions are `judge-kernels`'.
#![deny(unsafe_code)]

mod base;
mod checked;
mod decision;
mod device;
mod engine;
mod error;
mod fingerprint;
#[cfg(test)]
mod fixtures;
mod folder;
mod from_str;
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing;
mod gguf;
mod hub;
mod known;
mod merge;
mod model;
mod new_folder;
mod reading;
mod rerank;
mod reward_head;
#[cfg(feature = "train")]
pub mod train;
mod value_head;
mod weights;

pub use base::judge_template;
pub use decision::{DecisionFolder, TemplatePrompt, TurnPrompt};
pub use device::{CudaProblem, Device, DevicesProblem, WeightForm};
pub use engine::product_rate;
pub use error::{Error, PackedCacheProblem};
pub use folder::file::JUDGE_TEMPLATE;
pub use hub::ModelSource;
pub use judge_arch::ConfigProblem;
#[cfg(feature = "api")]
pub use judge_hub::api::{
    ApiError, ApiKey, ApiModel, ApiProblem, ApiRoute, ApiSettings, ApiUsage, KeyProblem, MaxTokensField, Prices,
};
pub use judge_hub::cache::FoundModel;
pub use judge_hub::error::{HubError, HubFileProblem};
pub use judge_hub::options::{Download, HubOptions};
pub use judge_jinja::{Date, DateError};
pub use judge_kernels::kernel::{Kernel, UnknownKernel};
pub use judge_kernels::supported::NoKernel;
pub use judge_text::error::Error as TextError;
pub use judge_text::{ChatTokens, TextOptions};
pub use judge_weights::dtype::{Dtype, UnknownDtype};
pub use judge_weights::error::{
    AdapterProblem, Error as WeightsError, FileProblem, IndexProblem, StandIn, TensorProblem,
};
pub use judge_weights::gguf::problem::GgufProblem;
pub use known::KnownModel;
pub use merge::{Merged, merge_adapters};
pub use model::{LoadOptions, Model};
pub use rerank::{RerankFolder, RerankForm, RerankFormProblem, RerankOptions, RolesPrompt, WholeRerankPrompt};

#[cfg(test)]
mod attention_entropy_tests;
#[cfg(test)]
mod blocks_run_tests;
#[cfg(test)]
mod kernel_bits_tests;
#[cfg(test)]
mod log_prob_tests;
#[cfg(test)]
mod parity_tests;
#[cfg(test)]
mod quantised_tests;
#[cfg(test)]
mod stop_tests;
#[cfg(test)]
mod test_models;
