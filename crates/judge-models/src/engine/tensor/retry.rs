//! Devices whose memory is full while a model runs: what a batch lost is computed again in smaller ones,
//! once.
//!
//! A pass that finds no memory leaves the device as it was, but none of its numbers may be used. Those of Burn's
//! own operations fail at the wait; products on NVIDIA GPUs are counted, and `Watch` of `room.rs` compares the
//! count before and after (`judge_gpu::memory_failures`). Then nothing of the batch has been handed
//! over yet, so its jobs, and no others, run again:
//!
//! ```text
//! prompts   the failed batch and those behind it are planned anew, none larger than half of it
//! texts     each half of the rows is fed its prompts and what is written so far, and goes on from there;
//!           a prefix that they are behind is fed before each half, in one row
//! ```
//!
//! What prefixes had left is dropped, since it may be wrong too, and devices give back what they keep
//! for later. A batch of one row has nothing to give up, and what fails a second time among requests
//! that are answered together is their error, as is every failure of another kind.

use std::sync::atomic::Ordering;

use super::host::is_memory;
use super::run::{BatchedPasses, OneBatch, Parked, Writing};
use super::schedule::{Feeds, Planned};
use crate::Error;

impl<'a> BatchedPasses<'a> {
    /// Plans the jobs of a batch of which nothing was handed over, and those behind it, in batches of half the size.
    ///
    /// # Errors
    /// `error`, where there is no other try.
    pub(super) fn plan_again(&mut self, batch: OneBatch<'a>, error: Error) -> Result<(), Error> {
        let (rows, positions) = (batch.jobs.len(), batch.positions());
        let most = self.half(rows, positions, error)?;
        self.plan(batch.members, most);
        Ok(())
    }

    /// Parks the texts of a batch that are not over, in two halves, and plans the prompts behind it in batches of half the size.
    ///
    /// # Errors
    /// `error`, where there is no other try.
    pub(super) fn write_again(&mut self, writing: Writing<'a>, error: Error) -> Result<(), Error> {
        let Writing { batch, tokens, mut written, text, ahead } = writing;
        drop((text, ahead)); // the largest that can go
        let live: Vec<usize> = (0..tokens.len()).filter(|&row| tokens[row].is_some()).collect();
        let most = self.half(live.len(), batch.positions(), error)?;
        for rows in live.chunks(live.len().div_ceil(2)) {
            self.parked.push_back(Parked {
                start: batch.start,
                members: rows.iter().map(|&row| batch.members[row]).collect(),
                jobs: rows.iter().map(|&row| batch.jobs[row]).collect(),
                written: rows.iter().map(|&row| std::mem::take(&mut written[row])).collect(),
            });
        }
        self.plan(Vec::new(), most);
        Ok(())
    }

    /// Half of a batch's positions, to which batches keep from now on, once what the devices can give back is free.
    fn half(&mut self, rows: usize, positions: usize, error: Error) -> Result<usize, Error> {
        if !is_memory(&error) || rows < 2 || self.is_again {
            return Err(error);
        }
        self.is_again = true;
        self.path.clear();
        self.watch.settle()?;
        let most = positions / 2;
        self.engine.room.fetch_min(most, Ordering::Relaxed);
        tracing::warn!(
            "the GPU's memory was full in a batch of {positions} positions, which is computed again: from now on batches have at most {most} \
             positions, and scores change by rounding; to begin with that, load the model with batches of at most {most} tokens; \
             {}",
            first_line(&error)
        );
        Ok(most)
    }

    /// Plans these members of the group, and those that are planned already, in batches of at most `most` positions.
    fn plan(&mut self, mut members: Vec<usize>, most: usize) {
        for Planned { feeds, .. } in self.planned.drain(..) {
            if let Feeds::Batch { batch, .. } = feeds {
                members.extend(batch.members);
            }
        }
        members.sort_unstable();
        self.planned = self.engine.planned(self.group, &members, most);
    }
}

/// What the device said, without the places in code that cubecl adds.
fn first_line(error: &Error) -> String {
    let text = error.to_string();
    let line = text.lines().find(|line| line.contains("memory") || line.contains("allocate")).unwrap_or_default();
    line.trim().to_owned()
}
