//! What raters have said so far, and what each is asked next. Whatever is said is in the journal before it counts.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use anyhow::{Context, Result, bail, ensure};
use judge_cli::pages::is_unseen;
use judge_data::{
    Carry, Extra, Fate, Given, GradingGroup, GradingRecord, GradingTask, RaterGrade, Run, graded_row, grades_of,
};

use super::draw;

/// The longest name of a rater, in characters.
const LONGEST_NAME: usize = 40;

/// Rows, what is asked, and what was said.
pub(super) struct Session {
    pub(super) settings: Settings,
    /// `None` once it is finished.
    run: Option<Run>,
    grades: Vec<BTreeMap<String, RaterGrade>>,
    /// Of those who are named or have graded a row: anybody may call a page by any name.
    orders: HashMap<String, Vec<usize>>,
    /// The rows that each rater has graded since the start, in their order, without those that were taken back.
    given: HashMap<String, Vec<usize>>,
    /// What was taken back last by each rater, to be shown again.
    undone: HashMap<String, (usize, RaterGrade)>,
}

/// What a session is made of.
pub(super) struct Settings {
    pub(super) task: GradingTask,
    pub(super) asked: String,
    /// The rows that were drawn.
    pub(super) rows: Vec<GradingRecord>,
    /// With which probability each was drawn, where these differ.
    pub(super) probabilities: Option<Vec<f64>>,
    pub(super) seed: u64,
    pub(super) carry: Carry,
    /// Who may grade; anybody where nobody is named.
    pub(super) named: Vec<String>,
}

/// How far a rater is.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Progress {
    pub(super) done: usize,
    pub(super) skipped: usize,
    pub(super) notes: usize,
    /// Of the rows of which it is known.
    pub(super) seconds: Vec<f64>,
}

/// That a name is one: some visible characters on one line.
pub(super) fn check_name(name: &str) -> Result<(), String> {
    let length = name.chars().count();
    // Joiners and non-joiners are part of how some languages are spelt.
    let is_odd = |c: char| is_unseen(c) && !matches!(c, '\u{200c}' | '\u{200d}') || c == '\u{ad}';
    if name.trim() != name || name.is_empty() || length > LONGEST_NAME || name.chars().any(is_odd) {
        return Err(format!(
            "expected a name of 1 to {LONGEST_NAME} visible characters without space at its ends, found {name:?}"
        ));
    }
    Ok(())
}

impl Session {
    /// Begins, or takes up what an interrupted run has.
    pub(super) fn new(settings: Settings, run: Run) -> Result<Self> {
        let mut grades = Vec::new();
        for (place, row) in settings.rows.iter().enumerate() {
            let before: Option<Extra> = run.read(place)?;
            let groups = settings.task.groups(row);
            let of_row = before.map(|before| grades_of(&before, &settings.task, &groups)).transpose()?;
            grades.push(of_row.unwrap_or_default());
        }
        let (orders, given, undone) = (HashMap::new(), HashMap::new(), HashMap::new());
        let mut session = Self { settings, run: Some(run), grades, orders, given, undone };
        session.expected().iter().for_each(|rater| session.keep_order(rater));
        Ok(session)
    }

    /// That somebody of this name may grade.
    ///
    /// # Errors
    /// What was expected.
    pub(super) fn admit(&self, rater: &str) -> Result<(), String> {
        check_name(rater)?;
        let named = &self.settings.named;
        match named.is_empty() || named.iter().any(|named| named == rater) {
            true => Ok(()),
            false => Err(format!("expected one of the raters {}, found {rater:?}", named.join(", "))),
        }
    }

    /// Everybody who has graded a row, in alphabetical order.
    pub(super) fn raters(&self) -> Vec<String> {
        let all: BTreeSet<&String> = self.grades.iter().flat_map(BTreeMap::keys).collect();
        all.into_iter().cloned().collect()
    }

    /// Who is to grade the rows: those who are named, else everybody who has graded one.
    pub(super) fn expected(&self) -> Vec<String> {
        if self.settings.named.is_empty() { self.raters() } else { self.settings.named.clone() }
    }

    /// The row that a rater sees now, by its place; `None` after the last.
    pub(super) fn next(&self, rater: &str) -> Option<usize> {
        self.order(rater).iter().copied().find(|&row| !self.grades[row].contains_key(rater))
    }

    fn order(&self, rater: &str) -> Cow<'_, [usize]> {
        match self.orders.get(rater) {
            Some(order) => order.into(),
            None => draw::order(&self.settings.rows, self.settings.seed, rater).into(),
        }
    }

    fn keep_order(&mut self, rater: &str) {
        let drawn = || draw::order(&self.settings.rows, self.settings.seed, rater);
        self.orders.entry(rater.to_owned()).or_insert_with(drawn);
    }

    /// Whether a rater sees the responses of a pair in the other order.
    pub(super) fn swaps(&self, rater: &str, row: usize) -> bool {
        let Settings { task, rows, seed, .. } = &self.settings;
        *task == GradingTask::Pairs && draw::swaps(*seed, rater, &rows[row].id)
    }

    /// What is asked of a row.
    pub(super) fn groups(&self, row: usize) -> Vec<GradingGroup> {
        self.settings.task.groups(&self.settings.rows[row])
    }

    /// What a rater said of this row before it was taken back.
    pub(super) fn undone(&self, rater: &str, row: usize) -> Option<&RaterGrade> {
        self.undone.get(rater).filter(|(place, _)| *place == row).map(|(_, grade)| grade)
    }

    /// Takes an answer to the row that a rater sees now; `false` if the rater had graded it already, which changes nothing.
    ///
    /// # Errors
    /// If it could not be saved; nothing has changed then.
    pub(super) fn give(
        &mut self,
        rater: &str,
        row: usize,
        given: Given,
        seconds: Option<f64>,
        note: Option<String>,
    ) -> Result<bool> {
        ensure!(row < self.settings.rows.len(), "there is no row {row}");
        if self.grades[row].contains_key(rater) {
            return Ok(false);
        }
        let swapped = self.swaps(rater, row);
        self.grades[row].insert(rater.to_owned(), RaterGrade { given, seconds, note, swapped });
        if let Err(error) = self.write(row) {
            self.grades[row].remove(rater);
            return Err(error);
        }
        self.keep_order(rater);
        self.given.entry(rater.to_owned()).or_default().push(row);
        self.undone.remove(rater);
        Ok(true)
    }

    /// Takes back what a rater said last, of what was said before the start the last in the rater's order; `false` if that is nothing.
    ///
    /// # Errors
    /// If that could not be saved; nothing has changed then.
    pub(super) fn undo(&mut self, rater: &str) -> Result<bool> {
        let given = self.given.get(rater).and_then(|given| given.last().copied());
        let graded = |row: &usize| self.grades[*row].contains_key(rater);
        let last = given.or_else(|| self.order(rater).iter().copied().rfind(graded));
        let Some((row, grade)) = last.and_then(|row| Some((row, self.grades[row].remove(rater)?))) else {
            return Ok(false);
        };
        if let Err(error) = self.write(row) {
            self.grades[row].insert(rater.to_owned(), grade);
            return Err(error);
        }
        if let Some(given) = self.given.get_mut(rater) {
            given.pop();
        }
        self.undone.insert(rater.to_owned(), (row, grade));
        Ok(true)
    }

    /// Writes a row with everybody who has graded it. It is on the disk when this returns.
    fn write(&mut self, row: usize) -> Result<()> {
        let raters: Vec<String> = self.grades[row].keys().cloned().collect();
        self.put(row, &raters)?;
        Ok(self.running()?.sync()?)
    }

    fn put(&mut self, row: usize, raters: &[String]) -> Result<()> {
        let Settings { task, rows, probabilities, carry, .. } = &self.settings;
        let probability = probabilities.as_ref().map(|all| all[row]);
        let grades = &self.grades[row];
        let value = graded_row(&rows[row], task, raters, grades, probability, carry)?;
        let graded = grades.values().any(|grade| matches!(grade.given, Given::Values(_)));
        Ok(self.running()?.replace(row, &value, Fate { unscored: None, graded })?)
    }

    fn running(&mut self) -> Result<&mut Run> {
        self.run.as_mut().context("grading is finished; nothing more is saved")
    }

    /// Whether the rows are written.
    pub(super) fn is_finished(&self) -> bool {
        self.run.is_none()
    }

    /// How far a rater is.
    pub(super) fn progress(&self, rater: &str) -> Progress {
        let mut progress = Progress::default();
        for grade in self.grades.iter().filter_map(|grades| grades.get(rater)) {
            progress.done += 1;
            progress.skipped += usize::from(matches!(grade.given, Given::Skipped(_)));
            progress.notes += usize::from(grade.note.is_some());
            progress.seconds.extend(grade.seconds);
        }
        progress
    }

    /// Rows that somebody graded, and did not skip.
    pub(super) fn graded(&self) -> usize {
        let has_grade = |grades: &&BTreeMap<String, RaterGrade>| {
            grades.values().any(|grade| matches!(grade.given, Given::Values(_)))
        };
        self.grades.iter().filter(has_grade).count()
    }

    /// Whether everybody who is to grade has nothing left, and is somebody.
    pub(super) fn is_whole(&self) -> bool {
        let raters = self.expected();
        !raters.is_empty() && self.grades.iter().all(|grades| raters.iter().all(|rater| grades.contains_key(rater)))
    }

    /// Writes all rows, each with a place for every rater, and their record.
    ///
    /// # Errors
    /// If nobody has graded a row, or the rows cannot be written; what was said is still in the journal.
    pub(super) fn finish(&mut self) -> Result<()> {
        if self.is_finished() {
            return Ok(());
        }
        if self.graded() == 0 {
            bail!("nobody has graded a row: there is nothing to write");
        }
        let raters = self.raters();
        for row in 0..self.settings.rows.len() {
            self.put(row, &raters)?;
        }
        self.running()?.sync()?;
        if let Some(run) = self.run.take() {
            run.finish()?;
        }
        Ok(())
    }
}
