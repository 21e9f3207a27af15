//! The state of a training run: what is learnt, the optimiser's moments and the number of steps done.
//!
//! `step.rs` moves it, `checkpoint.rs` keeps it, `write.rs` makes a folder of it.

use std::fmt;
use std::path::Path;

use judge_arch::SCORE;
use judge_core::request::TokenId;

use super::base::Base;
use super::batch::Sequence;
use super::check::{self, Limits};
use super::error::{ExampleProblem, TrainError};
use super::gradients;
use super::loss::{Loss, ReadFrom};
use super::pass::Reads;
use super::settings::{Mean, TrainSettings};
use super::trainable::{LAYER_WEIGHTS, Trainable};
use super::tuning::Tuning;
use crate::Dtype;
use crate::engine::tensor::host::host;

/// A model in training, with the loss that it learns by. It owns everything that a step depends on but the
/// batch.
///
/// ```no_run
/// use judge_models::train::{Completion, CompletionExample, TrainSettings, Trainer};
///
/// let mut trainer = Trainer::new("models/judge".as_ref(), Completion, TrainSettings::default())?;
/// let report = trainer.step(&[CompletionExample::new(&[1, 2, 3], &[4])])?;
/// println!("{} nats per token", report.loss);
/// trainer.write("adapters/judge".as_ref(), None)?;
/// # Ok::<(), judge_models::train::TrainError>(())
/// ```
pub struct Trainer<L> {
    /// The folder that it started from.
    pub(super) base: Base,
    /// What examples are, and what is made smaller.
    pub(super) loss: L,
    /// How it learns; checked, and the same from the first step to the last.
    pub(super) settings: TrainSettings,
    /// What is learnt, in the order in which it is kept.
    pub(super) trainables: Vec<Trainable>,
    /// Steps taken, those before a checkpoint included.
    pub(super) steps_done: u64,
}

impl<L: Loss> Trainer<L> {
    /// Opens the folder of a model, of any form that this crate loads, and makes what is to be learnt. The
    /// same folder and settings give the same numbers on every machine.
    ///
    /// # Errors
    /// Those of loading a folder, and [`TrainError`] for a model that is not trained here, for a loss that
    /// does not fit it, and for settings out of their range.
    pub fn new(model: &Path, loss: L, settings: TrainSettings) -> Result<Self, TrainError> {
        check::check_settings(&settings)?;
        let (mut base, mut trainables) = Base::open(model, &settings.tuning, loss.score_labels(), settings.seed)?;
        loss.check(Limits::of(&base.spec))?;
        let weights = loss.read_from().and_then(ReadFrom::first_weights);
        trainables.extend(weights.map(|numbers| Trainable::new(LAYER_WEIGHTS, &[numbers.len()], numbers)));
        if let Some(path) = &settings.states {
            check::check_states(path, base.first_block, &loss.layers())?;
            base.keep_states(path)?;
        }
        Ok(Self { base, loss, settings, trainables, steps_done: 0 })
    }

    /// Whether the model of a folder is tuned so by this loss here, as far as that is known before its numbers are read.
    ///
    /// # Errors
    /// Those of [`new`](Self::new) that name the model, the loss or what is learnt.
    pub fn check(model: &Path, loss: &L, tuning: &Tuning) -> Result<(), TrainError> {
        loss.check(Limits::of(&Base::described(model, tuning, loss.score_labels())?))
    }

    /// How many steps were taken, those before a checkpoint included.
    #[must_use]
    pub fn steps_done(&self) -> u64 {
        self.steps_done
    }

    /// How many numbers are learnt.
    #[must_use]
    pub fn n_parameters(&self) -> usize {
        self.trainables.iter().map(|trainable| trainable.values.len()).sum()
    }

    /// What the base is told from others by: the fingerprint that it has as a loaded model.
    #[must_use]
    pub fn fingerprint(&self) -> &str {
        &self.base.fingerprint
    }

    /// The dtype that the weights of its folder are nearest to, in which a model is read and [written](Self::write) unless
    /// another is asked for.
    #[must_use]
    pub fn stored_dtype(&self) -> Dtype {
        self.base.stored_dtype
    }

    /// The numbers whose softmax weighs the layers, as they are now, in the order of the layers of [`ReadFrom`]; `None` where
    /// the loss does not learn them. A folder that is written does not have them.
    #[must_use]
    pub fn layer_weights(&self) -> Option<&[f32]> {
        let found = self.trainables.iter().find(|trainable| trainable.name == LAYER_WEIGHTS);
        found.map(|trainable| trainable.values.as_slice())
    }

    /// Gives the score head of a decoder other first values than zero or the folder's, `[labels, d_model]` row-major, such
    /// as those of a fitted probe.
    ///
    /// # Errors
    /// [`TrainError::Setting`] without a score head, for another number of values, for one that is not finite,
    /// and after the first step.
    pub fn set_score_head(&mut self, values: &[f32]) -> Result<(), TrainError> {
        let fault = |found: String, expected: String| Err(TrainError::setting("score head", found, expected));
        if self.steps_done > 0 {
            return fault(format!("set after {} steps", self.steps_done), "set before the first step".to_owned());
        }
        let Some(score) = self.trainables.iter_mut().find(|trainable| trainable.name == SCORE) else {
            return fault("set".to_owned(), "a decoder, and a loss that reads a score head".to_owned());
        };
        let len = score.values.len();
        if values.len() != len || values.iter().any(|value| !value.is_finite()) {
            return fault(format!("{} values", values.len()), format!("{len} finite values, {:?}", score.shape));
        }
        score.values = values.to_vec();
        Ok(())
    }

    /// The mean loss of examples with what is learnt as it is now, divided as
    /// [`TrainSettings::mean`](super::TrainSettings::mean) says. Nothing changes.
    ///
    /// # Errors
    /// If there are no examples, one is not what its type says, or the device fails.
    pub fn loss(&self, examples: &[L::Example]) -> Result<f64, TrainError> {
        self.check_batch(examples)?;
        let (mut loss, mut count) = (0.0, 0.0);
        for part in examples.chunks(self.settings.micro_batch) {
            let (of_part, counted) = gradients::loss_of(&self.base, &self.trainables, &self.loss, part)?;
            loss += of_part;
            count += counted;
        }
        Ok(loss / self.divisor(count, examples.len()))
    }

    /// Logits of `labels` at the end of each prompt, `[labels.len()]` each, with what is learnt as it is now: by
    /// the head over the vocabulary in f32, like the label logits of a loaded model, at the layers that the loss reads;
    /// at the last where it reads no labels.
    ///
    /// # Errors
    /// If a prompt or the labels are empty, longer than the context, or not in the vocabulary, and
    /// [`TrainError::NoHead`] if the loss reads a score head instead.
    pub fn label_logits(&self, prompts: &[Vec<TokenId>], labels: &[TokenId]) -> Result<Vec<Vec<f32>>, TrainError> {
        let spec = &self.base.spec;
        if self.loss.score_labels().is_some() {
            return Err(TrainError::NoHead { path: self.base.path.clone(), family: spec.family() });
        }
        let fault = |index| move |problem: ExampleProblem| TrainError::Example { index, problem };
        check::check_tokens(labels, 1, Limits::of(spec)).map_err(fault(0))?;
        for (index, prompt) in prompts.iter().enumerate() {
            check::check_tokens(prompt, 1, Limits::of(spec)).map_err(fault(index))?;
        }
        let mut found = Vec::with_capacity(prompts.len());
        for part in prompts.chunks(self.settings.micro_batch) {
            let sequences: Vec<_> = part.iter().map(|prompt| Sequence::read_at_end(prompt)).collect();
            let from = self.loss.read_from().cloned().unwrap_or_default();
            let of = |reads: &Reads| host(from.logits(reads, labels)?);
            let logits = gradients::read(&self.base, &self.trainables, &sequences, &from.layers(), of)?;
            found.extend(logits.chunks(labels.len()).map(<[f32]>::to_vec));
        }
        Ok(found)
    }

    /// What the score head says of each text of the examples, `[labels of the head]` each, with what is learnt as it is
    /// now: what `judge reward` reads of the tuned model. A pair has two texts, the better one first.
    ///
    /// # Errors
    /// [`TrainError::NoScores`] if the loss reads no score head, and those of [`loss`](Self::loss).
    pub fn scores(&self, examples: &[L::Example]) -> Result<Vec<Vec<f32>>, TrainError> {
        let Some(labels) = self.loss.score_labels() else { return Err(TrainError::NoScores { loss: L::NAME }) };
        self.check_batch(examples)?;
        let mut found = Vec::with_capacity(examples.len());
        for part in examples.chunks(self.settings.micro_batch) {
            let sequences = gradients::sequences(&self.base, &self.loss, part);
            let of = |reads: &Reads| host(reads.scores()?);
            let scores = gradients::read(&self.base, &self.trainables, &sequences, &[], of)?;
            found.extend(scores.chunks(labels).map(<[f32]>::to_vec));
        }
        Ok(found)
    }

    /// Whether a batch has examples and each is what its type says.
    pub(super) fn check_batch(&self, batch: &[L::Example]) -> Result<(), TrainError> {
        if batch.is_empty() {
            return Err(TrainError::EmptyBatch);
        }
        batch.iter().enumerate().try_for_each(|(index, example)| {
            let checked = self.loss.check_example(example, Limits::of(&self.base.spec));
            checked.map_err(|problem| TrainError::Example { index, problem })
        })
    }

    /// What the sum over a batch is divided by.
    pub(super) fn divisor(&self, count: f64, examples: usize) -> f64 {
        match self.settings.mean {
            Mean::Counted => count,
            Mean::Examples => examples as f64,
        }
    }
}

impl<L: fmt::Debug> fmt::Debug for Trainer<L> {
    /// Without the numbers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trainer")
            .field("base", &self.base.path)
            .field("loss", &self.loss)
            .field("settings", &self.settings)
            .field("trainables", &self.trainables.len())
            .field("steps_done", &self.steps_done)
            .finish()
    }
}
