use serde_json::{Value, json};

use super::{RunSettings, Runner};
use crate::{Error, Judge, JudgeError, Outcome, Prompt, Request, Rounds, Score, TextModel, Want};

/// What a model says of each of these prompts, in their order. For what fits into memory; [`ReadOnly`] streams.
///
/// Equal prompts are passed once. A prompt that cannot be read is [`Outcome::Unscored`] with the reason.
///
/// The logits of the labels `1` to `5` at every layer, where the reply would begin:
///
/// ```
/// use judge_core::testing::ScriptedBackbone;
/// use judge_core::{request::LabelRead, Prompt, Scale, Want, read};
///
/// let model = ScriptedBackbone::new(4);
/// let labels = LabelRead::at_every_layer(&Scale::integers(1, 5)?, &model)?;
/// let prompts = ["Good? ", "Bad? "].map(|text| Prompt::user(text).with_prefill("score: "));
/// for outcome in read(&model, prompts, &Want { labels: vec![labels.clone()], ..Want::default() })? {
///     let logits = outcome.reading()?.labels(&labels)?;
///     let end = logits.prompt_end()?;
///     for &layer in &logits.layers {
///         assert_eq!(logits.row(end, layer).map(<[f32]>::len), Some(5));
///     }
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`Error::Item`], with the prompt's number from 0 as its id, if the model cannot bring what is wanted;
/// [`Error::Backbone`] and [`Error::Contract`].
pub fn read(
    model: &dyn TextModel,
    prompts: impl IntoIterator<Item = Prompt>,
    want: &Want,
) -> Result<Vec<Outcome>, Error> {
    let reader = ReadOnly::new(want.clone());
    let settings = RunSettings { unique_ids: false, ..RunSettings::default() };
    let prompts = prompts.into_iter().enumerate().map(|(number, prompt)| (number.into(), ((), prompt)));
    let results = Runner::new(model, vec![&reader]).with_settings(settings).collect(prompts)?;
    // One judge that asks once, for one thing.
    Ok(results.into_iter().flat_map(|result| result.outcomes.into_iter().flatten().flatten()).collect())
}

/// Reads prompts without judging them: a judge of `(T, Prompt)` whose score is the number of tokens read.
///
/// What was read is in [`ItemResult::outcomes`](crate::ItemResult::outcomes). So readings go the same way as verdicts:
/// streamed, shared, counted.
///
/// ```
/// use judge_core::testing::ScriptedBackbone;
/// use judge_core::{Layer, Prompt, Runner, Want, request::Pooling, runner::ReadOnly};
///
/// let read = ReadOnly::new(Want { pooled: vec![(Layer(2), Pooling::Mean)], ..Want::default() });
/// let prompts = ["a", "b c"].map(|text| (text.into(), (text, Prompt::user(text))));
/// let results = Runner::new(&ScriptedBackbone::new(3), vec![&read]).collect(prompts)?;
/// let reading = results[1].rounds(0).only().map_err(|error| error.to_string());
/// assert_eq!(reading.unwrap().pooled(Layer(2), Pooling::Mean).map(<[f32]>::len), Some(4));
/// # Ok::<(), judge_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ReadOnly {
    want: Want,
}

impl ReadOnly {
    /// Brings the same of every prompt.
    pub fn new(want: Want) -> Self {
        Self { want }
    }
}

impl<T> Judge<(T, Prompt)> for ReadOnly {
    fn name(&self) -> &str {
        "read"
    }

    fn ask(&self, (_, prompt): &(T, Prompt)) -> Result<Vec<Request>, JudgeError> {
        Ok(vec![Request { prompt: prompt.clone(), want: self.want.clone() }])
    }

    fn decide(&self, _: &(T, Prompt), rounds: &Rounds<'_>) -> Result<Score, JudgeError> {
        Ok(Score::new(rounds.only()?.prompt_tokens.unwrap_or_default() as f64))
    }

    fn settings(&self) -> Option<Value> {
        Some(json!({"judge": "read", "want": self.want}))
    }
}
