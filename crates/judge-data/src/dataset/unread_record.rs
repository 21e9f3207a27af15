use judge_core::{ItemId, Unscored};

use crate::rows::pair_verdict::preference;
use crate::rows::reading::{Reading, Rest};
use crate::{DatasetFormat, DatasetOptions, EmotionRecord, Error, Extra, Field, LagerRecord, Row, RowColumns};

/// A row that lacks what its kind must have, or has it in a form that is not read.
///
/// It costs itself alone: it has no text for a template, and [`RunStart::judge`](crate::RunStart::judge) gives it no score, with this reason.
#[derive(Clone, Debug, PartialEq)]
pub struct UnreadRecord {
    /// The item.
    pub id: ItemId,
    /// What it lacks: [`Reason::Missing`](judge_core::Reason::Missing), with what was expected and found.
    pub why: Unscored,
    /// What people gave it, as far as it could be read: a place for each rater, as in [`Record::raters`](crate::Record::raters).
    pub scores: Vec<Option<f64>>,
    /// Where those of its fields were found that could be read.
    pub columns: RowColumns,
    /// All other fields: those that are carried of rows that are read.
    pub extra: Extra,
}

impl UnreadRecord {
    /// Reads what can be read of row number `index`, counted from 0, of a file of this format; `why` is what is wrong with it.
    ///
    /// # Errors
    /// What is wrong with its id.
    pub(crate) fn read(
        row: &Row,
        index: usize,
        format: DatasetFormat,
        options: &DatasetOptions,
        why: Unscored,
    ) -> Result<(Self, Rest), Error> {
        let fields: &[Field] = match format {
            DatasetFormat::Prompts => &[Field::Prompt, Field::Messages],
            DatasetFormat::Graded | DatasetFormat::Prometheus => {
                &[Field::Instruction, Field::Response, Field::Rubric, Field::Reference]
            }
            DatasetFormat::Pairs => {
                &[Field::Instruction, Field::ResponseA, Field::ResponseB, Field::Rubric, Field::Reference]
            }
            DatasetFormat::Answers => &[Field::Instruction, Field::Responses, Field::Rubric, Field::Reference],
            // Their texts are left out by name.
            DatasetFormat::Lager | DatasetFormat::Emotion => &[],
        };
        let mut row = Reading::new(row, options);
        let id = match format {
            DatasetFormat::Lager | DatasetFormat::Emotion | DatasetFormat::Prometheus => row.id_or_number(index)?,
            _ => row.id(index)?,
        };
        fields.iter().for_each(|&field| row.look_for(field));
        let scores = match format {
            DatasetFormat::Pairs => row.choices().into_iter().map(|choice| choice.map(preference)).collect(),
            // Many answers have a grade each.
            DatasetFormat::Answers => {
                row.look_for(Field::Human);
                Vec::new()
            }
            _ => row.raters(),
        };
        let (columns, rest) = row.finish();
        let rest = rest.without(match format {
            DatasetFormat::Lager => &LagerRecord::COLUMNS,
            DatasetFormat::Emotion => &EmotionRecord::COLUMNS,
            DatasetFormat::Prometheus => &["gpt4_score"],
            _ => &[],
        });
        Ok((Self { id, why, scores, columns, extra: Extra::new() }, rest))
    }
}
