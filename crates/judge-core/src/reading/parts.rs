//! The parts of a reading, by what was asked for.

use super::{Generated, LabelLogits, LabelStep, Reading, TokenLogProbs};
use crate::{
    Error, Layer, Scale,
    request::{LabelRead, Pooling, ReadAt, ReplyPooling, Signal},
    scale::ScoreDistribution,
};

impl Reading {
    /// The label logits of a read: those with its labels, lens and position, and at least its layers.
    ///
    /// # Errors
    /// [`Error::NotRead`] if the reading does not answer that read.
    pub fn labels(&self, read: &LabelRead) -> Result<&LabelLogits, Error> {
        let found = self.labels.iter().find(|found| {
            let same = found.tokens == read.tokens && found.lens == read.lens && found.at == read.at;
            same && read.layers.iter().all(|layer| found.layers.contains(layer))
        });
        found.ok_or(Error::NotRead { what: "logits of these labels, with this lens, at this position" })
    }

    /// What one layer says at the prompt's end, as probabilities over the scale whose labels are `read`'s tokens.
    ///
    /// # Errors
    /// [`Error::NotRead`] and [`Error::LayerNotRead`] if the reading does not answer `read`, [`Error::Shape`] if the scale has another
    /// number of labels.
    pub fn distribution(&self, read: &LabelRead, layer: Layer, scale: &Scale) -> Result<ScoreDistribution, Error> {
        let labels = self.labels(read)?;
        let step = labels.prompt_end()?;
        let row = labels.needed_row(step, layer)?;
        ScoreDistribution::softmax(scale, &row.iter().map(|&z| f64::from(z)).collect::<Vec<_>>())
    }

    /// The new text.
    ///
    /// # Errors
    /// [`Error::NotRead`] if none was asked for.
    pub fn text(&self) -> Result<&str, Error> {
        Ok(&self.generated()?.text)
    }

    pub(crate) fn generated(&self) -> Result<&Generated, Error> {
        self.generated.as_ref().ok_or(Error::NotRead { what: "generated text" })
    }

    /// The log-probability of a continuation that was asked for.
    ///
    /// # Errors
    /// [`Error::NotRead`] if it was not.
    pub fn continuation(&self, text: &str) -> Result<&TokenLogProbs, Error> {
        let found = self.continuations.iter().find(|found| found.text == text);
        found.map(|found| &found.tokens).ok_or(Error::NotRead { what: "log-probabilities of this continuation" })
    }

    /// The pooled state of this layer and pooling, shape `[d_model]`; `None` if it was not asked for.
    pub fn pooled(&self, layer: Layer, pooling: Pooling) -> Option<&[f32]> {
        self.pooled.iter().find(|p| p.layer == layer && p.pooling == pooling).map(|p| p.values.as_slice())
    }

    /// The attention entropies of this layer's block, shape `[n_heads]`; `None` if they were not asked for.
    pub fn attention_entropy(&self, layer: Layer) -> Option<&[f32]> {
        self.attention_entropy.iter().find(|heads| heads.layer == layer).map(|heads| heads.values.as_slice())
    }

    /// The state of the text that was written, shape `[d_model]`; `None` if it was not asked for, or there is none.
    pub fn reply(&self, layer: Layer, pooling: ReplyPooling) -> Option<&[f32]> {
        self.reply.iter().find(|s| s.layer == layer && s.pooling == pooling).map(|s| s.values.as_slice())
    }

    /// What this layer has to say; `None` if it was not asked for, or there is none.
    pub fn signal(&self, layer: Layer, signal: Signal) -> Option<&[f32]> {
        match signal {
            Signal::State(pooling) => self.pooled(layer, pooling),
            Signal::AttentionEntropy => self.attention_entropy(layer),
            Signal::Reply(pooling) => self.reply(layer, pooling),
        }
    }
}

impl LabelLogits {
    /// The table at the prompt's end.
    ///
    /// # Errors
    /// [`Error::NotRead`] if the logits were read elsewhere.
    pub fn prompt_end(&self) -> Result<&LabelStep, Error> {
        let step = self.steps.first().filter(|step| self.at == ReadAt::PromptEnd && step.step == 0);
        step.ok_or(Error::NotRead { what: "label logits at the prompt's end" })
    }

    /// The logits `[n_scores]` of one layer in one of [`steps`](Self::steps); `None` if that layer was not read.
    pub fn row<'a>(&self, step: &'a LabelStep, layer: Layer) -> Option<&'a [f32]> {
        let row = self.layers.iter().position(|&l| l == layer)?;
        let n_scores = self.tokens.len();
        step.logits.get(row * n_scores..(row + 1) * n_scores)
    }

    /// The same of a layer that is needed.
    pub(crate) fn needed_row<'a>(&self, step: &'a LabelStep, layer: Layer) -> Result<&'a [f32], Error> {
        let (expected, found) = (self.layers.len() * self.tokens.len(), step.logits.len());
        match self.row(step, layer) {
            Some(row) => Ok(row),
            None if found < expected => Err(Error::Shape { what: "logits of the layers read", expected, found }),
            None => Err(Error::LayerNotRead { layer }),
        }
    }
}
