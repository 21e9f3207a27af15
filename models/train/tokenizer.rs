//! The tokenizer of the tiny judge: byte-level pair merges learnt from training items.

use anyhow::Result;
use tiny_judge::planted::{Split, item, prompt, reply};
use tokenizers::models::bpe::{BPE, BpeTrainer};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::{AddedToken, NormalizerWrapper, Tokenizer, TokenizerBuilder};

/// Ends a turn, and with it generation.
pub(crate) const END: &str = "<|end|>";
/// Opens a turn of the person who asks.
pub(crate) const USER: &str = "<|user|>";
/// Opens a turn of the judge.
pub(crate) const ASSISTANT: &str = "<|assistant|>";
/// Opens a turn of standing instructions.
pub(crate) const SYSTEM: &str = "<|system|>";

/// Learns a vocabulary of `d_vocab` entries from the first `items` training items of `seed`.
///
/// The four markers and the 256 bytes are always in it, so every text can be encoded and each digit is an entry of its own.
pub(crate) fn train(d_vocab: usize, items: usize, seed: u64) -> Result<Tokenizer> {
    let bytes = ByteLevel::new(false, false, true);
    let mut tokenizer = TokenizerBuilder::<BPE, NormalizerWrapper, ByteLevel, ByteLevel, ByteLevel>::new()
        .with_model(BPE::default())
        .with_normalizer(None)
        .with_pre_tokenizer(Some(bytes))
        .with_post_processor(None)
        .with_decoder(Some(bytes))
        .build()
        .map_err(anyhow::Error::from_boxed)?;
    let special = [END, USER, ASSISTANT, SYSTEM].map(|text| AddedToken::from(text, true));
    let mut trainer = BpeTrainer::builder()
        .show_progress(false)
        .vocab_size(d_vocab)
        .initial_alphabet(ByteLevel::alphabet().into_iter().collect())
        .special_tokens(special.to_vec())
        .build();
    let texts = (0..items)
        .map(|index| item(Split::Train, index, seed))
        .map(|item| prompt(&item) + "\n" + &reply(&item, item.scores[0]));
    tokenizer.train(&mut trainer, texts).map_err(anyhow::Error::from_boxed)?;
    Ok(tokenizer.into())
}
