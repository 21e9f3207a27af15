//! The graded rows.

use anyhow::{Result, bail, ensure};
use judge_cli::groups::OtherFields;
use judge_cli::missing_fields::tell_unread_that;
use judge_cli::terminal::console::{tell, usage};
use judge_core::{Fields, Message, Prompt, PromptTemplate};
use judge_data::{DatasetFormat, Input, Record, Unread};
use judge_probe::RowGroups;

use super::cli::Cli;

/// A row that people have graded.
pub(super) struct Row {
    pub(super) record: Record,
    pub(super) grade: f64,
}

/// All of them.
pub(super) struct Rows {
    pub(super) format: DatasetFormat,
    pub(super) rows: Vec<Row>,
    /// What belongs together, a number for each row.
    pub(super) groups: Vec<usize>,
    /// Which rows answer the same question, by its text, a number for each row.
    pub(super) questions: Vec<usize>,
    /// Rows that nobody graded.
    pub(super) ungraded: usize,
    /// Rows that could not be read.
    pub(super) unread: Unread,
    /// Graded rows that the model did not read.
    pub(super) lost: usize,
}

impl Rows {
    /// The rows of the input that have a grade.
    pub(super) fn read(cli: &Cli, input: &Input) -> Result<Self> {
        let path = input.path().display();
        let source = cli.input.source(input, None, cli.model.limit);
        let dataset = source.dataset()?;
        let format = dataset.format();
        if format == DatasetFormat::Pairs {
            return Err(usage(format!(
                "{path}: expected single responses that people have graded, found pairs; `judge compare --verdict layers` and \
                 `judge fit --valid` say which layer to use for those"
            )));
        }
        let (mut rows, mut ungraded, mut unread) = (Vec::new(), 0, Unread::default());
        let (mut others, mut of_field) = (OtherFields::default(), Vec::new());
        for record in dataset {
            let record = record?;
            if let Record::Unread(found) = &record {
                unread.note(found.id.clone(), Some(found.why.to_string()));
                continue;
            }
            unread.note(record.id().clone(), None);
            let Some(grade) = record.human() else {
                ungraded += 1;
                continue;
            };
            if let Some(field) = &cli.group {
                let value = record.extra().iter().find(|(name, _)| name == field).map(|(_, json)| json.to_owned());
                of_field.push(value.or_else(|| record.field(field).map(|text| text.into_owned())));
            }
            others.see(record.extra().iter());
            rows.push(Row { record, grade });
        }
        tell_unread_that(&unread, "cannot be read and are left out");
        ensure!(
            !rows.is_empty(),
            "{path}: no row has a grade: expected \"human\", a number or a list of numbers; `judge grade` collects them"
        );
        let groups = match &cli.group {
            Some(field) if of_field.iter().all(Option::is_none) => {
                return Err(usage(format!("--group: no row of {path} has the field {field:?}")));
            }
            Some(_) => {
                let mut groups = RowGroups::alone(rows.len());
                groups.join(of_field);
                groups
            }
            None => found_together(&rows, others),
        };
        let questions = questions(&rows);
        Ok(Self { format, groups: groups.group_of_row(), questions, rows, ungraded, unread, lost: 0 })
    }

    /// Those of them that the model could read, and their places among all; `lacks` says why it could not read the one at a place.
    pub(super) fn read_by(mut self, lacks: impl Fn(usize) -> Result<Option<String>>) -> Result<(Self, Vec<usize>)> {
        let mut lost = Unread::default();
        let (mut kept, mut places) = (Vec::new(), Vec::new());
        for (place, row) in self.rows.into_iter().enumerate() {
            let why = lacks(place)?;
            lost.note(row.record.id().clone(), why.clone());
            if why.is_none() {
                kept.push(row);
                places.push(place);
            }
        }
        if let (true, Some((id, why))) = (kept.is_empty(), lost.first()) {
            bail!("the model could read none of {} graded rows; the first is {id}: {why}", lost.count());
        }
        tell_unread_that(&lost, "were not read by the model and are left out");
        (self.rows, self.lost) = (kept, lost.count());
        for all in [&mut self.groups, &mut self.questions] {
            *all = places.iter().map(|&place| all[place]).collect();
        }
        Ok((self, places))
    }

    pub(super) fn grades(&self) -> Vec<f64> {
        self.rows.iter().map(|row| row.grade).collect()
    }

    /// The grades carried to a scale: as they are where they lie on it, else stretched from the lowest and the highest that occur.
    pub(super) fn on_scale(&self, (low, high): (f64, f64)) -> Vec<f64> {
        let grades = self.grades();
        let ends = grades
            .iter()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |ends, &grade| (ends.0.min(grade), ends.1.max(grade)));
        if (low..=high).contains(&ends.0) && (low..=high).contains(&ends.1) || ends.0 == ends.1 {
            return grades;
        }
        let share = (high - low) / (ends.1 - ends.0);
        grades.iter().map(|grade| (low + (grade - ends.0) * share).clamp(low, high)).collect()
    }

    /// How many characters each response has; `None` where it has no field of its own.
    pub(super) fn lengths(&self) -> Option<Vec<f64>> {
        let length = |row: &Row| Some(row.record.field("response")?.chars().count() as f64);
        self.rows.iter().map(length).collect()
    }

    /// The conversation that a row is, which asks nothing; `None` where rows have no instruction and response.
    pub(super) fn conversation(&self) -> Option<PromptTemplate> {
        let turns = vec![Message::user("{instruction}"), Message::new("assistant", "{response}")];
        let template = PromptTemplate::new(Prompt::chat(turns)).ok()?;
        self.rows.iter().all(|row| template.fill(&row.record).is_ok()).then_some(template)
    }

    pub(super) fn n_groups(&self) -> usize {
        let mut groups = self.groups.clone();
        groups.sort_unstable();
        groups.dedup();
        groups.len()
    }
}

/// Rows that ask the same by the same rubric, to which people prefer one response or another.
fn questions(rows: &[Row]) -> Vec<usize> {
    let mut questions = RowGroups::alone(rows.len());
    let asked = |row: &Row| {
        row.record.field("response")?;
        let texts = ["instruction", "rubric"].map(|name| row.record.field(name).map(|text| text.into_owned()));
        texts[0].is_some().then_some(texts)
    };
    questions.join(rows.iter().map(asked));
    questions.group_of_row()
}

/// What belongs together by its texts, and by a field whose values repeat.
fn found_together(rows: &[Row], others: OtherFields) -> RowGroups {
    let text = |of: &[&str], row: &Row| of.iter().find_map(|name| row.record.field(name).map(|text| text.into_owned()));
    let of_row =
        |row| [&["instruction", "dialogue"][..], &["response", "prompt", "user_prompt"]].map(|of| text(of, row));
    let asked: Vec<[Option<String>; 2]> = rows.iter().map(of_row).collect();
    let all_known = asked.iter().all(|[question, _]| question.is_some());
    let asked: Vec<_> = asked.iter().map(|[question, prompt]| (question.as_deref(), prompt.as_deref())).collect();
    let texts = RowGroups::of_questions_and_prompts(&asked);
    match others.together(texts.clone(), all_known) {
        Ok(together) => {
            if let Some(field) = together.by.first() {
                tell(format_args!(
                    "note: rows with the same {field:?} stay on one side of every split; --group names another field"
                ));
            }
            together.groups
        }
        Err(undecided) => {
            tell(format_args!(
                "note: {undecided}; rows with nearly equal texts are kept together, and --group names a field"
            ));
            texts
        }
    }
}
