use serde_json::{Value, json};

use crate::{Judge, JudgeError, Prompt, Request, Rounds, Score, Want};

/// Reads prompts without judging them: a judge of `(T, Prompt)` whose score is the number of tokens read.
///
/// What was read is in [`ItemResult::outcomes`](crate::ItemResult::outcomes). So readings go the same way as verdicts: streamed, shared, counted.
///
/// ```
/// use judge_core::testing::ScriptedBackbone;
/// use judge_core::{Layer, Pooling, Prompt, ReadOnly, Runner, Want};
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
