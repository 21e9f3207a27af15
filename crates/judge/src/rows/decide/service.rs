//! A service that takes decisions, in the place of a model on this machine.

use anyhow::Result;
use judge_cli::args::service::{Spending, say_usage};
use judge_cli::row_job::{Pending, RowJob};
use judge_cli::terminal::console::tell_label_mass;
use judge_core::decision::{DecisionServiceJudge, Questions};
use judge_core::{ItemResult, Judge};
use judge_data::{DecisionRecord, DecisionRecords, MadeBy, Resolved, RunResult};
use judge_models::{ApiRoute, ApiSettings};
use serde_json::json;

use super::cli::{Cli, Service};
use super::rows::row;

impl Service {
    /// The service, if one is named.
    pub(super) fn named(&self) -> Option<ApiSettings> {
        let (base_url, model) = self.base_url.clone().zip(self.api_model.clone())?;
        Some(ApiSettings { base_url, model, route: ApiRoute::Decisions(self.route), ..ApiSettings::default() })
    }

    /// The run of the rows that the named one answers.
    pub(super) fn plan(
        &self,
        named: &ApiSettings,
        job: RowJob<DecisionRecords>,
        asked: Option<&Questions>,
    ) -> Result<RowJob<DecisionRecords>> {
        self.service.check(named.clone())?;
        let mut job = job.with_settings([
            ("base_url".to_owned(), json!(named.base_url.trim_end_matches('/'))),
            ("api_model".to_owned(), json!(named.model)),
        ]);
        job.job.made_by = MadeBy::Model(resolved(&self.judge(asked)));
        Ok(job)
    }

    fn judge(&self, asked: Option<&Questions>) -> DecisionServiceJudge {
        DecisionServiceJudge::new(self.route, asked.cloned())
    }

    /// Asks for what is not answered yet.
    pub(super) fn ask(
        &self,
        named: &ApiSettings,
        cli: &Cli,
        pending: Pending<'_, DecisionRecords>,
        asked: Option<&Questions>,
    ) -> Result<RunResult> {
        let prices = self.service.prices()?;
        let judge = self.judge(asked);
        let model = self.service.model(named.clone())?;
        let mut asking = Spending::new(pending.watch()?, &model, prices.as_ref());
        let row = |result: ItemResult<DecisionRecord>| row(&result, asked, &cli.carry.fields(), |_| Ok(Vec::new()));
        let result = pending.missing.judge(resolved(&judge), &model, &[&judge], row, &mut asking);
        // What is paid for is said however the run ends.
        say_usage(&model, prices.as_ref())?;
        let result = result?;
        asking.watch.finish(result.summary.cancelled)?;
        tell_label_mass(&result.summary, "the labels of the options", "");
        Ok(result)
    }
}

fn resolved(judge: &DecisionServiceJudge) -> Resolved {
    Resolved { judges: Judge::<DecisionRecord>::settings(judge).into_iter().collect(), ..Resolved::default() }
}
