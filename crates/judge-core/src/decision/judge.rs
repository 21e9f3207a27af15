use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    Asked, ByKind, Decidable, DecisionForm, DecisionHead, DecisionOrigin, DecisionProblem, DecisionPrompt,
    DecisionWeights, PlainPrompt, Question, QuestionFault, QuestionKind, Questions, answer::of_parts,
    combined::Combined, item::questions_of,
};
use crate::{
    Backbone, Error, Judge, JudgeError, Layer, Lens, ModelInfo, Outcome, Reading, Reason, Request, Rounds, Score,
    Unscored, Verdict, Want,
    lager::LayerTable,
    request::{LabelRead, ReadAt, TokenId},
    scale::softmax,
    verdict::Part,
};

/// What the scores of options are read from.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Readout {
    /// The last layer's logits of the labels, as the model itself has them (with its final soft cap).
    #[default]
    LastLayer,
    /// The label logits of one layer: plain products of its state with the head's rows.
    Layer(Layer),
    /// The label logits of all layers by fitted weights and temperatures; a kind of question without any is read as
    /// [`LastLayer`](Self::LastLayer).
    Weights(Box<DecisionWeights>),
    /// A head of its own, which comes with the model.
    Head(Box<DecisionHead>),
}

/// What a [`DecisionJudge`] is to do.
#[derive(Clone)]
pub struct DecisionSettings {
    /// How questions become prompts.
    pub prompt: Arc<dyn DecisionPrompt>,
    /// Labels, temperatures and the order of options.
    pub form: DecisionForm,
    /// What answers are read from.
    pub readout: Readout,
    /// How inner states meet the head, where layers are read.
    pub lens: Lens,
    /// Whether all layers are read whatever the readout needs, so that weights can be fitted on the [tables](DecisionJudge::tables).
    pub every_layer: bool,
    /// The questions for items that have none of their own.
    pub questions: Option<Questions>,
}

impl Default for DecisionSettings {
    /// This project's own prompt, `Yes` and `No` and letters as labels, the last layer.
    fn default() -> Self {
        Self {
            prompt: Arc::new(PlainPrompt),
            form: DecisionForm::default(),
            readout: Readout::default(),
            lens: Lens::Raw,
            every_layer: false,
            questions: None,
        }
    }
}

impl DecisionSettings {
    /// Whether answers are read by weights that have none for this kind of question, which is read at the last layer then.
    #[must_use]
    pub fn lacks_weights(&self, kind: QuestionKind) -> bool {
        matches!(&self.readout, Readout::Weights(weights) if weights.get(kind).is_none())
    }

    /// All that an answer depends on besides the item and the model, as JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let Self { prompt, form, readout, lens, every_layer, questions } = self;
        let readout = match readout {
            Readout::LastLayer => json!("last"),
            Readout::Layer(layer) => json!({"layer": layer}),
            Readout::Weights(weights) => json!({"weights": weights}),
            Readout::Head(head) => json!({"head": head.id()}),
        };
        json!({
            "prompt": prompt.settings(), "form": form, "readout": readout, "lens": lens,
            "every_layer": every_layer, "questions": questions,
        })
    }
}

impl fmt::Debug for DecisionSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DecisionSettings({})", self.to_json())
    }
}

/// Answers typed questions about a state.
///
/// A [`Score`] has a [part](Score::parts) for each question, named as it is; [`Questions::answers`] makes [`Answer`](super::Answer)s of
/// them. Its value is the share of the questions that were answered, which is 1 unless one of them has more options than can be read.
/// Each part's value is the probability of yes, the place of the likeliest option (from 0), or the expected level; its distribution has the
/// names of the options, and its label mass says what share of the model's probability lay on their labels.
///
/// An answer does not depend on what else is asked: each question has a prompt of its own, and what these share is read once.
#[derive(Clone, Debug)]
pub struct DecisionJudge {
    settings: DecisionSettings,
    model: ModelInfo,
    labels: ByKind<Labels>,
}

/// The labels of a kind of question that can be read.
#[derive(Clone, Debug)]
struct Labels {
    /// The tokens of the first labels; empty for a head, which reads none.
    tokens: Vec<TokenId>,
    /// How many options can be read.
    most: usize,
    /// Why not more.
    why: String,
}

/// A question as it is put: what can be asked, or why it cannot be.
type Put<'q> = (&'q str, &'q Question, Result<Asked, Unscored>);

impl DecisionJudge {
    /// A judge for one model: finds the labels in its vocabulary and checks that weights or a head are for it. The judge does not keep the
    /// model.
    ///
    /// # Errors
    /// [`Error::Decision`] where of no kind of question two labels can be read, for weights that were fitted on something else, and for a
    /// layer that the model does not have; [`Error::Shape`] for a head of another width.
    pub fn new(settings: DecisionSettings, backbone: &dyn Backbone) -> Result<Self, Error> {
        let model = backbone.info().clone();
        let mut labels = ByKind::of(|_| Labels { tokens: Vec::new(), most: 0, why: String::new() });
        for kind in QuestionKind::ALL {
            let texts = settings.form.labels.get(kind);
            let found = match &settings.readout {
                Readout::Head(head) => {
                    let most = texts.len().min(head.most_options(kind));
                    Labels { tokens: Vec::new(), most, why: format!("the model's head has {most} labels for them") }
                }
                _ => of_vocabulary(texts, backbone),
            };
            *labels.get_mut(kind) = found;
        }
        if QuestionKind::ALL.iter().all(|&kind| labels.get(kind).most < 2) {
            return Err(DecisionProblem::Labels { why: labels.noul.why }.into());
        }
        let judge = Self { settings, model, labels };
        match &judge.settings.readout {
            Readout::Weights(weights) => weights.check(&judge.origin())?,
            Readout::Head(head) => {
                Error::check_count("the width of a decision head", judge.model.d_model, head.d_model())?;
            }
            Readout::Layer(layer) if layer.0 > judge.model.n_layers => {
                return Err(DecisionProblem::Layer { found: *layer, last: judge.model.n_layers }.into());
            }
            _ => {}
        }
        Ok(judge)
    }

    /// Fails where the answers to yes-or-no questions cannot be read, or not by the weights.
    pub(crate) fn check_noul(&self) -> Result<(), Error> {
        let Labels { most, why, .. } = &self.labels.noul;
        if *most < 2 {
            return Err(DecisionProblem::Labels { why: why.clone() }.into());
        }
        self.check_noul_weights()
    }

    /// Fails where answers are read by weights that have none for yes-or-no questions.
    pub(crate) fn check_noul_weights(&self) -> Result<(), Error> {
        match self.settings.lacks_weights(QuestionKind::Noul) {
            true => Err(DecisionProblem::NoWeights { kind: QuestionKind::Noul }.into()),
            false => Ok(()),
        }
    }

    /// The settings.
    #[must_use]
    pub fn settings(&self) -> &DecisionSettings {
        &self.settings
    }

    /// What is read, for [`DecisionFit`](super::DecisionFit).
    #[must_use]
    pub fn origin(&self) -> DecisionOrigin {
        let DecisionSettings { prompt, form, lens, .. } = &self.settings;
        DecisionOrigin::new(&self.model, *lens, prompt.settings(), form.clone())
    }

    /// The questions that are put about an item: its own, or those of the settings.
    ///
    /// # Errors
    /// [`JudgeError::Unscored`] for an item without questions where the settings have none.
    pub fn questions<'a, Item: Decidable + ?Sized>(&'a self, item: &'a Item) -> Result<&'a Questions, JudgeError> {
        questions_of(item, self.settings.questions.as_ref())
    }

    /// The requests for these questions about a state, in their order; a question that cannot be put has none.
    ///
    /// # Errors
    /// As those of the prompt.
    pub(crate) fn requests(&self, state: &Value, questions: &Questions) -> Result<Vec<Request>, JudgeError> {
        let put: Vec<Asked> = self.put(questions).into_iter().filter_map(|(_, _, asked)| asked.ok()).collect();
        let prompts = self.settings.prompt.prompts(state, &put)?;
        Error::check_count("prompts for questions", put.len(), prompts.len())?;
        Ok(prompts.into_iter().zip(&put).map(|(prompt, asked)| Request { prompt, want: self.want(asked) }).collect())
    }

    /// What each question came to, with its name, from the outcomes of [`requests`](Self::requests).
    pub(crate) fn parts(&self, questions: &Questions, rounds: &Rounds<'_>) -> Result<Vec<Part>, JudgeError> {
        let mut outcomes = rounds.outcomes();
        let part = |(name, question, asked): Put<'_>| {
            let verdict = match asked {
                Err(unscored) => Verdict::Unscored(unscored),
                Ok(asked) => {
                    let outcome = outcomes.next().ok_or(Error::NotRead { what: "outcome for every question" })?;
                    match outcome {
                        Outcome::Unscored(unscored) => Verdict::Unscored(unscored.clone()),
                        Outcome::Read(reading) => self.score(question, &asked, reading)?,
                    }
                }
            };
            Ok(Part { name: name.to_owned(), verdict })
        };
        let parts = self.put(questions).into_iter().map(part).collect::<Result<Vec<_>, JudgeError>>()?;
        Error::check_count("outcomes beyond the questions", 0, outcomes.count())?;
        Ok(parts)
    }

    /// The label logits of all layers for each question, with its name, in the order of its options in the prompt; none for a question that
    /// was not read. Only with [`every_layer`](DecisionSettings::every_layer) or weights.
    ///
    /// # Errors
    /// [`JudgeError::Failed`] if the outcomes are not those of this judge's requests.
    pub fn tables(&self, questions: &Questions, rounds: &Rounds<'_>) -> Result<Vec<DecisionTable>, JudgeError> {
        let mut outcomes = rounds.outcomes();
        let mut tables = Vec::new();
        for (name, question, asked) in self.put(questions) {
            let Ok(asked) = asked else { continue };
            let outcome = outcomes.next().ok_or(Error::NotRead { what: "outcome for every question" })?;
            let Outcome::Read(reading) = outcome else { continue };
            let read = self.label_read(&asked);
            let labels = reading.labels(&read)?;
            let table = LayerTable::from_step(labels, labels.prompt_end()?, &read.layers)?;
            tables.push(DecisionTable { name: name.to_owned(), kind: question.kind(), options: asked.options, table });
        }
        Ok(tables)
    }

    /// Each question in the model's form.
    fn put<'q>(&self, questions: &'q Questions) -> Vec<Put<'q>> {
        let put = |(name, question): (&'q str, &'q Question)| {
            let (kind, found) = (question.kind(), question.options().len());
            let Labels { most, why, .. } = self.labels.get(kind);
            let asked = if found > *most {
                let fault = QuestionFault::TooManyOptions { kind, found, most: *most, why: why.clone() };
                Err(Unscored::new(Reason::OffScale, fault.to_string()))
            } else {
                Ok(Asked::new(name, question, &self.settings.form))
            };
            (name, question, asked)
        };
        questions.iter().map(put).collect()
    }

    fn want(&self, asked: &Asked) -> Want {
        match &self.settings.readout {
            Readout::Head(head) => head.want(&self.model),
            _ => Want { labels: vec![self.label_read(asked)], ..Want::default() },
        }
    }

    fn label_read(&self, asked: &Asked) -> LabelRead {
        let last = Layer(self.model.n_layers);
        let layers = match &self.settings.readout {
            Readout::Weights(_) => self.model.layers(),
            _ if self.settings.every_layer => self.model.layers(),
            Readout::Layer(layer) => vec![*layer],
            Readout::LastLayer | Readout::Head(_) => vec![last],
        };
        let tokens = self.labels.get(asked.kind).tokens.iter().take(asked.options.len()).copied().collect();
        LabelRead { tokens, layers, lens: self.settings.lens, at: ReadAt::PromptEnd, label_mass: true }
    }

    /// What a reading says of a question.
    fn score(&self, question: &Question, asked: &Asked, reading: &Reading) -> Result<Verdict, JudgeError> {
        let (scores, temperature, mass) = self.scores(asked, reading)?;
        let cold: Vec<f64> = scores.iter().map(|score| score / temperature).collect();
        if let Some(wrong) = cold.iter().find(|score| !score.is_finite()) {
            let detail = format!("the score of an option is {wrong}, expected a finite number");
            return Ok(Verdict::Unscored(Unscored::new(Reason::NonFinite, detail)));
        }
        let mut probabilities = softmax(&cold);
        if asked.kind == QuestionKind::Noul && self.settings.form.false_first {
            probabilities.reverse();
        }
        Ok(Verdict::Scored(question.score(&probabilities)?.with_label_mass(mass)))
    }

    /// The scores of the options in the prompt's order, what they are divided by, and the labels' share of the model's probability.
    fn scores(&self, asked: &Asked, reading: &Reading) -> Result<(Vec<f64>, f64, Option<f32>), JudgeError> {
        let shipped = *self.settings.form.temperature.get(asked.kind);
        if let Readout::Head(head) = &self.settings.readout {
            return Ok((head.scores(reading, &self.model, asked.kind, asked.options.len())?, shipped, None));
        }
        let read = self.label_read(asked);
        let labels = reading.labels(&read)?;
        let step = labels.prompt_end()?;
        let combined = match &self.settings.readout {
            Readout::Layer(layer) => Combined::Layer(*layer),
            Readout::Weights(weights) => weights.get(asked.kind).map_or(Combined::Last, Combined::Fitted),
            Readout::LastLayer | Readout::Head(_) => Combined::Last,
        };
        let temperature = combined.temperature().unwrap_or(shipped);
        let scores = combined.scores(labels, step, &self.model)?;
        Ok((scores, temperature, step.label_mass))
    }
}

/// The label logits of all layers for one question.
#[derive(Clone, Debug, PartialEq)]
pub struct DecisionTable {
    /// The question's name.
    pub name: String,
    /// Its kind.
    pub kind: QuestionKind,
    /// The options in the order of the columns.
    pub options: Vec<String>,
    /// `[n_layers + 1, options]`.
    pub table: LayerTable,
}

/// The first labels that are different single tokens.
fn of_vocabulary(texts: &[String], backbone: &dyn Backbone) -> Labels {
    let mut tokens = Vec::new();
    for text in texts {
        let why = match backbone.label_token(text) {
            Ok(token) if !tokens.contains(&token) => {
                tokens.push(token);
                continue;
            }
            Ok(_) => format!("the label {text:?} has the same token as one before it"),
            Err(error) => error.to_string(),
        };
        return Labels { most: tokens.len(), tokens, why };
    }
    let why = format!("the labels are {}", texts.join(" "));
    Labels { most: tokens.len(), tokens, why }
}

impl<Item: Decidable + ?Sized> Judge<Item> for DecisionJudge {
    fn name(&self) -> &str {
        "decision"
    }

    fn ask(&self, item: &Item) -> Result<Vec<Request>, JudgeError> {
        self.requests(item.state(), self.questions(item)?)
    }

    fn decide(&self, item: &Item, rounds: &Rounds<'_>) -> Result<Score, JudgeError> {
        of_parts(self.parts(self.questions(item)?, rounds)?)
    }

    fn settings(&self) -> Option<Value> {
        Some(json!({"judge": "decision", "decision": self.settings.to_json()}))
    }
}
