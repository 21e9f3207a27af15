use serde_json::{Value, json};

use super::members::log_probabilities;
use super::renamed::preference;
use crate::{Error, Judge, JudgeError, Request, Rounds, Score, scale::ScoreDistribution};

/// A judge of pairs that is asked in one order, less what the place that is shown first adds to its log-odds.
///
/// For those who cannot afford both orders, in which [`Swapped`](super::Swapped) needs no offset. The offset, in nats, is learned from
/// pairs that nobody has judged, as `judge_metrics::preference::place_offset` does. It is taken off the log-odds of the response shown
/// first against the other one: a point of preference v loses `offset · (v − ½)` of its log-probability, a tie nothing. A judge whose
/// scores have no distribution has no log-odds, which ends the run with [`Error::NotRead`].
///
/// ```
/// use judge_core::testing::ScriptedBackbone;
/// use judge_core::{Runner, combine::PlaceCorrected, lager::LagerJudge, prompted::PromptFamily};
///
/// // Whatever is shown first has 2 nats more.
/// let model = ScriptedBackbone::new(2).with_logits(|_, _, label| if label == 'A' { 2.0 } else { 0.0 });
/// let judge = LagerJudge::new(PromptFamily::built_in("pair-forced")?.lager_settings(), &model)?;
/// let judge = PlaceCorrected::new(judge, 2.0)?;
/// let item = [("instruction", "2 + 2?"), ("response_a", "4"), ("response_b", "4")];
/// let results = Runner::new(&model, vec![&judge]).collect([(1.into(), item)])?;
/// assert!((results[0].verdicts[0].value().expect("a score") - 0.5).abs() < 1e-6);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct PlaceCorrected<J> {
    judge: J,
    offset: f64,
}

impl<J> PlaceCorrected<J> {
    /// `judge` less `offset`.
    ///
    /// # Errors
    /// [`Error::NonFinite`] for the offset.
    pub fn new(judge: J, offset: f64) -> Result<Self, Error> {
        Error::check_finite("place offset", &[offset])?;
        Ok(Self { judge, offset })
    }
}

impl<Item: ?Sized, J: Judge<Item>> Judge<Item> for PlaceCorrected<J> {
    fn name(&self) -> &str {
        self.judge.name()
    }

    fn ask(&self, item: &Item) -> Result<Vec<Request>, JudgeError> {
        self.judge.ask(item)
    }

    fn follow_up(&self, item: &Item, rounds: &Rounds<'_>) -> Result<Vec<Request>, JudgeError> {
        self.judge.follow_up(item, rounds)
    }

    fn decide(&self, item: &Item, rounds: &Rounds<'_>) -> Result<Score, JudgeError> {
        let score = preference(self.judge.name(), self.judge.decide(item, rounds)?)?;
        let what = "distribution over preferences, of whose log-odds the pull of the place is taken off";
        let distribution = score.distribution.as_ref().ok_or(Error::NotRead { what })?;
        let scale = distribution.scale();
        let logs = scale.values().zip(log_probabilities(distribution));
        let logs: Vec<f64> = logs.map(|(value, log)| log - self.offset * (value - 0.5)).collect();
        let corrected = ScoreDistribution::softmax(scale, &logs)?;
        Ok(Score { value: corrected.expected(), distribution: Some(corrected), ..score })
    }

    fn settings(&self) -> Option<Value> {
        Some(json!({"judge": "place_corrected", "member": self.judge.settings()?, "offset": self.offset}))
    }
}
