use std::fmt;

use serde_json::{Value, json};

use super::members::{self, Members, asked, mixture};
use crate::{
    Error, Judge, JudgeError, Request, Rounds, Score, Verdict,
    combine::PanelRule,
    verdict::{CombinedBy, Part},
};

/// Several judges of one item as one: a request for each, passes shared where prompts are equal, one value.
///
/// Every member's verdict is kept in [`Score::parts`], under the member's name:
/// judges of one kind are told apart by [`Named`](crate::combine::Named). A panel owns
/// its members, or borrows them if they are references. It is itself a judge, so panels nest.
///
/// ```
/// use judge_core::testing::ScriptedBackbone;
/// use judge_core::{Backbone, Error, Fields, PromptTemplate, Runner, Scale, lager::{LagerJudge, LagerSettings}, combine::{Named, Panel, PanelRule}};
///
/// /// The mean of three grades, each by a rubric of its own.
/// fn by_rubric<Item: Fields>(model: &dyn Backbone) -> Result<Panel<'static, Item>, Error> {
///     let scale = Scale::integers(1, 5)?;
///     let member = |name: &str, rubric: &str| {
///         let template = PromptTemplate::pointwise_direct(&scale).bind("rubric", rubric)?;
///         let settings = LagerSettings { template, ..LagerSettings::prompt_end(scale.clone()) };
///         Ok::<_, Error>(Named::new(name, LagerJudge::new(settings, model)?))
///     };
///     let members = [
///         member("facts", "Is every statement true?")?,
///         member("clarity", "Is it easy to follow?")?,
///         member("brevity", "Does it stop when the question is answered?")?,
///     ];
///     Panel::new("three rubrics", members, PanelRule::Mean)
/// }
///
/// let model = ScriptedBackbone::new(4);
/// let panel = by_rubric(&model)?;
/// let item = [("instruction", "2 + 2?"), ("response", "4")];
/// let results = Runner::new(&model, vec![&panel]).collect([(1.into(), item)])?;
/// let names: Vec<&str> = results[0].verdicts[0].score().unwrap().parts.iter().map(|part| part.name.as_str()).collect();
/// assert_eq!(names, ["facts", "clarity", "brevity"]);
/// # Ok::<(), Error>(())
/// ```
pub struct Panel<'a, Item: ?Sized> {
    name: String,
    judges: Vec<Box<dyn Judge<Item> + 'a>>,
    rule: PanelRule,
    least: usize,
}

impl<'a, Item: ?Sized> Panel<'a, Item> {
    /// A panel that scores an item only if every member does. Members of one type, their references, or boxes (`Box<dyn Judge<Item>>`) for
    /// members of several types.
    ///
    /// # Errors
    /// [`Error::Shape`] for no member, or as many weights as there are not members;
    /// [`Error::NotADistribution`] for weights that are negative or all 0, or whose sum is not finite.
    pub fn new<J: Judge<Item> + 'a>(
        name: impl Into<String>,
        judges: impl IntoIterator<Item = J>,
        rule: PanelRule,
    ) -> Result<Self, Error> {
        let boxed = |judge| Box::new(judge) as Box<dyn Judge<Item> + 'a>;
        let judges: Vec<_> = judges.into_iter().map(boxed).collect();
        if judges.is_empty() {
            return Err(Error::Shape { what: "members of a panel, at least", expected: 1, found: 0 });
        }
        if let PanelRule::Weighted(weights) = &rule {
            Error::check_count("weights of a panel", judges.len(), weights.len())?;
            Error::check_weights(weights)?;
        }
        Ok(Self { name: name.into(), least: judges.len(), judges, rule })
    }

    /// The same panel, which scores an item if at least so many members do; at least 1 counts.
    #[must_use]
    pub fn with_least(mut self, least: usize) -> Self {
        self.least = least.clamp(1, self.judges.len());
        self
    }

    /// The value of the members that have one, with their weights.
    fn combine(&self, scored: &[(f64, &Score)]) -> f64 {
        let total: f64 = scored.iter().map(|(weight, _)| weight).sum();
        match self.rule {
            PanelRule::Mean | PanelRule::Weighted(_) => {
                scored.iter().map(|(weight, score)| weight * score.value).sum::<f64>() / total
            }
            PanelRule::Median => {
                let mut values: Vec<f64> = scored.iter().map(|(_, score)| score.value).collect();
                values.sort_by(f64::total_cmp);
                let middle = values.len() / 2;
                if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 }
            }
            PanelRule::Majority => {
                let mut values: Vec<f64> = scored.iter().map(|(_, score)| score.mode()).collect();
                values.sort_by(f64::total_cmp);
                let runs = values.chunk_by(|a, b| a == b);
                let longest = runs.fold(&values[..0], |best, run| if run.len() > best.len() { run } else { best });
                longest[0] // there is at least one scored member, hence one value
            }
        }
    }
}

impl<Item: ?Sized> fmt::Debug for Panel<'_, Item> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, judges, rule, least } = self;
        let judges: Vec<&str> = judges.iter().map(|judge| judge.name()).collect();
        let mut shown = f.debug_struct("Panel");
        shown.field("name", name).field("judges", &judges).field("rule", rule).field("least", least).finish()
    }
}

struct Asked<'p, 'a, Item: ?Sized>(&'p [Box<dyn Judge<Item> + 'a>], &'p Item);

impl<Item: ?Sized> Members for Asked<'_, '_, Item> {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn ask(&self, member: usize, rounds: &Rounds<'_>) -> Result<Vec<Request>, JudgeError> {
        asked(&self.0[member], self.1, rounds)
    }

    fn decide(&self, member: usize, rounds: &Rounds<'_>) -> Result<Score, JudgeError> {
        self.0[member].decide(self.1, rounds)
    }
}

impl<Item: ?Sized> Judge<Item> for Panel<'_, Item> {
    fn name(&self) -> &str {
        &self.name
    }

    fn ask(&self, item: &Item) -> Result<Vec<Request>, JudgeError> {
        members::ask(&Asked(&self.judges, item), &Rounds::default())
    }

    fn follow_up(&self, item: &Item, rounds: &Rounds<'_>) -> Result<Vec<Request>, JudgeError> {
        members::ask(&Asked(&self.judges, item), rounds)
    }

    fn decide(&self, item: &Item, rounds: &Rounds<'_>) -> Result<Score, JudgeError> {
        let verdicts = members::decide(&Asked(&self.judges, item), rounds)?;
        let weight = |member: usize| match &self.rule {
            PanelRule::Weighted(weights) => weights[member], // `new` has counted them
            _ => 1.0,
        };
        let scored: Vec<(f64, &Score)> = verdicts
            .iter()
            .enumerate()
            .filter_map(|(member, verdict)| verdict.score().map(|score| (weight(member), score)))
            .collect();
        let no_weight = scored.iter().all(|(weight, _)| *weight == 0.0);
        if (scored.len() < self.least || no_weight)
            && let Some(unscored) = verdicts.iter().find_map(Verdict::unscored)
        {
            return Err(unscored.clone().into());
        }
        let value = self.combine(&scored);
        let weights: Vec<f64> = scored.iter().map(|(weight, _)| *weight).collect();
        let names = self.judges.iter().map(|judge| judge.name().to_owned());
        let parts: Vec<Part> = names.zip(verdicts).map(|(name, verdict)| Part { name, verdict }).collect();
        let mut score = Score::new(value);
        if matches!(self.rule, PanelRule::Mean | PanelRule::Weighted(_)) {
            score.distribution = mixture(&parts, &weights);
        }
        Ok(score.combined(CombinedBy::Panel(self.rule.clone()), parts))
    }

    fn settings(&self) -> Option<Value> {
        let members = self.judges.iter().map(|judge| judge.settings()).collect::<Option<Vec<_>>>()?;
        Some(json!({"judge": "panel", "members": members, "rule": self.rule, "least": self.least}))
    }
}
