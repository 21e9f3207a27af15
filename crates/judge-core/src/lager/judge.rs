use super::{Condition, LayerTable, LayerWeights, States, TableOrigin, Variant, WeightMismatch};
use crate::{
    Backbone, Error, Fields, Judge, LabelRead, Layer, Lens, ModelInfo, Outcome, PromptTemplate, Request, Scale,
    TokenId, Unscored, Verdict, Want,
};

/// What a [`LagerJudge`] is to do.
#[derive(Clone, Debug, PartialEq)]
pub struct LagerSettings {
    /// The prompt. In [`Condition::PromptEnd`] its prefill opens the reply.
    pub template: PromptTemplate,
    /// The scale whose labels are read.
    pub scale: Scale,
    /// How the score position is reached.
    pub condition: Condition,
    /// How states meet the head.
    pub lens: Lens,
    /// Which layers are put together.
    pub states: States,
    /// Fitted layer weights, if there are any.
    pub weights: Option<LayerWeights>,
    /// The score to give; `None`: [`Variant::LagerW`] with weights, [`Variant::LagerWo`] without.
    pub variant: Option<Variant>,
}

impl LagerSettings {
    /// The fast condition on a scale: the direct template with the prefill `score: `, read at the prompt's end; raw lens, all states, no weights.
    pub fn prompt_end(scale: Scale) -> Self {
        let template = PromptTemplate::pointwise_direct(&scale).with_prefill("score: ");
        Self::with(template, scale, Condition::PromptEnd)
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
        Self { template, scale, condition, lens: Lens::Raw, states: States::All, weights: None, variant: None }
    }
}

/// Scores a response by the label logits of every layer (LAGER, arXiv 2508.03550).
///
/// It reads all `n_layers + 1` layers, so that every [`Variant`] and a later fit can be computed from the stored tables.
#[derive(Clone, Debug)]
pub struct LagerJudge {
    settings: LagerSettings,
    variant: Variant,
    origin: TableOrigin,
    tokens: Vec<TokenId>,
    layers: Vec<Layer>,
    notes: Vec<WeightMismatch>,
}

impl LagerJudge {
    /// A judge for one model: finds the labels in its vocabulary and checks that the weights are for it. The judge does not keep the model.
    ///
    /// # Errors
    /// [`Error::Backbone`] if a label is not one vocabulary entry, [`Error::WeightsRefused`], [`Error::WeightsNeeded`], and
    /// [`Error::NoDistribution`] for a variant without one.
    pub fn new(settings: LagerSettings, backbone: &dyn Backbone) -> Result<Self, Error> {
        let info: &ModelInfo = backbone.info();
        let origin = TableOrigin::new(
            info,
            settings.lens,
            settings.scale.clone(),
            settings.template.id(),
            settings.condition.clone(),
        );
        let notes = match &settings.weights {
            Some(weights) => weights.check(&origin, settings.states)?,
            None => Vec::new(),
        };
        let default = if settings.weights.is_some() { Variant::LagerW } else { Variant::LagerWo };
        let variant = settings.variant.unwrap_or(default);
        if variant.needs_weights() && settings.weights.is_none() {
            return Err(Error::WeightsNeeded { variant });
        }
        if !variant.has_distribution() {
            return Err(Error::NoDistribution { variant });
        }
        let tokens = settings.scale.labels().map(|label| backbone.token(label)).collect::<Result<_, _>>()?;
        Ok(Self { variant, origin, tokens, layers: info.layers(), notes, settings })
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
        &self.tokens
    }

    /// What this judge's tables are read from, for [`LayerWeightFit::fit`](crate::LayerWeightFit::fit).
    pub fn origin(&self) -> &TableOrigin {
        &self.origin
    }

    /// In what the weights were fitted on something else than they are used on here; nobody is told unless the caller does.
    pub fn weight_notes(&self) -> &[WeightMismatch] {
        &self.notes
    }

    /// The table at the score position, all layers, from the outcomes of one item.
    ///
    /// # Errors
    /// If the outcomes are not those of this judge's request. The inner error is the item's own fault.
    pub fn table(&self, done: &[Outcome]) -> Result<Result<LayerTable, Unscored>, Error> {
        let [outcome] = done else {
            return Err(Error::Shape { what: "outcomes of one item", expected: 1, found: done.len() });
        };
        let reading = match outcome {
            Outcome::Read(reading) => reading,
            Outcome::Unscored(unscored) => return Ok(Err(unscored.clone())),
        };
        let step = match self.settings.condition.score_step(reading)? {
            Ok(step) => step,
            Err(unscored) => return Ok(Err(unscored)),
        };
        let labels = reading.labels.as_ref().ok_or(Error::NotRead { what: "label logits" })?;
        if labels.tokens != self.tokens || labels.lens != self.settings.lens {
            return Err(Error::NotRead { what: "the logits of this judge's labels through its lens" });
        }
        LayerTable::from_step(labels, step, &self.layers).map(Ok)
    }
}

impl<Item: Fields + ?Sized> Judge<Item> for LagerJudge {
    fn ask(&self, item: &Item) -> Result<Vec<Request>, Error> {
        let labels = LabelRead {
            tokens: self.tokens.clone(),
            layers: self.layers.clone(),
            lens: self.settings.lens,
            at: self.settings.condition.read_at(),
        };
        let want =
            Want { labels: Some(labels), generate: self.settings.condition.generation().cloned(), ..Want::default() };
        Ok(vec![Request { prompt: self.settings.template.fill(item)?, want }])
    }

    fn decide(&self, _item: &Item, done: &[Outcome]) -> Result<Verdict, Error> {
        let table = match self.table(done)? {
            Ok(table) => table,
            Err(unscored) => return Ok(Verdict::Unscored(unscored)),
        };
        let weights = self.settings.weights.as_ref().map(LayerWeights::weights);
        let scored = self.variant.score(&table, &self.settings.scale, self.settings.states, weights)?;
        let distribution = scored.distribution.ok_or(Error::NoDistribution { variant: self.variant })?;
        Ok(Verdict::Scored { distribution, interval: None })
    }
}
