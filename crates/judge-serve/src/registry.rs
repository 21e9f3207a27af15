//! The judges of a service: the plain one, which puts any questions, and those with a name of their own, which answer one question each.

use hyper::StatusCode;
use judge_cli::checklists::criteria;
use judge_core::decision::{Answered, DecisionItem, DecisionJudge, DecisionRoute, Question, Questions};
use judge_core::rerank::RerankItem;
use judge_core::verdict::CombinedBy;
use judge_core::{Judge, JudgeError, ModelInfo, Request, Rounds, Scale, Score, Verdict};
use serde_json::{Map, Value, json};

use super::refusal::{Problem, Refusal};
use super::reranker::{NextTokens, Reranker};
use super::shares::Held;
use super::state::State;

/// All judges of a service.
pub(super) struct Registry {
    /// The name that the plain judge goes by.
    pub(super) plain_name: String,
    /// `None` for a model that has no labels to read: a reranker with a head.
    pub(super) plain: Option<DecisionJudge>,
    /// `None` for a model that does not say how it scores documents.
    pub(super) reranker: Option<Reranker>,
    pub(super) model: ModelInfo,
    pub(super) named: Vec<Named>,
}

/// A judge with a name of its own.
pub(super) struct Named {
    pub(super) name: String,
    /// It judges a request's state, by its fields.
    pub(super) judge: Box<dyn Judge<State>>,
    pub(super) answers: Answers,
    /// The fields of a state that it may read.
    pub(super) fields: Vec<String>,
    /// How many criteria it asks about, each by itself, of a state that brings no list of its own; `None` for a judge with one prompt.
    pub(super) criteria: Option<usize>,
}

/// What a judge's scores answer.
pub(super) enum Answers {
    /// A question for a score with as many levels as the scale has points; of two points, yes or no too.
    Levels(Scale),
    /// A yes-or-no question: a value from 0 to 1 is the probability of yes.
    Share,
}

/// Who answers a request.
#[derive(Clone, Copy)]
pub(super) enum Handler {
    Plain,
    /// The one at this place.
    Named(usize),
}

/// A request for decisions.
pub(super) struct Decision {
    pub(super) item: DecisionItem,
    pub(super) handler: Handler,
    /// The state as a judge with a name of its own sees it.
    pub(super) state: State,
}

/// What a request brings before the model.
pub(super) enum Brought {
    Decision(Decision),
    Documents {
        items: Vec<RerankItem>,
        /// Whether what is too long loses its end.
        may_cut: bool,
    },
    Tokens(NextTokens),
}

/// A request before its judge.
pub(super) struct QueuedRequest {
    pub(super) brought: Brought,
    /// Held until the model lets go of the request.
    pub(super) _held: [Held; 2],
}

/// What became of a question, and what else its judge says of it, which is no part of either standard.
pub(super) struct AnsweredQuestion {
    pub(super) answered: Answered,
    pub(super) beside: Map<String, Value>,
}

impl Registry {
    /// Who goes by a name; without one, the plain judge.
    pub(super) fn handler(&self, name: Option<&str>) -> Result<Handler, Refusal> {
        let Some(name) = name.filter(|name| *name != self.plain_name) else {
            return self.model_with_labels().map(|_| Handler::Plain);
        };
        let place = self.named.iter().position(|named| named.name == name);
        place.map(Handler::Named).ok_or_else(|| self.unknown(name))
    }

    /// That nobody goes by a name.
    pub(super) fn unknown(&self, name: &str) -> Refusal {
        let names = [&self.plain_name].into_iter().chain(self.named.iter().map(|named| &named.name));
        let known: Vec<String> = names.map(|name| format!("{name:?}")).collect();
        let msg = format!("there is no model {name:?} here, only {}", known.join(", "));
        Refusal::new(StatusCode::NOT_FOUND, "model_not_found", msg)
    }

    /// That a request that names a model names the plain one.
    pub(super) fn check_name(&self, name: Option<&str>) -> Result<(), Refusal> {
        match name.filter(|name| *name != self.plain_name) {
            None => Ok(()),
            Some(name) => {
                let msg = format!("there is no model {name:?} that scores documents here, only {:?}", self.plain_name);
                Err(Refusal::new(StatusCode::NOT_FOUND, "model_not_found", msg))
            }
        }
    }

    /// The judge of documents.
    pub(super) fn reranker(&self) -> Result<&Reranker, Refusal> {
        self.reranker.as_ref().ok_or_else(|| {
            let msg = "this model does not say how it scores documents; start the service with --rerank-template and --labels";
            Refusal::new(StatusCode::NOT_FOUND, "no_reranker", msg)
        })
    }

    /// The model, if its labels can be read.
    pub(super) fn model_with_labels(&self) -> Result<&ModelInfo, Refusal> {
        self.plain.as_ref().map(|_| &self.model).ok_or_else(|| {
            let msg = "this model scores documents by a head, and has no labels that can be read";
            Refusal::new(StatusCode::NOT_FOUND, "no_labels", msg)
        })
    }

    /// The plain judge, which requests for it are checked for.
    fn plain(&self) -> Result<&DecisionJudge, JudgeError> {
        self.plain.as_ref().ok_or_else(|| JudgeError::failed("a question before a model without labels"))
    }

    fn documents(&self) -> Result<&Reranker, JudgeError> {
        self.reranker.as_ref().ok_or_else(|| JudgeError::failed("documents before a model that does not score them"))
    }

    /// The name of a judge.
    pub(super) fn name_of(&self, handler: Handler) -> &str {
        match handler {
            Handler::Plain => &self.plain_name,
            Handler::Named(place) => &self.named[place].name,
        }
    }

    /// How many prompts a request becomes, each with the state in it.
    pub(super) fn prompts(&self, of: &Decision) -> usize {
        match of.handler {
            Handler::Plain => of.item.questions.len(),
            Handler::Named(place) => match self.named[place].criteria {
                Some(of_file) => of.state.listed().unwrap_or(of_file).max(1),
                None => 1,
            },
        }
    }

    /// Refuses questions that a judge does not answer, and a state that asks too much of it.
    pub(super) fn check(&self, of: &Decision) -> Result<(), Refusal> {
        let Handler::Named(place) = of.handler else { return Ok(()) };
        let listed = of.state.listed().unwrap_or_default();
        // As many as a request may have questions.
        let most = DecisionRoute::SystemOne.most_questions();
        if listed > most {
            let msg = format!("expected a checklist of at most {most} criteria, found {listed}");
            return Err(Refusal::invalid(vec![Problem::new(&[json!("state"), json!("checklist")], "too_long", msg)]));
        }
        self.named[place].check(&of.item.questions)
    }

    /// A state as the judge with a name of its own sees it that answers a request; `written` is how the body has it. A text that is a
    /// JSON object has fields too: OpenAI's form has no other way to give any.
    pub(super) fn state<'b>(
        &self,
        handler: Handler,
        state: &Value,
        written: impl FnOnce() -> Option<&'b str>,
    ) -> State {
        match (handler, state) {
            (Handler::Named(_), Value::String(text)) => State::of(text),
            (Handler::Named(_), Value::Object(_)) => written().map_or(State::Other, State::of),
            _ => State::Other,
        }
    }

    /// What the verdict of a judge says of the questions.
    pub(super) fn told(
        &self,
        handler: Handler,
        questions: &Questions,
        verdict: &Verdict,
    ) -> Result<Vec<AnsweredQuestion>, Refusal> {
        match handler {
            Handler::Plain => {
                let answers = questions.answers(verdict).map_err(Refusal::failed)?;
                Ok(answers.into_iter().map(|answered| AnsweredQuestion { answered, beside: Map::new() }).collect())
            }
            Handler::Named(place) => questions.iter().map(|of| self.named[place].told(of, verdict)).collect(),
        }
    }

    /// The judges as `/v1/models` lists them.
    pub(super) fn listed(&self, created: u64) -> Vec<Value> {
        let model = |name: &str| json!({"id": name, "object": "model", "created": created, "owned_by": "judge"});
        let named = self.named.iter().map(|named| {
            let mut model = model(&named.name);
            model["judge"] = json!({"fields": named.fields, "question": named.answers.described()});
            model
        });
        [model(&self.plain_name)].into_iter().chain(named).collect()
    }
}

impl Answers {
    /// What is answered, for machines.
    fn described(&self) -> Value {
        match self {
            Self::Levels(scale) => {
                let labels: Vec<&str> = scale.labels().collect();
                json!({"type": "score", "levels": labels.len(), "labels": labels})
            }
            Self::Share => json!({"type": "noul"}),
        }
    }

    fn expected(&self) -> String {
        match self {
            Self::Levels(scale) if scale.len() == 2 => "a score of 2 levels, or yes or no".to_owned(),
            Self::Levels(scale) => format!("a score of {} levels", scale.len()),
            Self::Share => "yes or no".to_owned(),
        }
    }

    /// The probabilities of a question's options in a score, in their order; an error in words.
    fn probabilities(&self, question: &Question, score: &Score) -> Result<Vec<f64>, String> {
        let Self::Levels(_) = self else { return Ok(vec![score.value, 1.0 - score.value]) };
        let distribution = score.distribution.as_ref().ok_or("this judge gives a value without probabilities")?;
        let mut probabilities = distribution.probabilities().to_vec();
        if let Question::Noul { .. } = question {
            probabilities.reverse(); // yes is the greater point, and the first option
        }
        Ok(probabilities)
    }
}

impl Named {
    fn check(&self, questions: &Questions) -> Result<(), Refusal> {
        let fits = |question: &Question| match (&self.answers, question) {
            (Answers::Levels(scale), Question::Score { criteria, .. }) => criteria.len() == scale.len(),
            (Answers::Levels(scale), Question::Noul { .. }) => scale.len() == 2,
            (Answers::Share, Question::Noul { .. }) => true,
            _ => false,
        };
        if questions.len() == 1 && questions.iter().all(|(_, question)| fits(question)) {
            return Ok(());
        }
        let found: Vec<String> = questions
            .iter()
            .map(|(name, question)| {
                format!("{name:?}, a {} with {} options", question.kind(), question.options().len())
            })
            .collect();
        let (expected, found) = (self.answers.expected(), found.join("; "));
        let msg = format!("the judge {:?} answers one question, {expected}; found {found}", self.name);
        Err(Refusal::invalid(vec![Problem::new(&[json!("questions")], "value_error", msg)]))
    }

    fn told(&self, (name, question): (&str, &Question), verdict: &Verdict) -> Result<AnsweredQuestion, Refusal> {
        let name = name.to_owned();
        let score = match verdict {
            Verdict::Scored(score) => score,
            Verdict::Unscored(unscored) => {
                let answered = Answered { name, answer: Err(unscored.clone()), label_mass: None };
                return Ok(AnsweredQuestion { answered, beside: Map::new() });
            }
        };
        let probabilities = self.answers.probabilities(question, score).map_err(Refusal::failed)?;
        let answer = question.answer(&probabilities);
        let answer = answer.ok_or_else(|| Refusal::failed("the judge's scale is not the question's"))?;
        let mut beside = Map::new();
        if let Some(calibrated) = &score.calibrated {
            beside.insert("calibrated".to_owned(), json!(calibrated));
        }
        if score.combined_by == Some(CombinedBy::Checklist) {
            beside.insert("criteria".to_owned(), Value::Object(criteria(score)));
        }
        Ok(AnsweredQuestion { answered: Answered { name, answer: Ok(answer), label_mass: score.label_mass }, beside })
    }
}

/// Hands each request to its judge.
impl Judge<QueuedRequest> for Registry {
    fn name(&self) -> &str {
        &self.plain_name
    }

    fn ask(&self, request: &QueuedRequest) -> Result<Vec<Request>, JudgeError> {
        match &request.brought {
            Brought::Decision(Decision { item, handler, state }) => match *handler {
                Handler::Plain => self.plain()?.ask(item),
                Handler::Named(place) => self.named[place].judge.ask(state),
            },
            Brought::Documents { items, may_cut } => self.documents()?.ask(items, *may_cut),
            Brought::Tokens(tokens) => Ok(tokens.ask(&self.model)),
        }
    }

    fn follow_up(&self, request: &QueuedRequest, rounds: &Rounds<'_>) -> Result<Vec<Request>, JudgeError> {
        match &request.brought {
            Brought::Decision(Decision { item, handler, state }) => match *handler {
                Handler::Plain => self.plain()?.follow_up(item, rounds),
                Handler::Named(place) => self.named[place].judge.follow_up(state, rounds),
            },
            Brought::Documents { .. } | Brought::Tokens(_) => Ok(Vec::new()),
        }
    }

    fn decide(&self, request: &QueuedRequest, rounds: &Rounds<'_>) -> Result<Score, JudgeError> {
        match &request.brought {
            Brought::Decision(Decision { item, handler, state }) => match *handler {
                Handler::Plain => self.plain()?.decide(item, rounds),
                Handler::Named(place) => self.named[place].judge.decide(state, rounds),
            },
            Brought::Documents { items, .. } => self.documents()?.decide(items, rounds),
            // What was read is told, and no score made of it.
            Brought::Tokens(_) => Ok(Score::new(rounds.outcomes().count() as f64)),
        }
    }
}
