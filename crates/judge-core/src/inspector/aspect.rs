use std::str::FromStr;

use crate::{Error, Prompt, PromptTemplate, error::by_name};

/// One of the five aspects that INSPECTOR judges a worked answer by, each on the levels 1 to 5.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Aspect {
    /// Whether the answer stays with what the question says.
    SemanticConsistency,
    /// Whether each step follows from those before it.
    Logicality,
    /// Whether the steps needed to check the result are there.
    Informativeness,
    /// Whether it reads well, right or wrong.
    Fluency,
    /// Whether what it states is true.
    Factuality,
}

crate::names! { Aspect {
    SemanticConsistency: "semantic_consistency",
    Logicality: "logicality",
    Informativeness: "informativeness",
    Fluency: "fluency",
    Factuality: "factuality",
}}

impl Aspect {
    /// The built-in prompt for this aspect: a raw text without chat template. Fields: `question`, `response`.
    ///
    /// The wording is this project's own; the published prompts carry no licence. As there, the rubric comes first with its five levels
    /// from the best to the worst, then the question, then the response, and the last token is the same whatever is judged, so that its
    /// state is a place to read from. Probes that were fitted on the published prompts need those: give them as a template of your own.
    #[must_use]
    pub fn template(self) -> PromptTemplate {
        let (question, _) = self.rubric();
        PromptTemplate::known_good(Prompt::Raw(format!(
            "Grade a step-by-step solution. {question} Choose one level:\n{}\n\n\
             ### Question\n{{question}}\n\n### Solution\n{{response}}\n\n### Level\nThe level from 1 to 5, and nothing else:\n",
            self.levels()
        )))
    }

    /// What is asked about this aspect, and what each grade from 5 to 1 stands for, a line each:
    /// the rubric for a judge that is asked in words.
    #[must_use]
    pub fn definition(self) -> String {
        let (question, _) = self.rubric();
        format!("{question}\n{}", self.levels())
    }

    fn levels(self) -> String {
        let (_, levels) = self.rubric();
        let levels = levels.iter().zip((1..=5).rev()).map(|(level, number)| format!("{number}: {level}"));
        levels.collect::<Vec<_>>().join("\n")
    }

    /// What is asked, and the levels 5 to 1.
    fn rubric(self) -> (&'static str, [&'static str; 5]) {
        match self {
            Self::SemanticConsistency => (
                "Does it stay with what the question says?",
                [
                    "every step uses the question's facts as they are, and none is left out or made up",
                    "true to the question but for one detail that changes nothing",
                    "mostly true to it; one fact is bent, dropped or silently assumed",
                    "several facts of the question are changed, ignored or invented",
                    "it contradicts the question or answers another one",
                ],
            ),
            Self::Logicality => (
                "Does each step follow from those before it?",
                [
                    "every inference and every calculation is valid",
                    "valid but for one small slip that does not spread",
                    "the line of thought holds, with a gap or a mistake that matters",
                    "several steps do not follow, or the main one is wrong",
                    "the steps have nothing to do with each other",
                ],
            ),
            Self::Informativeness => (
                "Are the steps that one needs to check the result there?",
                [
                    "a reader can verify all of it from what is written",
                    "one obvious step is left to the reader",
                    "the outline is there, but a step that matters is absent",
                    "little besides the result; most of the way is absent",
                    "a bare result, or nothing that helps",
                ],
            ),
            Self::Fluency => (
                "Does it read well? Whether it is right does not count.",
                [
                    "clear, grammatical and easy to follow",
                    "clear, with a small slip of language",
                    "understandable, but clumsy or with several slips",
                    "hard to read; sentences are broken or repeat themselves",
                    "it cannot be read as language",
                ],
            ),
            Self::Factuality => (
                "Is what it states true?",
                [
                    "every statement, number and reference is right",
                    "right but for one trifle",
                    "the main points are right, and something that matters is wrong or without support",
                    "several statements are wrong",
                    "it is wrong throughout or made up",
                ],
            ),
        }
    }
}

impl FromStr for Aspect {
    type Err = Error;

    /// Reads a name in snake case.
    fn from_str(text: &str) -> Result<Self, Error> {
        by_name("aspect", text, &Self::ALL, Self::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_differ_where_aspects_do_and_end_alike() {
        let prompts = Aspect::ALL.map(|aspect| {
            assert_eq!(aspect.as_str().parse::<Aspect>().unwrap(), aspect);
            assert_eq!(aspect.definition().lines().count(), 6);
            let template = aspect.template();
            assert_eq!(template.field_names(), ["question", "response"]);
            // Made without the check that templates from files go through.
            assert_eq!(PromptTemplate::new(template.source().clone()).unwrap(), template);
            let Prompt::Raw(text) = template.fill(&[("question", "1 + 1?"), ("response", "{2}")]).unwrap() else {
                panic!("a raw prompt")
            };
            assert!(text.contains("\n1: ") && text.contains("### Question\n1 + 1?\n\n### Solution\n{2}\n\n"), "{text}");
            text
        });
        let tail = |text: &str| text[text.find("### Level").unwrap()..].to_owned();
        for (i, prompt) in prompts.iter().enumerate() {
            assert_eq!(tail(prompt), tail(&prompts[0]));
            assert!(prompt.ends_with('\n') && !prompts[..i].contains(prompt));
        }
        assert!(matches!("charm".parse::<Aspect>(), Err(Error::UnknownName { .. })));
    }
}
