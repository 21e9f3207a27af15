//! Passes of an encoder: whole sequences, as many as fit, pooled as they go through the blocks.
//!
//! Owns which sequences share a pass and what is kept of them. It does not own the arithmetic
//! (`encoder.rs`) or the poolings (`reading/pooling.rs`). `reading/driver.rs` calls it through the
//! trait `Passes`; it gets a group of jobs and hands over pooled states, one [`Found`] a job.
//!
//! Jobs are taken in their order. All positions of a sequence are in one pass, so pools begin and
//! end with it. A sequence's states do not depend on its company; see `encoder.rs`.

use judge_core::{Layer, reading::PooledState};
use rayon::prelude::*;

use super::encoder::{Buffers, PackedEncoder, Sequence};
use super::rotations::Angles;
use super::run::PASS;
use crate::Error;
use crate::reading::groups::Group;
use crate::reading::jobs::{Brought, Job, Signals};
use crate::reading::passes::{Found, Next, Passes, Take};
use crate::reading::pooling::Pool;

/// The passes over one group of jobs.
pub(super) struct EncoderPasses<'a> {
    /// The model.
    encoder: &'a PackedEncoder,
    /// All jobs of the group, in the order of their requests.
    jobs: &'a [Job<'a>],
    /// Blocks to run, from the first.
    blocks: usize,
    /// Rows of one pass; a single sequence may have more.
    room: usize,
    /// Rotations of as many positions as the longest sequence has.
    angles: Angles,
    /// The first job that has not been read.
    next: usize,
    /// Activations, reused by the next pass.
    buffers: Buffers,
}

impl<'a> EncoderPasses<'a> {
    /// Passes over the group's jobs, in which at most `max_tokens` positions, and at most [`PASS`],
    /// share a pass.
    pub(super) fn new(encoder: &'a PackedEncoder, group: &'a Group<'a>, max_tokens: usize) -> Self {
        let Group { blocks, jobs } = group;
        let longest = jobs.iter().map(|job| job.ids.len()).max().unwrap_or(0);
        // Jobs of a group share their frequencies, which are those of the longest.
        let angles = Angles::new(&encoder.spec.ropes, longest, longest);
        let room = PASS.min(max_tokens);
        Self { encoder, jobs, blocks: *blocks, room, angles, next: 0, buffers: Buffers::default() }
    }
}

impl Passes for EncoderPasses<'_> {
    /// Reads the next few jobs: as many as have `room` rows together, at least one. All of them are
    /// handed over in one call of `take`, with pooled states and nothing else: `reading/check.rs`
    /// refuses other wishes beforehand. What `take` returns is ignored, since no text is written.
    fn prefill(&mut self, take: &mut Take<'_>) -> Result<bool, Error> {
        let waiting = &self.jobs[self.next..];
        let mut rows = 0;
        let fits = |job: &&Job<'_>| {
            let is_first = rows == 0;
            rows += job.ids.len();
            is_first || rows <= self.room
        };
        let jobs = &waiting[..waiting.iter().take_while(fits).count()];
        if jobs.is_empty() {
            return Ok(false);
        }
        let sequences: Vec<Sequence<'_>> =
            jobs.iter().map(|job| Sequence { ids: &job.ids, types: &job.types }).collect();
        let mut pools: Vec<Vec<Pool>> =
            jobs.iter().map(|job| job.want.pooled.iter().map(|&(_, pooling)| Pool::new(pooling)).collect()).collect();
        let d_model = self.encoder.spec.d_model;
        let mut visit = |layer: usize, x: &[f32]| {
            let mut start = 0;
            let mut of_jobs = Vec::with_capacity(jobs.len());
            for (job, pools) in jobs.iter().zip(&mut pools) {
                let end = start + job.ids.len() * d_model;
                of_jobs.push((job, pools, &x[start..end]));
                start = end;
            }
            of_jobs.into_par_iter().for_each(|(job, pools, rows)| {
                let here = job.want.pooled.iter().zip(pools).filter(|((wanted, _), _)| *wanted == Layer(layer));
                here.for_each(|(_, pool)| rows.chunks_exact(d_model).for_each(|row| pool.add(row)));
            });
        };
        // On one of rayon's threads, as a decoder's pass.
        rayon::scope(|_| self.encoder.forward(&sequences, &self.angles, self.blocks, &mut self.buffers, &mut visit));
        let found = jobs.iter().zip(pools).enumerate().map(|(place, (job, pools))| {
            let pooled = job.want.pooled.iter().zip(pools);
            let pooled = pooled.map(|(&(layer, pooling), pool)| PooledState { layer, pooling, values: pool.finish() });
            let signals = Signals { pooled: pooled.collect(), attention_entropy: Vec::new() };
            Found { job: self.next + place, brought: Brought { signals, ..Brought::default() }, next: Next::Unknown }
        });
        let found: Vec<Found<'_>> = found.collect();
        self.next += found.len();
        take(found)?;
        Ok(true)
    }

    /// Nothing is written behind a text, so there is never anything to do.
    fn step(&mut self, _: &mut Take<'_>) -> Result<bool, Error> {
        Ok(false)
    }
}
