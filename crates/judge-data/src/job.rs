//! A file judged, resumably: rows in, rows and a record out.

use std::error::Error as StdError;
use std::ops::ControlFlow;
use std::path::PathBuf;

use judge_core::{
    Backbone, Judge,
    runner::{Flow, RunEvent},
};

use crate::{
    Carry, CarryCheck, Counts, Dataset, DatasetOptions, Error, Input, MadeBy, Numbered, Observer, Opened, Outputs,
    Program, Resolved, RunPlan, SingleRow, WriteOptions,
};

/// Judges every row of a file and writes a row for each, in the order of the input, with the record of the run beside it.
///
/// The whole input is checked before any row is judged, and no file of somebody else's is replaced.
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
/// let counts = Job::new(&input, &output, program).run(&model, &judge, |done, rows| eprintln!("{done} of {rows}"))?;
/// println!("{} of {} rows scored", counts.scored, counts.rows());
/// for (reason, rows) in &counts.unscored {
///     println!("unscored, {reason}: {rows}");
/// }
/// # assert_eq!((counts.scored, counts.graded), (1, 1));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Job {
    /// The rows: JSON lines or a JSON array, plain, gzip or zstd; `-` is standard input.
    pub input: PathBuf,
    /// How they are read: format, columns, ids, at most how many.
    pub dataset: DatasetOptions,
    /// Which of their other fields are carried to the output.
    pub carry: Carry,
    /// Where the rows go.
    pub output: PathBuf,
    /// How they are written.
    pub write: WriteOptions,
    /// The program, for the record.
    pub program: Program,
}

impl Job {
    /// A job that detects the format of its input and carries all fields.
    pub fn new(input: impl Into<PathBuf>, output: impl Into<PathBuf>, program: Program) -> Self {
        Self {
            input: input.into(),
            dataset: DatasetOptions::default(),
            carry: Carry::All,
            output: output.into(),
            write: WriteOptions::default(),
            program,
        }
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
    pub fn run<M: Backbone, F: Flow>(
        &self,
        model: &M,
        judge: &impl Judge<Numbered>,
        mut progress: impl FnMut(usize, usize) -> F,
    ) -> Result<Counts, Error> {
        let input = Input::open(&self.input)?;
        Outputs::new([&self.input]).rows([&self.output]).overwrite(self.write.overwrite).check()?;
        let (mut rows, mut carried) = (0, CarryCheck::new(&self.carry, SingleRow::KNOWN));
        for record in self.records(&input)? {
            carried.see(record?)?;
            rows += 1;
        }
        carried.finish(&input)?;
        let resolved = Resolved::of(model.info(), [judge as &dyn Judge<Numbered>])?;
        let mut plan = RunPlan::new(&self.output, rows, self.program.clone());
        plan.inputs = vec![input.identity()?.with_rows(rows)];
        plan.settings.insert("carry".to_owned(), format!("{:?}", self.carry).into());
        plan.settings.insert("dataset".to_owned(), format!("{:?}", self.dataset).into());
        plan.made_by = MadeBy::Model(resolved.clone());
        plan.options = self.write;
        let start = match plan.open()? {
            Opened::Complete(record) => return Ok(record.counts),
            Opened::Ready(start) => start,
        };
        let row = |result| SingleRow::new(result, &self.carry);
        let mut told = Told { done: 0, rows, progress: &mut progress, failed: None };
        let result =
            start.judge(resolved, model, &[judge as _], Numbered::all(self.records(&input)?), row, &mut told)?;
        match told.failed {
            Some(source) => Err(judge_core::Error::Observer { source }.into()),
            None => Ok(result.counts),
        }
    }

    fn records(&self, input: &Input) -> Result<Dataset, Error> {
        Dataset::open(input, &self.dataset)
    }
}

/// Tells a function how many rows are judged.
struct Told<'p, P> {
    done: usize,
    rows: usize,
    progress: &'p mut P,
    failed: Option<Box<dyn StdError + Send + Sync>>,
}

impl<F: Flow, P: FnMut(usize, usize) -> F> Observer<Numbered> for Told<'_, P> {
    fn begin(&mut self, before: usize, _: usize) {
        self.done = before;
    }

    fn see(&mut self, event: &RunEvent<Numbered>) -> ControlFlow<()> {
        let RunEvent::Item(_) = event else { return ControlFlow::Continue(()) };
        self.done += 1;
        (self.progress)(self.done, self.rows).flow().unwrap_or_else(|error| {
            self.failed = Some(error);
            ControlFlow::Break(())
        })
    }
}
