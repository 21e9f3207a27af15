use super::{PromptTemplate, escape};
use crate::{Prompt, Scale};

/// Built-in templates: grading one response by a rubric.
///
/// The wording is this project's own. The order of the parts (task, instruction, response, rubric, form of the reply; one user message with
/// `###` headings) is that of LAGER's benchmark prompts, whose text carries no licence. Other differences: the rubric is free text
/// (criterion and what each level means, however the data set words it), and the labels are those of any scale, not the digits 1 to 5.
/// Scores made with these templates are therefore not comparable digit by digit with published ones.
impl PromptTemplate {
    /// The *direct* condition: the reply is `score: ` and one label, nothing else.
    /// Fields: `instruction`, `response`, and `rubric`, which has a default.
    pub fn pointwise_direct(scale: &Scale) -> Self {
        pointwise(&format!(
            "Choose the level that describes the response best. Your whole reply is one line of the form\n\
             score: <level>\n\
             where <level> is exactly one of: {}. Give no reasons.",
            labels(scale)
        ))
    }

    /// The *reasoning* condition: feedback first, then `Score: ` and one label.
    /// Fields: `instruction`, `response`, and `rubric`, which has a default.
    pub fn pointwise_reasoning(scale: &Scale) -> Self {
        pointwise(&format!(
            "First explain how the response meets or misses the rubric, then choose the level that describes it best. \
             Reply in the form\n\
             Feedback: <your explanation>\n\
             Score: <level>\n\
             where <level> is exactly one of: {}. Nothing follows the level.",
            labels(scale)
        ))
    }
}

/// What a response is graded by if an item says nothing of it.
const RUBRIC: &str = "How well does the response do what the instruction asks for? It should be correct, complete, to the point and clearly \
                      written. The lowest level is useless or wrong throughout, the highest could not be better.";

fn pointwise(reply: &str) -> PromptTemplate {
    let prompt = Prompt::user(format!(
        "Below are an instruction, a response to it, and a rubric. Grade the response by this rubric alone.\n\n\
         ### Instruction\n{{instruction}}\n\n\
         ### Response\n{{response}}\n\n\
         ### Rubric\n{{rubric}}\n\n\
         ### Your reply\n{reply}"
    ));
    PromptTemplate::known_good(prompt).with_default("rubric", RUBRIC).expect("the template above uses {rubric}")
}

fn labels(scale: &Scale) -> String {
    escape(&scale.labels().collect::<Vec<_>>().join(", "))
}
