use std::fmt;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use crate::{Backbone, BackboneError, LabelInContext, ModelInfo, Outcome, Prompt, Request, TokenId};

/// Requests that a replica takes at a time, at most: enough to fill its batches.
const MAX_CHUNK: usize = 1024;

/// Shares of the requests per replica, if there are few: the fewer are left, the less a fast replica waits for a slow one.
const SHARES: usize = 8;

/// Several copies of one model, one per device, as one backbone.
///
/// Each copy has a thread and takes the next requests whenever it is done with its own. What a request brings does not depend on the
/// copy that answers it, as far as the copies themselves agree: to the bit where they are of one kind, within the device's tolerance
/// elsewhere.
///
/// ```
/// use std::ops::ControlFlow;
///
/// use judge_core::testing::ScriptedBackbone;
/// use judge_core::{Backbone, Prompt, Replicas, Request, Want};
///
/// let replicas = Replicas::new(vec![Box::new(ScriptedBackbone::new(3)), Box::new(ScriptedBackbone::new(3))])?;
/// let requests = ["a", "b c"].map(|text| Request { prompt: Prompt::Raw(text.into()), want: Want::default() });
/// let mut answered = 0;
/// replicas.run(&requests, &mut |_, _| {
///     answered += 1;
///     ControlFlow::Continue(())
/// })?;
/// assert_eq!(answered, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Replicas {
    backbones: Vec<Box<dyn Backbone>>,
}

/// Backbones that are no copies of one model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReplicasProblem {
    /// There is none.
    #[error("there is no backbone to run on")]
    Empty,
    /// One is of another model than the first.
    #[error("backbone {index} is {found}, the first is {expected}")]
    OtherModel {
        /// Its index.
        index: usize,
        /// Fingerprint and dtype of the first.
        expected: String,
        /// Its own.
        found: String,
    },
}

impl Replicas {
    /// Joins copies of one model.
    ///
    /// # Errors
    /// If there is none, or if one has other weights or another dtype than the first.
    pub fn new(backbones: Vec<Box<dyn Backbone>>) -> Result<Self, ReplicasProblem> {
        let what = |backbone: &dyn Backbone| format!("{} in {}", backbone.info().fingerprint, backbone.info().dtype);
        let expected = what(backbones.first().ok_or(ReplicasProblem::Empty)?.as_ref());
        for (index, backbone) in backbones.iter().enumerate() {
            let found = what(backbone.as_ref());
            if found != expected {
                return Err(ReplicasProblem::OtherModel { index, expected, found });
            }
        }
        Ok(Self { backbones })
    }

    fn first(&self) -> &dyn Backbone {
        self.backbones[0].as_ref() // `new` refuses an empty list
    }
}

impl Backbone for Replicas {
    /// That of the first copy.
    fn info(&self) -> &ModelInfo {
        self.first().info()
    }

    fn token(&self, label: &str) -> Result<TokenId, BackboneError> {
        self.first().token(label)
    }

    fn label_in_context(&self, prompt: &Prompt, label: &str) -> Result<LabelInContext, BackboneError> {
        self.first().label_in_context(prompt, label)
    }

    fn run(
        &self,
        requests: &[Request],
        sink: &mut dyn FnMut(usize, Outcome) -> ControlFlow<()>,
    ) -> Result<(), BackboneError> {
        let chunk = requests.len().div_ceil(SHARES * self.backbones.len()).clamp(1, MAX_CHUNK);
        let (next, cancelled) = (AtomicUsize::new(0), AtomicBool::new(false));
        thread::scope(|scope| {
            // A short channel: answers wait here rather than pile up if the sink is slow.
            let (send, receive) = mpsc::sync_channel(2 * self.backbones.len());
            for backbone in &self.backbones {
                let (send, next, cancelled) = (send.clone(), &next, &cancelled);
                scope.spawn(move || {
                    while !cancelled.load(Ordering::Relaxed) {
                        let start = next.fetch_add(chunk, Ordering::Relaxed);
                        let Some(rest) = requests.get(start..).filter(|rest| !rest.is_empty()) else { break };
                        let done = backbone.run(&rest[..chunk.min(rest.len())], &mut |index, outcome| {
                            let gone = send.send(Ok((start + index, outcome))).is_err();
                            if gone || cancelled.load(Ordering::Relaxed) {
                                ControlFlow::Break(())
                            } else {
                                ControlFlow::Continue(())
                            }
                        });
                        if let Err(error) = done {
                            // If nobody listens any more, the run is over for another reason already.
                            let _ = send.send(Err(error.behind(start)));
                            break;
                        }
                    }
                });
            }
            drop(send);
            for answer in &receive {
                let flow = answer.map(|(index, outcome)| sink(index, outcome));
                if !matches!(flow, Ok(ControlFlow::Continue(()))) {
                    cancelled.store(true, Ordering::Relaxed);
                    // Dropping the receiver wakes whoever waits to send.
                    drop(receive);
                    return flow.map(|_| ());
                }
            }
            Ok(())
        })
    }
}

impl BackboneError {
    /// The same error of a run whose requests are `start` further on in a longer list.
    fn behind(mut self, start: usize) -> Self {
        match &mut self {
            Self::Layer { request, .. } | Self::Token { request, .. } | Self::Request { request, .. } => {
                *request += start
            }
            _ => {}
        }
        self
    }
}

impl fmt::Debug for Replicas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let infos: Vec<&ModelInfo> = self.backbones.iter().map(|backbone| backbone.info()).collect();
        f.debug_struct("Replicas").field("infos", &infos).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ScriptedBackbone, check_backbone};
    use crate::{LabelRead, Layer, Lens, ReadAt, Want};

    fn replicas(count: usize) -> Replicas {
        Replicas::new((0..count).map(|_| Box::new(ScriptedBackbone::new(3)) as Box<dyn Backbone>).collect()).unwrap()
    }

    fn requests(count: u32) -> Vec<Request> {
        let labels = |layer| LabelRead {
            tokens: vec!['1' as u32, '2' as u32],
            layers: vec![Layer(layer)],
            lens: Lens::Raw,
            at: ReadAt::PromptEnd,
        };
        (0..count)
            .map(|i| Request {
                prompt: Prompt::Raw(format!("item {i}")),
                want: Want { labels: Some(labels(i as usize % 4)), ..Want::default() },
            })
            .collect()
    }

    fn answers(backbone: &dyn Backbone, requests: &[Request]) -> Vec<Outcome> {
        let mut answers = vec![None; requests.len()];
        backbone
            .run(requests, &mut |index, outcome| {
                assert!(answers[index].replace(outcome).is_none(), "request {index} is answered twice");
                ControlFlow::Continue(())
            })
            .unwrap();
        answers.into_iter().map(Option::unwrap).collect()
    }

    #[test]
    fn many_answer_as_one() {
        for count in [0, 1, 7, 100, 3000] {
            let requests = requests(count);
            let expected = answers(&ScriptedBackbone::new(3), &requests);
            for copies in [1, 2, 5] {
                assert_eq!(answers(&replicas(copies), &requests), expected, "{count} requests, {copies} copies");
            }
        }
    }

    #[test]
    fn the_contract_of_a_backbone_holds() {
        check_backbone(&replicas(3), &["a", "b c", "d"].map(|text| Prompt::Raw(text.to_owned()))).unwrap();
    }

    #[test]
    fn a_break_ends_it_without_another_call() {
        let mut calls = 0;
        let run = replicas(3).run(&requests(500), &mut |_, _| {
            calls += 1;
            if calls == 5 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert!(run.is_ok());
        assert_eq!(calls, 5);
    }

    #[test]
    fn an_error_names_the_request_in_the_whole_list() {
        let mut requests = requests(300);
        if let Some(labels) = &mut requests[271].want.labels {
            labels.layers = vec![Layer(9)];
        }
        let error = replicas(2).run(&requests, &mut |_, _| ControlFlow::Continue(())).unwrap_err();
        assert!(matches!(error, BackboneError::Layer { request: 271, layer: Layer(9), .. }), "{error}");
    }

    #[test]
    fn copies_of_another_model_are_refused() {
        assert_eq!(Replicas::new(Vec::new()).unwrap_err(), ReplicasProblem::Empty);
        let mixed: Vec<Box<dyn Backbone>> =
            vec![Box::new(ScriptedBackbone::new(3)), Box::new(ScriptedBackbone::new(4))];
        assert!(matches!(Replicas::new(mixed), Err(ReplicasProblem::OtherModel { index: 1, .. })));
    }
}
