//! Judging question and answer pairs by several probes at once, into a file that is resumed if it is interrupted.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use judge_core::{Backbone, Fields, ItemId, ItemResult, Judge, Reason, Unscored, Verdict, inspector::total_score};
use judge_data::{
    Columns, Counts, Dataset, DatasetFormat, DatasetOptions, Error, Extra, Fate, Field, Ids, Input, InputFile,
    IntoInput, Job, Layout, Opened, Record, Resolved, RowItem, Rows, RunPlan, Settings, Source,
};
use judge_probe::ClassProbabilities;
use serde_json::{Map, Value, json};

use judge_cli::args::files::{InputArgs, WriteArgs, beside, program};
use judge_cli::args::model_args::ModelArgs;
use judge_cli::args::numbers::share;
use judge_cli::choice::{rows_of_share, tell_few};
use judge_cli::missing_fields::tell_unread;
use judge_cli::probes::{JUDGED, PromptedProbe, check_aspect};
use judge_cli::row_job::resolved;
use judge_cli::terminal::console::tell;
use judge_cli::terminal::pace::Watch;

/// The options of commands that judge by probes.
#[derive(Args)]
pub struct ProbeArgs {
    #[command(flatten)]
    /// Question and answer pairs: objects with an instruction and a response, by any of their names.
    pub input: InputArgs,
    /// Probe files, or a folder of them
    #[arg(long, required = true, num_args = 1.., value_name = "FILE|DIR")]
    pub probes: Vec<PathBuf>,
    /// Folder of ASPECT.json, the prompt templates that the probes were fitted with [default: those beside the probes]
    #[arg(long, value_name = "DIR")]
    pub templates: Option<PathBuf>,
    #[command(flatten)]
    /// How the output is written.
    pub write: WriteArgs,
    /// The model and how it is run
    #[command(flatten)]
    pub model: ModelArgs,
}

/// A share of rows to keep, as an option takes it.
///
/// # Errors
/// In words, for another text.
pub fn share_kept(text: &str) -> Result<f64, String> {
    share(text).map_err(|expected| format!("{expected}; a fifth of the rows is 0.2"))
}

/// A pair as the file has it.
struct Pair {
    row: usize,
    fields: Extra,
    /// Its texts.
    record: Record,
}

impl Fields for Pair {
    fn field(&self, name: &str) -> Option<Cow<'_, str>> {
        self.field_beside(name, &[])
    }

    fn field_beside(&self, name: &str, shown: &[&str]) -> Option<Cow<'_, str>> {
        match name {
            "question" | "instruction" => self.record.field_beside("instruction", shown),
            "response" | "prediction" => self.record.field("response"),
            // A column that was chosen for a field goes by the field's name.
            _ => self.fields.rendered(name).or_else(|| self.record.field(name)),
        }
    }

    fn names(&self) -> Vec<String> {
        self.fields.iter().map(|(name, _)| name.to_owned()).collect()
    }
}

impl RowItem for Pair {
    fn row(&self) -> usize {
        self.row
    }

    fn id(&self) -> ItemId {
        ItemId::from(self.row as u64)
    }

    fn unread(&self) -> Option<&Unscored> {
        self.record.unread()
    }

    fn no_grade(&self) -> Option<&str> {
        self.record.no_grade()
    }
}

/// What [`evaluate`] came to.
pub struct Evaluation {
    /// Names of the aspects, in the order of their fields.
    pub aspects: Vec<String>,
    /// Rows of the input.
    pub rows: usize,
    /// How many have a total, and why the others have none.
    pub counts: Counts,
    /// Whether the file was complete before.
    pub was_complete: bool,
}

/// What becomes of a field of the input that has the name of one of a judged row's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clash {
    /// It is an error: judged rows are what the command is for.
    Refused,
    /// Judged rows go without it, and a note says so: rows of the input stay as they are elsewhere.
    LeftOut,
}

/// Judges all pairs of `input`, which is that of the options, by all probes and writes them to `output`, JSON lines or, as `layout` says, one array. Every pair comes
/// back with all its fields, then the class of each aspect, their sum `total_score`, the sum of the expected grades `expected_total` where
/// every probe knows probabilities, the `probabilities` by class, and why an aspect has no class. `clash` says what becomes of a field of
/// the input that has one of these names.
///
/// All of the input is checked, and the output opened, before the model is loaded. Interrupted, the same call resumes;
/// complete, it does nothing. Which files are written is checked by who calls.
///
/// # Errors
/// Of the input, of probes and templates, of the model, and of the output;
/// a field of the input that would be overwritten is [`Error::FieldClash`] where it is [refused](Clash::Refused).
pub fn evaluate(
    args: &ProbeArgs,
    input: &Input,
    name: &str,
    output: &Path,
    layout: Layout,
    clash: Clash,
) -> Result<Evaluation> {
    let judged = PromptedProbe::read(&args.probes, args.templates.as_deref(), None)?;
    let aspects: Vec<String> = judged.iter().map(|judged| judged.aspect.clone()).collect();
    aspects.iter().try_for_each(|aspect| check_aspect(aspect))?;
    let columns = args.input.columns.clone().unwrap_or_default();
    let limit = args.model.limit.unwrap_or(usize::MAX);
    let source = Pairs { input: input.clone(), columns, limit };
    args.model.admit(&source.input)?;
    let (made_by, mut settings) = args.model.described(None)?;
    settings.insert("probes".to_owned(), PromptedProbe::settings(&judged));
    let write = args.write.options();
    let job = Job { layout, write, settings, made_by, ..Job::new(source, output, program(name)) };
    let mut left_out = BTreeSet::new();
    let checked = job.check(&[], |pair| {
        let clashing = pair.fields.iter().map(|(key, _)| key).filter(|key| is_own(&aspects, key));
        for field in clashing.map(str::to_owned) {
            if clash == Clash::Refused {
                return Err(anyhow::Error::from(Error::FieldClash { field }))
                    .with_context(|| job.source.input.path().display().to_string());
            }
            left_out.insert(field);
        }
        Ok(None)
    })?;
    tell_unread(&checked.unread);
    if !left_out.is_empty() {
        let (fields, output) = (left_out.into_iter().collect::<Vec<_>>().join(", "), output.display());
        tell(format_args!("note: in {output} these fields are what the probes say, not what the input has: {fields}"));
    }
    let finished = job.run(&checked, |missing| {
        let model = args.model.load()?;
        let judges = judged.iter().map(|probe| probe.judge(&args.model, model.info())).collect::<Result<Vec<_>>>()?;
        let judges: Vec<&dyn Judge<Pair>> = judges.iter().map(|judge| judge as _).collect();
        let mut watch = Watch::new("judging", "rows", args.model.quiet)?;
        let row = |result| to_row(&aspects, result);
        let resolved = resolved(&model, None, Settings::new());
        let result = missing.judge(resolved, &model, &judges, row, &mut watch)?;
        watch.finish(result.summary.cancelled)?;
        anyhow::Ok(result)
    })?;
    let was_complete = finished.summary.is_none();
    Ok(Evaluation { aspects: aspects.clone(), rows: checked.rows, counts: finished.counts, was_complete })
}

/// Whether a judged row has a field of this name itself.
fn is_own(aspects: &[String], key: &str) -> bool {
    JUDGED.contains(&key) || aspects.iter().any(|aspect| aspect == key)
}

/// A result as a row of the output.
fn to_row(aspects: &[String], result: ItemResult<Pair>) -> Result<(Extra, Fate)> {
    let ItemResult { item: Pair { fields, .. }, verdicts, .. } = result;
    let mut value = fields.retain(|key| !is_own(aspects, key));
    let (mut unscored, mut probabilities) = (Map::new(), Map::new());
    let mut expected = Some(0.0);
    let mut first: Option<Reason> = None;
    for (aspect, verdict) in aspects.iter().zip(&verdicts) {
        match verdict {
            Verdict::Scored(score) => {
                value.set(aspect.clone(), &number(score.value))?;
                let known = score.distribution.as_ref();
                expected = expected.zip(known).map(|(sum, known)| sum + known.expected());
                if let Some(known) = known {
                    let classes: Vec<i64> = known.scale().values().map(|value| value as i64).collect();
                    let by_class = ClassProbabilities::new(&classes, known.probabilities())?;
                    probabilities.insert(aspect.clone(), serde_json::to_value(by_class)?);
                }
            }
            Verdict::Unscored(reason) => {
                value.set(aspect.clone(), &Value::Null)?;
                unscored.insert(aspect.clone(), json!({"reason": reason.reason, "detail": reason.detail}));
                first.get_or_insert(reason.reason);
                expected = None;
            }
        }
    }
    value.set("total_score", &total_score(&verdicts).map(number))?;
    value.set("expected_total", &expected)?;
    value.set("probabilities", &probabilities)?;
    if !unscored.is_empty() {
        value.set("unscored", &unscored)?;
    }
    Ok((value, first.map_or(Fate::SCORED, Fate::unscored)))
}

/// A class, which is a whole number and written as one, or what a regression predicts.
fn number(value: f64) -> Value {
    if value.fract() == 0.0 { json!(value as i64) } else { json!(value) }
}

/// The pairs of a file, each with all its fields.
#[derive(Clone)]
struct Pairs {
    input: Input,
    columns: Columns,
    limit: usize,
}

impl Source for Pairs {
    type Item = Pair;

    fn items(&self) -> Result<impl Iterator<Item = Result<Pair, Error>>, Error> {
        let options = options(&self.columns, self.limit)?;
        let rows = Rows::open(&self.input)?.zip(Dataset::open(&self.input, &options)?).enumerate();
        Ok(rows.map(|(row, (fields, record))| Ok(Pair { row, fields: fields?.into_extra(&[]), record: record? })))
    }

    fn input(&self) -> Option<&Input> {
        Some(&self.input)
    }

    fn columns(&self) -> Option<&Columns> {
        Some(&self.columns)
    }
}

/// How they are read. Nothing else is read of a row, so nothing else can be wrong with it.
///
/// # Errors
/// None: of fields that nobody chose, none is chosen twice.
pub fn options(columns: &Columns, limit: usize) -> Result<DatasetOptions, Error> {
    let mut columns = columns.clone();
    for field in [Field::Id, Field::Rubric, Field::Reference, Field::Human] {
        if !columns.is_chosen(field) {
            columns = columns.with(field, [""; 0])?;
        }
    }
    let format = Some(DatasetFormat::Graded);
    Ok(DatasetOptions { format, max_rows: Some(limit), columns, ids: Ids::RowNumber, ..DatasetOptions::default() })
}

/// The rows of a judged file by merit.
pub struct Ranking {
    /// Total and expected total of each row; `None` for a row without a total.
    pub totals: Vec<Option<(f64, Option<f64>)>>,
}

impl Ranking {
    /// Reads the totals of a file that [`evaluate`] has written.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read(judged: &Path) -> Result<Self> {
        let totals = Rows::open(judged)?.map(|row| -> Result<_> {
            let row = row?;
            let expected: Option<f64> = row.optional("expected_total", "a number")?;
            Ok(row.optional::<f64>("total_score", "a number")?.map(|total| (total, expected)))
        });
        Ok(Self { totals: totals.collect::<Result<_>>()? })
    }

    /// The best `share` of all rows, as many as [`rows_of_share`] says, best first: by total, then, since totals are sums of
    /// classes and ties the rule, by the sum of the expected grades, then in the order of the
    /// input. Rows without a total are never among them. Also how many further rows have the same total as the last one taken.
    #[must_use]
    pub fn best(&self, share: f64) -> (Vec<usize>, usize) {
        let mut order: Vec<usize> = (0..self.totals.len()).filter(|&row| self.totals[row].is_some()).collect();
        let merit = |row: usize| self.totals[row].map(|(total, expected)| (total, expected.unwrap_or(total)));
        order.sort_by(|&a, &b| match (merit(a), merit(b)) {
            (Some(a), Some(b)) => b.0.total_cmp(&a.0).then(b.1.total_cmp(&a.1)),
            _ => std::cmp::Ordering::Equal, // rows without a total are left out above
        });
        tell_few(self.totals.len(), share);
        let wanted = rows_of_share(self.totals.len(), share);
        let total = |row: &usize| self.totals[*row].map(|(total, _)| total);
        let last = order.get(..wanted).and_then(<[usize]>::last).and_then(total);
        let tied = order.iter().skip(wanted).filter(|row| last.is_some() && total(row) == last).count();
        order.truncate(wanted);
        (order, tied)
    }
}

/// `OUTPUT.judged.jsonl`, where all judged rows stay if `OUTPUT` gets only some.
#[must_use]
pub fn judged_path(output: &Path) -> PathBuf {
    beside(output, "judged.jsonl")
}

/// The best rows of a judged file, in a file with a record of its own.
pub struct Kept<'a> {
    /// The program, for the record.
    pub program: &'static str,
    /// Where they go.
    pub output: &'a Path,
    /// As JSON lines, or as one array.
    pub layout: Layout,
    /// What decides which rows are kept, besides the judged file.
    pub settings: Settings,
    /// How they are written.
    pub write: WriteArgs,
}

impl Kept<'_> {
    /// Refuses, before any work, an output that was made in another way.
    ///
    /// # Errors
    /// As [`RunPlan::check_settings`].
    pub fn check(&self) -> Result<()> {
        Ok(self.plan(0).check_settings()?)
    }

    fn plan(&self, rows: usize) -> RunPlan {
        let mut plan = RunPlan::new(self.output, rows, program(self.program));
        plan.settings = self.settings.clone();
        plan.layout = self.layout;
        plan.options = self.write.options();
        plan
    }

    /// Writes the rows at these places of `source`, in this order, as they are; `false` if that was done before.
    /// `inputs` are what they follow from.
    ///
    /// # Errors
    /// If a file cannot be read or written; an output that was made otherwise.
    pub fn write(&self, source: impl IntoInput, places: &[usize], inputs: Vec<InputFile>) -> Result<bool> {
        let mut plan = self.plan(places.len());
        plan.inputs = inputs;
        let start = match plan.open()? {
            Opened::Complete(_) => return Ok(false),
            Opened::Ready(start) => start,
        };
        let order: HashMap<usize, usize> = places.iter().enumerate().map(|(to, &from)| (from, to)).collect();
        let mut output = start.begin(Resolved::default())?;
        for (number, row) in Rows::open(source)?.enumerate() {
            let row = row?;
            if let Some(&place) = order.get(&number)
                && !output.is_done(place)
            {
                output.push(place, &row.into_extra(&[]), Fate::SCORED)?;
            }
        }
        output.finish()?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_of_equal_totals_are_the_likeliest() {
        let totals = [(5.0, Some(4.2)), (5.0, Some(4.9)), (4.0, Some(4.4)), (5.0, Some(4.5)), (5.0, Some(4.9))];
        let mut totals: Vec<_> = totals.into_iter().map(Some).collect();
        totals.push(None);
        let ranking = Ranking { totals };
        assert_eq!(ranking.best(0.5), (vec![1, 4, 3], 1));
        assert_eq!(ranking.best(0.0), (vec![], 0));
        assert_eq!(ranking.best(1.0), (vec![1, 4, 3, 0, 2], 0));
    }
}
