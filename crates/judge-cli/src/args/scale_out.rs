//! Scoring at scale: what the programs that score rows of other machines have in common. Rows of `judge stream` and of `judge shards` are
//! the same, and so is the run that they name.

use anyhow::{Result, bail};
use clap::Args;
use judge_core::{
    Backbone,
    lager::{LagerJudge, LagerSettings},
};
use judge_data::{
    BatchItem, Columns, Counts, DatasetFormat, Field, IdKind, ItemSpec, ORIGIN, Resolved, ResultColumns, ResultScorer,
    RunPlan, RunRecord, Settings, run_id,
};
use judge_models::Model;
use serde_json::json;

use crate::args::files::program;
use crate::args::lager::LagerArgs;
use crate::args::model_args::ModelArgs;
use crate::args::one_of;
use crate::terminal::console::{VERSION_NUMBER, tell, usage};

/// Which columns are scored, by which judge, and what is kept of it.
#[derive(Args, Clone, Debug)]
#[command(mut_arg("limit", |limit| limit.hide(true)))]
pub struct ScoringArgs {
    /// The column of the ids; id stands for idx too, where there is no other
    #[arg(long, default_value = "id", value_name = "COLUMN", help_heading = "Rows")]
    pub id: String,
    /// What ids are; they come back as they were
    #[arg(long, value_parser = one_of(&[("string", IdKind::Text), ("int64", IdKind::Integer)]), default_value = "string", help_heading = "Rows")]
    pub id_type: IdKind,
    /// Which columns hold which fields of the template, e.g. instruction=prompt,response=completion
    #[arg(long, value_name = "FIELD=COLUMN,…", help_heading = "Rows")]
    pub columns: Option<Columns>,
    /// Also give the probability of each label
    #[arg(long, help_heading = "Rows")]
    pub probabilities: bool,
    /// Also give the label logits of all layers, for layer weights that are fitted later
    #[arg(long, help_heading = "Rows")]
    pub logits: bool,
    /// What LAGER is asked.
    #[command(flatten)]
    pub lager: LagerArgs,
    /// The model.
    #[command(flatten)]
    pub model: ModelArgs,
    /// Refuse to run on any other device or instruction set than this one, as it stands in the rows, e.g. "cpu (avx2)":
    /// on the CPU bits are promised per instruction set
    #[arg(long, value_name = "DEVICE", help_heading = "Model")]
    pub require_device: Option<String>,
    /// Hash a sample of each large tensor into the run's id, not all bytes:
    /// a start that is seconds faster, and does not notice weights that were copied in part
    #[arg(long, conflicts_with = "full_fingerprint", help_heading = "Model")]
    pub sampled_fingerprint: bool,
}

impl ScoringArgs {
    /// Refuses options without effect.
    ///
    /// # Errors
    /// Which of them.
    pub fn check(&self) -> Result<()> {
        if self.model.limit.is_some() {
            return Err(usage("--limit has no effect here: every row is scored"));
        }
        if let Some(columns) = self.columns.as_ref().filter(|columns| columns.is_chosen(Field::Id)) {
            if columns.names(Field::Id).next().is_none() {
                return Err(usage(
                    "--columns id= has no effect here: results are joined with their rows by ids, so rows must have some; \
                     `judge shards plan … -- score --columns id=` numbers them",
                ));
            }
            if self.id != Field::Id.as_str() {
                return Err(usage("--id and --columns id=… both name the column of the ids: give one of them"));
            }
        }
        self.lager.check()
    }

    /// The columns of the results. They follow from these options alone.
    #[must_use]
    pub fn results(&self) -> ResultColumns {
        ResultColumns { ids: self.id_type, probabilities: self.probabilities, logits: self.logits }
    }

    /// The judge, known before the model is loaded.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn judge(&self) -> Result<LagerSettings> {
        self.lager.lager_settings(DatasetFormat::Graded, &self.model)
    }

    /// What this judge reads of its rows.
    #[must_use]
    pub fn items(&self, judge: &LagerSettings) -> ItemSpec {
        let template = judge.template.clone().with_prefill(&judge.opening);
        ItemSpec {
            template,
            columns: self.columns.clone().unwrap_or_default(),
            id: self.id.clone(),
            ids: self.results().ids,
        }
    }

    /// Loads the model and names the run.
    ///
    /// # Errors
    /// Whatever is wrong with the model, or between it and the judge; another device than the one required.
    pub fn open(&self) -> Result<Scoring> {
        let settings = self.judge()?;
        let (lager, items) = (serde_json::to_value(&settings)?, self.items(&settings));
        let mut options = self.model.clone();
        options.full_fingerprint = !self.sampled_fingerprint;
        let model = options.load()?;
        let info = model.info();
        if let Some(required) = self.require_device.as_ref().filter(|required| **required != info.device) {
            bail!("expected to run on {required:?}, as --require-device asks; this is {:?}", info.device);
        }
        let judge = LagerJudge::new(settings, &model)?;
        for note in judge.weight_notes() {
            tell(format_args!("note: {note}"));
        }
        let run = Settings::from(
            [
                ("lager", lager),
                ("version", json!(VERSION_NUMBER)),
                ("model", json!(info.fingerprint)),
                ("dtype", json!(info.dtype)),
                ("weight_form", json!(self.model.weight_form.to_string())),
                ("date", json!(self.model.date.to_string())),
                ("variant", json!(judge.variant().as_str())),
                ("items", serde_json::to_value(items)?),
                ("results", serde_json::to_value(self.results())?),
            ]
            .map(|(key, value)| (key.to_owned(), value)),
        );
        let (columns, run_id) = (self.results(), run_id(&run));
        Ok(Scoring { run: run_id, settings: run, columns, model, judge, options })
    }
}

/// A judge and its model, ready to score.
pub struct Scoring {
    /// The run's id: a hash of the settings.
    pub run: String,
    /// Everything that may change a row.
    pub settings: Settings,
    /// The model.
    pub model: Model,
    columns: ResultColumns,
    judge: LagerJudge,
    options: ModelArgs,
}

impl Scoring {
    /// What the model runs on.
    #[must_use]
    pub fn device(&self) -> &str {
        &self.model.info().device
    }

    /// Whether [`admit`](Self::admit) may refuse rows: they are read by the embedded model.
    pub fn may_refuse(&self) -> bool {
        self.options.model.is_none()
    }

    /// Refuses a batch with rows that the embedded model was not made for, where no model is named.
    ///
    /// # Errors
    /// A usage error that names the first such row.
    pub fn admit(&self, items: &[BatchItem]) -> Result<()> {
        self.options.admit_items(items, |item| item.id.to_string())
    }

    /// What makes rows of items.
    #[must_use]
    pub fn scorer(&self) -> ResultScorer<'_> {
        let Self { run, columns, model, judge, .. } = self;
        ResultScorer { model, judge, columns: *columns, run, device: &model.info().device }
    }

    /// The record of the run, without what it came to.
    #[must_use]
    pub fn record(&self, name: &str) -> RunRecord {
        let mut plan = RunPlan::new("", 0, program(name));
        plan.settings = self.settings.clone();
        let (model, template) = (self.model.info().clone(), self.judge.template().id().to_owned());
        let settings = self.resolved();
        let resolved = Resolved { model: Some(model), template: Some(template), settings, ..Resolved::default() };
        RunRecord { finished: None, ..plan.record(resolved, Counts::default(), Vec::new()) }
    }

    /// What follows from the settings and the model: the run, and what tables of layers are read from.
    #[must_use]
    pub fn resolved(&self) -> Settings {
        [("run".to_owned(), json!(self.run)), (ORIGIN.to_owned(), json!(self.judge.origin()))].into()
    }
}

/// The time, as RFC 3339 in UTC.
#[must_use]
pub fn now() -> String {
    humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string()
}
