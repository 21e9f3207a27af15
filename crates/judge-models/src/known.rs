//! What people are told of the models that are read: the tables of the documentation are made of it.

use judge_arch::{described_decoders, described_encoders, described_towers};
use judge_weights::gguf::kind::Kind;
use judge_weights::lora::kinds;
use judge_weights::quantised::methods;

use crate::gguf;

/// A kind of model folder that is read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KnownModel {
    /// `model_type` of its `config.json`.
    pub model_type: &'static str,
    /// What people call its models.
    pub models: &'static str,
    /// What is special about it; of a vision-language folder, the families that its text model may be of.
    pub notes: String,
}

impl KnownModel {
    /// The families of decoders, in alphabetical order.
    pub fn decoders() -> Vec<Self> {
        described_decoders().map(Self::of).collect()
    }

    /// The families of encoders, in alphabetical order.
    pub fn encoders() -> Vec<Self> {
        described_encoders().map(Self::of).collect()
    }

    /// Folders of vision and language, of which the text model is read, in alphabetical order.
    pub fn vision_language() -> Vec<Self> {
        let of = |(model_type, models, families): (_, _, Vec<&str>)| {
            let notes = families.iter().map(|family| format!("`{family}`")).collect::<Vec<_>>().join(", ");
            Self { model_type, models, notes }
        };
        described_towers().map(of).collect()
    }

    /// Architectures of GGUF files, each with the `model_type`s that it is read as, and what llama.cpp's converter changed of them, which is
    /// undone.
    pub fn of_gguf() -> Vec<(&'static str, &'static [&'static str], String)> {
        gguf::described().collect()
    }

    /// Types of tensors in GGUF files, each with the numbers of a block and the bits that one of them takes.
    pub fn gguf_types() -> Vec<(String, usize, f64)> {
        let of = |kind: Kind| (kind.to_string(), kind.elements(), 8.0 * kind.bytes() as f64 / kind.elements() as f64);
        Kind::all().map(of).collect()
    }

    /// Methods of quantised folders (`quant_method` of `config.json`), each with what is read of it and what there is to know about it.
    pub fn quantised() -> Vec<[&'static str; 3]> {
        methods().collect()
    }

    /// Adapters, each with what its folder has and what training writes of it; then what is refused.
    pub fn adapters() -> Vec<[String; 3]> {
        kinds().collect()
    }

    fn of([model_type, models, special]: [&'static str; 3]) -> Self {
        Self { model_type, models, notes: special.to_owned() }
    }
}
