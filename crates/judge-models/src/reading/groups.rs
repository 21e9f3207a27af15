//! Which sequences can share passes.
//!
//! `model.rs` calls `groups` once for the requests that are answered together, before any pass. It
//! gives an engine one group at a time, so that a pass has one set of blocks and one table of
//! rotations.
//!
//! Rotary frequencies may depend on the length of a sequence (LongRoPE, dynamic NTK). A sequence's
//! are those of its longest possible form, prompt and all new tokens; so they never change while a
//! text is written, and they do not depend on what else is asked.

use std::collections::HashMap;
use std::ops::ControlFlow;

use judge_arch::inverse_frequencies;
use judge_core::{Outcome, Request};
use rayon::prelude::*;

use super::answers::Answers;
use super::context::Context;
use super::jobs::{Admitted, Job};
use super::labels::Heads;
use crate::Error;

/// Jobs that run through the same blocks with the same rotary frequencies: they can share passes.
pub(crate) struct Group<'a> {
    /// Blocks to run, from the first; at most the model's.
    pub(crate) blocks: usize,
    /// The jobs, in the order of their requests; at least one.
    pub(crate) jobs: Vec<Job<'a>>,
}

/// Tokenises all requests on rayon's threads and groups their jobs. Groups come in the order of
/// their first jobs. What needs no pass, because it cannot be scored or asks for nothing but the
/// prompt's length, is answered at once; [`ControlFlow::Break`] if that ends the run.
///
/// # Errors
/// Those of [`Context::admit`] but for [`Error::Prompt`]; of several the one of the first request.
pub(crate) fn groups<'a>(
    context: &Context,
    requests: &'a [Request],
    heads: &'a Heads<'a>,
    answers: &mut Answers<'_>,
) -> Result<ControlFlow<(), Vec<Group<'a>>>, Error> {
    let admitted: Vec<_> =
        requests.par_iter().enumerate().map(|(index, request)| context.admit(index, request, heads)).collect();
    let mut groups: Vec<Group<'_>> = Vec::new();
    let mut places: HashMap<(usize, Vec<u32>), usize> = HashMap::new();
    for (index, (request, admitted)) in requests.iter().zip(admitted).enumerate() {
        let flow = match admitted {
            Err(Error::Prompt { unscored }) => answers.give(index, Outcome::Unscored(unscored)),
            Err(error) => return Err(error),
            Ok(Admitted { prompt_tokens, cut_tokens, jobs }) => {
                let flow = answers.expect(index, &request.want, [prompt_tokens, cut_tokens], jobs.len());
                for job in jobs {
                    let Some(blocks) = job.blocks(context.spec.n_layers()) else { continue };
                    let len = job.ids.len() + job.new_tokens();
                    let frequencies = context.spec.ropes().iter().flat_map(|rope| inverse_frequencies(rope, len).0);
                    let key = (blocks, frequencies.map(f32::to_bits).collect());
                    let place = *places.entry(key).or_insert_with(|| {
                        groups.push(Group { blocks, jobs: Vec::new() });
                        groups.len() - 1
                    });
                    groups[place].jobs.push(job);
                }
                flow
            }
        };
        if flow.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(groups))
}
