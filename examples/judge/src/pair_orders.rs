//! A judge of pairs before the pairs of a run, in one order or in both.

use anyhow::Result;
use judge_core::{
    Fields, Judge, Scale,
    combine::{GradedPair, OrderPolicy, Swapped},
    runner::RunSummary,
};
use judge_data::{Carry, Error, PairOrders, PairRow, Record, Run, judge_rows};
use judge_models::Model;

use crate::args::prompted::AskedJudge;
use crate::terminal::pace::Watch;

/// How pairs are judged.
pub struct PairJudging<'a> {
    /// The judge: of pairs, or where they are judged apart, of single responses.
    pub judge: &'a AskedJudge,
    /// Each response is graded by itself, and the grades are compared.
    pub apart: bool,
    /// Each pair is judged in both orders.
    pub both_orders: bool,
    /// The scale of the logits that rows keep, if they keep any: see [`PairRow::new`].
    pub tables: Option<&'a Scale>,
    /// Which other fields the output gets.
    pub carry: &'a Carry,
}

impl PairJudging<'_> {
    /// Judges the records that the output does not have yet.
    ///
    /// # Errors
    /// Of the records, the model, or the output.
    pub fn run(
        &self,
        output: &mut Run,
        model: &Model,
        records: impl Iterator<Item = Result<Record, Error>>,
        watch: &mut Watch,
    ) -> Result<RunSummary> {
        let graded = match self.judge {
            AskedJudge::Prompted(_) => GradedPair::new(self.judge),
            AskedJudge::Reward(_) => GradedPair::of_rewards(self.judge),
        };
        let compared: &dyn for<'i> Judge<dyn Fields + 'i> = if self.apart { &graded } else { self.judge };
        let both = Swapped::new(&compared, OrderPolicy::Average);
        let orders = if self.both_orders { PairOrders::Both(&both) } else { PairOrders::Given(&compared) };
        Ok(judge_rows(
            output,
            model,
            vec![&orders],
            records,
            |result| PairRow::new(&orders, result, self.tables, self.carry),
            |event| watch.see(event),
        )?)
    }
}
