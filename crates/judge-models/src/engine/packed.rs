//! The fast path on the CPU: weights packed in bf16 or f32, activations in f32, many sequences of any lengths in one pass, and
//! what they share at their beginning in a decoder computed once.
//!
//! Every body here gives a row the same bits whatever else is in the pass, however the pass is cut and however many threads
//! work on it; that is what lets sequences share passes and prefixes freely.

mod attention;
#[cfg(target_arch = "x86_64")]
mod blocked;
#[cfg(test)]
mod cases;
mod columns;
mod conv;
mod decoder;
mod delta;
mod encoder;
mod encoder_passes;
mod entropy;
mod experts;
mod gather;
#[cfg(target_arch = "x86_64")]
mod gather_on_unit;
mod kernel;
mod keys;
#[cfg(feature = "bench")]
mod limits;
mod lines;
mod load;
mod pack;
mod places;
mod plan;
#[cfg(target_arch = "x86_64")]
mod processor;
mod rate;
mod rows;
mod run;
mod softmax;
mod tile;
mod token_inputs;
#[cfg(target_arch = "x86_64")]
mod unit;
pub(crate) mod vector;

pub(crate) use decoder::PackedDecoder;
#[cfg(test)]
pub(crate) use decoder::{Angles, Span};
pub(crate) use encoder::PackedEncoder;
pub use kernel::Kernel;
pub(crate) use kernel::Supported;
#[cfg(any(test, feature = "bench"))]
pub(crate) use keys::Keys;
pub(crate) use rate::product_rate;
#[cfg(test)]
pub(crate) use rows::BufferPool;
#[cfg(feature = "bench")]
pub(crate) use {
    attention::{Queries, Settings, Sight},
    gather::attend,
    keys::KeyShape,
    limits::{Attention, rate_in_registers, rate_near},
    lines::Lines,
    pack::PackedLinear,
    rate::Product,
    tile::Word,
};

use judge_core::TokenId;

use super::Engine;
use crate::Error;
use crate::reading::groups::Group;
use crate::reading::passes::Passes;

impl Engine for PackedDecoder {
    fn kernel(&self) -> Option<Kernel> {
        Some(self.kernel.kernel())
    }

    fn head_rows(&self, tokens: &[TokenId]) -> Result<Vec<f32>, Error> {
        Ok(self.rows_of_head(tokens))
    }

    fn passes<'a>(&'a self, group: &'a Group<'a>, room: usize) -> Box<dyn Passes + 'a> {
        Box::new(run::SharedPasses::new(self, group, room))
    }
}

impl Engine for PackedEncoder {
    fn kernel(&self) -> Option<Kernel> {
        Some(self.kernel.kernel())
    }

    /// There is no head: requests that read one are refused before they come here.
    fn head_rows(&self, _: &[TokenId]) -> Result<Vec<f32>, Error> {
        Err(Error::NothingRead)
    }

    fn passes<'a>(&'a self, group: &'a Group<'a>, room: usize) -> Box<dyn Passes + 'a> {
        Box::new(encoder_passes::EncoderPasses::new(self, group, room))
    }
}
