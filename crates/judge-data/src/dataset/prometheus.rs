//! The prompts of Prometheus' published evaluations, which hold what was asked, the response and the rubric in one text.

use crate::rows::cell::list_in_cell;
use crate::rows::grades::{self, Given};
use crate::rows::reading::{Reading, Rest};
use crate::{DatasetOptions, Error, Extra, Field, GradedRecord, Row};

/// What a prompt for an absolute grade holds (Kim et al., 2023, arXiv 2310.08491).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Graded {
    pub(crate) instruction: String,
    pub(crate) response: String,
    /// The answer that would get the best grade; not all evaluations have one.
    pub(crate) reference: Option<String>,
    pub(crate) rubric: String,
}

/// What [`Graded::parse`] reads, in words.
pub(crate) const PROMPT: &str = "a prompt of Prometheus with each of its headings once: the instruction, the response, a reference answer or none, the score rubrics, the feedback";

/// The headings in the order of a prompt. All but the reference must be there.
const HEADINGS: [&str; 5] = [
    "###The instruction to evaluate:",
    "###Response to evaluate:",
    "###Reference Answer (Score 5):",
    "###Score Rubrics:",
    "###Feedback:",
];

impl Graded {
    /// Takes a prompt apart. A heading starts its line; texts lose the white space around them.
    /// `None` if a heading is missing, out of its order, or there twice: which one is
    /// the prompt's own could only be guessed.
    pub(crate) fn parse(prompt: &str) -> Option<Self> {
        let mut places = [None; 5];
        let mut start = 0;
        for line in prompt.split_inclusive('\n') {
            if let Some(heading) = HEADINGS.iter().position(|heading| line.starts_with(heading)) {
                let later = places[heading..].iter().any(Option::is_some);
                if later {
                    return None;
                }
                places[heading] = Some((start, start + HEADINGS[heading].len()));
            }
            start += line.len();
        }
        let section = |heading: usize| {
            let (_, begin) = places[heading]?;
            let end = places[heading + 1..].iter().flatten().map(|(end, _)| *end).next()?;
            Some(prompt[begin..end].trim().to_owned())
        };
        Some(Self { instruction: section(0)?, response: section(1)?, reference: section(2), rubric: section(3)? })
    }
}

impl GradedRecord {
    /// Reads row number `index`, counted from 0, of prometheus-eval's `mt_bench_eval.json` or a file of its form:
    /// `instruction` is a whole prompt of Prometheus, which is taken apart, and
    /// `gpt4_score` one grade from 1 to 5 or three, which are read as raters.
    ///
    /// The raters are those of another column where [`columns`](DatasetOptions::columns) chooses one for `human`.
    /// `idx` there is the number of a question that several models answer, so rows are
    /// numbered unless they have an `id` or a column is chosen for it; `idx` is kept with the other fields.
    ///
    /// # Errors
    /// [`Error::MissingField`]; [`Error::WrongType`] for an instruction that is no such prompt; of a chosen id
    /// [`Error::FractionalId`]. Grades that are neither one nor three or are off the scale are left out, and
    /// [noted](crate::RowColumns::no_grade).
    pub fn from_prometheus(row: Row, index: usize, options: &DatasetOptions) -> Result<Self, Error> {
        let (record, rest) = Self::read_prometheus(&row, index, options)?;
        Ok(Self { extra: rest.of(row, &options.columns), ..record })
    }

    pub(crate) fn read_prometheus(row: &Row, index: usize, options: &DatasetOptions) -> Result<(Self, Rest), Error> {
        const GRADES: &str = "a whole number from 1 to 5, or a list of three";
        let chosen = |field| options.columns.is_chosen(field);
        let of_grades = |json: &str| {
            let Given { raters, .. } = Given::of(json, grades::number);
            let fits = raters.len() == if list_in_cell(json).starts_with('[') { 3 } else { 1 };
            let is_grade = |grade: f64| (1.0..=5.0).contains(&grade) && grade.fract() == 0.0;
            (fits && raters.iter().all(|grade| grade.is_some_and(is_grade))).then_some(raters)
        };
        let found = row.value("gpt4_score").filter(|_| !chosen(Field::Human)).map(of_grades);
        let odd = matches!(found, Some(None)).then(|| row.wrong("gpt4_score", GRADES));
        let grades = found.flatten().unwrap_or_default();
        let mut row = Reading::new(row, options);
        let id = row.id_or_number(index)?;
        let prompt = row.text(Field::Instruction)?;
        let graded = Graded::parse(&prompt).ok_or_else(|| row.refused(Field::Instruction, PROMPT))?;
        let scores = if chosen(Field::Human) { row.raters() } else { grades };
        odd.iter().for_each(|error| row.note_no_grade(error));
        let (columns, rest) = row.finish();
        let rest = if chosen(Field::Human) { rest } else { rest.without(&["gpt4_score"]) };
        let Graded { instruction, response, reference, rubric } = graded;
        let extra = Extra::new();
        Ok((Self { id, instruction, response, rubric: Some(rubric), reference, scores, columns, extra }, rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(parts: &[&str]) -> String {
        parts.join("\n\n")
    }

    const PARTS: [&str; 6] = [
        "###Task Description:\nGrade it.",
        "###The instruction to evaluate:\nUser: Hi ###Feedback: ?",
        "###Response to evaluate:\nHello.\n### Not a heading\n",
        "###Reference Answer (Score 5):\nHello!",
        "###Score Rubrics:\n[Is it polite?]\nScore 1: no\nScore 5: yes",
        "###Feedback: ",
    ];

    #[test]
    fn a_prompt_comes_apart_at_its_headings() {
        let found = Graded::parse(&prompt(&PARTS)).unwrap();
        assert_eq!(found.instruction, "User: Hi ###Feedback: ?");
        assert_eq!(found.response, "Hello.\n### Not a heading");
        assert_eq!(found.reference.as_deref(), Some("Hello!"));
        assert_eq!(found.rubric, "[Is it polite?]\nScore 1: no\nScore 5: yes");
        let without = [&PARTS[..3], &PARTS[4..]].concat();
        assert_eq!(Graded::parse(&prompt(&without)).unwrap(), Graded { reference: None, ..found });
    }

    #[test]
    fn a_prompt_with_other_headings_is_none() {
        for gone in [1, 2, 4, 5] {
            let mut parts = PARTS.to_vec();
            parts.remove(gone);
            assert_eq!(Graded::parse(&prompt(&parts)), None, "without {}", PARTS[gone]);
        }
        let mut twice = PARTS.to_vec();
        twice.insert(3, PARTS[2]);
        assert_eq!(Graded::parse(&prompt(&twice)), None);
        let mut exchanged = PARTS.to_vec();
        exchanged.swap(1, 2);
        assert_eq!(Graded::parse(&prompt(&exchanged)), None);
        assert_eq!(Graded::parse(""), None);
    }
}
