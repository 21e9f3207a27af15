//! A file judged, resumably: rows in, rows and a record out. Every command over the rows of a file is such a job.

pub(crate) mod jobs;

mod cuts;
mod finished;
mod missing;
mod named;
mod source;
mod unread;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use judge_core::{
    Backbone, Judge,
    runner::{Flow, RunEvent},
};

use self::cuts::check_once;
use self::named::Named;
use crate::results::carry::CARRY;
use crate::rows::cut::CUT;
use crate::rows::ids::UniqueIds;
use crate::{
    Carry, Counts, Cut, DatasetOptions, Error, Input, Layout, MadeBy, Numbered, Opened, Outputs, Program, Resolved,
    RowItem, RunPlan, RunResult, Settings, SingleRow, WriteOptions,
};

pub use finished::Finished;
pub use missing::Missing;
pub use named::check_files;
pub use source::{DecisionRecords, GradingRecords, RagRecords, RecordList, Records, RerankRecords, Source};
pub use unread::Unread;

/// Makes a row of every row of a source, in its order, with the record of the run beside the output.
///
/// [`judge`](Self::judge) does all of it. Its parts are for whoever says more in between:
/// [`check`](Self::check) reads the whole source before any row is judged; [`run`](Self::run) opens the output, has a model loaded only if
/// rows are missing, and gives the finished rows back beside what they were made of.
/// Interrupted at any moment, the same job resumes; finished, it is
/// recognised by the content of input, model and judge, and nothing is computed.
/// A row that cannot be judged is written with the reason, and counted.
///
/// ```
/// use judge_core::testing::ScriptedBackbone;
/// use judge_core::{Scale, lager::{LagerJudge, LagerSettings}};
/// use judge_data::{Job, Program};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let (input, output) = (folder.path().join("rows.jsonl"), folder.path().join("scores.jsonl"));
/// # std::fs::write(&input, r#"{"id": 1, "instruction": "2 + 2?", "response": "4", "human": 5}"#)?;
/// let model = ScriptedBackbone::new(4); // a stand-in; `judge_models::Model::load(folder, …)` for a real one
/// let judge = LagerJudge::new(LagerSettings::prompt_end(Scale::integers(1, 5)?), &model)?;
/// let program = Program::new("my_judge", env!("CARGO_PKG_VERSION"));
/// let counts = Job::open(&input, &output, program)?.judge(&model, &judge, |done, rows| eprintln!("{done} of {rows}"))?;
/// println!("{} of {} rows scored", counts.scored, counts.rows());
/// for (reason, rows) in &counts.unscored {
///     println!("unscored, {reason}: {rows}");
/// }
/// # assert_eq!((counts.scored, counts.graded), (1, 1));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Job<S = Records> {
    /// The rows.
    pub source: S,
    /// Which of their other fields are carried to the output.
    pub carry: Carry,
    /// Which fields a judge is shown a part of; tokens are counted by the model, which must say how many there are.
    pub cuts: Vec<Cut>,
    /// Where the rows go.
    pub output: PathBuf,
    /// As JSON lines, or as one array.
    pub layout: Layout,
    /// How they are written.
    pub write: WriteOptions,
    /// The program, for the record.
    pub program: Program,
    /// What else decides about a row, besides the source and the fields that are carried.
    pub settings: Settings,
    /// The model and the judges, as far as they are known before rows are found missing.
    pub made_by: MadeBy,
}

impl Job {
    /// A job over the records of a file (JSON lines, a JSON array, CSV or, with the feature `parquet`, Parquet; plain, gzip or zstd; `-` is
    /// standard input), which detects their format and carries all fields.
    ///
    /// # Errors
    /// If the input cannot be opened.
    pub fn open(input: impl AsRef<Path>, output: impl Into<PathBuf>, program: Program) -> Result<Self, Error> {
        let source = Records::new(Input::open(input)?, DatasetOptions::default());
        Ok(Self::new(source, output, program))
    }

    /// Judges the rows that are not judged yet. Rows are those of [`SingleRow`].
    /// `progress` is told how many of how many rows are judged, those of earlier starts among
    /// them; it may return nothing, or [`ControlFlow::Break`] to end the work, which the same job resumes.
    /// Returned is what became of the rows so far: of all of them,
    /// unless the work was ended.
    ///
    /// # Errors
    /// Whatever is wrong with the input or the output, before any row is judged;
    /// [`Error::JudgeSettings`] for a judge that does not say what its verdicts depend on;
    /// [`Error::Core`] if the judge or the model fails. What was written before stays.
    pub fn judge<M: Backbone, F: Flow>(
        &self,
        model: &M,
        judge: &impl Judge<Numbered>,
        mut progress: impl FnMut(usize, usize) -> F,
    ) -> Result<Counts, Error> {
        let input = self.source.input.path();
        Outputs::new([input]).rows([&self.output]).overwrite(self.write.overwrite).check()?;
        let checked = self.check(SingleRow::KNOWN, |_| Ok::<_, Error>(None))?;
        let resolved = Resolved::of(model.info(), [judge as &dyn Judge<Numbered>])?;
        let job = Self { made_by: MadeBy::Model(resolved.clone()), ..self.clone() };
        let (carry, mut failed) = (self.carry.and_cuts(&self.cuts), None);
        let finished = job.run(&checked, |missing| {
            let mut done = missing.start.resumed().rows;
            let mut told = |event: &RunEvent<Numbered>| {
                let RunEvent::Item(_) = event else { return ControlFlow::Continue(()) };
                done += 1;
                progress(done, checked.rows).flow().unwrap_or_else(|error| {
                    failed = Some(error);
                    ControlFlow::Break(())
                })
            };
            missing.judge(resolved, model, &[judge as _], |result| SingleRow::new(result, &carry), &mut told)
        })?;
        match failed {
            Some(source) => Err(judge_core::Error::Observer { source }.into()),
            None => Ok(finished.counts),
        }
    }
}

/// What [`Job::check`] has read.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Checked {
    /// How many records.
    pub records: usize,
    /// How many rows the output will have.
    pub rows: usize,
    /// Those that get no score whatever a model says.
    pub unread: Unread,
}

impl<S: Source> Job<S> {
    /// A job that carries all fields and writes JSON lines, without a model and settings.
    pub fn new(source: S, output: impl Into<PathBuf>, program: Program) -> Self {
        Self {
            source,
            carry: Carry::All,
            cuts: Vec::new(),
            output: output.into(),
            layout: Layout::Lines,
            write: WriteOptions::default(),
            program,
            settings: Settings::new(),
            made_by: MadeBy::default(),
        }
    }

    /// Reads the whole source, before any model work. `known` are the fields that an output row has of its own; `see` may find more wrong
    /// with a row, either an error, or why it gets no score besides what it lacks itself.
    ///
    /// # Errors
    /// Whatever is wrong with the source; [`Error::NoRows`]; [`Error::RepeatedRow`]; [`Error::FieldClash`] and [`Error::NothingToCarry`];
    /// [`Error::CutTwice`] and [`Error::NothingToCut`]; those of `see`.
    pub fn check<E: From<Error>>(
        &self,
        known: &'static [&'static str],
        see: impl FnMut(&S::Item) -> Result<Option<String>, E>,
    ) -> Result<Checked, E> {
        self.check_all_of(&self.source, known, see)
    }

    /// As [`check`](Self::check), of the whole file where the source is a part of one: what is told of all rows must not differ from part to
    /// part.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn check_whole<E: From<Error>>(
        &self,
        known: &'static [&'static str],
        see: impl FnMut(&S::Item) -> Result<Option<String>, E>,
    ) -> Result<Checked, E> {
        let Checked { records, rows, unread } = self.check_all_of(&self.source.whole(), known, see)?;
        Ok(Checked { records, rows: self.source.part().map_or(rows, |part| part.rows_of(rows)), unread })
    }

    fn check_all_of<E: From<Error>>(
        &self,
        source: &S,
        known: &'static [&'static str],
        mut see: impl FnMut(&S::Item) -> Result<Option<String>, E>,
    ) -> Result<Checked, E> {
        let (mut records, mut unread) = (0, Unread::default());
        let mut named = Named::new(&self.carry, &self.cuts);
        let mut ids = (!source.checks_ids()).then(UniqueIds::default);
        let each = source.rows_of_each();
        let source = &*source.keeping(&self.carry);
        for item in source.items()?.step_by(each) {
            let mut item = item?;
            let (place, found) = (records * each, RowItem::row(&item));
            if place != found {
                return Err(Error::RowPlace { place, found }.into());
            }
            if let Some(ids) = &mut ids {
                ids.check_row(&RowItem::id(&item), records)?;
            }
            let why = see(&item)?;
            check_once(&item, &self.cuts)?;
            named.see(&mut item);
            if let Some(extra) = item.extra() {
                if !self.cuts.is_empty() && extra.text(CUT).is_some() {
                    return Err(Error::FieldClash { field: CUT.to_owned() }.into());
                }
                self.carry.check(extra, known)?;
            }
            unread.see_item(&item, why);
            records += 1;
        }
        if records == 0 {
            return Err(Error::NoRows { path: source.path().to_path_buf() }.into());
        }
        // A part of a file may have none of them.
        if source.part().is_none() {
            named.check(source.path())?;
        }
        Ok(Checked { records, rows: records * each, unread })
    }

    /// The plan of the run.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::NoIdentity`] for a source that names nothing which identifies its rows.
    pub fn plan(&self, checked: &Checked) -> Result<RunPlan, Error> {
        let mut plan = RunPlan::new(&self.output, checked.rows, self.program.clone());
        plan.inputs = self.source.identity(checked.rows / self.source.rows_of_each())?;
        if plan.inputs.is_empty() {
            return Err(Error::NoIdentity);
        }
        plan.settings = self.source.settings();
        if self.source.has_other_fields() {
            plan.settings.insert(CARRY.to_owned(), self.carry.to_string().into());
        }
        if !self.cuts.is_empty() {
            let cuts: Vec<String> = self.cuts.iter().map(Cut::to_string).collect();
            plan.settings.insert(CUT.to_owned(), cuts.into());
        }
        plan.settings.extend(self.settings.clone());
        plan.made_by = self.made_by.clone();
        plan.layout = self.layout;
        plan.options = self.write;
        Ok(plan)
    }

    /// Opens the output, and if rows of it are missing, has `judge` make them: there a model is loaded, and not before.
    ///
    /// # Errors
    /// As [`plan`](Self::plan) and [`RunPlan::open`]; those of `judge`.
    pub fn run<E: From<Error>>(
        &self,
        checked: &Checked,
        judge: impl FnOnce(Missing<'_, S>) -> Result<RunResult, E>,
    ) -> Result<Finished<'_, S>, E> {
        let (source, output) = (&self.source, self.output.clone());
        match self.plan(checked)?.open()? {
            Opened::Complete(record) => Ok(Finished { counts: record.counts, summary: None, source, output }),
            Opened::Ready(start) => {
                let missing = Missing { start: *start, source: self.source.keeping(&self.carry), cuts: &self.cuts };
                let RunResult { counts, summary } = judge(missing)?;
                Ok(Finished { counts, summary: Some(summary), source, output })
            }
        }
    }
}
