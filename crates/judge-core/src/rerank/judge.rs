use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{Activation, Label, Relevance, RerankProblem, RerankPrompt, Rerankable, Scoring};
use crate::{
    Backbone, Error, Judge, JudgeError, Layer, Lens, ModelInfo, Outcome, Reading, Reason, Request, Rounds, Score,
    Unscored, Verdict, Want,
    decision::{ByKind, Combined, DecisionForm, DecisionOrigin, DecisionWeights, KindWeights, QuestionKind},
    lager::LayerTable,
    request::{LabelRead, ReadAt, TokenId},
    verdict::{CombinedBy, Part},
};

/// The layers that the logits of labels are read at.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum RerankReadout {
    /// The last one, as the model itself has it (with its final soft cap).
    #[default]
    LastLayer,
    /// One layer: plain products of its state with the head's rows. Blocks above it are not run.
    Layer(Layer),
    /// All layers, by weights and a temperature for yes-or-no questions.
    Weights(Box<DecisionWeights>),
}

/// What a [`RerankJudge`] is to do.
#[derive(Clone)]
pub struct RerankSettings {
    /// How query and document become a prompt.
    pub prompt: Arc<dyn RerankPrompt>,
    /// How a reading becomes a score.
    pub scoring: Scoring,
    /// Which layers labels are read at; a head reads [its own](crate::reward::RewardHead::layer).
    pub readout: RerankReadout,
    /// How inner states meet the head, where layers are read.
    pub lens: Lens,
    /// Whether all layers are read whatever the readout needs, so that weights can be fitted on the [tables](RerankJudge::tables).
    pub every_layer: bool,
}

impl RerankSettings {
    /// The last layer, and nothing more than it needs.
    pub fn new(prompt: Arc<dyn RerankPrompt>, scoring: Scoring) -> Self {
        Self { prompt, scoring, readout: RerankReadout::LastLayer, lens: Lens::Raw, every_layer: false }
    }

    /// All that a score depends on besides the item and the model, as JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let Self { prompt, scoring, readout, lens, every_layer } = self;
        let readout = match readout {
            RerankReadout::LastLayer => json!("last"),
            RerankReadout::Layer(layer) => json!({"layer": layer}),
            RerankReadout::Weights(weights) => json!({"weights": weights}),
        };
        json!({
            "prompt": prompt.settings(), "scoring": scoring.to_json(), "readout": readout, "lens": lens,
            "every_layer": every_layer,
        })
    }
}

impl fmt::Debug for RerankSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RerankSettings({})", self.to_json())
    }
}

/// Scores documents by their relevance to a query.
///
/// A [`Score`] has a [part](Score::parts) for each document, in their order and named by its place from 0; its value is the largest of their
/// scores. [`ranked`](super::ranked) puts them in order. Each document is a request of its own: its score does not depend on the others, and
/// what the prompts begin with alike, mostly the query, is read once. An item without a score for any document is unscored for the reason of
/// its first.
#[derive(Clone, Debug)]
pub struct RerankJudge {
    settings: RerankSettings,
    model: ModelInfo,
    /// Of the labels; none for a head.
    tokens: Vec<TokenId>,
}

impl RerankJudge {
    /// A judge for one model: finds the labels in its vocabulary and checks that weights or a head are for it. The judge does not keep the
    /// model.
    ///
    /// # Errors
    /// [`Error::Rerank`] for a head without exactly one label, labels that are the same token, a layer that the model does not have, and
    /// layers or weights for a head; [`Error::Shape`] for a head of another width; [`Error::Backbone`] for a text that is no single token;
    /// [`Error::Decision`] for weights that were fitted on something else.
    pub fn new(settings: RerankSettings, backbone: &dyn Backbone) -> Result<Self, Error> {
        let model = backbone.info().clone();
        let token = |label: &&Label| match label {
            Label::Token(token) if *token as usize >= model.d_vocab => {
                Err(Error::from(RerankProblem::NoToken { token: *token, d_vocab: model.d_vocab }))
            }
            Label::Token(token) => Ok(*token),
            Label::Text(text) => Ok(backbone.label_token(text)?),
        };
        let tokens = settings.scoring.relevance.labels().iter().map(token).collect::<Result<Vec<_>, Error>>()?;
        if let [yes, no] = tokens[..]
            && yes == no
        {
            return Err(RerankProblem::SameLabel { token: yes }.into());
        }
        if let Relevance::Head(head) = &settings.scoring.relevance {
            if head.labels().len() != 1 {
                return Err(RerankProblem::HeadLabels { found: head.labels().to_vec() }.into());
            }
            Error::check_count("the width of a reranker's head", model.d_model, head.d_model())?;
            if settings.readout != RerankReadout::LastLayer || settings.every_layer {
                return Err(RerankProblem::LayersOfHead.into());
            }
        }
        let judge = Self { settings, model, tokens };
        match &judge.settings.readout {
            RerankReadout::Layer(layer) if layer.0 > judge.model.n_layers => {
                Err(RerankProblem::Layer { found: *layer, last: judge.model.n_layers }.into())
            }
            RerankReadout::Weights(weights) => {
                weights.check(&judge.origin())?;
                weights.get(QuestionKind::Noul).ok_or(RerankProblem::NoWeights)?;
                Ok(judge)
            }
            _ => Ok(judge),
        }
    }

    /// The settings.
    #[must_use]
    pub fn settings(&self) -> &RerankSettings {
        &self.settings
    }

    /// What is read, for [`DecisionFit`](crate::decision::DecisionFit): a yes-or-no question whose labels are those of this judge.
    #[must_use]
    pub fn origin(&self) -> DecisionOrigin {
        let RerankSettings { prompt, scoring, lens, .. } = &self.settings;
        let label = |label: &Label| match label {
            Label::Text(text) => text.clone(),
            Label::Token(token) => token.to_string(),
        };
        let noul = scoring.relevance.labels().into_iter().map(label).collect();
        let form = DecisionForm { labels: ByKind { noul, ..ByKind::default() }, ..DecisionForm::default() };
        DecisionOrigin::new(&self.model, *lens, json!({"rerank": prompt.settings()}), form)
    }

    /// The label logits of all layers for each document that was read, by its place. Of two columns: the label of a relevant document, and the
    /// other one, or 0 where there is one label. Only with [`every_layer`](RerankSettings::every_layer) or weights.
    ///
    /// # Errors
    /// [`JudgeError::Failed`] if the outcomes are not those of this judge's requests.
    pub fn tables<Item: Rerankable + ?Sized>(
        &self,
        item: &Item,
        rounds: &Rounds<'_>,
    ) -> Result<Vec<(usize, LayerTable)>, JudgeError> {
        let read = self.label_read();
        let mut tables = Vec::new();
        for (index, outcome) in self.outcomes(item, rounds)?.into_iter().enumerate() {
            let Ok(Outcome::Read(reading)) = outcome else { continue };
            let labels = reading.labels(&read)?;
            let table = LayerTable::from_step(labels, labels.prompt_end()?, &read.layers)?;
            let table = match self.tokens.len() {
                1 => LayerTable::new(
                    table.layers().to_vec(),
                    2,
                    table.logits().iter().flat_map(|&yes| [yes, 0.0]).collect(),
                )?,
                _ => table,
            };
            tables.push((index, table));
        }
        Ok(tables)
    }

    /// The reading of each document, in their order; none of one that was not read.
    ///
    /// # Errors
    /// [`JudgeError::Failed`] if the outcomes are not those of this judge's requests.
    pub fn readings<'a, Item: Rerankable + ?Sized>(
        &self,
        item: &'a Item,
        rounds: &Rounds<'a>,
    ) -> Result<Vec<Option<&'a Reading>>, JudgeError> {
        let of = |outcome: Result<&'a Outcome, Unscored>| outcome.ok().and_then(|outcome| outcome.reading().ok());
        Ok(self.outcomes(item, rounds)?.into_iter().map(of).collect())
    }

    /// The outcome for each document; of one that was not asked about, why.
    fn outcomes<'a, Item: Rerankable + ?Sized>(
        &self,
        item: &'a Item,
        rounds: &Rounds<'a>,
    ) -> Result<Vec<Result<&'a Outcome, Unscored>>, JudgeError> {
        let mut outcomes = rounds.outcomes();
        let mut of = Vec::new();
        for document in item.documents() {
            of.push(match self.prompt(item.query(), document) {
                Ok(_) => Ok(outcomes.next().ok_or(Error::NotRead { what: "outcome for every document" })?),
                Err(unscored) => Err(unscored),
            });
        }
        Error::check_count("outcomes beyond the documents", 0, outcomes.count())?;
        Ok(of)
    }

    fn prompt(&self, query: &str, document: &Result<String, Unscored>) -> Result<crate::Prompt, Unscored> {
        document.as_ref().map_err(Clone::clone).and_then(|document| self.settings.prompt.prompt(query, document))
    }

    fn want(&self) -> Want {
        match &self.settings.scoring.relevance {
            Relevance::Head(head) => head.want(&self.model),
            _ => Want { labels: vec![self.label_read()], ..Want::default() },
        }
    }

    fn fitted(&self) -> Option<&KindWeights> {
        match &self.settings.readout {
            RerankReadout::Weights(weights) => weights.get(QuestionKind::Noul),
            _ => None,
        }
    }

    fn label_read(&self) -> LabelRead {
        let last = Layer(self.model.n_layers);
        let layers = match &self.settings.readout {
            _ if self.settings.every_layer => self.model.layers(),
            RerankReadout::Layer(layer) => vec![*layer],
            RerankReadout::Weights(_) if self.fitted().is_some_and(|fitted| fitted.layers.is_some()) => {
                self.model.layers()
            }
            RerankReadout::LastLayer | RerankReadout::Weights(_) => vec![last],
        };
        // The mass is of the last layer, which a chosen one spares.
        let label_mass = layers.contains(&last);
        LabelRead { tokens: self.tokens.clone(), layers, lens: self.settings.lens, at: ReadAt::PromptEnd, label_mass }
    }

    /// The score of a document.
    fn score(&self, reading: &Reading) -> Result<Verdict, Error> {
        let Scoring { relevance, activation } = &self.settings.scoring;
        let (raw, mass) = match relevance {
            Relevance::Head(head) => {
                let rewards = head.of_reading(reading, &self.model)?;
                let first = rewards.first().ok_or(Error::shape("rewards", 1, rewards.len()))?;
                (*first, None)
            }
            Relevance::Logit { .. } | Relevance::Difference { .. } => {
                let labels = reading.labels(&self.label_read())?;
                let step = labels.prompt_end()?;
                let combined = match (&self.settings.readout, self.fitted()) {
                    (RerankReadout::Layer(layer), _) => Combined::Layer(*layer),
                    (_, Some(fitted)) => Combined::Fitted(fitted),
                    (_, None) => Combined::Last,
                };
                let scores = combined.scores(labels, step, &self.model)?;
                let raw = match scores[..] {
                    [yes] => yes,
                    [yes, no] => yes - no,
                    _ => return Err(Error::shape("label logits", 2, scores.len())),
                };
                (raw / combined.temperature().unwrap_or(1.0), step.label_mass)
            }
        };
        if !raw.is_finite() {
            let detail = format!("the score of the document is {raw}, expected a finite number");
            return Ok(Verdict::Unscored(Unscored::new(Reason::NonFinite, detail)));
        }
        let before_activation = (*activation != Activation::Identity).then_some(raw);
        Ok(Verdict::Scored(Score { before_activation, ..Score::new(activation.at(raw)) }.with_label_mass(mass)))
    }
}

impl<Item: Rerankable + ?Sized> Judge<Item> for RerankJudge {
    fn name(&self) -> &str {
        "rerank"
    }

    fn ask(&self, item: &Item) -> Result<Vec<Request>, JudgeError> {
        let prompts = item.documents().iter().filter_map(|document| self.prompt(item.query(), document).ok());
        Ok(prompts.map(|prompt| Request { prompt, want: self.want() }).collect())
    }

    fn decide(&self, item: &Item, rounds: &Rounds<'_>) -> Result<Score, JudgeError> {
        let verdict = |outcome: Result<&Outcome, Unscored>| match outcome {
            Err(unscored) => Ok(Verdict::Unscored(unscored)),
            Ok(Outcome::Unscored(unscored)) => Ok(Verdict::Unscored(unscored.clone())),
            Ok(Outcome::Read(reading)) => self.score(reading),
        };
        let verdicts = self.outcomes(item, rounds)?.into_iter().map(verdict).collect::<Result<Vec<_>, Error>>()?;
        let best = verdicts.iter().filter_map(Verdict::value).max_by(f64::total_cmp);
        let Some(best) = best else {
            let none = || Unscored::new(Reason::Missing, "the item has no documents");
            return Err(verdicts.iter().find_map(Verdict::unscored).cloned().unwrap_or_else(none).into());
        };
        let parts = verdicts.into_iter().enumerate();
        let parts = parts.map(|(index, verdict)| Part { name: index.to_string(), verdict }).collect();
        Ok(Score::new(best).combined(CombinedBy::Documents, parts))
    }

    fn settings(&self) -> Option<Value> {
        Some(json!({"judge": "rerank", "rerank": self.settings.to_json()}))
    }
}
