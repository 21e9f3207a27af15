use serde::Serialize;
use serde_json::{Value, json};

use super::{Condition, LayerTable, LayerWeights, States, TableOrigin, Variant, WeightNote};
use crate::{
    Backbone, Error, Fields, Judge, JudgeError, Lens, ModelInfo, PromptTemplate, Request, Rounds, Scale, Score, Want,
    reading::{LabelLogits, LabelStep},
    request::{LabelRead, TokenId},
};

/// What a [`LagerJudge`] is to do. As JSON it says all that a verdict depends on besides the item and the model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LagerSettings {
    /// The prompt.
    pub template: PromptTemplate,
    /// Literal text put at the prompt's end, where the reply begins; empty for none.
    /// In [`Condition::PromptEnd`] it leads the model to the label. A template
    /// that is replaced keeps it: set it to `""` for a template that opens the reply itself.
    pub opening: String,
    /// The scale whose labels are read.
    pub scale: Scale,
    /// How the score position is reached.
    pub condition: Condition,
    /// How states meet the head.
    pub lens: Lens,
    /// Which layers are combined.
    pub states: States,
    /// Fitted layer weights, if there are any.
    pub weights: Option<LayerWeights>,
    /// The score to give; `None`: [`Variant::default_for`] weights or none.
    pub variant: Option<Variant>,
}

impl LagerSettings {
    /// The fast condition on a scale: the direct template, opened by `score: ` and read at the prompt's end;
    /// raw lens, all states, no weights.
    pub fn prompt_end(scale: Scale) -> Self {
        let settings = Self::with(PromptTemplate::pointwise_direct(&scale), scale, Condition::PromptEnd);
        Self { opening: "score: ".to_owned(), ..settings }
    }

    /// The direct condition on a scale with the built-in template; raw lens, all states, no weights.
    pub fn direct(scale: Scale) -> Self {
        Self::with(PromptTemplate::pointwise_direct(&scale), scale, Condition::direct())
    }

    /// The reasoning condition on a scale with the built-in template; raw lens, all states, no weights.
    pub fn reasoning(scale: Scale) -> Self {
        Self::with(PromptTemplate::pointwise_reasoning(&scale), scale, Condition::reasoning())
    }

    fn with(template: PromptTemplate, scale: Scale, condition: Condition) -> Self {
        Self {
            template,
            opening: String::new(),
            scale,
            condition,
            lens: Lens::Raw,
            states: States::All,
            weights: None,
            variant: None,
        }
    }
}

/// Scores a response by the label logits of every layer (LAGER, arXiv 2508.03550).
///
/// It reads all `n_layers + 1` layers, so that every [`Variant`] and a later fit can be computed from the stored tables.
#[derive(Clone, Debug)]
pub struct LagerJudge {
    settings: LagerSettings,
    /// With the opening at its end.
    template: PromptTemplate,
    variant: Variant,
    origin: TableOrigin,
    read: LabelRead,
    notes: Vec<WeightNote>,
}

impl LagerJudge {
    /// A judge for one model: finds the labels in its vocabulary and checks that the weights are for it. The judge does not keep the model.
    ///
    /// # Errors
    /// [`Error::Backbone`] if a label is not one vocabulary entry, [`Error::WeightsRefused`], and [`Error::WeightsNeeded`].
    pub fn new(settings: LagerSettings, backbone: &dyn Backbone) -> Result<Self, Error> {
        let info: &ModelInfo = backbone.info();
        let template = settings.template.clone().with_prefill(&settings.opening);
        let origin =
            TableOrigin::new(info, settings.lens, settings.scale.clone(), template.id(), settings.condition.clone());
        let notes = match &settings.weights {
            Some(weights) => weights.check(&origin, settings.states)?,
            None => Vec::new(),
        };
        let variant = settings.variant.unwrap_or_else(|| Variant::default_for(settings.weights.is_some()));
        if variant.needs_weights() && settings.weights.is_none() {
            return Err(Error::WeightsNeeded { variant });
        }
        let read = LabelRead {
            layers: info.layers(),
            lens: settings.lens,
            at: settings.condition.read_at(),
            ..LabelRead::at_prompt_end(&settings.scale, backbone)?
        };
        Ok(Self { template, variant, origin, read, notes, settings })
    }

    /// The settings.
    pub fn settings(&self) -> &LagerSettings {
        &self.settings
    }

    /// The variant that [`decide`](Judge::decide) gives.
    pub fn variant(&self) -> Variant {
        self.variant
    }

    /// The labels' token ids. Shape `[n_scores]`.
    pub fn tokens(&self) -> &[TokenId] {
        &self.read.tokens
    }

    /// The template as it is filled, with the opening at its end.
    pub fn template(&self) -> &PromptTemplate {
        &self.template
    }

    /// What this judge's tables are read from, for [`LayerWeightFit::fit`](crate::fit::LayerWeightFit::fit).
    pub fn origin(&self) -> &TableOrigin {
        &self.origin
    }

    /// Differences between the data the weights were fitted on and this judge. Not reported automatically; show them to the user.
    pub fn weight_notes(&self) -> &[WeightNote] {
        &self.notes
    }

    /// The table at the score position, all layers, from the rounds of one item.
    ///
    /// # Errors
    /// [`JudgeError::Unscored`] if the item has no score, by its own fault;
    /// [`JudgeError::Failed`] if the outcomes are not those of this judge's request.
    pub fn table(&self, rounds: &Rounds<'_>) -> Result<LayerTable, JudgeError> {
        let (labels, step) = self.step(rounds)?;
        Ok(LayerTable::from_step(labels, step, &self.read.layers)?)
    }

    /// The label logits at the score position, and all of them.
    ///
    /// # Errors
    /// As [`table`](Self::table).
    pub fn step<'r>(&self, rounds: &Rounds<'r>) -> Result<(&'r LabelLogits, &'r LabelStep), JudgeError> {
        let reading = rounds.only()?;
        let labels = reading.labels(&self.read)?;
        Ok((labels, self.settings.condition.score_step(labels, reading)?))
    }

    /// `lager`, or the variant's name if one was chosen.
    pub fn name(&self) -> &str {
        self.settings.variant.map_or("lager", Variant::as_str)
    }
}

impl<Item: Fields + ?Sized> Judge<Item> for LagerJudge {
    fn name(&self) -> &str {
        self.name()
    }

    fn ask(&self, item: &Item) -> Result<Vec<Request>, JudgeError> {
        let generate = self.settings.condition.generation().cloned();
        let want = Want { labels: vec![self.read.clone()], generate, ..Want::default() };
        Ok(vec![Request { prompt: self.template.fill(item)?, want }])
    }

    fn decide(&self, _item: &Item, rounds: &Rounds<'_>) -> Result<Score, JudgeError> {
        let (labels, step) = self.step(rounds)?;
        let table = LayerTable::from_step(labels, step, &self.read.layers)?;
        let LagerSettings { scale, states, weights, .. } = &self.settings;
        let weights = weights.as_ref().map(LayerWeights::weights); // fitted on these states, or `new` has refused them
        let scored = self.variant.score_with(&table, scale, *states, weights)?;
        let score = scored.distribution.map_or_else(|| Score::new(scored.score), Score::expected);
        let text = rounds.only()?.generated.as_ref().map(|generated| generated.text.clone());
        Ok(Score { text, ..score.with_label_mass(step.label_mass) })
    }

    fn settings(&self) -> Option<Value> {
        Some(json!({"judge": "lager", "lager": self.settings}))
    }
}
