use serde_json::{Value, json};

use crate::{
    Fields, Judge, JudgeError, Prompt, PromptTemplate, Reason, Request, Rounds, Score, Unscored, Want,
    reading::TokenLogProbs,
};

/// Asks no question: reads how likely the model finds a response behind its prompt, and how likely by itself.
///
/// The value is the mean log-probability of the response's tokens given the prompt, in nats per token, at most 0: the score of GPTScore
/// (arXiv 2302.04166) with the task's prompt. [`likelihood`](Self::likelihood) has both readings, of which perplexity and
/// instruction-following difficulty are made. They are what a judge of instruction data has to beat.
///
/// ```
/// use judge_core::testing::ScriptedBackbone;
/// use judge_core::{Prompt, PromptTemplate, Runner, prompted::ResponseLikelihoodJudge};
///
/// # fn main() -> Result<(), judge_core::Error> {
/// // Capital letters surprise this model, unless the prompt has one too.
/// let model = ScriptedBackbone::new(2).with_log_probs(|before, next| match next {
///     'A'..='Z' if !before.contains("France") => -8.0,
///     _ => -1.0,
/// });
/// let judge = ResponseLikelihoodJudge::new(PromptTemplate::new(Prompt::user("{instruction}"))?, "response");
/// let item = [("instruction", "The capital of France?"), ("response", "It is Paris")];
/// let result = &Runner::new(&model, vec![&judge]).collect([(1_u64.into(), item)])?[0];
/// let found = judge.likelihood(&result.rounds(0)).unwrap();
/// assert_eq!(found.perplexity(), Some(1.0_f64.exp()));
/// assert!(found.difficulty() < Some(1.0)); // the prompt makes the response likelier
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ResponseLikelihoodJudge {
    template: PromptTemplate,
    response: String,
}

/// The two readings of a [`ResponseLikelihoodJudge`].
#[derive(Clone, Debug, PartialEq)]
pub struct ResponseLikelihood {
    /// The response's tokens given the prompt and those before them.
    pub given: TokenLogProbs,
    /// The response's tokens as raw text, given those before them alone.
    /// The first is there only if the model puts a token of its own before every text (BOS).
    pub alone: TokenLogProbs,
}

impl ResponseLikelihood {
    /// The perplexity of the response given the prompt, at least 1: `exp` of the mean negative log-probability; `None` for no token.
    pub fn perplexity(&self) -> Option<f64> {
        self.given.perplexity()
    }

    /// The instruction-following difficulty, at least 0: mean negative log-probability given the prompt, divided by that of the response
    /// alone (arXiv 2308.12032, equation 4). Below 1 the prompt makes the response likelier, as it should; the nearer to 1, the less it
    /// helps. `None` where either has no token, or the response alone is certain.
    pub fn difficulty(&self) -> Option<f64> {
        let (given, alone) = (self.given.mean()?, self.alone.mean()?);
        (alone < 0.0).then(|| given / alone)
    }
}

impl ResponseLikelihoodJudge {
    /// A judge whose prompt is `template`, behind which stands the text of the item's field `response` as it is.
    pub fn new(template: PromptTemplate, response: impl Into<String>) -> Self {
        Self { template, response: response.into() }
    }

    /// The prompt.
    pub fn template(&self) -> &PromptTemplate {
        &self.template
    }

    /// Both readings, from the rounds of one item.
    ///
    /// # Errors
    /// [`JudgeError::Unscored`] if the item was not read, by its own fault;
    /// [`JudgeError::Failed`] if the outcomes are not those of this judge's requests.
    pub fn likelihood(&self, rounds: &Rounds<'_>) -> Result<ResponseLikelihood, JudgeError> {
        let readings = rounds.readings()?;
        let [given, alone] = readings[..] else {
            return Err(crate::Error::shape("outcomes", 2, readings.len()).into());
        };
        let ([given], Some(alone)) = (&given.continuations[..], &alone.prompt_log_probs) else {
            return Err(crate::Error::NotRead { what: "log-probabilities of a response" }.into());
        };
        Ok(ResponseLikelihood { given: given.tokens.clone(), alone: alone.clone() })
    }

    /// `response_likelihood`.
    pub fn name(&self) -> &str {
        "response_likelihood"
    }
}

impl<Item: Fields + ?Sized> Judge<Item> for ResponseLikelihoodJudge {
    fn name(&self) -> &str {
        self.name()
    }

    fn ask(&self, item: &Item) -> Result<Vec<Request>, JudgeError> {
        let response = item.text(&self.response)?;
        if response.is_empty() {
            let detail = format!("the field {:?} is empty, so it has no likelihood", self.response);
            return Err(Unscored::new(Reason::EmptyPrompt, detail).into());
        }
        let given = Want { continuations: vec![response.clone().into_owned()], ..Want::default() };
        let alone = Want { prompt_log_probs: true, ..Want::default() };
        Ok(vec![
            Request { prompt: self.template.fill(item)?, want: given },
            Request { prompt: Prompt::Raw(response.into_owned()), want: alone },
        ])
    }

    fn decide(&self, _item: &Item, rounds: &Rounds<'_>) -> Result<Score, JudgeError> {
        match self.likelihood(rounds)?.given.mean() {
            Some(mean) => Ok(Score::new(mean)),
            None => Err(Unscored::new(Reason::EmptyPrompt, "the response has no token").into()),
        }
    }

    fn settings(&self) -> Option<Value> {
        Some(json!({"judge": "response_likelihood", "template": self.template, "response": self.response}))
    }
}
