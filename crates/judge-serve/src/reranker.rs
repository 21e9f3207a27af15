//! The judge of documents, and the probabilities of tokens behind a text.

use std::collections::BTreeSet;

use judge_core::request::{LabelRead, ReadAt, TokenId};
use judge_core::rerank::{Activation, RerankItem, RerankJudge};
use judge_core::verdict::{CombinedBy, Part};
use judge_core::{
    Error, ItemResult, Judge, JudgeError, Layer, Lens, ModelInfo, Outcome, Prompt, Reason, Request, Rounds, Score,
    Unscored, Verdict, Want,
};
use judge_data::{Cut, Kept};

/// The judge of documents of a service.
pub(super) struct Reranker {
    /// It brings numbers without an activation, which forms of requests differ in.
    pub(super) judge: RerankJudge,
    /// What the model has over them.
    pub(super) activation: Activation,
    /// How many tokens a text is for the model.
    pub(super) count: Box<dyn Fn(&str) -> usize + Send + Sync>,
    /// How many tokens a prompt loses because it is too long.
    pub(super) lost: Box<dyn Fn(&Prompt) -> usize + Send + Sync>,
}

/// What became of documents.
pub(super) struct Scored {
    /// The number of each, in the order of the request.
    pub(super) documents: Vec<Result<f64, Unscored>>,
    /// Tokens that each prompt lost.
    pub(super) cut: Vec<usize>,
    /// Tokens of all prompts.
    pub(super) tokens: usize,
}

/// Tokens of all prompts of a request.
pub(super) fn tokens_of<Item>(result: &ItemResult<Item>) -> usize {
    result.rounds(0).prompt_tokens().unwrap_or_default()
}

impl Reranker {
    /// Cuts documents to so many tokens, at their end: how many each lost, in the order of all items.
    pub(super) fn cut(&self, items: &mut [RerankItem], tokens: usize) -> Vec<usize> {
        let most = Cut { field: "document".to_owned(), tokens, kept: Kept::Head };
        let shortened = |document: &mut Result<String, Unscored>| {
            let Ok(text) = document else { return 0 };
            let Some((kept, had)) = most.of_text(text, &*self.count) else { return 0 };
            *text = kept;
            had - tokens
        };
        items.iter_mut().flat_map(|item| &mut item.documents).map(shortened).collect()
    }

    /// What the model is asked. Where no prompt may be cut, one that is too long refuses all documents, and none is read.
    pub(super) fn ask(&self, items: &[RerankItem], may_cut: bool) -> Result<Vec<Request>, JudgeError> {
        let texts = items.iter().flat_map(|item| item.documents.iter().flatten().map(move |text| (&item.query, text)));
        for (index, (query, text)) in texts.enumerate().filter(|_| !may_cut) {
            let Ok(prompt) = self.judge.settings().prompt.prompt(query, text) else { continue };
            if let lost @ 1.. = (self.lost)(&prompt) {
                let detail = format!("text {index} is {lost} tokens too long; `truncate` cuts it");
                return Err(Unscored::new(Reason::TooLong, detail).into());
            }
        }
        Ok(items.iter().map(|item| self.judge.ask(item)).collect::<Result<Vec<_>, _>>()?.concat())
    }

    /// A part for each document of all items.
    pub(super) fn decide(&self, items: &[RerankItem], rounds: &Rounds<'_>) -> Result<Score, JudgeError> {
        let mut outcomes = rounds.as_slices().first().copied().unwrap_or_default();
        let mut parts = Vec::new();
        for item in items {
            let asked = self.judge.ask(item)?.len();
            let (own, others) =
                outcomes.split_at_checked(asked).ok_or(Error::NotRead { what: "outcome for every document" })?;
            outcomes = others;
            match self.judge.decide(item, &Rounds::new([own])) {
                Ok(score) => parts.extend(score.parts),
                // Of none of its documents is there a score.
                Err(JudgeError::Unscored(unscored)) => parts.extend(
                    item.documents
                        .iter()
                        .map(|_| Part { name: String::new(), verdict: Verdict::Unscored(unscored.clone()) }),
                ),
                Err(failed) => return Err(failed),
            }
        }
        let best = parts.iter().filter_map(|part| part.verdict.value()).fold(f64::NEG_INFINITY, f64::max);
        match parts.iter().find_map(|part| part.verdict.unscored()).filter(|_| best == f64::NEG_INFINITY) {
            Some(unscored) => Err(unscored.clone().into()),
            None => Ok(Score::new(best).with_parts(CombinedBy::Documents, parts)),
        }
    }

    /// What a result says of the documents.
    pub(super) fn told<Item>(result: &ItemResult<Item>) -> Scored {
        let number = |part: &Part| match &part.verdict {
            Verdict::Scored(score) => Ok(score.value),
            Verdict::Unscored(unscored) => Err(unscored.clone()),
        };
        let outcomes: Vec<&Outcome> = result.outcomes.iter().flatten().flatten().collect();
        let cut = outcomes.iter().map(|outcome| outcome.reading().map_or(0, |reading| reading.cut_tokens)).collect();
        let documents = match result.verdicts.first() {
            Some(Verdict::Scored(score)) => score.parts.iter().map(number).collect(),
            // Of documents that were not even asked about, it stands for all.
            Some(Verdict::Unscored(unscored)) => vec![Err(unscored.clone()); outcomes.len().max(1)],
            None => Vec::new(),
        };
        Scored { documents, cut, tokens: tokens_of(result) }
    }
}

/// Texts, each of the query and an item, and the tokens that may follow each. They are joined for the model alone, since together they may
/// be far longer than the request was.
pub(super) struct NextTokens {
    pub(super) query: String,
    pub(super) items: Vec<String>,
    /// Whether the query follows the item.
    pub(super) item_first: bool,
    pub(super) tokens: Vec<TokenId>,
    /// Whether probabilities are of the tokens among each other, else among all tokens.
    pub(super) among: bool,
}

impl NextTokens {
    /// Bytes of all texts.
    pub(super) fn bytes(&self) -> usize {
        let of_items: usize = self.items.iter().map(String::len).sum();
        self.items.len().saturating_mul(self.query.len()).saturating_add(of_items)
    }

    fn read(&self, model: &ModelInfo, tokens: Vec<TokenId>) -> LabelRead {
        let layers = vec![Layer(model.n_layers)];
        LabelRead { tokens, layers, lens: Lens::Raw, at: ReadAt::PromptEnd, label_mass: !self.among }
    }

    pub(super) fn ask(&self, model: &ModelInfo) -> Vec<Request> {
        let labels = if self.among {
            vec![self.read(model, self.tokens.clone())]
        } else {
            // The share of a token is its own, whatever else is asked for.
            let distinct: BTreeSet<TokenId> = self.tokens.iter().copied().collect();
            distinct.into_iter().map(|token| self.read(model, vec![token])).collect()
        };
        let want = Want { labels, ..Want::default() };
        let text = |item: &String| match self.item_first {
            true => format!("{item}{}", self.query),
            false => format!("{}{item}", self.query),
        };
        self.items.iter().map(|item| Request { prompt: Prompt::Raw(text(item)), want: want.clone() }).collect()
    }

    /// The probabilities of the tokens behind each text.
    pub(super) fn probabilities<Item>(
        &self,
        model: &ModelInfo,
        result: &ItemResult<Item>,
    ) -> Result<Vec<Result<Vec<f64>, Unscored>>, Error> {
        let read = self.read(model, self.tokens.clone());
        let of = |outcome: &Outcome| {
            let reading = match outcome {
                Outcome::Read(reading) => reading,
                Outcome::Unscored(unscored) => return Ok(Err(unscored.clone())),
            };
            if !self.among {
                let share = |&token: &TokenId| {
                    let step = reading.labels(&self.read(model, vec![token]))?.prompt_end()?;
                    step.label_mass.map(f64::from).ok_or(Error::NotRead { what: "share of a token" })
                };
                return self.tokens.iter().map(share).collect::<Result<_, Error>>().map(Ok);
            }
            let labels = reading.labels(&read)?;
            let step = labels.prompt_end()?;
            let layer = Layer(model.n_layers);
            let row = labels.row(step, layer).ok_or(Error::LayerNotRead { layer })?;
            let capped = |z: f64| model.final_soft_cap.map_or(z, |cap| cap * (z / cap).tanh());
            let logits: Vec<f64> = row.iter().map(|&z| capped(f64::from(z))).collect();
            let most = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let weights: Vec<f64> = logits.iter().map(|z| (z - most).exp()).collect();
            let sum: f64 = weights.iter().sum();
            Ok(Ok(weights.into_iter().map(|weight| weight / sum).collect()))
        };
        result.outcomes.iter().flatten().flatten().map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use judge_core::rerank::{Label, PairPrompt, Relevance, RerankSettings, Scoring};
    use judge_core::testing::ScriptedBackbone;

    use super::*;

    #[test]
    fn what_is_too_long_and_may_not_be_cut_refuses_all_before_any_is_read() {
        let scoring =
            Scoring { relevance: Relevance::Logit { yes: Label::Text("A".into()) }, activation: Activation::Identity };
        let settings = RerankSettings::new(Arc::new(PairPrompt::default()), scoring);
        let reranker = Reranker {
            judge: RerankJudge::new(settings, &ScriptedBackbone::new(1)).unwrap(),
            activation: Activation::Identity,
            count: Box::new(str::len),
            lost: Box::new(|prompt| prompt.text_bytes().saturating_sub(10)),
        };
        let items = [RerankItem::new("query", ["text", "text of 16 bytes"])];
        assert_eq!(reranker.ask(&items, true).unwrap().len(), 2);
        let Err(JudgeError::Unscored(refused)) = reranker.ask(&items, false) else { panic!("one text is too long") };
        assert_eq!(
            (refused.reason, &refused.detail[..]),
            (Reason::TooLong, "text 1 is 11 tokens too long; `truncate` cuts it")
        );
    }
}
