use judge_core::{Judge, ModelInfo, lager::TableOrigin};
use serde_json::{Value, json};

use crate::{Difference, Error, ORIGIN, RunRecord, Settings};

/// What a plan knows of the model and the judges that make its rows, before its output is opened.
///
/// A finished output is complete only for a plan that knows as much as the record beside it:
/// rows that a model made are never taken for those of a plan that does
/// not say which model it has.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "a run has one of them")]
pub enum MadeBy {
    /// No model and no judge: rows follow from the inputs, the seed and the settings alone.
    #[default]
    Program,
    /// A model that is loaded only if there are rows to make. The plan's [settings](crate::RunPlan::settings) say everything else that the
    /// judges are made from.
    ModelToLoad {
        /// The content of the model, as [`ModelInfo::fingerprint`] will have it.
        fingerprint: String,
        /// Content id of the prompt template, where there is one.
        template: Option<String>,
    },
    /// A model that is loaded, and judges; or judges without a model here.
    Model(Resolved),
}

/// What is known of a run once the model is loaded. An interrupted run is resumed only with the same.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resolved {
    /// The model; `None` if none takes part. Its name and revision are not compared, all else is.
    pub model: Option<ModelInfo>,
    /// Content id of the prompt template, where there is one.
    pub template: Option<String>,
    /// The settings of the judges, in their order. [`RunStart::judge`](crate::RunStart::judge) and [`Run::judged_by`](crate::Run::judged_by) fill
    /// them in where they are empty.
    pub judges: Vec<Value>,
    /// What followed from the settings, e.g. the layers that `all` stands for.
    pub settings: Settings,
}

impl Resolved {
    /// A model and the judges that it is asked by.
    ///
    /// # Errors
    /// [`Error::JudgeSettings`] for a judge that does not say what its verdicts depend on.
    pub fn of<'j, Item: ?Sized + 'j>(
        model: &ModelInfo,
        judges: impl IntoIterator<Item = &'j dyn Judge<Item>>,
    ) -> Result<Self, Error> {
        Ok(Self { model: Some(model.clone()), judges: settings_of(judges)?, ..Self::default() })
    }

    /// The same, with [what the tables are read from](judge_core::lager::LagerJudge::origin): a file of
    /// [score rows](crate::score_row) is read back by it.
    #[must_use]
    pub fn with_origin(mut self, origin: &TableOrigin) -> Self {
        self.settings.insert(ORIGIN.to_owned(), json!(origin));
        self
    }
}

/// The settings of judges, in their order.
pub(crate) fn settings_of<'j, Item: ?Sized + 'j>(
    judges: impl IntoIterator<Item = &'j dyn Judge<Item>>,
) -> Result<Vec<Value>, Error> {
    let of = |judge: &dyn Judge<Item>| {
        judge.settings().ok_or_else(|| Error::JudgeSettings { judge: judge.name().to_owned() })
    };
    judges.into_iter().map(of).collect()
}

impl MadeBy {
    /// In what rows were made otherwise than is planned. Of rows that are not `finished`, what the plan does not know yet is compared
    /// later.
    pub(super) fn differences(&self, before: &RunRecord, finished: bool) -> Vec<Difference> {
        match self {
            Self::Program if finished => made_otherwise(before, &RunRecord::default()),
            Self::Program => Vec::new(),
            Self::ModelToLoad { fingerprint, template } => {
                let known = before.model.as_ref().map(|model| &model.fingerprint);
                let mut found = Difference::within("model.fingerprint", &json!(known), &json!(fingerprint));
                found.extend(Difference::within("template", &json!(before.template), &json!(template)));
                found
            }
            Self::Model(resolved) => {
                let Resolved { model, template, mut judges, settings } = resolved.clone();
                if !finished && judges.is_empty() {
                    judges.clone_from(&before.judges); // compared once the judges are known
                }
                made_otherwise(
                    before,
                    &RunRecord { model, template, judges, resolved: settings, ..RunRecord::default() },
                )
            }
        }
    }
}

/// In what the model, the template, the judges and what followed from the settings differ.
pub(super) fn made_otherwise(before: &RunRecord, now: &RunRecord) -> Vec<Difference> {
    let mut found = Difference::within("model", &model(before), &model(now));
    found.extend(Difference::within("template", &json!(before.template), &json!(now.template)));
    found.extend(judged_otherwise(&before.judges, &now.judges));
    found.extend(Difference::between(&before.resolved, &now.resolved));
    found
}

/// In what judges differ.
pub(super) fn judged_otherwise(before: &[Value], now: &[Value]) -> Vec<Difference> {
    Difference::within("judges", &json!(before), &json!(now))
}

/// What decides about a model's numbers: not how it is called.
fn model(record: &RunRecord) -> Value {
    let mut model = json!(record.model);
    if let Value::Object(fields) = &mut model {
        fields.remove("name");
        fields.remove("revision");
    }
    model
}
