//! The options of judges that are asked, by a prompt family or for a reward, and what they name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use judge_core::{
    Backbone, Fields, Judge, JudgeError, PromptTemplate, Reason, Request, Rounds, Scale, Score,
    combine::Renamed,
    lager::{LagerJudge, LayerWeights},
    prompted::{GradeConvention, PairConvention, PromptFamily, PromptedJudge, Task, VerdictFrom},
    reward::RewardJudge,
    runner::RunSummary,
    settings::settings_from_json,
};
use judge_data::{Field, ORIGIN, Record, Settings, check_templates_on, read_text};
use judge_models::Model;
use serde_json::json;

use crate::args::lager::layer_weights;
use crate::args::model_args::{ModelArgs, OWN_POINTS};
use crate::args::numbers::at_least;
use crate::terminal::console::{tell, tell_label_mass, usage};

/// What a prompted judge is asked, and where its verdict is looked for.
#[derive(Args, Clone, Debug)]
pub struct PromptedArgs {
    /// A built-in prompt family (single, single-json, single-reference, single-multi-turn, rubric, pair, pair-forced, pair-reference,
    /// pair-multi-turn, score-pair), or a family of your own as a JSON file [default: pair or single, the kind with a reference where all
    /// rows have one, or of several turns where a row has turns before the last request; for other single responses the model's own
    /// template, grades 1 to 5, if its folder has one]
    #[arg(long, value_name = "NAME|FILE", help_heading = "Judge")]
    pub template: Option<String>,
    /// Where the verdict is looked for: in the text that the model writes, in the probabilities of the verdict's labels at the last layer,
    /// or at all layers
    #[arg(long, default_value_t = VerdictFrom::Text, value_name = "text|logits|layers", help_heading = "Judge")]
    pub verdict: VerdictFrom,
    /// Pairs: grade each response by itself, with a family for single responses, and compare the grades
    #[arg(long, help_heading = "Judge")]
    pub apart: bool,
    /// How a written verdict is found.
    #[arg(long, value_name = "NAME", help_heading = "Judge", help = conventions())]
    pub convention: Option<String>,
    /// Layer weights for --verdict layers; without, layers count alike
    #[arg(long, value_name = "FILE", help_heading = "Judge")]
    pub weights: Option<PathBuf>,
    /// By what responses are judged, for rows without a `rubric` [default: the family's own]
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, help_heading = "Judge")]
    pub rubric: Option<String>,
    /// Judge by the rewards of a model that is a sequence classifier, each response by itself; of several labels one must be named
    #[arg(long, value_name = "LABEL", num_args = 0..=1, help_heading = "Judge",
        conflicts_with_all = ["template", "verdict", "apart", "convention", "weights", "rubric", "max_new_tokens"])]
    pub reward: Option<Option<String>>,
    /// Upper bound on generated tokens [default: the family's]
    #[arg(long, value_name = "N", value_parser = at_least::<u32>(1), help_heading = "Judge")]
    pub max_new_tokens: Option<u32>,
}

/// How a written verdict is found, with all names.
fn conventions() -> String {
    let pairs = PairConvention::ALL.map(PairConvention::as_str).join(", ");
    let single = GradeConvention::ALL.map(GradeConvention::as_str).join(", ");
    format!("How a written verdict is found. Pairs: {pairs}; single responses: {single} [default: the family's]")
}

/// How a pair is seen by a judge of single responses: the one that is judged, and which of the pair's it may be.
pub const APART: (&str, &str) = ("response", "response_a");

/// The built-in family that suits rows, of pairs or of single responses: `references` says whether all of them have a reference, `turns`
/// whether some have turns before the last request, where all can show them.
#[must_use]
pub fn suited(pairs: bool, references: bool, turns: bool) -> &'static str {
    match (pairs, references, turns) {
        (true, true, _) => "pair-reference",
        (true, false, _) => "pair",
        (false, _, true) => "single-multi-turn",
        (false, true, false) => "single-reference",
        (false, false, false) => "single",
    }
}

impl PromptedArgs {
    /// Pairs by the probabilities of their labels at the last layer, in one prompt: what `judge tune --objective verdict` trains.
    #[must_use]
    pub fn of_labels(template: Option<String>, rubric: Option<String>) -> Self {
        Self {
            template,
            verdict: VerdictFrom::Logits,
            apart: false,
            convention: None,
            weights: None,
            rubric,
            reward: None,
            max_new_tokens: None,
        }
    }

    /// Whether each response of a pair is graded by itself.
    #[must_use]
    pub fn is_apart(&self) -> bool {
        self.apart || self.reward.is_some()
    }

    /// What is asked: a reward, or the family that is named, else what suits the rows, or where a response is graded by itself, the model's
    /// own template if its folder has one. `points` is of a built-in family of single responses; `pairs` says what the rows are.
    ///
    /// # Errors
    /// If a template, a family or weights cannot be read; a usage error for options that do not go together, or with the rows.
    pub fn asked(&self, suits: &'static str, points: Option<u16>, pairs: bool, model: &ModelArgs) -> Result<Asked> {
        if let Some(label) = &self.reward {
            if points.is_some() {
                return Err(usage("--points is for grades; rewards are on no scale"));
            }
            let template = model.dress_template(RewardJudge::template());
            return Ok(Asked::Reward { label: label.clone(), template });
        }
        let family = self.family(suits, points, model)?;
        self.check_family(&family, pairs)?;
        let weights = self.weights.as_deref().map(layer_weights).transpose()?.map(Box::new);
        Ok(Asked::Family { family: Box::new(family), weights })
    }

    /// Options without effect are refused rather than ignored.
    ///
    /// # Errors
    /// A usage error.
    pub fn check(&self) -> Result<()> {
        for (given, name, needs) in [
            (self.weights.is_some(), "--weights", VerdictFrom::Layers),
            (self.convention.is_some(), "--convention", VerdictFrom::Text),
            (self.max_new_tokens.is_some(), "--max-new-tokens", VerdictFrom::Text),
        ] {
            if given && self.verdict != needs {
                return Err(usage(format!("{name} needs --verdict {needs}")));
            }
        }
        Ok(())
    }

    fn family(&self, suits: &str, points: Option<u16>, model: &ModelArgs) -> Result<PromptFamily> {
        let suits = match self.apart {
            true => suits.replace("pair-forced", "single").replace("pair", "single"),
            false => suits.to_owned(),
        };
        let name = self.template.as_deref().unwrap_or(&suits);
        let asks_own = suits == "single" && self.template.is_none();
        // The template that the model folder brings for grades from 1 to 5.
        let own = if asks_own { model.own_template(points.unwrap_or(OWN_POINTS), None)? } else { None };
        let is_file = |path: &Path| path.exists() || name.ends_with(".json");
        let family = match (own, Path::new(name)) {
            (Some(template), _) => own_family(template)?,
            (None, path) if !PromptFamily::names().contains(&name) && is_file(path) => {
                if points.is_some() {
                    return Err(usage("--points is for built-in families; a family's file has its own scale"));
                }
                read_family(path)?
            }
            (None, _) => PromptFamily::built_in_on(name, points).map_err(usage)?,
        };
        let family = match &self.convention {
            Some(convention) => family.with_convention(convention).map_err(usage)?,
            None => family,
        };
        let template = match &self.rubric {
            Some(rubric) => family.template().clone().with_default("rubric", rubric).map_err(usage)?,
            None => family.template().clone(),
        };
        let family = family.with_template(model.dress_template(template))?;
        Ok(match self.max_new_tokens {
            Some(most) => family.with_max_new_tokens(most as usize)?,
            None => family,
        })
    }

    /// Refuses a family that does not judge what there is to judge: pairs of responses, or single ones.
    fn check_family(&self, family: &PromptFamily, pairs: bool) -> Result<()> {
        if self.apart && !pairs {
            return Err(usage("--apart is for pairs"));
        }
        if family.is_pair() == (pairs && !self.apart) {
            return Ok(());
        }
        let of = if family.is_pair() { "pairs" } else { "single responses" };
        let what = match (self.apart, pairs) {
            (true, _) => "--apart grades single responses",
            (false, true) => "here two responses are compared; --apart grades each by itself",
            (false, false) => "the rows are single responses",
        };
        Err(usage(format!("the family {} judges {of}, and {what}", family.name())))
    }

    /// The judge for a model.
    ///
    /// # Errors
    /// If labels cannot be read as is wished, or the weights are not for this model and family;
    /// if the model has no rewards, or none of this name.
    pub fn judge(&self, asked: Asked, model: &Model) -> Result<AskedJudge> {
        let judge = match asked {
            Asked::Family { family, weights } => {
                PromptedJudge::new(*family, self.verdict, weights.map(|weights| *weights), model)?
            }
            Asked::Reward { label, template } => {
                let head = model.reward_head().cloned();
                let head = head.with_context(|| {
                    format!("{} is no reward model: its folder has no head of labels", model.info().name)
                })?;
                let judge = RewardJudge::new(head, label.as_deref(), model.info())?;
                return Ok(AskedJudge::Reward(Box::new(judge.with_template(template))));
            }
        };
        if let PromptedJudge::Likelihood(_) = &judge {
            tell(
                "note: some labels are several tokens here, so whole labels are compared, which takes a pass over each",
            );
        }
        if let PromptedJudge::Read(judge) = &judge {
            for note in judge.weight_notes() {
                tell(format_args!("note: {note}"));
            }
        }
        Ok(AskedJudge::Prompted(Box::new(judge)))
    }

    /// The judge whose logits rows of pairs keep, so that layer weights can be fitted on them: that of `--verdict layers`, where both
    /// responses are seen together.
    fn read<'j>(&self, judge: &'j AskedJudge) -> Option<&'j LagerJudge> {
        match judge {
            AskedJudge::Prompted(judge) if self.verdict == VerdictFrom::Layers && !self.apart => match &**judge {
                PromptedJudge::Read(judge) => Some(judge),
                _ => None,
            },
            _ => None,
        }
    }

    /// The scale of those logits.
    #[must_use]
    pub fn tables<'j>(&self, judge: &'j AskedJudge) -> Option<&'j Scale> {
        self.read(judge).map(|judge| &LagerJudge::settings(judge).scale)
    }

    /// What those logits are read from, for the run record.
    #[must_use]
    pub fn origin(&self, judge: &AskedJudge) -> Settings {
        self.read(judge).map(|judge| (ORIGIN.to_owned(), json!(judge.origin()))).into_iter().collect()
    }

    /// Says so if little of the model's probability lies on the labels: it was about to write something else.
    pub fn tell_label_mass(&self, summary: &RunSummary) {
        tell_label_mass(summary, "the verdict's labels", "");
    }

    /// Says what to do about rows without a verdict: those whose prompt is too long, and those whose text has none of the `form` that was
    /// looked for. `pairs` says what the rows are.
    pub fn tell_unscored(&self, unscored: &BTreeMap<Reason, usize>, form: Option<&str>, pairs: bool) {
        let is_written = self.verdict == VerdictFrom::Text && self.reward.is_none();
        let remedy = self.without_writing(pairs);
        if unscored.contains_key(&Reason::TooLong) {
            tell(if is_written {
                format!(
                    "note: too_long: the prompt and a reply of up to --max-new-tokens must fit the model's context together; shorten these rows, lower \
                     --max-new-tokens as long as a verdict fits, or read the verdict without a reply: {remedy}"
                )
            } else {
                "note: too_long: the prompt must fit the model's context; shorten these rows".to_owned()
            });
        }
        if let Some(form) = form.filter(|_| is_written && unscored.contains_key(&Reason::Unparsed)) {
            tell(format_args!(
                "note: unparsed: looked for {form}; each row has the text that was written instead. A model that does not write this \
                 form can still be read: {remedy}"
            ));
        }
    }

    /// The options with which this model's verdict on these rows is read without a reply. Those that are given and go with a
    /// reply alone are named.
    fn without_writing(&self, pairs: bool) -> String {
        let apart = pairs && !self.apart && self.template.is_none();
        let mut options = if apart { "--apart --verdict logits" } else { "--verdict logits" }.to_owned();
        let given = [("--convention", self.convention.is_some()), ("--max-new-tokens", self.max_new_tokens.is_some())];
        let given: Vec<&str> = given.into_iter().filter(|(_, given)| *given).map(|(name, _)| name).collect();
        if !given.is_empty() {
            options += &format!(" in place of {}", given.join(" and "));
        }
        options
    }

    /// The files that are read because of these options.
    pub fn files(&self) -> impl Iterator<Item = PathBuf> {
        let own = |name: &&String| !PromptFamily::names().contains(&name.as_str());
        self.template.iter().filter(own).map(PathBuf::from).chain(self.weights.clone())
    }

    /// What of these options decides about a row.
    ///
    /// # Errors
    /// If the family has no JSON form.
    pub fn settings(&self, asked: &Asked) -> Result<Settings> {
        let entries = match asked {
            Asked::Family { family, weights } => vec![
                ("family", serde_json::to_value(family)?),
                ("verdict", json!(self.verdict)),
                ("weights", json!(weights.as_ref().map(|weights| weights.weights()))),
                ("apart", json!(self.apart)),
            ],
            Asked::Reward { label, template } => vec![("reward", json!({"label": label, "template": template.id()}))],
        };
        Ok(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
    }

    /// What is asked, in a line for people.
    #[must_use]
    pub fn describe(&self, asked: &Asked) -> String {
        match asked {
            Asked::Family { family, .. } => {
                format!("family {}, verdict from {}, convention {}", family.name(), self.verdict, family.convention())
            }
            Asked::Reward { .. } => "rewards of single responses".to_owned(),
        }
    }
}

/// What a judge is asked.
pub enum Asked {
    /// The prompt of a family.
    Family {
        /// The family.
        family: Box<PromptFamily>,
        /// Layer weights, for verdicts from all layers.
        weights: Option<Box<LayerWeights>>,
    },
    /// The reward of a response.
    Reward {
        /// Which label, of several.
        label: Option<String>,
        /// The conversation.
        template: PromptTemplate,
    },
}

impl Asked {
    /// Refuses a template that does not suit rows, by those that a file begins with: one with a field that none has, and one of single
    /// responses that does not show what is judged. `seen` are fields that a judge sees under other names: its own, and the row's.
    ///
    /// # Errors
    /// [`judge_data::Error::NoRowHas`]; a usage error for a response that is not shown.
    pub fn check_rows<const N: usize>(
        &self,
        path: &Path,
        head: &[Record],
        seen: [(&'static str, &str); N],
    ) -> Result<()> {
        let items: Vec<_> = head.iter().map(|item| Renamed { item, fields: seen }).collect();
        check_templates_on(path, &items, [self.fields()])?;
        let Self::Family { family, .. } = self else { return Ok(()) };
        let (response, used) = (Field::Response, self.fields().field_names());
        let judged: Vec<_> = items.iter().filter(|item| item.field(response.as_str()).is_some()).collect();
        let is_column = |name: &str| {
            judged.iter().any(|seen| seen.item.columns().and_then(|columns| columns.field(name)) == Some(response))
        };
        if family.is_pair()
            || judged.is_empty()
            || used.iter().any(|&name| name == response.as_str() || is_column(name))
        {
            return Ok(());
        }
        Err(usage(format!(
            "the family {} shows nothing of the response that it grades: expected {{response}} in its template, found {used:?}",
            family.name()
        )))
    }

    /// What a written verdict looks like; `None` for rewards.
    #[must_use]
    pub fn form(&self) -> Option<&'static str> {
        match self {
            Self::Family { family, .. } => Some(family.form()),
            Self::Reward { .. } => None,
        }
    }

    /// The least and the greatest grade of a single response that there can be.
    #[must_use]
    pub fn range(&self) -> [f64; 2] {
        match self {
            Self::Family { family, .. } => family.scale().range().into(),
            Self::Reward { .. } => [f64::NEG_INFINITY, f64::INFINITY],
        }
    }

    /// The id of its template.
    #[must_use]
    pub fn template(&self) -> &str {
        self.fields().id()
    }

    /// The template that is filled with the fields of a row, or of pairs that are judged apart, with those of each response.
    #[must_use]
    pub fn fields(&self) -> &PromptTemplate {
        match self {
            Self::Family { family, .. } => family.template(),
            Self::Reward { template, .. } => template,
        }
    }
}

/// A judge that is asked.
pub enum AskedJudge {
    /// By a prompt family.
    Prompted(Box<PromptedJudge>),
    /// For a reward.
    Reward(Box<RewardJudge>),
}

impl AskedJudge {
    fn own<Item: Fields + ?Sized>(&self) -> &dyn Judge<Item> {
        match self {
            Self::Prompted(judge) => &**judge,
            Self::Reward(judge) => &**judge,
        }
    }
}

impl<Item: Fields + ?Sized> Judge<Item> for AskedJudge {
    fn name(&self) -> &str {
        self.own::<dyn Fields>().name()
    }

    fn ask(&self, item: &Item) -> Result<Vec<Request>, JudgeError> {
        self.own().ask(item)
    }

    fn follow_up(&self, item: &Item, rounds: &Rounds<'_>) -> Result<Vec<Request>, JudgeError> {
        self.own().follow_up(item, rounds)
    }

    fn decide(&self, item: &Item, rounds: &Rounds<'_>) -> Result<Score, JudgeError> {
        self.own().decide(item, rounds)
    }

    fn settings(&self) -> Option<serde_json::Value> {
        self.own::<Item>().settings()
    }
}

/// The model's own template: it leads right to the grade.
fn own_family(template: PromptTemplate) -> Result<PromptFamily> {
    let scale = Scale::integers(1, OWN_POINTS.into())?;
    Ok(PromptFamily::new("own", Task::Single(GradeConvention::Integer), template, scale, ("", ""), 1)?)
}

fn read_family(path: &Path) -> Result<PromptFamily> {
    let text = read_text(path).context("cannot read the family")?;
    settings_from_json(&text).with_context(|| format!("{} is not a prompt family", path.display()))
}
