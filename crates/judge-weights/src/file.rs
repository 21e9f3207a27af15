//! The names of the files of weights and of adapters. What is done with each is said by the table of a folder's files in
//! `judge-models` (`folder/file.rs`).

/// All weights in one file.
pub const WEIGHTS: &str = "model.safetensors";
/// The index that says which shard has which tensor.
pub const WEIGHTS_INDEX: &str = "model.safetensors.index.json";
/// All weights in one file of torch.save.
pub const PICKLE: &str = "pytorch_model.bin";
/// The same in shards.
pub const PICKLE_INDEX: &str = "pytorch_model.bin.index.json";
/// PEFT's description of an adapter. Beside whole weights it does not count.
pub const ADAPTER_CONFIG: &str = "adapter_config.json";
/// The tensors of an adapter.
pub const ADAPTER_WEIGHTS: &str = "adapter_model.safetensors";
/// The same as torch.save writes them.
pub const ADAPTER_PICKLE: &str = "adapter_model.bin";
