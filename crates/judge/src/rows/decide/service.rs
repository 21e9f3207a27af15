//! A service that takes decisions, in the place of a model on this machine.

use anyhow::Result;
use judge_core::decision::{DecisionRoute, DecisionServiceJudge, Questions};
use judge_core::{ItemResult, Judge};
use judge_data::{DecisionRecord, Input, MadeBy, Opened, Resolved};
use judge_models::{ApiRoute, ApiSettings};
use serde_json::json;

use super::cli::{Cli, PROGRAM, Route, Service};
use super::rows::Done;
use crate::args::service::{ServiceArgs, Spending, say_usage};
use crate::terminal::console::tell_label_mass;
use crate::terminal::pace::Watch;

/// A service that is named.
pub(super) struct Named<'a> {
    settings: ApiSettings,
    route: DecisionRoute,
    args: &'a ServiceArgs,
}

impl Service {
    /// The service, if one is named.
    pub(super) fn named(&self) -> Option<Named<'_>> {
        let (base_url, model) = self.base_url.clone().zip(self.api_model.clone())?;
        let route = match self.route {
            Route::Systemone => DecisionRoute::SystemOne,
            Route::Decisions => DecisionRoute::OpenAi,
        };
        let settings = ApiSettings { base_url, model, route: ApiRoute::Decisions(route), ..ApiSettings::default() };
        Some(Named { settings, route, args: &self.service })
    }
}

impl Named<'_> {
    /// Asks for what is not answered yet.
    pub(super) fn ask(self, cli: &Cli, input: &Input, rows: usize, asked: Option<&Questions>) -> Result<Done> {
        self.args.check(self.settings.clone())?;
        let prices = self.args.prices()?;
        let judge = DecisionServiceJudge::new(self.route, asked.cloned());
        let mut of_plan = cli.settings();
        of_plan.insert("base_url".to_owned(), json!(self.settings.base_url.trim_end_matches('/')));
        of_plan.insert("api_model".to_owned(), json!(self.settings.model));
        let mut plan = cli.output.plan_of(PROGRAM, rows, &cli.input, of_plan);
        plan.inputs = vec![input.identity()?.with_rows(rows)];
        let judges = Judge::<DecisionRecord>::settings(&judge).into_iter().collect();
        let resolved = Resolved { judges, ..Resolved::default() };
        plan.made_by = MadeBy::Model(resolved.clone());
        let start = match plan.open()? {
            Opened::Ready(start) => start,
            Opened::Complete(record) => {
                cli.say_complete(&record, rows)?;
                return Ok(Done { origin: None, counts: record.counts });
            }
        };
        let model = self.args.model(self.settings)?;
        let watch = Watch::new("deciding", "rows", cli.model.quiet)?;
        let mut asking = Spending::new(watch, &model, prices.as_ref());
        let records = cli.records(input)?;
        let row = |result: ItemResult<DecisionRecord>| cli.row(&result, asked, |_| Ok(Vec::new()));
        let result = start.judge(resolved, &model, &[&judge], records, row, &mut asking);
        // What is paid for is said however the run ends.
        say_usage(&model, prices.as_ref())?;
        let result = result?;
        asking.watch.finish(result.summary.cancelled)?;
        cli.say_counts(&result.counts, rows)?;
        tell_label_mass(&result.summary, "the labels of the options", "");
        Ok(Done { origin: None, counts: result.counts })
    }
}
