//! The passes: seven aspects, likelihoods, probes, and states.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use judge_cli::args::lager::{ConditionArg, LagerArgs};
use judge_cli::args::model_args::{ModelArgs, OWN_POINTS};
use judge_cli::probes::PromptedProbe;
use judge_cli::prompts::{finished_states, keep_states};
use judge_cli::terminal::console::{tell, usage};
use judge_core::{
    Backbone, Judge, JudgeError, Prompt, PromptTemplate, Rounds, Verdict,
    inspector::{InspectorJudge, total_score},
    lager::{LagerJudge, LagerSettings, LayerTable, LayerWeights, Variant},
    prompted::ResponseLikelihoodJudge,
    request::Pooling,
};
use judge_data::{DatasetFormat, Settings, Sharding, StatesFile, StatesSpec, StatesWriter};
use serde_json::json;

use super::example::Example;
use super::pass::{Answer, Passes};
use super::rubrics::{LIKELIHOOD, Rubric, Rubrics};
use crate::rows::label::OtherCriterion;

/// How each aspect is asked about.
pub struct Aspects {
    settings: Vec<(String, LagerSettings)>,
}

impl Aspects {
    /// The settings of LAGER for each aspect. A model that brings its own template, and `--template`, are asked with the aspect's question
    /// as the `rubric`; others with the guide to all aspects.
    ///
    /// # Errors
    /// If a template has no place for a rubric, or an option does not fit.
    pub fn new(rubrics: &Rubrics, lager: &LagerArgs, model: &ModelArgs) -> Result<Self> {
        lager.check()?;
        if lager.asked.rubric.is_some() {
            return Err(usage("--rubric is for one aspect; a file of rubrics asks about each aspect in its own words"));
        }
        let levels = u16::try_from(rubrics.levels()).context("levels of a rubric")?;
        let own = lager.condition == ConditionArg::PromptEnd && model.own_template(OWN_POINTS, None)?.is_some();
        let guided = lager.asked.template.is_none() && !own;
        if lager.asked.points.is_some_and(|points| lager.asked.template.is_none() && points != levels) {
            return Err(usage(format!("--points must be {levels}, the levels of the rubrics")));
        }
        if guided && lager.asked.prefill.is_some() {
            return Err(usage("the reply opens with the name of the aspect; --prefill needs --template"));
        }
        if guided && lager.is_reasoning() {
            return Err(usage("the prompts ask for grades alone; --condition reasoning needs --template"));
        }
        let mut with_points = lager.clone();
        with_points.asked.points.get_or_insert(levels);
        // Each aspect's own question names the grades.
        with_points.asked.rubric = rubrics
            .asked()
            .next()
            .filter(|_| own && lager.asked.template.is_none())
            .map(|first| rubrics.sentence(first));
        let base = with_points.lager_settings(DatasetFormat::Graded, model)?;
        let of = |rubric: &Rubric| -> Result<(String, LagerSettings)> {
            if guided {
                let template = model.dress_template(rubrics.template()?);
                return Ok((
                    rubric.name.clone(),
                    LagerSettings { template, opening: Rubrics::opening(rubric), ..base.clone() },
                ));
            }
            let template = base.template.clone().with_default("rubric", rubrics.sentence(rubric));
            let template = template.context("aspects are asked about as the {rubric} of the template")?;
            Ok((rubric.name.clone(), LagerSettings { template, ..base.clone() }))
        };
        Ok(Self { settings: rubrics.asked().map(of).collect::<Result<_>>()? })
    }

    /// The prompts.
    pub fn templates(&self) -> impl Iterator<Item = &PromptTemplate> {
        self.settings.iter().map(|(_, settings)| &settings.template)
    }

    /// Grades all examples on each aspect; see [`Passes::pass`].
    ///
    /// # Errors
    /// As there.
    pub fn grade(&self, passes: &Passes<'_>, output: &Path) -> Result<()> {
        let mut settings = Settings::new();
        for (name, of_one) in &self.settings {
            settings.insert(name.clone(), serde_json::to_value(of_one)?);
        }
        let judges = |model: &judge_models::Model| -> Result<Vec<AspectJudge>> {
            let judge = |(name, settings): &(String, LagerSettings)| -> Result<AspectJudge> {
                Ok(AspectJudge { aspect: name.clone(), judge: LagerJudge::new(settings.clone(), model)? })
            };
            let judges = self.settings.iter().map(judge).collect::<Result<Vec<_>>>()?;
            // The same weights for all: one note says it.
            for note in judges.first().map(|first| first.judge.weight_notes()).unwrap_or_default() {
                tell(format_args!("note: {note}"));
            }
            Ok(judges)
        };
        passes.pass(output, "grading", settings, judges, |judges, result| {
            let mut answer = Answer::default();
            let mut aspects: BTreeMap<&str, f64> = BTreeMap::new();
            let mut variants: BTreeMap<&str, BTreeMap<&str, f64>> = BTreeMap::new();
            for (place, (judge, verdict)) in judges.iter().zip(&result.verdicts).enumerate() {
                match verdict {
                    Verdict::Scored(score) => {
                        aspects.insert(&judge.aspect, score.value);
                        let table = judge.judge.table(&result.rounds(place))?;
                        for (name, value) in judge.variants(&table)? {
                            variants.entry(name).or_default().insert(&judge.aspect, value);
                        }
                    }
                    Verdict::Unscored(why) => answer.lacks(&judge.aspect, why.clone()),
                }
            }
            answer.set("aspects", &aspects)?;
            answer.set("variants", &variants)?;
            Ok(answer)
        })
    }
}

/// LAGER, by the aspect's name.
struct AspectJudge {
    aspect: String,
    judge: LagerJudge,
}

impl AspectJudge {
    /// The largest label, the expected score, and LAGER without and, where weights are given, with them.
    fn variants(&self, table: &LayerTable) -> Result<Vec<(&'static str, f64)>> {
        let LagerSettings { scale, states, weights, .. } = self.judge.settings();
        let with = weights.as_ref().map(|_| Variant::WeightedExpected);
        let variants = [Variant::LastMode, Variant::LastExpected, Variant::MeanExpected].into_iter().chain(with);
        let score = |variant: Variant| -> Result<(&'static str, f64)> {
            let scored = match weights {
                Some(weights) => LayerWeights::score(weights, variant, table, scale)?,
                None => variant.score(table, scale, *states)?,
            };
            Ok((variant.as_str(), scored.score))
        };
        variants.map(score).collect()
    }
}

impl Judge<Example> for AspectJudge {
    fn name(&self) -> &str {
        &self.aspect
    }

    /// The aspect's question is the rubric, and not what the row has.
    fn ask(&self, item: &Example) -> Result<Vec<judge_core::Request>, JudgeError> {
        self.judge.ask(&OtherCriterion(item))
    }

    fn decide(&self, item: &Example, rounds: &Rounds<'_>) -> Result<judge_core::Score, JudgeError> {
        self.judge.decide(&OtherCriterion(item), rounds)
    }

    fn settings(&self) -> Option<serde_json::Value> {
        Judge::<Example>::settings(&self.judge).map(|judge| json!({"aspect": self.aspect, "member": judge}))
    }
}

/// Reads how likely each response is, given its instruction and alone; see [`Passes::pass`].
///
/// # Errors
/// As there.
pub fn likelihoods(passes: &Passes<'_>, output: &Path) -> Result<()> {
    let template = passes.model.dress_template(PromptTemplate::new(Prompt::user("{instruction}"))?);
    let mut settings = Settings::new();
    settings.insert("template".to_owned(), json!(template.id()));
    let judges = |_: &judge_models::Model| Ok(vec![ResponseLikelihoodJudge::new(template, "response")]);
    passes.pass(output, "reading likelihoods", settings, judges, |judges, result| {
        let mut answer = Answer::default();
        match &result.verdicts[0] {
            Verdict::Scored(score) => {
                let found = judges[0].likelihood(&result.rounds(0))?;
                answer.set("log_prob", &score.value)?;
                answer.set("tokens", &found.given.tokens.len())?;
                answer.set("perplexity", &found.perplexity().filter(|perplexity| perplexity.is_finite()))?;
                answer.set("difficulty", &found.difficulty())?;
            }
            Verdict::Unscored(why) => answer.lacks(LIKELIHOOD, why.clone()),
        }
        Ok(answer)
    })
}

/// Judges all examples by probes; see [`Passes::pass`]. A row's number is the sum of the expected grades, or of the classes where a probe
/// knows no probabilities. What a probe lacks is noted by its name, which is that of an aspect too if it is `graded`.
///
/// # Errors
/// As there.
pub fn probes(passes: &Passes<'_>, output: &Path, probes: &[PromptedProbe], graded: &[String]) -> Result<()> {
    let name = |probe: &PromptedProbe| match graded.contains(&probe.aspect) || probe.aspect == LIKELIHOOD {
        true => format!("probe {}", probe.aspect),
        false => probe.aspect.clone(),
    };
    let mut settings = Settings::new();
    settings.insert("probes".to_owned(), PromptedProbe::settings(probes));
    let judges = |model: &judge_models::Model| -> Result<Vec<InspectorJudge>> {
        probes.iter().map(|probe| probe.judge(passes.model, model.info())).collect()
    };
    passes.pass(output, "judging by probes", settings, judges, |_, result| {
        let mut answer = Answer::default();
        let mut expected = Some(0.0);
        let mut classes: BTreeMap<&str, f64> = BTreeMap::new();
        for (probe, verdict) in probes.iter().zip(&result.verdicts) {
            match verdict {
                Verdict::Scored(score) => {
                    classes.insert(&probe.aspect, score.value);
                    expected = expected.zip(score.distribution.as_ref()).map(|(sum, known)| sum + known.expected());
                }
                Verdict::Unscored(why) => {
                    expected = None;
                    answer.lacks(&name(probe), why.clone());
                }
            }
        }
        answer.set("classes", &classes)?;
        answer.set("total", &expected.or_else(|| total_score(&result.verdicts)))?;
        Ok(answer)
    })
}

/// The mean states of all examples at the middle layer, of instruction and response as raw text:
/// what an example is about, not how it was asked about.
///
/// # Errors
/// Whatever is wrong with the output or the model; [`Stopped`](judge_cli::terminal::interrupt::Stopped) after a signal.
pub fn states(passes: &Passes<'_>, output: &Path) -> Result<StatesFile> {
    let template = PromptTemplate::new(Prompt::Raw("{instruction}\n\n{response}".to_owned()))?;
    let mut settings = Settings::new();
    settings.insert("template".to_owned(), json!(template.id()));
    let plan = passes.of_model(output, settings)?.plan(&passes.checked)?;
    if finished_states(&plan)?.is_some() {
        return Ok(StatesFile::open(output)?);
    }
    let model = passes.model()?;
    let info = model.info();
    let (layer, pooling) = (judge_core::Layer(info.n_layers.div_ceil(2)), Pooling::Mean);
    let metadata = plan
        .settings
        .iter()
        .map(|(key, value)| (key.clone(), value.to_string()))
        .chain([
            ("input_blake3".to_owned(), plan.inputs[0].blake3.clone()),
            ("model_fingerprint".to_owned(), info.fingerprint.clone()),
        ])
        .collect();
    let spec =
        StatesSpec { rows: plan.rows, layers: vec![layer], d_model: info.d_model, metadata, sharding: Sharding::Whole };
    let writer = StatesWriter::open(output, &spec, plan.options)?;
    let prompts = passes.examples()?.map(|example| {
        let example = example?;
        let prompt = match &example.said {
            Ok(_) => Ok(template.fill(&example)?),
            Err(why) => Err(why.clone()),
        };
        Ok((example.record.id().clone(), example.row, prompt))
    });
    keep_states(&plan, model, writer, vec![layer], pooling, passes.model.quiet, prompts)?;
    Ok(StatesFile::open(output)?)
}
