//! What is graded: aspects with their definitions, and the judge that asks about them in turn.

use std::borrow::Cow;
use std::path::Path;

use anyhow::{Context, Result};
use judge_core::{
    Fields, Judge, JudgeError, Prompt, Request, Rounds, Score,
    inspector::Aspect,
    prompted::{PromptFamily, WrittenJudge},
    request::Generation,
    settings::settings_from_json,
};
use judge_data::Numbered;
use serde_json::{Map, Value, json};

use judge_cli::terminal::console::usage;

/// The file of aspects, where `--aspects` names one.
pub fn file(option: &str) -> Option<&Path> {
    let path = Path::new(option);
    (option.ends_with(".json") || path.is_file()).then_some(path)
}

/// Names and definitions of the aspects that `--aspects` names, in order, each name once; without it those of all built-in ones.
pub fn load(option: Option<&str>, points: u16) -> Result<Vec<(String, String)>> {
    let aspects = match (option.and_then(file), option) {
        (Some(path), _) => read(path)?,
        (None, _) if points != 5 => {
            return Err(usage(
                "built-in aspects have grades from 1 to 5; for --points, give --aspects a file of your own",
            ));
        }
        (None, Some(names)) => names.split(',').map(built_in).collect::<Result<Vec<_>>>()?,
        (None, None) => Aspect::ALL.map(|aspect| (aspect.as_str().to_owned(), aspect.definition())).to_vec(),
    };
    for (index, (name, _)) in aspects.iter().enumerate() {
        if aspects[..index].iter().any(|(other, _)| other == name) {
            return Err(usage(format!("--aspects names {name:?} twice")));
        }
    }
    Ok(aspects)
}

fn built_in(name: &str) -> Result<(String, String)> {
    let name = name.trim();
    Ok((name.to_owned(), name.parse::<Aspect>().map_err(usage)?.definition()))
}

fn read(path: &Path) -> Result<Vec<(String, String)>> {
    let wrong = || format!("{} is no file of aspects, expected {{\"NAME\": \"DEFINITION\", ...}}", path.display());
    let text = judge_data::read_text(path).context("cannot read the aspects")?;
    let map: Map<String, Value> = settings_from_json(&text).with_context(wrong)?;
    let aspects: Option<Vec<(String, String)>> = map
        .into_iter()
        .map(|(name, definition)| Some((name, definition.as_str()?.to_owned())))
        .map(|aspect| aspect.filter(|(name, definition)| !name.is_empty() && !definition.trim().is_empty()))
        .collect();
    aspects.filter(|aspects| !aspects.is_empty()).with_context(wrong)
}

/// Asks about one aspect of a record; which one follows from the number of the row, so that all rows of a record stand together.
pub struct AspectJudge {
    judges: Vec<WrittenJudge>,
}

impl AspectJudge {
    pub fn new(aspects: &[(String, String)], points: u16, generation: &Generation) -> Result<Self> {
        let judges = aspects.iter().map(|(_, definition)| {
            let family = PromptFamily::built_in_on("single-json", Some(points))?;
            let template = family.template().clone().with_default("rubric", definition.as_str())?;
            Ok(WrittenJudge::new(family.with_template(template)?).with_generation(generation.clone()))
        });
        Ok(Self { judges: judges.collect::<Result<_>>()? })
    }

    /// The prompts about a record, one for each aspect.
    pub fn prompts(&self, record: &dyn Fields) -> Result<Vec<Prompt>> {
        self.judges.iter().map(|judge| Ok(judge.family().template().fill(&OtherCriterion(record))?)).collect()
    }

    /// Content ids of the templates.
    pub fn template_ids(&self) -> Vec<&str> {
        self.judges.iter().map(|judge| judge.family().template().id()).collect()
    }

    fn of(&self, item: &Numbered) -> &WrittenJudge {
        &self.judges[item.row % self.judges.len()]
    }
}

impl Judge<Numbered> for AspectJudge {
    fn name(&self) -> &str {
        "aspects"
    }

    fn ask(&self, item: &Numbered) -> Result<Vec<Request>, JudgeError> {
        self.of(item).ask(&OtherCriterion(item))
    }

    fn decide(&self, item: &Numbered, rounds: &Rounds<'_>) -> Result<Score, JudgeError> {
        self.of(item).decide(&OtherCriterion(item), rounds)
    }

    fn settings(&self) -> Option<Value> {
        let judges = self.judges.iter().map(Judge::<dyn Fields>::settings).collect::<Option<Vec<_>>>()?;
        Some(json!({"judge": "aspects", "judges": judges}))
    }
}

/// A record without its own rubric: it is graded by the aspect.
pub struct OtherCriterion<'a>(pub &'a dyn Fields);

impl Fields for OtherCriterion<'_> {
    fn field(&self, name: &str) -> Option<Cow<'_, str>> {
        self.field_beside(name, &[])
    }

    fn field_beside(&self, name: &str, shown: &[&str]) -> Option<Cow<'_, str>> {
        if name == "rubric" { None } else { self.0.field_beside(name, shown) }
    }

    fn json(&self, name: &str) -> Option<Cow<'_, Value>> {
        if name == "rubric" { None } else { self.0.json(name) }
    }

    fn names(&self) -> Vec<String> {
        self.0.names().into_iter().filter(|name| name != "rubric").collect()
    }
}
