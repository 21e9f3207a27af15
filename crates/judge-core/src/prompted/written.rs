use serde_json::{Value, json};

use crate::{
    Fields, Judge, JudgeError, Request, Rounds, Score, Want, prompted::PromptFamily, reading::Finish,
    request::Generation,
};

/// Asks a [`PromptFamily`]'s question and finds the verdict in what the model writes.
/// Works on any [`TextModel`](crate::TextModel), a service included.
///
/// What holds no verdict is [`Reason::Unparsed`](crate::Reason::Unparsed), with the text in the reason;
/// nothing is asked again until it parses, which would change what
/// is measured.
///
/// A grade has no distribution, unless the generation asks for [alternatives](Generation::top_log_probs) and the model shows them at the
/// grade ([`PromptFamily::grade_distribution`]). The value is the written grade all the same.
///
/// ```
/// use judge_core::testing::ScriptedBackbone;
/// use judge_core::{combine::{OrderPolicy, Swapped}, prompted::{PromptFamily, WrittenJudge}, Runner};
///
/// let model = ScriptedBackbone::new(2)
///     .with_reply(|prompt| if prompt.find("Paris") < prompt.find("Lyon") { "[[A]]".into() } else { "[[B]]".into() });
/// let family = PromptFamily::built_in("pair")?;
/// let judge = Swapped::new(WrittenJudge::new(family), OrderPolicy::TieUnlessAgreed);
/// let item = [("instruction", "The capital of France?"), ("response_a", "Paris"), ("response_b", "Lyon")];
/// let results = Runner::new(&model, vec![&judge]).collect([("q".into(), item)])?;
/// assert_eq!(results[0].verdicts[0].value(), Some(1.0));
/// # Ok::<(), judge_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct WrittenJudge {
    family: PromptFamily,
    generation: Generation,
}

impl WrittenJudge {
    /// A judge whose model writes greedily, at most the family's [`max_new_tokens`](PromptFamily::max_new_tokens).
    pub fn new(family: PromptFamily) -> Self {
        let generation = Generation { max_new_tokens: family.max_new_tokens(), ..Generation::default() };
        Self { family, generation }
    }

    /// The same judge, its text written in another way.
    #[must_use]
    pub fn with_generation(self, generation: Generation) -> Self {
        Self { generation, ..self }
    }

    /// The family.
    pub fn family(&self) -> &PromptFamily {
        &self.family
    }

    /// The family's name.
    pub fn name(&self) -> &str {
        self.family.name()
    }
}

impl<Item: Fields + ?Sized> Judge<Item> for WrittenJudge {
    fn name(&self) -> &str {
        self.name()
    }

    fn ask(&self, item: &Item) -> Result<Vec<Request>, JudgeError> {
        let generate = Some(self.generation.clone());
        Ok(vec![Request { prompt: self.family.template().fill(item)?, want: Want { generate, ..Want::default() } }])
    }

    fn decide(&self, _item: &Item, rounds: &Rounds<'_>) -> Result<Score, JudgeError> {
        let reading = rounds.only()?;
        let generated = reading.generated()?;
        let text = &generated.text;
        let value = self.family.parse(text).map_err(|mut unscored| {
            if generated.finish == Finish::Length {
                unscored
                    .detail
                    .push_str(&format!(", which was cut off at {} new tokens", self.generation.max_new_tokens));
            }
            unscored
        })?;
        let mut score = Score::new(value).with_text(text);
        if let Some((distribution, label_mass)) = self.family.grade_distribution(generated) {
            (score.distribution, score.label_mass) = (Some(distribution), Some(label_mass));
        }
        Ok(score)
    }

    fn settings(&self) -> Option<Value> {
        Some(json!({"judge": "written", "family": self.family, "generation": self.generation}))
    }
}
