//! What instruction data are graded on: aspects with a rubric each, and the prompts that ask for them.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use judge_core::{Prompt, PromptTemplate, settings::settings_from_json};
use serde::{Deserialize, Serialize};

use judge_cli::terminal::console::usage;

/// The built-in aspects: those of LAGER's experiment, in wording of our own.
const BUILT_IN: &str = include_str!("rubrics.json");

/// The name under which a row says why it has no likelihood.
pub const LIKELIHOOD: &str = "likelihood";

/// Names of what reports have beside aspects.
const TAKEN: [&str; 2] = ["score", LIKELIHOOD];

/// An aspect that an example is graded on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rubric {
    /// Its name in files: letters, digits and `_`.
    pub name: String,
    /// What is asked, in one sentence.
    pub question: String,
    /// What each grade means, from 1 up.
    pub levels: Vec<String>,
}

/// Aspects with as many levels each, in the order in which they are asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rubrics {
    /// Those of the file, which stand in every prompt, so that the grade of one does not depend on which others are asked for.
    all: Vec<Rubric>,
    /// Those that are asked for, by their place in the file.
    asked: Vec<usize>,
}

impl Rubrics {
    /// Reads a file, or takes the built-in seven; `names` are those that are asked for, all if there are none.
    ///
    /// # Errors
    /// If the file holds no rubrics, or has no aspect of a name.
    pub fn read(file: Option<&Path>, names: &[String]) -> Result<Self> {
        let all: Vec<Rubric> = match file {
            None => serde_json::from_str(BUILT_IN).context("the built-in rubrics")?,
            Some(path) => {
                let text = judge_data::read_text(path).context("cannot read the rubrics")?;
                let all: Vec<Rubric> = settings_from_json(&text).with_context(|| {
                    format!("{} holds no rubrics: expected [{{\"name\", \"question\", \"levels\"}}, …]", path.display())
                })?;
                check(&all).with_context(|| format!("{}", path.display()))?;
                all
            }
        };
        let place = |name: &String| {
            all.iter().position(|rubric| rubric.name == *name).ok_or_else(|| {
                let known: Vec<&str> = all.iter().map(|rubric| rubric.name.as_str()).collect();
                usage(format!("there is no aspect {name:?}; there are {}", known.join(", ")))
            })
        };
        let asked: BTreeSet<usize> = names.iter().map(place).collect::<Result<_>>()?;
        let asked = if asked.is_empty() { (0..all.len()).collect() } else { asked.into_iter().collect() };
        Ok(Self { all, asked })
    }

    /// Those that are asked for.
    pub fn asked(&self) -> impl Iterator<Item = &Rubric> {
        self.asked.iter().map(|&place| &self.all[place])
    }

    /// Names of those that are asked for.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.asked().map(|rubric| rubric.name.clone()).collect()
    }

    /// Grades of each.
    #[must_use]
    pub fn levels(&self) -> usize {
        self.all[0].levels.len() // there is one
    }

    /// The prompt that asks for all aspects: the guide to them, then the example. The reply to it opens with the name of one:
    /// see [`opening`](Self::opening).
    ///
    /// In this order prompts begin alike: the guide is the same for all rows, guide and example for all aspects of a row, so both are
    /// computed once where a model keeps what prompts share. What is left for each aspect is its name.
    ///
    /// # Errors
    /// None that is known of: braces of the rubrics are doubled.
    pub fn template(&self) -> Result<PromptTemplate> {
        let mut text = format!(
            "This is a guide to the grading of training examples, each an instruction and a response. Every aspect has a scale of its own from 1 to {}.\n",
            self.levels()
        );
        for Rubric { name, question, levels } in &self.all {
            text += &format!("\n{name}: {question}\n");
            for (grade, level) in (1..).zip(levels) {
                text += &format!("{grade}: {level}\n");
            }
        }
        let text = text.replace('{', "{{").replace('}', "}}");
        let prompt = format!(
            "{text}\nThe example to be graded:\n\nInstruction:\n{{instruction}}\n\nResponse:\n{{response}}\n\n\
             Grade this example. Reply with one line for each aspect, of the form\naspect: <number>"
        );
        Ok(PromptTemplate::new(Prompt::user(prompt))?)
    }

    /// How the reply opens that grades one aspect.
    #[must_use]
    pub fn opening(aspect: &Rubric) -> String {
        format!("{}: ", aspect.name)
    }

    /// One aspect as the `rubric` of a template that has that field.
    #[must_use]
    pub fn sentence(&self, aspect: &Rubric) -> String {
        format!("Give a number from 1 to {}: {}", self.levels(), aspect.question)
    }
}

fn check(all: &[Rubric]) -> Result<()> {
    let Some(first) = all.first() else { bail!("expected at least one aspect, found none") };
    for (place, Rubric { name, question, levels }) in all.iter().enumerate() {
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        ensure!(is_name, "expected a name of letters, digits and _, found {name:?}");
        ensure!(
            !TAKEN.contains(&name.as_str()),
            "an aspect cannot be called {name:?}: reports have {} beside the aspects; give it another name",
            TAKEN.join(" and ")
        );
        ensure!(!question.trim().is_empty(), "{name}: expected a question, found an empty text");
        ensure!(all[..place].iter().all(|other| other.name != *name), "there are two aspects {name:?}");
        let (found, of_first) = (levels.len(), first.levels.len());
        ensure!(found >= 2, "{name}: expected 2 levels or more, found {found}");
        ensure!(
            found == of_first,
            "{name}: expected as many levels as {:?} has, {of_first}, found {found}",
            first.name
        );
        ensure!(levels.iter().all(|level| !level.trim().is_empty()), "{name}: one of the levels is empty");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_seven_have_nine_levels() {
        let rubrics = Rubrics::read(None, &[]).unwrap();
        check(&rubrics.all).unwrap();
        assert_eq!((rubrics.names().len(), rubrics.levels()), (7, 9));
        let item = [("instruction", "Why {rubric}?"), ("response", "So.")];
        let Prompt::Chat { messages, .. } = rubrics.template().unwrap().fill(&item).unwrap() else { panic!("a chat") };
        let text = &messages[0].content;
        let place = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part:?} in {text}"));
        assert!(place("fluency_and_clarity: Is it") < place("Why {rubric}?") && place("Why {rubric}?") < place("So."));
        assert_eq!(Rubrics::opening(rubrics.asked().next().unwrap()), "answer_accuracy: ");
    }

    #[test]
    fn one_aspect_is_asked_with_the_words_of_all() {
        let names = ["relevance".to_owned(), "answer_accuracy".to_owned(), "relevance".to_owned()];
        let (some, all) = (Rubrics::read(None, &names).unwrap(), Rubrics::read(None, &[]).unwrap());
        assert_eq!(some.names(), ["answer_accuracy", "relevance"]);
        assert_eq!(some.template().unwrap().id(), all.template().unwrap().id());
        assert!(Rubrics::read(None, &["beauty".to_owned()]).unwrap_err().to_string().contains("fluency_and_clarity"));
    }

    #[test]
    fn a_file_is_rubrics_or_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rubrics.json");
        let said = |text: &str| {
            std::fs::write(&path, text).unwrap();
            format!("{:#}", Rubrics::read(Some(&path), &[]).unwrap_err())
        };
        let one = r#"{"name": "a", "question": "Is it {odd}?", "levels": ["no", "yes"]}"#;
        assert!(said("[]").contains("found none"));
        assert!(said(&format!("[{one}, {one}]")).contains("two aspects \"a\""));
        assert!(said(one).contains("holds no rubrics"));
        assert!(said(r#"[{"name": "a b", "question": "q", "levels": ["no", "yes"]}]"#).contains("\"a b\""));
        let score = one.replace("\"a\"", "\"score\"");
        assert!(said(&format!("[{score}]")).contains("an aspect cannot be called \"score\""));
        let three = r#"{"name": "b", "question": "q", "levels": ["1", "2", "3"]}"#;
        assert!(said(&format!("[{one}, {three}]")).contains("b: expected as many levels as \"a\" has, 2, found 3"));
        let single = r#"[{"name": "a", "question": "q", "levels": ["no"]}]"#;
        assert!(said(single).contains("a: expected 2 levels or more, found 1"));
        std::fs::write(&path, format!("[{one}]")).unwrap();
        let rubrics = Rubrics::read(Some(&path), &[]).unwrap();
        rubrics.template().unwrap().fill(&[("instruction", "i"), ("response", "r")]).unwrap();
    }
}
