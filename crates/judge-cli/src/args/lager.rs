//! The options of LAGER, and the judge that they name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use judge_core::{
    Lens, Prompt, PromptTemplate, Reason, Scale,
    lager::{Condition, LagerSettings, LayerWeights, ScoreRule, States, Variant},
    request::Generation,
};
use judge_data::{DatasetFormat, load};

use crate::args::layers::LENSES;
use crate::args::model_args::{ModelArgs, read_template};
use crate::args::numbers::at_least;
use crate::args::one_of;
use crate::terminal::console::{tell, usage};
use crate::terminal::options::offered;

/// What to do where little probability lies on the labels.
pub const NO_LABEL: &str = "; the prompt may not lead it to a label (see --prefill and --template)";

/// What LAGER is asked, where the label is read, and which score is made of it.
#[derive(Args, Clone, Debug)]
pub struct LagerArgs {
    /// Layer weights that `judge fit` has saved
    #[arg(long, value_name = "FILE", help_heading = "Judge")]
    pub weights: Option<PathBuf>,
    /// Which score to write: lager_w, lager_wo, e_score, … (docs/lager.md lists them) [default: lager_w with --weights, e_score without]
    #[arg(long, value_name = "NAME", help_heading = "Judge")]
    pub variant: Option<Variant>,
    /// Layers that the score combines; drop-last leaves out the last
    #[arg(long, value_name = "all|drop-last", help_heading = "Judge")]
    pub states: Option<States>,
    /// How the score is obtained: read at the end of the prompt, or after a short or a reasoned reply
    #[arg(long, value_enum, default_value_t = ConditionArg::PromptEnd, help_heading = "Judge")]
    pub condition: ConditionArg,
    /// Which generated label is the score, with --condition direct or reasoning [default:
    /// last-label for direct, after-marker for reasoning]
    #[arg(long, value_enum, help_heading = "Judge")]
    pub rule: Option<Rule>,
    /// The text after which after-marker looks for a label [default: Score:]
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, help_heading = "Judge")]
    pub marker: Option<String>,
    /// Upper bound on generated tokens [default: 10 for direct, 256 for reasoning]
    #[arg(long, value_name = "N", value_parser = at_least::<u32>(1), help_heading = "Judge")]
    pub max_new_tokens: Option<u32>,
    #[command(flatten)]
    /// What is asked.
    pub asked: AskedArgs,
}

/// What the model is asked, and how its layers are read.
#[derive(Args, Clone, Debug)]
pub struct AskedArgs {
    /// How inner states meet the head: raw, as LAGER does, or normed by the model's final norm first
    #[arg(long, value_parser = one_of(LENSES), default_value = "raw", help_heading = "Judge")]
    pub lens: Lens,
    #[arg(long, hide = true, conflicts_with = "lens")]
    normed: bool,
    /// The scale is the numbers 1 to N [default: 9 for emotions, as people graded them, else 5]
    #[arg(long, value_name = "N", value_parser = at_least::<u16>(2), help_heading = "Judge")]
    pub points: Option<u16>,
    /// A prompt template (JSON) [default: for prompt-end judge_template.json of the model folder, else a built-in one]
    #[arg(long, value_name = "FILE", help_heading = "Judge")]
    pub template: Option<PathBuf>,
    /// By what responses are graded, for rows without a `rubric` [default: the template's own]
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, help_heading = "Judge")]
    pub rubric: Option<String>,
    /// Opening of the reply, put after the prompt [default: "score:
    /// " for prompt-end, unless the model folder brings the template, or the template is raw or has a prefill]
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, help_heading = "Judge")]
    pub prefill: Option<String>,
}

/// `--condition`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ConditionArg {
    /// Read at the prompt's end; nothing is generated
    PromptEnd,
    /// Generate a short reply and read where its score is predicted
    Direct,
    /// Generate reasons, then the score
    Reasoning,
}

/// `--rule`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Rule {
    /// The last label that was written
    LastLabel,
    /// The first label after the marker
    AfterMarker,
}

/// Layer weights from a file.
///
/// # Errors
/// If it cannot be read or holds something else.
pub fn layer_weights(path: &Path) -> Result<LayerWeights> {
    match load(path) {
        Err(error @ judge_data::Error::Io { .. }) => Err(error.into()),
        loaded => loaded.with_context(|| {
            format!("{} is no file of layer weights, which `judge fit --weights-out FILE` writes", path.display())
        }),
    }
}

impl LagerArgs {
    /// Whether reasons are written before the score.
    #[must_use]
    pub fn is_reasoning(&self) -> bool {
        self.condition == ConditionArg::Reasoning
    }

    /// The score that is written.
    #[must_use]
    pub fn variant(&self) -> Variant {
        self.variant.unwrap_or_else(|| Variant::default_for(self.weights.is_some()))
    }

    /// Refuses options without effect on one score, which else would be ignored.
    ///
    /// # Errors
    /// Which of them.
    pub fn check(&self) -> Result<()> {
        self.check_condition()?;
        let variant = self.variant();
        if self.states.is_some() && !variant.combines_layers() {
            return Err(usage(format!(
                "--states has no effect on {variant}, which is of the last layer alone; --variant names others"
            )));
        }
        if self.weights.is_some() && !variant.needs_weights() {
            return Err(usage(format!(
                "--weights has no effect on {variant}, which takes none; --variant names others"
            )));
        }
        Ok(())
    }

    /// Refuses options of a reply where none is written, and a score without the weights that it needs.
    ///
    /// # Errors
    /// Which of them.
    pub fn check_condition(&self) -> Result<()> {
        if self.condition == ConditionArg::PromptEnd {
            for (given, name) in [
                (self.rule.is_some(), "--rule"),
                (self.marker.is_some(), "--marker"),
                (self.max_new_tokens.is_some(), "--max-new-tokens"),
            ] {
                if given {
                    return Err(usage(format!("{name} needs --condition direct or reasoning")));
                }
            }
        } else if self.marker.is_some() && self.rule() != Rule::AfterMarker {
            return Err(usage("--marker needs --rule after-marker"));
        }
        match self.variant.filter(|variant| variant.needs_weights() && self.weights.is_none()) {
            Some(variant) => Err(usage(format!("--variant {variant} needs --weights"))),
            None => Ok(()),
        }
    }

    /// The first of these options that says something else than its default.
    #[must_use]
    pub fn given(&self) -> Option<&'static str> {
        let asked = &self.asked;
        let given = [
            ("--weights", self.weights.is_some()),
            ("--variant", self.variant.is_some()),
            ("--states", self.states.is_some()),
            ("--condition", self.condition != ConditionArg::PromptEnd),
            ("--rule", self.rule.is_some()),
            ("--marker", self.marker.is_some()),
            ("--max-new-tokens", self.max_new_tokens.is_some()),
            ("--lens", asked.lens() != Lens::Raw),
            ("--points", asked.points.is_some()),
            ("--template", asked.template.is_some()),
            ("--rubric", asked.rubric.is_some()),
            ("--prefill", asked.prefill.is_some()),
        ];
        given.into_iter().find(|(_, is_given)| *is_given).map(|(name, _)| name)
    }

    /// Says what to do about rows whose text has no label where one was looked for.
    pub fn tell_unscored(&self, unscored: &BTreeMap<Reason, usize>) {
        let missed: Vec<Reason> =
            [Reason::NoLabel, Reason::NoMarker].into_iter().filter(|reason| unscored.contains_key(reason)).collect();
        let Some(generation) = self.condition().generation().filter(|_| !missed.is_empty()).cloned() else { return };
        let missed: Vec<String> = missed.iter().map(ToString::to_string).collect();
        tell(format_args!(
            "note: {}: the model wrote no label of the scale where one is looked for, in at most {} tokens; give it more with \
             --max-new-tokens, or read the score without a reply, at the prompt's end: --condition prompt-end, which also small models can do",
            missed.join(", "),
            generation.max_new_tokens
        ));
    }

    /// The files that the options name.
    pub fn inputs(&self) -> impl Iterator<Item = &PathBuf> {
        [self.weights.as_ref(), self.asked.template.as_ref()].into_iter().flatten()
    }

    fn rule(&self) -> Rule {
        let default = if self.is_reasoning() { Rule::AfterMarker } else { Rule::LastLabel };
        self.rule.unwrap_or(default)
    }

    fn condition(&self) -> Condition {
        let generation = |default| Generation {
            max_new_tokens: self.max_new_tokens.map_or(default, |most| most as usize),
            ..Generation::default()
        };
        let rule = match self.rule() {
            Rule::LastLabel => ScoreRule::LastLabel,
            Rule::AfterMarker => {
                ScoreRule::AfterMarker { marker: self.marker.clone().unwrap_or_else(|| "Score:".to_owned()) }
            }
        };
        match self.condition {
            ConditionArg::PromptEnd => Condition::PromptEnd,
            ConditionArg::Direct => Condition::Direct { generation: generation(10), rule },
            ConditionArg::Reasoning => Condition::Reasoning { generation: generation(256), rule },
        }
    }

    /// The judge for rows of this format.
    ///
    /// # Errors
    /// If a file cannot be read, or the format holds no single responses.
    pub fn lager_settings(&self, format: DatasetFormat, model: &ModelArgs) -> Result<LagerSettings> {
        let weights = self.weights.as_deref().map(layer_weights).transpose()?;
        Ok(LagerSettings {
            states: self.states.or(weights.as_ref().map(LayerWeights::states)).unwrap_or_default(),
            weights,
            variant: self.variant,
            ..self.asked.settings(format, model, self.condition())?
        })
    }

    /// As [`AskedArgs::template_hint`].
    #[must_use]
    pub fn template_hint(&self, format: DatasetFormat) -> String {
        self.asked.template_hint(format, self.condition == ConditionArg::PromptEnd)
    }
}

impl AskedArgs {
    /// How inner states meet the head.
    #[must_use]
    pub fn lens(&self) -> Lens {
        if self.normed { Lens::Normed } else { self.lens }
    }

    /// The judge for rows of this format, by the last layer.
    ///
    /// # Errors
    /// If a file cannot be read, or the format holds no single responses.
    pub fn settings(&self, format: DatasetFormat, model: &ModelArgs, condition: Condition) -> Result<LagerSettings> {
        let points = self.points.unwrap_or(if format == DatasetFormat::Emotion { 9 } else { 5 });
        let scale = Scale::integers(1, points.into())?;
        let (template, own) = self.template(format, &scale, model, &condition)?;
        // The model's own template leads right to the score, and so does one that opens the reply itself or is raw text.
        let opens = match template.source() {
            Prompt::Chat { prefill, .. } => own || !prefill.is_empty(),
            Prompt::Raw(_) | Prompt::Whole(_) => true,
        };
        let opening = if matches!(condition, Condition::PromptEnd) && !opens { "score: " } else { "" };
        Ok(LagerSettings {
            template: model.dress_template(template),
            opening: self.prefill.clone().unwrap_or_else(|| opening.to_owned()),
            condition,
            lens: self.lens(),
            ..LagerSettings::prompt_end(scale)
        })
    }

    /// The template, and whether it is the model's own.
    fn template(
        &self,
        format: DatasetFormat,
        scale: &Scale,
        model: &ModelArgs,
        condition: &Condition,
    ) -> Result<(PromptTemplate, bool)> {
        let is_reasoning = matches!(condition, Condition::Reasoning { .. });
        let folders = match (&self.template, format) {
            (Some(_), _) => None,
            (None, DatasetFormat::Graded | DatasetFormat::Prometheus) if matches!(condition, Condition::PromptEnd) => {
                model.own_template(u16::try_from(scale.points().len())?, self.rubric.as_deref())?
            }
            (None, _) => None,
        };
        let own = folders.is_some();
        let template = match (&self.template, folders) {
            (Some(path), _) => read_template(path)?,
            (None, Some(template)) => template,
            (None, None) => match format {
                DatasetFormat::Graded | DatasetFormat::Prometheus if is_reasoning => {
                    PromptTemplate::pointwise_reasoning(scale)
                }
                DatasetFormat::Graded | DatasetFormat::Prometheus => PromptTemplate::pointwise_direct(scale),
                DatasetFormat::Prompts => PromptTemplate::new(Prompt::user("{prompt}"))?,
                DatasetFormat::Pairs => {
                    let why = "`judge score` grades single responses; `judge compare` compares those of a pair. To grade pairs by a template of your own, give --template";
                    return Err(usage(why));
                }
                DatasetFormat::Answers => {
                    let why = "`judge score` grades single responses; `judge rank --apart` grades all of a list. To grade lists by a template of your own, give --template";
                    return Err(usage(why));
                }
                DatasetFormat::Lager if is_reasoning => PromptTemplate::new(Prompt::user("{user_prompt_feedback}"))?,
                DatasetFormat::Lager => PromptTemplate::new(Prompt::user("{user_prompt}"))?,
                DatasetFormat::Emotion => emotion(scale)?,
            },
        };
        Ok((
            match &self.rubric {
                Some(rubric) => template.with_default("rubric", rubric).map_err(usage)?,
                None => template,
            },
            own,
        ))
    }

    /// Which template it is, and what to do about a field that no row has.
    #[must_use]
    pub fn template_hint(&self, format: DatasetFormat, at_prompt_end: bool) -> String {
        let whose = match (&self.template, format) {
            (Some(path), _) => format!("the template {}", path.display()),
            (None, DatasetFormat::Graded | DatasetFormat::Prometheus) if at_prompt_end => {
                "judge_template.json of the model folder, or else the built-in template,".to_owned()
            }
            _ => "the built-in template".to_owned(),
        };
        let advice = offered([
            "name the column with --columns, give --rubric TEXT for a rubric, or another --template".to_owned(),
            "give --rubric TEXT for a rubric, or another --template".to_owned(),
        ]);
        format!("{whose} uses this field; {}", advice.unwrap_or_else(|| "rename the column".to_owned()))
    }
}

/// How strongly a character of a dialogue feels an emotion. Own wording; the reference's is not licensed.
fn emotion(scale: &Scale) -> Result<PromptTemplate> {
    let (low, high) = scale.range();
    Ok(PromptTemplate::new(Prompt::user(format!(
        "Read this dialogue, then judge what one of its characters feels at its end.\n\n\
         {{dialogue}}\n\n\
         How strongly does {{human}} feel {{emotion}} now? {low} means not at all, {high} means as strongly as can be. \
         Reply with one line of the form\nscore: <number>"
    )))?)
}
