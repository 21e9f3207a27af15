use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::findings::{JudgedSentence, RagFindings, RagValue, average_precision, harmonic_mean, mean};
use super::plan::{Ask, Group, Plan, VERSION, name_of};
use super::{RagItem, RagMeasure, RagSettings};
use crate::decision::{DecisionJudge, DecisionTable};
use crate::inspector::{Probe, ProbeReader};
use crate::verdict::{CombinedBy, Part, likelier, mean_label_mass};
use crate::{Error, Judge, JudgeError, ModelInfo, Outcome, Reason, Request, Rounds, Score, Unscored, Verdict};

/// Measures answers that rest on retrieved contexts.
///
/// All contexts stand in one prompt, before the question that is asked, so that a model reads them once however much is asked. Where they
/// do not fit into the model's context, or [`by_context`](RagSettings::by_context) says so, each is read by itself: a sentence then is as
/// well supported as by the context that supports it best. The value of a [`Score`] is the mean of the measures' means, with a
/// [part](Score::parts) for each; [`findings`](Self::findings) has all of it.
#[derive(Clone, Debug)]
pub struct RagJudge {
    settings: RagSettings,
    judge: DecisionJudge,
    probe: Option<ProbeReader>,
}

/// What became of each question; of one about sentences that was asked of each context by itself, of the best.
type Answers = BTreeMap<Ask, Verdict>;

impl RagJudge {
    /// A judge that asks as `judge` does; its questions are not asked.
    ///
    /// # Errors
    /// [`Error::Decision`] if the answers to yes-or-no questions cannot be read, or `judge` reads by weights that have none for them.
    pub fn new(settings: RagSettings, judge: DecisionJudge) -> Result<Self, Error> {
        judge.check_noul()?;
        Ok(Self { settings, judge, probe: None })
    }

    /// The same judge, which has a probe say whether the contexts support a sentence: one with the classes 0 (not supported) and 1
    /// (supported), of the states of [`sentence_prompts`](super::sentence_prompts). All else is asked as before.
    ///
    /// # Errors
    /// [`Error::ProbeRefused`] and [`Error::ProbeSignals`] for a probe of another model; [`Error::ReplyNotWritten`] for one of a text that is
    /// written; [`Error::NoConfidence`] for one of other classes. One that gives no probabilities fails with [`Error::NoProbabilities`] at
    /// the first sentence.
    pub fn with_probe(self, probe: Arc<dyn Probe>, model: &ModelInfo) -> Result<Self, Error> {
        let reader = ProbeReader::new(probe, model)?;
        if reader.reads_reply() {
            return Err(Error::ReplyNotWritten);
        }
        match reader.probe().classes() {
            [0, 1] => Ok(Self { probe: Some(reader), ..self }),
            classes => Err(Error::NoConfidence { classes: classes.to_vec() }),
        }
    }

    /// The judge of its questions.
    #[must_use]
    pub fn decisions(&self) -> &DecisionJudge {
        &self.judge
    }

    /// What is asked first.
    fn groups(&self, plan: &Plan<'_>) -> Result<Vec<Group>, Error> {
        let of_contexts = match self.settings.by_context {
            true => plan.of_each_context()?,
            false => plan.of_all_contexts()?.into_iter().collect(),
        };
        Ok(of_contexts.into_iter().chain(plan.of_texts()?).collect())
    }

    fn requests(&self, groups: &[Group]) -> Result<Vec<Request>, JudgeError> {
        let of = |group: &Group| {
            let mut requests = self.judge.requests(&Value::String(group.state.clone()), &group.questions)?;
            if let Some(reader) = &self.probe {
                let sentences =
                    requests.iter_mut().zip(&group.asks).filter(|(_, ask)| matches!(ask, Ask::Supported(_)));
                sentences.for_each(|(request, _)| {
                    request.want = std::mem::take(&mut request.want).with_signals(reader.probe().signals());
                });
            }
            Ok::<_, JudgeError>(requests)
        };
        Ok(groups.iter().map(of).collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
    }

    /// Whether contexts that did not fit together are asked about one by one.
    fn splits(&self, item: &RagItem, plan: &Plan<'_>, first: &[Outcome]) -> Result<bool, Error> {
        if self.settings.by_context || item.contexts.len() < 2 {
            return Ok(false);
        }
        let together = plan.of_all_contexts()?.map_or(0, |group| group.asks.len());
        let is_too_long =
            |outcome: &Outcome| matches!(outcome, Outcome::Unscored(why) if why.reason == Reason::TooLong);
        Ok(first.iter().take(together).any(is_too_long))
    }

    /// What became of the questions of these groups.
    fn answers(&self, groups: &[Group], outcomes: &[Outcome]) -> Result<Vec<(Ask, Verdict)>, JudgeError> {
        let mut rest = outcomes;
        let mut answers = Vec::new();
        for group in groups {
            let Some((own, others)) = rest.split_at_checked(group.asks.len()) else {
                return Err(Error::NotRead { what: "outcome for every question" }.into());
            };
            rest = others;
            let parts = self.judge.parts(&group.questions, &Rounds::new([own]))?;
            for ((ask, part), outcome) in group.asks.iter().zip(parts).zip(own) {
                answers.push((*ask, self.probed(*ask, part.verdict, outcome)?));
            }
        }
        Error::check_count("outcomes beyond the questions", 0, rest.len())?;
        Ok(answers)
    }

    /// What the probe says of a sentence in the place of yes and no, whose label mass stays.
    fn probed(&self, ask: Ask, verdict: Verdict, outcome: &Outcome) -> Result<Verdict, JudgeError> {
        let (Some(reader), Ask::Supported(_), Outcome::Read(reading), Verdict::Scored(score)) =
            (&self.probe, ask, outcome, &verdict)
        else {
            return Ok(verdict);
        };
        match reader.classify(reading)?.and_then(|output| output.probabilities).as_deref() {
            Some(&[_, supported]) => {
                Ok(Verdict::Scored(Score { label_mass: score.label_mass, ..Score::new(supported) }))
            }
            _ => Err(Error::NoProbabilities.into()),
        }
    }

    /// All that was found of an item, of the rounds of its requests.
    ///
    /// # Errors
    /// [`JudgeError::Failed`] if the outcomes are not those of this judge's requests.
    pub fn findings<Item: AsRef<RagItem> + ?Sized>(
        &self,
        item: &Item,
        rounds: &Rounds<'_>,
    ) -> Result<RagFindings, JudgeError> {
        let item = item.as_ref();
        let plan = Plan::new(&self.settings, item);
        let (first, second) = match *rounds.as_slices() {
            [first] => (first, None),
            [first, second] => (first, Some(second)),
            [] => (&[][..], None),
            ref more => return Err(Error::shape("rounds", 2, more.len()).into()),
        };
        let groups = self.groups(&plan)?;
        let mut each = self.answers(&groups, first)?;
        if let Some(second) = second {
            let groups = plan.of_each_context()?;
            each.retain(|(ask, _)| !groups.iter().any(|group| group.asks.contains(ask)));
            each.extend(self.answers(&groups, second)?);
        }
        let label_mass = mean_label_mass(each.iter().map(|(_, verdict)| verdict));
        let mut answers = Answers::new();
        for (ask, verdict) in each {
            let best = match answers.remove(&ask) {
                None => verdict,
                Some(before) => better(before, verdict),
            };
            answers.insert(ask, best);
        }
        let mut found = of_answers(&plan, item, &answers);
        if self.judge.settings().every_layer
            && second.is_none()
            && (!self.settings.by_context || item.contexts.len() == 1)
        {
            self.add_tables(&groups, first, &mut found)?;
        }
        Ok(RagFindings { by_context: self.settings.by_context || second.is_some(), label_mass, ..found })
    }

    /// Adds what all layers say of each sentence.
    fn add_tables(&self, groups: &[Group], first: &[Outcome], found: &mut RagFindings) -> Result<(), JudgeError> {
        // That of the contexts, if they are asked about; any other has no such question.
        let Some(group) = groups.first() else { return Ok(()) };
        let own = first.get(..group.asks.len()).unwrap_or_default();
        for DecisionTable { name, options, table, .. } in self.judge.tables(&group.questions, &Rounds::new([own]))? {
            let asked = group.asks.iter().find(|ask| name_of(**ask) == name);
            let Some(Ask::Supported(at)) = asked else { continue };
            let yes_first = if options.first().is_some_and(|option| option == "true") {
                table
            } else {
                table.with_columns(&[1, 0])?
            };
            if let Some(sentence) = found.sentences.get_mut(*at) {
                sentence.table = Some(yes_first);
            }
        }
        Ok(())
    }
}

/// The more probable yes of two contexts. Where one cannot be read, nobody knows what it supports.
fn better(one: Verdict, other: Verdict) -> Verdict {
    match (one.value(), other.value()) {
        (None, _) => one,
        (_, None) => other,
        (Some(first), Some(second)) if first >= second => one,
        _ => other,
    }
}

fn of_answers(plan: &Plan<'_>, item: &RagItem, answers: &Answers) -> RagFindings {
    let p = |ask: Ask| match answers.get(&ask) {
        Some(Verdict::Scored(score)) => Ok(score.value),
        Some(Verdict::Unscored(why)) => Err(why.clone()),
        None => Err(Unscored::new(Reason::Missing, "it was not asked")),
    };
    let all = |asks: &mut dyn Iterator<Item = Ask>| asks.map(p).collect::<Result<Vec<f64>, Unscored>>();
    let contexts = item.contexts.len();
    let value = |measure: RagMeasure| -> Result<RagValue, Unscored> {
        match measure {
            RagMeasure::Faithfulness => {
                let mut asks = Vec::new();
                for at in 0..plan.response.len() {
                    if !plan.claims_only || likelier(p(Ask::Claims(at))?).is_ge() {
                        asks.push(Ask::Supported(at));
                    }
                }
                if asks.is_empty() {
                    let why = "no sentence of the response claims anything";
                    return Err(Unscored::new(Reason::Missing, why));
                }
                RagValue::of(&all(&mut asks.into_iter())?, mean)
            }
            RagMeasure::AnswerRelevancy => RagValue::of(&[p(Ask::Answers)?], mean),
            RagMeasure::ContextPrecision => {
                let ask = if plan.by_reference { Ask::Useful as fn(usize) -> Ask } else { Ask::Relevant };
                RagValue::of(&all(&mut (0..contexts).map(ask))?, average_precision)
            }
            RagMeasure::ContextRecall => RagValue::of(&all(&mut (0..plan.reference.len()).map(Ask::Recalled))?, mean),
            RagMeasure::ContextRelevance => RagValue::of(&all(&mut (0..contexts).map(Ask::Relevant))?, mean),
            RagMeasure::Correctness => {
                let right = all(&mut (0..plan.response.len()).map(Ask::InReference))?;
                let said = all(&mut (0..plan.reference.len()).map(Ask::InResponse))?;
                RagValue::of_two(&right, &said, harmonic_mean)
            }
        }
    };
    let measures = plan
        .measures
        .iter()
        .map(|(&measure, why)| (measure, why.as_ref().map_or_else(|| value(measure), |why| Err(why.clone()))));
    let judged = |(at, sentence): (usize, &super::Sentence)| JudgedSentence {
        sentence: sentence.clone(),
        supported: p(Ask::Supported(at)).ok(),
        claims: p(Ask::Claims(at)).ok(),
        table: None,
    };
    let sentences = match plan.is_on(RagMeasure::Faithfulness) {
        true => plan.response.iter().enumerate().map(judged).collect(),
        false => Vec::new(),
    };
    let relevance = match plan.is_on(RagMeasure::ContextRelevance) {
        true => (0..contexts).map(|at| p(Ask::Relevant(at)).ok()).collect(),
        false => Vec::new(),
    };
    RagFindings { measures: measures.collect(), sentences, relevance, by_context: false, label_mass: None }
}

impl<Item: AsRef<RagItem> + ?Sized> Judge<Item> for RagJudge {
    fn name(&self) -> &str {
        "rag"
    }

    fn ask(&self, item: &Item) -> Result<Vec<Request>, JudgeError> {
        self.requests(&self.groups(&Plan::new(&self.settings, item.as_ref()))?)
    }

    fn follow_up(&self, item: &Item, rounds: &Rounds<'_>) -> Result<Vec<Request>, JudgeError> {
        let plan = Plan::new(&self.settings, item.as_ref());
        match *rounds.as_slices() {
            [first] if self.splits(item.as_ref(), &plan, first)? => self.requests(&plan.of_each_context()?),
            _ => Ok(Vec::new()),
        }
    }

    fn decide(&self, item: &Item, rounds: &Rounds<'_>) -> Result<Score, JudgeError> {
        let found = self.findings(item, rounds)?;
        let part = |(measure, value): (&RagMeasure, &Result<RagValue, Unscored>)| {
            let verdict = match value {
                Ok(value) => Verdict::Scored(Score::new(value.mean)),
                Err(why) => Verdict::Unscored(why.clone()),
            };
            Part { name: measure.as_str().to_owned(), verdict }
        };
        let parts: Vec<Part> = found.measures.iter().map(part).collect();
        let means: Vec<f64> = parts.iter().filter_map(|part| part.verdict.value()).collect();
        if means.is_empty() {
            let why = parts.iter().find_map(|part| part.verdict.unscored()).cloned();
            return Err(why.unwrap_or_else(|| Unscored::new(Reason::Missing, "nothing is to be measured")).into());
        }
        Ok(Score { label_mass: found.label_mass, ..Score::new(mean(&means)).with_parts(CombinedBy::Questions, parts) })
    }

    fn settings(&self) -> Option<Value> {
        let RagSettings { measures, claims_only, by_context } = &self.settings;
        let decision = self.judge.settings().to_json();
        let probe = match &self.probe {
            Some(reader) => Some(reader.probe().settings()?),
            None => None,
        };
        Some(json!({
            "judge": "rag", "probe": probe, "wording": VERSION, "measures": measures, "claims_only": claims_only, "by_context": by_context,
            "decision": decision,
        }))
    }
}
