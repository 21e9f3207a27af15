use super::{ByKind, DecisionProblem, QuestionKind};
use crate::{Error, Layer, ModelInfo, Reading, Want, request::Pooling, reward};

/// The head of a decision model: a score for each of its labels, linear in the last position's state behind all blocks and the final
/// norm. The options of a question have the scores from the offset of its kind on, in their order.
///
/// All arithmetic is `f64`, with sums in the order of the coordinates.
#[derive(Clone, Debug, PartialEq)]
pub struct DecisionHead {
    /// `[n_labels, d_model]`.
    weights: Vec<f32>,
    /// `[n_labels]`.
    bias: Vec<f32>,
    d_model: usize,
    soft_cap: Option<f64>,
    offsets: ByKind<usize>,
}

impl DecisionHead {
    /// A head from its weights `[n_labels, d_model]`, its bias `[n_labels]`, and the first label of each kind of question. With
    /// `soft_cap`, a score is `soft_cap * tanh(score / soft_cap)`.
    ///
    /// # Errors
    /// [`Error::Shape`] for weights that are not `bias.len()` rows of `d_model` numbers; [`Error::NonFinite`];
    /// [`Error::Decision`] for a soft cap that is not above 0 or an offset beyond the labels.
    pub fn new(
        weights: Vec<f32>,
        bias: Vec<f32>,
        d_model: usize,
        soft_cap: Option<f64>,
        offsets: ByKind<usize>,
    ) -> Result<Self, Error> {
        reward::check("weights of a decision head", &weights, bias.len().max(1) * d_model)?;
        Error::check_finite("the bias of a decision head", &bias)?;
        let setting = |setting: &str, expected, found: String| {
            Err(DecisionProblem::Setting { setting: setting.to_owned(), expected, found }.into())
        };
        if let Some(cap) = soft_cap.filter(|cap| !cap.is_finite() || *cap <= 0.0) {
            return setting("softcap", "a number above 0", cap.to_string());
        }
        for kind in QuestionKind::ALL {
            let offset = *offsets.get(kind);
            if offset >= bias.len() {
                return setting("the first label of a kind", "one that the head has", format!("{offset} for {kind}"));
            }
        }
        Ok(Self { weights, bias, d_model, soft_cap, offsets })
    }

    /// BLAKE3 hash (64 hexadecimal digits) of its numbers and settings: what tells one head from another.
    #[must_use]
    pub fn id(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for numbers in [&self.weights, &self.bias] {
            for number in numbers {
                hasher.update(&number.to_le_bytes());
            }
        }
        let offsets = QuestionKind::ALL.map(|kind| *self.offsets.get(kind));
        hasher.update(format!("{} {:?} {offsets:?}", self.d_model, self.soft_cap).as_bytes());
        hasher.finalize().to_hex().to_string()
    }

    /// Width of the states that it reads.
    #[must_use]
    pub fn d_model(&self) -> usize {
        self.d_model
    }

    /// How many options a question of this kind may have for the head alone.
    #[must_use]
    pub fn most_options(&self, kind: QuestionKind) -> usize {
        self.bias.len() - self.offsets.get(kind)
    }

    /// What has to be read of a model for it.
    #[must_use]
    pub fn want(&self, model: &ModelInfo) -> Want {
        Want { pooled: vec![(Layer(model.n_layers), Pooling::Last)], ..Want::default() }
    }

    /// The scores of a question's options, of what was read as [`want`](Self::want) says.
    ///
    /// # Errors
    /// [`Error::NotRead`] for another reading, [`Error::Shape`] for a state of another width or too many options.
    pub fn scores(
        &self,
        reading: &Reading,
        model: &ModelInfo,
        kind: QuestionKind,
        options: usize,
    ) -> Result<Vec<f64>, Error> {
        let state = reading.pooled(Layer(model.n_layers), Pooling::Last);
        let state = state.ok_or(Error::NotRead { what: "the state that a decision head reads" })?;
        Error::check_count("a state for the decision head", self.d_model, state.len())?;
        let most = self.most_options(kind);
        if options > most {
            return Err(Error::shape("options for the decision head, at most", most, options));
        }
        let first = *self.offsets.get(kind);
        let rows = self.weights.chunks_exact(self.d_model.max(1)).zip(&self.bias).skip(first).take(options);
        let score = |(row, &bias): (&[f32], &f32)| {
            let dot: f64 = row.iter().zip(state).map(|(&w, &x)| f64::from(w) * f64::from(x)).sum();
            let score = dot + f64::from(bias);
            self.soft_cap.map_or(score, |cap| cap * libm::tanh(score / cap))
        };
        Ok(rows.map(score).collect())
    }
}
