//! Judging question and answer pairs by several probes at once.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use judge_core::{
    Aspect, Backbone, Fields, InspectorJudge, InspectorSettings, ItemId, Judge, PromptTemplate, RunEvent, Runner,
    Verdict, total_score,
};
use judge_data::{Extra, Rows};
use judge_probe::SavedProbe;
use serde_json::{Map, Value, json};

use crate::model_args::{ModelArgs, read_template};
use crate::pace::Pace;

/// The options of examples that judge by probes.
#[derive(Args)]
pub struct ProbeArgs {
    /// Pairs: JSON or JSON lines of objects with `question` and `prediction` (or `response`)
    #[arg(long, value_name = "FILE")]
    pub input: PathBuf,
    /// Probe files, or a folder of them
    #[arg(long, required = true, num_args = 1.., value_name = "FILE|DIR")]
    pub probes: Vec<PathBuf>,
    /// Folder of ASPECT.json, the prompt templates that the probes were fitted with [default: those beside the probes]
    #[arg(long, value_name = "DIR")]
    pub templates: Option<PathBuf>,
    /// The model and how it is run
    #[command(flatten)]
    pub model: ModelArgs,
}

/// A probe with the prompt that it was fitted on.
struct Judged {
    aspect: String,
    probe: Arc<SavedProbe>,
    template: PromptTemplate,
}

/// A pair as the file has it.
pub struct Pair {
    /// All of its fields.
    pub fields: Extra,
    question: String,
    response: String,
}

impl Fields for Pair {
    fn field(&self, name: &str) -> Option<Cow<'_, str>> {
        match name {
            "question" | "instruction" => Some(self.question.as_str().into()),
            "response" | "prediction" => Some(self.response.as_str().into()),
            _ => self.fields.string(name).map(Cow::from),
        }
    }

    fn names(&self) -> Vec<String> {
        self.fields.iter().map(|(name, _)| name.to_owned()).collect()
    }
}

/// A pair with what the probes say of it.
pub struct Evaluated {
    /// The pair.
    pub pair: Pair,
    /// One verdict per aspect.
    pub verdicts: Vec<Verdict>,
    /// The sum of the aspects' classes; `None` unless all are scored.
    pub total: Option<f64>,
}

/// All pairs of the input, in its order, and the aspects.
pub struct Evaluation {
    /// Names of the aspects.
    pub aspects: Vec<String>,
    /// The pairs.
    pub pairs: Vec<Evaluated>,
}

impl Evaluated {
    /// The fields of the pair as the file has them, then the class of each aspect, `total_score`, and why an aspect has no class.
    ///
    /// # Errors
    /// None in practice: what is added has a JSON form.
    pub fn to_row(&self, aspects: &[String]) -> Result<Extra> {
        let mut row = self.pair.fields.clone();
        let mut unscored = Map::new();
        let mut probabilities = Map::new();
        for (aspect, verdict) in aspects.iter().zip(&self.verdicts) {
            match verdict {
                Verdict::Scored { distribution, .. } => {
                    // Classes are whole numbers.
                    row.set(aspect.clone(), &(distribution.mode().value as i64))?;
                    probabilities.insert(aspect.clone(), json!(distribution.probabilities()));
                }
                Verdict::Unscored(reason) => {
                    row.set(aspect.clone(), &Value::Null)?;
                    unscored.insert(aspect.clone(), json!({"reason": reason.reason, "detail": reason.detail}));
                }
            }
        }
        row.set("total_score", &self.total.map(|total| total as i64))?;
        row.set("probabilities", &probabilities)?;
        if !unscored.is_empty() {
            row.set("unscored", &unscored)?;
        }
        Ok(row)
    }
}

/// Judges all pairs of the input by all probes in one run; all of the input is checked before the model is loaded.
///
/// # Errors
/// Of the input, of probes and templates, and of the model.
pub fn evaluate(args: &ProbeArgs) -> Result<Evaluation> {
    let pairs = pairs(&args.input, args.model.limit)?;
    let judged = probes(args)?;
    let model = args.model.load()?;
    let judges = judged
        .iter()
        .map(|Judged { aspect, probe, template }| {
            let settings =
                InspectorSettings { template: args.model.dress_template(template.clone()), probe: probe.clone() };
            InspectorJudge::new(settings, model.info()).with_context(|| format!("the probe of {aspect}"))
        })
        .collect::<Result<Vec<_>>>()?;
    let mut pace = Pace::new("judging", pairs.len(), args.model.quiet);
    let mut evaluated = Vec::with_capacity(pairs.len());
    let items = pairs.into_iter().enumerate().map(|(row, pair)| (ItemId::from(row as u64), pair));
    let judges = judges.iter().map(|judge| judge as &dyn Judge<Pair>).collect();
    Runner::new(&model, judges).run(items, &mut |event| {
        if let RunEvent::Item(result) = event {
            pace.done(&result.outcomes.concat());
            let total = total_score(&result.verdicts);
            evaluated.push(Evaluated { pair: result.item, verdicts: result.verdicts, total });
        }
        ControlFlow::Continue(())
    })?;
    pace.finish();
    Ok(Evaluation { aspects: judged.into_iter().map(|judged| judged.aspect).collect(), pairs: evaluated })
}

fn pairs(path: &Path, limit: Option<usize>) -> Result<Vec<Pair>> {
    let mut pairs = Vec::new();
    for row in Rows::open(path)?.take(limit.unwrap_or(usize::MAX)) {
        let row = row?;
        let question = row.string(if row.has("question") { "question" } else { "instruction" })?;
        let response = row.string(if row.has("prediction") { "prediction" } else { "response" })?;
        pairs.push(Pair { question, response, fields: row.into_extra(&[]) });
    }
    Ok(pairs)
}

fn probes(args: &ProbeArgs) -> Result<Vec<Judged>> {
    let mut paths = Vec::new();
    for path in &args.probes {
        if !path.is_dir() {
            paths.push(path.clone());
            continue;
        }
        let mut inside = Vec::new();
        for entry in std::fs::read_dir(path).with_context(|| format!("cannot list {}", path.display()))? {
            let entry = entry?.path();
            if entry.extension().is_some_and(|extension| extension == "safetensors") {
                inside.push(entry);
            }
        }
        ensure!(!inside.is_empty(), "{} has no probes (*.safetensors)", path.display());
        inside.sort();
        paths.extend(inside);
    }
    let mut judged: BTreeMap<(usize, String), Judged> = BTreeMap::new();
    for path in paths {
        let bytes = std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let probe = SavedProbe::from_bytes(&bytes).with_context(|| format!("{} is no probe", path.display()))?;
        let notes = &probe.origin().notes;
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let aspect = notes.get("aspect").cloned().unwrap_or(stem);
        let template = template(args, &path, &aspect, notes.get("template_id").map(String::as_str))?;
        // The five in the published order, others behind them.
        let place = Aspect::ALL.iter().position(|known| known.as_str() == aspect).unwrap_or(Aspect::ALL.len());
        let entry = Judged { aspect: aspect.clone(), probe: Arc::new(probe), template };
        if judged.insert((place, aspect.clone()), entry).is_some() {
            bail!("{}: there are two probes of the aspect {aspect:?}", path.display());
        }
    }
    Ok(judged.into_values().collect())
}

/// The template that a probe was fitted with.
fn template(args: &ProbeArgs, probe: &Path, aspect: &str, id: Option<&str>) -> Result<PromptTemplate> {
    let named = args.templates.as_ref().map(|folder| folder.join(format!("{aspect}.json")));
    let beside = probe.with_extension("template.json");
    let template = match named {
        Some(path) => read_template(&path)?,
        None if beside.exists() => read_template(&beside)?,
        None => match aspect.parse::<Aspect>() {
            Ok(aspect) if id == Some(aspect.template().id()) => aspect.template(),
            _ => bail!(
                "{} does not say which prompt it was fitted on: give --templates, a folder with {aspect}.json",
                probe.display()
            ),
        },
    };
    if let Some(id) = id {
        ensure!(template.id() == id, "{} was fitted on another prompt than the template at hand", probe.display());
    }
    Ok(template)
}

/// The positions of the best `share` of the pairs, ⌊n · share⌋ of them, by total, ties in the order of the input; all in that order for a share
/// of 1. Pairs without a total come last.
#[must_use]
pub fn best(pairs: &[Evaluated], share: f64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..pairs.len()).collect();
    if share >= 1.0 {
        return order;
    }
    // Totals are sums of classes, never NaN.
    order.sort_by(|&a, &b| {
        let total = |index: usize| pairs[index].total.unwrap_or(f64::NEG_INFINITY);
        total(b).total_cmp(&total(a))
    });
    order.truncate((pairs.len() as f64 * share).floor() as usize);
    order
}
