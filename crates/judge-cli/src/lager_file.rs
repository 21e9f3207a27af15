//! Files of rows that LAGER scores: what `judge score` and the experiments built on it have in common.

use anyhow::{Context, Result, anyhow, bail};
use judge_core::{
    Backbone, ItemResult, Judge, PromptTemplate, Verdict,
    lager::{LagerJudge, LagerSettings},
};
use judge_data::{
    Checked, DatasetFormat, Error, Field, Finished, HumanScores, Numbered, PromptInput, PromptRecord, Record, Records,
    ScoreRow, Settings, check_templates, check_templates_on, score_row,
};
use serde_json::json;

use crate::args::files::{CarryArgs, InputArgs, OutputArgs};
use crate::args::lager::{LagerArgs, NO_LABEL};
use crate::args::layers::LayerList;
use crate::args::model_args::ModelArgs;
use crate::probes::PromptedProbe;
use crate::row_job::{Made, RowJob, Words, resolved};
use crate::terminal::console::{counted, counted_that, end_of_rows, tell, tell_label_mass};
use crate::terminal::options::{offered, quoted};

/// What to do with rows of `messages`, which have no `prompt`.
const CONVERSATIONS: &str = "of `messages` that end with an answer `judge compare` grades it, and `judge logits` reads them as they are; \
     a --template of your own may have {instruction}, {response} and {conversation}";

/// What is scored, by which judge, and where the rows go.
pub struct LagerFile<'a> {
    /// The program that asks, for the record.
    pub program: &'static str,
    /// What people call a row.
    pub rows: &'static str,
    /// The rows.
    pub input: &'a InputArgs,
    /// Their format; `None` to detect it from the first.
    pub format: Option<DatasetFormat>,
    /// Where the scores go.
    pub output: &'a OutputArgs,
    /// Which other fields are carried along.
    pub carry: &'a CarryArgs,
    /// Whose logits a row has.
    pub layers: &'a LayerList,
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

impl LagerFile<'_> {
    /// Scores what is not scored yet, and has `figures` make what is made of the finished rows. The whole input is checked first; a finished
    /// output is recognised without a model. `finish` adds to a
    /// row what is known of its record and else not kept, and what the probe says.
    ///
    /// # Errors
    /// Whatever is wrong with the input, the output, the model, or between them; those of `figures`.
    pub fn score(
        &self,
        finish: impl Fn(&Record, Option<&Verdict>, &mut ScoreRow) -> Result<(), Error> + Sync,
        figures: impl FnOnce(&Finished<'_, Records>) -> Result<()>,
    ) -> Result<()> {
        let input = self.input.open()?;
        let format = self.input.records(&input, self.format, Some(1))?.format();
        let mut settings = self.lager.lager_settings(format, self.model)?;
        if let (Some(template), None) = (&self.template, &self.lager.asked.template) {
            settings.template = self.model.dress_template(template.clone());
        }
        let source = self.input.source(&input, Some(format), self.model.limit);
        let words = Words { doing: "judging", rows: self.rows, done: "scored" };
        let job = RowJob::new(self.program, words, source, self.output, self.carry, self.model.quiet);
        let checked = self.check(&job, format, &settings)?;
        let template = settings.template.clone().with_prefill(&settings.opening);
        let job = job.with_settings(self.settings(&settings)?).with_model(self.model, Some(template.id()))?;
        let finished = job.run(&checked, |pending| {
            let model = self.model.load()?;
            let layers = self.layers.of_model(model.info().n_layers)?;
            let judge = LagerJudge::new(settings, &model)?;
            let probe = self.probe.map(|probe| probe.judge(self.model, model.info())).transpose()?;
            for note in judge.weight_notes() {
                tell(format_args!("note: {note}"));
            }
            let labels: Vec<String> = judge.settings().scale.labels().map(str::to_owned).collect();
            if judge.settings().condition.generation().is_none() {
                job.tell_split_label(&model, &labels, |item| judge.template().fill(item).ok())?;
            }
            let resolved = resolved(&model, Some(judge.template().id().to_owned()), Settings::new());
            let resolved = resolved.with_origin(judge.origin());
            let judges: Vec<&dyn Judge<Numbered>> =
                [&judge as _].into_iter().chain(probe.as_ref().map(|probe| probe as _)).collect();
            let row = |result: ItemResult<Numbered>| {
                let (record, by_probe) = (result.item.record.clone(), result.verdicts.get(1).cloned());
                let (mut row, fate) = score_row(&judge, result, &layers, &self.carry.fields())?;
                finish(&record, by_probe.as_ref(), &mut row)?;
                Ok::<_, Error>((row, fate))
            };
            let result = pending.judge(resolved, &model, &judges, row)?;
            tell_label_mass(&result.summary, "the labels", NO_LABEL);
            self.lager.tell_unscored(&result.counts.unscored);
            let details = format!(" ({}), {} with a human score", judge.variant().as_str(), result.counts.graded);
            Ok(Made { result, details })
        })?;
        end_of_rows(&finished.counts)?;
        figures(&finished)
    }

    /// What decides about a row and is known before the model is loaded.
    fn settings(&self, settings: &LagerSettings) -> Result<Settings> {
        let mut all = Settings::from([("lager".to_owned(), serde_json::to_value(settings)?)]);
        if let Some(probe) = self.probe {
            all.insert("probe".to_owned(), PromptedProbe::settings(std::slice::from_ref(probe)));
        }
        all.insert("format".to_owned(), json!(self.format.map(DatasetFormat::as_str)));
        if *self.layers != LayerList::All {
            all.insert("layers".to_owned(), json!(self.layers.to_string()));
        }
        Ok(all)
    }

    /// Reads the whole input and fills every prompt once, so that whatever is wrong is said before any model work.
    fn check(&self, job: &RowJob<Records>, format: DatasetFormat, settings: &LagerSettings) -> Result<Checked> {
        let source = &job.job.source;
        let path = source.input.path().display();
        let template = settings.template.clone().with_prefill(&settings.opening);
        let head = source.dataset()?.into_head()?;
        let is_conversation =
            |record: &Record| matches!(record, Record::Prompt(PromptRecord { input: PromptInput::Messages(_), .. }));
        check_templates_on(source.input.path(), &head, [&template]).map_err(|error| match error {
            Error::NoRowHas { ref field, .. } if field == "prompt" && head.iter().any(is_conversation) => {
                anyhow!("{error}\n{CONVERSATIONS}")
            }
            Error::NoRowHas { .. } => anyhow!("{error}\n{}", self.lager.template_hint(format)),
            other => other.into(),
        })?;
        if let Some(probe) = self.probe {
            check_templates(source.dataset()?, [probe.template()])
                .with_context(|| format!("the probe of {}", probe.aspect))?;
        }
        let mut people = HumanScores::default();
        let (range, mut off_scale, mut first_off) = (settings.scale.range(), 0, None);
        let checked = job.check(&ScoreRow::KNOWN, |item| {
            let record = &item.record;
            (self.check)(record).with_context(|| format!("{path}, item {}", record.id()))?;
            people.see(record);
            if let Some(grade) = record.human().filter(|grade| !(range.0..=range.1).contains(grade)) {
                off_scale += 1;
                first_off.get_or_insert((record.id().clone(), grade));
            }
            Ok(template.fill(item).err().map(|error| error.to_string()))
        })?;
        if let Some((id, why)) = checked.unread.all().filter(|_| source.input.part().is_none()) {
            bail!("{path}, item {id}: {why}\n{}", self.lager.template_hint(format));
        }
        let (rows, graded) = (checked.records, people.graded());
        let items = counted(rows, "item");
        job.tell(format_args!("{path}: {items} of the format `{format}`, {graded} with a human score"));
        if let Some((id, grade)) = first_off {
            let (low, high) = range;
            tell(format_args!(
                "note: {} off the scale {low} to {high}, the first is {grade} of item {id}; layer weights cannot be fitted on them",
                counted_that(off_scale, "human score", ["is", "are"])
            ));
        }
        if let Some(note) = people.note() {
            let column = |first: &str| quoted(&format!("{}={first}", Field::Human));
            let named = people.candidates().next().map(|first| format!(": --columns {}", column(first)));
            tell(format_args!("note: {note}{}", offered(named).unwrap_or_default()));
        }
        Ok(checked)
    }
}
