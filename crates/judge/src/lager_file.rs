//! Files of rows that LAGER scores: what `judge score` and the experiments built on it have in common.

use anyhow::{Context, Result, anyhow, bail};
use judge_core::{
    Backbone, ItemResult, Judge, PromptTemplate, Verdict,
    lager::{LagerJudge, LagerSettings},
};
use judge_data::{
    Carry, CarryCheck, Counts, DatasetFormat, Field, HumanScores, Input, Numbered, ORIGIN, Opened, Record, Resolved,
    RunResult, ScoreRow, Settings, check_templates, score_row, split_label,
};
use serde_json::json;

use crate::args::files::{InputArgs, OutputArgs};
use crate::args::lager::LagerArgs;
use crate::args::model_args::ModelArgs;
use crate::missing_fields::Unread;
use crate::probes::PromptedProbe;
use crate::terminal::console::{tell, tell_label_mass};
use crate::terminal::options::offered;
use crate::terminal::pace::Watch;

/// What is scored, by which judge, and where the rows go.
pub struct LagerFile<'a> {
    /// The program that asks, for the record.
    pub program: &'static str,
    /// The rows.
    pub input: &'a InputArgs,
    /// Their format; `None` to detect it from the first.
    pub format: Option<DatasetFormat>,
    /// Where the scores go.
    pub output: &'a OutputArgs,
    /// Which other fields are carried along.
    pub carry: &'a Carry,
    /// What is asked.
    pub lager: &'a LagerArgs,
    /// The model.
    pub model: &'a ModelArgs,
    /// What must hold of a record besides, before any model work.
    pub check: &'a dyn Fn(&Record) -> Result<()>,
    /// What is asked unless `--template` says otherwise; `None` for the default of the format.
    pub template: Option<PromptTemplate>,
    /// What else judges each row in the same run; its verdict is handed to `finish` alone.
    pub probe: Option<&'a PromptedProbe>,
}

/// A file of scores.
pub struct ScoredFile {
    /// The format of the input.
    pub format: DatasetFormat,
    /// Its rows.
    pub rows: usize,
    /// What became of them.
    pub counts: Counts,
    /// Which score was written; `None` if it was all there before.
    pub variant: Option<&'static str>,
}

impl LagerFile<'_> {
    /// Scores what is not scored yet. The whole input is checked first; a finished output is recognised without a model. `finish` adds to a
    /// row what is known of its record and else not kept, and what the probe says.
    ///
    /// # Errors
    /// Whatever is wrong with the input, the output, the model, or between them.
    pub fn score(
        &self,
        finish: impl Fn(&Record, Option<&Verdict>, &mut ScoreRow) -> Result<(), judge_data::Error> + Sync,
    ) -> Result<ScoredFile> {
        let input = self.input.open()?;
        let format = self.input.records(&input, self.format, Some(1))?.format();
        let mut settings = self.lager.lager_settings(format, self.model)?;
        if let (Some(template), None) = (&self.template, &self.lager.template) {
            settings.template = self.model.dress_template(template.clone());
        }
        let rows = self.check_data(&input, format, &settings)?;

        let of_run = self.settings(&settings)?;
        let template = settings.template.clone().with_prefill(&settings.opening);
        let template = Some(template.id());
        let plan = self.output.plan(self.program, &input, rows, self.input, self.model, template, of_run)?;
        let start = match plan.open()? {
            Opened::Complete(record) => return Ok(ScoredFile { format, rows, counts: record.counts, variant: None }),
            Opened::Ready(start) => start,
        };
        let model = self.model.load()?;
        let judge = LagerJudge::new(settings, &model)?;
        let probe = self.probe.map(|probe| probe.judge(self.model, model.info())).transpose()?;
        for note in judge.weight_notes() {
            tell(format_args!("note: {note}"));
        }
        let labels: Vec<String> = judge.settings().scale.labels().map(str::to_owned).collect();
        let prompts = self.input.records(&input, Some(format), self.model.limit)?;
        let prompts = prompts.filter_map(|record| record.map(|record| judge.template().fill(&record).ok()).transpose());
        if judge.settings().condition.generation().is_none()
            && let Some((label, found)) = split_label(&model, prompts, &labels)?
        {
            tell(format_args!(
                "note: after the first prompt the tokenizer would write label {label:?} as {:?}, not as {:?}; --prefill may end the prompt better",
                found.together, found.apart
            ));
        }

        let mut resolved = Resolved { model: Some(model.info().clone()), ..Resolved::default() };
        resolved.template = Some(judge.template().id().to_owned());
        resolved.settings.insert(ORIGIN.to_owned(), serde_json::to_value(judge.origin())?);
        let mut watch = Watch::new("judging", "rows", self.model.quiet)?;
        let judges: Vec<&dyn Judge<Numbered>> =
            [&judge as _].into_iter().chain(probe.as_ref().map(|probe| probe as _)).collect();
        let items = Numbered::all(self.input.records(&input, Some(format), self.model.limit)?);
        let row = |result: ItemResult<Numbered>| {
            let (record, by_probe) = (result.item.record.clone(), result.verdicts.get(1).cloned());
            let (mut row, fate) = score_row(&judge, result, self.carry)?;
            finish(&record, by_probe.as_ref(), &mut row)?;
            Ok::<_, judge_data::Error>((row, fate))
        };
        let RunResult { counts, summary } = start.judge(resolved, &model, &judges, items, row, &mut watch)?;
        watch.finish(summary.cancelled)?;
        let advice = "; the prompt may not lead it to a label (see --prefill and --template)";
        tell_label_mass(&summary, "the labels", advice);
        self.lager.tell_unscored(&counts.unscored);
        Ok(ScoredFile { format, rows, counts, variant: Some(judge.variant().as_str()) })
    }

    /// What decides about a row and is known before the model is loaded.
    fn settings(&self, settings: &LagerSettings) -> Result<Settings> {
        let mut all = Settings::from([("lager".to_owned(), serde_json::to_value(settings)?)]);
        if let Some(probe) = self.probe {
            all.insert("probe".to_owned(), PromptedProbe::settings(std::slice::from_ref(probe)));
        }
        all.insert("carry".to_owned(), json!(format!("{:?}", self.carry)));
        all.insert("format".to_owned(), json!(self.format.map(DatasetFormat::as_str)));
        Ok(all)
    }

    /// Reads the whole input and fills every prompt once, so that whatever is wrong is said before any model work.
    /// Returns the number of rows.
    fn check_data(&self, input: &Input, format: DatasetFormat, settings: &LagerSettings) -> Result<usize> {
        let template = settings.template.clone().with_prefill(&settings.opening);
        check_templates(self.input.records(input, Some(format), self.model.limit)?, [&template]).map_err(|error| {
            match error {
                judge_data::Error::NoRowHas { .. } => anyhow!("{error}\n{}", self.lager.template_hint(format)),
                other => other.into(),
            }
        })?;
        let (mut rows, mut unread, mut people) = (0, Unread::default(), HumanScores::default());
        let mut carried = CarryCheck::new(self.carry, &ScoreRow::KNOWN);
        let (range, mut off_scale, mut first_off) = (settings.scale.range(), 0, None);
        for record in self.input.records(input, Some(format), self.model.limit)? {
            let record = record?;
            (self.check)(&record).with_context(|| format!("{}, item {}", input.path().display(), record.id()))?;
            people.see(&record);
            if let Some(grade) = record.human().filter(|grade| !(range.0..=range.1).contains(grade)) {
                off_scale += 1;
                first_off.get_or_insert((record.id().clone(), grade));
            }
            carried.see(record.clone()).with_context(|| format!("{}", input.path().display()))?;
            let item = Numbered { row: rows, record };
            let why = item.record.unread().map(|why| why.detail.clone());
            unread.see_as(&item.record, why.or_else(|| template.fill(&item).err().map(|error| error.to_string())));
            rows += 1;
        }
        carried.finish(input)?;
        if let Some((id, why)) = unread.all().filter(|_| input.part().is_none()) {
            bail!("{}, item {id}: {why}\n{}", input.path().display(), self.lager.template_hint(format));
        }
        unread.tell();
        if !self.model.quiet {
            tell(format_args!(
                "{}: {rows} items of the format `{format}`, {} with a human score",
                input.path().display(),
                people.graded()
            ));
        }
        if let Some((id, grade)) = first_off {
            let (low, high) = range;
            tell(format_args!(
                "note: {off_scale} human scores are off the scale {low} to {high}, the first is {grade} of item {id}; layer weights cannot be fitted on them"
            ));
        }
        if let Some(note) = people.note() {
            let named = people.candidates().next().map(|first| format!(": --columns {}={first}", Field::Human));
            tell(format_args!("note: {note}{}", offered(named).unwrap_or_default()));
        }
        Ok(rows)
    }
}
