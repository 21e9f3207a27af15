//! A judge of pairs before the pairs of a run, in one order or in both.

use std::sync::Arc;

use anyhow::Result;
use judge_core::{
    Backbone, Fields, Judge, Scale,
    combine::{Confident, GradedPair, OrderPolicy, PlaceCorrected, Swapped},
    inspector::Probe,
};
use judge_data::{Carry, Numbered, PairOrders, PairRow, Resolved, RunResult, Source};
use judge_models::Model;

use crate::args::prompt_judge::AskedJudge;
use crate::row_job::Pending;

/// How pairs are judged.
pub struct PairJudging<'a> {
    /// The judge: of pairs, or where they are judged apart, of single responses.
    pub judge: &'a AskedJudge,
    /// Each response is graded by itself, and the grades are compared.
    pub apart: bool,
    /// Each pair is judged in both orders, whose log-odds are averaged.
    pub both_orders: bool,
    /// What the place that is shown first adds to the log-odds, in nats, which is taken off.
    pub place_offset: Option<f64>,
    /// What says how likely each verdict is right.
    pub probe: Option<Arc<dyn Probe>>,
    /// The scale of the logits that rows keep, if they keep any: see [`PairRow::new`].
    pub tables: Option<&'a Scale>,
    /// Which other fields the output gets.
    pub carry: &'a Carry,
}

impl PairJudging<'_> {
    /// Judges the pairs that the output does not have yet, with progress.
    ///
    /// # Errors
    /// Of the records, the model, or the output; [`Stopped`](crate::terminal::interrupt::Stopped) after a signal.
    pub fn run<S: Source<Item = Numbered>>(
        &self,
        pending: Pending<'_, S>,
        resolved: Resolved,
        model: &Model,
    ) -> Result<RunResult> {
        let graded = match self.judge {
            AskedJudge::Prompted(_) => GradedPair::new(self.judge),
            AskedJudge::Reward(_) => GradedPair::of_rewards(self.judge),
        };
        let compared: &dyn for<'i> Judge<dyn Fields + 'i> = if self.apart { &graded } else { self.judge };
        let corrected = self.place_offset.map(|offset| PlaceCorrected::new(compared, offset)).transpose()?;
        let compared = corrected.as_ref().map_or(compared, |corrected| corrected);
        let confident = self.probe.clone().map(|probe| Confident::new(compared, probe, model.info())).transpose()?;
        let compared: &dyn for<'i> Judge<dyn Fields + 'i> = confident.as_ref().map_or(compared, |confident| confident);
        let both = Swapped::new(&compared, OrderPolicy::LogOdds);
        let orders = if self.both_orders { PairOrders::Both(&both) } else { PairOrders::Given(&compared) };
        let row = |result| PairRow::new(&orders, result, self.tables, self.carry);
        pending.judge(resolved, model, &[&orders], row)
    }
}
